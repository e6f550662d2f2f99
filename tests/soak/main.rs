//! A mixed load at a steady rate, for as long as one likes. Every few seconds the load pauses: the books must balance and hold exactly
//! what the callers were told, and memory and open files must not grow with what went through.
//!
//! `CENTAVO_SOAK_MINUTES` (half a minute when absent; 3 or 60 say more) and `CENTAVO_SOAK_RATE` (requests a second) set how long and how
//! much. Latencies are printed, not judged: they are the machine's.

#![allow(clippy::unwrap_used)]

#[path = "../harness/mod.rs"]
mod harness;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use harness::books::cut;
use harness::callers::{Callers, client};
use harness::server::{Launch, Server, must_verify};
use harness::setting;

const MERCHANTS: usize = 3;
/// Callers and readers of each merchant at once.
const CALLERS: usize = 8;
/// How often the load pauses to be measured, in seconds, and how often at least.
const PAUSE_SECONDS: f64 = 5.0;
const SAMPLES_MIN: f64 = 10.0;

/// What memory may grow by once it is warm, for good: a constant for the allocator, and for each Record what is really open (codes that
/// wait to be paid, keys of a day).
const GROWTH_BYTES: f64 = 16.0 * 1024.0 * 1024.0;
const GROWTH_BYTES_PER_RECORD: f64 = 100.0;
/// Files that may be open beyond those that were open when it was warm.
const FILES_MORE: u64 = 16;

/// What a running server uses.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: f64,
    records: u64,
    resident_bytes: u64,
    files: u64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_grows_that_should_not_and_the_books_stay_true() {
    let data = tempfile::tempdir().unwrap();
    soak(data.path()).await.unwrap_or_else(|failure| panic!("{failure}"));
}

async fn soak(data: &Path) -> Result<(), String> {
    let minutes: f64 = std::env::var("CENTAVO_SOAK_MINUTES").map_or(0.5, |text| text.parse().expect("minutes"));
    let rate = setting("CENTAVO_SOAK_RATE").unwrap_or(120).max(1);
    // Small folders of which few stay open, so that all that may be open is open before it is warm.
    let small = [("CENTAVO_RECORDS_PER_RUN", "5000"), ("CENTAVO_FOLDER_BYTES", "50000"), ("CENTAVO_FOLDERS_OPEN", "3")];
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
    judge(&samples)
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
            let asked = client.get(format!("{}{path}", server.public)).bearer_auth(&key).send().await;
            let response = asked.map_err(|error| format!("{path}: {error}"))?;
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

/// Memory and files must not grow, once the first third of the time is over.
fn judge(samples: &[Sample]) -> Result<(), String> {
    let warm = &samples[samples.len() / 3..];
    let (first, last) = (warm.first().ok_or("nothing was measured")?, warm.last().ok_or("nothing was measured")?);
    let grown = slope(warm) * (last.seconds - first.seconds);
    let records = (last.records - first.records) as f64;
    let allowed = GROWTH_BYTES + GROWTH_BYTES_PER_RECORD * records;
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    println!("memory grew by {:.1} MiB in {records} Records; {:.1} MiB are allowed", mib(grown), mib(allowed));
    if grown > allowed {
        return Err(format!("memory grew by {:.1} MiB where {:.1} are allowed", mib(grown), mib(allowed)));
    }
    let files = warm.iter().map(|sample| sample.files).max().unwrap_or_default();
    if files > first.files + FILES_MORE {
        return Err(format!("{files} files were open, and {} when it was warm", first.files));
    }
    Ok(())
}

/// Bytes of memory a second, by least squares.
fn slope(samples: &[Sample]) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (time, memory) = (mean(|sample| sample.seconds), mean(|sample| sample.resident_bytes as f64));
    let together = |sample: &Sample| (sample.seconds - time) * (sample.resident_bytes as f64 - memory);
    let spread: f64 = samples.iter().map(|sample| (sample.seconds - time).powi(2)).sum();
    if spread == 0.0 { 0.0 } else { samples.iter().map(together).sum::<f64>() / spread }
}

impl Sample {
    async fn of(server: &Server, begun: Instant) -> Result<Self, String> {
        let process = format!("/proc/{}", server.id());
        let status = fs::read_to_string(format!("{process}/status")).map_err(|error| error.to_string())?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kibibytes: u64 = resident.trim().trim_end_matches(" kB").parse().map_err(|_| status.clone())?;
        let files = fs::read_dir(format!("{process}/fd")).map_err(|error| error.to_string())?.count() as u64;
        let records = cut(&client(), server).await?;
        Ok(Self { seconds: begun.elapsed().as_secs_f64(), records, resident_bytes: kibibytes * 1024, files })
    }

    fn print(&self, requests: usize, disk_bytes: u64, mut latencies: Vec<Duration>) {
        latencies.sort_unstable();
        let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize).copied().unwrap_or_default();
        let (p50, p99) = (at(0.5).as_secs_f64() * 1000.0, at(0.99).as_secs_f64() * 1000.0);
        let Self { seconds, records, files, .. } = self;
        let (memory, disk) = (self.resident_bytes >> 20, disk_bytes >> 20);
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
