//! Fields that a Record changed, old and new, by their labels and in the reader's language.

use maud::{Markup, html};
use serde_json::Value;

use crate::find::status_word;
use crate::page::Visit;
use crate::show;
use crate::wire_words::{self, OTHER};
use crate::words::{self, Word, word};
use ops::audit::shown;
use ops::audited_changes::FieldChange;
use ops::search::ItemKind;
use web::language::Language;

/// One line for each field.
pub(crate) fn lines(visit: &Visit, changes: &[FieldChange]) -> Markup {
    html! {
        @for change in changes {
            div {
                (visit.say(label(&change.field)))
                @if !change.new.is_null() || !change.old.is_null() {
                    ": " bdi { (value(visit, &change.field, &change.old)) } " → " bdi { (value(visit, &change.field, &change.new)) }
                }
            }
        }
    }
}

/// The label of a field, as the pages that change it name it.
fn label(field: &str) -> Word {
    match field {
        "name, city" => word("Nome, cidade", "Name, city"),
        "split_enabled" => words::SPLITS,
        "cashout_enabled" => words::CASHOUTS,
        "suspended" => words::SUSPENDED,
        "payouts_held" => words::PAYOUTS_HELD,
        "closing" => words::CLOSING,
        "closed" => words::CLOSED,
        "fees.mdr_1x" => words::MDR_1X,
        "fees.mdr_2_6x" => words::MDR_2_6X,
        "fees.mdr_7_12x" => words::MDR_7_12X,
        "fees.margin" => words::FEE_MARGIN,
        "fees.pix" => word("Taxa do PIX", "Fee of PIX"),
        "fees.antifraud_cents" => words::FEE_ANTIFRAUD,
        "fees.cashout_cents" => word("Taxa do cashout", "Fee of a cashout"),
        "fees.anticipation.d2" => words::ANTICIPATION_D2,
        "fees.anticipation.d7" => words::ANTICIPATION_D7,
        "fees.anticipation.d15" => words::ANTICIPATION_D15,
        "options.split_guard" => words::SPLIT_GUARD,
        "options.mdr_base" => words::MDR_BASE,
        "options.refund_commission" => word("Devolver a comissão com reembolsos", "Return the commission with refunds"),
        "options.card_settlement_days" => words::SETTLEMENT_DAYS,
        "options.own_keys" => words::OWN_KEYS,
        "rate_limits.card" => words::LIMIT_CARD,
        "rate_limits.other" => words::LIMIT_OTHER,
        "webhook_url" => words::WEBHOOK_ADDRESS,
        "scopes" => words::SCOPES,
        "events" => words::EVENTS_SENT,
        "bank_account" => words::DESTINATION,
        "status" => words::STATUS,
        "bank_account_review" => word("Análise da conta bancária", "Review of the bank account"),
        _ => OTHER,
    }
}

fn value(visit: &Visit, field: &str, value: &Value) -> String {
    let said = |word: Word| visit.say(word).to_owned();
    match (field, value) {
        (_, Value::Bool(is_so)) => said(if *is_so { words::YES } else { words::NO }),
        ("rate_limits.card" | "rate_limits.other", Value::Null) => said(words::LIMIT_OF_SERVER),
        ("options.split_guard", Value::String(name)) => {
            said(if name == "net" { words::SPLIT_GUARD_NET } else { words::SPLIT_GUARD_NONE })
        }
        ("options.mdr_base", Value::String(name)) => {
            said(if name == "total" { words::MDR_TOTAL } else { words::MDR_SELLER })
        }
        ("status", Value::String(name)) => said(status_word(ItemKind::Recipients, name)),
        ("bank_account_review", Value::String(name)) => said(wire_words::account_review(name)),
        (field, Value::String(rate)) if field.starts_with("fees.") => percent(visit.language, rate),
        (field, Value::Number(cents)) if field.ends_with("_cents") => visit.money(cents.as_i64().unwrap_or_default()),
        (_, value) => shown(value),
    }
}

/// A rate with the decimal sign of a language, such as `2,99 %`.
pub(crate) fn percent(language: Language, rate: &str) -> String {
    format!("{} %", show::decimal(language, rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::fees::Settings;
    use ops::audited_changes::settings_fields;

    #[test]
    fn every_setting_of_a_merchant_has_a_label() {
        let fields = settings_fields(&Settings::default());
        assert!(fields.len() > 18, "{fields:?}");
        for field in fields.keys() {
            assert_ne!(label(field), OTHER, "{field}");
        }
    }
}
