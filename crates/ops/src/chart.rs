//! Company's chart of accounts: the map that exports in its accounts use, set once for all of them.

use axum::extract::State;
use axum::response::Response;
use books::export::Chart;
use ledger::id::LedgerId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Decider, DeskState, Operator};
use web::{KeyScope, KeyedBody, Problem, Raw, Result, checked, ok, parse_exact};

/// Characters of a map at most.
pub const MAP_CHARS_MAX: usize = 50_000;

/// A map to the accounts of the company.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"map": "[[account]]\nprefix = \"Assets\"\ncode = \"1\"\n"}))]
pub struct ChartRequest<'a> {
    /// Text of the TOML file that `--map` of the command reads.
    #[schema(value_type = String, max_length = 50_000)]
    map: Raw<'a>,
}

/// The map to the accounts of the company.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChartOfAccountsView {
    /// Text of the TOML file; null before the first one.
    #[schema(required)]
    pub map: Option<String>,
}

/// The map that was set last.
#[utoipa::path(get, path = "/ops/chart", operation_id = "get_chart",
    responses((status = 200, body = ChartOfAccountsView)))]
pub async fn get(State(desk): DeskState, _: Operator) -> Result<Response> {
    Ok(ok(ChartOfAccountsView { map: desk.engine.chart() }))
}

/// Sets the map. `POST /ops/exports` of `journal-entries` uses it where a request has none.
#[utoipa::path(post, path = "/ops/chart", operation_id = "set_chart", request_body = ChartRequest,
    responses((status = 200, body = ChartOfAccountsView)))]
pub async fn set(State(desk): DeskState, Decider(operator): Decider, sent: KeyedBody) -> Result<Response> {
    let wire: ChartRequest<'_> = parse_exact(sent.bytes())?;
    let map = checked(|check| {
        let map = check.optional_lines("map", wire.map, MAP_CHARS_MAX);
        let map = map.or_else(|| check.refuse("map", "required", "map é obrigatório"))?;
        match Chart::parse(&map) {
            Ok(_) => Some(map.into_owned()),
            Err(error) => check.refuse("map", "invalid", error.in_portuguese(&map)),
        }
    })?;
    let key = sent.key(&desk.engine, KeyScope::Operators, None)?;
    let _one_at_a_time = desk.opening.lock().await;
    let (desk, map, operator) = (&desk, &map, &operator);
    let execute = |admitted| async move {
        desk.engine.set_chart(map.clone(), operator.context(admitted)).await.map(|_| Some(())).map_err(Problem::from)
    };
    let set = key.run(LedgerId::System, |_| Ok(()), execute).await?;
    set.answer(|()| Ok(ok(ChartOfAccountsView { map: Some(map.clone()) })))
}
