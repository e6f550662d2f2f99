//! Balances at a cut: those of each partition, read as one. No ledger is in two partitions, but for
//! the house, which has entries in one of them alone.

use std::collections::BTreeMap;

use ledger::{Account, Balance, CardBrand, GroupNumber, LedgerId, Month, Receivables, Settings};

use super::as_of::{AsOf, SumOfKind, Sums};
use super::carried_facts::{AnticipatedOn, AnticipatedSums, CarriedFact};
use crate::records::Result;
use store::{Cut, Partition, Position, Sequence};

/// Brands of the cards of pending charges, by group and by the ordinal of the Record that opened
/// each.
pub type PendingCards = BTreeMap<(GroupNumber, u64), CardBrand>;

/// Every account of every ledger at a cut of the past, and what else balance files have.
pub struct BooksAsOf(Vec<(Partition, AsOf)>);

/// Sums of all ledgers at a cut of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumsAsOf {
    /// The last Records that count.
    pub through: Cut,
    /// Whether debits equal credits in every ledger.
    pub is_balanced: bool,
    /// The sums by kind of account, in the order of the chart's codes.
    pub kinds: Vec<SumOfKind>,
}

impl SumsAsOf {
    /// Adds the sums of a partition.
    fn add(&mut self, of_partition: Sums) {
        self.is_balanced &= of_partition.is_balanced;
        for kind in of_partition.kinds {
            let code = |kind: &SumOfKind| kind.account.code().0;
            match self.kinds.binary_search_by_key(&code(&kind), code) {
                Ok(place) => {
                    self.kinds[place].balance.add(kind.balance);
                    self.kinds[place].count += kind.count;
                }
                Err(place) => self.kinds.insert(place, kind),
            }
        }
    }
}

impl BooksAsOf {
    /// The balances of all partitions, in their order.
    pub fn new(of_partitions: Vec<(Partition, AsOf)>) -> Self {
        Self(of_partitions)
    }

    fn parts(&self) -> impl Iterator<Item = &AsOf> {
        self.0.iter().map(|(_, as_of)| as_of)
    }

    /// The last Records that count.
    pub fn through(&self) -> Cut {
        let at = |(partition, as_of): &(Partition, AsOf)| Position { partition: *partition, sequence: as_of.through() };
        self.0.iter().map(at).fold(Cut::default(), |cut, at| cut.with(at))
    }

    /// When the last of them was booked, milliseconds since 1970 (UTC); 0 before the first Record.
    pub fn booked_at_ms(&self) -> i64 {
        self.parts().map(AsOf::booked_at_ms).max().unwrap_or_default()
    }

    /// What is due to whom, for one who asked for it; nothing before the first Record.
    pub fn take_receivables(&mut self) -> Receivables {
        let mut parts = self.0.iter_mut().map(|(_, as_of)| as_of.take_receivables());
        let mut all = parts.next().unwrap_or_default();
        parts.for_each(|other| all.absorb(&other));
        all
    }

    /// Ids and accounts, partition by partition: see [`AsOf::ledgers`].
    pub fn ledgers(&self) -> impl Iterator<Item = Result<CarriedFact>> + '_ {
        self.parts().flat_map(|as_of| as_of.ledgers(None))
    }

    /// All accounts, in the same order. For a thread that may wait.
    pub fn rows(&self) -> impl Iterator<Item = Result<(LedgerId, Account, Balance)>> + '_ {
        self.parts().flat_map(AsOf::rows)
    }

    /// The pending charges: [`CarriedFact::Pending`].
    pub fn pending(&self) -> impl Iterator<Item = Result<CarriedFact>> + '_ {
        self.parts().flat_map(|as_of| as_of.pending(None))
    }

    /// How many card charges wait for the acquirer's answer. For a thread that may wait.
    pub fn unanswered_cards(&self) -> Result<u64> {
        self.parts().map(AsOf::unanswered_cards).sum()
    }

    /// The Record of its group's partition that opened a pending charge; `None` if it is not
    /// pending.
    pub fn opened(&self, group: GroupNumber, ordinal: u64) -> Result<Option<Sequence>> {
        self.parts().find_map(|as_of| as_of.opened(group, ordinal).transpose()).transpose()
    }

    /// The settings of a merchant, in order, each with the Record of its partition that set them.
    pub fn settings(&self, group: GroupNumber) -> Result<Vec<(Sequence, Settings)>> {
        for as_of in self.parts() {
            let settings = as_of.settings(group)?;
            if !settings.is_empty() {
                return Ok(settings);
            }
        }
        Ok(Vec::new())
    }

    /// The settings of a merchant when it opened a pending charge, by the ordinal of that Record;
    /// `None` if the charge is not pending.
    pub fn settings_of_pending(&self, group: GroupNumber, ordinal: u64) -> Result<Option<Settings>> {
        let Some(opened) = self.opened(group, ordinal)? else { return Ok(None) };
        let at_opening = self.settings(group)?.into_iter().take_while(|(by, _)| *by <= opened).last();
        Ok(Some(at_opening.map(|(_, settings)| settings).unwrap_or_default()))
    }

    /// Brands of the cards of pending charges.
    pub fn pending_cards(&self) -> Result<PendingCards> {
        let mut found = PendingCards::new();
        for fact in self.pending() {
            if let CarriedFact::Pending { group, ordinal, brand: Some(brand), .. } = fact? {
                found.insert((group, ordinal), brand);
            }
        }
        Ok(found)
    }

    /// The sums of splits that were anticipated and are due today or later.
    pub fn anticipated(&self) -> Result<BTreeMap<AnticipatedOn, AnticipatedSums>> {
        let mut all = BTreeMap::new();
        for as_of in self.parts() {
            all.extend(as_of.anticipated()?);
        }
        Ok(all)
    }

    /// The months that were closed, each with the Record that closed it in its partition.
    pub fn closed(&self) -> Result<Vec<(Month, Position)>> {
        let mut all = Vec::new();
        for (partition, as_of) in &self.0 {
            let position = |sequence| Position { partition: *partition, sequence };
            all.extend(as_of.closed()?.into_iter().map(|(month, by)| (month, position(by))));
        }
        Ok(all)
    }

    /// The sums of all ledgers, in one pass.
    pub fn sums(&self) -> Result<SumsAsOf> {
        let mut sums = SumsAsOf { through: self.through(), is_balanced: true, kinds: Vec::new() };
        for as_of in self.parts() {
            sums.add(as_of.sums()?);
        }
        Ok(sums)
    }
}
