//! HTTP client of the commands that use a server as a merchant or an operator does: JSON requests
//! to the URL of a listener, with a credential.
//!
//! Each request has a connection of its own. It follows no redirect and uses no proxy.

use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use axum::http::uri::Scheme;
use axum::http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use crate::commands::Failure;
use crate::settings::secrets::{self, SecretSource};
use web::Secret;
use web::client::dial;
use web::network::root_cause;
use web::tls::{self, TlsError};

/// How long a request may take, its answer included.
const CALL_MAX: Duration = Duration::from_secs(60);

/// A listener of a server and a credential for it.
#[derive(Clone)]
pub struct Remote {
    url: String,
    host: String,
    port: u16,
    authority: String,
    /// Certificates to trust, where the URL is one of https.
    tls: Option<Arc<ClientConfig>>,
    credential: Secret,
    flags: Flags,
}

/// Why a request has no answer, or an unexpected one.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The text is no URL of a server.
    #[error("{flag}: `{text}` is no URL of a server, such as http://127.0.0.1:8080 or https://pay.example.com")]
    Url {
        /// The flag that has it.
        flag: &'static str,
        /// The text.
        text: String,
    },
    /// The certificates to trust cannot be read.
    #[error("the certificates to trust: {0}")]
    Tls(#[from] TlsError),
    /// The server cannot be reached, or the connection broke.
    #[error("no answer from {url} ({flag}): {what}")]
    NoAnswer {
        /// The flag of the URL.
        flag: &'static str,
        /// The URL of the listener.
        url: String,
        /// The error.
        what: String,
    },
    /// The server answered with an error.
    #[error("{what} was answered {}: {body}{}", .status.as_u16(), wrong_credential(*.status, flag))]
    Refused {
        /// The flag of the credential.
        flag: &'static str,
        /// Method and path.
        what: String,
        /// Status of the answer.
        status: StatusCode,
        /// Body of the answer.
        body: String,
        /// Seconds until it may be asked again, if the server says so.
        retry_after: Option<u64>,
    },
}

/// Flags of a command that calls the operators' listener of a running server.
#[derive(Debug, clap::Args)]
pub struct OperatorArgs {
    /// The operators' listener of the server.
    #[arg(long, env = "CENTAVO_OPS_URL", value_name = "URL", default_value = "http://127.0.0.1:8081")]
    pub ops_url: String,
    /// A PEM file of certificates to trust at https URLs, beside those of the system.
    #[arg(long, env = "CENTAVO_TRUST", value_name = "FILE")]
    pub trust: Option<PathBuf>,
    /// The server's token, or name:token,name:token, of which the first is used.
    #[arg(long, env = "CENTAVO_OPS_TOKEN", hide_env_values = true, value_name = "TOKENS")]
    pub ops_token: Option<Secret>,
    /// The server's file of its tokens [default: operator.token in the data directory].
    #[arg(long, env = "CENTAVO_OPS_TOKEN_FILE", value_name = "FILE")]
    pub ops_token_file: Option<PathBuf>,
    /// The data directory of the server, for its token.
    #[arg(long, env = "CENTAVO_DATA", value_name = "DIR", default_value = "./data")]
    pub data: PathBuf,
}

impl OperatorArgs {
    /// The server, as the first of its operators calls it, and as the second does, if the second
    /// one's token is there too.
    pub(crate) fn remotes(self) -> Result<(Remote, Option<Remote>), Failure> {
        const FLAGS: Flags = Flags { url: "--ops-url", credential: "--ops-token" };
        let Self { ops_url, trust, ops_token, ops_token_file, data } = self;
        let source = SecretSource::given("CENTAVO_OPS_TOKEN", ops_token, ops_token_file)?;
        let mut tokens = secrets::ops_tokens_in_order(&source, &data)?.into_iter();
        let mut next = || tokens.next().map(|token| Remote::new(&ops_url, token, trust.as_ref(), FLAGS)).transpose();
        let first = next()?.ok_or(
            "an operator's token is needed: set CENTAVO_OPS_TOKEN (or --ops-token), or --data to the server's data",
        )?;
        Ok((first, next()?))
    }
}

/// Flags of a command line that name a listener and a credential for it: what to correct.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    /// The flag of the URL.
    pub url: &'static str,
    /// The flag of the credential.
    pub credential: &'static str,
}

/// What a refusal says of a credential that opens nothing.
fn wrong_credential(status: StatusCode, flag: &str) -> String {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => format!("; the credential is that of {flag}"),
        _ => String::new(),
    }
}

/// An answer, whatever its status.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// Seconds of `Retry-After`.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: Bytes,
}

impl Remote {
    /// A listener by its URL, without a path. A server with https is checked against the
    /// certificates of the operating system and those of the file `trusted`.
    pub fn new(url: &str, credential: Secret, trusted: Option<&PathBuf>, flags: Flags) -> Result<Self, RemoteError> {
        let wrong = || RemoteError::Url { flag: flags.url, text: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_https = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
        if authority.host().is_empty() || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong());
        }
        let tls = is_https.then(|| tls::trusting(trusted)).transpose()?;
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            authority: authority.to_string(),
            tls,
            credential,
            flags,
        })
    }

    /// The URL of the listener.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request and reads its answer, whatever the status.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, RemoteError> {
        self.answered(self.send(self.request(method, path, body)?)).await
    }

    /// Reads a resource whose body is large: it arrives as it is read.
    pub async fn open(&self, path: &str) -> Result<Response<Incoming>, RemoteError> {
        self.answered(self.begin(self.request(Method::GET, path, None)?)).await
    }

    async fn answered<T>(&self, answer: impl Future<Output = io::Result<T>>) -> Result<T, RemoteError> {
        match timeout(CALL_MAX, answer).await {
            Ok(answer) => answer.map_err(|error| self.failed(root_cause(&error))),
            Err(_) => Err(self.failed(format!("none within {} seconds", CALL_MAX.as_secs()))),
        }
    }

    fn failed(&self, what: String) -> RemoteError {
        RemoteError::NoAnswer { flag: self.flags.url, url: self.url.clone(), what }
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Request<Full<Bytes>>, RemoteError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(AUTHORIZATION, format!("Bearer {}", self.credential.reveal()))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body.map(Value::to_string).unwrap_or_default()));
        request.map_err(|_| self.failed(format!("{} is not visible ASCII", self.flags.credential)))
    }

    /// Sends a request that must succeed, and reads its answer.
    pub async fn expect(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Bytes, RemoteError> {
        let what = format!("{method} {path}");
        let Answer { status, retry_after, body } = self.call(method, path, body).await?;
        match status.is_success() {
            true => Ok(body),
            false => {
                let body = String::from_utf8_lossy(&body).into_owned();
                Err(RemoteError::Refused { flag: self.flags.credential, what, status, body, retry_after })
            }
        }
    }

    async fn begin(&self, request: Request<Full<Bytes>>) -> io::Result<Response<Incoming>> {
        let tls = self.tls.clone().map(|config| (config, self.host.clone()));
        let mut server = dial((self.host.as_str(), self.port), tls).await?;
        server.send_request(request).await.map_err(io::Error::other)
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> io::Result<Answer> {
        let answer = self.begin(request).await?;
        let retry_after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Answer { status, retry_after, body })
    }
}

/// The body of an answer, which is read by a thread that may wait.
pub(crate) struct AnswerBody {
    runtime: Handle,
    body: Incoming,
    stall_max: Option<Duration>,
    /// Bytes that arrived and were not read yet.
    part: Bytes,
}

impl AnswerBody {
    /// The body of this answer, to be read outside of the runtime that now runs. A read fails after
    /// `stall_max` without a byte; none for a server that may take its time.
    pub(crate) fn new(answer: Response<Incoming>, stall_max: Option<Duration>) -> Self {
        Self { runtime: Handle::current(), body: answer.into_body(), stall_max, part: Bytes::new() }
    }
}

impl Read for AnswerBody {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            let frame = self.body.frame();
            let frame = self.runtime.block_on(async {
                match self.stall_max {
                    Some(most) => timeout(most, frame).await.map_err(|_| io::Error::from(ErrorKind::TimedOut)),
                    None => Ok(frame.await),
                }
            })?;
            match frame {
                Some(frame) => self.part = frame.map_err(io::Error::other)?.into_data().unwrap_or_default(),
                None => return Ok(0),
            }
        }
        let count = into.len().min(self.part.len());
        into[..count].copy_from_slice(&self.part.split_to(count));
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_url_alone() {
        let flags = Flags { url: "--ops-url", credential: "--ops-token" };
        let remote = |url: &str| Remote::new(url, Secret::from("key".to_owned()), None, flags);
        for (url, host, port) in [
            ("http://127.0.0.1:8080", "127.0.0.1", 8080),
            ("http://[::1]:8080/", "::1", 8080),
            ("http://pay.example.com", "pay.example.com", 80),
            ("https://pay.example.com", "pay.example.com", 443),
        ] {
            let read = remote(url).unwrap();
            assert_eq!((read.host.as_str(), read.port, read.tls.is_some()), (host, port, url.starts_with("https")));
        }
        for wrong in [
            "",
            "127.0.0.1:8080",
            "/",
            "ftp://a",
            "http://",
            "http://a/api",
            "http://a?b",
            "http://u@a",
            "http://u:p@a:1",
        ] {
            assert!(matches!(remote(wrong), Err(RemoteError::Url { .. })), "{wrong}");
        }
        assert!(remote("x").err().unwrap().to_string().starts_with("--ops-url: `x` is no URL"));
        let said = remote("http://a").unwrap().failed("refused".to_owned()).to_string();
        assert_eq!(said, "no answer from http://a (--ops-url): refused");
        let refused = |status| {
            let (what, body) = ("GET /ops/queue".to_owned(), "{}".to_owned());
            RemoteError::Refused { flag: flags.credential, what, status, body, retry_after: None }.to_string()
        };
        let said = "GET /ops/queue was answered 401: {}; the credential is that of --ops-token";
        assert_eq!(refused(StatusCode::UNAUTHORIZED), said);
        assert_eq!(refused(StatusCode::CONFLICT), "GET /ops/queue was answered 409: {}");
    }
}
