//! Withdrawals (interface 2.9, 3.5), one at a time. A withdrawal takes all available money and pins
//! it until an administrator has decided and the institution has taken the transfer.

use minicbor::{Decode, Encode};

use super::RecipientState;
use crate::event::{Cut, Settlement, Span};
use crate::money::is_nothing;
use crate::rail_word::SayRailWord;
use crate::{Centavos, Decision, Event, ObjectId, PayoutBank, RailName, Rejection, Result, Sealed, Timestamp};

/// The institution's answer to a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferOutcome {
    /// The institution has taken it.
    Taken {
        /// Its own id of the transfer.
        transfer_id: String,
        /// The account that the money left.
        bank: PayoutBank,
    },
    /// The institution surely does not have it, or could not carry it out: no money has moved.
    Refused {
        /// The reason, for whoever asked.
        notes: String,
    },
}

/// A withdrawal that is not settled yet. Field 10 of its encoding is a count in older states, and
/// is not used again.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OpenWithdrawal {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// The amount, centavos.
    #[n(1)]
    pub amount: Centavos,
    /// The splits in it.
    #[n(2)]
    pub spans: Vec<Span>,
    /// The part of these splits that debts had consumed, oldest first.
    #[n(3)]
    pub consumed: Centavos,
    /// The anticipated part, and when that can be sent.
    #[n(4)]
    pub settlements: Vec<Settlement>,
    /// When an administrator approved it.
    #[n(5)]
    pub approved_at: Option<Timestamp>,
    /// The account that the money goes to: a sealed [`crate::personal::BankAccount`].
    #[n(6)]
    pub destination: Sealed,
    /// The account that the money left, once it was paid.
    #[n(7)]
    pub bank: Option<PayoutBank>,
    /// The institution that sends it, once it was approved; none in a sandbox.
    #[n(8)]
    pub rail: Option<RailName>,
    /// When it was last ordered, if that was not only at the approval.
    #[n(9)]
    pub tried_at: Option<Timestamp>,
    /// The part of the amount that is goodwill, which no split has.
    #[cbor(n(11), default, skip_if = "is_nothing")]
    pub goodwill: Centavos,
}

/// A withdrawal that was paid and may still come back from the bank.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Returnable {
    /// The withdrawal as it was when it was paid.
    #[n(0)]
    pub withdrawal: OpenWithdrawal,
    /// When the institution had taken it.
    #[n(1)]
    pub paid_at: Timestamp,
    /// Until when the institution is asked about it.
    #[n(2)]
    pub until: Timestamp,
}

impl Returnable {
    /// When the institution is asked whether it came back: 10 minutes, an hour, and 1, 2, 4, 8 and
    /// 16 days after it was paid.
    pub fn asked_at(&self) -> impl Iterator<Item = Timestamp> {
        let times = ASKED_AFTER_MINUTES.into_iter().map(|minutes| self.paid_at.plus_ms(minutes * 60_000));
        times.filter(|at| *at <= self.until)
    }

    /// The last time before `now` at which the institution was to be asked, or the first time of
    /// all.
    pub(super) fn asked_last(&self, now: Timestamp) -> Option<Timestamp> {
        self.asked_at().filter(|at| *at <= now).last().or_else(|| self.asked_at().next())
    }
}

/// Notes of a withdrawal that the merchant took back.
const CANCELLED: &str = "Cancelado pelo lojista";

/// How long after the payment the institution is asked whether the money came back, minutes. A
/// transfer that it has taken and cannot carry out ends within the hour, as a rule; one that the
/// receiver's bank returns, within days.
const ASKED_AFTER_MINUTES: [i64; 7] = [10, 60, DAY, 2 * DAY, 4 * DAY, 8 * DAY, 16 * DAY];
/// A day, minutes.
const DAY: i64 = 24 * 60;

/// How long after the payment a withdrawal may still come back, days.
const RETURNABLE_DAYS: u16 = 30;

/// When the institution is first asked whether the bank returned a transfer that was paid at
/// `paid_at`.
pub fn first_asked_at(paid_at: Timestamp) -> Timestamp {
    paid_at.plus_ms(ASKED_AFTER_MINUTES[0] * 60_000)
}

/// Milliseconds after the approval until an unsettled transfer is asked about. The approval itself
/// sends it at once.
pub const SEND_AGAIN_AFTER_MS: i64 = 10_000;

/// Withdrawals of a recipient: how far its money has gone out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(super) struct Outflow {
    /// All splits in this cut are in some withdrawal that was not rejected, or in a hole.
    #[n(0)]
    pub(super) covered: Cut,
    /// The splits of rejected and returned withdrawals: they are available again.
    #[n(1)]
    pub(super) holes: Vec<Span>,
    /// The part of the available splits that debts consumed, oldest first. Below zero for money of
    /// failed refunds whose splits were paid out.
    #[n(2)]
    pub(super) consumed: Centavos,
    /// The anticipated part of Available, by the day on which it can be sent.
    #[n(3)]
    pub(super) settlements: Vec<Settlement>,
    /// The unsettled withdrawal.
    #[n(4)]
    pub(super) withdrawal: Option<OpenWithdrawal>,
    /// The paid withdrawals that may still come back, oldest first.
    #[n(5)]
    returnable: Vec<Returnable>,
    /// The part of Available that is goodwill, which no split has.
    #[cbor(n(6), default, skip_if = "is_nothing")]
    pub(super) goodwill: Centavos,
}

impl Outflow {
    /// When the institution is to be asked.
    pub(super) fn attention_at(&self) -> Option<Timestamp> {
        let approved_at = self.withdrawal.as_ref().and_then(|withdrawal| withdrawal.approved_at);
        approved_at.map(|at| at.plus_ms(SEND_AGAIN_AFTER_MS))
    }

    /// The money of the withdrawal has gone out.
    pub(super) fn pay(&mut self, at: Timestamp, until: Timestamp, bank: Option<PayoutBank>) {
        if let Some(withdrawal) = self.withdrawal.take() {
            let withdrawal = OpenWithdrawal { bank, ..withdrawal };
            self.returnable.push(Returnable { withdrawal, paid_at: at, until });
        }
    }

    /// The money of a paid withdrawal has come back.
    pub(super) fn take_back(&mut self, id: ObjectId) {
        self.returnable.retain(|returnable| returnable.withdrawal.id != id);
    }

    /// Forgets those that cannot come back any more.
    pub(super) fn forget_returnable(&mut self, now: Timestamp) {
        self.returnable.retain(|returnable| returnable.until >= now);
    }

    pub(super) fn returnable(&self) -> &[Returnable] {
        &self.returnable
    }

    /// All that is available goes into a withdrawal.
    pub(super) fn pin(&mut self, withdrawal: OpenWithdrawal) {
        self.covered = withdrawal.spans.last().map_or(self.covered, |span| span.through);
        self.holes.clear();
        self.consumed -= withdrawal.consumed;
        self.goodwill -= withdrawal.goodwill;
        self.settlements.clear();
        self.withdrawal = Some(withdrawal);
    }

    pub(super) fn approve(&mut self, at: Timestamp, rail: Option<RailName>) {
        if let Some(withdrawal) = &mut self.withdrawal {
            (withdrawal.approved_at, withdrawal.rail) = (Some(at), rail);
        }
    }

    /// The transfer of the withdrawal is ordered once more.
    pub(super) fn try_again(&mut self, at: Timestamp) {
        if let Some(withdrawal) = &mut self.withdrawal {
            withdrawal.tried_at = Some(at);
        }
    }

    /// The splits of a withdrawal are available again, and its goodwill.
    pub(super) fn put_back(&mut self, spans: &[Span], [consumed, goodwill]: [Centavos; 2], settlements: &[Settlement]) {
        self.holes = joined(self.holes.iter().chain(spans).copied().collect());
        self.consumed += consumed;
        self.goodwill += goodwill;
        self.settle_on(settlements);
    }

    /// Notes when anticipated money can be sent.
    pub(super) fn settle_on(&mut self, settlements: &[Settlement]) {
        for settlement in settlements {
            match self.settlements.binary_search_by_key(&settlement.day, |known| known.day) {
                Ok(place) => self.settlements[place].amount += settlement.amount,
                Err(place) => self.settlements.insert(place, *settlement),
            }
        }
    }
}

impl RecipientState {
    pub(super) fn withdraw(
        &self,
        id: ObjectId,
        destination: Sealed,
        reason: Option<String>,
        cut: Cut,
    ) -> Result<Decision> {
        let outflow = &self.outflow;
        self.check_not_frozen()?;
        if outflow.withdrawal.is_some() {
            return Err(Rejection::WithdrawalPending);
        }
        if !self.available().is_positive() {
            return Err(Rejection::NothingAvailable);
        }
        let new = Span { after: outflow.covered, through: cut };
        let requested = Event::WithdrawalRequested {
            id,
            amount: self.available(),
            spans: joined(outflow.holes.iter().copied().chain([new]).collect()),
            consumed: outflow.consumed,
            settlements: outflow.settlements.clone(),
            goodwill: outflow.goodwill,
        };
        let asked = reason.map(|reason| Event::ApprovalAsked { id, is_refund: false, reason: Some(reason) });
        Ok(Decision { events: [requested].into_iter().chain(asked).collect(), personal: Some(destination) })
    }

    /// The pending withdrawal, if it is this one and nobody has decided on it.
    pub(super) fn undecided(&self, id: ObjectId) -> Result<&OpenWithdrawal> {
        let pending = self.outflow.withdrawal.as_ref().filter(|pending| pending.id == id);
        pending.filter(|pending| pending.approved_at.is_none()).ok_or(Rejection::WithdrawalAlreadyDecided)
    }

    /// Refuses a withdrawal that cannot be approved.
    pub(super) fn approvable(&self, id: ObjectId) -> Result<()> {
        self.undecided(id)?;
        self.check_not_frozen()
    }

    pub(super) fn check_not_frozen(&self) -> Result<()> {
        if self.frozen { Err(Rejection::RecipientIsFrozen) } else { Ok(()) }
    }

    /// The institution's answer counts once: hearing it again changes nothing.
    pub(super) fn settle_withdrawal(&self, id: ObjectId, outcome: TransferOutcome, now: Timestamp) -> Result<Decision> {
        let approved = self.outflow.withdrawal.as_ref().filter(|pending| pending.id == id);
        let approved = approved.filter(|pending| pending.approved_at.is_some());
        let withdrawal = approved.ok_or(Rejection::WithdrawalAlreadyDecided)?;
        Ok(match outcome {
            TransferOutcome::Taken { transfer_id, bank } => Decision::of(Event::WithdrawalPaid {
                id,
                amount: withdrawal.amount,
                transfer_id,
                returnable_until: now.plus_days(RETURNABLE_DAYS),
                bank: Some(bank),
            }),
            TransferOutcome::Refused { notes } => self.rejected(withdrawal, notes),
        })
    }

    /// The bank returned a transfer that was paid. It counts once. The money comes back to the
    /// account that it left, unless the institution names another.
    pub(super) fn returned(&self, id: ObjectId, notes: String, to: Option<PayoutBank>) -> Result<Decision> {
        let found = self.outflow.returnable().iter().find(|returnable| returnable.withdrawal.id == id);
        let OpenWithdrawal { amount, spans, consumed, settlements, bank, goodwill, .. } =
            found.ok_or(Rejection::WithdrawalAlreadyDecided)?.withdrawal.clone();
        let bank = to.or(bank);
        let entry = None;
        let event =
            Event::WithdrawalReturned { id, amount, spans, consumed, notes, settlements, bank, entry, goodwill };
        Ok(self.with_recovery(event, amount))
    }

    /// The transfer of an approved withdrawal is ordered once more.
    pub(super) fn try_withdrawal(&self, id: ObjectId, attempt: u32) -> Result<Decision> {
        let open = self.outflow.withdrawal.as_ref().filter(|open| open.id == id && open.approved_at.is_some());
        open.ok_or(Rejection::WithdrawalAlreadyDecided)?;
        Ok(Decision::of(Event::RailTried { id, attempt }))
    }

    /// The first word of an operator is noted; the second one ends the withdrawal.
    pub(super) fn say_rail_word(&self, said: SayRailWord, now: Timestamp) -> Result<Decision> {
        let open = self.outflow.withdrawal.as_ref().filter(|open| open.id == said.id);
        let times = open.and_then(|open| Some((open.approved_at?, open.tried_at)));
        said.check_age(times.ok_or(Rejection::OutcomeNotUnknown)?, now)?;
        let Some(asked_by) = said.asked_by.clone() else { return Ok(Decision::of(said.into_request())) };
        let outcome = match said.word.happened {
            true => TransferOutcome::Taken { transfer_id: said.word.reference.clone(), bank: said.bank },
            false => TransferOutcome::Refused { notes: said.reason.clone() },
        };
        let mut decision = self.settle_withdrawal(said.id, outcome, now)?;
        decision.events.push(said.given(asked_by));
        Ok(decision)
    }

    pub(super) fn rejected(&self, withdrawal: &OpenWithdrawal, notes: String) -> Decision {
        let (id, amount) = (withdrawal.id, withdrawal.amount);
        self.with_recovery(Event::WithdrawalRejected { id, amount, notes, by_merchant: false }, amount)
    }

    pub(super) fn cancelled(&self, withdrawal: &OpenWithdrawal) -> Decision {
        let (id, amount, notes) = (withdrawal.id, withdrawal.amount, CANCELLED.to_owned());
        self.with_recovery(Event::WithdrawalRejected { id, amount, notes, by_merchant: true }, amount)
    }
}

/// The spans in order, those that follow each other as one.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|span| (span.through.foreign, span.through.minute, span.through.own));
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.through == span.after => last.through = span.through,
            _ => joined.push(span),
        }
    }
    joined
}
