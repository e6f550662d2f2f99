//! `centavo export`: writes the books to files, from a stopped data directory or through the server
//! that has it open. The server sends its journal as for a backup.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use actors::backup::{BackupError, Frame, Frames};
use books::export::{ExportError, ExportTotals, Exporter, Folder, ManifestDraft, ManifestError, are_over};
use chrono::Utc;
use derived::heads::Heads;
use store::cut::{Cut, PassedBlocks};
use wire::cut_text::cut_name;
use wire::reais::reais;
use wire::timestamp::{begin_of, day_of};

use crate::commands::journal_source::{JournalSource, JournalSourceFailure, admitted_cut};
use crate::commands::terminal::{self, advance};
use crate::commands::verify::quietly;
use crate::settings::checked::ExportSettings;

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportFailure {
    /// The journal can't be opened.
    #[error(transparent)]
    Journal(#[from] JournalSourceFailure),
    /// The journal can't be read, or is damaged.
    #[error(transparent)]
    Read(#[from] BackupError),
    /// There is no such ledger, or a Record can't be read.
    #[error(transparent)]
    Export(ExportError),
    /// The export does not follow the one before it in the folder.
    #[error("nothing was exported: {0}")]
    Manifest(#[from] ManifestError),
    /// The files can't be written.
    #[error("{}: {source}", out.display())]
    Write {
        /// The directory of the files.
        out: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The cut is beyond the end of the journal.
    #[error("there is no Record {} to cut at: the journal ends at {}", cut_name(at), cut_name(last))]
    BeyondEnd {
        /// The requested cut.
        at: Cut,
        /// The last Record, of each partition where there are several.
        last: Cut,
    },
    /// Reading the data made the program panic: the data is damaged.
    #[error("the export could not go on: {0}")]
    Panicked(String),
}

/// Result of an export.
struct ExportSummary {
    exported: ExportTotals,
    files: usize,
    cut: Cut,
    source: String,
}

/// Exports, and prints a summary.
pub async fn run(settings: ExportSettings) -> Result<(), ExportFailure> {
    let begun = Instant::now();
    let out = settings.out.clone();
    let made = tokio::task::spawn_blocking(move || quietly(|| make(&settings)).unwrap_or_else(panicked)).await;
    let made = made.unwrap_or_else(|error| panicked(error.to_string()))?;
    for line in summary(&out, &made, begun.elapsed().as_secs_f64()) {
        terminal::say(&line);
    }
    Ok(())
}

fn panicked<T>(message: String) -> Result<T, ExportFailure> {
    Err(ExportFailure::Panicked(message))
}

fn make(settings: &ExportSettings) -> Result<ExportSummary, ExportFailure> {
    let write = |source| ExportFailure::Write { out: settings.out.clone(), source };
    let failed = |error| match error {
        ExportError::Write(source) => write(source),
        error => ExportFailure::Export(error),
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
    let through = admitted_cut(settings.at.as_ref(), &last);
    let through = through.map_err(|at| ExportFailure::BeyondEnd { at, last: last.clone() })?;
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
    let (manifest, cut) = (draft.manifest(&settings.out)?, draft.cut.clone());
    let files = folder.finish_with(Some(draft.name()), |files, out| manifest.write(files, out)).map_err(write)?;
    Ok(ExportSummary { exported, files, cut, source: journal.to_string() })
}

/// Reads the frames through the heads, and skips the stored values before them.
fn heads_of(frames: &mut Frames<'_>) -> Result<Heads, ExportFailure> {
    for frame in frames {
        if let Frame::End(heads) = frame? {
            return Ok(heads);
        }
    }
    Err(BackupError::Source("it has no end").into())
}

fn summary(out: &Path, made: &ExportSummary, seconds: f64) -> Vec<String> {
    let ExportSummary { exported, files, cut, source } = made;
    let rows = [
        ["Cut", &format!("sequence {}", cut_name(cut))],
        ["Postings", &terminal::count(exported.rows)],
        ["Debits", &format!("R$ {}", reais(exported.debits))],
        ["Credits", &format!("R$ {}", reais(exported.credits))],
        ["Files", &terminal::count(*files as u64)],
        ["Taken from", source],
    ];
    let mut lines = vec![format!("{}: the export is whole ({seconds:.1} s)", out.display())];
    let rows = rows.map(|row| row.map(str::to_owned));
    lines.extend(terminal::aligned(&rows, 2).iter().map(|line| format!("  {line}")));
    lines
}
