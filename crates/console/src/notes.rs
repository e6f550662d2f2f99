//! Notes of operators on an object or a month: a section of its page, with the form for another
//! one.

use axum::response::Response;
use maud::{Markup, html};
use serde_json::json;

use crate::form::inside;
use crate::refused_form::PAGE;
use crate::{PostedForm, Visit, show, words};
use ops::Desk;
use ops::notes::{self, NOTE_MAX, NoteSubject};
use web::{FormOutcome, Result, Role};

/// The notes on an object or a month, newest first, and the form; nothing for an object of the
/// house.
pub(crate) fn section(desk: &Desk, visit: &Visit, noted: NoteSubject) -> Result<Markup> {
    let written = notes::notes_on(desk, noted)?;
    let takes_notes = match noted {
        NoteSubject::Object(id) => desk.engine.merchant(desk.engine.ids().group(id), |_| ()).is_some(),
        NoteSubject::Month(_) => true,
    };
    let fields = html! {
        label for="note-text" { (visit.say(words::NEW_NOTE)) }
        textarea id="note-text" name="text" rows="2" maxlength=(NOTE_MAX) required aria-describedby="note-what" {}
        p.dim id="note-what" { (visit.say(words::NOTE_WHAT)) }
    };
    Ok(html! {
        @if takes_notes && (!written.is_empty() || visit.may(Role::Decide)) {
            (visit.card("operator-notes", words::OPERATOR_NOTES, html! {
                @for note in &written {
                    p { (show::text_moment(visit.language, &note.at)) " · " bdi { (note.operator) } br; bdi { (note.text) } }
                }
                @if visit.may(Role::Decide) {
                    (visit.form(&format!("/console/notes/{}", noted.name()), fields, words::WRITE_NOTE))
                }
            }))
        }
    })
}

/// Writes a note, as `POST /ops/notes/{id}` does, and leads back to the page with the form.
pub(crate) async fn write(posted: PostedForm) -> Response {
    let PostedForm { visit, form, .. } = &posted;
    let written = posted.call(notes::write, "/ops/notes/{id}", json!({"text": form.value("text")})).await;
    let page = inside(form.value(PAGE));
    visit.done(written, page.split('?').next().unwrap_or(page), FormOutcome::NoteWritten)
}
