//! Journal that a running server sends, as a store that is only read: for `verify --live`.
//!
//! The server reads and checks its own disk, as for a backup, and sends keys and blocks. Here the
//! chain is checked again. Nothing derived is there: no state, no cursor, no file.

use std::sync::Arc;

use actors::backup::Frame;
use derived::extents::Extents;
use derived::heads::Heads;
use store::{
    AppendOutcome, Block, Cut, Durability, Epoch, Head, KeyAndValue, Monitor, Part, Partition, Result, Sequence, Store,
    StoreError, StoredRecord, Tenure, WriteBytes,
};

use crate::commands::Failure;
use crate::commands::journal_source::JournalSource;

/// The journal of a server through the heads of one moment.
pub struct ServedJournal {
    source: JournalSource,
    heads: Heads,
    commons: Vec<KeyAndValue>,
}

impl ServedJournal {
    /// The partitions of a server's journal as it is now. Blocks the thread.
    pub fn parts(source: JournalSource) -> Result<Vec<Part>, Failure> {
        let (mut heads, mut commons) = (Heads::default(), Vec::new());
        for frame in source.frames(&Cut::default())? {
            match frame? {
                Frame::Value(value) if value.partition == Partition(0) => commons.push((value.key, value.value)),
                Frame::Value(_) | Frame::Block(_) => {}
                Frame::End(ends) => {
                    heads = ends;
                    break;
                }
            }
        }
        let served: Arc<dyn Store> = Arc::new(Self { source, heads, commons });
        Ok(Extents::of(&*served)?.reading(&served))
    }

    fn failed(&self, error: impl ToString) -> StoreError {
        StoreError::Unavailable { place: self.source.to_string(), detail: error.to_string() }
    }

    /// The block of a frame; `None` for the rest, and for what was booked after the heads. Checks
    /// that it continues those that passed.
    fn block(&self, frame: Frame, passed: &mut Heads) -> Result<Option<Block>> {
        let Frame::Block(block) = frame else { return Ok(None) };
        let head = self.heads.of(block.partition);
        if block.first >= head.next {
            return Ok(None);
        }
        passed.pass(&block)?;
        match passed.of(block.partition) {
            last if last.next >= head.next && last != head => Err(self.failed("its blocks do not end with its head")),
            _ => Ok(Some(block)),
        }
    }
}

/// What a store answers that is only read.
const ONLY_READ: StoreError = StoreError::Unstorable("the journal of a running server is only read");

impl Store for ServedJournal {
    fn head(&self, partition: Partition) -> Result<Head> {
        Ok(self.heads.of(partition))
    }

    /// From the first block on: earlier hashes are not there.
    fn blocks(&self, partition: Partition, from: Sequence) -> Box<dyn Iterator<Item = Result<Block>> + Send + '_> {
        // Of the other partitions nothing is lacking.
        let lacking = |(other, head): (Partition, Head)| if other == partition { from } else { head.next };
        let from = Cut::new(self.heads.iter().map(lacking).collect());
        let frames = match self.source.frames(&from) {
            Ok(frames) => frames,
            Err(error) => return Box::new(std::iter::once(Err(self.failed(error)))),
        };
        let mut passed = Heads::default();
        let block = move |frame| match frame {
            Ok(frame) => self.block(frame, &mut passed).transpose(),
            Err(error) => Some(Err(self.failed(error))),
        };
        Box::new(frames.filter_map(block))
    }

    fn commons(&self) -> Result<Vec<KeyAndValue>> {
        Ok(self.commons.clone())
    }

    fn common(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.commons.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone()))
    }

    fn records(&self, _: Partition, _: &[Sequence]) -> Result<Vec<Option<StoredRecord>>> {
        Err(ONLY_READ)
    }

    fn epoch(&self, _: Partition) -> Result<Epoch> {
        Ok(Epoch::NONE)
    }

    fn take(&self, _: Partition, _: Epoch) -> Result<Option<Tenure>> {
        Err(ONLY_READ)
    }

    fn append(&self, _: &[(Tenure, &Block)]) -> Result<Vec<AppendOutcome>> {
        Err(ONLY_READ)
    }

    fn put_state(&self, _: Tenure, _: &[u8], _: Option<&[u8]>, _: Durability) -> Result<()> {
        Err(ONLY_READ)
    }

    fn states(&self, _: Partition, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(vec![None; keys.len()])
    }

    fn state_keys(&self, _: Partition, _: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    fn insert_common(&self, _: &[u8], _: &[u8]) -> Result<Vec<u8>> {
        Err(ONLY_READ)
    }

    fn remove_common(&self, _: &[u8]) -> Result<()> {
        Err(ONLY_READ)
    }

    fn put_cursor(&self, _: Tenure, _: &[u8], _: Option<&[u8]>) -> Result<()> {
        Err(ONLY_READ)
    }

    fn cursor(&self, _: Partition, _: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn cursor_keys(&self, _: Partition) -> Result<Vec<Vec<u8>>> {
        Ok(Vec::new())
    }

    fn put_file_in_parts(&self, _: Tenure, _: &str, _: WriteBytes<'_>) -> Result<u64> {
        Err(ONLY_READ)
    }

    fn file_part(&self, _: Partition, _: &str, _: u64, _: usize) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn files(&self, _: Partition) -> Result<Vec<(String, u64)>> {
        Ok(Vec::new())
    }

    fn remove_file(&self, _: Tenure, _: &str) -> Result<()> {
        Err(ONLY_READ)
    }

    fn size_bytes(&self) -> Result<u64> {
        Ok(0)
    }

    fn monitor(&self) -> Arc<Monitor> {
        Arc::default()
    }
}

#[cfg(test)]
mod tests {
    use store::BlockHash;
    use store::testkit::MemoryStore;

    use super::*;

    const PARTITION: Partition = Partition(0);

    fn append(part: &Part) {
        let head = part.head().unwrap();
        let (first, previous) = (head.next, head.hash);
        let block = Block { partition: PARTITION, first, booked_at_ms: 1, previous, records: vec![vec![7]; 3] };
        part.append(&block).unwrap();
    }

    fn source(part: &Part) -> JournalSource {
        JournalSource::Stopped { data: "data".into(), parts: vec![part.clone()] }
    }

    /// What is booked afterwards is no part of it.
    #[test]
    fn it_gives_the_blocks_through_the_heads_of_its_beginning() {
        let part = MemoryStore::new().part();
        append(&part);
        append(&part);
        let served = ServedJournal::parts(source(&part)).unwrap().remove(0);
        append(&part);
        let given: Vec<Block> = served.blocks(Sequence::FIRST).collect::<Result<_>>().unwrap();
        let expected: Vec<Block> = part.blocks(Sequence::FIRST).take(2).collect::<Result<_>>().unwrap();
        assert_eq!((given, served.head().unwrap().next), (expected, Sequence(7)));
    }

    #[test]
    fn blocks_that_do_not_end_with_the_head_are_an_error() {
        let part = MemoryStore::new().part();
        append(&part);
        for (is_other, is_whole) in [(false, true), (true, false)] {
            let head = part.head().unwrap();
            let hash = if is_other { BlockHash([9; 32]) } else { head.hash };
            let heads = Heads::new(vec![Head { hash, ..head }]);
            let served = ServedJournal { source: source(&part), heads, commons: Vec::new() };
            assert_eq!(served.blocks(PARTITION, Sequence::FIRST).all(|block| block.is_ok()), is_whole);
        }
    }
}
