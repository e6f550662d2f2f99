//! Settings of pay-outs by Efí, as an operator writes them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::api_pix::{ApiPixPaths, ApiPixSettings, Dialect};
use crate::client::SettingsError;
use crate::participant_lists::ParticipantLists;
use crate::shared_settings::{PaysFrom, Repeats};

/// Settings of pay-outs by Efí. Without addresses they are those of its production.
#[derive(Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EfiSettings {
    /// Address of the API: `https`, or `http` on loopback.
    pub url: Option<String>,
    /// Address at which tokens are asked for.
    pub token_url: Option<String>,
    /// The client's id at Efí.
    pub client_id: String,
    /// File of the client's secret: one line, mode 0600 or 0400.
    pub client_secret_file: PathBuf,
    /// File of the client's certificate chain, PEM, mode 0600 or 0400.
    pub certificate_file: Option<PathBuf>,
    /// File of the certificate's key, PEM, mode 0600 or 0400.
    pub key_file: Option<PathBuf>,
    /// File of the certificates that are trusted instead of the operating system's, PEM.
    pub ca_file: Option<PathBuf>,
    /// The PIX key of the account that pays (`pagador.chave`).
    pub key: String,
    /// The Central Bank's lists of institutions, CSV: participants of STR, participants of PIX.
    #[serde(default)]
    pub participants_files: Vec<PathBuf>,
    /// The account of the books that the money leaves.
    #[serde(default)]
    pub pays_from: PaysFrom,
    /// What Efí does with a second order of an id.
    #[serde(default)]
    pub repeats: Repeats,
    /// How long after its order a transfer may still turn up, seconds: 10 minutes by default.
    #[serde(default = "horizon_s")]
    pub horizon_s: u32,
}

/// Keys and addresses may be personal.
impl fmt::Debug for EfiSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EfiSettings").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A transfer may turn up for this long, seconds.
fn horizon_s() -> u32 {
    600
}

/// A shorter horizon than a call may take would order again what is still on its way, seconds.
const HORIZON_S_MIN: u32 = 120;

impl EfiSettings {
    /// Reads the lists of institutions.
    pub(super) fn lists(&self) -> Result<ParticipantLists, SettingsError> {
        ParticipantLists::read("participants_files", &self.participants_files)
    }

    /// The settings of the institution in API Pix, of which pay-outs are an addition.
    pub(super) fn checked(&self) -> Result<ApiPixSettings, SettingsError> {
        if self.horizon_s < HORIZON_S_MIN {
            return Err(SettingsError::setting("horizon_s", "it is at least 120"));
        }
        Ok(ApiPixSettings {
            dialect: Dialect::Efi,
            url: self.url.clone(),
            token_url: self.token_url.clone(),
            token_auth: None,
            client_id: self.client_id.clone(),
            client_secret_file: Some(self.client_secret_file.clone()),
            certificate_file: self.certificate_file.clone(),
            key_file: self.key_file.clone(),
            ca_file: self.ca_file.clone(),
            key: self.key.clone(),
            scope: None,
            account: None,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            paths: ApiPixPaths::default(),
        })
    }
}
