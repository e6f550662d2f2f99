//! Opening of a database that other processes may have: one that does not answer is waited for, and
//! so is an owner of its partitions.

use std::sync::Arc;
use std::time::Duration;

use actors::engine::{EngineOptions, OpenError, check_store};
use derived::extents::Extents;
use store::{OwnerWatch, Part, Partition, PostgresOptions, PostgresStore, StoreError};

/// Time between two tries to connect at the start.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Connects to a database. One that does not answer is waited for, as after a machine's start.
///
/// The mode and the master key are checked: a process that can't serve would be found out only when
/// it is needed.
pub async fn connect(
    options: &PostgresOptions,
    engine: &EngineOptions,
) -> Result<(Arc<PostgresStore>, Extents), OpenError> {
    let store = loop {
        let asked = options.clone();
        match waiting(move || PostgresStore::open(&asked)).await {
            Err(error @ StoreError::Unavailable { .. }) => {
                tracing::warn!(%error, "the database is waited for");
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
            opened => break opened?,
        }
    };
    let store = Arc::new(store);
    let checked: Arc<dyn store::Store> = Arc::<PostgresStore>::clone(&store);
    let (sandbox, master_key, new) = (engine.sandbox, engine.master_key, engine.partitions);
    let extents = waiting(move || -> Result<_, OpenError> {
        check_store(Arc::clone(&checked), sandbox, master_key)?;
        Ok(Extents::made(&*checked, new)?)
    });
    let extents = extents.await?;
    let (has, wanted) = (extents.all().count(), usize::from(new.get()));
    if wanted > 1 && has == 1 {
        tracing::warn!(wanted, "this store has one partition, which one process serves; `centavo grow` adds others");
    } else if wanted > 1 && has != wanted {
        tracing::info!(has, wanted, "this store keeps its partitions: CENTAVO_PARTITIONS counts for a new one");
    }
    Ok((store, extents))
}

/// Connects to a database and waits until this process has all its partitions: at once where nobody
/// has them, otherwise when their owner has given them up or is gone.
///
/// All partitions are watched at once, and taken in their order: of two processes that want them,
/// the owner of the first gets the others too.
pub async fn take(options: &PostgresOptions, engine: &EngineOptions) -> Result<(Vec<Part>, Extents), OpenError> {
    let (store, extents) = connect(options, engine).await?;
    let mut takes = Takes::of(&extents);
    let mut is_told = false;
    loop {
        let asked = Arc::clone(&store);
        let (looked, ended) = waiting(move || -> Result<_, StoreError> {
            let looked = takes.look(&asked);
            match looked {
                Err(error @ StoreError::Unavailable { .. }) => {
                    tracing::warn!(%error, "the database does not answer; it is looked at again");
                    Ok((takes, false))
                }
                looked => looked.map(|ended| (takes, ended)),
            }
        })
        .await?;
        takes = looked;
        if ended {
            let (process, former) = (store.process(), takes.watches[0].owner());
            tracing::info!(store = store.place(), process, former, "the database is taken");
            return Ok((takes.parts, extents));
        }
        let waited_for = takes.watches.get(takes.parts.len()).and_then(OwnerWatch::owner);
        if let Some(owner) = waited_for.filter(|_| !is_told) {
            let process = store.process();
            tracing::info!(
                store = store.place(),
                process,
                owner,
                "another process serves; this one waits until it ends"
            );
            is_told = true;
        }
        tokio::time::sleep(store.pace()).await;
    }
}

/// The taking of all partitions.
struct Takes {
    /// Of each partition, in their order.
    watches: Vec<OwnerWatch>,
    /// Those that were taken, the first ones.
    parts: Vec<Part>,
}

impl Takes {
    fn of(extents: &Extents) -> Self {
        Self { watches: extents.all().map(|_| OwnerWatch::default()).collect(), parts: Vec::new() }
    }

    /// The owner of a partition that is not taken yet, if it lives.
    fn living(&self) -> Option<String> {
        self.watches.iter().skip(self.parts.len()).find_map(OwnerWatch::living).map(str::to_owned)
    }

    /// Looks at the partitions that are not taken yet, and takes what is free and next. True when
    /// all are taken.
    fn look(&mut self, store: &Arc<PostgresStore>) -> Result<bool, StoreError> {
        for (place, watch) in self.watches.iter_mut().enumerate().skip(self.parts.len()) {
            let partition = Partition(place as u16);
            let Some(seen) = store.look(watch, partition)?.filter(|_| place == self.parts.len()) else { continue };
            let shared: Arc<dyn store::Store> = Arc::<PostgresStore>::clone(store);
            if let Some(tenure) = store.take_from(partition, seen, watch.gone())? {
                self.parts.push(Part::of(shared, tenure));
            }
        }
        Ok(self.parts.len() == self.watches.len())
    }
}

/// What a database is to a command that wants it for itself.
pub enum Idle {
    /// All its partitions are this command's now.
    Taken(Vec<Part>),
    /// The process of this name serves from it.
    Served(String),
}

/// Takes a database from nobody, or from a process that is gone. Whether a process lives shows its
/// sign of life; that none comes any more is known after the takeover time.
pub fn take_idle(store: &Arc<PostgresStore>, extents: &Extents) -> Result<Idle, StoreError> {
    let mut takes = Takes::of(extents);
    loop {
        if takes.look(store)? {
            return Ok(Idle::Taken(takes.parts));
        }
        if let Some(owner) = takes.living() {
            takes.parts.iter().try_for_each(Part::release)?;
            return Ok(Idle::Served(owner));
        }
        std::thread::sleep(store.pace());
    }
}

async fn waiting<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    tokio::task::spawn_blocking(work).await.expect("a store does not panic")
}
