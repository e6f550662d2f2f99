//! Charge as JSON (interface 2.2, 2.4, 2.5, 3.1), and the text of its PIX code.

use std::borrow::Cow;

use actors::engine::{ChargeFilter, ChargeStatus, Engine};
use ledger::fees::Commission;
use ledger::money::percent_of;
use ledger::{
    CardFace, Centavos, Charge, ChargeFacts, ChargeOutcome, DisputeWindows, GroupNumber, LedgerId, Metadata, ObjectId,
    Payer, PaymentMethod, Sealed, SealedFor, Split, Terms,
};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;
use wire::brcode::BrCode;
use wire::case_folding::without_accents;
use wire::mask;

use crate::reply::{between, decimal};
use crate::views::fiscal::{FiscalDocumentView, FiscalView, fiscal_documents, receipt};
use crate::views::labels::labels;
use crate::views::ledger::merchant_profile_at;
use crate::views::recipient::recipient_id;
use crate::{Checker, Code, Problem, Result, failed, single, time};

/// `breakdown`, with charges that have splits (interface 2.4).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChargeBreakdown)]
pub struct Breakdown {
    /// Total charged, centavos.
    pub amount: i64,
    /// What the seller receives, centavos; negative when fees exceed its part.
    #[serde(rename = "sellerAmount")]
    #[schema(example = 5938)]
    pub seller_amount: i64,
    /// Platform commission, centavos.
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

/// The status of a charge (interface 3.1).
pub fn charge_status(outcome: &ChargeOutcome) -> &'static str {
    match outcome {
        ChargeOutcome::Pending | ChargeOutcome::Unanswered => "pending",
        ChargeOutcome::Paid { .. } => "CONCLUIDA",
        ChargeOutcome::Refused(_) => "RECUSADA",
        ChargeOutcome::Cancelled => "cancelled",
    }
}

/// The acquirer's status of a card charge.
fn card_status(outcome: &ChargeOutcome) -> Cow<'static, str> {
    match outcome {
        ChargeOutcome::Pending | ChargeOutcome::Unanswered | ChargeOutcome::Cancelled => "processing".into(),
        ChargeOutcome::Paid { .. } => "captured".into(),
        ChargeOutcome::Refused(refusal) => refusal.to_string().into(),
    }
}

impl ChargeView {
    /// The charge as `GET /api/charges/{txid}` shows it.
    pub fn of(engine: &Engine, charge: &Charge) -> Result<Self> {
        Self::shown(engine, charge, true)
    }

    /// The charge as operators see it: without the CPFs of persons who issued its fiscal documents.
    pub fn of_any_merchant(engine: &Engine, charge: &Charge) -> Result<Self> {
        Self::shown(engine, charge, false)
    }

    fn shown(engine: &Engine, charge: &Charge, is_whole: bool) -> Result<Self> {
        let Charge { id, terms, card, outcome, .. } = charge;
        let (group, payer) = (engine.ids().group(*id), payer(engine, *id, charge.payer.as_ref()));
        let labels = labels(engine, charge, &payer);
        let (authorization, nsu) = receipt(charge);
        let (paid_at, end_to_end_id) = match outcome {
            ChargeOutcome::Paid { at, end_to_end_id } => (Some(time(*at)), end_to_end_id.clone()),
            _ => (None, None),
        };
        Ok(Self {
            txid: id.txid(),
            status: charge_status(outcome),
            payment_method: terms.method.name(),
            amount: terms.amount.0,
            installments: terms.installments,
            card_status: card.as_ref().map(|_| card_status(outcome)),
            card: card.as_ref().map(CardView::of),
            pix_copia_e_cola: match card {
                Some(_) => None,
                None if charge.rail.is_some() => charge.code.clone(),
                None => pix_code(engine, *id, terms.amount, charge.ordinal)?,
            },
            expires_at: charge.expires_at.map(time),
            paid_at,
            end_to_end_id,
            authorization,
            nsu,
            acquirer_reference: charge.capture.as_ref().map(|capture| capture.id.clone()),
            created_at: time(id.created_at()),
            refunded_amount: charge.refunded.0,
            payer: PayerView { name: payer.name, document: mask::document(&payer.document) },
            description: payer.description,
            reference: labels.reference,
            metadata: Some(labels.metadata).filter(|metadata| !metadata.is_empty()),
            fiscal: FiscalView::of(engine, charge),
            fiscal_documents: fiscal_documents(engine, charge, is_whole),
            splits: terms.splits.iter().map(|split| SplitView::of(engine, group, split)).collect(),
            breakdown: Breakdown::of(terms),
            fees: FeeView::of(&terms.commission),
            net: terms.seller_net().0,
            settles_at: charge.settles_at.map(time),
        })
    }
}

/// The payer of a charge; empty when the personal data was erased.
pub fn payer(engine: &Engine, charge: ObjectId, sealed: Option<&Sealed>) -> Payer {
    sealed.and_then(|sealed| engine.keyring().open_value(SealedFor::payer(charge), sealed)).unwrap_or_default()
}

/// The copy-and-paste code of a sandbox's PIX charge, with the merchant's name and city as of the
/// Record of this ordinal: a code that was given out stays as it is. None outside of a sandbox.
pub fn pix_code(engine: &Engine, charge: ObjectId, amount: Centavos, ordinal: u64) -> Result<Option<String>> {
    let Some(location) = engine.rails().pix.get(None).and_then(|rail| rail.location(charge)) else { return Ok(None) };
    let group = engine.ids().group(charge);
    let profile = merchant_profile_at(engine, group, ordinal);
    let code = BrCode {
        location: &location,
        amount_centavos: amount.0,
        merchant_name: expressible_or(&profile.name, "CENTAVO"),
        merchant_city: expressible_or(&profile.city, "SAO PAULO"),
    };
    code.payload().map(Some).map_err(failed)
}

/// A charge, as read.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Charge, example = json!({
    "txid": "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e", "status": "CONCLUIDA", "payment_method": "credit_card", "amount": 10000,
    "installments": 3, "description": "Pedido 1042", "cardStatus": "captured",
    "card": {"bin": "411111", "last4": "1111", "brand": "visa"}, "paid_at": "2026-07-01T12:00:00.250Z",
    "created_at": "2026-07-01T12:00:00.050Z", "refunded_amount": 0,
    "payer": {"name": "João Ávila", "document": "***.456.789-**"},
    "splits": [{"sub_recipient_id": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7f", "amount": 3500}],
    "breakdown": {"amount": 10000, "sellerAmount": 5888, "commission": 612, "feePercent": 9.42},
    "fees": [{"kind": "mdr", "amount": 349}, {"kind": "antifraud", "amount": 198}, {"kind": "margin", "amount": 65}],
    "net": 5888, "settles_at": "2026-07-31T12:00:00.000Z",
    "fiscal": {"means": "03", "brand": "01", "authorization": "123456", "acquirer_document": "11222333000181"},
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
    pub amount: i64,
    /// 1 to 12.
    #[schema(minimum = 1, maximum = 12)]
    pub installments: u8,
    /// The caller's description.
    #[schema(required, example = "Pedido 1042")]
    #[serialize_always]
    pub description: Option<String>,
    /// The caller's reference, where the request had one.
    #[schema(min_length = 1, max_length = 64, example = "pedido-1042")]
    pub reference: Option<String>,
    /// The caller's values by key, where there are any.
    #[schema(value_type = Option<HashMap<String, String>>, example = json!({"loja": "azul"}))]
    pub metadata: Option<Metadata>,
    /// What a fiscal document says of its payment.
    pub fiscal: FiscalView,
    /// The fiscal documents that are linked to it, where there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub fiscal_documents: Vec<FiscalDocumentView>,
    /// The acquirer's status; cards only.
    #[serde(rename = "cardStatus")]
    #[schema(example = "captured")]
    pub card_status: Option<Cow<'static, str>>,
    /// The card; cards only.
    pub card: Option<CardView>,
    /// The copy-and-paste payload; PIX only, once the institution has registered the charge.
    #[serde(rename = "pixCopiaECola")]
    pub pix_copia_e_cola: Option<String>,
    /// When the code expires; PIX only.
    pub expires_at: Option<String>,
    /// When it was paid.
    #[schema(required)]
    #[serialize_always]
    pub paid_at: Option<String>,
    /// The payment's end-to-end id; paid PIX only.
    pub end_to_end_id: Option<String>,
    /// The issuer's authorization code; captured cards, where the acquirer gives it.
    pub authorization: Option<String>,
    /// The number of the capture at the acquirer (NSU); captured cards, where it gives it.
    pub nsu: Option<String>,
    /// The acquirer's own id of the capture, `capture` in exports; captured cards only.
    pub acquirer_reference: Option<String>,
    /// When it was created.
    pub created_at: String,
    /// Refunded so far, centavos.
    pub refunded_amount: i64,
    /// Who pays.
    pub payer: PayerView,
    /// The recipients' parts.
    pub splits: Vec<SplitView>,
    /// What the seller receives; only with splits.
    pub breakdown: Option<Breakdown>,
    /// What it costs the seller, fixed when it is created and charged when it is paid.
    pub fees: Vec<FeeView>,
    /// What the seller receives when it is paid, centavos: the amount less the recipients' parts
    /// and the fees. Refunds and disputes do not change it: `refunded_amount` is what went back,
    /// and the sum of `GET /api/balance/operations?charge=` is what is left.
    pub net: i64,
    /// When that is available; null before it is paid.
    #[schema(required)]
    #[serialize_always]
    pub settles_at: Option<String>,
}

/// One fee of a charge.
#[derive(Debug, Serialize, ToSchema)]
pub struct FeeView {
    /// `mdr` (the acquirer's), `antifraud`, `margin` or `pix`; more may come.
    #[schema(example = "mdr")]
    pub kind: &'static str,
    /// How much, centavos.
    #[schema(example = 349)]
    pub amount: i64,
}

impl FeeView {
    /// The fees of a commission that are not zero.
    pub fn of(commission: &Commission) -> Vec<Self> {
        commission.parts().map(|(kind, amount)| Self { kind, amount: amount.0 }).collect()
    }
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
    #[schema(pattern = "^(visa|mastercard|amex|elo|hipercard|diners|discover|jcb|other)$")]
    pub brand: &'static str,
}

impl CardView {
    /// What is shown of a card.
    pub fn of(card: &CardFace) -> Self {
        Self { bin: format!("{:06}", card.bin), last4: format!("{:04}", card.last4), brand: card.brand.name() }
    }
}

/// Who pays, masked.
#[derive(Debug, Serialize, ToSchema)]
pub struct PayerView {
    /// Full name.
    pub name: String,
    /// CPF or CNPJ, masked.
    pub document: String,
}

/// A recipient's part.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitView {
    /// The recipient.
    pub sub_recipient_id: String,
    /// Part of the recipient, centavos.
    pub amount: i64,
}

impl SplitView {
    /// What is shown of a split.
    pub fn of(engine: &Engine, group: GroupNumber, split: &Split) -> Self {
        let id = recipient_id(engine, LedgerId::Recipient(group, split.recipient)).unwrap_or_default();
        Self { sub_recipient_id: id.uuid().to_string(), amount: split.amount.0 }
    }
}

/// A text of which a BR Code can carry something, or the fallback.
fn expressible_or<'a>(text: &'a str, fallback: &'a str) -> &'a str {
    if without_accents(text).any(|letter| letter.is_ascii_graphic()) { text } else { fallback }
}

/// What the payment of a charge says; a problem when there is no such charge, or it was not paid.
pub fn paid_charge(engine: &Engine, disputes: DisputeWindows, group: GroupNumber, id: ObjectId) -> Result<ChargeFacts> {
    let not_found = || Problem::new(Code::ChargeNotFound);
    if engine.ids().group(id) != group {
        return Err(not_found());
    }
    if let Some(facts) = engine.charge_facts(id)? {
        return Ok(ChargeFacts { disputes, ..facts });
    }
    let charge: Charge = engine.object(id)?.ok_or_else(not_found)?;
    let detail = format!("The charge is {}.", charge_status(&charge.outcome));
    Err(Problem::new(Code::ChargeNotRefundable).detail(detail))
}

/// The problem of a charge that is not pending, with its status.
pub fn not_pending(charge: &Charge) -> Problem {
    let status = charge_status(&charge.outcome);
    let problem = Problem::new(Code::ChargeNotPending).detail(format!("The charge is {status}."));
    problem.member("txid", charge.id.txid()).member("charge_status", status)
}

/// The filter that a query asks for.
pub fn charge_filter(pairs: &[(String, String)]) -> Result<ChargeFilter> {
    let mut check = Checker::new();
    let status = match single(pairs, "status")? {
        None => None,
        Some("pending") => Some(ChargeStatus::Pending),
        Some("CONCLUIDA") => Some(ChargeStatus::Paid),
        Some("RECUSADA") => Some(ChargeStatus::Refused),
        Some("cancelled") => Some(ChargeStatus::Cancelled),
        Some(_) => check.refuse("status", "unknown", "status deve ser pending, CONCLUIDA, RECUSADA ou cancelled"),
    };
    let methods = [PaymentMethod::Pix, PaymentMethod::CreditCard, PaymentMethod::DebitCard];
    let method = single(pairs, "payment_method")?.and_then(|name| {
        let known = methods.into_iter().find(|method| method.name() == name);
        let message = "payment_method deve ser pix, credit_card ou debit_card";
        known.or_else(|| check.refuse("payment_method", "unknown", message))
    });
    let (from, to) = between(&mut check, pairs)?;
    check.finish()?;
    Ok(ChargeFilter { status, method, from, to, ..ChargeFilter::default() })
}
