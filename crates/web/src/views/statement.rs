//! A recipient's statement as JSON (interface 2.8).
//!
//! Balances, and the reach of withdrawals, come from the recipient's state. The splits are history,
//! read a page at a time. A PIX split is listed as pending from the creation of its charge, and is
//! money only once the charge is paid.
//!
//! Debts consume the oldest splits first. This holds within the splits of one withdrawal, and
//! within the splits that no withdrawal has: there, the newest splits sum to the money that is
//! left.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use actors::engine::{Engine, LedgerList, ListedSplit, Slice};
use ledger::event::SplitKey;
use ledger::recipient::coverage::{Holder, Place, SplitStanding};
use ledger::tax_id::is_cnpj;
use ledger::{Centavos, Charge, LedgerId, ObjectId, RecipientState, SplitHistory, Timestamp, Withdrawal};
use serde::Serialize;
use store::Sequence;
use utoipa::ToSchema;
use wire::mask;

use crate::reply::Filter;
use crate::views::charge::payer;
use crate::views::fiscal::made_up_receipt;
use crate::views::ledger::merchant_profile;
use crate::views::recipient::{RecipientBalance, recipient_id};
use crate::{Cursors, List, Page, Result, broken, time};

/// A page of a statement.
#[derive(Debug, Serialize, ToSchema)]
pub struct Statement {
    /// Splits, newest first.
    pub items: Vec<RecipientSplitView>,
    /// Splits on all pages.
    pub total: u64,
    /// This page, from 1.
    page: u64,
    /// How many pages there are.
    pages: u64,
    /// Items a page.
    per_page: u64,
    /// Address of the splits that follow; where the request has `limit`, `before` or `after`, and
    /// there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The recipient's money.
    balance: RecipientBalance,
    /// What the recipient's fiscal documents say of the platform.
    fiscal: StatementFiscal,
}

/// The platform through which a recipient sells, as its fiscal documents name it (`infIntermed`).
#[derive(Debug, Serialize, ToSchema)]
struct StatementFiscal {
    /// CNPJ of the merchant; null when it was erased, and where the merchant has a CPF.
    #[schema(required, example = "11222333000181")]
    platform_document: Option<String>,
    /// The recipient's id at the platform (`idCadIntTran`), without hyphens.
    #[schema(pattern = "^[0-9a-f]{32}$", example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7f")]
    recipient_id: String,
}

impl StatementFiscal {
    fn of(engine: &Engine, recipient: LedgerId) -> Self {
        let document = merchant_profile(engine, recipient.group().unwrap_or_default()).document;
        Self {
            platform_document: Some(document).filter(|document| is_cnpj(document)),
            recipient_id: recipient_id(engine, recipient).unwrap_or_default().txid(),
        }
    }
}

/// One split.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecipientSplitView {
    /// The split's id.
    #[schema(example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e-0")]
    id: String,
    /// The charge's txid.
    pub payment_id: String,
    /// Amount that is left of the split, centavos.
    pub amount_cents: i64,
    /// `pending`, `available` or `paid`.
    #[schema(pattern = "^(pending|available|paid)$")]
    pub status: &'static str,
    /// When it was paid to the recipient's bank account.
    #[schema(required)]
    paid_at: Option<String>,
    /// The withdrawal that has the split: `available` and not null is money under a withdrawal.
    #[schema(required)]
    pub withdrawal_id: Option<String>,
    /// When the split came to be: with the PIX charge, or with the card's capture.
    pub created_at: String,
    /// The charge.
    pub payment: SplitPayment,
}

/// The charge of a split.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitPayment {
    /// Payer's name.
    nome: String,
    /// Payer's CPF, formatted.
    #[schema(example = "123.456.789-09")]
    cpf: String,
    /// Total charged, centavos.
    gross_amount: i64,
    /// `pix` or `credit_card`.
    #[schema(pattern = "^(credit_card|pix)$")]
    payment_method: &'static str,
    /// When the split becomes or became available; null while a PIX charge is unpaid.
    #[schema(required)]
    pub balance_available_at: Option<String>,
    /// The payment's end-to-end id; paid PIX only.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_to_end_id: Option<String>,
    /// The issuer's authorization code; captured cards, where the acquirer gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    authorization: Option<String>,
}

/// Values of `status`.
const STATUSES: [&str; 3] = ["pending", "available", "paid"];

/// A split's id: its charge and its place in it. It names its group as the charge does.
pub fn split_id(charge: ObjectId, index: u32) -> String {
    format!("{}-{index}", charge.txid())
}

/// The Record that listed a recipient's split of an id, by its place among the merchant's, and the
/// index of the split in its charge.
pub fn place_of(engine: &Engine, recipient: LedgerId, id: &str) -> Result<Option<(u64, u32)>> {
    let Some(SplitKey { charge, index }) = parse_split_id(id) else { return Ok(None) };
    let found = engine.object_of::<Charge>(recipient.group().unwrap_or_default(), charge)?;
    let split = found.as_ref().and_then(|charge| charge.terms.splits.get(index as usize));
    let is_own = |number| LedgerId::Recipient(recipient.group().unwrap_or_default(), number) == recipient;
    if !split.is_some_and(|split| is_own(split.recipient)) {
        return Ok(None);
    }
    Ok(engine.splits_listed_by(charge)?.map(|number| (number, index)))
}

/// The split that an id names, in the form in which it is given out, in letters of either case.
pub fn parse_split_id(text: &str) -> Option<SplitKey> {
    let text = text.to_ascii_lowercase();
    let (charge, index) = text.split_once('-')?;
    let (charge, index) = (ObjectId::parse(charge)?, index.parse().ok()?);
    (split_id(charge, index) == text).then_some(SplitKey { charge, index })
}

/// A page of a recipient's statement, with the filter that a query has.
pub async fn statement(
    engine: &Arc<Engine>,
    recipient: LedgerId,
    pairs: &[(String, String)],
    page: Page,
    cursors: &Cursors,
) -> Result<Statement> {
    let filter = Filter::read(pairs, "status", &STATUSES)?;
    let look = |books: &RecipientState, now: Timestamp| (books.standing(), books.ledger().balances(), now);
    let (standing, accounts, now) = engine.read_recipient(recipient, look).await?;
    let mut reader = Reader::new(engine, recipient, standing, now)?;
    let range = filter.range(engine, LedgerList::SplitsListed, recipient)?;
    let listed = |number| {
        let (_, splits) = engine.splits(recipient, Slice::new(number..number + 1, 0, usize::MAX))?;
        Ok(splits.iter().map(|split| split.index).collect())
    };
    let span = cursors.span(range, |id| place_of(engine, recipient, id), listed)?;
    let (newer, _) = engine.splits(recipient, Slice::new(span.range.end..u64::MAX, 0, 0))?;
    let (skip, count) = filter.to_read(page);
    let (in_range, mut listed) = engine.splits(recipient, Slice::new(span.range.clone(), span.newer + skip, count))?;
    span.cut(&mut listed, in_range, skip);
    let total = span.total(in_range);
    filter.check("status", total)?;
    let mut found = Vec::with_capacity(listed.len());
    for split in listed {
        found.push(reader.find(split)?);
    }
    let mut items = reader.records(&found, newer + span.newer + skip)?;
    items.retain(|item| filter.word.is_none_or(|word| word == item.status));
    let List { items, total, page: number, pages, per_page, .. } = List::filtered(&filter, items, total, page);
    let next = cursors.next(total, page, items.last().map(|split| split.id.clone()));
    Ok(Statement {
        items,
        total,
        page: number,
        pages,
        per_page,
        next,
        balance: RecipientBalance::of(&accounts),
        fiscal: StatementFiscal::of(engine, recipient),
    })
}

/// Splits that are looked through at once.
const READ_AT_ONCE: usize = 256;

/// Reads the splits of one statement.
struct Reader<'a> {
    engine: &'a Arc<Engine>,
    recipient: LedgerId,
    standing: SplitStanding,
    now: Timestamp,
    /// The charge that was read last: a charge's splits stand together.
    charge: Option<(Sequence, Arc<SplitHistory>)>,
    /// How many withdrawals there were, and those that were read, by their place from the oldest.
    withdrawals: u64,
    read: HashMap<u64, Withdrawal>,
}

/// One split, and who has it.
struct FoundSplit {
    charge: Arc<SplitHistory>,
    index: u32,
    held: Option<SplitHolder>,
}

/// Holder of a split that became available.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SplitHolder {
    /// It can be withdrawn.
    ByNobody,
    /// The withdrawal that is not settled yet.
    Pending,
    /// The withdrawal at this place, which was paid.
    Paid(u64),
}

impl<'a> Reader<'a> {
    fn new(engine: &'a Arc<Engine>, recipient: LedgerId, standing: SplitStanding, now: Timestamp) -> Result<Self> {
        let withdrawals = engine.withdrawals(recipient, 0, 0)?.total;
        Ok(Self { engine, recipient, standing, now, charge: None, withdrawals, read: HashMap::new() })
    }

    fn find(&mut self, split: ListedSplit) -> Result<FoundSplit> {
        let known = self.charge.as_ref().filter(|(sequence, _)| *sequence == split.sequence);
        let charge = match known {
            Some((_, charge)) => Arc::clone(charge),
            None => Arc::new(self.engine.listed_split_history(self.recipient, split)?),
        };
        self.charge = Some((split.sequence, Arc::clone(&charge)));
        let held = charge.place(split.index, self.now).map(|place| self.held(place)).transpose()?;
        Ok(FoundSplit { charge, index: split.index, held })
    }

    fn held(&mut self, place: Place) -> Result<SplitHolder> {
        Ok(match self.standing.holder(place) {
            Holder::Nobody => SplitHolder::ByNobody,
            Holder::Pending => SplitHolder::Pending,
            Holder::Paid => SplitHolder::Paid(self.paid_by(place)?),
        })
    }

    /// The withdrawal by which the splits of a place were paid: the first that has them and was not
    /// rejected. Every withdrawal came further than those before it.
    fn paid_by(&mut self, place: Place) -> Result<u64> {
        let (mut low, mut high) = (0, self.withdrawals);
        while low < high {
            let middle = low.midpoint(high);
            let came_so_far = self.withdrawal(middle)?.spans.last().is_some_and(|span| span.through.covers(place));
            if came_so_far { high = middle } else { low = middle + 1 }
        }
        for number in low..self.withdrawals {
            let withdrawal = self.withdrawal(number)?;
            if withdrawal.paid_at.is_some() && withdrawal.spans.iter().any(|span| span.covers(place)) {
                return Ok(number);
            }
        }
        Err(broken())
    }

    /// The withdrawal at a place, counted from the oldest.
    fn withdrawal(&mut self, number: u64) -> Result<&Withdrawal> {
        match self.read.entry(number) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(self.engine.known_withdrawal(self.recipient, number)?)),
        }
    }

    /// Rest of all splits of a holder after debts; `None` if debts took nothing.
    fn left_of(&mut self, held: SplitHolder) -> Result<Option<Centavos>> {
        let (left, consumed) = match (held, &self.standing.withdrawal) {
            (SplitHolder::ByNobody, _) => (self.standing.available - self.standing.goodwill, self.standing.consumed),
            (SplitHolder::Pending, Some(withdrawal)) => (withdrawal.amount - withdrawal.goodwill, withdrawal.consumed),
            (SplitHolder::Pending, None) => return Ok(None),
            (SplitHolder::Paid(number), _) => {
                let withdrawal = self.withdrawal(number)?;
                (withdrawal.amount - withdrawal.goodwill, withdrawal.consumed)
            }
        };
        Ok(consumed.is_positive().then_some(left))
    }

    /// A page of the statement; `skip` splits stand before it.
    fn records(&mut self, found: &[FoundSplit], skip: u64) -> Result<Vec<RecipientSplitView>> {
        let mut left: HashMap<SplitHolder, Centavos> = HashMap::new();
        for held in found.iter().filter_map(|split| split.held) {
            if !left.contains_key(&held)
                && let Some(amount) = self.left_of(held)?
            {
                left.insert(held, amount);
            }
        }
        if !left.is_empty() {
            self.take_newer(&mut left, skip)?;
        }
        let mut records = Vec::with_capacity(found.len());
        for split in found {
            // A PIX charge may have been cancelled since the page was found: its split shows as it
            // was.
            let given = split.charge.terms.splits.get(split.index as usize).map(|split| split.amount);
            let nominal = split.charge.left(split.index).or(given).ok_or_else(broken)?;
            let amount = match split.held.and_then(|held| left.get_mut(&held)) {
                Some(left) => {
                    let amount = nominal.min(*left);
                    *left -= amount;
                    amount
                }
                None => nominal,
            };
            records.push(self.record(split, amount)?);
        }
        Ok(records)
    }

    /// Skips the remaining money of the splits on the pages before.
    fn take_newer(&mut self, left: &mut HashMap<SplitHolder, Centavos>, skip: u64) -> Result<()> {
        let mut passed = 0;
        while passed < skip && left.values().any(|left| left.is_positive()) {
            let count = usize::try_from(skip - passed).unwrap_or(usize::MAX).min(READ_AT_ONCE);
            let (_, listed) = self.engine.splits(self.recipient, Slice::of_all(passed, count))?;
            if listed.is_empty() {
                break;
            }
            passed += listed.len() as u64;
            for split in listed {
                let newer = self.find(split)?;
                let amount = newer.charge.left(newer.index).unwrap_or_default();
                if let Some(left) = newer.held.and_then(|held| left.get_mut(&held)) {
                    *left -= amount.min(*left);
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, found: &FoundSplit, amount: Centavos) -> Result<RecipientSplitView> {
        let (charge, index) = (&found.charge, found.index);
        let (withdrawal, paid_at) = match found.held {
            Some(SplitHolder::Paid(number)) => {
                let withdrawal = self.withdrawal(number)?;
                (Some(withdrawal.id), withdrawal.paid_at)
            }
            Some(SplitHolder::Pending) => (self.standing.withdrawal.as_ref().map(|withdrawal| withdrawal.id), None),
            _ => (None, None),
        };
        let payer = payer(self.engine, charge.charge, charge.payer.as_ref());
        Ok(RecipientSplitView {
            id: split_id(charge.charge, index),
            payment_id: charge.charge.txid(),
            amount_cents: amount.0,
            status: match found.held {
                None => "pending",
                // The interface has no word for a split under a withdrawal, and names the latter.
                Some(SplitHolder::ByNobody | SplitHolder::Pending) => "available",
                Some(SplitHolder::Paid(_)) => "paid",
            },
            paid_at: paid_at.map(time),
            withdrawal_id: withdrawal.map(|id| id.uuid().to_string()),
            created_at: time(charge.listed_at),
            payment: SplitPayment {
                cpf: mask::formatted_cpf(&payer.document),
                nome: payer.name,
                gross_amount: charge.terms.amount.0,
                payment_method: if charge.terms.method.is_card() { "credit_card" } else { "pix" },
                balance_available_at: charge.available_at(index).map(time),
                end_to_end_id: charge.end_to_end_id.clone(),
                authorization: match charge.is_of_sandbox {
                    true => charge.is_captured().then(|| made_up_receipt(charge.charge).0),
                    false => charge.authorization.clone(),
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_has_one_id() {
        let charge = ObjectId(0x019B_796E_4D24_8000_8000_0000_0000_0003);
        let id = split_id(charge, 10);
        assert_eq!(parse_split_id(&id), Some(SplitKey { charge, index: 10 }));
        assert_eq!(parse_split_id(&id.to_uppercase()), Some(SplitKey { charge, index: 10 }));
        let txid = charge.txid();
        for other in [
            format!("{txid}-010"),
            format!("{txid}-+1"),
            format!("{txid}-"),
            txid.clone(),
            format!("{}-1", charge.uuid()),
        ] {
            assert_eq!(parse_split_id(&other), None, "{other}");
        }
    }
}
