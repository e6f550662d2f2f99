//! The queue: what waits for a decision, and the decision.

use std::sync::Arc;

use actors::engine::WaitingPage;
use axum::response::Response;
use ledger::id::ObjectId;
use maud::{Markup, html};
use serde_json::json;

use crate::list_filter::{self, Field, RECIPIENT_FIELD, as_sent, merchant_field};
use crate::paging::{self, part};
use crate::table::Table;
use crate::{PageRequest, PostedForm, Screen, Section, Visit, Word, item, pager_named, show, wire_words, words};
use ops::Desk;
use ops::merchants;
use ops::other_nodes::{self, Decision};
use ops::preview::{Follows, Verdict};
use ops::queue::{KINDS, QueueFilter, waiting};
use ops::queue_item::{QueueItem, is_decided_on, view};
use ops::rail_items;
use ops::wire_words::FLAGS;
use web::{Code, FormOutcome, Problem, Result, Role, query};

/// Items of the list on a page.
const ITEMS_A_PAGE: u64 = 50;

/// List of the items that wait, oldest first.
pub(crate) async fn list(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, parts, .. } = &request;
    let pairs = query(parts)?;
    let filter = QueueFilter { by_deadline: true, ..QueueFilter::read(desk, &as_sent(visit, parts)?)? };
    let page = part(&pairs, ITEMS_A_PAGE)?;
    let through = usize::try_from(page.skip().saturating_add(page.per_page)).unwrap_or(usize::MAX);
    let WaitingPage { items, total, amount } = filter.page(desk, through)?;
    let items = paging::items(&items, page).iter().map(|item| view(desk, item)).collect::<Result<Vec<_>, _>>()?;
    let body = html! {
        (list_filter::form(desk, visit, &pairs, &fields(visit)))
        section.card aria-label=(visit.say(words::QUEUE)) {
            p { (total) " " (visit.say(words::WAITING_COUNT)) ", " (visit.say(words::SUM_OF_THESE)) " " (visit.money(amount)) }
            @if !items.is_empty() {
                form action="/console/queue/many" {
                    (table(desk, visit, &items))
                    @if visit.may(Role::Decide) {
                        p.actions {
                            output id="chosen-sum" aria-label={(visit.say(words::CHOSEN)) ", " (visit.say(words::SUM_OF_THESE))} {}
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

fn fields(visit: &Visit) -> Vec<Field<'static>> {
    let of_item = [
        Field::Choice("kind", words::KIND, KINDS.map(|kind| (kind, kind_word(kind))).into()),
        Field::Choice("flag", words::FLAGS, FLAGS.0.into()),
        Field::Amount("amount_from", words::AMOUNT_FROM),
        Field::Amount("amount_to", words::AMOUNT_TO),
        Field::Day("from", words::DAY_FROM),
        Field::Day("to", words::DAY_TO),
        RECIPIENT_FIELD,
    ];
    of_item.into_iter().chain(merchant_field(visit)).collect()
}

fn table(desk: &Desk, visit: &Visit, items: &[QueueItem]) -> Markup {
    let mut table = Table::list(visit.language, words::QUEUE, items);
    if visit.may(Role::Decide) {
        table = table.column("choose", words::CHOOSE, |item| {
            let label = format!("{} {}", visit.say(words::CHOOSE), item.id);
            html! {
                @if is_approved(item) {
                    input type="checkbox" name="id" value=(item.id) data-amount=[item.amount] aria-label=(label);
                }
            }
        });
    }
    table
        .column("name", words::WHAT, |item| {
            html! { a href=(page_of(item)) { (visit.say(item_word(item))) } " " (of_what(visit, item)) }
        })
        .column("when", words::WHEN, |item| show::text_moment(visit.language, &item.created_at))
        .column("more", words::MERCHANT, |item| merchant_link(desk, visit, item.merchant_id.as_deref()))
        .column("status", words::FLAGS, |item| flag_list(visit, item))
        .column("amount", words::AMOUNT, |item| item.amount.map(|amount| visit.money(amount)).unwrap_or_default())
        .shown()
}

/// The page on which an item is decided.
fn page_of(item: &QueueItem) -> String {
    match item.kind {
        "period" => format!("/console/periods/{}", item.id),
        "batch" => "/console/house".to_owned(),
        "erasure" => "/console/people".to_owned(),
        _ => format!("/console/queue/{}", item.id),
    }
}

/// The flags of an item, and whether it waits for a second operator.
pub(crate) fn flag_list(visit: &Visit, item: &QueueItem) -> Markup {
    let is_second = item.status == "waiting_second";
    html! {
        @if is_second { span.badge.open { (visit.say(wire_words::WAITING_STATUSES.of(item.status))) } " " }
        @for flag in &item.flags { span.badge.bad { (visit.say(wire_words::FLAGS.of(flag))) @if let Some(count) = item.returned_before.filter(|_| *flag == "returned_before") { ": " (count) } } " " }
    }
}

/// A link to a merchant by its name; nothing for the house.
pub(crate) fn merchant_link(desk: &Desk, visit: &Visit, id: Option<&str>) -> Markup {
    let Some(id) = id else { return html! {} };
    let group = merchants::find(desk, id).ok();
    let name = group.map(|group| show::owner_name(&desk.engine, visit.language, ledger::id::LedgerId::Merchant(group)));
    html! { @if let Some(name) = name { a href={"/console/merchants/" (id)} { bdi { (name) } } } }
}

/// Whether an item is approved or rejected. An outcome that a rail left unknown is settled instead.
pub(crate) fn is_approved(item: &QueueItem) -> bool {
    !matches!(item.kind, "payout" | "rail" | "period" | "batch" | "erasure")
}

/// Takes an operator's word, as the route of `/ops` does.
pub(crate) async fn settle(posted: PostedForm) -> Response {
    let [outcome, reference, reason] = ["outcome", "reference", "reason"].map(|name| posted.form.value(name));
    let body = json!({ "outcome": outcome, "reference": reference, "reason": reason });
    let settled = posted.call(rail_items::settle, "/ops/rail-items/{id}/settle", body).await;
    posted.visit.done(settled, "/console/queue", FormOutcome::Decided)
}

/// The name of an item: that of a recipient or payer, or what is said of it.
fn of_what(visit: &Visit, item: &QueueItem) -> Markup {
    let ordered = item.ordered.map(|name| visit.say(wire_words::ordered(name)));
    let month = ["period", "erasure"].contains(&item.kind).then_some(&*item.id);
    let reference = item.reference.as_deref().filter(|_| item.kind == "batch");
    let reason = item.reason.as_deref().filter(|_| item.debit.is_none());
    let said = [item.name.as_deref(), ordered, item.rail.as_deref(), month, reference, reason];
    html! {
        @for (at, said) in said.into_iter().flatten().enumerate() {
            @if at > 0 { " · " }
            bdi { (said) }
        }
        @if let (Some(debit), Some(credit)) = (&item.debit, &item.credit) {
            (show::account_named(visit.language, debit)) " → " (show::account_named(visit.language, credit)) br;
            bdi { (item.reason.as_deref().unwrap_or_default()) } " · "
            bdi { (item.reference.as_deref().unwrap_or_default()) } br;
            span.dim {
                (visit.say(words::ASKED_BY)) " " bdi { (item.requested_by.as_deref().unwrap_or_default()) }
            }
        }
    }
}

/// What an item is, in words. Of the entries, those of a merchant's group are write-offs, credits
/// to the merchant, and returns of withdrawals.
pub(crate) fn item_word(item: &QueueItem) -> Word {
    match (item.kind, &item.merchant_id) {
        ("rail", _) if item.waits_for.is_some() => words::WAITING_NOTICE,
        ("entry", None) => words::HOUSE_ENTRY,
        ("entry", Some(_)) if item.withdrawal.is_some() => words::RETURN_ENTRY,
        ("entry", Some(_)) if item.credit.as_ref().is_some_and(|credit| credit.starts_with("Liabilities:")) => {
            words::GOODWILL_ENTRY
        }
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
        "period" => words::MONTH_CLOSING,
        "batch" => words::BATCH_FILE,
        "erasure" => words::ERASURES,
        _ => words::PAYOUT,
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
pub(crate) async fn decide(PostedForm { desk, visit, id, form }: PostedForm) -> Response {
    let decided = async {
        let verdict = Verdict::named(form.value("decision")).ok_or_else(|| Problem::new(Code::ValidationFailed))?;
        let [kind, notes, key] = ["kind", "notes", "key"].map(|name| form.value(name).to_owned());
        let (operator, version) = (visit.operator.name.clone(), form.value("version").parse().ok());
        take(&desk, &visit, Decision { operator, kind, id: id.clone(), verdict, version, notes, key }).await
    };
    // The item is shown again, as it is now.
    let decided = decided.await.map_err(|problem| match problem.code() {
        Code::ItemChanged => problem.says(visit.say(words::ITEM_CHANGED)),
        _ => problem,
    });
    let item = ObjectId::parse(&id);
    if let (Err(problem), Some(item)) = (&decided, item)
        && problem.code() == Code::AlreadyDecided
        && let Ok(shown) = item::screen(&desk, &visit, item, None).await
    {
        let body = html! { (visit.alert(problem)) (shown.body) };
        return visit.page(problem.status(), &Screen { body, ..shown });
    }
    let waits = item.and_then(|id| waiting(&desk, id));
    match waits.filter(is_decided_on) {
        Some(_) => visit.done(decided, &format!("/console/queue/{id}"), FormOutcome::ApprovedFirst),
        None => visit.done(decided, "/console/queue", FormOutcome::Decided),
    }
}

/// Takes a decision where the item's merchant is.
pub(crate) async fn take(desk: &Arc<Desk>, visit: &Visit, decision: Decision) -> Result<()> {
    visit.operator.require(Role::Decide)?;
    visit.sees(ObjectId::parse(&decision.id).map(|id| desk.engine.ids().group(id)))?;
    other_nodes::decide(desk, decision).await
}
