//! Rendezvous hashing with bounded loads: each node has a weight for each partition, and the
//! heaviest one should have it that has room. No node has more than its share, rounded up. When a
//! node comes or goes, most partitions of other nodes stay.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use store::Partition;

/// Begins what is hashed. Another label places everything anew.
const LABEL: &[u8] = b"centavo placement 1";

/// The weight of a node for a partition: the first eight bytes, big-endian, of the SHA-256 over the
/// label `centavo placement 1`, the partition in two bytes, big-endian, and the node's address. All
/// releases must agree on it. The address names a node, since the name of a process changes with
/// each start.
///
/// ```
/// use actors::cluster::weight;
/// use store::Partition;
///
/// assert_ne!(weight("10.0.0.1:8081", Partition(0)), weight("10.0.0.2:8081", Partition(0)));
/// ```
#[must_use]
pub fn weight(address: &str, partition: Partition) -> u64 {
    let mut digest = Sha256::new();
    digest.update(LABEL);
    digest.update(partition.0.to_be_bytes());
    digest.update(address.as_bytes());
    let hash: [u8; 32] = digest.finalize().into();
    hash.iter().take(8).fold(0, |weight, byte| weight << 8 | u64::from(*byte))
}

/// Which of some addresses should have each partition: in the order of the partitions, the heaviest
/// that has room.
pub(super) fn placed<'a>(
    addresses: &[&'a str],
    partitions: impl ExactSizeIterator<Item = Partition>,
) -> BTreeMap<Partition, &'a str> {
    let room = partitions.len().div_ceil(addresses.len().max(1));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut placed = BTreeMap::new();
    for partition in partitions {
        let with_room = addresses.iter().filter(|address| counts.get(**address).is_none_or(|count| *count < room));
        if let Some(address) = with_room.max_by_key(|address| (weight(address, partition), **address)) {
            *counts.entry(address).or_default() += 1;
            placed.insert(partition, *address);
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const NODES: [&str; 4] = ["10.0.0.1:8081", "10.0.0.2:8081", "10.0.0.3:8081", "[fd00::4]:8081"];

    /// Written down: releases that differ would hand partitions to and fro.
    #[test]
    fn all_releases_place_alike() {
        let weights = [
            (NODES[0], 0, 0x25c2_4fbe_64fd_db48),
            (NODES[0], 1, 0x4db2_d7d6_e185_8ba6),
            (NODES[1], 0, 0xb11c_b4b1_24ab_156f),
            (NODES[3], 63, 0x36f6_6b31_d83a_bace),
            ("", 0, 0xe34d_7fb6_d9cb_aafa),
        ];
        for (address, partition, expected) in weights {
            assert_eq!(weight(address, Partition(partition)), expected, "{address} {partition}");
        }
        let placed = placed(&NODES, (0..16).map(Partition));
        let placed: String =
            placed.values().map(|node| if node.starts_with('[') { '4' } else { node.as_bytes()[7] as char }).collect();
        assert_eq!(placed, "4312344311234221");
    }

    #[test]
    fn a_node_that_goes_moves_what_it_had_and_little_else() {
        for count in [8, 16, 64, 1_000] {
            let partitions = || (0..count).map(Partition);
            let before = placed(&NODES, partitions());
            let left: Vec<_> = NODES.into_iter().filter(|node| *node != NODES[1]).collect();
            let after = placed(&left, partitions());
            for (placed, nodes) in [(&before, 4), (&after, 3)] {
                let mut counts: BTreeMap<&str, u16> = BTreeMap::new();
                placed.values().for_each(|node| *counts.entry(node).or_default() += 1);
                assert!(counts.values().all(|has| *has <= count.div_ceil(nodes)), "{counts:?}");
            }
            let others = before.iter().filter(|(partition, node)| **node != NODES[1] && after[*partition] != **node);
            assert!(others.count() * 5 <= usize::from(count), "of {count}");
        }
        assert!(placed(&[], [Partition(0)].into_iter()).is_empty());
    }
}
