//! State of the merchants' handlers.

use std::sync::Arc;

use actors::engine::Engine;
use axum::extract::State;
use books::export::jobs::ExportJobs;
use ledger::merchant::DisputeWindows;
use rails::sandbox::Institutions;
use tokio::sync::{Semaphore, watch};
use web::guards::rate_limit::RateLimits;
use web::guards::wrong_credentials::WrongCredentials;
use web::idempotency::RememberedAnswers;
use web::last_uses::LastUses;
use webhooks::Webhooks;

use crate::api::report_limit::ReportLimit;

/// The state as a handler takes it.
pub type AppState = State<Arc<App>>;

/// State of the merchants' handlers.
pub struct App {
    /// The engine.
    pub engine: Arc<Engine>,
    /// True if other processes have partitions of the same store.
    pub is_node: bool,
    /// True if money is fake.
    pub sandbox: bool,
    /// Rate limits; `None` if they are off.
    pub rate_limits: Option<Arc<RateLimits>>,
    /// Days after a payment in which its charge can be disputed.
    pub disputes: DisputeWindows,
    /// Last use of each API key.
    pub last_uses: Arc<LastUses>,
    /// Wrong credentials, for throttling.
    pub wrong_credentials: Arc<WrongCredentials>,
    /// Reports that are made in the background.
    pub export_jobs: Arc<ExportJobs>,
    /// Limit of streamed reports.
    pub reporting: ReportLimit,
    /// Permits of requests that wait for an event.
    pub event_waits: Semaphore,
    /// True once the server stops.
    pub ending: watch::Receiver<bool>,
    /// The simulated institutions; `None` if they are others' or money is real.
    pub institutions: Option<Arc<Institutions>>,
    /// Delivery of webhooks.
    pub webhooks: Arc<Webhooks>,
    /// Answers of the last redeliveries that had an idempotency key.
    pub redelivered: Arc<RememberedAnswers>,
}
