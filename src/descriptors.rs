//! File descriptors of the process: as many as the system allows, and a share of them for connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are kept from connections: for the store's folders and files, calls to rails and of webhooks, backups.
const RESERVED: u64 = 384;
/// The most connections of one listener.
const CONNECTIONS_MAX: u64 = 4_096;
/// Where the limit is that low, each listener still takes so many.
const CONNECTIONS_MIN: u64 = 16;

/// How many connections each listener takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Where merchants call.
    pub public: usize,
    /// Where operators call.
    pub operations: usize,
}

/// Raises the soft limit of open files to the hard one, and shares out what there is then.
pub fn raise() -> Connections {
    let before = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before.clone() }) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    // None is no limit.
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let shared = shared(limit);
    if limit < RESERVED + 2 * CONNECTIONS_MAX {
        tracing::warn!(limit, connections = shared.public, "few files may be open: fewer connections are taken");
    }
    shared
}

/// One connection of eight is for operators.
fn shared(limit: u64) -> Connections {
    let free = limit.saturating_sub(RESERVED);
    let share = |connections: u64| connections.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX) as usize;
    Connections { public: share(free / 8 * 7), operations: share(free / 8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_the_store() {
        for (limit, public, operations) in
            [(0, 16, 16), (256, 16, 16), (1_024, 560, 80), (4_096, 3_248, 464), (65_536, 4_096, 4_096)]
        {
            assert_eq!(shared(limit), Connections { public, operations }, "{limit}");
        }
        assert_eq!(shared(u64::MAX), Connections { public: 4_096, operations: 4_096 });
    }
}
