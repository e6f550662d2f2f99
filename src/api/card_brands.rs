//! Scheme of a card by the first six digits of its number.
//!
//! Ranges as of 28 November 2026, of the tables that npm credit-card-type 10.3.0 and creditcard.js
//! 3.0.58 publish: a test compares every prefix where the two agree. The three prefixes of
//! Hipercard that begin with 384 are in neither: those are cards of sixteen digits, and the others
//! of 38 are Diners.

use ledger::CardBrand;
use ledger::event::CardBrand::{Amex, Diners, Discover, Elo, Hipercard, Jcb, Mastercard, Visa};

/// Ranges of six digits, both ends included; the first that has the prefix counts.
const RANGES: [(u32, u32, CardBrand); 40] = [
    (401_178, 401_179, Elo),
    (431_274, 431_274, Elo),
    (438_935, 438_935, Elo),
    (451_416, 451_416, Elo),
    (457_393, 457_393, Elo),
    (457_631, 457_632, Elo),
    (504_175, 504_175, Elo),
    (506_699, 506_778, Elo),
    (509_000, 509_999, Elo),
    (627_780, 627_780, Elo),
    (636_297, 636_297, Elo),
    (636_368, 636_368, Elo),
    (650_031, 650_033, Elo),
    (650_035, 650_051, Elo),
    (650_405, 650_439, Elo),
    (650_485, 650_538, Elo),
    (650_541, 650_598, Elo),
    (650_700, 650_718, Elo),
    (650_720, 650_727, Elo),
    (650_901, 650_978, Elo),
    (651_652, 651_679, Elo),
    (655_000, 655_019, Elo),
    (655_021, 655_058, Elo),
    (384_100, 384_100, Hipercard),
    (384_140, 384_140, Hipercard),
    (384_160, 384_160, Hipercard),
    (606_282, 606_282, Hipercard),
    (340_000, 349_999, Amex),
    (370_000, 379_999, Amex),
    (300_000, 305_999, Diners),
    (360_000, 369_999, Diners),
    (380_000, 389_999, Diners),
    (180_000, 180_099, Jcb),
    (213_100, 213_199, Jcb),
    (352_800, 358_999, Jcb),
    (510_000, 559_999, Mastercard),
    (222_100, 272_099, Mastercard),
    (601_100, 601_199, Discover),
    (644_000, 659_999, Discover),
    (400_000, 499_999, Visa),
];

/// The scheme of a card whose number begins with these six digits.
pub fn brand_of(bin: u32) -> CardBrand {
    let range = RANGES.iter().find(|(first, last, _)| (*first..=*last).contains(&bin));
    range.map_or(CardBrand::Other, |(.., brand)| *brand)
}
