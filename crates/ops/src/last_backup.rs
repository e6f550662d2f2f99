//! Time of the last backup and the last Record in it, stored in a file beside the data, and its age
//! as a metric.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fmt, fs};

use ledger::time::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

/// When a backup was last taken of a data directory: through its server, or while it was stopped.
/// Stored in a file: a restart does not make a backup younger.
#[derive(Clone, Debug)]
pub struct LastBackup(PathBuf);

impl LastBackup {
    /// The time of the last backup of a data directory.
    pub fn of(data: &Path) -> Self {
        Self(data.join("last-backup"))
    }

    /// One was taken, whole, just now, through this Record.
    pub fn note(&self, through: u64) {
        // A server on a database may have had no use for its data directory yet.
        let folder = self.0.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(error) = folder.and_then(|()| fs::write(&self.0, format!("{} {through}", now_seconds()))) {
            tracing::warn!(%error, "when the backup was made could not be kept");
        }
    }

    /// When it was taken, by the clock of the machine; `None` if there was never one.
    pub fn taken_at(&self) -> Option<Timestamp> {
        Some(Timestamp(i64::try_from(self.number(0)?.saturating_mul(1_000)).ok()?))
    }

    /// Its age, seconds; `None` if there was never one.
    pub fn age_seconds(&self) -> Option<u64> {
        Some(now_seconds().saturating_sub(self.number(0)?))
    }

    /// The last Record that it has; `None` if there was never one.
    pub fn through(&self) -> Option<u64> {
        self.number(1)
    }

    fn number(&self, place: usize) -> Option<u64> {
        fs::read_to_string(&self.0).ok()?.split_whitespace().nth(place)?.parse().ok()
    }
}

impl Collector for LastBackup {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(age) = self.age_seconds() else { return Ok(()) };
        let gauge = ConstGauge::new(age);
        let help = "Age of the last backup; absent where there was none";
        gauge.encode(encoder.encode_descriptor("centavo_backup_age_seconds", help, None, gauge.metric_type())?)
    }
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_noted_where_there_is_no_data_directory_yet() {
        let folder = tempfile::tempdir().unwrap();
        let last = LastBackup::of(&folder.path().join("data"));
        assert_eq!((last.taken_at(), last.through()), (None, None));
        last.note(7);
        assert_eq!(last.through(), Some(7));
        assert!(last.age_seconds().is_some());
    }
}
