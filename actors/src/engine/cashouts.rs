//! Cashouts on their way out (interface 2.6, 3.2). The intent is durable before the institution hears of it; what it says is recorded;
//! what it does not say is asked again by our own id, never guessed. However often a transfer is ordered, and whatever crashes in
//! between, it is carried out once: the institution is idempotent on the id, and a cashout that has ended takes no second outcome.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use ledger::event::{CashoutFailure, Event};
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId};
use ledger::merchant::{CashoutOutcome, MerchantCommand, MerchantState, OpenCashout};
use ledger::money::Centavos;
use ledger::personal::{PixDestination, Sealed};
use ledger::record::{Record, Requester};
use ledger::time::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, RECONCILED_AT_ONCE, TRY_AGAIN_AFTER_MS, Unavailable, join_all, read,
};
use crate::journal::Permit;
use crate::load::LoadError;
use crate::rails::{Destination, PayoutAnswer, RailError, SendPayout};
use crate::resident::{Envelope, KeyLookup, Outcome, UniqueLookup};

/// How long the institution may take before the caller is told `in_processing`.
const FIRST_ANSWER_MAX: Duration = Duration::from_millis(1_500);

/// A cashout, as the door asks for it.
pub struct CreateCashout {
    /// Its id.
    pub id: ObjectId,
    /// `merchant_transaction_id`: a UUID.
    pub transaction: [u8; 16],
    /// Keyed digest of account and `merchant_transaction_id`.
    pub transaction_key: Fingerprint,
    /// Gross, centavos.
    pub amount: Centavos,
    /// Where it goes.
    pub destination: PixDestination,
    /// The same, as it is kept.
    pub sealed: Sealed,
}

/// What this process remembers of cashouts that wait. None of it is needed after a restart.
#[derive(Default)]
pub(super) struct CashoutsUnderWay {
    /// Those that are being sent for the first time while their caller waits. The sender is dropped when that is over.
    first_tries: Mutex<HashMap<ObjectId, watch::Receiver<()>>>,
    asked: Arc<Mutex<BTreeMap<ObjectId, Asked>>>,
}

/// When the institution was asked last about a cashout that still waits.
struct Asked {
    at: Timestamp,
    /// False when it said that it is at it.
    is_unknown: bool,
}

/// What is known of a cashout after it was asked for.
enum Found {
    Ended(CashoutOutcome),
    /// The journal has its outcome.
    EndedBefore,
    UnderWay,
    Unknown,
}

/// While it lives, a cashout is being sent for the first time.
struct FirstTry<'a> {
    id: ObjectId,
    under_way: &'a CashoutsUnderWay,
    _over_when_dropped: watch::Sender<()>,
}

impl Drop for FirstTry<'_> {
    fn drop(&mut self) {
        self.under_way.first_tries.lock().remove(&self.id);
    }
}

impl CashoutsUnderWay {
    fn first_try(&self, id: ObjectId) -> FirstTry<'_> {
        let (sender, receiver) = watch::channel(());
        self.first_tries.lock().insert(id, receiver);
        FirstTry { id, under_way: self, _over_when_dropped: sender }
    }

    /// Waits while a cashout is being sent for the first time: who asked for it is told what the institution says to that.
    async fn first_try_over(&self, id: ObjectId) {
        let first_try = self.first_tries.lock().get(&id).cloned();
        if let Some(mut first_try) = first_try {
            let _dropped = first_try.changed().await;
        }
    }

    /// When the oldest cashout was created of which the institution has not said that it is at it.
    pub(super) fn oldest_unknown(&self) -> Option<Timestamp> {
        let asked = self.asked.lock();
        asked.iter().filter(|(_, asked)| asked.is_unknown).map(|(id, _)| id.created_at()).min()
    }
}

impl Engine {
    /// Holds the money of a cashout and orders the transfer. What is given is the outcome of the first: of the second the journal tells,
    /// and an institution that does not answer in time is asked by the schedule. Only a cashout that failed here, before its caller
    /// was answered, failed as [`CashoutFailure::NotTaken`].
    pub async fn cash_out(
        &self,
        group: GroupNumber,
        order: CreateCashout,
        key: Option<KeyLookup>,
        unique: Option<UniqueLookup>,
        requester: Option<Requester>,
        permit: Arc<Permit>,
    ) -> Result<Outcome, Unavailable> {
        let rails = self.rails.as_ref().ok_or(Unavailable::NoRail)?;
        let CreateCashout { id, transaction, transaction_key, amount, destination, sealed } = order;
        let _first_try = self.cashouts.first_try(id);
        let command = MerchantCommand::CreateCashout { id, transaction, transaction_key, amount, destination: sealed };
        let order = Envelope { command, key, unique, requester, permit: Arc::clone(&permit) };
        let outcome = self.order(&self.merchants, LedgerId::Merchant(group), order).await?;
        let Outcome::Recorded(record) = &outcome else { return Ok(outcome) };
        let Some(amount) = created(record, id) else { return Ok(outcome) };
        let order = SendPayout { id, amount, to: Destination::PixKey(destination), ordered_at: id.created_at() };
        let answer = tokio::time::timeout(FIRST_ANSWER_MAX, rails.payout.send(order)).await;
        if let Found::Ended(ended) = found(answer.unwrap_or(Err(RailError::NoAnswer)), CashoutFailure::NotTaken) {
            self.command(group, MerchantCommand::SettleCashout { id, outcome: ended }, None, None, permit).await?;
        }
        Ok(outcome)
    }

    /// True while a cashout is being sent for the first time: what its caller is told is not settled yet.
    pub fn is_being_sent(&self, cashout: ObjectId) -> bool {
        self.cashouts.first_tries.lock().contains_key(&cashout)
    }

    /// Asks the institution what became of a merchant's cashouts, each every now and then; true when there may be more that it was not
    /// asked about.
    pub(super) async fn ask_about_cashouts(&self, group: GroupNumber, now: Timestamp) -> bool {
        if self.rails.is_none() {
            return false;
        }
        let asked = Arc::clone(&self.cashouts.asked);
        let look = move |books: &MerchantState, _: Timestamp| {
            let asked = asked.lock();
            let is_time = |id: &ObjectId| asked.get(id).is_none_or(|asked| asked.at.plus_ms(TRY_AGAIN_AFTER_MS) <= now);
            let waiting = books.cashouts_needing_attention(now).filter(|(id, _)| is_time(id));
            waiting.take(RECONCILED_AT_ONCE).map(|(id, open)| (id, open.clone())).collect::<Vec<_>>()
        };
        let permit = self.admission.take(INSIDE_BYTES).await;
        let Ok(waiting) = read(&self.merchants, LedgerId::Merchant(group), look, permit).await else { return false };
        join_all(waiting.iter().map(|(id, open)| self.ask_about_cashout(group, *id, open, now))).await;
        waiting.len() == RECONCILED_AT_ONCE
    }

    async fn ask_about_cashout(&self, group: GroupNumber, id: ObjectId, open: &OpenCashout, now: Timestamp) {
        self.cashouts.first_try_over(id).await;
        let found = self.find_cashout(id, open, now).await.unwrap_or_else(|error| {
            tracing::error!(%error, cashout = ?id, "where a cashout goes could not be read");
            Found::Unknown
        });
        let is_unknown = matches!(found, Found::Unknown);
        let has_ended = match found {
            Found::Ended(outcome) => {
                let permit = self.admission.take(INSIDE_BYTES).await;
                let command = MerchantCommand::SettleCashout { id, outcome };
                self.command(group, command, None, None, permit).await.is_ok()
            }
            Found::EndedBefore => true,
            Found::UnderWay | Found::Unknown => false,
        };
        let mut asked = self.cashouts.asked.lock();
        if has_ended {
            asked.remove(&id);
        } else {
            asked.insert(id, Asked { at: now, is_unknown });
        }
    }

    /// What became of a cashout. One that the institution never had is ordered again, under the same id, once none can turn up there
    /// any more.
    async fn find_cashout(&self, id: ObjectId, open: &OpenCashout, now: Timestamp) -> Result<Found, LoadError> {
        let Some(rails) = &self.rails else { return Ok(Found::Unknown) };
        let mut destination: Option<PixDestination> = None;
        for sequence in self.read_model().about(id)? {
            let record = self.record(sequence)?;
            if has_ended(&record, id) {
                return Ok(Found::EndedBefore);
            }
            if created(&record, id).is_some() {
                destination = self.keyring.open_personal(&record);
            }
        }
        let Some(destination) = destination else { return Ok(Found::Unknown) };
        let (amount, to) = (open.net(), Destination::PixKey(destination));
        let order = SendPayout { id, amount, to, ordered_at: id.created_at() };
        let answer = tokio::time::timeout(RAIL_ANSWER_MAX, rails.payout.find(order.clone(), now)).await;
        let mut answer = answer.unwrap_or(Err(RailError::NoAnswer));
        if answer == Ok(PayoutAnswer::NotTaken) {
            let horizon_ms = i64::try_from(rails.payout.horizon().as_millis()).unwrap_or(i64::MAX);
            if now.0.saturating_sub(open.attention_at.0) < horizon_ms {
                return Ok(Found::Unknown);
            }
            let sent = tokio::time::timeout(RAIL_ANSWER_MAX, rails.payout.send(order)).await;
            answer = sent.unwrap_or(Err(RailError::NoAnswer));
        }
        Ok(found(answer, CashoutFailure::NotCarriedOut))
    }
}

/// What an answer to an order or, past the horizon, to a question comes to. `failure` is what it is called when the institution did not
/// take the transfer.
fn found(answer: Result<PayoutAnswer, RailError>, failure: CashoutFailure) -> Found {
    match answer {
        Ok(PayoutAnswer::Processed { transfer_id, end_to_end_id }) => {
            Found::Ended(CashoutOutcome::Processed { transfer_id, end_to_end_id })
        }
        Ok(PayoutAnswer::Failed { .. } | PayoutAnswer::Returned { .. }) => {
            Found::Ended(CashoutOutcome::Failed(CashoutFailure::NotCarriedOut))
        }
        Ok(PayoutAnswer::NotTaken) => Found::Ended(CashoutOutcome::Failed(failure)),
        Ok(PayoutAnswer::Taken { .. }) => Found::UnderWay,
        Err(RailError::NoAnswer) => Found::Unknown,
    }
}

/// What is to be sent of the cashout that a Record creates, centavos.
fn created(record: &Record, cashout: ObjectId) -> Option<Centavos> {
    record.events.iter().find_map(|event| match event {
        Event::CashoutCreated { id, amount, fee, .. } if *id == cashout => Some(*amount - *fee),
        _ => None,
    })
}

fn has_ended(record: &Record, cashout: ObjectId) -> bool {
    record.events.iter().any(|event| match event {
        Event::CashoutProcessed { id, .. } | Event::CashoutFailed { id, .. } => *id == cashout,
        _ => false,
    })
}
