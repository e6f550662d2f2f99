//! Backup of the journal while the server runs, and the time of the last one.

use std::time::Duration;

use actors::backup::write_magic;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use store::Sequence;
use store::cut::Cut;
use tokio::time::{Instant, timeout};
use utoipa::ToSchema;

use crate::{Admin, Desk, DeskState, Operator};
use web::streamed_body::{ReadPace, streamed, turn};
use web::{Result, number, ok, query, refused, single, time};

/// What a backup lacks that has all before `from`, in the frames of a backup's files, through the
/// heads of this moment. With `wait`, it waits for a Record from `from` on, of any partition, so
/// that a copy can keep up; with `wait=0` the caller checks or formats what it gets. Without a time
/// to wait it pauses while there are commands. Two at a time: a check of the whole journal delays
/// no backup. It waits for the caller in a thread of its own, with a few parts in memory; nobody
/// else waits for it.
#[utoipa::path(get, path = "/ops/backup", operation_id = "get_backup", params(("from" = Option<String>, Query, description = "The first Record that is lacking; of each partition where there are several, as `0=43,1=18`, and of one that is not named all. Everything when absent.", example = "1"),
        ("wait" = Option<u64>, Query, minimum = 0, maximum = 20, description = "Seconds to wait for such a Record. An answer to a request with it, 0 too, does not count for `centavo_backup_age_seconds`. Without it, and with 0, the answer pauses while there are commands.", example = 0)),
    responses((status = 200, body = String, content_type = "application/octet-stream")))]
pub async fn backup(State(desk): DeskState, _: Admin, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let from = lacking(&pairs, &desk.engine.published())?;
    let wait = number(&pairs, "wait", 0..=20)?;
    wait_for(&desk, &from, Duration::from_secs(wait.unwrap_or_default())).await;
    let turn = turn(&desk.backing_up, "Other backups are under way.").await?;
    let body = streamed("a backup", move |mut out| {
        let _until_it_ends = turn;
        write_magic(&mut out)?;
        let mut pace = match wait {
            None => Some(ReadPace::new(&desk.engine)),
            Some(0) => Some(ReadPace::of_caller(&desk.engine)),
            // A copy that follows has to keep up.
            Some(_) => None,
        };
        // The copy has everything through the head of its begin, and perhaps more.
        let through = desk.engine.records_published();
        for frame in desk.engine.backup(&from)? {
            out.write_all(&frame?.to_bytes()?)?;
            pace.iter_mut().for_each(ReadPace::step);
        }
        out.flush()?;
        // A follower polls all the time, also while the hourly backups fail.
        if wait.is_none() {
            desk.last_backup.note(through);
        }
        Ok(())
    });
    Ok(([(CONTENT_TYPE, "application/octet-stream")], body).into_response())
}

/// The last backup.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct LastBackupView {
    /// When it was taken, by the clock of the machine; absent where there was never one.
    taken_at: Option<String>,
    /// The last Record that it has; absent where there was never one.
    through: Option<u64>,
}

/// When the last backup was taken, and the last Record in it. Backups by `GET /ops/backup` without
/// `wait` count, and those by `centavo backup` of this data directory.
#[utoipa::path(get, path = "/ops/backups/last", operation_id = "get_last_backup",
    responses((status = 200, body = LastBackupView), (status = 400)))]
pub async fn last(State(desk): DeskState, _: Operator) -> Result<Response> {
    let (taken_at, through) = (desk.last_backup.taken_at().map(time), desk.last_backup.through());
    Ok(ok(LastBackupView { taken_at, through }))
}

/// How often a waiting request looks for new Records.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// The Records that are lacking from, as `from` names them.
fn lacking(pairs: &[(String, String)], published: &Cut) -> Result<Cut> {
    let Some(text) = single(pairs, "from")? else { return Ok(published.begin()) };
    if !text.contains('=') {
        let first = number(pairs, "from", 1..=u64::MAX)?.unwrap_or(1);
        return Ok(Cut::new(vec![Sequence(first)]));
    }
    let from = text.parse::<Cut>().ok().filter(|from| from.partitions() <= published.partitions());
    let form = || format!("from deve ter o primeiro registro que falta de cada partição, como em {published}");
    from.ok_or_else(|| refused("from", "invalid_cut", form()))
}

/// Whether there is one of the Records that are lacking.
fn is_there(published: &Cut, from: &Cut) -> bool {
    published.iter().any(|at| at.sequence >= from.of(at.partition).max(Sequence::FIRST))
}

/// Waits until there is one of these Records, a time has passed, or the server stops.
async fn wait_for(desk: &Desk, from: &Cut, wait: Duration) {
    let (deadline, mut ending) = (Instant::now() + wait, desk.ending.clone());
    while !is_there(&desk.engine.published(), from) && Instant::now() < deadline {
        if timeout(LOOKS_EVERY, ending.wait_for(|ends| *ends)).await.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(last: &[u64]) -> Cut {
        Cut::new(last.iter().copied().map(Sequence).collect())
    }

    fn asked(from: &str, published: &Cut) -> Option<Cut> {
        lacking(&[("from".to_owned(), from.to_owned())], published).ok()
    }

    #[test]
    fn from_names_what_is_lacking_first_of_each_partition() {
        let (one, three) = (cut(&[42]), cut(&[42, 0, 17]));
        assert_eq!(lacking(&[], &three).unwrap(), cut(&[0, 0, 0]));
        assert_eq!((asked("43", &one), asked("0=43", &one)), (Some(cut(&[43])), Some(cut(&[43]))));
        assert_eq!(asked("0=43,1=1,2=18", &three), Some(cut(&[43, 1, 18])));
        // A backup that was made before there were more partitions names those that it knows.
        assert_eq!((asked("43", &three), asked("0=43,1=2", &three)), (Some(cut(&[43])), Some(cut(&[43, 2]))));
        for wrong in ["", "x", "0", "-1", "0=x", "1=4", "0=1,2=1", "0=1,1=1,2=1,3=1"] {
            assert_eq!(asked(wrong, &three), None, "{wrong}");
        }
    }

    #[test]
    fn a_record_of_any_partition_is_waited_for() {
        let from = cut(&[43, 1, 18]);
        assert!(!is_there(&cut(&[42, 0, 17]), &from));
        for come in [[43, 0, 17], [42, 1, 17], [42, 0, 18]] {
            assert!(is_there(&cut(&come), &from), "{come:?}");
        }
        assert!(is_there(&cut(&[42, 0, 17]), &cut(&[43])), "what is not named is lacking");
        assert!(!is_there(&cut(&[0, 0]), &cut(&[0, 0])), "there is nothing yet");
    }
}
