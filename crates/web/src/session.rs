//! Sessions of operators who signed in with a browser: in memory, known by the digest of a secret
//! that only the browser has.
//!
//! A session ends after 30 minutes without a request, 12 hours after sign-in, at sign-out, when the
//! process ends, and when its operator's token is no longer configured (the caller checks that).
//! Tokens that were wrong are counted by address: after ten within a minute, all tokens from it are
//! refused before they are looked at, right ones too, until the minute is over.
//!
//! A session keeps what its last form did until the page says it, once.
//!
//! Another process answers requests of a session too: it [adopts](Sessions::adopt) what it was
//! [lent](Sessions::find) for the time of one request, and what changed is
//! [taken back](Sessions::take_back).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use derived::seal::stocked_random_bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::credential::OpenedBy;
use super::language::Language;
use super::problem::Problem;
use super::server::Peer;

/// The cookie of a session. Its prefix makes browsers refuse it from any other host, path, or
/// without `Secure`.
pub const COOKIE_NAME: &str = "__Host-centavo";

/// The secret of a session, as a browser sends it.
pub fn secret_of(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, secret)| secret.to_owned())
}

/// A session ends when it was not used for this long.
pub const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// A session ends this long after sign-in, used or not.
pub const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// Largest number of sessions; one more ends the least recently used.
const SESSIONS_MAX: usize = 1_000;
/// Wrong tokens from one address within [`WRONG_WITHIN`], after which no token is looked at.
const WRONG_MAX: u32 = 10;
const WRONG_WITHIN: Duration = Duration::from_secs(60);
/// Addresses whose wrong tokens are counted; the oldest are forgotten first.
const ADDRESSES_MAX: usize = 10_000;

/// What a form did, as the next page says it, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FormOutcome {
    /// A decision was taken.
    Decided,
    /// The first of two operators approved.
    ApprovedFirst,
    /// A merchant was changed.
    MerchantChanged,
    /// An entry of the house ledger was asked for.
    EntryAsked,
    /// The same; it moves less than the difference that its form names, and explains nothing.
    EntryAskedAlone,
    /// The closing of a month was asked for.
    CloseAsked,
    /// A month was closed.
    MonthClosed,
    /// The address of an endpoint was set.
    AddressSet,
    /// A webhook event is sent again.
    SentAgain,
    /// The webhook events that were given up are sent again.
    AllSentAgain,
    /// The sandbox clock was moved.
    ClockMoved,
    /// An export was asked for.
    ExportAsked,
    /// The company's chart of accounts was stored.
    ChartStored,
    /// A file of an institution was compared.
    FileCompared,
    /// A difference of a file was explained.
    DifferenceExplained,
    /// The result of a file was dismissed.
    ResultDismissed,
    /// The PIX charge of this txid was paid.
    PixPaid(String),
    /// A refund was started.
    RefundStarted,
    /// A note was written.
    NoteWritten,
    /// A stored card was deleted.
    CardDeleted,
    /// An erasure of personal data was asked for.
    ErasureAsked,
    /// A request for an erasure was taken back.
    ErasureWithdrawn,
    /// Personal data was erased.
    DataErased,
}

/// One session, as a request finds it, and as another process is lent it for one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Who signed in, and with which token.
    pub opened_by: OpenedBy,
    /// The token that each form of the session carries.
    pub form_token: String,
    /// The language that the operator chose; none while the browser's preference counts.
    pub language: Option<Language>,
    /// What the last form did, and the path of the page that says it.
    done: Option<(String, FormOutcome)>,
}

/// A session in this process.
struct OpenSession {
    session: Session,
    began: Instant,
    used: Instant,
    /// Requests for which it was adopted; `None` if it began here.
    adopted_for: Option<u32>,
}

/// Session of another process, held while this lives.
pub struct AdoptedSession {
    sessions: Arc<Sessions>,
    key: [u8; 32],
}

/// The sessions, and the wrong tokens of the last minute.
#[derive(Default)]
pub struct Sessions {
    open: Mutex<HashMap<[u8; 32], OpenSession>>,
    wrong: Mutex<HashMap<Peer, (Instant, u32)>>,
}

impl Sessions {
    /// Begins a session. Gives the secret that the browser keeps: 256 random bits.
    pub fn begin(&self, opened_by: OpenedBy, language: Option<Language>, now: Instant) -> Result<String, Problem> {
        let (secret, form_token) = (random_text()?, random_text()?);
        let session = Session { opened_by, form_token, language, done: None };
        let session = OpenSession { session, began: now, used: now, adopted_for: None };
        let mut open = self.open.lock();
        open.retain(|_, session| session.lasts(now));
        if open.len() >= SESSIONS_MAX
            && let Some(unused) = open.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| *key)
        {
            open.remove(&unused);
        }
        open.insert(digest(&secret), session);
        Ok(secret)
    }

    /// The session of a secret, which counts as used now; `None` if it has ended.
    pub fn find(&self, secret: &str, now: Instant) -> Option<Session> {
        let mut open = self.open.lock();
        let key = digest(secret);
        let session = open.get_mut(&key)?;
        if !session.lasts(now) {
            open.remove(&key);
            return None;
        }
        session.used = now;
        Some(session.session.clone())
    }

    /// Who opened the session of a secret, while it lasts. It does not count as used.
    pub fn look(&self, secret: &str, now: Instant) -> Option<OpenedBy> {
        let open = self.open.lock();
        open.get(&digest(secret)).filter(|open| open.lasts(now)).map(|open| open.session.opened_by.clone())
    }

    /// Keeps the language that the operator chose.
    pub fn choose(&self, secret: &str, language: Language) {
        self.change(secret, |session| session.language = Some(language));
    }

    /// Keeps what a form did until the page of this path says it.
    pub fn keep_done(&self, secret: &str, path: &str, done: FormOutcome) {
        self.change(secret, |session| session.done = Some((path.to_owned(), done)));
    }

    /// What a form did that the page of this path says; `None` if it was said before.
    pub fn take_done(&self, secret: &str, path: &str) -> Option<FormOutcome> {
        let mut open = self.open.lock();
        let done = &mut open.get_mut(&digest(secret))?.session.done;
        done.take_if(|(of, _)| of == path).map(|(_, done)| done)
    }

    /// Keeps what another process changed in the session that it was lent.
    pub fn take_back(&self, secret: &str, lent: &Session, returned: Session) {
        self.change(secret, |session| {
            if returned.language != lent.language {
                session.language = returned.language;
            }
            // A request beside it may have done something meanwhile.
            if returned.done != lent.done && (returned.done.is_some() || session.done == lent.done) {
                session.done = returned.done;
            }
        });
    }

    fn change(&self, secret: &str, change: impl FnOnce(&mut Session)) {
        if let Some(open) = self.open.lock().get_mut(&digest(secret)) {
            change(&mut open.session);
        }
    }

    /// Keeps a session of another process until what this returns is dropped. A session that began
    /// here stays as it is.
    pub fn adopt(self: &Arc<Self>, secret: &str, lent: Session, now: Instant) -> AdoptedSession {
        let key = digest(secret);
        let adopted = OpenSession { session: lent, began: now, used: now, adopted_for: Some(0) };
        let mut open = self.open.lock();
        let session = open.entry(key).or_insert(adopted);
        session.adopted_for = session.adopted_for.map(|requests| requests + 1);
        AdoptedSession { sessions: Arc::clone(self), key }
    }

    /// Ends a session.
    pub fn end(&self, secret: &str) {
        self.open.lock().remove(&digest(secret));
    }

    /// Lets a token of an address be looked at, and counts it as wrong until it was
    /// [right](Self::was_right). After too many wrong ones: the seconds until the next one is
    /// looked at.
    pub fn try_token(&self, peer: Option<Peer>, now: Instant) -> Result<(), u32> {
        let Some(peer) = peer else { return Ok(()) };
        let mut wrong = self.wrong.lock();
        if wrong.len() >= ADDRESSES_MAX && !wrong.contains_key(&peer) {
            wrong.retain(|_, (since, _)| now.duration_since(*since) < WRONG_WITHIN);
            if wrong.len() >= ADDRESSES_MAX
                && let Some(oldest) = wrong.iter().min_by_key(|(_, (since, _))| *since).map(|(peer, _)| *peer)
            {
                wrong.remove(&oldest);
            }
        }
        let (since, count) = wrong.entry(peer).or_insert((now, 0));
        if now.duration_since(*since) >= WRONG_WITHIN {
            (*since, *count) = (now, 0);
        }
        if *count >= WRONG_MAX {
            let wait = WRONG_WITHIN.saturating_sub(now.duration_since(*since));
            return Err(u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX).max(1));
        }
        *count += 1;
        Ok(())
    }

    /// Takes back that the last token of an address was wrong.
    pub fn was_right(&self, peer: Option<Peer>) {
        let mut wrong = self.wrong.lock();
        if let Some((_, count)) = peer.and_then(|peer| wrong.get_mut(&peer)) {
            *count = count.saturating_sub(1);
        }
    }
}

impl AdoptedSession {
    /// The session as it is now; `None` if it was ended.
    pub fn present(&self) -> Option<Session> {
        self.sessions.open.lock().get(&self.key).map(|open| open.session.clone())
    }
}

impl Drop for AdoptedSession {
    fn drop(&mut self) {
        let mut open = self.sessions.open.lock();
        let Some(session) = open.get_mut(&self.key) else { return };
        session.adopted_for = session.adopted_for.map(|requests| requests.saturating_sub(1));
        if session.adopted_for == Some(0) {
            open.remove(&self.key);
        }
    }
}

impl OpenSession {
    fn lasts(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE_MAX && now.duration_since(self.began) < AGE_MAX
    }
}

fn random_text() -> Result<String, Problem> {
    Ok(URL_SAFE_NO_PAD.encode(stocked_random_bytes::<32>()?))
}

/// The digest by which a session is known.
pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn ana() -> OpenedBy {
        OpenedBy { name: "ana".to_owned(), token_digest: [7; 32] }
    }

    #[test]
    fn a_session_ends_when_it_is_idle_or_old() {
        let (sessions, begun) = (Sessions::default(), Instant::now());
        let idle = sessions.begin(ana(), None, begun).unwrap();
        let last = IDLE_MAX - Duration::from_secs(1);
        assert!(sessions.find(&idle, begun + last).is_some());
        assert!(sessions.find(&idle, begun + last + last).is_some(), "each use counts");
        let ends = begun + last + last + IDLE_MAX;
        assert!(sessions.look(&idle, ends - Duration::from_secs(1)).is_some());
        assert!(sessions.look(&idle, ends).is_none(), "a look is no use of it");
        assert!(sessions.find(&idle, ends).is_none());
        assert!(sessions.find(&idle, begun).is_none(), "it does not come back");

        let old = sessions.begin(ana(), None, begun).unwrap();
        let mut now = begun;
        while now + last < begun + AGE_MAX {
            now += last;
            assert!(sessions.find(&old, now).is_some());
        }
        assert!(sessions.find(&old, begun + AGE_MAX).is_none(), "used or not");
    }

    #[test]
    fn secrets_are_long_and_differ_and_open_only_their_session() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [one, other] = [(); 2].map(|()| sessions.begin(ana(), None, now).unwrap());
        assert_eq!((one.len(), one == other), (43, false), "256 bits in base64");
        sessions.choose(&one, Language::English);
        assert_eq!(sessions.find(&one, now).unwrap().language, Some(Language::English));
        assert_eq!(sessions.find(&other, now).unwrap().language, None);
        sessions.end(&one);
        assert!(sessions.find(&one, now).is_none() && sessions.find(&other, now).is_some());
        assert!(sessions.find("", now).is_none());
    }

    #[test]
    fn the_longest_unused_session_makes_room() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let secrets: Vec<_> = (0..=SESSIONS_MAX as u32)
            .map(|index| sessions.begin(ana(), None, now + Duration::from_millis(u64::from(index))).unwrap())
            .collect();
        let later = now + Duration::from_secs(60);
        let open: Vec<_> = secrets.iter().map(|secret| sessions.find(secret, later).is_some()).collect();
        assert!(!open[0] && open[1..].iter().all(|is_open| *is_open));
    }

    #[test]
    fn a_session_is_adopted_for_one_request_and_what_changed_is_taken_back() {
        let (home, guest, now) = (Sessions::default(), Arc::new(Sessions::default()), Instant::now());
        let secret = home.begin(ana(), None, now).unwrap();
        let lent = home.find(&secret, now).unwrap();
        let [one, other] = [(); 2].map(|()| guest.adopt(&secret, lent.clone(), now));
        assert_eq!(guest.find(&secret, now).unwrap().form_token, home.find(&secret, now).unwrap().form_token);
        guest.choose(&secret, Language::English);
        guest.keep_done(&secret, "/console/queue", FormOutcome::Decided);
        drop(other);
        home.take_back(&secret, &lent, one.present().unwrap());
        drop(one);
        assert!(guest.find(&secret, now).is_none(), "it was there for its requests");
        assert_eq!(home.find(&secret, now).unwrap().language, Some(Language::English));

        let lent = home.find(&secret, now).unwrap();
        home.keep_done(&secret, "/console", FormOutcome::ClockMoved);
        home.take_back(&secret, &lent, Session { done: None, ..lent.clone() });
        assert_eq!(home.take_done(&secret, "/console"), Some(FormOutcome::ClockMoved), "done meanwhile");
        home.end(&secret);
        home.take_back(&secret, &lent, lent.clone());
        assert!(home.find(&secret, now).is_none() && home.find(&secret, now).is_none());
    }

    #[test]
    fn a_session_that_began_here_outlasts_its_adoption() {
        let (sessions, now) = (Arc::new(Sessions::default()), Instant::now());
        let secret = sessions.begin(ana(), None, now).unwrap();
        let lent = sessions.find(&secret, now).unwrap();
        drop(sessions.adopt(&secret, lent, now));
        assert!(sessions.find(&secret, now).is_some());
    }

    fn peer(number: u32) -> Option<Peer> {
        Some(Peer::from(IpAddr::from(number.to_be_bytes())))
    }

    #[test]
    fn after_ten_wrong_tokens_no_token_is_looked_at_for_the_rest_of_the_minute() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(sessions.try_token(peer(1), now), Ok(()), "right ones are not counted");
            sessions.was_right(peer(1));
        }
        for _ in 0..WRONG_MAX {
            assert_eq!(sessions.try_token(peer(1), now), Ok(()));
        }
        assert_eq!(sessions.try_token(peer(1), now), Err(60));
        assert_eq!(sessions.try_token(peer(2), now), Ok(()), "another address");
        let later = now + Duration::from_millis(59_500);
        assert_eq!(sessions.try_token(peer(1), later), Err(1), "asking again makes it no longer");
        assert_eq!(sessions.try_token(peer(1), now + WRONG_WITHIN), Ok(()), "a minute later");
        assert_eq!(sessions.try_token(None, now), Ok(()));
    }

    #[test]
    fn addresses_that_are_counted_are_bounded_and_the_oldest_is_forgotten() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        for number in 0..ADDRESSES_MAX as u32 {
            for _ in 0..WRONG_MAX {
                let at = now + Duration::from_millis(u64::from(number));
                assert_eq!(sessions.try_token(peer(number), at), Ok(()));
            }
        }
        let last = now + Duration::from_millis(ADDRESSES_MAX as u64);
        assert!(sessions.try_token(peer(1), last).is_err());
        assert_eq!(sessions.try_token(peer(u32::MAX), last), Ok(()), "nobody locks others out");
        assert_eq!(sessions.wrong.lock().len(), ADDRESSES_MAX);
        assert!(sessions.try_token(peer(1), last).is_err(), "not the oldest");
        assert_eq!(sessions.try_token(peer(0), last), Ok(()));
    }

    #[test]
    fn what_a_form_did_is_said_once_and_on_its_page() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let [one, other] = [(); 2].map(|()| sessions.begin(ana(), None, now).unwrap());
        sessions.keep_done(&one, "/console/queue", FormOutcome::Decided);
        assert_eq!(sessions.take_done(&one, "/console"), None);
        assert_eq!(sessions.take_done(&other, "/console/queue"), None);
        assert_eq!(sessions.take_done(&one, "/console/queue"), Some(FormOutcome::Decided));
        assert_eq!(sessions.take_done(&one, "/console/queue"), None);
    }
}
