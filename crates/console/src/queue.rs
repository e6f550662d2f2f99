//! The queue: what waits for a decision, one item with the entries that a decision would book, and
//! the decision.

use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::id::ObjectId;
use maud::{Markup, html};
use serde_json::json;

use crate::form::optional;
use crate::page::{Screen, Section, Visit};
use crate::paging::{self, pager_named, part};
use crate::sent_form::PostedForm;
use crate::show;
use crate::show::Head::{Amount, Text};
use crate::wire_words;
use crate::words::{self, Word};
use ops::desk::Desk;
use ops::merchants;
use ops::operator::Decider;
use ops::other_nodes::{self, Decision};
use ops::preview::{self, Follows, Steps, Verdict};
use ops::queue::{KINDS, QueueItem, is_shown, kind_name, view, waiting};
use ops::rail_items;
use web::caller::PathId;
use web::credential::Role;
use web::keyed::KeyedBody;
use web::problem::{Code, Problem};
use web::reply::query;
use web::session::FormOutcome;

/// Items of the list on a page.
const ITEMS_A_PAGE: u64 = 50;
/// Postings of one decision that are shown.
const POSTINGS_MAX: usize = 60;

/// List of the items that wait, oldest first.
pub(crate) async fn list(State(desk): State<Arc<Desk>>, visit: Visit, parts: Parts) -> Response {
    visit.answer(list_screen(&desk, &visit, &parts))
}

fn list_screen(desk: &Desk, visit: &Visit, parts: &Parts) -> Result<Screen, Problem> {
    let pairs = query(parts)?;
    let kind = optional(&pairs, "kind")?.filter(|kind| KINDS.contains(kind));
    let is_wanted = |item: &_| {
        is_shown(item, visit.now)
            && kind.is_none_or(|kind| kind == kind_name(item))
            && visit.scope.has(item.ledger.group())
    };
    let page = part(&pairs, ITEMS_A_PAGE)?;
    let through = page.skip().saturating_add(page.per_page);
    let (total, items) = desk.engine.queue(is_wanted, usize::try_from(through).unwrap_or(usize::MAX));
    let items = paging::items(&items, page).iter().map(|item| view(desk, item)).collect::<Result<Vec<_>, _>>()?;
    let body = html! {
        form.filters {
            (visit.scope.field())
            div {
                label for="kind" { (visit.say(words::KIND)) }
                select id="kind" name="kind" {
                    option value="" { (visit.say(words::ALL_KINDS)) }
                    @for known in KINDS { option value=(known) selected[kind == Some(known)] { (visit.say(kind_word(known))) } }
                }
            }
            button type="submit" { (visit.say(words::SHOW)) }
        }
        section.card aria-label=(visit.say(words::QUEUE)) {
            p { (total) " " (visit.say(words::WAITING_COUNT)) }
            @if !items.is_empty() {
                form action="/console/queue/many" {
                    (show::scrolled(visit.say(words::QUEUE), table(desk, visit, &items)))
                    @if visit.may(Role::Decide) {
                        p.actions {
                            button name="decision" value="approve" { (visit.say(words::APPROVE_CHOSEN)) }
                            button name="decision" value="reject" { (visit.say(words::REJECT_CHOSEN)) }
                        }
                    }
                }
            }
            (pager_named(visit, parts, "page", page, total as u64))
        }
    };
    Ok(Screen { section: Section::Queue, title: visit.say(words::QUEUE).to_owned(), body })
}

fn table(desk: &Desk, visit: &Visit, items: &[QueueItem]) -> Markup {
    let choose = visit.may(Role::Decide).then_some(Text(words::CHOOSE));
    let [kind, when, merchant, name] = [words::KIND, words::WHEN, words::MERCHANT, words::NAME].map(Text);
    let heads: Vec<_> = choose.into_iter().chain([kind, when, merchant, name, Amount(words::AMOUNT)]).collect();
    let rows = html! {
        @for item in items {
            tr {
                @if choose.is_some() {
                    td {
                        @if is_approved(item) {
                            input type="checkbox" name="id" value=(item.id) aria-label={(visit.say(words::CHOOSE)) " " (item.id)};
                        }
                    }
                }
                td { a href={"/console/queue/" (item.id)} { (visit.say(item_word(item))) } }
                td { (show::text_moment(visit.language, &item.created_at)) }
                td { (merchant_link(desk, visit, item.merchant_id.as_deref())) }
                td { (of_what(visit, item)) }
                td.amount { @if let Some(amount) = item.amount { (visit.money(amount)) } }
            }
        }
    };
    show::table(visit.language, &heads, rows)
}

/// A link to a merchant by its name; nothing for the house.
pub(crate) fn merchant_link(desk: &Desk, visit: &Visit, id: Option<&str>) -> Markup {
    let Some(id) = id else { return html! {} };
    let group = merchants::find(desk, id).ok();
    let name = group.map(|group| show::owner_name(&desk.engine, visit.language, ledger::id::LedgerId::Merchant(group)));
    html! { @if let Some(name) = name { a href={"/console/merchants/" (id)} { bdi { (name) } } } }
}

/// Whether an item is approved or rejected. An outcome that a rail left unknown is settled instead.
fn is_approved(item: &QueueItem) -> bool {
    !matches!(item.kind, "payout" | "rail")
}

/// The form for an outcome that a rail left unknown: two operators say it, one after the other.
fn settlement(visit: &Visit, item: &QueueItem) -> Markup {
    let is_own = item.requested_by.as_deref() == Some(visit.operator.name.as_str());
    html! {
        section.card aria-labelledby="settle" {
            h2 id="settle" { (visit.say(words::SETTLE_BY_WORD)) }
            p { (visit.say(words::SETTLE_WHAT)) }
            @if is_own { p.warning { (visit.say(words::SECOND_OPERATOR)) } }
            @if visit.may(Role::Decide) && !is_own {
                form method="post" action={"/console/queue/" (item.id) "/settle"} {
                    (visit.form_fields())
                    label for="outcome" { (visit.say(words::WHAT_BECAME)) }
                    select id="outcome" name="outcome" required {
                        option value="" {}
                        @for (name, word) in [("happened", words::HAPPENED), ("did_not_happen", words::DID_NOT_HAPPEN)] {
                            option value=(name) selected[item.outcome == Some(name)] { (visit.say(word)) }
                        }
                    }
                    label for="reference" { (visit.say(words::REFERENCE)) }
                    input id="reference" name="reference" required maxlength="100" autocomplete="off" value=[&item.reference];
                    label for="reason" { (visit.say(words::NOTES)) }
                    textarea id="reason" name="reason" rows="2" maxlength="500" required {}
                    p.actions { button.primary type="submit" { (visit.say(words::SETTLE_BY_WORD)) } }
                }
            }
        }
    }
}

/// Takes an operator's word, as the route of `/ops` does.
pub(crate) async fn settle(
    State(desk): State<Arc<Desk>>,
    PathId(id): PathId,
    PostedForm { visit, form }: PostedForm,
) -> Response {
    let settled = async {
        visit.operator.require(Role::Decide)?;
        visit.sees(ObjectId::parse(&id).map(|id| desk.engine.ids().group(id)))?;
        let [outcome, reference, reason] = ["outcome", "reference", "reason"].map(|name| form.value(name));
        let body = json!({ "outcome": outcome, "reference": reference, "reason": reason }).to_string();
        let sent = KeyedBody::of_form(form.value("key"), "/ops/rail-items/{id}/settle", body);
        rail_items::settle(State(Arc::clone(&desk)), Decider(visit.operator.clone()), PathId(id), sent).await
    };
    visit.done(settled.await, "/console/queue", FormOutcome::Decided)
}

/// The name of an item: that of a recipient, or what an operator says of an entry.
fn of_what(visit: &Visit, item: &QueueItem) -> Markup {
    html! {
        bdi { (item.name.as_deref().unwrap_or_default()) }
        @if let (Some(debit), Some(credit)) = (&item.debit, &item.credit) {
            (show::breakable(debit)) " → " (show::breakable(credit)) br;
            bdi { (item.reason.as_deref().unwrap_or_default()) } " · "
            bdi { (item.reference.as_deref().unwrap_or_default()) } br;
            span.dim {
                (visit.say(words::ASKED_BY)) " " bdi { (item.requested_by.as_deref().unwrap_or_default()) }
            }
        }
    }
}

/// What an item is, in words. Of the entries, those of a merchant's group are write-offs and
/// returns of withdrawals.
pub(crate) fn item_word(item: &QueueItem) -> Word {
    match (item.kind, &item.merchant_id) {
        ("entry", None) => words::HOUSE_ENTRY,
        ("entry", Some(_)) if item.withdrawal.is_some() => words::RETURN_ENTRY,
        ("entry", Some(_)) => words::WRITE_OFF_ENTRY,
        (kind, _) => kind_word(kind),
    }
}

/// The kind of an item in words.
pub(crate) fn kind_word(kind: &str) -> Word {
    match kind {
        "recipient" => words::RECIPIENT,
        "withdrawal" => words::WITHDRAWAL,
        "refund" => words::REFUND,
        "dispute" => words::DISPUTE,
        "entry" => words::OPERATOR_ENTRY,
        "rail" => words::RAIL_ITEM,
        _ => words::PAYOUT,
    }
}

/// One item: what it is, and both decisions with their entries.
pub(crate) async fn item(State(desk): State<Arc<Desk>>, visit: Visit, PathId(id): PathId) -> Response {
    visit.answer(item_screen(&desk, &visit, &id).await)
}

async fn item_screen(desk: &Desk, visit: &Visit, id: &str) -> Result<Screen, Problem> {
    let found = ObjectId::parse(id).and_then(|id| waiting(desk, id));
    let found = found.ok_or_else(|| Problem::new(Code::NotFound).says(visit.say(words::WAITS_NO_MORE)))?;
    visit.sees(found.ledger.group())?;
    let item = view(desk, &found)?;
    let mut decisions = Vec::new();
    if is_approved(&item) {
        for verdict in [Verdict::Approve, Verdict::Reject] {
            decisions.push((verdict, preview::steps(desk, &found, verdict).await));
        }
    }
    let title = match item.amount {
        Some(amount) => format!("{} · {}", visit.say(item_word(&item)), visit.money(amount)),
        None => visit.say(item_word(&item)).to_owned(),
    };
    let body = html! {
        section.card aria-label=(visit.say(words::WHAT)) { (facts(desk, visit, &item)) }
        @if !is_approved(&item) { (settlement(visit, &item)) }
        @for (verdict, steps) in &decisions { (decision(desk, visit, &item, *verdict, steps)) }
    };
    Ok(Screen { section: Section::Queue, title, body })
}

fn facts(desk: &Desk, visit: &Visit, item: &QueueItem) -> Markup {
    let mut pairs = vec![
        (visit.say(words::ID), html! { code { (item.id) } }),
        (visit.say(words::MERCHANT), merchant_link(desk, visit, item.merchant_id.as_deref())),
        (visit.say(words::WHEN), show::text_moment(visit.language, &item.created_at)),
        (visit.say(words::STATUS), html! { (visit.say(wire_words::waiting_status(item.status))) }),
    ];
    if let Some(by) = &item.requested_by {
        pairs.push((visit.say(words::ASKED_BY), html! { bdi { (by) } }));
    }
    let accounts = [(words::DEBIT, &item.debit), (words::CREDIT, &item.credit)];
    for (word, account) in accounts {
        pairs.extend(account.as_ref().map(|account| (visit.say(word), show::breakable(account))));
    }
    for (word, said) in [(words::NOTES, &item.reason), (words::REFERENCE, &item.reference)] {
        pairs.extend(said.as_ref().map(|said| (visit.say(word), html! { bdi { (said) } })));
    }
    pairs.extend(item.withdrawal.as_ref().map(|id| (visit.say(words::WITHDRAWAL), html! { code { (id) } })));
    pairs.extend(item.effective_date.as_ref().map(|day| (visit.say(words::TOOK_EFFECT), html! { (day) })));
    if let Some(name) = &item.name {
        pairs.push((visit.say(words::NAME), html! { bdi { (name) } }));
    }
    if let Some(document) = &item.document {
        pairs.push((visit.say(words::DOCUMENT), html! { (document) }));
    }
    if let Some(review) = item.review {
        let review = if review == "registration" { words::REVIEW_REGISTRATION } else { words::REVIEW_ACCOUNT };
        pairs.push((visit.say(words::REVIEW), html! { (visit.say(review)) }));
    }
    if let Some(txid) = &item.payment_id {
        pairs.push((visit.say(words::CHARGE), html! { a href={"/console/charges/" (txid)} { code { (txid) } } }));
    }
    pairs.extend(
        item.approvable_until
            .as_ref()
            .map(|until| (visit.say(words::APPROVABLE_UNTIL), show::text_moment(visit.language, until))),
    );
    if !item.disputes.is_empty() {
        pairs.push((visit.say(words::DISPUTE), html! { (visit.say(words::REFUND_WAITS)) }));
    }
    if item.exceeds_charge == Some(true) {
        pairs.push((visit.say(words::NOTES), html! { (visit.say(words::EXCEEDS_CHARGE)) }));
    }
    if let Some(recipient) = &item.recipient_id {
        let link = html! { a href={"/console/recipients/" (recipient)} { code { (recipient) } } };
        pairs.push((visit.say(words::RECIPIENT), link));
    }
    if let Some(account) = &item.destination {
        pairs.push((visit.say(words::DESTINATION), show::bank_account(account)));
    }
    show::facts(pairs)
}

type PreviewResult = Result<Steps, Problem>;

fn decision(desk: &Desk, visit: &Visit, item: &QueueItem, verdict: Verdict, steps: &PreviewResult) -> Markup {
    let (name, wants_notes) = (verdict.name(), verdict == Verdict::Reject && item.kind != "dispute");
    let heading = visit.say(verdict_word(item.kind, verdict));
    let mut room = POSTINGS_MAX;
    let is_own = item.requested_by.as_deref() == Some(visit.operator.name.as_str());
    let needs_another = verdict == Verdict::Approve && is_own;
    html! {
        section.card aria-labelledby=(name) {
            h2 id=(name) { (heading) }
            @match steps {
                Err(problem) => p.warning { (show::problem(visit.language, problem)) },
                Ok(steps) => {
                    @for (follows, record) in steps {
                        h3 { (visit.say(follows_word(*follows))) }
                        (show::entries(&desk.engine, visit.language, &record.entries, &mut room))
                    }
                    @if needs_another { p.warning { (visit.say(words::SECOND_OPERATOR)) } }
                    @if visit.may(Role::Decide) && !needs_another {
                        form method="post" action={"/console/queue/" (item.id)} {
                            (visit.form_fields())
                            input type="hidden" name="kind" value=(item.kind);
                            input type="hidden" name="version" value=(item.version);
                            input type="hidden" name="decision" value=(name);
                            @if wants_notes {
                                label for={"notes-" (name)} { (visit.say(words::NOTES)) }
                                textarea id={"notes-" (name)} name="notes" rows="2" maxlength="500" required {}
                            }
                            p.actions { button.primary[verdict == Verdict::Approve] type="submit" { (heading) } }
                        }
                    }
                }
            }
        }
    }
}

/// When a Record of a preview is booked, in words.
pub(crate) fn follows_word(follows: Follows) -> Word {
    match follows {
        Follows::Decision => words::BOOKS_AT_ONCE,
        Follows::Transfer => words::BOOKS_AT_TRANSFER,
    }
}

/// A verdict in words, by the kind of what it is on.
pub(crate) fn verdict_word(kind: &str, verdict: Verdict) -> Word {
    match (kind, verdict) {
        ("dispute", Verdict::Approve) => words::ACCEPT,
        ("dispute", Verdict::Reject) => words::RELEASE,
        (_, Verdict::Approve) => words::APPROVE,
        (_, Verdict::Reject) => words::REJECT,
    }
}

/// Takes a decision, as the route of `/ops` does.
pub(crate) async fn decide(
    State(desk): State<Arc<Desk>>,
    PathId(id): PathId,
    PostedForm { visit, form }: PostedForm,
) -> Response {
    let decided = async {
        let verdict = Verdict::named(form.value("decision")).ok_or_else(|| Problem::new(Code::ValidationFailed))?;
        let (kind, notes, key) = (form.value("kind"), form.value("notes"), form.value("key"));
        let version = form.value("version").parse().ok();
        take(&desk, &visit, &OperatorDecision { kind, id: &id, version, verdict, notes, key }).await
    };
    // The item is shown again, as it is now.
    let decided = decided.await.map_err(|problem| match problem.code() {
        Code::ItemChanged => problem.says(visit.say(words::ITEM_CHANGED)),
        _ => problem,
    });
    visit.done(decided, "/console/queue", FormOutcome::Decided)
}

/// A decision that an operator takes, as a form has it.
pub(crate) struct OperatorDecision<'a> {
    /// The kind of the item, as the queue names it.
    pub kind: &'a str,
    /// The item's id.
    pub id: &'a str,
    /// The version that was shown.
    pub version: Option<u32>,
    /// What is decided.
    pub verdict: Verdict,
    /// The reason; of a rejection.
    pub notes: &'a str,
    /// The idempotency key.
    pub key: &'a str,
}

/// Takes a decision where the item's merchant is.
pub(crate) async fn take(desk: &Arc<Desk>, visit: &Visit, taken: &OperatorDecision<'_>) -> Result<(), Problem> {
    visit.operator.require(Role::Decide)?;
    visit.sees(ObjectId::parse(taken.id).map(|id| desk.engine.ids().group(id)))?;
    let decision = Decision {
        operator: visit.operator.name.clone(),
        kind: taken.kind.to_owned(),
        id: taken.id.to_owned(),
        version: taken.version,
        verdict: taken.verdict,
        notes: taken.notes.to_owned(),
        key: taken.key.to_owned(),
    };
    other_nodes::decide(desk, decision).await
}
