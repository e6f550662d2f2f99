//! A charge as the history of one recipient's splits of it: when they became available, what was
//! left of them. What can still change is the recipient's state's to say.

use std::collections::HashMap;
use std::sync::Arc;

use actors::engine::{Engine, ListedSplit};
use actors::store::Sequence;
use ledger::event::{Event, SplitKey, Terms};
use ledger::fees::SPLIT_SETTLEMENT_DAYS;
use ledger::id::{LedgerId, ObjectId};
use ledger::money::Centavos;
use ledger::personal::Payer;
use ledger::recipient::CardSplit;
use ledger::recipient::coverage::Place;
use ledger::time::{Minute, Timestamp};

use crate::http::problem::{Code, Problem};

/// A charge as one recipient sees it: its splits of the charge, and what became of them.
pub struct SplitHistory {
    /// The charge.
    pub charge: ObjectId,
    /// What it gave to whom.
    pub terms: Terms,
    /// Who paid; empty when the personal data was erased.
    pub payer: Payer,
    /// When the splits came to be: a PIX charge's when it was created, a card charge's when it was
    /// captured.
    pub listed_at: Timestamp,
    recipient: LedgerId,
    came: Came,
    changed: HashMap<u32, Changed>,
}

/// How a charge's money came.
#[derive(Clone, Copy)]
enum Came {
    /// Not yet.
    Unpaid,
    /// It will not: the charge was refused, or it was cancelled.
    Never,
    /// By PIX.
    Paid { sequence: u64, at: Timestamp },
    /// By card; the splits fall due in this minute.
    Captured { sequence: u64, due: Minute },
}

/// What became of one split since.
#[derive(Default)]
struct Changed {
    /// Taken back while it was pending.
    taken: Centavos,
    anticipated: Option<Anticipated>,
}

/// One split's anticipation.
struct Anticipated {
    /// The ordinal of the recipient's Record.
    ordinal: u64,
    at: Timestamp,
    /// What was left after the fee.
    net: Centavos,
}

impl SplitHistory {
    /// Reads the charge of this id; none when there is none.
    pub fn find(engine: &Arc<Engine>, recipient: LedgerId, id: ObjectId) -> Result<Option<Self>, Problem> {
        if recipient.group() != Some(engine.ids().group(id)) {
            return Ok(None);
        }
        let mut history: Option<Self> = None;
        for found in engine.history(id)? {
            let (sequence, record) = found?;
            for event in &record.events {
                match (event, &mut history) {
                    (Event::ChargeOpened { charge, terms, .. }, None) if *charge == id => {
                        let payer = engine.keyring().open_personal(&record);
                        history = Some(Self {
                            charge: id,
                            terms: terms.clone(),
                            payer: payer.unwrap_or_default(),
                            listed_at: record.effective_at,
                            recipient,
                            came: Came::Unpaid,
                            changed: HashMap::new(),
                        });
                    }
                    (event, Some(history)) => {
                        history.follow(event, sequence, record.owner, record.ordinal, record.effective_at)
                    }
                    _ => {}
                }
            }
        }
        Ok(history)
    }

    /// Reads the charge of a split that a statement lists.
    pub fn listed(engine: &Arc<Engine>, recipient: LedgerId, split: ListedSplit) -> Result<Self, Problem> {
        let record = engine.record(split.sequence)?;
        let made = record.events.iter().find_map(|event| match event {
            Event::ChargeOpened { charge, .. } | Event::CardCaptured { charge, .. } => Some(*charge),
            _ => None,
        });
        let found = made.map(|charge| Self::find(engine, recipient, charge)).transpose()?;
        found.flatten().ok_or_else(|| Problem::new(Code::Internal))
    }

    fn follow(&mut self, event: &Event, sequence: Sequence, owner: LedgerId, ordinal: u64, at: Timestamp) {
        let id = self.charge;
        match event {
            Event::CardCaptured { charge, splits_due, .. } if *charge == id => {
                self.listed_at = at;
                self.came = Came::Captured { sequence: sequence.0, due: *splits_due };
            }
            Event::PixPaid { charge, .. } if *charge == id => self.came = Came::Paid { sequence: sequence.0, at },
            Event::CardRefused { charge, .. } | Event::PixCancelled { charge, .. } if *charge == id => {
                self.came = Came::Never;
            }
            Event::SplitsAnticipated { splits, .. } if owner == self.recipient => {
                for part in splits.iter().filter(|part| part.split.charge == id) {
                    let anticipated = Anticipated { ordinal, at, net: part.amount - part.fee };
                    self.changed.entry(part.split.index).or_default().anticipated = Some(anticipated);
                }
            }
            Event::ClawbackRecovered { debts } if owner == self.recipient => {
                for part in debts.iter().filter(|part| part.split.charge == id) {
                    self.changed.entry(part.split.index).or_default().taken += part.from_pending;
                }
            }
            _ => {}
        }
    }

    /// What the charge gave the recipient at this place of its splits; none when that is another's,
    /// or when the recipient's statement does not list it.
    pub fn nominal(&self, index: u32) -> Option<Centavos> {
        let LedgerId::Recipient(_, number) = self.recipient else { return None };
        let is_listed = match self.came {
            Came::Unpaid => !self.terms.method.is_card(),
            Came::Never => false,
            Came::Paid { .. } | Came::Captured { .. } => true,
        };
        let split = self.terms.splits.get(index as usize).filter(|split| split.recipient == number);
        split.filter(|_| is_listed).map(|split| split.amount)
    }

    /// What is left of a split, before what was taken of the recipient's available money.
    pub fn left(&self, index: u32) -> Option<Centavos> {
        let nominal = self.nominal(index)?;
        Some(match self.changed.get(&index) {
            Some(Changed { anticipated: Some(anticipated), .. }) => anticipated.net,
            Some(changed) => nominal - changed.taken,
            None => nominal,
        })
    }

    /// Where a split became available; none while it is pending.
    pub fn place(&self, index: u32, now: Timestamp) -> Option<Place> {
        match (self.anticipated(index), self.came) {
            (Some(anticipated), _) => Some(Place::Anticipated { ordinal: anticipated.ordinal }),
            (None, Came::Paid { sequence, .. }) => Some(Place::Paid { sequence }),
            (None, Came::Captured { sequence, due }) if due.is_due(now) => Some(Place::Due { sequence, minute: due }),
            _ => None,
        }
    }

    /// When a split became or becomes available; none while a PIX charge is unpaid.
    pub fn available_at(&self, index: u32) -> Option<Timestamp> {
        match (self.anticipated(index), self.came) {
            (Some(anticipated), _) => Some(anticipated.at),
            (None, Came::Paid { at, .. }) => Some(at),
            (None, Came::Captured { due, .. }) => Some(due.start()),
            (None, Came::Unpaid | Came::Never) => None,
        }
    }

    /// True when neither this charge's card splits are pending at `now` nor those of any that a
    /// statement lists after it.
    pub fn is_over(&self, now: Timestamp) -> bool {
        match self.came {
            Came::Captured { due, .. } => due.is_due(now),
            _ => self.charge.created_at().plus_days(SPLIT_SETTLEMENT_DAYS) < now,
        }
    }

    /// A split of a captured card charge, for the recipient to decide about.
    pub fn card_split(&self, index: u32) -> Option<CardSplit> {
        let nominal = self.nominal(index)?;
        let Came::Captured { sequence, due } = self.came else { return None };
        Some(CardSplit { split: SplitKey { charge: self.charge, index }, sequence, due, nominal })
    }

    fn anticipated(&self, index: u32) -> Option<&Anticipated> {
        self.changed.get(&index)?.anticipated.as_ref()
    }
}

/// A split's id: its charge and its place in it. It names its group as the charge does.
pub fn split_id(charge: ObjectId, index: u32) -> String {
    format!("{}-{index}", charge.txid())
}

/// The split that an id names, in the form in which it is given out and in no other.
pub fn parse_split_id(text: &str) -> Option<SplitKey> {
    let (charge, index) = text.split_once('-')?;
    let (charge, index) = (ObjectId::parse(charge)?, index.parse().ok()?);
    (split_id(charge, index) == text).then_some(SplitKey { charge, index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_has_one_id() {
        let charge = ObjectId(0x019B_796E_4D24_8000_8000_0000_0000_0003);
        let id = split_id(charge, 10);
        assert_eq!(parse_split_id(&id), Some(SplitKey { charge, index: 10 }));
        let txid = charge.txid();
        for other in [
            format!("{txid}-010"),
            format!("{txid}-+1"),
            format!("{txid}-"),
            txid.clone(),
            format!("{}-1", charge.uuid()),
        ] {
            assert_eq!(parse_split_id(&other), None, "{other}");
        }
    }
}
