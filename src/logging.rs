//! Log on standard error: text, in colors on a terminal, or JSON with one flat object a line. A
//! line that is written while a request is handled has its `request_id`, and the `trace_id` and
//! `span_id` of the request's `traceparent`.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal as _};

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::config::LogFormat;
use crate::http::trace::RequestContext;

/// Log lines of `serve` when no setting says which.
pub const SERVE_FILTER: &str = "info,ractor=warn";

/// Starts the log of the process. Must be called once, with a filter that the settings have
/// checked.
pub fn start(format: LogFormat, filter: &str) {
    let logs = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(filter)).with_writer(io::stderr);
    match format {
        LogFormat::Text => logs.event_format(Text::new(in_colors())).init(),
        LogFormat::Json => logs.event_format(Json).init(),
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
        RequestContext::current(|request| {
            let _a_string_takes_it = write!(line, " request_id={}", request.id());
            if let Some(trace) = request.trace {
                let _a_string_takes_it = write!(line, " trace_id={:032x} span_id={:016x}", trace.trace, trace.span);
            }
        });
        writeln!(writer, "{line}")
    }
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
        RequestContext::current(|request| {
            line.add("request_id", request.id());
            if let Some(trace) = request.trace {
                line.add("trace_id", &format!("{:032x}", trace.trace));
                line.add("span_id", &format!("{:016x}", trace.span));
            }
        });
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
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use axum::http::HeaderValue;
    use serde_json::Value;
    use tracing::subscriber::with_default;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use crate::http::trace::TraceContext;

    /// Collects the log.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Kept {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl Kept {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn log_something() {
        let request = RequestContext {
            id: HeaderValue::from_static("r-\"1\""),
            trace: Some(TraceContext { trace: 0xabc, span: 7, flags: 1 }),
        };
        tracing::info!(micros = 12_u64, ready = true, address = %"127.0.0.1:1", "before \"it\"\nand on");
        request.during(|| tracing::warn!("within"));
    }

    #[test]
    fn a_line_for_machines_is_one_flat_object() {
        let kept = Kept::default();
        let subscriber = tracing_subscriber::fmt().with_writer(kept.clone()).event_format(Json).finish();
        with_default(subscriber, log_something);
        let lines: Vec<Value> = kept.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{}", kept.text());
        assert!(lines.iter().all(|line| line.as_object().unwrap().values().all(|value| !value.is_object())));
        let of = |line: usize, name: &str| lines[line][name].clone();
        assert_eq!((of(0, "level"), of(0, "message")), ("INFO".into(), "before \"it\"\nand on".into()));
        assert_eq!((of(0, "micros"), of(0, "ready"), of(0, "address")), (12.into(), true.into(), "127.0.0.1:1".into()));
        assert_eq!((of(0, "target"), of(0, "request_id")), ("centavo::logging::tests".into(), Value::Null));
        assert_eq!((of(1, "request_id"), of(1, "span_id")), ("r-\"1\"".into(), "0000000000000007".into()));
        assert_eq!(of(1, "trace_id"), "00000000000000000000000000000abc");
        assert!(of(1, "timestamp").as_str().is_some_and(|time| time.ends_with('Z')), "{}", of(1, "timestamp"));
    }

    #[test]
    fn a_line_for_people_has_the_request_too() {
        let kept = Kept::default();
        let subscriber = tracing_subscriber::fmt().with_writer(kept.clone()).event_format(Text::new(false)).finish();
        with_default(subscriber, log_something);
        let text = kept.text();
        let (before, within) = (text.lines().next().unwrap(), text.lines().last().unwrap());
        assert!(before.contains("INFO") && !before.contains("request_id"), "{text}");
        assert!(
            within.ends_with(
                "within request_id=r-\"1\" trace_id=00000000000000000000000000000abc span_id=0000000000000007"
            )
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
