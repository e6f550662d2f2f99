//! Reconciliation of PIX payments: the list of the Central Bank's API (`GET /pix`) as a JSON file,
//! against the payments that were booked, and the returns of each (`devolucoes`) against what was
//! sent back. A list of several pages is one file: an array of them, or one after the other.
//!
//! A payment belongs to the list of a period when the institution processed it in that period. The
//! books know when the payer's bank began it, from the end-to-end id, and when it was booked. The
//! institution's time lies between the two. So a payment that only the books have is a difference
//! when both lie in the period. When only the booking does, this list cannot decide.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use ledger::{AMOUNT_MAX, Centavos, ObjectId};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::timestamp::{begin_of, day_of};

use super::finding::{Comparison, FileError, Finding, FindingKind, SettledAmount};

/// Payments of a file at most.
pub const PAYMENTS_MAX: usize = 100_000;
/// Returns of a payment at most.
const RETURNS_MAX: usize = 1_000;
/// Longest period of a list, days.
pub const PERIOD_DAYS_MAX: i64 = 366;
/// Characters of an end-to-end id.
const END_TO_END_ID_LEN: usize = 32;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
const MINUTE_MS: i64 = 60_000;
const SECOND_MS: i64 = 1_000;

/// A list of payments, as the institution wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PixList {
    /// Start of the period, milliseconds since 1970 (UTC).
    pub from_ms: i64,
    /// End of the period, included, milliseconds since 1970 (UTC).
    pub to_ms: i64,
    /// The payments, in the order of the file.
    pub payments: Vec<ListedPayment>,
}

/// A payment of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPayment {
    /// Number of the line on which it begins, from 1.
    pub line: u64,
    /// Its end-to-end id.
    pub end_to_end_id: String,
    /// Its txid, if it paid a charge.
    pub txid: Option<String>,
    /// How much, centavos.
    pub amount: Centavos,
    /// When the institution processed it, milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// What the payer wrote (`infoPagador`).
    pub text: Option<String>,
    /// Its returns that were made or are under way.
    pub returns: Vec<ListedReturn>,
}

/// A return of a payment (`devolucao`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedReturn {
    /// Its id: ours, or the institution's.
    pub id: String,
    /// How much, centavos.
    pub amount: Centavos,
    /// When it was asked for, milliseconds since 1970 (UTC); the payment's time where it is absent.
    pub at_ms: i64,
    /// True once the money is back at the payer; false while it is under way.
    pub is_done: bool,
}

/// A payment that was booked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookedPayment {
    /// The charge.
    pub charge: ObjectId,
    /// How much, centavos.
    pub amount: Centavos,
    /// When it was booked, milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// What was sent back of it, by refund, dispute or late charge: amount in centavos, and time in
    /// milliseconds since 1970 (UTC).
    pub sent_back: BTreeMap<ObjectId, (Centavos, i64)>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct WireList<'a> {
    parametros: WireParameters<'a>,
    pix: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct WireParameters<'a> {
    inicio: &'a RawValue,
    fim: &'a RawValue,
    paginacao: &'a RawValue,
}

#[derive(Deserialize)]
struct WirePaging {
    #[serde(rename = "paginaAtual")]
    page: u64,
    #[serde(rename = "quantidadeDePaginas")]
    pages: u64,
    #[serde(rename = "quantidadeTotalDeItens")]
    items: u64,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct WirePayment<'a> {
    #[serde(rename = "endToEndId")]
    end_to_end_id: String,
    txid: Option<String>,
    valor: String,
    horario: String,
    #[serde(rename = "infoPagador")]
    text: Option<serde_json::Value>,
    devolucoes: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct WireReturn {
    id: String,
    valor: String,
    status: String,
    horario: Option<WireReturnTimes>,
}

#[derive(Deserialize)]
struct WireReturnTimes {
    solicitacao: Option<String>,
}

/// Counts lines up to parts of a file, which come in their order.
struct LineCounter<'a> {
    file: &'a [u8],
    seen: usize,
    line: u64,
}

impl LineCounter<'_> {
    /// Number of the line on which a part of the file begins.
    fn line_of(&mut self, part: &RawValue) -> u64 {
        let at = (part.get().as_ptr().addr()).saturating_sub(self.file.as_ptr().addr()).min(self.file.len());
        if at < self.seen {
            (self.seen, self.line) = (0, 1);
        }
        self.line += self.file[self.seen..at].iter().filter(|byte| **byte == b'\n').count() as u64;
        self.seen = at;
        self.line
    }
}

/// Reads a file whole. Errors: the first line with a defect; a list of which a page is missing; a
/// list with fewer payments than it says.
pub fn read(file: &[u8]) -> Result<PixList, FileError> {
    let file = file.strip_prefix("\u{feff}".as_bytes()).unwrap_or(file);
    let mut lines = LineCounter { file, seen: 0, line: 1 };
    let mut parts = Vec::new();
    let mut first: Option<PageHead> = None;
    let mut seen = BTreeSet::new();
    for WireList { parametros, pix } in pages_of(file)? {
        let head = PageHead::of(&parametros, &mut lines)?;
        let refused = |defect: &str| Err(FileError { line: head.line, defect: defect.to_owned() });
        if first.as_ref().is_some_and(|first| !first.is_of_same_list(&head)) {
            return refused("as páginas devem ser da mesma lista");
        }
        if !seen.insert(head.paging.page) {
            return refused("a página está repetida");
        }
        parts.extend(pix.unwrap_or_default());
        first.get_or_insert(head);
    }
    let PageHead { line, from_ms, to_ms, paging } =
        first.ok_or_else(|| FileError { line: 1, defect: "não é texto JSON em UTF-8".to_owned() })?;
    let refused = |defect: String| FileError { line, defect };
    // A list without payments may have no pages, and is one.
    let pages = paging.pages.max(1);
    if seen.len() as u64 != pages || seen.last().is_some_and(|last| *last >= pages) {
        return Err(refused(format!("o arquivo deve ter a lista inteira, em uma página ou em todas as {pages}")));
    }
    if paging.items != parts.len() as u64 {
        return Err(refused(format!("a lista tem {} pagamentos e diz ter {}", parts.len(), paging.items)));
    }
    if parts.len() > PAYMENTS_MAX {
        return Err(refused(format!("mais de {PAYMENTS_MAX} pagamentos")));
    }
    let mut payments = Vec::with_capacity(parts.len());
    for (place, part) in parts.into_iter().enumerate() {
        let line = lines.line_of(part);
        let refused = |defect: String| FileError { line, defect: format!("pix[{place}]{defect}") };
        let payment = payment_of(part, line).map_err(refused)?;
        if !(from_ms..=to_ms).contains(&payment.at_ms) {
            return Err(refused(".horario fora do período".to_owned()));
        }
        payments.push(payment);
    }
    Ok(PixList { from_ms, to_ms, payments })
}

/// The pages of a file: one, an array of them, or one after the other.
fn pages_of(file: &[u8]) -> Result<Vec<WireList<'_>>, FileError> {
    let is_array = file.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let pages = if is_array {
        serde_json::from_slice(file)
    } else {
        serde_json::Deserializer::from_slice(file).into_iter().collect()
    };
    pages.map_err(|error| {
        let defect = match error.classify() {
            serde_json::error::Category::Data => "não é uma lista da API Pix: parametros ou pix inválido",
            _ => "não é texto JSON em UTF-8",
        };
        FileError { line: error.line().max(1) as u64, defect: defect.to_owned() }
    })
}

/// The period and the place of a page.
struct PageHead {
    /// Number of the line on which its paging begins, from 1.
    line: u64,
    from_ms: i64,
    to_ms: i64,
    paging: WirePaging,
}

impl PageHead {
    fn of(parameters: &WireParameters<'_>, lines: &mut LineCounter<'_>) -> Result<Self, FileError> {
        let WireParameters { inicio, fim, paginacao } = parameters;
        let mut instant = |part: &RawValue, name: &str| {
            let line = lines.line_of(part);
            let text: Option<String> = serde_json::from_str(part.get()).ok();
            let defect = || FileError { line, defect: format!("parametros.{name} deve ser um instante RFC 3339") };
            text.and_then(|text| instant_ms(&text)).ok_or_else(defect)
        };
        let (from_ms, to_ms) = (instant(inicio, "inicio")?, instant(fim, "fim")?);
        // An end of whole seconds includes its last one.
        let to_ms = if to_ms.rem_euclid(SECOND_MS) == 0 { to_ms + SECOND_MS - 1 } else { to_ms };
        let line = lines.line_of(paginacao);
        let refused = |defect: String| FileError { line, defect };
        if !(from_ms..from_ms + PERIOD_DAYS_MAX * DAY_MS + SECOND_MS).contains(&to_ms) {
            return Err(refused(format!("o período deve ter de 0 a {PERIOD_DAYS_MAX} dias")));
        }
        let paging = serde_json::from_str(paginacao.get()).map_err(|_| {
            let names = "paginaAtual, quantidadeDePaginas e quantidadeTotalDeItens";
            refused(format!("parametros.paginacao deve ter {names}"))
        })?;
        Ok(Self { line, from_ms, to_ms, paging })
    }

    fn is_of_same_list(&self, other: &Self) -> bool {
        let key = |head: &Self| (head.from_ms, head.to_ms, head.paging.pages, head.paging.items);
        key(self) == key(other)
    }
}

impl PixList {
    /// First and last day of which the list has every payment; `None` where it has no whole day.
    pub fn compared(&self) -> Option<(NaiveDate, NaiveDate)> {
        let (from, to) = (day_of(self.from_ms), day_of(self.to_ms));
        let from = if self.from_ms <= begin_of(from) { from } else { from.succ_opt()? };
        let to = if self.to_ms >= begin_of(to) + DAY_MS - 1 { to } else { to.pred_opt()? };
        (from <= to).then_some((from, to))
    }
}

fn payment_of(part: &RawValue, line: u64) -> Result<ListedPayment, String> {
    let wire: WirePayment<'_> = serde_json::from_str(part.get())
        .map_err(|_| " deve ter endToEndId, valor e horario, como textos".to_owned())?;
    let is_id = |text: &str, length: std::ops::RangeInclusive<usize>| {
        length.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    if !is_id(&wire.end_to_end_id, END_TO_END_ID_LEN..=END_TO_END_ID_LEN) {
        return Err(".endToEndId inválido".to_owned());
    }
    // A static code has no txid, which institutions write as an empty one or as `***` (BR Code).
    let txid = wire.txid.filter(|txid| !matches!(txid.trim(), "" | "***"));
    if txid.as_ref().is_some_and(|txid| !is_id(txid, 1..=35)) {
        return Err(".txid inválido".to_owned());
    }
    let txid = txid.map(|txid| txid.to_lowercase());
    let amount = reais(&wire.valor).ok_or(".valor deve ter a forma 100.00")?;
    let at_ms = instant_ms(&wire.horario).ok_or(".horario deve ser um instante RFC 3339")?;
    let devolucoes = wire.devolucoes.unwrap_or_default();
    if devolucoes.len() > RETURNS_MAX {
        return Err(format!(" tem mais de {RETURNS_MAX} devolucoes"));
    }
    let mut returns = Vec::new();
    for (place, part) in devolucoes.into_iter().enumerate() {
        let defect = |defect: &str| format!(".devolucoes[{place}]{defect}");
        let wire: WireReturn =
            serde_json::from_str(part.get()).map_err(|_| defect(" deve ter id, valor e status, como textos"))?;
        let amount = reais(&wire.valor).ok_or_else(|| defect(".valor deve ter a forma 100.00"))?;
        let requested_ms = wire.horario.and_then(|times| times.solicitacao).as_deref().map(instant_ms);
        let at_ms = requested_ms.unwrap_or(Some(at_ms)).ok_or_else(|| defect(".horario inválido"))?;
        if !is_id(&wire.id, 1..=35) {
            return Err(defect(".id inválido"));
        }
        match wire.status.as_str() {
            "DEVOLVIDO" => returns.push(ListedReturn { id: wire.id, amount, at_ms, is_done: true }),
            "EM_PROCESSAMENTO" => returns.push(ListedReturn { id: wire.id, amount, at_ms, is_done: false }),
            // No money has moved.
            "NAO_REALIZADO" => {}
            _ => return Err(defect(".status inválido")),
        }
    }
    let text = wire.text.and_then(|text| text.as_str().map(str::to_owned));
    Ok(ListedPayment { line, end_to_end_id: wire.end_to_end_id, txid, amount, at_ms, text, returns })
}

/// An instant in RFC 3339, as milliseconds since 1970 (UTC).
fn instant_ms(text: &str) -> Option<i64> {
    Some(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis())
}

/// An amount above zero with a point and two decimals, as the API writes it; gives centavos.
fn reais(text: &str) -> Option<Centavos> {
    let (whole, cents) = text.split_once('.')?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=10).contains(&whole.len()) || cents.len() != 2 || !digits(whole) || !digits(cents) {
        return None;
    }
    let amount = whole.parse::<i64>().ok()? * 100 + cents.parse::<i64>().ok()?;
    (1..=AMOUNT_MAX.0).contains(&amount).then_some(Centavos(amount))
}

/// The minute in which the payer's bank began a payment, by its end-to-end id; milliseconds since
/// 1970 (UTC). `None` if the id does not have one.
pub fn begun_ms(end_to_end_id: &str) -> Option<i64> {
    let minute = end_to_end_id.get(9..21)?;
    Some(NaiveDateTime::parse_from_str(minute, "%Y%m%d%H%M").ok()?.and_utc().timestamp_millis())
}

/// Compares a list with the books. `booked` has, by end-to-end id, every payment that was booked in
/// the period, and every other payment of a charge that the list names.
pub fn compare(list: &PixList, booked: &BTreeMap<String, BookedPayment>) -> Comparison {
    let mut reconciled = Comparison::default();
    let mut seen = BTreeSet::new();
    for payment in &list.payments {
        let ours = booked.get(&payment.end_to_end_id);
        let kind = match ours {
            _ if !seen.insert(payment.end_to_end_id.as_str()) => FindingKind::Twice,
            None => FindingKind::OnlyTheirs,
            Some(ours) if agrees(ours, payment) => FindingKind::Matched,
            Some(_) => FindingKind::Differs,
        };
        reconciled.add(of_payment(kind, payment, ours));
        if kind != FindingKind::Twice {
            compare_returns(list, payment, ours, &mut reconciled);
        }
    }
    let in_period = booked.iter().filter(|(_, ours)| (list.from_ms..=list.to_ms).contains(&ours.at_ms));
    for (id, ours) in in_period.filter(|(id, _)| !seen.contains(id.as_str())) {
        let begun = begun_ms(id).unwrap_or(ours.at_ms);
        let is_before = begun < list.from_ms - list.from_ms.rem_euclid(MINUTE_MS);
        let kind = if is_before { FindingKind::Undecided } else { FindingKind::OnlyOurs };
        let booked = SettledAmount::whole(day_of(ours.at_ms), ours.amount);
        let found = Finding::new(kind, "pix", id.clone(), [Some(booked), None]);
        reconciled.add(Finding { charge: Some(ours.charge), ..found });
    }
    reconciled
}

/// Whether a booked payment is the listed one: charge, amount, and a day between the one on which
/// it began and the one on which it was booked.
fn agrees(ours: &BookedPayment, theirs: &ListedPayment) -> bool {
    let begun = begun_ms(&theirs.end_to_end_id).map_or(ours.at_ms, |begun| begun.min(ours.at_ms));
    let is_own = theirs.txid.as_deref().is_none_or(|txid| ObjectId::parse(txid) == Some(ours.charge));
    is_own && ours.amount == theirs.amount && (day_of(begun)..=day_of(ours.at_ms)).contains(&day_of(theirs.at_ms))
}

fn of_payment(kind: FindingKind, payment: &ListedPayment, ours: Option<&BookedPayment>) -> Finding {
    let booked = ours.map(|ours| SettledAmount::whole(day_of(ours.at_ms), ours.amount));
    let listed = SettledAmount::whole(day_of(payment.at_ms), payment.amount);
    let charge = ours.map(|ours| ours.charge);
    let found = Finding::new(kind, "pix", payment.end_to_end_id.clone(), [booked, Some(listed)]);
    Finding { line: Some(payment.line), charge, text: payment.text.clone(), ..found }
}

/// Compares the returns of one payment. One that the books have is expected in the list when it was
/// booked before the period's end.
fn compare_returns(list: &PixList, payment: &ListedPayment, ours: Option<&BookedPayment>, to: &mut Comparison) {
    let none = BTreeMap::new();
    let sent_back = ours.map_or(&none, |ours| &ours.sent_back);
    let charge = ours.map(|ours| ours.charge);
    let settled = |amount: Centavos, at_ms| SettledAmount::whole(day_of(at_ms), -amount);
    let mut seen = BTreeSet::new();
    for listed in &payment.returns {
        let id = ObjectId::parse(&listed.id.to_lowercase());
        let found = id.and_then(|id| sent_back.get(&id)).copied();
        let name = id.map_or_else(|| listed.id.clone(), |id| id.uuid().to_string());
        let kind = match found {
            _ if !seen.insert(name.clone()) => FindingKind::Twice,
            // What is under way is booked when it is done.
            None if !listed.is_done => continue,
            None => FindingKind::OnlyTheirs,
            Some((amount, _)) if amount != listed.amount => FindingKind::Differs,
            Some(_) => FindingKind::Matched,
        };
        let sides = [found.map(|(amount, at_ms)| settled(amount, at_ms)), Some(settled(listed.amount, listed.at_ms))];
        let found = Finding::new(kind, "return", name, sides);
        to.add(Finding { line: Some(payment.line), charge, text: payment.text.clone(), ..found });
    }
    let expected = sent_back.iter().filter(|(_, (_, at_ms))| *at_ms <= list.to_ms);
    for (id, (amount, at_ms)) in expected {
        let id = id.uuid().to_string();
        if !seen.contains(&id) {
            let sides = [Some(settled(*amount, *at_ms)), None];
            to.findings.push(Finding { charge, ..Finding::new(FindingKind::OnlyOurs, "return", id, sides) });
        }
    }
}

#[cfg(test)]
mod tests {
    use ledger::id::{GroupNumber, IdKey};
    use ledger::time::Timestamp;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use wire::timestamp::with_milliseconds;

    use super::*;

    /// A decimal of the crates reads more than an amount may be.
    #[test]
    fn amounts_have_no_exponent_and_no_other_sign_of_programs() {
        for text in ["1e3", "1E3", "1e-2", "1__0", "1_000", "0x10", "NaN", "inf", "5.", "1,0e2", "1.5e2", "٣", ""] {
            assert_eq!(super::reais(text), None, "{text}");
        }
    }

    /// 2026-11-27 at 0:00 in Sao Paulo.
    const FROM: i64 = 1_795_748_400_000;

    fn id(number: u64) -> ObjectId {
        IdKey::new([3; 16]).object(GroupNumber(1), Timestamp(FROM), number)
    }

    fn end_to_end_id(begun_ms: i64, number: usize) -> String {
        let minute = DateTime::from_timestamp_millis(begun_ms).unwrap().format("%Y%m%d%H%M");
        format!("E00000000{minute}{number:011}")
    }

    /// A book of so many payments, a quarter of an hour apart; every third was refunded.
    fn books(payments: usize) -> BTreeMap<String, BookedPayment> {
        let payment = |number: usize| {
            let at_ms = FROM + 900_000 * number as i64 + 7_000;
            let sent_back =
                number.is_multiple_of(3).then(|| (id(1_000 + number as u64), (Centavos(5), at_ms + 60_000)));
            let amount = Centavos(1_000 + number as i64);
            let booked =
                BookedPayment { charge: id(number as u64), amount, at_ms, sent_back: sent_back.into_iter().collect() };
            (end_to_end_id(at_ms, number), booked)
        };
        (0..payments).map(payment).collect()
    }

    fn reais(amount: Centavos) -> String {
        format!("{}.{:02}", amount.0 / 100, amount.0 % 100)
    }

    fn listed(books: &BTreeMap<String, BookedPayment>) -> Vec<Value> {
        let payment = |(id, booked): (&String, &BookedPayment)| {
            let returns = booked.sent_back.iter().map(|(id, (amount, at_ms))| {
                json!({"id": id.txid(), "rtrId": "D", "valor": reais(*amount), "status": "DEVOLVIDO",
                    "horario": {"solicitacao": with_milliseconds(*at_ms)}})
            });
            json!({"endToEndId": id, "txid": booked.charge.txid(), "valor": reais(booked.amount),
                "horario": with_milliseconds(booked.at_ms - 2_000), "devolucoes": returns.collect::<Vec<_>>()})
        };
        books.iter().map(payment).collect()
    }

    fn file(payments: &[Value]) -> String {
        let payments: Vec<_> = payments.iter().map(Value::to_string).collect();
        format!(
            "{{\"parametros\": {{\"inicio\": \"{}\",\n\"fim\": \"{}\",\n\"paginacao\": {{\"paginaAtual\": 0, \
             \"itensPorPagina\": 100, \"quantidadeDePaginas\": 1, \"quantidadeTotalDeItens\": {}}}}},\n\"pix\": [\n{}\n]}}",
            with_milliseconds(FROM),
            with_milliseconds(FROM + DAY_MS - 1),
            payments.len(),
            payments.join(",\n")
        )
    }

    /// A defect that is put into a file.
    #[derive(Clone, Copy, Debug)]
    enum Seed {
        Amount,
        Charge,
        Missing,
        Added,
        Twice,
        ReturnAmount,
        ReturnMissing,
        ReturnAdded,
        ReturnUndone,
        Unbooked,
    }

    const SEEDS: [Seed; 10] = [
        Seed::Amount,
        Seed::Charge,
        Seed::Missing,
        Seed::Added,
        Seed::Twice,
        Seed::ReturnAmount,
        Seed::ReturnMissing,
        Seed::ReturnAdded,
        Seed::ReturnUndone,
        Seed::Unbooked,
    ];

    /// Puts a defect into the file or the books; gives the difference that must be found.
    fn plant(
        seed: Seed,
        place: usize,
        lines: &mut Vec<Option<Value>>,
        books: &mut BTreeMap<String, BookedPayment>,
    ) -> Option<(FindingKind, String)> {
        let line = lines[place].clone().unwrap();
        let name = line["endToEndId"].as_str().unwrap().to_owned();
        let returned = line["devolucoes"][0]["id"].as_str().map(|id| ObjectId::parse(id).unwrap().uuid().to_string());
        let changed = lines[place].as_mut().unwrap();
        match seed {
            Seed::Amount => changed["valor"] = json!("99.99"),
            Seed::Charge => changed["txid"] = json!(id(5_000).txid()),
            Seed::Missing => {
                lines[place] = None;
                return Some((FindingKind::OnlyOurs, name));
            }
            Seed::Added => {
                let mut added = line;
                let other = end_to_end_id(FROM + 60_000, 90_000 + place);
                added["endToEndId"] = json!(other);
                added["devolucoes"] = json!([]);
                lines.push(Some(added));
                return Some((FindingKind::OnlyTheirs, other));
            }
            Seed::Twice => {
                lines.push(Some(line));
                return Some((FindingKind::Twice, name));
            }
            Seed::ReturnAdded => {
                let other = id(8_000 + place as u64);
                let list = changed["devolucoes"].as_array_mut().unwrap();
                list.push(json!({"id": other.txid(), "valor": "0.01", "status": "DEVOLVIDO"}));
                list.push(json!({"id": "UnderWay", "valor": "0.01", "status": "EM_PROCESSAMENTO"}));
                return Some((FindingKind::OnlyTheirs, other.uuid().to_string()));
            }
            Seed::ReturnAmount => {
                let returned = returned?;
                changed["devolucoes"][0]["valor"] = json!("0.06");
                return Some((FindingKind::Differs, returned));
            }
            Seed::ReturnMissing => {
                let returned = returned?;
                changed["devolucoes"] = json!([]);
                return Some((FindingKind::OnlyOurs, returned));
            }
            Seed::ReturnUndone => {
                let returned = returned?;
                changed["devolucoes"][0]["status"] = json!("NAO_REALIZADO");
                return Some((FindingKind::OnlyOurs, returned));
            }
            Seed::Unbooked => {
                let booked = books.get_mut(&name).unwrap();
                booked.charge = id(6_000 + place as u64);
            }
        }
        Some((FindingKind::Differs, name))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// None of the seeded differences is missed, and none is found that was not seeded.
        #[test]
        fn seeded_differences_are_found_and_no_others(
            seeds in proptest::collection::btree_map(0_usize..60, 0..SEEDS.len(), 0..10)
        ) {
            let mut books = books(60);
            let mut lines: Vec<_> = listed(&books).into_iter().map(Some).collect();
            let planted = seeds.iter().filter_map(|(place, seed)| plant(SEEDS[*seed], *place, &mut lines, &mut books));
            let mut expected: Vec<_> = planted.collect();
            let lines: Vec<Value> = lines.into_iter().flatten().collect();
            let read = read(file(&lines).as_bytes()).unwrap();
            let found = compare(&read, &books);
            let mut findings: Vec<_> = found.findings.iter().map(|finding| (finding.kind, finding.id.clone())).collect();
            findings.sort();
            expected.sort();
            prop_assert_eq!((findings, found.undecided.len()), (expected, 0));
        }
    }

    #[test]
    fn a_payment_at_the_edge_of_a_period_is_judged_by_both_of_its_times() {
        let at = |begun_ms: i64, booked_ms: i64| {
            let payment =
                BookedPayment { charge: id(1), amount: Centavos(10), at_ms: booked_ms, sent_back: BTreeMap::new() };
            BTreeMap::from([(end_to_end_id(begun_ms, 1), payment)])
        };
        let empty = read(file(&[]).as_bytes()).unwrap();
        let to = FROM + DAY_MS;
        for (begun, booked, undecided, missing) in [
            (FROM - 60_000, FROM - 1, 0, 0),
            (FROM - 60_000, FROM + 5_000, 1, 0),
            (FROM, FROM + 5_000, 0, 1),
            (to - 60_000, to - 1, 0, 1),
            (to - 60_000, to, 0, 0),
        ] {
            let found = compare(&empty, &at(begun, booked));
            assert_eq!((found.undecided.len(), found.findings.len()), (undecided, missing), "{begun} {booked}");
        }
        // The list of the day has it although the books booked it a day later.
        let late = at(to - 60_000, to + 3_000);
        let mut line = listed(&late).remove(0);
        line["horario"] = json!(with_milliseconds(to - 1));
        assert_eq!(compare(&read(file(&[line]).as_bytes()).unwrap(), &late).matched.len(), 1);
    }

    /// An array of pages, and pages one after the other, in any order.
    #[test]
    fn the_pages_of_a_list_are_one_file() {
        let lines = listed(&books(5));
        let page = |number: usize, lines: &[Value]| {
            let paging = format!("\"paginaAtual\": {number}, \"itensPorPagina\": 2, \"quantidadeDePaginas\": 3");
            let text = file(lines)
                .replace(&format!("\"quantidadeTotalDeItens\": {}", lines.len()), "\"quantidadeTotalDeItens\": 5");
            let begin = text.find("\"paginaAtual\"").unwrap();
            let end = begin + text[begin..].find(", \"quantidadeTotal").unwrap();
            format!("{}{paging}{}", &text[..begin], &text[end..]).replace('\n', " ")
        };
        let pages: Vec<_> = lines.chunks(2).enumerate().map(|(number, lines)| page(number, lines)).collect();
        let whole = read(file(&lines).as_bytes()).unwrap();
        for text in [
            pages.join("\n"),
            format!("\u{feff}[{}]", pages.join(",\n")),
            format!("{}{}{}", pages[1], pages[2], pages[0]),
        ] {
            let found = read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((found.payments.len(), found.from_ms, found.to_ms), (5, whole.from_ms, whole.to_ms));
        }
        assert_eq!(read(pages.join("\n").as_bytes()).unwrap().payments[4].line, 3);
        let other = pages[2].replace("\"quantidadeTotalDeItens\": 5", "\"quantidadeTotalDeItens\": 6");
        for (text, defect) in [
            (pages[..2].join("\n"), "todas as 3"),
            (pages[0].clone(), "todas as 3"),
            ([&*pages[0], &pages[1], &pages[1]].join("\n"), "repetida"),
            ([&*pages[0], &pages[1], &other].join("\n"), "mesma lista"),
            (pages.join(","), "JSON"),
        ] {
            assert!(read(text.as_bytes()).unwrap_err().defect.contains(defect), "{defect}");
        }
    }

    #[test]
    fn what_institutions_leave_empty_is_absent() {
        let lines = listed(&books(2));
        for txid in [Value::Null, json!(""), json!("***")] {
            let mut lines = lines.clone();
            (lines[0]["txid"], lines[1]["devolucoes"]) = (txid, Value::Null);
            let found = compare(&read(file(&lines).as_bytes()).unwrap(), &books(2));
            assert_eq!((found.matched.len(), found.findings.len()), (3, 0), "two payments and a return");
        }
        let mut capitals = lines;
        capitals[0]["txid"] = json!(capitals[0]["txid"].as_str().unwrap().to_uppercase());
        assert_eq!(compare(&read(file(&capitals).as_bytes()).unwrap(), &books(2)).matched.len(), 3);
    }

    #[test]
    fn a_day_counts_as_compared_when_the_period_has_all_of_it() {
        let sound = file(&[]);
        let period = |from: &str, to: &str| {
            let mut list: Value = serde_json::from_str(&sound).unwrap();
            (list["parametros"]["inicio"], list["parametros"]["fim"]) = (json!(from), json!(to));
            let days = read(list.to_string().as_bytes()).unwrap().compared();
            days.map(|(from, to)| format!("{from} {to}"))
        };
        let day = |from: &str, to: &str| Some(format!("2026-11-{from} 2026-11-{to}"));
        assert_eq!(period("2026-11-27T03:00:00Z", "2026-11-28T02:59:59Z"), day("27", "27"));
        assert_eq!(period("2026-11-27T00:00:00-03:00", "2026-11-29T00:00:00-03:00"), day("27", "28"));
        assert_eq!(period("2026-11-26T15:00:00Z", "2026-11-28T02:59:59.999Z"), day("27", "27"));
        assert_eq!(period("2026-11-27T03:00:00Z", "2026-11-28T01:00:00Z"), None);
    }

    #[test]
    fn a_defect_is_named_by_its_line() {
        let lines = listed(&books(4));
        let sound = file(&lines);
        assert_eq!(read(sound.as_bytes()).unwrap().payments.len(), 4);
        for (from, to, line, defect) in [
            ("10.01", "10,01", 6, "pix[1].valor"),
            ("10.01", "1001", 6, "pix[1].valor"),
            ("10.01", "0.00", 6, "pix[1].valor"),
            ("10.02", "99999999999.00", 7, "pix[2].valor"),
            ("DEVOLVIDO", "FEITO", 5, "pix[0].devolucoes[0].status"),
            ("2026-11-27T03:15:05.000Z", "2026-11-27", 6, "pix[1].horario"),
            ("2026-11-27T03:15:05.000Z", "2026-11-28T03:00:00.000Z", 6, "pix[1].horario"),
            ("\"quantidadeTotalDeItens\": 4", "\"quantidadeTotalDeItens\": 5", 3, "a lista tem 4"),
            ("\"paginaAtual\": 0", "\"paginaAtual\": 1", 3, "uma página"),
            ("\"fim\": \"2026-11", "\"fim\": \"2028-11", 3, "período"),
            ("\"inicio\": \"", "\"inicio\": \"x", 1, "inicio"),
            ("]}", "]", 10, "JSON"),
        ] {
            let error = read(sound.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(error.line == line || from == "]}", "{to}: {error}");
            assert!(error.defect.contains(defect), "{to}: {error}");
        }
        let late = sound.replacen("2026-11-27T03:15:05.000Z", "2026-11-28T02:59:59.999Z", 1);
        let (late, end) = (late.replacen("T02:59:59.999Z", "T02:59:59Z", 1), "T02:59:59.999Z");
        assert!(late.contains(end) && read(late.as_bytes()).is_ok(), "the last second of the period: {late}");
        for other in ["", "[]", "{}", "{\"parametros\": {}}", "null", "\u{feff}{}"] {
            assert!(read(other.as_bytes()).is_err(), "{other}");
        }
    }
}
