//! Ids: account groups, ledgers, and the ids that the outside sees.
//!
//! An id is a UUID of version 8. It carries its birth time, its account group and, for a recipient,
//! the recipient's number, so that any id finds its actor without a global index. Group and number
//! pass through a keyed permutation, which hides how many merchants there are. An id is no secret
//! and proves nothing: the caller's key decides which objects a caller may reach.

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use minicbor::{Decode, Encode};
use uuid::Uuid;

use crate::time::Timestamp;

/// One merchant and its sub-recipients: the unit of consistency. A charge never leaves its group.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct GroupNumber(#[n(0)] pub u32);

/// A sub-recipient within its group, counted from 1.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct RecipientNumber(#[n(0)] pub u32);

/// The owner of one set of books, and of the Records that it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum LedgerId {
    /// The merchant's own books.
    #[n(0)]
    Merchant(#[n(0)] GroupNumber),
    /// A sub-recipient's own books.
    #[n(1)]
    Recipient(#[n(0)] GroupNumber, #[n(1)] RecipientNumber),
    /// The platform's shard in this group. It has no actor: the group's Records write it.
    #[n(2)]
    Platform(#[n(0)] GroupNumber),
    /// The house: the platform's own books beside the shards of its merchants. It has no actor. Its
    /// Records are those of the installation itself, such as a move of the sandbox clock.
    #[n(3)]
    System,
}

impl LedgerId {
    /// The group whose books these are; none for the house.
    pub fn group(self) -> Option<GroupNumber> {
        match self {
            Self::Merchant(group) | Self::Recipient(group, _) | Self::Platform(group) => Some(group),
            Self::System => None,
        }
    }
}

/// The short name of a ledger, by numbers: `M-1`, `R-1-2` (recipient 2 of group 1), `P-1`,
/// `P-house`. The outside never sees it: there, names have the owner's id.
impl fmt::Display for LedgerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Merchant(group) => write!(f, "M-{}", group.0),
            Self::Recipient(group, number) => write!(f, "R-{}-{}", group.0, number.0),
            Self::Platform(group) => write!(f, "P-{}", group.0),
            Self::System => f.write_str("P-house"),
        }
    }
}

/// An id that the outside sees: txid, recipient, merchant, API key.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u128);

/// Characters of [`ObjectId::short_text`].
pub const SHORT_ID_LEN: usize = 20;

const SHORT_DIGITS: [char; 32] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J', 'K', 'M', 'N', 'P',
    'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Y', 'Z',
];

impl ObjectId {
    /// An id under which Records with a text are found. It is no object's: its birth time is 0.
    pub fn of_text(text: &str) -> Self {
        // FNV-1a.
        let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        Self(u128::from(text.bytes().fold(0xCBF2_9CE4_8422_2325, add)))
    }

    /// The id as a UUID (`8-4-4-4-12`), the shape of every id but the txid.
    pub fn uuid(self) -> Uuid {
        Uuid::from_u128(self.0)
    }

    /// The id as 32 lower-case hexadecimal digits, the shape of a txid (PIX allows 26 to 35
    /// alphanumerics).
    pub fn txid(self) -> String {
        self.uuid().simple().to_string()
    }

    /// The id in 20 capital letters and digits (base 32 without I, L, O and U), for institutions
    /// that keep no longer one: the milliseconds, all random bits and 17 bits of the group. Two ids
    /// of one process always differ in it; those of different processes are the same only where
    /// they agree in the millisecond and in 59 bits more.
    pub fn short_text(self) -> String {
        let random = (((self.0 >> 64) & 0x0FFF) << NUMBER_BITS) | ((self.0 >> 32) & u128::from(NUMBER_MASK));
        let bits = (((self.0 >> 80) & 0x01FF_FFFF_FFFF) << 59) | (random << 17) | (self.0 & 0x0001_FFFF);
        (1..=SHORT_ID_LEN).map(|place| SHORT_DIGITS[(bits >> (100 - 5 * place)) as usize & 31]).collect()
    }

    /// Reads either shape, in letters of either case (RFC 9562, 4); `None` if `text` is no version
    /// 8 UUID.
    pub fn parse(text: &str) -> Option<Self> {
        let uuid = Uuid::try_parse(text).ok()?;
        (matches!(text.len(), 32 | 36) && uuid.get_version_num() == 8).then(|| Self(uuid.as_u128()))
    }

    /// When the id was made, to the millisecond.
    pub fn created_at(self) -> Timestamp {
        Timestamp((self.0 >> 80) as i64)
    }
}

/// A map by ids, ledgers, groups and what is made of them.
#[expect(clippy::disallowed_types, reason = "its hasher has no seed, so its order is the same in every run")]
pub type IdMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// A set of ids, ledgers, groups and what is made of them.
#[expect(clippy::disallowed_types, reason = "its hasher has no seed, so its order is the same in every run")]
pub type IdSet<K> = std::collections::HashSet<K, BuildHasherDefault<IdHasher>>;

/// Scatters ids. They are short, and nobody outside chooses them: what is unlike in them is
/// counted, keyed or scattered already.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u8(*byte));
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_u128(&mut self, word: u128) {
        self.write_u64((word >> 64) as u64);
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.uuid())
    }
}

impl<C> Encode<C> for ObjectId {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.bytes(&self.0.to_be_bytes())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for ObjectId {
    fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        let bytes = d.bytes()?.try_into().map_err(|_| minicbor::decode::Error::message("an id has 16 bytes"))?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }
}

/// Makes and reads ids under the installation's key.
///
/// ```
/// use ledger::id::{GroupNumber, IdKey, ObjectId, RecipientNumber};
/// use ledger::time::Timestamp;
///
/// let (ids, now) = (IdKey::new([7; 16]), Timestamp(1_795_000_000_000));
/// let id = ids.recipient(GroupNumber(3), RecipientNumber(5), now, 99);
/// assert_eq!(ids.group(id), GroupNumber(3), "the id alone leads to its group");
/// assert_eq!((ids.recipient_number(id), id.created_at()), (RecipientNumber(5), now));
/// assert_eq!(ObjectId::parse(&id.uuid().to_string()), Some(id));
/// ```
#[derive(Clone)]
pub struct IdKey([u32; 4]);

const NUMBER_BITS: u32 = 30;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

impl IdKey {
    /// The key of an installation; it must stay the same for the life of its data.
    pub fn new(key: [u8; 16]) -> Self {
        let word = |i: usize| u32::from_le_bytes([key[i], key[i + 1], key[i + 2], key[i + 3]]);
        Self([word(0), word(4), word(8), word(12)])
    }

    /// An id of `group` born at `now`. `random` (42 bits are used) keeps ids of the same
    /// millisecond apart.
    pub fn object(&self, group: GroupNumber, now: Timestamp, random: u64) -> ObjectId {
        self.assemble(group, now, (random >> NUMBER_BITS) as u16, random as u32 & NUMBER_MASK)
    }

    /// The id of a recipient, from which [`IdKey::recipient_number`] reads `number` again.
    pub fn recipient(&self, group: GroupNumber, number: RecipientNumber, now: Timestamp, random: u16) -> ObjectId {
        self.assemble(group, now, random, (number.0 ^ self.mask(group, now)) & NUMBER_MASK)
    }

    /// The bits that [`IdKey::object`] was given as `random`: an id can carry a number of 42 bits.
    pub fn object_number(&self, id: ObjectId) -> u64 {
        (((id.0 >> 64) as u64 & 0x0FFF) << NUMBER_BITS) | ((id.0 >> 32) as u64 & u64::from(NUMBER_MASK))
    }

    /// The group that an id names. A made-up id names some group too: what it reaches is checked
    /// there.
    pub fn group(&self, id: ObjectId) -> GroupNumber {
        GroupNumber(self.unpermute(id.0 as u32))
    }

    /// The number that a recipient's id names.
    pub fn recipient_number(&self, id: ObjectId) -> RecipientNumber {
        RecipientNumber(((id.0 >> 32) as u32 ^ self.mask(self.group(id), id.created_at())) & NUMBER_MASK)
    }

    /// Layout, from the top: 48 bits of milliseconds, version 8, 12 random bits, variant 2, 30 bits
    /// of number, 32 bits of group.
    fn assemble(&self, group: GroupNumber, now: Timestamp, random: u16, number: u32) -> ObjectId {
        let time = (now.0 as u128 & 0xFFFF_FFFF_FFFF) << 80;
        let head = (8_u128 << 76) | (u128::from(random & 0x0FFF) << 64);
        let tail = (2_u128 << 62) | (u128::from(number & NUMBER_MASK) << 32) | u128::from(self.permute(group.0));
        ObjectId(time | head | tail)
    }

    fn mask(&self, group: GroupNumber, time: Timestamp) -> u32 {
        mix(self.0[0] ^ group.0, self.0[1] ^ (time.0 as u32))
    }

    /// A Feistel network over two halves of 16 bits.
    fn permute(&self, value: u32) -> u32 {
        let (mut left, mut right) = (value >> 16, value & 0xFFFF);
        for key in self.0 {
            (left, right) = (right, left ^ (mix(key, right) & 0xFFFF));
        }
        (left << 16) | right
    }

    fn unpermute(&self, value: u32) -> u32 {
        let (mut left, mut right) = (value >> 16, value & 0xFFFF);
        for key in self.0.iter().rev() {
            (left, right) = (right ^ (mix(*key, left) & 0xFFFF), left);
        }
        (left << 16) | right
    }
}

/// Scatters two words into one (the finalizer of SplitMix64).
fn mix(a: u32, b: u32) -> u32 {
    let mut z = ((u64::from(a) << 32) | u64::from(b)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as u32
}

/// Keyed digest of a value that is compared but not stored: a document, an idempotency key, a
/// request body.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Fingerprint(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_gives_back_what_it_carries(key: [u8; 16], group: u32, number in 0..=NUMBER_MASK, at in 0_i64..1 << 47, random: u64) {
            let ids = IdKey::new(key);
            let now = Timestamp(at);
            let charge = ids.object(GroupNumber(group), now, random);
            prop_assert_eq!(ids.group(charge), GroupNumber(group));
            prop_assert_eq!(ids.object_number(charge), random & ((1 << 42) - 1));
            prop_assert_eq!(charge.created_at(), now);
            prop_assert_eq!(ObjectId::parse(&charge.txid()), Some(charge));
            prop_assert_eq!(ObjectId::parse(&charge.uuid().to_string()), Some(charge));
            let recipient = ids.recipient(GroupNumber(group), RecipientNumber(number), now, random as u16);
            prop_assert_eq!(ids.group(recipient), GroupNumber(group));
            prop_assert_eq!(ids.recipient_number(recipient), RecipientNumber(number));
        }
    }

    #[test]
    fn short_ids_differ_where_ids_of_one_process_do() {
        let (ids, at) = (IdKey::new([7; 16]), 1_800_000_000_000);
        let of = |at, random| ids.object(GroupNumber(1), Timestamp(at), random).short_text();
        let bits = (0..42).map(|bit| of(at, 1 << bit));
        let mut texts: Vec<_> = bits.chain([of(at, 0), of(at + 1, 0), of(at + 86_400_000, 0)]).collect();
        assert_eq!(texts[0], of(at, 1), "it follows from the id");
        let is_digit = |letter: char| letter.is_ascii_digit() || letter.is_ascii_uppercase();
        assert!(texts.iter().all(|text| text.len() == SHORT_ID_LEN && text.chars().all(is_digit)), "{texts:?}");
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 45);
    }

    #[test]
    fn only_version_8_in_its_two_shapes_is_an_id() {
        let id = IdKey::new([7; 16]).object(GroupNumber(1), Timestamp(1_800_000_000_000), 42);
        for (text, expected) in [
            (id.txid(), true),
            (id.uuid().to_string(), true),
            (id.txid().to_uppercase(), true),
            (id.uuid().to_string().to_uppercase(), true),
            (format!("{{{}}}", id.uuid()), false),
            ("00000000-0000-4000-8000-000000000000".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(ObjectId::parse(&text).is_some(), expected, "{text}");
        }
    }
}
