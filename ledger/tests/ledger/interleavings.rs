//! Live order is not replay order: a recipient applies its own Records before they are sequenced, and its merchant's after. Every
//! order that keeps each source's own order, and every own `Matured` behind the merchant's Records that it counted, must lead to
//! the same state.

use crate::shelf::Shelf;
use crate::world::World;
use ledger::event::Event;
use ledger::id::LedgerId;
use ledger::recipient::RecipientState;
use ledger::record::Record;
use ledger::time::Timestamp;
use proptest::prelude::*;

/// The life of one recipient: what its merchant sent it, and what it decided, each with its cut: so many of the merchant's
/// Records had been received.
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
    Mature { after_minutes: u32 },
}

/// Charges for ana: amounts in centavos, PIX or card, and the minutes that pass before each.
type Charges = Vec<(i64, bool, u32)>;

#[test]
fn every_interleaving_of_every_short_life_ends_alike() {
    let day = 24 * 60;
    // The last two fall due in the same minute; the PIX is available at once.
    let charges = vec![(700, false, 0), (300, true, 1), (500, false, day), (50, false, 0)];
    let (mut decisions, mut orders) = (0, 0);
    for turns in every_arrangement(charges.len(), 3) {
        let life = live(&charges, &turns);
        decisions += life.own.len();
        orders += every_order(&life, RecipientState::default(), 0, 0);
    }
    assert!(decisions > 50 && orders > 100, "{decisions} decisions in {orders} orders prove little");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_random_interleaving_of_a_long_life_ends_alike(
        charges in prop::collection::vec((1_i64..10_000, any::<bool>(), minutes(20_000)), 1..24),
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
    prop_oneof![2 => Just(Turn::Receive), 1 => minutes(60_000).prop_map(|after_minutes| Turn::Mature { after_minutes })]
}

/// Often none or one, so that credits fall due in the same minute.
fn minutes(most: u32) -> impl Strategy<Value = u32> {
    prop_oneof![2 => 0_u32..2, 1 => 0_u32..most]
}

/// Every order in which so many Records are received and so many times a month passes.
fn every_arrangement(receives: usize, months: usize) -> Vec<Vec<Turn>> {
    let mut arrangements = Vec::new();
    if receives == 0 && months == 0 {
        arrangements.push(Vec::new());
    }
    if receives > 0 {
        let rest = every_arrangement(receives - 1, months).into_iter();
        arrangements.extend(rest.map(|rest| [vec![Turn::Receive], rest].concat()));
    }
    if months > 0 {
        let month = Turn::Mature { after_minutes: 31 * 24 * 60 };
        let rest = every_arrangement(receives, months - 1).into_iter();
        arrangements.extend(rest.map(|rest| [vec![month], rest].concat()));
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
    let (mut state, mut own, mut received) = (RecipientState::default(), Vec::new(), 0);
    for turn in turns {
        match turn {
            Turn::Receive => {
                if let Some(record) = foreign.get(received) {
                    state.receive(record, ledger);
                    received += 1;
                }
            }
            Turn::Mature { after_minutes } => {
                now = Timestamp(now.0 + i64::from(*after_minutes) * 60_000);
                if let Some(decision) = state.mature(now, received as u64) {
                    let record = decision.into_record(ledger, own.len() as u64 + 1, now);
                    assert!(
                        matches!(record.events[..], [Event::Matured { foreign_through, .. }] if foreign_through == received as u64)
                    );
                    state.evolve(&record);
                    own.push((record, received));
                }
            }
        }
    }
    foreign[received..].iter().for_each(|record| state.receive(record, ledger));
    Life { ledger, foreign, own, end: state }
}

/// The merchant's Records that credit ana.
fn credits(charges: &Charges) -> (LedgerId, Vec<Record>) {
    let mut world = World::new();
    let ledger = world.ledger("ana");
    let before = world.journal.len();
    for (amount, is_pix, minutes) in charges {
        let total = amount + 1_000;
        let steps = if *is_pix {
            [format!("wait {minutes}m"), format!("open-pix c {total} ana={amount}"), "pay c".to_owned()]
        } else {
            [format!("wait {minutes}m"), format!("open-card c {total} 1x ana={amount} bia=1"), "capture c".to_owned()]
        };
        steps.iter().for_each(|step| drop(world.step(step).expect("the charges are allowed")));
    }
    let records = world.journal.split_off(before);
    (ledger, records.into_iter().filter(|record| record.entries_of(ledger).next().is_some()).collect())
}
