//! Books of the past: sums of all ledgers after a Record, read by one job at a time, and kept by
//! their cut.
//!
//! What a cut of the journal sums to never changes, so the sums are kept until newer ones need the
//! room. A job reads for everybody who asks for its cut, and goes on when they leave.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use actors::engine::Engine;
use actors::engine::SumsAsOf;
use parking_lot::Mutex;
use store::cut::Cut;
use tokio::sync::{Semaphore, watch};

use crate::http::problem::{Code, Problem, failed};
use crate::http::trace::{RequestContext, spawn_blocking};

/// Cuts whose sums are kept, some 50 sums each.
const KEPT_MAX: usize = 32;
/// Jobs that wait or read.
const JOBS_MAX: usize = 16;

/// Where the reading of a cut stands.
#[derive(Clone, Debug)]
pub enum PastReading {
    /// Other books of the past are being read.
    Waits,
    /// So many Records and accounts are read.
    Reads {
        /// Read so far.
        read: u64,
        /// There are.
        of: u64,
    },
    /// The sums are there.
    Done(Arc<SumsAsOf>),
    /// They could not be read.
    Failed(Problem),
}

impl PastReading {
    /// Whether its job has ended, with the sums or without.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_))
    }
}

/// The jobs, and the sums that are kept.
pub struct PastBooks {
    /// One permit, which all answers about books of the past share.
    turn: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The last ones that were read, oldest first.
    kept: VecDeque<Arc<SumsAsOf>>,
    jobs: BTreeMap<Cut, watch::Receiver<PastReading>>,
}

impl PastBooks {
    /// Jobs that take `turn` while they read.
    pub fn new(turn: Arc<Semaphore>) -> Self {
        Self { turn, state: Arc::default() }
    }

    /// The sums at a cut, when they are kept.
    pub fn kept(&self, cut: &Cut) -> Option<Arc<SumsAsOf>> {
        self.state.lock().kept(cut)
    }

    /// The sums at a cut: kept ones, or those read now, by a caller that has the turn and
    /// whose thread may wait.
    pub fn read(&self, engine: &Engine, cut: &Cut) -> Result<Arc<SumsAsOf>, Problem> {
        if let Some(kept) = self.kept(cut) {
            return Ok(kept);
        }
        let sums = Arc::new(engine.sums_as_of(cut, |_, _| ())?);
        self.state.lock().keep(&sums);
        Ok(sums)
    }

    /// The job that reads the sums at a cut. It begins when there is none yet.
    pub fn ask(&self, engine: &Arc<Engine>, cut: &Cut) -> Result<watch::Receiver<PastReading>, Problem> {
        let mut state = self.state.lock();
        if let Some(kept) = state.kept(cut) {
            return Ok(watch::channel(PastReading::Done(kept)).1);
        }
        if let Some(job) = state.jobs.get(cut) {
            return Ok(job.clone());
        }
        if state.jobs.len() >= JOBS_MAX {
            let detail = "Other books of the past are being read.";
            return Err(Problem::new(Code::Overloaded).retry_after(5).detail(detail));
        }
        let (told, job) = watch::channel(PastReading::Waits);
        state.jobs.insert(cut.clone(), job.clone());
        let work = work(Arc::clone(&self.turn), Arc::clone(&self.state), Arc::clone(engine), cut.clone(), told);
        // The request that is the first to ask gives its name to what the job logs.
        match RequestContext::own() {
            Some(request) => drop(tokio::spawn(request.around(work))),
            None => drop(tokio::spawn(work)),
        }
        Ok(job)
    }

    /// The sums at a cut, as soon as its job has read them.
    pub async fn sums(&self, engine: &Arc<Engine>, cut: &Cut) -> Result<Arc<SumsAsOf>, Problem> {
        let mut job = self.ask(engine, cut)?;
        let end = job.wait_for(PastReading::is_over).await.map(|end| end.clone());
        match end {
            Ok(PastReading::Done(sums)) => Ok(sums),
            Ok(PastReading::Failed(problem)) => Err(problem),
            _ => Err(failed("the job ended without a word")),
        }
    }

    /// The cut that is being read now, how much of it is read, and how much there is.
    pub fn under_way(&self) -> Option<(Cut, u64, u64)> {
        let state = self.state.lock();
        state.jobs.iter().find_map(|(cut, job)| match *job.borrow() {
            PastReading::Reads { read, of } => Some((cut.clone(), read, of)),
            _ => None,
        })
    }
}

impl State {
    fn kept(&self, cut: &Cut) -> Option<Arc<SumsAsOf>> {
        self.kept.iter().find(|sums| sums.through == *cut).cloned()
    }

    fn keep(&mut self, sums: &Arc<SumsAsOf>) {
        if self.kept(&sums.through).is_none() {
            if self.kept.len() >= KEPT_MAX {
                self.kept.pop_front();
            }
            self.kept.push_back(Arc::clone(sums));
        }
    }
}

/// Reads one cut when it is its turn.
async fn work(
    turn: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
    engine: Arc<Engine>,
    cut: Cut,
    told: watch::Sender<PastReading>,
) {
    let turn = turn.acquire_owned().await;
    let (telling, read_cut) = (told.clone(), cut.clone());
    let read = spawn_blocking(move || {
        let _until_it_is_read = turn;
        engine.sums_as_of(&read_cut, |read, of| drop(telling.send_replace(PastReading::Reads { read, of })))
    });
    let end = match read.await {
        Ok(Ok(sums)) => PastReading::Done(Arc::new(sums)),
        Ok(Err(error)) => PastReading::Failed(error.into()),
        Err(panicked) => PastReading::Failed(failed(panicked)),
    };
    let mut state = state.lock();
    if let PastReading::Done(sums) = &end {
        state.keep(sums);
    }
    state.jobs.remove(&cut);
    told.send_replace(end);
}
