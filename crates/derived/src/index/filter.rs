//! Bloom filters over the rare keys of a run's segments, in blocks of 64 bytes: they show for most
//! keys that a segment does not hold them.

use super::key::{IndexKey, mix};

/// Eight times 64 bits, a cache line.
pub(super) const BLOCK_WORDS: usize = 8;
/// The same in a file.
pub(super) const BLOCK_BYTES: usize = BLOCK_WORDS * 8;

/// Bits of a filter for each of its keys.
const BITS_PER_KEY: usize = 20;

/// What stands for a key in a filter.
pub(super) fn hash(key: IndexKey) -> u64 {
    mix(key.whose.wrapping_add(u64::from(key.kind)))
}

/// The words of the filter of some keys, given their hashes. 3 of 10,000 keys that are not there
/// are let through.
pub(super) fn of(hashes: &[u64]) -> Vec<u64> {
    let mut words = vec![0; words_for(hashes.len())];
    let blocks = words.len() / BLOCK_WORDS;
    for hash in hashes {
        let block = block_of(*hash, blocks) * BLOCK_WORDS;
        for (word, bits) in bits(*hash).into_iter().enumerate() {
            words[block + word] |= bits;
        }
    }
    words
}

/// How many words a filter of so many keys has: those of whole blocks.
pub(super) fn words_for(keys: usize) -> usize {
    (keys * BITS_PER_KEY).div_ceil(BLOCK_BYTES * 8) * BLOCK_WORDS
}

/// Whether a block has all bits of a hash.
pub(super) fn has(block: &[u8], hash: u64) -> bool {
    let words = block.chunks_exact(8).map(|word| u64::from_be_bytes(word.try_into().expect("eight bytes")));
    words.zip(bits(hash)).all(|(word, bits)| word & bits == bits)
}

/// The bits of a hash, one in each word of its block: of its low 48 bits, six a word. The block
/// follows from the high ones. Every bit that a key has in common with its neighbors, or with its
/// own block, makes more look-ups read a page in vain.
pub(super) fn bits(hash: u64) -> [u64; BLOCK_WORDS] {
    std::array::from_fn(|word| 1 << (hash >> (6 * word) & 63))
}

/// The number of the block that a hash has its bits in.
pub(super) fn block_of(hash: u64, blocks: usize) -> usize {
    ((u128::from(hash) * blocks as u128) >> 64) as usize
}
