//! Checkpoints on a schedule: a signed statement of what the journal holds is written into a
//! folder, each naming the one before it.
//!
//! The folder is one in the data folder, unless another one is set, which somebody else owns or
//! which cannot be changed. Only a folder outside this installation shows that somebody exchanged
//! the whole data folder. When it does not take a checkpoint, that is logged and counted, and a
//! new one is tried every minute. Commands do not wait for any of this. While nothing is booked,
//! nothing is written.

use std::fs::{File, OpenOptions, create_dir_all, read, rename};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actors::engine::Engine;
use actors::metrics::add;
use derived::checkpoint::Checkpoint;
use derived::records::LoadError;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use store::{Partition, Position};
use tokio::time::sleep;

use web::views::checkpoint::CheckpointView;

/// How soon a folder that took none is tried again.
const RETRY: Duration = Duration::from_secs(60);
/// Name of the last stored checkpoint, from which a restart continues the chain.
const LAST: &str = "checkpoint";

/// The folder of checkpoints in a data folder.
pub const FOLDER: &str = "checkpoints";

/// The setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointSchedule {
    /// The folder: a file for each, `checkpoint-<sequence>.json`.
    pub folder: PathBuf,
    /// True for the folder in the data folder, which is made. Another one must exist.
    pub is_own: bool,
    /// How often.
    pub every: Duration,
}

/// Metrics of what is sent.
#[derive(Clone)]
pub struct CheckpointMeasures {
    sent: Counter,
    failed: Counter,
    sent_at: Gauge,
}

impl CheckpointMeasures {
    /// Metrics in a registry.
    pub fn new(to: &mut Registry) -> Self {
        let sent = "Checkpoints that their place has taken";
        let failed = "Times that a checkpoint could not be made, or its place did not take it";
        let sent_at = "Time of the last checkpoint that its place took, seconds since 1970; 0 before the first";
        Self {
            sent: add(to, "centavo_checkpoints_sent", sent, Counter::default()),
            failed: add(to, "centavo_checkpoint_failures", failed, Counter::default()),
            sent_at: add(to, "centavo_checkpoint_timestamp_seconds", sent_at, Gauge::default()),
        }
    }
}

/// Why no checkpoint was sent.
#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("the journal can't be read: {0}")]
    Load(#[from] LoadError),
    #[error("the folder took none: {0}")]
    Io(#[from] io::Error),
    #[error("the last checkpoint, which is kept in the store, can't be read")]
    Stored,
}

/// Sends checkpoints until it is dropped.
pub async fn keep_sending(engine: Arc<Engine>, schedule: CheckpointSchedule, measures: CheckpointMeasures) {
    loop {
        let pause = match send_next(&engine, &schedule).await {
            Ok(is_sent) => {
                if is_sent {
                    measures.sent.inc();
                    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                    measures.sent_at.set(now.cast_signed());
                }
                schedule.every
            }
            Err(error) => {
                measures.failed.inc();
                tracing::error!(%error, "no checkpoint was sent; it is tried again in a minute");
                RETRY.min(schedule.every)
            }
        };
        sleep(pause).await;
    }
}

/// Makes a checkpoint of each partition that follows its last one, and sends it. False when nothing
/// was booked since.
async fn send_next(engine: &Arc<Engine>, schedule: &CheckpointSchedule) -> Result<bool, SendError> {
    // The process that has the house keeps the chains of all partitions.
    if !engine.serves_house() || !engine.has_all() {
        return Ok(false);
    }
    engine.catch_up().await?;
    let mut is_sent = false;
    for at in engine.published().iter() {
        let (engine, schedule) = (Arc::clone(engine), schedule.clone());
        let sending = tokio::task::spawn_blocking(move || send_next_of(&engine, at.partition, &schedule));
        is_sent |= sending.await.map_err(io::Error::other)??;
    }
    Ok(is_sent)
}

fn send_next_of(engine: &Engine, partition: Partition, schedule: &CheckpointSchedule) -> Result<bool, SendError> {
    let Some((at, line)) = next(engine, partition)? else { return Ok(false) };
    if schedule.is_own {
        create_dir_all(&schedule.folder)?;
    }
    engine.keep(&last_of(partition), &put(&schedule.folder, at, line)?)?;
    Ok(true)
}

/// Name of the last checkpoint of a partition in the store.
fn last_of(partition: Partition) -> String {
    if partition.0 == 0 { LAST.to_owned() } else { format!("{LAST}/{}", partition.0) }
}

/// The next checkpoint of a partition with its place, as a line of JSON; `None` if nothing was
/// booked since.
fn next(engine: &Engine, partition: Partition) -> Result<Option<(Position, Vec<u8>)>, SendError> {
    let last = match engine.side_value(&last_of(partition))? {
        None => None,
        Some(bytes) => {
            let view: Option<CheckpointView> = serde_json::from_slice(&bytes).ok();
            Some(view.and_then(|view| view.read()).ok_or(SendError::Stored)?.checkpoint)
        }
    };
    if last.is_some_and(|last| last.sequence == engine.published().of(partition)) {
        return Ok(None);
    }
    let previous = last.map_or([0; 32], |last| last.digest());
    let Some(signed) = engine.checkpoint(partition, Some(previous))? else { return Ok(None) };
    let mut line = serde_json::to_vec(&CheckpointView::of(&signed)).map_err(io::Error::from)?;
    line.push(b'\n');
    Ok(Some((Position { partition, sequence: signed.checkpoint.sequence }, line)))
}

/// Writes a checkpoint into a folder, whole or not at all, and gives what stands there then. A file
/// that is there already is left as it is: it must say the same. The chain goes on from it where
/// the store lost its last checkpoint.
fn put(folder: &Path, at: Position, line: Vec<u8>) -> io::Result<Vec<u8>> {
    let name = match at {
        Position { partition: Partition(0), sequence } => format!("checkpoint-{:020}", sequence.0),
        Position { partition, sequence } => format!("checkpoint-{:05}-{:020}", partition.0, sequence.0),
    };
    let path = folder.join(format!("{name}.json"));
    match read(&path) {
        Ok(known) if known == line || says(&known).is_some_and(|known| Some(known) == says(&line)) => return Ok(known),
        Ok(_) => return Err(io::Error::other(format!("{} is another checkpoint", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let new = folder.join(format!("{name}.new"));
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).open(&new)?;
    file.write_all(&line)?;
    file.sync_all()?;
    rename(&new, &path)?;
    File::open(folder)?.sync_all()?;
    Ok(line)
}

/// Key of a checkpoint, and what it says of the journal, whichever one it follows; `None` if it is
/// not genuine.
fn says(line: &[u8]) -> Option<([u8; 32], Checkpoint)> {
    let signed = serde_json::from_slice::<CheckpointView>(line).ok()?.read()?;
    signed.is_genuine().then_some((signed.public_key, Checkpoint { previous: None, ..signed.checkpoint }))
}

#[cfg(test)]
mod tests {
    use derived::checkpoint::SignedCheckpoint;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use store::{BlockHash, Sequence};

    use super::*;

    #[test]
    fn a_file_of_a_folder_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let at = |partition| Position { partition: Partition(partition), sequence: Sequence(7) };
        let put = |folder: &Path, at, line: &[u8]| put(folder, at, line.to_vec());
        put(folder.path(), at(0), b"one\n").unwrap();
        put(folder.path(), at(0), b"one\n").unwrap();
        assert!(put(folder.path(), at(0), b"other\n").is_err());
        assert_eq!(read(folder.path().join("checkpoint-00000000000000000007.json")).unwrap(), b"one\n");
        put(folder.path(), at(3), b"of another partition\n").unwrap();
        assert!(put(&folder.path().join("missing"), at(0), b"one\n").is_err(), "no folder is made");
    }

    /// A store that lost its last checkpoint begins a new chain: the file that says the same of the
    /// journal stays, and the chain goes on from it.
    #[test]
    fn a_file_that_says_the_same_is_taken_for_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let at = Position { partition: Partition(0), sequence: Sequence(7) };
        let line = |seed: u8, head: u8, previous: u8| {
            let checkpoint = Checkpoint {
                partition: Partition(0),
                sequence: Sequence(7),
                booked_at_ms: 1,
                head: BlockHash([head; 32]),
                totals: [2; 32],
                previous: Some([previous; 32]),
            };
            let key = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
            let public_key = key.public_key().as_ref().try_into().unwrap();
            let signature = key.sign(checkpoint.text().as_bytes()).as_ref().try_into().unwrap();
            serde_json::to_vec(&CheckpointView::of(&SignedCheckpoint { checkpoint, public_key, signature })).unwrap()
        };
        let first = line(1, 1, 1);
        assert_eq!(put(folder.path(), at, first.clone()).unwrap(), first);
        assert_eq!(put(folder.path(), at, line(1, 1, 0)).unwrap(), first);
        for other in [line(1, 9, 1), line(2, 1, 1)] {
            assert!(put(folder.path(), at, other).is_err());
        }
    }
}
