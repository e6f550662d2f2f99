//! Runner of requests that may carry an `Idempotency-Key`: the same request twice is carried out
//! once.
//!
//! A key is optional on every POST. It is stored for 24 hours, within one account and route. Only a
//! request that committed a Record has an answer to repeat: a replay renders it again from the
//! Record's facts. Redelivery of webhook events commits none: its last answers are remembered in
//! memory ([`RememberedAnswers`]).
//!
//! [`Key::run`] looks the key up in the published journal, takes the permit, and lets the handler
//! check and send its command. A body is parsed once, before that. Its values are checked after the
//! look-up, in each turn of the loop, because a replay comes before their errors (decisions, order
//! of checks): a check that came first would refuse the repetition of a request that was carried
//! out. The actor knows the keys that were used since the look-up
//! ([`KeyLookup`]); where one of them is this request's, the runner looks again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use actors::engine::{Engine, KeyLookup, OpeningKey, Outcome, Permit};
use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::Response;
use ledger::record::IDEMPOTENCY_KEPT_MS;
use ledger::{Fingerprint, GroupNumber, Idempotency, LedgerId, Record, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use store::{Position, Sequence};

use super::json::canonical;
use super::problem::{Code, Problem, Result, broken, failed};
use super::reply::ok;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const SEQUENCE: HeaderName = HeaderName::from_static("centavo-sequence");
/// Name of the partition beside it, where that is not 0.
const PARTITION: HeaderName = HeaderName::from_static("centavo-partition");
const KEY_LEN_MAX: usize = 255;

/// How often a request is tried again when another one with its key, or of what it changes, was
/// decided meanwhile. Of many changes at once, each such round makes one.
const LOOK_UPS_MAX: usize = 64;

/// Result of a request that may carry a key.
pub enum KeyedResult<T> {
    /// The request was carried out now. It wrote the Record, or none.
    Executed(T, Option<Position>),
    /// The same request was carried out before, and wrote the Record, or none.
    Replayed(T, Option<Position>),
}

impl<T> KeyedResult<T> {
    /// The same with another outcome.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> KeyedResult<U> {
        match self {
            Self::Executed(outcome, at) => KeyedResult::Executed(of(outcome), at),
            Self::Replayed(outcome, at) => KeyedResult::Replayed(of(outcome), at),
        }
    }

    /// What came of the request.
    pub fn outcome(&self) -> &T {
        match self {
            Self::Executed(outcome, _) | Self::Replayed(outcome, _) => outcome,
        }
    }

    /// The answer, which names the request's Record, and is marked where it was given before.
    pub fn answer(self, render: impl FnOnce(T) -> Result<Response>) -> Result<Response> {
        match self {
            Self::Executed(outcome, sequence) => Ok(naming(sequence, render(outcome)?)),
            Self::Replayed(outcome, sequence) => {
                let mut response = naming(sequence, render(outcome)?);
                response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
                Ok(response)
            }
        }
    }
}

/// The answer with the place of the Record that its request wrote; as it is when there is none.
pub fn naming(record: Option<Position>, mut response: Response) -> Response {
    if let Some(Position { partition, sequence: Sequence(sequence) }) = record {
        response.headers_mut().insert(SEQUENCE, HeaderValue::from(sequence));
        if partition.0 > 0 {
            response.headers_mut().insert(PARTITION, HeaderValue::from(partition.0));
        }
    }
    response
}

/// The header as it was sent, and the route of its request. It is checked when it is read, so that
/// problems which come first are answered first.
pub struct SentKey {
    first: Option<HeaderValue>,
    has_more: bool,
    method: Method,
    path: RoutePath,
}

/// The route that opens an account when it is posted to.
pub const OPENING_ROUTE: &str = "/ops/merchants";

/// The account of the keys of operators.
const OPERATIONS: &str = "operations";

/// The path of a request's route, with the names of its parameters.
enum RoutePath {
    Matched(Option<MatchedPath>),
    Named(&'static str),
}

impl<S: Sync> FromRequestParts<S> for SentKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // Other requests than a POST have no key.
        let mut keys = parts.headers.get_all(KEY).iter().filter(|_| parts.method == Method::POST);
        Ok(Self {
            first: keys.next().cloned(),
            has_more: keys.next().is_some(),
            method: parts.method.clone(),
            path: RoutePath::Matched(parts.extensions.get().cloned()),
        })
    }
}

/// Scope of a route's keys: one merchant, or all operators.
#[derive(Clone, Copy)]
pub enum KeyScope {
    /// A merchant's.
    Merchant(GroupNumber),
    /// The operators'.
    Operators,
}

impl SentKey {
    /// The key of a form of the console that does what the POST of this route does. A form and a
    /// request of the route with the same key and body are one request. A PATCH or a DELETE takes
    /// no key: there, `path` separates the keys of the form from those of all routes and forms.
    pub fn of_form(key: &str, path: &'static str) -> Self {
        let first = HeaderValue::from_bytes(key.as_bytes()).ok().filter(|key| !key.is_empty());
        Self { first, has_more: false, method: Method::POST, path: RoutePath::Named(path) }
    }

    /// No key.
    pub fn none() -> Self {
        Self::of_form("", "")
    }

    /// True when there was one, valid or not.
    pub fn is_given(&self) -> bool {
        self.first.is_some()
    }

    /// Reads the key of a request with this body. `id` is the id in the route's path, as the
    /// service writes it.
    pub fn read<'a>(&self, engine: &'a Engine, scope: KeyScope, id: Option<&str>, body: &[u8]) -> Result<Key<'a>> {
        self.read_without(engine, scope, id, body, None)
    }

    /// Reads the key. `secret` is the part of the body that must not be stored, not even as a
    /// digest: a card's security code.
    pub fn read_without<'a>(
        &self,
        engine: &'a Engine,
        scope: KeyScope,
        id: Option<&str>,
        body: &[u8],
        secret: Option<&RawValue>,
    ) -> Result<Key<'a>> {
        let Some(key) = &self.first else {
            return Ok(Key { engine, idempotency: None, body_bytes: body.len(), scope });
        };
        let fits =
            (1..=KEY_LEN_MAX).contains(&key.len()) && key.as_bytes().iter().all(|byte| (b' '..=b'~').contains(byte));
        if !fits || self.has_more {
            let problem = Problem::new(Code::ValidationFailed).message("Idempotency-Key inválida");
            let code = if key.len() > KEY_LEN_MAX { "wrong_length" } else { "invalid_key" };
            let message = "Idempotency-Key deve ser um cabeçalho de 1 a 255 caracteres ASCII visíveis";
            let detail = "Idempotency-Key must be one header of 1 to 255 visible ASCII characters.";
            return Err(problem.detail(detail).field("Idempotency-Key", code, message));
        }
        let account = match scope {
            KeyScope::Merchant(group) => group.0.to_string(),
            KeyScope::Operators => OPERATIONS.to_owned(),
        };
        let route = self.route(id);
        let idempotency = Idempotency {
            key: digest_of(engine, &account, &route, key.as_bytes()),
            body: body_digest(engine, body, secret),
        };
        Ok(Key { engine, idempotency: Some(idempotency), body_bytes: body.len(), scope })
    }

    /// True where a request of this scope with this key wrote a Record.
    pub fn is_used(&self, engine: &Engine, scope: KeyScope, owner: LedgerId) -> Result<bool> {
        match self.read(engine, scope, None, b"")?.idempotency {
            Some(idempotency) => Ok(engine.find_key(owner, idempotency.key)?.sequence.is_some()),
            None => Ok(false),
        }
    }

    /// Digests of the key of a request that opens an account; see [`opening_key`].
    pub fn opening(&self, engine: &Engine) -> Option<OpeningKey> {
        let key = self.first.as_ref()?;
        Some(opening_key(engine, key.as_bytes()))
    }

    /// Method and path of the request, with the id in its place: `POST /api/charges/019b…/cancel`.
    fn route(&self, id: Option<&str>) -> String {
        let path = match &self.path {
            RoutePath::Matched(path) => path.as_ref().map_or("", MatchedPath::as_str),
            RoutePath::Named(path) => path,
        };
        match (path.split_once('{'), id) {
            (Some((before, rest)), Some(id)) => {
                let after = rest.split_once('}').map_or("", |(_, after)| after);
                format!("{} {before}{id}{after}", self.method)
            }
            _ => format!("{} {path}", self.method),
        }
    }
}

/// Digests of the `Idempotency-Key` of a request that opens an account.
pub fn opening_key(engine: &Engine, key: &[u8]) -> OpeningKey {
    let recorded = digest_of(engine, OPERATIONS, &format!("POST {OPENING_ROUTE}"), key);
    OpeningKey { alone: engine.keyring().fingerprint("opening-key", &[key]), recorded }
}

/// Digest of a key within account and route, as a Record has it.
fn digest_of(engine: &Engine, account: &str, route: &str, key: &[u8]) -> Fingerprint {
    engine.keyring().fingerprint("idempotency-key", &[account.as_bytes(), route.as_bytes(), key])
}

/// The key of a request, if it has one, and what carrying the request out needs beside it.
pub struct Key<'a> {
    engine: &'a Engine,
    idempotency: Option<Idempotency>,
    body_bytes: usize,
    scope: KeyScope,
}

/// A permit, and the key to hand on with the command.
pub struct CommandPermit {
    /// The key, looked up; none for a request without one.
    pub key: Option<KeyLookup>,
    /// The place of the command in the journal.
    pub permit: Arc<Permit>,
}

impl From<Arc<Permit>> for CommandPermit {
    /// A request without a key.
    fn from(permit: Arc<Permit>) -> Self {
        Self { key: None, permit }
    }
}

enum LookedUp {
    Fresh(Option<KeyLookup>),
    Used(Position, Arc<Record>),
}

impl<'a> Key<'a> {
    /// A merchant's request without a key; `body_bytes` are the most bytes that its Record takes of
    /// it.
    pub fn none(engine: &'a Engine, group: GroupNumber, body_bytes: usize) -> Self {
        Self { engine, idempotency: None, body_bytes, scope: KeyScope::Merchant(group) }
    }

    /// Carries a request out once. `replay` makes the outcome of a request that was carried out
    /// before, from its Record. `execute` checks the request's meaning, sends its command and gives
    /// its outcome; `None` if another request with the same key was decided meanwhile, so that the
    /// key is looked up again.
    pub async fn run<T, F: Future<Output = Result<Option<T>>>>(
        &self,
        owner: LedgerId,
        replay: impl FnOnce(Arc<Record>) -> Result<T>,
        mut execute: impl FnMut(CommandPermit) -> F,
    ) -> Result<KeyedResult<T>> {
        self.run_after(owner, || Ok(()), replay, |(), admitted| execute(admitted)).await
    }

    /// As [`Key::run`], for a command that always changes something: `of` reads in its Record what
    /// happened, now and in a replay.
    pub async fn run_recorded<T, F: Future<Output = Result<Outcome>>>(
        &self,
        owner: LedgerId,
        of: impl Fn(&Record) -> Option<T>,
        mut execute: impl FnMut(CommandPermit) -> F,
    ) -> Result<KeyedResult<T>> {
        self.run_recorded_after(owner, || Ok(()), of, |(), admitted| execute(admitted)).await
    }

    /// As [`Key::run_recorded`], with a read of the books before each look-up of the key: see
    /// [`Key::run_after`].
    pub async fn run_recorded_after<B, T, F: Future<Output = Result<Outcome>>>(
        &self,
        owner: LedgerId,
        before: impl FnMut() -> Result<B>,
        of: impl Fn(&Record) -> Option<T>,
        mut execute: impl FnMut(B, CommandPermit) -> F,
    ) -> Result<KeyedResult<T>> {
        let replay = |record: Arc<Record>| of(&record).ok_or_else(broken);
        let execute = |seen, admitted| {
            let (outcome, of) = (execute(seen, admitted), &of);
            async move { recorded(outcome.await?.typed(of)?) }
        };
        self.run_after(owner, before, replay, execute).await
    }

    /// As [`Key::run_recorded`], for a command whose outcome says what happened; `of` reads it in
    /// the Record for a replay.
    pub async fn run_typed<T, F: Future<Output = Result<Outcome<T>>>>(
        &self,
        owner: LedgerId,
        of: impl Fn(&Record) -> Option<T>,
        mut execute: impl FnMut(CommandPermit) -> F,
    ) -> Result<KeyedResult<T>> {
        let replay = |record: Arc<Record>| of(&record).ok_or_else(broken);
        let execute = |admitted| {
            let outcome = execute(admitted);
            async { recorded(outcome.await?) }
        };
        self.run(owner, replay, execute).await
    }

    /// As [`Key::run`], with a read of the books before each look-up of the key. If the read sees
    /// the effect of a request with the same key, the look-up finds that key too.
    pub async fn run_after<B, T, F: Future<Output = Result<Option<T>>>>(
        &self,
        owner: LedgerId,
        mut before: impl FnMut() -> Result<B>,
        replay: impl FnOnce(Arc<Record>) -> Result<T>,
        mut execute: impl FnMut(B, CommandPermit) -> F,
    ) -> Result<KeyedResult<T>> {
        for _ in 0..LOOK_UPS_MAX {
            let seen = before()?;
            let key = match self.look_up(owner)? {
                LookedUp::Used(sequence, record) => {
                    return Ok(KeyedResult::Replayed(replay(record)?, Some(sequence)));
                }
                LookedUp::Fresh(key) => key,
            };
            let permit = self.permit().await?;
            let admitted = CommandPermit { key, permit: Arc::clone(&permit) };
            if let Some(outcome) = execute(seen, admitted).await? {
                return Ok(KeyedResult::Executed(outcome, permit.requested_record()));
            }
        }
        let contended = || Problem::new(Code::StateConflict).detail("It is being changed by others.").retry_after(1);
        Err(if self.idempotency.is_some() { in_progress() } else { contended() })
    }

    /// Carries out once a request that commits no Record: while its answer is remembered, the same
    /// key gets it again.
    pub async fn once<T: Serialize>(
        &self,
        answers: &RememberedAnswers,
        execute: impl Future<Output = Result<T>>,
    ) -> Result<Response> {
        let Some(idempotency) = self.idempotency else { return Ok(ok(execute.await?)) };
        let execute = async { serde_json::to_value(execute.await?).map_err(failed) };
        answers.once(idempotency, self.engine.now(), execute).await?.answer(|answer| Ok(ok(answer)))
    }

    /// A permit for the command: in turn, or at once for an operator.
    async fn permit(&self) -> Result<Arc<Permit>> {
        Ok(match self.scope {
            KeyScope::Merchant(group) => self.engine.permit_in_turn(Some(group), self.body_bytes).await,
            KeyScope::Operators => self.engine.permit(self.body_bytes),
        }?)
    }

    /// Looks the key up in the published journal.
    fn look_up(&self, owner: LedgerId) -> Result<LookedUp> {
        let Some(idempotency) = self.idempotency else { return Ok(LookedUp::Fresh(None)) };
        let found = self.engine.find_key(owner, idempotency.key)?;
        let fresh = LookedUp::Fresh(Some(KeyLookup { idempotency, looked_up_through: found.looked_up_through }));
        let Some(sequence) = found.sequence else { return Ok(fresh) };
        let at = self.engine.position_of(owner, sequence);
        let record = self.engine.record(at)?;
        if record.effective_at.plus_ms(IDEMPOTENCY_KEPT_MS) <= self.engine.now() {
            return Ok(fresh);
        }
        match record.idempotency {
            Some(stored) if stored.body == idempotency.body => Ok(LookedUp::Used(at, Arc::new(record))),
            _ => Err(reused()),
        }
    }
}

/// The key came before with another body.
fn reused() -> Problem {
    let detail = "The key came before with another body. Bodies are compared by their JSON values: send it again with \
        the same values.";
    Problem::new(Code::IdempotencyKeyReused).detail(detail)
}

/// Requests with a key that commit no Record, and their answers: the last 1,024 of this process, in
/// memory. So a key of these holds for 24 hours at most, and no longer than the process.
#[derive(Default)]
pub struct RememberedAnswers(Mutex<VecDeque<RememberedAnswer>>);

struct RememberedAnswer {
    idempotency: Idempotency,
    at: Timestamp,
    /// The answer; none while the request is carried out.
    answer: Option<Value>,
}

/// Most answers that are remembered.
const REMEMBERED_MAX: usize = 1_024;

impl RememberedAnswers {
    /// The answer to the request of a key, when it was given. A request whose key is new begins.
    fn begin(&self, idempotency: Idempotency, now: Timestamp) -> Result<Option<Value>> {
        let mut remembered = self.0.lock();
        remembered.retain(|one| one.at.plus_ms(IDEMPOTENCY_KEPT_MS) > now);
        match remembered.iter().find(|one| one.idempotency.key == idempotency.key) {
            Some(one) if one.idempotency.body != idempotency.body => Err(reused()),
            Some(RememberedAnswer { answer: Some(answer), .. }) => Ok(Some(answer.clone())),
            Some(_) => Err(in_progress()),
            None => {
                if remembered.len() >= REMEMBERED_MAX {
                    remembered.pop_front();
                }
                remembered.push_back(RememberedAnswer { idempotency, at: now, answer: None });
                Ok(None)
            }
        }
    }

    /// Keeps an answer, or forgets a request that had none.
    fn end(&self, idempotency: Idempotency, answer: Option<Value>) {
        let mut remembered = self.0.lock();
        match answer {
            None => remembered.retain(|one| one.idempotency.key != idempotency.key),
            Some(answer) => {
                let one = remembered.iter_mut().find(|one| one.idempotency.key == idempotency.key);
                one.into_iter().for_each(|one| one.answer = Some(answer.clone()));
            }
        }
    }

    async fn once(
        &self,
        idempotency: Idempotency,
        now: Timestamp,
        execute: impl Future<Output = Result<Value>>,
    ) -> Result<KeyedResult<Value>> {
        if let Some(answer) = self.begin(idempotency, now)? {
            return Ok(KeyedResult::Replayed(answer, None));
        }
        let mut under_way = UnderWay { answers: self, idempotency, answer: None };
        let answer = execute.await?;
        under_way.answer = Some(answer.clone());
        Ok(KeyedResult::Executed(answer, None))
    }
}

/// A request that is carried out. However it ends, its key is not under way any more.
struct UnderWay<'a> {
    answers: &'a RememberedAnswers,
    idempotency: Idempotency,
    answer: Option<Value>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.answers.end(self.idempotency, self.answer.take());
    }
}

/// The problem of a request whose key is in use by another one that is under way.
pub fn in_progress() -> Problem {
    Problem::new(Code::IdempotencyKeyInProgress).retry_after(1)
}

/// Record of a command; `None` if its key was used a moment ago. For commands that always change
/// something.
pub fn recorded<T>(outcome: Outcome<T>) -> Result<Option<T>> {
    match outcome {
        Outcome::Recorded(happened) => Ok(Some(happened)),
        Outcome::KeyTaken => Ok(None),
        Outcome::Refused(rejection) => Err(rejection.into()),
        Outcome::Unchanged => Err(broken()),
    }
}

/// Nothing but that a command was carried out; `None` if its key was used a moment ago. For
/// decisions that may stand already.
pub fn decided<T>(outcome: Outcome<T>) -> Result<Option<()>> {
    match outcome {
        Outcome::Recorded(_) | Outcome::Unchanged => Ok(Some(())),
        Outcome::KeyTaken => Ok(None),
        Outcome::Refused(rejection) => Err(rejection.into()),
    }
}

/// A keyed digest of the values of a request's body, without `secret`, which must not be stored,
/// not even as a digest: the same for a charge alone and in a batch.
pub fn body_digest(engine: &Engine, body: &[u8], secret: Option<&RawValue>) -> Fingerprint {
    engine.keyring().fingerprint("request-body", &[&canonical(body, secret)])
}

#[cfg(test)]
mod tests {
    use axum::extract::Path;
    use axum::routing::post;
    use axum::{Router, body::Body};
    use ledger::id::Fingerprint;
    use tower::ServiceExt;

    use futures_util::FutureExt;

    use super::*;

    /// The scope is hashed with the key: another text would let stored keys be used again.
    #[tokio::test]
    async fn the_scope_is_the_route_with_its_id() {
        let named = |id: Path<String>, sent: SentKey| async move { sent.route(Some(&id.to_uppercase())) };
        let app = Router::new()
            .route("/api/card", post(|sent: SentKey| async move { sent.route(None) }))
            .merge(Router::new().route("/api/charges/{txid}/cancel", post(named)));
        for (path, route) in
            [("/api/card", "POST /api/card"), ("/api/charges/ab/cancel", "POST /api/charges/AB/cancel")]
        {
            let request = axum::http::Request::post(path).body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
            assert_eq!(body, route);
        }
    }

    #[test]
    fn a_request_that_panicked_or_was_refused_leaves_its_key_free() {
        let answers = RememberedAnswers::default();
        let idempotency = Idempotency { key: Fingerprint([1; 16]), body: Fingerprint([2; 16]) };
        let once = |execute: fn() -> Result<Value>| {
            let answered = answers.once(idempotency, Timestamp(1), async move { execute() });
            answered.now_or_never().unwrap()
        };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| once(|| panic!("seeded"))));
        assert!(panicked.is_err());
        assert_eq!(once(|| Err(broken())).err().map(|problem| problem.code()), Some(Code::Internal));
        assert!(matches!(once(|| Ok(Value::from(7))), Ok(KeyedResult::Executed(answer, None)) if answer == 7));
        assert!(matches!(once(|| panic!("it was answered")), Ok(KeyedResult::Replayed(answer, None)) if answer == 7));
    }
}
