//! Names of the institutions to which most money in Brazil goes. The Central Bank's lists name all,
//! but they are loaded by few operators: an institution that is not here is shown by its numbers.

/// Code (COMPE), ISPB and name.
const BANKS: [(&str, &str, &str); 20] = [
    ("001", "00000000", "Banco do Brasil"),
    ("033", "90400888", "Santander"),
    ("041", "92702067", "Banrisul"),
    ("070", "00000208", "BRB"),
    ("077", "00416968", "Inter"),
    ("104", "00360305", "Caixa Econômica Federal"),
    ("208", "30306294", "BTG Pactual"),
    ("212", "92894922", "Original"),
    ("237", "60746948", "Bradesco"),
    ("260", "18236120", "Nubank"),
    ("290", "08561701", "PagBank"),
    ("323", "10573521", "Mercado Pago"),
    ("336", "31872495", "C6 Bank"),
    ("341", "60701190", "Itaú"),
    ("380", "22896431", "PicPay"),
    ("403", "37880206", "Cora"),
    ("422", "58160789", "Safra"),
    ("655", "59588111", "BV"),
    ("748", "01181521", "Sicredi"),
    ("756", "02038232", "Sicoob"),
];

/// The name of an institution by its ISPB or, without one, by its code; `None` if it is not known.
pub fn bank_name(code: Option<&str>, ispb: Option<&str>) -> Option<&'static str> {
    let is_it = |(own_code, own_ispb, _): &&(&str, &str, &str)| match (ispb, code) {
        (Some(ispb), _) => *own_ispb == ispb,
        (None, code) => code == Some(*own_code),
    };
    BANKS.iter().find(is_it).map(|(.., name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_institution_is_named_by_its_ispb_before_its_code() {
        let cases = [
            (Some("341"), None, Some("Itaú")),
            (None, Some("18236120"), Some("Nubank")),
            (Some("341"), Some("60746948"), Some("Bradesco")),
            (Some("341"), Some("99999999"), None),
            (Some("999"), None, None),
            (None, None, None),
        ];
        for (code, ispb, name) in cases {
            assert_eq!(bank_name(code, ispb), name, "{code:?} {ispb:?}");
        }
    }
}
