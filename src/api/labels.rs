//! Labels of a request: the caller's reference and metadata.

use std::borrow::Cow;
use std::collections::BTreeMap;

use actors::engine::ReferenceLookup;
use ledger::id::Fingerprint;
use ledger::personal::{Labels, Metadata};
use serde_json::value::RawValue;

use crate::api::app::App;
use web::caller::Caller;
use web::json::{Checker, Raw};
use web::problem::{Code, Problem};

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
    let reference = check.optional_text("reference", reference, 1..=REFERENCE_CHARS_MAX);
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
    let text = |raw| check.optional_text("reference", raw, 1..=REFERENCE_CHARS_MAX).map(Cow::into_owned);
    let reference = reference.map_or(before, text);
    let labels = Labels { reference, metadata: merged(values, changes) };
    check_size(check, &labels.metadata);
    Some(labels).filter(|labels| *labels != Labels::default())
}

/// The reference of a request that no other charge may have; `None` without one, and for what
/// [`read`] refuses.
pub fn unique_reference<'a>(reference: Raw<'a>, unique: Raw<'_>) -> Option<Cow<'a, str>> {
    let is_unique = unique.is_some_and(|unique| unique.get() == "true");
    reference
        .filter(|_| is_unique)
        .and_then(|reference| Checker::new().text("reference", Some(reference), 1..=REFERENCE_CHARS_MAX))
}

/// Looks up a reference that no other charge of the account may have; `digest` is that of the
/// request.
pub fn look_up(
    app: &App,
    caller: Caller,
    reference: Option<&str>,
    digest: impl FnOnce() -> Fingerprint,
) -> Result<Option<ReferenceLookup>, Problem> {
    let look_up = |reference| app.engine.look_up_reference(caller.group, reference, digest());
    Ok(reference.map(look_up).transpose()?)
}

/// Refuses a reference that a charge of the account has already, with the charge.
pub fn require_new(reference: Option<&ReferenceLookup>) -> Result<(), Problem> {
    match reference.and_then(|reference| reference.used_by) {
        None => Ok(()),
        Some((charge, is_same)) => {
            let code = if is_same { Code::DuplicateReference } else { Code::ReferenceTaken };
            Err(Problem::new(code).member("txid", charge.txid()))
        }
    }
}

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
