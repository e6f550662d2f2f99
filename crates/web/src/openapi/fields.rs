//! What the fields of answers are by their names: one example, or one pattern, serves a name
//! wherever it is. A field that is something else has its own.

use serde_json::{Value, json};

use super::is_of;

/// Writes the pattern and the example of a field of an answer that has neither.
pub(super) fn shape(name: &str, schema: &mut Value) {
    if ["enum", "pattern", "example"].iter().any(|shape| schema.get(*shape).is_some()) {
        return;
    }
    if is_of(schema, "string") && schema.get("format").is_none() {
        if let Some((shape, value, example)) = form(name) {
            schema[shape] = json!(value);
            schema["example"] = json!(example);
        } else if let Some(example) = text(name) {
            schema["example"] = json!(example);
        }
    } else if is_of(schema, "integer")
        && let Some(example) = number(name)
    {
        schema["example"] = json!(example);
    }
}

/// How a text is written: the member of its schema that says so, and an example.
fn form(name: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match name {
        "day" | "effective_date" | "from" | "paid_on" | "settlement_date" | "to" => ("format", "date", "2026-11-27"),
        "digest" | "hash" | "head" | "previous" | "public_key" | "sha256" | "totals" => {
            ("pattern", "^[0-9a-f]{64}$", "5f0c6a1e9d3b4c2a8e7f6d5c4b3a29181706f5e4d3c2b1a09f8e7d6c5b4a3928")
        }
        "month" | "period" => ("pattern", "^[0-9]{4}-[0-9]{2}$", "2026-11"),
        _ => return None,
    })
}

fn text(name: &str) -> Option<&'static str> {
    Some(match name {
        "account" => "Assets:Platform:Available",
        "acctid" => "12345-6",
        "acquirer_reference" | "nsu" => "000000000017",
        "approved_by" | "closed_by" | "decided_by" | "erased_by" | "settled_by" => "bia",
        "authorization" => "123456",
        "batch" => "LOTE-20785",
        "by" | "operator" => "ana",
        "case_id" => "MED-2026-118",
        "city" => "São Paulo",
        "credit" => "Assets:Bank:Settlement",
        "d2" | "d7" | "d15" | "margin" | "mdr_2_6x" | "mdr_7_12x" | "pix" => "2.38",
        "debit" => "Assets:Bank:Own",
        "document" | "document_number" => "***.456.789-**",
        "email" | "pix_key" => "ana@example.com",
        "end_to_end_id" => "E00000000202607011200abcdef01234",
        "ledger" | "owner" => "M-019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e",
        "merchant_name" => "Loja Azul",
        "mother_name" => "Rita Prado",
        "name" | "nome" => "Ana Prado",
        "notes" => "Sem comprovante",
        "number" | "street_number" => "10",
        "plan" => "Mensal",
        "reason" => "Confirmado por escrito",
        "reference" => "EXTRATO-2026-11-30-17",
        "report" => "trial-balance",
        "state" => "SP",
        "street" => "Rua Direita",
        "webhook_secret" => "whsec_0000…",
        "webhook_url" => "https://loja.example.com/webhooks",
        "zip_code" | "zipcode" => "01002000",
        name if name.ends_with("_by") => "ana",
        _ => return None,
    })
}

fn number(name: &str) -> Option<i64> {
    Some(match name {
        "above" | "accepted_amount" | "amount" | "amount_cents" | "annual_revenue" | "available"
        | "exceeding_amount" | "gross" | "gross_amount" | "monthly_income" | "paid" | "pending" => 10_000,
        "antifraud_cents" | "cashout_cents" => 100,
        "commission" | "commission_returned" => 150,
        "debt" | "debt_cents" | "recovered_cents" | "reserved" | "unexplained_net" => 0,
        "fee" => 299,
        "net" => 9_701,
        _ => return None,
    })
}
