//! A merchant's books: its commands, its state, and the two matches that lead to the leaves.

mod account;
mod card;
mod maturity;
mod open_charges;
mod pix;
mod sections;
mod sub_recipients;

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use crate::event::{CardFace, CardRefusal, Event, SellerPart, Split, Terms};
use crate::fees::{Commission, PaymentMethod, Settings};
use crate::id::{Fingerprint, GroupNumber, IdKey, ObjectId};
use crate::money::Centavos;
use crate::personal::Sealed;
use crate::record::{Decision, Record};
use crate::rejection::Rejection;
use crate::section::Sums;
use crate::time::Timestamp;

use open_charges::OpenCharges;
use sections::{ApiKeys, Recipients};

pub use account::{ApiKey, PreviousSecret, SECRET_OVERLAP_MS};
pub use sub_recipients::{Recipient, RecipientStatus};

/// A part of a charge as the caller names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitOrder {
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
        splits: Vec<SplitOrder>,
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
        splits: Vec<SplitOrder>,
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
    /// The ordinal of the merchant's Record that opened it; none when a snapshot of the first builds was read.
    #[n(3)]
    pub opened: Option<u64>,
}

/// How long a card charge may wait for its acquirer before a reconciliation asks, milliseconds.
pub const RECONCILE_AFTER_MS: i64 = 60_000;

/// All that a merchant's decisions need. It grows with recipients, keys, open charges and the minutes that wait to fall due,
/// never with history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MerchantState {
    id: Option<ObjectId>,
    settings: Settings,
    profile: Sealed,
    keys: ApiKeys,
    recipients: Recipients,
    open_charges: OpenCharges,
    pending: Sums,
    acquirer_due: Sums,
    available: Centavos,
    deficit: Centavos,
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
            Command::OpenCard { charge, amount, method, installments, splits, card, payer } => {
                let terms = self.terms(amount, method, installments, &splits, ids)?;
                Ok(Decision {
                    events: vec![Event::ChargeOpened { charge, terms, card: Some(card), expires_at: None }],
                    personal: Some(payer),
                })
            }
            Command::CaptureCard { charge, acquirer_mdr } => self.capture_card(charge, acquirer_mdr, now),
            Command::RefuseCard { charge, refusal } => {
                let open = self.open_charge(charge, true)?;
                let (opened, method) = (open.opened, Some(open.terms.method));
                Ok(Decision::of(Event::CardRefused { charge, refusal, opened, method }))
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
            Command::ConfirmPix { charge, end_to_end_id } => self.confirm_pix(charge, end_to_end_id),
            Command::CancelPix { charge } => self.cancel_pix(charge),
        }
    }

    /// Applies one of the merchant's own Records. From here on it must succeed.
    pub fn evolve(&mut self, record: &Record) {
        for event in &record.events {
            self.apply(event, record);
        }
    }

    /// Counts a recipient's Record. In this release no Record of a recipient raises an account of the merchant.
    pub fn receive(&mut self, _record: &Record) {}

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

    /// Money that falls due later, centavos.
    pub fn pending(&self) -> Centavos {
        self.pending.total()
    }

    /// Money that can be paid out, centavos.
    pub fn available(&self) -> Centavos {
        self.available
    }

    /// What the merchant owes, centavos.
    pub fn deficit(&self) -> Centavos {
        self.deficit
    }

    /// True when no claim on the platform is negative, and no debt either.
    pub fn is_sound(&self) -> bool {
        let zero = Centavos::ZERO;
        let are_positive = self.pending.are_positive() && self.acquirer_due.are_positive();
        self.available >= zero && self.deficit >= zero && are_positive
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
    pub fn open_charges(&self) -> &BTreeMap<ObjectId, OpenCharge> {
        self.open_charges.by_id()
    }

    /// The open charges whose rail is to be asked by `now`, oldest first.
    pub fn needing_attention(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &OpenCharge)> {
        self.open_charges.needing_attention(now)
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
            }),
            Event::RecipientRegisteredAgain { number } => {
                let profile = record.personal.clone().unwrap_or_default();
                self.recipients.change(*number, |recipient| {
                    recipient.status = RecipientStatus::Draft;
                    recipient.profile = profile;
                });
            }
            Event::RecipientSubmitted { number } => self.set_recipient_status(*number, RecipientStatus::Pending),
            Event::RecipientApproved { number } => self.set_recipient_status(*number, RecipientStatus::Active),
            Event::RecipientRejected { number, .. } => self.set_recipient_status(*number, RecipientStatus::Rejected),
            Event::ChargeOpened { charge, terms, card, expires_at } => {
                let attention_at = expires_at.unwrap_or(record.effective_at.plus_ms(RECONCILE_AFTER_MS));
                let (terms, card, opened) = (terms.clone(), card.clone(), Some(record.ordinal));
                self.open_charges.insert(*charge, OpenCharge { terms, attention_at, card, opened });
            }
            Event::CardCaptured { charge, terms, acquirer_mdr, seller, seller_due, splits_due, .. } => {
                self.open_charges.remove(*charge);
                self.pending.add(*seller_due, seller.raised);
                self.acquirer_due.add(*splits_due, terms.amount - *acquirer_mdr);
                self.draw(seller);
            }
            Event::CardRefused { charge, .. } | Event::PixCancelled { charge, .. } => self.open_charges.remove(*charge),
            Event::CardUnanswered { .. }
            | Event::ClockMoved { .. }
            | Event::CashoutCreated { .. }
            | Event::CashoutProcessed { .. }
            | Event::CashoutFailed { .. }
            | Event::RefundRequested { .. }
            | Event::RefundRejected { .. }
            | Event::RefundApproved { .. }
            | Event::PayerRepaid { .. }
            | Event::DisputeOpened { .. }
            | Event::DisputeAccepted { .. }
            | Event::DisputeReleased { .. }
            | Event::LatePixReceived { .. } => {}
            // Decided by recipients.
            Event::WithdrawalRequested { .. }
            | Event::WithdrawalApproved { .. }
            | Event::WithdrawalPaid { .. }
            | Event::WithdrawalRejected { .. }
            | Event::WithdrawalReturned { .. }
            | Event::SplitsAnticipated { .. }
            | Event::ClawbackRecovered { .. } => {}
            Event::PixPaid { charge, seller, .. } => {
                self.open_charges.remove(*charge);
                self.available += seller.raised;
                self.draw(seller);
            }
            Event::Matured { dues, .. } => {
                for due in dues {
                    self.pending.take(due.minute, due.amount);
                    self.available += due.amount;
                }
            }
            Event::AcquirerPaid { dues } => {
                dues.iter().for_each(|due| self.acquirer_due.take(due.minute, due.amount));
            }
            Event::DeficitRecovered { amount } => {
                self.available -= *amount;
                self.deficit -= *amount;
            }
        }
    }

    /// A charge's terms, with the ladder of refusals of interface 2.4 and 7: each rung looks at every split before the next does.
    fn terms(
        &self,
        amount: Centavos,
        method: PaymentMethod,
        installments: u8,
        orders: &[SplitOrder],
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
        let splits_total = splits.iter().map(|split| split.amount).sum::<Centavos>();
        if splits_total >= amount {
            return Err(Rejection::SplitsReachTotal);
        }
        let commission = Commission::quote(&self.settings, method, installments, amount, amount - splits_total);
        let settlement_days = self.settings.options.card_settlement_days;
        let terms = Terms { amount, method, installments, splits, commission, settlement_days };
        if self.settings.options.split_guard_net && !orders.is_empty() && terms.seller_net() < Centavos::ZERO {
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
        let from_available = shortfall.min(self.available);
        SellerPart { raised: net.or_zero(), from_available, to_deficit: shortfall - from_available }
    }

    fn draw(&mut self, seller: &SellerPart) {
        self.available -= seller.from_available;
        self.deficit += seller.to_deficit;
    }
}
