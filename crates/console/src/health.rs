//! Health: readiness, and the figures that warn of trouble.

use maud::{Markup, html};
use store::Sequence;
use store::cut::Cut;

use crate::records::cut_link;
use crate::{PageRequest, Screen, Section, Visit, show, wire_words, words};
use ops::Desk;
use ops::health::readiness;
use web::{Language, Result, failed};

/// Page of the service's health.
pub(crate) async fn show(request: PageRequest) -> Result<Screen> {
    let PageRequest { desk, visit, .. } = &request;
    visit.whole()?;
    let (engine, readiness) = (&desk.engine, readiness(desk));
    let metrics = engine.metrics();
    let seconds = |seconds: f64| html! { (show::count(visit.language, seconds.max(0.0) as u64)) " s" };
    let backup = match desk.last_backup.taken_at() {
        Some(at) => show::moment(visit.language, at),
        None => html! { (visit.say(words::NEVER)) },
    };
    let head = engine.published();
    let through = match desk.last_backup.through() {
        Some(through) if through > 0 && head.partitions() == 1 && through <= head.records() => {
            cut_link(visit.language, &Cut::new(vec![Sequence(through)]))
        }
        Some(through) => html! { (show::count(visit.language, through)) },
        None => html! { "—" },
    };
    let measured = MetricsText::of(desk)?;
    let pairs = vec![
        (visit.say(words::VERSION), html! { (env!("CARGO_PKG_VERSION")) }),
        (visit.say(words::HEAD), html! { @if !head.is_empty() { (cut_link(visit.language, &head)) } @else { "0" } }),
        (visit.say(words::LAST_BACKUP), backup),
        (visit.say(words::LAST_BACKUP_THROUGH), through),
        (visit.say(words::COMMIT_TIME), html! { (measured.times("centavo_journal_commit_seconds")) }),
        (visit.say(words::GATE_TIME), html! { (measured.times("centavo_gate_wait_seconds")) }),
        (visit.say(words::PERMITS_FREE), html! { (measured.permits(visit.language)) }),
        (visit.say(words::MEMORY), bytes(visit, measured.value("process_resident_memory_bytes").unwrap_or_default())),
        (visit.say(words::DATA_SIZE), bytes(visit, engine.size_bytes()? as f64)),
        (visit.say(words::FREE_SPACE), bytes(visit, metrics.storage_free_bytes.get() as f64)),
        (visit.say(words::DUE_LAG), seconds(metrics.due_lag_seconds.get() as f64)),
        (visit.say(words::OLDEST_UNKNOWN), seconds(metrics.oldest_unknown_seconds.get() as f64)),
        (visit.say(words::SHED), html! { (show::count(visit.language, metrics.shed.get())) }),
    ];
    let body = html! {
        section.card aria-label=(visit.say(words::HEALTH)) {
            @match &readiness {
                Ok(()) => p { span.badge.good { (visit.say(words::READY)) } },
                Err(problem) => {
                    p { span.badge.bad { (visit.say(words::NOT_READY)) } }
                    p { (show::problem(visit.language, problem)) }
                }
            }
            (show::facts(pairs))
        }
    };
    Ok(Screen { section: Section::Health, title: visit.say(words::HEALTH).to_owned(), body })
}

fn bytes(visit: &Visit, bytes: f64) -> Markup {
    html! { (show::count(visit.language, (bytes / (1024.0 * 1024.0)) as u64)) " MiB" }
}

/// What the process has measured since its start, as its metrics have it.
struct MetricsText(String);

impl MetricsText {
    fn of(desk: &Desk) -> Result<Self> {
        let mut text = String::new();
        let encoded = prometheus_client::encoding::text::encode(&mut text, &desk.exposition.0);
        encoded.map_err(failed)?;
        Ok(Self(text))
    }

    /// The samples of a name: what stands in their braces, and their values.
    fn samples<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.lines().filter_map(move |line| {
            let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            let is_whole_name = labels.is_empty() || labels.starts_with('{');
            Some((labels, value.parse().ok()?)).filter(|_| is_whole_name)
        })
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.samples(name).next().map(|(_, value)| value)
    }

    /// Commands that still fit, by who sends them.
    fn permits(&self, language: Language) -> String {
        let free = self.samples("centavo_permits_free").filter_map(|(labels, free)| {
            let class = labels.split('"').nth(1)?;
            Some(format!(
                "{} {}",
                show::count(language, free.max(0.0) as u64),
                wire_words::SENDERS.of(class).text(language)
            ))
        });
        free.collect::<Vec<_>>().join(" · ")
    }

    /// Within which time half of what a histogram counted was done, and 99 in 100 of it.
    fn times(&self, name: &str) -> String {
        let buckets: Vec<(f64, f64)> = self
            .samples(&format!("{name}_bucket"))
            .filter_map(|(labels, count)| Some((labels.split('"').nth(1)?.parse().ok()?, count)))
            .collect();
        let total = buckets.last().map_or(0.0, |(_, count)| *count);
        let within = |part: f64| {
            let bound = buckets.iter().find(|(_, count)| *count >= total * part).map(|(bound, _)| *bound);
            bound.filter(|bound| bound.is_finite() && total > 0.0).map_or("—".to_owned(), in_milliseconds)
        };
        format!("{} · {}", within(0.5), within(0.99))
    }
}

fn in_milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_out_of_the_metrics() {
        let text = "a_seconds_sum 3\na_seconds_bucket{le=\"0.001\"} 60\na_seconds_bucket{le=\"0.002\"} 98\n\
             a_seconds_bucket{le=\"0.004\"} 99\na_seconds_bucket{le=\"+Inf\"} 100\nab 7\n\
             centavo_permits_free{class=\"door\"} 5\ncentavo_permits_free{class=\"inside\"} 9\nempty_bucket{le=\"+Inf\"} 0\n";
        let measured = MetricsText(text.to_owned());
        assert_eq!(measured.times("a_seconds"), "1.0 ms · 4.0 ms");
        assert_eq!(measured.times("empty"), "— · —");
        assert_eq!((measured.value("a"), measured.value("ab")), (None, Some(7.0)));
        assert_eq!(measured.permits(Language::English), "5 from the API · 9 from the service itself");
    }
}
