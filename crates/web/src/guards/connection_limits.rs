//! Connections of a listener: how many there are in all and of one address, and which one ends for
//! a new one.
//!
//! A connection is idle while no request of it is under way: also before the first one, while its
//! head arrives. When the listener is full, or one address has its share, the connection that has
//! been idle for longest ends for a new one. So a caller who opens connections and sends nothing
//! keeps nobody out. While none is idle, a new connection waits in the system's queue, and one of
//! an address with its share is closed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::connection::{Peer, ServerLimits};

/// Mark of a connection with a request under way, in place of the time since which it is idle.
const BUSY: u64 = u64::MAX;

/// The connections of a listener.
pub(crate) struct ConnectionTable {
    most: usize,
    of_peer_max: usize,
    begun: Instant,
    open: Mutex<OpenConnections>,
    /// The listener waits for a connection to become idle.
    is_waited_for: AtomicBool,
    idle: Notify,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    all: HashMap<u64, Arc<Connection>>,
    of_peer: HashMap<Peer, usize>,
}

struct Connection {
    peer: Peer,
    /// Microseconds since the listener began, or [`BUSY`].
    idle_since: AtomicU64,
    ends: Notify,
}

/// Why a new connection has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All places are taken, and none of the connections is idle.
    Full,
    /// Its address has its share, all of them busy.
    Share,
}

/// The place of a connection, which is free again when this is dropped.
pub(crate) struct ConnectionPlace {
    connections: Arc<ConnectionTable>,
    number: u64,
    connection: Arc<Connection>,
}

/// Guard of a request that is under way.
pub(crate) struct Busy {
    connections: Arc<ConnectionTable>,
    connection: Arc<Connection>,
}

impl ConnectionTable {
    pub(crate) fn new(limits: &ServerLimits) -> Arc<Self> {
        let ServerLimits { connections_max, connections_of_peer_max, .. } = *limits;
        Arc::new(Self {
            most: connections_max,
            of_peer_max: connections_of_peer_max.min(connections_max),
            begun: Instant::now(),
            open: Mutex::default(),
            is_waited_for: AtomicBool::new(false),
            idle: Notify::new(),
        })
    }

    /// Waits until a connection becomes idle, after all places were busy.
    pub(crate) async fn one_is_idle(&self) {
        self.idle.notified().await;
    }

    /// The place of a new connection, for which another one may end.
    pub(crate) fn enter(self: &Arc<Self>, peer: Peer) -> Result<ConnectionPlace, NoPlace> {
        self.try_enter(peer).or_else(|no_place| {
            // It is looked at again after the wish is known: one may have become idle meanwhile.
            self.is_waited_for.store(no_place == NoPlace::Full, Ordering::SeqCst);
            self.try_enter(peer)
        })
    }

    fn try_enter(self: &Arc<Self>, peer: Peer) -> Result<ConnectionPlace, NoPlace> {
        let mut open = self.open.lock();
        let is_full = open.all.len() >= self.most;
        let has_share = open.of_peer.get(&peer).is_some_and(|count| *count >= self.of_peer_max);
        if is_full || has_share {
            let longest = open.longest_idle(|connection| !has_share || connection.peer == peer);
            open.end(longest.ok_or(if is_full { NoPlace::Full } else { NoPlace::Share })?);
        }
        open.next += 1;
        let number = open.next;
        let idle_since = AtomicU64::new(self.now());
        let connection = Arc::new(Connection { peer, idle_since, ends: Notify::new() });
        open.all.insert(number, Arc::clone(&connection));
        *open.of_peer.entry(peer).or_default() += 1;
        Ok(ConnectionPlace { connections: Arc::clone(self), number, connection })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(BUSY - 1)
    }
}

impl OpenConnections {
    fn longest_idle(&self, counts: impl Fn(&Connection) -> bool) -> Option<u64> {
        let idle = self.all.iter().filter(|(_, connection)| counts(connection));
        let idle = idle.map(|(number, connection)| (connection.idle_since.load(Ordering::SeqCst), *number));
        idle.filter(|(since, _)| *since != BUSY).min().map(|(_, number)| number)
    }

    /// Ends a connection: its place is free.
    fn end(&mut self, number: u64) {
        if let Some(connection) = self.leave(number) {
            connection.ends.notify_one();
        }
    }

    fn leave(&mut self, number: u64) -> Option<Arc<Connection>> {
        let connection = self.all.remove(&number)?;
        if let Some(count) = self.of_peer.get_mut(&connection.peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peer.remove(&connection.peer);
            }
        }
        Some(connection)
    }
}

impl ConnectionPlace {
    /// A request of the connection is under way until the guard is dropped.
    pub(crate) fn begin(&self) -> Busy {
        self.connection.idle_since.store(BUSY, Ordering::SeqCst);
        Busy { connections: Arc::clone(&self.connections), connection: Arc::clone(&self.connection) }
    }

    /// Waits until the connection must end for another one.
    pub(crate) async fn ends(&self) {
        self.connection.ends.notified().await;
    }

    /// True while a request of the connection is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.connection.idle_since.load(Ordering::SeqCst) == BUSY
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let _ended_before = self.connections.open.lock().leave(self.number);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.connection.idle_since.store(self.connections.now(), Ordering::SeqCst);
        if self.connections.is_waited_for.swap(false, Ordering::SeqCst) {
            self.connections.idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use futures_util::FutureExt;

    use super::*;

    fn peer(last: u8) -> Peer {
        Peer(IpAddr::V4(Ipv4Addr::new(203, 0, 113, last)))
    }

    fn of(connections_max: usize, connections_of_peer_max: usize) -> Arc<ConnectionTable> {
        ConnectionTable::new(&ServerLimits { connections_max, connections_of_peer_max, ..ServerLimits::default() })
    }

    fn entered(connections: &Arc<ConnectionTable>, last: u8) -> ConnectionPlace {
        connections.enter(peer(last)).unwrap_or_else(|no_place| panic!("{no_place:?}"))
    }

    fn has_ended(place: &ConnectionPlace) -> bool {
        place.ends().now_or_never().is_some()
    }

    #[test]
    fn the_one_that_idled_longest_ends_for_a_new_one() {
        let connections = of(3, 3);
        let places = [1, 2, 3].map(|last| entered(&connections, last));
        // The first is busy, and the second was, later than the third came.
        let _busy = places[0].begin();
        std::thread::sleep(std::time::Duration::from_millis(1));
        drop(places[1].begin());
        let fourth = entered(&connections, 4);
        assert_eq!([0, 1, 2].map(|number| has_ended(&places[number])), [false, false, true]);
        let [_busy_too, _also] = [places[1].begin(), fourth.begin()];
        assert_eq!(connections.enter(peer(5)).err(), Some(NoPlace::Full));
        assert!(connections.one_is_idle().now_or_never().is_none());
        drop(_also);
        assert!(connections.one_is_idle().now_or_never().is_some());
        assert!(connections.enter(peer(5)).is_ok());
    }

    #[test]
    fn an_address_with_its_share_ends_its_own() {
        let connections = of(10, 2);
        let other = entered(&connections, 1);
        let [first, second, third] = [(); 3].map(|()| entered(&connections, 2));
        assert_eq!([&other, &first, &second, &third].map(has_ended), [false, true, false, false]);
        let _both_busy = [second.begin(), third.begin()];
        assert_eq!(connections.enter(peer(2)).err(), Some(NoPlace::Share));
        assert!(connections.enter(peer(3)).is_ok());
        drop((first, second, third));
        assert_eq!(connections.open.lock().all.len(), 1, "a place that was given on is left once");
    }
}
