//! Records of a running engine for a reconciliation, read at the pace of an answer that reads much
//! of the journal.

use std::cell::RefCell;
use std::iter;
use std::sync::Arc;

use actors::engine::{Engine, Listed};
use books::reconcile::booked_movements::BookedRecords;
use ledger::{EndedBatch, LedgerId, ObjectId, Record, Timestamp};
use store::Block;

use web::streamed_body::ReadPace;
use web::{Problem, Result};

/// Records that are looked at in one go, of a list.
const PAGE: usize = 100;

/// The Records of an engine. For a thread that may wait.
pub struct EngineRecords<'a> {
    engine: &'a Engine,
    pace: RefCell<ReadPace>,
}

impl<'a> EngineRecords<'a> {
    /// Reading begins now.
    pub fn new(engine: &'a Arc<Engine>) -> Self {
        Self { engine, pace: RefCell::new(ReadPace::new(engine)) }
    }

    fn step(&self) {
        self.pace.borrow_mut().step();
    }
}

impl BookedRecords for EngineRecords<'_> {
    type Error = Problem;

    fn of_batch(&self, reference: &str) -> Result<impl Iterator<Item = Result<Record>>> {
        Ok(self.engine.batch(reference)?.map(|record| Ok(record?)))
    }

    fn of_charge(&self, charge: ObjectId) -> Result<impl Iterator<Item = Result<Record>>> {
        self.step();
        Ok(self.engine.history(charge)?.map(|found| Ok(found?.1)))
    }

    fn of_house(&self) -> impl Iterator<Item = Result<Record>> {
        let page = |skip| Ok(self.engine.entries(LedgerId::System, skip, PAGE)?);
        all_pages(page).map(|found| Ok(found??.1))
    }

    fn ended_batches(&self) -> impl Iterator<Item = Result<(Record, EndedBatch)>> {
        let page = |skip| Ok(self.engine.batches(skip, PAGE)?);
        all_pages(page).map(|found| found?.map(|(_, record, batch)| (record, batch)).map_err(Problem::from))
    }

    fn blocks_from(&self, at: Timestamp) -> Result<impl Iterator<Item = Result<Block>>> {
        let first = self.engine.last_booked_before(at)?.next();
        let blocks = self.engine.blocks(&first).inspect(|_| self.step());
        Ok(blocks.map(|block| Ok(block?)))
    }
}

/// The items of a list, page by page, each read when it is asked for. After a page that cannot be
/// read there are no more.
fn all_pages<I: Iterator>(page: impl Fn(u64) -> Result<Listed<I>>) -> impl Iterator<Item = Result<I::Item>> {
    let mut next = Some(0);
    let pages = iter::from_fn(move || {
        let begin: u64 = next.take()?;
        let listed = page(begin);
        let end = begin + PAGE as u64;
        next = listed.as_ref().is_ok_and(|listed| end < listed.total).then_some(end);
        Some(listed)
    });
    pages.flat_map(|listed| {
        let (items, error) = match listed {
            Ok(listed) => (Some(listed.items), None),
            Err(error) => (None, Some(Err(error))),
        };
        items.into_iter().flatten().map(Ok).chain(error)
    })
}
