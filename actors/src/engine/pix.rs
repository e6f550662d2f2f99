//! PIX charges (interface 2.3, 2.5): opened, paid, or ended before a payment. A payment that comes
//! after the end goes back to the payer.

use std::sync::Arc;

use ledger::charge::{Charge, ChargeOutcome};
use ledger::event::Terms;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::{MerchantCommand, SplitRequest};
use ledger::money::Centavos;
use ledger::personal::{Payer, SealedFor};
use ledger::record::{RailStamp, Record};
use ledger::rejection::Rejection;
use ledger::time::Timestamp;

use super::outcome::{CommandContext, terms_opened_by};
use super::{Engine, RAIL_ANSWER_MAX, Unavailable};
use crate::rails::{PixFate, RailError};
use crate::resident::Outcome;

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
}

impl PixOpened {
    /// The charge that a Record opens; none when it opens no PIX charge.
    pub fn of(record: &Record) -> Option<Self> {
        let (charge, terms, expires_at) = terms_opened_by(record)?;
        Some(Self { charge, terms: terms.clone(), expires_at: expires_at?, ordinal: record.ordinal })
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

/// Outcome of a payment of a PIX charge.
#[derive(Clone, Debug)]
pub enum PixPayment {
    /// The charge is paid.
    Booked,
    /// This charge was cancelled before: the money goes back to the payer.
    TooLate(Box<Charge>),
}

impl Engine {
    /// Opens a PIX charge. Its code can be paid until it expires or is cancelled.
    pub async fn open_pix(
        &self,
        group: GroupNumber,
        wanted: NewPixCharge,
        context: CommandContext,
    ) -> Result<Outcome<PixOpened>, Unavailable> {
        self.require_rails()?;
        let (charge, now) = (self.new_id(group)?, self.now());
        let NewPixCharge { amount, splits, payer, expires_in_seconds } = wanted;
        let payer = self.keyring.seal_value(SealedFor::payer(charge), now, &payer)?;
        let expires_at = charge.created_at().plus_ms(expires_in_seconds * 1000);
        let command = MerchantCommand::OpenPix { charge, amount, splits, expires_at, payer };
        self.command(group, command, context).await?.typed(PixOpened::of)
    }

    /// Cancels a pending PIX charge. The institution is asked first: a payment that was faster is
    /// booked. Only the Record of a cancellation carries the caller's key.
    pub async fn cancel_pix(
        &self,
        group: GroupNumber,
        charge: ObjectId,
        mut context: CommandContext,
    ) -> Result<Outcome<PixEnded>, Unavailable> {
        let (command, stamp) = self.end_pix(charge).await?;
        let is_cancellation = matches!(command, MerchantCommand::CancelPix { .. });
        if !is_cancellation {
            context = CommandContext::of_rail(stamp, context.permit);
        }
        Ok(match self.command(group, command, context).await? {
            Outcome::Recorded(_) if is_cancellation => Outcome::Recorded(PixEnded::Cancelled),
            Outcome::Recorded(_) | Outcome::Unchanged | Outcome::Refused(Rejection::ChargeNotPending) => {
                Outcome::Recorded(PixEnded::NotPending)
            }
            Outcome::Refused(rejection) => Outcome::Refused(rejection),
            Outcome::KeyTaken => Outcome::KeyTaken,
        })
    }

    /// Books a payer's payment of a PIX charge. A code is paid once: a second late payment changes
    /// nothing. Only the Record of a payment in time carries the caller's key.
    pub async fn receive_pix(
        &self,
        group: GroupNumber,
        charge: ObjectId,
        end_to_end_id: String,
        context: CommandContext,
    ) -> Result<Outcome<PixPayment>, Unavailable> {
        let (requester, permit) = (context.requester.clone(), Arc::clone(&context.permit));
        let command = MerchantCommand::ConfirmPix { charge, end_to_end_id: end_to_end_id.clone() };
        let outcome = self.command(group, command, context).await?;
        if !matches!(outcome, Outcome::Refused(Rejection::ChargeNotPending)) {
            return outcome.typed(|_| Some(PixPayment::Booked));
        }
        let Some(charge) = self.object::<Charge>(charge)? else { return outcome.typed(|_| None) };
        if charge.outcome != ChargeOutcome::Cancelled {
            return outcome.typed(|_| None);
        }
        if !charge.was_paid_late {
            let (id, amount) = (charge.id, charge.terms.amount);
            let command = MerchantCommand::ReceiveLatePix { charge: id, amount, end_to_end_id };
            let context = CommandContext { key: None, requester, permit };
            let late = self.command_and_repay(group, command, context).await?;
            if let Outcome::Refused(rejection) = late {
                return Ok(Outcome::Refused(rejection));
            }
        }
        Ok(Outcome::Recorded(PixPayment::TooLate(Box::new(charge))))
    }

    /// Has the institution end a code. Gives the command that its answer calls for, and what it
    /// says of a payment.
    pub(super) async fn end_pix(&self, charge: ObjectId) -> Result<(MerchantCommand, Option<RailStamp>), Unavailable> {
        let fate = tokio::time::timeout(RAIL_ANSWER_MAX, self.require_rails()?.pix.cancel(charge)).await;
        match fate.unwrap_or(Err(RailError::NoAnswer)) {
            Ok(PixFate::Cancelled) => Ok((MerchantCommand::CancelPix { charge }, None)),
            Ok(PixFate::Paid { end_to_end_id, paid_at }) => {
                let stamp = RailStamp { id: end_to_end_id.clone(), at: paid_at };
                Ok((MerchantCommand::ConfirmPix { charge, end_to_end_id }, Some(stamp)))
            }
            Err(RailError::NoAnswer) => Err(Unavailable::OutcomeUnknown),
        }
    }
}
