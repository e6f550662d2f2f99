//! What the console shows equals the books: the picture of every event of the textbook, of every
//! Record of random histories, previews against what is booked after them, and totals against those
//! that `verify` checks.

use std::collections::BTreeMap;
use std::fmt::Write;

use actors::engine::Engine;
use actors::verify::verify_against;
use centavo::commands::journal_source::JournalSource;
use console::show;
use ledger::account::Account;
use ledger::entry::{Entry, Posting, Side};
use ledger::id::{GroupNumber, LedgerId, RecipientNumber};
use ledger::money::Centavos;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::Partition;
use store::cut::{Cut, Position};
use web::language::Language;
use web::views::checkpoint::CheckpointView;
use web::views::ledger::ledger_name;

use crate::console::{ANA, Browser, RUI, entries_below, world_of_three};
use crate::console_reads::{column, rows};
use crate::world::*;

/// A line of a T-account as a page has it: account, debit, credit.
fn line(account: &str, side: Side, amount: i64) -> String {
    let amount = column(&json!(amount));
    if side == Side::Debit { format!("{account}|{amount}||") } else { format!("{account}||{amount}|") }
}

/// The lines of entries, ledger by ledger, as pages have them.
fn lines<'a>(engine: &Engine, entries: impl Iterator<Item = &'a Entry>) -> Vec<String> {
    let mut by_ledger: BTreeMap<LedgerId, Vec<String>> = BTreeMap::new();
    for entry in entries {
        let group = entry.ledger().group().unwrap_or_default();
        let named = entry.postings().iter().map(|posting| {
            let account = posting.account.name(group, |ledger| ledger_name(engine, ledger));
            line(&account, posting.side, posting.amount.0)
        });
        by_ledger.entry(entry.ledger()).or_default().extend(named);
    }
    by_ledger.into_values().flatten().collect()
}

/// A ledger of the textbook.
fn ledger_named(name: &str) -> LedgerId {
    match name.split_once('-').unwrap() {
        ("M", _) => LedgerId::Merchant(GroupNumber(1)),
        ("P", "house") => LedgerId::System,
        ("P", _) => LedgerId::Platform(GroupNumber(1)),
        (_, number) => LedgerId::Recipient(GroupNumber(1), RecipientNumber(number.parse().unwrap())),
    }
}

/// An account of the textbook: its name has the ids of the textbook's ledgers.
fn account_named(name: &str) -> Account {
    let of = |ledger| match ledger {
        LedgerId::Recipient(_, number) => format!("R-{}", number.0),
        _ => "M-1".to_owned(),
    };
    let recipients = (1..=9).flat_map(|number| {
        let number = RecipientNumber(number);
        [
            Account::RecipientPending(number),
            Account::RecipientAvailable(number),
            Account::RecipientReservedWithdrawal(number),
            Account::ReceivableRecipient(number),
        ]
    });
    let mut all = (1..=999).filter_map(Account::of_kind).chain(recipients);
    all.find(|account| account.name(GroupNumber(1), of) == name).unwrap_or_else(|| panic!("no account {name}"))
}

/// One Record of the textbook: the facts, and its postings by ledger in their order.
struct TextbookEvent {
    facts: Vec<String>,
    postings: Vec<(LedgerId, Posting)>,
}

fn textbook() -> Vec<TextbookEvent> {
    let mut events: Vec<TextbookEvent> = Vec::new();
    let mut ledger = LedgerId::System;
    for text in include_str!("../../ledger/tests/ledger/postings.txt").lines() {
        if let Some((_, facts)) = text.split_once(" decides ") {
            events.push(TextbookEvent { facts: facts.split(", ").map(str::to_owned).collect(), postings: Vec::new() });
        } else if text.starts_with("    ") && text.trim() != "nothing moves" {
            let words: Vec<_> = text.split_whitespace().collect();
            if let [name, _, _] = words[..] {
                ledger = ledger_named(name);
            }
            let (account, amount) = (words[words.len() - 2], words[words.len() - 1].parse().unwrap());
            let side = if text.len() > CREDITS_FROM { Side::Credit } else { Side::Debit };
            let posting = Posting { account: account_named(account), side, amount: Centavos(amount) };
            events.last_mut().unwrap().postings.push((ledger, posting));
        }
    }
    events
}

/// Debits of the textbook end before this column, and credits behind it.
const CREDITS_FROM: usize = 66;

/// Every event of the textbook is drawn, in both languages, with the postings of the textbook.
#[tokio::test]
async fn the_picture_of_every_event_of_the_textbook_has_its_postings() {
    let world = World::sandbox().await;
    let mut drawn = 0;
    for TextbookEvent { facts, postings } in textbook() {
        let mut entries: Vec<(LedgerId, Vec<Posting>)> = Vec::new();
        for (ledger, posting) in postings {
            match entries.last_mut().filter(|(of, _)| *of == ledger) {
                Some((_, postings)) => postings.push(posting),
                None => entries.push((ledger, vec![posting])),
            }
        }
        let entries: Vec<_> =
            entries.into_iter().map(|(ledger, postings)| Entry::try_new(ledger, postings).unwrap()).collect();
        let picture = show::entries(world.engine(), Language::English, &entries, &mut { usize::MAX }).into_string();
        let section = format!("aria-labelledby=\"x\"{picture}</section>");
        assert_eq!(entries_below(&section, "x"), lines(world.engine(), entries.iter()), "{facts:?}");
        let portuguese =
            show::entries(world.engine(), Language::Portuguese, &entries, &mut { usize::MAX }).into_string();
        for amount in entries.iter().flat_map(Entry::postings).map(|posting| posting.amount.0) {
            let swapped: String = column(&json!(amount))
                .chars()
                .map(|letter| match letter {
                    ',' => '.',
                    '.' => ',',
                    other => other,
                })
                .collect();
            assert!(portuguese.contains(&format!(">{swapped}<")), "{facts:?}: {swapped}");
        }
        drawn += usize::from(!entries.is_empty());
    }
    assert!(drawn > 40, "{drawn} Records of the textbook move money");
}

/// The entries of a Record as the interface has them.
fn entries_of(engine: &Engine, at: Position) -> Value {
    let record = engine.record(at).unwrap();
    let entries = record.entries.iter().map(|entry| {
        let group = entry.ledger().group().unwrap_or_default();
        let postings = entry.postings().iter().map(|posting| {
            let account = posting.account.name(group, |ledger| ledger_name(engine, ledger));
            let side = if posting.side == Side::Debit { "debit" } else { "credit" };
            json!({"account": account, "side": side, "amount": posting.amount.0})
        });
        json!({"ledger": ledger_name(engine, entry.ledger()), "postings": postings.collect::<Value>()})
    });
    entries.collect()
}

/// What a decision is said to book, before it is taken.
pub(crate) struct DecisionPreview {
    before: Cut,
    steps: Vec<Value>,
}

impl DecisionPreview {
    /// The preview of a decision, by the route and on the page, which agree.
    pub(crate) async fn of(world: &World, id: &str, decision: &str) -> Self {
        let (before, requested) = (world.cut().await, world.requested().await);
        let preview = world.ops_get(&format!("/ops/queue/{id}/preview?decision={decision}")).await.expect(200);
        let steps: Vec<_> = preview["steps"].as_array().unwrap().iter().map(|step| step["entries"].clone()).collect();
        let page = Browser::signed_in(world, OPS_TOKEN).await.page(&format!("/console/queue/{id}")).await;
        let mut shown = entries_below(&page.html, decision);
        let mut expected: Vec<_> =
            steps.iter().flat_map(|entries| entries.as_array().unwrap()).flat_map(lines_of).collect();
        shown.sort();
        expected.sort();
        assert_eq!(shown, expected, "{decision} {id}");
        assert_eq!(world.requested().await, requested, "a preview writes nothing");
        Self { before, steps }
    }

    /// The preview of a new dispute, or its refusal.
    pub(crate) async fn of_dispute(world: &World, txid: &str, amount: i64, kind: &str) -> Result<Self, u16> {
        let before = world.cut().await;
        let path = format!("/ops/charges/{txid}/disputes/preview?amount={amount}&kind={kind}");
        let preview = world.ops_get(&path).await;
        if preview.status != 200 {
            return Err(preview.status);
        }
        Ok(Self { before, steps: vec![preview.body["entries"].clone()] })
    }

    /// Fails unless each step of the preview, or its first ones, is a Record that was booked since.
    pub(crate) async fn is_booked(&self, world: &World, steps: usize) {
        let since = world.since(&self.before).await;
        let booked: Vec<_> = since.into_iter().map(|at| entries_of(world.engine(), at)).collect();
        for step in self.steps.iter().take(steps) {
            assert!(booked.contains(step), "{step:#} is not among {booked:#?}");
        }
    }
}

/// The lines of an entry of the interface.
fn lines_of(entry: &Value) -> Vec<String> {
    let postings = entry["postings"].as_array().unwrap().iter();
    let of = |posting: &Value| {
        let side = if posting["side"] == "debit" { Side::Debit } else { Side::Credit };
        line(&text(&posting["account"]), side, posting["amount"].as_i64().unwrap())
    };
    postings.map(of).collect()
}

/// Every Record is drawn as it was booked, and all totals are those that `verify` checks. Ends the
/// server.
pub(crate) async fn books_are_as_shown(world: World) {
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let mut booked: BTreeMap<Partition, Sums> = BTreeMap::new();
    for at in world.since(&Cut::default()).await {
        let page = browser.page(&page_of(at)).await;
        let record = world.engine().record(at).unwrap();
        for posting in record.entries.iter().flat_map(Entry::postings) {
            let sums = booked.entry(at.partition).or_default().entry(posting.account.code().0).or_default();
            sums[usize::from(posting.side == Side::Credit)] += i128::from(posting.amount.0);
        }
        let expected = lines(world.engine(), record.entries.iter());
        assert_eq!(entries_below(&page.html, "entries"), expected, "Record {at}");
    }
    let overview = browser.page("/console").await;
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for ((_, account), balance) in world.accounts().await.iter().filter(|((ledger, _), _)| ledger.starts_with("P-")) {
        let heading = account.split(':').next().unwrap();
        let sign = if ["Assets", "Expenses"].contains(&heading) { 1 } else { -1 };
        *sums.entry(heading.to_owned()).or_default() += sign * balance;
    }
    for heading in ["Assets", "Liabilities", "Equity", "Income", "Expenses"] {
        let expected = sums.get(heading).copied().unwrap_or_default();
        assert_eq!(crate::console_claims::figure(&overview.html, heading), expected, "{heading}");
    }
    // A checkpoint has the totals of its partition, and the page those of all.
    let shown = rows(&browser, "/console/trial-balance?by=account").await;
    let mut of_all = Sums::new();
    for (code, sums) in booked.values().flatten() {
        let all = of_all.entry(*code).or_default();
        *all = [0, 1].map(|side| all[side] + sums[side]);
    }
    assert_eq!(shown_sums(&shown[1..]), of_all);
    let mut checkpoints = Vec::new();
    for last in world.cut().await.iter().filter(|last| last.sequence.0 > 0) {
        let checkpoint = world.ops_get(&format!("/ops/checkpoint?partition={}", last.partition.0)).await.expect(200);
        let sums = booked.remove(&last.partition).unwrap_or_default();
        assert_eq!(text(&checkpoint["totals"]), digest_of(&sums), "the totals that verify checks");
        checkpoints.push(serde_json::from_value::<CheckpointView>(checkpoint).unwrap().read().unwrap());
    }
    assert!(booked.is_empty() && !checkpoints.is_empty(), "{booked:?}");
    let folder = world.stopped().await;
    let (JournalSource::Stopped { parts, .. } | JournalSource::Database { parts, .. }) =
        JournalSource::open(&journal_in(folder.path())).unwrap()
    else {
        panic!("a server has it open");
    };
    verify_against(&parts, None, &checkpoints, &mut |_| ()).unwrap();
}

/// Debits and credits by the code of an account's kind.
type Sums = BTreeMap<u16, [i128; 2]>;

/// The sums that rows of a trial balance show.
fn shown_sums(rows: &[Vec<String>]) -> Sums {
    let centavos = |cell: &str| cell.chars().filter(char::is_ascii_digit).collect::<String>().parse::<i128>();
    let kinds = (1..=999).filter_map(|code| Some((code, Account::of_kind(code)?.kind_name())));
    let shown = kinds.filter_map(|(code, name)| {
        let row = rows.iter().find(|row| row[0] == name)?;
        Some((code, [1, 2].map(|place| centavos(&row[place]).unwrap_or_default())))
    });
    shown.collect()
}

/// Digest of sums, as a checkpoint has it.
fn digest_of(sums: &Sums) -> String {
    let mut lines = String::new();
    for (code, [debits, credits]) in sums {
        writeln!(lines, "{code} {debits} {credits}").unwrap();
    }
    Sha256::digest(lines).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[tokio::test]
async fn entries_of_the_house_and_reviews_are_previewed_as_they_are_booked() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let accounts =
        ["Assets:Bank:Own", "Assets:Bank:Pix", "Expenses:Bank:Fees", "Liabilities:Suspense", "Equity:Capital"];
    let rui = [("authorization", bearer(RUI)), ("content-type", "application/json".to_owned())];
    let rui = rui.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut booked = 0;
    for (number, (debit, credit)) in
        accounts.iter().flat_map(|debit| accounts.iter().map(move |credit| (debit, credit))).enumerate()
    {
        let amount = 1 + (number as i64 * 7_919) % 100_000;
        let body =
            json!({"debit": debit, "credit": credit, "amount": amount, "reason": "x", "reference": number.to_string()});
        let entry = world.ops_post("/ops/entries", &body).await;
        if entry.status != 201 {
            continue;
        }
        let id = text(&entry.body["id"]);
        let verb = if number % 3 == 0 { "reject" } else { "approve" };
        let foreseen = DecisionPreview::of_second(&world, &id, verb).await;
        let body = if verb == "approve" { "{}" } else { "{\"notes\": \"x\"}" };
        world.send(Method::POST, &format!("/ops/entries/{id}/{verb}"), &rui, body).await.expect(200);
        foreseen.is_booked(&world, usize::MAX).await;
        booked += 1;
    }
    assert!(booked > 10, "{booked}");
    for (number, verb) in [(1, "approve"), (2, "reject")] {
        let draft = merchant.draft("Ana", number).await;
        let foreseen = DecisionPreview::of(&world, &draft, verb).await;
        let body = if verb == "approve" { json!({}) } else { json!({"notes": "Foto ilegível"}) };
        world.ops_post(&format!("/ops/sub-recipients/{draft}/{verb}"), &body).await.expect(200);
        foreseen.is_booked(&world, usize::MAX).await;
        assert_eq!(foreseen.steps, [json!([])], "a review moves no money");
    }
}

impl DecisionPreview {
    /// The preview of an entry of the house, as the route has it.
    async fn of_second(world: &World, id: &str, decision: &str) -> Self {
        let before = world.cut().await;
        let preview = world.ops_get(&format!("/ops/queue/{id}/preview?decision={decision}")).await.expect(200);
        let steps = preview["steps"].as_array().unwrap().iter().map(|step| step["entries"].clone()).collect();
        let page = Browser::signed_in(world, ANA).await.page(&format!("/console/queue/{id}")).await;
        page.has(&["Booked with the decision"]);
        Self { before, steps }
    }
}
