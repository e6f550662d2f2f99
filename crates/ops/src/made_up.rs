//! Made-up data of a sandbox: a merchant with recipients and charges, to look at.

use std::sync::Arc;

use actors::engine::Permit;
use actors::engine::{NewCardCharge, NewChargeCard, Outcome};
use actors::rails::{CardSecrets, PixReceipt};
use axum::extract::State;
use axum::response::Response;
use derived::seal::stocked_random_u64;
use ledger::merchant::{MerchantOpening, RegistrationResult};
use ledger::{
    BankAccount, CardBrand, CardFace, Centavos, GroupNumber, LedgerId, MerchantCommand, MerchantProfile, ObjectId,
    Payer, PaymentMethod, RecipientProfile, SealedFor, Settings, SplitRequest,
};
use rails::end_to_end_id;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{Admin, Desk, DeskState, Operator, invented_parties};
use web::idempotency::in_progress;
use web::{KeyScope, KeyedBody, Result, created, decided, parse_unread_exact, recorded};

/// PIX charges that are made; the first ones are paid.
const PIX_CHARGES: u64 = 12;
const PIX_PAID: u64 = 9;
/// Card charges that are made; the last one is refused.
const CARD_CHARGES: u64 = 3;
/// Bytes that a permit reserves for each command.
const COMMAND_BYTES: usize = 4_096;

/// The merchant of made-up data.
#[derive(Debug, Serialize, ToSchema)]
pub struct MadeUpData {
    /// The merchant.
    merchant_id: String,
}

impl MadeUpData {
    fn of(desk: &Desk, group: GroupNumber) -> Result<Self> {
        let id = desk.engine.merchant_id(group)?;
        Ok(Self { merchant_id: id.uuid().to_string() })
    }
}

/// Makes up data: a merchant with three recipients, one of whom waits for a decision, 12 PIX
/// charges, 9 of which are paid, and 3 card charges, one of which is refused. It has no API key.
/// All Records name the operator; the answer names the Record that opened the merchant.
#[utoipa::path(post, path = "/ops/sandbox/data", operation_id = "make_up_data",
    responses((status = 201, body = MadeUpData)))]
pub async fn make_up(State(desk): DeskState, Admin(operator): Admin, sent: KeyedBody) -> Result<Response> {
    parse_unread_exact(sent.bytes())?;
    let key = sent.key(&desk.engine, KeyScope::Operators, None)?;
    // A new account has no actor yet that could notice a second request with the same key: one at a
    // time.
    let _one_at_a_time = desk.opening.lock().await;
    let (desk, operator, fingerprint) = (&desk, &operator, sent.opening(&desk.engine));
    let execute = |admitted| async move {
        let group = desk.engine.new_group(fingerprint);
        let profile = MerchantProfile {
            name: invented_parties::MERCHANT.to_owned(),
            document: invented_parties::MERCHANT_DOCUMENT.to_owned(),
            city: "São Paulo".to_owned(),
            storefront: None,
        };
        let command = MerchantCommand::Open {
            id: desk.engine.new_id(group)?,
            settings: Settings { split_enabled: true, cashout_enabled: true, ..Settings::default() },
            profile: desk.engine.keyring().seal_profile(
                SealedFor::merchant(group),
                None,
                desk.engine.now(),
                &profile,
            )?,
        };
        let opened = desk.engine.command(group, command, operator.context(admitted)).await?;
        if matches!(opened, Outcome::Recorded(_)) {
            furnish(desk, operator, group).await?;
        }
        Ok(opened)
    };
    let made =
        key.run_recorded(LedgerId::Merchant(desk.engine.next_group(fingerprint)), MerchantOpening::by, execute).await?;
    made.answer(|opened| Ok(created(MadeUpData::of(desk, opened.group)?)))
}

/// Gives a new merchant its recipients and charges.
async fn furnish(desk: &Desk, operator: &Operator, group: GroupNumber) -> Result<()> {
    let mut recipients = Vec::new();
    for (place, recipient) in invented_parties::RECIPIENTS.iter().enumerate() {
        let id = register(desk, group, recipient).await?;
        if place + 1 < invented_parties::RECIPIENTS.len() {
            let approve = MerchantCommand::ApproveRecipient { id };
            recorded(desk.engine.command(group, approve, operator.context(permit(desk)?)).await?)?;
            recipients.push((id, recipient.percent));
        } else {
            // The schedule may have sent it to the acquirer already.
            decided(desk.engine.command(group, MerchantCommand::SubmitRecipient { id }, permit(desk)?).await?)?;
        }
    }
    for number in 0..PIX_CHARGES {
        let (amount, charge) = (invented_parties::amount(number), desk.engine.new_id(group)?);
        let payer = desk.engine.keyring().seal_value(SealedFor::payer(charge), desk.engine.now(), &payer())?;
        let expires_at = charge.created_at().plus_days(1);
        let (amount, splits) = (Centavos(amount), splits(amount, &recipients));
        send(desk, group, MerchantCommand::OpenPix { charge, amount, splits, expires_at, payer, rail: None }).await?;
        if number < PIX_PAID {
            let paid_at = desk.engine.now();
            let (end_to_end_id, txid) = (end_to_end_id(paid_at, stocked_random_u64()?), Some(charge.txid()));
            let payment = PixReceipt { end_to_end_id, txid, amount, paid_at };
            recorded(desk.engine.receive_pix(group, charge, payment, permit(desk)?.into()).await?)?;
        }
    }
    for number in 0..CARD_CHARGES {
        let is_refused = number + 1 == CARD_CHARGES;
        let wanted = card(invented_parties::amount(number), &recipients, is_refused);
        recorded(desk.engine.charge_card(group, wanted, permit(desk)?.into()).await?)?;
    }
    Ok(())
}

/// A command of the made-up merchant or a payer: the operator is not named, whom the audit trail
/// shows with what operators do.
async fn send(desk: &Desk, group: GroupNumber, command: MerchantCommand) -> Result<()> {
    recorded(desk.engine.command(group, command, permit(desk)?).await?).map(drop)
}

fn permit(desk: &Desk) -> Result<Arc<Permit>> {
    Ok(desk.engine.permit(COMMAND_BYTES)?)
}

async fn register(desk: &Desk, group: GroupNumber, recipient: &invented_parties::Recipient) -> Result<ObjectId> {
    let (name, document) = (recipient.name.to_owned(), recipient.document.to_owned());
    let bank = BankAccount {
        bank_code: Some(invented_parties::BANK.to_owned()),
        agencia: Some(invented_parties::BRANCH.to_owned()),
        conta: "56789".to_owned(),
        conta_dv: Some(invented_parties::account_digit("56789")),
        legal_name: Some(name.clone()),
        document: document.clone(),
        ..BankAccount::default()
    };
    let digest = desk.engine.keyring().fingerprint("document", &[&group.0.to_le_bytes(), document.as_bytes()]);
    let profile = RecipientProfile { name, document, bank: Some(bank), ..RecipientProfile::default() };
    let profile =
        desk.engine.keyring().seal_profile(SealedFor::recipient(digest), None, desk.engine.now(), &profile)?;
    let command =
        MerchantCommand::RegisterRecipient { random: stocked_random_u64()? as u16, document: digest, profile };
    let registered = desk.engine.command(group, command, permit(desk)?).await?.typed(RegistrationResult::by)?;
    let RegistrationResult { number, .. } = recorded(registered)?.ok_or_else(in_progress)?;
    Ok(desk.engine.recipient_row(group, number)?.id)
}

fn payer() -> Payer {
    Payer { name: "Pagador 1".to_owned(), document: "12345678909".to_owned(), ..Payer::default() }
}

/// A split for each recipient, of its percentage of the amount.
fn splits(amount: i64, recipients: &[(ObjectId, i64)]) -> Vec<SplitRequest> {
    let split = |(recipient, percent): &(ObjectId, i64)| SplitRequest {
        recipient: *recipient,
        amount: Centavos(amount * percent / 100),
    };
    recipients.iter().map(split).collect()
}

fn card(amount: i64, recipients: &[(ObjectId, i64)], is_refused: bool) -> NewCardCharge {
    let (number, bin, last4) = match is_refused {
        true => (invented_parties::REFUSED_CARD, 400_000, 2),
        false => (invented_parties::APPROVED_CARD, 411_111, 1_111),
    };
    NewCardCharge {
        amount: Centavos(amount),
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: splits(amount, recipients),
        face: CardFace { bin, last4, brand: CardBrand::Visa },
        payer: payer(),
        card: NewChargeCard::Given(CardSecrets {
            number: number.to_owned(),
            holder_name: "PAGADOR TESTE".to_owned(),
            exp_month: 12,
            exp_year: 2099,
            cvv: "123".to_owned(),
        }),
        reference: None,
    }
}
