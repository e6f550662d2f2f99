//! Blocks of internet addresses, as operators write them: `10.0.0.0/8`, `::1/128`, or one bare address; and where a listener is called.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// A block of addresses in CIDR notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

/// Why a text is no block of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network such as 10.0.0.0/8 or ::1/128")]
pub struct NetworkError(String);

impl Network {
    /// Whether an address lies in the block. An IPv4 address written as IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_bits)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_bits)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let refused = || NetworkError(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refused())?;
        let bits = if address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
        let prefix_bits = match prefix {
            Some(prefix) if prefix.bytes().all(|byte| byte.is_ascii_digit()) => {
                prefix.parse().map_err(|_| refused())?
            }
            Some(_) => return Err(refused()),
            None => bits as u8,
        };
        if u32::from(prefix_bits) > bits {
            return Err(refused());
        }
        Ok(Network { address, prefix_bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix_bits)
    }
}

/// The address at which a listener of this machine is called: a listener on every address is called on the loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        let cases = [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("::1/128", "::1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "2001:db8::1", true),
        ];
        for (network, address, contained) in cases {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), contained, "{network} {address}");
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
    fn what_is_no_network_is_refused() {
        for text in ["", "10.0.0.0/33", "::1/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/+8", "localhost", "10.0.0.0/8/8"]
        {
            assert_eq!(text.parse::<Network>(), Err(NetworkError(text.to_owned())));
        }
    }
}
