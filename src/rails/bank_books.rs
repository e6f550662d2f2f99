//! Records of the sandbox's bank for one account: a file of lines a day, and the statement of each
//! day that has ended, in OFX 1. A line is written without a sync: it outlives the process, and
//! after a power cut the last ones may be missing. Days without lines have no statement.
//!
//! What comes for a day whose statement is written stands on the next day.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, create_dir_all, read_dir, read_to_string, rename};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::NaiveDate;
use ledger::money::Centavos;
use parking_lot::Mutex;

use super::lies::{Institution, Lie, Lies};

/// Prefix of the names of the files of lines.
const LINES: &str = "lines-";

/// The records of one account.
pub(super) struct BankBooks {
    folder: PathBuf,
    account: &'static str,
    lies: Arc<Lies>,
    open: Mutex<Option<Open>>,
}

struct Open {
    /// The last day whose statement is written.
    closed_through: Option<NaiveDate>,
    /// The balance at its end, centavos.
    balance: i64,
    /// The balance with all lines, centavos.
    holds: i64,
    /// The day of the last line.
    day: Option<OpenDay>,
}

struct OpenDay {
    day: NaiveDate,
    /// The references of its lines but PIX payments, each with whether money came in.
    seen: BTreeSet<(String, bool)>,
    file: File,
}

#[derive(Clone)]
struct Line {
    amount: i64,
    text: &'static str,
    reference: String,
}

impl BankBooks {
    /// The records in `folder`, of the account with this number.
    pub(super) fn new(folder: PathBuf, account: &'static str, lies: Arc<Lies>) -> Self {
        Self { folder, account, lies, open: Mutex::default() }
    }

    /// Moves money, once for each reference, way and day; `amount` is below zero when the account
    /// pays. `text` says what it is, without blanks. A PIX payment is booked at every call.
    pub(super) fn book(&self, day: NaiveDate, text: &'static str, reference: &str, amount: Centavos) -> io::Result<()> {
        let mut open = self.open.lock();
        let open = self.opened(&mut open)?;
        let after_closed = open.closed_through.and_then(|closed| closed.succ_opt());
        let day = day.max(after_closed.unwrap_or(day));
        if open.day.as_ref().is_none_or(|known| known.day != day) {
            let known = self.lines(day)?.into_iter().filter(|line| line.text != PIX_RECEIVED);
            let seen = known.map(|line| (line.reference, line.amount > 0)).collect();
            let path = self.folder.join(format!("{LINES}{day}"));
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            open.day = Some(OpenDay { day, seen, file });
        }
        let Open { day, holds, .. } = open;
        let OpenDay { seen, file, .. } = day.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let mut is_new = || text == PIX_RECEIVED || seen.insert((reference.to_owned(), amount > Centavos::ZERO));
        if amount != Centavos::ZERO && is_new() {
            *holds += amount.0;
            file.write_all(format!("{} {text} {reference}\n", amount.0).as_bytes())?;
        }
        Ok(())
    }

    /// The balance with all lines, centavos.
    pub(super) fn holds(&self) -> io::Result<Centavos> {
        Ok(Centavos(self.opened(&mut self.open.lock())?.holds))
    }

    /// Whether a line of a day has this reference.
    pub(super) fn has(&self, day: NaiveDate, reference: &str) -> io::Result<bool> {
        Ok(self.lines(day)?.iter().any(|line| line.reference == reference))
    }

    /// Writes the statements of the days before `today` that have none yet.
    pub(super) fn close_days_before(&self, today: NaiveDate) -> io::Result<()> {
        let mut open = self.open.lock();
        let open = self.opened(&mut open)?;
        for day in self.days_after(open.closed_through)?.range(..today).copied() {
            let lines = self.lines(day)?;
            let balance = open.balance + lines.iter().map(|line| line.amount).sum::<i64>();
            self.write(&format!("{}-{day}.ofx", self.account), &self.statement(day, lines, balance))?;
            self.write("closed", &format!("{day} {balance}\n"))?;
            (open.closed_through, open.balance) = (Some(day), balance);
        }
        Ok(())
    }

    fn opened<'a>(&self, open: &'a mut Option<Open>) -> io::Result<&'a mut Open> {
        if open.is_none() {
            create_dir_all(&self.folder)?;
            let closed = match read_to_string(self.folder.join("closed")) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                closed => closed?,
            };
            let closed = closed.trim().split_once(' ');
            let closed = closed.and_then(|(day, balance)| Some((day.parse().ok()?, balance.parse().ok()?)));
            let (closed_through, balance) = closed.map_or((None, 0), |(day, balance)| (Some(day), balance));
            let mut holds = balance;
            for day in self.days_after(closed_through)? {
                holds += self.lines(day)?.iter().map(|line| line.amount).sum::<i64>();
            }
            *open = Some(Open { closed_through, balance, holds, day: None });
        }
        open.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The days with lines after a day; all of them after none.
    fn days_after(&self, closed: Option<NaiveDate>) -> io::Result<BTreeSet<NaiveDate>> {
        let mut days = BTreeSet::new();
        for entry in read_dir(&self.folder)? {
            let name = entry?.file_name();
            let day = name.to_str().and_then(|name| name.strip_prefix(LINES)?.parse::<NaiveDate>().ok());
            days.extend(day.filter(|day| closed.is_none_or(|closed| closed < *day)));
        }
        Ok(days)
    }

    /// The lines of a day. One that a power cut left without an end is passed over.
    fn lines(&self, day: NaiveDate) -> io::Result<Vec<Line>> {
        let text = match read_to_string(self.folder.join(format!("{LINES}{day}"))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text?,
        };
        let line_of = |line: &str| {
            let mut parts = line.strip_suffix('\n')?.splitn(3, ' ');
            let (amount, text, reference) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
            let text = TEXTS.into_iter().find(|known| *known == text)?;
            Some(Line { amount, text, reference: reference.to_owned() })
        };
        Ok(text.split_inclusive('\n').filter_map(line_of).collect())
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        write_whole(&self.folder, name, text)
    }

    fn statement(&self, day: NaiveDate, mut lines: Vec<Line>, balance: i64) -> String {
        if let Some(lie) = self.lies.take(Institution::Bank).filter(|_| !lines.is_empty()) {
            lie.tell(&mut lines, |lie, line| match lie {
                Lie::Added => "INVENTED".clone_into(&mut line.reference),
                _ => line.amount += 1,
            });
        }
        let (date, account) = (day.format("%Y%m%d"), self.account);
        let mut text = format!(
            "OFXHEADER:100\r\nDATA:OFXSGML\r\nVERSION:102\r\nSECURITY:NONE\r\nENCODING:USASCII\r\nCHARSET:1252\r\n\
             COMPRESSION:NONE\r\nOLDFILEUID:NONE\r\nNEWFILEUID:NONE\r\n\r\n<OFX>\r\n<SIGNONMSGSRSV1><SONRS><STATUS>\
             <CODE>0<SEVERITY>INFO</STATUS><DTSERVER>{date}<LANGUAGE>POR</SONRS></SIGNONMSGSRSV1>\r\n<BANKMSGSRSV1>\
             <STMTTRNRS><TRNUID>{date}<STATUS><CODE>0<SEVERITY>INFO</STATUS>\r\n<STMTRS><CURDEF>BRL<BANKACCTFROM>\
             <BANKID>000<ACCTID>{account}<ACCTTYPE>CHECKING</BANKACCTFROM>\r\n<BANKTRANLIST><DTSTART>{date}<DTEND>{date}\r\n"
        );
        for (number, line) in (1..).zip(&lines) {
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
            "</BANKTRANLIST>\r\n<LEDGERBAL><BALAMT>{sign}{}.{:02}<DTASOF>{date}</LEDGERBAL>\r\n</STMTRS></STMTTRNRS>\
             </BANKMSGSRSV1>\r\n</OFX>\r\n",
            cents / 100,
            cents % 100
        );
        text
    }
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

/// Writes a file, which is there whole or not at all.
pub(super) fn write_whole(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let new = folder.join("new");
    let mut out = File::create(&new)?;
    out.write_all(text.as_bytes())?;
    out.sync_all()?;
    rename(&new, folder.join(name))?;
    File::open(folder)?.sync_all()
}
