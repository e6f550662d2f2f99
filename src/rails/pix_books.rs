//! Records of the sandbox's PIX institution: payments, and what was sent back of them, a file of
//! each a day. For each day that has ended with payments it writes the list of them as the Central
//! Bank's API gives it (`GET /pix`), and its account has a bank statement
//! ([`super::bank_books`]). A line is written without a sync: it outlives the process, and after a
//! power cut the last ones may be missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{OpenOptions, create_dir_all, read_dir, read_to_string};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use actors::rails::{Call, PixFate, PixRail, RailError, Repay};
use chrono::NaiveDate;
use ledger::id::ObjectId;
use ledger::money::Centavos;
use ledger::record::RailStamp;
use ledger::time::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::bank_books::{BankBooks, PIX_RECEIVED, PIX_RETURNED, write_whole};
use super::days::{begin_ms, day_of, instant};
use super::end_to_end_id::end_to_end_id;
use super::lies::{Institution, Lie, Lies};

const PAYMENTS: &str = "payments-";
const RETURNS: &str = "returns";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The PIX institution of the sandbox, with its records.
pub struct PixBooks {
    folder: PathBuf,
    bank: Arc<BankBooks>,
    lies: Arc<Lies>,
    open: Mutex<Option<Open>>,
}

#[derive(Default)]
struct Open {
    /// The returns that are on record.
    returned: BTreeSet<ObjectId>,
    /// The last day whose list is written.
    closed_through: Option<NaiveDate>,
}

/// A payment, as it is on record.
#[derive(Clone)]
struct Paid {
    charge: ObjectId,
    end_to_end_id: String,
    amount: i64,
    at_ms: i64,
}

/// Something that was sent back, as it is on record.
struct SentBack {
    id: ObjectId,
    amount: i64,
    at_ms: i64,
    is_dispute: bool,
}

impl PixBooks {
    pub(super) fn new(folder: PathBuf, bank: Arc<BankBooks>, lies: Arc<Lies>) -> Self {
        Self { folder, bank, lies, open: Mutex::default() }
    }

    /// Records that a payer paid a code. The payment stands under the day of `at`, or on the next
    /// day whose list is still to be written.
    pub fn paid(&self, charge: ObjectId, end_to_end_id: &str, amount: Centavos, at: Timestamp) -> io::Result<()> {
        let mut open = self.open.lock();
        let open = self.opened(&mut open)?;
        let day = day_of(at.0);
        let after_closed = open.closed_through.and_then(|closed| closed.succ_opt());
        let day = day.max(after_closed.unwrap_or(day));
        let line = format!("{} {end_to_end_id} {amount} {}\n", charge.uuid(), at.0.max(begin_ms(day)));
        self.append(&format!("{PAYMENTS}{day}"), &line)?;
        self.bank.book(day, PIX_RECEIVED, end_to_end_id, amount)
    }

    /// Writes the lists of the days before `today` that have none yet.
    pub(super) fn close_days_before(&self, today: NaiveDate) -> io::Result<()> {
        let mut open = self.open.lock();
        let open = self.opened(&mut open)?;
        let mut days = BTreeSet::new();
        for entry in read_dir(&self.folder)? {
            let name = entry?.file_name();
            let day = name.to_str().and_then(|name| name.strip_prefix(PAYMENTS)?.parse::<NaiveDate>().ok());
            days.extend(day.filter(|day| *day < today && open.closed_through.is_none_or(|closed| closed < *day)));
        }
        if days.is_empty() {
            return Ok(());
        }
        let returns = self.returns()?;
        for day in days {
            let payments = self.payments(day)?;
            if !payments.is_empty() {
                let list = self.list(day, payments, &returns);
                write_whole(&self.folder, &format!("SANDBOX-PIX-{day}.json"), &list)?;
            }
            write_whole(&self.folder, "closed", &day.to_string())?;
            open.closed_through = Some(day);
        }
        Ok(())
    }

    fn opened<'a>(&self, open: &'a mut Option<Open>) -> io::Result<&'a mut Open> {
        if open.is_none() {
            create_dir_all(&self.folder)?;
            let returned = self.returns()?.into_values().flatten().map(|returned| returned.id).collect();
            let closed_through = read_or_empty(self.folder.join("closed"))?.trim().parse().ok();
            *open = Some(Open { returned, closed_through });
        }
        open.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn append(&self, name: &str, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(self.folder.join(name))?;
        file.write_all(line.as_bytes())
    }

    /// Records that money was sent back, or taken for a dispute, once.
    fn send_back(&self, call: &Repay, is_dispute: bool) -> io::Result<()> {
        let mut open = self.open.lock();
        let open = self.opened(&mut open)?;
        let Repay { id, decided_at, charge, amount } = call;
        if !open.returned.contains(id) {
            self.bank.book(day_of(decided_at.0), PIX_RETURNED, &id.txid(), -*amount)?;
            let kind = if is_dispute { 'd' } else { 'r' };
            self.append(RETURNS, &format!("{} {} {amount} {} {kind}\n", id.uuid(), charge.uuid(), decided_at.0))?;
            open.returned.insert(*id);
        }
        Ok(())
    }

    /// The payments of a day. A line that a power cut left without an end is passed over.
    fn payments(&self, day: NaiveDate) -> io::Result<Vec<Paid>> {
        let text = read_or_empty(self.folder.join(format!("{PAYMENTS}{day}")))?;
        let payment_of = |line: &str| {
            let mut parts = line.strip_suffix('\n')?.split(' ');
            let charge = ObjectId::parse(parts.next()?)?;
            let end_to_end_id = parts.next()?.to_owned();
            let (amount, at_ms) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some(Paid { charge, end_to_end_id, amount, at_ms })
        };
        Ok(text.split_inclusive('\n').filter_map(payment_of).collect())
    }

    /// What was sent back, by charge.
    fn returns(&self) -> io::Result<BTreeMap<ObjectId, Vec<SentBack>>> {
        let text = read_or_empty(self.folder.join(RETURNS))?;
        let return_of = |line: &str| {
            let mut parts = line.strip_suffix('\n')?.split(' ');
            let (id, charge) = (ObjectId::parse(parts.next()?)?, ObjectId::parse(parts.next()?)?);
            let (amount, at_ms) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            Some((charge, SentBack { id, amount, at_ms, is_dispute: parts.next()? == "d" }))
        };
        let mut returns: BTreeMap<ObjectId, Vec<SentBack>> = BTreeMap::new();
        for (charge, returned) in text.split_inclusive('\n').filter_map(return_of) {
            returns.entry(charge).or_default().push(returned);
        }
        Ok(returns)
    }

    /// The list of a day, as `GET /pix` answers, a payment a line.
    fn list(&self, day: NaiveDate, mut payments: Vec<Paid>, returns: &BTreeMap<ObjectId, Vec<SentBack>>) -> String {
        let from = begin_ms(day);
        let to = from + DAY_MS - 1;
        if let Some(lie) = self.lies.take(Institution::Pix) {
            lie.tell(&mut payments, |lie, payment| match lie {
                Lie::Added => payment.end_to_end_id = end_to_end_id(Timestamp(payment.at_ms), u64::MAX),
                _ => payment.amount += 1,
            });
        }
        let listed: Vec<String> = payments.iter().map(|paid| payment_as_json(paid, returns).to_string()).collect();
        let parameters = json!({"inicio": instant(from), "fim": instant(to), "paginacao": {
            "paginaAtual": 0, "itensPorPagina": listed.len(), "quantidadeDePaginas": 1,
            "quantidadeTotalDeItens": listed.len()}});
        format!("{{\"parametros\": {parameters},\n\"pix\": [\n{}\n]}}\n", listed.join(",\n"))
    }
}

fn payment_as_json(paid: &Paid, returns: &BTreeMap<ObjectId, Vec<SentBack>>) -> Value {
    let mut listed = json!({"endToEndId": paid.end_to_end_id, "txid": paid.charge.txid(), "valor": reais(paid.amount),
        "horario": instant(paid.at_ms)});
    let returned = returns.get(&paid.charge).into_iter().flatten().map(|returned| {
        let rtr = return_id(returned.id, returned.at_ms);
        let at = instant(returned.at_ms);
        let nature = if returned.is_dispute { "MED_FRAUDE" } else { "ORIGINAL" };
        json!({"id": returned.id.txid(), "rtrId": rtr, "valor": reais(returned.amount), "natureza": nature,
            "horario": {"solicitacao": at, "liquidacao": at}, "status": "DEVOLVIDO"})
    });
    let returned: Vec<Value> = returned.collect();
    if !returned.is_empty() {
        listed["devolucoes"] = returned.into();
    }
    listed
}

/// The institution's id of a return (`rtrId`), made of ours.
fn return_id(id: ObjectId, at_ms: i64) -> String {
    end_to_end_id(Timestamp(at_ms), id.0 as u64).replacen('E', "D", 1)
}

fn reais(centavos: i64) -> String {
    format!("{}.{:02}", centavos / 100, centavos % 100)
}

fn read_or_empty(path: PathBuf) -> io::Result<String> {
    match read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        text => text,
    }
}

impl SandboxPix {
    fn send_back(&self, call: &Repay, is_dispute: bool) -> Result<RailStamp, RailError> {
        self.0.send_back(call, is_dispute).map_err(|error| {
            tracing::error!(%error, "the records of the sandbox's PIX institution cannot be written");
            RailError::NoAnswer
        })?;
        Ok(RailStamp { id: return_id(call.id, call.decided_at.0), at: call.decided_at })
    }
}

/// The institution as a rail.
pub(super) struct SandboxPix(pub(super) Arc<PixBooks>);

impl PixRail for SandboxPix {
    fn location(&self, charge: ObjectId) -> String {
        format!("sandbox.centavo.invalid/pix/v2/{}", charge.txid())
    }

    /// Cancels the code. The engine asks about pending charges only, whose codes are unpaid.
    fn cancel(&self, _charge: ObjectId) -> Call<'_, PixFate> {
        Box::pin(std::future::ready(Ok(PixFate::Cancelled)))
    }

    fn repay(&self, call: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(self.send_back(&call, false)))
    }

    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(self.send_back(&dispute, true)))
    }
}
