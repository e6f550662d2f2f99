//! Fiscal documents of a charge: their access keys are linked to it and taken back, each by a
//! Record. Several documents belong to a charge (each seller's and the platform's), and one
//! document to several charges. Nothing is asked of a tax office.

use actors::engine::{Engine, NewChargeChange};
use axum::extract::State;
use axum::response::Response;
use ledger::fiscal_key::{FiscalKey, FiscalKeyError};
use ledger::{Charge, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::AppState;
use crate::api::charges::named;
use crate::api::labels::{change, change_once};
use web::caller::PathIds;
use web::views::charge::ChargeView;
use web::views::ledger::merchant_profile;
use web::views::recipient::{find_recipient, open, recipient_id};
use web::{
    Caller, Code, KeyScope, KeyedBody, PathId, Problem, Raw, Result, checked, created, not_found, ok, parse, refused,
};

/// A fiscal document, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = FiscalDocumentRequest, example = json!({"key": "35261111222333000181550010000012341531872043"}))]
pub struct FiscalDocumentRequest<'a> {
    /// The access key: 44 positions, or the 50 of a national NFS-e. Blanks, small letters and a
    /// prefix such as `NFe` are taken away.
    #[schema(value_type = String, example = "35261111222333000181550010000012341531872043")]
    key: Raw<'a>,
    /// The recipient of a split of this charge whose document it is; absent for the merchant's.
    #[schema(value_type = Option<String>, format = "uuid")]
    of: Raw<'a>,
}

/// Most documents of a charge.
const DOCUMENTS_MAX: usize = 100;
/// Most characters of a key as it is printed.
const KEY_CHARS_MAX: usize = 100;

/// Links a fiscal document to a charge, whatever the charge's status; 200 where it is linked
/// already. 409 `state_conflict` where it is linked as another's, and for more than 100 documents.
/// The CNPJ or CPF in the key is tested with its check digit; an issuer that is neither the
/// merchant nor a recipient of the charge is shown as `issuer_known: false`. No webhook is sent.
#[utoipa::path(post, path = "/api/charges/{txid}/fiscal-documents", operation_id = "link_fiscal_document",
    request_body = FiscalDocumentRequest,
    responses((status = 201, body = ChargeView), (status = 200, body = ChargeView), (status = 409)))]
pub async fn link(State(app): AppState, caller: Caller, PathId(txid): PathId, sent: KeyedBody) -> Result<Response> {
    let wire: FiscalDocumentRequest<'_> = parse(sent.bytes())?;
    let (key, of) = checked(|check| {
        let key = check.text("key", wire.key, 1..=KEY_CHARS_MAX).and_then(|text| {
            let mut refuse = |(code, message)| check.refuse("key", code, message);
            FiscalKey::parse(&text).map_or_else(|wrong| refuse(refusal(wrong)), Some)
        });
        let of = check.optional(wire.of, |check, raw| check.uuid("of", raw)).map(|id| ObjectId(id.as_u128()));
        Some((key?, of))
    })?;
    let (engine, document) = (&app.engine, app.engine.fiscal_document(caller.group, &key));
    let sent_key = sent.key(&app.engine, KeyScope::Merchant(caller.group), Some(&txid))?;
    let plan = |charge: &Charge| {
        let of = of.map(|id| recipient_of(engine, charge, id)).transpose()?;
        if let Some(linked) = charge.fiscal_documents.iter().find(|linked| linked.document == document) {
            let conflict = Problem::new(Code::StateConflict).detail("The document is linked as another's.");
            return if linked.of == of { Ok(None) } else { Err(conflict) };
        }
        if charge.fiscal_documents.len() >= DOCUMENTS_MAX {
            let detail = format!("A charge has {DOCUMENTS_MAX} fiscal documents at most.");
            return Err(Problem::new(Code::StateConflict).detail(detail));
        }
        let issuer_known = is_known(engine, caller.group, charge, &key);
        Ok(Some(NewChargeChange::LinkDocument { key: key.clone(), of, issuer_known }))
    };
    let (app, plan) = (&app, &plan);
    let read = || named(app, caller, &txid);
    let execute = |charge: Charge, permit| async move {
        let Some(change) = plan(&charge)? else { return Ok(Some((charge, false))) };
        change_once(app, caller, &charge, change, permit).await?.map(|()| Ok((read()?, true))).transpose()
    };
    let linked = sent_key.run_after(caller.ledger(), read, |_| Ok((read()?, true)), execute).await?;
    linked.answer(|(charge, is_new)| {
        let view = ChargeView::of(&app.engine, &charge)?;
        Ok(if is_new { created(view) } else { ok(view) })
    })
}

/// Takes the link of a fiscal document back; 404 where it is not linked. The document may be linked
/// again.
#[utoipa::path(delete, path = "/api/charges/{txid}/fiscal-documents/{key}", operation_id = "unlink_fiscal_document",
    params(("key" = String, Path, pattern = "^[0-9A-Z]{44}([0-9A-Z]{6})?$", description = "The access key.", example = "35261111222333000181550010000012341531872043")),
    responses((status = 200, body = ChargeView), (status = 409)))]
pub async fn unlink(State(app): AppState, caller: Caller, PathIds(txid, key): PathIds) -> Result<Response> {
    let key = FiscalKey::parse(&key).map_err(|_| not_found())?;
    let document = app.engine.fiscal_document(caller.group, &key);
    let plan = |charge: &Charge| {
        let is_linked = charge.fiscal_documents.iter().any(|linked| linked.document == document);
        let unlink = is_linked.then_some(NewChargeChange::UnlinkDocument(document));
        unlink.map(Some).ok_or_else(not_found)
    };
    let view = |charge: &Charge| Ok(ok(ChargeView::of(&app.engine, charge)?));
    change(&app, caller, || named(&app, caller, &txid), plan, view).await
}

/// Number of the recipient of this id, who has a split of the charge.
fn recipient_of(engine: &Engine, charge: &Charge, id: ObjectId) -> Result<RecipientNumber> {
    let group = engine.ids().group(charge.id);
    let mut splits = charge.terms.splits.iter().map(|split| split.recipient);
    let found = splits.find(|number| recipient_id(engine, LedgerId::Recipient(group, *number)) == Some(id));
    let message = "of deve ser um recebedor com divisão neste pagamento";
    found.ok_or_else(|| refused("of", "not_of_charge", message))
}

/// Whether the issuer of a document is the merchant, or a recipient of the charge.
fn is_known(engine: &Engine, group: GroupNumber, charge: &Charge, key: &FiscalKey) -> bool {
    let is_recipient = charge.terms.splits.iter().any(|split| {
        let id = recipient_id(engine, LedgerId::Recipient(group, split.recipient));
        let row = id.and_then(|id| find_recipient(engine, id));
        row.is_some_and(|(_, row)| key.is_issued_by(&open(engine, &row, row.profiles.current()).document))
    });
    is_recipient || key.is_issued_by(&merchant_profile(engine, group).document)
}

/// What is wrong with a key: the code and the message.
fn refusal(wrong: FiscalKeyError) -> (&'static str, &'static str) {
    match wrong {
        FiscalKeyError::WrongForm => ("invalid_key", "key deve ter 44 ou 50 posições, com letras só no CNPJ"),
        FiscalKeyError::UnknownState => ("invalid_key", "key começa com o código de nenhum estado"),
        FiscalKeyError::WrongMonth => ("invalid_key", "key tem um mês de emissão que não existe"),
        FiscalKeyError::WrongIssuer => ("invalid_document", "key tem um CNPJ ou CPF de emitente inválido"),
        FiscalKeyError::WrongDigit => ("invalid_check_digit", "key tem um dígito verificador errado"),
    }
}
