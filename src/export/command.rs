//! `centavo export`: writes the books to files, from a stopped data directory or through the server that has it open. The server
//! gives its journal as it does for a backup; everything else is the same.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use actors::backup::{BackupError, Frame};
use actors::store::{Head, Sequence};

use super::{ExportError, Exported, Exporter, Folder};
use crate::config::ExportSettings;
use crate::journal_source::{self, JournalSource};
use crate::terminal::{self, advance};
use crate::verify::quietly;

/// Why nothing is exported.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The journal is not there to be read.
    #[error(transparent)]
    Journal(#[from] journal_source::Failure),
    /// It can't be read, or is damaged.
    #[error(transparent)]
    Read(#[from] BackupError),
    /// There is no such ledger, or a Record can't be read.
    #[error(transparent)]
    Export(ExportError),
    /// The files can't be written.
    #[error("{}: {source}", out.display())]
    Write {
        /// The directory.
        out: PathBuf,
        /// What the machine said.
        source: io::Error,
    },
    /// The cut is past the end.
    #[error("there is no Record {} to cut at: the journal ends at {}", at.0, last.0)]
    BeyondEnd {
        /// The cut.
        at: Sequence,
        /// The last Record.
        last: Sequence,
    },
    /// The data made the program panic: it holds what no sound program writes.
    #[error("the export could not go on: {0}")]
    Panicked(String),
}

/// What came of it.
struct Made {
    exported: Exported,
    files: usize,
    cut: Sequence,
    source: String,
}

/// Exports and says what.
pub async fn run(settings: ExportSettings) -> Result<(), Failure> {
    let begun = Instant::now();
    let out = settings.out.clone();
    let made = tokio::task::spawn_blocking(move || quietly(|| make(&settings)).unwrap_or_else(panicked)).await;
    let made = made.unwrap_or_else(|error| panicked(error.to_string()))?;
    for line in summary(&out, &made, begun.elapsed().as_secs_f64()) {
        terminal::say(&line);
    }
    Ok(())
}

fn panicked<T>(message: String) -> Result<T, Failure> {
    Err(Failure::Panicked(message))
}

fn make(settings: &ExportSettings) -> Result<Made, Failure> {
    let write = |source| Failure::Write { out: settings.out.clone(), source };
    let failed = |error| match error {
        ExportError::Write(source) => write(source),
        error => Failure::Export(error),
    };
    let journal = JournalSource::open(&settings.journal)?;
    let mut frames = journal.frames(Sequence::FIRST)?;
    let head = head_of(&mut frames)?;
    let last = Sequence(head.next.0 - 1);
    let cut = settings.at.unwrap_or(last);
    if cut > last {
        return Err(Failure::BeyondEnd { at: cut, last });
    }
    let mut folder = Folder::open(&settings.out, &settings.request).map_err(write)?;
    let mut exporter = Exporter::new(settings.request.clone());
    let bar = terminal::bar("reading the journal", "Records");
    for frame in frames {
        let Frame::Block(block) = frame? else { continue };
        let goes_on = exporter.post_block(&block, cut, &mut folder).map_err(failed)?;
        advance(&bar, block.next().0 - 1, cut.0);
        if !goes_on {
            break;
        }
    }
    bar.finish_and_clear();
    let exported = exporter.finish(&mut folder).map_err(failed)?;
    let files = folder.finish().map_err(write)?;
    Ok(Made { exported, files, cut, source: journal.to_string() })
}

/// Reads on to the head; what comes before it are the values beside the journal, which an export does not need.
fn head_of(frames: &mut journal_source::Frames<'_>) -> Result<Head, Failure> {
    for frame in frames {
        if let Frame::End(head) = frame? {
            return Ok(head);
        }
    }
    Err(BackupError::Source("it has no end").into())
}

fn summary(out: &Path, made: &Made, seconds: f64) -> Vec<String> {
    let Made { exported, files, cut, source } = made;
    let rows = [
        ["Cut", &format!("sequence {}", cut.0)],
        ["Postings", &terminal::count(exported.rows)],
        ["Debits", &format!("R$ {}", terminal::reais(exported.debits))],
        ["Credits", &format!("R$ {}", terminal::reais(exported.credits))],
        ["Files", &terminal::count(*files as u64)],
        ["Taken from", source],
    ];
    let mut lines = vec![format!("{}: the export is whole ({seconds:.1} s)", out.display())];
    let rows = rows.map(|row| row.map(str::to_owned));
    lines.extend(terminal::aligned(&rows, 2).iter().map(|line| format!("  {line}")));
    lines
}
