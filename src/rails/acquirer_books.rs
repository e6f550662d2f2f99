//! Records of the sandbox's acquirer, in files of its own: captures, refunds and disputes taken
//! back, and batches, one file a day each. Each batch also has the CSV file that the acquirer sends
//! for reconciliation. A line is written before the call is answered, without a sync: it outlives
//! the process, and after a power cut the last ones may be missing. A batch is written once, with a
//! sync, and never changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, OpenOptions, create_dir_all, read_dir, rename};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actors::rails::{SettlementCursor, SettlementLine, SettlementPage};
use chrono::{Days, NaiveDate};
use ledger::event::{Batch, SettledObject};
use ledger::id::ObjectId;
use ledger::money::Centavos;
use ledger::time::Timestamp;

use super::bank_books::{BATCH, BankBooks};
use super::lies::{Institution, Lie, Lies};

/// How many lines a page has at most.
const LINES_PER_PAGE: u64 = 1_024;
/// Bytes of a batch's line.
const LINE_BYTES: u64 = 111;
/// Days from a debit's capture to its payment.
const DEBIT_DAYS: u32 = 1;
/// Days from one installment of a credit to the next.
const CREDIT_DAYS: u32 = 30;
/// Most installments of a charge.
const INSTALLMENTS_MAX: u8 = 12;
/// When a batch is paid: 6:00 in Sao Paulo, 9:00 in UTC, in milliseconds of its day.
const PAID_AT_MS: i64 = 9 * 60 * 60 * 1000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How much later midnight comes in Sao Paulo, milliseconds.
const BEHIND_UTC_MS: i64 = 3 * 60 * 60 * 1000;

/// A captured charge.
#[derive(Clone, Copy)]
pub(super) struct Capture {
    pub(super) charge: ObjectId,
    /// Total, centavos.
    pub(super) amount: Centavos,
    /// The acquirer's fee, centavos.
    pub(super) mdr: Centavos,
    /// 1 to 12.
    pub(super) installments: u8,
    pub(super) is_debit: bool,
}

/// Money that is taken back, for a refund or an accepted dispute.
#[derive(Clone, Copy)]
pub(super) struct Returned {
    /// Id of the refund or dispute.
    pub(super) id: ObjectId,
    pub(super) charge: ObjectId,
    /// How much, centavos, above zero.
    pub(super) amount: Centavos,
    pub(super) is_dispute: bool,
}

/// The records, read at the first call.
pub(super) struct AcquirerBooks {
    folder: PathBuf,
    bank: Arc<BankBooks>,
    lies: Arc<Lies>,
    open: Mutex<Option<Open>>,
}

struct Open {
    folder: PathBuf,
    /// The account that is paid.
    bank: Arc<BankBooks>,
    lies: Arc<Lies>,
    /// The batches by day, in days since 1970-01-01, each with its number of lines; days without
    /// lines too.
    batches: BTreeMap<u32, u64>,
    /// The file of captures that was written last, by its day.
    captures: Option<(u32, File)>,
    returned: BTreeSet<ObjectId>,
}

/// When the next batch after `now` is paid.
pub(super) fn first_payment_after(now: Timestamp) -> Timestamp {
    let paid_at = |day: u32| Timestamp(i64::from(day) * DAY_MS + PAID_AT_MS);
    let today = business_day(now.0);
    let next = (today..).find(|day| is_business_day(*day) && paid_at(*day) > now);
    next.map_or(Timestamp(i64::MAX), paid_at)
}

/// The day of an instant in Sao Paulo, in days since 1970-01-01.
fn business_day(at_ms: i64) -> u32 {
    u32::try_from((at_ms - BEHIND_UTC_MS).div_euclid(DAY_MS)).unwrap_or_default()
}

/// A day counted from 1970-01-01.
fn day_of_days(day: u32) -> NaiveDate {
    NaiveDate::default().checked_add_days(Days::new(u64::from(day))).unwrap_or(NaiveDate::MAX)
}

/// A day counted from 1970-01-01, such as `2026-07-01`.
fn date(day: u32) -> String {
    day_of_days(day).format("%Y-%m-%d").to_string()
}

/// The acquirer's name for the batch of a day.
fn reference(day: u32) -> String {
    format!("SANDBOX-{}", date(day))
}

/// The days since 1970-01-01 of a date such as `2026-07-01`.
fn day_of(date: &str) -> Option<u32> {
    let date = NaiveDate::parse_from_str(date, "%Y-%m-%d").ok()?;
    u32::try_from((date - NaiveDate::default()).num_days()).ok()
}

/// True from Monday to Friday; the sandbox knows no holidays. 1970-01-01 was a Thursday.
fn is_business_day(day: u32) -> bool {
    (day + 3) % 7 < 5
}

/// The days whose payments fall on the batch of this business day: itself, and the weekend before
/// it.
fn days_paid_on(day: u32) -> impl Iterator<Item = u32> {
    let weekend = (1..=2).map(move |back| day.saturating_sub(back)).take_while(|day| !is_business_day(*day));
    std::iter::once(day).chain(weekend)
}

impl AcquirerBooks {
    /// The records in `folder`, and the bank's account that is paid.
    pub(super) fn new(folder: &Path, bank: Arc<BankBooks>, lies: Arc<Lies>) -> Self {
        Self { folder: folder.join("acquirer"), bank, lies, open: Mutex::default() }
    }

    /// Records a capture. One that is recorded twice on one day is paid once.
    pub(super) fn capture(&self, capture: Capture) -> io::Result<()> {
        let mut open = self.open()?;
        let open = open.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let Capture { charge, amount, mdr, installments, is_debit } = capture;
        let kind = if is_debit { 'd' } else { 'c' };
        let line = format!("{} {amount} {mdr} {installments} {kind}\n", charge.uuid());
        let day = open.unpaid_day(charge.created_at());
        if open.captures.as_ref().is_none_or(|(known, _)| *known != day) {
            open.captures = Some((day, append_to(&open.path("captures", day))?));
        }
        let (_, file) = open.captures.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.write_all(line.as_bytes())
    }

    /// The capture of a charge, if it is on record.
    pub(super) fn captured(&self, charge: ObjectId) -> io::Result<Option<Capture>> {
        let open = self.open()?;
        let open = open.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(open.captures_of([charge].into())?.remove(&charge))
    }

    /// Records that money is taken back, once.
    pub(super) fn take_back(&self, returned: Returned, decided_at: Timestamp) -> io::Result<()> {
        let mut open = self.open()?;
        let open = open.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let Returned { id, charge, amount, is_dispute } = returned;
        if open.returned.contains(&id) {
            return Ok(());
        }
        let kind = if is_dispute { 'd' } else { 'r' };
        let line = format!("{} {} {amount} {kind}\n", id.uuid(), charge.uuid());
        append_to(&open.path("returns", open.unpaid_day(decided_at)))?.write_all(line.as_bytes())?;
        open.returned.insert(id);
        Ok(())
    }

    /// The lines after a position of the batches that are paid by `now`. A batch is made when it is
    /// asked for first.
    pub(super) fn page(&self, after: SettlementCursor, now: Timestamp) -> io::Result<Option<SettlementPage>> {
        let mut open = self.open()?;
        let open = open.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let last = business_day(now.0 - PAID_AT_MS + BEHIND_UTC_MS);
        if let Some(first) = open.first_unpaid()? {
            for day in (first..=last).filter(|day| is_business_day(*day)) {
                let lines = open.write_batch(day)?;
                open.batches.insert(day, lines);
            }
        }
        let mut later = open.batches.iter().filter(|(day, lines)| u64::from(**day) > after.batch && **lines > 0);
        let Some((day, lines)) = later.next() else { return Ok(None) };
        let batch = Batch { number: u64::from(*day), reference: reference(*day), paid_on: *day };
        let read = open.read_batch(*day, after.lines)?;
        let is_last = after.lines + read.len() as u64 >= *lines;
        Ok(Some(SettlementPage { batch, lines: read, is_last }))
    }

    fn open(&self) -> io::Result<MutexGuard<'_, Option<Open>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_none() {
            *open = Some(Open::read(&self.folder, Arc::clone(&self.bank), Arc::clone(&self.lies))?);
        }
        Ok(open)
    }
}

impl Open {
    fn read(folder: &Path, bank: Arc<BankBooks>, lies: Arc<Lies>) -> io::Result<Self> {
        create_dir_all(folder)?;
        let mut open = Self {
            folder: folder.to_owned(),
            bank,
            lies,
            batches: BTreeMap::new(),
            captures: None,
            returned: BTreeSet::new(),
        };
        for day in open.days("batch")? {
            let bytes = open.path("batch", day).metadata()?.len();
            open.batches.insert(day, bytes / LINE_BYTES);
        }
        for day in open.days("returns")? {
            open.returned.extend(open.returns(day)?.into_iter().map(|returned| returned.id));
        }
        Ok(open)
    }

    fn path(&self, kind: &str, day: u32) -> PathBuf {
        self.folder.join(format!("{kind}-{}", date(day)))
    }

    /// The days of the files of a kind.
    fn days(&self, kind: &str) -> io::Result<BTreeSet<u32>> {
        let mut days = BTreeSet::new();
        for entry in read_dir(&self.folder)? {
            let name = entry?.file_name();
            let name = name.to_str().and_then(|name| name.strip_prefix(kind)?.strip_prefix('-'));
            days.extend(name.and_then(day_of));
        }
        Ok(days)
    }

    /// The day under which something is recorded: the day on which it happened or, when a batch of
    /// a later day was made meanwhile, that day. So its first payment is still to come.
    fn unpaid_day(&self, at: Timestamp) -> u32 {
        let last = self.batches.last_key_value().map_or(0, |(day, _)| *day);
        business_day(at.0).max(last)
    }

    /// The day after the last batch or, before the first one, the day of the first record.
    fn first_unpaid(&self) -> io::Result<Option<u32>> {
        if let Some((last, _)) = self.batches.last_key_value() {
            return Ok(Some(last + 1));
        }
        let first = self.days("captures")?.first().copied();
        Ok(first.into_iter().chain(self.days("returns")?.first().copied()).min())
    }

    /// Makes the batch of a business day, and the file of it that the acquirer sends, and pays it;
    /// gives the number of its lines.
    fn write_batch(&self, day: u32) -> io::Result<u64> {
        let lines = self.lines_of(day)?;
        if !lines.is_empty() {
            let told = self.told(day, &lines);
            self.write(&format!("{}.csv", reference(day)), |out| write_file(out, day, &told))?;
            let net = lines.iter().map(|line| line.gross - line.fee).sum();
            self.bank.book(day_of_days(day), BATCH, &reference(day), net)?;
        }
        let name = format!("batch-{}", date(day));
        self.write(&name, |out| lines.iter().try_for_each(|line| write_line(out, line)))?;
        Ok(lines.len() as u64)
    }

    /// The lines as the file has them, each with its day: false ones where the acquirer is to lie.
    fn told(&self, day: u32, lines: &[SettlementLine]) -> Vec<(u32, SettlementLine)> {
        let mut told: Vec<_> = lines.iter().map(|line| (day, *line)).collect();
        if let Some(lie) = self.lies.take(Institution::Acquirer) {
            lie.tell(&mut told, |lie, (day, line)| match lie {
                Lie::Date => *day -= 1,
                Lie::Fee => line.fee += Centavos(1),
                Lie::Added => line.object = SettledObject::Installment(99),
                _ => line.gross += Centavos(1),
            });
        }
        told
    }

    /// Writes a file, which is there whole or not at all.
    fn write(&self, name: &str, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let new = self.folder.join("new");
        let mut out = BufWriter::new(File::create(&new)?);
        write(&mut out)?;
        out.into_inner()?.sync_all()?;
        rename(&new, self.folder.join(name))?;
        File::open(&self.folder)?.sync_all()
    }

    /// The lines that are paid on a business day.
    fn lines_of(&self, day: u32) -> io::Result<Vec<SettlementLine>> {
        let mut lines = Vec::new();
        let paid = |after: u32| days_paid_on(day).filter_map(move |due| due.checked_sub(after));
        for captured in paid(DEBIT_DAYS) {
            let debits = self.captures(captured)?.into_iter().filter(|capture| capture.is_debit);
            lines.extend(debits.map(|capture| installment(&capture, 1)));
        }
        for number in 1..=INSTALLMENTS_MAX {
            for captured in paid(CREDIT_DAYS * u32::from(number)) {
                let credits = self.captures(captured)?.into_iter();
                let credits = credits.filter(|capture| !capture.is_debit && number <= capture.installments);
                lines.extend(credits.map(|capture| installment(&capture, number)));
            }
        }
        let mut returns = Vec::new();
        for taken in paid(DEBIT_DAYS) {
            returns.extend(self.returns(taken)?);
        }
        let charges = self.captures_of(returns.iter().map(|returned| returned.charge).collect())?;
        lines.extend(returns.iter().map(|returned| taken_back(returned, charges.get(&returned.charge))));
        Ok(lines)
    }

    /// The captures of a day, each once.
    fn captures(&self, day: u32) -> io::Result<Vec<Capture>> {
        let mut seen = BTreeSet::new();
        let captures = read_lines(&self.path("captures", day), capture_of)?;
        Ok(captures.into_iter().filter(|capture| seen.insert(capture.charge)).collect())
    }

    /// What was taken back on a day.
    fn returns(&self, day: u32) -> io::Result<Vec<Returned>> {
        read_lines(&self.path("returns", day), returned_of)
    }

    /// The captures of some charges. A capture is on record under the day of its charge, or a later
    /// one.
    fn captures_of(&self, charges: BTreeSet<ObjectId>) -> io::Result<HashMap<ObjectId, Capture>> {
        let mut found = HashMap::new();
        let Some(first) = charges.iter().map(|charge| business_day(charge.created_at().0)).min() else {
            return Ok(found);
        };
        for day in self.days("captures")?.range(first..) {
            if found.len() == charges.len() {
                break;
            }
            let captures = self.captures(*day)?.into_iter();
            let wanted = captures.filter(|capture| charges.contains(&capture.charge));
            found.extend(wanted.map(|capture| (capture.charge, capture)));
        }
        Ok(found)
    }

    fn read_batch(&self, day: u32, from: u64) -> io::Result<Vec<SettlementLine>> {
        let mut file = File::open(self.path("batch", day))?;
        file.seek(SeekFrom::Start(from * LINE_BYTES))?;
        let mut bytes = String::new();
        file.take(LINES_PER_PAGE * LINE_BYTES).read_to_string(&mut bytes)?;
        let lines = bytes.lines().map(line_of).collect::<Option<Vec<_>>>();
        lines.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a batch with a damaged line"))
    }
}

/// An installment of a capture, with its parts of amount and fee.
fn installment(capture: &Capture, number: u8) -> SettlementLine {
    let part = |whole: Centavos| {
        let through = |paid: u8| whole.share(Centavos(paid.into()), Centavos(capture.installments.into()));
        through(number) - through(number - 1)
    };
    let object = SettledObject::Installment(number);
    SettlementLine { charge: capture.charge, object, gross: part(capture.amount), fee: part(capture.mdr) }
}

/// A refund gives its part of the fee back; a dispute keeps it.
fn taken_back(returned: &Returned, capture: Option<&Capture>) -> SettlementLine {
    let Returned { id, charge, amount, is_dispute } = *returned;
    let (object, fee) = match capture {
        _ if is_dispute => (SettledObject::Dispute(id), Centavos::ZERO),
        Some(capture) => (SettledObject::Refund(id), -capture.mdr.share(amount, capture.amount)),
        None => (SettledObject::Refund(id), Centavos::ZERO),
    };
    SettlementLine { charge, object, gross: -amount, fee }
}

/// Opens a file to append lines. A last line that a power cut left without an end is ended, so that
/// it does not spoil the next one.
fn append_to(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    if last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

/// The lines of a file that can be read; none when there is no file.
fn read_lines<T>(path: &Path, read: impl Fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        found.extend(str::from_utf8(&line?).ok().and_then(&read));
    }
    Ok(found)
}

fn capture_of(line: &str) -> Option<Capture> {
    let [charge, amount, mdr, installments, kind] = parts(line)?;
    Some(Capture {
        charge: ObjectId::parse(charge)?,
        amount: centavos(amount)?,
        mdr: centavos(mdr)?,
        installments: installments.parse().ok().filter(|number| (1..=INSTALLMENTS_MAX).contains(number))?,
        is_debit: flag(kind, "d", "c")?,
    })
}

fn returned_of(line: &str) -> Option<Returned> {
    let [id, charge, amount, kind] = parts(line)?;
    Some(Returned {
        id: ObjectId::parse(id)?,
        charge: ObjectId::parse(charge)?,
        amount: centavos(amount)?,
        is_dispute: flag(kind, "d", "r")?,
    })
}

/// The file that the acquirer sends of a batch: CSV, amounts in centavos.
fn write_file(out: &mut impl io::Write, day: u32, lines: &[(u32, SettlementLine)]) -> io::Result<()> {
    writeln!(out, "batch,paid_on,charge,kind,id,gross,fee,net")?;
    let batch = reference(day);
    for (day, SettlementLine { charge, object, gross, fee }) in lines {
        let paid_on = date(*day);
        let (kind, id) = match object {
            SettledObject::Installment(number) => ("installment", number.to_string()),
            SettledObject::Refund(id) => ("refund", id.uuid().to_string()),
            SettledObject::Dispute(id) => ("dispute", id.uuid().to_string()),
        };
        let (charge, net) = (charge.txid(), *gross - *fee);
        writeln!(out, "{batch},{paid_on},{charge},{kind},{id},{},{},{}", gross.0, fee.0, net.0)?;
    }
    Ok(())
}

fn write_line(out: &mut impl io::Write, line: &SettlementLine) -> io::Result<()> {
    let SettlementLine { charge, object, gross, fee } = line;
    let (kind, id, number) = match object {
        SettledObject::Installment(number) => ('i', *charge, *number),
        SettledObject::Refund(id) => ('r', *id, 0),
        SettledObject::Dispute(id) => ('d', *id, 0),
    };
    writeln!(out, "{kind} {} {} {number:02} {:+015} {:+015}", charge.uuid(), id.uuid(), gross.0, fee.0)
}

fn line_of(line: &str) -> Option<SettlementLine> {
    let [kind, charge, id, number, gross, fee] = parts(line)?;
    let id = ObjectId::parse(id)?;
    let object = match kind {
        "i" => SettledObject::Installment(number.parse().ok()?),
        "r" => SettledObject::Refund(id),
        "d" => SettledObject::Dispute(id),
        _ => return None,
    };
    Some(SettlementLine { charge: ObjectId::parse(charge)?, object, gross: centavos(gross)?, fee: centavos(fee)? })
}

/// The parts of a line between spaces, if it has as many.
fn parts<const N: usize>(line: &str) -> Option<[&str; N]> {
    line.split(' ').collect::<Vec<_>>().try_into().ok()
}

fn centavos(text: &str) -> Option<Centavos> {
    text.parse().ok().map(Centavos)
}

fn flag(text: &str, yes: &str, no: &str) -> Option<bool> {
    (text == yes || text == no).then_some(text == yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(folder: &Path) -> AcquirerBooks {
        let lies = Arc::new(Lies::default());
        let bank = Arc::new(BankBooks::new(folder.join("bank"), "1", Arc::clone(&lies)));
        AcquirerBooks::new(folder, bank, lies)
    }

    /// 2026-11-23, in days since 1970-01-01.
    const MONDAY: u32 = 20_780;

    fn at(day: u32, hour: i64) -> Timestamp {
        Timestamp(i64::from(day) * DAY_MS + (hour + 3) * 60 * 60 * 1000)
    }

    /// An id made at noon of a day.
    fn id(day: u32, number: u128) -> ObjectId {
        let id = ObjectId((at(day, 12).0 as u128) << 80 | 8 << 76 | 2 << 62 | number);
        assert_eq!(id.created_at(), at(day, 12));
        id
    }

    fn captured(charge: ObjectId, amount: i64, mdr: i64, installments: u8, is_debit: bool) -> Capture {
        Capture { charge, amount: Centavos(amount), mdr: Centavos(mdr), installments, is_debit }
    }

    /// The lines of all batches through a moment, with the day of each.
    fn all(books: &AcquirerBooks, now: Timestamp) -> Vec<(u32, SettlementLine)> {
        let (mut after, mut found) = (SettlementCursor::default(), Vec::new());
        while let Some(SettlementPage { batch, lines, is_last }) = books.page(after, now).unwrap() {
            assert_eq!(batch.number, u64::from(batch.paid_on));
            after.lines += lines.len() as u64;
            if is_last {
                after = SettlementCursor { batch: batch.number, lines: 0 };
            }
            found.extend(lines.into_iter().map(|line| (batch.paid_on, line)));
        }
        found
    }

    fn shown((day, line): &(u32, SettlementLine)) -> (u32, u8, i64, i64) {
        let number = match line.object {
            SettledObject::Installment(number) => number,
            SettledObject::Refund(_) => 100,
            SettledObject::Dispute(_) => 200,
        };
        (day - MONDAY, number, line.gross.0, line.fee.0)
    }

    #[test]
    fn installments_are_paid_every_thirty_days_and_debits_on_the_next_business_day() {
        let folder = tempfile::tempdir().unwrap();
        let books = opened(folder.path());
        books.capture(captured(id(MONDAY, 1), 10_000, 299, 3, false)).unwrap();
        books.capture(captured(id(MONDAY, 1), 10_000, 299, 3, false)).unwrap();
        books.capture(captured(id(MONDAY, 2), 5_000, 150, 1, true)).unwrap();
        books.capture(captured(id(MONDAY + 4, 3), 7_000, 209, 1, true)).unwrap();
        assert_eq!(all(&books, at(MONDAY + 1, 5)), [], "batches are paid at six");
        let expected = [
            (1, 1, 5_000, 150),
            // Friday's debit, due on Saturday.
            (7, 1, 7_000, 209),
            (30, 1, 3_333, 100),
            // Friday, then Sunday.
            (60, 2, 3_334, 99),
            (91, 3, 3_333, 100),
        ];
        let lines = all(&books, at(MONDAY + 200, 12));
        assert_eq!(lines.iter().map(shown).collect::<Vec<_>>(), expected);
        let again = opened(folder.path());
        assert_eq!(all(&again, at(MONDAY + 200, 12)), lines, "a batch never changes");
    }

    #[test]
    fn refunds_give_their_part_of_the_fee_back_and_disputes_keep_it() {
        let folder = tempfile::tempdir().unwrap();
        let books = opened(folder.path());
        books.capture(captured(id(MONDAY, 1), 10_000, 299, 1, true)).unwrap();
        let returned = |number, amount, is_dispute| Returned {
            id: id(MONDAY, number),
            charge: id(MONDAY, 1),
            amount: Centavos(amount),
            is_dispute,
        };
        for _ in 0..2 {
            books.take_back(returned(2, 4_000, false), at(MONDAY + 1, 12)).unwrap();
        }
        books.take_back(returned(3, 1_000, true), at(MONDAY + 5, 12)).unwrap();
        let lines = all(&books, at(MONDAY + 10, 12));
        let expected = [(1, 1, 10_000, 299), (2, 100, -4_000, -120), (7, 200, -1_000, 0)];
        assert_eq!(lines.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_recorded_after_its_batch_is_paid_in_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let books = opened(folder.path());
        books.capture(captured(id(MONDAY, 1), 1_000, 30, 1, true)).unwrap();
        assert_eq!(all(&books, at(MONDAY + 2, 12)).len(), 1);
        books.capture(captured(id(MONDAY, 2), 2_000, 60, 1, true)).unwrap();
        let reopened = opened(folder.path());
        reopened.capture(captured(id(MONDAY + 1, 3), 3_000, 90, 1, true)).unwrap();
        let lines = all(&reopened, at(MONDAY + 9, 12));
        assert_eq!(
            lines.iter().map(shown).collect::<Vec<_>>(),
            [(1, 1, 1_000, 30), (3, 1, 2_000, 60), (3, 1, 3_000, 90)]
        );
        assert!(reopened.captured(id(MONDAY, 2)).unwrap().is_some());
        assert!(reopened.captured(id(MONDAY, 9)).unwrap().is_none());
    }

    #[test]
    fn a_page_ends_and_the_next_one_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let books = opened(folder.path());
        for number in 0..2 * u128::from(LINES_PER_PAGE) + 1 {
            books.capture(captured(id(MONDAY, number), 1_000, 30, 1, true)).unwrap();
        }
        let mut pages = Vec::new();
        let mut after = SettlementCursor::default();
        while let Some(page) = books.page(after, at(MONDAY + 1, 12)).unwrap() {
            pages.push(page.lines.len());
            after.lines += page.lines.len() as u64;
            if page.is_last {
                after = SettlementCursor { batch: page.batch.number, lines: 0 };
            }
        }
        assert_eq!(pages, [1_024, 1_024, 1]);
    }

    #[test]
    fn a_line_that_is_cut_off_spoils_no_other_line() {
        let folder = tempfile::tempdir().unwrap();
        opened(folder.path()).capture(captured(id(MONDAY, 1), 1_000, 30, 1, true)).unwrap();
        let path = folder.path().join("acquirer").join(format!("captures-{}", date(MONDAY)));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        let books = opened(folder.path());
        books.capture(captured(id(MONDAY, 2), 2_000, 60, 1, true)).unwrap();
        let lines = all(&books, at(MONDAY + 3, 12));
        assert_eq!(lines.iter().map(shown).collect::<Vec<_>>(), [(1, 1, 2_000, 60)]);
    }

    #[test]
    fn the_next_payment_is_on_a_business_day() {
        for (day, hour, expected) in [(0, 5, 0), (0, 6, 1), (4, 7, 7), (5, 12, 7), (6, 12, 7), (7, 0, 7)] {
            assert_eq!(first_payment_after(at(MONDAY + day, hour)), at(MONDAY + expected, 6), "{day} {hour}");
        }
    }
}
