//! Interleavings of a recipient's Records: live order is not replay order. A recipient applies its
//! own Records before they are sequenced, and its merchant's after. Every order that keeps each
//! source's own order, and every own Record behind the merchant's Records that it counted, must
//! lead to the same state. Take-backs are among them, while their split matures, is anticipated or
//! is withdrawn.

use crate::shelf::Shelf;
use crate::world::World;
use ledger::event::{Cut, Event, PayoutBank, SplitKey};
use ledger::id::{LedgerId, ObjectId};
use ledger::money::Rate;
use ledger::personal::Sealed;
use ledger::recipient::{AnticipationTerms, CardSplit, RecipientCommand, RecipientState, TransferOutcome};
use ledger::record::{Decision, Record};
use ledger::time::Timestamp;
use proptest::prelude::*;

/// The life of one recipient: the Records of its merchant, and its own decisions, each with its
/// cut: the number of the merchant's Records received before it.
struct Life {
    ledger: LedgerId,
    foreign: Vec<Record>,
    own: Vec<(Record, usize)>,
    end: RecipientState,
}

/// What happens next in a life that is being made up.
#[derive(Clone, Copy, Debug)]
enum Turn {
    Receive,
    Mature {
        after_minutes: u32,
    },
    Withdraw,
    /// Of the pending withdrawal, whatever stands next: approval, then the institution's answer.
    Decide {
        well: bool,
    },
    /// Of the card splits received so far, the one at this place, and those after it.
    Anticipate {
        from: usize,
    },
}

/// Charges for ana: amounts in centavos, PIX or card, the minutes that pass before each, and what
/// the merchant takes back of it.
type Charges = Vec<(i64, bool, u32, i64)>;

#[test]
fn every_interleaving_of_every_short_life_ends_alike() {
    let day = 24 * 60;
    // The last two fall due in the same minute; the PIX is available at once.
    let charges = vec![(700, false, 0, 0), (300, true, 1, 0), (500, false, day, 0), (50, false, 0, 0)];
    let month = Turn::Mature { after_minutes: 31 * day };
    try_every(&charges, &[month, month, month], 50, 100);
}

/// Part of a split is taken back while the split falls due, is anticipated, or is withdrawn and
/// comes back.
#[test]
fn a_take_back_meets_whatever_its_split_does() {
    let day = 24 * 60;
    let charges = vec![(700, false, 0, 200), (300, true, 1, 300)];
    let month = Turn::Mature { after_minutes: 31 * day };
    let soon = Turn::Mature { after_minutes: 0 };
    let (rejected, approved) = (Turn::Decide { well: false }, Turn::Decide { well: true });
    try_every(&charges, &[soon, month, soon], 50, 100);
    try_every(&charges, &[Turn::Anticipate { from: 0 }, soon, month], 50, 100);
    try_every(&charges, &[Turn::Withdraw, rejected, Turn::Withdraw, month], 100, 200);
    try_every(&charges, &[Turn::Anticipate { from: 0 }, Turn::Withdraw, approved, approved, soon], 100, 200);
}

/// Every order of arrival between the recipient's turns, and for each such life every order of
/// replay.
fn try_every(charges: &Charges, own: &[Turn], decisions_min: usize, orders_min: usize) {
    let received = credits(charges).1.len();
    let (mut decisions, mut orders) = (0, 0);
    for turns in every_arrangement(received, own) {
        let life = live(charges, &turns);
        decisions += life.own.len();
        orders += every_order(&life, RecipientState::default(), 0, 0);
    }
    assert!(decisions > decisions_min && orders > orders_min, "{decisions} decisions in {orders} orders prove little");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_random_interleaving_of_a_long_life_ends_alike(
        charges in prop::collection::vec((1_i64..10_000, any::<bool>(), minutes(20_000), taken()), 1..24),
        turns in prop::collection::vec(turn(), 1..48),
        own_first in prop::collection::vec(any::<bool>(), 48),
    ) {
        let life = live(&charges, &turns);
        let (mut state, mut shelf) = (RecipientState::default(), Shelf::default());
        let (mut own, mut foreign, mut choices) = (0, 0, own_first.iter().cycle());
        while own < life.own.len() || foreign < life.foreign.len() {
            let own_may = life.own.get(own).is_some_and(|(_, cut)| *cut <= foreign);
            if own_may && (foreign == life.foreign.len() || *choices.next().unwrap_or(&true)) {
                state.evolve(&life.own[own].0);
                own += 1;
            } else {
                state.receive(&life.foreign[foreign], life.ledger);
                foreign += 1;
            }
            state = shelf.keep_and_read(&mut state);
        }
        prop_assert_eq!(state, life.end);
    }
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        6 => Just(Turn::Receive),
        3 => minutes(60_000).prop_map(|after_minutes| Turn::Mature { after_minutes }),
        2 => Just(Turn::Withdraw),
        2 => any::<bool>().prop_map(|well| Turn::Decide { well }),
        2 => (0_usize..12).prop_map(|from| Turn::Anticipate { from }),
    ]
}

/// Mostly nothing is taken back.
fn taken() -> impl Strategy<Value = i64> {
    prop_oneof![2 => Just(0_i64), 1 => 1_i64..10_000]
}

/// Often none or one, so that credits fall due in the same minute.
fn minutes(most: u32) -> impl Strategy<Value = u32> {
    prop_oneof![2 => 0_u32..2, 1 => 0_u32..most]
}

/// Every way to place this number of received Records between the other turns, which keep their
/// order.
fn every_arrangement(receives: usize, others: &[Turn]) -> Vec<Vec<Turn>> {
    let mut arrangements = Vec::new();
    if receives == 0 && others.is_empty() {
        arrangements.push(Vec::new());
    }
    if receives > 0 {
        let rest = every_arrangement(receives - 1, others).into_iter();
        arrangements.extend(rest.map(|rest| [vec![Turn::Receive], rest].concat()));
    }
    if let Some((next, others)) = others.split_first() {
        let rest = every_arrangement(receives, others).into_iter();
        arrangements.extend(rest.map(|rest| [vec![*next], rest].concat()));
    }
    arrangements
}

/// Tries every order from here on, and counts them.
fn every_order(life: &Life, state: RecipientState, own: usize, foreign: usize) -> usize {
    if own == life.own.len() && foreign == life.foreign.len() {
        assert_eq!(state, life.end);
        return 1;
    }
    let mut orders = 0;
    if let Some((record, _)) = life.own.get(own).filter(|(_, cut)| *cut <= foreign) {
        let mut state = state.clone();
        state.evolve(record);
        orders += every_order(life, state, own + 1, foreign);
    }
    if let Some(record) = life.foreign.get(foreign) {
        let mut state = state;
        state.receive(record, life.ledger);
        orders += every_order(life, state, own, foreign + 1);
    }
    orders
}

fn live(charges: &Charges, turns: &[Turn]) -> Life {
    let (ledger, foreign) = credits(charges);
    let mut now = foreign[0].effective_at;
    let (mut state, mut own, mut received, mut last) = (RecipientState::default(), Vec::new(), 0, 0);
    for (made, turn) in (1_u128..).zip(turns) {
        if let Turn::Mature { after_minutes } = turn {
            now = Timestamp(now.0 + i64::from(*after_minutes) * 60_000);
        }
        if let Turn::Receive = turn {
            if let Some(record) = foreign.get(received) {
                state.receive(record, ledger);
                received += 1;
            }
            continue;
        }
        // As its actor does: due money and debts are booked before the decision.
        let mut keep = |state: &mut RecipientState, decision: Decision| {
            let record = decision.into_record(ledger, own.len() as u64 + 1, now);
            state.evolve(&record);
            assert!(state.is_sound(), "{record:?}");
            own.push((record, received));
            own.len() as u64
        };
        if let Some(decision) = state.mature(now, received as u64) {
            last = keep(&mut state, decision);
        }
        let cut = Cut { foreign: received as u64, minute: now.minute(), own: last };
        let command = command(turn, &state, &foreign[..received], ledger, ObjectId(made));
        if let Some(Ok(decision)) = command.map(|command| state.decide(command, now, cut)) {
            last = keep(&mut state, decision);
        }
    }
    foreign[received..].iter().for_each(|record| state.receive(record, ledger));
    Life { ledger, foreign, own, end: state }
}

/// What a turn asks of the recipient.
fn command(
    turn: &Turn,
    state: &RecipientState,
    received: &[Record],
    ledger: LedgerId,
    id: ObjectId,
) -> Option<RecipientCommand> {
    let pending = state.standing().withdrawal;
    match turn {
        Turn::Receive | Turn::Mature { .. } => None,
        Turn::Withdraw => Some(RecipientCommand::Withdraw { id, destination: Sealed::default(), reason: None }),
        Turn::Decide { well } => {
            let Some(pending) = pending else {
                let id = state.returnable().first().filter(|_| !well)?.withdrawal.id;
                return Some(RecipientCommand::ReturnWithdrawal { id, notes: String::new(), to: None });
            };
            let (id, notes) = (pending.id, String::new());
            Some(match (pending.approved_at, well) {
                (None, true) => RecipientCommand::ApproveWithdrawal { id, rail: None },
                (None, false) => RecipientCommand::RejectWithdrawal { id, notes },
                (Some(_), true) => {
                    let outcome = TransferOutcome::Taken { transfer_id: String::new(), bank: PayoutBank::Pix };
                    RecipientCommand::SettleWithdrawal { id, outcome }
                }
                (Some(_), false) => {
                    RecipientCommand::SettleWithdrawal { id, outcome: TransferOutcome::Refused { notes } }
                }
            })
        }
        Turn::Anticipate { from } => {
            let splits: Vec<_> =
                (1..).zip(received).filter_map(|(sequence, record)| card_split(sequence, record, ledger)).collect();
            let splits = splits.get(*from..)?.to_vec();
            let rate = Rate::basis_points(238);
            let terms = AnticipationTerms { target_days: 2, rate, expected_fee: None };
            Some(RecipientCommand::Anticipate { id, splits, terms })
        }
    }
}

fn card_split(sequence: u64, record: &Record, ledger: LedgerId) -> Option<CardSplit> {
    let LedgerId::Recipient(_, number) = ledger else { return None };
    record.events.iter().find_map(|event| match event {
        Event::CardCaptured { charge, terms, splits_due, .. } => {
            let index = terms.splits.iter().position(|split| split.recipient == number)?;
            let split = SplitKey { charge: *charge, index: index as u32 };
            Some(CardSplit { split, sequence, due: *splits_due, nominal: terms.splits[index].amount })
        }
        _ => None,
    })
}

/// The merchant's Records that credit ana.
fn credits(charges: &Charges) -> (LedgerId, Vec<Record>) {
    let mut world = World::new();
    let ledger = world.ledger("ana");
    let before = world.journal.len();
    for (amount, is_pix, minutes, taken) in charges {
        let total = amount + 1_000;
        let mut steps = if *is_pix {
            vec![format!("wait {minutes}m"), format!("open-pix c {total} ana={amount}"), "pay c".to_owned()]
        } else {
            vec![
                format!("wait {minutes}m"),
                format!("open-card c {total} 1x ana={amount} bia=1"),
                "capture c".to_owned(),
            ]
        };
        if *taken > 0 {
            steps.push(format!("take-back c 0={}+{}", taken / 2, taken - taken / 2));
        }
        steps.iter().for_each(|step| drop(world.step(step).expect("the charges are allowed")));
    }
    let records = world.journal.split_off(before);
    (ledger, records.into_iter().filter(|record| record.entries_of(ledger).next().is_some()).collect())
}
