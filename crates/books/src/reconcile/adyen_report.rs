//! Adyen's settlement details report (CSV), as lines of the acquirer's batches. Columns are found
//! by their names, in any order; columns that are not named here are passed over.
//!
//! A line of the type `Settled` is the next installment of the charge that `Merchant Reference`
//! names. One of the type `Refunded` or `RefundedReversed` is the refund of `Modification Merchant
//! Reference`, and a chargeback or its reversal the dispute of the case that `Modification
//! Reference` names ([`name_objects`]). The line of the payout (`MerchantPayout`) gives the day of
//! its batch. Every other line names no charge: fees, deposits, corrections.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use ledger::{AMOUNT_MAX, Centavos, Event, ObjectId, SettledObject, Timestamp};

use super::acquirer::{FileLine, LINES_MAX, LineKey};
use super::booked_movements::BookedRecords;
use super::finding::{FileError, SettledAmount};

const CURRENCY: &str = "BRL";
/// Beginning of the references of its batches, before the merchant account and the number: each
/// account counts its own batches.
const BATCH: &str = "ADYEN-";
/// End of the name of a case whose money is taken a second time.
const AGAIN: &str = "/2";
/// Characters of a merchant account at most.
const ACCOUNT_LEN_MAX: usize = 70;
/// Columns that a report must have.
const COLUMNS: [&str; 14] = [
    "Merchant Account",
    "Psp Reference",
    "Merchant Reference",
    "Creation Date",
    "Type",
    "Modification Reference",
    "Gross Currency",
    "Gross Debit (GC)",
    "Gross Credit (GC)",
    "Net Currency",
    "Net Debit (NC)",
    "Net Credit (NC)",
    "Modification Merchant Reference",
    "Batch Number",
];

/// Whether a file is such a report, by its head.
pub(super) fn is_one(body: &str) -> bool {
    let head = body.lines().next().unwrap_or_default();
    ["Psp Reference", "Batch Number"].iter().all(|name| head.contains(name))
}

/// The lines of a report. Errors: a column is absent; the first line with a defect.
pub(super) fn read(body: &str) -> Result<Vec<FileLine>, FileError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(body.as_bytes());
    let no_csv = |line: u64| FileError { line, defect: "não é texto CSV".to_owned() };
    let head = reader.headers().map_err(|_| no_csv(1))?.clone();
    let mut places = [0; COLUMNS.len()];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        let found = head.iter().position(|column| column.trim() == name);
        *place = found.ok_or_else(|| FileError { line: 1, defect: format!("falta a coluna {name}") })?;
    }
    let mut lines = Vec::new();
    let mut paid_on: BTreeMap<String, (bool, NaiveDate)> = BTreeMap::new();
    for (number, record) in (2..).zip(reader.records()) {
        let record = record.map_err(|_| no_csv(number))?;
        let at = record.position().map_or(number, csv::Position::line);
        let cells = places.map(|place| record.get(place).unwrap_or_default().trim());
        let (line, is_payout) = line_of(at, cells).map_err(|defect| FileError { line: at, defect })?;
        let day = (is_payout, line.settled.paid_on);
        paid_on.entry(line.batch.clone()).and_modify(|known| *known = day.max(*known)).or_insert(day);
        match is_payout {
            true => {}
            false if lines.len() == LINES_MAX => {
                return Err(FileError { line: at, defect: format!("mais de {LINES_MAX} linhas") });
            }
            false => lines.push(line),
        }
    }
    for line in &mut lines {
        line.settled.paid_on = paid_on.get(&line.batch).map_or(line.settled.paid_on, |(_, day)| *day);
    }
    Ok(lines)
}

/// The reference that a batch of a report had before references named the merchant account.
pub fn former_reference(batch: &str) -> Option<String> {
    let (_, number) = batch.strip_prefix(BATCH)?.rsplit_once('-')?;
    Some(format!("{BATCH}{number}"))
}

/// Gives the lines of a report the objects that the books have: to each installment its number, one
/// for each line of its charge in the order of batches, and to a chargeback its dispute. A line of
/// which a charge has none names no charge. Lines of other files stay as they are. What was booked
/// from `until` on does not count: an approved report that is sent again has the same names.
pub fn name_objects<B: BookedRecords>(
    books: &B,
    lines: &mut [FileLine],
    until: Option<Timestamp>,
) -> Result<(), B::Error> {
    let number = |batch: &str| batch.strip_prefix(BATCH)?.rsplit('-').next()?.parse::<u64>().ok();
    let batches: BTreeSet<_> = lines.iter().map(|line| line.batch.clone()).collect();
    let mut order: Vec<_> = lines.iter_mut().filter(|line| line.text.is_some()).collect();
    order.sort_by_key(|line| (number(&line.batch), line.line));
    let mut seen: BTreeMap<ObjectId, u8> = BTreeMap::new();
    for line in order {
        let (charge, object) = line.key;
        let is_none = object == SettledObject::Dispute(charge);
        if is_none || matches!(object, SettledObject::Refund(_)) {
            continue;
        }
        let (mut before, mut installments) = (0, None);
        let mut disputes: BTreeMap<ObjectId, ObjectId> = BTreeMap::new();
        for record in books.of_charge(charge)? {
            let record = record?;
            let counts = until.is_none_or(|until| record.effective_at < until);
            for event in record.events.into_iter().filter(|_| counts) {
                match event {
                    Event::CardCaptured { charge: of, terms, .. } if of == charge => {
                        installments = Some(terms.installments);
                    }
                    Event::AcquirerSettled { batch, lines } if !batches.contains(&batch.reference) => {
                        let is_one = number(&batch.reference) < number(&line.batch);
                        let of_charge = lines.iter().filter(|line| line.charge == charge);
                        let settled = of_charge.filter(|line| matches!(line.object, SettledObject::Installment(_)));
                        before += if is_one { settled.count() } else { 0 };
                    }
                    Event::DisputeOpened { id, charge: of, case: Some(case), .. } if of == charge => {
                        let is_again = disputes.contains_key(&ObjectId::of_text(&case.id));
                        let name = if is_again { format!("{}{AGAIN}", case.id) } else { case.id };
                        disputes.entry(ObjectId::of_text(&name)).or_insert(id);
                    }
                    _ => {}
                }
            }
        }
        let found = match object {
            SettledObject::Dispute(case) => disputes.get(&case).map(|dispute| SettledObject::Dispute(*dispute)),
            _ => {
                let in_file = seen.entry(charge).or_default();
                *in_file = in_file.saturating_add(1);
                let next = u8::try_from(before).unwrap_or(u8::MAX).saturating_add(*in_file);
                Some(SettledObject::Installment(next)).filter(|_| installments.is_none_or(|all| next <= all))
            }
        };
        let none = || of_no_charge(line.text.as_deref().unwrap_or_default(), "", line.line);
        line.key = found.map_or_else(none, |object| (charge, object));
    }
    Ok(())
}

/// A key that no charge has.
fn of_no_charge(text: &str, own: &str, line: u64) -> LineKey {
    let none = ObjectId::of_text(&format!("{text} {own} {line}"));
    (none, SettledObject::Dispute(none))
}

/// A line, on its own day, and whether it is the payout of its batch.
fn line_of(line: u64, cells: [&str; COLUMNS.len()]) -> Result<(FileLine, bool), String> {
    let [
        account,
        psp,
        reference,
        created,
        kind,
        modification,
        gross_currency,
        gross_out,
        gross_in,
        net_currency,
        net_out,
        net_in,
        own,
        batch,
    ] = cells;
    if [gross_currency, net_currency].iter().any(|currency| !["", CURRENCY].contains(currency)) {
        return Err(format!("a moeda deve ser {CURRENCY}"));
    }
    if !(1..=18).contains(&batch.len()) || !batch.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("Batch Number inválido".to_owned());
    }
    let is_of_account = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !(1..=ACCOUNT_LEN_MAX).contains(&account.len()) || !account.bytes().all(is_of_account) {
        return Err("Merchant Account inválida".to_owned());
    }
    let day = created.get(..10).and_then(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").ok());
    let paid_on = day.ok_or_else(|| "Creation Date inválida".to_owned())?;
    let sum = |income: &str, outgo: &str| {
        let both = centavos(income).zip(centavos(outgo));
        both.map(|(income, outgo)| income - outgo).ok_or_else(|| "valor inválido".to_owned())
    };
    let (gross, net) = (sum(gross_in, gross_out)?, sum(net_in, net_out)?);
    let id_of = |text: &str| ObjectId::parse(text).unwrap_or_else(|| ObjectId::of_text(text));
    let text = format!("{kind} {psp}");
    let key = match kind {
        "Settled" => (id_of(reference), SettledObject::Installment(1)),
        "Refunded" | "RefundedReversed" => (id_of(reference), SettledObject::Refund(id_of(own))),
        "Chargeback" | "ChargebackReversed" => {
            (id_of(reference), SettledObject::Dispute(ObjectId::of_text(modification)))
        }
        "SecondChargeback" => {
            let case = ObjectId::of_text(&format!("{modification}{AGAIN}"));
            (id_of(reference), SettledObject::Dispute(case))
        }
        _ => of_no_charge(&text, own, line),
    };
    let settled = SettledAmount { paid_on, gross, fee: gross - net };
    let batch = format!("{BATCH}{account}-{batch}");
    Ok((FileLine { line, batch, key, settled, text: Some(text) }, kind == "MerchantPayout"))
}

/// An amount of reais with a point, exactly; an empty cell is zero.
fn centavos(text: &str) -> Option<Centavos> {
    let (reais, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty() {
        return Some(Centavos::ZERO);
    }
    if reais.is_empty() || !(1..=2).contains(&part.len()) || !is_digits(reais) || !is_digits(part) {
        return None;
    }
    let value = format!("{reais}{part:0<2}").parse().ok().filter(|value| (0..=AMOUNT_MAX.0).contains(value));
    value.map(Centavos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::acquirer;

    const HEAD: &str = "Merchant Account,Psp Reference,Merchant Reference,Payment Method,Creation Date,TimeZone,Type,\
                        Modification Reference,Gross Currency,Gross Debit (GC),Gross Credit (GC),Exchange Rate,\
                        Net Currency,Net Debit (NC),Net Credit (NC),Commission (NC),Batch Number,\
                        Modification Merchant Reference";
    const CHARGE: &str = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e";
    const REFUND: &str = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7f";

    /// A row: reference, day, type, the four amounts, the reference of the modification.
    fn row(reference: &str, day: &str, kind: &str, [gross, net]: [[&str; 2]; 2], own: &str) -> String {
        let ([gross_out, gross_in], [net_out, net_in]) = (gross, net);
        format!(
            "Loja,PSP1,{reference},visa,{day} 03:12:45,BRT,{kind},MOD1,BRL,{gross_out},{gross_in},1,BRL,{net_out},{net_in},,7,{own}"
        )
    }

    fn report(rows: &[String]) -> String {
        [&[HEAD.to_owned()], rows].concat().join("\n")
    }

    #[test]
    fn a_report_is_read_by_the_names_of_its_columns() {
        let rows = [
            row(CHARGE, "2026-11-26", "Settled", [["", "100.00"], ["", "97.01"]], ""),
            row(CHARGE, "2026-11-26", "Refunded", [["40.00", ""], ["40.5", ""]], REFUND),
            row("", "2026-11-26", "Fee", [["", ""], ["1.98", ""]], ""),
            row("", "2026-11-27", "MerchantPayout", [["", ""], ["54.53", ""]], ""),
            row("a-sale-of-another-system", "2026-11-26", "Settled", [["", "5"], ["", "5"]], ""),
        ];
        let file = acquirer::read(report(&rows).as_bytes()).unwrap();
        let day = NaiveDate::from_ymd_opt(2026, 11, 27).unwrap();
        assert_eq!(file.days, Some((day, day)), "the day of the payout");
        let seen: Vec<_> = file
            .lines
            .iter()
            .map(|line| (line.batch.as_str(), line.settled.gross.0, line.settled.fee.0, line.settled.net().0))
            .collect();
        let expected = [(10_000, 299, 9_701), (-4_000, 50, -4_050), (0, 198, -198), (500, 0, 500)]
            .map(|(a, b, c)| ("ADYEN-Loja-7", a, b, c));
        assert_eq!(seen, expected);
        let [charge, refund] = [CHARGE, REFUND].map(|id| ObjectId::parse(id).unwrap());
        assert_eq!(file.lines[0].key, (charge, SettledObject::Installment(1)));
        assert_eq!(file.lines[1].key, (charge, SettledObject::Refund(refund)));
        assert!(file.lines[2..].iter().all(|line| line.key.0 != charge), "these name no charge");
        let former = ["ADYEN-Loja-7", "ADYEN-Loja-ECOM-7", "ADYEN-7", "LOTE-A-7"].map(former_reference);
        assert_eq!(former, [Some("ADYEN-7".to_owned()), Some("ADYEN-7".to_owned()), None, None]);
    }

    #[test]
    fn a_report_with_a_defect_is_refused_at_its_line() {
        let good = row(CHARGE, "2026-11-26", "Settled", [["", "100.00"], ["", "97.01"]], "");
        for (from, to, defect) in [
            ("100.00", "100,00", "valor inválido"),
            ("100.00", "100.001", "valor inválido"),
            ("100.00", "1e2", "valor inválido"),
            ("100.00", "-100.00", "valor inválido"),
            (",BRL,,", ",USD,,", "a moeda deve ser BRL"),
            ("2026-11-26", "26/11/2026", "Creation Date inválida"),
            (",7,", ",sete,", "Batch Number inválido"),
            ("Loja,", ",", "Merchant Account inválida"),
            ("Loja,", "Loja Azul,", "Merchant Account inválida"),
        ] {
            let wrong = good.replacen(from, to, 1).replace("\"", "");
            let text = report(&[good.clone(), wrong.clone()]);
            let refused = acquirer::read(text.as_bytes());
            // A comma makes another cell.
            if to.contains(',') && !from.contains(',') {
                assert!(refused.is_err(), "{wrong}");
                continue;
            }
            assert_eq!(refused, Err(FileError { line: 3, defect: defect.to_owned() }), "{wrong}");
        }
        let without = HEAD.replace("Net Credit (NC),", "");
        let refused = acquirer::read(without.as_bytes());
        assert_eq!(refused, Err(FileError { line: 1, defect: "falta a coluna Net Credit (NC)".to_owned() }));
    }
}
