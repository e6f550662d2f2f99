//! Notes of operators on objects of merchants, each a Record with the operator's name and the time.
//! A note is in the clear and outlives the keys of months: no personal data belongs in it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::event::Event;
use ledger::id::{LedgerId, ObjectId};
use ledger::merchant::MerchantCommand;
use ledger::record::Record;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::desk::Desk;
use crate::found_item::item_of;
use crate::operator::{DeciderCall, Operator};
use web::caller::PathId;
use web::json::{Checker, Raw, parse_exact};
use web::problem::{Code, Problem};
use web::reply::{All, created, ok, time};

/// Characters of a note, at most.
pub const NOTE_MAX: usize = 1_000;

/// A note on an object.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = NoteRequest, example = json!({"text": "Ligou e confirmou a entrega"}))]
pub struct NoteRequest<'a> {
    /// The note, at most 1,000 characters. It is stored for ever and in the clear: no personal data
    /// belongs in it.
    #[schema(value_type = String, min_length = 1, max_length = 1000)]
    text: Raw<'a>,
}

/// A note, its writer, and its time.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Note)]
pub struct NoteView {
    /// The object's id.
    #[schema(format = "uuid")]
    object: String,
    /// The note.
    #[schema(example = "Ligou e confirmou a entrega")]
    pub text: String,
    /// The operator's name.
    #[schema(example = "ana")]
    pub operator: String,
    /// When it was written.
    #[schema(format = "date-time")]
    pub at: String,
}

impl NoteView {
    /// The note that a Record has on an object, if it has one.
    fn in_record(record: &Record, object: ObjectId) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::NoteWritten { object: of, text } if *of == object => Some(Self {
                object: object.uuid().to_string(),
                text: text.clone(),
                operator: record.operator.clone().unwrap_or_default(),
                at: time(record.effective_at),
            }),
            _ => None,
        })
    }
}

/// Writes a note on an object of a merchant: a charge, refund, withdrawal, dispute, cashout,
/// recipient, subscription, stored card, API key, or the merchant itself. It stands in the journal
/// and in the audit trail, for ever and in the clear: no personal data belongs in it.
#[utoipa::path(post, path = "/ops/notes/{id}", operation_id = "write_note",
    params(("id" = String, Path, description = "The id of the object: a txid or a UUID.")), request_body = NoteRequest,
    responses((status = 201, body = NoteView)))]
pub async fn write(call: DeciderCall) -> Result<Response, Problem> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    let wire: NoteRequest<'_> = parse_exact(sent.bytes())?;
    let object = named(desk, id)?;
    let group = desk.engine.ids().group(object);
    let (key, wire) = (call.key(&object.txid())?, &wire);
    let execute = |admitted| async move {
        let mut check = Checker::new();
        let text = check.prose("text", wire.text, 1..=NOTE_MAX);
        let text = check.finish_with(text)?.into_owned();
        let command = MerchantCommand::WriteNote { object, text };
        Ok(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let note = |record: &Record| NoteView::in_record(record, object);
    let written = key.run_recorded(LedgerId::Merchant(group), note, execute).await?;
    written.answer(|note| Ok(created(note)))
}

/// The notes on an object, newest first.
#[utoipa::path(get, path = "/ops/notes/{id}", operation_id = "list_notes",
    params(("id" = String, Path, description = "The id of the object: a txid or a UUID.")),
    responses((status = 200, body = All<NoteView>), (status = 400)))]
pub async fn list(State(desk): State<Arc<Desk>>, _: Operator, PathId(id): PathId) -> Result<Response, Problem> {
    let items = notes_on(&desk, named(&desk, &id)?)?;
    Ok(ok(All { total: items.len() as u64, items }))
}

/// The object of an id. Error: 404 when it is no object of a merchant.
fn named(desk: &Desk, id: &str) -> Result<ObjectId, Problem> {
    let not_found = || Problem::new(Code::NotFound);
    let object = ObjectId::parse(id).ok_or_else(not_found)?;
    desk.engine.merchant(desk.engine.ids().group(object), |_| ()).ok_or_else(not_found)?;
    item_of(desk, object)?.map(|_| object).ok_or_else(not_found)
}

/// The notes on an object, newest first.
pub fn notes_on(desk: &Desk, object: ObjectId) -> Result<Vec<NoteView>, Problem> {
    let mut notes = Vec::new();
    for found in desk.engine.history(object)? {
        notes.extend(NoteView::in_record(&found?.1, object));
    }
    notes.reverse();
    Ok(notes)
}
