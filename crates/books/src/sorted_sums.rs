//! Sums by key, sorted, in bounded memory.
//!
//! Some thousand keys are in memory. When there are more, they go to a temporary file of the system
//! as a sorted run; the runs are merged while they are read, as in an LSM tree. Whoever needs few
//! keys writes no file.

use std::collections::{BTreeMap, BinaryHeap, btree_map};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Keys in memory, some 200 bytes each.
pub(crate) const HELD_MAX: usize = 32_768;
/// Runs of a file. When there are more, they become one.
const RUNS_MAX: usize = 128;
/// Bytes that are read of a run at once.
const READ_BYTES: usize = 16 * 1024;

/// Numbers of one key.
pub(crate) type Sums = [i128; 3];

/// Sums by key.
pub(crate) struct SortedSums {
    held: BTreeMap<Vec<u8>, Sums>,
    held_max: usize,
    runs: Runs,
}

/// Sorted runs in one file, one behind the other.
#[derive(Default)]
struct Runs {
    /// There is one as soon as there is a run.
    file: Option<File>,
    ends: Vec<u64>,
}

/// The key of an account, by the outside names of its ledger and of itself, in whose order it is.
pub(crate) fn key_of_account(ledger: &str, account: &str) -> Vec<u8> {
    [ledger.as_bytes(), b"\0", account.as_bytes()].concat()
}

/// The names of ledger and account in a key of [`key_of_account`].
pub(crate) fn account_of_key(key: Vec<u8>) -> io::Result<(String, String)> {
    let names = String::from_utf8(key).map_err(io::Error::other)?;
    let (ledger, account) = names.split_once('\0').ok_or(io::ErrorKind::InvalidData)?;
    Ok((ledger.to_owned(), account.to_owned()))
}

impl Default for SortedSums {
    fn default() -> Self {
        Self::holding(HELD_MAX)
    }
}

impl SortedSums {
    /// No sums, of which so many keys will be in memory.
    pub(crate) fn holding(held_max: usize) -> Self {
        Self { held: BTreeMap::new(), held_max, runs: Runs::default() }
    }

    /// Adds to the sums of a key of at most 65,535 bytes; those of a new key begin at 0.
    pub(crate) fn add(&mut self, key: &[u8], sums: Sums) -> io::Result<()> {
        if let Some(of) = self.held.get_mut(key) {
            add(of, sums);
            return Ok(());
        }
        self.held.insert(key.to_vec(), sums);
        if self.held.len() > self.held_max { self.set_aside() } else { Ok(()) }
    }

    /// All keys in their order, each once, with its sums.
    pub(crate) fn rows(&self) -> io::Result<SortedRows<'_>> {
        Ok(SortedRows { held: self.held.iter().peekable(), runs: self.runs.merged()? })
    }

    fn set_aside(&mut self) -> io::Result<()> {
        if self.runs.ends.len() >= RUNS_MAX {
            let mut one = Runs::default();
            one.append(self.runs.merged()?)?;
            self.runs = one;
        }
        let held = std::mem::take(&mut self.held);
        self.runs.append(held.into_iter().map(Ok))
    }
}

fn add(to: &mut Sums, sums: Sums) {
    to.iter_mut().zip(sums).for_each(|(of, sum)| *of += sum);
}

type Row = (Vec<u8>, Sums);

impl Runs {
    fn append(&mut self, rows: impl Iterator<Item = io::Result<Row>>) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        let begin = self.ends.last().copied().unwrap_or_default();
        let mut out = BufWriter::with_capacity(1 << 18, Section { file: &file, range: begin..u64::MAX });
        for row in rows {
            write(&row?, &mut out)?;
        }
        let end = out.into_inner().map_err(io::IntoInnerError::into_error)?.range.start;
        self.ends.push(end);
        self.file = Some(file);
        Ok(())
    }

    fn merged(&self) -> io::Result<MergedRows<'_>> {
        let mut merged = MergedRows { runs: Vec::new(), next: BinaryHeap::new() };
        let Some(file) = &self.file else { return Ok(merged) };
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        for (place, (begin, end)) in begins.zip(&self.ends).enumerate() {
            merged.runs.push(BufReader::with_capacity(READ_BYTES, Section { file, range: begin..*end }));
            merged.advance(place)?;
        }
        Ok(merged)
    }
}

/// Part of a file that is written or read from its beginning.
struct Section<'a> {
    file: &'a File,
    range: Range<u64>,
}

impl Read for Section<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX);
        let length = into.len().min(rest);
        let read = self.file.read_at(&mut into[..length], self.range.start)?;
        self.range.start += read as u64;
        Ok(read)
    }
}

impl Write for Section<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(bytes, self.range.start)?;
        self.range.start += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A row: length of the key (u16) and the key; then each sum as the count of its bytes (u8) and
/// these, little-endian in ZigZag encoding.
fn write((key, sums): &Row, out: &mut impl Write) -> io::Result<()> {
    let length = u16::try_from(key.len()).map_err(|_too_long| io::ErrorKind::InvalidInput)?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(key)?;
    for sum in sums {
        let folded = ((sum << 1) ^ (sum >> 127)) as u128;
        let count = (u128::BITS - folded.leading_zeros()).div_ceil(8) as usize;
        out.write_all(&[count as u8])?;
        out.write_all(&folded.to_le_bytes()[..count])?;
    }
    Ok(())
}

/// The next row of a run; none at its end.
fn read(run: &mut BufReader<Section<'_>>) -> io::Result<Option<Row>> {
    if run.buffer().is_empty() && run.get_ref().range.is_empty() {
        return Ok(None);
    }
    let mut length = [0; 2];
    run.read_exact(&mut length)?;
    let mut key = vec![0; u16::from_le_bytes(length).into()];
    run.read_exact(&mut key)?;
    let mut sums = Sums::default();
    for sum in &mut sums {
        let (mut count, mut bytes) = ([0], [0; 16]);
        run.read_exact(&mut count)?;
        let into = bytes.get_mut(..count[0].into()).ok_or(io::ErrorKind::InvalidData)?;
        run.read_exact(into)?;
        let folded = u128::from_le_bytes(bytes);
        *sum = (folded >> 1) as i128 ^ -((folded & 1) as i128);
    }
    Ok(Some((key, sums)))
}

/// The rows of all runs, in their order.
struct MergedRows<'a> {
    runs: Vec<BufReader<Section<'a>>>,
    /// The next row of each run, with the place of the run.
    next: BinaryHeap<std::cmp::Reverse<(Vec<u8>, usize, Sums)>>,
}

impl MergedRows<'_> {
    fn advance(&mut self, place: usize) -> io::Result<()> {
        if let Some((key, sums)) = read(&mut self.runs[place])? {
            self.next.push(std::cmp::Reverse((key, place, sums)));
        }
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        self.next.peek().map(|next| next.0.0.as_slice())
    }
}

impl Iterator for MergedRows<'_> {
    type Item = io::Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        let (key, place, mut sums) = self.next.pop()?.0;
        let mut advanced = self.advance(place);
        while advanced.is_ok() && self.key() == Some(key.as_slice()) {
            let (_, place, more) = self.next.pop()?.0;
            add(&mut sums, more);
            advanced = self.advance(place);
        }
        Some(advanced.map(|()| (key, sums)))
    }
}

/// Keys in their order, with their sums.
pub(crate) struct SortedRows<'a> {
    held: std::iter::Peekable<btree_map::Iter<'a, Vec<u8>, Sums>>,
    runs: MergedRows<'a>,
}

impl Iterator for SortedRows<'_> {
    type Item = io::Result<(Vec<u8>, Sums)>;

    fn next(&mut self) -> Option<Self::Item> {
        let held = self.held.peek().map(|(key, _)| key.as_slice());
        let is_held_first = match (held, self.runs.key()) {
            (Some(held), Some(run)) => held < run,
            (held, _) => held.is_some(),
        };
        if is_held_first {
            return self.held.next().map(|(key, sums)| Ok((key.clone(), *sums)));
        }
        let row = self.runs.next()?;
        Some(row.map(|(key, mut sums)| {
            if let Some((_, more)) = self.held.next_if(|(held, _)| **held == key) {
                add(&mut sums, *more);
            }
            (key, sums)
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However few keys are in memory, the sums are those of a map.
        #[test]
        fn sums_are_those_of_a_map(
            added in prop::collection::vec((prop::collection::vec(0_u8..3, 0..4), any::<[i64; 3]>()), 0..600),
            held in 0_usize..9,
        ) {
            let (mut sums, mut map) = (SortedSums::holding(held), BTreeMap::<Vec<u8>, Sums>::new());
            for (key, numbers) in added {
                let numbers = numbers.map(|number| i128::from(number) << 50);
                sums.add(&key, numbers).unwrap();
                add(map.entry(key).or_default(), numbers);
            }
            for _ in 0..2 {
                let rows: io::Result<Vec<_>> = sums.rows().unwrap().collect();
                prop_assert_eq!(rows.unwrap(), map.clone().into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn many_keys_are_in_few_runs_of_a_file_and_few_in_none() {
        let mut sums = SortedSums::holding(1);
        sums.add(b"a", [1, 2, 3]).unwrap();
        assert!(sums.runs.file.is_none());
        for key in 0..1_000_u32 {
            sums.add(&key.to_be_bytes(), [i128::MAX, i128::MIN, 0]).unwrap();
        }
        assert!(sums.runs.file.is_some() && sums.runs.ends.len() <= RUNS_MAX && sums.held.len() <= 1);
        let rows: Vec<_> = sums.rows().unwrap().map(Result::unwrap).collect();
        assert!(rows.is_sorted() && rows.len() == 1_001);
        assert_eq!(rows[7], (7_u32.to_be_bytes().to_vec(), [i128::MAX, i128::MIN, 0]));
    }
}
