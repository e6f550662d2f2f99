//! Area codes of telephones (DDD) and states of Brazil, as lists that registrations and PIX keys
//! are checked against.

/// The 67 area codes that are in use (Anatel's numbering plan).
const AREA_CODES: [u8; 67] = [
    11, 12, 13, 14, 15, 16, 17, 18, 19, 21, 22, 24, 27, 28, 31, 32, 33, 34, 35, 37, 38, 41, 42, 43, 44, 45, 46, 47, 48,
    49, 51, 53, 54, 55, 61, 62, 63, 64, 65, 66, 67, 68, 69, 71, 73, 74, 75, 77, 79, 81, 82, 83, 84, 85, 86, 87, 88, 89,
    91, 92, 93, 94, 95, 96, 97, 98, 99,
];

/// The 26 states and the Federal District.
const STATES: [&str; 27] = [
    "AC", "AL", "AM", "AP", "BA", "CE", "DF", "ES", "GO", "MA", "MG", "MS", "MT", "PA", "PB", "PE", "PI", "PR", "RJ",
    "RN", "RO", "RR", "RS", "SC", "SE", "SP", "TO",
];

/// True for the two digits of an area code that is in use.
pub fn is_area_code(digits: &str) -> bool {
    digits.len() == 2 && digits.parse().is_ok_and(|code: u8| AREA_CODES.contains(&code))
}

/// True for the capital letters of a state.
pub fn is_state(letters: &str) -> bool {
    STATES.contains(&letters)
}

/// True for a mobile number without its area code: nine digits that begin with 9.
pub fn is_mobile(digits: &str) -> bool {
    digits.len() == 9 && digits.starts_with('9') && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_codes_states_and_mobile_numbers_are_those_that_exist() {
        let in_use = (0..=99).filter(|code| is_area_code(&format!("{code:02}"))).count();
        assert_eq!((in_use, AREA_CODES.is_sorted(), STATES.is_sorted()), (67, true, true));
        for gone in ["10", "20", "23", "25", "26", "29", "00", "1", "011", "+1", ""] {
            assert!(!is_area_code(gone), "{gone}");
        }
        assert!(is_state("SP") && !is_state("XX") && !is_state("sp"));
        assert!(is_mobile("987654321") && !is_mobile("33334444") && !is_mobile("887654321") && !is_mobile("98765432a"));
    }
}
