//! `centavo erase`: asks a running server for the erasure of personal data past its retention, as
//! `POST /ops/erasures` does. A second operator runs the same command with another token.

use axum::http::Method;
use clap::Args;
use serde_json::{Value, json};

use crate::commands::Failure;
use crate::commands::remote::OperatorArgs;
use crate::commands::terminal::say;

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

/// Asks for the erasure, and prints what the server answers.
pub async fn run(args: EraseArgs) -> Result<(), Failure> {
    let EraseArgs { through, operator } = args;
    let (operator, _) = operator.remotes()?;
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
