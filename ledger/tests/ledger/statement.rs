//! Statement lines of a merchant. Every Record of every [`World`] is checked: its lines agree with
//! the books.

use crate::world::World;
use ledger::event::Event;
use ledger::statement::{StatementAccount, StatementLine, statement_lines};

/// Preceding steps, the step whose Records are shown, and the lines: kind, account, amount.
const CASES: &[(&str, &str, &str)] = &[
    (
        "open-card c 10000 1x ana=2000 bia=1500",
        "capture c",
        "Charge Pending 10000; Split Pending -3500; Fee Pending -562",
    ),
    ("open-pix p 8000 ana=1000", "pay p", "Charge Available 8000; Split Available -1000; Fee Available -69"),
    ("set pix 0; open-pix p 8000", "pay p", "Charge Available 8000"),
    (
        "open-card c 10000 1x ana=9999",
        "capture c",
        "Charge Pending 10000; Split Pending -9999; Fee Pending -1; Deficit Available 496; Fee Available -496",
    ),
    (
        "open-pix p 300; pay p; open-card c 10000 1x ana=9999",
        "capture c",
        "Charge Pending 10000; Split Pending -9999; Fee Pending -1; Deficit Available 199; Fee Available -496",
    ),
    (
        "open-pix p 10000; pay p; open-card c 10000 1x ana=9999",
        "capture c",
        "Charge Pending 10000; Split Pending -9999; Fee Pending -1; Fee Available -496",
    ),
    (
        "open-card c 10000 1x ana=9999; capture c; open-pix p 8000 ana=1000",
        "pay p",
        "Charge Available 8000; Split Available -1000; Fee Available -69; Deficit Available -496",
    ),
    (
        "open-card c 10000 1x; capture c; wait 1m; open-card d 1000 1x; capture d; wait 30d",
        "mature merchant",
        "Settlement Pending -9403; Settlement Available 9403; Settlement Pending -762; Settlement Available 762",
    ),
    ("open-pix p 8000; pay p", "cash-out o 3000", "Cashout Available -3000; Cashout Reserved 3000"),
    ("open-pix p 8000; pay p; cash-out o 3000", "carried-out o", "Cashout Reserved -2900; CashoutFee Reserved -100"),
    ("set cashout_fee 0; open-pix p 8000; pay p; cash-out o 3000", "carried-out o", "Cashout Reserved -3000"),
    (
        "open-pix p 8000; pay p; cash-out o 3000",
        "not-taken o",
        "CashoutReturned Reserved -3000; CashoutReturned Available 3000",
    ),
    (
        "open-pix p 8000; pay p; cash-out o 7921; open-card c 10000 1x ana=9999; capture c",
        "not-carried-out o",
        "CashoutReturned Reserved -7921; CashoutReturned Available 7921; Deficit Available -496",
    ),
    ("open-card c 10000 1x ana=2000; capture c; wait 30d", "mature ana", ""),
    ("open-pix p 8000 ana=1000", "cancel p", ""),
    ("open-card c 10000 1x", "refuse c", ""),
    ("open-card c 10000 1x", "silent c", ""),
    ("", "open-card c 10000 1x", ""),
];

#[test]
fn a_merchant_sees_each_movement_of_its_money() {
    for (given, step, expected) in CASES {
        let mut world = World::new();
        for step in given.split("; ").filter(|step| !step.is_empty()) {
            world.step(step).unwrap_or_else(|refusal| panic!("{given}: {step}: {refusal}"));
        }
        let before = world.journal.len();
        world.step(step).unwrap_or_else(|refusal| panic!("{given}: {step}: {refusal}"));
        let lines = world.journal[before..].iter().flat_map(statement_lines);
        let lines: Vec<_> = lines.map(|line| format!("{:?} {:?} {}", line.kind, line.account, line.amount)).collect();
        assert_eq!(lines.join("; "), *expected, "{given}; {step}");
    }
}

#[test]
fn a_line_says_where_its_money_comes_from_and_when_it_is_available() {
    let mut world = World::new();
    for step in ["open-card c 10000 1x ana=9999", "capture c", "open-card d 10000 1x", "capture d", "wait 30d", "sweep"]
    {
        world.step(step).expect("every step is allowed");
    }
    for record in &world.journal {
        let lines = statement_lines(record);
        let at = Some(record.effective_at);
        let expected: Vec<_> = match record.events.as_slice() {
            [Event::CardCaptured { charge, seller_due, .. }] => {
                let available_at = |line: &StatementLine| match line.account {
                    StatementAccount::Pending => Some(seller_due.start()),
                    _ => at,
                };
                lines.iter().map(|line| (Some(*charge), available_at(line))).collect()
            }
            [.., Event::Matured { dues, .. }, Event::DeficitRecovered { .. }] if lines.len() == 3 => {
                let due = Some(dues[0].minute.start());
                vec![(None, due), (None, due), (None, at)]
            }
            _ => Vec::new(),
        };
        let found: Vec<_> = lines.iter().map(|line| (line.source, line.available_at)).collect();
        assert_eq!(found, expected, "{:?}", record.events);
    }
    let count = world.journal.iter().flat_map(statement_lines).filter(|line| line.source.is_none()).count();
    assert_eq!(count, 3, "the maturity of what the second charge raised, and the recovery");
}
