//! `centavo listen`: reads the webhook events of an account from its server and posts them, signed,
//! to an address that the server cannot reach, such as a program on a developer's machine.
//!
//! An event is posted once, in the order of the account's events, whatever the answer is. The
//! server is asked by `GET /api/events?after=…&wait=…`; while it does not answer, it is asked again
//! every second, and no event is lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::sleep;

use crate::commands::Failure;
use crate::commands::remote::{Flags, Remote, RemoteError};
use crate::commands::terminal::say;
use crate::settings::secrets::SecretSource;
use web::credential::Secret;
use webhooks::forward::Forwarder;
use webhooks::new_secret;

/// Flags of `listen`.
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// An API key of the account. Others can read a command line: the variable or the file hides
    /// it.
    #[arg(long, env = "CENTAVO_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub key: Option<Secret>,
    /// A file of the API key.
    #[arg(long, env = "CENTAVO_API_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The merchants' listener of the server.
    #[arg(long, env = "CENTAVO_URL", value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// A PEM file of certificates to trust at an https URL, beside those of the system.
    #[arg(long, env = "CENTAVO_TRUST", value_name = "FILE")]
    pub trust: Option<PathBuf>,
    /// Where each event is posted; without it, events are only printed.
    #[arg(long, value_name = "URL")]
    pub forward_to: Option<String>,
    /// The secret that signs, as whsec_… [default: a new one, which is printed].
    #[arg(long, env = "CENTAVO_WEBHOOK_SECRET", hide_env_values = true, value_name = "SECRET")]
    pub secret: Option<Secret>,
    /// A file of the secret that signs.
    #[arg(long, env = "CENTAVO_WEBHOOK_SECRET_FILE", value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// The sequence of the last event that is known; 0 begins with the first event of the account
    /// [default: the last event there is].
    #[arg(long, value_name = "SEQUENCE")]
    pub after: Option<u64>,
}

/// Seconds that a request waits for an event: the most that a server allows.
const WAIT_SECONDS: u64 = 20;
/// How long until a server without an answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What to correct where the server refuses the key or does not answer.
const NO_KEY: &str = "which account? Set CENTAVO_API_KEY (or --key, or --key-file) to one of its API keys";

const FLAGS: Flags = Flags { url: "--url", credential: "--key" };

/// Prints and forwards events until the process is stopped, or the server refuses the key.
pub async fn run(args: ListenArgs) -> Result<(), Failure> {
    let ListenArgs { key, key_file, url, trust, forward_to, secret, secret_file, after } = args;
    let key = given("CENTAVO_API_KEY", key, key_file)?.ok_or(NO_KEY)?;
    let server = Server { remote: Remote::new(&url, key, trust.as_ref(), FLAGS)?, is_silent: false };
    let secret = given("CENTAVO_WEBHOOK_SECRET", secret, secret_file)?;
    let forwarder = match forward_to {
        None => None,
        Some(to) => {
            let (secret, made) = match secret {
                Some(secret) => (secret.reveal().to_owned(), false),
                None => (new_secret()?, true),
            };
            let forwarder = Forwarder::new(&to, secret.clone())?;
            say(&format!("Events of {url} go to {to}"));
            if made {
                say(&format!("They are signed with {secret}"));
            }
            Some(forwarder)
        }
    };
    follow(server, forwarder, after).await
}

async fn follow(mut server: Server, forwarder: Option<Forwarder>, after: Option<u64>) -> Result<(), Failure> {
    let mut last = match after {
        Some(after) => after,
        None => server.events("page=1&per_page=1").await?.total,
    };
    say(&format!("Waiting for events after number {last}. Ctrl-C ends."));
    loop {
        let begun = Instant::now();
        let EventsPage { items, .. } = server.events(&format!("after={last}&wait={WAIT_SECONDS}&per_page=100")).await?;
        // A server whose room for waiting requests is taken answers at once.
        if items.is_empty() && begun.elapsed() < ASK_AGAIN {
            sleep(ASK_AGAIN).await;
        }
        for item in items {
            let event = ReadEvent::of(item).map_err(no_list)?;
            last = event.sequence;
            let answer = match &forwarder {
                Some(forwarder) => outcome(forwarder, &event).await,
                None => String::new(),
            };
            say(format!("{:<32} #{:<6} {}  {answer}", event.name, event.sequence, event.id).trim_end());
        }
    }
}

async fn outcome(forwarder: &Forwarder, event: &ReadEvent) -> String {
    let begun = Instant::now();
    match forwarder.forward(&event.id, event.body.clone()).await {
        Ok(status) => format!("{} in {} ms", status.as_u16(), begun.elapsed().as_millis()),
        Err(failure) => failure.to_string(),
    }
}

fn no_list(error: serde_json::Error) -> Failure {
    format!("the answer is no list of events: {error}").into()
}

/// A secret that a flag, a variable or a file gives.
fn given(name: &'static str, text: Option<Secret>, file: Option<PathBuf>) -> Result<Option<Secret>, Failure> {
    match SecretSource::given(name, text, file)? {
        SecretSource::Data => Ok(None),
        source => Ok(source.read(Path::new(""), "")?),
    }
}

/// The server that is listened to.
struct Server {
    remote: Remote,
    /// True after a request without an answer.
    is_silent: bool,
}

/// A page of events, as sent.
#[derive(Deserialize)]
struct EventsPage {
    items: Vec<BTreeMap<String, Box<RawValue>>>,
    total: u64,
}

impl Server {
    /// A list of events. It is asked for until the server answers.
    async fn events(&mut self, query: &str) -> Result<EventsPage, Failure> {
        loop {
            let wait = match self.remote.expect(Method::GET, &format!("/api/events?{query}"), None).await {
                Ok(body) => {
                    if self.is_silent {
                        say("The server answers again.");
                    }
                    self.is_silent = false;
                    return serde_json::from_slice(&body).map_err(no_list);
                }
                Err(RemoteError::Refused { status, retry_after, .. })
                    if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() =>
                {
                    retry_after.map_or(ASK_AGAIN, Duration::from_secs)
                }
                Err(error @ RemoteError::NoAnswer { .. }) => {
                    if !self.is_silent {
                        say(&format!("{error}. It is asked again every second."));
                    }
                    self.is_silent = true;
                    ASK_AGAIN
                }
                Err(error) => return Err(error.into()),
            };
            sleep(wait).await;
        }
    }
}

/// An event, and the body of its webhook.
struct ReadEvent {
    id: String,
    name: String,
    sequence: u64,
    body: Vec<u8>,
}

/// The body of a webhook, in the order of its members there.
#[derive(Serialize)]
struct Body {
    event: Box<RawValue>,
    #[serde(flatten)]
    object: BTreeMap<String, Box<RawValue>>,
    timestamp: Box<RawValue>,
    sequence: Box<RawValue>,
}

impl ReadEvent {
    /// Reads an item of the list: the body of the webhook, and three members beside it.
    fn of(mut item: BTreeMap<String, Box<RawValue>>) -> Result<Self, serde_json::Error> {
        let mut take = |name: &'static str| {
            item.remove(name).ok_or_else(|| serde::de::Error::custom(format!("an event without `{name}`")))
        };
        let id = serde_json::from_str(take("id")?.get())?;
        let (_, _) = (take("created_at")?, take("deliveries")?);
        let (event, timestamp, sequence) = (take("event")?, take("timestamp")?, take("sequence")?);
        let (name, number) = (serde_json::from_str(event.get())?, serde_json::from_str(sequence.get())?);
        let body = serde_json::to_vec(&Body { event, object: item, timestamp, sequence })?;
        Ok(Self { id, name, sequence: number, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_a_webhook_is_made_again_byte_by_byte() {
        let body = r#"{"event":"split.available","split":{"z":1.50,"a":"\u00e9"},"timestamp":"t","sequence":7}"#;
        let item = format!(r#"{{"id":"u",{},"created_at":"c","deliveries":[]}}"#, &body[1..body.len() - 1]);
        let event = ReadEvent::of(serde_json::from_str(&item).unwrap()).unwrap();
        assert_eq!(String::from_utf8(event.body).unwrap(), body);
        assert_eq!((event.id.as_str(), event.name.as_str(), event.sequence), ("u", "split.available", 7));
        let error = ReadEvent::of(serde_json::from_str(r#"{"id":"u"}"#).unwrap()).err().unwrap().to_string();
        assert!(error.contains("created_at"), "{error}");
    }
}
