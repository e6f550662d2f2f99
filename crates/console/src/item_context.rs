//! What stands beside an item of the queue: its charge with refunds and disputes, its withdrawal
//! and the others of the recipient, and the decisions that were taken on it.

use ledger::Event;
use ledger::id::ObjectId;
use maud::{Markup, html};
use store::cut::Position;
use store::{Partition, Sequence};

use crate::records::record_link;
use crate::show::Facts;
use crate::table::Table;
use crate::wire_words::status_word;
use crate::{Visit, show, wire_words, words};
use ops::item_details::{ItemDetails, Sharing, TakenDecision};
use ops::{Desk, ItemKind};
use web::views::charge::ChargeView;
use web::views::ledger::owner_name;
use web::views::recipient::find_recipient;
use web::views::withdrawal::{ReviewedWithdrawal, WithdrawalView};

/// Postings of one decision that are shown.
const POSTINGS_MAX: usize = 60;

/// The charge or the withdrawal of an item.
pub(crate) fn shown(desk: &Desk, visit: &Visit, details: &ItemDetails) -> Markup {
    html! {
        @if let Some(charge) = &details.charge {
            (visit.card("charge", words::CHARGE, html! {
                (of_charge(desk, visit, charge))
                (adjustments(visit, details))
            }))
        }
        @if !details.sharing.is_empty() {
            (visit.card("sharing", words::SHARING, sharing(visit, &details.sharing)))
        }
        @if let Some(withdrawal) = &details.withdrawal {
            (visit.card("withdrawal", words::WITHDRAWAL, html! {
                (of_withdrawal(visit, withdrawal, details))
                @if !details.other_withdrawals.is_empty() {
                    h3 { (visit.say(words::OTHER_WITHDRAWALS)) }
                    (others(visit, &details.other_withdrawals))
                }
            }))
        }
    }
}

fn of_charge(desk: &Desk, visit: &Visit, charge: &ChargeView) -> Markup {
    let mut facts = Facts::of(visit);
    facts
        .add(words::TXID, show::code_link("charges", &charge.txid))
        .money(words::AMOUNT, charge.amount)
        .word(words::METHOD, wire_words::METHOD_NAMES.of(charge.payment_method))
        .add(words::PAYER, html! { bdi { (charge.payer.name) } " " span.dim { (charge.payer.document) } })
        .when(words::CREATED, &*charge.created_at)
        .when(words::PAID_AT, charge.paid_at.as_deref())
        .money(words::REFUNDED, Some(charge.refunded_amount).filter(|amount| *amount > 0));
    if !charge.splits.is_empty() {
        let name = |id: &str| {
            let found = ObjectId::parse(id).and_then(|id| find_recipient(&desk.engine, id));
            found.and_then(|(ledger, _)| owner_name(&desk.engine, ledger)).unwrap_or_else(|| "—".to_owned())
        };
        let splits = html! {
            @for split in &charge.splits {
                a href={"/console/recipients/" (split.sub_recipient_id)} { bdi { (name(&split.sub_recipient_id)) } }
                " " (visit.money(split.amount)) br;
            }
        };
        facts.add(words::SPLITS_OF, splits);
    }
    facts.shown()
}

/// The refunds and disputes of the charge.
fn adjustments(visit: &Visit, details: &ItemDetails) -> Markup {
    let refunds = details.refunds.iter().map(|refund| {
        let status = status_word(ItemKind::Refunds, refund.status);
        (words::REFUND, &refund.id, &refund.created_at, status, refund.amount, refund.reason.as_deref())
    });
    let disputes = details.disputes.iter().map(|dispute| {
        let status = status_word(ItemKind::Disputes, dispute.status);
        (words::DISPUTE, &dispute.id, &dispute.created_at, status, dispute.amount, dispute.reason.as_deref())
    });
    let rows: Vec<_> = refunds.chain(disputes).collect();
    let table = Table::of(visit.language, words::REFUNDS, rows.iter().copied())
        .text(words::KIND, |(kind, id, ..)| html! { a href={"/console/queue/" (id)} { (visit.say(kind)) } })
        .text(words::WHEN, |(_, _, at, ..)| show::text_moment(visit.language, at))
        .text(words::STATUS, |(_, _, _, status, ..)| visit.say(status))
        .text(words::NOTES, |(.., reason)| html! { bdi { (reason.unwrap_or_default()) } })
        .amount(words::AMOUNT, |(.., amount, _)| visit.money(amount));
    html! {
        @if rows.len() > 1 {
            h3 { (visit.say(words::REFUNDS)) " · " (visit.say(words::DISPUTES)) }
            (table.shown())
        }
    }
}

/// Other recipients with the same document, account, phone or address.
fn sharing(visit: &Visit, all: &[Sharing]) -> Markup {
    Table::of(visit.language, words::SHARING, all)
        .text(words::WHAT, |other| visit.say(wire_words::SHARED.of(other.value)))
        .text(words::NAME, |other| {
            html! { a href={"/console/recipients/" (other.recipient_id)} { bdi { (other.name) } } }
        })
        .text(words::MERCHANT, |other| html! { bdi { (other.merchant_name) } })
        .text(words::STATUS, |other| visit.say(status_word(ItemKind::Recipients, other.status)))
        .shown()
}

fn of_withdrawal(visit: &Visit, reviewed: &ReviewedWithdrawal, details: &ItemDetails) -> Markup {
    let withdrawal = &reviewed.withdrawal;
    let mut facts = Facts::of(visit);
    facts
        .money(words::AMOUNT, withdrawal.amount_cents)
        .word(words::STATUS, status_word(ItemKind::Withdrawals, withdrawal.status))
        .add(words::DESTINATION, withdrawal.destination.as_ref().map(show::bank_account))
        .when(words::ACCOUNT_SINCE, details.account_since.as_deref())
        .when(words::ACCOUNT_UNTIL, details.account_until.as_deref());
    if !details.splits.is_empty() {
        let parts = html! {
            @for split in &details.splits {
                (show::code_link("charges", &split.payment_id)) " " (visit.money(split.amount_cents)) br;
            }
        };
        facts.add(words::SPLITS_IN_IT, parts);
    }
    if !reviewed.settlements.is_empty() {
        let parts = html! {
            @for part in &reviewed.settlements { (show::day(visit.language, &part.settlement_date)) " " (visit.money(part.amount_cents)) br; }
        };
        facts.add(words::ANTICIPATED_IN_IT, parts);
    }
    facts.text(words::NOTES, withdrawal.notes.as_deref()).shown()
}

fn others(visit: &Visit, withdrawals: &[WithdrawalView]) -> Markup {
    Table::of(visit.language, words::OTHER_WITHDRAWALS, withdrawals)
        .text(words::WHEN, |withdrawal| {
            let at = show::text_moment(visit.language, &withdrawal.created_at);
            html! { a href={"/console/queue/" (withdrawal.id)} { (at) } }
        })
        .text(words::STATUS, |withdrawal| visit.say(status_word(ItemKind::Withdrawals, withdrawal.status)))
        .text(words::DESTINATION, |withdrawal| {
            html! { @if let Some(account) = &withdrawal.destination { (show::bank_account(account)) } }
        })
        .text(words::NOTES, |withdrawal| html! { bdi { (withdrawal.notes.as_deref().unwrap_or_default()) } })
        .amount(words::AMOUNT, |withdrawal| visit.money(withdrawal.amount_cents))
        .shown()
}

/// What operators asked for and decided, with the entries.
pub(crate) fn decisions(desk: &Desk, visit: &Visit, details: &ItemDetails) -> Markup {
    let mut room = POSTINGS_MAX;
    html! {
        @if !details.decisions.is_empty() {
            (visit.card("decisions", words::DECISIONS, html! {
                @for decision in details.decisions.iter().rev() {
                    h3 {
                        (taken(visit, decision)) " "
                        span.aside { "(" (record_link(visit.language, place(decision))) ")" }
                    }
                    @if let Some(notes) = &decision.notes { p { bdi { (notes) } } }
                    @if !decision.record.entries.is_empty() {
                        (show::entries(&desk.engine, visit.language, &decision.record.entries, &mut room))
                    }
                }
            }))
        }
    }
}

/// What was decided, by whom and when.
pub(crate) fn taken(visit: &Visit, decision: &TakenDecision) -> Markup {
    let is_first = |event: &Event| matches!(event, Event::ApprovalAsked { reason: None, .. });
    let action = match decision.record.events.iter().any(is_first) {
        true => words::APPROVED_AS_FIRST,
        false => wire_words::ACTIONS.of(decision.action),
    };
    html! {
        (visit.say(action)) ": "
        bdi { (decision.operator.as_deref().unwrap_or(visit.say(words::MERCHANT_BY_KEY))) } ", "
        (show::text_moment(visit.language, &decision.at))
    }
}

fn place(decision: &TakenDecision) -> Position {
    Position { partition: Partition(decision.partition), sequence: Sequence(decision.sequence) }
}
