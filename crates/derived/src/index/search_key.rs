//! Keys of values that people search by: amounts, ends of card numbers, references of
//! institutions, beginnings of txids, and personal data.
//!
//! So that a value costs some six bytes however rare it is, values share lists: 12 bits of a
//! value's hash choose its list, 25 more stand beside each occurrence as its tag, and three bits
//! say what the Record makes. Another value has the same 37 bits very rarely.
//!
//! A word of a name is found by its beginning, three letters or more: its first three letters
//! choose the list and some bits of the tag, and each of the next ones decides some more bits.
//!
//! Personal data come as keyed hashes under the key of the month in which they were sealed, and in
//! lists of that month (see [`crate::personal_index`]). Without that key nobody knows what to look
//! for.

use std::ops::Range;

use ledger::{CardFace, Centavos, Event, ObjectId, Record, Timestamp};

use super::key::{IndexKey, SEALED, TXIDS, VALUES, mix};

const LIST_BITS: u32 = 12;
const TAG_BITS: u32 = 25;
const KIND_BITS: u32 = 3;
/// Hexadecimal digits of a txid that choose its list: 32 bits, 65 seconds of births.
pub const TXID_PREFIX_MIN: usize = 8;
/// Hexadecimal digits of a txid beyond those that stand in its tag.
const TXID_TAG_DIGITS: usize = 6;

/// Letters of a word that choose its list: the shortest beginning by which it is found.
pub(crate) const WORD_BEGIN: usize = 3;
/// Bits of the tag of a word that its first letters decide.
const WORD_BEGIN_BITS: u32 = 3;
/// Bits of the tag of a word that its first so many letters decide further.
const WORD_LEVELS: [(usize, u32); 4] = [(4, 5), (5, 5), (6, 5), (8, 7)];

/// What a Record makes that is found by a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoundKind {
    /// A charge.
    Charge,
    /// A subscription or a stored card.
    Customer,
    /// The registration of a recipient, or a change of it.
    Recipient,
    /// A cashout.
    Cashout,
    /// A merchant, or a change of it.
    Merchant,
    /// An act of an institution: a capture, a payment, a payout or a return.
    Act,
}

impl FoundKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::Charge, Self::Customer, Self::Recipient, Self::Cashout, Self::Merchant, Self::Act];
}

/// A value that is not sealed.
#[derive(Clone, Copy, Debug)]
pub enum PlainValue<'a> {
    /// Amount of a charge.
    Amount(Centavos),
    /// Last four digits of the card of a charge or subscription, or of a stored card.
    LastFour(u16),
    /// An institution's id of an act: an end-to-end id, an acquirer's NSU. Letters of either case
    /// are the same.
    Reference(&'a str),
}

/// One value of the index: its list, and the tag that it has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SearchKey {
    pub(super) list: IndexKey,
    tag: u64,
    /// Bits of the tag that count.
    mask: u64,
}

impl SearchKey {
    /// A value that is not sealed.
    pub fn plain(value: PlainValue<'_>) -> Self {
        let hash = match value {
            PlainValue::Amount(amount) => mix(mix(1) ^ amount.0 as u64),
            PlainValue::LastFour(digits) => mix(mix(2) ^ u64::from(digits)),
            PlainValue::Reference(text) => {
                text.bytes().fold(mix(3), |hash, byte| mix(hash ^ u64::from(byte.to_ascii_lowercase())))
            }
        };
        Self::of_hash(VALUES, 0, hash)
    }

    /// The last four digits of a card.
    pub fn last_four(card: &CardFace) -> Self {
        Self::plain(PlainValue::LastFour(card.last4))
    }

    /// A value that was sealed in a month, by its keyed hash.
    pub fn sealed(month: u16, hash: u64) -> Self {
        Self::of_hash(SEALED, month, hash)
    }

    /// A word that was sealed in a month: the keyed hash of its first three letters, or of all of a
    /// shorter one, and its other letters.
    pub fn name_word(month: u16, begin: u64, others: &str) -> Self {
        Self::of_word(month, begin, others, usize::MAX)
    }

    /// Words that were sealed in a month and begin so. Letters after the eighth do not count.
    pub fn name_beginning(month: u16, begin: u64, others: &str) -> Self {
        Self::of_word(month, begin, others, WORD_BEGIN + others.chars().count())
    }

    fn of_word(month: u16, begin: u64, others: &str, letters: usize) -> Self {
        let key = Self::of_hash(SEALED, month, begin);
        let first = (1 << WORD_BEGIN_BITS) - 1;
        let (mut tag, mut mask, mut shift) = (begin & first, first, WORD_BEGIN_BITS);
        let (mut hash, mut others, mut hashed) = (begin, others.chars(), WORD_BEGIN);
        for (length, bits) in WORD_LEVELS.into_iter().take_while(|(length, _)| *length <= letters) {
            // An absent letter is a zero, so that the end of a word counts.
            (hashed..length).for_each(|_| hash = mix(hash ^ others.next().map_or(0, u64::from)));
            hashed = length;
            let of_level = (1 << bits) - 1;
            tag |= (hash & of_level) << shift;
            mask |= of_level << shift;
            shift += bits;
        }
        Self { tag, mask, ..key }
    }

    /// Charges whose txid begins with these hexadecimal digits, 14 of which count; `None` for fewer
    /// than 8, and for other characters.
    pub fn txid_prefix(digits: &str) -> Option<Self> {
        let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (list, rest) = digits.split_at_checked(TXID_PREFIX_MIN).filter(|_| is_hexadecimal)?;
        let rest = rest.get(..rest.len().min(TXID_TAG_DIGITS))?;
        let whose = u64::from_str_radix(list, 16).ok()?;
        let missing = 4 * (TXID_TAG_DIGITS - rest.len()) as u32;
        let tag = u64::from_str_radix(&format!("0{rest}"), 16).ok()? << missing;
        let mask = (1 << (4 * TXID_TAG_DIGITS as u32)) - (1 << missing);
        Some(Self { list: IndexKey { kind: TXIDS, whose }, tag, mask })
    }

    /// The lists with the txids of charges that were created in a span.
    pub(super) fn txids_of(span: &Range<Timestamp>) -> impl Iterator<Item = IndexKey> + use<> {
        let list = |at: i64| u64::try_from(at >> 16).unwrap_or_default();
        (list(span.start.0)..=list(span.end.0 - 1)).map(|whose| IndexKey { kind: TXIDS, whose })
    }

    /// When the charge of an occurrence in a list of txids was created.
    pub(super) fn created_at(list: IndexKey, word: u64) -> Timestamp {
        let tag = word >> KIND_BITS;
        Timestamp(((list.whose << 16) | (tag >> (4 * TXID_TAG_DIGITS - 16))).cast_signed())
    }

    /// Whether a Record has the value, where it is not sealed.
    pub fn is_of(self, record: &Record) -> bool {
        let mut is_of = false;
        plain_values(record, |own, found| is_of |= own.list == self.list && self.matches(own.word(found)).is_some());
        is_of
    }

    fn of_txid(charge: ObjectId) -> Self {
        let bits = 4 * TXID_TAG_DIGITS as u32;
        let tag = (charge.0 >> (96 - bits)) as u64 & ((1 << bits) - 1);
        Self { list: IndexKey { kind: TXIDS, whose: (charge.0 >> 96) as u64 }, tag, mask: (1 << bits) - 1 }
    }

    fn of_hash(kind: u8, month: u16, hash: u64) -> Self {
        let list = hash >> (64 - LIST_BITS);
        let mask = (1 << TAG_BITS) - 1;
        let whose = (u64::from(month) << LIST_BITS) | list;
        Self { list: IndexKey { kind, whose }, tag: hash & mask, mask }
    }

    /// The word that stands beside a Record's number in the list.
    pub(super) fn word(self, found: FoundKind) -> u64 {
        (self.tag << KIND_BITS) | found as u64
    }

    /// What the Record of an occurrence makes; `None` if the occurrence is another value's.
    pub(super) fn matches(self, word: u64) -> Option<FoundKind> {
        let found = FoundKind::ALL.get((word & ((1 << KIND_BITS) - 1)) as usize).copied();
        found.filter(|_| (word >> KIND_BITS) & self.mask == self.tag)
    }
}

/// Calls `post` for every value of a Record that is not sealed.
pub(super) fn plain_values(record: &Record, mut post: impl FnMut(SearchKey, FoundKind)) {
    if let Some(rail) = &record.rail {
        post(SearchKey::plain(PlainValue::Reference(&rail.id)), FoundKind::Act);
    }
    for event in &record.events {
        match event {
            Event::ChargeOpened { charge, terms, card, .. } => {
                post(SearchKey::of_txid(*charge), FoundKind::Charge);
                post(SearchKey::plain(PlainValue::Amount(terms.amount)), FoundKind::Charge);
                card.iter().for_each(|card| post(SearchKey::last_four(card), FoundKind::Charge));
            }
            Event::PixPaid { end_to_end_id, .. }
            | Event::LatePixReceived { end_to_end_id, .. }
            | Event::CashoutProcessed { end_to_end_id, .. }
                if record.rail.as_ref().is_none_or(|rail| rail.id != *end_to_end_id) =>
            {
                post(SearchKey::plain(PlainValue::Reference(end_to_end_id)), FoundKind::Act);
            }
            Event::CardStored { face, .. } => post(SearchKey::last_four(face), FoundKind::Customer),
            Event::SubscriptionCreated { terms, .. } => {
                terms.card.iter().for_each(|card| post(SearchKey::last_four(&card.face), FoundKind::Customer));
            }
            Event::SubscriptionCardChanged { standing, .. } => {
                standing.card.iter().for_each(|card| post(SearchKey::last_four(&card.face), FoundKind::Customer));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_txid_is_found_by_each_of_its_beginnings_and_by_no_other() {
        let charge = ObjectId(0x019b_8c4e_5f5d_8a3e_9c1d_2f3a_4b5c_6d7e);
        let key = SearchKey::of_txid(charge);
        let word = key.word(FoundKind::Charge);
        for digits in 8..=32 {
            let begin = &charge.txid()[..digits];
            for begin in [begin.to_owned(), begin.to_uppercase()] {
                let prefix = SearchKey::txid_prefix(&begin).unwrap();
                assert_eq!((prefix.list, prefix.matches(word)), (key.list, Some(FoundKind::Charge)), "{begin}");
            }
        }
        let found = |text: &str| {
            SearchKey::txid_prefix(text).is_some_and(|it| it.list == key.list && it.matches(word).is_some())
        };
        for other in ["019b8c4", "019b8c4f", "019b8c4e6", "019b8c4e5f5d8b", "019b8c4e5f5d8a3x", "019b8c4ç", ""] {
            assert!(!found(other), "{other}");
        }
    }

    /// Letters that differ nearly always have different bits of the tag; with these hashes they do.
    #[test]
    fn a_word_is_found_by_its_beginnings() {
        let split = |word: &str| {
            let end = word.char_indices().nth(WORD_BEGIN).map_or(word.len(), |(end, _)| end);
            let begin = word[..end].bytes().fold(mix(7), |hash, byte| mix(hash ^ u64::from(byte)));
            (begin, word[end..].to_owned())
        };
        for (word, sought, is_found) in [
            ("araujo", "ara", true),
            ("araujo", "arau", true),
            ("araujo", "arauj", true),
            ("araujo", "araujo", true),
            // Seven letters are known by six: what is found is opened before it is shown.
            ("araujo", "araujos", true),
            ("araujo", "araujosa", false),
            ("araujo", "ari", false),
            ("araujo", "arac", false),
            ("araujo", "arauna", false),
            ("araujo", "raujo", false),
            ("ana", "ana", true),
            ("ana", "anab", false),
            ("anabela", "ana", true),
            ("maximiliano", "maximilian", true),
            ("maximiliano", "maximus", false),
            ("íris", "íri", true),
        ] {
            let ((own_begin, own), (begin, others)) = (split(word), split(sought));
            let (own, key) = (SearchKey::name_word(3, own_begin, &own), SearchKey::name_beginning(3, begin, &others));
            let is_it = own.list == key.list && key.matches(own.word(FoundKind::Charge)).is_some();
            assert_eq!(is_it, is_found, "{sought} in {word}");
        }
    }

    #[test]
    fn values_of_several_sorts_are_apart() {
        let keys = [
            PlainValue::Amount(Centavos(1111)),
            PlainValue::LastFour(1111),
            PlainValue::Reference("1111"),
            PlainValue::Amount(Centavos(1112)),
        ]
        .map(SearchKey::plain);
        for (place, key) in keys.iter().enumerate() {
            let same = keys.iter().filter(|other| *other == key).count();
            assert_eq!(same, 1, "{place}");
        }
        let upper = SearchKey::plain(PlainValue::Reference("E00ABC"));
        assert_eq!(upper, SearchKey::plain(PlainValue::Reference("e00abc")));
    }
}
