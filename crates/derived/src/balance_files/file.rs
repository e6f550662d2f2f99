//! Balance file: every account of every ledger after a Record, and facts that later Records lack,
//! sorted, in one file that is never changed.
//!
//! # Format 1
//! ```text
//! pages    each at most 16 KiB: rows, then the CRC32C of the cut, the page's place and its rows
//! row      key (16 bytes, zeros behind what it has), then two numbers as LEB128
//! account  1 for the house and 0 for others, group (u32), kind of the ledger (0 merchant, 1
//!          platform, 2 recipient), recipient (u32), account's code (u16), the account's recipient
//!          or 0 (u32): debits and credits in centavos
//! id       the same of a merchant or a recipient, with code 0: both halves of its id
//! pending  2, group (u32), ordinal of the Record that opened the charge (u64): that Record's
//!          sequence; 0, or 1 and the place of the card's brand
//! settings 3, group (u32), sequence of a Record that set the merchant's settings (u64), part (u8):
//!          30 bytes, as two big-endian numbers, of the settings' length (u16) and CBOR, with zeros
//!          behind
//! discount 4, due day (u32), day of the anticipation (u32), group (u32), then 0: amount and
//!          discount in centavos; or 1: number of splits, 0. None that was due before the cut's day
//! closed   5, month (u32): sequence of the Record that closed it, 0
//! fences   for each page the key of its first row, its place in the file (u64), its bytes (u32)
//! footer   magic (7 bytes), format (u8), cut (u64), booked at (i64, milliseconds since 1970), rows
//!          (u64), pages (u64), CRC32C of the fences and the footer
//! ```
//! Numbers are big-endian. The bytes follow from the Records alone, so a file that is lost or
//! damaged is made again as it was. Only the fences are in memory while a file is read, 28 bytes
//! for some 600 accounts.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec;

use crc32c::{crc32c, crc32c_append};
use ledger::entry::Balance;

use super::carried_facts::{KEY_BYTES, RowKey};
use store::{Part, Sequence, StoreError, covered};

pub(super) const MAGIC: &[u8; 7] = b"centavo";
/// The format that this release writes and reads.
const FORMAT: u8 = 1;
/// A page ends once it has this many bytes.
const PAGE_BYTES: usize = 16 * 1024;
const FENCE_BYTES: usize = KEY_BYTES + 12;
const FOOTER_BYTES: usize = 7 + 1 + 4 * 8 + 4;
const PREFIX: &str = "balances1-";

/// Cut of a file: the last Records that its balances include.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileCut {
    /// The last Record; it ends a block.
    pub(super) through: Sequence,
    /// When its block was booked, milliseconds since 1970 (UTC).
    pub(super) booked_at_ms: i64,
}

impl FileCut {
    pub(super) fn file_name(self) -> String {
        format!("{PREFIX}{}", self.digits())
    }

    /// The cut as the end of a file's name.
    pub(super) fn digits(self) -> String {
        format!("{:016x}-{:012x}", self.through.0, self.booked_at_ms.max(0))
    }

    /// Cut in a file's name; `None` if it is no balance file's.
    pub(super) fn of_file_name(name: &str) -> Option<Self> {
        Self::of_digits(name.strip_prefix(PREFIX)?)
    }

    /// Cut at the end of a file's name.
    pub(super) fn of_digits(digits: &str) -> Option<Self> {
        let (through, booked) = digits.split_once('-')?;
        let through = Sequence(u64::from_str_radix(through, 16).ok()?);
        Some(Self { through, booked_at_ms: i64::from_str_radix(booked, 16).ok()? })
    }
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// It is not what was written, or another release wrote it: it can be made again.
    #[error("a balance file is damaged")]
    Damaged,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A place and its two numbers: of an account, its sums since the first Record.
pub(super) type Row = (RowKey, Balance);

/// Writes rows, in their order, as a file.
pub(super) fn write(
    cut: FileCut,
    rows: impl Iterator<Item = Result<Row, FileError>>,
    out: &mut dyn Write,
) -> io::Result<Result<(), FileError>> {
    let (mut page, mut fences, mut offset, mut count) = (Vec::new(), Vec::new(), 0, 0_u64);
    let mut end_page = |page: &mut Vec<u8>| -> io::Result<()> {
        let place = (fences.len() / FENCE_BYTES) as u64;
        let first: [u8; KEY_BYTES] = *page.first_chunk().unwrap_or(&[0; KEY_BYTES]);
        page.extend(page_checksum(cut, place, page).to_be_bytes());
        fences.extend(first);
        fences.extend(u64::to_be_bytes(offset));
        fences.extend((page.len() as u32).to_be_bytes());
        out.write_all(page)?;
        offset += page.len() as u64;
        page.clear();
        Ok(())
    };
    for row in rows {
        let (key, balance) = match row {
            Ok(row) => row,
            Err(error) => return Ok(Err(error)),
        };
        page.extend(key.0);
        write_leb(&mut page, balance.debits);
        write_leb(&mut page, balance.credits);
        count += 1;
        if page.len() >= PAGE_BYTES {
            end_page(&mut page)?;
        }
    }
    if !page.is_empty() {
        end_page(&mut page)?;
    }
    let pages = (fences.len() / FENCE_BYTES) as u64;
    let mut end = fences;
    end.extend(MAGIC);
    end.push(FORMAT);
    end.extend(cut.through.0.to_be_bytes());
    end.extend(cut.booked_at_ms.to_be_bytes());
    end.extend(count.to_be_bytes());
    end.extend(pages.to_be_bytes());
    end.extend(crc32c(&end).to_be_bytes());
    out.write_all(&end)?;
    Ok(Ok(()))
}

/// Where the bytes of a file are.
pub(super) enum FileSource {
    /// In a store, under its name.
    Stored(Part, String),
    /// In a file of its own.
    Alone(File),
}

impl FileSource {
    /// So many bytes from a place on.
    pub(super) fn part(&self, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        let part = match self {
            Self::Stored(store, name) => store.file_part(name, offset, length)?.ok_or(FileError::Damaged)?,
            Self::Alone(file) => {
                let mut part = vec![0; length];
                file.read_exact_at(&mut part, offset).map_err(|_too_short| FileError::Damaged)?;
                part
            }
        };
        if part.len() == length { Ok(part) } else { Err(FileError::Damaged) }
    }
}

/// A file that is read.
pub(super) struct BalanceFile {
    source: FileSource,
    cut: FileCut,
    fences: Vec<Fence>,
    /// Set when a page turns out to be damaged.
    is_damaged: Arc<AtomicBool>,
}

struct Fence {
    first: RowKey,
    offset: u64,
    bytes: u32,
}

impl BalanceFile {
    /// Opens a file of so many bytes. `is_damaged` is set when a page turns out to be damaged.
    pub(super) fn open(source: FileSource, bytes: u64, is_damaged: Arc<AtomicBool>) -> Result<Self, FileError> {
        let at = bytes.checked_sub(FOOTER_BYTES as u64).ok_or(FileError::Damaged)?;
        let footer = source.part(at, FOOTER_BYTES)?;
        let word = |place: usize| {
            let word = footer[8 + place * 8..16 + place * 8].first_chunk().expect("a footer has four words");
            u64::from_be_bytes(*word)
        };
        let length =
            word(3).checked_mul(FENCE_BYTES as u64).filter(|length| *length <= at).ok_or(FileError::Damaged)?;
        let end = source.part(at - length, length as usize + FOOTER_BYTES)?;
        let is_whole = covered(b"", &end).is_some() && footer.starts_with(MAGIC) && footer[7] == FORMAT;
        let cut = FileCut { through: Sequence(word(0)), booked_at_ms: word(1) as i64 };
        let is_another = matches!(&source, FileSource::Stored(_, name) if *name != cut.file_name());
        if !is_whole || is_another {
            return Err(FileError::Damaged);
        }
        let fences = end[..length as usize].chunks_exact(FENCE_BYTES).map(Fence::parse).collect();
        Ok(Self { source, cut, fences, is_damaged })
    }

    pub(super) fn cut(&self) -> FileCut {
        self.cut
    }

    /// The rows from a place on.
    pub(super) fn rows_from(&self, key: RowKey) -> Rows<'_> {
        // The place may be within the page before the first one that begins after it.
        let page = self.fences.partition_point(|fence| fence.first <= key).saturating_sub(1);
        Rows { file: self, page, rows: Vec::new().into_iter(), from: key }
    }

    fn page(&self, place: usize) -> Result<Vec<Row>, FileError> {
        let Fence { offset, bytes, .. } = self.fences[place];
        let page = self.source.part(offset, bytes as usize)?;
        let (mut rest, sum) = page.split_last_chunk::<4>().ok_or(FileError::Damaged)?;
        if page_checksum(self.cut, place as u64, rest).to_be_bytes() != *sum {
            return Err(FileError::Damaged);
        }
        let mut rows = Vec::new();
        while let Some((key, sums)) = rest.split_first_chunk::<KEY_BYTES>() {
            rest = sums;
            let (Some(debits), Some(credits)) = (leb(&mut rest), leb(&mut rest)) else {
                return Err(FileError::Damaged);
            };
            rows.push((RowKey(*key), Balance { debits, credits }));
        }
        Ok(rows)
    }
}

impl Fence {
    fn parse(bytes: &[u8]) -> Self {
        let (first, rest) = bytes.split_first_chunk().expect("a fence has its length");
        let (offset, length) = rest.split_first_chunk().expect("a fence has its length");
        let bytes = length.first_chunk().expect("a fence has its length");
        Self { first: RowKey(*first), offset: u64::from_be_bytes(*offset), bytes: u32::from_be_bytes(*bytes) }
    }
}

/// Rows of a file, in their order.
pub(super) struct Rows<'a> {
    file: &'a BalanceFile,
    /// The next page.
    page: usize,
    rows: vec::IntoIter<Row>,
    from: RowKey,
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            for row in self.rows.by_ref() {
                if row.0 >= self.from {
                    return Some(Ok(row));
                }
            }
            if self.page == self.file.fences.len() {
                return None;
            }
            match self.file.page(self.page) {
                Ok(rows) => self.rows = rows.into_iter(),
                Err(error) => {
                    self.file.is_damaged.store(true, Ordering::Relaxed);
                    self.page = self.file.fences.len();
                    return Some(Err(error));
                }
            }
            self.page += 1;
        }
    }
}

pub(super) fn page_checksum(cut: FileCut, place: u64, rows: &[u8]) -> u32 {
    let place = crc32c_append(crc32c(&cut.through.0.to_be_bytes()), &place.to_be_bytes());
    crc32c_append(place, rows)
}

/// Sums are never negative.
fn write_leb(into: &mut Vec<u8>, sum: i128) {
    let mut value = sum as u128;
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

fn leb(from: &mut &[u8]) -> Option<i128> {
    let mut value = 0_i128;
    for shift in (0..126).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        value |= i128::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
