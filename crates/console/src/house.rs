//! House ledger: the platform's own books, what waits for a second operator, and the forms that ask
//! for an entry, the write-off of a debt, or the return of a withdrawal.

use std::sync::Arc;

use actors::engine::Engine;
use axum::extract::State;
use axum::response::Response;
use ledger::house::HouseAccount;
use ledger::{LedgerId, PayoutBank};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::books::balance_table;
use crate::form::amount;
use crate::keys::json_of;
use crate::ledger_field::{LedgerChoice, LedgerField};
use crate::refused_form::PAGE;
use crate::table::Table;
use crate::{PageRequest, PostedForm, Screen, Section, Visit, reconciliations, show, words};
use books::reconcile::acquirer::COLUMNS;
use ops::batches::{self, BookedFile};
use ops::entries;
use ops::named_ledger::exactly_named_ledger;
use ops::queue::QueueFilter;
use ops::queue_item;
use ops::{Decider, Desk};
use web::views::house_entry::{HouseEntryView, OperatorEntry, debt_accounts, goodwill_accounts};
use web::{Code, FormBody, FormOutcome, Result, Role, not_found};

/// Entries that wait and are shown; the queue has all.
const WAITING_MAX: usize = 40;
/// Postings of a settlement file that are shown.
const ENTRIES_SHOWN: usize = 400;

/// Page of the house ledger.
pub(crate) async fn show(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, .. } = &request;
    visit.whole()?;
    let accounts = desk.engine.accounts(LedgerId::System).await?;
    let name = |account: &ledger::account::Account| account.name(Default::default(), |_| String::new());
    let accounts = accounts
        .iter()
        .map(|(account, balance)| (show::account_named(visit.language, &name(account)), *balance))
        .collect();
    let body = html! {
        (visit.card("balances", words::BALANCE, html! {
            (balance_table(visit, accounts))
            p.actions {
                a.button href="/console/ledgers/P-house" { (visit.say(words::LEDGER)) }
                a.button href="/console/periods" { (visit.say(words::MONTHS)) }
            }
        }))
        (visit.card("waits", words::WAITS, waiting(desk, visit)?))
        @if visit.may(Role::Decide) {
            (form(visit, &EntryDraft::default()))
            (owner_form(desk, visit, ("write-off", "debtor"), [words::ASK_WRITE_OFF, words::WRITE_OFF, words::DEBTOR]))
            (owner_form(desk, visit, ("goodwill", "credited"), [words::ASK_GOODWILL, words::GOODWILL, words::CREDITED]))
            (return_form(visit, &EntryDraft::default()))
            (settlement_form(visit))
            (waiting_files(desk, visit)?)
        }
    };
    Ok(Screen { section: Section::House, title: visit.say(words::HOUSE).to_owned(), body })
}

fn waiting(desk: &Desk, visit: &Visit) -> Result<Markup> {
    let entries = QueueFilter { kind: Some("entry"), ..QueueFilter::default() };
    let items = entries.page(desk, WAITING_MAX)?.items;
    let mut entries = Vec::new();
    for item in items {
        let entry = OperatorEntry::find(&desk.engine, item.id)?;
        entries.extend(entry.map(|entry| HouseEntryView::of_any(&desk.engine, entry)));
    }
    let account = |name: &str| show::account_named(visit.language, name);
    let written = |text: &str| html! { bdi { (text) } };
    let table = Table::of(visit.language, words::WAITS, &entries)
        .text(words::DEBIT, |entry| html! { a href={"/console/queue/" (entry.id)} { (account(&entry.debit)) } })
        .text(words::CREDIT, |entry| account(&entry.credit))
        .amount(words::AMOUNT, |entry| visit.money(entry.amount))
        .text(words::WHO, |entry| written(&entry.requested_by))
        .text(words::NOTES, |entry| written(&entry.reason))
        .text(words::REFERENCE, |entry| {
            html! { (written(&entry.reference)) @if let Some(day) = &entry.effective_date { " · " (day) } }
        });
    Ok(table.shown())
}

/// What the form of an entry is filled in with.
#[derive(Default)]
pub(crate) struct EntryDraft {
    /// Full names of the accounts.
    pub debit: String,
    pub credit: String,
    /// As people write it, reais.
    pub amount: String,
    pub reference: String,
    /// Day of the effect, ISO 8601.
    pub effective_date: String,
    /// The difference that the entry explains: SHA-256 of the file, and its number in the result.
    pub explains: Option<(String, u64)>,
}

impl EntryDraft {
    /// Hidden fields: what the entry explains, and the page on which its form stands.
    pub(crate) fn hidden_fields(&self) -> Markup {
        html! {
            @if let Some((file, finding)) = &self.explains {
                input type="hidden" name="reconciliation" value=(file);
                input type="hidden" name="finding" value=(finding);
                input type="hidden" name=(PAGE) value={"/console/reconciliations/" (file) "?finding=" (finding)};
            }
        }
    }
}

/// The form that asks for an entry.
pub(crate) fn form(visit: &Visit, draft: &EntryDraft) -> Markup {
    let account = |name: &'static str, word: words::Word, chosen: &str| {
        html! {
            label for=(name) { (visit.say(word)) }
            select id=(name) name=(name) {
                @for account in HouseAccount::ALL.iter().map(|account| account.account()) {
                    option value=(account.kind_name()) selected[account.kind_name() == chosen] { (show::account_label(visit.language, account)) }
                }
            }
        }
    };
    let fields = html! {
        (draft.hidden_fields())
        (account("debit", words::DEBIT, &draft.debit))
        (account("credit", words::CREDIT, &draft.credit))
        (amount_and_reason(visit, "", draft))
        label { input type="checkbox" name="reference_repeats" value="on"; " " (visit.say(words::REFERENCE_REPEATS)) }
        label for="effective_date" { (visit.say(words::EFFECT_DAY)) }
        input id="effective_date" name="effective_date" type="date" value=(draft.effective_date);
    };
    visit.card("ask", words::ASK_ENTRY, visit.main_form("/console/house", fields, words::ASK_ENTRY))
}

/// The form for an entry of a merchant or a recipient, whom its field names.
fn owner_form(desk: &Desk, visit: &Visit, (id, field): (&str, &str), [ask, what, label]: [words::Word; 3]) -> Markup {
    let whom =
        LedgerField { id: field, name: field, label, offered: LedgerChoice::Owners, is_required: true, value: "" };
    let fields = html! {
        (whom.show(desk, visit))
        (amount_and_reason(visit, &format!("{id}-"), &EntryDraft::default()))
    };
    let form = visit.main_form("/console/house", fields, ask);
    visit.card(id, ask, html! { p.dim { (visit.say(what)) } (form) })
}

/// The form that asks for the return of a withdrawal.
pub(crate) fn return_form(visit: &Visit, draft: &EntryDraft) -> Markup {
    let fields = html! {
        (draft.hidden_fields())
        label for="withdrawal" { (visit.say(words::WITHDRAWAL)) }
        input id="withdrawal" name="withdrawal" required maxlength="36" autocomplete="off" spellcheck="false";
        label for="bank" { (visit.say(words::CAME_TO)) }
        select id="bank" name="bank" {
            option value="" { (visit.say(words::AS_IT_LEFT)) }
            @for bank in PayoutBank::ALL.map(PayoutBank::account) {
                option value=(bank.kind_name()) selected[bank.kind_name() == draft.debit] { (show::account_label(visit.language, bank)) }
            }
        }
        (reason_and_reference(visit, "return-", draft))
        label for="return-date" { (visit.say(words::EFFECT_DAY)) }
        input id="return-date" name="effective_date" type="date" value=(draft.effective_date);
    };
    let form = visit.main_form("/console/house", fields, words::ASK_RETURN);
    visit.card("return", words::ASK_RETURN, html! { p.dim { (visit.say(words::RETURN)) } (form) })
}

fn settlement_form(visit: &Visit) -> Markup {
    let fields = html! {
        label for="lines" { (visit.say(words::BATCH_LINES)) }
        textarea id="lines" name="lines" rows="6" required spellcheck="false" placeholder=(COLUMNS.join(",")) {}
        label { input type="checkbox" name="preview" value="on" checked; " " (visit.say(words::ONLY_PREVIEW)) }
        p.dim { (visit.say(words::SECOND_OPERATOR)) }
    };
    let form = visit.main_form("/console/house/batches", fields, words::BOOK_BATCHES);
    visit.card("settlement", words::BOOK_BATCHES, html! { p.dim { (visit.say(words::BATCHES_WHAT)) } (form) })
}

/// Settlement files that another operator has to send too, with a form that rejects each.
fn waiting_files(desk: &Desk, visit: &Visit) -> Result<Markup> {
    let files = QueueFilter { kind: Some("batch"), ..QueueFilter::default() }.page(desk, WAITING_MAX)?.items;
    let files = files.iter().map(|item| queue_item::view(desk, item)).collect::<Result<Vec<_>, _>>()?;
    Ok(html! {
        @if !files.is_empty() {
            (visit.card("files", words::FILES_WAIT, html! {
                @for (place, file) in files.iter().enumerate() {
                    @let name = file.reference.as_deref().unwrap_or_default();
                    p {
                        bdi { (name) } " · " (visit.money(file.amount.unwrap_or_default())) " · "
                        (visit.say(words::ASKED_BY)) " " bdi { (file.requested_by.as_deref().unwrap_or_default()) }
                    }
                    form method="post" action={"/console/house/batches/" (file.id) "/reject"} {
                        (visit.form_fields())
                        label for={"file-notes-" (place)} { (visit.say(words::NOTES)) }
                        textarea id={"file-notes-" (place)} name="notes" rows="2" maxlength="500" required {}
                        p.actions { button type="submit" aria-label={(visit.say(words::REJECT)) " " (name)} { (visit.say(words::REJECT)) } }
                    }
                }
            }))
        }
    })
}

/// Rejects a settlement file, as the route of `/ops` does.
pub(crate) async fn reject_batches(posted: PostedForm) -> Response {
    let body = json!({"notes": posted.form.value("notes")});
    let rejected = posted.call(batches::reject, "/ops/batches/{id}/reject", body).await;
    posted.visit.done(rejected, "/console/house", FormOutcome::Decided)
}

/// Books the settlement file of the form, as the route of `/ops` does; its page has what it books.
pub(crate) async fn book_batches(posted: PostedForm) -> Response {
    let PostedForm { desk, visit, form, .. } = &posted;
    let booked = async {
        posted.require(Role::Decide)?;
        let is_preview = form.value("preview") == "on";
        let file = batches::book_file(desk, visit.operator.clone(), form.value("lines").as_bytes(), is_preview);
        Ok(booked_screen(desk, visit, &file.await?))
    };
    visit.answer(booked.await)
}

fn booked_screen(desk: &Desk, visit: &Visit, file: &BookedFile) -> Screen {
    let said = match file.status() {
        "preview" => words::ONLY_PREVIEW,
        "booked" => words::BATCHES_BOOKED,
        _ => words::BATCHES_ASKED,
    };
    let table = Table::of(visit.language, words::BATCHES, &file.preview.batches)
        .text(words::REFERENCE, |ended| html! { bdi { (ended.batch.reference) } })
        .amount(words::AMOUNT, |ended| visit.money(ended.net.0))
        .amount(words::IN_SUSPENSE, |ended| visit.money(ended.unexplained_net.0));
    let mut room = ENTRIES_SHOWN;
    let body = html! {
        p.card role="status" { (visit.say(said)) }
        (visit.card("batches", words::BATCHES, table.shown()))
        (visit.card("entries", words::ENTRIES, html! {
            @for record in &file.preview.records {
                (show::entries(&desk.engine, visit.language, &record.entries, &mut room))
            }
        }))
        p.actions { a.button href="/console/house" { (visit.say(words::HOUSE)) } }
    };
    Screen { section: Section::House, title: visit.say(words::BOOK_BATCHES).to_owned(), body }
}

/// Fields of the forms of entries and write-offs; their ids begin with `prefix`.
fn amount_and_reason(visit: &Visit, prefix: &str, draft: &EntryDraft) -> Markup {
    let amount = format!("{prefix}amount");
    html! {
        label for=(amount) { (visit.say(words::AMOUNT)) " (R$)" }
        input id=(amount) name="amount" inputmode="decimal" required maxlength="20" autocomplete="off" value=(draft.amount);
        (reason_and_reference(visit, prefix, draft))
    }
}

/// Fields of all forms; their ids begin with `prefix`.
fn reason_and_reference(visit: &Visit, prefix: &str, draft: &EntryDraft) -> Markup {
    let reference = format!("{prefix}reference");
    html! {
        (visit.reason_field(&format!("{prefix}reason")))
        label for=(reference) { (visit.say(words::REFERENCE)) }
        input id=(reference) name="reference" required maxlength="100" autocomplete="off" value=(draft.reference);
        p.dim { (visit.say(words::SECOND_OPERATOR)) }
    }
}

/// Asks for an entry, as the route of `/ops` does, and explains with it the difference that its
/// form names.
pub(crate) async fn ask(posted: PostedForm) -> Response {
    let PostedForm { desk, visit, form, .. } = &posted;
    let file = Some(form.value("reconciliation")).filter(|file| !file.is_empty());
    let asked = async {
        posted.require(Role::Decide)?;
        let sent = posted.request("/ops/entries", &wanted(desk, visit, form)?);
        let entry = entries::request(State(Arc::clone(desk)), Decider(visit.operator.clone()), sent).await?;
        let Some(file) = file else { return Ok(FormOutcome::EntryAsked) };
        match reconciliations::explain_with(&posted, file, Some(&json_of(entry).await?["id"])).await {
            Ok(()) => Ok(FormOutcome::EntryAsked),
            Err(problem) if problem.code() == Code::ValidationFailed => Ok(FormOutcome::EntryAskedAlone),
            Err(problem) => Err(problem),
        }
    };
    let page = file.map_or("/console/house".to_owned(), |file| format!("/console/reconciliations/{file}"));
    let asked = asked.await;
    let outcome = asked.as_ref().map_or(FormOutcome::EntryAsked, FormOutcome::clone);
    visit.done(asked, &page, outcome)
}

/// The body of the request that one of the forms stands for.
fn wanted(desk: &Desk, visit: &Visit, form: &FormBody) -> Result<Value> {
    let text = |name| form.value(name);
    let given = |name| Some(text(name).trim()).filter(|text| !text.is_empty());
    let (reason, reference, day) = (text("reason"), text("reference"), given("effective_date"));
    if let Some(withdrawal) = given("withdrawal") {
        return Ok(json!({
            "kind": entries::WITHDRAWAL_RETURNED, "withdrawal": withdrawal, "bank": given("bank"),
            "reason": reason, "reference": reference, "effective_date": day,
        }));
    }
    let amount = amount(visit.language, "amount", form.value("amount"))?;
    let accounts = |field, owner, of: fn(&Engine, LedgerId) -> Option<(String, String)>| {
        let nobody = || not_found().says(visit.say(words::NO_DEBTOR));
        of(&desk.engine, exactly_named_ledger(desk, field, owner)?).ok_or_else(nobody)
    };
    let (debit, credit) = match (given("debtor"), given("credited")) {
        (Some(debtor), _) => accounts("debtor", debtor, debt_accounts)?,
        (_, Some(credited)) => accounts("credited", credited, goodwill_accounts)?,
        _ => (text("debit").to_owned(), text("credit").to_owned()),
    };
    Ok(json!({
        "debit": debit, "credit": credit, "amount": amount,
        "reason": reason, "reference": reference, "effective_date": day,
        "reference_repeats": given("reference_repeats").map(|_| true),
    }))
}
