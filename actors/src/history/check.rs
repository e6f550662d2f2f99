//! The runs against the journal, for those who read all of it anyway.

use std::collections::VecDeque;

use ledger::event::Event;
use ledger::id::{GroupNumber, IdMap, ObjectId};
use ledger::record::Record;

use super::run::{Cover, Run, RunError};
use super::term::{Balances, Opened};
use super::{Recent, opening_in};
use crate::store::{Store, StoreError};

/// Makes every run again from the Records, which it is shown one after the other from the first, and compares.
pub struct RunCheck<'a> {
    store: &'a dyn Store,
    /// The runs that are to come, in order: first and last Record, name, length.
    files: VecDeque<(u64, u64, String, u64)>,
    recent: Recent,
    balances: IdMap<GroupNumber, Balances>,
    open: IdMap<ObjectId, Opened>,
    whole: u64,
    unusable: u64,
}

/// A run that can be read and says something else than the journal.
#[derive(Debug)]
pub struct RunDiffers {
    /// Its file.
    pub name: String,
}

impl<'a> RunCheck<'a> {
    /// Lists the runs.
    pub fn new(store: &'a dyn Store) -> Result<Self, StoreError> {
        let files = store.files()?.into_iter().filter_map(|(name, bytes)| {
            let (first, last) = Cover::of_file_name(&name)?;
            Some((first, last, name, bytes))
        });
        let mut files: Vec<_> = files.collect();
        files.sort_by_key(|(first, last, ..)| (*first, u64::MAX - last));
        let mut covered = 0;
        // What was merged and not removed yet is not used.
        files.retain(|(_, last, ..)| {
            let is_used = *last > covered;
            covered = covered.max(*last);
            is_used
        });
        let (recent, balances, open) = Default::default();
        Ok(Self { store, files: files.into(), recent, balances, open, whole: 0, unusable: 0 })
    }

    /// Takes the next Record; says which run ends with it and differs.
    pub fn count(&mut self, sequence: u64, record: &Record) -> Result<Option<RunDiffers>, StoreError> {
        self.recent.count(sequence, record, &mut self.balances, &self.open);
        for event in &record.events {
            match event {
                Event::ChargeOpened { charge, .. } => {
                    self.open.extend(opening_in(record, *charge).map(|opening| (*charge, opening)));
                }
                Event::CardCaptured { charge, .. }
                | Event::CardRefused { charge, .. }
                | Event::PixPaid { charge, .. }
                | Event::PixCancelled { charge, .. } => {
                    self.open.remove(charge);
                }
                _ => {}
            }
        }
        match self.files.front() {
            Some((first, last, ..)) if *first <= sequence && sequence < *last => Ok(None),
            Some((_, last, ..)) if *last == sequence => self.compare(),
            _ => {
                self.recent = Recent::default();
                Ok(None)
            }
        }
    }

    /// How many runs were as they should be, and how many can't be used, are of Records that are not there, or were damaged.
    pub fn finish(self) -> (u64, u64) {
        (self.whole, self.unusable + self.files.len() as u64)
    }

    fn compare(&mut self) -> Result<Option<RunDiffers>, StoreError> {
        let recent = std::mem::take(&mut self.recent);
        let Some((_, _, name, length)) = self.files.pop_front() else { return Ok(None) };
        let expected = recent.to_run().map(|(_, bytes)| bytes);
        if self.store.file_part(&name, 0, usize::try_from(length).unwrap_or(usize::MAX))? == expected {
            self.whole += 1;
            return Ok(None);
        }
        let read = Run::open(self.store, &name, length)
            .and_then(|run| (0..run.pages()).try_for_each(|page| run.groups(self.store, page).map(drop)));
        match read {
            Ok(()) => Ok(Some(RunDiffers { name })),
            Err(RunError::Damaged) => {
                self.unusable += 1;
                Ok(None)
            }
            Err(RunError::Store(error)) => Err(error),
        }
    }
}
