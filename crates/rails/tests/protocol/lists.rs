//! Lists: batches of the acquirer, payments.

use actors::rails::{CardRail, PixRail, PixSpan, RailError, SettlementCursor};
use ledger::{Centavos, SettledObject};
use serde_json::{Value, json};
use testkit::played_http::Oddity;
use testkit::useless_answers::answer;

use crate::{World, id, now};

#[tokio::test]
async fn batches_are_read_page_by_page() {
    let world = World::new("same").await;
    let charges: Vec<_> = (1..=5).map(|number| (id(number).txid(), 1_050)).collect();
    world.player.settle(&charges);
    world.player.settle(&[("a sale of another shop".to_owned(), 700)]);
    world.player.records().page_items = 2;
    let (mut after, mut read) = (SettlementCursor::default(), Vec::new());
    while let Some(page) = world.rail.settlements(after, now()).await.unwrap() {
        after = match page.is_last {
            true => SettlementCursor { batch: page.batch.number, lines: 0 },
            false => SettlementCursor { lines: after.lines + page.lines.len() as u64, ..after },
        };
        read.push((page.batch.number, page.lines.len(), page.is_last));
        let line = page.lines[0];
        let fee = if page.batch.number == 1 { 31 } else { 21 };
        assert_eq!((line.object, line.fee), (SettledObject::Installment(1), Centavos(fee)));
        assert_eq!(page.batch.paid_on, 20_787, "2026-11-30");
    }
    assert_eq!(read, [(1, 2, false), (1, 2, false), (1, 1, true), (2, 1, true)]);
}

#[tokio::test]
async fn payments_are_read_page_by_page() {
    let world = World::new("same").await;
    for _ in 0..5 {
        world.player.pay(None, 700);
    }
    world.player.records().page_items = 2;
    let mut read = Vec::new();
    for page in 0..3 {
        let span = PixSpan { from: now().plus_ms(-60_000), until: now().plus_ms(60_000), page };
        let list = world.rail.received(span).await.unwrap();
        read.push((list.payments.len(), list.has_more));
    }
    assert_eq!(read, [(2, true), (2, true), (1, false)]);
}

/// One list has the cases of cards and of PIX: it is read while the bridge serves either.
#[tokio::test]
async fn chargebacks_are_read_of_a_bridge_that_serves_pix_no_more() {
    let world = World::new("same").await;
    world.player.dispute("CB-1", &id(1).txid(), 1_050, "open");
    let span = PixSpan { from: now().plus_ms(-60_000), until: now().plus_ms(60_000), page: 0 };
    for (serves, read) in [
        (json!(["card", "pix"]), Ok(1)),
        (json!(["card"]), Ok(1)),
        (json!(["pix"]), Ok(1)),
        (json!(["payout"]), Err(RailError::NotSent)),
    ] {
        world.player.records().capabilities["serves"] = serves.clone();
        let rail = world.fresh_rail_at(&world.player.url());
        assert_eq!(PixRail::cases(&rail, span).await.map(|list| list.cases.len()), read, "{serves}");
    }
}

/// A list with an entry that cannot be read is not read at all: it may be money.
#[tokio::test]
async fn a_list_is_read_whole_or_not() {
    let world = World::new("same").await;
    let e2e = "E".repeat(32);
    let payment = json!({ "end_to_end_id": e2e, "amount": 1, "at": "2026-11-28T12:00:00Z" });
    let changed = |field: &str, value: Value| {
        let mut payment = payment.clone();
        payment[field] = value;
        json!({ "changes": [payment], "has_more": false })
    };
    let span = PixSpan { from: now().plus_ms(-60_000), until: now(), page: 0 };
    let wrong = [
        changed("end_to_end_id", json!("E1")),
        changed("amount", json!("1.00")),
        changed("amount", json!(1.5)),
        changed("amount", json!(0)),
        changed("at", json!("2026-11-28T12:00:00")),
        changed("charge", json!("a b")),
        json!({ "changes": [], "has_more": true }),
        json!({ "changes": [] }),
        json!([]),
    ];
    for body in wrong {
        let bytes = answer("200 OK", "application/json", &body.to_string());
        world.player.is_odd("GET", "/changes", 1, Oddity::Says(bytes));
        assert_eq!(world.rail.received(span).await, Err(RailError::NoAnswer), "{body}");
    }
    let good = changed("charge", Value::Null).to_string();
    world.player.is_odd("GET", "/changes", 1, Oddity::Says(answer("200 OK", "application/json", &good)));
    assert_eq!(world.rail.received(span).await.map(|list| list.payments.len()), Ok(1));
    let line = json!({ "charge": id(1).txid(), "kind": "installment", "number": 1, "gross": 100, "fee": 3 });
    let batch = json!({ "number": 8, "reference": "L8", "paid_on": "2026-11-30", "is_last": true, "lines": [line] });
    let changed = |path: &str, value: Value| {
        let mut body = json!({ "batch": batch });
        *body.pointer_mut(path).unwrap() = value;
        body
    };
    let wrong = [
        changed("/batch/number", json!(7)),
        changed("/batch/reference", json!("")),
        changed("/batch/paid_on", json!("30/11/2026")),
        changed("/batch/lines", json!([])),
        changed("/batch/lines/0/kind", json!("bonus")),
        changed("/batch/lines/0/gross", json!("1,00")),
        changed("/batch/lines/0/fee", json!(1e3)),
        changed("/batch/lines/0/number", json!(256)),
    ];
    let after = SettlementCursor { batch: 7, lines: 0 };
    for body in wrong {
        let bytes = answer("200 OK", "application/json", &body.to_string());
        world.player.is_odd("GET", "/settlements", 1, Oddity::Says(bytes));
        assert_eq!(world.rail.settlements(after, now()).await, Err(RailError::NoAnswer), "{body}");
    }
}
