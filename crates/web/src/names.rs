//! Names of the fields of a request: which ones a body may have, and what a name that is unknown
//! was meant to be.
//!
//! A misspelt name must not move money in another way than its sender meant: `split` in place of
//! `splits` would pay nobody. So a name that is near a known one, or that another payments API uses
//! for it, is refused with the right name. A field that asks for another way of paying, such as an
//! authorization without capture, is refused unless its value asks for what happens anyway. Other
//! names are ignored, and the answer lists them in the header `Centavo-Ignored-Fields`. Operators'
//! bodies have no field that is ignored, and neither has that of a `PATCH`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::LazyLock;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use serde::Deserialize;
use serde::de::value::CowStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;
use strsim::osa_distance;

/// Response header with the fields that were ignored, by their paths, with commas between.
pub const IGNORED: HeaderName = HeaderName::from_static("centavo-ignored-fields");

/// Most characters of a name that an answer repeats, and most names that the header lists.
const NAME_CHARS_MAX: usize = 64;
const LISTED_MAX: usize = 20;
/// A name with more digits is not repeated: it may be a card number.
const DIGITS_MAX: usize = 6;

tokio::task_local! {
    static FIELDS_IGNORED: RefCell<Vec<String>>;
}

/// Does the work of a request, and lists the fields of its body that were ignored in the answer.
pub async fn with_ignored<E>(work: impl Future<Output = Result<Response, E>>) -> Result<Response, E> {
    let listed = async {
        let mut response = work.await?;
        let names = FIELDS_IGNORED.with(RefCell::take).join(", ");
        if let Some(names) = HeaderValue::try_from(names).ok().filter(|names| !names.is_empty()) {
            response.headers_mut().insert(IGNORED, names);
        }
        Ok(response)
    };
    FIELDS_IGNORED.scope(RefCell::default(), listed).await
}

/// Notes that a field was ignored. Outside of a request nobody asks.
pub fn note_ignored(path: String) {
    let _outside_of_requests = FIELDS_IGNORED.try_with(|ignored| {
        let mut ignored = ignored.borrow_mut();
        if ignored.len() < LISTED_MAX && !ignored.contains(&path) {
            ignored.push(path);
        }
    });
}

/// A name as an answer may repeat it: short, in ASCII that a header can have, and no card number.
pub fn shown(name: &str) -> String {
    if name.chars().filter(char::is_ascii_digit).count() > DIGITS_MAX {
        return "?".to_owned();
    }
    let is_plain = |letter: &char| letter.is_ascii_graphic() && *letter != ',';
    name.chars().take(NAME_CHARS_MAX).map(|letter| if is_plain(&letter) { letter } else { '?' }).collect()
}

/// What an unknown name was meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// This field of the same object.
    Field(&'static str),
    /// A field of the same name within this object, which the same object has.
    Inside(&'static str),
    /// An amount, where no amount is taken.
    Amount,
    /// The key of the request, which is a header.
    Key,
    /// A way of paying that no request can choose.
    Way(&'static Way),
    /// Nothing that is known.
    Nothing,
}

/// What a name that is not among the known ones was meant to be.
pub fn meant(name: &str, fields: &[&'static str]) -> Meant {
    let plain = plain(name);
    // A charge was answered with these names before it took stored cards.
    let takes_cards = fields.contains(&"credit_card");
    let known = || fields.iter().filter(|field| !(takes_cards && STORED_CARD.contains(*field)));
    // A share is a percent where there are some, and else an amount.
    if let Some(field) = known()
        .filter(|field| others_name(field, &plain))
        .max_by_key(|field| ["percent", "merchant_transaction_id"].contains(*field))
    {
        return Meant::Field(field);
    }
    let near = known().filter_map(|field| {
        let most = if field.chars().count() <= SHORT_CHARS_MAX { 1 } else { 2 };
        let edits = edits(&plain, &self::plain(field)).min(edits(name, field));
        (edits <= most).then_some((edits, *field))
    });
    match near.min_by_key(|(edits, _)| *edits) {
        Some((_, field)) => Meant::Field(field),
        None if others_name("*amount", &plain) => Meant::Amount,
        None if plain == "idempotencykey" => Meant::Key,
        None => {
            let moves_money = fields.iter().any(|field| MOVED.contains(field));
            let way = WAYS.iter().find(|way| moves_money && way.names.split(' ').any(|name| name == plain));
            let holder = known().find(|object| others_name(&format!("{object}."), &plain));
            way.map(Meant::Way).or(holder.copied().map(Meant::Inside)).unwrap_or(Meant::Nothing)
        }
    }
}

/// The fields of a stored card in a request that takes cards too.
const STORED_CARD: [&str; 2] = ["card_token", "cvv"];

/// Most letters of a name of which one edit makes another word.
const SHORT_CHARS_MAX: usize = 5;

/// A name without case and what stands between its words: `Split_Rules` is `splitrules`.
fn plain(name: &str) -> String {
    let lower = name.chars().take(NAME_CHARS_MAX).flat_map(char::to_lowercase);
    lower.filter(|letter| letter.is_alphanumeric()).collect()
}

/// The number of edits between two names: letters inserted, left out, changed, or swapped with the
/// next one. Names of very unlike length are as far apart as the lengths say.
fn edits(one: &str, other: &str) -> usize {
    let apart = one.chars().count().abs_diff(other.chars().count());
    if apart > 2 { apart } else { osa_distance(one, other) }
}

/// Names of the number of installments.
const INSTALLMENTS: &str = "installments installmentcount installmentscount numinstallments numberinstallments \
     numberofinstallments parcelas numeroparcelas numparcelas qtdparcelas parcelamento";

/// A way of paying that a request of another API chooses, and that is always the same here.
#[derive(Debug, PartialEq, Eq)]
pub struct Way {
    /// Its names, plain.
    names: &'static str,
    /// The values, beside null, that ask for what happens anyway: a field with one is ignored.
    usual: &'static [&'static str],
    /// What happens anyway, in the words of a message.
    pub rule: &'static str,
}

/// Fields of objects that say how money moves, now or later: others have no way of paying.
const MOVED: [&str; 4] = ["amount", "valor", "splits", "cvv"];

/// Names that would move other money, or move it at another time.
const WAYS: &[Way] = &[
    Way { names: "capture autocapture captura", usual: &["true"], rule: CAPTURED },
    Way { names: "authorizeonly authonly preauthorization manualcapture delayed", usual: &["false"], rule: CAPTURED },
    Way { names: "capturedelayhours", usual: &["0"], rule: CAPTURED },
    Way { names: "intent", usual: &["capture", "sale"], rule: CAPTURED },
    Way { names: INSTALLMENTS, usual: &["1"], rule: "parcelas vão em installments, ao lado do cartão" },
    Way { names: "capturemethod", usual: &["automatic", "automatic_async"], rule: CAPTURED },
    Way { names: "operationtype", usual: &["auth_and_capture"], rule: CAPTURED },
    Way { names: "currency currencyid currencycode moeda", usual: &["BRL"], rule: "todo valor é em reais (BRL)" },
    Way { names: "quantity quantidade", usual: &["1"], rule: "o valor é o total" },
    Way { names: "confirm", usual: &["true"], rule: AT_ONCE },
    Way {
        names: "scheduledate scheduleddate scheduleat scheduledat agendamento paymentdate datapagamento startdate \
                startat trialdays trialend",
        usual: &[],
        rule: AT_ONCE,
    },
];

impl Way {
    /// True for a value, as JSON, that asks for what happens anyway; as a text too, which forms
    /// send.
    fn is_usual(&self, value: &str) -> bool {
        let value = value.trim_matches('"');
        value == "null" || self.usual.iter().any(|usual| usual.eq_ignore_ascii_case(value))
    }
}

const CAPTURED: &str = "a cobrança é capturada na hora";
const AT_ONCE: &str = "o pedido vale na hora";

/// Fields, and the names that others give to them.
static OTHERS_NAMES: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let lines = include_str!("names.txt").lines().filter_map(|line| line.split_once(": "));
    lines.map(|(field, names)| (field, names.split(' ').collect())).collect()
});

/// True for a name, plain, that others use for a field.
fn others_name(field: &str, plain: &str) -> bool {
    OTHERS_NAMES.get(field).is_some_and(|names| names.contains(&plain))
}

/// The wire struct of a JSON object, and the names in it that the struct does not have. A field
/// that is an empty text reads as null.
pub fn read<'a, T: Deserialize<'a>>(json: &'a str) -> serde_json::Result<(T, Vec<Unknown<'a>>)> {
    let mut unknown = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let wire = T::deserialize(Object { inner: &mut deserializer, unknown: &mut unknown })?;
    deserializer.end()?;
    Ok((wire, unknown))
}

/// A name that an object has and its wire struct has not.
#[derive(Debug)]
pub struct Unknown<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// What it was meant to be.
    pub meant: Meant,
}

/// Deserializer of an object, which hears which names its struct has.
struct Object<'u, 'a, D> {
    inner: D,
    unknown: &'u mut Vec<Unknown<'a>>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Object<'_, 'de, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(Members { visitor, fields, unknown: self.unknown })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The members of an object, on their way to the struct.
struct Members<'u, 'a, V> {
    visitor: V,
    fields: &'static [&'static str],
    unknown: &'u mut Vec<Unknown<'a>>,
}

impl<'a, V: Visitor<'a>> Visitor<'a> for Members<'_, 'a, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, members: A) -> Result<V::Value, A::Error> {
        let Members { visitor, fields, unknown } = self;
        visitor.visit_map(KnownNames { members, fields, unknown, is_unknown: false })
    }
}

struct KnownNames<'u, 'a, A> {
    members: A,
    fields: &'static [&'static str],
    unknown: &'u mut Vec<Unknown<'a>>,
    /// Whether the last name is the last of the unknown ones.
    is_unknown: bool,
}

impl<'a, A: MapAccess<'a>> MapAccess<'a> for KnownNames<'_, 'a, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(MemberName(name)) = self.members.next_key()? else { return Ok(None) };
        self.is_unknown = !self.fields.contains(&&*name);
        if self.is_unknown {
            self.unknown.push(Unknown { meant: meant(&name, self.fields), name: name.clone() });
        }
        seed.deserialize(CowStrDeserializer::new(name)).map(Some)
    }

    /// The value of the last name: an empty text is null.
    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let sent: &'a RawValue = self.members.next_value()?;
        let value = if sent.get() == "\"\"" { RawValue::NULL } else { sent };
        if self.is_unknown
            && let Some(last) = self.unknown.last_mut()
            && let Meant::Way(way) = last.meant
            && way.is_usual(value.get())
        {
            last.meant = Meant::Nothing;
        }
        seed.deserialize(value).map_err(serde::de::Error::custom)
    }
}

/// The name of a field, borrowed unless it has escapes.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MemberName<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Raw;

    const CHARGE: &[&str] = &[
        "amount",
        "customer",
        "credit_card",
        "card",
        "installments",
        "payment_type",
        "description",
        "splits",
        "reference",
        "reference_unique",
        "metadata",
    ];

    #[test]
    fn a_misspelt_name_is_told_from_another_one() {
        use Meant::{Amount, Field, Inside, Key, Nothing};
        let cases: &[(&[&'static str], &str, Meant)] = &[
            (CHARGE, "split", Field("splits")),
            (CHARGE, "Splits", Field("splits")),
            (CHARGE, "SPLITS", Field("splits")),
            (CHARGE, "split_rules", Field("splits")),
            (CHARGE, "splitRules", Field("splits")),
            (CHARGE, "application_fee_amount", Field("splits")),
            (CHARGE, "installment", Field("installments")),
            (CHARGE, "instalments", Field("installments")),
            (CHARGE, "installmentCount", Field("installments")),
            (CHARGE, "amuont", Field("amount")),
            (CHARGE, "value", Field("amount")),
            (CHARGE, "creditCard", Field("credit_card")),
            (CHARGE, "crad", Field("card")),
            (CHARGE, "descrição", Field("description")),
            (CHARGE, "payer", Field("customer")),
            // Two edits of a short name make another word.
            (CHARGE, "cargo", Nothing),
            (CHARGE, "meta_data", Field("metadata")),
            (CHARGE, "metdata", Field("metadata")),
            (CHARGE, "metadados", Field("metadata")),
            (CHARGE, "referenceUnique", Field("reference_unique")),
            (CHARGE, "referance", Field("reference")),
            (CHARGE, "reference_id", Field("reference")),
            (CHARGE, "externalReference", Field("reference")),
            (CHARGE, "order_id", Field("reference")),
            (CHARGE, "code", Field("reference")),
            // A cashout's own number refuses a second transfer, which a reference does not.
            (&["merchant_transaction_id", "reference"], "external_reference", Field("merchant_transaction_id")),
            (CHARGE, "order", Nothing),
            (&["amount"], "reference_id", Nothing),
            (CHARGE, "", Nothing),
            (&["nome", "valor"], "name", Field("nome")),
            (&["nome", "valor"], "amount", Field("valor")),
            (&["number", "cvv"], "cvc", Field("cvv")),
            (&["number", "cvv"], "security_code", Field("cvv")),
            (&["totalBillingCycles"], "total_billing_cycles", Field("totalBillingCycles")),
            // One that is ignored would be a charge that is made twice.
            (CHARGE, "idempotency_key", Key),
            (CHARGE, "Idempotency-Key", Key),
            (&["merchant_transaction_id"], "idempotencyKey", Field("merchant_transaction_id")),
            (&["metadata"], "metdata", Field("metadata")),
            (&["metadata"], "note", Nothing),
            (&[], "amount", Amount),
            (CHARGE, "discount", Amount),
            (CHARGE, "juros", Amount),
            (&[], "amount_cents", Amount),
            (&[], "reason", Nothing),
            (&["register_information", "metadata"], "mother_name", Inside("register_information")),
            (&["metadata"], "mother_name", Nothing),
        ];
        for (known, name, expected) in cases {
            assert_eq!(meant(name, known), *expected, "{name} of {known:?}");
        }
    }

    #[test]
    fn names_of_others_are_plain_and_mean_one_field_of_an_object() {
        assert!(OTHERS_NAMES.len() > 60);
        for (field, others) in &*OTHERS_NAMES {
            for name in others {
                assert_eq!(plain(name), *name, "{field}");
            }
        }
    }

    #[test]
    fn edits_are_counted() {
        for (one, other, expected) in
            [("", "", 0), ("split", "splits", 1), ("amuont", "amount", 1), ("count", "amount", 2), ("ab", "abcdef", 4)]
        {
            assert_eq!((edits(one, other), edits(other, one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn an_empty_text_reads_as_null_and_unknown_names_are_found() {
        #[derive(Deserialize)]
        #[serde(bound(deserialize = "'de: 'a"))]
        struct Wire<'a> {
            amount: Raw<'a>,
            reason: Raw<'a>,
        }
        let json = r#"{"amount": 1.50, "re\u0061son": "", "metadata": {"a": [""]}, "am\u0061unt": 1, "x": " "}"#;
        let (wire, unknown) = read::<Wire<'_>>(json).unwrap();
        assert_eq!((wire.amount.map(RawValue::get), wire.reason.map(RawValue::get)), (Some("1.50"), None));
        let unknown: Vec<_> = unknown.iter().map(|one| (&*one.name, one.meant)).collect();
        let expected = [("metadata", Meant::Nothing), ("amaunt", Meant::Field("amount")), ("x", Meant::Nothing)];
        assert_eq!(unknown, expected);
    }

    #[test]
    fn another_way_of_paying_is_refused_and_the_usual_one_is_ignored() {
        #[derive(Deserialize)]
        #[serde(bound(deserialize = "'de: 'a"))]
        struct Wire<'a> {
            amount: Raw<'a>,
        }
        for (field, is_refused) in [
            (r#""capture": false"#, true),
            (r#""capture": true"#, false),
            (r#""capture": "true""#, false),
            (r#""capture": "false""#, true),
            (r#""capture_method": "manual""#, true),
            (r#""capture_method": "automatic_async""#, false),
            (r#""authorizeOnly": true"#, true),
            (r#""authorizeOnly": false"#, false),
            (r#""operation_type": "auth_only""#, true),
            (r#""operation_type": "auth_and_capture""#, false),
            (r#""currency": "usd""#, true),
            (r#""Currency": "brl""#, false),
            (r#""currency_id": null"#, false),
            (r#""currency": """#, false),
            (r#""confirm": false"#, true),
            (r#""quantity": 2"#, true),
            (r#""quantity": 1"#, false),
            (r#""trial_end": 1798761600"#, true),
            (r#""captureDelayHours": 24"#, true),
            (r#""installments": 3"#, true),
            (r#""qtd_parcelas": "1""#, false),
            (r#""dataPagamento": "2026-12-24""#, true),
        ] {
            // The fields around it have values that are usual ones.
            let json = format!(r#"{{"x": true, {field}, "amount": true}}"#);
            let (wire, unknown) = read::<Wire<'_>>(&json).unwrap();
            let [Unknown { meant: Meant::Nothing, .. }, Unknown { meant, .. }] = &*unknown else { panic!("{field}") };
            let is_as_expected = if is_refused { matches!(meant, Meant::Way(_)) } else { *meant == Meant::Nothing };
            assert!(is_as_expected && wire.amount.is_some(), "{field}: {meant:?}");
        }
    }

    #[test]
    fn an_answer_repeats_no_number_of_a_card_and_nothing_that_a_header_cannot_have() {
        for (name, expected) in
            [("metadata", "metadata"), ("a,b\n", "a?b?"), ("maçã", "ma??"), ("4111111111111111", "?")]
        {
            assert_eq!(shown(name), expected);
        }
        assert_eq!(shown(&"x".repeat(1_000)).len(), NAME_CHARS_MAX);
    }
}
