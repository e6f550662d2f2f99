//! JSON lines turned back into books: the rows of a month become entries and Records of an empty
//! store, and that store comes to the same trial balance.

use std::collections::BTreeMap;
use std::sync::Arc;

use ledger::account::Account;
use ledger::entry::{Entry, Posting, Side};
use ledger::event::Event;
use ledger::fees::Settings;
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::money::Centavos;
use ledger::record::{Decision, Record};
use ledger::time::Timestamp;
use serde_json::Value;
use store::testkit::conformance;
use store::{Part, Partition, SledOptions, SledStore};

use super::{month, rows_of};
use crate::world::{World, text, time};

const GROUP: GroupNumber = GroupNumber(1);
const MERCHANT: LedgerId = LedgerId::Merchant(GROUP);
/// More than there are codes of accounts.
const CODES: u16 = 1_000;

/// Debits and credits by ledger and account.
type Sums = BTreeMap<(String, String), [i128; 2]>;

/// The ledgers and the accounts of the rows, by their names.
struct Chart {
    ledgers: BTreeMap<String, LedgerId>,
    accounts: BTreeMap<String, Account>,
}

impl Chart {
    /// The chart of one merchant, its recipients and the house.
    fn of(rows: &[Value]) -> Self {
        let mut ledgers = BTreeMap::from([("P-house".to_owned(), LedgerId::System)]);
        for row in rows {
            let (name, recipients) = (text(&row["ledger"]), ledgers.len() as u32);
            let ledger = match name.as_bytes()[0] {
                b'M' => MERCHANT,
                b'R' => LedgerId::Recipient(GROUP, RecipientNumber(1 + recipients)),
                _ => LedgerId::Platform(GROUP),
            };
            ledgers.entry(name).or_insert(ledger);
        }
        let name_of = |ledger: LedgerId| ledgers.iter().find(|(_, found)| **found == ledger).unwrap().0.clone();
        let codes = || (1..CODES).map(|code| (code, None));
        let recipients = ledgers.values().filter_map(|ledger| match ledger {
            LedgerId::Recipient(_, number) => Some(*number),
            _ => None,
        });
        let of_recipients = recipients.flat_map(|number| (1..CODES).map(move |code| (code, Some(number))));
        let accounts = codes().chain(of_recipients).filter_map(|(code, recipient)| Account::from_code(code, recipient));
        let accounts = accounts.map(|account| (account.name(GROUP, name_of), account)).collect();
        Self { ledgers, accounts }
    }

    /// The Records that open the merchant and its recipients.
    fn opening(&self, at: Timestamp) -> Vec<Record> {
        let id = |name: &str| ObjectId::parse(&name[2..]).unwrap();
        let merchant = self.ledgers.iter().find(|(_, ledger)| **ledger == MERCHANT).unwrap().0;
        let mut events = vec![Event::MerchantOpened { id: id(merchant), settings: Settings::default() }];
        for (name, ledger) in &self.ledgers {
            if let LedgerId::Recipient(_, number) = ledger {
                let document = Fingerprint([number.0 as u8; 16]);
                events.push(Event::RecipientRegistered { number: *number, id: id(name), document });
            }
        }
        let records = (1..).zip(events).map(|(ordinal, event)| Decision::of(event).into_record(MERCHANT, ordinal, at));
        records.collect()
    }

    /// The entry of a ledger that some rows are. Errors: it does not balance.
    fn entry(&self, ledger: &str, rows: &[&Value]) -> Result<Entry, String> {
        let posting = |row: &&Value| {
            let (debit, credit) = (row["debit"].as_i64().unwrap(), row["credit"].as_i64().unwrap());
            let (side, amount) = if debit > 0 { (Side::Debit, debit) } else { (Side::Credit, credit) };
            Posting { account: self.accounts[&text(&row["account"])], side, amount: Centavos(amount) }
        };
        let postings = rows.iter().map(posting).collect();
        Entry::try_new(self.ledgers[ledger], postings).map_err(|error| format!("{ledger}: {error:?}"))
    }

    /// A Record for each of the rows' Records, with its entries alone.
    fn records(&self, rows: &[Value]) -> Result<Vec<Record>, String> {
        let mut by_record: BTreeMap<u64, BTreeMap<(String, String), Vec<&Value>>> = BTreeMap::new();
        for row in rows {
            let of_record = by_record.entry(row["sequence"].as_u64().unwrap()).or_default();
            of_record.entry((text(&row["ledger"]), text(&row["event"]))).or_default().push(row);
        }
        // The merchant has opened itself and its recipients: all but the house and the shard.
        let mut ordinals = [0, self.ledgers.len() as u64 - 2];
        let mut records = Vec::new();
        for entries in by_record.values() {
            let at = Timestamp(time(&entries.values().next().unwrap()[0]["booked_at"]).timestamp_millis());
            let is_of_house = entries.keys().all(|(ledger, _)| ledger == "P-house");
            let (owner, ordinal) =
                if is_of_house { (LedgerId::System, &mut ordinals[0]) } else { (MERCHANT, &mut ordinals[1]) };
            *ordinal += 1;
            let empty = Decision { events: Vec::new(), personal: None }.into_record(owner, *ordinal, at);
            let entries = entries.iter().map(|((ledger, _), rows)| self.entry(ledger, rows));
            records.push(Record { entries: entries.collect::<Result<_, _>>()?, ..empty });
        }
        Ok(records)
    }
}

/// The sums of a server's trial balance.
async fn trial_balance(world: &World) -> Sums {
    let csv = world.ops_get("/ops/trial-balance?format=csv").await.text;
    let mut sums = Sums::new();
    for line in csv.lines().skip(1) {
        let cells: Vec<_> = line.split(',').collect();
        let amounts = [2, 3].map(|place| cells[place].parse().unwrap());
        sums.insert((cells[0].to_owned(), cells[1].to_owned()), amounts);
    }
    sums.retain(|_, amounts| *amounts != [0, 0]);
    sums
}

/// The trial balance of an empty store that got these Records.
async fn imported(records: &[Record]) -> Sums {
    let folder = World::sandbox().await.stopped().await;
    let store = SledStore::open_existing(folder.path(), &SledOptions::default()).unwrap();
    let part = Part::take(Arc::new(store), Partition(0)).unwrap();
    assert_eq!(part.head().unwrap().next.0, 1, "it is empty");
    for records in records.chunks(64) {
        let encoded = records.iter().map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            bytes
        });
        conformance::append(&part, encoded.collect());
    }
    part.release().unwrap();
    drop(part);
    trial_balance(&World::on(folder).await).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_lines_in_an_empty_store_come_to_the_same_trial_balance() {
    let world = World::sandbox().await;
    month::play_wide(&world).await;
    let rows = rows_of(&world.ops_get("/ops/export").await.text);
    let booked = trial_balance(&world).await;
    let chart = Chart::of(&rows);
    assert_eq!(chart.ledgers.len(), 6, "a merchant, three recipients, the platform's shard and the house");
    let opening = chart.opening(Timestamp(0));
    let with = |rows: &[Value]| chart.records(rows).map(|records| [opening.clone(), records].concat());
    assert_eq!(imported(&with(&rows).unwrap()).await, booked);

    // A row that is left out is no entry any more; a centavo at another account is another balance.
    with(&rows[1..]).unwrap_err();
    let mut moved = rows.clone();
    let of_bank = moved.iter().position(|row| row["account"] == "Assets:Bank:Pix").unwrap();
    moved[of_bank]["account"] = "Assets:Bank:Settlement".into();
    assert_ne!(imported(&with(&moved).unwrap()).await, booked);
}
