//! Manifest of an export, as a file beside the export's files. It holds the request, the cut of
//! the journal, the totals, and the SHA-256 of each file. So anybody who has it finds a changed,
//! missing or exchanged file.
//!
//! The manifest of the days before is named by its SHA-256, so that the exports of a year are a
//! chain. Its closing balances must be the opening balances of this one. A manifest that was made
//! before its days were over is no link of the chain.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use actors::checkpoint::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::chart::{Chart, Level};
use super::columns::SCHEMA;
use super::request::Request;
use super::totals::{AccountTotals, Exported};
use crate::http::timestamp::day_of;

/// Suffix of the names of manifests.
pub(super) const SUFFIX: &str = ".manifest.json";

/// Manifest of an export.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// Version of the columns of rows.
    schema: u32,
    request: Asked,
    /// The last Record that counts, by partition of the journal.
    cut: BTreeMap<String, u64>,
    /// Whether all Records of the days count: they were over, and the cut is not before their end.
    /// False without a last day.
    #[serde(default)]
    complete: bool,
    /// Hash of the block with that Record, which covers all blocks before it; hexadecimal.
    head: String,
    /// Number of postings.
    rows: u64,
    /// Sums of all postings, centavos.
    debits: i128,
    /// Equal to the debits when whole entries are exported.
    credits: i128,
    accounts: Vec<AccountTotals>,
    files: Vec<FileMade>,
    /// The manifest of the days before, if it is in the same folder.
    previous: Option<Previous>,
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Asked {
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
pub struct FileMade {
    /// Its path in the folder, with `/` between components.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// The manifest of the days before.
#[derive(Debug, Serialize, Deserialize)]
struct Previous {
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
pub(super) fn are_over(request: &Request, now_ms: i64) -> bool {
    request.to.is_some_and(|to| day_of(now_ms - IN_FLIGHT_MS) > to)
}

/// What a manifest says besides the files.
pub(super) struct Draft<'a> {
    pub(super) request: &'a Request,
    pub(super) chart: Option<&'a (Chart, Level)>,
    pub(super) compress: bool,
    /// The last Record that counts; 0 when there is none.
    pub(super) cut: u64,
    /// Whether all Records of the requested days count.
    pub(super) is_complete: bool,
    /// Hash of its block.
    pub(super) head: [u8; 32],
    /// The last Record that was booked before the first day, and the hash of its block.
    pub(super) before: (u64, [u8; 32]),
    /// Whether the manifest of a file name may come before this one.
    pub(super) is_of_owner: &'a dyn Fn(&str) -> bool,
    pub(super) exported: &'a Exported,
}

impl Draft<'_> {
    /// The manifest's file name.
    pub(super) fn name(&self) -> String {
        let ledger = self.request.ledger.as_deref().unwrap_or("all");
        format!("{}.{}{SUFFIX}", self.request.dated(ledger), self.request.format.ending())
    }

    /// The manifest, which follows those that are in the folder.
    pub(super) fn manifest(&self, folder: &Path) -> Result<Manifest, ManifestError> {
        let Exported { rows, debits, credits, accounts } = self.exported;
        let previous = self.previous(folder)?;
        Ok(Manifest {
            schema: SCHEMA,
            request: self.asked(),
            cut: BTreeMap::from([("0".to_owned(), self.cut)]),
            complete: self.is_complete,
            head: hex(&self.head),
            rows: *rows,
            debits: *debits,
            credits: *credits,
            accounts: accounts.clone(),
            files: Vec::new(),
            previous,
        })
    }

    fn asked(&self) -> Asked {
        let Request { ledger, format, from, to } = self.request;
        Asked {
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
    fn previous(&self, folder: &Path) -> Result<Option<Previous>, ManifestError> {
        let Some(end) = self.request.from.and_then(|from| from.pred_opt()) else { return Ok(None) };
        let (asked, end) = (self.asked(), Some(end.to_string()));
        let cut = BTreeMap::from([("0".to_owned(), self.before.0)]);
        let is_before = |manifest: &Manifest| {
            let of = &manifest.request;
            let is_whole = manifest.cut == cut;
            is_whole
                && (&of.to, &of.ledger, &of.format, &of.level) == (&end, &asked.ledger, &asked.format, &asked.level)
        };
        let mut found = None;
        for entry in fs::read_dir(folder)? {
            let path = entry?.file_name().to_string_lossy().into_owned();
            if !path.ends_with(SUFFIX)
                || !(self.is_of_owner)(&path)
                || found.as_ref().is_some_and(|(of, _, _): &(String, _, _)| *of > path)
            {
                continue;
            }
            let bytes = fs::read(folder.join(&path))?;
            // What cannot be read is no manifest of an export.
            let Ok(manifest) = serde_json::from_slice::<Manifest>(&bytes) else { continue };
            if is_before(&manifest) {
                found = Some((path, hex(&Sha256::digest(&bytes)), manifest));
            }
        }
        let Some((path, sha256, manifest)) = found else { return Ok(None) };
        self.check_follows(&path, &manifest)?;
        Ok(Some(Previous { path, sha256 }))
    }

    fn check_follows(&self, path: &str, previous: &Manifest) -> Result<(), ManifestError> {
        if previous.head != hex(&self.before.1) {
            return Err(ManifestError::OtherPast { path: path.to_owned() });
        }
        let mut balances: BTreeMap<(&str, &str), [i128; 2]> = BTreeMap::new();
        for of in &previous.accounts {
            balances.entry((&of.ledger, &of.account)).or_default()[0] = of.closing;
        }
        for of in &self.exported.accounts {
            balances.entry((&of.ledger, &of.account)).or_default()[1] = of.opening;
        }
        match balances.into_iter().find(|(_, [closing, opening])| closing != opening) {
            None => Ok(()),
            Some(((ledger, account), [closing, opening])) => Err(ManifestError::Differs {
                path: path.to_owned(),
                account: account.to_owned(),
                ledger: ledger.to_owned(),
                closing,
                opening,
            }),
        }
    }
}

impl Manifest {
    /// The manifest as JSON, with the files that were made.
    pub(super) fn with_files(mut self, files: Vec<FileMade>) -> io::Result<Vec<u8>> {
        self.files = files;
        let mut text = serde_json::to_vec_pretty(&self)?;
        text.push(b'\n');
        Ok(text)
    }
}
