//! Rails, the traits of the outside world: the card acquirer, the PIX institution, and the
//! institution that sends money out. The intent is in the journal before a rail is called. A call
//! never happens inside an actor's handler. A charge or transfer with an unknown outcome stays
//! pending, and the rail is asked again by our own id.
//!
//! A rail must be idempotent on our id: a charge that is ordered twice is made once. A denial is
//! final. A call may start long after its intent: when the process stood still in between, the
//! schedule may already have asked about the id. So a denial must close the id at the rail, and a
//! later call with that id does nothing. `testkit::rails` checks this of any rail.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ledger::event::Batch;
pub use ledger::event::CaseStage;
use ledger::merchant::Authorization;
use ledger::{
    BankAccount, CardBrand, CardRefusal, Centavos, MerchantProfile, ObjectId, OpenCharge, Payer, PaymentMethod,
    PayoutBank, PixDestination, RailName, RailStamp, SettledObject, Timestamp,
};
use minicbor::{Decode, Encode};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A call to a rail.
pub type Call<'a, T> = Pin<Box<dyn Future<Output = RailResult<T>> + Send + 'a>>;

/// Answer of a rail, or why it is not known.
pub type RailResult<T> = Result<T, RailError>;

/// Why a rail's answer is not known. An unknown answer is never taken for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RailError {
    /// Nothing was sent: no connection, or the login failed. The same call may be made again at
    /// once.
    #[error("the rail can't be reached")]
    NotSent,
    /// It was sent, or may have been; there is no answer that can be relied on: none in time, a
    /// connection that broke, or words that the adapter does not know.
    #[error("the rail did not answer")]
    NoAnswer,
    /// The rail says itself that it has nothing under the id. The order may be sent, once that is a
    /// Record where it may have been sent before.
    #[error("the rail has no such order")]
    HasNone,
}

/// The payer's card for one charge, for the time of the call only: never stored, logged, traced or
/// printed. Nothing of it stays in the memory of the process.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct CardSecrets {
    /// The number, digits only.
    pub number: String,
    /// The name on the card.
    pub holder_name: String,
    /// 1 to 12.
    pub exp_month: u8,
    /// Four digits.
    pub exp_year: u16,
    /// The security code.
    pub cvv: String,
}

impl std::fmt::Debug for CardSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CardSecrets")
    }
}

/// The acquirer's token of a card that it keeps.
#[derive(Clone, PartialEq, Eq)]
pub struct CardToken(pub String);

impl std::fmt::Debug for CardToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CardToken")
    }
}

/// The card of a charge: as the payer gave it, or one that the acquirer keeps.
#[derive(Debug)]
pub enum ChargedCard {
    /// Given for this charge.
    Given(CardSecrets),
    /// Stored by the acquirer, which gave a token for it; charged on a date of a subscription.
    Token(CardToken),
    /// Stored by the acquirer, and charged once, as its payer asks for it.
    Stored {
        /// The acquirer's token of the card.
        token: CardToken,
        /// The code that the payer gave again; `None` if it was not asked for.
        cvv: Option<SecurityCode>,
    },
}

/// The security code of a stored card, for the time of the call only. Nothing of it stays in the
/// memory of the process.
#[derive(ZeroizeOnDrop)]
pub struct SecurityCode(pub String);

impl std::fmt::Debug for SecurityCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecurityCode")
    }
}

/// A card charge, as ordered from the acquirer.
#[derive(Debug)]
pub struct ChargeCard {
    /// Our id, on which the acquirer is idempotent.
    pub charge: ObjectId,
    /// Total, centavos.
    pub amount: Centavos,
    /// 1 to 12.
    pub installments: u8,
    /// Credit or debit.
    pub method: PaymentMethod,
    /// The card.
    pub card: ChargedCard,
    /// The merchant who sells.
    pub merchant: MerchantProfile,
    /// Who pays.
    pub payer: Payer,
    /// The last time at which the order may begin to leave; an adapter looks again just before.
    pub not_after: Timestamp,
}

/// An authorized charge, as its capture is ordered from the acquirer.
#[derive(Clone, Debug)]
pub struct CaptureCard {
    /// Our id, on which the acquirer is idempotent.
    pub charge: ObjectId,
    /// Total, centavos.
    pub amount: Centavos,
    /// The acquirer's word on the charge.
    pub authorized: Authorization,
}

/// The acquirer's answer for a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardAnswer {
    /// Captured; the acquirer keeps this much.
    Captured {
        /// Fee that the acquirer keeps of the total (MDR), centavos.
        acquirer_mdr: Centavos,
        /// The card's scheme; `None` if its answers do not name one. The same however often it
        /// answers.
        brand: Option<CardBrand>,
        /// Its id of the capture (NSU), and when it captured. The same however often it answers.
        stamp: RailStamp,
    },
    /// Authorized, and no money has moved: a rail that captures separately waits for the order to
    /// [capture](CardRail::capture), which is given once this is a Record.
    Authorized(Authorization),
    /// The card was refused; nothing was charged.
    Refused(CardRefusal),
    /// It has the charge, and has not decided: ask again later.
    UnderWay,
}

/// The acquirer's answer when a charge is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardFate {
    /// It never had the charge, and from now on refuses it: the id is closed.
    Closed,
    /// It had the charge.
    Answered(CardAnswer),
}

/// The card acquirer.
pub trait CardRail: Send + Sync + 'static {
    /// Authorizes and captures, or authorizes alone where the answer says so. A closed id is
    /// refused with [`CardRefusal::Failed`], and nothing is charged.
    fn charge(&self, call: ChargeCard) -> Call<'_, CardAnswer>;

    /// Captures a charge that it has authorized. It may be ordered again, and answers the same. Not
    /// called of a rail that captures with the charge.
    fn capture(&self, _call: CaptureCard) -> Call<'_, CardAnswer> {
        Box::pin(ready(Err(RailError::NoAnswer)))
    }

    /// How long the caller of a charge waits for its answer before it hears `pending`. A call of a
    /// named acquirer goes on to its end, and its outcome is booked.
    fn answers_within(&self) -> Duration {
        Duration::from_millis(1_500)
    }

    /// The host at which its idempotency keys hold, where a repeat at another one would be carried
    /// out again.
    fn keys_hold_at(&self) -> Option<&str> {
        None
    }

    /// Has the acquirer keep a card; gives its token. Nothing is charged.
    fn tokenize(&self, card: CardSecrets) -> Call<'_, CardToken>;

    /// Has the acquirer delete a card that it stores; false where it does not, or its interface has
    /// no such call.
    fn delete_token(&self, _token: CardToken) -> Call<'_, bool> {
        Box::pin(ready(Ok(false)))
    }

    /// Ends a charge that was not answered: gives what became of it or, when the acquirer never had
    /// it, closes its id. An adapter for an acquirer that cannot close an id keeps the closed ids
    /// itself, and looks there before it passes a charge on.
    fn close<'a>(&'a self, charge: ObjectId, open: &'a OpenCharge) -> Call<'a, CardFate>;

    /// Gives money back to the payer, and takes it from a later batch. It may be ordered again, and
    /// answers the same.
    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer>;

    /// Accepts a chargeback: the acquirer takes the money from a later batch. Idempotent.
    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp>;

    /// The cases that changed in a span of time. One that was listed once is listed in each later
    /// answer about its time. Empty where the rail has no such list: operators open disputes.
    fn cases(&self, _span: PixSpan) -> Call<'_, RailCases> {
        Box::pin(ready(Ok(RailCases::default())))
    }

    /// The lines after `after` of the batches that were paid by `now`: lines of one batch; `None`
    /// if there are no more. Batches and their lines never change.
    fn settlements(&self, after: SettlementCursor, now: Timestamp) -> Call<'_, Option<SettlementPage>>;

    /// When to ask for batches again, once there are no more at `now`.
    fn settles_next(&self, now: Timestamp) -> Timestamp {
        now.plus_ms(ASK_FOR_BATCHES_EVERY_MS)
    }
}

/// How often an acquirer is asked for batches that does not say when it pays, milliseconds.
const ASK_FOR_BATCHES_EVERY_MS: i64 = 15 * 60 * 1000;

/// How often the cases of a rail are read.
pub const CASES_EVERY: Duration = Duration::from_secs(60);

/// How far an acquirer's batches were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettlementCursor {
    /// Number of the last batch that was read whole; 0 before the first one.
    pub batch: u64,
    /// How many lines of the next batch were read.
    pub lines: u64,
}

/// Some lines of one batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementPage {
    /// The batch. Numbers go up from batch to batch, with gaps or without.
    pub batch: Batch,
    /// The lines, at least one.
    pub lines: Vec<SettlementLine>,
    /// True when the batch ends with these lines.
    pub is_last: bool,
}

/// Line of a batch, as the acquirer sends it. Amounts are below zero when it takes money back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettlementLine {
    /// The charge, by our id.
    pub charge: ObjectId,
    /// The object for which it pays or takes money back.
    pub object: SettledObject,
    /// Before the fee, centavos.
    pub gross: Centavos,
    /// Its fee for this line (MDR), centavos; below zero when it gives a fee back.
    pub fee: Centavos,
}

impl SettlementLine {
    /// The amount that is paid, after the fee, centavos.
    pub fn net(&self) -> Centavos {
        self.gross - self.fee
    }
}

/// Money that goes back to a payer.
#[derive(Clone, Debug)]
pub struct Repay {
    /// Our id, on which the rail is idempotent: a refund's or a dispute's, or that of a charge that
    /// was paid too late.
    pub id: ObjectId,
    /// When it was decided: the same however often it is ordered.
    pub decided_at: Timestamp,
    /// The charge that was paid.
    pub charge: ObjectId,
    /// The rail's own id of the payment that goes back: a PIX payment's end-to-end id, an
    /// acquirer's id of a capture.
    pub payment: String,
    /// How much, centavos.
    pub amount: Centavos,
    /// How much of the payment was given back by decisions before this one, centavos: the same
    /// however often it is ordered.
    pub before: Centavos,
    /// True when it may have been ordered before: the rail is asked for it, and nothing is ordered.
    /// [`RailError::HasNone`] where it may be ordered now, or can't be asked for.
    pub is_repeat: bool,
}

/// A rail's answer when it is ordered to give money back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepayAnswer {
    /// It gave the money back, or surely will.
    Repaid(RailStamp),
    /// It is at it, and may still refuse: ask again later.
    UnderWay,
    /// It will not, whenever it is ordered again: no money has moved.
    Refused {
        /// Why, in its words.
        reason: String,
    },
}

/// Case of a payer's bank, a chargeback or special return (MED), as the rail has it. Processes hand
/// it to each other.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RailCase {
    /// The rail's id of the case.
    #[n(0)]
    pub id: String,
    /// The charge that it is about; an id that no charge has where the rail names none of ours.
    #[n(1)]
    pub charge: ObjectId,
    /// How much is wanted back, centavos.
    #[n(2)]
    pub amount: Centavos,
    /// Why, as the payer's bank says.
    #[n(3)]
    pub reason: String,
    /// Until when it has to be answered, where the rail says so.
    #[n(4)]
    pub due_at: Option<Timestamp>,
    /// What became of it.
    #[n(5)]
    pub stage: CaseStage,
    /// True where the rail names a debit alone, and not the case that it ends: the id is that of
    /// the debit.
    #[n(6)]
    pub is_debit_alone: bool,
}

/// A page of cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RailCases {
    /// In the rail's order.
    pub cases: Vec<RailCase>,
    /// True when another page follows.
    pub has_more: bool,
}

/// What an acquirer says by itself about a charge, or about a refund of it. Processes hand it to
/// each other.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CardNotification {
    /// The acquirer.
    #[n(0)]
    pub rail: RailName,
    /// Its id of what it says.
    #[n(1)]
    pub id: String,
    /// The charge or refund, by our id.
    #[n(2)]
    pub object: ObjectId,
    /// How much it is about, centavos.
    #[n(3)]
    pub amount: Centavos,
    /// What happened.
    #[n(4)]
    pub what: CardIncident,
    /// Why, in its words.
    #[n(5)]
    pub reason: String,
    /// Until when a case has to be answered, where it says so.
    #[n(6)]
    pub due_at: Option<Timestamp>,
    /// When we heard of it.
    #[n(7)]
    pub heard_at: Timestamp,
}

/// What an acquirer says by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum CardIncident {
    /// The issuer did not authorize the charge.
    #[n(0)]
    NotAuthorized,
    /// Whatever it had under the charge's id is cancelled.
    #[n(1)]
    Cancelled,
    /// An authorization has lapsed.
    #[n(2)]
    Expired,
    /// A capture that it had received was not carried out.
    #[n(3)]
    CaptureFailed,
    /// A refund that it had received was not carried out, or its money came back.
    #[n(4)]
    RefundFailed,
    /// A payer's bank has opened a case.
    #[n(5)]
    CaseOpened,
    /// The money of a case was taken.
    #[n(6)]
    CaseDebited,
    /// A case is won, and its money is back.
    #[n(7)]
    CaseWon,
    /// The money of a case that was won is taken again.
    #[n(8)]
    CaseLostAgain,
}

/// Our answer to a case.
#[derive(Clone, Debug)]
pub struct CaseAnswer {
    /// The rail's id of the case.
    pub id: String,
    /// True when the payer's bank is to have the money.
    pub accepts: bool,
    /// Why, in the operator's words.
    pub reason: Option<String>,
}

/// The PIX institution's answer when a code is cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PixFate {
    /// Unpaid, and from now on it cannot be paid.
    Cancelled,
    /// Paid before.
    Paid(PixReceipt),
}

/// A PIX charge that is registered at its institution.
#[derive(Clone, Debug)]
pub struct OpenPix {
    /// Our id: the txid, 32 hexadecimal digits. The institution is idempotent on it.
    pub charge: ObjectId,
    /// Total, centavos.
    pub amount: Centavos,
    /// When its code expires.
    pub expires_at: Timestamp,
    /// Who pays.
    pub payer: Payer,
    /// As [`Repay::is_repeat`].
    pub is_repeat: bool,
}

/// The PIX institution's answer when a charge is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PixOpening {
    /// It has the charge.
    Registered {
        /// The copy-and-paste payload that a payer's bank reads (`pixCopiaECola`).
        code: String,
    },
    /// It will not have it, whenever it is asked again.
    Refused {
        /// Why, in its words.
        reason: String,
    },
    /// It has the charge, and nobody can pay it any more: [`PixRail::cancel`] says whether it was
    /// paid.
    Ended,
}

/// Payments that an institution received in a span of time, page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixSpan {
    /// Start, by the institution's clock.
    pub from: Timestamp,
    /// End, by the same clock.
    pub until: Timestamp,
    /// The page, from 0.
    pub page: u32,
}

/// A payment that the institution received. Processes hand it to each other.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PixReceipt {
    /// The payment's end-to-end id.
    #[n(0)]
    pub end_to_end_id: String,
    /// The txid that the payer's bank named; none for a payment to the key alone.
    #[n(1)]
    pub txid: Option<String>,
    /// How much, centavos.
    #[n(2)]
    pub amount: Centavos,
    /// When it was received.
    #[n(3)]
    pub paid_at: Timestamp,
}

/// A page of payments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PixReceipts {
    /// In the institution's order.
    pub payments: Vec<PixReceipt>,
    /// True when another page follows.
    pub has_more: bool,
}

/// The PIX institution.
pub trait PixRail: Send + Sync + 'static {
    /// Location of the charge's dynamic BR Code, from which a payer's bank fetches it, without a
    /// scheme. `None` if each charge is registered with [`PixRail::open`], which gives its code.
    fn location(&self, charge: ObjectId) -> Option<String>;

    /// Registers a charge, so that it can be paid. It may be ordered again, and answers the same.
    /// Not called where [`PixRail::location`] gives a location.
    fn open(&self, _call: OpenPix) -> Call<'_, PixOpening> {
        Box::pin(ready(Err(RailError::NotSent)))
    }

    /// The payments of a span. One that was listed once is listed in each later answer about its
    /// time. A sandbox's institution lists none: its payments are booked as they are made.
    fn received(&self, _span: PixSpan) -> Call<'_, PixReceipts> {
        Box::pin(ready(Ok(PixReceipts::default())))
    }

    /// Ends a code.
    fn cancel(&self, charge: ObjectId) -> Call<'_, PixFate>;

    /// Gives money back to the payer. It may be ordered again, and answers the same.
    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer>;

    /// The cases that changed in a span of time. One that was listed once is listed in each later
    /// answer about its time. Empty where the rail has no such list: operators open disputes.
    fn cases(&self, _span: PixSpan) -> Call<'_, RailCases> {
        Box::pin(ready(Ok(RailCases::default())))
    }

    /// How often its cases are to be read.
    fn cases_every(&self) -> Duration {
        CASES_EVERY
    }

    /// Answers an open case. Asked again until it is answered; then not again.
    fn answer_case(&self, _answer: CaseAnswer) -> Call<'_, ()> {
        Box::pin(ready(Ok(())))
    }

    /// Accepts a special return (MED): the institution takes the money from our account, once,
    /// however often it is called.
    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp>;
}

/// A transfer out of the platform.
#[derive(Clone, Debug)]
pub struct SendPayout {
    /// Our id, on which the institution is idempotent: a cashout's or a withdrawal's.
    pub id: ObjectId,
    /// Amount to send, centavos.
    pub amount: Centavos,
    /// The receiver.
    pub to: Destination,
    /// When it was asked for or, of a withdrawal, approved: the same however often it is ordered.
    pub ordered_at: Timestamp,
}

/// Receiver of a transfer.
#[derive(Clone, Debug)]
pub enum Destination {
    /// A PIX key, for a cashout.
    PixKey(PixDestination),
    /// A bank account, for a withdrawal.
    Account(BankAccount),
}

/// The institution's answer for a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PayoutAnswer {
    /// It surely does not have the transfer. In answer to an order, the id is closed: a later order
    /// of it has the same answer and carries nothing out.
    NotTaken,
    /// It has the transfer and is carrying it out.
    Taken {
        /// Its own id of the transfer.
        transfer_id: String,
        /// When it took the transfer: the money left.
        at: Timestamp,
        /// The account that the money left.
        from: PayoutBank,
    },
    /// Carried out.
    Processed {
        /// Its own id of the transfer.
        transfer_id: String,
        /// The PIX end-to-end id.
        end_to_end_id: String,
        /// When the money left.
        at: Timestamp,
        /// The account that the money left.
        from: PayoutBank,
    },
    /// It had the transfer and could not carry it out: no money has moved.
    Failed {
        /// Why, in its words.
        reason: String,
    },
    /// It had carried the transfer out, and the bank has sent all of the money back.
    Returned {
        /// Why, in its words.
        reason: String,
        /// Its id of the return, and when the money came back.
        stamp: RailStamp,
        /// The account that the money came back to.
        to: PayoutBank,
    },
}

/// A transfer that an institution had carried out, and whose money has come back whole. Processes
/// hand it to each other.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ReturnedPayout {
    /// Our id of the transfer.
    #[n(0)]
    pub id: ObjectId,
    /// How much came back, centavos.
    #[n(1)]
    pub amount: Centavos,
    /// Why, in the institution's words.
    #[n(2)]
    pub reason: String,
    /// Its id of the return, and when the money came back.
    #[n(3)]
    pub stamp: RailStamp,
    /// The account that the money came back to.
    #[n(4)]
    pub to: PayoutBank,
}

/// A page of returned transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReturnedPayouts {
    /// In the institution's order.
    pub transfers: Vec<ReturnedPayout>,
    /// True when another page follows.
    pub has_more: bool,
}

/// Why a rail cannot pay to a bank account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnpayableAccount {
    /// The field of the account that is absent or does not fit, by its name on the wire.
    pub field: &'static str,
    /// The defect, as the caller reads it.
    pub reason: &'static str,
}

/// The institution that sends money out. It must be idempotent on our id. A transfer that is
/// ordered twice is carried out once. A transfer that failed, or was not taken, is not carried out
/// when it is ordered again. So a late order does no harm after the schedule has ordered the same
/// transfer and booked its answer.
pub trait PayoutRail: Send + Sync + 'static {
    /// Orders a transfer. It may be ordered again after an answer that was lost.
    fn send(&self, call: SendPayout) -> Call<'_, PayoutAnswer>;

    /// Outcome of an ordered transfer, at `now`. `NotTaken` counts only after
    /// [`PayoutRail::horizon`].
    fn find(&self, call: SendPayout, now: Timestamp) -> Call<'_, PayoutAnswer>;

    /// The transfers whose money came back in a span of time. One that was listed once is listed in
    /// each later answer about its time. `None` if an institution has no such list: withdrawals
    /// are asked about one by one.
    fn returned(&self, _span: PixSpan) -> Call<'_, ReturnedPayouts> {
        Box::pin(ready(Ok(ReturnedPayouts::default())))
    }

    /// The account from which a withdrawal of this amount would be paid now, for a preview. The
    /// answer to the order says which one it was.
    fn pays_withdrawal_from(&self, _amount: Centavos) -> PayoutBank {
        PayoutBank::Settlement
    }

    /// Whether it can pay to a bank account at all. Asked when an account is registered, with its
    /// holder's name.
    fn can_pay(&self, _account: &BankAccount) -> Result<(), UnpayableAccount> {
        Ok(())
    }

    /// How long after it was ordered a transfer may still turn up at the institution.
    fn horizon(&self) -> Duration;

    /// Whether a transfer that was first ordered at this time may be ordered again under its id:
    /// false where the institution might carry it out twice. Then it is only asked for.
    fn may_send_again(&self, _first_ordered_at: Timestamp, _now: Timestamp) -> bool {
        true
    }
}

/// The rails of an installation.
#[derive(Default)]
pub struct Rails {
    /// Transfers out.
    pub payout: NamedRails<dyn PayoutRail>,
    /// Card acquirers.
    pub card: NamedRails<dyn CardRail>,
    /// PIX institutions.
    pub pix: NamedRails<dyn PixRail>,
    /// Parties of payments by rail, for fiscal documents; nothing else reads them.
    pub parties: BTreeMap<RailName, RailParties>,
}

/// Parties of a rail's payments that a fiscal document names; `None` where the settings have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RailParties {
    /// CNPJ of the receiver of PIX payments.
    pub receiver_document: Option<String>,
    /// ISPB of the receiver's institution, 8 characters.
    pub psp_ispb: Option<String>,
    /// CNPJ of the card acquirer.
    pub acquirer_document: Option<String>,
}

impl Rails {
    /// Their names; none for that of a sandbox.
    pub fn names(&self) -> impl Iterator<Item = Option<RailName>> {
        self.payout.names().chain(self.card.names()).chain(self.pix.names())
    }

    /// True with a rail of any kind.
    pub fn has_any(&self) -> bool {
        self.payout.has_any() || self.card.has_any() || self.pix.has_any()
    }
}

/// The rails of one kind: one for new orders, and those of earlier orders. An order's Record has
/// the name of its rail; the rail of a sandbox has no name.
pub struct NamedRails<R: ?Sized> {
    sandbox: Option<Arc<R>>,
    by_name: BTreeMap<RailName, Arc<R>>,
    /// That of new orders.
    current: Option<RailName>,
}

impl<R: ?Sized> Default for NamedRails<R> {
    fn default() -> Self {
        Self { sandbox: None, by_name: BTreeMap::new(), current: None }
    }
}

impl<R: ?Sized> NamedRails<R> {
    /// The rail of a sandbox.
    pub fn sandbox(rail: Arc<R>) -> Self {
        Self { sandbox: Some(rail), ..Self::default() }
    }

    /// Rails by their names. `current` is that of new orders; `None` if they are answered with
    /// 503.
    pub fn named(by_name: BTreeMap<RailName, Arc<R>>, current: Option<RailName>) -> Self {
        Self { sandbox: None, by_name, current }
    }

    /// The rail of new orders, with its name.
    pub fn current(&self) -> Option<(Option<&RailName>, &Arc<R>)> {
        match &self.sandbox {
            Some(rail) => Some((None, rail)),
            None => self.by_name.get_key_value(self.current.as_ref()?).map(|(name, rail)| (Some(name), rail)),
        }
    }

    /// The rail of this name; a sandbox's has none.
    pub fn get(&self, name: Option<&RailName>) -> Option<&Arc<R>> {
        name.map_or(self.sandbox.as_ref(), |name| self.by_name.get(name))
    }

    /// All of them that have a name.
    pub fn named_ones(&self) -> impl Iterator<Item = (&RailName, &Arc<R>)> {
        self.by_name.iter()
    }

    fn names(&self) -> impl Iterator<Item = Option<RailName>> {
        self.sandbox.iter().map(|_| None).chain(self.by_name.keys().cloned().map(Some))
    }

    /// True with at least one rail.
    pub fn has_any(&self) -> bool {
        self.sandbox.is_some() || !self.by_name.is_empty()
    }
}
