//! Orders and their outcomes, under each promise about repeats.

use actors::rails::{
    CardAnswer, CardFate, CardRail, CardToken, ChargedCard, PayoutAnswer, PayoutRail, PixFate, PixOpening, PixRail,
    PixSpan, RailError, RepayAnswer, SecurityCode,
};
use actors::testkit::rails;
use ledger::{CardBrand, CardRefusal, Centavos, PayoutBank};
use serde_json::json;
use testkit::played_http::Oddity;
use testkit::rail_player::{DECLINED, NOBODY};
use testkit::useless_answers::answer;

use crate::{World, charge, charge_of, id, id_at, now, open_card, open_pix, payout, repay};

#[tokio::test]
async fn a_bridge_is_each_kind_of_rail() {
    for repeats in ["same", "refused"] {
        let world = World::new(repeats).await;
        rails::card(&world.rail, charge, &open_card(), [id(1), id(2)]).await;
        let done = rails::payout(&world.rail, &payout(3, "someone@example.com"), now()).await;
        assert!(matches!(done, PayoutAnswer::Processed { .. }), "{done:?}");
        let failed = rails::payout(&world.rail, &payout(4, NOBODY), now()).await;
        assert!(matches!(failed, PayoutAnswer::Failed { .. }), "{failed:?}");
        let span = PixSpan { from: now().plus_ms(-60_000), until: now().plus_ms(60_000), page: 0 };
        let pay = |charge: ledger::id::ObjectId| repay(7, charge, &world.player.pay(Some(&charge.txid()), 1_050));
        rails::pix(&world.rail, open_pix, pay, [id(5), id(6)], span).await;
        let records = world.player.records();
        assert_eq!(records.violations, [""; 0], "{repeats}");
        let paths = [format!("/cards/{}", id(1).txid()), format!("/payouts/{}", id(3).txid())];
        let paths = [paths.as_slice(), &[format!("/repayments/{}", id(7).txid())]].concat();
        assert_eq!(records.carried_out, paths, "{repeats}: each once");
    }
}

#[tokio::test]
async fn a_card_is_captured_refused_or_kept() {
    let world = World::new("same").await;
    let Ok(CardAnswer::Captured { acquirer_mdr, brand, stamp }) = world.rail.charge(charge(id(1))).await else {
        panic!("it is not captured")
    };
    assert_eq!((acquirer_mdr, brand, stamp.id.as_str()), (Centavos(31), Some(CardBrand::Visa), "ref-1"));
    let declined = world.rail.charge(charge_of(id(2), DECLINED)).await;
    assert_eq!(declined, Ok(CardAnswer::Refused(CardRefusal::NotAuthorized)));
    let ChargedCard::Given(card) = charge(id(3)).card else { panic!("a card that is given") };
    let token = world.rail.tokenize(card).await.unwrap();
    assert_eq!(token, CardToken("tok_of_a_card".to_owned()));
    let stored = ChargedCard::Stored { token: token.clone(), cvv: Some(SecurityCode("737".to_owned())) };
    for (number, card) in [(3, ChargedCard::Token(token)), (4, stored)] {
        let mut order = charge(id(number));
        order.card = card;
        assert!(matches!(world.rail.charge(order).await, Ok(CardAnswer::Captured { .. })));
    }
    assert_eq!(world.player.records().violations, [""; 0]);
}

#[tokio::test]
async fn a_stored_card_is_deleted_where_the_bridge_can() {
    for can in [true, false] {
        let world = World::new("same").await;
        world.player.records().capabilities["deletes_tokens"] = json!(can);
        let deleted = world.rail.delete_token(CardToken("tok/of a card".to_owned())).await;
        assert_eq!(deleted, Ok(can));
        assert_eq!(world.player.records().deleted_tokens, if can { vec!["tok/of a card"] } else { vec![] });
    }
}

/// Nothing that may be carried out twice is sent twice.
#[tokio::test]
async fn where_a_repeat_is_carried_out_again_nothing_is_sent_twice() {
    let world = World::new("again").await;
    let useless = || Oddity::CarriesOutAndSays(answer("502 Bad Gateway", "text/html", ""));
    world.player.is_odd("PUT", "/cards/", 1, useless());
    assert!(matches!(world.rail.charge(charge(id(1))).await, Ok(CardAnswer::Captured { .. })));
    let payment = "ref-1";
    // An order that the bridge surely has not is not sent again either: it may still turn up.
    world.player.is_odd("PUT", "/repayments/", 1, Oddity::Says(answer("502 Bad Gateway", "text/html", "")));
    let order = repay(2, id(1), payment);
    assert_eq!(CardRail::repay(&world.rail, order.clone()).await, Err(RailError::NoAnswer));
    for _ in 0..3 {
        let mut again = order.clone();
        again.is_repeat = true;
        assert_eq!(CardRail::repay(&world.rail, again).await, Err(RailError::NoAnswer));
    }
    assert_eq!(world.player.count("PUT", "/repayments/"), 1);
    let transfer = payout(3, "someone@example.com");
    assert!(!world.rail.may_send_again(now(), now()));
    world.player.is_odd("PUT", "/payouts/", 1, useless());
    assert!(matches!(world.rail.send(transfer).await, Ok(PayoutAnswer::Processed { .. })));
    assert_eq!(world.player.count("PUT", "/payouts/"), 1);
    assert_eq!(world.player.records().carried_out.len(), 2);
    // A PIX charge may be asked for again and again by its payer.
    assert_eq!(PixRail::open(&world.rail, open_pix(id(4))).await, Err(RailError::NotSent));
}

/// An order whose answer says nothing, and that the bridge does not have, is not sent again in the
/// call: that it is must be a Record first.
#[tokio::test]
async fn an_order_is_sent_once_in_a_call() {
    let world = World::new("same").await;
    let charged = world.captured(1).await;
    let useless = || Oddity::Says(answer("502 Bad Gateway", "text/html", ""));
    for path in ["/pix/", "/payouts/", "/repayments/"] {
        world.player.is_odd("PUT", path, 1, useless());
    }
    assert_eq!(PixRail::open(&world.rail, open_pix(id(2))).await, Err(RailError::HasNone));
    assert_eq!(world.rail.send(payout(3, "someone@example.com")).await, Err(RailError::NoAnswer), "it may turn up");
    assert_eq!(CardRail::repay(&world.rail, repay(4, id(1), &charged)).await, Err(RailError::HasNone));
    world.player.is_odd("PUT", "/repayments/", 1, useless());
    let mut order = repay(5, id(1), &charged);
    assert_eq!(CardRail::accept_dispute(&world.rail, order.clone()).await, Err(RailError::HasNone));
    order.is_repeat = true;
    assert_eq!(CardRail::accept_dispute(&world.rail, order.clone()).await, Err(RailError::HasNone));
    let mut open = open_pix(id(2));
    open.is_repeat = true;
    assert_eq!(PixRail::open(&world.rail, open.clone()).await, Err(RailError::HasNone));
    for (path, sent) in [("/pix/", 1), ("/payouts/", 1), ("/repayments/", 2)] {
        assert_eq!(world.player.count("PUT", path), sent, "{path}");
    }
    open.is_repeat = false;
    assert!(matches!(PixRail::open(&world.rail, open.clone()).await, Ok(PixOpening::Registered { .. })));
    open.is_repeat = true;
    assert!(matches!(PixRail::open(&world.rail, open).await, Ok(PixOpening::Registered { .. })));
}

/// An institution that keeps ids of 20 characters finds a transfer by its short id alone.
#[tokio::test]
async fn a_transfer_is_found_by_its_short_id() {
    let world = World::new("refused").await;
    world.player.records().capabilities["id_length"] = json!(20);
    world.captured(1).await;
    world.player.is_odd("PUT", "/payouts/", 1, Oddity::CutsAnswerAt(0));
    for number in [2, 3] {
        let transfer = payout(number, "someone@example.com");
        for answer in [world.rail.send(transfer.clone()).await, world.rail.find(transfer, now()).await] {
            assert!(matches!(answer, Ok(PayoutAnswer::Processed { .. })), "{answer:?}");
        }
    }
    let paths = [2, 3].map(|number| format!("/payouts/{}", id(number).txid()));
    assert_eq!(world.player.records().carried_out[1..], paths, "each once");
    let short_ids = [2, 3].map(|number| id(number).short_text());
    assert!(world.player.records().short_ids.keys().eq(&short_ids));
    {
        let stage = world.player.stage();
        let mut others = stage.requests.iter().filter(|seen| !seen.path.starts_with("/payouts/"));
        assert!(others.all(|seen| seen.query.is_empty()), "nothing else has one");
    }
    // It would keep too little.
    let world = World::new("refused").await;
    world.player.records().capabilities["id_length"] = json!(19);
    assert_eq!(world.rail.send(payout(4, "someone@example.com")).await, Err(RailError::NotSent));
    assert_eq!(world.player.count("PUT", ""), 0);
}

/// Whatever a bridge declares when it is asked again, after a start too: a transfer is found under
/// the short id that its order had. Otherwise it would be ordered, and carried out, a second time.
#[tokio::test]
async fn a_transfer_is_found_when_the_bridge_declares_another_length() {
    let lengths = [json!(null), json!(20), json!(30), json!(35)];
    for (before, after) in lengths.iter().flat_map(|before| lengths.iter().map(move |after| (before, after))) {
        let world = World::new("same").await;
        world.player.records().keeps_short_ids = true;
        world.player.records().capabilities["id_length"] = before.clone();
        let transfer = payout(1, "someone@example.com");
        assert!(matches!(world.rail.send(transfer.clone()).await, Ok(PayoutAnswer::Processed { .. })));
        world.player.records().capabilities["id_length"] = after.clone();
        let restarted = world.fresh_rail_at(&world.player.url());
        let found = restarted.find(transfer, now()).await;
        assert!(matches!(found, Ok(PayoutAnswer::Processed { .. })), "{before}, then {after}: {found:?}");
    }
}

/// What a bridge remembers for a time counts no longer.
#[tokio::test]
async fn past_its_memory_a_bridge_is_only_asked() {
    let world = World::new("same").await;
    world.player.records().capabilities["remembers_s"] = json!(60);
    let payment = world.captured(1).await;
    let (young, old) = (now(), now().plus_ms(-61_000));
    assert!(world.rail.may_send_again(young, now()) && !world.rail.may_send_again(old, now()));
    assert_eq!(PayoutRail::horizon(&world.rail).as_secs(), 600);
    let mut order = repay(2, id(1), &payment);
    (order.decided_at, order.is_repeat) = (old, true);
    assert_eq!(CardRail::repay(&world.rail, order.clone()).await, Err(RailError::NoAnswer));
    order.decided_at = young;
    assert_eq!(CardRail::repay(&world.rail, order.clone()).await, Err(RailError::HasNone));
    assert_eq!(world.player.count("PUT", "/repayments/"), 0);
    order.is_repeat = false;
    assert!(matches!(CardRail::repay(&world.rail, order).await, Ok(RepayAnswer::Repaid(_))));
}

/// A bridge that cannot close is believed once no order can turn up any more.
#[tokio::test]
async fn a_bridge_that_cannot_close_is_asked_until_it_is_sure() {
    let world = World::new("same").await;
    (world.player.records().capabilities["closes"], world.player.records().capabilities["horizon_s"]) =
        (json!(false), json!(60));
    world.captured(1).await;
    let fate = world.rail.close(id(1), &open_card()).await;
    assert!(matches!(fate, Ok(CardFate::Answered(CardAnswer::Captured { .. }))), "{fate:?}");
    assert_eq!(world.rail.close(id(2), &open_card()).await, Err(RailError::NoAnswer));
    assert_eq!(world.rail.cancel(id(2)).await, Err(RailError::NoAnswer));
    // Half a minute to begin, a minute for the answer, a minute of the horizon.
    let old = |ms: i64| id_at(now().plus_ms(-ms), 9);
    assert_eq!(world.rail.close(old(148_000), &open_card()).await, Err(RailError::NoAnswer));
    assert_eq!(world.rail.close(old(151_000), &open_card()).await, Ok(CardFate::Closed));
    assert_eq!(world.rail.cancel(old(151_000)).await, Ok(PixFate::Cancelled));
    assert_eq!(PixRail::open(&world.rail, open_pix(id(3))).await.map(drop), Ok(()));
    assert_eq!(world.rail.cancel(id(3)).await, Err(RailError::NoAnswer), "it can still be paid");
    assert_eq!(world.player.count("PUT", "/close"), 0);
}

#[tokio::test]
async fn a_card_charge_is_under_way_until_it_is_decided() {
    let world = World::new("same").await;
    world.captured(1).await;
    let path = format!("/cards/{}", id(1).txid());
    world.player.records().objects.get_mut(&path).unwrap().status = "under_way";
    assert_eq!(world.rail.charge(charge(id(1))).await, Ok(CardAnswer::UnderWay));
    let fate = world.rail.close(id(1), &open_card()).await;
    assert_eq!(fate, Ok(CardFate::Answered(CardAnswer::UnderWay)), "it is neither captured nor closed");
    let of_another_amount = json!({ "id": id(1).txid(), "status": "under_way", "amount": 1_051 }).to_string();
    world.player.is_odd("PUT", "/close", 1, Oddity::Says(answer("200 OK", "application/json", &of_another_amount)));
    assert_eq!(world.rail.close(id(1), &open_card()).await, Err(RailError::NoAnswer));
    world.player.records().objects.get_mut(&path).unwrap().status = "captured";
    let fate = world.rail.close(id(1), &open_card()).await;
    assert!(matches!(fate, Ok(CardFate::Answered(CardAnswer::Captured { .. }))), "{fate:?}");
}

#[tokio::test]
async fn transfers_are_under_way_done_or_returned() {
    let world = World::new("same").await;
    for (number, status) in [(1, "under_way"), (2, "returned")] {
        world.player.records().status = status;
        let answer = world.rail.send(payout(number, "someone@example.com")).await.unwrap();
        match (status, answer) {
            ("under_way", PayoutAnswer::Taken { from: PayoutBank::Pix, .. }) => {}
            ("returned", PayoutAnswer::Returned { reason, stamp, to: PayoutBank::Pix }) => {
                assert_eq!((reason.as_str(), stamp.id.as_str()), ("account closed", "back-ref-3"));
            }
            (_, answer) => panic!("{status}: {answer:?}"),
        }
    }
    let span = PixSpan { from: now().plus_ms(-60_000), until: now().plus_ms(60_000), page: 0 };
    let list = world.rail.returned(span).await.unwrap();
    assert_eq!(
        list.transfers.iter().map(|back| (back.id, back.amount)).collect::<Vec<_>>(),
        [(id(2), Centavos(1_050))]
    );
    // Without a reason the merchant reads a word.
    let at = "2026-12-01T12:00:00Z";
    let back = json!({ "id": id(6).txid(), "status": "returned", "amount": 1_050, "reference": "ref-6", "at": at,
        "returned": { "reference": "back-6", "at": at } });
    let back = answer("200 OK", "application/json", &back.to_string());
    world.player.is_odd("PUT", "/payouts/", 1, Oddity::Says(back));
    let said = world.rail.send(payout(6, "someone@example.com")).await;
    assert!(matches!(&said, Ok(PayoutAnswer::Returned { reason, .. }) if reason == "returned"), "{said:?}");
    let payment = world.paid(3).await;
    let again = PixRail::open(&world.rail, open_pix(id(3))).await;
    assert_eq!(again, Ok(PixOpening::Ended), "it was paid, and its first answer was lost");
    world.player.records().status = "under_way";
    assert_eq!(PixRail::repay(&world.rail, repay(4, id(3), &payment)).await, Ok(RepayAnswer::UnderWay));
    let too_much = PixRail::repay(&world.rail, repay(5, id(3), &payment)).await;
    let reason = "amount_exceeds_payment".to_owned();
    assert_eq!(too_much, Ok(RepayAnswer::Refused { reason }));
    let unknown = world.rail.find(payout(9, "someone@example.com"), now()).await;
    assert_eq!(unknown, Ok(PayoutAnswer::NotTaken));
}

/// A bridge that cannot be asked what it is gets no order.
#[tokio::test]
async fn without_capabilities_nothing_is_sent() {
    let world = World::new("same").await;
    world.player.is_odd("GET", "/capabilities", 1, Oddity::Says(answer("200 OK", "application/json", "{}")));
    assert_eq!(world.rail.charge(charge(id(1))).await, Err(RailError::NotSent));
    world.player.records().capabilities["serves"] = json!(["card", "boleto"]);
    assert!(matches!(world.rail.charge(charge(id(1))).await, Ok(CardAnswer::Captured { .. })), "asked once more");
    assert_eq!(world.rail.send(payout(2, "someone@example.com")).await, Err(RailError::NotSent));
    let opened: Result<PixOpening, _> = PixRail::open(&world.rail, open_pix(id(3))).await;
    assert_eq!(opened, Err(RailError::NotSent));
    assert_eq!(world.player.count("GET", "/capabilities"), 2, "an answer counts for an hour");
    assert_eq!(world.player.count("PUT", ""), 1);
}
