//! Last tries to deliver webhooks to one endpoint: which event, when, how each ended, and the first
//! KiB of the answer's body. They are stored, sealed, beside the progress of the endpoint.
//!
//! Tries that failed and those that the endpoint accepted are bounded apart, so that what failed
//! stays to be read at an endpoint that answers again.

use std::cmp::Reverse;
use std::collections::VecDeque;

use derived::outbox::Answer;
use ledger::Timestamp;
use minicbor::{Decode, Encode};

/// Stored tries of one endpoint that failed, at most.
const FAILED_MAX: usize = 1_000;
/// Stored tries of one endpoint that were accepted, at most.
const ACCEPTED_MAX: usize = 50;
/// Bytes of the answers of either kind; older tries lose theirs.
const RESPONSE_BYTES_MAX: usize = 16 << 10;

/// One try to deliver an event.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DeliveryTry {
    /// The event's number among those of its group.
    #[n(0)]
    pub number: u64,
    /// How it ended.
    #[n(1)]
    pub answer: Answer,
    /// The first KiB of the answer's body; empty where newer answers took its room.
    #[n(2)]
    pub response: Box<str>,
}

/// The last tries at one endpoint, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(super) struct TryLog {
    #[n(0)]
    failed: VecDeque<DeliveryTry>,
    #[n(1)]
    accepted: VecDeque<DeliveryTry>,
}

impl TryLog {
    /// Notes a try that has ended.
    pub(super) fn note(&mut self, ended: DeliveryTry) {
        let (tries, most) = match ended.answer.cause {
            Some(_) => (&mut self.failed, FAILED_MAX),
            None => (&mut self.accepted, ACCEPTED_MAX),
        };
        if tries.len() >= most {
            tries.pop_front();
        }
        tries.push_back(ended);
        let mut bytes = 0;
        for older in tries.iter_mut().rev() {
            bytes += older.response.len();
            if bytes > RESPONSE_BYTES_MAX {
                older.response = Box::default();
            }
        }
    }

    /// How the newest try ended.
    pub(super) fn newest(&self) -> Option<Answer> {
        let last = [self.failed.back(), self.accepted.back()].into_iter().flatten();
        last.map(|tried| tried.answer).max_by_key(|answer| answer.at)
    }

    /// Forgets the tries to deliver events after `count`, which the journal does not have, and
    /// those before `since`.
    pub(super) fn forget(&mut self, count: u64, since: Timestamp) {
        let is_known = |tried: &DeliveryTry| tried.number <= count && tried.answer.at >= since;
        self.failed.retain(is_known);
        self.accepted.retain(is_known);
    }

    /// The tries that are wanted, newest first.
    pub(super) fn newest_first(&self, is_wanted: impl Fn(&DeliveryTry) -> bool) -> Vec<DeliveryTry> {
        // At the same time, accepted tries come first.
        let tries = self.accepted.iter().rev().chain(self.failed.iter().rev());
        let mut tries: Vec<_> = tries.filter(|tried| is_wanted(tried)).cloned().collect();
        tries.sort_by_key(|tried| Reverse(tried.answer.at));
        tries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use derived::outbox::Cause;

    fn note(log: &mut TryLog, number: u64, cause: Option<Cause>, response: &str) {
        let answer = Answer { status: Some(500), cause, at: Timestamp(number as i64), duration_ms: 1 };
        log.note(DeliveryTry { number, answer, response: response.into() });
    }

    fn numbers(log: &TryLog) -> Vec<u64> {
        log.newest_first(|_| true).iter().map(|tried| tried.number).collect()
    }

    #[test]
    fn what_is_accepted_takes_no_room_from_what_failed() {
        let mut log = TryLog::default();
        (1..=3).for_each(|number| note(&mut log, number, Some(Cause::Status), ""));
        (4..=99).for_each(|number| note(&mut log, number, None, ""));
        assert_eq!(numbers(&log), (50..=99).rev().chain([3, 2, 1]).collect::<Vec<_>>());
        (100..=1_097).for_each(|number| note(&mut log, number, Some(Cause::Timeout), ""));
        assert_eq!(numbers(&log), (100..=1_097).rev().chain((50..=99).rev()).chain([3, 2]).collect::<Vec<_>>());
    }

    #[test]
    fn tries_of_events_that_are_gone_and_old_ones_are_forgotten() {
        let mut log = TryLog::default();
        (1..=9).for_each(|number| note(&mut log, number, (number % 2 == 0).then_some(Cause::Status), ""));
        log.forget(7, Timestamp(4));
        assert_eq!(numbers(&log), [7, 6, 5, 4]);
    }

    #[test]
    fn a_full_log_has_a_bound_in_bytes_and_reads_back() {
        let mut log = TryLog::default();
        for number in 0..2_000 {
            let cause = (number % 2 == 0).then_some(Cause::Status);
            note(&mut log, number + (1 << 40), cause, &"x".repeat(1_024));
        }
        let responses = |cause: bool| {
            let of_kind = log.newest_first(|tried| tried.answer.cause.is_some() == cause);
            of_kind.iter().map(|tried| tried.response.len()).collect::<Vec<_>>()
        };
        for (is_failed, most) in [(true, FAILED_MAX), (false, ACCEPTED_MAX)] {
            let lengths = responses(is_failed);
            assert_eq!((lengths.len(), lengths.iter().sum::<usize>()), (most, RESPONSE_BYTES_MAX));
            assert!(lengths[..16].iter().all(|length| *length == 1_024), "the newest have theirs");
        }
        let bytes = minicbor::to_vec(&log).unwrap();
        assert!(bytes.len() < 68 << 10, "{} bytes", bytes.len());
        assert_eq!(minicbor::decode::<TryLog>(&bytes).unwrap(), log);
    }
}
