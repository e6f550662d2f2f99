//! Records of the sandbox's bank for one account: a file of lines a day, and the statement of each
//! day that has ended, in OFX 1. A line is written without a sync: it outlives the process, and
//! after a power cut the last ones may be missing. Days without lines have no statement.
//!
//! What comes for a day whose statement is written stands on the next day.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use chrono::NaiveDate;
use ledger::money::Centavos;

use super::folder_lock::{FolderLock, FolderRecords, Patience};
use super::lines::{Lines, days_after, read_lines, write_whole};

/// Prefix of the names of the files of lines.
const LINES: &str = "lines-";

/// The records of one account.
pub(super) struct BankBooks {
    folder: PathBuf,
    account: &'static str,
    is_shared: bool,
    lock: FolderLock<BankContents>,
}

/// What is known of the records.
pub(crate) struct BankContents {
    /// The last day whose statement is written.
    closed_through: Option<NaiveDate>,
    /// The balance at its end, centavos.
    balance: i64,
    /// The days after it that have lines.
    days: BTreeMap<NaiveDate, OpenDay>,
}

struct OpenDay {
    file: Lines,
    /// Sum of its lines, centavos.
    sum: i64,
    /// The references of its lines but PIX payments, each with whether money came in.
    seen: BTreeSet<(String, bool)>,
}

struct Line {
    amount: i64,
    text: &'static str,
    reference: String,
}

impl BankContents {
    /// The day under which something is booked: its own or, when the statement of that is written,
    /// the next one.
    fn open_day(&self, day: NaiveDate) -> NaiveDate {
        day.max(self.closed_through.and_then(|closed| closed.succ_opt()).unwrap_or(day))
    }

    /// Reads what other processes have appended.
    fn catch_up(&mut self) -> io::Result<()> {
        self.days.values_mut().try_for_each(|day| {
            let more = day.file.read_on()?;
            day.add(&more);
            Ok(())
        })
    }

    fn holds(&self) -> i64 {
        self.balance + self.days.values().map(|day| day.sum).sum::<i64>()
    }
}

impl OpenDay {
    fn add(&mut self, lines: &str) {
        for Line { amount, text, reference } in lines.lines().filter_map(line_of) {
            self.sum += amount;
            if text != PIX_RECEIVED {
                self.seen.insert((reference, amount > 0));
            }
        }
    }
}

impl BankBooks {
    /// The records in `folder`, of the account with this number. `is_shared`: other processes keep
    /// them too.
    pub(super) fn new(folder: PathBuf, account: &'static str, is_shared: bool) -> Self {
        let lock = FolderLock::new(folder.clone(), "lock", is_shared);
        Self { folder, account, is_shared, lock }
    }

    /// Moves money, once for each reference, way and day; `amount` is below zero when the account
    /// pays. `text` says what it is, without blanks. A PIX payment is booked at every call.
    pub(super) fn book(
        &self,
        patience: Patience,
        day: NaiveDate,
        text: &'static str,
        reference: &str,
        amount: Centavos,
    ) -> io::Result<()> {
        if amount == Centavos::ZERO {
            return Ok(());
        }
        self.turn(patience, |turn| {
            turn.known.catch_up()?;
            let day = turn.known.open_day(day);
            if !turn.known.days.contains_key(&day) {
                // Others know of no file that was not there.
                turn.announce()?;
                turn.known.days.insert(day, self.open_day(day)?);
            }
            let open = turn.known.days.get_mut(&day).ok_or(io::ErrorKind::NotFound)?;
            let is_known = text != PIX_RECEIVED && open.seen.contains(&(reference.to_owned(), amount > Centavos::ZERO));
            if !is_known {
                let line = format!("{} {text} {reference}\n", amount.0);
                open.file.append(&line)?;
                open.add(&line);
            }
            Ok(())
        })
    }

    /// The balance with all lines, centavos.
    pub(super) fn holds(&self, patience: Patience) -> io::Result<Centavos> {
        self.turn(patience, |turn| {
            turn.known.catch_up()?;
            Ok(Centavos(turn.known.holds()))
        })
    }

    /// Whether something with this reference was booked under a day from `first` to `last`, or
    /// under the day after when the statement of that was written.
    pub(super) fn has(&self, patience: Patience, [first, last]: [NaiveDate; 2], reference: &str) -> io::Result<bool> {
        self.turn(patience, |turn| {
            let last = turn.known.open_day(last);
            for day in first.iter_days().take_while(|day| *day <= last) {
                if self.lines(day)?.iter().any(|line| line.reference == reference) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Writes the statements of the days before `today` that have none yet.
    pub(super) fn close_days_before(&self, patience: Patience, today: NaiveDate) -> io::Result<()> {
        self.turns(patience, |turn| {
            let first = turn.known.days.keys().next().copied();
            let Some(day) = first.filter(|day| *day < today) else { return Ok(false) };
            let lines = self.lines(day)?;
            let balance = turn.known.balance + lines.iter().map(|line| line.amount).sum::<i64>();
            let statement = self.statement(day, &lines, balance);
            turn.announce()?;
            write_whole(&self.folder, &format!("{}-{day}.ofx", self.account), &statement)?;
            write_whole(&self.folder, "closed", &format!("{day} {balance}\n"))?;
            (turn.known.closed_through, turn.known.balance) = (Some(day), balance);
            turn.known.days.remove(&day);
            Ok(true)
        })
    }

    fn open_day(&self, day: NaiveDate) -> io::Result<OpenDay> {
        let (file, lines) = Lines::open(&self.path(day), self.is_shared)?;
        let mut open = OpenDay { file, sum: 0, seen: BTreeSet::new() };
        open.add(&lines);
        Ok(open)
    }

    fn path(&self, day: NaiveDate) -> PathBuf {
        self.folder.join(format!("{LINES}{day}"))
    }

    fn lines(&self, day: NaiveDate) -> io::Result<Vec<Line>> {
        Ok(read_lines(&self.path(day))?.lines().filter_map(line_of).collect())
    }

    /// The statement of a day, with one element a line: some programs read no other form.
    fn statement(&self, day: NaiveDate, lines: &[Line], balance: i64) -> String {
        let (date, account) = (day.format("%Y%m%d"), self.account);
        let mut text = format!(
            "OFXHEADER:100\r\nDATA:OFXSGML\r\nVERSION:102\r\nSECURITY:NONE\r\nENCODING:USASCII\r\nCHARSET:1252\r\n\
             COMPRESSION:NONE\r\nOLDFILEUID:NONE\r\nNEWFILEUID:NONE\r\n\r\n<OFX>\r\n\
             <SIGNONMSGSRSV1>\r\n<SONRS>\r\n<STATUS>\r\n<CODE>0\r\n<SEVERITY>INFO\r\n</STATUS>\r\n<DTSERVER>{date}\r\n\
             <LANGUAGE>POR\r\n</SONRS>\r\n</SIGNONMSGSRSV1>\r\n<BANKMSGSRSV1>\r\n<STMTTRNRS>\r\n<TRNUID>{date}\r\n\
             <STATUS>\r\n<CODE>0\r\n<SEVERITY>INFO\r\n</STATUS>\r\n<STMTRS>\r\n<CURDEF>BRL\r\n<BANKACCTFROM>\r\n\
             <BANKID>000\r\n<ACCTID>{account}\r\n<ACCTTYPE>CHECKING\r\n</BANKACCTFROM>\r\n<BANKTRANLIST>\r\n\
             <DTSTART>{date}\r\n<DTEND>{date}\r\n"
        );
        for (number, line) in (1..).zip(lines) {
            let Line { amount, text: what, reference } = line;
            let kind = if *amount > 0 { "CREDIT" } else { "DEBIT" };
            let (sign, cents) = (if *amount < 0 { "-" } else { "" }, amount.unsigned_abs());
            text += &format!(
                "<STMTTRN>\r\n<TRNTYPE>{kind}\r\n<DTPOSTED>{date}120000[-3:BRT]\r\n<TRNAMT>{sign}{}.{:02}\r\n\
                 <FITID>{date}-{number}\r\n<MEMO>{what} {reference}\r\n</STMTTRN>\r\n",
                cents / 100,
                cents % 100
            );
        }
        let (sign, cents) = (if balance < 0 { "-" } else { "" }, balance.unsigned_abs());
        text += &format!(
            "</BANKTRANLIST>\r\n<LEDGERBAL>\r\n<BALAMT>{sign}{}.{:02}\r\n<DTASOF>{date}\r\n</LEDGERBAL>\r\n</STMTRS>\r\n\
             </STMTTRNRS>\r\n</BANKMSGSRSV1>\r\n</OFX>\r\n",
            cents / 100,
            cents % 100
        );
        text
    }
}

impl FolderRecords for BankBooks {
    type Contents = BankContents;

    fn lock(&self) -> &FolderLock<BankContents> {
        &self.lock
    }

    fn read(&self) -> io::Result<BankContents> {
        let closed = read_lines(&self.folder.join("closed"))?;
        let closed = closed.trim().split_once(' ');
        let closed = closed.and_then(|(day, balance)| Some((day.parse().ok()?, balance.parse().ok()?)));
        let (closed_through, balance) = closed.map_or((None, 0), |(day, balance)| (Some(day), balance));
        let days = days_after(&self.folder, LINES, closed_through)?;
        let days = days.into_iter().map(|day| Ok((day, self.open_day(day)?)));
        Ok(BankContents { closed_through, balance, days: days.collect::<io::Result<_>>()? })
    }
}

fn line_of(line: &str) -> Option<Line> {
    let mut parts = line.splitn(3, ' ');
    let (amount, text, reference) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let text = TEXTS.into_iter().find(|known| *known == text)?;
    Some(Line { amount, text, reference: reference.to_owned() })
}

/// Texts of the lines.
pub(super) const BATCH: &str = "LOTE";
/// A transfer to a bank account.
pub(super) const TRANSFER: &str = "TED";
/// A transfer that came back.
pub(super) const RETURNED: &str = "TED-DEVOLVIDA";
/// A PIX payment.
pub(super) const PIX_RECEIVED: &str = "PIX-RECEBIDO";
/// A PIX payment that was sent back.
pub(super) const PIX_RETURNED: &str = "PIX-DEVOLVIDO";
/// A PIX transfer.
pub(super) const PIX_SENT: &str = "PIX-ENVIADO";
const TEXTS: [&str; 6] = [BATCH, TRANSFER, RETURNED, PIX_RECEIVED, PIX_RETURNED, PIX_SENT];
