//! Slow pages for browsers: the reading of a page that takes long goes on while its browser shows
//! so, and the page is kept for the session until the browser asks again.
//!
//! The first request waits a short time. After it, the reading goes on without a request; a later
//! request of the same session for the same address gets the page, once. Pages that nobody fetches
//! are forgotten after a minute. When too many are under way, a request waits until its page is
//! there.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::Response;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::timeout;

/// How long a request waits for its page.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long a page is kept that is there.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Pages that are read or kept.
const PAGES_MAX: usize = 32;
/// The same of one session.
const PAGES_OF_ONE_MAX: usize = 8;

/// A session and an address of its.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PageKey {
    /// The session's secret, as a digest.
    pub session: [u8; 32],
    /// Path and query.
    pub address: String,
}

/// The pages that are read or kept.
#[derive(Default)]
pub struct SlowPages {
    pages: Mutex<HashMap<PageKey, SlowPage>>,
}

#[derive(Clone)]
struct SlowPage {
    begun: Instant,
    /// The page, until a request takes it.
    page: Arc<Mutex<Option<Result<Response, JoinError>>>>,
    /// When it was there.
    there: watch::Receiver<Option<Instant>>,
}

/// What a request gets.
pub enum SlowAnswer {
    /// The page.
    Page(Response),
    /// It is being read, for this long already.
    Reads(Duration),
}

impl SlowPages {
    /// Waits for the page of an earlier request; none when there was none.
    pub async fn kept(&self, key: &PageKey) -> Option<SlowAnswer> {
        let page = self.pages.lock().get(key).cloned()?;
        if !page.is_there().await {
            return Some(SlowAnswer::Reads(page.begun.elapsed()));
        }
        self.pages.lock().remove(key);
        page.take().map(SlowAnswer::Page)
    }

    /// Reads a page, and lets it be read on when it takes long.
    pub async fn read(&self, key: PageKey, work: impl Future<Output = Response> + Send + 'static) -> SlowAnswer {
        let begun = Instant::now();
        let (told, there) = watch::channel(None);
        let page = SlowPage { begun, page: Arc::default(), there };
        let place = Arc::clone(&page.page);
        tokio::spawn(async move {
            let read = tokio::spawn(work).await;
            *place.lock() = Some(read);
            told.send_replace(Some(Instant::now()));
        });
        if !page.is_there().await && self.keep(key, &page, Instant::now()) {
            return SlowAnswer::Reads(begun.elapsed());
        }
        page.wait().await;
        page.take().map_or_else(|| SlowAnswer::Reads(begun.elapsed()), SlowAnswer::Page)
    }

    /// Whether a page has a place among those that are read on.
    fn keep(&self, key: PageKey, page: &SlowPage, now: Instant) -> bool {
        let mut pages = self.pages.lock();
        pages.retain(|_, page| page.lasts(now));
        let of_one = pages.keys().filter(|kept| kept.session == key.session).count();
        let has_room = pages.len() < PAGES_MAX && of_one < PAGES_OF_ONE_MAX && !pages.contains_key(&key);
        if has_room {
            pages.insert(key, page.clone());
        }
        has_room
    }
}

impl SlowPage {
    /// Waits a short time. True when the page is there.
    async fn is_there(&self) -> bool {
        timeout(PATIENCE, self.wait()).await.is_ok()
    }

    /// Waits until the page is there.
    async fn wait(&self) {
        let mut there = self.there.clone();
        let _told_or_gone = there.wait_for(Option::is_some).await;
    }

    /// The page, for the first who takes it. What broke while it was made breaks here.
    fn take(&self) -> Option<Response> {
        match self.page.lock().take()? {
            Ok(page) => Some(page),
            Err(ended) => resume_unwind(ended.into_panic()),
        }
    }

    fn lasts(&self, now: Instant) -> bool {
        self.there.borrow().is_none_or(|there| now.duration_since(there) < KEPT_FOR)
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use tokio::sync::oneshot;

    use super::*;

    fn key(session: u8, address: &str) -> PageKey {
        PageKey { session: [session; 32], address: address.to_owned() }
    }

    async fn of_text(page: SlowAnswer) -> String {
        let SlowAnswer::Page(page) = page else { panic!("it is still being read") };
        let bytes = axum::body::to_bytes(page.into_body(), 1_000).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// A page that is there when the test says so.
    fn slow() -> (oneshot::Sender<()>, impl Future<Output = Response> + Send + 'static) {
        let (told, waits) = oneshot::channel::<()>();
        (told, async move {
            waits.await.unwrap();
            "slow".into_response()
        })
    }

    #[tokio::test]
    async fn a_quick_page_is_the_answer_and_leaves_nothing() {
        let pages = SlowPages::default();
        let page = pages.read(key(1, "/a"), async { "quick".into_response() }).await;
        assert_eq!(of_text(page).await, "quick");
        assert!(pages.kept(&key(1, "/a")).await.is_none() && pages.pages.lock().is_empty());
    }

    #[tokio::test]
    async fn a_slow_page_is_given_once_and_to_its_session() {
        let pages = SlowPages::default();
        let (told, work) = slow();
        assert!(matches!(pages.read(key(1, "/a"), work).await, SlowAnswer::Reads(_)));
        assert!(matches!(pages.kept(&key(1, "/a")).await, Some(SlowAnswer::Reads(_))));
        assert!(pages.kept(&key(2, "/a")).await.is_none() && pages.kept(&key(1, "/b")).await.is_none());
        told.send(()).unwrap();
        assert_eq!(of_text(pages.kept(&key(1, "/a")).await.unwrap()).await, "slow");
        assert!(pages.kept(&key(1, "/a")).await.is_none(), "the next one is read anew");
    }

    #[tokio::test]
    async fn pages_that_are_read_on_are_bounded_and_forgotten() {
        let pages = SlowPages::default();
        let mut slow_ones = Vec::new();
        for number in 0..PAGES_OF_ONE_MAX {
            let (told, work) = slow();
            assert!(matches!(pages.read(key(1, &number.to_string()), work).await, SlowAnswer::Reads(_)));
            slow_ones.push(told);
        }
        let (told, work) = slow();
        let waits = pages.read(key(1, "/more"), work);
        tokio::pin!(waits);
        assert!(timeout(PATIENCE * 3, &mut waits).await.is_err(), "one more waits for its page");
        told.send(()).unwrap();
        assert_eq!(of_text(waits.await).await, "slow");
        slow_ones.into_iter().for_each(|told| told.send(()).unwrap());
        let kept: Vec<_> = pages.pages.lock().values().cloned().collect();
        for page in kept {
            page.wait().await;
        }
        let now = Instant::now();
        let (_told, work) = slow();
        let page = SlowPage { begun: now, page: Arc::default(), there: watch::channel(None).1 };
        assert!(!pages.keep(key(1, "/later"), &page, now) && pages.keep(key(1, "/later"), &page, now + KEPT_FOR));
        assert_eq!(pages.pages.lock().len(), 1, "what nobody fetched is forgotten");
        drop(work);
    }

    #[tokio::test]
    #[should_panic(expected = "broke")]
    async fn what_breaks_a_slow_page_breaks_the_request_that_fetches_it() {
        let pages = SlowPages::default();
        let (told, waits) = oneshot::channel::<()>();
        let work = async move {
            waits.await.unwrap();
            panic!("broke");
        };
        assert!(matches!(pages.read(key(1, "/a"), work).await, SlowAnswer::Reads(_)));
        told.send(()).unwrap();
        let _page = pages.kept(&key(1, "/a")).await;
    }
}
