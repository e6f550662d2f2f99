//! Debts of recipients to their merchant. A refund may take parts of splits back, which the
//! recipients' own ledgers pay. The caller of the refund's approval waits until they have, so that
//! nobody reads a deficit of the merchant that is none. The same holds for a payment that lets a
//! recipient pay an older debt back. A recipient that is not heard in time pays later: the schedule
//! asks it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ledger::{Account, Event, GroupNumber, LedgerId, MerchantState, RecipientNumber, RecipientState, Record};

use super::{Engine, Unavailable, read};
use crate::journal::Permit;

/// How long the caller of a command waits for the recipients.
const COLLECT_MAX: Duration = Duration::from_millis(1_500);
/// How many recipients are asked at once.
const RECIPIENTS_AT_ONCE: usize = 64;

impl Engine {
    /// Has the recipients that a merchant's Record lets pay their debts book what they can pay, and
    /// the merchant repay its Deficit from that.
    pub(super) async fn collect_debts(&self, group: GroupNumber, record: &Record, permit: &Arc<Permit>) {
        let debtors: Vec<_> = self.debtors(group, record).into_iter().collect();
        if debtors.is_empty() {
            return;
        }
        let collected = async {
            for part in debtors.chunks(RECIPIENTS_AT_ONCE) {
                let bookings = part.iter().map(|number| self.book_what_is_due(group, *number, permit));
                join_all(bookings).await.into_iter().collect::<Result<(), _>>()?;
            }
            let (merchants, merchant) = (&self.serving_shard(group)?.merchants, LedgerId::Merchant(group));
            read(merchants, merchant, |_: &MerchantState, _| (), Arc::clone(permit)).await
        };
        let _asked_again_by_the_schedule = tokio::time::timeout(COLLECT_MAX, collected).await;
    }

    async fn book_what_is_due(
        &self,
        group: GroupNumber,
        number: RecipientNumber,
        permit: &Arc<Permit>,
    ) -> Result<(), Unavailable> {
        let recipient = LedgerId::Recipient(group, number);
        let recipients = &self.serving_shard_of(recipient)?.recipients;
        read(recipients, recipient, |_: &RecipientState, _| (), Arc::clone(permit)).await
    }

    /// The recipients of a Record that owe something, and may be able to pay it by this Record.
    fn debtors(&self, group: GroupNumber, record: &Record) -> BTreeSet<RecipientNumber> {
        let owes = |number: &RecipientNumber| {
            let recipient = LedgerId::Recipient(group, *number);
            self.shard(group).read_model().balance(recipient, Account::Clawback) != 0
        };
        let mut debtors = BTreeSet::new();
        for event in &record.events {
            match event {
                Event::RefundApproved { take_backs, .. } => {
                    debtors.extend(take_backs.iter().map(|part| part.recipient));
                }
                Event::RefundFailed { give_backs, .. } => {
                    debtors.extend(give_backs.iter().map(|part| part.recipient).filter(owes));
                }
                Event::PixPaid { terms, .. } => {
                    debtors.extend(terms.splits.iter().map(|split| split.recipient).filter(owes));
                }
                _ => {}
            }
        }
        debtors
    }
}
