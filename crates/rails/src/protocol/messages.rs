//! Messages of the rail protocol. Amounts are whole centavos, and anything else in their place
//! makes a message unreadable. Words that are not known here say nothing.

use ledger::{Centavos, RailStamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::client::Answer;
pub(super) use crate::client::json_body as body;
pub(super) use crate::client::values::is_reference;
use crate::client::values::{REASON_LEN_MAX, instant, is_message_id, reason_of, shortened};

/// What the bridge has under an id of ours: a card or PIX charge, a transfer, a repayment. A member
/// with the name of another kind's, and of another shape, is read as absent: members may be added.
#[derive(Deserialize)]
pub(super) struct Object {
    pub(super) id: String,
    pub(super) status: String,
    #[serde(default, deserialize_with = "of_this_shape")]
    pub(super) amount: Option<Centavo>,
    #[serde(default, deserialize_with = "of_this_shape")]
    pub(super) fee: Option<Centavo>,
    #[serde(default, deserialize_with = "of_this_shape")]
    pub(super) brand: Option<String>,
    #[serde(default, deserialize_with = "of_this_shape")]
    pub(super) reference: Option<String>,
    #[serde(default, deserialize_with = "of_this_shape")]
    at: Option<String>,
    #[serde(default, deserialize_with = "of_this_shape")]
    pub(super) end_to_end_id: Option<String>,
    /// The issuer's authorization code of a card charge, and its number at the acquirer.
    authorization: Option<Value>,
    nsu: Option<Value>,
    /// The BR Code of a PIX charge.
    #[serde(default, deserialize_with = "of_this_shape")]
    pub(super) code: Option<String>,
    #[serde(default, deserialize_with = "of_this_shape")]
    pub(super) payment: Option<PixPayment>,
    #[serde(default, deserialize_with = "of_this_shape")]
    pub(super) returned: Option<Returned>,
}

/// A member's value; `None` where it has another shape.
fn of_this_shape<'de, D: Deserializer<'de>, T: DeserializeOwned>(value: D) -> Result<Option<T>, D::Error> {
    Value::deserialize(value).map(|value| serde_json::from_value(value).ok())
}

/// Whole centavos.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct Centavo(i64);

impl From<Centavo> for Centavos {
    fn from(centavo: Centavo) -> Self {
        Self(centavo.0)
    }
}

impl Object {
    /// The bridge's own id of what it did, and when.
    pub(super) fn stamp(&self) -> Result<RailStamp, &'static str> {
        stamp(self.reference.as_deref(), self.at.as_deref())
    }

    /// The same of a capture, with what a fiscal document needs.
    pub(super) fn capture(&self) -> Result<RailStamp, &'static str> {
        let defect = "authorization or nsu has not 1 to 64 visible ASCII characters";
        let text = |value: &Value| value.as_str().filter(|text| is_reference(text)).map(str::to_owned);
        let sound = |member: &Option<Value>| member.as_ref().map(|value| text(value).ok_or(defect)).transpose();
        let (authorization, nsu) = (sound(&self.authorization)?, sound(&self.nsu)?);
        Ok(RailStamp { authorization, nsu, ..self.stamp()? })
    }

    pub(super) fn has_amount(&self, amount: Centavos) -> bool {
        self.amount.map(Centavos::from) == Some(amount)
    }
}

/// A payment of a PIX charge.
#[derive(Deserialize)]
pub(super) struct PixPayment {
    pub(super) charge: Option<String>,
    pub(super) end_to_end_id: String,
    pub(super) amount: Centavo,
    pub(super) at: String,
}

/// A transfer that came back whole.
#[derive(Deserialize)]
pub(super) struct Returned {
    reference: Option<String>,
    at: Option<String>,
    reason: Option<String>,
}

impl Returned {
    pub(super) fn stamp(&self) -> Result<RailStamp, &'static str> {
        stamp(self.reference.as_deref(), self.at.as_deref())
    }

    pub(super) fn reason(&self) -> String {
        reason_of(self.reason.as_deref(), "returned")
    }
}

pub(super) fn stamp(reference: Option<&str>, at: Option<&str>) -> Result<RailStamp, &'static str> {
    let id = reference.filter(|text| is_reference(text)).ok_or("reference has not 1 to 64 visible ASCII characters")?;
    let at = at.and_then(instant).ok_or("at is no instant with a zone")?;
    Ok(RailStamp::new(id.to_owned(), at))
}

/// The PIX end-to-end id of an object that has one.
pub(super) fn end_to_end_id(text: &str) -> Result<String, &'static str> {
    is_message_id(text).then(|| text.to_owned()).ok_or("end_to_end_id has not 32 letters and digits")
}

/// A problem document.
#[derive(Deserialize)]
pub(super) struct Problem {
    pub(super) code: String,
    pub(super) id: Option<String>,
    detail: Option<String>,
}

/// The code of the answer that says that the rail has none.
pub(super) const NOT_FOUND: &str = "not_found";

/// Codes of a refusal, with status 422: no money moved, and none will under this id.
pub(super) const REFUSALS: [&str; 10] = [
    "declined",
    "insufficient_funds",
    "expired_card",
    "invalid_card",
    "suspected_fraud",
    "invalid_receiver",
    "limit_exceeded",
    "amount_exceeds_payment",
    "unknown_payment",
    "unsupported",
];

/// Why the rail will not carry out an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// One of [`REFUSALS`].
    pub(super) code: String,
    /// Code and detail, at most 300 characters.
    pub(super) reason: String,
}

/// What an answer about an id says.
pub(super) enum Outcome {
    /// The rail has it.
    It(Box<Object>),
    /// It refuses it for good.
    Refused(Refusal),
    /// It has none.
    None,
}

/// Reads an answer about an id of ours. All but the three outcomes is an error, with its reason.
pub(super) fn outcome(answer: &Answer, id: &str) -> Result<Outcome, String> {
    let is_ours = |named: &str| if named == id { Ok(()) } else { Err("id is another one".to_owned()) };
    let status = answer.status.as_u16();
    match status {
        200 | 201 => {
            let object: Object = answer.read()?;
            is_ours(&object.id)?;
            Ok(Outcome::It(Box::new(object)))
        }
        404 | 422 => {
            let problem: Problem = answer.read()?;
            is_ours(problem.id.as_deref().unwrap_or_default())?;
            match status {
                404 if problem.code == NOT_FOUND => Ok(Outcome::None),
                422 if REFUSALS.contains(&problem.code.as_str()) => Ok(Outcome::Refused(refusal(problem))),
                _ => Err(format!("its code is none of those for {status}")),
            }
        }
        _ => Err(format!("its answer {status} is no outcome")),
    }
}

fn refusal(problem: Problem) -> Refusal {
    let Problem { code, detail, .. } = problem;
    let detail = detail.filter(|detail| !detail.trim().is_empty());
    let reason = detail.map_or_else(|| code.clone(), |detail| format!("{code}: {}", detail.trim()));
    Refusal { reason: shortened(&reason, REASON_LEN_MAX), code }
}
