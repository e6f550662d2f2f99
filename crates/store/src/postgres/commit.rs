//! Commit of blocks, and the change of a partition's owner.
//!
//! Every write of a partition locks the partition's row in share, at the epoch of the writer. A
//! take changes that row, so it waits for the writes under way, and those after it find another
//! epoch and write nothing. PostgreSQL reads the row anew when it got the lock, so there is no
//! moment between the two at which a former owner's write gets in.
//!
//! After a lost answer the same block is handed in again. It is found where it stands, or written
//! now. The second attempt locks the row too, so its own commit is one that a standby confirms, and
//! with it everything before.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::lease::Lease;
use super::link::{Line, Link, QueryResult};
use crate::{AppendOutcome, Block, BlockHash, Epoch, Head, Partition, Result, Sequence, StoreError, Tenure, chunk};

/// Writes a block and its chunks, if the epoch is the partition's, and the block follows the last
/// one. Returns whether each was so.
const COMMIT: &str = "
    WITH owner AS MATERIALIZED (SELECT id FROM partition WHERE id = $1 AND epoch = $2 FOR SHARE),
    won AS (INSERT INTO block (partition, first, next, epoch, booked_at_ms, previous, hash)
        SELECT owner.id, $3, $4, $2, $5, $6, $7 FROM owner
        WHERE ($3::bigint, $6::bytea, true) = (SELECT b.next, b.hash, b.booked_at_ms <= $5 FROM block b
            WHERE b.partition = $1 AND b.first < $3 ORDER BY b.first DESC LIMIT 1)
        ON CONFLICT DO NOTHING RETURNING partition),
    put AS (INSERT INTO chunk (key, value)
        SELECT c.key, c.value FROM won, unnest($8::bytea[], $9::bytea[]) AS c(key, value))
    SELECT (SELECT count(*) FROM owner) > 0, (SELECT count(*) FROM won) > 0";

/// The same for the blocks of several partitions, each for itself.
const COMMIT_SEVERAL: &str = "
    WITH asked AS MATERIALIZED (SELECT * FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
        $6::bytea[], $7::bytea[]) AS a(partition, epoch, first, next, booked_at_ms, previous, hash)),
    owner AS MATERIALIZED (SELECT a.* FROM asked a JOIN partition p ON p.id = a.partition AND p.epoch = a.epoch
        ORDER BY p.id FOR SHARE OF p),
    won AS (INSERT INTO block (partition, first, next, epoch, booked_at_ms, previous, hash)
        SELECT a.partition, a.first, a.next, a.epoch, a.booked_at_ms, a.previous, a.hash
        FROM owner a
        WHERE (a.first, a.previous, true) = (SELECT b.next, b.hash, b.booked_at_ms <= a.booked_at_ms FROM block b
            WHERE b.partition = a.partition AND b.first < a.first ORDER BY b.first DESC LIMIT 1)
        ON CONFLICT DO NOTHING RETURNING partition),
    put AS (INSERT INTO chunk (key, value)
        SELECT c.key, c.value FROM unnest($8::int[], $9::bytea[], $10::bytea[]) AS c(partition, key, value)
        JOIN won ON won.partition = c.partition)
    SELECT a.partition, owner.partition IS NOT NULL, won.partition IS NOT NULL
    FROM asked a LEFT JOIN owner ON owner.partition = a.partition LEFT JOIN won ON won.partition = a.partition";

const HASH_AT: &str = "SELECT hash FROM block WHERE partition = $1 AND first = $2";

const HEAD: &str = "SELECT next, hash, booked_at_ms FROM block WHERE partition = $1 ORDER BY first DESC LIMIT 1";

/// The heads of several partitions. It locks their rows, so that its own commit waits for the
/// standby: its answer is not lost with the primary.
const HEADS: &str = "
    WITH asked AS (SELECT * FROM unnest($1::int[]) WITH ORDINALITY AS a(id, place)),
    held AS MATERIALIZED (SELECT p.id FROM partition p JOIN asked USING (id) ORDER BY p.id FOR SHARE OF p)
    SELECT h.next, h.hash, h.booked_at_ms FROM asked LEFT JOIN LATERAL
        (SELECT b.next, b.hash, b.booked_at_ms FROM block b WHERE b.partition = asked.id
            ORDER BY b.first DESC LIMIT 1) h ON true
        WHERE (SELECT count(*) FROM held) >= 0 ORDER BY asked.place";

/// Makes a partition that nobody had, with the block that ends where its first one begins.
const TAKE_NEW: &str = "
    WITH born AS (INSERT INTO partition (id, epoch, owner) VALUES ($1, 1, $2) ON CONFLICT DO NOTHING RETURNING id),
    origin AS (INSERT INTO block (partition, first, next, epoch, booked_at_ms, previous, hash)
        SELECT id, 0, 1, 0, (-9223372036854775808)::bigint, '', decode(repeat('00', 32), 'hex') FROM born)
    SELECT id FROM born";

const TAKE: &str = "UPDATE partition SET owner = $2, epoch = epoch + 1 WHERE id = $1 AND epoch = $3 RETURNING id";

/// The same, as long as the owner's beat has not moved. Its row is locked, so a
/// beat that is under way comes before this, or finds the new epoch.
const TAKE_FROM_GONE: &str = "
    WITH gone AS MATERIALIZED (SELECT n.id FROM partition p JOIN node n ON n.id = p.owner
        WHERE p.id = $1 AND p.epoch = $3 AND n.beat = $4 FOR UPDATE OF n)
    UPDATE partition SET owner = $2, epoch = epoch + 1
        WHERE id = $1 AND epoch = $3 AND EXISTS (SELECT FROM gone) RETURNING id";

const OWNER: &str = "SELECT owner, epoch FROM partition WHERE id = $1";

const RELEASE: &str = "UPDATE partition SET owner = NULL WHERE id = $1 AND epoch = $2";

/// Ends the sessions of a former owner, one of which may hold the partition's row.
const END_SESSIONS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid()";

/// What one attempt came to.
enum Attempt {
    Won,
    /// The block was there already.
    Found,
    /// The epoch has ended.
    Fenced,
    /// It does not follow the head.
    Refused(Head),
}

impl Attempt {
    /// What is known of a block that the statement did or did not write.
    async fn of(link: &Link, block: &Block, hash: BlockHash, (is_owner, is_won): (bool, bool)) -> QueryResult<Self> {
        if is_won {
            return Ok(Attempt::Won);
        }
        if hash_at(link, block).await? == Some(hash) {
            return Ok(Attempt::Found);
        }
        Ok(if is_owner { Attempt::Refused(head(link, block.partition).await?) } else { Attempt::Fenced })
    }

    fn landed(self, line: &Line, block: &Block, hash: BlockHash) -> Result<AppendOutcome> {
        match self {
            Attempt::Won | Attempt::Found => Ok(AppendOutcome::Durable(hash)),
            Attempt::Fenced => Ok(AppendOutcome::Fenced),
            Attempt::Refused(head) => {
                head.admit(block)?;
                // The head matches the block, and yet the block was not written.
                let detail = "a block was not written".to_owned();
                Err(StoreError::Refused { place: line.place().to_owned(), detail })
            }
        }
    }
}

/// Blocks that were not simply written.
#[derive(Debug, Default)]
pub(super) struct CommitTroubles {
    /// Refused: another owner had taken the partition.
    pub(super) fenced: AtomicU64,
    /// Asked for again, since no answer had come.
    pub(super) unknown: AtomicU64,
}

impl CommitTroubles {
    /// Counts the blocks of the second and every later try of one commit.
    fn tries(&self, try_before: &AtomicBool, blocks: usize) {
        if try_before.swap(true, Ordering::Relaxed) {
            self.unknown.fetch_add(blocks as u64, Ordering::Relaxed);
        }
    }
}

/// Makes blocks of different partitions durable. Waits as long as the database is away.
pub(super) async fn append(
    line: &Line,
    troubles: &CommitTroubles,
    blocks: &[(Tenure, &Block)],
) -> Result<Vec<AppendOutcome>> {
    // What a store can't keep is refused first; the place in the journal is for the database.
    for (_, block) in blocks {
        Head { next: block.first, hash: block.previous, booked_at_ms: block.booked_at_ms }.admit(block)?;
    }
    let is_owned =
        |(tenure, block): &(Tenure, &Block)| block.partition == tenure.partition && tenure.epoch != Epoch::NONE;
    if blocks.len() > 1 && blocks.iter().all(is_owned) {
        return append_several(line, troubles, blocks).await;
    }
    let mut landed = Vec::with_capacity(blocks.len());
    for (tenure, block) in blocks {
        landed.push(append_one(line, troubles, *tenure, block).await?);
    }
    Ok(landed)
}

async fn append_one(line: &Line, troubles: &CommitTroubles, tenure: Tenure, block: &Block) -> Result<AppendOutcome> {
    let (hash, booked_at_ms) = (block.hash(), block.booked_at_ms);
    if block.partition != tenure.partition || tenure.epoch == Epoch::NONE {
        let there = line.until(None, async |link| hash_at(link, block).await).await?;
        return Ok(if there == Some(hash) { AppendOutcome::Durable(hash) } else { AppendOutcome::Fenced });
    }
    let chunks = chunk::cut(block, hash);
    let keys: Vec<_> = chunks.iter().map(|(key, _)| key.to_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(<[u8; _]>::as_slice).collect();
    let values: Vec<&[u8]> = chunks.iter().map(|(_, value)| value.as_slice()).collect();
    let (id, epoch) = (i32::from(block.partition.0), tenure.epoch.0 as i64);
    let (first, next) = (block.first.0 as i64, block.next().0 as i64);
    let (previous, hash_bytes) = (block.previous.0.as_slice(), hash.0.as_slice());
    let is_tried = AtomicBool::new(false);
    let attempt = line.until(None, async |link| {
        troubles.tries(&is_tried, 1);
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 9] =
            [&id, &epoch, &first, &next, &booked_at_ms, &previous, &hash_bytes, &keys, &values];
        let row = link.row(COMMIT, &parameters).await?;
        let known = row.map_or((false, false), |row| (row.get(0), row.get(1)));
        Attempt::of(link, block, hash, known).await
    });
    attempt.await?.landed(line, block, hash)
}

async fn append_several(
    line: &Line,
    troubles: &CommitTroubles,
    blocks: &[(Tenure, &Block)],
) -> Result<Vec<AppendOutcome>> {
    let hashes: Vec<BlockHash> = blocks.iter().map(|(_, block)| block.hash()).collect();
    let chunks = blocks.iter().zip(&hashes).flat_map(|((_, block), hash)| {
        let chunks = chunk::cut(block, *hash).into_iter();
        chunks.map(|(key, value)| (i32::from(block.partition.0), key.to_bytes(), value))
    });
    let chunks: Vec<_> = chunks.collect();
    let owners: Vec<i32> = chunks.iter().map(|(owner, ..)| *owner).collect();
    let keys: Vec<&[u8]> = chunks.iter().map(|(_, key, _)| key.as_slice()).collect();
    let values: Vec<&[u8]> = chunks.iter().map(|(.., value)| value.as_slice()).collect();
    let ids: Vec<i32> = blocks.iter().map(|(_, block)| i32::from(block.partition.0)).collect();
    let epochs: Vec<i64> = blocks.iter().map(|(tenure, _)| tenure.epoch.0 as i64).collect();
    let firsts: Vec<i64> = blocks.iter().map(|(_, block)| block.first.0 as i64).collect();
    let nexts: Vec<i64> = blocks.iter().map(|(_, block)| block.next().0 as i64).collect();
    let booked_at_ms: Vec<i64> = blocks.iter().map(|(_, block)| block.booked_at_ms).collect();
    let previous: Vec<&[u8]> = blocks.iter().map(|(_, block)| block.previous.0.as_slice()).collect();
    let hash_bytes: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
    let is_tried = AtomicBool::new(false);
    let attempts = line.until(None, async |link| {
        troubles.tries(&is_tried, blocks.len());
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 10] =
            [&ids, &epochs, &firsts, &nexts, &booked_at_ms, &previous, &hash_bytes, &owners, &keys, &values];
        let rows = link.rows(COMMIT_SEVERAL, &parameters).await?;
        let mut attempts = Vec::with_capacity(blocks.len());
        for ((id, (_, block)), hash) in ids.iter().zip(blocks).zip(&hashes) {
            let row = rows.iter().find(|row| row.get::<_, i32>(0) == *id);
            let known = row.map_or((false, false), |row| (row.get(1), row.get(2)));
            attempts.push(Attempt::of(link, block, *hash, known).await?);
        }
        Ok(attempts)
    });
    let attempts = attempts.await?.into_iter().zip(blocks).zip(hashes);
    attempts.map(|((attempt, (_, block)), hash)| attempt.landed(line, block, hash)).collect()
}

async fn hash_at(link: &Link, block: &Block) -> QueryResult<Option<BlockHash>> {
    let row = link.row(HASH_AT, &[&i32::from(block.partition.0), &(block.first.0 as i64)]).await?;
    Ok(row.and_then(|row| row.get::<_, &[u8]>(0).try_into().ok()).map(BlockHash))
}

/// The head of a partition.
pub(super) async fn head(link: &Link, partition: Partition) -> QueryResult<Head> {
    let row = link.row(HEAD, &[&i32::from(partition.0)]).await?;
    Ok(row.map_or(Head::EMPTY, |row| head_in(&row)))
}

/// The head in a row; that of an empty journal where the row has none.
fn head_in(row: &tokio_postgres::Row) -> Head {
    row.get::<_, Option<i64>>(0).map_or(Head::EMPTY, |next| Head {
        next: Sequence(next as u64),
        hash: BlockHash(row.get::<_, &[u8]>(1).try_into().unwrap_or_default()),
        booked_at_ms: row.get(2),
    })
}

/// The heads of several partitions, in the order asked.
pub(super) async fn heads(link: &Link, ids: &[i32]) -> QueryResult<Vec<Head>> {
    Ok(link.rows(HEADS, &[&ids]).await?.iter().map(head_in).collect())
}

/// The epoch of a partition.
pub(super) async fn epoch(link: &Link, partition: Partition) -> QueryResult<Epoch> {
    Ok(owner(link, partition).await?.map_or(Epoch::NONE, |(_, epoch)| epoch))
}

async fn owner(link: &Link, partition: Partition) -> QueryResult<Option<(Option<String>, Epoch)>> {
    let row = link.row(OWNER, &[&i32::from(partition.0)]).await?;
    Ok(row.map(|row| (row.get(0), Epoch(row.get::<_, i64>(1) as u64))))
}

/// Takes a partition whose epoch is still `seen`, and whose owner's beat is still `gone`, if one is
/// given. A session of the former owner that holds the partition's row is ended.
pub(super) async fn take(
    line: &Line,
    lease: &Lease,
    tenure: Tenure,
    gone: Option<i64>,
    patience: Duration,
) -> Result<Option<Tenure>> {
    lease.asks(tenure.partition);
    let taken = ask(line, lease, tenure, gone, patience).await;
    lease.note_take(tenure, taken.as_ref().ok().copied());
    Ok(taken?.then_some(tenure))
}

async fn ask(line: &Line, lease: &Lease, tenure: Tenure, gone: Option<i64>, patience: Duration) -> Result<bool> {
    let (id, process, seen) = (i32::from(tenure.partition.0), lease.process(), tenure.epoch.0 as i64 - 1);
    let taken = line.until(Some(patience), async |link| {
        let before = owner(link, tenure.partition).await?;
        let former = before.as_ref().and_then(|(owner, _)| owner.clone()).filter(|owner| owner != process);
        // An earlier attempt whose answer was lost.
        if before == Some((Some(process.to_owned()), tenure.epoch))
            && lease.epoch(tenure.partition) != Some(tenure.epoch)
            && !lease.is_given_up(tenure)
        {
            return Ok(true);
        }
        let taken = match gone {
            _ if seen == 0 => link.row(TAKE_NEW, &[&id, &process]).await,
            Some(beat) => link.row(TAKE_FROM_GONE, &[&id, &process, &seen, &beat]).await,
            None => link.row(TAKE, &[&id, &process, &seen]).await,
        };
        let is_held = taken.as_ref().is_err_and(|error| error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE));
        if let Some(former) = former.filter(|_| is_held || taken.as_ref().is_ok_and(Option::is_some)) {
            // A role that may not end them waits until they have ended.
            let _ended = link.rows(END_SESSIONS, &[&former]).await;
        }
        Ok(taken?.is_some())
    });
    taken.await
}

/// Gives a partition up, so that the next process need not wait until this one is known to be gone.
pub(super) async fn release(line: &Line, tenure: Tenure) -> Result<()> {
    let (id, epoch) = (i32::from(tenure.partition.0), tenure.epoch.0 as i64);
    line.try_once(async |link| link.rows(RELEASE, &[&id, &epoch]).await).await.map(drop)
}
