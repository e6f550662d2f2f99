//! Context of a report: what it has beside Records, from its caller. Without any, the same request
//! at the same cut is the same bytes.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use chrono::NaiveDate;

use super::request::ReportRequest;
use super::table::{Cell, Column, Kind, column};
use crate::labels::{LABEL_COLUMNS, LabelsOf, RowLabeler};
use ledger::source::Source;

/// Merchant or recipient that owns a ledger, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportOwner {
    /// Its name; empty where the personal data was erased.
    pub name: String,
    /// CPF or CNPJ, masked or not; empty where there is none.
    pub tax_id: String,
}

/// Looks up the owner of a ledger by the ledger's outside name.
pub type Owners = Box<dyn Fn(&str) -> ReportOwner + Send>;

/// What a report has beside Records.
#[derive(Default)]
pub struct ReportContext {
    /// Names and tax ids of owners, which then stand before each ledger.
    pub owners: Option<Owners>,
    /// The company whose books they are, one line.
    pub company: Option<String>,
    /// The day on which the report is made.
    pub issued_on: Option<NaiveDate>,
    /// The rows that are written, from 0: all when absent. Totals and counts are of all.
    pub rows: Option<Range<u64>>,
    /// Labels of the charges, cashouts and refunds that rows name, which then stand after their
    /// ids.
    pub labels: Option<LabelsOf>,
}

/// Columns before one of an owner.
const OF_OWNERS: [Column; 2] =
    [column("name", "Nome", Kind::Text), column("tax_id", "CPF ou CNPJ", Kind::Word).below()];

impl ReportContext {
    /// The columns of a report, with those of the owners.
    pub(super) fn columns(&self, of_fold: &[Column]) -> Vec<Column> {
        let with_names = |column: &Column| match column.kind {
            Kind::Owner if self.owners.is_some() => [&OF_OWNERS[..], &[column.below()]].concat(),
            _ if column.name == IDS && self.labels.is_some() => {
                let labels = LABEL_COLUMNS.map(|(name, label)| self::column(name, label, Kind::Text).in_files());
                [&[*column][..], &labels].concat()
            }
            _ => vec![*column],
        };
        of_fold.iter().flat_map(with_names).collect()
    }

    /// The lines that stand between the title and the heads: of whom and of which days, then
    /// company and day of issue, where they are known.
    pub(super) fn lines(&self, request: &ReportRequest) -> Vec<String> {
        let owner = request.ledger.as_deref().zip(self.owners.as_ref()).map(|(ledger, owners)| owners(ledger));
        let owner = owner.map(|ReportOwner { name, tax_id }| [name, tax_id]).into_iter().flatten();
        let of = owner.filter(|text| !text.is_empty()).chain([request.subject()]).collect::<Vec<_>>().join(", ");
        let issued = self.issued_on.map(|day| format!("Emitido em {}", day.format("%d/%m/%Y")));
        [of].into_iter().chain(self.company.clone()).chain(issued).collect()
    }
}

/// Cells that a row has beside those of its fold: owners and labels that were looked up.
pub(super) struct AddedCells {
    owners: Option<Owners>,
    known: BTreeMap<String, ReportOwner>,
    labels: Option<RowLabeler>,
}

impl AddedCells {
    pub(super) fn new(owners: Option<Owners>, labels: Option<LabelsOf>) -> Self {
        Self { owners, known: BTreeMap::new(), labels: labels.map(RowLabeler::new) }
    }

    /// The cells of a row with those of the owner behind each ledger, and with the labels of what
    /// its ids name.
    pub(super) fn widened(&mut self, cells: &[Cell], of_fold: &[Column]) -> io::Result<Vec<Cell>> {
        let mut wide = Vec::with_capacity(cells.len() + OF_OWNERS.len() + LABEL_COLUMNS.len());
        for (cell, column) in cells.iter().zip(of_fold) {
            if let (Cell::Text(ledger), Kind::Owner, Some(owners)) = (cell, column.kind, &self.owners) {
                if !self.known.contains_key(ledger) {
                    self.known.insert(ledger.clone(), owners(ledger));
                }
                let ReportOwner { name, tax_id } = self.known.get(ledger).cloned().unwrap_or_default();
                wide.extend([Cell::Text(name), Cell::Text(tax_id)]);
            }
            wide.push(cell.clone());
            if let (IDS, Some(labels)) = (column.name, &mut self.labels) {
                let objects = if let Cell::Word(ids, _) = cell { named_ids(ids) } else { Vec::new() };
                wide.extend(labels.of(&objects)?.values().map(|label| label.map_or(Cell::Empty, Cell::text)));
            }
        }
        Ok(wide)
    }
}

/// The column of the ids of a row's objects, `txid=… refund=…`.
const IDS: &str = "ids";

/// The ids of such a cell with their names.
fn named_ids(cell: &str) -> Vec<(&'static str, String)> {
    let named = |one: &str| {
        let (name, id) = one.split_once('=')?;
        Some((*Source::OBJECTS.iter().find(|known| **known == name)?, id.to_owned()))
    };
    cell.split(' ').filter_map(named).collect()
}
