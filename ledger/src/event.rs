//! Events, the facts of a Record: what happened, in the past tense, with every amount decided.
//! Replay therefore never recomputes a fee. The numbers are part of the journal's format: a number
//! is never given to another event or field; a new field is optional.

use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};
use strum::IntoStaticStr;

use crate::fees::{Commission, is_false};
use crate::money::is_nothing;
use crate::recurrence::{CycleOutcome, PlanTerms, SubscriptionTerms};
use crate::{
    Centavos, EventChoice, Fingerprint, Minute, Month, ObjectId, PaymentMethod, RailName, RailStamp, Rate,
    RecipientNumber, Scopes, Settings, SubscriptionStanding, Timestamp,
};

pub use crate::card_refusal::CardRefusal;
pub use crate::terms::{
    AdjustmentTarget, CardBrand, CardFace, HouseEntryTerms, MonthEnd, PayoutBank, ReturnEntry, Split, Terms,
};

/// Effect of the seller's part on the merchant's accounts: it raises one, or draws on others when
/// fees exceed it.
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

/// One split: the charge, and the split's place in it, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct SplitKey {
    /// The charge.
    #[n(0)]
    pub charge: ObjectId,
    /// Position among its splits.
    #[n(1)]
    pub index: u32,
}

/// How far a recipient's state had come when something was decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Cut {
    /// Every Record of the merchant through this sequence was counted.
    #[n(0)]
    pub foreign: u64,
    /// Everything that falls due in this minute or before it was booked.
    #[n(1)]
    pub minute: Minute,
    /// Every Record of its own through this ordinal was counted.
    #[n(2)]
    pub own: u64,
}

/// The splits that became available after one cut and through another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Span {
    /// Start of the span: splits within this cut are excluded.
    #[n(0)]
    pub after: Cut,
    /// End of the span: splits within this cut are included.
    #[n(1)]
    pub through: Cut,
}

/// Anticipated money, and when it can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Settlement {
    /// The day, in days since 1970-01-01.
    #[n(0)]
    pub day: u32,
    /// How much, after the fee.
    #[n(1)]
    pub amount: Centavos,
}

/// A split that was anticipated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AnticipatedSplit {
    /// The split that was anticipated.
    #[n(0)]
    pub split: SplitKey,
    /// When it would have fallen due.
    #[n(1)]
    pub due: Minute,
    /// The rest of the split, before the fee.
    #[n(2)]
    pub amount: Centavos,
    /// The fee, rounded by itself.
    #[n(3)]
    pub fee: Centavos,
}

/// The part of a split that a refund takes back: the recipient owes it from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TakeBack {
    /// The debtor.
    #[n(0)]
    pub recipient: RecipientNumber,
    /// Position among the charge's splits, from 0.
    #[n(1)]
    pub index: u32,
    /// How much.
    #[n(2)]
    pub amount: Centavos,
    /// When the split falls due, if it is one of a card charge.
    #[n(3)]
    pub due: Option<Minute>,
    /// The part that goes to the merchant's Available when it is paid back: this part first, then
    /// the rest.
    #[n(4)]
    pub to_available: Centavos,
    /// The part that goes to the charge's Pending.
    #[n(5)]
    pub to_pending: Centavos,
}

/// The part of a split that a refund took back, and that returns because the rail refused the
/// refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct GiveBack {
    /// Whose split it is.
    #[n(0)]
    pub recipient: RecipientNumber,
    /// Position among the charge's splits, from 0.
    #[n(1)]
    pub index: u32,
    /// How much the refund took back.
    #[n(2)]
    pub taken: Centavos,
    /// The part that the recipient had paid from what was pending of the split, and that the split
    /// has again: zero if it was anticipated.
    #[n(3)]
    pub from_pending: Centavos,
    /// When the split falls due; none once it did, and for PIX.
    #[n(4)]
    pub due: Option<Minute>,
    /// The part that is pending again.
    #[n(5)]
    pub to_pending: Centavos,
    /// The part that is available, from which what is still owed is paid. What was written off of
    /// the debt is in neither part.
    #[n(6)]
    pub to_available: Centavos,
}

/// Repayment of one debt by a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PaidBack {
    /// The split whose part was taken back.
    #[n(0)]
    pub split: SplitKey,
    /// The refund that took it back.
    #[n(1)]
    pub refund: ObjectId,
    /// Taken from the pending rest of the split.
    #[n(2)]
    pub from_pending: Centavos,
    /// When that would have fallen due; none for PIX.
    #[n(3)]
    pub due: Option<Minute>,
    /// Taken from the recipient's Available.
    #[n(4)]
    pub from_available: Centavos,
    /// To the merchant's Available.
    #[n(5)]
    pub to_available: Centavos,
    /// To the merchant's Pending, as money of the charge.
    #[n(6)]
    pub to_pending: Centavos,
    /// When the charge's own money falls due; none for PIX.
    #[n(7)]
    pub seller_due: Option<Minute>,
}

impl PaidBack {
    /// The part of the debt that is paid.
    pub fn part(&self) -> DebtPart {
        let Self { split, refund, to_available, to_pending, .. } = *self;
        DebtPart { split, refund, to_available, to_pending }
    }
}

/// Part of one debt of a recipient: paid back, or written off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DebtPart {
    /// The split whose part was taken back.
    #[n(0)]
    pub split: SplitKey,
    /// The refund that took it back.
    #[n(1)]
    pub refund: ObjectId,
    /// The part that goes to the merchant's Available.
    #[n(2)]
    pub to_available: Centavos,
    /// The part that goes to the merchant's Pending, as money of the charge.
    #[n(3)]
    pub to_pending: Centavos,
}

impl DebtPart {
    /// Both parts.
    pub fn total(&self) -> Centavos {
        self.to_available + self.to_pending
    }
}

/// Amounts taken from the seller for one charge, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SellerDraw {
    /// From the pending money of the charge itself.
    #[n(0)]
    pub from_pending: Centavos,
    /// From `Available`.
    #[n(1)]
    pub from_available: Centavos,
    /// Added to the `Deficit`.
    #[n(2)]
    pub to_deficit: Centavos,
}

impl SellerDraw {
    /// All of it.
    pub fn total(&self) -> Centavos {
        self.from_pending + self.from_available + self.to_deficit
    }

    /// The accounts that gave the first `amount` of it.
    pub fn first(&self, amount: Centavos) -> Self {
        let from_pending = self.from_pending.min(amount);
        let from_available = self.from_available.min(amount - from_pending);
        Self { from_pending, from_available, to_deficit: amount - from_pending - from_available }
    }
}

/// Why a cashout came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum CashoutFailure {
    /// The institution surely did not take it; the answer to the request was 502.
    #[n(0)]
    NotTaken,
    /// It was not carried out, as turned out after the caller had got the answer that it was in
    /// processing.
    #[n(1)]
    NotCarriedOut,
}

/// Why a payer's bank wants a charge back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum DisputeKind {
    /// A card chargeback.
    #[n(0)]
    Chargeback,
    /// PIX: the Central Bank's special return mechanism (MED).
    #[n(1)]
    Med,
}

/// Case of a payer's bank, as the rail has it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DisputeCase {
    /// The rail's id of the case.
    #[n(0)]
    pub id: String,
    /// Until when the rail has to be answered.
    #[n(1)]
    pub due_at: Option<Timestamp>,
    /// Keyed digest of rail and case, which opens one dispute for ever.
    #[n(2)]
    pub key: Fingerprint,
}

/// What a rail says of a case.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum CaseStage {
    /// Nothing is decided.
    #[n(0)]
    Open,
    /// The rail has taken the money: its id of that, and when.
    #[n(1)]
    Debited(#[n(0)] RailStamp),
    /// The payer's bank gets nothing.
    #[n(2)]
    Released,
    /// The rail has given back what it had taken: its id of that, and when.
    #[n(3)]
    Won(#[n(0)] RailStamp),
}

impl CaseStage {
    /// Whether it says the same as another one, whenever.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Debited(own), Self::Debited(other)) | (Self::Won(own), Self::Won(other)) => own.id == other.id,
            _ => self == other,
        }
    }
}

/// A batch of the acquirer: one payment to the platform, or one debit.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Batch {
    /// Its number, from 1: batches are booked in this order, each once. Those of files have numbers
    /// of their own.
    #[n(0)]
    pub number: u64,
    /// The acquirer's name for it, which stands on the bank statement.
    #[n(1)]
    pub reference: String,
    /// Day of the payment, in days since 1970-01-01.
    #[n(2)]
    pub paid_on: u32,
    /// True of a batch from a file of operators; else the acquirer's rail has it.
    #[cbor(n(3), skip_if = "is_false")]
    pub of_file: bool,
}

/// Approval of a settlement file.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FileApproval {
    /// The number of its first batch; the others follow in the order of the references.
    #[n(0)]
    pub first_number: u64,
    /// The operator who sent it first.
    #[n(1)]
    pub asked_by: String,
}

impl Batch {
    /// The id under which the Records of a batch with this reference are found. It is no object's:
    /// its birth time is 0.
    pub fn id_of(reference: &str) -> ObjectId {
        // The Records name the reference, so two of the same id do no harm.
        ObjectId::of_text(reference)
    }

    /// Whether another Record is about the same batch.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.number, self.of_file) == (other.number, other.of_file)
    }
}

/// The object for which the acquirer pays, or takes money back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum SettledObject {
    /// An installment of a charge, from 1; a debit has one.
    #[n(0)]
    Installment(#[n(0)] u8),
    /// A refund of the charge.
    #[n(1)]
    Refund(#[n(0)] ObjectId),
    /// A dispute of the charge that was accepted.
    #[n(2)]
    Dispute(#[n(0)] ObjectId),
}

/// A line of a batch. All amounts are below zero when the acquirer takes money back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SettledLine {
    /// The charge.
    #[n(0)]
    pub charge: ObjectId,
    /// For what.
    #[n(1)]
    pub object: SettledObject,
    /// Before the fee, centavos.
    #[n(2)]
    pub gross: Centavos,
    /// The acquirer's fee (MDR) for this line, centavos; below zero when it gives a fee back.
    #[n(3)]
    pub fee: Centavos,
    /// The part of the fee that was booked with the charge, centavos.
    #[n(4)]
    pub booked_fee: Centavos,
}

impl SettledLine {
    /// The amount that the acquirer pays, centavos.
    pub fn net(&self) -> Centavos {
        self.gross - self.fee
    }
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
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Event {
    /// Merchant: the account group was opened. Personal part: [`crate::personal::MerchantProfile`].
    #[n(0)]
    MerchantOpened {
        /// The merchant's id.
        #[n(0)]
        id: ObjectId,
        /// The operator's settings.
        #[n(1)]
        settings: Settings,
    },
    /// Merchant: the operator changed settings or profile. Personal part, if the profile changed:
    /// the whole new one.
    #[n(1)]
    MerchantChanged {
        /// The settings from here on.
        #[n(0)]
        settings: Settings,
        /// The settings before.
        #[n(1)]
        before: Option<Settings>,
        /// Why, where the operator said so.
        #[n(2)]
        reason: Option<String>,
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
        /// Webhook address.
        #[n(2)]
        webhook_url: Option<String>,
        /// The webhook secret, sealed under the master key.
        #[cbor(n(3), with = "minicbor::bytes")]
        webhook_secret: Vec<u8>,
        /// What the key may do.
        #[cbor(n(4), default, skip_if = "Scopes::are_all")]
        scopes: Scopes,
        /// The events that its address receives.
        #[cbor(n(5), default, skip_if = "EventChoice::are_all")]
        events: EventChoice,
    },
    /// Merchant: an API key was revoked.
    #[n(3)]
    ApiKeyRevoked {
        /// The key's id.
        #[n(0)]
        id: ObjectId,
    },
    /// Merchant: a recipient was registered, as a draft. Personal part:
    /// [`crate::personal::RecipientProfile`].
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
    /// Merchant: a rejected recipient was registered again, with new data, and is a draft once
    /// more.
    #[n(5)]
    RecipientRegisteredAgain {
        /// Its number in the group.
        #[n(0)]
        number: RecipientNumber,
        /// Keyed digest of its document.
        #[n(1)]
        document: Fingerprint,
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
        /// The reason, in words for the one who asked.
        #[n(1)]
        notes: String,
    },
    /// Merchant: a charge was created and is pending. Personal part: [`crate::personal::Payer`].
    #[n(9)]
    ChargeOpened {
        /// The charge's id: its txid.
        #[n(0)]
        charge: ObjectId,
        /// Its terms: amount, splits and fees.
        #[n(1)]
        terms: Terms,
        /// The card; none for PIX.
        #[n(2)]
        card: Option<CardFace>,
        /// When a PIX code expires; none for cards.
        #[n(3)]
        expires_at: Option<Timestamp>,
        /// The institution of a PIX charge; none in a sandbox, and for cards.
        #[n(4)]
        rail: Option<RailName>,
    },
    /// Merchant: the acquirer captured the charge.
    #[n(10)]
    CardCaptured {
        /// The charge's id: its txid.
        #[n(0)]
        charge: ObjectId,
        /// Its terms.
        #[n(1)]
        terms: Terms,
        /// Fee that the acquirer keeps of the total (MDR).
        #[n(2)]
        acquirer_mdr: Centavos,
        /// The seller's part.
        #[n(3)]
        seller: SellerPart,
        /// When the seller's part is available.
        #[n(4)]
        seller_due: Minute,
        /// When the splits are available.
        #[n(5)]
        splits_due: Minute,
        /// The ordinal of the merchant's Record that opened the charge: lists are in the order of
        /// opening.
        #[n(6)]
        opened: u64,
        /// The card's scheme by the acquirer's word, which counts from here on instead of that of
        /// the opening; `None` if the acquirer names none.
        #[n(7)]
        brand: Option<CardBrand>,
    },
    /// Merchant: the acquirer refused the charge.
    #[n(11)]
    CardRefused {
        /// The charge's id: its txid.
        #[n(0)]
        charge: ObjectId,
        /// Why the acquirer said no.
        #[n(1)]
        refusal: CardRefusal,
        /// The ordinal of the merchant's Record that opened the charge: lists are in the order of
        /// opening.
        #[n(2)]
        opened: u64,
        /// How it was to be paid.
        #[n(3)]
        method: PaymentMethod,
    },
    /// Merchant: the acquirer did not answer in time. The request was answered `pending`, and the
    /// rail is asked again.
    #[n(12)]
    CardUnanswered {
        /// The charge's id: its txid.
        #[n(0)]
        charge: ObjectId,
    },
    /// Merchant: the acquirer authorized the charge, and no money has moved. It is captured only
    /// once this is a Record.
    #[n(120)]
    CardAuthorized {
        /// The charge's id: its txid.
        #[n(0)]
        charge: ObjectId,
        /// The card's scheme by the acquirer's word; `None` if it names none.
        #[n(1)]
        brand: Option<CardBrand>,
    },
    /// Merchant: an acquirer says something of a case that does not fit its disputes yet. It is
    /// booked once what comes before it is. No money moves.
    #[n(165)]
    CaseDeferred {
        /// The charge's id.
        #[n(0)]
        charge: ObjectId,
        /// The acquirer's id of the case.
        #[n(1)]
        case: String,
        /// How much it is about.
        #[n(2)]
        amount: Centavos,
        /// Until when the case has to be answered, where the acquirer says so.
        #[n(3)]
        due_at: Option<Timestamp>,
        /// What it says.
        #[n(4)]
        stage: CaseStage,
        /// Its item of the operators' queue; `None` if it has none.
        #[n(5)]
        id: Option<ObjectId>,
    },
    /// Merchant: what an acquirer said of a case does not wait any more: it is booked, or operators
    /// have dropped it. No money moves.
    #[n(166)]
    DeferredCaseEnded {
        /// The item of the operators' queue.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
    },
    /// Merchant: the rail has money again that it had sent back to a payer, or taken back for one.
    #[n(121)]
    RepaymentReversed {
        /// The refund.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How the charge was paid.
        #[n(2)]
        method: PaymentMethod,
        /// How much.
        #[n(3)]
        amount: Centavos,
        /// Counts once for ever.
        #[n(4)]
        key: Fingerprint,
    },
    /// Merchant: the payer paid a PIX charge.
    #[n(13)]
    PixPaid {
        /// The charge's id: its txid.
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
        /// The ordinal of the merchant's Record that opened the charge: lists are in the order of
        /// opening.
        #[n(4)]
        opened: u64,
    },
    /// Merchant: a PIX charge expired or was cancelled, unpaid.
    #[n(14)]
    PixCancelled {
        /// The charge's id: its txid.
        #[n(0)]
        charge: ObjectId,
        /// The recipients of its splits, whose statements listed them: one for each split.
        #[n(1)]
        recipients: Vec<RecipientNumber>,
        /// The ordinal of the merchant's Record that opened the charge: lists are in the order of
        /// opening.
        #[n(2)]
        opened: u64,
    },
    /// Merchant and recipient: pending money became available.
    #[n(15)]
    Matured {
        /// Sums that fell due, by minute.
        #[n(0)]
        dues: Vec<Due>,
        /// All foreign Records through this sequence were counted.
        #[n(1)]
        foreign_through: u64,
        /// When this ledger needs attention next.
        #[n(2)]
        next_due: Option<Timestamp>,
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
    /// Merchant: a recipient's registration was changed; its status stays. Personal part: the whole
    /// new [`crate::personal::RecipientProfile`].
    #[n(19)]
    RecipientChanged {
        /// Its number in the group.
        #[n(0)]
        number: RecipientNumber,
        /// Keyed digest of its document.
        #[n(1)]
        document: Fingerprint,
    },
    /// Recipient: it asked for all that is available. The splits in it are pinned until the
    /// withdrawal is decided, and so is the account that the money goes to. Personal part:
    /// [`crate::personal::BankAccount`].
    #[n(20)]
    WithdrawalRequested {
        /// The withdrawal's id.
        #[n(0)]
        id: ObjectId,
        /// All of Available.
        #[n(1)]
        amount: Centavos,
        /// The splits in it.
        #[n(2)]
        spans: Vec<Span>,
        /// The part of these splits that debts had consumed before, oldest first.
        #[n(3)]
        consumed: Centavos,
        /// The anticipated part of them, and when it can be sent.
        #[n(4)]
        settlements: Vec<Settlement>,
        /// The part of the amount that is goodwill, which no split has.
        #[cbor(n(5), default, skip_if = "is_nothing")]
        goodwill: Centavos,
    },
    /// Recipient: an administrator approved; the money is to be sent.
    #[n(21)]
    WithdrawalApproved {
        /// The withdrawal's id.
        #[n(0)]
        id: ObjectId,
        /// The rail that it goes to; none in a sandbox.
        #[n(1)]
        rail: Option<RailName>,
    },
    /// Recipient: the rail took the transfer. The splits are paid.
    #[n(22)]
    WithdrawalPaid {
        /// The withdrawal's id.
        #[n(0)]
        id: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
        /// The transfer's id at the institution.
        #[n(2)]
        transfer_id: String,
        /// Until when the institution is asked whether the bank returned it.
        #[n(3)]
        returnable_until: Timestamp,
        /// The account that the money left; the settlement account when absent.
        #[n(4)]
        bank: Option<PayoutBank>,
    },
    /// Recipient: an administrator rejected, or the rail refused. The money and the splits are
    /// available again.
    #[n(23)]
    WithdrawalRejected {
        /// The withdrawal's id.
        #[n(0)]
        id: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
        /// The reason, in words for the one who asked.
        #[n(2)]
        notes: String,
        /// True when the merchant took it back before it was approved.
        #[cbor(n(3), skip_if = "is_false")]
        by_merchant: bool,
    },
    /// Recipient: the bank returned a transfer that had been taken. The money and the splits are
    /// available again.
    #[n(24)]
    WithdrawalReturned {
        /// The withdrawal's id.
        #[n(0)]
        id: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
        /// The splits that were in it.
        #[n(2)]
        spans: Vec<Span>,
        /// The part of these splits that debts had consumed before.
        #[n(3)]
        consumed: Centavos,
        /// The reason, in words for the one who asked.
        #[n(4)]
        notes: String,
        /// The anticipated part of them, and when it could be sent.
        #[n(5)]
        settlements: Vec<Settlement>,
        /// The account that the money came back to; the settlement account when absent.
        #[n(6)]
        bank: Option<PayoutBank>,
        /// The entry of two operators that says so; `None` if the institution said it.
        #[n(7)]
        entry: Option<ReturnEntry>,
        /// The part of the amount that is goodwill, which no split has.
        #[cbor(n(8), default, skip_if = "is_nothing")]
        goodwill: Centavos,
    },
    /// Recipient: pending card splits became available before their time, less a fee.
    #[n(25)]
    SplitsAnticipated {
        /// The anticipation's id.
        #[n(0)]
        id: ObjectId,
        /// Which splits.
        #[n(1)]
        splits: Vec<AnticipatedSplit>,
        /// 2, 7 or 15.
        #[n(2)]
        target_days: u8,
        /// The rate that was applied.
        #[n(3)]
        rate: Rate,
        /// Today in Sao Paulo and `target_days`, in days since 1970-01-01: the day on which the
        /// money of a split can be sent that would not have fallen due before.
        #[n(4)]
        settlement_day: u32,
    },
    /// Recipient: it paid back what a merchant's refund took back.
    #[n(26)]
    ClawbackRecovered {
        /// Debt by debt, oldest first.
        #[n(0)]
        debts: Vec<PaidBack>,
        /// What the recipient still owes after it, centavos; none in Records that do not say so.
        #[n(1)]
        left: Option<Centavos>,
        /// The part of what Available pays that is goodwill, which no split has.
        #[cbor(n(2), default, skip_if = "is_nothing")]
        goodwill: Centavos,
    },
    /// Merchant: the registration that the same Record changed has another bank account. The
    /// account of an active recipient waits for review, and nothing can be withdrawn meanwhile.
    #[n(27)]
    BankAccountChanged {
        /// The recipient's number in the group.
        #[n(0)]
        number: RecipientNumber,
        /// True when the recipient was active. The account of any other is reviewed with its
        /// registration.
        #[n(1)]
        active: bool,
    },
    /// Merchant: the service's team approved a changed bank account.
    #[n(28)]
    BankAccountApproved {
        /// The recipient's number in the group.
        #[n(0)]
        number: RecipientNumber,
    },
    /// Merchant: the service's team refused a changed bank account; it must be changed again.
    #[n(29)]
    BankAccountRejected {
        /// The recipient's number in the group.
        #[n(0)]
        number: RecipientNumber,
        /// The reason, in words for the one who asked.
        #[n(1)]
        notes: String,
    },
    /// Merchant: money is held for a transfer out. Personal part:
    /// [`crate::personal::PixDestination`].
    #[n(30)]
    CashoutCreated {
        /// The cashout's id.
        #[n(0)]
        id: ObjectId,
        /// `merchant_transaction_id`: a UUID.
        #[cbor(n(1), with = "minicbor::bytes")]
        transaction: [u8; 16],
        /// Keyed digest of account and `merchant_transaction_id`, to find it again.
        #[n(2)]
        transaction_key: Fingerprint,
        /// Gross: what the balance gives.
        #[n(3)]
        amount: Centavos,
        /// The platform's fee, part of the amount.
        #[n(4)]
        fee: Centavos,
        /// The rail that it goes to; none in a sandbox.
        #[n(5)]
        rail: Option<RailName>,
    },
    /// Merchant: the institution carried the transfer out.
    #[n(31)]
    CashoutProcessed {
        /// The cashout's id.
        #[n(0)]
        id: ObjectId,
        /// Gross, centavos.
        #[n(1)]
        amount: Centavos,
        /// The fee in it.
        #[n(2)]
        fee: Centavos,
        /// The PIX end-to-end id.
        #[n(3)]
        end_to_end_id: String,
        /// The transfer's id at the institution.
        #[n(4)]
        transfer_id: String,
        /// The account that the money left; the PIX account when absent.
        #[n(5)]
        bank: Option<PayoutBank>,
    },
    /// Merchant: the transfer did not happen; the whole gross is available again.
    #[n(32)]
    CashoutFailed {
        /// The cashout's id.
        #[n(0)]
        id: ObjectId,
        /// Gross, centavos.
        #[n(1)]
        amount: Centavos,
        /// Why the money came back.
        #[n(2)]
        failure: CashoutFailure,
        /// The same in the words of the institution or of an operator; absent in older Records.
        #[n(3)]
        notes: Option<String>,
    },
    /// Merchant: a refund was asked for. Personal part, if a reason was given:
    /// [`crate::personal::FreeText`].
    #[n(33)]
    RefundRequested {
        /// The refund's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How much.
        #[n(2)]
        amount: Centavos,
        /// Requested take-backs of splits: one for each recipient.
        #[n(3)]
        take_back: Vec<Split>,
        /// Until when the refund can be carried out.
        #[n(4)]
        window_ends: Timestamp,
        /// Until when the charge can be refunded or disputed, where that is later.
        #[n(5)]
        remembered_until: Option<Timestamp>,
    },
    /// Merchant: the operations team rejected a refund.
    #[n(34)]
    RefundRejected {
        /// The refund's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How much was asked for.
        #[n(2)]
        amount: Centavos,
        /// The reason, in words for the one who asked.
        #[n(3)]
        notes: String,
    },
    /// Merchant: the operations team approved a refund; the seller bears it.
    #[n(35)]
    RefundApproved {
        /// The refund's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How the charge was paid.
        #[n(2)]
        method: PaymentMethod,
        /// How much.
        #[n(3)]
        amount: Centavos,
        /// Where the money was taken from.
        #[n(4)]
        drawn: SellerDraw,
        /// When the charge's own money falls due; none for PIX.
        #[n(5)]
        seller_due: Option<Minute>,
        /// The commission that is given back.
        #[n(6)]
        commission: Commission,
        /// True when that goes to the charge's Pending, false when to Available.
        #[n(7)]
        commission_pending: bool,
        /// New debts of recipients.
        #[n(8)]
        take_backs: Vec<TakeBack>,
        /// The refunds of this charge for which commission was given back, this one too if it was:
        /// the next part is rounded on their sum.
        #[n(9)]
        commission_through: Centavos,
    },
    /// Merchant: the rail refused to carry out a refund that had been approved; its money is back.
    #[n(81)]
    RefundFailed {
        /// The refund's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How the charge was paid.
        #[n(2)]
        method: PaymentMethod,
        /// How much.
        #[n(3)]
        amount: Centavos,
        /// Why, in the rail's words.
        #[n(4)]
        notes: String,
        /// The part of the seller's money that is back in the charge's Pending.
        #[n(5)]
        to_pending: Centavos,
        /// When the charge's own money falls due; none for PIX.
        #[n(6)]
        seller_due: Option<Minute>,
        /// The part that is back in Available.
        #[n(7)]
        to_available: Centavos,
        /// What recipients have again of their splits.
        #[n(8)]
        give_backs: Vec<GiveBack>,
        /// The commission that the refund had given back, and that is charged again.
        #[n(9)]
        commission: Commission,
        /// Where that was taken from.
        #[n(10)]
        charged: SellerDraw,
        /// The refunds of this charge for which commission is given back, without this one.
        #[n(11)]
        commission_through: Centavos,
    },
    /// Merchant: the rail sent a refund, or a payment that nobody asked for, back to the payer.
    #[n(36)]
    PayerRepaid {
        /// The refund, or the repayment of the payment.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How the charge was paid.
        #[n(2)]
        method: PaymentMethod,
        /// How much.
        #[n(3)]
        amount: Centavos,
        /// True of a payment that nobody asked for.
        #[cbor(n(4), skip_if = "is_false")]
        is_unordered: bool,
    },
    /// Merchant: a payer's bank wants a charge back; the money is held. Personal part:
    /// [`crate::personal::FreeText`].
    #[n(37)]
    DisputeOpened {
        /// The dispute's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// Its kind.
        #[n(2)]
        kind: DisputeKind,
        /// How much.
        #[n(3)]
        amount: Centavos,
        /// Where the money was taken from.
        #[n(4)]
        drawn: SellerDraw,
        /// When the charge's own money falls due; none for PIX.
        #[n(5)]
        seller_due: Option<Minute>,
        /// Until when the charge can be refunded or disputed.
        #[n(6)]
        window_ends: Timestamp,
        /// The part that passes what was left of the charge, centavos; `None` if nothing does.
        #[n(7)]
        exceeds: Option<Centavos>,
        /// The rail's case; none of a dispute that an operator opened.
        #[n(8)]
        case: Option<DisputeCase>,
    },
    /// Merchant: a dispute was accepted; the seller bears it. The acquirer or, for PIX, the
    /// institution takes the money itself: no repayment is ordered.
    #[n(38)]
    DisputeAccepted {
        /// The dispute's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How the charge was paid.
        #[n(2)]
        method: PaymentMethod,
        /// How much.
        #[n(3)]
        amount: Centavos,
    },
    /// Merchant: a dispute was released, or the rest of one that is accepted in part by the same
    /// Record; the money goes back where it was drawn from.
    #[n(39)]
    DisputeReleased {
        /// The dispute's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How much.
        #[n(2)]
        amount: Centavos,
        /// To the charge's Pending, while that is not due.
        #[n(3)]
        to_pending: Centavos,
        /// When the charge's own money falls due; none for PIX.
        #[n(4)]
        seller_due: Option<Minute>,
        /// To Available.
        #[n(5)]
        to_available: Centavos,
        /// The part that the same Record accepts, centavos; `None` if all is released.
        #[n(6)]
        accepted: Option<Centavos>,
        /// Why, in the operator's words: a rail that has the case gets them.
        #[n(7)]
        notes: Option<String>,
    },
    /// Merchant: a payer paid what nobody asks for: a code that had ended or was paid before, or
    /// another amount than its charge's. The money is the payer's.
    #[n(40)]
    LatePixReceived {
        /// The charge's id.
        #[n(0)]
        charge: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
        /// End-to-end id of the payment.
        #[n(2)]
        end_to_end_id: String,
        /// Id of its repayment; none for that of the charge.
        #[n(3)]
        id: Option<ObjectId>,
        /// Keyed digest of account and end-to-end id.
        #[n(4)]
        key: Option<Fingerprint>,
    },
    /// Merchant: the acquirer, or the PIX institution, knows that a dispute was accepted.
    #[n(41)]
    AcceptanceConfirmed {
        /// The dispute's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
    },
    /// Merchant: the acquirer settled these lines in a batch.
    #[n(42)]
    AcquirerSettled {
        /// The batch.
        #[n(0)]
        batch: Batch,
        /// Lines of this merchant's charges, in the acquirer's order.
        #[n(1)]
        lines: Vec<SettledLine>,
    },
    /// System: every line of a batch is booked.
    #[n(43)]
    AcquirerBatchBooked {
        /// The batch.
        #[n(0)]
        batch: Batch,
        /// How many lines it has.
        #[n(1)]
        lines: u64,
        /// What the acquirer paid: the sum of its lines, after fees; below zero when it took more
        /// than it paid.
        #[n(2)]
        net: Centavos,
    },
    /// System: an operator asks for an entry of the house ledger.
    #[n(44)]
    HouseEntryRequested {
        /// The entry's id.
        #[n(0)]
        id: ObjectId,
        /// What it moves.
        #[n(1)]
        terms: HouseEntryTerms,
        /// Why, in the operator's words.
        #[n(2)]
        reason: String,
    },
    /// System: another operator approved the entry.
    #[n(45)]
    #[strum(serialize = "house_entry")]
    HouseEntryApproved {
        /// The entry's id.
        #[n(0)]
        id: ObjectId,
        /// What it moves.
        #[n(1)]
        terms: HouseEntryTerms,
    },
    /// System: an operator rejected the entry.
    #[n(46)]
    HouseEntryRejected {
        /// The entry's id.
        #[n(0)]
        id: ObjectId,
        /// Why, in the operator's words.
        #[n(1)]
        notes: String,
    },
    /// System: lines of a batch name charges that were never captured. Their money is in suspense.
    #[n(47)]
    AcquirerUnexplained {
        /// The batch.
        #[n(0)]
        batch: Batch,
        /// How many lines there are.
        #[n(1)]
        count: u64,
        /// The sum of them, after fees.
        #[n(2)]
        net: Centavos,
        /// The first 10,000 of them.
        #[n(3)]
        lines: Vec<SettledLine>,
    },
    /// System: an operator asks to close a month.
    #[n(48)]
    PeriodCloseRequested {
        /// The month, which is over.
        #[n(0)]
        month: Month,
    },
    /// System: another operator closed the month, and all months before it.
    #[n(49)]
    PeriodClosed {
        /// The month.
        #[n(0)]
        month: Month,
        /// What the journal held at its end.
        #[n(1)]
        end: MonthEnd,
    },
    /// Merchant: a plan was created.
    #[n(50)]
    PlanCreated {
        /// Its id.
        #[n(0)]
        id: ObjectId,
        /// Its terms.
        #[n(1)]
        plan: PlanTerms,
    },
    /// Merchant: a plan takes no subscriptions any more; those that it has go on.
    #[n(51)]
    PlanDisabled {
        /// The plan's id.
        #[n(0)]
        id: ObjectId,
    },
    /// Merchant: a card was stored with the acquirer. Personal part: [`crate::personal::Payer`].
    #[n(52)]
    CardStored {
        /// The `card_token`.
        #[n(0)]
        id: ObjectId,
        /// The face of the card: the part that may be stored.
        #[n(1)]
        face: CardFace,
        /// The acquirer's token for it, sealed under the master key.
        #[cbor(n(2), with = "minicbor::bytes")]
        token: Vec<u8>,
        /// The acquirer; none in a sandbox.
        #[n(3)]
        rail: Option<RailName>,
    },
    /// Merchant: a subscription began. Personal part: [`crate::personal::Payer`].
    #[n(53)]
    SubscriptionCreated {
        /// Its id.
        #[n(0)]
        id: ObjectId,
        /// Its terms.
        #[n(1)]
        terms: SubscriptionTerms,
        /// Its standing.
        #[n(2)]
        standing: SubscriptionStanding,
    },
    /// Merchant: the charge that the same Record opened is one of a subscription.
    #[n(54)]
    SubscriptionBilled {
        /// The subscription's id.
        #[n(0)]
        id: ObjectId,
        /// The charge.
        #[n(1)]
        charge: ObjectId,
        /// Its standing: the cycle, and the number of this charge in the cycle.
        #[n(2)]
        standing: SubscriptionStanding,
    },
    /// Merchant: a charge of a subscription ended, or a cycle passed without one.
    #[n(55)]
    SubscriptionAdvanced {
        /// The subscription's id.
        #[n(0)]
        id: ObjectId,
        /// The charge.
        #[n(1)]
        charge: Option<ObjectId>,
        /// How it ended.
        #[n(2)]
        outcome: CycleOutcome,
        /// Its standing.
        #[n(3)]
        standing: SubscriptionStanding,
    },
    /// Merchant: a subscription was paused.
    #[n(56)]
    SubscriptionPaused {
        /// The subscription's id.
        #[n(0)]
        id: ObjectId,
        /// Its standing.
        #[n(1)]
        standing: SubscriptionStanding,
    },
    /// Merchant: a paused subscription goes on.
    #[n(57)]
    SubscriptionResumed {
        /// The subscription's id.
        #[n(0)]
        id: ObjectId,
        /// Its standing.
        #[n(1)]
        standing: SubscriptionStanding,
    },
    /// Merchant: a subscription was cancelled.
    #[n(58)]
    SubscriptionCancelled {
        /// The subscription's id.
        #[n(0)]
        id: ObjectId,
        /// Its standing.
        #[n(1)]
        standing: SubscriptionStanding,
    },
    /// Merchant: a subscription is charged to another stored card from here on.
    #[n(160)]
    SubscriptionCardChanged {
        /// The subscription's id.
        #[n(0)]
        id: ObjectId,
        /// Its standing, with the card.
        #[n(1)]
        standing: SubscriptionStanding,
    },
    /// Merchant and recipient: an operator asks to write off its debt, the Deficit or the Clawback.
    #[n(59)]
    WriteOffRequested {
        /// The write-off's id.
        #[n(0)]
        id: ObjectId,
        /// How much of the debt.
        #[n(1)]
        amount: Centavos,
        /// Reference of the document that proves it.
        #[n(2)]
        reference: String,
        /// Why, in the operator's words.
        #[n(3)]
        reason: String,
    },
    /// Merchant and recipient: an operator rejected the write-off.
    #[n(60)]
    WriteOffRejected {
        /// The write-off's id.
        #[n(0)]
        id: ObjectId,
        /// Why, in the operator's words.
        #[n(1)]
        notes: String,
    },
    /// Merchant: another operator approved the write-off of its Deficit. The platform bears it.
    #[n(61)]
    DeficitWrittenOff {
        /// The write-off's id.
        #[n(0)]
        id: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
        /// Reference of the document that proves it.
        #[n(2)]
        reference: String,
    },
    /// Recipient: another operator approved the write-off of its Clawback. The merchant bears it.
    #[n(62)]
    ClawbackWrittenOff {
        /// The write-off's id.
        #[n(0)]
        id: ObjectId,
        /// Reference of the document that proves it.
        #[n(1)]
        reference: String,
        /// Debt by debt, oldest first.
        #[n(2)]
        debts: Vec<DebtPart>,
    },
    /// Recipient: an operator says that the bank returned a withdrawal, and asks to book it.
    #[n(63)]
    WithdrawalReturnRequested {
        /// Id of the entry.
        #[n(0)]
        id: ObjectId,
        /// The withdrawal's id.
        #[n(1)]
        withdrawal: ObjectId,
        /// How much: the whole withdrawal.
        #[n(2)]
        amount: Centavos,
        /// The account that the money came back to; the settlement account when absent.
        #[n(3)]
        bank: Option<PayoutBank>,
        /// Reference of the document that proves it.
        #[n(4)]
        reference: String,
        /// The day on which it takes effect, in days since 1970-01-01; none for the day on which it
        /// is booked.
        #[n(5)]
        effective_day: Option<u32>,
        /// Why, in words for the one who asked for the withdrawal.
        #[n(6)]
        reason: String,
    },
    /// Recipient: an operator rejected the entry.
    #[n(64)]
    WithdrawalReturnRejected {
        /// Id of the entry.
        #[n(0)]
        id: ObjectId,
        /// Why, in the operator's words.
        #[n(1)]
        notes: String,
    },
    /// Merchant: an API key has another webhook address, or receives other events.
    #[n(70)]
    ApiKeyChanged {
        /// The key's id.
        #[n(0)]
        id: ObjectId,
        /// Webhook address from here on; none for no webhooks.
        #[n(1)]
        webhook_url: Option<String>,
        /// The events that it receives from here on.
        #[cbor(n(2), default, skip_if = "EventChoice::are_all")]
        events: EventChoice,
    },
    /// Merchant: an API key has a new webhook secret; the one before signs beside it for a while.
    #[n(71)]
    WebhookSecretRotated {
        /// The key's id.
        #[n(0)]
        id: ObjectId,
        /// The new secret, sealed under the master key.
        #[cbor(n(1), with = "minicbor::bytes")]
        webhook_secret: Vec<u8>,
        /// The one before signs until then.
        #[n(2)]
        previous_until: Timestamp,
    },
    /// Merchant: the PIX institution has the charge.
    #[n(72)]
    PixRegistered {
        /// The charge's id: its txid.
        #[n(0)]
        charge: ObjectId,
        /// The copy-and-paste payload, by the institution.
        #[cbor(n(1), with = "crate::pix_code")]
        code: String,
    },
    /// Merchant or recipient: an order is sent once more to its rail, under the same id.
    #[n(73)]
    RailTried {
        /// The charge, cashout, withdrawal, refund, dispute or repayment.
        #[n(0)]
        id: ObjectId,
        /// How many times it is ordered with this one, from 2.
        #[n(1)]
        attempt: u32,
    },
    /// Merchant or recipient: an operator said what became of an order that its rail left unknown.
    #[n(74)]
    RailWordAsked {
        /// The charge, cashout, withdrawal, refund, dispute or repayment.
        #[n(0)]
        id: ObjectId,
        /// Whether money has moved as it was ordered.
        #[n(1)]
        happened: bool,
        /// Reference of the document that proves it.
        #[n(2)]
        reference: String,
        /// Why, in the operator's words.
        #[n(3)]
        reason: String,
    },
    /// Merchant or recipient: another operator said the same; the events before end the order.
    #[n(75)]
    RailWordGiven {
        /// The order.
        #[n(0)]
        id: ObjectId,
        /// Whether money has moved as it was ordered.
        #[n(1)]
        happened: bool,
        /// Reference of the document that proves it.
        #[n(2)]
        reference: String,
        /// Why, in the operator's words.
        #[n(3)]
        reason: String,
        /// The operator who said it first.
        #[n(4)]
        asked_by: String,
    },
    /// Merchant: a rail refuses to send a payment back that nobody asked for. The money stays owed
    /// to the payer.
    #[n(76)]
    PayerNotRepaid {
        /// The repayment.
        #[n(0)]
        id: ObjectId,
        /// The charge that the payment named.
        #[n(1)]
        charge: ObjectId,
        /// How much, centavos.
        #[n(2)]
        amount: Centavos,
        /// Why, in the words of the rail or of an operator.
        #[n(3)]
        reason: String,
    },
    /// Merchant: the bank sent the money of a processed cashout back; the whole gross is available
    /// again.
    #[n(77)]
    CashoutReturned {
        /// The cashout's id.
        #[n(0)]
        id: ObjectId,
        /// Gross, centavos.
        #[n(1)]
        amount: Centavos,
        /// The fee in it, which is given back.
        #[n(2)]
        fee: Centavos,
        /// The account that the money came back to.
        #[n(3)]
        bank: PayoutBank,
        /// Why, in the words of the institution or of an operator.
        #[n(4)]
        reason: String,
        /// Keyed digest of the cashout's id, which counts once for ever.
        #[n(5)]
        key: Fingerprint,
    },
    /// System: an operator sent a settlement file of the acquirer. Another operator who sends the
    /// same one approves it, and its batches are booked.
    #[n(85)]
    AcquirerFileSent {
        /// SHA-256 of its lines.
        #[n(0)]
        digest: ByteArray<32>,
        /// References of its batches, in the order of the file.
        #[n(1)]
        references: Vec<String>,
        /// How many lines it has.
        #[n(2)]
        lines: u64,
        /// The sum of its lines, after fees, centavos.
        #[n(3)]
        net: Centavos,
        /// The approval; none of a file that waits for another operator.
        #[n(4)]
        approval: Option<FileApproval>,
    },
    /// Merchant: an operator read the registration of a recipient in the clear.
    #[n(90)]
    RegistrationRead {
        /// The recipient's number in the group.
        #[n(0)]
        number: RecipientNumber,
    },
    /// Merchant or recipient: an operator is the first of two to approve a refund or withdrawal.
    #[n(91)]
    ApprovalAsked {
        /// The id of the refund or withdrawal.
        #[n(0)]
        id: ObjectId,
        /// True of a refund, false of a withdrawal.
        #[n(1)]
        is_refund: bool,
        /// Why, of a withdrawal that an operator asked for.
        #[n(2)]
        reason: Option<String>,
    },
    /// Merchant: an operator wrote a note on an object of its group.
    #[n(140)]
    NoteWritten {
        /// The object.
        #[n(0)]
        object: ObjectId,
        /// The note, in the clear: no personal data belongs in it.
        #[n(1)]
        text: String,
    },
    /// System: an operator looked up what is stored of a person.
    #[n(141)]
    PersonLookedUp {
        /// Keyed digest of the tax id.
        #[n(0)]
        document: Fingerprint,
    },
    /// Merchant: a stored card was deleted. Nothing is charged to it from here on.
    #[n(142)]
    CardDeleted {
        /// The card's id, its token.
        #[n(0)]
        id: ObjectId,
    },
    /// System: an operator asked for the erasure of personal data.
    #[n(143)]
    ErasureRequested {
        /// What was sealed in this month or before it.
        #[n(0)]
        through: Month,
    },
    /// System: another operator carried the erasure out. The keys are dropped after this Record.
    #[n(144)]
    KeysErased {
        /// What was sealed in this month or before it.
        #[n(0)]
        through: Month,
    },
    /// System: an operator took back a request for an erasure, which nobody carries out any more.
    #[n(146)]
    ErasureWithdrawn {
        /// What was sealed in this month or before it.
        #[n(0)]
        through: Month,
    },
    /// System: an operator rejected a settlement file that waited for another one.
    #[n(145)]
    AcquirerFileRejected {
        /// SHA-256 of its lines.
        #[n(0)]
        digest: ByteArray<32>,
        /// Why, in the operator's words.
        #[n(1)]
        notes: String,
    },
    /// Merchant: a caller changed the metadata of a charge, cashout, refund or subscription, which
    /// the Record has sealed, whole.
    #[n(150)]
    MetadataChanged {
        /// The charge, cashout, refund or subscription.
        #[n(0)]
        id: ObjectId,
        /// Keyed digest of the id and the number of this change, from 1: each number once, among
        /// changes of metadata and links of fiscal documents.
        #[n(1)]
        key: Fingerprint,
    },
    /// Merchant: a caller linked a fiscal document to a charge. The Record has its key, sealed.
    #[n(170)]
    FiscalDocumentLinked {
        /// The charge.
        #[n(0)]
        charge: ObjectId,
        /// Keyed digest of the charge and the number of this change: see `MetadataChanged`.
        #[n(1)]
        key: Fingerprint,
        /// Keyed digest of account and access key.
        #[n(2)]
        document: Fingerprint,
        /// The recipient whose document it is; `None` for the merchant's.
        #[n(3)]
        of: Option<RecipientNumber>,
        /// Whether the issuer was the merchant or a recipient of the charge.
        #[n(4)]
        issuer_known: bool,
    },
    /// Merchant: a caller took back the link of a fiscal document to a charge.
    #[n(171)]
    FiscalDocumentUnlinked {
        /// The charge.
        #[n(0)]
        charge: ObjectId,
        /// Keyed digest of the charge and the number of this change: see `MetadataChanged`.
        #[n(1)]
        key: Fingerprint,
        /// Keyed digest of account and access key.
        #[n(2)]
        document: Fingerprint,
    },
    /// Merchant: the charge, cashout, refund, recipient or subscription that is made in this Record
    /// has a reference that no other of its kind may have in the account as a unique one.
    #[n(151)]
    ReferenceReserved {
        /// What has it.
        #[n(0)]
        id: ObjectId,
        /// Keyed digest of account and reference, which counts once for ever.
        #[n(1)]
        key: Fingerprint,
        /// Keyed digest of the request's body, without a card's security code.
        #[n(2)]
        body: Fingerprint,
    },
    /// Merchant: an operator asks for goodwill of the house.
    #[n(102)]
    AdjustmentRequested {
        /// The adjustment's id.
        #[n(0)]
        id: ObjectId,
        /// How much the merchant is to get.
        #[n(1)]
        amount: Centavos,
        /// Reference of the document that proves it.
        #[n(2)]
        reference: String,
        /// Why, in the operator's words; the merchant reads it.
        #[n(3)]
        reason: String,
        /// What it credits; the merchant's Available when absent.
        #[n(4)]
        target: Option<AdjustmentTarget>,
    },
    /// Merchant: an operator rejected the adjustment.
    #[n(103)]
    AdjustmentRejected {
        /// The adjustment's id.
        #[n(0)]
        id: ObjectId,
        /// Why, in the operator's words.
        #[n(1)]
        notes: String,
    },
    /// Merchant: another operator approved the adjustment. The platform bears it.
    #[n(104)]
    AdjustmentCreated {
        /// The adjustment's id.
        #[n(0)]
        id: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
        /// Reference of the document that proves it.
        #[n(2)]
        reference: String,
        /// What it credits; the merchant's Available when absent. Never a dispute.
        #[n(3)]
        target: Option<AdjustmentTarget>,
        /// Whether a recipient has it beside its splits, so that withdrawals and repayments say how
        /// much of it they take. Credits of earlier Records raised splits that debts had reduced.
        #[cbor(n(4), default, skip_if = "is_false")]
        is_beside_splits: bool,
    },
    /// Merchant: an accepted dispute was won later. The rail has its money again, and the seller
    /// has it back where it was drawn from.
    #[n(105)]
    DisputeReversed {
        /// The dispute's id.
        #[n(0)]
        id: ObjectId,
        /// The charge's id.
        #[n(1)]
        charge: ObjectId,
        /// How the charge was paid.
        #[n(2)]
        method: PaymentMethod,
        /// How much: all that was accepted.
        #[n(3)]
        amount: Centavos,
        /// To the charge's Pending, while that is not due.
        #[n(4)]
        to_pending: Centavos,
        /// When the charge's own money falls due; none for PIX.
        #[n(5)]
        seller_due: Option<Minute>,
        /// To Available.
        #[n(6)]
        to_available: Centavos,
        /// Keyed digest of the dispute's id, which counts once for ever.
        #[n(7)]
        key: Fingerprint,
        /// The entry of two operators; `None` if the rail said it.
        #[n(8)]
        entry: Option<ReturnEntry>,
    },
    /// Merchant: an operator froze a recipient. It goes on to receive, and nothing leaves to it.
    #[n(100)]
    RecipientFrozen {
        /// The recipient's number in the group.
        #[n(0)]
        number: RecipientNumber,
        /// The reason, in the operator's words.
        #[n(1)]
        reason: String,
    },
    /// Merchant: an operator ended the freeze of a recipient.
    #[n(101)]
    RecipientUnfrozen {
        /// The recipient's number in the group.
        #[n(0)]
        number: RecipientNumber,
        /// The reason, in the operator's words.
        #[n(1)]
        reason: String,
    },
    /// System: an operator set the company's chart of accounts.
    #[n(122)]
    ChartOfAccountsSet {
        /// The map from the accounts of the books, the text of a TOML file.
        #[n(0)]
        map: String,
    },
    /// System: an operator read the tax ids of merchants, in a report.
    #[n(80)]
    PersonalDataRead {
        /// The report and its days, as asked for.
        #[n(0)]
        what: String,
    },
}

impl Event {
    /// The name of the fact in exports, reports and the operators' API: that of its variant, in
    /// snake case. A name never changes once it was given.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
