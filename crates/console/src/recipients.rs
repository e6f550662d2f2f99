//! One recipient: registration, money, debts, bank account, statement, withdrawals, anticipations.

use actors::engine::Listed;
use ledger::{ObjectId, Withdrawal};
use maud::{Markup, html};
use wire::mask;

use crate::paging::part;
use crate::queue::merchant_link;
use crate::show::Facts;
use crate::table::Table;
use crate::wire_words::status_word;
use crate::{
    PageRequest, Screen, Section, Visit, anticipations, holds, notes, pager, pager_named, part_named, registration,
    show, wire_words, words,
};
use ops::notes::NoteSubject;
use ops::{Desk, ItemKind};
use web::views::recipient::{RecipientBalance, find_recipient, open, status_name};
use web::views::statement::{RecipientSplitView, statement};
use web::views::withdrawal::{WithdrawalDestinationView, WithdrawalView};
use web::{Cursors, Result, not_found, query};

/// Withdrawals on a page.
const WITHDRAWALS_A_PAGE: u64 = 20;
/// Splits on a page.
const SPLITS_A_PAGE: u64 = 20;

/// Page of one recipient.
pub(crate) async fn show(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, parts } = &request;
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let (ledger, row) = find_recipient(&desk.engine, id).ok_or_else(not_found)?;
    visit.sees(ledger.group())?;
    let pairs = query(parts)?;
    let of_splits = part_named(&pairs, "splits", SPLITS_A_PAGE)?;
    let statement = statement(&desk.engine, ledger, &[], of_splits, &Cursors::default()).await?;
    let page = part(&pairs, WITHDRAWALS_A_PAGE)?;
    // What is due is booked before the balance is read.
    let accounts = desk.engine.accounts(ledger).await?;
    let profile = open(&desk.engine, &row, row.profiles.current());
    let Listed { total, items } = desk.engine.withdrawals(ledger, page.skip(), page.count())?;
    let withdrawals = items.collect::<Result<Vec<_>, _>>()?;
    let merchant = show::merchant_id(&desk.engine, ledger).unwrap_or_default().uuid().to_string();
    let review = row.bank_review.map(|(review, since)| {
        html! { (visit.say(wire_words::ACCOUNT_REVIEWS.of(review.into()))) " " (show::short_moment(visit.language, since)) }
    });
    let destination = profile.receiving_account().map(WithdrawalDestinationView::of);
    let mut facts = Facts::of(visit);
    facts
        .code(words::ID, &*id.uuid().to_string())
        .add(words::MERCHANT, merchant_link(desk, visit, Some(&merchant)))
        .word(words::STATUS, status_word(ItemKind::Recipients, status_name(row.status)))
        .add(words::DOCUMENT, html! { (mask::document(&profile.document)) })
        .add(words::OPENED, show::moment(visit.language, row.created_at))
        .add(words::REVIEW_ACCOUNT, review)
        .add(words::DESTINATION, destination.as_ref().map(show::bank_account));
    let body = html! {
        section.card aria-label=(visit.say(words::RECIPIENT)) {
            @if row.frozen { p { span.badge.bad { (visit.say(words::FROZEN)) } } }
            (facts.shown())
            p.actions { a.button href={"/console/ledgers/R-" (id.uuid())} { (visit.say(words::LEDGER)) } }
        }
        (registration::form(desk, visit, &id.uuid().to_string()))
        (money_of(visit, &RecipientBalance::of(&accounts)))
        (visit.card("statement", words::STATEMENT, html! {
            (splits_table(visit, &statement.items))
            (pager_named(visit, parts, "splits", of_splits, statement.total))
        }))
        (visit.card("withdrawals", words::WITHDRAWALS, html! {
            (table(desk, visit, &withdrawals))
            (pager(visit, parts, page, total))
        }))
        (anticipations::of_recipient(desk, visit, ledger)?)
        (holds::withdrawal_of_recipient(visit, id))
        (holds::of_recipient(visit, id, row.frozen))
        (notes::section(desk, visit, NoteSubject::Object(id))?)
    };
    let title = if profile.name.is_empty() { "—".to_owned() } else { profile.name };
    Ok(Screen { section: Section::Merchants, title, body })
}

fn money_of(visit: &Visit, balance: &RecipientBalance) -> Markup {
    let rows = [
        (words::AVAILABLE, i128::from(balance.available)),
        (words::PENDING, balance.pending.into()),
        (words::RESERVED, balance.reserved.into()),
        (words::WITHDRAWN, balance.paid.into()),
        (words::DEBT, balance.debt.into()),
    ];
    html! {
        (visit.card("money", words::BALANCE, html! {
            dl.figures { @for (word, amount) in rows { div { dt { (visit.say(word)) } dd { (visit.money(amount)) } } } }
        }))
    }
}

/// Splits with what is left of each. One of a charge that is not paid is no money yet.
fn splits_table(visit: &Visit, splits: &[RecipientSplitView]) -> Markup {
    let due = |split: &RecipientSplitView| match &split.payment.balance_available_at {
        Some(at) => show::text_moment(visit.language, at),
        None => html! { "—" },
    };
    let rest = |split: &RecipientSplitView| match split.payment.balance_available_at {
        Some(_) => visit.money(split.amount_cents),
        None => format!("({})", visit.money(split.amount_cents)),
    };
    Table::list(visit.language, words::STATEMENT, splits)
        .column("name", words::CHARGE, |split| show::code_link("charges", &split.payment_id))
        .column("when", words::WHEN, |split| show::text_moment(visit.language, &split.created_at))
        .column("status", words::STATUS, |split| visit.say(wire_words::split_status(split)))
        .column("more", words::DUE_AT, due)
        .column("amount", words::REST, rest)
        .shown()
}

fn table(desk: &Desk, visit: &Visit, withdrawals: &[Withdrawal]) -> Markup {
    let shown: Vec<_> = withdrawals.iter().map(|withdrawal| WithdrawalView::of(&desk.engine, withdrawal)).collect();
    Table::list(visit.language, words::WITHDRAWALS, &shown)
        .column("when", words::WHEN, |shown| show::text_moment(visit.language, &shown.created_at))
        .column("status", words::STATUS, |shown| visit.say(status_word(ItemKind::Withdrawals, shown.status)))
        .column("more", words::NOTES, |shown| html! { bdi { (shown.notes.as_deref().unwrap_or_default()) } })
        .column("amount", words::AMOUNT, |shown| visit.money(shown.amount_cents))
        .column("name", words::ID, |shown| show::code_link("queue", &shown.id))
        .shown()
}
