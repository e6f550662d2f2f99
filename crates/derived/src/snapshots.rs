//! Snapshots of actors' states. A snapshot is a state at two positions; an actor that opens reads
//! it and only the later Records of the journal. Snapshots are derived: one that is lost, damaged
//! or of another version is built again from the journal.
//!
//! A state is stored in sections (see [`ledger::section`]), and only touched sections are written
//! again. For each ledger the store has its sections, pages that index them, and one manifest:
//!
//! ```text
//! section/<ledger><generation><kind><number>   a section; of a kind above 127 a page: the stamps
//!                                              of 256 numbers of a kind
//! snapshot/<ledger>                            the manifest: version, positions, head, stamps of
//!                                              pages (of sections, where a kind has few), CRC32C
//! ```
//!
//! A stamp is the generation and the CRC32C of the section or page that it names. No key that a
//! manifest names is ever written over. Changed sections are written under the next generation,
//! then the manifest; then the replaced sections are removed. The store keeps that order through a
//! crash, so a manifest names only what is there: the old snapshot or the new one. The first write
//! of a ledger in a process removes what a crash left over. If any stamp does not fit, the whole
//! snapshot is not used.
//!
//! # Nothing touched is lost
//! A snapshot holds every section that was touched *since* an earlier snapshot that its actor knows
//! to be stored. It is written only where the manifest on the disk stands between that earlier one
//! and itself. So a snapshot may be dropped, or fail. It may also come after the last snapshot of
//! the actor's previous life, which was still waiting when the actor was opened again. Either it is
//! written and complete, or it is not written.
//!
//! # Versions
//! The manifest begins with its version. Version 2 is the one described here, with the encoding of
//! the states' heads and sections as in [`ledger`]. Optional fields may be appended and kinds of
//! sections added: a release that does not know a kind builds the state from the journal. Any other
//! change is a new version. A test holds a golden file. Snapshots of version 1 lack when charges
//! and repayments were sent again.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use crc32c::crc32c;
use ledger::section::Section;
use ledger::{GroupNumber, LedgerId, RecipientNumber};
use minicbor::{Decode, Encode};

use store::priority;
use store::{Part, Sequence, StoreError, covered};

/// Bytes of snapshots that may wait to be written. Further ones are dropped: the next opening reads
/// more of the journal.
const WAITING_BYTES_MAX: usize = 64 << 20;

/// The version that this release writes.
const VERSION: u16 = 2;

/// Position of a state: how many Records it includes, of its owner and of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatePosition {
    /// Ordinal of the last own Record in it.
    pub own: u64,
    /// Sequence through which foreign Records are in it.
    pub foreign: u64,
}

impl StatePosition {
    /// True when a state at `other` has all Records of a state at this position.
    fn is_within(self, other: Self) -> bool {
        self.own <= other.own && self.foreign <= other.foreign
    }
}

/// Snapshot that is to be written: the sections of a state that may differ from the stored one.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The owner's ledger.
    pub ledger: LedgerId,
    /// The position of the state.
    pub position: StatePosition,
    /// Position of the stored snapshot that it continues; `None` if it holds every section that
    /// there is.
    pub since: Option<StatePosition>,
    /// The encoding of the head: everything outside sections.
    pub head: Vec<u8>,
    /// Every section that was touched, encoded; none for one with nothing in it.
    pub sections: BTreeMap<Section, Option<Vec<u8>>>,
    /// Receipt for its actor: the snapshot is stored.
    pub receipt: Receipt,
}

impl Snapshot {
    /// Its memory, estimated, bytes.
    fn bytes(&self) -> usize {
        let sections: usize = self.sections.values().map(|bytes| 64 + bytes.as_ref().map_or(0, Vec::len)).sum();
        256 + self.head.len() + sections
    }
}

/// Receipt that shows an actor which of its snapshots are stored.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    /// The number of this snapshot in the actor's life.
    pub number: u64,
    /// Highest number of a stored snapshot.
    pub stored: Arc<AtomicU64>,
}

/// A snapshot as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// The position of the state.
    pub position: StatePosition,
    /// Its owner's Records through this sequence are in it, and none after it.
    pub own_through: Sequence,
    /// The encoding of the head: everything outside sections.
    pub head: Vec<u8>,
    sections: Vec<(Section, Vec<u8>)>,
}

impl StoredSnapshot {
    /// The encodings of all sections, in order.
    pub fn sections(&self) -> impl Iterator<Item = (Section, &[u8])> {
        self.sections.iter().map(|(section, bytes)| (*section, bytes.as_slice()))
    }
}

/// Reads an actor's snapshot; `None` if there is none that can be used.
pub fn load(store: &Part, ledger: LedgerId) -> Result<Option<StoredSnapshot>, StoreError> {
    let FoundManifest::Manifest(manifest) = found(store, ledger)? else { return Ok(None) };
    let mut sections = Vec::new();
    for (page, bucket) in &manifest.buckets {
        let Some(stamps) = stamps(store, ledger, *page, bucket)? else { return Ok(None) };
        for (low, stamp) in stamps {
            let section = section_at(*page, low);
            let Some(bytes) = stamped(store, ledger, section, stamp)? else { return Ok(None) };
            sections.push((section, bytes));
        }
    }
    let (position, own_through) = (manifest.position(), Sequence(manifest.own_through));
    Ok(Some(StoredSnapshot { position, own_through, head: manifest.head, sections }))
}

/// The ledgers that have a snapshot.
pub fn ledgers(store: &Part) -> Result<Vec<LedgerId>, StoreError> {
    Ok(store.state_keys(MANIFESTS)?.iter().filter_map(|key| ledger_of(key)).collect())
}

/// The ledgers of groups through `last` whose manifest is damaged or of a version that this release
/// cannot read. Opening one of them reads all of the journal that concerns it. The sections that
/// manifests name are not looked at.
pub fn unusable(store: &Part, last: GroupNumber) -> Result<Vec<LedgerId>, StoreError> {
    let mut unusable = Vec::new();
    // The keys of 256 groups at a time: there may be a million.
    for group in (0..=last.0).step_by(256) {
        for key in store.state_keys(&[MANIFESTS, &group.to_be_bytes()[..3]].concat())? {
            if let Some(ledger) = ledger_of(&key)
                && matches!(found(store, ledger)?, FoundManifest::Unusable)
            {
                unusable.push(ledger);
            }
        }
    }
    Ok(unusable)
}

/// Thread that writes snapshots, of all partitions: the journal never waits for one.
pub struct SnapshotWriter {
    queue: Option<Sender<(Part, Snapshot, Sequence)>>,
    waiting_bytes: Arc<AtomicUsize>,
    thread: Option<thread::JoinHandle<()>>,
}

impl SnapshotWriter {
    /// Starts the thread. When the writer is dropped, the thread writes what waits and ends.
    pub fn start() -> Self {
        let (queue, receiver) = channel::<(Part, Snapshot, Sequence)>();
        let waiting_bytes = Arc::<AtomicUsize>::default();
        let waiting = Arc::clone(&waiting_bytes);
        let run = move || {
            priority::run_last();
            let mut swept = HashSet::new();
            for (store, snapshot, own_through) in receiver {
                let written = write(&store, &snapshot, own_through)
                    .and_then(|()| if swept.insert(snapshot.ledger) { sweep(&store, snapshot.ledger) } else { Ok(()) });
                waiting.fetch_sub(snapshot.bytes(), Ordering::AcqRel);
                match written {
                    Ok(()) => {}
                    // A partition that was handed over: its new owner writes snapshots.
                    Err(error @ StoreError::Fenced { .. }) => tracing::debug!(%error, "a snapshot was not written"),
                    Err(error) => {
                        tracing::warn!(%error, "a snapshot was not written; opening its actor reads more of the journal");
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("snapshots".to_owned()).spawn(run).expect("a thread can be started");
        Self { queue: Some(queue), waiting_bytes, thread: Some(thread) }
    }

    /// Queues a snapshot of an actor of a partition.
    pub fn keep(&self, store: &Part, snapshot: Snapshot, own_through: Sequence) {
        if let Some(queue) = &self.queue
            && self.waiting_bytes.load(Ordering::Acquire) < WAITING_BYTES_MAX
        {
            self.waiting_bytes.fetch_add(snapshot.bytes(), Ordering::AcqRel);
            let _gone_after_a_panic = queue.send((store.clone(), snapshot, own_through));
        }
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        drop(self.queue.take());
        let _panicked = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// Writes a snapshot and its receipt. A snapshot that does not continue the stored one is not
/// written. It has its owner's Records through `own_through`, and none after it. Only one thread
/// writes snapshots.
pub fn write(store: &Part, snapshot: &Snapshot, own_through: Sequence) -> Result<(), StoreError> {
    let (ledger, position) = (snapshot.ledger, snapshot.position);
    let (previous, mut buckets) = match found(store, ledger)? {
        FoundManifest::Manifest(old) => (Some((old.position(), old.generation)), old.buckets),
        FoundManifest::Nothing | FoundManifest::Unusable => (None, BTreeMap::new()),
    };
    let continues = match (snapshot.since, previous) {
        (None, _) => true,
        (Some(since), Some((previous, _))) => since.is_within(previous) && previous.is_within(position),
        (Some(_), None) => false,
    };
    if !continues {
        return Ok(());
    }
    if snapshot.since.is_none() {
        buckets.clear();
    }
    let generation = previous.map_or(0, |(_, generation)| generation) + 1;
    let mut rewriting = SnapshotRewrite { store, ledger, generation, replaced: Vec::new() };
    let touched: Vec<_> = snapshot.sections.iter().collect();
    for touched in touched.chunk_by(|(one, _), (next, _)| page_of(**one) == page_of(**next)) {
        let page = page_of(*touched[0].0);
        let old = buckets.remove(&page).unwrap_or(Bucket::Here(Stamps::new()));
        let Some(stamps) = stamps(store, ledger, page, &old)? else { return Ok(()) };
        if let Bucket::Page(stamp) = old {
            rewriting.replace(page_section(page), stamp);
        }
        let bucket = rewriting.rewrite(page, stamps, touched)?;
        buckets.extend(bucket.map(|bucket| (page, bucket)));
    }
    let head = snapshot.head.clone();
    let StatePosition { own, foreign } = position;
    let manifest = Manifest { version: VERSION, own, own_through: own_through.0, foreign, generation, head, buckets };
    let mut bytes = encoded(&manifest);
    bytes.extend(crc32c(&bytes).to_be_bytes());
    store.put_state_lazily(&manifest_key(ledger), &bytes)?;
    snapshot.receipt.stored.fetch_max(snapshot.receipt.number, Ordering::AcqRel);
    if snapshot.since.is_none() {
        return sweep(store, ledger);
    }
    rewriting.replaced.iter().try_for_each(|key| store.delete_state_lazily(key))
}

/// The part of a write that comes before the manifest.
struct SnapshotRewrite<'a> {
    store: &'a Part,
    ledger: LedgerId,
    generation: u64,
    /// Keys that the new manifest does not name any more.
    replaced: Vec<Vec<u8>>,
}

impl SnapshotRewrite<'_> {
    /// Writes the touched sections of a page, and gives the place of the page's stamps, if there
    /// are any.
    fn rewrite(
        &mut self,
        page: SectionPage,
        mut stamps: Stamps,
        touched: &[(&Section, &Option<Vec<u8>>)],
    ) -> Result<Option<Bucket>, StoreError> {
        for (section, bytes) in touched {
            let old = match bytes {
                Some(bytes) => stamps.insert(low(**section), self.put(**section, bytes)?),
                None => stamps.remove(&low(**section)),
            };
            if let Some(old) = old {
                self.replace(**section, old);
            }
        }
        Ok(match stamps.len() {
            0 => None,
            1..=STAMPS_IN_MANIFEST_MAX => Some(Bucket::Here(stamps)),
            _ => Some(Bucket::Page(self.put(page_section(page), &encoded(&stamps))?)),
        })
    }

    fn put(&self, at: Section, bytes: &[u8]) -> Result<Stamp, StoreError> {
        self.store.put_state_lazily(&section_key(self.ledger, at, self.generation), bytes)?;
        Ok(Stamp { generation: self.generation, checksum: crc32c(bytes) })
    }

    fn replace(&mut self, at: Section, old: Stamp) {
        self.replaced.push(section_key(self.ledger, at, old.generation));
    }
}

/// Removes the sections of a ledger that its manifest does not name: a crash left them.
pub fn sweep(store: &Part, ledger: LedgerId) -> Result<(), StoreError> {
    let FoundManifest::Manifest(manifest) = found(store, ledger)? else { return Ok(()) };
    let mut named = HashSet::new();
    for (page, bucket) in &manifest.buckets {
        let Some(stamps) = stamps(store, ledger, *page, bucket)? else { return Ok(()) };
        if let Bucket::Page(stamp) = bucket {
            named.insert(section_key(ledger, page_section(*page), stamp.generation));
        }
        named.extend(stamps.iter().map(|(low, stamp)| section_key(ledger, section_at(*page, *low), stamp.generation)));
    }
    let keys = store.state_keys(&ledger_key(SECTIONS, ledger))?;
    keys.iter().filter(|key| !named.contains(*key)).try_for_each(|key| store.delete_state_lazily(key))
}

/// Result of reading a manifest's key.
enum FoundManifest {
    Nothing,
    Unusable,
    Manifest(Manifest),
}

/// 256 numbers of a kind of section: kind, and the first of the numbers / 256.
type SectionPage = (u8, u64);

/// Stamps of the sections of a page, by the low byte of the section's number.
type Stamps = BTreeMap<u8, Stamp>;

/// Stamp of a written section or page: the value under its key must fit it.
#[derive(Clone, Copy, Encode, Decode)]
struct Stamp {
    #[n(0)]
    generation: u64,
    #[n(1)]
    checksum: u32,
}

/// Up to this many stamps of a page stand in the manifest itself: most states are small, and a key
/// costs more.
const STAMPS_IN_MANIFEST_MAX: usize = 16;

#[derive(Encode, Decode)]
enum Bucket {
    #[n(0)]
    Here(#[n(0)] Stamps),
    #[n(1)]
    Page(#[n(0)] Stamp),
}

#[derive(Encode, Decode)]
struct Manifest {
    #[n(0)]
    version: u16,
    #[n(1)]
    own: u64,
    #[n(2)]
    own_through: u64,
    #[n(3)]
    foreign: u64,
    #[n(4)]
    generation: u64,
    #[cbor(n(5), with = "minicbor::bytes")]
    head: Vec<u8>,
    #[n(6)]
    buckets: BTreeMap<SectionPage, Bucket>,
}

impl Manifest {
    fn position(&self) -> StatePosition {
        StatePosition { own: self.own, foreign: self.foreign }
    }
}

fn found(store: &Part, ledger: LedgerId) -> Result<FoundManifest, StoreError> {
    let bytes = match store.state(&manifest_key(ledger)) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(FoundManifest::Nothing),
        Err(StoreError::Damaged { .. }) => return Ok(FoundManifest::Unusable),
        Err(error) => return Err(error),
    };
    let manifest = covered(b"", &bytes).and_then(|covered| minicbor::decode::<Manifest>(covered).ok());
    let readable = manifest.filter(|manifest| manifest.version == VERSION);
    Ok(readable.map_or(FoundManifest::Unusable, FoundManifest::Manifest))
}

/// The stamps of a bucket; `None` if they cannot be read.
fn stamps(store: &Part, ledger: LedgerId, page: SectionPage, bucket: &Bucket) -> Result<Option<Stamps>, StoreError> {
    match bucket {
        Bucket::Here(stamps) => Ok(Some(stamps.clone())),
        Bucket::Page(stamp) => {
            let bytes = stamped(store, ledger, page_section(page), *stamp)?;
            Ok(bytes.and_then(|bytes| minicbor::decode(&bytes).ok()))
        }
    }
}

/// Reads the section or page that a stamp names; `None` if it is not there or does not fit.
fn stamped(store: &Part, ledger: LedgerId, at: Section, stamp: Stamp) -> Result<Option<Vec<u8>>, StoreError> {
    match store.state(&section_key(ledger, at, stamp.generation)) {
        Ok(bytes) => Ok(bytes.filter(|bytes| crc32c(bytes) == stamp.checksum)),
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn encoded(value: &impl Encode<()>) -> Vec<u8> {
    minicbor::to_vec(value).expect("writing into memory cannot fail")
}

fn page_of(section: Section) -> SectionPage {
    (section.kind, section.number >> 8)
}

fn low(section: Section) -> u8 {
    section.number as u8
}

fn section_at((kind, high): SectionPage, low: u8) -> Section {
    Section { kind, number: high << 8 | u64::from(low) }
}

/// Section number of a page of stamps. The kinds of sections are below 128.
fn page_section((kind, high): SectionPage) -> Section {
    Section { kind: 0x80 | kind, number: high }
}

const MANIFESTS: &[u8] = b"snapshot/";
const SECTIONS: &[u8] = b"section/";

fn manifest_key(ledger: LedgerId) -> Vec<u8> {
    ledger_key(MANIFESTS, ledger)
}

fn section_key(ledger: LedgerId, section: Section, generation: u64) -> Vec<u8> {
    let mut key = ledger_key(SECTIONS, ledger);
    key.extend_from_slice(&generation.to_be_bytes());
    key.push(section.kind);
    key.extend_from_slice(&section.number.to_be_bytes());
    key
}

fn ledger_key(prefix: &[u8], ledger: LedgerId) -> Vec<u8> {
    let (group, number) = match ledger {
        LedgerId::Merchant(group) | LedgerId::Platform(group) => (group.0, 0),
        LedgerId::Recipient(group, number) => (group.0, number.0),
        LedgerId::System => (0, 0),
    };
    let mut key = prefix.to_vec();
    key.extend_from_slice(&group.to_be_bytes());
    key.extend_from_slice(&number.to_be_bytes());
    key
}

fn ledger_of(key: &[u8]) -> Option<LedgerId> {
    let (group, number) = key.strip_prefix(MANIFESTS)?.split_at_checked(4)?;
    let group = GroupNumber(u32::from_be_bytes(group.try_into().ok()?));
    Some(match u32::from_be_bytes(number.try_into().ok()?) {
        0 => LedgerId::Merchant(group),
        number => LedgerId::Recipient(group, RecipientNumber(number)),
    })
}
