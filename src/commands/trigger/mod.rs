//! `centavo trigger`: makes a webhook event happen in a sandbox, with invented people, by the
//! requests that a merchant and an operator would send.
//!
//! Nothing is simulated beside the sandbox itself: a card is charged, an operator approves. Where
//! time must pass, the clock of the sandbox moves, for all its merchants.

mod scene;

use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ledger::webhook_events::WebhookEventKind;
use strum::VariantArray as _;

use crate::commands::Failure;
use crate::commands::remote::{Flags, OperatorArgs, Remote};
use crate::commands::terminal::say;
use scene::Scene;
use web::credential::Secret;

/// Flags of `trigger`.
#[derive(Debug, Args)]
pub struct TriggerArgs {
    /// The event that is to happen.
    #[arg(value_name = "EVENT", value_parser = event_parser())]
    pub event: WebhookEventKind,
    /// An API key of the account in which it happens, which needs splits and cashouts [default: a
    /// new account, whose key is printed].
    #[arg(long, env = "CENTAVO_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub key: Option<Secret>,
    /// The merchants' listener of the server.
    #[arg(long, env = "CENTAVO_URL", value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// The operators' listener.
    #[command(flatten)]
    pub operator: OperatorArgs,
}

/// How long an event may take once everything was done for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What to correct where a listener refuses its credential or does not answer.
const MERCHANT: Flags = Flags { url: "--url", credential: "--key" };

/// Makes the event happen, and prints each request and the event.
pub async fn run(args: TriggerArgs) -> Result<(), Failure> {
    let TriggerArgs { event, key, url, operator } = args;
    let trust = operator.trust.clone();
    let (operator, second) = operator.remotes()?;
    let merchant = |key| Remote::new(&url, key, trust.as_ref(), MERCHANT);
    let scene = match key {
        Some(key) => Scene::of(merchant(key)?, operator, second),
        None => {
            let key = scene::open_account(&operator).await?;
            say(&format!("A new account. Its API key: {}", key.reveal()));
            Scene::of(merchant(key)?, operator, second)
        }
    };
    let before = scene.last_event().await?;
    scene.make(event).await?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some((sequence, id)) = scene.event_after(before, event.name()).await? {
            say(&format!("{}  #{sequence}  {id}", event.name()));
            return Ok(());
        }
        if Instant::now() >= deadline {
            let (event, most) = (event.name(), PATIENCE.as_secs());
            return Err(format!("{event} did not happen within {most} seconds").into());
        }
    }
}

fn event_parser() -> impl TypedValueParser<Value = WebhookEventKind> {
    let names = WebhookEventKind::VARIANTS.iter().map(|kind| kind.name());
    PossibleValuesParser::new(names).try_map(|name| {
        let kind = WebhookEventKind::VARIANTS.iter().find(|kind| kind.name() == name);
        kind.copied().ok_or("no event")
    })
}
