//! Payout institution of the sandbox. It keeps a file of the transfers that it carried out, as an
//! institution would, one line each: `id amount end_to_end_id account`, with ` returns` behind it
//! where the money comes back a day later. The text of a PIX key
//! decides what happens to a transfer, so every question about it gets the same answer, also after
//! a crash.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actors::rails::{
    Call, Destination, PayoutAnswer, PayoutRail, PixSpan, RailError, ReturnedPayout, ReturnedPayouts, SendPayout,
};
use ledger::{Centavos, ObjectId, PayoutBank, RailStamp, Timestamp};
use wire::timestamp::day_of;

use super::bank_books::{BankBooks, PIX_SENT, RETURNED, TRANSFER};
use super::end_to_end_id::end_to_end_id;
use super::folder_lock::{FolderLock, FolderRecords, Patience, ask};
use super::lines::Lines;

/// How long a transfer without an answer stays under way, milliseconds of the sandbox clock.
const SILENCE_MS: i64 = 60_000;

/// The payout institution as a rail.
pub(super) struct SandboxPayouts(Arc<PayoutBooks>);

/// The transfers that it carried out.
struct PayoutBooks {
    folder: PathBuf,
    /// The account from which transfers to bank accounts are paid while it holds enough.
    settlement: Arc<BankBooks>,
    /// The account from which transfers to PIX keys are paid, and those that the other lacks.
    pix: Arc<BankBooks>,
    is_shared: bool,
    lock: FolderLock<TransferFile>,
}

struct TransferFile {
    file: Lines,
    /// The account that each transfer left.
    left: BTreeMap<ObjectId, PayoutBank>,
    /// Transfers to PIX keys whose money comes back, and how much.
    returning: Vec<(ObjectId, Centavos)>,
}

/// Fate of a transfer.
enum Script {
    Process,
    Fail,
    /// Carries it out, and answers nothing for a minute.
    Silence,
    /// Refuses it, as an institution that is down.
    Refuse,
    /// Carries it out, and gives the money back a day later.
    Return,
}

/// How long after its order a returned transfer comes back, milliseconds of the sandbox clock.
const RETURNED_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

fn script(to: &Destination) -> Script {
    let destination = match to {
        Destination::PixKey(destination) => destination,
        Destination::Account(account) => return account_script(&account.conta),
    };
    match destination.key.split_once('@') {
        Some(("fail", _)) => Script::Fail,
        Some(("timeout", _)) => Script::Silence,
        Some(("down", _)) => Script::Refuse,
        Some(("return", _)) => Script::Return,
        _ => Script::Process,
    }
}

/// The bank accounts whose transfers fail or come back: 99990 and 99991.
fn account_script(conta: &str) -> Script {
    match conta {
        "99990" => Script::Fail,
        "99991" => Script::Return,
        _ => Script::Process,
    }
}

fn failed() -> PayoutAnswer {
    PayoutAnswer::Failed { reason: "O banco recusou a transferência: conta encerrada".to_owned() }
}

impl SandboxPayouts {
    /// The institution, with its file in `folder`, and the bank's accounts that it pays from.
    /// `is_shared`: other processes keep the file too.
    pub(super) fn new(folder: &Path, settlement: Arc<BankBooks>, pix: Arc<BankBooks>, is_shared: bool) -> Self {
        let lock = FolderLock::new(folder.to_owned(), "payouts-lock", is_shared);
        Self(Arc::new(PayoutBooks { folder: folder.to_owned(), settlement, pix, is_shared, lock }))
    }
}

impl PayoutBooks {
    /// Carries a transfer out, once, and does more in the same turn. Gives the account that the
    /// money left. The line is durable before this returns, whichever process wrote it: that one
    /// may have ended before it did.
    fn carry_out(
        &self,
        patience: Patience,
        call: &SendPayout,
        and: impl FnOnce(PayoutBank) -> io::Result<()>,
    ) -> io::Result<PayoutBank> {
        let carry_out = |known: &mut TransferFile| {
            let from = self.carry_out_once(patience, known, call)?;
            and(from)?;
            Ok((from, known.file.file()))
        };
        let (from, file) = self.turn(patience, |turn| carry_out(turn.known))?;
        file.sync_data()?;
        Ok(from)
    }

    fn carry_out_once(
        &self,
        patience: Patience,
        known: &mut TransferFile,
        call: &SendPayout,
    ) -> io::Result<PayoutBank> {
        let more = known.file.read_on()?;
        known.add(&more);
        if let Some(from) = known.left.get(&call.id) {
            return Ok(*from);
        }
        let (from, day) = (self.account_of(patience, call)?, day_of(call.ordered_at.0));
        let (text, reference) = match &call.to {
            Destination::PixKey(_) => (PIX_SENT, transfer_end_to_end_id(call.id)),
            Destination::Account(_) => (TRANSFER, transfer_id(call.id)),
        };
        self.bank(from).book(patience, day, text, &reference, -call.amount)?;
        let (id, name) = (call.id.uuid(), name_of(from));
        let returns = matches!((&call.to, script(&call.to)), (Destination::PixKey(_), Script::Return));
        let mark = if returns { RETURNS } else { "" };
        let line = format!("{id} {} {} {name}{mark}\n", call.amount, transfer_end_to_end_id(call.id));
        known.file.append(&line)?;
        known.add(&line);
        Ok(from)
    }

    /// The account that pays a transfer. A transfer whose line at the bank was written before a
    /// crash has left the account that has the line.
    fn account_of(&self, patience: Patience, call: &SendPayout) -> io::Result<PayoutBank> {
        let days = [day_of(call.ordered_at.0); 2];
        let is_pix = matches!(call.to, Destination::PixKey(_));
        if is_pix || self.pix.has(patience, days, &transfer_id(call.id))? {
            return Ok(PayoutBank::Pix);
        }
        if self.settlement.has(patience, days, &transfer_id(call.id))? {
            return Ok(PayoutBank::Settlement);
        }
        self.with_enough(patience, call.amount)
    }

    /// The account from which a transfer to a bank account is paid: the settlement account, unless
    /// only the PIX account holds enough.
    fn with_enough(&self, patience: Patience, amount: Centavos) -> io::Result<PayoutBank> {
        let is_short = self.settlement.holds(patience)? < amount && self.pix.holds(patience)? >= amount;
        Ok(if is_short { PayoutBank::Pix } else { PayoutBank::Settlement })
    }

    fn bank(&self, account: PayoutBank) -> &BankBooks {
        match account {
            PayoutBank::Settlement => &self.settlement,
            PayoutBank::Pix => &self.pix,
        }
    }

    fn answer(&self, patience: Patience, call: &SendPayout) -> io::Result<PayoutAnswer> {
        let from = self.carry_out(patience, call, |_| Ok(()))?;
        Ok(PayoutAnswer::Processed {
            transfer_id: transfer_id(call.id),
            end_to_end_id: transfer_end_to_end_id(call.id),
            at: call.ordered_at,
            from,
        })
    }

    /// Gives a transfer back, once, to the account that it had left.
    fn give_back(&self, patience: Patience, call: &SendPayout, now: Timestamp) -> io::Result<PayoutAnswer> {
        let to = self.carry_out(patience, call, |to| {
            let (days, reference) = ([call.ordered_at, now].map(|at| day_of(at.0)), call.id.txid());
            if !self.bank(to).has(patience, days, &reference)? {
                self.bank(to).book(patience, days[1], RETURNED, &reference, call.amount)?;
            }
            Ok(())
        })?;
        let reason = "O banco devolveu a transferência: conta inexistente".to_owned();
        let stamp = RailStamp::new(format!("{}-R", transfer_id(call.id)), now);
        Ok(PayoutAnswer::Returned { reason, stamp, to })
    }

    /// The transfers to PIX keys whose money comes back in a span: each is a line at the bank.
    fn returned(&self, patience: Patience, span: PixSpan) -> io::Result<ReturnedPayouts> {
        let returning = self.turn(patience, |turn| {
            let more = turn.known.file.read_on()?;
            turn.known.add(&more);
            Ok(turn.known.returning.clone())
        })?;
        let back_at = |id: ObjectId| id.created_at().plus_ms(RETURNED_AFTER_MS);
        let is_of_span = |id: ObjectId| span.from <= back_at(id) && back_at(id) <= span.until;
        let mut transfers = Vec::new();
        for (id, amount) in returning.into_iter().filter(|(id, _)| is_of_span(*id)) {
            let (at, to, reference) = (back_at(id), PayoutBank::Pix, id.txid());
            let days = [id.created_at(), at].map(|at| day_of(at.0));
            if !self.bank(to).has(patience, days, &reference)? {
                self.bank(to).book(patience, days[1], RETURNED, &reference, amount)?;
            }
            let stamp = RailStamp::new(format!("{}-R", transfer_id(id)), at);
            transfers.push(ReturnedPayout { id, amount, reason: KEY_GONE.to_owned(), stamp, to });
        }
        Ok(ReturnedPayouts { transfers, has_more: false })
    }
}

impl FolderRecords for PayoutBooks {
    type Contents = TransferFile;

    fn lock(&self) -> &FolderLock<TransferFile> {
        &self.lock
    }

    /// Reads the file, whose name is made durable before any line. A last line that a crash cut
    /// off, or of which the disk lacks a part, belongs to a transfer without an answer: it is
    /// removed, and written again.
    fn read(&self) -> io::Result<TransferFile> {
        let (file, lines) = Lines::open(&self.folder.join("payouts"), self.is_shared)?;
        for named in [Some(self.folder.as_path()), self.folder.parent()].into_iter().flatten() {
            File::open(named)?.sync_all()?;
        }
        let mut known = TransferFile { file, left: BTreeMap::new(), returning: Vec::new() };
        known.add(&lines);
        Ok(known)
    }
}

impl TransferFile {
    fn add(&mut self, lines: &str) {
        for line in lines.lines() {
            let (line, returns) = line.strip_suffix(RETURNS).map_or((line, false), |line| (line, true));
            let Some((id, amount, from)) = transfer_of(line) else { continue };
            let is_new = self.left.insert(id, from).is_none();
            self.returning.extend((is_new && returns).then_some((id, amount)));
        }
    }
}

fn name_of(account: PayoutBank) -> &'static str {
    match account {
        PayoutBank::Settlement => "settlement",
        PayoutBank::Pix => "pix",
    }
}

/// Mark of a transfer whose money comes back.
const RETURNS: &str = " returns";
/// Why it does.
const KEY_GONE: &str = "O banco devolveu a transferência: a conta da chave foi encerrada";

/// The transfer of a line, its amount, and the account that it left; `None` if the line is not
/// whole.
fn transfer_of(line: &str) -> Option<(ObjectId, Centavos, PayoutBank)> {
    let mut parts = line.split(' ');
    let (id, amount, end_to_end) = (ObjectId::parse(parts.next()?)?, parts.next()?, parts.next()?);
    let name = parts.next()?;
    let from = [PayoutBank::Settlement, PayoutBank::Pix].into_iter().find(|from| name_of(*from) == name)?;
    let amount = Centavos(amount.parse().ok()?);
    let is_whole = end_to_end == transfer_end_to_end_id(id) && parts.next().is_none();
    is_whole.then_some((id, amount, from))
}

/// What the log calls it.
const NAME: &str = "payout institution";

impl PayoutRail for SandboxPayouts {
    fn send(&self, call: SendPayout) -> Call<'_, PayoutAnswer> {
        let answer = match (script(&call.to), &call.to) {
            (Script::Refuse, _) => Ok(PayoutAnswer::NotTaken),
            (Script::Silence, _) => return Box::pin(std::future::pending()),
            (Script::Fail, Destination::Account(_)) => Ok(failed()),
            // A bank transfer is carried out at once; a PIX is accepted, and `find` asks for its
            // result.
            (_, Destination::Account(_)) => {
                return ask(&self.0, NAME, move |books, patience| books.answer(patience, &call));
            }
            (_, Destination::PixKey(_)) => {
                let (at, from) = (call.ordered_at, PayoutBank::Pix);
                Ok(PayoutAnswer::Taken { transfer_id: transfer_id(call.id), at, from })
            }
        };
        Box::pin(std::future::ready(answer))
    }

    fn find(&self, call: SendPayout, now: Timestamp) -> Call<'_, PayoutAnswer> {
        let answer = match script(&call.to) {
            Script::Refuse => Ok(PayoutAnswer::NotTaken),
            Script::Fail => Ok(failed()),
            Script::Return if now.0 >= call.ordered_at.0 + RETURNED_AFTER_MS => {
                return ask(&self.0, NAME, move |books, patience| books.give_back(patience, &call, now));
            }
            Script::Silence if now.0 < call.id.created_at().0 + SILENCE_MS => Err(RailError::NoAnswer),
            Script::Silence | Script::Process | Script::Return => {
                return ask(&self.0, NAME, move |books, patience| books.answer(patience, &call));
            }
        };
        Box::pin(std::future::ready(answer))
    }

    fn returned(&self, span: PixSpan) -> Call<'_, ReturnedPayouts> {
        ask(&self.0, NAME, move |books, patience| books.returned(patience, span))
    }

    fn pays_withdrawal_from(&self, amount: Centavos) -> PayoutBank {
        self.0.with_enough(Patience::SHORT, amount).unwrap_or(PayoutBank::Settlement)
    }

    /// The sandbox knows of a transfer as soon as it is ordered.
    fn horizon(&self) -> Duration {
        Duration::ZERO
    }
}

fn transfer_id(id: ObjectId) -> String {
    format!("sandbox-{}", id.txid())
}

/// Made of the transfer's id, so that every answer gives the same.
fn transfer_end_to_end_id(id: ObjectId) -> String {
    end_to_end_id(id.created_at(), id.0 as u64)
}

#[cfg(test)]
mod tests {
    use std::fs::read;

    use actors::testkit::rails as conformance;
    use ledger::personal::{BankAccount, PixDestination};

    use super::*;

    fn opened(folder: &Path) -> SandboxPayouts {
        let account = |name| Arc::new(BankBooks::new(folder.join(name), name, false));
        SandboxPayouts::new(folder, account("settlement"), account("pix"), false)
    }

    #[tokio::test]
    async fn what_the_institution_has_denied_is_not_carried_out() {
        let folder = tempfile::tempdir().unwrap();
        let institution = opened(folder.path());
        let key = |key: &str| Destination::PixKey(PixDestination { key: key.to_owned(), ..PixDestination::default() });
        let taken = |id| PayoutAnswer::Taken { transfer_id: transfer_id(id), at: Timestamp(0), from: PayoutBank::Pix };
        let ids = [1, 2, 3, 4].map(ObjectId);
        let cases = [
            (ids[0], key("ana@example.com"), Some(taken(ids[0]))),
            (ids[1], key("fail@example.com"), Some(taken(ids[1]))),
            (ids[2], key("down@example.com"), Some(PayoutAnswer::NotTaken)),
            (ids[3], Destination::Account(BankAccount::default()), None),
        ];
        for (id, to, expected) in cases {
            let call = SendPayout { id, amount: Centavos(500), to, ordered_at: Timestamp(0) };
            let first = conformance::payout(&institution, &call, Timestamp(0)).await;
            assert!(expected.is_none_or(|expected| expected == first), "{id:?}: {first:?}");
        }
    }

    /// A power cut may leave a part of the last line, or its length with zeros for what was not
    /// written.
    #[test]
    fn a_line_that_is_not_whole_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("payouts");
        let call = |id| SendPayout {
            id: ObjectId(8_u128 << 76 | 2_u128 << 62 | id),
            amount: Centavos(500),
            to: Destination::Account(BankAccount::default()),
            ordered_at: Timestamp(0),
        };
        let both = |cut: &dyn Fn(&mut Vec<u8>)| {
            for id in [1, 2] {
                opened(folder.path()).0.carry_out(Patience::NONE, &call(id), |_| Ok(())).unwrap();
            }
            let whole = read(&path).unwrap();
            assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 2, "a line each");
            let mut damaged = whole.clone();
            cut(&mut damaged);
            std::fs::write(&path, damaged).unwrap();
            opened(folder.path()).0.carry_out(Patience::NONE, &call(2), |_| Ok(())).unwrap();
            assert_eq!(read(&path).unwrap(), whole);
        };
        both(&|_| {});
        for length in 1..40 {
            both(&|bytes| bytes.truncate(bytes.len() - length));
            both(&|bytes| {
                let end = bytes.len();
                bytes[end - length..].fill(0);
            });
        }
    }
}
