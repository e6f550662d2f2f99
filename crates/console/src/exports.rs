//! Exports: the books as files, and in the accounts of another program, by the routes of `/ops`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

use crate::form::optional;
use crate::keys::json_of;
use crate::ledger_field::{LedgerChoice, LedgerField};
use crate::sent_form::PostedFile;
use crate::table::Table;
use crate::{Screen, Section, Visit, Word, show, wire_words, words};
use ops::chart::{self, MAP_CHARS_MAX};
use ops::export_jobs;
use ops::export_stream::{export, format_names};
use ops::{Decider, Desk, DeskState};
use web::{Code, FormBody, FormOutcome, KeyedBody, PathId, Problem, Result, Role, not_found, query};

/// Maps to the accounts and the layouts of other programs, to begin with.
const SAMPLE_MAPS: [(&str, &str); 4] = [
    ("Domínio", include_str!("../../../examples/journal-entries/dominio.toml")),
    ("TOTVS", include_str!("../../../examples/journal-entries/totvs.toml")),
    ("QuickBooks", include_str!("../../../examples/journal-entries/quickbooks.toml")),
    ("NetSuite", include_str!("../../../examples/journal-entries/netsuite.toml")),
];

/// Formats that people open; the others are for programs.
const FOR_PEOPLE: [&str; 2] = ["xlsx", "csv-ptbr"];

/// Page of the exports: the forms, and the files that are made in the background.
pub(crate) async fn show(State(desk): DeskState, visit: Visit, parts: Parts) -> Response {
    let made = async {
        visit.whole()?;
        let given = query(&parts)?;
        let sample = optional(&given, "sample")?.map(|name| sample_map(name).ok_or_else(not_found));
        let chart = sample.transpose()?.map(str::to_owned).or_else(|| desk.engine.chart());
        let jobs = json_of(export_jobs::list(State(Arc::clone(&desk)), visit.operator.clone()).await?).await?;
        let body = html! {
            (form(&desk, &visit))
            @if visit.may(Role::Decide) { (mapped_form(&desk, &visit, chart.as_deref().unwrap_or(SAMPLE_MAPS[0].1))) }
            (visit.card("jobs", words::EXPORT_JOBS, jobs_table(&visit, jobs["items"].as_array())))
        };
        Ok(Screen { section: Section::Exports, title: visit.say(words::EXPORTS).to_owned(), body })
    };
    visit.answer(made.await)
}

fn day(visit: &Visit, prefix: &str, name: &str, word: Word) -> Markup {
    let id = format!("{prefix}{name}");
    html! { div { label for=(id) { (visit.say(word)) } input id=(id) type="date" name=(name); } }
}

/// Form that asks for an export at once.
fn form(desk: &Desk, visit: &Visit) -> Markup {
    let day = |name, word| day(visit, "", name, word);
    let choice = |name| html! { option value=(name) { (visit.say(wire_words::EXPORT_FORMATS.of(name))) } };
    html! {
        form.card action="/console/exports/file" {
            (whose("ledger", words::WHOSE, "").show(desk, visit))
            label for="format" { (visit.say(words::FORMAT)) }
            select id="format" name="format" {
                optgroup label=(visit.say(words::FOR_PEOPLE)) { @for format in FOR_PEOPLE { (choice(format)) } }
                optgroup label=(visit.say(words::FOR_PROGRAMS)) {
                    @for format in format_names().filter(|format| !FOR_PEOPLE.contains(format)) { (choice(format)) }
                }
            }
            div.actions { (day("from", words::FROM)) (day("to", words::TO)) }
            p.actions { button.primary type="submit" { (visit.say(words::DOWNLOAD)) } }
        }
    }
}

/// The field that says whose books they are; required where its label does not say that it is not.
fn whose<'a>(id: &'a str, label: Word, value: &'a str) -> LedgerField<'a> {
    LedgerField { id, name: "ledger", label, offered: LedgerChoice::All, is_required: !value.is_empty(), value }
}

/// Form that asks for the books in the accounts of another program.
fn mapped_form(desk: &Desk, visit: &Visit, map: &str) -> Markup {
    let levels = [("entry", words::BY_ENTRY), ("day", words::BY_DAY)];
    html! {
        (visit.card("mapped", words::OWN_CHART, html! {
            p.dim { (visit.say(words::OWN_CHART_WHAT)) }
            p {
                (visit.say(words::SAMPLE_MAPS)) ":"
                @for (name, _) in SAMPLE_MAPS { " " a href={"/console/exports?sample=" (name) "#map"} { (name) } }
            }
            form method="post" action="/console/exports" enctype="multipart/form-data" {
                (visit.form_fields())
                label for="map-file" { (visit.say(words::MAP_FILE)) }
                input id="map-file" name="map_file" type="file" accept=".toml,.txt";
                label for="map" { (visit.say(words::MAP_TEXT)) }
                textarea id="map" name="map" rows="12" maxlength=(MAP_CHARS_MAX) lang="pt-BR" spellcheck="false" {
                    (map)
                }
                (whose("mapped-ledger", words::WHOSE_ONE, "P-all").show(desk, visit))
                label for="level" { (visit.say(words::LEVEL)) }
                select id="level" name="level" { @for (value, word) in levels { option value=(value) { (visit.say(word)) } } }
                div.actions { (day(visit, "mapped-", "from", words::FROM)) (day(visit, "mapped-", "to", words::TO)) }
                p.actions {
                    button.primary type="submit" { (visit.say(words::ASK_EXPORT)) }
                    button type="submit" formaction="/console/exports/chart" { (visit.say(words::STORE_MAP)) }
                }
            }
        }))
    }
}

fn sample_map(name: &str) -> Option<&'static str> {
    SAMPLE_MAPS.into_iter().find(|(known, _)| *known == name).map(|(_, map)| map)
}

/// The map of a form: that of its file, or of its field, in which a browser ends lines with CR LF.
fn sent_map(form: &FormBody, file: &[u8]) -> String {
    let text = String::from_utf8_lossy(file);
    let map = if file.is_empty() { form.value("map") } else { &text };
    map.replace("\r\n", "\n")
}

/// Stores the map of the form, as the route of `/ops` does.
pub(crate) async fn set_chart(State(desk): DeskState, PostedFile { visit, form, file }: PostedFile) -> Response {
    let set = async {
        visit.operator.require(Role::Decide)?;
        visit.whole()?;
        let body = json!({ "map": sent_map(&form, &file.bytes) }).to_string();
        let sent = KeyedBody::of_form(form.value("key"), "/ops/chart", body);
        chart::set(State(Arc::clone(&desk)), Decider(visit.operator.clone()), sent).await
    };
    visit.done(set.await, "/console/exports", FormOutcome::ChartStored)
}

fn jobs_table(visit: &Visit, jobs: Option<&Vec<Value>>) -> Markup {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Table::of(visit.language, words::EXPORT_JOBS, jobs.into_iter().flatten())
        .text(words::WHAT, |job| {
            html! { code { (text(&job["ledger"])) " " (text(&job["report"])) " " (text(&job["format"])) } }
        })
        .text(words::DAYS, |job| show::days(visit.language, &text(&job["from"]), &text(&job["to"])))
        .text(words::STATUS, |job| {
            html! {
                (visit.say(wire_words::EXPORT_STATUSES.of(&text(&job["status"]))))
                @if let Some(detail) = job["detail"].as_str() { br; bdi { (detail) } }
            }
        })
        .text(words::FILE, |job| {
            html! {
                @if let Some(name) = job["file"]["name"].as_str() {
                    a href={"/console/exports/" (text(&job["id"])) "/file"} { bdi { (name) } }
                }
            }
        })
        .shown()
}

/// Asks for the export of the form, as the route of `/ops` does.
pub(crate) async fn ask(State(desk): DeskState, PostedFile { visit, form, file }: PostedFile) -> Response {
    let asked = async {
        visit.operator.require(Role::Decide)?;
        visit.whole()?;
        let given = |name| Some(form.value(name).trim()).filter(|text| !text.is_empty());
        let body = json!({
            "format": "journal-entries", "ledger": given("ledger"), "map": sent_map(&form, &file.bytes),
            "level": given("level"), "from": given("from"), "to": given("to"),
        });
        let sent = KeyedBody::of_form(form.value("key"), "/ops/exports", body.to_string());
        export_jobs::create(State(Arc::clone(&desk)), Decider(visit.operator.clone()), sent).await
    };
    visit.done(asked.await, "/console/exports", FormOutcome::ExportAsked)
}

/// File of an export that was made in the background.
pub(crate) async fn job_file(State(desk): DeskState, visit: Visit, PathId(id): PathId) -> Response {
    let made = async {
        visit.whole()?;
        export_jobs::file(State(desk), visit.operator.clone(), PathId(id)).await
    };
    visit.answer_with(made.await)
}

/// File of the export that the form asked for.
pub(crate) async fn file(State(desk): DeskState, visit: Visit, mut parts: Parts) -> Response {
    let made = async {
        visit.whole()?;
        parts.uri = given_only(&parts)?;
        export(State(desk), visit.operator.clone(), parts).await
    };
    visit.answer_with(made.await)
}

/// The address without the fields that the form left empty.
fn given_only(parts: &Parts) -> Result<Uri> {
    let pairs = query(parts)?;
    let given = pairs.iter().filter(|(name, value)| !value.is_empty() && name != "lang");
    let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish();
    format!("{}?{query}", parts.uri.path()).parse().map_err(|_| Problem::new(Code::ValidationFailed))
}
