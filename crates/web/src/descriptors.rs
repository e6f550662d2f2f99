//! File descriptors: raises the process's limit of open files to what the system allows, and shares
//! it out between connections and webhooks.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections never take: for the store's files, calls to rails, and backups.
const RESERVED: u64 = 384;
/// Most connections of one listener.
const CONNECTIONS_MAX: u64 = 4_096;
/// Fewest connections of one listener, however low the limit is.
const CONNECTIONS_MIN: u64 = 16;

/// Most connections at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Connections to receivers of webhooks.
    pub webhooks: usize,
    /// Connections of the merchants' listener.
    pub public: usize,
    /// Connections of the operators' listener.
    pub operations: usize,
}

/// Raises the soft limit of open files to the hard one, and shares it out, with at most
/// `webhooks_max` connections for webhooks.
pub fn raise(webhooks_max: usize) -> Connections {
    let before = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before }) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    // None is no limit.
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let shared = shared(limit, webhooks_max);
    if shared.public < CONNECTIONS_MAX as usize {
        tracing::warn!(limit, connections = shared.public, "few files may be open: fewer connections are taken");
    }
    shared
}

/// Shares out a limit: at most a quarter to webhooks; of the rest, one eighth to operators.
fn shared(limit: u64, webhooks_max: usize) -> Connections {
    let free = limit.saturating_sub(RESERVED);
    let share = |connections: u64| connections.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX) as usize;
    let webhooks = share(free / 4).min(webhooks_max);
    let free = free.saturating_sub(webhooks as u64);
    Connections { webhooks, public: share(free / 8 * 7), operations: share(free / 8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_store() {
        for (limit, webhooks, public, operations) in [
            (0, 16, 16, 16),
            (256, 16, 16, 16),
            (1_024, 160, 420, 60),
            (4_096, 928, 2_436, 348),
            (65_536, 2_666, 4_096, 4_096),
            (u64::MAX, 2_666, 4_096, 4_096),
        ] {
            assert_eq!(shared(limit, 2_666), Connections { webhooks, public, operations }, "{limit}");
        }
    }
}
