//! The peer of row 2: the same split charge on PostgreSQL, by the script that can also be run by
//! hand.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Plan;

/// What the peer showed.
#[derive(Clone)]
pub(crate) struct Peer {
    /// Charges a second.
    pub(crate) rate: f64,
    /// The median latency, milliseconds.
    pub(crate) p50_ms: f64,
    /// That of the slowest hundredth, milliseconds.
    pub(crate) p99_ms: f64,
}

/// Measures PostgreSQL under `clients`, on `hot` (one merchant) or `uniform` (100). Says what is
/// missing where it cannot.
pub(crate) fn postgres(plan: &Plan, clients: usize, load: &str) -> Result<Peer, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/postgres.sh");
    let seconds = plan.lasting().as_secs() + 1;
    let mut command = Command::new(script);
    command.args([seconds.to_string(), clients.to_string(), load.to_owned()]).stderr(Stdio::piped());
    let output = command.output().map_err(|error| format!("benches/peers/postgres.sh does not run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let of = |name: &str| text.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
    match (of("tps="), of("p50_ms="), of("p99_ms=")) {
        (Some(rate), Some(p50_ms), Some(p99_ms)) if output.status.success() => Ok(Peer { rate, p50_ms, p99_ms }),
        _ => Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no figures came").to_owned()),
    }
}
