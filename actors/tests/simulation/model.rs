//! Model of the callers: the charges that they asked for, the answers that they got, and the money
//! that follows. It computes fees and sums by itself, so that the engine is not its own witness.

use std::collections::BTreeMap;

use ledger::fees::SPLIT_SETTLEMENT_DAYS;
use ledger::{Event, GroupNumber, LedgerId, ObjectId, RecipientNumber, Record, Rejection};

use crate::acquirer::Acquirer;
use crate::audit::{Audit, ensure};

/// What somebody asks for; ids of new charges are made anew for every attempt.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    OpenMerchant,
    Register { document: u8, large: bool },
    Submit { recipient: ObjectId },
    Approve { recipient: ObjectId },
    Reject { recipient: ObjectId },
    OpenCard { amount: i64, installments: u8, splits: Vec<(ObjectId, i64)>, large: bool },
    Capture { charge: ObjectId },
    Refuse { charge: ObjectId },
    LeaveUnanswered { charge: ObjectId },
    Authorize { charge: ObjectId },
    TryOrder { charge: ObjectId, attempt: u32 },
    OpenPix { amount: i64, splits: Vec<(ObjectId, i64)> },
    Confirm { charge: ObjectId, amount: i64 },
    Cancel { charge: ObjectId },
    Read(LedgerId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    Paid,
    Refused,
    Cancelled,
}

#[derive(Clone, Debug)]
pub(crate) struct Charge {
    pub(crate) is_card: bool,
    pub(crate) amount: i64,
    installments: u8,
    splits: Vec<(ObjectId, i64)>,
    /// True once a caller has learned that it exists.
    pub(crate) is_known: bool,
    /// True once a caller has learned that it does not.
    is_refused: bool,
    /// Its end, as a caller has learned it.
    pub(crate) closing: Option<Closing>,
    /// How many tried to close it.
    pub(crate) tries: u32,
    /// The kinds of closing that were tried.
    tried: Vec<Closing>,
}

#[derive(Clone, Debug)]
pub(crate) struct Recipient {
    pub(crate) id: ObjectId,
    pub(crate) number: RecipientNumber,
    pub(crate) is_active: bool,
    pub(crate) decisions: u32,
}

#[derive(Default)]
pub(crate) struct Group {
    pub(crate) is_open: bool,
    /// How often somebody tried to open it.
    pub(crate) openings: u32,
    pub(crate) recipients: BTreeMap<u8, Recipient>,
    pub(crate) charges: BTreeMap<ObjectId, Charge>,
    pub(crate) acquirer: Acquirer,
}

impl Group {
    /// An attempt leaves; `charge` is the id that it would give to a new charge.
    pub(crate) fn attempt(&mut self, action: &Action, charge: ObjectId) {
        match action {
            Action::OpenMerchant => self.openings += 1,
            Action::OpenCard { amount, installments, splits, .. } => {
                self.charges.insert(charge, Charge::requested(true, *amount, *installments, splits));
            }
            Action::OpenPix { amount, splits } => {
                self.charges.insert(charge, Charge::requested(false, *amount, 1, splits));
            }
            Action::Capture { charge } | Action::Confirm { charge, .. } => self.try_closing(*charge, Closing::Paid),
            Action::Refuse { charge } => self.try_closing(*charge, Closing::Refused),
            Action::Cancel { charge } => self.try_closing(*charge, Closing::Cancelled),
            Action::Approve { recipient } | Action::Reject { recipient } => {
                self.recipients.values_mut().filter(|known| known.id == *recipient).for_each(|known| {
                    known.decisions += 1;
                });
            }
            _ => {}
        }
    }

    /// A caller learned of a Record: it must answer the request, and agree with all earlier
    /// answers.
    pub(crate) fn learn(&mut self, action: &Action, charge: ObjectId, record: &Record) -> Result<(), String> {
        let mut answered = false;
        for event in &record.events {
            answered |= match (action, event) {
                (Action::OpenMerchant, Event::MerchantOpened { .. }) => {
                    self.is_open = true;
                    true
                }
                (Action::Register { document, .. }, Event::RecipientRegistered { number, id, .. }) => {
                    let recipient = Recipient { id: *id, number: *number, is_active: false, decisions: 0 };
                    self.recipients.entry(*document).or_insert(recipient);
                    true
                }
                (Action::Register { .. }, Event::RecipientRegisteredAgain { .. }) => true,
                (Action::Submit { .. }, Event::RecipientSubmitted { .. }) => true,
                (Action::Approve { recipient }, Event::RecipientApproved { number }) => {
                    let known = self.recipients.values_mut().find(|known| known.number == *number);
                    known.is_some_and(|known| {
                        known.is_active = true;
                        known.id == *recipient
                    })
                }
                (Action::Reject { .. }, Event::RecipientRejected { .. }) => true,
                (
                    Action::OpenCard { .. } | Action::OpenPix { .. },
                    Event::ChargeOpened { charge: opened, terms, .. },
                ) => {
                    let known = self.charges.get_mut(opened).ok_or("a charge that nobody asked for")?;
                    known.is_known = true;
                    let splits: Vec<_> = terms.splits.iter().map(|split| split.amount.0).collect();
                    let splits_requested: Vec<_> = known.splits.iter().map(|(_, amount)| *amount).collect();
                    ensure(terms.amount.0 == known.amount && splits == splits_requested, || {
                        format!("{opened:?} was opened with other terms")
                    })?;
                    if *opened != charge {
                        // An earlier attempt with the same key made it: this attempt's own charge
                        // must not exist.
                        self.charges.entry(charge).and_modify(|mine| mine.is_refused = true);
                    }
                    true
                }
                (Action::Capture { charge }, Event::CardCaptured { charge: closed, .. })
                | (Action::Confirm { charge, .. }, Event::PixPaid { charge: closed, .. }) => {
                    self.close(*charge, *closed, Closing::Paid)?
                }
                (Action::Refuse { charge }, Event::CardRefused { charge: closed, .. }) => {
                    self.close(*charge, *closed, Closing::Refused)?
                }
                (Action::Cancel { charge }, Event::PixCancelled { charge: closed, .. }) => {
                    self.close(*charge, *closed, Closing::Cancelled)?
                }
                (Action::LeaveUnanswered { charge }, Event::CardUnanswered { charge: left })
                | (Action::Authorize { charge }, Event::CardAuthorized { charge: left, .. })
                | (Action::TryOrder { charge, .. }, Event::RailTried { id: left, .. }) => charge == left,
                _ => false,
            };
        }
        ensure(answered, || format!("{action:?} was answered by {:?}", record.events))
    }

    /// A caller was refused: that must be possible after all that was acknowledged.
    pub(crate) fn refuse(
        &mut self,
        action: &Action,
        charge: ObjectId,
        why: &Rejection,
        was_open: bool,
    ) -> Result<(), String> {
        if let Some(mine) = self.charges.get_mut(&charge) {
            mine.is_refused = true;
        }
        let possible = match (action, why) {
            (Action::OpenMerchant, Rejection::MerchantExists) => {
                self.is_open = true;
                true
            }
            (_, Rejection::MerchantNotFound) => !was_open,
            (Action::Approve { recipient } | Action::Reject { recipient }, Rejection::RecipientAlreadyDecided) => {
                self.recipients.values().any(|known| known.id == *recipient && known.decisions > 1)
            }
            (
                Action::OpenCard { amount, splits, .. } | Action::OpenPix { amount, splits },
                Rejection::SplitsReachTotal,
            ) => splits.iter().map(|(_, part)| part).sum::<i64>() >= *amount,
            (
                Action::OpenCard { splits, .. } | Action::OpenPix { splits, .. },
                Rejection::SplitRecipientNotActive { index },
            ) => {
                let id = splits.get(*index).map(|(id, _)| *id);
                !self.recipients.values().any(|known| Some(known.id) == id && known.is_active)
            }
            (
                Action::Capture { charge }
                | Action::Refuse { charge }
                | Action::LeaveUnanswered { charge }
                | Action::Authorize { charge }
                | Action::Confirm { charge, .. }
                | Action::Cancel { charge },
                Rejection::ChargeNotPending,
            )
            | (Action::TryOrder { charge, .. }, Rejection::OutcomeNotUnknown) => {
                let closes = matches!(
                    action,
                    Action::Capture { .. } | Action::Refuse { .. } | Action::Confirm { .. } | Action::Cancel { .. }
                );
                let left = !closes;
                self.charges.get(charge).is_some_and(|known| {
                    let others = if left { known.tries } else { known.tries - 1 };
                    !known.is_known || others > 0
                })
            }
            _ => false,
        };
        ensure(possible, || format!("{action:?} was refused: {why:?}"))
    }

    /// At the end: every charge stands in the journal as in its callers' answers and in the
    /// acquirer's records, and the ledgers hold the sums of them.
    pub(crate) fn settle(&self, group: GroupNumber, audit: &Audit) -> Result<(), String> {
        let journal = Journal::of(group, audit)?;
        self.acquirer.settle(audit, |charge| journal.closings.get(&charge).copied())?;
        ensure(journal.opened.keys().all(|id| self.charges.contains_key(id)), || {
            "a charge that nobody asked for".into()
        })?;
        ensure(!self.is_open || journal.is_open, || format!("{group:?} was opened and is not there"))?;
        for known in self.recipients.values() {
            let is_there = journal.recipients.get(&known.number) == Some(&known.id);
            ensure(is_there, || format!("recipient {:?} was registered and is not there", known.id))?;
        }
        let mut seller_total = 0;
        let mut recipient_totals: BTreeMap<ObjectId, i128> = BTreeMap::new();
        for (id, charge) in &self.charges {
            charge.check(*id, &journal)?;
            if journal.closings.get(id) == Some(&Closing::Paid) {
                seller_total += i128::from(charge.seller_net());
                for (recipient, amount) in &charge.splits {
                    *recipient_totals.entry(*recipient).or_default() += i128::from(*amount);
                }
            }
        }
        let (pending, available, deficit) = audit.balances(LedgerId::Merchant(group));
        ensure(pending + available - deficit == seller_total, || {
            format!("{group:?}: {pending} + {available} − {deficit}, but its callers count {seller_total}")
        })?;
        for (number, id) in &journal.recipients {
            let (pending, available, _) = audit.balances(LedgerId::Recipient(group, *number));
            let counted = recipient_totals.get(id).copied().unwrap_or_default();
            ensure(pending + available == counted, || {
                format!("{group:?} {number:?}: {pending} + {available}, but its callers count {counted}")
            })?;
        }
        Ok(())
    }

    fn try_closing(&mut self, charge: ObjectId, closing: Closing) {
        if let Some(known) = self.charges.get_mut(&charge) {
            known.tries += 1;
            known.tried.push(closing);
        }
    }

    fn close(&mut self, requested: ObjectId, closed: ObjectId, closing: Closing) -> Result<bool, String> {
        let known = self.charges.get_mut(&closed).ok_or("a charge that nobody asked for")?;
        let before = known.closing.replace(closing);
        ensure(before.is_none_or(|before| before == closing), || {
            format!("{closed:?} was {before:?}, now {closing:?}")
        })?;
        Ok(requested == closed)
    }
}

impl Charge {
    fn requested(is_card: bool, amount: i64, installments: u8, splits: &[(ObjectId, i64)]) -> Self {
        let (is_known, is_refused) = (false, false);
        let splits = splits.to_vec();
        Self { is_card, amount, installments, splits, is_known, is_refused, closing: None, tries: 0, tried: Vec::new() }
    }

    fn check(&self, id: ObjectId, journal: &Journal) -> Result<(), String> {
        let is_there = journal.opened.contains_key(&id);
        ensure(!self.is_known || is_there, || format!("{id:?} was acknowledged and is not there"))?;
        ensure(!self.is_refused || !is_there, || format!("{id:?} was refused and is there"))?;
        let closing = journal.closings.get(&id).copied();
        ensure(self.closing.is_none() || closing == self.closing, || {
            format!("{id:?} ended as {closing:?}, its caller got {:?}", self.closing)
        })?;
        ensure(closing.is_none_or(|closing| self.tried.contains(&closing)), || {
            format!("{id:?} ended as {closing:?}, which nobody asked for")
        })
    }

    /// Interface 2.13, rules 1 and 2, at the rates of the price list.
    fn seller_net(&self) -> i64 {
        let percent = |hundredths: i64, amount: i64| (amount * hundredths + 5_000) / 10_000;
        let gross = self.amount - self.splits.iter().map(|(_, amount)| amount).sum::<i64>();
        if !self.is_card {
            return gross - percent(99, gross);
        }
        let mdr = match self.installments {
            1 => 299,
            2..=6 => 349,
            _ => 399,
        };
        gross - percent(mdr, self.amount) - 198 - percent(100, gross)
    }
}

/// What the journal says of one group, read Record by Record.
#[derive(Default)]
struct Journal {
    is_open: bool,
    recipients: BTreeMap<RecipientNumber, ObjectId>,
    opened: BTreeMap<ObjectId, u64>,
    closings: BTreeMap<ObjectId, Closing>,
}

impl Journal {
    fn of(group: GroupNumber, audit: &Audit) -> Result<Self, String> {
        let mut journal = Self::default();
        for (sequence, record) in audit.records_of(LedgerId::Merchant(group)) {
            for event in &record.events {
                let closing = match event {
                    Event::MerchantOpened { .. } => {
                        ensure(!std::mem::replace(&mut journal.is_open, true), || {
                            format!("{group:?} was opened twice")
                        })?;
                        continue;
                    }
                    Event::RecipientRegistered { number, id, .. } => {
                        ensure(journal.recipients.insert(*number, *id).is_none(), || {
                            format!("{number:?} exists twice")
                        })?;
                        continue;
                    }
                    Event::ChargeOpened { charge, .. } => {
                        let before = journal.opened.insert(*charge, sequence.0);
                        ensure(before.is_none(), || format!("{charge:?} was opened twice"))?;
                        continue;
                    }
                    Event::CardCaptured { charge, splits_due, .. } => {
                        let due = record.effective_at.plus_days(SPLIT_SETTLEMENT_DAYS).minute();
                        ensure(*splits_due == due, || format!("{charge:?} falls due at {splits_due:?}"))?;
                        (charge, Closing::Paid)
                    }
                    Event::PixPaid { charge, .. } => (charge, Closing::Paid),
                    Event::CardRefused { charge, .. } => (charge, Closing::Refused),
                    Event::PixCancelled { charge, .. } => (charge, Closing::Cancelled),
                    _ => continue,
                };
                let before = journal.closings.insert(*closing.0, closing.1);
                ensure(before.is_none(), || format!("{:?} was closed twice", closing.0))?;
            }
        }
        Ok(journal)
    }
}
