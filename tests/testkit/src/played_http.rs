//! HTTP of a player: a server that answers as a player says and can misbehave on the wire, which a
//! server library would not let it do.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// The path alone, as it was sent.
    pub path: String,
    /// The query as it was sent.
    pub raw_query: String,
    /// Its parameters.
    pub query: Vec<(String, String)>,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter; `None` if it is absent or there twice.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut found = self.query.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str()).filter(|_| found.next().is_none())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub media_type: &'static str,
    pub body: String,
}

impl Reply {
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, media_type: "application/json", body: body.to_string() }
    }

    /// The answer's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let Self { status, media_type, body } = self;
        format!(
            "HTTP/1.1 {status} Played\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// Changes a body.
pub type Edit = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// What a player does with a request instead of answering it.
#[derive(Clone)]
pub enum Oddity {
    /// It carries nothing out, writes these bytes and ends the connection.
    Says(Vec<u8>),
    /// It carries the request out, writes these bytes and ends the connection.
    CarriesOutAndSays(Vec<u8>),
    /// It carries the request out, writes this many bytes of its answer and ends the connection.
    CutsAnswerAt(usize),
    /// It carries the request out and never answers.
    IsSilent,
    /// It carries nothing out and never answers.
    IsLost,
    /// It carries the request out and answers after this time.
    AnswersAfter(Duration),
    /// It ends the connection, and carries the request out after this time: it was held up on its
    /// way.
    CarriesOutAfter(Duration),
    /// It carries the request out and answers with another body.
    Edits(Edit),
}

/// An oddity for some requests.
pub struct Odd {
    pub method: &'static str,
    /// A part of the path.
    pub path: &'static str,
    /// For how many requests.
    pub times: usize,
    pub oddity: Oddity,
}

/// What becomes of a request by chance.
pub type Chances = Box<dyn FnMut(&Request) -> Option<Oddity> + Send>;

/// What a player has seen, and how it will misbehave.
#[derive(Default)]
pub struct Stage {
    /// Connections that were accepted, with those whose TLS failed.
    pub connections: usize,
    /// Those whose TLS failed.
    pub refused: usize,
    pub requests: Vec<Request>,
    pub odd: Vec<Odd>,
    /// What becomes of the requests that `odd` does not name.
    pub chances: Option<Chances>,
    /// Requests that are held up on their way and not carried out yet.
    pub held_up: usize,
}

impl Stage {
    fn oddity(&mut self, request: &Request) -> Option<Oddity> {
        let is_meant =
            |odd: &&mut Odd| odd.times > 0 && odd.method == request.method && request.path.contains(odd.path);
        let Some(odd) = self.odd.iter_mut().find(is_meant) else {
            return self.chances.as_mut().and_then(|chances| chances(request));
        };
        odd.times -= 1;
        Some(odd.oddity.clone())
    }
}

/// Answers requests.
pub type Handler = Arc<dyn Fn(&Request) -> Reply + Send + Sync>;

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, tls: Option<Arc<ServerConfig>>, stage: Arc<Mutex<Stage>>, handler: Handler) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        stage.lock().connections += 1;
        let (stage, handler, tls) = (Arc::clone(&stage), Arc::clone(&handler), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => converse(stream, stage, handler).await,
                Some(config) => match TlsAcceptor::from(config).accept(stream).await {
                    Ok(stream) => converse(stream, stage, handler).await,
                    Err(_) => stage.lock().refused += 1,
                },
            }
        });
    }
}

async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, stage: Arc<Mutex<Stage>>, handler: Handler) {
    let mut read = Vec::new();
    while let Some(request) = next(&mut stream, &mut read).await {
        let oddity = {
            let mut stage = stage.lock();
            stage.requests.push(request.clone());
            stage.oddity(&request)
        };
        let ends = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let (bytes, ends) = match oddity {
            None => (handler(&request).bytes(), ends),
            Some(Oddity::Says(bytes)) => (bytes, true),
            Some(Oddity::CarriesOutAndSays(bytes)) => {
                handler(&request);
                (bytes, true)
            }
            Some(Oddity::CutsAnswerAt(length)) => {
                let mut bytes = handler(&request).bytes();
                bytes.truncate(length);
                (bytes, true)
            }
            Some(silence @ (Oddity::IsSilent | Oddity::IsLost)) => {
                if matches!(silence, Oddity::IsSilent) {
                    handler(&request);
                }
                std::future::pending::<()>().await;
                return;
            }
            Some(Oddity::AnswersAfter(time)) => {
                let reply = handler(&request);
                tokio::time::sleep(time).await;
                (reply.bytes(), ends)
            }
            Some(Oddity::CarriesOutAfter(time)) => {
                stage.lock().held_up += 1;
                let (stage, handler) = (Arc::clone(&stage), Arc::clone(&handler));
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    handler(&request);
                    stage.lock().held_up -= 1;
                });
                (Vec::new(), true)
            }
            Some(Oddity::Edits(edit)) => {
                let mut reply = handler(&request);
                let mut body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
                edit(&mut body);
                reply.body = body.to_string();
                (reply.bytes(), ends)
            }
        };
        if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() || ends {
            let _ = stream.shutdown().await;
            return;
        }
    }
}

/// The next request; `None` if the connection ends, or what comes is no request with a length.
async fn next(stream: &mut (impl AsyncRead + Unpin), read: &mut Vec<u8>) -> Option<Request> {
    let head_end = loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(read[..head_end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Some(0), |(_, value)| value.parse::<usize>().ok())?;
    while read.len() < head_end + length {
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
    let body = read[head_end..head_end + length].to_vec();
    read.drain(..head_end + length);
    let (path, raw_query) = target.split_once('?').unwrap_or((&target, ""));
    let query = form_urlencoded::parse(raw_query.as_bytes()).into_owned().collect();
    Some(Request { method, path: path.to_owned(), raw_query: raw_query.to_owned(), query, headers, body })
}
