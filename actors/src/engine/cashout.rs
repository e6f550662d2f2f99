//! Cashouts on their way out (interface 2.6, 3.2). The intent is durable before the institution is
//! called, and its answer is a second Record. While no answer is known, the schedule asks again by
//! our own id; an outcome is never guessed.
//!
//! A transfer is carried out once, however often it is ordered and whatever crashes in between: the
//! institution is idempotent on the id, and a cashout that has ended takes no second outcome.

use std::sync::Arc;

use futures_util::future::join_all;
use ledger::cashout::CashoutStage;
use ledger::event::CashoutFailure;
use ledger::merchant::{CashoutOutcome, OpenCashout};
use ledger::{
    Cashout, Centavos, Event, Fingerprint, GroupNumber, LedgerId, MerchantCommand, MerchantState, ObjectId,
    PixDestination, RailStamp, Record, SealedFor, Timestamp,
};

use super::inquiry_times::{Inquiry, OrderFate};
use super::labels::{ReferenceLookup, reserving};
use super::outcome::CommandContext;
use super::withdrawal::NOT_TAKEN;
use super::{Engine, INSIDE_BYTES, RECONCILED_AT_ONCE, Result, Unavailable, read};
use crate::rails::{Destination, PayoutAnswer, SendPayout};
use crate::resident::{Envelope, Outcome, UniqueLookup};
use derived::seal::stocked_random_bytes;
use store::Sequence;

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
        let _first_try = shard.first_tries.begin(id);
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
        let answer = rail.order_first(transfer, self.now()).await.ok();
        if let Some((outcome, stamp)) = answer.and_then(|answer| settled(answer, CashoutFailure::NotTaken)) {
            let is_denied = matches!(outcome, CashoutOutcome::Failed { failure: CashoutFailure::NotTaken, .. });
            let command = MerchantCommand::SettleCashout { id, outcome };
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
        if self.shard_with(ordered.id).first_tries.has(ordered.id) {
            return Ok(None);
        }
        let stage = self.object::<Cashout>(ordered.id)?.map(|cashout| cashout.stage);
        ordered.is_taken = !matches!(stage, Some(CashoutStage::Failed { failure: CashoutFailure::NotTaken, .. }));
        Ok(Some(ordered))
    }

    /// Asks the institution what became of a merchant's cashouts, about each at most every 5 s, and
    /// less often the longer it waits. Gives true when there may be more to ask about.
    pub(super) async fn ask_about_cashouts(&self, group: GroupNumber, now: Timestamp) -> bool {
        if !self.rails.payout.has_any() {
            return false;
        }
        let inquiries = self.shard(group).inquiries.clone();
        let look = move |books: &MerchantState, _: Timestamp| {
            let open = books.cashouts_needing_attention(now);
            let waiting = open.filter(|(id, open)| inquiries.is_time(*id, open.attention_at, now));
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
        let shard = self.shard(group);
        shard.first_tries.over(id).await;
        let cashout: Option<Cashout> = self.object(id).unwrap_or_else(|error| {
            tracing::error!(%error, cashout = ?id, "where a cashout goes could not be read");
            None
        });
        let fate = match &cashout {
            Some(cashout) => self.settle_cashout(group, cashout, open.attention_at, now).await,
            None => Ok(OrderFate::Unknown),
        };
        let fate = fate.unwrap_or(OrderFate::Unknown);
        let (rail, since) = (cashout.and_then(|cashout| cashout.rail), open.attention_at);
        shard.inquiries.note(id, Inquiry { of_charge: None, rail, since, at: now, under_way_at: None }, fate);
        fate
    }

    /// Asks about a cashout that was last ordered at `last`, and books its outcome.
    async fn settle_cashout(
        &self,
        group: GroupNumber,
        cashout: &Cashout,
        last: Timestamp,
        now: Timestamp,
    ) -> Result<OrderFate> {
        if cashout.stage != CashoutStage::InProcessing {
            return Ok(OrderFate::Ended);
        }
        let (id, owner) = (cashout.id, cashout.merchant);
        let open = |sealed| self.keyring.open_value(SealedFor::pix_destination(id), sealed);
        let Some(to) = cashout.destination.as_ref().and_then(open) else { return Ok(OrderFate::Unknown) };
        let (amount, to) = (cashout.net(), Destination::PixKey(to));
        let transfer = SendPayout { id, amount, to, ordered_at: id.created_at() };
        let answer = self.find_transfer((owner, last), cashout.rail.as_ref(), transfer, now).await?;
        let Some(answer) = answer else { return Ok(OrderFate::Ended) };
        let Some((outcome, stamp)) = settled(answer, CashoutFailure::NotCarriedOut) else {
            return Ok(OrderFate::UnderWay);
        };
        let permit = self.admission.take(INSIDE_BYTES).await;
        let command = MerchantCommand::SettleCashout { id, outcome };
        self.command(group, command, CommandContext::of_rail(stamp, permit)).await?;
        Ok(OrderFate::Ended)
    }
}

/// Evaluates an answer to an order or, past the horizon, to a question; `None` while the transfer
/// is under way. `failure` names the end of a transfer that the institution did not take.
fn settled(answer: PayoutAnswer, failure: CashoutFailure) -> Option<(CashoutOutcome, Option<RailStamp>)> {
    let failed = |failure, notes| Some((CashoutOutcome::Failed { failure, notes }, None));
    match answer {
        PayoutAnswer::Processed { transfer_id, end_to_end_id, at, from } => {
            let stamp = RailStamp::new(transfer_id.clone(), at);
            Some((CashoutOutcome::Processed { transfer_id, end_to_end_id, bank: from }, Some(stamp)))
        }
        PayoutAnswer::Failed { reason } | PayoutAnswer::Returned { reason, .. } => {
            failed(CashoutFailure::NotCarriedOut, reason)
        }
        PayoutAnswer::NotTaken => failed(failure, NOT_TAKEN.to_owned()),
        PayoutAnswer::Taken { .. } => None,
    }
}
