//! Postings of every event, as a page of a textbook (`postings.txt`). The columns are those of the
//! accounting manual: the merchant's ledger, each recipient's, the platform's shard.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use crate::cases::event_name;
use crate::world::World;
use ledger::account::Account;
use ledger::entry::{Entry, Side};
use ledger::id::{LedgerId, RecipientNumber};
use ledger::record::Record;

/// Title, preceding steps, and the steps whose Records are shown.
const LESSONS: &[(&str, &[&str], &[&str])] = &[
    (
        "A card of 10000 with splits of 2000 and 1500, captured",
        &["open-card c 10000 1x ana=2000 bia=1500"],
        &["capture c"],
    ),
    ("A PIX of 8000 with a split of 1000, paid", &["open-pix p 8000 ana=1000"], &["pay p"]),
    ("A card without splits, debit", &["open-debit c 10000 1x"], &["capture c"]),
    ("A recipient named twice gets one posting", &["open-pix p 8000 ana=1000 bia=1 ana=500"], &["pay p"]),
    (
        "A negative seller's part is drawn from Available",
        &["open-pix p 1000", "pay p", "open-card c 10000 1x ana=9999"],
        &["capture c"],
    ),
    (
        "… and what Available lacks becomes a Deficit",
        &["open-pix p 300", "pay p", "open-card c 10000 1x ana=9999"],
        &["capture c"],
    ),
    ("… all of it, when nothing is available", &["open-card c 10000 1x ana=9999"], &["capture c"]),
    (
        "A deficit recovered by a PIX",
        &["open-card c 10000 1x ana=9999", "capture c", "open-pix p 8000 ana=1000"],
        &["pay p"],
    ),
    (
        "The acquirer pays an installment, with a fee of its own, and takes a refund and a dispute back",
        &[
            "open-card c 10000 2x",
            "capture c 300",
            "refund r c 4000",
            "approve-refund r c",
            "send r",
            "dispute d c 1000",
            "accept d c",
        ],
        &["batch 1 c.1:5000:160 c!r:-4000:-120 c?d:-1000:0", "send d"],
    ),
    (
        "Thirty days later: the merchant's money and the recipients' fall due",
        &["open-card c 10000 1x ana=2000 bia=1500", "capture c", "wait 30d"],
        &["sweep"],
    ),
    (
        "A deficit recovered at maturity",
        &["open-card c 10000 1x ana=9999", "capture c", "open-card d 10000 1x", "capture d", "wait 30d"],
        &["mature merchant"],
    ),
    (
        "A rate of its own: the acquirer keeps 299, the merchant pays 500",
        &["set mdr_1x 5", "open-card c 10000 1x"],
        &["capture c 299"],
    ),
    (
        "A cashout of 3000 is created, and carried out",
        &["open-pix p 8000", "pay p"],
        &["cash-out o 3000", "carried-out o"],
    ),
    ("A cashout comes back", &["open-pix p 8000", "pay p", "cash-out o 3000"], &["not-carried-out o"]),
    (
        "The bank sends the money of a cashout back",
        &["open-pix p 8000", "pay p", "cash-out o 3000", "carried-out o"],
        &["sent-back o 3000"],
    ),
    (
        "… and repays a deficit that arose meanwhile",
        &["open-pix p 8000", "pay p", "cash-out o 7921", "open-card c 10000 1x ana=9999", "capture c"],
        &["not-taken o"],
    ),
    ("A charge is opened", &[], &["open-card c 10000 1x ana=2000", "open-pix p 8000 ana=1000"]),
    ("A card is left unanswered, then refused", &["open-card c 10000 1x ana=2000"], &["silent c", "refuse c"]),
    ("A PIX is cancelled", &["open-pix p 8000 ana=1000"], &["cancel p"]),
    (
        "Registration and review of recipients",
        &[],
        &["register zoe", "submit zoe", "approve zoe", "reject dora", "register dora", "change zoe new"],
    ),
    (
        "Review of a changed bank account",
        &[],
        &["change-account ana new", "approve ana", "change-account ana newer", "reject ana"],
    ),
    (
        "A withdrawal is asked for, approved, and taken by the institution",
        &["open-pix p 8000 ana=1000", "pay p"],
        &["withdraw ana w", "approve-withdrawal ana w", "settle ana w taken"],
    ),
    (
        "A withdrawal is rejected",
        &["open-pix p 8000 ana=1000", "pay p", "withdraw ana w"],
        &["reject-withdrawal ana w"],
    ),
    (
        "A withdrawal that the institution paid from the PIX account, and its return",
        &["open-pix p 8000 ana=1000", "pay p", "withdraw ana w", "approve-withdrawal ana w"],
        &["settle ana w taken-by-pix", "return ana w"],
    ),
    (
        "A withdrawal is returned by the bank",
        &["open-pix p 8000 ana=1000", "pay p", "withdraw ana w", "approve-withdrawal ana w", "settle ana w taken"],
        &["return ana w"],
    ),
    (
        "Two operators book that a withdrawal came back, which the institution did not tell",
        &["open-pix p 8000 ana=1000", "pay p", "withdraw ana w", "approve-withdrawal ana w", "settle ana w taken"],
        &["ask-return ana x w", "reject-return ana x", "ask-return ana y w", "approve-return ana y"],
    ),
    (
        "An anticipation of 2000, to be sent in 2 days",
        &["open-card c 10000 1x ana=2000", "capture c"],
        &["anticipate ana d2 c.0"],
    ),
    (
        "A take-back of 800 is paid back from what is pending of the split",
        &["open-card c 10000 1x ana=2000", "capture c"],
        &["take-back c 0=300+500", "mature ana"],
    ),
    (
        "… from Available, as far as that goes",
        &["open-pix p 8000 ana=1000", "pay p", "withdraw ana w", "open-pix q 8000 ana=600", "pay q"],
        &["take-back p 0=800+0", "mature ana"],
    ),
    (
        "… and from the next rise of it, here a rejected withdrawal",
        &["open-pix p 8000 ana=1000", "pay p", "withdraw ana w", "take-back p 0=800+0"],
        &["reject-withdrawal ana w"],
    ),
    (
        "What is paid back repays the merchant's Deficit",
        &["open-card d 10000 1x bia=9999", "capture d", "open-pix p 300 ana=200", "pay p", "take-back p 0=200+0"],
        &["mature ana", "mature merchant"],
    ),
    (
        "What a recipient will not pay back is written off, as the merchant's loss: oldest debts first",
        &[
            "open-pix p 8000 ana=1000",
            "pay p",
            "open-card c 10000 1x ana=2000",
            "capture c",
            "anticipate ana d2 c.0",
            "withdraw ana w",
            "take-back p 0=800+0",
            "take-back c 0=0+500",
        ],
        &["ask-write-off ana o 900", "approve-write-off ana o", "ask-write-off ana q 400", "reject-write-off ana q"],
    ),
    (
        "A Deficit that will not be repaid is written off, as the platform's loss",
        &["open-card d 10000 1x bia=9999", "capture d"],
        &["ask-write-off merchant o 300", "approve-write-off merchant o"],
    ),
    (
        "A refund of 4000 of a card with splits is approved: the charge's own Pending gives it; then it is sent",
        &["open-card c 10000 1x ana=2000 bia=1500", "capture c", "refund r c 4000"],
        &["approve-refund r c", "send r"],
    ),
    (
        "… with a take-back of 800 of a split",
        &["open-card c 10000 1x ana=2000 bia=1500", "capture c", "refund r c 4000 ana=800"],
        &["approve-refund r c"],
    ),
    (
        "A refund draws on the charge's Pending, then Available, then Deficit, and takes back from two recipients",
        &[
            "open-pix p 1000",
            "pay p",
            "open-card c 10000 1x ana=2000 bia=1500",
            "capture c",
            "refund r c 8000 ana=2000 bia=500",
        ],
        &["approve-refund r c"],
    ),
    (
        "A refund of a PIX, with a take-back; then it is sent",
        &["open-pix p 8000 ana=1000", "pay p", "refund r p 4000 ana=800"],
        &["approve-refund r p", "send r"],
    ),
    (
        "A refund that gives commission back, of a charge that is not due and of one that is",
        &[
            "set refund_commission on",
            "open-card c 10000 1x",
            "capture c",
            "refund r c 4000",
            "open-pix p 8000",
            "pay p",
            "refund s p 4000",
        ],
        &["approve-refund r c", "approve-refund s p"],
    ),
    (
        "A refund of a card with a take-back is refused by the rail: all of it returns to where it was",
        &[
            "set refund_commission on",
            "open-card c 10000 1x ana=2000",
            "capture c",
            "refund r c 4000 ana=800",
            "approve-refund r c",
            "mature ana",
        ],
        &["fail-refund r c"],
    ),
    (
        "… of a card, after the acquirer had sent it",
        &["open-card c 10000 1x", "capture c", "refund r c 4000", "approve-refund r c", "send r"],
        &["reverse-refund r c 4000"],
    ),
    (
        "… of a PIX whose recipient still owes: the debt is paid from what it has again",
        &["open-pix p 8000 ana=1000", "pay p", "withdraw ana w", "refund r p 8000 ana=800", "approve-refund r p"],
        &["fail-refund r p", "mature ana", "mature merchant"],
    ),
    ("A refund is asked for and rejected", &["open-pix p 8000", "pay p"], &["refund r p 4000", "reject-refund r"]),
    (
        "A dispute is opened and accepted, and the payer repaid",
        &["open-card c 10000 1x", "capture c"],
        &["dispute d c 3000", "accept d c", "send d"],
    ),
    (
        "A dispute that took more than there was is released: the Deficit is repaid in the same Record",
        &["open-card c 10000 1x", "capture c", "dispute d c 10000"],
        &["release d c"],
    ),
    ("A PIX is paid too late, and sent back", &["open-pix p 8000", "cancel p"], &["pay-late p 8000", "send late"]),
    (
        "A recurring cycle of 4990 with an initial fee of 2000, captured",
        &["plan p gold 4990 MONTHLY 12 fee=2000x1", "subscribe s p card", "bill s c"],
        &["capture c"],
    ),
    (
        "A plan, a stored card, and a subscription of two cycles",
        &[],
        &[
            "plan p gold 8000 MONTHLY 2",
            "store-card k",
            "subscribe s p pix ana=1000",
            "bill s c",
            "pay c",
            "pause s",
            "resume s",
            "subscribe t p card",
            "change-card t k",
            "cancel-subscription t",
            "disable p",
        ],
    ),
    (
        "A withdrawal is taken back by the merchant",
        &["open-pix p 8000 ana=1000", "pay p", "withdraw ana w"],
        &["cancel-withdrawal ana w"],
    ),
    (
        "The house credits goodwill, which repays a Deficit first",
        &["open-card c 10000 1x ana=9999", "capture c"],
        &["ask-adjustment o 700", "reject-adjustment o", "ask-adjustment x 700", "approve-adjustment x"],
    ),
    (
        "The house credits goodwill to a recipient",
        &["open-pix p 8000 ana=1000", "pay p"],
        &["ask-adjustment o 700 ana", "approve-adjustment o"],
    ),
    (
        "A dispute that was lost is won: by two operators, and by the acquirer's word; the Deficit is repaid",
        &["open-card c 10000 1x", "capture c", "dispute d c 4000", "accept d c", "dispute e c 6000", "accept e c"],
        &["ask-reversal o d c", "approve-reversal o d c", "win e c"],
    ),
    ("A recipient is frozen, and that ends", &[], &["freeze ana", "unfreeze ana"]),
    (
        "Settings and keys",
        &[],
        &["set antifraud 0", "make-key k", "point-key k https://example.com", "rotate-key k new", "revoke-key k"],
    ),
];

/// Golden files of the house ledger's Records that are shown.
const OF_THE_HOUSE: &[&str] = &[
    "house-entry-requested",
    "house-entry-approved",
    "house-entry-rejected",
    "house-entry-dated-back",
    "acquirer-unexplained",
    "period-close-requested",
    "period-closed",
];

#[test]
fn every_event_moves_what_the_manual_says() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ledger/postings.txt");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let expected = include_str!("postings.txt");
    let differs = page.lines().zip(expected.lines()).position(|(found, expected)| found != expected);
    assert!(page == expected, "postings.txt differs, first in line {:?}; found:\n{page}", differs.map(|line| line + 1));
}

#[test]
fn every_event_of_a_merchant_has_its_lesson() {
    let shown: BTreeSet<String> = LESSONS
        .iter()
        .flat_map(records_of)
        .chain(records_of_the_house())
        .flat_map(|record| record.events.iter().map(event_name).collect::<Vec<_>>())
        .collect();
    let all: BTreeSet<String> = crate::golden::samples()
        .iter()
        .flat_map(|(_, record)| record.events.iter().map(event_name).collect::<Vec<_>>())
        .collect();
    let missing: Vec<_> = all.difference(&shown).map(String::as_str).collect();
    assert_eq!(
        missing,
        [
            "AcquirerBatchBooked",
            "AcquirerFileRejected",
            "AcquirerFileSent",
            "ApprovalAsked",
            "CardAuthorized",
            "CardDeleted",
            "CaseDeferred",
            "ChartOfAccountsSet",
            "ClockMoved",
            "DeferredCaseEnded",
            "ErasureRequested",
            "ErasureWithdrawn",
            "FiscalDocumentLinked",
            "FiscalDocumentUnlinked",
            "KeysErased",
            "MerchantOpened",
            "MetadataChanged",
            "NoteWritten",
            "PayerNotRepaid",
            "PersonLookedUp",
            "PersonalDataRead",
            "PixRegistered",
            "RailTried",
            "RailWordAsked",
            "RailWordGiven",
            "ReferenceReserved",
            "RegistrationRead"
        ],
        "these are no merchant's, or open every other lesson"
    );
}

fn page() -> String {
    let mut page = String::from("What every event moves, in centavos.\n");
    for lesson in LESSONS {
        write!(page, "\n{}\n{}\n", lesson.0, "=".repeat(lesson.0.chars().count())).expect("text grows");
        if !lesson.1.is_empty() {
            writeln!(page, "given {}", lesson.1.join("; ")).expect("text grows");
        }
        writeln!(page, "when  {}", lesson.2.join("; ")).expect("text grows");
        records_of(lesson).iter().for_each(|record| write_record(&mut page, record));
    }
    page.push_str("\nThe house ledger\n================\n");
    records_of_the_house().for_each(|record| write_record(&mut page, &record));
    page
}

fn records_of_the_house() -> impl Iterator<Item = Record> {
    let samples = crate::golden::samples();
    let find = move |name: &&str| samples.iter().find(|(known, _)| known == name).map(|(_, record)| record.clone());
    OF_THE_HOUSE.iter().map(move |name| find(name).expect("a golden file"))
}

fn records_of((title, given, shown): &(&str, &[&str], &[&str])) -> Vec<Record> {
    let mut world = World::new();
    given.iter().for_each(|step| drop(world.step(step).unwrap_or_else(|refusal| panic!("{title}: {step}: {refusal}"))));
    let before = world.journal.len();
    shown.iter().for_each(|step| drop(world.step(step).unwrap_or_else(|refusal| panic!("{title}: {step}: {refusal}"))));
    world.journal.split_off(before)
}

fn write_record(page: &mut String, record: &Record) {
    let events: Vec<_> = record.events.iter().map(event_name).collect();
    writeln!(page, "\n  {} decides {}", name_of(record.owner), events.join(", ")).expect("text grows");
    if record.entries.is_empty() {
        writeln!(page, "    nothing moves").expect("text grows");
    }
    record.entries.iter().for_each(|entry| write_entry(page, entry));
}

fn write_entry(page: &mut String, entry: &Entry) {
    let group = entry.ledger().group().unwrap_or_default();
    let mut ledger = name_of(entry.ledger());
    let width = ledger.len().max(4);
    for posting in entry.postings() {
        let account: String = Account::name(posting.account, group, name_of);
        let amount = posting.amount.0;
        let line = match posting.side {
            Side::Debit => format!("    {ledger:<width$} {account:<44}{amount:>8}"),
            Side::Credit => format!("    {ledger:<width$} {account:<44}{:>8}{amount:>8}", ""),
        };
        writeln!(page, "{line}").expect("text grows");
        ledger.clear();
    }
}

fn name_of(ledger: LedgerId) -> String {
    match ledger {
        LedgerId::Merchant(group) => format!("M-{}", group.0),
        LedgerId::Recipient(_, RecipientNumber(number)) => format!("R-{number}"),
        LedgerId::Platform(group) => format!("P-{}", group.0),
        LedgerId::System => "P-house".to_owned(),
    }
}
