//! Tables of the store, and their versions. They are made and changed forward only, by one process
//! at a time.

use super::link::{Line, Link, QueryResult, SCHEMA};
use crate::{Result, StoreError};

/// Statements that lead from one version to the next, from an empty schema on.
const VERSIONS: [&str; 1] = [VERSION_1];

/// ```text
/// common     values on which all users agree: sealed keys, stamps; first writer wins
/// partition  who may write a partition: its owner and epoch; locked in share by every write of it
/// node       the processes, and a number that each one counts up while it lives; the address at
///            which others reach it, null where it serves all partitions or waits for them; whether
///            it hands its partitions over to end; the takeover time that it counts on
/// block      one row a block, insert only: its place, its hash and the one before it
/// chunk      the bytes of the blocks, cut as in `chunk.rs`; insert only
/// state      the state area (area 0) and the cursors (area 1)
/// file       files, cut into parts
/// ```
///
/// A partition is born with a block that ends where its first one begins. A chunk fits one page, so
/// it is stored plain; a part of a file is stored outside of its row, so that a piece of it is read
/// without the rest.
const VERSION_1: &str = "
    CREATE TABLE common (key bytea PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE partition (id int PRIMARY KEY, epoch bigint NOT NULL, owner text);
    CREATE TABLE node (id text PRIMARY KEY, beat bigint NOT NULL, about text NOT NULL, beaten_at timestamptz NOT NULL,
        address text, leaving boolean NOT NULL DEFAULT false, takeover_ms bigint NOT NULL);
    CREATE TABLE block (partition int NOT NULL, first bigint NOT NULL, next bigint NOT NULL, epoch bigint NOT NULL,
        booked_at_ms bigint NOT NULL, previous bytea NOT NULL, hash bytea NOT NULL, PRIMARY KEY (partition, first));
    CREATE TABLE chunk (key bytea PRIMARY KEY, value bytea NOT NULL);
    ALTER TABLE chunk ALTER COLUMN key SET STORAGE PLAIN, ALTER COLUMN value SET STORAGE PLAIN;
    CREATE TABLE state (partition int NOT NULL, area int NOT NULL, key bytea NOT NULL, value bytea NOT NULL,
        PRIMARY KEY (partition, area, key));
    CREATE TABLE file (partition int NOT NULL, name text COLLATE \"C\" NOT NULL, part int NOT NULL, bytes bytea NOT NULL,
        PRIMARY KEY (partition, name, part));
    ALTER TABLE file ALTER COLUMN bytes SET STORAGE EXTERNAL;
";

/// Key of the lock under which tables are made: any number that no one else uses.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7167217110116)";

/// Makes the tables.
pub(super) async fn migrate(line: &Line) -> Result<()> {
    let found = line.try_once(async |link| version(link).await).await?;
    if found == Some(VERSIONS.len()) {
        return Ok(());
    }
    let migrated = line.try_once(async |link| {
        link.run("BEGIN").await?;
        link.run(LOCK).await?;
        link.run(&format!("CREATE SCHEMA IF NOT EXISTS {SCHEMA}")).await?;
        link.run(&format!("CREATE TABLE IF NOT EXISTS {SCHEMA}.version (number int NOT NULL)")).await?;
        let found = version(link).await?.unwrap_or_default();
        for statements in VERSIONS.iter().skip(found) {
            link.run(statements).await?;
        }
        if found < VERSIONS.len() {
            link.run(&format!("DELETE FROM version; INSERT INTO version VALUES ({})", VERSIONS.len())).await?;
        }
        link.run("COMMIT").await?;
        Ok(found)
    });
    admit(line, Some(migrated.await?)).map(drop)
}

/// Fails where there are no tables, or those of a newer release.
pub(super) async fn require(line: &Line) -> Result<()> {
    let found = line.try_once(async |link| version(link).await).await?;
    let found = admit(line, found)?;
    match found.is_some_and(|found| found > 0) {
        true => Ok(()),
        false => Err(StoreError::NoStore { folder: line.place().into() }),
    }
}

fn admit(line: &Line, found: Option<usize>) -> Result<Option<usize>> {
    let found_is_newer = found.is_some_and(|found| found > VERSIONS.len());
    let newer = |found: usize| StoreError::NewerFormat {
        folder: line.place().into(),
        found: u8::try_from(found).unwrap_or(u8::MAX),
        known: VERSIONS.len() as u8,
    };
    if found_is_newer { Err(newer(found.unwrap_or_default())) } else { Ok(found) }
}

/// The version of the tables; `None` if there are none.
async fn version(link: &Link) -> QueryResult<Option<usize>> {
    let there = link.row("SELECT to_regclass('centavo.version') IS NOT NULL", &[]).await?;
    if !there.is_some_and(|row| row.get(0)) {
        return Ok(None);
    }
    let row = link.row("SELECT number FROM centavo.version", &[]).await?;
    Ok(Some(row.map_or(0, |row| usize::try_from(row.get::<_, i32>(0)).unwrap_or_default())))
}
