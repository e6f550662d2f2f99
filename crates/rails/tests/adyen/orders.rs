//! Orders and what becomes of them.

use actors::rails::{
    CaptureCard, CardAnswer, CardRail, CardToken, ChargedCard, RailError, Repay, RepayAnswer, SecurityCode,
};
use ledger::personal::{StoreAddress, Storefront};
use ledger::{CardBrand, CardRefusal, Centavos, MerchantProfile, PaymentMethod};
use serde_json::json;
use testkit::adyen_player::{BLOCKED, CHALLENGED, NO_BALANCE, PARTIAL, REFUSED};
use testkit::played_http::Oddity;

use crate::{AMOUNT, World, card, charge, charge_of, id, now, open_card, repay};

#[tokio::test]
async fn a_charge_is_authorized_and_then_captured() {
    let world = World::new().await;
    let authorized = world.authorized(1).await;
    let payment = world.player.payment(&id(1).txid()).unwrap();
    assert_eq!((payment.captured, &authorized.stamp.id), (0, &payment.psp_reference), "no money has moved");
    assert_eq!(authorized.stamp.authorization.as_deref(), Some("065696"));
    assert_eq!(authorized.brand, Some(CardBrand::Elo));
    let call = CaptureCard { charge: id(1), amount: AMOUNT, authorized };
    for _ in 0..2 {
        let Ok(CardAnswer::Captured { acquirer_mdr, stamp, .. }) = world.rail.capture(call.clone()).await else {
            panic!("a capture");
        };
        assert_eq!((acquirer_mdr, &stamp.id), (Centavos::ZERO, &payment.psp_reference));
        assert_eq!(stamp.authorization.as_deref(), Some("065696"));
    }
    assert_eq!(world.player.payment(&id(1).txid()).unwrap().captured, 1_050);
    assert_eq!(world.player.records().modifications.len(), 1, "captured once");
    assert_eq!(world.player.records().violations, [""; 0]);
}

#[tokio::test]
async fn an_order_has_all_that_the_schemes_demand() {
    let world = World::new().await;
    let storefront = Storefront {
        soft_descriptor: Some("LOJA AZUL".to_owned()),
        mcc: Some("5651".to_owned()),
        address: Some(StoreAddress {
            street: "Rua Direita".to_owned(),
            number: "10".to_owned(),
            city: "São Paulo".to_owned(),
            state: "SP".to_owned(),
            zip_code: "01002000".to_owned(),
        }),
        phone: Some("5511988887777".to_owned()),
        email: Some("contato@loja.example".to_owned()),
        url: Some("https://loja.example".to_owned()),
        acquirer_id: Some("LOJAAZUL1".to_owned()),
    };
    let mut order = charge(id(1));
    order.installments = 3;
    order.merchant = MerchantProfile {
        name: "Loja de Artigos Esportivos Azul".to_owned(),
        document: "11222333000181".to_owned(),
        city: "São Paulo".to_owned(),
        storefront: Some(storefront),
    };
    assert!(matches!(world.rail.charge(order).await, Ok(CardAnswer::Authorized(_))));
    let body = world.player.payment(&id(1).txid()).unwrap().body;
    assert_eq!(body["installments"], json!({ "value": 3 }));
    assert_eq!((&body["shopperStatement"], &body["shopperEmail"]), (&json!("LOJA AZUL"), &json!("ana@example.com")));
    let merchant = &body["subMerchants"][0];
    assert_eq!((&merchant["name"], &merchant["id"]), (&json!("Loja de Artigos Esport"), &json!("LOJAAZUL1")));
    assert_eq!(merchant["amount"], json!({ "currency": "BRL", "value": 1_050 }));
    let mut debit = charge(id(2));
    debit.method = PaymentMethod::DebitCard;
    assert!(matches!(world.rail.charge(debit).await, Ok(CardAnswer::Authorized(_))));
    assert_eq!(world.player.payment(&id(2).txid()).unwrap().body["paymentMethod"]["fundingSource"], "debit");
    assert_eq!(world.player.records().violations, [""; 0]);
}

#[tokio::test]
async fn a_refusal_keeps_the_code() {
    let world = World::new().await;
    let coded = |code, is_final| Ok(CardAnswer::Refused(CardRefusal::Coded { code, is_final }));
    let cases = [(REFUSED, 2, false), (NO_BALANCE, 12, false), (BLOCKED, 5, true), ("41111", 101, false)];
    for (number, (card, code, is_final)) in (1..).zip(cases) {
        assert_eq!(world.rail.charge(charge_of(id(number), card)).await, coded(code, is_final), "{card}");
        assert_eq!(world.player.count("/payments"), number as usize, "sent once");
    }
    assert_eq!(world.player.records().violations, [""; 0]);
}

/// A payment that waits for its payer, or is authorized in part, is none; its end is ordered.
#[tokio::test]
async fn only_authorised_is_an_authorization() {
    let world = World::new().await;
    for (number, card) in [(1, CHALLENGED), (2, PARTIAL)] {
        assert_eq!(world.rail.charge(charge_of(id(number), card)).await, Err(RailError::NoAnswer), "{card}");
        assert_eq!(world.player.count("/payments"), number as usize, "no repeat says more");
        assert_eq!(world.rail.close(id(number), &open_card()).await, Err(RailError::NoAnswer), "it is told later");
        assert!(world.player.payment(&id(number).txid()).unwrap().is_cancelled, "{card}");
    }
    assert_eq!(world.player.records().violations, [""; 0]);
}

/// A repeat is the only question that Adyen answers; it is another call.
#[tokio::test]
async fn an_order_is_sent_once_in_a_call_and_a_repeat_has_the_same_key() {
    let world = World::new().await;
    world.player.is_odd("/payments", 1, Oddity::CutsAnswerAt(0));
    assert_eq!(world.rail.charge(charge(id(1))).await, Err(RailError::NoAnswer));
    assert_eq!((world.player.count("/payments"), world.player.records().payments.len()), (1, 1));
    let authorized = world.authorized(1).await;
    assert_eq!(world.player.records().payments.len(), 1);
    world.player.is_odd("/captures", 1, Oddity::CutsAnswerAt(40));
    let call = CaptureCard { charge: id(1), amount: AMOUNT, authorized: authorized.clone() };
    assert_eq!(world.rail.capture(call.clone()).await, Err(RailError::NoAnswer));
    assert!(matches!(world.rail.capture(call).await, Ok(CardAnswer::Captured { .. })));
    world.player.is_odd("/refunds", 1, Oddity::CutsAnswerAt(40));
    let refund = |is_repeat| Repay { is_repeat, ..repay(2, id(1), &authorized.stamp.id, 250) };
    assert_eq!(world.rail.repay(refund(false)).await, Err(RailError::NoAnswer));
    assert_eq!(world.rail.repay(refund(true)).await, Err(RailError::HasNone), "nothing is sent");
    let answer = world.rail.repay(refund(false)).await;
    assert!(matches!(answer, Ok(RepayAnswer::Repaid(_))), "{answer:?}");
    assert_eq!(world.player.count("/refunds"), 2);
    let payment = world.player.payment(&id(1).txid()).unwrap();
    assert_eq!((payment.captured, payment.refunded), (1_050, 250));
    assert_eq!(world.player.records().violations, [""; 0]);
}

#[tokio::test]
async fn a_refund_that_adyen_may_have_forgotten_is_not_ordered_again() {
    let world = World::new().await;
    let payment = world.captured(1).await;
    let mut order = repay(2, id(1), &payment, 250);
    (order.is_repeat, order.decided_at) = (true, now().plus_ms(-31 * 86_400_000));
    assert_eq!(world.rail.repay(order.clone()).await, Err(RailError::NoAnswer));
    assert_eq!(world.player.count("/refunds"), 0);
    order.decided_at = now().plus_ms(-29 * 86_400_000);
    assert_eq!(world.rail.repay(order).await, Err(RailError::HasNone), "it may be, once that is a Record");
}

#[tokio::test]
async fn an_order_that_is_late_does_not_leave() {
    let world = World::new().await;
    let mut late = charge(id(1));
    late.not_after = now();
    assert_eq!(world.rail.charge(late).await, Err(RailError::NotSent));
    assert_eq!(world.player.stage().connections, 0);
}

#[tokio::test]
async fn a_stored_card_is_charged_for_its_shopper() {
    let world = World::new().await;
    let token = world.rail.tokenize(card(crate::GOOD)).await.unwrap();
    let other = world.rail.tokenize(card(crate::GOOD)).await.unwrap();
    assert_ne!(token, other, "no two tokens have one shopper");
    let mut order = charge(id(1));
    order.card = ChargedCard::Token(token.clone());
    assert!(matches!(world.rail.charge(order).await, Ok(CardAnswer::Authorized(_))));
    let body = world.player.payment(&id(1).txid()).unwrap().body;
    assert_eq!((&body["shopperInteraction"], body["paymentMethod"].get("number")), (&json!("ContAuth"), None));
    assert_eq!(world.player.records().violations, [""; 0]);
    let model = |of: u64| world.player.payment(&id(of).txid()).unwrap().body["recurringProcessingModel"].clone();
    assert_eq!((model(1), body["paymentMethod"].get("cvc")), (json!("Subscription"), None));
    let mut once = charge(id(3));
    once.card = ChargedCard::Stored { token: other.clone(), cvv: Some(SecurityCode("737".to_owned())) };
    assert!(matches!(world.rail.charge(once).await, Ok(CardAnswer::Authorized(_))));
    let body = world.player.payment(&id(3).txid()).unwrap().body;
    assert_eq!((model(3), &body["paymentMethod"]["cvc"]), (json!("CardOnFile"), &json!("***")));
    let mut foreign = charge(id(2));
    foreign.card = ChargedCard::Token(CardToken("of-another-acquirer".to_owned()));
    assert_eq!(world.rail.charge(foreign).await, Ok(CardAnswer::Refused(CardRefusal::NotAuthorized)));
    assert_eq!(world.rail.delete_token(token.clone()).await, Ok(true));
    assert_eq!(world.player.records().violations, [""; 0]);
    assert_eq!(world.rail.delete_token(token).await, Ok(false), "Adyen has it no more");
    assert_eq!(world.rail.delete_token(other).await, Ok(true));
}
