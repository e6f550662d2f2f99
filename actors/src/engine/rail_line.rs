//! Line to a rail: every call of the engine goes through it. It bounds the time of a call and the
//! number of calls in flight, and has a breaker: 20 calls in a row without an answer open it. While
//! it is open nothing is sent, but for one call in 5 s that tests it; the first answer closes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::rail_word::AskedRailWord;
use ledger::{Event, GroupNumber, LedgerId, MerchantCommand, ObjectId, RailName, RecipientCommand, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, Result, Unavailable};
use crate::rails::{Call, NamedRails, PayoutAnswer, PayoutRail, RailError, Rails, SendPayout};
use crate::resident::Outcome;

/// Calls in a row without an answer that open the breaker.
const UNANSWERED_MAX: u32 = 20;
/// How often a call tests a rail whose breaker is open.
const TESTED_EVERY: Duration = Duration::from_secs(5);

/// How long the institution may take before the caller is answered that the transfer is under way.
const FIRST_ANSWER_MAX: Duration = Duration::from_millis(1_500);
/// How long after its Record a transfer may be ordered for the first time, milliseconds.
const ORDERED_WITHIN_MS: i64 = 10_000;
/// How often a rail with calls that got no answer is named in the log.
const NAMED_EVERY: Duration = Duration::from_secs(60);
/// Calls of one rail that may be under way at once. More of them wait within their time.
const IN_FLIGHT_MAX: usize = 1_024;

/// Breaker of one rail, and its limit of calls in flight. Those of a sandbox let everything pass:
/// its clock is not that of its rails.
#[derive(Clone)]
pub(super) struct Breaker(Option<Arc<LiveBreaker>>);

struct LiveBreaker {
    rail: RailName,
    state: Mutex<BreakerState>,
    in_flight: Semaphore,
}

struct BreakerState {
    unanswered: u32,
    tested_at: Instant,
    /// When the log last said that a call had no answer.
    named_at: Option<Instant>,
}

impl BreakerState {
    fn is_open(&self) -> bool {
        self.unanswered >= UNANSWERED_MAX
    }

    fn is_test_due(&self) -> bool {
        self.tested_at.elapsed() >= TESTED_EVERY
    }
}

impl Breaker {
    /// The closed breaker of a rail.
    fn of(rail: RailName) -> Self {
        let state = Mutex::new(BreakerState { unanswered: 0, tested_at: Instant::now(), named_at: None });
        Self(Some(Arc::new(LiveBreaker { rail, state, in_flight: Semaphore::new(IN_FLIGHT_MAX) })))
    }

    /// Whether a call would be sent now.
    fn would_admit(&self) -> bool {
        self.0.as_ref().is_none_or(|live| {
            let state = live.state.lock();
            live.in_flight.available_permits() > 0 && (!state.is_open() || state.is_test_due())
        })
    }

    /// Makes a call that may take so long, the wait for others included.
    pub(super) async fn call<T, F: Future<Output = Result<T, RailError>>>(
        &self,
        most: Duration,
        call: impl FnOnce() -> F,
    ) -> Result<T, RailError> {
        let until = tokio::time::Instant::now() + most;
        let _one_of_few = match &self.0 {
            Some(live) => match timeout_at(until, live.in_flight.acquire()).await {
                Ok(Ok(permit)) => Some(permit),
                _ => return Err(RailError::NotSent),
            },
            None => None,
        };
        if !self.admit() {
            return Err(RailError::NotSent);
        }
        let answer = timeout_at(until, call()).await.unwrap_or(Err(RailError::NoAnswer));
        // An adapter may say so without a call.
        if !matches!(answer, Err(RailError::HasNone)) {
            self.note(answer.is_ok());
        }
        answer
    }

    /// Whether a call may be sent. One that tests the rail is the only one for a while.
    fn admit(&self) -> bool {
        self.0.as_ref().is_none_or(|live| {
            let mut state = live.state.lock();
            if !state.is_open() {
                return true;
            }
            let is_test_due = state.is_test_due();
            if is_test_due {
                state.tested_at = Instant::now();
            }
            is_test_due
        })
    }

    fn note(&self, is_answered: bool) {
        let Some(live) = &self.0 else { return };
        let mut state = live.state.lock();
        let (was_open, rail) = (state.is_open(), &live.rail);
        state.unanswered = if is_answered { 0 } else { state.unanswered.saturating_add(1) };
        match (was_open, state.is_open()) {
            (false, true) => {
                state.tested_at = Instant::now();
                tracing::warn!(%rail, calls = UNANSWERED_MAX, "a rail does not answer: new charges of it are refused");
            }
            (true, false) => tracing::info!(%rail, "a rail answers again"),
            _ if !is_answered && state.named_at.is_none_or(|at| at.elapsed() >= NAMED_EVERY) => {
                state.named_at = Some(Instant::now());
                tracing::warn!(%rail, "a call to a rail had no answer; it is asked again by the id of the order");
            }
            _ => {}
        }
    }
}

/// The breakers of all rails.
pub(super) struct Breakers {
    pub(super) card: NamedBreakers,
    pub(super) payout: NamedBreakers,
    pub(super) pix: NamedBreakers,
}

impl Breakers {
    pub(super) fn of(rails: &Rails, is_sandbox: bool) -> Self {
        Self {
            card: NamedBreakers::of(&rails.card, is_sandbox),
            payout: NamedBreakers::of(&rails.payout, is_sandbox),
            pix: NamedBreakers::of(&rails.pix, is_sandbox),
        }
    }
}

/// The breakers of the rails of one kind.
pub(super) struct NamedBreakers {
    by_name: BTreeMap<RailName, Breaker>,
    sandbox: Breaker,
}

impl NamedBreakers {
    fn of<R: ?Sized>(rails: &NamedRails<R>, is_sandbox: bool) -> Self {
        let breaker = |name: &RailName| if is_sandbox { Breaker(None) } else { Breaker::of(name.clone()) };
        let by_name = rails.named_ones().map(|(name, _)| (name.clone(), breaker(name)));
        Self { by_name: by_name.collect(), sandbox: Breaker(None) }
    }

    /// The line to the rail of this name, which a sandbox's has not; an error where it is not
    /// configured.
    pub(super) fn line<'a, R: ?Sized>(
        &'a self,
        rails: &'a NamedRails<R>,
        name: Option<&RailName>,
    ) -> Result<RailLine<'a, R>, Unavailable> {
        let rail = rails.get(name).ok_or(Unavailable::NoRail)?;
        Ok(RailLine { rail, breaker: name.and_then(|name| self.by_name.get(name)).unwrap_or(&self.sandbox) })
    }
}

/// A rail with its breaker.
pub(super) struct RailLine<'a, R: ?Sized> {
    pub(super) rail: &'a R,
    pub(super) breaker: &'a Breaker,
}

impl<'a, R: ?Sized> RailLine<'a, R> {
    /// Makes a call that may take so long.
    pub(super) async fn call<T>(
        &self,
        most: Duration,
        call: impl FnOnce(&'a R) -> Call<'a, T>,
    ) -> Result<T, RailError> {
        self.breaker.call(most, || call(self.rail)).await
    }

    /// Refuses something new for a rail whose breaker is open, before anything of it is written.
    pub(super) fn require_answers(&self) -> Result<(), Unavailable> {
        if self.breaker.would_admit() { Ok(()) } else { Err(Unavailable::RailUnavailable) }
    }
}

impl RailLine<'_, dyn PayoutRail> {
    /// Orders a transfer for the first time. One that was held up after its Record is left to the
    /// schedule, which may have asked about it already.
    pub(super) async fn order_first(&self, call: SendPayout, now: Timestamp) -> Result<PayoutAnswer, RailError> {
        match call.ordered_at.plus_ms(ORDERED_WITHIN_MS) > now {
            true => self.call(FIRST_ANSWER_MAX, |rail| rail.send(call)).await,
            false => Err(RailError::NotSent),
        }
    }

    /// Whether a transfer that the institution says it does not have may be ordered once more: the
    /// last order can't turn up there any more, and a repeat is not carried out twice.
    fn may_order_again(&self, first: Timestamp, last: Timestamp, now: Timestamp) -> bool {
        let horizon_ms = i64::try_from(self.rail.horizon().as_millis()).unwrap_or(i64::MAX);
        now.0.saturating_sub(last.0) >= horizon_ms && self.rail.may_send_again(first, now)
    }
}

impl Engine {
    /// Makes an order under an id of ours. One that may have been sent before (`is_repeat`, which
    /// the call is given) is asked for; where the rail has none, a Record comes before the order.
    /// [`RailError::NoAnswer`] where it may not be sent again: see [`Engine::note_try`].
    pub(super) async fn order<'a, R: ?Sized, T>(
        &self,
        (group, id): (GroupNumber, ObjectId),
        line: &RailLine<'a, R>,
        (most, is_repeat): (Duration, bool),
        call: impl Fn(&'a R, bool) -> Call<'a, T>,
    ) -> Result<T, RailError> {
        let begun = Instant::now();
        let answer = line.call(most, |rail| call(rail, is_repeat)).await;
        if !matches!(answer, Err(RailError::HasNone)) {
            return answer;
        }
        if !matches!(self.note_try(LedgerId::Merchant(group), id).await, Ok(true)) {
            return Err(RailError::NoAnswer);
        }
        let again = line.call(most.saturating_sub(begun.elapsed()), |rail| call(rail, false)).await;
        again.map_err(|_| RailError::NoAnswer)
    }

    /// Asks about a transfer that was last ordered at `last`. What the institution surely does not
    /// have is ordered again, once the last order can't turn up there any more. `None` of one that
    /// has ended; no answer is an error.
    pub(super) async fn find_transfer(
        &self,
        (owner, last): (LedgerId, Timestamp),
        rail: Option<&RailName>,
        call: SendPayout,
        now: Timestamp,
    ) -> Result<Option<PayoutAnswer>> {
        let line = self.payout_rail(rail)?;
        let mut answer = line.call(RAIL_ANSWER_MAX, |rail| rail.find(call.clone(), now)).await;
        if answer == Ok(PayoutAnswer::NotTaken) {
            if !line.may_order_again(call.ordered_at, last, now) {
                return Err(Unavailable::OutcomeUnknown);
            }
            if !self.note_try(owner, call.id).await? {
                return Ok(None);
            }
            answer = line.call(RAIL_ANSWER_MAX, |rail| rail.send(call)).await;
        }
        answer.map(Some).map_err(|_| Unavailable::OutcomeUnknown)
    }

    /// Notes that an order is sent once more, before it is. False where it has ended. Error: an
    /// operator has said what became of it. From that word on it is only asked for, so that nothing
    /// is on its way when a second operator ends it.
    pub(super) async fn note_try(&self, owner: LedgerId, id: ObjectId) -> Result<bool> {
        let records = self.records_about(id)?;
        if AskedRailWord::in_records(&records, id, self.now()).is_some() {
            return Err(Unavailable::OutcomeUnknown);
        }
        let is_try = |event: &&Event| matches!(event, Event::RailTried { id: of, .. } if *of == id);
        let tries = records.iter().flat_map(|record| &record.events).filter(is_try).count();
        let attempt = u32::try_from(tries).unwrap_or(u32::MAX).saturating_add(2);
        let permit = self.admission.take(INSIDE_BYTES).await;
        let tried = match owner {
            LedgerId::Merchant(group) => self.command(group, MerchantCommand::TryOrder { id, attempt }, permit).await,
            recipient => {
                self.command_recipient(recipient, RecipientCommand::TryWithdrawal { id, attempt }, permit).await
            }
        };
        Ok(matches!(tried?, Outcome::Recorded(_)))
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures_util::FutureExt;

    use super::*;

    const MOST: Duration = Duration::from_secs(1);

    async fn ask(breaker: &Breaker, answer: Result<(), RailError>) -> Result<(), RailError> {
        RailLine { rail: &(), breaker }.call(MOST, |()| Box::pin(ready(answer))).await
    }

    #[tokio::test]
    async fn a_rail_without_answers_is_left_alone_until_it_answers() {
        let breaker = Breaker::of(RailName::parse("itau").unwrap());
        for unanswered in [RailError::NotSent, RailError::NoAnswer].into_iter().cycle().take(19) {
            assert_eq!(ask(&breaker, Err(unanswered)).await, Err(unanswered));
        }
        // An answer in between begins the count anew.
        assert_eq!(ask(&breaker, Ok(())).await, Ok(()));
        for number in 0..20 {
            assert!(breaker.would_admit());
            if number == 10 {
                assert_eq!(ask(&breaker, Err(RailError::HasNone)).await, Err(RailError::HasNone), "says nothing");
            }
            assert_eq!(ask(&breaker, Err(RailError::NoAnswer)).await, Err(RailError::NoAnswer));
        }
        assert_eq!(ask(&breaker, Ok(())).await, Err(RailError::NotSent), "nothing is sent");
        let line = RailLine { rail: &(), breaker: &breaker };
        assert!(matches!(line.require_answers(), Err(Unavailable::RailUnavailable)));
        let test_is_due = || breaker.0.as_ref().unwrap().state.lock().tested_at -= TESTED_EVERY;
        test_is_due();
        assert_eq!(ask(&breaker, Err(RailError::NoAnswer)).await, Err(RailError::NoAnswer), "one tests it");
        assert_eq!(ask(&breaker, Ok(())).await, Err(RailError::NotSent));
        test_is_due();
        assert!(line.require_answers().is_ok());
        assert_eq!(ask(&breaker, Ok(())).await, Ok(()));
        assert_eq!(ask(&breaker, Ok(())).await, Ok(()));
    }

    #[tokio::test]
    async fn a_call_ends_in_its_time() {
        let line = RailLine { rail: &(), breaker: &Breaker::of(RailName::parse("itau").unwrap()) };
        let answer = line.call::<()>(Duration::from_millis(1), |()| Box::pin(std::future::pending())).await;
        assert_eq!(answer, Err(RailError::NoAnswer));
    }

    #[tokio::test]
    async fn few_calls_are_under_way_at_once() {
        let breaker = Breaker::of(RailName::parse("itau").unwrap());
        let rail = &();
        let silent = || async {
            RailLine { rail, breaker: &breaker }.call::<()>(MOST, |()| Box::pin(std::future::pending())).await
        };
        let mut under_way = Vec::from_iter((0..IN_FLIGHT_MAX).map(|_| Box::pin(silent())));
        under_way.iter_mut().for_each(|call| assert!(call.now_or_never().is_none()));
        assert!(!breaker.would_admit(), "new orders are refused");
        let line = RailLine { rail, breaker: &breaker };
        let one_more = line.call(Duration::from_millis(1), |()| Box::pin(ready(Ok(()))));
        assert_eq!(one_more.await, Err(RailError::NotSent));
        drop(under_way);
        assert_eq!(ask(&breaker, Ok(())).await, Ok(()));
    }

    #[tokio::test]
    async fn a_sandbox_is_always_asked() {
        let breaker = Breaker(None);
        for _ in 0..100 {
            assert_eq!(ask(&breaker, Err(RailError::NoAnswer)).await, Err(RailError::NoAnswer));
        }
    }
}
