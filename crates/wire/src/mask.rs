//! Masking of tax ids (CPF, CNPJ) and account numbers in answers.
//!
//! A full CPF or CNPJ never leaves the service, with one exception: the payer's CPF in a
//! recipient's statement is formatted (interface section 2.8). Tax ids come in without punctuation,
//! letters in upper case.

/// A tax id, masked: 11 characters are a CPF, 14 a CNPJ. Of any other length, every character is
/// covered.
pub fn document(document: &str) -> String {
    if !document.is_ascii() {
        return "*".repeat(document.chars().count());
    }
    match document.len() {
        11 => format!("***.{}.{}-**", &document[3..6], &document[6..9]),
        14 => format!("**.{}.{}/{}-**", &document[2..5], &document[5..8], &document[8..12]),
        length => "*".repeat(length),
    }
}

/// A bank account's number, masked: at most four digits and at most half of it are shown, the last.
pub fn account(number: &str) -> String {
    let length = number.chars().count();
    let covered = length - (length / 2).min(4);
    number.chars().enumerate().map(|(place, digit)| if place < covered { '*' } else { digit }).collect()
}

/// A name or a street, masked: the first letter of each word is shown.
pub fn words(text: &str) -> String {
    let mut before = ' ';
    let shown = text.chars().map(|letter| {
        let is_first = before == ' ';
        before = letter;
        if is_first || letter == ' ' { letter } else { '*' }
    });
    shown.collect()
}

/// A birth date (DD/MM/YYYY), masked: the year is shown.
pub fn birth_date(date: &str) -> String {
    let year = date.rsplit('/').next().filter(|year| year.len() == 4);
    year.map_or_else(|| "*".repeat(date.chars().count()), |year| format!("**/**/{year}"))
}

/// An e-mail address, masked: its first letter and the domain are shown.
pub fn email(address: &str) -> String {
    match address.split_once('@') {
        Some((name, domain)) => format!("{}***@{domain}", name.chars().next().unwrap_or('*')),
        None => "*".repeat(address.chars().count()),
    }
}

/// A text with its CPFs masked: each run of 11 digits, with points and hyphens between or without.
pub fn cpfs_in(text: &str) -> String {
    let mut shown: Vec<char> = text.chars().collect();
    let mut digits = Vec::new();
    for place in 0..=shown.len() {
        match shown.get(place) {
            Some(digit) if digit.is_ascii_digit() => digits.push(place),
            Some('.' | '-') => {}
            _ => {
                if let [first, second, third, .., last_but_one, last] = digits[..]
                    && digits.len() == 11
                {
                    [first, second, third, last_but_one, last].into_iter().for_each(|place| shown[place] = '*');
                }
                digits.clear();
            }
        }
    }
    shown.into_iter().collect()
}

/// A CPF with punctuation, every digit shown: `123.456.789-09`. Anything but 11 ASCII characters is
/// masked as [`document`] does.
pub fn formatted_cpf(cpf: &str) -> String {
    if !cpf.is_ascii() || cpf.len() != 11 {
        return document(cpf);
    }
    format!("{}.{}.{}-{}", &cpf[0..3], &cpf[3..6], &cpf[6..9], &cpf[9..11])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpfs_in_texts_are_masked() {
        for (given, shown) in [
            ("PIX 123.456.789-09 JOAO", "PIX ***.456.789-** JOAO"),
            ("12345678909", "***456789**"),
            ("DOC 1234567890 NSU 123456789012", "DOC 1234567890 NSU 123456789012"),
            ("TARIFA - 1.200", "TARIFA - 1.200"),
            ("", ""),
        ] {
            assert_eq!(cpfs_in(given), shown);
        }
    }

    #[test]
    fn documents_are_masked() {
        let cases = [
            ("12345678909", "***.456.789-**"),
            ("12345678000195", "**.345.678/0001-**"),
            ("12ABC34501DE35", "**.ABC.345/01DE-**"),
            ("1234", "****"),
            ("", ""),
            ("ção45678909", "***********"),
        ];
        for (given, shown) in cases {
            assert_eq!(document(given), shown, "{given}");
        }
    }

    #[test]
    fn of_an_account_the_last_digits_are_shown() {
        let cases = [
            ("", ""),
            ("1", "*"),
            ("12", "*2"),
            ("56789", "***89"),
            ("12345678", "****5678"),
            ("123456789012", "********9012"),
        ];
        for (given, shown) in cases {
            assert_eq!(account(given), shown, "{given}");
        }
    }

    #[test]
    fn of_a_person_little_is_shown() {
        assert_eq!([words("Rita de Sá"), words("")], ["R*** d* S*", ""]);
        assert_eq!([birth_date("29/02/2000"), birth_date("x")], ["**/**/2000", "*"]);
        assert_eq!([email("ana@example.com"), email("ana")], ["a***@example.com", "***"]);
    }

    #[test]
    fn a_cpf_is_formatted_and_nothing_else_is() {
        let cases = [
            ("12345678909", "123.456.789-09"),
            ("00000000191", "000.000.001-91"),
            ("12345678000195", "**.345.678/0001-**"),
            ("123", "***"),
        ];
        for (given, shown) in cases {
            assert_eq!(formatted_cpf(given), shown, "{given}");
        }
    }
}
