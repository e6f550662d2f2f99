//! Answers of acquirers, and those that come after the caller of a charge has heard `pending`: the
//! call goes on to its end, and its outcome is booked, whoever has gone.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ledger::merchant::Authorization;
use ledger::{Centavos, GroupNumber, MerchantCommand, ObjectId, RailName, RailStamp};
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinHandle;

use super::{Engine, INSIDE_BYTES};
use crate::rails::{CardAnswer, RailError};

/// A call of a charge that is under way.
pub(super) struct LateCall {
    pub(super) group: GroupNumber,
    pub(super) charge: ObjectId,
    pub(super) amount: Centavos,
    pub(super) rail: RailName,
    pub(super) under_way: JoinHandle<Result<CardAnswer, RailError>>,
}

/// The calls whose callers have gone.
pub(super) struct LateAnswers {
    pub(super) sender: mpsc::UnboundedSender<LateCall>,
    receiver: AsyncMutex<mpsc::UnboundedReceiver<LateCall>>,
}

impl Default for LateAnswers {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: AsyncMutex::new(receiver) }
    }
}

impl Engine {
    /// Books late answers as they come. A call without an answer is left to the reconciliation.
    /// Runs until it is dropped.
    pub(super) async fn book_late_answers(&self) {
        let mut receiver = self.late_answers.receiver.lock().await;
        let mut ended = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(LateCall { group, charge, amount, rail, under_way }) = receiver.recv() => ended.push(async move {
                    let Ok(Ok(answer)) = under_way.await else { return };
                    let permit = self.admission.take(INSIDE_BYTES).await;
                    // What can't be booked now is found by the reconciliation.
                    drop(self.book_answer((group, charge, amount), answer, Some(&rail), permit).await);
                }),
                Some(()) = ended.next(), if !ended.is_empty() => {}
            }
        }
    }
}

/// The command that an answer calls for, and what the acquirer says of a capture or authorization;
/// `None` while the charge is under way.
pub(super) fn answered(charge: ObjectId, answer: CardAnswer) -> Option<(MerchantCommand, Option<RailStamp>)> {
    Some(match answer {
        CardAnswer::Authorized(Authorization { stamp, brand }) => {
            (MerchantCommand::AuthorizeCard { charge, brand }, Some(stamp))
        }
        CardAnswer::Captured { acquirer_mdr, brand, stamp } => {
            let captured_at = Some(stamp.at);
            (MerchantCommand::CaptureCard { charge, acquirer_mdr, captured_at, brand }, Some(stamp))
        }
        CardAnswer::Refused(refusal) => (MerchantCommand::RefuseCard { charge, refusal }, None),
        CardAnswer::UnderWay => return None,
    })
}
