//! Page of the data protection officer: months of personal data and their retention, the look-up of
//! one person, the deletion of a stored card, and the erasure of months by two operators.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use ledger::tax_id;
use maud::{Markup, html};
use serde_json::json;

use crate::keys::admin;
use crate::table::Table;
use crate::wire_words::heading;
use crate::{PostedForm, Screen, Section, Visit, show, words};
use ops::cards;
use ops::erasures::{self, ErasureView, RetentionView, retention};
use ops::people::{PersonPart, PersonView, person};
use ops::recipients::require_reveal;
use ops::{Desk, DeskState, ItemKind};
use web::{Code, FormOutcome, Problem, Role};

const PATH: &str = "/console/people";

/// The page.
pub(crate) async fn show(State(desk): DeskState, visit: Visit) -> Response {
    visit.answer(visit.whole().and_then(|()| retention(&desk)).map(|retention| screen(&desk, &visit, &retention)))
}

fn screen(desk: &Desk, visit: &Visit, retention: &RetentionView) -> Screen {
    let body = html! {
        (visit.card("stored", words::PERSONAL_DATA, html! {
            ul {
                @for point in [words::DATA_WHAT, words::DATA_WHY, words::DATA_UNTIL, words::DATA_REFUSED] { li { (visit.say(point)) } }
            }
        }))
        @if require_reveal(desk, &visit.operator).is_ok() {
            (visit.card("person", words::PERSON, html! {
                p.dim { (visit.say(words::PERSON_WHAT)) }
                (visit.form(&format!("{PATH}/person"), html! {
                    label for="document" { "CPF / CNPJ" }
                    input id="document" name="document" required maxlength="18" autocomplete="off";
                }, words::LOOK_UP))
            }))
        }
        (months(visit, retention))
    };
    Screen { section: Section::People, title: visit.say(words::PERSONAL_DATA).to_owned(), body }
}

fn months(visit: &Visit, retention: &RetentionView) -> Markup {
    let over = retention.months.iter().rfind(|month| month.is_over);
    let table = Table::of(visit.language, words::SEALED_MONTHS, &retention.months)
        .text(words::MONTH, |month| &month.month)
        .text(words::STORED_UNTIL, |month| show::text_moment(visit.language, &month.until));
    visit.card("months", words::SEALED_MONTHS, html! {
        (table.shown())
        @if visit.may(Role::Admin) {
            (visit.form(&format!("{PATH}/erase"), html! {
                label for="through" { (visit.say(words::ERASE_THROUGH)) }
                input id="through" name="through" required maxlength="7" pattern="[0-9]{4}-[0-9]{2}" placeholder="2016-10" autocomplete="off" value=[over.map(|month| &month.month)];
                p.warning { (visit.say(words::ERASE_WHAT)) }
            }, words::ERASE))
        }
        @if !retention.erasures.is_empty() { (erasures(visit, &retention.erasures)) }
    })
}

fn erasures(visit: &Visit, erasures: &[ErasureView]) -> Markup {
    let by = |name: &str, at: &str| html! { bdi { (name) } " " span.dim { (show::text_moment(visit.language, at)) } };
    Table::of(visit.language, words::ERASURES, erasures.iter().rev())
        .text(words::MONTH, |erasure| &erasure.through)
        .text(words::ASKED_BY, |erasure| by(&erasure.requested_by, &erasure.requested_at))
        .text(words::STATUS, |erasure| match (&erasure.erased_by, &erasure.erased_at) {
            (Some(name), Some(at)) => html! { (visit.say(words::ERASED)) ", " (by(name, at)) },
            _ => html! {
                (visit.say(words::ANOTHER_ERASES))
                @if visit.may(Role::Admin) { (withdraw_form(visit, &erasure.through)) }
            },
        })
        .shown()
}

fn withdraw_form(visit: &Visit, through: &str) -> Markup {
    html! {
        form method="post" action={(PATH) "/erase"} {
            (visit.form_fields())
            input type="hidden" name="through" value=(through);
            button type="submit" name="withdraw" value="on" aria-label={(visit.say(words::TAKE_BACK)) " " (through)} { (visit.say(words::TAKE_BACK)) }
        }
    }
}

/// What is stored of a person, as `POST /ops/people` answers it.
pub(crate) async fn look_up(PostedForm { desk, visit, form, .. }: PostedForm) -> Response {
    let shown = async {
        require_reveal(&desk, &visit.operator)?;
        visit.whole()?;
        let document = tax_id::normalize(form.value("document"));
        tax_id::kind(&document)
            .ok_or_else(|| Problem::new(Code::ValidationFailed).says(visit.say(words::DOCUMENT_WRONG)))?;
        Ok::<_, Problem>(person_screen(&visit, person(&desk, &visit.operator, document).await?.outcome()))
    };
    visit.answer(shown.await)
}

fn person_screen(visit: &Visit, person: &PersonView) -> Screen {
    let table = Table::of(visit.language, words::PERSON, &person.parts)
        .text(words::WHAT, |part| visit.say(heading(part.kind)))
        .text(words::MONTH, |part| &part.month)
        .text(words::STORED_UNTIL, |part| show::text_moment(visit.language, &part.until))
        .amount(words::COUNT, |part| part.count)
        .text(words::ID, |part| objects(visit, part));
    let body = html! {
        section.card aria-label=(visit.say(words::PERSON)) {
            (table.shown())
            @if person.more { p.warning { (visit.say(words::MORE_OF_PERSON)) } }
        }
        p { a href=(PATH) { "← " (visit.say(words::PERSONAL_DATA)) } }
    };
    Screen { section: Section::People, title: person.document.clone(), body }
}

fn objects(visit: &Visit, part: &PersonPart) -> Markup {
    html! {
        @for id in &part.ids {
            p {
                @match part.kind {
                    ItemKind::Charges | ItemKind::Recipients | ItemKind::Merchants => (show::code_link(part.kind.name(), id)),
                    _ => a href={"/console/find?q=" (id)} { code { (id) } },
                }
            }
            @if part.kind == ItemKind::Cards && visit.may(Role::Decide) { (delete_form(visit, id)) }
        }
    }
}

/// The form that deletes a stored card.
pub(crate) fn delete_form(visit: &Visit, id: &str) -> Markup {
    html! {
        form method="post" action={"/console/cards/" (id) "/delete"} {
            (visit.form_fields())
            button type="submit" aria-label={(visit.say(words::DELETE_CARD)) " " (id)} { (visit.say(words::DELETE_CARD)) }
        }
    }
}

/// Deletes a stored card, as the route of `/ops` does.
pub(crate) async fn delete_card(posted: PostedForm) -> Response {
    let deleted = posted.call(cards::delete, "/ops/cards/{id}", json!({})).await;
    posted.visit.done(deleted, PATH, FormOutcome::CardDeleted)
}

/// Asks for an erasure or carries it out, as `POST /ops/erasures` does.
pub(crate) async fn erase(posted: PostedForm) -> Response {
    let PostedForm { desk, visit, form, .. } = &posted;
    let erased = async {
        posted.require(Role::Admin)?;
        let through = form.value("through");
        if form.value("withdraw") == "on" {
            return posted.call_about(through, erasures::cancel, "/ops/erasures/{through}/cancel", json!({})).await;
        }
        let sent = posted.request("/ops/erasures", &json!({"through": through}));
        erasures::erase(State(Arc::clone(desk)), admin(visit)?, sent).await
    };
    let erased = erased.await;
    let is_asked = erased.as_ref().is_ok_and(|answer| answer.status() == StatusCode::ACCEPTED);
    let outcome = match (form.value("withdraw"), is_asked) {
        ("on", _) => FormOutcome::ErasureWithdrawn,
        (_, true) => FormOutcome::ErasureAsked,
        (_, false) => FormOutcome::DataErased,
    };
    visit.done(erased, PATH, outcome)
}
