//! The books' side of a reconciliation: PIX payments and movements of the bank accounts, read from
//! the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actors::engine::Engine;
use chrono::NaiveDate;
use derived::records::LoadError;
use ledger::event::{Event, HouseEntryTerms, PayoutBank};
use ledger::fees::PaymentMethod;
use ledger::house::HouseAccount;
use ledger::id::{LedgerId, ObjectId};
use ledger::merchant::EndedBatch;
use ledger::money::Centavos;
use ledger::record::Record;
use ledger::time::Timestamp;
use store::cut::Cut;
use wire::timestamp::{begin_of, day_of};

use crate::http::problem::Problem;
use crate::http::streamed::ReadPace;
use crate::reconcile::acquirer::{self, BookedBatch, PaidBatch};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BankAccount {
    /// `Assets:Bank:Settlement`: the acquirer's batches, and transfers out.
    Settlement,
    /// `Assets:Bank:Pix`: PIX payments, what is sent back of them, and transfers out.
    Pix,
    /// `Assets:Bank:Own`: the platform's own money, which entries of the house move.
    Own,
}

impl BankAccount {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Settlement, Self::Pix, Self::Own];

    /// Its name in requests and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Settlement => "settlement",
            Self::Pix => "pix",
            Self::Own => "own",
        }
    }

    /// The account of the chart.
    pub fn house(self) -> HouseAccount {
        match self {
            Self::Settlement => HouseAccount::BankSettlement,
            Self::Pix => HouseAccount::BankPix,
            Self::Own => HouseAccount::BankOwn,
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

/// The movements that were booked on a bank account in a statement's period, and from the first to
/// the last day of its lines.
pub fn movements(
    engine: &Arc<Engine>,
    account: BankAccount,
    of: &ofx::BankStatement,
) -> Result<Vec<statement::Movement>, Problem> {
    let mut movements = Vec::new();
    let (from, to) = of.span();
    if account == BankAccount::Settlement {
        // One without money has no line at the bank.
        let paid = batches(engine, from, to)?.into_iter().filter(|batch| batch.net != Centavos::ZERO);
        movements.extend(paid.map(|batch| movement("batch", batch.reference, Vec::new(), batch.paid_on, batch.net)));
    }
    let (from_ms, to_ms) = limits(from, to);
    // No customer's money moves on the platform's own account: entries of the house alone do.
    if account != BankAccount::Own {
        each_record(engine, from_ms, to_ms, |record| {
            let day = day_of(record.takes_effect_at().0);
            movements.extend(record.events.iter().filter_map(|event| match account {
                BankAccount::Settlement => paid_out(event, PayoutBank::Settlement, day),
                BankAccount::Pix => paid_out(event, PayoutBank::Pix, day).or_else(|| on_pix(event, day)),
                BankAccount::Own => None,
            }));
        })?;
    }
    house_entries(engine, account.house(), (from_ms, to_ms), &mut movements)?;
    Ok(movements)
}

/// The first and the last millisecond of some days.
fn limits(from: NaiveDate, to: NaiveDate) -> (i64, i64) {
    (begin_of(from), begin_of(to) + DAY_MS - 1)
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

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

/// The batches that are booked whole and that the acquirer paid in a period, newest first.
pub fn batches(engine: &Arc<Engine>, from: NaiveDate, to: NaiveDate) -> Result<Vec<PaidBatch>, Problem> {
    let (mut paid, mut skip) = (Vec::new(), 0);
    loop {
        let listed = engine.batches(skip, BATCHES_AT_ONCE)?;
        let (total, mut count) = (listed.total, 0);
        for found in listed.items {
            count += 1;
            let (_, record, EndedBatch { batch, net, .. }) = found?;
            // None is booked before it is paid, and the newest come first.
            if day_of(record.effective_at.0) < from {
                return Ok(paid);
            }
            let paid_on = acquirer::day(batch.paid_on);
            if (from..=to).contains(&paid_on) {
                paid.push(PaidBatch { paid_on, reference: batch.reference, net });
            }
        }
        skip += count;
        if count == 0 || skip >= total {
            return Ok(paid);
        }
    }
}

/// A kind of file that is of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DailyFile {
    /// The statement of a bank account.
    Statement(BankAccount),
    /// The list of the PIX institution.
    PixList,
}

/// Days, each with a kind of file.
pub type FileDays = BTreeSet<(NaiveDate, DailyFile)>;

/// Those of some days of which a file should have something. The journal is read from the first of
/// them on; what comes once every file of a day is known to have something is passed over.
pub fn days_with_movements(engine: &Arc<Engine>, mut asked: FileDays) -> Result<FileDays, Problem> {
    let mut found = known_days(engine, &asked)?;
    asked.retain(|day| !found.contains(day) && day.1 != DailyFile::Statement(BankAccount::Own));
    let mut pace = ReadPace::new(engine);
    let mut next = asked.first().map(|(day, _)| *day);
    while let Some(begin) = next.take() {
        for block in engine.blocks(&first_booked_at(engine, begin_of(begin))?) {
            let block = block?;
            let booked_on = day_of(block.booked_at_ms);
            // What happened on a day is booked through the end of the next one.
            let still = booked_on.pred_opt().unwrap_or(booked_on);
            let awaited = asked.iter().map(|(day, _)| *day).find(|day| *day >= still);
            match awaited {
                None => return Ok(found),
                Some(day) if day > booked_on => {
                    next = Some(day);
                    break;
                }
                Some(_) => {}
            }
            for (at, bytes) in (block.first.0..).zip(&block.records) {
                let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence: at, error })?;
                let day = day_of(record.takes_effect_at().0);
                let files = record.events.iter().flat_map(|event| files_with(event, day));
                let met: Vec<_> = files.map(|file| (day, file)).filter(|day| asked.remove(day)).collect();
                found.extend(met);
            }
            pace.step();
        }
    }
    Ok(found)
}

/// Days whose movements the lists of batches and of the house's entries have.
fn known_days(engine: &Arc<Engine>, asked: &FileDays) -> Result<FileDays, Problem> {
    let (Some((from, _)), Some((to, _))) = (asked.first(), asked.last()) else { return Ok(FileDays::new()) };
    let paid = batches(engine, *from, *to)?.into_iter().filter(|batch| batch.net != Centavos::ZERO);
    let mut known: FileDays =
        paid.map(|batch| (batch.paid_on, DailyFile::Statement(BankAccount::Settlement))).collect();
    let period = limits(*from, *to);
    for account in BankAccount::ALL {
        let mut entries = Vec::new();
        house_entries(engine, account.house(), period, &mut entries)?;
        known.extend(entries.into_iter().map(|entry| (entry.day, DailyFile::Statement(account))));
    }
    known.retain(|day| asked.contains(day));
    Ok(known)
}

/// The files that should have what an event of a day says.
fn files_with(event: &Event, day: NaiveDate) -> impl Iterator<Item = DailyFile> {
    let is_payment = matches!(event, Event::PixPaid { .. } | Event::LatePixReceived { .. });
    let on_settlement = paid_out(event, PayoutBank::Settlement, day).is_some();
    let on_pix = paid_out(event, PayoutBank::Pix, day).or_else(|| on_pix(event, day)).is_some();
    let files = [
        (DailyFile::PixList, is_payment),
        (DailyFile::Statement(BankAccount::Settlement), on_settlement),
        (DailyFile::Statement(BankAccount::Pix), on_pix),
    ];
    files.into_iter().filter(|(_, has)| *has).map(|(file, _)| file)
}

/// A transfer that left an account, or came back to it.
fn paid_out(event: &Event, account: PayoutBank, day: NaiveDate) -> Option<Movement> {
    let (from, object, id, others, amount) = match event {
        Event::WithdrawalPaid { id, amount, transfer_id, bank, .. } => {
            (bank.unwrap_or(PayoutBank::Settlement), "withdrawal", id, vec![transfer_id.clone()], -*amount)
        }
        Event::WithdrawalReturned { id, amount, bank, entry, .. } => {
            let others = entry.iter().map(|entry| entry.reference.clone()).collect();
            (bank.unwrap_or(PayoutBank::Settlement), "withdrawal_return", id, others, *amount)
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
    for block in engine.blocks(&from) {
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

/// The first Record of each partition that was booked at an instant or later.
fn first_booked_at(engine: &Engine, at_ms: i64) -> Result<Cut, LoadError> {
    Ok(engine.last_booked_before(Timestamp(at_ms))?.next())
}
