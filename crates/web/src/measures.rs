//! Metrics of HTTP requests and of the process. Names and units follow the conventions of
//! Prometheus; `promtool check metrics` finds no fault in them.

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, fs};

use actors::metrics::{add, histogram};
use axum::extract::MatchedPath;
use axum::http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder,
};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Metrics of every request, of both listeners.
#[derive(Clone, Debug)]
pub struct Measures {
    seconds: Histogram,
    failures: Counter,
    answers: Family<AnswerLabels, Counter>,
    certificates: Family<[(&'static str, &'static str); 1], Gauge>,
}

impl Default for Measures {
    /// Metrics in a registry that nobody reads.
    fn default() -> Self {
        Self::new(&mut Registry::default())
    }
}

impl Measures {
    /// Metrics in a registry, under the prefix `centavo_`.
    pub fn new(registry: &mut Registry) -> Self {
        let to = registry.sub_registry_with_prefix("centavo");
        let (answers, ends) =
            ("HTTP requests by route, method and class of status", "When a listener's certificate ends, since 1970");
        Self {
            seconds: histogram(to, "http_request_seconds", "Time of HTTP requests", 0.000_1, 16),
            failures: add(to, "http_failures", "HTTP answers of 500 and above", Counter::default()),
            answers: add(to, "http_requests", answers, Family::default()),
            certificates: add(to, "tls_expiry_timestamp_seconds", ends, Family::default()),
        }
    }

    /// End of the validity of a listener's certificate, seconds since 1970.
    pub fn certificate_expiry(&self, listener: &'static str) -> Gauge {
        self.certificates.get_or_create_owned(&[("listener", listener)])
    }

    /// A request was answered. The route is `None` if the path is of no route.
    pub fn answered(&self, route: Option<&MatchedPath>, method: &Method, status: StatusCode, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
        if status.is_server_error() {
            self.failures.inc();
        }
        let answered =
            AnswerLabels { route: Route(route.cloned()), method: method_name(method), status: class(status) };
        self.answers.get_or_create(&answered).inc();
    }
}

/// Which answers are counted together. There are as many as the routes and methods allow, whatever
/// callers send.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    route: Route,
    method: &'static str,
    status: &'static str,
}

/// A route as its path is written in the description; `none` for a path of no route.
#[derive(Clone, Debug)]
struct Route(Option<MatchedPath>);

impl Route {
    fn as_str(&self) -> &str {
        self.0.as_ref().map_or("none", MatchedPath::as_str)
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Route {}

impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl EncodeLabelValue for Route {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        self.as_str().encode(encoder)
    }
}

/// The methods that there are; all that callers make up is one.
fn method_name(method: &Method) -> &'static str {
    const NAMES: [&str; 7] = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"];
    NAMES.into_iter().find(|name| *name == method.as_str()).unwrap_or("other")
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "1xx",
    }
}

/// Registers the metrics of the process, and the version of the build.
pub fn register_process(registry: &mut Registry) {
    let build: Family<[(&'static str, &'static str); 1], Gauge> = Family::default();
    build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
    registry.sub_registry_with_prefix("centavo").register("build_info", "Which build it is; always 1", build);
    registry.register_collector(Box::new(Process { since: Instant::now(), started: SystemTime::now() }));
}

/// The process as the system sees it, read when it is asked for. The names are those of Prometheus'
/// own client libraries.
#[derive(Debug)]
struct Process {
    since: Instant,
    started: SystemTime,
}

/// Unit of the kernel's times for programs, on every architecture (`USER_HZ`).
const TICKS_A_SECOND: f64 = 100.0;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = |name: &str, help: &str, value: Option<f64>| match value {
            Some(value) => {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
            }
            // The system does not report it.
            None => Ok(()),
        };
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        gauge("process_start_time_seconds", "When the process started, since 1970", Some(started.as_secs_f64()))?;
        gauge("process_uptime_seconds", "How long the process has run", Some(self.since.elapsed().as_secs_f64()))?;
        gauge("process_resident_memory_bytes", "Memory that is in the machine's memory", memory_bytes("VmRSS:"))?;
        gauge("process_virtual_memory_bytes", "Memory that is mapped", memory_bytes("VmSize:"))?;
        gauge("process_open_fds", "Files and connections that are open", open_files())?;
        gauge("process_max_fds", "Files and connections that may be open", open_files_max())?;
        let Some(cpu_seconds) = cpu_seconds() else { return Ok(()) };
        let counter = ConstCounter::new(cpu_seconds);
        let (name, help) = ("process_cpu_seconds", "CPU time of the process");
        counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)
    }
}

fn memory_bytes(name: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix(" kB")?;
    Some(kibibytes.parse::<f64>().ok()? * 1024.0)
}

fn open_files() -> Option<f64> {
    Some(fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn open_files_max() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The program's name may hold anything; it ends with the last closing parenthesis.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_A_SECOND)
}

/// The metrics' registry.
pub struct Exposition(pub Registry);
