//! CIDR networks of a setting, and the address at which a listener of this machine can be called.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

/// The text is neither a CIDR network nor an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network such as 10.0.0.0/8 or ::1/128")]
pub struct NetworkError(String);

/// Reads a CIDR network such as `10.0.0.0/8`. A bare address is a network of one address.
pub fn network(text: &str) -> Result<IpNet, NetworkError> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    network.map_err(|_| NetworkError(text.to_owned()))
}

/// The address at which a listener of this machine can be called. A listener on every address
/// (`0.0.0.0` or `::`) is called on the loopback address.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The innermost source of an HTTP client's error, such as "Connection refused". The outer ones
/// only repeat the URL.
pub fn root_cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_address_is_a_network_of_one() {
        for (text, expected) in [("127.0.0.1", "127.0.0.1/32"), ("::1", "::1/128"), ("10.1.2.3/8", "10.1.2.3/8")] {
            assert_eq!(network(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn a_listener_on_every_address_is_called_on_the_loopback() {
        for (listening, called) in
            [("0.0.0.0:8080", "127.0.0.1:8080"), ("[::]:8080", "[::1]:8080"), ("10.0.0.7:80", "10.0.0.7:80")]
        {
            assert_eq!(reachable(listening.parse().unwrap()).to_string(), called);
        }
    }

    #[test]
    fn a_text_that_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "::1/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/+8", "localhost", "10.0.0.0/8/8"]
        {
            assert_eq!(network(text), Err(NetworkError(text.to_owned())));
        }
    }
}
