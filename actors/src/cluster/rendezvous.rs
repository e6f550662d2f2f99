//! Rendezvous hashing: each node has a weight for each partition, and the heaviest one should have
//! it. When a node comes or goes, only partitions of that node move.

use sha2::{Digest, Sha256};

use crate::store::Partition;

/// Begins what is hashed. Another label places everything anew.
const LABEL: &[u8] = b"centavo placement 1";

/// The weight of a node for a partition: the first eight bytes, big-endian, of the SHA-256 over the
/// label `centavo placement 1`, the partition in two bytes, big-endian, and the node's address. All
/// releases must agree on it. The address names a node, since the name of a process changes with
/// each start.
///
/// ```
/// use actors::cluster::weight;
/// use actors::store::Partition;
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

/// The heaviest of some addresses for a partition.
pub(super) fn heaviest<'a>(addresses: impl Iterator<Item = &'a str>, partition: Partition) -> Option<&'a str> {
    addresses.max_by_key(|address| (weight(address, partition), *address))
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
        let placed = (0..16).map(|number| heaviest(NODES.into_iter(), Partition(number)).unwrap());
        let placed: String =
            placed.map(|node| if node.starts_with('[') { '4' } else { node.as_bytes()[7] as char }).collect();
        assert_eq!(placed, "4312344311234321");
    }

    #[test]
    fn a_node_that_goes_moves_only_what_it_had() {
        let partitions = || (0..1_000).map(Partition);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for partition in partitions() {
            let before = heaviest(NODES.into_iter(), partition).unwrap();
            *counts.entry(before).or_default() += 1;
            let after = heaviest(NODES.into_iter().filter(|node| *node != NODES[1]), partition).unwrap();
            assert!(before == after || before == NODES[1], "{partition:?}");
        }
        assert!(counts.values().all(|count| (200..300).contains(count)), "{counts:?}");
        assert_eq!(heaviest(std::iter::empty(), Partition(0)), None);
    }
}
