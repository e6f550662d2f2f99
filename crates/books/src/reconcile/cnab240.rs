//! Bank statements in CNAB 240, FEBRABAN's format of fixed columns: the batches of the service
//! `04` (statement for reconciliation), whose movements are segments `E`. A batch is of one account
//! and some days; banks write one a day, or one a file.
//!
//! The balance that a batch begins with is that of the day before it. Its trailer has the sums of
//! its debits and credits: a file with other movements is refused.

use chrono::{Days, NaiveDate};
use ledger::money::Centavos;

use super::finding::FileError;
use super::ofx::{Account, OpenAccount, OpenRow, finished};

/// Characters of a record.
const WIDTH: usize = 240;

/// Whether a file is of fixed columns, by its first record.
pub(super) fn is_one(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.chars().count() == WIDTH && first.chars().take(8).all(|digit| digit.is_ascii_digit())
}

/// Reads a file whole. Errors: the first line that is no record; no batch of a statement; a batch
/// or a file without its end.
pub(super) fn read(text: &str) -> Result<Vec<Account>, FileError> {
    let (mut accounts, mut made_on, mut last, mut has_ended) = (Vec::new(), None, 1, false);
    let mut open: Option<Batch> = None;
    for (at, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        last = at;
        let record = Record { at, columns: line.chars().collect() };
        let kind = record.text(8, 8);
        match (kind.as_str(), &mut open) {
            ("0", None) => made_on = record.day(144),
            ("1", None) => open = Some(Batch::begun(&record)?),
            ("3", Some(batch)) => batch.add(&record)?,
            ("5", Some(_)) => accounts.extend(open.take().map(|batch| batch.ended(&record)).transpose()?.flatten()),
            ("9", None) => has_ended = true,
            _ => return Err(record.refused("registro fora de ordem ou de tipo desconhecido")),
        }
    }
    let refused = |defect: &str| FileError { line: last, defect: defect.to_owned() };
    if !has_ended {
        return Err(refused("o arquivo termina antes do registro 9"));
    }
    if accounts.is_empty() {
        return Err(refused("o arquivo CNAB 240 não tem extrato (serviço 04)"));
    }
    Ok(finished(accounts, last, made_on))
}

/// A line of a file.
struct Record {
    at: u64,
    columns: Vec<char>,
}

/// A batch that is being read.
struct Batch {
    /// `None` of another service.
    account: Option<OpenAccount>,
    first: Option<NaiveDate>,
    debits: i64,
    credits: i64,
}

impl Record {
    fn refused(&self, defect: &str) -> FileError {
        FileError { line: self.at, defect: defect.to_owned() }
    }

    /// The text of some columns, counted from 1, without blanks around it.
    fn text(&self, from: usize, to: usize) -> String {
        let columns = self.columns.iter().skip(from - 1).take(to + 1 - from);
        columns.collect::<String>().trim().to_owned()
    }

    /// The day that begins at a column, as DDMMYYYY; `None` of zeros.
    fn day(&self, from: usize) -> Option<NaiveDate> {
        NaiveDate::parse_from_str(&self.text(from, from + 7), "%d%m%Y").ok()
    }

    /// The centavos of some columns. Error: they are no digits.
    fn centavos(&self, from: usize, to: usize) -> Result<i64, FileError> {
        let text = self.text(from, to);
        let number = if text.is_empty() { Some(0) } else { text.parse().ok() };
        let number = number.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        number.ok_or_else(|| self.refused(&format!("o valor das colunas {from} a {to} é inválido")))
    }

    /// The amount in columns 151 to 168, with the sign that column 169 says: `D` is money out.
    fn amount(&self) -> Result<Centavos, FileError> {
        let amount = Centavos(self.centavos(151, 168)?);
        match self.text(169, 169).as_str() {
            "C" => Ok(amount),
            "D" => Ok(-amount),
            _ => Err(self.refused("a coluna 169 deve ser C ou D")),
        }
    }
}

impl Batch {
    fn begun(record: &Record) -> Result<Self, FileError> {
        let mut batch = Self { account: None, first: None, debits: 0, credits: 0 };
        if record.text(9, 11) == "E04" {
            let (number, digit) = (record.text(59, 70), record.text(71, 71));
            let balance = (record.day(143), record.amount()?);
            batch.first = balance.0.and_then(|day| day.checked_add_days(Days::new(1)));
            let account = OpenAccount::begun(record.at, format!("{number}{digit}"), record.text(171, 173), balance);
            batch.account = Some(account);
        }
        Ok(batch)
    }

    fn add(&mut self, record: &Record) -> Result<(), FileError> {
        let Some(account) = self.account.as_mut().filter(|_| record.text(14, 14) == "E") else { return Ok(()) };
        let (amount, day) = (record.amount()?, record.day(143));
        let sum = if amount < Centavos::ZERO { &mut self.debits } else { &mut self.credits };
        *sum = sum.saturating_add(amount.0.abs());
        self.first = self.first.into_iter().chain(day).min();
        let (words, document) = (record.text(177, 201), record.text(202, 240));
        let others = [record.text(173, 176), document, record.text(114, 133)].join(" ");
        // The number of the document is none of the line: a bank writes zeros for each fee.
        account.add(OpenRow::of(record.at, (day, amount), (words, others)), record.at);
        Ok(())
    }

    fn ended(self, record: &Record) -> Result<Option<OpenAccount>, FileError> {
        let Self { account, first, debits, credits } = self;
        let Some(account) = account else { return Ok(None) };
        // Banks that leave the sums out write zeros.
        let sums = [record.centavos(177, 194)?, record.centavos(195, 212)?];
        if sums != [0, 0] && sums != [debits, credits] {
            return Err(record.refused("os lançamentos do lote não somam os débitos e créditos que ele diz ter"));
        }
        let (last, is_partial) = (record.day(143), record.text(170, 170) == "P");
        Ok(Some(account.closed(first, last, record.amount()?, is_partial)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ofx;
    use super::*;

    /// Two daily batches of one account, with a weekend between them.
    const FILE: &str = include_str!("../../../../tests/statements/cnab240.ret");

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, day).unwrap()
    }

    #[test]
    fn batches_of_an_account_are_one_statement() {
        let [account] = &ofx::read(FILE.as_bytes()).unwrap()[..] else { panic!("one account") };
        let read = account.statement.as_ref().unwrap();
        assert_eq!((account.number.as_str(), read.compared()), ("0000001234567", Some((day(27), day(30)))));
        let lines: Vec<_> = read.lines.iter().map(|line| (line.line, line.day, line.amount.0)).collect();
        let expected = [
            (3, day(27), 8_000),
            (4, day(27), -250),
            (7, day(30), -123_456),
            (8, day(30), 970_100),
            (9, day(30), 970_100),
        ];
        assert_eq!(lines, expected);
        assert!(read.lines.iter().all(|line| line.id.is_empty()));
        assert_eq!(
            read.lines[3].text.split_whitespace().collect::<Vec<_>>().join(" "),
            "TED RECEBIDA LOTE-20785 2097 671091"
        );
        let closing = read.closing.unwrap();
        assert_eq!((closing.amount, closing.day), (Centavos(2_557_340), Some(day(30))));
        let balances: Vec<_> = read.balances.iter().map(|row| (row.day, row.amount)).collect();
        let begins = |at, amount| (Some(day(at)), Some(Centavos(amount)));
        assert_eq!(balances, [begins(26, 732_846), begins(27, 740_596)]);
        assert!(ofx::is_same_account(&account.number, "123456-7"));
    }

    #[test]
    fn a_partial_balance_leaves_its_day_open() {
        let partial = FILE.replace("000000000002557340CF", "000000000002557340CP");
        let read = ofx::read(partial.as_bytes()).unwrap().remove(0).statement.unwrap();
        assert_eq!(read.compared(), Some((day(27), day(29))));
    }

    #[test]
    fn a_defect_is_named_by_its_line() {
        let line = |at: usize| FILE.lines().nth(at - 1).unwrap();
        for (from, to, at, defect) in [
            (line(11), "", 10, "registro 9"),
            (line(3), "", 4, "não somam"),
            (line(5), "", 5, "fora de ordem"),
            ("E04", "C20", 11, "serviço 04"),
            ("000000000000123456D", "000000000000123456X", 7, "coluna 169"),
            ("000000000000123456D", "0000000000001234x6D", 7, "colunas 151 a 168"),
            ("30112026000000000000123456", "31112026000000000000123456", 7, "DTPOSTED"),
        ] {
            let file: Vec<_> =
                FILE.replace(from, to).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
            let read = ofx::read(file.join("\r\n").as_bytes()).map(|mut accounts| accounts.remove(0).statement);
            let error = read.and_then(|statement| statement).unwrap_err();
            assert!(error.defect.contains(defect) && error.line == at, "{to}: {error}");
        }
    }
}
