//! Blocking reads of history, on threads of their own. A closed segment or a page of the index is
//! read from the disk, which must not block the workers of the runtime.

use std::panic::resume_unwind;

use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::request_context::spawn_blocking;

/// Most reads under way at once, each with a thread of its own; further reads wait for their turn.
const READS_MAX: usize = 64;

static READS: Semaphore = Semaphore::const_new(READS_MAX);

/// Lets the handler of a GET run on such a thread. (Others decide and write: they wait only where
/// they look something up.)
pub async fn on_waiting_thread(request: Request, next: Next) -> Response {
    if request.method() != Method::GET {
        return next.run(request).await;
    }
    let turn = READS.acquire().await.expect("nobody closes it");
    let runtime = Handle::current();
    let read = spawn_blocking(move || {
        let _until_it_is_read = turn;
        runtime.block_on(next.run(request))
    });
    match read.await {
        Ok(response) => response,
        Err(ended) => resume_unwind(ended.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    /// With one worker: a read that waits for the disk, and another request beside it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_read_that_waits_keeps_nobody_from_being_served() {
        let (disk, waiting) = channel();
        let waiting: Arc<Mutex<Receiver<()>>> = Arc::new(Mutex::new(waiting));
        let (begun, begins) = tokio::sync::oneshot::channel();
        let begun = Arc::new(Mutex::new(Some(begun)));
        let slow = move || async move {
            begun.lock().unwrap().take().unwrap().send(()).unwrap();
            waiting.lock().unwrap().recv_timeout(Duration::from_secs(60)).expect("the other request was not served");
            "page"
        };
        let app = Router::new().route("/slow", get(slow)).layer(from_fn(on_waiting_thread));
        let app = app.route("/quick", get(|| async { "quick" }));
        let ask = |path: &str| {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            tokio::spawn(app.clone().oneshot(request))
        };
        let read = ask("/slow");
        begins.await.unwrap();
        assert!(ask("/quick").await.unwrap().unwrap().status().is_success());
        disk.send(()).unwrap();
        assert!(read.await.unwrap().unwrap().status().is_success());
    }
}
