//! The peers of row 2: the same split charge on PostgreSQL and on TigerBeetle, by the scripts that
//! can also be run by hand.

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

/// What is compared: the line of the table, the script, its load, and the words after it.
pub(crate) struct Comparison {
    /// What the peer does for a charge.
    pub(crate) what: &'static str,
    script: &'static str,
    clients: &'static str,
    /// True for charges of one merchant, false for those of 100.
    pub(crate) is_hot: bool,
    words: &'static [&'static str],
    /// The least times the peer's rate that is wanted, as text and number.
    pub(crate) target: Option<(&'static str, f64)>,
}

const POSTGRES: Comparison = Comparison {
    what: "against PostgreSQL, one function call a charge",
    script: "postgres.sh",
    clients: "64",
    is_hot: true,
    words: &[],
    target: Some(("≥ 15 ×", 15.0)),
};
const TIGERBEETLE: Comparison = Comparison {
    what: "against TigerBeetle, four linked transfers a charge",
    script: "tigerbeetle.sh",
    target: Some(("≥ 1.2 ×", 1.2)),
    ..POSTGRES
};

/// The comparisons of row 2.
pub(crate) const COMPARISONS: [Comparison; 5] = [
    POSTGRES,
    Comparison { is_hot: false, target: None, ..POSTGRES },
    TIGERBEETLE,
    Comparison { is_hot: false, ..TIGERBEETLE },
    Comparison {
        what: "… whose intent is durable first, in two requests",
        is_hot: false,
        words: &["durable-intent"],
        ..TIGERBEETLE
    },
];

impl Comparison {
    /// Runs the peer's load. Says what is missing where it cannot.
    pub(crate) fn measure(&self, plan: &Plan) -> Result<Peer, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers").join(self.script);
        let seconds = (plan.lasting().as_secs() + 1).to_string();
        let mut command = Command::new(&script);
        command.args([seconds.as_str(), self.clients, if self.is_hot { "hot" } else { "uniform" }]).args(self.words);
        command.stderr(Stdio::piped());
        let output = command.output().map_err(|error| format!("{} does not run: {error}", script.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let of = |name: &str| text.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
        match (of("tps="), of("p50_ms="), of("p99_ms=")) {
            (Some(rate), Some(p50_ms), Some(p99_ms)) if output.status.success() => Ok(Peer { rate, p50_ms, p99_ms }),
            _ => Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no figures came").to_owned()),
        }
    }
}
