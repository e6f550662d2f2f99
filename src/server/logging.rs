//! Log on standard error: text, in colors on a terminal, or JSON with one flat object a line. A
//! line that is written while a request is handled has its `request_id`.
//!
//! A thread of its own writes the lines ([`LogQueue`]), so no request waits for the reader of the
//! log, and a log that cannot be written ends nothing. Lines that were not written are counted.

use std::backtrace::Backtrace;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::panic::{self, PanicHookInfo};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use serde::Serialize;
use tracing::Level;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::commands::terminal;
use crate::server::log_queue::{BYTES_MAX, LogQueue};
use crate::settings::args::LogFormat;
use web::request_context::RequestContext;

/// Log lines of `serve` when no setting says which.
pub const SERVE_FILTER: &str = "info,ractor=warn";

/// How long the last lines of a process may take.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// The log of the process.
struct Log {
    queue: Arc<LogQueue>,
    format: LogFormat,
}

static LOG: OnceLock<Log> = OnceLock::new();
static DROPPED: LazyLock<Counter> = LazyLock::new(Counter::default);

/// Starts the log of the process, and logs its panics. Must be called once, with a filter that the
/// settings have checked.
pub fn start(format: LogFormat, filter: &str) -> io::Result<()> {
    // Not the standard library's handle, whose lock would be held while the reader stands still.
    let output = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let queue = LogQueue::start(output, BYTES_MAX, DROPPED.clone())?;
    let Log { queue, .. } = LOG.get_or_init(|| Log { queue, format });
    let lines = || Lines(Arc::clone(queue));
    // Colors are also those of the fields of spans, which the subscriber writes by itself.
    let logs = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(filter)).with_ansi(in_colors());
    let logs = logs.log_internal_errors(false).with_writer(lines);
    match format {
        LogFormat::Text => logs.event_format(Text::new(in_colors())).init(),
        LogFormat::Json => logs.event_format(Json).init(),
    }
    panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Registers what is measured.
pub fn register(registry: &mut Registry) {
    let help = "Lines of the log that were not written";
    registry.sub_registry_with_prefix("centavo").register("log_lines_dropped", help, DROPPED.clone());
}

/// Waits until the lines of the log are written, a second at most. For the end of the process.
pub fn flush() {
    if let Some(log) = LOG.get() {
        log.queue.flush(LAST_WORDS_MAX);
    }
}

/// Writes a line for people on standard error, as a command's last one. It is no error when nobody
/// reads it.
pub fn complain(line: &str) {
    match LOG.get() {
        Some(log) => {
            log.queue.push(format!("{line}\n").as_bytes());
            log.queue.flush(LAST_WORDS_MAX);
        }
        None => terminal::note(line),
    }
}

/// Logs a panic as one line. A panic of the database also becomes an error of the store, whose
/// message says what to do. A second panic in here would abort the process, so the line does not
/// pass the subscribers, which use memory of the thread that may be gone.
fn log_panic(info: &PanicHookInfo<'_>) {
    let Some(log) = LOG.get().filter(|_| LevelFilter::current() >= Level::ERROR) else { return };
    let text = info.payload().downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied()).unwrap_or_default();
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let line = panic_line(log.format, text, &place, &Backtrace::capture().to_string());
    log.queue.push(line.as_bytes());
}

fn panic_line(format: LogFormat, text: &str, place: &str, backtrace: &str) -> String {
    let (mut timestamp, message) = (String::new(), format!("a panic: {text}"));
    let _a_string_takes_it = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    match format {
        LogFormat::Text => {
            let mut line =
                format!("{timestamp} ERROR {}: {message} place={place:?} backtrace={backtrace}", module_path!());
            add_request(&mut line);
            line + "\n"
        }
        LogFormat::Json => {
            let mut line = Members(String::from("{"));
            line.add("timestamp", &timestamp);
            line.add("level", "ERROR");
            line.add("target", module_path!());
            line.add("message", &message);
            line.add("place", place);
            line.add("backtrace", backtrace);
            line.add_request();
            line.0 + "}\n"
        }
    }
}

/// Writer of one line into the queue.
struct Lines(Arc<LogQueue>);

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Colors are for terminals, unless `NO_COLOR` is set to anything.
fn in_colors() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Format of a text line.
struct Text(Format<Full, SystemTime>);

impl Text {
    fn new(in_colors: bool) -> Self {
        Self(Format::default().with_ansi(in_colors))
    }
}

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        line.truncate(line.trim_end().len());
        add_request(&mut line);
        writeln!(writer, "{line}")
    }
}

/// Adds the request that is being handled to a text line.
fn add_request(line: &mut String) {
    RequestContext::current(|request| {
        let _a_string_takes_it = write!(line, " request_id={}", request.id());
    });
}

/// Format of a JSON line: `timestamp`, `level`, `target`, then the event's fields in the same
/// object.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut line = Members(String::from("{"));
        line.add("timestamp", &timestamp);
        line.add("level", event.metadata().level().as_str());
        line.add("target", event.metadata().target());
        event.record(&mut line);
        line.add_request();
        writeln!(writer, "{}}}", line.0)
    }
}

/// A JSON object whose members are written one after the other; the closing brace is missing.
struct Members(String);

impl Members {
    fn add<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        let [name, value] = [serde_json::to_string(name), serde_json::to_string(value)].map(Result::unwrap_or_default);
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _a_string_takes_it = write!(self.0, "{comma}{name}:{value}");
    }

    /// Adds the request that is being handled.
    fn add_request(&mut self) {
        RequestContext::current(|request| self.add("request_id", request.id()));
    }
}

impl Visit for Members {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field.name(), &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field.name(), &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field.name(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field.name(), &value);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::Mutex;
    use std::{env, thread};

    use axum::http::HeaderValue;
    use serde_json::Value;
    use tracing::subscriber::with_default;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// Collects the log.
    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for LogBuffer {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl LogBuffer {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn log_something() {
        let request = RequestContext { id: HeaderValue::from_static("r-\"1\"") };
        tracing::info!(micros = 12_u64, ready = true, address = %"127.0.0.1:1", "before \"it\"\nand on");
        request.during(|| tracing::warn!("within"));
    }

    #[test]
    fn a_line_for_machines_is_one_flat_object() {
        let buffer = LogBuffer::default();
        let subscriber = tracing_subscriber::fmt().with_writer(buffer.clone()).event_format(Json).finish();
        with_default(subscriber, log_something);
        let lines: Vec<Value> = buffer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{}", buffer.text());
        assert!(lines.iter().all(|line| line.as_object().unwrap().values().all(|value| !value.is_object())));
        let of = |line: usize, name: &str| lines[line][name].clone();
        assert_eq!((of(0, "level"), of(0, "message")), ("INFO".into(), "before \"it\"\nand on".into()));
        assert_eq!((of(0, "micros"), of(0, "ready"), of(0, "address")), (12.into(), true.into(), "127.0.0.1:1".into()));
        assert_eq!((of(0, "target"), of(0, "request_id")), ("centavo::server::logging::tests".into(), Value::Null));
        assert_eq!(of(1, "request_id"), "r-\"1\"");
        assert!(of(1, "timestamp").as_str().is_some_and(|time| time.ends_with('Z')), "{}", of(1, "timestamp"));
    }

    #[test]
    fn a_line_for_people_has_the_request_too() {
        let buffer = LogBuffer::default();
        let subscriber = tracing_subscriber::fmt().with_writer(buffer.clone()).event_format(Text::new(false)).finish();
        with_default(subscriber, log_something);
        let text = buffer.text();
        let (before, within) = (text.lines().next().unwrap(), text.lines().last().unwrap());
        assert!(before.contains("INFO") && !before.contains("request_id"), "{text}");
        assert!(within.ends_with("within request_id=r-\"1\""), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_panic_is_one_line_of_either_format() {
        let line = panic_line(LogFormat::Json, "sums \"do\"\nnot fit", "src/a.rs:1:2", "disabled backtrace");
        let read: Value = serde_json::from_str(line.strip_suffix('\n').unwrap()).unwrap();
        assert_eq!((&read["level"], &read["place"]), (&"ERROR".into(), &"src/a.rs:1:2".into()));
        assert_eq!(read["message"], "a panic: sums \"do\"\nnot fit");
        let line = panic_line(LogFormat::Text, "sums do not fit", "src/a.rs:1:2", "disabled backtrace");
        assert!(
            line.contains(" ERROR centavo::server::logging: a panic: sums do not fit place=\"src/a.rs:1:2\""),
            "{line}"
        );
    }

    /// Logs when its thread has no other memory of its own any more.
    struct PanicsAtTheEnd;

    impl Drop for PanicsAtTheEnd {
        fn drop(&mut self) {
            let caught = panic::catch_unwind(|| panic!("at the end of a thread"));
            assert!(caught.is_err());
        }
    }

    thread_local! {
        static LAST: PanicsAtTheEnd = const { PanicsAtTheEnd };
    }

    const IS_CHILD: &str = "PANICS_OF_THE_LOG";

    /// This test is the process, too: whoever reads its log is gone, or reads nothing.
    #[test]
    fn a_panic_that_cannot_be_logged_ends_no_process() {
        if env::var_os(IS_CHILD).is_some() {
            start(LogFormat::Text, "info").unwrap();
            let panics = || {
                LAST.with(|_| {});
                tracing::info!("its memory is made after, and is gone before");
            };
            (0..8).for_each(|_| thread::spawn(panics).join().unwrap());
            (0..2_000).for_each(|number| tracing::info!(number, "{}", "a long line ".repeat(100)));
            complain("the last word");
            return;
        }
        for is_open in [false, true] {
            let mut command = Command::new(env::current_exe().unwrap());
            command.args(["--exact", "logging::tests::a_panic_that_cannot_be_logged_ends_no_process"]);
            command.env(IS_CHILD, "1").stdout(Stdio::null()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let log = child.stderr.take().filter(|_| is_open);
            assert!(child.wait().unwrap().success(), "with an open log: {is_open}");
            drop(log);
        }
    }

    #[test]
    fn fields_of_spans_are_colored_as_the_rest_is() {
        let buffer = LogBuffer::default();
        let subscriber = tracing_subscriber::fmt().with_writer(buffer.clone()).with_ansi(false);
        with_default(subscriber.event_format(Text::new(false)).finish(), || {
            let _entered = tracing::info_span!("actor", id = 7).entered();
            log_something();
        });
        let text = buffer.text();
        assert!(text.contains("actor{id=7}") && !text.contains('\u{1b}'), "{text}");
    }
}
