//! Flags of an item of the queue: what its decider should look at before the decision.

use actors::engine::{PersonalValue, WaitingItem, WaitingKind};
use ledger::withdrawal::RejectedBy;
use ledger::{
    BankAccount, Event, LedgerId, ObjectId, RecipientProfile, RecipientStatus, Sealed, SealedFor, Withdrawal,
};

use crate::desk::Desk;
use web::Result;
use web::views::recipient::{find_recipient, known_recipient, open, recipient_id};

/// Before its end by this time, milliseconds, an item expires soon.
pub const EXPIRES_SOON_MS: i64 = 7 * 24 * 60 * 60_000;
/// Earlier withdrawals that are looked at, the newest first.
const EARLIER_MAX: usize = 10;

/// Other recipients that are looked at for what they share with one.
const SHARING_MAX: usize = 3;

/// The flags of an item, by their names in the queue, and how many earlier withdrawals came back.
pub fn flags(desk: &Desk, item: &WaitingItem) -> Result<(Vec<&'static str>, usize)> {
    let (mut flags, mut returned_before) = (Vec::new(), 0);
    let now = desk.engine.now();
    match item.deadline() {
        Some(until) if until < now => flags.push("expired"),
        Some(until) if until <= now.plus_ms(EXPIRES_SOON_MS) => flags.push("expires_soon"),
        _ => {}
    }
    match &item.what {
        WaitingKind::Refund { disputes, .. } if disputes.as_ref().is_some_and(|open| !open.is_empty()) => {
            flags.push("disputed");
        }
        WaitingKind::Dispute { exceeds: Some(_), .. } => flags.push("exceeds_charge"),
        WaitingKind::Recipient | WaitingKind::BankAccount { .. } => flags.extend(of_recipient(desk, item)?),
        WaitingKind::Withdrawal { destination, .. } => {
            let (of_withdrawal, returned) = of_withdrawal(desk, item, destination)?;
            flags.extend(of_withdrawal);
            returned_before = returned;
        }
        _ => {}
    }
    Ok((flags, returned_before))
}

fn of_recipient(desk: &Desk, item: &WaitingItem) -> Result<Vec<&'static str>> {
    let (ledger, row) = known_recipient(&desk.engine, item.id)?;
    let profile = open(&desk.engine, &row, row.profiles.current());
    let mut flags = Vec::new();
    let is_foreign = profile.bank.as_ref().is_some_and(|account| account.document != profile.document);
    flags.extend(is_foreign.then_some("foreign_account"));
    for found in desk.engine.registration(ledger, item.id.created_at())? {
        let is_no =
            |event: &Event| matches!(event, Event::RecipientRejected { .. } | Event::BankAccountRejected { .. });
        if found?.1.events.iter().any(is_no) {
            flags.push("rejected_before");
            break;
        }
    }
    flags.extend(of_others(desk, item.id, &profile)?);
    Ok(flags)
}

/// The values by which registrations are compared: the name of each, that of its flag, the value.
pub fn compared(profile: &RecipientProfile) -> Vec<(&'static str, &'static str, PersonalValue)> {
    let document = Some(&profile.document).filter(|document| !document.is_empty());
    let values = [
        ("document", "shared_document", document.map(|document| PersonalValue::Document(document.clone()))),
        ("bank_account", "shared_account", profile.bank.as_ref().map(PersonalValue::account)),
        ("phone", "shared_phone", PersonalValue::phone(profile)),
        ("address", "shared_address", profile.address.as_ref().and_then(PersonalValue::address)),
    ];
    values.into_iter().filter_map(|(name, flag, value)| Some((name, flag, value?))).collect()
}

/// What other recipients, of any merchant, have in common with a registration. Flags look at the
/// newest few of them; the details of the item list them all.
fn of_others(desk: &Desk, id: ObjectId, profile: &RecipientProfile) -> Result<Vec<&'static str>> {
    let mut flags = Vec::new();
    for (_, name, value) in compared(profile) {
        let others = desk.engine.recipients_sharing(&value, id, SHARING_MAX)?;
        let is_rejected = |other: &ObjectId| {
            find_recipient(&desk.engine, *other).is_some_and(|(_, row)| row.status == RecipientStatus::Rejected)
        };
        let is_of_person = name == "shared_document";
        flags.extend((is_of_person && others.iter().any(is_rejected)).then_some("rejected_elsewhere"));
        flags.extend((!others.is_empty()).then_some(name));
    }
    Ok(flags)
}

fn of_withdrawal(desk: &Desk, item: &WaitingItem, destination: &Sealed) -> Result<(Vec<&'static str>, usize)> {
    let account = |withdrawal: &Withdrawal| opened(desk, withdrawal.id, &withdrawal.destination);
    let own = opened(desk, item.id, destination);
    let mut flags = Vec::new();
    let recipient = recipient_id(&desk.engine, item.ledger).and_then(|id| find_recipient(&desk.engine, id));
    if let (Some((_, row)), Some(own)) = (recipient, &own) {
        flags.extend(row.frozen.then_some("frozen"));
        let profile = open(&desk.engine, &row, row.profiles.current());
        let is_foreign = own.document != profile.document;
        flags.extend(is_foreign.then_some("foreign_account"));
        let is_replaced = profile.receiving_account().is_some_and(|account| !is_same(&account, own));
        flags.extend(is_replaced.then_some("account_replaced"));
    }
    let (mut paid_before, mut paid_to_account, mut returned) = (false, false, 0);
    for earlier in desk.engine.withdrawals(item.ledger, 0, EARLIER_MAX + 1)?.items {
        let earlier = earlier?;
        if earlier.id == item.id {
            continue;
        }
        returned += usize::from(earlier.rejected_by == Some(RejectedBy::Returned));
        if earlier.paid_at.is_some() {
            paid_before = true;
            paid_to_account |= own.as_ref().zip(account(&earlier)).is_some_and(|(own, other)| is_same(own, &other));
        }
    }
    let is_new = paid_before || own.as_ref().is_some_and(|own| had_another(desk, item.ledger, own));
    flags.extend((is_new && !paid_to_account).then_some("first_to_account"));
    flags.extend((returned > 0).then_some("returned_before"));
    Ok((flags, returned))
}

/// Whether a recipient had another bank account before or after this one, in the versions of its
/// registration that are stored.
fn had_another(desk: &Desk, ledger: LedgerId, own: &BankAccount) -> bool {
    let recipient = recipient_id(&desk.engine, ledger).and_then(|id| find_recipient(&desk.engine, id));
    recipient.is_some_and(|(_, row)| {
        let mut accounts = row.profiles.all().filter_map(|sealed| open(&desk.engine, &row, Some(sealed)).bank);
        accounts.any(|account| !is_same(&account, own))
    })
}

/// The account of a withdrawal; `None` if its data was erased.
pub fn opened(desk: &Desk, withdrawal: ObjectId, sealed: &Sealed) -> Option<BankAccount> {
    desk.engine.keyring().open_value(SealedFor::account(withdrawal), sealed)
}

/// Whether two accounts are the same one, whatever their holder's name is.
pub fn is_same(one: &BankAccount, other: &BankAccount) -> bool {
    let number = |account: &BankAccount| {
        let BankAccount { bank_code, ispb, agencia, conta, conta_dv, kind, .. } = account.clone();
        (bank_code, ispb, agencia, conta, conta_dv, kind)
    };
    number(one) == number(other)
}
