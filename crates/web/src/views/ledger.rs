//! Outside names of ledgers: `M-…`, `R-…`, `P-…` and `P-house`.

use actors::engine::Engine;
use derived::names::HOUSE;
use ledger::id::{LedgerId, ObjectId};

use crate::views::recipient::recipient_id;

/// The outside name of a ledger.
pub fn ledger_name(engine: &Engine, ledger: LedgerId) -> String {
    let merchant = ledger.group().and_then(|group| engine.glance(group, |row| row.id));
    let uuid = |id: Option<ObjectId>| id.unwrap_or_default().uuid();
    match ledger {
        LedgerId::Merchant(_) => format!("M-{}", uuid(merchant)),
        LedgerId::Platform(_) => format!("P-{}", uuid(merchant)),
        LedgerId::Recipient(..) => format!("R-{}", uuid(recipient_id(engine, ledger))),
        LedgerId::System => HOUSE.to_owned(),
    }
}
