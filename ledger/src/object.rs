//! Read models of single objects: pure folds over the Records about an object, without I/O.
//!
//! The index finds Records by a short form of an id. Records about other objects may be among those
//! that it names, so every fold looks at the id in each event.

use std::borrow::Borrow;

use crate::id::ObjectId;
use crate::record::Record;

/// An object with an id of its own, as the Records about it tell it.
pub trait Object: Sized {
    /// The object that a Record makes, as it stands after that Record; none when it makes no such object.
    fn made_by(record: &Record) -> Option<Self>;

    /// The object's id.
    fn id(&self) -> ObjectId;

    /// Takes in what a later Record says. A Record that is not about this object changes nothing.
    fn follow(&mut self, record: &Record);
}

/// Reads the object of an id from the Records about it, in the journal's order. None when no Record makes it;
/// the first error of `records` ends the fold.
pub fn read<T: Object, R: Borrow<Record>, E>(
    id: ObjectId,
    records: impl IntoIterator<Item = Result<R, E>>,
) -> Result<Option<T>, E> {
    let mut found: Option<T> = None;
    for record in records {
        let record = record?;
        match &mut found {
            None => found = T::made_by(record.borrow()).filter(|made| made.id() == id),
            Some(object) => object.follow(record.borrow()),
        }
    }
    Ok(found)
}
