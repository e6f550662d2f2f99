//! Bank statements in OFX: version 1 (SGML, whose values have no closing tags) and version 2 (XML),
//! in the forms in which Brazilian banks write them; and in CNAB 240.
//!
//! Only the parts that a reconciliation needs are read: of each account the period and the rows.
//! Rows that state a balance (`SALDO DO DIA`) stand among the movements in many of these files:
//! they move no money, and are listed separately.
//!
//! No library is used: those for XML cannot read version 1, and those for OFX take amounts as
//! binary fractions.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use ledger::money::Centavos;

use super::cnab240;
use super::finding::FileError;
use super::ofx_tokens::{Token, Tokens, decoded, refuse_other_statement};
use super::ofx_values::{Moment, amount_of, moment_of};

/// Rows of a file at most.
pub const LINES_MAX: usize = 100_000;
/// Longest period of a statement, days. A line is no further than this from its period.
pub const PERIOD_DAYS_MAX: i64 = 366;
/// Accounts of a file at most.
const ACCOUNTS_MAX: usize = 100;
/// Elements within each other at most.
const DEPTH_MAX: usize = 32;
/// Characters of the bank's id of a line at most (OFX: 255).
const ID_LEN_MAX: usize = 255;
/// Names of the Brazilian real in files of banks; `BRC` is one of older ones.
const REAIS: [&str; 3] = ["BRL", "BRC", "R$"];

/// An account of a file.
#[derive(Debug)]
pub struct Account {
    /// Its number (`ACCTID`), as the bank writes it; empty where it is missing.
    pub number: String,
    /// Whether it is a card, whose statements are not compared.
    pub is_card: bool,
    /// How many movements it has.
    pub lines: usize,
    /// Number of the line of the file on which it begins, from 1.
    pub line: u64,
    /// The statement, or the first defect of it.
    pub statement: Result<BankStatement, FileError>,
}

/// A statement of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BankStatement {
    /// First day of the period; of a file that has none, the day of the first line.
    pub from: NaiveDate,
    /// Last day of the period, or the day on which the file was made, where that is earlier; of a
    /// file without a period, the day of the last line.
    pub to: NaiveDate,
    /// True if the file does not show whether its last day is over: its period ends at midnight,
    /// and it has no line of that day; or the file was made on that day, before its period ended.
    pub is_last_day_open: bool,
    /// The lines, in the order of the file. Their days may lie outside the period.
    pub lines: Vec<StatementLine>,
    /// The rows that state a balance and move no money, in the order of the file.
    pub balances: Vec<BalanceRow>,
    /// Whether the types of the lines (`TRNTYPE`) say which way money went, and not the signs.
    pub signs_by_type: bool,
    /// The closing balance (`LEDGERBAL`), where the file has an amount of it.
    pub closing: Option<ClosingBalance>,
}

/// The balance that a bank states after the movements. Many banks write the balance at the time of
/// the download, or 0.00.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosingBalance {
    /// The amount, centavos; below zero when the account is overdrawn.
    pub amount: Centavos,
    /// The day (`DTASOF`), if it has one.
    pub day: Option<NaiveDate>,
}

/// One movement on the account, as in the bank's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementLine {
    /// Number of the line of the file on which it begins, from 1.
    pub line: u64,
    /// The bank's id of it (`FITID`). Banks repeat it, and some write none: then it is empty.
    pub id: String,
    /// The day, in the bank's own time zone.
    pub day: NaiveDate,
    /// How much, centavos; below zero when the account pays.
    pub amount: Centavos,
    /// Its texts: number, reference, name, memo and what else says something in words.
    pub text: String,
    /// Whether a text, which is not the first one, begins as that of a balance. A payer can write
    /// such a text. It is a balance if the books have no such movement.
    pub may_be_balance: bool,
}

/// A row that states a balance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalanceRow {
    /// Number of the line of the file on which it begins, from 1.
    pub line: u64,
    /// The day, if it has one.
    pub day: Option<NaiveDate>,
    /// The amount, centavos, if it has one.
    pub amount: Option<Centavos>,
    /// Its texts.
    pub text: String,
}

impl BankStatement {
    /// First and last day of the period and of all lines.
    pub fn span(&self) -> (NaiveDate, NaiveDate) {
        self.lines.iter().fold((self.from, self.to), |(from, to), line| (from.min(line.day), to.max(line.day)))
    }

    /// First and last day of which the file has every movement; `None` where it has no such day.
    pub fn compared(&self) -> Option<(NaiveDate, NaiveDate)> {
        let to = if self.is_last_day_open { self.to.pred_opt()? } else { self.to };
        (self.from <= to).then_some((self.from, to))
    }
}

impl From<StatementLine> for BalanceRow {
    fn from(line: StatementLine) -> Self {
        Self { line: line.line, day: Some(line.day), amount: Some(line.amount), text: line.text }
    }
}

/// Reads a file whole. Errors: the first line that is no OFX and no CNAB 240. What is wrong with
/// the statement of an account stands with the account.
pub fn read(file: &[u8]) -> Result<Vec<Account>, FileError> {
    let text = decoded(file);
    if cnab240::is_one(&text) {
        return cnab240::read(&text);
    }
    refuse_other_statement(&text)?;
    let mut tokens = Tokens::new(&text)?;
    let mut reading = Reading::default();
    let mut open: Vec<std::borrow::Cow<'_, str>> = Vec::new();
    let mut last = 1;
    while let Some(Token { line, tag, value, is_end }) = tokens.next_token()? {
        last = line;
        let refused = |defect: String| FileError { line, defect };
        if is_end {
            // An element that has no closing tag ends with the one around it.
            match open.iter().rposition(|name| *name == tag) {
                Some(place) => open.truncate(place),
                None if reading.last_value == tag => {}
                None => return Err(refused(format!("</{}> sem elemento aberto", shown(&tag)))),
            }
            reading.end(&tag, line).map_err(refused)?;
        } else if let Some(value) = value {
            reading.value(&tag, value, line).map_err(refused)?;
            reading.last_value = tag.into_owned();
        } else {
            reading.begin(&tag, line).map_err(refused)?;
            open.push(tag);
            if open.len() > DEPTH_MAX {
                return Err(refused(format!("mais de {DEPTH_MAX} elementos um dentro do outro")));
            }
        }
    }
    let refused = |defect: &str| FileError { line: last, defect: defect.to_owned() };
    if !open.is_empty() || !reading.has_ended {
        return Err(refused("o arquivo termina antes de </OFX>"));
    }
    if reading.accounts.is_empty() {
        return Err(refused("falta STMTRS"));
    }
    Ok(finished(reading.accounts, last, reading.made_on))
}

/// The accounts of a file, when it is read whole up to the line `last`. `made_on` is the day on
/// which it was made, if it says so.
pub(super) fn finished(accounts: Vec<OpenAccount>, last: u64, made_on: Option<NaiveDate>) -> Vec<Account> {
    merged(accounts).into_iter().map(|account| account.finish(last, made_on)).collect()
}

/// The name of an element as an error shows it: at most 20 characters, none that is not printable.
fn shown(tag: &str) -> String {
    tag.chars().filter(|character| character.is_ascii_graphic()).take(20).collect()
}

/// Whether two numbers are of one account: banks write them with and without marks and zeros.
pub fn is_same_account(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|number| {
        let digits: String = number.chars().filter(|character| character.is_alphanumeric()).collect();
        digits.trim_start_matches('0').to_uppercase()
    });
    one == other
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    accounts: Vec<OpenAccount>,
    /// Whether the last account still goes on.
    is_in_account: bool,
    has_ended: bool,
    /// The day on which the file was made (`DTSERVER`), if it says so.
    made_on: Option<NaiveDate>,
    rows: usize,
    /// The row that is being read.
    row: Option<OpenRow>,
    /// The element of the last value, which may have a closing tag.
    last_value: String,
}

/// An account that is being read.
#[derive(Default)]
pub(super) struct OpenAccount {
    line: u64,
    is_card: bool,
    number: String,
    from: Option<Moment>,
    to: Option<Moment>,
    /// Whether a limit has a moment that could be several.
    is_unclear: bool,
    currency: Option<String>,
    /// The lines, each with its `TRNTYPE` in capitals.
    lines: Vec<(StatementLine, String)>,
    balances: Vec<BalanceRow>,
    /// Amount, with its decimal mark, and day of the closing balance.
    closing: (Option<(Centavos, Option<char>)>, Option<NaiveDate>),
    is_in_closing: bool,
    /// The first amount's decimal mark; a statement has one.
    decimal_mark: Option<char>,
    /// Whether the amount of a row has no mark.
    has_whole_amount: bool,
    fault: Option<FileError>,
}

/// A row that is being read: its values, each with its line.
#[derive(Default)]
pub(super) struct OpenRow {
    line: u64,
    id: Option<String>,
    kind: String,
    day: Option<(String, u64)>,
    amount: Option<(String, u64)>,
    text: String,
    /// The names and memos that have words.
    words: Vec<String>,
    fault: Option<FileError>,
}

impl Reading {
    fn begin(&mut self, tag: &str, line: u64) -> Result<(), String> {
        if let Some(account) = self.accounts.last_mut() {
            account.is_in_closing = tag == "LEDGERBAL";
        }
        match tag {
            "STMTRS" | "CCSTMTRS" if self.accounts.len() == ACCOUNTS_MAX => {
                return Err(format!("mais de {ACCOUNTS_MAX} contas"));
            }
            "STMTRS" | "CCSTMTRS" => {
                self.is_in_account = true;
                self.accounts.push(OpenAccount { line, is_card: tag == "CCSTMTRS", ..OpenAccount::default() });
            }
            "STMTTRN" if self.row.is_some() => return Err("STMTTRN sem fim".to_owned()),
            "STMTTRN" if self.rows == LINES_MAX => return Err(format!("mais de {LINES_MAX} lançamentos")),
            "STMTTRN" => {
                self.rows += 1;
                self.row = Some(OpenRow { line, ..OpenRow::default() });
            }
            _ => {}
        }
        Ok(())
    }

    fn value(&mut self, tag: &str, value: String, at: u64) -> Result<(), String> {
        if let Some(row) = &mut self.row {
            row.value(tag, value, at);
            return Ok(());
        }
        if matches!(tag, "TRNAMT" | "FITID" | "DTPOSTED") {
            return Err(format!("{tag} fora de STMTTRN"));
        }
        if let Some(account) = self.accounts.last_mut().filter(|_| self.is_in_account) {
            account.value(tag, value, at);
        } else if tag == "DTSERVER" {
            self.made_on = moment_of(&value).map(|moment| moment.day);
        }
        Ok(())
    }

    fn end(&mut self, tag: &str, at: u64) -> Result<(), String> {
        match tag {
            "STMTTRN" => {
                let row = self.row.take().ok_or("STMTTRN sem início")?;
                if let Some(account) = self.accounts.last_mut().filter(|_| self.is_in_account) {
                    account.add(row, at);
                }
            }
            "STMTRS" | "CCSTMTRS" | "BANKTRANLIST" if self.row.is_some() => return Err("STMTTRN sem fim".to_owned()),
            "STMTRS" | "CCSTMTRS" => self.is_in_account = false,
            "OFX" => self.has_ended = true,
            _ => {}
        }
        Ok(())
    }
}

impl OpenRow {
    /// A row of a file without tags: its words, and its other texts.
    pub(super) fn of(
        line: u64,
        (day, amount): (Option<NaiveDate>, Centavos),
        (words, others): (String, String),
    ) -> Self {
        let (sign, centavos) = (if amount < Centavos::ZERO { "-" } else { "" }, amount.0.abs());
        let amount = format!("{sign}{}.{:02}", centavos / 100, centavos % 100);
        let (text, day) = (format!(" {words} {others}"), day.map(|day| (day.format("%Y%m%d").to_string(), line)));
        Self { line, day, amount: Some((amount, line)), text, words: vec![words], ..Self::default() }
    }

    fn value(&mut self, tag: &str, value: String, at: u64) {
        let is_again = match tag {
            "FITID" => self.id.is_some(),
            "DTPOSTED" => self.day.is_some(),
            "TRNAMT" => self.amount.is_some(),
            _ => false,
        };
        let defect = match tag {
            _ if is_again => Some(format!("{tag} repetido")),
            "FITID" if value.chars().count() > ID_LEN_MAX => Some("FITID longo demais".to_owned()),
            "CURRENCY" | "ORIGCURRENCY" | "CURSYM" if !is_reais(&value) => Some("a moeda deve ser BRL".to_owned()),
            _ => None,
        };
        if let Some(defect) = defect {
            self.fault.get_or_insert(FileError { line: at, defect });
            return;
        }
        match tag {
            "FITID" => self.id = Some(value),
            "DTPOSTED" => self.day = Some((value, at)),
            "TRNAMT" => self.amount = Some((value, at)),
            "TRNTYPE" => self.kind = value.to_ascii_uppercase(),
            "DTUSER" | "DTAVAIL" | "CURRENCY" | "ORIGCURRENCY" | "CURSYM" | "CURRATE" => {}
            _ => {
                self.text.push(' ');
                self.text.push_str(&value);
                if matches!(tag, "NAME" | "MEMO") && value.contains(char::is_alphabetic) {
                    self.words.push(value);
                }
            }
        }
    }
}

impl OpenAccount {
    /// An account of a file without tags, that begins with its balance of a day.
    pub(super) fn begun(
        line: u64,
        number: String,
        currency: String,
        (day, amount): (Option<NaiveDate>, Centavos),
    ) -> Self {
        let text = "SALDO INICIAL".to_owned();
        let balances = vec![BalanceRow { line, day, amount: Some(amount), text }];
        let currency = Some(currency).filter(|currency| !currency.is_empty());
        Self { line, number, currency, balances, ..Self::default() }
    }

    /// The same account with its period and the balance at its end. `is_partial` says that its last
    /// day is not over.
    pub(super) fn closed(
        self,
        first: Option<NaiveDate>,
        last: Option<NaiveDate>,
        amount: Centavos,
        is_partial: bool,
    ) -> Self {
        let [from, to] = [first, last].map(|day| day.map(|day| Moment { day, second: None }));
        Self { from, to, closing: (Some((amount, Some('.'))), last), is_unclear: is_partial, ..self }
    }

    fn value(&mut self, tag: &str, value: String, at: u64) {
        match tag {
            "CURDEF" => self.currency = Some(value),
            "ACCTID" if self.number.is_empty() => self.number = value,
            "DTSTART" => self.from = self.limit(tag, &value, at),
            "DTEND" => self.to = self.limit(tag, &value, at),
            "BALAMT" if self.is_in_closing => self.closing.0 = amount_of(&value),
            "DTASOF" if self.is_in_closing => self.closing.1 = moment_of(&value).map(|moment| moment.day),
            _ => {}
        }
    }

    /// A limit of the period. One of zeros or of the century before, such as 1970-01-01, stands
    /// for none: programs write it that do not know the period. So does the moment of the download
    /// without leading zeros, which Santander writes: it could be several.
    fn limit(&mut self, tag: &str, value: &str, at: u64) -> Option<Moment> {
        let moment = moment_of(value);
        let digits = value.bytes().take_while(u8::is_ascii_digit).count();
        self.is_unclear |= moment.is_none() && (10..=13).contains(&digits) && !is_zeros(value);
        if moment.is_none() && !is_zeros(value) && !self.is_unclear {
            self.fault.get_or_insert(FileError { line: at, defect: format!("{tag} inválido") });
        }
        moment.filter(|moment| moment.day >= NaiveDate::from_ymd_opt(2000, 1, 1).unwrap_or_default())
    }

    pub(super) fn add(&mut self, row: OpenRow, at: u64) {
        let added = self.placed(row, at);
        if let Err(fault) = added {
            self.fault.get_or_insert(fault);
        }
    }

    /// Puts a row among the lines or the balances. A row without money is no movement, and one
    /// whose first text names a balance.
    fn placed(&mut self, row: OpenRow, at: u64) -> Result<(), FileError> {
        let OpenRow { line, id, kind, day, amount, text, words, fault } = row;
        if let Some(fault) = fault {
            return Err(fault);
        }
        let refused = |line: u64, defect: &str| FileError { line, defect: defect.to_owned() };
        let found = amount.as_ref().and_then(|(text, _)| amount_of(text));
        let is_blank = amount.as_ref().is_some_and(|(text, _)| !text.contains(char::is_alphanumeric));
        let has_no_money = is_blank || found.is_some_and(|(amount, _)| amount == Centavos::ZERO);
        if has_no_money || words.first().is_some_and(|text| is_balance(text)) {
            let day = day.and_then(|(text, _)| moment_of(&text)).map(|moment| moment.day);
            let amount = found.map(|(amount, _)| amount);
            self.balances.push(BalanceRow { line, day, amount, text: text.trim().to_owned() });
            return Ok(());
        }
        let (day, day_at) = day.ok_or_else(|| refused(at, "STMTTRN sem DTPOSTED"))?;
        let day = moment_of(&day).ok_or_else(|| refused(day_at, "DTPOSTED inválido"))?.day;
        let (_, amount_at) = amount.ok_or_else(|| refused(at, "STMTTRN sem TRNAMT"))?;
        let (amount, mark) = found.ok_or_else(|| refused(amount_at, "TRNAMT deve ter a forma -1234.56 ou -1234,56"))?;
        if mark.is_some() && self.decimal_mark.is_some() && mark != self.decimal_mark {
            return Err(refused(amount_at, "TRNAMT com outro separador decimal que antes"));
        }
        self.decimal_mark = mark.or(self.decimal_mark);
        self.has_whole_amount |= mark.is_none();
        let id = id.unwrap_or_default();
        let may_be_balance = words.iter().any(|text| is_balance(text));
        self.lines.push((StatementLine { line, id, day, amount, text, may_be_balance }, kind));
        Ok(())
    }

    /// The account, when the file is read whole up to the line `last`.
    fn finish(self, last: u64, made_on: Option<NaiveDate>) -> Account {
        let (number, is_card, lines, line) = (self.number.clone(), self.is_card, self.lines.len(), self.line);
        Account { number, is_card, lines, line, statement: self.statement(last, made_on) }
    }

    fn statement(self, last: u64, made_on: Option<NaiveDate>) -> Result<BankStatement, FileError> {
        let refused = |line: u64, defect: String| FileError { line, defect };
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if self.number.is_empty() {
            return Err(refused(last, "falta ACCTID".to_owned()));
        }
        if self.currency.is_some_and(|currency| !is_reais(&currency)) {
            return Err(refused(last, "a moeda (CURDEF) deve ser BRL".to_owned()));
        }
        let signs_by_type = are_signs_by_type(&self.lines);
        let lines = signed(self.lines, signs_by_type)?;
        let days: BTreeSet<NaiveDate> = lines.iter().map(|line| line.day).collect();
        let missing = |name: &str| refused(last, format!("falta {name}"));
        // Banks that do not state the period write the moment of the download there.
        let moment = self.to.filter(|to| self.from == self.to && to.second.is_some_and(|second| second > 0));
        let made_on = made_on.or(moment.map(|moment| moment.day));
        let is_stated = moment.is_none_or(|moment| days.iter().all(|day| *day == moment.day));
        let [from, to] = [self.from, self.to].map(|limit| limit.filter(|_| is_stated).map(|limit| limit.day));
        let to = to.or(days.last().copied()).ok_or_else(|| missing("DTEND"))?;
        let from = from.or(days.first().copied().map(|first| first.min(to)));
        let from = from.ok_or_else(|| missing("DTSTART"))?;
        if !(0..PERIOD_DAYS_MAX).contains(&(to - from).num_days()) {
            return Err(refused(last, format!("o período deve ter de 1 a {PERIOD_DAYS_MAX} dias")));
        }
        let is_far = |line: &&StatementLine| (from - line.day).max(line.day - to).num_days() > PERIOD_DAYS_MAX;
        if let Some(line) = lines.iter().find(is_far) {
            return Err(refused(line.line, format!("DTPOSTED a mais de {PERIOD_DAYS_MAX} dias do período")));
        }
        let ends_at_midnight = self.to.is_some_and(|to| to.second == Some(0));
        let is_made_within = made_on.is_some_and(|made_on| match moment {
            Some(_) => made_on <= to,
            None => is_cut_short(made_on, (from, to), &days),
        });
        let to = if is_made_within { made_on.map_or(to, |made_on| to.min(made_on)) } else { to };
        let is_last_day_open = is_made_within || self.is_unclear || ends_at_midnight && !days.contains(&to);
        // Some banks leave the mark out there, and write centavos.
        let is_clear = |(amount, mark): &(Centavos, Option<char>)| {
            mark.is_some() || self.has_whole_amount || *amount == Centavos::ZERO
        };
        let closing = self.closing.0.filter(is_clear).map(|(amount, _)| ClosingBalance { amount, day: self.closing.1 });
        Ok(BankStatement { from, to, is_last_day_open, lines, balances: self.balances, signs_by_type, closing })
    }
}

/// Whether the types of lines say which way money went: some banks and converters write what the
/// account pays without a sign, or with that of a card. So it is where every `DEBIT` is above zero,
/// and nothing but a `CREDIT` is below.
fn are_signs_by_type(lines: &[(StatementLine, String)]) -> bool {
    let has_sign = |(line, kind): &(StatementLine, String)| line.amount < Centavos::ZERO && kind != "CREDIT";
    lines.iter().any(|(_, kind)| kind == "DEBIT") && !lines.iter().any(has_sign)
}

/// The lines, with the signs of their amounts: by their types, or as they stand. Error: a line
/// whose type could be either.
fn signed(lines: Vec<(StatementLine, String)>, by_type: bool) -> Result<Vec<StatementLine>, FileError> {
    let signed = |(line, kind): (StatementLine, String)| {
        let amount = Centavos(line.amount.0.abs());
        match kind.as_str() {
            _ if !by_type => Ok(line),
            "DEBIT" => Ok(StatementLine { amount: -amount, ..line }),
            "CREDIT" => Ok(StatementLine { amount, ..line }),
            _ => {
                let defect = "os débitos do extrato não têm sinal, e TRNTYPE não é CREDIT nem DEBIT".to_owned();
                Err(FileError { line: line.line, defect })
            }
        }
    };
    lines.into_iter().map(signed).collect()
}

/// Whether a file was made before its period was over: banks write the period that was asked for.
/// A day before the last line is not that of the making. A period of that one day, with lines of
/// other days, is written by programs that do not know the period.
fn is_cut_short(made_on: NaiveDate, (from, to): (NaiveDate, NaiveDate), days: &BTreeSet<NaiveDate>) -> bool {
    let is_believable = days.last().is_none_or(|last| *last <= made_on);
    let is_day_of_making = from == to && to == made_on && days.iter().any(|day| *day != to);
    is_believable && (from..to).contains(&made_on) || is_day_of_making
}

/// The accounts, in order; statements of one account that follow each other are one. What lies
/// between them is in neither, so a gap is a fault.
fn merged(accounts: Vec<OpenAccount>) -> Vec<OpenAccount> {
    let mut merged: Vec<OpenAccount> = Vec::new();
    for account in accounts {
        let is_same = |known: &&mut OpenAccount| {
            known.is_card == account.is_card && is_same_account(&known.number, &account.number)
        };
        let Some(known) = merged.iter_mut().find(is_same).filter(|known| !known.number.is_empty()) else {
            merged.push(account);
            continue;
        };
        let [known_days, days] = [[known.from, known.to], [account.from, account.to]].map(|days| {
            let [from, to] = days.map(|moment| moment.map(|moment| moment.day));
            from.zip(to)
        });
        let is_next = known_days.zip(days).is_some_and(|((known_from, known_to), (from, to))| {
            let touches = |end: NaiveDate, begin: NaiveDate| end.succ_opt().is_some_and(|next| begin <= next);
            touches(known_to, from) && touches(to, known_from)
        });
        let gap = || FileError { line: account.line, defect: "a mesma conta com períodos separados".to_owned() };
        let closed_on = |account: &OpenAccount| account.closing.1.or(account.to.map(|to| to.day));
        if known.closing.0.is_none() || account.closing.0.is_some() && closed_on(&account) >= closed_on(known) {
            known.closing = account.closing;
        }
        let fault = account.fault.or_else(|| (!is_next).then(gap));
        known.fault = known.fault.take().or(fault);
        let by_day = |moment: &Moment| (moment.day, moment.second);
        known.from = known.from.into_iter().chain(account.from).min_by_key(by_day);
        known.to = known.to.into_iter().chain(account.to).max_by_key(by_day);
        known.currency = known.currency.take().or(account.currency);
        known.has_whole_amount |= account.has_whole_amount;
        known.is_unclear |= account.is_unclear;
        known.lines.extend(account.lines);
        known.balances.extend(account.balances);
    }
    merged
}

fn is_reais(currency: &str) -> bool {
    REAIS.iter().any(|known| known.eq_ignore_ascii_case(currency))
}

fn is_zeros(text: &str) -> bool {
    let (moment, _) = text.split_once(['[', '.']).unwrap_or((text, ""));
    moment.trim().bytes().all(|byte| byte == b'0')
}

/// Whether a text begins with the word for a balance: `SALDO ANTERIOR`, `(=) Saldo do dia`,
/// `SDO CTA/APL`, `S A L D O`.
fn is_balance(text: &str) -> bool {
    let mut words = text.split(|character: char| !character.is_alphabetic()).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return false };
    let is_word = |known: &str| first.eq_ignore_ascii_case(known);
    ["SALDO", "SALDOS", "SDO", "SLD"].into_iter().any(is_word)
        || is_word("S") && words.take(4).map(str::to_ascii_uppercase).eq(["A", "L", "D", "O"])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SGML: &str = "OFXHEADER:100\r\nDATA:OFXSGML\r\nENCODING:USASCII\r\n\r\n<OFX>\r\n<SIGNONMSGSRSV1><SONRS>\
        <STATUS><CODE>0<SEVERITY>INFO</STATUS><DTSERVER>20261130</SONRS></SIGNONMSGSRSV1>\r\n<BANKMSGSRSV1><STMTTRNRS>\
        <STMTRS>\r\n<CURDEF>BRL\r\n<BANKACCTFROM><BANKID>001<ACCTID>123-4<ACCTTYPE>CHECKING</BANKACCTFROM>\r\n\
        <BANKTRANLIST><DTSTART>20261101<DTEND>20261130235959[-3:BRT]\r\n<STMTTRN>\r\n<TRNTYPE>CREDIT\r\n\
        <DTPOSTED>20261130120000[-3:BRT]\r\n<TRNAMT>97,01\r\n<FITID>A1\r\n<CHECKNUM>\r\n<MEMO>Jo\u{e3}o &amp; Cia\r\n\
        </STMTTRN>\r\n<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20261129<TRNAMT>-1234,5<FITID>A2</STMTTRN>\r\n</BANKTRANLIST>\r\n\
        <LEDGERBAL><BALAMT>0.00<DTASOF>20261130</LEDGERBAL></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>\r\n";

    const XML: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<?OFX OFXHEADER=\"200\" VERSION=\"211\"?>\n<OFX>\n\
        <BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>BRL</CURDEF><BANKACCTFROM><ACCTID>123-4</ACCTID></BANKACCTFROM>\n\
        <BANKTRANLIST><DTSTART>20261101</DTSTART><DTEND>20261130</DTEND>\n<STMTTRN><DTPOSTED>20261130</DTPOSTED>\
        <TRNAMT>97.01</TRNAMT><FITID>A1</FITID><CHECKNUM/><MEMO>Jo\u{e3}o &#38; Cia</MEMO></STMTTRN>\n\
        <STMTTRN><DTPOSTED>20261129</DTPOSTED><TRNAMT>-1234.5</TRNAMT><FITID>A2</FITID></STMTTRN></BANKTRANLIST>\n\
        </STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>";

    /// The statement of a file of one account.
    fn read(file: &[u8]) -> Result<BankStatement, FileError> {
        let [account] = <[Account; 1]>::try_from(super::read(file)?).unwrap();
        account.statement
    }

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, day).unwrap()
    }

    #[test]
    fn both_versions_are_read_alike() {
        let line = |line, id: &str, on, amount, text: &str| StatementLine {
            line,
            id: id.to_owned(),
            day: day(on),
            amount: Centavos(amount),
            text: text.to_owned(),
            may_be_balance: false,
        };
        let expected = |first, second, closing| BankStatement {
            from: day(1),
            to: day(30),
            is_last_day_open: false,
            balances: Vec::new(),
            signs_by_type: false,
            closing,
            lines: vec![line(first, "A1", 30, 9_701, " João & Cia"), line(second, "A2", 29, -123_450, "")],
        };
        let closing = Some(ClosingBalance { amount: Centavos::ZERO, day: Some(day(30)) });
        assert_eq!(read(SGML.as_bytes()).unwrap(), expected(11, 19, closing));
        assert_eq!(read(XML.as_bytes()).unwrap(), expected(6, 7, None));
        let latin: Vec<u8> = SGML.chars().map(|character| character as u8).collect();
        assert!(str::from_utf8(&latin).is_err());
        assert_eq!(read(&latin).unwrap(), expected(11, 19, closing), "in ISO 8859-1");
    }

    #[test]
    fn a_defect_is_named_by_its_line() {
        for (from, to, line, defect) in [
            ("<OFX>", "<!DOCTYPE x>\r\n<OFX>", 5, "declarações"),
            ("<OFX>", "<!ENTITY a SYSTEM \"file:///etc/passwd\"><OFX>", 5, "declarações"),
            ("<MEMO>", "<MEMO><!ENTITY b \"c\">", 17, "declarações"),
            ("<CHECKNUM>", "<CHECKNUM/>x", 16, "texto fora"),
            ("&amp;", "&x;", 17, "entidade"),
            ("&amp;", "&#0;", 17, "entidade"),
            ("97,01", "97.01", 19, "separador"),
            ("97,01", "1.234", 14, "TRNAMT"),
            ("97,01", "1e3", 14, "TRNAMT"),
            ("97,01", "9999999999999", 14, "TRNAMT"),
            ("97,01", "R$ 97,01", 14, "TRNAMT"),
            ("20261130120000[-3:BRT]", "30/11/2026", 13, "DTPOSTED"),
            ("20261130120000[-3:BRT]", "20261131", 13, "DTPOSTED"),
            ("20261130120000[-3:BRT]", "20281130", 11, "366 dias do período"),
            ("20261130120000[-3:BRT]", "00000000", 13, "DTPOSTED"),
            ("20261130120000[-3:BRT]", "20261130250000", 13, "DTPOSTED"),
            ("<TRNAMT>97,01", "<TRNAMT>97,01<TRNAMT>1", 14, "repetido"),
            ("</STMTTRN>\r\n<STMTTRN>", "<STMTTRN>", 18, "STMTTRN"),
            ("</OFX>", "", 21, "termina"),
            ("<CURDEF>BRL", "<CURDEF>USD", 21, "BRL"),
            ("</BANKTRANLIST>", "</X>", 20, "</X>"),
            ("<ACCTID>123-4", "", 21, "ACCTID"),
            ("<DTSTART>20261101", "<DTSTART>2026-11-01", 10, "DTSTART"),
        ] {
            let error = read(SGML.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(error.defect.contains(defect) && error.line == line, "{to}: {error}");
        }
        let deep = format!("{}{}", "<A>".repeat(33), "</A>".repeat(33));
        assert!(read(deep.as_bytes()).unwrap_err().defect.contains("32"));
        for other in ["", "x", "{}", "batch,paid_on\n", "\u{0}\u{1}<", "<OFX", "<>", "<OFX></OFX>", "<OFX/>"] {
            assert!(super::read(other.as_bytes()).is_err(), "{other}");
        }
    }

    /// A statement with these rows and this period.
    fn statement(period: &str, rows: &str) -> BankStatement {
        let text = format!("<OFX><STMTRS><CURDEF>BRL<ACCTID>1{period}{rows}</STMTRS></OFX>");
        read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn row(day: u32, amount: &str, text: &str) -> String {
        format!("<STMTTRN><DTPOSTED>202611{day:02}<TRNAMT>{amount}<FITID>{day}<MEMO>{text}</STMTTRN>")
    }

    #[test]
    fn the_last_day_is_open_where_the_file_does_not_tell_that_it_is_over() {
        for (period, line, compared) in [
            ("<DTSTART>20261101<DTEND>20261130", 29, Some((1, 30))),
            ("<DTSTART>20261101<DTEND>20261130235959[-3:BRT]", 29, Some((1, 30))),
            ("<DTSTART>20261101<DTEND>20261130000000[-3:BRT]", 29, Some((1, 29))),
            ("<DTSTART>20261101<DTEND>20261130030000[0:GMT]", 29, Some((1, 29))),
            ("<DTSTART>20261101<DTEND>20261130000000[0:GMT]", 29, Some((1, 29))),
            ("<DTSTART>20261101<DTEND>20261130000000[-3:BRT]", 30, Some((1, 30))),
            // The moment of the download: its day was not over, and no period is stated.
            ("<DTSTART>20261130153000[-3:BRT]<DTEND>20261130153000[-3:BRT]", 29, Some((29, 29))),
            ("<DTSTART>20261130153000[-3:BRT]<DTEND>20261130153000[-3:BRT]", 30, None),
            ("<DTSTART>20261128153000<DTEND>20261128153000", 29, None),
            // Without leading zeros it could be several, and nothing says whether a day was over.
            ("<DTSTART>2026112915034[-3:GMT]<DTEND>2026112915034[-3:GMT]", 29, None),
            ("<DTSTART>20261101<DTEND>2026113010000[-03:EST]", 29, Some((1, 28))),
            ("<DTSTART>2026-11-01T00:00:00Z<DTEND>2026-11-30T23:59:59Z", 29, Some((1, 30))),
            ("<DTSTART>2026-11-01T00:00:00Z<DTEND>2026-11-30T00:00:00Z", 29, Some((1, 29))),
            ("<DTSTART>19700101<DTEND>20261130", 29, Some((29, 30))),
            ("<DTSTART>00000000<DTEND>20261130", 29, Some((29, 30))),
            ("<DTEND>20261130", 29, Some((29, 30))),
            ("<DTSTART>20261101", 29, Some((1, 29))),
            ("", 29, Some((29, 29))),
        ] {
            let read = statement(period, &row(line, "1,00", "PIX"));
            assert_eq!(read.compared(), compared.map(|(from, to)| (day(from), day(to))), "{period} {line}");
        }
        let outside = statement("<DTSTART>20261127<DTEND>20261127", &row(3, "1,00", "CHEQUE"));
        assert_eq!((outside.compared(), outside.span()), (Some((day(27), day(27))), (day(3), day(27))));
    }

    /// Banks write the period that was asked for, also where it ends after the file was made.
    #[test]
    fn no_day_counts_as_compared_that_was_not_over_when_the_file_was_made() {
        for (made, period, line, compared) in [
            ("20261115", "<DTSTART>20261101<DTEND>20261130", 13, Some((1, 14))),
            ("20261115180000[-3:BRT]", "<DTSTART>20261101<DTEND>20261130235959[-3:BRT]", 15, Some((1, 14))),
            ("20261101", "<DTSTART>20261101<DTEND>20261130", 1, None),
            ("20261130", "<DTSTART>20261101<DTEND>20261130", 13, Some((1, 30))),
            ("20261201", "<DTSTART>20261101<DTEND>20261130", 13, Some((1, 30))),
            ("00000000", "<DTSTART>20261101<DTEND>20261130", 13, Some((1, 30))),
            ("20261003", "<DTSTART>20261101<DTEND>20261130", 13, Some((1, 30))),
            ("20261105", "<DTSTART>20261101<DTEND>20261130", 13, Some((1, 30))),
            ("20261129113942", "<DTSTART>20261129<DTEND>20261129", 2, None),
            ("20261129113942", "<DTSTART>20261129<DTEND>20261129", 29, Some((29, 29))),
            ("20261130", "<DTSTART>20261129<DTEND>20261129", 2, Some((29, 29))),
            // A day of a bank that writes noon everywhere.
            ("20261130120000", "<DTSTART>20261129120000<DTEND>20261129120000", 29, Some((29, 29))),
            ("20261129120000", "<DTSTART>20261129120000<DTEND>20261129120000", 29, None),
            ("00000000000000", "<DTSTART>20261129120000<DTEND>20261129120000", 29, None),
            // The day of the download, and no period.
            ("00000000000000", "<DTSTART>20261129120000<DTEND>20261129120000", 2, Some((2, 2))),
            ("20261129153012[-3:BRT]", "<DTSTART>20261129153012[-3:BRT]<DTEND>20261129153012[-3:BRT]", 2, Some((2, 2))),
            ("00000000000000", "<DTSTART>20261110120000<DTEND>20261110120000", 13, None),
        ] {
            let account = format!("<CURDEF>BRL<ACCTID>1{period}{}", row(line, "1,00", "PIX"));
            let file = format!("<OFX><SONRS><DTSERVER>{made}</SONRS><STMTRS>{account}</STMTRS></OFX>");
            let read = read(file.as_bytes()).unwrap();
            assert_eq!(read.compared(), compared.map(|(from, to)| (day(from), day(to))), "{made} {period} {line}");
        }
    }

    /// The balance of what may be spent (`AVAILBAL`) is another one.
    #[test]
    fn the_closing_balance_is_that_of_the_ledger() {
        let period = "<DTSTART>20261101<DTEND>20261130";
        for (rows, expected) in [
            ("<LEDGERBAL><BALAMT>-1.234,56<DTASOF>20261130</LEDGERBAL>", Some((-123_456, Some(day(30))))),
            ("<LEDGERBAL><BALAMT>0,00<DTASOF>00000000</LEDGERBAL>", Some((0, None))),
            ("<LEDGERBAL><BALAMT>7.0<DTASOF>20261129120000[-3:BRT]</LEDGERBAL>", Some((700, Some(day(29))))),
            ("<LEDGERBAL><BALAMT>7.0</LEDGERBAL><AVAILBAL><BALAMT>9<DTASOF>20261130</AVAILBAL>", Some((700, None))),
            // Without its mark it may be of centavos, unless the bank writes none in rows either.
            (&(row(5, "1", "PIX") + "<LEDGERBAL><BALAMT>12345</LEDGERBAL>"), Some((1_234_500, None))),
            (&(row(5, "1.00", "PIX") + "<LEDGERBAL><BALAMT>12345</LEDGERBAL>"), None),
            ("<LEDGERBAL><BALAMT>12345</LEDGERBAL>", None),
            ("<AVAILBAL><BALAMT>9<DTASOF>20261130</AVAILBAL>", None),
            ("<LEDGERBAL><BALAMT><DTASOF>20261130</LEDGERBAL>", None),
            ("<LEDGERBAL><BALAMT>1.234<DTASOF>20261130</LEDGERBAL>", None),
        ] {
            let closing = statement(period, rows).closing.map(|closing| (closing.amount.0, closing.day));
            assert_eq!(closing, expected, "{rows}");
        }
    }

    #[test]
    fn the_type_says_which_way_money_went_where_debits_have_no_sign() {
        for (rows, expected) in [
            ([("CREDIT", "9.00"), ("DEBIT", "2.00")].as_slice(), Ok(vec![900, -200])),
            (&[("Debit", "2.00")], Ok(vec![-200])),
            // As of a card: every sign is turned.
            (&[("CREDIT", "-9.00"), ("DEBIT", "2.00")], Ok(vec![900, -200])),
            // One sign says that there are signs, and they are right whatever the types.
            (&[("CREDIT", "9.00"), ("DEBIT", "-2.00"), ("DEBIT", "1.00")], Ok(vec![900, -200, 100])),
            (&[("CREDIT", "9.00"), ("FEE", "-2.00"), ("DEBIT", "1.00")], Ok(vec![900, -200, 100])),
            (&[("CREDIT", "-9.00"), ("OTHER", "2.00")], Ok(vec![-900, 200])),
            // A fee could be either, and a balance moves no money.
            (&[("DEBIT", "2.00"), ("FEE", "1.00")], Err("TRNTYPE")),
        ] {
            let line = |(kind, amount): &(&str, &str)| {
                format!("<STMTTRN><TRNTYPE>{kind}<DTPOSTED>20261105<TRNAMT>{amount}<FITID>1<MEMO>X</STMTTRN>")
            };
            let balance = "<STMTTRN><TRNTYPE>OTHER<DTPOSTED>20261105<TRNAMT>1.00<MEMO>SALDO</STMTTRN>";
            let rows: String = rows.iter().map(line).collect();
            let file = format!("<OFX><STMTRS><ACCTID>1{rows}{balance}</STMTRS></OFX>");
            let found = read(file.as_bytes());
            let by_type = found.as_ref().is_ok_and(|read| read.signs_by_type);
            assert_eq!(by_type, expected.is_ok() && !rows.contains("-2.00") && !rows.contains("OTHER"), "{file}");
            let found = found.map(|read| read.lines.iter().map(|line| line.amount.0).collect());
            match (found, expected) {
                (Err(error), Err(named)) => assert!(error.defect.contains(named), "{error}"),
                (found, expected) => {
                    assert_eq!(found, expected.map_err(|_| FileError { line: 0, defect: String::new() }), "{file}")
                }
            }
        }
    }

    #[test]
    fn rows_of_balances_are_no_movements() {
        let period = "<DTSTART>20261101<DTEND>20261130";
        for text in ["SALDO ANTERIOR", "(=) Saldo do dia", "S A L D O", "SDO CTA/APL AUTOMATICAS", "SALDO-FINAL"] {
            let read = statement(period, &row(5, "1.234,56", text));
            assert_eq!((read.lines.len(), read.balances[0].amount), (0, Some(Centavos(123_456))), "{text}");
        }
        for rows in [
            row(5, "0.00", "APLICACAO"),
            row(5, " . ", "APLICACAO"),
            "<STMTTRN><DTPOSTED>00000000<TRNAMT>0,00<MEMO>RESUMO</STMTTRN>".to_owned(),
            "<STMTTRN><DTPOSTED>00000000<TRNAMT>97,00<MEMO>SALDO TOTAL</STMTTRN>".to_owned(),
            "<STMTTRN><MEMO>Saldo</STMTTRN>".to_owned(),
        ] {
            assert_eq!(statement(period, &rows).balances.len(), 1, "{rows}");
        }
        for text in ["RESGATE DE SALDO", "SALDOVAR COMERCIO", "PIX SALDO DO PEDIDO", "SALARIO", "S A LDO"] {
            assert_eq!(statement(period, &row(5, "97,00", text)).balances, [], "{text}");
        }
        let of_payer = row(5, "97,00", "SALDO DO PEDIDO").replace("<MEMO>", "<NAME>PIX RECEBIDO<MEMO>");
        assert!(statement(period, &of_payer).lines[0].may_be_balance);
    }

    #[test]
    fn a_file_may_have_several_accounts_and_cards() {
        let account = |name: &str, number: &str, rows: &str| {
            format!("<{name}><CURDEF>BRL<ACCTID>{number}<DTSTART>20261101<DTEND>20261130{rows}</{name}>")
        };
        let file = |accounts: &[String]| format!("<OFX>{}</OFX>", accounts.concat());
        let line = row(5, "1,00", "PIX");
        let card = account("CCSTMTRS", "4111", &line).replace("<TRNAMT>1,00", "<TRNAMT>x");
        let text = file(&[account("STMTRS", "1-0", &line), card, account("STMTRS", "2-0", "")]);
        let found = super::read(text.as_bytes()).unwrap();
        let seen: Vec<_> = found.iter().map(|account| (account.number.as_str(), account.is_card)).collect();
        assert_eq!(seen, [("1-0", false), ("4111", true), ("2-0", false)]);
        assert!(found[0].statement.is_ok() && found[1].statement.is_err());
        let next = |number: &str, from: &str, to: &str| {
            account("STMTRS", number, &line).replace("20261101", from).replace("20261130", to)
        };
        let text = file(&[account("STMTRS", "01-0", &line), next("1-0", "20261201", "20261231")]);
        let both = read(text.as_bytes()).unwrap();
        assert_eq!((both.lines.len(), both.from, both.to.to_string()), (2, day(1), "2026-12-31".to_owned()));
        // The newest balance counts, whichever stands first.
        let [november, december] = ["30", "31"].map(|day| format!("{line}<LEDGERBAL><BALAMT>{day},00</LEDGERBAL>"));
        let later = account("STMTRS", "1-0", &december).replace("20261101", "20261201").replace("20261130", "20261231");
        let earlier = account("STMTRS", "1-0", &november);
        for both in [[earlier.clone(), later.clone()], [later, earlier]] {
            assert_eq!(read(file(&both).as_bytes()).unwrap().closing.unwrap().amount, Centavos(3_100));
        }
        let text = file(&[account("STMTRS", "1-0", &line), next("1-0", "20261202", "20261231")]);
        assert!(read(text.as_bytes()).unwrap_err().defect.contains("separados"));
        let dollars = account("STMTRS", "3", "").replace("BRL", "USD");
        let found = super::read(file(&[account("STMTRS", "1", ""), dollars]).as_bytes()).unwrap();
        assert!(found[0].statement.is_ok() && found[1].statement.is_err());
        assert!(is_same_account("00012.345-6", "123456") && !is_same_account("1", "10"));
    }

    /// Statements of 20 to 30 rows in the forms of banks, with invented figures: movements, money
    /// in and out, balances, and the days that count as compared.
    #[test]
    fn the_forms_of_banks_are_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/statements");
        let mut seen = String::new();
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            for account in super::read(&std::fs::read(&path).unwrap()).unwrap() {
                let number = account.number;
                let read = account.statement.unwrap_or_else(|error| panic!("{name}: {error}"));
                let sum = |sign: i64| -> i64 {
                    let of_sign = read.lines.iter().filter(|line| line.amount.0 * sign > 0);
                    of_sign.map(|line| line.amount.0).sum()
                };
                let days = read.compared().map_or("none".to_owned(), |(from, to)| format!("{from}..{to}"));
                let (lines, balances) = (read.lines.len(), read.balances.len());
                seen += &format!("{name} {number} {lines} {} {} {balances} {days}\n", sum(1), sum(-1));
            }
        }
        assert_eq!(seen, EXPECTED);
    }

    const EXPECTED: &str = "\
        banco-do-brasil 12345-6 28 2323949 -13843162 2 2026-11-01..2026-11-30\n\
        bradesco-without-period 0123457 20 8029466 -10569193 0 2026-11-03..2026-11-25\n\
        bradesco 0123456 29 6738279 -4609477 1 2026-11-01..2026-11-30\n\
        c6 123450987 20 8029466 -10569193 0 2026-11-03..2026-11-25\n\
        caixa 0001003000012345 28 3949892 -4053183 2 2026-11-01..2026-11-30\n\
        cnab240 0000001234567 5 1948200 -123706 2 2026-11-27..2026-11-30\n\
        converted 1 30 6275329 -7838741 0 2026-11-03..2026-11-30\n\
        inter 123456789 30 9933532 -9740285 0 2026-11-01..2026-11-30\n\
        itau-balance-in-centavos 1234567891 20 8029466 -10569193 2 2026-11-01..2026-11-26\n\
        itau 1234567890 28 4133428 -14602285 2 2026-11-01..2026-11-30\n\
        nubank 1234567-8 30 8377093 -8377093 0 2026-11-01..2026-11-30\n\
        pagbank 1234567-8 20 8029466 -10569193 0 2026-11-01..2026-11-29\n\
        santander-without-zeros 0130012345678 20 8029466 -10569193 0 2026-11-03..2026-11-25\n\
        santander 013001234567 30 9823607 -5276825 0 2026-11-03..2026-11-26\n\
        several-accounts 00123-4 18 2530662 -6816572 0 2026-11-03..2026-11-30\n\
        several-accounts 00567-8 8 4242861 -3325711 0 2026-11-03..2026-11-30\n\
        several-accounts 4111********1111 4 3374 -1827299 0 2026-11-03..2026-11-30\n\
        sicoob-iso-dates 4321-0 20 8029466 -10569193 0 2026-11-01..2026-11-29\n\
        sicoob 98765-4 25 6359582 -9810846 5 2026-11-01..2026-11-30\n\
        sicredi 12345-0 30 15435871 -10658432 0 2026-11-01..2026-11-30\n\
        ";
}
