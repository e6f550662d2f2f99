//! Read models of single objects: pure folds over the Records about an object, without I/O.
//!
//! The index finds Records by a short hash of an id, so it may name Records about other objects
//! too. Every fold therefore compares the id in each event.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use crate::facts::{self, Facets};
use crate::{Event, ObjectId, Record};

/// Object with an id of its own, read from the Records about it.
pub trait Object: Sized {
    /// The object that a Record makes, as it stands after that Record; `None` if it makes no such
    /// object.
    fn made_by(record: &Record) -> Option<Self>;

    /// The object's id.
    fn id(&self) -> ObjectId;

    /// Takes in what a later Record says. A Record that is not about this object changes nothing.
    fn follow(&mut self, record: &Record);
}

/// Reads the object of an id from the Records about it, in the journal's order. `None` if no Record
/// makes it; the first error of `records` ends the fold.
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

/// Calls `name` for every object that an event is about, once each: a Record is found under each of
/// them.
pub fn each_in(event: &Event, name: impl FnMut(ObjectId)) {
    facts::say(event, &mut ObjectCollector(name));
}

/// Takes the objects of facts.
struct ObjectCollector<F>(F);

impl<F: FnMut(ObjectId)> Facets for ObjectCollector<F> {
    fn about(&mut self, id: ObjectId) {
        (self.0)(id);
    }

    fn about_each(&mut self, ids: impl Iterator<Item = ObjectId>) {
        ids.collect::<BTreeSet<_>>().into_iter().for_each(&mut self.0);
    }
}
