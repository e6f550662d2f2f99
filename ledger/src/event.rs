//! What happened, as decided: the facts of a Record, in the past tense. Events carry decided amounts, so replay never recomputes
//! a fee. The numbers are part of the journal's format: a number is never given to another event or field; a new field is optional.

use minicbor::{Decode, Encode};

use crate::fees::{Commission, PaymentMethod, Settings};
use crate::id::{Fingerprint, ObjectId, RecipientNumber};
use crate::money::Centavos;
use crate::time::{Minute, Timestamp};

/// One part of a charge that belongs to a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Split {
    /// Whose.
    #[n(0)]
    pub recipient: RecipientNumber,
    /// How much, exactly, with no fee deducted.
    #[n(1)]
    pub amount: Centavos,
}

/// What a charge moves once it is paid; fixed when it is created.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Terms {
    /// The charge's total, centavos.
    #[n(0)]
    pub amount: Centavos,
    /// How it is paid.
    #[n(1)]
    pub method: PaymentMethod,
    /// 1 to 12.
    #[n(2)]
    pub installments: u8,
    /// The recipients' parts, in the order of the request.
    #[n(3)]
    pub splits: Vec<Split>,
    /// The platform's part.
    #[n(4)]
    pub commission: Commission,
    /// Days of 24 hours until the seller's part of a card charge is available.
    #[n(5)]
    pub settlement_days: u16,
}

impl Terms {
    /// Sum of the recipients' parts.
    pub fn splits_total(&self) -> Centavos {
        self.splits.iter().map(|split| split.amount).sum()
    }

    /// What is left of the total after the recipients' parts (`sellerGross`).
    pub fn seller_gross(&self) -> Centavos {
        self.amount - self.splits_total()
    }

    /// What the seller gets (`sellerAmount`); negative when fees exceed the seller's part.
    pub fn seller_net(&self) -> Centavos {
        self.seller_gross() - self.commission.total()
    }
}

/// What may be known of a card: never the number.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CardFace {
    /// The first six digits.
    #[n(0)]
    pub bin: u32,
    /// The last four digits.
    #[n(1)]
    pub last4: u16,
    /// `visa`, `mastercard`, …
    #[n(2)]
    pub brand: CardBrand,
}

/// The card scheme, as told by the number's first digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum CardBrand {
    /// Any other.
    #[n(0)]
    Other,
    /// Visa.
    #[n(1)]
    Visa,
    /// Mastercard.
    #[n(2)]
    Mastercard,
    /// American Express.
    #[n(3)]
    Amex,
    /// Elo.
    #[n(4)]
    Elo,
    /// Hipercard.
    #[n(5)]
    Hipercard,
}

/// Why the acquirer said no (`cardStatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum CardRefusal {
    /// The issuer refused.
    #[n(0)]
    NotAuthorized,
    /// No limit or balance.
    #[n(1)]
    InsufficientFunds,
    /// The acquirer never had the charge.
    #[n(2)]
    Failed,
}

/// What the seller's part did to the merchant's accounts: raised one, or drew on others when fees exceeded it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SellerPart {
    /// Raised: `Pending` for a card, `Available` for PIX.
    #[n(0)]
    pub raised: Centavos,
    /// Drawn from `Available`.
    #[n(1)]
    pub from_available: Centavos,
    /// Added to the `Deficit`.
    #[n(2)]
    pub to_deficit: Centavos,
}

/// Money that fell due in one minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Due {
    /// When it fell due.
    #[n(0)]
    pub minute: Minute,
    /// How much.
    #[n(1)]
    pub amount: Centavos,
}

/// A fact. The doc of each variant says who decides it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Event {
    /// Merchant: the account group was opened. Personal part: [`crate::personal::MerchantProfile`].
    #[n(0)]
    MerchantOpened {
        /// The merchant's id.
        #[n(0)]
        id: ObjectId,
        /// What the operator configured.
        #[n(1)]
        settings: Settings,
    },
    /// Merchant: the operator changed settings or profile. Personal part, if the profile changed: the whole new one.
    #[n(1)]
    MerchantChanged {
        /// The settings from here on.
        #[n(0)]
        settings: Settings,
    },
    /// Merchant: an API key was made.
    #[n(2)]
    ApiKeyCreated {
        /// The key's id.
        #[n(0)]
        id: ObjectId,
        /// SHA-256 of the key.
        #[cbor(n(1), with = "minicbor::bytes")]
        digest: [u8; 32],
        /// Where webhooks go.
        #[n(2)]
        webhook_url: Option<String>,
        /// The webhook secret, sealed under the master key.
        #[cbor(n(3), with = "minicbor::bytes")]
        webhook_secret: Vec<u8>,
    },
    /// Merchant: an API key was revoked.
    #[n(3)]
    ApiKeyRevoked {
        /// The key's id.
        #[n(0)]
        id: ObjectId,
    },
    /// Merchant: a recipient was registered, as a draft. Personal part: [`crate::personal::RecipientProfile`].
    #[n(4)]
    RecipientRegistered {
        /// Its number in the group.
        #[n(0)]
        number: RecipientNumber,
        /// Its id.
        #[n(1)]
        id: ObjectId,
        /// Keyed digest of its document, to find it again.
        #[n(2)]
        document: Fingerprint,
    },
    /// Merchant: a rejected recipient was registered again, with new data, and is a draft once more.
    #[n(5)]
    RecipientRegisteredAgain {
        /// Its number in the group.
        #[n(0)]
        number: RecipientNumber,
    },
    /// Merchant: a draft went to the acquirer for analysis and is pending.
    #[n(6)]
    RecipientSubmitted {
        /// Its number in the group.
        #[n(0)]
        number: RecipientNumber,
    },
    /// Merchant: the service's team approved; the recipient is active.
    #[n(7)]
    RecipientApproved {
        /// Its number in the group.
        #[n(0)]
        number: RecipientNumber,
    },
    /// Merchant: the service's team refused.
    #[n(8)]
    RecipientRejected {
        /// Its number in the group.
        #[n(0)]
        number: RecipientNumber,
        /// Why.
        #[n(1)]
        notes: String,
    },
    /// Merchant: a charge was created and is pending. Personal part: [`crate::personal::Payer`].
    #[n(9)]
    ChargeOpened {
        /// The charge's id: its txid.
        #[n(0)]
        charge: ObjectId,
        /// What it moves once paid.
        #[n(1)]
        terms: Terms,
        /// The card; none for PIX.
        #[n(2)]
        card: Option<CardFace>,
        /// When a PIX code expires; none for cards.
        #[n(3)]
        expires_at: Option<Timestamp>,
    },
    /// Merchant: the acquirer captured the charge.
    #[n(10)]
    CardCaptured {
        /// Which.
        #[n(0)]
        charge: ObjectId,
        /// Its terms.
        #[n(1)]
        terms: Terms,
        /// What the acquirer keeps of the total.
        #[n(2)]
        acquirer_mdr: Centavos,
        /// The seller's part.
        #[n(3)]
        seller: SellerPart,
        /// When the seller's part is available.
        #[n(4)]
        seller_due: Minute,
        /// When the splits are available, and the acquirer pays us.
        #[n(5)]
        splits_due: Minute,
        /// The ordinal of the merchant's Record that opened the charge: lists are in the order of opening. None in Records of the first
        /// builds.
        #[n(6)]
        opened: Option<u64>,
    },
    /// Merchant: the acquirer refused the charge.
    #[n(11)]
    CardRefused {
        /// Which.
        #[n(0)]
        charge: ObjectId,
        /// Why.
        #[n(1)]
        refusal: CardRefusal,
        /// The ordinal of the merchant's Record that opened the charge: lists are in the order of opening. None in Records of the first
        /// builds.
        #[n(2)]
        opened: Option<u64>,
        /// How it was to be paid. None in Records of the first builds.
        #[n(3)]
        method: Option<PaymentMethod>,
    },
    /// Merchant: the acquirer did not answer in time; the caller was told `pending`, and the rail is asked again.
    #[n(12)]
    CardUnanswered {
        /// Which.
        #[n(0)]
        charge: ObjectId,
    },
    /// Merchant: the payer paid a PIX charge.
    #[n(13)]
    PixPaid {
        /// Which.
        #[n(0)]
        charge: ObjectId,
        /// Its terms.
        #[n(1)]
        terms: Terms,
        /// The seller's part.
        #[n(2)]
        seller: SellerPart,
        /// End-to-end id of the payment (32 characters).
        #[n(3)]
        end_to_end_id: String,
        /// The ordinal of the merchant's Record that opened the charge: lists are in the order of opening. None in Records of the first
        /// builds.
        #[n(4)]
        opened: Option<u64>,
    },
    /// Merchant: a PIX charge expired or was cancelled, unpaid.
    #[n(14)]
    PixCancelled {
        /// Which.
        #[n(0)]
        charge: ObjectId,
        /// The recipients of its splits, whose statements listed them: one for each split.
        #[n(1)]
        recipients: Vec<RecipientNumber>,
        /// The ordinal of the merchant's Record that opened the charge: lists are in the order of opening. None in Records of the first
        /// builds.
        #[n(2)]
        opened: Option<u64>,
    },
    /// Merchant and recipient: pending money became available.
    #[n(15)]
    Matured {
        /// What fell due, minute by minute.
        #[n(0)]
        dues: Vec<Due>,
        /// All foreign Records through this sequence were counted.
        #[n(1)]
        foreign_through: u64,
        /// When this ledger needs attention next.
        #[n(2)]
        next_due: Option<Timestamp>,
    },
    /// Merchant: the acquirer paid the platform what fell due.
    #[n(16)]
    AcquirerPaid {
        /// What fell due, minute by minute.
        #[n(0)]
        dues: Vec<Due>,
    },
    /// Merchant: available money repaid the deficit.
    #[n(17)]
    DeficitRecovered {
        /// How much.
        #[n(0)]
        amount: Centavos,
    },
    /// System: the sandbox clock was moved.
    #[n(18)]
    ClockMoved {
        /// Sandbox time minus wall time, milliseconds, from here on.
        #[n(0)]
        offset_ms: i64,
    },
    /// Merchant: a recipient's registration was changed; its status stays. Personal part: the whole new
    /// [`crate::personal::RecipientProfile`].
    #[n(19)]
    RecipientChanged {
        /// Its number in the group.
        #[n(0)]
        number: RecipientNumber,
    },
}
