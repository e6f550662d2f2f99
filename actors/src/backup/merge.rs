//! Merge of the last files of a backup into one: a run that takes a little each second would
//! leave a file for each.
//!
//! The merged file takes the name of the first of them, and ends where the backup ends. From then
//! on the others do not count: a reader stops at the end of the backup, and the next run removes
//! them. So a crash at any moment leaves a backup that is whole.

use std::fs::File;
use std::io::BufReader;

use store::{rename_durably, unfinished};

use super::folder::{BackupRun, OpenFile, READ_BYTES, machine, name_of, remove};
use super::{BackupError, Frame, FrameReader};

/// A file is merged with those after it once they are this many times as large together. A byte is
/// copied about once for each power of five that the backup has in takes.
const FACTOR: u64 = 4;

impl BackupRun {
    /// Merges the last files, if there are enough of them. Their number stays below about five for
    /// each power of five in the number of takes.
    pub fn merge(&mut self) -> Result<(), BackupError> {
        let mut sizes = Vec::new();
        for number in 1..=self.files {
            let path = self.path().join(name_of(number));
            sizes.push(path.metadata().map_err(|source| machine(&path, source))?.len());
        }
        let Some(first) = first_to_merge(&sizes, self.file_bytes_max) else { return Ok(()) };
        let first = first as u32 + 1;
        let mut merged = OpenFile::create(self, first)?;
        for number in first..=self.files {
            self.copy_blocks(number, &mut merged)?;
        }
        let path = self.path().join(name_of(first));
        let end = Frame::End(self.heads().clone()).to_bytes().map_err(|source| machine(&path, source))?;
        merged.write(&end)?;
        merged.finish()?;
        rename_durably(&unfinished(&path), &path).map_err(|source| machine(&path, source))?;
        for number in first + 1..=self.files {
            remove(&self.path().join(name_of(number)))?;
        }
        self.files = first;
        Ok(())
    }

    fn copy_blocks(&self, number: u32, to: &mut OpenFile) -> Result<(), BackupError> {
        let path = self.path().join(name_of(number));
        let file = File::open(&path).map_err(|source| machine(&path, source))?;
        let mut reader = FrameReader::new(BufReader::with_capacity(READ_BYTES, file), path.clone())?;
        loop {
            match reader.next_frame()? {
                block @ Frame::Block(_) => {
                    to.write(&block.to_bytes().map_err(|source| machine(&path, source))?)?;
                }
                Frame::End(_) => return reader.finish(),
                Frame::Value(_) => return Err(reader.damaged("a key stands among the blocks")),
            }
        }
    }
}

/// The first of the files to merge, by place. The merged file stays within the largest size.
fn first_to_merge(sizes: &[u64], bytes_max: u64) -> Option<usize> {
    let after = |place: usize| sizes[place + 1..].iter().sum::<u64>();
    (0..sizes.len().saturating_sub(1)).find(|place| {
        let after = after(*place);
        after >= FACTOR * sizes[*place] && after + sizes[*place] <= bytes_max
    })
}
