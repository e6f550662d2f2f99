//! Check of the settings of the listener for other processes.

use std::net::{IpAddr, SocketAddr};

use nodes::{PeerSettings, PeerTlsFiles, host};
use web::tls::TlsFiles;

use super::args::PeerArgs;

/// Why the settings of the peers' listener are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerSettingsError {
    /// A setting has no meaning without a listener.
    #[error("{0} has no meaning without CENTAVO_PEER_LISTEN")]
    NoListener(&'static str),
    /// The store is in the data directory of one process.
    #[error("CENTAVO_PEER_LISTEN wants a PostgreSQL store (CENTAVO_STORE), which several processes share")]
    NoDatabase,
    /// Another listener has the address.
    #[error("the peers' listener can't share the address {0}")]
    SharedAddress(SocketAddr),
    /// Some settings of TLS are lacking.
    #[error(
        "CENTAVO_PEER_TLS_CERT, CENTAVO_PEER_TLS_KEY and CENTAVO_PEER_TLS_CA belong together; one of them is not set"
    )]
    HalfTls,
    /// Card numbers would leave the machine in clear.
    #[error(
        "{0}: {1} can be reached from other machines, and card numbers pass there: set CENTAVO_PEER_TLS_CERT, \
         CENTAVO_PEER_TLS_KEY and CENTAVO_PEER_TLS_CA, or choose a loopback address"
    )]
    Unencrypted(&'static str, String),
    /// Nobody can connect to all addresses of a machine.
    #[error(
        "CENTAVO_PEER_LISTEN is all addresses of the machine: set CENTAVO_PEER_ADDRESS, by which the others reach it"
    )]
    NoAddress,
    /// The address is not a host and a port.
    #[error("CENTAVO_PEER_ADDRESS: `{0}` is not a host and a port, such as node-1.internal:8082")]
    Address(String),
}

impl PeerArgs {
    /// Checks the settings; `None` if there is no listener. `others` are the addresses of the
    /// other listeners.
    pub(super) fn checked(
        self,
        is_database: bool,
        others: &[SocketAddr],
    ) -> Result<Option<PeerSettings>, PeerSettingsError> {
        let (address, certificates) = (self.peer_address, self.peer_tls_cert);
        let (key, authority) = (self.peer_tls_key, self.peer_tls_ca);
        let Some(listen) = self.peer_listen else {
            let given = [
                ("CENTAVO_PEER_ADDRESS", address.is_some()),
                ("CENTAVO_PEER_TLS_CERT", certificates.is_some()),
                ("CENTAVO_PEER_TLS_KEY", key.is_some()),
                ("CENTAVO_PEER_TLS_CA", authority.is_some()),
            ];
            let useless = given.into_iter().find_map(|(variable, is_given)| is_given.then_some(variable));
            return useless.map_or(Ok(None), |variable| Err(PeerSettingsError::NoListener(variable)));
        };
        if !is_database {
            return Err(PeerSettingsError::NoDatabase);
        }
        let tls = match (certificates, key, authority) {
            (Some(certificates), Some(key), Some(authority)) => {
                Some(PeerTlsFiles { own: TlsFiles { certificates, key }, authority })
            }
            (None, None, None) => None,
            _ => return Err(PeerSettingsError::HalfTls),
        };
        if tls.is_none() && !listen.ip().is_loopback() {
            return Err(PeerSettingsError::Unencrypted("CENTAVO_PEER_LISTEN", listen.to_string()));
        }
        let address = match address {
            Some(address) if host(&address).is_none() => return Err(PeerSettingsError::Address(address)),
            Some(address) => address,
            None if listen.ip().is_unspecified() => return Err(PeerSettingsError::NoAddress),
            None => listen.to_string(),
        };
        if tls.is_none() && !is_local(&address) {
            return Err(PeerSettingsError::Unencrypted("CENTAVO_PEER_ADDRESS", address));
        }
        if listen.port() != 0 && others.contains(&listen) {
            return Err(PeerSettingsError::SharedAddress(listen));
        }
        Ok(Some(PeerSettings { listen, address, tls }))
    }
}

/// True for an address that only this machine reaches.
fn is_local(address: &str) -> bool {
    host(address)
        .is_some_and(|host| host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn given(listen: Option<&str>, address: Option<&str>, tls: [bool; 3]) -> PeerArgs {
        let [peer_tls_cert, peer_tls_key, peer_tls_ca] = tls.map(|is_set| is_set.then(|| PathBuf::from("a.pem")));
        let peer_listen = listen.map(|text| text.parse().unwrap());
        PeerArgs { peer_listen, peer_address: address.map(str::to_owned), peer_tls_cert, peer_tls_key, peer_tls_ca }
    }

    #[test]
    fn card_numbers_leave_the_machine_only_over_tls() {
        let (none, all) = ([false; 3], [true; 3]);
        let found = |listen, address, tls| {
            given(listen, address, tls)
                .checked(true, &[])
                .map(|found| found.map(|found| (found.address, found.tls.is_some())))
        };
        let settings = |address: &str, tls| Ok(Some((address.to_owned(), tls)));
        use PeerSettingsError as E;
        let unencrypted = |variable, address: &str| Err(E::Unencrypted(variable, address.to_owned()));
        for (listen, address, tls, expected) in [
            (None, None, none, Ok(None)),
            (Some("127.0.0.1:9"), None, none, settings("127.0.0.1:9", false)),
            (Some("[::1]:9"), Some("localhost:9"), none, settings("localhost:9", false)),
            (Some("10.0.0.1:9"), None, none, unencrypted("CENTAVO_PEER_LISTEN", "10.0.0.1:9")),
            (Some("0.0.0.0:9"), Some("localhost:9"), none, unencrypted("CENTAVO_PEER_LISTEN", "0.0.0.0:9")),
            (Some("127.0.0.1:9"), Some("node-1:9"), none, unencrypted("CENTAVO_PEER_ADDRESS", "node-1:9")),
            (Some("10.0.0.1:9"), None, all, settings("10.0.0.1:9", true)),
            (Some("0.0.0.0:9"), None, all, Err(E::NoAddress)),
            (Some("0.0.0.0:9"), Some("node-1.internal:9"), all, settings("node-1.internal:9", true)),
            (Some("0.0.0.0:9"), Some("http://node-1"), all, Err(E::Address("http://node-1".to_owned()))),
            (Some("127.0.0.1:9"), None, [true, true, false], Err(E::HalfTls)),
            (None, Some("localhost:9"), none, Err(E::NoListener("CENTAVO_PEER_ADDRESS"))),
            (None, None, [false, false, true], Err(E::NoListener("CENTAVO_PEER_TLS_CA"))),
        ] {
            assert_eq!(found(listen, address, tls), expected, "{listen:?} {address:?} {tls:?}");
        }
        assert_eq!(given(Some("127.0.0.1:9"), None, none).checked(false, &[]), Err(E::NoDatabase));
    }
}
