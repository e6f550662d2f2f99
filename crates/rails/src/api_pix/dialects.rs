//! Dialects of the Central Bank's document: what each institution does in its own way. One table;
//! settings override each value of it
//! but the words.

use crate::client::{Word, problem};

/// An institution's way to speak API Pix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// The document itself.
    Bacen,
    /// The dialect of Banco do Brasil.
    Bb,
    /// The dialect of Efí.
    Efi,
    /// The dialect of Banco Inter.
    Inter,
    /// The dialect of Sicoob.
    Sicoob,
    /// The dialect of Sicredi.
    Sicredi,
}

/// How a token is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Login {
    /// A form with the client's id alone: its certificate proves it.
    Certificate,
    /// A form; id and secret are in the header `Authorization: Basic`.
    Basic,
    /// A form with id and secret.
    Form,
    /// A JSON body; id and secret are in the header `Authorization: Basic`.
    Json,
}

/// Where tokens are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum TokenAddress {
    /// A path at the host of the API.
    Path(&'static str),
    /// Another host, whose address belongs to the preset of the API's address.
    Address(&'static str),
}

/// The values of a dialect.
#[derive(Debug)]
pub(super) struct Preset {
    /// Address of the API in production.
    pub(super) url: Option<&'static str>,
    pub(super) token: TokenAddress,
    pub(super) login: Login,
    pub(super) scope: Option<&'static str>,
    /// Headers of every call but that for a token. A header whose `{setting}` is not set is left
    /// out.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Path of charges, `/{txid}` follows.
    pub(super) cob: &'static str,
    /// Path of payments.
    pub(super) pix: &'static str,
    /// Path of callback addresses, `/{chave}` follows.
    pub(super) webhook: &'static str,
    /// Answers for a charge that does not exist.
    pub(super) no_charge: &'static [Word],
    /// Answers for a return that does not exist.
    pub(super) no_return: &'static [Word],
}

/// Scopes of what this adapter calls.
const SCOPE: &str = "cob.read cob.write pix.read pix.write webhook.read webhook.write";

const NO_CHARGE: &[Word] = &[problem(404, "CobNaoEncontrado"), problem(404, "NaoEncontrado")];
const NO_RETURN: &[Word] = &[problem(404, "PixDevolucaoNaoEncontrada"), problem(404, "NaoEncontrado")];

const BACEN: Preset = Preset {
    url: None,
    token: TokenAddress::Path("/oauth/token"),
    login: Login::Basic,
    scope: Some(SCOPE),
    headers: &[],
    cob: "/cob",
    pix: "/pix",
    webhook: "/webhook",
    no_charge: NO_CHARGE,
    no_return: NO_RETURN,
};

const BB: Preset = Preset {
    url: Some("https://api-pix.bb.com.br/pix/v2"),
    token: TokenAddress::Address("https://oauth.bb.com.br/oauth/token"),
    login: Login::Certificate,
    scope: Some("pix.read pix.write"),
    ..BACEN
};

const INTER: Preset = Preset {
    url: Some("https://cdpj.partners.bancointer.com.br/pix/v2"),
    token: TokenAddress::Path("/oauth/v2/token"),
    login: Login::Form,
    headers: &[("x-conta-corrente", "{account}")],
    ..BACEN
};

const SICOOB: Preset = Preset {
    url: Some("https://api.sicoob.com.br/pix/api/v2"),
    token: TokenAddress::Address("https://auth.sicoob.com.br/auth/realms/cooperado/protocol/openid-connect/token"),
    login: Login::Certificate,
    headers: &[("client_id", "{client_id}")],
    ..BACEN
};

const SICREDI: Preset = Preset {
    url: Some("https://api-pix.sicredi.com.br/api"),
    login: Login::Basic,
    // The charges of a txid have a version of their own.
    cob: "/v3/cob",
    pix: "/v2/pix",
    webhook: "/v2/webhook",
    ..BACEN
};

const EFI: Preset = Preset {
    url: Some("https://pix.api.efipay.com.br"),
    login: Login::Json,
    scope: None,
    cob: "/v2/cob",
    pix: "/v2/pix",
    webhook: "/v2/webhook",
    // It says "none" with 400 and words of its own.
    no_charge: &[
        problem(404, "CobNaoEncontrado"),
        problem(404, "NaoEncontrado"),
        Word { status: 400, member: "nome", word: "cobranca_nao_encontrada" },
    ],
    no_return: &[
        problem(404, "PixDevolucaoNaoEncontrada"),
        problem(404, "NaoEncontrado"),
        Word { status: 400, member: "nome", word: "devolucao_nao_encontrada" },
    ],
    ..BACEN
};

impl Dialect {
    /// Its row of the table.
    pub(super) fn preset(self) -> &'static Preset {
        match self {
            Self::Bacen => &BACEN,
            Self::Bb => &BB,
            Self::Efi => &EFI,
            Self::Inter => &INTER,
            Self::Sicoob => &SICOOB,
            Self::Sicredi => &SICREDI,
        }
    }
}
