//! Version of an item of the queue that a decision is on, as its decider saw it.
//!
//! An item that changed between the look and the decision is another version: 409 `item_changed`,
//! with the item as it is now. The ledger compares, in the same step that decides.

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;
use ledger::{MerchantCommand, ObjectId, Rejection};
use serde::Deserialize;
use serde_json::{Value, to_value};
use utoipa::ToSchema;

use crate::item_details::last_decision;
use crate::queue::waiting;
use crate::queue_item::{is_decided_on, version_of, view};
use crate::sub_recipients::Notes;
use crate::{DeciderCall, Desk};
use web::json::or_empty;
use web::{Checker, Code, Problem, Raw, Result, failed, parse_exact};

/// An approval, which needs no field.
#[derive(Default, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = Approval, example = json!({"version": 1}))]
pub struct Approval<'a> {
    /// The `version` of the item that was seen in the queue; `If-Match` may have it instead.
    /// Without it, the item is decided on as it is now.
    #[schema(value_type = Option<u32>)]
    version: Raw<'a>,
}

/// The version in `If-Match`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IfMatch {
    /// The header is absent, or any version will do (`*`).
    Any,
    /// One version.
    Version(u32),
    /// No version.
    Wrong,
}

fn wrong_header() -> Problem {
    let message = "If-Match deve ser uma versão, como \"1\"";
    Problem::new(Code::ValidationFailed).field("If-Match", "invalid", message)
}

impl DeciderCall {
    /// The version that an approval names. Its body may be absent.
    pub fn approved(&self) -> Result<Option<u32>> {
        let approval: Approval<'_> = parse_exact(or_empty(self.sent.bytes()))?;
        self.if_match.or(approval.version)
    }

    /// The reason of a rejection, and the version that it names.
    pub fn rejected(&self) -> Result<(Notes<'_>, Option<u32>)> {
        let notes: Notes<'_> = parse_exact(or_empty(self.sent.bytes()))?;
        let seen = self.if_match.or(notes.version)?;
        Ok((notes, seen))
    }
}

impl IfMatch {
    /// The version that the headers name.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut given = headers.get_all(IF_MATCH).iter();
        let text = match (given.next(), given.next()) {
            (None, _) => return Self::Any,
            (Some(tag), None) => tag.to_str().unwrap_or_default().trim(),
            (Some(_), Some(_)) => return Self::Wrong,
        };
        let version = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
        match version.parse() {
            _ if text == "*" => Self::Any,
            Ok(version) => Self::Version(version),
            Err(_) => Self::Wrong,
        }
    }

    /// The version that a request names, in the header or in the field of its body. Errors: a
    /// header without a version; two versions that differ.
    pub(crate) fn or(self, version: Raw<'_>) -> Result<Option<u32>> {
        let of_header = match self {
            Self::Any => None,
            Self::Version(version) => Some(version),
            Self::Wrong => return Err(wrong_header()),
        };
        let mut check = Checker::new();
        let sent = check.optional(version, |check, raw| check.integer("version", raw, 0..=i64::from(u32::MAX)));
        let sent = sent.and_then(|version| u32::try_from(version).ok());
        if of_header.is_some() && sent.is_some() && of_header != sent {
            check.refuse::<()>("version", "differs", "version e If-Match devem ser a mesma versão");
        }
        check.finish()?;
        Ok(sent.or(of_header))
    }
}

/// A decision of a merchant's ledger on the version that was seen.
pub fn on_version(seen: Option<u32>, id: ObjectId, decision: MerchantCommand) -> MerchantCommand {
    match seen {
        Some(version) => MerchantCommand::OnVersion { id, version, decision: Box::new(decision) },
        None => decision,
    }
}

/// Refuses another version of an item that never changes while it waits. What waits no more is
/// left to the decision.
pub fn unchanged(desk: &Desk, id: ObjectId, seen: Option<u32>) -> Result<()> {
    let item = seen.and_then(|_| waiting(desk, id)).filter(is_decided_on);
    match item.map(|item| version_of(desk, &item)).transpose()? {
        Some(version) if seen != Some(version) => Err(with_item(desk, id, Rejection::VersionChanged.into())),
        _ => Ok(()),
    }
}

/// The problem of a decision. That of another version has the item as it is now, and its version;
/// that of an item which was decided on has the last decision.
pub fn with_item(desk: &Desk, id: ObjectId, problem: Problem) -> Problem {
    // What cannot be read now takes nothing from the problem itself.
    let members = shown_with(desk, id, problem.code()).unwrap_or_default();
    members.into_iter().fold(problem, |problem, (name, value)| problem.member(name, value))
}

fn shown_with(desk: &Desk, id: ObjectId, code: Code) -> Result<Vec<(&'static str, Value)>> {
    if code == Code::ItemChanged
        && let Some(item) = waiting(desk, id)
    {
        let item = view(desk, &item)?;
        return Ok(vec![("version", item.version.into()), ("item", to_value(&item).map_err(failed)?)]);
    }
    if code == Code::AlreadyDecided
        && let Some(decision) = last_decision(desk, id)?
    {
        return Ok(vec![("decision", to_value(decision).map_err(failed)?)]);
    }
    Ok(Vec::new())
}
