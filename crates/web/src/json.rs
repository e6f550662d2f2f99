//! Strict JSON of requests, read without copying.
//!
//! [`parse`] refuses a body that is not one JSON object in UTF-8, that nests too deep, or that has
//! a key twice in one object, since it would be unclear which of two amounts counts. This check is
//! a pass of its own over the body, because serde skips a raw value without showing its keys
//! (architecture, decision 19). A body is also counted while it arrives ([`Shape`]), so that one
//! with too much is not read on.
//! Then it fills a wire struct, whose fields are raw values that borrow from the body. A
//! [`Checker`] turns these into checked values, one field at a time, and gathers all their errors,
//! so that a caller sees every mistake at once.
//!
//! No message repeats a value: what is sent here may be a card number.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tokio::runtime::{Handle, RuntimeFlavor};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::names::{self, Meant, MemberName, Unknown};
use super::problem::{Code, FieldError, Problem, Result, broken, failed};

/// The value of a field as it was sent; nothing when it is absent, null or an empty text.
///
/// A struct with such fields borrows from the body. It says so once for all of them, as its bound:
/// `#[serde(bound(deserialize = "'de: 'a"))]`.
pub type Raw<'a> = Option<&'a RawValue>;

/// The least and the most characters, digits or elements that a field may have.
pub type Count = RangeInclusive<usize>;

/// What the checks of a request make of it, or the problem of everything that is wrong with it. The
/// checks are those of a [`Checker`], and all come before the first `?`.
pub fn checked<T>(check: impl FnOnce(&mut Checker) -> Option<T>) -> Result<T> {
    let mut checker = Checker::new();
    let checked = check(&mut checker);
    checker.finish_with(checked)
}

/// The problem of one wrong field, as [`Checker::refuse`] notes it.
pub fn refused(name: &'static str, code: &'static str, message: impl Into<Cow<'static, str>>) -> Problem {
    let refusal: Result<()> = checked(|check| check.refuse(name, code, message));
    refusal.err().unwrap_or_else(broken)
}

/// A field that was sent, also as null: for `deserialize_with`, where null and absent differ.
pub fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw<'de>>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

/// The name by which an element of an array checks itself.
pub const ITSELF: &str = "";

/// The largest amount, in centavos.
pub const CENTAVOS_MAX: i64 = ledger::money::AMOUNT_MAX.0;

/// How many objects and arrays may stand inside of each other.
pub const NESTING_MAX: usize = 32;

/// How many values a body may have: a charge of 10,000 splits has about 30,000.
pub const VALUES_MAX: usize = 100_000;

/// What is larger than this is read beside the runtime's workers.
pub const LARGE_BYTES: usize = 64 * 1024;

/// How many wrong fields one answer names.
pub const ERRORS_MAX: usize = 50;

/// Counts the values of a JSON text while its bytes arrive, so that what has too many, or nests too
/// deep, is refused before it is parsed. It does not check the syntax.
#[derive(Debug, Default)]
pub struct Shape {
    values: usize,
    nesting: usize,
    is_in_string: bool,
    is_escaped: bool,
}

impl Shape {
    /// Counts what stands in the bytes that came next.
    pub fn see(&mut self, bytes: &[u8]) -> Result<()> {
        for byte in bytes {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_string => self.is_escaped = true,
                b'"' => self.is_in_string = !self.is_in_string,
                _ if self.is_in_string => {}
                b'{' | b'[' => {
                    self.values += 1;
                    self.nesting += 1;
                    if self.nesting > NESTING_MAX {
                        return Err(refused_shape(format!("The nesting is deeper than {NESTING_MAX}.")));
                    }
                }
                b'}' | b']' => self.nesting = self.nesting.saturating_sub(1),
                b',' => self.values += 1,
                _ => {}
            }
        }
        if self.values > VALUES_MAX {
            return Err(refused_shape(format!("The body has more than {VALUES_MAX} values.")));
        }
        Ok(())
    }
}

fn refused_shape(detail: String) -> Problem {
    Problem::new(Code::InvalidJson).detail(detail)
}

/// Reads a merchant's body into its wire struct. A field that is an empty text reads as null. A
/// name that is near a known one is refused; other unknown names are ignored ([`names`]).
pub fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    aside(body.len(), || read(body, Checker::new()))
}

/// Reads the body of an operator or of a change into its wire struct: as [`parse`], and every
/// unknown name is refused.
pub fn parse_exact<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    aside(body.len(), || read(body, Checker::exact()))
}

/// An object of a body that has several, as it was sent, or why it is none.
pub type Element<'a> = Result<&'a str, Problem>;

/// Reads an object that was an [`Element`], or a part of one: as [`parse`], without looking through
/// it again.
pub fn parse_element<'a, T: Deserialize<'a>>(element: &'a str) -> Result<T> {
    aside(element.len(), || read_fields(element, Checker::new()))
}

/// The objects of a body that is one JSON array, or has one on each line that is not blank; their
/// count within a range. One that is no object, or has a key twice, is an error of its own.
pub fn elements(body: &[u8], is_lines: bool, count: Count) -> Result<Vec<Element<'_>>> {
    let texts = texts(body, is_lines, *count.end())?;
    let mut check = Checker::new();
    if !count.contains(&texts.len()) {
        check.refuse::<()>(ITSELF, "wrong_count", format!("o corpo deve ter {}", counted(&count, "itens")));
    }
    check.finish()?;
    let name = if is_lines { "Line" } else { "Element" };
    let read = || texts.iter().map(|(number, text)| read_element((name, *number), text)).collect();
    Ok(aside(body.len(), read))
}

/// The texts of a body of several, with their numbers; of lines one more than `most` at most. None
/// of them is looked at: each that is wrong costs more memory than it has bytes.
fn texts(body: &[u8], is_lines: bool, most: usize) -> Result<Vec<(usize, &[u8])>> {
    if is_lines {
        let lines = (1..).zip(body.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty());
        return Ok(lines.take(most + 1).collect());
    }
    let text = utf8(body)?;
    if !text.trim_ascii_start().starts_with('[') {
        return Err(Problem::new(Code::InvalidJson).detail("The body must be one JSON array."));
    }
    let all: Vec<&RawValue> = aside(text.len(), || serde_json::from_str(text)).map_err(invalid)?;
    Ok(all.into_iter().map(|one| one.get().as_bytes()).enumerate().collect())
}

/// One object of a body of several.
fn read_element<'a>((name, number): (&str, usize), text: &'a [u8]) -> Element<'a> {
    let read = utf8(text).and_then(|text| {
        inspect(text)?;
        Some(text.trim_ascii()).filter(|text| text.starts_with('{')).ok_or_else(|| Problem::new(Code::InvalidJson))
    });
    let detail = || format!("{name} {number} of the body is no JSON object in UTF-8, or has a key twice.");
    read.map_err(|problem| problem.detail(detail()))
}

/// Reads a merchant's body of a request that has no fields: none, an object, `[]` or `null`.
pub fn parse_unread(body: &[u8]) -> Result<()> {
    parse::<NoFields>(or_empty(body)).map(drop)
}

/// Reads an operator's body of a request that has no fields, as [`parse_unread`].
pub fn parse_unread_exact(body: &[u8]) -> Result<()> {
    parse_exact::<NoFields>(or_empty(body)).map(drop)
}

/// The body of a request that may have none, or an empty object where there is nothing in it. Some
/// libraries write an empty object as `[]`.
pub fn or_empty(body: &[u8]) -> &[u8] {
    let is_empty = matches!(without_mark(body).trim_ascii(), b"[]" | b"null");
    if body.is_empty() || is_empty { b"{}" } else { body }
}

/// A JSON text without the byte order mark that may stand before it (RFC 8259, 8.1).
pub fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body)
}

/// A JSON text as all texts of the same values read: members in one order, no blanks between
/// tokens, no escapes that a text can do without. Numbers stay as they are written. `secret`, a
/// value of the body, is left out. A body that is no JSON, and values that are nested deeper than a
/// body may be, stay as they are.
pub fn canonical(body: &[u8], secret: Option<&RawValue>) -> Zeroizing<Vec<u8>> {
    // It does not grow, one comma more for an array, so that no part of a card stays in memory; a
    // text with escapes does, which serde_json copies.
    let mut out = Zeroizing::new(Vec::with_capacity(body.len() + body.len() / 2));
    aside(body.len(), || match std::str::from_utf8(without_mark(body)) {
        Ok(text) => write_canonical(&mut out, text.trim_ascii(), secret, NESTING_MAX),
        Err(_) => out.extend_from_slice(body),
    });
    out
}

fn write_canonical(out: &mut Vec<u8>, text: &str, secret: Option<&RawValue>, depth: usize) {
    match text.as_bytes().first() {
        Some(b'{' | b'[') if depth == 0 => {}
        _ if secret.is_some_and(|secret| std::ptr::eq(secret.get(), text)) => return,
        Some(b'{') => {
            if let Ok(members) = serde_json::from_str::<BTreeMap<MemberName<'_>, &RawValue>>(text) {
                out.push(b'{');
                for (name, value) in members {
                    write_text(out, name.0);
                    write_canonical(out, value.get(), secret, depth - 1);
                    out.push(b',');
                }
                return out.push(b'}');
            }
        }
        Some(b'[') => {
            if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
                out.push(b'[');
                for value in elements {
                    write_canonical(out, value.get(), secret, depth - 1);
                    out.push(b',');
                }
                return out.push(b']');
            }
        }
        Some(b'"') if text.contains('\\') => {
            if let Ok(MemberName(text)) = serde_json::from_str(text) {
                return write_text(out, text);
            }
        }
        _ => {}
    }
    out.extend_from_slice(text.as_bytes());
}

/// Writes a text; one that was borrowed from JSON had no escapes, and needs none.
fn write_text(out: &mut Vec<u8>, text: Cow<'_, str>) {
    match text {
        Cow::Borrowed(plain) => {
            out.push(b'"');
            out.extend_from_slice(plain.as_bytes());
            out.push(b'"');
        }
        Cow::Owned(text) => serde_json::to_writer(out, &text).expect("a text is written to memory"),
    }
}

#[derive(Deserialize)]
struct NoFields {}

/// Does work that takes long with this number of bytes: meanwhile another thread takes the other
/// tasks of this worker.
fn aside<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_others = || Handle::try_current().is_ok_and(|here| here.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > LARGE_BYTES && has_others() { tokio::task::block_in_place(work) } else { work() }
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8], check: Checker) -> Result<T> {
    let text = utf8(body)?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(Problem::new(Code::InvalidJson).detail("The body must be one JSON object."));
    }
    inspect(text)?;
    read_fields(text, check)
}

fn read_fields<'a, T: Deserialize<'a>>(text: &'a str, mut check: Checker) -> Result<T> {
    let (wire, unknown) = names::read(text).map_err(|_| Problem::new(Code::ValidationFailed))?;
    check.note_unknown(unknown);
    check.finish_with(Some(wire))
}

fn utf8(body: &[u8]) -> Result<&str> {
    std::str::from_utf8(without_mark(body)).map_err(|error| {
        Problem::new(Code::InvalidUtf8).detail(format!("The body is not UTF-8 from byte {}.", error.valid_up_to()))
    })
}

/// The problem of a text that is no JSON.
fn invalid(error: serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    Problem::new(Code::InvalidJson).detail(format!("The JSON is not valid at line {line}, column {column}."))
}

/// Checks the fields of a request and gathers what is wrong with them.
///
/// A check returns nothing when it has noted an error, or when an optional field is absent. The
/// fields of one object are all checked before the first `?`, so that no error hides another:
///
/// ```
/// use centavo_web::json::{Checker, Raw, parse};
///
/// #[derive(serde::Deserialize)]
/// #[serde(bound(deserialize = "'de: 'a"))]
/// struct Wire<'a> {
///     amount: Raw<'a>,
///     reason: Raw<'a>,
/// }
///
/// let wire: Wire = parse(br#"{"amount": 4000}"#).unwrap();
/// let mut check = Checker::new();
/// let amount = check.centavos("amount", wire.amount, 1..=4_000);
/// let reason = check.optional_text("reason", wire.reason, 0..=500);
/// assert_eq!(check.finish_with(amount).unwrap(), 4_000);
/// assert_eq!(reason, None);
/// ```
#[derive(Debug)]
pub struct Checker {
    path: Vec<Segment>,
    errors: Vec<FieldError>,
    ambient: Code,
    first: Option<Code>,
    /// Whether every unknown name is refused.
    is_exact: bool,
}

#[derive(Debug, Clone, Copy)]
enum Segment {
    Name(&'static str),
    Element(usize),
}

impl Default for Checker {
    fn default() -> Self {
        Checker { path: Vec::new(), errors: Vec::new(), ambient: Code::ValidationFailed, first: None, is_exact: false }
    }
}

impl Checker {
    /// A checker that has found nothing wrong yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A checker of an operator's body, which has no field that is not known, at any depth.
    pub fn exact() -> Self {
        Self { is_exact: true, ..Self::default() }
    }

    /// A required amount in centavos: a JSON integer within a range, written in digits alone, and
    /// never more than [`CENTAVOS_MAX`].
    pub fn centavos(&mut self, name: &'static str, raw: Raw<'_>, range: RangeInclusive<i64>) -> Option<i64> {
        let raw = self.required(name, raw)?;
        match digits_alone(raw.get()) {
            Some(digits) => self.within_range(name, digits, *range.start()..=CENTAVOS_MAX.min(*range.end())),
            None => self.mistyped(name, "not_an_integer", "inteiro em centavos"),
        }
    }

    /// A required JSON integer within a range, in any notation of JSON: 12, `12.0` or `1.2e1`.
    pub fn integer(&mut self, name: &'static str, raw: Raw<'_>, range: RangeInclusive<i64>) -> Option<i64> {
        let raw = self.required(name, raw)?;
        match whole_number(raw.get()) {
            Some(digits) => self.within_range(name, &digits, range),
            None => self.mistyped(name, "not_an_integer", "um número inteiro"),
        }
    }

    /// A required integer within a range, as a JSON integer or as a string of its digits: 12,
    /// `"12"` or `"03"`.
    pub fn integer_or_string(&mut self, name: &'static str, raw: Raw<'_>, range: RangeInclusive<i64>) -> Option<i64> {
        let raw = self.required(name, raw)?;
        let quoted = string(raw).filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
        match (whole_number(raw.get()), quoted) {
            (Some(digits), _) => self.within_range(name, &digits, range),
            (None, Some(digits)) => self.within_range(name, &digits, range),
            (None, None) => self.mistyped(name, "not_an_integer", "um número inteiro"),
        }
    }

    /// A required string without control characters, trimmed, its length within a range of
    /// characters.
    pub fn text<'a>(&mut self, name: &'static str, raw: Raw<'a>, chars: Count) -> Option<Cow<'a, str>> {
        let text = self.any_text(name, raw)?;
        self.printable(name, trimmed(text), chars, false)
    }

    /// A required text that a person wrote, as [`Checker::text`] takes it, with its line breaks and
    /// tabs. CRLF and CR are read as LF.
    pub fn prose<'a>(&mut self, name: &'static str, raw: Raw<'a>, chars: Count) -> Option<Cow<'a, str>> {
        let text = self.any_text(name, raw)?;
        self.printable(name, with_line_feeds(trimmed(text)), chars, true)
    }

    /// What [`Checker::prose`] takes, or nothing when the field is absent or null.
    pub fn optional_prose<'a>(&mut self, name: &'static str, raw: Raw<'a>, chars: Count) -> Option<Cow<'a, str>> {
        self.optional(raw, |check, raw| check.prose(name, raw, chars))
    }

    /// A text of this length without control characters, line breaks and tabs aside where it keeps
    /// its lines.
    fn printable<'a>(
        &mut self,
        name: &'static str,
        text: Cow<'a, str>,
        chars: Count,
        keeps_lines: bool,
    ) -> Option<Cow<'a, str>> {
        let is_refused = |letter: char| letter.is_control() && !(keeps_lines && matches!(letter, '\n' | '\t'));
        if text.contains(is_refused) {
            return self.refuse(name, "control_character", format!("{name} contém caracteres de controle"));
        }
        self.within_length(name, text, chars, "caracteres")
    }

    /// A text that a person can read and write again: what [`Checker::text`] takes, without letters
    /// that are not seen, such as those that change the direction of text, and without white space
    /// that is not of ASCII.
    pub fn optional_visible<'a>(&mut self, name: &'static str, raw: Raw<'a>, chars: Count) -> Option<Cow<'a, str>> {
        let text = self.optional_text(name, raw, chars)?;
        // Also at its ends, where other white space is trimmed.
        if raw.and_then(string).is_some_and(|whole| whole.contains(is_invisible)) {
            return self.refuse(name, "invisible_character", format!("{name} contém caracteres invisíveis"));
        }
        Some(text)
    }

    /// A required string, whatever is in it: it is only looked up.
    pub fn any_text<'a>(&mut self, name: &'static str, raw: Raw<'a>) -> Option<Cow<'a, str>> {
        let raw = self.required(name, raw)?;
        string(raw).or_else(|| self.mistyped(name, "not_a_string", "um texto"))
    }

    /// A text of several lines, or nothing when the field is absent or null.
    pub fn optional_lines<'a>(&mut self, name: &'static str, raw: Raw<'a>, most: usize) -> Option<Cow<'a, str>> {
        let text = self.optional(raw, |check, raw| check.any_text(name, raw))?;
        self.within_length(name, text, 1..=most, "caracteres")
    }

    /// What [`Checker::text`] takes, or nothing when the field is absent or null.
    pub fn optional_text<'a>(&mut self, name: &'static str, raw: Raw<'a>, chars: Count) -> Option<Cow<'a, str>> {
        self.optional(raw, |check, raw| check.text(name, raw, chars))
    }

    /// A required string of ASCII digits, their count within a range.
    pub fn digits<'a>(&mut self, name: &'static str, raw: Raw<'a>, count: Count) -> Option<Cow<'a, str>> {
        let raw = self.required(name, raw)?;
        match string(raw).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(digits) => self.within_length(name, digits, count, "dígitos"),
            None => self.mistyped(name, "not_digits", "um texto só de dígitos"),
        }
    }

    /// A required string of ASCII digits, their count within a range, with or without the
    /// punctuation of documents and telephones; gives the digits alone.
    pub fn punctuated_digits(&mut self, name: &'static str, raw: Raw<'_>, count: Count) -> Option<String> {
        let raw = self.required(name, raw)?;
        let digits = string(raw).map(|text| text.replace([' ', '.', '-', '/', '(', ')', '+'], ""));
        match digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit())) {
            Some(digits) => self.within_length(name, Cow::Owned(digits), count, "dígitos").map(Cow::into_owned),
            None => self.mistyped(name, "not_digits", "um texto de dígitos, com ou sem pontuação"),
        }
    }

    /// A required string that is a UUID with its hyphens.
    pub fn uuid(&mut self, name: &'static str, raw: Raw<'_>) -> Option<Uuid> {
        let raw = self.required(name, raw)?;
        let hyphenated = string(raw).filter(|text| text.len() == 36).and_then(|text| Uuid::try_parse(&text).ok());
        hyphenated.or_else(|| self.mistyped(name, "not_a_uuid", "um UUID"))
    }

    /// A required JSON boolean.
    pub fn boolean(&mut self, name: &'static str, raw: Raw<'_>) -> Option<bool> {
        match self.required(name, raw)?.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => self.mistyped(name, "not_a_boolean", "true ou false"),
        }
    }

    /// A required percentage: a string such as `"2.99"`, from 0 to 100, with at most 4 decimals.
    pub fn decimal_percent(&mut self, name: &'static str, raw: Raw<'_>) -> Option<Decimal> {
        let raw = self.required(name, raw)?;
        let Some(percent) = string(raw).and_then(|text| plain_decimal(&text)) else {
            return self.mistyped(name, "not_a_percentage", "um percentual em texto com até 4 decimais, como \"2.99\"");
        };
        if percent > Decimal::ONE_HUNDRED {
            return self.refuse(name, "out_of_range", format!("{name} deve estar entre 0 e 100"));
        }
        Some(percent)
    }

    /// A required object, its fields checked under its name.
    pub fn object<'a, T: Deserialize<'a>, U>(
        &mut self,
        name: &'static str,
        raw: Raw<'a>,
        check: impl FnOnce(&mut Self, T) -> Option<U>,
    ) -> Option<U> {
        let raw = self.required(name, raw)?;
        let wire = if raw.get().starts_with('{') { names::read(raw.get()).ok() } else { None };
        match wire {
            Some((wire, unknown)) => self.under(Segment::Name(name), |checker| {
                checker.note_unknown(unknown);
                check(checker, wire)
            }),
            None => self.mistyped(name, "not_an_object", "um objeto"),
        }
    }

    /// Checks of fields of an object that was read before.
    pub fn within<U>(&mut self, name: &'static str, check: impl FnOnce(&mut Self) -> Option<U>) -> Option<U> {
        self.under(Segment::Name(name), check)
    }

    /// A required array, its count of elements within a range; each element checks itself as
    /// [`ITSELF`].
    ///
    /// Nothing when any element is wrong.
    pub fn array<'a, U>(
        &mut self,
        name: &'static str,
        raw: Raw<'a>,
        count: Count,
        check: impl FnMut(&mut Self, Raw<'a>) -> Option<U>,
    ) -> Option<Vec<U>> {
        let raw = self.required(name, raw)?;
        aside(raw.get().len(), || self.elements(name, raw, count, check))
    }

    fn elements<'a, U>(
        &mut self,
        name: &'static str,
        raw: &'a RawValue,
        count: Count,
        mut check: impl FnMut(&mut Self, Raw<'a>) -> Option<U>,
    ) -> Option<Vec<U>> {
        let elements =
            if raw.get().starts_with('[') { serde_json::from_str::<Vec<Raw<'a>>>(raw.get()).ok() } else { None };
        let Some(elements) = elements else {
            return self.mistyped(name, "not_an_array", "uma lista");
        };
        if !count.contains(&elements.len()) {
            let message = format!("{name} deve ter {}", counted(&count, "itens"));
            return self.refuse(name, "wrong_count", message);
        }
        let mut checked = Vec::with_capacity(elements.len());
        self.under(Segment::Name(name), |checker| {
            for (index, element) in elements.iter().enumerate() {
                if checker.errors.len() >= ERRORS_MAX {
                    return None;
                }
                checked.extend(checker.under(Segment::Element(index), |checker| check(checker, *element)));
            }
            (checked.len() == elements.len()).then_some(checked)
        })
    }

    /// Checks a field only if it was sent; null is as good as absent.
    pub fn optional<'a, U>(&mut self, raw: Raw<'a>, check: impl FnOnce(&mut Self, Raw<'a>) -> Option<U>) -> Option<U> {
        raw.and_then(|raw| check(self, Some(raw)))
    }

    /// What an optional field is checked to be, or `absent` where it was not sent.
    pub fn given_or<'a, U>(
        &mut self,
        absent: U,
        raw: Raw<'a>,
        check: impl FnOnce(&mut Self, Raw<'a>) -> Option<U>,
    ) -> Option<U> {
        if raw.is_some() { check(self, raw) } else { Some(absent) }
    }

    /// A checked value that fits, or a refusal of its field.
    pub fn fitting<T>(
        &mut self,
        value: Option<T>,
        fits: impl FnOnce(&T) -> bool,
        name: &'static str,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Option<T> {
        let value = value?;
        if fits(&value) { Some(value) } else { self.refuse(name, code, message) }
    }

    /// Checks whose errors are not [`Code::ValidationFailed`] but another problem, such as
    /// [`Code::InvalidCardData`].
    ///
    /// A request with errors of several kinds is answered with the kind of the first.
    pub fn reporting<U>(&mut self, code: Code, check: impl FnOnce(&mut Self) -> U) -> U {
        let outer = std::mem::replace(&mut self.ambient, code);
        let checked = check(self);
        self.ambient = outer;
        checked
    }

    /// Notes that a field is wrong, for a reason of the caller's. The message must not repeat the
    /// value.
    pub fn refuse<U>(
        &mut self,
        name: &'static str,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Option<U> {
        let (field, message) = (self.field(name), message.into());
        // A message that begins with the name of its field gives it in full.
        let message = match message.strip_prefix(name) {
            Some(rest) if rest.starts_with(' ') => Cow::Owned(format!("{field}{rest}")),
            _ => message,
        };
        self.push(field, code, message);
        None
    }

    fn push(&mut self, field: String, code: &'static str, message: Cow<'static, str>) {
        self.first.get_or_insert(self.ambient);
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(FieldError { field, code, message });
        }
    }

    /// Refuses the unknown names of an object, or notes that they are ignored.
    fn note_unknown(&mut self, unknown: Vec<Unknown<'_>>) {
        for Unknown { name, meant } in unknown {
            let field = self.path_to(&names::shown(&name));
            let message = match meant {
                Meant::Field(right) => format!("{field} não existe; o nome certo é {right}"),
                Meant::Inside(object) if self.is_exact => {
                    format!("{field} não existe; o nome certo é {object}.{}", names::shown(&name))
                }
                Meant::Amount => format!("{field} não existe: aqui não se envia um valor"),
                Meant::Key => format!("{field} não existe; a chave de um POST vai no cabeçalho Idempotency-Key"),
                Meant::Way(way) => format!("{field} não existe: {}", way.rule),
                Meant::Nothing if self.is_exact => format!("{field} não é aceito aqui"),
                Meant::Inside(_) | Meant::Nothing => {
                    names::note_ignored(field);
                    continue;
                }
            };
            self.push(field, UNKNOWN_FIELD, message.into());
        }
    }

    /// The problem of everything that was wrong, if anything was.
    pub fn finish(self) -> Result<()> {
        let Some(code) = self.first else {
            return Ok(());
        };
        let mut problem = Problem::new(code);
        if let (Code::ValidationFailed, Some(error)) = (code, self.errors.first()) {
            problem = problem.message(error.message.clone());
        }
        let fields: Vec<&str> = self.errors.iter().map(|error| error.field.as_str()).collect();
        Err(problem.detail(format!("Wrong or missing: {}.", fields.join(", "))).errors(self.errors))
    }

    /// What the checks made of the request, or the problem of everything that was wrong with it.
    ///
    /// A value that is absent without any error noted is a mistake of the checks, and an internal
    /// problem.
    pub fn finish_with<T>(self, checked: Option<T>) -> Result<T> {
        self.finish()?;
        checked.ok_or_else(|| failed("the checks left a value out without an error"))
    }

    fn required<'a>(&mut self, name: &'static str, raw: Raw<'a>) -> Option<&'a RawValue> {
        raw.or_else(|| self.refuse(name, REQUIRED, format!("{name} é obrigatório")))
    }

    fn mistyped<U>(&mut self, name: &'static str, code: &'static str, expected: &str) -> Option<U> {
        self.refuse(name, code, format!("{name} deve ser {expected}"))
    }

    fn within_range(&mut self, name: &'static str, digits: &str, range: RangeInclusive<i64>) -> Option<i64> {
        match digits.parse() {
            Ok(number) if range.contains(&number) => Some(number),
            _ => {
                let message = format!("{name} deve estar entre {} e {}", range.start(), range.end());
                self.refuse(name, "out_of_range", message)
            }
        }
    }

    fn within_length<'a>(
        &mut self,
        name: &'static str,
        text: Cow<'a, str>,
        length: Count,
        unit: &str,
    ) -> Option<Cow<'a, str>> {
        if length.contains(&text.chars().count()) {
            return Some(text);
        }
        let message = format!("{name} deve ter {}", counted(&length, unit));
        self.refuse(name, "wrong_length", message)
    }

    fn under<U>(&mut self, segment: Segment, check: impl FnOnce(&mut Self) -> U) -> U {
        self.path.push(segment);
        let checked = check(self);
        self.path.pop();
        checked
    }

    /// The path of a field of the object that is being checked, such as `splits[2].amount`.
    pub fn field(&self, name: &'static str) -> String {
        self.path_to(name)
    }

    fn path_to(&self, name: &str) -> String {
        let mut path = String::new();
        let add = |path: &mut String, name: &str| {
            if !path.is_empty() && name != ITSELF {
                path.push('.');
            }
            path.push_str(name);
        };
        for segment in &self.path {
            match segment {
                Segment::Element(index) => path.push_str(&format!("[{index}]")),
                Segment::Name(name) => add(&mut path, name),
            }
        }
        add(&mut path, name);
        path
    }
}

const REQUIRED: &str = "required";
const UNKNOWN_FIELD: &str = "unknown_field";

/// How many there must be: `11 dígitos`, or `de 1 a 5 itens`.
fn counted(range: &Count, unit: &str) -> String {
    let (least, most) = (range.start(), range.end());
    if least == most { format!("{most} {unit}") } else { format!("de {least} a {most} {unit}") }
}

/// The text of a JSON number that is an integer, written without fraction or exponent.
fn digits_alone(json: &str) -> Option<&str> {
    let digits = json.strip_prefix('-').unwrap_or(json);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(json)
}

/// The digits of a JSON number that is an integer, in any notation; none for one with more places
/// than an integer of 64 bits has.
fn whole_number(json: &str) -> Option<Cow<'_, str>> {
    if let Some(digits) = digits_alone(json) {
        return Some(Cow::Borrowed(digits));
    }
    let (sign, number) = json.strip_prefix('-').map_or(("", json), |number| ("-", number));
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent: i64 = exponent.parse().ok()?;
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || whole.is_empty() {
        return None;
    }
    if significant.is_empty() {
        return Some(Cow::Borrowed("0"));
    }
    // The place of the dot, counted from the first digit.
    let places = usize::try_from(exponent.checked_add(i64::try_from(whole.len()).ok()?)?).ok()?;
    let is_whole = places >= significant.len() && places <= digits.len().max(PLACES_MAX);
    is_whole.then(|| Cow::Owned(format!("{sign}{significant:0<places$}")))
}

/// Most digits of an integer of 64 bits.
const PLACES_MAX: usize = 19;

/// The value of a JSON string, borrowed unless it has escapes.
fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let quoted = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if quoted.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(quoted))
    }
}

/// A text whose lines end with LF.
fn with_line_feeds(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text }
}

fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) if text.trim().len() == text.len() => Cow::Owned(text),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

/// One to three digits, then perhaps a dot and one to four digits.
fn plain_decimal(text: &str) -> Option<Decimal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=3).contains(&whole.len()) && (1..=4).contains(&fraction.len());
    if fits && are_digits(whole) && are_digits(fraction) { Decimal::from_str_exact(text).ok() } else { None }
}

/// True for a letter that nothing shows: those of Unicode's `Default_Ignorable_Code_Point`, the
/// blank of Braille, and white space that is not of ASCII.
fn is_invisible(letter: char) -> bool {
    !letter.is_ascii() && letter.is_whitespace()
        || matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Goes through a whole text without keeping it, and refuses bad syntax, deep nesting and duplicate
/// keys.
fn inspect(text: &str) -> Result<()> {
    let mut inspection = Inspection { keys: Vec::new(), nesting: 0, finding: None };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let inspected = Inspector(&mut inspection).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    inspected.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        match inspection.finding {
            Some(Finding::Duplicate) => Problem::new(Code::DuplicateKey)
                .detail(format!("An object that ends or continues at line {line}, column {column} has a key twice.")),
            Some(Finding::TooDeep) => Problem::new(Code::InvalidJson)
                .detail(format!("At line {line}, column {column} the nesting is deeper than {NESTING_MAX}.")),
            None => invalid(error),
        }
    })
}

/// The keys of all objects that are open, those of the innermost last.
struct Inspection<'a> {
    keys: Vec<Cow<'a, str>>,
    nesting: usize,
    finding: Option<Finding>,
}

enum Finding {
    Duplicate,
    TooDeep,
}

/// Up to how many keys of an object are compared one by one; those of a larger one are sorted.
const COMPARED_KEYS_MAX: usize = 16;

impl<'a> Inspection<'a> {
    fn enter<E: Error>(&mut self) -> Result<(), E> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            self.finding = Some(Finding::TooDeep);
            return Err(E::custom("nested too deep"));
        }
        Ok(())
    }

    fn add_key<E: Error>(&mut self, first: usize, key: Cow<'a, str>) -> Result<(), E> {
        let siblings = &self.keys[first..];
        if siblings.len() < COMPARED_KEYS_MAX && siblings.contains(&key) {
            return self.duplicate();
        }
        self.keys.push(key);
        Ok(())
    }

    fn leave_object<E: Error>(&mut self, first: usize) -> Result<(), E> {
        let siblings = &mut self.keys[first..];
        if siblings.len() > COMPARED_KEYS_MAX {
            siblings.sort_unstable();
            if siblings.windows(2).any(|pair| pair[0] == pair[1]) {
                return self.duplicate();
            }
        }
        self.keys.truncate(first);
        self.nesting -= 1;
        Ok(())
    }

    fn duplicate<E: Error>(&mut self) -> Result<(), E> {
        self.finding = Some(Finding::Duplicate);
        Err(E::custom("duplicate key"))
    }
}

struct Inspector<'i, 'a>(&'i mut Inspection<'a>);

impl<'a> DeserializeSeed<'a> for Inspector<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Inspector<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut elements: A) -> Result<(), A::Error> {
        self.0.enter()?;
        while elements.next_element_seed(Inspector(self.0))?.is_some() {}
        self.0.nesting -= 1;
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.enter()?;
        let first = self.0.keys.len();
        while let Some(MemberName(key)) = members.next_key()? {
            self.0.add_key(first, key)?;
            members.next_value_seed(Inspector(self.0))?;
        }
        self.0.leave_object(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Wire<'a> {
        value: Raw<'a>,
    }

    #[test]
    fn texts_of_the_same_values_have_one_form() {
        let form = |text: &str| canonical(text.as_bytes(), None);
        for (one, other, is_same) in [
            (
                r#"{"a":1,"b":{"c":[1,{"d":2,"e":null}]}}"#,
                "\u{feff} {\"b\" : {\"c\":[ 1,\n{\"e\":null,\"d\":2}]} ,\"a\":1}\r\n",
                true,
            ),
            (r#"{"a":"João/"}"#, r#"{"\u0061":"Jo\u00e3o\/"}"#, true),
            (r#"["\ud83d\ude00\n"]"#, "[\"😀\\u000a\"]", true),
            ("[1,2]", "[2,1]", false),
            ("[[1],2]", "[[1,2]]", false),
            ("[1]", "[1.0]", false),
            ("[1]", r#"["1"]"#, false),
            (r#"{"a":null}"#, "{}", false),
            (r#"{"a":"x  y"}"#, r#"{"a":"x y"}"#, false),
            (r#"{"a":"b","c":"d"}"#, r#"{"a":"b\",\"c\":\"d"}"#, false),
            (r#"{"a":{"b":1},"c":2}"#, r#"{"a":{"b":1,"c":2}}"#, false),
            ("no JSON", "no  JSON", false),
        ] {
            assert_eq!(form(one) == form(other), is_same, "{one} {other}");
        }
        let deep = ["[".repeat(100_000), "]".repeat(100_000)].concat();
        assert_ne!(form(&deep), form(&format!("[{deep}]")));
        // It did not grow beyond the room that was made for it.
        assert_eq!(form("[[[[[[1]]]]]]").capacity(), 13 + 6);
    }

    #[test]
    fn the_security_code_is_left_out_of_it() {
        let form = |body: &str, is_secret: bool| {
            let card: BTreeMap<&str, BTreeMap<&str, &RawValue>> = serde_json::from_str(body).unwrap();
            canonical(body.as_bytes(), is_secret.then(|| card["card"]["cvv"]))
        };
        let (one, other) = (r#"{"card": {"cvv": "123", "number": "4"}}"#, r#"{"card": {"number": "4", "cvv": "456"}}"#);
        assert_eq!(form(one, true), form(other, true));
        assert_ne!(form(one, false), form(other, false));
        assert!(!String::from_utf8_lossy(&form(one, true)).contains("123"));
    }

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    /// Runs one check on one value as the field `f` and says what came of it.
    fn outcome<U: fmt::Debug>(json: &str, check: impl FnOnce(&mut Checker, Raw<'_>) -> Option<U>) -> String {
        let raw = raw(json);
        let mut checker = Checker::new();
        let value = check(&mut checker, (json != "null").then_some(&*raw));
        let errors: Vec<String> =
            checker.errors.iter().map(|error| format!("{} {}: {}", error.field, error.code, error.message)).collect();
        match value {
            Some(value) => {
                assert!(checker.finish().is_ok());
                format!("{value:?}")
            }
            None => errors.join("; "),
        }
    }

    #[test]
    fn bodies_are_read_strictly() {
        let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        let many = |last: &str| {
            let keys: String = (0..40).map(|index| format!("\"k{index}\":0,")).collect();
            format!("{{{keys}\"{last}\":0}}")
        };
        let cases: Vec<(Vec<u8>, Option<Code>)> = vec![
            (b"{}".to_vec(), None),
            (b" {\"value\": 1} \n".to_vec(), None),
            (b"{\"unknown\": {\"a\": [1, {\"b\": null}]}}".to_vec(), None),
            (b"{\"a\": {\"k\": 1}, \"b\": {\"k\": 1}, \"k\": [{\"k\": 1}, {\"k\": 2}]}".to_vec(), None),
            (deep(32).into_bytes(), None),
            (many("k40").into_bytes(), None),
            (b"".to_vec(), Some(Code::InvalidJson)),
            (b"[]".to_vec(), Some(Code::InvalidJson)),
            (b"null".to_vec(), Some(Code::InvalidJson)),
            (b"\xef\xbb\xbf{}".to_vec(), None),
            (b"\xef\xbb\xbf\xef\xbb\xbf{}".to_vec(), Some(Code::InvalidJson)),
            (b"{\"a\": 1,}".to_vec(), Some(Code::InvalidJson)),
            (b"{\"a\": 01}".to_vec(), Some(Code::InvalidJson)),
            (b"{\"a\": NaN}".to_vec(), Some(Code::InvalidJson)),
            (b"{a: 1}".to_vec(), Some(Code::InvalidJson)),
            (b"{\"a\": \"\\ud800\"}".to_vec(), Some(Code::InvalidJson)),
            (b"{\"a\": \"\n\"}".to_vec(), Some(Code::InvalidJson)),
            (b"{} {}".to_vec(), Some(Code::InvalidJson)),
            (b"{".to_vec(), Some(Code::InvalidJson)),
            (deep(33).into_bytes(), Some(Code::InvalidJson)),
            ("[".repeat(100_000).into_bytes(), Some(Code::InvalidJson)),
            (format!("{{\"a\":{}", "[".repeat(100_000)).into_bytes(), Some(Code::InvalidJson)),
            (b"{\"a\": \"\xff\"}".to_vec(), Some(Code::InvalidUtf8)),
            (b"{\"value\": 1, \"value\": 1}".to_vec(), Some(Code::DuplicateKey)),
            (b"{\"value\": 1, \"v\\u0061lue\": 1}".to_vec(), Some(Code::DuplicateKey)),
            (b"{\"unknown\": [{\"k\": {\"x\": 1, \"y\": 2, \"x\": 3}}]}".to_vec(), Some(Code::DuplicateKey)),
            (b"{\"a\": {\"k\": 1}, \"b\": 1, \"a\": 2}".to_vec(), Some(Code::DuplicateKey)),
            (many("k7").into_bytes(), Some(Code::DuplicateKey)),
            (many("k39").into_bytes(), Some(Code::DuplicateKey)),
        ];
        for (body, code) in cases {
            let found = parse::<Wire>(&body).err().map(|problem| problem.code());
            assert_eq!(found, code, "{}", String::from_utf8_lossy(&body[..body.len().min(80)]));
        }
    }

    #[test]
    fn a_shape_is_refused_as_its_bytes_arrive() {
        let seen = |text: &str, part: usize| {
            let mut shape = Shape::default();
            text.as_bytes().chunks(part).try_for_each(|part| shape.see(part)).map_err(|problem| problem.code())
        };
        let split = r#"{"sub_recipient_id":"7f1f7b5e-3c1a-8b2d-9a4e-0123456789ab","amount":100}"#;
        let cases = [
            (format!("{{\"splits\":[{}]}}", vec![split; 10_000].join(",")), Ok(())),
            (format!("{{\"a\":\"{}\"}}", r#",[{\","#.repeat(100_000)), Ok(())),
            (format!("{{\"a\":\"{}\"}}", r"\\".repeat(100_000)), Ok(())),
            ("[1]".repeat(VALUES_MAX), Ok(())),
            ("1,".repeat(VALUES_MAX), Ok(())),
            ("1,".repeat(VALUES_MAX + 1), Err(Code::InvalidJson)),
            (format!("{{\"a\":\"\\\\\"{}", "1,".repeat(VALUES_MAX)), Err(Code::InvalidJson)),
            ("[".repeat(NESTING_MAX), Ok(())),
            ("[".repeat(NESTING_MAX + 1), Err(Code::InvalidJson)),
        ];
        for (text, expected) in cases {
            for part in [1, 1_000, text.len()] {
                assert_eq!(seen(&text, part), expected, "{}", &text[..text.len().min(80)]);
            }
        }
    }

    /// Each wrong line is a problem of its own, so their number is known before one is made.
    #[test]
    fn elements_are_counted_before_they_are_read() {
        let lines = "x\n".repeat(2 << 20);
        assert_eq!(texts(lines.as_bytes(), true, 3).unwrap(), [1, 2, 3, 4].map(|number| (number, &b"x"[..])));
        let refused = |body: &str, is_lines| elements(body.as_bytes(), is_lines, 1..=3).unwrap_err().code();
        assert_eq!(refused(&lines, true), Code::ValidationFailed);
        assert_eq!(refused("[1, 2, 3, 4]", false), Code::ValidationFailed);
        for (body, is_lines, wrong) in [("\n{}\nx\n", true, "Line 3"), ("[{}, 7]", false, "Element 1")] {
            let read = elements(body.as_bytes(), is_lines, 1..=3).unwrap();
            let [Ok(object), Err(problem)] = read.as_slice() else { panic!("{read:?}") };
            let problem: serde_json::Value = serde_json::from_slice(&problem.render("/", "")).unwrap();
            assert!(*object == "{}" && problem["detail"].as_str().unwrap().starts_with(wrong), "{problem}");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_is_large_is_read_beside_the_worker() {
        let (entered, met) = std::sync::mpsc::channel();
        // With the only worker held, the other task would never run.
        let done = tokio::spawn(async move {
            tokio::spawn(async move { entered.send(()).unwrap() });
            aside(LARGE_BYTES + 1, || met.recv_timeout(std::time::Duration::from_secs(60)).is_ok())
        });
        assert!(done.await.unwrap());
    }

    /// A decimal of the crates reads `1e3` as 1000, and takes `5.`, `.5` and `1__0`.
    #[test]
    fn percents_are_plain_decimals() {
        assert_eq!("1e3".parse(), Ok(Decimal::ONE_THOUSAND), "the crate reads more than we do");
        for text in ["1e3", "1E3", "1e-2", "1__0", "5.", ".5", "+1", "-1", "0x10", "NaN", "1,5", "1.00001", ""] {
            assert_eq!(plain_decimal(text), None, "{text}");
        }
        for text in ["0", "2.99", "100", "0.0001"] {
            assert_eq!(plain_decimal(text).map(|percent| percent.to_string()).as_deref(), Some(text));
        }
    }

    #[test]
    fn centavos_are_json_integers() {
        let wrong_type = "f not_an_integer: f deve ser inteiro em centavos";
        let out_of_range = "f out_of_range: f deve estar entre 1 e 1000000000000";
        let cases = [
            ("1", "1"),
            ("1000000000000", "1000000000000"),
            ("\"10.00\"", wrong_type),
            ("\"1000\"", wrong_type),
            ("10.0", wrong_type),
            ("1e3", wrong_type),
            ("4.95e2", wrong_type),
            ("true", wrong_type),
            ("[1]", wrong_type),
            ("null", "f required: f é obrigatório"),
            ("0", out_of_range),
            ("-0", out_of_range),
            ("-5", out_of_range),
            ("1000000000001", out_of_range),
            ("99999999999999999999999", out_of_range),
        ];
        for (json, expected) in cases {
            assert_eq!(outcome(json, |check, raw| check.centavos("f", raw, 1..=i64::MAX)), expected, "{json}");
        }
    }

    #[test]
    fn integers_may_come_as_strings_where_the_interface_has_both() {
        let not_an_integer = "f not_an_integer: f deve ser um número inteiro";
        let out_of_range = "f out_of_range: f deve estar entre 1 e 12";
        let cases = [
            ("12", "12", "12"),
            ("\"12\"", not_an_integer, "12"),
            ("\"03\"", not_an_integer, "3"),
            ("13", out_of_range, out_of_range),
            ("\"13\"", not_an_integer, out_of_range),
            ("\"\"", not_an_integer, not_an_integer),
            ("\"+1\"", not_an_integer, not_an_integer),
            ("1.0", "1", "1"),
            ("12.00", "12", "12"),
            ("1.2e1", "12", "12"),
            ("120E-1", "12", "12"),
            ("1e+1", "10", "10"),
            ("1.5", not_an_integer, not_an_integer),
            ("1e-1", not_an_integer, not_an_integer),
            ("0.0e99", out_of_range, out_of_range),
            ("-1.0", out_of_range, out_of_range),
            ("1e18", out_of_range, out_of_range),
            ("1e19", not_an_integer, not_an_integer),
            ("1e999999999999999999999", not_an_integer, not_an_integer),
            ("1e-9223372036854775808", not_an_integer, not_an_integer),
            ("null", "f required: f é obrigatório", "f required: f é obrigatório"),
        ];
        for (json, strict, lenient) in cases {
            assert_eq!(outcome(json, |check, raw| check.integer("f", raw, 1..=12)), strict, "{json}");
            assert_eq!(outcome(json, |check, raw| check.integer_or_string("f", raw, 1..=12)), lenient, "{json}");
        }
    }

    #[test]
    fn texts_are_trimmed_and_measured_in_characters() {
        let cases = [
            ("\"João\"", "\"João\""),
            ("\" Jo\\u00e3o \"", "\"João\""),
            ("\"a\\/b\\\"\"", "\"a/b\\\"\""),
            ("\"ção é\"", "\"ção é\""),
            ("\"çãoéóú\"", "f wrong_length: f deve ter de 1 a 5 caracteres"),
            ("\"  \"", "f wrong_length: f deve ter de 1 a 5 caracteres"),
            ("\"a\\u0000b\"", "f control_character: f contém caracteres de controle"),
            ("\"a\\nb\"", "f control_character: f contém caracteres de controle"),
            ("12", "f not_a_string: f deve ser um texto"),
            ("null", "f required: f é obrigatório"),
        ];
        for (json, expected) in cases {
            assert_eq!(
                outcome(json, |check, raw| check.text("f", raw, 1..=5).map(Cow::into_owned)),
                expected,
                "{json}"
            );
        }
        let exactly = |check: &mut Checker, raw: Raw<'_>| check.text("f", raw, 2..=2).map(Cow::into_owned);
        assert_eq!(outcome("\"abc\"", exactly), "f wrong_length: f deve ter 2 caracteres");
        assert_eq!(outcome("null", |check, raw| check.optional_text("f", raw, 1..=5).map(Cow::into_owned)), "");
        assert!(matches!(string(&raw("\"plain\"")), Some(Cow::Borrowed("plain"))));
    }

    #[test]
    fn prose_keeps_its_lines_and_tabs() {
        let control = "f control_character: f contém caracteres de controle";
        let cases = [
            (r#""a\nb""#, r#""a\nb""#),
            (r#""a\r\nb\rc""#, r#""a\nb\nc""#),
            (r#""a\tb""#, r#""a\tb""#),
            (r#""\r\n a \n""#, r#""a""#),
            (r#""a\u0000b""#, control),
            (r#""a\u001bb""#, control),
            (r#""a\u0085b""#, control),
            (r#""\n""#, "f wrong_length: f deve ter de 1 a 5 caracteres"),
            (r#""a\r\nb\r\nc""#, r#""a\nb\nc""#),
            ("12", "f not_a_string: f deve ser um texto"),
        ];
        for (json, expected) in cases {
            let prose = |check: &mut Checker, raw: Raw<'_>| check.prose("f", raw, 1..=5).map(Cow::into_owned);
            assert_eq!(outcome(json, prose), expected, "{json}");
        }
    }

    #[test]
    fn unknown_names_are_refused_or_ignored_by_their_path() {
        let refused = |body: &str, mut check: Checker| {
            let whole = raw(body);
            check.object("customer", Some(&whole), |_, _: Wire<'_>| Some(()));
            check.errors.iter().map(|error| format!("{} {}", error.field, error.code)).collect::<Vec<_>>()
        };
        assert_eq!(refused(r#"{"valeu": 1, "cep": 2}"#, Checker::new()), ["customer.valeu unknown_field"]);
        let both = ["customer.valeu unknown_field", "customer.cep unknown_field"];
        assert_eq!(refused(r#"{"valeu": 1, "cep": 2}"#, Checker::exact()), both);
        let code = |parsed: Result<()>| parsed.err().map(|problem| problem.code());
        for body in ["", "{}", "[]", " null ", "\u{feff}[]", "{\"reason\": 1}"] {
            assert_eq!(code(parse_unread(body.as_bytes())), None, "{body}");
        }
        for body in ["{\"amount\": 1}", "{\"value\": 1}"] {
            assert_eq!(code(parse_unread(body.as_bytes())), Some(Code::ValidationFailed), "{body}");
        }
        for body in ["[1]", "0", "false", "\"\"", "[[]]"] {
            assert_eq!(code(parse_unread(body.as_bytes())), Some(Code::InvalidJson), "{body}");
        }
        assert_eq!(code(parse_unread_exact(b"{\"reason\": 1}")), Some(Code::ValidationFailed));
    }

    #[test]
    fn the_other_kinds_of_values() {
        let id = "\"7f1f7b5e-3c1a-8b2d-9a4e-0123456789ab\"";
        let not_a_percentage =
            "f not_a_percentage: f deve ser um percentual em texto com até 4 decimais, como \"2.99\"";
        assert_eq!(outcome(id, |check, raw| check.uuid("f", raw)), id.trim_matches('"'));
        for json in ["\"7f1f7b5e3c1a8b2d9a4e0123456789ab\"", "\"\"", "1"] {
            assert_eq!(outcome(json, |check, raw| check.uuid("f", raw)), "f not_a_uuid: f deve ser um UUID");
        }
        let booleans =
            [("true", "true"), ("false", "false"), ("\"true\"", "f not_a_boolean: f deve ser true ou false")];
        for (json, expected) in booleans {
            assert_eq!(outcome(json, |check, raw| check.boolean("f", raw)), expected);
        }
        let percents = [
            ("\"2.99\"", "2.99"),
            ("\"0\"", "0"),
            ("\"100.0000\"", "100.0000"),
            ("\"100.0001\"", "f out_of_range: f deve estar entre 0 e 100"),
            ("\"2.99999\"", not_a_percentage),
            ("\"-1\"", not_a_percentage),
            ("\"2.\"", not_a_percentage),
            ("\".5\"", not_a_percentage),
            ("\"1_0\"", not_a_percentage),
            ("2.99", not_a_percentage),
        ];
        for (json, expected) in percents {
            assert_eq!(outcome(json, |check, raw| check.decimal_percent("f", raw)), expected, "{json}");
        }
        let digits = [
            ("\"4111\"", "\"4111\""),
            ("\"41 11\"", "f not_digits: f deve ser um texto só de dígitos"),
            ("\"\"", "f wrong_length: f deve ter de 3 a 4 dígitos"),
            ("411", "f not_digits: f deve ser um texto só de dígitos"),
        ];
        for (json, expected) in digits {
            assert_eq!(
                outcome(json, |check, raw| check.digits("f", raw, 3..=4).map(Cow::into_owned)),
                expected,
                "{json}"
            );
        }
    }

    fn split(check: &mut Checker, item: Raw<'_>) -> Option<i64> {
        check.object(ITSELF, item, |check, split: Wire<'_>| check.centavos("value", split.value, 1..=100))
    }

    #[test]
    fn errors_carry_the_path_of_their_field() {
        let cases = [
            ("[]", "[]"),
            ("[{\"value\": 3}, {\"value\": 4}]", "[3, 4]"),
            (
                "[{\"value\": 3}, {\"value\": \"4\"}, {}, 5, null, [1]]",
                "f[1].value not_an_integer: f[1].value deve ser inteiro em centavos; \
                 f[2].value required: f[2].value é obrigatório; \
                 f[3] not_an_object: f[3] deve ser um objeto; \
                 f[4] required: f[4] é obrigatório; \
                 f[5] not_an_object: f[5] deve ser um objeto",
            ),
            ("{\"value\": 3}", "f not_an_array: f deve ser uma lista"),
            ("[0, 0, 0, 0, 0, 0, 0]", "f wrong_count: f deve ter de 0 a 6 itens"),
        ];
        for (json, expected) in cases {
            assert_eq!(outcome(json, |check, raw| check.array("f", raw, 0..=6, split)), expected, "{json}");
        }
        let nested = |check: &mut Checker, raw: Raw<'_>| {
            check.object("customer", raw, |check, wire: Wire<'_>| check.boolean("value", wire.value))
        };
        let expected = "customer.value not_a_boolean: customer.value deve ser true ou false";
        assert_eq!(outcome("{\"value\": 1}", nested), expected);
    }

    #[test]
    fn a_thousand_errors_are_answered_with_the_first_of_them() {
        let json = format!("[{}1]", "1,".repeat(999));
        let raw = raw(&json);
        let mut check = Checker::new();
        assert_eq!(check.array("f", Some(&raw), 0..=1_000, split), None);
        assert_eq!(check.errors.len(), ERRORS_MAX);
        assert!(check.finish().is_err());
    }

    #[test]
    fn the_first_error_names_the_problem() {
        let text = raw("\"1000\"");
        let check_both = |card_first: bool| {
            let mut check = Checker::new();
            if !card_first {
                check.centavos("amount", Some(&text), 1..=10);
            }
            check.reporting(Code::InvalidCardData, |check| check.digits("cvv", None, 3..=4));
            if card_first {
                check.centavos("amount", Some(&text), 1..=10);
            }
            let problem = check.finish_with(Some(())).unwrap_err();
            let body: serde_json::Value = serde_json::from_slice(&problem.render("/", "")).unwrap();
            (problem.code(), body["message"].as_str().unwrap().to_owned(), body["errors"].as_array().unwrap().len())
        };
        let amount = "amount deve ser inteiro em centavos".to_owned();
        assert_eq!(check_both(false), (Code::ValidationFailed, amount, 2));
        assert_eq!(check_both(true), (Code::InvalidCardData, "Dados do cartão inválidos".to_owned(), 2));
        assert_eq!(Checker::new().finish_with(Some(7)).unwrap(), 7);
        assert_eq!(Checker::new().finish_with(None::<u8>).unwrap_err().code(), Code::Internal);
    }
}
