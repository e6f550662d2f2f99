//! Labels of a request: the caller's reference and metadata; changes of metadata.

use std::borrow::Cow;
use std::collections::BTreeMap;

use actors::engine::{Engine, NewChargeChange, Outcome, ReferenceLookup, ReferenceOf, SubscriptionRow};
use axum::response::Response;
use ledger::{Cashout, Charge, Fingerprint, Labels, Metadata, ObjectId, Refund, Terms};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::app::App;
use web::idempotency::{CommandPermit, Key};
use web::views::cashout::destination;
use web::views::charge::{SplitView, payer};
use web::views::labels::{LabelsView, labels};
use web::views::refund::refund_labels;
use web::{Caller, Checker, Code, Problem, Raw, Result, broken, decided, parse_exact};

/// Most characters of a reference.
const REFERENCE_CHARS_MAX: usize = 64;
/// Most keys of metadata.
const KEYS_MAX: usize = 20;
/// Most characters of a key.
const KEY_CHARS_MAX: usize = 40;
/// Most characters of a value.
const VALUE_CHARS_MAX: usize = 500;
/// Most bytes of all keys and values.
const METADATA_BYTES_MAX: usize = 8 * 1024;

/// Values of metadata by key; `None` takes the key away.
pub type MetadataChanges = BTreeMap<String, Option<String>>;

/// Reads `reference`, `reference_unique` and `metadata`; `None` where no label is given.
pub fn read(check: &mut Checker, reference: Raw<'_>, unique: Raw<'_>, metadata: Raw<'_>) -> Option<Labels> {
    let is_unique = check.optional(unique, |check, raw| check.boolean("reference_unique", raw));
    let has_reference = reference.is_some();
    let reference = check.optional_visible("reference", reference, 1..=REFERENCE_CHARS_MAX);
    if is_unique == Some(true) && !has_reference {
        check.refuse::<()>("reference", "required", "reference é obrigatório com reference_unique");
    }
    let changes = check.optional(metadata, |check, raw| read_changes(check, raw)).unwrap_or_default();
    let labels = Labels { reference: reference.map(Cow::into_owned), metadata: merged(Metadata::new(), changes) };
    check_size(check, &labels.metadata);
    Some(labels).filter(|labels| *labels != Labels::default())
}

/// Labels with the changes of a request in them: a null reference takes the reference away, and an
/// absent one leaves it; `None` where no label is left.
pub fn changed(
    check: &mut Checker,
    standing: Option<Labels>,
    reference: Option<Raw<'_>>,
    metadata: Raw<'_>,
) -> Option<Labels> {
    let Labels { reference: before, metadata: values } = standing.unwrap_or_default();
    let changes = check.optional(metadata, |check, raw| read_changes(check, raw)).unwrap_or_default();
    let text = |raw| check.optional_visible("reference", raw, 1..=REFERENCE_CHARS_MAX).map(Cow::into_owned);
    let reference = reference.map_or(before, text);
    let labels = Labels { reference, metadata: merged(values, changes) };
    check_size(check, &labels.metadata);
    Some(labels).filter(|labels| *labels != Labels::default())
}

/// The reference of a request that no other of its kind may have; `None` without one, and for what
/// [`read`] refuses.
pub fn unique_reference<'a>(reference: Raw<'a>, unique: Raw<'_>) -> Option<Cow<'a, str>> {
    let is_unique = unique.is_some_and(|unique| unique.get() == "true");
    reference
        .filter(|_| is_unique)
        .and_then(|reference| Checker::new().optional_visible("reference", Some(reference), 1..=REFERENCE_CHARS_MAX))
}

/// Looks up a reference that no other of its kind may have in the account; `digest` is that of the
/// request.
pub fn look_up(
    app: &App,
    caller: Caller,
    (of, reference): (ReferenceOf, Option<&str>),
    digest: impl FnOnce() -> Fingerprint,
) -> Result<Option<ReferenceLookup>> {
    let look_up = |reference| app.engine.look_up_reference(caller.group, (of, reference), digest());
    Ok(reference.map(look_up).transpose()?)
}

/// Refuses a reference that something of its kind has already, with its id.
pub fn require_new(of: ReferenceOf, reference: Option<&ReferenceLookup>) -> Result<()> {
    match reference.and_then(|reference| reference.used_by) {
        None => Ok(()),
        Some((id, is_same)) => {
            let code = if is_same { Code::DuplicateReference } else { Code::ReferenceTaken };
            let is_charge = of == ReferenceOf::Charge;
            let (name, id) = if is_charge { ("txid", id.txid()) } else { ("id", id.uuid().to_string()) };
            Err(Problem::new(code).member(name, id))
        }
    }
}

/// What the answer to a new charge repeats of its request: nothing of one without these fields.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChargeEcho {
    /// The recipients' parts as amounts; where one was sent by percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    splits: Option<Vec<SplitView>>,
    /// The labels.
    #[serde(flatten)]
    pub labels: LabelsView,
}

impl ChargeEcho {
    /// What is repeated of a request with these splits and labels, which became a charge of these
    /// terms.
    pub fn of(app: &App, caller: Caller, splits: Raw<'_>, labels: Option<Labels>, terms: &Terms) -> Self {
        let has_percent = splits.is_some_and(|raw| raw.get().contains("\"percent\""));
        let part = |split| SplitView::of(&app.engine, caller.group, split);
        Self { splits: has_percent.then(|| terms.splits.iter().map(part).collect()), labels: labels.into() }
    }
}

/// A change of metadata, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = MetadataChange, example = json!({"metadata": {"loja": "azul", "vendedor": null}}))]
pub struct MetadataRequest<'a> {
    /// Values by key: a text replaces the value of its key, null or an empty text takes the key
    /// away, and other keys stay.
    #[schema(value_type = Option<HashMap<String, Option<String>>>)]
    metadata: Raw<'a>,
}

/// Something whose metadata its caller changes.
pub trait Labelled {
    /// Its id, and how often it was changed.
    fn version(&self) -> (ObjectId, u32);

    /// Its metadata now.
    fn metadata(&self, engine: &Engine) -> Metadata;
}

impl Labelled for Charge {
    fn version(&self) -> (ObjectId, u32) {
        (self.id, self.changes)
    }

    fn metadata(&self, engine: &Engine) -> Metadata {
        labels(engine, self, &payer(engine, self.id, self.payer.as_ref())).metadata
    }
}

impl Labelled for Cashout {
    fn version(&self) -> (ObjectId, u32) {
        (self.id, self.changes)
    }

    fn metadata(&self, engine: &Engine) -> Metadata {
        destination(engine, self).labels.unwrap_or_default().metadata
    }
}

impl Labelled for Refund {
    fn version(&self) -> (ObjectId, u32) {
        (self.id, self.changes)
    }

    fn metadata(&self, engine: &Engine) -> Metadata {
        refund_labels(engine, self).unwrap_or_default().metadata
    }
}

impl Labelled for SubscriptionRow {
    fn version(&self) -> (ObjectId, u32) {
        (self.id, self.changes)
    }

    fn metadata(&self, engine: &Engine) -> Metadata {
        engine.subscriber(self).labels.unwrap_or_default().metadata
    }
}

/// Changes the metadata of what `read` reads, as a body asks for it. The answer has it as it is
/// then.
pub async fn change_metadata<T: Labelled>(
    app: &App,
    caller: Caller,
    body: &[u8],
    read: impl Fn() -> Result<T>,
    view: impl FnOnce(&T) -> Result<Response>,
) -> Result<Response> {
    let wire: MetadataRequest<'_> = parse_exact(body)?;
    change_values(app, caller, wire.metadata, read, view).await
}

/// As [`change_metadata`], of the values of a body that has other fields too.
pub async fn change_values<T: Labelled>(
    app: &App,
    caller: Caller,
    values: Raw<'_>,
    read: impl Fn() -> Result<T>,
    view: impl FnOnce(&T) -> Result<Response>,
) -> Result<Response> {
    let mut check = Checker::new();
    let changes = check.optional(values, read_changes).unwrap_or_default();
    check.finish()?;
    let plan = |of: &T| {
        let before = of.metadata(&app.engine);
        let metadata = merged(before.clone(), changes.clone());
        let mut check = Checker::new();
        check_size(&mut check, &metadata);
        check.finish()?;
        Ok((metadata != before).then_some(NewChargeChange::Metadata(metadata)))
    };
    change(app, caller, read, plan, view).await
}

/// Changes what `read` reads, as `plan` decides of it as it stands; `None` changes nothing. The
/// answer has it as it is then.
pub async fn change<T: Labelled>(
    app: &App,
    caller: Caller,
    read: impl Fn() -> Result<T>,
    plan: impl Fn(&T) -> Result<Option<NewChargeChange>>,
    view: impl FnOnce(&T) -> Result<Response>,
) -> Result<Response> {
    let (read, plan) = (&read, &plan);
    let execute = |of: T, permit| async move {
        let Some(change) = plan(&of)? else { return Ok(Some(of)) };
        change_once(app, caller, &of, change, permit).await?.map(|()| read()).transpose()
    };
    let key = Key::none(&app.engine, caller.group, CHANGE_BYTES);
    key.run_after(caller.ledger(), read, |_| Err(broken()), execute).await?.answer(|of| view(&of))
}

/// Makes a change. `None` where another change came between, so that this one is planned again on
/// what that one left.
pub async fn change_once<T: Labelled>(
    app: &App,
    caller: Caller,
    of: &T,
    change: NewChargeChange,
    permit: CommandPermit,
) -> Result<Option<()>> {
    let version = of.version();
    if version.1 >= CHANGES_MAX {
        let detail = format!("Labels and fiscal documents change {CHANGES_MAX} times at most.");
        return Err(Problem::new(Code::StateConflict).detail(detail));
    }
    match app.engine.change_labels(caller.group, version, change, caller.context(permit)).await? {
        Outcome::Unchanged => Ok(None),
        outcome => decided(outcome),
    }
}

/// How often one thing is changed, at most: each change is read with it.
const CHANGES_MAX: u32 = 1_000;
/// Most bytes of the Record of a change.
const CHANGE_BYTES: usize = 16 * 1024;

/// Reads `metadata`: an object of texts. A value that is null or empty takes its key away.
pub fn read_changes(check: &mut Checker, raw: Raw<'_>) -> Option<MetadataChanges> {
    let raw = raw?;
    let Ok(wire) = serde_json::from_str::<BTreeMap<String, Option<&RawValue>>>(raw.get()) else {
        return check.refuse("metadata", "not_an_object", "metadata deve ser um objeto");
    };
    let is_key = |key: &str| {
        (1..=KEY_CHARS_MAX).contains(&key.chars().count())
            && !key.contains(|letter: char| letter.is_control() || matches!(letter, '[' | ']'))
    };
    let mut changes = MetadataChanges::new();
    for (key, value) in wire {
        if !is_key(&key) {
            let message = format!("metadata: uma chave tem de 1 a {KEY_CHARS_MAX} caracteres visíveis, sem colchetes");
            return check.refuse("metadata", "invalid_key", message);
        }
        if value.is_some_and(|value| !value.get().starts_with('"')) {
            return check.refuse("metadata", "not_a_string", "metadata: cada valor deve ser um texto");
        }
        let value = match value {
            None => None,
            value => Some(check.prose("metadata", value, 0..=VALUE_CHARS_MAX)?.into_owned()),
        };
        changes.insert(key, value.filter(|value| !value.is_empty()));
    }
    Some(changes)
}

/// Metadata with the changes in it.
pub fn merged(mut metadata: Metadata, changes: MetadataChanges) -> Metadata {
    for (key, value) in changes {
        match value {
            Some(value) => metadata.insert(key, value),
            None => metadata.remove(&key),
        };
    }
    metadata
}

/// Refuses metadata with too many keys or bytes.
pub fn check_size(check: &mut Checker, metadata: &Metadata) {
    if metadata.len() > KEYS_MAX {
        let message = format!("metadata deve ter no máximo {KEYS_MAX} chaves");
        check.refuse::<()>("metadata", "wrong_count", message);
    }
    let bytes: usize = metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    if bytes > METADATA_BYTES_MAX {
        let message = format!("metadata deve ter no máximo {METADATA_BYTES_MAX} bytes");
        check.refuse::<()>("metadata", "too_long", message);
    }
}
