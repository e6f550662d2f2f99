//! Keyring: encryption of personal data and of the installation's secrets.
//!
//! One master key seals all other keys. Personal data is sealed under a key of its month, which is
//! stored apart from the journal. Dropping the month's key erases the people and leaves the books.
//!
//! # Derived keys
//! From each month's key another one is derived, which makes hashes for search: see
//! [`crate::personal_index`].
//! From the master key two keys are derived by HKDF (RFC 5869): one seals secrets, the other makes
//! fingerprints, which are keyed digests.
//!
//! # Sealed bytes
//! AES-256-GCM: a byte for the format (1), nonce, ciphertext and tag. The purpose of the bytes
//! ([`SealedFor`]) is the associated data, so that they open only where they belong. That of a
//! profile has its version too: each change seals the next one, and a former one in its place does
//! not open.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aes_gcm::aead::{Aead, AeadInOut, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use hmac::{Hmac, Mac};
use ledger::time::civil;
use ledger::{Fingerprint, IdKey, Month, Record, Sealed, SealedFor, Timestamp};
use parking_lot::RwLock;
use sha2::Sha256;
use siphasher::sip::SipHasher24;

use crate::checkpoint::{Checkpoint, SignedCheckpoint, Signer};
use store::{Store, StoreError};

const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const PROOF: &[u8] = b"keys/proof";
const MONTHS: &[u8] = b"keys/month/";
/// The first byte of sealed bytes: their format.
const FORMAT: u8 = 1;

/// State of sealed personal data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedState {
    /// The key of its month opens it.
    Opens,
    /// The key of its month was dropped.
    Erased,
    /// The key of its month does not open it.
    Damaged,
}

/// Why a key ring cannot be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The stored month keys were sealed under another master key.
    #[error(
        "the master key is not the one that this data was made with: put the file back that was its master.key, \
         or set CENTAVO_MASTER_KEY"
    )]
    WrongMasterKey,
    /// The operating system gives no random bytes.
    #[error("the operating system gives no random bytes: {0}")]
    Random(getrandom::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The keys of a store: the derived ones, and those of the months.
///
/// ```
/// use std::sync::Arc;
///
/// use centavo_derived::seal::{Keyring, SealError};
/// use store::testkit::MemoryStore;
/// use ledger::id::ObjectId;
/// use ledger::personal::SealedFor;
/// use ledger::time::Timestamp;
///
/// let (store, now) = (MemoryStore::new(), Timestamp(1_767_225_600_000));
/// let keyring = Keyring::open([7; 32], Arc::new(store.clone()))?;
/// let sealed = keyring.seal_value(SealedFor::payer(ObjectId(1)), now, &"Maria")?;
/// let open = |sealed_for| keyring.open_value::<String>(sealed_for, &sealed);
/// assert_eq!(open(SealedFor::payer(ObjectId(1))).as_deref(), Some("Maria"));
/// assert_eq!(open(SealedFor::payer(ObjectId(2))), None, "it opens in its own place alone");
/// assert!(matches!(Keyring::open([8; 32], Arc::new(store)), Err(SealError::WrongMasterKey)));
/// # Ok::<(), SealError>(())
/// ```
pub struct Keyring {
    secrets: Aes256Gcm,
    /// Keyed digest before its first byte, so that the key's schedule is made once.
    mac: Hmac<Sha256>,
    signer: Signer,
    months: RwLock<HashMap<u16, Option<Arc<MonthKey>>>>,
    /// Months before this one were erased.
    erased_before: AtomicU32,
    store: Arc<dyn Store>,
}

/// The key of a month: it opens what was sealed in that month, and hashes values for search.
pub struct MonthKey {
    cipher: Aes256Gcm,
    search: SipHasher24,
}

impl MonthKey {
    /// Opens one of the structures of [`ledger::personal`]; `None` if it is for something else.
    pub fn open_value<T: for<'b> minicbor::Decode<'b, ()>>(&self, sealed_for: SealedFor, sealed: &Sealed) -> Option<T> {
        let opened = open(&self.cipher, &sealed_for.associated_data(sealed.version), &sealed.bytes)?;
        minicbor::decode(&opened).ok()
    }

    /// Keyed hash of a value for search: SipHash-2-4. `purpose` keeps hashes of different things
    /// apart.
    pub fn blind_hash(&self, purpose: &str, value: &[u8]) -> u64 {
        let mut hasher = self.search;
        hasher.write(purpose.as_bytes());
        hasher.write(&[0]);
        hasher.write(value);
        hasher.finish()
    }
}

impl Keyring {
    /// Opens the key ring of a store. A sealed proof in the store reveals a wrong master key at
    /// once; a new store gets a proof.
    pub fn open(master_key: [u8; 32], store: Arc<dyn Store>) -> Result<Self, SealError> {
        let ring = Self::open_unchanged(master_key, store)?;
        let stands = ring.store.insert_common(PROOF, &ring.seal_secret(proof(), b"centavo")?)?;
        ring.open_secret(proof(), &stands).ok_or(SealError::WrongMasterKey)?;
        Ok(ring)
    }

    /// Opens the key ring of a store that is only read: checks the proof if there is one, and
    /// writes none.
    pub fn open_unchanged(master_key: [u8; 32], store: Arc<dyn Store>) -> Result<Self, SealError> {
        let secrets = cipher(&derived(&master_key, b"secrets"));
        if let Some(sealed) = store.common(PROOF)? {
            open(&secrets, &proof().associated_data(0), &sealed).ok_or(SealError::WrongMasterKey)?;
        }
        let mac = keyed(&derived(&master_key, b"fingerprints"));
        let signer = Signer::new(&derived(&master_key, b"checkpoints"));
        Ok(Self { secrets, mac, signer, months: RwLock::default(), erased_before: AtomicU32::new(0), store })
    }

    /// Signs a checkpoint with a key that is derived from the master key.
    pub fn sign(&self, checkpoint: Checkpoint) -> SignedCheckpoint {
        self.signer.sign(checkpoint)
    }

    /// Signs the manifest of an export, which has this SHA-256 in hexadecimal, with the key that
    /// signs checkpoints. Gives the public key and the signature.
    pub fn sign_manifest(&self, sha256: &str) -> ([u8; 32], [u8; 64]) {
        self.signer.sign_text(&format!("centavo manifest 1\n{sha256}\n"))
    }

    /// Seals personal data under the key of the month of `now`; see [`Sealed::version`].
    pub fn seal(&self, sealed_for: SealedFor, version: u32, now: Timestamp, plain: &[u8]) -> Result<Sealed, SealError> {
        let month = month_of(now);
        let key = match self.month_key(month)? {
            Some(key) => key,
            None => self.make_month_key(month)?,
        };
        Ok(Sealed { month, bytes: encrypt(&key.cipher, &sealed_for.associated_data(version), plain)?, version })
    }

    /// Makes the keys of the months of `now` and of a day later, so that sealing does not wait for
    /// the disk then. May wait for the disk itself.
    pub fn prepare(&self, now: Timestamp) -> Result<(), SealError> {
        for month in months_soon(now) {
            if self.month_key(month)?.is_none() {
                self.make_month_key(month)?;
            }
        }
        Ok(())
    }

    /// Whether [`Keyring::prepare`] was done for `now`.
    pub fn is_prepared(&self, now: Timestamp) -> bool {
        let months = self.months.read();
        months_soon(now).iter().all(|month| months.contains_key(month))
    }

    /// Opens personal data; `None` if its month's key was dropped, or when it is for something
    /// else.
    pub fn open_sealed(&self, sealed_for: SealedFor, sealed: &Sealed) -> Option<Vec<u8>> {
        let key = self.month_key(sealed.month).ok().flatten()?;
        open(&key.cipher, &sealed_for.associated_data(sealed.version), &sealed.bytes)
    }

    /// Whether personal data opens, was erased or is damaged. Data with an unknown purpose counts
    /// as damaged.
    pub fn inspect(&self, sealed_for: Option<SealedFor>, sealed: &Sealed) -> Result<SealedState, SealError> {
        let Some(key) = self.month_key(sealed.month)? else { return Ok(SealedState::Erased) };
        let opened = sealed_for.map(|sealed_for| sealed_for.associated_data(sealed.version));
        let opened = opened.and_then(|associated| open(&key.cipher, &associated, &sealed.bytes));
        Ok(if opened.is_some() { SealedState::Opens } else { SealedState::Damaged })
    }

    /// Seals a profile in place of the `former` one, or as the first.
    pub fn seal_profile<T: minicbor::Encode<()>>(
        &self,
        sealed_for: SealedFor,
        former: Option<&Sealed>,
        now: Timestamp,
        profile: &T,
    ) -> Result<Sealed, SealError> {
        let version = former.map_or(0, |former| former.version) + 1;
        self.seal(sealed_for, version, now, &minicbor::to_vec(profile).expect("writing into memory cannot fail"))
    }

    /// Seals one of the structures of [`ledger::personal`] that is never replaced.
    pub fn seal_value<T: minicbor::Encode<()>>(
        &self,
        sealed_for: SealedFor,
        now: Timestamp,
        value: &T,
    ) -> Result<Sealed, SealError> {
        self.seal(sealed_for, 0, now, &minicbor::to_vec(value).expect("writing into memory cannot fail"))
    }

    /// Opens one of the structures of [`ledger::personal`]; `None` if its month's key was dropped.
    pub fn open_value<T: for<'b> minicbor::Decode<'b, ()>>(&self, sealed_for: SealedFor, sealed: &Sealed) -> Option<T> {
        minicbor::decode(&self.open_sealed(sealed_for, sealed)?).ok()
    }

    /// Opens the personal part of a Record; `None` if there is none, or its month's key was
    /// dropped.
    pub fn open_personal<T: for<'b> minicbor::Decode<'b, ()>>(&self, record: &Record) -> Option<T> {
        self.open_value(record.personal_for()?, record.personal.as_ref()?)
    }

    /// Seals a secret of the installation (a webhook secret) under the key that is derived for
    /// them.
    pub fn seal_secret(&self, sealed_for: SealedFor, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        encrypt(&self.secrets, &sealed_for.associated_data(0), plain)
    }

    /// Opens a secret of the installation; `None` if it is for something else.
    pub fn open_secret(&self, sealed_for: SealedFor, sealed: &[u8]) -> Option<Vec<u8>> {
        open(&self.secrets, &sealed_for.associated_data(0), sealed)
    }

    /// A keyed digest of `parts`; `purpose` keeps digests of different things apart.
    pub fn fingerprint(&self, purpose: &str, parts: &[&[u8]]) -> Fingerprint {
        let mut mac = self.mac(purpose);
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        let digest = mac.finalize().into_bytes();
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        Fingerprint(short)
    }

    /// The key of a month; `None` if it was dropped, or does not open and so seals nothing either.
    pub fn month(&self, month: u16) -> Result<Option<Arc<MonthKey>>, StoreError> {
        match self.month_key(month) {
            Err(SealError::Store(error)) => Err(error),
            key => Ok(key.ok().flatten()),
        }
    }

    /// From here on the keys of the months through this one open nothing in this process, whatever
    /// the store has.
    pub fn forget_through(&self, month: Month) {
        self.erased_before.fetch_max(month.next().0, Ordering::AcqRel);
        self.months.write().retain(|known, _| !self.is_erased(*known));
    }

    /// Drops the keys of the months through this one, for good. May wait for the disk.
    pub fn erase_through(&self, month: Month) -> Result<(), StoreError> {
        let stored = self.stored_months()?;
        self.forget_through(month);
        stored
            .into_iter()
            .filter(|stored| self.is_erased(*stored))
            .try_for_each(|stored| self.store.remove_common(&month_name(stored)))
    }

    /// Forgets the keys that another process has dropped from the store. May wait for the disk.
    pub fn forget_dropped(&self) -> Result<(), StoreError> {
        let known: Vec<u16> = self.months.read().keys().copied().collect();
        let stored = self.stored_months()?;
        self.months.write().retain(|month, _| stored.contains(month) || !known.contains(month));
        Ok(())
    }

    fn is_erased(&self, month: u16) -> bool {
        u32::from(month) < self.erased_before.load(Ordering::Acquire)
    }

    /// The months whose keys are there, in order.
    pub fn months(&self) -> Result<Vec<u16>, StoreError> {
        let mut months = self.stored_months()?;
        months.retain(|month| !self.is_erased(*month));
        Ok(months)
    }

    fn stored_months(&self) -> Result<Vec<u16>, StoreError> {
        let keys = self.store.commons()?;
        let months =
            keys.iter().filter_map(|(key, _)| std::str::from_utf8(key.strip_prefix(MONTHS)?).ok()?.parse().ok());
        let mut months: Vec<u16> = months.collect();
        months.sort_unstable();
        Ok(months)
    }

    /// The key that hides group numbers in ids.
    pub fn id_key(&self) -> IdKey {
        IdKey::new(self.fingerprint("ids", &[]).0)
    }

    fn mac(&self, purpose: &str) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac
    }

    fn month_key(&self, month: u16) -> Result<Option<Arc<MonthKey>>, SealError> {
        if self.is_erased(month) {
            return Ok(None);
        }
        if let Some(known) = self.months.read().get(&month) {
            return Ok(known.clone());
        }
        let Some(sealed) = self.store.common(&month_name(month))? else { return Ok(None) };
        self.open_month_key(month, &sealed).map(Some)
    }

    /// Makes the key of a month and makes it durable before it is used. Of several that are made at
    /// once, in whichever process, all use the first.
    fn make_month_key(&self, month: u16) -> Result<Arc<MonthKey>, SealError> {
        let sealed = self.seal_secret(of_month(month), &random_bytes::<32>()?)?;
        let stands = self.store.insert_common(&month_name(month), &sealed)?;
        self.open_month_key(month, &stands)
    }

    fn open_month_key(&self, month: u16, sealed: &[u8]) -> Result<Arc<MonthKey>, SealError> {
        let key = self.open_secret(of_month(month), sealed).and_then(|key| <[u8; 32]>::try_from(key).ok());
        let key = key.ok_or(SealError::WrongMasterKey)?;
        let search = hkdf(b"centavo", &key, b"search");
        let search = SipHasher24::new_with_key(&std::array::from_fn(|index| search[index]));
        let key = Arc::new(MonthKey { cipher: cipher(&key), search });
        self.months.write().insert(month, Some(Arc::clone(&key)));
        Ok(key)
    }
}

/// Random bytes for values that may become known: the random part of an id, a nonce. Each thread
/// asks the operating system for many at a time; no byte is given twice. For a secret use
/// [`random_bytes`].
pub fn stocked_random_bytes<const N: usize>() -> Result<[u8; N], SealError> {
    thread_local!(static STOCK: RefCell<RandomStock> = const { RefCell::new(RandomStock { bytes: [0; _], left: 0 }) });
    STOCK.with_borrow_mut(RandomStock::take)
}

/// As [`stocked_random_bytes`], as a number: the random part of an id.
pub fn stocked_random_u64() -> Result<u64, SealError> {
    stocked_random_bytes().map(u64::from_le_bytes)
}

struct RandomStock {
    bytes: [u8; 512],
    left: usize,
}

impl RandomStock {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SealError> {
        const { assert!(N <= 512, "more than a stock holds") };
        if self.left < N {
            self.left = 0;
            getrandom::fill(&mut self.bytes).map_err(SealError::Random)?;
            self.left = self.bytes.len();
        }
        self.left -= N;
        Ok(std::array::from_fn(|index| self.bytes[self.left + index]))
    }
}

/// Random bytes from the operating system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], SealError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(SealError::Random)?;
    Ok(bytes)
}

fn cipher(key: &[u8; 32]) -> Aes256Gcm {
    Aes256Gcm::new(&Key::<Aes256Gcm>::from(*key))
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("HMAC takes any key")
}

/// HKDF-SHA-256 (RFC 5869), one block long.
fn hkdf(salt: &[u8], secret: &[u8], info: &[u8]) -> [u8; 32] {
    let hmac = |key: &[u8], parts: [&[u8]; 2]| -> [u8; 32] {
        let mut mac = keyed(key);
        parts.into_iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    };
    hmac(&hmac(salt, [secret, &[]]), [info, &[1]])
}

fn derived(master_key: &[u8; 32], purpose: &[u8]) -> [u8; 32] {
    hkdf(b"centavo", master_key, purpose)
}

fn proof() -> SealedFor {
    SealedFor::field("proof", [0; 16])
}

fn of_month(month: u16) -> SealedFor {
    SealedFor::field("month key", u128::from(month).to_be_bytes())
}

fn encrypt(key: &Aes256Gcm, associated: &[u8; 32], plain: &[u8]) -> Result<Vec<u8>, SealError> {
    const HEAD: usize = 1 + NONCE_BYTES;
    let nonce = stocked_random_bytes::<NONCE_BYTES>()?;
    let mut bytes = Vec::with_capacity(HEAD + plain.len() + TAG_BYTES);
    bytes.push(FORMAT);
    bytes.extend_from_slice(&nonce);
    bytes.extend_from_slice(plain);
    let sealed = key.encrypt_inout_detached(&Nonce::from(nonce), associated, (&mut bytes[HEAD..]).into());
    bytes.extend_from_slice(&sealed.expect("AES-GCM takes any text below 64 GiB"));
    Ok(bytes)
}

fn open(key: &Aes256Gcm, associated: &[u8; 32], sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, text) = sealed.strip_prefix(&[FORMAT])?.split_first_chunk::<NONCE_BYTES>()?;
    key.decrypt(&Nonce::from(*nonce), Payload { msg: text, aad: associated }).ok()
}

fn month_name(month: u16) -> Vec<u8> {
    [MONTHS, format!("{month:05}").as_bytes()].concat()
}

/// The months of `now` and of a day later.
fn months_soon(now: Timestamp) -> [u16; 2] {
    [now, now.plus_ms(24 * 60 * 60 * 1_000)].map(month_of)
}

/// Months since January 1970, in UTC.
fn month_of(now: Timestamp) -> u16 {
    let (year, month, _) = civil(now.0.div_euclid(24 * 60 * 60 * 1_000));
    u16::try_from((year - 1970) * 12 + month - 1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use ledger::id::ObjectId;

    use super::*;
    use store::testkit::MemoryStore;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    fn of_payer(number: u128) -> SealedFor {
        SealedFor::payer(ObjectId(number))
    }

    fn store() -> Arc<dyn Store> {
        Arc::new(MemoryStore::default())
    }

    #[test]
    fn a_dropped_month_is_gone_and_another_master_key_is_refused() {
        let store = store();
        let ring = Keyring::open([1; 32], Arc::clone(&store)).unwrap();
        let sealed = ring.seal(of_payer(1), 0, NOW, b"Maria").unwrap();
        let again = Keyring::open([1; 32], Arc::clone(&store)).unwrap();
        assert_eq!(again.open_sealed(of_payer(1), &sealed).as_deref(), Some(&b"Maria"[..]));
        assert!(matches!(Keyring::open([2; 32], Arc::clone(&store)), Err(SealError::WrongMasterKey)));
        store.remove_common(&month_name(sealed.month)).unwrap();
        let later = Keyring::open([1; 32], store).unwrap();
        assert_eq!(later.open_sealed(of_payer(1), &sealed), None);
    }

    #[test]
    fn erased_months_open_nothing_at_once_and_after_a_start() {
        let store = store();
        let ring = Keyring::open([1; 32], Arc::clone(&store)).unwrap();
        let other = Keyring::open([1; 32], Arc::clone(&store)).unwrap();
        let later = NOW.plus_ms(40 * 86_400_000);
        let [old, new] = [NOW, later].map(|at| ring.seal(of_payer(1), 0, at, b"Maria").unwrap());
        let opens = |ring: &Keyring| [&old, &new].map(|sealed| ring.open_sealed(of_payer(1), sealed).is_some());
        assert_eq!((opens(&ring), opens(&other)), ([true; 2], [true; 2]));
        ring.erase_through(Month(old.month.into())).unwrap();
        assert_eq!((opens(&ring), ring.months().unwrap()), ([false, true], vec![new.month]));
        assert_eq!(opens(&other), [true; 2], "another process has the key until it looks");
        other.forget_dropped().unwrap();
        assert_eq!(opens(&other), [false, true]);
        assert_eq!(opens(&Keyring::open([1; 32], store).unwrap()), [false, true]);
    }

    #[test]
    fn what_is_sealed_for_one_opens_for_no_other() {
        let ring = Keyring::open([1; 32], store()).unwrap();
        let sealed = ring.seal(of_payer(1), 0, NOW, b"Maria").unwrap();
        let others = [of_payer(2), SealedFor::customer(ObjectId(1)), SealedFor::account(ObjectId(1))];
        assert!(others.into_iter().all(|other| ring.open_sealed(other, &sealed).is_none()));
        assert_eq!(ring.inspect(None, &sealed).unwrap(), SealedState::Damaged);
        assert_eq!(ring.inspect(Some(of_payer(2)), &sealed).unwrap(), SealedState::Damaged);
        assert_eq!(ring.inspect(Some(of_payer(1)), &sealed).unwrap(), SealedState::Opens);
        let (first, second) = (SealedFor::webhook_secret(ObjectId(1)), SealedFor::webhook_secret(ObjectId(2)));
        let secret = ring.seal_secret(first, b"whsec").unwrap();
        assert_eq!(ring.open_secret(first, &secret).as_deref(), Some(&b"whsec"[..]));
        assert_eq!(ring.open_secret(second, &secret), None);
    }

    #[test]
    fn a_former_profile_does_not_open_in_place_of_a_newer_one() {
        let ring = Keyring::open([1; 32], store()).unwrap();
        let of_recipient = SealedFor::recipient(Fingerprint([3; 16]));
        let first = ring.seal_profile(of_recipient, None, NOW, &"account 1").unwrap();
        let second = ring.seal_profile(of_recipient, Some(&first), NOW, &"account 2").unwrap();
        assert_eq!((first.version, second.version), (1, 2));
        assert!(second.follows(&first) && !first.follows(&second) && !first.follows(&first));
        let opened = |sealed: &Sealed| ring.open_value::<String>(of_recipient, sealed);
        assert_eq!((opened(&first), opened(&second)), (Some("account 1".to_owned()), Some("account 2".to_owned())));
        let former = Sealed { version: second.version, ..first };
        assert_eq!(opened(&former), None);
        assert_eq!(ring.inspect(Some(of_recipient), &former).unwrap(), SealedState::Damaged);
    }

    /// Before profiles had versions they were sealed like all other data.
    #[test]
    fn a_profile_without_a_version_opens_and_a_version_follows_it() {
        let ring = Keyring::open([1; 32], store()).unwrap();
        let of_recipient = SealedFor::recipient(Fingerprint([3; 16]));
        let before = ring.seal_value(of_recipient, NOW, &"account 1").unwrap();
        let encoded = minicbor::to_vec(&before).unwrap();
        assert_eq!(encoded[0], 0x82, "a month and bytes, as they were written then");
        assert_eq!(minicbor::decode::<Sealed>(&encoded).unwrap(), before);
        assert_eq!(ring.open_value::<String>(of_recipient, &before).as_deref(), Some("account 1"));
        let next = ring.seal_profile(of_recipient, Some(&before), NOW, &"account 2").unwrap();
        assert!(next.follows(&before) && !before.follows(&next));
    }

    /// Written down so that a change of the format does not pass unnoticed.
    #[test]
    fn sealed_bytes_of_format_1_open() {
        let ring = Keyring::open([1; 32], store()).unwrap();
        let nonce = Nonce::from([7; NONCE_BYTES]);
        let key = cipher(&hkdf(b"centavo", &[1; 32], b"secrets"));
        let sealed_for = SealedFor::card_token(ObjectId(1));
        let payload = Payload { msg: b"token", aad: &sealed_for.associated_data(0) };
        let sealed = [&[1][..], &nonce, &key.encrypt(&nonce, payload).unwrap()].concat();
        assert_eq!(ring.open_secret(sealed_for, &sealed).as_deref(), Some(&b"token"[..]));
        assert_eq!(crc32c::crc32c(&sealed), 2_192_820_185);
        let newer = [&[2][..], &sealed[1..]].concat();
        assert_eq!(ring.open_secret(sealed_for, &newer), None);
    }

    #[test]
    fn keys_are_derived_as_the_standard_says() {
        // RFC 5869, test case 1, first block.
        let (salt, info): (Vec<u8>, Vec<u8>) = ((0..=0x0c).collect(), (0xf0..=0xf9).collect());
        let found: String = hkdf(&salt, &[0x0b; 22], &info).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
    }

    #[test]
    fn sealing_writes_nothing_once_the_keys_are_prepared() {
        let store = MemoryStore::default();
        let ring = Keyring::open([1; 32], Arc::new(store.clone())).unwrap();
        let last_day = Timestamp(1_796_083_199_999);
        assert!(!ring.is_prepared(last_day));
        ring.prepare(last_day).unwrap();
        assert!(ring.is_prepared(last_day));
        store.fail_next_write();
        for now in [last_day, last_day.plus_ms(1)] {
            ring.seal(of_payer(1), 0, now, b"Maria").unwrap();
        }
        assert!(
            ring.seal(of_payer(1), 0, last_day.plus_ms(40 * 86_400_000), b"Maria").is_err(),
            "it would have failed"
        );
    }

    #[test]
    fn no_random_bytes_are_given_twice() {
        let given: HashSet<[u8; 12]> = (0..1_000).map(|_| stocked_random_bytes().unwrap()).collect();
        assert_eq!(given.len(), 1_000);
    }

    #[test]
    fn months_are_counted_from_1970() {
        for (at, expected) in [
            (0, 0),
            (2_678_399_999, 0),
            (2_678_400_000, 1),
            (951_782_400_000, 30 * 12 + 1),    // 29 February 2000
            (951_868_800_000, 30 * 12 + 2),    // 1 March 2000
            (1_796_083_199_999, 56 * 12 + 10), // the last moment of November 2026
            (1_796_083_200_000, 56 * 12 + 11),
        ] {
            assert_eq!(month_of(Timestamp(at)), expected, "{at}");
        }
    }
}
