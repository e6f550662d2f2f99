//! Door of a listener: each request goes to the process that owns its partition.
//!
//! A request whose partition is here is answered here, and its answer leaves only while the
//! partition is still held. A request for another node's partition is forwarded, and retried for
//! [`PATIENCE`] while no node owns the partition: a process that does not have it answers 421 and
//! has done nothing. A request from another process is never forwarded again, except one of the
//! console: it begins at the owner of the house, who has the sessions, and goes on from there.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use ledger::id::IdKey;
use store::Partition;
use tokio::time::{Instant, sleep};

use super::forward::{ForwardOutcome, Hop, PeerClient, Sendable, return_session, returned_session};
use super::refusals::{Refusals, Unmet};
use super::request_partition::{Destination, target};
use super::{Hold, Owner, Owners};
use web::body::{CHARGE_BYTES_MAX, FILE_BYTES_MAX, JSON_BYTES_MAX, WholeBody};
use web::middleware::unanswered;
use web::openapi::Listener;
use web::problem::NeededPartition;
use web::session::{Session, Sessions, secret_of};
use web::{Code, Problem};

/// How long a request is tried that was not carried out.
pub const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two tries.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// How long an owner may still answer after the partition has another one.
const LAST_ANSWERS: Duration = Duration::from_secs(3);
/// How often it is looked at whether it has.
const OWNER_SEEN_EVERY: Duration = Duration::from_millis(250);
/// The routes with large bodies, charges and files, and the bytes of a body at most: that of the
/// console has fields of a form beside the file.
const LARGE: [(&str, usize); 7] = [
    ("/api/card", CHARGE_BYTES_MAX),
    ("/api/pix", CHARGE_BYTES_MAX),
    ("/api/charges/batch", CHARGE_BYTES_MAX),
    ("/api/charges/quote", CHARGE_BYTES_MAX),
    ("/ops/reconciliations", FILE_BYTES_MAX),
    ("/console/exports", FILE_BYTES_MAX + JSON_BYTES_MAX),
    ("/console/reconciliations", FILE_BYTES_MAX + JSON_BYTES_MAX),
];

/// Door of a listener.
#[derive(Clone)]
pub struct Door(Arc<Inside>);

struct Inside {
    listener: Listener,
    parts: DoorParts,
    refusals: Refusals,
}

/// What the doors of both listeners share.
#[derive(Clone)]
pub struct DoorParts {
    /// Who owns which partition.
    pub owners: Arc<dyn Owners>,
    /// Sends requests to the others.
    pub client: Arc<PeerClient>,
    /// Sessions that began here.
    pub sessions: Arc<Sessions>,
    /// Reads ids.
    pub ids: IdKey,
    /// Whether keys are those of a sandbox.
    pub sandbox: bool,
}

impl Door {
    /// The door of a listener.
    pub fn new(listener: Listener, parts: DoorParts) -> Self {
        Self(Arc::new(Inside { listener, parts, refusals: Refusals::default() }))
    }

    /// The routes behind this door.
    pub fn before(self, router: Router) -> Router {
        router.layer(from_fn_with_state(self, Self::answer))
    }

    async fn answer(State(Self(inside)): State<Self>, request: Request<Body>, next: Next) -> Response {
        inside.answer(request, next).await
    }
}

/// A request that may be answered here or elsewhere.
struct RoutedRequest {
    parts: Parts,
    arriving: Body,
    /// The whole body, once another process was tried.
    whole: Option<Arc<WholeBody>>,
}

impl RoutedRequest {
    /// Takes the body in, so that it can be sent, also more than once.
    async fn gather(&mut self, listener: Listener, target: Destination) -> Result<(), Problem> {
        if self.whole.is_some() {
            return Ok(());
        }
        let route = self.parts.extensions.get::<MatchedPath>();
        let large = LARGE.iter().find(|(path, _)| route.is_some_and(|route| route.as_str() == *path));
        let bytes_max = large.map_or(JSON_BYTES_MAX, |(_, bytes_max)| *bytes_max);
        let sender = match target {
            Destination::Group(group) if listener == Listener::Merchants => {
                Some((group, self.parts.extensions.get().copied()))
            }
            _ => None,
        };
        let arriving = std::mem::take(&mut self.arriving);
        self.whole = Some(Arc::new(WholeBody::of(arriving, bytes_max, sender).await?));
        Ok(())
    }

    /// The same request once more; its body was taken in.
    fn again(&self) -> Self {
        Self { parts: self.parts.clone(), arriving: Body::empty(), whole: self.whole.clone() }
    }

    fn into_request(self) -> Request<Body> {
        let Self { parts, arriving, whole } = self;
        let body = whole.map_or(arriving, |whole| Body::from(whole.bytes.clone()));
        Request::from_parts(parts, body)
    }
}

/// Where a request was answered, or is to be.
enum AnswerPlace {
    /// Here, where its partition is held.
    Here(HeldHere),
    /// By another process; or by none, after a while.
    Answered(Response),
}

/// A partition that is held here.
struct HeldHere {
    partition: Partition,
    hold: Box<dyn Hold>,
}

impl Inside {
    async fn answer(&self, request: Request<Body>, inner: Next) -> Response {
        let (mut parts, arriving) = request.into_parts();
        let hop = parts.extensions.remove::<Arc<Hop>>();
        let target = target(self.listener, &mut parts, &self.parts.ids, self.parts.sandbox).await;
        let is_of_console = is_of_console(&parts);
        let lent = hop.as_ref().and_then(|hop| hop.session.clone());
        // Another process has found it: two need not find the same one for an account that is
        // opened, and only a body may name it. The console begins at the house.
        let hop_partition = hop.as_ref().filter(|_| !is_of_console || lent.is_some()).map(|hop| hop.partition);
        let partition =
            target.partition(&*self.parts.owners, &parts.headers).map(|found| hop_partition.unwrap_or(found));
        let mut asked = RoutedRequest { parts, arriving, whole: None };
        let Some(partition) = partition else { return inner.run(asked.into_request()).await };
        let secret = secret_of(&asked.parts.headers).filter(|_| is_of_console);
        let begins_at = if is_of_console && lent.is_none() { self.parts.owners.house() } else { partition };
        let hold = match self.reach(begins_at, &mut asked, target, hop.is_some(), None).await {
            AnswerPlace::Here(hold) => hold,
            AnswerPlace::Answered(answer) => return answer,
        };
        if target == Destination::House && begins_at == self.parts.owners.house() && partition == begins_at {
            return self.answer_of_all(inner, asked, hold, secret).await;
        }
        if let (Some(lent), Some(secret)) = (lent, &secret) {
            let adopted = self.parts.sessions.adopt(secret, lent, std::time::Instant::now());
            let mut answer = self.held(inner, asked, hold).await;
            if let Some(session) = adopted.present() {
                return_session(answer.headers_mut(), &session);
            }
            return answer;
        }
        let session = secret.as_ref().filter(|_| begins_at != partition);
        let session = session.and_then(|secret| self.parts.sessions.find(secret, std::time::Instant::now()));
        let Some(session) = session else { return self.held(inner, asked, hold).await };
        match self.reach(partition, &mut asked, target, false, Some(&session)).await {
            AnswerPlace::Here(hold) => self.held(inner, asked, hold).await,
            AnswerPlace::Answered(mut answer) => {
                let returned = returned_session(answer.headers_mut());
                if let (Some(secret), Some(returned)) = (&secret, returned) {
                    self.parts.sessions.take_back(secret, &session, returned);
                }
                answer
            }
        }
    }

    /// Answers as the owner of the house. What changes something of a merchant whom only the body
    /// names, and who is another process's, is sent there: the routes say so before they do
    /// anything.
    async fn answer_of_all(
        &self,
        inner: Next,
        mut asked: RoutedRequest,
        hold: HeldHere,
        secret: Option<String>,
    ) -> Response {
        let until = Instant::now() + PATIENCE;
        let all = loop {
            if let Some(all) = self.parts.owners.read_all().await {
                break all;
            }
            if Instant::now() + PAUSE >= until {
                let missing = self.parts.owners.missing();
                return self.refused(if missing.is_empty() { Unmet::Unread } else { Unmet::Missing(missing) });
            }
            sleep(PAUSE).await;
        };
        if asked.parts.method.is_safe() {
            let answer = self.held(inner, asked, hold).await;
            // A partition may have gone meanwhile, and what is in it would be missing.
            return match needed_partition(&answer) {
                None if all.stands() => answer,
                None => self.refused(Unmet::OutOfSight),
                Some(needed) => self.refused(Unmet::Moving(needed)),
            };
        }
        if let Err(refused) = asked.gather(self.listener, Destination::House).await {
            return refused.into_response();
        }
        let (mut again, routes) = (asked.again(), inner.clone());
        let answer = self.held(inner, asked, hold).await;
        let Some(needed) = needed_partition(&answer) else { return answer };
        let session = secret.as_ref().and_then(|secret| self.parts.sessions.find(secret, std::time::Instant::now()));
        match self.reach(needed, &mut again, Destination::House, false, session.as_ref()).await {
            // It came here meanwhile, and nothing was done yet. One more time is enough: who asks
            // again asks as long as it likes.
            AnswerPlace::Here(hold) => {
                let answer = self.held(routes, again, hold).await;
                match needed_partition(&answer) {
                    None => answer,
                    Some(needed) => self.refused(Unmet::Moving(needed)),
                }
            }
            AnswerPlace::Answered(mut answer) => {
                let returned = returned_session(answer.headers_mut());
                if let (Some(secret), Some(lent), Some(returned)) = (&secret, &session, returned) {
                    self.parts.sessions.take_back(secret, lent, returned);
                }
                answer
            }
        }
    }

    /// Finds the owner of a partition, and has a request answered where that is another process.
    /// `only_here` where one was asked already: another try is its matter.
    async fn reach(
        &self,
        partition: Partition,
        asked: &mut RoutedRequest,
        target: Destination,
        only_here: bool,
        session: Option<&Session>,
    ) -> AnswerPlace {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let owner = self.parts.owners.owner(partition);
            if owner == Owner::Here
                && let Some(hold) = self.parts.owners.hold(partition)
            {
                return AnswerPlace::Here(HeldHere { partition, hold });
            }
            if only_here {
                return AnswerPlace::Answered(Problem::new(Code::Misdirected).into_response());
            }
            if let Owner::At(address) = &owner {
                if let Err(refused) = asked.gather(self.listener, target).await {
                    return AnswerPlace::Answered(refused.into_response());
                }
                let body = asked.whole.as_ref().map(|whole| whole.bytes.clone()).unwrap_or_default();
                let hop =
                    Hop { session: session.cloned(), ..Hop::of(self.listener, partition, &asked.parts.extensions) };
                let request = Sendable { parts: &asked.parts, body, hop };
                match self.parts.client.send(address, request, deadline, self.moved_away(partition, &owner)).await {
                    ForwardOutcome::Answered(answer) if answer.status() != StatusCode::MISDIRECTED_REQUEST => {
                        return AnswerPlace::Answered(answer);
                    }
                    ForwardOutcome::Lost => return AnswerPlace::Answered(unanswered(&asked.parts.method)),
                    ForwardOutcome::Answered(_) | ForwardOutcome::Not => {}
                }
            }
            if Instant::now() + PAUSE >= deadline {
                return AnswerPlace::Answered(self.refused(Unmet::WithoutOwner(partition)));
            }
            sleep(PAUSE).await;
        }
    }

    /// The answer of the routes; none leaves when the partition is not held any more.
    async fn held(&self, inner: Next, asked: RoutedRequest, held: HeldHere) -> Response {
        let method = asked.parts.method.clone();
        let answer = inner.run(asked.into_request()).await;
        if held.hold.stands() {
            return answer;
        }
        self.refusals.log(&Unmet::Lapsed(held.partition));
        unanswered(&method)
    }

    /// The answer to a request that was not carried out, here or elsewhere.
    fn refused(&self, refusal: Unmet) -> Response {
        self.refusals.log(&refusal);
        Problem::new(Code::StoreUnavailable).retry_after(1).into_response()
    }

    /// Ends when a partition has had another owner for so long that this one answers no more.
    async fn moved_away(&self, partition: Partition, owner: &Owner) {
        loop {
            sleep(OWNER_SEEN_EVERY).await;
            if self.parts.owners.owner(partition) != *owner {
                sleep(LAST_ANSWERS).await;
                if self.parts.owners.owner(partition) != *owner {
                    return;
                }
            }
        }
    }
}

/// The partition that the routes found that a request needs, and that is not here.
fn needed_partition(answer: &Response) -> Option<Partition> {
    answer.extensions().get().map(|NeededPartition(needed)| *needed)
}

fn is_of_console(parts: &Parts) -> bool {
    let path = parts.uri.path();
    path == "/console" || path.starts_with("/console/")
}
