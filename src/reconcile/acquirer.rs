//! Reconciliation of the acquirer's batches: a CSV file with a line for each installment, refund
//! and dispute, against the lines that were booked.
//!
//! The columns are `batch,paid_on,charge,kind,id,gross,fee,net`: the batch's reference, the day of
//! the payment (`2026-11-30`), the charge's txid, `installment`, `refund` or `dispute`, the number
//! of the installment or the id of the refund or dispute, and three amounts in centavos, below zero
//! where the acquirer takes money back.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate};
use ledger::event::{SettledLine, SettledObject};
use ledger::id::ObjectId;
use ledger::money::{AMOUNT_MAX, Centavos};

pub use super::finding::{FileError, Finding, FindingKind, Reconciled, Settled};

/// The columns, in order.
pub const COLUMNS: [&str; 8] = ["batch", "paid_on", "charge", "kind", "id", "gross", "fee", "net"];
/// Lines of a file at most.
pub const LINES_MAX: usize = 200_000;
/// Characters of a batch's reference at most.
const REFERENCE_LEN_MAX: usize = 100;

/// What a line of a batch is about: no two lines of a batch have the same.
pub type LineKey = (ObjectId, SettledObject);

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    /// Its number in the file; the head is line 1.
    pub line: u64,
    /// Reference of the batch.
    pub batch: String,
    /// What it is about.
    pub key: LineKey,
    /// What it says.
    pub settled: Settled,
}

/// Reads a file whole. Errors: the first line with a defect.
pub fn read(file: &[u8]) -> Result<Vec<FileLine>, FileError> {
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(file);
    let mut lines = Vec::new();
    let mut has_head = false;
    for (number, record) in (1..).zip(reader.records()) {
        let at = |record: &csv::StringRecord| record.position().map_or(number, csv::Position::line);
        let record = record.map_err(|error| {
            let line = error.position().map_or(number, csv::Position::line);
            FileError { line, defect: "não é texto CSV em UTF-8".to_owned() }
        })?;
        let refused = |defect: String| FileError { line: at(&record), defect };
        if !has_head {
            if record.iter().ne(COLUMNS) {
                return Err(refused(format!("as colunas devem ser {}", COLUMNS.join(","))));
            }
            has_head = true;
            continue;
        }
        if lines.len() == LINES_MAX {
            return Err(refused(format!("mais de {LINES_MAX} linhas")));
        }
        lines.push(line_of(&record, at(&record)).map_err(refused)?);
    }
    if !has_head {
        return Err(FileError { line: 1, defect: format!("as colunas devem ser {}", COLUMNS.join(",")) });
    }
    Ok(lines)
}

fn line_of(record: &csv::StringRecord, line: u64) -> Result<FileLine, String> {
    let fields: Vec<&str> = record.iter().collect();
    let [batch, paid_on, charge, kind, id, gross, fee, net] = fields[..] else {
        return Err(format!("deve ter {} colunas", COLUMNS.len()));
    };
    let wrong = |column: &str| format!("{column} inválido");
    if !(1..=REFERENCE_LEN_MAX).contains(&batch.chars().count()) || batch.chars().any(char::is_control) {
        return Err(wrong("batch"));
    }
    let paid_on = NaiveDate::parse_from_str(paid_on, "%Y-%m-%d").map_err(|_| wrong("paid_on"))?;
    let charge = ObjectId::parse(charge).ok_or_else(|| wrong("charge"))?;
    let named = || ObjectId::parse(id).ok_or_else(|| wrong("id"));
    let object = match kind {
        "installment" => SettledObject::Installment(
            id.parse().ok().filter(|number| (1..=99).contains(number)).ok_or_else(|| wrong("id"))?,
        ),
        "refund" => SettledObject::Refund(named()?),
        "dispute" => SettledObject::Dispute(named()?),
        _ => return Err("kind deve ser installment, refund ou dispute".to_owned()),
    };
    let centavos = |column: &str, text: &str| {
        let range = -AMOUNT_MAX.0..=AMOUNT_MAX.0;
        let amount = text.parse().ok().filter(|amount| range.contains(amount));
        amount.map(Centavos).ok_or_else(|| format!("{column} deve ser um número inteiro de centavos"))
    };
    let settled = Settled { paid_on, gross: centavos("gross", gross)?, fee: centavos("fee", fee)? };
    if settled.net() != centavos("net", net)? {
        return Err("net deve ser gross menos fee".to_owned());
    }
    Ok(FileLine { line, batch: batch.to_owned(), key: (charge, object), settled })
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
    pub lines: BTreeMap<LineKey, (Settled, bool)>,
}

impl BookedBatch {
    /// Adds a line that was booked, or put in suspense. `paid_on` is in days since 1970-01-01.
    pub fn add(&mut self, paid_on: u32, line: &SettledLine, is_booked: bool) {
        let settled = Settled { paid_on: day(paid_on), gross: line.gross, fee: line.fee };
        let of = self.lines.entry((line.charge, line.object)).or_insert((settled, is_booked));
        // A line that comes twice in a batch is booked once, and once in suspense.
        if is_booked {
            *of = (settled, true);
        }
    }
}

/// The day that is so many days after 1970-01-01.
pub fn day(days: u32) -> NaiveDate {
    DateTime::from_timestamp(i64::from(days) * 86_400, 0).unwrap_or_default().date_naive()
}

/// Compares the lines of a file with the books. `booked` has an entry for each batch that the file
/// names; one that was never booked is empty.
pub fn compare(lines: &[FileLine], booked: &BTreeMap<String, BookedBatch>) -> Reconciled {
    let mut reconciled = Reconciled::default();
    let mut seen: BTreeSet<(&str, LineKey)> = BTreeSet::new();
    for line in lines {
        let FileLine { line: number, batch, key, settled } = line;
        let ours = booked.get(batch).and_then(|booked| booked.lines.get(key)).copied();
        let kind = match ours {
            _ if !seen.insert((batch, *key)) => FindingKind::Twice,
            None => FindingKind::OnlyTheirs,
            Some((ours, _)) if ours != *settled => FindingKind::Differs,
            Some((_, false)) => FindingKind::InSuspense,
            Some((_, true)) => {
                reconciled.matched += 1;
                continue;
            }
        };
        let ours = ours.map(|(ours, _)| ours);
        reconciled.findings.push(finding(kind, Some(*number), batch, *key, (ours, Some(*settled))));
    }
    for (batch, booked) in booked {
        for (key, (ours, _)) in booked.lines.iter().filter(|(key, _)| !seen.contains(&(batch.as_str(), **key))) {
            reconciled.findings.push(finding(FindingKind::OnlyOurs, None, batch, *key, (Some(*ours), None)));
        }
    }
    reconciled
}

fn finding(
    kind: FindingKind,
    line: Option<u64>,
    batch: &str,
    (charge, object): LineKey,
    (ours, theirs): (Option<Settled>, Option<Settled>),
) -> Finding {
    let (object, id) = kind_and_id(object);
    Finding { kind, line, batch: Some(batch.to_owned()), charge: Some(charge), object, id, ours, theirs }
}

#[cfg(test)]
mod tests {
    use ledger::id::{GroupNumber, IdKey};
    use ledger::time::Timestamp;
    use proptest::prelude::*;

    use super::*;

    const PAID_ON: u32 = 20_784;

    fn id(number: u64) -> ObjectId {
        IdKey::new([3; 16]).object(GroupNumber(1), Timestamp(1_795_000_000_000), number)
    }

    /// A batch of so many lines, each about another object.
    fn batch(lines: u64) -> BookedBatch {
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
            booked.add(PAID_ON, &line, true);
        }
        booked
    }

    /// Appends a line of a file, without the head.
    fn write_line(file: &mut String, batch: &str, (charge, object): LineKey, settled: Settled) {
        let (kind, id) = kind_and_id(object);
        let Settled { paid_on, gross, fee } = settled;
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
        proptest::collection::btree_map(0_usize..40, seed, 0..8).prop_map(|seeds| seeds.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// None of the seeded differences is missed, and none is found that was not seeded.
        #[test]
        fn seeded_differences_are_found_and_no_others(seeds in seeds()) {
            let booked = BTreeMap::from([("LOTE-1".to_owned(), batch(25)), ("LOTE-2".to_owned(), batch(15))]);
            let sound = file_of(&booked);
            let mut lines: Vec<Vec<String>> = sound
                .lines()
                .skip(1)
                .map(|line| line.split(',').map(str::to_owned).collect())
                .collect();
            let mut expected: Vec<(FindingKind, String, String)> = Vec::new();
            let mut removed = Vec::new();
            for (place, seed) in &seeds {
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
            let file = format!("{}\n{}\n", COLUMNS.join(","), rows.join("\n"));
            let read = read(file.as_bytes()).unwrap();
            let found = compare(&read, &booked);
            let mut findings: Vec<_> = found.findings.iter().map(|finding| {
                let key = format!("{} {}", finding.charge.unwrap().txid(), finding.id);
                (finding.kind, finding.batch.clone().unwrap(), key)
            }).collect();
            findings.sort();
            expected.sort();
            let agreeing = rows.len() - expected.iter().filter(|(kind, ..)| *kind != FindingKind::OnlyOurs).count();
            prop_assert_eq!((findings, found.matched), (expected, agreeing as u64));
        }
    }

    #[test]
    fn a_file_that_agrees_has_no_findings_and_one_of_another_batch_only_theirs() {
        let booked = BTreeMap::from([("LOTE-1".to_owned(), batch(5))]);
        let lines = read(file_of(&booked).as_bytes()).unwrap();
        assert_eq!(compare(&lines, &booked), Reconciled { matched: 5, ..Reconciled::default() });
        let unknown = compare(&lines, &BTreeMap::from([("LOTE-1".to_owned(), BookedBatch::default())]));
        assert_eq!(unknown.matched, 0);
        assert!(unknown.findings.iter().all(|finding| finding.kind == FindingKind::OnlyTheirs));
    }

    #[test]
    fn a_defect_is_named_by_its_line() {
        let head = COLUMNS.join(",");
        let (txid, uuid) = (id(1).txid(), id(2).uuid().to_string());
        let good = format!("L,2026-11-30,{txid},installment,1,100,3,97");
        assert_eq!(read(format!("\u{feff}{head}\r\n{good}\r\n").as_bytes()).unwrap().len(), 1);
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
        for file in ["", "batch;paid_on\n", &good] {
            assert_eq!(read(file.as_bytes()).unwrap_err().line, 1, "{file}");
        }
        assert_eq!(read(b"batch,paid_on\xff\n").unwrap_err().line, 1);
    }
}
