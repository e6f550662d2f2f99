//! Health: readiness, and the figures that tell of trouble before it is there.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use crate::app::App;
use crate::console::page::{Screen, Section, Visit};
use crate::console::records::record_link;
use crate::console::show;
use crate::console::words;
use crate::http::problem::Problem;
use crate::ops::health::readiness;

/// Page of the service's health.
pub async fn show(State(app): State<Arc<App>>, visit: Visit) -> Response {
    visit.answer(screen(&app, &visit))
}

fn screen(app: &App, visit: &Visit) -> Result<Screen, Problem> {
    visit.whole()?;
    let (engine, readiness) = (&app.engine, readiness(app));
    let metrics = engine.metrics();
    let seconds = |seconds: f64| html! { (show::count(visit.language, seconds.max(0.0) as u64)) " s" };
    let backup = match app.last_backup.age_seconds() {
        Some(age) => html! { (show::count(visit.language, age / 60)) " min" },
        None => html! { (visit.say(words::NEVER)) },
    };
    let head = engine.published();
    let pairs = vec![
        (visit.say(words::VERSION), html! { (env!("CARGO_PKG_VERSION")) }),
        (visit.say(words::HEAD), html! { @if head.0 > 0 { (record_link(visit.language, head)) } @else { "0" } }),
        (visit.say(words::LAST_BACKUP), backup),
        (visit.say(words::DATA_SIZE), bytes(visit, engine.size_bytes()? as f64)),
        (visit.say(words::FREE_SPACE), bytes(visit, metrics.storage_free_bytes.get() as f64)),
        (visit.say(words::DUE_LAG), seconds(metrics.due_lag_seconds.get() as f64)),
        (visit.say(words::OLDEST_UNKNOWN), seconds(metrics.oldest_unknown_seconds.get() as f64)),
        (visit.say(words::SHED), html! { (show::count(visit.language, metrics.shed.get())) }),
    ];
    let body = html! {
        section.card aria-label=(visit.say(words::HEALTH)) {
            @match &readiness {
                Ok(()) => p { span.badge.good { (visit.say(words::READY)) } },
                Err(problem) => {
                    p { span.badge.bad { (visit.say(words::NOT_READY)) } " " code { (problem.code().row().code) } }
                    p lang="en" { (problem.explanation()) }
                }
            }
            (show::facts(pairs))
        }
    };
    Ok(Screen { section: Section::Health, title: visit.say(words::HEALTH).to_owned(), body })
}

fn bytes(visit: &Visit, bytes: f64) -> Markup {
    html! { (show::count(visit.language, (bytes / (1024.0 * 1024.0)) as u64)) " MiB" }
}
