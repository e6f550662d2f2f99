//! Wall clock in doubt: while it is, nothing is written and nothing that is due is booked; reads go
//! on. It ends when the wall clock is set right, or when two operators confirm it.

use std::time::{Duration, Instant};

use super::Engine;
use crate::clock::{ClockReading, Doubt};
use crate::journal::ClosedBy;

/// How often the wall clock is compared with the time that has passed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the word of the first operator holds.
const ASKED_MAX: Duration = Duration::from_secs(3_600);
/// How far the wall clock may have moved away since the first operator saw it, milliseconds.
const SAME_WITHIN_MS: u64 = 60_000;

/// The operator who asked first to go by the wall clock.
#[derive(Debug)]
pub(super) struct AskedFirst {
    operator: String,
    at: Instant,
    /// How far the wall clock was ahead of the steady clock, milliseconds.
    lead_ms: i64,
}

/// The same operator has confirmed the wall clock before: a second one must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another operator must confirm the wall clock")]
pub struct SecondOperatorNeeded;

impl Engine {
    /// The wall clock beside the time that the engine goes by.
    pub fn clock_reading(&self) -> ClockReading {
        self.clock.reading()
    }

    /// Why the wall clock is not followed; `None` if it is.
    pub fn clock_doubt(&self) -> Option<Doubt> {
        self.look_at_clock();
        self.clock.doubt()
    }

    /// The operator whose word to go by the wall clock waits for that of a second one.
    pub fn clock_asked_by(&self) -> Option<String> {
        let lead_ms = self.clock.reading().lead_ms;
        let request = self.clock_asked.lock();
        request.as_ref().filter(|request| request.holds(lead_ms)).map(|request| request.operator.clone())
    }

    /// Takes the word of an operator that the wall clock is right. The second operator's counts.
    /// Does nothing while the wall clock is followed.
    pub fn confirm_clock(&self, operator: &str) -> Result<(), SecondOperatorNeeded> {
        let reading = self.clock.reading();
        if reading.doubt.is_none() {
            return Ok(());
        }
        let ahead_s = reading.ahead_ms / 1_000;
        let mut request = self.clock_asked.lock();
        match request.take_if(|request| request.holds(reading.lead_ms) && request.operator != operator) {
            Some(first) => {
                tracing::warn!(
                    ahead_s,
                    first = first.operator,
                    second = operator,
                    "operators confirmed the wall clock"
                );
                self.clock.confirm();
                self.look_at_clock();
                Ok(())
            }
            None if request.as_ref().is_some_and(|request| request.holds(reading.lead_ms)) => Err(SecondOperatorNeeded),
            None => {
                tracing::warn!(
                    ahead_s,
                    operator,
                    "an operator says that the wall clock is right; a second one must too"
                );
                let operator = operator.to_owned();
                *request = Some(AskedFirst { operator, at: Instant::now(), lead_ms: reading.lead_ms });
                Ok(())
            }
        }
    }

    /// Compares the wall clock with the time that has passed every second. Runs until it is
    /// dropped.
    pub async fn watch_clock(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let reading = self.clock.look();
            self.metrics.clock_ahead_seconds.set(reading.ahead_ms / 1_000);
            self.look_at_clock();
        }
    }

    /// Looks at the space on the disk and at the wall clock, either of which closes admission.
    pub(super) fn look_before_writing(&self) {
        self.look_at_space();
        self.look_at_clock();
    }

    /// Logs, once, that a sandbox starts long after its last Record, or before it. It goes on: a
    /// live start would wait for two operators.
    pub(super) fn tell_of_sandbox_gap(&self) {
        let Some(check) = self.sandbox_start.lock().take() else { return };
        let now_ms = self.clock.reading().wall.0.saturating_add(self.clock.offset_ms());
        let gap_s = now_ms.saturating_sub(check.last_record.0) / 1_000;
        match check.doubt(now_ms) {
            Some(Doubt::EarlyStart) => {
                tracing::warn!(gap_s, "the sandbox clock is before the last Record: it goes on from there");
            }
            Some(_) => tracing::warn!(
                gap_s,
                "the last Record of this sandbox is long ago: it goes on, and books now what fell due meanwhile"
            ),
            None => {}
        }
    }

    /// Closes admission while the wall clock is in doubt, and opens it again.
    pub(super) fn look_at_clock(&self) {
        let reading = self.clock.reading();
        if !self.admission.set_closed(ClosedBy::Clock, reading.doubt.is_some()) {
            return;
        }
        self.metrics.clock_ahead_seconds.set(reading.ahead_ms / 1_000);
        let ahead_s = reading.ahead_ms / 1_000;
        match reading.doubt {
            Some(doubt) => tracing::error!(
                ?doubt,
                ahead_s,
                "the wall clock is in doubt: nothing is written until it is set right, or two operators confirm it \
                 (POST /ops/clock/confirm); reads go on"
            ),
            None => tracing::info!(ahead_s, "the wall clock is followed again"),
        }
    }
}

impl AskedFirst {
    /// True while the word holds: it is not old, and the wall clock has not moved away since.
    fn holds(&self, lead_ms: i64) -> bool {
        self.at.elapsed() < ASKED_MAX && self.lead_ms.abs_diff(lead_ms) <= SAME_WITHIN_MS
    }
}
