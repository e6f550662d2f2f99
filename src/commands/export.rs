//! `centavo export`: writes the books to files, from a stopped data directory or through the server
//! that has it open. The server sends its journal as for a backup.

use std::io;
use std::path::Path;
use std::time::Instant;

use actors::backup::{BackupError, Frame, Frames};
use books::error::BooksError;
use books::export::{ExportTotals, Exporter, Folder, ManifestDraft, are_over};
use chrono::Utc;
use derived::heads::Heads;
use store::cut::{Cut, PassedBlocks};
use wire::cut_text::cut_name;
use wire::reais::reais;
use wire::timestamp::{begin_of, day_of};

use crate::commands::Failure;
use crate::commands::journal_source::{JournalSource, admitted_cut};
use crate::commands::terminal::{self, advance};
use crate::commands::verify::quietly;
use crate::settings::checked::ExportSettings;

/// Result of an export.
struct ExportSummary {
    exported: ExportTotals,
    files: usize,
    cut: Cut,
    source: String,
}

/// Exports, and prints a summary.
pub async fn run(settings: ExportSettings) -> Result<(), Failure> {
    let (begun, out) = (Instant::now(), settings.out.clone());
    let work = move || quietly("the export could not go on", || make(&settings));
    let made = tokio::task::spawn_blocking(work).await??;
    say_made(&out, &made, begun.elapsed().as_secs_f64());
    Ok(())
}

fn make(settings: &ExportSettings) -> Result<ExportSummary, Failure> {
    let write = |source: io::Error| Failure::from(format!("{}: {source}", settings.out.display()));
    let failed = |error| match error {
        BooksError::Write(source) => write(source),
        error => error.into(),
    };
    let journal = JournalSource::open(&settings.journal)?;
    let mut exporter = Exporter::new(settings.request.clone()).keeping_balances();
    let mut first = Cut::default();
    let begins_before = settings.request.from.map(begin_of);
    let begin = |time| journal.before(time, settings.at.as_ref(), false);
    if let Some(before) = begins_before.map(begin).transpose()?.flatten() {
        first = before.through();
        exporter.begin_at(&before).map_err(failed)?;
    }
    let mut frames = journal.frames(&first)?;
    let last = heads_of(&mut frames)?.cut();
    let through = admitted_cut(settings.at.as_ref(), &last)?;
    let mut folder = Folder::open(&settings.out, &settings.request).map_err(write)?;
    if settings.compress {
        folder = folder.compressed();
    }
    if let Some((chart, level)) = &settings.chart {
        exporter = exporter.mapped(chart.clone(), *level);
    }
    let bar = terminal::bar("reading the journal", "Records");
    let begin = || PassedBlocks::at(through.begin());
    let (mut reached, mut before) = (begin(), begin());
    let (mut read, total) = (first.records(), through.records());
    let mut is_complete = through == last && are_over(&settings.request, Utc::now().timestamp_millis());
    for frame in frames {
        let Frame::Block(block) = frame? else { continue };
        let goes_on = exporter.post_block(&block, &through, &mut folder).map_err(failed)?;
        read += block.records.len() as u64;
        advance(&bar, read.min(total), total);
        if settings.request.from.is_some_and(|from| day_of(block.booked_at_ms) < from) {
            before.pass(&block, &last);
        }
        let is_after = settings.request.to.is_some_and(|to| day_of(block.booked_at_ms) > to);
        is_complete |= is_after;
        if !is_after {
            reached.pass(&block, &through);
        }
        if !goes_on {
            break;
        }
    }
    bar.finish_and_clear();
    let exported = exporter.finish(&mut folder).map_err(failed)?;
    let draft = ManifestDraft {
        request: &settings.request,
        chart: settings.chart.as_ref(),
        compress: settings.compress,
        cut: reached.cut().clone(),
        is_complete,
        head: reached.head(),
        before: (before.cut().clone(), before.head()),
        is_of_owner: &|_| true,
        exported: &exported,
    };
    let (manifest, cut) =
        (draft.manifest(&settings.out).map_err(|error| format!("nothing was exported: {error}"))?, draft.cut.clone());
    let files = folder.finish_with(Some(draft.name()), |files, out| manifest.write(files, out)).map_err(write)?;
    Ok(ExportSummary { exported, files, cut, source: journal.to_string() })
}

/// Reads the frames through the heads, and skips the stored values before them.
fn heads_of(frames: &mut Frames<'_>) -> Result<Heads, Failure> {
    for frame in frames {
        if let Frame::End(heads) = frame? {
            return Ok(heads);
        }
    }
    Err(BackupError::Source("it has no end").into())
}

fn say_made(out: &Path, made: &ExportSummary, seconds: f64) {
    let ExportSummary { exported, files, cut, source } = made;
    let rows = [
        ["Cut", &format!("sequence {}", cut_name(cut))],
        ["Postings", &terminal::count(exported.rows)],
        ["Debits", &format!("R$ {}", reais(exported.sums.debits))],
        ["Credits", &format!("R$ {}", reais(exported.sums.credits))],
        ["Files", &terminal::count(*files as u64)],
        ["Taken from", source],
    ];
    let rows = rows.map(|row| row.map(str::to_owned));
    terminal::say_done(&format!("{}: the export is whole", out.display()), seconds, &rows);
}
