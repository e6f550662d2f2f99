//! A TCP proxy between a process and its database, which can disturb the connections.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to bytes, and to connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    Passes,
    /// Each part waits this long, in both directions.
    Waits(Duration),
    /// Nothing arrives, and nothing is lost: it arrives when this is over.
    IsHeld,
    /// What the process sends arrives, and no answer comes back. These connections end when this is
    /// over.
    LosesAnswers,
    /// All connections have ended, and new ones end at once.
    IsCut,
}

/// The proxy; its connections end when it is dropped.
pub(crate) struct Proxy {
    traffic: watch::Sender<Traffic>,
    port: u16,
}

impl Proxy {
    /// Listens on loopback, for connections to another port of it.
    pub(crate) async fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let (traffic, state) = watch::channel(Traffic::Passes);
        tokio::spawn(accept(listener, SocketAddr::from(([127, 0, 0, 1], port)), state));
        Self { traffic, port: own }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn let_traffic(&self, traffic: Traffic) {
        self.traffic.send_replace(traffic);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, traffic: watch::Receiver<Traffic>) {
    let mut gone = traffic.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = gone.wait_for(|_| false) => return,
        };
        let Ok((near, _)) = accepted else { continue };
        let traffic = traffic.clone();
        tokio::spawn(async move {
            if *traffic.borrow() == Traffic::IsCut {
                return;
            }
            let Ok(far) = TcpStream::connect(target).await else { return };
            let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
            // When one direction ends, both do.
            tokio::select! {
                () = carry(from_near, to_far, traffic.clone(), false) => {}
                () = carry(from_far, to_near, traffic, true) => {}
            }
        });
    }
}

/// Carries bytes in one direction until the connection ends.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut traffic: watch::Receiver<Traffic>,
    are_answers: bool,
) {
    let (mut bytes, mut is_torn) = (vec![0; 1 << 16], false);
    loop {
        let now = *traffic.borrow_and_update();
        match now {
            Traffic::IsCut => return,
            // Bytes are missing in it.
            Traffic::Passes | Traffic::Waits(_) | Traffic::IsHeld if is_torn => return,
            Traffic::IsHeld => {
                if traffic.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Traffic::Passes | Traffic::Waits(_) | Traffic::LosesAnswers => {}
        }
        let length = tokio::select! {
            read = from.read(&mut bytes) => match read {
                Ok(length) if length > 0 => length,
                _ => return,
            },
            changed = traffic.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        match now {
            Traffic::LosesAnswers if are_answers => {
                is_torn = true;
                continue;
            }
            Traffic::Waits(time) => tokio::time::sleep(time).await,
            _ => {}
        }
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}
