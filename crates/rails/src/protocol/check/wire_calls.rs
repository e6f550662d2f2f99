//! Requests of the test, and what is seen in answer to them. No finding repeats a card.

use std::cell::Cell;
use std::time::Duration;

use actors::rails::PixOpening;
use hyper::Method;
use ledger::{Centavos, PayoutBank};
use serde_json::Value;
use wire::timestamp::with_milliseconds;

use super::super::calls::{BridgeCalls, now, with_short_id};
use super::super::capabilities::Capabilities;
use super::super::messages::{Object, Outcome, body, outcome};
use super::super::{cards, payouts, pix, repayments};
use super::{Check, Defect, broken, not_tested};
use crate::client::{ANSWER_MAX, Answer};
use crate::shared_settings::Repeats;

/// Ids that no order had before.
pub(super) struct Ids(Cell<u128>);

impl Ids {
    pub(super) fn new() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // The shape of an id of ours, whose last digits are the nanoseconds.
        let begin = (since.as_millis() << 80) | (0x8 << 76) | (0b10 << 62) | (u128::from(since.subsec_nanos()) << 20);
        Self(Cell::new(begin))
    }

    pub(super) fn next(&self) -> String {
        self.0.set(self.0.get() + 1);
        format!("{:032x}", self.0.get())
    }
}

pub(super) fn in_an_hour() -> String {
    with_milliseconds(now().plus_ms(3_600_000).0)
}

/// An answer to a request.
pub(super) struct ObservedAnswer {
    /// The request: `PUT /cards/ID`.
    request: String,
    /// The id in it.
    id: String,
    answer: Answer,
    pub(super) body: Value,
}

impl ObservedAnswer {
    fn of(request: String, answer: Answer) -> Self {
        let id = request.split(['/', '?']).nth(2).unwrap_or_default().to_owned();
        let body = answer.read().unwrap_or_default();
        Self { request, id, answer, body }
    }

    pub(super) fn status(&self) -> u16 {
        self.answer.status.as_u16()
    }

    pub(super) fn code(&self) -> Option<&str> {
        self.body["code"].as_str()
    }

    /// What was seen, for people.
    pub(super) fn says(&self) -> String {
        let word = |name: &str| self.body[name].as_str().map(|word| format!(" {word}")).unwrap_or_default();
        let detail = if self.body["code"].is_null() { word("status") } else { word("code") };
        let unreadable = self.answer.read::<Value>().err().map(|defect| format!(" ({defect})")).unwrap_or_default();
        format!("{} is answered {}{detail}{}{unreadable}", self.request, self.status(), word("reference"))
    }

    pub(super) fn broken<T>(&self, expected: &str) -> Result<T, Defect> {
        broken(format!("{}; expected {expected}", self.says()))
    }

    /// What Centavo reads in it.
    fn outcome(&self) -> Result<Outcome, Defect> {
        outcome(&self.answer, &self.id).or_else(|defect| broken(format!("{}: {defect}", self.says())))
    }

    /// The object of an order, which Centavo believes.
    pub(super) fn object(&self, list: &str, amount: i64) -> Result<Object, Defect> {
        let object = match self.outcome()? {
            Outcome::It(object) => *object,
            Outcome::Refused(refusal) => {
                return not_tested(format!("the institution refuses the order ({})", refusal.reason));
            }
            Outcome::None => return self.broken("the object of the order"),
        };
        let amount = Centavos(amount);
        let read = match list {
            cards::LIST => cards::captured(&object, amount).map(drop),
            pix::LIST => match pix::registered(&object, amount) {
                Ok(PixOpening::Registered { .. }) => Ok(()),
                Ok(_) => Err("status is not open"),
                Err(defect) => Err(defect),
            },
            payouts::LIST => payouts::taken(&object, amount, PayoutBank::Pix).map(drop),
            _ => repayments::repaid(&object, amount).map(drop),
        };
        read.map(|()| object).or_else(|defect| broken(format!("{}: {defect}", self.says())))
    }

    /// A charge that is closed.
    pub(super) fn closed(&self) -> Result<(), Defect> {
        match self.outcome()? {
            Outcome::It(object) if object.status == "closed" => Ok(()),
            _ => self.broken("status closed"),
        }
    }

    /// The problem document for an id that the bridge has not.
    pub(super) fn none(&self) -> Result<(), Defect> {
        match self.outcome()? {
            Outcome::None => Ok(()),
            _ => self.broken("404 with code not_found"),
        }
    }

    /// A 404 of any form: whether its form is right is rule 3.
    pub(super) fn absent(&self) -> Result<(), Defect> {
        if self.status() == 404 { Ok(()) } else { self.broken("404") }
    }

    /// The same object as in an earlier answer. What was under way may have ended.
    pub(super) fn same_as(&self, earlier: &Self) -> Result<(), Defect> {
        let was_under_way = earlier.body["status"] == "under_way";
        let differs = |name: &&&str| self.body[**name] != earlier.body[**name] && !(was_under_way && **name != "id");
        match ["id", "amount", "reference", "status"].iter().find(differs) {
            None => Ok(()),
            Some(name) => broken(format!("{}, but {}: {name} is another one", earlier.says(), self.says())),
        }
    }
}

impl Check<'_> {
    pub(super) async fn get(&self, path: &str) -> Result<ObservedAnswer, Defect> {
        self.request(self.calls, Method::GET, path, None).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<ObservedAnswer, Defect> {
        self.request(self.calls, Method::PUT, path, Some(body)).await
    }

    /// Sends a request. One of a kind that had no answer before breaks no rule by having none.
    async fn request(
        &self,
        calls: &BridgeCalls,
        method: Method,
        path: &str,
        of: Option<&Value>,
    ) -> Result<ObservedAnswer, Defect> {
        let parts: Vec<_> = path.split('/').collect();
        let kind = format!("{method} /{}/…{}", parts[1], parts.get(3).map(|end| format!("/{end}")).unwrap_or_default());
        let seen = request(calls, method, path, of).await;
        if seen.is_err() && !self.unanswered.borrow_mut().insert(kind.clone()) {
            return not_tested(format!("no answer to {kind}"));
        }
        seen
    }

    /// The same, as somebody who has not the secret.
    pub(super) async fn unauthorized(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(), Defect> {
        let stranger = self.calls.with_secret("a-secret-that-nobody-has");
        let seen = self.request(&stranger, method, path, body).await?;
        if seen.status() == 401 { Ok(()) } else { seen.broken("401, as the secret is another one") }
    }

    /// Orders, and hears no answer.
    pub(super) async fn put_and_cut(&self, path: &str, of: &Value) {
        let path = with_short_id(path.to_owned());
        let _ = self.calls.call(Method::PUT, &path, Some(body(of)), Duration::from_millis(1)).await;
    }
}

async fn request(
    calls: &BridgeCalls,
    method: Method,
    path: &str,
    of: Option<&Value>,
) -> Result<ObservedAnswer, Defect> {
    let path = &with_short_id(path.to_owned());
    let request = format!("{method} {path}");
    match calls.call(method, path, of.map(body), ANSWER_MAX).await {
        Ok(answer) => Ok(ObservedAnswer::of(request, answer)),
        Err(error) => broken(format!("{request}: {error}")),
    }
}

/// Rule 1.
pub(super) async fn capabilities(calls: &BridgeCalls) -> Result<Capabilities, Defect> {
    let seen = request(calls, Method::GET, "/capabilities", None).await?;
    if seen.status() != 200 {
        return seen.broken("200");
    }
    let read = seen.answer.read().and_then(Capabilities::checked);
    let capabilities = read.or_else(|defect| broken(format!("{}: {defect}", seen.says())))?;
    let kinds = ["card", "pix", "payout"];
    if !capabilities.serves.iter().any(|served| kinds.contains(&served.as_str())) {
        return broken("serves has none of card, pix and payout");
    }
    if !(1_000..=60_000).contains(&capabilities.answers_within_ms) {
        return broken("answers_within_ms is not between 1000 and 60000");
    }
    if capabilities.repeats == Repeats::Again && capabilities.serves.iter().any(|served| served == "pix") {
        return broken("repeats is again; a bridge that serves pix needs same or refused");
    }
    if !capabilities.test {
        return broken("test is not true; nothing is ordered where money moves");
    }
    Ok(capabilities)
}
