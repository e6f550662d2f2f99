//! Frame of every page, and the visit of an operator that asks for one.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{MethodRouter, get};
use ledger::{GroupNumber, Timestamp};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::assets::{ICON_PATH, SCRIPT_PATH, STYLE_PATH};
use crate::form::hidden_key;
use crate::page_size::fitting;
use crate::paging::address;
use crate::queries::known_query;
use crate::refused_form::{PAGE, RefusedForm, SentForm, ShownAgain};
use crate::scope::Scope;
use crate::{Console, Word, show, wire_words, words};
use ops::queue::QueueFilter;
use ops::{Desk, Operator};
use web::session::Sessions;
use web::session::secret_of;
use web::{FormOutcome, Language, PathId, Problem, Result, Role, not_found, query, single};

/// The field of the session's form token.
pub(crate) const FORM_TOKEN: &str = "form_token";

/// Where a page belongs in the list of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// How everything stands.
    Overview,
    /// Charges of all merchants.
    Charges,
    /// Refunds, withdrawals and other things of all merchants.
    Lists,
    /// Merchants and what is theirs.
    Merchants,
    /// What waits for a decision.
    Queue,
    /// The platform's own books.
    House,
    /// Sums of accounts.
    TrialBalance,
    /// Blocks, Records, ledgers.
    Journal,
    /// Webhook events and their endpoints.
    Webhooks,
    /// How the service is.
    Health,
    /// Files of other institutions, compared with the books.
    Reconciliations,
    /// Reports of the books.
    Reports,
    /// The books as files.
    Exports,
    /// Who did what.
    Audit,
    /// Personal data and its retention.
    People,
    /// What only a sandbox has.
    Sandbox,
    /// Pages that are found, not listed, such as one charge.
    Found,
}

/// The sections in order: heading, path, and whether a scope of one merchant has it.
const SECTIONS: &[(Section, Word, &str, bool)] = &[
    (Section::Overview, words::OVERVIEW, "/console", true),
    (Section::Charges, words::CHARGES, "/console/charges", true),
    (Section::Lists, words::LISTS, "/console/lists/refunds", true),
    (Section::Merchants, words::MERCHANTS, "/console/merchants", true),
    (Section::Queue, words::QUEUE, "/console/queue", true),
    (Section::TrialBalance, words::TRIAL_BALANCE, "/console/trial-balance", true),
    (Section::House, words::HOUSE, "/console/house", false),
    (Section::Journal, words::JOURNAL, "/console/journal", false),
    (Section::Webhooks, words::WEBHOOKS, "/console/webhooks", true),
    (Section::Health, words::HEALTH, "/console/health", false),
    (Section::Reconciliations, words::RECONCILIATION, "/console/reconciliations", false),
    (Section::Reports, words::REPORTS, "/console/reports", false),
    (Section::Exports, words::EXPORTS, "/console/exports", false),
    (Section::Audit, words::AUDIT, "/console/audit", true),
    (Section::People, words::PERSONAL_DATA, "/console/people", false),
    (Section::Sandbox, words::SANDBOX, "/console/sandbox", false),
];

/// A page without its frame.
pub(crate) struct Screen {
    /// Its place.
    pub section: Section,
    /// Its heading and title.
    pub title: String,
    /// What stands below the heading.
    pub body: Markup,
}

/// Operator, state and address from which a screen is made.
pub(crate) struct PageRequest {
    /// State of the operators' handlers.
    pub desk: Arc<Desk>,
    /// The operator who asks.
    pub visit: Arc<Visit>,
    /// The id in the path; empty where that has none.
    pub id: String,
    /// Path and query.
    pub parts: Parts,
}

impl FromRequestParts<Console> for PageRequest {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        let visit = Arc::new(Visit::from_request_parts(parts, console).await?);
        let id = PathId::from_request_parts(parts, console).await.map(|PathId(id)| id).unwrap_or_default();
        Ok(Self { desk: Arc::clone(&console.desk), visit, id, parts: parts.clone() })
    }
}

/// The route of a page.
pub(crate) fn screen<M: Future<Output = Result<Screen>> + Send + 'static>(
    make: impl Fn(PageRequest) -> M + Clone + Send + Sync + 'static,
) -> MethodRouter<Console> {
    get(|request: PageRequest| async move {
        let visit = Arc::clone(&request.visit);
        visit.answer(make(request).await)
    })
}

/// A request of an operator who is signed in, whose token still opens.
pub(crate) struct Visit {
    /// The operator, with the present role.
    pub operator: Operator,
    /// The language of the answer.
    pub language: Language,
    /// Now, on the engine's clock.
    pub now: Timestamp,
    /// The session's secret.
    pub secret: String,
    /// What the page may show.
    pub scope: Scope,
    /// The name of the one merchant of the scope.
    scope_name: Option<String>,
    form_token: String,
    /// Path and query of the page.
    here: String,
    /// Path and query of the page in the other language.
    elsewhere: String,
    in_sandbox: bool,
    sessions: Arc<Sessions>,
    /// How many things wait for a decision; none on a page of a process that does not know.
    waiting: Option<usize>,
    /// What the session's last form did, where this page says it.
    done: Option<FormOutcome>,
    /// The form that this request sends; `None` if it sends none.
    sent: Option<SentForm>,
    /// The refused form that this page shows again; none on the pages that addresses have.
    refused: Option<RefusedForm>,
}

impl FromRequestParts<Console> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        let desk = &console.desk;
        let found = secret_of(&parts.headers).and_then(|secret| {
            let session = console.sessions.find(&secret, Instant::now())?;
            let role = desk.ops_tokens.read().role_of(&session.opened_by);
            if role.is_none() {
                console.sessions.end(&secret);
            }
            Some((secret, session, role?))
        });
        let Some((secret, session, role)) = found else { return Err(to_sign_in(parts)) };
        let asked = asked_language(parts);
        if let Some(language) = asked {
            console.sessions.choose(&secret, language);
        }
        let language = asked.or(session.language).unwrap_or_else(|| Language::preferred(&parts.headers));
        let asked_scope = Scope::asked(desk, parts);
        let scope = asked_scope.as_ref().map_or(Scope::All, |scope| *scope);
        let visit = Self {
            operator: Operator { name: session.opened_by.name, role },
            language,
            now: desk.engine.now(),
            secret,
            scope,
            scope_name: scope.name(desk, language),
            form_token: session.form_token,
            sessions: Arc::clone(&console.sessions),
            here: parts.uri.path_and_query().map_or("/console", PathAndQuery::as_str).to_owned(),
            elsewhere: in_other_language(&parts.method, &parts.uri, language),
            in_sandbox: desk.sandbox,
            waiting: waiting(desk, scope).await,
            done: None,
            sent: SentForm::of_query(parts),
            refused: parts.extensions.get().cloned(),
        };
        known_query(parts).map_err(|problem| visit.answer(Err(problem)))?;
        asked_scope.map_err(|problem| visit.answer(Err(problem)))?;
        let done = (parts.method == Method::GET)
            .then(|| console.sessions.take_done(&visit.secret, parts.uri.path()))
            .flatten();
        Ok(Self { done, ..visit })
    }
}

/// How many things of a scope wait for a decision, where this process knows all of them.
async fn waiting(desk: &Desk, scope: Scope) -> Option<usize> {
    if !desk.engine.has_all() || desk.engine.catch_up().await.is_err() {
        return None;
    }
    let filter = QueueFilter { group: scope.group(), ..QueueFilter::default() };
    filter.page(desk, 0).ok().map(|page| page.total)
}

impl Visit {
    /// A text in the visit's language.
    pub(crate) fn say(&self, word: Word) -> &'static str {
        word.text(self.language)
    }

    /// The token that every form of the session carries.
    pub(crate) fn form_token(&self) -> &str {
        &self.form_token
    }

    /// The same visit, of a form that was sent.
    pub(crate) fn of_form(self, sent: SentForm) -> Self {
        Self { sent: Some(sent), ..self }
    }

    /// The hidden fields of a form that does something: the form token, the key that makes a form
    /// sent twice one request, and the page of the form.
    pub(crate) fn form_fields(&self) -> Markup {
        html! { (self.token_field()) (hidden_key()) input type="hidden" name=(PAGE) value=(self.here); }
    }

    /// A form that does something, with the button that sends it.
    pub(crate) fn form(&self, action: &str, fields: Markup, send: Word) -> Markup {
        self.form_sent_by(action, fields, html! { button type="submit" { (self.say(send)) } })
    }

    /// The form that a page is about: its button stands out.
    pub(crate) fn main_form(&self, action: &str, fields: Markup, send: Word) -> Markup {
        self.form_sent_by(action, fields, html! { button.primary type="submit" { (self.say(send)) } })
    }

    fn form_sent_by(&self, action: &str, fields: Markup, button: Markup) -> Markup {
        html! { form method="post" action=(action) { (self.form_fields()) (fields) p.actions { (button) } } }
    }

    /// A part of a page, below a heading.
    pub(crate) fn card(&self, id: &str, heading: Word, content: Markup) -> Markup {
        html! { section.card aria-labelledby=(id) { h2 id=(id) { (self.say(heading)) } (content) } }
    }

    /// The field of a reason. `id` is its id on the page.
    pub(crate) fn reason_field(&self, id: &str) -> Markup {
        html! {
            label for=(id) { (self.say(words::NOTES)) }
            textarea id=(id) name="reason" rows="2" maxlength="500" required {}
        }
    }

    /// The hidden field of the form token.
    fn token_field(&self) -> Markup {
        html! { input type="hidden" name=(FORM_TOKEN) value=(self.form_token); }
    }

    /// What a form that was refused, and is shown again, sent in a field.
    pub(crate) fn refused(&self, field: &str) -> Option<&str> {
        self.refused.as_ref()?.sent(field)
    }

    /// An amount in the visit's language.
    pub(crate) fn money(&self, centavos: impl Into<i128>) -> String {
        show::money(self.language, centavos.into())
    }

    /// Whether the operator may do what needs this role.
    pub(crate) fn may(&self, needed: Role) -> bool {
        self.operator.role >= needed
    }

    /// Refuses what does not belong to the scope: it is not there.
    pub(crate) fn sees(&self, group: Option<GroupNumber>) -> Result<()> {
        if self.scope.has(group) { Ok(()) } else { Err(not_found()) }
    }

    /// Refuses a page that has no part for one merchant, in the scope of one.
    pub(crate) fn whole(&self) -> Result<()> {
        self.sees(None)
    }

    /// The answer to a form: it leads to the page that says, once, what the form did, or shows the
    /// problem that the form met. The path has no query.
    pub(crate) fn done<T>(&self, made: Result<T>, path: &str, what: FormOutcome) -> Response {
        if let Err(problem) = made {
            return self.answer(Err(problem));
        }
        self.sessions.keep_done(&self.secret, path, what);
        Redirect::to(path).into_response()
    }

    /// What the session's last form did.
    fn said_once(&self) -> Markup {
        let Some(done) = &self.done else { return html! {} };
        html! {
            p.card role="status" {
                (self.say(words::done(done)))
                @if let FormOutcome::PixPaid(txid) = done {
                    " " a href={"/console/charges/" (txid)} { (self.say(words::CHARGE)) }
                }
            }
        }
    }

    /// The answer of a screen, or of the problem that it met.
    pub(crate) fn answer(&self, made: Result<Screen>) -> Response {
        match made {
            Ok(screen) => self.page_or_form(&screen),
            Err(problem) => {
                let alert = self.alert(&problem);
                let mut page = self.page(problem.status(), &self.problem(&alert));
                let extensions = page.extensions_mut();
                problem.needed_partition().map(|needed| extensions.insert(needed));
                let refused =
                    self.sent.as_ref().and_then(|sent| RefusedForm::after(self.language, &problem, sent, &alert));
                refused.map(|refused| extensions.insert(refused));
                page
            }
        }
    }

    /// An answer that is no screen, such as a file; or the problem that it met.
    pub(crate) fn answer_with(&self, made: Result<Response>) -> Response {
        made.unwrap_or_else(|problem| self.answer(Err(problem)))
    }

    /// A screen, or the refused form on it.
    fn page_or_form(&self, screen: &Screen) -> Response {
        let path = self.here.split('?').next().unwrap_or_default();
        let filled =
            self.refused.as_ref().and_then(|refused| Some((refused.status, refused.on(&screen.body.0, path)?)));
        let Some((status, body)) = filled else { return self.page(StatusCode::OK, screen) };
        let title = screen.title.clone();
        let mut page = self.page(status, &Screen { section: screen.section, title, body });
        page.extensions_mut().insert(ShownAgain);
        page
    }

    /// A problem in words: what was wrong, field by field.
    pub(crate) fn alert(&self, problem: &Problem) -> Markup {
        html! {
            div.card role="alert" {
                p { strong { @match (problem.wrong_fields(), self.language) {
                    // Each field says what is wrong with it.
                    ([_, ..], Language::Portuguese) => (problem.code().row().message),
                    _ => (show::problem_title(self.language, problem)),
                } } }
                (show::wrong_fields(self.language, problem))
                @if let Some(reason) = show::reason(self.language, problem) { p.dim { (reason) } }
                p { code { (problem.code().row().code) } }
            }
        }
    }

    fn problem(&self, alert: &Markup) -> Screen {
        let body = html! { (alert) p { a href="/console" { (self.say(words::BACK)) } } };
        Screen { section: Section::Found, title: self.say(words::PROBLEM).to_owned(), body }
    }

    /// A screen in its frame.
    pub(crate) fn page(&self, status: StatusCode, screen: &Screen) -> Response {
        let (body, is_cut) = fitting(&screen.body.0);
        let page = frame(
            self.language,
            &screen.title,
            html! {
                header {
                    div.top {
                        a.brand href="/console" { "Centavo" }
                        (self.search())
                        button type="button" id="keys-open" hidden { (self.say(words::KEYS_OPEN)) " (?)" }
                        p.who { (self.operator.name) " · " (self.say(wire_words::role(self.operator.role))) }
                        a href=(self.elsewhere) lang=(other(self.language).tag()) hreflang=(other(self.language).tag()) {
                            (self.say(words::OTHER_LANGUAGE))
                        }
                        form method="post" action="/console/sign-out" {
                            (self.token_field())
                            button type="submit" { (self.say(words::SIGN_OUT)) }
                        }
                    }
                    @if self.in_sandbox {
                        p.sandbox {
                            (self.say(words::SANDBOX_BANNER)) " " (self.say(words::CLOCK)) ": "
                            (show::moment(self.language, self.now))
                        }
                    }
                }
                div.frame {
                    (self.sections(screen.section))
                    main id="main" tabindex="-1" {
                        (self.scope_line())
                        h1 { bdi { (screen.title) } }
                        (self.said_once())
                        @if is_cut { p.dim { (self.say(words::LONG_TEXTS)) } }
                        (PreEscaped(body))
                        p.dim { (self.say(words::TIMES_ARE)) }
                    }
                }
                (self.keys())
                script src=(*SCRIPT_PATH) defer {}
            },
        );
        html_answer(status, page)
    }

    /// The text of the search, on the page of its results.
    fn sought(&self) -> Option<String> {
        let query = self.here.strip_prefix("/console/find?")?;
        form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "q").map(|(_, text)| text.into_owned())
    }

    fn search(&self) -> Markup {
        let what = self.say(words::FIND_WHAT);
        html! {
            form.search role="search" aria-label=(self.say(words::FIND)) action="/console/find" {
                input type="search" name="q" value=[self.sought()] required maxlength="200" autocomplete="off" aria-label=(what) placeholder=(what);
                button type="submit" { (self.say(words::FIND)) }
            }
        }
    }

    /// The merchant to which the page is narrowed, and the way back to all.
    fn scope_line(&self) -> Markup {
        html! {
            @if let Some(name) = &self.scope_name {
                p.scope { (self.say(words::ONLY_OF)) " " strong { bdi { (name) } } " · " a href="/console" { (self.say(words::ALL_MERCHANTS)) } }
            }
        }
    }

    /// The list of keys, which the script opens.
    fn keys(&self) -> Markup {
        let keys = [
            ("?", words::KEY_HELP),
            ("/", words::KEY_FIND),
            ("j", words::KEY_NEXT),
            ("k", words::KEY_BEFORE),
            ("x", words::KEY_CHOOSE),
        ];
        html! {
            dialog id="keys" aria-labelledby="keys-title" {
                h2 id="keys-title" { (self.say(words::KEYS_OPEN)) }
                dl.keys { @for (key, word) in keys { div { dt { kbd { (key) } } dd { (self.say(word)) } } } }
                p { label { input type="checkbox" id="letters" checked; " " (self.say(words::LETTERS_ON)) } }
                form method="dialog" { button.primary { (self.say(words::CLOSE)) } }
            }
        }
    }

    fn sections(&self, current: Section) -> Markup {
        let is_listed = |section: Section, has_part: bool| match self.scope {
            Scope::All => self.in_sandbox || section != Section::Sandbox,
            Scope::Merchant(..) => has_part,
        };
        html! {
            nav aria-label=(self.say(words::SECTIONS)) {
                ul {
                    @for (section, heading, path, _) in SECTIONS.iter().filter(|(section, _, _, has_part)| is_listed(*section, *has_part)) {
                        li {
                            a href=(self.scope.of_path(path)) aria-current=[(*section == current).then_some("page")] {
                                (self.say(*heading))
                                @if let Some(waiting) = self.waiting.filter(|waiting| *section == Section::Queue && *waiting > 0) {
                                    span { (waiting) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A page that needs no session: the sign-in, and refusals before it.
pub(crate) fn plain_page(language: Language, status: StatusCode, title: &str, body: Markup) -> Response {
    let page = frame(
        language,
        title,
        html! {
            main.plain id="main" { p.brand { "Centavo" } h1 { (title) } (body) }
        },
    );
    html_answer(status, page)
}

/// The page of a problem of a form that has no session.
pub(crate) fn plain_refusal(language: Language, problem: &Problem) -> Response {
    let body = html! {
        @if let Some(reason) = show::reason(language, problem) { p.dim { (reason) } }
        p { code { (problem.code().row().code) } }
    };
    plain_page(language, problem.status(), show::problem_title(language, problem), body)
}

fn frame(language: Language, title: &str, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(language.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Centavo" }
                link rel="stylesheet" href=(*STYLE_PATH);
                link rel="icon" type="image/svg+xml" href=(*ICON_PATH);
            }
            body {
                a.skip href="#main" { (words::SKIP.text(language)) }
                (body)
            }
        }
    }
}

fn html_answer(status: StatusCode, page: Markup) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], page.into_string()).into_response()
}

/// The language that a link of the page asks for (`?lang=en`).
pub(crate) fn asked_language(parts: &Parts) -> Option<Language> {
    let pairs = query(parts).ok()?;
    single(&pairs, "lang").ok().flatten().and_then(Language::tagged)
}

/// The language that a page offers beside its own.
pub(crate) fn other(language: Language) -> Language {
    match language {
        Language::Portuguese => Language::English,
        Language::English => Language::Portuguese,
    }
}

/// Path and query of the same page in the other language; the overview, where that would be a form
/// again.
fn in_other_language(method: &Method, uri: &Uri, language: Language) -> String {
    let asked = format!("lang={}", other(language).tag());
    if method == Method::GET { address(uri, &["lang"], Some(&asked)) } else { format!("/console?{asked}") }
}

/// Sends a request without a session to the sign-in, and back afterwards where it only read.
fn to_sign_in(parts: &Parts) -> Response {
    let is_read = parts.method == Method::GET;
    let asked = parts.uri.path_and_query().filter(|_| is_read).map_or("/console", |asked| asked.as_str());
    let next: String = form_urlencoded::byte_serialize(asked.as_bytes()).collect();
    Redirect::to(&format!("/console/sign-in?next={next}")).into_response()
}

/// A path of the console that is none.
pub(crate) async fn unknown(visit: Visit) -> Response {
    visit.answer(Err(not_found()))
}
