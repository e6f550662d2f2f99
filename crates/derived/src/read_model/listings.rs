//! Pages of lists: charges, splits, statement lines, webhook events and others, as Records that the
//! index finds. An entry of a page names its Record and everything else that a reader needs.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use ledger::event::SplitKey;
use ledger::fees::SPLIT_SETTLEMENT_DAYS;
use ledger::record::IDEMPOTENCY_KEPT_MS;
use ledger::statement::{StatementAccount, StatementLine, statement_lines};
use ledger::{
    Centavos, Charge, ChargeOutcome, Credit, Event, Fingerprint, GroupNumber, LedgerId, Minute, ObjectId,
    PaymentMethod, RecipientNumber, Record, Timestamp,
};

use super::ReadModel;
use crate::index::{Balances, ChargeList, IndexKey, LedgerList, Slice};
use crate::records::{self, LoadError, Result, may_wait};
use store::Sequence;

/// One split in a recipient's statement: where the charge's Record is, and which of its splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedSplit {
    /// The Record that made it: the opening of a PIX charge or the capture of a card charge.
    pub sequence: Sequence,
    /// Position in the charge's splits, from 0.
    pub index: u32,
}

/// Status of a charge, as lists have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeStatus {
    /// No outcome yet.
    Pending,
    /// Paid or captured.
    Paid,
    /// The card was refused.
    Refused,
    /// The PIX code expired or was cancelled.
    Cancelled,
}

impl ChargeStatus {
    /// The status of an outcome.
    pub fn of(outcome: &ChargeOutcome) -> Self {
        match outcome {
            ChargeOutcome::Pending | ChargeOutcome::Unanswered => Self::Pending,
            ChargeOutcome::Paid { .. } => Self::Paid,
            ChargeOutcome::Refused(_) => Self::Refused,
            ChargeOutcome::Cancelled => Self::Cancelled,
        }
    }
}

/// Which of a merchant's charges are listed: those that meet all that is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeFilter {
    /// Their status.
    pub status: Option<ChargeStatus>,
    /// How they are paid.
    pub method: Option<PaymentMethod>,
    /// Created at this time or later; the time of creation is the one in the id.
    pub from: Option<Timestamp>,
    /// Created before this time.
    pub to: Option<Timestamp>,
    /// Opened after the merchant's Record of this ordinal.
    pub after: Option<u64>,
    /// Opened before the merchant's Record of this ordinal.
    pub before: Option<u64>,
}

impl ChargeFilter {
    /// Whether a charge meets it.
    pub fn admits(&self, charge: &Charge) -> bool {
        let created_at = charge.id.created_at();
        self.status.is_none_or(|status| status == ChargeStatus::of(&charge.outcome))
            && self.method.is_none_or(|method| method == charge.terms.method)
            && self.from.is_none_or(|from| created_at >= from)
            && self.to.is_none_or(|to| created_at < to)
    }
}

/// A Record by its ordinal: its sequence, and the places of some of its splits.
type RecordSplits = (u64, (Sequence, Vec<u32>));

/// One line of a merchant's account statement: where its Record is, and which of the Record's
/// statement lines it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedStatementLine {
    /// The Record.
    pub sequence: Sequence,
    /// Position in the Record's statement_lines, from 0.
    pub index: u32,
    /// Balance of the line's account after it.
    pub balance_after: Centavos,
}

/// One webhook event of a group: where its Record is, and which of the Record's webhook events it
/// is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedWebhookEvent {
    /// Its number among those of the group, from 1.
    pub number: u64,
    /// The Record.
    pub sequence: Sequence,
    /// Position in the Record's webhook events, from 0.
    pub index: usize,
}

/// A key, looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFound {
    /// The newest Record with this key.
    pub sequence: Option<Sequence>,
    /// The merchant's Records through this ordinal were seen.
    pub looked_up_through: u64,
}

/// A line of a Record's statement lines, with what stood on its account after it; `after_record` is
/// what stood on the merchant's accounts after all of them.
fn listed_line(
    sequence: Sequence,
    lines: &[StatementLine],
    index: u32,
    after_record: Balances,
) -> Option<ListedStatementLine> {
    let (line, later) = lines.get(index as usize..)?.split_first()?;
    let after_record = after_record.0[match line.account {
        StatementAccount::Pending => 0,
        StatementAccount::Available => 1,
        StatementAccount::Reserved => 2,
    }];
    let moved_later: Centavos =
        later.iter().filter(|later| later.account == line.account).map(|later| later.amount).sum();
    Some(ListedStatementLine { sequence, index, balance_after: Centavos(after_record) - moved_later })
}

/// A charge, its refunds and its disputes, from the Records that are about it.
fn sources_of(charge: ObjectId, records: &[(Sequence, Record)]) -> BTreeSet<ObjectId> {
    let own = |event: &Event| match event {
        Event::RefundRequested { id, charge: of, .. } | Event::DisputeOpened { id, charge: of, .. }
            if *of == charge =>
        {
            Some(*id)
        }
        _ => None,
    };
    records.iter().flat_map(|(_, record)| record.events.iter().filter_map(own)).chain([charge]).collect()
}

/// Every list shows what was published when it was asked for. A charge that is opened in between
/// moves the pages of older ones.
impl ReadModel {
    /// An idempotency key of an owner.
    pub fn find_key(&self, owner: LedgerId, key: Fingerprint) -> Result<KeyFound> {
        // First the ordinal: the keys of the Records through it are in the index.
        let looked_up_through = self.last_ordinal(owner)?;
        let kept_since = self.clock_at().plus_ms(-IDEMPOTENCY_KEPT_MS);
        for sequence in self.index().with_key(key, kept_since)?.into_iter().rev() {
            let record = self.record(sequence)?;
            if record.idempotency.is_some_and(|idempotency| idempotency.key == key) {
                self.wait_until_published(sequence);
                let sequence = (record.effective_at > kept_since).then_some(sequence);
                return Ok(KeyFound { sequence, looked_up_through });
            }
        }
        Ok(KeyFound { sequence: None, looked_up_through })
    }

    /// Waits until all lists and figures have a Record. The index knows the keys of a Record a
    /// moment before anything else of it is read: who reads an effect finds its key. Whoever finds
    /// a key reads the effect next.
    fn wait_until_published(&self, sequence: Sequence) {
        if sequence > self.published() {
            may_wait(|| drop(self.folding.lock()));
        }
    }

    /// A key that one Record of an owner may have, for ever.
    pub fn find_unique(&self, owner: LedgerId, key: Fingerprint) -> Result<KeyFound> {
        let looked_up_through = self.last_ordinal(owner)?;
        for sequence in self.index().with_key(key, Timestamp(i64::MIN))? {
            let record = self.record(sequence)?;
            if record.owner == owner && record.keys().any(|known| known == key) {
                self.wait_until_published(sequence);
                return Ok(KeyFound { sequence: Some(sequence), looked_up_through });
            }
        }
        Ok(KeyFound { sequence: None, looked_up_through })
    }

    /// The ordinal of an owner's last published Record.
    fn last_ordinal(&self, owner: LedgerId) -> Result<u64> {
        match owner {
            // The n-th of its Records is that of ordinal n.
            LedgerId::Recipient(..) => {
                Ok(self.index().page(&[IndexKey::of(LedgerList::Own, owner)], &[], Slice::of_all(0, 0))?.0)
            }
            _ => Ok(self.ordinals.read().of(owner)),
        }
    }

    /// A page of a list, `skip` from the newest: how many items it has in a range (see
    /// [`ReadModel::range`]), and the Records of those on the page.
    pub fn page(&self, list: IndexKey, slice: Slice) -> Result<(u64, Vec<Sequence>)> {
        let (total, listed) = self.index().page(&[list], &[], slice)?;
        Ok((total, listed.into_iter().map(|listed| Sequence(listed.number)).collect()))
    }

    /// The part of a list with the items that were created at `from` or later, and before `to`. The
    /// list is of splits, statement lines, cashouts or refunds: its items are in the order of that
    /// time, but for milliseconds.
    pub fn range(
        &self,
        list: LedgerList,
        ledger: LedgerId,
        (from, to): (Option<Timestamp>, Option<Timestamp>),
    ) -> Result<Range<u64>> {
        let key = IndexKey::of(list, ledger);
        let created_at = |number: u64| {
            let record = match list {
                LedgerList::SplitsListed => {
                    let merchant = LedgerId::Merchant(ledger.group().unwrap_or_default());
                    self.record(self.index().own(merchant, &[number])?[0])?
                }
                _ => self.record(Sequence(number))?,
            };
            let id = record.events.iter().find_map(|event| match (list, event) {
                (LedgerList::Cashouts, Event::CashoutCreated { id, .. })
                | (LedgerList::Refunds, Event::RefundRequested { id, .. }) => Some(*id),
                _ => None,
            });
            Ok(id.map_or(record.effective_at, |id| id.created_at()))
        };
        self.between(&[key], (from, to), created_at)
    }

    /// The part of a list with the items that were created at `from` or later, and before `to`.
    fn between(
        &self,
        list: &[IndexKey],
        (from, to): (Option<Timestamp>, Option<Timestamp>),
        created_at: impl Fn(u64) -> Result<Timestamp>,
    ) -> Result<Range<u64>> {
        let bound =
            |time: Option<Timestamp>, open| time.map_or(Ok(open), |time| self.first_since(list, time, &created_at));
        Ok(bound(from, 0)?..bound(to, u64::MAX)?)
    }

    /// The Records about an object, oldest first.
    pub fn about(&self, id: ObjectId) -> Result<Vec<Sequence>> {
        self.index().since(IndexKey::object(id), id.created_at())
    }

    /// The place in its owner's lists of the Record that made an object: its sequence and its
    /// ordinal; `None` if the owner's own Records have no such object.
    pub fn place_of(&self, owner: LedgerId, id: ObjectId) -> Result<Option<(Sequence, u64)>> {
        let Some(sequence) = self.about(id)?.first().copied() else { return Ok(None) };
        let record = self.record(sequence)?;
        Ok((record.owner == owner).then_some((sequence, record.ordinal)))
    }

    /// The Records about the registration and bank account of a recipient, oldest first.
    pub fn registration(&self, recipient: LedgerId, since: Timestamp) -> Result<Vec<Sequence>> {
        self.index().since(IndexKey::of(LedgerList::Registration, recipient), since)
    }

    /// The Records that make a ledger's state, in order: its own from `own`, and those of others
    /// that change it from `foreign`. A foreign Record that is no more than a credit comes with
    /// that credit.
    pub fn concerning(
        &self,
        ledger: LedgerId,
        own: Range<u64>,
        foreign: Range<u64>,
    ) -> Result<Vec<(Sequence, Option<Credit>)>> {
        let own = self.index().sequences(IndexKey::of(LedgerList::Own, ledger), own)?;
        let mut concerning = self.index().changed(ledger, foreign)?;
        concerning.extend(own.into_iter().map(|sequence| (sequence, None)));
        concerning.sort_by_key(|(sequence, _)| *sequence);
        Ok(concerning)
    }

    /// The range of the audit trail's Records, of all groups or of one, that took effect since
    /// `from` and before `to`.
    pub fn audit_range(
        &self,
        group: Option<GroupNumber>,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Result<Range<u64>> {
        let effective_at = |number| Ok(self.record(Sequence(number))?.effective_at);
        self.between(&[IndexKey::audit(group)], (from, to), effective_at)
    }

    /// The Records after `after`, through `through`, that have an entry of a ledger, in order.
    pub fn entries_between(&self, ledger: LedgerId, after: Sequence, through: Sequence) -> Result<Vec<Sequence>> {
        self.index().sequences(IndexKey::entries(ledger), after.0 + 1..through.0 + 1)
    }

    /// How many splits a recipient's statement has in a range (see [`ReadModel::range`]), and the
    /// page of them that begins `skip` from the newest.
    pub fn splits_in(&self, recipient: LedgerId, slice: Slice) -> Result<(u64, Vec<ListedSplit>)> {
        let LedgerId::Recipient(group, number) = recipient else { return Ok((0, Vec::new())) };
        let (plus, minus) =
            ([IndexKey::of(LedgerList::SplitsListed, recipient)], [IndexKey::of(LedgerList::SplitsRemoved, recipient)]);
        let (total, listed) = self.index().page(&plus, &minus, slice)?;
        // A charge with many splits for one recipient is read once a page.
        let mut ordinals: Vec<u64> = listed.iter().map(|split| split.number).collect();
        ordinals.dedup();
        let known: HashMap<_, _> = self.splits_made(group, number, &ordinals)?.into_iter().collect();
        let mut page = Vec::with_capacity(listed.len());
        for split in listed {
            let (sequence, places) = &known[&split.number];
            let index = places.get(split.index as usize).copied().ok_or(LoadError::Missing(sequence.0))?;
            page.push(ListedSplit { sequence: *sequence, index });
        }
        Ok((total, page))
    }

    /// The ordinal of the merchant's Record that put the splits of a charge on statements; `None`
    /// before it.
    pub fn splits_listed_by(&self, charge: ObjectId) -> Result<Option<u64>> {
        for sequence in self.about(charge)? {
            let record = self.record(sequence)?;
            let lists = |event: &Event| match event {
                Event::ChargeOpened { charge: of, expires_at: Some(_), .. }
                | Event::CardCaptured { charge: of, .. } => *of == charge,
                _ => false,
            };
            if record.events.iter().any(lists) {
                return Ok(Some(record.ordinal));
            }
        }
        Ok(None)
    }

    /// The next splits of a recipient's statement, newest first, made by the merchant's Records of
    /// ordinals below `before`: about `count`, and where to go on; none at the end. Splits that are
    /// added or removed meanwhile do not shift them.
    pub fn splits_before(
        &self,
        recipient: LedgerId,
        before: u64,
        count: usize,
    ) -> Result<(Vec<ListedSplit>, Option<u64>)> {
        let LedgerId::Recipient(group, number) = recipient else { return Ok((Vec::new(), None)) };
        let (plus, minus) =
            ([IndexKey::of(LedgerList::SplitsListed, recipient)], [IndexKey::of(LedgerList::SplitsRemoved, recipient)]);
        let (_, listed) = self.index().page(&plus, &minus, Slice::new(0..before, 0, count))?;
        let mut ordinals: Vec<u64> = listed.iter().map(|split| split.number).collect();
        ordinals.dedup();
        let mut splits = Vec::with_capacity(listed.len());
        for (_, (sequence, places)) in self.splits_made(group, number, &ordinals)? {
            splits.extend(places.into_iter().rev().map(|index| ListedSplit { sequence, index }));
        }
        Ok((splits, ordinals.last().copied()))
    }

    /// For these Records of the merchant, by ordinal: the sequence, and the places of a recipient's
    /// splits in the charge.
    fn splits_made(&self, group: GroupNumber, number: RecipientNumber, ordinals: &[u64]) -> Result<Vec<RecordSplits>> {
        let sequences = self.index().own(LedgerId::Merchant(group), ordinals)?;
        let mut made = Vec::with_capacity(ordinals.len());
        for (ordinal, sequence) in ordinals.iter().zip(sequences) {
            let record = self.record(sequence)?;
            let splits = record.events.iter().find_map(|event| match event {
                Event::ChargeOpened { terms, .. } | Event::CardCaptured { terms, .. } => Some(&terms.splits),
                _ => None,
            });
            let places = (0_u32..).zip(splits.into_iter().flatten());
            let of_recipient = places.filter(|(_, split)| split.recipient == number).map(|(place, _)| place);
            made.push((*ordinal, (sequence, of_recipient.collect())));
        }
        Ok(made)
    }

    /// A page of a merchant's charges, `skip` from the newest: the number of charges that meet the
    /// filter, and the Records that opened those on the page.
    pub fn charges_page(
        &self,
        group: GroupNumber,
        filter: &ChargeFilter,
        skip: u64,
        count: usize,
    ) -> Result<(u64, Vec<Sequence>)> {
        let methods = match &filter.method {
            Some(method) => std::slice::from_ref(method),
            None => &[PaymentMethod::Pix, PaymentMethod::CreditCard, PaymentMethod::DebitCard],
        };
        let of = |lists: &[ChargeList]| -> Vec<IndexKey> {
            lists
                .iter()
                .flat_map(|list| methods.iter().map(|method| IndexKey::charges(group, *method, *list)))
                .collect()
        };
        let (plus, minus): (&[ChargeList], &[ChargeList]) = match filter.status {
            None => (&[ChargeList::Opened], &[]),
            Some(ChargeStatus::Pending) => {
                (&[ChargeList::Opened], &[ChargeList::Paid, ChargeList::Refused, ChargeList::Cancelled])
            }
            Some(ChargeStatus::Paid) => (&[ChargeList::Paid], &[]),
            Some(ChargeStatus::Refused) => (&[ChargeList::Refused], &[]),
            Some(ChargeStatus::Cancelled) => (&[ChargeList::Cancelled], &[]),
        };
        let merchant = LedgerId::Merchant(group);
        let created_at = |ordinal| {
            let record = self.record(self.index().own(merchant, &[ordinal])?[0])?;
            let opened = record.events.iter().find_map(|event| match event {
                Event::ChargeOpened { charge, .. } => Some(charge.created_at()),
                _ => None,
            });
            Ok(opened.unwrap_or(record.effective_at))
        };
        let span = self.between(&of(&[ChargeList::Opened]), (filter.from, filter.to), created_at)?;
        let start = span.start.max(filter.after.map_or(0, |ordinal| ordinal + 1));
        let range = start..span.end.min(filter.before.unwrap_or(u64::MAX));
        let (total, listed) = self.index().page(&of(plus), &of(minus), Slice::new(range, skip, count))?;
        let ordinals: Vec<u64> = listed.iter().map(|charge| charge.number).collect();
        Ok((total, self.index().own(merchant, &ordinals)?))
    }

    /// How many lines a merchant's account statement has in a range (see [`ReadModel::range`]), and
    /// the page of them that begins `skip` from the newest.
    pub fn statement_in(&self, merchant: LedgerId, slice: Slice) -> Result<(u64, Vec<ListedStatementLine>)> {
        let LedgerId::Merchant(group) = merchant else { return Ok((0, Vec::new())) };
        let (total, listed) = self.index().page(&[IndexKey::of(LedgerList::StatementLines, merchant)], &[], slice)?;
        let after: Vec<_> = listed.iter().map(|line| Sequence(line.number + 1)).collect();
        let balances = self.index().balances_before(group, &after)?;
        let mut page = Vec::with_capacity(listed.len());
        for (line, after_record) in listed.into_iter().zip(balances) {
            let sequence = Sequence(line.number);
            let lines = statement_lines(&self.record(sequence)?);
            let listed = listed_line(sequence, &lines, line.index, after_record);
            page.push(listed.ok_or(LoadError::Missing(sequence.0))?);
        }
        Ok((total, page))
    }

    /// The lines of a merchant's account statement in a range that come from a charge, its refunds
    /// or its disputes, newest first.
    pub fn statement_of(
        &self,
        merchant: LedgerId,
        charge: ObjectId,
        range: Range<u64>,
    ) -> Result<Vec<ListedStatementLine>> {
        let LedgerId::Merchant(group) = merchant else { return Ok(Vec::new()) };
        let records = self.about(charge)?.into_iter().rev().map(|sequence| Ok((sequence, self.record(sequence)?)));
        let mut records = records.collect::<Result<Vec<_>>>()?;
        let sources = sources_of(charge, &records);
        records.retain(|(sequence, _)| range.contains(&sequence.0));
        let after: Vec<_> = records.iter().map(|(sequence, _)| Sequence(sequence.0 + 1)).collect();
        let balances = self.index().balances_before(group, &after)?;
        let mut found = Vec::new();
        for ((sequence, record), after_record) in records.iter().zip(balances) {
            let lines = statement_lines(record);
            for (index, line) in (0..lines.len() as u32).zip(&lines).rev() {
                if line.source.is_some_and(|source| sources.contains(&source)) {
                    let listed = listed_line(*sequence, &lines, index, after_record);
                    found.push(listed.ok_or(LoadError::Missing(sequence.0))?);
                }
            }
        }
        Ok(found)
    }

    /// How many webhook events a group has in the Records before `end`.
    pub fn webhook_event_count(&self, group: GroupNumber, end: Sequence) -> Result<u64> {
        Ok(self.index().page(&[IndexKey::webhook_events(group)], &[], Slice::new(0..end.0, 0, 0))?.0)
    }

    /// The webhook events of a group with these numbers, in order. Numbers that are not taken yet
    /// are left out.
    pub fn webhook_events(&self, group: GroupNumber, numbers: Range<u64>) -> Result<Vec<ListedWebhookEvent>> {
        let places = numbers.start.saturating_sub(1)..numbers.end.saturating_sub(1);
        let sequences = self.index().places(IndexKey::webhook_events(group), places)?;
        let mut listed: Vec<ListedWebhookEvent> = Vec::with_capacity(sequences.len());
        for (number, sequence) in (numbers.start..).zip(sequences.into_iter().map(Sequence)) {
            let index = match listed.last() {
                Some(before) if before.sequence == sequence => before.index + 1,
                Some(_) => 0,
                None => (number - 1 - self.webhook_event_count(group, sequence)?) as usize,
            };
            listed.push(ListedWebhookEvent { number, sequence, index });
        }
        Ok(listed)
    }

    /// How many card splits of a recipient fell due in a minute, as the Records before `end` say:
    /// those captured so long before, whether that was booked at once or later, less what was
    /// anticipated.
    pub fn splits_fallen_due(&self, recipient: LedgerId, minute: Minute, end: Sequence) -> Result<u64> {
        let LedgerId::Recipient(group, number) = recipient else { return Ok(0) };
        let (list, merchant) = (IndexKey::of(LedgerList::SplitsListed, recipient), LedgerId::Merchant(group));
        let captured_from = minute.start().plus_ms(-Timestamp(0).plus_days(SPLIT_SETTLEMENT_DAYS).0);
        let record_at = |place: u64| -> Result<Option<(u64, Record)>> {
            let Some(ordinal) = self.index().places(list, place..place + 1)?.first().copied() else { return Ok(None) };
            Ok(Some((ordinal, self.record(self.index().own(merchant, &[ordinal])?[0])?)))
        };
        let (mut low, mut high) = (0, self.index().page(&[list], &[], Slice::of_all(0, 0))?.0);
        while low < high {
            let middle = low.midpoint(high);
            match record_at(middle)? {
                Some((_, record)) if record.effective_at < captured_from => low = middle + 1,
                _ => high = middle,
            }
        }
        let (mut count, mut seen) = (0, None);
        while let Some((ordinal, record)) = record_at(low)? {
            low += 1;
            if record.effective_at >= captured_from.plus_ms(60_000) {
                break;
            }
            if seen.replace(ordinal) != Some(ordinal) {
                count += self.splits_due_in(&record, (number, minute), end)?;
            }
        }
        let late = self.index().since(IndexKey::late_splits(recipient, minute), captured_from)?;
        for sequence in late.into_iter().filter(|sequence| *sequence < end) {
            count += self.splits_due_in(&self.record(sequence)?, (number, minute), end)?;
        }
        Ok(count)
    }

    /// How many splits of a recipient in one Record fall due in a minute, less what was
    /// anticipated.
    fn splits_due_in(
        &self,
        record: &Record,
        (number, minute): (RecipientNumber, Minute),
        end: Sequence,
    ) -> Result<u64> {
        let mut count = 0;
        for event in &record.events {
            let Event::CardCaptured { charge, terms, splits_due, .. } = event else { continue };
            let places = (0_u32..).zip(&terms.splits).filter(|(_, split)| split.recipient == number);
            let fell_due = places.filter(|_| *splits_due == minute).map(|(index, _)| index);
            let anticipated = self.anticipated(*charge, end)?;
            count += fell_due
                .filter(|index| !anticipated.contains(&SplitKey { charge: *charge, index: *index }))
                .count() as u64;
        }
        Ok(count)
    }

    /// The splits of a charge that were anticipated in the Records before `end`.
    fn anticipated(&self, charge: ObjectId, end: Sequence) -> Result<Vec<SplitKey>> {
        let mut found = Vec::new();
        for sequence in self.about(charge)?.into_iter().filter(|sequence| *sequence < end) {
            for event in self.record(sequence)?.events {
                if let Event::SplitsAnticipated { splits, .. } = event {
                    found.extend(splits.into_iter().map(|split| split.split));
                }
            }
        }
        Ok(found)
    }

    /// The number of the first item of a list that was created at `time` or later; past the last
    /// one when there is none. The items are in the order of their creation, but for milliseconds.
    fn first_since(
        &self,
        list: &[IndexKey],
        time: Timestamp,
        created_at: impl Fn(u64) -> Result<Timestamp>,
    ) -> Result<u64> {
        let nth = |range: Range<u64>, skip| self.index().page(list, &[], Slice::new(range, skip, 1));
        let (total, newest) = nth(0..u64::MAX, 0)?;
        let Some(newest) = newest.first() else { return Ok(u64::MAX) };
        // Items that are added from here on are left out, so that places stay as they are.
        let known = 0..newest.number + 1;
        let (mut low, mut high, mut found) = (0, total, u64::MAX);
        while low < high {
            let middle = low.midpoint(high);
            let (_, item) = nth(known.clone(), total - 1 - middle)?;
            let Some(item) = item.first() else { break };
            if created_at(item.number)? < time {
                low = middle + 1;
            } else {
                (high, found) = (middle, item.number);
            }
        }
        Ok(found)
    }

    pub(super) fn record(&self, sequence: Sequence) -> Result<Record> {
        records::record(&self.store, sequence)
    }
}
