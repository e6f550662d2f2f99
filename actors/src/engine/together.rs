//! Requests of one merchant that are carried out together, as the charges of a batch: they share
//! one permit, and their commands go to the merchant's actor in one message each time none of the
//! requests can go on without an answer. Each has an outcome of its own.

use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::Arc;

use ledger::{GroupNumber, LedgerId, MerchantCommand};
use parking_lot::Mutex;
use tokio::sync::{OnceCell, oneshot};

use super::{Engine, Result};
use crate::actor::Message;
use crate::journal::Permit;
use crate::resident::{Envelope, Outcome};

tokio::task_local! {
    static TOGETHER: Arc<Together>;
}

/// A command of one of the requests, and where its outcome goes.
type Gathered = (Envelope<MerchantCommand>, oneshot::Sender<Outcome>);

/// What the requests share.
pub(super) struct Together {
    group: GroupNumber,
    /// How many requests there are, and the bytes of their bodies.
    room: (u32, usize),
    permit: OnceCell<Result<Arc<Permit>>>,
    /// Commands on their way to the actor.
    gathered: Mutex<Vec<Gathered>>,
}

impl Together {
    /// What a request of the merchant shares that is carried out here; `None` if it is alone.
    pub(super) fn of(group: GroupNumber) -> Option<Arc<Self>> {
        TOGETHER.try_with(|together| (together.group == group).then(|| Arc::clone(together))).ok().flatten()
    }

    /// The permit of all, which the first that needs one takes.
    pub(super) async fn permit(&self, engine: &Engine) -> Result<Arc<Permit>> {
        self.permit.get_or_init(|| engine.permit_of(Some(self.group), self.room)).await.clone()
    }

    pub(super) fn gather(&self, command: Gathered) {
        self.gathered.lock().push(command);
    }
}

impl Engine {
    /// Carries out requests of one merchant together; `room` is how many they are, and the bytes of
    /// their bodies. The outcome of each that sends a command is as if it were alone.
    pub async fn together<T>(&self, group: GroupNumber, room: (u32, usize), requests: impl Future<Output = T>) -> T {
        let together = Arc::new(Together { group, room, permit: OnceCell::new(), gathered: Mutex::default() });
        let mut requests = pin!(TOGETHER.scope(Arc::clone(&together), requests));
        poll_fn(|context| {
            let polled = requests.as_mut().poll(context);
            let commands = mem::take(&mut *together.gathered.lock());
            // Where the partition has left meanwhile, they are dropped: the outcome is unknown.
            if !commands.is_empty()
                && let Ok(shard) = self.serving_shard(group)
            {
                shard.merchants.send(LedgerId::Merchant(group), Message::Commands(commands));
            }
            polled
        })
        .await
    }
}
