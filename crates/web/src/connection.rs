//! Connection: its origin, the routes and limits of its listener, and the way of a
//! request to its answer.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use tokio::sync::watch;
use tower::Service;

use super::middleware::Middleware;
use super::outgoing::{Backlog, OneCopy, Parts};
use super::tls::Tls;

/// Origin of a request, as an extension of it: an IPv4 address, or the network (/64) of an IPv6
/// address, the size of one customer's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer(pub IpAddr);

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        Peer(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        })
    }
}

/// Mark of a request that came over TLS, as an extension of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverTls;

/// Router and settings of a listener.
#[derive(Clone)]
pub struct ListenerService {
    /// The routes.
    pub router: Router,
    /// Middleware that refuses before the routes do; without it no request is refused.
    pub middleware: Option<Middleware>,
    /// Unwritten bytes; listeners may share it.
    pub backlog: Arc<Backlog>,
    /// TLS; without it connections are plain HTTP.
    pub tls: Option<Arc<Tls>>,
}

impl From<Router> for ListenerService {
    fn from(router: Router) -> Self {
        ListenerService { router, middleware: None, backlog: Arc::default(), tls: None }
    }
}

/// How much a listener takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections that may be open at a time.
    pub connections_max: usize,
    /// The same of one address.
    pub connections_of_peer_max: usize,
    /// How long a connection may take to send the head of a request, its idle time before included.
    pub head_arrival_max: Duration,
    /// How many bytes hyper gathers of a head that is not whole, and of answers to be written; at
    /// least 8,192.
    pub head_bytes_max: usize,
    /// How long requests under way may go on after the shutdown.
    pub drain_max: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            connections_max: 4_096,
            connections_of_peer_max: 2_048,
            head_arrival_max: Duration::from_secs(10),
            head_bytes_max: 64 * 1024,
            drain_max: Duration::from_secs(20),
        }
    }
}

/// The answer to a request: at once when it is not let in, else by the router.
pub(super) fn answer(
    served: &ListenerService,
    peer: Peer,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response, Infallible>> + Send + use<> {
    let answering = match served.middleware.as_ref().and_then(|middleware| middleware.turned_away(&request)) {
        Some(answer) => ControlFlow::Break(answer),
        None => {
            request.extensions_mut().insert(peer);
            if served.tls.is_some() {
                request.extensions_mut().insert(OverTls);
            }
            ControlFlow::Continue(served.router.clone().call(request.map(Body::new)))
        }
    };
    async move {
        match answering {
            ControlFlow::Break(answer) => Ok(answer),
            ControlFlow::Continue(answering) => answering.await,
        }
    }
}

/// An answer whose body goes out in parts that are counted.
pub(super) fn in_parts(response: Response, backlog: Arc<Backlog>) -> hyper::Response<Parts> {
    let is_one_copy = response.extensions().get::<OneCopy>().is_some();
    response.map(|body| Parts::of(body, is_one_copy, backlog))
}

/// Waits for the shutdown to be asked for; a sender that is gone asks for it as well.
pub(super) async fn asked(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|asked| *asked).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_address_or_a_network() {
        for (address, peer) in [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(Peer::from(address.parse::<IpAddr>().unwrap()), Peer(peer.parse().unwrap()));
        }
    }
}
