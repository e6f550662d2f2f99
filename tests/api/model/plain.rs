//! The plain model: every split, debt and payment in a list of its own, every sum made by hand. It
//! shares no code with the ledger and knows nothing of Records, actors or time but `now`; it says
//! what the accounting manual and the interface say, in the plainest way.

/// Milliseconds of a day.
pub(super) const DAY: i64 = 86_400_000;
const MINUTE: i64 = 60_000;

/// The rates of the price list, in hundredths of a percent.
const MDR: [(i64, i64); 3] = [(1, 299), (6, 349), (12, 399)];
const MARGIN: i64 = 100;
const ANTIFRAUD: i64 = 198;
const PIX: i64 = 99;
/// The fee of a cashout, centavos.
pub(super) const CASHOUT_FEE: i64 = 100;

/// A share of an amount, half up.
fn share(amount: i64, hundredths: i64) -> i64 {
    (amount * hundredths + 5_000) / 10_000
}

/// `part * numerator / denominator`, half up.
fn proportion(part: i64, numerator: i64, denominator: i64) -> i64 {
    let twice = i128::from(part) * i128::from(numerator) * 2 + i128::from(denominator);
    i64::try_from(twice / (2 * i128::from(denominator))).unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Waiting,
    Paid,
    Refused,
    Cancelled,
}

#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) txid: String,
    pub(super) is_card: bool,
    pub(super) amount: i64,
    /// Recipient, nominal amount.
    pub(super) splits: Vec<(usize, i64)>,
    /// MDR, antifraud, margin, PIX.
    pub(super) commission: [i64; 4],
    pub(super) status: Status,
    pub(super) expires_at: i64,
    pub(super) paid_at: i64,
    /// When the seller's part falls due.
    pub(super) seller_due: i64,
    pub(super) splits_due: i64,
    /// What is pending of the seller's part.
    pub(super) seller_pending: i64,
    pub(super) refunded: i64,
    pub(super) requested: i64,
    pub(super) disputed: i64,
    pub(super) lost: i64,
    commission_returned: [i64; 4],
    /// Of each split, taken back or asked for.
    pub(super) taken: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Of a PIX charge that is not paid: no money.
    Announced,
    Pending,
    Available,
    /// In the withdrawal of this place.
    Pinned(usize),
    /// Paid out by the withdrawal of this place.
    Withdrawn(usize),
    Gone,
}

#[derive(Clone, Debug)]
pub(super) struct Split {
    pub(super) charge: usize,
    pub(super) index: usize,
    pub(super) left: i64,
    pub(super) part: Part,
}

#[derive(Clone, Debug)]
pub(super) struct Withdrawal {
    pub(super) id: String,
    pub(super) amount: i64,
    pub(super) status: &'static str,
    /// What its splits had lost to debts, and the goodwill in it, which no split has.
    consumed: i64,
    goodwill: i64,
    /// When the bank sends it back that it was paid to.
    comes_back_at: Option<i64>,
}

/// What the bank does with a recipient's withdrawals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Bank {
    #[default]
    Keeps,
    Refuses,
    /// A day later.
    Returns,
}

#[derive(Clone, Debug)]
struct Debt {
    charge: usize,
    index: usize,
    to_available: i64,
    to_pending: i64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Recipient {
    pub(super) id: String,
    pub(super) bank: Bank,
    /// Oldest first.
    pub(super) splits: Vec<Split>,
    pub(super) withdrawals: Vec<Withdrawal>,
    debts: Vec<Debt>,
    /// What the splits that are available lost to debts.
    consumed: i64,
    /// What is available beside splits. It pays debts first.
    goodwill: i64,
    /// Nothing leaves to it.
    pub(super) frozen: bool,
}

impl Recipient {
    pub(super) fn of(id: String, bank: Bank) -> Self {
        Self { id, bank, ..Self::default() }
    }

    fn sum(&self, counts: impl Fn(Part) -> bool) -> i64 {
        self.splits.iter().filter(|split| counts(split.part)).map(|split| split.left).sum()
    }

    /// Available, pending, paid, reserved.
    pub(super) fn balance(&self) -> [i64; 4] {
        [
            self.sum(|part| part == Part::Available) - self.consumed + self.goodwill,
            self.sum(|part| part == Part::Pending),
            self.withdrawn("approved"),
            self.withdrawn("pending"),
        ]
    }

    fn withdrawn(&self, status: &str) -> i64 {
        self.withdrawals
            .iter()
            .filter(|withdrawal| withdrawal.status == status)
            .map(|withdrawal| withdrawal.amount)
            .sum()
    }

    /// The splits as they are listed: what debts took is laid on the oldest of those that are
    /// available, or were withdrawn, together.
    pub(super) fn listed(&self) -> Vec<Split> {
        let mut free = self.consumed;
        let mut withdrawn: Vec<i64> = self.withdrawals.iter().map(|withdrawal| withdrawal.consumed).collect();
        let mut listed: Vec<Split> = self.splits.iter().filter(|split| split.part != Part::Gone).cloned().collect();
        for split in &mut listed {
            let consumed = match split.part {
                Part::Available => &mut free,
                Part::Pinned(place) | Part::Withdrawn(place) => &mut withdrawn[place],
                Part::Announced | Part::Pending | Part::Gone => continue,
            };
            let part = split.left.min(*consumed).max(0);
            split.left -= part;
            *consumed -= part;
        }
        listed
    }

    pub(super) fn owes(&self) -> i64 {
        self.debts.iter().map(|debt| debt.to_available + debt.to_pending).sum()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Cashout {
    pub(super) id: String,
    pub(super) amount: i64,
    pub(super) status: &'static str,
    pub(super) will: Will,
    pub(super) created_at: i64,
}

/// What becomes of a cashout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Will {
    Process,
    Fail,
    AnswerLate,
    BeRefused,
}

#[derive(Clone, Debug)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) charge: usize,
    pub(super) amount: i64,
    pub(super) status: &'static str,
    /// Split, amount.
    take_back: Vec<(usize, i64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Dispute {
    pub(super) id: String,
    pub(super) charge: usize,
    pub(super) amount: i64,
    pub(super) status: &'static str,
    from_pending: i64,
}

/// Every charge, split, debt and payment of one merchant, as plain lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Plain {
    pub(super) now: i64,
    pub(super) refund_commission: bool,
    pub(super) settlement_days: i64,
    pub(super) available: i64,
    pub(super) deficit: i64,
    pub(super) charges: Vec<Charge>,
    pub(super) recipients: Vec<Recipient>,
    pub(super) cashouts: Vec<Cashout>,
    pub(super) refunds: Vec<Refund>,
    pub(super) disputes: Vec<Dispute>,
}

impl Plain {
    /// Available, pending, reserved, deficit.
    pub(super) fn balance(&self) -> [i64; 4] {
        let pending = self.charges.iter().map(|charge| charge.seller_pending).sum();
        let held = self.cashouts.iter().filter(|cashout| cashout.status == "in_processing");
        let disputed = self.charges.iter().map(|charge| charge.disputed).sum::<i64>();
        [self.available, pending, held.map(|cashout| cashout.amount).sum::<i64>() + disputed, self.deficit]
    }

    pub(super) fn quote(is_card: bool, amount: i64, installments: i64, gross: i64) -> [i64; 4] {
        if !is_card {
            return [0, 0, 0, share(gross, PIX)];
        }
        let rate = MDR.iter().find(|(most, _)| installments <= *most).unwrap().1;
        [share(amount, rate), ANTIFRAUD, share(gross, MARGIN), 0]
    }

    /// A charge is created; a PIX charge's splits are announced.
    pub(super) fn open(
        &mut self,
        txid: String,
        is_card: bool,
        amount: i64,
        installments: i64,
        splits: &[(usize, i64)],
    ) {
        let gross = amount - splits.iter().map(|(_, amount)| amount).sum::<i64>();
        let place = self.charges.len();
        self.charges.push(Charge {
            txid,
            is_card,
            amount,
            splits: splits.to_vec(),
            commission: Self::quote(is_card, amount, installments, gross),
            status: Status::Waiting,
            expires_at: i64::MAX,
            paid_at: 0,
            seller_due: 0,
            splits_due: 0,
            seller_pending: 0,
            refunded: 0,
            requested: 0,
            disputed: 0,
            lost: 0,
            commission_returned: [0; 4],
            taken: vec![0; splits.len()],
        });
        if !is_card {
            self.list(place, Part::Announced);
        }
    }

    fn list(&mut self, charge: usize, part: Part) {
        for (index, (recipient, amount)) in self.charges[charge].splits.clone().into_iter().enumerate() {
            self.recipients[recipient].splits.push(Split { charge, index, left: amount, part });
        }
    }

    /// The charge is paid or captured at `at`.
    pub(super) fn pay(&mut self, charge: usize, at: i64) {
        let paid = &mut self.charges[charge];
        paid.status = Status::Paid;
        paid.paid_at = at;
        let splits: i64 = paid.splits.iter().map(|(_, amount)| amount).sum();
        let net = paid.amount - splits - paid.commission.iter().sum::<i64>();
        let due = |days: i64| (at + days * DAY) / MINUTE * MINUTE;
        paid.splits_due = due(30);
        paid.seller_due = due(self.settlement_days);
        if paid.is_card {
            paid.seller_pending = net.max(0);
            self.list(charge, Part::Pending);
        } else {
            self.available += net.max(0);
            for recipient in &mut self.recipients {
                let mine = recipient.splits.iter_mut().filter(|split| split.charge == charge);
                mine.for_each(|split| split.part = Part::Available);
            }
        }
        self.lack((-net).max(0));
        self.settle();
    }

    /// What the seller lacks comes from Available, then from the platform.
    fn lack(&mut self, amount: i64) -> i64 {
        let from_available = amount.min(self.available);
        self.available -= from_available;
        self.deficit += amount - from_available;
        amount
    }

    /// All that follows by itself: what is due falls due, debts are paid back, the deficit is
    /// repaid.
    pub(super) fn settle(&mut self) {
        for charge in &mut self.charges {
            if charge.is_card && charge.seller_due <= self.now {
                self.available += std::mem::take(&mut charge.seller_pending);
            }
        }
        for recipient in 0..self.recipients.len() {
            let charges = &self.charges;
            for split in &mut self.recipients[recipient].splits {
                if split.part == Part::Pending && charges[split.charge].splits_due <= self.now {
                    split.part = Part::Available;
                }
            }
            self.recover(recipient);
        }
        let repaid = self.available.min(self.deficit);
        self.available -= repaid;
        self.deficit -= repaid;
    }

    /// The clock stands at `now`.
    pub(super) fn advance(&mut self, now: i64) {
        self.now = now;
        for place in 0..self.charges.len() {
            if self.charges[place].status == Status::Waiting && self.charges[place].expires_at <= now {
                self.cancel(place);
            }
        }
        for cashout in self.cashouts.iter_mut().filter(|cashout| cashout.status == "in_processing") {
            match cashout.will {
                Will::Process => cashout.status = "processed",
                Will::AnswerLate if cashout.created_at + MINUTE <= now => cashout.status = "processed",
                Will::AnswerLate => {}
                Will::Fail | Will::BeRefused => {
                    cashout.status = "failed";
                    self.available += cashout.amount;
                }
            }
        }
        for recipient in 0..self.recipients.len() {
            for place in 0..self.recipients[recipient].withdrawals.len() {
                let withdrawal = &mut self.recipients[recipient].withdrawals[place];
                if withdrawal.comes_back_at.is_some_and(|at| at <= now) {
                    withdrawal.comes_back_at = None;
                    self.free(recipient, place);
                }
            }
        }
        self.settle();
    }

    pub(super) fn cancel(&mut self, charge: usize) {
        self.charges[charge].status = Status::Cancelled;
        for recipient in &mut self.recipients {
            let mine = recipient.splits.iter_mut().filter(|split| split.charge == charge);
            mine.for_each(|split| split.part = Part::Gone);
        }
    }

    /// A recipient's debts are paid back, oldest first: from the split itself while it is pending,
    /// then from the available money.
    fn recover(&mut self, recipient: usize) {
        let owner = &mut self.recipients[recipient];
        for debt in &mut owner.debts {
            let mut paid = 0;
            let owed = debt.to_available + debt.to_pending;
            let own = |split: &&mut Split| (split.charge, split.index) == (debt.charge, debt.index);
            let pending = owner.splits.iter_mut().filter(own).filter(|split| split.part == Part::Pending);
            for split in pending {
                let part = split.left.min(owed - paid);
                split.left -= part;
                paid += part;
            }
            let available = owner.splits.iter().filter(|split| split.part == Part::Available);
            let available = available.map(|split| split.left).sum::<i64>() - owner.consumed + owner.goodwill;
            let part = available.min(owed - paid);
            let of_goodwill = part.min(owner.goodwill);
            owner.goodwill -= of_goodwill;
            owner.consumed += part - of_goodwill;
            paid += part;
            let to_available = paid.min(debt.to_available);
            debt.to_available -= to_available;
            debt.to_pending -= paid - to_available;
            self.available += to_available;
            let charge = &mut self.charges[debt.charge];
            if charge.is_card && charge.seller_due > self.now {
                charge.seller_pending += paid - to_available;
            } else {
                self.available += paid - to_available;
            }
        }
        owner.debts.retain(|debt| debt.to_available + debt.to_pending > 0);
    }

    pub(super) fn withdraw(&mut self, recipient: usize, id: String) -> i64 {
        let owner = &mut self.recipients[recipient];
        let (place, amount) = (owner.withdrawals.len(), owner.balance()[0]);
        let available = owner.splits.iter_mut().filter(|split| split.part == Part::Available);
        available.for_each(|split| split.part = Part::Pinned(place));
        let (consumed, goodwill) = (std::mem::take(&mut owner.consumed), std::mem::take(&mut owner.goodwill));
        owner.withdrawals.push(Withdrawal { id, amount, status: "pending", consumed, goodwill, comes_back_at: None });
        amount
    }

    /// An administrator approved a withdrawal at a time, and the money was sent.
    pub(super) fn pay_withdrawal(&mut self, recipient: usize, place: usize, at: i64) {
        let owner = &mut self.recipients[recipient];
        owner.withdrawals[place].status = "approved";
        owner.withdrawals[place].comes_back_at = (owner.bank == Bank::Returns).then_some(at + DAY);
        let pinned = owner.splits.iter_mut().filter(|split| split.part == Part::Pinned(place));
        pinned.for_each(|split| split.part = Part::Withdrawn(place));
    }

    /// A withdrawal was rejected by an administrator, or by the bank.
    pub(super) fn reject_withdrawal(&mut self, recipient: usize, place: usize) {
        self.free(recipient, place);
        self.settle();
    }

    /// The splits of a withdrawal are available again.
    fn free(&mut self, recipient: usize, place: usize) {
        let owner = &mut self.recipients[recipient];
        owner.withdrawals[place].status = "rejected";
        owner.consumed += owner.withdrawals[place].consumed;
        owner.goodwill += owner.withdrawals[place].goodwill;
        let its = [Part::Pinned(place), Part::Withdrawn(place)];
        owner
            .splits
            .iter_mut()
            .filter(|split| its.contains(&split.part))
            .for_each(|split| split.part = Part::Available);
    }

    /// True when a split falls due before the day in `days` days, which only the shortest term may
    /// be.
    pub(super) fn is_due_before(&self, split: &Split, days: i64) -> bool {
        let day = |at: i64| (at - 3 * 60 * 60 * 1000).div_euclid(24 * 60 * 60 * 1000);
        days > 2 && day(self.charges[split.charge].splits_due) < day(self.now) + days
    }

    /// Original, fee and net of these splits of a recipient.
    pub(super) fn anticipate(&mut self, recipient: usize, places: &[usize], rate: i64) -> [i64; 3] {
        let (mut original, mut fees) = (0, 0);
        for place in places {
            let split = &mut self.recipients[recipient].splits[*place];
            let fee = share(split.left, rate);
            original += split.left;
            fees += fee;
            split.left -= fee;
            split.part = Part::Available;
        }
        self.settle();
        [original, fees, original - fees]
    }

    pub(super) fn cash_out(&mut self, id: String, amount: i64, will: Will, created_at: i64) {
        self.available -= amount;
        self.cashouts.push(Cashout { id, amount, status: "in_processing", will, created_at });
        if will == Will::BeRefused {
            self.cashouts.last_mut().unwrap().status = "failed";
            self.available += amount;
            self.settle();
        }
    }

    /// What a recipient's splits of a charge still can be asked to give back.
    pub(super) fn returnable(&self, charge: usize, recipient: usize) -> i64 {
        let charge = &self.charges[charge];
        let mine = charge.splits.iter().zip(&charge.taken).filter(|((owner, _), _)| *owner == recipient);
        mine.map(|((_, amount), taken)| amount - taken).sum()
    }

    pub(super) fn request_refund(&mut self, id: String, place: usize, amount: i64, take_back: &[(usize, i64)]) {
        let charge = &mut self.charges[place];
        charge.requested += amount;
        let mut parts = Vec::new();
        for (recipient, wanted) in take_back {
            let mut rest = *wanted;
            for (index, (owner, nominal)) in charge.splits.iter().enumerate() {
                if owner == recipient {
                    let part = rest.min(nominal - charge.taken[index]);
                    charge.taken[index] += part;
                    rest -= part;
                    if part > 0 {
                        parts.push((index, part));
                    }
                }
            }
            assert_eq!(rest, 0, "the test asks for what there is");
        }
        self.refunds.push(Refund { id, charge: place, amount, status: "pending", take_back: parts });
    }

    pub(super) fn reject_refund(&mut self, place: usize) {
        let refund = &mut self.refunds[place];
        refund.status = "rejected";
        let charge = &mut self.charges[refund.charge];
        charge.requested -= refund.amount;
        refund.take_back.iter().for_each(|(index, part)| charge.taken[*index] -= part);
    }

    /// The seller bears it.
    pub(super) fn approve_refund(&mut self, place: usize) {
        self.refunds[place].status = "approved";
        let Refund { charge: at, amount, take_back, .. } = self.refunds[place].clone();
        let charge = &mut self.charges[at];
        charge.requested -= amount;
        charge.refunded += amount;
        // What comes back of the commission is there before the refund is taken from the seller.
        if self.refund_commission {
            let mut returned = 0;
            for component in 0..4 {
                let all = proportion(charge.commission[component], charge.refunded, charge.amount);
                returned += all - charge.commission_returned[component];
                charge.commission_returned[component] = all;
            }
            if charge.is_card && charge.seller_due > self.now {
                charge.seller_pending += returned;
            } else {
                self.available += returned;
            }
        }
        let from_pending = self.draw(at, amount);
        let charge = &self.charges[at];
        let mut undone = amount - from_pending;
        for (index, part) in take_back {
            let to_available = part.min(undone);
            undone -= to_available;
            let recipient = charge.splits[index].0;
            let debt = Debt { charge: at, index, to_available, to_pending: part - to_available };
            self.recipients[recipient].debts.push(debt);
        }
        self.settle();
    }

    /// The seller's money of a charge, then Available, then the platform's; gives what came from
    /// the charge's own.
    fn draw(&mut self, charge: usize, amount: i64) -> i64 {
        let own = &mut self.charges[charge];
        let from_pending = amount.min(own.seller_pending);
        own.seller_pending -= from_pending;
        self.lack(amount - from_pending);
        from_pending
    }

    pub(super) fn open_dispute(&mut self, id: String, charge: usize, amount: i64) {
        let from_pending = self.draw(charge, amount);
        self.charges[charge].disputed += amount;
        self.disputes.push(Dispute { id, charge, amount, status: "open", from_pending });
    }

    pub(super) fn decide_dispute(&mut self, place: usize, accepted: bool) {
        let dispute = &mut self.disputes[place];
        dispute.status = if accepted { "accepted" } else { "released" };
        let charge = &mut self.charges[dispute.charge];
        charge.disputed -= dispute.amount;
        if accepted {
            charge.lost += dispute.amount;
        } else {
            self.available += dispute.amount - dispute.from_pending;
            if charge.is_card && charge.seller_due > self.now {
                charge.seller_pending += dispute.from_pending;
            } else {
                self.available += dispute.from_pending;
            }
        }
        self.settle();
    }

    /// An accepted dispute was won later.
    pub(super) fn reverse_dispute(&mut self, place: usize) {
        let dispute = &mut self.disputes[place];
        dispute.status = "reversed";
        let charge = &mut self.charges[dispute.charge];
        charge.lost -= dispute.amount;
        self.available += dispute.amount - dispute.from_pending;
        if charge.is_card && charge.seller_due > self.now {
            charge.seller_pending += dispute.from_pending;
        } else {
            self.available += dispute.from_pending;
        }
        self.settle();
    }

    /// The house gives money to a recipient, or to the merchant.
    pub(super) fn give(&mut self, recipient: Option<usize>, amount: i64) {
        match recipient {
            Some(recipient) => self.recipients[recipient].goodwill += amount,
            None => self.available += amount,
        }
        self.settle();
    }

    /// When the refund of a charge is no longer possible.
    pub(super) fn window_ends(&self, charge: usize) -> i64 {
        let charge = &self.charges[charge];
        charge.paid_at + if charge.is_card { 180 } else { 90 } * DAY
    }

    /// When the dispute of a charge is no longer possible.
    pub(super) fn dispute_window_ends(&self, charge: usize) -> i64 {
        let charge = &self.charges[charge];
        charge.paid_at + if charge.is_card { 540 } else { 90 } * DAY
    }
}
