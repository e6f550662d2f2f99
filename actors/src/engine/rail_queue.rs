//! Queue of ledgers with something to ask a rail about: outside of the sweep, so that nothing that
//! falls due waits for a rail. Of a sandbox nothing is queued: its clock goes on when its rails
//! have answered.

use std::collections::HashSet;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ledger::id::LedgerId;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::Engine;

/// How many ledgers are asked for at once.
const ASKED_AT_ONCE: usize = 64;

/// Ledgers that wait for their rails to be asked, each once.
pub(super) struct RailQueue {
    waiting: Mutex<HashSet<LedgerId>>,
    sender: mpsc::UnboundedSender<LedgerId>,
    receiver: AsyncMutex<mpsc::UnboundedReceiver<LedgerId>>,
}

impl Default for RailQueue {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { waiting: Mutex::default(), sender, receiver: AsyncMutex::new(receiver) }
    }
}

impl RailQueue {
    /// Adds a ledger, unless it waits already or is asked for now.
    pub(super) fn add(&self, ledger: LedgerId) {
        if self.waiting.lock().insert(ledger) && self.sender.send(ledger).is_err() {
            self.waiting.lock().remove(&ledger);
        }
    }
}

impl Engine {
    /// Asks the rails for the ledgers of the queue, 64 at once. Runs until it is dropped.
    pub(super) async fn ask_rails(&self) {
        let mut receiver = self.rail_queue.receiver.lock().await;
        // Those that a task which ended was asking for wait again.
        while receiver.try_recv().is_ok() {}
        self.rail_queue
            .waiting
            .lock()
            .drain()
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|ledger| self.rail_queue.add(ledger));
        let mut inquiries = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(ledger) = receiver.recv(), if inquiries.len() < ASKED_AT_ONCE => inquiries.push(async move {
                    self.attend(ledger, self.now()).await;
                    ledger
                }),
                Some(ledger) = inquiries.next(), if !inquiries.is_empty() => {
                    self.rail_queue.waiting.lock().remove(&ledger);
                }
            }
        }
    }
}
