//! Records of the sandbox's acquirer, in files of its own: captures, refunds and disputes taken
//! back, and batches, one file a day each. Each batch also has the CSV file that the acquirer sends
//! for reconciliation. A line is written before the call is answered, without a sync: it outlives
//! the process, and after a power cut the last ones may be missing. A batch is written once, with a
//! sync, and never changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use actors::rails::{SettlementCursor, SettlementLine, SettlementPage};
use chrono::{Days, NaiveDate};
use ledger::event::Batch;
use ledger::{Centavos, ObjectId, SettledObject, Timestamp};
use wire::settlement_days::is_settlement_day;
use wire::timestamp::{business_day, date};

use super::bank_books::{BATCH, BankBooks};
use super::folder_lock::{FolderLock, FolderRecords, Patience};
use super::lines::{Lines, days_after, read_lines, write_whole_with};

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
pub(super) struct TakeBack {
    /// Id of the refund or dispute.
    pub(super) id: ObjectId,
    pub(super) charge: ObjectId,
    /// How much, centavos, above zero.
    pub(super) amount: Centavos,
    pub(super) is_dispute: bool,
}

/// The records, read at the first call.
pub(super) struct AcquirerBooks {
    files: Files,
    lock: FolderLock<AcquirerContents>,
}

/// The files of the records.
struct Files {
    folder: PathBuf,
    /// The account that is paid.
    bank: Arc<BankBooks>,
    is_shared: bool,
}

/// What is known of the records.
pub(crate) struct AcquirerContents {
    /// The batches by day, in days since 1970-01-01, each with its number of lines; days without
    /// lines too.
    batches: BTreeMap<u32, u64>,
    /// The file of captures that was written last, by its day.
    captures: Option<(u32, Lines)>,
    /// The files of what was taken back, by day, as far as they were of use.
    returns: BTreeMap<u32, Returns>,
}

struct Returns {
    file: Lines,
    ids: BTreeSet<ObjectId>,
}

impl Returns {
    fn open(path: &Path, is_shared: bool) -> io::Result<Self> {
        let (file, lines) = Lines::open(path, is_shared)?;
        let mut returns = Self { file, ids: BTreeSet::new() };
        returns.add(&lines);
        Ok(returns)
    }

    fn add(&mut self, lines: &str) {
        self.ids.extend(lines.lines().filter_map(returned_of).map(|returned| returned.id));
    }

    /// Whether something is on record, by this process or another.
    fn has(&mut self, id: ObjectId) -> io::Result<bool> {
        let more = self.file.read_on()?;
        self.add(&more);
        Ok(self.ids.contains(&id))
    }
}

impl AcquirerContents {
    /// The day under which something is recorded: the day on which it happened or, when a batch of
    /// a later day was made meanwhile, that day. So its first payment is still to come.
    fn unpaid_day(&self, at: Timestamp) -> u32 {
        let last = self.batches.last_key_value().map_or(0, |(day, _)| *day);
        business_day(at.0).max(last)
    }
}

/// When the next batch after `now` is paid.
pub(super) fn first_payment_after(now: Timestamp) -> Timestamp {
    let paid_at = |day: u32| Timestamp(i64::from(day) * DAY_MS + PAID_AT_MS);
    let today = business_day(now.0);
    let next = (today..).find(|day| is_settlement_day(*day) && paid_at(*day) > now);
    next.map_or(Timestamp(i64::MAX), paid_at)
}

/// A day counted from 1970-01-01.
fn day_of_days(day: u32) -> NaiveDate {
    NaiveDate::default().checked_add_days(Days::new(u64::from(day))).unwrap_or(NaiveDate::MAX)
}

/// The acquirer's name for the batch of a day.
fn reference(day: u32) -> String {
    format!("SANDBOX-{}", date(day))
}

/// The days whose payments fall on the batch of this settlement day: itself, and the days without
/// settlement before it.
fn days_paid_on(day: u32) -> impl Iterator<Item = u32> {
    let before = (1..=day).map(move |back| day - back).take_while(|day| !is_settlement_day(*day));
    std::iter::once(day).chain(before)
}

impl AcquirerBooks {
    /// The records in `folder`, and the bank's account that is paid. `is_shared`: other processes
    /// keep the records too.
    pub(super) fn new(folder: &Path, bank: Arc<BankBooks>, is_shared: bool) -> Self {
        let folder = folder.join("acquirer");
        let lock = FolderLock::new(folder.clone(), "lock", is_shared);
        Self { files: Files { folder, bank, is_shared }, lock }
    }

    /// Records a capture, and returns the valid capture: the recorded one if the charge is captured
    /// already. `is_asked_again`: it may be. Otherwise that is looked up for a late charge only, as
    /// a charge that is recorded twice on one day is paid once.
    pub(super) fn capture(&self, patience: Patience, capture: Capture, is_asked_again: bool) -> io::Result<Capture> {
        let files = &self.files;
        self.turn(patience, |turn| {
            let Capture { charge, .. } = capture;
            let day = turn.known.unpaid_day(charge.created_at());
            if is_asked_again || day > business_day(charge.created_at().0) {
                let known = files.captures_of([charge].into())?.remove(&charge);
                if let Some(known) = known {
                    return Ok(known);
                }
            }
            files.append_capture(turn.known, day, &capture)?;
            Ok(capture)
        })
    }

    /// Says what became of a charge that was asked for before: the capture that counts, as
    /// [`AcquirerBooks::capture`] does, or `None` where none is on record and none can be recorded.
    /// Then it never will be: the charge is refused.
    pub(super) fn capture_or_close(&self, patience: Patience, capture: Capture) -> io::Result<Option<Capture>> {
        let charge = capture.charge;
        let found = self.capture(patience, capture, true);
        let Err(error) = found else { return found.map(Some) };
        if error.kind() == io::ErrorKind::WouldBlock {
            return Err(error);
        }
        let known = match self.files.captures_of([charge].into()) {
            Ok(mut known) => known.remove(&charge),
            // What is no folder or no file has no record.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory) => None,
            Err(error) => return Err(error),
        };
        tracing::warn!(%error, "the sandbox's acquirer refuses a charge that it cannot record");
        Ok(known)
    }

    /// Records that money is taken back, once. What is recorded later than it was decided stands
    /// under a day from that of the decision to that of the last batch.
    pub(super) fn take_back(&self, patience: Patience, returned: TakeBack, decided_at: Timestamp) -> io::Result<()> {
        let files = &self.files;
        self.turn(patience, |turn| {
            let TakeBack { id, charge, amount, is_dispute } = returned;
            let last = turn.known.unpaid_day(decided_at);
            for day in business_day(decided_at.0)..=last {
                let path = files.path("returns", day);
                if !turn.known.returns.contains_key(&day) && (day == last || path.exists()) {
                    turn.known.returns.insert(day, Returns::open(&path, files.is_shared)?);
                }
                if let Some(known) = turn.known.returns.get_mut(&day)
                    && known.has(id)?
                {
                    return Ok(());
                }
            }
            let known = turn.known.returns.get_mut(&last).ok_or(io::ErrorKind::NotFound)?;
            let kind = if is_dispute { 'd' } else { 'r' };
            let line = format!("{} {} {amount} {kind}\n", id.uuid(), charge.uuid());
            known.file.append(&line)?;
            known.add(&line);
            Ok(())
        })
    }

    /// The lines after a position of the batches that are paid by `now`. A batch is made when it is
    /// asked for first.
    pub(super) fn page(
        &self,
        patience: Patience,
        after: SettlementCursor,
        now: Timestamp,
    ) -> io::Result<Option<SettlementPage>> {
        let files = &self.files;
        let last = u32::try_from((now.0 - PAID_AT_MS).div_euclid(DAY_MS)).unwrap_or_default();
        self.turns(patience, |turn| {
            let Some(first) = files.first_unpaid(turn.known)? else { return Ok(false) };
            let Some(day) = (first..=last).find(|day| is_settlement_day(*day)) else { return Ok(false) };
            turn.announce()?;
            let lines = files.write_batch(patience, day)?;
            turn.known.batches.insert(day, lines);
            Ok(true)
        })?;
        self.turn(patience, |turn| {
            let batches = &turn.known.batches;
            let mut later = batches.iter().filter(|(day, lines)| u64::from(**day) > after.batch && **lines > 0);
            let Some((day, lines)) = later.next() else { return Ok(None) };
            let batch = Batch { number: u64::from(*day), reference: reference(*day), paid_on: *day, of_file: false };
            let read = files.read_batch(*day, after.lines)?;
            let is_last = after.lines + read.len() as u64 >= *lines;
            Ok(Some(SettlementPage { batch, lines: read, is_last }))
        })
    }
}

impl FolderRecords for AcquirerBooks {
    type Contents = AcquirerContents;

    fn lock(&self) -> &FolderLock<AcquirerContents> {
        &self.lock
    }

    fn read(&self) -> io::Result<AcquirerContents> {
        let mut batches = BTreeMap::new();
        for day in self.files.days("batch")? {
            let bytes = self.files.path("batch", day).metadata()?.len();
            batches.insert(day, bytes / LINE_BYTES);
        }
        Ok(AcquirerContents { batches, captures: None, returns: BTreeMap::new() })
    }
}

impl Files {
    fn path(&self, kind: &str, day: u32) -> PathBuf {
        self.folder.join(format!("{kind}-{}", date(day)))
    }

    /// Appends a capture to the file of a day.
    fn append_capture(&self, known: &mut AcquirerContents, day: u32, capture: &Capture) -> io::Result<()> {
        let Capture { charge, amount, mdr, installments, is_debit } = capture;
        if known.captures.as_ref().is_none_or(|(known, _)| *known != day) {
            known.captures = Some((day, Lines::open_at_end(&self.path("captures", day), self.is_shared)?));
        }
        let (_, file) = known.captures.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let kind = if *is_debit { 'd' } else { 'c' };
        file.append(&format!("{} {amount} {mdr} {installments} {kind}\n", charge.uuid()))
    }

    /// The days of the files of a kind, in days since 1970-01-01.
    fn days(&self, kind: &str) -> io::Result<BTreeSet<u32>> {
        let days = days_after(&self.folder, &format!("{kind}-"), None)?;
        Ok(days.into_iter().filter_map(|day| u32::try_from((day - NaiveDate::default()).num_days()).ok()).collect())
    }

    /// The day after the last batch or, before the first one, the day of the first record.
    fn first_unpaid(&self, known: &AcquirerContents) -> io::Result<Option<u32>> {
        if let Some((last, _)) = known.batches.last_key_value() {
            return Ok(Some(last + 1));
        }
        let first = self.days("captures")?.first().copied();
        Ok(first.into_iter().chain(self.days("returns")?.first().copied()).min())
    }

    /// Makes the batch of a settlement day, and the file of it that the acquirer sends, and pays
    /// it; gives the number of its lines.
    fn write_batch(&self, patience: Patience, day: u32) -> io::Result<u64> {
        let lines = self.lines_of(day)?;
        if !lines.is_empty() {
            let net = lines.iter().map(|line| line.gross - line.fee).sum();
            self.bank.book(patience, day_of_days(day), BATCH, &reference(day), net)?;
            self.write(&format!("{}.csv", reference(day)), |out| write_file(out, day, &lines))?;
        }
        let name = format!("batch-{}", date(day));
        self.write(&name, |out| lines.iter().try_for_each(|line| write_line(out, line)))?;
        Ok(lines.len() as u64)
    }

    fn write(&self, name: &str, write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        write_whole_with(&self.folder, name, write)
    }

    /// The lines that are paid on a settlement day.
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
        let lines = read_lines(&self.path("captures", day))?;
        Ok(lines.lines().filter_map(capture_of).filter(|capture| seen.insert(capture.charge)).collect())
    }

    /// What was taken back on a day.
    fn returns(&self, day: u32) -> io::Result<Vec<TakeBack>> {
        Ok(read_lines(&self.path("returns", day))?.lines().filter_map(returned_of).collect())
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
fn taken_back(returned: &TakeBack, capture: Option<&Capture>) -> SettlementLine {
    let TakeBack { id, charge, amount, is_dispute } = *returned;
    let (object, fee) = match capture {
        _ if is_dispute => (SettledObject::Dispute(id), Centavos::ZERO),
        Some(capture) => (SettledObject::Refund(id), -capture.mdr.share(amount, capture.amount)),
        None => (SettledObject::Refund(id), Centavos::ZERO),
    };
    SettlementLine { charge, object, gross: -amount, fee }
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

fn returned_of(line: &str) -> Option<TakeBack> {
    let [id, charge, amount, kind] = parts(line)?;
    Some(TakeBack {
        id: ObjectId::parse(id)?,
        charge: ObjectId::parse(charge)?,
        amount: centavos(amount)?,
        is_dispute: flag(kind, "d", "r")?,
    })
}

/// The file that the acquirer sends of a batch: CSV, amounts in centavos.
fn write_file(out: &mut impl io::Write, day: u32, lines: &[SettlementLine]) -> io::Result<()> {
    writeln!(out, "batch,paid_on,charge,kind,id,gross,fee,net")?;
    let (batch, paid_on) = (reference(day), date(day));
    for SettlementLine { charge, object, gross, fee } in lines {
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
        let bank = Arc::new(BankBooks::new(folder.join("bank"), "1", false));
        AcquirerBooks::new(folder, bank, false)
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

    fn capture(books: &AcquirerBooks, capture: Capture) {
        books.capture(Patience::NONE, capture, false).unwrap();
    }

    /// The lines of all batches through a moment, with the day of each.
    fn all(books: &AcquirerBooks, now: Timestamp) -> Vec<(u32, SettlementLine)> {
        let (mut after, mut found) = (SettlementCursor::default(), Vec::new());
        while let Some(SettlementPage { batch, lines, is_last }) = books.page(Patience::NONE, after, now).unwrap() {
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
        capture(&books, captured(id(MONDAY, 1), 10_000, 299, 3, false));
        capture(&books, captured(id(MONDAY, 1), 10_000, 299, 3, false));
        capture(&books, captured(id(MONDAY, 2), 5_000, 150, 1, true));
        capture(&books, captured(id(MONDAY + 4, 3), 7_000, 209, 1, true));
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
    fn what_falls_into_carnival_is_paid_on_ash_wednesday() {
        let folder = tempfile::tempdir().unwrap();
        let books = opened(folder.path());
        for (day, number) in [(73, 1), (74, 2), (76, 3), (77, 4), (78, 5)] {
            capture(&books, captured(id(MONDAY + day, number), 1_000, 30, 1, true));
        }
        let lines = all(&books, at(MONDAY + 100, 12));
        let days: Vec<_> = lines.iter().map(|line| shown(line).0).collect();
        assert_eq!(days, [74, 79, 79, 79, 79], "each is paid once");
    }

    #[test]
    fn refunds_give_their_part_of_the_fee_back_and_disputes_keep_it() {
        let folder = tempfile::tempdir().unwrap();
        let books = opened(folder.path());
        capture(&books, captured(id(MONDAY, 1), 10_000, 299, 1, true));
        let returned = |number, amount, is_dispute| TakeBack {
            id: id(MONDAY, number),
            charge: id(MONDAY, 1),
            amount: Centavos(amount),
            is_dispute,
        };
        for _ in 0..2 {
            books.take_back(Patience::NONE, returned(2, 4_000, false), at(MONDAY + 1, 12)).unwrap();
        }
        books.take_back(Patience::NONE, returned(3, 1_000, true), at(MONDAY + 5, 12)).unwrap();
        let lines = all(&books, at(MONDAY + 10, 12));
        let expected = [(1, 1, 10_000, 299), (2, 100, -4_000, -120), (7, 200, -1_000, 0)];
        assert_eq!(lines.iter().map(shown).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_recorded_after_its_batch_is_paid_in_a_later_one() {
        let folder = tempfile::tempdir().unwrap();
        let books = opened(folder.path());
        capture(&books, captured(id(MONDAY, 1), 1_000, 30, 1, true));
        assert_eq!(all(&books, at(MONDAY + 2, 12)).len(), 1);
        capture(&books, captured(id(MONDAY, 2), 2_000, 60, 1, true));
        let reopened = opened(folder.path());
        capture(&reopened, captured(id(MONDAY + 1, 3), 3_000, 90, 1, true));
        let lines = all(&reopened, at(MONDAY + 9, 12));
        assert_eq!(
            lines.iter().map(shown).collect::<Vec<_>>(),
            [(1, 1, 1_000, 30), (3, 1, 2_000, 60), (3, 1, 3_000, 90)]
        );
        let capture_of = |number| captured(id(MONDAY, number), 1, 1, 1, true);
        let counts = |number| reopened.capture(Patience::NONE, capture_of(number), true).unwrap().amount;
        assert_eq!([2, 9].map(counts), [Centavos(2_000), Centavos(1)], "the one on record, else the one that is asked");
    }

    #[test]
    fn a_page_ends_and_the_next_one_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let books = opened(folder.path());
        for number in 0..2 * u128::from(LINES_PER_PAGE) + 1 {
            capture(&books, captured(id(MONDAY, number), 1_000, 30, 1, true));
        }
        let mut pages = Vec::new();
        let mut after = SettlementCursor::default();
        while let Some(page) = books.page(Patience::NONE, after, at(MONDAY + 1, 12)).unwrap() {
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
        capture(&opened(folder.path()), captured(id(MONDAY, 1), 1_000, 30, 1, true));
        let path = folder.path().join("acquirer").join(format!("captures-{}", date(MONDAY)));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        let books = opened(folder.path());
        capture(&books, captured(id(MONDAY, 2), 2_000, 60, 1, true));
        let lines = all(&books, at(MONDAY + 3, 12));
        assert_eq!(lines.iter().map(shown).collect::<Vec<_>>(), [(1, 1, 2_000, 60)]);
    }

    #[test]
    fn the_next_payment_is_on_a_settlement_day() {
        // Christmas is a Friday; Carnival 2027 is 77 and 78 days later, and Ash Wednesday settles.
        let cases = [(0, 5, 0), (0, 6, 1), (4, 7, 7), (5, 12, 7), (6, 12, 7), (7, 0, 7)];
        for (day, hour, expected) in cases.into_iter().chain([(31, 7, 35), (32, 0, 35), (74, 7, 79), (78, 12, 79)]) {
            assert_eq!(first_payment_after(at(MONDAY + day, hour)), at(MONDAY + expected, 6), "{day} {hour}");
        }
    }
}
