//! Receivables: money that is due to somebody later, by due time and arrangement.
//!
//! A fold over Records. It holds the claims of merchants and recipients in `Pending`, charge by
//! charge, and what the card acquirer owes, by installment, refund and dispute. At every Record the
//! net amounts sum to the balances of these accounts ([`Receivables::check`]).
//!
//! Memory grows with what is open and with the card charges of the last months, not with history.
//! A refund or a dispute of an older charge has no card scheme: its fact does not name one.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};

use crate::event::AnticipatedSplit;
use crate::invariants::GroupBooks;
use crate::{
    Account, CardBrand, Centavos, Event, GroupNumber, LedgerId, Minute, ObjectId, PaymentMethod, Record, SettledObject,
    Terms, Timestamp,
};

/// Days from a debit's capture until the acquirer pays it.
const DEBIT_DAYS: u16 = 1;
/// Days from one installment of a credit to the next.
const CREDIT_DAYS: u16 = 30;
/// Days until the acquirer takes back the money of a refund or a dispute.
const RETURN_DAYS: u16 = 1;

/// Payment arrangement of a receivable: the card scheme, and credit or debit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ReceivableArrangement {
    /// Credit or debit card; `None` if no fact says it.
    #[n(0)]
    pub method: Option<PaymentMethod>,
    /// The card scheme; `None` if no fact says it.
    #[n(1)]
    pub brand: Option<CardBrand>,
}

impl ReceivableArrangement {
    /// The arrangement of a charge that no fact describes any more.
    const UNKNOWN: Self = Self { method: None, brand: None };
}

/// Amounts of a receivable, centavos. Gross less MDR, fees and the anticipated part is the net.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ReceivableAmounts {
    /// Before fees and before anticipation.
    #[n(0)]
    pub gross: Centavos,
    /// The acquirer's fee: as the merchant pays it, or as it was booked with the charge.
    #[n(1)]
    pub mdr: Centavos,
    /// Other fees of the platform.
    #[n(2)]
    pub fees: Centavos,
    /// The part that its recipient anticipated.
    #[n(3)]
    pub anticipated: Centavos,
    /// The part that is still due.
    #[n(4)]
    pub net: Centavos,
}

/// Money that somebody will have at a due minute, from one arrangement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receivable {
    /// To whom it is due: a merchant, a recipient, or the platform's shard of a group, to which the
    /// acquirer owes it.
    pub holder: LedgerId,
    /// The charge.
    pub charge: ObjectId,
    /// For what the acquirer pays or takes back; none for claims of merchants and recipients.
    pub object: Option<SettledObject>,
    /// How the charge was paid.
    pub arrangement: ReceivableArrangement,
    /// When it is due. For the acquirer this is the day that its calendar promises.
    pub due: Minute,
    /// The amounts of it.
    pub amounts: ReceivableAmounts,
}

/// A balance that the receivables do not sum to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{ledger} {account:?} stands at {balance}, and its receivables sum to {sum}")]
pub struct ReceivablesDiffer {
    /// Whose books.
    pub ledger: LedgerId,
    /// Which account.
    pub account: Account,
    /// The balance of the account, centavos.
    pub balance: i128,
    /// The sum of its receivables, centavos.
    pub sum: i128,
}

pub(crate) type ClaimKey = (LedgerId, Minute, ObjectId);
type ExpectedKey = (GroupNumber, ObjectId, SettledObject);

/// What is due to whom, folded from all Records in order.
#[derive(Clone, Debug, Default)]
pub struct Receivables {
    /// Claims of merchants and recipients in `Pending`.
    claims: BTreeMap<ClaimKey, Open>,
    /// Claims on the acquirer, centavos; below zero where it takes money back.
    expected: BTreeMap<ExpectedKey, Open>,
    /// Claims of which nothing is due any more: forgotten when their due time is over.
    spent: BTreeSet<(Minute, LedgerId, ObjectId)>,
    /// Card schemes of charges that wait for the acquirer's answer.
    cards: BTreeMap<ObjectId, CardBrand>,
    /// Arrangements of captured charges, until their last due time.
    charges: BTreeMap<ObjectId, ReceivableArrangement>,
    ends: BTreeSet<(Minute, ObjectId)>,
    /// Net amounts by holder, centavos.
    sums: BTreeMap<LedgerId, i128>,
    now: Minute,
}

/// Stored part of [`Receivables`]: see [`Receivables::items`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct StoredReceivable(#[n(0)] Part);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
enum Part {
    /// The minute of the last Record.
    #[n(0)]
    Now(#[n(0)] Minute),
    #[n(1)]
    Claim(#[n(0)] LedgerId, #[n(1)] Minute, #[n(2)] ObjectId, #[n(3)] ReceivableArrangement, #[n(4)] ReceivableAmounts),
    #[n(2)]
    Expected(
        #[n(0)] GroupNumber,
        #[n(1)] ObjectId,
        #[n(2)] SettledObject,
        #[n(3)] Minute,
        #[n(4)] ReceivableArrangement,
        #[n(5)] ReceivableAmounts,
    ),
    /// A charge that waits for the acquirer's answer.
    #[n(3)]
    Card(#[n(0)] ObjectId, #[n(1)] CardBrand),
    /// A captured charge, until its last due time.
    #[n(4)]
    Charge(#[n(0)] Minute, #[n(1)] ObjectId, #[n(2)] ReceivableArrangement),
}

/// One open receivable.
#[derive(Clone, Copy, Debug)]
struct Open {
    arrangement: ReceivableArrangement,
    due: Minute,
    amounts: ReceivableAmounts,
}

impl Receivables {
    /// Folds the next Record.
    pub fn post(&mut self, record: &Record) {
        self.pass(record.effective_at.minute());
        each_change(record, self);
    }

    /// Everything that is open, holder by holder: claims by due time, then what the acquirer owes.
    pub fn open(&self) -> impl Iterator<Item = Receivable> {
        let claims = self.claims.iter().map(|((holder, due, charge), open)| Receivable {
            holder: *holder,
            charge: *charge,
            object: None,
            arrangement: open.arrangement,
            due: *due,
            amounts: open.amounts,
        });
        let expected = self.expected.iter().map(|((group, charge, object), open)| Receivable {
            holder: LedgerId::Platform(*group),
            charge: *charge,
            object: Some(*object),
            arrangement: open.arrangement,
            due: open.due,
            amounts: open.amounts,
        });
        claims.chain(expected)
    }

    /// Number of stored parts: [`Receivables::items`] gives one more.
    pub fn len(&self) -> usize {
        self.claims.len() + self.expected.len() + self.cards.len() + self.ends.len()
    }

    /// Whether nothing is open, and no charge is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All parts of it, in the same order every time: a fold that gets them by
    /// [`Receivables::restore`] goes on as this one does.
    pub fn items(&self) -> impl Iterator<Item = StoredReceivable> {
        let claims = self
            .claims
            .iter()
            .map(|((holder, due, charge), open)| Part::Claim(*holder, *due, *charge, open.arrangement, open.amounts));
        let expected = self.expected.iter().map(|((group, charge, object), open)| {
            Part::Expected(*group, *charge, *object, open.due, open.arrangement, open.amounts)
        });
        let cards = self.cards.iter().map(|(charge, brand)| Part::Card(*charge, *brand));
        let charges = self.ends.iter().filter_map(|(end, charge)| {
            let arrangement = self.charges.get(charge)?;
            Some(Part::Charge(*end, *charge, *arrangement))
        });
        let now = std::iter::once(Part::Now(self.now));
        now.chain(claims).chain(expected).chain(cards).chain(charges).map(StoredReceivable)
    }

    /// Restores a part that another fold has stored.
    pub fn restore(&mut self, item: StoredReceivable) {
        match item.0 {
            Part::Now(now) => self.now = now,
            Part::Claim(holder, due, charge, arrangement, amounts) => {
                self.claims.insert((holder, due, charge), Open { arrangement, due, amounts });
                if amounts.net.is_zero() {
                    self.spent.insert((due, holder, charge));
                }
                *self.sums.entry(holder).or_default() += i128::from(amounts.net.0);
            }
            Part::Expected(group, charge, object, due, arrangement, amounts) => {
                self.expected.insert((group, charge, object), Open { arrangement, due, amounts });
                *self.sums.entry(LedgerId::Platform(group)).or_default() += i128::from(amounts.net.0);
            }
            Part::Card(charge, brand) => drop(self.cards.insert(charge, brand)),
            Part::Charge(end, charge, arrangement) => {
                self.charges.insert(charge, arrangement);
                self.ends.insert((end, charge));
            }
        }
    }

    /// Takes all parts of a fold over the Records of other groups. Of the two times the earlier one
    /// stands, so that nothing is forgotten before the Records until then are folded.
    pub fn absorb(&mut self, other: &Self) {
        let now = if self.is_empty() { other.now } else { self.now.min(other.now) };
        other.items().for_each(|item| self.restore(item));
        self.now = now;
    }

    /// Sum of the net amounts that are due to a holder, centavos.
    pub fn sum(&self, holder: LedgerId) -> i128 {
        self.sums.get(&holder).copied().unwrap_or_default()
    }

    /// Checks the sums of the ledgers that a Record has entries of against the books of its group,
    /// which have the same Records.
    pub fn check(&self, record: &Record, books: &GroupBooks) -> Result<(), ReceivablesDiffer> {
        compare(record, books, |ledger| self.sum(ledger))
    }

    /// Forgets what is over at this minute.
    fn pass(&mut self, now: Minute) {
        self.now = self.now.max(now);
        while let Some((due, holder, charge)) = self.spent.first().copied().filter(|(due, ..)| *due < self.now) {
            self.spent.pop_first();
            let key = (holder, due, charge);
            if self.claims.get(&key).is_some_and(|open| open.amounts.net.is_zero()) {
                self.claims.remove(&key);
            }
        }
        while let Some((_, charge)) = self.ends.first().copied().filter(|(end, _)| *end < self.now) {
            self.ends.pop_first();
            self.charges.remove(&charge);
        }
    }
}

/// What the facts of a Record do to receivables. [`Receivables`] keeps each of them, and
/// [`crate::receivable_sums::ReceivableSums`] their sums.
pub(crate) trait ReceivableChanges {
    /// A card charge was opened; its brand is known by the digits of its number.
    fn open(&mut self, _charge: ObjectId, _by_digits: CardBrand) {}
    /// A card charge was refused.
    fn refuse(&mut self, _charge: ObjectId) {}
    /// A card charge was captured, with a brand if the acquirer names it. Nothing of it is due
    /// after `end`.
    fn capture(&mut self, _charge: ObjectId, _method: PaymentMethod, _brand: Option<CardBrand>, _end: Minute) {}
    /// The claim of a merchant or a recipient changes.
    fn change(&mut self, claim: ClaimKey, by: ReceivableAmounts);
    /// So much of what is due to a holder in a minute becomes available.
    fn mature(&mut self, holder: LedgerId, minute: Minute, amount: Centavos);
    /// What the acquirer owes a group for an object changes by a gross amount and an MDR.
    fn owe(
        &mut self,
        group: GroupNumber,
        of: (ObjectId, SettledObject),
        when: (Option<PaymentMethod>, Minute),
        amounts: (Centavos, Centavos),
    );
}

impl ReceivableChanges for Receivables {
    fn open(&mut self, charge: ObjectId, by_digits: CardBrand) {
        self.cards.insert(charge, by_digits);
    }

    fn refuse(&mut self, charge: ObjectId) {
        self.cards.remove(&charge);
    }

    fn capture(&mut self, charge: ObjectId, method: PaymentMethod, brand: Option<CardBrand>, end: Minute) {
        let brand = brand.or(self.cards.remove(&charge));
        self.charges.insert(charge, ReceivableArrangement { method: Some(method), brand });
        self.ends.insert((end, charge));
    }

    fn owe(
        &mut self,
        group: GroupNumber,
        (charge, object): (ObjectId, SettledObject),
        (method, due): (Option<PaymentMethod>, Minute),
        (gross, mdr): (Centavos, Centavos),
    ) {
        let unknown = ReceivableArrangement { method, ..ReceivableArrangement::UNKNOWN };
        let arrangement = self.charges.get(&charge).copied().unwrap_or(unknown);
        let due = if due == Minute::default() { self.now } else { due };
        let new = Open { arrangement, due, amounts: ReceivableAmounts::default() };
        let key = (group, charge, object);
        let open = self.expected.entry(key).or_insert(new);
        open.amounts.gross += gross;
        open.amounts.mdr += mdr;
        open.amounts.net += gross - mdr;
        if open.amounts == ReceivableAmounts::default() {
            self.expected.remove(&key);
        }
        *self.sums.entry(LedgerId::Platform(group)).or_default() += i128::from((gross - mdr).0);
    }

    fn change(&mut self, key: ClaimKey, by: ReceivableAmounts) {
        let (holder, due, charge) = key;
        let arrangement = self.charges.get(&charge).copied().unwrap_or(ReceivableArrangement::UNKNOWN);
        let new = Open { arrangement, due, amounts: ReceivableAmounts::default() };
        let amounts = &mut self.claims.entry(key).or_insert(new).amounts;
        amounts.gross += by.gross;
        amounts.mdr += by.mdr;
        amounts.fees += by.fees;
        amounts.anticipated += by.anticipated;
        amounts.net += by.net;
        if amounts.net.is_zero() {
            self.spent.insert((due, holder, charge));
        }
        *self.sums.entry(holder).or_default() += i128::from(by.net.0);
    }

    fn mature(&mut self, holder: LedgerId, minute: Minute, amount: Centavos) {
        let mut rest = amount;
        let of_minute = (holder, minute, ObjectId(0))..=(holder, minute, ObjectId(u128::MAX));
        let claims: Vec<_> = self.claims.range(of_minute).map(|(key, open)| (*key, open.amounts)).collect();
        for (key, amounts) in claims {
            if amounts.net <= rest {
                rest -= amounts.net;
                self.claims.remove(&key);
                *self.sums.entry(holder).or_default() -= i128::from(amounts.net.0);
            } else {
                self.change(key, drawn(rest));
                rest = Centavos::ZERO;
            }
        }
        // More than was due: it stays visible, below zero.
        if !rest.is_zero() {
            self.change((holder, minute, ObjectId(0)), drawn(rest));
        }
    }
}

/// Shows the changes that the facts of a Record make.
pub(crate) fn each_change(record: &Record, to: &mut impl ReceivableChanges) {
    let Some(group) = record.owner.group() else { return };
    for event in &record.events {
        of_event(group, record, event, to);
    }
}

fn of_event(group: GroupNumber, record: &Record, event: &Event, to: &mut impl ReceivableChanges) {
    let merchant = LedgerId::Merchant(group);
    let mut draw = |holder, due: Option<Minute>, charge, amount: Centavos| {
        if !amount.is_zero() {
            to.change((holder, due.unwrap_or_default(), charge), drawn(amount));
        }
    };
    match event {
        Event::ChargeOpened { charge, card: Some(card), .. } => to.open(*charge, card.brand),
        Event::CardRefused { charge, .. } => to.refuse(*charge),
        Event::CardCaptured { .. } => capture(group, record, event, to),
        Event::Matured { dues, .. } => {
            dues.iter().for_each(|due| to.mature(record.owner, due.minute, due.amount));
        }
        Event::RefundApproved { charge, drawn, seller_due, commission, commission_pending, .. } => {
            draw(merchant, *seller_due, *charge, drawn.from_pending);
            if *commission_pending {
                let (mdr, net) = (-commission.mdr, commission.total());
                let back = ReceivableAmounts { mdr, fees: -net - mdr, net, ..ReceivableAmounts::default() };
                to.change((merchant, seller_due.unwrap_or_default(), *charge), back);
            }
        }
        Event::RefundFailed { charge, to_pending, seller_due, charged, give_backs, .. } => {
            draw(merchant, *seller_due, *charge, charged.from_pending - *to_pending);
            for part in give_backs {
                draw(LedgerId::Recipient(group, part.recipient), part.due, *charge, -part.to_pending);
            }
        }
        Event::DisputeOpened { charge, drawn, seller_due, .. } => {
            draw(merchant, *seller_due, *charge, drawn.from_pending);
        }
        Event::DisputeReleased { charge, to_pending, seller_due, .. }
        | Event::DisputeReversed { charge, to_pending, seller_due, .. } => {
            draw(merchant, *seller_due, *charge, -*to_pending);
        }
        Event::ClawbackRecovered { debts, .. } => {
            for debt in debts {
                draw(record.owner, debt.due, debt.split.charge, debt.from_pending);
                draw(merchant, debt.seller_due, debt.split.charge, -debt.to_pending);
            }
        }
        Event::SplitsAnticipated { splits, .. } => {
            for AnticipatedSplit { split, due, amount, .. } in splits.iter().copied() {
                let by = ReceivableAmounts { anticipated: amount, net: -amount, ..ReceivableAmounts::default() };
                to.change((record.owner, due, split.charge), by);
            }
        }
        Event::AcquirerSettled { lines, .. } => {
            for line in lines {
                let amounts = (-line.gross, -line.booked_fee);
                to.owe(group, (line.charge, line.object), (None, Minute::default()), amounts);
            }
        }
        _ => {}
    }
    if let Some((of, method, amount)) = taken_by_acquirer(event).filter(|(_, method, _)| method.is_card()) {
        let due = record.takes_effect_at().plus_days(RETURN_DAYS).minute();
        to.owe(group, of, (Some(method), due), (-amount, Centavos::ZERO));
    }
}

/// Money that an institution takes back for an object of a charge, or gives again (below zero).
fn taken_by_acquirer(event: &Event) -> Option<((ObjectId, SettledObject), PaymentMethod, Centavos)> {
    match event {
        Event::PayerRepaid { id, charge, method, amount, .. } => {
            Some(((*charge, SettledObject::Refund(*id)), *method, *amount))
        }
        Event::RepaymentReversed { id, charge, method, amount, .. } => {
            Some(((*charge, SettledObject::Refund(*id)), *method, -*amount))
        }
        Event::DisputeAccepted { id, charge, method, amount } => {
            Some(((*charge, SettledObject::Dispute(*id)), *method, *amount))
        }
        Event::DisputeReversed { id, charge, method, amount, .. } => {
            Some(((*charge, SettledObject::Dispute(*id)), *method, -*amount))
        }
        _ => None,
    }
}

/// The claims of a captured charge, and what the acquirer owes for it, installment by installment.
fn capture(group: GroupNumber, record: &Record, event: &Event, to: &mut impl ReceivableChanges) {
    let Event::CardCaptured { charge, terms, acquirer_mdr, seller, seller_due, splits_due, brand, .. } = event else {
        return;
    };
    let (charge, at, last) = (*charge, record.takes_effect_at(), installments(terms));
    to.capture(charge, terms.method, *brand, paid_at(terms, last, at).max(*seller_due).max(*splits_due));
    let net = seller.raised;
    if net.is_positive() {
        let (mdr, fees) = (terms.commission.mdr, terms.commission.total() - terms.commission.mdr);
        let amounts = ReceivableAmounts { gross: net + mdr + fees, mdr, fees, net, ..ReceivableAmounts::default() };
        to.change((LedgerId::Merchant(group), *seller_due, charge), amounts);
    }
    for split in &terms.splits {
        to.change((LedgerId::Recipient(group, split.recipient), *splits_due, charge), drawn(-split.amount));
    }
    let part = |whole: Centavos, number: u8| {
        let through = |count: u8| whole.share(Centavos(count.into()), Centavos(last.into()));
        through(number) - through(number - 1)
    };
    for number in 1..=last {
        let amounts = (part(terms.amount, number), part(*acquirer_mdr, number));
        to.owe(group, (charge, SettledObject::Installment(number)), (None, paid_at(terms, number, at)), amounts);
    }
}

/// Change of a claim of which so much is taken.
fn drawn(amount: Centavos) -> ReceivableAmounts {
    ReceivableAmounts { gross: -amount, net: -amount, ..ReceivableAmounts::default() }
}

/// Compares sums of receivables with the accounts of the ledgers that a Record has entries of.
pub(crate) fn compare(
    record: &Record,
    books: &GroupBooks,
    sum_of: impl Fn(LedgerId) -> i128,
) -> Result<(), ReceivablesDiffer> {
    for ledger in record.entries.iter().map(|entry| entry.ledger()) {
        let account = match ledger {
            LedgerId::Merchant(_) | LedgerId::Recipient(..) => Account::Pending,
            LedgerId::Platform(_) => Account::AcquirerReceivable,
            LedgerId::System => continue,
        };
        let (balance, sum) = (books.balance(ledger, account), sum_of(ledger));
        if balance != sum {
            return Err(ReceivablesDiffer { ledger, account, balance, sum });
        }
    }
    Ok(())
}

/// How many payments the acquirer makes for a charge.
fn installments(terms: &Terms) -> u8 {
    if terms.method == PaymentMethod::CreditCard { terms.installments.max(1) } else { 1 }
}

/// When the acquirer pays an installment of a charge that was captured at this time.
fn paid_at(terms: &Terms, installment: u8, captured_at: Timestamp) -> Minute {
    let days = match terms.method {
        PaymentMethod::CreditCard => CREDIT_DAYS * u16::from(installment),
        PaymentMethod::DebitCard | PaymentMethod::Pix => DEBIT_DAYS,
    };
    captured_at.plus_days(days).minute()
}
