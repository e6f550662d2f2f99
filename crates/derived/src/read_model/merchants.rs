//! Table of all merchants, in little memory: most of a million are rarely asked for. A merchant at
//! rest is packed into a string of bytes. It is unpacked when it is asked for, and packed again
//! after a while without a request. The bytes never leave the process.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ledger::id::GroupNumber;

use super::rows::MerchantRow;
use crate::extents::Places;

/// A merchant with more recipients stays unpacked: to unpack it would take too long.
const RECIPIENTS_PACKED_MAX: usize = 32;
/// After this many calls of [`Merchants::rest`], all merchants were looked at.
const PARTS: usize = 64;

/// The merchants of one partition.
#[derive(Default)]
pub(super) struct Merchants {
    places: Places,
    slots: Vec<Slot>,
    /// How many there are.
    count: usize,
    /// Next merchant for [`Merchants::rest`].
    next: usize,
}

/// Both are empty where there is no merchant.
#[derive(Default)]
struct Slot {
    /// The merchant; empty when it changed since it was packed.
    packed: Box<[u8]>,
    unpacked: OnceLock<Box<UnpackedMerchant>>,
}

struct UnpackedMerchant {
    row: MerchantRow,
    /// Whether it was asked for since the last look.
    is_wanted: AtomicBool,
}

impl Merchants {
    /// No merchants yet.
    pub(super) fn new(places: Places) -> Self {
        Self { places, ..Self::default() }
    }

    /// A merchant, which stays unpacked for a while.
    pub(super) fn get(&self, group: GroupNumber) -> Option<&MerchantRow> {
        let slot = self.slots.get(self.places.of(group))?;
        let unpacked = match slot.unpacked.get() {
            Some(unpacked) => unpacked,
            None => {
                let row = slot.unpack()?;
                slot.unpacked.get_or_init(|| unpacked(row))
            }
        };
        unpacked.is_wanted.store(true, Ordering::Relaxed);
        Some(&unpacked.row)
    }

    /// A merchant, unpacked for this once: for a caller that goes through many, or asks for a group
    /// that may not exist.
    pub(super) fn glance(&self, group: GroupNumber) -> Option<Cow<'_, MerchantRow>> {
        let slot = self.slots.get(self.places.of(group))?;
        match slot.unpacked.get() {
            Some(unpacked) => Some(Cow::Borrowed(&unpacked.row)),
            None => slot.unpack().map(Cow::Owned),
        }
    }

    /// A merchant that is about to change.
    pub(super) fn get_mut(&mut self, group: GroupNumber) -> Option<&mut MerchantRow> {
        self.get(group)?;
        let slot = self.slots.get_mut(self.places.of(group))?;
        slot.packed = Box::default();
        slot.unpacked.get_mut().map(|unpacked| &mut unpacked.row)
    }

    /// Puts a merchant in its place.
    pub(super) fn insert(&mut self, group: GroupNumber, row: MerchantRow) {
        let place = self.places.of(group);
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, Slot::default);
        }
        self.count += usize::from(self.slots[place].is_empty());
        self.slots[place] = Slot { packed: Box::default(), unpacked: unpacked(row).into() };
    }

    /// The groups in order.
    pub(super) fn groups(&self) -> impl DoubleEndedIterator<Item = GroupNumber> {
        let slots = self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_empty());
        slots.filter_map(|(place, _)| self.places.group(place))
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Packs a merchant, if it is not.
    pub(super) fn pack(&mut self, group: GroupNumber) {
        if let Some(slot) = self.slots.get_mut(self.places.of(group)) {
            slot.pack();
        }
    }

    /// How many are looked at in one go.
    pub(super) fn part(&self) -> usize {
        self.slots.len().div_ceil(PARTS)
    }

    /// Looks at the next `most` merchants and packs up to `packed_max` of those that were not asked
    /// for since the last look. Gives how many were looked at.
    pub(super) fn rest(&mut self, most: usize, packed_max: usize) -> usize {
        let (begin, end) = (self.next.min(self.slots.len()), self.slots.len().min(self.next + most));
        let (mut seen, mut packed) = (0, 0);
        for slot in &mut self.slots[begin..end] {
            if packed == packed_max {
                break;
            }
            seen += 1;
            if slot.unpacked.get_mut().is_some_and(|unpacked| !std::mem::take(unpacked.is_wanted.get_mut())) {
                slot.pack();
                packed += 1;
            }
        }
        self.next = if begin + seen == self.slots.len() { 0 } else { begin + seen };
        seen
    }
}

impl Slot {
    fn is_empty(&self) -> bool {
        self.packed.is_empty() && self.unpacked.get().is_none()
    }

    fn unpack(&self) -> Option<MerchantRow> {
        let is_packed = !self.packed.is_empty();
        is_packed.then(|| minicbor::decode(&self.packed).expect("what this process packed can be unpacked"))
    }

    fn pack(&mut self) {
        let Some(unpacked) = self.unpacked.get() else { return };
        if unpacked.row.recipients.len() > RECIPIENTS_PACKED_MAX {
            return;
        }
        if self.packed.is_empty() {
            self.packed = minicbor::to_vec(&unpacked.row).expect("writing into memory cannot fail").into();
        }
        self.unpacked = OnceLock::new();
    }
}

fn unpacked(row: MerchantRow) -> Box<UnpackedMerchant> {
    Box::new(UnpackedMerchant { row, is_wanted: AtomicBool::new(true) })
}

#[cfg(test)]
mod tests {
    use ledger::event_choice::EventChoice;
    use ledger::fees::Settings;
    use ledger::id::{ObjectId, RecipientNumber};
    use ledger::merchant::{PreviousSecret, RecipientStatus};
    use ledger::scope::Scopes;
    use ledger::time::Timestamp;

    use super::*;
    use crate::read_model::{ApiKeyRow, KeyCreator, PastChoices, RecipientRow, Versions, WebhookRow};

    #[test]
    fn who_rests_is_packed_and_comes_back_as_it_was() {
        let mut merchants = Merchants::default();
        [2, 3, 5].into_iter().for_each(|group| merchants.insert(GroupNumber(group), merchant(group, 2)));
        let in_order = |merchants: &Merchants| -> Vec<String> {
            merchants.groups().map(|group| format!("{group:?} {:?}", merchants.glance(group))).collect()
        };
        let before = in_order(&merchants);
        assert_eq!(before.len(), 3);
        for (step, packed) in [(0, [false; 3]), (1, [false; 3]), (2, [true; 3])] {
            if step > 0 {
                merchants.rest(usize::MAX >> 1, 9);
            }
            assert_eq!(are_packed(&merchants), packed, "{step}");
            assert_eq!(in_order(&merchants), before, "{step}");
        }
        for _ in 0..2 {
            merchants.get(GroupNumber(3)).unwrap();
            assert_eq!(are_packed(&merchants), [true, false, true]);
            merchants.rest(usize::MAX >> 1, 9);
            assert_eq!(are_packed(&merchants), [true, false, true], "somebody asked for it");
        }
        assert_eq!([merchants.rest(4, 9), merchants.rest(4, 9)], [4, 2]);
        assert_eq!(are_packed(&merchants), [true; 3]);
        merchants.get_mut(GroupNumber(5)).unwrap().keys[0].1.revoked = true;
        merchants.pack(GroupNumber(5));
        assert_eq!(are_packed(&merchants), [true; 3]);
        assert!(merchants.get(GroupNumber(5)).unwrap().keys[0].1.revoked);
    }

    #[test]
    fn few_are_packed_at_a_time_and_all_have_their_turn() {
        let mut merchants = Merchants::default();
        (0..100).for_each(|group| merchants.insert(GroupNumber(group), merchant(group, 1)));
        assert_eq!(merchants.rest(100, 8), 100, "all are wanted: none is packed");
        let mut before = 0;
        while before < 100 {
            merchants.rest(100, 8);
            let packed = are_packed(&merchants).into_iter().filter(|is_packed| *is_packed).count();
            assert!((before + 1..=before + 8).contains(&packed), "{packed} after {before}");
            before = packed;
        }
    }

    #[test]
    fn nobody_is_where_nobody_was_put_and_the_large_stay_unpacked() {
        let mut merchants = Merchants::default();
        merchants.insert(GroupNumber(2), merchant(2, RECIPIENTS_PACKED_MAX as u32 + 1));
        for group in [0, 1, 3, u32::MAX].map(GroupNumber) {
            merchants.pack(group);
            assert!(merchants.get(group).is_none() && merchants.glance(group).is_none(), "{group:?}");
            assert!(merchants.get_mut(group).is_none(), "{group:?}");
        }
        merchants.pack(GroupNumber(2));
        assert_eq!(are_packed(&merchants), [false]);
    }

    fn are_packed(merchants: &Merchants) -> Vec<bool> {
        merchants.groups().map(|group| merchants.slots[group.0 as usize].unpacked.get().is_none()).collect()
    }

    fn merchant(mark: u32, recipients: u32) -> MerchantRow {
        let id = ObjectId(u128::from(mark));
        let (at, previous) = (Timestamp(i64::from(mark)), vec![mark as u8; 3]);
        let previous = vec![PreviousSecret { sealed: previous, until: at }];
        let (url, events) = (Some("https://loja.example".into()), EventChoice::ALL);
        let past_choices = PastChoices::default();
        let webhook = WebhookRow { url, since: 7, secret: vec![1; 60], previous, events, past_choices };
        let (group, digest, scopes) = (GroupNumber(mark), [mark as u8; 32], Scopes::ALL);
        let key = ApiKeyRow { group, digest, revoked: false, webhook, scopes, creator: KeyCreator::default() };
        let mut row = MerchantRow {
            id,
            settings: Settings { split_enabled: true, ..Settings::default() },
            profiles: Versions::default(),
            recipients: Vec::new(),
            keys: vec![(id, key)],
            created_at: at,
        };
        for number in 1..=recipients {
            let draft = RecipientRow::new(RecipientNumber(number), id, Versions::default(), at);
            row.put_recipient(RecipientRow { status: RecipientStatus::Active, ..draft });
        }
        row
    }
}
