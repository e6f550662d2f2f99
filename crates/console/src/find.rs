//! The find box: a txid, any id, the name of a ledger or the number of a Record leads straight to
//! its page. An id carries its group, so nothing is searched for.

use std::sync::Arc;

use actors::engine::Unavailable;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use ledger::cashout::Cashout;
use ledger::charge::Charge;
use ledger::dispute::Dispute;
use ledger::id::{LedgerId, ObjectId};
use ledger::refund::Refund;
use ledger::withdrawal::Withdrawal;
use wire::cut_text::{named_record, record_name};

use crate::page::Visit;
use crate::words;
use ops::desk::Desk;
use ops::{books, merchants, queue};
use web::problem::{Code, Problem};
use web::reply::{query, single};
use web::views::house_entry::OperatorEntry;
use web::views::ledger::ledger_name;
use web::views::recipient::{find_recipient, recipient_id};
use webhooks::event::OutboxEvent;

/// Leads to the page of what is named.
pub(crate) async fn find(State(desk): State<Arc<Desk>>, visit: Visit, parts: Parts) -> Response {
    let found = query(&parts).and_then(|pairs| {
        let name = single(&pairs, "q")?.unwrap_or_default().trim().to_owned();
        Ok((name, Problem::new(Code::NotFound).says(visit.say(words::FOUND_NOTHING))))
    });
    let found = match found {
        Ok((name, nothing)) => place(&desk, &name).await.and_then(|found| found.ok_or(nothing)),
        Err(problem) => Err(problem),
    };
    match found {
        Ok(path) => Redirect::to(&path).into_response(),
        Err(problem) => visit.answer(Err(problem)),
    }
}

/// The path of the page of what a name stands for; `None` if it stands for nothing.
async fn place(desk: &Desk, name: &str) -> Result<Option<String>, Problem> {
    match place_of_found(desk, name)? {
        None => place_of_plan(desk, name).await,
        found => Ok(found),
    }
}

/// The page of the merchant whose plan has this id. A plan has no Records of its own to lead to.
async fn place_of_plan(desk: &Desk, name: &str) -> Result<Option<String>, Problem> {
    let Some(id) = ObjectId::parse(name) else { return Ok(None) };
    let group = desk.engine.ids().group(id);
    let Some(merchant) = desk.engine.merchant(group, |row| row.id) else { return Ok(None) };
    let found = desk.engine.read_merchant(group, move |books, _| books.plan(id).is_some()).await;
    // One of a merchant of another process may be a plan of that merchant.
    let is_plan = if let Err(Unavailable::Elsewhere(_)) = found { true } else { found? };
    Ok(is_plan.then(|| format!("/console/merchants/{}", merchant.uuid())))
}

/// The charge of a split's id, which is the charge's txid with the place of the split behind it.
fn charge_of_split(desk: &Desk, name: &str) -> Result<Option<Charge>, Problem> {
    let Some((txid, place)) = name.split_once('-').filter(|(txid, _)| txid.len() == 32) else { return Ok(None) };
    let (Some(id), Ok(place)) = (ObjectId::parse(txid), place.parse::<usize>()) else { return Ok(None) };
    let charge = desk.engine.object::<Charge>(id)?;
    Ok(charge.filter(|charge| place < charge.terms.splits.len()))
}

fn place_of_found(desk: &Desk, name: &str) -> Result<Option<String>, Problem> {
    if let Some(at) = named_record(name.trim_start_matches('#')) {
        return Ok(desk.engine.has_record(at).then(|| format!("/console/records/{}", record_name(at))));
    }
    if let Ok(ledger) = books::find(desk, name) {
        return Ok(Some(format!("/console/ledgers/{}", ledger_name(&desk.engine, ledger))));
    }
    if let Some(charge) = charge_of_split(desk, name)? {
        return Ok(Some(format!("/console/charges/{}", charge.id.txid())));
    }
    let Some(id) = ObjectId::parse(name) else { return Ok(None) };
    if merchants::find(desk, name).is_ok() {
        return Ok(Some(format!("/console/merchants/{}", id.uuid())));
    }
    if find_recipient(&desk.engine, id).is_some() {
        return Ok(Some(format!("/console/recipients/{}", id.uuid())));
    }
    let engine = &desk.engine;
    if engine.object::<Charge>(id)?.is_some() {
        return Ok(Some(format!("/console/charges/{}", id.txid())));
    }
    let charge = engine.object::<Refund>(id)?.map(|refund| refund.charge);
    let charge = charge.or(engine.object::<Dispute>(id)?.map(|dispute| dispute.charge));
    if let Some(charge) = charge {
        return Ok(Some(format!("/console/charges/{}", charge.txid())));
    }
    if let Some(withdrawal) = engine.object::<Withdrawal>(id)? {
        let recipient = recipient_id(engine, withdrawal.recipient).unwrap_or_default();
        let waits = queue::waiting(desk, id).is_some();
        let place = if waits { format!("queue/{}", id.uuid()) } else { format!("recipients/{}", recipient.uuid()) };
        return Ok(Some(format!("/console/{place}")));
    }
    if let Some(key) = engine.api_key(id) {
        let merchant = engine.merchant(key.group, |row| row.id).unwrap_or_default();
        let place = if key.revoked { format!("merchants/{}", merchant.uuid()) } else { format!("keys/{}", id.uuid()) };
        return Ok(Some(format!("/console/{place}")));
    }
    let is_entry = OperatorEntry::find(engine, id)?.is_some();
    if is_entry && queue::waiting(desk, id).is_some() {
        return Ok(Some(format!("/console/queue/{}", id.uuid())));
    }
    let group = engine.ids().group(id);
    if OutboxEvent::find(engine, group, id)?.is_some() {
        return Ok(Some(format!("/console/webhooks/{}", id.uuid())));
    }
    let merchant = LedgerId::Merchant(group);
    let is_known = engine.object::<Cashout>(id)?.is_some()
        || is_entry
        || engine.subscription(merchant, id)?.is_some()
        || engine.stored_card(merchant, id)?.is_some();
    let first = is_known.then(|| engine.history(id)).transpose()?.and_then(|mut records| records.next());
    Ok(first.transpose()?.map(|(at, _)| format!("/console/records/{}", record_name(at))))
}
