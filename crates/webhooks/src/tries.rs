//! Log of the last tries to deliver webhooks, in memory: which event, when, how it ended, and the
//! first KiB of the answer's body.
//!
//! It keeps the last 100 tries of an endpoint, among the last 65,536 of all endpoints whose answers
//! have 8 MiB together: some 14 MiB at most, however many endpoints there are.

use std::collections::{HashMap, VecDeque};

use derived::outbox::Answer;

use super::EndpointId;

/// Largest number of stored tries of one endpoint.
const OF_ENDPOINT_MAX: usize = 100;
/// Largest number of stored tries of all endpoints.
const OF_ALL_MAX: usize = 65_536;
/// Bytes of answers of all stored tries.
const RESPONSE_BYTES_MAX: usize = 8 << 20;

/// One try to deliver an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTry {
    /// The event's number among those of its group.
    pub number: u64,
    /// How it ended.
    pub answer: Answer,
    /// The first KiB of the answer's body.
    pub response: Box<str>,
}

/// The stored tries.
#[derive(Debug, Default)]
pub(super) struct TryLog {
    endpoints: HashMap<EndpointId, OfEndpoint>,
    /// The endpoint of each of the last tries, oldest first.
    order: VecDeque<EndpointId>,
    /// Bytes of the answers of all stored tries.
    response_bytes: usize,
}

#[derive(Debug, Default)]
struct OfEndpoint {
    tries: VecDeque<DeliveryTry>,
    /// How many of this endpoint in the order of all are gone from `tries` already.
    gone: usize,
}

impl TryLog {
    /// Notes a try that has ended.
    pub(super) fn note(&mut self, id: EndpointId, ended: DeliveryTry) {
        self.response_bytes += ended.response.len();
        let of_endpoint = self.endpoints.entry(id).or_default();
        if of_endpoint.tries.len() >= OF_ENDPOINT_MAX {
            let oldest = of_endpoint.tries.pop_front();
            self.response_bytes -= oldest.map_or(0, |oldest| oldest.response.len());
            of_endpoint.gone += 1;
        }
        of_endpoint.tries.push_back(ended);
        self.order.push_back(id);
        while self.order.len() > OF_ALL_MAX || self.response_bytes > RESPONSE_BYTES_MAX {
            self.forget_oldest();
        }
    }

    /// The last tries of an endpoint, newest first.
    pub(super) fn of(&self, id: EndpointId) -> Vec<DeliveryTry> {
        self.endpoints.get(&id).map(|log_of| log_of.tries.iter().rev().cloned().collect()).unwrap_or_default()
    }

    fn forget_oldest(&mut self) {
        let Some(id) = self.order.pop_front() else { return };
        let Some(of_endpoint) = self.endpoints.get_mut(&id) else { return };
        if of_endpoint.gone > 0 {
            of_endpoint.gone -= 1;
            return;
        }
        let oldest = of_endpoint.tries.pop_front();
        self.response_bytes -= oldest.map_or(0, |oldest| oldest.response.len());
        if of_endpoint.tries.is_empty() {
            self.endpoints.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger::id::{GroupNumber, ObjectId};
    use ledger::time::Timestamp;

    use super::*;

    fn id(number: u32) -> EndpointId {
        (GroupNumber(number), ObjectId(number.into()))
    }

    fn note(log: &mut TryLog, endpoint: u32, number: u64) {
        let answer = Answer { status: Some(204), cause: None, at: Timestamp(1), duration_ms: 1 };
        log.note(id(endpoint), DeliveryTry { number, answer, response: "".into() });
    }

    fn numbers(log: &TryLog, endpoint: u32) -> Vec<u64> {
        log.of(id(endpoint)).iter().map(|log_of| log_of.number).collect()
    }

    #[test]
    fn the_last_hundred_of_an_endpoint_are_kept() {
        let mut log = TryLog::default();
        (1..=250).for_each(|number| note(&mut log, 1, number));
        note(&mut log, 2, 7);
        assert_eq!(numbers(&log, 1), (151..=250).rev().collect::<Vec<_>>());
        assert_eq!((numbers(&log, 2), numbers(&log, 3)), (vec![7], vec![]));
    }

    #[test]
    fn the_oldest_of_all_are_forgotten_first() {
        let mut log = TryLog::default();
        (1..=150).for_each(|number| note(&mut log, 1, number));
        let others = OF_ALL_MAX as u64 - 150;
        (1..=others).for_each(|number| note(&mut log, 2 + number as u32, number));
        assert_eq!(numbers(&log, 1).len(), 100);
        (1..=60).for_each(|number| note(&mut log, 2, number));
        assert_eq!(numbers(&log, 1), (61..=150).rev().collect::<Vec<_>>());
        (61..=150).for_each(|number| note(&mut log, 2, number));
        assert_eq!(numbers(&log, 1), [0; 0]);
        assert_eq!((log.order.len(), log.endpoints.contains_key(&id(1))), (OF_ALL_MAX, false));
        assert_eq!(log.endpoints.values().map(|log_of| log_of.tries.len() + log_of.gone).sum::<usize>(), OF_ALL_MAX);
    }

    #[test]
    fn answers_have_room_together() {
        let mut log = TryLog::default();
        let answer = Answer { status: Some(500), cause: None, at: Timestamp(1), duration_ms: 1 };
        for number in 0..10_000_u32 {
            log.note(id(number), DeliveryTry { number: 1, answer, response: "x".repeat(1024).into() });
        }
        assert_eq!((log.order.len(), log.response_bytes), (8 * 1024, RESPONSE_BYTES_MAX));
        assert_eq!((numbers(&log, 9_999), numbers(&log, 0)), (vec![1], vec![]));
    }
}
