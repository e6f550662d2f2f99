//! Take-backs: money that comes back from recipients while refunds go on, in every order. Nothing
//! is remembered for longer than it can matter.

use crate::shelf::Shelf;
use crate::world::World;
use ledger::event::{AdjustmentTarget, Event, PaidBack, SplitKey, TakeBack};
use ledger::id::{GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::merchant::MerchantState;
use ledger::money::Centavos;
use ledger::recipient::RecipientState;
use ledger::record::{Decision, Record};
use ledger::section::Sectioned;
use ledger::time::Minute;

/// A charge with splits of 2000 for ana and 1500 for bia, refunded with a take-back that undoes a
/// Deficit first.
const REFUNDED: [&str; 4] =
    ["open-card c 10000 1x ana=2000 bia=1500", "capture c", "refund r c 7000 ana=2000 bia=700", "approve-refund r c"];

/// The Record by which a recipient pays back this much of each of its debts of a refund.
fn paid_back(world: &World, name: &str, ordinal: u64, shares: impl Fn(&TakeBack) -> (i64, i64)) -> Record {
    let approved = world.journal.iter().flat_map(|record| &record.events).find_map(|event| match event {
        Event::RefundApproved { id, charge, seller_due, take_backs, .. } => {
            Some((*id, *charge, *seller_due, take_backs.clone()))
        }
        _ => None,
    });
    let (refund, charge, seller_due, take_backs) = approved.expect("a refund was approved");
    let ledger = world.ledger(name);
    let own = take_backs
        .iter()
        .filter(|debt| LedgerId::Recipient(ledger.group().expect("a recipient has a group"), debt.recipient) == ledger);
    let debts = own.map(|debt| {
        let (to_available, to_pending) = shares(debt);
        PaidBack {
            split: SplitKey { charge, index: debt.index },
            refund,
            from_pending: Centavos(to_available + to_pending),
            due: debt.due,
            from_available: Centavos::ZERO,
            to_available: Centavos(to_available),
            to_pending: Centavos(to_pending),
            seller_due,
        }
    });
    let event = Event::ClawbackRecovered { debts: debts.collect(), left: None, goodwill: Centavos::ZERO };
    Decision::of(event).into_record(ledger, ordinal, world.now)
}

fn world_of(steps: &[&str]) -> World {
    let mut world = World::new();
    steps.iter().for_each(|step| drop(world.step(step).unwrap_or_else(|refusal| panic!("{step}: {refusal}"))));
    world
}

fn figures(state: &MerchantState) -> (i64, i64, i64) {
    (state.pending().0, state.available().0, state.deficit().0)
}

#[test]
fn what_is_paid_back_repays_the_deficit_first_and_can_be_drawn_on_again() {
    let mut world = world_of(&REFUNDED);
    world.step("send r").expect("the rail may say so at any time");
    assert_eq!(figures(&world.merchant), (0, 0, 1_062));
    let back = paid_back(&world, "ana", 1, |debt| (debt.to_available.0, debt.to_pending.0));
    world.merchant.receive(&back);
    assert_eq!(figures(&world.merchant), (938, 1_062, 1_062), "2000 came back, of which 1062 undo the Deficit");
    assert!(world.merchant.next_due().is_some_and(|due| due <= world.now), "the Deficit can be repaid now");
    let decision = world.merchant.mature(world.now, 0).expect("there is something to book");
    assert_eq!(decision.events, [Event::DeficitRecovered { amount: Centavos(1_062) }]);
    let own = world.journal.iter().filter(|record| record.owner == world.ledger("merchant")).count() as u64;
    world.merchant.evolve(&decision.into_record(world.ledger("merchant"), own + 1, world.now));
    assert_eq!(figures(&world.merchant), (938, 0, 0));
    assert!(world.merchant.next_due().is_some_and(|due| due > world.now), "nothing is left to do");
}

#[test]
fn what_came_back_to_the_charge_is_its_own_pending_again() {
    for (came_back, expected) in [(0, (0, 0, 1_000)), (400, (400, 0, 600)), (938, (938, 0, 62))] {
        let mut world = world_of(&REFUNDED);
        if came_back > 0 {
            world.merchant.receive(&paid_back(&world, "ana", 1, |_| (0, came_back)));
        }
        let refund = world_decides(&mut world, "refund s c 1000", "approve-refund s c");
        let Event::RefundApproved { drawn, .. } = refund else { panic!("{refund:?}") };
        assert_eq!((drawn.from_pending.0, drawn.from_available.0, drawn.to_deficit.0), expected);
    }
}

/// The decision of a refund on a state to which money came back: the books of the world know
/// nothing of that money.
fn world_decides(world: &mut World, ask: &str, approve: &str) -> Event {
    let decision = world.decision(ask).expect("it is allowed");
    let merchant = world.ledger("merchant");
    let own = world.journal.iter().filter(|record| record.owner == merchant).count() as u64;
    world.merchant.evolve(&decision.into_record(merchant, own + 1, world.now));
    let approved = world.decision(approve).expect("it is allowed");
    approved.events.into_iter().next().expect("a decision has a fact")
}

/// The own Records from the refund on, and the recipients' Records, in every order that keeps each
/// source's own order.
#[test]
fn money_that_comes_back_commutes_with_what_the_merchant_decides() {
    let before = world_of(&REFUNDED);
    let ends = [
        paid_back(&before, "ana", 1, |debt| (debt.to_available.0, 0)),
        paid_back(&before, "ana", 2, |debt| (0, debt.to_pending.0)),
        paid_back(&before, "bia", 1, |debt| (debt.to_available.0, debt.to_pending.0)),
    ];
    // The charge's money falls due, its window ends and it is forgotten, and other charges go on
    // meanwhile.
    let mut world = world_of(&REFUNDED);
    let shared = world.journal.len();
    for step in [
        "send r",
        "dispute d c 100",
        "open-pix p 5000",
        "pay p",
        "wait 31d",
        "mature merchant",
        "batch 1 c.1:10000:299",
        "release d c",
        "wait 200d",
        "set pix 1",
    ] {
        world.step(step).unwrap_or_else(|refusal| panic!("{step}: {refusal}"));
    }
    let merchant = world.ledger("merchant");
    let own: Vec<_> = world.journal[shared..].iter().filter(|record| record.owner == merchant).cloned().collect();
    let mut start = MerchantState::default();
    before.journal.iter().filter(|record| record.owner == merchant).for_each(|record| start.evolve(record));
    let mut expected = start.clone();
    own.iter().for_each(|record| expected.evolve(record));
    ends.iter().for_each(|record| expected.receive(record));
    let orders = every_order(&start, &own, &ends, &expected);
    assert!(orders > 100, "{orders} orders prove little");
}

fn every_order(state: &MerchantState, own: &[Record], foreign: &[Record], expected: &MerchantState) -> usize {
    if own.is_empty() && foreign.is_empty() {
        assert!(state == expected, "another order, another state");
        return 1;
    }
    let mut orders = 0;
    if let Some((first, rest)) = own.split_first() {
        let mut state = state.clone();
        state.evolve(first);
        orders += every_order(&state, rest, foreign, expected);
    }
    if let Some((first, rest)) = foreign.split_first() {
        let mut state = state.clone();
        state.receive(first);
        orders += every_order(&state, own, rest, expected);
    }
    orders
}

/// The sections of adjustments: kinds 8 and 9 of a merchant's.
fn count_of(world: &World) -> usize {
    let mut state = world.merchant.clone();
    let sections = state.take_touched().into_iter().filter(|section| matches!(section.kind, 8 | 9));
    sections.filter_map(|section| state.section(section)).count()
}

#[test]
fn what_can_no_longer_change_is_forgotten() {
    for (steps, left) in [
        (&["open-pix p 10000", "pay p", "refund r p 10", "approve-refund r p", "send r"][..], 1),
        (&["open-pix p 10000", "pay p", "refund r p 10", "approve-refund r p", "send r", "wait 90d", "set pix 1"], 1),
        (&["open-pix p 10000", "pay p", "refund r p 10", "approve-refund r p", "send r", "wait 91d", "set pix 1"], 0),
        (&["open-pix p 10000", "pay p", "refund r p 10", "reject-refund r", "wait 91d", "set pix 1"], 0),
        (&["open-pix p 10000", "pay p", "dispute d p 10", "release d p", "wait 91d", "set pix 1"], 0),
        (&["open-pix p 10000", "pay p", "dispute d p 10", "accept d p", "wait 91d", "send d"], 0),
        (&["open-pix p 10000", "cancel p", "pay-late p 10000", "send late", "wait 91d", "set pix 1"], 0),
        // What is open stays.
        (&["open-pix p 10000", "pay p", "refund r p 10", "wait 91d", "set pix 1"], 2),
        (&["open-pix p 10000", "pay p", "refund r p 10", "approve-refund r p", "wait 91d", "set pix 1"], 2),
        (&["open-pix p 10000", "pay p", "dispute d p 10", "wait 91d", "set pix 1"], 2),
        (&["open-pix p 10000", "pay p", "refund r p 10", "approve-refund r p", "wait 91d", "send r"], 0),
    ] {
        let world = world_of(steps);
        assert_eq!(count_of(&world), left, "{steps:?}");
        // Touched sections are stored after every Record: the state read back equals the live one.
        let (mut shelf, mut read) = (Shelf::default(), MerchantState::default());
        for record in world.journal.iter().filter(|record| record.owner == world.ledger("merchant")) {
            read.evolve(record);
            read = shelf.keep_and_read(&mut read);
        }
        assert!(read == world.merchant, "{steps:?}");
    }
}

#[test]
fn a_debt_says_where_its_money_returns_to() {
    let world = world_of(&REFUNDED);
    let record = world
        .journal
        .iter()
        .rev()
        .find(|record| !record.other_ledgers().is_empty())
        .expect("a refund that concerns others");
    let expected = [world.ledger("ana"), world.ledger("bia")];
    assert_eq!(record.other_ledgers(), expected);
    let Some(Event::RefundApproved { take_backs, drawn, .. }) = record.events.first() else { panic!("{record:?}") };
    let parts = take_backs.iter().map(|debt| (debt.index, debt.amount.0, debt.to_available.0, debt.to_pending.0));
    assert_eq!(parts.collect::<Vec<_>>(), [(0, 2_000, 1_062, 938), (1, 700, 0, 700)]);
    assert!(take_backs.iter().all(|debt| debt.due.is_some_and(|due: Minute| due.start() > world.now)));
    assert_eq!((drawn.from_pending.0, drawn.to_deficit.0), (5_938, 1_062));
}

/// A stored state and a replay of the same Records agree, as Records of before keep their meaning.
#[test]
fn credits_that_do_not_say_so_are_not_beside_splits() {
    let world = World::new();
    let (group, number) = (GroupNumber(1), RecipientNumber(1));
    let standing = |is_beside_splits| {
        let event = Event::AdjustmentCreated {
            id: ObjectId::default(),
            amount: Centavos(700),
            reference: "CHAMADO-17".to_owned(),
            target: Some(AdjustmentTarget::Recipient(number)),
            is_beside_splits,
        };
        let record = Decision::of(event).into_record(LedgerId::Merchant(group), 1, world.now);
        let mut state = RecipientState::default();
        state.receive(&record, LedgerId::Recipient(group, number));
        let standing = state.standing();
        (standing.available.0, standing.consumed.0, standing.goodwill.0)
    };
    assert_eq!((standing(false), standing(true)), ((700, -700, 0), (700, 0, 700)));
}
