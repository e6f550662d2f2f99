//! HTTP client of an institution's API: a request is sent once, on a connection of its own. It
//! follows no redirect, so that neither an order nor the client's certificate reaches a host that
//! no setting names.

mod address;
mod credentials;
mod error;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actors::rails::RailError;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ledger::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use zeroize::Zeroizing;

pub(crate) use address::Address;
pub(crate) use credentials::{CredentialFiles, Credentials, read_secret};
pub use error::SettingsError;

/// How long a connection and its TLS may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long an answer may take, to its last byte.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Bytes of an answer's body.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A request, without what the client adds.
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    /// Path at the address, with the query.
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Body>,
}

/// A body with its media type.
pub(crate) struct Body {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
}

/// Bytes for which a JSON body has room from the start, so that a card in it is in one place.
const JSON_BODY_ROOM: usize = 4 * 1024;

/// A message as JSON; a card in it is overwritten after use.
pub(crate) fn json_body(message: &impl Serialize) -> Bytes {
    let mut text = Zeroizing::new(Vec::with_capacity(JSON_BODY_ROOM));
    // Texts and numbers alone are in it.
    let written = serde_json::to_writer(&mut *text, message);
    debug_assert!(written.is_ok());
    Bytes::from_owner(text)
}

/// The time by this machine's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// An answer that came whole.
pub(crate) struct Answer {
    /// The status line's; a `status` in the body counts for nothing.
    pub(crate) status: StatusCode,
    media: Result<(), &'static str>,
    body: Bytes,
}

impl Answer {
    /// The body as JSON of a shape. The error says what is wrong, without the text.
    pub(crate) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, String> {
        self.media?;
        serde_json::from_slice(&self.body).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => format!("a field is absent or wrong ({})", shape_of(&error)),
            _ => "its body is no JSON".to_owned(),
        })
    }

    /// Whether it says one of the words.
    pub(crate) fn says(&self, words: &[Word]) -> bool {
        let mut words = words.iter().filter(|word| self.status.as_u16() == word.status).peekable();
        let body: BTreeMap<String, Value> = match words.peek() {
            Some(_) => self.read().unwrap_or_default(),
            None => return false,
        };
        words.any(|word| {
            let text = body.get(word.member).and_then(Value::as_str);
            text.and_then(|text| text.rsplit('/').next()) == Some(word.word)
        })
    }
}

/// An answer by its status and a word of its body. A proxy's page with the same status says
/// nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// HTTP status.
    pub(crate) status: u16,
    /// The member of the body with the word.
    pub(crate) member: &'static str,
    /// The word; of an address, its last segment.
    pub(crate) word: &'static str,
}

/// A word that is the end of a problem document's `type`.
pub(crate) const fn problem(status: u16, word: &'static str) -> Word {
    Word { status, member: "type", word }
}

/// What serde says of a field, without the value that it quotes.
fn shape_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let named = ["missing field", "duplicate field"].iter().any(|begin| text.starts_with(begin));
    if named { text } else { format!("column {}", error.column()) }
}

/// Sends a request once. [`RailError::NotSent`] means that no byte of it was written.
/// The answer must be whole `within` a time.
pub(crate) async fn send(
    address: &Address,
    tls: &Arc<ClientConfig>,
    outgoing: Outgoing,
    within: Duration,
) -> Result<Answer, RailError> {
    let what = format!("{} {}", outgoing.method, outgoing.path.split('?').next().unwrap_or_default());
    let request = request(address, outgoing).map_err(|()| RailError::NotSent)?;
    let connection = timeout(CONNECT_MAX, connect(address, tls)).await;
    let (sender, task) = match connection.map_err(|_| "no connection in time".to_owned()).flatten() {
        Ok(connection) => connection,
        Err(error) => {
            tracing::warn!(host = %address.host, %what, %error, "an institution can't be reached");
            return Err(RailError::NotSent);
        }
    };
    let answer = timeout(within, exchange(sender, request)).await;
    drop(task);
    answer.map_err(|_| "no answer in time".to_owned()).flatten().map_err(|error| {
        tracing::warn!(host = %address.host, %what, %error, "an institution did not answer");
        RailError::NoAnswer
    })
}

/// The task of a connection, which ends with the call: an answer that nobody waits for is not read.
struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Sender = http1::SendRequest<Full<Bytes>>;

async fn connect(address: &Address, tls: &Arc<ClientConfig>) -> Result<(Sender, ConnectionTask), String> {
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await.map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    match &address.tls_name {
        None => begin(stream).await,
        Some(name) => {
            let connected = TlsConnector::from(Arc::clone(tls)).connect(name.clone(), stream).await;
            begin(connected.map_err(|error| error.to_string())?).await
        }
    }
}

async fn begin(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<(Sender, ConnectionTask), String> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let task = tokio::spawn(async move {
        // The call itself hears of an error.
        let _ = connection.await;
    });
    Ok((sender, ConnectionTask(task)))
}

fn request(address: &Address, outgoing: Outgoing) -> Result<Request<Full<Bytes>>, ()> {
    let Outgoing { method, path, headers, body } = outgoing;
    let (media_type, bytes) = body.map_or((None, Bytes::new()), |body| (Some(body.media_type), body.bytes));
    let mut request = Request::builder().method(method).uri(path).body(Full::new(bytes)).map_err(|_| ())?;
    *request.headers_mut() = headers;
    let own = request.headers_mut();
    own.insert(HOST, address.authority.clone());
    own.insert(ACCEPT, HeaderValue::from_static("application/json, application/problem+json"));
    own.insert(CONNECTION, HeaderValue::from_static("close"));
    if let Some(media_type) = media_type {
        own.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    }
    Ok(request)
}

async fn exchange(mut sender: Sender, request: Request<Full<Bytes>>) -> Result<Answer, String> {
    let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let (status, media) = (answer.status(), media(&answer));
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            format!("its answer is larger than {ANSWER_BYTES_MAX} bytes")
        } else {
            format!("its answer broke off: {error}")
        }
    })?;
    Ok(Answer { status, media, body: body.to_bytes() })
}

/// Whether the body is JSON in UTF-8, by its headers.
fn media<B>(answer: &Response<B>) -> Result<(), &'static str> {
    let is_plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !answer.headers().get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Err("its body is encoded");
    }
    let mut types = answer.headers().get_all(CONTENT_TYPE).iter();
    let (Some(media_type), None) = (types.next(), types.next()) else {
        return Err("it has no media type, or two");
    };
    let media_type = media_type.to_str().unwrap_or_default().to_ascii_lowercase();
    let mut parts = media_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    if essence != "application/json" && !essence.ends_with("+json") {
        return Err("its media type is not JSON");
    }
    let charsets = parts.filter_map(|part| part.strip_prefix("charset="));
    let is_utf8 = charsets.map(|charset| charset.trim_matches('"')).all(|charset| matches!(charset, "utf-8" | "utf8"));
    if is_utf8 { Ok(()) } else { Err("its charset is not UTF-8") }
}
