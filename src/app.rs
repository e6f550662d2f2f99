//! Shared state of the handlers of both APIs: the engine, credentials, limits, and the work under
//! way.

use std::sync::Arc;

use actors::engine::Engine;
use books::export::jobs::ExportJobs;
use derived::seal::stocked_random_bytes;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::DisputeWindows;
use parking_lot::RwLock;
use rails::sandbox::Institutions;
use tokio::sync::{Semaphore, watch};

use crate::checkpoints::{CheckpointMeasures, CheckpointSchedule};
use crate::last_backup::LastBackup;
use crate::report_limit::ReportLimit;
use nodes::node::Node;
use nodes::work_requests::OthersOverHttp;
use web::credential::OpsTokens;
use web::guards::rate_limit::RateLimits;
use web::guards::wrong_credentials::WrongCredentials;
use web::idempotency::RememberedAnswers;
use web::last_uses::LastUses;
use web::measures::Exposition;
use web::problem::Problem;
use web::session::Sessions;
use webhooks::Webhooks;

/// Shared state of the handlers.
pub struct App {
    /// The engine.
    pub engine: Arc<Engine>,
    /// This process as a node; none where it has all partitions.
    pub node: Option<Arc<Node>>,
    /// The other nodes; none where it has all partitions.
    pub others: Option<Arc<OthersOverHttp>>,
    /// Tokens of the operators. Replaced when they are read again.
    pub ops_tokens: RwLock<OpsTokens>,
    /// True when money is fake and the clock can be moved.
    pub sandbox: bool,
    /// How often a caller may ask; none when that is switched off.
    pub rate_limits: Option<RateLimits>,
    /// How long after its payment a charge can be disputed.
    pub disputes: DisputeWindows,
    /// When each API key was last used.
    pub last_uses: LastUses,
    /// The wrong credentials that came.
    pub wrong_credentials: WrongCredentials,
    /// Held while a merchant is opened or changed: one at a time.
    pub opening: tokio::sync::Mutex<()>,
    /// Taken while a backup is read: one at a time.
    pub backing_up: Arc<Semaphore>,
    /// When a backup was last made.
    pub last_backup: LastBackup,
    /// Taken while an export is made: one at a time.
    pub exporting: Arc<Semaphore>,
    /// One permit: one answer about books of the past at a time.
    pub reading_past: Arc<Semaphore>,
    /// Exports that are made in the background.
    pub export_jobs: Arc<ExportJobs>,
    /// Taken while a file is compared with the books: one at a time.
    pub reconciling: Arc<Semaphore>,
    /// Taken while a request waits for an event.
    pub event_waits: Semaphore,
    /// True when the server stops.
    pub ending: watch::Receiver<bool>,
    /// The simulated institutions; none where they are others' or where money is real.
    pub institutions: Option<Arc<Institutions>>,
    /// Where checkpoints are sent, and how often; none when they are not.
    pub checkpoints: Option<CheckpointSchedule>,
    /// Metrics of the checkpoints that are sent.
    pub checkpoint_measures: CheckpointMeasures,
    /// The reports that are being made.
    pub reporting: ReportLimit,
    /// The metrics.
    pub exposition: Exposition,
    /// Delivery of webhooks: endpoints and their progress.
    pub webhooks: Arc<Webhooks>,
    /// Answers of the last redeliveries that had an idempotency key.
    pub redelivered: RememberedAnswers,
    /// The operators who are signed in to the console.
    pub sessions: Arc<Sessions>,
}

impl App {
    /// Random bits for an id.
    pub fn random(&self) -> Result<u64, Problem> {
        Ok(u64::from_le_bytes(stocked_random_bytes()?))
    }

    /// A new id of a group.
    pub fn new_id(&self, group: GroupNumber) -> Result<ObjectId, Problem> {
        Ok(self.engine.new_id(group)?)
    }
}
