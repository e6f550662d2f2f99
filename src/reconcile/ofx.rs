//! Bank statements in OFX: version 1 (SGML, whose values have no closing tags) and version 2 (XML).
//!
//! Only the parts that a reconciliation needs are read: one account in BRL, the period and the
//! lines. A file is refused that has declarations (`<!DOCTYPE`, `<!ENTITY`, `<![CDATA[`, comments),
//! entities other than the five of XML, `&nbsp;` and numbers of characters, or nesting of more than
//! 32 elements: nothing in it can refer to another place or grow when it is read.
//!
//! No library is used: those for XML cannot read version 1, and those for OFX take amounts as
//! binary fractions.

use std::borrow::Cow;

use chrono::NaiveDate;
use ledger::money::{AMOUNT_MAX, Centavos};

use super::finding::FileError;

/// Lines of a statement at most.
pub const LINES_MAX: usize = 100_000;
/// Longest period of a statement, days.
pub const PERIOD_DAYS_MAX: i64 = 366;
/// Elements within each other at most.
const DEPTH_MAX: usize = 32;
/// Bytes of a value at most.
const VALUE_BYTES_MAX: usize = 4_096;
/// Characters of the bank's id of a line at most (OFX: 255).
const ID_LEN_MAX: usize = 255;

/// A statement of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BankStatement {
    /// The account's number, as the bank writes it.
    pub account: String,
    /// First day of the period.
    pub from: NaiveDate,
    /// Last day of the period.
    pub to: NaiveDate,
    /// The lines, in the order of the file.
    pub lines: Vec<StatementLine>,
}

/// One movement on the account, as the bank tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementLine {
    /// Number of the line of the file on which it begins, from 1.
    pub line: u64,
    /// The bank's id of it (`FITID`), unique in the account.
    pub id: String,
    /// The day, in the bank's own time zone.
    pub day: NaiveDate,
    /// How much, centavos; below zero when the account pays.
    pub amount: Centavos,
    /// Its texts: number, reference, name and memo.
    pub text: String,
}

/// Reads a file whole. Errors: the first line with a defect.
pub fn read(file: &[u8]) -> Result<BankStatement, FileError> {
    let text = decoded(file);
    let mut tokens = Tokens::new(&text)?;
    let mut reading = Reading::default();
    let mut open: Vec<Cow<'_, str>> = Vec::new();
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
            reading.end(&tag).map_err(refused)?;
        } else if let Some(value) = value {
            reading.value(&tag, &value, line).map_err(refused)?;
            reading.last_value = tag.into_owned();
        } else {
            reading.begin(&tag, line).map_err(refused)?;
            open.push(tag);
            if open.len() > DEPTH_MAX {
                return Err(refused(format!("mais de {DEPTH_MAX} elementos um dentro do outro")));
            }
        }
    }
    if !open.is_empty() || !reading.has_ended {
        return Err(FileError { line: last, defect: "o arquivo termina antes de </OFX>".to_owned() });
    }
    reading.finish().map_err(|(line, defect)| FileError { line: line.unwrap_or(last), defect })
}

/// The text of a file: UTF-8 or, where it is not, ISO 8859-1, of which Brazilian banks use the
/// printable part.
fn decoded(file: &[u8]) -> Cow<'_, str> {
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    match str::from_utf8(file) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(file.iter().copied().map(char::from).collect()),
    }
}

/// The name of an element as an error shows it: at most 20 characters, none that is not printable.
fn shown(tag: &str) -> String {
    tag.chars().filter(|character| character.is_ascii_graphic()).take(20).collect()
}

/// A tag, and the value behind it.
struct Token<'a> {
    line: u64,
    tag: Cow<'a, str>,
    /// The text up to the next tag; none where that is blank.
    value: Option<String>,
    is_end: bool,
}

struct Tokens<'a> {
    rest: &'a str,
    line: u64,
}

impl<'a> Tokens<'a> {
    /// Passes over the head of a file: lines `NAME:VALUE` of version 1.
    fn new(text: &'a str) -> Result<Self, FileError> {
        let refused = || FileError { line: 1, defect: "não é OFX".to_owned() };
        let begin = text.find('<').ok_or_else(refused)?;
        let head = &text[..begin];
        let is_head =
            |part: &str| part.split_once(':').is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_uppercase()));
        if !head.split_whitespace().all(is_head) {
            return Err(refused());
        }
        Ok(Self { rest: &text[begin..], line: 1 + newlines(head) })
    }

    fn next_token(&mut self) -> Result<Option<Token<'a>>, FileError> {
        loop {
            let line = self.line;
            let refused = |defect: &str| FileError { line, defect: defect.to_owned() };
            let Some(begun) = self.rest.strip_prefix('<') else {
                return if self.rest.is_empty() { Ok(None) } else { Err(refused("texto fora de um elemento")) };
            };
            if begun.starts_with('!') {
                return Err(refused("declarações, entidades e comentários não são aceitos"));
            }
            let (tag, after) = begun.split_once('>').ok_or_else(|| refused("elemento sem >"))?;
            let next = after.find('<').unwrap_or(after.len());
            let (value, rest) = after.split_at(next);
            (self.rest, self.line) = (rest, line + newlines(tag) + newlines(value));
            if tag.starts_with('?') {
                if value.trim().is_empty() {
                    continue;
                }
                return Err(refused("texto fora de um elemento"));
            }
            let (tag, is_end) = tag.strip_prefix('/').map_or((tag, false), |tag| (tag, true));
            let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_';
            if tag.is_empty() || tag.len() > 64 || !tag.bytes().all(is_name) {
                return Err(refused("nome de elemento inválido"));
            }
            let value = value.trim();
            if value.len() > VALUE_BYTES_MAX {
                return Err(refused("valor longo demais"));
            }
            if is_end && !value.is_empty() {
                return Err(refused("texto fora de um elemento"));
            }
            if is_empty {
                continue;
            }
            let value = if value.is_empty() {
                None
            } else {
                Some(unescaped(value).ok_or_else(|| refused("entidade não aceita"))?)
            };
            let tag = if tag.bytes().any(|byte| byte.is_ascii_lowercase()) {
                Cow::Owned(tag.to_ascii_uppercase())
            } else {
                Cow::Borrowed(tag)
            };
            return Ok(Some(Token { line, tag, value, is_end }));
        }
    }
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// A value with its entities replaced; none where one is not known. An `&` before a blank is
/// itself, as banks write it in names.
fn unescaped(value: &str) -> Option<String> {
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('&') {
        text.push_str(before);
        if after.is_empty() || after.starts_with(char::is_whitespace) {
            (rest, _) = (after, text.push('&'));
            continue;
        }
        let (name, after) = after.split_once(';').filter(|(name, _)| name.len() <= 8)?;
        text.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "nbsp" => ' ',
            name => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code).filter(|character| !character.is_control())?
            }
        });
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    statement: BankStatement,
    has_statement: bool,
    has_ended: bool,
    account_line: Option<u64>,
    from: Option<NaiveDate>,
    to: Option<NaiveDate>,
    currency: Option<String>,
    /// The line that is being read.
    line: Option<OpenLine>,
    /// The first amount's decimal mark; a file has one.
    decimal_mark: Option<char>,
    /// The element of the last value, which may have a closing tag.
    last_value: String,
}

#[derive(Default)]
struct OpenLine {
    found: StatementLine,
    day: Option<NaiveDate>,
    amount: Option<Centavos>,
}

impl Reading {
    fn begin(&mut self, tag: &str, line: u64) -> Result<(), String> {
        match tag {
            "STMTRS" if self.has_statement => return Err("um arquivo deve ter uma conta".to_owned()),
            "STMTRS" => self.has_statement = true,
            "CCSTMTRS" => return Err("extratos de cartão não são aceitos".to_owned()),
            "STMTTRN" if self.line.is_some() => return Err("STMTTRN sem fim".to_owned()),
            "STMTTRN" if self.statement.lines.len() == LINES_MAX => {
                return Err(format!("mais de {LINES_MAX} lançamentos"));
            }
            "STMTTRN" => {
                self.line =
                    Some(OpenLine { found: StatementLine { line, ..StatementLine::default() }, ..OpenLine::default() });
            }
            _ => {}
        }
        Ok(())
    }

    fn value(&mut self, tag: &str, value: &str, at: u64) -> Result<(), String> {
        let Some(line) = &mut self.line else {
            match tag {
                "CURDEF" => self.currency = Some(value.to_owned()),
                "ACCTID" if self.has_statement => {
                    (self.statement.account, self.account_line) = (value.to_owned(), Some(at));
                }
                "DTSTART" if self.has_statement => self.from = Some(day_of(value).ok_or("DTSTART inválido")?),
                "DTEND" if self.has_statement => self.to = Some(day_of(value).ok_or("DTEND inválido")?),
                "TRNAMT" | "FITID" | "DTPOSTED" => return Err(format!("{tag} fora de STMTTRN")),
                _ => {}
            }
            return Ok(());
        };
        let is_again = match tag {
            "FITID" => !line.found.id.is_empty(),
            "DTPOSTED" => line.day.is_some(),
            "TRNAMT" => line.amount.is_some(),
            _ => false,
        };
        if is_again {
            return Err(format!("{tag} repetido"));
        }
        match tag {
            "FITID" if value.chars().count() > ID_LEN_MAX => return Err("FITID longo demais".to_owned()),
            "FITID" => line.found.id = value.to_owned(),
            "DTPOSTED" => line.day = Some(day_of(value).ok_or("DTPOSTED inválido")?),
            "TRNAMT" => {
                let (amount, mark) = amount_of(value).ok_or("TRNAMT deve ter a forma -1234.56 ou -1234,56")?;
                if mark.is_some() && self.decimal_mark.is_some() && mark != self.decimal_mark {
                    return Err("TRNAMT com outro separador decimal que antes".to_owned());
                }
                self.decimal_mark = mark.or(self.decimal_mark);
                line.amount = Some(amount);
            }
            "CURRENCY" | "ORIGCURRENCY" | "CURSYM" if value != "BRL" => return Err("a moeda deve ser BRL".to_owned()),
            "CHECKNUM" | "REFNUM" | "NAME" | "MEMO" => {
                line.found.text.push(' ');
                line.found.text.push_str(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, tag: &str) -> Result<(), String> {
        match tag {
            "STMTTRN" => {
                let OpenLine { mut found, day, amount } = self.line.take().ok_or("STMTTRN sem início")?;
                found.day = day.ok_or("STMTTRN sem DTPOSTED")?;
                found.amount = amount.ok_or("STMTTRN sem TRNAMT")?;
                if found.id.is_empty() {
                    return Err("STMTTRN sem FITID".to_owned());
                }
                self.statement.lines.push(found);
            }
            "STMTRS" | "BANKTRANLIST" if self.line.is_some() => return Err("STMTTRN sem fim".to_owned()),
            "OFX" => self.has_ended = true,
            _ => {}
        }
        Ok(())
    }

    /// The statement, when it is whole; else a defect, with its line where it has one.
    fn finish(self) -> Result<BankStatement, (Option<u64>, String)> {
        let missing = |name: &str| (None, format!("falta {name}"));
        if !self.has_statement {
            return Err(missing("STMTRS"));
        }
        if self.currency.as_deref() != Some("BRL") {
            return Err((None, "a moeda (CURDEF) deve ser BRL".to_owned()));
        }
        let (from, to) = (self.from.ok_or_else(|| missing("DTSTART"))?, self.to.ok_or_else(|| missing("DTEND"))?);
        if !(0..PERIOD_DAYS_MAX).contains(&(to - from).num_days()) {
            return Err((None, format!("o período deve ter de 1 a {PERIOD_DAYS_MAX} dias")));
        }
        self.account_line.ok_or_else(|| missing("ACCTID"))?;
        let outside = self.statement.lines.iter().find(|line| !(from..=to).contains(&line.day));
        if let Some(line) = outside {
            return Err((Some(line.line), "DTPOSTED fora do período".to_owned()));
        }
        Ok(BankStatement { from, to, ..self.statement })
    }
}

/// The day in Sao Paulo of `20261130`, `20261130120000.000[-3:BRT]` and the forms between. Without
/// a zone the day is the bank's own. So it is at midnight, whatever the zone: that is how banks
/// write a day without a time.
fn day_of(text: &str) -> Option<NaiveDate> {
    let (moment, zone) = text.split_once('[').map_or((text, None), |(moment, zone)| (moment, Some(zone)));
    let (digits, part) = moment.split_once('.').map_or((moment, None), |(digits, part)| (digits, Some(part)));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let zone = match zone {
        None => None,
        Some(zone) => Some(zone_minutes(zone)?),
    };
    let is_part = part.is_none_or(|part| part.len() == 3 && all_digits(part));
    if !matches!(digits.len(), 8 | 12 | 14) || !all_digits(digits) || !is_part {
        return None;
    }
    let below = |range: std::ops::Range<usize>, end: u32| {
        digits.get(range).is_none_or(|text| text.parse::<u32>().is_ok_and(|number| number < end))
    };
    if !below(8..10, 24) || !below(10..12, 60) || !below(12..14, 61) {
        return None;
    }
    let day = NaiveDate::parse_from_str(digits.get(..8)?, "%Y%m%d").ok()?;
    let of_day =
        |range: std::ops::Range<usize>| digits.get(range).and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
    let minutes = of_day(8..10) * 60 + of_day(10..12);
    let Some(zone) = zone.filter(|_| minutes > 0) else { return Some(day) };
    let local = (minutes - zone - 3 * 60).div_euclid(24 * 60);
    day.checked_add_signed(chrono::TimeDelta::days(local))
}

/// Minutes before UTC of `-3:BRT]`, `-3]` or `+5.5:IST]`.
fn zone_minutes(text: &str) -> Option<i64> {
    let zone = text.strip_suffix(']').filter(|zone| zone.len() <= 16)?;
    let hours = zone.split_once(':').map_or(zone, |(hours, _)| hours);
    let (sign, hours) = match hours.strip_prefix('-') {
        Some(hours) => (-1, hours),
        None => (1, hours.strip_prefix('+').unwrap_or(hours)),
    };
    let (whole, part) = hours.split_once('.').unwrap_or((hours, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(part) || whole.len() > 2 || part.len() > 2 {
        return None;
    }
    let scale = if part.len() == 1 { 60 } else { 6 };
    let part = part.parse::<i64>().ok()? * scale / 10;
    Some(sign * (whole.parse::<i64>().ok()? * 60 + part)).filter(|minutes| minutes.abs() <= 14 * 60)
}

/// An amount with a sign and one or two decimals behind a point or a comma; gives centavos, and the
/// mark. There are no marks of thousands in OFX: `1.234` could be either, and is refused.
fn amount_of(text: &str) -> Option<(Centavos, Option<char>)> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mark = digits.chars().find(|character| matches!(character, '.' | ','));
    let (whole, cents) = mark.and_then(|mark| digits.split_once(mark)).unwrap_or((digits, "00"));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=12).contains(&whole.len()) || !(1..=2).contains(&cents.len()) || !all_digits(whole) || !all_digits(cents) {
        return None;
    }
    let scale = if cents.len() == 1 { 10 } else { 1 };
    let amount = sign * (whole.parse::<i64>().ok()? * 100 + cents.parse::<i64>().ok()? * scale);
    (-AMOUNT_MAX.0..=AMOUNT_MAX.0).contains(&amount).then_some((Centavos(amount), mark))
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
        };
        let expected = |first, second| BankStatement {
            account: "123-4".to_owned(),
            from: day(1),
            to: day(30),
            lines: vec![line(first, "A1", 30, 9_701, " João & Cia"), line(second, "A2", 29, -123_450, "")],
        };
        assert_eq!(read(SGML.as_bytes()).unwrap(), expected(11, 19));
        assert_eq!(read(XML.as_bytes()).unwrap(), expected(6, 7));
        let latin: Vec<u8> = SGML.chars().map(|character| character as u8).collect();
        assert!(str::from_utf8(&latin).is_err());
        assert_eq!(read(&latin).unwrap(), expected(11, 19), "in ISO 8859-1");
    }

    #[test]
    fn a_day_is_that_of_sao_paulo_where_the_zone_is_told() {
        for (text, expected) in [
            ("20261130", Some(30)),
            ("202611300130", Some(30)),
            ("20261130013000.000", Some(30)),
            ("20261130013000[-3:BRT]", Some(30)),
            ("20261130013000.000[+0:UTC]", Some(29)),
            ("20261130030000[0:GMT]", Some(30)),
            ("20261130000000[0:GMT]", Some(30)),
            ("20261130000000.000[-3]", Some(30)),
            ("20261129230000[-5:EST]", Some(30)),
            ("20261129233000[-3.5]", Some(30)),
            ("20261129233000[-3.00:BRT]", Some(29)),
            ("20261130[-3:BRT", None),
            ("20261130[x:BRT]", None),
            ("20261130[15:X]", None),
            ("2026113", None),
            ("20261130999999", None),
            ("20261130120000.0", None),
            ("2026-11-30", None),
        ] {
            assert_eq!(day_of(text), expected.map(day), "{text}");
        }
    }

    #[test]
    fn a_defect_is_named_by_its_line() {
        for (from, to, line, defect) in [
            ("<OFX>", "<!DOCTYPE x>\r\n<OFX>", 5, "declarações"),
            ("<OFX>", "<!ENTITY a SYSTEM \"file:///etc/passwd\"><OFX>", 5, "declarações"),
            ("<MEMO>", "<!-- x --><MEMO>", 17, "declarações"),
            ("<MEMO>", "<MEMO><![CDATA[x]]>", 17, "declarações"),
            ("&amp;", "&x;", 17, "entidade"),
            ("&amp;", "&#0;", 17, "entidade"),
            ("97,01", "97.01", 19, "separador"),
            ("97,01", "1.097,01", 14, "TRNAMT"),
            ("97,01", "1.234", 14, "TRNAMT"),
            ("97,01", "1e3", 14, "TRNAMT"),
            ("97,01", "9999999999999", 14, "TRNAMT"),
            ("97,01", "R$ 97,01", 14, "TRNAMT"),
            ("20261130120000[-3:BRT]", "30/11/2026", 13, "DTPOSTED"),
            ("20261130120000[-3:BRT]", "20261131", 13, "DTPOSTED"),
            ("20261130120000[-3:BRT]", "20261201", 11, "fora do período"),
            ("20261130120000[-3:BRT]", "20261130250000", 13, "DTPOSTED"),
            ("<FITID>A1\r\n", "\r\n", 18, "FITID"),
            ("<TRNAMT>97,01", "<TRNAMT>97,01<TRNAMT>1", 14, "repetido"),
            ("</STMTTRN>\r\n<STMTTRN>", "<STMTTRN>", 18, "STMTTRN"),
            ("</OFX>", "", 21, "termina"),
            ("<CURDEF>BRL", "<CURDEF>USD", 21, "BRL"),
            ("</BANKTRANLIST>", "</X>", 20, "</X>"),
            ("<DTSTART>20261101", "", 21, "DTSTART"),
        ] {
            let error = read(SGML.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(error.defect.contains(defect) && error.line == line, "{to}: {error}");
        }
        let twice = SGML.replacen("</STMTRS>", "</STMTRS><STMTRS></STMTRS>", 1);
        assert!(read(twice.as_bytes()).unwrap_err().defect.contains("uma conta"));
        let deep = format!("{}{}", "<A>".repeat(33), "</A>".repeat(33));
        assert!(read(deep.as_bytes()).unwrap_err().defect.contains("32"));
        for other in ["", "x", "{}", "batch,paid_on\n", "\u{0}\u{1}<", "<OFX", "<>", "<OFX></OFX>", "<OFX/>"] {
            assert!(read(other.as_bytes()).is_err(), "{other}");
        }
    }
}
