//! Forged pasts: a backup is changed Record by Record, hashed again and restored, so that its chain
//! is whole. Checkpoints stored elsewhere find each, and so does the auditors' program.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use actors::backup::{Frame, FrameReader, write_magic};
use derived::heads::Heads;
use ledger::event::Event;
use ledger::id::LedgerId;
use ledger::money::Centavos;
use ledger::period::MonthEnd;
use ledger::record::{Decision, Record};
use ledger::time::Timestamp;
use sha2::{Digest, Sha256};
use store::testkit::power_cut::Chance;
use store::{Block, Head, Partition};
use testkit::callers::Callers;
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::commands::{backup, restore, verify, verify_against};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A way to change the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgery {
    /// An operator is renamed.
    Renamed,
    /// The tail is cut.
    Cut,
    /// Something happened three days earlier.
    Earlier,
    /// A charge has a centavo more.
    Centavo,
    /// A Record is there twice.
    Twice,
}

const ALL: [Forgery; 5] = [Forgery::Renamed, Forgery::Cut, Forgery::Earlier, Forgery::Centavo, Forgery::Twice];

/// Blocks: when each was booked, and its Records.
type Journal = Vec<(i64, Vec<Record>)>;

fn frames(file: &Path) -> Vec<Frame> {
    let mut reader = FrameReader::new(File::open(file).unwrap(), file.to_owned()).unwrap();
    let mut frames = Vec::new();
    while !matches!(frames.last(), Some(Frame::End(_))) {
        frames.push(reader.next_frame().unwrap());
    }
    frames
}

fn read(copies: &Path) -> Journal {
    let mut journal = Journal::new();
    for frame in frames(&copies.join("000001.blocks")) {
        if let Frame::Block(block) = frame {
            let records = block.records.iter().map(|bytes| Record::decode(bytes).unwrap());
            journal.push((block.booked_at_ms, records.collect()));
        }
    }
    journal
}

/// Writes a journal as a backup, its hashes made again. Gives its head.
fn write(journal: &Journal, original: &Path, copies: &Path) -> Head {
    std::fs::create_dir_all(copies).unwrap();
    let put = |name: &str, frames: &[Frame]| {
        let mut file = File::create(copies.join(name)).unwrap();
        write_magic(&mut file).unwrap();
        for frame in frames {
            file.write_all(&frame.to_bytes().unwrap()).unwrap();
        }
    };
    let (mut head, mut blocks) = (Head::EMPTY, Vec::new());
    for (booked_at_ms, records) in journal {
        let encoded = records.iter().map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            bytes
        });
        let (first, previous) = (head.next, head.hash);
        let block =
            Block { partition: Partition(0), first, booked_at_ms: *booked_at_ms, previous, records: encoded.collect() };
        head = Head { next: block.next(), hash: block.hash(), booked_at_ms: *booked_at_ms };
        blocks.push(Frame::Block(block));
    }
    let heads = Heads::new(vec![head]);
    blocks.push(Frame::End(heads.clone()));
    put("000001.blocks", &blocks);
    let mut keys = frames(&original.join("keys"));
    *keys.last_mut().unwrap() = Frame::End(heads);
    put("keys", &keys);
    head
}

/// Changes the past somewhere.
fn forge(journal: &mut Journal, forgery: Forgery, chance: &mut Chance) {
    let any = |chance: &mut Chance, count: usize| chance.below(count as u64) as usize;
    match forgery {
        Forgery::Renamed => {
            let mut all: Vec<_> =
                journal.iter_mut().flat_map(|(_, records)| records).filter_map(|one| one.operator.as_mut()).collect();
            let place = any(chance, all.len());
            all[place].push('x');
        }
        Forgery::Cut => {
            let length = 1 + any(chance, journal.len() - 1);
            journal.truncate(length);
        }
        Forgery::Earlier => {
            let last = any(chance, journal.len());
            journal[..=last].iter_mut().for_each(|(booked_at_ms, _)| *booked_at_ms -= 3 * DAY_MS);
        }
        Forgery::Centavo => {
            let captured = |record: &&mut Record| matches!(record.events[..], [Event::CardCaptured { .. }]);
            let mut all: Vec<_> = journal.iter_mut().flat_map(|(_, records)| records).filter(captured).collect();
            let place = any(chance, all.len());
            let record = &mut all[place];
            if let Event::CardCaptured { terms, seller, .. } = &mut record.events[0] {
                terms.amount += Centavos(1);
                seller.raised += Centavos(1);
            }
            record.entries = ledger::postings::entries(record.owner, &record.events);
        }
        Forgery::Twice => {
            let block = any(chance, journal.len());
            let place = any(chance, journal[block].1.len());
            let mut record = journal[block].1[place].clone();
            // Nobody sends the same key twice.
            record.idempotency = None;
            journal[block].1.insert(place, record.clone());
            let mut is_after = false;
            let own = journal[block..].iter_mut().flat_map(|(_, records)| records);
            for later in own.filter(|one| one.owner == record.owner && one.ordinal >= record.ordinal) {
                later.ordinal += u64::from(std::mem::replace(&mut is_after, true));
            }
        }
    }
}

/// A server's past with two checkpoints, the last one at its end; and its backup.
struct ServerHistory {
    data: PathBuf,
    copies: PathBuf,
    checkpoints: PathBuf,
}

impl ServerHistory {
    async fn make(folder: &Path) -> Self {
        let (data, copies, checkpoints_file) =
            (folder.join("data"), folder.join("copies"), folder.join("checkpoints.jsonl"));
        let server = Server::start(&Launch::on(&data)).await.unwrap();
        let mut callers = Callers::open(&server).await.unwrap();
        let mut checkpoints = String::new();
        for _ in 0..2 {
            callers.charge(&server, 2, 30).await;
            let request = reqwest::Client::new().get(format!("{}/ops/checkpoint", server.operations));
            checkpoints += &(request.bearer_auth(OPS_TOKEN).send().await.unwrap().text().await.unwrap() + "\n");
        }
        server.stop().unwrap();
        std::fs::write(&checkpoints_file, checkpoints).unwrap();
        backup(&data, &copies).await.unwrap();
        Self { data, copies, checkpoints: checkpoints_file }
    }

    /// Forges the past, and gives the backup of it.
    fn forged(&self, forgery: Forgery, chance: &mut Chance, name: &str) -> PathBuf {
        let mut journal = read(&self.copies);
        forge(&mut journal, forgery, chance);
        let copies = self.copies.with_file_name(format!("{name}-copies"));
        write(&journal, &self.copies, &copies);
        copies
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_forged_pasts_are_whole_and_are_found_by_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let past = ServerHistory::make(folder.path()).await;
    assert!(verify_against(&past.data, &past.checkpoints).await.unwrap().contains("2 checkpoints agree"));
    let untouched = folder.path().join("untouched");
    write(&read(&past.copies), &past.copies, &untouched);
    restore(&untouched, &folder.path().join("same"), &past.data, None).await.unwrap();
    let said = verify_against(&folder.path().join("same"), &past.checkpoints).await.unwrap();
    assert!(said.contains("2 checkpoints agree"), "hashing again alone changes nothing: {said}");
    for (seed, forgery) in (1..).zip(ALL) {
        let copies = past.forged(forgery, &mut Chance(seed), &format!("{forgery:?}"));
        let data = folder.path().join(format!("{forgery:?}"));
        match (restore(&copies, &data, &past.data, None).await, forgery) {
            // What a Record says twice may be refused for what it says.
            (Err(found), Forgery::Twice) => assert!(found.contains("sequence"), "{found}"),
            (restored, _) => {
                restored.unwrap_or_else(|found| panic!("{forgery:?} is not well forged: {found}"));
                verify(&data).await.unwrap_or_else(|found| panic!("{forgery:?} is not well forged: {found}"));
                let found = verify_against(&data, &past.checkpoints).await.unwrap_err();
                assert!(found.contains("a checkpoint tells"), "{forgery:?}: {found}");
            }
        }
    }
}

/// A hundred random forgeries of a store and its backup.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_forgeries_of_a_store_and_of_its_backup_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let past = ServerHistory::make(folder.path()).await;
    let python = python();
    for seed in 0..100 {
        let mut chance = Chance(seed);
        let forgery = ALL[(seed % 5) as usize];
        let copies = past.forged(forgery, &mut chance, "one");
        if let Some(python) = &python {
            let said = audit(python, &copies, Some(&past.checkpoints)).unwrap_err();
            assert!(said.contains("verify_backup: "), "seed {seed}, {forgery:?}: {said}");
        }
        let data = folder.path().join("one");
        match restore(&copies, &data, &past.data, None).await {
            Err(found) => assert!(forgery == Forgery::Twice, "seed {seed}, {forgery:?} is not well forged: {found}"),
            Ok(_) => {
                let found = verify_against(&data, &past.checkpoints).await;
                assert!(found.is_err(), "seed {seed}, {forgery:?} is not found: {found:?}");
            }
        }
        let _there_may_be_none = std::fs::remove_dir_all(&data);
        std::fs::remove_dir_all(&copies).unwrap();
    }
}

/// The auditors' program compares the end of a closed month with the journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_auditors_program_finds_a_forged_end_of_a_month() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let past = ServerHistory::make(folder.path()).await;
    let journal = read(&past.copies);
    let head = write(&journal, &past.copies, &folder.path().join("before"));
    let month = Timestamp(head.booked_at_ms).month();
    let right = MonthEnd { through: head.next.0 - 1, head: head.hash.0.into(), totals: totals(&journal).into() };
    let of = |end: MonthEnd| {
        let mut journal = journal.clone();
        let own = journal.iter().flat_map(|(_, records)| records).filter(|one| one.owner == LedgerId::System);
        let (ordinal, at) = (1 + own.count() as u64, month.next().begin());
        let event = Event::PeriodClosed { month, end };
        journal.push((at.0, vec![Decision::of(event).into_record(LedgerId::System, ordinal, at)]));
        let copies = folder.path().join("sealed");
        write(&journal, &past.copies, &copies);
        audit(&python, &copies, None)
    };
    assert!(of(right).unwrap().contains("\"seals\": 1"));
    for (wrong, named) in [
        (MonthEnd { through: right.through - 1, ..right }, "another Record"),
        (MonthEnd { head: [7; 32].into(), ..right }, "another head"),
        (MonthEnd { totals: [7; 32].into(), ..right }, "another totals"),
    ] {
        let said = of(wrong).unwrap_err();
        assert!(said.contains("the seal of") && said.contains(named), "{said}");
    }
}

/// SHA-256 of the sums of all accounts, as checkpoints have it.
fn totals(journal: &Journal) -> [u8; 32] {
    let mut sums = std::collections::BTreeMap::<u16, [i128; 2]>::new();
    for entry in journal.iter().flat_map(|(_, records)| records).flat_map(|record| &record.entries) {
        for posting in entry.postings() {
            let side = usize::from(posting.side == ledger::entry::Side::Credit);
            sums.entry(posting.account.code().0).or_default()[side] += i128::from(posting.amount.0);
        }
    }
    let lines = sums.iter().map(|(code, [debits, credits])| format!("{code} {debits} {credits}\n"));
    Sha256::digest(lines.collect::<String>()).into()
}

pub(crate) fn python() -> Option<PathBuf> {
    let program = std::env::var_os("CENTAVO_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    if Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Some(program);
    }
    println!("not checked, because it is not installed: Python");
    let is_required = std::env::var_os("CENTAVO_CONFORMANCE").is_some_and(|value| value == "required");
    assert!(!is_required, "CENTAVO_CONFORMANCE=required, and there is no Python");
    None
}

/// What the auditors' program says of a backup.
pub(crate) fn audit(python: &Path, copies: &Path, against: Option<&Path>) -> Result<String, String> {
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/audit/verify_backup.py")).arg(copies).arg("--json");
    if let Some(checkpoints) = against {
        command.arg("--against").arg(checkpoints);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
