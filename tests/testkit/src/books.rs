//! Books of some merchants as a server shows them, page by page, for comparison with its later
//! answers.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Client;
use serde_json::Value;
use store::testkit::power_cut::Chance;

use crate::callers::{Callers, client};
use crate::server::{OPS_TOKEN, Server};

/// All pages that a server shows of its merchants' books, at one cut.
pub struct Books {
    /// The last Record in them.
    pub cut: u64,
    /// The trial balance, now and at the end of each day, every balance, and pages of every ledger,
    /// statement and list.
    pages: BTreeMap<Page, Value>,
    /// Every charge.
    charges: Vec<(Page, Value)>,
}

/// Where something is read, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Page {
    path: String,
    token: String,
    /// Of a list, or all there is.
    is_first: bool,
}

/// What a server answered.
enum Answer {
    Body(Value),
    /// It said itself that it cannot say.
    Failed(String),
}

impl Books {
    /// Reads all that a server says.
    pub async fn read(server: &Server, merchants: &[Callers]) -> Result<Self, String> {
        let client = client();
        let cut = cut(&client, server).await?;
        let mut books = Self { cut, pages: BTreeMap::new(), charges: Vec::new() };
        books.read_pages(&client, server, Page::of_operators("/ops/trial-balance")).await?;
        for callers in merchants {
            let (merchant, recipients) = (&callers.merchant, &callers.recipients);
            let owners = [format!("M-{merchant}"), format!("P-{merchant}")];
            for ledger in owners.into_iter().chain(recipients.iter().map(|recipient| format!("R-{recipient}"))) {
                for what in ["accounts", "entries"] {
                    let page = Page::of_operators(format!("/ops/ledgers/{ledger}/{what}"));
                    books.read_pages(&client, server, page).await?;
                }
            }
            let own = |path: String| Page { path, token: callers.api_key.clone(), is_first: true };
            let statements = recipients.iter().map(|id| format!("/api/dashboard/sub-recipients/{id}/splits"));
            let lists = ["/api/balance", "/api/balance/operations", "/api/charges", "/api/dashboard/sub-recipients"];
            for path in lists.map(str::to_owned).into_iter().chain(statements) {
                books.read_pages(&client, server, own(path)).await?;
            }
            for txid in callers.charges() {
                let page = own(format!("/api/charges/{txid}"));
                let body = page.read(&client, server).await?.must_be_there(&page)?;
                books.charges.push((page, body));
            }
        }
        let days = books.charges.iter().filter_map(|(_, charge)| charge["created_at"].as_str()?.get(..10));
        let days: BTreeSet<_> = days.map(str::to_owned).collect();
        for day in days {
            let past = Page::of_operators(format!("/ops/trial-balance?date={day}"));
            books.read_pages(&client, server, past).await?;
        }
        Ok(books)
    }

    /// Holds a server against these books: the trial balance, every balance and the first page of
    /// every list; of the further pages one in three, and so many charges, taken by chance. Gives
    /// what the server could not say, and said so; anything else that it does not say as before is
    /// an error.
    pub async fn check(&self, server: &Server, charges: u64, chance: &mut Chance) -> Result<Vec<String>, String> {
        let client = client();
        let some = (0..charges).map(|_| &self.charges[chance.below(self.charges.len() as u64) as usize]);
        let some: Vec<_> = some.map(|(page, body)| (page, body)).collect();
        let pages = self.pages.iter().filter(|(page, _)| page.is_first || chance.below(3) == 0);
        let mut not_given = Vec::new();
        for (page, expected) in pages.chain(some) {
            match page.read(&client, server).await? {
                Answer::Body(found) if found == *expected => {}
                Answer::Body(found) => return Err(format!("{}: {}", page.path, difference(expected, &found))),
                Answer::Failed(said) => not_given.push(format!("{}: {said}", page.path)),
            }
        }
        Ok(not_given)
    }

    /// Reads a list, or what is no list: of the pages the first, the second and then one in eight.
    async fn read_pages(&mut self, client: &Client, server: &Server, first: Page) -> Result<(), String> {
        let (mut number, mut pages) = (1, 1);
        while number <= pages {
            let with = if first.path.contains('?') { '&' } else { '?' };
            // What is no list takes no page.
            let path = if number == 1 { first.path.clone() } else { format!("{}{with}page={number}", first.path) };
            let page = Page { path, is_first: number == 1, ..first.clone() };
            let body = page.read(client, server).await?.must_be_there(&page)?;
            pages = body["pages"].as_u64().unwrap_or(1);
            number += if number == 1 { 1 } else { 8 };
            self.pages.insert(page, body);
        }
        Ok(())
    }
}

impl Page {
    fn of_operators(path: impl Into<String>) -> Self {
        Self { path: path.into(), token: OPS_TOKEN.to_owned(), is_first: true }
    }

    /// Reads it; an error when there is no answer at all, or one that nothing explains.
    async fn read(&self, client: &Client, server: &Server) -> Result<Answer, String> {
        let base = if self.token == OPS_TOKEN { &server.operations } else { &server.public };
        let request = client.get(format!("{base}{}", self.path)).bearer_auth(&self.token);
        let response = request.send().await.map_err(|error| format!("{}: no answer: {error}", self.path))?;
        let status = response.status();
        let text = response.text().await.map_err(|error| format!("{}: no body: {error}", self.path))?;
        match serde_json::from_str(&text) {
            Ok(body) if status.is_success() => Ok(Answer::Body(body)),
            Ok(_) if status.is_server_error() => Ok(Answer::Failed(format!("{status} {text}"))),
            _ => Err(format!("{}: {status} {text}", self.path)),
        }
    }
}

impl Answer {
    fn must_be_there(self, page: &Page) -> Result<Value, String> {
        match self {
            Answer::Body(body) => Ok(body),
            Answer::Failed(said) => Err(format!("{}: {said}", page.path)),
        }
    }
}

/// How many Records a server has published.
pub async fn cut(client: &Client, server: &Server) -> Result<u64, String> {
    let page = Page::of_operators("/ops/trial-balance");
    let body = page.read(client, server).await?.must_be_there(&page)?;
    let last: Result<BTreeMap<u16, u64>, _> = serde_json::from_value(body["cut"].clone());
    Ok(last.map_err(|error| format!("no cut in {body}: {error}"))?.values().sum())
}

/// The first place where two bodies differ.
fn difference(expected: &Value, found: &Value) -> String {
    let places: Vec<String> = match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => expected.keys().chain(found.keys()).cloned().collect(),
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            (0..expected.len()).map(|index| index.to_string()).collect()
        }
        _ => Vec::new(),
    };
    let at = |value: &Value, place: &str| match value {
        Value::Array(items) => place.parse::<usize>().ok().and_then(|index| items.get(index).cloned()),
        value => value.get(place).cloned(),
    };
    for place in places {
        match (at(expected, &place), at(found, &place)) {
            (Some(expected), Some(found)) if expected != found => {
                return format!("{place}: {}", difference(&expected, &found));
            }
            (Some(_), Some(_)) => {}
            (expected, found) => return format!("{place}: expected {expected:?}, found {found:?}"),
        }
    }
    format!("expected {expected}, found {found}")
}
