//! Merchants: create, read, change.

use std::num::NonZeroU32;

use actors::engine::MerchantRow;
use axum::extract::State;
use axum::response::Response;
use ledger::fees::Options;
use ledger::merchant::MerchantOpening;
use ledger::tax_id;
use ledger::{
    Centavos, Fees, GroupNumber, LedgerId, MerchantCommand, MerchantProfile, ObjectId, Rate, Record, Sealed, SealedFor,
    Settings,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::closing::shown_settings;
use crate::storefront::{self, StorefrontRequest, StorefrontView};
use crate::{Admin, AdminCall, Desk, DeskState, Operator};
use web::guards::rate_limit::RateLimitSettings;
use web::json::present;
use web::{
    Checker, KeyScope, KeyedBody, List, Page, PageQuery, PathId, Raw, Result, created, decided, not_found, ok,
    parse_exact, time,
};

/// A merchant, as sent. On PATCH, what is absent stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "name": "Loja Azul", "document": "12.345.678/0001-95", "city": "São Paulo", "split_enabled": true, "cashout_enabled": true,
    "fees": {"pix": "0.89"}, "options": {"split_guard": "net"},
}))]
pub struct MerchantRequest<'a> {
    /// Name, as shown to payers.
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    name: Raw<'a>,
    /// CPF or CNPJ; cannot be changed.
    #[schema(value_type = String, min_length = 11, max_length = 18)]
    document: Raw<'a>,
    /// City, as shown in PIX codes.
    #[schema(value_type = Option<String>, max_length = 60)]
    #[serde(default, deserialize_with = "present")]
    city: Option<Raw<'a>>,
    /// May charge with splits and register recipients.
    #[schema(value_type = Option<bool>)]
    split_enabled: Raw<'a>,
    /// May cash out.
    #[schema(value_type = Option<bool>)]
    cashout_enabled: Raw<'a>,
    /// Rates that differ from the price list.
    #[schema(value_type = Option<FeesRequest>)]
    fees: Raw<'a>,
    /// Choices that differ from the defaults.
    #[schema(value_type = Option<MerchantOptionsRequest>)]
    options: Raw<'a>,
    /// Own rate limits of the account; null for those of the server.
    #[schema(value_type = Option<RateLimitsRequest>)]
    #[serde(default, deserialize_with = "present")]
    rate_limits: Option<Raw<'a>>,
    /// What a card acquirer has to know of the shop; null takes it away.
    #[schema(value_type = Option<StorefrontRequest>)]
    #[serde(default, deserialize_with = "present")]
    storefront: Option<Raw<'a>>,
}

/// Own rate limits, as sent; what is absent stays as it is, and null stands for the server's.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
struct RateLimitsRequest<'a> {
    /// Card charges of each API key in a minute.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000000)]
    card: Option<Raw<'a>>,
    /// Other requests of each API key in a minute.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000000)]
    other: Option<Raw<'a>>,
}

/// Rates, as sent; what is absent stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
struct FeesRequest<'a> {
    /// MDR, one installment and debit; percent.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,3}(\.[0-9]{1,4})?$")]
    mdr_1x: Raw<'a>,
    /// MDR, 2 to 6 installments; percent.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,3}(\.[0-9]{1,4})?$")]
    mdr_2_6x: Raw<'a>,
    /// MDR, 7 to 12 installments; percent.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,3}(\.[0-9]{1,4})?$")]
    mdr_7_12x: Raw<'a>,
    /// Platform margin; percent.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,3}(\.[0-9]{1,4})?$")]
    margin: Raw<'a>,
    /// PIX commission; percent.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,3}(\.[0-9]{1,4})?$")]
    pix: Raw<'a>,
    /// Antifraud fee, centavos.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 100000000)]
    antifraud_cents: Raw<'a>,
    /// Cashout fee, centavos.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 100000000)]
    cashout_cents: Raw<'a>,
    /// Rates of anticipation, percent, by days until settlement.
    #[schema(value_type = Option<AnticipationRatesRequest>)]
    anticipation: Raw<'a>,
}

/// Anticipation rates, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AnticipationRatesRequest<'a> {
    /// 2 days; percent.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,3}(\.[0-9]{1,4})?$")]
    d2: Raw<'a>,
    /// 7 days; percent.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,3}(\.[0-9]{1,4})?$")]
    d7: Raw<'a>,
    /// 15 days; percent.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,3}(\.[0-9]{1,4})?$")]
    d15: Raw<'a>,
}

/// Choices, as sent; what is absent stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
struct MerchantOptionsRequest<'a> {
    /// `none` lets charges through whose fees exceed the seller's part, `net` refuses them.
    #[schema(value_type = Option<String>, pattern = "^(none|net)$")]
    split_guard: Raw<'a>,
    /// What the MDR is taken of.
    #[schema(value_type = Option<String>, pattern = "^(total|seller_gross)$")]
    mdr_base: Raw<'a>,
    /// Return commission with refunds.
    #[schema(value_type = Option<bool>)]
    refund_commission: Raw<'a>,
    /// Days of 24 hours until the seller's card money is available.
    #[schema(value_type = Option<u16>, maximum = 365)]
    card_settlement_days: Raw<'a>,
    /// May make, change and revoke its own API keys.
    #[schema(value_type = Option<bool>)]
    own_keys: Raw<'a>,
}

/// A merchant, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct MerchantView {
    /// The merchant's id.
    id: String,
    /// Name, as shown to payers.
    #[schema(example = "Loja Azul")]
    name: String,
    /// CPF or CNPJ, masked.
    #[schema(example = "**.345.678/0001-**")]
    document: String,
    /// City, as shown in PIX codes.
    #[schema(required, example = "São Paulo")]
    city: Option<String>,
    /// Its settings.
    #[serde(flatten)]
    settings: MerchantSettingsView,
    /// The rate limits that hold for the account; null where the server limits nobody.
    #[schema(required)]
    effective_rate_limits: Option<EffectiveRateLimits>,
    /// What a card acquirer has to know of the shop; absent where nothing is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    storefront: Option<StorefrontView>,
    /// When it was created.
    created_at: String,
}

/// Settings of a merchant, without the server's own limits.
#[derive(Debug, Serialize, ToSchema)]
pub struct MerchantSettingsView {
    /// May charge with splits and register recipients.
    split_enabled: bool,
    /// May cash out.
    cashout_enabled: bool,
    /// True while operators have suspended it: new charges and cashouts are 403
    /// `merchant_suspended`; what is open goes on.
    suspended: bool,
    /// True while operators hold its payouts: cashouts and withdrawals are not paid (403
    /// `payouts_held`).
    payouts_held: bool,
    /// True once operators began to end it: new charges are 403 `merchant_closing`; what is open
    /// goes on, and money leaves it.
    closing: bool,
    /// True once nothing of it was open.
    closed: bool,
    /// Rates and fixed fees of the account.
    fees: FeesView,
    /// Options of the account.
    options: MerchantOptionsView,
    /// Own rate limits of the account.
    rate_limits: OwnRateLimits,
}

/// Rates: percents as decimal strings, fixed fees in centavos.
#[derive(Debug, Serialize, ToSchema)]
pub struct FeesView {
    /// MDR, one installment and debit.
    #[schema(value_type = String, example = "2.99")]
    mdr_1x: String,
    /// MDR, 2 to 6 installments.
    mdr_2_6x: String,
    /// MDR, 7 to 12 installments.
    mdr_7_12x: String,
    /// Platform margin.
    margin: String,
    /// PIX commission.
    pix: String,
    /// Antifraud fee, centavos.
    antifraud_cents: i64,
    /// Cashout fee, centavos.
    cashout_cents: i64,
    /// Rates of anticipation, percent, by days until settlement.
    anticipation: AnticipationRatesView,
}

/// Anticipation rates by days.
#[derive(Debug, Serialize, ToSchema)]
pub struct AnticipationRatesView {
    /// 2 days.
    d2: String,
    /// 7 days.
    d7: String,
    /// 15 days.
    d15: String,
}

/// Choices of an account.
#[derive(Debug, Serialize, ToSchema)]
pub struct MerchantOptionsView {
    /// `none` or `net`.
    #[schema(pattern = "^(none|net)$")]
    split_guard: &'static str,
    /// `total` or `seller_gross`.
    #[schema(pattern = "^(total|seller_gross)$")]
    mdr_base: &'static str,
    /// Return commission with refunds.
    refund_commission: bool,
    /// Days of 24 hours until the seller's card money is available.
    #[schema(maximum = 365, example = 30)]
    card_settlement_days: u16,
    /// May make, change and revoke its own API keys.
    own_keys: bool,
}

/// Own rate limits of an account; null where it has those of the server.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnRateLimits {
    /// Card charges of each API key in a minute.
    #[schema(required, value_type = Option<u32>, minimum = 1, example = 600)]
    card: Option<NonZeroU32>,
    /// Other requests of each API key in a minute.
    #[schema(required, value_type = Option<u32>, minimum = 1, example = 1200)]
    other: Option<NonZeroU32>,
}

/// Rate limits that hold for an account.
#[derive(Debug, Serialize, ToSchema)]
pub struct EffectiveRateLimits {
    /// Card charges of each API key in a minute.
    #[schema(value_type = u32, minimum = 1, example = 600)]
    card: NonZeroU32,
    /// Other requests of each API key in a minute.
    #[schema(value_type = u32, minimum = 1, example = 600)]
    other: NonZeroU32,
}

impl MerchantView {
    fn new(desk: &Desk, row: &MerchantRow, settings: &Settings, profile: MerchantProfile) -> Self {
        let effective = desk.rate_limits.as_ref().map(|limits| limits.settings().for_account(settings));
        let group = desk.engine.ids().group(row.id);
        let shown = shown_settings(&desk.engine, group, *settings, row.recipients.len());
        Self {
            id: row.id.uuid().to_string(),
            name: profile.name,
            document: wire::mask::document(&profile.document),
            city: Some(profile.city).filter(|city| !city.is_empty()),
            settings: MerchantSettingsView::of(&shown),
            effective_rate_limits: effective
                .map(|RateLimitSettings { card, other }| EffectiveRateLimits { card, other }),
            storefront: profile.storefront.map(StorefrontView::of),
            created_at: time(row.created_at),
        }
    }
}

impl MerchantSettingsView {
    pub(super) fn of(settings: &Settings) -> Self {
        let Settings { split_enabled, cashout_enabled, suspended, payouts_held, closing, closed, .. } = *settings;
        let (fees, options) = (FeesView::of(&settings.fees), MerchantOptionsView::of(&settings.options));
        let (card, other) = (settings.card_requests_per_minute, settings.other_requests_per_minute);
        let rate_limits = OwnRateLimits { card, other };
        Self { split_enabled, cashout_enabled, suspended, payouts_held, closing, closed, fees, options, rate_limits }
    }
}

impl FeesView {
    fn of(fees: &Fees) -> Self {
        let percent = |rate: Rate| rate.as_percent().to_string();
        Self {
            mdr_1x: percent(fees.mdr_1x),
            mdr_2_6x: percent(fees.mdr_2_6x),
            mdr_7_12x: percent(fees.mdr_7_12x),
            margin: percent(fees.margin),
            pix: percent(fees.pix),
            antifraud_cents: fees.antifraud.0,
            cashout_cents: fees.cashout.0,
            anticipation: AnticipationRatesView {
                d2: percent(fees.anticipation_d2),
                d7: percent(fees.anticipation_d7),
                d15: percent(fees.anticipation_d15),
            },
        }
    }
}

impl MerchantOptionsView {
    fn of(options: &Options) -> Self {
        Self {
            split_guard: if options.split_guard_net { "net" } else { "none" },
            mdr_base: if options.mdr_on_seller_gross { "seller_gross" } else { "total" },
            refund_commission: options.refund_commission,
            card_settlement_days: options.card_settlement_days,
            own_keys: !options.own_keys_forbidden,
        }
    }
}

/// Opens a merchant's account.
#[utoipa::path(post, path = "/ops/merchants", operation_id = "create_merchant", request_body = MerchantRequest,
    responses((status = 201, body = MerchantView)))]
pub async fn create(State(desk): DeskState, Admin(operator): Admin, sent: KeyedBody) -> Result<Response> {
    let wire: MerchantRequest<'_> = parse_exact(sent.bytes())?;
    let key = sent.key(&desk.engine, KeyScope::Operators, None)?;
    // A new account has no actor yet that could notice a second request with the same key: one at a
    // time.
    let _one_at_a_time = desk.opening.lock().await;
    let (desk, wire, operator, fingerprint) = (&desk, &wire, &operator, sent.opening(&desk.engine));
    let execute = |admitted| async move {
        let (settings, profile) = check_new(wire)?;
        let group = desk.engine.new_group(fingerprint);
        let command = MerchantCommand::Open {
            id: desk.engine.new_id(group)?,
            settings,
            profile: desk.engine.keyring().seal_profile(
                SealedFor::merchant(group),
                None,
                desk.engine.now(),
                &profile,
            )?,
        };
        Ok(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let of = |record: &Record| {
        let profile = desk.engine.keyring().open_personal(record).unwrap_or_default();
        MerchantOpening::by(record).map(|opened| (opened, profile))
    };
    let opened = key.run_recorded(LedgerId::Merchant(desk.engine.next_group(fingerprint)), of, execute).await?;
    opened.answer(|(MerchantOpening { group, settings }, profile)| {
        Ok(created(MerchantView::new(desk, &row(desk, group)?, &settings, profile)))
    })
}

/// The merchants, newest first; `GET /ops/lists/merchants` has filters.
#[utoipa::path(get, path = "/ops/merchants", operation_id = "list_merchants",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<MerchantView>)))]
pub async fn list(State(desk): DeskState, _: Operator, PageQuery { page, .. }: PageQuery) -> Result<Response> {
    let (total, groups) = listed(&desk, page);
    let views = groups.into_iter().map(|group| view(&desk, group)).collect::<Result<_, _>>()?;
    Ok(ok(List::new(views, total, page)))
}

/// The groups of a page of the merchants, newest first, and how many there are in all.
pub fn listed(desk: &Desk, page: Page) -> (u64, Vec<GroupNumber>) {
    let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
    let (total, groups) = desk.engine.newest_groups(skip, page.count());
    (total as u64, groups)
}

/// A merchant.
#[utoipa::path(get, path = "/ops/merchants/{id}", operation_id = "get_merchant",
    responses((status = 200, body = MerchantView)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    let group = find(&desk, &id)?;
    Ok(ok(view(&desk, group)?))
}

/// Changes what is sent and leaves the rest. Where nothing changes, nothing is written.
#[utoipa::path(patch, path = "/ops/merchants/{id}", operation_id = "change_merchant",
    request_body(content = MerchantRequest, example = json!({"city": "Niterói", "fees": {"pix": "0.79"}})),
    responses((status = 200, body = MerchantView)))]
pub async fn change(call: AdminCall) -> Result<Response> {
    let AdminCall { desk, operator, id, sent, .. } = &call;
    let wire: &MerchantRequest<'_> = &parse_exact(sent.bytes())?;
    let (group, key) = (find(desk, id)?, call.key(id)?);
    let execute = |admitted| async move {
        // Settings are replaced as a whole: of two changes at once, the second one starts from the
        // first.
        let _one_at_a_time = desk.opening.lock().await;
        let row = row(desk, group)?;
        let before = profile(desk, group, row.profiles.current());
        let (mut settings, mut profile) = (row.settings, before.clone());
        check_change(wire, &mut settings, &mut profile)?;
        if (settings, &profile) == (row.settings, &before) {
            return Ok(Some(()));
        }
        let profile = match profile != before {
            true => Some(desk.engine.keyring().seal_profile(
                SealedFor::merchant(group),
                row.profiles.current(),
                desk.engine.now(),
                &profile,
            )?),
            false => None,
        };
        let command = MerchantCommand::Change { settings, profile, reason: None };
        decided(desk.engine.command(group, command, operator.context(admitted)).await?)
    };
    let changed = key.run(LedgerId::Merchant(group), |_| Ok(()), execute).await?;
    changed.answer(|()| Ok(ok(view(desk, group)?)))
}

/// The account group of a merchant's id.
pub fn find(desk: &Desk, id: &str) -> Result<GroupNumber> {
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let group = desk.engine.ids().group(id);
    let known = desk.engine.merchant(group, |row| row.id == id);
    if known == Some(true) { Ok(group) } else { Err(not_found()) }
}

pub(super) fn row(desk: &Desk, group: GroupNumber) -> Result<MerchantRow> {
    desk.engine.merchant(group, Clone::clone).ok_or_else(not_found)
}

pub(super) fn view(desk: &Desk, group: GroupNumber) -> Result<MerchantView> {
    let row = row(desk, group)?;
    Ok(MerchantView::new(desk, &row, &row.settings, profile(desk, group, row.profiles.current())))
}

/// A profile; an empty one when the personal data was erased.
pub fn profile(desk: &Desk, group: GroupNumber, sealed: Option<&Sealed>) -> MerchantProfile {
    let open = |sealed| desk.engine.keyring().open_value(SealedFor::merchant(group), sealed);
    sealed.and_then(open).unwrap_or_default()
}

fn check_new(wire: &MerchantRequest<'_>) -> Result<(Settings, MerchantProfile)> {
    let mut check = Checker::exact();
    let name = check.text("name", wire.name, 1..=140);
    let document = check.text("document", wire.document, 11..=18).map(|text| tax_id::normalize(&text));
    let (is_right, message) = (|text: &String| tax_id::kind(text).is_some(), "document deve ser um CPF ou CNPJ válido");
    let document = check.fitting(document, is_right, "document", "invalid_document", message);
    let city = check.optional_text("city", wire.city.flatten(), 0..=60);
    let storefront = storefront::read(&mut check, wire.storefront.flatten());
    let mut settings = Settings::default();
    read_settings(&mut check, wire, &mut settings);
    let (name, document) = check.finish_with(name.zip(document))?;
    let city = city.map(std::borrow::Cow::into_owned).unwrap_or_default();
    Ok((settings, MerchantProfile { name: name.into_owned(), document, city, storefront }))
}

fn check_change(wire: &MerchantRequest<'_>, settings: &mut Settings, profile: &mut MerchantProfile) -> Result<()> {
    let mut check = Checker::exact();
    if wire.document.is_some() {
        check.refuse::<()>("document", "immutable", "document não pode ser alterado");
    }
    if let Some(name) = check.optional_text("name", wire.name, 1..=140) {
        profile.name = name.into_owned();
    }
    // Null takes the city away (RFC 7396).
    if let Some(city) = wire.city {
        profile.city = check.optional_text("city", city, 0..=60).map(std::borrow::Cow::into_owned).unwrap_or_default();
    }
    if let Some(sent) = wire.storefront {
        profile.storefront = storefront::read(&mut check, sent);
    }
    read_settings(&mut check, wire, settings);
    check.finish()
}

/// Puts the fields that were sent over the present ones.
fn read_settings(check: &mut Checker, wire: &MerchantRequest<'_>, settings: &mut Settings) {
    flag(check, "split_enabled", wire.split_enabled, &mut settings.split_enabled);
    flag(check, "cashout_enabled", wire.cashout_enabled, &mut settings.cashout_enabled);
    check.optional(wire.fees, |check, raw| {
        check.object("fees", raw, |check, wire| read_fees(check, &wire, &mut settings.fees))
    });
    check.optional(wire.options, |check, raw| {
        check.object("options", raw, |check, wire| read_options(check, &wire, &mut settings.options))
    });
    if let Some(None) = wire.rate_limits {
        (settings.card_requests_per_minute, settings.other_requests_per_minute) = (None, None);
    }
    check.optional(wire.rate_limits.flatten(), |check, raw| {
        check.object("rate_limits", raw, |check, wire: RateLimitsRequest<'_>| {
            rate_limit(check, "card", wire.card, &mut settings.card_requests_per_minute);
            rate_limit(check, "other", wire.other, &mut settings.other_requests_per_minute);
            Some(())
        })
    });
}

fn flag(check: &mut Checker, name: &'static str, raw: Raw<'_>, stands: &mut bool) {
    *stands = check.optional(raw, |check, raw| check.boolean(name, raw)).unwrap_or(*stands);
}

/// A rate limit; null stands for none.
fn rate_limit(check: &mut Checker, name: &'static str, sent: Option<Raw<'_>>, stands: &mut Option<NonZeroU32>) {
    if let Some(raw) = sent {
        let limit = check.optional(raw, |check, raw| check.integer(name, raw, 1..=1_000_000));
        *stands = limit.and_then(|limit| NonZeroU32::new(u32::try_from(limit).ok()?));
    }
}

fn read_fees(check: &mut Checker, wire: &FeesRequest<'_>, fees: &mut Fees) -> Option<()> {
    check.optional(wire.anticipation, |check, raw| {
        check.object("anticipation", raw, |check, wire: AnticipationRatesRequest<'_>| {
            rate(check, "d2", wire.d2, &mut fees.anticipation_d2);
            rate(check, "d7", wire.d7, &mut fees.anticipation_d7);
            rate(check, "d15", wire.d15, &mut fees.anticipation_d15);
            Some(())
        })
    });
    rate(check, "mdr_1x", wire.mdr_1x, &mut fees.mdr_1x);
    rate(check, "mdr_2_6x", wire.mdr_2_6x, &mut fees.mdr_2_6x);
    rate(check, "mdr_7_12x", wire.mdr_7_12x, &mut fees.mdr_7_12x);
    rate(check, "margin", wire.margin, &mut fees.margin);
    rate(check, "pix", wire.pix, &mut fees.pix);
    cents(check, "antifraud_cents", wire.antifraud_cents, &mut fees.antifraud);
    cents(check, "cashout_cents", wire.cashout_cents, &mut fees.cashout);
    Some(())
}

fn rate(check: &mut Checker, name: &'static str, raw: Raw<'_>, stands: &mut Rate) {
    let percent = check.optional(raw, |check, raw| check.decimal_percent(name, raw));
    *stands = percent.and_then(|percent| Rate::percent(percent).ok()).unwrap_or(*stands);
}

/// A fixed fee, at most R$ 1,000,000.
fn cents(check: &mut Checker, name: &'static str, raw: Raw<'_>, stands: &mut Centavos) {
    *stands = check.optional(raw, |check, raw| check.centavos(name, raw, 0..=100_000_000)).map_or(*stands, Centavos);
}

fn read_options(check: &mut Checker, wire: &MerchantOptionsRequest<'_>, options: &mut Options) -> Option<()> {
    choice(check, "split_guard", wire.split_guard, ["none", "net"], &mut options.split_guard_net);
    choice(check, "mdr_base", wire.mdr_base, ["total", "seller_gross"], &mut options.mdr_on_seller_gross);
    flag(check, "refund_commission", wire.refund_commission, &mut options.refund_commission);
    let days = wire.card_settlement_days;
    let days = check.optional(days, |check, raw| check.integer("card_settlement_days", raw, 0..=365));
    options.card_settlement_days =
        days.and_then(|days| u16::try_from(days).ok()).unwrap_or(options.card_settlement_days);
    let mut own_keys = !options.own_keys_forbidden;
    flag(check, "own_keys", wire.own_keys, &mut own_keys);
    options.own_keys_forbidden = !own_keys;
    Some(())
}

/// One of two names; the second one stands for true.
fn choice(check: &mut Checker, name: &'static str, raw: Raw<'_>, names: [&str; 2], stands: &mut bool) {
    let chosen = check.optional_text(name, raw, 1..=40).and_then(|text| {
        let unknown = || format!("{name} deve ser {} ou {}", names[0], names[1]);
        let place = names.iter().position(|known| *known == text);
        place.or_else(|| check.refuse(name, "unknown_value", unknown()))
    });
    *stands = chosen.map_or(*stands, |place| place == 1);
}
