//! The listener that serves the other processes: it checks that one of them asks, takes what it
//! tells, and passes the request to the routes of the listener to which it came.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower::{ServiceExt, service_fn};

use super::forward::Hop;
use super::peer_greeting;
use super::peer_token::PeerToken;
use web::middleware::Middleware;
use web::openapi::Listener;
use web::server::{OverTls, Peer, ServerLimits};

/// Routes of one listener, with its door and its middleware, and the middleware alone.
#[derive(Clone)]
pub struct Behind {
    /// The routes.
    pub router: Router,
    /// The middleware, which refuses requests early.
    pub middleware: Middleware,
}

impl Behind {
    /// The same, for a listener of its own.
    pub fn served(self) -> (Router, Option<Middleware>) {
        (self.router, Some(self.middleware))
    }
}

/// How much the peers' listener takes on.
pub fn limits(connections_max: usize) -> ServerLimits {
    // A process gives a connection up long before, so no request meets the end of one.
    let connections_of_peer_max = connections_max;
    let head_arrival_max = Duration::from_secs(60);
    ServerLimits { connections_max, connections_of_peer_max, head_arrival_max, ..ServerLimits::default() }
}

/// Routes of the listener of the process with the name `process`: `own` for what only other
/// processes ask, and those of the two listeners. A request that no process of the installation
/// sends is 403, and learns nothing.
pub fn routes(token: PeerToken, process: String, own: Router, merchants: Behind, operators: Behind) -> Router {
    let own = own.route(peer_greeting::PATH, get(process));
    let answering = service_fn(move |request: Request| {
        let (token, own) = (token.clone(), own.clone());
        let (merchants, operators) = (merchants.clone(), operators.clone());
        async move {
            if request.uri().path().starts_with("/peers/") && token.opens(request.headers()) {
                return own.oneshot(request).await;
            }
            Ok::<_, Infallible>(answered(request, &token, merchants, operators).await)
        }
    });
    Router::new().fallback_service(answering)
}

async fn answered(mut request: Request<Body>, token: &PeerToken, merchants: Behind, operators: Behind) -> Response {
    let Some(hop) = Hop::read(request.headers_mut(), token) else {
        return StatusCode::FORBIDDEN.into_response();
    };
    let Behind { router, middleware } = match hop.listener {
        Listener::Merchants => merchants,
        Listener::Operators => operators,
    };
    let extensions = request.extensions_mut();
    extensions.remove::<Peer>();
    extensions.remove::<OverTls>();
    if let Some(caller) = hop.caller {
        extensions.insert(caller);
    }
    hop.over_tls.then(|| extensions.insert(OverTls));
    extensions.insert(std::sync::Arc::new(hop));
    if let Some(refusal) = middleware.turned_away(&request) {
        return refusal;
    }
    let Ok(answer) = router.oneshot(request).await;
    answer
}
