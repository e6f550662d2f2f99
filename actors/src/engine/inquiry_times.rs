//! Memory of questions to rails: which orders are being sent for the first time, and when open
//! charges, cashouts, repayments and returned withdrawals were last asked about. It is not durable:
//! after a restart all are asked again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ledger::rail_word::UNKNOWN_FOR_MS;
use ledger::recipient::{OpenWithdrawal, Returnable};
use ledger::{Centavos, LedgerId, ObjectId, RailName, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::TRY_AGAIN_AFTER_MS;

/// How often an institution is asked at most about something old that it leaves open, milliseconds.
pub(super) const ASK_EVERY_MAX_MS: i64 = 60 * 60 * 1000;

/// How late a question may come, while many rails are silent, milliseconds.
const ASKED_LATE_MS: i64 = 10 * 60 * 1000;

/// How long an order counts as under way after its rail last said so, milliseconds: 70 minutes, by
/// which time it was asked about again.
const UNDER_WAY_FOR_MS: i64 = ASK_EVERY_MAX_MS + ASKED_LATE_MS;

/// How long to wait before the next question about something that is open since `since` and was
/// asked about at `asked_at`, milliseconds: an eighth of its age, 5 s to 1 h.
pub(super) fn wait_ms(since: Timestamp, asked_at: Timestamp) -> i64 {
    ((asked_at.0 - since.0) / 8).clamp(TRY_AGAIN_AFTER_MS, ASK_EVERY_MAX_MS)
}

/// What became of an order that its rail was asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderFate {
    /// It has ended, and that is booked.
    Ended,
    /// The rail has it, and has not ended it.
    UnderWay,
    /// The rail did not say.
    Unknown,
}

/// Since when the oldest order at each rail is unknown. A sandbox's rail has no name.
pub(super) type OldestUnknown = BTreeMap<Option<RailName>, Timestamp>;

/// Notes an order that is unknown since `at`.
pub(super) fn note_older(oldest: &mut OldestUnknown, rail: &Option<RailName>, at: Timestamp) {
    match oldest.get_mut(rail) {
        Some(known) => *known = at.min(*known),
        None => drop(oldest.insert(rail.clone(), at)),
    }
}

/// The last question about an open charge, repayment or cashout.
#[derive(Clone)]
pub(super) struct Inquiry {
    /// The charge and the amount in centavos of a charge or repayment; `None` of a cashout.
    pub(super) of_charge: Option<(ObjectId, Centavos)>,
    /// The order's rail.
    pub(super) rail: Option<RailName>,
    /// Since when it is open.
    pub(super) since: Timestamp,
    /// When the rail was asked.
    pub(super) at: Timestamp,
    /// When the rail last said that it has the order under way, perhaps in an earlier answer.
    pub(super) under_way_at: Option<Timestamp>,
}

/// When rails were last asked about charges, repayments and cashouts that are still open. After a
/// restart they are asked again.
#[derive(Clone, Default)]
pub(super) struct Inquiries(Arc<Mutex<HashMap<ObjectId, Inquiry>>>);

impl Inquiries {
    /// Whether it is time to ask about something that is open since `since`.
    pub(super) fn is_time(&self, id: ObjectId, since: Timestamp, now: Timestamp) -> bool {
        self.0.lock().get(&id).is_none_or(|inquiry| inquiry.at.plus_ms(wait_ms(since, inquiry.at)) <= now)
    }

    /// Forgets questions of two hours ago or more: what is still open was asked about since.
    pub(super) fn forget_due(&self, now: Timestamp) {
        self.0.lock().retain(|_, inquiry| inquiry.at.plus_ms(2 * ASK_EVERY_MAX_MS) > now);
    }

    /// The charges and repayments that rails have left unknown for an hour, each with the charge
    /// and the amount. One that is not asked about any more has ended elsewhere.
    pub(super) fn unknown(&self, now: Timestamp) -> Vec<(ObjectId, (ObjectId, Centavos))> {
        let inquiries = self.0.lock();
        let is_old = |inquiry: &Inquiry| inquiry.since.plus_ms(UNKNOWN_FOR_MS) <= now;
        let is_open = |inquiry: &Inquiry| inquiry.at.plus_ms(wait_ms(inquiry.since, inquiry.at) + ASKED_LATE_MS) > now;
        let unknown = inquiries.iter().filter(|(_, inquiry)| is_old(inquiry) && is_open(inquiry));
        unknown.filter_map(|(id, inquiry)| Some((*id, inquiry.of_charge?))).collect()
    }

    /// Whether the rail's last answer was that it has the order under way.
    pub(super) fn is_under_way(&self, id: ObjectId) -> bool {
        self.0.lock().get(&id).is_some_and(Inquiry::is_under_way)
    }

    /// Whether the rail said in the last 70 minutes that it has the order under way, even if it has
    /// been silent since.
    pub(super) fn was_under_way(&self, id: ObjectId, now: Timestamp) -> bool {
        let under_way_at = self.0.lock().get(&id).and_then(|inquiry| inquiry.under_way_at);
        under_way_at.is_some_and(|at| at.plus_ms(UNDER_WAY_FOR_MS) > now)
    }

    /// Notes when the cashouts were created of which their rails have not said what became of them.
    pub(super) fn note_oldest_cashouts(&self, oldest: &mut OldestUnknown) {
        let inquiries = self.0.lock();
        let cashouts = inquiries.iter().filter(|(_, inquiry)| inquiry.of_charge.is_none());
        let unknown = cashouts.filter(|(_, inquiry)| !inquiry.is_under_way());
        unknown.for_each(|(id, inquiry)| note_older(oldest, &inquiry.rail, id.created_at()));
    }

    /// Forgets what has ended.
    pub(super) fn forget(&self, id: ObjectId) {
        self.0.lock().remove(&id);
    }

    /// Notes that a rail was asked, and what it said.
    pub(super) fn note(&self, id: ObjectId, asked: Inquiry, fate: OrderFate) {
        let mut inquiries = self.0.lock();
        let before = inquiries.remove(&id);
        let under_way_at = match fate {
            OrderFate::Ended => return,
            OrderFate::UnderWay => Some(asked.at),
            OrderFate::Unknown => before.and_then(|inquiry| inquiry.under_way_at),
        };
        inquiries.insert(id, Inquiry { under_way_at, ..asked });
    }
}

impl Inquiry {
    fn is_under_way(&self) -> bool {
        self.under_way_at == Some(self.at)
    }
}

/// Cashouts and card charges that are being ordered for the first time while their caller waits.
/// The sender is dropped when that is over.
#[derive(Default)]
pub(super) struct FirstTries(Mutex<HashMap<ObjectId, watch::Receiver<()>>>);

/// Guard of the first try to order a cashout or card charge: the try is over when the guard is
/// dropped.
pub(super) struct FirstTry<'a> {
    id: ObjectId,
    tries: &'a FirstTries,
    _over_when_dropped: watch::Sender<()>,
}

impl Drop for FirstTry<'_> {
    fn drop(&mut self) {
        self.tries.0.lock().remove(&self.id);
    }
}

impl FirstTries {
    pub(super) fn begin(&self, id: ObjectId) -> FirstTry<'_> {
        let (sender, receiver) = watch::channel(());
        self.0.lock().insert(id, receiver);
        FirstTry { id, tries: self, _over_when_dropped: sender }
    }

    /// Whether an order is being sent for the first time.
    pub(super) fn has(&self, id: ObjectId) -> bool {
        self.0.lock().contains_key(&id)
    }

    /// Waits while an order is being sent for the first time: the answer to that try belongs to its
    /// request.
    pub(super) async fn over(&self, id: ObjectId) {
        let first_try = self.0.lock().get(&id).cloned();
        if let Some(mut first_try) = first_try {
            let _dropped = first_try.changed().await;
        }
    }
}

/// When this process last asked the institution whether a recipient's paid withdrawals came back.
/// After a restart it asks again.
#[derive(Default)]
pub(super) struct ReturnsAsked(Mutex<HashMap<LedgerId, Vec<(ObjectId, Timestamp)>>>);

impl ReturnsAsked {
    /// The withdrawals to ask about at `now`.
    pub(super) fn due(&self, recipient: LedgerId, returnable: &[Returnable], now: Timestamp) -> Vec<OpenWithdrawal> {
        let inquiries = self.0.lock();
        let times_of = inquiries.get(&recipient).map(Vec::as_slice).unwrap_or_default();
        let is_due = |one: &&Returnable| {
            let last = times_of.iter().find(|(id, _)| *id == one.withdrawal.id).map_or(one.paid_at, |(_, at)| *at);
            one.until >= now && one.asked_at().any(|at| last < at && at <= now)
        };
        returnable.iter().filter(is_due).map(|one| one.withdrawal.clone()).collect()
    }

    /// Notes which were asked about at `now`; the others that may still come back keep their time.
    pub(super) fn note(&self, recipient: LedgerId, returnable: &[Returnable], answered: &[ObjectId], now: Timestamp) {
        let mut looks_of = self.0.lock();
        let mut times = looks_of.remove(&recipient).unwrap_or_default();
        times.retain(|(id, _)| returnable.iter().any(|one| one.withdrawal.id == *id) && !answered.contains(id));
        times.extend(answered.iter().map(|id| (*id, now)));
        if !times.is_empty() {
            looks_of.insert(recipient, times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A charge that ended by another way than a question is no operator's an hour later.
    #[test]
    fn an_order_that_is_not_asked_about_any_more_is_not_unknown() {
        let (inquiries, since) = (Inquiries::default(), Timestamp(0));
        let of_charge = Some((ObjectId(1), Centavos(1)));
        let inquiry_at = |minutes: i64| Inquiry {
            of_charge,
            rail: None,
            since,
            at: Timestamp(minutes * 60_000),
            under_way_at: None,
        };
        let unknown = |minutes: i64| inquiries.unknown(Timestamp(minutes * 60_000)).len();
        inquiries.note(ObjectId(1), inquiry_at(1), OrderFate::Unknown);
        assert_eq!([unknown(5), unknown(61)], [0, 0]);
        inquiries.note(ObjectId(1), inquiry_at(60), OrderFate::Unknown);
        assert_eq!([unknown(59), unknown(61), unknown(76), unknown(78)], [0, 1, 1, 0]);
        inquiries.note(ObjectId(1), inquiry_at(60), OrderFate::Ended);
        assert_eq!(unknown(61), 0);
    }
}
