//! Search over all merchants, by what people have in hand: an id or the beginning of a txid, a
//! reference of an institution or of a merchant's order, a document, a name, an e-mail, an amount,
//! a day, the end of a card number.
//!
//! A text may be several of these: what is found by each is in one answer. Values that are sealed
//! are found by keyed hashes; only the items that an answer shows are opened.

use std::collections::BTreeMap;

use actors::engine::{
    ChargeQuery, Engine, FoundKind, FoundRecords, PersonalValue, PlainValue, SearchKey, SoughtValue, Unavailable,
};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::object;
use ledger::tax_id;
use ledger::{AMOUNT_MAX, Centavos, Charge, ObjectId, Record, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;
use wire::cut_text::{named_record, record_name};
use wire::reais;
use wire::timestamp::PeriodLimit;

use crate::found_item::{FoundItem, charge_item, item_of, item_of_kind};
use crate::lists::{LISTS, ListFilter};
use crate::{Desk, DeskState, Operator, books};
use web::views::ledger::ledger_name;
use web::{Result, ok, query, refused, single};

/// Items of a kind that an answer shows.
const SHOWN_MAX: usize = 20;
/// Records that are read for the items of a kind whose items may have several Records.
const READ_MAX: usize = 200;
/// What is found by its amount without a value of the index, which has those of charges.
pub(crate) const BY_AMOUNT: [ItemKind; 4] =
    [ItemKind::Refunds, ItemKind::Disputes, ItemKind::Withdrawals, ItemKind::Cashouts];
/// Characters of the text, at most.
const TEXT_MAX: usize = 200;

/// Kinds of things that a search finds, in the order of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ItemKind {
    /// Charges of all merchants.
    Charges,
    /// Merchants of the platform.
    Merchants,
    /// Recipients of splits.
    Recipients,
    /// Refunds of charges.
    Refunds,
    /// Disputes of charges.
    Disputes,
    /// Withdrawals of recipients.
    Withdrawals,
    /// Cashouts of merchants.
    Cashouts,
    /// Subscriptions to plans.
    Subscriptions,
    /// Stored cards.
    Cards,
    /// Anticipations of recipients.
    Anticipations,
    /// Plans of merchants.
    Plans,
    /// API keys.
    ApiKeys,
    /// Entries that operators asked for.
    Entries,
    /// Webhook events.
    WebhookEvents,
    /// Records of the journal.
    Records,
    /// Ledgers by their names.
    Ledgers,
}

impl ItemKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a search found.
#[derive(Debug, Serialize, ToSchema)]
pub struct SearchResult {
    /// What was found, by kind. Kinds of which nothing was found are left out.
    pub groups: Vec<FoundGroup>,
}

/// What was found of one kind.
#[derive(Debug, Serialize, ToSchema)]
pub struct FoundGroup {
    /// `charges`, `merchants`, `recipients`, `refunds`, `disputes`, `withdrawals`, `cashouts`,
    /// `subscriptions`, `cards`, `anticipations`, `plans`, `api_keys`, `entries`, `webhook_events`,
    /// `records` or `ledgers`.
    #[schema(value_type = String, example = "charges")]
    #[serde(serialize_with = "kind_name")]
    pub kind: ItemKind,
    /// How many were found.
    pub total: usize,
    /// True when there may be more than `total`: where it would take too long, they are not
    /// counted.
    pub at_least: bool,
    /// True when there are others than `items`.
    pub more: bool,
    /// The newest of them, 20 at most.
    pub items: Vec<FoundItem>,
    /// Where there are others: the list of all of them, whose other filters narrow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/ops/lists/charges?q=1111")]
    pub list: Option<String>,
}

pub(crate) fn kind_name<S: serde::Serializer>(kind: &ItemKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// Finds by what people have in hand: a txid or its first 8 characters or more (8 are those of all
/// charges of some 65 seconds, 12 of a millisecond), any other id, an end-to-end id or another id
/// of an institution (NSU), a merchant's `reference`, CPF or CNPJ, beginnings of
/// words of a name, an e-mail, an amount, a day, the last four digits of a card. An amount or a day
/// finds refunds, disputes, withdrawals and cashouts among the newest 2,000 of each. Of several
/// parts (`maria 82,53`, `1111 2026-11-29`; words that stand together are one part, a name), what
/// has all of them is found, as by `q` of the lists. The newest 20 of each kind are shown, `list`
/// leads to all of them, and those of one part are counted; what stands inside of a word of a name
/// is not found.
#[utoipa::path(get, path = "/ops/search", operation_id = "search",
    params(("q" = String, Query, min_length = 1, max_length = 200, description = "What is looked for.", example = "82,53")),
    responses((status = 200, body = SearchResult)))]
pub async fn get(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let text = requested_text(&pairs)?;
    Ok(ok(search(&desk, &text).await?))
}

/// The text that is looked for, without blanks around it.
pub fn requested_text(pairs: &[(String, String)]) -> Result<String> {
    let text = single(pairs, "q")?.unwrap_or_default().trim().to_owned();
    let is_right = (1..=TEXT_MAX).contains(&text.chars().count());
    let message = || format!("q deve ter de 1 a {TEXT_MAX} caracteres");
    if is_right { Ok(text) } else { Err(refused("q", "wrong_length", message())) }
}

/// What a text leads to.
pub async fn search(desk: &Desk, text: &str) -> Result<SearchResult> {
    let mut groups = Groups::default();
    if let Some((kind, item)) = named(desk, text).await? {
        groups.add(kind, item);
        return Ok(groups.into_result(text));
    }
    if parts(text).len() > 1 {
        groups.take_lists(desk, text)?;
        return Ok(groups.into_result(text));
    }
    // A number alone may be an amount too.
    if let Some(at) = named_record(text).filter(|at| desk.engine.has_record(*at)) {
        groups.add(ItemKind::Records, FoundItem { id: record_name(at), ..FoundItem::default() });
    }
    if let Some(amount) = amount(text) {
        groups.take_objects(
            desk,
            &ChargeQuery { amount_from: Some(amount), amount_to: Some(amount), ..ChargeQuery::default() },
        )?;
    }
    for (kind, found) in desk.engine.search(&meanings(&desk.engine, text), read_of)? {
        groups.take(desk, kind, found)?;
    }
    if let Some(PeriodLimit { begin, end }) = day(text) {
        groups.take_day(desk, Timestamp(begin), Timestamp(end))?;
    }
    Ok(groups.into_result(text))
}

fn read_of(kind: FoundKind) -> usize {
    if kind == FoundKind::Charge { SHOWN_MAX } else { READ_MAX }
}

/// What an id or another exact name stands for.
async fn named(desk: &Desk, name: &str) -> Result<Option<(ItemKind, FoundItem)>> {
    if let Some(at) = name.strip_prefix('#').and_then(named_record) {
        let item = FoundItem { id: record_name(at), ..FoundItem::default() };
        return Ok(desk.engine.has_record(at).then_some((ItemKind::Records, item)));
    }
    if let Ok(ledger) = books::find(desk, name) {
        let id = ledger_name(&desk.engine, ledger);
        return Ok(Some((ItemKind::Ledgers, FoundItem { id, ..FoundItem::default() })));
    }
    if let Some(charge) = charge_of_split(desk, name)? {
        return Ok(Some((ItemKind::Charges, charge_item(desk, &charge)?)));
    }
    let Some(id) = ObjectId::parse(name) else { return Ok(None) };
    match item_of(desk, id)? {
        None => plan(desk, id).await,
        found => Ok(found),
    }
}

/// The merchant whose plan has this id. A plan has no Records of its own to lead to.
async fn plan(desk: &Desk, id: ObjectId) -> Result<Option<(ItemKind, FoundItem)>> {
    let group = desk.engine.ids().group(id);
    if desk.engine.merchant(group, |_| ()).is_none() {
        return Ok(None);
    }
    let found = desk.engine.read_merchant(group, move |books, _| books.plan(id).is_some()).await;
    // One of a merchant of another process may be a plan of that merchant.
    let is_plan = if let Err(Unavailable::Elsewhere(_)) = found { true } else { found? };
    Ok(is_plan.then(|| (ItemKind::Plans, FoundItem::of(desk, id))))
}

/// The charge of a split's id, which is the charge's txid with the place of the split behind it.
fn charge_of_split(desk: &Desk, name: &str) -> Result<Option<Charge>> {
    let Some((txid, place)) = name.split_once('-').filter(|(txid, _)| txid.len() == 32) else { return Ok(None) };
    let (Some(id), Ok(place)) = (ObjectId::parse(txid), place.parse::<usize>()) else { return Ok(None) };
    let charge = desk.engine.object::<Charge>(id)?;
    Ok(charge.filter(|charge| place < charge.terms.splits.len()))
}

/// The parts of a text: words that stand together are one, a name. Signs alone are none. A CPF or
/// CNPJ, and a text of more than eight, are one whole.
pub(crate) fn parts(text: &str) -> Vec<String> {
    const PARTS_MAX: usize = 8;
    if tax_id::kind(&tax_id::normalize(text)).is_some() {
        return Vec::new();
    }
    let mut parts: Vec<(bool, String)> = Vec::new();
    let is_sign = |part: &&str| part.eq_ignore_ascii_case("R$") || !part.contains(char::is_alphanumeric);
    for part in text.split_whitespace().filter(|part| !is_sign(part)) {
        let is_word = !part.contains(|letter: char| letter.is_numeric() || letter == '@');
        match parts.last_mut() {
            Some((true, name)) if is_word => *name = format!("{name} {part}"),
            _ => parts.push((is_word, part.to_owned())),
        }
    }
    if parts.len() > PARTS_MAX { Vec::new() } else { parts.into_iter().map(|(_, part)| part).collect() }
}

/// What a text may be, beside an id and a day.
pub(crate) fn meanings(engine: &Engine, text: &str) -> Vec<SoughtValue> {
    let plain = |value| SoughtValue::Plain(SearchKey::plain(value));
    let personal = |value| SoughtValue::Personal(vec![value]);
    let digits = text.replace('-', "").to_ascii_lowercase();
    let is_txid = digits.len() <= 32 && SearchKey::txid_prefix(&digits).is_some();
    let mut meanings: Vec<_> = is_txid.then_some(SoughtValue::Txid(digits)).into_iter().collect();
    meanings.extend(amount(text).map(|amount| plain(PlainValue::Amount(amount))));
    meanings.extend(last_four(text).map(|digits| plain(PlainValue::LastFour(digits))));
    let document = tax_id::normalize(text);
    if tax_id::kind(&document).is_some() {
        meanings.push(personal(PersonalValue::Document(document)));
    }
    meanings.push(personal(PersonalValue::Reference(text.to_owned())));
    if text.contains('@') {
        meanings.push(personal(PersonalValue::Email(text.to_owned())));
        return meanings;
    }
    if !text.contains(char::is_whitespace) {
        meanings.push(plain(PlainValue::Reference(text)));
    }
    let words = if text.contains(char::is_alphabetic) { engine.name_beginnings(text) } else { Vec::new() };
    if !words.is_empty() {
        meanings.push(SoughtValue::Personal(words));
    }
    meanings
}

/// An amount as people write it: `R$ 1.082,53`, `1082.53`, `1082`.
pub(crate) fn amount(text: &str) -> Option<Centavos> {
    let amount = ['.', ','].into_iter().find_map(|mark| reais::centavos(text, mark))?;
    (1..=AMOUNT_MAX.0).contains(&amount).then_some(Centavos(amount))
}

/// The last four digits of a card: `1111`, `**** 1111`.
pub(crate) fn last_four(text: &str) -> Option<u16> {
    let digits = text.trim_start_matches(['*', '•', ' ']);
    (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// A day in Sao Paulo: `2026-11-28`, `28/11/2026`.
pub(crate) fn day(text: &str) -> Option<PeriodLimit> {
    let turned = || {
        let mut parts = text.split('/');
        let [day, month, year] = [parts.next()?, parts.next()?, parts.next().filter(|year| year.len() == 4)?];
        Some(format!("{year}-{month:0>2}-{day:0>2}"))
    };
    let text = if text.contains('/') { turned()? } else { text.to_owned() };
    PeriodLimit::parse(&text).filter(|limit| limit.begin < limit.end)
}

/// What was found so far.
#[derive(Default)]
struct Groups(BTreeMap<ItemKind, FoundGroup>);

impl Groups {
    fn group(&mut self, kind: ItemKind) -> &mut FoundGroup {
        let empty = FoundGroup { kind, total: 0, at_least: false, more: false, items: Vec::new(), list: None };
        self.0.entry(kind).or_insert(empty)
    }

    /// Adds an item, once.
    fn add(&mut self, kind: ItemKind, item: FoundItem) {
        let group = self.group(kind);
        if group.items.iter().all(|known| known.id != item.id) {
            group.total += 1;
            group.items.push(item);
        }
    }

    /// Adds what Records make that have a value.
    fn take(&mut self, desk: &Desk, kind: FoundKind, found: FoundRecords) -> Result<()> {
        let FoundRecords { total, is_more, newest } = found;
        let read = newest.len();
        for (_, record) in &newest {
            for id in ids_of(&desk.engine, kind, record) {
                let found = match kind {
                    // What a search by a value of charges finds are charges.
                    FoundKind::Charge => {
                        item_of_kind(desk, ItemKind::Charges, id)?.map(|item| (ItemKind::Charges, item))
                    }
                    _ => item_of(desk, id)?,
                };
                found.into_iter().for_each(|(kind, item)| self.add(kind, item));
            }
        }
        if total > read || is_more {
            for kind in kinds_of(kind) {
                let group = self.group(*kind);
                if *kind == ItemKind::Charges {
                    group.total += total - read;
                }
                group.at_least |= is_more || *kind != ItemKind::Charges;
            }
        }
        Ok(())
    }

    /// Adds the newest charges of a day, and counts all of them.
    fn take_day(&mut self, desk: &Desk, from: Timestamp, to: Timestamp) -> Result<()> {
        let of_day = ChargeQuery { from: Some(from), to: Some(to), ..ChargeQuery::default() };
        let newest = desk.engine.newest_charges(&desk.engine.published(), &of_day, SHOWN_MAX)?;
        for (_, id) in newest.found {
            let charge: Charge = desk.engine.known_object(id)?;
            self.add(ItemKind::Charges, charge_item(desk, &charge)?);
        }
        self.count(ItemKind::Charges, desk.engine.charges_created(from, to)?, false);
        self.take_objects(desk, &of_day)
    }

    /// Adds what lists find by a text of several parts: the newest of each.
    fn take_lists(&mut self, desk: &Desk, text: &str) -> Result<()> {
        for list in LISTS {
            let filter = ListFilter::sought(desk, list, text, ChargeQuery::default())?;
            let (items, rest) = filter.newest(desk, &desk.engine.published(), SHOWN_MAX)?;
            items.into_iter().for_each(|item| self.add_listed(list.kind, item));
            self.count(list.kind, 0, !rest.is_empty());
        }
        Ok(())
    }

    /// Adds a thing of a list: with its Record only where it has no page of its own.
    fn add_listed(&mut self, kind: ItemKind, item: FoundItem) {
        let is_shown = matches!(kind, ItemKind::Cashouts | ItemKind::Anticipations);
        self.add(kind, FoundItem { record: item.record.filter(|_| is_shown), ..item });
    }

    /// Adds refunds, disputes, withdrawals and cashouts of an amount or a day, and counts those
    /// among the newest 2,000 of each.
    fn take_objects(&mut self, desk: &Desk, wanted: &ChargeQuery) -> Result<()> {
        for list in LISTS.into_iter().filter(|list| BY_AMOUNT.contains(&list.kind)) {
            let (items, total, more) = ListFilter::of(list, wanted.clone()).counted(desk, SHOWN_MAX)?;
            items.into_iter().for_each(|item| self.add_listed(list.kind, item));
            self.count(list.kind, total, more);
        }
        Ok(())
    }

    /// Takes in how many of a kind one way to search has found; another may have found more.
    fn count(&mut self, kind: ItemKind, total: usize, at_least: bool) {
        let group = self.group(kind);
        (group.total, group.at_least) = (group.total.max(total), group.at_least || at_least);
    }

    fn into_result(self, text: &str) -> SearchResult {
        let mut groups: Vec<_> = self.0.into_values().filter(|group| group.total > 0 || group.at_least).collect();
        for group in &mut groups {
            // Times are of one form, so their texts are in their order.
            group.items.sort_by(|one, other| other.created_at.cmp(&one.created_at));
            group.items.truncate(SHOWN_MAX);
            group.more = group.at_least || group.total > group.items.len();
            if group.more && LISTS.iter().any(|list| list.kind == group.kind) {
                let text: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
                group.list = Some(format!("/ops/lists/{}?q={text}", group.kind.name()));
            }
        }
        SearchResult { groups }
    }
}

/// What the Records make or are about that are found by a value and lead to things of a kind.
pub(crate) fn found_kinds(kind: ItemKind) -> &'static [FoundKind] {
    match kind {
        ItemKind::Charges => &[FoundKind::Charge, FoundKind::Act],
        ItemKind::Refunds | ItemKind::Disputes => &[FoundKind::Charge, FoundKind::Act, FoundKind::Merchant],
        ItemKind::Withdrawals | ItemKind::Anticipations => &[FoundKind::Recipient, FoundKind::Act, FoundKind::Merchant],
        ItemKind::Cashouts => &[FoundKind::Cashout, FoundKind::Act, FoundKind::Merchant],
        ItemKind::Subscriptions | ItemKind::Cards => &[FoundKind::Customer, FoundKind::Merchant],
        ItemKind::Recipients => &[FoundKind::Recipient],
        ItemKind::Merchants => &[FoundKind::Merchant],
        _ => &[],
    }
}

/// What Records of a kind lead to.
pub(crate) fn kinds_of(kind: FoundKind) -> &'static [ItemKind] {
    match kind {
        FoundKind::Charge | FoundKind::Act => &[ItemKind::Charges],
        FoundKind::Customer => &[ItemKind::Subscriptions, ItemKind::Cards],
        FoundKind::Recipient => &[ItemKind::Recipients],
        FoundKind::Cashout => &[ItemKind::Cashouts],
        FoundKind::Merchant => &[ItemKind::Merchants],
    }
}

/// The objects that a Record with a value is about.
pub(crate) fn ids_of(engine: &Engine, kind: FoundKind, record: &Record) -> Vec<ObjectId> {
    match kind {
        FoundKind::Recipient => engine.recipient_of(record).into_iter().collect(),
        FoundKind::Merchant => {
            record.owner.group().and_then(|group| engine.merchant_id(group).ok()).into_iter().collect()
        }
        _ => {
            let mut ids = Vec::new();
            record.events.iter().for_each(|event| object::each_in(event, |id| ids.push(id)));
            ids
        }
    }
}
