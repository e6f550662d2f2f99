//! The conformance test of bridges: it passes on the player, and names the rule that a fault of the
//! player breaks.

use std::collections::BTreeSet;

use centavo_rails::protocol::check::{CheckOrders, Defect, Finding, check};
use serde_json::json;
use testkit::played_http::Oddity;
use testkit::rail_player::Fault;

use crate::World;

async fn findings(world: &World) -> (bool, Vec<Finding>) {
    findings_with(world, Some(("email", "a@example.com".to_owned()))).await
}

async fn findings_with(world: &World, pix_key: Option<(&'static str, String)>) -> (bool, Vec<Finding>) {
    let orders = CheckOrders { card: "4111111111111111".to_owned(), pix_key };
    let mut findings = Vec::new();
    let is_sound = check(&world.rail, orders, |finding| findings.push(finding.clone())).await;
    (is_sound, findings)
}

#[tokio::test]
async fn a_sound_bridge_passes() {
    for repeats in ["same", "refused"] {
        let world = World::new(repeats).await;
        world.player.records().capabilities["id_length"] = json!(20);
        world.player.settle(&[("a".repeat(32), 1_000)]);
        world.player.pay(None, 700);
        let (is_sound, findings) = findings(&world).await;
        let numbers: Vec<_> = findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(numbers, (1..=16).collect::<Vec<_>>());
        let not_ok: Vec<_> = findings.iter().filter(|finding| finding.result.is_err()).collect();
        assert!(is_sound && not_ok.is_empty(), "{repeats}: {not_ok:#?}");
        let records = world.player.records();
        let carried_out: BTreeSet<_> = records.carried_out.iter().collect();
        assert_eq!(carried_out.len(), records.carried_out.len(), "each once");
    }
}

/// A bridge that promises little is asked for little, and gets no order twice.
#[tokio::test]
async fn what_a_bridge_does_not_promise_is_not_tested() {
    let world = World::new("again").await;
    world.player.records().capabilities["serves"] = json!(["card"]);
    world.player.records().capabilities["closes"] = json!(false);
    let (is_sound, findings) = findings(&world).await;
    assert!(is_sound, "{findings:#?}");
    let untested = findings.iter().filter(|finding| matches!(finding.result, Err(Defect::NotTested(_))));
    assert_eq!(untested.map(|finding| finding.rule).collect::<Vec<_>>(), [7, 8, 9, 10, 11, 12, 13, 15, 16]);
    let records = world.player.records();
    let carried_out: BTreeSet<_> = records.carried_out.iter().collect();
    assert_eq!(carried_out.len(), records.carried_out.len(), "each once");
}

/// A bridge that pays a repeated payout twice must not read `ok`.
#[tokio::test]
async fn payouts_without_a_key_to_send_to_are_not_tested() {
    let world = World::new("same").await;
    let (_, findings) = findings_with(&world, None).await;
    let untested = findings
        .iter()
        .filter(|finding| matches!(&finding.result, Err(Defect::NotTested(why)) if why.contains("--pix-key")));
    let untested: Vec<_> = untested.map(|finding| finding.rule).collect();
    assert!([5, 6, 7, 8, 9].iter().all(|rule| untested.contains(rule)), "{untested:?}");
}

/// A bridge whose connections end before it answers an order. The rule about answers is broken; of
/// the others nobody knows.
#[tokio::test]
async fn a_lost_answer_breaks_the_rule_about_answers_alone() {
    let world = World::new("same").await;
    world.player.is_odd("PUT", "/cards/", usize::MAX, Oddity::CarriesOutAndSays(Vec::new()));
    let (is_sound, findings) = findings(&world).await;
    let of = |rule: u8| &findings[usize::from(rule) - 1].result;
    assert!(!is_sound && matches!(of(5), Err(Defect::Broken(_))), "{findings:#?}");
    let broken = findings.iter().filter(|finding| matches!(finding.result, Err(Defect::Broken(_))));
    let rules: Vec<_> = broken.map(|finding| finding.rule).collect();
    assert_eq!(rules, [5, 11], "each kind of request once: an order, and its end");
    for rule in [2, 4, 6, 7, 8, 9, 14] {
        let Err(Defect::NotTested(why)) = of(rule) else { panic!("{rule}: {:?}", of(rule)) };
        assert!(why.contains("no answer to PUT /cards/…"), "{rule}: {why}");
    }
}

#[tokio::test]
async fn nothing_is_ordered_where_money_moves() {
    let world = World::new("same").await;
    world.player.records().capabilities["test"] = json!(false);
    let (is_sound, findings) = findings(&world).await;
    assert!(!is_sound && findings.len() == 1, "{findings:#?}");
    assert_eq!(world.player.count("PUT", ""), 0);
}

#[tokio::test]
async fn each_fault_is_named_by_its_rule() {
    let faults = [
        (Fault::AcceptsAnySecret, 2),
        (Fault::BareNotFound, 3),
        (Fault::CutsFractions, 4),
        (Fault::WritesAmountsAsTexts, 5),
        (Fault::LosesOrders, 6),
        (Fault::RepeatsOrders, 7),
        (Fault::TakesAnotherOrder, 8),
        (Fault::ClosesWhatItCharged, 10),
        (Fault::ForgetsClosedIds, 12),
        (Fault::RepaysTooMuch, 14),
        (Fault::ChangesBatches, 15),
        (Fault::SharesShortIds, 16),
        (Fault::RepeatsPages, 15),
        (Fault::CodesAnotherAmount, 13),
    ];
    for (fault, rule) in faults {
        let world = World::new("same").await;
        world.player.settle(&[("a".repeat(32), 1_000)]);
        world.player.pay(None, 700);
        world.player.records().capabilities["id_length"] = json!(20);
        world.player.records().fault = Some(fault);
        let (is_sound, findings) = findings(&world).await;
        let broken: Vec<_> = findings
            .iter()
            .filter_map(|finding| match &finding.result {
                Err(Defect::Broken(what)) => Some((finding.rule, what)),
                _ => None,
            })
            .collect();
        assert!(!is_sound && broken.iter().any(|(number, _)| *number == rule), "{fault:?}: {broken:#?}");
        // A rule about orders does not judge the form of a 404 too.
        if fault == Fault::BareNotFound {
            assert_eq!(broken.len(), 1, "{broken:#?}");
        }
        assert!(!format!("{broken:?}").contains("4111111111111111"), "no finding repeats a card: {broken:?}");
    }
}
