//! A merchant's books: its commands, its state, and the two matches that lead to the leaves.

mod account;
mod adjustments;
mod card;
mod cashout;
mod dispute;
mod maturity;
mod pix;
mod plans;
mod refund;
mod sections;
mod sub_recipients;
mod subscriptions;
mod waiting;

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use crate::account::Account;
use crate::balances::Ledger;
use crate::event::{CardFace, CardRefusal, Event, SellerPart, Split, Terms};
use crate::fees::{Commission, PaymentMethod, Settings};
use crate::id::{Fingerprint, GroupNumber, IdKey, IdMap, LedgerId, ObjectId};
use crate::money::Centavos;
use crate::personal::Sealed;
use crate::record::{Decision, Record};
use crate::recurrence::{CycleOutcome, PlanTerms};
use crate::rejection::Rejection;
use crate::section::Sums;
use crate::time::Timestamp;

use adjustments::Adjustments;
use plans::Plans;
use sections::{ApiKeys, Recipients};
use subscriptions::Subscriptions;
use waiting::{Waiting, Waits};

pub use account::{ApiKey, PreviousSecret, SECRET_OVERLAP_MS};
pub use adjustments::Repayment;
pub use cashout::{CashoutOutcome, OpenCashout};
pub use dispute::OpenDispute;
pub use plans::Plan;
pub use refund::{CARD_WINDOW_DAYS, ChargeFacts, PIX_WINDOW_DAYS, RequestRefund};
pub use sub_recipients::{BankReview, Recipient, RecipientStatus};
pub use subscriptions::{Subscribe, Subscription, SubscriptionChange};

/// A part of a charge as the caller names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRequest {
    /// The recipient's id.
    pub recipient: ObjectId,
    /// Centavos, above zero.
    pub amount: Centavos,
}

/// What can be asked of a merchant. Shapes and ranges are checked at the door; rules are checked here.
#[derive(Clone, Debug)]
pub enum MerchantCommand {
    /// Open the account group.
    Open {
        /// The merchant's id.
        id: ObjectId,
        /// What the operator configured.
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
    },
    /// Make an API key.
    CreateApiKey {
        /// The key's id.
        id: ObjectId,
        /// SHA-256 of the key.
        digest: [u8; 32],
        /// Where webhooks go.
        webhook_url: Option<String>,
        /// The webhook secret, sealed.
        webhook_secret: Vec<u8>,
    },
    /// Revoke an API key; doing it again changes nothing.
    RevokeApiKey {
        /// The key's id.
        id: ObjectId,
    },
    /// Say where an API key's webhooks go; none for nowhere.
    ChangeApiKey {
        /// The key's id.
        id: ObjectId,
        /// Where webhooks go.
        webhook_url: Option<String>,
    },
    /// Replace an API key's webhook secret; the one before signs beside it for 24 hours.
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
        /// Why.
        notes: String,
    },
    /// Replace a recipient's profile by one that was merged from the standing one and what was sent.
    ChangeRecipient {
        /// The recipient.
        id: ObjectId,
        /// The profile that was merged into. No two are sealed to the same bytes, so that a change that came between is noticed.
        standing: Sealed,
        /// The new profile, whole.
        profile: Sealed,
        /// True when its bank account is another than the standing one's.
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
        /// Who pays.
        payer: Sealed,
    },
    /// The acquirer captured a card charge.
    CaptureCard {
        /// Which.
        charge: ObjectId,
        /// What the acquirer keeps.
        acquirer_mdr: Centavos,
    },
    /// The acquirer refused a card charge.
    RefuseCard {
        /// Which.
        charge: ObjectId,
        /// Why.
        refusal: CardRefusal,
    },
    /// The acquirer has not answered in time.
    LeaveUnanswered {
        /// Which.
        charge: ObjectId,
    },
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
        /// Who pays.
        payer: Sealed,
    },
    /// The payer paid a PIX charge.
    ConfirmPix {
        /// Which.
        charge: ObjectId,
        /// End-to-end id of the payment.
        end_to_end_id: String,
    },
    /// A PIX charge expired or was cancelled; the rail says it is unpaid.
    CancelPix {
        /// Which.
        charge: ObjectId,
    },
    /// Create a cashout (interface 2.6): the intent, before the institution is called. That the transaction is new is looked up
    /// before.
    CreateCashout {
        /// Its id.
        id: ObjectId,
        /// `merchant_transaction_id`: a UUID.
        transaction: [u8; 16],
        /// Keyed digest of account and `merchant_transaction_id`.
        transaction_key: Fingerprint,
        /// Gross, centavos.
        amount: Centavos,
        /// Where it goes.
        destination: Sealed,
    },
    /// The institution said what became of a cashout.
    SettleCashout {
        /// Which.
        id: ObjectId,
        /// What it said.
        outcome: CashoutOutcome,
    },
    /// The payer paid a PIX charge that had ended.
    ReceiveLatePix {
        /// Which.
        charge: ObjectId,
        /// How much, centavos.
        amount: Centavos,
        /// End-to-end id of the payment.
        end_to_end_id: String,
    },
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
        /// Why.
        notes: String,
    },
    /// The rail sent a refund, an accepted dispute or a late payment back to the payer.
    ConfirmRepayment {
        /// Which; a late payment has its charge's id.
        id: ObjectId,
    },
    /// A payer's bank wants a charge back.
    OpenDispute(Box<OpenDispute>),
    /// Accept a dispute: the seller bears it.
    AcceptDispute {
        /// The dispute.
        id: ObjectId,
        /// Its charge.
        facts: Box<ChargeFacts>,
    },
    /// Release a dispute: the seller keeps the money.
    ReleaseDispute {
        /// The dispute.
        id: ObjectId,
        /// Its charge.
        facts: Box<ChargeFacts>,
    },
    /// Create a plan (interface 2.12).
    CreatePlan {
        /// Its id.
        id: ObjectId,
        /// What it says.
        plan: PlanTerms,
    },
    /// Take no subscriptions of a plan any more; doing it again changes nothing.
    DisablePlan {
        /// Which.
        id: ObjectId,
    },
    /// Keep what the acquirer calls a card.
    StoreCard {
        /// The `card_token`.
        id: ObjectId,
        /// What may be known of the card.
        face: CardFace,
        /// What the acquirer calls it, sealed under the master key.
        token: Vec<u8>,
        /// Whose it is.
        customer: Sealed,
    },
    /// Begin a subscription of a plan.
    Subscribe(Subscribe),
    /// Charge a subscription, if it is due: the intent, before the acquirer is called.
    BillSubscription {
        /// Which.
        id: ObjectId,
        /// The id of the charge.
        charge: ObjectId,
        /// Who pays.
        payer: Sealed,
    },
    /// Pause, resume or cancel a subscription.
    ChangeSubscription {
        /// Which.
        id: ObjectId,
        /// What is wanted.
        change: SubscriptionChange,
    },
}

/// A charge that waits for its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OpenCharge {
    /// What it moves once paid.
    #[n(0)]
    pub terms: Terms,
    /// When its rail is asked about it: expiry of a PIX code, 60 s after the intent of a card charge.
    #[n(1)]
    pub attention_at: Timestamp,
    /// The card; none for PIX.
    #[n(2)]
    pub card: Option<CardFace>,
    /// The ordinal of the merchant's Record that opened it.
    #[n(3)]
    pub opened: u64,
}

impl Waits for OpenCharge {
    fn attention_at(&self) -> Timestamp {
        self.attention_at
    }

    fn opened(&self) -> u64 {
        self.opened
    }
}

/// How long a card charge may wait for its acquirer before a reconciliation asks, milliseconds.
pub const RECONCILE_AFTER_MS: i64 = 60_000;

/// All that a merchant's decisions need. It grows with recipients, keys, plans, open charges and cashouts, subscriptions that go on, what
/// can still change of paid charges, and the minutes that wait to fall due, never with history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MerchantState {
    id: Option<ObjectId>,
    settings: Settings,
    profile: Sealed,
    keys: ApiKeys,
    recipients: Recipients,
    open_charges: Waiting<OpenCharge>,
    cashouts: Waiting<OpenCashout>,
    plans: Plans,
    subscriptions: Subscriptions,
    ledger: Ledger,
    /// What of the ledger's Pending falls due when: an account has one sum for all minutes.
    pending: Sums,
    /// What the acquirer owes the platform for this merchant's charges, and when it pays.
    acquirer_due: Sums,
    adjustments: Adjustments,
}

impl MerchantState {
    /// Decides a command; changes nothing. `group` is this merchant's, `ids` makes a new recipient's id.
    pub fn decide(
        &self,
        command: MerchantCommand,
        group: GroupNumber,
        now: Timestamp,
        ids: &IdKey,
    ) -> Result<Decision, Rejection> {
        use MerchantCommand as Command;
        match command {
            Command::Open { id, settings, profile } => return self.open(id, settings, profile),
            _ if self.id.is_none() => return Err(Rejection::MerchantNotFound),
            _ => {}
        }
        match command {
            Command::Open { .. } => Err(Rejection::MerchantExists),
            Command::Change { settings, profile } => {
                Ok(Decision { events: vec![Event::MerchantChanged { settings }], personal: profile })
            }
            Command::CreateApiKey { id, digest, webhook_url, webhook_secret } => {
                Ok(Decision::of(Event::ApiKeyCreated { id, digest, webhook_url, webhook_secret }))
            }
            Command::RevokeApiKey { id } => self.revoke_api_key(id),
            Command::ChangeApiKey { id, webhook_url } => self.change_api_key(id, webhook_url),
            Command::RotateWebhookSecret { id, webhook_secret } => self.rotate_webhook_secret(id, webhook_secret, now),
            Command::RegisterRecipient { random, document, profile } => {
                self.register_recipient(document, profile, |number| ids.recipient(group, number, now, random))
            }
            Command::SubmitRecipient { id } => self.submit_recipient(id, ids),
            Command::ApproveRecipient { id } => self.approve_recipient(id, ids),
            Command::RejectRecipient { id, notes } => self.reject_recipient(id, notes, ids),
            Command::ChangeRecipient { id, standing, profile, bank_account_changed } => {
                self.change_recipient(id, &standing, profile, bank_account_changed, ids)
            }
            Command::OpenCard { charge, amount, method, installments, splits, card, payer } => {
                let terms = self.terms(amount, method, installments, &splits, ids)?;
                Ok(Decision {
                    events: vec![Event::ChargeOpened { charge, terms, card: Some(card), expires_at: None }],
                    personal: Some(payer),
                })
            }
            Command::CaptureCard { charge, acquirer_mdr } => {
                let captured = self.capture_card(charge, acquirer_mdr, now)?;
                Ok(self.advancing(captured, charge, CycleOutcome::Paid))
            }
            Command::RefuseCard { charge, refusal } => {
                let open = self.open_charge(charge, true)?;
                let (opened, method) = (open.opened, open.terms.method);
                let refused = Decision::of(Event::CardRefused { charge, refusal, opened, method });
                Ok(self.advancing(refused, charge, CycleOutcome::Refused))
            }
            Command::LeaveUnanswered { charge } => {
                self.open_charge(charge, true)?;
                Ok(Decision::of(Event::CardUnanswered { charge }))
            }
            Command::OpenPix { charge, amount, splits, expires_at, payer } => {
                let terms = self.terms(amount, PaymentMethod::Pix, 1, &splits, ids)?;
                Ok(Decision {
                    events: vec![Event::ChargeOpened { charge, terms, card: None, expires_at: Some(expires_at) }],
                    personal: Some(payer),
                })
            }
            Command::ConfirmPix { charge, end_to_end_id } => {
                let paid = self.confirm_pix(charge, end_to_end_id)?;
                Ok(self.advancing(paid, charge, CycleOutcome::Paid))
            }
            Command::CancelPix { charge } => {
                let cancelled = self.cancel_pix(charge)?;
                Ok(self.advancing(cancelled, charge, CycleOutcome::Unpaid))
            }
            Command::CreatePlan { id, plan } => self.create_plan(id, plan),
            Command::DisablePlan { id } => self.disable_plan(id),
            Command::StoreCard { id, face, token, customer } => {
                Ok(Decision { events: vec![Event::CardStored { id, face, token }], personal: Some(customer) })
            }
            Command::Subscribe(order) => self.subscribe(order, now, ids),
            Command::BillSubscription { id, charge, payer } => self.bill_subscription(id, charge, payer, now),
            Command::ChangeSubscription { id, change } => self.change_subscription(id, change, now),
            Command::CreateCashout { id, transaction, transaction_key, amount, destination } => {
                let fee = self.cashout_fee(amount)?;
                let events = vec![Event::CashoutCreated { id, transaction, transaction_key, amount, fee }];
                Ok(Decision { events, personal: Some(destination) })
            }
            Command::SettleCashout { id, outcome } => self.settle_cashout(id, outcome),
            Command::ReceiveLatePix { charge, amount, end_to_end_id } => {
                self.receive_late_pix(charge, amount, end_to_end_id)
            }
            Command::RequestRefund(order) => self.request_refund(*order, now, ids),
            Command::ApproveRefund { id, facts } => self.approve_refund(id, &facts, now),
            Command::RejectRefund { id, notes } => self.reject_refund(id, notes),
            Command::ConfirmRepayment { id } => Ok(self.repaid(id)),
            Command::OpenDispute(order) => self.open_dispute(*order, now),
            Command::AcceptDispute { id, facts } => self.accept_dispute(id, &facts),
            Command::ReleaseDispute { id, facts } => self.release_dispute(id, &facts, now),
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

    /// Counts a recipient's Record: what it paid back of a debt.
    pub fn receive(&mut self, record: &Record) {
        self.post(record);
        for event in &record.events {
            if let Event::ClawbackRecovered { debts } = event {
                debts.iter().for_each(|debt| self.come_back(debt));
            }
        }
    }

    /// The merchant's id; none before it was opened.
    pub fn id(&self) -> Option<ObjectId> {
        self.id
    }

    /// What the operator configured.
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

    /// What the merchant owes, centavos.
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

    /// What is to be sent back to payers by `now`, oldest first, each under the id of its refund, its dispute, or the charge that was paid
    /// too late.
    pub fn repayments(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, Repayment)> {
        self.adjustments.repayments(now)
    }

    /// True when no claim on the platform and no debt is below zero, and what is kept by due minute, by
    /// cashout and by dispute sums to what the accounts hold.
    pub fn is_sound(&self) -> bool {
        let cashouts = self.cashouts.by_id().values().map(|cashout| cashout.amount).sum::<Centavos>();
        self.ledger.claims_are_covered()
            && self.deficit() >= Centavos::ZERO
            && self.pending.are_positive()
            && self.acquirer_due.are_positive()
            && self.pending.total() == self.pending()
            && cashouts == self.reserved_cashout()
            && self.adjustments.disputed() == self.reserved_for_disputes()
    }

    /// The API keys, by id.
    pub fn api_keys(&self) -> &BTreeMap<ObjectId, ApiKey> {
        self.keys.by_id()
    }

    /// The recipients; number n stands at n − 1.
    pub fn recipients(&self) -> &[Recipient] {
        self.recipients.list()
    }

    /// The recipient registered under a document's fingerprint.
    pub fn recipient_by_document(&self, document: Fingerprint) -> Option<&Recipient> {
        self.recipients.number_of(document).and_then(|number| self.recipient(number))
    }

    /// The charges that wait for their outcome, by txid.
    pub fn open_charges(&self) -> &IdMap<ObjectId, OpenCharge> {
        self.open_charges.by_id()
    }

    /// The open charges whose rail is to be asked by `now`, about the oldest first.
    pub fn needing_attention(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &OpenCharge)> {
        self.open_charges.needing_attention(now)
    }

    /// Posts the lines that a Record of this group has in the merchant's ledger.
    fn post(&mut self, record: &Record) {
        let Some(merchant) = record.owner.group().map(LedgerId::Merchant) else { return };
        record.entries_of(merchant).for_each(|entry| self.ledger.post(entry.postings()));
    }

    fn apply(&mut self, event: &Event, record: &Record) {
        match event {
            Event::MerchantOpened { id, settings } => {
                self.id = Some(*id);
                self.settings = *settings;
                self.profile = record.personal.clone().unwrap_or_default();
            }
            Event::MerchantChanged { settings } => {
                self.settings = *settings;
                if let Some(profile) = &record.personal {
                    self.profile = profile.clone();
                }
            }
            Event::ApiKeyCreated { id, digest, webhook_url, webhook_secret } => {
                let key = ApiKey {
                    digest: *digest,
                    webhook_url: webhook_url.clone(),
                    webhook_secret: webhook_secret.clone(),
                    revoked: false,
                    previous_secret: None,
                };
                self.keys.insert(*id, key);
            }
            Event::ApiKeyRevoked { id } => self.keys.change(*id, |key| key.revoked = true),
            Event::ApiKeyChanged { id, webhook_url } => {
                self.keys.change(*id, |key| key.webhook_url.clone_from(webhook_url));
            }
            Event::WebhookSecretRotated { id, webhook_secret, previous_until } => self.keys.change(*id, |key| {
                let sealed = std::mem::replace(&mut key.webhook_secret, webhook_secret.clone());
                key.previous_secret = Some(PreviousSecret { sealed, until: *previous_until });
            }),
            Event::RecipientRegistered { id, document, .. } => self.recipients.push(Recipient {
                id: *id,
                status: RecipientStatus::Draft,
                document: *document,
                profile: record.personal.clone().unwrap_or_default(),
                bank_review: None,
            }),
            Event::RecipientRegisteredAgain { number, .. } => {
                let profile = record.personal.clone().unwrap_or_default();
                self.recipients.change(*number, |recipient| {
                    recipient.status = RecipientStatus::Draft;
                    recipient.profile = profile;
                });
            }
            Event::RecipientChanged { number, .. } => {
                let profile = record.personal.clone().unwrap_or_default();
                self.recipients.change(*number, |recipient| recipient.profile = profile);
            }
            Event::BankAccountChanged { number, active } => {
                self.set_bank_review(*number, active.then_some(BankReview::Pending));
            }
            Event::BankAccountApproved { number } => self.set_bank_review(*number, None),
            Event::BankAccountRejected { number, .. } => self.set_bank_review(*number, Some(BankReview::Rejected)),
            Event::RecipientSubmitted { number } => self.set_recipient_status(*number, RecipientStatus::Pending),
            Event::RecipientApproved { number } => self.set_recipient_status(*number, RecipientStatus::Active),
            Event::RecipientRejected { number, .. } => self.set_recipient_status(*number, RecipientStatus::Rejected),
            Event::ChargeOpened { charge, terms, card, expires_at } => {
                let attention_at = expires_at.unwrap_or(record.effective_at.plus_ms(RECONCILE_AFTER_MS));
                let (terms, card, opened) = (terms.clone(), card.clone(), record.ordinal);
                self.open_charges.insert(*charge, OpenCharge { terms, attention_at, card, opened });
            }
            Event::CardCaptured { charge, terms, acquirer_mdr, seller, seller_due, splits_due, .. } => {
                self.open_charges.remove(*charge);
                self.pending.add(*seller_due, seller.raised);
                self.acquirer_due.add(*splits_due, terms.amount - *acquirer_mdr);
            }
            Event::CardRefused { charge, .. } | Event::PixPaid { charge, .. } | Event::PixCancelled { charge, .. } => {
                self.open_charges.remove(*charge);
            }
            Event::PlanCreated { id, plan } => {
                self.plans.push(Plan { id: *id, terms: plan.clone(), enabled: true });
            }
            Event::PlanDisabled { id } => self.plans.disable(*id),
            Event::SubscriptionCreated { id, terms, standing } => {
                let (terms, standing, begun) = (terms.clone(), *standing, record.ordinal);
                self.subscriptions.insert(*id, Subscription { terms, standing, begun });
            }
            Event::SubscriptionBilled { id, standing, .. }
            | Event::SubscriptionAdvanced { id, standing, .. }
            | Event::SubscriptionPaused { id, standing }
            | Event::SubscriptionResumed { id, standing }
            | Event::SubscriptionCancelled { id, standing } => self.subscriptions.set(*id, *standing),
            Event::CashoutCreated { id, amount, fee, .. } => {
                let (attention_at, opened) = (record.effective_at, record.ordinal);
                self.cashouts.insert(*id, OpenCashout { amount: *amount, fee: *fee, attention_at, opened });
            }
            Event::CashoutProcessed { id, .. } | Event::CashoutFailed { id, .. } => self.cashouts.remove(*id),
            // Only accounts move, or nothing does.
            Event::DeficitRecovered { .. }
            | Event::CardUnanswered { .. }
            | Event::CardStored { .. }
            | Event::ClockMoved { .. } => {}
            Event::RefundRequested { .. }
            | Event::RefundRejected { .. }
            | Event::RefundApproved { .. }
            | Event::PayerRepaid { .. }
            | Event::DisputeOpened { .. }
            | Event::DisputeAccepted { .. }
            | Event::DisputeReleased { .. }
            | Event::LatePixReceived { .. } => self.adjust(event, record),
            // Decided by recipients.
            Event::WithdrawalRequested { .. }
            | Event::WithdrawalApproved { .. }
            | Event::WithdrawalPaid { .. }
            | Event::WithdrawalRejected { .. }
            | Event::WithdrawalReturned { .. }
            | Event::SplitsAnticipated { .. }
            | Event::ClawbackRecovered { .. } => {}
            Event::Matured { dues, .. } => dues.iter().for_each(|due| self.pending.take(due.minute, due.amount)),
            Event::AcquirerPaid { dues } => {
                dues.iter().for_each(|due| self.acquirer_due.take(due.minute, due.amount));
            }
        }
    }

    /// A charge's terms, with the ladder of refusals of interface 2.4 and 7: each rung looks at every split before the next does.
    fn terms(
        &self,
        amount: Centavos,
        method: PaymentMethod,
        installments: u8,
        orders: &[SplitRequest],
        ids: &IdKey,
    ) -> Result<Terms, Rejection> {
        if !orders.is_empty() && !self.settings.split_enabled {
            return Err(Rejection::SplitNotEnabled);
        }
        let found = orders.iter().enumerate().map(|(index, order)| {
            self.find_recipient(order.recipient, ids).ok_or(Rejection::SplitRecipientNotFound { index })
        });
        let found = found.collect::<Result<Vec<_>, _>>()?;
        if let Some(index) = found.iter().position(|(_, recipient)| recipient.status != RecipientStatus::Active) {
            return Err(Rejection::SplitRecipientNotActive { index });
        }
        let parts = found.iter().zip(orders);
        let splits: Vec<_> =
            parts.map(|((number, _), order)| Split { recipient: *number, amount: order.amount }).collect();
        self.quote(amount, None, method, installments, splits)
    }

    /// What a charge of these splits costs now. An initial fee comes on top of `amount`.
    fn quote(
        &self,
        amount: Centavos,
        initial_fee: Option<Centavos>,
        method: PaymentMethod,
        installments: u8,
        splits: Vec<Split>,
    ) -> Result<Terms, Rejection> {
        let splits_total = splits.iter().map(|split| split.amount).sum::<Centavos>();
        if splits_total >= amount {
            return Err(Rejection::SplitsReachTotal);
        }
        let amount = amount + initial_fee.unwrap_or_default();
        let commission = Commission::quote(&self.settings, method, installments, amount, amount - splits_total);
        let settlement_days = self.settings.options.card_settlement_days;
        let terms = Terms { amount, method, installments, splits, commission, settlement_days, initial_fee };
        if self.settings.options.split_guard_net && !terms.splits.is_empty() && terms.seller_net() < Centavos::ZERO {
            return Err(Rejection::SplitsExceedNet);
        }
        Ok(terms)
    }

    /// An open charge of the kind asked for.
    fn open_charge(&self, charge: ObjectId, card: bool) -> Result<&OpenCharge, Rejection> {
        let open = self.open_charges.get(charge).ok_or(Rejection::ChargeNotPending)?;
        if open.terms.method.is_card() != card {
            return Err(Rejection::ChargeNotPending);
        }
        Ok(open)
    }

    /// What the seller's part of a paid charge does: a negative net is drawn from Available, then Deficit.
    fn seller_part(&self, net: Centavos) -> SellerPart {
        let shortfall = (-net).or_zero();
        let from_available = shortfall.min(self.available());
        SellerPart { raised: net.or_zero(), from_available, to_deficit: shortfall - from_available }
    }
}
