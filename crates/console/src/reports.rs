//! Reports: what there is, one of them as a table, and as a file. The route of `/ops` makes each.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use books::reports::Report;
use maud::{Markup, PreEscaped, html};

use crate::form::optional;
use crate::ledger_field::{LedgerChoice, LedgerField};
use crate::paging::part;
use crate::{PageRequest, Screen, Section, Visit, pager_named, show, words};
use ops::reports::report;
use ops::{Desk, DeskState};
use web::{Code, Page, PathId, Problem, Result, failed, not_found, query};

/// Rows on a page.
const ROWS_A_PAGE: u64 = 50;
/// Bytes of a page of a report at most.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// The parameters of a report, as the route of `/ops` takes them.
const FIELDS: [&str; 6] = ["ledger", "account", "by", "from", "to", "tax_ids"];

/// Page of the reports, or of one of them.
pub(crate) async fn show(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, parts, .. } = &request;
    visit.whole()?;
    let given = query(parts)?;
    let Some(name) = optional(&given, "report")?.or_else(|| visit.refused("report")) else { return Ok(list(visit)) };
    let of = Report::named(name).ok_or_else(not_found)?;
    // A statement is of somebody: without, there is only the form, and of a form that was refused.
    let is_whole = of != Report::Statement || optional(&given, "ledger")?.is_some();
    let is_asked = is_whole && visit.refused("report").is_none();
    let page = part(&given, ROWS_A_PAGE)?;
    let table = if is_asked { Some(table(desk, visit, (parts, &given), of, page).await?) } else { None };
    let body = html! {
        p { a href="/console/reports" { "← " (visit.say(words::REPORTS)) } }
        section.card aria-label=(visit.say(words::REPORT)) {
            article lang="pt-BR" { p.dim { (of.sentence()) } }
            (form(desk, visit, &given, of)?)
        }
        @if let Some(table) = table { (table) }
    };
    Ok(Screen { section: Section::Reports, title: of.title().to_owned(), body })
}

fn list(visit: &Visit) -> Screen {
    let body = html! {
        article.card lang="pt-BR" {
            dl {
                @for &of in Report::ALL {
                    dt { a href={"/console/reports?report=" (of.name())} { (of.title()) } }
                    dd { (of.sentence()) }
                }
            }
        }
    };
    Screen { section: Section::Reports, title: visit.say(words::REPORTS).to_owned(), body }
}

/// The form with the fields that the report takes.
fn form(desk: &Desk, visit: &Visit, given: &[(String, String)], of: Report) -> Result<Markup> {
    let day = |name: &'static str, word| -> Result<Markup> {
        let value = optional(given, name)?.unwrap_or_default();
        Ok(
            html! { div { label for=(name) { (visit.say(word)) } input id=(name) type="date" name=(name) value=(value); } },
        )
    };
    let [ledger, account, by] = [optional(given, "ledger")?, optional(given, "account")?, optional(given, "by")?];
    Ok(html! {
        form action="/console/reports" {
            input type="hidden" name="report" value=(of.name());
            @if of.takes_ledger() {
                (LedgerField { value: ledger.unwrap_or_default(), ..whose(of) }.show(desk, visit))
            }
            @if of == Report::GeneralLedger {
                label for="account" { (visit.say(words::ACCOUNT)) }
                input id="account" name="account" maxlength="200" autocomplete="off" spellcheck="false" value=(account.unwrap_or_default());
            }
            @if of.takes_effect() {
                label for="by" { (visit.say(words::DAYS_BY)) }
                select id="by" name="by" {
                    @for (name, word) in [("booking", words::BY_BOOKING), ("effect", words::BY_EFFECT)] {
                        option value=(name) selected[by == Some(name)] { (visit.say(word)) }
                    }
                }
            }
            div.actions {
                @if of.takes_from() { (day("from", words::FROM)?) }
                (day("to", words::TO)?)
            }
            @if desk.ops_tokens.read().reads_tax_ids(&visit.operator.name) {
                label {
                    input type="checkbox" name="tax_ids" value="true" checked[optional(given, "tax_ids")? == Some("true")];
                    " " (visit.say(words::WHOLE_TAX_IDS))
                }
            }
            p.actions { button.primary type="submit" { (visit.say(words::SHOW)) } }
        }
    })
}

/// The field that says whose report it is.
fn whose(of: Report) -> LedgerField<'static> {
    let is_required = of == Report::Statement;
    let offered = match of {
        Report::Statement => LedgerChoice::Owners,
        of if of.is_of_merchants() => LedgerChoice::Merchants,
        _ => LedgerChoice::All,
    };
    let label = if is_required { words::WHOSE_ONE } else { words::WHOSE };
    LedgerField { id: "ledger", name: "ledger", label, offered, is_required, value: "" }
}

/// A query of the fields that the form has, and of more.
fn fields_and(given: &[(String, String)], more: &[(&str, &str)]) -> String {
    let fields = given.iter().filter(|(name, value)| FIELDS.contains(&name.as_str()) && !value.is_empty());
    form_urlencoded::Serializer::new(String::new()).extend_pairs(more).extend_pairs(fields).finish()
}

/// The address of a file of the report in one format, with the fields that the form has.
fn address(given: &[(String, String)], of: Report, format: &str) -> String {
    format!("/console/reports/file?{}", fields_and(given, &[("report", of.name()), ("format", format)]))
}

/// The table of a report, with its totals and the links to its files.
async fn table(
    desk: &Arc<Desk>,
    visit: &Visit,
    (parts, given): (&Parts, &[(String, String)]),
    of: Report,
    page: Page,
) -> Result<Markup> {
    let number = page.page.to_string();
    let per_page = page.per_page.to_string();
    let paged = [("format", "html"), ("page", &number), ("per_page", &per_page)];
    let made = made(desk, visit, parts.clone(), of, &paged).await?;
    let rows = made.headers().get("report-rows").and_then(|rows| rows.to_str().ok()?.parse().ok()).unwrap_or(0);
    let bytes = to_bytes(made.into_body(), PAGE_BYTES_MAX).await.map_err(failed)?;
    let text = String::from_utf8(bytes.to_vec()).map_err(failed)?;
    let table = text.find("<table>").zip(text.find("</table>")).and_then(|(begin, end)| text.get(begin..end));
    let table = format!("{}</table>", table.ok_or_else(|| failed("a report without a table"))?);
    Ok(html! {
        section.card aria-label=(of.title()) {
            p.actions {
                a.button href=(address(given, of, "xlsx")) { "XLSX" }
                a.button href=(address(given, of, "csv-ptbr")) { "CSV" }
                a.button href=(address(given, of, "html")) { (visit.say(words::PRINT)) }
            }
            article.report lang="pt-BR" { (show::scrolled(of.title(), html! { (PreEscaped(table)) })) }
            (pager_named(visit, parts, "page", page, rows))
        }
    })
}

/// The answer of the route of `/ops` to the fields of the form and some more.
async fn made(
    desk: &Arc<Desk>,
    visit: &Visit,
    mut parts: Parts,
    of: Report,
    more: &[(&str, &str)],
) -> Result<Response> {
    let asked = fields_and(&query(&parts)?, &[&[("names", "true")], more].concat());
    let address = format!("/ops/reports/{}?{asked}", of.name());
    parts.uri = address.parse().map_err(|_| Problem::new(Code::ValidationFailed))?;
    // The page is compressed as a whole.
    parts.headers.remove(axum::http::header::ACCEPT_ENCODING);
    report(State(Arc::clone(desk)), visit.operator.clone(), PathId(of.name().to_owned()), parts).await
}

/// File of a report, or its page to print.
pub(crate) async fn file(State(desk): DeskState, visit: Visit, parts: Parts) -> Response {
    let made = async {
        visit.whole()?;
        let given = query(&parts)?;
        let of = optional(&given, "report")?.and_then(Report::named);
        let of = of.ok_or_else(not_found)?;
        let format = optional(&given, "format")?.unwrap_or("xlsx");
        made(&desk, &visit, parts, of, &[("format", format)]).await
    };
    visit.answer_with(made.await)
}
