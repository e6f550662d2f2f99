//! Card charges (interface 2.1, 2.2). The intent is durable before the acquirer is called, and the
//! acquirer's answer is a second Record. A silent acquirer leaves the charge pending; the schedule
//! asks again by the charge's id.

use std::sync::Arc;
use std::time::Duration;

use derived::read_model::CardRow;
use ledger::merchant::{RECONCILE_AFTER_MS, SplitRequest};
use ledger::{
    CardFace, CardRefusal, Centavos, Charge, ChargeOutcome, GroupNumber, LedgerId, MerchantCommand, MerchantProfile,
    ObjectId, OpenCharge, Payer, PaymentMethod, RailName, RailStamp, Record, SealedFor, Terms, Timestamp,
};
use tracing::Instrument;

use super::labels::ReferenceLookup;
use super::late_answers::{LateCall, answered};
use super::outcome::{CommandContext, terms_opened_by};
use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, Result, Unavailable};
use crate::journal::Permit;
use crate::rails::{
    CaptureCard, CardAnswer, CardFate, CardSecrets, CardToken, ChargeCard, ChargedCard, RailError, SecurityCode,
};
use crate::resident::Outcome;

/// How long a call of a named acquirer may take, its caller gone or not.
const CARD_CALL_MAX: Duration = Duration::from_secs(60);
/// How long after its id was made a charge may be taken to the acquirer, milliseconds: well before
/// the reconciliation closes it. A charge that comes later was held up, and is left to the
/// reconciliation.
const CALL_STARTS_WITHIN_MS: i64 = RECONCILE_AFTER_MS / 2;

/// The last time at which a charge may be taken to the acquirer.
pub(super) fn not_after(charge: ObjectId) -> Timestamp {
    charge.created_at().plus_ms(CALL_STARTS_WITHIN_MS)
}

/// A card charge, as a merchant asks for it.
#[derive(Debug)]
pub struct NewCardCharge {
    /// Total, centavos.
    pub amount: Centavos,
    /// Credit or debit.
    pub method: PaymentMethod,
    /// 1 to 12.
    pub installments: u8,
    /// The recipients' parts, in the order of the request.
    pub splits: Vec<SplitRequest>,
    /// The face of the card: the part that may be stored.
    pub face: CardFace,
    /// The payer.
    pub payer: Payer,
    /// As its payer gave it, or one that was stored.
    pub card: NewChargeCard,
    /// The reference that no other charge may have; `None` if it has no such reference.
    pub reference: Option<ReferenceLookup>,
}

/// A card to be charged: one that its payer gives, or one that the merchant stored.
#[derive(Debug)]
pub enum NewChargeCard {
    /// As its payer gave it, for the time of the call only.
    Given(CardSecrets),
    /// One that the merchant stored.
    Stored {
        /// The card, read from the journal.
        card: CardRow,
        /// The code that the payer gave again; `None` if it was not asked for.
        cvv: Option<SecurityCode>,
    },
}

/// A card charge and the acquirer's first answer: what the request for it is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardCharged {
    /// The charge's id: its txid.
    pub charge: ObjectId,
    /// Its terms: amount, splits and fees.
    pub terms: Terms,
    /// The acquirer's first answer.
    pub answer: FirstAnswer,
}

/// The acquirer's first answer for a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstAnswer {
    /// The charge was captured.
    Captured,
    /// The card was refused.
    Refused(CardRefusal),
    /// No answer came in time; the charge is pending.
    Silent,
}

impl FirstAnswer {
    /// The acquirer's answer in an outcome; `None` before there is one.
    fn of(outcome: &ChargeOutcome) -> Option<Self> {
        match outcome {
            ChargeOutcome::Paid { .. } => Some(Self::Captured),
            ChargeOutcome::Refused(refusal) => Some(Self::Refused(*refusal)),
            ChargeOutcome::Unanswered => Some(Self::Silent),
            ChargeOutcome::Pending | ChargeOutcome::Cancelled => None,
        }
    }
}

impl Engine {
    /// Charges a card: the intent, the acquirer, its answer. The outcome is the charge with the
    /// answer that came first, be it to this call or to a reconciliation that was faster.
    pub async fn charge_card(
        &self,
        group: GroupNumber,
        wanted: NewCardCharge,
        context: CommandContext,
    ) -> Result<Outcome<CardCharged>> {
        let NewCardCharge { amount, method, installments, splits, face, payer, card, reference } = wanted;
        let (stored, name, card) = self.new_charge_card(card)?;
        let charge = self.new_id(group)?;
        let sealed = self.keyring.seal_value(SealedFor::payer(charge), self.now(), &payer)?;
        let open = MerchantCommand::OpenCard {
            charge,
            amount,
            method,
            installments,
            splits,
            card: face,
            payer: sealed,
            rail: name.clone(),
        };
        let command = match stored {
            Some(card) => MerchantCommand::WithStoredCard { card, command: Box::new(open) },
            None => open,
        };
        let (permit, shard) = (Arc::clone(&context.permit), self.shard(group));
        let _first_try = shard.first_tries.begin(charge);
        let opened = match self.command_reserving(group, charge, command, reference, context).await? {
            Outcome::Recorded(record) => record,
            refused => return refused.typed(|_| None),
        };
        let (merchant, not_after) = (self.merchant_profile(group, name.as_ref()), not_after(charge));
        let call = ChargeCard { charge, amount, installments, method, card, merchant, payer, not_after };
        let outcome = self.ask_acquirer(group, call, name.as_ref(), permit).await?;
        let answer = match outcome {
            Outcome::Recorded(record) => ChargeOutcome::in_record(&record, charge).as_ref().and_then(FirstAnswer::of),
            // The order is booked: what cannot be read now is no refusal.
            _ => self.first_answer(charge).map_err(|_| Unavailable::OutcomeUnknown)?,
        };
        let charged = || Some(CardCharged { charge, terms: terms_opened_by(&opened)?.1.clone(), answer: answer? });
        charged().map(Outcome::Recorded).ok_or_else(|| Unavailable::contradicting("a card charge"))
    }

    /// The card of a new charge as its acquirer takes it, the acquirer, which can be asked now, and
    /// the id of a stored card. A stored card is charged at the acquirer that stored it.
    fn new_charge_card(&self, card: NewChargeCard) -> Result<(Option<ObjectId>, Option<RailName>, ChargedCard)> {
        match card {
            NewChargeCard::Given(card) => {
                let (name, acquirer) = self.current_card_rail()?;
                acquirer.require_answers()?;
                Ok((None, name, ChargedCard::Given(card)))
            }
            NewChargeCard::Stored { card, cvv } => {
                self.card_rail(card.rail.as_ref())?.require_answers()?;
                let unreadable = || Unavailable::contradicting("the token of a stored card");
                let token = self.token_of(&card).ok_or_else(unreadable)?;
                Ok((Some(card.id), card.rail, ChargedCard::Stored { token, cvv }))
            }
        }
    }

    /// The acquirer's token of a stored card; `None` when it cannot be opened.
    pub(super) fn token_of(&self, card: &CardRow) -> Option<CardToken> {
        let token = self.keyring.open_secret(SealedFor::card_token(card.id), &card.token)?;
        String::from_utf8(token).ok().map(CardToken)
    }

    /// What is known of a merchant, for a named acquirer; nothing when the personal data was
    /// erased. The sandbox's acquirer, which has no name, asks for nothing.
    pub(super) fn merchant_profile(&self, group: GroupNumber, rail: Option<&RailName>) -> MerchantProfile {
        let profile = || self.merchant(group, |row| row.profiles.current().cloned()).flatten();
        let sealed = rail.and_then(|_| profile());
        let open = |sealed| self.keyring.open_value(SealedFor::merchant(group), &sealed);
        sealed.and_then(open).unwrap_or_default()
    }

    /// The outcome of the card charge that a Record opened, as its request was answered; none while
    /// the acquirer is being asked. A charge whose process ended before its answer is pending, and
    /// a Record says so.
    pub async fn card_charged(&self, opened: &Record) -> Result<Option<CardCharged>> {
        let opened = terms_opened_by(opened).ok_or_else(|| Unavailable::contradicting("a card charge"))?;
        let (charge, terms) = (opened.0, opened.1.clone());
        // Before the Records are read: once the first try is over, they have its answer.
        let is_asked = self.shard_with(charge).first_tries.has(charge);
        let mut answer = self.first_answer(charge)?;
        if answer.is_none() && !is_asked {
            let permit = self.permit(INSIDE_BYTES)?;
            self.command(self.ids().group(charge), MerchantCommand::LeaveUnanswered { charge }, permit).await?;
            answer = self.first_answer(charge)?;
        }
        Ok(answer.map(|answer| CardCharged { charge, terms, answer }))
    }

    /// Calls the acquirer for a charge whose intent is durable, and records its answer. A charge of
    /// which nothing could be sent is refused: the acquirer will never have it. One that comes too
    /// late to be taken to the acquirer counts as unanswered, and so does one whose capture is not
    /// answered.
    pub async fn ask_acquirer(
        &self,
        group: GroupNumber,
        call: ChargeCard,
        rail: Option<&RailName>,
        permit: Arc<Permit>,
    ) -> Result<Outcome> {
        let (charge, amount) = (call.charge, call.amount);
        let answer = match call.not_after <= self.now() {
            true => Err(RailError::NoAnswer),
            false => match self.call_acquirer(group, call, rail).await {
                Err(RailError::NotSent) => Ok(CardAnswer::Refused(CardRefusal::Failed)),
                answer => answer,
            },
        };
        let booked = match answer {
            Ok(answer) => self.book_answer((group, charge, amount), answer, rail, Arc::clone(&permit)).await?,
            Err(_) => None,
        };
        match booked {
            Some(outcome) => Ok(outcome),
            None => self.command(group, MerchantCommand::LeaveUnanswered { charge }, permit).await,
        }
    }

    /// Books an acquirer's answer. A charge that is only authorized is captured, once that is a
    /// Record: what no Record knows takes no money. `None` where the charge is under way, or its
    /// capture is not answered; the schedule asks again.
    pub(super) async fn book_answer(
        &self,
        (group, charge, amount): (GroupNumber, ObjectId, Centavos),
        answer: CardAnswer,
        rail: Option<&RailName>,
        permit: Arc<Permit>,
    ) -> Result<Option<Outcome>> {
        let authorized = match &answer {
            CardAnswer::Authorized(authorized) => Some(authorized.clone()),
            _ => None,
        };
        let Some((command, stamp)) = answered(charge, answer) else { return Ok(None) };
        let outcome = self.command(group, command, CommandContext::of_rail(stamp, Arc::clone(&permit))).await?;
        let (Some(authorized), Outcome::Recorded(_) | Outcome::Unchanged) = (authorized, &outcome) else {
            // Ended; an authorization that comes after a charge has ended is never captured.
            return Ok(Some(outcome));
        };
        let capture = self.capture(rail, CaptureCard { charge, amount, authorized }).await;
        let Ok(Some((command, stamp))) = capture else { return Ok(None) };
        self.command(group, command, CommandContext::of_rail(stamp, permit)).await.map(Some)
    }

    /// Orders the capture of an authorized charge. Gives the command that the answer calls for, and
    /// what the acquirer says of it; `None` while the capture is under way.
    async fn capture(
        &self,
        rail: Option<&RailName>,
        call: CaptureCard,
    ) -> Result<Option<(MerchantCommand, Option<RailStamp>)>> {
        let charge = call.charge;
        match self.card_rail(rail)?.call(RAIL_ANSWER_MAX, |rail| rail.capture(call)).await {
            Ok(CardAnswer::Authorized(_)) | Err(_) => Err(Unavailable::OutcomeUnknown),
            Ok(answer) => Ok(answered(charge, answer)),
        }
    }

    /// Calls the acquirer, and waits as long as its callers do. A sandbox's call ends then; that of
    /// a named acquirer goes on, and the schedule books its answer.
    async fn call_acquirer(
        &self,
        group: GroupNumber,
        call: ChargeCard,
        name: Option<&RailName>,
    ) -> Result<CardAnswer, RailError> {
        let rail = self.rails.card.get(name).ok_or(RailError::NotSent)?;
        let line = self.card_rail(name).map_err(|_| RailError::NotSent)?;
        let Some(name) = name.cloned() else {
            return line.call(rail.answers_within(), |rail| rail.charge(call)).await;
        };
        let (charge, amount) = (call.charge, call.amount);
        let (breaker, called) = (line.breaker.clone(), Arc::clone(rail));
        let asking = async move { breaker.call(CARD_CALL_MAX, || called.charge(call)).await };
        let mut under_way = tokio::spawn(asking.in_current_span());
        match tokio::time::timeout(rail.answers_within(), &mut under_way).await {
            Ok(answer) => answer.unwrap_or(Err(RailError::NoAnswer)),
            Err(_) => {
                let late = LateCall { group, charge, amount, rail: name, under_way };
                let _ended_with_the_schedule = self.late_answers.sender.send(late);
                Err(RailError::NoAnswer)
            }
        }
    }

    /// Has the acquirer keep a card. Gives the acquirer's token, sealed for the `card_token` of
    /// this id, and its name, which a sandbox's has not.
    pub async fn tokenize(&self, id: ObjectId, card: CardSecrets) -> Result<(Vec<u8>, Option<RailName>)> {
        let (name, rail) = self.current_card_rail()?;
        let token = rail.call(RAIL_ANSWER_MAX, |rail| rail.tokenize(card)).await;
        let CardToken(token) = token.map_err(|_| Unavailable::OutcomeUnknown)?;
        let sealed = self.keyring.seal_secret(SealedFor::card_token(id), token.as_bytes());
        Ok((sealed.map_err(|_| Unavailable::OutcomeUnknown)?, name))
    }

    /// Has the acquirer delete its token of a stored card; false where it did not say that it has.
    pub async fn delete_token(&self, card: &CardRow) -> bool {
        let (Some(token), Ok(line)) = (self.token_of(card), self.card_rail(card.rail.as_ref())) else { return false };
        line.call(RAIL_ANSWER_MAX, |rail| rail.delete_token(token)).await == Ok(true)
    }

    /// Has the acquirer say what became of a charge, or close it; one that it has authorized is
    /// captured. Gives the command that its answer calls for, and what it says of a capture; `None`
    /// while the charge is under way there.
    pub(super) async fn end_card(
        &self,
        group: GroupNumber,
        charge: ObjectId,
        open: &OpenCharge,
    ) -> Result<Option<(MerchantCommand, Option<RailStamp>)>> {
        if let Some(authorized) = open.authorized.as_deref().cloned() {
            if !self.note_try(LedgerId::Merchant(group), charge).await? {
                return Err(Unavailable::OutcomeUnknown);
            }
            let call = CaptureCard { charge, amount: open.terms.amount, authorized };
            return self.capture(open.rail.as_ref(), call).await;
        }
        let line = self.card_rail(open.rail.as_ref())?;
        match line.call(RAIL_ANSWER_MAX, |rail| rail.close(charge, open)).await {
            Ok(CardFate::Answered(answer)) => Ok(answered(charge, answer)),
            Ok(CardFate::Closed) => Ok(answered(charge, CardAnswer::Refused(CardRefusal::Failed))),
            Err(_) => Err(Unavailable::OutcomeUnknown),
        }
    }

    /// The first answer for a charge in the journal; `None` if there is none yet.
    fn first_answer(&self, charge: ObjectId) -> Result<Option<FirstAnswer>> {
        let charge = self.object::<Charge>(charge)?;
        Ok(charge.and_then(|charge| FirstAnswer::of(&charge.first_outcome)))
    }
}
