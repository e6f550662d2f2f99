//! History of one charge's splits for one recipient: when they became available, what was left of
//! them. What can still change, only the recipient's state says.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::CardSplit;
use super::coverage::Place;
use crate::event::SplitKey;
use crate::fees::SPLIT_SETTLEMENT_DAYS;
use crate::{Centavos, Event, LedgerId, Minute, ObjectId, RecipientNumber, Record, Sealed, Terms, Timestamp};

/// A charge as one recipient sees it: its splits of the charge, and what became of them.
pub struct SplitHistory {
    /// The charge.
    pub charge: ObjectId,
    /// What it gave to whom.
    pub terms: Terms,
    /// Who pays: a sealed [`crate::personal::Payer`].
    pub payer: Option<Sealed>,
    /// When the splits came to be: a PIX charge's when it was created, a card charge's when it was
    /// captured. It is when that was booked, which is the order of the statement.
    pub listed_at: Timestamp,
    /// End-to-end id of a paid PIX charge.
    pub end_to_end_id: Option<String>,
    /// The issuer's authorization code of a captured card, where the acquirer gives it.
    pub authorization: Option<String>,
    /// Whether its rail is that of a sandbox, which has no name.
    pub is_of_sandbox: bool,
    recipient: LedgerId,
    came: Came,
    changed: BTreeMap<u32, SplitChanges>,
}

/// How a charge's money came.
#[derive(Clone, Copy)]
enum Came {
    /// Not yet.
    Unpaid,
    /// It will not: the charge was refused, or it was cancelled.
    Never,
    /// By PIX, when the institution says so.
    Paid { sequence: u64, at: Timestamp },
    /// By card; the splits fall due in this minute.
    Captured { sequence: u64, due: Minute },
}

/// What became of one split since.
#[derive(Default)]
struct SplitChanges {
    /// Taken back while it was pending.
    taken: Centavos,
    anticipated: Option<SplitAnticipation>,
}

/// The ledger of a recipient in the group of a Record.
fn recipient_of(record: &Record, number: RecipientNumber) -> LedgerId {
    LedgerId::Recipient(record.owner.group().unwrap_or_default(), number)
}

/// Anticipation that paid one split early.
struct SplitAnticipation {
    /// The ordinal of the recipient's Record.
    ordinal: u64,
    at: Timestamp,
    /// What was left after the fee.
    net: Centavos,
}

impl SplitHistory {
    /// Reads a charge from the Records about it, each with its sequence, in the journal's order.
    /// `None` if no Record opens the charge; the first error of `records` ends the fold.
    pub fn read<R: Borrow<Record>, E>(
        recipient: LedgerId,
        id: ObjectId,
        records: impl IntoIterator<Item = Result<(u64, R), E>>,
    ) -> Result<Option<Self>, E> {
        let mut found: Option<Self> = None;
        for record in records {
            let (sequence, record) = record?;
            let record = record.borrow();
            for event in &record.events {
                match (event, &mut found) {
                    (Event::ChargeOpened { charge, terms, rail, .. }, None) if *charge == id => {
                        found = Some(Self {
                            charge: id,
                            terms: terms.clone(),
                            payer: record.personal.clone(),
                            listed_at: record.effective_at,
                            end_to_end_id: None,
                            authorization: None,
                            is_of_sandbox: rail.is_none(),
                            recipient,
                            came: Came::Unpaid,
                            changed: BTreeMap::new(),
                        });
                    }
                    (event, Some(history)) => history.follow(event, sequence, record),
                    _ => {}
                }
            }
        }
        Ok(found)
    }

    /// The charge whose splits a Record adds to statements; `None` if it adds none.
    pub fn listed_by(record: &Record) -> Option<ObjectId> {
        record.events.iter().find_map(|event| match event {
            Event::ChargeOpened { charge, .. } | Event::CardCaptured { charge, .. } => Some(*charge),
            _ => None,
        })
    }

    /// Whether a card was captured for it.
    pub fn is_captured(&self) -> bool {
        matches!(self.came, Came::Captured { .. })
    }

    fn follow(&mut self, event: &Event, sequence: u64, record: &Record) {
        let (id, at, is_own) = (self.charge, record.effective_at, record.owner == self.recipient);
        match event {
            Event::CardCaptured { charge, splits_due, .. } if *charge == id => {
                self.listed_at = at;
                self.authorization = record.rail.as_ref().and_then(|capture| capture.authorization.clone());
                self.came = Came::Captured { sequence, due: *splits_due };
            }
            Event::PixPaid { charge, end_to_end_id, .. } if *charge == id => {
                self.end_to_end_id = Some(end_to_end_id.clone());
                self.came = Came::Paid { sequence, at: record.takes_effect_at() };
            }
            Event::CardRefused { charge, .. } | Event::PixCancelled { charge, .. } if *charge == id => {
                self.came = Came::Never;
            }
            Event::SplitsAnticipated { splits, .. } if is_own => {
                for part in splits.iter().filter(|part| part.split.charge == id) {
                    let anticipated = SplitAnticipation { ordinal: record.ordinal, at, net: part.amount - part.fee };
                    self.changed.entry(part.split.index).or_default().anticipated = Some(anticipated);
                }
            }
            Event::RefundFailed { charge, give_backs, .. } if *charge == id => {
                for part in give_backs.iter().filter(|part| self.recipient == recipient_of(record, part.recipient)) {
                    self.changed.entry(part.index).or_default().taken -= part.from_pending;
                }
            }
            Event::ClawbackRecovered { debts, .. } if is_own => {
                for part in debts.iter().filter(|part| part.split.charge == id) {
                    self.changed.entry(part.split.index).or_default().taken += part.from_pending;
                }
            }
            _ => {}
        }
    }

    /// What the charge gave the recipient at this place of its splits; `None` if that is another's,
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

    /// Rest of a split: its amount less refunds, or its net amount once it was anticipated. Debts
    /// that were paid with the recipient's available money do not lower it.
    pub fn left(&self, index: u32) -> Option<Centavos> {
        let nominal = self.nominal(index)?;
        Some(match self.changed.get(&index) {
            Some(SplitChanges { anticipated: Some(anticipated), .. }) => anticipated.net,
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
            // A statement is in the order of the bookings, and one that came late is due earlier.
            Came::Captured { .. } => self.listed_at.plus_days(SPLIT_SETTLEMENT_DAYS).minute().is_due(now),
            _ => self.charge.created_at().plus_days(SPLIT_SETTLEMENT_DAYS) < now,
        }
    }

    /// A split of a captured card charge, for the recipient to decide about.
    pub fn card_split(&self, index: u32) -> Option<CardSplit> {
        let nominal = self.nominal(index)?;
        let Came::Captured { sequence, due } = self.came else { return None };
        Some(CardSplit { split: SplitKey { charge: self.charge, index }, sequence, due, nominal })
    }

    fn anticipated(&self, index: u32) -> Option<&SplitAnticipation> {
        self.changed.get(&index)?.anticipated.as_ref()
    }
}
