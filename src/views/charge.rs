//! Charge as JSON (interface 2.2, 2.4, 2.5, 3.1): read from the Records that opened and ended it.

use actors::engine::Engine;
use actors::records::may_wait;
use actors::store::Sequence;
use ledger::event::{CardBrand, CardFace, CardRefusal, Event, Split, Terms};
use ledger::fees::PaymentMethod;
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::merchant::ChargeFacts;
use ledger::money::{Centavos, percent_of};
use ledger::personal::{Payer, SealedFor};
use ledger::record::Record;
use ledger::time::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::brcode::BrCode;
use crate::folding::without_accents;
use crate::http::problem::{Code, Problem};
use crate::http::reply::{decimal, time};
use crate::mask;
use crate::views::recipient::recipient_id;

/// `breakdown`, with charges that have splits (interface 2.4).
#[derive(Debug, Serialize, ToSchema)]
pub struct Breakdown {
    /// Total charged, centavos.
    #[schema(example = 10000)]
    pub amount: i64,
    /// What the seller receives, centavos; negative when fees exceed its part.
    #[serde(rename = "sellerAmount")]
    #[schema(example = 5938)]
    pub seller_amount: i64,
    /// Platform commission, centavos.
    #[schema(example = 562)]
    pub commission: i64,
    /// Commission in percent of the seller's gross.
    #[serde(rename = "feePercent", serialize_with = "decimal")]
    #[schema(value_type = f64, example = 8.65)]
    pub fee_percent: Decimal,
}

impl Breakdown {
    /// The breakdown of a charge; none without splits.
    pub fn of(terms: &Terms) -> Option<Self> {
        if terms.splits.is_empty() {
            return None;
        }
        let commission = terms.commission.total();
        Some(Self {
            amount: terms.amount.0,
            seller_amount: terms.seller_net().0,
            commission: commission.0,
            fee_percent: percent_of(commission, terms.seller_gross()),
        })
    }
}

/// Where a charge stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeFate {
    /// No outcome yet.
    Pending,
    /// The acquirer was silent; no outcome yet.
    Unanswered,
    /// Paid or captured.
    Paid {
        /// Time of the payment or capture.
        at: Timestamp,
        /// A PIX payment's end-to-end id.
        end_to_end_id: Option<String>,
    },
    /// The card was refused.
    Refused(CardRefusal),
    /// The PIX code expired or was cancelled.
    Cancelled,
}

impl ChargeFate {
    /// What a Record says of a charge; none when it says nothing final.
    pub fn told_by(record: &Record, id: ObjectId) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::CardCaptured { charge, .. } if *charge == id => {
                Some(Self::Paid { at: record.effective_at, end_to_end_id: None })
            }
            Event::PixPaid { charge, end_to_end_id, .. } if *charge == id => {
                Some(Self::Paid { at: record.effective_at, end_to_end_id: Some(end_to_end_id.clone()) })
            }
            Event::CardRefused { charge, refusal, .. } if *charge == id => Some(Self::Refused(*refusal)),
            Event::CardUnanswered { charge } if *charge == id => Some(Self::Unanswered),
            Event::PixCancelled { charge, .. } if *charge == id => Some(Self::Cancelled),
            _ => None,
        })
    }

    /// The charge's status (interface 3.1).
    pub fn status(&self) -> &'static str {
        match self {
            Self::Pending | Self::Unanswered => "pending",
            Self::Paid { .. } => "CONCLUIDA",
            Self::Refused(_) => "RECUSADA",
            Self::Cancelled => "cancelled",
        }
    }

    /// The acquirer's status of a card charge.
    pub fn card_status(&self) -> &'static str {
        match self {
            Self::Pending | Self::Unanswered | Self::Cancelled => "processing",
            Self::Paid { .. } => "captured",
            Self::Refused(refusal) => refusal_name(*refusal),
        }
    }
}

/// The acquirer's status of a card that it refused.
pub fn refusal_name(refusal: CardRefusal) -> &'static str {
    match refusal {
        CardRefusal::NotAuthorized => "not_authorized",
        CardRefusal::InsufficientFunds => "insufficient_funds",
        CardRefusal::Failed => "failed",
    }
}

/// A charge, from its Records.
pub struct Charge {
    /// Its txid.
    pub id: ObjectId,
    /// What it moves.
    pub terms: Terms,
    /// The card; none for PIX.
    pub card: Option<CardFace>,
    /// When a PIX code expires.
    pub expires_at: Option<Timestamp>,
    /// Who pays; empty when the personal data was erased.
    pub payer: Payer,
    /// When it was asked for: the time in its id.
    pub created_at: Timestamp,
    /// The ordinal of the merchant's Record that opened it.
    pub ordinal: u64,
    /// Where it stands.
    pub fate: ChargeFate,
    /// What was given back of it so far, centavos.
    pub refunded: Centavos,
    /// True when its code was paid after it had ended.
    pub was_paid_late: bool,
    /// What it said first: the answer that an idempotent replay gives again.
    pub first_fate: ChargeFate,
}

impl Charge {
    /// Finds a merchant's charge; none when there is none of this id.
    pub fn find(engine: &Engine, group: GroupNumber, id: ObjectId) -> Result<Option<Self>, Problem> {
        Self::find_through(engine, group, id, Sequence(u64::MAX))
    }

    /// Finds a merchant's charge as it was once the Record of this sequence had taken effect.
    pub fn find_through(
        engine: &Engine,
        group: GroupNumber,
        id: ObjectId,
        through: Sequence,
    ) -> Result<Option<Self>, Problem> {
        if engine.ids().group(id) != group {
            return Ok(None);
        }
        may_wait(|| Self::read_through(engine, id, through))
    }

    fn read_through(engine: &Engine, id: ObjectId, through: Sequence) -> Result<Option<Self>, Problem> {
        let mut about = engine.read_model().about(id)?;
        about.retain(|sequence| *sequence <= through);
        // The index may name Records about another object, even one that somebody chose: only the
        // Record says whose it is.
        for (place, sequence) in about.iter().enumerate() {
            let opened = Self::opened_by(engine, &engine.record(*sequence)?);
            if let Some(mut charge) = opened.filter(|charge| charge.id == id) {
                charge.follow(engine, &about[place + 1..])?;
                return Ok(Some(charge));
            }
        }
        Ok(None)
    }

    /// The charge that the Record of this sequence opened, as it stands now.
    pub fn opened_at(engine: &Engine, sequence: Sequence) -> Result<Self, Problem> {
        let opened = Self::opened_by(engine, &engine.record(sequence)?);
        let mut charge = opened.ok_or_else(|| Problem::new(Code::Internal))?;
        let about = engine.read_model().about(charge.id)?;
        charge.follow(engine, &about)?;
        Ok(charge)
    }

    /// Takes in what the Records about it say of its outcome.
    fn follow(&mut self, engine: &Engine, about: &[Sequence]) -> Result<(), Problem> {
        for sequence in about {
            let record = engine.record(*sequence)?;
            self.refunded += record.events.iter().filter_map(|event| refunded_by(event, self.id)).sum();
            self.was_paid_late |= record.events.iter().any(|event| is_late_payment(event, self.id));
            if let Some(fate) = ChargeFate::told_by(&record, self.id) {
                if self.first_fate == ChargeFate::Pending {
                    self.first_fate = fate.clone();
                }
                self.fate = fate;
            }
        }
        Ok(())
    }

    /// What the Record of a merchant's charge's payment says; a problem when there is no such
    /// charge, or it was not paid.
    pub fn facts(engine: &Engine, group: GroupNumber, id: ObjectId) -> Result<ChargeFacts, Problem> {
        if engine.ids().group(id) != group {
            return Err(Problem::new(Code::ChargeNotFound));
        }
        for sequence in engine.read_model().about(id)? {
            if let Some(facts) = ChargeFacts::told_by(&engine.record(sequence)?, id) {
                return Ok(facts);
            }
        }
        let charge = Self::find(engine, group, id)?.ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
        let detail = format!("The charge is {}.", charge.fate.status());
        Err(Problem::new(Code::ChargeNotRefundable).detail(detail))
    }

    /// The charge that a Record opens.
    pub fn opened_by(engine: &Engine, record: &Record) -> Option<Self> {
        let payer = engine.keyring().open_personal::<Payer>(record);
        record.events.iter().find_map(|event| match event {
            Event::ChargeOpened { charge, terms, card, expires_at } => Some(Self {
                id: *charge,
                terms: terms.clone(),
                card: card.clone(),
                expires_at: *expires_at,
                payer: payer.clone().unwrap_or_default(),
                created_at: charge.created_at(),
                ordinal: record.ordinal,
                fate: ChargeFate::Pending,
                refunded: Centavos::ZERO,
                was_paid_late: false,
                first_fate: ChargeFate::Pending,
            }),
            _ => None,
        })
    }

    fn pix_code(&self, engine: &Engine) -> Result<Option<String>, Problem> {
        if self.card.is_some() {
            return Ok(None);
        }
        pix_code(engine, self.id, self.terms.amount, self.ordinal)
    }

    /// The charge as `GET /api/charges/{txid}` shows it.
    pub fn view(&self, engine: &Engine) -> Result<ChargeView, Problem> {
        let group = engine.ids().group(self.id);
        Ok(ChargeView {
            txid: self.id.txid(),
            status: self.fate.status(),
            payment_method: method_name(self.terms.method),
            amount: self.terms.amount.0,
            installments: self.terms.installments,
            description: self.payer.description.clone(),
            card_status: self.card.as_ref().map(|_| self.fate.card_status()),
            card: self.card.as_ref().map(CardView::of),
            pix_copia_e_cola: self.pix_code(engine)?,
            expires_at: self.expires_at.map(time),
            paid_at: match &self.fate {
                ChargeFate::Paid { at, .. } => Some(time(*at)),
                _ => None,
            },
            end_to_end_id: match &self.fate {
                ChargeFate::Paid { end_to_end_id, .. } => end_to_end_id.clone(),
                _ => None,
            },
            created_at: time(self.created_at),
            refunded_amount: self.refunded.0,
            payer: PayerView { name: self.payer.name.clone(), document: mask::document(&self.payer.document) },
            splits: self.terms.splits.iter().map(|split| SplitView::of(engine, group, split)).collect(),
            breakdown: Breakdown::of(&self.terms),
        })
    }
}

/// The copy-and-paste code of a PIX charge, with the merchant's name and city as of the Record of
/// this ordinal: a code that was given out stays as it is. None where there are no rails.
pub fn pix_code(engine: &Engine, charge: ObjectId, amount: Centavos, ordinal: u64) -> Result<Option<String>, Problem> {
    let Some(rails) = engine.rails() else { return Ok(None) };
    let group = engine.ids().group(charge);
    let profile = engine.read_model().merchant(group, |row| row.profiles.at(ordinal).cloned()).flatten();
    let profile: ledger::personal::MerchantProfile =
        profile.and_then(|sealed| engine.keyring().open_value(SealedFor::merchant(group), &sealed)).unwrap_or_default();
    let code = BrCode {
        location: &rails.pix.location(charge),
        amount_centavos: amount.0,
        merchant_name: expressible_or(&profile.name, "CENTAVO"),
        merchant_city: expressible_or(&profile.city, "SAO PAULO"),
    };
    code.payload().map(Some).map_err(|error| {
        tracing::error!(%error, "a PIX code could not be written");
        Problem::new(Code::Internal)
    })
}

/// What an event gives back of a charge.
fn refunded_by(event: &Event, id: ObjectId) -> Option<Centavos> {
    match event {
        Event::RefundApproved { charge, amount, .. } if *charge == id => Some(*amount),
        _ => None,
    }
}

fn is_late_payment(event: &Event, id: ObjectId) -> bool {
    matches!(event, Event::LatePixReceived { charge, .. } if *charge == id)
}

/// A charge, as read.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "txid": "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e", "status": "CONCLUIDA", "payment_method": "credit_card", "amount": 10000,
    "installments": 3, "description": "Pedido 1042", "cardStatus": "captured",
    "card": {"bin": "411111", "last4": "1111", "brand": "visa"}, "paid_at": "2026-07-01T12:00:00.250Z",
    "created_at": "2026-07-01T12:00:00.050Z", "refunded_amount": 0,
    "payer": {"name": "João Ávila", "document": "***.456.789-**"},
    "splits": [{"sub_recipient_id": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7f", "amount": 3500}],
    "breakdown": {"amount": 10000, "sellerAmount": 5888, "commission": 612, "feePercent": 9.42},
}))]
pub struct ChargeView {
    /// The charge's id.
    pub txid: String,
    /// `pending`, `CONCLUIDA`, `RECUSADA` or `cancelled`.
    #[schema(pattern = "^(CONCLUIDA|pending|RECUSADA|cancelled)$")]
    pub status: &'static str,
    /// `pix`, `credit_card` or `debit_card`.
    #[schema(pattern = "^(pix|credit_card|debit_card)$")]
    pub payment_method: &'static str,
    /// Total, centavos.
    #[schema(example = 10000)]
    pub amount: i64,
    /// 1 to 12.
    #[schema(minimum = 1, maximum = 12)]
    pub installments: u8,
    /// The caller's description.
    #[schema(required, example = "Pedido 1042")]
    pub description: Option<String>,
    /// The acquirer's status; cards only.
    #[serde(rename = "cardStatus", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "captured")]
    pub card_status: Option<&'static str>,
    /// The card; cards only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub card: Option<CardView>,
    /// The copy-and-paste payload; PIX only.
    #[serde(rename = "pixCopiaECola", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pix_copia_e_cola: Option<String>,
    /// When the code expires; PIX only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub expires_at: Option<String>,
    /// When it was paid.
    #[schema(required)]
    pub paid_at: Option<String>,
    /// The payment's end-to-end id; paid PIX only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "E00000000202607011200abcdef01234")]
    pub end_to_end_id: Option<String>,
    /// When it was created.
    pub created_at: String,
    /// Refunded so far, centavos.
    pub refunded_amount: i64,
    /// Who pays.
    pub payer: PayerView,
    /// The recipients' parts.
    pub splits: Vec<SplitView>,
    /// What the seller receives; only with splits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub breakdown: Option<Breakdown>,
}

/// What may be shown of a card.
#[derive(Debug, Serialize, ToSchema)]
pub struct CardView {
    /// The first six digits.
    #[schema(pattern = "^[0-9]{6}$", example = "411111")]
    pub bin: String,
    /// The last four digits.
    #[schema(pattern = "^[0-9]{4}$", example = "1111")]
    pub last4: String,
    /// The scheme.
    #[schema(pattern = "^(visa|mastercard|amex|elo|hipercard|other)$")]
    pub brand: &'static str,
}

impl CardView {
    /// What is shown of a card.
    pub fn of(card: &CardFace) -> Self {
        Self { bin: format!("{:06}", card.bin), last4: format!("{:04}", card.last4), brand: brand_name(card.brand) }
    }
}

/// Who pays, masked.
#[derive(Debug, Serialize, ToSchema)]
pub struct PayerView {
    /// Full name.
    #[schema(example = "João Ávila")]
    pub name: String,
    /// CPF or CNPJ, masked.
    #[schema(example = "***.456.789-**")]
    pub document: String,
}

/// A recipient's part.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitView {
    /// The recipient.
    #[schema(format = "uuid")]
    pub sub_recipient_id: String,
    /// Part of the recipient, centavos.
    #[schema(example = 2000)]
    pub amount: i64,
}

impl SplitView {
    /// What is shown of a split.
    pub fn of(engine: &Engine, group: GroupNumber, split: &Split) -> Self {
        let id = recipient_id(engine, LedgerId::Recipient(group, split.recipient)).unwrap_or_default();
        Self { sub_recipient_id: id.uuid().to_string(), amount: split.amount.0 }
    }
}

/// The wire name of a payment method.
pub fn method_name(method: PaymentMethod) -> &'static str {
    match method {
        PaymentMethod::Pix => "pix",
        PaymentMethod::CreditCard => "credit_card",
        PaymentMethod::DebitCard => "debit_card",
    }
}

fn brand_name(brand: CardBrand) -> &'static str {
    match brand {
        CardBrand::Visa => "visa",
        CardBrand::Mastercard => "mastercard",
        CardBrand::Amex => "amex",
        CardBrand::Elo => "elo",
        CardBrand::Hipercard => "hipercard",
        CardBrand::Other => "other",
    }
}

/// A text of which a BR Code can carry something, or the fallback.
fn expressible_or<'a>(text: &'a str, fallback: &'a str) -> &'a str {
    if without_accents(text).any(|letter| letter.is_ascii_graphic()) { text } else { fallback }
}
