//! Open charges, by card or PIX: their terms, with the check that splits stay below the total, and
//! the seller's part.

use minicbor::{Decode, Encode};

use super::rail_waits::Waits;
use super::{MerchantState, RecipientStatus};
use crate::event::SellerPart;
use crate::fees::Commission;
use crate::{
    CardBrand, CardFace, Centavos, Decision, Event, Fingerprint, IdKey, IdMap, ObjectId, PaymentMethod, RailName,
    RailStamp, Rate, RecipientNumber, Record, Rejection, Result, Sealed, Split, Terms, Timestamp,
};

/// A recipient's part of a charge, as the caller names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRequest {
    /// The recipient's id.
    pub recipient: ObjectId,
    /// Centavos, above zero.
    pub amount: Centavos,
}

/// A recipient's part of a charge, as the caller names it: by an amount, or by a share of the
/// total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRule {
    /// The recipient's id.
    pub recipient: ObjectId,
    /// Size of the part.
    pub part: SplitPart,
}

/// Size of a part of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitPart {
    /// Centavos, above zero.
    Amount(Centavos),
    /// A share of the total, above 0 %.
    Percent(Rate),
}

impl SplitRule {
    /// The part of a charge of `total`; a share is rounded half up to the centavo, by itself.
    pub fn of(self, total: Centavos) -> SplitRequest {
        let amount = match self.part {
            SplitPart::Amount(amount) => amount,
            SplitPart::Percent(share) => share.of(total),
        };
        SplitRequest { recipient: self.recipient, amount }
    }
}

/// A reference that one thing of its kind may have in an account, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniqueReference {
    /// What has it; of a recipient, which gets its id where it is decided, any id.
    pub id: ObjectId,
    /// Keyed digest of account and reference.
    pub key: Fingerprint,
    /// Keyed digest of the request's body.
    pub body: Fingerprint,
}

/// A change of what a charge has of its caller. No rule of money reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeChange {
    /// Replace the metadata, sealed, as a whole.
    Metadata(Sealed),
    /// Link a fiscal document.
    LinkDocument {
        /// Keyed digest of account and access key.
        document: Fingerprint,
        /// The recipient whose document it is; `None` for the merchant's.
        of: Option<RecipientNumber>,
        /// Whether the issuer is the merchant or a recipient of the charge.
        issuer_known: bool,
        /// The access key, sealed.
        access_key: Sealed,
    },
    /// Take back the link of a fiscal document.
    UnlinkDocument {
        /// Keyed digest of account and access key.
        document: Fingerprint,
    },
}

impl ChargeChange {
    /// The event of the change, and its personal data.
    pub(super) fn decided(self, charge: ObjectId, key: Fingerprint) -> Decision {
        let (event, personal) = match self {
            Self::Metadata(metadata) => (Event::MetadataChanged { id: charge, key }, Some(metadata)),
            Self::LinkDocument { document, of, issuer_known, access_key } => {
                (Event::FiscalDocumentLinked { charge, key, document, of, issuer_known }, Some(access_key))
            }
            Self::UnlinkDocument { document } => (Event::FiscalDocumentUnlinked { charge, key, document }, None),
        };
        Decision { events: vec![event], personal }
    }
}

/// A charge that waits for its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OpenCharge {
    /// Amount, splits and fees: what it moves once paid.
    #[n(0)]
    pub terms: Terms,
    /// Its rail is asked from this time on: see [`OpenCharge::first_attention`]; expiry of a PIX
    /// code that is registered.
    #[n(1)]
    pub attention_at: Timestamp,
    /// The card; none for PIX.
    #[n(2)]
    pub card: Option<CardFace>,
    /// The ordinal of the merchant's Record that opened it.
    #[n(3)]
    pub opened: u64,
    /// The institution of a PIX charge; none in a sandbox, and for cards.
    #[n(4)]
    pub rail: Option<RailName>,
    /// When the code expires of a PIX charge that its institution has still to register; none of
    /// any other charge.
    #[n(5)]
    pub registers_until: Option<Timestamp>,
    /// The authorization of a card charge that is still to be captured.
    #[n(6)]
    pub authorized: Option<Box<Authorization>>,
    /// When the order was last sent again: to register the charge, or to capture it; `None` if it
    /// was sent once.
    #[n(7)]
    pub tried_at: Option<Timestamp>,
}

/// An acquirer's word on a charge that it has authorized and not captured.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Authorization {
    /// Its id of the authorization, when it gave it, and the issuer's code.
    #[n(0)]
    pub stamp: RailStamp,
    /// The card's scheme; `None` if it names none.
    #[n(1)]
    pub brand: Option<CardBrand>,
}

impl Waits for OpenCharge {
    fn attention_at(&self) -> Timestamp {
        self.attention_at
    }

    fn opened(&self) -> u64 {
        self.opened
    }
}

impl UniqueReference {
    /// The decision that makes something, with the reference reserved for it. One that changes
    /// nothing reserves nothing.
    pub(super) fn reserved_by(self, mut made: Decision) -> Decision {
        let Self { id, key, body } = self;
        let id = match made.events.first() {
            None => return made,
            Some(Event::RecipientRegistered { id, .. }) => *id,
            Some(_) => id,
        };
        made.events.push(Event::ReferenceReserved { id, key, body });
        made
    }
}

/// How long a card charge may wait for its acquirer before a reconciliation asks, milliseconds.
pub const RECONCILE_AFTER_MS: i64 = 60_000;

/// How long the request that opened a PIX charge may take to register it, before the schedule does,
/// milliseconds.
const REGISTER_AFTER_MS: i64 = 30_000;

/// How long the order to capture an authorized charge may take, before the schedule orders it
/// again, milliseconds.
pub(super) const CAPTURE_AGAIN_AFTER_MS: i64 = 15_000;

impl OpenCharge {
    /// When the rail of a charge is to be asked about it, after an event that took effect at this
    /// time; `None` if the event changes nothing of that.
    pub fn attention_after(event: &Event, at: Timestamp) -> Option<Timestamp> {
        match event {
            Event::ChargeOpened { expires_at, rail, .. } => {
                Some(Self::first_attention(at, *expires_at, rail.is_some()))
            }
            Event::CardAuthorized { .. } => Some(at.plus_ms(CAPTURE_AGAIN_AFTER_MS)),
            _ => None,
        }
    }

    /// When its rail is first asked about a charge that is opened at `opened_at`: 60 s after a card
    /// charge; at the expiry of a PIX code, or 30 s after its opening where an institution
    /// registers it.
    pub fn first_attention(opened_at: Timestamp, expires_at: Option<Timestamp>, registers: bool) -> Timestamp {
        match expires_at {
            Some(expires_at) if registers => expires_at.min(opened_at.plus_ms(REGISTER_AFTER_MS)),
            Some(expires_at) => expires_at,
            None => opened_at.plus_ms(RECONCILE_AFTER_MS),
        }
    }
}

impl MerchantState {
    /// The charges that wait for their outcome, by txid.
    pub fn open_charges(&self) -> &IdMap<ObjectId, OpenCharge> {
        self.open_charges.by_id()
    }

    /// The open charges whose rail is to be asked by `now`, roughly oldest first.
    pub fn needing_attention(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &OpenCharge)> {
        self.open_charges.needing_attention(now)
    }

    /// The terms of a charge, with the refusals of interface 2.4 and 7 in their order: each check
    /// looks at every split before the next check does.
    pub(super) fn terms(
        &self,
        amount: Centavos,
        method: PaymentMethod,
        installments: u8,
        requests: &[SplitRequest],
        ids: &IdKey,
    ) -> Result<Terms> {
        self.takes_charges()?;
        if !requests.is_empty() && !self.settings.split_enabled {
            return Err(Rejection::SplitNotEnabled);
        }
        let found = requests.iter().enumerate().map(|(index, request)| {
            self.find_recipient(request.recipient, ids).ok_or(Rejection::SplitRecipientNotFound { index })
        });
        let found = found.collect::<Result<Vec<_>, _>>()?;
        if let Some(index) = found.iter().position(|(_, recipient)| recipient.status != RecipientStatus::Active) {
            return Err(Rejection::SplitRecipientNotActive { index });
        }
        if let Some(index) = requests.iter().position(|request| request.amount.is_zero()) {
            return Err(Rejection::SplitBelowCentavo { index });
        }
        let parts = found.iter().zip(requests);
        let splits: Vec<_> =
            parts.map(|((number, _), request)| Split { recipient: *number, amount: request.amount }).collect();
        self.quote(amount, None, method, installments, splits)
    }

    /// The terms of a charge with these splits, at the current fees. An initial fee comes on top of
    /// `amount`. Splits whose sum reaches the total are refused (interface 2.4 rule 2).
    pub(super) fn quote(
        &self,
        amount: Centavos,
        initial_fee: Option<Centavos>,
        method: PaymentMethod,
        installments: u8,
        splits: Vec<Split>,
    ) -> Result<Terms> {
        let splits_total = splits.iter().map(|split| split.amount).sum::<Centavos>();
        let amount = amount + initial_fee.unwrap_or_default();
        if splits_total >= amount {
            return Err(Rejection::SplitsReachTotal);
        }
        let commission = Commission::quote(&self.settings, method, installments, amount, amount - splits_total);
        let settlement_days = self.settings.options.card_settlement_days;
        let terms = Terms { amount, method, installments, splits, commission, settlement_days, initial_fee };
        if self.settings.options.split_guard_net && !terms.splits.is_empty() && terms.seller_net() < Centavos::ZERO {
            return Err(Rejection::SplitsExceedNet);
        }
        Ok(terms)
    }

    /// An open charge of the kind asked for.
    pub(super) fn open_charge(&self, charge: ObjectId, card: bool) -> Result<&OpenCharge> {
        let open = self.open_charges.get(charge).ok_or(Rejection::ChargeNotPending)?;
        if open.terms.method.is_card() != card {
            return Err(Rejection::ChargeNotPending);
        }
        Ok(open)
    }

    /// The seller's part of a paid charge: a negative net is drawn from Available, then Deficit.
    pub(super) fn seller_part(&self, net: Centavos) -> SellerPart {
        let shortfall = (-net).or_zero();
        let from_available = shortfall.min(self.available());
        SellerPart { raised: net.or_zero(), from_available, to_deficit: shortfall - from_available }
    }

    /// Keeps a charge until its outcome is known.
    pub(super) fn keep_open(
        &mut self,
        charge: ObjectId,
        terms: &Terms,
        card: Option<&CardFace>,
        expires_at: Option<Timestamp>,
        rail: Option<&RailName>,
        record: &Record,
    ) {
        let attention_at = OpenCharge::first_attention(record.effective_at, expires_at, rail.is_some());
        let registers_until = expires_at.filter(|_| rail.is_some());
        let (terms, card, opened, rail) = (terms.clone(), card.cloned(), record.ordinal, rail.cloned());
        let (authorized, tried_at) = (None, None);
        let open = OpenCharge { terms, attention_at, card, opened, rail, registers_until, authorized, tried_at };
        self.open_charges.insert(charge, open);
    }

    /// Keeps a PIX charge that its institution has registered until its code expires.
    pub(super) fn keep_registered(&mut self, charge: ObjectId) {
        let Some(open) = self.open_charges.get(charge).cloned() else { return };
        let attention_at = open.registers_until.unwrap_or(open.attention_at);
        self.open_charges.insert(charge, OpenCharge { attention_at, registers_until: None, ..open });
    }
}
