//! Bloom filters over the rare keys of a run's segments, in blocks of 64 bytes: they tell of most
//! keys that a segment does not hold them.

use super::key::{IndexKey, mix};

/// Eight times 64 bits, a cache line.
pub(super) const BLOCK_WORDS: usize = 8;
/// The same in a file.
pub(super) const BLOCK_BYTES: usize = BLOCK_WORDS * 8;

/// How the bits of a key are chosen, which the format of a run tells. Every bit that a key has in
/// common with its neighbors, or with its own block, makes more look-ups read a page in vain.
#[derive(Clone, Copy)]
pub(super) enum Filter {
    /// Format 1: 12 bits a key, 6 of them set, some of which follow from the block. 70 to 90 of
    /// 10,000 keys that are not there are let through.
    SixOfTwelve,
    /// Format 2: 20 bits a key, one of them set in each word of the block. 3 of 10,000 are let
    /// through.
    EightOfTwenty,
}

impl Filter {
    /// The filters of the runs of a format.
    pub(super) fn of_format(format: u8) -> Self {
        if format == 1 { Self::SixOfTwelve } else { Self::EightOfTwenty }
    }

    /// What stands for a key in a filter.
    pub(super) fn hash(self, key: IndexKey) -> u64 {
        let word = key.whose.wrapping_add(u64::from(key.kind));
        match self {
            Self::SixOfTwelve => word.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            Self::EightOfTwenty => mix(word),
        }
    }

    /// The words of the filter of some keys, given their hashes.
    pub(super) fn of(self, hashes: &[u64]) -> Vec<u64> {
        let mut words = vec![0; self.words_for(hashes.len())];
        let blocks = words.len() / BLOCK_WORDS;
        for hash in hashes {
            let block = block_of(*hash, blocks) * BLOCK_WORDS;
            for (word, bits) in self.bits(*hash).into_iter().enumerate() {
                words[block + word] |= bits;
            }
        }
        words
    }

    /// How many words a filter of so many keys has: those of whole blocks.
    pub(super) fn words_for(self, keys: usize) -> usize {
        let bits_per_key = match self {
            Self::SixOfTwelve => 12,
            Self::EightOfTwenty => 20,
        };
        (keys * bits_per_key).div_ceil(BLOCK_BYTES * 8) * BLOCK_WORDS
    }

    /// Whether a block has all bits of a hash.
    pub(super) fn has(self, block: &[u8], hash: u64) -> bool {
        let words = block.chunks_exact(8).map(|word| u64::from_be_bytes(word.try_into().expect("eight bytes")));
        words.zip(self.bits(hash)).all(|(word, bits)| word & bits == bits)
    }

    /// The bits of a hash in each word of its block.
    pub(super) fn bits(self, hash: u64) -> [u64; BLOCK_WORDS] {
        let mut words = [0; BLOCK_WORDS];
        match self {
            Self::SixOfTwelve => {
                for probe in 0..6 {
                    let bit = hash.rotate_left(9 * probe + 7) & 511;
                    words[(bit / 64) as usize] |= 1 << (bit % 64);
                }
            }
            Self::EightOfTwenty => {
                // The low 48 bits; the block follows from the high ones.
                for (number, word) in words.iter_mut().enumerate() {
                    *word = 1 << (hash >> (6 * number) & 63);
                }
            }
        }
        words
    }
}

/// The number of the block that a hash has its bits in.
pub(super) fn block_of(hash: u64, blocks: usize) -> usize {
    ((u128::from(hash) * blocks as u128) >> 64) as usize
}
