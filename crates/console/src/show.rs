//! How amounts, times, names of ledgers and entries are shown.

use std::ops::Range;

use actors::engine::Engine;
use ledger::{Account, Balance, Entry, LedgerId, ObjectId, Posting, Side, Timestamp};
use maud::{Markup, html};
use wire::reais::grouped;
use wire::timestamp::{PeriodLimit, local};

use crate::{Visit, Word, words};
use ops::wire_words::figures;
pub(crate) use ops::wire_words::{decimal, money};
use web::views::ledger::{ledger_name, owner_name as named_owner};
use web::views::recipient::recipient_id;
use web::views::withdrawal::WithdrawalDestinationView;
use web::{FieldError, Language, Problem, time};

/// An amount in a column of amounts, without its currency; empty for zero.
pub(crate) fn column(language: Language, centavos: i128) -> String {
    match centavos {
        0 => String::new(),
        below if below < 0 => format!("−{}", figures(language, below.unsigned_abs())),
        above => figures(language, above.unsigned_abs()),
    }
}

/// A number in groups of three digits.
pub(crate) fn count(language: Language, number: u64) -> String {
    grouped(&number.to_string(), if language == Language::Portuguese { '.' } else { ',' })
}

/// A time in Sao Paulo, to the second, with UTC beside it.
pub(crate) fn moment(language: Language, at: Timestamp) -> Markup {
    let utc = time(at);
    html! {
        time datetime=(utc) {
            (clock(language, at)) " " span.dim { "(" (utc.get(11..19).unwrap_or_default()) " UTC)" }
        }
    }
}

/// A time that an answer of the interface has, as [`short_moment`] shows it.
pub(crate) fn text_moment(language: Language, at: &str) -> Markup {
    let parsed = PeriodLimit::parse(at).map(|at| Timestamp(at.begin));
    html! { @match parsed { Some(at) => (short_moment(language, at)), None => (at) } }
}

/// A time that an answer may have; nothing where it has none.
pub(crate) fn optional_moment(language: Language, at: Option<&str>) -> Markup {
    html! { @if let Some(at) = at { (text_moment(language, at)) } }
}

/// The same for tables: UTC is the title, and each page says how far behind it its times are.
pub(crate) fn short_moment(language: Language, at: Timestamp) -> Markup {
    let utc = time(at);
    html! { time datetime=(utc) title={(utc.get(..19).unwrap_or_default()) "Z"} { (clock(language, at)) } }
}

fn clock(language: Language, at: Timestamp) -> String {
    let format = match language {
        Language::Portuguese => "%d/%m/%Y %H:%M:%S",
        Language::English => "%Y-%m-%d %H:%M:%S",
    };
    local(at.0).format(format).to_string()
}

/// A day, such as `2026-11-30`, as people of a language write it; empty where it is none.
pub(crate) fn day(language: Language, date: &str) -> String {
    let format = if language == Language::Portuguese { "%d/%m/%Y" } else { "%Y-%m-%d" };
    wire::timestamp::day(date).map(|day| day.format(format).to_string()).unwrap_or_default()
}

/// A span of days, as people of a language write them.
pub(crate) fn days(language: Language, from: &str, to: &str) -> String {
    format!("{} – {}", day(language, from), day(language, to))
}

/// An account as a reader of the language knows it, with its name in the books.
pub(crate) fn account_label(language: Language, account: Account) -> String {
    match language {
        Language::Portuguese => format!("{} ({})", account.name_ptbr(), account.kind_name()),
        Language::English => account.kind_name(),
    }
}

/// The name of the owner of a ledger, as people know it.
pub(crate) fn owner_name(engine: &Engine, language: Language, ledger: LedgerId) -> String {
    let unnamed = match ledger {
        LedgerId::Merchant(_) | LedgerId::Recipient(..) => "—",
        LedgerId::Platform(_) => words::PLATFORM.text(language),
        LedgerId::System => words::THE_SERVICE.text(language),
    };
    named_owner(engine, ledger).unwrap_or_else(|| unnamed.to_owned())
}

/// The id of the merchant whose group a ledger belongs to.
pub(crate) fn merchant_id(engine: &Engine, ledger: LedgerId) -> Option<ObjectId> {
    ledger.group().and_then(|group| engine.merchant(group, |row| row.id))
}

/// A link to the page of an object by its id. `pages` is the segment of the path before that.
pub(crate) fn code_link(pages: &str, id: &str) -> Markup {
    html! { a href={"/console/" (pages) "/" (id)} { code { (id) } } }
}

/// A link to the page of a merchant or a recipient, by its name.
pub(crate) fn owner_link(engine: &Engine, language: Language, ledger: LedgerId) -> Markup {
    html! { a href=(owner_page(engine, ledger)) { bdi { (owner_name(engine, language, ledger)) } } }
}

/// The page of a merchant or a recipient.
pub(crate) fn owner_page(engine: &Engine, ledger: LedgerId) -> String {
    match ledger {
        LedgerId::Recipient(..) => {
            format!("/console/recipients/{}", recipient_id(engine, ledger).unwrap_or_default().uuid())
        }
        _ => format!("/console/merchants/{}", merchant_id(engine, ledger).unwrap_or_default().uuid()),
    }
}

/// A posting, and the ledger that it is of.
pub(crate) type PostingOf<'a> = (LedgerId, &'a Posting);

/// The postings of entries, ledger by ledger.
pub(crate) fn by_ledger(entries: &[Entry]) -> Vec<PostingOf<'_>> {
    let mut postings: Vec<PostingOf<'_>> =
        entries.iter().flat_map(|entry| entry.postings().iter().map(|posting| (entry.ledger(), posting))).collect();
    postings.sort_by_key(|(ledger, _)| *ledger);
    postings
}

/// Entries as T-accounts: a table for each ledger, with its postings and the sums of both sides.
/// `room` is how many more postings the page shows; it becomes less by those that are shown here.
/// Whether there are more is said.
pub fn entries(engine: &Engine, language: Language, entries: &[Entry], room: &mut usize) -> Markup {
    let say = |word: Word| word.text(language);
    let all = by_ledger(entries);
    let shown = all.len().min(*room);
    *room -= shown;
    html! {
        @if all.is_empty() { p.dim { (say(words::OPENED_WITHOUT_MONEY)) } }
        (t_accounts(engine, language, &all, 0..shown))
        @if shown < all.len() { p.dim { (say(words::MORE_POSTINGS)) } }
    }
}

/// Some of the postings of entries as T-accounts. A ledger that is shown in part has no sums.
pub(crate) fn t_accounts(engine: &Engine, language: Language, all: &[PostingOf<'_>], shown: Range<usize>) -> Markup {
    let is_whole = |part: &[PostingOf<'_>]| {
        let of_ledger = all.iter().filter(|(ledger, _)| *ledger == part[0].0);
        of_ledger.count() == part.len()
    };
    html! {
        div.accounts {
            @for part in all[shown].chunk_by(|(one, _), (other, _)| one == other) {
                (t_account(engine, language, part, is_whole(part)))
            }
        }
    }
}

fn t_account(engine: &Engine, language: Language, postings: &[PostingOf<'_>], has_sums: bool) -> Markup {
    let say = |word: Word| word.text(language);
    let ledger = postings[0].0;
    let mut sum = Balance::default();
    postings.iter().for_each(|(_, posting)| sum.post(posting));
    let name = ledger_name(engine, ledger);
    html! {
        div { table.entry {
            caption {
                a href={"/console/ledgers/" (name)} {
                    @if ledger == LedgerId::System { (name) } @else { (name.get(..2).unwrap_or_default()) bdi { (owner_name(engine, language, ledger)) } }
                }
            }
            thead { tr {
                th scope="col" { (say(words::ACCOUNT)) }
                @for side in [words::DEBIT, words::CREDIT] { th.amount scope="col" { (say(side)) } }
            } }
            tbody {
                @for (_, posting) in postings {
                    tr {
                        td { (account(engine, language, ledger, posting.account)) }
                        td.amount { @if posting.side == Side::Debit { (column(language, posting.amount.0.into())) } }
                        td.amount { @if posting.side == Side::Credit { (column(language, posting.amount.0.into())) } }
                    }
                }
            }
            @if has_sums {
                tfoot {
                    tr {
                        th scope="row" { (say(words::SUM)) }
                        td.amount { (column(language, sum.debits)) }
                        td.amount { (column(language, sum.credits)) }
                    }
                }
            }
        } }
    }
}

/// An account of a ledger: see [`account_named`].
pub(crate) fn account(engine: &Engine, language: Language, ledger: LedgerId, account: Account) -> Markup {
    let name = account.name(ledger.group().unwrap_or_default(), |ledger| ledger_name(engine, ledger));
    account_named(language, &name)
}

/// The full name of an account, which may break at its colons; in Portuguese below the name that an
/// accountant knows.
pub(crate) fn account_named(language: Language, name: &str) -> Markup {
    let known = Account::named(name).filter(|_| language == Language::Portuguese);
    html! { @if let Some(account) = known { (account.name_ptbr()) " " } (breakable(name)) }
}

/// A problem in words, with its code.
pub(crate) fn problem(language: Language, problem: &Problem) -> Markup {
    html! {
        (problem_title(language, problem))
        @if let Some(reason) = reason(language, problem) { " " span.dim { (reason) } }
        " " code { (problem.code().row().code) }
    }
}

/// What a problem is: its message where the page is in Portuguese, its title where in English.
pub(crate) fn problem_title(language: Language, problem: &Problem) -> &str {
    match language {
        Language::Portuguese => problem.message_shown(),
        Language::English => problem.code().row().title,
    }
}

/// More about a problem: what the console itself says, or the detail, which is in English.
pub(crate) fn reason(language: Language, problem: &Problem) -> Option<&str> {
    let detail = Some(problem.explanation()).filter(|detail| language == Language::English && !detail.is_empty());
    problem.said().or(detail)
}

/// The fields that are wrong, each by its name. Messages are in Portuguese; names of errors are
/// English words.
pub(crate) fn wrong_fields(language: Language, problem: &Problem) -> Markup {
    html! { @for wrong in problem.wrong_fields() { (wrong_field(language, wrong, None)) } }
}

/// What is wrong with a field: by its name in the interface, or by its name in a form and its label
/// there.
pub(crate) fn wrong_field(language: Language, wrong: &FieldError, of_form: Option<(&str, &str)>) -> Markup {
    let said = match language {
        Language::Portuguese => wrong.message.clone(),
        Language::English => wrong.code.replace('_', " ").into(),
    };
    let Some((name, label)) = of_form else {
        let day = [("from", words::FROM), ("to", words::TO)].into_iter().find(|(name, _)| *name == wrong.field);
        return html! {
            p { @match day { Some((_, label)) => (label.text(language)), None => code { (wrong.field) } } ": " (said) }
        };
    };
    let begins = [wrong.field.as_str(), name].into_iter().find_map(|name| said.strip_prefix(name));
    html! { p id={"wrong-" (name)} { strong { (label) } ": " (begins.unwrap_or(&said).trim_start_matches([':', ' '])) } }
}

/// A long name that may break at its colons.
fn breakable(name: &str) -> Markup {
    html! {
        span.account {
            @for (place, part) in name.split(':').enumerate() {
                @if place > 0 { ":" wbr; }
                (part)
            }
        }
    }
}

/// A bank account in one line, masked.
pub(crate) fn bank_account(account: &WithdrawalDestinationView) -> Markup {
    html! {
        @if let Some(name) = account.bank_name() { (name) " · " }
        @for part in [&account.bank_code, &account.ispb, &account.agencia].into_iter().flatten() { (part) " · " }
        (account.conta) " · "
        bdi { (account.legal_name.as_deref().unwrap_or_default()) } " " span.dim { (account.document_number) }
    }
}

/// Facts about one thing, in the order of the page. What there is none of is left out.
pub(crate) struct Facts<'a> {
    visit: &'a Visit,
    pairs: Vec<(&'static str, Markup)>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(visit: &'a Visit) -> Self {
        Self { visit, pairs: Vec::new() }
    }

    pub(crate) fn add(&mut self, name: Word, value: impl Into<Option<Markup>>) -> &mut Self {
        self.pairs.extend(value.into().map(|value| (self.visit.say(name), value)));
        self
    }

    /// A text that somebody wrote.
    pub(crate) fn text<'t>(&mut self, name: Word, text: impl Into<Option<&'t str>>) -> &mut Self {
        self.add(name, text.into().map(|text| html! { bdi { (text) } }))
    }

    pub(crate) fn code<'t>(&mut self, name: Word, id: impl Into<Option<&'t str>>) -> &mut Self {
        self.add(name, id.into().map(|id| html! { code { (id) } }))
    }

    pub(crate) fn word(&mut self, name: Word, word: impl Into<Option<Word>>) -> &mut Self {
        self.add(name, word.into().map(|word| html! { (self.visit.say(word)) }))
    }

    pub(crate) fn money(&mut self, name: Word, amount: impl Into<Option<i64>>) -> &mut Self {
        self.add(name, amount.into().map(|amount| html! { (self.visit.money(amount)) }))
    }

    /// A time, as an answer has it.
    pub(crate) fn when<'t>(&mut self, name: Word, at: impl Into<Option<&'t str>>) -> &mut Self {
        self.add(name, at.into().map(|at| text_moment(self.visit.language, at)))
    }

    /// An account of the books, by its name.
    pub(crate) fn account<'t>(&mut self, name: Word, account: impl Into<Option<&'t str>>) -> &mut Self {
        self.add(name, account.into().map(|account| account_named(self.visit.language, account)))
    }

    pub(crate) fn shown(&mut self) -> Markup {
        facts(std::mem::take(&mut self.pairs))
    }
}

/// Pairs of a name and what it is.
pub(crate) fn facts(pairs: Vec<(&str, Markup)>) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in pairs {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// A table that scrolls sideways by itself where it does not fit. `label` names it.
pub(crate) fn scrolled(label: &str, table: Markup) -> Markup {
    html! { div.scroll role="group" tabindex="0" aria-label=(label) { (table) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use web::problem::Code;

    #[test]
    fn amounts_are_exact_in_both_languages() {
        for (centavos, portuguese, english) in [
            (0, "R$ 0,00", "R$0.00"),
            (5, "R$ 0,05", "R$0.05"),
            (-123_456, "−R$ 1.234,56", "−R$1,234.56"),
            (100_000_000_000, "R$ 1.000.000.000,00", "R$1,000,000,000.00"),
        ] {
            assert_eq!(money(Language::Portuguese, centavos), portuguese);
            assert_eq!(money(Language::English, centavos), english);
        }
        assert_eq!(column(Language::Portuguese, 0), "");
        assert_eq!(column(Language::Portuguese, -7), "−0,07");
        assert_eq!(count(Language::English, 1_234_567), "1,234,567");
    }

    #[test]
    fn problems_are_said_in_the_language_of_the_page() {
        for code in Code::ALL {
            let message = "nome deve ter de 1 a 140 caracteres".into();
            let error = FieldError { field: "name".to_owned(), code: "wrong_length", message };
            let problem = Problem::new(*code).detail("Wrong or missing: name.").errors(vec![error]);
            let of = |language| {
                (super::problem(language, &problem).into_string(), wrong_fields(language, &problem).into_string())
            };
            let (portuguese, fields) = of(Language::Portuguese);
            assert!(portuguese.starts_with(code.row().message) && !portuguese.contains("Wrong"), "{portuguese}");
            assert!(fields.contains("<code>name</code>: nome deve ter") && !fields.contains("wrong"), "{fields}");
            let (english, fields) = of(Language::English);
            assert!(english.starts_with(code.row().title) && !english.contains("deve ter"), "{english}");
            assert_eq!(fields, "<p><code>name</code>: wrong length</p>");
        }
    }

    #[test]
    fn times_are_those_of_sao_paulo() {
        let at = Timestamp(1_795_300_000_250);
        assert_eq!(clock(Language::Portuguese, at), "21/11/2026 19:26:40");
        let shown = moment(Language::English, at).into_string();
        assert!(shown.contains("2026-11-21 19:26:40") && shown.contains("22:26:40 UTC"), "{shown}");
    }
}
