//! End of a merchant: it takes no new charges, what is open goes on, and it is closed once nothing
//! of it is open. What is open is listed.

use actors::engine::Engine;
use axum::extract::State;
use axum::response::Response;
use ledger::merchant::{OpenKind, open_balances};
use ledger::{Account, Centavos, GroupNumber, LedgerId, MerchantState, RecipientNumber, Settings};
use serde::Serialize;
use utoipa::ToSchema;

use crate::holds::{HoldReason, change_settings};
use crate::merchants::{MerchantView, find, view};
use crate::{DeciderCall, Desk, DeskState, Operator};
use web::views::ledger::{ledger_name, owner_name};
use web::{PathId, Result, ok};

/// Items that are listed.
const ITEMS_MAX: usize = 1_000;

/// What is open of a merchant.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenItems {
    /// The first 1,000.
    pub items: Vec<MerchantOpenItemView>,
    /// How many there are.
    pub total: usize,
}

/// Something that is open of a merchant: an object, or a balance that is not zero.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct MerchantOpenItemView {
    /// `charge`, `subscription`, `cashout`, `refund`, `dispute`, `repayment`, `entry` or `balance`.
    #[schema(pattern = "^(charge|subscription|cashout|refund|dispute|repayment|entry|balance)$")]
    pub kind: &'static str,
    /// The object's id; none of a balance.
    #[schema(example = "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")]
    pub id: Option<String>,
    /// The ledger of a balance.
    pub ledger: Option<String>,
    /// The name of its owner.
    #[schema(example = "Ana Prado")]
    pub owner: Option<String>,
    /// The account of a balance.
    pub account: Option<String>,
    /// How much, centavos; none of a subscription.
    pub amount: Option<i64>,
}

/// Begins to end a merchant, or closes it. It takes no new charges (403 `merchant_closing`); its
/// subscriptions and open PIX codes are cancelled; payouts, refunds and disputes go on. It is
/// `closed` by a call at which nothing of it is open (`GET /ops/merchants/{id}/open-items`).
#[utoipa::path(post, path = "/ops/merchants/{id}/close", operation_id = "close_merchant",
    request_body = HoldReason, responses((status = 200, body = MerchantView)))]
pub async fn close(call: DeciderCall) -> Result<Response> {
    let desk = &call.desk;
    let group = find(desk, &call.id)?;
    // The change is refused where a charge was quicker.
    let put = |before: Settings| async move {
        let closed = before.closed || open_items(desk, group).await?.total == 0;
        Ok(Settings { closing: true, closed, ..before })
    };
    let changed = change_settings(&call, put).await?;
    // Also when the same request comes again: it may have ended before.
    desk.engine.end_what_charges(group).await?;
    changed.answer(|group| Ok(ok(view(desk, group)?)))
}

/// Items that are open of a merchant. An item waits for a decision, for a payer or for a rail, or
/// is a balance of the merchant or of a recipient that is not zero.
#[utoipa::path(get, path = "/ops/merchants/{id}/open-items", operation_id = "list_open_items",
    responses((status = 200, body = OpenItems)))]
pub async fn list(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    Ok(ok(open_items(&desk, find(&desk, &id)?).await?))
}

/// The settings of a merchant as they are shown: a closed one to which, or to whose recipients,
/// money or a debt came back is closing while they have it.
pub fn shown_settings(engine: &Engine, group: GroupNumber, settings: Settings, recipients: usize) -> Settings {
    let mut ledgers = std::iter::once(LedgerId::Merchant(group)).chain(recipients_of(group, recipients));
    let closed = settings.closed && ledgers.all(|ledger| balances_of(engine, ledger).is_empty());
    Settings { closed, ..settings }
}

fn recipients_of(group: GroupNumber, count: usize) -> impl Iterator<Item = LedgerId> {
    (1..=u32::try_from(count).unwrap_or(u32::MAX))
        .map(move |number| LedgerId::Recipient(group, RecipientNumber(number)))
}

/// The balances of a ledger that are open, as they are published.
fn balances_of(engine: &Engine, ledger: LedgerId) -> Vec<(Account, Centavos)> {
    let accounts = engine.published_accounts(ledger).into_iter();
    open_balances(accounts.map(|(account, balance)| (account, balance.net())))
}

/// What is open of a merchant.
pub async fn open_items(desk: &Desk, group: GroupNumber) -> Result<OpenItems> {
    let engine = &desk.engine;
    let merchant = LedgerId::Merchant(group);
    let look = |books: &MerchantState, _| (books.open_items(), books.open_balances());
    let (objects, balances) = engine.read_merchant(group, look).await?;
    let objects = objects.into_iter().map(|item| MerchantOpenItemView {
        kind: item.kind.into(),
        id: Some(match item.kind {
            OpenKind::Charge => item.id.txid(),
            _ => item.id.uuid().to_string(),
        }),
        ledger: None,
        owner: None,
        account: None,
        amount: item.amount.map(|amount| amount.0),
    });
    let recipients = engine.known_merchant(group, |row| row.recipients.len())?;
    let of_recipients = recipients_of(group, recipients).flat_map(|ledger| {
        balances_of(engine, ledger).into_iter().map(move |(account, amount)| (ledger, account, amount))
    });
    let balances = balances.into_iter().map(|(account, amount)| (merchant, account, amount)).chain(of_recipients);
    let balances = balances.map(|(ledger, account, amount)| MerchantOpenItemView {
        kind: "balance",
        id: None,
        ledger: Some(ledger_name(engine, ledger)),
        owner: owner_name(engine, ledger),
        account: Some(account.name(group, |ledger| ledger_name(engine, ledger))),
        amount: Some(amount.0),
    });
    let mut items: Vec<_> = objects.chain(balances).collect();
    let total = items.len();
    items.truncate(ITEMS_MAX);
    Ok(OpenItems { items, total })
}
