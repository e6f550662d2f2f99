//! Receivables file: what is due to whom after the Records of a balance file, beside that file.
//!
//! A report of receivables begins there. The balance file of the same cut has the accounts, this
//! one the single claims. It is derived: one that is lost or damaged is made again.
//!
//! # Format 1
//! ```text
//! pages    bytes of its parts (u32), the parts, CRC32C of the cut, the page's place and the parts
//! part     CBOR: see [`Receivables::items`]
//! end      0 (u32), magic (7 bytes), format (u8), cut (u64), booked at (i64, milliseconds since
//!          1970), parts (u64), pages (u64), CRC32C of the end
//! ```
//! Numbers are big-endian. A page has some 16 KiB.

use std::io::{self, Write};

use crc32c::crc32c;
use ledger::receivables::{Receivables, StoredReceivable};
use minicbor::Decoder;

use super::file::{FileCut, FileError, FileSource, MAGIC, page_checksum};
use store::{Part, StoreError};

const FORMAT: u8 = 1;
/// A page ends once it has this many bytes.
const PAGE_BYTES: usize = 16 * 1024;
/// Most bytes of a page that is read.
const PAGE_BYTES_MAX: usize = PAGE_BYTES + 1024;
const END_BYTES: usize = 4 + 7 + 1 + 4 * 8;
const SUM_BYTES: usize = 4;
const PREFIX: &str = "receivables1-";

pub(super) fn file_name(cut: FileCut) -> String {
    format!("{PREFIX}{}", cut.digits())
}

/// Cut in a file's name; `None` if it is no receivables file's.
pub(super) fn cut_of(name: &str) -> Option<FileCut> {
    FileCut::of_digits(name.strip_prefix(PREFIX)?)
}

/// Writes receivables as a file.
pub(super) fn write(cut: FileCut, receivables: &Receivables, out: &mut dyn Write) -> io::Result<()> {
    let (mut page, mut parts, mut pages) = (Vec::new(), 0_u64, 0_u64);
    let mut end_page = |page: &mut Vec<u8>| -> io::Result<()> {
        out.write_all(&(page.len() as u32).to_be_bytes())?;
        out.write_all(page)?;
        out.write_all(&page_checksum(cut, pages, page).to_be_bytes())?;
        pages += 1;
        page.clear();
        Ok(())
    };
    for receivable in receivables.items() {
        minicbor::encode(receivable, &mut page).expect("writing into memory cannot fail");
        parts += 1;
        if page.len() >= PAGE_BYTES {
            end_page(&mut page)?;
        }
    }
    if !page.is_empty() {
        end_page(&mut page)?;
    }
    let end = end_of(cut, parts, pages);
    out.write_all(&end)?;
    out.write_all(&crc32c(&end).to_be_bytes())
}

fn end_of(cut: FileCut, parts: u64, pages: u64) -> Vec<u8> {
    let mut end = vec![0; 4];
    end.extend(MAGIC);
    end.push(FORMAT);
    end.extend(cut.through.0.to_be_bytes());
    end.extend(cut.booked_at_ms.to_be_bytes());
    end.extend(parts.to_be_bytes());
    end.extend(pages.to_be_bytes());
    end
}

/// The receivables file of a cut in a store.
pub(super) fn stored(store: &Part, cut: FileCut) -> FileSource {
    FileSource::Stored(store.clone(), file_name(cut))
}

/// Takes every part of the file of a cut. The parts before a damaged page are taken too.
pub(super) fn each(file: &FileSource, cut: FileCut, mut take: impl FnMut(StoredReceivable)) -> Result<(), FileError> {
    let (mut offset, mut parts, mut pages) = (0, 0_u64, 0_u64);
    loop {
        let length = file.part(offset, 4)?;
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        if length == 0 {
            let end = file.part(offset, END_BYTES + SUM_BYTES)?;
            let expected = end_of(cut, parts, pages);
            let is_whole = end[..END_BYTES] == expected && end[END_BYTES..] == crc32c(&expected).to_be_bytes();
            return if is_whole { Ok(()) } else { Err(FileError::Damaged) };
        }
        if length > PAGE_BYTES_MAX {
            return Err(FileError::Damaged);
        }
        let page = file.part(offset + 4, length + SUM_BYTES)?;
        let (page, sum) = page.split_at(length);
        if page_checksum(cut, pages, page).to_be_bytes() != sum {
            return Err(FileError::Damaged);
        }
        let mut decoder = Decoder::new(page);
        while decoder.position() < page.len() {
            take(decoder.decode().map_err(|_of_another_release| FileError::Damaged)?);
            parts += 1;
        }
        offset += (4 + length + SUM_BYTES) as u64;
        pages += 1;
    }
}

/// The receivables of a cut.
pub(super) fn read(file: &FileSource, cut: FileCut) -> Result<Receivables, FileError> {
    let mut receivables = Receivables::default();
    each(file, cut, |receivable| receivables.restore(receivable))?;
    Ok(receivables)
}

/// The cuts of the receivables files of a store.
pub(super) fn cuts(store: &Part) -> Result<Vec<FileCut>, StoreError> {
    Ok(store.files()?.into_iter().filter_map(|(name, _)| cut_of(&name)).collect())
}
