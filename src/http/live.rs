//! Pictures of a page that changes, for the browsers that watch it. One task draws them for all
//! watchers, and only while there are any.
//!
//! A picture is the markup of the changing part of the page, in one language. This file keeps the
//! seats, the last picture of each language, and whether a task draws. It draws nothing itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::language::Language;

/// Watchers at a time.
pub const WATCHERS_MAX: usize = 64;

/// The pictures that are shown now, and who watches them.
pub struct LivePictures {
    seats: Arc<Semaphore>,
    /// Whether a task draws. Locked while a watcher comes and while the task ends.
    is_drawn: Mutex<bool>,
    pictures: [watch::Sender<Bytes>; 2],
    beats: AtomicU64,
    left_out: AtomicU64,
}

/// The seat of a watcher, and what it watches.
pub struct Watcher {
    /// Changes with each picture; empty before the first.
    pub pictures: watch::Receiver<Bytes>,
    _seat: OwnedSemaphorePermit,
}

impl Default for LivePictures {
    fn default() -> Self {
        let seats = Arc::new(Semaphore::new(WATCHERS_MAX));
        let pictures = [(); 2].map(|()| watch::Sender::new(Bytes::new()));
        Self { seats, is_drawn: Mutex::new(false), pictures, beats: AtomicU64::new(0), left_out: AtomicU64::new(0) }
    }
}

impl LivePictures {
    /// A seat for a watcher; none when all are taken. `true`: nobody draws yet, and the caller
    /// begins to.
    pub fn watch(&self, language: Language) -> Option<(Watcher, bool)> {
        let seat = Arc::clone(&self.seats).try_acquire_owned().ok()?;
        let mut is_drawn = self.is_drawn.lock();
        let begins = !std::mem::replace(&mut *is_drawn, true);
        if begins {
            self.pictures.iter().for_each(|picture| drop(picture.send_replace(Bytes::new())));
        }
        let mut pictures = self.pictures[place(language)].subscribe();
        pictures.mark_changed();
        Some((Watcher { pictures, _seat: seat }, begins))
    }

    /// Whether somebody watches the picture in a language.
    pub fn is_watched(&self, language: Language) -> bool {
        self.pictures[place(language)].receiver_count() > 0
    }

    /// Shows a picture. One that is as before wakes nobody.
    pub fn show(&self, language: Language, picture: Bytes) {
        self.pictures[place(language)].send_if_modified(|shown| {
            let is_new = *shown != picture;
            *shown = picture;
            is_new
        });
    }

    /// True when nobody watches any more: the task that draws must end now.
    pub fn ends(&self) -> bool {
        let mut is_drawn = self.is_drawn.lock();
        *is_drawn = self.pictures.iter().any(|picture| picture.receiver_count() > 0);
        !*is_drawn
    }

    /// Notes that pictures are drawn, for all watchers and languages at once.
    pub fn note_beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// How often pictures were drawn.
    pub fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// Notes that no pictures are drawn this time, since the server sheds load.
    pub fn note_left_out(&self) {
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }

    /// How often pictures were left out.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Notes that the task that drew has failed: the next watcher begins another.
    pub fn failed(&self) {
        *self.is_drawn.lock() = false;
    }
}

fn place(language: Language) -> usize {
    match language {
        Language::Portuguese => 0,
        Language::English => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PT: Language = Language::Portuguese;
    const EN: Language = Language::English;

    #[test]
    fn one_task_draws_while_somebody_watches() {
        let live = LivePictures::default();
        assert!(live.ends(), "nobody watches");
        let (first, begins) = live.watch(PT).unwrap();
        assert!(begins && live.is_watched(PT) && !live.is_watched(EN));
        let (second, begins) = live.watch(EN).unwrap();
        assert!(!begins && !live.ends());
        drop(first);
        assert!(!live.ends(), "the other one watches");
        drop(second);
        assert!(live.ends());
        assert!(live.watch(PT).unwrap().1, "the next one begins again");
    }

    #[test]
    fn a_picture_that_is_as_before_wakes_nobody_and_an_old_one_is_not_shown() {
        let live = LivePictures::default();
        let (mut watcher, _) = live.watch(PT).unwrap();
        assert!(watcher.pictures.borrow_and_update().is_empty());
        live.show(PT, Bytes::from_static(b"one"));
        assert!(watcher.pictures.has_changed().unwrap());
        assert_eq!(*watcher.pictures.borrow_and_update(), "one");
        live.show(PT, Bytes::from_static(b"one"));
        live.show(EN, Bytes::from_static(b"other"));
        assert!(!watcher.pictures.has_changed().unwrap());
        let (mut late, _) = live.watch(PT).unwrap();
        assert!(late.pictures.has_changed().unwrap(), "one who comes late gets the last picture");
        assert_eq!(*late.pictures.borrow_and_update(), "one");
        drop((watcher, late));
        assert!(live.ends());
        assert!(live.watch(PT).unwrap().0.pictures.borrow_and_update().is_empty(), "not one of long ago");
    }

    #[test]
    fn seats_are_bounded_and_given_back() {
        let live = LivePictures::default();
        let mut watchers: Vec<_> = (0..WATCHERS_MAX).map(|_| live.watch(PT).unwrap()).collect();
        assert!(live.watch(EN).is_none());
        watchers.pop();
        assert!(live.watch(EN).is_some());
    }
}
