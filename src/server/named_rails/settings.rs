//! Settings of institutions with names: the tables `[rails]` and `[rail.NAME]` of the settings
//! file, which no flag and no variable can give, and the settings of the listener of callbacks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use actors::rails::RailParties;
use axum::http::Uri;
use ledger::RailName;
use ledger::tax_id::{is_cnpj, is_ispb};
use rails::adyen::AdyenSettings;
use rails::api_pix::ApiPixSettings;
use rails::efi::EfiSettings;
use rails::protocol::ProtocolSettings;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::settings::args::BellArgs;
use crate::settings::checked::{ConfigError, tls_files};
use web::tls::TlsFiles;

/// Institutions of an installation, as the settings file names them.
#[derive(Debug, Clone)]
pub struct NamedRailSettings {
    /// The settings file.
    pub file: PathBuf,
    /// Line of the first of its tables.
    pub line: usize,
    /// The rails of new orders.
    pub current: CurrentRails,
    /// The rails: those of new orders, and those of earlier ones.
    pub by_name: BTreeMap<RailName, NamedRail>,
}

/// The rails of new orders, by name; `None` if orders of their kind are answered with 503.
#[derive(Debug, Clone, Default)]
pub struct CurrentRails {
    /// The acquirer of card charges.
    pub card: Option<RailName>,
    /// The institution of PIX charges.
    pub pix: Option<RailName>,
    /// The institution that sends transfers.
    pub payout: Option<RailName>,
}

impl CurrentRails {
    /// The fields of the table `[rails]`, with their names.
    fn fields(&mut self) -> [(&'static str, &mut Option<RailName>); 3] {
        [("card", &mut self.card), ("pix", &mut self.pix), ("payout", &mut self.payout)]
    }
}

impl std::fmt::Display for CurrentRails {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all = self.clone();
        let [card, pix, payout] = all.fields().map(|(field, name)| match name {
            Some(name) => format!("{field}={name}"),
            None => format!("{field}=none"),
        });
        write!(f, "{card} {pix} {payout}")
    }
}

/// A table `[rail.NAME]`.
#[derive(Debug, Clone)]
pub struct NamedRail {
    /// Its line.
    pub line: usize,
    /// The address at which it rings, which is registered with it at the start. It adds `/pix`.
    pub callback_url: Option<String>,
    /// Parties of its payments.
    pub parties: RailParties,
    /// Settings of its adapter.
    pub adapter: AdapterSettings,
}

/// Settings of an adapter, by its kind.
#[derive(Debug, Clone)]
pub enum AdapterSettings {
    /// Cards by Adyen.
    Adyen(AdyenSettings),
    /// An institution that speaks API Pix.
    ApiPix(ApiPixSettings),
    /// Pay-outs by Efí.
    Efi(EfiSettings),
    /// An institution behind the rail protocol.
    Http(ProtocolSettings),
}

impl AdapterSettings {
    /// Whether it can be that field of `[rails]`.
    fn serves(&self, field: &str) -> bool {
        match self {
            Self::Adyen(_) => field == "card",
            Self::ApiPix(_) => field == "pix",
            Self::Efi(_) => field == "payout",
            Self::Http(settings) => settings.is(field),
        }
    }
}

/// The kinds of adapters, as the settings file names them.
const KINDS: [&str; 4] = ["adyen", "api_pix", "efi", "http"];

/// What is wrong with a table. The message has names of fields, and no values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TableDefect {
    /// Place in the text of the file, bytes from its beginning.
    pub(crate) at: usize,
    /// The field and its defect.
    pub(crate) message: String,
}

/// Names of the tables in the file.
pub(crate) const TABLES: [&str; 2] = ["rails", "rail"];

const NAME_EXPECTED: &str = "a name is 1 to 16 small letters, digits and _, and begins with a letter";

/// The institutions of a settings file; `None` if it names none. `line_at` gives the line of a
/// place in its text.
pub(crate) fn of_file(
    file: PathBuf,
    text: &str,
    line_at: impl Fn(usize) -> usize,
) -> Result<Option<NamedRailSettings>, TableDefect> {
    // The whole text was parsed before.
    let Ok(table) = DeTable::parse(text) else { return Ok(None) };
    let mut tables = table.into_inner();
    let [current, named] = TABLES.map(|name| tables.remove_entry(name));
    let begins = current.iter().chain(&named).map(|(name, _)| name.span().start).min();
    let Some(at) = begins else { return Ok(None) };
    let named = named.map(|(_, value)| fields(value, "rail")).transpose()?.unwrap_or_default();
    let by_name: BTreeMap<_, _> = named.into_iter().map(|field| one(field, &line_at)).collect::<Result<_, _>>()?;
    let current = current.map(|(_, value)| fields(value, "rails")).transpose()?.unwrap_or_default();
    let mut rails = CurrentRails::default();
    for Field { name, value, at } in current {
        let field = rails.fields().into_iter().find(|(field, _)| *field == name);
        let unknown = || format!("rails: unknown field `{name}`, expected `card`, `pix` or `payout`");
        let (field, rail) = field.ok_or_else(|| TableDefect { at, message: unknown() })?;
        *rail = Some(known(value, field, &by_name)?);
    }
    Ok(Some(NamedRailSettings { file, line: line_at(at), current: rails, by_name }))
}

/// A field of a table, with the place of its name.
struct Field<'a> {
    name: String,
    value: Spanned<DeValue<'a>>,
    at: usize,
}

/// The fields of a table.
fn fields<'a>(value: Spanned<DeValue<'a>>, name: &str) -> Result<Vec<Field<'a>>, TableDefect> {
    let at = value.span().start;
    let DeValue::Table(table) = value.into_inner() else {
        return Err(TableDefect { at, message: format!("{name}: expected a table") });
    };
    let field = |(name, value): (Spanned<_>, _)| {
        let at = name.span().start;
        Field { name: std::borrow::Cow::into_owned(name.into_inner()), value, at }
    };
    Ok(table.into_iter().map(field).collect())
}

/// The name of a rail that has a table, and can be this field of `[rails]`.
fn known(
    value: Spanned<DeValue<'_>>,
    field: &str,
    by_name: &BTreeMap<RailName, NamedRail>,
) -> Result<RailName, TableDefect> {
    let at = value.span().start;
    let wrong = |message: String| TableDefect { at, message: format!("rails.{field}: {message}") };
    let name = value.get_ref().as_str().and_then(RailName::parse).ok_or_else(|| wrong(NAME_EXPECTED.to_owned()))?;
    match by_name.get(&name) {
        Some(rail) if rail.adapter.serves(field) => Ok(name),
        Some(_) => Err(wrong(format!("the kind of [rail.{name}] can't be the {field} rail"))),
        None => Err(wrong(format!("there is no table [rail.{name}]"))),
    }
}

/// The institution of one table `[rail.NAME]`.
fn one(field: Field<'_>, line_at: impl Fn(usize) -> usize) -> Result<(RailName, NamedRail), TableDefect> {
    let Field { name, value, at } = field;
    let name = RailName::parse(&name).ok_or_else(|| TableDefect { at, message: format!("rail: {NAME_EXPECTED}") })?;
    let (table, span) = (format!("rail.{name}"), value.span());
    let mut fields = fields(value, &table)?;
    let mut take = |name: &str| {
        let place = fields.iter().position(|field| field.name == name);
        place.map(|place| fields.swap_remove(place))
    };
    let (kind, callback_url) = (take("kind"), take("callback_url"));
    let given = PARTIES.map(|(name, ..)| take(name));
    let callback_at = callback_url.as_ref().map(|field| field.at);
    let callback_url = callback_url.map(|field| address(&field, &table)).transpose()?;
    let placed = |defect: TableDefect| TableDefect { at: defect.at.max(at), ..defect };
    let adapter = match kind.as_ref().and_then(|field| field.value.get_ref().as_str()) {
        Some("adyen") => AdapterSettings::Adyen(adapter(fields, span, &table).map_err(placed)?),
        Some("api_pix") => AdapterSettings::ApiPix(adapter(fields, span, &table).map_err(placed)?),
        Some("efi") => AdapterSettings::Efi(adapter(fields, span, &table).map_err(placed)?),
        Some("http") => AdapterSettings::Http(adapter(fields, span, &table).map_err(placed)?),
        _ => {
            let at = kind.map_or(at, |field| field.value.span().start);
            return Err(TableDefect { at, message: format!("{table}.kind: expected one of {}", KINDS.join(", ")) });
        }
    };
    let why_none = match adapter {
        AdapterSettings::Efi(_) => Some("transfers are asked about; the table of the API Pix has it"),
        AdapterSettings::Adyen(_) => Some("the address of notifications is set in Adyen's Customer Area"),
        AdapterSettings::ApiPix(_) | AdapterSettings::Http(_) => None,
    };
    if let (Some(why), Some(at)) = (why_none, callback_at) {
        return Err(TableDefect { at, message: format!("{table}.callback_url: {why}") });
    }
    let parties = parties(given, &adapter, &table)?;
    Ok((name, NamedRail { line: line_at(at), callback_url, parties, adapter }))
}

/// A party of a rail's payments: its name in the rail's table, the field of `[rails]` that may name
/// such a rail, its form, and what is said of another form.
type Party = (&'static str, &'static str, fn(&str) -> bool, &'static str);
const PARTIES: [Party; 3] = [
    ("receiver_document", "pix", is_cnpj, CNPJ_EXPECTED),
    ("psp_ispb", "pix", is_ispb, "expected the 8 digits or capital letters of an ISPB, with its zeros"),
    ("acquirer_document", "card", is_cnpj, CNPJ_EXPECTED),
];
const CNPJ_EXPECTED: &str = "expected a CNPJ of 14 digits or capital letters, without punctuation";

/// The parties of a rail's payments, in the order of [`PARTIES`].
fn parties(given: [Option<Field<'_>>; 3], adapter: &AdapterSettings, table: &str) -> Result<RailParties, TableDefect> {
    let mut parties = RailParties::default();
    let RailParties { receiver_document, psp_ispb, acquirer_document } = &mut parties;
    for ((place, field), (name, rail, is_sound, expected)) in
        [receiver_document, psp_ispb, acquirer_document].into_iter().zip(given).zip(PARTIES)
    {
        let Some(Field { value, at, .. }) = field else { continue };
        let wrong = |why: &str| TableDefect { at, message: format!("{table}.{name}: {why}") };
        if !adapter.serves(rail) {
            return Err(wrong(&format!("this kind can't be the {rail} rail")));
        }
        let text = value.get_ref().as_str().filter(|text| is_sound(text)).ok_or_else(|| wrong(expected))?;
        *place = Some(text.to_owned());
    }
    Ok(parties)
}

/// The address at which an institution rings: `https`, with a host, without a slash at the end.
fn address(field: &Field<'_>, table: &str) -> Result<String, TableDefect> {
    let text = field.value.get_ref().as_str().filter(|text| !text.ends_with('/'));
    let uri = text.and_then(|text| text.parse::<Uri>().ok());
    let is_sound = uri.is_some_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some());
    let at = field.value.span().start;
    let message = format!("{table}.callback_url: expected https://HOST and a path without a slash at its end");
    text.filter(|_| is_sound).map(str::to_owned).ok_or(TableDefect { at, message })
}

/// The settings of an adapter.
fn adapter<T: for<'de> Deserialize<'de>>(
    fields: Vec<Field<'_>>,
    span: Range<usize>,
    table: &str,
) -> Result<T, TableDefect> {
    let places: Vec<_> = fields.iter().map(|field| (field.name.clone(), field.at..field.value.span().end)).collect();
    let entries = fields.into_iter().map(|field| (Spanned::new(field.at..field.at, field.name.into()), field.value));
    let entries: DeTable<'_> = entries.collect();
    T::deserialize(Deserializer::from(Spanned::new(span, entries))).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let field = places.iter().find(|(_, place)| place.contains(&at)).map(|(name, _)| name.as_str());
        let message = without_values(error.message());
        let is_named = field.is_none_or(|field| message.contains(&format!("`{field}`")));
        let of = if is_named { table.to_owned() } else { format!("{table}.{}", field.unwrap_or_default()) };
        TableDefect { at, message: format!("{of}: {message}") }
    })
}

/// A message of the reader of a table, without the value that it may repeat.
fn without_values(message: &str) -> String {
    let names_a_field = ["unknown field", "missing field", "duplicate field"];
    if names_a_field.iter().any(|begin| message.starts_with(begin)) {
        return message.to_owned();
    }
    match message.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None => "the value is wrong".to_owned(),
    }
}

/// Settings of the listener on which institutions ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BellSettings {
    /// Address of the listener.
    pub listen: SocketAddr,
    /// Its certificate; plain HTTP without one.
    pub tls: Option<TlsFiles>,
    /// Certificates of the authorities of which callers must show one; PEM.
    pub client_authority: Option<PathBuf>,
    /// File of the secret with which each path begins.
    pub path_secret: Option<PathBuf>,
}

/// Why the settings of institutions are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamedRailsError {
    /// A setting has no meaning without a listener.
    #[error("{0} has no meaning without CENTAVO_RAILS_LISTEN")]
    NoListener(&'static str),
    /// Nobody rings.
    #[error("CENTAVO_RAILS_LISTEN has no meaning without an institution: a table [rail.NAME] of the settings file")]
    NoRail,
    /// An institution would ring where nothing listens.
    #[error("{} at line {line}: rail.{name}.callback_url has no meaning without CENTAVO_RAILS_LISTEN", file.display())]
    NobodyListens {
        /// The settings file.
        file: PathBuf,
        /// Line of the institution's table.
        line: usize,
        /// Its name.
        name: RailName,
    },
    /// Anybody could ring.
    #[error(
        "CENTAVO_RAILS_LISTEN: anybody could call there: set CENTAVO_RAILS_TLS_CLIENT_CA, the authority of the \
         institution's client certificate, or CENTAVO_RAILS_PATH_SECRET_FILE where it shows none"
    )]
    Unguarded,
    /// Client certificates are asked for in TLS alone.
    #[error("CENTAVO_RAILS_TLS_CLIENT_CA has no meaning without CENTAVO_RAILS_TLS_CERT and CENTAVO_RAILS_TLS_KEY")]
    NoTls,
    /// The listener would share the address of another one.
    #[error("the rails' listener can't share the address {0}")]
    SharedAddress(SocketAddr),
    /// Institutions that move money stand beside those that play it.
    #[error(
        "{} at line {line}: a sandbox plays the institutions, so CENTAVO_SANDBOX and the tables [rails] and \
         [rail.NAME] exclude each other", file.display()
    )]
    Sandbox {
        /// The settings file.
        file: PathBuf,
        /// Line of its first table.
        line: usize,
    },
}

impl BellArgs {
    /// Checks the settings; `None` if there is no listener. `others` are the addresses of the
    /// other listeners.
    pub(crate) fn checked(self, has_rails: bool, others: &[SocketAddr]) -> Result<Option<BellSettings>, ConfigError> {
        let names = ["CENTAVO_RAILS_TLS_CERT", "CENTAVO_RAILS_TLS_KEY"];
        let tls = tls_files(names, [self.rails_tls_cert, self.rails_tls_key])?;
        let (client_authority, path_secret) = (self.rails_tls_client_ca, self.rails_path_secret_file);
        let Some(listen) = self.rails_listen else {
            let given = [
                ("CENTAVO_RAILS_TLS_CERT", tls.is_some()),
                ("CENTAVO_RAILS_TLS_CLIENT_CA", client_authority.is_some()),
                ("CENTAVO_RAILS_PATH_SECRET_FILE", path_secret.is_some()),
            ];
            let useless = given.into_iter().find_map(|(variable, is_given)| is_given.then_some(variable));
            return useless.map_or(Ok(None), |variable| Err(NamedRailsError::NoListener(variable).into()));
        };
        if client_authority.is_some() && tls.is_none() {
            return Err(NamedRailsError::NoTls.into());
        }
        if client_authority.is_none() && path_secret.is_none() {
            return Err(NamedRailsError::Unguarded.into());
        }
        if !has_rails {
            return Err(NamedRailsError::NoRail.into());
        }
        if listen.port() != 0 && others.contains(&listen) {
            return Err(NamedRailsError::SharedAddress(listen).into());
        }
        Ok(Some(BellSettings { listen, tls, client_authority, path_secret }))
    }
}

impl NamedRailSettings {
    /// Refuses institutions beside a sandbox, and those that would ring where nothing listens.
    pub(crate) fn fit(&self, is_sandbox: bool, listens: bool) -> Result<(), NamedRailsError> {
        let (file, line) = (self.file.clone(), self.line);
        let unheard = self.by_name.iter().find(|(_, rail)| !listens && rail.callback_url.is_some());
        match unheard {
            _ if is_sandbox => Err(NamedRailsError::Sandbox { file, line }),
            Some((name, NamedRail { line, .. })) => {
                Err(NamedRailsError::NobodyListens { file, line: *line, name: name.clone() })
            }
            None => Ok(()),
        }
    }
}
