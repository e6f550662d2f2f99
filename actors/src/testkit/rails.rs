//! Conformance test of rails, for their adapters: a denial stays a denial, and an answer is
//! repeated. The checks panic where a rail does otherwise.

use ledger::{CardRefusal, ObjectId, OpenCharge, Timestamp};

use crate::rails::{
    CardAnswer, CardFate, CardRail, ChargeCard, OpenPix, PayoutAnswer, PayoutRail, PixFate, PixOpening, PixRail,
    PixSpan, Repay, SendPayout,
};

/// Checks an acquirer. `call` charges a card under any id, `open` is the same charge as it
/// waits, and the ids are new to the acquirer.
pub async fn card(rail: &dyn CardRail, call: impl Fn(ObjectId) -> ChargeCard, open: &OpenCharge, ids: [ObjectId; 2]) {
    let [charged, never_charged] = ids;
    let answer = rail.charge(call(charged)).await;
    assert_eq!(rail.charge(call(charged)).await, answer, "a charge that is ordered twice has one outcome");
    for _ in 0..2 {
        assert_eq!(rail.close(charged, open).await, answer.clone().map(CardFate::Answered), "a charge that it had");
    }
    let fate = rail.close(never_charged, open).await.expect("the acquirer says what became of a charge");
    let late = match fate.clone() {
        CardFate::Closed => CardAnswer::Refused(CardRefusal::Failed),
        CardFate::Answered(answer) => answer,
    };
    for _ in 0..2 {
        assert_eq!(rail.charge(call(never_charged)).await, Ok(late.clone()), "a charge that comes after it was ended");
        assert_eq!(
            rail.close(never_charged, open).await,
            Ok(fate.clone()),
            "a charge that was ended is asked about again"
        );
    }
}

/// Checks an institution with a transfer that is new to it; gives its answer to the first
/// order.
pub async fn payout(rail: &dyn PayoutRail, call: &SendPayout, now: Timestamp) -> PayoutAnswer {
    let first = rail.send(call.clone()).await.expect("the institution answers an order");
    let found = rail.find(call.clone(), now).await.expect("the institution says what became of a transfer");
    let again = rail.send(call.clone()).await.expect("the institution answers an order that it knows");
    let denies = |answer: &PayoutAnswer| matches!(answer, PayoutAnswer::NotTaken | PayoutAnswer::Failed { .. });
    if denies(&first) {
        assert!(denies(&found) && denies(&again), "{first:?} to an order, then {found:?}, then {again:?}");
    }
    assert_eq!(rail.find(call.clone(), now).await, Ok(found), "an order that comes again changes nothing");
    first
}

/// Checks a PIX institution that registers charges. `call` opens a charge under any id, and the ids
/// are new to it. `pay` has a payer pay a charge, and gives an order to return all of the payment.
/// The payment lies within `span`.
pub async fn pix(
    rail: &dyn PixRail,
    call: impl Fn(ObjectId) -> OpenPix,
    pay: impl Fn(ObjectId) -> Repay,
    ids: [ObjectId; 2],
    span: PixSpan,
) {
    let [removed, paid] = ids;
    let first = rail.open(call(removed)).await.expect("the institution registers a charge");
    assert!(matches!(first, PixOpening::Registered { .. }), "{first:?}");
    assert_eq!(rail.open(call(removed)).await, Ok(first), "a charge that is ordered twice has one code");
    for _ in 0..2 {
        assert_eq!(rail.cancel(removed).await, Ok(PixFate::Cancelled), "a charge that nobody paid");
        let late = rail.open(call(removed)).await;
        assert!(!matches!(late, Ok(PixOpening::Registered { .. })), "a charge that comes after its end: {late:?}");
    }
    rail.open(call(paid)).await.expect("the institution registers a charge");
    let order = pay(paid);
    let fate = rail.cancel(paid).await;
    let Ok(PixFate::Paid(receipt)) = &fate else { panic!("{fate:?} for a charge that was paid") };
    assert_eq!(rail.cancel(paid).await, fate, "a charge that was paid stays paid");
    let returned = rail.repay(order.clone()).await.expect("the institution answers a return");
    assert_eq!(rail.repay(order).await, Ok(returned), "a return that is ordered twice is made once");
    for _ in 0..2 {
        let list = rail.received(span).await.expect("the institution lists payments");
        let listed = list.payments.iter().filter(|payment| payment.end_to_end_id == receipt.end_to_end_id);
        assert_eq!(listed.collect::<Vec<_>>(), [receipt], "a payment is listed in each answer, once");
    }
}
