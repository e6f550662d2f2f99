//! Growth of a store: partitions are added, for the accounts that are opened from now on. Accounts
//! that are there stay where they are, since a Record never moves.
//!
//! All partitions are held meanwhile, so nobody opens an account. The journal is read once, for the
//! last group and for the requests of the last day that opened accounts: a retry of one is answered
//! by the partition that knows it ([`Extents::opened_before`]).
//!
//! A process that takes a partition later reads the stored extent. An earlier owner is fenced.
//! So the extent counts only if the partitions were still held after it was stored.

use std::num::NonZeroU16;

use ledger::record::IDEMPOTENCY_KEPT_MS;
use ledger::{Event, Fingerprint, GroupNumber, Record};

use derived::extents::{ExtentError, Extents, HOUSE, OpenedAccounts};
use derived::heads::Heads;
use derived::records::LoadError;
use store::{Part, Partition, Sequence, StoreError};

/// Groups that are left to the partitions before: a retry may come when its key was just forgotten,
/// and open another account there.
const SPARE_GROUPS: u32 = 1_024;

/// Why a store does not grow.
#[derive(Debug, thiserror::Error)]
pub enum GrowthError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A Record cannot be read.
    #[error("partition {}: {error}", partition.0)]
    Load {
        /// Its partition.
        partition: Partition,
        /// What is wrong.
        error: LoadError,
    },
    /// The extents do not fit.
    #[error(transparent)]
    Extents(#[from] ExtentError),
    /// It would lose partitions.
    #[error("the store has {has} partitions already, and none can be taken away")]
    Fewer {
        /// Partitions that it has.
        has: u32,
    },
    /// They would be too many.
    #[error("a store has {most} partitions at most")]
    TooMany {
        /// How many it can have.
        most: u16,
    },
    /// Another process added partitions at the same time.
    #[error("another process added partitions at the same time")]
    Overtaken,
    /// The partitions were lost meanwhile.
    #[error("the partitions were not held to the end: stop all processes of this store, and run the command again")]
    NotHeld,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Growth {
    /// The extents from now on.
    pub extents: Extents,
    /// How many partitions were added; 0 if the store had as many before.
    pub added: u16,
    /// Records that were read.
    pub records: u64,
}

/// Lets a store have `wanted` partitions in all, at most `most`. `parts` are those that it
/// has, all of them, held by this process. Calls `progress` with the number of Records that were
/// read, and their total.
///
/// Repeating it does no harm: a store with as many partitions stays as it is.
pub fn grow(
    parts: &[Part],
    wanted: NonZeroU16,
    most: u16,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Growth, GrowthError> {
    let store = parts[0].store();
    let before = Extents::of(&**store)?;
    let (has, wanted) = (before.partitions(), u32::from(wanted.get()));
    if wanted < has {
        return Err(GrowthError::Fewer { has });
    }
    if wanted > u32::from(most) {
        return Err(GrowthError::TooMany { most });
    }
    if wanted == has {
        return Ok(Growth { extents: before, added: 0, records: 0 });
    }
    let seen = JournalFacts::of(parts, progress)?;
    let from = GroupNumber(seen.last.0.saturating_add(1 + SPARE_GROUPS));
    let added = u16::try_from(wanted - has).map_err(|_| ExtentError::TooMany)?;
    let extents = before.grown_after(seen.opened, from, added)?;
    if extents.keep(&**store)? != extents {
        return Err(GrowthError::Overtaken);
    }
    if !parts.iter().all(|part| part.store().is_current()) {
        return Err(GrowthError::NotHeld);
    }
    Ok(Growth { extents, added, records: seen.records })
}

/// Facts from the journal.
struct JournalFacts {
    /// The last group that was given.
    last: GroupNumber,
    opened: OpenedAccounts,
    records: u64,
}

impl JournalFacts {
    fn of(parts: &[Part], progress: &mut dyn FnMut(u64, u64)) -> Result<Self, GrowthError> {
        let total = Heads::of_parts(parts)?.records();
        let newest = parts.iter().map(|part| part.head().map(|head| head.booked_at_ms));
        let newest = newest.collect::<Result<Vec<_>, _>>()?.into_iter().max().unwrap_or_default();
        let mut seen = Self { last: HOUSE, opened: OpenedAccounts::new(), records: 0 };
        for part in parts {
            for block in part.blocks(Sequence::FIRST) {
                let block = block?;
                for (sequence, bytes) in (block.first.0..).zip(&block.records) {
                    let failed = |error| LoadError::Decode { sequence, error };
                    let load = |error| GrowthError::Load { partition: part.partition(), error };
                    let record = Record::decode(bytes).map_err(failed).map_err(load)?;
                    seen.last = seen.last.max(record.owner.group().unwrap_or(HOUSE));
                    let is_kept = newest.saturating_sub(record.effective_at.0) < IDEMPOTENCY_KEPT_MS;
                    if let Some(key) = opening_key(&record).filter(|_| is_kept) {
                        seen.opened.insert(key, (record.effective_at, part.partition()));
                    }
                }
                seen.records += block.records.len() as u64;
                progress(seen.records, total);
            }
        }
        Ok(seen)
    }
}

/// The idempotency key of the request that opened an account by this Record.
fn opening_key(record: &Record) -> Option<Fingerprint> {
    let is_opening = record.events.iter().any(|event| matches!(event, Event::MerchantOpened { .. }));
    record.idempotency.filter(|_| is_opening).map(|idempotency| idempotency.key)
}
