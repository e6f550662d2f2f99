//! Properties over sequences of commands while time moves. [`World`] checks every Record as it is made: the promises of the books,
//! the states against the books, that `decide` changed nothing, and the way through the bytes. A failing sequence is a list of
//! steps that can stand in a table.

use std::collections::BTreeMap;

use crate::shelf::Shelf;
use crate::world::World;
use ledger::account::Account;
use ledger::id::{LedgerId, RecipientNumber};
use ledger::merchant::MerchantState;
use ledger::recipient::RecipientState;
use proptest::prelude::*;

const CHARGES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];
const RECIPIENTS: [&str; 6] = ["ana", "bia", "caio", "dora", "paulo", "rita"];
const SETTINGS: [&str; 17] = [
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

/// A group's states, rebuilt from Records alone, and what was kept of them.
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
            for ledger in record.told() {
                let LedgerId::Recipient(_, number) = ledger else { continue };
                self.recipients.entry(number).or_default().receive(record, ledger);
            }
            return;
        };
        self.recipients.entry(number).or_default().evolve(record);
        self.merchant.receive(record);
    }

    /// The states as they are read from their sections, of which only what was touched since the last time is kept again.
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
    assert!(world.recipients.values().all(|state| state.pending().is_zero() && state.next_due().is_none()));
    let platform = world.ledger("platform");
    assert_eq!(world.books.balance(platform, Account::AcquirerReceivable), 0, "the acquirer owes nothing any more");
    let all: i128 = world.books.ledgers().values().flat_map(|balances| balances.values()).map(|one| one.net()).sum();
    assert_eq!(all, 0, "the books balance");
}

fn step() -> impl Strategy<Value = String> {
    let recipient = || prop::sample::select(RECIPIENTS.as_slice());
    prop_oneof![
        6 => open(),
        6 => (prop::sample::select(["capture", "pay"].as_slice()), charge()).prop_map(|(verb, charge)| format!("{verb} {charge}")),
        1 => (charge(), -10_i64..30_000).prop_map(|(charge, kept)| format!("capture {charge} {kept}")),
        2 => (prop::sample::select(["refuse", "silent", "cancel"].as_slice()), charge())
            .prop_map(|(verb, charge)| format!("{verb} {charge}")),
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
    ]
}

fn open() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(["open-card", "open-card", "open-debit", "open-pix", "open-pix"].as_slice());
    let amount = prop_oneof![8 => 1_i64..20_000, 1 => Just(1_000_000_000_000)];
    let name = prop::sample::select(["ana", "ana", "bia", "bia", "caio", "dora", "paulo", "rita", "nobody"].as_slice());
    // Per mille of the total: enough of them together reach it now and then, or come within a centavo of it.
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
