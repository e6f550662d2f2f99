//! `centavo erase`: asks a running server for the erasure of personal data past its retention, as
//! `POST /ops/erasures` does. A second operator runs the same command with another token.

use axum::http::Method;
use clap::Args;
use serde_json::{Value, json};

use crate::commands::remote::{Flags, OperatorArgs, Remote, RemoteError};
use crate::commands::terminal::say;
use crate::settings::secrets::{self, SecretError, SecretSource, TwoSources};

/// Flags of `erase`.
#[derive(Debug, Args)]
pub struct EraseArgs {
    /// The last month, such as 2016-10: what was sealed in it or before it is erased.
    #[arg(long, value_name = "MONTH")]
    pub through: String,
    /// The operators' listener.
    #[command(flatten)]
    pub operator: OperatorArgs,
}

/// Why nothing was asked for.
#[derive(Debug, thiserror::Error)]
pub enum EraseFailure {
    /// The tokens are given as a text and as a file.
    #[error(transparent)]
    TwoSources(#[from] TwoSources),
    /// The operators' tokens cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// No operator's token was found.
    #[error("an operator's token is needed: set CENTAVO_OPS_TOKEN (or --ops-token), or --data to the server's data")]
    NoToken,
    /// The request was refused, or had no answer.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// Asks for the erasure, and prints what the server answers.
pub async fn run(args: EraseArgs) -> Result<(), EraseFailure> {
    let EraseArgs { through, operator } = args;
    let OperatorArgs { ops_url, trust, ops_token, ops_token_file, data } = operator;
    let source = SecretSource::given("CENTAVO_OPS_TOKEN", ops_token, ops_token_file)?;
    let token = secrets::ops_tokens_in_order(&source, &data)?.into_iter().next().ok_or(EraseFailure::NoToken)?;
    let flags = Flags { url: "--ops-url", credential: "--ops-token" };
    let operator = Remote::new(&ops_url, token, trust.as_ref(), flags)?;
    let answer = operator.expect(Method::POST, "/ops/erasures", Some(&json!({ "through": through }))).await?;
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    match answer["erased_by"].as_str() {
        Some(by) => say(&format!("Erased through {through}, by {by}.")),
        None => {
            say(&format!("Asked for. Another operator runs `centavo erase --through {through}` with another token."))
        }
    }
    Ok(())
}
