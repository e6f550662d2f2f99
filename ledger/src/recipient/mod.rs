//! State machine of a sub-recipient (interface 2.8–2.10, 3.3, 3.5): its commands, its state,
//! `decide` and `evolve`. Records of its merchant credit it; only its own Records lower its money.
//!
//! The state has no single splits. Pending money is stored as sums by due minute. The cuts of
//! withdrawals say which splits are available and which are paid (see [`coverage`]). A split that
//! differs from the rest of its minute (anticipated, partly taken back) is stored by itself until
//! the minute is over.

pub mod coverage;
pub mod credits;

mod anticipation;
mod debts;
mod exceptions;
mod sections;
mod split_history;
mod withdrawals;

use std::collections::BTreeMap;

use crate::balances::Ledger;
use crate::event::{Cut, GiveBack, PaidBack, Settlement, SplitKey};
use crate::rail_word::SayRailWord;
use crate::section::Sums;
use crate::withdrawal_return::{OpenReturn, ReturnCommand};
use crate::write_off::{OpenWriteOff, WriteOffCommand};
use crate::{
    Account, AdjustmentTarget, Centavos, Decision, Event, LedgerId, Minute, Month, ObjectId, PayoutBank, RailName,
    Rate, RecipientNumber, Record, Rejection, Sealed, Split, Timestamp,
};

use debts::Debts;
use exceptions::Exceptions;

pub use coverage::SplitStanding;
pub use credits::Credit;
pub use split_history::SplitHistory;
pub use withdrawals::{OpenWithdrawal, Returnable, SEND_AGAIN_AFTER_MS, TransferOutcome, first_asked_at};

use withdrawals::Outflow;

/// A split of a captured card charge, as its merchant's Record has it; it never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardSplit {
    /// Charge and place in it.
    pub split: SplitKey,
    /// Sequence of the capture's Record.
    pub sequence: u64,
    /// The minute in which it falls due.
    pub due: Minute,
    /// The amount of the split in the charge, centavos.
    pub nominal: Centavos,
}

/// Command to a recipient. The caller has checked shapes and ranges; `decide` checks the rules.
#[derive(Clone, Debug)]
pub enum RecipientCommand {
    /// Ask for all that is available (interface 2.9).
    Withdraw {
        /// The withdrawal's id.
        id: ObjectId,
        /// The account that the money goes to, whatever the registration says later: a sealed
        /// [`crate::personal::BankAccount`].
        destination: Sealed,
        /// Why, where an operator asks for it: another one approves it, whatever its amount.
        reason: Option<String>,
    },
    /// An administrator approves the pending withdrawal; its money is to be sent.
    ApproveWithdrawal {
        /// Id of the withdrawal.
        id: ObjectId,
        /// The institution that sends it; none in a sandbox.
        rail: Option<RailName>,
    },
    /// An administrator approves the pending withdrawal as the first of two.
    AskApproval {
        /// Id of the withdrawal.
        id: ObjectId,
    },
    /// The merchant takes the pending withdrawal back before it is approved.
    CancelWithdrawal {
        /// Id of the withdrawal.
        id: ObjectId,
    },
    /// An administrator rejects the pending withdrawal.
    RejectWithdrawal {
        /// Id of the withdrawal.
        id: ObjectId,
        /// The reason, for whoever asked.
        notes: String,
    },
    /// The transfer of an approved withdrawal is to be ordered once more.
    TryWithdrawal {
        /// Id of the withdrawal.
        id: ObjectId,
        /// How many times it is ordered with this one, from 2.
        attempt: u32,
    },
    /// An operator says what became of a transfer that the institution left unknown.
    SayRailWord(Box<SayRailWord>),
    /// The institution answered to the transfer of an approved withdrawal.
    SettleWithdrawal {
        /// Id of the withdrawal.
        id: ObjectId,
        /// Its answer.
        outcome: TransferOutcome,
    },
    /// The bank returned the transfer of a withdrawal that had been paid.
    ReturnWithdrawal {
        /// Id of the withdrawal.
        id: ObjectId,
        /// The reason, for whoever asked.
        notes: String,
        /// The account that the money came back to, where the institution names it.
        to: Option<PayoutBank>,
    },
    /// Book by two operators a withdrawal that came back without the institution's word.
    EnterReturn {
        /// What an operator does.
        command: ReturnCommand,
        /// The last closed month: nothing is booked into it, or before it.
        closed: Option<Month>,
    },
    /// Make pending card splits available now, each less a fee (interface 2.10): all of them or
    /// none.
    Anticipate {
        /// The anticipation's id.
        id: ObjectId,
        /// The splits, each once.
        splits: Vec<CardSplit>,
        /// In how many days, and for which fee.
        terms: AnticipationTerms,
    },
    /// Write off the recipient's Clawback, by two operators.
    WriteOff(WriteOffCommand),
}

/// In how many days anticipated money can be sent, at which rate, and for which fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnticipationTerms {
    /// 2, 7 or 15.
    pub target_days: u8,
    /// The account's rate for these days.
    pub rate: Rate,
    /// The fee of all splits that the caller has seen, centavos; any other is refused.
    pub expected_fee: Option<Centavos>,
}

/// State of a recipient: all that its decisions need. It grows with the minutes that wait to fall
/// due, with the splits in them that are exceptions, and with open debts; never with history.
///
/// ```
/// # use ledger::event::Cut;
/// # use ledger::fees::Settings;
/// # use ledger::id::{Fingerprint, GroupNumber, IdKey, LedgerId, RecipientNumber};
/// # use ledger::merchant::{MerchantCommand, MerchantState, SplitRequest};
/// # use ledger::money::Centavos;
/// # use ledger::personal::Sealed;
/// # use ledger::recipient::{RecipientCommand, RecipientState};
/// # use ledger::rejection::Rejection;
/// # use ledger::time::Timestamp;
/// # let (group, ids, now) = (GroupNumber(1), IdKey::new([7; 16]), Timestamp(1_795_000_000_000));
/// # let charge = ids.object(group, now, 2);
/// # let number = RecipientNumber(1);
/// # let id = ids.recipient(group, number, now, 3);
/// # let settings = Settings { split_enabled: true, ..Settings::default() };
/// # let splits = vec![SplitRequest { recipient: id, amount: Centavos(3_500) }];
/// # let expires_at = now.plus_days(1);
/// # let (mut merchant, mut records) = (MerchantState::default(), Vec::new());
/// # for command in [
/// #     MerchantCommand::Open {
/// #         id: ids.object(group, now, 1), settings, profile: Sealed::default(),
/// #     },
/// #     MerchantCommand::RegisterRecipient {
/// #         random: 3, document: Fingerprint([7; 16]), profile: Sealed::default(),
/// #     },
/// #     MerchantCommand::ApproveRecipient { id },
/// #     MerchantCommand::OpenPix {
/// #         charge, amount: Centavos(10_000), splits, expires_at, payer: Sealed::default(),
/// #         rail: None,
/// #     },
/// #     MerchantCommand::ConfirmPix {
/// #         charge, amount: Centavos(10_000), end_to_end_id: "E1".to_owned(),
/// #     },
/// # ] {
/// #     let decision = merchant.decide(command, group, now, &ids).unwrap();
/// #     let ordinal = records.len() as u64 + 1;
/// #     records.push(decision.into_record(LedgerId::Merchant(group), ordinal, now));
/// #     merchant.evolve(records.last().unwrap());
/// # }
/// # let paid = records.pop().unwrap();
/// # let cut = Cut::default();
/// let owner = LedgerId::Recipient(group, number);
/// let mut recipient = RecipientState::default();
/// let destination = Sealed::default();
/// let withdraw = RecipientCommand::Withdraw { id: charge, destination, reason: None };
/// assert_eq!(recipient.decide(withdraw.clone(), now, cut), Err(Rejection::NothingAvailable));
///
/// // The merchant's Record of a paid PIX credits a split of R$ 35,00, available at once.
/// recipient.receive(&paid, owner);
/// let decision = recipient.decide(withdraw, now, cut).unwrap();
/// recipient.evolve(&decision.into_record(owner, 1, now));
/// assert_eq!((recipient.available(), recipient.reserved()), (Centavos(0), Centavos(3_500)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipientState {
    ledger: Ledger,
    /// The ledger's Pending by due minute: the account itself has one sum for all minutes.
    pending: Sums,
    exceptions: Exceptions,
    debts: Debts,
    outflow: Outflow,
    /// The write-off of the Clawback that waits for a second operator.
    write_off: Option<OpenWriteOff>,
    /// The returns of withdrawals that wait for a second operator.
    returns: Vec<OpenReturn>,
    /// Operators froze it: nothing leaves to it.
    frozen: bool,
}

impl RecipientState {
    /// The facts of all that is due at `now` and of the debts that can be paid back; `None` if
    /// there is neither. Every Record of the merchant through the sequence `foreign_through` has
    /// been received.
    pub fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        let dues = self.pending.due(now);
        let raised = dues.iter().map(|due| due.amount).sum::<Centavos>();
        let debts = self.debts.repaid(self.available() + raised, |debt| {
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
            events.push(self.paid_back(debts, self.outflow.goodwill));
        }
        (!events.is_empty()).then_some(Decision { events, personal: None })
    }

    /// When the next facts of [`RecipientState::mature`] take effect, at `now` or before: in the
    /// minute in which money fell due, also when it is booked later. A debt is paid back at `now`,
    /// since it may be younger than the money that fell due.
    pub fn matures_at(&self, now: Timestamp) -> Timestamp {
        let first = self.pending.first().filter(|_| self.debts.iter().next().is_none());
        first.map_or(now, |minute| minute.end().min(now))
    }

    /// Decides a command and changes nothing. `cut` is how far this state has come. Errors: the
    /// first rule that the command breaks.
    pub fn decide(&self, command: RecipientCommand, now: Timestamp, cut: Cut) -> Result<Decision, Rejection> {
        match command {
            RecipientCommand::Withdraw { id, destination, reason } => self.withdraw(id, destination, reason, cut),
            RecipientCommand::ApproveWithdrawal { id, rail } => {
                self.approvable(id)?;
                Ok(Decision::of(Event::WithdrawalApproved { id, rail }))
            }
            RecipientCommand::AskApproval { id } => {
                self.approvable(id)?;
                Ok(Decision::of(Event::ApprovalAsked { id, is_refund: false, reason: None }))
            }
            RecipientCommand::CancelWithdrawal { id } => Ok(self.cancelled(self.undecided(id)?)),
            RecipientCommand::RejectWithdrawal { id, notes } => Ok(self.rejected(self.undecided(id)?, notes)),
            RecipientCommand::TryWithdrawal { id, attempt } => self.try_withdrawal(id, attempt),
            RecipientCommand::SayRailWord(said) => self.say_rail_word(*said, now),
            RecipientCommand::SettleWithdrawal { id, outcome } => self.settle_withdrawal(id, outcome, now),
            RecipientCommand::ReturnWithdrawal { id, notes, to } => self.returned(id, notes, to),
            RecipientCommand::EnterReturn { command, closed } => {
                let event = command.decide(&self.returns, closed)?;
                let raised = match &event {
                    Event::WithdrawalReturned { amount, .. } => *amount,
                    _ => return Ok(Decision::of(event)),
                };
                Ok(self.with_recovery(event, raised))
            }
            RecipientCommand::Anticipate { id, splits, terms } => {
                let splits = self.anticipated(&splits, terms, now, cut)?;
                let AnticipationTerms { target_days, rate, .. } = terms;
                let settlement_day = anticipation::settlement_day(target_days, now);
                let raised = splits.iter().map(|split| split.amount - split.fee).sum();
                let anticipated = Event::SplitsAnticipated { id, splits, target_days, rate, settlement_day };
                Ok(self.with_recovery(anticipated, raised))
            }
            RecipientCommand::WriteOff(command) => command.decide(self.write_off.as_ref(), self.owed(), |open| {
                let OpenWriteOff { id, amount, reference, .. } = open.clone();
                Event::ClawbackWrittenOff { id, reference, debts: self.debts.oldest(amount) }
            }),
        }
    }

    /// Applies one of the recipient's own Records. From here on it must succeed.
    pub fn evolve(&mut self, record: &Record) {
        // Exceptions are of use only until their splits fall due.
        self.exceptions.forget_through(record.effective_at.minute());
        self.outflow.forget_returnable(record.effective_at);
        record.entries_of(record.owner).for_each(|entry| self.ledger.post(entry.postings()));
        for event in &record.events {
            self.apply(event, record);
        }
    }

    /// Applies a Record of the merchant. It only credits, raises a debt or freezes, so it does not
    /// matter which own Records came before.
    pub fn receive(&mut self, record: &Record, ledger: LedgerId) {
        let LedgerId::Recipient(_, number) = ledger else { return };
        record.entries_of(ledger).for_each(|entry| self.ledger.post(entry.postings()));
        for event in &record.events {
            match event {
                Event::RecipientFrozen { number: frozen, .. } if *frozen == number => self.frozen = true,
                Event::RecipientUnfrozen { number: frozen, .. } if *frozen == number => self.frozen = false,
                _ => {}
            }
            if let Event::CardCaptured { terms, splits_due, .. } = event {
                self.pending.add(*splits_due, share(&terms.splits, number));
            }
            if let Event::AdjustmentCreated { amount, target, is_beside_splits, .. } = event
                && *target == Some(AdjustmentTarget::Recipient(number))
            {
                match is_beside_splits {
                    true => self.outflow.goodwill += *amount,
                    false => self.outflow.consumed -= *amount,
                }
            }
            if let Event::RefundFailed { charge, give_backs, .. } = event {
                give_backs
                    .iter()
                    .filter(|part| part.recipient == number)
                    .for_each(|part| self.give_back(*charge, part));
            }
            if let Event::RefundApproved { id, charge, seller_due, take_backs, .. } = event {
                for part in take_backs.iter().filter(|part| part.recipient == number) {
                    self.debts.raise(*id, *charge, part, *seller_due);
                }
            }
        }
    }

    /// Takes a part of a split back that a failed refund had taken. The part that was paid from
    /// Available was consumed; where it is paid out already, no split has it any more.
    fn give_back(&mut self, charge: ObjectId, part: &GiveBack) {
        let split = SplitKey { charge, index: part.index };
        if let Some(due) = part.due.filter(|_| part.to_pending.is_positive()) {
            self.pending.add(due, part.to_pending);
            self.exceptions.give_back(due, split, part.to_pending);
        }
        self.outflow.consumed -= part.to_available - (part.from_pending - part.to_pending);
    }

    /// True when no claim on the platform and no debt is below zero, and the sums by due minute, by
    /// withdrawal and by debt equal the balances of the accounts.
    pub fn is_sound(&self) -> bool {
        let withdrawal = self.outflow.withdrawal.as_ref().map(|withdrawal| withdrawal.amount);
        self.ledger.claims_are_covered()
            && self.paid() >= Centavos::ZERO
            && self.pending.are_positive()
            && self.debts.are_positive()
            && self.pending.total() == self.pending()
            && withdrawal.unwrap_or_default() == self.reserved()
            && self.debts.left() == self.owed()
    }

    /// The balances of the recipient's own accounts.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// When it needs attention next: money falls due, a transfer is to be sent or asked about, or
    /// at once when a debt can be paid back.
    pub fn next_due(&self) -> Option<Timestamp> {
        let can_repay = self.debts.iter().any(|debt| {
            let is_pending = debt.due.is_some_and(|due| self.pending.has(due)) && !self.is_anticipated(debt);
            self.available().is_positive() || is_pending
        });
        let at_once = can_repay.then_some(Timestamp(0));
        at_once.into_iter().chain(self.pending.next_from(Minute(0))).chain(self.outflow.attention_at()).min()
    }

    /// The approved withdrawal whose transfer is to be sent, or asked about, at `now`.
    pub fn to_send(&self, now: Timestamp) -> Option<&OpenWithdrawal> {
        self.outflow.withdrawal.as_ref().filter(|_| self.outflow.attention_at().is_some_and(|at| at <= now))
    }

    /// The paid withdrawals that the bank may still return.
    pub fn returnable(&self) -> &[Returnable] {
        self.outflow.returnable()
    }

    /// When the institution is to be asked whether a paid withdrawal came back. The state does not
    /// know whether it was asked, so this may be a time at which it already was.
    pub fn returns_asked_at(&self, now: Timestamp) -> Option<Timestamp> {
        let returnable = self.returnable().iter().filter(|returnable| returnable.until >= now);
        returnable.filter_map(|returnable| returnable.asked_last(now)).min()
    }

    /// Money that falls due later, centavos.
    pub fn pending(&self) -> Centavos {
        self.ledger.holds(Account::Pending)
    }

    /// Money that can be withdrawn, centavos.
    pub fn available(&self) -> Centavos {
        self.ledger.holds(Account::Available)
    }

    /// Money under a withdrawal that is not settled yet, centavos.
    pub fn reserved(&self) -> Centavos {
        self.ledger.holds(Account::ReservedWithdrawal)
    }

    /// Money that was sent and did not come back, centavos.
    pub fn paid(&self) -> Centavos {
        self.ledger.holds(Account::TransitWithdrawal)
    }

    /// Debt for splits that were taken back, centavos.
    pub fn owed(&self) -> Centavos {
        self.ledger.owes(Account::Clawback)
    }

    fn apply(&mut self, event: &Event, record: &Record) {
        OpenWriteOff::follow(&mut self.write_off, event, record);
        OpenReturn::follow(&mut self.returns, event, record);
        match event {
            Event::Matured { dues, .. } => dues.iter().for_each(|due| self.pending.take(due.minute, due.amount)),
            Event::WithdrawalRequested { id, amount, spans, consumed, settlements, goodwill } => {
                self.outflow.pin(OpenWithdrawal {
                    id: *id,
                    amount: *amount,
                    spans: spans.clone(),
                    consumed: *consumed,
                    settlements: settlements.clone(),
                    approved_at: None,
                    destination: record.personal.clone().unwrap_or_default(),
                    bank: None,
                    rail: None,
                    tried_at: None,
                    goodwill: *goodwill,
                });
            }
            Event::WithdrawalApproved { rail, .. } => self.outflow.approve(record.effective_at, rail.clone()),
            Event::RailTried { .. } => self.outflow.try_again(record.effective_at),
            Event::WithdrawalPaid { returnable_until, bank, .. } => {
                self.outflow.pay(record.effective_at, *returnable_until, *bank);
            }
            Event::WithdrawalRejected { .. } => {
                if let Some(withdrawal) = self.outflow.withdrawal.take() {
                    let OpenWithdrawal { spans, consumed, goodwill, settlements, .. } = withdrawal;
                    self.outflow.put_back(&spans, [consumed, goodwill], &settlements);
                }
            }
            Event::WithdrawalReturned { id, spans, consumed, settlements, goodwill, .. } => {
                self.outflow.take_back(*id);
                self.outflow.put_back(spans, [*consumed, *goodwill], settlements);
            }
            Event::SplitsAnticipated { splits, settlement_day, .. } => {
                for split in splits {
                    self.pending.take(split.due, split.amount);
                    self.exceptions.change(split.due, split.split, |exception| exception.anticipated = true);
                    let (day, amount) = (split.settled_on(*settlement_day), split.amount - split.fee);
                    self.outflow.settle_on(&[Settlement { day, amount }]);
                }
            }
            Event::ClawbackRecovered { debts, goodwill, .. } => {
                self.outflow.goodwill -= *goodwill;
                self.outflow.consumed -= *goodwill;
                for debt in debts {
                    if let Some(due) = debt.due.filter(|_| debt.from_pending.is_positive()) {
                        self.pending.take(due, debt.from_pending);
                        self.exceptions.change(due, debt.split, |exception| exception.taken += debt.from_pending);
                    }
                    self.outflow.consumed += debt.from_available;
                }
                self.debts.lower(debts.iter().map(PaidBack::part));
            }
            Event::ClawbackWrittenOff { debts, .. } => self.debts.lower(debts.iter().copied()),
            _ => {}
        }
    }

    /// An event that raises Available, with the debts that the rise pays back, in one Record.
    fn with_recovery(&self, event: Event, raised: Centavos) -> Decision {
        let debts = self.debts.repaid(self.available() + raised, |_| Centavos::ZERO);
        let returned = match &event {
            Event::WithdrawalReturned { goodwill, .. } => *goodwill,
            Event::WithdrawalRejected { .. } => {
                self.outflow.withdrawal.as_ref().map_or(Centavos::ZERO, |of| of.goodwill)
            }
            _ => Centavos::ZERO,
        };
        let recovered = (!debts.is_empty()).then(|| self.paid_back(debts, self.outflow.goodwill + returned));
        Decision { events: [event].into_iter().chain(recovered).collect(), personal: None }
    }

    /// The fact of repayments, and what is still owed after them. Available pays with its goodwill
    /// first.
    fn paid_back(&self, debts: Vec<PaidBack>, goodwill: Centavos) -> Event {
        let from_available = debts.iter().map(|debt| debt.from_available).sum::<Centavos>();
        let paid = debts.iter().map(|debt| debt.from_pending).sum::<Centavos>() + from_available;
        Event::ClawbackRecovered { debts, left: Some(self.owed() - paid), goodwill: goodwill.min(from_available) }
    }

    fn is_anticipated(&self, debt: &debts::Debt) -> bool {
        debt.due.is_some_and(|due| self.exceptions.get(due, debt.split).anticipated)
    }
}

fn share(splits: &[Split], number: RecipientNumber) -> Centavos {
    splits.iter().filter(|split| split.recipient == number).map(|split| split.amount).sum()
}
