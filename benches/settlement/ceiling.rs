//! Ceiling of the load generator: the same requests to a handler that reads them and answers as a
//! charge is answered, behind the same code for connections. A figure near this one measures the
//! generator. Ceiling of refusals, for row 14: the same requests to a listener that sheds all of
//! them.

use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use centavo::http::measures::Measures;
use centavo::http::middleware::{Middleware, RequestLimits, Shedding};
use centavo::http::server::{self, Served, ServerLimits};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::Plan;
use crate::load::{Connection, Measured, Requests, closed, generator};
use crate::report::{CEILING, Report, Row, rate_and_latency};
use crate::server::Shopfront;

/// Measures the generator's ceiling; the requests and the answer are those of a server.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    let requests = front.charges(0..1, false);
    let answer = generator().block_on(async {
        let mut connection = Connection::open(front.address()).await;
        connection.call(&requests.texts[0]).await;
        Bytes::copy_from_slice(connection.body())
    });
    let handler =
        move |_body: Bytes| async move { (StatusCode::CREATED, [(CONTENT_TYPE, "application/json")], answer) };
    let handled = Served::from(Router::new().route("/api/card", post(handler)));
    for connections in [64, 256] {
        let lasting = plan.lasting().min(Duration::from_secs(2));
        let measured = to_a_listener(handled.clone(), &requests, connections, lasting);
        report.add(Row {
            number: CEILING,
            what: "the load generator's ceiling: an empty handler",
            load: format!("{connections} connections"),
            figure: rate_and_latency(&measured),
            cpu: Some(measured.cpu_each()),
            target: None,
        });
    }
}

/// Requests to a listener that sheds all of them.
pub(crate) fn refused(requests: &Rc<Requests>, connections: usize, lasting: Duration) -> Measured {
    let shedding = Shedding { is_full: Box::new(|| true), admits: Box::new(|_| false) };
    let limits = RequestLimits { most: 1, shedding, is_current: Box::new(|| true), lapsed: None };
    let middleware = Middleware::new(limits, true, Measures::default()).expect("randomness");
    let refusing = Served { middleware: Some(middleware), ..Served::from(Router::new()) };
    to_a_listener(refusing, requests, connections, lasting)
}

/// A closed load to a server that has no engine.
fn to_a_listener(served: Served, requests: &Rc<Requests>, connections: usize, lasting: Duration) -> Measured {
    let runtime = centavo::runtime::start().expect("a runtime");
    let (stop, stopped) = watch::channel(false);
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("an address");
    let address = listener.local_addr().expect("an address");
    let serving = runtime.spawn(server::run(listener, served, stopped, ServerLimits::default()));
    let measured = closed(address, requests, connections, lasting);
    stop.send(true).expect("a server that listens");
    runtime.block_on(serving).expect("a server that ends");
    measured
}
