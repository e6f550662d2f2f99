//! State of the operators' handlers.

use std::sync::Arc;

use actors::engine::Engine;
use axum::extract::State;
use books::export::jobs::ExportJobs;
use ledger::{Centavos, DisputeWindows, Object, ObjectId};
use nodes::node::Node;
use nodes::work_requests::OthersOverHttp;
use parking_lot::RwLock;
use rails::sandbox::Institutions;
use tokio::sync::{Semaphore, watch};
use web::credential::OpsTokens;
use web::guards::rate_limit::RateLimits;
use web::guards::wrong_credentials::WrongCredentials;
use web::idempotency::RememberedAnswers;
use web::last_uses::LastUses;
use web::measures::Exposition;
use web::{Result, not_found};
use webhooks::Webhooks;

use crate::last_backup::LastBackup;

/// The state as a handler takes it.
pub type DeskState = State<Arc<Desk>>;

/// State of the operators' handlers.
pub struct Desk {
    /// The engine.
    pub engine: Arc<Engine>,
    /// This process as a node; `None` if it has all partitions.
    pub node: Option<Arc<Node>>,
    /// The other nodes; `None` if this process has all partitions.
    pub others: Option<Arc<OthersOverHttp>>,
    /// Tokens of the operators. Replaced when they are read again.
    pub ops_tokens: RwLock<OpsTokens>,
    /// True if money is fake and the clock can be moved.
    pub sandbox: bool,
    /// Rate limits of merchants; `None` if they are off.
    pub rate_limits: Option<Arc<RateLimits>>,
    /// Days after a payment in which its charge can be disputed.
    pub disputes: DisputeWindows,
    /// Amount above which a refund or withdrawal takes two operators, centavos; `None` if one is
    /// enough.
    pub second_operator_above: Option<Centavos>,
    /// Months for which personal data is stored after the month in which it was sealed.
    pub retention_months: u32,
    /// Company whose books these are, one line for reports; `None` if no setting says it.
    pub company: Option<String>,
    /// Last use of each API key.
    pub last_uses: Arc<LastUses>,
    /// Wrong credentials, for throttling.
    pub wrong_credentials: Arc<WrongCredentials>,
    /// Lock for opening or changing a merchant: one at a time.
    pub opening: tokio::sync::Mutex<()>,
    /// A permit for each backup at a time.
    pub backing_up: Arc<Semaphore>,
    /// Time of the last backup.
    pub last_backup: LastBackup,
    /// One permit: one streamed export or report at a time.
    pub exporting: Arc<Semaphore>,
    /// One permit: one answer about books of the past at a time.
    pub reading_past: Arc<Semaphore>,
    /// Exports that are made in the background.
    pub export_jobs: Arc<ExportJobs>,
    /// One permit: one reconciliation at a time.
    pub reconciling: Arc<Semaphore>,
    /// True once the server stops.
    pub ending: watch::Receiver<bool>,
    /// The simulated institutions; `None` if they are others' or money is real.
    pub institutions: Option<Arc<Institutions>>,
    /// The metrics.
    pub exposition: Exposition,
    /// Delivery of webhooks.
    pub webhooks: Arc<Webhooks>,
    /// Answers of the last redeliveries that had an idempotency key.
    pub redelivered: Arc<RememberedAnswers>,
}

impl Desk {
    /// The object of an id in a path. Error: 404 when there is none.
    pub fn named<T: Object>(&self, id: &str) -> Result<T> {
        let found = ObjectId::parse(id).map(|id| self.engine.object(id)).transpose()?.flatten();
        found.ok_or_else(not_found)
    }
}
