//! State area and cursors. What is put lazily waits in memory for 0.4 s, and is written
//! together with all else that was put, in one transaction: none of it is there without the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{PostgresStore, StoreParts};
use crate::{Epoch, Partition, Result, STATE_KEY_BYTES_MAX, StoreError, Tenure};

/// Time after which what was put lazily is written.
const AFTER: Duration = Duration::from_millis(400);

/// Bytes that may wait; whoever puts more writes them.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Part of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Area {
    State = 0,
    Cursors = 1,
}

/// One statement writes all values and removals of a tenure.
const WRITE: &str = "
    WITH owner AS MATERIALIZED (SELECT id FROM partition WHERE id = $1 AND epoch = $2 FOR SHARE),
    put AS (INSERT INTO state (partition, area, key, value)
        SELECT owner.id, v.area, v.key, v.value FROM owner, unnest($3::int[], $4::bytea[], $5::bytea[]) AS v(area, key, value)
        ON CONFLICT (partition, area, key) DO UPDATE SET value = excluded.value),
    gone AS (DELETE FROM state s USING owner, unnest($6::int[], $7::bytea[]) AS g(area, key)
        WHERE s.partition = owner.id AND s.area = g.area AND s.key = g.key)
    SELECT count(*) > 0 FROM owner";

const VALUES: &str = "SELECT asked.n, s.value FROM unnest($3::bytea[]) WITH ORDINALITY AS asked(key, n)
    JOIN state s ON s.partition = $1 AND s.area = $2 AND s.key = asked.key";

const KEYS: &str = "SELECT key FROM state WHERE partition = $1 AND area = $2 AND key >= $3 AND key < $4
    ORDER BY key";

type Place = (Partition, Area, Vec<u8>);

/// A value that waits to be written; `None` if it is removed.
#[derive(Debug, Clone)]
struct WaitingWrite {
    epoch: Epoch,
    number: u64,
    value: Option<Arc<[u8]>>,
}

/// What was put and is not written yet.
#[derive(Debug, Default)]
pub(super) struct StateWrites {
    pending: Mutex<Pending>,
    changed: Condvar,
    /// Held while it is written.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct Pending {
    values: BTreeMap<Place, WaitingWrite>,
    bytes: usize,
    puts: u64,
    since: Option<Instant>,
    is_over: bool,
}

impl StateWrites {
    fn value(&self, place: &Place) -> Option<Option<Arc<[u8]>>> {
        self.pending.lock().values.get(place).map(|waiting| waiting.value.clone())
    }
}

impl StoreParts {
    /// Puts a value, or removes it. It is written when this returns, if it is to be durable.
    pub(super) fn put(
        &self,
        tenure: Tenure,
        area: Area,
        key: &[u8],
        value: Option<&[u8]>,
        is_durable: bool,
    ) -> Result<()> {
        self.admit(tenure)?;
        let is_full = {
            let mut pending = self.waiting.pending.lock();
            pending.puts += 1;
            pending.bytes += key.len() + value.map_or(0, <[u8]>::len);
            let waiting = WaitingWrite { epoch: tenure.epoch, number: pending.puts, value: value.map(Into::into) };
            pending.values.insert((tenure.partition, area, key.to_vec()), waiting);
            pending.since.get_or_insert_with(Instant::now);
            pending.bytes > WAITING_BYTES_MAX
        };
        self.waiting.changed.notify_all();
        if is_durable {
            return self.write_waiting(Some(tenure));
        }
        if is_full {
            // A lazy write that fails stops nothing: it is tried again.
            let _tried_again = self.write_waiting(Some(tenure)).inspect_err(|_| self.monitor.derived_failed());
        }
        Ok(())
    }

    /// Writes all that waits.
    pub(super) fn flush(&self) -> Result<()> {
        self.write_waiting(None)
    }

    /// Writes all that waits. Fails with `asking` being fenced, or the database being away.
    fn write_waiting(&self, asking: Option<Tenure>) -> Result<()> {
        let _one_at_a_time = self.waiting.writing.lock();
        let taken: BTreeMap<Place, WaitingWrite> = {
            let mut pending = self.waiting.pending.lock();
            pending.since = None;
            pending.bytes = 0;
            pending.values.clone()
        };
        let mut by_tenure: BTreeMap<(Partition, Epoch), Vec<(&Place, &WaitingWrite)>> = BTreeMap::new();
        for (place, waiting) in &taken {
            by_tenure.entry((place.0, waiting.epoch)).or_default().push((place, waiting));
        }
        let mut outcome = Ok(());
        for ((partition, epoch), values) in by_tenure {
            let tenure = Tenure { partition, epoch };
            match self.write_values(tenure, &values) {
                Ok(is_owner) => {
                    self.forget_written(&values);
                    if !is_owner {
                        self.fenced(tenure);
                        outcome = outcome.and(match asking == Some(tenure) {
                            true => Err(StoreError::Fenced { partition }),
                            false => Ok(()),
                        });
                    }
                }
                Err(error) => {
                    self.waiting.pending.lock().since.get_or_insert_with(Instant::now);
                    outcome = outcome.and(Err(error));
                }
            }
        }
        outcome
    }

    fn forget_written(&self, values: &[(&Place, &WaitingWrite)]) {
        let mut pending = self.waiting.pending.lock();
        for (place, written) in values {
            if pending.values.get(*place).is_some_and(|waiting| waiting.number == written.number) {
                pending.values.remove(*place);
            }
        }
    }

    /// False if the tenure has ended: nothing was written then.
    fn write_values(&self, tenure: Tenure, values: &[(&Place, &WaitingWrite)]) -> Result<bool> {
        let (id, epoch) = (i32::from(tenure.partition.0), tenure.epoch.0 as i64);
        let (mut put, mut gone) = ((Vec::new(), Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        for ((_, area, key), waiting) in values {
            match &waiting.value {
                Some(value) => {
                    put.0.push(*area as i32);
                    put.1.push(key.as_slice());
                    put.2.push(&**value);
                }
                None => {
                    gone.0.push(*area as i32);
                    gone.1.push(key.as_slice());
                }
            }
        }
        let row =
            self.write(async |link| link.row(WRITE, &[&id, &epoch, &put.0, &put.1, &put.2, &gone.0, &gone.1]).await)?;
        Ok(row.is_some_and(|row| row.get(0)))
    }

    fn run_write_behind(&self) {
        loop {
            let is_over = {
                let mut pending = self.waiting.pending.lock();
                while !pending.is_over {
                    match pending.since.map(|since| since + AFTER) {
                        None => self.waiting.changed.wait(&mut pending),
                        Some(due) if Instant::now() < due => drop(self.waiting.changed.wait_until(&mut pending, due)),
                        Some(_) => break,
                    }
                }
                pending.is_over
            };
            if let Err(error) = self.write_waiting(None) {
                self.monitor.derived_failed();
                tracing::error!(%error, "what was put lazily is not written; it is tried again");
            }
            if is_over {
                return;
            }
        }
    }

    /// Starts the thread that writes what was put lazily.
    pub(super) fn start_write_behind(self: &Arc<Self>) -> Result<JoinHandle<()>> {
        let parts = Arc::clone(self);
        let thread = std::thread::Builder::new().name("state".to_owned()).spawn(move || parts.run_write_behind());
        thread.map_err(|source| StoreError::Machine { folder: "state".into(), source })
    }

    /// Lets the thread write what is left, and end.
    pub(super) fn end_write_behind(&self) {
        self.waiting.pending.lock().is_over = true;
        self.waiting.changed.notify_all();
    }
}

impl PostgresStore {
    pub(super) fn values(&self, partition: Partition, area: Area, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values: Vec<Option<Option<Vec<u8>>>> = keys
            .iter()
            .map(|key| self.parts.waiting.value(&(partition, area, key.to_vec())))
            .map(|waiting| waiting.map(|value| value.map(|value| value.to_vec())))
            .collect();
        if values.iter().any(Option::is_none) {
            let (id, number, keys) = (i32::from(partition.0), area as i32, keys.to_vec());
            let rows = self.read(async |link| link.rows(VALUES, &[&id, &number, &keys]).await)?;
            for row in rows {
                let at = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or_default();
                values[at].get_or_insert_with(|| Some(row.get(1)));
            }
        }
        Ok(values.into_iter().map(Option::flatten).collect())
    }

    pub(super) fn keys(&self, partition: Partition, area: Area, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        // What waits is looked at first: whatever is written meanwhile is found in the table.
        let waiting: Vec<_> = {
            let pending = self.parts.waiting.pending.lock();
            let own = pending
                .values
                .iter()
                .filter(|((owner, place, key), _)| (*owner, *place) == (partition, area) && key.starts_with(prefix));
            own.map(|((_, _, key), waiting)| (key.clone(), waiting.value.is_some())).collect()
        };
        let (id, number) = (i32::from(partition.0), area as i32);
        // No key with the prefix is as long as this one, so all of them come before it.
        let above = [prefix, &[u8::MAX; STATE_KEY_BYTES_MAX + 1]].concat();
        let rows = self.read(async |link| link.rows(KEYS, &[&id, &number, &prefix, &above]).await)?;
        let mut keys: BTreeSet<Vec<u8>> = rows.iter().map(|row| row.get(0)).collect();
        for (key, is_there) in waiting {
            if is_there {
                keys.insert(key)
            } else {
                keys.remove(&key)
            };
        }
        Ok(keys.into_iter().collect())
    }
}
