//! Notes of operators on objects of merchants and on months, each a Record with the operator's name
//! and the time. A note is in the clear and outlives the keys of months: no personal data belongs
//! in it.

use axum::extract::State;
use axum::response::Response;
use ledger::period::month_notes_id;
use ledger::{Event, LedgerId, MerchantCommand, Month, ObjectId, Record};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::found_item::item_of;
use crate::{DeciderCall, Desk, DeskState, Operator};
use web::reply::All;
use web::{PathId, Raw, Result, checked, created, not_found, ok, parse_exact, time};

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
pub struct NoteView {
    /// The object's id, or the month.
    #[schema(example = "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")]
    object: String,
    /// The note.
    #[schema(example = "Ligou e confirmou a entrega")]
    pub text: String,
    /// The operator's name.
    pub operator: String,
    /// When it was written.
    pub at: String,
}

/// What a note is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteSubject {
    /// An object of a merchant.
    Object(ObjectId),
    /// A month, of whose closing the notes speak.
    Month(Month),
}

impl NoteSubject {
    /// Its name in addresses.
    pub fn name(self) -> String {
        match self {
            Self::Object(id) => id.uuid().to_string(),
            Self::Month(month) => month.to_string(),
        }
    }

    /// The object of an id, or the month of a name. Error: 404 when it is neither.
    fn named(desk: &Desk, name: &str) -> Result<Self> {
        if let Some(month) = Month::parse(name) {
            return Ok(Self::Month(month));
        }
        let object = ObjectId::parse(name).ok_or_else(not_found)?;
        desk.engine.merchant(desk.engine.ids().group(object), |_| ()).ok_or_else(not_found)?;
        item_of(desk, object)?.map(|_| Self::Object(object)).ok_or_else(not_found)
    }

    /// The note that a Record has on it, if it has one.
    fn note_in(self, record: &Record) -> Option<NoteView> {
        let object = match self {
            Self::Object(id) => id,
            Self::Month(month) => month_notes_id(month),
        };
        record.events.iter().find_map(|event| match event {
            Event::NoteWritten { object: of, text } if *of == object => Some(NoteView {
                object: self.name(),
                text: text.clone(),
                operator: record.operator.clone().unwrap_or_default(),
                at: time(record.effective_at),
            }),
            _ => None,
        })
    }
}

/// Writes a note on an object of a merchant: a charge, refund, withdrawal, dispute, cashout,
/// recipient, subscription, stored card, API key, or the merchant itself; or on a month. It stands
/// in the journal and in the audit trail, for ever and in the clear: no personal data belongs in
/// it.
#[utoipa::path(post, path = "/ops/notes/{id}", operation_id = "write_note",
    params(("id" = String, Path, description = "The id of the object, a txid or a UUID; or a month, such as `2026-11`.")), request_body = NoteRequest,
    responses((status = 201, body = NoteView)))]
pub async fn write(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    let wire: NoteRequest<'_> = parse_exact(sent.bytes())?;
    let noted = NoteSubject::named(desk, id)?;
    let (key, wire) = (call.key(&noted.name())?, &wire);
    let execute = |admitted| async move {
        let text = checked(|check| check.prose("text", wire.text, 1..=NOTE_MAX))?.into_owned();
        let context = operator.context(admitted);
        Ok(match noted {
            NoteSubject::Object(object) => {
                let command = MerchantCommand::WriteNote { object, text };
                desk.engine.command(desk.engine.ids().group(object), command, context).await?
            }
            NoteSubject::Month(month) => desk.engine.note_month(month, text, context).await?,
        })
    };
    let owner = match noted {
        NoteSubject::Object(object) => LedgerId::Merchant(desk.engine.ids().group(object)),
        NoteSubject::Month(_) => LedgerId::System,
    };
    let written = key.run_recorded(owner, |record: &Record| noted.note_in(record), execute).await?;
    written.answer(|note| Ok(created(note)))
}

/// The notes on an object, newest first.
#[utoipa::path(get, path = "/ops/notes/{id}", operation_id = "list_notes",
    params(("id" = String, Path, description = "The id of the object, a txid or a UUID; or a month, such as `2026-11`.")),
    responses((status = 200, body = All<NoteView>), (status = 400)))]
pub async fn list(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    Ok(ok(All::of(notes_on(&desk, NoteSubject::named(&desk, &id)?)?)))
}

/// The notes on an object or a month, newest first.
pub fn notes_on(desk: &Desk, noted: NoteSubject) -> Result<Vec<NoteView>> {
    let records = match noted {
        NoteSubject::Object(id) => desk.engine.history(id)?,
        NoteSubject::Month(month) => desk.engine.month_notes(month)?,
    };
    let mut notes = Vec::new();
    for found in records {
        notes.extend(noted.note_in(&found?.1));
    }
    notes.reverse();
    Ok(notes)
}
