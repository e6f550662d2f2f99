//! Page of one item of the queue: what its decider should know, both decisions with the entries
//! that they would book, and the decisions that were taken.

use ledger::{HOUSE_GROUP, Month, ObjectId, RecipientProfile};
use maud::{Markup, html};

use crate::queue::{flag_list, follows_word, item_word, kind_word, merchant_link, verdict_word};
use crate::show::Facts;
use crate::table::Table;
use crate::wire_words::status_word;
use crate::{
    PageRequest, Screen, Section, Visit, Word, dispute, item_context, notes, periods, registration, show, wire_words,
    words,
};
use ops::Desk;
use ops::item_details::{self, ItemDetails};
use ops::notes::NoteSubject;
use ops::preview::{ForeseenDecision, Verdict};
use ops::queue_item::QueueItem;
use web::{Result, Role, not_found};

/// Postings of one decision that are shown.
const POSTINGS_MAX: usize = 60;

/// The page of an item.
pub(crate) async fn show(request: PageRequest) -> Result<Screen> {
    if Month::parse(&request.id).is_some() {
        return periods::one(request).await;
    }
    let PageRequest { desk, visit, id, .. } = &request;
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    screen(desk, visit, id, None).await
}

/// The same, with the registration of a recipient whole where it was revealed.
pub(crate) async fn screen(
    desk: &Desk,
    visit: &Visit,
    id: ObjectId,
    revealed: Option<&RecipientProfile>,
) -> Result<Screen> {
    let details = item_details::details(desk, id).await?;
    visit.sees(Some(desk.engine.ids().group(id)).filter(|group| *group != HOUSE_GROUP))?;
    let amount = details.item.as_ref().map_or_else(|| decided_amount(&details), |item| item.amount);
    let kind = details.item.as_ref().map_or_else(|| kind_word(details.kind), item_word);
    let title = match amount {
        Some(amount) => format!("{} · {}", visit.say(kind), visit.money(amount)),
        None => visit.say(kind).to_owned(),
    };
    let body = html! {
        @match &details.item {
            Some(item) => section.card aria-label=(visit.say(words::WHAT)) { (facts(desk, visit, item)) },
            None => section.card aria-label=(visit.say(words::WHAT)) {
                p role="status" {
                    strong { (visit.say(words::WAITS_NO_MORE)) }
                    @if let Some(last) = details.decisions.last() { " " (item_context::taken(visit, last)) }
                }
                (decided(desk, visit, &details))
            }
        }
        @if details.kind == "recipient" { (registration::on_item(desk, visit, &details.id, revealed)) }
        (item_context::shown(desk, visit, &details))
        @if let Some(item) = &details.item {
            @if matches!(item.kind, "payout" | "rail") { (settlement(visit, item)) }
            @for foreseen in &details.foreseen { (decision(desk, visit, item, foreseen)) }
        }
        @if details.disputes.iter().any(|dispute| dispute.id == details.id && dispute.status == "accepted") {
            (dispute::reversal_form(visit, &details.id))
        }
        (item_context::decisions(desk, visit, &details))
        (notes::section(desk, visit, NoteSubject::Object(id))?)
    };
    Ok(Screen { section: Section::Queue, title, body })
}

/// The amount of what was decided on.
fn decided_amount(details: &ItemDetails) -> Option<i64> {
    let of_entry = || details.entry.as_ref().map(|entry| entry.amount);
    details.object.as_ref().and_then(|object| object.amount).or_else(of_entry)
}

/// What was decided on, and how: as it stood while it waited, with its outcome.
fn decided(desk: &Desk, visit: &Visit, details: &ItemDetails) -> Markup {
    let mut facts = Facts::of(visit);
    facts.code(words::ID, &*details.id).money(words::AMOUNT, decided_amount(details));
    if let Some(object) = &details.object {
        let status = object.status.zip(item_details::item_kind(details.kind));
        let by = details.withdrawal.as_ref().and_then(|reviewed| reviewed.withdrawal.rejected_by);
        let is_recipients = object.recipient_id.is_some() || details.kind == "recipient";
        facts
            .add(words::MERCHANT, merchant_link(desk, visit, object.merchant_id.as_deref()))
            .when(words::WHEN, object.created_at.as_deref())
            .word(words::STATUS, status.map(|(status, kind)| status_word(kind, status)))
            .word(words::REJECTED_BY, by.map(|name| wire_words::REJECTED_BY.of(name)))
            .text(if is_recipients { words::RECIPIENT } else { words::PAYER }, object.name.as_deref())
            .text(reason_word(details.kind), object.reason.as_deref());
    }
    if let Some(entry) = &details.entry {
        facts
            .account(words::DEBIT, &*entry.debit)
            .account(words::CREDIT, &*entry.credit)
            .text(words::NOTES, &*entry.reason)
            .text(words::REFERENCE, &*entry.reference)
            .text(words::ASKED_BY, &*entry.requested_by);
    }
    facts.shown()
}

fn reason_word(kind: &str) -> Word {
    if kind == "refund" { words::CHARGE_REASON } else { words::NOTES }
}

fn facts(desk: &Desk, visit: &Visit, item: &QueueItem) -> Markup {
    let is_flagged = !item.flags.is_empty() || item.status == "waiting_second";
    let name = item.name.as_deref();
    let link = name.filter(|_| item.kind == "recipient");
    let link = link.map(|name| html! { a href={"/console/recipients/" (item.id)} { bdi { (name) } } });
    let review = item.review.map(|review| match review {
        "registration" => words::REVIEW_REGISTRATION,
        _ => words::REVIEW_ACCOUNT,
    });
    let recipient = |id| {
        html! { a href={"/console/recipients/" (id)} { bdi { (name.unwrap_or_default()) } " " code { (id) } } }
    };
    let dispute = if item.waits_for_disputes { words::REFUND_WAITS } else { words::REFUND_NEED_NOT_WAIT };
    let mut facts = Facts::of(visit);
    facts
        .code(words::ID, &*item.id)
        .add(words::MERCHANT, merchant_link(desk, visit, item.merchant_id.as_deref()))
        .when(words::WHEN, &*item.created_at)
        .word(words::STATUS, wire_words::WAITING_STATUSES.of(item.status))
        .add(words::FLAGS, is_flagged.then(|| flag_list(visit, item)))
        .text(words::ASKED_BY, item.requested_by.as_deref())
        .account(words::DEBIT, item.debit.as_deref())
        .account(words::CREDIT, item.credit.as_deref())
        .text(reason_word(item.kind), item.reason.as_deref())
        .text(words::REFERENCE, item.reference.as_deref())
        .when(words::SETTLES_FROM, item.settles_from.as_deref())
        .code(words::WITHDRAWAL, item.withdrawal.as_deref())
        .add(words::DISPUTE, item.dispute.as_ref().map(|id| show::code_link("queue", id)))
        .add(words::TOOK_EFFECT, item.effective_date.as_ref().map(|day| html! { (day) }))
        .add(words::NAME, link)
        .text(words::PAYER, name.filter(|_| item.payment_id.is_some()))
        .add(words::DOCUMENT, item.document.as_ref().map(|document| html! { (document) }))
        .word(words::REVIEW, review)
        .add(words::CHARGE, item.payment_id.as_ref().map(|txid| show::code_link("charges", txid)))
        .when(words::APPROVABLE_UNTIL, item.approvable_until.as_deref())
        .word(words::DISPUTE, (!item.disputes.is_empty()).then_some(dispute))
        .when(words::ANSWER_UNTIL, item.due_at.as_deref())
        .code(words::CASE, item.case_id.as_deref())
        .word(words::WAITS_FOR, item.waits_for.map(|name| wire_words::NEEDS.of(name)))
        .word(words::ORDERED, item.ordered.map(wire_words::ordered))
        .text(words::RAIL, item.rail.as_deref())
        .word(words::NOTES, (item.exceeds_charge == Some(true)).then_some(words::EXCEEDS_CHARGE))
        .add(words::RECIPIENT, item.recipient_id.as_ref().map(recipient))
        .add(words::DESTINATION, item.destination.as_ref().map(show::bank_account))
        .add(words::FORMER_ACCOUNT, item.former_destination.as_ref().map(show::bank_account))
        .shown()
}

/// The balances that a decision changes, and the commission that goes back.
fn changes(visit: &Visit, foreseen: &ForeseenDecision) -> Markup {
    let ForeseenDecision { balances, balances_left_out, commission_returned, .. } = foreseen;
    let table = Table::of(visit.language, words::BALANCES_AFTER, balances)
        .text(words::OWNER, |balance| html! { bdi { (balance.owner) } })
        .text(words::ACCOUNT, |balance| show::account_named(visit.language, &balance.account))
        .amount(words::BEFORE, |balance| visit.money(balance.before))
        .amount(words::AFTER, |balance| visit.money(balance.after));
    html! {
        @if let Some(commission) = commission_returned {
            p { (visit.say(words::COMMISSION_BACK)) ": " (visit.money(*commission)) }
        }
        @if !balances.is_empty() {
            h3 { (visit.say(words::BALANCES_AFTER)) }
            (table.shown())
            @if let Some(count) = balances_left_out { p.dim { "+ " (show::count(visit.language, *count as u64)) } }
        }
    }
}

fn decision(desk: &Desk, visit: &Visit, item: &QueueItem, foreseen: &ForeseenDecision) -> Markup {
    let verdict = foreseen.verdict;
    let (name, wants_notes) = (verdict.name(), verdict == Verdict::Reject && item.kind != "dispute");
    let heading = visit.say(verdict_word(item.kind, verdict));
    let mut room = POSTINGS_MAX;
    let is_own = item.requested_by.as_deref() == Some(visit.operator.name.as_str());
    let needs_another = verdict == Verdict::Approve && is_own;
    html! {
        section.card aria-labelledby=(name) {
            h2 id=(name) { (heading) }
            @match &foreseen.steps {
                Err(problem) => p.warning { (show::problem(visit.language, problem)) },
                Ok(steps) => {
                    @for (follows, record) in steps {
                        h3 { (visit.say(follows_word(*follows))) }
                        (show::entries(&desk.engine, visit.language, &record.entries, &mut room))
                    }
                    (changes(visit, foreseen))
                    @if verdict == Verdict::Approve && item.second_operator_needed == Some(true) {
                        p.warning { (visit.say(words::TAKES_TWO)) }
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

/// The form for an outcome that a rail left unknown: two operators say it, one after the other.
fn settlement(visit: &Visit, item: &QueueItem) -> Markup {
    let is_own = item.requested_by.as_deref() == Some(visit.operator.name.as_str());
    let outcomes = [("did_not_happen", words::DID_NOT_HAPPEN), ("happened", words::HAPPENED)];
    let (about, outcomes) = match item.waits_for {
        Some(_) => (words::DROP_WHAT, &outcomes[..1]),
        None => (words::SETTLE_WHAT, &outcomes[..]),
    };
    let fields = html! {
        label for="outcome" { (visit.say(words::WHAT_BECAME)) }
        select id="outcome" name="outcome" required {
            option value="" {}
            @for (name, word) in outcomes {
                option value=(name) selected[!is_own && item.outcome == Some(*name)] { (visit.say(*word)) }
            }
        }
        label for="reference" { (visit.say(words::REFERENCE)) }
        input id="reference" name="reference" required maxlength="100" autocomplete="off"
            value=[item.reference.as_ref().filter(|_| !is_own)];
        (visit.reason_field("reason"))
    };
    let form = visit.main_form(&format!("/console/queue/{}/settle", item.id), fields, words::SETTLE_BY_WORD);
    visit.card(
        "settle",
        words::SETTLE_BY_WORD,
        html! {
            p { (visit.say(about)) }
            @if is_own { p.warning { (visit.say(words::OWN_WORD_WAITS)) } }
            @if visit.may(Role::Decide) { (form) }
        },
    )
}
