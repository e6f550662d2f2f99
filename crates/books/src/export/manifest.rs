//! Manifest of an export, as a file beside the export's files. It holds the request, the cut of
//! the journal, the totals, and the SHA-256 of each file. So anybody who has it finds a changed,
//! missing or exchanged file.
//!
//! The manifest of the days before is named by its SHA-256, so that the exports of a year are a
//! chain. Its closing balances must be the opening balances of this one. A manifest that was made
//! before its days were over is no link of the chain.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::Path;

use derived::checkpoint::hex;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::BlockHash;
use store::cut::Cut;
use wire::cut_text::{CutView, by_partition};
use wire::timestamp::day_of;

use super::chart::{Chart, Level};
use super::columns::{SCHEMA, columns};
use super::request::{Format, Request};
use super::totals::{AccountSums, AccountTotals, ExportTotals};

/// Suffix of the names of manifests.
pub(super) const SUFFIX: &str = ".manifest.json";

/// Manifest of an export.
#[derive(Serialize)]
pub struct Manifest<'a> {
    /// Version of the columns of rows.
    schema: u32,
    request: ManifestRequest,
    /// Columns of the rows, where the file itself has no types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    columns: Vec<ManifestColumn>,
    /// The last Record that counts, by partition of the journal.
    cut: CutView,
    /// Whether all Records of the days count: they were over, and the cut is not before their end.
    /// False without a last day.
    complete: bool,
    /// Hash of the block with that Record, which covers all blocks before it; of several partitions
    /// the SHA-256 of these hashes; hexadecimal.
    head: String,
    /// Number of postings.
    rows: u64,
    /// Sums of all postings, centavos.
    debits: i128,
    /// Equal to the debits when whole entries are exported.
    credits: i128,
    accounts: &'a AccountSums,
    files: Vec<ExportedFile>,
    /// The manifest of the days before, if it is in the same folder.
    previous: Option<PreviousManifest>,
}

/// Name and type of a column of rows.
#[derive(Serialize)]
struct ManifestColumn {
    name: &'static str,
    /// `integer`, `string`, `date` or `timestamp`.
    r#type: &'static str,
}

/// What is read of the manifest of an earlier export first; its accounts follow one by one.
#[derive(Deserialize)]
struct EarlierManifest {
    request: ManifestRequest,
    cut: CutView,
    head: String,
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ManifestRequest {
    ledger: String,
    format: String,
    from: Option<String>,
    to: Option<String>,
    level: Option<String>,
    /// SHA-256 of the chart of accounts (`--map`), hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map: Option<String>,
    compress: bool,
}

/// One file of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportedFile {
    /// Its path in the folder, with `/` between components.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// The manifest of the days before.
#[derive(Debug, Serialize, Deserialize)]
struct PreviousManifest {
    path: String,
    sha256: String,
}

/// Why a manifest cannot follow the one before.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The folder cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It is of another journal, or of a changed one.
    #[error("{path}: its last block has another hash than that block of the journal")]
    OtherPast {
        /// The manifest of the days before.
        path: String,
    },
    /// The balances at the end of the days before are others.
    #[error(
        "{path}: its closing balance of {account} of {ledger} is {closing} centavos, and {opening} is brought forward"
    )]
    Differs {
        /// The manifest of the days before.
        path: String,
        /// The account.
        account: String,
        /// Its ledger.
        ledger: String,
        /// The balance by that manifest.
        closing: i128,
        /// The balance by the journal.
        opening: i128,
    },
}

/// Time after the end of a day in which a Record of that day may still be on its way to the disk.
const IN_FLIGHT_MS: i64 = 10_000;

/// Whether the requested days were over at a time, with all their Records in the journal.
pub fn are_over(request: &Request, now_ms: i64) -> bool {
    request.to.is_some_and(|to| day_of(now_ms - IN_FLIGHT_MS) > to)
}

/// What a manifest says besides the files.
pub struct ManifestDraft<'a> {
    /// Ledger, days and format that were asked for.
    pub request: &'a Request,
    /// Codes and columns of another program, where they were asked for.
    pub chart: Option<&'a (Chart, Level)>,
    /// Whether the files are compressed.
    pub compress: bool,
    /// The last Records that count.
    pub cut: Cut,
    /// Whether all Records of the requested days count.
    pub is_complete: bool,
    /// Hash of the journal there.
    pub head: BlockHash,
    /// The last Records that were booked before the first day, and the hash of the journal there.
    pub before: (Cut, BlockHash),
    /// Whether the manifest of a file name may come before this one.
    pub is_of_owner: &'a dyn Fn(&str) -> bool,
    /// Totals of the rows, and of each account.
    pub exported: &'a ExportTotals,
}

impl ManifestDraft<'_> {
    /// The manifest's file name.
    pub fn name(&self) -> String {
        let ledger = self.request.ledger.as_deref().unwrap_or("all");
        format!("{}.{}{SUFFIX}", self.request.dated(ledger), self.request.format.ending())
    }

    /// The manifest, which follows those that are in the folder.
    pub fn manifest(&self, folder: &Path) -> Result<Manifest<'_>, ManifestError> {
        let ExportTotals { rows, sums, accounts } = self.exported;
        let previous = self.previous(folder)?;
        Ok(Manifest {
            schema: SCHEMA,
            request: self.request_echo(),
            columns: self.columns(),
            cut: by_partition(&self.cut),
            complete: self.is_complete,
            head: hex(&self.head.0),
            rows: *rows,
            debits: sums.debits,
            credits: sums.credits,
            accounts,
            files: Vec::new(),
            previous,
        })
    }

    fn columns(&self) -> Vec<ManifestColumn> {
        let is_untyped = matches!(self.request.format, Format::Jsonl | Format::Csv);
        let columns = columns(false).iter().filter(|_| is_untyped);
        columns.map(|column| ManifestColumn { name: column.name, r#type: column.type_name() }).collect()
    }

    fn request_echo(&self) -> ManifestRequest {
        let Request { ledger, format, from, to } = self.request;
        ManifestRequest {
            ledger: ledger.clone().unwrap_or_else(|| "all".to_owned()),
            format: format.name().to_owned(),
            from: from.map(|day| day.to_string()),
            to: to.map(|day| day.to_string()),
            level: self.chart.map(|(_, level)| if *level == Level::Day { "day" } else { "entry" }.to_owned()),
            map: self.chart.map(|(chart, _)| chart.sha256.clone()),
            compress: self.compress,
        }
    }

    /// The manifest of the days that end before the first day of this one, made when they were
    /// over. Of several the last by name.
    fn previous(&self, folder: &Path) -> Result<Option<PreviousManifest>, ManifestError> {
        let Some(end) = self.request.from.and_then(|from| from.pred_opt()) else { return Ok(None) };
        let (request, end) = (self.request_echo(), Some(end.to_string()));
        let cut = by_partition(&self.before.0);
        let is_before = |manifest: &EarlierManifest| {
            let of = &manifest.request;
            let is_whole = manifest.cut == cut;
            is_whole
                && (&of.to, &of.ledger, &of.format, &of.level)
                    == (&end, &request.ledger, &request.format, &request.level)
        };
        let mut found = None;
        for entry in fs::read_dir(folder)? {
            let path = entry?.file_name().to_string_lossy().into_owned();
            if !path.ends_with(SUFFIX)
                || !(self.is_of_owner)(&path)
                || found.as_ref().is_some_and(|(of, _): &(String, _)| *of > path)
            {
                continue;
            }
            let file = BufReader::new(File::open(folder.join(&path))?);
            // What cannot be read is no manifest of an export.
            let Ok(manifest) = serde_json::from_reader::<_, EarlierManifest>(file) else { continue };
            if is_before(&manifest) {
                found = Some((path, manifest));
            }
        }
        let Some((path, manifest)) = found else { return Ok(None) };
        if manifest.head != hex(&self.before.1.0) {
            return Err(ManifestError::OtherPast { path });
        }
        self.check_follows(&path, &folder.join(&path))?;
        let mut hashed = HashingWriter::new(io::sink());
        io::copy(&mut File::open(folder.join(&path))?, &mut hashed)?;
        Ok(Some(PreviousManifest { path, sha256: hashed.finish() }))
    }

    /// Compares the closing balances of an earlier manifest with the balances brought forward.
    /// Both are in the order of their names, so little of either is in memory.
    fn check_follows(&self, path: &str, file: &Path) -> Result<(), ManifestError> {
        let differs = |of: AccountTotals, [closing, opening]: [i128; 2]| match closing == opening {
            true => Ok(()),
            false => Err(ManifestError::Differs {
                path: path.to_owned(),
                account: of.account,
                ledger: of.ledger,
                closing,
                opening,
            }),
        };
        let mut own = self.exported.accounts.iter()?.peekable();
        let mut compared = Ok(());
        let mut compare = |earlier: AccountTotals| -> Result<(), ManifestError> {
            let name = (&earlier.ledger, &earlier.account);
            let is_not_after =
                |of: &io::Result<AccountTotals>| of.as_ref().map_or(true, |of| (&of.ledger, &of.account) <= name);
            while let Some(of) = own.next_if(is_not_after) {
                let of = of?;
                let (opening, is_the_same) = (of.opening, (&of.ledger, &of.account) == name);
                differs(of, [if is_the_same { earlier.closing } else { 0 }, opening])?;
                if is_the_same {
                    return Ok(());
                }
            }
            let closing = earlier.closing;
            differs(earlier, [closing, 0])
        };
        let read = each_account(BufReader::new(File::open(file)?), &mut |earlier| {
            if compared.is_ok() {
                compared = compare(earlier);
            }
        });
        compared?;
        read.map_err(io::Error::from)?;
        for of in own {
            let of = of?;
            let opening = of.opening;
            differs(of, [0, opening])?;
        }
        Ok(())
    }
}

/// Reads the accounts of a manifest, one by one.
fn each_account(file: impl io::Read, each: &mut dyn FnMut(AccountTotals)) -> serde_json::Result<()> {
    let mut manifest = serde_json::Deserializer::from_reader(file);
    InManifest(each).deserialize(&mut manifest)?;
    manifest.end()
}

/// The object of a manifest, of which the accounts are wanted.
struct InManifest<'a>(&'a mut dyn FnMut(AccountTotals));
/// The list of accounts.
struct InAccounts<'a>(&'a mut dyn FnMut(AccountTotals));

impl<'de> DeserializeSeed<'de> for InManifest<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for InManifest<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a manifest")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "accounts" => map.next_value_seed(InAccounts(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for InAccounts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for InAccounts<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the accounts of a manifest")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut accounts: A) -> Result<(), A::Error> {
        while let Some(account) = accounts.next_element()? {
            (self.0)(account);
        }
        Ok(())
    }
}

impl Manifest<'_> {
    /// Writes the manifest as JSON, with the files that were made.
    pub fn write(mut self, files: Vec<ExportedFile>, out: &mut dyn Write) -> io::Result<()> {
        self.files = files;
        serde_json::to_writer_pretty(&mut *out, &self)?;
        out.write_all(b"\n")
    }
}

/// Writer that hashes what it passes on.
pub(super) struct HashingWriter<W> {
    out: W,
    digest: Sha256,
}

impl<W: Write> HashingWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, digest: Sha256::new() }
    }

    /// SHA-256 of what was written, hexadecimal.
    pub(super) fn finish(self) -> String {
        hex(&self.digest.finalize())
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
