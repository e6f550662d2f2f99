//! A sub-recipient's books (interface 2.8–2.10, 3.3, 3.5): credited by its merchant's Records, lowered only by its own.
//!
//! Single splits are not in the state. Pending money is sums by due minute; what is available is told by how far the withdrawals have
//! come (see [`coverage`]); only what is unlike the rest of its minute (anticipated, partly taken back) is kept by itself, until the
//! minute is over.

pub mod coverage;
pub mod credits;

mod anticipation;
mod debts;
mod exceptions;
mod sections;
mod withdrawals;

use std::collections::BTreeMap;

use crate::event::{Cut, Event, Settlement, Split, SplitKey};
use crate::id::{LedgerId, ObjectId, RecipientNumber};
use crate::money::{Centavos, Rate};
use crate::personal::Sealed;
use crate::record::{Decision, Record};
use crate::rejection::Rejection;
use crate::section::Sums;
use crate::time::{Minute, Timestamp};

use debts::Debts;
use exceptions::Exceptions;

pub use coverage::RecipientStanding;
pub use credits::Credit;
pub use withdrawals::{OpenWithdrawal, Returnable, SEND_AGAIN_AFTER_MS, TransferOutcome, first_asked_at};

use withdrawals::Outflow;

/// A split of a captured card charge, as its merchant's Record has it: history that does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardSplit {
    /// Which.
    pub split: SplitKey,
    /// The sequence of the capture.
    pub sequence: u64,
    /// When it falls due.
    pub due: Minute,
    /// What the charge gave it, centavos.
    pub nominal: Centavos,
}

/// What can be asked of a recipient. Shapes and ranges are checked at the door; rules are checked here.
#[derive(Clone, Debug)]
pub enum RecipientCommand {
    /// Ask for all that is available (interface 2.9).
    Withdraw {
        /// The withdrawal's id.
        id: ObjectId,
        /// The account that the money goes to, whatever the registration says later: a [`crate::personal::BankAccount`].
        destination: Sealed,
    },
    /// An administrator approves the pending withdrawal; its money is to be sent.
    ApproveWithdrawal {
        /// Which.
        id: ObjectId,
    },
    /// An administrator rejects the pending withdrawal.
    RejectWithdrawal {
        /// Which.
        id: ObjectId,
        /// Why.
        notes: String,
    },
    /// The institution has said what became of an approved withdrawal's transfer.
    SettleWithdrawal {
        /// Which.
        id: ObjectId,
        /// What it said.
        outcome: TransferOutcome,
    },
    /// The bank returned the transfer of a withdrawal that had been paid.
    ReturnWithdrawal {
        /// Which.
        id: ObjectId,
        /// Why.
        notes: String,
    },
    /// Make pending card splits available now, less a fee each (interface 2.10): all of them or none.
    Anticipate {
        /// The anticipation's id.
        id: ObjectId,
        /// The splits, each once.
        splits: Vec<CardSplit>,
        /// 2, 7 or 15.
        target_days: u8,
        /// The account's rate for these days.
        rate: Rate,
        /// Day on which the money can be sent, in days since 1970-01-01.
        settlement_day: u32,
    },
}

/// All that a recipient's decisions need. It grows with the minutes that wait to fall due, with the splits in them that are unlike the
/// others, and with open debts, never with history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipientState {
    pending: Sums,
    available: Centavos,
    exceptions: Exceptions,
    debts: Debts,
    outflow: Outflow,
}

impl RecipientState {
    /// The Record of all that is due at `now` and of the debts that can be paid back; none when there is neither. `foreign_through` is
    /// the cut: every Record of the merchant through this sequence has been received.
    pub fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        let dues = self.pending.due(now);
        let raised = dues.iter().map(|due| due.amount).sum::<Centavos>();
        let debts = self.debts.repaid(self.available + raised, |debt| {
            let is_pending = debt.due.is_some_and(|due| due > now.minute()) && !self.is_anticipated(debt);
            if is_pending { debt.left() } else { Centavos::ZERO }
        });
        let mut events = Vec::new();
        if !dues.is_empty() {
            let mut taken: BTreeMap<Minute, Centavos> = BTreeMap::new();
            for debt in &debts {
                *taken.entry(debt.due.unwrap_or_default()).or_default() += debt.from_pending;
            }
            let later = Minute(now.minute().0.saturating_add(1));
            let next_due = self.pending.next_besides(later, &taken).into_iter().chain(self.outflow.attention_at());
            let next_due = next_due.chain(self.returns_asked_at(now)).min();
            events.push(Event::Matured { dues, foreign_through, next_due });
        }
        if !debts.is_empty() {
            events.push(Event::ClawbackRecovered { debts });
        }
        (!events.is_empty()).then_some(Decision { events, personal: None })
    }

    /// Decides a command; changes nothing. `cut` is how far this state has come.
    pub fn decide(&self, command: RecipientCommand, now: Timestamp, cut: Cut) -> Result<Decision, Rejection> {
        match command {
            RecipientCommand::Withdraw { id, destination } => self.withdraw(id, destination, cut),
            RecipientCommand::ApproveWithdrawal { id } => {
                self.undecided(id)?;
                Ok(Decision::of(Event::WithdrawalApproved { id }))
            }
            RecipientCommand::RejectWithdrawal { id, notes } => Ok(self.rejected(self.undecided(id)?, notes)),
            RecipientCommand::SettleWithdrawal { id, outcome } => self.settle_withdrawal(id, outcome, now),
            RecipientCommand::ReturnWithdrawal { id, notes } => self.returned(id, notes),
            RecipientCommand::Anticipate { id, splits, target_days, rate, settlement_day } => {
                let splits = self.anticipated(&splits, rate, now, cut)?;
                let raised = splits.iter().map(|split| split.amount - split.fee).sum();
                let anticipated = Event::SplitsAnticipated { id, splits, target_days, rate, settlement_day };
                Ok(self.with_recovery(anticipated, raised))
            }
        }
    }

    /// Applies one of the recipient's own Records. From here on it must succeed.
    pub fn evolve(&mut self, record: &Record) {
        // What is kept of single splits is of use only until they fall due.
        self.exceptions.forget_through(record.effective_at.minute());
        self.outflow.forget_returnable(record.effective_at);
        for event in &record.events {
            self.apply(event, record);
        }
    }

    /// Counts a Record of the merchant. It only adds, so it does not matter which own Records came before.
    pub fn receive(&mut self, record: &Record, ledger: LedgerId) {
        let LedgerId::Recipient(_, number) = ledger else { return };
        for event in &record.events {
            if let Some((splits, due)) = credits::credited(event) {
                self.credit(Credit { due, amount: share(splits, number) });
            }
            if let Event::RefundApproved { id, charge, seller_due, take_backs, .. } = event {
                for part in take_backs.iter().filter(|part| part.recipient == number) {
                    self.debts.raise(*id, *charge, part, *seller_due);
                }
            }
        }
    }

    /// True when no claim on the platform is negative, and no debt either.
    pub fn is_sound(&self) -> bool {
        let zero = Centavos::ZERO;
        let figures = [self.available, self.reserved(), self.paid(), self.outflow.consumed];
        figures.into_iter().all(|figure| figure >= zero) && self.pending.are_positive() && self.debts.are_positive()
    }

    /// When it needs attention next: money falls due, a transfer is to be sent or asked about, or at once when a debt can be paid back.
    pub fn next_due(&self) -> Option<Timestamp> {
        let can_repay = self.debts.iter().any(|debt| {
            let is_pending = debt.due.is_some_and(|due| self.pending.has(due)) && !self.is_anticipated(debt);
            self.available.is_positive() || is_pending
        });
        let at_once = can_repay.then_some(Timestamp(0));
        at_once.into_iter().chain(self.pending.next_from(Minute(0))).chain(self.outflow.attention_at()).min()
    }

    /// The approved withdrawal whose transfer is to be sent, or asked about, at `now`.
    pub fn to_send(&self, now: Timestamp) -> Option<&OpenWithdrawal> {
        self.outflow.withdrawal.as_ref().filter(|_| self.outflow.attention_at().is_some_and(|at| at <= now))
    }

    /// The paid withdrawals that may still come back.
    pub fn returnable(&self) -> &[Returnable] {
        self.outflow.returnable()
    }

    /// When the institution is to be asked whether a paid withdrawal came back. The state does not have whether it was asked, so this
    /// may be a time at which it was.
    pub fn returns_asked_at(&self, now: Timestamp) -> Option<Timestamp> {
        let returnable = self.returnable().iter().filter(|returnable| returnable.until >= now);
        returnable.filter_map(|returnable| returnable.asked_last(now)).min()
    }

    /// Money that falls due later, centavos.
    pub fn pending(&self) -> Centavos {
        self.pending.total()
    }

    /// Money that can be withdrawn, centavos.
    pub fn available(&self) -> Centavos {
        self.available
    }

    /// Money under a withdrawal that is not settled yet, centavos.
    pub fn reserved(&self) -> Centavos {
        self.outflow.withdrawal.as_ref().map_or(Centavos::ZERO, |withdrawal| withdrawal.amount)
    }

    /// Money that was sent and did not come back, centavos.
    pub fn paid(&self) -> Centavos {
        self.outflow.paid
    }

    /// What it owes for splits that were taken back, centavos.
    pub fn owed(&self) -> Centavos {
        self.debts.iter().map(|debt| debt.left()).sum()
    }

    fn apply(&mut self, event: &Event, record: &Record) {
        match event {
            Event::Matured { dues, .. } => {
                for due in dues {
                    self.pending.take(due.minute, due.amount);
                    self.available += due.amount;
                }
            }
            Event::WithdrawalRequested { id, amount, spans, consumed, settlements } => {
                self.available -= *amount;
                self.outflow.pin(OpenWithdrawal {
                    id: *id,
                    amount: *amount,
                    spans: spans.clone(),
                    consumed: *consumed,
                    settlements: settlements.clone(),
                    approved_at: None,
                    destination: record.personal.clone(),
                });
            }
            Event::WithdrawalApproved { .. } => self.outflow.approve(record.effective_at),
            Event::WithdrawalPaid { amount, returnable_until, .. } => {
                self.outflow.pay(*amount, record.effective_at, *returnable_until);
            }
            Event::WithdrawalRejected { amount, .. } => {
                self.available += *amount;
                if let Some(withdrawal) = self.outflow.withdrawal.take() {
                    self.outflow.put_back(&withdrawal.spans, withdrawal.consumed, &withdrawal.settlements);
                }
            }
            Event::WithdrawalReturned { id, amount, spans, consumed, settlements, .. } => {
                self.available += *amount;
                self.outflow.take_back(*id, *amount);
                self.outflow.put_back(spans, *consumed, settlements);
            }
            Event::SplitsAnticipated { splits, settlement_day, .. } => {
                let mut raised = Centavos::ZERO;
                for split in splits {
                    self.pending.take(split.due, split.amount);
                    self.exceptions.change(split.due, split.split, |exception| exception.anticipated = true);
                    raised += split.amount - split.fee;
                }
                self.available += raised;
                self.outflow.settle_on(&[Settlement { day: *settlement_day, amount: raised }]);
            }
            Event::ClawbackRecovered { debts } => {
                for debt in debts {
                    if let Some(due) = debt.due.filter(|_| debt.from_pending.is_positive()) {
                        self.pending.take(due, debt.from_pending);
                        self.exceptions.change(due, debt.split, |exception| exception.taken += debt.from_pending);
                    }
                    self.available -= debt.from_available;
                    self.outflow.consumed += debt.from_available;
                }
                self.debts.lower(debts);
            }
            _ => {}
        }
    }

    /// An event that raises Available, and what the rise pays back of debts, in the same Record.
    fn with_recovery(&self, event: Event, raised: Centavos) -> Decision {
        let debts = self.debts.repaid(self.available + raised, |_| Centavos::ZERO);
        let recovered = (!debts.is_empty()).then_some(Event::ClawbackRecovered { debts });
        Decision { events: [event].into_iter().chain(recovered).collect(), personal: None }
    }

    fn is_anticipated(&self, debt: &debts::Debt) -> bool {
        debt.due.is_some_and(|due| self.exceptions.get(due, debt.split).anticipated)
    }
}

fn share(splits: &[Split], number: RecipientNumber) -> Centavos {
    splits.iter().filter(|split| split.recipient == number).map(|split| split.amount).sum()
}
