//! Request context for the log: the request's id. It is not sent on.
//!
//! It is a task-local. The whole task of the handler has it, also after the caller has hung up.
//! Threads and tasks that a handler starts have it when they are started through
//! [`spawn_blocking`], [`in_this_request`] or [`RequestContext::around`]. It is no span of
//! `tracing`: a task-local costs a request a few nanoseconds, a span several hundred.

use std::future::Future;

use axum::http::HeaderValue;
use tokio::task::JoinHandle;
use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static REQUEST: RequestContext;
}

/// Request context: the request's id, visible ASCII.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The caller's id, or one made here.
    pub id: HeaderValue,
}

impl RequestContext {
    /// Does all of `work` in the name of this request.
    pub fn around<F: Future>(self, work: F) -> TaskLocalFuture<Self, F> {
        REQUEST.scope(self, work)
    }

    /// The same, at once.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        REQUEST.sync_scope(self.clone(), work)
    }

    /// The request that is being handled here, if there is one.
    pub fn own() -> Option<Self> {
        REQUEST.try_with(Clone::clone).ok()
    }

    /// Shows the request that is being handled here, if there is one.
    pub fn current(show: impl FnOnce(&Self)) {
        let _outside_of_requests = REQUEST.try_with(show);
    }

    /// The id as text.
    pub fn id(&self) -> &str {
        self.id.to_str().unwrap_or_default()
    }
}

/// Work for another thread, in the name of the request that is being handled here.
pub fn in_this_request<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let request = RequestContext::own();
    move || match request {
        Some(request) => request.during(work),
        None => work(),
    }
}

/// Does work that may block on a thread of its own, in the name of the request that is being
/// handled here.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(in_this_request(work))
}
