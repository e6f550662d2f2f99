//! Destinations of an export, and the parts that it writes to them.

use std::io;

use chrono::NaiveDate;

/// Part of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Rows of all ledgers.
    Rows,
    /// Head of a ledger's books.
    Begin(&'a str),
    /// Balances of a ledger that are brought forward.
    Opening(&'a str),
    /// One month of a ledger's books: the ledger's name and the month's first day.
    Month(&'a str, NaiveDate),
}

/// Destination of an export. The parts of one ledger come in order; those of several ledgers are
/// interleaved.
pub trait Out {
    /// Writes the next text of a part.
    fn write(&mut self, part: Part<'_>, text: &[u8]) -> io::Result<()>;
}

/// Destination that writes all parts to one stream: for rows, or for one ledger.
pub struct Stream<W>(pub W);

impl<W: io::Write> Out for Stream<W> {
    fn write(&mut self, _: Part<'_>, text: &[u8]) -> io::Result<()> {
        self.0.write_all(text)
    }
}
