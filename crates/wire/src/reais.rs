//! Amounts in reais, as people in Brazil write them.

/// Centavos as reais, the Brazilian way: `-1.234,56`.
pub fn reais(centavos: i128) -> String {
    let sign = if centavos < 0 { "-" } else { "" };
    let whole = grouped(&(centavos.unsigned_abs() / 100).to_string(), '.');
    format!("{sign}{whole},{:02}", centavos.unsigned_abs() % 100)
}

/// An amount as people write it, `1.234,56`, `1,234.56`, `12,50`, `R$ 7`, in centavos; `None` if it
/// is written in any other way.
///
/// There are two decimals or none. Two digits behind the last point or comma are the decimals, and
/// the other sign may part thousands. Without decimals, `mark` may part them.
pub fn centavos(text: &str, mark: char) -> Option<i64> {
    let text = text.trim();
    let text = text.strip_prefix("R$").unwrap_or(text).trim_start();
    let (whole, part, mark) = match text.rfind([',', '.']) {
        Some(at) if text.len() - at == 3 => {
            (&text[..at], &text[at + 1..], if text[at..].starts_with(',') { '.' } else { ',' })
        }
        _ => (text, "00", mark),
    };
    let reais: i64 = in_thousands(whole, mark)?.parse().ok()?;
    let part: i64 = Some(part).filter(|part| is_digits(part))?.parse().ok()?;
    reais.checked_mul(100)?.checked_add(part)
}

/// The digits of a whole number, which has no sign between them or one before each three.
fn in_thousands(text: &str, sign: char) -> Option<String> {
    let groups: Vec<_> = text.split(sign).collect();
    let [first, others @ ..] = groups.as_slice() else { return None };
    let is_first = others.is_empty() || (first.len() <= 3 && !first.starts_with('0'));
    let is_right = is_first && others.iter().all(|group| group.len() == 3);
    (is_right && groups.iter().all(|group| is_digits(group))).then(|| groups.concat())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
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
