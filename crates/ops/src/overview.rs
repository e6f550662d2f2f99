//! Overview: volume, refusals of cards, and money in and out of the banks, by day.

use actors::engine::{DAYS_MAX, DayFigures, Volume};
use axum::extract::State;
use axum::response::Response;
use ledger::event::CardRefusal;
use serde::Serialize;
use utoipa::ToSchema;
use wire::timestamp::date;

use crate::{Desk, DeskState, Operator};
use web::{Result, ok};

/// Figures of the last 90 days, those of today included.
#[derive(Debug, Serialize, ToSchema)]
pub struct Overview {
    /// Every day, oldest first.
    pub days: Vec<OverviewDay>,
    /// Reasons of refused cards on these days, the most frequent first.
    pub refusals: Vec<RefusalCount>,
}

/// Figures of one day in America/Sao_Paulo; amounts in centavos.
#[derive(Debug, Serialize, ToSchema)]
pub struct OverviewDay {
    /// The day.
    #[schema(format = Date, example = "2026-11-30")]
    pub date: String,
    /// Charges by card that were captured.
    pub card_count: u64,
    /// Their totals.
    pub card_amount: u64,
    /// Charges by PIX that were paid.
    pub pix_count: u64,
    /// Their totals.
    pub pix_amount: u64,
    /// Charges by card that were refused.
    pub refused_count: u64,
    /// What came into the platform's bank accounts.
    pub money_in: u64,
    /// What left them.
    pub money_out: u64,
}

/// How often a reason was given.
#[derive(Debug, Serialize, ToSchema)]
pub struct RefusalCount {
    /// The reason.
    #[serde(skip)]
    pub reason: CardRefusal,
    /// As `cardStatus` of a charge.
    #[serde(rename = "cardStatus")]
    #[schema(example = "insufficient_funds")]
    pub card_status: String,
    /// How many charges.
    pub count: u64,
}

/// Volume, refusals and money in and out by day, for the last 90 days. They are counted as the
/// Records are booked, so the answer costs no reading.
#[utoipa::path(get, path = "/ops/overview", operation_id = "get_overview", responses((status = 200, body = Overview)))]
pub async fn get(State(desk): DeskState, _: Operator) -> Result<Response> {
    Ok(ok(overview(&desk)))
}

/// The figures of the days that end today.
pub fn overview(desk: &Desk) -> Overview {
    let mut figures = desk.engine.daily_figures();
    let today = desk.engine.now().day();
    let days = (0..DAYS_MAX).rev().filter_map(|back| today.checked_sub(back));
    let days: Vec<_> =
        days.map(|day| figures.remove(&day).unwrap_or_else(|| DayFigures { day, ..DayFigures::default() })).collect();
    let mut sums = DayFigures::default();
    days.iter().for_each(|day| sums.add(day));
    let refusals = sums.refusals.into_iter();
    let mut refusals: Vec<_> =
        refusals.map(|(reason, count)| RefusalCount { reason, card_status: reason.to_string(), count }).collect();
    refusals.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.card_status.cmp(&other.card_status)));
    Overview { days: days.iter().map(view).collect(), refusals }
}

fn view(of: &DayFigures) -> OverviewDay {
    let DayFigures { day, card, pix, refused, money_in, money_out, .. } = of;
    let [Volume { count: card_count, amount: card_amount }, Volume { count: pix_count, amount: pix_amount }] =
        [*card, *pix];
    OverviewDay {
        date: date(*day),
        card_count,
        card_amount,
        pix_count,
        pix_amount,
        refused_count: *refused,
        money_in: *money_in,
        money_out: *money_out,
    }
}
