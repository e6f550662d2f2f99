//! `centavo report`: writes a report, from a stopped data directory or through the server that has
//! it open. The server sends its journal as for a backup.

use std::io::{self, Write};

use actors::backup::{BackupError, Frame};
use books::reports::{ReportMaker, ReportSummary};
use store::cut::Cut;
use wire::cut_text::cut_name;

use crate::commands::Failure;
use crate::commands::journal_source::{JournalSource, admitted_cut};
use crate::commands::terminal::{self, advance};
use crate::commands::verify::quietly;
use crate::settings::checked::ReportSettings;

/// Makes a report. A table is printed, unless a directory is given; the other formats are files.
pub async fn run(settings: ReportSettings) -> Result<(), Failure> {
    tokio::task::spawn_blocking(move || quietly("the report could not be made", || make(&settings))).await?
}

fn make(settings: &ReportSettings) -> Result<(), Failure> {
    let Some(folder) = &settings.out else {
        let mut text = Vec::new();
        write(settings, &mut text)?;
        let _closed = io::stdout().write_all(&text);
        return Ok(());
    };
    let name = settings.request.file_name(settings.format);
    let failed = |source: io::Error| format!("{}: {source}", folder.join(&name).display());
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

fn write(settings: &ReportSettings, out: &mut dyn Write) -> Result<ReportSummary, Failure> {
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
                let through = admitted_cut(settings.at.as_ref(), &last)?;
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
    out.flush()?;
    Ok(made)
}
