//! Cost of one split charge, held against slow decay: allocations, bytes and instructions of each
//! stage. All three are counts, so a busy machine changes nothing; the benchmarks measure time.
//!
//! The figures stand in `allocations.txt` and `instructions.txt`, and a stage that costs more than
//! its line says fails. One that costs much less fails too: its line would no longer guard it.
//! `UPDATE_SNAPSHOTS=1 cargo test -p actors --test cost` writes both anew.
//!
//! Instructions are counted by valgrind. Where it is not installed that is said and passed over,
//! unless `CENTAVO_CALLGRIND=required`.

#![allow(clippy::unwrap_used)]

mod allocations;
mod callgrind;
mod path;

use std::fmt::Write;
use std::path::Path;

use path::{CHARGES, Kind, looking, measure};

/// A line of a file: a kind of charge and a stage, and a figure for each of the file's units.
type Line = (String, Vec<f64>);

/// A counted quantity, and its limit as a function of the expected figure.
struct Unit {
    name: &'static str,
    most: fn(f64) -> f64,
}

/// Counted to the last one: half an allocation more in a charge is a new one somewhere, however
/// many there were.
const ALLOCATIONS: Unit = Unit { name: "allocations", most: |expected| (expected * 1.05).min(expected + 0.5) };
const BYTES: Unit = Unit { name: "bytes", most: |expected| expected * 1.05 };
/// Hashes are seeded by chance, and compilers differ.
const INSTRUCTIONS: Unit = Unit { name: "instructions", most: |expected| expected * 1.10 };
/// Below this share of the expected figure a line is stale.
const LEAST: f64 = 0.80;

const ALLOCATIONS_HEAD: &str = "\
# What one split charge of three recipients asks of the allocator, a stage a line: how often, and for how many bytes.
# `command` has `decide` and `encode` in it. Written anew by UPDATE_SNAPSHOTS=1 cargo test -p actors --test cost
";
const INSTRUCTIONS_HEAD: &str = "\
# Instructions that one split charge of three recipients takes, a stage a line, counted by callgrind in the test profile: without
# optimization here, with it in dependencies. So they tell of more work or less, not of how fast it is: compare them with themselves.
# Another compiler, standard library or processor may move them by a few percent, and so does chance (hashes are seeded): 10 percent
# more is too much. SHA-256 is counted as programmed: callgrind has no such instruction.
# `command` has `decide` and `encode` in it. Written anew by UPDATE_SNAPSHOTS=1 cargo test -p actors --test cost
";

#[test]
fn no_stage_asks_for_more_memory() {
    let mut lines = Vec::new();
    for (kind, name) in [(Kind::Card, "card"), (Kind::Pix, "pix")] {
        for (stage, allocated) in measure(kind) {
            let each = |all: u64| all as f64 / CHARGES as f64;
            lines.push((format!("{name} {}", stage.name()), vec![each(allocated.allocations), each(allocated.bytes)]));
        }
    }
    hold("allocations.txt", ALLOCATIONS_HEAD, &[ALLOCATIONS, BYTES], &lines);
}

#[test]
fn no_stage_takes_more_instructions() {
    let mut lines = Vec::new();
    for (test, name) in [("card_charges_arrive", "card"), ("pix_charges_arrive", "pix")] {
        let Some(counted) = callgrind::instructions(test) else { return };
        lines.extend(counted.into_iter().map(|(stage, each)| (format!("{name} {}", stage.name()), vec![each])));
    }
    hold("instructions.txt", INSTRUCTIONS_HEAD, &[INSTRUCTIONS], &lines);
}

/// To look whether a snapshot is worth its price takes what it takes to encode: that must not
/// happen again and again, however many bytes a Record touches.
#[test]
fn looking_for_a_snapshot_stays_a_small_part_of_a_charge() {
    const CHARGES: u64 = 10_000;
    for splits in 0..=3 {
        let each = looking(CHARGES, splits).bytes / CHARGES;
        assert!(each < 1_000, "{splits} splits: {each} bytes a charge");
    }
}

#[test]
fn card_charges_arrive() {
    measure(Kind::Card);
}

#[test]
fn pix_charges_arrive() {
    measure(Kind::Pix);
}

/// Holds what was counted against a file, or writes the file.
fn hold(file: &str, head: &str, units: &[Unit], lines: &[Line]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cost").join(file);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, page(head, units, lines)).unwrap();
    }
    let expected: Vec<Line> = parse(&std::fs::read_to_string(&path).unwrap());
    let named = |lines: &[Line]| lines.iter().map(|(stage, _)| stage.clone()).collect::<Vec<_>>();
    assert_eq!(named(&expected), named(lines), "{file} has other stages");
    let mut wrong = String::new();
    for ((stage, found), (_, expected)) in lines.iter().zip(&expected) {
        for ((unit, found), expected) in units.iter().zip(found).zip(expected) {
            let verdict = match found {
                found if *found > (unit.most)(*expected) => "too many: if it is worth its price, write the file anew",
                found if *found < LEAST * expected => {
                    "much better! Write the file anew, so that it guards what was won"
                }
                _ => continue,
            };
            writeln!(wrong, "{stage}: {found:.2} {} a charge, {expected:.2} expected: {verdict}", unit.name).unwrap();
        }
    }
    assert!(
        wrong.is_empty(),
        "\n{wrong}UPDATE_SNAPSHOTS=1 cargo test -p actors --test cost writes {file} anew; found:\n{}",
        page("", units, lines)
    );
}

fn page(head: &str, units: &[Unit], lines: &[Line]) -> String {
    let mut page = head.to_owned();
    write!(page, "# {:<12}", "charge stage").unwrap();
    units.iter().for_each(|unit| write!(page, " {:>12}", unit.name).unwrap());
    for (stage, figures) in lines {
        write!(page, "\n{stage:<14}").unwrap();
        figures.iter().for_each(|figure| write!(page, " {figure:>12.2}").unwrap());
    }
    page + "\n"
}

fn parse(page: &str) -> Vec<Line> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[..2].join(" "), words[2..].iter().map(|figure| figure.parse().unwrap()).collect())
    });
    parsed.collect()
}
