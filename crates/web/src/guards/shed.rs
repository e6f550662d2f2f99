//! Shedding of requests: while too many are under way, and while another process may have taken the
//! store.

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::problem::{Code, Problem};

/// When a refused caller may come again.
pub const RETRY_AFTER_SECONDS: u32 = 1;

/// How many requests may be under way.
pub struct RequestLimits {
    /// At any time.
    pub most: usize,
    /// Whether this process may answer: no other one can have taken its store.
    pub is_current: Box<dyn Fn() -> bool + Send + Sync>,
    /// Notified again and again while it is not: requests under way then get an answer. None where
    /// it always is.
    pub lapsed: Option<Arc<Notify>>,
}

/// Paths that are answered also when another process may have taken the store: they show nothing of
/// what is in it.
const OF_THE_PROCESS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The requests under way, and who may answer.
pub struct Shed {
    limits: RequestLimits,
    in_flight: Arc<Semaphore>,
}

impl Shed {
    /// Nothing is under way.
    pub fn new(limits: RequestLimits) -> Self {
        let in_flight = Arc::new(Semaphore::new(limits.most));
        Self { limits, in_flight }
    }

    /// Refuses a request that this process may not answer: 503 `store_unavailable`.
    pub fn check(&self, path: &str) -> Result<(), Problem> {
        if self.may_answer(path) {
            return Ok(());
        }
        Err(Problem::new(Code::StoreUnavailable).retry_after(RETRY_AFTER_SECONDS))
    }

    /// Whether this process may answer a request for this path.
    pub fn may_answer(&self, path: &str) -> bool {
        (self.limits.is_current)() || OF_THE_PROCESS.contains(&path)
    }

    /// A place among the requests under way, if there is one. Without one the answer is
    /// [`refusal`].
    pub fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.in_flight).try_acquire_owned().ok()
    }

    /// Notified again and again while another process may have taken the store.
    pub fn lapsed(&self) -> Option<&Notify> {
        self.limits.lapsed.as_deref()
    }
}

/// The answer when too many requests are under way: 503 `overloaded`.
pub fn refusal() -> Problem {
    Problem::new(Code::Overloaded).retry_after(RETRY_AFTER_SECONDS)
}
