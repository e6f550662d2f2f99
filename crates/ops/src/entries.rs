//! Entries of operators: of the house ledger (`P-house`), the write-off of a debt, a credit to a
//! merchant or a recipient, the reversal of a dispute, or the return of a withdrawal. One operator
//! asks for an entry, another approves it.

use actors::engine::{CommandContext, Outcome};
use axum::extract::State;
use axum::response::Response;
use ledger::adjustment::{Adjustment, AdjustmentTerms};
use ledger::asked_entry::{EntryCommand, Ruling};
use ledger::house::{HouseAccount, HouseCommand, HouseEntry, HouseEntryTerms};
use ledger::withdrawal_return::{ReturnCommand, ReturnRequest, WithdrawalReturn};
use ledger::write_off::{WriteOff, WriteOffCommand, WriteOffTerms};
use ledger::{
    AMOUNT_MAX, AdjustmentTarget, Centavos, GroupNumber, HOUSE_GROUP, LedgerId, MerchantCommand, Object, ObjectId,
    PayoutBank, RecipientCommand, Rejection, Timestamp, Withdrawal,
};
use serde::Deserialize;
use utoipa::ToSchema;
use wire::timestamp::{PeriodLimit, business_day, day};

use crate::disputes::with_charge;
use crate::item_version::{Approval, unchanged, with_item};
use crate::sub_recipients::Notes;
use crate::{Decider, DeciderCall, Desk, DeskState, Operator, books};
use web::views::house_entry::{HouseEntryView, OperatorEntry, debt_accounts, goodwill_accounts};
use web::{
    Checker, KeyScope, KeyedBody, PathId, Raw, Result, checked, created, decided, not_found, ok, parse_exact, refused,
};

/// The kind of an entry that says that a withdrawal came back.
pub const WITHDRAWAL_RETURNED: &str = "withdrawal_returned";

/// An entry of an operator: one amount from one account to another. Of the kind
/// `withdrawal_returned` it has a `withdrawal` in place of accounts and amount.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"debit": "Assets:Bank:Own", "credit": "Assets:Bank:Settlement", "amount": 250000,
    "reason": "Comissão de novembro", "reference": "EXTRATO-2026-11-30-17"}))]
pub struct HouseEntryRequest<'a> {
    /// `withdrawal_returned`: the bank returned a paid withdrawal, and the institution did not
    /// tell. Absent from all other entries.
    #[schema(value_type = Option<String>, pattern = "^(withdrawal_returned)$")]
    kind: Raw<'a>,
    /// The withdrawal that came back, whole; with its kind only.
    #[schema(value_type = Option<String>, format = "uuid")]
    withdrawal: Raw<'a>,
    /// The account that it came back to, `Assets:Bank:Settlement` or `Assets:Bank:Pix`; the one
    /// that it left when absent or null. With its kind only.
    #[schema(value_type = Option<String>, example = "Assets:Bank:Settlement")]
    bank: Raw<'a>,
    /// The account to debit: `Assets:Bank:Settlement`, `Assets:Bank:Pix`, `Assets:Bank:Own`,
    /// `Liabilities:Suspense`, `Expenses:Bank:Fees`, `Expenses:Acquirer:Fees`,
    /// `Expenses:Losses:Other` or `Equity:Capital`. Required, but for a withdrawal that came back.
    #[schema(value_type = Option<String>, nullable = false)]
    debit: Raw<'a>,
    /// The account to credit, another one of these. Or the debt that is written off:
    /// `Assets:Merchants:M-…:Deficit`, debited to `Expenses:Losses:Other`, or
    /// `Assets:Receivable:Recipients:R-…`, debited to `Expenses:Losses:Clawback`. Or a merchant or
    /// recipient to whom the house gives money: `Liabilities:Merchants:M-…:Available` or
    /// `Liabilities:Recipients:R-…:Available`, debited to `Expenses:Losses:Other`; it repays the
    /// Deficit, or the recipient's debts, first. Required, but for a withdrawal that came back.
    #[schema(value_type = Option<String>, nullable = false)]
    credit: Raw<'a>,
    /// How much, centavos. Required, but for a withdrawal that came back: that is whole.
    #[schema(value_type = Option<i64>, nullable = false, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// Why, at most 500 characters. Of a withdrawal that came back, and of a credit, the merchant
    /// reads it.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
    /// Reference of the document that proves it, at most 100 characters.
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    reference: Raw<'a>,
    /// True where another entry of the house ledger, or another credit to this merchant and its
    /// recipients, may have this reference; false when absent or null.
    #[schema(value_type = Option<bool>)]
    reference_repeats: Raw<'a>,
    /// The day on which it takes effect, not after today and not in a closed month; the day of its
    /// booking when absent or null, and of every write-off and credit.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Date, example = "2026-11-30")]
    effective_date: Option<Raw<'a>>,
}

/// Asks for an entry of the house ledger, for the write-off of a debt, for a credit to a merchant
/// or a recipient, or for the return of a withdrawal. It waits in the queue until another operator
/// approves it.
#[utoipa::path(post, path = "/ops/entries", operation_id = "request_entry", request_body = HouseEntryRequest,
    responses((status = 201, body = HouseEntryView)))]
pub async fn request(State(desk): DeskState, Decider(operator): Decider, sent: KeyedBody) -> Result<Response> {
    let wire: HouseEntryRequest<'_> = parse_exact(sent.bytes())?;
    let key = sent.key(&desk.engine, KeyScope::Operators, None)?;
    let (desk, wire, operator) = (&desk, &wire, &operator);
    if wire.kind.is_some() {
        let withdrawal = &returned_withdrawal(desk, wire)?;
        let recipient = withdrawal.recipient;
        let execute = |admitted| async move {
            let command = check_return(desk, wire, withdrawal)?;
            Ok(desk.engine.command_return(recipient, command, operator.context(admitted)).await?)
        };
        let requested = key.run_recorded(recipient, WithdrawalReturn::made_by, execute).await?;
        return requested.answer(|found| Ok(created(HouseEntryView::of_return(&desk.engine, found))));
    }
    if let Some(owner) = owner(desk, wire)? {
        let owner = &owner;
        if owner.is_credited {
            let target = match owner.ledger {
                LedgerId::Recipient(_, number) => Some(AdjustmentTarget::Recipient(number)),
                _ => None,
            };
            let execute = |admitted| async move {
                let (id, (amount, reference, may_repeat), reason) = check_owned(desk, wire, owner)?;
                let terms = AdjustmentTerms { amount, reference, target };
                let command = EntryCommand::Request { id, terms, reason };
                Ok(desk.engine.command_credit(owner.group, command, may_repeat, operator.context(admitted)).await?)
            };
            let merchant = LedgerId::Merchant(owner.group);
            let requested = key.run_recorded(merchant, Adjustment::made_by, execute).await?;
            return requested.answer(|found| Ok(created(HouseEntryView::of_adjustment(&desk.engine, found))));
        }
        let execute = |admitted| async move {
            let (id, (amount, reference, _), reason) = check_owned(desk, wire, owner)?;
            let command = WriteOffCommand::Request { id, terms: WriteOffTerms { amount, reference }, reason };
            write_off(desk, owner.ledger, command, operator.context(admitted)).await
        };
        let requested = key.run_recorded(owner.ledger, WriteOff::made_by, execute).await?;
        return requested.answer(|write_off| Ok(created(HouseEntryView::of_write_off(&desk.engine, write_off))));
    }
    let execute = |admitted| async move {
        let (terms, reason, may_repeat) = check(wire, desk.engine.now())?;
        let command = HouseCommand::Request { id: desk.engine.new_id(HOUSE_GROUP)?, terms, reason };
        Ok(desk.engine.command_house(command, may_repeat, operator.context(admitted)).await?)
    };
    let requested = key.run_recorded(LedgerId::System, HouseEntry::made_by, execute).await?;
    requested.answer(|entry| Ok(created(HouseEntryView::of(entry))))
}

/// Terms and reason of an entry of the house ledger, and whether its reference may repeat.
fn check(wire: &HouseEntryRequest<'_>, now: Timestamp) -> Result<(HouseEntryTerms, String, bool)> {
    checked(|check| {
        let debit = account(check, "debit", wire.debit);
        let credit = account(check, "credit", wire.credit);
        let message = "credit e debit devem ser contas diferentes";
        let credit = check.fitting(credit, |credit| debit != Some(*credit), "credit", "same_account", message);
        let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
        let reason = check.prose("reason", wire.reason, 1..=500);
        let reference = check.text("reference", wire.reference, 1..=100);
        let effective_day = wire.effective_date.and_then(|raw| past_day(check, raw, now));
        refuse_what_returns_have(check, wire);
        let may_repeat = may_repeat(check, wire);
        let (amount, reference) = (Centavos(amount?), reference?.into_owned());
        let terms = HouseEntryTerms { debit: debit?, credit: credit?, amount, reference, effective_day };
        Some((terms, reason?.into_owned(), may_repeat))
    })
}

fn may_repeat(check: &mut Checker, wire: &HouseEntryRequest<'_>) -> bool {
    let sent = check.optional(wire.reference_repeats, |check, raw| check.boolean("reference_repeats", raw));
    sent.unwrap_or_default()
}

fn refuse_what_returns_have(check: &mut Checker, wire: &HouseEntryRequest<'_>) {
    for (name, raw) in [("withdrawal", wire.withdrawal), ("bank", wire.bank)] {
        if raw.is_some() {
            check.refuse::<()>(name, "not_allowed", format!("{name} só cabe com kind {WITHDRAWAL_RETURNED}"));
        }
    }
}

/// How the names of debts begin, and of what a merchant or recipient can be given.
const OWNED: [&str; 4] =
    ["Assets:Merchants:", "Assets:Receivable:Recipients:", "Liabilities:Merchants:", "Liabilities:Recipients:"];

/// The ledger whose debt an entry writes off, or which it credits.
struct Owner {
    ledger: LedgerId,
    group: GroupNumber,
    /// Name of the account that is debited.
    loss: String,
    /// True of a merchant or recipient that gets money.
    is_credited: bool,
}

/// The owner of the credited account; `None` if the house has it. Errors: no ledger has it.
fn owner(desk: &Desk, wire: &HouseEntryRequest<'_>) -> Result<Option<Owner>> {
    let credit = Checker::new().any_text("credit", wire.credit);
    let Some(credit) = credit.filter(|credit| OWNED.iter().any(|begin| credit.starts_with(begin))) else {
        return Ok(None);
    };
    let name = credit.split(':').find(|part| part.starts_with("M-") || part.starts_with("R-"));
    let owner = name.and_then(|name| books::find(desk, name).ok());
    let owner = owner.and_then(|ledger| {
        let debt = debt_accounts(&desk.engine, ledger).map(|accounts| (accounts, false));
        let both = debt.into_iter().chain(goodwill_accounts(&desk.engine, ledger).map(|accounts| (accounts, true)));
        let ((loss, _), is_credited) = both.into_iter().find(|((_, known), _)| *known == credit)?;
        Some(Owner { ledger, group: ledger.group()?, loss, is_credited })
    });
    let nobody = "credit não é a dívida nem o disponível de um lojista ou de um recebedor";
    owner.map(Some).ok_or_else(|| refused("credit", "unknown", nobody))
}

/// Id, amount with reference (true: it may repeat), and reason of a write-off or a credit.
type OwnedEntry = (ObjectId, (Centavos, String, bool), String);

fn check_owned(desk: &Desk, wire: &HouseEntryRequest<'_>, owner: &Owner) -> Result<OwnedEntry> {
    let loss = owner.loss.as_str();
    let (terms, reason) = checked(|check| {
        let debit = check.text("debit", wire.debit, 1..=100);
        let message = format!("debit deve ser {loss}, a perda deste lançamento");
        let debit = check.fitting(debit, |debit| debit == loss, "debit", "not_the_loss", message);
        let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
        let reason = check.prose("reason", wire.reason, 1..=500);
        let reference = check.text("reference", wire.reference, 1..=100);
        if wire.effective_date.is_some() {
            let message = "uma baixa ou um crédito vale a partir do seu lançamento";
            check.refuse::<()>("effective_date", "not_allowed", message);
        }
        refuse_what_returns_have(check, wire);
        let may_repeat = may_repeat(check, wire);
        let (_, amount, reference, reason) = (debit?, Centavos(amount?), reference?, reason?);
        Some(((amount, reference.into_owned(), may_repeat), reason.into_owned()))
    })?;
    Ok((desk.engine.new_id(owner.group)?, terms, reason))
}

/// The withdrawal that an entry of this kind names. Errors: another kind, or no withdrawal.
fn returned_withdrawal(desk: &Desk, wire: &HouseEntryRequest<'_>) -> Result<Withdrawal> {
    let mut check = Checker::new();
    let kind = check.any_text("kind", wire.kind);
    if kind.is_some_and(|kind| kind != WITHDRAWAL_RETURNED) {
        check.refuse::<()>("kind", "unknown", format!("kind deve ser {WITHDRAWAL_RETURNED}, ou faltar"));
    }
    let id = check.uuid("withdrawal", wire.withdrawal);
    let found = match id {
        Some(id) => match desk.engine.object(ObjectId(id.as_u128()))? {
            None => check.refuse("withdrawal", "unknown", "withdrawal não é um saque"),
            found => found,
        },
        None => None,
    };
    check.finish_with(found)
}

fn check_return(desk: &Desk, wire: &HouseEntryRequest<'_>, withdrawal: &Withdrawal) -> Result<ReturnCommand> {
    let (terms, reason) = checked(|check| {
        for (name, raw) in [("debit", wire.debit), ("credit", wire.credit), ("amount", wire.amount)] {
            if raw.is_some() {
                check.refuse::<()>(name, "not_allowed", format!("{name} não cabe aqui: o saque volta inteiro"));
            }
        }
        let to = check.optional_text("bank", wire.bank, 1..=100).and_then(|bank| {
            let accounts = PayoutBank::ALL.map(|bank| bank.account().kind_name()).join(" ou ");
            PayoutBank::named(&bank).or_else(|| check.refuse("bank", "unknown", format!("bank deve ser {accounts}")))
        });
        let reason = check.prose("reason", wire.reason, 1..=500);
        let reference = check.text("reference", wire.reference, 1..=100);
        let effective_day = wire.effective_date.and_then(|raw| past_day(check, raw, desk.engine.now()));
        Some((ReturnRequest { to, reference: reference?.into_owned(), effective_day }, reason?.into_owned()))
    })?;
    let id = desk.engine.new_id(desk.engine.ids().group(withdrawal.id))?;
    let command = EntryCommand::Request { id, terms, reason };
    Ok(ReturnCommand { withdrawal: Box::new(withdrawal.clone()), command })
}

/// Carries out a command on a write-off, which the debtor decides.
async fn write_off(
    desk: &Desk,
    debtor: LedgerId,
    command: WriteOffCommand,
    context: CommandContext,
) -> Result<Outcome> {
    match debtor {
        LedgerId::Merchant(group) => {
            Ok(desk.engine.command(group, MerchantCommand::WriteOff(command), context).await?)
        }
        _ => Ok(desk.engine.command_recipient(debtor, RecipientCommand::WriteOff(command), context).await?),
    }
}

/// A day that is not after today, in days since 1970-01-01.
fn past_day(check: &mut Checker, raw: Raw<'_>, now: Timestamp) -> Option<u32> {
    let text = check.text("effective_date", raw, 1..=10)?;
    let Some(begin) = day(&text).and_then(|_| PeriodLimit::parse(&text)) else {
        return check.refuse("effective_date", "invalid_date", "effective_date deve ser uma data (AAAA-MM-DD)");
    };
    let day = business_day(begin.begin);
    if day > business_day(now.0) {
        return check.refuse("effective_date", "in_the_future", "effective_date não pode ser depois de hoje");
    }
    Some(day)
}

fn account(check: &mut Checker, name: &'static str, raw: Raw<'_>) -> Option<HouseAccount> {
    let found = check.text(name, raw, 1..=100)?;
    HouseAccount::named(&found)
        .or_else(|| check.refuse(name, "unknown", format!("{name} não é uma conta que o operador pode lançar")))
}

/// An entry of an operator.
#[utoipa::path(get, path = "/ops/entries/{id}", operation_id = "get_entry",
    responses((status = 200, body = HouseEntryView)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    Ok(ok(HouseEntryView::of_any(&desk.engine, named(&desk, &id)?)))
}

/// Approves an entry, which is booked at once. The operator who asked for it gets 409
/// `second_operator_needed`.
#[utoipa::path(post, path = "/ops/entries/{id}/approve", operation_id = "approve_entry",
    request_body = Option<Approval>, responses((status = 200, body = HouseEntryView)))]
pub async fn approve(call: DeciderCall) -> Result<Response> {
    decide(&call, call.approved()?, Verdict::Approve).await
}

/// Rejects an entry, or takes back one's own.
#[utoipa::path(post, path = "/ops/entries/{id}/reject", operation_id = "reject_entry", request_body = Notes,
    responses((status = 200, body = HouseEntryView)))]
pub async fn reject(call: DeciderCall) -> Result<Response> {
    let (notes, seen) = call.rejected()?;
    decide(&call, seen, Verdict::Reject(notes)).await
}

/// A decision on an entry.
enum Verdict<'a> {
    Approve,
    Reject(Notes<'a>),
}

fn named(desk: &Desk, id: &str) -> Result<OperatorEntry> {
    let found = ObjectId::parse(id).map(|id| OperatorEntry::find(&desk.engine, id)).transpose()?.flatten();
    found.ok_or_else(not_found)
}

async fn decide(call: &DeciderCall, seen: Option<u32>, verdict: Verdict<'_>) -> Result<Response> {
    let DeciderCall { desk, operator, .. } = call;
    let entry = named(desk, &call.id)?;
    let (id, owner, entry, verdict) = (entry.id(), entry.owner(), &entry, &verdict);
    let key = call.key(&id.txid())?;
    let execute = |admitted| async move {
        unchanged(desk, id, seen)?;
        let context = operator.context(admitted);
        let ruling = match verdict {
            Verdict::Approve => Ruling::Approve { operator: operator.name.clone() },
            Verdict::Reject(notes) => Ruling::Reject { notes: notes.check()? },
        };
        let outcome = match entry {
            OperatorEntry::House(_) => {
                desk.engine.command_house(HouseCommand::Decide { id, ruling }, false, context).await?
            }
            OperatorEntry::WriteOff(_) => {
                write_off(desk, owner, WriteOffCommand::Decide { id, ruling }, context).await?
            }
            OperatorEntry::Adjustment(Adjustment {
                terms: AdjustmentTerms { target: Some(AdjustmentTarget::Dispute(dispute)), .. },
                ..
            }) if matches!(ruling, Ruling::Approve { .. }) => {
                let (dispute, facts) = with_charge(desk, *dispute)?;
                let command = EntryCommand::Decide { id, ruling };
                match desk.engine.reverse_dispute(dispute, facts, Some(command), context).await? {
                    Outcome::Unchanged => Outcome::Refused(Rejection::DisputeNotAccepted),
                    outcome => outcome,
                }
            }
            OperatorEntry::Adjustment(_) => {
                let command = MerchantCommand::Adjust(EntryCommand::Decide { id, ruling });
                desk.engine.command(owner.group().unwrap_or_default(), command, context).await?
            }
            OperatorEntry::Return(found) => {
                // It is read after its request was: what came later, the recipient's state knows.
                let withdrawal = Box::new(desk.engine.known_object(found.terms.withdrawal)?);
                let command = ReturnCommand { withdrawal, command: EntryCommand::Decide { id, ruling } };
                desk.engine.command_return(owner, command, context).await?
            }
        };
        decided(outcome).map_err(|problem| with_item(desk, id, problem))
    };
    let decided = key.run(owner, |_| Ok(()), execute).await?;
    decided.answer(|()| Ok(ok(HouseEntryView::of_any(&desk.engine, named(desk, &id.txid())?))))
}
