//! Booked movements: the books' side of a reconciliation. Batches of the acquirer, PIX payments and
//! movements of the bank accounts, as the journal has them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use derived::records::LoadError;
use ledger::house::HouseAccount;
use ledger::{Centavos, EndedBatch, Event, HouseEntryTerms, ObjectId, PaymentMethod, PayoutBank, Record, Timestamp};
use store::Block;
use store::cut::{Cut, Position, positions};
use wire::timestamp::{begin_of, day_of};

use super::acquirer::{self, BookedBatch, PaidBatch};
use super::pix::{BookedPayment, PixList};
use super::statement::Movement;

/// Days after a day in which what takes effect on it may be booked, to count in its balance.
const LATE_DAYS: i64 = 62;
/// What an institution did is looked for in the Records of this long after a period, milliseconds:
/// we may hear of it late. What falls due takes effect earlier, and moves no money at a bank.
const BOOKED_WITHIN_MS: i64 = 24 * 60 * 60 * 1000;

/// The Records that a reconciliation asks for. Iterators may wait for the disk, and for their turn
/// beside the commands of a running server.
pub trait BookedRecords {
    /// Why a Record cannot be read.
    type Error: From<LoadError>;

    /// The Records about a batch of the acquirer. There may be Records about others among them.
    fn of_batch(&self, reference: &str) -> Result<impl Iterator<Item = Result<Record, Self::Error>>, Self::Error>;

    /// The Records about a charge, in their order.
    fn of_charge(&self, charge: ObjectId) -> Result<impl Iterator<Item = Result<Record, Self::Error>>, Self::Error>;

    /// The Records with entries of the house ledger, newest first.
    fn of_house(&self) -> impl Iterator<Item = Result<Record, Self::Error>>;

    /// The batches of the acquirer that are booked whole, newest first, each with the Record that
    /// ended it.
    fn ended_batches(&self) -> impl Iterator<Item = Result<(Record, EndedBatch), Self::Error>>;

    /// The blocks that were booked at an instant or later, in the order of their booking.
    fn blocks_from(&self, at: Timestamp) -> Result<impl Iterator<Item = Result<Block, Self::Error>>, Self::Error>;
}

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
pub fn batch<B: BookedRecords>(books: &B, reference: &str) -> Result<BookedBatch, B::Error> {
    let mut booked = BookedBatch::default();
    for record in books.of_batch(reference)? {
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
pub fn payments<B: BookedRecords>(books: &B, list: &PixList) -> Result<BTreeMap<String, BookedPayment>, B::Error> {
    let mut charges: BTreeSet<ObjectId> = BTreeSet::new();
    each_record(books, list.from_ms, list.to_ms, |record| {
        charges.extend(record.events.iter().filter_map(|event| match event {
            Event::PixPaid { charge, .. } | Event::LatePixReceived { charge, .. } => Some(*charge),
            _ => None,
        }));
    })?;
    let named = list.payments.iter().filter_map(|payment| payment.txid.as_deref().and_then(ObjectId::parse));
    charges.extend(named);
    let mut booked = BTreeMap::new();
    for charge in charges {
        booked.extend(payments_of(books, charge)?);
    }
    Ok(booked)
}

/// The payments that name a charge, with what was sent back of each, by end-to-end id. A repayment
/// under no payment's own id is a refund of the payment that paid the charge.
fn payments_of<B: BookedRecords>(books: &B, charge: ObjectId) -> Result<Vec<(String, BookedPayment)>, B::Error> {
    let mut payments: Vec<(Option<ObjectId>, String, BookedPayment)> = Vec::new();
    for record in books.of_charge(charge)? {
        let record = record?;
        let at_ms = record.takes_effect_at().0;
        let paid = |amount| BookedPayment { charge, amount, at_ms, sent_back: BTreeMap::new() };
        for event in &record.events {
            match event {
                Event::PixPaid { charge: of, terms, end_to_end_id, .. } if *of == charge => {
                    payments.push((None, end_to_end_id.clone(), paid(terms.amount)));
                }
                Event::LatePixReceived { charge: of, amount, end_to_end_id, id, .. } if *of == charge => {
                    payments.push((Some(id.unwrap_or(charge)), end_to_end_id.clone(), paid(*amount)));
                }
                event => {
                    let Some((id, _, amount)) = sent_back_by(event).filter(|(_, of, _)| *of == charge) else {
                        continue;
                    };
                    let own = payments.iter().position(|(own, ..)| *own == Some(id));
                    let place = own.or_else(|| payments.iter().position(|(own, ..)| own.is_none()));
                    if let Some((_, _, payment)) = place.and_then(|place| payments.get_mut(place)) {
                        payment.sent_back.insert(id, (amount, at_ms));
                    }
                }
            }
        }
    }
    Ok(payments.into_iter().map(|(_, id, payment)| (id, payment)).collect())
}

/// The id under which PIX money was sent back, the charge, and how much.
fn sent_back_by(event: &Event) -> Option<(ObjectId, ObjectId, Centavos)> {
    match event {
        Event::PayerRepaid { id, charge, method: PaymentMethod::Pix, amount, .. }
        | Event::DisputeAccepted { id, charge, method: PaymentMethod::Pix, amount } => Some((*id, *charge, *amount)),
        _ => None,
    }
}

/// The end of the time within which what takes effect on a day counts in its balance: of an old
/// statement, the journal is not read to its end.
pub fn late_until(day: NaiveDate) -> Timestamp {
    Timestamp(begin_of(day) + (1 + LATE_DAYS) * DAY_MS)
}

/// What Records through a cut that take effect after a day moved on a bank account, centavos: below
/// zero when the account paid more. Taken from its balance at the cut, it leaves that of the day.
pub fn moved_after<B: BookedRecords>(
    books: &B,
    account: BankAccount,
    day: NaiveDate,
    through: &Cut,
) -> Result<i128, B::Error> {
    let begin = Timestamp(begin_of(day) + DAY_MS);
    let mut moved = 0;
    // None takes effect after it is booked.
    for block in books.blocks_from(begin)? {
        let block = block?;
        if block.booked_at_ms >= late_until(day).0 {
            break;
        }
        for decoded in records_of(&block) {
            let (at, record) = decoded?;
            if through.contains(at) && record.takes_effect_at() >= begin {
                let postings = record.entries.iter().flat_map(|entry| entry.postings());
                let own = postings.filter(|posting| posting.account == account.house().account());
                moved += own.map(|posting| posting.sums().net()).sum::<i128>();
            }
        }
    }
    Ok(moved)
}

/// The movements that were booked on a bank account from the first to the last of some days.
pub fn movements<B: BookedRecords>(
    books: &B,
    account: BankAccount,
    (from, to): (NaiveDate, NaiveDate),
) -> Result<Vec<Movement>, B::Error> {
    let mut movements = Vec::new();
    if account == BankAccount::Settlement {
        // One without money has no line at the bank.
        let paid = batches(books, from, to)?.into_iter().filter(|batch| batch.net != Centavos::ZERO);
        movements.extend(paid.map(|batch| movement("batch", batch.reference, Vec::new(), batch.paid_on, batch.net)));
    }
    let (from_ms, to_ms) = limits(from, to);
    // No customer's money moves on the platform's own account: entries of the house alone do.
    if account != BankAccount::Own {
        each_record(books, from_ms, to_ms, |record| {
            let day = day_of(record.takes_effect_at().0);
            movements.extend(record.events.iter().filter_map(|event| match account {
                BankAccount::Settlement => paid_out(event, PayoutBank::Settlement, day),
                BankAccount::Pix => paid_out(event, PayoutBank::Pix, day).or_else(|| on_pix(event, day)),
                BankAccount::Own => None,
            }));
        })?;
    }
    house_entries(books, account.house(), (from_ms, to_ms), &mut movements)?;
    Ok(movements)
}

/// The first and the last millisecond of some days.
fn limits(from: NaiveDate, to: NaiveDate) -> (i64, i64) {
    (begin_of(from), begin_of(to) + DAY_MS - 1)
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The entries of the house ledger that take effect in a period. They may be booked long after it.
fn house_entries<B: BookedRecords>(
    books: &B,
    account: HouseAccount,
    (from_ms, to_ms): (i64, i64),
    movements: &mut Vec<Movement>,
) -> Result<(), B::Error> {
    for record in books.of_house() {
        let record = record?;
        // None takes effect after it is booked, and the newest come first.
        if record.effective_at.0 < from_ms {
            break;
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
    Ok(())
}

/// The batches that are booked whole and that the acquirer paid in a period, newest first.
pub fn batches<B: BookedRecords>(books: &B, from: NaiveDate, to: NaiveDate) -> Result<Vec<PaidBatch>, B::Error> {
    let mut paid = Vec::new();
    for ended in books.ended_batches() {
        let (record, EndedBatch { batch, net, .. }) = ended?;
        // None is booked before it is paid, and the newest come first.
        if day_of(record.effective_at.0) < from {
            break;
        }
        let paid_on = acquirer::day(batch.paid_on);
        if (from..=to).contains(&paid_on) {
            paid.push(PaidBatch { paid_on, reference: batch.reference, net });
        }
    }
    Ok(paid)
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
pub fn days_with_movements<B: BookedRecords>(books: &B, mut wanted: FileDays) -> Result<FileDays, B::Error> {
    let mut found = known_days(books, &wanted)?;
    wanted.retain(|day| !found.contains(day) && day.1 != DailyFile::Statement(BankAccount::Own));
    let mut next = wanted.first().map(|(day, _)| *day);
    while let Some(begin) = next.take() {
        for block in books.blocks_from(Timestamp(begin_of(begin)))? {
            let block = block?;
            let booked_on = day_of(block.booked_at_ms);
            // What happened on a day is booked through the end of the next one.
            let still = booked_on.pred_opt().unwrap_or(booked_on);
            let awaited = wanted.iter().map(|(day, _)| *day).find(|day| *day >= still);
            match awaited {
                None => return Ok(found),
                Some(day) if day > booked_on => {
                    next = Some(day);
                    break;
                }
                Some(_) => {}
            }
            for decoded in records_of(&block) {
                let (_, record) = decoded?;
                let day = day_of(record.takes_effect_at().0);
                let files = record.events.iter().flat_map(|event| files_with(event, day));
                let met: Vec<_> = files.map(|file| (day, file)).filter(|day| wanted.remove(day)).collect();
                found.extend(met);
            }
        }
    }
    Ok(found)
}

/// Days whose movements the lists of batches and of the house's entries have.
fn known_days<B: BookedRecords>(books: &B, wanted: &FileDays) -> Result<FileDays, B::Error> {
    let (Some((from, _)), Some((to, _))) = (wanted.first(), wanted.last()) else { return Ok(FileDays::new()) };
    let paid = batches(books, *from, *to)?.into_iter().filter(|batch| batch.net != Centavos::ZERO);
    let mut known: FileDays =
        paid.map(|batch| (batch.paid_on, DailyFile::Statement(BankAccount::Settlement))).collect();
    let period = limits(*from, *to);
    for account in BankAccount::ALL {
        let mut entries = Vec::new();
        house_entries(books, account.house(), period, &mut entries)?;
        known.extend(entries.into_iter().map(|entry| (entry.day, DailyFile::Statement(account))));
    }
    known.retain(|day| wanted.contains(day));
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
        Event::CashoutReturned { id, amount, fee, bank, .. } => {
            (*bank, "cashout_return", id, Vec::new(), *amount - *fee)
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
        Event::LatePixReceived { charge, amount, end_to_end_id, .. } => {
            of_charge("pix", charge, charge, vec![end_to_end_id.clone()], *amount)
        }
        Event::DisputeReversed { id, charge, method: PaymentMethod::Pix, amount, .. } => {
            of_charge("return", charge, id, Vec::new(), *amount)
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

/// The Records of a block, each with its position.
fn records_of(block: &Block) -> impl Iterator<Item = Result<(Position, Record), LoadError>> {
    positions(block).map(|(at, bytes)| match Record::decode(bytes) {
        Ok(record) => Ok((at, record)),
        Err(error) => Err(LoadError::Decode { sequence: at.sequence.0, error }),
    })
}

/// Looks at the Records that took effect in a period, both limits included, in milliseconds since
/// 1970 (UTC).
fn each_record<B: BookedRecords>(
    books: &B,
    from_ms: i64,
    to_ms: i64,
    mut look: impl FnMut(&Record),
) -> Result<(), B::Error> {
    for block in books.blocks_from(Timestamp(from_ms))? {
        let block = block?;
        if block.booked_at_ms > to_ms.saturating_add(BOOKED_WITHIN_MS) {
            break;
        }
        for decoded in records_of(&block) {
            let (_, record) = decoded?;
            if (from_ms..=to_ms).contains(&record.takes_effect_at().0) {
                look(&record);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ledger::id::{GroupNumber, LedgerId};
    use ledger::record::Decision;
    use store::{BlockHash, Partition, Sequence};

    use super::*;

    /// Records in memory, in the order of their booking, each a block of its own.
    #[derive(Default)]
    struct RecordsInMemory {
        records: Vec<Record>,
        blocks_read: Cell<usize>,
    }

    impl RecordsInMemory {
        fn book(&mut self, day: NaiveDate, event: Event) {
            let at = Timestamp(begin_of(day) + 1);
            let ordinal = self.records.len() as u64 + 1;
            let owner = match event {
                Event::HouseEntryApproved { .. } => LedgerId::System,
                _ => LedgerId::Merchant(GroupNumber(1)),
            };
            self.records.push(Decision::of(event).into_record(owner, ordinal, at));
        }

        fn block(&self, place: usize) -> Block {
            let mut bytes = Vec::new();
            self.records[place].encode(&mut bytes);
            Block {
                partition: Partition(0),
                first: Sequence(place as u64 + 1),
                booked_at_ms: self.records[place].effective_at.0,
                previous: BlockHash::ZERO,
                records: vec![bytes],
            }
        }
    }

    impl BookedRecords for RecordsInMemory {
        type Error = LoadError;

        fn of_batch(&self, _: &str) -> Result<impl Iterator<Item = Result<Record, LoadError>>, LoadError> {
            Ok(self.records.iter().cloned().map(Ok))
        }

        fn of_charge(&self, _: ObjectId) -> Result<impl Iterator<Item = Result<Record, LoadError>>, LoadError> {
            Ok(self.records.iter().cloned().map(Ok))
        }

        fn of_house(&self) -> impl Iterator<Item = Result<Record, LoadError>> {
            self.records.iter().rev().cloned().map(Ok)
        }

        fn ended_batches(&self) -> impl Iterator<Item = Result<(Record, EndedBatch), LoadError>> {
            std::iter::empty()
        }

        fn blocks_from(&self, at: Timestamp) -> Result<impl Iterator<Item = Result<Block, LoadError>>, LoadError> {
            let first = self.records.partition_point(|record| record.effective_at < at);
            let read = |place| {
                self.blocks_read.set(self.blocks_read.get() + 1);
                Ok(self.block(place))
            };
            Ok((first..self.records.len()).map(read))
        }
    }

    fn day(month: u32, day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, month, day).expect("a day")
    }

    fn late_pix(charge: u128) -> Event {
        let (charge, amount) = (ObjectId(charge), Centavos(500));
        Event::LatePixReceived { charge, amount, end_to_end_id: format!("E{}", charge.txid()), id: None, key: None }
    }

    fn house_entry(debit: HouseAccount) -> Event {
        let (credit, amount, reference) = (HouseAccount::Suspense, Centavos(7), "R".to_owned());
        let terms = HouseEntryTerms { debit, credit, amount, reference, effective_day: None };
        Event::HouseEntryApproved { id: ObjectId(9), terms }
    }

    #[test]
    fn the_days_of_files_are_found_and_the_days_between_are_passed_over() {
        let mut books = RecordsInMemory::default();
        books.book(day(7, 1), late_pix(1));
        (2..28).for_each(|between| books.book(day(8, between), late_pix(between.into())));
        books.book(day(9, 1), house_entry(HouseAccount::BankOwn));
        books.book(day(9, 3), late_pix(100));
        let (pix, list) = (DailyFile::Statement(BankAccount::Pix), DailyFile::PixList);
        let own = DailyFile::Statement(BankAccount::Own);
        let wanted = [(day(7, 1), pix), (day(7, 1), list), (day(7, 2), pix), (day(9, 1), own), (day(9, 3), list)];
        let found = days_with_movements(&books, wanted.into()).expect("memory");
        let expected = [(day(7, 1), pix), (day(7, 1), list), (day(9, 1), own), (day(9, 3), list)];
        assert_eq!(found, expected.into());
        assert!(books.blocks_read.get() < 6, "{} blocks were read", books.blocks_read.get());
    }

    #[test]
    fn each_payment_of_a_charge_has_what_was_sent_back_of_it() {
        let mut books = RecordsInMemory::default();
        let charge = ObjectId(1);
        books.book(day(7, 1), late_pix(1));
        let (id, end_to_end_id) = (Some(ObjectId(3)), "E2".to_owned());
        let (method, amount) = (PaymentMethod::Pix, Centavos(500));
        books.book(day(7, 1), Event::LatePixReceived { charge, amount, end_to_end_id, id, key: None });
        for (day_of, id) in [(2, charge), (3, ObjectId(3))] {
            books.book(day(7, day_of), Event::PayerRepaid { id, charge, method, amount, is_unordered: true });
        }
        let payments = payments_of(&books, charge).expect("memory");
        let sent_back: Vec<_> = payments.iter().map(|(_, payment)| payment.sent_back.clone()).collect();
        let once = |id, day_of| BTreeMap::from([(id, (amount, begin_of(day(7, day_of)) + 1))]);
        assert_eq!(sent_back, [once(charge, 2), once(ObjectId(3), 3)]);
    }
}
