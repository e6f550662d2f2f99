//! Settings of a bridge, as an operator writes them.

use std::path::PathBuf;

use crate::client::CredentialFiles;
use crate::shared_settings::PaysFrom;

/// Settings of an institution that is reached over the rail protocol, `docs/rails/rail.yaml`.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolSettings {
    /// Address of the bridge: `https`, or `http` on loopback.
    pub url: String,
    /// File of the secret that is shown to it: one line, mode 0600 or 0400.
    pub secret_file: PathBuf,
    /// File of the client's certificate chain, PEM, mode 0600 or 0400.
    pub certificate_file: Option<PathBuf>,
    /// File of the certificate's key, PEM, mode 0600 or 0400.
    pub key_file: Option<PathBuf>,
    /// File of the certificates that are trusted instead of the operating system's, PEM.
    pub ca_file: Option<PathBuf>,
    /// The rails that it is.
    pub serves: Vec<RailKind>,
    /// The account that transfers leave.
    #[serde(default)]
    pub pays_from: PaysFrom,
}

/// What a bridge can be, each a trait of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RailKind {
    /// An acquirer of cards.
    Card,
    /// An institution that receives PIX payments.
    Pix,
    /// An institution that sends transfers.
    Payout,
}

impl RailKind {
    /// Its name: `card`, `pix`, `payout`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Card => "card",
            Self::Pix => "pix",
            Self::Payout => "payout",
        }
    }
}

impl ProtocolSettings {
    /// Whether it is a rail of this kind: `card`, `pix` or `payout`.
    pub fn is(&self, kind: &str) -> bool {
        self.serves.iter().any(|served| served.name() == kind)
    }

    pub(super) fn credential_files(&self) -> CredentialFiles<'_> {
        CredentialFiles {
            secret: Some(("secret_file", &self.secret_file)),
            certificate: self.certificate_file.as_deref(),
            key: self.key_file.as_deref(),
            authorities: self.ca_file.as_deref(),
        }
    }
}
