//! Differences between a file and the books, as every comparison reports them, and the error of a
//! file that cannot be read.

use chrono::NaiveDate;
use ledger::{Centavos, ObjectId};
use strum::IntoStaticStr;

/// Why a file cannot be read: the first line with a defect.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {defect}")]
pub struct FileError {
    /// Number of the line, from 1.
    pub line: u64,
    /// The defect, in Portuguese. It never repeats the value.
    pub defect: String,
}

/// Amounts of a line, and the day of the payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledAmount {
    /// The day in Sao Paulo on which the money moved.
    pub paid_on: NaiveDate,
    /// Before the fee, centavos.
    pub gross: Centavos,
    /// The fee, centavos.
    pub fee: Centavos,
}

impl SettledAmount {
    /// An amount without a fee.
    pub fn whole(paid_on: NaiveDate, amount: Centavos) -> Self {
        Self { paid_on, gross: amount, fee: Centavos::ZERO }
    }

    /// The amount that was paid, centavos.
    pub fn net(self) -> Centavos {
        self.gross - self.fee
    }
}

/// What a line is beside the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FindingKind {
    /// The amount, the fee, the day or the charge is another one.
    Differs,
    /// The books have it, the file has not.
    OnlyOurs,
    /// The file has it, the books have not.
    OnlyTheirs,
    /// The file has it once more.
    Twice,
    /// Both have it, and it is in suspense: no charge of ours was captured for it, or another batch
    /// had settled it before.
    InSuspense,
    /// File and books agree on it.
    Matched,
    /// The books have it, and the file could not tell.
    Undecided,
}

impl FindingKind {
    /// Name of the kind, as the interface writes it.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A line of a file, or what the books have in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is beside the books.
    pub kind: FindingKind,
    /// Number of the line in the file; none for what only the books have.
    pub line: Option<u64>,
    /// Reference of the acquirer's batch, if it is about one.
    pub batch: Option<String>,
    /// The charge, if it is about one.
    pub charge: Option<ObjectId>,
    /// The kind of object, such as `installment`, `pix` or `withdrawal`.
    pub object: &'static str,
    /// Number or id of the object.
    pub id: String,
    /// What the institution's line says in words, if it says something.
    pub text: Option<String>,
    /// What the books say.
    pub ours: Option<SettledAmount>,
    /// What the file says.
    pub theirs: Option<SettledAmount>,
}

/// Result of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Lines on which file and books agree, in the order in which they were found.
    pub matched: Vec<Finding>,
    /// What the books have, and this file may or may not have to contain.
    pub undecided: Vec<Finding>,
    /// The differences: first those of the file, in its order; then what only the books have.
    pub findings: Vec<Finding>,
}

impl Finding {
    /// A finding about one of our objects, or about what the file calls so, with ours and theirs.
    pub(super) fn new(kind: FindingKind, object: &'static str, id: String, sides: [Option<SettledAmount>; 2]) -> Self {
        let (line, batch, charge, text, [ours, theirs]) = (None, None, None, None, sides);
        Self { kind, line, batch, charge, object, id, text, ours, theirs }
    }
}

impl Comparison {
    /// Adds a line to those of its kind.
    pub fn add(&mut self, finding: Finding) {
        let lines = match finding.kind {
            FindingKind::Matched => &mut self.matched,
            FindingKind::Undecided => &mut self.undecided,
            _ => &mut self.findings,
        };
        lines.push(finding);
    }
}
