//! `POST /api/charges/quote`: what a charge would cost and who would get what, by the rules and the
//! fees of now. Nothing is written.

use axum::extract::State;
use axum::response::Response;
use ledger::{AMOUNT_MAX, CardBrand, CardFace, Centavos, Event, MerchantCommand, PaymentMethod, Sealed, Terms};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::splits;
use crate::api::{App, AppState};
use web::keyed_request::KeyedCharge;
use web::views::charge::{Breakdown, FeeView, SplitView};
use web::{Caller, Checker, KeyScope, Raw, Result, broken, ok, parse};

/// A charge to be quoted, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "payment_method": "credit_card", "amount": 10000, "installments": 3,
    "splits": [{"sub_recipient_id": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e", "amount": 1250}],
}))]
pub struct QuoteRequest<'a> {
    /// `pix`, `credit_card` or `debit_card`.
    #[schema(value_type = String, pattern = "^(pix|credit_card|debit_card)$")]
    payment_method: Raw<'a>,
    /// Total, integer centavos.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// 1 to 12, of `credit_card` alone; 1 when absent.
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 12)]
    installments: Raw<'a>,
    /// The recipients' parts.
    #[schema(value_type = Option<Vec<splits::SplitItem>>)]
    splits: Raw<'a>,
}

/// What a charge would cost, and who would get what.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChargeQuote {
    /// `pix`, `credit_card` or `debit_card`.
    #[schema(pattern = "^(pix|credit_card|debit_card)$")]
    payment_method: &'static str,
    /// Total, centavos.
    #[schema(example = 10000)]
    amount: i64,
    /// 1 to 12.
    #[schema(minimum = 1, maximum = 12)]
    installments: u8,
    /// The recipients' parts, as amounts.
    splits: Vec<SplitView>,
    /// The fees that are not zero.
    fees: Vec<FeeView>,
    /// What the seller gets, centavos: the total without the recipients' parts and the fees.
    /// Negative when fees exceed its part.
    #[schema(example = 8753)]
    net: i64,
    /// Days of 24 hours from the payment until the seller's part is available.
    #[schema(example = 30)]
    settlement_days: u16,
    /// As in the answer of the charge; only with splits.
    #[serde(skip_serializing_if = "Option::is_none")]
    breakdown: Option<Breakdown>,
}

impl ChargeQuote {
    fn of(app: &App, caller: Caller, terms: &Terms) -> Self {
        let settlement_days = if terms.method.is_card() { terms.settlement_days } else { 0 };
        Self {
            payment_method: terms.method.name(),
            amount: terms.amount.0,
            installments: terms.installments,
            splits: terms.splits.iter().map(|split| SplitView::of(&app.engine, caller.group, split)).collect(),
            fees: FeeView::of(&terms.commission),
            net: terms.seller_net().0,
            settlement_days,
            breakdown: Breakdown::of(terms),
        }
    }
}

/// Quotes a charge: its fees, the parts of its recipients and the seller's part. It is refused as
/// the charge would be. Nothing is written.
#[utoipa::path(post, path = "/api/charges/quote", operation_id = "quote_charge", request_body = QuoteRequest,
    responses((status = 200, body = ChargeQuote), (status = 403)))]
pub async fn quote(State(app): AppState, caller: Caller, sent: KeyedCharge) -> Result<Response> {
    let wire: QuoteRequest<'_> = parse(sent.bytes())?;
    let _nothing_to_repeat = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    splits::admit(&app, caller, wire.splits)?;
    let command = check(&app, caller, &wire)?;
    let record = app.engine.preview(caller.group, command).await??;
    match record.events.first() {
        Some(Event::ChargeOpened { terms, .. }) => Ok(ok(ChargeQuote::of(&app, caller, terms))),
        _ => Err(broken()),
    }
}

/// The command that would open the charge.
fn check(app: &App, caller: Caller, wire: &QuoteRequest<'_>) -> Result<MerchantCommand> {
    let mut check = Checker::new();
    let name = check.text("payment_method", wire.payment_method, 1..=20);
    let method = name.and_then(|name| match &*name {
        "pix" => Some(PaymentMethod::Pix),
        "credit_card" => Some(PaymentMethod::CreditCard),
        "debit_card" => Some(PaymentMethod::DebitCard),
        _ => check.refuse("payment_method", "unknown_value", "payment_method deve ser pix, credit_card ou debit_card"),
    });
    let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
    let installments = check.given_or(1, wire.installments, |check, raw| check.integer("installments", raw, 1..=12));
    let is_alone = method.is_none_or(|method| method == PaymentMethod::CreditCard);
    if !is_alone && installments.is_some_and(|count| count > 1) {
        check.refuse::<()>("installments", "out_of_range", "só credit_card pode ser parcelado");
    }
    let splits = splits::read(&mut check, wire.splits);
    let checked = (|| Some((method?, Centavos(amount?), u8::try_from(installments?).ok()?, splits?)))();
    let (method, amount, installments, splits) = check.finish_with(checked)?;
    let splits = splits::of_total(splits, amount);
    let (charge, payer, rail) = (app.engine.new_id(caller.group)?, Sealed::default(), None);
    Ok(match method {
        PaymentMethod::Pix => {
            MerchantCommand::OpenPix { charge, amount, splits, expires_at: charge.created_at(), payer, rail }
        }
        PaymentMethod::CreditCard | PaymentMethod::DebitCard => {
            let card = CardFace { bin: 0, last4: 0, brand: CardBrand::Other };
            MerchantCommand::OpenCard { charge, amount, method, installments, splits, card, payer, rail }
        }
    })
}
