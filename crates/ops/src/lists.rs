//! Lists of the things of all merchants: charges, refunds, disputes and others, newest first or in
//! another order, by what a filter asks for; as JSON or as a file.
//!
//! The index lists the Records that made the things, and only these are read; charges are read back
//! from the journal. An order other than newest first is that of the newest [`SORTED_MAX`] things
//! of the filter.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use actors::engine::{
    ChargeQuery, FoundKind, NewestCharges, ObjectList, PlainValue, RecordList, SearchKey, SoughtValue, ValueSource,
    WaitingKind,
};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use books::cells::{Cell, Kind};
use books::table_file::{TableColumn, TableFormat, period_ptbr};
use futures_util::FutureExt;
use ledger::tax_id;
use ledger::{Centavos, Charge, Event, GroupNumber, LedgerId, ObjectId, Record, Timestamp};
use serde::Serialize;
use store::cut::{Cut, Position};
use utoipa::ToSchema;
use wire::case_folding::search_key;
use wire::cut_text::record_name;
use wire::timestamp::PeriodLimit;

use crate::charges::charge_query;
use crate::found_item::{FoundItem, anticipation_item, charge_item, item_of_kind};
use crate::item_flags::flags;
use crate::list_file::{READ_AT_ONCE, in_parts, list_file, requested_format, too_many};
use crate::queue::{QueueFilter, waiting};
use crate::search::{amount, day, found_kinds, ids_of, last_four, meanings, parts, requested_text};
use crate::subscriptions::with_plans;
use crate::wire_words::{FLAGS, METHOD_NAMES, heading, in_file, status_word};
use crate::{Desk, DeskState, ItemKind, Operator, merchants};
use web::cut::{NextBefore, next_before, requested_before};
use web::views::recipient::{find_recipient, open, recipient_id};
use web::{Language, Page, PathId, Result, not_found, ok, one_of, only, query, single};

/// Things of an answer, when it is not said how many.
const A_PAGE: u64 = 20;
/// Things that are put in another order than newest first, at most.
pub const SORTED_MAX: usize = 2_000;
/// Parts of a list that are looked through for them, at most: 2,000 Records each.
const SORTED_PARTS_MAX: usize = 10;

/// A list of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// Kind of the things; its name is the list's.
    pub kind: ItemKind,
    /// `None` for charges, which are read back from the journal.
    list: Option<ObjectList>,
    /// Words of the parameter `status`; none where things have no status.
    pub statuses: &'static [&'static str],
    /// Parameters of this list beside those of all.
    pub filters: &'static [&'static str],
}

const fn list(
    kind: ItemKind,
    list: ObjectList,
    statuses: &'static [&'static str],
    filters: &'static [&'static str],
) -> List {
    List { kind, list: Some(list), statuses, filters }
}

const MONEY: &[&str] = &["status", "amount_from", "amount_to"];
const DECIDED_ON: &[&str] = &["status", "amount_from", "amount_to", "flag"];
const OF_RECIPIENTS: &[&str] = &["status", "amount_from", "amount_to", "recipient", "recipient_id", "flag"];

/// All lists.
pub const LISTS: [List; 10] = [
    List {
        kind: ItemKind::Charges,
        list: None,
        statuses: &["pending", "CONCLUIDA", "RECUSADA", "cancelled"],
        filters: &["status", "payment_method", "amount_from", "amount_to", "recipient", "recipient_id", "flag"],
    },
    list(ItemKind::Refunds, ObjectList::Refunds, &["pending", "approved", "rejected", "failed"], DECIDED_ON),
    list(ItemKind::Disputes, ObjectList::Disputes, &["open", "accepted", "released", "reversed"], DECIDED_ON),
    list(ItemKind::Withdrawals, ObjectList::Withdrawals, &["pending", "approved", "rejected"], OF_RECIPIENTS),
    list(
        ItemKind::Anticipations,
        ObjectList::Anticipations,
        &[],
        &["amount_from", "amount_to", "recipient", "recipient_id"],
    ),
    list(ItemKind::Cashouts, ObjectList::Cashouts, &["in_processing", "processed", "failed"], MONEY),
    list(
        ItemKind::Subscriptions,
        ObjectList::Subscriptions,
        &["pending", "active", "past_due", "paused", "completed", "cancelled"],
        &["status"],
    ),
    list(ItemKind::Cards, ObjectList::Cards, &[], &[]),
    list(
        ItemKind::Recipients,
        ObjectList::Recipients,
        &["draft", "pending", "active", "rejected"],
        &["status", "named", "flag"],
    ),
    list(
        ItemKind::Merchants,
        ObjectList::Merchants,
        &["active", "suspended", "payouts_held", "closing", "closed"],
        &["status", "named"],
    ),
];

/// Parameters of every list. Newest first it goes on with `before`, in another order with `page`.
const OF_ALL: [&str; 8] = ["q", "merchant", "merchant_id", "from", "to", "order", "format", "per_page"];

/// Orders of a list. `largest` and `smallest` are by amount, and `status` by the order of its
/// words.
pub const ORDERS: [&str; 6] = ["newest", "oldest", "name", "status", "largest", "smallest"];

/// Which things of a list are asked for, and in which order: those that meet all that is given.
pub struct ListFilter {
    /// The list.
    pub list: List,
    /// One of [`ORDERS`].
    pub order: &'static str,
    query: ChargeQuery,
    /// Values of which one is looked for; none for all things.
    sought: Vec<SoughtValue>,
    /// The id of the one thing that is looked for.
    id: Option<ObjectId>,
    recipient: Option<String>,
    status: Option<&'static str>,
    /// A flag of what waits in the queue.
    flag: Option<&'static str>,
    /// The charges with this flag, where charges are listed.
    flagged: Option<BTreeSet<ObjectId>>,
    /// A part of the name, as it is compared.
    name: Option<String>,
}

/// Things of one answer or page.
pub struct ListPart {
    /// The things, in the order of the filter.
    pub items: Vec<FoundItem>,
    /// Newest first: where the list goes on; empty at its end.
    pub rest: Cut,
    /// In another order: the page, and how many things are in it.
    pub page: Option<(Page, u64)>,
    /// In another order: true where the filter has older things too, which are not in it.
    pub more: bool,
}

/// The list of a name; 404 when there is none.
pub fn named(name: &str) -> Result<List> {
    let found = LISTS.into_iter().find(|list| list.kind.name() == name);
    found.ok_or_else(not_found)
}

impl ListFilter {
    /// Reads the parameters of a list in a query. Errors: 400 `validation_failed`, also for one
    /// that the list does not have; 404 of a merchant or a recipient that does not exist.
    pub fn read(desk: &Desk, list: List, pairs: &[(String, String)]) -> Result<Self> {
        let has_amounts = list.filters.contains(&"amount_from");
        let order = one_of(pairs, "order", if has_amounts { &ORDERS } else { &ORDERS[..4] })?.unwrap_or(ORDERS[0]);
        let goes_on = if order == ORDERS[0] { "before" } else { "page" };
        only(pairs, &[list.filters, &OF_ALL[..], &[goes_on]].concat())?;
        let is_charges = list.list.is_none();
        let of_charges: Vec<_> = pairs.iter().filter(|(name, _)| is_charges || name != "status").cloned().collect();
        let query = charge_query(desk, &of_charges)?;
        let text = single(pairs, "q")?.map(|_| requested_text(pairs)).transpose()?;
        let flag = one_of(pairs, "flag", &FLAGS.names())?;
        let flagged = flag.filter(|_| is_charges).map(|flag| charges_with(desk, flag, query.group)).transpose()?;
        let recipient = query.recipient.and_then(|ledger| recipient_id(&desk.engine, ledger));
        let filter = match text {
            Some(text) => Self::sought(desk, list, &text, query)?,
            None => Self::of(list, query),
        };
        Ok(Self {
            order,
            recipient: recipient.map(|id| id.uuid().to_string()),
            status: one_of(pairs, "status", list.statuses)?,
            flag,
            flagged,
            name: single(pairs, "named")?.map(search_key),
            ..filter
        })
    }

    /// The filter of a text: the id of a thing of this kind, or parts that a thing must have all.
    /// A day, and an amount in lists that the index does not have by amount, narrow the query.
    pub(crate) fn sought(desk: &Desk, list: List, text: &str, query: ChargeQuery) -> Result<Self> {
        let mut filter = Self::of(list, query);
        if let Some(id) = ObjectId::parse(text).filter(|_| list.list.is_some())
            && item_of_kind(desk, list.kind, id)?.is_some()
        {
            let created = id.created_at();
            filter.narrow((created, created.plus_ms(1)));
            (filter.id, filter.query.group) = (Some(id), filter.query.group.or(Some(desk.engine.ids().group(id))));
            return Ok(filter);
        }
        let parts = match parts(text) {
            parts if parts.len() > 1 => parts,
            _ => vec![text.to_owned()],
        };
        let count = parts.len();
        let left: Vec<_> = parts.into_iter().filter(|part| !filter.takes(part, count == 1)).collect();
        filter.sought = match left.as_slice() {
            [] => Vec::new(),
            [only] => meanings(&desk.engine, only),
            several => vec![SoughtValue::All(several.iter().map(|part| meanings(&desk.engine, part)).collect())],
        };
        if count > 1 && !left.is_empty() {
            filter.sought.extend(meanings(&desk.engine, text));
        }
        Ok(filter)
    }

    /// Narrows the query by a day or an amount; false for other parts. A number without a comma, a
    /// point or a sign is an amount only where it stands alone, and has not the four digits by
    /// which cards are found.
    fn takes(&mut self, part: &str, is_alone: bool) -> bool {
        if let Some(PeriodLimit { begin, end }) = day(part) {
            self.narrow((Timestamp(begin), Timestamp(end)));
            return true;
        }
        let has_amounts = self.list.list.is_some() && self.list.filters.contains(&"amount_from");
        let is_document = tax_id::kind(&tax_id::normalize(part)).is_some();
        let is_amount = part.contains([',', '.', '$']) || (is_alone && last_four(part).is_none());
        let is_amount = is_amount && has_amounts && !is_document;
        let Some(amount) = amount(part).filter(|_| is_amount) else { return false };
        let ChargeQuery { amount_from, amount_to, .. } = &mut self.query;
        *amount_from = (*amount_from).max(Some(amount));
        *amount_to = Some(amount_to.map_or(amount, |most| most.min(amount)));
        true
    }

    fn narrow(&mut self, (begin, end): (Timestamp, Timestamp)) {
        let ChargeQuery { from, to, .. } = &mut self.query;
        *from = (*from).max(Some(begin));
        *to = Some(to.map_or(end, |to| to.min(end)));
    }

    /// Whether what is looked for stands in the Records of the things themselves.
    fn is_direct(&self) -> bool {
        matches!(self.list.kind, ItemKind::Charges | ItemKind::Recipients | ItemKind::Merchants)
    }

    /// What of a list meets a query, newest first.
    pub(crate) fn of(list: List, query: ChargeQuery) -> Self {
        let [order, ..] = ORDERS;
        let (sought, id, recipient, status, flag, flagged, name) = Default::default();
        Self { list, order, query, sought, id, recipient, status, flag, flagged, name }
    }

    /// The part of the list that a query asks for; `count` things when it does not say how many.
    pub async fn part(&self, desk: &Desk, pairs: &[(String, String)], count: u64) -> Result<ListPart> {
        let page = Page::read(pairs, count)?;
        if self.order == ORDERS[0] {
            let through = requested_before(pairs, &desk.engine.published())?;
            let (items, rest) = self.newest(desk, &through, page.count())?;
            let items = with_plans(desk, items).await;
            return Ok(ListPart { items, rest, page: None, more: false });
        }
        let (sorted, more) = self.sorted(desk)?;
        let total = sorted.len() as u64;
        let skipped = usize::try_from(page.skip()).unwrap_or(usize::MAX);
        let items = sorted.into_iter().skip(skipped).take(page.count()).collect();
        let items = with_plans(desk, items).await;
        Ok(ListPart { items, rest: desk.engine.published().begin(), page: Some((page, total)), more })
    }

    /// The newest things through a cut: so many, or fewer after 2,000 Records; and the Records that
    /// the list goes on with.
    pub(crate) fn newest(&self, desk: &Desk, through: &Cut, most: usize) -> Result<(Vec<FoundItem>, Cut)> {
        let (is_sought, kinds) = (!self.sought.is_empty(), found_kinds(self.list.kind));
        let list = match (self.list.list, &self.flagged) {
            (Some(list), _) if is_sought && !self.is_direct() => RecordList::Near(list, &self.sought, kinds),
            _ if is_sought => RecordList::With(&self.sought, kinds),
            (_, Some(charges)) => RecordList::Opening(charges),
            (Some(list), None) => RecordList::Of(list),
            (None, None) => {
                let NewestCharges { found, rest } = desk.engine.newest_charges(through, &self.query, most)?;
                let item = |(at, id)| Ok(made_at(at, charge_item(desk, &desk.engine.known_object(id)?)?));
                return Ok((found.into_iter().map(item).collect::<Result<_>>()?, rest));
            }
        };
        desk.engine.newest_objects((list, &self.query), through, most, |at, record| self.things(desk, at, record))
    }

    /// The newest `most` things of a filter by amount and time, among 2,000 Records of the list;
    /// how many there are, and whether there may be others.
    pub(crate) fn counted(&self, desk: &Desk, most: usize) -> Result<(Vec<FoundItem>, usize, bool)> {
        let Some(list) = self.list.list else { return Ok(Default::default()) };
        let total = std::cell::Cell::new(0);
        let look = |at, record: &Record| {
            total.set(total.get() + usize::from(self.made_id(list, record).is_some()));
            if total.get() > most { Ok(Vec::new()) } else { self.things(desk, at, record) }
        };
        let published = desk.engine.published();
        let (items, rest) =
            desk.engine.newest_objects((RecordList::Of(list), &self.query), &published, usize::MAX, look)?;
        Ok((items, total.get(), !rest.is_empty()))
    }

    /// The id of the thing that a Record made, if amount and time are asked for.
    fn made_id(&self, list: ObjectList, record: &Record) -> Option<ObjectId> {
        let (_, id) = record.events.iter().filter_map(ObjectList::made_by).find(|(made, _)| *made == list)?;
        let amount = record.events.iter().find_map(made_amount);
        let is_it = self.id.is_none_or(|own| own == id);
        (is_it && self.is_of_span(id) && amount.is_none_or(|amount| self.has_amount(amount))).then_some(id)
    }

    fn is_of_group(&self, desk: &Desk, id: ObjectId) -> bool {
        self.query.group.is_none_or(|group| desk.engine.ids().group(id) == group)
    }

    fn is_of_span(&self, id: ObjectId) -> bool {
        let (ChargeQuery { from, to, .. }, created) = (&self.query, id.created_at());
        from.is_none_or(|from| created >= from) && to.is_none_or(|to| created < to)
    }

    /// The things of the list that a Record made or, where values are looked for, is about, as far
    /// as they are asked for.
    fn things(&self, desk: &Desk, at: Position, record: &Record) -> Result<Vec<FoundItem>> {
        let ids: BTreeSet<_> = match (self.list.list, found_kinds(self.list.kind)) {
            (list, [kind, ..]) if list.is_none() || (self.is_direct() && !self.sought.is_empty()) => {
                let ids = ids_of(&desk.engine, *kind, record).into_iter();
                let is_wanted = |id: &_| self.is_of_group(desk, *id) && self.is_of_span(*id);
                ids.filter(|id| is_wanted(id) && is_current(desk, *kind, *id, record)).collect()
            }
            (Some(list), _) => {
                self.made_id(list, record).filter(|id| self.is_of_group(desk, *id)).into_iter().collect()
            }
            (None, _) => BTreeSet::new(),
        };
        let mut items = Vec::new();
        for id in ids {
            items.extend(self.thing(desk, id, record)?.map(|item| made_at(at, item)));
        }
        Ok(items)
    }

    /// The thing of an id, if it is one of the list and asked for.
    fn thing(&self, desk: &Desk, id: ObjectId, record: &Record) -> Result<Option<FoundItem>> {
        let item = match self.list.kind {
            ItemKind::Charges => {
                let owner = LedgerId::Merchant(desk.engine.ids().group(id));
                let charge = desk.engine.object::<Charge>(id)?;
                let charge = charge.filter(|charge| self.query.meets(owner, id, &charge.terms));
                charge.map(|charge| charge_item(desk, &charge)).transpose()?
            }
            ItemKind::Anticipations => anticipation_item(desk, record),
            kind => item_of_kind(desk, kind, id)?,
        };
        let Some(item) = item.filter(|item| self.wants(item)) else { return Ok(None) };
        let is_wanted = self.is_flagged(desk, id)? && (self.is_direct() || self.has_sought(desk, &item, record)?);
        Ok(is_wanted.then_some(item))
    }

    /// Whether a thing has what is looked for: in the Record that made it, in those about it or its
    /// charge, on its card, or in the registration of its recipient or merchant.
    fn has_sought(&self, desk: &Desk, item: &FoundItem, made_by: &Record) -> Result<bool> {
        if self.sought.is_empty() {
            return Ok(true);
        }
        let engine = &desk.engine;
        let id = |id: Option<&str>| id.and_then(ObjectId::parse);
        // A subscription has Records of each cycle, which say nothing of who pays it.
        let own = id(Some(&item.id)).filter(|_| item.card.is_none() && item.plan_id.is_none());
        let mut records = Vec::new();
        for about in own.into_iter().chain(id(item.charge.as_deref())) {
            records.extend(engine.history(about)?.map(|found| Ok(found?.1)).collect::<Result<Vec<_>>>()?);
        }
        let sources = std::iter::once(made_by).chain(&records).map(|record| engine.source(record));
        let mut sources = sources.collect::<Result<Vec<_>, _>>()?;
        let last_four = item.card.as_ref().and_then(|card| card.last4.parse().ok());
        sources.extend(last_four.map(|digits| ValueSource::plain(SearchKey::plain(PlainValue::LastFour(digits)))));
        if let Some((_, row)) = id(item.recipient_id.as_deref()).and_then(|id| find_recipient(engine, id)) {
            let profile = open(engine, &row, row.profiles.current());
            sources.push(engine.person(&profile.name, profile.document, profile.email));
        }
        if let Some(group) = id(item.merchant_id.as_deref()).map(|id| engine.ids().group(id)) {
            let sealed = engine.glance(group, |row| row.profiles.current().cloned()).flatten();
            let profile = merchants::profile(desk, group, sealed.as_ref());
            sources.push(engine.person(&profile.name, profile.document, None));
        }
        Ok(engine.have(&sources, &self.sought))
    }

    fn has_amount(&self, amount: Centavos) -> bool {
        let ChargeQuery { amount_from, amount_to, .. } = self.query;
        amount_from.is_none_or(|least| amount >= least) && amount_to.is_none_or(|most| amount <= most)
    }

    /// Whether a thing waits in the queue with the flag that is asked for.
    fn is_flagged(&self, desk: &Desk, id: ObjectId) -> Result<bool> {
        let Some(flag) = self.flag else { return Ok(true) };
        if let Some(charges) = &self.flagged {
            return Ok(charges.contains(&id));
        }
        let item = waiting(desk, id).map(|item| flags(desk, &item)).transpose()?;
        Ok(item.is_some_and(|(flags, _)| flags.contains(&flag)))
    }

    fn wants(&self, item: &FoundItem) -> bool {
        self.status.is_none_or(|status| item.status == Some(status))
            && self
                .recipient
                .as_ref()
                .is_none_or(|id| self.list.list.is_none() || item.recipient_id.as_ref() == Some(id))
            && self.has_amount(Centavos(item.amount.unwrap_or_default()))
            && self.name.as_ref().is_none_or(|part| search_key(item.name.as_deref().unwrap_or_default()).contains(part))
    }

    /// The newest [`SORTED_MAX`] things of the filter in its order, and whether there may be
    /// others.
    fn sorted(&self, desk: &Desk) -> Result<(Vec<FoundItem>, bool)> {
        let (mut all, mut rest) = (Vec::new(), desk.engine.published());
        for _ in 0..SORTED_PARTS_MAX {
            let (items, next) = self.newest(desk, &rest, SORTED_MAX.saturating_sub(all.len()))?;
            all.extend(items);
            rest = next;
            if rest.is_empty() || all.len() >= SORTED_MAX {
                break;
            }
        }
        match self.order {
            "oldest" => all.reverse(),
            "largest" => all.sort_by_key(|item| Reverse(item.amount)),
            "smallest" => all.sort_by_key(|item| item.amount),
            "status" => all.sort_by_key(|item| self.list.statuses.iter().position(|own| item.status == Some(own))),
            _ => all.sort_by_cached_key(|item| search_key(item.name.as_deref().unwrap_or_default())),
        }
        Ok((all, !rest.is_empty()))
    }

    /// All things, newest first, read a part at a time.
    fn all<'a>(&'a self, desk: &'a Desk) -> impl Iterator<Item = Result<FoundItem>> + 'a {
        let (mut items, mut through) = (Vec::new().into_iter(), desk.engine.published());
        std::iter::from_fn(move || {
            loop {
                if let Some(item) = items.next() {
                    return Some(Ok(item));
                }
                if through.is_empty() {
                    return None;
                }
                match self.newest(desk, &through, READ_AT_ONCE) {
                    Ok((next, rest)) => (items, through) = (next.into_iter(), rest),
                    Err(problem) => {
                        through = through.begin();
                        return Some(Err(problem));
                    }
                }
            }
        })
    }

    /// All things of the filter as a file.
    pub async fn file(&self, desk: &Arc<Desk>, format: TableFormat) -> Result<Response> {
        let ChargeQuery { from, to, .. } = &self.query;
        let period = period_ptbr(from.map(|from| from.0), to.map(|to| to.0));
        let (list, for_people) = (self.list, format != TableFormat::Csv);
        let (name, title) = (list.kind.name(), (heading(list.kind).text(Language::Portuguese), period));
        let shown = COLUMNS.into_iter().filter(|(column, _)| !for_people || has_column(list, column.0));
        let (columns, cells): (Vec<_>, Vec<_>) = shown.unzip();
        let row = |item: FoundItem| cells.iter().map(|cell| cell(&item, list.kind, for_people)).collect();
        if self.order == ORDERS[0] {
            let (mut all, row) = (self.all(desk), &row);
            let next_rows = || {
                let items: Result<Vec<_>, _> = all.by_ref().take(READ_AT_ONCE).collect();
                async move { Ok(with_plans(desk, items?).await.into_iter().map(row).collect()) }.boxed()
            };
            return list_file(desk, (format, name, title), &columns, next_rows).await;
        }
        let (rows, more) = self.sorted(desk)?;
        if more {
            let message = format!("um arquivo em outra ordem tem até {SORTED_MAX} itens: escolha um filtro menor");
            return Err(too_many("order", message));
        }
        let rows = with_plans(desk, rows).await.into_iter().map(|item| Ok(row(item)));
        list_file(desk, (format, name, title), &columns, in_parts(rows)).await
    }
}

/// The charges whose open refunds or disputes have a flag of the queue; `disputed` are all with an
/// open dispute. Error: 400 `too_many_items` as in the queue.
fn charges_with(desk: &Desk, flag: &'static str, group: Option<GroupNumber>) -> Result<BTreeSet<ObjectId>> {
    let filter = match flag {
        "disputed" => QueueFilter { group, kind: Some("dispute"), ..QueueFilter::default() },
        _ => QueueFilter { group, flag: Some(flag), ..QueueFilter::default() },
    };
    let items = filter.page(desk, usize::MAX)?.items.into_iter();
    let charges = items.filter_map(|item| match item.what {
        WaitingKind::Refund { charge, .. } | WaitingKind::Dispute { charge, .. } => Some(charge),
        _ => None,
    });
    Ok(charges.collect())
}

/// Whether a Record has the registration of a merchant or a recipient that is in force, so that
/// each is listed once.
fn is_current(desk: &Desk, kind: FoundKind, id: ObjectId, record: &Record) -> bool {
    let sealed = record.personal.as_ref();
    match kind {
        FoundKind::Recipient => {
            find_recipient(&desk.engine, id).is_some_and(|(_, row)| row.profiles.current() == sealed)
        }
        FoundKind::Merchant => {
            let is_current = desk.engine.glance(desk.engine.ids().group(id), |row| row.profiles.current() == sealed);
            is_current.unwrap_or_default()
        }
        _ => true,
    }
}

fn made_at(at: Position, item: FoundItem) -> FoundItem {
    FoundItem { record: Some(record_name(at)), ..item }
}

/// The amount that an event makes a thing with; `None` of other events.
fn made_amount(event: &Event) -> Option<Centavos> {
    match event {
        Event::RefundRequested { amount, .. }
        | Event::DisputeOpened { amount, .. }
        | Event::WithdrawalRequested { amount, .. }
        | Event::CashoutCreated { amount, .. } => Some(*amount),
        _ => None,
    }
}

/// Some things of a list.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct ObjectPage {
    /// The things, in the order that was asked for.
    items: Vec<FoundItem>,
    /// How many are in the order, where another order than newest first was asked for.
    total: Option<u64>,
    /// In another order: true where the filter has, or may have, older things than the newest
    /// 2,000, which alone are in the order. Else absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    more: bool,
    /// Newest first: `before` of the next, older things; absent at the end of the list. There may
    /// be more even after an empty page: one answer looks through 2,000 Records at most.
    next_before: Option<NextBefore>,
}

/// The charges, refunds, disputes, withdrawals, anticipations, cashouts, subscriptions, stored
/// cards or recipients of all merchants, or the merchants: those that meet all that is given,
/// newest first. A parameter that a list does not have is 400: each has `merchant_id`, `from` and
/// `to`. Another order is that of the newest 2,000 things of the filter, among 20,000 Records of
/// the list, and `more` says where there are others; a file in it has all, 2,000 at most, and one
/// newest first 100,000.
#[utoipa::path(get, path = "/ops/lists/{name}", operation_id = "list_objects",
    params(("name" = String, Path, pattern = "^(charges|refunds|disputes|withdrawals|anticipations|cashouts|subscriptions|cards|recipients|merchants)$", example = "refunds", description = "What is listed."),
        ("q" = Option<String>, Query, max_length = 200, description = "Only what has this: its id, or all parts of a text as `GET /ops/search` takes it, a document, a name, an e-mail, last four digits, an amount, a day and others. Refunds and disputes are found by their charge and its payer too, withdrawals and anticipations by their recipient, and all but charges, recipients and merchants by the name of their merchant. Merchants and recipients by their registration in force."),
        ("status" = Option<String>, Query, description = "Only what stands so, in the words of the list."),
        ("payment_method" = Option<String>, Query, pattern = "^(pix|credit_card|debit_card)$", description = "Only charges paid so."),
        ("merchant_id" = Option<String>, Query, format = "uuid", description = "Only of this merchant."),
        ("merchant" = Option<String>, Query, description = "The same, by its id or its name."),
        ("recipient_id" = Option<String>, Query, format = "uuid", description = "Only of this recipient: withdrawals, anticipations, charges with a split of it."),
        ("recipient" = Option<String>, Query, description = "The same, by its id or its name."),
        ("flag" = Option<String>, Query, description = "Only what waits in the queue with this flag (`GET /ops/queue`): refunds, disputes, withdrawals, recipients; charges whose refunds or disputes do, and with `disputed` all with an open dispute."),
        ("named" = Option<String>, Query, description = "Only merchants or recipients with this in their names, in any case, without accents."),
        ("from" = Option<String>, Query, description = "Created at this instant (RFC 3339) or on this day (`YYYY-MM-DD`, Sao Paulo), or later"),
        ("to" = Option<String>, Query, description = "Created before this instant, or on this day at the latest"),
        ("amount_from" = Option<u64>, Query, description = "This amount or more, centavos"),
        ("amount_to" = Option<u64>, Query, description = "This amount or less, centavos"),
        ("order" = Option<String>, Query, pattern = "^(newest|oldest|largest|smallest|name|status)$", description = "`newest` when absent; `largest` and `smallest` are by amount, `status` is by the order of its words."),
        ("format" = Option<String>, Query, pattern = "^(json|csv|csv-ptbr|xlsx)$", description = "`json` when absent."),
        ("before" = Option<String>, Query, description = "Newest first: only what Records before this one made, of each partition; `next_before` of the answer before.", example = "1000"),
        ("page" = Option<u64>, Query, description = "In another order: the page, from 1."), ("per_page" = Option<u64>, Query)),
    responses((status = 200, content((ObjectPage = "application/json"), (String = "text/csv"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 404)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(name): PathId, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let list = named(&name).or_else(|problem| only(&pairs, &OF_ALL).and(Err(problem)))?;
    let filter = ListFilter::read(&desk, list, &pairs)?;
    if let Some(format) = requested_format(&pairs)? {
        return filter.file(&desk, format).await;
    }
    let ListPart { items, rest, page, more } = filter.part(&desk, &pairs, A_PAGE).await?;
    Ok(ok(ObjectPage { items, total: page.map(|(_, total)| total), more, next_before: next_before(&rest) }))
}

/// The cell of a thing of a kind; true for the words of people, false for those of the interface.
type ItemCell = fn(&FoundItem, ItemKind, bool) -> Cell;

/// Columns of a list as a file. Programs get all of each list; people those that it can have.
const COLUMNS: [(TableColumn, ItemCell); 18] = [
    (("created_at", "Criado em", Kind::Instant), |item, _, _| instant(item.created_at.as_deref())),
    (("name", "Nome", Kind::Text), |item, _, _| Cell::optional(item.name.as_deref())),
    (("document", "Documento", Kind::Text), |item, _, _| Cell::optional(item.document.as_deref())),
    (("status", "Situação", Kind::Text), |item, kind, for_people| {
        Cell::optional(item.status.map(|status| in_file(for_people, status, status_word(kind, status))))
    }),
    (("payment_method", "Meio de pagamento", Kind::Text), |item, _, for_people| {
        Cell::optional(item.payment_method.map(|name| in_file(for_people, name, METHOD_NAMES.of(name))))
    }),
    (("amount", "Valor", Kind::Amount), |item, _, _| Cell::amount(item.amount)),
    (("fee", "Taxa", Kind::Amount), |item, _, _| Cell::amount(item.fee)),
    (("merchant", "Lojista", Kind::Text), |item, _, _| Cell::optional(item.merchant_name.as_deref())),
    (("reason", "Motivo", Kind::Text), |item, _, _| Cell::optional(item.reason.as_deref())),
    (("due_at", "Responder até", Kind::Instant), |item, _, _| instant(item.due_at.as_deref())),
    (("id", "ID", Kind::Text), |item, _, _| Cell::optional(Some(item.id.as_str()))),
    (("merchant_id", "ID do lojista", Kind::Text), |item, _, _| Cell::optional(item.merchant_id.as_deref())),
    (("payment_id", "Cobrança", Kind::Text), |item, _, _| Cell::optional(item.charge.as_deref())),
    (("recipient_id", "ID do recebedor", Kind::Text), |item, _, _| Cell::optional(item.recipient_id.as_deref())),
    (("record", "Registro", Kind::Text), |item, _, _| Cell::optional(item.record.as_deref())),
    (("plan", "Plano", Kind::Text), |item, _, _| Cell::optional(item.plan.as_deref())),
    (("next_charge_at", "Próxima cobrança", Kind::Instant), |item, _, _| instant(item.next_charge_at.as_deref())),
    (("card", "Cartão", Kind::Text), |item, _, _| {
        Cell::optional(item.card.as_ref().map(|card| format!("{} {}", card.brand, card.last4)))
    }),
];

fn instant(at: Option<&str>) -> Cell {
    at.and_then(PeriodLimit::parse).map_or(Cell::Empty, |at| Cell::Instant(at.begin))
}

/// Whether things of a list can have a column.
fn has_column(list: List, name: &str) -> bool {
    use ItemKind::{Anticipations, Cards, Cashouts, Charges, Disputes, Merchants, Refunds, Subscriptions, Withdrawals};
    let kind = list.kind;
    match name {
        "name" | "document" => kind != Cashouts,
        "plan" | "next_charge_at" => kind == Subscriptions,
        "card" => matches!(kind, Subscriptions | Cards),
        "status" => !list.statuses.is_empty(),
        "payment_method" => kind == Charges,
        "amount" => list.filters.contains(&"amount_from") || kind == Subscriptions,
        "fee" => matches!(kind, Cashouts | Anticipations),
        "merchant" | "merchant_id" => kind != Merchants,
        "payment_id" | "reason" => matches!(kind, Refunds | Disputes),
        "due_at" => kind == Disputes,
        "recipient_id" => matches!(kind, Withdrawals | Anticipations),
        "record" => matches!(kind, Cashouts | Anticipations),
        _ => true,
    }
}
