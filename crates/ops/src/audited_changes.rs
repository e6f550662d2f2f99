//! Changes of an audited Record, field by field: old and new.

use ledger::{Event, EventChoice, GroupNumber, LedgerId, ObjectId, RecipientNumber, Record, Settings};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::cut::Position;
use utoipa::ToSchema;

use crate::Desk;
use crate::merchants::{self, MerchantSettingsView};
use crate::rail_items::outcome_name;
use web::views::recipient::open;
use web::views::withdrawal::WithdrawalDestinationView;

/// Change of one field. Name, city and storefront of a merchant are sealed: that they changed is
/// said, and the values are not.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldChange {
    /// The field, as requests name it; parts of an object behind a point.
    #[schema(example = "fees.pix")]
    pub field: String,
    /// What it was; null where that is not shown or not known.
    #[schema(required, value_type = Option<Value>, example = "0.99")]
    pub old: Value,
    /// What it is from here on; null where that is not shown.
    #[schema(required, value_type = Option<Value>, example = "0.79")]
    pub new: Value,
}

/// The fields that a Record changed of a merchant, an API key, or a recipient: its bank account,
/// what was decided on its registration or account; the part of a dispute that was accepted; and
/// the word of operators on an order.
pub fn changes(desk: &Desk, at: Position, record: &Record) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    for event in &record.events {
        match event {
            Event::MerchantChanged { settings, before: Some(before), .. } => {
                changes.extend(of_settings(before, settings));
                changes.extend(of_profile(desk, record));
            }
            Event::ApiKeyCreated { scopes, .. } if !scopes.are_all() => {
                changes.push(FieldChange::of("scopes", Value::Null, json!(scopes.names())));
            }
            Event::ApiKeyChanged { id, webhook_url, events } => {
                let (url_before, events_before) = endpoint_before(desk, at, record, *id);
                if url_before != *webhook_url {
                    changes.push(FieldChange::of("webhook_url", json!(url_before), json!(webhook_url)));
                }
                if events_before != *events {
                    changes.push(FieldChange::of("events", json!(events_before.names()), json!(events.names())));
                }
            }
            Event::BankAccountChanged { number, .. } => {
                let of = record.owner.group().map(|group| LedgerId::Recipient(group, *number));
                changes.extend(of.and_then(|recipient| of_account(desk, record, recipient)));
            }
            Event::RecipientApproved { number } => changes.push(status(desk, at, record, *number, "active")),
            Event::RecipientRejected { number, .. } => changes.push(status(desk, at, record, *number, "rejected")),
            Event::RecipientFrozen { .. } => changes.push(FieldChange::of("frozen", json!(false), json!(true))),
            Event::RecipientUnfrozen { .. } => changes.push(FieldChange::of("frozen", json!(true), json!(false))),
            Event::BankAccountApproved { .. } => changes.push(reviewed("approved")),
            Event::BankAccountRejected { .. } => changes.push(reviewed("rejected")),
            Event::RailWordAsked { happened, reference, .. } | Event::RailWordGiven { happened, reference, .. } => {
                changes.push(FieldChange::of("outcome", Value::Null, json!(outcome_name(*happened))));
                changes.push(FieldChange::of("reference", Value::Null, json!(reference)));
            }
            Event::DisputeReleased { accepted: Some(accepted), .. } => {
                changes.push(FieldChange::of("accepted_amount", Value::Null, json!(accepted.0)));
            }
            _ => {}
        }
    }
    changes
}

/// What changed of a merchant's profile, without its values.
fn of_profile(desk: &Desk, record: &Record) -> Vec<FieldChange> {
    let Some(group) = record.owner.group().filter(|_| record.personal.is_some()) else { return Vec::new() };
    let [old, new] = [record.ordinal.saturating_sub(1), record.ordinal].map(|ordinal| {
        let sealed = desk.engine.merchant(group, |row| row.profiles.at(ordinal).cloned()).flatten();
        merchants::profile(desk, group, sealed.as_ref())
    });
    let parts = [
        ("name", old.name != new.name),
        ("city", old.city != new.city),
        ("storefront", old.storefront != new.storefront),
    ];
    parts.into_iter().filter(|(_, is_other)| *is_other).map(|(field, _)| hidden(field)).collect()
}

impl FieldChange {
    fn of(field: &str, old: Value, new: Value) -> Self {
        Self { field: field.to_owned(), old, new }
    }
}

/// The address of an endpoint's webhooks before a Record, and its events.
fn endpoint_before(desk: &Desk, at: Position, record: &Record, key: ObjectId) -> (Option<String>, EventChoice) {
    let Ok(listed) = desk.engine.audit(record.owner.group(), (None, None), 0, usize::MAX) else {
        return Default::default();
    };
    let before = listed.items.map_while(Result::ok).skip_while(|(place, ..)| place.sequence >= at.sequence);
    let endpoint = |event: &Event| match event {
        Event::ApiKeyCreated { id, webhook_url, events, .. } | Event::ApiKeyChanged { id, webhook_url, events }
            if *id == key =>
        {
            Some((webhook_url.clone(), *events))
        }
        _ => None,
    };
    before.flat_map(|(_, record, _)| record.events).find_map(|event| endpoint(&event)).unwrap_or_default()
}

/// The status of a recipient before and after a decision; it was a draft, or was sent for analysis.
fn status(desk: &Desk, at: Position, record: &Record, number: RecipientNumber, new: &str) -> FieldChange {
    let group = record.owner.group().unwrap_or_default();
    let row = desk.engine.recipient_row(group, number).ok();
    let records = row.and_then(|row| desk.engine.registration(LedgerId::Recipient(group, number), row.created_at).ok());
    let before =
        records.into_iter().flatten().map_while(Result::ok).take_while(|(place, _)| place.sequence < at.sequence);
    let status = |event: &Event| match event {
        Event::RecipientRegistered { .. } | Event::RecipientRegisteredAgain { .. } => Some("draft"),
        Event::RecipientSubmitted { .. } => Some("pending"),
        _ => None,
    };
    let old = before.filter_map(|(_, record)| record.events.iter().rev().find_map(status)).last();
    FieldChange::of("status", json!(old), json!(new))
}

/// The decision on a changed bank account.
fn reviewed(new: &str) -> FieldChange {
    FieldChange::of("bank_account_review", json!("pending"), json!(new))
}

fn hidden(field: &str) -> FieldChange {
    FieldChange::of(field, Value::Null, Value::Null)
}

/// The settings of a merchant by their names, parts of an object behind a point.
pub fn settings_fields(settings: &Settings) -> Map<String, Value> {
    let mut fields = Map::new();
    flatten("", json!(MerchantSettingsView::of(settings)), &mut fields);
    fields
}

fn of_settings(before: &Settings, after: &Settings) -> Vec<FieldChange> {
    let mut old = settings_fields(before);
    let new = settings_fields(after).into_iter();
    let change = |(field, new): (String, Value)| {
        let old = old.remove(&field).unwrap_or_default();
        (old != new).then_some(FieldChange { field, old, new })
    };
    new.filter_map(change).collect()
}

/// The leaves of a value, by their names with points.
fn flatten(name: &str, value: Value, to: &mut Map<String, Value>) {
    match value {
        Value::Object(parts) => {
            for (part, value) in parts {
                let name = if name.is_empty() { part } else { format!("{name}.{part}") };
                flatten(&name, value, to);
            }
        }
        value => drop(to.insert(name.to_owned(), value)),
    }
}

/// The bank account before and after a Record, masked; `None` where the versions are forgotten.
fn of_account(desk: &Desk, record: &Record, recipient: LedgerId) -> Option<FieldChange> {
    let LedgerId::Recipient(group, number) = recipient else { return None };
    let row = desk.engine.recipient_row(GroupNumber(group.0), number).ok()?;
    let masked = |ordinal| {
        let profile = open(&desk.engine, &row, row.profiles.at(ordinal));
        profile.receiving_account().map(WithdrawalDestinationView::of)
    };
    let value = |account: Option<WithdrawalDestinationView>| serde_json::to_value(account).unwrap_or_default();
    let (old, new) = (value(masked(record.ordinal.checked_sub(1)?)), value(masked(record.ordinal)));
    Some(FieldChange { field: "bank_account".to_owned(), old, new })
}
