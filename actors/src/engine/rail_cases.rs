//! Intake of cases: chargebacks and special returns (MED) that a rail reports. Each opens one
//! dispute for ever under the rail's id; the rail's debit ends it as accepted, its release as
//! released. What operators have decided is answered to the rail while the case is open there.
//!
//! A case that was booked changes nothing when it is read again, so a look reads more than what is
//! new.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use ledger::adjustment::AdjustmentCommand;
use ledger::dispute::DisputeDecision;
use ledger::event::{DisputeCase, DisputeKind};
use ledger::house::{HOUSE_GROUP, HouseAccount, HouseEntryTerms};
use ledger::merchant::{ChargeFacts, OpenDispute, ReverseDispute};
use ledger::personal::FreeText;
use ledger::{
    Charge, Decision, Dispute, Event, GroupNumber, MerchantCommand, Object, ObjectId, RailName, RailStamp, SealedFor,
    Timestamp,
};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::outcome::CommandContext;
use super::pix_intake::{IntakeError, goes_on};
use super::{Engine, INSIDE_BYTES, Result, Unavailable, WaitingItem, WaitingKind};
use crate::rails::{CASES_EVERY, CaseAnswer, CaseStage, PixSpan, RailCase};
use crate::resident::Outcome;
use derived::records::may_wait;

/// How long a rail may take for a page, or for an answer.
const PAGE_MAX: Duration = Duration::from_secs(30);
/// How many cases of a page are taken at once.
const TAKEN_AT_ONCE: usize = 16;
/// How far back a look reads before the end of the one before, milliseconds.
const OVERLAP_MS: i64 = 86_400_000;
/// How far back the very first look reads, milliseconds.
const FIRST_LOOK_MS: i64 = 30 * 86_400_000;
/// Beginning of the names under which the store keeps how far cases were read, milliseconds.
const READ: &str = "cases-read/";
/// Beginning of the names under which the store notes an answered case, by rail and id.
const ANSWERED: &str = "case-answered/";

/// What would make a notification fit that does not fit the disputes of its charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseNeed {
    /// An accepted dispute of its amount.
    Acceptance,
    /// The release or reversal of an earlier dispute.
    Reversal,
    /// Operators reverse the dispute, or drop the notification: they said that the case was won, it
    /// was lost again, and this is about either; or money was taken that no dispute explains.
    Decision,
}

/// A notification that came before what it is about.
struct DeferredCase {
    /// Its item of the queue; `None` if it has none.
    id: Option<ObjectId>,
    case: RailCase,
    /// Whether it is booked, or dropped.
    has_ended: bool,
    /// Whether operators have dropped it.
    is_dropped: bool,
}

/// After how long a case of no charge of ours that is listed no more is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60 * 60);

/// Whose cases are read.
struct CaseRail<'a> {
    name: &'a RailName,
    /// True for an acquirer that is no PIX institution under the same name.
    is_card: bool,
    /// When cases of no charge of ours were listed last: the log names each once.
    listed: Mutex<BTreeMap<String, Instant>>,
}

impl CaseRail<'_> {
    /// Whether a case of no charge of ours was not listed before. Forgets what was not listed for
    /// an hour.
    fn is_new(&self, case: &str) -> bool {
        let mut listed = self.listed.lock();
        listed.retain(|_, at| at.elapsed() < FORGOTTEN_AFTER);
        listed.insert(case.to_owned(), Instant::now()).is_none()
    }
}

impl Engine {
    /// Reads the cases of all named acquirers and PIX institutions, and books notifications that
    /// operators have made fit. Runs until it is dropped.
    pub async fn run_rail_cases(&self) {
        tokio::join!(self.read_cases(), self.book_deferred_cases());
    }

    async fn read_cases(&self) {
        // A bridge that is the acquirer and the PIX institution under one name has one list.
        let pix = self.rails.pix.named_ones().map(|(name, _)| (name, false));
        let cards = self.rails.card.named_ones().map(|(name, _)| (name, true));
        let all = pix.chain(cards.filter(|(name, _)| self.rails.pix.get(Some(name)).is_none()));
        join_all(all.map(|(name, is_card)| async move {
            let rail = CaseRail { name, is_card, listed: Mutex::default() };
            loop {
                if self.serves_house()
                    && self.has_all()
                    && !self.admission.is_closed()
                    && let Err(error) = self.look_for_cases(&rail).await
                {
                    tracing::warn!(rail = %rail.name, %error, "the cases of a rail can't be read now");
                }
                sleep(self.cases_every(&rail)).await;
            }
        }))
        .await;
    }

    fn cases_every(&self, of: &CaseRail<'_>) -> Duration {
        let pix = self.rails.pix.get(Some(of.name)).filter(|_| !of.is_card);
        pix.map_or(CASES_EVERY, |rail| rail.cases_every())
    }

    /// Reads the cases of a rail once, and books what is new. The others are booked although one
    /// can't be, or its answer does not arrive; the first error is given.
    async fn look_for_cases(&self, of: &CaseRail<'_>) -> Result<(), IntakeError> {
        let (now, kind) = (self.now(), if of.is_card { "card" } else { "pix" });
        self.catch_up().await.map_err(Unavailable::from)?;
        let kept_name = format!("{READ}{kind}/{}", of.name);
        let stored = self.side_value(&kept_name).map_err(Unavailable::from)?.and_then(|bytes| bytes.try_into().ok());
        let from = stored
            .map_or(now.plus_ms(-FIRST_LOOK_MS), |stored| Timestamp(i64::from_be_bytes(stored)).plus_ms(-OVERLAP_MS));
        let (mut failed, mut before) = (None, None);
        for page in 0.. {
            let span = PixSpan { from, until: now, page };
            let found = match of.is_card {
                true => self.card_rail(Some(of.name))?.call(PAGE_MAX, |rail| rail.cases(span)).await?,
                false => self.pix_rail(Some(of.name))?.call(PAGE_MAX, |rail| rail.cases(span)).await?,
            };
            let goes_on = goes_on(&mut before, &found.cases, found.has_more);
            let mut taken = stream::iter(found.cases).map(|case| self.take_case(of, case)).buffered(TAKEN_AT_ONCE);
            while let Some(taken) = taken.next().await {
                failed = failed.or(taken.err());
            }
            if !goes_on? {
                break;
            }
        }
        failed.map_or(Ok(()), Err)?;
        Ok(self.keep(&kept_name, &now.0.to_be_bytes()).map_err(Unavailable::from)?)
    }

    /// Books a case of a charge of this rail, and answers it where it is decided here.
    async fn take_case(&self, of: &CaseRail<'_>, case: RailCase) -> Result<(), IntakeError> {
        let charge: Option<Charge> = self.object(case.charge).map_err(Unavailable::from)?;
        let Some(charge) = charge.filter(|charge| charge.rail.as_ref() == Some(of.name)) else {
            return Ok(self.ask_for_entry(of, case).await?);
        };
        self.book_case(case.clone()).await?;
        match case.stage {
            CaseStage::Open if !of.is_card && !charge.terms.method.is_card() => self.answer_case(of.name, &case).await,
            _ => Ok(()),
        }
    }

    /// Asks operators, once, for the entry of money that has left the PIX account for a case of no
    /// charge of its rail. An acquirer takes such money from a batch, whose line is in suspense.
    async fn ask_for_entry(&self, of: &CaseRail<'_>, case: RailCase) -> Result<()> {
        if of.is_new(&case.id) {
            tracing::warn!(rail = %of.name, case = case.id, amount = %case.amount, "a case names no charge of its rail");
        }
        let CaseStage::Debited(RailStamp { id: reference, .. }) = case.stage else { return Ok(()) };
        let house = self.house_shard();
        let _one_at_a_time = house.house.lock().await;
        let asked = HouseEntryTerms::reference_id(&reference);
        if of.is_card || !may_wait(|| house.read_model().about(asked))?.is_empty() {
            return Ok(());
        }
        let (debit, credit) = (HouseAccount::Suspense, HouseAccount::BankPix);
        let terms = HouseEntryTerms { debit, credit, amount: case.amount, reference, effective_day: None };
        // The list of a bridge that is the acquirer too may have what a batch takes.
        let of_cards = self.rails.card.get(Some(of.name)).map_or("", |_| "; se for de cartão, o lote o tem: rejeite");
        let reason = format!("{}: débito do caso {} sem cobrança conhecida{of_cards}", of.name, case.id);
        let event = Event::HouseEntryRequested { id: self.new_id(HOUSE_GROUP)?, terms, reason };
        let context = CommandContext::from(self.admission.take(INSIDE_BYTES).await);
        self.record_of_house(|| Decision::of(event), context).await.map(drop)
    }

    /// Answers an open case whose dispute is decided, once.
    async fn answer_case(&self, name: &RailName, case: &RailCase) -> Result<(), IntakeError> {
        let dispute = self.disputes_of(case.charge)?.into_iter().find(|dispute| is_of(dispute, &case.id));
        let decided = dispute.filter(|dispute| dispute.decision != DisputeDecision::Open);
        let noted = format!("{ANSWERED}{name}/{}", ObjectId::of_text(&case.id).uuid().simple());
        let Some(dispute) = decided else { return Ok(()) };
        if self.side_value(&noted).map_err(Unavailable::from)?.is_some_and(|id| id == case.id.as_bytes()) {
            return Ok(());
        }
        let accepts = matches!(dispute.decision, DisputeDecision::Accepted { .. } | DisputeDecision::Reversed { .. });
        let answer = CaseAnswer { id: case.id.clone(), accepts, reason: dispute.notes };
        self.pix_rail(Some(name))?.call(PAGE_MAX, |rail| rail.answer_case(answer)).await?;
        Ok(self.keep(&noted, case.id.as_bytes()).map_err(Unavailable::from)?)
    }

    /// Has a merchant book a case of one of its charges, wherever the merchant is. What is booked
    /// changes nothing. One that does not fit its disputes yet is a Record and an item of the
    /// queue, and is booked with the case that it waits for: an acquirer may send its notifications
    /// in any order.
    pub async fn book_case(&self, case: RailCase) -> Result<()> {
        let group = self.ids().group(case.charge);
        if !self.serves(group) {
            return self.others_than(self.extents.partition_of(group))?.book_case(group, case).await;
        }
        let shard = self.serving_shard(group)?;
        let _one_at_a_time = shard.house.lock().await;
        let mut known = self.deferred_cases(case.charge)?;
        known.retain(|known| known.case.id == case.id && known.case.stage.is_same(&case.stage));
        if known.iter().any(|known| known.is_dropped) {
            tracing::debug!(case = case.id, charge = case.charge.txid(), "a notification that operators dropped");
            return Ok(());
        }
        if self.fit_case(group, &case).await? {
            return self.book_deferred(group, case.charge).await;
        }
        if !known.iter().any(|known| known.id.is_some() && !known.has_ended) {
            log_unfit(&case);
            let RailCase { id: case, charge, amount, due_at, stage, .. } = case;
            let id = Some(self.new_id(group)?);
            self.note_deferral(group, Event::CaseDeferred { charge, case, amount, due_at, stage, id }).await?;
        }
        Ok(())
    }

    async fn note_deferral(&self, group: GroupNumber, event: Event) -> Result<()> {
        let permit = self.admission.take(INSIDE_BYTES).await;
        self.command(group, MerchantCommand::DeferCase(Box::new(event)), permit).await.map(drop)
    }

    /// Books what waits of a charge's cases, as far as it fits now.
    async fn book_deferred(&self, group: GroupNumber, charge: ObjectId) -> Result<()> {
        let mut waiting = self.deferred_cases(charge)?;
        waiting.retain(|deferred| !deferred.has_ended);
        let mut before = usize::MAX;
        while waiting.len() < before {
            before = waiting.len();
            for deferred in std::mem::take(&mut waiting) {
                if !self.fit_case(group, &deferred.case).await? {
                    waiting.push(deferred);
                } else if let Some(id) = deferred.id {
                    self.note_deferral(group, Event::DeferredCaseEnded { id, charge }).await?;
                }
            }
        }
        Ok(())
    }

    /// Books, once a minute, what waits and fits since operators have opened or decided a dispute.
    async fn book_deferred_cases(&self) {
        let mut tried = BTreeMap::new();
        loop {
            for shard in self.shards.owned() {
                let is_wanted = |item: &WaitingItem| matches!(item.what, WaitingKind::Rail { .. });
                let found = shard.read_model().waiting(is_wanted, |_| (), usize::MAX);
                for item in found.items.into_iter().take_while(|_| !self.admission.is_closed()) {
                    if let Err(error) = self.try_deferred(item.id, &mut tried).await {
                        tracing::warn!(id = %item.id.uuid(), %error, "a notification that waits is tried again");
                    }
                }
            }
            sleep(CASES_EVERY).await;
        }
    }

    /// Tries a notification that waits, unless nothing of its charge has changed since the last
    /// try.
    async fn try_deferred(&self, id: ObjectId, tried: &mut BTreeMap<ObjectId, usize>) -> Result<()> {
        let Some((RailCase { charge, .. }, _)) = self.deferred_case(id)? else { return Ok(()) };
        let group = self.ids().group(charge);
        let shard = self.serving_shard(group)?;
        let _one_at_a_time = shard.house.lock().await;
        let records = self.records_about(charge)?.len();
        if tried.get(&id) != Some(&records) {
            self.book_deferred(group, charge).await?;
            tried.insert(id, records);
        }
        Ok(())
    }

    /// A notification that waits, by its item of the queue, and what would make it fit.
    pub fn deferred_case(&self, id: ObjectId) -> Result<Option<(RailCase, CaseNeed)>> {
        let is_it = |deferred: &DeferredCase| deferred.id == Some(id) && !deferred.has_ended;
        let Some(DeferredCase { case, .. }) = self.deferred_cases(id)?.into_iter().find(is_it) else {
            return Ok(None);
        };
        let is_lost = |dispute: &Dispute| {
            is_of(dispute, &case.id) && matches!(dispute.decision, DisputeDecision::Accepted { .. })
        };
        let need = match case.stage {
            CaseStage::Won(_) if self.disputes_of(case.charge)?.iter().any(is_lost) => CaseNeed::Decision,
            CaseStage::Won(_) => CaseNeed::Acceptance,
            CaseStage::Debited(_) if self.disputes_of(case.charge)?.iter().all(|of| !is_of(of, &case.id)) => {
                CaseNeed::Decision
            }
            CaseStage::Open | CaseStage::Debited(_) | CaseStage::Released => CaseNeed::Reversal,
        };
        Ok(Some((case, need)))
    }

    /// Books what is new of a case; false where it does not fit the disputes of its charge.
    async fn fit_case(&self, group: GroupNumber, case: &RailCase) -> Result<bool> {
        let Some(facts) = self.charge_facts(case.charge)? else {
            // Money that was taken for a charge that is not paid is an operator's.
            return Ok(!matches!(case.stage, CaseStage::Debited(_)));
        };
        let disputes = self.disputes_of(case.charge)?;
        // A case that was debited again has a dispute for each time.
        let own = disputes.iter().rfind(|dispute| is_of(dispute, &case.id)).cloned();
        Ok(match (&case.stage, own) {
            (CaseStage::Open, Some(_)) | (CaseStage::Released, None) => true,
            (CaseStage::Open, None) => self.open_case(group, &facts, case, None).await?.is_some(),
            (CaseStage::Released, Some(dispute)) => self.release_case(group, facts, &dispute).await.map(|()| true)?,
            (CaseStage::Won(stamp), _) => self.win_case(facts, disputes, case, stamp.clone()).await?,
            (CaseStage::Debited(stamp), own) => self.book_debit(group, facts, (disputes, own), case, stamp).await?,
        })
    }

    /// Books that a rail has taken the money of a case; false where it was taken and is not back.
    async fn book_debit(
        &self,
        group: GroupNumber,
        facts: ChargeFacts,
        (disputes, own): (Vec<Dispute>, Option<Dispute>),
        case: &RailCase,
        stamp: &RailStamp,
    ) -> Result<bool> {
        let debits = self.booked_cases(case.charge, |event| match event {
            Event::AcceptanceConfirmed { id, .. } => Some(*id),
            _ => None,
        })?;
        if debits.iter().any(|(_, debit)| debit.as_ref() == Some(&stamp.id)) {
            return Ok(true);
        }
        let confirmed = |dispute: &Dispute| debits.iter().find(|(id, _)| *id == dispute.id);
        // An operator may have opened it before the rail reported it.
        let is_like = |dispute: &&Dispute| {
            (case.is_debit_alone || dispute.case.is_none())
                && confirmed(dispute).is_none()
                && may_be_debited(dispute, case)
        };
        let known = own.or_else(|| disputes.iter().find(is_like).cloned());
        // One that was won before its debit was booked still waits for that.
        let is_over = |dispute: &Dispute| {
            is_back(dispute)
                && (confirmed(dispute).is_some() || !matches!(dispute.decision, DisputeDecision::Reversed { .. }))
        };
        let dispute = match known {
            Some(dispute) if is_over(&dispute) => self.open_case(group, &facts, case, Some(stamp)).await?,
            Some(dispute) => match confirmed(&dispute) {
                // Two operators have said so before.
                Some((_, None)) if stamp.id == case.id => return Ok(true),
                Some(_) => None,
                None => Some(dispute),
            },
            None => self.open_case(group, &facts, case, None).await?,
        };
        match dispute {
            Some(dispute) => self.debit_case(group, facts, (&dispute, case), stamp.clone()).await,
            None => Ok(false),
        }
    }

    /// What acquirers have said of cases before its time: those of a charge, or that of an item of
    /// the queue.
    fn deferred_cases(&self, id: ObjectId) -> Result<Vec<DeferredCase>> {
        let mut deferred: Vec<DeferredCase> = Vec::new();
        for event in self.records_about(id)?.into_iter().flat_map(|record| record.events) {
            match event {
                Event::CaseDeferred { charge, case, amount, due_at, stage, id } => {
                    // The bank's text is stored sealed alone, with a dispute: this one has its case
                    // instead.
                    let reason = case.clone();
                    let case = RailCase { id: case, charge, amount, reason, due_at, stage, is_debit_alone: false };
                    deferred.push(DeferredCase { id, case, has_ended: false, is_dropped: false });
                }
                // The word of two operators stands behind the end that it brings.
                Event::DeferredCaseEnded { id, .. } | Event::RailWordGiven { id, .. } => {
                    let its = deferred.iter_mut().filter(|one| one.id == Some(id));
                    its.for_each(|one| (one.is_dropped, one.has_ended) = (one.has_ended, true));
                }
                _ => {}
            }
        }
        Ok(deferred)
    }

    /// Opens the dispute of a case; `None` if it cannot be, which the log says. `again` is the
    /// debit of a case whose dispute before was released or won.
    async fn open_case(
        &self,
        group: GroupNumber,
        facts: &ChargeFacts,
        case: &RailCase,
        again: Option<&RailStamp>,
    ) -> Result<Option<Dispute>> {
        let (id, now) = (self.new_id(group)?, self.now());
        let (what, named) = again.map_or(("rail-case", &case.id), |stamp| ("rail-case-again", &stamp.id));
        let key = self.keyring.fingerprint(what, &[&case.charge.0.to_be_bytes(), named.as_bytes()]);
        let is_card = facts.terms.method.is_card();
        let opened = OpenDispute {
            id,
            facts: facts.clone(),
            kind: if is_card { DisputeKind::Chargeback } else { DisputeKind::Med },
            amount: case.amount,
            reason: self.keyring.seal_value(SealedFor::reason(id), now, &FreeText::from(case.reason.clone()))?,
            case: Some(DisputeCase { id: case.id.clone(), due_at: case.due_at, key }),
        };
        let permit = self.admission.take(INSIDE_BYTES).await;
        let command = MerchantCommand::OpenDispute(Box::new(opened));
        match self.command_once(group, key, command, CommandContext::from(permit)).await? {
            Outcome::Recorded(record) => Ok(Dispute::made_by(&record)),
            Outcome::Refused(rejection) => {
                tracing::error!(?rejection, case = case.id, charge = case.charge.txid(), "a case is not booked");
                Ok(None)
            }
            Outcome::Unchanged => Ok(None),
            Outcome::KeyTaken => Err(Unavailable::OutcomeUnknown),
        }
    }

    async fn release_case(&self, group: GroupNumber, facts: ChargeFacts, dispute: &Dispute) -> Result<()> {
        if dispute.decision != DisputeDecision::Open {
            return Ok(());
        }
        let permit = self.admission.take(INSIDE_BYTES).await;
        let command = MerchantCommand::ReleaseDispute { id: dispute.id, facts: Box::new(facts), notes: None };
        self.command(group, command, permit).await.map(drop)
    }

    /// The rail has taken the money: the dispute is accepted, and that is confirmed. False where it
    /// has taken another amount.
    async fn debit_case(
        &self,
        group: GroupNumber,
        facts: ChargeFacts,
        (dispute, case): (&Dispute, &RailCase),
        stamp: RailStamp,
    ) -> Result<bool> {
        let id = dispute.id;
        match dispute.decision {
            DisputeDecision::Accepted { amount, .. } if amount != case.amount => return Ok(false),
            DisputeDecision::Accepted { .. } | DisputeDecision::Released { .. } | DisputeDecision::Reversed { .. } => {}
            DisputeDecision::Open if dispute.amount < case.amount => return Ok(false),
            DisputeDecision::Open => {
                let amount = Some(case.amount).filter(|amount| *amount < dispute.amount);
                let permit = self.admission.take(INSIDE_BYTES).await;
                let command = MerchantCommand::AcceptDispute { id, amount, facts: Box::new(facts) };
                if let Outcome::Refused(rejection) = self.command(group, command, permit).await? {
                    tracing::error!(?rejection, case = case.id, "the debit of a case is not booked");
                    return Ok(false);
                }
            }
        }
        let permit = self.admission.take(INSIDE_BYTES).await;
        let context = CommandContext::of_rail(Some(stamp), permit);
        self.command(group, MerchantCommand::ConfirmRepayment { id }, context).await.map(|_| true)
    }

    /// The rail has given back what it had taken for a case: its accepted dispute is reversed.
    /// False where there is none of this amount: nothing is booked.
    async fn win_case(
        &self,
        facts: ChargeFacts,
        disputes: Vec<Dispute>,
        case: &RailCase,
        stamp: RailStamp,
    ) -> Result<bool> {
        let reversals = self.booked_cases(case.charge, |event| match event {
            Event::DisputeReversed { id, .. } => Some(*id),
            _ => None,
        })?;
        if reversals.iter().any(|(_, won)| won.as_ref() == Some(&stamp.id)) {
            return Ok(true);
        }
        let is_own = |id| disputes.iter().any(|dispute| dispute.id == id && is_of(dispute, &case.id));
        let was_said = reversals.iter().any(|(id, won)| won.is_none() && is_own(*id));
        let is_lost = |dispute: &Dispute| matches!(dispute.decision, DisputeDecision::Accepted { amount, .. } if amount == case.amount);
        let (own, other): (Vec<_>, Vec<_>) = disputes.into_iter().partition(|dispute| is_of(dispute, &case.id));
        // An acquirer may name the case anew: then it is the only lost one of the charge.
        let are_back = own.iter().all(is_back);
        // Two operators have said so before. Where the case was lost again since, they say whether
        // it is won again.
        if was_said {
            return Ok(are_back);
        }
        let mut lost: Vec<_> = own.into_iter().filter(is_lost).collect();
        if lost.is_empty() && are_back {
            lost = other.into_iter().filter(is_lost).collect();
        }
        let (Some(dispute), true) = (lost.pop(), lost.is_empty()) else {
            return Ok(false);
        };
        let context = CommandContext::of_rail(Some(stamp), self.admission.take(INSIDE_BYTES).await);
        match self.reverse_dispute(dispute, facts, None, context).await? {
            Outcome::KeyTaken => Err(Unavailable::OutcomeUnknown),
            _ => Ok(true),
        }
    }

    /// Has a merchant book that an accepted dispute was won, or what an operator does about the
    /// entry that says so. A dispute is reversed once for ever.
    pub async fn reverse_dispute(
        &self,
        dispute: Dispute,
        facts: ChargeFacts,
        command: Option<AdjustmentCommand>,
        context: CommandContext,
    ) -> Result<Outcome> {
        let group = self.ids().group(dispute.id);
        let is_request = matches!(command, Some(AdjustmentCommand::Request { .. }));
        let reversal = self.reversal(dispute, facts, command);
        let key = reversal.key;
        let command = MerchantCommand::ReverseDispute(Box::new(reversal));
        match is_request {
            true => self.command(group, command, context).await,
            false => self.command_once(group, key, command, context).await,
        }
    }

    /// The reversal of a dispute, with the key that counts once.
    pub fn reversal(&self, dispute: Dispute, facts: ChargeFacts, command: Option<AdjustmentCommand>) -> ReverseDispute {
        let key = self.keyring.fingerprint("dispute-reversed", &[&dispute.id.0.to_be_bytes()]);
        ReverseDispute { dispute, facts, key, command }
    }

    /// The disputes of a charge that events name, each with the rail's id of the Record.
    fn booked_cases(
        &self,
        charge: ObjectId,
        of: fn(&Event) -> Option<ObjectId>,
    ) -> Result<Vec<(ObjectId, Option<String>)>> {
        let mut booked = Vec::new();
        for record in self.records_about(charge)? {
            let named = record.events.iter().filter_map(of);
            booked.extend(named.map(|id| (id, record.rail.as_ref().map(|rail| rail.id.clone()))));
        }
        Ok(booked)
    }

    /// The disputes of a charge, as they stand.
    pub fn disputes_of(&self, charge: ObjectId) -> Result<Vec<Dispute>> {
        let mut disputes: Vec<Dispute> = Vec::new();
        for record in self.records_about(charge)? {
            disputes.iter_mut().for_each(|dispute| dispute.follow(&record));
            disputes.extend(Dispute::made_by(&record).filter(|dispute| dispute.charge == charge));
        }
        Ok(disputes)
    }
}

fn log_unfit(case: &RailCase) {
    tracing::error!(case = case.id, charge = case.charge.txid(), amount = %case.amount, stage = ?case.stage, "a rail's case does not fit the disputes of its charge");
}

/// Whether a dispute is that of a rail's case.
fn is_of(dispute: &Dispute, case: &str) -> bool {
    dispute.case.as_ref().is_some_and(|own| own.id == case)
}

/// Whether a debit may be that of a dispute without a case.
fn may_be_debited(dispute: &Dispute, case: &RailCase) -> bool {
    match dispute.decision {
        DisputeDecision::Open => dispute.amount >= case.amount,
        DisputeDecision::Accepted { amount, .. } => amount == case.amount,
        DisputeDecision::Released { .. } | DisputeDecision::Reversed { .. } => false,
    }
}

/// Whether the seller has the money of a decided dispute.
fn is_back(dispute: &Dispute) -> bool {
    matches!(dispute.decision, DisputeDecision::Released { .. } | DisputeDecision::Reversed { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_a_case_of_no_charge_once() {
        let name = RailName::parse("bridge").unwrap();
        let rail = CaseRail { name: &name, is_card: false, listed: Mutex::default() };
        assert_eq!(["MED-1", "MED-1", "MED-2", "MED-1"].map(|case| rail.is_new(case)), [true, false, true, false]);
    }
}
