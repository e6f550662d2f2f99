//! `centavo serve --check`: the settings of a server, the source of each, and their defects. It
//! starts nothing, and makes no file.

use std::any::TypeId;
use std::ffi::OsStr;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use chrono::{DateTime, Utc};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use rustix::fs::{Access, access};

use crate::commands::{Failure, terminal};
use crate::server::checkpoints;
use crate::server::logging::SERVE_FILTER;
use crate::server::named_rails::OpenedRails;
use crate::server::named_rails::settings::BellSettings;
use crate::server::{
    LISTEN_VARIABLE, NO_MASTER_KEY, OPS_LISTEN_VARIABLE, PEER_LISTEN_VARIABLE, RAILS_LISTEN_VARIABLE, StartError,
    unencrypted, unserved, why_not,
};
use crate::settings::args::{ServeArgs, program};
use crate::settings::checked::Settings;
use crate::settings::file::{SettingsFile, is_in_files};
use crate::settings::privacy;
use crate::settings::secrets::{
    self, MASTER_KEY_FILE, OPS_TOKEN_FILE, SecretSource, existing_master_key, ops_tokens_if_any,
};
use nodes::PeerTlsFiles;
use web::tls::{LoadedCertificate, TlsError, TlsFiles};

/// What is wrong with a setting.
enum Defect {
    /// The server would not start.
    Error(String),
    /// The server would start, but not as somebody may expect.
    Warning(String),
}

/// Prints the settings and their defects. Gives whether a server would start with them.
pub async fn run(args: ServeArgs, matches: &ArgMatches, in_file: Option<&SettingsFile>) -> Result<bool, Failure> {
    let matches = matches.subcommand_matches("serve").unwrap_or(matches);
    let file = args.config.clone();
    let settings = args.settings()?;
    let source = |name: &str| {
        let typed =
            matches.try_contains_id(name).is_ok_and(|known| known).then(|| matches.value_source(name)).flatten();
        let variable = format!("CENTAVO_{}", name.to_uppercase());
        match (typed, &file) {
            (Some(ValueSource::CommandLine), _) => format!("--{}", name.replace('_', "-")),
            (Some(ValueSource::EnvVariable), _) => variable,
            _ if name == "operators" => String::new(),
            _ if privacy::variable(&variable).is_some() => variable,
            (_, Some(file)) if in_file.is_some_and(|in_file| in_file.names().any(|in_file| in_file == name)) => {
                file.display().to_string()
            }
            _ => "default".to_owned(),
        }
    };
    // The address of a database may come from the file of a setting.
    let source = |name: &str| match source(name) {
        none if name == "store" && none == "default" => source("store_file"),
        found => found,
    };
    let heading = ["setting", "value", "source"].map(str::to_owned);
    let rows = values(&settings, matches).into_iter().map(|(name, value)| [name.clone(), value, source(&name)]);
    let rows: Vec<_> = [heading].into_iter().chain(rows).collect();
    terminal::aligned(&rows, 3).iter().for_each(|line| terminal::say(line));
    let mut defects = defects(&settings);
    if let Ok(rails) = OpenedRails::open(settings.rails.as_ref()) {
        let warnings = rails.warnings().await.into_iter();
        defects.extend(warnings.map(|(name, warning)| Defect::Warning(format!("rail.{name}: {warning}"))));
    }
    terminal::say("");
    for defect in &defects {
        match defect {
            Defect::Error(text) => terminal::say(&format!("error: {text}")),
            Defect::Warning(text) => terminal::say(&format!("warning: {text}")),
        }
    }
    let starts = !defects.iter().any(|defect| matches!(defect, Defect::Error(_)));
    terminal::say(if starts {
        "A server starts with these settings."
    } else {
        "No server starts with these settings."
    });
    Ok(starts)
}

/// The settings by the names of the file, with values as a person reads them. No secret is shown.
fn values(settings: &Settings, matches: &ArgMatches) -> Vec<(String, String)> {
    let data = std::path::absolute(&settings.data).unwrap_or_else(|_| settings.data.clone());
    let mut rows = Vec::new();
    let program = program();
    let serve = program.find_subcommand("serve").map(clap::Command::get_arguments).into_iter().flatten();
    for arg in serve.filter(|arg| is_in_files(arg)) {
        let name = arg.get_id().as_str();
        let given = if arg.is_hide_env_values_set() { None } else { given(arg, matches) };
        let (name, value) = match name {
            "store" => (name, settings.store.place().to_owned()),
            "data" => (name, data.display().to_string()),
            "store_file" | "ops_token" => continue,
            "ops_token_file" => secret(["ops_token", name], &settings.ops_token, &data.join(OPS_TOKEN_FILE)),
            "master_key_file" => secret(["master_key", name], &settings.master_key, &data.join(MASTER_KEY_FILE)),
            "tls_cert" => (name, certificate(settings.tls.as_ref())),
            "ops_tls_cert" => (name, certificate(settings.ops_tls.as_ref())),
            "rails_tls_cert" => (name, certificate(settings.bells.as_ref().and_then(|bells| bells.tls.as_ref()))),
            "sandbox_dir" => (name, given.unwrap_or_else(|| data.join("sandbox").display().to_string())),
            "checkpoints_to" => (name, given.unwrap_or_else(|| data.join(checkpoints::FOLDER).display().to_string())),
            "partitions" => (name, settings.partitions.to_string()),
            "log" => (name, given.unwrap_or_else(|| SERVE_FILTER.to_owned())),
            name => (name, given.unwrap_or_else(|| "none".to_owned())),
        };
        rows.push((name.to_owned(), value));
    }
    rows.push(("operators".to_owned(), operators(settings)));
    rows.push(("rails".to_owned(), rails(settings)));
    rows
}

/// The value of a flag, wherever it comes from; `None` if it has none.
fn given(arg: &Arg, matches: &ArgMatches) -> Option<String> {
    let name = arg.get_id().as_str();
    if arg.get_value_parser().type_id() == TypeId::of::<bool>() {
        return matches.get_one(name).map(|is_on| if *is_on { "on" } else { "off" }.to_owned());
    }
    let values: Vec<_> = matches.get_raw(name)?.map(OsStr::to_string_lossy).collect();
    Some(values.join(","))
}

/// The rails of new orders, and the names of all.
fn rails(settings: &Settings) -> String {
    let Some(rails) = &settings.rails else { return "none".to_owned() };
    let all: Vec<_> = rails.by_name.keys().map(ToString::to_string).collect();
    format!("{} (of {})", rails.current, all.join(","))
}

fn secret<'a>([text, file]: [&'a str; 2], source: &SecretSource, made: &Path) -> (&'a str, String) {
    match source {
        SecretSource::Text(_) => (text, "(given, not shown)".to_owned()),
        SecretSource::File(path) => (file, path.display().to_string()),
        SecretSource::Data if made.exists() => (file, made.display().to_string()),
        SecretSource::Data => (file, format!("{}, which the start makes", made.display())),
    }
}

/// The names of the operators, as far as their tokens can be read.
fn operators(settings: &Settings) -> String {
    let tokens = ops_tokens_if_any(&settings.ops_token, &settings.data).ok().flatten();
    tokens.map_or_else(String::new, |tokens| tokens.names().collect::<Vec<_>>().join(","))
}

fn defects(settings: &Settings) -> Vec<Defect> {
    let mut defects = taken_addresses(settings);
    let peers = settings.peers.as_ref();
    defects.extend(unwritable("data directory", &settings.data).map(Defect::Error));
    let institutions = settings.sandbox_dir.as_ref().filter(|_| settings.sandbox);
    let institutions = institutions.and_then(|folder| unwritable("directory of the sandbox", folder));
    defects.extend(institutions.map(Defect::Error));
    let key = existing_master_key(&settings.master_key, &settings.data);
    if settings.store.is_postgres() {
        let text = "the database was not asked: whether it answers, and what it demands, shows at the start";
        defects.push(Defect::Warning(text.to_owned()));
        if settings.master_key == SecretSource::Data {
            defects.push(Defect::Error(NO_MASTER_KEY.to_owned()));
        }
    }
    match key {
        Ok(None) if settings.data.join("journal").exists() => {
            let path = settings.data.join(MASTER_KEY_FILE);
            defects.push(Defect::Error(format!("{} is missing beside data that it encrypts", path.display())));
        }
        Ok(_) => {}
        Err(error) => defects.push(Defect::Error(error.to_string())),
    }
    let tokens = ops_tokens_if_any(&settings.ops_token, &settings.data);
    match tokens.map(|tokens| tokens.map(|tokens| tokens.with_roles(&settings.ops_roles)).transpose()) {
        Ok(roles) => defects.extend(roles.err().map(|error| Defect::Error(error.to_string()))),
        Err(error) => defects.push(Defect::Error(error.to_string())),
    }
    defects.extend(readable_by_others(settings).map(Defect::Warning));
    if !settings.sandbox {
        let rails = settings.rails.as_ref().map(|rails| rails.current.clone()).unwrap_or_default();
        let has = [rails.card, rails.pix, rails.payout].map(|rail| rail.is_some());
        defects.extend(unserved(has).map(Defect::Warning));
        if settings.data.join("sandbox").is_dir() {
            let data = settings.data.display();
            let text = format!("{data} has served a sandbox: if something was booked there, it does not open without");
            defects.push(Defect::Warning(text));
        }
    }
    let listeners = [
        (LISTEN_VARIABLE, settings.listen, &settings.tls),
        (OPS_LISTEN_VARIABLE, settings.ops_listen, &settings.ops_tls),
    ];
    for (variable, address, tls) in listeners {
        defects.extend(unencrypted(variable, address, tls.is_some()).map(Defect::Warning));
        defects.extend(tls.as_ref().and_then(|files| of_certificate(variable, files.load())));
    }
    defects.extend(of_rails(settings));
    if let Some(PeerTlsFiles { own, authority }) = peers.and_then(|peers| peers.tls.as_ref()) {
        defects.extend(of_certificate(PEER_LISTEN_VARIABLE, own.load_for(Some(authority))));
    }
    if let Some(schedule) = &settings.checkpoints
        && !schedule.is_own
        && !schedule.folder.is_dir()
    {
        let text = format!("CENTAVO_CHECKPOINTS_TO: {} is no folder, and is not made", schedule.folder.display());
        defects.push(Defect::Warning(text));
    }
    let unlimited = || Defect::Warning("requests and refused cards are not limited".to_owned());
    defects.extend(settings.rate_limits.is_none().then(unlimited));
    defects
}

/// The listeners that can't be opened at their addresses.
fn taken_addresses(settings: &Settings) -> Vec<Defect> {
    let peers = settings.peers.as_ref().map(|peers| (PEER_LISTEN_VARIABLE, peers.listen));
    let bells = settings.bells.as_ref().map(|bells| (RAILS_LISTEN_VARIABLE, bells.listen));
    let listeners = [(LISTEN_VARIABLE, settings.listen), (OPS_LISTEN_VARIABLE, settings.ops_listen)];
    let all = listeners.into_iter().chain(peers).chain(bells);
    all.filter_map(|(variable, address)| not_free(variable, address)).map(Defect::Error).collect()
}

/// The defects of institutions, and of the listener on which they ring.
fn of_rails(settings: &Settings) -> Vec<Defect> {
    let mut defects = Vec::new();
    match OpenedRails::open(settings.rails.as_ref()) {
        Err(error) => defects.push(Defect::Error(error.to_string())),
        Ok(rails) => defects.extend(rails.ends().filter_map(|(name, end)| expiry(&format!("rail.{name}"), end))),
    }
    let Some(BellSettings { listen, tls, client_authority, path_secret }) = &settings.bells else { return defects };
    defects.extend(unencrypted(RAILS_LISTEN_VARIABLE, *listen, tls.is_some()).map(Defect::Warning));
    let loaded = tls.as_ref().map(|files| files.load_for(client_authority.as_ref()));
    defects.extend(loaded.and_then(|loaded| of_certificate(RAILS_LISTEN_VARIABLE, loaded)));
    let secret = path_secret.as_ref().and_then(|path| secrets::path_secret(path).err());
    defects.extend(secret.map(|error| Defect::Error(error.to_string())));
    defects
}

/// The files of secrets and of private keys that others than their owner may read.
fn readable_by_others(settings: &Settings) -> impl Iterator<Item = String> {
    let files = [
        settings.ops_token.path(&settings.data, OPS_TOKEN_FILE),
        settings.master_key.path(&settings.data, MASTER_KEY_FILE),
        settings.tls.as_ref().map(|files| files.key.clone()),
        settings.ops_tls.as_ref().map(|files| files.key.clone()),
        settings.bells.as_ref().and_then(|bells| bells.tls.as_ref()).map(|files| files.key.clone()),
    ];
    files.into_iter().flatten().filter_map(|path| {
        let mode = fs::metadata(&path).map_or(0, |metadata| metadata.permissions().mode());
        let text = || format!("{}: others than its owner may read it (mode {:03o})", path.display(), mode & 0o777);
        (mode & 0o077 != 0).then(text)
    })
}

fn certificate(files: Option<&TlsFiles>) -> String {
    let end = |files: &TlsFiles| files.load().ok().and_then(|loaded| DateTime::from_timestamp(loaded.expires_at, 0));
    files.map_or_else(
        || "none".to_owned(),
        |files| match end(files) {
            Some(end) => format!("{}, valid until {}", files.certificates.display(), end.date_naive()),
            None => files.certificates.display().to_string(),
        },
    )
}

/// The defect of a listener's certificate, if it has one.
fn of_certificate(variable: &str, loaded: Result<LoadedCertificate, TlsError>) -> Option<Defect> {
    match loaded {
        Ok(LoadedCertificate { expires_at, .. }) => expiry(variable, expires_at),
        Err(error) => Some(Defect::Error(error.to_string())),
    }
}

/// The defect of a certificate that has ended, or ends soon.
fn expiry(variable: &str, expires_at: i64) -> Option<Defect> {
    let days = (expires_at - Utc::now().timestamp()).div_euclid(86_400);
    match days {
        ..0 => Some(Defect::Error(format!("{variable}: its certificate is no longer valid"))),
        0..CERTIFICATE_DAYS_MIN => Some(Defect::Warning(format!("{variable}: its certificate ends in {days} days"))),
        _ => None,
    }
}

/// Days of validity below which a certificate should have been renewed.
const CERTIFICATE_DAYS_MIN: i64 = 14;

/// Why a listener cannot be opened at an address.
fn not_free(variable: &'static str, address: SocketAddr) -> Option<String> {
    let source = TcpListener::bind(address).err()?;
    Some(StartError::Listen { variable, address, source }.to_string())
}

/// Why nothing can be written to a directory. Where it does not exist, its nearest ancestor counts.
fn unwritable(what: &str, folder: &Path) -> Option<String> {
    let folder = std::path::absolute(folder).ok()?;
    let nearest = folder.ancestors().find(|path| path.exists())?;
    if !nearest.is_dir() {
        return Some(format!("the {what} {}: {} is no directory", folder.display(), nearest.display()));
    }
    let error = access(nearest, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("the {what} {}: it can't be written to: {}", folder.display(), why_not(&error.into())))
}
