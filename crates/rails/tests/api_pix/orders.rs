//! Charges: registered and removed, whatever happens to the answers.

use actors::rails::{OpenPix, PixFate, PixOpening, PixRail, PixSpan, RailError};
use actors::testkit::rails as testkit_of_actors;
use ledger::{Centavos, ObjectId};
use serde_json::json;
use testkit::played_http::Oddity;

use crate::{World, answer, charge, edits, id, now, repay};

#[tokio::test]
async fn a_charge_is_registered_with_what_is_known_of_the_payer() {
    let world = World::new("bacen").await;
    let mut call = charge(1);
    call.payer.description = Some(format!("a\n{}", "é".repeat(200)));
    let first = world.rail.open(call.clone()).await.unwrap();
    assert_eq!(world.rail.open(call).await.unwrap(), first, "a charge that is ordered again");
    let sent = world.player.records().charges[&id(1).txid()].body.clone();
    assert_eq!(sent["devedor"], json!({ "cpf": "52998224725", "nome": "Fulano de Tal" }));
    assert_eq!(sent["valor"], json!({ "original": "10.50" }));
    assert_eq!(sent["solicitacaoPagador"].as_str().unwrap().chars().count(), 140);
    let seconds = sent["calendario"]["expiracao"].as_i64().unwrap();
    assert!((3_590..=3_600).contains(&seconds), "{seconds}");
    let mut company = charge(2);
    (company.payer.document, company.payer.description) = ("12ABC34501DE35".to_owned(), None);
    company.expires_at = ledger::time::Timestamp(0);
    world.rail.open(company).await.unwrap();
    let mut nameless = charge(3);
    nameless.payer.name = " ".to_owned();
    world.rail.open(nameless).await.unwrap();
    let records = world.player.records();
    let (company, nameless) = (&records.charges[&id(2).txid()].body, &records.charges[&id(3).txid()].body);
    assert_eq!(company["devedor"]["cnpj"], "12ABC34501DE35");
    assert_eq!(company["calendario"]["expiracao"], 1, "a charge that is late expires at once");
    assert_eq!(nameless.get("devedor"), None);
    assert_eq!(records.violations, [""; 0]);
}

/// The rules that every institution is held to.
#[tokio::test]
async fn it_is_an_institution_as_the_engine_wants_one() {
    for refuses_repeats in [false, true] {
        let world = World::new("sicredi").await;
        world.player.records().refuses_repeats = refuses_repeats;
        let pay = |id: ObjectId| repay(3, &world.player.pay(Some(&id.txid()), "10.50"));
        let call = |charge_id| OpenPix { charge: charge_id, ..charge(1) };
        let span = PixSpan { from: now().plus_ms(-60_000), until: now().plus_ms(60_000), page: 0 };
        testkit_of_actors::pix(&world.rail, call, pay, [id(1), id(2)], span).await;
        assert_eq!(world.player.returns_done().len(), 1);
    }
}

#[tokio::test]
async fn a_repeat_that_is_refused_is_asked_for() {
    let world = World::new("bacen").await;
    world.player.records().refuses_repeats = true;
    let first = world.rail.open(charge(1)).await.unwrap();
    assert_eq!(world.rail.open(charge(1)).await.unwrap(), first);
    assert_eq!(world.player.records().charges[&id(1).txid()].orders, 2);
}

/// An order that is lost before it is carried out is asked for, and not sent again: that it is must
/// be a Record first.
#[tokio::test]
async fn an_order_is_sent_once_in_a_call() {
    let world = World::new("bacen").await;
    world.player.is_odd("PUT", "/cob/", 1, Oddity::Says(answer("503 Unavailable", "text/html", "<p>")));
    assert_eq!(world.rail.open(charge(1)).await, Err(RailError::HasNone));
    let repeat = || OpenPix { is_repeat: true, ..charge(1) };
    assert_eq!(world.rail.open(repeat()).await, Err(RailError::HasNone));
    let seen: Vec<_> = world.player.stage().requests.iter().map(|request| request.method.clone()).collect();
    assert_eq!(seen, ["POST", "PUT", "GET", "GET"]);
    let registered = world.rail.open(charge(1)).await.unwrap();
    assert_eq!(world.rail.open(repeat()).await, Ok(registered));
    world.player.is_odd("PUT", "/cob/", 1, Oddity::CarriesOutAndSays(Vec::new()));
    world.opened(2).await;
    assert_eq!(world.player.records().charges[&id(2).txid()].orders, 1, "it was there");
}

#[tokio::test]
async fn a_refusal_counts_when_its_word_is_known_and_there_is_no_such_charge() {
    let world = World::new("bacen").await;
    let document = |word: &str| {
        json!({
            "type": format!("https://pix.bcb.gov.br/api/v2/error/{word}"), "title": "Cobrança inválida.", "status": 400,
            "detail": "d".repeat(500),
            "violacoes": [{ "razao": "zero", "propriedade": "cob.valor.original" }],
        })
        .to_string()
    };
    let cases = [
        ("400 Bad", "CobOperacaoInvalida", true),
        ("422 Unprocessable", "RequisicaoInvalida", true),
        ("403 Forbidden", "AcessoNegado", true),
        ("400 Bad", "PalavraNova", false),
        ("409 Conflict", "CobOperacaoInvalida", false),
        ("503 Unavailable", "CobOperacaoInvalida", false),
        ("429 Slow", "RequisicaoInvalida", false),
    ];
    for (number, (status, word, is_refusal)) in (10..).zip(cases) {
        let says = Oddity::Says(answer(status, "application/problem+json", &document(word)));
        world.player.is_odd("PUT", "/cob/", 1, says);
        match world.rail.open(charge(number)).await {
            Ok(PixOpening::Refused { reason }) if is_refusal => {
                assert!(reason.starts_with("Cobrança inválida.; ddd") && reason.chars().count() == 300, "{reason}");
            }
            Err(RailError::HasNone) if !is_refusal => {}
            other => panic!("{status} {word}: {other:?}"),
        }
        world.player.stage().odd.clear();
        // The same word where the charge is there all the same.
        let carried = Oddity::CarriesOutAndSays(answer(status, "application/problem+json", &document(word)));
        world.player.is_odd("PUT", "/cob/", 1, carried);
        world.opened(number + 100).await;
    }
    let mut large = charge(1);
    large.amount = Centavos(1_000_000_000_000);
    assert!(matches!(world.rail.open(large).await, Ok(PixOpening::Refused { .. })));
    assert_eq!(world.player.requests("PUT", &id(1).txid()).len(), 0, "no number of eleven digits is sent");
}

/// Another charge than ours is no answer, although the status says that it went well.
#[tokio::test]
async fn an_answer_must_be_of_our_charge() {
    let world = World::new("bacen").await;
    type Field = fn(&mut serde_json::Value);
    let cases: [Field; 11] = [
        |body| body["txid"] = json!("0198f3a27c418d0e8000000000000bad"),
        |body| body["txid"] = json!(body["txid"].as_str().unwrap().to_uppercase()),
        |body| body["valor"]["original"] = json!("10.51"),
        |body| body["valor"]["original"] = json!("10,50"),
        |body| body["valor"]["original"] = json!("10.5"),
        |body| body["valor"]["original"] = json!("1.05e1"),
        |body| body["valor"]["original"] = json!(10.5),
        |body| body["status"] = json!("PALAVRA_NOVA"),
        |body| body["pixCopiaECola"] = json!(format!("{}0000", &body["pixCopiaECola"].as_str().unwrap()[..100])),
        |body| body["pixCopiaECola"] = json!(null),
        |body| body["pixCopiaECola"] = json!("0".repeat(513)),
    ];
    for (number, case) in (1..).zip(cases) {
        world.player.is_odd("PUT", "/cob/", 1, edits(case));
        world.player.is_odd("GET", "/cob/", 1, edits(case));
        assert_eq!(world.rail.open(charge(number)).await, Err(RailError::NoAnswer), "case {number}");
        world.player.stage().odd.clear();
        world.opened(number).await;
    }
    // More fields than are known, and media types of the same kind.
    world.player.is_odd("PUT", "/cob/", 1, edits(|body| body["novo"] = json!({ "campo": [1] })));
    world.opened(50).await;
}

#[tokio::test]
async fn only_what_is_said_of_the_charge_after_its_removal_decides() {
    let world = World::new("bacen").await;
    world.opened(1).await;
    world.player.is_odd("PATCH", "/cob/", 1, Oddity::CarriesOutAndSays(answer("500 Error", "text/html", "")));
    assert_eq!(world.rail.cancel(id(1)).await, Ok(PixFate::Cancelled), "the order's own answer says nothing");
    let payment = world.paid(2).await;
    for ended in [1, 2] {
        assert_eq!(world.rail.open(charge(ended)).await, Ok(PixOpening::Ended), "its first answer was lost");
    }
    for _ in 0..2 {
        let fate = world.rail.cancel(id(2)).await;
        let Ok(PixFate::Paid(receipt)) = fate else { panic!("{fate:?}") };
        assert_eq!((receipt.end_to_end_id, receipt.amount), (payment.clone(), Centavos(1_050)));
        assert_eq!(receipt.txid, Some(id(2).txid()));
    }
    // It says 200, and removes nothing.
    world.opened(3).await;
    world.player.is_odd("PATCH", "/cob/", 1, Oddity::Says(answer("200 OK", "application/json", "{}")));
    assert_eq!(world.rail.cancel(id(3)).await, Err(RailError::NoAnswer));
    let removed_by_them = |body: &mut serde_json::Value| body["status"] = json!("REMOVIDA_PELO_PSP");
    world.player.is_odd("GET", "/cob/", 1, edits(removed_by_them));
    assert_eq!(world.rail.cancel(id(3)).await, Ok(PixFate::Cancelled));
    // A charge that has expired cannot be paid, whatever its record says.
    world.opened(4).await;
    let expired = |body: &mut serde_json::Value| {
        body["status"] = json!("ATIVA");
        body["calendario"] = json!({ "criacao": "2026-01-01T00:00:00-03:00", "expiracao": "60" });
    };
    world.player.is_odd("GET", "/cob/", 1, edits(expired));
    assert_eq!(world.rail.cancel(id(4)).await, Ok(PixFate::Cancelled));
    type Field = fn(&mut serde_json::Value);
    let unknown: [Field; 5] = [
        |body| body["status"] = json!("PALAVRA_NOVA"),
        |body| body["txid"] = json!("0198f3a27c418d0e8000000000000bad"),
        |body| body["pix"][0]["valor"] = json!("10,50"),
        |body| body["pix"][0]["endToEndId"] = json!("E1"),
        |body| body["pix"] = json!([]),
    ];
    for case in unknown {
        world.player.is_odd("GET", "/cob/", 1, edits(case));
        assert_eq!(world.rail.cancel(id(2)).await, Err(RailError::NoAnswer));
    }
}
