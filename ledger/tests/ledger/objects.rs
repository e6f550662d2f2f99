//! Read models of single objects, folded over the Records of a [`World`]: what came before, and how
//! the object stands then.

use std::convert::Infallible;

use crate::world::World;
use ledger::cashout::Cashout;
use ledger::charge::Charge;
use ledger::dispute::Dispute;
use ledger::object::{self, Object};
use ledger::refund::Refund;
use ledger::withdrawal::Withdrawal;

/// How an object stands after some steps; "none" when there is no such object.
fn standing<T: Object>(steps: &str, name: &str, show: impl Fn(T) -> String) -> String {
    let mut world = World::new();
    steps.split("; ").for_each(|line| drop(world.step(line).unwrap_or_else(|error| panic!("{line}: {error}"))));
    let records = world.journal.iter().map(Ok::<_, Infallible>);
    let Ok(found) = object::read::<T, _, _>(world.id(name), records);
    found.map_or_else(|| "none".to_owned(), show)
}

#[test]
fn a_charge_has_its_outcome_and_what_was_given_back() {
    let show = |charge: Charge| format!("{:?} refunded {}", charge.outcome, charge.refunded.0);
    for (steps, expected) in [
        ("open-card c 10000 1x", "Pending refunded 0"),
        ("open-card c 10000 1x; silent c", "Unanswered refunded 0"),
        ("open-card c 10000 1x; refuse c", "Refused(NotAuthorized) refunded 0"),
        ("open-pix c 8000; cancel c", "Cancelled refunded 0"),
    ] {
        assert_eq!(standing(steps, "c", show), expected, "{steps}");
    }
    let paid = |charge: Charge| format!("{:?}", charge.outcome).split('{').next().unwrap_or_default().to_owned();
    assert_eq!(standing("open-card c 10000 1x; silent c; capture c", "c", paid), "Paid ");
    let first = |charge: Charge| format!("{:?}", charge.first_outcome);
    assert_eq!(standing("open-card c 10000 1x; silent c; capture c", "c", first), "Unanswered");
}

#[test]
fn a_cashout_ends_once() {
    let show = |cashout: Cashout| {
        let stage = format!("{:?}", cashout.stage).split(" {").next().unwrap_or_default().to_owned();
        let rejection = cashout.rejection().map(|(by, notes)| format!(" {by:?} {}", notes.unwrap_or_default()));
        format!("{} {stage}{}", cashout.net().0, rejection.unwrap_or_default())
    };
    for (steps, expected) in [
        ("open-pix p 8000; pay p; cash-out o 3000", "2900 InProcessing"),
        ("open-pix p 8000; pay p; cash-out o 3000; carried-out o", "2900 Processed"),
        ("open-pix p 8000; pay p; cash-out o 3000; not-taken o", "2900 Failed Bank conta encerrada"),
        (
            "open-pix p 8000; pay p; cash-out o 3000; carried-out o; sent-back o 3000",
            "2900 Returned Returned conta encerrada",
        ),
    ] {
        assert_eq!(standing(steps, "o", show), expected, "{steps}");
    }
}

#[test]
fn a_refund_and_a_dispute_are_decided() {
    let refund = |refund: Refund| format!("{} {:?}", refund.amount.0, refund.decision);
    for (steps, expected) in [
        ("open-pix p 8000; pay p; refund r p 3000", "3000 Pending"),
        ("open-pix p 8000; pay p; refund r p 3000; approve-refund r p; send r", "3000 Approved"),
        ("open-pix p 8000; pay p; refund r p 3000; reject-refund r", "3000 Rejected { notes: \"no proof\" }"),
        ("open-pix p 8000; pay p; dispute r p 3000", "none"),
    ] {
        assert_eq!(standing(steps, "r", refund), expected, "{steps}");
    }
    let refunded = |charge: Charge| charge.refunded.0.to_string();
    let steps = "open-pix p 8000; pay p; refund r p 3000; approve-refund r p; refund s p 20; approve-refund s p";
    assert_eq!(standing(steps, "p", refunded), "3020");
    let dispute = |dispute: Dispute| format!("{:?} {:?}", dispute.kind, dispute.decision);
    for (steps, expected) in [
        ("open-pix p 8000; pay p; dispute d p 3000", "Med Open".to_owned()),
        (
            "open-card p 8000 1x; capture p; dispute d p 3000; accept d p; send d",
            decided("Chargeback Accepted", ", amount: 3000"),
        ),
        (
            "open-card p 8000 1x; capture p; dispute d p 5000; accept d p 3000",
            decided("Chargeback Accepted", ", amount: 3000"),
        ),
        ("open-pix p 8000; pay p; dispute d p 3000; release d p", decided("Med Released", "")),
    ] {
        assert_eq!(standing(steps, "d", dispute), expected, "{steps}");
    }
}

/// A decision at the time at which a world begins.
fn decided(what: &str, amount: &str) -> String {
    format!("{what} {{ at: {:?}{amount} }}", World::new().now)
}

#[test]
fn a_withdrawal_is_paid_or_comes_back() {
    let show = |withdrawal: Withdrawal| {
        let times = [withdrawal.approved_at, withdrawal.paid_at].map(|at| at.is_some());
        format!("{} {times:?} {}", withdrawal.amount.0, withdrawal.notes.is_some())
    };
    let steps = "open-pix p 8000 ana=100; pay p; withdraw ana w";
    for (then, expected) in [
        ("", "100 [false, false] false"),
        ("; reject-withdrawal ana w", "100 [false, false] true"),
        ("; approve-withdrawal ana w", "100 [true, false] false"),
        ("; approve-withdrawal ana w; settle ana w taken", "100 [true, true] false"),
        ("; approve-withdrawal ana w; settle ana w refused", "100 [true, false] true"),
        ("; approve-withdrawal ana w; settle ana w taken; return ana w", "100 [true, false] true"),
    ] {
        assert_eq!(standing(&format!("{steps}{then}"), "w", show), expected, "{then}");
    }
}
