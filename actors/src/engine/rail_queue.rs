//! Queue of what rails are to be asked: outside of the sweep, so that nothing that falls due waits
//! for a rail, and with a lane for each kind of rail, so that one that is silent holds up no other.
//! Of a sandbox nothing is queued: its clock goes on when its rails have answered.

use std::collections::{BTreeSet, HashSet};

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use ledger::id::LedgerId;
use ledger::merchant::MerchantState;
use ledger::{RailName, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::Engine;
use super::inquiry_times::{Inquiries, OldestUnknown, note_older};

/// How many ledgers are asked for at once in a lane.
const ASKED_AT_ONCE: usize = 64;

/// A part of what a ledger has to ask rails about. The parts of a ledger do not wait for each
/// other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RailWork {
    /// Money that goes back to card holders, or to payers by PIX.
    Repayments {
        /// True for card holders.
        of_cards: bool,
    },
    /// Open charges of a card rail.
    Cards(Option<RailName>),
    /// Open codes of a PIX rail.
    Pix(Option<RailName>),
    /// Cashouts on their way.
    Cashouts,
    /// Subscriptions to charge.
    Subscriptions,
    /// Withdrawals of a recipient.
    Withdrawals,
}

impl RailWork {
    /// What a merchant has to ask rails about at `now`, each part once, and since when the oldest
    /// charge at each rail is unknown. Goes once over the charges that are overdue.
    pub(super) fn of_merchant(
        books: &MerchantState,
        inquiries: &Inquiries,
        now: Timestamp,
    ) -> (BTreeSet<Self>, OldestUnknown) {
        let (mut work, mut oldest) = (BTreeSet::new(), OldestUnknown::new());
        for (id, open) in books.needing_attention(now) {
            if !inquiries.is_under_way(id) {
                note_older(&mut oldest, &open.rail, open.attention_at);
            }
            if inquiries.is_time(id, open.attention_at, now) {
                let of_rail = if open.terms.method.is_card() { Self::Cards } else { Self::Pix };
                work.insert(of_rail(open.rail.clone()));
            }
        }
        let repayments = books.repayments(now).filter(|(id, one)| inquiries.is_time(*id, one.since, now));
        work.extend(repayments.map(|(_, one)| Self::Repayments { of_cards: one.method.is_card() }));
        work.extend(books.cashouts_needing_attention(now).next().map(|_| Self::Cashouts));
        work.extend(books.subscriptions_due(now).next().map(|_| Self::Subscriptions));
        (work, oldest)
    }

    fn lane(&self) -> usize {
        match self {
            Self::Cards(_) | Self::Repayments { of_cards: true } => 0,
            Self::Pix(_) | Self::Repayments { of_cards: false } => 1,
            Self::Cashouts | Self::Withdrawals => 2,
            Self::Subscriptions => 3,
        }
    }
}

type Entry = (LedgerId, RailWork);

/// Work that waits for its rail, each once.
#[derive(Default)]
pub(super) struct RailQueue {
    waiting: Mutex<HashSet<Entry>>,
    lanes: [Lane; 4],
}

struct Lane {
    sender: mpsc::UnboundedSender<Entry>,
    receiver: AsyncMutex<mpsc::UnboundedReceiver<Entry>>,
}

impl Default for Lane {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: AsyncMutex::new(receiver) }
    }
}

impl RailQueue {
    /// Adds work, unless it waits already or is under way.
    pub(super) fn add(&self, ledger: LedgerId, work: RailWork) {
        let (lane, entry) = (work.lane(), (ledger, work));
        if self.waiting.lock().insert(entry.clone()) {
            // The queue has the other end for as long as it lives.
            let _sent = self.lanes[lane].sender.send(entry);
        }
    }
}

impl Engine {
    /// Asks the rails about what is in the queue, of each lane for 64 ledgers at once. Runs until
    /// it is dropped.
    pub(super) async fn ask_rails(&self) {
        let mut lanes = join_all(self.rail_queue.lanes.iter().map(|lane| lane.receiver.lock())).await;
        // What a task that ended was asking about waits again.
        lanes.iter_mut().for_each(|receiver| while receiver.try_recv().is_ok() {});
        let waiting: Vec<_> = self.rail_queue.waiting.lock().drain().collect();
        waiting.into_iter().for_each(|(ledger, work)| self.rail_queue.add(ledger, work));
        join_all(lanes.iter_mut().map(|receiver| self.ask_in_lane(receiver))).await;
    }

    async fn ask_in_lane(&self, receiver: &mut mpsc::UnboundedReceiver<Entry>) {
        let mut under_way = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(entry) = receiver.recv(), if under_way.len() < ASKED_AT_ONCE => {
                    under_way.push(self.work_off(entry));
                }
                Some(entry) = under_way.next(), if !under_way.is_empty() => {
                    self.rail_queue.waiting.lock().remove(&entry);
                }
            }
        }
    }
}
