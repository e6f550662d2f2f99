//! PIX charges (interface 2.3, 2.5): opened, registered at an institution, paid, or ended before a
//! payment. A payment that no charge waits for goes back to its payer.

use std::sync::Arc;

use ledger::merchant::{Repayment, SplitRequest, UnorderedPix};
use ledger::{
    Centavos, Charge, ChargeOutcome, Event, Fingerprint, GroupNumber, LedgerId, MerchantCommand, ObjectId, Payer,
    RailName, RailStamp, Record, Rejection, Requester, Sealed, SealedFor, Terms, Timestamp,
};

use super::labels::ReferenceLookup;
use super::outcome::CommandContext;
use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, Result, Unavailable};
use crate::rails::{OpenPix, PixFate, PixOpening, PixReceipt, RailError};
use crate::resident::{Outcome, UniqueLookup};
use derived::records::may_wait;

/// A PIX charge, as a merchant asks for it.
#[derive(Debug)]
pub struct NewPixCharge {
    /// Total, centavos.
    pub amount: Centavos,
    /// The recipients' parts, in the order of the request.
    pub splits: Vec<SplitRequest>,
    /// The payer.
    pub payer: Payer,
    /// How long the code can be paid, seconds.
    pub expires_in_seconds: i64,
    /// The reference that no other charge may have; `None` if it has no such reference.
    pub reference: Option<ReferenceLookup>,
}

/// A PIX charge that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PixOpened {
    /// The charge's id: its txid.
    pub charge: ObjectId,
    /// Its terms: amount, splits and fees.
    pub terms: Terms,
    /// When the code expires.
    pub expires_at: Timestamp,
    /// The ordinal of the merchant's Record that opened it: its code names the merchant as of then.
    pub ordinal: u64,
    /// The institution that registers it, and the sealed payer; none in a sandbox.
    pub registers: Option<(RailName, Option<Sealed>)>,
    /// True for who has opened it: nothing of it was sent to the institution yet.
    pub is_new: bool,
}

impl PixOpened {
    /// The charge that a Record opens; `None` if it opens no PIX charge.
    pub fn of(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::ChargeOpened { charge, terms, expires_at: Some(expires_at), rail, .. } => Some(Self {
                charge: *charge,
                terms: terms.clone(),
                expires_at: *expires_at,
                ordinal: record.ordinal,
                registers: rail.clone().map(|rail| (rail, record.personal.clone())),
                is_new: false,
            }),
            _ => None,
        })
    }

    /// The same, for who has just opened it.
    pub(super) fn new_of(record: &Record) -> Option<Self> {
        Self::of(record).map(|opened| Self { is_new: true, ..opened })
    }
}

/// Outcome of the cancellation or expiry of a PIX charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixEnded {
    /// It was cancelled: nobody can pay it any more.
    Cancelled,
    /// It had ended before, or a payment was faster; the payment is booked.
    NotPending,
}

/// Outcome of a payment that names a PIX charge.
#[derive(Clone, Debug)]
pub enum PixPayment {
    /// The charge is paid now, by this payment.
    Booked,
    /// The charge was paid before, by this payment.
    BookedBefore,
    /// The charge does not wait for it: the money goes back to the payer.
    Unordered(Box<Charge>),
}

impl Engine {
    /// Opens a PIX charge. Its code can be paid until it expires or is cancelled, once it has one:
    /// see [`Engine::register_pix`].
    pub async fn open_pix(
        &self,
        group: GroupNumber,
        wanted: NewPixCharge,
        context: CommandContext,
    ) -> Result<Outcome<PixOpened>> {
        let (rail, _) = self.rails.pix.current().ok_or(Unavailable::NoRail)?;
        self.pix_rail(rail)?.require_answers()?;
        let (charge, now, rail) = (self.new_id(group)?, self.now(), rail.cloned());
        let NewPixCharge { amount, splits, payer, expires_in_seconds, reference } = wanted;
        let payer = self.keyring.seal_value(SealedFor::payer(charge), now, &payer)?;
        let expires_at = charge.created_at().plus_ms(expires_in_seconds * 1000);
        let open = MerchantCommand::OpenPix { charge, amount, splits, expires_at, payer, rail };
        self.command_reserving(group, charge, open, reference, context).await?.typed(PixOpened::new_of)
    }

    /// Registers a charge of a named institution there, or cancels it where the institution
    /// refuses. It may be asked for again until the charge has ended, and answers the same.
    pub async fn register_pix(&self, group: GroupNumber, opened: &PixOpened) -> Result<PixOpening> {
        let (name, payer) = opened.registers.as_ref().ok_or(Unavailable::NoRail)?;
        let charge = opened.charge;
        if let Some(known) = self.object::<Charge>(charge)? {
            match known.code {
                Some(code) => return Ok(PixOpening::Registered { code }),
                None if known.outcome != ChargeOutcome::Pending => return Ok(PixOpening::Ended),
                None => {}
            }
        }
        let rail = self.pix_rail(Some(name))?;
        let payer = payer.as_ref().and_then(|sealed| self.keyring.open_value(SealedFor::payer(charge), sealed));
        let (amount, expires_at) = (opened.terms.amount, opened.expires_at);
        let payer: Payer = payer.unwrap_or_default();
        let call = |is_repeat| OpenPix { charge, amount, expires_at, payer: payer.clone(), is_repeat };
        let turn = (RAIL_ANSWER_MAX, !opened.is_new);
        let answer = self.order((group, charge), &rail, turn, |rail, is_repeat| rail.open(call(is_repeat))).await;
        let (command, registration) = match answer {
            Ok(PixOpening::Registered { code }) => {
                let command = MerchantCommand::RegisterPix { charge, code: code.clone() };
                (command, PixOpening::Registered { code })
            }
            Ok(refused @ PixOpening::Refused { .. }) => (MerchantCommand::CancelPix { charge }, refused),
            Ok(PixOpening::Ended) => {
                let permit = self.admission.take(INSIDE_BYTES).await;
                self.end_pix(group, charge, Some(name), permit.into()).await?;
                return Ok(PixOpening::Ended);
            }
            Err(RailError::NotSent) => return Err(Unavailable::RailUnavailable),
            Err(_) => return Err(Unavailable::OutcomeUnknown),
        };
        let permit = self.admission.take(INSIDE_BYTES).await;
        Ok(match self.command(group, command, permit).await? {
            Outcome::Refused(_) => PixOpening::Ended,
            _ => registration,
        })
    }

    /// Registers a charge whose opening was left without an answer.
    pub(super) async fn register_again(&self, group: GroupNumber, charge: ObjectId) -> Result<()> {
        let opened = may_wait(|| {
            self.history(charge)?
                .find_map(|found| {
                    found.map(|(_, record)| PixOpened::of(&record).filter(|opened| opened.charge == charge)).transpose()
                })
                .transpose()
        })?;
        let opened = opened.ok_or_else(|| Unavailable::contradicting("a PIX charge"))?;
        self.register_pix(group, &opened).await.map(drop)
    }

    /// Cancels a pending PIX charge. The institution is asked first: a payment that was faster is
    /// booked. Only the Record of a cancellation carries the caller's key.
    pub async fn cancel_pix(
        &self,
        group: GroupNumber,
        charge: ObjectId,
        context: CommandContext,
    ) -> Result<Outcome<PixEnded>> {
        let known = self.object::<Charge>(charge)?.ok_or_else(|| Unavailable::contradicting("a PIX charge"))?;
        self.end_pix(group, charge, known.rail.as_ref(), context).await
    }

    /// Has the institution end a code, and books what it says.
    pub(super) async fn end_pix(
        &self,
        group: GroupNumber,
        charge: ObjectId,
        rail: Option<&RailName>,
        context: CommandContext,
    ) -> Result<Outcome<PixEnded>> {
        let fate = self.pix_rail(rail)?.call(RAIL_ANSWER_MAX, |rail| rail.cancel(charge)).await;
        match fate.map_err(|_| Unavailable::OutcomeUnknown)? {
            PixFate::Cancelled => {
                let outcome = self.command(group, MerchantCommand::CancelPix { charge }, context).await?;
                Ok(match outcome {
                    Outcome::Refused(Rejection::ChargeNotPending) => Outcome::Recorded(PixEnded::NotPending),
                    outcome => outcome.typed(|_| Some(PixEnded::Cancelled))?,
                })
            }
            PixFate::Paid(payment) => {
                let of_rail = || CommandContext::from(Arc::clone(&context.permit));
                let paid = self.receive_pix(group, charge, payment, of_rail()).await?;
                if let Outcome::Recorded(PixPayment::Unordered(_)) = &paid {
                    // Another amount than the charge's: nobody can pay the code any more.
                    self.command(group, MerchantCommand::CancelPix { charge }, of_rail()).await?;
                }
                Ok(match paid {
                    Outcome::Recorded(_) | Outcome::Unchanged => Outcome::Recorded(PixEnded::NotPending),
                    Outcome::Refused(rejection) => Outcome::Refused(rejection),
                    Outcome::KeyTaken => Outcome::KeyTaken,
                })
            }
        }
    }

    /// Books a payment that names a charge of this group. A payment that the charge does not wait
    /// for is booked as the payer's, and sent back. A payment that is booked already changes
    /// nothing: an end-to-end id counts once for ever.
    pub async fn receive_pix(
        &self,
        group: GroupNumber,
        charge: ObjectId,
        payment: PixReceipt,
        context: CommandContext,
    ) -> Result<Outcome<PixPayment>> {
        let PixReceipt { end_to_end_id, amount, paid_at, .. } = payment;
        let CommandContext { key, requester, permit } = context;
        let stamp = RailStamp::new(end_to_end_id.clone(), paid_at);
        let requester = requester.or(Some(Requester::Rail(stamp)));
        let of_payment = |key| CommandContext { key, requester: requester.clone(), permit: Arc::clone(&permit) };
        let command = MerchantCommand::ConfirmPix { charge, amount, end_to_end_id: end_to_end_id.clone() };
        let outcome = self.command(group, command, of_payment(key)).await?;
        if !matches!(outcome, Outcome::Refused(Rejection::ChargeNotPending)) {
            return outcome.typed(|_| Some(PixPayment::Booked));
        }
        let Some(known) = self.object::<Charge>(charge)? else { return outcome.typed(|_| None) };
        match &known.outcome {
            ChargeOutcome::Paid { end_to_end_id: Some(paid), .. } if *paid == end_to_end_id => {
                return Ok(Outcome::Recorded(PixPayment::BookedBefore));
            }
            // A Record that ended the charge is not published yet: it is asked again.
            ChargeOutcome::Pending if known.terms.amount == amount => return Err(Unavailable::OutcomeUnknown),
            _ => {}
        }
        let received = |id, key| UnorderedPix { id, charge, amount, end_to_end_id: end_to_end_id.clone(), key };
        match self.receive_unordered(group, &end_to_end_id, received, of_payment(None)).await? {
            Outcome::Refused(rejection) => Ok(Outcome::Refused(rejection)),
            _ => Ok(Outcome::Recorded(PixPayment::Unordered(Box::new(known)))),
        }
    }

    /// Books a payment that no charge waits for, unless it is booked already, and orders its
    /// repayment.
    async fn receive_unordered(
        &self,
        group: GroupNumber,
        end_to_end_id: &str,
        received: impl Fn(ObjectId, Fingerprint) -> UnorderedPix,
        context: CommandContext,
    ) -> Result<Outcome> {
        let key = self.keyring.fingerprint("pix-end-to-end", &[&group.0.to_be_bytes(), end_to_end_id.as_bytes()]);
        loop {
            let command = MerchantCommand::ReceiveUnorderedPix(Box::new(received(self.new_id(group)?, key)));
            match self.command_once(group, key, command, context.clone()).await? {
                Outcome::KeyTaken => {}
                Outcome::Recorded(record) => {
                    self.order_repayments(group, Repayment::decided_by(&record), &context.permit).await;
                    return Ok(Outcome::Recorded(record));
                }
                outcome => return Ok(outcome),
            }
        }
    }

    /// Sends a command whose Record uses up a unique key; nothing changes where the key is used up.
    /// `KeyTaken` where another command came in between: the caller asks again.
    pub(super) async fn command_once(
        &self,
        group: GroupNumber,
        unique: Fingerprint,
        command: MerchantCommand,
        context: CommandContext,
    ) -> Result<Outcome> {
        let ledger = LedgerId::Merchant(group);
        let found = self.shard(group).read_model().find_unique(ledger, unique)?;
        if found.sequence.is_some() {
            return Ok(Outcome::Unchanged);
        }
        let unique = Some(UniqueLookup { key: unique, looked_up_through: found.looked_up_through });
        self.command_with(group, command, unique, context).await
    }
}
