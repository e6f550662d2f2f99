//! Reconciliations: files of banks, the acquirer and the PIX institution, compared with the books,
//! and what explains the lines that differ. The routes of `/ops` compare, keep and dismiss.

use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use books::reconcile::booked_movements::BankAccount;
use ledger::{Account, Month};
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::form::optional;
use crate::house::{self, EntryDraft};
use crate::keys::json_of;
use crate::list_filter::file_links;
use crate::paging::{items, part, range};
use crate::sent_form::PostedFile;
use crate::table::Table;
use crate::{
    PageRequest, PostedForm, Screen, Section, Visit, Word, pager, pager_named, part_named, show, wire_words, words,
};
use ops::explanations;
use ops::list_file::requested_format;
use ops::periods;
use ops::reconciliations::coverage::Coverage;
use ops::reconciliations::{self as results, Reconciliation};
use ops::{Decider, Desk, DeskState};
use web::{Code, FormOutcome, Page, PathId, Problem, Result, Role, SentKey, number, one_of, query};

/// Results on a page.
const RESULTS_A_PAGE: u64 = 20;
/// Results on a page of open differences.
const OPEN_RESULTS_A_PAGE: u64 = 10;
/// Differences, and other lines, on a page.
const LINES_A_PAGE: u64 = 50;
/// Files of a month: kind, and the account of a bank.
const FILES: [(&str, Option<BankAccount>); 5] = [
    ("bank", Some(BankAccount::Settlement)),
    ("bank", Some(BankAccount::Pix)),
    ("bank", Some(BankAccount::Own)),
    ("pix", None),
    ("acquirer", None),
];

/// Page of the reconciliations: the form, the days that are covered, the results; or the open
/// differences.
pub(crate) async fn list(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, parts, .. } = &request;
    visit.whole()?;
    let given = query(parts)?;
    let month = optional(&given, "month")?;
    let is_open = one_of(&given, "open", &["true"])?.is_some();
    let page = part(&given, if is_open { OPEN_RESULTS_A_PAGE } else { RESULTS_A_PAGE })?;
    let listed = listed(&request, page, if is_open { month } else { None }, &given).await?;
    let (items, total) = (listed["items"].as_array(), listed["total"].as_u64().unwrap_or_default());
    let items = items.map_or(&[][..], Vec::as_slice);
    let month = month.map(periods::named).transpose()?;
    if is_open {
        let body = html! {
            @if items.is_empty() { p.dim { (visit.say(words::NOTHING)) } }
            @for result in items { (open_differences(visit, result)) }
            (pager(visit, parts, page, total))
            p { a href="/console/reconciliations" { "← " (visit.say(words::RECONCILIATION)) } }
        };
        let title = visit.say(words::OPEN_DIFFERENCES);
        let title =
            month.map_or(title.to_owned(), |month| format!("{title} {}", crate::periods::name(visit.language, month)));
        return Ok(Screen { section: Section::Reconciliations, title, body });
    }
    let body = html! {
        p.actions { a.button href="/console/reconciliations?open=true" { (visit.say(words::OPEN_DIFFERENCES)) } }
        @if visit.may(Role::Decide) { (upload(visit)) }
        (calendar(desk, visit, month.unwrap_or(visit.now.month()))?)
        (visit.card("results", words::RESULTS, html! {
            (table(visit, items))
            (pager(visit, parts, page, total))
        }))
    };
    Ok(Screen { section: Section::Reconciliations, title: visit.say(words::RECONCILIATION).to_owned(), body })
}

/// The stored results that a page asks for, as the route of `/ops` lists them.
async fn listed(
    PageRequest { desk, visit, parts, .. }: &PageRequest,
    page: Page,
    period: Option<&str>,
    given: &[(String, String)],
) -> Result<Value> {
    let page = [("page", page.page.to_string()), ("per_page", page.per_page.to_string())];
    let own = given.iter().filter(|(name, _)| matches!(name.as_str(), "open" | "kind"));
    let pairs = own.map(|(name, value)| (name.as_str(), value.as_str()));
    let pairs = pairs.chain(page.iter().map(|(name, value)| (*name, value.as_str())));
    let pairs = pairs.chain(period.map(|period| ("period", period)));
    let asked = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let mut parts = parts.clone();
    parts.uri = format!("/ops/reconciliations?{asked}").parse().map_err(|_| Problem::new(Code::ValidationFailed))?;
    json_of(results::list(State(Arc::clone(desk)), visit.operator.clone(), parts).await?).await
}

/// The open differences of a result, the first of many, with a link to the others.
fn open_differences(visit: &Visit, result: &Value) -> Markup {
    let sha256 = text(&result["sha256"]);
    let open = result["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let shown = open.iter().take(LINES_A_PAGE as usize);
    let rows = shown.map(|finding| (finding["number"].as_u64().unwrap_or_default() as usize, finding));
    html! {
        section.card aria-labelledby={"of-" (sha256)} {
            h2 id={"of-" (sha256)} {
                a href={"/console/reconciliations/" (sha256)} { (file_name(visit, text(&result["kind"]), account_of(result))) " · " (days(visit, result)) }
                " (" (show::count(visit.language, open.len() as u64)) ")"
            }
            (line_table(visit, result, rows, (words::OPEN_DIFFERENCES, true)))
        }
    }
}

fn upload(visit: &Visit) -> Markup {
    html! {
        (visit.card("compare", words::COMPARE_FILE, html! {
            p.dim { (visit.say(words::COMPARE_WHAT)) }
            form method="post" action="/console/reconciliations" enctype="multipart/form-data" {
                (visit.form_fields())
                label for="file" { (visit.say(words::FILE)) }
                input id="file" name="file" type="file" required accept=".ofx,.qfx,.ret,.csv,.json,.txt";
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
fn calendar(desk: &Desk, visit: &Visit, month: Month) -> Result<Markup> {
    let coverage = Coverage::of(&Reconciliation::all(&desk.engine)?);
    let rows =
        FILES.map(|(kind, account)| (kind, account, coverage.of_month(kind, account.map(BankAccount::name), month)));
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
                        @for (day, is_covered) in days {
                            td data-label=(day.format("%-d")) { @if *is_covered { span title=(yes) aria-label=(yes) role="img" { "✓" } } @else { span.dim aria-label=(no) role="img" { "·" } } }
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

fn days(visit: &Visit, result: &Value) -> Markup {
    html! { (show::days(visit.language, text(&result["from"]), text(&result["to"]))) }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn table(visit: &Visit, items: &[Value]) -> Markup {
    let mut table = Table::of(visit.language, words::RESULTS, items)
        .text(words::FILE, |result| {
            html! {
                a href={"/console/reconciliations/" (text(&result["sha256"]))} {
                    (file_name(visit, text(&result["kind"]), account_of(result)))
                }
                @if result["dismissed"].is_object() { " · " (visit.say(words::DISMISSED)) }
            }
        })
        .text(words::DAYS, |result| days(visit, result));
    for (head, name) in COUNTS {
        table =
            table.amount(head, move |result| show::count(visit.language, result[name].as_u64().unwrap_or_default()));
    }
    table
        .text(words::WHO, |result| {
            html! { bdi { (text(&result["made_by"])) } " · " (show::text_moment(visit.language, text(&result["made_at"]))) }
        })
        .shown()
}

/// What a result counts, by the names of its members.
const COUNTS: [(Word, &str); 6] = [
    (words::MATCHED, "matched"),
    (words::DIFFERS, "differs"),
    (words::ONLY_OURS, "only_ours"),
    (words::ONLY_THEIRS, "only_theirs"),
    (words::REPEATED, "twice"),
    (words::UNDECIDED, "undecided"),
];

/// Compares the file of the form, as the route of `/ops` does; leads to its result.
pub(crate) async fn compare(
    State(desk): DeskState,
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

/// One result, line by line; or its differences as a file.
pub(crate) async fn one(request: PageRequest) -> Response {
    let PageRequest { desk, visit, id, parts } = &request;
    let shown = async {
        visit.whole()?;
        let result = (State(Arc::clone(desk)), visit.operator.clone(), PathId(id.to_owned()), parts.clone());
        let result = results::get(result.0, result.1, result.2, result.3).await?;
        match requested_format(&query(parts)?)? {
            Some(_) => Ok(result),
            None => Ok(visit.answer(screen(&request, &json_of(result).await?))),
        }
    };
    visit.answer_with(shown.await)
}

fn screen(request: &PageRequest, result: &Value) -> Result<Screen> {
    let PageRequest { visit, id, parts, .. } = request;
    let given = query(parts)?;
    let chosen = number(&given, "finding", 0..=u64::from(u32::MAX))?;
    let explained = chosen.and_then(|chosen| Some((chosen, result["findings"].get(usize::try_from(chosen).ok()?)?)));
    let may_change = visit.may(Role::Decide) && !result["dismissed"].is_object();
    let body = html! {
        section.card aria-label=(visit.say(words::RESULT)) { (show::facts(facts(visit, result))) }
        @if let Some((number, finding)) = explained.filter(|_| may_change) {
            (explanation(visit, result, number, finding))
        }
        (visit.card("differences", words::DIFFERENCES, html! {
            @if result["findings"][0].is_null() { p { (visit.say(words::ALL_MATCHED)) } } @else {
                (lines(request, &given, result, (words::DIFFERENCES, "differences"))?)
                (file_links(visit, parts, false))
            }
        }))
        @for (heading, name) in [(words::UNDECIDED, "undecided"), (words::MATCHED, "matched")] {
            (others(request, &given, result, (heading, name))?)
        }
        @if may_change { (dismissal(visit, id)) }
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
    let mut pairs = vec![
        (visit.say(words::FILE), file_name(visit, text(&result["kind"]), account_of(result))),
        (visit.say(words::DAYS), days(visit, result)),
        (visit.say(words::WHO), by(&result["made_by"], &result["made_at"])),
    ];
    if let Some(number) = result["acctid"].as_str() {
        pairs.push((visit.say(words::ACCTID), html! { bdi { (number) } }));
    }
    if result["signs_by_type"] == true {
        pairs.push((visit.say(words::SIGNS), html! { (visit.say(words::SIGNS_BY_TYPE)) }));
    }
    if result["closing"].is_object() {
        pairs.push((visit.say(words::CLOSING_BALANCE), closing(visit, &result["closing"])));
    }
    let more = [(words::IN_SUSPENSE, "in_suspense"), (words::EXPLAINED, "explained")];
    for (word, name) in [(words::LINES, "lines")].into_iter().chain(COUNTS).chain(more) {
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

/// The closing balance of a statement and that of the books, each with its day.
fn closing(visit: &Visit, closing: &Value) -> Markup {
    let money = |name: &str| visit.money(closing[name].as_i64().unwrap_or_default());
    html! {
        @for (word, name, on) in [(words::THEIRS, "theirs", "theirs_on"), (words::OURS, "ours", "ours_on")] {
            (visit.say(word)) " " (money(name)) " · " (show::day(visit.language, text(&closing[on]))) br;
        }
        span.dim { (visit.say(words::DIFFERENCE)) " " (money("difference")) }
    }
}

/// The lines that are no differences, folded up.
fn others(
    request: &PageRequest,
    given: &[(String, String)],
    result: &Value,
    (heading, name): (Word, &'static str),
) -> Result<Markup> {
    let visit = &request.visit;
    let count = result[name].as_u64().unwrap_or_default();
    Ok(html! {
        @if count > 0 {
            section.card aria-label=(visit.say(heading)) {
                details open[given.iter().any(|(key, _)| key == name)] {
                    summary { (visit.say(heading)) " (" (show::count(visit.language, count)) ")" }
                    (lines(request, given, result, (heading, name))?)
                }
            }
        }
    })
}

/// A part of the differences, or of other lines; the address has its number under `name`.
fn lines(
    request: &PageRequest,
    given: &[(String, String)],
    result: &Value,
    (heading, name): (Word, &'static str),
) -> Result<Markup> {
    let PageRequest { visit, parts, .. } = request;
    let page = part_named(given, name, LINES_A_PAGE)?;
    let is_difference = name == "differences";
    let all = if is_difference { result["findings"].as_array() } else { result[format!("{name}_lines")].as_array() };
    let all = all.map_or(&[][..], Vec::as_slice);
    let rows = range(all.len(), page).zip(items(all, page));
    Ok(html! {
        (line_table(visit, result, rows, (heading, is_difference)))
        (pager_named(visit, parts, name, page, all.len() as u64))
    })
}

/// Table of lines, each with its place among those of the result.
fn line_table<'a>(
    visit: &Visit,
    result: &Value,
    lines: impl Iterator<Item = (usize, &'a Value)>,
    (heading, is_difference): (Word, bool),
) -> Markup {
    let day = |side: &Value| show::day(visit.language, text(&side["paid_on"]));
    let net = |side: &Value| {
        html! {
            @if let Some(net) = side["net"].as_i64() { (visit.money(net)) }
            @if let Some(fee) = side["fee"].as_i64().filter(|fee| *fee != 0) {
                br; span.dim { (visit.say(words::FEE)) " " (visit.money(fee)) }
            }
        }
    };
    let table = Table::of(visit.language, heading, lines)
        .text(words::WHAT, |(_, finding)| visit.say(wire_words::FINDINGS.of(text(&finding["finding"]))))
        .text(words::LINE, |(_, finding)| {
            finding["line"].as_u64().map(|line| show::count(visit.language, line)).unwrap_or_default()
        })
        .text(words::NAME, |(_, finding)| named(visit, finding))
        .text(words::OURS_DAY, |(_, finding)| day(&finding["ours"]))
        .amount(words::OURS, |(_, finding)| net(&finding["ours"]))
        .text(words::THEIRS_DAY, |(_, finding)| day(&finding["theirs"]))
        .amount(words::THEIRS, |(_, finding)| net(&finding["theirs"]));
    if !is_difference {
        return table.shown();
    }
    table.text(words::EXPLAIN, |(place, finding)| explained(visit, result, place, finding)).shown()
}

/// What explains a difference, and the link to explain it.
fn explained(visit: &Visit, result: &Value, place: usize, finding: &Value) -> Markup {
    let found = result["explanations"].as_array().into_iter().flatten().filter(|found| found["finding"] == place);
    let found: Vec<_> = found.collect();
    let replaced = finding["replaced_by"].as_str();
    let is_open = found.last().is_none_or(|found| found["entry_id"].is_null() || found["status"] == "rejected");
    let is_open = is_open && replaced.is_none() && finding["finding"] != "in_suspense";
    html! {
        @if let Some(other) = replaced { a href={"/console/reconciliations/" (other)} { (visit.say(words::IN_ANOTHER_FILE)) } }
        @for found in &found {
            @let status = visit.say(wire_words::EXPLANATION_STATUSES.of(text(&found["status"])));
            @match found["entry_id"].as_str() {
                Some(entry) => a href={"/console/queue/" (entry)} { (status) },
                None => (status),
            }
            br; span.dim { bdi { (text(&found["reason"])) } " · " bdi { (text(&found["by"])) } } " "
        }
        @if is_open && visit.may(Role::Decide) && !result["dismissed"].is_object() {
            a href={"/console/reconciliations/" (text(&result["sha256"])) "?finding=" (place) "#explain"} { (visit.say(words::EXPLAIN)) }
        }
    }
}

/// The object of a difference: name and words of the bank, then its id, with a link to its charge.
fn named(visit: &Visit, finding: &Value) -> Markup {
    let words = [&finding["name"], &finding["text"]].map(Value::as_str).into_iter().flatten();
    html! {
        @for part in words { bdi { (part) } br; }
        span.dim { (visit.say(wire_words::COMPARED_OBJECTS.of(text(&finding["kind"])))) " " bdi { (text(&finding["id"])) } }
        @if let Some(batch) = finding["batch"].as_str() { br; span.dim { bdi { (batch) } } }
        @if let Some(txid) = finding["payment_id"].as_str() { br; a href={"/console/charges/" (txid)} { (visit.say(words::CHARGE)) } }
    }
}

/// The forms that explain a difference: the entry that makes the books agree with the institution,
/// the return of a withdrawal, or a reason.
fn explanation(visit: &Visit, result: &Value, number: u64, finding: &Value) -> Markup {
    let net = |side: &Value| side["net"].as_i64().unwrap_or_default();
    // What stands in a file twice agrees with the books once.
    let is_twice = finding["finding"] == "twice";
    let more = net(&finding["theirs"]) - if is_twice { 0 } else { net(&finding["ours"]) };
    let (is_ours, is_theirs) = (finding["theirs"].is_null(), finding["ours"].is_null());
    let fees = if result["kind"] == "acquirer" { Account::AcquirerFees } else { Account::BankFees };
    let missing = if is_ours { Account::Suspense } else { fees };
    let bank = account_of(result).map_or_else(
        || if result["kind"] == "pix" { Account::BankPix } else { Account::BankSettlement },
        |account| account.house().account(),
    );
    let (debit, credit) = if more < 0 { (missing, bank) } else { (bank, Account::Suspense) };
    let (file, id) = (text(&result["sha256"]), text(&finding["id"]));
    // The reference of what only a statement has finds the entry when the file is compared again.
    let reference = match (finding["batch"].as_str(), is_theirs && account_of(result).is_some()) {
        (_, true) => id.to_owned(),
        (Some(batch), _) => format!("{}-{batch}-{id}", text(&finding["finding"])),
        (None, _) => format!("{}-{id}", text(&finding["finding"])),
    };
    let draft = EntryDraft {
        debit: debit.kind_name(),
        credit: credit.kind_name(),
        amount: show::column(visit.language, i128::from(more.unsigned_abs())),
        reference: reference.chars().take(100).collect(),
        effective_date: text(&finding[if is_ours { "ours" } else { "theirs" }]["paid_on"]).to_owned(),
        explains: Some((file.to_owned(), number)),
    };
    let fields = html! {
        (draft.hidden_fields())
        (visit.reason_field("explain-reason"))
        label for="entry_id" { (visit.say(words::EXPLAINED_BY)) }
        input id="entry_id" name="entry_id" maxlength="36" autocomplete="off" spellcheck="false";
    };
    let by_reason = visit.form(&format!("/console/reconciliations/{file}/explain"), fields, words::BY_REASON);
    let by_reason = html! { p.dim { (visit.say(words::BY_REASON_WHAT)) } (by_reason) };
    html! {
        div id="explain" {
            h2 { (visit.say(words::EXPLAIN)) ": " (named(visit, finding)) }
            @if more != 0 {
                p.card { (visit.say(if more < 0 { words::BANK_HAS_LESS } else { words::BANK_HAS_MORE })) }
                (house::form(visit, &draft))
            }
            @if more > 0 && is_theirs && account_of(result).is_some() { (house::return_form(visit, &draft)) }
            (visit.card("by-reason", words::BY_REASON, by_reason))
        }
    }
}

/// Explains the difference that a form names, as the route of `/ops` does.
pub(crate) async fn explain_with(posted: &PostedForm, file: &str, entry: Option<&Value>) -> Result<()> {
    let form = &posted.form;
    let body = json!({
        "finding": form.value("finding").parse::<u64>().ok(), "reason": form.value("reason"),
        "entry_id": entry.cloned().unwrap_or_else(|| json!(form.value("entry_id").trim())),
    });
    posted.call_about(file, explanations::explain, "/ops/reconciliations/{id}/explain", body).await.map(drop)
}

/// Explains a difference with a reason.
pub(crate) async fn explain(posted: PostedForm) -> Response {
    let PostedForm { visit, id, .. } = &posted;
    let explained = async {
        posted.require(Role::Decide)?;
        explain_with(&posted, id, None).await
    };
    visit.done(explained.await, &format!("/console/reconciliations/{id}"), FormOutcome::DifferenceExplained)
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
