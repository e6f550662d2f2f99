//! Amounts in reais, as people in Brazil write them.

/// Centavos as reais, the Brazilian way: `-1.234,56`.
pub fn reais(centavos: i128) -> String {
    let sign = if centavos < 0 { "-" } else { "" };
    let whole = grouped(&(centavos.unsigned_abs() / 100).to_string(), '.');
    format!("{sign}{whole},{:02}", centavos.unsigned_abs() % 100)
}

/// Digits with a mark between thousands: `12,345`.
pub fn grouped(digits: &str, mark: char) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(mark);
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_in_brazil() {
        let cases = [
            (0, "0,00"),
            (5, "0,05"),
            (-5, "-0,05"),
            (100, "1,00"),
            (99_999, "999,99"),
            (100_000, "1.000,00"),
            (-123_456_789, "-1.234.567,89"),
            (i128::MIN, "-1.701.411.834.604.692.317.316.873.037.158.841.057,28"),
        ];
        for (centavos, expected) in cases {
            assert_eq!(reais(centavos), expected);
        }
    }
}
