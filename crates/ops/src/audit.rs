//! Audit trail: the Records that operators requested, and the changes of bank accounts and the
//! cancelled withdrawals that API keys requested. A row is part of its Record, so neither exists
//! without the other.

use std::sync::Arc;

use actors::engine::{Listed, Unavailable};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use books::cells::{Cell, Kind};
use books::table_file::{TableColumn, TableFormat, period_ptbr};
use ledger::audit::{AuditSubject, AuditedFact};
use ledger::{GroupNumber, LedgerId, Object, ObjectId, Record, Refund, Timestamp};
use serde::Serialize;
use serde_json::Value;
use store::cut::Position;
use store::{Partition, Sequence};
use utoipa::ToSchema;

use crate::audited_changes::{FieldChange, changes};
use crate::found_item::{FoundItem, item_of, item_of_kind};
use crate::list_file::{in_parts, list_file, requested_format, too_many};
use crate::wire_words::{ACTIONS, KINDS, LABELS, in_file, value};
use crate::{Desk, DeskState, ItemKind, Operator, merchants};
use web::reply::between;
use web::views::charge::CardView;
use web::views::house_entry::{HouseEntryView, OperatorEntry};
use web::views::ledger::owner_name;
use web::views::recipient::recipient_id;
use web::views::refund::reason_text;
use web::views::stored_card::customer_of;
use web::{Checker, Language, List, Page, Problem, Result, ok, one_of, query, single, time};

/// One thing that an operator did, a change of where money goes, or a withdrawal taken back.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditEntryView {
    /// When it took effect.
    pub at: String,
    /// The operator's name, as configured with the token; null when a merchant's API key did it.
    #[schema(required, example = "ana")]
    #[serialize_always]
    pub operator: Option<String>,
    /// The API key, when one did it.
    pub api_key_id: Option<String>,
    /// What was done.
    #[schema(
        pattern = "^(create|change|revoke|rotate_secret|approve|reject|open|accept|release|advance|request|settle|close|read|pay|freeze|unfreeze|cancel|delete|erase)$"
    )]
    pub action: &'static str,
    /// The merchant that it concerns; null when it concerns none.
    #[schema(required)]
    #[serialize_always]
    pub merchant_id: Option<String>,
    /// To what it was done.
    #[schema(
        pattern = "^(merchant|api_key|recipient|bank_account|withdrawal|refund|dispute|clock|entry|period|tax_ids|charge|rail_item|batch|chart_of_accounts|note|person|card|personal_data)$"
    )]
    pub kind: &'static str,
    /// Of what it was done to; null for the clock, a month, tax ids and batches.
    #[schema(required)]
    #[serialize_always]
    pub id: Option<String>,
    /// Name of the recipient, payer, customer or merchant to whom that belongs, as it is now;
    /// absent where it has none, or was erased.
    pub name: Option<String>,
    /// Amount of the thing, centavos, where it has one.
    pub amount: Option<i64>,
    /// The account that an entry debits; entries.
    pub debit: Option<String>,
    /// The account that it credits; entries.
    pub credit: Option<String>,
    /// The stored card, also once it was deleted; cards.
    pub card: Option<CardView>,
    /// The reason, where one was given; the month, for `period`; the first references, for `batch`.
    pub notes: Option<String>,
    /// The fields that it changed: settings of a merchant, status and bank account (masked) of a
    /// recipient, the address of webhooks; the part of a dispute that was accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// The Record's place in the journal of its partition.
    #[schema(minimum = 1, example = 42)]
    pub sequence: u64,
    /// The partition.
    pub partition: u16,
    /// When it took effect.
    #[serde(skip)]
    effective_at: Timestamp,
}

impl AuditEntryView {
    /// The Record's place.
    pub fn at(&self) -> Position {
        Position { partition: Partition(self.partition), sequence: Sequence(self.sequence) }
    }
}

/// Rows that are looked through for those of a person, an action, a kind or an id, at most.
const LOOKED_THROUGH_MAX: u64 = 20_000;

/// Which rows of the audit trail are asked for: those that meet all that is given.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// The group of the merchant that they concern.
    pub group: Option<GroupNumber>,
    /// The operator's name.
    pub operator: Option<String>,
    /// What was done.
    pub action: Option<&'static str>,
    /// To what kind of thing.
    pub kind: Option<&'static str>,
    /// To which thing.
    pub id: Option<ObjectId>,
    /// Since when.
    pub from: Option<Timestamp>,
    /// Before when.
    pub to: Option<Timestamp>,
}

/// A Record of the audit trail with its place, and what it says there.
type Audited = (Position, Record, AuditedFact);

impl AuditFilter {
    /// Reads a query.
    pub fn read(desk: &Desk, pairs: &[(String, String)]) -> Result<Self> {
        let group = single(pairs, "merchant_id")?.map(|id| merchants::find(desk, id)).transpose()?;
        let action = one_of(pairs, "action", &ACTIONS.names())?;
        let kind = one_of(pairs, "kind", &KINDS.names())?;
        let mut check = Checker::new();
        let id = single(pairs, "id")?.and_then(|id| {
            ObjectId::parse(id).or_else(|| check.refuse("id", "invalid", "id deve ser um UUID ou um txid"))
        });
        let (from, to) = between(&mut check, pairs)?;
        check.finish()?;
        // Of the rows about an object of a merchant only those of the merchant are read.
        let of_id =
            || Some(desk.engine.ids().group(id?)).filter(|group| desk.engine.merchant(*group, |_| ()).is_some());
        let operator = single(pairs, "operator")?.map(str::to_owned);
        Ok(Self { group: group.or_else(of_id), operator, action, kind, id, from, to })
    }

    /// The rows of a page, newest first, and how many there are.
    pub fn page(&self, desk: &Desk, page: Page) -> Result<(u64, Vec<AuditEntryView>)> {
        if !self.is_selective() {
            let Listed { total, items } = self.listed(desk, page.skip(), page.count())?;
            let rows = items.map(|found| row(desk, found?)).collect::<Result<_>>()?;
            return Ok((total, rows));
        }
        let (mut total, mut rows) = (0, Vec::new());
        for found in self.found(desk)? {
            let found = found?;
            if total >= page.skip() && rows.len() < page.count() {
                rows.push(row(desk, found)?);
            }
            total += 1;
        }
        Ok((total, rows))
    }

    /// All rows, newest first, each read when it is asked for.
    pub fn rows<'a>(&'a self, desk: &'a Desk) -> Result<impl Iterator<Item = Result<AuditEntryView>> + 'a> {
        Ok(self.found(desk)?.map(|found| row(desk, found?)))
    }

    fn found<'a>(&'a self, desk: &'a Desk) -> Result<impl Iterator<Item = Result<Audited>> + 'a> {
        let Listed { total, items } = self.listed(desk, 0, usize::MAX)?;
        if self.is_selective() && total > LOOKED_THROUGH_MAX {
            let message = format!("só se procura em até {LOOKED_THROUGH_MAX} linhas, e há {total}: escolha from e to");
            return Err(too_many("from", message));
        }
        let items = items.map(|found| found.map_err(Problem::from));
        Ok(items.filter(|found| found.as_ref().map_or(true, |found| self.takes(desk, found))))
    }

    fn listed(
        &self,
        desk: &Desk,
        skip: u64,
        count: usize,
    ) -> Result<Listed<impl Iterator<Item = Result<Audited, Unavailable>> + use<>>> {
        Ok(desk.engine.audit(self.group, (self.from, self.to), skip, count)?)
    }

    /// Whether rows are read to find out if they are asked for.
    fn is_selective(&self) -> bool {
        self.operator.is_some() || self.action.is_some() || self.kind.is_some() || self.id.is_some()
    }

    fn takes(&self, desk: &Desk, (_, record, fact): &Audited) -> bool {
        let is_by = self.operator.is_none() || self.operator == record.operator;
        let is_named = self.action.is_none_or(|action| action == fact.action);
        let is_kind = self.kind.is_none_or(|kind| kind == fact.kind);
        is_by && is_named && is_kind && self.id.is_none_or(|id| subject_id(desk, record, fact.subject) == Some(id))
    }
}

/// Acts of operators, newest first; those that meet all filters that are given. With `operator`,
/// `action`, `kind` or `id`, 20,000 rows of a merchant or a span are looked through. A file has all
/// rows, 100,000 at most.
#[utoipa::path(get, path = "/ops/audit", operation_id = "list_audit",
    params(("merchant_id" = Option<String>, Query, format = "uuid", description = "Only what concerns this merchant."),
        ("operator" = Option<String>, Query, description = "Only what this operator did: the name, as configured with the token."),
        ("action" = Option<String>, Query, pattern = "^(create|change|revoke|rotate_secret|approve|reject|open|accept|release|advance|request|settle|close|read|pay|freeze|unfreeze|cancel|delete|erase)$", description = "Only this action."),
        ("kind" = Option<String>, Query, pattern = "^(merchant|api_key|recipient|bank_account|withdrawal|refund|dispute|clock|entry|period|tax_ids|charge|rail_item|batch|chart_of_accounts|note|person|card|personal_data)$", description = "Only what was done to things of this kind."),
        ("id" = Option<String>, Query, description = "Only what was done to this thing."),
        ("from" = Option<String>, Query, description = "At this instant (RFC 3339) or on this day (`YYYY-MM-DD`, Sao Paulo), or later"),
        ("to" = Option<String>, Query, description = "Before this instant, or on this day at the latest"),
        ("format" = Option<String>, Query, pattern = "^(json|csv|csv-ptbr|xlsx)$", description = "`json` when absent."),
        ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, content((List<AuditEntryView> = "application/json"), (String = "text/csv"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 404)))]
pub async fn list(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let (filter, page) = (AuditFilter::read(&desk, &pairs)?, Page::read(&pairs, 20)?);
    if let Some(format) = requested_format(&pairs)? {
        return file(&desk, &filter, format).await;
    }
    let (total, rows) = filter.page(&desk, page)?;
    Ok(ok(List::new(rows, total, page)))
}

/// Columns of the audit trail as a file.
const COLUMNS: [TableColumn; 17] = [
    ("at", "Quando", Kind::Instant),
    ("operator", "Operador", Kind::Text),
    ("api_key_id", "Chave de API", Kind::Text),
    ("action", "Ação", Kind::Text),
    ("kind", "Objeto", Kind::Text),
    ("name", "Nome", Kind::Text),
    ("id", "ID", Kind::Text),
    ("merchant_id", "ID do lojista", Kind::Text),
    ("merchant", "Lojista", Kind::Text),
    ("notes", "Motivo", Kind::Text),
    ("changes", "Alterações", Kind::Text),
    ("amount", "Valor", Kind::Amount),
    ("debit", "Débito", Kind::Text),
    ("credit", "Crédito", Kind::Text),
    ("card", "Cartão", Kind::Text),
    ("partition", "Partição", Kind::Count),
    ("sequence", "Registro", Kind::Count),
];

/// The rows of a filter as a file, newest first.
pub async fn file(desk: &Arc<Desk>, filter: &AuditFilter, format: TableFormat) -> Result<Response> {
    let for_people = format != TableFormat::Csv;
    let cells = |row: Result<AuditEntryView>| {
        let row = row?;
        let merchant = row.merchant_id.as_deref().and_then(|id| merchants::find(desk, id).ok());
        let merchant = merchant.and_then(|group| owner_name(&desk.engine, LedgerId::Merchant(group)));
        let changes: Vec<_> = row.changes.iter().map(|change| change_text(change, for_people)).collect();
        Ok(vec![
            Cell::Instant(row.effective_at.0),
            Cell::optional(row.operator),
            Cell::optional(row.api_key_id),
            Cell::optional(Some(in_file(for_people, row.action, ACTIONS.of(row.action)))),
            Cell::optional(Some(in_file(for_people, row.kind, KINDS.of(row.kind)))),
            Cell::optional(row.name),
            Cell::optional(row.id),
            Cell::optional(row.merchant_id),
            Cell::optional(merchant),
            Cell::optional(row.notes),
            Cell::optional((!changes.is_empty()).then(|| changes.join("; "))),
            Cell::amount(row.amount),
            Cell::optional(row.debit),
            Cell::optional(row.credit),
            Cell::optional(row.card.map(|card| format!("{} {}", card.brand, card.last4))),
            Cell::Count(row.partition.into()),
            Cell::Count(row.sequence),
        ])
    };
    let period = period_ptbr(filter.from.map(|from| from.0), filter.to.map(|to| to.0));
    let rows = in_parts(filter.rows(desk)?.map(cells));
    list_file(desk, (format, "audit", ("Auditoria", period)), &COLUMNS, rows).await
}

/// A change in one line: by the names of the interface, or in the words of people.
fn change_text(FieldChange { field, old, new }: &FieldChange, for_people: bool) -> String {
    if !for_people {
        return format!("{field}: {} → {}", shown(old), shown(new));
    }
    let [old, new] = [old, new].map(|of| value(Language::Portuguese, field, of));
    format!("{}: {old} → {new}", LABELS.of(field).text(Language::Portuguese))
}

/// Parts of a bank account in the order in which people read them.
const ACCOUNT_PARTS: [&str; 7] = ["bank_code", "ispb", "agencia", "conta", "type", "legal_name", "document_number"];

/// A value of a change as text: that of a bank account has its parts one after the other.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "—".to_owned(),
        Value::String(text) => text.clone(),
        Value::Object(parts) => {
            let parts = ACCOUNT_PARTS.iter().filter_map(|name| parts.get(*name)).filter(|part| !part.is_null());
            parts.map(shown).collect::<Vec<_>>().join(" · ")
        }
        other => other.to_string(),
    }
}

/// A row as it is shown.
pub fn row(desk: &Desk, (at, record, audited): (Position, Record, AuditedFact)) -> Result<AuditEntryView> {
    let merchant = record.owner.group().and_then(|group| desk.engine.merchant(group, |row| row.id));
    let AuditedFact { action, kind, subject, notes } = audited;
    let id = subject_id(desk, &record, subject);
    let mut thing = id.map(|id| thing_of(desk, kind, id)).transpose()?.flatten().unwrap_or_default();
    let (mut entry, mut card) = (None, None);
    match (kind, id) {
        ("entry", Some(id)) => {
            if let Some(found) = OperatorEntry::find(&desk.engine, id)? {
                thing.name = owner_name(&desk.engine, found.owner()).filter(|name| !name.is_empty());
                let found = HouseEntryView::of_any(&desk.engine, found);
                thing.amount = Some(found.amount);
                entry = Some((found.debit, found.credit));
            }
        }
        ("card", Some(id)) => {
            let row = desk.engine.card(LedgerId::Merchant(desk.engine.ids().group(id)), id)?;
            let customer = row.as_ref().and_then(|row| customer_of(&desk.engine, row));
            thing.name = customer.map(|customer| customer.name).filter(|name| !name.is_empty());
            card = row.map(|row| CardView::of(&row.face));
        }
        _ => {}
    }
    let (debit, credit) = entry.unzip();
    let changes = changes(desk, at, &record);
    let notes = notes.or_else(|| reason_of_refund(desk, &record));
    Ok(AuditEntryView {
        at: time(record.effective_at),
        operator: record.operator,
        api_key_id: record.api_key.map(|key| key.uuid().to_string()),
        action,
        merchant_id: merchant.map(|id| id.uuid().to_string()),
        kind,
        id: id.map(|id| id.uuid().to_string()),
        name: thing.name,
        amount: thing.amount,
        debit,
        credit,
        card,
        notes,
        changes,
        sequence: at.sequence.0,
        partition: at.partition.0,
        effective_at: record.effective_at,
    })
}

/// A thing of the audit trail, as a search finds it: the name of whom it belongs to, its amount.
fn thing_of(desk: &Desk, kind: &str, id: ObjectId) -> Result<Option<FoundItem>> {
    let of_kind = |kind| item_of_kind(desk, kind, id);
    match kind {
        "merchant" => of_kind(ItemKind::Merchants),
        "recipient" | "bank_account" => of_kind(ItemKind::Recipients),
        "withdrawal" => of_kind(ItemKind::Withdrawals),
        "refund" => of_kind(ItemKind::Refunds),
        "dispute" => of_kind(ItemKind::Disputes),
        "charge" => of_kind(ItemKind::Charges),
        "api_key" => {
            let item = FoundItem::of(desk, id);
            let name = item.merchant_name.clone().filter(|name| !name.is_empty());
            Ok(Some(FoundItem { name, ..item }))
        }
        _ => Ok(item_of(desk, id)?.map(|(_, item)| item)),
    }
}

/// The reason of a refund that an operator starts, which is sealed in its Record.
fn reason_of_refund(desk: &Desk, record: &Record) -> Option<String> {
    let refund = Refund::made_by(record).filter(|_| record.operator.is_some())?;
    reason_text(&desk.engine, refund.id, refund.reason.as_ref())
}

/// The id of the thing to which something was done; none for the clock and a report.
fn subject_id(desk: &Desk, record: &Record, subject: AuditSubject) -> Option<ObjectId> {
    let group = record.owner.group();
    match subject {
        AuditSubject::Object(id) => Some(id),
        AuditSubject::Merchant => desk.engine.merchant(group?, |row| row.id),
        AuditSubject::Recipient(number) => recipient_id(&desk.engine, LedgerId::Recipient(group?, number)),
        AuditSubject::Clock
        | AuditSubject::Period
        | AuditSubject::Report
        | AuditSubject::File
        | AuditSubject::Chart => None,
    }
}
