//! Segment of the journal: chunks in the order of their keys, in which every block lies whole. The
//! current one is a sled database; a closed one is a file ([`segment_file`](super::segment_file)).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::chunk::{BlockAssembler, Chunk, Fault, Key, RecordAssembler};
use super::durable_sync::durable_syncs;
use super::sled::Pairs;
use super::{Block, BlockHash, Database, Head, Partition, Result, Sequence, StoreError, StoredRecord};

/// A segment that is written, or was until a moment ago.
#[derive(Debug)]
pub(super) struct Segment {
    database: Database,
    /// How many durable syncs there had been when it was opened.
    syncs: u64,
    /// Whether chunks were inserted since.
    has_inserted: AtomicBool,
}

/// Part of one partition's journal in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// The first Record.
    pub(super) first: Sequence,
    /// The hash of the block before the first one.
    pub(super) previous: BlockHash,
    /// When the first block was booked, in milliseconds since 1970 (UTC).
    pub(super) first_booked_at_ms: i64,
    /// The end: what the next segment must continue.
    pub(super) head: Head,
}

impl Segment {
    pub(super) fn new(database: Database) -> Segment {
        Segment { database, syncs: durable_syncs(), has_inserted: AtomicBool::new(false) }
    }

    /// Inserts the chunks of one block, one after the other. They are durable in the write-ahead
    /// log.
    pub(super) fn insert_chunks(&self, chunks: &[(Key, Vec<u8>)]) -> Result<()> {
        chunks.iter().try_for_each(|(key, value)| self.database.insert(&key.to_bytes(), value).map(drop))?;
        self.has_inserted.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether it is time to flush, so that the next insert does not have to wait for it.
    pub(super) fn wants_flush(&self) -> bool {
        self.database.wants_flush()
    }

    /// Makes all inserted chunks durable.
    pub(super) fn flush(&self) -> Result<()> {
        self.database.flush(self.has_inserted.load(Ordering::Acquire).then_some(self.syncs))
    }

    /// All chunks, in the order of their keys.
    pub(super) fn chunks(&self) -> Pairs<'_> {
        self.database.range::<&[u8]>(..)
    }
}

impl Chunks for Segment {
    fn path(&self) -> &Path {
        self.database.path()
    }

    fn first_from(&self, from: Key) -> Result<Option<ChunkBytes>> {
        let found = self.database.range(from.to_bytes()..).next().transpose()?;
        Ok(found.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }

    fn last_below(&self, end: Key) -> Result<Option<ChunkBytes>> {
        let found = self.database.range(..end.to_bytes()).next_back().transpose()?;
        Ok(found.map(|(key, value)| (key.to_vec(), value.to_vec())))
    }
}

/// Key and value of a chunk, as they are stored.
pub(super) type ChunkBytes = (Vec<u8>, Vec<u8>);

/// Above all keys.
const END: Key = Key { partition: Partition(u16::MAX), at: Sequence(u64::MAX), index: u32::MAX };

/// Chunks of a segment in the order of their keys, and the reading of Records and blocks from them.
pub(super) trait Chunks: Debug + Send + Sync {
    /// The folder or the file, for errors.
    fn path(&self) -> &Path;

    /// The first chunk whose key is not below `from`.
    fn first_from(&self, from: Key) -> Result<Option<ChunkBytes>>;

    /// The last chunk whose key is below `end`.
    fn last_below(&self, end: Key) -> Result<Option<ChunkBytes>>;

    /// Its part of each partition; the last block of each must be whole.
    fn spans(&self) -> Result<BTreeMap<Partition, Span>> {
        let mut spans = BTreeMap::new();
        for (partition, head) in self.heads()? {
            let from = Key::of_block(partition, Sequence(0));
            let chunk = self.parse_at(None, self.first_from(from)?)?;
            let missing = |at| self.damaged(at, Fault::Missing);
            let chunk = chunk.ok_or_else(|| missing(None))?;
            let link = chunk.link.ok_or_else(|| missing(Some(chunk.first)))?;
            let (first, first_booked_at_ms) = (chunk.first, chunk.booked_at_ms);
            spans.insert(partition, Span { first, previous: link.previous, first_booked_at_ms, head });
        }
        Ok(spans)
    }

    /// The first Record of the block that holds `sequence`, which is in this segment.
    fn first_of_block_with(&self, partition: Partition, sequence: Sequence) -> Result<Sequence> {
        Ok(self.chunk_where_it_starts(partition, sequence)?.first)
    }

    fn damaged(&self, sequence: Option<Sequence>, fault: Fault) -> StoreError {
        fault.at(self.path(), sequence)
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(self.last_below(END)?.is_none())
    }

    /// The sequence and hash that the next block of a partition must continue, if the segment has a
    /// block of it. A last block that lacks chunks at its end does not count: they were inserted,
    /// and the database had not written them.
    fn end(&self, partition: Partition) -> Result<Option<(Sequence, BlockHash)>> {
        let last = self.last_chunk_below(Key { partition, at: Sequence(u64::MAX), index: u32::MAX })?;
        let Some(last) = last.filter(|chunk| chunk.key.partition == partition) else { return Ok(None) };
        let link = self.first_chunk_of_block(partition, last.first)?.and_then(|chunk| chunk.link);
        let link = link.ok_or_else(|| self.damaged(Some(last.first), Fault::Missing))?;
        let is_whole = last.key.index + 1 == last.count;
        Ok(Some(if is_whole { (last.next_block(), link.hash) } else { (last.first, link.previous) }))
    }

    /// The heads of all partitions, each from its last block, which must be whole.
    fn heads(&self) -> Result<BTreeMap<Partition, Head>> {
        let mut heads = BTreeMap::new();
        let mut end = END;
        while let Some(last) = self.last_chunk_below(end)? {
            let partition = last.key.partition;
            let (block, hash) = self.block(partition, last.first)?;
            if last.key.index + 1 != last.count {
                return Err(self.damaged(Some(last.key.at), Fault::Missing));
            }
            heads.insert(partition, Head::after(&block, hash));
            end = Key::of_block(partition, Sequence(0));
        }
        Ok(heads)
    }

    /// A Record below the head.
    fn record(&self, partition: Partition, sequence: Sequence) -> Result<StoredRecord> {
        let damaged = |fault| self.damaged(Some(sequence), fault);
        let start = self.chunk_where_it_starts(partition, sequence)?;
        let mut assembler = RecordAssembler::new(start, sequence).map_err(damaged)?;
        while assembler.record().is_none() {
            let chunk = self.chunk_after(assembler.last_key(), sequence)?;
            assembler.push(chunk).map_err(damaged)?;
        }
        let bytes = assembler.record().map(<[u8]>::to_vec).ok_or_else(|| damaged(Fault::Missing))?;
        Ok(StoredRecord { sequence, booked_at_ms: assembler.booked_at_ms(), bytes })
    }

    /// The chunk in which a Record below the head starts.
    fn chunk_where_it_starts(&self, partition: Partition, sequence: Sequence) -> Result<Chunk> {
        let missing = || self.damaged(Some(sequence), Fault::Missing);
        let first_at_it = Key { partition, at: sequence, index: 0 };
        let last_at_it = Key { partition, at: sequence, index: u32::MAX };
        let chunk = self.parse(sequence, self.last_below(last_at_it)?)?.ok_or_else(missing)?;
        let starts_before_or_here = |chunk: &Chunk| {
            chunk.key.at < sequence || chunk.start.is_some_and(|start| start.record == sequence && start.offset == 0)
        };
        if starts_before_or_here(&chunk) {
            return Ok(chunk);
        }
        // The Record is continued in chunks of its own: it starts in the first of them, or in the
        // one before.
        let chunk = self.parse(sequence, self.first_from(first_at_it)?)?.ok_or_else(missing)?;
        if starts_before_or_here(&chunk) {
            return Ok(chunk);
        }
        self.parse(sequence, self.last_below(first_at_it)?)?.ok_or_else(missing)
    }

    /// The hash of the block that ends where `first` begins. It is in this segment.
    fn hash_of_block_before(&self, partition: Partition, first: Sequence) -> Result<BlockHash> {
        let missing = || self.damaged(Some(Sequence(first.0.saturating_sub(1))), Fault::Missing);
        let last = self.last_chunk_below(Key::of_block(partition, first))?.ok_or_else(missing)?;
        let chunk = self.first_chunk_of_block(partition, last.first)?;
        let is_next_to = |chunk: &Chunk| chunk.key.partition == partition && chunk.next_block() == first;
        chunk.filter(is_next_to).and_then(|chunk| chunk.link).map(|link| link.hash).ok_or_else(missing)
    }

    /// The block that begins with `first`, whole and with the hash that it names.
    fn block(&self, partition: Partition, first: Sequence) -> Result<(Block, BlockHash)> {
        let damaged = |fault| self.damaged(Some(first), fault);
        let chunk = self.first_chunk_of_block(partition, first)?.ok_or_else(|| damaged(Fault::Missing))?;
        let mut last = chunk.key;
        let mut assembler = BlockAssembler::new(chunk).map_err(damaged)?;
        while !assembler.is_complete() {
            let chunk = self.chunk_after(last, first)?;
            last = chunk.key;
            assembler.push(chunk).map_err(damaged)?;
        }
        assembler.finish().map_err(damaged)
    }

    fn first_chunk_of_block(&self, partition: Partition, first: Sequence) -> Result<Option<Chunk>> {
        let key = Key::of_block(partition, first);
        Ok(self.parse(first, self.first_from(key)?)?.filter(|chunk| chunk.key == key))
    }

    fn last_chunk_below(&self, end: Key) -> Result<Option<Chunk>> {
        self.parse_at(None, self.last_below(end)?)
    }

    fn chunk_after(&self, key: Key, sequence: Sequence) -> Result<Chunk> {
        let above = Key { index: key.index.saturating_add(1), ..key };
        self.parse(sequence, self.first_from(above)?)?.ok_or_else(|| self.damaged(Some(sequence), Fault::Missing))
    }

    fn parse(&self, sequence: Sequence, found: Option<ChunkBytes>) -> Result<Option<Chunk>> {
        self.parse_at(Some(sequence), found)
    }

    /// Checks a chunk that was read for the sake of the Record `sequence`; without one, the chunk's
    /// own key names the Record.
    fn parse_at(&self, sequence: Option<Sequence>, found: Option<ChunkBytes>) -> Result<Option<Chunk>> {
        let Some((key, value)) = found else { return Ok(None) };
        let concerned = || sequence.or_else(|| Key::parse(&key).map(|key| key.at));
        Chunk::parse(&key, &value).map(Some).map_err(|fault| self.damaged(concerned(), fault))
    }
}

#[cfg(test)]
impl Segment {
    /// The keys of all chunks.
    pub(super) fn keys(&self) -> Vec<Vec<u8>> {
        self.database.range::<&[u8]>(..).map(|pair| pair.unwrap().0.to_vec()).collect()
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }
}
