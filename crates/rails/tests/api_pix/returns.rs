//! Returns: ours, and those of the payer's institution.

use actors::rails::{PixRail, RailError, RepayAnswer};
use ledger::money::Centavos;
use serde_json::{Value, json};
use testkit::played_http::Oddity;

use crate::{World, answer, edits, id, repay};

#[tokio::test]
async fn a_return_is_made_once_however_often_it_is_ordered() {
    for refuses_repeats in [false, true] {
        let world = World::new("bacen").await;
        let payment = world.paid(1).await;
        world.player.records().refuses_repeats = refuses_repeats;
        let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        let first = world.rail.repay(repay(2, &payment)).await.unwrap();
        let RepayAnswer::Repaid(stamp) = &first else { panic!("{first:?}") };
        assert_eq!(stamp.id.len(), 32);
        assert!(stamp.at.0 as u128 >= before, "it is when the institution says");
        assert_eq!(world.rail.repay(repay(2, &payment)).await.unwrap(), first);
        assert_eq!(world.player.returns_done().len(), 1);
    }
}

#[tokio::test]
async fn a_return_under_way_is_asked_for_until_it_ends() {
    for (end, is_refused) in [("DEVOLVIDO", false), ("NAO_REALIZADO", true)] {
        let world = World::new("bacen").await;
        let payment = world.paid(1).await;
        world.player.records().return_status = "EM_PROCESSAMENTO";
        for _ in 0..2 {
            assert_eq!(world.rail.repay(repay(2, &payment)).await, Ok(RepayAnswer::UnderWay));
        }
        world.player.end_return(&id(2).txid(), end);
        match world.rail.repay(repay(2, &payment)).await {
            Ok(RepayAnswer::Refused { reason }) if is_refused => assert_eq!(reason, "NAO_REALIZADO"),
            Ok(RepayAnswer::Repaid(_)) if !is_refused => {}
            other => panic!("{end}: {other:?}"),
        }
    }
    let world = World::new("bacen").await;
    let payment = world.paid(1).await;
    world.player.records().return_status = "NAO_REALIZADO";
    let refused = RepayAnswer::Refused { reason: "conta encerrada".to_owned() };
    assert_eq!(world.rail.repay(repay(2, &payment)).await, Ok(refused));
}

#[tokio::test]
async fn a_return_that_the_institution_does_not_have_is_refused_by_its_word_alone() {
    let world = World::new("bacen").await;
    let payment = world.paid(1).await;
    let mut larger = repay(2, &payment);
    larger.amount = Centavos(1_051);
    let answered = world.rail.repay(larger).await;
    assert!(
        matches!(&answered, Ok(RepayAnswer::Refused { reason }) if reason.contains("more than was paid")),
        "{answered:?}"
    );
    for status in ["400 Bad", "403 Forbidden", "409 Conflict", "422 Unprocessable", "500 Error", "404 None"] {
        let body = json!({ "type": "https://pix.bcb.gov.br/api/v2/error/AcessoNegado", "title": "Não", "status": 404 });
        let says = Oddity::Says(answer(status, "application/problem+json", &body.to_string()));
        world.player.is_odd("PUT", "/devolucao/", 1, says);
        assert_eq!(world.rail.repay(repay(3, &payment)).await, Err(RailError::HasNone), "{status}");
    }
    // A repeat is a question.
    let mut again = repay(3, &payment);
    again.is_repeat = true;
    let before = world.player.requests("PUT", "/devolucao/").len();
    assert_eq!(world.rail.repay(again.clone()).await, Err(RailError::HasNone));
    assert_eq!(world.player.requests("PUT", "/devolucao/").len(), before);
    assert!(matches!(world.rail.repay(repay(3, &payment)).await, Ok(RepayAnswer::Repaid(_))));
    assert!(matches!(world.rail.repay(again).await, Ok(RepayAnswer::Repaid(_))));
    let before = world.player.requests("PUT", "/devolucao/").len();
    world.player.is_odd("PUT", "/devolucao/", 1, Oddity::CarriesOutAndSays(Vec::new()));
    assert!(matches!(world.rail.repay(repay(3, &payment)).await, Ok(RepayAnswer::Repaid(_))));
    assert_eq!(world.player.requests("PUT", "/devolucao/").len(), before + 1);
    assert_eq!(world.player.returns_done().len(), 1);
}

#[tokio::test]
async fn an_answer_must_be_of_our_return() {
    let world = World::new("bacen").await;
    let payment = world.paid(1).await;
    type Field = fn(&mut Value);
    let cases: [Field; 10] = [
        |body| body["id"] = json!("0198f3a27c418d0e8000000000000bad"),
        |body| body["valor"] = json!("10.51"),
        |body| body["valor"] = json!("10,50"),
        |body| body["valor"] = json!(10.5),
        |body| body["status"] = json!("PALAVRA_NOVA"),
        |body| body["rtrId"] = json!("D".repeat(31)),
        |body| body["rtrId"] = json!("D".repeat(33)),
        |body| body["rtrId"] = json!(null),
        |body| body["horario"] = json!({}),
        |body| body["horario"] = json!({ "liquidacao": "ontem" }),
    ];
    for (number, case) in cases.into_iter().enumerate() {
        world.player.is_odd("PUT", "/devolucao/", 1, edits(case));
        world.player.is_odd("GET", "/devolucao/", 1, edits(case));
        assert_eq!(world.rail.repay(repay(2, &payment)).await, Err(RailError::NoAnswer), "case {number}");
        world.player.stage().odd.clear();
    }
    for wrong in ["", "E1", &"E".repeat(31), &"E".repeat(33), "E/../../cob/aaaaaaaaaaaaaaaaaaaaa"] {
        assert_eq!(world.rail.repay(repay(2, wrong)).await, Err(RailError::NoAnswer), "{wrong}");
    }
    assert_eq!(world.player.returns_done().len(), 1);
}

/// The institution takes the money itself; nothing is ordered.
#[tokio::test]
async fn a_dispute_is_accepted_when_the_institution_has_taken_the_money() {
    let world = World::new("bacen").await;
    let payment = world.paid(1).await;
    assert_eq!(world.rail.accept_dispute(repay(2, &payment)).await, Err(RailError::NoAnswer));
    world.player.dispute(&payment, "ORIGINAL", "10.50", "DEVOLVIDO");
    world.player.dispute(&payment, "MED_FRAUDE", "10.49", "DEVOLVIDO");
    world.player.dispute(&payment, "MED_FRAUDE", "10.50", "EM_PROCESSAMENTO");
    world.player.dispute(&payment, "MED_FRAUDE", "10.50", "NAO_REALIZADO");
    assert_eq!(world.rail.accept_dispute(repay(2, &payment)).await, Err(RailError::NoAnswer));
    world.player.end_return("med2", "DEVOLVIDO");
    let stamp = world.rail.accept_dispute(repay(2, &payment)).await.unwrap();
    assert!(stamp.id.ends_with("002"), "{stamp:?}");
    assert_eq!(world.rail.accept_dispute(repay(2, &payment)).await, Ok(stamp));
    assert_eq!(world.player.requests("PUT", "/devolucao/").len(), 0);
}
