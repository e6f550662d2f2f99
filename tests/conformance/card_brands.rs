//! Schemes of cards against two tables that others keep: `credit-card-type` and `creditcard.js`,
//! every prefix of six digits. Where the two agree, so do we.

use centavo::api::card_brands::brand_of;

use crate::tool;

/// Prefixes of Hipercard's cards of sixteen digits, which both tables take for Diners by `38`.
const HIPERCARD: [u32; 3] = [384_100, 384_140, 384_160];

#[test]
fn a_prefix_has_the_scheme_of_two_public_tables() {
    let (Some(mut command), Some(_)) = (tool::node("credit-card-type"), tool::node("creditcard.js")) else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/card_brands.js");
    let output = command.arg(script).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut agreed, mut differing) = (0, Vec::new());
    for line in text.lines() {
        let [first, last, one, other] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let prefixes = first.parse::<u32>().unwrap()..=last.parse().unwrap();
        for prefix in prefixes.filter(|prefix| !HIPERCARD.contains(prefix)) {
            let ours = brand_of(prefix).name();
            agreed += u32::from(one == other);
            if one == other && ours != one {
                differing.push((prefix, ours, one.to_owned()));
            }
        }
    }
    assert!(agreed > 700_000, "{agreed}");
    assert!(differing.is_empty(), "{} prefixes, such as {:?}", differing.len(), &differing[..differing.len().min(20)]);
}
