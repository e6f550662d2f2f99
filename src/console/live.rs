//! Live overview: server-sent events with the changing part of the overview, for browsers with
//! JavaScript. The page itself is whole without them.
//!
//! One task draws, once a second at most, and not at all while nobody watches. A picture that took
//! long is followed by a pause nine times as long, so that drawing takes a tenth of a core at most.
//! A stream ends when the server stops, when the session or its token ends, and when another
//! process may have taken the store.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::app::App;
use crate::console::overview;
use crate::console::page::{asked_language, secret_of};
use crate::console::scope::Scope;
use crate::console::table::with_links;
use crate::http::language::Language;
use crate::http::live::Watcher;
use crate::http::problem::{Code, Problem};

/// Time between two pictures.
const BEAT: Duration = Duration::from_secs(1);
/// How many times as long as a picture took the pause after it lasts.
const PAUSE_FACTOR: u32 = 9;
/// A stream without a picture for this long gets a line that says nothing, which finds out clients
/// that are gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Stream of pictures. Without a session it is 204, after which a browser does not ask again. To
/// watch is no use of the session, and chooses no language for it.
pub async fn live(State(app): State<Arc<App>>, parts: Parts) -> Response {
    let Some(secret) = secret_of(&parts.headers).filter(|secret| may_see(&app, secret)) else {
        return StatusCode::NO_CONTENT.into_response();
    };
    match Scope::asked(&app, &parts) {
        Ok(Scope::All) => {}
        Ok(Scope::Merchant(..)) => return Problem::new(Code::NotFound).into_response(),
        Err(problem) => return problem.into_response(),
    }
    let language = asked_language(&parts).unwrap_or_else(|| Language::preferred(&parts.headers));
    let Some((watcher, begins)) = app.live.watch(language) else {
        let detail = "64 browsers watch the overview already.";
        return Problem::new(Code::Overloaded).retry_after(60).detail(detail).into_response();
    };
    if begins {
        tokio::spawn(draw(Arc::clone(&app)));
    }
    let watching = Watching { ending: app.ending.clone(), app, watcher, secret };
    let parts = stream::unfold(watching, |mut watching| async {
        let part = watching.next().await?;
        Some((Ok::<_, Infallible>(part), watching))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(parts)).into_response()
}

/// One watcher's stream.
struct Watching {
    app: Arc<App>,
    watcher: Watcher,
    ending: watch::Receiver<bool>,
    secret: String,
}

impl Watching {
    /// The next part of the stream; none at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let part = tokio::select! {
                biased;
                _ = self.ending.wait_for(|ends| *ends) => return None,
                changed = self.watcher.pictures.changed() => {
                    changed.ok()?;
                    self.watcher.pictures.borrow_and_update().clone()
                }
                () = sleep(SIGN_OF_LIFE) => Bytes::from_static(b":\n\n"),
            };
            if !may_see(&self.app, &self.secret) {
                return None;
            }
            if !part.is_empty() {
                return Some(part);
            }
        }
    }
}

/// Whether a session still lasts, with a token that still opens, and this process may answer. A
/// watched page does not keep a session alive.
fn may_see(app: &App, secret: &str) -> bool {
    let opened_by = app.sessions.look(secret, Instant::now());
    let role = opened_by.and_then(|opened_by| app.ops_tokens.read().role_of(&opened_by));
    role.is_some() && app.engine.is_current()
}

/// Draws pictures until nobody watches.
async fn draw(app: Arc<App>) {
    let mut pause = Duration::ZERO;
    loop {
        sleep(pause).await;
        if app.live.ends() {
            return;
        }
        let (begun, drawing) = (Instant::now(), Arc::clone(&app));
        let drawn = tokio::task::spawn_blocking(move || show_all(&drawing)).await;
        if drawn.is_err() {
            tracing::error!("the live overview could not be drawn");
            app.live.failed();
            return;
        }
        pause = BEAT.max(begun.elapsed() * PAUSE_FACTOR);
    }
}

fn show_all(app: &Arc<App>) {
    for language in [Language::Portuguese, Language::English] {
        if !app.live.is_watched(language) {
            continue;
        }
        match overview::picture(app, language) {
            Ok(picture) => app.live.show(language, event(&with_links(&picture.into_string(), "/console"))),
            Err(problem) => tracing::warn!(code = problem.code().row().code, "a picture was left out"),
        }
    }
}

/// A picture as an event of the stream: a line of data for each of its lines.
fn event(picture: &str) -> Bytes {
    let mut event = String::with_capacity(picture.len() + 32);
    event.push_str("event: picture\n");
    for line in picture.split(['\n', '\r']) {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_of_several_lines_is_one_event() {
        assert_eq!(event("a\r\nb\ndata: c"), "event: picture\ndata: a\ndata: \ndata: b\ndata: data: c\n\n");
    }
}
