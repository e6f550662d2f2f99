//! Transfers out: ordered, found.

use actors::rails::{Destination, PayoutAnswer, RailError, RailResult, SendPayout};
use ledger::{BankAccount, Centavos, PayoutBank, PixDestination};
use serde::Serialize;

use super::calls::BridgeCalls;
use super::messages::{Object, Outcome, body, end_to_end_id};
use super::settings::RailKind;

pub(super) const LIST: &str = "/payouts";

#[derive(Serialize)]
struct NewPayout<'a> {
    amount: i64,
    to: Receiver<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Receiver<'a> {
    PixKey {
        r#type: &'static str,
        key: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
    },
    Account {
        bank_code: Option<&'a str>,
        ispb: Option<&'a str>,
        agencia: Option<&'a str>,
        agencia_dv: Option<&'a str>,
        conta: &'a str,
        conta_dv: Option<&'a str>,
        r#type: &'static str,
        legal_name: Option<&'a str>,
        document: &'a str,
    },
}

impl<'a> Receiver<'a> {
    fn of(to: &'a Destination) -> Self {
        match to {
            Destination::PixKey(PixDestination { kind, key, info, .. }) => {
                Self::PixKey { r#type: kind.name(), key, description: info.as_deref() }
            }
            Destination::Account(account) => Self::account(account),
        }
    }

    fn account(account: &'a BankAccount) -> Self {
        Self::Account {
            bank_code: account.bank_code.as_deref(),
            ispb: account.ispb.as_deref(),
            agencia: account.agencia.as_deref(),
            agencia_dv: account.agencia_dv.as_deref(),
            conta: &account.conta,
            conta_dv: account.conta_dv.as_deref(),
            r#type: account.kind.name(),
            legal_name: account.legal_name.as_deref(),
            document: &account.document,
        }
    }
}

/// Orders a transfer, once. One that the bridge does not have then may still turn up.
pub(super) async fn send(calls: &BridgeCalls, call: &SendPayout, from: PayoutBank) -> RailResult<PayoutAnswer> {
    calls.serving(RailKind::Payout).await?;
    let message = NewPayout { amount: call.amount.0, to: Receiver::of(&call.to) };
    match calls.order(LIST, &call.id.txid(), body(&message)).await? {
        Outcome::None => Err(RailError::NoAnswer),
        outcome => answer(calls, outcome, call, from),
    }
}

/// Outcome of a transfer.
pub(super) async fn find(calls: &BridgeCalls, call: &SendPayout, from: PayoutBank) -> RailResult<PayoutAnswer> {
    calls.serving(RailKind::Payout).await?;
    let outcome = calls.find(LIST, &call.id.txid()).await?;
    answer(calls, outcome, call, from)
}

fn answer(calls: &BridgeCalls, outcome: Outcome, call: &SendPayout, from: PayoutBank) -> RailResult<PayoutAnswer> {
    match outcome {
        Outcome::None => Ok(PayoutAnswer::NotTaken),
        Outcome::Refused(refusal) => Ok(PayoutAnswer::Failed { reason: refusal.reason }),
        Outcome::It(object) => taken(&object, call.amount, from)
            .map_err(|defect| calls.unknown(&format!("{LIST}/{}", call.id.txid()), defect)),
    }
}

/// A transfer of this amount, to the last field.
pub(super) fn taken(object: &Object, amount: Centavos, from: PayoutBank) -> Result<PayoutAnswer, &'static str> {
    if !object.has_amount(amount) {
        return Err("amount is not that of the order");
    }
    let stamp = object.stamp()?;
    let (transfer_id, at) = (stamp.id, stamp.at);
    match object.status.as_str() {
        "under_way" => Ok(PayoutAnswer::Taken { transfer_id, at, from }),
        "done" => {
            let end_to_end_id = object.end_to_end_id.as_deref().ok_or("it is done without an end_to_end_id")?;
            Ok(PayoutAnswer::Processed { transfer_id, end_to_end_id: self::end_to_end_id(end_to_end_id)?, at, from })
        }
        "returned" => {
            let returned = object.returned.as_ref().ok_or("it is returned, and returned is absent or no object")?;
            Ok(PayoutAnswer::Returned { reason: returned.reason(), stamp: returned.stamp()?, to: from })
        }
        _ => Err("status says no outcome"),
    }
}
