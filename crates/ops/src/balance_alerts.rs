//! Balance alerts: accounts whose sum over all ledgers passes a limit of the settings. Each is an
//! item of the queue, and a metric.

use std::str::FromStr;
use std::sync::Arc;

use actors::engine::{Engine, WaitingItem, WaitingKind};
use ledger::account::Account;
use ledger::id::{LedgerId, ObjectId};
use ledger::money::Centavos;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

/// Limit of the sum of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceAlert {
    /// The account; one that exists once per recipient counts for all of them.
    pub account: Account,
    /// What debits and credits of all ledgers may differ by, centavos.
    pub above: Centavos,
}

/// Text that is no balance alert.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no balance alert: it is ACCOUNT=CENTAVOS, such as Liabilities:Suspense=100000")]
pub struct WrongBalanceAlert(String);

impl FromStr for BalanceAlert {
    type Err = WrongBalanceAlert;

    /// Reads `ACCOUNT=CENTAVOS`.
    fn from_str(text: &str) -> Result<Self, WrongBalanceAlert> {
        let parsed = text.split_once('=').and_then(|(name, above)| {
            let above = above.trim().parse().ok().filter(|above| *above >= 0)?;
            Some(Self { account: Account::named(name.trim())?, above: Centavos(above) })
        });
        parsed.ok_or_else(|| WrongBalanceAlert(text.to_owned()))
    }
}

impl std::fmt::Display for BalanceAlert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.account.kind_name(), self.above.0)
    }
}

/// The alerts of an installation, beside its books.
#[derive(Clone)]
pub struct BalanceAlerts {
    engine: Arc<Engine>,
    alerts: Arc<[BalanceAlert]>,
}

impl BalanceAlerts {
    /// The alerts of the settings.
    pub fn new(engine: Arc<Engine>, alerts: Vec<BalanceAlert>) -> Self {
        Self { engine, alerts: alerts.into() }
    }

    /// Each alert with the sum of its account, debits minus credits, centavos.
    fn sums(&self) -> Vec<(BalanceAlert, i128)> {
        if self.alerts.is_empty() {
            return Vec::new();
        }
        let kinds = self.engine.totals().kinds;
        let sum = |alert: &BalanceAlert| {
            let of = kinds.iter().filter(|(account, _)| account.code().0 == alert.account.code().0);
            of.map(|(_, balance)| balance.net()).sum()
        };
        self.alerts.iter().map(|alert| (*alert, sum(alert))).collect()
    }

    /// The accounts that pass their limits, as items of the queue.
    pub fn items(&self) -> Vec<WaitingItem> {
        let passed =
            self.sums().into_iter().filter(|(alert, sum)| sum.unsigned_abs() > alert.above.0.unsigned_abs().into());
        let item = |(alert, sum): (BalanceAlert, i128)| {
            let (code, _) = alert.account.code();
            let balance = Centavos(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }));
            let what = WaitingKind::Balance { code, balance, above: alert.above, at: self.engine.now() };
            // No object has an id without a time.
            WaitingItem { id: ObjectId(code.into()), ledger: LedgerId::System, what }
        };
        passed.map(item).collect()
    }
}

impl std::fmt::Debug for BalanceAlerts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.alerts.iter()).finish()
    }
}

impl Collector for BalanceAlerts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let help = "Sum of an account that has a limit, debits minus credits, centavos";
        let sums = self.sums();
        family(&mut encoder, "centavo_balance_centavos", help, sums.iter().map(|(alert, sum)| (alert, *sum)))?;
        let help = "Limit of the sum of an account, centavos";
        let limits = sums.iter().map(|(alert, _)| (alert, alert.above.0.into()));
        family(&mut encoder, "centavo_balance_limit_centavos", help, limits)
    }
}

#[derive(EncodeLabelSet)]
struct AccountLabel {
    account: String,
}

fn family<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a BalanceAlert, i128)>,
) -> std::fmt::Result {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, prometheus_client::metrics::MetricType::Gauge)?;
    for (alert, value) in values {
        let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        gauge.encode(family.encode_family(&AccountLabel { account: alert.account.kind_name() })?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_an_account_and_centavos() {
        let read = |text: &str| text.parse::<BalanceAlert>().map(|alert| alert.to_string());
        assert_eq!(read("Liabilities:Suspense=100000"), Ok("Liabilities:Suspense=100000".to_owned()));
        assert_eq!(read(" Assets:Merchants:Deficit = 0 "), Ok("Assets:Merchants:Deficit=0".to_owned()));
        for wrong in ["", "Liabilities:Suspense", "Liabilities:Suspense=-1", "Liabilities:Suspense=10,00", "Suspense=1"]
        {
            assert_eq!(read(wrong), Err(WrongBalanceAlert(wrong.to_owned())));
        }
    }
}
