//! Names of facts, and sources of entries: what exports show. Every event has a golden file.

use std::collections::BTreeSet;

use crate::golden::{folder, samples};
use ledger::record::RailStamp;
use ledger::source::{self, Source};
use ledger::{Account, LedgerId};

/// The list of names is like a golden file: a line is written once and never changed.
#[test]
fn the_names_of_facts_stay() {
    let events = samples().into_iter().flat_map(|(_, record)| record.events);
    let names: BTreeSet<_> = events.map(|event| format!("{} {}", variant(&event), event.name())).collect();
    let path = folder().parent().unwrap().join("fact_names.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut known_names: BTreeSet<_> = text.lines().map(str::to_owned).collect();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        known_names.extend(names.iter().cloned());
        std::fs::write(&path, known_names.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }
    assert_eq!(names, known_names, "UPDATE_SNAPSHOTS=1 adds the names of new facts, and removes none");
}

fn variant(event: &ledger::event::Event) -> String {
    format!("{event:?}").chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

#[test]
fn every_entry_has_the_name_of_its_fact() {
    let mut named = 0;
    for (name, record) in samples() {
        let sources = source::of_entries(&record);
        assert_eq!(sources.len(), record.entries.len(), "{name}");
        assert!(sources.iter().all(|source| source.event != Source::UNNAMED), "{name}");
        let names: Vec<_> = record.events.iter().map(|event| event.name()).collect();
        assert!(sources.iter().all(|source| source.event == names[source.place]), "{name}");
        named += sources.len();
    }
    assert!(named > 0, "there are entries among the samples");
}

#[test]
fn accounts_of_the_platform_stand_in_its_ledgers_alone() {
    let mut accounts = BTreeSet::new();
    for (name, record) in samples() {
        for entry in &record.entries {
            let is_of_platform = matches!(entry.ledger(), LedgerId::Platform(_) | LedgerId::System);
            let own = entry.postings().iter().map(|posting| posting.account);
            accounts.extend(own.clone().map(Account::kind_name));
            assert!(own.clone().all(|account| account.is_of_platform() == is_of_platform), "{name}");
        }
    }
    assert!(accounts.len() > 40, "few accounts are among the samples: {accounts:?}");
}

#[test]
fn the_institutions_id_of_an_act_is_among_the_objects_where_the_fact_has_none() {
    let mut found = BTreeSet::new();
    for (_, mut record) in samples() {
        record.rail = Some(RailStamp::new("act".to_owned(), record.effective_at));
        for source in source::of_entries(&record) {
            found.extend(source.objects.iter().filter(|(_, id)| id == "act").map(|(name, _)| (source.event, *name)));
        }
    }
    let returned = [("payer_repaid", "return"), ("withdrawal_returned", "return")];
    assert_eq!(found, [("card_captured", "capture")].into_iter().chain(returned).collect());
}

#[test]
fn each_entry_of_a_record_has_the_source_of_its_own_event() {
    let samples = samples();
    let (_, record) = samples.iter().find(|(name, _)| *name == "pix-paid-and-deficit-recovered").unwrap();
    let sources = source::of_entries(record);
    let [paid @ .., of_merchant, of_platform] = &sources[..] else { panic!("{sources:?}") };
    assert!(paid.iter().all(|source| source.event == "pix_paid"), "{paid:?}");
    let expected =
        [("txid", "019b796e4d2480008000000000000003"), ("end_to_end_id", "E0000000020260101120000000000001")];
    assert_eq!(paid[0].objects, expected.map(|(name, id)| (name, id.to_owned())));
    assert_eq!([of_merchant, of_platform].map(|source| source.event), ["deficit_recovered"; 2]);
}
