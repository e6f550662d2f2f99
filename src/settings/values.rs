//! Values of flags, read from their text.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};

use chrono::NaiveDate;
use store::{Cut, Partition, Sequence};
use tracing_subscriber::EnvFilter;
use wire::timestamp::day;

/// Reads an address to listen on: `127.0.0.1:8080`, `[::1]:8080`, a name such as `localhost:8080`,
/// or `:8080` for all addresses.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    const EXPECTED: &str =
        "expected an address and a port, such as 127.0.0.1:8080, localhost:8080, [::1]:8080 or :8080";
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or(EXPECTED)?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let wrong_port = |_| if is_number { format!("the port {port} is not 0 to 65535") } else { EXPECTED.to_owned() };
    let port: u16 = port.parse().map_err(wrong_port)?;
    if host.is_empty() {
        return Ok(SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), port));
    }
    let found: Vec<_> =
        (host, port).to_socket_addrs().map_err(|error| format!("{host}: {error}; {EXPECTED}"))?.collect();
    // IPv4 is preferred, because the defaults are IPv4.
    let found = found.iter().find(|address| address.is_ipv4()).or(found.first()).copied();
    found.ok_or_else(|| format!("{host} has no address; {EXPECTED}"))
}

/// Checks a filter of the log. A word alone must be a level: a misspelled level would be read as
/// the name of a module, and silence all others.
pub(super) fn log_filter(text: &str) -> Result<String, String> {
    let expected = |what: &str| {
        format!(
            "`{what}` is no level (off, error, warn, info, debug, trace) and no module=level, as in info,centavo=debug"
        )
    };
    let directives: Vec<_> = text.split(',').map(str::trim).collect();
    for directive in &directives {
        let level = directive.rsplit_once('=').map_or(*directive, |(_, level)| level);
        if !["off", "error", "warn", "info", "debug", "trace"].contains(&level.to_ascii_lowercase().as_str()) {
            return Err(expected(directive));
        }
    }
    let filter = directives.join(",");
    EnvFilter::try_new(&filter).map_err(|error| error.to_string())?;
    Ok(filter)
}

/// A cut: the last Record, or `0=42,1=17`, the last one of each partition.
pub(super) fn cut(text: &str) -> Result<Cut, String> {
    let cut = match text.parse::<u64>() {
        Ok(last) if last < u64::MAX => Ok(Cut::new(vec![Sequence(last)])),
        _ => text.parse::<Cut>().map_err(|error| error.to_string()),
    };
    cut.and_then(|cut| if cut.is_empty() { Err("no Record counts".to_owned()) } else { Ok(cut) })
}

/// The last Record of each partition that an operator counts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRecords(pub(super) BTreeMap<Partition, Sequence>);

/// Reads `42`, or `0=42,1=17`; 0 is no Record.
pub(super) fn last_records(text: &str) -> Result<LastRecords, String> {
    let one = |text: &str| {
        let (partition, record) = text.split_once('=').unwrap_or(("0", text));
        Some((Partition(partition.parse().ok()?), Sequence(record.parse().ok()?)))
    };
    let records: Option<_> = text.split(',').map(one).collect();
    records.map(LastRecords).ok_or_else(|| "the last Records are written like 42, or 0=42,1=17".to_owned())
}

pub(super) fn date(text: &str) -> Result<NaiveDate, &'static str> {
    day(text).ok_or("a day is written like 2026-07-01")
}
