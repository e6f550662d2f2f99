//! Figures of the last days for an overview: what payers paid, how cards were answered, and what
//! came into the banks and left them. A day is that of the decision, in America/Sao_Paulo.

use std::collections::VecDeque;

use ledger::{Account, CardRefusal, Event, LedgerId, Record, Side, Terms};
use minicbor::{Decode, Encode};

/// Days of which figures are stored.
pub const DAYS_MAX: u32 = 90;
/// Reasons of refusals that are counted of a day; what comes after them counts as `refused` alone.
const REASONS_MAX: usize = 64;

/// How many charges, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Volume {
    /// Number of the charges.
    #[n(0)]
    pub count: u64,
    /// Their totals, centavos.
    #[n(1)]
    pub amount: u64,
}

impl Volume {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.amount += other.amount;
    }
}

/// Sales, refusals of cards, and money in and out of the banks, of one day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct DayFigures {
    /// The day: days since 1970-01-01.
    #[n(0)]
    pub day: u32,
    /// Charges by card that were captured.
    #[n(1)]
    pub card: Volume,
    /// Charges by PIX that were paid.
    #[n(2)]
    pub pix: Volume,
    /// Charges by card that were refused.
    #[n(3)]
    pub refused: u64,
    /// How often each reason of a refusal was given.
    #[n(4)]
    pub refusals: Vec<(CardRefusal, u64)>,
    /// What came into the platform's bank accounts, centavos.
    #[n(5)]
    pub money_in: u64,
    /// What left them, centavos.
    #[n(6)]
    pub money_out: u64,
}

impl DayFigures {
    /// Adds what another partition counted for the same day.
    pub fn add(&mut self, other: &Self) {
        self.card.add(other.card);
        self.pix.add(other.pix);
        self.refused += other.refused;
        other.refusals.iter().for_each(|(reason, count)| self.count_refusals(*reason, *count));
        self.money_in += other.money_in;
        self.money_out += other.money_out;
    }

    fn count_refusals(&mut self, reason: CardRefusal, count: u64) {
        match self.refusals.iter().position(|(known, _)| *known == reason) {
            Some(place) => self.refusals[place].1 += count,
            None if self.refusals.len() < REASONS_MAX => self.refusals.push((reason, count)),
            None => {}
        }
    }

    fn count(&mut self, record: &Record) {
        for event in &record.events {
            match event {
                Event::CardCaptured { terms, .. } => self.card.add(volume(terms)),
                Event::PixPaid { terms, .. } => self.pix.add(volume(terms)),
                Event::CardRefused { refusal, .. } => {
                    self.refused += 1;
                    self.count_refusals(*refusal, 1);
                }
                _ => {}
            }
        }
        let is_of_platform = |ledger| matches!(ledger, LedgerId::Platform(_) | LedgerId::System);
        let entries = record.entries.iter().filter(|entry| is_of_platform(entry.ledger()));
        for posting in entries.flat_map(|entry| entry.postings()) {
            if matches!(posting.account, Account::BankSettlement | Account::BankPix | Account::BankOwn) {
                let sum = if posting.side == Side::Debit { &mut self.money_in } else { &mut self.money_out };
                *sum += posting.amount.0.unsigned_abs();
            }
        }
    }
}

fn volume(terms: &Terms) -> Volume {
    Volume { count: 1, amount: terms.amount.0.unsigned_abs() }
}

/// The figures of the last days, oldest first.
#[derive(Clone, Debug, Default, Encode, Decode)]
#[cbor(transparent)]
pub(super) struct DailyFigures(#[n(0)] VecDeque<DayFigures>);

impl DailyFigures {
    /// Counts a Record. Decisions of two merchants can be a day apart and come in either order.
    pub(super) fn count(&mut self, record: &Record) {
        let day = record.effective_at.day();
        let place = match self.0.back() {
            Some(last) if last.day == day => self.0.len() - 1,
            _ => match self.0.binary_search_by_key(&day, |of| of.day) {
                Ok(place) => place,
                Err(place) => {
                    self.0.insert(place, DayFigures { day, ..DayFigures::default() });
                    place
                }
            },
        };
        self.0[place].count(record);
        let newest = self.0.back().map_or(day, |last| last.day);
        while self.0.front().is_some_and(|first| first.day + DAYS_MAX <= newest) {
            self.0.pop_front();
        }
    }

    pub(super) fn days(&self) -> impl Iterator<Item = &DayFigures> {
        self.0.iter()
    }
}
