//! Merchants: the list, and one merchant with its balances, settings, recipients and keys.

use std::num::NonZeroU32;
use std::sync::Arc;

use actors::engine::MerchantRow;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use ledger::{Account, Centavos, Fees, GroupNumber, LedgerId, Rate};
use maud::{Markup, html};
use wire::mask;

use crate::books::balance_table;
use crate::keys::{key_form, revoke_form};
use crate::scope::Scope;
use crate::table::Table;
use crate::wire_words::status_word;
use crate::{
    PageRequest, Screen, Section, Visit, Word, holds, lists, notes, pager_named, paging, part_named, show, wire_words,
    words,
};
use ops::api_keys;
use ops::closing;
use ops::merchants::find;
use ops::notes::NoteSubject;
use ops::{Desk, ItemKind};
use web::views::ledger::merchant_profile;
use web::views::recipient::{open, status_name};
use web::{PathId, Result, Role, not_found, query};

/// Recipients on the page of a merchant, the newest first.
const RECIPIENTS_A_PAGE: u64 = 40;
/// API keys on the page of a merchant, the oldest first.
const KEYS_A_PAGE: u64 = 20;

/// List of merchants; in the scope of one merchant it is the merchant's page.
pub(crate) async fn list(desk: State<Arc<Desk>>, visit: Visit, parts: Parts) -> Response {
    if let Scope::Merchant(_, id) = visit.scope {
        return Redirect::to(&visit.scope.of_path(&format!("/console/merchants/{}", id.uuid()))).into_response();
    }
    lists::show(desk, visit, PathId(ItemKind::Merchants.name().to_owned()), parts).await
}

/// A name that can be clicked.
fn named(name: &str) -> &str {
    if name.is_empty() { "—" } else { name }
}

/// One merchant.
pub(crate) async fn one(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, id, parts } = &request;
    let group = find(desk, id)?;
    visit.sees(Some(group))?;
    let ledger = LedgerId::Merchant(group);
    let row = desk.engine.merchant(group, Clone::clone).ok_or_else(not_found)?;
    let settings = closing::shown_settings(&desk.engine, group, row.settings, row.recipients.len());
    let profile = merchant_profile(&desk.engine, group);
    let accounts = desk.engine.accounts(ledger).await?;
    // The names of these accounts name no other ledger.
    let accounts = accounts.iter().filter(|(account, _)| is_of_the_platform(**account));
    let accounts = accounts
        .map(|(account, balance)| (show::account_named(visit.language, &account.kind_name()), *balance))
        .collect();
    let id = row.id.uuid();
    let body = html! {
        section.card aria-label=(visit.say(words::MERCHANT)) {
            p { (holds::badges(visit, &settings)) }
            (show::facts(vec![
                (visit.say(words::ID), html! { code { (id) } }),
                (visit.say(words::DOCUMENT), html! { (mask::document(&profile.document)) }),
                (visit.say(words::CITY), html! { bdi { (profile.city) } }),
                (visit.say(words::OPENED), show::moment(visit.language, row.created_at)),
                (visit.say(words::SPLITS), html! { (yes_or_no(visit, row.settings.split_enabled)) }),
                (visit.say(words::CASHOUTS), html! { (yes_or_no(visit, row.settings.cashout_enabled)) }),
            ]))
            p.actions {
                a.button href={"/console/charges?merchant_id=" (id)} { (visit.say(words::CHARGES)) }
                a.button href={"/console/ledgers/M-" (id)} { (visit.say(words::LEDGER)) }
                a.button href={"/console/merchants/" (id) "/events"} { (visit.say(words::WEBHOOKS)) }
                a.button href={"/console/audit?merchant_id=" (id)} { (visit.say(words::AUDIT)) }
                a.button href={"/console/queue?merchant_id=" (id)} { (visit.say(words::QUEUE)) }
                a.button href={"/console/merchants/" (id) "/open-items"} { (visit.say(words::OPEN_OF_MERCHANT)) }
                @if visit.may(Role::Admin) && !row.settings.closed { a.button href={"/console/merchants/" (id) "/change"} { (visit.say(words::CHANGE)) } }
            }
        }
        (visit.card("balances", words::CLAIMS, html! {
            (balance_table(visit, accounts))
        }))
        (holds::of_merchant(visit, &id.to_string(), &row.settings))
        (fees(visit, &row.settings.fees))
        (options(visit, &row))
        (recipients(desk, visit, &row, parts)?)
        (keys(desk, visit, group, parts)?)
        (notes::section(desk, visit, NoteSubject::Object(row.id))?)
    };
    Ok(Screen { section: Section::Merchants, title: named(&profile.name).to_owned(), body })
}

/// Whether an account of a merchant's ledger is a claim on the platform, or a debt to it.
fn is_of_the_platform(account: Account) -> bool {
    use Account::{Available, Deficit, Pending, ReservedCashout, ReservedDispute};
    matches!(account, Pending | Available | ReservedCashout | ReservedDispute | Deficit)
}

fn yes_or_no(visit: &Visit, is_so: bool) -> &'static str {
    visit.say(if is_so { words::YES } else { words::NO })
}

/// Rates in percent: the label, where the JSON has it, and the rate.
type RateField = (Word, &'static [&'static str], fn(&Fees) -> Rate);
pub(crate) const RATES: [RateField; 8] = [
    (words::MDR_1X, &["fees", "mdr_1x"], |fees| fees.mdr_1x),
    (words::MDR_2_6X, &["fees", "mdr_2_6x"], |fees| fees.mdr_2_6x),
    (words::MDR_7_12X, &["fees", "mdr_7_12x"], |fees| fees.mdr_7_12x),
    (words::FEE_MARGIN, &["fees", "margin"], |fees| fees.margin),
    (words::FEE_PIX, &["fees", "pix"], |fees| fees.pix),
    (words::ANTICIPATION_D2, &["fees", "anticipation", "d2"], |fees| fees.anticipation_d2),
    (words::ANTICIPATION_D7, &["fees", "anticipation", "d7"], |fees| fees.anticipation_d7),
    (words::ANTICIPATION_D15, &["fees", "anticipation", "d15"], |fees| fees.anticipation_d15),
];
/// Fixed fees: the label, the name in the form, which has reais, and in the JSON, and the fee.
type FixedFee = (Word, &'static str, &'static str, fn(&Fees) -> Centavos);
pub(crate) const FIXED: [FixedFee; 2] = [
    (words::FEE_ANTIFRAUD, "antifraud", "antifraud_cents", |fees| fees.antifraud),
    (words::FEE_CASHOUT, "cashout", "cashout_cents", |fees| fees.cashout),
];

fn fees(visit: &Visit, fees: &Fees) -> Markup {
    let percent = |rate: Rate| wire_words::percent(visit.language, &rate.as_percent().to_string());
    let rates = RATES.map(|(label, _, of)| (visit.say(label), html! { (percent(of(fees))) }));
    let fixed = FIXED.map(|(label, _, _, of)| (visit.say(label), html! { (visit.money(of(fees).0)) }));
    visit.card("fees", words::PRICES, show::facts(rates.into_iter().chain(fixed).collect()))
}

/// What becomes of splits that leave the seller nothing, as the interface names it: without the
/// guard, and with it.
pub(crate) const SPLIT_GUARDS: [(&str, Word); 2] = [("none", words::SPLIT_GUARD_NONE), ("net", words::SPLIT_GUARD_NET)];
/// Of what the MDR is taken, as the interface names it: of the total, and of the seller's part.
pub(crate) const MDR_BASES: [(&str, Word); 2] = [("total", words::MDR_TOTAL), ("seller_gross", words::MDR_SELLER)];

fn options(visit: &Visit, row: &MerchantRow) -> Markup {
    let (settings, options) = (&row.settings, &row.settings.options);
    let limit = |limit: Option<NonZeroU32>| html! { @match limit { Some(limit) => (limit), None => (visit.say(words::LIMIT_OF_SERVER)) } };
    let pairs = vec![
        (visit.say(words::SPLIT_GUARD), html! { (visit.say(SPLIT_GUARDS[usize::from(options.split_guard_net)].1)) }),
        (visit.say(words::MDR_BASE), html! { (visit.say(MDR_BASES[usize::from(options.mdr_on_seller_gross)].1)) }),
        (visit.say(words::REFUND_COMMISSION), html! { (yes_or_no(visit, options.refund_commission)) }),
        (visit.say(words::SETTLEMENT_DAYS), html! { (options.card_settlement_days) }),
        (visit.say(words::OWN_KEYS), html! { (yes_or_no(visit, !options.own_keys_forbidden)) }),
        (visit.say(words::LIMIT_CARD), limit(settings.card_requests_per_minute)),
        (visit.say(words::LIMIT_OTHER), limit(settings.other_requests_per_minute)),
    ];
    visit.card("options", words::OPTIONS, show::facts(pairs))
}

fn recipients(desk: &Desk, visit: &Visit, row: &MerchantRow, parts: &Parts) -> Result<Markup> {
    let page = part_named(&query(parts)?, "recipients", RECIPIENTS_A_PAGE)?;
    let shown = paging::range(row.recipients.len(), page);
    let rows = row.recipients.iter().rev().skip(shown.start).take(shown.len());
    let rows: Vec<_> = rows.map(|row| (row, open(&desk.engine, row, row.profiles.current()))).collect();
    let table = Table::list(visit.language, words::RECIPIENTS, &rows)
        .column("name", words::NAME, |(row, profile)| {
            html! { a href={"/console/recipients/" (row.id.uuid())} { bdi { (named(&profile.name)) } } }
        })
        .column("when", words::DOCUMENT, |(_, profile)| mask::document(&profile.document))
        .column("status", words::STATUS, |(row, _)| {
            visit.say(status_word(ItemKind::Recipients, status_name(row.status)))
        });
    Ok(html! {
        section.card aria-labelledby="recipients" {
            h2 id="recipients" { (visit.say(words::RECIPIENTS)) " (" (row.recipients.len()) ")" }
            (table.shown())
            (pager_named(visit, parts, "recipients", page, row.recipients.len() as u64))
        }
    })
}

fn keys(desk: &Desk, visit: &Visit, group: GroupNumber, parts: &Parts) -> Result<Markup> {
    let merchant = desk.engine.merchant(group, |row| row.id).unwrap_or_default().uuid().to_string();
    let (all, page) = (api_keys::listed(desk, group), part_named(&query(parts)?, "keys", KEYS_A_PAGE)?);
    let keys = paging::items(&all, page);
    let table = Table::of(visit.language, words::KEYS, keys)
        .text(words::ID, |key| match key.revoked {
            true => html! { code { (key.id) } },
            false => show::code_link("keys", &key.id),
        })
        .text(words::OPENED, |key| show::text_moment(visit.language, &key.created_at))
        .text(words::LAST_USED, |key| last_used(visit, key.last_used_at.as_deref()))
        .text(words::SCOPES, |key| scopes(visit, &key.scopes))
        .text(words::WEBHOOK_ADDRESS, |key| html! { bdi { (key.webhook_url.as_deref().unwrap_or("—")) } })
        .text(words::REVOKE, |key| match key.revoked {
            true => html! { (visit.say(words::REVOKED)) },
            false => revoke_form(visit, &merchant, &key.id),
        });
    Ok(visit.card(
        "api-keys",
        words::KEYS,
        html! {
            (table.shown())
            @if !keys.is_empty() { p.dim { (visit.say(words::LAST_USED_WHAT)) } }
            (pager_named(visit, parts, "keys", page, all.len() as u64))
            (key_form(visit, &merchant))
        },
    ))
}

/// What a key may do.
pub(crate) fn scopes(visit: &Visit, names: &[&str]) -> String {
    names.iter().map(|name| visit.say(wire_words::SCOPES.of(name))).collect::<Vec<_>>().join(", ")
}

/// The minute of a key's last use.
pub(crate) fn last_used(visit: &Visit, at: Option<&str>) -> Markup {
    html! { @match at { Some(at) => (show::text_moment(visit.language, at)), None => "—" } }
}
