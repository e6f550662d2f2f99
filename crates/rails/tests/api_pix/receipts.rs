//! The list of payments: pages, amounts, and what cannot be read.

use actors::rails::{PixRail, PixReceipts, PixSpan, RailError};
use ledger::money::Centavos;
use serde_json::{Value, json};
use testkit::played_http::Oddity;

use crate::{World, answer, edits, now};

fn span(page: u32) -> PixSpan {
    PixSpan { from: now().plus_ms(-600_000), until: now().plus_ms(600_000), page }
}

#[tokio::test]
async fn all_payments_are_listed_page_by_page() {
    let world = World::new("sicoob").await;
    assert_eq!(world.rail.received(span(0)).await, Ok(PixReceipts::default()));
    world.player.records().page_items = 2;
    let mut paid = Vec::new();
    for number in 0..5 {
        paid.push(world.player.pay((number % 2 == 0).then_some("abc"), &format!("{number}.01")));
    }
    let mut seen = Vec::new();
    for page in 0..3 {
        let list = world.rail.received(span(page)).await.unwrap();
        assert_eq!(list.has_more, page < 2);
        seen.extend(list.payments);
    }
    assert_eq!(seen.iter().map(|payment| payment.end_to_end_id.clone()).collect::<Vec<_>>(), paid);
    assert_eq!((seen[3].amount, seen[3].txid.clone(), seen[4].txid.as_deref()), (Centavos(301), None, Some("abc")));
    assert!((now().0 - seen[0].paid_at.0).abs() < 60_000);
}

#[tokio::test]
async fn a_payment_that_cannot_be_read_makes_its_page_no_answer() {
    let world = World::new("bacen").await;
    (0..3).for_each(|_| drop(world.player.pay(None, "1.00")));
    let wrong = [
        ("valor", json!("10,50")),
        ("valor", json!("1e3")),
        ("valor", json!("1.5")),
        ("valor", json!(1.5)),
        ("valor", json!("-1.00")),
        ("valor", json!("0.00")),
        ("valor", json!("12345678901.00")),
        ("valor", json!(null)),
        ("endToEndId", json!("E".repeat(31))),
        ("endToEndId", json!("E".repeat(33))),
        ("endToEndId", json!(format!("{}-", "E".repeat(31)))),
        ("endToEndId", json!(5)),
        ("horario", json!("2026-11-28T12:00:00")),
        ("horario", json!(1)),
        ("txid", json!("a".repeat(36))),
        ("txid", json!("a b")),
    ];
    for (field, value) in wrong {
        let case = (field, value.clone());
        world.player.is_odd("GET", "/pix", 1, edits(move |body| body["pix"][1][field] = value.clone()));
        assert_eq!(world.rail.received(span(0)).await, Err(RailError::NoAnswer), "{case:?}");
    }
    let sound = [
        ("txid", json!("")),
        ("txid", json!("***")),
        ("txid", json!(null)),
        ("novo", json!([{}])),
        ("horario", json!("2026-11-28T09:00:00.5-03:00")),
    ];
    for (field, value) in sound {
        let case = (field, value.clone());
        world.player.is_odd("GET", "/pix", 1, edits(move |body| body["pix"][1][field] = value.clone()));
        assert_eq!(world.rail.received(span(0)).await.map(|list| list.payments.len()), Ok(3), "{case:?}");
    }
}

/// A list without an end, or with holes, is not believed.
#[tokio::test]
async fn pages_must_add_up() {
    let world = World::new("bacen").await;
    world.player.pay(None, "1.00");
    let pagination =
        |name: &'static str, value: Value| edits(move |body| body["parametros"]["paginacao"][name] = value.clone());
    let wrong = [
        pagination("quantidadeDePaginas", json!(1_001)),
        pagination("quantidadeDePaginas", json!("muitas")),
        pagination("quantidadeDePaginas", json!(null)),
        pagination("quantidadeDePaginas", json!(-1)),
        pagination("paginaAtual", json!(1)),
        edits(|body| drop(body.as_object_mut().unwrap().remove("parametros"))),
        edits(|body| drop(body.as_object_mut().unwrap().remove("pix"))),
        edits(|body| {
            body["pix"] = json!([]);
            body["parametros"]["paginacao"]["quantidadeDePaginas"] = json!(2);
        }),
        edits(|body| body["pix"] = json!({})),
    ];
    for (number, oddity) in wrong.into_iter().enumerate() {
        world.player.is_odd("GET", "/pix", 1, oddity);
        assert_eq!(world.rail.received(span(0)).await, Err(RailError::NoAnswer), "case {number}");
    }
    world.player.is_odd("GET", "/pix", 1, pagination("quantidadeDePaginas", json!("2")));
    assert!(world.rail.received(span(0)).await.unwrap().has_more);
}

#[tokio::test]
async fn a_list_of_a_hundred_thousand_is_too_large_in_one_answer() {
    let world = World::new("bacen").await;
    let payment = json!({ "endToEndId": "E".repeat(32), "valor": "1.00", "horario": "2026-11-28T12:00:00Z" });
    let pagination = json!({ "paginaAtual": 0, "quantidadeDePaginas": 1, "quantidadeTotalDeItens": 100_000 });
    let body = |count: usize| {
        json!({ "parametros": { "paginacao": pagination }, "pix": vec![payment.clone(); count] }).to_string()
    };
    world.player.is_odd("GET", "/pix", 1, Oddity::Says(answer("200 OK", "application/json", &body(100_000))));
    assert_eq!(world.rail.received(span(0)).await, Err(RailError::NoAnswer));
    world.player.is_odd("GET", "/pix", 1, Oddity::Says(answer("200 OK", "application/json", &body(10_000))));
    assert_eq!(world.rail.received(span(0)).await.map(|list| list.payments.len()), Ok(10_000));
}
