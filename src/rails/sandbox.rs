//! Rails of the sandbox: simulated card acquirer and PIX institution. A card's number decides what
//! happens to its charge, so every question about it gets the same answer, also after a crash.

use std::path::Path;

use actors::rails::{
    Call, CardAnswer, CardFate, CardRail, CardSecrets, CardToken, ChargeCard, ChargedCard, PixFate, PixRail, RailError,
    Rails, Repay,
};
use ledger::event::{CardFace, CardRefusal};
use ledger::fees::{Fees, PaymentMethod};
use ledger::id::ObjectId;
use ledger::merchant::OpenCharge;
use ledger::money::Centavos;

use super::payouts::SandboxPayouts;

/// The rails of a sandbox. Its institutions keep their own files in `folder`.
pub fn rails(folder: &Path) -> Rails {
    Rails { card: Box::new(SandboxAcquirer), pix: Box::new(SandboxPix), payout: Box::new(SandboxPayouts::new(folder)) }
}

/// Simulated card acquirer.
struct SandboxAcquirer;

/// Simulated PIX institution.
struct SandboxPix;

/// Fate of a card's charge.
enum Script {
    Approve,
    Refuse(CardRefusal),
    /// Captures the charge, and answers only when it is asked again.
    Silence,
}

/// The cards that are not approved at once: 4000000000000002, 4000000000009995 and
/// 4000000000000119.
fn script(bin: u32, last4: u16) -> Script {
    match (bin, last4) {
        (400_000, 2) => Script::Refuse(CardRefusal::NotAuthorized),
        (400_000, 9995) => Script::Refuse(CardRefusal::InsufficientFunds),
        (400_000, 119) => Script::Silence,
        _ => Script::Approve,
    }
}

/// The acquirer's answer to a captured charge: it keeps the price list's MDR of the total. Debit is
/// charged as one installment.
fn captured(amount: Centavos, method: PaymentMethod, installments: u8) -> CardAnswer {
    let installments = if method == PaymentMethod::DebitCard { 1 } else { installments };
    CardAnswer::Captured { acquirer_mdr: Fees::default().mdr(installments).of(amount) }
}

/// Prefix of the token of a stored card. The card's first six and last four digits follow, which
/// decide its fate.
const TOKEN_PREFIX: &str = "sandbox-card-";

/// The first six digits of a number, and the last four.
fn face(number: &str) -> (u32, u16) {
    let last4 = number.get(number.len().saturating_sub(4)..).and_then(|part| part.parse().ok());
    (number.get(..6).and_then(|part| part.parse().ok()).unwrap_or_default(), last4.unwrap_or_default())
}

impl CardRail for SandboxAcquirer {
    fn charge(&self, order: ChargeCard) -> Call<'_, CardAnswer> {
        let (bin, last4) = match &order.card {
            ChargedCard::Given(card) => face(&card.number),
            ChargedCard::Kept(CardToken(token)) => face(token.strip_prefix(TOKEN_PREFIX).unwrap_or_default()),
        };
        let answer = match script(bin, last4) {
            Script::Approve => Ok(captured(order.amount, order.method, order.installments)),
            Script::Refuse(refusal) => Ok(CardAnswer::Refused(refusal)),
            Script::Silence => return Box::pin(std::future::pending()),
        };
        Box::pin(std::future::ready(answer))
    }

    fn tokenize(&self, card: CardSecrets) -> Call<'_, CardToken> {
        let (bin, last4) = face(&card.number);
        Box::pin(std::future::ready(Ok(CardToken(format!("{TOKEN_PREFIX}{bin:06}{last4:04}")))))
    }

    /// Answers as if it had received the charge, so none is closed: a charge that arrives after
    /// this has the same outcome.
    fn close<'a>(&'a self, _charge: ObjectId, open: &'a OpenCharge) -> Call<'a, CardFate> {
        let Some(CardFace { bin, last4, .. }) = open.card else {
            return Box::pin(std::future::ready(Err(RailError::NoAnswer)));
        };
        let answer = match script(bin, last4) {
            Script::Approve | Script::Silence => {
                captured(open.terms.amount, open.terms.method, open.terms.installments)
            }
            Script::Refuse(refusal) => CardAnswer::Refused(refusal),
        };
        Box::pin(std::future::ready(Ok(CardFate::Answered(answer))))
    }

    fn repay(&self, _order: Repay) -> Call<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl PixRail for SandboxPix {
    fn location(&self, charge: ObjectId) -> String {
        format!("sandbox.centavo.invalid/pix/v2/{}", charge.txid())
    }

    /// Cancels the code. The engine asks about pending charges only, whose codes are unpaid.
    fn cancel(&self, _charge: ObjectId) -> Call<'_, PixFate> {
        Box::pin(std::future::ready(Ok(PixFate::Cancelled)))
    }

    fn repay(&self, _order: Repay) -> Call<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use actors::testkit::rails as conformance;
    use ledger::event::{CardBrand, Terms};
    use ledger::fees::Commission;
    use ledger::time::Timestamp;

    use super::*;

    #[tokio::test]
    async fn what_the_acquirer_has_said_stays_so() {
        let numbers = ["4111111111111111", "4000000000000002", "4000000000009995"];
        for (turn, number) in (1..).zip(numbers) {
            let (amount, installments, method) = (Centavos(10_000), 3, PaymentMethod::CreditCard);
            let card = || CardSecrets {
                number: number.to_owned(),
                holder_name: String::new(),
                exp_month: 12,
                exp_year: 2039,
                cvv: String::new(),
            };
            let order = |charge| ChargeCard { charge, amount, installments, method, card: ChargedCard::Given(card()) };
            let (bin, last4) = face(number);
            let terms = Terms {
                amount,
                method,
                installments,
                splits: Vec::new(),
                commission: Commission::default(),
                settlement_days: 30,
                initial_fee: None,
            };
            let card = Some(CardFace { bin, last4, brand: CardBrand::Other });
            let open = OpenCharge { terms, attention_at: Timestamp(0), card, opened: 1 };
            conformance::card(&SandboxAcquirer, order, &open, [ObjectId(turn), ObjectId(100 + turn)]).await;
        }
    }
}
