//! Trial balance after a Record of the past, as a job: read in the background, one at a time, with
//! its progress, and kept by its cut.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use store::Sequence;
use store::cut::Cut;
use tokio::time::timeout;
use utoipa::ToSchema;
use wire::cut_text::{CutView, by_partition};

use crate::app::App;
use crate::http::caller::PathId;
use crate::http::problem::{Code, Problem};
use crate::http::reply::{ok, only, query};
use crate::ops::books::{AccountRow, rows_of};
use crate::ops::operator::Operator;
use crate::past_books::PastReading;

/// How long a request waits for the end of a job.
const PATIENCE: Duration = Duration::from_millis(300);

/// The sums of all ledgers by account after a Record, or how far they are read.
#[derive(Debug, Serialize, ToSchema)]
pub struct PastTrialBalance {
    /// The last Record counted, by partition of the journal.
    #[schema(value_type = BTreeMap<String, u64>, example = json!({"0": 42}))]
    cut: CutView,
    /// `queued` while other books of the past are read, `reading`, or `done`.
    #[schema(pattern = "^(queued|reading|done)$")]
    status: &'static str,
    /// Records and accounts that are read; present while reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    read: Option<u64>,
    /// Records and accounts that there are; present while reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    of: Option<u64>,
    /// True when debits equal credits, in every ledger; present when done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    balanced: Option<bool>,
    /// The sums by account; present when done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    accounts: Option<Vec<AccountRow>>,
}

/// The trial balance by account after a Record, read in the background.
///
/// The first request begins the job. While it waits for its turn or reads, the answer is 202 with
/// the progress; ask again. The sums are kept by their cut, so a later request has them at once.
/// `GET /ops/trial-balance?by=account&at=` has the same sums and waits for them.
#[utoipa::path(get, path = "/ops/trial-balance/{cut}", operation_id = "get_past_trial_balance",
    params(("cut" = String, Path, pattern = "^([1-9][0-9]{0,18}|0=[0-9]{1,18}(,[0-9]{1,5}=[0-9]{1,18})*)$", example = "1", description = "The last Records that count, `0=42` with commas between partitions, or `42` where there is one.")),
    responses((status = 200, body = PastTrialBalance), (status = 202, body = PastTrialBalance), (status = 400)))]
pub async fn past(
    State(app): State<Arc<App>>,
    _: Operator,
    PathId(cut): PathId,
    parts: Parts,
) -> Result<Response, Problem> {
    only(&query(&parts)?, &[])?;
    let published = app.engine.published();
    let cut: Option<Cut> = match published.partitions() {
        1 if !cut.contains('=') => cut.parse().ok().map(|last| Cut::new(vec![Sequence(last)])),
        _ => cut.parse().ok().filter(|cut: &Cut| cut.partitions() == published.partitions()),
    };
    let cut = cut.filter(|cut| !cut.is_empty() && cut.is_within(&published));
    let cut = cut.ok_or_else(|| Problem::new(Code::NotFound))?;
    let mut job = app.past_books.ask(&app.engine, &cut)?;
    let _over_or_not_yet = timeout(PATIENCE, job.wait_for(PastReading::is_over)).await.map(drop);
    let reading = job.borrow().clone();
    let view = PastTrialBalance {
        cut: by_partition(&cut),
        status: "queued",
        read: None,
        of: None,
        balanced: None,
        accounts: None,
    };
    let view = match reading {
        PastReading::Failed(problem) => return Err(problem),
        PastReading::Done(sums) => {
            let (balanced, accounts) = (Some(sums.is_balanced), Some(rows_of(&sums)));
            return Ok(ok(PastTrialBalance { status: "done", balanced, accounts, ..view }));
        }
        PastReading::Waits => view,
        PastReading::Reads { read, of } => {
            PastTrialBalance { status: "reading", read: Some(read), of: Some(of), ..view }
        }
    };
    Ok((StatusCode::ACCEPTED, [(RETRY_AFTER, "1")], Json(view)).into_response())
}
