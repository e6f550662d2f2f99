//! Chunks: a block cut into parts that each fit into one value of a key-value store.
//!
//! A key costs the same however small its value, so Records are packed. Values above a few KiB
//! leave sled's log, so a large Record is spread. The Records of a block, each with its length
//! before it, form one stream of bytes that is cut wherever a chunk is full.
//!
//! A chunk's key is its partition, the Record to which its first byte belongs, and its index in the
//! block. In that order the chunks of a journal lie as they were written. A Record starts in the
//! last chunk whose key is not above that Record, unless the Record continues in chunks of its own.
//!
//! A chunk's part of the stream is compressed (LZ4) where that makes it smaller: what many Records
//! have in common is then stored once. The stream is cut first and compressed then, so that any
//! chunk can be read by itself.
//!
//! The last four bytes of a value are the CRC32C of the key and of all bytes before them, in this
//! format and every later one. So a newer format can be distinguished from damage.

use std::path::Path;

use super::{Block, BlockHash, Partition, Sequence, StoreError};

/// The format that this release writes and reads.
pub(super) const FORMAT: u8 = 1;

/// The largest value of a chunk. The store below gathers up to 17 values in a leaf, which has to
/// stay below 128 KiB.
pub(super) const VALUE_BYTES_MAX: usize = 7 * 1024 - 16;

/// Cuts a block whose hash is `hash` into chunks, in order. The block was admitted: it has Records,
/// each below 4 GiB.
pub fn cut(block: &Block, hash: BlockHash) -> Vec<(Key, Vec<u8>)> {
    let stream_bytes: usize = block.records.iter().map(|record| LENGTH_BYTES + record.len()).sum();
    let beyond_first = stream_bytes.saturating_sub(payload_bytes_max(0));
    let count = 1 + beyond_first.div_ceil(payload_bytes_max(1));
    let mut cutter = Cutter { block, hash, count: count as u32, chunks: Vec::with_capacity(count), open: None };
    for (offset, record) in block.records.iter().enumerate() {
        let length = record.len() as u32;
        cutter.start_record(offset as u32);
        cutter.write(offset as u32, &length.to_be_bytes());
        cutter.write(offset as u32, record);
    }
    cutter.close();
    cutter.chunks
}

/// The place of a chunk among all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub(super) partition: Partition,
    /// The Record to which the chunk's first byte belongs: it starts there, or is continued there.
    pub(super) at: Sequence,
    /// The chunk's index in its block.
    pub(super) index: u32,
}

impl Key {
    /// The key of the first chunk of the block that begins with `first`.
    pub(super) fn of_block(partition: Partition, first: Sequence) -> Key {
        Key { partition, at: first, index: 0 }
    }

    pub(super) fn to_bytes(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..2].copy_from_slice(&self.partition.0.to_be_bytes());
        bytes[2..10].copy_from_slice(&self.at.0.to_be_bytes());
        bytes[10..].copy_from_slice(&self.index.to_be_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Key> {
        let mut fields = Fields(bytes);
        let partition = Partition(u16::from_be_bytes(fields.take()?));
        let at = Sequence(u64::from_be_bytes(fields.take()?));
        let index = u32::from_be_bytes(fields.take()?);
        fields.0.is_empty().then_some(Key { partition, at, index })
    }
}

/// A valid chunk: its checksum was right, and its header agrees with its key.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) key: Key,
    /// The first Record of its block.
    pub(super) first: Sequence,
    /// The number of Records of its block.
    pub(super) records: u32,
    /// The number of chunks of its block.
    pub(super) count: u32,
    pub(super) booked_at_ms: i64,
    /// The first Record that starts in this chunk and where, if any does.
    pub(super) start: Option<Start>,
    /// Only in the first chunk of a block.
    pub(super) link: Option<ChainLink>,
    /// Its part of the stream.
    pub(super) payload: Vec<u8>,
}

/// Start of a Record in a chunk's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) record: Sequence,
    pub(super) offset: usize,
}

/// Chain link of a block: its hash and the hash of the block before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainLink {
    pub(super) hash: BlockHash,
    pub(super) previous: BlockHash,
}

/// Faults of stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("a chunk does not match its checksum")]
    Checksum,
    #[error("a chunk's key has no meaning")]
    Key,
    #[error("a chunk's header contradicts its key")]
    Header,
    #[error("a chunk is missing or out of place")]
    Missing,
    #[error("a Record's length contradicts its block")]
    Length,
    #[error("a block does not match its hash")]
    Hash,
    #[error("a block does not continue the chain")]
    Chain,
    #[error("a chunk has format {0}")]
    NewerFormat(u8),
}

impl Fault {
    /// The error for this fault of a Record in a place.
    pub(super) fn at(self, folder: &Path, sequence: Option<Sequence>) -> StoreError {
        let folder = folder.to_path_buf();
        match self {
            Self::NewerFormat(found) => StoreError::NewerFormat { folder, found, known: FORMAT },
            _ => StoreError::Damaged { folder, sequence, detail: self.to_string() },
        }
    }
}

impl Chunk {
    /// Reads a chunk back, checksum first.
    pub(super) fn parse(key: &[u8], value: &[u8]) -> Result<Chunk, Fault> {
        let covered = covered(key, value).ok_or(Fault::Checksum)?;
        let key = Key::parse(key).ok_or(Fault::Key)?;
        match covered.split_first() {
            Some((&FORMAT, fields)) => Chunk::parse_fields(key, fields).ok_or(Fault::Header),
            Some((&newer, _)) => Err(Fault::NewerFormat(newer)),
            None => Err(Fault::Header),
        }
    }

    fn parse_fields(key: Key, bytes: &[u8]) -> Option<Chunk> {
        let mut fields = Fields(bytes);
        let partition = Partition(u16::from_be_bytes(fields.take()?));
        let first = Sequence(u64::from_be_bytes(fields.take()?));
        let records = u32::from_be_bytes(fields.take()?);
        let index = u32::from_be_bytes(fields.take()?);
        let count = u32::from_be_bytes(fields.take()?);
        let booked_at_ms = i64::from_be_bytes(fields.take()?);
        let start_record = u32::from_be_bytes(fields.take()?);
        let start_offset = u16::from_be_bytes(fields.take()?);
        let link = match index {
            0 => Some(ChainLink { hash: BlockHash(fields.take()?), previous: BlockHash(fields.take()?) }),
            _ => None,
        };
        let start = (start_record != NO_START)
            .then(|| Start { record: first.plus(u64::from(start_record)), offset: usize::from(start_offset) });
        let agrees = partition == key.partition
            && index == key.index
            && index < count
            && (first..first.plus(u64::from(records))).contains(&key.at)
            && start.is_none_or(|start| start.record >= key.at && start_record < records);
        let payload = decompressed(fields)?;
        agrees.then_some(Chunk { key, first, records, count, booked_at_ms, start, link, payload })
    }

    /// The sequence number after the last Record of this chunk's block.
    pub(super) fn next_block(&self) -> Sequence {
        self.first.plus(u64::from(self.records))
    }

    /// Whether `next` is the chunk after this one in the same block.
    pub(super) fn is_followed_by(&self, next: &Chunk) -> bool {
        next.key.partition == self.key.partition
            && next.first == self.first
            && next.records == self.records
            && next.count == self.count
            && next.booked_at_ms == self.booked_at_ms
            && next.key.index == self.key.index + 1
    }
}

/// Puts the bytes of one Record together from the chunk in which it starts and those that follow.
#[derive(Debug)]
pub(super) struct RecordAssembler {
    last: Chunk,
    bytes: Vec<u8>,
}

impl RecordAssembler {
    /// Begins with the chunk in which `sequence` starts.
    pub(super) fn new(chunk: Chunk, sequence: Sequence) -> Result<RecordAssembler, Fault> {
        let start = chunk.start.filter(|start| start.record <= sequence).ok_or(Fault::Missing)?;
        let mut rest = chunk.payload.get(start.offset..).ok_or(Fault::Length)?;
        for _ in start.record.0..sequence.0 {
            (_, rest) = split_record(rest).ok_or(Fault::Missing)?;
        }
        if rest.is_empty() {
            return Err(Fault::Missing);
        }
        Ok(RecordAssembler { bytes: rest.to_vec(), last: chunk })
    }

    /// Adds the next chunk.
    pub(super) fn push(&mut self, chunk: Chunk) -> Result<(), Fault> {
        if !self.last.is_followed_by(&chunk) {
            return Err(Fault::Missing);
        }
        self.bytes.extend_from_slice(&chunk.payload);
        self.last = chunk;
        Ok(())
    }

    /// The Record's bytes, once enough chunks were added.
    pub(super) fn record(&self) -> Option<&[u8]> {
        split_record(&self.bytes).map(|(record, _)| record)
    }

    pub(super) fn booked_at_ms(&self) -> i64 {
        self.last.booked_at_ms
    }

    pub(super) fn last_key(&self) -> Key {
        self.last.key
    }
}

/// Puts a whole block together from its chunks and checks it.
#[derive(Debug)]
pub(super) struct BlockAssembler {
    link: ChainLink,
    last: Chunk,
    stream: Vec<u8>,
}

impl BlockAssembler {
    /// Begins with a block's first chunk.
    pub(super) fn new(mut chunk: Chunk) -> Result<BlockAssembler, Fault> {
        let link = chunk.link.ok_or(Fault::Missing)?;
        let stream = std::mem::take(&mut chunk.payload);
        Ok(BlockAssembler { link, last: chunk, stream })
    }

    /// Adds the next chunk.
    pub(super) fn push(&mut self, chunk: Chunk) -> Result<(), Fault> {
        if !self.last.is_followed_by(&chunk) {
            return Err(Fault::Missing);
        }
        self.stream.extend_from_slice(&chunk.payload);
        self.last = chunk;
        Ok(())
    }

    /// Whether all chunks were added.
    pub(super) fn is_complete(&self) -> bool {
        self.last.key.index + 1 == self.last.count
    }

    /// The block and its hash, which was computed anew and compared with the stored one.
    pub(super) fn finish(self) -> Result<(Block, BlockHash), Fault> {
        if !self.is_complete() {
            return Err(Fault::Missing);
        }
        let mut rest = self.stream.as_slice();
        let mut records = Vec::new();
        while let Some((record, after)) = split_record(rest) {
            records.push(record.to_vec());
            rest = after;
        }
        if !rest.is_empty() || records.len() as u64 != u64::from(self.last.records) {
            return Err(Fault::Length);
        }
        let block = Block {
            partition: self.last.key.partition,
            first: self.last.first,
            booked_at_ms: self.last.booked_at_ms,
            previous: self.link.previous,
            records,
        };
        if block.hash() != self.link.hash {
            return Err(Fault::Hash);
        }
        Ok((block, self.link.hash))
    }
}

/// The CRC32C of a key and the bytes stored under it.
pub(super) fn checksum_of(key: &[u8], covered: &[u8]) -> [u8; CHECKSUM_BYTES] {
    crc32c::crc32c_append(crc32c::crc32c(key), covered).to_be_bytes()
}

/// Adds the checksum of all bytes.
pub(super) fn add_checksum(key: &[u8], bytes: &mut Vec<u8>) {
    let checksum = checksum_of(key, bytes);
    bytes.extend_from_slice(&checksum);
}

/// The bytes before their checksum, if it is theirs.
pub fn covered<'a>(key: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (covered, checksum) = bytes.split_last_chunk()?;
    (checksum_of(key, covered) == *checksum).then_some(covered)
}

/// The bytes between their format and their checksum; or, as an error, the newer format in which
/// they are written, if they are not damaged.
pub(super) fn in_format<'a>(format: u8, key: &[u8], bytes: &'a [u8]) -> Result<&'a [u8], Option<u8>> {
    match covered(key, bytes).and_then(<[u8]>::split_first).ok_or(None)? {
        (known, rest) if *known == format => Ok(rest),
        (newer, _) => Err(Some(*newer)),
    }
}

pub(super) const CHECKSUM_BYTES: usize = 4;
pub(super) const KEY_BYTES: usize = 14;
const LENGTH_BYTES: usize = 4;
const PART_LENGTH_BYTES: usize = 2;
const LINK_BYTES: usize = 64;
const HEADER_BYTES: usize = 37;
const START_AT: usize = 31;
const NO_START: u32 = u32::MAX;

/// The most bytes of the stream that the chunk with this index holds before compression.
fn payload_bytes_max(index: u32) -> usize {
    let link_bytes = if index == 0 { LINK_BYTES } else { 0 };
    VALUE_BYTES_MAX - HEADER_BYTES - link_bytes - PART_LENGTH_BYTES - CHECKSUM_BYTES
}

/// Notes the length of the part of the stream that begins at `at`, and compresses the part if that
/// makes it smaller.
fn compress(value: &mut Vec<u8>, at: usize) {
    let part_length = value.len() - at;
    value[at - PART_LENGTH_BYTES..at].copy_from_slice(&(part_length as u16).to_be_bytes());
    let compressed = lz4_flex::block::compress(&value[at..]);
    if compressed.len() < part_length {
        value.truncate(at);
        value.extend_from_slice(&compressed);
    }
}

/// The part of the stream behind its length; none if it does not have that length.
fn decompressed(mut fields: Fields<'_>) -> Option<Vec<u8>> {
    let part_length = usize::from(u16::from_be_bytes(fields.take::<PART_LENGTH_BYTES>()?));
    if fields.0.len() == part_length {
        return Some(fields.0.to_vec());
    }
    let mut part = vec![0; part_length];
    let length = lz4_flex::block::decompress_into(fields.0, &mut part).ok()?;
    (length == part_length).then_some(part)
}

/// Cuts the first Record off a stream, if the stream holds all of it.
fn split_record(stream: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = stream.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// Takes fields of a fixed size from the front of a slice.
pub struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    /// The next field; none if the slice ends before.
    pub fn take<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (field, rest) = self.0.split_first_chunk::<BYTES>()?;
        self.0 = rest;
        Some(*field)
    }
}

/// Writes the stream of a block into chunks.
struct Cutter<'a> {
    block: &'a Block,
    hash: BlockHash,
    count: u32,
    chunks: Vec<(Key, Vec<u8>)>,
    open: Option<OpenChunk>,
}

struct OpenChunk {
    key: Key,
    value: Vec<u8>,
    payload_at: usize,
    room: usize,
}

impl Cutter<'_> {
    /// Notes where a Record starts, if it is the first that starts in its chunk.
    fn start_record(&mut self, offset: u32) {
        let open = self.open_chunk(offset);
        let noted = &mut open.value[START_AT..START_AT + 4];
        if noted == NO_START.to_be_bytes() {
            noted.copy_from_slice(&offset.to_be_bytes());
            let start_offset = (open.value.len() - open.payload_at) as u16;
            open.value[START_AT + 4..HEADER_BYTES].copy_from_slice(&start_offset.to_be_bytes());
        }
    }

    fn write(&mut self, offset: u32, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let open = self.open_chunk(offset);
            let (now, later) = bytes.split_at(bytes.len().min(open.room));
            open.value.extend_from_slice(now);
            open.room -= now.len();
            bytes = later;
        }
    }

    /// The chunk that takes the next byte, which belongs to the Record at `offset` in the block.
    fn open_chunk(&mut self, offset: u32) -> &mut OpenChunk {
        if self.open.as_ref().is_some_and(|open| open.room == 0) {
            self.close();
        }
        let index = self.chunks.len() as u32;
        let (block, hash, count) = (self.block, self.hash, self.count);
        self.open.get_or_insert_with(|| OpenChunk::new(block, hash, count, index, offset))
    }

    fn close(&mut self) {
        if let Some(OpenChunk { key, mut value, payload_at, .. }) = self.open.take() {
            compress(&mut value, payload_at);
            let checksum = checksum_of(&key.to_bytes(), &value);
            value.extend_from_slice(&checksum);
            self.chunks.push((key, value));
        }
    }
}

impl OpenChunk {
    fn new(block: &Block, hash: BlockHash, count: u32, index: u32, offset: u32) -> OpenChunk {
        let at = block.first.plus(u64::from(offset));
        let mut value = Vec::with_capacity(if count == 1 { 1024 } else { VALUE_BYTES_MAX });
        value.push(FORMAT);
        value.extend_from_slice(&block.partition.0.to_be_bytes());
        value.extend_from_slice(&block.first.0.to_be_bytes());
        value.extend_from_slice(&(block.records.len() as u32).to_be_bytes());
        value.extend_from_slice(&index.to_be_bytes());
        value.extend_from_slice(&count.to_be_bytes());
        value.extend_from_slice(&block.booked_at_ms.to_be_bytes());
        value.extend_from_slice(&NO_START.to_be_bytes());
        value.extend_from_slice(&0u16.to_be_bytes());
        if index == 0 {
            value.extend_from_slice(&hash.0);
            value.extend_from_slice(&block.previous.0);
        }
        value.extend_from_slice(&[0; PART_LENGTH_BYTES]);
        let payload_at = value.len();
        let key = Key { partition: block.partition, at, index };
        OpenChunk { key, value, payload_at, room: payload_bytes_max(index) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testkit::conformance::bytes;

    fn block(sizes: &[usize]) -> Block {
        let records = sizes.iter().enumerate().map(|(number, size)| vec![number as u8; *size]).collect();
        Block { partition: Partition(2), first: Sequence(41), booked_at_ms: -5, previous: BlockHash([9; 32]), records }
    }

    fn parsed(block: &Block) -> Vec<Chunk> {
        cut(block, block.hash()).iter().map(|(key, value)| Chunk::parse(&key.to_bytes(), value).unwrap()).collect()
    }

    fn assembled(chunks: Vec<Chunk>) -> Result<(Block, BlockHash), Fault> {
        let mut chunks = chunks.into_iter();
        let mut assembler = BlockAssembler::new(chunks.next().ok_or(Fault::Missing)?)?;
        chunks.try_for_each(|chunk| assembler.push(chunk))?;
        assembler.finish()
    }

    /// A block of Records that are as similar as real ones, so that compression makes them smaller.
    fn similar_block(count: u8, size: usize) -> Block {
        let record = |number| (0..size).map(|at| if at % 8 == 0 { number } else { (at * at / 7) as u8 }).collect();
        Block { records: (0..count).map(record).collect(), ..block(&[]) }
    }

    #[test]
    fn what_records_have_in_common_is_stored_once() {
        let block = similar_block(60, 300);
        let chunks = cut(&block, block.hash());
        let stored: usize = chunks.iter().map(|(_, value)| value.len()).sum();
        assert!(stored < 60 * 200, "{stored}");
        assert_eq!(assembled(parsed(&block)), Ok((block.clone(), block.hash())));
    }

    #[test]
    fn what_would_not_be_smaller_stays_as_it_is() {
        let block = Block { records: vec![bytes(7, 500)], ..block(&[]) };
        let (_, value) = &cut(&block, block.hash())[0];
        let beside = HEADER_BYTES + LINK_BYTES + PART_LENGTH_BYTES + LENGTH_BYTES + CHECKSUM_BYTES;
        assert_eq!(value.len(), beside + 500);
        assert_eq!(assembled(parsed(&block)), Ok((block.clone(), block.hash())));
    }

    /// Every flipped bit is found by its checksum; this is about one for which the checksum was
    /// made again.
    #[test]
    fn a_forged_part_is_told_from_a_whole_one() {
        let block = similar_block(10, 300);
        let (key, sound) = cut(&block, block.hash()).remove(0);
        for at in HEADER_BYTES + LINK_BYTES..sound.len() - CHECKSUM_BYTES {
            let mut value = sound[..sound.len() - CHECKSUM_BYTES].to_vec();
            value[at] ^= 0x55;
            let checksum = checksum_of(&key.to_bytes(), &value);
            value.extend_from_slice(&checksum);
            let read = Chunk::parse(&key.to_bytes(), &value).and_then(|chunk| BlockAssembler::new(chunk)?.finish());
            assert!(read.is_err(), "byte {at}");
        }
    }

    /// Sizes at which the stream ends just before, at and just behind the border of a chunk, also
    /// inside a length.
    fn sizes() -> impl Strategy<Value = Vec<usize>> {
        let border = payload_bytes_max(0);
        let size = prop_oneof![
            0..400usize,
            border - 12..border + 4,
            payload_bytes_max(1) - 12..payload_bytes_max(1) + 4,
            20_000..40_000usize,
        ];
        proptest::collection::vec(size, 1..40)
    }

    proptest! {
        #[test]
        fn a_block_comes_back_whole(sizes in sizes()) {
            let block = block(&sizes);
            let chunks = parsed(&block);
            prop_assert!(chunks.is_sorted_by_key(|chunk| chunk.key));
            prop_assert!(cut(&block, block.hash()).iter().all(|(_, value)| value.len() <= VALUE_BYTES_MAX));
            prop_assert_eq!(assembled(chunks), Ok((block.clone(), block.hash())));
        }

        #[test]
        fn a_record_starts_in_exactly_one_chunk_and_comes_back_from_there(sizes in sizes()) {
            let block = block(&sizes);
            for (offset, expected) in block.records.iter().enumerate() {
                let sequence = block.first.plus(offset as u64);
                let mut assemblers = Vec::new();
                for (index, chunk) in parsed(&block).into_iter().enumerate() {
                    assemblers.extend(RecordAssembler::new(chunk, sequence).ok().map(|assembler| (index, assembler)));
                }
                prop_assert_eq!(assemblers.len(), 1);
                let (index, mut assembler) = assemblers.remove(0);
                for chunk in parsed(&block).into_iter().skip(index + 1) {
                    if assembler.record().is_some() {
                        break;
                    }
                    assembler.push(chunk).unwrap();
                }
                prop_assert_eq!(assembler.record(), Some(expected.as_slice()));
            }
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_found() {
        let block = block(&[10, 9_000, 3]);
        for (key, value) in cut(&block, block.hash()) {
            for bit in 0..value.len() * 8 {
                let mut flipped = value.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Chunk::parse(&key.to_bytes(), &flipped).err(), Some(Fault::Checksum), "bit {bit}");
            }
        }
    }

    #[test]
    fn a_chunk_under_another_key_is_found() {
        let block = block(&[10, 9_000, 3]);
        let chunks = cut(&block, block.hash());
        let moved = Chunk::parse(&chunks[1].0.to_bytes(), &chunks[0].1);
        assert_eq!(moved.err(), Some(Fault::Checksum));
    }

    #[test]
    fn a_missing_chunk_is_found_wherever_it_was() {
        let block = block(&[10, 40_000, 3]);
        for missing in 0..parsed(&block).len() {
            let mut chunks = parsed(&block);
            chunks.remove(missing);
            assert_eq!(assembled(chunks), Err(Fault::Missing), "chunk {missing}");
        }
    }

    /// Written down so that a change of the format does not pass unnoticed.
    #[test]
    fn the_bytes_of_format_1_stay_as_they_are() {
        let block = similar_block(30, 300);
        let chunks = cut(&block, block.hash());
        let stored: Vec<_> =
            chunks.iter().map(|(key, value)| (key.index, value.len(), crc32c::crc32c(value))).collect();
        assert_eq!(stored, [(0, 3_814, 1_142_981_490), (1, 1_241, 2_566_509_728)]);
    }

    #[test]
    fn a_newer_format_is_no_damage() {
        let block = block(&[10]);
        let (key, mut value) = cut(&block, block.hash()).remove(0);
        value.truncate(value.len() - CHECKSUM_BYTES);
        value[0] = FORMAT + 1;
        let checksum = checksum_of(&key.to_bytes(), &value);
        value.extend_from_slice(&checksum);
        assert_eq!(Chunk::parse(&key.to_bytes(), &value).err(), Some(Fault::NewerFormat(FORMAT + 1)));
    }

    /// The hash of a block finds exchanged content, even if all chunks have good checksums.
    #[test]
    fn a_forged_record_is_found_by_the_hash() {
        let honest = block(&[10, 20]);
        let mut forged = honest.clone();
        forged.records[1][0] ^= 1;
        let chunks = cut(&forged, honest.hash())
            .iter()
            .map(|(key, value)| Chunk::parse(&key.to_bytes(), value).unwrap())
            .collect();
        assert_eq!(assembled(chunks), Err(Fault::Hash));
    }
}
