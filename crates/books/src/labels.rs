//! Labels of rows: what merchants call their charges, cashouts and refunds. They are sealed
//! personal data, so an export or a report has them only where its caller gives a look-up, and a
//! row whose data was erased has none.

use std::io;

/// Labels of the charge, cashout or refund of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowLabels {
    /// The merchant's reference.
    pub reference: Option<String>,
    /// The metadata, as a JSON object.
    pub metadata: Option<String>,
    /// Access keys of the charge's fiscal documents, with blanks between.
    pub fiscal_documents: Option<String>,
}

impl RowLabels {
    /// The values of the columns, in their order.
    pub(crate) fn values(&self) -> [Option<&str>; 3] {
        [&self.reference, &self.metadata, &self.fiscal_documents].map(Option::as_deref)
    }
}

/// Looks up the labels of a row by its objects' names and ids, as [`ledger::source::Source`] has
/// them.
pub type LabelsOf = Box<dyn Fn(&[(&'static str, String)]) -> io::Result<RowLabels> + Send>;

/// The columns of labels: names, and heads in Portuguese.
pub(crate) const LABEL_COLUMNS: [(&str, &str); 3] = [
    ("merchant_reference", "Referência do lojista"),
    ("metadata", "Metadados"),
    ("fiscal_documents", "Documentos fiscais"),
];

/// A look-up that remembers the last answer: the rows of one Record are mostly about one thing.
pub(crate) struct RowLabeler {
    look_up: LabelsOf,
    last: (Vec<(&'static str, String)>, RowLabels),
}

impl RowLabeler {
    pub(crate) fn new(look_up: LabelsOf) -> Self {
        Self { look_up, last: (Vec::new(), RowLabels::default()) }
    }

    pub(crate) fn of(&mut self, objects: &[(&'static str, String)]) -> io::Result<RowLabels> {
        if self.last.0 != objects {
            self.last = (objects.to_vec(), (self.look_up)(objects)?);
        }
        Ok(self.last.1.clone())
    }
}
