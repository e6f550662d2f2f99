//! House ledger: entries that one operator asks for and another approves, and the closing of
//! months. It has no actor: its commands are carried out one at a time. So are those on returns of
//! withdrawals, which recipients decide, since nothing is booked into a closed month by hand.

use std::sync::Arc;

use ledger::adjustment::{Adjustment, AdjustmentCommand, AdjustmentTerms};
use ledger::asked_entry::{AskedEntry, EntryDecision, EntryTerms};
use ledger::erasure::{ERASURES, Erasure};
use ledger::house::{HouseCommand, HouseEntry, HouseEntryTerms};
use ledger::period::{MonthEnd, Period, month_notes_id, period_id};
use ledger::withdrawal_return::ReturnCommand;
use ledger::{
    Balance, Decision, Event, Fingerprint, GroupNumber, LedgerId, MerchantCommand, Month, Object, ObjectId,
    RecipientCommand, Record, Rejection, Requester,
};

use super::outcome::CommandContext;
use super::reads::{Records, records_of};
use super::shard::Shard;
use super::{Engine, INSIDE_BYTES, Result, Unavailable};
use crate::resident::Outcome;
use derived::balance_files::SumOfKind;
use derived::checkpoint::digest_of;
use derived::extents::HOUSE;
use derived::records::{LoadError, may_wait};
use store::{BlockHash, Partition, Position, Sequence};

impl Engine {
    /// Books that an operator reads tax ids of merchants in a report. The Record is durable when
    /// this returns: nobody reads them without it.
    pub async fn note_tax_ids_read(&self, what: String, context: impl Into<CommandContext>) -> Result<Arc<Record>> {
        self.record_of_house(|| Decision::of(Event::PersonalDataRead { what }), context.into()).await
    }

    /// Books that an operator looks up what is stored of the person with this digest. The Record is
    /// durable when this returns.
    pub async fn note_person_looked_up(
        &self,
        document: Fingerprint,
        context: impl Into<CommandContext>,
    ) -> Result<Arc<Record>> {
        self.record_of_house(|| Decision::of(Event::PersonLookedUp { document }), context.into()).await
    }

    /// Writes an operator's note on a month. The outcome leaves when it is durable.
    pub async fn note_month(&self, month: Month, text: String, context: impl Into<CommandContext>) -> Result<Outcome> {
        let object = month_notes_id(month);
        self.alone_in_house(context.into(), async { Ok(Ok(Decision::of(Event::NoteWritten { object, text }))) }).await
    }

    /// The Records with notes on a month, oldest first.
    pub fn month_notes(&self, month: Month) -> Result<Records, LoadError> {
        let house = self.house_shard();
        Ok(records_of(&house, may_wait(|| house.read_model().about(month_notes_id(month)))?))
    }

    /// Asks for an erasure of personal data, or decides it when another operator asked before. The
    /// outcome leaves when it is durable; [`Engine::drop_erased_keys`] follows.
    pub async fn erase_through(&self, through: Month, context: impl Into<CommandContext>) -> Result<Outcome> {
        let context = context.into();
        let by = operator_of(&context).to_owned();
        let decided = async {
            let erasures = self.erasures()?;
            let asked = erasures.iter().find(|erasure| erasure.through == through);
            Ok(Erasure::decide(through, asked, &by))
        };
        self.alone_in_house(context, decided).await
    }

    /// Takes back a request for an erasure; `None` where nobody asked for it.
    pub async fn withdraw_erasure(
        &self,
        through: Month,
        context: impl Into<CommandContext>,
    ) -> Result<Option<Outcome>> {
        let asked = || Ok::<_, Unavailable>(self.erasures()?.into_iter().find(|erasure| erasure.through == through));
        if asked()?.is_none() {
            return Ok(None);
        }
        let decided = async {
            let asked = asked()?.ok_or(Rejection::HouseEntryAlreadyDecided);
            Ok(asked.and_then(|asked| Erasure::withdraw(through, &asked)))
        };
        self.alone_in_house(context.into(), decided).await.map(Some)
    }

    /// Carries out what operators do to the house, one after the other: the Record of the command
    /// before is published, so that its effect and its key are found.
    async fn alone_in_house(
        &self,
        context: CommandContext,
        decided: impl Future<Output = Result<Result<Decision, Rejection>>>,
    ) -> Result<Outcome> {
        let house = self.house_shard();
        let _one_at_a_time = house.house.lock().await;
        if self.is_key_taken(LedgerId::System, &context)? {
            return Ok(Outcome::KeyTaken);
        }
        match decided.await? {
            Ok(decision) => Ok(Outcome::Recorded(self.record_of_house(|| decision, context).await?)),
            Err(rejection) => Ok(Outcome::Refused(rejection)),
        }
    }

    /// The erasures of personal data, in the order in which they were asked for.
    pub fn erasures(&self) -> Result<Vec<Erasure>, LoadError> {
        may_wait(|| {
            let (house, mut erasures) = (self.house_shard(), Vec::new());
            for sequence in house.read_model().about(ERASURES)? {
                Erasure::follow(&mut erasures, &house.record(sequence)?);
            }
            Ok(erasures)
        })
    }

    /// The months whose keys are stored, counted from January 1970, oldest first.
    pub fn sealed_months(&self) -> Result<Vec<u16>, LoadError> {
        Ok(may_wait(|| self.keyring.months())?)
    }

    /// Drops the keys of the months that were erased; what was dropped before is passed over.
    pub async fn drop_erased_keys(&self) -> Result<()> {
        let erased = self.erasures()?.into_iter().filter(|erasure| erasure.done.is_some());
        if let Some(through) = erased.map(|erasure| erasure.through).max() {
            may_wait(|| self.keyring.erase_through(through)).map_err(LoadError::from)?;
        }
        Ok(())
    }

    /// Forgets the keys that another process has dropped, where this one does not read of it.
    pub fn forget_dropped_keys(&self) -> Result<(), LoadError> {
        if !self.serves_house() {
            may_wait(|| self.keyring.forget_dropped())?;
        }
        Ok(())
    }

    /// Sets the company's chart of accounts: the text of a map that was checked.
    pub async fn set_chart(&self, map: String, context: impl Into<CommandContext>) -> Result<Arc<Record>> {
        self.record_of_house(|| Decision::of(Event::ChartOfAccountsSet { map }), context.into()).await
    }

    /// The map to the company's chart of accounts, as it was set last.
    pub fn chart(&self) -> Option<String> {
        self.house_shard().read_model().house(|house| house.chart.clone())
    }

    /// Carries out a command of an operator on the house ledger. The outcome leaves when it is
    /// durable. `may_repeat`: an entry may have the reference of another one.
    pub async fn command_house(
        &self,
        command: HouseCommand,
        may_repeat: bool,
        context: impl Into<CommandContext>,
    ) -> Result<Outcome> {
        let decided = async {
            let house = self.house_shard();
            if let HouseCommand::Request { terms, .. } = &command
                && !may_repeat
                && let Some(entry) = first_with_reference(&house, &terms.reference)?
            {
                return Ok(Err(Rejection::ReferenceRepeated { entry }));
            }
            let entry: Option<HouseEntry> = house.object(command.id())?;
            Ok(command.decide(entry.as_ref(), house.read_model().last_closed()))
        };
        self.alone_in_house(context.into(), decided).await
    }

    /// Carries out a command of an operator on a credit of the house to a merchant or one of its
    /// recipients. The outcome leaves when it is durable. `may_repeat`: a credit may have the
    /// reference of another one of this merchant and its recipients.
    pub async fn command_credit(
        &self,
        group: GroupNumber,
        command: AdjustmentCommand,
        may_repeat: bool,
        context: impl Into<CommandContext>,
    ) -> Result<Outcome> {
        let (shard, merchant, context) = (self.serving_shard(group)?, LedgerId::Merchant(group), context.into());
        // Two requests with one reference come one after the other.
        let _one_at_a_time = shard.house.lock().await;
        if self.is_key_taken(merchant, &context)? {
            return Ok(Outcome::KeyTaken);
        }
        if let AdjustmentCommand::Request { terms, .. } = &command
            && !may_repeat
            && let Some(entry) =
                first_asked(&shard, AdjustmentTerms::reference_id(&terms.reference), |asked: &Adjustment| {
                    asked.owner == merchant && asked.terms.reference == terms.reference
                })?
        {
            return Ok(Outcome::Refused(Rejection::ReferenceRepeated { entry }));
        }
        self.command(group, MerchantCommand::Adjust(command), context).await
    }

    /// Whether another request used up the idempotency key meanwhile.
    fn is_key_taken(&self, owner: LedgerId, context: &CommandContext) -> Result<bool> {
        let found = context.key.as_ref().map(|key| self.find_key(owner, key.idempotency.key)).transpose()?;
        Ok(found.is_some_and(|found| found.sequence.is_some()))
    }

    /// Carries out a command of an operator on the return of a recipient's withdrawal, which the
    /// recipient decides. The outcome leaves when it is durable.
    pub async fn command_return(
        &self,
        recipient: LedgerId,
        command: ReturnCommand,
        context: impl Into<CommandContext>,
    ) -> Result<Outcome> {
        // No month is closed in the recipient's partition between the look at its last closed one
        // and the booking.
        let shard = self.serving_shard_of(recipient)?;
        let _one_at_a_time = shard.house.lock().await;
        let closed = shard.read_model().last_closed();
        self.command_recipient(recipient, RecipientCommand::EnterReturn { command, closed }, context).await
    }

    /// Asks to close a month, or closes it when another operator asked before. The outcome leaves
    /// when it is durable.
    pub async fn close_period(&self, month: Month, context: impl Into<CommandContext>) -> Result<Outcome> {
        let context = context.into();
        let by = operator_of(&context).to_owned();
        let decided = async {
            let period = self.period(month)?;
            let closed = self.house_shard().read_model().last_closed();
            let decide = |end| Period::close(month, (period.as_ref(), closed), (&by, self.now()), end);
            // The month's end is read only for a request that will not be refused.
            let not_read = MonthEnd { through: 0, head: [0; 32].into(), totals: [0; 32].into() };
            match decide(not_read) {
                Ok(_) if period.is_some() => {
                    self.close_in_other_partitions(month).await?;
                    Ok(decide(may_wait(|| self.house_shard().end_of(month))?))
                }
                decided => Ok(decided),
            }
        };
        self.alone_in_house(context, decided).await
    }

    /// A month that was closed, or that an operator asked to close; none otherwise. A month that
    /// was closed with a later one is none.
    pub fn period(&self, month: Month) -> Result<Option<Period>, LoadError> {
        self.house_shard().object(period_id(month))
    }

    /// The months that were closed, in order, each with the Record of the house that closed it.
    pub fn closed_periods(&self) -> Vec<(Month, Position)> {
        self.house_shard().closed_periods()
    }

    /// The months that were closed, in order, each with the Record that closed it in its partition,
    /// partition by partition.
    pub fn closings(&self) -> Vec<(Month, Position)> {
        self.shards.all().iter().flat_map(|shard| shard.closed_periods()).collect()
    }

    /// Closes a month in each partition but that of the house, whose Record comes last: only then
    /// the month is closed. A partition that closed it before, in a try that was cut, is passed
    /// over. These Records name no operator; that of the house does.
    async fn close_in_other_partitions(&self, month: Month) -> Result<()> {
        let house = self.extents.partition_of(HOUSE);
        for partition in self.extents.all().filter(|partition| *partition != house) {
            match self.close_in(partition, month).await {
                Err(Unavailable::Elsewhere(_)) => self.others_than(partition)?.close_month(partition, month).await?,
                closed => closed?,
            }
        }
        Ok(())
    }

    /// Closes a month in a partition of this process, unless it is closed there. The month is only
    /// closed once the house has closed it.
    pub async fn close_in(&self, partition: Partition, month: Month) -> Result<()> {
        let shard = self.shards.serving(partition).ok_or(Unavailable::Elsewhere(partition))?;
        // Waits for an entry that was decided before.
        let _one_at_a_time = shard.house.lock().await;
        if shard.read_model().last_closed().is_some_and(|closed| month <= closed) {
            return Ok(());
        }
        let end = may_wait(|| shard.end_of(month))?;
        let permit = self.admission.take(INSIDE_BYTES).await;
        let closed = || Decision::of(Event::PeriodClosed { month, end });
        shard.record_of_system(closed, self.now(), CommandContext::from(permit)).await.map(drop)
    }
}

impl Shard {
    /// The months that were closed in its partition, in order, each with the Record that closed it.
    fn closed_periods(&self) -> Vec<(Month, Position)> {
        let placed = |(month, by): &(Month, u64)| (*month, self.position(Sequence(*by)));
        self.read_model().house(|house| house.closed.iter().map(placed).collect())
    }

    /// What the partition's journal held at the end of a month that is over.
    fn end_of(&self, month: Month) -> Result<MonthEnd, LoadError> {
        let through = self.last_booked_before(month.next().begin())?;
        let block = if through < Sequence::FIRST { None } else { self.part().blocks(through).next().transpose()? };
        let head = block.map_or(BlockHash::ZERO, |block| block.hash());
        let mut totals = Vec::new();
        for SumOfKind { account, balance, .. } in self.balance_files.sums_as_of(through)?.kinds {
            let code = usize::from(account.code().0);
            totals.resize(totals.len().max(code + 1), Balance::default());
            totals[code] = balance;
        }
        let totals = digest_of(&totals).into();
        Ok(MonthEnd { through: through.0, head: head.0.into(), totals })
    }
}

/// The first entry of the house ledger with a reference that was not rejected.
pub(super) fn first_with_reference(house: &Shard, reference: &str) -> Result<Option<ObjectId>, LoadError> {
    first_asked(house, HouseEntryTerms::reference_id(reference), |entry: &HouseEntry| {
        entry.terms.reference == reference
    })
}

/// The first entry under an id of its reference that is one of those and was not rejected.
fn first_asked<T: EntryTerms>(
    shard: &Shard,
    about: ObjectId,
    is_one: impl Fn(&AskedEntry<T>) -> bool,
) -> Result<Option<ObjectId>, LoadError> {
    may_wait(|| {
        for sequence in shard.read_model().about(about)? {
            let Some(asked) = AskedEntry::made_by(&shard.record(sequence)?).filter(&is_one) else { continue };
            let entry: Option<AskedEntry<T>> = shard.object(asked.id)?;
            if !entry.is_some_and(|entry| matches!(entry.decision, EntryDecision::Rejected { .. })) {
                return Ok(Some(asked.id));
            }
        }
        Ok(None)
    })
}

/// The operator who asks; nobody for a command of the service itself.
pub(super) fn operator_of(context: &CommandContext) -> &str {
    match &context.requester {
        Some(Requester::Operator(name)) => name.as_str(),
        Some(Requester::ApiKey(_) | Requester::Rail(_)) | None => "",
    }
}
