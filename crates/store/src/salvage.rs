//! Salvage: the blocks of a data folder that can be read where its store does not open. Nothing is
//! written to the journal.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::chunk::{BlockAssembler, Chunk};
use super::monitor::Monitor;
use super::segments::Segments;
use super::wal::{WalFrame, frames_below};
use super::{Block, Head, Partition, Result, Sequence, SledOptions, StoreError};

/// What can be read of a data folder.
#[derive(Debug)]
pub struct Remains {
    logged: Vec<Block>,
    journal: Option<Segments>,
    unopened: Option<StoreError>,
}

impl Remains {
    /// Reads the write-ahead log by itself. To be called before the store is opened.
    pub fn of_log(data: &Path) -> Result<Remains> {
        let logged = frames_below(&Segments::folder(data))?.into_iter().filter_map(block_of).collect();
        Ok(Remains { logged, journal: None, unopened: None })
    }

    /// Adds the journal, if it opens by itself, since the store did not open for this reason.
    #[must_use]
    pub fn without_store(self, data: &Path, reason: StoreError) -> Remains {
        let options = SledOptions { checks_end: false, ..SledOptions::default() };
        let (poisoned, monitor) = (Arc::new(AtomicBool::new(false)), Arc::new(Monitor::default()));
        let journal = Segments::open(data, &options, true, poisoned, monitor).ok();
        Remains { journal, unopened: Some(reason), ..self }
    }

    /// Why the store does not open; none if it does.
    pub fn unopened(&self) -> Option<&StoreError> {
        self.unopened.as_ref()
    }

    /// The blocks of the journal from those that hold these Records on, of one partition after the
    /// other; none if the store opens, which has them itself. An error ends its partition.
    pub fn journal_from<'a>(
        &'a self,
        from: impl Fn(Partition) -> Sequence + 'a,
    ) -> impl Iterator<Item = Result<Block>> + 'a {
        let heads = self.journal.as_ref().and_then(|journal| journal.heads().ok()).unwrap_or_default();
        let blocks = heads.into_iter().filter_map(move |(partition, head): (Partition, Head)| {
            let from = from(partition).max(Sequence::FIRST);
            let journal = self.journal.as_ref().filter(|_| from < head.next)?;
            Some(match journal.blocks(partition, from, head) {
                Ok(blocks) => Box::new(blocks) as Box<dyn Iterator<Item = Result<Block>> + 'a>,
                Err(error) => Box::new(std::iter::once(Err(error))),
            })
        });
        blocks.flatten()
    }

    /// The whole blocks of the write-ahead log: those of a partition in their order, and of two in
    /// the same place the newer one first.
    pub fn logged(&self) -> &[Block] {
        &self.logged
    }
}

/// The block of a frame, if its hash matches.
fn block_of(frame: WalFrame) -> Option<Block> {
    let mut chunks = frame.chunks.into_iter().map(|(key, value)| Chunk::parse(&key.to_bytes(), &value).ok());
    let mut assembler = BlockAssembler::new(chunks.next()??).ok()?;
    for chunk in chunks {
        assembler.push(chunk?).ok()?;
    }
    assembler.finish().ok().map(|(block, _)| block)
}
