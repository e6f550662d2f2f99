//! Queries, answered from published Records: merchants and recipients, single objects, and lists,
//! newest first. A caller that got a reply finds its effect here (it reads its own writes).
//!
//! A list gives its Records one at a time, so that a page does not take the memory of all of them.

use std::collections::{BTreeMap, BinaryHeap};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::{iter, vec};

use ledger::audit::{self, AuditedFact};
use ledger::event::Batch;
use ledger::merchant::{ChargeFacts, EndedBatch};
use ledger::recipient::SplitHistory;
use ledger::refund::RefundMoney;
use ledger::statement::{StatementLine, statement_lines};
use ledger::webhook_events::{WebhookEvent, webhook_events};
use ledger::{
    Cashout, Centavos, Charge, Dispute, Event, Fingerprint, GroupNumber, LedgerId, Minute, Object, ObjectId,
    PaymentMethod, RecipientNumber, Record, Refund, Split, Terms, Timestamp, Withdrawal,
};

use super::search::RecordList;
use super::shard::Shard;
use super::{Engine, Unavailable};
use derived::index::{IndexKey, LedgerList, Slice};
use derived::merged::{BookedRecord, newest_first, read_back};
use derived::read_model::{
    ApiKeyRow, CardRow, ChargeFilter, ChargeStatus, KeyFound, ListedSplit, ListedStatementLine, ListedWebhookEvent,
    MerchantRow, RecipientRow, SubscriptionRow, WaitingItem, WaitingKind, WaitingPage,
};
use derived::records::{LoadError, Result, booked_records, may_wait};
use store::{Block, Cut, Position, Sequence};

/// Sequences looked up at a time in a list that is read as a whole.
pub(super) const LOOKED_UP_AT_ONCE: usize = 100;

/// How long after its creation a charge may be booked, milliseconds.
const BOOKED_LATER_MAX_MS: i64 = 60_000;

/// Records that one look for the newest charges reads at most.
const LOOKED_BACK_MAX: usize = 2_000;

/// Which charges of all merchants are looked for: those that meet all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChargeQuery {
    /// Their merchant's group.
    pub group: Option<GroupNumber>,
    /// A recipient of a split.
    pub recipient: Option<LedgerId>,
    /// Their status, as they stand.
    pub status: Option<ChargeStatus>,
    /// How they are paid.
    pub method: Option<PaymentMethod>,
    /// Created at this time or later; the time of creation is the one in the id.
    pub from: Option<Timestamp>,
    /// Created before this time.
    pub to: Option<Timestamp>,
    /// This amount or more, centavos.
    pub amount_from: Option<Centavos>,
    /// This amount or less, centavos.
    pub amount_to: Option<Centavos>,
}

impl ChargeQuery {
    /// The one merchant whose charges, or other things, can meet it.
    fn owner(&self) -> Option<GroupNumber> {
        self.group.or(self.recipient.and_then(LedgerId::group))
    }

    /// Whether a charge meets all but the status.
    pub fn meets(&self, owner: LedgerId, charge: ObjectId, terms: &Terms) -> bool {
        let at = charge.created_at();
        let has_split = |recipient: LedgerId| {
            let is_its = |split: &Split| {
                owner.group().map(|group| LedgerId::Recipient(group, split.recipient)) == Some(recipient)
            };
            terms.splits.iter().any(is_its)
        };
        self.group.is_none_or(|group| owner.group() == Some(group))
            && self.method.is_none_or(|method| terms.method == method)
            && self.from.is_none_or(|from| at >= from)
            && self.to.is_none_or(|to| at < to)
            && self.amount_from.is_none_or(|least| terms.amount >= least)
            && self.amount_to.is_none_or(|most| terms.amount <= most)
            && self.recipient.is_none_or(has_split)
    }
}

/// The newest charges of all merchants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestCharges {
    /// The Records that opened them, newest first, and their ids.
    pub found: Vec<(Position, ObjectId)>,
    /// The Records among which the look goes on; empty when the begin of the journal was reached.
    pub rest: Cut,
}

/// A page of a list, and how long the whole list is.
pub struct Listed<I> {
    /// Items of the whole list.
    pub total: u64,
    /// The items of the page, newest first, each read when it is asked for.
    pub items: I,
}

/// Records of one partition's journal, each read when it is asked for, with its place.
pub struct Records {
    shard: Arc<Shard>,
    sequences: vec::IntoIter<Sequence>,
}

impl Iterator for Records {
    type Item = Result<(Position, Record)>;

    fn next(&mut self) -> Option<Self::Item> {
        let sequence = self.sequences.next()?;
        Some(self.shard.record(sequence).map(|record| (self.shard.position(sequence), record)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.sequences.size_hint()
    }
}

impl ExactSizeIterator for Records {}

/// The objects that Records made, each as it stands when it is asked for.
pub struct Objects<T> {
    records: Records,
    made: PhantomData<fn() -> T>,
}

impl<T: Object> Objects<T> {
    /// The id of the last item; `None` of an empty page. It reads the Record of that item.
    pub fn last_id(&self) -> Result<Option<ObjectId>, Unavailable> {
        let Some(last) = self.records.sequences.as_slice().last() else { return Ok(None) };
        let record = self.records.shard.record(*last)?;
        let made = T::made_by(&record).ok_or_else(|| Unavailable::contradicting("an object of a list"))?;
        Ok(Some(made.id()))
    }
}

impl<T: Object> Iterator for Objects<T> {
    type Item = Result<T, Unavailable>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.records.next()?;
        Some(found.map_err(Unavailable::from).and_then(|(_, record)| self.records.shard.made_by(&record)))
    }
}

/// Records of a list, each with what it says that brought it there.
pub struct RecordsWith<T> {
    records: Records,
    of: Reading<T>,
}

impl<T> Iterator for RecordsWith<T> {
    type Item = Result<(Position, Record, T), Unavailable>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.records.next()?;
        Some(found.map_err(Unavailable::from).and_then(|(at, record)| listed_with(at, record, self.of)))
    }
}

/// A Record of the audit trail, and what it says there.
type AuditedRecord = Result<(Position, Record, AuditedFact), Unavailable>;

/// Records with their places, each read when it is asked for.
type BookedRecords<'a> = Box<dyn Iterator<Item = Result<BookedRecord>> + 'a>;

/// What a Record says that brought it into a list.
type Reading<T> = fn(&Record) -> Option<T>;

fn listed_with<T>(at: Position, record: Record, of: Reading<T>) -> Result<(Position, Record, T), Unavailable> {
    let item = of(&record).ok_or_else(|| Unavailable::contradicting("an item of a list"))?;
    Ok((at, record, item))
}

/// Merchants, recipients, API keys.
impl Engine {
    /// Looks at a merchant; `None` if the group has none.
    pub fn merchant<T>(&self, group: GroupNumber, look: impl FnOnce(&MerchantRow) -> T) -> Option<T> {
        self.shard(group).read_model().merchant(group, look)
    }

    /// Looks at the merchant of a group named in the books. Error: there is none, so that the
    /// books contradict themselves.
    pub fn known_merchant<T>(
        &self,
        group: GroupNumber,
        look: impl FnOnce(&MerchantRow) -> T,
    ) -> Result<T, Unavailable> {
        self.merchant(group, look).ok_or_else(|| Unavailable::contradicting("the opening of a group"))
    }

    /// Id of the merchant of a group named in the books.
    pub fn merchant_id(&self, group: GroupNumber) -> Result<ObjectId, Unavailable> {
        self.known_merchant(group, |row| row.id)
    }

    /// Recipient with a number from the books. Error: it does not exist, a contradiction in the
    /// books.
    pub fn recipient_row(&self, group: GroupNumber, number: RecipientNumber) -> Result<RecipientRow, Unavailable> {
        let find = |row: &MerchantRow| row.recipients.get((number.0 as usize).checked_sub(1)?).cloned();
        let row = self.merchant(group, find).flatten();
        row.ok_or_else(|| Unavailable::contradicting("the registration of a recipient"))
    }

    /// Looks at a merchant, which stays at rest if it is: for a caller that goes through many.
    pub fn glance<T>(&self, group: GroupNumber, look: impl FnOnce(&MerchantRow) -> T) -> Option<T> {
        self.shard(group).read_model().glance(group, look)
    }

    /// The groups, in order.
    pub fn groups(&self) -> Vec<GroupNumber> {
        let mut groups: Vec<_> = self.shards.all().iter().flat_map(|shard| shard.read_model().groups()).collect();
        groups.sort_unstable();
        groups
    }

    /// Groups from the newest one on, `most` after `skip`, and how many there are in all.
    pub fn newest_groups(&self, skip: usize, most: usize) -> (usize, Vec<GroupNumber>) {
        let (mut total, mut lists) = (0, Vec::new());
        for shard in self.shards.all() {
            // Those passed over may all be in one shard.
            let (count, groups) = shard.read_model().newest_groups(0, skip.saturating_add(most));
            total += count;
            lists.push(groups.into_iter());
        }
        // Groups are numbered in the order of their opening within a partition alone.
        let is_one = lists.len() == 1;
        let mut next = |place: usize| {
            let group = lists[place].next()?;
            let opened_at = if is_one { None } else { self.glance(group, |row| row.created_at) };
            Some((opened_at, group, place))
        };
        let mut heads: BinaryHeap<_> = (0..self.shards.all().len()).filter_map(&mut next).collect();
        let newest = std::iter::from_fn(|| {
            let (_, group, place) = heads.pop()?;
            heads.extend(next(place));
            Some(group)
        });
        (total, newest.skip(skip).take(most).collect())
    }

    /// A recipient's name, folded for search.
    pub fn search_key<'a>(&self, recipient: &'a RecipientRow) -> &'a str {
        self.house_shard().read_model().search_key(recipient)
    }

    /// An API key by its id.
    pub fn api_key(&self, id: ObjectId) -> Option<ApiKeyRow> {
        self.shard_with(id).read_model().api_key(id)
    }

    /// API key with an id from the books.
    pub fn known_api_key(&self, id: ObjectId) -> Result<ApiKeyRow, Unavailable> {
        self.api_key(id).ok_or_else(|| Unavailable::contradicting("the creation of an API key"))
    }

    /// The API keys of a group that are not revoked, oldest first.
    pub fn live_keys(&self, group: GroupNumber) -> Vec<(ObjectId, ApiKeyRow)> {
        self.shard(group).read_model().live_keys(group)
    }

    /// The first `most` of those things that wait for an operator and are wanted, by rank and then
    /// by age.
    pub fn queue<R: Ord>(
        &self,
        is_wanted: impl Fn(&WaitingItem) -> bool,
        rank: impl Fn(&WaitingItem) -> R,
        most: usize,
    ) -> WaitingPage {
        let mut page = WaitingPage::default();
        for shard in self.shards.all() {
            page.merge(shard.read_model().waiting(&is_wanted, &rank, most), &rank, most);
            let unknown: Vec<_> = self.left_unknown(&shard).into_iter().filter(&is_wanted).collect();
            let amounts = unknown.iter().filter_map(WaitingItem::amount);
            let (total, amount) = (unknown.len(), amounts.map(|amount| i128::from(amount.0)).sum());
            page.merge(WaitingPage { items: unknown, total, amount }, &rank, most);
        }
        page
    }

    /// The thing of an id that waits for an operator.
    pub fn waiting_item(&self, id: ObjectId) -> Option<WaitingItem> {
        let shard = self.shard_with(id);
        let unknown = || self.left_unknown(&shard).into_iter().find(|item| item.id == id);
        shard.read_model().waiting_item(id).or_else(unknown)
    }

    /// The charges and repayments of a partition that rails have left unknown for an hour.
    fn left_unknown(&self, shard: &Shard) -> Vec<WaitingItem> {
        let item = |(id, (charge, amount)): (ObjectId, (ObjectId, Centavos))| {
            let ledger = LedgerId::Merchant(self.ids().group(charge));
            WaitingItem { id, ledger, what: WaitingKind::Rail { charge, amount } }
        };
        shard.inquiries.unknown(self.now()).into_iter().map(item).collect()
    }

    /// How many of the things that wait for an operator are of each kind;
    /// none for what does not count.
    pub fn queue_counts<K: Ord>(&self, kind: impl Fn(&WaitingItem) -> Option<K>) -> BTreeMap<K, usize> {
        let mut counts = BTreeMap::new();
        for shard in self.shards.all() {
            let unknown = self.left_unknown(&shard).into_iter().filter_map(|item| kind(&item)).map(|kind| (kind, 1));
            for (kind, count) in shard.read_model().waiting_by(&kind).into_iter().chain(unknown) {
                *counts.entry(kind).or_default() += count;
            }
        }
        counts
    }

    /// A merchant's subscription; `None` if it has none of this id.
    pub fn subscription(&self, merchant: LedgerId, id: ObjectId) -> Result<Option<SubscriptionRow>, LoadError> {
        let row = self.shard_of(merchant).read_model().subscription(merchant, id)?;
        row.map(|row| self.with_changes(merchant, row, Sequence(u64::MAX))).transpose()
    }

    /// Subscription with an id from a Record of its merchant, with its metadata as of that Record.
    pub fn known_subscription_through(
        &self,
        merchant: LedgerId,
        id: ObjectId,
        through: Sequence,
    ) -> Result<SubscriptionRow, Unavailable> {
        let row = self.shard_of(merchant).read_model().subscription(merchant, id)?;
        let row = row.ok_or_else(|| Unavailable::contradicting("the opening of a subscription"))?;
        Ok(self.with_changes(merchant, row, through)?)
    }

    /// A card that a merchant stored; `None` if it has none of this id, or it was deleted.
    pub fn stored_card(&self, merchant: LedgerId, id: ObjectId) -> Result<Option<CardRow>> {
        Ok(self.card(merchant, id)?.filter(|card| !card.is_deleted))
    }

    /// A card that a merchant stored, deleted or not; `None` if it has none of this id.
    pub fn card(&self, merchant: LedgerId, id: ObjectId) -> Result<Option<CardRow>> {
        self.shard_of(merchant).read_model().card(merchant, id)
    }

    /// How many cards a merchant has stored, and those on the page that begins `skip` from the
    /// newest; deleted ones are among them.
    pub fn cards(&self, merchant: LedgerId, slice: Slice) -> Result<(u64, Vec<CardRow>)> {
        self.shard_of(merchant).read_model().cards_page(merchant, slice)
    }
}

/// Single objects and lists.
impl Engine {
    /// The last published Record of each partition.
    pub fn published(&self) -> Cut {
        Cut::new(self.shards.all().iter().map(|shard| shard.published()).collect())
    }

    /// The last published Record of a group's partition.
    pub fn published_of(&self, group: GroupNumber) -> Sequence {
        self.shard(group).published()
    }

    /// How many Records of all partitions are published.
    pub fn records_published(&self) -> u64 {
        self.shards.all().iter().map(|shard| shard.published().0).sum()
    }

    /// The place of a Record of a ledger's partition.
    pub fn position_of(&self, ledger: LedgerId, sequence: Sequence) -> Position {
        self.shard_of(ledger).position(sequence)
    }

    /// The Records about an object, oldest first. There may be Records about other objects among
    /// them: only a Record says what it is about.
    pub fn history(&self, id: ObjectId) -> Result<Records> {
        let shard = self.shard_with(id);
        Ok(records_of(&shard, may_wait(|| shard.read_model().about(id))?))
    }

    /// The same Records, all at once.
    pub(super) fn records_about(&self, id: ObjectId) -> Result<Vec<Record>> {
        may_wait(|| self.history(id)?.map(|found| Ok(found?.1)).collect())
    }

    /// The operator who was the first of two to approve a refund or withdrawal, or who started it;
    /// `None` if nobody was. The flag is true where the books ask for another one, whatever the
    /// amount: it was approved or asked for as the first of two.
    pub fn first_approval(&self, id: ObjectId) -> Result<Option<(String, bool)>> {
        for found in self.history(id)? {
            let (_, record) = found?;
            let asks = |event: &Event| matches!(event, Event::ApprovalAsked { id: of, .. } if *of == id);
            let starts = |event: &Event| matches!(event, Event::RefundRequested { id: of, .. } if *of == id);
            let is_asked = record.events.iter().any(asks);
            if let Some(operator) = record.operator.filter(|_| is_asked || record.events.iter().any(starts)) {
                return Ok(Some((operator, is_asked)));
            }
        }
        Ok(None)
    }

    /// The Records about the registration and bank account of a recipient, oldest first.
    pub fn registration(&self, recipient: LedgerId, since: Timestamp) -> Result<Records> {
        let shard = self.shard_of(recipient);
        Ok(records_of(&shard, may_wait(|| shard.read_model().registration(recipient, since))?))
    }

    /// A charge, cashout, refund, dispute or withdrawal as it stands; `None` if there is none of
    /// this id.
    pub fn object<T: Object>(&self, id: ObjectId) -> Result<Option<T>> {
        self.object_through(id, Sequence(u64::MAX))
    }

    /// The same object as it was once the Record of this sequence had taken effect.
    pub fn object_through<T: Object>(&self, id: ObjectId, through: Sequence) -> Result<Option<T>> {
        self.shard_with(id).object_through(id, through)
    }

    /// Object with an id from the books (a list, a queue or a Record). Error: the books do not have
    /// it, and so contradict themselves.
    pub fn known_object<T: Object>(&self, id: ObjectId) -> Result<T, Unavailable> {
        self.known_object_through(id, Sequence(u64::MAX))
    }

    /// The same object as it was once the Record of this sequence had taken effect.
    pub fn known_object_through<T: Object>(&self, id: ObjectId, through: Sequence) -> Result<T, Unavailable> {
        self.object_through(id, through)?.ok_or_else(|| Unavailable::contradicting("the opening of an object"))
    }

    /// The same object, where it is of this group; none of another group's is looked up.
    pub fn object_of<T: Object>(&self, group: GroupNumber, id: ObjectId) -> Result<Option<T>> {
        if self.ids().group(id) == group { self.object(id) } else { Ok(None) }
    }

    /// The splits of a charge, as one recipient sees them; `None` if its group has no such charge.
    pub fn split_history(&self, recipient: LedgerId, charge: ObjectId) -> Result<Option<SplitHistory>> {
        if recipient.group() != Some(self.ids().group(charge)) {
            return Ok(None);
        }
        let shard = self.shard_of(recipient);
        may_wait(|| {
            let about = shard.read_model().about(charge)?.into_iter();
            let records = about.map(|sequence| Ok((sequence.0, shard.record(sequence)?)));
            SplitHistory::read(recipient, charge, records)
        })
    }

    /// The same of the charge of a split that a statement lists.
    pub fn listed_split_history(&self, recipient: LedgerId, split: ListedSplit) -> Result<SplitHistory, Unavailable> {
        let listed = SplitHistory::listed_by(&self.shard_of(recipient).record(split.sequence)?);
        let found = listed.map(|charge| self.split_history(recipient, charge)).transpose()?.flatten();
        found.ok_or_else(|| Unavailable::contradicting("a split of a statement"))
    }

    /// What the Record of a charge's payment says; none while the charge is not paid.
    pub fn charge_facts(&self, id: ObjectId) -> Result<Option<ChargeFacts>> {
        let shard = self.shard_with(id);
        may_wait(|| {
            let about = shard.read_model().about(id)?.into_iter();
            let facts = about.map(|sequence| Ok(ChargeFacts::in_record(&shard.record(sequence)?, id)));
            facts.filter_map(Result::transpose).next().transpose()
        })
    }

    /// Where the money of an approved refund came from; none before its approval.
    pub(super) fn refund_money(&self, id: ObjectId, charge: ObjectId) -> Result<Option<RefundMoney>> {
        let shard = self.shard_with(id);
        may_wait(|| RefundMoney::read(id, shard.read_model().about(charge)?.into_iter().map(|at| shard.record(at))))
    }

    /// The blocks that hold the Records of a cut, in the order of booking, newest first, so many at
    /// most; and the Records before them.
    pub fn blocks_back(&self, through: &Cut, most: usize) -> Result<(Vec<Block>, Cut)> {
        let mut rest = through.up_to(&self.published());
        let lists = rest.iter().map(|mut last| {
            move || {
                let block = self.block(last)?;
                last.sequence = block.as_ref().map_or(Sequence(0), |block| Sequence(block.first.0 - 1));
                Ok(block.map(|block| (Timestamp(block.booked_at_ms), block)))
            }
        });
        let mut found = Vec::new();
        for block in newest_first(lists).take(most) {
            let (_, block) = block?;
            rest.reach(Position { partition: block.partition, sequence: Sequence(block.first.0 - 1) });
            found.push(block);
        }
        Ok((found, rest))
    }

    /// Up to `most` charges that meet a query and that Records through a cut opened, newest first.
    /// The journal is read back from there, 2,000 Records at most, since no list has the charges of
    /// all merchants; of one merchant, only the Records that it decided are read.
    pub fn newest_charges(&self, through: &Cut, wanted: &ChargeQuery, most: usize) -> Result<NewestCharges> {
        let mut rest = self.through_span(through, wanted)?;
        let mut found = Vec::new();
        let (records, mut is_end) = self.looked_back(wanted.owner(), &mut rest)?;
        for record in records {
            let (booked_at, (at, record)) = record?;
            if wanted.from.is_some_and(|from| booked_at < from) {
                is_end = true;
                break;
            }
            rest.reach(at.before());
            let opened = record.events.iter().find_map(|event| match event {
                Event::ChargeOpened { charge, terms, .. } => Some((*charge, terms)),
                _ => None,
            });
            if let Some((charge, terms)) = opened
                && wanted.meets(record.owner, charge, terms)
                && self.has_status(charge, wanted.status)?
            {
                found.push((at, charge));
            }
            if found.len() >= most {
                is_end = false;
                break;
            }
        }
        let rest = if is_end { rest.begin() } else { rest };
        Ok(NewestCharges { found, rest })
    }

    /// The Records through a cut, newest first, 2,000 at most: all of them, or those that one
    /// merchant decided; and whether there are no others of that merchant. Of one merchant, only
    /// its partition is left of the cut.
    fn looked_back(&self, owner: Option<GroupNumber>, rest: &mut Cut) -> Result<(BookedRecords<'_>, bool)> {
        let Some(group) = owner else {
            return Ok((Box::new(read_back(self.parts(), rest.clone()).take(LOOKED_BACK_MAX)), false));
        };
        let shard = self.shard(group);
        let last = Position { partition: shard.part().partition(), sequence: rest.of(shard.part().partition()) };
        *rest = rest.begin().with(last);
        let own = IndexKey::of(LedgerList::Own, LedgerId::Merchant(group));
        let (_, own) = shard.read_model().page(own, Slice::new(0..last.sequence.0 + 1, 0, LOOKED_BACK_MAX))?;
        let is_all = own.len() < LOOKED_BACK_MAX;
        let mut own = own.into_iter();
        let chunks = iter::from_fn(move || {
            let next: Vec<_> = own.by_ref().take(LOOKED_UP_AT_ONCE).collect();
            (!next.is_empty()).then(|| booked_records(shard.part(), &next))
        });
        let placed = move |(sequence, at, record)| (at, (Position { sequence, ..last }, record));
        let records = chunks.flat_map(move |chunk| match chunk {
            Ok(records) => records.into_iter().map(|found| Ok(placed(found))).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        });
        Ok((Box::new(records), is_all))
    }

    fn has_status(&self, charge: ObjectId, status: Option<ChargeStatus>) -> Result<bool> {
        let Some(status) = status else { return Ok(true) };
        let charge = self.object::<Charge>(charge)?;
        Ok(charge.is_some_and(|charge| ChargeStatus::of(&charge.outcome) == status))
    }

    /// The newest Record of an owner with this idempotency key, if the key has not expired.
    pub fn find_key(&self, owner: LedgerId, key: Fingerprint) -> Result<KeyFound> {
        self.shard_of(owner).read_model().find_key(owner, key)
    }

    /// How many card splits of a recipient fell due in a minute, as the Records before `end` say.
    pub fn splits_fallen_due(&self, recipient: LedgerId, minute: Minute, end: Sequence) -> Result<u64> {
        self.shard_of(recipient).read_model().splits_fallen_due(recipient, minute, end)
    }

    /// The Records after `after`, through `through`, that have an entry of a ledger, in order.
    pub fn entries_between(&self, ledger: LedgerId, after: Sequence, through: Sequence) -> Result<Vec<Sequence>> {
        self.shard_of(ledger).read_model().entries_between(ledger, after, through)
    }

    /// Webhook events of a group in the Records before `end`.
    pub fn webhook_event_count(&self, group: GroupNumber, end: Sequence) -> Result<u64> {
        self.shard(group).read_model().webhook_event_count(group, end)
    }

    /// The webhook events of a group with these numbers, in order; those that there are not yet are
    /// left out.
    pub fn webhook_events(&self, group: GroupNumber, numbers: Range<u64>) -> Result<Vec<ListedWebhookEvent>> {
        self.shard(group).read_model().webhook_events(group, numbers)
    }

    /// Webhook event with a number from the books (an endpoint's progress).
    pub fn known_webhook_event(&self, group: GroupNumber, number: u64) -> Result<ListedWebhookEvent, Unavailable> {
        let listed = self.webhook_events(group, number..number + 1)?;
        listed.first().copied().ok_or_else(|| Unavailable::contradicting("a webhook event of an endpoint"))
    }

    /// A listed webhook event of a group, and the Record that it follows from.
    pub fn webhook_event_at(
        &self,
        group: GroupNumber,
        listed: ListedWebhookEvent,
    ) -> Result<(WebhookEvent, Record), Unavailable> {
        let record = self.shard(group).record(listed.sequence)?;
        let event = webhook_events(&record).into_iter().nth(listed.index);
        let event = event.ok_or_else(|| Unavailable::contradicting("a webhook event of a list"))?;
        Ok((event, record))
    }
}

/// Lists, newest first. `skip` items are passed over; the range of a slice is one of
/// [`Engine::range`].
impl Engine {
    /// The part of a list with the items that were created at `from` or later, and before `to`.
    pub fn range(
        &self,
        list: LedgerList,
        ledger: LedgerId,
        between: (Option<Timestamp>, Option<Timestamp>),
    ) -> Result<Range<u64>> {
        self.shard_of(ledger).read_model().range(list, ledger, between)
    }

    /// The place in a ledger's lists of the Record that made an object: its sequence and its
    /// ordinal; `None` if no Record of the ledger's owner made it.
    pub fn place_of(&self, owner: LedgerId, id: ObjectId) -> Result<Option<(Sequence, u64)>> {
        self.shard_of(owner).read_model().place_of(owner, id)
    }

    /// A merchant's charges that meet a filter.
    pub fn charges(
        &self,
        group: GroupNumber,
        filter: &ChargeFilter,
        skip: u64,
        count: usize,
    ) -> Result<Listed<Objects<Charge>>> {
        Ok(objects(&self.shard(group), self.shard(group).read_model().charges_page(group, filter, skip, count)?))
    }

    /// A page of the charges of a subscription, newest first: one for each time that a cycle was
    /// charged.
    pub fn subscription_charges(&self, id: ObjectId, slice: Slice) -> Result<Listed<Objects<Charge>>> {
        page(&self.shard_with(id), IndexKey::subscription_charges(id), slice)
    }

    /// A merchant's subscriptions, and how many there are.
    pub fn subscriptions(&self, merchant: LedgerId, slice: Slice) -> Result<(u64, Vec<SubscriptionRow>)> {
        let (total, rows) = self.shard_of(merchant).read_model().subscriptions_page(merchant, slice)?;
        let rows = rows.into_iter().map(|row| self.with_changes(merchant, row, Sequence(u64::MAX)));
        Ok((total, rows.collect::<Result<_, _>>()?))
    }

    /// A merchant's cashouts.
    pub fn cashouts(&self, merchant: LedgerId, slice: Slice) -> Result<Listed<Objects<Cashout>>> {
        page(&self.shard_of(merchant), IndexKey::of(LedgerList::Cashouts, merchant), slice)
    }

    /// The refunds of a merchant.
    pub fn refunds(&self, merchant: LedgerId, slice: Slice) -> Result<Listed<Objects<Refund>>> {
        page(&self.shard_of(merchant), IndexKey::of(LedgerList::Refunds, merchant), slice)
    }

    /// All refunds of a merchant in a range; few of them are in memory.
    pub fn all_refunds(
        &self,
        merchant: LedgerId,
        range: Range<u64>,
    ) -> impl Iterator<Item = Result<Refund, Unavailable>> + use<> {
        all(self.shard_of(merchant), IndexKey::of(LedgerList::Refunds, merchant), range)
    }

    /// The disputes of a merchant's charges.
    pub fn disputes(&self, merchant: LedgerId, slice: Slice) -> Result<Listed<Objects<Dispute>>> {
        page(&self.shard_of(merchant), IndexKey::of(LedgerList::Disputes, merchant), slice)
    }

    /// The acquirer's batches that are booked whole.
    pub fn batches(&self, skip: u64, count: usize) -> Result<Listed<RecordsWith<EndedBatch>>> {
        let shard = self.house_shard();
        let (total, sequences) = shard.read_model().page(IndexKey::batches(), Slice::of_all(skip, count))?;
        let items = RecordsWith { records: records_of(&shard, sequences), of: EndedBatch::in_record };
        Ok(Listed { total, items })
    }

    /// The Records about the acquirer's batch of a reference, partition by partition. There may
    /// be Records about others among them.
    pub fn batch(&self, reference: &str) -> Result<impl Iterator<Item = Result<Record>> + '_> {
        let id = Batch::id_of(reference);
        let mut all = Vec::new();
        for shard in self.shards.all() {
            all.extend(shard.read_model().about(id)?.into_iter().map(|sequence| (Arc::clone(&shard), sequence)));
        }
        Ok(all.into_iter().map(|(shard, sequence)| shard.record(sequence)))
    }

    /// The withdrawals of a recipient.
    pub fn withdrawals(&self, recipient: LedgerId, skip: u64, count: usize) -> Result<Listed<Objects<Withdrawal>>> {
        page(&self.shard_of(recipient), IndexKey::of(LedgerList::Withdrawals, recipient), Slice::of_all(skip, count))
    }

    /// Withdrawal of a recipient at a position from the books, counted from the oldest, from
    /// 0.
    pub fn known_withdrawal(self: &Arc<Self>, recipient: LedgerId, place: u64) -> Result<Withdrawal, Unavailable> {
        let contradicting = || Unavailable::contradicting("a withdrawal of a statement");
        // Those that came since stand before it.
        let newer = self.withdrawals(recipient, 0, 0)?.total.checked_sub(place + 1).ok_or_else(contradicting)?;
        self.withdrawals(recipient, newer, 1)?.items.next().ok_or_else(contradicting)?
    }

    /// All withdrawals of a recipient in a range; few of them are in memory.
    pub fn all_withdrawals(
        &self,
        recipient: LedgerId,
        range: Range<u64>,
    ) -> impl Iterator<Item = Result<Withdrawal, Unavailable>> + use<> {
        all(self.shard_of(recipient), IndexKey::of(LedgerList::Withdrawals, recipient), range)
    }

    /// The Records with an entry of a ledger.
    pub fn entries(&self, ledger: LedgerId, skip: u64, count: usize) -> Result<Listed<Records>> {
        self.entries_through(ledger, Sequence(u64::MAX), skip, count)
    }

    /// The same, of the Records through one of the past.
    pub fn entries_through(
        &self,
        ledger: LedgerId,
        through: Sequence,
        skip: u64,
        count: usize,
    ) -> Result<Listed<Records>> {
        let (shard, range) = (self.shard_of(ledger), 0..through.0.saturating_add(1));
        let (total, sequences) = shard.read_model().page(IndexKey::entries(ledger), Slice::new(range, skip, count))?;
        Ok(Listed { total, items: records_of(&shard, sequences) })
    }

    /// The Records of the audit trail, of all groups or of one, that took effect since `from` and
    /// before `to`. Those that are passed over are read where there are several partitions, since
    /// their times say which come first.
    pub fn audit(
        &self,
        group: Option<GroupNumber>,
        (from, to): (Option<Timestamp>, Option<Timestamp>),
        skip: u64,
        count: usize,
    ) -> Result<Listed<impl Iterator<Item = AuditedRecord> + use<>>> {
        let shards = match group {
            Some(group) => vec![self.shard(group)],
            None => self.shards.all(),
        };
        let (of_one, of_all) = if shards.len() == 1 { (skip, 0) } else { (0, skip) };
        let (mut total, mut lists) = (0, Vec::new());
        for shard in shards {
            let range = shard.read_model().audit_range(group, from, to)?;
            total += shard.read_model().page(IndexKey::audit(group), Slice::new(range.clone(), 0, 0))?.0;
            let page = move |shard: &Shard, passed| {
                Ok(shard
                    .read_model()
                    .page(IndexKey::audit(group), Slice::new(range.clone(), passed, LOOKED_UP_AT_ONCE))?
                    .1)
            };
            lists.push(booked_back(shard, page, of_one));
        }
        let mut merged = newest_first(lists);
        merged.by_ref().take(usize::try_from(of_all).unwrap_or(usize::MAX)).try_for_each(|passed| passed.map(drop))?;
        let items = merged.take(count).map(|found| {
            let (_, (at, record)) = found?;
            listed_with(at, record, audit::of_record)
        });
        Ok(Listed { total, items })
    }

    /// Up to `most` things of listed Records through a cut, newest first, of the span and the
    /// partition of a query; and the Records that the list goes on with. `look` gives the things of
    /// a Record; 2,000 are looked at.
    pub fn newest_objects<T, I: IntoIterator<Item = T>, E: From<LoadError>>(
        &self,
        (list, wanted): (RecordList<'_>, &ChargeQuery),
        through: &Cut,
        most: usize,
        look: impl Fn(Position, &Record) -> Result<I, E>,
    ) -> Result<(Vec<T>, Cut), E> {
        let mut rest = self.through_span(through, wanted)?;
        let group = wanted.owner();
        let shards = group.map_or_else(|| self.shards.all(), |group| vec![self.shard(group)]);
        let lists = shards.into_iter().map(|shard| {
            let page = self.page_of(list, &shard, group, rest.of(shard.part().partition()))?;
            Ok(booked_back(shard, page, 0))
        });
        let lists = lists.collect::<Result<Vec<_>, LoadError>>()?;
        let mut found = Vec::new();
        for (looked_at, record) in newest_first(lists).enumerate() {
            let (booked_at, (at, record)) = record?;
            if wanted.from.is_some_and(|from| booked_at < from) {
                break;
            }
            if found.len() >= most || looked_at == LOOKED_BACK_MAX {
                return Ok((found, rest));
            }
            rest.reach(at.before());
            if self.is_listed(list, &record)? {
                found.extend(look(at, &record)?);
            }
        }
        Ok((found, rest.begin()))
    }

    /// The part of a cut that may have booked what was created before the end of a query's span.
    fn through_span(&self, through: &Cut, wanted: &ChargeQuery) -> Result<Cut> {
        let through = through.up_to(&self.published());
        Ok(match wanted.to {
            Some(to) => through.up_to(&self.last_booked_later(to)?),
            None => through,
        })
    }

    /// The last Records that may have booked what was created before a time.
    pub(super) fn last_booked_later(&self, to: Timestamp) -> Result<Cut, LoadError> {
        self.last_booked_before(to.plus_ms(BOOKED_LATER_MAX_MS))
    }

    /// The lines of a merchant's account statement, and how many there are.
    pub fn statement(&self, merchant: LedgerId, slice: Slice) -> Result<(u64, Vec<ListedStatementLine>)> {
        self.shard_of(merchant).read_model().statement_in(merchant, slice)
    }

    /// The lines of a merchant's account statement in a range that come from a charge, its refunds
    /// or its disputes, newest first.
    pub fn statement_of(
        &self,
        merchant: LedgerId,
        charge: ObjectId,
        range: Range<u64>,
    ) -> Result<Vec<ListedStatementLine>> {
        self.shard_of(merchant).read_model().statement_of(merchant, charge, range)
    }

    /// Gives each of these lines of a merchant's statement to `take`, with what its Record says of
    /// it. A Record is read once for all of its lines, which stand together.
    pub fn each_listed_line(
        &self,
        group: GroupNumber,
        listed: &[ListedStatementLine],
        mut take: impl FnMut(&ListedStatementLine, &StatementLine, &Record),
    ) -> Result<(), Unavailable> {
        for of_record in listed.chunk_by(|one, next| one.sequence == next.sequence) {
            let record = self.shard(group).record(of_record[0].sequence)?;
            let lines = statement_lines(&record);
            for line in of_record {
                let said = lines.get(line.index as usize);
                take(line, said.ok_or_else(|| Unavailable::contradicting("a line of a statement"))?, &record);
            }
        }
        Ok(())
    }

    /// The splits of a recipient's statement, and how many there are.
    pub fn splits(&self, recipient: LedgerId, slice: Slice) -> Result<(u64, Vec<ListedSplit>)> {
        self.shard_of(recipient).read_model().splits_in(recipient, slice)
    }

    /// The ordinal of the merchant's Record that put the splits of a charge on statements; `None`
    /// before it.
    pub fn splits_listed_by(&self, charge: ObjectId) -> Result<Option<u64>> {
        self.shard_with(charge).read_model().splits_listed_by(charge)
    }

    /// About `count` splits of a recipient's statement that the merchant's Records of ordinals
    /// below `before` made, and where to go on; none at the end. New splits do not shift them.
    pub fn splits_before(
        &self,
        recipient: LedgerId,
        before: u64,
        count: usize,
    ) -> Result<(Vec<ListedSplit>, Option<u64>)> {
        self.shard_of(recipient).read_model().splits_before(recipient, before, count)
    }
}

/// A list of one partition, newest first, from a place on: the next Records of it.
fn booked_back(
    shard: Arc<Shard>,
    page: impl Fn(&Shard, u64) -> Result<Vec<Sequence>>,
    mut passed: u64,
) -> impl FnMut() -> Result<Vec<BookedRecord>> {
    move || {
        let sequences = page(&shard, passed)?;
        passed += sequences.len() as u64;
        let read = booked_records(shard.part(), &sequences)?.into_iter();
        Ok(read.map(|(sequence, at, record)| (at, (shard.position(sequence), record))).collect())
    }
}

/// A page of the objects of a list.
fn page<T>(shard: &Arc<Shard>, list: IndexKey, slice: Slice) -> Result<Listed<Objects<T>>> {
    Ok(objects(shard, shard.read_model().page(list, slice)?))
}

fn objects<T>(shard: &Arc<Shard>, (total, sequences): (u64, Vec<Sequence>)) -> Listed<Objects<T>> {
    Listed { total, items: Objects { records: records_of(shard, sequences), made: PhantomData } }
}

/// All objects of a list in a range, newest first.
fn all<T: Object>(
    shard: Arc<Shard>,
    list: IndexKey,
    range: Range<u64>,
) -> impl Iterator<Item = Result<T, Unavailable>> + use<T> {
    let (mut part, mut before) = (Vec::new().into_iter(), range.end);
    let next = move || {
        if part.len() == 0 {
            let rest = range.start..before;
            part = shard.read_model().page(list, Slice::new(rest, 0, LOOKED_UP_AT_ONCE))?.1.into_iter();
        }
        let Some(sequence) = part.next() else { return Ok(None) };
        before = sequence.0;
        shard.made_by(&shard.record(sequence)?).map(Some)
    };
    iter::repeat_with(next).map_while(Result::transpose)
}

pub(super) fn records_of(shard: &Arc<Shard>, sequences: Vec<Sequence>) -> Records {
    Records { shard: Arc::clone(shard), sequences: sequences.into_iter() }
}
