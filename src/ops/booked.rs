//! The books' side of a reconciliation: PIX payments and movements of the bank accounts, read from
//! the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actors::engine::Engine;
use actors::records::LoadError;
use actors::store::Sequence;
use chrono::NaiveDate;
use ledger::event::{Event, HouseEntryTerms, PayoutBank};
use ledger::fees::PaymentMethod;
use ledger::house::HouseAccount;
use ledger::id::{LedgerId, ObjectId};
use ledger::money::Centavos;
use ledger::record::Record;

use crate::http::problem::{Problem, broken};
use crate::http::streamed::ReadPace;
use crate::http::timestamp::{Named, day_of};
use crate::reconcile::acquirer::{self, BookedBatch};
use crate::reconcile::pix::{BookedPayment, PixList};
use crate::reconcile::statement::Movement;
use crate::reconcile::{ofx, statement};

/// What an institution did is looked for in the Records of this long after a period, milliseconds:
/// we may hear of it late. What falls due takes effect earlier, and moves no money at a bank.
const BOOKED_WITHIN_MS: i64 = 24 * 60 * 60 * 1000;
/// Batches that are looked at in one go.
const BATCHES_AT_ONCE: usize = 100;
/// Records of the house ledger that are looked at in one go.
const ENTRIES_AT_ONCE: usize = 100;

/// A bank account of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BankAccount {
    /// `Assets:Bank:Settlement`: the acquirer's batches, and transfers out.
    Settlement,
    /// `Assets:Bank:Pix`: PIX payments, what is sent back of them, and transfers out.
    Pix,
}

impl BankAccount {
    fn house(self) -> HouseAccount {
        match self {
            Self::Settlement => HouseAccount::BankSettlement,
            Self::Pix => HouseAccount::BankPix,
        }
    }
}

/// The booked lines of a batch; none of a batch that is not booked.
pub fn batch(engine: &Engine, reference: &str) -> Result<BookedBatch, Problem> {
    let mut booked = BookedBatch::default();
    for record in engine.batch(reference)? {
        for event in record?.events {
            match event {
                Event::AcquirerSettled { batch, lines } if batch.reference == reference => {
                    lines.iter().for_each(|line| booked.add(batch.paid_on, line, true));
                }
                Event::AcquirerUnexplained { batch, lines, .. } if batch.reference == reference => {
                    lines.iter().for_each(|line| booked.add(batch.paid_on, line, false));
                }
                _ => {}
            }
        }
    }
    Ok(booked)
}

/// The PIX payments that were booked in a list's period or that pay a charge of the list, by
/// end-to-end id.
pub fn payments(engine: &Arc<Engine>, list: &PixList) -> Result<BTreeMap<String, BookedPayment>, Problem> {
    let mut charges: BTreeSet<ObjectId> = BTreeSet::new();
    each_record(engine, list.from_ms, list.to_ms, |record| {
        charges.extend(record.events.iter().filter_map(|event| match event {
            Event::PixPaid { charge, .. } | Event::LatePixReceived { charge, .. } => Some(*charge),
            _ => None,
        }));
    })?;
    let named = list.payments.iter().filter_map(|payment| payment.txid.as_deref().and_then(ObjectId::parse));
    charges.extend(named);
    let mut booked = BTreeMap::new();
    let mut pace = ReadPace::new(engine);
    for charge in charges {
        booked.extend(payment_of(engine, charge)?);
        pace.step();
    }
    Ok(booked)
}

/// The payment of a charge, with what was sent back of it.
fn payment_of(engine: &Arc<Engine>, charge: ObjectId) -> Result<Option<(String, BookedPayment)>, Problem> {
    let mut payment: Option<(String, BookedPayment)> = None;
    let mut sent_back = BTreeMap::new();
    for found in engine.history(charge)? {
        let (_, record) = found?;
        let at_ms = record.takes_effect_at().0;
        for event in &record.events {
            match event {
                Event::PixPaid { charge: of, terms, end_to_end_id, .. } if *of == charge => {
                    let paid = BookedPayment { charge, amount: terms.amount, at_ms, sent_back: BTreeMap::new() };
                    payment = Some((end_to_end_id.clone(), paid));
                }
                Event::LatePixReceived { charge: of, amount, end_to_end_id } if *of == charge => {
                    let paid = BookedPayment { charge, amount: *amount, at_ms, sent_back: BTreeMap::new() };
                    payment = Some((end_to_end_id.clone(), paid));
                }
                event => {
                    let of_charge = sent_back_by(event).filter(|(_, of, _)| *of == charge);
                    sent_back.extend(of_charge.map(|(id, _, amount)| (id, (amount, at_ms))));
                }
            }
        }
    }
    Ok(payment.map(|(id, paid)| (id, BookedPayment { sent_back, ..paid })))
}

/// The id under which PIX money was sent back, the charge, and how much.
fn sent_back_by(event: &Event) -> Option<(ObjectId, ObjectId, Centavos)> {
    match event {
        Event::PayerRepaid { id, charge, method: PaymentMethod::Pix, amount }
        | Event::DisputeAccepted { id, charge, method: PaymentMethod::Pix, amount } => Some((*id, *charge, *amount)),
        _ => None,
    }
}

/// The movements that were booked on a bank account in a statement's period.
pub fn movements(
    engine: &Arc<Engine>,
    account: BankAccount,
    of: &ofx::BankStatement,
) -> Result<Vec<statement::Movement>, Problem> {
    let mut movements = Vec::new();
    if account == BankAccount::Settlement {
        batches(engine, of.from, of.to, &mut movements)?;
    }
    let limit = |day: NaiveDate| Named::parse(&day.to_string()).ok_or_else(broken);
    let (from_ms, to_ms) = (limit(of.from)?.begin, limit(of.to)?.end - 1);
    each_record(engine, from_ms, to_ms, |record| {
        let day = day_of(record.takes_effect_at().0);
        movements.extend(record.events.iter().filter_map(|event| match account {
            BankAccount::Settlement => paid_out(event, PayoutBank::Settlement, day),
            BankAccount::Pix => paid_out(event, PayoutBank::Pix, day).or_else(|| on_pix(event, day)),
        }));
    })?;
    house_entries(engine, account.house(), (from_ms, to_ms), &mut movements)?;
    Ok(movements)
}

/// The entries of the house ledger that take effect in a period. They may be booked long after it.
fn house_entries(
    engine: &Arc<Engine>,
    account: HouseAccount,
    (from_ms, to_ms): (i64, i64),
    movements: &mut Vec<Movement>,
) -> Result<(), Problem> {
    let mut skip = 0;
    loop {
        let listed = engine.entries(LedgerId::System, skip, ENTRIES_AT_ONCE)?;
        let (total, mut count) = (listed.total, 0);
        for found in listed.items {
            count += 1;
            let (_, record) = found?;
            // None takes effect after it is booked, and the newest come first.
            if record.effective_at.0 < from_ms {
                return Ok(());
            }
            let at_ms = record.takes_effect_at().0;
            if !(from_ms..=to_ms).contains(&at_ms) {
                continue;
            }
            let entries = record.events.iter().filter_map(|event| match event {
                Event::HouseEntryApproved { id, terms } => on_house(account, *id, terms, day_of(at_ms)),
                _ => None,
            });
            movements.extend(entries);
        }
        skip += count;
        if count == 0 || skip >= total {
            return Ok(());
        }
    }
}

/// The batches that the acquirer paid in a period. One without money has no line at the bank.
fn batches(engine: &Arc<Engine>, from: NaiveDate, to: NaiveDate, movements: &mut Vec<Movement>) -> Result<(), Problem> {
    let mut skip = 0;
    loop {
        let listed = engine.batches(skip, BATCHES_AT_ONCE)?;
        let (total, mut count) = (listed.total, 0);
        for found in listed.items {
            count += 1;
            let (_, record) = found?;
            for event in &record.events {
                let Event::AcquirerBatchBooked { batch, net, .. } = event else { continue };
                let day = acquirer::day(batch.paid_on);
                if day < from {
                    return Ok(());
                }
                if day <= to && *net != Centavos::ZERO {
                    movements.push(movement("batch", batch.reference.clone(), Vec::new(), day, *net));
                }
            }
        }
        skip += count;
        if count == 0 || skip >= total {
            return Ok(());
        }
    }
}

/// A transfer that left an account, or came back to it.
fn paid_out(event: &Event, account: PayoutBank, day: NaiveDate) -> Option<Movement> {
    let (from, object, id, others, amount) = match event {
        Event::WithdrawalPaid { id, amount, transfer_id, bank, .. } => {
            (bank.unwrap_or(PayoutBank::Settlement), "withdrawal", id, vec![transfer_id.clone()], -*amount)
        }
        Event::WithdrawalReturned { id, amount, bank, .. } => {
            (bank.unwrap_or(PayoutBank::Settlement), "withdrawal_return", id, Vec::new(), *amount)
        }
        Event::CashoutProcessed { id, amount, fee, end_to_end_id, transfer_id, bank } => {
            let others = vec![end_to_end_id.clone(), transfer_id.clone()];
            (bank.unwrap_or(PayoutBank::Pix), "cashout", id, others, -(*amount - *fee))
        }
        _ => return None,
    };
    (from == account).then(|| of_object(object, *id, others, day, amount))
}

fn on_pix(event: &Event, day: NaiveDate) -> Option<Movement> {
    let of_charge = |object, charge: &ObjectId, id: &ObjectId, others, amount| {
        Some(Movement { charge: Some(*charge), ..of_object(object, *id, others, day, amount) })
    };
    match event {
        Event::PixPaid { charge, terms, end_to_end_id, .. } => {
            of_charge("pix", charge, charge, vec![end_to_end_id.clone()], terms.amount)
        }
        Event::LatePixReceived { charge, amount, end_to_end_id } => {
            of_charge("pix", charge, charge, vec![end_to_end_id.clone()], *amount)
        }
        event => {
            let (id, charge, amount) = sent_back_by(event)?;
            of_charge("return", &charge, &id, Vec::new(), -amount)
        }
    }
}

fn on_house(account: HouseAccount, id: ObjectId, terms: &HouseEntryTerms, day: NaiveDate) -> Option<Movement> {
    let amount = match account {
        account if terms.debit == account => terms.amount,
        account if terms.credit == account => -terms.amount,
        _ => return None,
    };
    let found = movement("entry", id.uuid().to_string(), vec![terms.reference.clone()], day, amount);
    // An entry without a day of its own is booked when the second operator approves it.
    Some(Movement { is_any_day: terms.effective_day.is_none(), ..found })
}

/// A movement that the bank may name by the object's id, in either shape, or by other texts.
fn of_object(object: &'static str, id: ObjectId, others: Vec<String>, day: NaiveDate, amount: Centavos) -> Movement {
    let references = [vec![id.txid()], others].concat();
    movement(object, id.uuid().to_string(), references, day, amount)
}

fn movement(object: &'static str, id: String, others: Vec<String>, day: NaiveDate, amount: Centavos) -> Movement {
    let references = [vec![id.clone()], others].concat();
    Movement { object, id, charge: None, references, day, amount, is_any_day: false }
}

/// Looks at the Records that took effect in a period, both limits included, in milliseconds since
/// 1970 (UTC).
fn each_record(engine: &Arc<Engine>, from_ms: i64, to_ms: i64, mut look: impl FnMut(&Record)) -> Result<(), Problem> {
    let from = first_booked_at(engine, from_ms)?;
    let mut pace = ReadPace::new(engine);
    for block in engine.blocks(from) {
        let block = block?;
        if block.booked_at_ms > to_ms.saturating_add(BOOKED_WITHIN_MS) {
            break;
        }
        for (at, bytes) in (block.first.0..).zip(&block.records) {
            let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence: at, error })?;
            if (from_ms..=to_ms).contains(&record.takes_effect_at().0) {
                look(&record);
            }
        }
        pace.step();
    }
    Ok(())
}

/// The first Record that was booked at an instant or later, by halves.
fn first_booked_at(engine: &Engine, at_ms: i64) -> Result<Sequence, LoadError> {
    let (mut before, mut from) = (0, engine.published().0 + 1);
    while before + 1 < from {
        let middle = before.midpoint(from);
        if engine.booked_record(Sequence(middle))?.0.0 < at_ms { before = middle } else { from = middle }
    }
    Ok(Sequence(from))
}
