//! Commands to a merchant. A command names what is wanted; `decide` answers with facts or a
//! refusal.

use super::acquirer::BookBatch;
use super::cashout::{CashoutOutcome, ReturnedCashout};
use super::charge::{ChargeChange, SplitRequest, UniqueReference};
use super::dispute::{OpenDispute, ReverseDispute};
use super::refund::{ChargeFacts, RequestRefund, UnorderedPix};
use super::refund_failure::FailRefund;
use super::subscriptions::{Subscribe, SubscriptionChange};
use crate::adjustment::AdjustmentCommand;
use crate::rail_word::SayRailWord;
use crate::recurrence::PlanTerms;
use crate::write_off::WriteOffCommand;
use crate::{
    CardBrand, CardFace, CardRefusal, Centavos, Event, EventChoice, Fingerprint, ObjectId, PaymentMethod, RailName,
    Scopes, Sealed, Settings, StoredCard, Timestamp,
};

/// Command to a merchant. The caller has checked shapes and ranges; `decide` checks the rules.
#[derive(Clone, Debug)]
pub enum MerchantCommand {
    /// Carry out a decision on something that waits, while that has the version that its decider
    /// saw. What waits no more is left to the decision itself.
    OnVersion {
        /// What is decided on.
        id: ObjectId,
        /// The version that was seen.
        version: u32,
        /// The decision.
        decision: Box<MerchantCommand>,
    },
    /// Make something, and reserve its reference for ever. The caller has looked up that the
    /// reference is new.
    ReserveReference {
        /// The reference.
        reference: UniqueReference,
        /// The command that opens, creates, requests or registers it.
        open: Box<MerchantCommand>,
    },
    /// Change what a charge, cashout or refund has of its caller. The caller has read it.
    ChangeCharge {
        /// The charge, cashout or refund.
        charge: ObjectId,
        /// Keyed digest of the id and the number of this change, which is new.
        key: Fingerprint,
        /// The change.
        change: ChargeChange,
    },
    /// Open the account group.
    Open {
        /// The merchant's id.
        id: ObjectId,
        /// The operator's configuration.
        settings: Settings,
        /// Its profile.
        profile: Sealed,
    },
    /// Replace settings, and the profile if one is given.
    Change {
        /// The new settings.
        settings: Settings,
        /// The new profile.
        profile: Option<Sealed>,
        /// Why, if the operator says so.
        reason: Option<String>,
    },
    /// Note that an operator reads the registration of a recipient in the clear.
    NoteRegistrationRead {
        /// The recipient.
        id: ObjectId,
    },
    /// Credit goodwill of the house, by two operators.
    Adjust(AdjustmentCommand),
    /// Freeze a recipient, or end that. Again: nothing changes.
    FreezeRecipient {
        /// The recipient.
        id: ObjectId,
        /// True to freeze it.
        frozen: bool,
        /// The reason, in the operator's words.
        reason: String,
    },
    /// Write a note on an object of the group.
    WriteNote {
        /// The object.
        object: ObjectId,
        /// The note.
        text: String,
    },
    /// Carry out a command that charges a stored card, unless the card was deleted since it was
    /// looked up.
    WithStoredCard {
        /// The card.
        card: ObjectId,
        /// What to do with it.
        command: Box<MerchantCommand>,
    },
    /// Charge a subscription to another stored card.
    ChangeSubscriptionCard {
        /// The subscription.
        id: ObjectId,
        /// The card, read from the journal.
        card: StoredCard,
    },
    /// Delete a stored card.
    DeleteCard {
        /// The card.
        id: ObjectId,
    },
    /// Approve a refund as the first of two operators.
    AskApproval {
        /// The refund.
        id: ObjectId,
    },
    /// Make an API key.
    CreateApiKey {
        /// The key's id.
        id: ObjectId,
        /// SHA-256 of the key.
        digest: [u8; 32],
        /// Webhook address.
        webhook_url: Option<String>,
        /// The webhook secret, sealed.
        webhook_secret: Vec<u8>,
        /// What the key may do.
        scopes: Scopes,
        /// The events that its address receives.
        events: EventChoice,
    },
    /// Carry out a command on API keys for the merchant itself, which asks by one of its keys.
    ManageKeys {
        /// The key that asks.
        by: ObjectId,
        /// What to do.
        command: Box<MerchantCommand>,
    },
    /// Revoke an API key. Revoking it again changes nothing.
    RevokeApiKey {
        /// The key's id.
        id: ObjectId,
    },
    /// Change the address of an API key's webhooks, or the events that it receives.
    ChangeApiKey {
        /// The key's id.
        id: ObjectId,
        /// Webhook address, `Some(None)` for none; `None` leaves it.
        webhook_url: Option<Option<String>>,
        /// The events; `None` leaves them.
        events: Option<EventChoice>,
    },
    /// Replace an API key's webhook secret. The old one signs beside it for 24 hours.
    RotateWebhookSecret {
        /// The key's id.
        id: ObjectId,
        /// The new secret, sealed.
        webhook_secret: Vec<u8>,
    },
    /// Register a sub-recipient (interface 2.7); idempotent on the document.
    RegisterRecipient {
        /// Random bits of the id, should a new one be made.
        random: u16,
        /// Keyed digest of the document.
        document: Fingerprint,
        /// Its profile.
        profile: Sealed,
    },
    /// Submit a draft for analysis.
    SubmitRecipient {
        /// The recipient.
        id: ObjectId,
    },
    /// Approve a draft or pending recipient.
    ApproveRecipient {
        /// The recipient.
        id: ObjectId,
    },
    /// Refuse a draft or pending recipient.
    RejectRecipient {
        /// The recipient.
        id: ObjectId,
        /// The reason, for whoever asked.
        notes: String,
    },
    /// Replace a recipient's profile by one that was merged from the current profile and the
    /// request.
    ChangeRecipient {
        /// The recipient.
        id: ObjectId,
        /// The current profile, as it was read. No two profiles are sealed to the same bytes, so a
        /// change that came in between is noticed.
        standing: Sealed,
        /// The new profile, whole.
        profile: Sealed,
        /// True when the new profile has another bank account.
        bank_account_changed: bool,
    },
    /// Create a card charge (interface 2.1): the intent, before the acquirer is called.
    OpenCard {
        /// Its id.
        charge: ObjectId,
        /// Total, centavos.
        amount: Centavos,
        /// Credit or debit.
        method: PaymentMethod,
        /// 1 to 12.
        installments: u8,
        /// Recipients' parts.
        splits: Vec<SplitRequest>,
        /// The card.
        card: CardFace,
        /// The payer.
        payer: Sealed,
        /// The acquirer; none in a sandbox.
        rail: Option<RailName>,
    },
    /// The acquirer authorized a card charge; the Record has its stamp.
    AuthorizeCard {
        /// Id of the charge.
        charge: ObjectId,
        /// The card's scheme by the acquirer's word; `None` if it names none.
        brand: Option<CardBrand>,
    },
    /// The acquirer captured a card charge.
    CaptureCard {
        /// Id of the charge.
        charge: ObjectId,
        /// Fee that the acquirer keeps (MDR).
        acquirer_mdr: Centavos,
        /// When it says that it captured; none for now.
        captured_at: Option<Timestamp>,
        /// The card's scheme by the acquirer's word; `None` if it names none.
        brand: Option<CardBrand>,
    },
    /// The acquirer refused a card charge.
    RefuseCard {
        /// Id of the charge.
        charge: ObjectId,
        /// The acquirer's reason.
        refusal: CardRefusal,
    },
    /// The acquirer has not answered in time.
    LeaveUnanswered {
        /// Id of the charge.
        charge: ObjectId,
    },
    /// Keep what an acquirer says of a case until it can be booked, or no longer: the fact itself.
    DeferCase(Box<Event>),
    /// Create a PIX charge (interface 2.3).
    OpenPix {
        /// Its id.
        charge: ObjectId,
        /// Total, centavos.
        amount: Centavos,
        /// Recipients' parts.
        splits: Vec<SplitRequest>,
        /// When the code expires.
        expires_at: Timestamp,
        /// The payer.
        payer: Sealed,
        /// The institution that registers it; none in a sandbox.
        rail: Option<RailName>,
    },
    /// The institution has registered a PIX charge.
    RegisterPix {
        /// Id of the charge.
        charge: ObjectId,
        /// The copy-and-paste payload.
        code: String,
    },
    /// The payer paid a PIX charge.
    ConfirmPix {
        /// Id of the charge.
        charge: ObjectId,
        /// How much was paid, centavos.
        amount: Centavos,
        /// End-to-end id of the payment.
        end_to_end_id: String,
    },
    /// A PIX charge expired or was cancelled; the rail says it is unpaid.
    CancelPix {
        /// Id of the charge.
        charge: ObjectId,
    },
    /// Create a cashout (interface 2.6): the intent, before the institution is called. The caller
    /// has looked up that the transaction is new.
    CreateCashout {
        /// Its id.
        id: ObjectId,
        /// `merchant_transaction_id`: a UUID.
        transaction: [u8; 16],
        /// Keyed digest of account and `merchant_transaction_id`.
        transaction_key: Fingerprint,
        /// Gross, centavos.
        amount: Centavos,
        /// The receiver.
        destination: Sealed,
        /// The institution that sends it; none in a sandbox.
        rail: Option<RailName>,
    },
    /// The institution answered to a cashout.
    SettleCashout {
        /// Id of the cashout.
        id: ObjectId,
        /// Its answer.
        outcome: CashoutOutcome,
    },
    /// A payer paid what nobody asks for.
    ReceiveUnorderedPix(Box<UnorderedPix>),
    /// Ask for a refund (interface 2.11).
    RequestRefund(Box<RequestRefund>),
    /// Approve a refund.
    ApproveRefund {
        /// The refund.
        id: ObjectId,
        /// Its charge.
        facts: Box<ChargeFacts>,
    },
    /// Reject a refund.
    RejectRefund {
        /// The refund.
        id: ObjectId,
        /// The reason, for whoever asked.
        notes: String,
    },
    /// The rail sent a refund or a payment that nobody asked for back to the payer, or knows that
    /// a dispute was accepted.
    ConfirmRepayment {
        /// Id of the refund, dispute or repayment.
        id: ObjectId,
    },
    /// The rail refuses to send a payment back that nobody asked for.
    RefuseRepayment {
        /// The repayment.
        id: ObjectId,
        /// Why, in the rail's words.
        reason: String,
    },
    /// The bank sent the money of a processed cashout back.
    ReturnCashout(Box<ReturnedCashout>),
    /// An order that waits for its rail is to be sent there once more.
    TryOrder {
        /// The charge, cashout, refund, dispute or repayment.
        id: ObjectId,
        /// How many times it is sent with this one, from 2.
        attempt: u32,
    },
    /// An operator says what became of an order that its rail left unknown.
    SayRailWord(Box<SayRailWord>),
    /// The rail refused to carry out an approved refund.
    FailRefund(Box<FailRefund>),
    /// A payer's bank wants a charge back.
    OpenDispute(Box<OpenDispute>),
    /// The acquirer settled lines of this merchant's charges.
    BookBatch(Box<BookBatch>),
    /// Accept a dispute: the seller bears it.
    AcceptDispute {
        /// The dispute.
        id: ObjectId,
        /// The part that is accepted, centavos; the rest is released. None for all of it.
        amount: Option<Centavos>,
        /// Its charge.
        facts: Box<ChargeFacts>,
    },
    /// Release a dispute: the seller keeps the money.
    ReleaseDispute {
        /// The dispute.
        id: ObjectId,
        /// Its charge.
        facts: Box<ChargeFacts>,
        /// Why, in the operator's words, where they say so.
        notes: Option<String>,
    },
    /// Give back what an accepted dispute took, by two operators or by the rail's word.
    ReverseDispute(Box<ReverseDispute>),
    /// Write off the merchant's Deficit, by two operators.
    WriteOff(WriteOffCommand),
    /// Create a plan (interface 2.12).
    CreatePlan {
        /// Its id.
        id: ObjectId,
        /// Its tag, amount and dates.
        plan: PlanTerms,
    },
    /// Take no new subscriptions of a plan. Disabling it again changes nothing.
    DisablePlan {
        /// Id of the plan.
        id: ObjectId,
    },
    /// Keep the acquirer's token of a card.
    StoreCard {
        /// The `card_token`.
        id: ObjectId,
        /// The first and last digits and the brand.
        face: CardFace,
        /// The acquirer's token, sealed under the master key.
        token: Vec<u8>,
        /// The customer who owns it.
        customer: Sealed,
        /// The acquirer; none in a sandbox.
        rail: Option<RailName>,
    },
    /// Begin a subscription of a plan.
    Subscribe(Subscribe),
    /// Charge a subscription, if it is due: the intent, before the acquirer is called.
    BillSubscription {
        /// Id of the subscription.
        id: ObjectId,
        /// The id of the charge.
        charge: ObjectId,
        /// The payer.
        payer: Sealed,
        /// The institution that registers a PIX charge; none in a sandbox.
        rail: Option<RailName>,
    },
    /// Pause, resume or cancel a subscription.
    ChangeSubscription {
        /// Id of the subscription.
        id: ObjectId,
        /// The change.
        change: SubscriptionChange,
    },
}
