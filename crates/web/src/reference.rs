//! HTML pages for people. `GET /reference` renders the OpenAPI description of its listener, one
//! page a resource, so the two cannot differ. `GET /problems/{code}` explains a problem; the `type`
//! of a problem body is its address. The pages need no font and no network, and a script only to
//! try an operation in a sandbox.

use axum::body::Bytes;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use serde_json::{Value, json};

use super::caller::PathId;
use super::openapi::{A_TXID, A_UUID, resolved};
use super::problem::{Code, Problem, Row, not_found};
use super::reply::ok;

/// Path of the page's style sheet.
pub const STYLE_PATH: &str = "/reference.css";

/// Path of the script of *try it*, which only a sandbox's pages have.
pub const SCRIPT_PATH: &str = "/reference.js";

/// Nothing is loaded but the style sheet and the script, the script calls this listener alone, and
/// nobody puts the page into theirs.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'";

/// How the page looks.
pub fn style() -> Response {
    answer("text/css; charset=utf-8", include_str!("reference.css"))
}

/// Sends what a form of *try it* shows, with a sandbox's key.
pub fn script() -> Response {
    answer("text/javascript; charset=utf-8", include_str!("reference.js"))
}

/// The page as it is answered.
pub fn page(html: Bytes) -> Response {
    answer("text/html; charset=utf-8", html)
}

/// What the root of the merchants' listener answers: where its documents are. Addresses are of this
/// listener, folders of the sources.
pub fn index() -> Response {
    ok(json!({
        "name": "Centavo",
        "version": env!("CARGO_PKG_VERSION"),
        "reference": INDEX_PATH,
        "openapi": "/openapi.json",
        "folders": "guides and clients are folders of the source and of the release's archive",
        "guides": {"en": "docs/guide", "pt-BR": "docs/pt-br/guia"},
        "clients": "clients",
    }))
}

fn answer(content_type: &'static str, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// The page of a problem, to which its `type` leads.
pub async fn problem(PathId(name): PathId) -> Result<Response, Problem> {
    let code = Code::named(&name).ok_or_else(not_found)?;
    Ok(answer("text/html; charset=utf-8", problem_html(code)))
}

fn problem_html(code: Code) -> String {
    let Row { code, status, title, message } = code.row();
    let links = html! { ul { li { a href=(INDEX_PATH) { "Reference" } } } };
    let shown = html! {
        h1 { (title) }
        table {
            tr { th scope="row" { "code" } td { code { (code) } } }
            tr { th scope="row" { "status" } td { (status) } }
            tr { th scope="row" { "message" } td lang="pt-BR" { (message) } }
        }
        p { (prose(advice(status))) }
    };
    framed(title, links, shown)
}

/// A page, whole: its links, and what it shows.
fn framed(title: &str, links: Markup, shown: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                link rel="stylesheet" href=(STYLE_PATH);
            }
            body { nav aria-label="Pages" { (links) } main { (shown) } }
        }
    };
    page.into_string()
}

/// Advice for callers whose request got this status.
fn advice(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 413 | 415 => {
            "Nothing was done. Sent again as it is, the request meets the same answer: `errors` names the fields to change."
        }
        401 => "Nothing was done. Send a key that is live, of the listener that is called.",
        402 => {
            "The acquirer refused the card: the charge is kept as refused, and nothing is owed. Another try is another request."
        }
        408 => "Nothing was done: the body did not arrive in time. Send it again.",
        409 => "Nothing was done. Read the object first: its state is not what the request takes it for.",
        429 => "Nothing was done. Wait as long as `Retry-After` says.",
        500 => "Nothing of the request is kept. Tell whoever runs the service its `request_id`.",
        502 | 503 => {
            "Where the request creates something, send it again with the same Idempotency-Key: it is carried out at most once. \
             `Retry-After`, if it is there, says when."
        }
        _ => {
            "Nothing was done. Sent again as it is, the request meets the same answer until what it names has changed."
        }
    }
}

/// The pages of a description: path and HTML. The first is the index; each other shows the
/// operations of one resource.
pub fn pages(document: &Value) -> Vec<(String, String)> {
    let reference = Reference { document, operations: operations_of(document) };
    let resources = reference.tags().map(|tag| (path_of(tag), reference.resource(tag)));
    std::iter::once((INDEX_PATH.to_owned(), reference.index())).chain(resources).collect()
}

const INDEX_PATH: &str = "/reference";

/// Path of the page of a resource, which is a tag of the description.
fn path_of(tag: &Value) -> String {
    format!("{INDEX_PATH}/{}", text(&tag["name"]).to_lowercase().replace(' ', "-"))
}

/// A description and its operations.
struct Reference<'a> {
    document: &'a Value,
    operations: Vec<Operation<'a>>,
}

impl<'a> Reference<'a> {
    fn tags(&self) -> impl Iterator<Item = &'a Value> {
        self.document["tags"].as_array().into_iter().flatten()
    }

    fn of(&self, tag: &'a Value) -> impl Iterator<Item = &Operation<'a>> {
        self.operations.iter().filter(|operation| operation.described["tags"][0] == tag["name"])
    }

    /// A page, with the list of pages; under the tag of this page, its operations.
    fn page(&self, shown: Option<&'a Value>, content: Markup) -> String {
        let info = &self.document["info"];
        let title = text(shown.map_or(&info["title"], |tag| &tag["name"]));
        let links = html! {
            p.home { a href=(INDEX_PATH) { (text(&info["title"])) } }
            ul {
                @for tag in self.tags() {
                    li {
                        a href=(path_of(tag)) { (said(&tag["name"])) }
                        @if shown == Some(tag) {
                            ul {
                                @for one in self.of(tag) {
                                    li { a href={ "#" (one.anchor()) } { (one.summary()) } }
                                }
                            }
                        }
                    }
                }
            }
        };
        framed(&format!("{title} reference"), links, content)
    }

    fn index(&self) -> String {
        let info = &self.document["info"];
        let content = html! {
            h1 { (said(&info["title"])) }
            p {
                "Version " (text(&info["version"])) ". The same for programs: "
                a href="/openapi.json" { "/openapi.json" } " (OpenAPI)."
            }
            (paragraphs(&info["description"]))
            p { "The samples read these variables of the environment:" }
            (code(VARIABLES))
            @for tag in self.tags() {
                h2 { a href=(path_of(tag)) { (said(&tag["name"])) } }
                (paragraphs(&tag["description"]))
                table {
                    @for one in self.of(tag) {
                        tr {
                            th scope="row" { (one.method.to_uppercase()) " " (one.path) }
                            td { a href={ (path_of(tag)) "#" (one.anchor()) } { (one.summary()) } }
                        }
                    }
                }
            }
        };
        self.page(None, content)
    }

    fn resource(&self, tag: &'a Value) -> String {
        let content = html! {
            h1 { (said(&tag["name"])) }
            (paragraphs(&tag["description"]))
            @if self.may_try() { (try_values()) }
            @for operation in self.of(tag) {
                section id=(operation.anchor()) {
                    (operation.described(&self.document["components"]["schemas"]))
                    @if self.may_try() { (operation.try_form()) }
                }
            }
        };
        self.page(Some(tag), content)
    }

    /// True for the merchants' listener of a sandbox.
    fn may_try(&self) -> bool {
        self.operations.iter().any(|operation| operation.path.starts_with("/api/sandbox/"))
    }
}

/// One operation and where it is.
struct Operation<'a> {
    method: &'a str,
    path: &'a str,
    described: &'a Value,
}

/// Code that a keyboard can scroll.
fn code(code: &str) -> Markup {
    html! { pre tabindex="0" { (code) } }
}

const VARIABLES: &str = "\
export CENTAVO_URL=http://127.0.0.1:8080      # the merchants' listener
export CENTAVO_API_KEY=                       # from POST /ops/merchants/{id}/api-keys
export CENTAVO_OPS_URL=http://127.0.0.1:8081  # the operators' listener
export CENTAVO_OPS_TOKEN=                     # from the file operator.token in the server's data directory
export RECIPIENT=                             # id of an active recipient: POST /api/sub-recipients, and its approval
export TXID= PLAN= CARD_TOKEN=                # from POST /api/pix, /api/recurrency/plans, /api/cards
export SPLIT=                                 # a pending card split: TXID-0 after POST /api/card with splits
export ID=                                    # whatever else a path names";

fn operations_of(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let mut operations = Vec::new();
    for (path, item) in paths {
        for (method, described) in item.as_object().into_iter().flatten() {
            if described.get("responses").is_some() {
                operations.push(Operation { method, path, described });
            }
        }
    }
    operations
}

impl Operation<'_> {
    fn anchor(&self) -> &str {
        text(&self.described["operationId"])
    }

    fn summary(&self) -> Markup {
        said(&self.described["summary"])
    }

    fn parameters(&self) -> impl Iterator<Item = &Value> {
        self.described["parameters"].as_array().into_iter().flatten()
    }

    /// Names of the variables that hold the address of the listener and its credential.
    fn variables(&self) -> (&'static str, &'static str) {
        match self.path.starts_with("/api/") {
            true => ("CENTAVO_URL", "CENTAVO_API_KEY"),
            false => ("CENTAVO_OPS_URL", "CENTAVO_OPS_TOKEN"),
        }
    }

    /// The path, with variables for ids and examples as its other parameters, and with the
    /// parameters of the query that it demands.
    fn example_path(&self) -> String {
        let mut path = self.path.to_owned();
        for parameter in self.parameters().filter(|parameter| parameter["in"] == "path") {
            let (name, example) = (text(&parameter["name"]), &parameter["example"]);
            let before = self.path.split(&format!("/{{{name}}}")).next().and_then(|path| path.rsplit('/').next());
            let value = match is_id(example) {
                true => format!("${}", variable(if name == "id" { before.unwrap_or_default() } else { name })),
                false => text(example).to_owned(),
            };
            path = path.replace(&format!("{{{name}}}"), &value);
        }
        let demanded = self.parameters().filter(|one| one["in"] == "query" && one["required"] == true);
        for (parameter, sign) in demanded.zip(std::iter::once('?').chain(std::iter::repeat('&'))) {
            let example = &parameter["example"];
            let example = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
            path.push_str(&format!("{sign}{}={example}", text(&parameter["name"])));
        }
        path
    }

    /// The media type of the body and its example, with variables for ids.
    fn example_body(&self) -> Option<(&str, Value)> {
        let described = self.described["requestBody"]["content"].as_object()?;
        let example = described.iter().find_map(|(media_type, body)| Some((media_type.as_str(), body.get("example")?)));
        example.map(|(media_type, example)| (media_type, with_variables("", example)))
    }

    fn takes_key(&self) -> bool {
        self.parameters().any(|parameter| parameter["name"] == "Idempotency-Key")
    }

    fn needs_credential(&self) -> bool {
        self.described["security"].as_array().is_some_and(|ways| !ways.is_empty())
    }

    /// A call in the language of the shell.
    fn in_shell(&self) -> String {
        let (base, credential) = self.variables();
        let mut command = String::from("curl");
        if self.method != "get" {
            command.push_str(&format!(" -X {}", self.method.to_uppercase()));
        }
        command.push_str(&format!(" \"${base}{}\"", self.example_path()));
        if self.needs_credential() {
            command.push_str(&format!(" \\\n  -H \"Authorization: Bearer ${credential}\""));
        }
        if self.takes_key() {
            command.push_str(" \\\n  -H \"Idempotency-Key: $RANDOM-$RANDOM-$RANDOM\"");
        }
        if let Some((media_type, example)) = self.example_body() {
            let (option, body) = match example.as_str() {
                Some(text) => ("--data-binary", text.to_owned()),
                None => ("-d", format!("{example:#}")),
            };
            let body = each_variable(&body.replace('\'', r"'\''"), |name| format!("\"'\"${name}\"'\""));
            command.push_str(&format!(" \\\n  -H 'Content-Type: {media_type}' \\\n  {option} '{body}'"));
        }
        command
    }

    /// A call in Python.
    fn in_python(&self) -> String {
        let (base, credential) = self.variables();
        let mut call = format!(
            "import os, requests, uuid\n\nanswer = requests.{}(\n    os.environ[\"{base}\"] + {},\n",
            self.method,
            each_segment(&self.example_path(), |name| format!("{{os.environ['{name}']}}"), ["f\"", "\""])
        );
        let body = self.example_body();
        let text = body.as_ref().filter(|(_, example)| example.is_string());
        let mut headers = Vec::new();
        if self.needs_credential() {
            headers.push(format!("\"Authorization\": \"Bearer \" + os.environ[\"{credential}\"]"));
        }
        if self.takes_key() {
            headers.push("\"Idempotency-Key\": str(uuid.uuid4())".to_owned());
        }
        headers.extend(text.map(|(media_type, _)| format!("\"Content-Type\": \"{media_type}\"")));
        if !headers.is_empty() {
            call.push_str(&format!("    headers={{{}}},\n", headers.join(", ")));
        }
        if let Some((_, example)) = &body {
            let argument = if text.is_some() { "data" } else { "json" };
            call.push_str(&format!("    {argument}={},\n", python(example, 4)));
        }
        call + "    timeout=30,\n)\nprint(answer.status_code, answer.text)"
    }

    /// A call in TypeScript.
    fn in_typescript(&self) -> String {
        let (base, credential) = self.variables();
        let method = self.method.to_uppercase();
        let path = each_segment(&self.example_path(), |name| format!("${{process.env.{name}}}"), ["`", "`"]);
        let mut call = format!("const answer = await fetch(process.env.{base} + {path}, {{\n  method: \"{method}\",\n");
        let mut headers = Vec::new();
        if self.needs_credential() {
            headers.push(format!("\"Authorization\": `Bearer ${{process.env.{credential}}}`"));
        }
        if self.takes_key() {
            headers.push("\"Idempotency-Key\": crypto.randomUUID()".to_owned());
        }
        if let Some((media_type, _)) = self.example_body() {
            headers.push(format!("\"Content-Type\": \"{media_type}\""));
        }
        if !headers.is_empty() {
            call.push_str(&format!("  headers: {{ {} }},\n", headers.join(", ")));
        }
        if let Some((_, example)) = self.example_body() {
            let body = match example.is_string() {
                true => example.to_string(),
                false => {
                    let body = format!("JSON.stringify({example:#})").replace('\n', "\n  ");
                    each_variable(&body, |name| format!("process.env.{name}"))
                }
            };
            call.push_str(&format!("  body: {body},\n"));
        }
        call + "});\nconsole.log(answer.status, await answer.text());"
    }
}

/// A JSON value as Python writes it, with lines indented by this many spaces.
fn python(value: &Value, indent: usize) -> String {
    let (inner, end) = (" ".repeat(indent + 4), " ".repeat(indent));
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(elements) if !elements.is_empty() => {
            let lines: String =
                elements.iter().map(|element| format!("{inner}{},\n", python(element, indent + 4))).collect();
            format!("[\n{lines}{end}]")
        }
        Value::Object(members) if !members.is_empty() => {
            let line =
                |(name, member): (&String, &Value)| format!("{inner}{name:?}: {},\n", python(member, indent + 4));
            format!("{{\n{}{end}}}", members.iter().map(line).collect::<String>())
        }
        Value::String(text) if text.starts_with('$') => format!("os.environ[\"{}\"]", &text[1..]),
        value => value.to_string(),
    }
}

/// The variable that holds the id of what this field, or the segment before an `{id}`, names.
fn variable(name: &str) -> &'static str {
    VARIABLE_OF.iter().find(|(field, _)| *field == name).map_or("ID", |(_, variable)| variable)
}

/// Fields of bodies, parameters, and segments of paths that are followed by an id.
const VARIABLE_OF: [(&str, &str); 10] = [
    ("txid", "TXID"),
    ("payment_id", "TXID"),
    ("split_ids", "SPLIT"),
    ("sub_recipient_id", "RECIPIENT"),
    ("sub-recipients", "RECIPIENT"),
    ("plan_id", "PLAN"),
    ("plans", "PLAN"),
    ("card_token", "CARD_TOKEN"),
    ("token", "CARD_TOKEN"),
    ("cards", "CARD_TOKEN"),
];

/// True for an id of the examples, which names nothing. That of a split begins with its charge's.
fn is_id(example: &Value) -> bool {
    example == A_UUID || example.as_str().is_some_and(|example| example.starts_with(A_TXID))
}

/// An example whose ids are texts of the form `$NAME`.
fn with_variables(name: &str, example: &Value) -> Value {
    match example {
        Value::Array(elements) => elements.iter().map(|element| with_variables(name, element)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), with_variables(name, member))).collect()
        }
        example if is_id(example) => format!("${}", variable(name)).into(),
        example => example.clone(),
    }
}

/// Replaces the texts `"$NAME"` of a body.
fn each_variable(body: &str, write: impl Fn(&str) -> String) -> String {
    let (first, rest) = body.split_once("\"$").unwrap_or((body, ""));
    let parts = rest.split("\"$").filter(|part| !part.is_empty());
    let written = parts.map(|part| {
        let (name, after) = part.split_once('"').unwrap_or((part, ""));
        write(name) + after
    });
    first.to_owned() + &written.collect::<String>()
}

/// A path as a literal: between these marks where it has a variable, otherwise as a plain text.
fn each_segment(path: &str, write: impl Fn(&str) -> String, [begin, end]: [&str; 2]) -> String {
    if !path.contains('$') {
        return format!("\"{path}\"");
    }
    let segments = path.split('/').map(|segment| {
        let Some(named) = segment.strip_prefix('$') else { return segment.to_owned() };
        let (name, query) = named.split_at(named.find('?').unwrap_or(named.len()));
        write(name) + query
    });
    format!("{begin}{}{end}", segments.collect::<Vec<_>>().join("/"))
}

impl Operation<'_> {
    /// What the description says of it, with samples.
    fn described(&self, schemas: &Value) -> Markup {
        let described = self.described;
        html! {
            h2 { (self.summary()) }
            p { b.method { (self.method.to_uppercase()) } " " code { (self.path) } }
            (paragraphs(&described["description"]))
            @if self.parameters().next().is_some() {
                h3 { "Parameters" }
                table {
                    @for one in self.parameters() {
                        @let kind = format!("{}, {}", text(&one["in"]), kind_of(&one["schema"], schemas));
                        (row(text(&one["name"]), &kind, one["required"] == true, &one["description"]))
                    }
                }
            }
            @for media in media_of(&described["requestBody"]) {
                @for (place, schema) in choices(&media["schema"]).iter().enumerate() {
                    h3 { @if place == 0 { "Body" } @else { "Or this body" } }
                    @if media["schema"].get("oneOf").is_some() {
                        (paragraphs(&resolved(schema, schemas)["description"]))
                    }
                    (fields(schema, schemas, 0))
                }
            }
            h3 { "Samples" }
            (code(&self.in_shell()))
            details { summary { "Python" } (code(&self.in_python())) }
            details { summary { "TypeScript" } (code(&self.in_typescript())) }
            h3 { "Answers" }
            (self.answers(schemas))
        }
    }

    fn answers(&self, schemas: &Value) -> Markup {
        let answers = self.described["responses"].as_object().into_iter().flatten();
        let (problems, others): (Vec<_>, Vec<_>) =
            answers.partition(|(_, answer)| answer["content"].get("application/problem+json").is_some());
        html! {
            @for (status, answer) in others {
                p { b { (status) } " " (said(&answer["description"])) }
                @for media in media_of(answer) {
                    (fields(&media["schema"], schemas, 0))
                    @if let Some(example) = media.get("example").filter(|example| example.is_object()) {
                        (code(&format!("{example:#}")))
                    }
                }
            }
            details {
                summary { "Problems" }
                table {
                    @for (status, answer) in problems {
                        tr {
                            th scope="row" { (status) }
                            td { (said(&answer["description"])) }
                            td { (prose(&codes_of(answer, schemas))) }
                        }
                    }
                }
            }
        }
    }

    /// A form that sends the sample.
    fn try_form(&self) -> Markup {
        let made = variable(self.path.rsplit('/').next().unwrap_or_default());
        let method = self.method.to_uppercase();
        html! {
            details.try hidden {
                summary { "Try it" }
                form data-method=(method) data-makes=(made) {
                    label { (method) " " input name="path" value=(self.example_path()); }
                    @if let Some((_, example)) = self.example_body() {
                        label { "Body " textarea name="body" rows="8" { (format!("{example:#}")) } }
                    }
                    button { "Send" }
                    output {}
                }
            }
        }
    }
}

/// The bodies of a request or an answer, one a media type.
fn media_of(described: &Value) -> impl Iterator<Item = &Value> {
    described["content"].as_object().into_iter().flat_map(|content| content.values())
}

/// The schemas that a schema lets choose from: itself, where there is one.
fn choices(schema: &Value) -> &[Value] {
    schema["oneOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice)
}

/// The values that the forms of *try it* fill in: the key, and the variables of the samples.
fn try_values() -> Markup {
    html! {
        script src=(SCRIPT_PATH) defer {}
        form #values hidden {
            fieldset {
                legend { "Try it, in this sandbox" }
                label { "API key " input name="KEY" type="password" autocomplete="off"; }
                @for name in ["RECIPIENT", "TXID", "SPLIT", "PLAN", "CARD_TOKEN", "ID"] {
                    label { (name) " " input name=(name) autocomplete="off"; }
                }
            }
        }
    }
}

/// The codes that a problem of this answer can have.
fn codes_of(response: &Value, schemas: &Value) -> String {
    let schema = resolved(&response["content"]["application/problem+json"]["schema"], schemas);
    let code = resolved(&schema["properties"]["code"], schemas);
    let codes = code["enum"].as_array().into_iter().flatten();
    codes.filter_map(Value::as_str).map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")
}

/// How deep a body's objects are shown.
const NESTING_MAX: usize = 5;

/// The fields of an object, and of the objects in them.
fn fields(schema: &Value, schemas: &Value, nesting: usize) -> Markup {
    let schema = inner(schema, schemas);
    let Some(members) = schema["properties"].as_object().filter(|_| nesting < NESTING_MAX) else { return html!() };
    let is_required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    html! {
        table {
            @for (name, field) in members.iter().filter(|(_, field)| field["type"] != "null") {
                @let own = Some(&field["description"]).filter(|own| own.is_string());
                @let description = own.unwrap_or_else(|| &resolved(field, schemas)["description"]);
                (row(name, &kind_of(field, schemas), is_required(name), description))
                @for object in choices(inner(field, schemas)) {
                    @if resolved(object, schemas)["properties"].is_object() {
                        tr { td.inner colspan="4" { (fields(object, schemas, nesting + 1)) } }
                    }
                }
            }
        }
    }
}

fn row(name: &str, kind: &str, is_required: bool, description: &Value) -> Markup {
    html! {
        tr {
            th scope="row" { (name) }
            td { (kind) }
            td.need { @if is_required { "required" } }
            td { (said(description)) }
        }
    }
}

/// The schema of an object, or of the objects of a list, behind references. Of a choice it is the
/// choice itself, or the first one where a discriminator tells them apart.
fn inner<'a>(schema: &'a Value, schemas: &'a Value) -> &'a Value {
    let schema = resolved(schema, schemas);
    if let Some(items) = schema.get("items") {
        return inner(items, schemas);
    }
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let mut choices = choices.filter(|choice| choice["type"] != "null");
    let is_shown_by_one = schema.get("discriminator").is_some() || choices.clone().count() == 1;
    match choices.next() {
        Some(choice) if is_shown_by_one && choice.get("$ref").is_some() => inner(choice, schemas),
        _ => schema,
    }
}

/// Type and limits of a value.
fn kind_of(schema: &Value, schemas: &Value) -> String {
    let schema = resolved(schema, schemas);
    let kinds = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ if schema.get("oneOf").is_some() => {
            let choices = schema["oneOf"].as_array().into_iter().flatten();
            choices.map(|choice| kind_of(choice, schemas)).collect::<Vec<_>>().join(" or ")
        }
        _ => "object".to_owned(),
    };
    let mut kind = kinds;
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
        kind.push_str(&format!(": {}", names.join(", ")));
    }
    for (limit, words) in [
        ("format", ""),
        ("minimum", "from "),
        ("maximum", "to "),
        ("minLength", "min length "),
        ("maxLength", "max length "),
        ("pattern", "matching "),
        ("default", "default "),
    ] {
        match schema.get(limit) {
            Some(Value::String(text)) => kind.push_str(&format!(", {words}{text}")),
            Some(value) => kind.push_str(&format!(", {words}{value}")),
            None => {}
        }
    }
    kind
}

/// A JSON string; nothing for anything else.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The paragraphs of a JSON string.
fn paragraphs(value: &Value) -> Markup {
    let all = text(value).split("\n\n").filter(|paragraph| !paragraph.is_empty());
    html! { @for paragraph in all { p { (prose(paragraph)) } } }
}

/// A JSON string in which code stands between backticks.
fn said(value: &Value) -> Markup {
    prose(text(value))
}

/// Text in which code stands between backticks.
fn prose(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 0 { (part) } @else { code { (part) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_description_says_is_no_markup() {
        let document = json!({
            "info": {"title": "<script>", "version": "1", "description": "a `<b>` & \"c\""},
            "tags": [{"name": "<i>", "description": "<em>"}],
            "paths": {"/api/x": {"post": {
                "tags": ["<i>"], "operationId": "x", "summary": "<u>", "security": [{"bearer": []}],
                "requestBody": {"content": {"application/json": {"schema": {}, "example": {"a": "it's <p>"}}}},
                "responses": {},
            }}},
        });
        let html: String = pages(&document).into_iter().map(|(_, html)| html).collect();
        for raw in ["<script>", "<b>", "<i>", "<em>", "<u>", "it's <p>"] {
            assert!(!html.contains(raw), "{raw} in {html}");
        }
        assert!(html.contains("a <code>&lt;b&gt;</code> &amp; &quot;c&quot;"));
        assert!(html.contains(r"it'\''s"), "a body is quoted for the shell");
    }
}
