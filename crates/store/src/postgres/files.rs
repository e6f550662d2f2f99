//! Files, cut into parts. A file is replaced in one transaction, so a reader sees the one before or
//! this one, whole.

use std::io::{self, Write};

use super::link::{Link, QueryResult, Trouble};
use super::{PostgresStore, StoreParts};
use crate::{Partition, Result, StoreError, Tenure, WriteBytes};

/// A file has a row of the database for each so many bytes of it.
const PART_BYTES: usize = 1 << 20;

const LOCK_OWNER: &str = "SELECT id FROM partition WHERE id = $1 AND epoch = $2 FOR SHARE";
const REMOVE: &str = "DELETE FROM file WHERE partition = $1 AND name = $2";
const INSERT: &str = "INSERT INTO file (partition, name, part, bytes) VALUES ($1, $2, $3, $4)";
const PARTS: &str = "SELECT part, substr(bytes, greatest($4 - part::bigint * $6 + 1, 1)::int,
        least($5 - greatest(part::bigint * $6, $4), $6)::int)
    FROM file WHERE partition = $1 AND name = $2 AND part BETWEEN $3 AND ($5 - 1) / $6 ORDER BY part";
const IS_THERE: &str = "SELECT 1 FROM file WHERE partition = $1 AND name = $2 AND part = 0";
const LIST: &str =
    "SELECT name, sum(octet_length(bytes))::bigint FROM file WHERE partition = $1 GROUP BY name ORDER BY name";

impl StoreParts {
    /// Replaces a file by what `write` writes, or removes it. Returns the size.
    pub(super) fn replace_file(&self, tenure: Tenure, name: &str, write: Option<WriteBytes<'_>>) -> Result<u64> {
        self.admit(tenure)?;
        let _one_at_a_time = self.filing.lock();
        let written = self.replace_in_transaction(tenure, name, write);
        match &written {
            // What is half done must not stay open on the connection.
            Err(_) => self.wait(self.files.close()),
            Ok(None) => self.fenced(tenure),
            Ok(Some(_)) => {}
        }
        written?.ok_or(StoreError::Fenced { partition: tenure.partition })
    }

    /// None if the tenure has ended.
    fn replace_in_transaction(&self, tenure: Tenure, name: &str, write: Option<WriteBytes<'_>>) -> Result<Option<u64>> {
        let (id, epoch) = (i32::from(tenure.partition.0), tenure.epoch.0 as i64);
        let link = self.wait(self.files.link()).map_err(|trouble| self.unwritten(trouble))?;
        let is_owner = self.file_step(&link, async |link| {
            link.run("BEGIN").await?;
            let owner = link.row(LOCK_OWNER, &[&id, &epoch]).await?;
            link.rows(REMOVE, &[&id, &name]).await?;
            Ok(owner.is_some())
        })?;
        if !is_owner {
            self.file_step(&link, async |link| link.run("ROLLBACK").await)?;
            return Ok(None);
        }
        let (bytes, failure) = (Vec::new(), None);
        let mut parts = Parts { store: self, link: &link, id, name, number: 0, bytes, written: 0, failure };
        if let Some(write) = write {
            let written = write(&mut parts).and_then(|()| parts.insert());
            if let Some(failure) = parts.failure.take() {
                return Err(failure);
            }
            written.map_err(|source| StoreError::Machine { folder: name.into(), source })?;
        }
        let written = parts.written;
        self.file_step(&link, async |link| link.run("COMMIT").await)?;
        Ok(Some(written))
    }

    /// One step of a file's transaction. A connection that was lost in between is an error.
    fn file_step<T>(&self, link: &Link, work: impl AsyncFn(&Link) -> QueryResult<T>) -> Result<T> {
        self.wait(self.files.on(link, &work)).map_err(|trouble| self.unwritten(trouble))
    }

    fn unwritten(&self, trouble: Trouble) -> StoreError {
        self.monitor.derived_failed();
        let (Trouble::Passing(detail) | Trouble::Lasting(detail)) = trouble;
        StoreError::Unavailable { place: self.files.place().to_owned(), detail }
    }
}

/// Writes the bytes of a file as parts.
struct Parts<'a> {
    store: &'a StoreParts,
    link: &'a Link,
    id: i32,
    name: &'a str,
    number: i32,
    bytes: Vec<u8>,
    written: u64,
    failure: Option<StoreError>,
}

impl Parts<'_> {
    /// Inserts the bytes that were gathered. The first part is there also when it is empty.
    fn insert(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() && self.number > 0 {
            return Ok(());
        }
        let (id, name, number, bytes) = (self.id, self.name, self.number, &self.bytes);
        let inserted =
            self.store.file_step(self.link, async |link| link.rows(INSERT, &[&id, &name, &number, bytes]).await);
        if let Err(error) = inserted {
            self.failure = Some(error);
            return Err(io::Error::other("the database took no part of the file"));
        }
        self.number += 1;
        self.bytes.clear();
        Ok(())
    }
}

impl Write for Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PART_BYTES - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.written += taken as u64;
        if self.bytes.len() == PART_BYTES {
            self.insert()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl PostgresStore {
    pub(super) fn part_of_file(
        &self,
        partition: Partition,
        name: &str,
        offset: u64,
        length: usize,
    ) -> Result<Option<Vec<u8>>> {
        let (id, part_bytes) = (i32::from(partition.0), PART_BYTES as i64);
        let from = i64::try_from(offset).unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
        let to = from.saturating_add(i64::try_from(length).unwrap_or(i64::MAX / 2)).max(from + 1);
        let first = i32::try_from(from / part_bytes).unwrap_or(i32::MAX);
        let rows = self.read(async |link| {
            let rows = link.rows(PARTS, &[&id, &name, &first, &from, &to, &part_bytes]).await?;
            // The end of a file, or no file.
            let is_there = !rows.is_empty() || link.row(IS_THERE, &[&id, &name]).await?.is_some();
            Ok(is_there.then_some(rows))
        })?;
        let Some(rows) = rows else { return Ok(None) };
        let mut bytes: Vec<u8> = rows.iter().flat_map(|row| row.get::<_, &[u8]>(1).iter().copied()).collect();
        bytes.truncate(length);
        Ok(Some(bytes))
    }

    pub(super) fn list_files(&self, partition: Partition) -> Result<Vec<(String, u64)>> {
        let id = i32::from(partition.0);
        let rows = self.read(async |link| link.rows(LIST, &[&id]).await)?;
        Ok(rows.iter().map(|row| (row.get(0), row.get::<_, i64>(1) as u64)).collect())
    }
}
