//! Other processes: what an engine asks of those that have the other partitions. Most requests go
//! to the owner of their partition as they are; these come from work on all merchants at once.

use std::pin::Pin;

use ledger::merchant::BookBatch;
use ledger::{GroupNumber, Month, ObjectId, Timestamp};

use super::Unavailable;
use crate::rails::{CardNotification, PixReceipt, RailCase, ReturnedPayout};
use store::Partition;

/// An answer of another process.
pub type AskedElsewhere<'a> = Pin<Box<dyn Future<Output = Result<(), Unavailable>> + Send + 'a>>;

/// The processes that have the other partitions. Everything may be asked again: what was done is
/// passed over.
pub trait Others: Send + Sync {
    /// Closes a month in a partition; see [`Engine::close_in`](super::Engine::close_in).
    fn close_month(&self, partition: Partition, month: Month) -> AskedElsewhere<'_>;

    /// Has a merchant book its lines of an acquirer's batch; see
    /// [`Engine::book_lines`](super::Engine::book_lines).
    fn book_lines(&self, group: GroupNumber, lines: BookBatch) -> AskedElsewhere<'_>;

    /// Has a merchant book a PIX payment of its charge; see
    /// [`Engine::book_pix`](super::Engine::book_pix).
    fn book_pix(&self, group: GroupNumber, charge: ObjectId, payment: PixReceipt) -> AskedElsewhere<'_>;

    /// Has the owner of a transfer book that its money came back; see
    /// [`Engine::take_back`](super::Engine::take_back).
    fn take_back(&self, group: GroupNumber, transfer: ReturnedPayout) -> AskedElsewhere<'_>;

    /// Has a merchant book a case of one of its charges; see
    /// [`Engine::book_case`](super::Engine::book_case).
    fn book_case(&self, group: GroupNumber, case: RailCase) -> AskedElsewhere<'_>;

    /// Has the owner of a charge book what an acquirer says of it; see
    /// [`Engine::book_card_notification`](super::Engine::book_card_notification).
    fn book_card_notification(&self, group: GroupNumber, notification: CardNotification) -> AskedElsewhere<'_>;

    /// Moves the sandbox clock of every other process forward; see
    /// [`Engine::step_clock`](super::Engine::step_clock).
    fn step_clock(&self, target: Timestamp) -> AskedElsewhere<'_>;
}
