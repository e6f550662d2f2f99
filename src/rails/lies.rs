//! Lies of the sandbox's institutions: an operator tells one of them to write a false line into the
//! next file that it writes. Its records, and so what the engine books, stay true. A lie that is
//! still to be told is forgotten when the server stops.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// An institution that writes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Institution {
    /// The acquirer: CSV of a batch.
    Acquirer,
    /// The PIX institution: list of the payments of a day.
    Pix,
    /// The bank: statements of a day of the settlement account and of the PIX account.
    Bank,
}

/// A false line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// The first line has a centavo more.
    Amount,
    /// The first line has a centavo more of fee. Only the acquirer's lines have fees.
    Fee,
    /// The first line has another day: the one before. Only the acquirer tells it: the files of the
    /// others have a period, in which it would not lie.
    Date,
    /// The first line is left out.
    Missing,
    /// There is a line more, of which the books know nothing.
    Added,
    /// The first line is there twice.
    Twice,
}

impl Institution {
    /// The names of the interface, in order.
    pub const NAMES: [&str; 3] = ["acquirer", "pix", "bank"];

    /// The institution of a name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Acquirer, Self::Pix, Self::Bank];
        all.into_iter().zip(Self::NAMES).find(|(_, known)| *known == name).map(|(institution, _)| institution)
    }
}

impl Lie {
    /// Whether an institution can tell it.
    pub fn is_of(self, institution: Institution) -> bool {
        institution == Institution::Acquirer || !matches!(self, Self::Fee | Self::Date)
    }

    /// The names of the interface, in order.
    pub const NAMES: [&str; 6] = ["amount", "fee", "date", "missing", "added", "twice"];

    /// The lie of a name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Amount, Self::Fee, Self::Date, Self::Missing, Self::Added, Self::Twice];
        all.into_iter().zip(Self::NAMES).find(|(_, known)| *known == name).map(|(lie, _)| lie)
    }

    /// Changes the lines of a file, of which there is at least one. `change` makes a line false:
    /// by amount, fee or day, or into one of which the books know nothing.
    pub fn tell<L: Clone>(self, lines: &mut Vec<L>, change: impl FnOnce(Self, &mut L)) {
        let Some(first) = lines.first().cloned() else { return };
        match self {
            Self::Amount | Self::Fee | Self::Date => change(self, &mut lines[0]),
            Self::Missing => drop(lines.remove(0)),
            Self::Twice => lines.push(first),
            Self::Added => {
                let mut added = first;
                change(self, &mut added);
                lines.push(added);
            }
        }
    }
}

/// The lies that are still to be told, one of each institution.
#[derive(Debug, Default)]
pub struct Lies(Mutex<BTreeMap<Institution, Lie>>);

impl Lies {
    /// Has an institution lie in its next file, in place of what it was told before.
    pub fn order(&self, institution: Institution, lie: Lie) {
        self.0.lock().insert(institution, lie);
    }

    /// The lie for a file that is about to be written. It is taken once.
    pub fn take(&self, institution: Institution) -> Option<Lie> {
        self.0.lock().remove(&institution)
    }
}
