//! Tokens of an OFX file: its tags, each with the text behind it. Version 1 is SGML, whose values
//! have no closing tags; version 2 is XML.
//!
//! A value goes on through comments, CDATA and the tags with which banks format texts (`<BR/>`). A
//! file is refused that has declarations (`<!DOCTYPE`, `<!ENTITY`) or an entity that HTML does not
//! have. So nothing in it can refer to another place or grow when it is read.

use std::borrow::Cow;

use super::cnab240;
use super::finding::FileError;

/// Bytes of a value at most.
const VALUE_BYTES_MAX: usize = 4_096;
/// Tags of HTML with which banks format the text of a value.
const FORMATTING: [&str; 11] = ["BR", "B", "I", "U", "P", "EM", "STRONG", "FONT", "SPAN", "DIV", "HR"];

/// A tag, and the value behind it.
pub(super) struct Token<'a> {
    /// Number of the line on which the tag begins, from 1.
    pub(super) line: u64,
    /// The name, in capitals.
    pub(super) tag: Cow<'a, str>,
    /// The text up to the next tag, without blanks around it; `None` where nothing is left.
    pub(super) value: Option<String>,
    /// Whether it closes an element.
    pub(super) is_end: bool,
}

/// Reader of the tokens of a file.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    line: u64,
}

/// The text of a file: UTF-8 or, where it is not, ISO 8859-1, of which Brazilian banks use the
/// printable part. What an editor or a transfer leaves behind the end (Ctrl-Z, NUL) is cut off.
pub(super) fn decoded(file: &[u8]) -> Cow<'_, str> {
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    let is_left_over = |byte: &u8| matches!(byte, 0 | 0x1a) || byte.is_ascii_whitespace();
    let file = &file[..file.iter().rposition(|byte| !is_left_over(byte)).map_or(0, |last| last + 1)];
    match str::from_utf8(file) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(file.iter().copied().map(char::from).collect()),
    }
}

/// Refuses a bank statement in a format that is not read here, by its name: its first defect would
/// send people to mend a file that is right.
pub(super) fn refuse_other_statement(text: &str) -> Result<(), FileError> {
    let line = text.lines().next().unwrap_or_default();
    let format = if cnab240::is_one(text) {
        let defect = "CNAB 240 não é CSV: envie o arquivo sem tipo, ou como application/x-ofx".to_owned();
        return Err(FileError { line: 1, defect });
    } else if text.lines().take(3).any(|line| line.contains("xsd:camt.05")) {
        "camt.053"
    } else if line.starts_with(":20:") || line.starts_with("{1:") {
        "MT940"
    } else {
        return Ok(());
    };
    Err(FileError { line: 1, defect: format!("{format} não é lido: peça ao banco o extrato em OFX") })
}

impl<'a> Tokens<'a> {
    /// Passes over the head of a file: lines `NAME:VALUE` of version 1.
    pub(super) fn new(text: &'a str) -> Result<Self, FileError> {
        let refused = || FileError { line: 1, defect: "não é OFX".to_owned() };
        let begin = text.find('<').ok_or_else(refused)?;
        let head = &text[..begin];
        let is_head = |line: &str| {
            let name = line.split_once(':').map(|(name, _)| name.trim());
            name.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase()))
        };
        if !head.lines().filter(|line| !line.trim().is_empty()).all(is_head) {
            return Err(refused());
        }
        Ok(Self { rest: &text[begin..], line: 1 + newlines(head) })
    }

    /// The next tag; `None` at the end of the file. Errors: the line with what is no OFX.
    pub(super) fn next_token(&mut self) -> Result<Option<Token<'a>>, FileError> {
        while !self.rest.is_empty() {
            let line = self.line;
            let refused = |defect: &str| FileError { line, defect: defect.to_owned() };
            if self.rest.starts_with("<!--") {
                self.skip_through("-->")?;
                self.blank_text(line)?;
                continue;
            }
            let begun = self.rest.strip_prefix('<').ok_or_else(|| refused("texto fora de um elemento"))?;
            if begun.starts_with('!') {
                return Err(refused("declarações e entidades não são aceitas"));
            }
            let (tag, after) = begun.split_once('>').ok_or_else(|| refused("elemento sem >"))?;
            (self.rest, self.line) = (after, line + newlines(tag));
            if tag.starts_with('?') {
                self.blank_text(line)?;
                continue;
            }
            let (tag, is_end) = tag.strip_prefix('/').map_or((tag, false), |tag| (tag, true));
            let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
            // OFX has no attributes; those of XML, such as the namespace, are ignored.
            let tag = tag.split_ascii_whitespace().next().unwrap_or_default();
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_';
            if tag.is_empty() || tag.len() > 64 || !tag.bytes().all(is_name) {
                return Err(refused("nome de elemento inválido"));
            }
            if is_end || is_empty {
                self.blank_text(line)?;
            }
            if is_empty {
                continue;
            }
            let value = if is_end { None } else { self.text(line)? };
            return Ok(Some(Token { line, tag: in_capitals(tag), value, is_end }));
        }
        Ok(None)
    }

    /// Passes over the text behind a tag that has no value.
    fn blank_text(&mut self, line: u64) -> Result<(), FileError> {
        match self.text(line)? {
            None => Ok(()),
            Some(_) => Err(FileError { line, defect: "texto fora de um elemento".to_owned() }),
        }
    }

    /// The text up to the next tag of OFX, of the tag that begins on `line`.
    fn text(&mut self, line: u64) -> Result<Option<String>, FileError> {
        let refused = |defect: &str| FileError { line, defect: defect.to_owned() };
        let mut text = String::new();
        loop {
            let (before, rest) = self.rest.split_at(self.rest.find('<').unwrap_or(self.rest.len()));
            (self.rest, self.line) = (rest, self.line + newlines(before));
            text.push_str(&unescaped(before).ok_or_else(|| refused("entidade não aceita"))?);
            let Some(begun) = rest.strip_prefix('<') else { break };
            if begun.starts_with("!--") {
                self.skip_through("-->")?;
            } else if begun.starts_with("![CDATA[") {
                let data = self.skip_through("]]>")?;
                text.push_str(&data["<![CDATA[".len()..]);
            } else if is_formatting(begun) {
                self.skip_through(">")?;
                text.push(' ');
            } else if begun.starts_with(|next: char| next.is_ascii_alphabetic() || "/!?".contains(next)) {
                break;
            } else {
                // A sign in a text that the bank did not escape.
                self.rest = begun;
                text.push('<');
            }
        }
        let value = text.trim();
        match value.len() {
            0 => Ok(None),
            1..=VALUE_BYTES_MAX => Ok(Some(value.replace(|character: char| character.is_control(), " "))),
            _ => Err(refused("valor longo demais")),
        }
    }

    /// Skips to the end of a mark; gives the text before it.
    fn skip_through(&mut self, mark: &str) -> Result<&'a str, FileError> {
        let refused = || FileError { line: self.line, defect: format!("falta {mark}") };
        let (passed, rest) = self.rest.split_once(mark).ok_or_else(refused)?;
        (self.rest, self.line) = (rest, self.line + newlines(passed));
        Ok(passed)
    }
}

fn in_capitals(tag: &str) -> Cow<'_, str> {
    if tag.bytes().any(|byte| byte.is_ascii_lowercase()) {
        Cow::Owned(tag.to_ascii_uppercase())
    } else {
        Cow::Borrowed(tag)
    }
}

/// Whether a tag, which begins after its `<`, is one of HTML that formats a text.
fn is_formatting(begun: &str) -> bool {
    let Some((tag, _)) = begun.split_once('>') else { return false };
    let name = tag.trim_matches('/').split_ascii_whitespace().next().unwrap_or_default();
    FORMATTING.iter().any(|known| known.eq_ignore_ascii_case(name.trim_end_matches('/')))
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// A text with its entities replaced; `None` where one is unknown. An `&` that begins no entity is
/// itself, as banks write it in names of shops: `C&A`, and in capitals also before a semicolon.
fn unescaped(value: &str) -> Option<Cow<'_, str>> {
    if !value.contains('&') {
        return Some(Cow::Borrowed(value));
    }
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('&') {
        text.push_str(before);
        let name_of = |(name, _): &(&str, &str)| {
            let name = name.strip_prefix('#').unwrap_or(name);
            (1..=8).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let entity = after.split_once(';').filter(name_of);
        let found = entity.and_then(|(name, behind)| Some((character_of(name)?, behind)));
        rest = match (found, entity) {
            (Some((character, behind)), _) => {
                text.push(character);
                behind
            }
            (None, Some((name, _))) if !name.bytes().all(|byte| byte.is_ascii_uppercase()) => return None,
            _ => {
                text.push('&');
                after
            }
        };
    }
    text.push_str(rest);
    Some(Cow::Owned(text))
}

/// Names of the characters 160 to 255 in HTML, in order.
const LATIN_1: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn \
    sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde \
    Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde \
    Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil \
    egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave \
    uacute ucirc uuml yacute thorn yuml";
/// Other names of HTML that stand in texts.
const OTHERS: [(&str, char); 24] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("AMP", '&'),
    ("LT", '<'),
    ("GT", '>'),
    ("QUOT", '"'),
    ("ndash", '–'),
    ("mdash", '—'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("bull", '•'),
    ("hellip", '…'),
    ("trade", '™'),
    ("euro", '€'),
    ("ensp", ' '),
    ("emsp", ' '),
    ("thinsp", ' '),
];

/// The character of an entity; `None` where HTML has none of this name or number. Controls are
/// blanks: those of Windows-1252 look like those of ISO 8859-1.
fn character_of(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        let latin = || {
            let place = LATIN_1.split_ascii_whitespace().position(|known| known == name)?;
            char::from_u32(160 + place as u32)
        };
        let other = OTHERS.iter().find(|(known, _)| *known == name).map(|(_, character)| *character);
        return other.or_else(latin).map(|character| if character == '\u{a0}' { ' ' } else { character });
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    match code {
        0x09 | 0x0a | 0x0d | 0x80..=0xa0 => Some(' '),
        code => char::from_u32(code).filter(|character| !character.is_control()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first value of a file with one element.
    fn value(text: &str) -> Result<Option<String>, String> {
        let file = format!("<MEMO>{text}</MEMO>");
        let token = Tokens::new(&file).and_then(|mut tokens| tokens.next_token());
        token.map(|token| token.unwrap().value).map_err(|error| error.defect)
    }

    #[test]
    fn statements_in_other_formats_are_named() {
        let camt = "<?xml version=\"1.0\"?>\n<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\">";
        for (text, format) in
            [(&*format!("{:0<240}\r\n", "34100000"), "CNAB 240"), (camt, "camt.053"), (":20:1\n", "MT940")]
        {
            let refused = refuse_other_statement(text).unwrap_err();
            assert_eq!((refused.line, refused.defect.split(" não").next()), (1, Some(format)));
        }
        for text in ["", "OFXHEADER:100", "batch,paid_on", &format!("{:<240}", "<OFX>"), &"é".repeat(239)] {
            assert_eq!(refuse_other_statement(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn texts_are_read_as_banks_write_them() {
        for (text, expected) in [
            ("C&A MODAS", "C&A MODAS"),
            ("TOK&STOK", "TOK&STOK"),
            ("P&G; LTDA", "P&G; LTDA"),
            ("JOAO & CIA", "JOAO & CIA"),
            ("A&", "A&"),
            ("&&amp;&", "&&&"),
            ("M&M'S; E&O #1;", "M&M'S; E&O #1;"),
            ("COMISS&Atilde;O &ccedil;&ordm; &amp;ccedil;", "COMISSÃO çº &ccedil;"),
            ("A&nbsp;B&#160;C&#xE7;&#XE7;&#13;&#10;D", "A B Cçç  D"),
            ("R&eacute;gis &ndash; &yuml;", "Régis – ÿ"),
            ("A<BR/>B<br />C<BR>D<b>E</b>", "A B C D E"),
            ("<BR/>A", "A"),
            ("<![CDATA[A & B <C> &amp; ]]>D", "A & B <C> &amp; D"),
            ("A<!-- <STMTTRN> -->B", "AB"),
            ("A < 5 <3", "A < 5 <3"),
            ("A\u{0}B", "A B"),
        ] {
            assert_eq!(value(text), Ok(Some(expected.to_owned())), "{text}");
        }
        for (text, defect) in [
            ("&x;", "entidade"),
            ("&Lote;", "entidade"),
            ("&#0;", "entidade"),
            ("&#xd800;", "entidade"),
            ("<!ENTITY a \"b\">", "declarações"),
            ("<!-- x", "falta -->"),
            ("<![CDATA[x", "falta ]]>"),
        ] {
            let file = format!("<MEMO>{text}");
            let mut tokens = Tokens::new(&file).unwrap();
            let error = (0..2).find_map(|_| tokens.next_token().err()).unwrap();
            assert!(error.defect.contains(defect), "{text}: {error}");
        }
        assert!(value(&"x".repeat(VALUE_BYTES_MAX + 1)).is_err());
    }

    #[test]
    fn a_head_may_have_blanks_and_stand_on_one_line() {
        for head in ["", "\n", "OFXHEADER:100\nVERSION: 102\n", "OFXHEADER:100 DATA:OFXSGML\n", "OFXHEADER : 100"] {
            assert!(Tokens::new(&format!("{head}<OFX>")).is_ok(), "{head}");
        }
        for head in ["x", "batch,paid_on\n", "{\"a\":1}", "\u{0}\u{1}", "a:1", ":1"] {
            assert!(Tokens::new(&format!("{head}<OFX>")).is_err(), "{head}");
        }
        assert_eq!(decoded(b"\xef\xbb\xbf<OFX/>\r\n\x1a\x00\x00"), "<OFX/>");
        assert_eq!(decoded(b"\x1a\x00"), "");
    }
}
