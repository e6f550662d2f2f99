//! Registration of a recipient, unmasked: shown to an operator with the right `reveal`, in the
//! answer to a form, once a Record says who reads it.

use axum::response::Response;
use ledger::personal::{Address, BankAccount, Phone, RecipientProfile};
use maud::{Markup, html};

use crate::page::{Screen, Section, Visit};
use crate::sent_form::PostedForm;
use crate::show;
use crate::words;
use ops::desk::Desk;
use ops::recipients::revealed;
use web::credential::Role;
use web::problem::Problem;

/// The form that asks for the registration; nothing for an operator without the right.
pub(crate) fn form(desk: &Desk, visit: &Visit, id: &str) -> Markup {
    let content = html! {
        p.dim { (visit.say(words::REVEAL_WHAT)) }
        (visit.form(&format!("/console/recipients/{id}/reveal"), html! {}, words::REVEAL))
    };
    let may_reveal = desk.ops_tokens.read().reveals(&visit.operator.name);
    html! { @if may_reveal { (visit.card("registration", words::REGISTRATION, content)) } }
}

/// The registration, as the route of `/ops` answers it.
pub(crate) async fn reveal(posted: PostedForm) -> Response {
    let PostedForm { desk, visit, id, .. } = &posted;
    let shown = async {
        posted.require(Role::Read)?;
        Ok::<_, Problem>(screen(visit, id, revealed(desk, &visit.operator, id).await?.outcome()))
    };
    visit.answer(shown.await)
}

fn screen(visit: &Visit, id: &str, profile: &RecipientProfile) -> Screen {
    let body = html! {
        (person(visit, words::REGISTRATION, profile))
        @for partner in &profile.partners { (person(visit, words::PARTNER, partner)) }
        p { a href={"/console/recipients/" (id)} { "← " (visit.say(words::RECIPIENT)) } }
    };
    let title = if profile.name.is_empty() { "—".to_owned() } else { profile.name.clone() };
    Screen { section: Section::Merchants, title, body }
}

fn person(visit: &Visit, heading: words::Word, person: &RecipientProfile) -> Markup {
    let text = |text: &str| html! { bdi { (text) } };
    let mut pairs =
        vec![(visit.say(words::NAME), text(&person.name)), (visit.say(words::DOCUMENT), text(&person.document))];
    let optional =
        [(words::EMAIL, &person.email), (words::BIRTH_DATE, &person.birthdate), (words::MOTHER, &person.mother_name)];
    for (word, said) in optional {
        pairs.extend(said.as_ref().map(|said| (visit.say(word), text(said))));
    }
    if !person.phones.is_empty() {
        let phone = |Phone { ddd, number }: &Phone| format!("({ddd}) {number}");
        let phones: Vec<_> = person.phones.iter().map(phone).collect();
        pairs.push((visit.say(words::PHONES), text(&phones.join(", "))));
    }
    if let Some(Address { street, number, neighborhood, city, state, zip_code }) = &person.address {
        let whole = format!("{street}, {number}, {neighborhood}, {city} {state}, {zip_code}");
        pairs.push((visit.say(words::ADDRESS_OF), text(&whole)));
    }
    if let Some(income) = person.income_cents {
        pairs.push((visit.say(words::INCOME), html! { (visit.money(income)) }));
    }
    pairs.extend(person.bank.as_ref().map(|bank| (visit.say(words::DESTINATION), account(bank))));
    html! {
        section.card aria-label=(visit.say(heading)) {
            h2 { (visit.say(heading)) }
            (show::facts(pairs))
        }
    }
}

fn account(account: &BankAccount) -> Markup {
    let BankAccount { bank_code, agencia, agencia_dv, conta, conta_dv, kind, legal_name, document, ispb } = account;
    let with_digit = |number: &str, digit: &Option<String>| match digit {
        Some(digit) => format!("{number}-{digit}"),
        None => number.to_owned(),
    };
    let branch = agencia.as_ref().map(|agencia| with_digit(agencia, agencia_dv));
    html! {
        @for part in [bank_code, ispb, &branch].into_iter().flatten() { (part) " · " }
        (with_digit(conta, conta_dv)) " · " (kind.name()) " · "
        bdi { (legal_name.as_deref().unwrap_or_default()) } " " (document)
    }
}
