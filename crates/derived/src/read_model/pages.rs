//! Pages of the read model (checkpoint): one for each merchant, and one for 32 recipients at a
//! time, stored in the store's state area so that a start need not read the whole journal.
//!
//! A page names the last Record that it includes. Pages are written one after the other while
//! Records go on being folded, so their positions differ. When all changed pages are written, a
//! summary says from where on a start reads the journal again; each page then passes over the
//! Records that it has. If a page is lost, damaged, or of another release, all pages are built
//! again from the journal.

use ledger::{
    Account, Balance, Balances, IdMap, LedgerId, ObjectId, RecipientNumber, RecipientStatus, Settings, Timestamp,
};
use minicbor::bytes::ByteArray;
use minicbor::{Decode, Encode};

use super::daily_figures::DailyFigures;
use super::operator_queue::WaitingKind;
use super::page_id::{PREFIX, PageId};
use super::registry::{HouseFacts, Registry};
use super::rows::{ApiKeyRow, MerchantRow, RecipientRow, Versions};
use super::{BalanceTable, Ordinals, ReadModel};
use crate::dues::{Dues, Hint};
use crate::records::LoadError;
use store::{Part, Sequence, StoreError};

/// The version of the pages' encoding.
const VERSION: u16 = 5;
/// The pages are written after this many Records, or after more when many pages changed; of several
/// partitions each after its part of that.
const RECORDS_PER_KEEPING_MIN: u64 = 65_536;
const RECORDS_PER_KEEPING_MAX: u64 = 524_288;
/// Records for each page that is written again: about 64 bytes of pages a Record.
const RECORDS_PER_PAGE: u64 = 16;

const SUMMARY: &[u8] = b"readers";

#[derive(Encode, Decode)]
struct Summary {
    #[n(0)]
    version: u16,
    /// The pages have all Records through this one.
    #[n(1)]
    through: u64,
    #[n(2)]
    system_ordinal: u64,
    #[n(3)]
    latest_ms: i64,
    /// How many pages there are, at least.
    #[n(4)]
    pages: u64,
    /// The house ledger.
    #[n(5)]
    ledger: LedgerPart,
    #[n(6)]
    house: HouseFacts,
    /// Figures of the last days.
    #[n(7)]
    daily: DailyFigures,
}

#[derive(Encode, Decode)]
struct Page {
    #[n(0)]
    version: u16,
    #[n(1)]
    through: u64,
    #[n(2)]
    ledgers: Vec<LedgerPart>,
    #[n(3)]
    merchant: Option<MerchantPart>,
    #[n(4)]
    recipients: Vec<RecipientRow>,
}

/// Account code, recipient's number or 0, debits and credits as big-endian words.
type StoredBalance = (u16, u32, ByteArray<16>, ByteArray<16>);

/// The part of a page for one ledger.
#[derive(Encode, Decode)]
struct LedgerPart {
    #[n(0)]
    ledger: LedgerId,
    #[n(1)]
    balances: Vec<StoredBalance>,
    #[n(2)]
    due: Option<Hint>,
    /// Items of the operators' queue.
    #[n(3)]
    waiting: Vec<(ObjectId, WaitingKind)>,
}

#[derive(Encode, Decode)]
struct MerchantPart {
    #[n(0)]
    id: ObjectId,
    #[n(1)]
    settings: Settings,
    #[n(2)]
    profiles: Versions,
    #[n(3)]
    created_at: Timestamp,
    #[n(4)]
    ordinal: u64,
    #[n(5)]
    keys: Vec<(ObjectId, ApiKeyRow)>,
}

/// A page as verification sees it.
pub struct StoredPage {
    /// It has the Records through this one.
    pub through: u64,
    /// The balances of its ledgers.
    pub ledgers: Vec<(LedgerId, Balances)>,
}

/// Stored pages, in the order of their positions; `None` for a page that cannot be read.
pub fn stored_pages(store: &Part) -> Result<Vec<Option<StoredPage>>, StoreError> {
    let mut pages = Vec::new();
    for key in store.state_keys(PREFIX)? {
        let page = usable(store.state(&key))?.and_then(|bytes| decode(&bytes));
        pages.push(page.map(|page| {
            let through = page.through;
            let ledgers = page.ledgers.into_iter().map(|part| (part.ledger, balances(part.balances)));
            StoredPage { through, ledgers: ledgers.collect() }
        }));
    }
    if let Some(Summary { version: VERSION, through, ledger, .. }) = summary(store)? {
        pages.push(Some(StoredPage { through, ledgers: vec![(ledger.ledger, balances(ledger.balances))] }));
    }
    pages.sort_by_key(|page| page.as_ref().map(|page| page.through));
    Ok(pages)
}

/// A value that is damaged counts as none: it is derived.
fn usable(value: Result<Option<Vec<u8>>, StoreError>) -> Result<Option<Vec<u8>>, StoreError> {
    match value {
        Err(StoreError::Damaged { .. }) => Ok(None),
        value => value,
    }
}

fn summary(store: &Part) -> Result<Option<Summary>, StoreError> {
    Ok(usable(store.state(SUMMARY))?.and_then(|bytes| minicbor::decode::<Summary>(&bytes).ok()))
}

fn decode(bytes: &[u8]) -> Option<Page> {
    minicbor::decode::<Page>(bytes).ok().filter(|page| page.version == VERSION)
}

fn balances(rows: Vec<StoredBalance>) -> Balances {
    let balances = rows.into_iter().filter_map(|(code, number, debits, credits)| {
        let account = Account::from_code(code, (number != 0).then_some(RecipientNumber(number)))?;
        Some((account, Balance { debits: i128::from_be_bytes(*debits), credits: i128::from_be_bytes(*credits) }))
    });
    balances.collect()
}

impl ReadModel {
    /// True if enough Records were folded since the last write of the pages to write them again.
    pub fn wants_keeping(&self) -> bool {
        let folding = self.folding.lock();
        let since = self.published().0 - folding.kept_through;
        let (least, most) = (RECORDS_PER_KEEPING_MIN / self.share, RECORDS_PER_KEEPING_MAX / self.share);
        since >= (folding.changed.len() as u64 * RECORDS_PER_PAGE).clamp(least.max(1), most.max(1))
    }

    /// Keeps every page that changed. Records go on being folded meanwhile.
    pub fn keep(&self) -> Result<(), StoreError> {
        // Of two writers at a time, one could report pages as stored that the other has yet to
        // write.
        let _one_at_a_time = self.keeping.lock();
        let (mut changed, through, summary) = {
            let mut folding = self.folding.lock();
            let through = self.published().0;
            let summary = Summary {
                version: VERSION,
                through,
                system_ordinal: self.system_ordinal(),
                latest_ms: self.clock_at().0,
                pages: self.registry.read().pages,
                ledger: self.ledger_part(LedgerId::System),
                house: self.house(HouseFacts::clone),
                daily: self.daily.lock().clone(),
            };
            (folding.changed.drain().collect::<Vec<_>>(), through, summary)
        };
        // A merchant comes before its recipients, and the store keeps that order through a crash.
        changed.sort_unstable();
        for page in &changed {
            let bytes = {
                let _nothing_is_folded = self.folding.lock();
                minicbor::to_vec(self.take(*page)).expect("writing into memory cannot fail")
            };
            if let Err(error) = self.store.put_state_lazily(&page.key(), &bytes) {
                self.folding.lock().changed.extend(changed);
                return Err(error);
            }
        }
        let bytes = minicbor::to_vec(summary).expect("writing into memory cannot fail");
        self.store.put_state_lazily(SUMMARY, &bytes)?;
        self.folding.lock().kept_through = through;
        Ok(())
    }

    /// The part for one ledger as it is now.
    fn ledger_part(&self, ledger: LedgerId) -> LedgerPart {
        let (registry, books, dues) = (self.registry.read(), self.books.read(), self.dues.lock());
        let balances = books.ledgers.get(&ledger).into_iter().flatten().map(|(account, balance)| {
            let (code, number) = account.code();
            let words = (balance.debits.to_be_bytes().into(), balance.credits.to_be_bytes().into());
            (code, number.map_or(0, |number| number.0), words.0, words.1)
        });
        let waiting = registry.waiting.of(ledger).collect();
        LedgerPart { ledger, balances: balances.collect(), due: dues.hint(ledger), waiting }
    }

    /// A page as it is now.
    fn take(&self, id: PageId) -> Page {
        let is_needed =
            |part: &LedgerPart| !(part.balances.is_empty() && part.due.is_none() && part.waiting.is_empty());
        let parts: Vec<_> = id.ledgers().into_iter().map(|ledger| self.ledger_part(ledger)).filter(is_needed).collect();
        let registry = self.registry.read();
        let row = registry.merchants.glance(id.group);
        let row = row.as_deref();
        let merchant = row.filter(|_| id.page == 0).map(|row| MerchantPart {
            id: row.id,
            settings: row.settings,
            profiles: row.profiles.clone(),
            created_at: row.created_at,
            ordinal: self.ordinals.read().of(LedgerId::Merchant(id.group)),
            keys: row.keys.clone(),
        });
        let recipients = id.ledgers().into_iter().filter_map(|ledger| match ledger {
            LedgerId::Recipient(_, number) => row?.recipients.get(number.0 as usize - 1).cloned(),
            _ => None,
        });
        Page {
            version: VERSION,
            through: self.published().0,
            ledgers: parts,
            merchant,
            recipients: recipients.collect(),
        }
    }

    /// Restores the stored pages; none of them if one cannot be used.
    pub(super) fn load_pages(&self) -> Result<(), LoadError> {
        let Some(summary) = summary(&self.store)? else { return Ok(()) };
        if summary.version != VERSION {
            return Ok(());
        }
        let (mut registry, mut books) = (Registry::new(self.places.clone()), BalanceTable::new(self.places.clone()));
        let (mut ordinals, mut dues) = (Ordinals::new(self.places.clone()), Dues::default());
        let (mut loaded, mut last, mut is_whole) = (IdMap::default(), summary.through, true);
        for key in self.store.state_keys(PREFIX)? {
            let page = usable(self.store.state(&key))?.and_then(|bytes| decode(&bytes));
            let (Some(id), Some(page)) = (PageId::parse(&key), page) else {
                tracing::warn!("a page of the read model is damaged; all are built again from the journal");
                return Ok(());
            };
            last = last.max(page.through);
            if page.through > summary.through {
                loaded.insert(id, page.through);
            }
            for part in &page.ledgers {
                dues.restore(part.ledger, part.due.clone());
            }
            is_whole &= put(id, page, &mut registry, &mut books, &mut ordinals);
        }
        // Read after the pages: another process may write them meanwhile.
        let head = self.store.head()?.next.0;
        if last >= head {
            let detail = format!("the read model knows of Record {last}, but the journal ends before Record {head}");
            return Err(StoreError::Damaged { folder: "state".into(), sequence: Some(Sequence(head)), detail }.into());
        }
        if !is_whole || registry.pages < summary.pages {
            tracing::warn!("pages of the read model are missing; all are built again from the journal");
            return Ok(());
        }
        put_ledger(summary.ledger, &mut registry, &mut books);
        registry.house = summary.house;
        ordinals.system = summary.system_ordinal;
        let mut folding = self.folding.lock();
        (folding.loaded, folding.kept_through) = (loaded, summary.through);
        (*self.registry.write(), *self.books.write(), *self.dues.lock()) = (registry, books, dues);
        (*self.ordinals.write(), *self.daily.lock()) = (ordinals, summary.daily);
        self.latest_ms.store(summary.latest_ms, std::sync::atomic::Ordering::Release);
        Ok(())
    }
}

fn put_ledger(part: LedgerPart, registry: &mut Registry, books: &mut BalanceTable) {
    part.waiting.into_iter().for_each(|(id, what)| registry.waiting.put(part.ledger, id, what));
    let balances = balances(part.balances);
    if !balances.is_empty() {
        books.add(part.ledger, balances.into_iter());
    }
}

/// Puts a page in its place; false when it is of recipients whose merchant is missing. A merchant's
/// page comes before theirs.
fn put(id: PageId, page: Page, registry: &mut Registry, books: &mut BalanceTable, ordinals: &mut Ordinals) -> bool {
    registry.pages += 1;
    page.ledgers.into_iter().for_each(|part| put_ledger(part, registry, books));
    if let Some(MerchantPart { id: merchant, settings, profiles, created_at, ordinal, keys }) = page.merchant {
        ordinals.set(LedgerId::Merchant(id.group), ordinal);
        let row = MerchantRow { id: merchant, settings, profiles, recipients: Vec::new(), keys, created_at };
        registry.merchants.insert(id.group, row);
    }
    let Some(merchant) = registry.merchants.get_mut(id.group) else { return id.page == 0 };
    for row in page.recipients {
        if row.status == RecipientStatus::Draft {
            registry.drafts.insert((id.group, row.id));
        }
        merchant.put_recipient(row);
    }
    registry.merchants.pack(id.group);
    true
}
