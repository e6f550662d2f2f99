//! `centavo rail check`: the conformance test of a bridge that speaks the rail protocol, in the
//! test environment of its institution.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ledger::personal::PixKeyKind;
use rails::SettingsError;
use rails::protocol::check::{CheckOrders, Defect, Finding, check};
use rails::protocol::{self, ProtocolSettings, RailKind};

use crate::commands::terminal::say;

/// Commands about bridges.
#[derive(Debug, Subcommand)]
pub enum RailCommand {
    /// Try the rules of the rail protocol on a bridge, in the test environment of its institution.
    ///
    /// It orders charges, refunds and transfers there, and nothing where the bridge does not say
    /// that it is a test environment. A line a rule: ok, BROKEN with what was seen, or not tested
    /// with why. It ends with 1 where a rule is broken. The rules: docs/rails/rail.yaml.
    Check(RailCheckArgs),
}

/// Flags of `rail check`.
#[derive(Debug, Args)]
pub struct RailCheckArgs {
    /// Address of the bridge: https, or http on loopback.
    #[arg(value_name = "URL")]
    pub url: String,
    /// The file of the secret that is shown to it: one line, mode 0600 or 0400.
    #[arg(long, value_name = "FILE")]
    pub secret_file: PathBuf,
    /// A card that the test environment charges.
    #[arg(long, value_name = "NUMBER", default_value = "4111111111111111")]
    pub card: String,
    /// A PIX key to which the test environment sends; without one no transfer is ordered.
    #[arg(long, value_name = "KEY")]
    pub pix_key: Option<String>,
    /// A PEM file of certificates to trust instead of those of the system.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// A PEM file of the client's certificate chain, mode 0600 or 0400.
    #[arg(long, value_name = "FILE", requires = "key_file")]
    pub certificate_file: Option<PathBuf>,
    /// A PEM file of the certificate's key, mode 0600 or 0400.
    #[arg(long, value_name = "FILE", requires = "certificate_file")]
    pub key_file: Option<PathBuf>,
}

/// Tries the rules and prints a line for each. Gives whether none is broken.
pub async fn run(args: RailCheckArgs) -> Result<bool, SettingsError> {
    let RailCheckArgs { url, secret_file, card, pix_key, ca_file, certificate_file, key_file } = args;
    let settings = ProtocolSettings {
        url,
        secret_file,
        certificate_file,
        key_file,
        ca_file,
        serves: vec![RailKind::Card, RailKind::Pix, RailKind::Payout],
        pays_from: Default::default(),
    };
    let bridge = protocol::open(&settings)?;
    let pix_key = pix_key.map(|key| (kind_of(&key).name(), key));
    let is_sound = check(&bridge, CheckOrders { card, pix_key }, |finding| say(&line(finding))).await;
    if is_sound {
        say("note           its test is true, as here it must be: a live server warns of such a bridge at its start");
    }
    Ok(is_sound)
}

/// The kind of a key, by its shape.
fn kind_of(key: &str) -> PixKeyKind {
    match (key.contains('@'), key.starts_with('+'), key.len()) {
        (true, ..) => PixKeyKind::Email,
        (_, true, _) => PixKeyKind::Phone,
        (_, _, 36) => PixKeyKind::Evp,
        (_, _, 14) => PixKeyKind::Cnpj,
        _ => PixKeyKind::Cpf,
    }
}

fn line(finding: &Finding) -> String {
    let Finding { rule, promise, result } = finding;
    match result {
        Ok(()) => format!("ok         {rule:>2}  {promise}"),
        Err(Defect::Broken(what)) => format!("BROKEN     {rule:>2}  {promise}: {what}"),
        Err(Defect::NotTested(why)) => format!("not tested {rule:>2}  {promise}: {why}"),
    }
}
