//! Bodies of webhooks: `{event, <object>, timestamp, sequence}` (interface section 6). A body shows
//! its object as of the event's Record, so every try and every later read give the same body.

use std::collections::BTreeMap;

use actors::engine::{Engine, SubscriptionRow};
use ledger::adjustment::Adjustment;
use ledger::anticipation::Anticipation;
use ledger::webhook_events::{AvailableSplits, DecidedRefund, RecipientDebt, WebhookObject};
use ledger::{AdjustmentTarget, Charge, Event, LedgerId, Object, ObjectId, RecipientNumber, Refund, WebhookEventKind};
use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use crate::event::OutboxEvent;
use web::reply::decimal;
use web::views::cashout::CashoutView;
use web::views::charge::{ChargeView, FeeView};
use web::views::dispute::DisputeView;
use web::views::labels::LabelsView;
use web::views::recipient::{document_type, open, recipient_id};
use web::views::refund::{refund_labels, refund_status};
use web::views::subscription::SubscriptionView;
use web::views::withdrawal::{WithdrawalDestinationView, WithdrawalView};
use web::{Result, failed, time};

/// The body of a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "event": "refund.approved",
    "refund": {
        "id": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e", "charge_id": "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e", "amount": 3000,
        "status": "approved",
    },
    "timestamp": "2026-07-01T12:00:00.250Z",
    "sequence": 7,
}))]
pub struct WebhookBody {
    /// What happened, such as `charge.paid`.
    #[schema(example = "charge.paid")]
    pub event: &'static str,
    /// The thing itself, under its own name, as it was then.
    #[serde(flatten)]
    #[schema(value_type = Things)]
    pub object: BTreeMap<&'static str, Box<RawValue>>,
    /// When it happened.
    pub timestamp: String,
    /// Its number among the account's events, from 1.
    #[schema(minimum = 1)]
    pub sequence: u64,
}

/// What webhooks can be about, as they are described: the one that the event's name begins with is
/// there.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is never made: the body has one of these under its name")]
struct Things {
    /// A charge as `GET /api/charges/{txid}` shows it; a paid one with its `id`, a PIX payment with
    /// its `valor`.
    charge: Option<EventCharge>,
    /// A sub-recipient.
    recipient: Option<EventRecipient>,
    /// A refund; one that failed comes with its `charge`, whose `refunded_amount` is lower again.
    refund: Option<EventRefund>,
    /// A withdrawal.
    withdrawal: Option<EventWithdrawal>,
    /// A cashout as `GET /api/cashout/{id}` shows it.
    cashout: Option<CashoutView>,
    /// A dispute as `GET /api/disputes` shows it.
    dispute: Option<DisputeView>,
    /// A subscription; one whose charge was created comes with that `charge`.
    subscription: Option<SubscriptionView>,
    /// Splits that became available.
    split: Option<EventSplits>,
    /// A debt of the recipient; with the recipient.
    debt: Option<EventDebt>,
    /// An anticipation's result.
    anticipation: Option<EventAnticipation>,
    /// Money that the house credited.
    adjustment: Option<EventAdjustment>,
}

impl WebhookBody {
    /// The body of an event.
    pub fn of(engine: &Engine, event: &OutboxEvent) -> Result<Self> {
        let mut object = BTreeMap::from([event.object_body(engine)?]);
        if let WebhookObject::Debt(debt) = event.content.about {
            let (_, debt_json) = raw("debt", event.debt(engine, &debt))?;
            object.insert("debt", debt_json);
        }
        let charge = match &event.content.about {
            // A charge of a subscription, a PIX code with it.
            WebhookObject::Subscription { charge, .. } => *charge,
            // The amount that `charge.refunded` showed is lower again.
            WebhookObject::Refund(refund) if event.content.kind == WebhookEventKind::RefundFailed => {
                Some(refund.charge)
            }
            _ => None,
        };
        if let Some(charge) = charge {
            object.insert("charge", event.charge(engine, charge)?);
        }
        Ok(Self { event: event.content.kind.name(), object, timestamp: time(event.at()), sequence: event.number() })
    }
}

impl OutboxEvent {
    /// The object of the event, as of its Record: its name in the body, and what a GET of it shows.
    fn object_body(&self, engine: &Engine) -> Result<(&'static str, Box<RawValue>)> {
        match &self.content.about {
            WebhookObject::Charge(id) => self.charge(engine, *id).map(|charge| ("charge", charge)),
            WebhookObject::Recipient(number) => raw("recipient", self.recipient(engine, *number)?),
            WebhookObject::Debt(debt) => raw("recipient", self.recipient(engine, debt.recipient)?),
            WebhookObject::Splits(number, splits) => raw("split", self.splits(engine, *number, *splits)?),
            WebhookObject::Refund(refund) => raw("refund", self.refund(engine, refund)?),
            WebhookObject::Withdrawal(id) => raw("withdrawal", self.withdrawal(engine, *id)?),
            WebhookObject::Cashout(id) => raw("cashout", CashoutView::of(engine, &self.as_of(engine, *id)?)),
            WebhookObject::Dispute(id) => raw("dispute", DisputeView::of(engine, &self.as_of(engine, *id)?)),
            WebhookObject::Adjustment(id) => raw("adjustment", EventAdjustment::of(engine, self.as_of(engine, *id)?)),
            WebhookObject::Subscription { id, standing, .. } => {
                let row = engine.known_subscription_through(self.record.owner, *id, self.listed.sequence)?;
                raw(
                    "subscription",
                    SubscriptionView::of(engine, &SubscriptionRow { standing: standing.clone(), ..row }),
                )
            }
            WebhookObject::Anticipation(done) => raw("anticipation", self.anticipation(engine, done)),
        }
    }

    /// An object as it stood after the event's Record.
    fn as_of<T: Object>(&self, engine: &Engine, id: ObjectId) -> Result<T> {
        Ok(engine.known_object_through(id, self.listed.sequence)?)
    }

    fn charge(&self, engine: &Engine, id: ObjectId) -> Result<Box<RawValue>> {
        let charge: Charge = self.as_of(engine, id)?;
        let view = ChargeView::of(engine, &charge)?;
        if self.content.kind != WebhookEventKind::ChargePaid {
            return written(&view);
        }
        let valor = charge.card.is_none().then(|| format!("{}.{:02}", view.amount / 100, view.amount % 100));
        written(&EventCharge { id: view.txid.clone(), valor, charge: view })
    }

    /// The shape of the interface, exactly.
    fn recipient(&self, engine: &Engine, number: RecipientNumber) -> Result<impl Serialize + use<>> {
        let row = engine.recipient_row(self.group, number)?;
        let profile = open(engine, &row, row.profiles.at(self.record.ordinal));
        let kind = self.content.kind;
        let is_registration = matches!(kind, WebhookEventKind::RecipientApproved | WebhookEventKind::RecipientRejected);
        Ok(EventRecipient {
            id: row.id.uuid().to_string(),
            // Only an active recipient's bank account changes, and the recipient stays active.
            status: if kind == WebhookEventKind::RecipientRejected { "rejected" } else { "active" },
            document_type: document_type(&profile.document),
            bank_account: profile.receiving_account().filter(|_| !is_registration).map(WithdrawalDestinationView::of),
            name: profile.name,
            labels: profile.labels.into(),
        })
    }

    fn refund(&self, engine: &Engine, decided: &DecidedRefund) -> Result<impl Serialize + use<>> {
        let refund: Refund = self.as_of(engine, decided.id)?;
        Ok(EventRefund::of(decided, FeeView::of(&refund.commission), refund_labels(engine, &refund).into()))
    }

    fn withdrawal(&self, engine: &Engine, id: ObjectId) -> Result<impl Serialize + use<>> {
        let found = self.as_of(engine, id)?;
        Ok(EventWithdrawal { withdrawal: WithdrawalView::of(engine, &found), recipient_id: self.recipient_id(engine) })
    }

    fn splits(
        &self,
        engine: &Engine,
        number: RecipientNumber,
        available: AvailableSplits,
    ) -> Result<impl Serialize + use<>> {
        let recipient = LedgerId::Recipient(self.group, number);
        let count = match available.count {
            Some(count) => count,
            None => self.fallen_due(engine, recipient)?,
        };
        Ok(EventSplits {
            recipient_id: recipient_id(engine, recipient).map(|id| id.uuid().to_string()),
            count,
            amount_cents: available.amount.0,
            recovered_cents: available.recovered.0,
            payment_id: available.charge.map(|charge| charge.txid()),
            available_at: time(available.at),
        })
    }

    fn debt(&self, engine: &Engine, debt: &RecipientDebt) -> impl Serialize + use<> {
        let recipient = LedgerId::Recipient(self.group, debt.recipient);
        EventDebt {
            recipient_id: recipient_id(engine, recipient).map(|id| id.uuid().to_string()),
            amount_cents: debt.amount.0,
            refund_id: debt.refund.map(|id| id.uuid().to_string()),
            payment_id: debt.charge.map(|charge| charge.txid()),
            debt_cents: debt.left.map(|left| left.0),
        }
    }

    /// Number of splits that fell due with this Record.
    fn fallen_due(&self, engine: &Engine, recipient: LedgerId) -> Result<u64> {
        let mut count = 0;
        for event in &self.record.events {
            let Event::Matured { dues, .. } = event else { continue };
            for due in dues {
                count += engine.splits_fallen_due(recipient, due.minute, self.listed.sequence)?;
            }
        }
        Ok(count)
    }

    fn anticipation(&self, engine: &Engine, done: &Anticipation) -> impl Serialize + use<> {
        EventAnticipation {
            id: done.id.uuid().to_string(),
            recipient_id: self.recipient_id(engine),
            anticipated_count: done.count,
            original_cents: done.original.0,
            fee_cents: done.fee.0,
            net_cents: done.net().0,
            target_days: done.target_days,
            rate_percent: done.rate.as_percent().normalize(),
        }
    }

    /// Id of the recipient who owns the Record.
    fn recipient_id(&self, engine: &Engine) -> Option<String> {
        recipient_id(engine, self.record.owner).map(|id| id.uuid().to_string())
    }
}

/// A sub-recipient, in the shape of the interface, exactly.
#[derive(Serialize, ToSchema)]
struct EventRecipient {
    /// The recipient's id.
    id: String,
    /// `active` or `rejected`.
    #[schema(pattern = "^(active|rejected)$")]
    status: &'static str,
    /// Its name.
    name: String,
    /// `CPF` or `CNPJ`.
    #[schema(pattern = "^(CPF|CNPJ)$")]
    document_type: &'static str,
    /// The account that its money goes to from now on; only of `recipient.bank_account_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bank_account: Option<WithdrawalDestinationView>,
    #[serde(flatten)]
    labels: LabelsView,
}

/// Money that the house credited to the available balance of the account, or of a recipient.
#[derive(Serialize, ToSchema)]
struct EventAdjustment {
    /// Its id, that of its line in the statement.
    id: String,
    /// The recipient that has the money; absent where the account has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient_id: Option<String>,
    /// How much, centavos.
    amount: i64,
    /// Why, in the words of the operations team.
    reason: String,
    /// Reference of the document that proves it.
    reference: String,
}

impl EventAdjustment {
    fn of(engine: &Engine, Adjustment { id, owner, terms, reason, .. }: Adjustment) -> Self {
        let recipient = match (terms.target, owner) {
            (Some(AdjustmentTarget::Recipient(number)), LedgerId::Merchant(group)) => {
                recipient_id(engine, LedgerId::Recipient(group, number))
            }
            _ => None,
        };
        let recipient_id = recipient.map(|id| id.uuid().to_string());
        Self { id: id.uuid().to_string(), recipient_id, amount: terms.amount.0, reason, reference: terms.reference }
    }
}

/// A refund, in the shape of the interface, exactly.
#[derive(Serialize, ToSchema)]
struct EventRefund {
    /// The refund's id.
    id: String,
    /// The charge's `txid`.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    charge_id: String,
    /// Amount of the refund, centavos.
    amount: i64,
    /// `approved`, `rejected` or `failed`.
    #[schema(pattern = "^(approved|rejected|failed)$")]
    status: &'static str,
    /// Why it was rejected, or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<String>,
    /// The fees of the charge that came back with it; where some did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fees: Vec<FeeView>,
    #[serde(flatten)]
    labels: LabelsView,
}

impl EventRefund {
    fn of(refund: &DecidedRefund, fees: Vec<FeeView>, labels: LabelsView) -> Self {
        Self {
            id: refund.id.uuid().to_string(),
            charge_id: refund.charge.txid(),
            amount: refund.amount.0,
            status: refund_status(&refund.decision),
            notes: refund.decision.notes().map(str::to_owned),
            fees,
            labels,
        }
    }
}

/// A withdrawal and whose it is.
#[derive(Serialize, ToSchema)]
struct EventWithdrawal {
    #[serde(flatten)]
    withdrawal: WithdrawalView,
    /// The recipient whose money it is.
    #[schema(required)]
    recipient_id: Option<String>,
}

/// Splits that became available.
#[derive(Serialize, ToSchema)]
struct EventSplits {
    /// The recipient whose money it is.
    #[schema(required)]
    recipient_id: Option<String>,
    /// How many.
    count: u64,
    /// The amount that became available, centavos, without the part that debts took.
    amount_cents: i64,
    /// What debts for splits that were taken back took of them, centavos.
    recovered_cents: i64,
    /// The charge's `txid`, if they are all of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_id: Option<String>,
    /// Since when.
    available_at: String,
}

/// A debt of a recipient that arose, or a payment of it.
#[derive(Serialize, ToSchema)]
struct EventDebt {
    /// The recipient who owes it.
    #[schema(required)]
    recipient_id: Option<String>,
    /// How much arose or was paid, centavos.
    amount_cents: i64,
    /// The refund that took splits back; with `recipient.debt_opened`.
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_id: Option<String>,
    /// The `txid` of its charge; with `recipient.debt_opened`.
    #[serde(skip_serializing_if = "Option::is_none")]
    payment_id: Option<String>,
    /// What the recipient still owes, centavos; with `recipient.debt_paid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    debt_cents: Option<i64>,
}

/// An anticipation's result.
#[derive(Serialize, ToSchema)]
struct EventAnticipation {
    /// The anticipation's id.
    id: String,
    /// The recipient whose money it is.
    #[schema(required)]
    recipient_id: Option<String>,
    /// How many splits.
    anticipated_count: usize,
    /// Their sum, centavos.
    original_cents: i64,
    /// The fee, centavos.
    fee_cents: i64,
    /// What is available now, centavos.
    net_cents: i64,
    /// In how many days.
    target_days: u8,
    /// The rate of the fee, percent.
    #[serde(serialize_with = "decimal")]
    #[schema(value_type = f64, example = 2.38)]
    rate_percent: Decimal,
}

/// The charge of `charge.paid`, of one shape for PIX and cards.
#[derive(Serialize, ToSchema)]
struct EventCharge {
    /// The txid; with `charge.paid`.
    #[schema(required = false, example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e")]
    id: String,
    /// What was paid, in reais with two decimals; with `charge.paid` of PIX.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = r"^[0-9]+\.[0-9]{2}$", example = "100.00")]
    valor: Option<String>,
    #[serde(flatten)]
    charge: ChargeView,
}

fn raw(name: &'static str, object: impl Serialize) -> Result<(&'static str, Box<RawValue>)> {
    written(&object).map(|object| (name, object))
}

fn written(object: &impl Serialize) -> Result<Box<RawValue>> {
    to_raw_value(object).map_err(failed)
}
