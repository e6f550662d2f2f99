//! Card charges (interface 2.1, 2.2). The intent is durable before the acquirer is called, and the
//! acquirer's answer is a second Record. A silent acquirer leaves the charge pending; the schedule
//! asks again by the charge's id.

use std::sync::Arc;
use std::time::Duration;

use ledger::charge::{Charge, ChargeOutcome};
use ledger::event::{CardFace, CardRefusal, Terms};
use ledger::fees::PaymentMethod;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::{MerchantCommand, OpenCharge, RECONCILE_AFTER_MS, SplitRequest};
use ledger::money::Centavos;
use ledger::personal::{MerchantProfile, Payer, SealedFor};
use ledger::rail_name::RailName;
use ledger::record::{RailStamp, Record};

use super::late_answers::{LateCall, answered};
use super::outcome::{CommandContext, terms_opened_by};
use super::{Engine, RAIL_ANSWER_MAX, Unavailable};
use crate::journal::Permit;
use crate::rails::{CardAnswer, CardFate, CardSecrets, CardToken, ChargeCard, ChargedCard, RailError};
use crate::resident::Outcome;

/// How long a call of a named acquirer may take, its caller gone or not.
const CARD_CALL_MAX: Duration = Duration::from_secs(60);
/// How long after its id was made a charge may be taken to the acquirer, milliseconds: well before
/// the reconciliation closes it. A charge that comes later was held up, and is left to the
/// reconciliation.
const CALL_STARTS_WITHIN_MS: i64 = RECONCILE_AFTER_MS / 2;

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
    /// The card, for the time of the call only.
    pub card: CardSecrets,
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
    ) -> Result<Outcome<CardCharged>, Unavailable> {
        let (name, acquirer) = self.current_card_rail()?;
        acquirer.require_answers()?;
        let charge = self.new_id(group)?;
        let NewCardCharge { amount, method, installments, splits, face, payer, card } = wanted;
        let payer = self.keyring.seal_value(SealedFor::payer(charge), self.now(), &payer)?;
        let command = MerchantCommand::OpenCard {
            charge,
            amount,
            method,
            installments,
            splits,
            card: face,
            payer,
            rail: name.clone(),
        };
        let permit = Arc::clone(&context.permit);
        let opened = match self.command(group, command, context).await? {
            Outcome::Recorded(record) => record,
            refused => return refused.typed(|_| None),
        };
        let card = ChargedCard::Given(card);
        let merchant = self.merchant_profile(group);
        let call = ChargeCard { charge, amount, installments, method, card, merchant };
        let outcome = self.ask_acquirer(group, call, name.as_ref(), permit).await?;
        let answer = match outcome {
            Outcome::Recorded(record) => ChargeOutcome::in_record(&record, charge).as_ref().and_then(FirstAnswer::of),
            // The order is booked: what cannot be read now is no refusal.
            _ => self.first_answer(charge).map_err(|_| Unavailable::OutcomeUnknown)?,
        };
        let charged = || Some(CardCharged { charge, terms: terms_opened_by(&opened)?.1.clone(), answer: answer? });
        charged().map(Outcome::Recorded).ok_or_else(|| Unavailable::contradicting("a card charge"))
    }

    /// What is known of a merchant; nothing when the personal data was erased.
    pub(super) fn merchant_profile(&self, group: GroupNumber) -> MerchantProfile {
        let sealed = self.merchant(group, |row| row.profiles.current().cloned()).flatten();
        let open = |sealed| self.keyring.open_value(SealedFor::merchant(group), &sealed);
        sealed.and_then(open).unwrap_or_default()
    }

    /// The outcome of the card charge that a Record opened, as its request was answered; none while
    /// the acquirer is being asked.
    pub fn card_charged(&self, opened: &Record) -> Result<Option<CardCharged>, Unavailable> {
        let opened = terms_opened_by(opened).ok_or_else(|| Unavailable::contradicting("a card charge"))?;
        let (charge, terms) = (opened.0, opened.1.clone());
        Ok(self.first_answer(charge)?.map(|answer| CardCharged { charge, terms, answer }))
    }

    /// Calls the acquirer for a charge whose intent is durable, and records its answer. A charge
    /// that comes too late to be taken to the acquirer counts as unanswered.
    pub async fn ask_acquirer(
        &self,
        group: GroupNumber,
        call: ChargeCard,
        rail: Option<&RailName>,
        permit: Arc<Permit>,
    ) -> Result<Outcome, Unavailable> {
        let charge = call.charge;
        let is_late = charge.created_at().plus_ms(CALL_STARTS_WITHIN_MS) <= self.now();
        let answer = match is_late {
            true => Err(RailError::NoAnswer),
            false => self.call_acquirer(group, call, rail).await,
        };
        let (command, stamp) = match answer {
            Ok(answer) => answered(charge, answer),
            Err(RailError::NotSent | RailError::NoAnswer) => (MerchantCommand::LeaveUnanswered { charge }, None),
        };
        self.command(group, command, CommandContext::of_rail(stamp, permit)).await
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
        if name.is_none() {
            return line.call(rail.answers_within(), |rail| rail.charge(call)).await;
        }
        let (charge, breaker, called) = (call.charge, line.breaker.clone(), Arc::clone(rail));
        let mut under_way = tokio::spawn(async move { breaker.call(CARD_CALL_MAX, || called.charge(call)).await });
        match tokio::time::timeout(rail.answers_within(), &mut under_way).await {
            Ok(answer) => answer.unwrap_or(Err(RailError::NoAnswer)),
            Err(_) => {
                let _ended_with_the_schedule = self.late_answers.sender.send(LateCall { group, charge, under_way });
                Err(RailError::NoAnswer)
            }
        }
    }

    /// Has the acquirer keep a card. Gives the acquirer's token, sealed for the `card_token` of
    /// this id, and its name, which a sandbox's has not.
    pub async fn tokenize(&self, id: ObjectId, card: CardSecrets) -> Result<(Vec<u8>, Option<RailName>), Unavailable> {
        let (name, rail) = self.current_card_rail()?;
        let token = rail.call(RAIL_ANSWER_MAX, |rail| rail.tokenize(card)).await;
        let CardToken(token) = token.map_err(|_| Unavailable::OutcomeUnknown)?;
        let sealed = self.keyring.seal_secret(SealedFor::card_token(id), token.as_bytes());
        Ok((sealed.map_err(|_| Unavailable::OutcomeUnknown)?, name))
    }

    /// Has the acquirer say what became of a charge, or close it. Gives the command that its answer
    /// calls for, and what it says of a capture.
    pub(super) async fn end_card(
        &self,
        charge: ObjectId,
        open: &OpenCharge,
    ) -> Result<(MerchantCommand, Option<RailStamp>), Unavailable> {
        let line = self.card_rail(open.rail.as_ref())?;
        match line.call(RAIL_ANSWER_MAX, |rail| rail.close(charge, open)).await {
            Ok(CardFate::Answered(answer)) => Ok(answered(charge, answer)),
            Ok(CardFate::Closed) => Ok((MerchantCommand::RefuseCard { charge, refusal: CardRefusal::Failed }, None)),
            Err(RailError::NotSent | RailError::NoAnswer) => Err(Unavailable::OutcomeUnknown),
        }
    }

    /// The first answer for a charge in the journal; `None` if there is none yet.
    fn first_answer(&self, charge: ObjectId) -> Result<Option<FirstAnswer>, Unavailable> {
        let charge = self.object::<Charge>(charge)?;
        Ok(charge.and_then(|charge| FirstAnswer::of(&charge.first_outcome)))
    }
}
