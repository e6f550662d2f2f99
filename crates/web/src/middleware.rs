//! Middleware of every route: request id, panics, problem bodies, common headers.
//!
//! It gives each request an id, refuses it at once when too many are under way, catches a panic of
//! its handler, writes the body of a [`Problem`], and adds the common headers. It never cancels a
//! handler: a command that was sent can't be taken back, and its caller needs the answer.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::MatchedPath;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use axum::response::{IntoResponse, Response};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tower::{Layer, Service};

use super::guards::request_head;
use super::guards::shed::{self, RETRY_AFTER_SECONDS, RequestLimits, Shed};
use super::measures::Measures;
use super::names::with_ignored;
use super::problem::{Code, Problem};
use super::request_context::RequestContext;

/// The version of the interface that every response names: the day since which no change has
/// broken a caller.
pub const API_VERSION: &str = "2026-11-29";

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const API_VERSION_HEADER: HeaderName = HeaderName::from_static("api-version");
const X_SANDBOX: HeaderName = HeaderName::from_static("x-sandbox");
const REQUEST_ID_LEN_MAX: usize = 128;

/// Middleware of every route, as a tower layer.
#[derive(Clone)]
pub struct Middleware(Arc<MiddlewareState>);

struct MiddlewareState {
    sandbox: bool,
    shed: Shed,
    ids: RequestIds,
    measures: Measures,
}

impl Middleware {
    /// Middleware with a limit of requests under way; it says in headers whether this is the
    /// sandbox.
    ///
    /// Fails only when the system has no randomness for the ids.
    pub fn new(limits: RequestLimits, sandbox: bool, measures: Measures) -> Result<Self, getrandom::Error> {
        let ids = RequestIds { origin: getrandom::u64()?, next: AtomicU64::new(0) };
        Ok(Middleware(Arc::new(MiddlewareState { sandbox, shed: Shed::new(limits), ids, measures })))
    }

    /// The answer to a request that is not let in: it is made before the request is routed, or its
    /// body read.
    pub fn turned_away<B>(&self, request: &Request<B>) -> Option<Response> {
        let is_well_formed = request_head::check(request.version(), request.headers());
        let problem = is_well_formed.and_then(|()| self.0.shed.check(request.uri().path())).err()?;
        let seen = RequestFacts::by(request, self.0.ids.of(request.headers()));
        Some(self.0.finished(seen, problem.into_response()))
    }

    /// The router with this middleware, and with problems for unknown paths and methods.
    pub fn before(self, router: Router) -> Router {
        router
            .fallback(unknown_address)
            .method_not_allowed_fallback(|| async { Problem::new(Code::MethodNotAllowed) })
            .layer(self)
    }
}

/// The answer to an address that no route has. A slash too many is named, since it is easily
/// overlooked.
async fn unknown_address(uri: Uri) -> Problem {
    let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
    let plain = format!("/{}", parts.join("/"));
    if plain == uri.path() {
        return Problem::new(Code::NotFound);
    }
    let detail = format!("No address has a slash at its end or two in a row. Without them this one is {plain}.");
    Problem::new(Code::NotFound).message("Endereço com barra a mais").detail(detail)
}

impl MiddlewareState {
    /// Holds an answer back that may be out of date. A command may have been carried out.
    fn held_back(&self, seen: &RequestFacts, response: Response) -> Response {
        if self.shed.may_answer(seen.uri.path()) {
            return response;
        }
        unanswered(&seen.method)
    }

    /// Writes an answer's problem, measures it and stamps it.
    fn finished(&self, seen: RequestFacts, response: Response) -> Response {
        let (route, took) = (seen.matched.as_ref(), seen.since.elapsed());
        self.measures.answered(route, &seen.method, response.status(), took);
        seen.stamp(response, self.sandbox)
    }
}

impl<S> Layer<S> for Middleware {
    type Service = MiddlewareService<S>;

    fn layer(&self, inner: S) -> MiddlewareService<S> {
        MiddlewareService { middleware: self.clone(), inner }
    }
}

/// A service behind a [`Middleware`].
#[derive(Clone)]
pub struct MiddlewareService<S> {
    middleware: Middleware,
    inner: S,
}

impl<S> Service<Request<Body>> for MiddlewareService<S>
where
    S: Service<Request<Body>, Response = Response>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let middleware = Arc::clone(&self.middleware.0);
        let seen = RequestFacts::by(&request, middleware.ids.of(request.headers()));
        let context = seen.context.clone();
        let admitted = middleware.shed.enter().map(|place| {
            let handling = catch_unwind(AssertUnwindSafe(|| self.inner.call(request)));
            handling.map(|handling| {
                // It gives the place back when it is done, whoever still waits for it.
                DetachedHandler::new(context.around(async move {
                    let _place = place;
                    with_ignored(handling).await
                }))
            })
        });
        Box::pin(async move {
            let response = match admitted {
                Some(Ok(handling)) => tokio::select! {
                    handled = handling => match handled {
                        Ok(handled) => handled?,
                        Err(_panicked) => Problem::new(Code::Internal).into_response(),
                    },
                    // The handler goes on without its caller.
                    () = lapsed(middleware.shed.lapsed()) => unanswered(&seen.method),
                },
                Some(Err(_panicked)) => Problem::new(Code::Internal).into_response(),
                None => shed::refusal().into_response(),
            };
            let response = middleware.held_back(&seen, response);
            Ok(middleware.finished(seen, response))
        })
    }
}

/// The answer instead of one that may be out of date, or did not come.
pub fn unanswered(method: &Method) -> Response {
    let code = if method.is_safe() { Code::StoreUnavailable } else { Code::OutcomeUnknown };
    Problem::new(code).retry_after(RETRY_AFTER_SECONDS).into_response()
}

/// Waits until this process may answer no more.
async fn lapsed(lapsed: Option<&Notify>) {
    match lapsed {
        Some(lapsed) => lapsed.notified().await,
        None => std::future::pending().await,
    }
}

/// Future of a handler that outlives its caller: when a caller hangs up and it is dropped
/// unfinished, it goes on as a task of its own. Gives the output of the handler, or the value of
/// its panic.
struct DetachedHandler<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> DetachedHandler<T> {
    fn new(handling: impl Future<Output = T> + Send + 'static) -> Self {
        DetachedHandler(Some(Box::pin(handling)))
    }
}

impl<T: Send + 'static> Future for DetachedHandler<T> {
    type Output = Result<T, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let handling = self.0.as_mut().expect("a future is not polled after its end");
        let ended = match catch_unwind(AssertUnwindSafe(|| handling.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(handled)) => Ok(handled),
            Err(panicked) => Err(panicked),
        };
        self.0 = None;
        Poll::Ready(ended)
    }
}

impl<T: Send + 'static> Drop for DetachedHandler<T> {
    fn drop(&mut self) {
        // Without a runtime the process is at its end, and nothing goes on.
        if let (Some(handling), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(handling);
        }
    }
}

/// Part of a request that its response still needs.
struct RequestFacts {
    context: RequestContext,
    method: Method,
    uri: Uri,
    matched: Option<MatchedPath>,
    since: Instant,
}

impl RequestFacts {
    fn by<B>(request: &Request<B>, context: RequestContext) -> Self {
        RequestFacts {
            context,
            method: request.method().clone(),
            uri: request.uri().clone(),
            matched: request.extensions().get::<MatchedPath>().cloned(),
            since: Instant::now(),
        }
    }

    fn stamp(self, mut response: Response, sandbox: bool) -> Response {
        if let Some(problem) = response.extensions_mut().remove::<Problem>() {
            let body = problem.render(self.uri.path(), self.context.id());
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
            *response.body_mut() = if self.method == Method::HEAD { Body::empty() } else { Body::from(body) };
        }
        let path = self.matched.as_ref().map_or("", MatchedPath::as_str);
        let micros = self.since.elapsed().as_micros() as u64;
        let status = response.status().as_u16();
        if tracing::enabled!(tracing::Level::DEBUG) {
            let method = &self.method;
            self.context.during(|| tracing::debug!(%method, path, status, micros, "answered"));
        }
        let headers = response.headers_mut();
        headers.insert(X_REQUEST_ID, self.context.id);
        headers.insert(API_VERSION_HEADER, HeaderValue::from_static(API_VERSION));
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if sandbox {
            headers.insert(X_SANDBOX, HeaderValue::from_static("true"));
        }
        response
    }
}

/// Ids of 32 hexadecimal digits: 64 random bits of this process, then a count.
#[derive(Debug)]
struct RequestIds {
    origin: u64,
    next: AtomicU64,
}

impl RequestIds {
    /// The caller's id, or one made here.
    fn of(&self, headers: &HeaderMap) -> RequestContext {
        let fits = |id: &&HeaderValue| {
            (1..=REQUEST_ID_LEN_MAX).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        RequestContext { id: headers.get(X_REQUEST_ID).filter(fits).cloned().unwrap_or_else(|| self.made()) }
    }

    fn made(&self) -> HeaderValue {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let number = u128::from(self.origin) << 64 | u128::from(self.next.fetch_add(1, Ordering::Relaxed));
        let id: [u8; 32] = std::array::from_fn(|index| DIGITS[(number >> (124 - 4 * index)) as usize & 0xF]);
        HeaderValue::from_bytes(&id).expect("hexadecimal digits are allowed in a header")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::to_bytes;
    use axum::routing::{MethodRouter, get, post};
    use tokio::time::timeout;
    use tower::ServiceExt;

    use super::*;
    use axum::http::Version;

    async fn explode() -> &'static str {
        panic!("a handler's mistake")
    }

    fn limits(most: usize) -> RequestLimits {
        RequestLimits { most, is_current: Box::new(|| true), lapsed: None }
    }

    fn router(in_flight_max: usize, sandbox: bool) -> Router {
        let routes = Router::new()
            .route("/things/{id}", get(|| async { "thing" }).delete(|| async { "gone" }))
            .route("/refused", post(|| async { Problem::new(Code::CardDeclined).member("txid", "0af1") }))
            .route("/explode", get(explode))
            .route(
                "/explode/late",
                get(|| async {
                    tokio::task::yield_now().await;
                    explode().await
                }),
            );
        Middleware::new(limits(in_flight_max), sandbox, Measures::default()).unwrap().before(routes)
    }

    async fn ask(router: &Router, method: &str, path: &str, request_id: Option<&str>) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(id) = request_id {
            request = request.header("x-request-id", id);
        }
        router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn whatever_goes_wrong_is_a_problem() {
        let router = router(8, false);
        let cases = [
            ("POST", "/refused?a=b", 402, "card_declined", "/refused"),
            ("GET", "/nowhere", 404, "not_found", "/nowhere"),
            ("POST", "/things/7", 405, "method_not_allowed", "/things/7"),
            ("GET", "/explode", 500, "internal", "/explode"),
            ("GET", "/explode/late", 500, "internal", "/explode/late"),
        ];
        for (method, path, status, code, instance) in cases {
            let response = ask(&router, method, path, Some("r-1")).await;
            assert_eq!(response.status(), status, "{path}");
            assert_eq!(response.headers()["content-type"], "application/problem+json");
            assert_eq!(response.headers()["x-request-id"], "r-1");
            assert_eq!(response.headers()["api-version"], API_VERSION);
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!([&body["code"], &body["instance"], &body["request_id"]], [code, instance, "r-1"]);
        }
    }

    #[tokio::test]
    async fn a_wrong_method_is_told_the_right_ones() {
        let response = ask(&router(8, false), "POST", "/things/7", None).await;
        assert_eq!(response.headers()["allow"], "GET,HEAD,DELETE");
    }

    #[tokio::test]
    async fn only_the_sandbox_says_so() {
        assert_eq!(ask(&router(8, true), "GET", "/nowhere", None).await.headers()["x-sandbox"], "true");
        assert!(!ask(&router(8, false), "GET", "/things/7", None).await.headers().contains_key("x-sandbox"));
    }

    #[tokio::test]
    async fn a_request_keeps_its_id_or_gets_one() {
        let router = router(8, false);
        let longest = "x".repeat(128);
        let too_long = "x".repeat(129);
        for (sent, is_used) in
            [("r-1", true), (longest.as_str(), true), (too_long.as_str(), false), ("", false), ("a b", false)]
        {
            let response = ask(&router, "GET", "/things/7", Some(sent)).await;
            assert_eq!(response.headers()["x-request-id"] == *sent, is_used, "{sent}");
        }
        let first = ask(&router, "GET", "/things/7", None).await.headers()["x-request-id"].clone();
        let second = ask(&router, "GET", "/things/7", None).await.headers()["x-request-id"].clone();
        assert_eq!((first.len(), second.len()), (32, 32));
        assert_ne!(first, second);
    }

    #[tokio::test]
    async fn a_request_names_its_host_once() {
        let middleware = Middleware::new(limits(8), false, Measures::default()).unwrap();
        let cases: [(Version, &[&str], u16); 9] = [
            (Version::HTTP_11, &["a"], 200),
            (Version::HTTP_11, &["[2001:db8::1]:8080"], 200),
            (Version::HTTP_11, &[""], 200),
            (Version::HTTP_11, &[], 400),
            (Version::HTTP_11, &["a", "b"], 400),
            (Version::HTTP_11, &["a", "a"], 400),
            (Version::HTTP_11, &["a/b"], 400),
            (Version::HTTP_10, &[], 200),
            (Version::HTTP_10, &["a", "b"], 400),
        ];
        for (version, hosts, status) in cases {
            let request =
                hosts.iter().fold(Request::builder().uri("/things/7"), |request, host| request.header("host", *host));
            let answer = middleware.turned_away(&request.version(version).body(()).unwrap());
            let found = answer.as_ref().map_or(200, |answer| answer.status().as_u16());
            assert_eq!(found, status, "{version:?} {hosts:?}");
            if let Some(answer) = answer {
                let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
                let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                assert_eq!([&body["code"], &body["errors"][0]["field"]], ["validation_failed", "Host"]);
            }
        }
    }

    #[tokio::test]
    async fn hanging_up_cancels_nothing() {
        let [entered, release, finished] = [(); 3].map(|()| Arc::new(Notify::new()));
        let handler = {
            let [entered, release, finished] = [&entered, &release, &finished].map(Arc::clone);
            move || async move {
                entered.notify_one();
                release.notified().await;
                finished.notify_one();
            }
        };
        let router = Middleware::new(limits(1), false, Measures::default())
            .unwrap()
            .before(Router::new().route("/slow", get(handler)));
        let caller = tokio::spawn({
            let router = router.clone();
            async move { ask(&router, "GET", "/slow", None).await }
        });
        entered.notified().await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        let meanwhile = timeout(Duration::from_secs(10), ask(&router, "GET", "/slow", None)).await;
        assert_eq!(meanwhile.expect("it is still under way, and nobody else is let in").status(), 503);
        release.notify_one();
        finished.notified().await;
        release.notify_one();
        assert_eq!(ask(&router, "GET", "/slow", None).await.status(), 200, "and has made room");
    }

    /// A handler that signals its entry, and waits until it is released.
    fn slow(entered: &Arc<Notify>, release: &Arc<Notify>) -> MethodRouter {
        let (entered, release) = (Arc::clone(entered), Arc::clone(release));
        get(move || async move {
            entered.notify_one();
            release.notified().await;
            "done"
        })
    }

    #[tokio::test]
    async fn one_too_many_is_turned_away_at_once() {
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let router = Middleware::new(limits(1), false, Measures::default())
            .unwrap()
            .before(Router::new().route("/slow", slow(&entered, &release)));
        let slow = tokio::spawn({
            let router = router.clone();
            async move { ask(&router, "GET", "/slow", None).await.status() }
        });
        entered.notified().await;
        let refused = ask(&router, "GET", "/slow", None).await;
        assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &HeaderValue::from(1)));
        release.notify_one();
        assert_eq!(slow.await.unwrap(), 200);
        release.notify_one();
        assert_eq!(ask(&router, "GET", "/slow", None).await.status(), 200);
    }

    #[tokio::test]
    async fn who_is_not_let_in_is_told_before_anything_is_looked_at() {
        let current = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let seen = Arc::clone(&current);
        let is_current = Box::new(move || seen.load(Ordering::Acquire));
        let middleware = Middleware::new(RequestLimits { is_current, ..limits(8) }, true, Measures::default()).unwrap();
        let asked = || {
            let request = Request::builder().uri("/nowhere?a=b").header("host", "a").header("x-request-id", "r-1");
            middleware.turned_away(&request.body(()).unwrap())
        };
        assert!(asked().is_none());
        current.store(false, Ordering::Release);
        let refused = asked().unwrap();
        assert_eq!(refused.status(), 503);
        let headers = ["retry-after", "x-request-id", "api-version", "x-sandbox", "content-type"];
        let expected = ["1", "r-1", API_VERSION, "true", "application/problem+json"];
        assert_eq!(headers.map(|name| refused.headers()[name].to_str().unwrap()), expected);
        let body = to_bytes(refused.into_body(), usize::MAX).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!([&body["code"], &body["instance"]], ["store_unavailable", "/nowhere"]);
    }

    /// A process whose database another one may have taken refuses at the door, and holds back the
    /// answers of what was under way.
    #[tokio::test]
    async fn who_may_be_superseded_answers_nothing_but_how_it_is() {
        let current = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let seen = Arc::clone(&current);
        let is_current = Box::new(move || seen.load(Ordering::Acquire));
        let lapsed = Arc::new(Notify::new());
        let limits = RequestLimits { is_current, lapsed: Some(Arc::clone(&lapsed)), ..limits(8) };
        let middleware = Middleware::new(limits, false, Measures::default()).unwrap();
        let under_way = slow(&entered, &release).post(|| async { "done" });
        let health = get(|| async { "ok" });
        let router = middleware.clone().before(Router::new().route("/slow", under_way).route("/readyz", health));
        let code = async |response: Response| {
            let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            serde_json::from_slice::<serde_json::Value>(&body).map_or(String::new(), |body| body["code"].to_string())
        };
        let reading = tokio::spawn({
            let router = router.clone();
            async move { ask(&router, "GET", "/slow", None).await }
        });
        entered.notified().await;
        current.store(false, Ordering::Release);
        // It is answered while its handler still waits.
        lapsed.notify_waiters();
        assert_eq!(code(reading.await.unwrap()).await, "\"store_unavailable\"");
        assert_eq!(code(ask(&router, "POST", "/slow", None).await).await, "\"outcome_unknown\"");
        assert_eq!(ask(&router, "GET", "/readyz", None).await.status(), 200);
        let at_the_door = |path: &str| {
            let request = Request::builder().uri(path).header("host", "a");
            middleware.turned_away(&request.body(()).unwrap()).map(|response| response.status().as_u16())
        };
        assert_eq!((at_the_door("/slow"), at_the_door("/readyz")), (Some(503), None));
        current.store(true, Ordering::Release);
        assert_eq!((at_the_door("/slow"), ask(&router, "POST", "/slow", None).await.status().as_u16()), (None, 200));
    }
}
