//! Words of Adyen that decide about money. What is not here says nothing.

use ledger::event::CardBrand;

/// What a payment's `resultCode` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The whole amount is authorized.
    Authorized,
    /// Nothing is authorized, and nothing will be under this reference.
    Refused,
    /// It waits for a payer who is not there, or is authorized in part: it is to be cancelled.
    Unfinished,
}

const VERDICTS: [(&str, Verdict); 13] = [
    ("Authorised", Verdict::Authorized),
    ("Refused", Verdict::Refused),
    ("Error", Verdict::Refused),
    ("Cancelled", Verdict::Refused),
    ("Pending", Verdict::Unfinished),
    ("Received", Verdict::Unfinished),
    ("PartiallyAuthorised", Verdict::Unfinished),
    ("RedirectShopper", Verdict::Unfinished),
    ("IdentifyShopper", Verdict::Unfinished),
    ("ChallengeShopper", Verdict::Unfinished),
    ("PresentToShopper", Verdict::Unfinished),
    ("AuthenticationFinished", Verdict::Unfinished),
    ("AuthenticationNotRequired", Verdict::Unfinished),
];

pub(super) fn verdict(word: &str) -> Option<Verdict> {
    VERDICTS.iter().find(|(known, _)| *known == word).map(|(_, verdict)| *verdict)
}

/// Codes of an error, with status 422, that refuse a card: its number, its scheme, its security
/// code, its expiry, or a stored card that is gone. Nothing was sent to an issuer.
pub(super) const CARD_ERRORS: [u16; 8] = [101, 102, 103, 129, 140, 141, 800, 803];

/// Codes of a refusal (`refusalReasonCode`) after which the schemes forbid to try the card again:
/// blocked, no such card, authority withdrawn, stopped by Adyen for too many tries.
const FINAL_CODES: [u16; 4] = [5, 8, 26, 46];
/// Issuers' own codes (`refusalReasonRaw`) that say the same, whatever the scheme.
const FINAL_RAW_CODES: [&str; 9] = ["04", "07", "14", "15", "41", "43", "R0", "R1", "R3"];
/// Advice of an issuer (`merchantAdviceCode`): do not try again, or payment has been stopped.
const FINAL_ADVICE: [&str; 2] = ["03", "21"];

/// Whether the schemes forbid to try the card again. `raw` and `advice` are a code and a text, as
/// in `05 : Do not honor`.
pub(super) fn is_final(code: u16, raw: Option<&str>, advice: Option<&str>) -> bool {
    let begins = |text: Option<&str>, known: &[&str]| {
        let code = text.and_then(|text| text.split(':').next()).map(str::trim);
        code.is_some_and(|code| known.contains(&code))
    };
    FINAL_CODES.contains(&code) || begins(raw, &FINAL_RAW_CODES) || begins(advice, &FINAL_ADVICE)
}

const BRANDS: [(&str, CardBrand); 8] = [
    ("visa", CardBrand::Visa),
    ("mc", CardBrand::Mastercard),
    ("amex", CardBrand::Amex),
    ("elo", CardBrand::Elo),
    ("hipercard", CardBrand::Hipercard),
    ("diners", CardBrand::Diners),
    ("discover", CardBrand::Discover),
    ("jcb", CardBrand::Jcb),
];

/// The scheme of a name; `None` of one that has none here.
pub(super) fn brand(name: &str) -> Option<CardBrand> {
    BRANDS.iter().find(|(known, _)| *known == name).map(|(_, brand)| *brand)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_final_by_its_code_or_by_the_issuers_word() {
        for (code, raw, advice, expected) in [
            (2, None, None, false),
            (12, Some("51 : Insufficient funds/over credit limit"), None, false),
            (5, None, None, true),
            (2, Some("43 : Stolen card"), None, true),
            (2, Some("R1 : Revocation of authorization order"), None, true),
            (2, Some("4 : another notation"), None, false),
            (2, None, Some("03: Do not try again"), true),
            (2, None, Some("02: Try again later"), false),
            (2, Some(""), Some(""), false),
        ] {
            assert_eq!(is_final(code, raw, advice), expected, "{code} {raw:?} {advice:?}");
        }
    }
}
