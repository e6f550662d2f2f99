//! Positions in the journals of all partitions: of one Record ([`Position`]), and of everything up
//! to one moment ([`Cut`]).

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::{Block, BlockHash, Partition, Sequence};

/// Name of a Record, for ever: its partition, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The partition.
    pub partition: Partition,
    /// Its place in the partition's journal, from 1.
    pub sequence: Sequence,
}

impl Position {
    /// The Record before it in its partition, with number 0 before the first one.
    #[must_use]
    pub fn before(self) -> Self {
        Self { sequence: Sequence(self.sequence.0 - 1), ..self }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.partition.0, self.sequence.0)
    }
}

/// The Records of a block with their places.
pub fn positions(block: &Block) -> impl Iterator<Item = (Position, &[u8])> {
    let places = (block.first.0..).map(|at| Position { partition: block.partition, sequence: Sequence(at) });
    places.zip(block.records.iter().map(Vec::as_slice))
}

/// The last Record that counts, by partition. No entry crosses partitions, so every ledger is whole
/// and balanced at every cut.
///
/// ```
/// use centavo_store::cut::Cut;
/// use centavo_store::{Partition, Sequence};
///
/// let cut = Cut::new([42, 17].map(Sequence).to_vec());
/// assert_eq!(cut.of(Partition(1)), Sequence(17));
/// assert_eq!(cut.of(Partition(2)), Sequence(0), "no Record of that partition counts");
/// assert_eq!(cut.to_string(), "0=42,1=17");
/// assert_eq!("0=42,1=17".parse(), Ok(cut));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut(Arc<[Sequence]>);

/// Partitions of a cut that is written out: those of a store at most.
const PARTITIONS_MAX: usize = 1 << 16;

impl Default for Cut {
    /// The begin of one partition.
    fn default() -> Self {
        Self::new(vec![Sequence(0)])
    }
}

impl Cut {
    /// The last Record of each partition, in the order of their numbers; 0 where none counts.
    pub fn new(last: Vec<Sequence>) -> Self {
        Self(last.into())
    }

    /// The cut of the same partitions in which no Record counts.
    #[must_use]
    pub fn begin(&self) -> Self {
        Self(self.0.iter().map(|_| Sequence(0)).collect())
    }

    /// The last Record of a partition that counts; 0 where none does.
    pub fn of(&self, partition: Partition) -> Sequence {
        self.0.get(usize::from(partition.0)).copied().unwrap_or(Sequence(0))
    }

    /// Whether a Record counts.
    pub fn contains(&self, at: Position) -> bool {
        at.sequence <= self.of(at.partition)
    }

    /// The last Record of each partition; 0 where none counts.
    pub fn iter(&self) -> impl Iterator<Item = Position> + '_ {
        (0..)
            .zip(self.0.iter())
            .map(|(number, sequence)| Position { partition: Partition(number), sequence: *sequence })
    }

    /// How many Records count.
    pub fn records(&self) -> u64 {
        self.0.iter().map(|last| last.0).sum()
    }

    /// Whether no Record counts.
    pub fn is_empty(&self) -> bool {
        self.records() == 0
    }

    /// How many partitions it is of.
    pub fn partitions(&self) -> usize {
        self.0.len()
    }

    /// The Records that count in both.
    #[must_use]
    pub fn up_to(&self, other: &Self) -> Self {
        Self(self.iter().map(|at| at.sequence.min(other.of(at.partition))).collect())
    }

    /// The first Records that do not count.
    #[must_use]
    pub fn next(&self) -> Self {
        Self(self.0.iter().map(|last| last.plus(1)).collect())
    }

    /// The cut before these Records.
    #[must_use]
    pub fn previous(&self) -> Self {
        Self(self.0.iter().map(|first| Sequence(first.0.saturating_sub(1))).collect())
    }

    /// The cut in a text: `42` where there is one partition, or `0=42,1=17`.
    pub fn name(&self) -> String {
        if self.partitions() == 1 { self.records().to_string() } else { self.to_string() }
    }

    /// Whether all Records of this cut are in the other one.
    pub fn is_within(&self, other: &Self) -> bool {
        self.iter().all(|at| at.sequence.0 == 0 || other.contains(at))
    }

    /// Makes a Record the last one of its partition.
    pub fn reach(&mut self, last: Position) {
        let place = usize::from(last.partition.0);
        if self.0.len() <= place {
            let grown = (0..=place).map(|place| self.0.get(place).copied().unwrap_or(Sequence(0)));
            self.0 = grown.collect();
        }
        Arc::make_mut(&mut self.0)[place] = last.sequence;
    }

    /// The same cut, where the last Record of one partition is another.
    #[must_use]
    pub fn with(mut self, last: Position) -> Self {
        self.reach(last);
        self
    }
}

/// How far journals were read, block by block: the cut, and the hash of everything through it.
#[derive(Clone, Debug, Default)]
pub struct PassedBlocks {
    cut: Cut,
    heads: Vec<BlockHash>,
}

impl PassedBlocks {
    /// At a cut, with a hash that is known once the block with the last Record of each partition
    /// was passed.
    pub fn at(cut: Cut) -> Self {
        Self { heads: Vec::new(), cut }
    }

    /// The same, where a cut of more partitions is to be reached.
    pub fn widen(&mut self, through: &Cut) {
        let last = u16::try_from(through.partitions().saturating_sub(1)).map_or(Partition(u16::MAX), Partition);
        if usize::from(last.0) >= self.cut.partitions() {
            self.cut.reach(Position { partition: last, sequence: Sequence(0) });
        }
    }

    /// Passes a block, of which the Records in `through` count.
    pub fn pass(&mut self, block: &Block, through: &Cut) {
        let last = Sequence(block.next().0 - 1).min(through.of(block.partition));
        if last < block.first {
            return;
        }
        self.cut.reach(Position { partition: block.partition, sequence: last });
        let place = usize::from(block.partition.0);
        self.heads.resize(self.heads.len().max(place + 1), BlockHash::ZERO);
        self.heads[place] = block.hash();
    }

    /// The Records so far.
    pub fn cut(&self) -> &Cut {
        &self.cut
    }

    /// Hash of everything so far: see [`head_hash`].
    pub fn head(&self) -> BlockHash {
        let mut heads = self.heads.clone();
        heads.resize(self.cut.partitions(), BlockHash::ZERO);
        head_hash(&heads)
    }
}

/// Hash of everything through a cut, from the hash of the block with the last Record of each
/// partition, zeros where none counts. A block's hash is one of all before it. For one partition it
/// is that hash, for several the SHA-256 of all of them in order; zeros where no Record counts.
pub fn head_hash(of_partitions: &[BlockHash]) -> BlockHash {
    match of_partitions {
        [] => BlockHash::ZERO,
        [only] => *only,
        all if all.iter().all(|hash| *hash == BlockHash::ZERO) => BlockHash::ZERO,
        all => {
            let mut digest = Sha256::new();
            all.iter().for_each(|hash| digest.update(hash.0));
            BlockHash(digest.finalize().into())
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, at) in self.iter().enumerate() {
            write!(formatter, "{}{at}", if place == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The text is not a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cut is written as 0=42,1=17: the last Record of each partition, in their order from 0")]
pub struct NotACut;

impl FromStr for Cut {
    type Err = NotACut;

    fn from_str(text: &str) -> Result<Self, NotACut> {
        let mut all = Vec::new();
        for (place, part) in text.split(',').enumerate() {
            let (partition, last) = part.split_once('=').ok_or(NotACut)?;
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            if place >= PARTITIONS_MAX || !is_number(last) || partition != place.to_string() {
                return Err(NotACut);
            }
            all.push(Sequence(last.parse().ok().filter(|last| *last < u64::MAX).ok_or(NotACut)?));
        }
        Ok(Self::new(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(last: &[u64]) -> Cut {
        Cut::new(last.iter().copied().map(Sequence).collect())
    }

    #[test]
    fn a_cut_has_the_records_through_its_last_ones() {
        let one = cut(&[42, 0, 7]);
        let at = |partition, sequence| Position { partition: Partition(partition), sequence: Sequence(sequence) };
        assert!(one.contains(at(0, 42)) && !one.contains(at(0, 43)));
        assert!(!one.contains(at(1, 1)) && !one.contains(at(3, 1)));
        assert_eq!((one.records(), one.partitions(), one.is_empty()), (49, 3, false));
        assert!(cut(&[0, 0]).is_empty());
        assert_eq!(one.up_to(&cut(&[50, 9, 3])), cut(&[42, 0, 3]));
        assert!(cut(&[42, 0, 3]).is_within(&one) && !one.is_within(&cut(&[50, 9, 3])));
        assert!(cut(&[42, 0]).is_within(&cut(&[42])));
        assert_eq!(cut(&[4]).with(at(2, 9)), cut(&[4, 0, 9]));
        assert_eq!(one.clone().with(at(0, 5)), cut(&[5, 0, 7]));
        assert_eq!((one.next(), one.next().previous()), (cut(&[43, 1, 8]), one.clone()));
        assert_eq!(one.iter().last(), Some(at(2, 7)));
        assert_eq!((cut(&[42]).name(), one.name()), ("42".to_owned(), "0=42,1=0,2=7".to_owned()));
    }

    #[test]
    fn one_hash_stands_for_the_heads_of_all_partitions() {
        let [one, other] = [1, 2].map(|byte| BlockHash([byte; 32]));
        assert_eq!(head_hash(&[one]), one);
        assert_eq!(head_hash(&[BlockHash::ZERO; 3]), BlockHash::ZERO);
        let all = head_hash(&[one, other]);
        assert!(all != head_hash(&[other, one]) && all != head_hash(&[one, BlockHash::ZERO]) && all != one);
    }

    #[test]
    fn what_is_not_a_cut_is_refused() {
        for text in [
            "",
            "42",
            "0=",
            "=1",
            "1=4",
            "0=1,0=2",
            "0=1,2=2",
            "0=1,",
            "0=-1",
            "0=+1",
            "00=1",
            "0=18446744073709551615",
        ] {
            assert_eq!(text.parse::<Cut>(), Err(NotACut), "{text}");
        }
        assert_eq!("0=0".parse(), Ok(cut(&[0])));
    }
}
