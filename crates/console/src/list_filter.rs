//! Filter of a list: a form whose fields stand in the address, and links to files of the list, with
//! all rows of the filter.

use axum::http::request::Parts;
use books::table_file::TableFormat;
use maud::{Markup, html};

use crate::form::amount;
use crate::ledger_field::{LedgerChoice, LedgerField};
use crate::paging::address;
use crate::scope::Scope;
use crate::{Visit, Word, words};
use ops::desk::Desk;
use web::{Language, Result, query};

/// A field of a filter, by the parameter that it sends.
pub(crate) enum Field<'a> {
    /// One of these values; none for all.
    Choice(&'static str, Word, Vec<(&'a str, Word)>),
    /// Digits or letters.
    Text(&'static str, Word),
    /// An amount, which people write in reais.
    Amount(&'static str, Word),
    /// A day.
    Day(&'static str, Word),
    /// A merchant or a recipient, by its name or id.
    Owner(&'static str, Word, LedgerChoice),
    /// A parameter of a link, which the form keeps.
    Hidden(&'static str),
}

/// The field of a list's merchant; a page of one merchant has no such field.
pub(crate) fn merchant_field(visit: &Visit) -> Option<Field<'static>> {
    (visit.scope == Scope::All).then_some(Field::Owner("merchant", words::MERCHANT, LedgerChoice::Merchants))
}

/// The field of a list's recipient.
pub(crate) const RECIPIENT_FIELD: Field<'static> =
    Field::Owner("recipient", words::RECIPIENT, LedgerChoice::Recipients);

/// The form of a filter with what an address has.
pub(crate) fn form(desk: &Desk, visit: &Visit, given: &[(String, String)], fields: &[Field<'_>]) -> Markup {
    let sent = |name: &str| given.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    html! {
        form.filters {
            (visit.scope.field())
            @for field in fields {
                @match field {
                    Field::Hidden(name) => @if let Some(value) = sent(name) { input type="hidden" name=(name) value=(value); },
                    Field::Choice(name, label, options) => div {
                        label for=(name) { (visit.say(*label)) }
                        select id=(name) name=(name) {
                            option value="" { (visit.say(words::ALL_KINDS)) }
                            @for (value, word) in options {
                                option value=(value) selected[sent(name) == Some(value)] { (visit.say(*word)) }
                            }
                        }
                    },
                    Field::Text(name, label) => div {
                        label for=(name) { (visit.say(*label)) }
                        input id=(name) name=(name) value=[sent(name)] maxlength="140" autocomplete="off";
                    },
                    Field::Amount(name, label) => div {
                        label for=(name) { (visit.say(*label)) }
                        input id=(name) name=(name) value=[sent(name)] size="8" maxlength="20" inputmode="decimal" autocomplete="off";
                    },
                    Field::Owner(name, label, offered) => div {
                        @let value = sent(name).or_else(|| sent(&format!("{name}_id"))).unwrap_or_default();
                        (LedgerField { id: name, name, label: *label, offered: *offered, is_required: false, value }.show(desk, visit))
                    },
                    Field::Day(name, label) => div {
                        label for=(name) { (visit.say(*label)) }
                        input id=(name) type="date" name=(name) value=[sent(name)];
                    },
                }
            }
            button type="submit" { (visit.say(words::SHOW)) }
        }
    }
}

/// The parameters as the routes of `/ops` take them: without the empty ones of a form, and amounts
/// in centavos.
pub(crate) fn as_sent(visit: &Visit, parts: &Parts) -> Result<Vec<(String, String)>> {
    let sent = query(parts)?.into_iter().filter(|(name, value)| !value.is_empty() && name != "lang");
    let read = |(name, value): (String, String)| match name.as_str() {
        "amount_from" | "amount_to" => {
            let amount = amount(visit.language, &name, &value)?;
            Ok((name, amount.to_string()))
        }
        _ => Ok((name, value)),
    };
    sent.map(read).collect()
}

/// Links to the list of this filter as files, with all rows; newest first where another order has
/// not all of them.
pub(crate) fn file_links(visit: &Visit, parts: &Parts, is_cut: bool) -> Markup {
    let dropped = ["format", "page", "before", "lang", if is_cut { "order" } else { "format" }];
    let link = |format: TableFormat| address(&parts.uri, &dropped, Some(&format!("format={}", format.name())));
    let csv = if visit.language == Language::Portuguese { TableFormat::CsvPtbr } else { TableFormat::Csv };
    html! {
        p.pager.files {
            (visit.say(words::WHOLE_LIST)) ": "
            a href=(link(csv)) download { "CSV" } " · " a href=(link(TableFormat::Xlsx)) download { "XLSX" }
        }
    }
}
