//! Preview of a decision on something that waits: the entries that it would book, from the same
//! command and the same `decide` as the decision. Nothing is stored.

use std::collections::{BTreeMap, BTreeSet};

use actors::engine::{WaitingItem, WaitingKind};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::asked_entry::{EntryCommand, Ruling};
use ledger::house::HouseCommand;
use ledger::recipient::TransferOutcome;
use ledger::withdrawal_return::ReturnCommand;
use ledger::write_off::WriteOffCommand;
use ledger::{
    AMOUNT_MAX, Account, AdjustmentTarget, Balance, Centavos, Charge, Event, FreeText, LedgerId, MerchantCommand,
    ObjectId, PayoutBank, RecipientCommand, Record,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::books::{PreviewedEntryView, account_name, entries_view};
use crate::disputes::{kind_named, opening, with_charge};
use crate::holds::refuse_held_payout;
use crate::queue::waiting;
use crate::queue_item::{kind_name, version_of};
use crate::{Desk, DeskState, Operator};
use web::views::charge::paid_charge;
use web::views::house_entry::OperatorEntry;
use web::views::ledger::{ledger_name, owner_name};
use web::{Code, PathId, Problem, Result, checked, not_found, number, ok, query, refused, single};

/// Balances of a preview, at most.
const BALANCES_MAX: usize = 100;

/// What a decision would book.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct DecisionPreview {
    /// What is decided on: `recipient`, `withdrawal`, `refund`, `dispute` or `entry`.
    #[schema(pattern = "^(recipient|withdrawal|refund|dispute|entry)$")]
    kind: &'static str,
    /// `approve` or `reject`; of a dispute, to approve is to accept it, and to reject is to release
    /// it.
    #[schema(pattern = "^(approve|reject)$")]
    decision: &'static str,
    /// Version of the item that is decided on.
    version: u32,
    /// What is booked, in order. One step, or two when money leaves afterwards.
    steps: Vec<PreviewStep>,
    /// The balances of the merchant and of recipients that all steps change; of a recipient who
    /// keeps its split of the charge, the available one.
    balances: Vec<ChangedBalance>,
    /// How many balances there are beside these 100.
    #[schema(nullable = false)]
    balances_left_out: Option<usize>,
    /// The commission that goes back to the merchant, centavos; refunds.
    commission_returned: Option<i64>,
}

/// Balance of an account before and after a decision, debits minus credits, centavos.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChangedBalance {
    /// `M-…` or `R-…`.
    ledger: String,
    /// The name of the merchant or recipient; empty when it was erased.
    #[schema(example = "Padaria Sol")]
    pub owner: String,
    /// The account's full name.
    pub account: String,
    /// Balance as it is now.
    #[schema(value_type = i64, example = 8_850)]
    pub before: i128,
    /// Balance after the decision.
    #[schema(value_type = i64, example = 5_850)]
    pub after: i128,
}

/// A decision on an item as it would be now.
#[derive(Debug)]
pub struct ForeseenDecision {
    /// The decision.
    pub verdict: Verdict,
    /// The Records that it would write, or why it cannot be taken.
    pub steps: Result<Steps>,
    /// The balances that it would change, the first 100.
    pub balances: Vec<ChangedBalance>,
    /// How many others it would change.
    pub balances_left_out: Option<usize>,
    /// The commission that goes back to the merchant, centavos; refunds that are approved.
    pub commission_returned: Option<i64>,
}

/// Both decisions on an item. Error: another process has its merchant.
pub async fn foreseen(desk: &Desk, item: &WaitingItem) -> Result<Vec<ForeseenDecision>> {
    let mut both = Vec::new();
    for verdict in [Verdict::Approve, Verdict::Reject] {
        let steps = steps(desk, item, verdict).await;
        if let Err(problem) = &steps
            && problem.needed_partition().is_some()
        {
            return steps.map(|_| both);
        }
        let taken = steps.as_deref().unwrap_or_default();
        let (balances, balances_left_out) = changed_balances(desk, item, taken)?;
        let commission_returned = commission_returned(taken);
        both.push(ForeseenDecision { verdict, steps, balances, balances_left_out, commission_returned });
    }
    Ok(both)
}

/// The balances of merchants' and recipients' assets and liabilities that Records change, and those
/// of recipients who keep their splits of the charge of a refund or dispute: the first 100, and how
/// many others there are.
fn changed_balances(
    desk: &Desk,
    item: &WaitingItem,
    steps: &[(Follows, Record)],
) -> Result<(Vec<ChangedBalance>, Option<usize>)> {
    let mut changes: BTreeMap<(LedgerId, Account), Balance> = BTreeMap::new();
    for entry in steps.iter().flat_map(|(_, record)| &record.entries) {
        let is_of_owner = matches!(entry.ledger(), LedgerId::Merchant(_) | LedgerId::Recipient(..));
        for posting in entry.postings().iter().filter(|_| is_of_owner) {
            changes.entry((entry.ledger(), posting.account)).or_default().post(posting);
        }
    }
    let charge = match &item.what {
        WaitingKind::Refund { charge, .. } | WaitingKind::Dispute { charge, .. } => Some(*charge),
        _ => None,
    };
    if let Some(charge) = charge.filter(|_| !changes.is_empty()) {
        let group = item.ledger.group().unwrap_or_default();
        let changed: BTreeSet<_> = changes.keys().map(|(ledger, _)| *ledger).collect();
        let splits = &desk.engine.known_object::<Charge>(charge)?.terms.splits;
        let recipients = splits.iter().map(|split| LedgerId::Recipient(group, split.recipient));
        let unchanged = recipients.filter(|recipient| !changed.contains(recipient));
        changes.extend(unchanged.map(|recipient| ((recipient, Account::Available), Balance::default())));
    }
    let is_balance = |account: Account| {
        let name = account.kind_name();
        name.starts_with("Assets:") || name.starts_with("Liabilities:")
    };
    changes.retain(|(_, account), _| is_balance(*account));
    let left_out = changes.len().checked_sub(BALANCES_MAX).filter(|count| *count > 0);
    let row = |((ledger, account), change): ((LedgerId, Account), Balance)| {
        let before = desk.engine.published_accounts(ledger).get(&account).copied().unwrap_or_default().net();
        ChangedBalance {
            ledger: ledger_name(&desk.engine, ledger),
            owner: owner_name(&desk.engine, ledger).unwrap_or_default(),
            account: account_name(desk, ledger, account),
            before,
            after: before + change.net(),
        }
    };
    Ok((changes.into_iter().take(BALANCES_MAX).map(row).collect(), left_out))
}

/// The commission that a refund gives back, centavos; `None` of Records that approve none.
fn commission_returned(steps: &[(Follows, Record)]) -> Option<i64> {
    let mut events = steps.iter().flat_map(|(_, record)| &record.events);
    events.find_map(|event| match event {
        Event::RefundApproved { commission, .. } => Some(commission.total().0),
        _ => None,
    })
}

/// What opening a dispute would book.
#[derive(Debug, Serialize, ToSchema)]
pub struct DisputePreview {
    /// The charge.
    txid: String,
    /// `chargeback` or `med`.
    #[schema(pattern = "^(chargeback|med)$")]
    kind: String,
    /// What is disputed, centavos.
    amount: i64,
    /// One balanced entry for each ledger that is touched.
    entries: Vec<PreviewedEntryView>,
}

/// One Record that would be written.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewStep {
    /// `decision`: at once. `transfer`: when the institution has taken the transfer.
    #[schema(pattern = "^(decision|transfer)$")]
    when: &'static str,
    /// One balanced entry for each ledger that is touched; none when no money moves.
    entries: Vec<PreviewedEntryView>,
}

/// A decision on something that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Approves; accepts a dispute.
    Approve,
    /// Rejects; releases a dispute.
    Reject,
}

impl Verdict {
    /// Its name in a query.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }

    /// The verdict of a name; `None` if it names none.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Approve, Self::Reject].into_iter().find(|verdict| verdict.name() == name)
    }
}

/// When a Record of a preview would be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// With the decision.
    Decision,
    /// When the institution has taken the transfer.
    Transfer,
}

/// The entries that a decision on something that waits would book. Nothing is changed.
#[utoipa::path(get, path = "/ops/queue/{id}/preview", operation_id = "preview_decision",
    params(("decision" = Option<String>, Query, pattern = "^(approve|reject)$", description = "`approve` when absent. Of a dispute, `approve` accepts it and `reject` releases it.")),
    responses((status = 200, body = DecisionPreview), (status = 403), (status = 409), (status = 422)))]
pub async fn preview(State(desk): DeskState, _: Operator, PathId(id): PathId, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let item = ObjectId::parse(&id).and_then(|id| waiting(&desk, id)).ok_or_else(not_found)?;
    let verdict = single(&pairs, "decision")?.map_or(Some(Verdict::Approve), Verdict::named);
    let verdict = verdict.ok_or_else(|| refused("decision", "unknown", "decision deve ser approve ou reject"))?;
    let records = steps(&desk, &item, verdict).await?;
    let (balances, balances_left_out) = changed_balances(&desk, &item, &records)?;
    let step = |(follows, record): &(Follows, Record)| PreviewStep {
        when: if *follows == Follows::Decision { "decision" } else { "transfer" },
        entries: entries_view(&desk, record),
    };
    Ok(ok(DecisionPreview {
        kind: kind_name(&item),
        decision: verdict.name(),
        version: version_of(&desk, &item)?,
        steps: records.iter().map(step).collect(),
        balances,
        balances_left_out,
        commission_returned: commission_returned(&records),
    }))
}

/// The entries that opening a dispute of a charge would book. Nothing is changed.
#[utoipa::path(get, path = "/ops/charges/{txid}/disputes/preview", operation_id = "preview_dispute",
    params(("amount" = i64, Query, minimum = 1, maximum = 1000000000000_i64, example = 3000, description = "What is disputed, centavos."),
        ("kind" = String, Query, pattern = "^(chargeback|med)$", example = "med", description = "`chargeback` or `med`.")),
    responses((status = 200, body = DisputePreview), (status = 400), (status = 404), (status = 409), (status = 422)))]
pub async fn preview_dispute(
    State(desk): DeskState,
    _: Operator,
    PathId(txid): PathId,
    parts: Parts,
) -> Result<Response> {
    let pairs = query(&parts)?;
    let amount = number(&pairs, "amount", 1..=AMOUNT_MAX.0.unsigned_abs())?.unwrap_or_default();
    let amount = i64::try_from(amount).unwrap_or_default();
    let kind = single(&pairs, "kind")?.unwrap_or_default();
    let record = of_new_dispute(&desk, &txid, amount, kind).await?;
    let txid = ObjectId::parse(&txid).map(ObjectId::txid).unwrap_or(txid);
    Ok(ok(DisputePreview { txid, kind: kind.to_owned(), amount, entries: entries_view(&desk, &record) }))
}

/// The Records that a decision would write, each with when that is.
pub type Steps = Vec<(Follows, Record)>;

/// The Records that a decision would write. A transfer that waits for its institution is decided by
/// nobody: 409.
pub async fn steps(desk: &Desk, item: &WaitingItem, verdict: Verdict) -> Result<Steps> {
    let Some(group) = item.ledger.group() else {
        return match item.what {
            WaitingKind::Period { .. } | WaitingKind::File { .. } | WaitingKind::Erasure { .. } => Err(not_found()),
            _ => of_entry(desk, item, verdict).await,
        };
    };
    let (id, notes) = (item.id, String::new());
    let command = match (&item.what, verdict) {
        (WaitingKind::Withdrawal { amount, .. }, _) => return of_withdrawal(desk, item, *amount, verdict).await,
        (WaitingKind::HouseEntry { .. }, _) => return of_entry(desk, item, verdict).await,
        (WaitingKind::Payout { .. } | WaitingKind::Rail { .. }, _) => {
            let detail = "Its rail has not answered; operators settle it (POST /ops/rail-items/{id}/settle).";
            return Err(Problem::new(Code::StateConflict).detail(detail));
        }
        (WaitingKind::Period { .. } | WaitingKind::File { .. } | WaitingKind::Erasure { .. }, _) => {
            return Err(not_found());
        }
        (WaitingKind::Recipient | WaitingKind::BankAccount { .. }, Verdict::Approve) => {
            MerchantCommand::ApproveRecipient { id }
        }
        (WaitingKind::Recipient | WaitingKind::BankAccount { .. }, Verdict::Reject) => {
            MerchantCommand::RejectRecipient { id, notes }
        }
        (WaitingKind::Refund { charge, .. }, Verdict::Approve) => MerchantCommand::ApproveRefund {
            id,
            facts: Box::new(paid_charge(&desk.engine, desk.disputes, group, *charge)?),
        },
        (WaitingKind::Refund { .. }, Verdict::Reject) => MerchantCommand::RejectRefund { id, notes },
        (WaitingKind::Dispute { charge, .. }, Verdict::Approve) => {
            let facts = Box::new(paid_charge(&desk.engine, desk.disputes, group, *charge)?);
            MerchantCommand::AcceptDispute { id, amount: None, facts }
        }
        (WaitingKind::Dispute { charge, .. }, Verdict::Reject) => MerchantCommand::ReleaseDispute {
            id,
            notes: None,
            facts: Box::new(paid_charge(&desk.engine, desk.disputes, group, *charge)?),
        },
    };
    Ok(vec![(Follows::Decision, desk.engine.preview(group, command).await??)])
}

/// An entry of an operator. Whoever asks for the preview: the decision names the operator who takes
/// it.
async fn of_entry(desk: &Desk, item: &WaitingItem, verdict: Verdict) -> Result<Steps> {
    let id = item.id;
    let ruling = match verdict {
        Verdict::Approve => Ruling::Approve { operator: String::new() },
        Verdict::Reject => Ruling::Reject { notes: String::new() },
    };
    let closed = desk.engine.closed_periods().last().map(|(month, _)| *month);
    let records = match (OperatorEntry::known(&desk.engine, id)?, item.ledger) {
        (OperatorEntry::House(entry), _) => {
            let decided = HouseCommand::Decide { id, ruling }.decide(Some(&entry), closed)?;
            vec![decided.into_record(LedgerId::System, 0, desk.engine.now())]
        }
        (OperatorEntry::WriteOff(_), LedgerId::Merchant(group)) => {
            let command = MerchantCommand::WriteOff(WriteOffCommand::Decide { id, ruling });
            vec![desk.engine.preview(group, command).await??]
        }
        (OperatorEntry::Adjustment(found), ledger) => {
            let (group, decision) = (ledger.group().unwrap_or_default(), EntryCommand::Decide { id, ruling });
            let command = match (found.terms.target, verdict) {
                (Some(AdjustmentTarget::Dispute(dispute)), Verdict::Approve) => {
                    let (dispute, facts) = with_charge(desk, dispute)?;
                    MerchantCommand::ReverseDispute(Box::new(desk.engine.reversal(dispute, facts, Some(decision))))
                }
                _ => MerchantCommand::Adjust(decision),
            };
            vec![desk.engine.preview(group, command).await??]
        }
        (OperatorEntry::WriteOff(_), recipient) => {
            let command = RecipientCommand::WriteOff(WriteOffCommand::Decide { id, ruling });
            desk.engine.preview_recipient(recipient, vec![command]).await??
        }
        (OperatorEntry::Return(found), recipient) => {
            let withdrawal = Box::new(desk.engine.known_object(found.terms.withdrawal)?);
            let command = ReturnCommand { withdrawal, command: EntryCommand::Decide { id, ruling } };
            let command = RecipientCommand::EnterReturn { command, closed };
            desk.engine.preview_recipient(recipient, vec![command]).await??
        }
    };
    Ok(records.into_iter().map(|record| (Follows::Decision, record)).collect())
}

/// The Record that opening a dispute of a charge would write; `amount` is in centavos.
pub async fn of_new_dispute(desk: &Desk, txid: &str, amount: i64, kind: &str) -> Result<Record> {
    let charge = ObjectId::parse(txid).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let group = desk.engine.ids().group(charge);
    let kind = checked(|check| {
        if !(1..=AMOUNT_MAX.0).contains(&amount) {
            check.refuse::<()>("amount", "out_of_range", "amount deve ser de 1 a 10^12 centavos");
        }
        kind_named(kind).or_else(|| check.refuse("kind", "unknown", "kind deve ser chargeback ou med"))
    })?;
    let facts = paid_charge(&desk.engine, desk.disputes, group, charge)?;
    let command = opening(desk, group, facts, (kind, Centavos(amount), FreeText::default()))?;
    Ok(desk.engine.preview(group, command).await??)
}

async fn of_withdrawal(desk: &Desk, item: &WaitingItem, amount: Centavos, verdict: Verdict) -> Result<Steps> {
    let id = item.id;
    let commands = match verdict {
        Verdict::Approve => {
            refuse_held_payout(desk, desk.engine.ids().group(id))?;
            let bank = desk.engine.pays_withdrawal_from(amount).unwrap_or(PayoutBank::Settlement);
            let outcome = TransferOutcome::Taken { transfer_id: String::new(), bank };
            vec![
                RecipientCommand::ApproveWithdrawal { id, rail: None },
                RecipientCommand::SettleWithdrawal { id, outcome },
            ]
        }
        Verdict::Reject => vec![RecipientCommand::RejectWithdrawal { id, notes: String::new() }],
    };
    let records = desk.engine.preview_recipient(item.ledger, commands).await??;
    Ok([Follows::Decision, Follows::Transfer].into_iter().zip(records).collect())
}
