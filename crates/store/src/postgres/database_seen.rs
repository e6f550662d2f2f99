//! Identity of the database that a process has used, stored in a file of its data folder: the
//! cluster, the timeline, and the head of each partition.
//!
//! A failover that goes wrong may lead back to an older timeline, on which acknowledged Records are
//! missing. A process that starts has forgotten what it saw, so it reads it here: it refuses a
//! database that is behind, and goes on only with an operator's word.
//!
//! ```text
//! centavo database 1
//! system 7301234567890123456
//! timeline 2
//! head 0 55927 <64 hexadecimal digits>      the next Record of a partition, the last block's hash
//! accepted 0=54959                          the last word of an operator
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::link::{Line, Link, QueryResult};
use crate::files::{Files, create_folder, machine};
use crate::{BlockHash, Partition, Result, Sequence, StoreError};

/// The file, in the data folder.
const FILE: &str = "database-seen";
const BEGIN: &str = "centavo database 1";

/// The heads of partitions: the next Record, and the hash of the last block.
pub(super) type SeenHeads = BTreeMap<Partition, (Sequence, BlockHash)>;

/// Where a database stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DatabaseStanding {
    /// Identifier of the cluster; `None` if it may not be read.
    pub(super) system: Option<String>,
    pub(super) timeline: u32,
    pub(super) heads: SeenHeads,
    /// The last loss that an operator accepted.
    pub(super) accepted: Option<String>,
}

/// The file, and what stands in it.
#[derive(Debug)]
pub(super) struct SeenFile {
    folder: PathBuf,
    written: Mutex<DatabaseStanding>,
}

impl SeenFile {
    /// Reads the file of a data folder; nothing was seen where there is none.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let seen = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => DatabaseStanding::default(),
            text => {
                let text = text.map_err(|source| machine(&path, source))?;
                DatabaseStanding::parse(&text).ok_or_else(|| StoreError::Damaged {
                    folder: path,
                    sequence: None,
                    detail: "it does not say what was seen of the database; without it that is not known".to_owned(),
                })?
            }
        };
        Ok(Self { folder: folder.to_path_buf(), written: Mutex::new(seen) })
    }

    /// Notes where the database stands now, if that changed. A failure stops nothing.
    pub(super) fn note(&self, system: Option<String>, timeline: u32, heads: SeenHeads) {
        let mut written = self.written.lock();
        let now = DatabaseStanding { system, timeline, heads, accepted: written.accepted.clone() };
        if now == *written {
            return;
        }
        match self.write(&now) {
            Ok(()) => *written = now,
            Err(error) => tracing::warn!(%error, "what was seen of the database could not be noted"),
        }
    }

    fn write(&self, seen: &DatabaseStanding) -> Result<()> {
        Files::open(create_folder(&self.folder)?)?.put(FILE, seen.to_text().as_bytes())
    }

    /// Refuses a database that is behind what was seen, unless an operator accepts the loss of what
    /// came after these Records. The same word counts once.
    pub(super) async fn admit(
        &self,
        line: &Line,
        link: &Link,
        accepted: Option<&BTreeMap<Partition, Sequence>>,
    ) -> Result<()> {
        let seen = self.written.lock().clone();
        let found = DatabaseStanding {
            system: link.system().map(str::to_owned),
            timeline: link.timeline(),
            heads: heads_of(link).await.map_err(|error| line.failed(error))?,
            accepted: accepted.map(named),
        };
        let is_same_system = found.system == seen.system;
        let is_older = is_same_system && found.timeline != 0 && found.timeline < seen.timeline;
        let mut lost = Vec::new();
        for (&partition, &(next, hash)) in &seen.heads {
            if !is_there(link, partition, next, hash).await.map_err(|error| line.failed(error))? {
                lost.push(partition);
            }
        }
        if !is_older && lost.is_empty() {
            return Ok(());
        }
        let last = found.last_records();
        let covers = |accepted: &BTreeMap<Partition, Sequence>| {
            let of = |records: &BTreeMap<Partition, Sequence>, one: Partition| {
                records.get(&one).copied().unwrap_or(Sequence(0))
            };
            lost.iter().all(|partition| of(accepted, *partition) <= of(&last, *partition))
        };
        if let Some(word) = accepted.filter(|accepted| found.accepted != seen.accepted && covers(accepted)) {
            tracing::warn!(
                after = named(word),
                seen = seen.place(),
                now = found.place(),
                "an operator accepted a loss"
            );
            self.write(&found)?;
            *self.written.lock() = found;
            return Ok(());
        }
        let detail = format!(
            "{} is behind what was acknowledged: it is {}, and {} has seen {}. Do not let it be written: keep the \
             member with the newer timeline (docs/postgresql.md). To go on without what is missing: \
             --accept-loss-after {}",
            link.host(),
            found.place(),
            self.folder.join(FILE).display(),
            seen.place(),
            named(&last),
        );
        Err(StoreError::Behind { place: line.place().to_owned(), detail })
    }
}

impl DatabaseStanding {
    fn to_text(&self) -> String {
        let mut text = format!("{BEGIN}\n");
        let mut add = |line: String| {
            let _a_string_takes_it = writeln!(text, "{line}");
        };
        if let Some(system) = &self.system {
            add(format!("system {system}"));
        }
        add(format!("timeline {}", self.timeline));
        for (partition, (next, hash)) in &self.heads {
            add(format!("head {} {} {hash:?}", partition.0, next.0));
        }
        if let Some(accepted) = &self.accepted {
            add(format!("accepted {accepted}"));
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(BEGIN) {
            return None;
        }
        let mut seen = Self::default();
        for line in lines {
            let words: Vec<_> = line.split(' ').collect();
            match words[..] {
                ["system", system] => seen.system = Some(system.to_owned()),
                ["timeline", timeline] => seen.timeline = timeline.parse().ok()?,
                ["head", partition, next, hash] => {
                    let head = (Sequence(next.parse().ok()?), digits(hash)?);
                    seen.heads.insert(Partition(partition.parse().ok()?), head);
                }
                ["accepted", accepted] => seen.accepted = Some(accepted.to_owned()),
                _ => return None,
            }
        }
        Some(seen)
    }

    fn last_records(&self) -> BTreeMap<Partition, Sequence> {
        self.heads.iter().map(|(partition, (next, _))| (*partition, Sequence(next.0.saturating_sub(1)))).collect()
    }

    /// For people: timeline and last Records.
    fn place(&self) -> String {
        format!("on timeline {}, its last Records {}", self.timeline, named(&self.last_records()))
    }
}

/// The last Record of each partition, such as `0=42,1=17`; `0` of none.
fn named(records: &BTreeMap<Partition, Sequence>) -> String {
    let each: Vec<_> = records.iter().map(|(partition, record)| format!("{}={}", partition.0, record.0)).collect();
    if each.is_empty() { "0".to_owned() } else { each.join(",") }
}

fn digits(hash: &str) -> Option<BlockHash> {
    let byte = |at: usize| u8::from_str_radix(hash.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    bytes.filter(|_| hash.len() == 64)?.try_into().ok().map(BlockHash)
}

const ARE_THERE: &str = "SELECT to_regclass('centavo.block') IS NOT NULL";

/// The last block of each partition that has a Record.
const HEADS: &str = "SELECT p.id, b.next, b.hash FROM partition p CROSS JOIN LATERAL
    (SELECT next, hash FROM block WHERE partition = p.id ORDER BY first DESC LIMIT 1) b WHERE b.next > 1";

const BLOCK_BEFORE: &str =
    "SELECT next, hash FROM block WHERE partition = $1 AND first < $2 ORDER BY first DESC LIMIT 1";

/// The heads of a database; empty if there are no tables.
pub(super) async fn heads_of(link: &Link) -> QueryResult<SeenHeads> {
    if !are_there(link).await? {
        return Ok(SeenHeads::new());
    }
    let hash = |bytes: &[u8]| BlockHash(bytes.try_into().unwrap_or_default());
    let rows = link.rows(HEADS, &[]).await?;
    let head = |row: &tokio_postgres::Row| {
        (Partition(row.get::<_, i32>(0) as u16), (Sequence(row.get::<_, i64>(1) as u64), hash(row.get(2))))
    };
    Ok(rows.iter().map(head).collect())
}

/// Whether the journal of a partition has the block that ends where `next` begins.
async fn is_there(link: &Link, partition: Partition, next: Sequence, hash: BlockHash) -> QueryResult<bool> {
    if !are_there(link).await? {
        return Ok(false);
    }
    let row = link.row(BLOCK_BEFORE, &[&i32::from(partition.0), &(next.0 as i64)]).await?;
    Ok(row.is_some_and(|row| (row.get::<_, i64>(0), row.get::<_, &[u8]>(1)) == (next.0 as i64, hash.0.as_slice())))
}

async fn are_there(link: &Link) -> QueryResult<bool> {
    Ok(link.row(ARE_THERE, &[]).await?.is_some_and(|row| row.get(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_read_as_it_was_written() {
        let heads = [(0, 55_927, 1), (3, 17, 0xfe)];
        let head = |(partition, next, byte)| (Partition(partition), (Sequence(next), BlockHash([byte; 32])));
        let seen = DatabaseStanding {
            system: Some("7301234567890123456".to_owned()),
            timeline: 2,
            heads: heads.into_iter().map(head).collect(),
            accepted: Some("0=54959".to_owned()),
        };
        assert_eq!(DatabaseStanding::parse(&seen.to_text()), Some(seen.clone()));
        assert_eq!(seen.place(), "on timeline 2, its last Records 0=55926,3=16");
        for wrong in ["", "centavo database 2\n", "centavo database 1\nhead 0 1 ab", "centavo database 1\nelse"] {
            assert_eq!(DatabaseStanding::parse(wrong), None, "{wrong}");
        }
    }
}
