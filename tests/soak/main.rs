//! Soak test: a mixed load at a steady rate, for as long as one likes. Every few seconds the load
//! pauses: the books must balance and agree with the answers that the callers got. Open files must
//! not grow with the Records; nor must memory, in a long run.
//!
//! `CENTAVO_SOAK_MINUTES` (4 or 60) asks for a long run. Without it the test takes half a minute
//! and prints memory without judging it: caches are not full by then, and how full they are depends
//! on what else the machine does. `CENTAVO_SOAK_RATE` is requests a second. Latencies are printed,
//! not judged: they are the machine's.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use testkit::books::cut;
use testkit::callers::{Callers, client};
use testkit::server::{Launch, Server, must_verify};
use testkit::setting;

const MERCHANTS: usize = 3;
/// Callers and readers of each merchant at once.
const CALLERS: usize = 8;
/// How often the load pauses to be measured, in seconds, and how often at least.
const PAUSE_SECONDS: f64 = 5.0;
const SAMPLES_MIN: f64 = 10.0;

/// How long a run is that nobody asked to be longer.
const MINUTES_DEFAULT: f64 = 0.5;

/// What memory may grow by once it is warm, for good: a constant for the allocator, and for each
/// Record what is really open (codes that wait to be paid, keys of a day).
const GROWTH_BYTES: f64 = 16.0 * 1024.0 * 1024.0;
const GROWTH_BYTES_PER_RECORD: f64 = 100.0;
/// Files that may be open beyond those that were open when it was warm.
const FILES_MORE: u64 = 16;

/// What a running server uses.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: f64,
    records: u64,
    /// Memory of the process alone, in the machine's memory or swapped out.
    memory_bytes: u64,
    /// Open files, not connections: how many of those there are is up to the callers.
    files: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_grows_that_should_not_and_the_books_stay_true() {
    let data = tempfile::tempdir().unwrap();
    soak(data.path()).await.unwrap_or_else(|failure| panic!("{failure}"));
}

async fn soak(data: &Path) -> Result<(), String> {
    let minutes_wanted: Option<f64> =
        std::env::var("CENTAVO_SOAK_MINUTES").ok().map(|text| text.parse().expect("minutes"));
    let minutes = minutes_wanted.unwrap_or(MINUTES_DEFAULT);
    let rate = setting("CENTAVO_SOAK_RATE").unwrap_or(120).max(1);
    // Small segments: all files that may be open are open before the warm-up ends.
    let small = [("CENTAVO_RECORDS_PER_RUN", "5000"), ("CENTAVO_SEGMENT_BYTES", "50000")];
    let launch = small.iter().fold(Launch::on(data), |launch, (name, value)| launch.with(name, *value));
    let server = Server::start(&launch).await?;
    let mut merchants = [Callers::open(&server).await?, Callers::open(&server).await?, Callers::open(&server).await?];
    for callers in &mut merchants {
        callers.pause = Duration::from_secs_f64((MERCHANTS * CALLERS) as f64 / rate as f64);
    }
    println!("{minutes} minutes at up to {rate} requests a second, and reads beside them");
    println!("   time  requests   Records  memory MiB  files  disk MiB  p50 ms  p99 ms");
    let begun = Instant::now();
    let every = PAUSE_SECONDS.min(minutes * 60.0 / SAMPLES_MIN);
    let mut samples = Vec::new();
    while begun.elapsed().as_secs_f64() < minutes * 60.0 {
        let before: Vec<usize> = merchants.iter().map(Callers::acknowledged).collect();
        let [one, two, three] =
            merchants.each_mut().map(|callers| load(&server, callers, Duration::from_secs_f64(every)));
        tokio::try_join!(one, two, three)?;
        for callers in &merchants {
            callers.check_books(&server).await?;
        }
        let sample = Sample::of(&server, begun).await?;
        let latencies = merchants.iter().zip(before).flat_map(|(callers, first)| callers.latencies(first)).collect();
        let requests = merchants.iter().map(Callers::acknowledged).sum();
        sample.print(requests, size_of(data), latencies);
        samples.push(sample);
    }
    server.stop()?;
    must_verify(data)?;
    judge_files(&samples)?;
    match (judge_memory(&samples), minutes_wanted) {
        (Err(grown), None) => {
            println!("not judged in a run this short: {grown}");
            Ok(())
        }
        (judged, _) => judged,
    }
}

/// Charges and reads of one merchant, for so long.
async fn load(server: &Server, callers: &mut Callers, time: Duration) -> Result<(), String> {
    let (key, recipient, pause) = (callers.api_key.clone(), callers.recipients[0].clone(), callers.pause);
    let reads = async {
        let (client, begun) = (client(), Instant::now());
        let paths = [
            "/api/balance".to_owned(),
            format!("/api/dashboard/sub-recipients/{recipient}/splits"),
            "/api/charges?status=CONCLUIDA".to_owned(),
            "/api/balance/operations".to_owned(),
            "/api/dashboard/sub-recipients?search=maria".to_owned(),
        ];
        for path in paths.iter().cycle().take_while(|_| begun.elapsed() < time) {
            let response_or = client.get(format!("{}{path}", server.public)).bearer_auth(&key).send().await;
            let response = response_or.map_err(|error| format!("{path}: {error}"))?;
            let (status, body) = (response.status(), response.text().await.map_err(|error| error.to_string())?);
            if !status.is_success() {
                return Err(format!("{path}: {status} {body}"));
            }
            tokio::time::sleep(pause).await;
        }
        Ok(())
    };
    callers.charge_during(server, CALLERS, reads).await?;
    match callers.unanswered() {
        0 => Ok(()),
        unanswered => Err(format!("{unanswered} requests had no clear answer")),
    }
}

/// The samples of the second half of the time. In the first one the caches fill: those of sled, and
/// up to 64 MiB of the index's pages. On a slow machine that takes more than two minutes.
fn warm(samples: &[Sample]) -> &[Sample] {
    &samples[samples.len() / 2..]
}

/// Files must not become more: the median of the last samples against that of the first warm ones.
fn judge_files(samples: &[Sample]) -> Result<(), String> {
    let warm = warm(samples);
    let part = warm.len().div_ceil(3);
    let files = |samples: &[Sample]| median(samples.iter().map(|sample| sample.files as f64).collect());
    let (first, last) = (files(&warm[..part]), files(&warm[warm.len() - part..]));
    match last > first + FILES_MORE as f64 {
        true => Err(format!("{last} files were open at the end, and {first} when it was warm")),
        false => Ok(()),
    }
}

/// Memory must not grow.
fn judge_memory(samples: &[Sample]) -> Result<(), String> {
    let warm = warm(samples);
    let (first, last) = (warm.first().ok_or("nothing was measured")?, warm.last().ok_or("nothing was measured")?);
    let grown = slope(warm) * (last.seconds - first.seconds);
    let records = (last.records - first.records) as f64;
    let allowed = GROWTH_BYTES + GROWTH_BYTES_PER_RECORD * records;
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let message =
        format!("memory grew by {:.1} MiB in {records} Records; {:.1} MiB are allowed", mib(grown), mib(allowed));
    println!("{message}");
    if grown > allowed { Err(message) } else { Ok(()) }
}

/// Bytes of memory a second, by Theil and Sen: the median of the slopes between any two samples. Up
/// to a quarter of the samples may lie anywhere without moving it far.
fn slope(samples: &[Sample]) -> f64 {
    let between = |one: &Sample, other: &Sample| {
        (other.memory_bytes as f64 - one.memory_bytes as f64) / (other.seconds - one.seconds)
    };
    let pairs =
        samples.iter().enumerate().flat_map(|(at, one)| samples[at + 1..].iter().map(move |other| (one, other)));
    median(pairs.map(|(one, other)| between(one, other)).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

impl Sample {
    async fn of(server: &Server, begun: Instant) -> Result<Self, String> {
        let process = format!("/proc/{}", server.id());
        let status = fs::read_to_string(format!("{process}/status")).map_err(|error| error.to_string())?;
        let kibibytes = |name: &str| -> Result<u64, String> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.trim().trim_end_matches(" kB").parse().map_err(|_| status.clone())
        };
        let memory_bytes = 1024 * (kibibytes("RssAnon:")? + kibibytes("VmSwap:")?);
        let open = fs::read_dir(format!("{process}/fd")).map_err(|error| error.to_string())?;
        let open = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let files = open.filter(|file| file.is_absolute()).count() as u64;
        let records = cut(&client(), server).await?;
        Ok(Self { seconds: begun.elapsed().as_secs_f64(), records, memory_bytes, files })
    }

    fn print(&self, requests: usize, disk_bytes: u64, mut latencies: Vec<Duration>) {
        latencies.sort_unstable();
        let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize).copied().unwrap_or_default();
        let (p50, p99) = (at(0.5).as_secs_f64() * 1000.0, at(0.99).as_secs_f64() * 1000.0);
        let Self { seconds, records, files, .. } = self;
        let (memory, disk) = (self.memory_bytes >> 20, disk_bytes >> 20);
        println!("{seconds:>6.0}s {requests:>9} {records:>9} {memory:>11} {files:>6} {disk:>9} {p50:>7.1} {p99:>7.1}");
    }
}

/// The room that a folder's files take.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Samples five seconds apart whose memory is this, in MiB.
fn samples(memory: impl Fn(u64) -> u64) -> Vec<Sample> {
    let sample =
        |at: u64| Sample { seconds: 5.0 * at as f64, records: 600 * at, memory_bytes: memory(at) << 20, files: 40 };
    (1..=48).map(sample).collect()
}

#[test]
fn a_leak_is_found_and_a_neighbour_is_not_taken_for_one() {
    assert!(judge_memory(&samples(|at| 80 + at)).is_err(), "24 MiB in two minutes, steadily");
    assert!(judge_memory(&samples(|at| 80 + at.min(24))).is_ok(), "caches that fill in the first half");
    assert!(judge_memory(&samples(|at| 80 + at / 3)).is_ok(), "what is allowed");
    assert!(judge_memory(&samples(|at| if at >= 45 { 160 } else { 80 })).is_ok(), "much at once at the end");
    assert!(judge_memory(&samples(|at| if at.is_multiple_of(6) { 200 } else { 80 })).is_ok(), "much now and then");
    let leaking: Vec<_> =
        samples(|_| 80).iter().map(|&sample| Sample { files: sample.records / 300, ..sample }).collect();
    assert!(judge_files(&leaking).is_err(), "two files for each sample");
    assert!(judge_files(&samples(|_| 80)).is_ok());
}
