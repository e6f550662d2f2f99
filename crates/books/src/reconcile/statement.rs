//! Reconciliation of a bank account: the lines of its statement against the movements that were
//! booked on it. The bank has one line for a batch of the acquirer; so has the comparison.
//!
//! A line belongs to the movement whose reference stands in its texts as a word, and whose money
//! went the same way. A line without such a reference belongs to a movement of the same amount and
//! day, if one is left. Of what is then left on both sides, the lines of an amount up to a day on
//! which banks settle belong to the movements that were booked before them and settle on that day,
//! where there are as many.
//!
//! A bank may post on the next day on which banks settle: what is booked on a Friday evening may
//! stand under Monday. Such a line agrees with the books, and both days are shown.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use ledger::{Centavos, ObjectId};
use wire::settlement_days::next_settlement_day;

use super::finding::{Comparison, Finding, FindingKind, SettledAmount};
use super::ofx::{BalanceRow, BankStatement, StatementLine};

/// A movement of a bank account, as booked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movement {
    /// The kind of object, such as `batch` or `withdrawal`.
    pub object: &'static str,
    /// Its id or reference, as results show it.
    pub id: String,
    /// The charge, if it is about one.
    pub charge: Option<ObjectId>,
    /// Texts of which the bank's line has one.
    pub references: Vec<String>,
    /// The day on which it was booked.
    pub day: NaiveDate,
    /// How much, centavos; below zero when the account pays.
    pub amount: Centavos,
    /// True when the booking may come on a later day than the bank's line: the day is not compared.
    pub is_any_day: bool,
}

/// Compares a statement with the movements that were booked on the account in its period and on the
/// days of its lines. Gives the rows that state a balance, too.
///
/// A movement that only the books have is a difference on the days that the statement covers: of
/// others it cannot know.
pub fn compare(statement: &BankStatement, movements: &[Movement]) -> (Comparison, Vec<BalanceRow>) {
    let mut by_reference = ByReference::new();
    for (place, movement) in movements.iter().enumerate() {
        for reference in &movement.references {
            by_reference.entry((reference, movement.amount > Centavos::ZERO)).or_default().push(place);
        }
    }
    let mut reconciled = Comparison::default();
    let mut taken = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut unnamed = Vec::new();
    let mut balances = statement.balances.clone();
    for line in &statement.lines {
        let places = named(line, &by_reference);
        let named = match *places {
            _ if !seen.insert((&line.id, line.day, line.amount, &line.text)) && !line.id.is_empty() => {
                Err(places.first().map(|place| &movements[*place]))
            }
            [place] if taken.insert(place) => Ok(Some(&movements[place])),
            // The word of an entry's reference may be any word of the bank's.
            [place] if movements[place].object != "entry" => Err(Some(&movements[place])),
            _ => {
                let free = |place: &&usize| !taken.contains(place) && agrees(&movements[**place], line);
                let distance = |place: &&usize| (line.day - movements[**place].day).abs();
                let place = places.iter().filter(free).min_by_key(distance).copied();
                taken.extend(place);
                Ok(place.map(|place| &movements[place]))
            }
        };
        match named {
            Err(ours) => reconciled.add(finding(FindingKind::Twice, Some(line), ours)),
            Ok(Some(movement)) => {
                let kind = if agrees(movement, line) { FindingKind::Matched } else { FindingKind::Differs };
                reconciled.add(finding(kind, Some(line), Some(movement)));
            }
            Ok(None) => unnamed.push(line),
        }
    }
    for (line, place) in paired(unnamed, movements, &taken) {
        match place {
            Some(place) => {
                taken.insert(place);
                reconciled.add(finding(FindingKind::Matched, Some(line), Some(&movements[place])));
            }
            None if line.may_be_balance => balances.push(line.clone().into()),
            None => reconciled.add(finding(FindingKind::OnlyTheirs, Some(line), None)),
        }
    }
    reconciled.findings.sort_by_key(|finding| finding.line);
    reconciled.matched.sort_by_key(|finding| finding.line);
    let compared = statement.compared();
    for (_, movement) in movements.iter().enumerate().filter(|(place, _)| !taken.contains(place)) {
        if compared.is_some_and(|(from, to)| (from..=to).contains(&movement.day)) {
            reconciled.add(finding(FindingKind::OnlyOurs, None, Some(movement)));
        } else if statement.is_last_day_open && movement.day == statement.to {
            reconciled.add(finding(FindingKind::Undecided, None, Some(movement)));
        }
    }
    balances.sort_by_key(|row| row.line);
    (reconciled, balances)
}

/// Lines that name no movement, each with the movement of its amount: of its day, or else one that
/// was booked before it. Of what is left of an amount up to a day on which banks settle, all lines
/// belong to all movements, in the order of their days, or none does.
fn paired<'a>(
    lines: Vec<&'a StatementLine>,
    movements: &[Movement],
    taken: &BTreeSet<usize>,
) -> impl Iterator<Item = (&'a StatementLine, Option<usize>)> + use<'a> {
    let (mut left, mut late) = (ByAmountAndDay::new(), BTreeMap::<_, [Vec<usize>; 2]>::new());
    for (place, movement) in movements.iter().enumerate().rev().filter(|(place, _)| !taken.contains(place)) {
        left.entry((movement.amount, movement.day)).or_default().push(place);
    }
    let mut places = vec![None; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        places[at] = left.get_mut(&(line.amount, line.day)).and_then(Vec::pop);
        if places[at].is_none() {
            let settled_on = line.day.pred_opt().map_or(line.day, next_settlement_day);
            late.entry((line.amount, settled_on)).or_default()[0].push(at);
        }
    }
    for ((amount, day), booked) in left {
        late.entry((amount, next_settlement_day(day))).or_default()[1].extend(booked.into_iter().rev());
    }
    for [mut posted, booked] in late.into_values().filter(|[posted, booked]| posted.len() == booked.len()) {
        posted.sort_by_key(|at| lines[*at].day);
        if posted.iter().zip(&booked).all(|(at, place)| movements[*place].day < lines[*at].day) {
            posted.into_iter().zip(booked).for_each(|(at, place)| places[at] = Some(place));
        }
    }
    lines.into_iter().zip(places)
}

type ByAmountAndDay = BTreeMap<(Centavos, NaiveDate), Vec<usize>>;

/// The movements by their references and by whether they pay in.
type ByReference<'a> = BTreeMap<(&'a str, bool), Vec<usize>>;

/// The places of the movements whose reference a line has as a word.
fn named<'a>(line: &'a StatementLine, by_reference: &'a ByReference<'a>) -> &'a [usize] {
    let is_credit = line.amount > Centavos::ZERO;
    let words = line.text.split(|character: char| character.is_whitespace() || ",;|()".contains(character));
    let mut words = words.chain([line.id.as_str(), line.text.trim()]).filter(|word| !word.is_empty());
    words.find_map(|word| by_reference.get(&(word, is_credit))).map_or(&[], Vec::as_slice)
}

/// Whether amount and day of a line are those of a movement. The bank may post it on a later day,
/// up to the next one on which banks settle.
fn agrees(movement: &Movement, line: &StatementLine) -> bool {
    let is_in_time = || (movement.day..=next_settlement_day(movement.day)).contains(&line.day);
    movement.amount == line.amount && (movement.is_any_day || is_in_time())
}

fn finding(kind: FindingKind, line: Option<&StatementLine>, ours: Option<&Movement>) -> Finding {
    let (object, id) = match (ours, line) {
        (Some(movement), _) => (movement.object, movement.id.clone()),
        (None, line) => ("statement_line", line.map(|line| line.id.clone()).unwrap_or_default()),
    };
    let booked = ours.map(|movement| SettledAmount::whole(movement.day, movement.amount));
    let theirs = line.map(|line| SettledAmount::whole(line.day, line.amount));
    Finding {
        line: line.map(|line| line.line),
        batch: ours.filter(|ours| ours.object == "batch").map(|ours| ours.id.clone()),
        charge: ours.and_then(|ours| ours.charge),
        text: line.map(|line| line.text.clone()),
        ..Finding::new(kind, object, id, [booked, theirs])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ofx;
    use super::*;

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, day).unwrap()
    }

    /// Batches, withdrawals of which some came back, and entries whose reference is a common word.
    fn books() -> Vec<Movement> {
        let movement = |number: usize| {
            let (object, id, sign) = match number % 4 {
                0 => ("batch", format!("LOTE-{number}"), 1),
                1 => ("withdrawal", format!("w-{}", number / 4), -1),
                2 => ("withdrawal_return", format!("w-{}", number / 4), 1),
                _ => ("entry", format!("e-{number}"), -1),
            };
            let references = if object == "entry" { vec!["TARIFA".to_owned()] } else { vec![id.clone()] };
            let amount = Centavos(sign * (1_000 + number as i64));
            let (day, is_any_day) = (day(1 + number as u32 % 28), object == "entry");
            Movement { object, id, charge: None, references, day, amount, is_any_day }
        };
        (0..40).map(movement).collect()
    }

    /// A line of a statement: id, day, amount, text.
    type Row = (String, u32, i64, String);

    fn rows(books: &[Movement]) -> Vec<Row> {
        let row = |(number, movement): (usize, &Movement)| {
            let text = format!("CREDITO {} (BANCO)", movement.references[0]);
            (format!("F{number}"), 1 + number as u32 % 28, movement.amount.0, text)
        };
        books.iter().enumerate().map(row).collect()
    }

    fn file(rows: &[Row]) -> String {
        let mut text = "<OFX><STMTRS><CURDEF>BRL<ACCTID>1<DTSTART>20261101<DTEND>20261130\n".to_owned();
        for (id, day, amount, memo) in rows {
            let (sign, cents) = (if *amount < 0 { "-" } else { "" }, amount.abs());
            text += &format!(
                "<STMTTRN><DTPOSTED>202611{day:02}<TRNAMT>{sign}{}.{:02}<FITID>{id}<MEMO>{memo}</STMTTRN>\n",
                cents / 100,
                cents % 100
            );
        }
        text + "</STMTRS></OFX>"
    }

    fn read(rows: &[Row]) -> BankStatement {
        ofx::read(file(rows).as_bytes()).unwrap().remove(0).statement.unwrap()
    }

    /// A defect that is put into a statement.
    #[derive(Clone, Copy, Debug)]
    enum Seed {
        Amount,
        Day,
        Missing,
        Added,
        SameId,
        SameLine,
        SameReference,
        Nameless,
    }

    const SEEDS: [Seed; 8] = [
        Seed::Amount,
        Seed::Day,
        Seed::Missing,
        Seed::Added,
        Seed::SameId,
        Seed::SameLine,
        Seed::SameReference,
        Seed::Nameless,
    ];

    /// The reference of an entry may be a word that the bank uses for other lines too.
    #[test]
    fn a_word_that_an_entry_has_is_no_proof_that_a_line_is_repeated() {
        let entry = books().swap_remove(3);
        let row = |id: &str, amount: i64| (id.to_owned(), 4, amount, "TARIFA".to_owned());
        let rows = [row("F1", entry.amount.0), row("F2", -77)];
        let (found, _) = compare(&read(&rows), &[entry]);
        let kinds: Vec<_> = found.findings.iter().map(|finding| (finding.kind, finding.id.as_str())).collect();
        assert_eq!((found.matched.len(), kinds), (1, vec![(FindingKind::OnlyTheirs, "F2")]));
    }

    /// Banks that write no ids charge the same fee twice on a day.
    #[test]
    fn lines_without_an_id_are_not_repeated() {
        let rows = [(String::new(), 4, -250, "TARIFA".to_owned()), (String::new(), 4, -250, "TARIFA".to_owned())];
        for (booked, expected) in [(0, (0, 2)), (1, (1, 1)), (2, (2, 0))] {
            let (found, _) = compare(&read(&rows), &vec![on_day(4, -250); booked]);
            assert_eq!((found.matched.len(), found.findings.len()), expected);
            assert!(found.findings.iter().all(|finding| finding.kind == FindingKind::OnlyTheirs));
        }
    }

    /// A statement of the 27th with a line of the 3rd, and of which the last day may be open.
    #[test]
    fn only_days_that_a_statement_covers_lack_what_only_the_books_have() {
        let books = books();
        let on = |at: u32| books.iter().find(|movement| movement.day == day(at)).unwrap().clone();
        let line = |at: u32| {
            let Movement { references, amount, .. } = on(at);
            (format!("F{at}"), at, amount.0, references[0].clone())
        };
        let of = |period: &str, rows: &[Row]| {
            let text = file(rows).replace("<DTSTART>20261101<DTEND>20261130", period);
            let statement = ofx::read(text.as_bytes()).unwrap().remove(0).statement.unwrap();
            let movements: Vec<_> = [on(3), on(4), on(26), on(27)].into();
            let (found, _) = compare(&statement, &movements);
            (found.matched.len(), found.undecided.len(), found.findings.len())
        };
        assert_eq!(of("<DTSTART>20261126<DTEND>20261127", &[line(3)]), (1, 0, 2));
        assert_eq!(of("<DTSTART>20261126<DTEND>20261127000000[-3:BRT]", &[line(3)]), (1, 1, 1));
        assert_eq!(of("<DTSTART>20261126<DTEND>20261127000000[-3:BRT]", &[line(3), line(27)]), (2, 0, 1));
        let moment = "<DTSTART>20261127101112[-3:BRT]<DTEND>20261127101112[-3:BRT]";
        assert_eq!(of(moment, &[line(3), line(26)]), (2, 0, 1));
        assert_eq!(of(moment, &[line(27)]), (1, 0, 0));
    }

    /// What a payer writes may begin as a balance does.
    #[test]
    fn a_row_that_may_be_a_balance_is_a_movement_where_the_books_have_it() {
        let books = [on_day(5, 9_700)];
        let with = |amount| {
            let rows = [("F".to_owned(), 5, amount, "SALDO DO PEDIDO".to_owned())];
            let text = file(&rows).replace("<MEMO>", "<NAME>PIX<MEMO>");
            compare(&ofx::read(text.as_bytes()).unwrap().remove(0).statement.unwrap(), &books)
        };
        let (found, balances) = with(9_700);
        assert_eq!((found.matched.len(), found.findings.len(), balances.len()), (1, 0, 0));
        let (found, balances) = with(123);
        assert_eq!(
            (found.matched.len(), found.findings.len(), balances.len()),
            (0, 1, 1),
            "and the payment is only ours"
        );
    }

    /// Lines without a reference, against movements: `F` is a Friday, 20 November a holiday.
    #[test]
    fn a_line_that_the_bank_posts_later_belongs_to_the_only_movement_of_its_amount() {
        for (booked, posted, expected) in [
            ([3].as_slice(), [4].as_slice(), (1, 0)),
            // From Friday to Monday, and from Thursday over a holiday and a weekend.
            (&[6], &[9], (1, 0)),
            (&[19], &[23], (1, 0)),
            (&[7], &[9], (1, 0)),
            // Too late, and too early.
            (&[3], &[5], (0, 2)),
            (&[6], &[10], (0, 2)),
            (&[4], &[3], (0, 2)),
            // Lines of the day itself come first, and what is left is a difference.
            (&[3, 4], &[4, 5], (1, 2)),
            (&[3, 5], &[4, 6], (2, 0)),
            (&[3, 4], &[5], (1, 1)),
            // As many lines as movements agree, in their order.
            (&[3, 3], &[4, 4], (2, 0)),
            (&[6, 7, 7], &[9, 9, 9], (3, 0)),
            (&[6, 8], &[7, 9], (2, 0)),
            // More or fewer lines than movements are for people, and a line before its movement.
            (&[6, 7], &[9], (0, 3)),
            (&[6], &[7, 9], (0, 3)),
            (&[3, 3], &[4], (0, 3)),
            (&[8, 8], &[7, 9], (0, 4)),
        ] {
            let movements: Vec<_> = booked.iter().map(|at| on_day(*at, 9_700)).collect();
            let row = |(number, at): (usize, &u32)| (format!("F{number}"), *at, 9_700, "PIX".to_owned());
            let rows: Vec<_> = posted.iter().enumerate().map(row).collect();
            let (found, _) = compare(&read(&rows), &movements);
            assert_eq!((found.matched.len(), found.findings.len()), expected, "{booked:?} {posted:?}");
        }
        let (found, _) = compare(&read(&[("F".to_owned(), 4, 9_700, "PIX".to_owned())]), &[on_day(3, 9_700)]);
        let days = [&found.matched[0].ours, &found.matched[0].theirs].map(|side| side.unwrap().paid_on);
        assert_eq!(days, [day(3), day(4)]);
    }

    fn on_day(at: u32, amount: i64) -> Movement {
        let (id, amount) = ("p-1".to_owned(), Centavos(amount));
        let references = vec![id.clone()];
        Movement { object: "pix", id, charge: None, references, day: day(at), amount, is_any_day: false }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// None of the seeded differences is missed, and none is found that was not seeded.
        #[test]
        fn seeded_differences_are_found_and_no_others(
            seeds in proptest::collection::btree_map(0_usize..40, 0..SEEDS.len(), 0..10)
        ) {
            let books = books();
            let mut rows: Vec<_> = rows(&books).into_iter().map(Some).collect();
            let mut expected = Vec::new();
            for (place, seed) in &seeds {
                let (movement, row) = (&books[*place], rows[*place].clone().unwrap());
                let (name, is_entry) = (movement.id.clone(), movement.object == "entry");
                let changed = rows[*place].as_mut().unwrap();
                match SEEDS[*seed] {
                    // Only amounts distinguish entries with the same word.
                    Seed::Amount if is_entry => {
                        changed.2 -= 50_000;
                        expected.push((FindingKind::OnlyTheirs, row.0));
                        expected.push((FindingKind::OnlyOurs, name));
                    }
                    Seed::Amount => {
                        changed.2 += changed.2.signum();
                        expected.push((FindingKind::Differs, name));
                    }
                    Seed::Day if is_entry => changed.1 = 29,
                    // What was booked on the Friday before may stand under the Sunday.
                    Seed::Day if movement.day >= day(27) => changed.1 = 29,
                    Seed::Day => {
                        changed.1 = 29;
                        expected.push((FindingKind::Differs, name));
                    }
                    Seed::Missing => {
                        rows[*place] = None;
                        expected.push((FindingKind::OnlyOurs, name));
                    }
                    Seed::Added => {
                        let id = format!("X{place}");
                        rows.push(Some((id.clone(), row.1, -7_000_000 - row.2, "TARIFA".to_owned())));
                        expected.push((FindingKind::OnlyTheirs, id));
                    }
                    Seed::SameId => {
                        // Banks repeat ids: it is another line.
                        let other = (row.0.clone(), row.1, 5_000_000, "OUTRO".to_owned());
                        rows.push(Some(other));
                        expected.push((FindingKind::OnlyTheirs, row.0));
                    }
                    Seed::SameLine => {
                        rows.push(Some(row));
                        // The first of the entries that have the word.
                        expected.push((FindingKind::Twice, if is_entry { "e-3".to_owned() } else { name }));
                    }
                    Seed::SameReference if is_entry => {}
                    Seed::SameReference => {
                        rows.push(Some((format!("Y{place}"), row.1, row.2, row.3)));
                        expected.push((FindingKind::Twice, name));
                    }
                    Seed::Nameless => changed.3 = "CREDITO EM CONTA".to_owned(),
                }
            }
            let rows: Vec<Row> = rows.into_iter().flatten().collect();
            let (found, _) = compare(&read(&rows), &books);
            let mut findings: Vec<_> = found.findings.iter().map(|finding| (finding.kind, finding.id.clone())).collect();
            findings.sort();
            expected.sort();
            let wrong = expected.iter().filter(|(kind, _)| *kind != FindingKind::OnlyOurs).count();
            prop_assert_eq!((findings, found.matched.len()), (expected, rows.len() - wrong));
        }
    }
}
