//! Page of one item of the queue: what its decider should know, both decisions with the entries
//! that they would book, and the decisions that were taken.

use ledger::{HOUSE_GROUP, Month, ObjectId, RecipientProfile};
use maud::{Markup, html};

use crate::queue::{flag_list, follows_word, item_word, kind_word, merchant_link, verdict_word};
use crate::show::Head::{Amount, Text};
use crate::wire_words::status_word;
use crate::{
    PageRequest, Screen, Section, Visit, dispute, item_context, notes, periods, registration, show, wire_words, words,
};
use ops::Desk;
use ops::item_details::{self, ItemDetails};
use ops::notes::NoteSubject;
use ops::preview::{ForeseenDecision, Verdict};
use ops::queue_item::QueueItem;
use web::{Code, Problem, Result, Role};

/// Postings of one decision that are shown.
const POSTINGS_MAX: usize = 60;

/// The page of an item.
pub(crate) async fn show(request: PageRequest) -> Result<Screen> {
    if Month::parse(&request.id).is_some() {
        return periods::one(request).await;
    }
    let PageRequest { desk, visit, id, .. } = &request;
    let id = ObjectId::parse(id).ok_or_else(|| Problem::new(Code::NotFound))?;
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
    let mut pairs = vec![(visit.say(words::ID), html! { code { (details.id) } })];
    if let Some(amount) = decided_amount(details) {
        pairs.push((visit.say(words::AMOUNT), html! { (visit.money(amount)) }));
    }
    if let Some(object) = &details.object {
        pairs.push((visit.say(words::MERCHANT), merchant_link(desk, visit, object.merchant_id.as_deref())));
        pairs.extend(
            object.created_at.as_ref().map(|at| (visit.say(words::WHEN), show::text_moment(visit.language, at))),
        );
        let status = object.status.zip(item_details::item_kind(details.kind));
        pairs.extend(
            status.map(|(status, kind)| (visit.say(words::STATUS), html! { (visit.say(status_word(kind, status))) })),
        );
        let by = details.withdrawal.as_ref().and_then(|reviewed| reviewed.withdrawal.rejected_by);
        pairs.extend(by.map(|by| (visit.say(words::REJECTED_BY), html! { (visit.say(wire_words::rejected_by(by))) })));
        let whose =
            if object.recipient_id.is_some() || details.kind == "recipient" { words::RECIPIENT } else { words::PAYER };
        pairs.extend(object.name.as_ref().map(|name| (visit.say(whose), html! { bdi { (name) } })));
        let reason = if details.kind == "refund" { words::CHARGE_REASON } else { words::NOTES };
        pairs.extend(object.reason.as_ref().map(|said| (visit.say(reason), html! { bdi { (said) } })));
    }
    if let Some(entry) = &details.entry {
        let text = |text: &String| html! { bdi { (text) } };
        pairs.extend([
            (visit.say(words::DEBIT), show::account_named(visit.language, &entry.debit)),
            (visit.say(words::CREDIT), show::account_named(visit.language, &entry.credit)),
            (visit.say(words::NOTES), text(&entry.reason)),
            (visit.say(words::REFERENCE), text(&entry.reference)),
            (visit.say(words::ASKED_BY), text(&entry.requested_by)),
        ]);
    }
    show::facts(pairs)
}

fn facts(desk: &Desk, visit: &Visit, item: &QueueItem) -> Markup {
    let mut pairs = vec![
        (visit.say(words::ID), html! { code { (item.id) } }),
        (visit.say(words::MERCHANT), merchant_link(desk, visit, item.merchant_id.as_deref())),
        (visit.say(words::WHEN), show::text_moment(visit.language, &item.created_at)),
        (visit.say(words::STATUS), html! { (visit.say(wire_words::waiting_status(item.status))) }),
    ];
    if !item.flags.is_empty() || item.status == "waiting_second" {
        pairs.push((visit.say(words::FLAGS), flag_list(visit, item)));
    }
    if let Some(by) = &item.requested_by {
        pairs.push((visit.say(words::ASKED_BY), html! { bdi { (by) } }));
    }
    let accounts = [(words::DEBIT, &item.debit), (words::CREDIT, &item.credit)];
    for (word, account) in accounts {
        pairs.extend(account.as_ref().map(|account| (visit.say(word), show::account_named(visit.language, account))));
    }
    let reason = if item.kind == "refund" { words::CHARGE_REASON } else { words::NOTES };
    for (word, said) in [(reason, &item.reason), (words::REFERENCE, &item.reference)] {
        pairs.extend(said.as_ref().map(|said| (visit.say(word), html! { bdi { (said) } })));
    }
    pairs.extend(item.withdrawal.as_ref().map(|id| (visit.say(words::WITHDRAWAL), html! { code { (id) } })));
    let dispute = |id| html! { a href={"/console/queue/" (id)} { code { (id) } } };
    pairs.extend(item.dispute.as_ref().map(|id| (visit.say(words::DISPUTE), dispute(id))));
    pairs.extend(item.effective_date.as_ref().map(|day| (visit.say(words::TOOK_EFFECT), html! { (day) })));
    if let Some(name) = item.name.as_ref().filter(|_| item.kind == "recipient") {
        let link = html! { a href={"/console/recipients/" (item.id)} { bdi { (name) } } };
        pairs.push((visit.say(words::NAME), link));
    }
    let payer = item.name.as_ref().filter(|_| item.payment_id.is_some());
    pairs.extend(payer.map(|name| (visit.say(words::PAYER), html! { bdi { (name) } })));
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
    let due = item.due_at.as_ref();
    pairs.extend(due.map(|at| (visit.say(words::ANSWER_UNTIL), show::text_moment(visit.language, at))));
    pairs.extend(item.case_id.as_ref().map(|id| (visit.say(words::CASE), html! { code { (id) } })));
    pairs.extend(
        item.waits_for.map(|need| (visit.say(words::WAITS_FOR), html! { (visit.say(wire_words::need(need))) })),
    );
    if item.exceeds_charge == Some(true) {
        pairs.push((visit.say(words::NOTES), html! { (visit.say(words::EXCEEDS_CHARGE)) }));
    }
    if let Some(recipient) = &item.recipient_id {
        let name = item.name.as_deref().unwrap_or_default();
        let link = html! { a href={"/console/recipients/" (recipient)} { bdi { (name) } " " code { (recipient) } } };
        pairs.push((visit.say(words::RECIPIENT), link));
    }
    if let Some(account) = &item.destination {
        pairs.push((visit.say(words::DESTINATION), show::bank_account(account)));
    }
    let former = item.former_destination.as_ref();
    pairs.extend(former.map(|account| (visit.say(words::FORMER_ACCOUNT), show::bank_account(account))));
    show::facts(pairs)
}

/// The balances that a decision changes, and the commission that goes back.
fn changes(visit: &Visit, foreseen: &ForeseenDecision) -> Markup {
    let ForeseenDecision { balances, balances_left_out, commission_returned, .. } = foreseen;
    let heads = [Text(words::OWNER), Text(words::ACCOUNT), Amount(words::BEFORE), Amount(words::AFTER)];
    html! {
        @if let Some(commission) = commission_returned {
            p { (visit.say(words::COMMISSION_BACK)) ": " (visit.money(*commission)) }
        }
        @if !balances.is_empty() {
            h3 { (visit.say(words::BALANCES_AFTER)) }
            (show::scrolled(visit.say(words::BALANCES_AFTER), show::table(visit.language, &heads, html! {
                @for balance in balances {
                    tr {
                        td { bdi { (balance.owner) } }
                        td { (show::account_named(visit.language, &balance.account)) }
                        td.amount { (visit.money(balance.before)) }
                        td.amount { (visit.money(balance.after)) }
                    }
                }
            })))
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
    html! {
        (visit.card("settle", words::SETTLE_BY_WORD, html! {
            p { (visit.say(about)) }
            @if is_own { p.warning { (visit.say(words::SECOND_OPERATOR)) } }
            @if visit.may(Role::Decide) && !is_own {
                form method="post" action={"/console/queue/" (item.id) "/settle"} {
                    (visit.form_fields())
                    label for="outcome" { (visit.say(words::WHAT_BECAME)) }
                    select id="outcome" name="outcome" required {
                        option value="" {}
                        @for (name, word) in outcomes {
                            option value=(name) selected[item.outcome == Some(*name)] { (visit.say(*word)) }
                        }
                    }
                    label for="reference" { (visit.say(words::REFERENCE)) }
                    input id="reference" name="reference" required maxlength="100" autocomplete="off" value=[&item.reference];
                    label for="reason" { (visit.say(words::NOTES)) }
                    textarea id="reason" name="reason" rows="2" maxlength="500" required {}
                    p.actions { button.primary type="submit" { (visit.say(words::SETTLE_BY_WORD)) } }
                }
            }
        }))
    }
}
