//! Address of a database, as hosts of databases print it.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// An address of a database: `postgres://user:password@host:port/database?…`.
///
/// Its text shows host, port and database, never the password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    config: Config,
    /// A PEM file of the authorities to trust instead of the system's.
    authorities: Option<PathBuf>,
    place: String,
}

impl PostgresAddress {
    /// Parses an address. Of several hosts with commas between them one that takes writes is used,
    /// and none that was replaced as far as this process knows. TLS is required of a host that is
    /// not this machine, unless the address says `sslmode=disable`; the host's certificate is
    /// always checked. Settings of libpq that would change nothing here are taken; others are
    /// refused, with what to write instead.
    pub fn parse(address: &str) -> Result<Self, String> {
        let (before_settings, settings) = address.split_once('?').unwrap_or((address, ""));
        if before_settings.contains("://") && before_settings.matches('@').count() > 1 {
            return Err("it has more than one @: one in a user or a password is written %40".to_owned());
        }
        let mut authorities = None;
        let mut passed_on = Vec::new();
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            match read(name, value)? {
                Setting::PassedOn(setting) => passed_on.push(setting),
                Setting::Authorities(file) => authorities = Some(file),
                Setting::WithoutEffect => {}
            }
        }
        let question = if passed_on.is_empty() { "" } else { "?" };
        let address = format!("{before_settings}{question}{}", passed_on.join("&"));
        let mut config: Config = address.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            cause.unwrap_or_else(|| error.to_string())
        })?;
        if config.get_hosts().is_empty() {
            return Err("it names no host".to_owned());
        }
        let ports = config.get_ports();
        let names = config.get_hosts().iter().enumerate().map(|(at, host)| match ports.get(at).or(ports.first()) {
            Some(port) => format!("{}:{port}", named(host)),
            None => named(host),
        });
        let names: Vec<_> = names.collect();
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default().to_owned();
        let place = format!("postgres://{}/{database}", names.join(","));
        if config.get_ssl_mode() == SslMode::Prefer {
            let is_local = config.get_hosts().iter().all(is_local);
            config.ssl_mode(if is_local { SslMode::Disable } else { SslMode::Require });
        }
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        Ok(Self { config, authorities, place })
    }

    /// Host, port and database, without the user and the password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether it names more than one server.
    pub fn has_several_hosts(&self) -> bool {
        self.config.get_hosts().len() > 1
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn authorities(&self) -> Option<&PathBuf> {
        self.authorities.as_ref()
    }
}

impl std::fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.place)
    }
}

/// What a setting behind the `?` is here.
enum Setting {
    /// For the library, as it stands here.
    PassedOn(String),
    /// A file of the authorities to trust.
    Authorities(PathBuf),
    /// It asks for what is done anyway.
    WithoutEffect,
}

/// Settings that the library reads.
const PASSED_ON: [&str; 16] = [
    "user",
    "password",
    "dbname",
    "host",
    "hostaddr",
    "port",
    "options",
    "application_name",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "channel_binding",
    "sslnegotiation",
];

fn read(name: &str, value: &str) -> Result<Setting, String> {
    let instead = |instead: &str| Err(format!("{name}={value} is not taken: {instead}"));
    match (name, value) {
        // All of these check the certificate here, which the library knows as `require` alone.
        ("sslmode", "verify-full" | "verify-ca" | "require") => Ok(Setting::PassedOn("sslmode=require".to_owned())),
        // TLS where the host is another machine.
        ("sslmode", "allow" | "prefer") => Ok(Setting::PassedOn("sslmode=prefer".to_owned())),
        ("sslmode", "disable") => Ok(Setting::PassedOn("sslmode=disable".to_owned())),
        ("sslmode", _) => instead("write sslmode=verify-full, or sslmode=disable on a network of your own"),
        ("sslrootcert", "system") => Ok(Setting::WithoutEffect),
        ("sslrootcert", _) => Ok(Setting::Authorities(PathBuf::from(unescaped(value)))),
        ("target_session_attrs", "read-write" | "primary" | "any") => Ok(Setting::WithoutEffect),
        ("target_session_attrs", _) => instead("the books are written: write target_session_attrs=primary"),
        ("gssencmode", "disable" | "prefer") => Ok(Setting::WithoutEffect),
        ("gssencmode", _) => instead("there is no encryption by GSS here: write sslmode=verify-full"),
        // The library's name for a count is another one than libpq's.
        ("keepalives_count", _) => Ok(Setting::PassedOn(format!("keepalives_retries={value}"))),
        ("ssl_min_protocol_version", "TLSv1" | "TLSv1.1" | "TLSv1.2") | ("sslsni", "1") | ("sslcompression", "0") => {
            Ok(Setting::WithoutEffect)
        }
        ("client_encoding", "utf8" | "UTF8" | "UTF-8" | "utf-8" | "auto") => Ok(Setting::WithoutEffect),
        ("fallback_application_name", _) | ("load_balance_hosts", "disable") => Ok(Setting::WithoutEffect),
        ("passfile", _) => Err("passfile is not read: write the password into the address, keep that in a file, and \
                                name it with CENTAVO_STORE_FILE"
            .to_owned()),
        ("sslcert" | "sslkey" | "sslpassword" | "sslcertmode", _) => {
            Err(format!("{name} is not taken: there are no certificates of clients here, use a password"))
        }
        ("pgbouncer", _) => Err("pgbouncer is a setting of other programs: leave it out, and use a pooler in session \
                                 mode alone"
            .to_owned()),
        (name, _) if PASSED_ON.contains(&name) => Ok(Setting::PassedOn(format!("{name}={value}"))),
        (name, _) => Err(format!("`{name}` is no setting that is read here: leave it out")),
    }
}

/// A text whose bytes may be written `%2F`.
fn unescaped(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The name of a host, or the folder of its socket.
pub(super) fn named(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback()),
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_hosts_print_them() {
        let mode = |address: &str| PostgresAddress::parse(address).unwrap().config.get_ssl_mode();
        for taken in [
            "sslmode=require&channel_binding=require",
            "sslmode=verify-full&sslrootcert=system",
            "sslmode=verify-ca&target_session_attrs=primary",
            "target_session_attrs=read-write&gssencmode=disable",
            "sslmode=allow",
            "sslmode=prefer&connect_timeout=10&keepalives=1&keepalives_idle=30&keepalives_count=3",
            "client_encoding=utf8&fallback_application_name=psql&sslsni=1",
        ] {
            assert_eq!(mode(&format!("postgresql://u:p@db.example/books?{taken}")), SslMode::Require, "{taken}");
        }
        assert_eq!(mode("postgres://localhost/books?sslmode=allow"), SslMode::Disable);
        let address = PostgresAddress::parse("postgres://db/books?sslrootcert=%2Fetc%2Fca%20of.pem").unwrap();
        assert_eq!(address.authorities(), Some(&PathBuf::from("/etc/ca of.pem")));
        for (refused, instead) in [
            ("sslmode=maybe", "sslmode=verify-full"),
            ("passfile=/root/.pgpass", "CENTAVO_STORE_FILE"),
            ("target_session_attrs=standby", "target_session_attrs=primary"),
            ("gssencmode=require", "sslmode=verify-full"),
            ("sslcert=a.pem", "use a password"),
            ("pgbouncer=true", "session mode"),
            ("schema=public", "`schema` is no setting that is read here"),
        ] {
            let error = PostgresAddress::parse(&format!("postgres://u:geheim@db/books?{refused}")).unwrap_err();
            assert!(error.contains(instead) && !error.contains("geheim"), "{error}");
        }
    }
}
