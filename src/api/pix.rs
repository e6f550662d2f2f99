//! `POST /api/pix`: a PIX charge, or the status of a charge when the body has a txid alone
//! (interface 2.3, 2.5); and the sandbox's way to pay one.

use std::sync::Arc;

use actors::engine::{NewPixCharge, PixOpened, ReferenceLookup, ReferenceOf};
use actors::rails::PixOpening;
use axum::extract::State;
use axum::response::Response;
use ledger::tax_id::DocumentKind;
use ledger::{Centavos, Charge, ChargeOutcome, ObjectId, Payer, Record};
use ops::sandbox::pay;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::timestamp::with_milliseconds;

use crate::api::labels::{self, ChargeEcho};
use crate::api::payer::read_document;
use crate::api::splits;
use crate::api::{App, AppState};
use web::idempotency::body_digest;
use web::json::parse_unread;
use web::keyed_request::KeyedCharge;
use web::views::charge::{Breakdown, ChargeView, charge_status, pix_code};
use web::{
    Caller, Checker, Code, KeyScope, KeyedBody, PathId, Problem, Raw, Result, SentKey, broken, checked, created, ok,
    parse, recorded, time,
};

/// A PIX charge, or a look-up, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "valor": "80.00", "nome": "Maria das Dores", "cpf": "12345678909", "descricao": "Pedido 1043", "expires_in": 3600,
}))]
pub struct PixRequest<'a> {
    /// Look-up: the charge's id, alone.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    txid: Raw<'a>,
    /// Amount in reais with a dot, above zero, such as `"80.00"`. Required, unless it is a look-up.
    #[schema(value_type = Option<String>, pattern = r"^\d{1,10}(\.\d{1,2})?$")]
    valor: Raw<'a>,
    /// Payer's name. Required, unless it is a look-up.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 140)]
    nome: Raw<'a>,
    /// Payer's CPF, with or without punctuation; either this or `cnpj`.
    #[schema(value_type = Option<String>, min_length = 11, max_length = 18)]
    cpf: Raw<'a>,
    /// Payer's CNPJ, with or without punctuation; either this or `cpf`.
    #[schema(value_type = Option<String>, min_length = 11, max_length = 18)]
    cnpj: Raw<'a>,
    /// At most 140 characters.
    #[schema(value_type = Option<String>, max_length = 140)]
    descricao: Raw<'a>,
    /// Seconds until the code expires; 86400 when absent, at most 30 days.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 2592000)]
    expires_in: Raw<'a>,
    /// The recipients' parts.
    #[schema(value_type = Option<Vec<splits::SplitItem>>)]
    splits: Raw<'a>,
    /// The caller's own id of the order, 1 to 64 characters. Several charges may have the same.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    reference: Raw<'a>,
    /// True to refuse the charge when another one of the account was created with this and the same
    /// `reference`, ever.
    #[schema(value_type = Option<bool>)]
    reference_unique: Raw<'a>,
    /// The caller's own values: texts of at most 500 characters by at most 20 keys of 40, 8 KiB in
    /// all.
    #[schema(value_type = Option<std::collections::HashMap<String, String>>)]
    metadata: Raw<'a>,
}

/// A PIX charge's answer (interface 2.3).
#[derive(Debug, Serialize, ToSchema)]
pub struct PixResponse {
    /// Always true.
    success: bool,
    /// The charge's id.
    txid: String,
    /// The copy-and-paste payload: a dynamic BR Code.
    #[serde(rename = "pixCopiaECola")]
    #[schema(
        pattern = "^000201[ -~]+6304[0-9A-F]{4}$",
        example = "00020101021226850014br.gov.bcb.pix2563sandbox.centavo.invalid/pix/v2/01a1fee6c96e820f9a20befd6a8511ee520400005303986540580.005802BR5909Loja Azul6009SAO PAULO62070503***6304BD91"
    )]
    pix_copia_e_cola: String,
    /// Always `pending`.
    #[schema(pattern = "^(pending)$")]
    status: &'static str,
    /// Amount in reais, two decimals.
    #[schema(pattern = r"^[0-9]{1,10}\.[0-9]{2}$", example = "80.00")]
    valor: String,
    /// Amount in centavos.
    #[schema(example = 8000)]
    amount: i64,
    /// When the code expires.
    expires_at: String,
    /// When the charge was created.
    created_at: String,
    /// Only with splits.
    #[serde(skip_serializing_if = "Option::is_none")]
    breakdown: Option<Breakdown>,
    #[serde(flatten)]
    echo: ChargeEcho,
}

/// A look-up's answer (interface 2.5).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PixStatus)]
pub struct StatusResponse {
    /// Always true.
    success: bool,
    /// The charge's id.
    txid: String,
    /// `pending`, `CONCLUIDA`, `cancelled`, or `RECUSADA` for a card.
    #[schema(pattern = "^(CONCLUIDA|pending|cancelled|RECUSADA)$")]
    status: &'static str,
    /// The payment's end-to-end id; paid PIX only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "E00000000202607011200abcdef01234")]
    end_to_end_id: Option<String>,
    /// When it was paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    paid_at: Option<String>,
}

/// Creates a PIX charge, or looks a charge up.
#[utoipa::path(post, path = "/api/pix", operation_id = "create_or_look_up_pix", request_body = PixRequest,
    responses((status = 201, body = PixResponse, description = "The charge."), (status = 403),
        (status = 200, body = StatusResponse, description = "Where the charge of `txid` stands."),
        (status = 404), (status = 409), (status = 502)))]
pub async fn create_or_look_up(State(app): AppState, caller: Caller, sent: KeyedCharge) -> Result<Response> {
    create_once(&app, caller, sent.sent_key(), sent.bytes(), parse(sent.bytes())?).await
}

/// Creates a PIX charge as a body asks for it, which was read, with the same key once; or looks a
/// charge up.
pub async fn create_once(
    app: &App,
    caller: Caller,
    sent: &SentKey,
    body: &[u8],
    wire: PixRequest<'_>,
) -> Result<Response> {
    if wire.txid.is_some() {
        return look_up(app, caller, &wire);
    }
    let key = sent.read(&app.engine, KeyScope::Merchant(caller.group), None, body)?;
    let unique = labels::unique_reference(wire.reference, wire.reference_unique);
    let wire = &wire;
    let digest = || body_digest(&app.engine, body, None);
    let look_up = || labels::look_up(app, caller, (ReferenceOf::Charge, unique.as_deref()), digest);
    let execute = |reference: Option<ReferenceLookup>, admitted| async move {
        splits::admit(app, caller, wire.splits)?;
        let wanted = check(wire)?;
        labels::require_new(ReferenceOf::Charge, reference.as_ref())?;
        if app.engine.rails().pix.current().is_none() {
            return Err(Problem::new(Code::RailNotConfigured));
        }
        let wanted = NewPixCharge { reference, ..wanted };
        recorded(app.engine.open_pix(caller.group, wanted, caller.context(admitted)).await?)
    };
    let replay = |record: Arc<Record>| PixOpened::of(&record).ok_or_else(broken);
    let opened = key.run_after(caller.ledger(), look_up, replay, execute).await?;
    let code = code_of(app, caller, opened.outcome()).await?;
    let sent = labels::read(&mut Checker::new(), wire.reference, wire.reference_unique, wire.metadata);
    opened.answer(|opened| {
        let echo = ChargeEcho::of(app, caller, wire.splits, sent, &opened.terms);
        Ok(answer(&opened, code, echo))
    })
}

/// Plays the payer: pays a pending PIX charge. One that is cancelled is paid too late: 409, and the
/// money goes back to the payer. Sandbox only.
#[utoipa::path(post, path = "/api/sandbox/pix/{txid}/pay", operation_id = "pay_pix_in_sandbox",
    responses((status = 200, body = ChargeView), (status = 409)))]
pub async fn sandbox_pay(
    State(app): AppState,
    caller: Caller,
    PathId(txid): PathId,
    sent: KeyedBody,
) -> Result<Response> {
    parse_unread(sent.bytes())?;
    let id = ObjectId::parse(&txid).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), Some(&id.txid()))?;
    let app = &app;
    let read = || find(app, caller, id);
    let execute = |admitted| async move {
        pay(&app.engine, app.institutions.as_deref(), &read()?, caller.context(admitted)).await
    };
    let paid = key.run(caller.ledger(), |_| Ok(()), execute).await?;
    paid.answer(|()| Ok(ok(ChargeView::of(&app.engine, &read()?)?)))
}

fn find(app: &App, caller: Caller, id: ObjectId) -> Result<Charge> {
    app.engine.object_of(caller.group, id)?.ok_or_else(|| Problem::new(Code::ChargeNotFound))
}

fn look_up(app: &App, caller: Caller, wire: &PixRequest<'_>) -> Result<Response> {
    let mut check = Checker::new();
    let beside = [wire.valor, wire.nome, wire.cpf, wire.cnpj, wire.descricao, wire.expires_in, wire.splits];
    let labels = [wire.reference, wire.reference_unique, wire.metadata];
    if beside.iter().chain(&labels).any(Option::is_some) {
        check.refuse::<()>("txid", "ambiguous", "txid não pode vir com dados do pagador");
    }
    let txid = check.text("txid", wire.txid, 1..=64);
    let txid = check.finish_with(txid)?;
    let id = ObjectId::parse(&txid).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let charge = find(app, caller, id)?;
    let (paid_at, end_to_end_id) = match charge.outcome {
        ChargeOutcome::Paid { at, ref end_to_end_id } => (Some(time(at)), end_to_end_id.clone()),
        _ => (None, None),
    };
    Ok(ok(StatusResponse {
        success: true,
        txid: id.txid(),
        status: charge_status(&charge.outcome),
        end_to_end_id,
        paid_at,
    }))
}

/// The copy-and-paste code of a charge that was opened, which its institution may have to register
/// first.
async fn code_of(app: &App, caller: Caller, opened: &PixOpened) -> Result<String> {
    if opened.registers.is_none() {
        let code = pix_code(&app.engine, opened.charge, opened.terms.amount, opened.ordinal)?;
        return code.ok_or_else(|| Problem::new(Code::RailNotConfigured));
    }
    match app.engine.register_pix(caller.group, opened).await? {
        PixOpening::Registered { code } => Ok(code),
        PixOpening::Refused { reason } => Err(Problem::new(Code::RailRefused).detail(reason)),
        PixOpening::Ended => Err(Problem::new(Code::ChargeNotPending)),
    }
}

fn answer(opened: &PixOpened, code: String, echo: ChargeEcho) -> Response {
    let (charge, amount) = (opened.charge, opened.terms.amount);
    created(PixResponse {
        success: true,
        txid: charge.txid(),
        pix_copia_e_cola: code,
        status: "pending",
        valor: format!("{}.{:02}", amount.0 / 100, amount.0 % 100),
        amount: amount.0,
        expires_at: time(opened.expires_at),
        created_at: with_milliseconds(charge.created_at().0),
        breakdown: Breakdown::of(&opened.terms),
        echo,
    })
}

fn check(wire: &PixRequest<'_>) -> Result<NewPixCharge> {
    checked(|check| {
        let amount = reais(check, wire.valor);
        let name = check.text("nome", wire.nome, 1..=140);
        let document = match (wire.cpf, wire.cnpj) {
            (Some(_), Some(_)) => check.refuse("cnpj", "ambiguous", "envie cpf ou cnpj, não os dois"),
            (None, Some(_)) => read_document(check, "cnpj", wire.cnpj, DocumentKind::Cnpj),
            (cpf, None) => read_document(check, "cpf", cpf, DocumentKind::Cpf),
        };
        let description = check.optional_prose("descricao", wire.descricao, 0..=140);
        let expires_in =
            check.given_or(86_400, wire.expires_in, |check, raw| check.integer("expires_in", raw, 1..=2_592_000));
        let splits = splits::read(check, wire.splits);
        let labels = labels::read(check, wire.reference, wire.reference_unique, wire.metadata);
        let payer = Payer {
            name: name?.into_owned(),
            document: document?,
            description: description.map(std::borrow::Cow::into_owned),
            labels,
            ..Payer::default()
        };
        let (amount, expires_in_seconds) = (Centavos(amount?), expires_in?);
        let splits = splits::of_total(splits?, amount);
        Some(NewPixCharge { amount, splits, payer, expires_in_seconds, reference: None })
    })
}

/// An amount in reais as text, `^\d{1,10}(\.\d{1,2})?$` and above zero; gives centavos.
fn reais(check: &mut Checker, raw: Raw<'_>) -> Option<i64> {
    let text = check.text("valor", raw, 1..=13)?;
    let is_bare = raw.is_some_and(|raw| raw.get().len() == text.len() + 2);
    let (whole, cents) = text.split_once('.').map_or((&*text, "0"), |(whole, cents)| (whole, cents));
    let digits = |part: &str, most: usize| {
        let fits = (1..=most).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| part.parse::<i64>().ok()).flatten()
    };
    let scale = if cents.len() == 1 { 10 } else { 1 };
    let amount = digits(whole, 10).zip(digits(cents, 2)).map(|(whole, cents)| whole * 100 + cents * scale);
    match amount {
        Some(amount) if amount > 0 && is_bare => Some(amount),
        _ => check.refuse("valor", "invalid_amount", "valor deve ser um texto como \"80.00\", maior que zero"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reais_are_read_exactly() {
        for (json, expected) in [
            (r#""80.00""#, Some(8_000)),
            (r#""80""#, Some(8_000)),
            (r#""80.5""#, Some(8_050)),
            (r#""0.01""#, Some(1)),
            (r#""9999999999.99""#, Some(999_999_999_999)),
            (r#""0""#, None),
            (r#""0.00""#, None),
            (r#""80,00""#, None),
            (r#""80.001""#, None),
            (r#""80.""#, None),
            (r#"" 80.00 ""#, None),
            (r#"".5""#, None),
            (r#""-1""#, None),
            (r#""1e3""#, None),
            (r#""10000000000""#, None),
            ("80", None),
        ] {
            let raw: &serde_json::value::RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(reais(&mut Checker::new(), Some(raw)), expected, "{json}");
        }
    }
}
