//! Responses that are not problems, and the query parameters of lists.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::{io, iter};

use actors::engine::{Engine, LedgerList, Slice};
use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, Query};
use axum::http::header::{CONTENT_TYPE, LINK};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use form_urlencoded::Serializer;
use futures_util::stream;
use ledger::{Labels, LedgerId, ObjectId, Timestamp};
use rust_decimal::Decimal;
use serde::{Serialize, Serializer as SerdeSerializer};
use store::Sequence;
use wire::timestamp::{PeriodLimit, with_milliseconds};

use super::json::Checker;
use super::problem::{Code, FieldError, Problem, Result, failed};

/// 201 with a body.
pub fn created(body: impl Serialize) -> Response {
    (StatusCode::CREATED, Json(body)).into_response()
}

/// 200 with a body.
pub fn ok(body: impl Serialize) -> Response {
    Json(body).into_response()
}

/// 200 with a page of a list whose items may be large, such as charges of ten thousand splits; see
/// [`in_parts`].
pub fn list_of<T: Serialize>(
    total: u64,
    page: Page,
    items: impl Iterator<Item = Result<T>> + Send + Unpin + 'static,
) -> Result<Response> {
    let Page { page: number, per_page } = page;
    let pages = page.pages(total);
    in_parts(items, format!(r#"],"total":{total},"page":{number},"pages":{pages},"per_page":{per_page}}}"#))
}

/// As [`list_of`], with the address of the items that follow, where there are some.
pub fn list_on<T: Serialize>(
    total: u64,
    page: Page,
    next: Option<String>,
    items: impl Iterator<Item = Result<T>> + Send + Unpin + 'static,
) -> Result<Response> {
    let Some(address) = next else { return list_of(total, page, items) };
    let Page { page: number, per_page } = page;
    let (pages, text) = (page.pages(total), serde_json::to_string(&address).unwrap_or_default());
    let end = format!(r#"],"total":{total},"page":{number},"pages":{pages},"per_page":{per_page},"next":{text}}}"#);
    Ok(linked(in_parts(items, end)?, &address))
}

/// The answer with the address of the items that follow in its `Link` (RFC 8288).
pub fn linked(mut response: Response, next: &str) -> Response {
    if let Ok(link) = HeaderValue::from_str(&format!("<{next}>; rel=\"next\"")) {
        response.headers_mut().insert(LINK, link);
    }
    response
}

/// 200 with items of a list that has no pages: `{items, total?, next?}`, with `Link` where there is
/// `next`.
pub fn first_of<T: Serialize>(
    total: Option<u64>,
    next: Option<String>,
    items: impl Iterator<Item = Result<T>> + Send + Unpin + 'static,
) -> Result<Response> {
    #[serde_with::skip_serializing_none]
    #[derive(Serialize)]
    struct Rest<'a> {
        total: Option<u64>,
        next: Option<&'a str>,
    }
    let answer = items_of(items, &Rest { total, next: next.as_deref() })?;
    Ok(next.iter().fold(answer, |answer, next| linked(answer, next)))
}

/// 200 with all items of a list that has no pages, written as those of [`list_of`], and what else
/// its wrapper has: an object.
pub fn items_of<T: Serialize>(
    items: impl Iterator<Item = Result<T>> + Send + Unpin + 'static,
    others: &impl Serialize,
) -> Result<Response> {
    let others = serde_json::to_string(others).unwrap_or_default();
    let others = others.trim_start_matches('{');
    in_parts(items, format!("]{}{others}", if others == "}" { "" } else { "," }))
}

/// A list, and the fields after it. Items beyond [`AT_ONCE`] are read and written one at a time,
/// when the connection has room, so that a list does not take the memory of all its items. An item
/// that can't be read is a failure; beyond [`AT_ONCE`] it breaks the answer off.
fn in_parts<T: Serialize>(
    items: impl Iterator<Item = Result<T>> + Send + Unpin + 'static,
    end: String,
) -> Result<Response> {
    let mut items = items.map(|item| serde_json::to_vec(&item?).map_err(failed));
    let mut begin = [br#"{"items":["#, items.next().transpose()?.unwrap_or_default().as_slice()].concat();
    while begin.len() < AT_ONCE
        && let Some(item) = items.next().transpose()?
    {
        begin.push(b',');
        begin.extend_from_slice(&item);
    }
    let others = items.map(|item| item.map(|item| [b",", item.as_slice()].concat()));
    let parts = iter::once(Ok(begin)).chain(others).chain(iter::once(Ok(end.into_bytes())));
    let parts = parts.map(|part| part.map_err(|problem| io::Error::other(problem.code().row().title)));
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(stream::iter(parts))).into_response())
}

/// Bytes of a list that are made before the answer begins.
const AT_ONCE: usize = 1 << 20;

/// A time in RFC 3339, milliseconds, `Z`.
pub fn time(at: Timestamp) -> String {
    with_milliseconds(at.0)
}

/// Writes a decimal as a JSON number, without passing through a float.
pub fn decimal<S: SerdeSerializer>(value: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    let number: serde_json::Number = value.to_string().parse().map_err(serde::ser::Error::custom)?;
    number.serialize(serializer)
}

/// Query of a list: the page, the items a page (20 by default), and a text where the list can be
/// searched. Newest items come first. A page past the end is empty.
#[derive(Debug)]
pub struct PageQuery {
    /// Which part of the list.
    pub page: Page,
    /// Text to look for; empty for everything.
    pub search: String,
    /// Cursors of the list.
    pub cursors: Cursors,
    /// The labels that the items are to have, of lists whose items may have some.
    pub labels: LabelFilter,
}

impl PageQuery {
    /// The part of a list of a ledger's Records that is asked for: the sequences between the
    /// cursors, the items before the page, and how many it has. Error: as of [`Cursors::range`].
    pub fn part(&self, engine: &Engine, ledger: LedgerId) -> Result<Slice> {
        Ok(Slice::new(self.cursors.range(engine, ledger)?, self.page.skip(), self.page.count()))
    }

    /// The items before those to read, and how many to read: those of the page, or all, where they
    /// are looked through.
    pub fn to_read(&self, is_filtered: bool) -> (u64, usize) {
        if is_filtered { (0, FILTERED_MAX) } else { (self.page.skip(), self.page.count()) }
    }

    /// The page of what [`PageQuery::to_read`] said, and the total: without a filter all of it.
    /// With one, which a parameter names, what it admits. Error: 400 where more than these would
    /// have to be looked through.
    pub fn page_of<T>(
        &self,
        filter: Option<&'static str>,
        (total, items): (u64, Vec<T>),
        admits: impl Fn(&T) -> bool,
    ) -> Result<(u64, Vec<T>), Problem> {
        let Some(name) = filter else { return Ok((total, items)) };
        require_few(name, total)?;
        let found: Vec<T> = items.into_iter().filter(admits).collect();
        let (total, skip) = (found.len() as u64, usize::try_from(self.page.skip()).unwrap_or(usize::MAX));
        Ok((total, found.into_iter().skip(skip).take(self.page.count()).collect()))
    }

    /// 200 with the page, whose last item is `last`, and the address of what follows, if anything
    /// does; see [`in_parts`].
    pub fn answer<T: Serialize>(
        &self,
        total: u64,
        last: Option<String>,
        items: impl Iterator<Item = Result<T>> + Send + Unpin + 'static,
    ) -> Result<Response> {
        list_on(total, self.page, self.cursors.next(total, self.page, last), items)
    }
}

/// Parameters of a list in pages.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the description of the interface reads its names")]
pub struct PageParams {
    page: Option<u64>,
    per_page: Option<u64>,
}

/// Parameters of a list that takes cursors.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the description of the interface reads its names")]
pub struct CursorParams {
    limit: Option<u64>,
    before: Option<String>,
    after: Option<String>,
}

/// Parameters of a list without pages, which takes cursors.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the description of the interface reads its names")]
pub struct WholeListParams {
    limit: Option<u64>,
    /// As `limit`, which counts where both come
    #[param(minimum = 1, maximum = 100)]
    per_page: Option<u64>,
    before: Option<String>,
    after: Option<String>,
}

/// Parameters of a list of a period.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the description of the interface reads its names")]
pub struct PeriodParams {
    /// Created at this instant (RFC 3339) or on this day (`YYYY-MM-DD`, Sao Paulo), or later
    from: Option<String>,
    /// Created before this instant, or on this day at the latest
    to: Option<String>,
}

/// Parameters of a list of things with labels.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "the description of the interface reads its names")]
pub struct LabelParams {
    /// With this `reference`, exactly
    reference: Option<String>,
    /// `metadata[key]=value`: with this value of the key, exactly; of all keys that are given
    #[param(style = DeepObject, explode, example = json!({"loja": "azul"}))]
    metadata: Option<HashMap<String, String>>,
}

/// Cursors of a list's query: `before` and `after` name items, of which the older or the newer ones
/// are listed, newest first. What is made meanwhile moves none of them.
#[derive(Debug, Default)]
pub struct Cursors {
    after: Option<String>,
    before: Option<String>,
    /// The most items of an answer, where the query says it.
    limit: Option<usize>,
    /// The same of a list without pages, where the query has no `limit`.
    per_page: Option<usize>,
    /// The address up to the cursor by which one goes on, without page.
    address: String,
}

/// All items of a list, or the first of them.
pub type Items<T> = Box<dyn Iterator<Item = Result<T>> + Send + Unpin>;

/// Part of a list between cursors, where one Record may have several items: those of the numbers in
/// `range`, less the `newer` first and the `older` last ones.
#[derive(Clone, Debug)]
pub struct ListSpan {
    /// Numbers of the Records.
    pub range: Range<u64>,
    /// How many of the first items are not in the part.
    pub newer: u64,
    older: u64,
}

impl ListSpan {
    /// How many items it has, of all that the range has.
    pub fn total(&self, in_range: u64) -> u64 {
        in_range.saturating_sub(self.newer + self.older)
    }

    /// Leaves out of a page those of its items that are not in the part; `skip` items of the part
    /// stand before the page.
    pub fn cut<T>(&self, page: &mut Vec<T>, in_range: u64, skip: u64) {
        page.truncate(usize::try_from(self.total(in_range).saturating_sub(skip)).unwrap_or(usize::MAX));
    }
}

impl Cursors {
    /// Reads `after`, `before` and `limit` of a request.
    pub fn read(parts: &Parts) -> Result<Self> {
        Self::going_on(parts, "before")
    }

    /// As [`Cursors::read`], of a list that goes on by `before`, or, oldest first, by `after`.
    pub fn going_on(parts: &Parts, by: &str) -> Result<Self> {
        let pairs = query(parts)?;
        let named = |name| Ok::<_, Problem>(single(&pairs, name)?.map(str::to_owned));
        let count = |name| Ok::<_, Problem>(number(&pairs, name, 1..=100)?.map(|count| count as usize));
        let (limit, per_page) = (count("limit")?, count("per_page")?);
        let rest = pairs.iter().filter(|(name, _)| ![by, "page"].contains(&name.as_str()));
        let rest = Serializer::new(String::new()).extend_pairs(rest).finish();
        let rest = if rest.is_empty() { rest } else { format!("{rest}&") };
        let address = format!("{}?{rest}{by}=", parts.uri.path());
        Ok(Self { after: named("after")?, before: named("before")?, limit, per_page, address })
    }

    /// Whether the query has one of them.
    fn are_given(&self) -> bool {
        self.limit.is_some() || self.after.is_some() || self.before.is_some()
    }

    /// Whether the query asks for a part of a list without pages.
    pub fn are_given_to_whole_list(&self) -> bool {
        self.are_given() || self.per_page.is_some()
    }

    /// What `find` gives of the items of `after` and `before`. Error: 400 for one that it does not
    /// know.
    pub fn places<T>(&self, find: impl Fn(&str) -> Result<Option<T>>) -> Result<[Option<T>; 2]> {
        let place = |name, id: &Option<String>| {
            let place = id.as_deref().map(|id| find(id)?.ok_or_else(|| unknown_item(name)));
            place.transpose()
        };
        Ok([place("after", &self.after)?, place("before", &self.before)?])
    }

    /// The sequences of a ledger's Records between the cursors. Error: 400 for an item that the
    /// ledger's owner does not have.
    pub fn range(&self, engine: &Engine, ledger: LedgerId) -> Result<Range<u64>> {
        let [after, before] = self.places(|id| place_of(engine, ledger, id))?;
        Ok(after.map_or(0, |(sequence, _)| sequence.0 + 1)..before.map_or(u64::MAX, |(sequence, _)| sequence.0))
    }

    /// The ordinals of the Records of `after` and `before`. Error: as of [`Cursors::range`].
    pub fn ordinals(&self, engine: &Engine, ledger: LedgerId) -> Result<[Option<u64>; 2]> {
        let places = self.places(|id| place_of(engine, ledger, id))?;
        Ok(places.map(|place| place.map(|(_, ordinal)| ordinal)))
    }

    /// The part of a list in `range` that is between the cursors. `find` gives the number of an
    /// item's Record and the item's index in it; `listed` gives the indexes of a Record's items
    /// that are listed now. Newest first is from the highest index down. Error: 400 for an item
    /// that `find` does not know.
    pub fn span(
        &self,
        range: Range<u64>,
        find: impl Fn(&str) -> Result<Option<(u64, u32)>>,
        listed: impl Fn(u64) -> Result<Vec<u32>>,
    ) -> Result<ListSpan> {
        let [after, before] = self.places(find)?;
        let mut span = ListSpan { range, newer: 0, older: 0 };
        if let Some((number, index)) = before.filter(|(number, _)| *number < span.range.end) {
            span.range.end = number + 1;
            span.newer = listed(number)?.into_iter().filter(|one| *one >= index).count() as u64;
        }
        if let Some((number, index)) = after.filter(|(number, _)| *number >= span.range.start) {
            span.range.start = number;
            span.older = listed(number)?.into_iter().filter(|one| *one <= index).count() as u64;
        }
        Ok(span)
    }

    /// The items of a whole list in memory, newest first, that are between the cursors. Error: 400
    /// for an item that is not among them.
    pub fn between<T>(&self, items: Vec<T>, id: impl Fn(&T) -> ObjectId) -> Result<Vec<T>> {
        let place = |wanted| items.iter().position(|item| id(item) == wanted);
        let [after, before] = self.places(|wanted| Ok(ObjectId::parse(wanted).and_then(place)))?;
        let skipped = before.map_or(0, |place| place + 1);
        let end = after.unwrap_or(items.len());
        Ok(items.into_iter().take(end).skip(skipped).collect())
    }

    /// The objects of a filtered list that are between the cursors, also where an item of the
    /// cursors no longer meets the filter. Error: as of [`Cursors::range`].
    pub fn of_filtered(&self, engine: &Engine, ledger: LedgerId, ids: Vec<ObjectId>) -> Result<Vec<ObjectId>> {
        let range = self.range(engine, ledger)?;
        if range == (0..u64::MAX) {
            return Ok(ids);
        }
        let mut between = Vec::new();
        for id in ids {
            let place = engine.place_of(ledger, id)?;
            between.extend(place.is_some_and(|(sequence, _)| range.contains(&sequence.0)).then_some(id));
        }
        Ok(between)
    }

    /// The items of a list that has no pages: all of them, or the first `limit` or `per_page` with
    /// the address of what follows, which names an item by `id`.
    pub fn first<T: Send + Unpin + 'static, E>(
        &self,
        items: impl Iterator<Item = Result<T, E>> + Send + Unpin + 'static,
        id: impl Fn(&T) -> String,
    ) -> Result<(Items<T>, Option<String>)>
    where
        Problem: From<E>,
    {
        let mut items = items.map(|item| item.map_err(Problem::from));
        let Some(limit) = self.limit.or(self.per_page) else { return Ok((Box::new(items), None)) };
        let mut first = items.by_ref().take(limit + 1).collect::<Result<Vec<_>, _>>()?;
        let has_more = first.len() > limit;
        first.truncate(limit);
        let last = first.last().filter(|_| has_more).map(id);
        Ok((Box::new(first.into_iter().map(Ok)), last.map(|last| self.address.clone() + &last)))
    }

    /// The address of the items after this page, whose last item is `last`; `None` where the query
    /// does not ask for it and at the end of the list.
    pub fn next(&self, total: u64, page: Page, last: Option<String>) -> Option<String> {
        let has_more = total > page.skip().saturating_add(page.per_page);
        last.filter(|_| has_more && self.are_given()).map(|last| self.address.clone() + &last)
    }
}

fn place_of(engine: &Engine, ledger: LedgerId, id: &str) -> Result<Option<(Sequence, u64)>> {
    ObjectId::parse(id).map_or(Ok(None), |id| Ok(engine.place_of(ledger, id)?))
}

fn unknown_item(name: &'static str) -> Problem {
    wrong(name, "not_found", format!("{name} deve ser o id de um item da conta"))
}

/// Which items of a list are asked for in its query.
#[derive(Debug)]
pub struct Filter {
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    /// The word that the items are to have; every item has one of those that the list knows.
    pub word: Option<&'static str>,
    /// The labels that the items are to have, of lists whose items may have some.
    pub labels: LabelFilter,
}

/// Which labels the items of a list are to have: all that are given.
#[derive(Debug, Default)]
pub struct LabelFilter {
    /// The reference, exactly.
    pub reference: Option<String>,
    metadata: Vec<(String, String)>,
}

impl LabelFilter {
    /// Reads `reference`, trimmed as it is stored, and `metadata[key]` for each key.
    pub fn read(pairs: &[(String, String)]) -> Result<Self> {
        let mut metadata: Vec<(String, String)> = Vec::new();
        for (name, value) in pairs {
            let Some(key) = name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']')) else { continue };
            if metadata.iter().any(|(known, _)| known == key) {
                return Err(wrong("metadata", "ambiguous", "cada chave de metadata só pode vir uma vez".to_owned()));
            }
            metadata.push((key.to_owned(), value.clone()));
        }
        Ok(Self { reference: single(pairs, "reference")?.map(|text| text.trim().to_owned()), metadata })
    }

    /// Whether no label is given.
    pub fn is_empty(&self) -> bool {
        self.parameter().is_none()
    }

    /// The parameter by which a list of too many items is refused; `None` where no label is given.
    pub fn parameter(&self) -> Option<&'static str> {
        let metadata = (!self.metadata.is_empty()).then_some("metadata");
        self.reference.as_ref().map(|_| "reference").or(metadata)
    }

    /// Whether the labels of something meet it, which may have none.
    pub fn admits_some(&self, labels: Option<&Labels>) -> bool {
        labels.map_or_else(|| self.is_empty(), |labels| self.admits(labels))
    }

    /// Whether labels meet it.
    pub fn admits(&self, labels: &Labels) -> bool {
        let is_right = |(key, value): &(String, String)| labels.metadata.get(key) == Some(value);
        (self.reference.is_none() || self.reference == labels.reference) && self.metadata.iter().all(is_right)
    }
}

/// The most items that are looked through for those of a word, which the index does not know.
pub const FILTERED_MAX: usize = 2_000;

impl Filter {
    /// Reads `from`, `to`, and the parameter that names one of the words that the list knows.
    pub fn read(pairs: &[(String, String)], name: &'static str, words: &[&'static str]) -> Result<Self> {
        let mut check = Checker::new();
        let word = single(pairs, name)?.and_then(|text| {
            let message = || format!("{name} deve ser {}", words.join(", "));
            words.iter().find(|word| **word == text).copied().or_else(|| check.refuse(name, "unknown", message()))
        });
        let (from, to) = between(&mut check, pairs)?;
        check.finish()?;
        Ok(Self { from, to, word, labels: LabelFilter::read(pairs)? })
    }

    /// Whether the items of the period are looked through: the index knows neither words nor
    /// labels.
    pub fn looks_through(&self) -> bool {
        self.word.is_some() || !self.labels.is_empty()
    }

    /// The part of a list that was created in the time that is asked for.
    pub fn range(&self, engine: &Engine, list: LedgerList, ledger: LedgerId) -> Result<Range<u64>> {
        Ok(engine.range(list, ledger, (self.from, self.to))?)
    }

    /// Which of the items in the range to read: those of the page, or all, if they are to be looked
    /// through.
    pub fn to_read(&self, page: Page) -> (u64, usize) {
        if self.looks_through() { (0, FILTERED_MAX) } else { (page.skip(), page.count()) }
    }

    /// Refuses a filter over more items than are looked through. `name` is the parameter of its
    /// word.
    pub fn check(&self, name: &'static str, total: u64) -> Result<()> {
        let name = self.labels.parameter().unwrap_or(name);
        if self.looks_through() { require_few(name, total) } else { Ok(()) }
    }
}

/// Refuses to filter by a parameter more items than are looked through.
pub fn require_few(name: &'static str, total: u64) -> Result<()> {
    if total <= FILTERED_MAX as u64 {
        return Ok(());
    }
    let message =
        format!("{name} só filtra até {FILTERED_MAX} itens, e há {total}: escolha um período menor com from e to");
    Err(wrong(name, "too_many_items", message))
}

/// The times of `from` and `to`: an instant, or a day from its beginning and to its end.
pub fn between(check: &mut Checker, pairs: &[(String, String)]) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let mut named = |name| {
        let text = single(pairs, name)?;
        Ok::<_, Problem>(text.and_then(|text| {
            let message = format!("{name} deve ser uma data (AAAA-MM-DD) ou um instante RFC 3339");
            PeriodLimit::parse(&with_offset(text)).or_else(|| check.refuse(name, "invalid_time", message))
        }))
    };
    let (from, to) = (named("from")?, named("to")?);
    if from.zip(to).is_some_and(|(from, to)| from.begin > to.begin && from.begin >= to.end) {
        check.refuse::<()>("to", "before_from", "to não pode ser anterior a from");
    }
    Ok((from.map(|from| Timestamp(from.begin)), to.map(|to| Timestamp(to.end))))
}

/// An instant whose offset has a blank in place of its `+`: that is what an unescaped `+` of a
/// query reads as.
fn with_offset(text: &str) -> Cow<'_, str> {
    let is_offset = |offset: &str| offset.len() == 5 && offset.as_bytes()[2] == b':';
    match text.rsplit_once(' ') {
        Some((before, offset)) if is_offset(offset) && before.contains(['T', 't', ' ']) => {
            Cow::Owned(format!("{before}+{offset}"))
        }
        _ => Cow::Borrowed(text),
    }
}

/// Refuses parameters that are not among the names: where a misspelled one would give another
/// answer than was asked for. The name `x[]` stands for `x[key]` with any key.
pub fn only(pairs: &[(String, String)], names: &[&str]) -> Result<()> {
    let is_known = |name: &str| {
        let keyed = name.strip_suffix(']').and_then(|name| name.split_once('['));
        names.contains(&name) || keyed.is_some_and(|(name, _)| names.iter().any(|known| *known == format!("{name}[]")))
    };
    let unknown = pairs.iter().map(|(name, _)| name).filter(|name| !is_known(name));
    let mut unknown: Vec<_> = unknown.map(|name| name.chars().take(NAME_SHOWN_MAX).collect::<String>()).collect();
    unknown.sort_unstable();
    unknown.dedup();
    if unknown.is_empty() {
        return Ok(());
    }
    let known = if names.is_empty() { "nenhum".to_owned() } else { names.join(", ") };
    let error = |name: String| {
        let message = format!("parâmetro desconhecido: {name}; conhecidos: {known}");
        FieldError { field: name, code: "unknown_parameter", message: message.into() }
    };
    let detail = format!("Unknown in the query: {}.", unknown.join(", "));
    let errors: Vec<_> = unknown.into_iter().take(UNKNOWN_SHOWN_MAX).map(error).collect();
    let message = errors[0].message.clone();
    Err(Problem::new(Code::ValidationFailed).message(message).detail(detail).errors(errors))
}

/// How many characters of an unknown parameter's name are repeated, and how many such names.
const NAME_SHOWN_MAX: usize = 64;
const UNKNOWN_SHOWN_MAX: usize = 20;

/// A checked page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// From 1.
    pub page: u64,
    /// 1 to 100.
    pub per_page: u64,
}

impl<S: Sync> FromRequestParts<S> for PageQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let pairs = query(parts)?;
        let search = single(&pairs, "search")?.unwrap_or_default().to_owned();
        let (cursors, labels) = (Cursors::read(parts)?, LabelFilter::read(&pairs)?);
        Ok(Self { page: Page::read(&pairs, 20)?, search, cursors, labels })
    }
}

/// The parameters that each operation of a listener takes in its query, by method and path.
pub type QueryNames = HashMap<(Method, String), Vec<String>>;

/// Refuses parameters that the operation of a request does not take. Where no names were laid into
/// the request, as in one from another process, nothing is refused; nor for an operation without
/// names, which refuses them itself.
pub fn only_known(parts: &Parts) -> Result<()> {
    if parts.uri.query().is_none_or(str::is_empty) {
        return Ok(());
    }
    let (path, names) = (parts.extensions.get::<MatchedPath>(), parts.extensions.get::<Arc<QueryNames>>());
    let Some((path, names)) = path.zip(names) else { return Ok(()) };
    let method = if parts.method == Method::HEAD { Method::GET } else { parts.method.clone() };
    let Some(known) = names.get(&(method, path.as_str().to_owned())) else { return Ok(()) };
    only(&query(parts)?, &known.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The parameters of a query, in order.
pub fn query(parts: &Parts) -> Result<Vec<(String, String)>> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
    pairs.map(|Query(pairs)| pairs).map_err(|_| Problem::new(Code::ValidationFailed))
}

/// The value of a parameter that is a number of a range; `None` if it does not come.
pub fn number(pairs: &[(String, String)], name: &'static str, range: RangeInclusive<u64>) -> Result<Option<u64>> {
    let Some(text) = single(pairs, name)? else { return Ok(None) };
    let number = text.parse().ok().filter(|number| range.contains(number));
    let (min, max) = range.into_inner();
    // A number of a position has no end that anybody means.
    let message = || match max > u64::MAX >> 2 {
        true => format!("{name} deve ser um número a partir de {min}"),
        false => format!("{name} deve ser um número de {min} a {max}"),
    };
    number.map(Some).ok_or_else(|| wrong(name, "out_of_range", message()))
}

/// The value of a parameter that may come once.
pub fn single<'a>(pairs: &'a [(String, String)], name: &'static str) -> Result<Option<&'a str>> {
    let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(wrong(name, "ambiguous", format!("{name} só pode vir uma vez"))),
    }
}

/// The value of a parameter that may come once and is one of these words.
pub fn one_of(pairs: &[(String, String)], name: &'static str, words: &[&'static str]) -> Result<Option<&'static str>> {
    let Some(text) = single(pairs, name)? else { return Ok(None) };
    let word = words.iter().find(|word| **word == text).copied();
    let message = || format!("{name} deve ser {}", words.join(" ou "));
    word.map(Some).ok_or_else(|| wrong(name, "unknown", message()))
}

pub(crate) fn wrong(name: &'static str, code: &'static str, message: String) -> Problem {
    let problem = Problem::new(Code::ValidationFailed).message(message.clone());
    problem.detail(format!("Wrong in the query: {name}.")).field(name, code, message)
}

impl Page {
    /// Reads `page` and `per_page`; the argument is the default of `per_page`, at most 100.
    pub fn read(pairs: &[(String, String)], per_page: u64) -> Result<Self> {
        let page = number(pairs, "page", 1..=u64::MAX)?.unwrap_or(1);
        // `limit` first: clients that are generated send the default of `per_page` with it.
        let (limit, given) = (number(pairs, "limit", 1..=100)?, number(pairs, "per_page", 1..=100)?);
        Ok(Self { page, per_page: limit.or(given).unwrap_or(per_page) })
    }

    /// How many items come before this page.
    pub fn skip(self) -> u64 {
        (self.page - 1).saturating_mul(self.per_page)
    }

    /// How many items a page has.
    pub fn count(self) -> usize {
        usize::try_from(self.per_page).unwrap_or(usize::MAX)
    }

    /// Number of pages that the items fill.
    pub fn pages(self, total: u64) -> u64 {
        total.div_ceil(self.per_page)
    }
}

/// A list in the shape of every list that the interface leaves open.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct List<T> {
    /// The items of this page, newest first.
    pub items: Vec<T>,
    /// Items on all pages.
    pub total: u64,
    /// This page, from 1.
    pub page: u64,
    /// How many pages there are.
    pub pages: u64,
    /// Items a page.
    pub per_page: u64,
    /// Address of the items that follow; where the request has `limit`, `before` or `after`, and
    /// there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> List<T> {
    /// A page of those items of a list that were found: all of them, or only those of the page and
    /// how many there are in all.
    pub fn filtered(filter: &Filter, items: Vec<T>, total: u64, page: Page) -> Self {
        if !filter.looks_through() {
            return Self::new(items, total, page);
        }
        Self::of_all(items, page)
    }

    /// The page of a list of which all items are here.
    pub fn of_all(items: Vec<T>, page: Page) -> Self {
        let (total, skip) = (items.len() as u64, usize::try_from(page.skip()).unwrap_or(usize::MAX));
        Self::new(items.into_iter().skip(skip).take(page.count()).collect(), total, page)
    }

    /// A page of a list.
    pub fn new(items: Vec<T>, total: u64, page: Page) -> Self {
        Self { items, total, page: page.page, pages: page.pages(total), per_page: page.per_page, next: None }
    }
}

impl<T: Serialize> List<T> {
    /// 200 with this page, and the address of what follows, if anything does.
    pub fn on(self, cursors: &Cursors, last: Option<String>) -> Response {
        let page = Page { page: self.page, per_page: self.per_page };
        match cursors.next(self.total, page, last) {
            Some(next) => linked(ok(Self { next: Some(next.clone()), ..self }), &next),
            None => ok(self),
        }
    }
}

/// All items of a list, in one answer.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct All<T> {
    /// The items, in the order that the operation says.
    pub items: Vec<T>,
    /// How many there are, between the cursors where the request has some.
    pub total: u64,
    /// Address of the items that follow; where the request has `limit`, and there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> All<T> {
    /// A list of which all items are here.
    pub fn of(items: Vec<T>) -> Self {
        Self { total: items.len() as u64, items, next: None }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use http_body_util::BodyExt;

    use super::*;

    const PAGE: Page = Page { page: 2, per_page: 3 };

    #[test]
    fn an_offset_may_have_a_blank_in_place_of_its_plus() {
        let read = |text: &str| {
            let pairs = [("from".to_owned(), text.to_owned())];
            let mut check = Checker::new();
            let (from, _) = between(&mut check, &pairs).unwrap();
            from.filter(|_| check.finish().is_ok())
        };
        let at = read("2026-07-01T12:00:00Z");
        assert!(at.is_some());
        for text in ["2026-07-01T14:00:00 02:00", "2026-07-01T14:00:00+02:00", "2026-07-01T12:00:00 00:00"] {
            assert_eq!(read(text), at, "{text}");
        }
        for text in ["2026-07-01T12:00:00 Z", "2026-07-01 02:00", "2026-07-01T12:00:00 2:00", " 00:00", "é 00:00"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    async fn read(response: Response) -> Result<Bytes, axum::Error> {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        response.into_body().collect().await.map(|collected| collected.to_bytes())
    }

    #[tokio::test]
    async fn a_list_written_in_parts_reads_like_one_written_at_once() {
        for (count, bytes) in [(0, 5), (1, 5), (3, 5), (1, 2 * AT_ONCE), (3, AT_ONCE / 2), (5, AT_ONCE)] {
            let items: Vec<String> = (0..count).map(|item| format!("item \"{item}{}\"", "x".repeat(bytes))).collect();
            let parts = list_of(7, PAGE, items.clone().into_iter().map(Ok)).unwrap();
            let whole = ok(List::new(items, 7, PAGE));
            assert!(read(parts).await.unwrap() == read(whole).await.unwrap(), "{count} items of {bytes} bytes");
        }
    }

    #[test]
    fn only_so_many_items_are_looked_through_for_a_word() {
        let filter = |query: &[(&str, &str)]| {
            let pairs: Vec<_> = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Filter::read(&pairs, "status", &["pending"]).unwrap()
        };
        let (word, all) = (filter(&[("status", "pending")]), filter(&[]));
        assert!(word.check("status", FILTERED_MAX as u64).is_ok());
        let problem = word.check("status", FILTERED_MAX as u64 + 1).unwrap_err();
        assert_eq!(problem.code(), Code::ValidationFailed);
        assert!(all.check("status", u64::MAX).is_ok(), "nothing is looked through");
    }

    #[tokio::test]
    async fn an_item_that_cannot_be_read_is_never_left_out() {
        let unreadable = || Err(Problem::new(Code::Internal));
        let large = || Ok("x".repeat(AT_ONCE));
        for items in [vec![unreadable()], vec![Ok(String::new()), unreadable(), large()]] {
            assert_eq!(list_of(3, PAGE, items.into_iter()).unwrap_err().code(), Code::Internal);
        }
        let parts = list_of(3, PAGE, [large(), unreadable(), large()].into_iter()).unwrap();
        assert!(read(parts).await.is_err(), "the answer breaks off");
    }
}
