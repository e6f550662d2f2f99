//! Schedule: once a second it looks for pending money, drafts, unanswered charges, cashouts,
//! subscriptions and withdrawals that are due, and asks the acquirer for its batches. It reconciles
//! a charge without an outcome by asking its rail. The sandbox clock makes the same items fall due
//! in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ledger::{
    Decision, Event, GroupNumber, LedgerId, MerchantCommand, MerchantState, ObjectId, OpenCharge, RailName,
    RecipientState, Record, Timestamp,
};

use super::inquiry_times::{Inquiry, OldestUnknown, OrderFate, note_older};
use super::outcome::CommandContext;
use super::rail_queue::RailWork;
use super::shard::Shard;
use super::{Engine, INSIDE_BYTES, RECONCILED_AT_ONCE, Result, TRY_AGAIN_AFTER_MS, read};

/// How many ledgers are asked at once for what is due.
const DUE_AT_ONCE: usize = 256;
/// Looks at what is due before the clock goes on, while commands make more of it.
const LOOKS_AT_ONE_TIME: u32 = 16;
/// How many drafts are submitted in one go.
const DRAFTS_AT_ONCE: usize = 256;

impl Engine {
    /// Looks every second for what is due and submits drafts; beside that, so that none waits for
    /// another, puts idle actors to sleep, stores the read model, asks the rails, reads the
    /// acquirer's batches and books late answers. Runs until it is dropped.
    pub async fn run_schedule(&self) {
        self.measure_oldest_unknown(self.now());
        let memory = async { tokio::join!(self.free_memory(), self.keep_read_models()) };
        tokio::join!(self.sweep(), memory, self.ask_rails(), self.read_batches(), self.book_late_answers());
    }

    /// Books the acquirer's batches. A sandbox's are booked by its clock, with what falls due.
    async fn read_batches(&self) {
        if self.shard_options.is_sandbox {
            return;
        }
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if !self.admission.is_closed() {
                self.book_batches(&mut *self.batches.lock().await, self.now()).await;
            }
        }
    }

    async fn sweep(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.clock.follow(self.store.ahead_ms());
            self.look_before_writing();
            if !self.admission.is_closed() {
                self.prepare_keys(self.now()).await;
                let _in_order = self.falling_due.lock().await;
                self.fall_due(self.now()).await;
            }
        }
    }

    /// Every second: puts actors to sleep, packs merchants that rest, and wakes the threads that
    /// make balance files.
    async fn free_memory(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let (shards, idle, awake_max) = (self.shards.owned(), self.idle, self.awake_max);
            // It looks at every actor, which takes some 100 ms of 100,000.
            let _panicked = tokio::task::spawn_blocking(move || sleep_unused(&shards, idle, awake_max)).await;
            for shard in self.shards.owned() {
                let read_model = shard.read_model();
                read_model.rest();
                shard.inquiries.forget_due(self.now());
                shard.balance_files.wake(shard.published(), read_model.clock_at());
            }
        }
    }

    /// Stores pages of the read model that changed, so that the next start reads less of the
    /// journal. A page of each of a million merchants takes minutes beside charges.
    async fn keep_read_models(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            for shard in self.shards.owned() {
                if !self.admission.is_closed() && shard.read_model().wants_keeping() {
                    shard.keep_read_model().await;
                }
            }
        }
    }

    /// Moves the sandbox clock forward. Items that fall due on the way are booked one after the
    /// other, each at its own time, before this returns. Gives the time at which the move was
    /// recorded. The context's key, if there is one, binds the request to that Record.
    pub async fn advance_clock(&self, by: Duration, context: impl Into<CommandContext>) -> Result<Timestamp> {
        let context = context.into();
        let _in_order = self.falling_due.lock().await;
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        let target = self.now().plus_ms(by_ms);
        self.look_before_writing();
        if self.admission.is_closed() {
            return Err(self.refusal());
        }
        self.step_to(target).await?;
        if self.rails.payout.get(None).is_some()
            && let Err(error) = self.look_for_returns(None).await
        {
            tracing::warn!(%error, "returned transfers can't be read now");
        }
        let moved = self.record_clock(context).await?;
        self.keep_clock()?;
        Ok(moved)
    }

    /// Moves the sandbox clock forward as [`Engine::advance_clock`] does, for the process that
    /// records the move.
    pub async fn step_clock(&self, target: Timestamp) -> Result<()> {
        let _in_order = self.falling_due.lock().await;
        // What is due by this process's own clock, which may be ahead, has happened too.
        self.step_to(target.max(self.now())).await
    }

    /// Moves this process's clock to a time. What becomes due by commands that go on meanwhile is
    /// attended to on the way, and does not keep the clock from going on: the rest of it waits for
    /// the next look.
    async fn step_to(&self, target: Timestamp) -> Result<()> {
        self.submit_drafts().await;
        let mut looks = 0;
        loop {
            let asks = self.rails.card.has_any() && self.serves_house();
            let batch = if asks { Some(self.batches.lock().await.ask_at) } else { None };
            let now = self.now();
            let due = if looks < LOOKS_AT_ONE_TIME { self.first_due() } else { self.first_due_after(now) };
            let Some(due) = due.into_iter().chain(batch).min().filter(|due| *due <= target) else { break };
            looks = if due <= now { looks + 1 } else { 0 };
            if batch == Some(due) {
                // A batch has lines of all merchants, which book them at their processes' time.
                self.step_others(due).await?;
            }
            self.prepare_keys(due).await;
            self.clock.advance_to(due);
            self.fall_due(self.now()).await;
        }
        self.step_others(target).await?;
        self.prepare_keys(target).await;
        self.clock.advance_to(target);
        Ok(())
    }

    /// Moves the clocks of the other processes, if this one has the house.
    async fn step_others(&self, target: Timestamp) -> Result<()> {
        match self.others.get().filter(|_| self.serves_house()) {
            Some(others) => others.step_clock(target).await,
            None => Ok(()),
        }
    }

    /// Makes the keys that seal personal data at `at`, on a thread that may wait for the disk.
    pub(super) async fn prepare_keys(&self, at: Timestamp) {
        if self.keyring.is_prepared(at) {
            return;
        }
        // Of an erasure that a crash cut off before its keys were dropped.
        if self.serves_house()
            && let Err(error) = self.drop_erased_keys().await
        {
            tracing::warn!(%error, "keys of personal data that was erased could not be dropped");
        }
        let keyring = Arc::clone(&self.keyring);
        let prepared = tokio::task::spawn_blocking(move || keyring.prepare(at)).await;
        if let Ok(Err(error)) = prepared {
            tracing::warn!(%error, "the next key of personal data was not made; it is made when it is needed");
        }
    }

    /// Attends to every ledger that is due at `now`, until none is. Waits for no rail but a
    /// sandbox's.
    async fn fall_due(&self, now: Timestamp) {
        self.submit_drafts().await;
        if self.shard_options.is_sandbox {
            self.book_batches(&mut *self.batches.lock().await, now).await;
        }
        let lag_ms = self.first_due().map_or(0, |first| (now.0 - first.0).max(0));
        self.metrics.due_lag_seconds.set(lag_ms / 1000);
        loop {
            let most = DUE_AT_ONCE.div_ceil(self.shards.len());
            let shards = self.shards.owned();
            let due = shards.iter().flat_map(|shard| shard.read_model().dues().lock().take_due(now, most));
            let due: Vec<LedgerId> = due.collect();
            if due.is_empty() {
                return self.measure_oldest_unknown(now);
            }
            join_all(due.into_iter().map(|ledger| self.attend_or_queue(ledger, now))).await;
        }
    }

    /// When the first ledger of all shards is due.
    fn first_due(&self) -> Option<Timestamp> {
        self.shards.owned().iter().filter_map(|shard| shard.read_model().dues().lock().first()).min()
    }

    /// When the first ledger of all shards is due after `now`.
    fn first_due_after(&self, now: Timestamp) -> Option<Timestamp> {
        let shards = self.shards.owned();
        shards.iter().filter_map(|shard| shard.read_model().dues().lock().first_after(now)).min()
    }

    /// Attends to a ledger. What it has to ask rails about waits in their queue.
    async fn attend_or_queue(&self, ledger: LedgerId, now: Timestamp) {
        if self.shard_options.is_sandbox || !self.rails.has_any() {
            return self.attend(ledger, now).await;
        }
        match self.book_due(ledger).await {
            Ok((next_due, work)) => {
                let waits_for_transfer = work.contains(&RailWork::Withdrawals);
                work.into_iter().for_each(|work| self.rail_queue.add(ledger, work));
                // What stays due is looked at in the next sweep; a recipient's transfer says when.
                if !waits_for_transfer {
                    self.answer_due(ledger, next_due.map(|at| at.max(now.plus_ms(1))));
                }
            }
            Err(_) => self.answer_due(ledger, Some(now.plus_ms(TRY_AGAIN_AFTER_MS))),
        }
    }

    /// Has the owner of one ledger book what is due. Gives when it needs attention next, and what
    /// there is to ask rails about now.
    async fn book_due(&self, ledger: LedgerId) -> Result<(Option<Timestamp>, BTreeSet<RailWork>)> {
        let permit = self.admission.take(INSIDE_BYTES).await;
        match ledger {
            LedgerId::Merchant(group) => {
                let inquiries = self.shard(group).inquiries.clone();
                let look = move |books: &MerchantState, now: Timestamp| {
                    (books.next_due(), RailWork::of_merchant(books, &inquiries, now))
                };
                let (next_due, (work, oldest)) = read(&self.shard(group).merchants, ledger, look, permit).await?;
                self.note_oldest_unknown(group, oldest);
                Ok((next_due, work))
            }
            LedgerId::Recipient(..) => {
                let look = |books: &RecipientState, now| {
                    let asks = books.to_send(now).is_some() || !books.returnable().is_empty();
                    (books.next_due(), asks.then_some(RailWork::Withdrawals).into_iter().collect())
                };
                read(&self.shard_of(ledger).recipients, ledger, look, permit).await
            }
            LedgerId::Platform(_) | LedgerId::System => Ok((None, BTreeSet::new())),
        }
    }

    /// Notes when a ledger that was due needs attention next.
    fn answer_due(&self, ledger: LedgerId, next_due: Option<Timestamp>) {
        self.shard_of(ledger).read_model().dues().lock().answered(ledger, next_due);
    }

    /// Has the owner of one ledger book what is due, asks the rails about items that waited too
    /// long, and notes when to look again.
    async fn attend(&self, ledger: LedgerId, now: Timestamp) {
        let attended = match ledger {
            LedgerId::Recipient(..) => self.attend_recipient(ledger, now).await.map(|next_due| (next_due, false)),
            LedgerId::Merchant(group) => self.attend_merchant(group, now).await,
            LedgerId::Platform(_) | LedgerId::System => Ok((None, false)),
        };
        let next_due = match attended {
            // A ledger with more that can be settled is next in line again; one whose rail is
            // silent waits.
            Ok((next_due, has_more)) => {
                let again = if has_more { now } else { now.plus_ms(TRY_AGAIN_AFTER_MS) };
                next_due.map(|at| if at <= now { again } else { at })
            }
            Err(_) => Some(now.plus_ms(TRY_AGAIN_AFTER_MS)),
        };
        self.answer_due(ledger, next_due);
    }

    /// Books what is due of a merchant, then asks its rails. Gives when it needs attention next,
    /// and whether more can be settled now.
    async fn attend_merchant(&self, group: GroupNumber, now: Timestamp) -> Result<(Option<Timestamp>, bool)> {
        let ledger = LedgerId::Merchant(group);
        let (next_due, work) = self.book_due(ledger).await?;
        if work.is_empty() {
            return Ok((next_due, false));
        }
        let mut has_more = false;
        for work in work {
            has_more |= self.ask_rails_about(group, &work, now).await?;
        }
        // Once more: what the rails have settled is unknown no longer.
        let (next_due, _) = self.book_due(ledger).await?;
        Ok((next_due, has_more))
    }

    /// Asks the rails about an entry of the queue until they settle no more of it, and gives the
    /// entry back. Subscriptions that can't be charged, and what fails, wait.
    pub(super) async fn work_off(&self, (ledger, work): (LedgerId, RailWork)) -> (LedgerId, RailWork) {
        let LedgerId::Merchant(group) = ledger else {
            self.attend(ledger, self.now()).await;
            return (ledger, work);
        };
        let mut may_fail = work == RailWork::Subscriptions;
        let has_failed = loop {
            match self.ask_rails_about(group, &work, self.now()).await {
                Ok(true) => may_fail = false,
                Ok(false) => break may_fail,
                Err(_) => break true,
            }
        };
        if has_failed {
            tokio::time::sleep(Duration::from_millis(TRY_AGAIN_AFTER_MS.cast_unsigned())).await;
        }
        (ledger, work)
    }

    /// Asks the rails about one part of what a merchant has to ask. Gives whether more of it can be
    /// settled now.
    async fn ask_rails_about(&self, group: GroupNumber, work: &RailWork, now: Timestamp) -> Result<bool> {
        match work {
            RailWork::Cards(rail) => self.reconcile_all(group, (true, rail), now).await,
            RailWork::Pix(rail) => self.reconcile_all(group, (false, rail), now).await,
            RailWork::Repayments { of_cards } => self.repay_all(group, *of_cards, now).await,
            RailWork::Cashouts => Ok(self.ask_about_cashouts(group, now).await),
            RailWork::Subscriptions => self.bill_due(group).await,
            RailWork::Withdrawals => Ok(false),
        }
    }

    /// Asks a rail what became of the charges of a merchant that wait for it. Gives true when there
    /// may be more to settle.
    async fn reconcile_all(
        &self,
        group: GroupNumber,
        (is_card, rail): (bool, &Option<RailName>),
        now: Timestamp,
    ) -> Result<bool> {
        let (inquiries, rail) = (self.shard(group).inquiries.clone(), rail.clone());
        let look = move |books: &MerchantState, now: Timestamp| {
            let of_rail = books
                .needing_attention(now)
                .filter(|(_, open)| open.terms.method.is_card() == is_card && open.rail == rail);
            let waiting = of_rail.filter(|(id, open)| inquiries.is_time(*id, open.attention_at, now));
            waiting.map(|(id, open)| (id, open.clone())).take(RECONCILED_AT_ONCE).collect::<Vec<_>>()
        };
        let permit = self.admission.take(INSIDE_BYTES).await;
        let waiting = read(&self.shard(group).merchants, LedgerId::Merchant(group), look, permit).await?;
        let inquiries = waiting.iter().map(|(charge, open)| self.ask_about_charge((group, *charge), open, now));
        let ended = join_all(inquiries).await.into_iter().filter(|fate| *fate == OrderFate::Ended).count();
        Ok(ended == RECONCILED_AT_ONCE)
    }

    /// Asks the rail about one charge, and notes the answer.
    pub(super) async fn ask_about_charge(
        &self,
        (group, id): (GroupNumber, ObjectId),
        open: &OpenCharge,
        now: Timestamp,
    ) -> OrderFate {
        let fate = self.reconcile(group, id, open).await.unwrap_or(OrderFate::Unknown);
        let (of_charge, rail, since) = (Some((id, open.terms.amount)), open.rail.clone(), open.attention_at);
        self.shard(group).inquiries.note(id, Inquiry { of_charge, rail, since, at: now, under_way_at: None }, fate);
        fate
    }

    /// Asks the rail of one charge, by our id, what became of it, and books that. No answer changes
    /// nothing, and is an error.
    async fn reconcile(&self, group: GroupNumber, charge: ObjectId, open: &OpenCharge) -> Result<OrderFate> {
        if open.registers_until.is_some_and(|until| until > self.now()) {
            self.register_again(group, charge).await?;
        } else if open.terms.method.is_card() {
            let Some((command, stamp)) = self.end_card(group, charge, open).await? else {
                return Ok(OrderFate::UnderWay);
            };
            let permit = self.admission.take(INSIDE_BYTES).await;
            self.command(group, command, CommandContext::of_rail(stamp, permit)).await?;
        } else {
            let permit = self.admission.take(INSIDE_BYTES).await;
            self.end_pix(group, charge, open.rail.as_ref(), CommandContext::from(permit)).await?;
        }
        Ok(OrderFate::Ended)
    }

    /// Sends drafts to the acquirer for analysis: with a rail, they become pending.
    async fn submit_drafts(&self) {
        if !self.rails.has_any() {
            return;
        }
        for (group, id) in self.shards.owned().iter().flat_map(|shard| shard.read_model().drafts(DRAFTS_AT_ONCE)) {
            let permit = self.admission.take(INSIDE_BYTES).await;
            let _tried_again_next_time = self.command(group, MerchantCommand::SubmitRecipient { id }, permit).await;
        }
    }

    /// Notes since when the oldest charges of a merchant have waited for an answer.
    fn note_oldest_unknown(&self, group: GroupNumber, of_group: OldestUnknown) {
        let mut of_all = self.oldest_unknown.lock();
        match of_group.is_empty() {
            false => drop(of_all.insert(group, of_group)),
            true => drop(of_all.remove(&group)),
        }
    }

    /// Measures how long the oldest charge or cashout of all merchants has waited for an answer of
    /// each rail. One that the rail has under way has its answer.
    fn measure_oldest_unknown(&self, now: Timestamp) {
        let mut oldest: OldestUnknown = self.rails.names().map(|name| (name, now)).collect();
        for (rail, at) in self.oldest_unknown.lock().values().flatten() {
            note_older(&mut oldest, rail, *at);
        }
        self.shards.owned().into_iter().for_each(|shard| shard.inquiries.note_oldest_cashouts(&mut oldest));
        let age = |at: Timestamp| (now.0 - at.0).max(0) / 1_000;
        self.metrics.set_oldest_unknown(&oldest.into_iter().map(|(rail, at)| (rail, age(at))).collect());
    }

    /// Records the sandbox clock's offset.
    async fn record_clock(&self, context: CommandContext) -> Result<Timestamp> {
        let moved = || Decision::of(Event::ClockMoved { offset_ms: self.clock.offset_ms() });
        Ok(self.record_of_house(moved, context).await?.effective_at)
    }

    /// Books a Record for the whole installation in the house ledger of its shard.
    pub(super) async fn record_of_house(
        &self,
        decide: impl FnOnce() -> Decision,
        context: CommandContext,
    ) -> Result<Arc<Record>> {
        self.house_shard().record_of_system(decide, self.now(), context).await
    }

    /// Puts actors to sleep that were not used for `idle`; and of those that are more than
    /// `awake_max` the ones that were used least recently.
    pub fn sleep_idle(&self, idle: Duration) {
        sleep_unused(&self.shards.owned(), idle, self.awake_max);
    }
}

/// See [`Engine::sleep_idle`].
fn sleep_unused(shards: &[Arc<Shard>], idle: Duration, awake_max: usize) {
    let mut uses = Vec::new();
    if shards.iter().map(|shard| shard.actors()).sum::<usize>() > awake_max {
        shards.iter().for_each(|shard| shard.add_uses(&mut uses));
    }
    let surplus = uses.len().checked_sub(awake_max + 1).map(|last| *uses.select_nth_unstable(last).1);
    if let Some(limit) = surplus.max(Instant::now().checked_sub(idle)) {
        shards.iter().for_each(|shard| shard.sleep_unused(limit));
    }
}
