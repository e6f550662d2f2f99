//! Item of the queue: what it shows to whoever decides on it.

use actors::engine::{CaseNeed, RecipientRow, WaitingItem, WaitingKind};
use actors::rails::RailCase;
use derived::checkpoint::hex;
use ledger::dispute::DisputeDecision;
use ledger::merchant::SentFile;
use ledger::rail_word::{AskedRailWord, UNKNOWN_FOR_MS};
use ledger::{BankAccount, Centavos, Charge, Dispute, LedgerId, Month, ObjectId, RailName, Refund, Sealed};
use serde::Serialize;
use utoipa::ToSchema;
use wire::mask;

use crate::Desk;
use crate::found_item::{FoundItem, payer_of};
use crate::item_flags::{flags, is_same};
use crate::rail_items::outcome_name;
use crate::second_operator::{first_approval, needs_two};
use web::views::house_entry::{HouseEntryView, OperatorEntry};
use web::views::ledger::owner_name;
use web::views::recipient::{known_recipient, open, recipient_id, status_name};
use web::views::refund::reason_text;
use web::views::withdrawal::WithdrawalDestinationView;
use web::{Result, time};

/// One thing to decide on.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct QueueItem {
    /// `recipient`, `withdrawal`, `refund`, `dispute`, `entry` of an operator, `period`: a month
    /// that a second operator is to close (`POST /ops/periods/{period}/close`), `payout`: a
    /// transfer whose institution has not answered for ten minutes, or `rail`: a charge or
    /// repayment that its rail has left unknown for an hour, a repayment that it refuses, or a
    /// notification of a case that does not fit the disputes of its charge (`waits_for`);
    /// `erasure`: an erasure of personal data that another operator has to ask for too; `id` is its
    /// month.
    /// `batch`: a settlement file that another operator has to send too (`POST /ops/batches`),
    /// which `POST /ops/batches/{id}/reject` takes out.
    #[schema(pattern = "^(recipient|withdrawal|refund|dispute|payout|entry|rail|period|batch|erasure)$")]
    pub kind: &'static str,
    /// The id of what is to be decided on; of a month, its name; of a file, its digest.
    #[schema(example = "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")]
    pub id: String,
    /// Version of what is shown, which a decision may name: an item that changed meanwhile is
    /// another version. From 1.
    pub version: u32,
    /// Whose it is; absent from an entry of the house ledger.
    pub merchant_id: Option<String>,
    /// The merchant's name; absent from an entry of the house ledger.
    pub merchant_name: Option<String>,
    /// Centavos, where it is about money.
    pub amount: Option<i64>,
    /// When it was asked for.
    pub created_at: String,
    /// Where it stands: a recipient is `draft` or `pending`, a dispute `open`, a transfer or what a
    /// rail left unknown `in_processing`, or `waiting_second` once an operator has said what became
    /// of it; a month is `waiting_second`, and so is a refund or withdrawal that one of two
    /// operators has approved; all else is `pending`.
    #[schema(pattern = "^(draft|pending|open|in_processing|waiting_second)$")]
    pub status: &'static str,
    /// The charge's txid; refunds, disputes and rail items.
    pub payment_id: Option<String>,
    /// Until when it can be approved; refunds.
    pub approvable_until: Option<String>,
    /// The open disputes of the charge; refunds, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disputes: Vec<String>,
    /// Why it waits for a dispute, or that it need not, or can't be approved any more; refunds.
    #[schema(example = "Há contestação aberta desta cobrança")]
    pub note: Option<&'static str>,
    /// True for one that passes what was left of the charge, and is to be contested; disputes.
    pub exceeds_charge: Option<bool>,
    /// The rail's id of the case; disputes that a rail opened, and notifications.
    pub case_id: Option<String>,
    /// Until when the rail has to be answered; disputes that a rail opened, where it says so.
    pub due_at: Option<String>,
    /// The name of the institution; transfers and rail items, absent in a sandbox.
    #[schema(example = "itau")]
    pub rail: Option<String>,
    /// What was ordered from it: a charge by `card` or `pix`, a `repayment` to a payer, a `cashout`
    /// or a `withdrawal`; transfers and rail items, absent from notifications.
    #[schema(pattern = "^(card|pix|repayment|cashout|withdrawal)$")]
    pub ordered: Option<&'static str>,
    /// What would make a notification fit, so that it is booked: `acceptance` of a dispute of its
    /// amount, `reversal` (or release) of an earlier dispute, or a `decision`: the case was lost
    /// again after operators had reversed it, and they reverse it again or drop the notification;
    /// or the rail took money that no dispute explains.
    #[schema(pattern = "^(acceptance|reversal|decision)$")]
    pub waits_for: Option<&'static str>,
    /// The recipient; withdrawals, their transfers and returns, write-offs of its debt.
    pub recipient_id: Option<String>,
    /// The name of the recipient, or of the payer of a refund or dispute.
    pub name: Option<String>,
    /// The document of the same, masked; recipients, refunds and disputes.
    pub document: Option<String>,
    /// What of a recipient is to be decided on: its `registration`, or the `bank_account` of an
    /// active one that was changed.
    #[schema(pattern = "^(registration|bank_account)$")]
    pub review: Option<&'static str>,
    /// Where money goes, masked: the account of a recipient to be decided on; that of a withdrawal
    /// or its transfer.
    pub destination: Option<WithdrawalDestinationView>,
    /// The last other account that the recipient had, masked, for the review of a changed one;
    /// absent when it was erased.
    pub former_destination: Option<WithdrawalDestinationView>,
    /// The name of the bank of `destination`, of the largest institutions.
    #[schema(example = "Itaú")]
    pub bank_name: Option<&'static str>,
    /// The operator who asked for an entry, or who was the first to say the outcome of a transfer
    /// or rail item.
    pub requested_by: Option<String>,
    /// The account that would be debited; entries.
    pub debit: Option<String>,
    /// The account that would be credited; entries.
    pub credit: Option<String>,
    /// Why, as that operator said, or the merchant who asked for a refund, or the payer's bank that
    /// disputes a charge.
    pub reason: Option<String>,
    /// Reference of the document that proves it, as that operator said.
    pub reference: Option<String>,
    /// The outcome by that operator, `happened` or `did_not_happen`; transfers and rail items.
    #[schema(pattern = "^(happened|did_not_happen)$")]
    pub outcome: Option<&'static str>,
    /// From when another operator may say the same: an hour after the order was last sent; absent
    /// where it was sent once.
    pub settles_from: Option<String>,
    /// The dispute that was won after it had been accepted; entries that say so.
    #[schema(format = "uuid")]
    pub dispute: Option<String>,
    /// The withdrawal that came back; entries that say so.
    #[schema(format = "uuid")]
    pub withdrawal: Option<String>,
    /// The day on which it would take effect; entries, absent where it is the day of its booking.
    pub effective_date: Option<String>,
    /// How many of the recipient's 10 withdrawals before it came back from the bank; withdrawals,
    /// absent where none did.
    pub returned_before: Option<usize>,
    /// True where an approval takes two operators, and none has approved yet: the first one moves
    /// nothing; withdrawals and refunds above the limit.
    pub second_operator_needed: Option<bool>,
    /// What its decider should look at: `expires_soon` (within 7 days), `expired`, `disputed`,
    /// `exceeds_charge`, `rejected_before`, `rejected_elsewhere` (another recipient with its
    /// document was), `shared_document`, `shared_account`, `shared_phone` and `shared_address`
    /// (with other recipients, of any merchant; an address by postal code, street and number),
    /// `foreign_account` (its holder's document is not the recipient's), `first_to_account`
    /// (nothing was paid to this account before, and the recipient has or had another one),
    /// `account_replaced` (another account was registered since), `returned_before`, `frozen` (the
    /// recipient is: it cannot be approved).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<&'static str>,
    /// Whether disputes leave too little of the charge for it; refunds.
    #[serde(skip)]
    pub waits_for_disputes: bool,
}

/// The kind of an item.
pub fn kind_name(item: &WaitingItem) -> &'static str {
    match &item.what {
        WaitingKind::Recipient | WaitingKind::BankAccount { .. } => "recipient",
        WaitingKind::Withdrawal { .. } => "withdrawal",
        WaitingKind::Refund { .. } => "refund",
        WaitingKind::Dispute { .. } => "dispute",
        WaitingKind::Payout { .. } => "payout",
        WaitingKind::HouseEntry { .. } => "entry",
        WaitingKind::Rail { .. } => "rail",
        WaitingKind::Period { .. } => "period",
        WaitingKind::File { .. } => "batch",
        WaitingKind::Erasure { .. } => "erasure",
    }
}

/// Whether an item is approved or rejected. Transfers and rail items are settled, months closed,
/// files sent again, and months erased, by routes of their own.
pub fn is_decided_on(item: &WaitingItem) -> bool {
    use WaitingKind::{Erasure, File, Payout, Period, Rail};
    !matches!(item.what, Payout { .. } | Rail { .. } | Period { .. } | File { .. } | Erasure { .. })
}

/// The version of an item: of a recipient, that of its profile; of a refund, as the ledger counts
/// the disputes of its charge. Nothing else changes while it waits.
pub fn version_of(desk: &Desk, item: &WaitingItem) -> Result<u32> {
    Ok(match &item.what {
        WaitingKind::Recipient | WaitingKind::BankAccount { .. } => {
            known_recipient(&desk.engine, item.id)?.1.profiles.current().map_or(1, |profile| profile.version)
        }
        WaitingKind::Refund { version, .. } => version.unwrap_or(1),
        _ => 1,
    })
}

impl QueueItem {
    /// Takes in the recipient whose registration or changed bank account is reviewed.
    fn say_recipient(&mut self, desk: &Desk, item: &WaitingItem) -> Result<()> {
        let (_, row) = known_recipient(&desk.engine, item.id)?;
        let profile = open(&desk.engine, &row, row.profiles.current());
        let changed_at = row.bank_review.filter(|_| item.what != WaitingKind::Recipient).map(|(_, at)| at);
        self.created_at = time(changed_at.unwrap_or(row.created_at));
        self.status = changed_at.map_or(status_name(row.status), |_| "pending");
        self.review = Some(if changed_at.is_some() { "bank_account" } else { "registration" });
        let account = profile.receiving_account();
        if let Some(account) = account.as_ref().filter(|_| changed_at.is_some()) {
            self.former_destination = account_before(desk, &row, account);
        }
        self.destination = account.map(WithdrawalDestinationView::of);
        self.document = Some(mask::document(&profile.document));
        self.name = Some(profile.name);
        self.recipient_id = None;
        Ok(())
    }

    /// Takes in a settlement file that another operator has to send too.
    fn say_file(&mut self, digest: &[u8; 32], sent: Option<SentFile>) {
        (self.id, self.status) = (hex(digest), "waiting_second");
        (self.requested_by, self.reference) = sent.map(|sent| (sent.asked_by, sent.references.join(", "))).unzip();
    }

    /// Takes in a month about which another operator has to ask too.
    fn say_month(&mut self, month: Month, requested_by: Option<String>) {
        (self.id, self.status, self.requested_by) = (month.to_string(), "waiting_second", requested_by);
    }

    /// Takes in an operator's word on an unknown outcome.
    fn say_unknown(&mut self, asked: Option<AskedRailWord>) {
        self.status = if asked.is_some() { "waiting_second" } else { "in_processing" };
        if let Some(AskedRailWord { word, reason, by, tried_at, .. }) = asked {
            self.outcome = Some(outcome_name(word.happened));
            self.settles_from = tried_at.map(|at| time(at.plus_ms(UNKNOWN_FOR_MS)));
            (self.requested_by, self.reason, self.reference) = (Some(by), Some(reason), Some(word.reference));
        }
    }

    /// Takes in the charge of a rail item, its institution, and what was ordered there.
    fn say_rail(&mut self, desk: &Desk, id: ObjectId, charge: ObjectId) -> Result<()> {
        let found = desk.engine.known_object::<Charge>(charge)?;
        (self.payment_id, self.rail) = (Some(charge.txid()), found.rail.as_ref().map(RailName::to_string));
        self.ordered = Some(match (id == charge, found.terms.method.is_card()) {
            (true, true) => "card",
            (true, false) => "pix",
            (false, _) => "repayment",
        });
        Ok(())
    }

    /// Takes in a notification that waits.
    fn say_deferred(&mut self, deferred: Option<(RailCase, CaseNeed)>) {
        let Some((case, need)) = deferred else { return };
        (self.case_id, self.due_at, self.ordered) = (Some(case.id), case.due_at.map(time), None);
        self.waits_for = Some(match need {
            CaseNeed::Acceptance => "acceptance",
            CaseNeed::Reversal => "reversal",
            CaseNeed::Decision => "decision",
        });
    }

    /// Takes in the first of two approvals, or that there have to be two.
    fn say_approvals(&mut self, desk: &Desk, id: ObjectId, amount: Centavos) -> Result<()> {
        let by = first_approval(desk, id, amount)?;
        self.second_operator_needed = (by.is_none() && needs_two(desk, amount)).then_some(true);
        if by.is_some() {
            (self.status, self.requested_by) = ("waiting_second", by);
        }
        Ok(())
    }

    /// Takes in the charge of a refund or dispute, and its payer.
    fn say_charge(&mut self, desk: &Desk, charge: ObjectId) -> Result<()> {
        let FoundItem { name, document, .. } = FoundItem::default().by(payer_of(desk, charge)?);
        (self.payment_id, self.name, self.document) = (Some(charge.txid()), name, document);
        Ok(())
    }

    /// Takes in what operators said of an entry.
    fn say_entry(&mut self, entry: HouseEntryView) {
        self.requested_by = Some(entry.requested_by);
        self.debit = Some(entry.debit);
        self.credit = Some(entry.credit);
        self.reason = Some(entry.reason);
        self.reference = Some(entry.reference);
        self.withdrawal = entry.withdrawal;
        self.dispute = entry.dispute;
        self.effective_date = entry.effective_date;
    }
}

/// What all items show, whatever waits.
fn plain_view(desk: &Desk, item: &WaitingItem) -> Result<QueueItem> {
    let merchant = |group| desk.engine.merchant_id(group);
    let merchant = item.ledger.group().map(merchant).transpose()?;
    let (flags, returned_before) = flags(desk, item)?;
    Ok(QueueItem {
        kind: kind_name(item),
        id: item.id.uuid().to_string(),
        version: version_of(desk, item)?,
        merchant_id: merchant.map(|id| id.uuid().to_string()),
        amount: item.amount().map(|amount| amount.0),
        merchant_name: item.ledger.group().and_then(|group| owner_name(&desk.engine, LedgerId::Merchant(group))),
        created_at: time(item.since()),
        status: "pending",
        recipient_id: recipient_id(&desk.engine, item.ledger).map(|id| id.uuid().to_string()),
        name: owner_name(&desk.engine, item.ledger).filter(|_| matches!(item.ledger, LedgerId::Recipient(..))),
        returned_before: Some(returned_before).filter(|count| *count > 0),
        flags,
        ..QueueItem::default()
    })
}

/// The last other account that a recipient had; `None` if there was none, or it was erased.
fn account_before(desk: &Desk, row: &RecipientRow, own: &BankAccount) -> Option<WithdrawalDestinationView> {
    let all = row.profiles.all().filter_map(|sealed| open(&desk.engine, row, Some(sealed)).receiving_account());
    all.filter(|account| !is_same(account, own)).last().map(WithdrawalDestinationView::of)
}

/// What approved refunds and disputes leave of a charge, centavos.
fn left_of(desk: &Desk, charge: ObjectId) -> Result<Centavos> {
    let charge: Charge = desk.engine.known_object(charge)?;
    let taken = desk.engine.disputes_of(charge.id)?.into_iter().map(|dispute| match dispute.decision {
        DisputeDecision::Open => dispute.amount,
        DisputeDecision::Accepted { amount, .. } => amount,
        DisputeDecision::Reversed { .. } | DisputeDecision::Released { .. } => Centavos::ZERO,
    });
    Ok(charge.terms.amount - charge.refunded - taken.sum())
}

/// An item as it is shown.
pub fn view(desk: &Desk, item: &WaitingItem) -> Result<QueueItem> {
    let mut view = plain_view(desk, item)?;
    let open_account = |sealed: &Sealed| WithdrawalDestinationView::open(&desk.engine, item.id, sealed);
    match &item.what {
        WaitingKind::Recipient | WaitingKind::BankAccount { .. } => view.say_recipient(desk, item)?,
        WaitingKind::Withdrawal { amount, destination } => {
            view.say_approvals(desk, item.id, *amount)?;
            view.destination = open_account(destination);
        }
        WaitingKind::Payout { destination, .. } => {
            view.ordered = Some(if destination.is_some() { "withdrawal" } else { "cashout" });
            view.rail = desk.engine.rail_of_transfer(item.id)?.map(|name| name.to_string());
            view.destination = destination.as_ref().and_then(open_account);
            view.say_unknown(desk.engine.asked_rail_word(item.id)?);
        }
        WaitingKind::Rail { charge, .. } => {
            view.say_rail(desk, item.id, *charge)?;
            view.say_unknown(desk.engine.asked_rail_word(item.id)?);
            view.say_deferred(desk.engine.deferred_case(item.id)?);
        }
        WaitingKind::HouseEntry { .. } => {
            let entry = OperatorEntry::known(&desk.engine, item.id)?;
            if let Some(recipient) = entry.credited_recipient() {
                view.recipient_id = recipient_id(&desk.engine, recipient).map(|id| id.uuid().to_string());
                view.name = owner_name(&desk.engine, recipient);
            }
            view.say_entry(HouseEntryView::of_any(&desk.engine, entry));
        }
        WaitingKind::Refund { charge, amount, until, disputes, .. } => {
            view.say_approvals(desk, item.id, *amount)?;
            view.say_charge(desk, *charge)?;
            view.reason =
                reason_text(&desk.engine, item.id, desk.engine.known_object::<Refund>(item.id)?.reason.as_ref());
            view.approvable_until = until.map(time);
            view.disputes = disputes.iter().flatten().map(|id| id.uuid().to_string()).collect();
            view.waits_for_disputes = !view.disputes.is_empty() && *amount > left_of(desk, *charge)?;
            view.note = match until.is_some_and(|until| until < desk.engine.now()) {
                true => Some("O prazo passou: o reembolso só pode ser recusado"),
                false if view.disputes.is_empty() => None,
                false if view.waits_for_disputes => {
                    Some("Há contestação aberta desta cobrança: o reembolso espera por ela")
                }
                false => Some("Há contestação aberta desta cobrança; resta valor que baste para o reembolso"),
            };
        }
        WaitingKind::Dispute { charge, exceeds, case, .. } => {
            view.case_id = case.as_ref().map(|case| case.id.clone());
            view.due_at = item.deadline().map(time);
            view.say_charge(desk, *charge)?;
            view.reason =
                reason_text(&desk.engine, item.id, desk.engine.known_object::<Dispute>(item.id)?.reason.as_ref());
            view.exceeds_charge = Some(exceeds.is_some());
            view.status = "open";
        }
        WaitingKind::Period { month, .. } => {
            view.say_month(*month, desk.engine.period(*month)?.map(|period| period.requested_by));
        }
        WaitingKind::Erasure { through, .. } => {
            let asked = desk.engine.erasures()?.into_iter().find(|erasure| erasure.through == *through);
            view.say_month(*through, asked.map(|asked| asked.requested_by));
        }
        WaitingKind::File { digest, .. } => view.say_file(digest, desk.engine.sent_file(digest)?),
    }
    view.bank_name = view.destination.as_ref().and_then(WithdrawalDestinationView::bank_name);
    Ok(view)
}
