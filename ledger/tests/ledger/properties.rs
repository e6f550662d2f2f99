//! Properties over sequences of commands while time moves. [`World`] checks every Record as it is
//! made: the promises of the books, the states against the books, that `decide` changed nothing,
//! and the way through the bytes. A failing sequence is a list of steps that can stand in a table.

use std::collections::BTreeMap;

use crate::shelf::Shelf;
use crate::world::World;
use ledger::account::Account;
use ledger::event::{Event, Split};
use ledger::id::{LedgerId, ObjectId, RecipientNumber};
use ledger::merchant::{ChargeFacts, MerchantState};
use ledger::money::Centavos;
use ledger::recipient::{RecipientState, credits};
use proptest::prelude::*;

const CHARGES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];
const CASHOUTS: [&str; 4] = ["c0", "c1", "o0", "o1"];
const RECIPIENTS: [&str; 6] = ["ana", "bia", "caio", "dora", "paulo", "rita"];
const REFUNDS: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];
const DISPUTES: [&str; 6] = ["d0", "d1", "d2", "d3", "d4", "d5"];
const SETTINGS: [&str; 26] = [
    "refund_commission on",
    "refund_commission off",
    "split off",
    "split on",
    "split on",
    "split_guard net",
    "split_guard off",
    "mdr_base seller_gross",
    "mdr_base total",
    "card_settlement_days 0",
    "card_settlement_days 1",
    "card_settlement_days 30",
    "card_settlement_days 365",
    "antifraud 0",
    "antifraud 198",
    "mdr_1x 100",
    "mdr_1x 2.99",
    "margin 0.0001",
    "pix 50",
    "closing on",
    "closing off",
    "closing off",
    "cashout off",
    "cashout on",
    "cashout_fee 0",
    "cashout_fee 100",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_promises_hold_after_any_commands(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in &steps {
            let before = (world.merchant.clone(), world.journal.len());
            if world.step(step).is_err() && world.journal.len() == before.1 {
                prop_assert!(world.merchant == before.0, "a refusal changed the state: {}", step);
            }
            world.assert_attention_comes_in_time();
        }
        when_all_is_due_nothing_is_pending(&mut world);
    }

    /// Refunds, those that wait too, never take more of a charge than was charged, nor more of a
    /// recipient than it got of it. With disputes neither do those that were approved, but for what
    /// disputes say that they exceed the charge.
    #[test]
    fn a_charge_gives_no_more_than_was_charged(steps in prop::collection::vec(prop_oneof![1 => step(), 3 => adjustment()], 1..80)) {
        let mut world = World::new();
        for step in ["open-card c0 9000 1x ana=900 bia=50 ana=30", "capture c0", "open-pix c1 700 ana=300", "pay c1"] {
            world.step(step).expect("the charges are allowed");
        }
        steps.iter().for_each(|step| drop(world.step(step)));
        let mut taken: BTreeMap<_, ChargeDraws> = BTreeMap::new();
        for event in world.journal.iter().flat_map(|record| &record.events) {
            count(event, &mut taken);
        }
        for (charge, taken) in taken {
            let facts = world.journal.iter().find_map(|record| ChargeFacts::in_record(record, charge));
            let terms = facts.expect("only what was paid is given back").terms;
            prop_assert!(taken.refunded <= terms.amount, "{:?} of {:?}", taken.refunded, terms.amount);
            prop_assert!(taken.given <= terms.amount, "{:?} of {:?}", taken.given, terms.amount);
            for (recipient, back) in taken.back {
                let got: Centavos = terms.splits.iter().filter(|split| split.recipient == recipient).map(|split| split.amount).sum();
                prop_assert!(back <= got, "{:?} of {:?}", back, got);
            }
            for (index, back) in taken.back_of_split {
                prop_assert!(back <= terms.splits[index as usize].amount, "split {}: {:?}", index, back);
            }
            let returned = taken.commission;
            prop_assert!(returned <= terms.commission.total(), "{:?} of {:?}", returned, terms.commission.total());
        }
    }

    #[test]
    fn replay_from_any_snapshot_leads_to_the_live_state(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        steps.iter().for_each(|step| drop(world.step(step)));
        let mut replayed = Group::default();
        for (applied, record) in world.journal.iter().enumerate() {
            let mut restored = replayed.kept_and_read();
            prop_assert!(restored.merchant == replayed.merchant && restored.recipients == replayed.recipients, "a snapshot is what was snapshot");
            world.journal[applied..].iter().for_each(|record| restored.apply(record));
            prop_assert!(restored.is_live(&world), "replay from Record {} differs", applied);
            replayed.apply(record);
        }
        prop_assert!(replayed.kept_and_read().is_live(&world));
    }
}

/// What the events say is spoken for of a charge.
#[derive(Default)]
struct ChargeDraws {
    /// By refunds, those that wait too.
    refunded: Centavos,
    /// By approved refunds and by disputes, less what these exceed the charge.
    given: Centavos,
    exceeds: BTreeMap<ObjectId, Centavos>,
    back: BTreeMap<RecipientNumber, Centavos>,
    back_of_split: BTreeMap<u32, Centavos>,
    commission: Centavos,
    requested: BTreeMap<ObjectId, Vec<Split>>,
}

fn count(event: &Event, taken: &mut BTreeMap<ObjectId, ChargeDraws>) {
    match event {
        Event::RefundRequested { id, charge, amount, take_back, .. } => {
            let taken = taken.entry(*charge).or_default();
            taken.refunded += *amount;
            take_back.iter().for_each(|part| *taken.back.entry(part.recipient).or_default() += part.amount);
            taken.requested.insert(*id, take_back.clone());
        }
        Event::RefundRejected { id, charge, amount, .. } => {
            let taken = taken.entry(*charge).or_default();
            taken.refunded -= *amount;
            for part in taken.requested.remove(id).unwrap_or_default() {
                *taken.back.entry(part.recipient).or_default() -= part.amount;
            }
        }
        Event::RefundApproved { charge, amount, commission, take_backs, .. } => {
            let taken = taken.entry(*charge).or_default();
            taken.given += *amount;
            taken.commission += commission.total();
            take_backs.iter().for_each(|debt| *taken.back_of_split.entry(debt.index).or_default() += debt.amount);
        }
        Event::RefundFailed { charge, amount, commission, give_backs, .. } => {
            let taken = taken.entry(*charge).or_default();
            taken.refunded -= *amount;
            taken.given -= *amount;
            taken.commission -= commission.total();
            for part in give_backs {
                *taken.back.entry(part.recipient).or_default() -= part.taken;
                *taken.back_of_split.entry(part.index).or_default() -= part.taken;
            }
        }
        Event::DisputeOpened { id, charge, amount, exceeds, .. } => {
            let taken = taken.entry(*charge).or_default();
            let exceeds = exceeds.unwrap_or_default();
            taken.given += *amount - exceeds;
            taken.exceeds.insert(*id, exceeds);
        }
        Event::DisputeReversed { id, charge, amount, .. } => {
            let taken = taken.entry(*charge).or_default();
            // What exceeded the charge was lost first, and is won last.
            let exceeds = taken.exceeds.insert(*id, Centavos::ZERO).unwrap_or_default().min(*amount);
            taken.given -= *amount - exceeds;
        }
        Event::DisputeReleased { id, charge, amount, accepted, .. } => {
            let taken = taken.entry(*charge).or_default();
            let exceeds = taken.exceeds.get(id).copied().filter(|_| accepted.is_none());
            taken.given -= *amount - exceeds.unwrap_or_default();
        }
        _ => {}
    }
}

/// A group's states, rebuilt from Records alone, and their stored sections.
#[derive(Clone, Default)]
struct Group {
    merchant: MerchantState,
    recipients: BTreeMap<RecipientNumber, RecipientState>,
    merchant_shelf: Shelf,
    recipients_shelves: BTreeMap<RecipientNumber, Shelf>,
}

impl Group {
    fn apply(&mut self, record: &ledger::record::Record) {
        let LedgerId::Recipient(_, number) = record.owner else {
            self.merchant.evolve(record);
            let changed: BTreeMap<_, _> = credits::changed(record).into_iter().collect();
            for ledger in record.other_ledgers() {
                let LedgerId::Recipient(_, number) = ledger else { continue };
                let state = self.recipients.entry(number).or_default();
                let before = state.clone();
                state.receive(record, ledger);
                // What is noted of the Record says the same.
                match changed.get(&ledger) {
                    Some(None) => {}
                    Some(Some(credit)) => {
                        let mut credited = before;
                        credited.credit(*credit);
                        assert_eq!(&credited, state, "{record:?}");
                    }
                    None => assert_eq!(&before, state, "{record:?}"),
                }
            }
            return;
        };
        self.recipients.entry(number).or_default().evolve(record);
        self.merchant.receive(record);
    }

    /// The states as read from their sections. Only sections touched since the last time are stored
    /// again.
    fn kept_and_read(&mut self) -> Self {
        let merchant = self.merchant_shelf.keep_and_read(&mut self.merchant);
        let shelves = &mut self.recipients_shelves;
        let read = |(number, state): (&RecipientNumber, &mut RecipientState)| {
            (*number, shelves.entry(*number).or_default().keep_and_read(state))
        };
        Self { merchant, recipients: self.recipients.iter_mut().map(read).collect(), ..Self::default() }
    }

    fn is_live(&self, world: &World) -> bool {
        self.merchant == world.merchant && self.recipients == world.recipients
    }
}

fn when_all_is_due_nothing_is_pending(world: &mut World) {
    for step in ["wait 400d", "sweep"] {
        world.step(step).expect("time and the sweep are never refused");
    }
    assert!(world.merchant.pending().is_zero());
    for state in world.recipients.values() {
        assert!(state.pending().is_zero());
        assert!(
            state.next_due().is_none() || state.to_send(world.now).is_some(),
            "only a transfer is still asked about"
        );
    }
    let platform = world.ledger("platform");
    let events = world.journal.iter().flat_map(|record| &record.events);
    let owed = events.map(|event| match event {
        Event::CardCaptured { terms, acquirer_mdr, .. } => terms.amount - *acquirer_mdr,
        Event::PayerRepaid { method, amount, .. } | Event::DisputeAccepted { method, amount, .. }
            if method.is_card() =>
        {
            -*amount
        }
        Event::DisputeReversed { method, amount, .. } if method.is_card() => *amount,
        Event::AcquirerSettled { lines, .. } => {
            -lines.iter().map(|line| line.gross - line.booked_fee).sum::<Centavos>()
        }
        _ => Centavos::ZERO,
    });
    let owed: Centavos = owed.sum();
    let acquirer = world.books.balance(platform, Account::AcquirerReceivable);
    assert_eq!(acquirer, i128::from(owed.0), "the acquirer owes what it captured and neither took back nor paid");
    let all: i128 = world.books.ledgers().values().flat_map(|balances| balances.values()).map(|one| one.net()).sum();
    assert_eq!(all, 0, "the books balance");
}

fn step() -> impl Strategy<Value = String> {
    let recipient = || prop::sample::select(RECIPIENTS.as_slice());
    prop_oneof![
        6 => open(),
        6 => (prop::sample::select(["capture", "pay"].as_slice()), charge()).prop_map(|(verb, charge)| format!("{verb} {charge}")),
        1 => (charge(), -10_i64..30_000).prop_map(|(charge, mdr)| format!("capture {charge} {mdr}")),
        2 => (1_u8..20, charge(), 1_u8..4, -9_000_i64..9_000, -90_i64..900).prop_map(|(number, charge, of, gross, fee)| {
            format!("batch {number} {charge}.{of}:{gross}:{fee}")
        }),
        2 => (prop::sample::select(["refuse", "silent", "cancel"].as_slice()), charge())
            .prop_map(|(verb, charge)| format!("{verb} {charge}")),
        3 => (cashout(), 90_i64..9_000).prop_map(|(name, amount)| format!("cash-out {name} {amount}")),
        3 => (prop::sample::select(["carried-out", "not-carried-out", "not-taken", "try"].as_slice()), cashout())
            .prop_map(|(verb, name)| format!("{verb} {name}")),
        2 => duration().prop_map(|duration| format!("wait {duration}")),
        1 => Just("sweep".to_owned()),
        1 => recipient().prop_map(|name| format!("mature {name}")),
        2 => (prop::sample::select(["register", "submit", "approve", "reject"].as_slice()), recipient())
            .prop_map(|(verb, name)| format!("{verb} {name}")),
        1 => (plan(), 1_i64..20_000, prop::sample::select(["DAILY", "WEEKLY", "MONTHLY"].as_slice()), 1_u8..5, 0_u8..3, 1_u8..3)
            .prop_map(|(name, amount, cycle, total, grace, fee)| {
                format!("plan {name} {name} {amount} {cycle} {total} grace={grace} fee=700x{}", fee.min(total))
            }),
        2 => (subscription(), plan(), prop::sample::select(["card", "pix", "card ana=1", "pix bia=90"].as_slice()))
            .prop_map(|(name, plan, how)| format!("subscribe {name} {plan} {how}")),
        4 => (subscription(), charge()).prop_map(|(name, charge)| format!("bill {name} {charge}")),
        1 => (prop::sample::select(["pause", "resume", "cancel-subscription"].as_slice()), subscription())
            .prop_map(|(verb, name)| format!("{verb} {name}")),
        1 => plan().prop_map(|name| format!("disable {name}")),
        1 => setting().prop_map(|setting| format!("set {setting}")),
        3 => withdrawal(),
        2 => (anticipating(), charge(), 0_u8..3).prop_map(|(name, charge, index)| format!("anticipate {name} d2 {charge}.{index}")),
        6 => adjustment(),
        3 => write_off(),
        3 => entered_return(),
    ]
}

/// A refund, a dispute, or a payment that came too late; and what is decided about one.
fn adjustment() -> impl Strategy<Value = String> {
    let refund = || prop::sample::select(REFUNDS.as_slice());
    let dispute = || prop::sample::select(DISPUTES.as_slice());
    let amount = || prop_oneof![4 => 1_i64..2_000, 1 => 1_i64..20_000];
    let back = prop::collection::vec((prop::sample::select(["ana", "bia"].as_slice()), 1_i64..500), 0..3);
    prop_oneof![
        3 => (refund(), charge(), amount(), back).prop_map(|(refund, charge, amount, back)| {
            let back: String = back.iter().map(|(name, part)| format!(" {name}={part}")).collect();
            format!("refund {refund} {charge} {amount}{back}")
        }),
        3 => (refund(), charge()).prop_map(|(refund, charge)| format!("approve-refund {refund} {charge}")),
        1 => refund().prop_map(|refund| format!("reject-refund {refund}")),
        2 => (dispute(), charge(), amount())
            .prop_map(|(dispute, charge, amount)| format!("dispute {dispute} {charge} {amount}")),
        2 => (prop::sample::select(["accept", "release"].as_slice()), dispute(), charge())
            .prop_map(|(verb, dispute, charge)| format!("{verb} {dispute} {charge}")),
        2 => (dispute(), charge()).prop_map(|(dispute, charge)| format!("win {dispute} {charge}")),
        2 => (prop::sample::select(["ask-reversal", "approve-reversal"].as_slice()), dispute(), charge())
            .prop_map(|(verb, dispute, charge)| format!("{verb} credit {dispute} {charge}")),
        3 => (prop::sample::select(["send", "try"].as_slice()), prop_oneof![refund(), dispute(), charge()])
            .prop_map(|(verb, id)| format!("{verb} {id}")),
        1 => (charge(), 1_i64..20_000).prop_map(|(charge, amount)| format!("pay-late {charge} {amount}")),
    ]
}

fn anticipating() -> impl Strategy<Value = &'static str> {
    prop::sample::select(["ana", "bia"].as_slice())
}

/// Steps of a write-off, whose latest request bears the debtor's name, and of an adjustment.
fn write_off() -> impl Strategy<Value = String> {
    let verb = prop::sample::select(
        [
            "ask-write-off",
            "ask-write-off",
            "approve-write-off",
            "approve-own-write-off",
            "reject-write-off",
            "ask-adjustment",
            "approve-adjustment",
            "reject-adjustment",
        ]
        .as_slice(),
    );
    let debtor = prop::sample::select(["merchant", "ana", "bia"].as_slice());
    (verb, debtor, 1_i64..400).prop_map(|(verb, debtor, amount)| match verb {
        "ask-adjustment" if debtor == "merchant" => format!("{verb} credit {amount}"),
        "ask-adjustment" => format!("{verb} credit {amount} {debtor}"),
        "approve-adjustment" | "reject-adjustment" => format!("{verb} credit"),
        "ask-write-off" => format!("{verb} {debtor} o-{debtor} {amount}"),
        verb => format!("{verb} {debtor} o-{debtor}"),
    })
}

/// The steps by which two operators book that a withdrawal came back.
fn entered_return() -> impl Strategy<Value = String> {
    let verb = prop::sample::select(
        ["ask-return", "ask-return", "approve-return", "approve-return", "approve-own-return", "reject-return"]
            .as_slice(),
    );
    (verb, anticipating()).prop_map(|(verb, name)| match verb {
        "ask-return" => format!("{verb} {name} x-{name} w-{name}"),
        verb => format!("{verb} {name} x-{name}"),
    })
}

/// Steps of a withdrawal; the latest request bears the recipient's name.
fn withdrawal() -> impl Strategy<Value = String> {
    let step = prop::sample::select(
        [
            "withdraw",
            "withdraw-by-operator",
            "approve-withdrawal",
            "approve-withdrawal",
            "reject-withdrawal",
            "cancel-withdrawal",
            "freeze",
            "unfreeze",
            "unfreeze",
            "settle",
            "settle",
            "return",
            "try-transfer",
        ]
        .as_slice(),
    );
    (step, anticipating(), any::<bool>()).prop_map(|(step, name, well)| match step {
        "settle" => format!("settle {name} w-{name} {}", if well { "taken" } else { "refused" }),
        "freeze" | "unfreeze" => format!("{step} {name}"),
        step => format!("{step} {name} w-{name}"),
    })
}

fn open() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(["open-card", "open-card", "open-debit", "open-pix", "open-pix"].as_slice());
    let amount = prop_oneof![8 => 1_i64..20_000, 1 => Just(1_000_000_000_000)];
    let name = prop::sample::select(["ana", "ana", "bia", "bia", "caio", "dora", "paulo", "rita", "nobody"].as_slice());
    // Per mille of the total: enough of them together reach it now and then, or come within a
    // centavo of it.
    let parts = prop::collection::vec((name, prop_oneof![4 => 1_i64..300, 1 => 900_i64..1_000]), 0..4);
    (kind, charge(), amount, 1_u8..=12, parts, any::<bool>()).prop_map(
        |(kind, charge, amount, installments, parts, to_the_last)| {
            let part_of = |share: i64| (amount * share / 1_000).max(1);
            let mut splits: Vec<_> = parts.iter().map(|(name, share)| (*name, part_of(*share))).collect();
            let others: i64 = splits.iter().skip(1).map(|(_, part)| part).sum();
            if let (true, Some(first)) = (to_the_last && amount - 1 - others > 0, splits.first_mut()) {
                first.1 = amount - 1 - others;
            }
            let splits: String = splits.iter().map(|(name, part)| format!(" {name}={part}")).collect();
            match kind {
                "open-pix" => format!("{kind} {charge} {amount}{splits}"),
                kind => format!("{kind} {charge} {amount} {installments}x{splits}"),
            }
        },
    )
}

fn charge() -> impl Strategy<Value = &'static str> {
    prop::sample::select(CHARGES.as_slice())
}

/// Some of them are names of charges too.
fn cashout() -> impl Strategy<Value = &'static str> {
    prop::sample::select(CASHOUTS.as_slice())
}

fn plan() -> impl Strategy<Value = &'static str> {
    prop::sample::select(["p0", "p1"].as_slice())
}

fn subscription() -> impl Strategy<Value = &'static str> {
    prop::sample::select(["s0", "s1"].as_slice())
}

fn duration() -> impl Strategy<Value = String> {
    prop_oneof![
        (1_u32..90_000).prop_map(|count| format!("{count}ms")),
        (1_u32..3_000).prop_map(|count| format!("{count}m")),
        (1_u32..40).prop_map(|count| format!("{count}d")),
    ]
}

fn setting() -> impl Strategy<Value = String> {
    prop::sample::select(SETTINGS.as_slice()).prop_map(str::to_owned)
}
