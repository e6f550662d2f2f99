//! Sums of accounts over all ledgers, as metrics: an alert rule says which of them is too large.
//! Only those that should be small are there, since metrics are read without a credential.

use std::sync::Arc;

use actors::engine::Engine;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// Sums of the accounts of an engine; none in a process that does not see all ledgers.
pub struct AccountSums(pub Arc<Engine>);

impl std::fmt::Debug for AccountSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountSums")
    }
}

/// Ends of the names of accounts that should be small: money that nobody claims, and debts.
const WATCHED: [&str; 2] = [":Suspense", ":Deficit"];

#[derive(EncodeLabelSet)]
struct AccountLabel {
    account: String,
}

impl Collector for AccountSums {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        if !self.0.has_all() {
            return Ok(());
        }
        let help = "Sum of an account that should be small, over all ledgers, debits minus credits, centavos";
        let mut family = encoder.encode_descriptor("centavo_balance_centavos", help, None, MetricType::Gauge)?;
        let sums = self.0.totals().kinds.into_iter().map(|(account, balance)| (account.kind_name(), balance));
        for (account, balance) in sums.filter(|(name, _)| WATCHED.iter().any(|end| name.ends_with(end))) {
            let gauge = ConstGauge::new(i64::try_from(balance.net()).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&AccountLabel { account })?)?;
        }
        Ok(())
    }
}
