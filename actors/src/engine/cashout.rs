//! Cashouts on their way out (interface 2.6, 3.2). The intent is durable before the institution is
//! called, and its answer is a second Record. While no answer is known, the schedule asks again by
//! our own id; an outcome is never guessed.
//!
//! A transfer is carried out once, however often it is ordered and whatever crashes in between: the
//! institution is idempotent on the id, and a cashout that has ended takes no second outcome.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ledger::cashout::CashoutStage;
use ledger::event::CashoutFailure;
use ledger::merchant::{CashoutOutcome, OpenCashout};
use ledger::{
    Cashout, Centavos, Event, Fingerprint, GroupNumber, LedgerId, MerchantCommand, MerchantState, ObjectId,
    PixDestination, RailName, RailStamp, Record, SealedFor, Timestamp,
};

use super::inquiry_times::{CashoutInquiryTimes, OrderFate, wait_ms};
use super::labels::{ReferenceLookup, reserving};
use super::outcome::CommandContext;
use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, RECONCILED_AT_ONCE, Result, Unavailable, read};
use crate::rails::{Destination, PayoutAnswer, RailError, SendPayout};
use crate::resident::{Envelope, Outcome, UniqueLookup};
use derived::records::LoadError;
use derived::seal::stocked_random_bytes;
use store::Sequence;

/// How long the institution may take before the caller is answered that the transfer is under way.
pub(super) const FIRST_ANSWER_MAX: Duration = Duration::from_millis(1_500);

/// A cashout, as a merchant asks for it.
#[derive(Clone, Debug)]
pub struct NewCashout {
    /// Gross, centavos.
    pub amount: Centavos,
    /// The receiver.
    pub destination: PixDestination,
    /// `merchant_transaction_id`, looked up.
    pub transaction: TransactionLookup,
    /// The unique reference, looked up; `None` where it has none.
    pub reference: Option<ReferenceLookup>,
}

/// A `merchant_transaction_id` that was looked up. A merchant uses each at most once, for ever.
#[derive(Clone, Copy, Debug)]
pub struct TransactionLookup {
    /// The UUID.
    pub id: [u8; 16],
    /// The merchant's cashout that has it, and the place of its Record in the merchant's lists.
    pub used_by: Option<(ObjectId, Sequence)>,
    /// Keyed digest of account and UUID.
    key: Fingerprint,
    /// How far the look-up saw; none for a new UUID, which no cashout can have.
    looked_up_through: Option<u64>,
}

/// A cashout that was ordered: what the request for it is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CashoutOrdered {
    /// Its id.
    pub id: ObjectId,
    /// The UUID of `merchant_transaction_id`.
    pub transaction: [u8; 16],
    /// Net amount for the receiver: gross less fee, centavos.
    pub net: Centavos,
    /// False when the institution surely did not take the transfer: the whole amount is available
    /// again.
    pub is_taken: bool,
}

impl CashoutOrdered {
    /// The cashout that a Record creates, as long as nothing else is known of it.
    fn of(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::CashoutCreated { id, transaction, amount, fee, .. } => {
                Some(Self { id: *id, transaction: *transaction, net: *amount - *fee, is_taken: true })
            }
            _ => None,
        })
    }
}

/// Result of a question about a cashout.
enum CashoutInquiry {
    Ended(CashoutOutcome, Option<RailStamp>),
    /// The journal has its outcome.
    EndedBefore,
    UnderWay,
    Unknown,
}

impl Engine {
    /// Looks up a `merchant_transaction_id`. None makes a new UUID, which no cashout has.
    pub fn look_up_transaction(&self, group: GroupNumber, given: Option<[u8; 16]>) -> Result<TransactionLookup> {
        let id = match given {
            Some(id) => id,
            None => {
                // Version 4 and variant 1 of RFC 9562; all other bits are random.
                let mut id: [u8; 16] = stocked_random_bytes()?;
                (id[6], id[8]) = (id[6] & 0x0f | 0x40, id[8] & 0x3f | 0x80);
                id
            }
        };
        let key = self.keyring.fingerprint("merchant-transaction", &[&group.0.to_be_bytes(), &id]);
        if given.is_none() {
            return Ok(TransactionLookup { id, used_by: None, key, looked_up_through: None });
        }
        let shard = self.shard(group);
        let found = shard.read_model().find_unique(LedgerId::Merchant(group), key)?;
        let ordered =
            |record| CashoutOrdered::of(&record).ok_or_else(|| Unavailable::contradicting("a cashout's order"));
        let used_by = match found.sequence {
            Some(sequence) => Some((ordered(shard.record(sequence)?)?.id, sequence)),
            None => None,
        };
        Ok(TransactionLookup { id, used_by, key, looked_up_through: Some(found.looked_up_through) })
    }

    /// Holds the money of a cashout and orders the transfer. An institution that does not answer in
    /// time is asked by the schedule. Only a cashout that failed here, before its request was
    /// answered, failed as [`CashoutFailure::NotTaken`].
    pub async fn cash_out(
        &self,
        group: GroupNumber,
        wanted: NewCashout,
        CommandContext { key, requester, permit }: CommandContext,
    ) -> Result<Outcome<CashoutOrdered>> {
        let (name, rail) = self.current_payout_rail()?;
        rail.require_answers()?;
        let (id, now) = (self.new_id(group)?, self.now());
        let NewCashout { amount, destination, transaction, reference } = wanted;
        let (transaction_key, looked_up_through) = (transaction.key, transaction.looked_up_through);
        let unique =
            looked_up_through.map(|looked_up_through| UniqueLookup { key: transaction_key, looked_up_through });
        let sealed = self.keyring.seal_value(SealedFor::pix_destination(id), now, &destination)?;
        let shard = self.shard(group);
        let _first_try = shard.cashouts.first_try(id);
        let transaction = transaction.id;
        let command = MerchantCommand::CreateCashout {
            id,
            transaction,
            transaction_key,
            amount,
            destination: sealed,
            rail: name,
        };
        let (command, reserved) = reserving(command, id, reference);
        let envelope = Envelope { command, key, unique: [unique, reserved], requester, permit: Arc::clone(&permit) };
        let outcome = self.send(&self.serving_shard(group)?.merchants, LedgerId::Merchant(group), envelope).await?;
        let mut ordered = match outcome.typed(CashoutOrdered::of)? {
            Outcome::Recorded(ordered) => ordered,
            refused => return Ok(refused),
        };
        let to = Destination::PixKey(destination);
        let transfer = SendPayout { id, amount: ordered.net, to, ordered_at: id.created_at() };
        let answer = match rail.may_order_first(id.created_at(), self.now()) {
            true => rail.call(FIRST_ANSWER_MAX, |rail| rail.send(transfer)).await,
            false => Err(RailError::NotSent),
        };
        if let CashoutInquiry::Ended(ended, stamp) = found(answer, CashoutFailure::NotTaken) {
            let is_denied = ended == CashoutOutcome::Failed(CashoutFailure::NotTaken);
            let command = MerchantCommand::SettleCashout { id, outcome: ended };
            let settled = self.command(group, command, CommandContext::of_rail(stamp, permit)).await?;
            ordered.is_taken = !(is_denied && matches!(settled, Outcome::Recorded(_)));
        }
        Ok(Outcome::Recorded(ordered))
    }

    /// The outcome of the cashout that a Record created, as its request was answered; none while it
    /// is being sent for the first time.
    pub fn cashout_ordered(&self, created: &Record) -> Result<Option<CashoutOrdered>> {
        let mut ordered = CashoutOrdered::of(created).ok_or_else(|| Unavailable::contradicting("a cashout"))?;
        // Asked before its Records are read: once the first try is over, they say what its caller
        // was answered.
        if self.shard_with(ordered.id).cashouts.first_tries.lock().contains_key(&ordered.id) {
            return Ok(None);
        }
        let denied = CashoutStage::Failed(CashoutFailure::NotTaken);
        ordered.is_taken = self.object::<Cashout>(ordered.id)?.is_none_or(|cashout| cashout.stage != denied);
        Ok(Some(ordered))
    }

    /// Asks the institution what became of a merchant's cashouts, about each at most every 5 s, and
    /// less often the longer it waits. Gives true when there may be more to ask about.
    pub(super) async fn ask_about_cashouts(&self, group: GroupNumber, now: Timestamp) -> bool {
        if !self.rails.payout.has_any() {
            return false;
        }
        let inquiries = Arc::clone(&self.shard(group).cashouts.inquiries);
        let look = move |books: &MerchantState, _: Timestamp| {
            let inquiries = inquiries.lock();
            let is_time = |id: &ObjectId, since| {
                inquiries.get(id).is_none_or(|inquiry| inquiry.at.plus_ms(wait_ms(since, inquiry.at)) <= now)
            };
            let waiting = books.cashouts_needing_attention(now).filter(|(id, open)| is_time(id, open.attention_at));
            waiting.take(RECONCILED_AT_ONCE).map(|(id, open)| (id, open.clone())).collect::<Vec<_>>()
        };
        let permit = self.admission.take(INSIDE_BYTES).await;
        let Ok(waiting) = read(&self.shard(group).merchants, LedgerId::Merchant(group), look, permit).await else {
            return false;
        };
        join_all(waiting.iter().map(|(id, open)| self.ask_about_cashout((group, *id), open, now))).await;
        waiting.len() == RECONCILED_AT_ONCE
    }

    /// Asks the institution about one cashout.
    pub(super) async fn ask_about_cashout(
        &self,
        (group, id): (GroupNumber, ObjectId),
        open: &OpenCashout,
        now: Timestamp,
    ) -> OrderFate {
        self.shard(group).cashouts.first_try_over(id).await;
        let (found, rail) = self.find_cashout(id, open, now).await.unwrap_or_else(|error| {
            tracing::error!(%error, cashout = ?id, "where a cashout goes could not be read");
            (CashoutInquiry::Unknown, None)
        });
        let is_unknown = matches!(found, CashoutInquiry::Unknown);
        let fate = match found {
            CashoutInquiry::Ended(outcome, stamp) => {
                let permit = self.admission.take(INSIDE_BYTES).await;
                let command = MerchantCommand::SettleCashout { id, outcome };
                self.command(group, command, CommandContext::of_rail(stamp, permit)).await.is_ok().into()
            }
            CashoutInquiry::EndedBefore => OrderFate::Ended,
            CashoutInquiry::UnderWay => OrderFate::UnderWay,
            CashoutInquiry::Unknown => OrderFate::Unknown,
        };
        let shard = self.shard(group);
        let mut inquiries = shard.cashouts.inquiries.lock();
        if fate == OrderFate::Ended {
            inquiries.remove(&id);
        } else {
            inquiries.insert(id, CashoutInquiryTimes { at: now, is_unknown, rail });
        }
        fate
    }

    /// Outcome of a cashout, and its rail. If the institution never had it, it is ordered again
    /// under the same id, once the first order cannot turn up there any more.
    async fn find_cashout(
        &self,
        id: ObjectId,
        open: &OpenCashout,
        now: Timestamp,
    ) -> Result<(CashoutInquiry, Option<RailName>), LoadError> {
        let (mut destination, mut name): (Option<PixDestination>, _) = (None, None);
        let shard = self.shard_with(id);
        for sequence in shard.read_model().about(id)? {
            let record = shard.record(sequence)?;
            if has_ended(&record, id) {
                return Ok((CashoutInquiry::EndedBefore, name));
            }
            if let Some(rail) = created(&record, id) {
                (destination, name) = (self.keyring.open_personal(&record), rail.cloned());
            }
        }
        let Some(destination) = destination else { return Ok((CashoutInquiry::Unknown, name)) };
        let Ok(rail) = self.payout_rail(name.as_ref()) else { return Ok((CashoutInquiry::Unknown, name)) };
        let (amount, to) = (open.net(), Destination::PixKey(destination));
        let transfer = SendPayout { id, amount, to, ordered_at: id.created_at() };
        let mut answer = rail.call(RAIL_ANSWER_MAX, |rail| rail.find(transfer.clone(), now)).await;
        if answer == Ok(PayoutAnswer::NotTaken) {
            if !rail.may_order_again(id.created_at(), open.attention_at, now) {
                return Ok((CashoutInquiry::Unknown, name));
            }
            match self.note_try(LedgerId::Merchant(self.ids().group(id)), id).await {
                Ok(true) => {}
                Ok(false) => return Ok((CashoutInquiry::EndedBefore, name)),
                Err(_) => return Ok((CashoutInquiry::Unknown, name)),
            }
            answer = rail.call(RAIL_ANSWER_MAX, |rail| rail.send(transfer)).await;
        }
        Ok((found(answer, CashoutFailure::NotCarriedOut), name))
    }
}

/// Evaluates an answer to an order or, past the horizon, to a question. `failure` names the end of
/// a transfer that the institution did not take.
fn found(answer: Result<PayoutAnswer, RailError>, failure: CashoutFailure) -> CashoutInquiry {
    match answer {
        Ok(PayoutAnswer::Processed { transfer_id, end_to_end_id, at, from }) => {
            let stamp = RailStamp::new(transfer_id.clone(), at);
            CashoutInquiry::Ended(CashoutOutcome::Processed { transfer_id, end_to_end_id, bank: from }, Some(stamp))
        }
        Ok(PayoutAnswer::Failed { .. } | PayoutAnswer::Returned { .. }) => {
            CashoutInquiry::Ended(CashoutOutcome::Failed(CashoutFailure::NotCarriedOut), None)
        }
        Ok(PayoutAnswer::NotTaken) => CashoutInquiry::Ended(CashoutOutcome::Failed(failure), None),
        Ok(PayoutAnswer::Taken { .. }) => CashoutInquiry::UnderWay,
        Err(_) => CashoutInquiry::Unknown,
    }
}

/// The rail of the cashout that a Record creates, which a sandbox's has no name for; `None` if the
/// Record does not create it.
fn created(record: &Record, cashout: ObjectId) -> Option<Option<&RailName>> {
    record.events.iter().find_map(|event| match event {
        Event::CashoutCreated { id, rail, .. } if *id == cashout => Some(rail.as_ref()),
        _ => None,
    })
}

fn has_ended(record: &Record, cashout: ObjectId) -> bool {
    record.events.iter().any(|event| match event {
        Event::CashoutProcessed { id, .. } | Event::CashoutFailed { id, .. } => *id == cashout,
        _ => false,
    })
}
