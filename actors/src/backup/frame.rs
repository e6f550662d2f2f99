//! Frames: the format of a backup in its files and on its way from a server.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use super::{BackupError, DurableValue, FORMAT};
use derived::heads::Heads;
use store::{Block, BlockHash, Fields, Head, Partition, Sequence, StoreError, covered};

/// One frame of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A block of the journal.
    Block(Block),
    /// A durable value.
    Value(DurableValue),
    /// The end of a section, and the ends of the journals there.
    End(Heads),
}

/// First bytes of every file, and of every answer of a server; the byte of the format follows.
const MAGIC: &[u8; 15] = b"centavo backup\n";
const BLOCK: u8 = b'b';
const VALUE: u8 = b'v';
const VALUE_OF_PARTITION: u8 = b'p';
const END: u8 = b'e';
/// End of a backup, for one partition.
const HEAD_BYTES: usize = 48;
/// The kind and the length of a frame, before its payload.
const HEADER_BYTES: usize = 5;

/// Begins a file or an answer.
pub fn write_magic(to: &mut impl Write) -> io::Result<()> {
    to.write_all(MAGIC)?;
    to.write_all(&[FORMAT])
}

impl Frame {
    /// The bytes of the frame: kind, length, payload, and the CRC32C of all three.
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[0] = match self {
            Frame::Block(block) => {
                bytes.extend_from_slice(&block.partition.0.to_be_bytes());
                bytes.extend_from_slice(&block.first.0.to_be_bytes());
                bytes.extend_from_slice(&block.booked_at_ms.to_be_bytes());
                bytes.extend_from_slice(&block.previous.0);
                bytes.extend_from_slice(&length_of(block.records.len())?);
                for record in &block.records {
                    bytes.extend_from_slice(&length_of(record.len())?);
                    bytes.extend_from_slice(record);
                }
                BLOCK
            }
            Frame::Value(DurableValue { partition, key, value }) => {
                let is_of_partition = *partition != Partition(0);
                if is_of_partition {
                    bytes.extend_from_slice(&partition.0.to_be_bytes());
                }
                bytes.extend_from_slice(&length_of(key.len())?);
                bytes.extend_from_slice(key);
                bytes.extend_from_slice(value);
                if is_of_partition { VALUE_OF_PARTITION } else { VALUE }
            }
            Frame::End(heads) => {
                // There is always a partition 0.
                let only = heads.iter().next().is_none().then_some(Head::EMPTY);
                for head in heads.iter().map(|(_, head)| head).chain(only) {
                    bytes.extend_from_slice(&head.next.0.to_be_bytes());
                    bytes.extend_from_slice(&head.hash.0);
                    bytes.extend_from_slice(&head.booked_at_ms.to_be_bytes());
                }
                END
            }
        };
        let length = length_of(bytes.len() - HEADER_BYTES)?;
        bytes[1..HEADER_BYTES].copy_from_slice(&length);
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        Ok(bytes)
    }

    fn parse(kind: u8, payload: &[u8]) -> Option<Frame> {
        let mut fields = Fields(payload);
        let frame = match kind {
            BLOCK => {
                let partition = Partition(u16::from_be_bytes(fields.take()?));
                let first = Sequence(u64::from_be_bytes(fields.take()?));
                let booked_at_ms = i64::from_be_bytes(fields.take()?);
                let previous = BlockHash(fields.take()?);
                let count = u32::from_be_bytes(fields.take()?);
                let records = (0..count).map(|_| counted(&mut fields)).collect::<Option<Vec<_>>>()?;
                Frame::Block(Block { partition, first, booked_at_ms, previous, records })
            }
            VALUE | VALUE_OF_PARTITION => {
                let partition = match kind {
                    VALUE => Partition(0),
                    _ => Partition(u16::from_be_bytes(fields.take()?)),
                };
                let key = counted(&mut fields)?;
                Frame::Value(DurableValue { partition, key, value: std::mem::take(&mut fields.0).to_vec() })
            }
            END => {
                let count = payload.len() / HEAD_BYTES;
                if count == 0 {
                    return None;
                }
                let heads = (0..count).map(|_| head(&mut fields)).collect::<Option<Vec<_>>>()?;
                Frame::End(Heads::new(heads))
            }
            _ => return None,
        };
        fields.0.is_empty().then_some(frame)
    }
}

fn length_of(count: usize) -> io::Result<[u8; 4]> {
    let too_large = |_| io::Error::new(io::ErrorKind::InvalidInput, "a frame of a backup has less than 4 GiB");
    u32::try_from(count).map(u32::to_be_bytes).map_err(too_large)
}

/// The end of one partition.
fn head(fields: &mut Fields<'_>) -> Option<Head> {
    let next = Sequence(u64::from_be_bytes(fields.take()?));
    let hash = BlockHash(fields.take()?);
    let booked_at_ms = i64::from_be_bytes(fields.take()?);
    (next >= Sequence::FIRST).then_some(Head { next, hash, booked_at_ms })
}

/// Bytes with their length before them.
fn counted(fields: &mut Fields<'_>) -> Option<Vec<u8>> {
    let length = usize::try_from(u32::from_be_bytes(fields.take()?)).ok()?;
    let (bytes, rest) = fields.0.split_at_checked(length)?;
    fields.0 = rest;
    Some(bytes.to_vec())
}

/// Reads and checks frames. It never returns a frame that was not there: where the bytes end early,
/// that is an error.
#[derive(Debug)]
pub struct FrameReader<R> {
    from: R,
    name: PathBuf,
}

impl<R: Read> FrameReader<R> {
    /// Begins to read; `name` is what errors call the source.
    pub fn new(mut from: R, name: PathBuf) -> Result<Self, BackupError> {
        let mut begin = [0; MAGIC.len() + 1];
        let read = from.read_exact(&mut begin);
        let mut reader = Self { from, name };
        read.map_err(|error| reader.unreadable(error))?;
        match begin.split_last() {
            Some((&found, magic)) if magic == MAGIC && found > FORMAT => {
                Err(BackupError::NewerFormat { file: std::mem::take(&mut reader.name), found })
            }
            Some((&found, magic)) if magic == MAGIC && found > 0 => Ok(reader),
            _ => Err(reader.damaged("it does not begin as a file of a backup does")),
        }
    }

    /// The next frame; an error where there is none.
    pub fn next_frame(&mut self) -> Result<Frame, BackupError> {
        let mut bytes = vec![0; HEADER_BYTES];
        self.from.read_exact(&mut bytes).map_err(|error| self.unreadable(error))?;
        let length = u32::from_be_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
        // The length may be damaged: memory is taken as the bytes come.
        let rest = u64::from(length) + CHECKSUM_BYTES as u64;
        let read = (&mut self.from).take(rest).read_to_end(&mut bytes).map_err(|error| self.unreadable(error))?;
        if (read as u64) < rest {
            return Err(self.cut_off());
        }
        let whole = covered(b"", &bytes);
        let covered = whole.ok_or_else(|| self.damaged("a frame does not match its checksum"))?;
        let frame = Frame::parse(covered[0], &covered[HEADER_BYTES..]);
        frame.ok_or_else(|| self.damaged("a frame has no meaning"))
    }

    /// Requires that nothing follows.
    pub fn finish(mut self) -> Result<(), BackupError> {
        match self.from.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.damaged("something follows its end")),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// The error for damage in this source.
    pub(crate) fn damaged(&self, detail: &str) -> BackupError {
        BackupError::Damaged { file: self.name.clone(), detail: detail.to_owned() }
    }

    fn cut_off(&self) -> BackupError {
        self.damaged("it is cut off")
    }

    fn unreadable(&self, error: io::Error) -> BackupError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.cut_off(),
            _ => StoreError::machine(&self.name, error).into(),
        }
    }
}

const CHECKSUM_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden bytes that detect a change of the format: backups are stored for years.
    #[test]
    fn the_bytes_of_format_1_stay_as_they_are() {
        let mut bytes = Vec::new();
        write_magic(&mut bytes).unwrap();
        let (partition, first, previous) = (Partition(1), Sequence(7), BlockHash([4; 32]));
        let records = vec![b"one".to_vec(), Vec::new(), vec![9; 300]];
        let block = Block { partition, first, booked_at_ms: -2, previous, records };
        let heads = Heads::new(vec![Head::EMPTY, Head::after(&block, block.hash())]);
        let value = |partition| DurableValue { partition, key: b"keys/a".to_vec(), value: vec![5; 40] };
        let values = [Partition(0), Partition(258)].map(|partition| Frame::Value(value(partition)));
        let frames = [Frame::Block(block)].into_iter().chain(values).chain([Frame::End(heads)]);
        frames.for_each(|frame| bytes.extend(frame.to_bytes().unwrap()));
        assert_eq!((bytes.len(), crc32c::crc32c(&bytes)), (619, 3392260616));
    }

    #[test]
    fn there_is_no_format_0() {
        let mut none = MAGIC.to_vec();
        none.push(0);
        assert!(FrameReader::new(none.as_slice(), "bytes".into()).is_err());
    }
}
