//! Addresses that are called: a host and the path that every request's path begins with.

use std::net::IpAddr;

use hyper::Uri;
use hyper::header::HeaderValue;
use tokio_rustls::rustls::pki_types::ServerName;

use super::error::SettingsError;

/// A host and a path at it.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// Name or IP address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The header `Host`.
    pub(crate) authority: HeaderValue,
    /// The name that the host's certificate must have; none without TLS.
    pub(crate) tls_name: Option<ServerName<'static>>,
    /// Without a slash at the end.
    pub(crate) path: String,
}

impl Address {
    /// Reads `https://host[:port][/path]`; `http` is for loopback alone.
    pub(crate) fn parse(setting: &'static str, text: &str) -> Result<Self, SettingsError> {
        let wrong = |defect: &str| SettingsError::setting(setting, defect);
        let uri: Uri = text.parse().map_err(|_| wrong("it is no address"))?;
        let authority = uri.authority().ok_or_else(|| wrong("it has no host"))?;
        if authority.as_str().contains('@') || uri.query().is_some() || text.contains('#') {
            return Err(wrong("it has a user, a query or a fragment"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        let (tls_name, port) = match uri.scheme_str() {
            Some("https") => {
                let name = ServerName::try_from(host.clone()).map_err(|_| wrong("its host has no valid name"))?;
                (Some(name), 443)
            }
            Some("http") if is_loopback => (None, 80),
            _ => return Err(wrong("it must begin with https:// (http:// is for loopback alone)")),
        };
        Ok(Self {
            port: authority.port_u16().unwrap_or(port),
            authority: HeaderValue::try_from(authority.as_str()).map_err(|_| wrong("it has no host"))?,
            tls_name,
            path: uri.path().trim_end_matches('/').to_owned(),
            host,
        })
    }

    /// Another path at the same host.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls_name.is_some()
    }
}
