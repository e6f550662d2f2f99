//! Fields that a Record changed, old and new, by their labels and in the reader's language.

use maud::{Markup, html};

use crate::page::Visit;
use ops::audited_changes::FieldChange;
use ops::wire_words::{LABELS, value};

/// One line for each field.
pub(crate) fn lines(visit: &Visit, changes: &[FieldChange]) -> Markup {
    let value = |change: &FieldChange, of| value(visit.language, &change.field, of);
    html! {
        @for change in changes {
            div {
                (visit.say(LABELS.of(&change.field)))
                @if !change.new.is_null() || !change.old.is_null() {
                    ": " bdi { (value(change, &change.old)) } " → " bdi { (value(change, &change.new)) }
                }
            }
        }
    }
}
