//! Reconciliations: files of banks, the acquirer and the PIX institution, compared with the books,
//! and what explains the lines that differ. The routes of `/ops` compare, keep and dismiss.

use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use books::reconcile::booked_movements::BankAccount;
use ledger::account::Account;
use ledger::time::Month;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::form::optional;
use crate::house::{self, EntryDraft};
use crate::keys::json_of;
use crate::page::{PageRequest, Screen, Section, Visit};
use crate::paging::{pager, part};
use crate::sent_form::{PostedFile, PostedForm};
use crate::show;
use crate::show::Head::{Amount, Text};
use crate::wire_words;
use crate::words::{self, Word};
use ops::desk::Desk;
use ops::operator::Decider;
use ops::periods;
use ops::reconciliations::{self as results, KeptResult};
use web::caller::PathId;
use web::credential::Role;
use web::idempotency::SentKey;
use web::problem::{Code, Problem};
use web::reply::{PageQuery, query};
use web::session::FormOutcome;

/// Results on a page.
const RESULTS_A_PAGE: u64 = 20;
/// Files of a month: kind, and the account of a bank.
const FILES: [(&str, Option<BankAccount>); 5] = [
    ("bank", Some(BankAccount::Settlement)),
    ("bank", Some(BankAccount::Pix)),
    ("bank", Some(BankAccount::Own)),
    ("pix", None),
    ("acquirer", None),
];

/// Page of the reconciliations: the form, the days that are covered, the results.
pub(crate) async fn list(request: PageRequest) -> Result<Screen, Problem> {
    let PageRequest { desk, visit, parts, .. } = &request;
    visit.whole()?;
    let given = query(parts)?;
    let page = part(&given, RESULTS_A_PAGE)?;
    let month = optional(&given, "month")?.map(periods::named).transpose()?.unwrap_or(visit.now.month());
    let asked = PageQuery { page, search: String::new(), cursors: Default::default() };
    let kept = json_of(results::list(State(Arc::clone(desk)), visit.operator.clone(), asked).await?).await?;
    let body = html! {
        @if visit.may(Role::Decide) { (upload(visit)) }
        (calendar(desk, visit, month)?)
        (visit.card("results", words::RESULTS, html! {
            @if let Some(items) = kept["items"].as_array().filter(|items| !items.is_empty()) { (table(visit, items)) }
            (pager(visit, parts, page, kept["total"].as_u64().unwrap_or_default()))
        }))
    };
    Ok(Screen { section: Section::Reconciliations, title: visit.say(words::RECONCILIATION).to_owned(), body })
}

fn upload(visit: &Visit) -> Markup {
    html! {
        (visit.card("compare", words::COMPARE_FILE, html! {
            p.dim { (visit.say(words::COMPARE_WHAT)) }
            form method="post" action="/console/reconciliations" enctype="multipart/form-data" {
                (visit.form_fields())
                label for="file" { (visit.say(words::FILE)) }
                input id="file" name="file" type="file" required accept=".ofx,.qfx,.csv,.json,.txt";
                label for="account" { (visit.say(words::BANK_ACCOUNT_OF_FILE)) }
                select id="account" name="account" {
                    option value="" { (visit.say(words::RECOGNIZED)) }
                    @for account in BankAccount::ALL {
                        option value=(account.name()) { (show::account_label(visit.language, account.house().account())) }
                    }
                }
                label for="acctid" { (visit.say(words::ACCTID)) }
                input id="acctid" name="acctid" maxlength="64" autocomplete="off" spellcheck="false";
                label { input type="checkbox" name="again" value="on"; " " (visit.say(words::COMPARE_AGAIN)) }
                p.actions { button.primary type="submit" { (visit.say(words::COMPARE_FILE)) } }
            }
        }))
    }
}

/// The days of a month, and of which of them the files were compared.
fn calendar(desk: &Desk, visit: &Visit, month: Month) -> Result<Markup, Problem> {
    let kept = KeptResult::all(&desk.engine)?;
    let rows: Vec<_> = FILES
        .into_iter()
        .map(|(kind, account)| {
            (kind, account, KeptResult::days_covered(&kept, kind, account.map(BankAccount::name), month))
        })
        .collect();
    let before = Month(month.0.saturating_sub(1));
    let link = |month: Month| format!("/console/reconciliations?month={month}#days");
    let [yes, no] = [words::DAY_COMPARED, words::DAY_NOT_COMPARED].map(|word| visit.say(word));
    let table = html! {
        table.days {
            thead { tr {
                th scope="col" { (visit.say(words::FILE)) }
                @for (day, _) in &rows[0].2 { th scope="col" { (day.format("%-d")) } }
            } }
            tbody {
                @for (kind, account, days) in &rows {
                    tr {
                        th scope="row" { (file_name(visit, kind, *account)) }
                        @for (_, is_covered) in days {
                            td { @if *is_covered { span title=(yes) aria-label=(yes) role="img" { "✓" } } @else { span.dim aria-label=(no) role="img" { "·" } } }
                        }
                    }
                }
            }
        }
    };
    Ok(html! {
        section.card aria-labelledby="days" {
            h2 id="days" { (visit.say(words::DAYS_COVERED)) " " (crate::periods::name(visit.language, month)) }
            (show::scrolled(visit.say(words::DAYS_COVERED), table))
            p.pager {
                a href=(link(before)) rel="prev" { "← " (crate::periods::name(visit.language, before)) }
                " " a href={"/console/periods/" (month)} { (visit.say(words::MONTH)) }
                @if month < visit.now.month() { " " a href=(link(month.next())) rel="next" { (crate::periods::name(visit.language, month.next())) " →" } }
            }
        }
    })
}

fn file_name(visit: &Visit, kind: &str, account: Option<BankAccount>) -> Markup {
    html! {
        (visit.say(wire_words::file_kind(kind)))
        @if let Some(account) = account { " · " (show::account_label(visit.language, account.house().account())) }
    }
}

/// The account of the statement that a result is of.
fn account_of(result: &Value) -> Option<BankAccount> {
    BankAccount::ALL.into_iter().find(|account| result["account"] == account.name())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn table(visit: &Visit, items: &[Value]) -> Markup {
    let count = |result: &Value, name: &str| show::count(visit.language, result[name].as_u64().unwrap_or_default());
    let heads = [
        Text(words::FILE),
        Text(words::DAYS),
        Amount(words::MATCHED),
        Amount(words::DIFFERS),
        Amount(words::ONLY_OURS),
        Amount(words::ONLY_THEIRS),
        Amount(words::REPEATED),
        Amount(words::UNDECIDED),
        Text(words::WHO),
    ];
    let rows = html! {
        @for result in items {
            tr {
                td {
                    a href={"/console/reconciliations/" (text(&result["sha256"]))} {
                        (file_name(visit, text(&result["kind"]), account_of(result)))
                    }
                    @if result["dismissed"].is_object() { " · " (visit.say(words::DISMISSED)) }
                }
                td { (show::day(visit.language, text(&result["from"]))) " – " (show::day(visit.language, text(&result["to"]))) }
                @for name in ["matched", "differs", "only_ours", "only_theirs", "twice", "undecided"] {
                    td.amount { (count(result, name)) }
                }
                td { bdi { (text(&result["made_by"])) } " · " (show::text_moment(visit.language, text(&result["made_at"]))) }
            }
        }
    };
    show::scrolled(visit.say(words::RESULTS), show::table(visit.language, &heads, rows))
}

/// Compares the file of the form, as the route of `/ops` does; leads to its result.
pub(crate) async fn compare(
    State(desk): State<Arc<Desk>>,
    mut parts: Parts,
    PostedFile { visit, form, file }: PostedFile,
) -> Response {
    let compared = async {
        visit.operator.require(Role::Decide)?;
        visit.whole()?;
        if file.bytes.is_empty() {
            return Err(Problem::new(Code::ValidationFailed).says(visit.say(words::FILE_MISSING)));
        }
        let fields = ["account", "acctid"].map(|name| (name, form.value(name).trim()));
        let again = (form.value("again") == "on").then_some(("again", "true"));
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty()).chain(again);
        let asked = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let address = format!("/ops/reconciliations?{asked}");
        parts.uri = address.parse().map_err(|_| Problem::new(Code::ValidationFailed))?;
        let key = SentKey::of_form(form.value("key"), "/ops/reconciliations");
        let operator = Decider(visit.operator.clone());
        json_of(results::reconcile(State(Arc::clone(&desk)), operator, key, parts, file).await?).await
    };
    match compared.await {
        Ok(result) => {
            let path = format!("/console/reconciliations/{}", text(&result["sha256"]));
            visit.done(Ok(()), &path, FormOutcome::FileCompared)
        }
        // What was compared before has its result.
        Err(problem) => match problem.member_text("id").filter(|_| problem.code() == Code::AlreadyReconciled) {
            Some(id) => Redirect::to(&format!("/console/reconciliations/{id}")).into_response(),
            None => visit.answer(Err(problem)),
        },
    }
}

/// One result, line by line.
pub(crate) async fn one(request: PageRequest) -> Result<Screen, Problem> {
    let PageRequest { desk, visit, id, parts } = &request;
    visit.whole()?;
    let result = results::get(State(Arc::clone(desk)), visit.operator.clone(), PathId(id.to_owned())).await?;
    let result = json_of(result).await?;
    let given = query(parts)?;
    let line = optional(&given, "line")?.and_then(|line| line.parse::<u64>().ok());
    let none = Vec::new();
    let findings = result["findings"].as_array().unwrap_or(&none);
    let explained = line.and_then(|line| findings.iter().find(|finding| finding["line"] == line));
    let body = html! {
        section.card aria-label=(visit.say(words::RESULT)) { (show::facts(facts(visit, &result))) }
        @if let (Some(finding), Some(account)) = (explained, account_of(&result)) {
            (explanation(visit, finding, account))
        }
        (visit.card("differences", words::DIFFERENCES, html! {
            @if findings.is_empty() { p { (visit.say(words::ALL_MATCHED)) } } @else {
                (show::scrolled(visit.say(words::DIFFERENCES), lines(visit, &result, findings)))
            }
        }))
        (others(visit, &result, words::UNDECIDED, "undecided"))
        (others(visit, &result, words::MATCHED, "matched"))
        @if visit.may(Role::Decide) && !result["dismissed"].is_object() { (dismissal(visit, id)) }
        p { a href="/console/reconciliations" { "← " (visit.say(words::RECONCILIATION)) } }
    };
    let title = format!(
        "{} {}",
        visit.say(wire_words::file_kind(text(&result["kind"]))),
        show::day(visit.language, text(&result["from"]))
    );
    Ok(Screen { section: Section::Reconciliations, title, body })
}

fn facts(visit: &Visit, result: &Value) -> Vec<(&'static str, Markup)> {
    let by =
        |name: &Value, at: &Value| html! { bdi { (text(name)) } " · " (show::text_moment(visit.language, text(at))) };
    let days = html! { (show::day(visit.language, text(&result["from"]))) " – " (show::day(visit.language, text(&result["to"]))) };
    let mut pairs = vec![
        (visit.say(words::FILE), file_name(visit, text(&result["kind"]), account_of(result))),
        (visit.say(words::DAYS), days),
        (visit.say(words::WHO), by(&result["made_by"], &result["made_at"])),
    ];
    if let Some(number) = result["acctid"].as_str() {
        pairs.push((visit.say(words::ACCTID), html! { bdi { (number) } }));
    }
    for (word, name) in [
        (words::LINES, "lines"),
        (words::MATCHED, "matched"),
        (words::DIFFERS, "differs"),
        (words::ONLY_OURS, "only_ours"),
        (words::ONLY_THEIRS, "only_theirs"),
        (words::REPEATED, "twice"),
        (words::IN_SUSPENSE, "in_suspense"),
        (words::UNDECIDED, "undecided"),
    ] {
        let count = result[name].as_u64().unwrap_or_default();
        pairs.push((visit.say(word), html! { (show::count(visit.language, count)) }));
    }
    let dismissed = &result["dismissed"];
    if dismissed.is_object() {
        let what = html! { (by(&dismissed["by"], &dismissed["at"])) " · " bdi { (text(&dismissed["reason"])) } };
        pairs.push((visit.say(words::DISMISSED), what));
    }
    pairs
}

/// The lines that are no differences, folded up; the page has the first of them.
fn others(visit: &Visit, result: &Value, heading: Word, name: &str) -> Markup {
    let heading = visit.say(heading);
    let found = result[format!("{name}_lines")].as_array().filter(|found| !found.is_empty());
    html! {
        @if let Some(found) = found {
            section.card aria-label=(heading) {
                details {
                    summary { (heading) " (" (show::count(visit.language, result[name].as_u64().unwrap_or_default())) ")" }
                    (show::scrolled(heading, lines(visit, result, found)))
                }
            }
        }
    }
}

fn lines(visit: &Visit, result: &Value, findings: &[Value]) -> Markup {
    let heads = [
        Text(words::WHAT),
        Text(words::LINE),
        Text(words::NAME),
        Text(words::OURS_DAY),
        Amount(words::OURS),
        Text(words::THEIRS_DAY),
        Amount(words::THEIRS),
        Text(words::EXPLAIN),
    ];
    let (sha256, is_of_bank) = (text(&result["sha256"]), account_of(result).is_some());
    let side = |side: &Value| {
        html! {
            td { (show::day(visit.language, text(&side["paid_on"]))) }
            td.amount {
                @if let Some(net) = side["net"].as_i64() { (visit.money(net)) }
                @if let Some(fee) = side["fee"].as_i64().filter(|fee| *fee != 0) { br; span.dim { (visit.say(words::FEE)) " " (visit.money(fee)) } }
            }
        }
    };
    let rows = html! {
        @for finding in findings {
            tr {
                td { (visit.say(wire_words::finding(text(&finding["finding"])))) }
                td { @if let Some(line) = finding["line"].as_u64() { (show::count(visit.language, line)) } }
                td { (named(visit, finding)) }
                (side(&finding["ours"]))
                (side(&finding["theirs"]))
                td {
                    @if let Some(line) = finding["line"].as_u64().filter(|_| is_of_bank && finding["finding"] == "only_theirs" && visit.may(Role::Decide)) {
                        a href={"/console/reconciliations/" (sha256) "?line=" (line) "#explain"} { (visit.say(words::EXPLAIN)) }
                    }
                }
            }
        }
    };
    show::table(visit.language, &heads, rows)
}

/// What a difference is about, with a link to the charge where it is one.
fn named(visit: &Visit, finding: &Value) -> Markup {
    let batch = finding["batch"].as_str();
    html! {
        (visit.say(wire_words::compared_object(text(&finding["kind"])))) " " bdi { (text(&finding["id"])) }
        @if let Some(batch) = batch { br; span.dim { bdi { (batch) } } }
        @if let Some(txid) = finding["payment_id"].as_str() { br; a href={"/console/charges/" (txid)} { (visit.say(words::CHARGE)) } }
    }
}

/// The forms that ask for what explains a line of a bank's statement: an entry, or the return of a
/// withdrawal.
fn explanation(visit: &Visit, finding: &Value, account: BankAccount) -> Markup {
    let theirs = &finding["theirs"];
    let net = theirs["net"].as_i64().unwrap_or_default();
    let bank = account.house().account().kind_name();
    let (debit, credit) =
        if net < 0 { (Account::BankFees.kind_name(), bank) } else { (bank, Account::Suspense.kind_name()) };
    let draft = EntryDraft {
        debit,
        credit,
        amount: show::column(visit.language, i128::from(net.unsigned_abs())),
        reference: text(&finding["id"]).to_owned(),
        effective_date: text(&theirs["paid_on"]).to_owned(),
    };
    html! {
        div id="explain" {
            (house::form(visit, &draft))
            @if net > 0 { (house::return_form(visit, &draft)) }
        }
    }
}

fn dismissal(visit: &Visit, id: &str) -> Markup {
    let action = format!("/console/reconciliations/{id}/dismiss");
    let content = html! {
        p.dim { (visit.say(words::DISMISS_WHAT)) }
        (visit.form(&action, visit.reason_field("dismiss-reason"), words::DISMISS))
    };
    visit.card("dismiss", words::DISMISS, content)
}

/// Dismisses a result, as the route of `/ops` does.
pub(crate) async fn dismiss(posted: PostedForm) -> Response {
    let PostedForm { visit, id, form, .. } = &posted;
    let body = json!({"reason": form.value("reason")});
    let dismissed = posted.call(results::dismiss, "/ops/reconciliations/{id}/dismiss", body).await;
    visit.done(dismissed, &format!("/console/reconciliations/{id}"), FormOutcome::ResultDismissed)
}
