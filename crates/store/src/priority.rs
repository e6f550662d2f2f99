//! Priorities of threads: which run first when there is more work than cores.

use crate::with_short_slice;

/// The nice value of background threads: they get about a tenth of the share of the others.
const NICE: i32 = 10;

/// Lets the calling thread run first: all others wait for it, and its work is short. It asks for a
/// short slice, which takes no privilege; Linux prefers such a thread when it wakes, from 6.12 on.
/// Elsewhere it runs as the others do.
pub fn run_first() {
    if !with_short_slice() {
        tracing::debug!("the journal's thread runs at the same priority as the others");
    }
}

/// Lets the calling thread run when the others leave time, from now on: this cannot be undone. One
/// that is nicer already stays so.
pub fn run_last() {
    let niced = rustix::process::getpriority_process(None)
        .and_then(|nice| rustix::process::setpriority_process(None, nice.max(NICE)));
    if let Err(error) = niced {
        tracing::debug!(%error, "a thread in the background runs at the same priority as the others");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::read_to_string;
    use std::thread;

    use super::*;

    /// The nineteenth field, counted behind the name, which may have blanks.
    fn nice(stat: &str) -> i32 {
        let fields = stat.rsplit_once(')').expect("a name in brackets").1;
        fields.split_whitespace().nth(16).and_then(|nice| nice.parse().ok()).expect("a number")
    }

    #[test]
    fn a_thread_in_the_background_is_nice_and_others_are_not() {
        let before = nice(&read_to_string("/proc/thread-self/stat").expect("/proc"));
        let there = thread::spawn(|| {
            run_last();
            nice(&read_to_string("/proc/thread-self/stat").expect("/proc"))
        });
        assert_eq!(there.join().expect("no panic"), before.max(NICE));
        assert_eq!(nice(&read_to_string("/proc/thread-self/stat").expect("/proc")), before);
    }

    /// If the kernel reports a thread's slice, it is the requested one.
    #[test]
    fn the_journals_thread_has_a_short_slice() {
        let slice = || {
            let text = read_to_string("/proc/thread-self/sched").unwrap_or_default();
            text.lines().find_map(|line| line.strip_prefix("se.slice")?.split(':').nth(1)?.trim().parse::<u64>().ok())
        };
        let [before, after] = thread::spawn(move || {
            let before = slice();
            run_first();
            [before, slice()]
        })
        .join()
        .expect("no panic");
        assert_eq!(after.is_some(), before.is_some());
        assert!(after.is_none_or(|after| after == 100_000), "{before:?} {after:?}");
    }
}
