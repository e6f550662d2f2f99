//! Credits: amounts for a recipient, available now or at a due minute. Most Records of a merchant
//! change a recipient in no other way. The index keeps the credit beside the Record's sequence, so
//! a recipient's state is built without reading these Records.

use super::RecipientState;
use crate::facts::{self, Effect};
use crate::{Account, Centavos, LedgerId, Minute, Posting, Record, Side};

/// Amount that a Record credits to a recipient, where the Record changes nothing else of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// When it falls due; `None` if it is available at once.
    pub due: Option<Minute>,
    /// The amount, centavos.
    pub amount: Centavos,
}

/// Ledgers of others that a Record changes, each once, in order. A ledger that is only credited
/// comes with the credit. A ledger that the Record concerns and that is not here keeps its state.
pub fn changed(record: &Record) -> Vec<(LedgerId, Option<Credit>)> {
    let mut changed = Vec::new();
    facts::on_others(record.owner, &record.events, |ledger, effect| match effect {
        Effect::RecordOnly => {}
        Effect::Credited { due, amount } => changed.push((ledger, Some(Credit { due, amount }))),
        Effect::Changed => changed.push((ledger, None)),
    });
    changed.sort_by_key(|(ledger, _)| *ledger);
    changed.dedup_by(|(next, added), (ledger, credit)| {
        if next == ledger {
            *credit = credit.zip(*added).and_then(|(credit, added)| credit.with(added));
        }
        next == ledger
    });
    changed
}

impl Credit {
    /// The lines in the recipient's ledger that the credit's Record has: only splits of card
    /// charges fall due.
    fn postings(self) -> [Posting; 2] {
        let (raised, income) = match self.due {
            Some(_) => (Account::Pending, Account::SplitsCard),
            None => (Account::Available, Account::SplitsPix),
        };
        let line = |account, side| Posting { account, side, amount: self.amount };
        [line(raised, Side::Debit), line(income, Side::Credit)]
    }

    /// The sum of both, if they fall due together.
    fn with(self, other: Self) -> Option<Self> {
        (self.due == other.due).then_some(Self { amount: self.amount + other.amount, ..self })
    }
}

impl RecipientState {
    /// Applies a credit of the merchant, as [`RecipientState::receive`] does with its Record.
    pub fn credit(&mut self, credit: Credit) {
        self.ledger.post(&credit.postings());
        if let Some(minute) = credit.due {
            self.pending.add(minute, credit.amount);
        }
    }
}
