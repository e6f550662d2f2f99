//! CPF and CNPJ against `python-stdnum`: ten thousand documents and near misses, generated here,
//! judged by both.
//!
//! Get it with `python3 -m pip install 'python-stdnum>=2.1'`; `CENTAVO_PYTHON` names another
//! interpreter than `python3`.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use ledger::tax_id::{DocumentKind, kind};

const DOCUMENTS: usize = 10_000;
/// The exit status by which the script says that the package is not there.
const MISSING: i32 = 3;

#[test]
fn documents_are_judged_as_by_python_stdnum() {
    let documents = documents();
    let Some(verdicts) = verdicts(&documents) else { return };
    assert_eq!(verdicts.len(), documents.len());
    let counts = ["cpf", "cnpj", "neither"].map(|word| documents.iter().filter(|text| ours(text) == word).count());
    assert!(counts.iter().all(|count| *count > DOCUMENTS / 10), "too few of a kind to prove anything: {counts:?}");
    assert_eq!(differences(&documents, &verdicts, ours), [""; 0]);
    // A judge that does not look at the last digit, and one that knows no letters, are found.
    let without_last = |document: &str| {
        let begin = document.get(..document.len().saturating_sub(1)).unwrap_or_default();
        ('0'..='9').map(|digit| ours(&format!("{begin}{digit}"))).find(|word| *word != "neither").unwrap_or("neither")
    };
    let without_letters =
        |document: &str| if document.bytes().all(|byte| byte.is_ascii_digit()) { ours(document) } else { "neither" };
    assert!(differences(&documents, &verdicts, without_last).len() > 100);
    assert!(differences(&documents, &verdicts, without_letters).len() > 100);
}

fn ours(document: &str) -> &'static str {
    match kind(document) {
        Some(DocumentKind::Cpf) => "cpf",
        Some(DocumentKind::Cnpj) => "cnpj",
        None => "neither",
    }
}

/// The documents of which a judge says something else than the package.
fn differences<'a>(documents: &'a [String], verdicts: &[String], judge: impl Fn(&str) -> &'static str) -> Vec<&'a str> {
    let is_other = |(document, verdict): &(&String, &String)| {
        // The one difference: a document of equal characters has right check digits, and
        // belongs to no person.
        let is_one_character = document.bytes().all(|byte| byte == document.as_bytes()[0]);
        judge(document) != if is_one_character { "neither" } else { verdict.as_str() }
    };
    documents.iter().zip(verdicts).filter(is_other).map(|(document, _)| document.as_str()).collect()
}

/// What the package says of each; `None` if it is not there.
fn verdicts(documents: &[String]) -> Option<Vec<String>> {
    let python = std::env::var("CENTAVO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/tax_ids.py");
    let mut command = Command::new(&python);
    let child = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return missing(&format!("{python} does not start ({error})")),
    };
    let mut stdin = child.stdin.take().unwrap();
    let sent = documents.join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(sent.as_bytes()));
    let (mut output, mut complaint) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    let (status, written) = (child.wait().unwrap(), writer.join().unwrap());
    if status.code() == Some(MISSING) {
        return missing(complaint.trim());
    }
    assert!(status.success() && written.is_ok(), "{status}: {complaint}");
    Some(output.lines().map(str::to_owned).collect())
}

fn missing(what: &str) -> Option<Vec<String>> {
    let message = format!("{what}; get it with: python3 -m pip install 'python-stdnum>=2.1', or set CENTAVO_PYTHON");
    let is_required = std::env::var("CENTAVO_CONFORMANCE").is_ok_and(|value| value == "required");
    assert!(!is_required, "{message}");
    println!("not tried: {message}");
    None
}

/// Valid documents of both kinds, and the same with one character changed, two exchanged, one more
/// or one less.
fn documents() -> Vec<String> {
    let mut random = Random(0x5EED);
    let mut documents: Vec<String> =
        ('0'..='9').flat_map(|digit| [11, 14].map(|length| digit.to_string().repeat(length))).collect();
    while documents.len() < DOCUMENTS {
        let mut document = match random.below(3) {
            0 => with_check_digits(&random.text(9, DIGITS), usize::MAX),
            1 => with_check_digits(&random.text(12, DIGITS), 8),
            _ => with_check_digits(&random.text(12, LETTERS_AND_DIGITS), 8),
        };
        let (at, other) = (random.below(document.len()), random.below(document.len()));
        match random.below(8) {
            0 => document[at] = random.pick(DIGITS),
            1 => document[at] = random.pick(LETTERS_AND_DIGITS),
            2 => document.swap(at, other),
            3 => drop(document.remove(at)),
            4 => document.insert(at, random.pick(DIGITS)),
            _ => {}
        }
        documents.push(String::from_utf8(document).unwrap());
    }
    documents
}

const DIGITS: &[u8] = b"0123456789";
const LETTERS_AND_DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// The check digits as the Receita Federal describes them, written apart from the product's.
fn with_check_digits(begin: &[u8], weights: usize) -> Vec<u8> {
    let mut document = begin.to_vec();
    for _ in 0..2 {
        let values = document.iter().rev().map(|character| usize::from(character - b'0'));
        let sum: usize = values.enumerate().map(|(place, value)| value * (2 + place % weights)).sum();
        document.push(b'0' + ((sum * 10 % 11) % 10) as u8);
    }
    document
}

/// SplitMix64: the same documents every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick(&mut self, alphabet: &[u8]) -> u8 {
        alphabet[self.below(alphabet.len())]
    }

    fn text(&mut self, length: usize, alphabet: &[u8]) -> Vec<u8> {
        (0..length).map(|_| self.pick(alphabet)).collect()
    }
}
