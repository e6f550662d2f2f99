//! State machine of a merchant: the rules for its money, and the changes of its state.
//!
//! `decide` and `apply` only dispatch to the file of a noun. That file has the decisions, the
//! changes of the state, and the part of the state that belongs to the noun.

mod acquirer;
mod adjustments;
mod api_keys;
mod card;
mod cashout;
mod charge;
mod closing;
mod command;
mod dispute;
mod maturity;
mod opening;
mod pix;
mod plans;
mod rail_waits;
mod rail_word;
mod refund;
mod refund_failure;
mod sections;
mod stored_cards;
mod sub_recipients;
mod subscriptions;

use crate::adjustment;
use crate::balances::Ledger;
use crate::section::Sums;
use crate::write_off::OpenWriteOff;
use crate::{
    Account, Centavos, Decision, Event, GroupNumber, IdKey, LedgerId, ObjectId, PaymentMethod, Record, Rejection,
    Result, Sealed, Settings, Timestamp,
};

use acquirer::SettledThrough;
use adjustments::Adjustments;
use api_keys::ApiKeys;
use plans::Plans;
use rail_waits::WaitingObjects;
use stored_cards::DeletedCards;
use sub_recipients::Recipients;
use subscriptions::Subscriptions;

pub use acquirer::{BookBatch, EndedBatch, SentFile, file_id};
pub use adjustments::{Repayment, RepaymentKind};
pub use api_keys::{ApiKey, KEYS_MAX, LIVE_KEYS_MAX, PreviousSecret, SECRET_OVERLAP_MS};
pub use cashout::{CashoutOutcome, OpenCashout, ReturnedCashout};
pub use charge::{
    Authorization, ChargeChange, OpenCharge, RECONCILE_AFTER_MS, SplitPart, SplitRequest, SplitRule, UniqueReference,
};
pub use closing::{OpenItem, OpenKind, open_balances};
pub use command::MerchantCommand;
pub use dispute::{OpenDispute, ReverseDispute};
pub use opening::MerchantOpening;
pub use plans::Plan;
pub use rail_word::WaitingOrder;
pub use refund::{CARD_WINDOW_DAYS, ChargeFacts, DisputeWindows, PIX_WINDOW_DAYS, RequestRefund, UnorderedPix};
pub use refund_failure::{FailRefund, ReversedRefund};
pub use sub_recipients::{BankReview, Recipient, RecipientStatus, RegistrationResult};
pub use subscriptions::{Subscribe, Subscription, SubscriptionChange};

/// State of a merchant: all that its decisions need. It grows with recipients, keys, plans,
/// whatever is open or can still change, and the minutes that wait to fall due; never with history.
///
/// ```
/// use ledger::fees::Settings;
/// use ledger::id::{GroupNumber, IdKey, LedgerId};
/// use ledger::merchant::{MerchantCommand, MerchantState};
/// use ledger::personal::Sealed;
/// use ledger::rejection::Rejection;
/// use ledger::time::Timestamp;
///
/// let (group, ids, now) = (GroupNumber(1), IdKey::new([7; 16]), Timestamp(1_795_000_000_000));
/// let mut merchant = MerchantState::default();
/// let open = MerchantCommand::Open {
///     id: ids.object(group, now, 1),
///     settings: Settings::default(),
///     profile: Sealed::default(),
/// };
/// let decision = merchant.decide(open.clone(), group, now, &ids).unwrap();
/// assert_eq!(merchant.id(), None, "deciding changed nothing");
///
/// merchant.evolve(&decision.into_record(LedgerId::Merchant(group), 1, now));
/// assert_eq!(merchant.decide(open, group, now, &ids), Err(Rejection::MerchantExists));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MerchantState {
    id: Option<ObjectId>,
    settings: Settings,
    profile: Sealed,
    keys: ApiKeys,
    recipients: Recipients,
    open_charges: WaitingObjects<OpenCharge>,
    cashouts: WaitingObjects<OpenCashout>,
    plans: Plans,
    subscriptions: Subscriptions,
    ledger: Ledger,
    /// The ledger's Pending by due minute: the account itself has one sum for all minutes.
    pending: Sums,
    /// How far the acquirer's batches are booked.
    settled: SettledThrough,
    /// The same, of batches from files of operators.
    settled_by_files: SettledThrough,
    adjustments: Adjustments,
    /// The write-off of the Deficit that waits for a second operator.
    write_off: Option<OpenWriteOff>,
    /// The adjustments that wait for a second operator.
    goodwill: Vec<OpenWriteOff>,
    /// Stored cards that were deleted within the last hour.
    deleted_cards: DeletedCards,
}

impl MerchantState {
    /// Decides a command and changes nothing. `group` is this merchant's; `ids` makes the id of a
    /// new recipient. Errors: the first rule that the command breaks.
    pub fn decide(
        &self,
        command: MerchantCommand,
        group: GroupNumber,
        now: Timestamp,
        ids: &IdKey,
    ) -> Result<Decision> {
        use MerchantCommand as Command;
        if self.id.is_none() && !matches!(command, Command::Open { .. }) {
            return Err(Rejection::MerchantNotFound);
        }
        match command {
            Command::Open { id, settings, profile } => self.open(id, settings, profile),
            Command::Change { settings, profile, reason } => self.change(settings, profile, reason),
            Command::NoteRegistrationRead { id } => self.note_registration_read(id, ids),
            Command::FreezeRecipient { id, frozen, reason } => self.freeze_recipient(id, frozen, reason, ids),
            Command::WriteNote { object, text } => Ok(Decision::of(Event::NoteWritten { object, text })),
            Command::DeleteCard { id } => self.delete_card(id),
            Command::AskApproval { id } => self.ask_refund_approval(id),
            Command::CreateApiKey { id, digest, webhook_url, webhook_secret, scopes, events } => {
                Ok(Decision::of(Event::ApiKeyCreated { id, digest, webhook_url, webhook_secret, scopes, events }))
            }
            Command::ManageKeys { by, command } => {
                self.may_manage_keys(by, &command)?;
                self.decide(*command, group, now, ids)
            }
            Command::RevokeApiKey { id } => self.revoke_api_key(id),
            Command::ChangeApiKey { id, webhook_url, events } => self.change_api_key(id, webhook_url, events),
            Command::RotateWebhookSecret { id, webhook_secret } => self.rotate_webhook_secret(id, webhook_secret, now),
            Command::RegisterRecipient { random, document, profile } => {
                self.register_recipient(document, profile, |number| ids.recipient(group, number, now, random))
            }
            Command::SubmitRecipient { id } => self.submit_recipient(id, ids),
            Command::OnVersion { id, version, decision } => self.decide_on(id, version, *decision, (group, now, ids)),
            Command::ReserveReference { reference, open } => {
                self.decide(*open, group, now, ids).map(|opened| reference.reserved_by(opened))
            }
            Command::ChangeCharge { charge, key, change } => Ok(change.decided(charge, key)),
            Command::ApproveRecipient { id } => self.approve_recipient(id, ids),
            Command::RejectRecipient { id, notes } => self.reject_recipient(id, notes, ids),
            Command::ChangeRecipient { id, standing, profile, bank_account_changed } => {
                self.change_recipient(id, &standing, profile, bank_account_changed, ids)
            }
            Command::OpenCard { charge, amount, method, installments, splits, card, payer, rail } => {
                let terms = self.terms(amount, method, installments, &splits, ids);
                terms.map(|terms| Self::open_card(charge, terms, card, payer, rail))
            }
            Command::AuthorizeCard { charge, brand } => self.authorize_card(charge, brand),
            Command::CaptureCard { charge, acquirer_mdr, captured_at, brand } => {
                self.capture_card(charge, acquirer_mdr, captured_at.unwrap_or(now), brand, now)
            }
            Command::RefuseCard { charge, refusal } => self.refuse_card(charge, refusal),
            Command::LeaveUnanswered { charge } => self.leave_unanswered(charge),
            Command::DeferCase(deferred) => Ok(Decision::of(*deferred)),
            Command::OpenPix { charge, amount, splits, expires_at, payer, rail } => self
                .terms(amount, PaymentMethod::Pix, 1, &splits, ids)
                .map(|terms| Self::open_pix(charge, terms, expires_at, payer, rail)),
            Command::RegisterPix { charge, code } => self.register_pix(charge, code),
            Command::ConfirmPix { charge, amount, end_to_end_id } => self.confirm_pix(charge, amount, end_to_end_id),
            Command::CancelPix { charge } => self.cancel_pix(charge),
            Command::CreatePlan { id, plan } => self.create_plan(id, plan),
            Command::DisablePlan { id } => self.disable_plan(id),
            Command::StoreCard { id, face, token, customer, rail } => {
                let stored = Event::CardStored { id, face, token, rail };
                Ok(Decision { events: vec![stored], personal: Some(customer) })
            }
            Command::WithStoredCard { card, command } => {
                self.deleted_cards.refuse(card)?;
                self.decide(*command, group, now, ids)
            }
            Command::Subscribe(wanted) => self.subscribe(wanted, now, ids),
            Command::BillSubscription { id, charge, payer, rail } => {
                self.bill_subscription(id, charge, (payer, rail), now)
            }
            Command::ChangeSubscription { id, change } => self.change_subscription(id, change, now),
            Command::ChangeSubscriptionCard { id, card } => self.change_subscription_card(id, card, now),
            Command::CreateCashout { id, transaction, transaction_key, amount, destination, rail } => {
                self.create_cashout(id, (transaction, transaction_key), amount, destination, rail)
            }
            Command::SettleCashout { id, outcome } => self.settle_cashout(id, outcome),
            Command::ReceiveUnorderedPix(received) => self.receive_unordered_pix(*received),
            Command::RequestRefund(wanted) => self.request_refund(*wanted, now, ids),
            Command::ApproveRefund { id, facts } => self.approve_refund(id, &facts, now),
            Command::RejectRefund { id, notes } => self.reject_refund(id, notes),
            Command::ConfirmRepayment { id } => Ok(self.repaid(id)),
            Command::RefuseRepayment { id, reason } => self.not_repaid(id, reason),
            Command::ReturnCashout(returned) => Ok(self.return_cashout(*returned)),
            Command::TryOrder { id, attempt } => self.try_order(id, attempt),
            Command::SayRailWord(said) => self.say_rail_word(*said, now),
            Command::FailRefund(failed) => Ok(self.fail_refund(*failed, now)),
            Command::OpenDispute(reported) => self.open_dispute(*reported, now),
            Command::BookBatch(batch) => Ok(self.book_batch(*batch)),
            Command::AcceptDispute { id, amount, facts } => self.accept_dispute(id, amount, &facts, now),
            Command::ReleaseDispute { id, facts, notes } => self.release_dispute(id, &facts, notes, now),
            Command::ReverseDispute(reversal) => self.reverse_dispute(*reversal, now),
            Command::WriteOff(command) => self.write_off_deficit(command),
            Command::Adjust(command) => self.adjust(command),
        }
    }

    /// Decides on a version of an item. Errors: the item waits in another version; the first rule
    /// that the decision breaks.
    fn decide_on(
        &self,
        id: ObjectId,
        version: u32,
        decision: MerchantCommand,
        (group, now, ids): (GroupNumber, Timestamp, &IdKey),
    ) -> Result<Decision> {
        match self.version_of(id, ids) {
            Some(current) if current != version => Err(Rejection::VersionChanged),
            _ => self.decide(decision, group, now, ids),
        }
    }

    /// Applies one of the merchant's own Records. From here on it must succeed.
    pub fn evolve(&mut self, record: &Record) {
        self.post(record);
        for event in &record.events {
            self.apply(event, record);
        }
        self.adjustments.forget_before(record.effective_at);
    }

    /// Applies a recipient's Record, by which a debt is paid back or lost.
    pub fn receive(&mut self, record: &Record) {
        self.post(record);
        for event in &record.events {
            if let Event::ClawbackRecovered { debts, .. } = event {
                debts.iter().for_each(|debt| self.come_back(debt));
            }
        }
    }

    /// The version of something that waits for a decision: of a recipient, that of its profile; of
    /// a refund, counted by the disputes of its charge. Nothing else changes while it waits. None
    /// for what does not wait.
    pub fn version_of(&self, id: ObjectId, ids: &IdKey) -> Option<u32> {
        self.adjustments.version_of(id).or_else(|| self.undecided_version(id, ids))
    }

    /// The merchant's id; none before it was opened.
    pub fn id(&self) -> Option<ObjectId> {
        self.id
    }

    /// The operator's settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The sealed profile.
    pub fn profile(&self) -> &Sealed {
        &self.profile
    }

    /// The balances of the merchant's own accounts.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Money that falls due later, centavos.
    pub fn pending(&self) -> Centavos {
        self.ledger.holds(Account::Pending)
    }

    /// Money that can be paid out, centavos.
    pub fn available(&self) -> Centavos {
        self.ledger.holds(Account::Available)
    }

    /// The merchant's debt, centavos.
    pub fn deficit(&self) -> Centavos {
        self.ledger.owes(Account::Deficit)
    }

    /// Money that is held for cashouts, centavos.
    pub fn reserved_cashout(&self) -> Centavos {
        self.ledger.holds(Account::ReservedCashout)
    }

    /// Money that is held for disputes, centavos.
    pub fn reserved_for_disputes(&self) -> Centavos {
        self.ledger.holds(Account::ReservedDispute)
    }

    /// True when no claim on the platform and no debt is below zero, and the sums by due minute, by
    /// cashout and by dispute equal the balances of the accounts.
    pub fn is_sound(&self) -> bool {
        let cashouts = self.cashouts.by_id().values().map(|cashout| cashout.amount).sum::<Centavos>();
        self.ledger.claims_are_covered()
            && self.deficit() >= Centavos::ZERO
            && self.pending.are_positive()
            && self.pending.total() == self.pending()
            && cashouts == self.reserved_cashout()
            && self.adjustments.disputed() == self.reserved_for_disputes()
    }

    /// Posts the lines that a Record of this group has in the merchant's ledger.
    fn post(&mut self, record: &Record) {
        let Some(merchant) = record.owner.group().map(LedgerId::Merchant) else { return };
        record.entries_of(merchant).for_each(|entry| self.ledger.post(entry.postings()));
    }

    fn apply(&mut self, event: &Event, record: &Record) {
        match event {
            Event::MerchantOpened { id, settings } => self.apply_opening(*id, *settings, record),
            Event::MerchantChanged { settings, .. } => self.apply_change(*settings, record),
            Event::ApiKeyCreated { id, .. } => self.keys.create(*id, event),
            Event::ApiKeyRevoked { id } => self.keys.revoke(*id),
            Event::ApiKeyChanged { id, webhook_url, events } => {
                self.keys.send_webhooks_to(*id, webhook_url.as_deref(), *events);
            }
            Event::WebhookSecretRotated { id, webhook_secret, previous_until } => {
                self.keys.rotate_secret(*id, webhook_secret, *previous_until);
            }
            Event::RecipientRegistered { id, document, .. } => self.recipients.register(*id, *document, record),
            Event::RecipientRegisteredAgain { number, .. } => self.recipients.register_again(*number, record),
            Event::RecipientChanged { number, .. } => self.recipients.set_profile(*number, record),
            Event::BankAccountChanged { number, active } => {
                self.recipients.set_bank_review(*number, active.then_some(BankReview::Pending));
            }
            Event::BankAccountApproved { number } => self.recipients.set_bank_review(*number, None),
            Event::BankAccountRejected { number, .. } => {
                self.recipients.set_bank_review(*number, Some(BankReview::Rejected));
            }
            Event::RecipientSubmitted { number } => self.recipients.set_status(*number, RecipientStatus::Pending),
            Event::RecipientApproved { number } => self.recipients.set_status(*number, RecipientStatus::Active),
            Event::RecipientRejected { number, .. } => self.recipients.set_status(*number, RecipientStatus::Rejected),
            Event::RecipientFrozen { number, .. } => self.recipients.set_frozen(*number, true),
            Event::RecipientUnfrozen { number, .. } => self.recipients.set_frozen(*number, false),
            Event::ChargeOpened { charge, terms, card, expires_at, rail } => {
                self.keep_open(*charge, terms, card.as_ref(), *expires_at, rail.as_ref(), record);
            }
            Event::PixRegistered { charge, .. } => self.keep_registered(*charge),
            Event::CardAuthorized { charge, brand } => self.keep_authorized(*charge, *brand, record),
            Event::CardCaptured { charge, seller, seller_due, .. } => self.apply_capture(*charge, seller, *seller_due),
            Event::CardRefused { charge, .. } | Event::PixPaid { charge, .. } | Event::PixCancelled { charge, .. } => {
                self.open_charges.remove(*charge);
            }
            Event::Matured { dues, .. } => self.apply_maturity(dues),
            Event::AcquirerSettled { batch, lines } => self.apply_batch(batch, lines.len()),
            Event::PlanCreated { id, plan } => self.plans.create(*id, plan),
            Event::PlanDisabled { id } => self.plans.disable(*id),
            Event::SubscriptionCreated { id, terms, standing } => {
                self.subscriptions.begin(*id, terms, standing, record.ordinal);
            }
            Event::SubscriptionBilled { id, standing, .. }
            | Event::SubscriptionAdvanced { id, standing, .. }
            | Event::SubscriptionPaused { id, standing }
            | Event::SubscriptionResumed { id, standing }
            | Event::SubscriptionCardChanged { id, standing }
            | Event::SubscriptionCancelled { id, standing } => self.subscriptions.set(*id, standing),
            Event::CardDeleted { id } => self.deleted_cards.note(*id, record.effective_at),
            Event::CashoutCreated { id, amount, fee, .. } => self.hold_cashout(*id, *amount, *fee, record),
            Event::CashoutProcessed { id, .. } | Event::CashoutFailed { id, .. } => self.cashouts.remove(*id),
            Event::RefundRequested { id, charge, amount, take_back, window_ends, remembered_until } => {
                let until = remembered_until.unwrap_or(*window_ends);
                self.adjustments.ask(record.ordinal, *id, (*charge, until), *amount, take_back);
            }
            Event::RefundRejected { id, .. } => self.adjustments.reject(*id),
            Event::RefundApproved { .. } => self.apply_refund(event, record),
            Event::RefundFailed { .. } => self.apply_failed_refund(event),
            Event::PayerRepaid { id, .. } | Event::AcceptanceConfirmed { id, .. } => self.adjustments.sent(*id),
            Event::PayerNotRepaid { id, .. } => self.adjustments.refuse(*id),
            Event::RailTried { id, .. } => self.note_tried(*id, record.effective_at),
            Event::LatePixReceived { .. } => self.apply_late_pix(event, record),
            Event::DisputeOpened { .. } => self.apply_dispute(event, record),
            Event::DisputeAccepted { .. } => self.apply_acceptance(event, record),
            Event::DisputeReleased { id, amount, to_pending, seller_due, .. } => {
                self.apply_release(*id, *amount, *to_pending, *seller_due);
            }
            Event::DisputeReversed { .. } => self.apply_reversal(event, record),
            Event::WriteOffRequested { .. } | Event::WriteOffRejected { .. } | Event::DeficitWrittenOff { .. } => {
                OpenWriteOff::follow(&mut self.write_off, event, record);
            }
            Event::AdjustmentRequested { .. } | Event::AdjustmentRejected { .. } | Event::AdjustmentCreated { .. } => {
                adjustment::follow(&mut self.goodwill, event, record)
            }
            // Only accounts move, or nothing does.
            Event::DeficitRecovered { .. }
            | Event::CardUnanswered { .. }
            | Event::CaseDeferred { .. }
            | Event::DeferredCaseEnded { .. }
            | Event::CardStored { .. }
            | Event::RepaymentReversed { .. }
            | Event::RailWordAsked { .. }
            | Event::RailWordGiven { .. }
            | Event::CashoutReturned { .. }
            | Event::ClockMoved { .. }
            | Event::ChartOfAccountsSet { .. }
            | Event::PersonalDataRead { .. }
            | Event::RegistrationRead { .. }
            | Event::PersonLookedUp { .. }
            | Event::ErasureRequested { .. }
            | Event::KeysErased { .. }
            | Event::ErasureWithdrawn { .. }
            | Event::NoteWritten { .. }
            | Event::MetadataChanged { .. }
            | Event::FiscalDocumentLinked { .. }
            | Event::FiscalDocumentUnlinked { .. }
            | Event::ReferenceReserved { .. }
            | Event::ApprovalAsked { .. }
            | Event::AcquirerBatchBooked { .. }
            | Event::AcquirerUnexplained { .. }
            | Event::AcquirerFileSent { .. }
            | Event::AcquirerFileRejected { .. }
            | Event::PeriodCloseRequested { .. }
            | Event::PeriodClosed { .. }
            | Event::HouseEntryRequested { .. }
            | Event::HouseEntryApproved { .. }
            | Event::HouseEntryRejected { .. } => {}
            // Decided by recipients.
            Event::WithdrawalRequested { .. }
            | Event::WithdrawalApproved { .. }
            | Event::WithdrawalPaid { .. }
            | Event::WithdrawalRejected { .. }
            | Event::WithdrawalReturned { .. }
            | Event::WithdrawalReturnRequested { .. }
            | Event::WithdrawalReturnRejected { .. }
            | Event::SplitsAnticipated { .. }
            | Event::ClawbackRecovered { .. }
            | Event::ClawbackWrittenOff { .. } => {}
        }
    }
}
