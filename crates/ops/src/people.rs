//! Personal data of one person, for requests of data subjects (LGPD, article 18): what is stored,
//! in which month it was sealed, and until when. It is found by the tax id alone, through keyed
//! hashes; each look is a Record.

use std::collections::BTreeMap;

use actors::engine::{PersonalValue, SoughtValue};
use axum::extract::State;
use axum::response::Response;
use ledger::erasure::retained_until;
use ledger::tax_id;
use ledger::{Event, LedgerId, Month, Record};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::mask;

use crate::found_item::item_of;
use crate::recipients::require_reveal;
use crate::search::{ids_of, kind_name, kinds_of};
use crate::{Desk, DeskState, ItemKind, Operator};
use web::{JsonBody, KeyScope, KeyedResult, Raw, Result, SentKey, checked, ok, parse_exact, refused, time};

/// Records of one kind that are read for an answer, at most: the newest.
const READ_MAX: usize = 1_000;
/// Ids that are shown of a kind and month.
const SHOWN_MAX: usize = 20;

/// A person, by the tax id.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = PersonRequest, example = json!({"document": "123.456.789-09"}))]
pub struct PersonRequest<'a> {
    /// CPF or CNPJ, with or without punctuation.
    #[schema(value_type = String, min_length = 11, max_length = 18)]
    document: Raw<'a>,
}

/// Personal data that is stored of a person.
#[derive(Debug, Serialize, ToSchema)]
pub struct PersonView {
    /// The tax id, masked.
    pub document: String,
    /// Where the person's data stands, by kind and month, oldest month first.
    pub parts: Vec<PersonPart>,
    /// True when there is more than what was read: the newest 1,000 Records of each kind.
    pub more: bool,
}

/// Personal data of one kind that was sealed in one month.
#[derive(Debug, Serialize, ToSchema)]
pub struct PersonPart {
    /// `charges` (as the payer), `cashouts` (as the receiver), `subscriptions` and `cards` (as the
    /// customer), `recipients` or `merchants` (the registration).
    #[schema(value_type = String, example = "charges")]
    #[serde(serialize_with = "kind_name")]
    pub kind: ItemKind,
    /// The month whose key seals it.
    pub month: String,
    /// When its retention ends.
    pub until: String,
    /// How many objects there are.
    pub count: usize,
    /// Ids of 20 of them at most.
    pub ids: Vec<String>,
}

/// Lists where personal data of a person is stored: as payer, receiver of cashouts, customer of
/// subscriptions and stored cards, recipient, or merchant; by the month whose key seals it, and
/// until when. It needs the right `reveal` (403 `role_not_allowed`), and stands in the audit trail,
/// with a keyed digest of the tax id, before it is answered. Partners, mothers and other persons
/// within a registration are not found by their own tax ids.
#[utoipa::path(post, path = "/ops/people", operation_id = "look_up_person", request_body = PersonRequest,
    responses((status = 200, body = PersonView)))]
pub async fn look_up(State(desk): DeskState, operator: Operator, JsonBody { bytes, .. }: JsonBody) -> Result<Response> {
    require_reveal(&desk, &operator)?;
    let wire: PersonRequest<'_> = parse_exact(&bytes)?;
    let document = tax_id::normalize(&checked(|check| check.any_text("document", wire.document))?);
    if tax_id::kind(&document).is_none() {
        return Err(refused("document", "invalid", "document deve ser um CPF ou CNPJ"));
    }
    let person = person(&desk, &operator, document).await?;
    person.answer(|person| Ok(ok(person)))
}

/// What is stored of a person; a Record says first that this operator looks. A key repeats nothing.
pub async fn person(desk: &Desk, operator: &Operator, document: String) -> Result<KeyedResult<PersonView>> {
    let digest = desk.engine.keyring().fingerprint("person", &[document.as_bytes()]);
    let key = SentKey::none();
    let key = key.read(&desk.engine, KeyScope::Operators, None, b"")?;
    let execute = |admitted| async move {
        desk.engine.note_person_looked_up(digest, operator.context(admitted)).await?;
        Ok(Some(()))
    };
    let noted = key.run(LedgerId::System, |_| Ok(()), execute).await?;
    let person = stored_of(desk, document)?;
    Ok(noted.map(|()| person))
}

fn stored_of(desk: &Desk, document: String) -> Result<PersonView> {
    let masked = mask::document(&document);
    let value = SoughtValue::Personal(vec![PersonalValue::Document(document)]);
    let (mut parts, mut more) = (BTreeMap::<(u16, ItemKind), Vec<String>>::new(), false);
    for (kind, found) in desk.engine.search(&[value], |_| READ_MAX)? {
        more |= found.is_more || found.total > found.newest.len();
        for (_, record) in &found.newest {
            let Some(sealed) = &record.personal else { continue };
            for id in ids_of(&desk.engine, kind, record) {
                let (kind, id) = match item_of(desk, id)? {
                    Some((kind, item)) => (kind, item.id),
                    // A stored card that was deleted: its customer is sealed as before.
                    None if stores_card(record) => (ItemKind::Cards, id.uuid().to_string()),
                    None => (kinds_of(kind)[0], id.uuid().to_string()),
                };
                let ids = parts.entry((sealed.month, kind)).or_default();
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
    }
    let part = |((month, kind), mut ids): ((u16, ItemKind), Vec<String>)| {
        let (month, count) = (Month(month.into()), ids.len());
        ids.truncate(SHOWN_MAX);
        PersonPart {
            kind,
            month: month.to_string(),
            until: time(retained_until(month, desk.retention_months)),
            count,
            ids,
        }
    };
    Ok(PersonView { document: masked, parts: parts.into_iter().map(part).collect(), more })
}

fn stores_card(record: &Record) -> bool {
    record.events.iter().any(|event| matches!(event, Event::CardStored { .. }))
}
