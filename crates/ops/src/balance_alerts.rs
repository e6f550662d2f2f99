//! Balance alerts: accounts whose sum passes a limit of the settings, over all ledgers or of one
//! merchant. Each is an item of the queue, and a metric.

use std::str::FromStr;
use std::sync::Arc;

use actors::engine::{Engine, WaitingItem, WaitingKind};
use ledger::{Account, Balance, Centavos, GroupNumber, LedgerId, ObjectId};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

/// Ends the name of an account whose limit is of each merchant.
const OF_MERCHANT: &str = "@merchant";

/// Limit of the sum of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceAlert {
    /// The account; one that exists once per recipient counts for all of them.
    pub account: Account,
    /// What its debits and credits may differ by, centavos.
    pub above: Centavos,
    /// True where the limit is of the account of each merchant, and not of the sum over all
    /// ledgers.
    pub of_merchant: bool,
}

/// Text that is no balance alert.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no balance alert: it is ACCOUNT=CENTAVOS, such as Liabilities:Suspense=100000, for the sum of all, or \
     ACCOUNT@merchant=CENTAVOS, such as Assets:Merchants:Deficit@merchant=100000, for each merchant; the name of an \
     account has no id in it"
)]
pub struct WrongBalanceAlert(String);

impl FromStr for BalanceAlert {
    type Err = WrongBalanceAlert;

    /// Reads `ACCOUNT=CENTAVOS` or `ACCOUNT@merchant=CENTAVOS`.
    fn from_str(text: &str) -> Result<Self, WrongBalanceAlert> {
        let parsed = text.split_once('=').and_then(|(name, above)| {
            let above = above.trim().parse().ok().filter(|above| *above >= 0)?;
            let name = name.trim();
            let (name, of_merchant) = name.strip_suffix(OF_MERCHANT).map_or((name, false), |name| (name, true));
            let account = Account::named(name).filter(|account| account.kind_name() == name)?;
            Some(Self { account, above: Centavos(above), of_merchant })
        });
        parsed.ok_or_else(|| WrongBalanceAlert(text.to_owned()))
    }
}

impl std::fmt::Display for BalanceAlert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = if self.of_merchant { OF_MERCHANT } else { "" };
        write!(f, "{}{of}={}", self.account.kind_name(), self.above.0)
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

    /// The alerts of sums over all ledgers, each with its sum, debits minus credits, centavos; none
    /// in a process that does not see all of them.
    fn sums(&self) -> Vec<(BalanceAlert, i128)> {
        let alerts = || self.alerts.iter().filter(|alert| !alert.of_merchant);
        if alerts().next().is_none() || !self.engine.has_all() {
            return Vec::new();
        }
        let kinds = self.engine.totals().kinds;
        alerts().map(|alert| (*alert, alert.sum(&kinds))).collect()
    }

    /// The merchants' accounts that pass their limits, each with its sum.
    fn of_merchants(&self) -> Vec<(BalanceAlert, GroupNumber, i128)> {
        let alerts: Vec<_> = self.alerts.iter().filter(|alert| alert.of_merchant).collect();
        let groups = if alerts.is_empty() { Vec::new() } else { self.engine.groups() };
        let of_group = |group| {
            let ledgers = [LedgerId::Merchant(group), LedgerId::Platform(group)];
            let accounts: Vec<_> =
                ledgers.into_iter().flat_map(|ledger| self.engine.published_accounts(ledger)).collect();
            let sums = alerts.iter().map(move |alert| (**alert, group, alert.sum(&accounts)));
            sums.filter(|(alert, _, sum)| alert.is_passed_by(*sum)).collect::<Vec<_>>()
        };
        groups.into_iter().flat_map(of_group).collect()
    }

    /// The accounts that pass their limits, as items of the queue.
    pub fn items(&self) -> Vec<WaitingItem> {
        let of_all = self.sums().into_iter().filter(|(alert, sum)| alert.is_passed_by(*sum));
        let of_all = of_all.map(|(alert, sum)| (alert, None, sum));
        let of_merchants = self.of_merchants().into_iter().map(|(alert, group, sum)| (alert, Some(group), sum));
        let item = |(alert, group, sum): (BalanceAlert, Option<GroupNumber>, i128)| {
            let (code, _) = alert.account.code();
            let balance = Centavos(i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX }));
            let what = WaitingKind::Balance { code, balance, above: alert.above, at: self.engine.now() };
            // No object has an id without a time.
            let id = ObjectId(u128::from(code) | group.map_or(0, |group| u128::from(group.0) << u16::BITS));
            WaitingItem { id, ledger: group.map_or(LedgerId::System, LedgerId::Merchant), what }
        };
        of_all.chain(of_merchants).map(item).collect()
    }
}

impl BalanceAlert {
    /// The sum of the account among these, debits minus credits, centavos.
    fn sum<'a>(&self, accounts: impl IntoIterator<Item = &'a (Account, Balance)>) -> i128 {
        let of = accounts.into_iter().filter(|(account, _)| account.code().0 == self.account.code().0);
        of.map(|(_, balance)| balance.net()).sum()
    }

    fn is_passed_by(&self, sum: i128) -> bool {
        sum.unsigned_abs() > self.above.0.unsigned_abs().into()
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
        family(&mut encoder, "centavo_balance_limit_centavos", help, limits)?;
        let passed = self.of_merchants();
        let count = |alert: &BalanceAlert| passed.iter().filter(|(of, _, _)| of == alert).count() as i128;
        let counts = self.alerts.iter().filter(|alert| alert.of_merchant).map(|alert| (alert, count(alert)));
        family(&mut encoder, "centavo_balance_merchants_above", "Merchants whose account is above its limit", counts)
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
        assert_eq!(
            read("Liabilities:Platform:Deficit@merchant=5"),
            Ok("Liabilities:Platform:Deficit@merchant=5".to_owned())
        );
        assert_eq!(read(" Assets:Merchants:Deficit = 0 "), Ok("Assets:Merchants:Deficit=0".to_owned()));
        let of_one = "Assets:Merchants:M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e:Deficit=100";
        for wrong in [
            "",
            "Liabilities:Suspense",
            "Liabilities:Suspense=-1",
            "Liabilities:Suspense=10,00",
            "Suspense=1",
            of_one,
            "Assets:Merchants:{merchant}:Deficit=1",
        ] {
            assert_eq!(read(wrong), Err(WrongBalanceAlert(wrong.to_owned())));
        }
    }
}
