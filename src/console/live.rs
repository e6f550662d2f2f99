//! Live overview: server-sent events with the changing part of the overview, for browsers with
//! JavaScript. The page itself is whole without them.
//!
//! One task draws, once a second at most, and not at all while nobody watches. A picture that took
//! long is followed by a pause nine times as long, so that drawing takes a tenth of a core at most.
//! A second in which the server refused requests for want of room has no picture.
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
use crate::console::page::asked_language;
use crate::console::scope::Scope;
use crate::console::table::with_links;
use crate::http::language::Language;
use crate::http::live::Watcher;
use crate::http::problem::{Code, Problem};
use crate::http::session::secret_of;

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
        let shed = app.engine.metrics().shed.get();
        let mut studio = OfServer { app: Arc::clone(&app), begun: Instant::now(), shed };
        tokio::spawn(async move { paint(&mut studio).await });
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

/// What the task that draws needs of the world around it: a test brings a clock of its own.
trait Studio {
    /// Waits before the next picture.
    async fn wait(&mut self, pause: Duration);
    /// The time since some beginning.
    fn elapsed(&self) -> Duration;
    /// Whether nobody watches any more; the task ends then.
    fn is_left(&self) -> bool;
    /// Whether the server refused requests since the last time for want of room.
    fn sheds_load(&mut self) -> bool;
    /// Draws for all who watch. False when that failed.
    async fn draw(&mut self) -> bool;
}

/// Draws pictures until nobody watches: one a second at most, none while the server sheds
/// load, and after one that took long a pause nine times as long.
async fn paint(studio: &mut impl Studio) {
    let mut pause = Duration::ZERO;
    loop {
        studio.wait(pause).await;
        pause = BEAT;
        if studio.is_left() {
            return;
        }
        if studio.sheds_load() {
            continue;
        }
        let begun = studio.elapsed();
        if !studio.draw().await {
            return;
        }
        pause = BEAT.max((studio.elapsed() - begun) * PAUSE_FACTOR);
    }
}

/// The studio of a running server.
struct OfServer {
    app: Arc<App>,
    begun: Instant,
    /// Requests that were refused before the last look.
    shed: u64,
}

impl Studio for OfServer {
    async fn wait(&mut self, pause: Duration) {
        sleep(pause).await;
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn is_left(&self) -> bool {
        self.app.live.ends()
    }

    fn sheds_load(&mut self) -> bool {
        let shed = self.app.engine.metrics().shed.get();
        let sheds_load = std::mem::replace(&mut self.shed, shed) < shed;
        if sheds_load {
            self.app.live.note_left_out();
        }
        sheds_load
    }

    async fn draw(&mut self) -> bool {
        let app = Arc::clone(&self.app);
        let drawn = tokio::task::spawn_blocking(move || show_all(&app)).await;
        if drawn.is_err() {
            tracing::error!("the live overview could not be drawn");
            self.app.live.failed();
        }
        drawn.is_ok()
    }
}

fn show_all(app: &Arc<App>) {
    app.live.note_beat();
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

    /// A world whose clock moves only while somebody waits or draws.
    struct Imagined {
        now: Duration,
        /// How long a picture takes.
        takes: Duration,
        /// When nobody watches any more.
        left_at: Duration,
        /// Seconds in which requests are refused.
        pressed: std::ops::Range<u64>,
        drawn_at: Vec<Duration>,
    }

    impl Imagined {
        /// When pictures were drawn, milliseconds, while somebody watched for `seconds`.
        fn drawn(seconds: u64, takes_ms: u64, pressed: std::ops::Range<u64>) -> Vec<u128> {
            let (now, takes) = (Duration::ZERO, Duration::from_millis(takes_ms));
            let left_at = Duration::from_secs(seconds);
            let mut studio = Self { now, takes, left_at, pressed, drawn_at: Vec::new() };
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(paint(&mut studio));
            studio.drawn_at.iter().map(Duration::as_millis).collect()
        }
    }

    impl Studio for Imagined {
        async fn wait(&mut self, pause: Duration) {
            self.now += pause;
        }

        fn elapsed(&self) -> Duration {
            self.now
        }

        fn is_left(&self) -> bool {
            self.now >= self.left_at
        }

        fn sheds_load(&mut self) -> bool {
            self.pressed.contains(&self.now.as_secs())
        }

        async fn draw(&mut self) -> bool {
            self.drawn_at.push(self.now);
            self.now += self.takes;
            true
        }
    }

    #[test]
    fn there_is_one_picture_a_second_at_most() {
        assert_eq!(Imagined::drawn(4, 0, 0..0), [0, 1_000, 2_000, 3_000]);
        assert_eq!(Imagined::drawn(4, 100, 0..0), [0, 1_100, 2_200, 3_300]);
        assert_eq!(Imagined::drawn(25, 1_000, 0..0), [0, 10_000, 20_000], "a tenth of the time");
    }

    #[test]
    fn nothing_is_drawn_when_nobody_watches() {
        assert_eq!(Imagined::drawn(0, 0, 0..0), [0_u128; 0]);
    }

    #[test]
    fn a_beat_while_load_is_shed_is_left_out() {
        assert_eq!(Imagined::drawn(6, 0, 1..4), [0, 4_000, 5_000]);
    }

    #[test]
    fn a_picture_of_several_lines_is_one_event() {
        assert_eq!(event("a\r\nb\ndata: c"), "event: picture\ndata: a\ndata: \ndata: b\ndata: data: c\n\n");
    }
}
