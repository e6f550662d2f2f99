//! Registration of a recipient: masked on the page of its decision; unmasked for an operator with
//! the right `reveal`, in the answer to a form, once a Record says who reads it.

use axum::response::Response;
use ledger::personal::{Address, Phone};
use ledger::{BankAccount, ObjectId, RecipientProfile};
use maud::{Markup, html};
use wire::bank_names::bank_name;
use wire::mask;

use crate::show::Facts;
use crate::{PostedForm, Screen, Section, Visit, Word, item, wire_words, words};
use ops::Desk;
use ops::queue::waiting;
use ops::recipients::revealed;
use web::Role;
use web::views::recipient::{find_recipient, open};
use web::views::registration::covered;

/// The form that asks for the registration; nothing for an operator without the right.
pub(crate) fn form(desk: &Desk, visit: &Visit, id: &str) -> Markup {
    let content = html! {
        p.dim { (visit.say(words::REVEAL_WHAT)) }
        (visit.form(&format!("/console/recipients/{id}/reveal"), html! {}, words::REVEAL))
    };
    let may_reveal = desk.ops_tokens.read().reveals(&visit.operator.name);
    html! { @if may_reveal { (visit.card("registration", words::REVEAL, content)) } }
}

/// The registration on the page of its decision: masked, with the form that asks for it whole; or
/// whole, once that was asked for.
pub(crate) fn on_item(desk: &Desk, visit: &Visit, id: &str, revealed: Option<&RecipientProfile>) -> Markup {
    let row = ObjectId::parse(id).and_then(|id| find_recipient(&desk.engine, id));
    let masked = || row.map(|(_, row)| covered(open(&desk.engine, &row, row.profiles.current())));
    html! {
        @if let Some(profile) = revealed { (persons(visit, profile, str::to_owned)) } @else {
            @if let Some(profile) = masked() { (persons(visit, &profile, mask::document)) }
            (form(desk, visit, id))
        }
    }
}

/// A recipient and its partners.
fn persons(visit: &Visit, profile: &RecipientProfile, document: fn(&str) -> String) -> Markup {
    html! {
        (person(visit, words::REGISTRATION, profile, document))
        @for partner in &profile.partners { (person(visit, words::PARTNER, partner, document)) }
    }
}

/// The registration, as the route of `/ops` answers it.
pub(crate) async fn reveal(posted: PostedForm) -> Response {
    let PostedForm { desk, visit, id, .. } = &posted;
    let shown = async {
        posted.require(Role::Read)?;
        let shown = revealed(desk, &visit.operator, id).await?;
        match ObjectId::parse(id).filter(|id| waiting(desk, *id).is_some()) {
            Some(item) => item::screen(desk, visit, item, Some(shown.outcome())).await,
            None => Ok(screen(visit, id, shown.outcome())),
        }
    };
    visit.answer(shown.await)
}

fn screen(visit: &Visit, id: &str, profile: &RecipientProfile) -> Screen {
    let body = html! {
        (persons(visit, profile, str::to_owned))
        p { a href={"/console/recipients/" (id)} { "← " (visit.say(words::RECIPIENT)) } }
    };
    let title = if profile.name.is_empty() { "—".to_owned() } else { profile.name.clone() };
    Screen { section: Section::Merchants, title, body }
}

fn person(visit: &Visit, heading: Word, person: &RecipientProfile, document: fn(&str) -> String) -> Markup {
    let phone = |Phone { ddd, number }: &Phone| format!("({ddd}) {number}");
    let phones = person.phones.iter().map(phone).collect::<Vec<_>>().join(", ");
    let address = person.address.as_ref().map(|Address { street, number, neighborhood, city, state, zip_code }| {
        format!("{street}, {number}, {neighborhood}, {city} {state}, {zip_code}")
    });
    let mut facts = Facts::of(visit);
    facts
        .text(words::NAME, &*person.name)
        .text(words::DOCUMENT, &*document(&person.document))
        .text(words::EMAIL, person.email.as_deref())
        .text(words::BIRTH_DATE, person.birthdate.as_deref())
        .text(words::MOTHER, person.mother_name.as_deref())
        .text(words::PHONES, Some(&*phones).filter(|phones| !phones.is_empty()))
        .text(words::ADDRESS_OF, address.as_deref())
        .money(words::INCOME, person.income_cents)
        .add(words::DESTINATION, person.bank.as_ref().map(|bank| account(visit, bank, document)));
    html! {
        section.card aria-label=(visit.say(heading)) {
            h2 { (visit.say(heading)) }
            (facts.shown())
        }
    }
}

fn account(visit: &Visit, account: &BankAccount, shown: fn(&str) -> String) -> Markup {
    let BankAccount { bank_code, agencia, agencia_dv, conta, conta_dv, kind, legal_name, document, ispb } = account;
    let bank = bank_name(bank_code.as_deref(), ispb.as_deref());
    let with_digit = |number: &str, digit: &Option<String>| match digit {
        Some(digit) => format!("{number}-{digit}"),
        None => number.to_owned(),
    };
    let branch = agencia.as_ref().map(|agencia| with_digit(agencia, agencia_dv));
    html! {
        @if let Some(name) = bank { (name) " · " }
        @for part in [bank_code, ispb, &branch].into_iter().flatten() { (part) " · " }
        (with_digit(conta, conta_dv)) " · " (visit.say(wire_words::account_kind(*kind))) " · "
        bdi { (legal_name.as_deref().unwrap_or_default()) } " " (shown(document))
    }
}
