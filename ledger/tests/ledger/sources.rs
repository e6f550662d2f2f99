//! Sources of entries: the names that exports show. Every event has a golden file, so an event that
//! moves money and has no name is noticed here.

use crate::golden::samples;
use ledger::source::{self, Source};

#[test]
fn every_fact_that_moves_money_has_a_name() {
    let mut named = 0;
    for (name, record) in samples() {
        let sources = source::of_entries(&record);
        assert_eq!(sources.len(), record.entries.len(), "{name}");
        assert!(sources.iter().all(|source| source.event != Source::UNNAMED), "{name}");
        named += sources.len();
    }
    assert!(named > 0, "there are entries among the samples");
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
