//! Address checks of webhooks (protection against server-side request forgery). Webhooks go to
//! public addresses over https. A try connects to the address that was checked, and does not look
//! the name up again: otherwise a merchant could make this server call machines of its own network.
//!
//! Networks that the operator allows (`CENTAVO_WEBHOOK_ALLOW`) may be private and plain http. Every
//! port is allowed: the first bytes sent are a TLS handshake, in which the merchant chooses nothing
//! that another protocol would read as a command.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use axum::http::Uri;
use axum::http::uri::Scheme;
use ipnet::IpNet;

/// Why an address is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is no URL such as `https://example.com/hook`.
    #[error("it is no URL of http or https with a host")]
    NotAUrl,
    /// It contains a user name or a password.
    #[error("it names a user")]
    NamesAUser,
    /// The scheme is not https, and the operator does not allow the network.
    #[error("it is not https")]
    NotHttps,
    /// None of the host's addresses is public or allowed.
    #[error("it is no public address")]
    NotPublic,
    /// The host has no address.
    #[error("the host has no address")]
    Unknown,
}

/// Target of a webhook: the parts of its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Whether the scheme is https.
    pub(super) is_https: bool,
    /// The host: a name, or an address without brackets.
    pub(super) host: String,
    /// The port; the scheme's default when the URL has none.
    pub(super) port: u16,
    /// The `Host` header.
    pub(super) authority: String,
    /// Path and query.
    pub(super) path: String,
}

impl Target {
    /// Reads a URL.
    pub(super) fn parse(url: &str) -> Result<Self, Refusal> {
        let uri: Uri = url.parse().map_err(|_| Refusal::NotAUrl)?;
        let is_https = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(Refusal::NotAUrl),
        };
        let authority = uri.authority().ok_or(Refusal::NotAUrl)?;
        if authority.as_str().contains('@') {
            return Err(Refusal::NamesAUser);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let is_bracketed = authority.host().starts_with('[');
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
            "" if is_https => 443,
            "" => 80,
            text => text.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or(Refusal::NotAUrl)?,
        };
        if port == 0 {
            return Err(Refusal::NotAUrl);
        }
        if host.is_empty() || is_bracketed && host.parse::<Ipv6Addr>().is_err() {
            return Err(Refusal::NotAUrl);
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { is_https, host, port, authority: authority.as_str().to_owned(), path })
    }
}

/// How long a look-up may take when an address is set. A slower name is checked when it is called.
const LOOK_UP_MAX: Duration = Duration::from_secs(2);

/// How long the result of a look-up is used.
const ADDRESSES_KEPT: Duration = Duration::from_secs(5);

/// Addresses of one endpoint for the tries of the next seconds, so that many tries at once share
/// one look-up.
#[derive(Debug, Default)]
pub(super) struct Addresses(tokio::sync::Mutex<Option<ResolvedAddresses>>);

#[derive(Debug)]
struct ResolvedAddresses {
    target: Target,
    at: Instant,
    addresses: Vec<SocketAddr>,
}

/// Checks addresses against the public internet and the networks that the operator allows.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    allowed: Vec<IpNet>,
}

impl Guard {
    /// A guard that allows these networks beside the public ones.
    pub(super) fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// Checks an address that a merchant sets. A name of https that can't be looked up now is
    /// accepted: every try checks again. One of http must be in a network that is allowed.
    pub(super) async fn check(&self, url: &str) -> Result<(), Refusal> {
        let target = Target::parse(url)?;
        if !target.is_https && self.allowed.is_empty() {
            return Err(Refusal::NotHttps);
        }
        match tokio::time::timeout(LOOK_UP_MAX, self.look_up(&target)).await {
            Ok(Err(Refusal::Unknown)) | Err(_) if target.is_https => Ok(()),
            Ok(Err(Refusal::Unknown)) | Err(_) => Err(Refusal::NotHttps),
            Ok(found) => found.map(drop),
        }
    }

    /// The addresses of a target that may be called; those of the last look-up, if it is recent.
    pub(super) async fn look_up_once(&self, target: &Target, cache: &Addresses) -> Result<Vec<SocketAddr>, Refusal> {
        let mut cache = cache.0.lock().await;
        let is_fresh = |found: &&ResolvedAddresses| found.target == *target && found.at.elapsed() < ADDRESSES_KEPT;
        if let Some(found) = cache.as_ref().filter(is_fresh) {
            return Ok(found.addresses.clone());
        }
        let addresses = self.look_up(target).await?;
        *cache = Some(ResolvedAddresses { target: target.clone(), at: Instant::now(), addresses: addresses.clone() });
        Ok(addresses)
    }

    /// The addresses of a target that may be called.
    async fn look_up(&self, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        let found: Vec<_> = match target.host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, target.port)],
            Err(_) => {
                let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
                found.map_err(|_| Refusal::Unknown)?.collect()
            }
        };
        if found.is_empty() {
            return Err(Refusal::Unknown);
        }
        let admitted: Vec<_> =
            found.iter().copied().filter(|address| self.admits(address.ip(), target.is_https)).collect();
        let is_public = found.iter().any(|address| is_public(address.ip()));
        match admitted.is_empty() {
            false => Ok(admitted),
            true if is_public => Err(Refusal::NotHttps),
            true => Err(Refusal::NotPublic),
        }
    }

    fn admits(&self, address: IpAddr, is_https: bool) -> bool {
        // A network contains addresses of its own family: an IPv4 address written as IPv6 counts as
        // IPv4.
        let canonical = address.to_canonical();
        self.allowed.iter().any(|network| network.contains(&canonical)) || is_https && is_public(address)
    }
}

/// Whether an address belongs to the public internet. Not public are the special-purpose addresses
/// (RFC 6890 and its successors), and those that embed another address (6to4, Teredo, NAT64).
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        (0 | 10 | 127, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18..=19, _)
            | (198, 51, 100)
            | (203, 0, 113)
            | (224.., ..)
    );
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, _, _, e, f, ..] = address.segments();
    let is_global_unicast = a & 0xE000 == 0x2000;
    let is_special = matches!((a, b), (0x2001, 0..=0x01FF) | (0x2001, 0x0DB8) | (0x2002, _) | (0x3FFF, 0..=0x0FFF));
    // ISATAP: an IPv4 address in the lower half.
    let is_tunnel = matches!((e, f), (0 | 0x0200, 0x5EFE));
    is_global_unicast && !is_special && !is_tunnel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_internet_is_public() {
        let cases = [
            ("1.1.1.1", true),
            ("8.8.8.8", true),
            ("100.63.255.255", true),
            ("100.128.0.1", true),
            ("172.15.0.1", true),
            ("172.32.0.1", true),
            ("192.0.1.1", true),
            ("198.17.0.1", true),
            ("198.20.0.1", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("127.0.0.1", false),
            ("127.1.2.3", false),
            ("169.254.169.254", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.51.100.7", false),
            ("203.0.113.7", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("2606:4700::1111", true),
            ("2a00:1450:4001::1", true),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::808:808", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:2::1", false),
            ("2001:20::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::", false),
            ("2002:808:808::", false),
            ("3fff::1", false),
            ("2a00::5efe:7f00:1", false),
            ("2a00::200:5efe:7f00:1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd12:3456::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ];
        for (address, expected) in cases {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_target_is_read_or_refused() {
        let target = Target::parse("https://example.com/hook?a=1").unwrap();
        let expected = (true, "example.com", 443, "example.com", "/hook?a=1");
        let Target { is_https, host, port, authority, path } = &target;
        assert_eq!((*is_https, host.as_str(), *port, authority.as_str(), path.as_str()), expected);
        let target = Target::parse("http://[::1]:8080").unwrap();
        assert_eq!((target.host.as_str(), target.port, target.path.as_str()), ("::1", 8080, "/"));
        for (url, refusal) in [
            ("", Refusal::NotAUrl),
            ("example.com", Refusal::NotAUrl),
            ("/hook", Refusal::NotAUrl),
            ("ftp://example.com", Refusal::NotAUrl),
            ("file:///etc/passwd", Refusal::NotAUrl),
            ("https://", Refusal::NotAUrl),
            ("https:///hook", Refusal::NotAUrl),
            ("https://example.com:0/", Refusal::NotAUrl),
            ("https://example.com:99999/", Refusal::NotAUrl),
            ("https://[::1%25eth0]/", Refusal::NotAUrl),
            ("https://user@example.com/", Refusal::NamesAUser),
            ("https://user:secret@example.com/", Refusal::NamesAUser),
            ("https://127.0.0.1@example.com/", Refusal::NamesAUser),
        ] {
            assert_eq!(Target::parse(url).unwrap_err(), refusal, "{url}");
        }
    }

    #[tokio::test]
    async fn what_may_be_set_follows_from_scheme_and_address() {
        let allowing =
            |networks: &[&str]| Guard::new(networks.iter().map(|network| network.parse().unwrap()).collect());
        let cases: [(&[&str], &str, Result<(), Refusal>); 16] = [
            (&[], "https://1.1.1.1/hook", Ok(())),
            (&[], "https://[2606:4700::1111]/hook", Ok(())),
            (&[], "http://1.1.1.1/hook", Err(Refusal::NotHttps)),
            (&[], "https://127.0.0.1/", Err(Refusal::NotPublic)),
            (&[], "https://localhost/", Err(Refusal::NotPublic)),
            (&[], "https://2130706433/", Err(Refusal::NotPublic)),
            (&[], "https://0x7f.1/", Err(Refusal::NotPublic)),
            (&[], "https://[::ffff:169.254.169.254]/", Err(Refusal::NotPublic)),
            (&["127.0.0.0/8"], "http://127.0.0.1:9000/", Ok(())),
            (&["127.0.0.0/8"], "https://127.0.0.1:9000/", Ok(())),
            (&["127.0.0.0/8"], "http://[::ffff:127.0.0.1]:9000/", Ok(())),
            (&["127.0.0.0/8"], "http://10.0.0.1/", Err(Refusal::NotPublic)),
            (&["127.0.0.0/8"], "http://1.1.1.1/", Err(Refusal::NotHttps)),
            (&["10.0.0.0/8"], "http://127.0.0.1/", Err(Refusal::NotPublic)),
            // A name that nobody has.
            (&["127.0.0.0/8"], "http://nobody.invalid/", Err(Refusal::NotHttps)),
            (&["127.0.0.0/8"], "https://nobody.invalid/", Ok(())),
        ];
        for (networks, url, expected) in cases {
            assert_eq!(allowing(networks).check(url).await, expected, "{url} with {networks:?}");
        }
    }

    /// Inner addresses in all ways of writing them, and hosts that are no hosts.
    const INNER_HOSTS: [&str; 120] = [
        // This machine.
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "127.255.255.254",
        "localhost",
        "LOCALHOST",
        "LocalHost",
        "localhost.",
        "0",
        "0.0.0.0",
        "0.0.0.1",
        "0x0",
        "00",
        "2130706433",
        "2130706434",
        "0x7f000001",
        "0X7F000001",
        "0x7f.0x0.0x0.0x1",
        "0x7f.0.0.1",
        "0x7f.1",
        "0177.0.0.1",
        "0177.0.0.01",
        "0177.1",
        "017700000001",
        "00000177.0.0.1",
        "127.0.0.0x1",
        "127.0x0.0.1",
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[0000:0000:0000:0000:0000:0000:0000:0001]",
        "[::0001]",
        "[::127.0.0.1]",
        "[::7f00:1]",
        "[::ffff:127.0.0.1]",
        "[::FFFF:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::ffff:0.0.0.0]",
        "[::ffff:0:127.0.0.1]",
        // Private networks.
        "10.0.0.0",
        "10.0.0.1",
        "10.255.255.255",
        "10.1",
        "012.0.0.1",
        "0xa.0.0.1",
        "0x0a000001",
        "167772161",
        "172.16.0.1",
        "172.31.255.255",
        "172.16.1",
        "0xac.0x10.0.1",
        "2886729729",
        "192.168.0.1",
        "192.168.1.254",
        "192.168.1",
        "192.168.65535",
        "0300.0250.0.1",
        "0xc0a80001",
        "3232235521",
        "[::ffff:10.0.0.1]",
        "[::ffff:a00:1]",
        "[::ffff:172.16.0.1]",
        "[::ffff:192.168.0.1]",
        "[::ffff:c0a8:1]",
        "[fc00::]",
        "[fc00::1]",
        "[fd00::1]",
        "[fd00:ec2::254]",
        "[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
        "[fec0::1]",
        // Link-local, and the metadata service of clouds.
        "169.254.0.1",
        "169.254.169.254",
        "169.254.43518",
        "169.16689662",
        "0xa9fea9fe",
        "0xa9.0xfe.0xa9.0xfe",
        "0251.0376.0251.0376",
        "2852039166",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[fe80::1]",
        "[fe80::a9fe:a9fe]",
        "[febf::1]",
        "100.100.100.200",
        "192.0.0.192",
        // Shared, reserved, multicast, broadcast.
        "100.64.0.1",
        "100.127.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "4294967295",
        "[ff02::1]",
        "[2001:db8::1]",
        // IPv4 addresses within IPv6 ones.
        "[64:ff9b::7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::a00:1]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::]",
        "[2001:0:7f00:1::]",
        "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
        "[2a00::5efe:a00:1]",
        // Names of users that look like hosts, and what is no host.
        "1.1.1.1@127.0.0.1",
        "1.1.1.1:80@127.0.0.1",
        "1.1.1.1\\@127.0.0.1",
        "127.0.0.1\\.example.com",
        "[::1%25lo]",
        "[fe80::1%25eth0]",
        "[127.0.0.1]",
        "[::1]x",
        "[[::1]]",
    ];

    /// None is called, whatever the operating system reads it as.
    #[tokio::test]
    async fn no_way_of_writing_an_inner_address_is_called() {
        let guard = Guard::default();
        for host in INNER_HOSTS {
            for url in [format!("https://{host}/"), format!("http://{host}/"), format!("https://{host}:8081/ops")] {
                let found = match Target::parse(&url) {
                    Ok(target) => guard.look_up(&target).await,
                    Err(refusal) => Err(refusal),
                };
                assert!(found.is_err(), "{url} would be called at {found:?}");
            }
        }
    }
}
