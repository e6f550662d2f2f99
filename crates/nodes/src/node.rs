//! Node: a process that serves some partitions of a database beside other nodes. It looks at all
//! nodes and partitions several times in a takeover time, takes up partitions that are free and
//! should be its, and hands over those that should be another's.
//!
//! It joins the others once its address is reachable and used by no other process. Until then no
//! node counts on it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use actors::cluster::{Move, Namesake, Namesakes, Placement};
use actors::engine::{Engine, EngineOptions, OpenError, Role};
use derived::extents::HOUSE;
use ledger::id::GroupNumber;
use parking_lot::Mutex;
use store::{Part, Partition, Picture, PostgresOptions, PostgresStore, Store, StoreError, now_ms};
use tokio::sync::Notify;
use tokio::task::{JoinSet, spawn_blocking};

use crate::forward::PeerClient;
use crate::takeover;
use crate::{Hold, HoldFuture, Owner, Owners};
use web::idempotency::opening_key;

/// Time between two looks while partitions move.
const WHILE_MOVING: Duration = Duration::from_millis(200);
/// Time between two looks at most: a request waits for its partition's next owner, and both its
/// node and that one have to see the change.
const LOOKS_EVERY_MAX: Duration = Duration::from_millis(500);
/// How often the followed partitions are read when nobody asks.
const FOLLOWED_EVERY: Duration = Duration::from_secs(5);
/// How long moves under way may go on once nobody listens any more.
const RESTING_MAX: Duration = Duration::from_secs(15);
/// How long a process that ended or died is shown.
const SHOWN_FOR: Duration = Duration::from_secs(3_600);
/// How long a node that ends waits until others have its partitions.
const LEAVING_MAX: Duration = Duration::from_secs(60);

/// This process as a node.
pub struct Node {
    store: Arc<PostgresStore>,
    engine: Arc<Engine>,
    placement: Mutex<Placement>,
    /// Partitions that are being taken or handed over.
    moving: Mutex<BTreeSet<Partition>>,
    /// How the other nodes reach it.
    address: String,
    namesakes: Mutex<Namesakes>,
    is_leaving: AtomicBool,
    failure: OnceLock<NodeFailure>,
    failed: Notify,
}

/// Why a node that serves must end, though its journal has not failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeFailure {
    /// The store has partitions that it does not know.
    #[error("partitions were added to this store; start again to serve them too")]
    Grown,
    /// A partition could be neither taken up nor handed over.
    #[error("a partition can't be served; see the log, then start again")]
    Unserved,
}

/// Why a node does not join the others.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Another process lives at its address.
    #[error(
        "CENTAVO_PEER_ADDRESS: {address} is the address of another node that lives: {process} ({about}); give each \
         its own"
    )]
    AddressTaken {
        /// The address.
        address: String,
        /// The name of the other process.
        process: String,
        /// Its release, machine and process number.
        about: String,
    },
    /// Partitions were added since it began to start.
    #[error("partitions were added to this store while this node waited to join: start it again")]
    Grown,
    /// The database can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Node {
    /// Connects to a database as the node at an address. It has no partition, and the other nodes
    /// do not count on it until it has joined ([`Node::join`]).
    pub async fn open(
        address: String,
        database: &PostgresOptions,
        options: EngineOptions,
    ) -> Result<Arc<Self>, OpenError> {
        let takeover = database.takeover;
        let database = &PostgresOptions { node: Some(address.clone()), ..database.clone() };
        let (store, extents) = takeover::connect(database, &options).await?;
        let shared: Arc<dyn Store> = Arc::<PostgresStore>::clone(&store);
        let engine = Engine::open_node(shared, extents, options).await?;
        let placement = Mutex::new(Placement::new(store.process().to_owned(), takeover));
        let namesakes = Namesakes::new(store.process().to_owned(), address.clone());
        let (process, partitions) = (store.process(), engine.extents().all().count());
        tracing::info!(store = store.place(), process, partitions, "this process is a node");
        if partitions == 1 {
            tracing::warn!("the store has one partition: one node serves, and the others only pass requests on");
        }
        Ok(Arc::new(Self {
            store,
            engine,
            placement,
            moving: Mutex::default(),
            namesakes: Mutex::new(namesakes),
            address,
            is_leaving: AtomicBool::new(false),
            failure: OnceLock::new(),
            failed: Notify::new(),
        }))
    }

    /// All processes of the last hour and all partitions now, and how many commits of this one were
    /// fenced and of unknown outcome. For a thread that may wait.
    pub fn picture(&self) -> Result<(Picture, (u64, u64)), StoreError> {
        let picture = self.store.picture_since(SHOWN_FOR)?.with_all(self.engine.extents().all());
        Ok((picture, self.store.commit_troubles()))
    }

    /// Its name in the database.
    pub fn process(&self) -> &str {
        self.store.process()
    }

    /// The engine that serves the partitions of this process.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Joins the other nodes, once no other process lives at its address, and the address leads to
    /// this process. Its peers' listener must serve by now. The log says what it waits for.
    ///
    /// Two processes that join at one moment see each other afterwards: one of them ends at least.
    pub async fn join(&self, peers: &PeerClient) -> Result<(), JoinError> {
        let mut last_logged = String::new();
        loop {
            let obstacle = match self.look().await {
                Err(error @ StoreError::Unavailable { .. }) => Some(error.to_string()),
                Err(error) => return Err(error.into()),
                Ok(_) if self.failure.get().is_some() => return Err(JoinError::Grown),
                Ok((_, Namesake::Lives(other))) => {
                    if let Err(error) = self.leave().await {
                        tracing::warn!(%error, "the other nodes were not told that this one ends");
                    }
                    let (process, about) = (other.process, other.about);
                    return Err(JoinError::AddressTaken { address: self.address.clone(), process, about });
                }
                Ok((_, Namesake::MayLive(other))) => {
                    Some(format!("{} had this address, and it is not known yet whether it lives", other.process))
                }
                Ok((_, Namesake::Nobody)) if self.is_shown() => return Ok(()),
                Ok((_, Namesake::Nobody)) => match peers.process_at(&self.address).await {
                    Ok(process) if process == self.store.process() => {
                        self.show().await?;
                        continue;
                    }
                    Ok(process) => Some(format!("another process answers there: {process}")),
                    Err(error) => Some(error.to_string()),
                },
            };
            if let Some(obstacle) = obstacle.filter(|obstacle| *obstacle != last_logged) {
                let address = &self.address;
                tracing::warn!(
                    address,
                    obstacle,
                    "this node does not join the others until its CENTAVO_PEER_ADDRESS leads to it alone"
                );
                last_logged = obstacle;
            }
            tokio::time::sleep(WHILE_MOVING.min(self.store.pace())).await;
        }
    }

    /// Shows its address to the others. Where the database does not answer, a later beat does it.
    async fn show(&self) -> Result<(), StoreError> {
        let store = Arc::clone(&self.store);
        match spawn_blocking(move || store.join()).await.expect("a store does not panic") {
            Err(StoreError::Unavailable { .. }) => Ok(()),
            shown => shown,
        }
    }

    /// Whether the database showed its address at the last look.
    fn is_shown(&self) -> bool {
        self.placement.lock().is_shown()
    }

    /// Takes up and hands over partitions until it is dropped.
    pub async fn run(self: Arc<Self>) {
        let mut moves = JoinSet::new();
        moves.spawn(follow_others(Arc::downgrade(&self.engine)));
        let mut is_warned = false;
        let (mut lone, mut longest) = (None, None);
        loop {
            let wanted = match self.look().await {
                Ok((wanted, namesake)) => {
                    self.warn_of(&namesake, &mut is_warned);
                    self.warn_of_takeover(&mut longest);
                    let before = std::mem::replace(&mut lone, self.lone());
                    if let Some(process) = lone.as_ref().filter(|_| before.is_none()) {
                        tracing::warn!(
                            process,
                            "a process without CENTAVO_PEER_LISTEN has the merchants: this node waits until it ends"
                        );
                    }
                    wanted
                }
                Err(error) => {
                    tracing::warn!(%error, "the other nodes can't be seen; they are looked at again");
                    Vec::new()
                }
            };
            for wanted in wanted {
                if self.moving.lock().insert(partition_of(wanted)) {
                    let node = Arc::clone(&self);
                    moves.spawn(async move { node.carry_out(wanted).await });
                }
            }
            while moves.try_join_next().is_some() {}
            let is_moving = !self.moving.lock().is_empty() || self.is_leaving.load(Ordering::Acquire);
            let pace = if is_moving { WHILE_MOVING } else { LOOKS_EVERY_MAX };
            tokio::time::sleep(pace.min(self.store.pace())).await;
        }
    }

    async fn look(&self) -> Result<(Vec<Move>, Namesake), StoreError> {
        let (store, all) = (Arc::clone(&self.store), self.engine.extents().all());
        let seen = spawn_blocking(move || Ok((store.picture()?.with_all(all), now_ms(), store.is_current())));
        let (picture, at_ms, is_current) = seen.await.expect("a store does not panic")?;
        if picture.partitions.len() > self.engine.extents().all().count() {
            tracing::error!("partitions were added to this store: the process ends, to start again with them");
            self.fail(NodeFailure::Grown);
        }
        let namesake = self.namesakes.lock().look(&picture);
        Ok((self.placement.lock().step(&picture, at_ms, is_current), namesake))
    }

    /// Warns of another living process at the same address: requests for this one may come there.
    /// It was paused, say, when this one joined.
    fn warn_of(&self, namesake: &Namesake, is_warned: &mut bool) {
        let Namesake::Lives(other) = namesake else { return };
        if !std::mem::replace(is_warned, true) {
            let (process, about, address) = (&other.process, &other.about, &self.address);
            tracing::error!(
                process,
                about,
                address,
                "another node has this node's CENTAVO_PEER_ADDRESS: give each its own"
            );
        }
    }

    /// Warns of a process with a longer takeover time, once for each time that comes.
    fn warn_of_takeover(&self, longest_ms: &mut Option<i64>) {
        let longest = self.placement.lock().longest().cloned();
        let before = std::mem::replace(longest_ms, longest.as_ref().map(|node| node.takeover_ms));
        if let Some(node) = longest.filter(|node| before != Some(node.takeover_ms)) {
            tracing::warn!(
                process = node.process,
                address = node.address,
                takeover_ms = node.takeover_ms,
                "a process has a longer CENTAVO_POSTGRES_TAKEOVER_SECONDS, which counts for all: give each the same"
            );
        }
    }

    async fn carry_out(&self, wanted: Move) {
        let partition = partition_of(wanted);
        let begun = Instant::now();
        let carried_out = match wanted {
            Move::Take { partition, seen, gone } => {
                let former = gone.and_then(|_| self.placement.lock().owner(partition));
                let store = Arc::clone(&self.store);
                let taken = spawn_blocking(move || store.take_from(partition, seen, gone)).await;
                let taken = taken.expect("a store does not panic");
                if let (Some(former), Ok(Some(_))) = (former, &taken) {
                    let (process, address) = (former.process, former.address);
                    tracing::warn!(
                        partition = partition.0,
                        process,
                        address,
                        "a partition was taken from a node that is gone"
                    );
                }
                match taken {
                    Ok(Some(tenure)) => self.take_up(Part::of(Arc::<PostgresStore>::clone(&self.store), tenure)).await,
                    Ok(None) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
            Move::HandOver { .. } => {
                let handed_over = self.engine.hand_over(partition).await;
                if handed_over.is_ok() {
                    tracing::info!(partition = partition.0, took = ?begun.elapsed(), "a partition was handed over");
                }
                handed_over
            }
        };
        self.moving.lock().remove(&partition);
        match carried_out {
            Ok(()) => {}
            Err(OpenError::Store(error @ StoreError::Unavailable { .. })) => {
                tracing::warn!(%error, partition = partition.0, "a partition was neither taken nor handed over; it is tried again");
            }
            Err(error) => {
                tracing::error!(%error, partition = partition.0, "a partition can't be served: the process ends");
                self.fail(NodeFailure::Unserved);
            }
        }
    }

    /// The first failure counts.
    fn fail(&self, failure: NodeFailure) {
        let _earlier = self.failure.set(failure);
        self.failed.notify_waiters();
    }

    async fn take_up(&self, part: Part) -> Result<(), OpenError> {
        let (partition, begun) = (part.partition(), Instant::now());
        if let Err(error) = self.engine.take_up(part.clone(), |_, _| ()).await {
            let _known_to_be_gone_later = spawn_blocking(move || part.release()).await;
            return Err(error);
        }
        tracing::info!(partition = partition.0, took = ?begun.elapsed(), "a partition was taken up");
        let engine = Arc::clone(&self.engine);
        tokio::spawn(async move { engine.renew_snapshots_in(partition).await });
        Ok(())
    }

    /// Announces to the other nodes that this one ends, and hands its partitions over to them.
    /// Requests are answered meanwhile. Gives up after a minute, or when there is no other node.
    pub async fn drain(&self) {
        self.is_leaving.store(true, Ordering::Release);
        if let Err(error) = self.leave().await {
            tracing::warn!(%error, "the other nodes were not told that this one ends");
        }
        let until = Instant::now() + LEAVING_MAX;
        while Instant::now() < until && self.has_partitions() && self.has_heirs() {
            tokio::time::sleep(WHILE_MOVING).await;
        }
    }

    /// Waits until no partition is being taken or handed over, for a while.
    pub async fn rest(&self) {
        let until = Instant::now() + RESTING_MAX;
        while Instant::now() < until && !self.moving.lock().is_empty() {
            tokio::time::sleep(WHILE_MOVING).await;
        }
    }

    async fn leave(&self) -> Result<(), StoreError> {
        let store = Arc::clone(&self.store);
        spawn_blocking(move || store.leave()).await.expect("a store does not panic")
    }

    /// A process that is no node and has the merchants, as of its last look: no node serves until
    /// it has ended.
    pub fn lone(&self) -> Option<String> {
        self.placement.lock().lone().map(str::to_owned)
    }

    /// How many partitions had no living owner at its last look.
    pub fn unserved(&self) -> usize {
        self.placement.lock().unserved()
    }

    /// Whether it hands its partitions over, to end.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Acquire)
    }

    fn has_partitions(&self) -> bool {
        self.engine.extents().all().any(|partition| matches!(self.engine.role(partition), Role::Owner | Role::Leaving))
    }

    /// Whether another node should have what this one has.
    fn has_heirs(&self) -> bool {
        let placement = self.placement.lock();
        self.engine.extents().all().any(|partition| placement.desired(partition).is_some())
    }

    /// Waits until it must end.
    pub async fn failed(&self) -> NodeFailure {
        loop {
            let failed = self.failed.notified();
            if let Some(failure) = self.failure.get() {
                return *failure;
            }
            failed.await;
        }
    }
}

/// Follows the partitions of the others while this process has the house. Without it, forgets the
/// keys of personal data that the house has dropped.
async fn follow_others(engine: Weak<Engine>) {
    let mut read_at = Instant::now();
    while let Some(engine) = engine.upgrade() {
        let followed = if engine.serves_house() { engine.follow_others().await } else { engine.follow_none().await };
        let is_due = read_at.elapsed() >= FOLLOWED_EVERY;
        let caught_up = if is_due { engine.catch_up().await } else { Ok(()) };
        if is_due && let Err(error) = engine.forget_dropped_keys() {
            tracing::warn!(%error, "the keys of personal data could not be looked for; it is tried again");
        }
        if is_due {
            read_at = Instant::now();
        }
        if let Err(error) = followed.and(caught_up.map_err(OpenError::from)) {
            tracing::warn!(%error, "the partitions of the other nodes could not be followed; it is tried again");
        }
        drop(engine);
        tokio::time::sleep(WHILE_MOVING).await;
    }
}

fn partition_of(wanted: Move) -> Partition {
    match wanted {
        Move::Take { partition, .. } | Move::HandOver { partition } => partition,
    }
}

impl Hold for actors::engine::Hold {
    fn stands(&self) -> bool {
        self.stands()
    }
}

impl Owners for Node {
    fn all(&self) -> Vec<Partition> {
        self.engine.extents().all().collect()
    }

    fn read_all(&self) -> HoldFuture<'_> {
        Box::pin(async {
            let hold = self.engine.hold_all()?;
            let read = self.engine.catch_up().await;
            read.inspect_err(|error| tracing::warn!(%error, "others could not be read")).ok()?;
            Some(Box::new(hold) as Box<dyn Hold>)
        })
    }

    fn missing(&self) -> Vec<Partition> {
        self.engine.missing()
    }

    fn partition_of(&self, group: GroupNumber) -> Partition {
        self.engine.extents().partition_of(group)
    }

    fn house(&self) -> Partition {
        self.partition_of(HOUSE)
    }

    fn partition_for_new(&self, key: Option<&str>) -> Partition {
        self.engine.opening_partition(key.map(|key| opening_key(&self.engine, key.as_bytes())))
    }

    fn owner(&self, partition: Partition) -> Owner {
        if self.engine.role(partition) == Role::Owner {
            return Owner::Here;
        }
        let owner = self.placement.lock().owner(partition).filter(|owner| owner.process != self.store.process());
        owner.and_then(|owner| owner.address).map_or(Owner::Nobody, Owner::At)
    }

    fn hold(&self, partition: Partition) -> Option<Box<dyn Hold>> {
        Some(Box::new(self.engine.hold(partition)?))
    }
}
