//! Simulated card acquirer of the sandbox. A card's number decides what happens to its charge. It
//! keeps records of its own and pays from them, in batches on business days: a debit one day after
//! its capture, an installment of a credit every 30 days, less its fee. Refunds and accepted
//! disputes are taken from the next batch; the fee of a refund is given back in proportion, that of
//! a dispute is stored.

use std::path::Path;
use std::sync::Arc;

use actors::rails::{
    Call, CardAnswer, CardFate, CardRail, CardSecrets, CardToken, ChargeCard, ChargedCard, RailError, Repay,
    RepayAnswer, SettlementCursor, SettlementPage,
};
use futures_util::TryFutureExt;
use ledger::fees::Fees;
use ledger::{CardBrand, CardFace, CardRefusal, Centavos, ObjectId, OpenCharge, PaymentMethod, RailStamp, Timestamp};

use super::acquirer_books::{AcquirerBooks, Capture, TakeBack, first_payment_after};
use super::bank_books::BankBooks;
use super::folder_lock::ask;
use super::refused_refunds::refused_refund;

/// Simulated card acquirer.
pub(super) struct SandboxAcquirer {
    books: Arc<AcquirerBooks>,
}

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

/// Prefix of the token of a stored card. The card's first six and last four digits follow, which
/// decide its fate.
const TOKEN_PREFIX: &str = "sandbox-card-";

/// The first six digits of a number, and the last four.
fn face(number: &str) -> (u32, u16) {
    let last4 = number.get(number.len().saturating_sub(4)..).and_then(|part| part.parse().ok());
    (number.get(..6).and_then(|part| part.parse().ok()).unwrap_or_default(), last4.unwrap_or_default())
}

/// What the log calls it.
const NAME: &str = "acquirer";

impl SandboxAcquirer {
    /// The acquirer, with its records in `folder`. It pays to the bank's account. `is_shared`:
    /// other processes keep the records too.
    pub(super) fn new(folder: &Path, bank: Arc<BankBooks>, is_shared: bool) -> Self {
        Self { books: Arc::new(AcquirerBooks::new(folder, bank, is_shared)) }
    }

    fn take_back(&self, call: &Repay, is_dispute: bool) -> Call<'static, RailStamp> {
        let Repay { id, decided_at, charge, amount, .. } = *call;
        ask(&self.books, NAME, move |books, patience| {
            books.take_back(patience, TakeBack { id, charge, amount, is_dispute }, decided_at)?;
            Ok(RailStamp::new(nsu(id), decided_at))
        })
    }
}

/// What is captured: the acquirer keeps the price list's MDR of the total. Debit is charged as one
/// installment.
fn capture_of(charge: ObjectId, amount: Centavos, method: PaymentMethod, installments: u8) -> Capture {
    let is_debit = method == PaymentMethod::DebitCard;
    let installments = if is_debit { 1 } else { installments };
    let mdr = Fees::default().mdr(installments).of(amount);
    Capture { charge, amount, mdr, installments, is_debit }
}

/// The answer for a captured charge: it is captured when it is asked for.
fn captured_for(charge: ObjectId, acquirer_mdr: Centavos, brand: Option<CardBrand>) -> CardAnswer {
    CardAnswer::Captured { acquirer_mdr, brand, stamp: RailStamp::new(nsu(charge), charge.created_at()) }
}

/// The scheme of a card whose prefix is another's: 4000000000000093 is a card of Elo. Of others it
/// names none.
fn brand(bin: u32, last4: u16) -> Option<CardBrand> {
    ((bin, last4) == (400_000, 93)).then_some(CardBrand::Elo)
}

/// Its number of an act: made of our id, so that every answer has the same.
fn nsu(id: ObjectId) -> String {
    format!("{:012}", id.0 % 1_000_000_000_000)
}

impl CardRail for SandboxAcquirer {
    fn charge(&self, call: ChargeCard) -> Call<'_, CardAnswer> {
        let (bin, last4) = match &call.card {
            ChargedCard::Given(card) => face(&card.number),
            ChargedCard::Token(CardToken(token)) | ChargedCard::Stored { token: CardToken(token), .. } => {
                face(token.strip_prefix(TOKEN_PREFIX).unwrap_or_default())
            }
        };
        match script(bin, last4) {
            Script::Approve => {
                let capture = capture_of(call.charge, call.amount, call.method, call.installments);
                ask(&self.books, NAME, move |books, patience| {
                    let counts = books.capture(patience, capture, false)?;
                    Ok(captured_for(counts.charge, counts.mdr, brand(bin, last4)))
                })
            }
            Script::Refuse(refusal) => Box::pin(std::future::ready(Ok(CardAnswer::Refused(refusal)))),
            Script::Silence => Box::pin(std::future::pending()),
        }
    }

    fn tokenize(&self, card: CardSecrets) -> Call<'_, CardToken> {
        let (bin, last4) = face(&card.number);
        Box::pin(std::future::ready(Ok(CardToken(format!("{TOKEN_PREFIX}{bin:06}{last4:04}")))))
    }

    /// Nothing is stored: a token has all that is known of its card.
    fn delete_token(&self, _token: CardToken) -> Call<'_, bool> {
        Box::pin(std::future::ready(Ok(true)))
    }

    /// Answers as if it had received the charge: a charge that arrives after this has the same
    /// outcome. One that it cannot record is closed.
    fn close<'a>(&'a self, charge: ObjectId, open: &'a OpenCharge) -> Call<'a, CardFate> {
        let Some(CardFace { bin, last4, .. }) = open.card else {
            return Box::pin(std::future::ready(Err(RailError::NoAnswer)));
        };
        match script(bin, last4) {
            Script::Approve | Script::Silence => {
                let capture = capture_of(charge, open.terms.amount, open.terms.method, open.terms.installments);
                ask(&self.books, NAME, move |books, patience| {
                    let counts = books.capture_or_close(patience, capture)?;
                    let answer = |counts: Capture| captured_for(counts.charge, counts.mdr, brand(bin, last4));
                    Ok(counts.map(answer).map_or(CardFate::Closed, CardFate::Answered))
                })
            }
            Script::Refuse(refusal) => {
                let answer = CardFate::Answered(CardAnswer::Refused(refusal));
                Box::pin(std::future::ready(Ok(answer)))
            }
        }
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        match refused_refund(&call) {
            Some(refused) => Box::pin(std::future::ready(Ok(refused))),
            None => Box::pin(self.take_back(&call, false).map_ok(RepayAnswer::Repaid)),
        }
    }

    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp> {
        self.take_back(&dispute, true)
    }

    fn settlements(&self, after: SettlementCursor, now: Timestamp) -> Call<'_, Option<SettlementPage>> {
        ask(&self.books, NAME, move |books, patience| books.page(patience, after, now))
    }

    fn settles_next(&self, now: Timestamp) -> Timestamp {
        first_payment_after(now)
    }
}

#[cfg(test)]
mod tests {
    use actors::testkit::rails as conformance;
    use ledger::event::Terms;
    use ledger::fees::Commission;

    use super::super::folder_lock::Patience;
    use super::*;

    /// A charge that the acquirer could not record is captured once it can, and refused while it
    /// cannot.
    #[tokio::test]
    async fn a_charge_without_a_record_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let bank = Arc::new(BankBooks::new(folder.path().join("bank"), "1", false));
        let acquirer = SandboxAcquirer::new(folder.path(), bank, false);
        let capture = |number| capture_of(ObjectId(number), Centavos(100), PaymentMethod::DebitCard, 1);
        let find = |number| acquirer.books.capture_or_close(Patience::LONG, capture(number));
        let blocked = folder.path().join("acquirer/captures-1970-01-01");
        std::fs::create_dir_all(&blocked).unwrap();
        assert!(acquirer.books.capture(Patience::LONG, capture(1), false).is_err());
        assert!(find(1).unwrap().is_none());
        std::fs::remove_dir(&blocked).unwrap();
        assert!(find(2).unwrap().is_some());
        assert!(find(2).unwrap().is_some());
    }

    #[tokio::test]
    async fn what_the_acquirer_has_said_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        let bank = Arc::new(BankBooks::new(folder.path().join("bank"), "1", false));
        let acquirer = SandboxAcquirer::new(folder.path(), bank, false);
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
            let call = |charge| ChargeCard {
                charge,
                amount,
                installments,
                method,
                card: ChargedCard::Given(card()),
                merchant: Default::default(),
                payer: Default::default(),
                not_after: Timestamp(i64::MAX),
            };
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
            let open = OpenCharge {
                terms,
                attention_at: Timestamp(0),
                card,
                opened: 1,
                rail: None,
                registers_until: None,
                authorized: None,
                tried_at: None,
            };
            conformance::card(&acquirer, call, &open, [ObjectId(turn), ObjectId(100 + turn)]).await;
        }
    }
}
