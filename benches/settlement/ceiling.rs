//! Ceiling of the load generator: the same requests to a handler that reads them and answers as a
//! charge is answered, behind the same code for connections. A figure near this one measures the
//! generator.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::watch;
use web::server::{self, ServerLimits};

use crate::Plan;
use crate::load::{Connection, closed, generator};
use crate::report::{CEILING, Report, Row, rate_and_latency};
use crate::server::Shopfront;

/// Measures the ceiling; the requests and the answer are those of a server.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    let requests = front.charges(0..1, false);
    let answer = generator().block_on(async {
        let mut connection = Connection::open(front.address()).await;
        connection.call(requests.texts[0].as_bytes()).await;
        Bytes::copy_from_slice(connection.body())
    });
    let handler =
        move |_body: Bytes| async move { (StatusCode::CREATED, [(CONTENT_TYPE, "application/json")], answer) };
    let router = Router::new().route("/api/card", post(handler));
    let runtime = centavo::server::runtime::start().expect("a runtime");
    let (stop, stopped) = watch::channel(false);
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("an address");
    let address = listener.local_addr().expect("an address");
    let served = runtime.spawn(server::run(listener, router, stopped, ServerLimits::default()));
    for connections in [64, 256] {
        let measured = closed(address, &requests, connections, plan.lasting().min(Duration::from_secs(2)));
        report.add(Row {
            number: CEILING,
            what: "the load generator's ceiling: an empty handler",
            load: format!("{connections} connections"),
            figure: rate_and_latency(&measured),
            cpu: Some(measured.cpu_each()),
            target: None,
        });
    }
    stop.send(true).expect("a server that listens");
    runtime.block_on(served).expect("a server that ends");
}
