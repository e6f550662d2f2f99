//! Reconciliation of the acquirer's batches: a CSV file with a line for each installment, refund
//! and dispute, against the lines that were booked.
//!
//! The columns are `batch,paid_on,charge,kind,id,gross,fee,net`: the batch's reference, the day of
//! the payment (`2026-11-30`), the charge's txid, `installment`, `refund` or `dispute`, the number
//! of the installment or the id of the refund or dispute, and three amounts in centavos, below zero
//! where the acquirer takes money back.
//!
//! As a Brazilian spreadsheet saves it, the file has semicolons between its columns, days of the
//! form `30/11/2026`, and may have amounts in reais with a decimal comma: when one amount of such a
//! file has a comma, all are in reais.
//!
//! Adyen's settlement details report is read too ([`adyen_report`]).
//!
//! A file is of the days from its first payment to its last: a batch that was booked for one of
//! them and that no line names is missing in the file. A file with a head alone is of no day.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate};
use ledger::event::SettledLine;
use ledger::{AMOUNT_MAX, Centavos, ObjectId, SettledObject};

use super::adyen_report;
pub use super::finding::{Comparison, FileError, Finding, FindingKind, SettledAmount};
use super::ofx_tokens::{decoded, refuse_other_statement};
use super::ofx_values::amount_of;

/// The columns, in order.
pub const COLUMNS: [&str; 8] = ["batch", "paid_on", "charge", "kind", "id", "gross", "fee", "net"];
/// Lines of a file at most.
pub const LINES_MAX: usize = 200_000;
/// Days from the first payment of a file to its last, both counted, at most.
pub const PERIOD_DAYS_MAX: i64 = 366;
/// Characters of a batch's reference at most.
const REFERENCE_LEN_MAX: usize = 100;

/// What a line of a batch is about: no two lines of a batch have the same.
pub type LineKey = (ObjectId, SettledObject);

/// One payment or deduction of the acquirer's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    /// Its number in the file; the head is line 1.
    pub line: u64,
    /// Reference of the batch.
    pub batch: String,
    /// What it is about.
    pub key: LineKey,
    /// What it says.
    pub settled: SettledAmount,
    /// What it is in the acquirer's words, beside its key.
    pub text: Option<String>,
}

/// A file of the acquirer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchFile {
    /// The days of its first payment and of its last; `None` of a file without lines.
    pub days: Option<(NaiveDate, NaiveDate)>,
    /// The lines, in the order of the file.
    pub lines: Vec<FileLine>,
}

/// How a file writes its values.
#[derive(Clone, Copy)]
struct Notation {
    /// Whether it is as a Brazilian spreadsheet saves it.
    is_spreadsheet: bool,
    /// Whether its amounts are in reais.
    is_reais: bool,
}

/// Reads a file whole. Errors: the first line with a defect; payments of more than 366 days.
pub fn read(file: &[u8]) -> Result<BatchFile, FileError> {
    let text = decoded(file).replace("\r\n", "\n");
    refuse_other_statement(&text)?;
    // A spreadsheet may name the separator before the head.
    let named = text.split_once('\n').filter(|(line, _)| line.trim_end() == "sep=;");
    let (body, first) = named.map_or((&*text, 1), |(_, body)| (body, 2));
    if adyen_report::is_one(body) {
        return file_of(adyen_report::read(body)?);
    }
    let is_spreadsheet = body.lines().next().is_some_and(|head| head.contains(';'));
    let rows = rows_of(body, is_spreadsheet, first)?;
    let amounts = rows.iter().flat_map(|(_, row)| row.iter().skip(5));
    let is_reais = is_spreadsheet && amounts.into_iter().any(|amount| amount.contains(','));
    let notation = Notation { is_spreadsheet, is_reais };
    let line = |(at, row): (u64, csv::StringRecord)| {
        line_of(&row, at, notation).map_err(|defect| FileError { line: at, defect })
    };
    file_of(rows.into_iter().map(line).collect::<Result<_, _>>()?)
}

/// A file of these lines. Error: payments of more than 366 days.
fn file_of(lines: Vec<FileLine>) -> Result<BatchFile, FileError> {
    let mut days: Option<(NaiveDate, NaiveDate)> = None;
    for FileLine { line, settled: SettledAmount { paid_on, .. }, .. } in &lines {
        let (from, to) = days.map_or((*paid_on, *paid_on), |(from, to)| (from.min(*paid_on), to.max(*paid_on)));
        if (to - from).num_days() >= PERIOD_DAYS_MAX {
            let defect = format!("os pagamentos são de mais de {PERIOD_DAYS_MAX} dias");
            return Err(FileError { line: *line, defect });
        }
        days = Some((from, to));
    }
    Ok(BatchFile { days, lines })
}

/// The rows behind the head, each with its line. `first` is the line of the head.
fn rows_of(body: &str, is_spreadsheet: bool, first: u64) -> Result<Vec<(u64, csv::StringRecord)>, FileError> {
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true);
    if is_spreadsheet {
        builder.delimiter(b';').trim(csv::Trim::All);
    }
    let mut rows = Vec::new();
    let mut has_head = false;
    for (number, record) in (1..).zip(builder.from_reader(body.as_bytes()).records()) {
        let line_at = |position: Option<&csv::Position>| first - 1 + position.map_or(number, csv::Position::line);
        let record = record
            .map_err(|error| FileError { line: line_at(error.position()), defect: "não é texto CSV".to_owned() })?;
        let at = line_at(record.position());
        let refused = |defect: String| FileError { line: at, defect };
        // A spreadsheet saves rows and columns that were emptied.
        let filled = record.iter().zip(1..).filter(|(field, _)| !field.is_empty()).last().map_or(0, |(_, at)| at);
        if is_spreadsheet && filled == 0 {
            continue;
        }
        let cells = if is_spreadsheet { filled.max(COLUMNS.len()) } else { record.len() };
        let row: csv::StringRecord = record.iter().take(cells).collect();
        if !has_head {
            if row.iter().ne(COLUMNS) {
                return Err(refused(format!("as colunas devem ser {}", COLUMNS.join(","))));
            }
            has_head = true;
        } else if rows.len() == LINES_MAX {
            return Err(refused(format!("mais de {LINES_MAX} linhas")));
        } else {
            rows.push((at, row));
        }
    }
    if !has_head {
        return Err(FileError { line: 1, defect: format!("as colunas devem ser {}", COLUMNS.join(",")) });
    }
    Ok(rows)
}

fn line_of(record: &csv::StringRecord, line: u64, notation: Notation) -> Result<FileLine, String> {
    let fields: Vec<&str> = record.iter().collect();
    let [batch, paid_on, charge, kind, id, gross, fee, net] = fields[..] else {
        return Err(format!("deve ter {} colunas", COLUMNS.len()));
    };
    let wrong = |column: &str| format!("{column} inválido");
    if !(1..=REFERENCE_LEN_MAX).contains(&batch.chars().count()) || batch.chars().any(char::is_control) {
        return Err(wrong("batch"));
    }
    let paid_on = notation.day(paid_on).ok_or_else(|| wrong("paid_on"))?;
    let named = |column: &str, text: &str| ObjectId::parse(&text.to_lowercase()).ok_or_else(|| wrong(column));
    let charge = named("charge", charge)?;
    let object = match kind {
        "installment" => SettledObject::Installment(
            id.parse().ok().filter(|number| (1..=99).contains(number)).ok_or_else(|| wrong("id"))?,
        ),
        "refund" => SettledObject::Refund(named("id", id)?),
        "dispute" => SettledObject::Dispute(named("id", id)?),
        _ => return Err("kind deve ser installment, refund ou dispute".to_owned()),
    };
    let centavos = |column: &str, text: &str| {
        notation.centavos(text).ok_or_else(|| match notation.is_reais {
            false => format!("{column} deve ser um número inteiro de centavos"),
            true => format!("{column} deve ser um valor em reais, como 50,00"),
        })
    };
    let settled = SettledAmount { paid_on, gross: centavos("gross", gross)?, fee: centavos("fee", fee)? };
    if settled.net() != centavos("net", net)? {
        return Err("net deve ser gross menos fee".to_owned());
    }
    Ok(FileLine { line, batch: batch.to_owned(), key: (charge, object), settled, text: None })
}

impl Notation {
    fn day(self, text: &str) -> Option<NaiveDate> {
        let iso = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
        let local = || NaiveDate::parse_from_str(text, "%d/%m/%Y").ok().filter(|_| text.len() == 10);
        iso.or_else(|| if self.is_spreadsheet { local() } else { None })
    }

    fn centavos(self, text: &str) -> Option<Centavos> {
        let range = -AMOUNT_MAX.0..=AMOUNT_MAX.0;
        if self.is_reais {
            return amount_of(text).filter(|(_, mark)| *mark != Some('.')).map(|(amount, _)| amount);
        }
        text.parse().ok().filter(|amount| range.contains(amount)).map(Centavos)
    }
}

/// Kind and id of an object, as a file has them.
pub fn kind_and_id(object: SettledObject) -> (&'static str, String) {
    match object {
        SettledObject::Installment(number) => ("installment", number.to_string()),
        SettledObject::Refund(id) => ("refund", id.uuid().to_string()),
        SettledObject::Dispute(id) => ("dispute", id.uuid().to_string()),
    }
}

/// The booked lines of one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookedBatch {
    /// Each line, and whether it is booked to its merchant; else it is in suspense.
    pub lines: BTreeMap<LineKey, (SettledAmount, bool)>,
}

impl BookedBatch {
    /// Adds a line that was booked, or put in suspense. `paid_on` is in days since 1970-01-01.
    pub fn add(&mut self, paid_on: u32, line: &SettledLine, is_booked: bool) {
        let settled = SettledAmount { paid_on: day(paid_on), gross: line.gross, fee: line.fee };
        let of = self.lines.entry((line.charge, line.object)).or_insert((settled, is_booked));
        // A line that comes twice in a batch is booked once, and once in suspense.
        if is_booked {
            *of = (settled, true);
        }
    }
}

/// A batch that was booked whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaidBatch {
    /// Its reference.
    pub reference: String,
    /// The day of the payment.
    pub paid_on: NaiveDate,
    /// What the acquirer paid, after fees, centavos.
    pub net: Centavos,
}

/// The day that is so many days after 1970-01-01.
pub fn day(days: u32) -> NaiveDate {
    DateTime::from_timestamp(i64::from(days) * 86_400, 0).unwrap_or_default().date_naive()
}

/// Compares a file with the books. `booked` has an entry for each batch that the file names; one
/// that was never booked is empty. `paid` has the batches that were booked for the file's days: one
/// that the file does not name is one difference, whatever its lines.
pub fn compare(file: &BatchFile, booked: &BTreeMap<String, BookedBatch>, paid: &[PaidBatch]) -> Comparison {
    let mut reconciled = Comparison::default();
    let mut seen: BTreeSet<(&str, LineKey)> = BTreeSet::new();
    for line in &file.lines {
        let FileLine { line: number, batch, key, settled, text } = line;
        let ours = booked.get(batch).and_then(|booked| booked.lines.get(key)).copied();
        let kind = match ours {
            _ if !seen.insert((batch, *key)) => FindingKind::Twice,
            None => FindingKind::OnlyTheirs,
            Some((ours, _)) if ours != *settled => FindingKind::Differs,
            Some((_, false)) => FindingKind::InSuspense,
            Some((_, true)) => FindingKind::Matched,
        };
        let ours = ours.map(|(ours, _)| ours);
        let found = finding(kind, Some(*number), batch, *key, [ours, Some(*settled)]);
        reconciled.add(Finding { text: text.clone(), ..found });
    }
    for (batch, booked) in booked {
        for (key, (ours, _)) in booked.lines.iter().filter(|(key, _)| !seen.contains(&(batch.as_str(), **key))) {
            reconciled.findings.push(finding(FindingKind::OnlyOurs, None, batch, *key, [Some(*ours), None]));
        }
    }
    let of_file = |batch: &&PaidBatch| file.days.is_some_and(|(from, to)| (from..=to).contains(&batch.paid_on));
    let unnamed = paid.iter().filter(of_file).filter(|batch| !booked.contains_key(&batch.reference));
    reconciled.findings.extend(unnamed.map(left_out));
    reconciled
}

/// The difference that a whole batch is not in a file.
fn left_out(batch: &PaidBatch) -> Finding {
    let (ours, id) = (SettledAmount::whole(batch.paid_on, batch.net), batch.reference.clone());
    Finding { batch: Some(id.clone()), ..Finding::new(FindingKind::OnlyOurs, "batch", id, [Some(ours), None]) }
}

fn finding(
    kind: FindingKind,
    line: Option<u64>,
    batch: &str,
    (charge, object): LineKey,
    sides: [Option<SettledAmount>; 2],
) -> Finding {
    let (object, id) = kind_and_id(object);
    Finding { line, batch: Some(batch.to_owned()), charge: Some(charge), ..Finding::new(kind, object, id, sides) }
}

#[cfg(test)]
mod tests {
    use ledger::id::{GroupNumber, IdKey};
    use ledger::time::Timestamp;
    use proptest::prelude::*;

    use super::*;

    const PAID_ON: u32 = 20_784;

    /// A decimal of the crates reads more than an amount may be.
    #[test]
    fn amounts_have_no_exponent_and_no_other_sign_of_programs() {
        for is_reais in [false, true] {
            let notation = Notation { is_spreadsheet: is_reais, is_reais };
            for text in ["1e3", "1E3", "1e-2", "1__0", "1_000", "0x10", "NaN", "inf", "5.", "1,0e2", "1.5e2", "٣", ""]
            {
                assert_eq!(notation.centavos(text), None, "{text}");
            }
        }
    }

    fn id(number: u64) -> ObjectId {
        IdKey::new([3; 16]).object(GroupNumber(1), Timestamp(1_795_000_000_000), number)
    }

    /// A batch that was paid so many days after the first one, of so many lines, each about another
    /// object.
    fn batch(after: u32, lines: u64) -> BookedBatch {
        let mut booked = BookedBatch::default();
        for number in 0..lines {
            let object = match number % 3 {
                0 => SettledObject::Installment(1 + (number % 12) as u8),
                1 => SettledObject::Refund(id(1_000 + number)),
                _ => SettledObject::Dispute(id(2_000 + number)),
            };
            let sign = if number % 3 == 0 { 1 } else { -1 };
            let (gross, fee) = (Centavos(sign * (1_000 + number as i64)), Centavos(sign * 30));
            let line = SettledLine { charge: id(number), object, gross, fee, booked_fee: fee };
            booked.add(PAID_ON + after, &line, true);
        }
        booked
    }

    /// Appends a line of a file, without the head.
    fn write_line(file: &mut String, batch: &str, (charge, object): LineKey, settled: SettledAmount) {
        let (kind, id) = kind_and_id(object);
        let SettledAmount { paid_on, gross, fee } = settled;
        let net = settled.net();
        file.push_str(&format!("{batch},{paid_on},{},{kind},{id},{},{},{}\n", charge.txid(), gross.0, fee.0, net.0));
    }

    fn file_of(batches: &BTreeMap<String, BookedBatch>) -> String {
        let mut file = format!("{}\n", COLUMNS.join(","));
        for (reference, booked) in batches {
            booked.lines.iter().for_each(|(key, (settled, _))| write_line(&mut file, reference, *key, *settled));
        }
        file
    }

    /// The batches whole, as the list of the books has them.
    fn paid(batches: &BTreeMap<String, BookedBatch>) -> Vec<PaidBatch> {
        let paid = batches.iter().map(|(reference, booked)| PaidBatch {
            reference: reference.clone(),
            paid_on: booked.lines.values().next().unwrap().0.paid_on,
            net: booked.lines.values().map(|(settled, _)| settled.net()).sum(),
        });
        paid.collect()
    }

    /// The batches that a file names, as they were booked.
    fn named(file: &BatchFile, batches: &BTreeMap<String, BookedBatch>) -> BTreeMap<String, BookedBatch> {
        let names = file.lines.iter().map(|line| line.batch.clone());
        names.map(|name| (name.clone(), batches.get(&name).cloned().unwrap_or_default())).collect()
    }

    /// A defect that is put into a file.
    #[derive(Clone, Debug)]
    enum Seed {
        Amount,
        Fee,
        Date,
        Missing,
        Added,
        Twice,
    }

    fn seeds() -> impl Strategy<Value = Vec<(usize, Seed)>> {
        let seed = prop_oneof![
            Just(Seed::Amount),
            Just(Seed::Fee),
            Just(Seed::Date),
            Just(Seed::Missing),
            Just(Seed::Added),
            Just(Seed::Twice),
        ];
        proptest::collection::btree_map(0_usize..60, seed, 0..8).prop_map(|seeds| seeds.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// None of the seeded differences is missed, and none is found that was not seeded. Whole
        /// batches are left out too: one of the file's days is a difference, one of a day before
        /// its first payment or after its last belongs to another file.
        #[test]
        fn seeded_differences_are_found_and_no_others(seeds in seeds(), left_out in 0_u8..15) {
            let batches = [(1, batch(0, 25)), (2, batch(0, 15)), (3, batch(1, 12)), (4, batch(4, 8))];
            let booked: BTreeMap<_, _> = batches.map(|(name, batch)| (format!("LOTE-{name}"), batch)).into();
            let places = booked.clone().into_iter().zip(0..);
            let (missing, there): (Vec<_>, Vec<_>) = places.partition(|(_, place)| left_out >> place & 1 == 1);
            let [missing, there] = [missing, there].map(|of| of.into_iter().map(|(batch, _)| batch).collect());
            let sound = file_of(&there);
            let mut lines: Vec<Vec<String>> = sound
                .lines()
                .skip(1)
                .map(|line| line.split(',').map(str::to_owned).collect())
                .collect();
            let mut expected: Vec<(FindingKind, String, String)> = Vec::new();
            let mut removed = Vec::new();
            let sound = lines.len();
            for (place, seed) in seeds.iter().filter(|(place, _)| *place < sound) {
                let name = |line: &[String]| (line[0].clone(), format!("{} {}", line[2], line[4]));
                let (batch, key) = name(&lines[*place]);
                let add = |text: &str, more: i64| (text.parse::<i64>().unwrap() + more).to_string();
                let line = lines[*place].clone();
                match seed {
                    Seed::Amount => {
                        (lines[*place][5], lines[*place][7]) = (add(&line[5], 1), add(&line[7], 1));
                        expected.push((FindingKind::Differs, batch, key));
                    }
                    Seed::Fee => {
                        (lines[*place][6], lines[*place][7]) = (add(&line[6], 1), add(&line[7], -1));
                        expected.push((FindingKind::Differs, batch, key));
                    }
                    Seed::Date => {
                        lines[*place][1] = "2026-11-29".to_owned();
                        expected.push((FindingKind::Differs, batch, key));
                    }
                    Seed::Missing => {
                        removed.push(*place);
                        expected.push((FindingKind::OnlyOurs, batch, key));
                    }
                    Seed::Added => {
                        let mut added = line;
                        added[2] = id(9_000 + *place as u64).txid();
                        expected.push((FindingKind::OnlyTheirs, batch, format!("{} {}", added[2], added[4])));
                        lines.push(added);
                    }
                    Seed::Twice => {
                        lines.push(line);
                        expected.push((FindingKind::Twice, batch, key));
                    }
                }
            }
            removed.into_iter().rev().for_each(|place| drop(lines.remove(place)));
            let rows: Vec<String> = lines.iter().map(|line| line.join(",")).collect();
            let days: Vec<_> = lines.iter().map(|line| line[1].parse::<NaiveDate>().unwrap()).collect();
            let days = *days.iter().min().unwrap()..=*days.iter().max().unwrap();
            let missing = paid(&missing).into_iter().filter(|batch| days.contains(&batch.paid_on));
            expected.extend(missing.map(|batch| (FindingKind::OnlyOurs, batch.reference, batch.net.to_string())));
            let file = format!("{}\n{}\n", COLUMNS.join(","), rows.join("\n"));
            let read = read(file.as_bytes()).unwrap();
            let found = compare(&read, &named(&read, &booked), &paid(&booked));
            let mut findings: Vec<_> = found.findings.iter().map(|finding| {
                let key = match finding.charge {
                    Some(charge) => format!("{} {}", charge.txid(), finding.id),
                    None => finding.ours.unwrap().net().to_string(),
                };
                (finding.kind, finding.batch.clone().unwrap(), key)
            }).collect();
            findings.sort();
            expected.sort();
            let agreeing = rows.len() - expected.iter().filter(|(kind, ..)| *kind != FindingKind::OnlyOurs).count();
            prop_assert_eq!((findings, found.matched.len()), (expected, agreeing));
        }
    }

    #[test]
    fn a_file_that_agrees_has_no_findings_and_one_of_another_batch_only_theirs() {
        let booked = BTreeMap::from([("LOTE-1".to_owned(), batch(0, 5))]);
        let file = read(file_of(&booked).as_bytes()).unwrap();
        let agreed = compare(&file, &booked, &paid(&booked));
        assert_eq!((agreed.matched.len(), agreed.findings.len(), agreed.undecided.len()), (5, 0, 0));
        assert_eq!(agreed.matched[0].ours, agreed.matched[0].theirs);
        let unknown = compare(&file, &BTreeMap::from([("LOTE-1".to_owned(), BookedBatch::default())]), &[]);
        assert!(unknown.matched.is_empty());
        assert!(unknown.findings.iter().all(|finding| finding.kind == FindingKind::OnlyTheirs));
    }

    #[test]
    fn a_defect_is_named_by_its_line() {
        let head = COLUMNS.join(",");
        let (txid, uuid) = (id(1).txid(), id(2).uuid().to_string());
        let good = format!("L,2026-11-30,{txid},installment,1,100,3,97");
        assert_eq!(read(format!("\u{feff}{head}\r\n{good}\r\n").as_bytes()).unwrap().lines.len(), 1);
        for (line, defect) in [
            (format!(",2026-11-30,{txid},installment,1,100,3,97"), "batch"),
            (format!("L,30/11/2026,{txid},installment,1,100,3,97"), "paid_on"),
            ("L,2026-11-30,x,installment,1,100,3,97".to_owned(), "charge"),
            (format!("L,2026-11-30,{txid},payment,1,100,3,97"), "kind"),
            (format!("L,2026-11-30,{txid},installment,0,100,3,97"), "id"),
            (format!("L,2026-11-30,{txid},refund,1,100,3,97"), "id"),
            (format!("L,2026-11-30,{txid},refund,{uuid},1.00,3,97"), "gross"),
            (format!("L,2026-11-30,{txid},refund,{uuid},\"1,00\",3,97"), "gross"),
            (format!("L,2026-11-30,{txid},refund,{uuid},9999999999999999,3,97"), "gross"),
            (format!("L,2026-11-30,{txid},refund,{uuid},100,3,98"), "net"),
            (format!("L;2026-11-30;{txid};refund;{uuid};100;3;97"), "colunas"),
        ] {
            let error = read(format!("{head}\n{good}\n{line}\n").as_bytes()).unwrap_err();
            assert_eq!(error.line, 3, "{line}: {error}");
            assert!(error.defect.contains(defect), "{line}: {error}");
        }
        let year_later = good.replace("2026-11-30", "2027-12-01");
        assert_eq!(read(format!("{head}\n{good}\n{year_later}\n").as_bytes()).unwrap_err().line, 3);
        let last = good.replace("2026-11-30", "2027-11-30");
        let (from, to) = read(format!("{head}\n{last}\n{good}\n").as_bytes()).unwrap().days.unwrap();
        assert_eq!([from.to_string(), to.to_string()], ["2026-11-30", "2027-11-30"]);
        for file in ["", "batch;paid_on\n", &good] {
            assert_eq!(read(file.as_bytes()).unwrap_err().line, 1, "{file}");
        }
        assert_eq!(read(b"batch,paid_on\xff\n").unwrap_err().line, 1);
    }

    /// A batch file with a head alone is one without lines.
    #[test]
    fn a_head_alone_is_a_file_without_lines() {
        for head in [COLUMNS.join(","), format!("{}\r\n", COLUMNS.join(";")), format!("{};;\n;;\n", COLUMNS.join(";"))]
        {
            let file = read(head.as_bytes()).unwrap();
            assert_eq!(file, BatchFile { days: None, lines: Vec::new() }, "{head}");
            let found = compare(&file, &BTreeMap::new(), &paid(&BTreeMap::from([("L".to_owned(), batch(0, 5))])));
            assert_eq!(found, Comparison::default(), "it is of no day");
        }
    }

    #[test]
    fn a_file_is_read_as_a_brazilian_spreadsheet_saves_it() {
        let (txid, uuid) = (id(1).txid(), id(2).uuid().to_string());
        let plain = format!("{}\nLOTE É,2026-11-27,{txid},refund,{uuid},-123456,-3056,-120400\n", COLUMNS.join(","));
        let expected = read(plain.as_bytes()).unwrap().lines;
        let head = COLUMNS.join(";");
        let (capitals, uuid_capitals) = (txid.to_uppercase(), uuid.to_uppercase());
        for (rows, line) in [
            (format!("{head}\r\nLOTE É;27/11/2026;{txid};refund;{uuid};-1234,56;-30,56;-1204,00\r\n"), 2),
            (format!("{head}\r\nLOTE É;27/11/2026;{txid};refund;{uuid};-1.234,56;-30,56;-1204\r\n"), 2),
            (format!("{head}\nLOTE É;27/11/2026;{txid};refund;{uuid};-123456;-3056;-120400\n"), 2),
            (format!("{head}\nLOTE É;2026-11-27;{capitals};refund;{uuid_capitals};-1234,56;-30,56;-1204,0\n"), 2),
            (
                format!(
                    "sep=;\n{head};;\n;;;\n LOTE É ;27/11/2026;{txid};refund;{uuid};- 1234,56;-30,56;-1204,00;;\n;;\n"
                ),
                4,
            ),
        ] {
            let latin: Vec<u8> = rows.chars().map(|character| character as u8).collect();
            for file in [rows.as_bytes(), &[b"\xef\xbb\xbf", rows.as_bytes()].concat(), &latin] {
                let mut found = read(file).unwrap_or_else(|error| panic!("{rows}: {error}")).lines;
                assert_eq!(found[0].line, line, "{rows}");
                found[0].line = 2;
                assert_eq!(found, expected, "{rows}");
            }
        }
        for (amounts, defect) in [
            ("1.234;1,00;1.233", "gross"),
            ("50.00;1,00;49,00", "gross"),
            ("50,001;1,00;49,00", "gross"),
            ("50,00;1,00;50,00", "net"),
            ("R$ 50,00;1,00;49,00", "gross"),
        ] {
            let file = format!("{head}\nL;27/11/2026;{txid};refund;{uuid};{amounts}\n");
            assert!(read(file.as_bytes()).unwrap_err().defect.contains(defect), "{amounts}");
        }
        for day in ["27/11/26", "7/11/2026", "11/27/2026", "27-11-2026"] {
            let file = format!("{head}\nL;{day};{txid};refund;{uuid};1,00;0,00;1,00\n");
            assert!(read(file.as_bytes()).unwrap_err().defect.contains("paid_on"), "{day}");
        }
    }
}
