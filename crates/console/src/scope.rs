//! Scope of a page: all merchants, or one. `merchant_id` in the address narrows a page to one
//! merchant; an object of another merchant is not there then.

use axum::http::request::Parts;
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use maud::{Markup, html};

use crate::form::optional;
use crate::show;
use ops::Desk;
use ops::merchants;
use web::{Language, Result, not_found, query};

/// The parameter that names the merchant.
const PARAMETER: &str = "merchant_id";

/// What a page may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What all merchants and the platform have.
    All,
    /// Only what is of one merchant's group; its id for addresses.
    Merchant(GroupNumber, ObjectId),
}

impl Scope {
    /// The scope that an address asks for; a problem where it names no merchant.
    pub(crate) fn asked(desk: &Desk, parts: &Parts) -> Result<Self> {
        let pairs = query(parts)?;
        let Some(id) = optional(&pairs, PARAMETER)? else { return Ok(Self::All) };
        let group = merchants::find(desk, id)?;
        let id = ObjectId::parse(id).ok_or_else(not_found)?;
        Ok(Self::Merchant(group, id))
    }

    /// The group of the one merchant; `None` if all are shown.
    pub(crate) fn group(self) -> Option<GroupNumber> {
        match self {
            Self::All => None,
            Self::Merchant(group, _) => Some(group),
        }
    }

    /// True when the scope includes a group. Objects of the platform have no group.
    pub(crate) fn has(self, group: Option<GroupNumber>) -> bool {
        self.group().is_none_or(|own| group == Some(own))
    }

    /// An address within the console, in this scope.
    pub(crate) fn of_path(self, path: &str) -> String {
        match self {
            Self::All => path.to_owned(),
            Self::Merchant(_, id) => {
                let mark = if path.contains('?') { '&' } else { '?' };
                format!("{path}{mark}{PARAMETER}={}", id.uuid())
            }
        }
    }

    /// The hidden field that keeps the scope in a form that filters.
    pub(crate) fn field(self) -> Markup {
        html! {
            @if let Self::Merchant(_, id) = self { input type="hidden" name=(PARAMETER) value=(id.uuid()); }
        }
    }

    /// The name of the one merchant.
    pub(crate) fn name(self, desk: &Desk, language: Language) -> Option<String> {
        self.group().map(|group| show::owner_name(&desk.engine, language, LedgerId::Merchant(group)))
    }
}
