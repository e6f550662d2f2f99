//! `centavo report`: writes a report, from a stopped data directory or through the server that has
//! it open. The server sends its journal as for a backup.

use std::io::{self, Write};
use std::path::PathBuf;

use actors::backup::{BackupError, Frame};
use books::reports::{ReportError, ReportMaker, ReportSummary};
use store::cut::Cut;
use wire::cut_text::cut_name;

use crate::commands::journal_source::{JournalSource, JournalSourceFailure, admitted_cut};
use crate::commands::terminal::{self, advance};
use crate::commands::verify::quietly;
use crate::settings::checked::ReportSettings;

/// Why no report was made.
#[derive(Debug, thiserror::Error)]
pub enum ReportFailure {
    /// The journal can't be opened.
    #[error(transparent)]
    Journal(#[from] JournalSourceFailure),
    /// The journal can't be read, or is damaged.
    #[error(transparent)]
    Read(#[from] BackupError),
    /// There is no such ledger, a Record can't be read, or the format cannot hold the rows.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The file can't be written.
    #[error("{}: {source}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
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
    #[error("the report could not be made: {0}")]
    Panicked(String),
}

/// Makes a report. A table is printed, unless a directory is given; the other formats are files.
pub async fn run(settings: ReportSettings) -> Result<(), ReportFailure> {
    let made = tokio::task::spawn_blocking(move || {
        quietly(|| make(&settings)).unwrap_or_else(|message| Err(ReportFailure::Panicked(message)))
    });
    made.await.unwrap_or_else(|error| Err(ReportFailure::Panicked(error.to_string())))
}

fn make(settings: &ReportSettings) -> Result<(), ReportFailure> {
    let Some(folder) = &settings.out else {
        let mut text = Vec::new();
        write(settings, &mut text)?;
        let _closed = io::stdout().write_all(&text);
        return Ok(());
    };
    let name = settings.request.file_name(settings.format);
    let failed = |source| ReportFailure::Write { file: folder.join(&name), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    // The file gets its name when it is whole and on the disk.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    let made = write(settings, &mut io::BufWriter::new(file.as_file_mut()))?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(folder.join(&name)).map_err(|error| failed(error.error))?;
    let ReportSummary { cut, head, rows } = made;
    terminal::say(&format!("{}: {rows} rows", folder.join(&name).display()));
    terminal::say(&format!("  cut: sequence {}, block {head}", cut_name(&cut)));
    Ok(())
}

fn write(settings: &ReportSettings, out: &mut dyn Write) -> Result<ReportSummary, ReportFailure> {
    let journal = JournalSource::open(&settings.journal)?;
    let mut cut = None;
    let mut maker = ReportMaker::new(settings.request.clone(), settings.format, out)?;
    let bar = terminal::bar("reading the journal", "Records");
    let mut first = Cut::default();
    let with_receivables = settings.request.begins_with_receivables();
    let begin = |time| journal.before(time, settings.at.as_ref(), with_receivables);
    if let Some(before) = settings.request.begins_before().map(begin).transpose()?.flatten() {
        first = before.through();
        maker.begin_at(before)?;
    }
    let mut read = first.records();
    for frame in journal.frames(&first)? {
        match (frame?, &cut) {
            (Frame::End(heads), None) => {
                let last = heads.cut();
                let through = admitted_cut(settings.at.as_ref(), &last);
                let through = through.map_err(|at| ReportFailure::BeyondEnd { at, last })?;
                maker.read_through(&through);
                cut = Some(through);
            }
            (Frame::Block(block), Some(cut)) => {
                let goes_on = maker.post_block(&block, cut)?;
                read += block.records.len() as u64;
                advance(&bar, read.min(cut.records()), cut.records());
                if !goes_on {
                    break;
                }
            }
            _ => {}
        }
    }
    bar.finish_and_clear();
    if cut.is_none() {
        return Err(BackupError::Source("it has no end").into());
    }
    let made = maker.finish()?;
    out.flush().map_err(ReportError::Write)?;
    Ok(made)
}
