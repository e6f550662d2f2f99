//! Records of the sandbox's PIX institution: payments, and what was sent back of them, a file of
//! each a day. For each day that has ended with payments it writes the list of them as the Central
//! Bank's API gives it (`GET /pix`), and its account has a bank statement
//! ([`super::bank_books`]). A line is written without a sync: it outlives the process, and after a
//! power cut the last ones may be missing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use actors::rails::{Call, PixFate, PixRail, PixReceipt, RailError, Repay, RepayAnswer};
use chrono::NaiveDate;
use futures_util::TryFutureExt;
use ledger::{Centavos, ObjectId, RailStamp, Timestamp};
use serde_json::{Value, json};
use wire::timestamp::{begin_of, day_of, with_milliseconds};

use super::bank_books::{BankBooks, PIX_RECEIVED, PIX_RETURNED};
use super::end_to_end_id::end_to_end_id;
use super::folder_lock::{FolderLock, FolderRecords, Patience, ask};
use super::lines::{Lines, days_after, read_lines, write_whole};
use super::refused_refunds::refused_refund;

const PAYMENTS: &str = "payments-";
const RETURNS: &str = "returns";
/// Payments that are remembered, so that no charge has two lines.
const REMEMBERED_MAX: usize = 10_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The PIX institution of the sandbox, with its records.
pub struct PixBooks {
    folder: PathBuf,
    bank: Arc<BankBooks>,
    is_shared: bool,
    lock: FolderLock<PixContents>,
}

/// What is known of the records.
pub(crate) struct PixContents {
    returns: Lines,
    /// The returns that are on record.
    returned: BTreeSet<ObjectId>,
    /// The last day whose list is written.
    closed_through: Option<NaiveDate>,
    /// The file of payments that was written last, by its day.
    payments: Option<(NaiveDate, Lines)>,
    latest: LatestPayments,
}

/// The payments that were recorded last, by charge. A process that was killed has recorded a
/// payment, and booked none: who asks again gets the same one.
#[derive(Default)]
struct LatestPayments {
    by_charge: BTreeMap<ObjectId, Payment>,
    in_order: VecDeque<ObjectId>,
}

impl LatestPayments {
    fn add(&mut self, paid: Payment) {
        self.in_order.push_back(paid.charge);
        self.by_charge.insert(paid.charge, paid);
        if self.in_order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.by_charge.remove(&oldest);
        }
    }
}

impl PixContents {
    fn add_returns(&mut self, lines: &str) {
        self.returned.extend(lines.lines().filter_map(return_of).map(|(_, returned)| returned.id));
    }
}

/// A payment, as it is on record.
#[derive(Clone)]
struct Payment {
    charge: ObjectId,
    end_to_end_id: String,
    amount: i64,
    at_ms: i64,
}

/// Something that was sent back, as it is on record.
struct PixReturn {
    id: ObjectId,
    amount: i64,
    at_ms: i64,
    is_dispute: bool,
}

impl PixBooks {
    /// The records in `folder`. `is_shared`: other processes keep them too.
    pub(super) fn new(folder: PathBuf, bank: Arc<BankBooks>, is_shared: bool) -> Self {
        let lock = FolderLock::new(folder.clone(), "lock", is_shared);
        Self { folder, bank, is_shared, lock }
    }

    /// Records that a payer paid a code, before the payment is booked. The payment stands under the
    /// day of `at`, or on the next day whose list is still to be written. Gives its end-to-end id:
    /// that of the one on record, where the charge has one. An error is in the log.
    pub async fn paid(
        self: &Arc<Self>,
        charge: ObjectId,
        end_to_end_id: String,
        amount: Centavos,
        at: Timestamp,
    ) -> Result<String, RailError> {
        let note = move |books: &Self, patience| books.note(patience, charge, &end_to_end_id, amount, at);
        ask(self, NAME, note).await
    }

    /// What becomes of a code that ends: it was paid where a payment is on record, which only a
    /// process did not book that ended too early.
    fn fate(&self, patience: Patience, charge: ObjectId) -> io::Result<PixFate> {
        self.turn(patience, |turn| {
            let paid = turn.known.latest.by_charge.get(&charge);
            Ok(paid.map_or(PixFate::Cancelled, |paid| {
                PixFate::Paid(PixReceipt {
                    end_to_end_id: paid.end_to_end_id.clone(),
                    txid: Some(paid.charge.txid()),
                    amount: Centavos(paid.amount),
                    paid_at: Timestamp(paid.at_ms),
                })
            }))
        })
    }

    fn note(
        &self,
        patience: Patience,
        charge: ObjectId,
        end_to_end_id: &str,
        amount: Centavos,
        at: Timestamp,
    ) -> io::Result<String> {
        self.turn(patience, |turn| {
            if let Some(paid) = turn.known.latest.by_charge.get(&charge) {
                let (days, id) = ([paid.at_ms, at.0].map(day_of), &paid.end_to_end_id);
                // The process may have ended between the two lines.
                if !self.bank.has(patience, days, id)? {
                    self.bank.book(patience, days[0], PIX_RECEIVED, id, amount)?;
                }
                return Ok(id.clone());
            }
            let day = day_of(at.0);
            let after_closed = turn.known.closed_through.and_then(|closed| closed.succ_opt());
            let day = day.max(after_closed.unwrap_or(day));
            if turn.known.payments.as_ref().is_none_or(|(known, _)| *known != day) {
                let path = self.folder.join(format!("{PAYMENTS}{day}"));
                turn.known.payments = Some((day, Lines::open_at_end(&path, self.is_shared)?));
            }
            let (_, payments) = turn.known.payments.as_mut().ok_or(io::ErrorKind::NotFound)?;
            let at_ms = at.0.max(begin_of(day));
            payments.append(&format!("{} {end_to_end_id} {amount} {at_ms}\n", charge.uuid()))?;
            let end_to_end_id = end_to_end_id.to_owned();
            let paid = Payment { charge, end_to_end_id: end_to_end_id.clone(), amount: amount.0, at_ms };
            turn.known.latest.add(paid);
            self.bank.book(patience, day, PIX_RECEIVED, &end_to_end_id, amount)?;
            Ok(end_to_end_id)
        })
    }

    /// Writes the lists of the days before `today` that have none yet.
    pub(super) fn close_days_before(&self, patience: Patience, today: NaiveDate) -> io::Result<()> {
        self.turns(patience, |turn| {
            let open = days_after(&self.folder, PAYMENTS, turn.known.closed_through)?;
            let Some(day) = open.first().copied().filter(|day| *day < today) else { return Ok(false) };
            let payments = self.payments(day)?;
            turn.announce()?;
            if !payments.is_empty() {
                let list = list(day, &payments, &self.returns()?);
                write_whole(&self.folder, &format!("SANDBOX-PIX-{day}.json"), &list)?;
            }
            write_whole(&self.folder, "closed", &day.to_string())?;
            turn.known.closed_through = Some(day);
            Ok(true)
        })
    }

    /// Records that money was sent back, or taken for a dispute, once.
    fn send_back(&self, patience: Patience, call: &Repay, is_dispute: bool) -> io::Result<()> {
        let Repay { id, decided_at, charge, amount, .. } = call;
        self.turn(patience, |turn| {
            let more = turn.known.returns.read_on()?;
            turn.known.add_returns(&more);
            if turn.known.returned.contains(id) {
                return Ok(());
            }
            self.bank.book(patience, day_of(decided_at.0), PIX_RETURNED, &id.txid(), -*amount)?;
            let kind = if is_dispute { 'd' } else { 'r' };
            let line = format!("{} {} {amount} {} {kind}\n", id.uuid(), charge.uuid(), decided_at.0);
            turn.known.returns.append(&line)?;
            turn.known.add_returns(&line);
            Ok(())
        })
    }

    /// The payments of a day.
    fn payments(&self, day: NaiveDate) -> io::Result<Vec<Payment>> {
        Ok(read_lines(&self.folder.join(format!("{PAYMENTS}{day}")))?.lines().filter_map(payment_of).collect())
    }

    /// What was sent back, by charge.
    fn returns(&self) -> io::Result<BTreeMap<ObjectId, Vec<PixReturn>>> {
        let mut returns: BTreeMap<ObjectId, Vec<PixReturn>> = BTreeMap::new();
        for (charge, returned) in read_lines(&self.folder.join(RETURNS))?.lines().filter_map(return_of) {
            returns.entry(charge).or_default().push(returned);
        }
        Ok(returns)
    }
}

impl FolderRecords for PixBooks {
    type Contents = PixContents;

    fn lock(&self) -> &FolderLock<PixContents> {
        &self.lock
    }

    fn read(&self) -> io::Result<PixContents> {
        let closed_through = match std::fs::read_to_string(self.folder.join("closed")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            closed => closed?.trim().parse().ok(),
        };
        let (returns, lines) = Lines::open(&self.folder.join(RETURNS), self.is_shared)?;
        let latest = LatestPayments::default();
        let mut known = PixContents { returns, returned: BTreeSet::new(), closed_through, payments: None, latest };
        known.add_returns(&lines);
        for day in days_after(&self.folder, PAYMENTS, closed_through)? {
            self.payments(day)?.into_iter().for_each(|paid| known.latest.add(paid));
        }
        Ok(known)
    }
}

/// The list of a day, as `GET /pix` answers, a payment a line.
fn list(day: NaiveDate, payments: &[Payment], returns: &BTreeMap<ObjectId, Vec<PixReturn>>) -> String {
    let from = begin_of(day);
    let to = from + DAY_MS - 1;
    let listed: Vec<String> = payments.iter().map(|paid| payment_as_json(paid, returns).to_string()).collect();
    let parameters = json!({"inicio": with_milliseconds(from), "fim": with_milliseconds(to), "paginacao": {
        "paginaAtual": 0, "itensPorPagina": listed.len(), "quantidadeDePaginas": 1,
        "quantidadeTotalDeItens": listed.len()}});
    format!("{{\"parametros\": {parameters},\n\"pix\": [\n{}\n]}}\n", listed.join(",\n"))
}

fn payment_of(line: &str) -> Option<Payment> {
    let mut parts = line.split(' ');
    let charge = ObjectId::parse(parts.next()?)?;
    let end_to_end_id = parts.next()?.to_owned();
    let (amount, at_ms) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Payment { charge, end_to_end_id, amount, at_ms })
}

fn return_of(line: &str) -> Option<(ObjectId, PixReturn)> {
    let mut parts = line.split(' ');
    let (id, charge) = (ObjectId::parse(parts.next()?)?, ObjectId::parse(parts.next()?)?);
    let (amount, at_ms) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((charge, PixReturn { id, amount, at_ms, is_dispute: parts.next()? == "d" }))
}

fn payment_as_json(paid: &Payment, returns: &BTreeMap<ObjectId, Vec<PixReturn>>) -> Value {
    let mut listed = json!({"endToEndId": paid.end_to_end_id, "txid": paid.charge.txid(), "valor": reais(paid.amount),
        "horario": with_milliseconds(paid.at_ms)});
    let returned = returns.get(&paid.charge).into_iter().flatten().map(|returned| {
        let rtr = return_id(returned.id, returned.at_ms);
        let at = with_milliseconds(returned.at_ms);
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

/// What the log calls it.
const NAME: &str = "PIX institution";

/// The institution as a rail.
pub(super) struct SandboxPix(pub(super) Arc<PixBooks>);

impl SandboxPix {
    fn send_back(&self, call: Repay, is_dispute: bool) -> Call<'_, RailStamp> {
        ask(&self.0, NAME, move |books, patience| {
            books.send_back(patience, &call, is_dispute)?;
            Ok(RailStamp::new(return_id(call.id, call.decided_at.0), call.decided_at))
        })
    }
}

impl PixRail for SandboxPix {
    fn location(&self, charge: ObjectId) -> Option<String> {
        Some(format!("sandbox.centavo.invalid/pix/v2/{}", charge.txid()))
    }

    /// Cancels the code, unless it is paid.
    fn cancel(&self, charge: ObjectId) -> Call<'_, PixFate> {
        ask(&self.0, NAME, move |books, patience| books.fate(patience, charge))
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        match refused_refund(&call) {
            Some(refused) => Box::pin(std::future::ready(Ok(refused))),
            None => Box::pin(self.send_back(call, false).map_ok(RepayAnswer::Repaid)),
        }
    }

    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp> {
        self.send_back(dispute, true)
    }
}
