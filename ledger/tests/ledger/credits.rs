//! Credits: the effect of a Record on recipients that did not decide it.

use crate::world::World;
use ledger::id::LedgerId;
use ledger::recipient::{Credit, credits};
use ledger::time::Timestamp;

fn meant(changed: &[(LedgerId, Option<Credit>)], now: Timestamp) -> String {
    let meant = changed.iter().map(|(ledger, credit)| {
        let whose = match ledger {
            LedgerId::Recipient(_, number) => number.0.to_string(),
            _ => "merchant".to_owned(),
        };
        match credit {
            Some(Credit { due: None, amount }) => format!("{whose} {amount}"),
            Some(Credit { due: Some(minute), amount }) => {
                let days = (minute.start().0 - now.minute().start().0) / (24 * 60 * 60 * 1000);
                format!("{whose} {amount} in {days}d")
            }
            None => format!("{whose} ?"),
        }
    });
    meant.collect::<Vec<_>>().join("; ")
}

#[test]
fn what_most_records_mean_is_told_without_them() {
    let cases = [
        ("", "open-pix p 8000 ana=1000", ""),
        ("open-pix p 8000 bia=700 ana=1000 bia=300", "pay p", "1 1000; 2 1000"),
        ("open-pix p 8000 ana=1000", "cancel p", ""),
        ("open-card c 10000 1x ana=2000", "capture c", "1 2000 in 30d"),
        ("open-card c 10000 1x ana=2000; capture c; wait 30d", "mature ana", ""),
        ("open-pix p 8000 ana=2000; pay p; refund r p 5000 ana=2000", "approve-refund r p", "1 ?"),
        ("open-pix p 8000 ana=2000; pay p; refund r p 5000 ana=2000; approve-refund r p", "mature ana", "merchant ?"),
    ];
    for (given, step, expected) in cases {
        let mut world = World::new();
        for step in given.split("; ").filter(|step| !step.is_empty()) {
            world.step(step).unwrap_or_else(|refusal| panic!("{given}: {step}: {refusal}"));
        }
        let before = world.journal.len();
        world.step(step).unwrap_or_else(|refusal| panic!("{given}: {step}: {refusal}"));
        let found: Vec<_> =
            world.journal[before..].iter().map(|record| meant(&credits::changed(record), world.now)).collect();
        assert_eq!(found.join("; "), expected, "{given}; {step}");
    }
}
