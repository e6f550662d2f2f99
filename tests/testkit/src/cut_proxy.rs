//! A TCP proxy that cuts a connection after a number of bytes.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Where the connections are cut.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    Request(u64),
    Answer(u64),
}

pub struct Proxy {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// Cuts the first connection; the others pass.
    pub async fn before(target: SocketAddr, cut: Cut) -> Self {
        Self::at(target, 0, cut).await
    }

    /// Cuts one connection, counted from 0; the others pass.
    pub async fn at(target: SocketAddr, which: usize, cut: Cut) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            for number in 0.. {
                let (near, _) = listener.accept().await.unwrap();
                let cut = (number == which).then_some(cut);
                tokio::spawn(async move {
                    let far = TcpStream::connect(target).await.unwrap();
                    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
                    let (requests, answers) = match cut {
                        None => (u64::MAX, u64::MAX),
                        Some(Cut::Request(bytes)) => (bytes, u64::MAX),
                        Some(Cut::Answer(bytes)) => (u64::MAX, bytes),
                    };
                    // When a direction is cut, both end.
                    tokio::select! {
                        () = carry(from_near, to_far, requests) => {}
                        () = carry(from_far, to_near, answers) => {}
                    }
                });
            }
        });
        Self { address, task }
    }
}

/// Carries so many bytes. When the sender ends before, it waits for the other direction.
async fn carry(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, bytes: u64) {
    let (mut from, mut part, mut carried) = (from.take(bytes), [0; 4096], 0);
    loop {
        match from.read(&mut part).await {
            Ok(length) if length > 0 => {
                carried += length as u64;
                if to.write_all(&part[..length]).await.is_err() || carried == bytes {
                    return;
                }
            }
            _ if bytes == 0 => return,
            _ => {
                let _ = to.shutdown().await;
                return std::future::pending().await;
            }
        }
    }
}
