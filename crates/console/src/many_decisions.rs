//! One decision on many items of the queue: their entries on one page, and then one decision after
//! the other. Each is a request of its own, so one that is refused stops no other.

use std::sync::Arc;

use actors::engine::WaitingItem;
use axum::response::Response;
use ledger::id::ObjectId;
use maud::{Markup, html};

use crate::form::optional;
use crate::item_context::taken;
use crate::queue::{flag_list, follows_word, item_word, merchant_link, take, verdict_word};
use crate::show::Facts;
use crate::{PageRequest, PostedForm, Screen, Section, Visit, show, words};
use ops::Desk;
use ops::found_item::item_of;
use ops::item_details::{TakenDecision, last_decision};
use ops::other_nodes;
use ops::other_nodes::Decision;
use ops::preview::Verdict;
use ops::queue::waiting;
use ops::queue_item::{QueueItem, kind_name, view};
use web::{Code, FormBody, Problem, Result, Role, query};

/// Items of one decision.
const ITEMS_MAX: usize = 20;
/// Postings of all of them that are shown; the page of an item has more.
const POSTINGS_MAX: usize = 120;

/// The items and what the decision on each will book.
pub(crate) async fn confirm(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, parts, .. } = &request;
    visit.operator.require(Role::Decide)?;
    let pairs = query(parts)?;
    let verdict = verdict_of(visit, optional(&pairs, "decision")?.unwrap_or_default())?;
    let items = chosen(desk, visit, &pairs)?;
    let mut shown = Vec::new();
    for item in &items {
        shown.push((view(desk, item)?, other_nodes::steps(desk, item.id, verdict).await));
    }
    let wants_notes = verdict == Verdict::Reject && items.iter().any(|item| kind_name(item) != "dispute");
    let heading = visit.say(verdict_word("", verdict));
    let mut room = POSTINGS_MAX;
    let sum: i128 = shown.iter().filter_map(|(item, _)| item.amount).map(i128::from).sum();
    let body = html! {
        @for (item, steps) in &shown {
            section.card aria-labelledby=(item.id) {
                h2 id=(item.id) {
                    a href={"/console/queue/" (item.id)} { (visit.say(item_word(item))) } " " bdi { (item.name.as_deref().unwrap_or_default()) } " "
                    @if let Some(amount) = item.amount { (visit.money(amount)) }
                }
                (facts(desk, visit, item))
                @match steps {
                    Err(problem) => p.warning { (show::problem(visit.language, problem)) },
                    Ok(steps) => @for (follows, record) in steps {
                        h3 { (visit.say(follows_word(*follows))) }
                        (show::entries(&desk.engine, visit.language, &record.entries, &mut room))
                    },
                }
            }
        }
        form.card method="post" action="/console/queue/many" {
            p { (visit.say(words::CHOSEN)) ": " (items.len()) ", " (visit.say(words::SUM_OF_THESE)) " " (visit.money(sum)) }
            (visit.form_fields())
            input type="hidden" name="decision" value=(verdict.name());
            @for (shown, _) in &shown { input type="hidden" name="item" value={(shown.kind) "/" (shown.id) "/" (shown.version)}; }
            @if wants_notes {
                label for="notes" { (visit.say(words::NOTES)) }
                textarea id="notes" name="notes" rows="2" maxlength="500" required {}
            }
            p.actions { button.primary type="submit" { (heading) " (" (items.len()) ")" } }
        }
    };
    Ok(Screen { section: Section::Queue, title: format!("{heading} ({})", items.len()), body })
}

/// The decision of a name. Error: 400 that says what to choose.
fn verdict_of(visit: &Visit, name: &str) -> Result<Verdict> {
    Verdict::named(name).ok_or_else(|| Problem::new(Code::ValidationFailed).says(visit.say(words::CHOOSE_DECISION)))
}

/// Whose an item is, and where its money goes.
fn facts(desk: &Desk, visit: &Visit, item: &QueueItem) -> Markup {
    let mut facts = Facts::of(visit);
    facts.add(words::MERCHANT, merchant_link(desk, visit, item.merchant_id.as_deref()));
    if item.debit.is_some() {
        facts
            .account(words::DEBIT, item.debit.as_deref())
            .account(words::CREDIT, item.credit.as_deref())
            .text(words::ASKED_BY, item.requested_by.as_deref())
            .text(words::NOTES, item.reason.as_deref())
            .text(words::REFERENCE, item.reference.as_deref());
    }
    let is_flagged = !item.flags.is_empty() || item.status == "waiting_second";
    facts
        .add(words::DESTINATION, item.destination.as_ref().map(show::bank_account))
        .add(words::FLAGS, is_flagged.then(|| flag_list(visit, item)))
        .word(words::APPROVE, (item.second_operator_needed == Some(true)).then_some(words::TAKES_TWO))
        .shown()
}

/// The items that a query names, and that still wait.
fn chosen(desk: &Desk, visit: &Visit, pairs: &[(String, String)]) -> Result<Vec<WaitingItem>> {
    let ids = pairs.iter().filter(|(name, _)| name == "id").filter_map(|(_, id)| ObjectId::parse(id));
    let mut ids: Vec<_> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() || ids.len() > ITEMS_MAX {
        return Err(Problem::new(Code::ValidationFailed).says(visit.say(words::CHOOSE_SOME)));
    }
    let waiting = ids.into_iter().filter_map(|id| waiting(desk, id));
    Ok(waiting.filter(|item| visit.scope.has(item.ledger.group())).collect())
}

/// Takes the decisions, and says how each ended.
pub(crate) async fn decide(PostedForm { desk, visit, form, .. }: PostedForm) -> Response {
    let made = decided(&desk, &visit, &form).await;
    visit.answer(made)
}

async fn decided(desk: &Arc<Desk>, visit: &Visit, form: &FormBody) -> Result<Screen> {
    visit.operator.require(Role::Decide)?;
    let verdict = verdict_of(visit, form.value("decision"))?;
    let items: Vec<_> = form.0.iter().filter(|(name, _)| name == "item").map(|(_, item)| item.as_str()).collect();
    if items.is_empty() || items.len() > ITEMS_MAX {
        return Err(Problem::new(Code::ValidationFailed).says(visit.say(words::CHOOSE_SOME)));
    }
    // Items that wait no more are included: the same form, sent again, says what it did.
    let mut ends: Vec<DecidedItem> = Vec::new();
    for (kind, id) in items.into_iter().filter_map(|item| item.split_once('/')) {
        let (id, version) = id.split_once('/').unwrap_or((id, ""));
        let Some(object) = ObjectId::parse(id) else { continue };
        let id = object.uuid().to_string();
        let (key, version) = (format!("{}-{id}", form.value("key")), version.parse().ok());
        let [operator, kind, notes] = [&visit.operator.name, kind, form.value("notes")].map(str::to_owned);
        let decision = Decision { operator, kind, id: id.clone(), verdict, version, notes, key };
        let problem = take(desk, visit, decision).await.err();
        let is_late = problem.as_ref().is_some_and(|problem| problem.code() == Code::AlreadyDecided);
        let earlier = if is_late { last_decision(desk, object).unwrap_or_default() } else { None };
        let item = item_of(desk, object)?.map(|(_, item)| item);
        let name = item.as_ref().and_then(|item| item.name.clone().or_else(|| item.merchant_name.clone()));
        let amount = item.and_then(|item| item.amount);
        ends.push(DecidedItem { id, name, amount, problem, earlier });
    }
    let title = visit.say(words::DECIDED).to_owned();
    Ok(Screen { section: Section::Queue, title, body: ends_table(visit, &ends) })
}

/// An item, and how the decision on it ended.
struct DecidedItem {
    id: String,
    /// Payer, recipient or merchant; `None` where it was erased.
    name: Option<String>,
    /// Its amount, centavos.
    amount: Option<i64>,
    problem: Option<Problem>,
    earlier: Option<TakenDecision>,
}

fn ends_table(visit: &Visit, ends: &[DecidedItem]) -> Markup {
    html! {
        section.card aria-label=(visit.say(words::DECIDED)) {
            @if ends.is_empty() { p { (visit.say(words::WAITS_NO_MORE)) } } @else {
                div role="status" { ul {
                    @for DecidedItem { id, name, amount, problem, earlier } in ends {
                        li {
                            @if let Some(name) = name { bdi { (name) } " " }
                            @if let Some(amount) = amount { (visit.money(*amount)) " " }
                            a href={"/console/queue/" (id)} { code { (id) } } ": "
                            @match problem {
                                None => (visit.say(words::DECIDED)),
                                Some(problem) => (show::problem(visit.language, problem))
                            }
                            @if let Some(earlier) = earlier { " · " (taken(visit, earlier)) }
                        }
                    }
                } }
            }
        }
        p { a href="/console/queue" { "← " (visit.say(words::QUEUE)) } }
    }
}
