//! Ends of the journals of all partitions, and whether a block continues the one of its partition.

use store::cut::head_hash;
use store::{Block, BlockHash, Cut, Head, Part, Partition, Position, Sequence, StoreError};

/// The end of the journal of each partition, in their order. A partition that is not named has no
/// blocks.
///
/// ```
/// use centavo_derived::heads::Heads;
/// use store::{Block, BlockHash, Partition, Sequence};
///
/// let mut heads = Heads::default();
/// let (partition, first, previous) = (Partition(1), Sequence::FIRST, BlockHash::ZERO);
/// let records = vec![b"one".to_vec()];
/// let block = Block { partition, first, booked_at_ms: 7, previous, records };
/// heads.pass(&block)?;
/// assert_eq!(heads.cut().to_string(), "0=0,1=1");
/// assert!(heads.pass(&block).is_err(), "it is there already");
/// # Ok::<(), store::StoreError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Heads(Vec<Head>);

impl PartialEq for Heads {
    fn eq(&self, other: &Self) -> bool {
        let (mut shorter, mut longer) = (self.0.iter(), other.0.iter());
        if shorter.len() > longer.len() {
            (shorter, longer) = (longer, shorter);
        }
        shorter.all(|head| Some(head) == longer.next()) && longer.all(|head| *head == Head::EMPTY)
    }
}

impl Eq for Heads {}

impl Heads {
    /// The ends of the partitions, in the order of their numbers.
    pub fn new(of_partitions: Vec<Head>) -> Self {
        Self(of_partitions)
    }

    /// The ends of partitions as they are now.
    pub fn of_parts<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Result<Self, StoreError> {
        let mut heads = Self::default();
        for part in parts {
            heads.set(part.partition(), part.head()?);
        }
        Ok(heads)
    }

    /// The end of a partition.
    pub fn of(&self, partition: Partition) -> Head {
        self.0.get(usize::from(partition.0)).copied().unwrap_or(Head::EMPTY)
    }

    /// The ends, in the order of the partitions.
    pub fn iter(&self) -> impl Iterator<Item = (Partition, Head)> + '_ {
        (0..).map(Partition).zip(self.0.iter().copied())
    }

    /// The last Record of each partition.
    pub fn cut(&self) -> Cut {
        match self.0.as_slice() {
            [] => Cut::default(),
            heads => Cut::new(heads.iter().map(|head| Sequence(head.next.0 - 1)).collect()),
        }
    }

    /// The first Record of each partition that is not there.
    pub fn next(&self) -> Cut {
        self.cut().next()
    }

    /// How many Records there are.
    pub fn records(&self) -> u64 {
        self.cut().records()
    }

    /// Hash of everything: see [`head_hash`].
    pub fn hash(&self) -> BlockHash {
        head_hash(&self.0.iter().map(|head| head.hash).collect::<Vec<_>>())
    }

    /// Makes a block the last one of its partition, if it continues it: see [`Head::admit`].
    pub fn pass(&mut self, block: &Block) -> Result<(), StoreError> {
        self.of(block.partition).admit(block)?;
        self.set(block.partition, Head::after(block, block.hash()));
        Ok(())
    }

    /// The first partition in which two differ, with both ends.
    pub fn first_difference(&self, other: &Self) -> Option<(Partition, Head, Head)> {
        let longer = if self.0.len() < other.0.len() { other } else { self };
        let differs = |(partition, _)| {
            let (here, there) = (self.of(partition), other.of(partition));
            (here != there).then_some((partition, here, there))
        };
        longer.iter().find_map(differs)
    }

    /// Makes a head the end of its partition.
    pub fn set(&mut self, partition: Partition, head: Head) {
        let place = usize::from(partition.0);
        if self.0.len() <= place {
            self.0.resize(place + 1, Head::EMPTY);
        }
        self.0[place] = head;
    }
}

/// A Record in words: `sequence 7`, or `sequence 7 of partition 1`.
pub fn named(at: Position) -> String {
    match at {
        Position { partition: Partition(0), sequence } => format!("sequence {}", sequence.0),
        Position { partition, sequence } => format!("sequence {} of partition {}", sequence.0, partition.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_without_blocks_is_the_same_as_one_that_is_not_named() {
        let head = |next| Head { next: Sequence(next), hash: BlockHash([next as u8; 32]), booked_at_ms: 0 };
        let heads = |all: &[u64]| {
            Heads::new(all.iter().map(|next| if *next == 1 { Head::EMPTY } else { head(*next) }).collect())
        };
        assert_eq!(heads(&[3]), heads(&[3, 1, 1]));
        assert_eq!(heads(&[]), heads(&[1]));
        assert_ne!(heads(&[3]), heads(&[3, 1, 2]));
        assert_ne!(heads(&[3, 2]), heads(&[2, 3]));
        assert_eq!(heads(&[3, 1]).first_difference(&heads(&[3])), None);
        assert_eq!(heads(&[3]).first_difference(&heads(&[3, 1, 4])), Some((Partition(2), Head::EMPTY, head(4))));
        assert_eq!((heads(&[3, 1, 4]).records(), heads(&[]).cut()), (5, Cut::default()));
    }
}
