//! One account group with its books, driven by lines of text. Every Record is checked as it is
//! made: the books keep their promises, the states agree with the books, and the bytes lead back to
//! the Record.

use std::collections::BTreeMap;

use ledger::account::Account;
use ledger::adjustment::{AdjustmentCommand, AdjustmentTerms};
use ledger::asked_entry::{EntryCommand, Ruling};
use ledger::dispute::Dispute;
use ledger::entry::Side;
use ledger::event::{
    AdjustmentTarget, Batch, CardBrand, CardFace, CardRefusal, CashoutFailure, Cut, DisputeKind, Event, PayoutBank,
    SellerDraw, SettledLine, SettledObject, SplitKey, TakeBack, Terms,
};
use ledger::event_choice::EventChoice;
use ledger::fees::{Commission, PaymentMethod, Settings};
use ledger::id::{Fingerprint, GroupNumber, IdKey, LedgerId, ObjectId, RecipientNumber};
use ledger::invariants::GroupBooks;
use ledger::merchant::{
    BookBatch, CashoutOutcome, ChargeFacts, FailRefund, MerchantCommand, MerchantState, OpenDispute, Recipient,
    RecipientStatus, RepaymentKind, RequestRefund, ReturnedCashout, ReverseDispute, ReversedRefund, SplitPart,
    SplitRequest, SplitRule, Subscribe, SubscriptionChange, UnorderedPix, WaitingOrder,
};
use ledger::money::{Centavos, Rate};
use ledger::object::{self, Object};
use ledger::personal::Sealed;
use ledger::rail_word::{RailWord, SayRailWord};
use ledger::receivables::Receivables;
use ledger::recipient::coverage::{Holder, Place};
use ledger::recipient::{AnticipationTerms, CardSplit, RecipientCommand, RecipientState, TransferOutcome, credits};
use ledger::record::{Decision, Record};
use ledger::recurrence::{BillingCycle, InitialFee, PlanTerms, StoredCard, SubscriptionStanding};
use ledger::refund::RefundMoney;
use ledger::rejection::Rejection;
use ledger::scope::{Scope, Scopes};
use ledger::statement::{StatementAccount, StatementLineKind, statement_lines};
use ledger::time::{Minute, Timestamp};
use ledger::webhook_events::WebhookEventKind;
use ledger::withdrawal_return::{ReturnCommand, ReturnRequest, WithdrawalReturn};
use ledger::write_off::{WriteOffCommand, WriteOffTerms};

/// 2026-01-01T12:00:30.500Z: every world begins half a minute into a minute, so that rounding down
/// shows.
pub(crate) const START: Timestamp = Timestamp(1_767_268_830_500);

const GROUP: GroupNumber = GroupNumber(1);

const FACE: CardFace = CardFace { bin: 411_111, last4: 1111, brand: CardBrand::Visa };

/// Object of an id, read from these Records.
fn read<T: Object>(journal: &[Record], id: ObjectId) -> Option<T> {
    object::read(id, journal.iter().map(Ok::<_, std::convert::Infallible>)).expect("a journal in memory")
}

/// The group at one moment, and all that led to it.
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) merchant: MerchantState,
    pub(crate) recipients: BTreeMap<RecipientNumber, RecipientState>,
    pub(crate) books: GroupBooks,
    pub(crate) receivables: Receivables,
    pub(crate) journal: Vec<Record>,
    settings: Settings,
    ids: IdKey,
    names: BTreeMap<String, ObjectId>,
    made: u64,
    /// What stands on the merchant's accounts after the last line of its account statement.
    statement: BTreeMap<StatementAccount, Centavos>,
}

/// One split, computed from history.
struct ExpectedSplit {
    /// Where it became available.
    place: Option<Place>,
    /// What was left of it.
    amount: Centavos,
    /// The capture's sequence, and when it falls due.
    due: Option<(u64, Minute)>,
}

impl World {
    /// A merchant with every default, configured for split, and recipients in every status: ana,
    /// bia and caio are active, dora is a draft, paulo is pending, rita is rejected. `nobody`,
    /// `twin` (ana's number, another id) and `foreign` (another group's) are ids that the merchant
    /// never gave out.
    pub(crate) fn new() -> Self {
        let mut world = Self::unopened();
        for step in [
            "open",
            "register ana",
            "register bia",
            "register caio",
            "register dora",
            "register paulo",
            "register rita",
            "approve ana",
            "approve bia",
            "approve caio",
            "submit paulo",
            "reject rita",
        ] {
            world.step(step).expect("the opening steps are allowed");
        }
        world
    }

    /// An account group that does not exist yet.
    pub(crate) fn unopened() -> Self {
        let ids = IdKey::new(*b"the key of tests");
        let settings = Settings { split_enabled: true, cashout_enabled: true, ..Settings::default() };
        let stranger =
            |group, number, random| ids.recipient(GroupNumber(group), RecipientNumber(number), START, random);
        let mut names = BTreeMap::from([
            ("nobody".to_owned(), stranger(1, 99, 5)),
            ("twin".to_owned(), stranger(1, 1, 0xFFF)),
            ("foreign".to_owned(), stranger(2, 1, 5)),
        ]);
        for unknown in 0..6 {
            names.insert(format!("o{unknown}"), ids.object(GROUP, START, 1 << 41 | unknown));
            for (of, kind) in [(0, "c"), (8, "r"), (16, "d")] {
                names.insert(format!("{kind}{unknown}"), ids.object(GROUP, START, 1 << 40 | (of + unknown)));
            }
        }
        for (unknown_withdrawal, name) in (100..).zip(["w-ana", "w-bia"]) {
            names.insert(name.to_owned(), ids.object(GROUP, START, 1 << 40 | unknown_withdrawal));
        }
        for (made, name) in
            (200_u64..).zip(["p0", "p1", "s0", "s1", "o-merchant", "o-ana", "o-bia", "credit", "x-ana", "x-bia"])
        {
            names.insert(name.to_owned(), ids.object(GROUP, START, 1 << 40 | made));
        }
        Self {
            now: START,
            merchant: MerchantState::default(),
            recipients: BTreeMap::new(),
            books: GroupBooks::default(),
            receivables: Receivables::default(),
            journal: Vec::new(),
            settings,
            ids,
            names,
            made: 0,
            statement: BTreeMap::new(),
        }
    }

    /// Does what one line says: the events that it led to, of all Records, or the refusal.
    pub(crate) fn step(&mut self, line: &str) -> Result<Vec<Event>, Rejection> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (verb, rest) = words.split_first().expect("a step has a verb");
        match (*verb, rest) {
            ("wait", [duration]) => {
                self.now = self.now.plus_ms(milliseconds(duration));
                Ok(Vec::new())
            }
            ("sweep", []) => Ok(self.sweep()),
            ("mature", ["merchant"]) => Ok(self.mature_merchant()),
            ("mature", [name]) => {
                let number = self.number(name);
                Ok(self.mature_recipient(number))
            }
            ("take-back", [charge, part]) => Ok(self.take_back(charge, part)),
            (
                "withdraw"
                | "withdraw-by-operator"
                | "approve-withdrawal"
                | "ask-withdrawal"
                | "reject-withdrawal"
                | "cancel-withdrawal"
                | "settle"
                | "return"
                | "try-transfer"
                | "word-on"
                | "second-word-on"
                | "anticipate",
                [name, rest @ ..],
            ) => {
                let number = self.number(name);
                let command = self.recipient_command(verb, number, rest);
                self.decide_recipient(number, command)
            }
            (
                "ask-write-off" | "approve-write-off" | "approve-own-write-off" | "reject-write-off",
                [debtor, rest @ ..],
            ) => {
                let names = self.names.clone();
                let command = self.write_off(verb, rest);
                let decided = match *debtor {
                    "merchant" => self.decide(MerchantCommand::WriteOff(command)),
                    name => self.decide_recipient(self.number(name), RecipientCommand::WriteOff(command)),
                };
                // The name stays with the open request.
                decided.inspect_err(|_| self.names = names)
            }
            ("ask-adjustment" | "approve-adjustment" | "approve-own-adjustment" | "reject-adjustment", rest) => {
                let names = self.names.clone();
                let command = MerchantCommand::Adjust(self.goodwill(verb, rest));
                // The name stays with the open request.
                self.decide(command).inspect_err(|_| self.names = names)
            }
            (
                "ask-return" | "approve-return" | "approve-return-late" | "approve-own-return" | "reject-return",
                [name, rest @ ..],
            ) => {
                let number = self.number(name);
                let names = self.names.clone();
                let decided = self.entered_return(verb, rest).and_then(|command| {
                    self.decide_recipient(number, RecipientCommand::EnterReturn { command, closed: None })
                });
                // The name stays with the open request.
                decided.inspect_err(|_| self.names = names)
            }
            _ => match self.adjustment(verb, rest) {
                Some(Some(command)) => self.decide(command),
                Some(None) => Ok(Vec::new()),
                None => {
                    let command = self.command(verb, rest);
                    self.decide(command)
                }
            },
        }
    }

    /// What the merchant would decide now on a refund's or a dispute's step; nothing comes of it.
    pub(crate) fn decision(&mut self, line: &str) -> Result<Decision, Rejection> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (verb, rest) = words.split_first().expect("a step has a verb");
        let command = self.adjustment(verb, rest).flatten().expect("a refund or a dispute of a paid charge");
        self.merchant.decide(command, GROUP, self.now, &self.ids)
    }

    /// The terms of the charge that was opened last.
    pub(crate) fn last_terms(&self) -> &Terms {
        let events = self.journal.iter().rev().flat_map(|record| &record.events);
        let mut terms = events.filter_map(|event| match event {
            Event::ChargeOpened { terms, .. } => Some(terms),
            _ => None,
        });
        terms.next().expect("a charge was opened")
    }

    /// A recipient, as its merchant keeps it.
    pub(crate) fn registration(&self, name: &str) -> &Recipient {
        self.merchant.recipient(self.number(name)).expect("the name is a recipient's")
    }

    /// A recipient's own books.
    pub(crate) fn recipient(&self, name: &str) -> RecipientState {
        self.recipients.get(&self.number(name)).cloned().unwrap_or_default()
    }

    /// Where a subscription that goes on stands.
    pub(crate) fn standing(&self, name: &str) -> Option<SubscriptionStanding> {
        self.merchant.subscriptions().get(&self.id(name)).map(|subscription| subscription.standing.clone())
    }

    /// Where a subscription stood after the last Record about it, also once it has ended.
    pub(crate) fn last_standing(&self, name: &str) -> Option<SubscriptionStanding> {
        let id = self.id(name);
        self.journal.iter().rev().find_map(|record| SubscriptionStanding::in_record(record, id))
    }

    /// True for a name under which a subscription was begun.
    pub(crate) fn is_subscription(&self, name: &str) -> bool {
        let id = self.id(name);
        self.journal.iter().any(|record| SubscriptionStanding::in_record(record, id).is_some())
    }

    /// The ledger that the tables call `merchant`, `platform`, or by a recipient's name.
    pub(crate) fn ledger(&self, name: &str) -> LedgerId {
        match name {
            "merchant" => LedgerId::Merchant(GROUP),
            "platform" => LedgerId::Platform(GROUP),
            name => LedgerId::Recipient(GROUP, self.number(name)),
        }
    }

    /// Withdrawals, and `anticipate ana d2 c.0 c.1`: a split reads as its charge and its place in
    /// it.
    fn recipient_command(&mut self, verb: &str, number: RecipientNumber, rest: &[&str]) -> RecipientCommand {
        match (verb, rest) {
            ("withdraw", [name]) => {
                RecipientCommand::Withdraw { id: self.name(name), destination: Sealed::default(), reason: None }
            }
            ("withdraw-by-operator", [name]) => RecipientCommand::Withdraw {
                id: self.name(name),
                destination: Sealed::default(),
                reason: Some("the merchant is closing".to_owned()),
            },
            ("approve-withdrawal", [name]) => RecipientCommand::ApproveWithdrawal { id: self.id(name), rail: None },
            ("ask-withdrawal", [name]) => RecipientCommand::AskApproval { id: self.id(name) },
            ("cancel-withdrawal", [name]) => RecipientCommand::CancelWithdrawal { id: self.id(name) },
            ("reject-withdrawal", [name]) => {
                RecipientCommand::RejectWithdrawal { id: self.id(name), notes: "another account".to_owned() }
            }
            ("settle", [name, "taken" | "taken-by-pix"]) => {
                let bank = if rest[1] == "taken" { PayoutBank::Settlement } else { PayoutBank::Pix };
                let outcome = TransferOutcome::Taken { transfer_id: "transfer-1".to_owned(), bank };
                RecipientCommand::SettleWithdrawal { id: self.id(name), outcome }
            }
            ("settle", [name, "refused"]) => {
                let outcome = TransferOutcome::Refused { notes: "the account is closed".to_owned() };
                RecipientCommand::SettleWithdrawal { id: self.id(name), outcome }
            }
            ("return", [name]) => {
                RecipientCommand::ReturnWithdrawal { id: self.id(name), notes: "no such account".to_owned(), to: None }
            }
            ("try-transfer", [name]) => RecipientCommand::TryWithdrawal { id: self.id(name), attempt: 2 },
            ("word-on" | "second-word-on", [name, happened]) => {
                RecipientCommand::SayRailWord(Box::new(said(self.id(name), happened, verb == "second-word-on")))
            }
            ("anticipate", [days, splits @ ..]) => {
                let (target_days, rate) = match *days {
                    "d2" => (2, self.settings.fees.anticipation_d2),
                    "d7" => (7, self.settings.fees.anticipation_d7),
                    "d15" => (15, self.settings.fees.anticipation_d15),
                    days => panic!("no such target: {days}"),
                };
                let splits = splits.iter().map(|split| self.card_split(split, number)).collect();
                let terms = AnticipationTerms { target_days, rate, expected_fee: None };
                RecipientCommand::Anticipate { id: self.new_id(), splits, terms }
            }
            _ => panic!("no such step: {verb} {rest:?}"),
        }
    }

    /// `ask-adjustment o 700`, or `ask-adjustment o 700 ana`, then `approve-adjustment o`. The
    /// first operator has no name.
    fn goodwill(&mut self, verb: &str, rest: &[&str]) -> AdjustmentCommand {
        let operator = if verb == "approve-own-adjustment" { "" } else { "rui" }.to_owned();
        match (verb, rest) {
            ("ask-adjustment", [name, amount, to @ ..]) => AdjustmentCommand::Request {
                id: self.name(name),
                terms: AdjustmentTerms {
                    amount: centavos(amount),
                    reference: "CHAMADO-17".to_owned(),
                    target: to.first().map(|name| AdjustmentTarget::Recipient(self.number(name))),
                },
                reason: "an outage".to_owned(),
            },
            ("reject-adjustment", [name]) => {
                AdjustmentCommand::Decide { id: self.id(name), ruling: Ruling::Reject { notes: "not ours".to_owned() } }
            }
            (_, [name]) => AdjustmentCommand::Decide { id: self.id(name), ruling: Ruling::Approve { operator } },
            _ => panic!("no such step: {verb} {rest:?}"),
        }
    }

    /// `ask-write-off ana o 800`, then `approve-write-off ana o`. The first operator has no name.
    fn write_off(&mut self, verb: &str, rest: &[&str]) -> WriteOffCommand {
        let operator = if verb == "approve-own-write-off" { "" } else { "rui" }.to_owned();
        match (verb, rest) {
            ("ask-write-off", [name, amount]) => WriteOffCommand::Request {
                id: self.name(name),
                terms: WriteOffTerms { amount: centavos(amount), reference: "PARECER-17".to_owned() },
                reason: "Encerrou as atividades".to_owned(),
            },
            ("reject-write-off", [name]) => {
                let ruling = Ruling::Reject { notes: "ainda paga".to_owned() };
                WriteOffCommand::Decide { id: self.id(name), ruling }
            }
            (_, [name]) => WriteOffCommand::Decide { id: self.id(name), ruling: Ruling::Approve { operator } },
            _ => panic!("no such step: {verb} {rest:?}"),
        }
    }

    /// `ask-return ana x w`, or `ask-return ana x w day=3`, counted from the first day; then
    /// `approve-return ana x`. The withdrawal is read from the journal, as the engine does;
    /// `approve-return-late ana x` has read it before the last Record.
    fn entered_return(&mut self, verb: &str, rest: &[&str]) -> Result<ReturnCommand, Rejection> {
        let operator = if verb == "approve-own-return" { "" } else { "rui" }.to_owned();
        match (verb, rest) {
            ("ask-return", [name, withdrawal, day @ ..]) => {
                let withdrawal = self.read(self.id(withdrawal)).ok_or(Rejection::WithdrawalNotPaid)?;
                let first_day = (START.0 / milliseconds("1d")) as i32;
                let day = day.first().map(|day| day.strip_prefix("day=").expect("a day reads day=3"));
                let day = day.map(|day| first_day + day.parse::<i32>().expect("a day is a number"));
                let effective_day = day.map(|day| day as u32);
                let terms = ReturnRequest { to: None, reference: "EXTRATO-9".to_owned(), effective_day };
                let (id, reason) = (self.name(name), "Conta encerrada".to_owned());
                let command = EntryCommand::Request { id, terms, reason };
                Ok(ReturnCommand { withdrawal: Box::new(withdrawal), command })
            }
            (_, [name]) => {
                let ruling = match verb {
                    "reject-return" => Ruling::Reject { notes: "Não está no extrato".to_owned() },
                    _ => Ruling::Approve { operator },
                };
                let id = self.id(name);
                let request: WithdrawalReturn = self.read(id).ok_or(Rejection::HouseEntryAlreadyDecided)?;
                let unread = usize::from(verb == "approve-return-late");
                let withdrawal = read(&self.journal[..self.journal.len() - unread], request.terms.withdrawal);
                let withdrawal = withdrawal.expect("a return is of a withdrawal");
                let command = EntryCommand::Decide { id, ruling };
                Ok(ReturnCommand { withdrawal: Box::new(withdrawal), command })
            }
            _ => panic!("no such step: {verb} {rest:?}"),
        }
    }

    /// Object of an id, read from the journal.
    fn read<T: Object>(&self, id: ObjectId) -> Option<T> {
        read(&self.journal, id)
    }

    /// The facts of a split as the journal has them; made-up ones for a split that is not there.
    fn card_split(&self, name: &str, number: RecipientNumber) -> CardSplit {
        let (charge, index) = name.split_once('.').expect("a split reads charge.place");
        let (charge, index) = (self.id(charge), index.parse().expect("a place is a number"));
        let split = SplitKey { charge, index };
        let found = self.journal.iter().enumerate().find_map(|(at, record)| match &record.events[0] {
            Event::CardCaptured { charge: captured, terms, splits_due, .. } if *captured == charge => {
                let part = terms.splits.get(index as usize).filter(|part| part.recipient == number)?;
                Some(CardSplit { split, sequence: at as u64 + 1, due: *splits_due, nominal: part.amount })
            }
            _ => None,
        });
        found.unwrap_or(CardSplit { split, sequence: u64::MAX, due: Minute(u32::MAX), nominal: Centavos(1) })
    }

    /// `take-back c 0=300+500`: the merchant takes back of the charge's first split 300 for its
    /// Available and 500 for its Pending. The Record is that of a refund that draws nothing, so
    /// that only the recipient is concerned. What the split does not have is left.
    fn take_back(&mut self, charge: &str, part: &str) -> Vec<Event> {
        let charge = self.id(charge);
        let (index, parts) = part.split_once('=').expect("a part reads place=available+pending");
        let (to_available, to_pending) = parts.split_once('+').expect("a part reads place=available+pending");
        let index: u32 = index.parse().expect("a place is a number");
        let events = self.journal.iter().flat_map(|record| &record.events);
        let paid = events.clone().find_map(|event| match event {
            Event::CardCaptured { charge: id, terms, seller_due, splits_due, .. } if *id == charge => {
                Some((terms, Some((*seller_due, *splits_due))))
            }
            Event::PixPaid { charge: id, terms, .. } if *id == charge => Some((terms, None)),
            _ => None,
        });
        let Some((terms, dues)) = paid else { return Vec::new() };
        let Some(split) = terms.splits.get(index as usize) else { return Vec::new() };
        let taken = events.filter_map(|event| match event {
            Event::RefundApproved { charge: id, take_backs, .. } if *id == charge => Some(take_backs),
            _ => None,
        });
        let taken: Centavos = taken.flatten().filter(|known| known.index == index).map(|known| known.amount).sum();
        let left = split.amount - taken;
        let to_available = centavos(to_available).min(left);
        // The seller's money of a PIX charge is Available.
        let to_pending = if dues.is_some() { centavos(to_pending).min(left - to_available) } else { Centavos::ZERO };
        let amount = to_available + to_pending;
        if amount.is_zero() {
            return Vec::new();
        }
        let (recipient, method) = (split.recipient, terms.method);
        let due = dues.map(|(_, due)| due);
        let event = Event::RefundApproved {
            id: self.new_id(),
            charge,
            method,
            amount: Centavos::ZERO,
            drawn: SellerDraw::default(),
            seller_due: dues.map(|(due, _)| due),
            commission: Commission::default(),
            commission_pending: false,
            take_backs: vec![TakeBack { recipient, index, amount, due, to_available, to_pending }],
            commission_through: Centavos::ZERO,
        };
        self.commit(LedgerId::Merchant(GROUP), Decision::of(event))
    }

    /// A line of a batch: `c.1:5000:149` pays an installment of a charge, `c!r:-400:-12` takes its
    /// refund back, `c?d:-400:0` its dispute; gross, then fee. `None` if the charge was not paid.
    fn settled(&self, line: &str) -> Option<SettledLine> {
        let mut parts = line.split(':');
        let (what, mut amount) = (parts.next()?, || parts.next().map(centavos));
        let (gross, fee) = (amount()?, amount()?);
        let (name, object) = what.split_once(['.', '!', '?'])?;
        let charge = self.known(name)?;
        let facts = self.journal.iter().find_map(|record| ChargeFacts::in_record(record, charge))?;
        let (object, booked_fee) = if what.contains('.') {
            let number = object.parse().ok()?;
            (SettledObject::Installment(number), facts.booked_fee(number))
        } else if what.contains('!') {
            (SettledObject::Refund(self.known(object)?), Centavos::ZERO)
        } else {
            (SettledObject::Dispute(self.known(object)?), Centavos::ZERO)
        };
        Some(SettledLine { charge, object, gross, fee, booked_fee })
    }

    /// As its actor does: due money and debts are booked before the decision; the decision changes
    /// nothing; its Record does.
    fn decide_recipient(
        &mut self,
        number: RecipientNumber,
        command: RecipientCommand,
    ) -> Result<Vec<Event>, Rejection> {
        self.mature_recipient(number);
        let owner = LedgerId::Recipient(GROUP, number);
        let own = self.journal.iter().filter(|record| record.owner == owner).count() as u64;
        let cut = Cut { foreign: self.journal.len() as u64, minute: self.now.minute(), own };
        let state = self.recipients.get(&number).cloned().unwrap_or_default();
        let before = state.clone();
        let decision = state.decide(command, self.now, cut);
        assert!(before == state, "decide changed the state");
        Ok(self.commit(owner, decision?))
    }

    fn command(&mut self, verb: &str, rest: &[&str]) -> MerchantCommand {
        let sealed = |text: &str| Sealed { month: 672, bytes: text.as_bytes().to_vec(), version: 0 };
        let refusal = CardRefusal::NotAuthorized;
        match (verb, rest) {
            ("open", []) => {
                MerchantCommand::Open { id: self.new_id(), settings: self.settings, profile: sealed("profile") }
            }
            ("set", [key, value]) => {
                self.settings = changed(self.settings, key, value);
                MerchantCommand::Change { settings: self.settings, profile: None, reason: None }
            }
            ("profile", [text]) => {
                MerchantCommand::Change { settings: self.settings, profile: Some(sealed(text)), reason: None }
            }
            ("make-key", [name, scopes @ ..]) => MerchantCommand::CreateApiKey {
                id: self.name(name),
                digest: [7; 32],
                webhook_url: None,
                webhook_secret: b"secret".to_vec(),
                scopes: match scopes {
                    [] => Scopes::ALL,
                    names => names.iter().map(|name| Scope::named(name).expect("a scope")).collect(),
                },
                events: EventChoice::ALL,
            },
            ("by-key", [key, verb, rest @ ..]) => {
                let (by, command) = (self.id(key), Box::new(self.command(verb, rest)));
                MerchantCommand::ManageKeys { by, command }
            }
            ("revoke-key", [name]) => MerchantCommand::RevokeApiKey { id: self.id(name) },
            ("point-key", [name, url]) => MerchantCommand::ChangeApiKey {
                id: self.id(name),
                webhook_url: Some((*url != "nowhere").then(|| (*url).to_owned())),
                events: None,
            },
            ("choose-events", [name, kinds @ ..]) => MerchantCommand::ChangeApiKey {
                id: self.id(name),
                webhook_url: None,
                events: Some(match kinds {
                    ["all"] => EventChoice::ALL,
                    kinds => kinds.iter().map(|kind| WebhookEventKind::named(kind).expect("a kind")).collect(),
                }),
            },
            ("rotate-key", [name, secret]) => {
                MerchantCommand::RotateWebhookSecret { id: self.id(name), webhook_secret: secret.as_bytes().to_vec() }
            }
            ("register", [name]) => self.registration_of(name, sealed(name)),
            ("register", [name, data]) => self.registration_of(name, sealed(data)),
            ("change", [name, data]) => {
                let (id, profile) = (self.id(name), sealed(data));
                let standing = self.merchant.find_recipient(id, &self.ids).map(|(_, known)| known.profile.clone());
                let (standing, bank_account_changed) = (standing.unwrap_or_default(), false);
                MerchantCommand::ChangeRecipient { id, standing, profile, bank_account_changed }
            }
            ("change-account", [name, data]) => MerchantCommand::ChangeRecipient {
                id: self.id(name),
                standing: self.registration(name).profile.clone(),
                profile: sealed(data),
                bank_account_changed: true,
            },
            ("change", [name, data, standing]) => MerchantCommand::ChangeRecipient {
                id: self.id(name),
                standing: sealed(standing),
                profile: sealed(data),
                bank_account_changed: false,
            },
            ("submit", [name]) => MerchantCommand::SubmitRecipient { id: self.id(name) },
            ("approve", [name]) => MerchantCommand::ApproveRecipient { id: self.id(name) },
            ("freeze" | "unfreeze", [name]) => {
                let (frozen, reason) = (verb == "freeze", "forged documents".to_owned());
                MerchantCommand::FreezeRecipient { id: self.id(name), frozen, reason }
            }
            ("reject", [name]) => {
                MerchantCommand::RejectRecipient { id: self.id(name), notes: "unreadable document".to_owned() }
            }
            ("open-card" | "open-debit", [name, amount, installments, splits @ ..]) => MerchantCommand::OpenCard {
                charge: self.name(name),
                amount: centavos(amount),
                method: if verb == "open-card" { PaymentMethod::CreditCard } else { PaymentMethod::DebitCard },
                installments: installments.trim_end_matches('x').parse().expect("installments read 3x"),
                splits: self.splits(splits),
                card: FACE,
                payer: sealed("payer"),
                rail: None,
            },
            ("open-pix", [name, amount, splits @ ..]) => MerchantCommand::OpenPix {
                charge: self.name(name),
                amount: centavos(amount),
                splits: self.splits(splits),
                expires_at: self.now.plus_days(1),
                payer: sealed("payer"),
                rail: None,
            },
            ("capture", [name]) => {
                let charge = self.id(name);
                let amount = self.merchant.open_charges().get(&charge).map_or(Centavos::ZERO, |open| open.terms.amount);
                MerchantCommand::CaptureCard {
                    charge,
                    acquirer_mdr: Rate::basis_points(299).of(amount),
                    captured_at: None,
                    brand: None,
                }
            }
            ("capture", [name, mdr]) => {
                let (charge, acquirer_mdr) = (self.id(name), centavos(mdr));
                MerchantCommand::CaptureCard { charge, acquirer_mdr, captured_at: None, brand: None }
            }
            ("authorize", [name]) => {
                MerchantCommand::AuthorizeCard { charge: self.id(name), brand: Some(CardBrand::Elo) }
            }
            ("forbid", [name]) => {
                let refusal = CardRefusal::Coded { code: 5, is_final: true };
                MerchantCommand::RefuseCard { charge: self.id(name), refusal }
            }
            ("refuse", [name]) => MerchantCommand::RefuseCard { charge: self.id(name), refusal },
            ("silent", [name]) => MerchantCommand::LeaveUnanswered { charge: self.id(name) },
            (batch @ ("batch" | "file-batch"), [number, lines @ ..]) => {
                MerchantCommand::BookBatch(Box::new(BookBatch {
                    batch: Batch {
                        number: number.parse().expect("a batch has a number"),
                        reference: format!("LOTE-{number}"),
                        paid_on: 20_000,
                        of_file: batch == "file-batch",
                    },
                    first_line: 0,
                    lines: lines.iter().filter_map(|line| self.settled(line)).collect(),
                }))
            }
            ("pay", [name]) => {
                let charge = self.id(name);
                let amount = self.merchant.open_charges().get(&charge).map_or(Centavos::ZERO, |open| open.terms.amount);
                let end_to_end_id = "E0000000020260101120000000000001".to_owned();
                MerchantCommand::ConfirmPix { charge, amount, end_to_end_id }
            }
            ("pay", [name, amount]) => MerchantCommand::ConfirmPix {
                charge: self.id(name),
                amount: centavos(amount),
                end_to_end_id: "E0000000020260101120000000000001".to_owned(),
            },
            ("cancel", [name]) => MerchantCommand::CancelPix { charge: self.id(name) },
            ("cash-out", [name, amount]) => MerchantCommand::CreateCashout {
                id: self.name(name),
                transaction: [5; 16],
                transaction_key: Fingerprint([6; 16]),
                amount: centavos(amount),
                destination: sealed("destination"),
                rail: None,
            },
            ("carried-out" | "not-carried-out" | "not-taken", [name]) => MerchantCommand::SettleCashout {
                id: self.id(name),
                outcome: match verb {
                    "carried-out" => CashoutOutcome::Processed {
                        transfer_id: "t-1".to_owned(),
                        end_to_end_id: "E0000000020260101120000000000002".to_owned(),
                        bank: PayoutBank::Pix,
                    },
                    _ => CashoutOutcome::Failed {
                        failure: match verb {
                            "not-taken" => CashoutFailure::NotTaken,
                            _ => CashoutFailure::NotCarriedOut,
                        },
                        notes: "conta encerrada".to_owned(),
                    },
                },
            },
            ("sent-back", [name, amount]) => MerchantCommand::ReturnCashout(Box::new(ReturnedCashout {
                id: self.id(name),
                amount: centavos(amount),
                fee: Centavos(100),
                bank: PayoutBank::Pix,
                reason: "conta encerrada".to_owned(),
                key: Fingerprint([7; 16]),
            })),
            ("plan", [name, tag, amount, cycle, total, rest @ ..]) => {
                MerchantCommand::CreatePlan { id: self.name(name), plan: plan(tag, amount, cycle, total, rest) }
            }
            ("disable", [name]) => MerchantCommand::DisablePlan { id: self.id(name) },
            ("store-card", [name]) => MerchantCommand::StoreCard {
                id: self.name(name),
                face: FACE,
                token: b"token".to_vec(),
                customer: sealed("customer"),
                rail: None,
            },
            ("subscribe", [name, plan, kind, splits @ ..]) => {
                let is_card = *kind != "pix";
                MerchantCommand::Subscribe(Subscribe {
                    plan: self.id(plan),
                    method: if is_card { PaymentMethod::CreditCard } else { PaymentMethod::Pix },
                    card: is_card.then(|| StoredCard { id: self.stored(kind), face: FACE }),
                    splits: self.split_rules(splits),
                    customer: sealed("customer"),
                    id: self.name(name),
                })
            }
            ("delete-card", [name]) => MerchantCommand::DeleteCard { id: self.id(name) },
            ("change-card", [name, card]) => MerchantCommand::ChangeSubscriptionCard {
                id: self.id(name),
                card: StoredCard { id: self.id(card), face: FACE },
            },
            ("bill", [name, charge]) => MerchantCommand::BillSubscription {
                rail: None,
                id: self.id(name),
                charge: self.name(charge),
                payer: sealed("payer"),
            },
            ("pause", [name]) => self.change(name, SubscriptionChange::Pause),
            ("resume", [name]) => self.change(name, SubscriptionChange::Resume),
            ("cancel-subscription", [name]) => self.change(name, SubscriptionChange::Cancel),
            _ => panic!("no such step: {verb} {rest:?}"),
        }
    }

    /// The command of a refund, a dispute or a repayment. Nothing comes of one for a charge that
    /// was never paid: the door, which reads the facts, refuses it.
    fn adjustment(&mut self, verb: &str, rest: &[&str]) -> Option<Option<MerchantCommand>> {
        let sealed = |text: &str| Sealed { month: 672, bytes: text.as_bytes().to_vec(), version: 0 };
        Some(match (verb, rest) {
            ("refund", [name, charge, amount, splits @ ..]) => self.facts(charge).map(|facts| {
                let (take_back, amount) = (self.splits(splits), (*amount != "rest").then(|| centavos(amount)));
                let reason = Some(sealed("reason"));
                let order = RequestRefund { id: self.name(name), facts, amount, take_back, reason };
                MerchantCommand::RequestRefund(Box::new(order))
            }),
            ("approve-refund", [name, charge]) => self
                .facts(charge)
                .map(|facts| MerchantCommand::ApproveRefund { id: self.id(name), facts: Box::new(facts) }),
            ("reject-refund", [name]) => {
                Some(MerchantCommand::RejectRefund { id: self.id(name), notes: "no proof".to_owned() })
            }
            ("refuse-repayment", [name]) => {
                let (id, reason) = (self.id(name), "account closed".to_owned());
                Some(MerchantCommand::RefuseRepayment { id, reason })
            }
            ("send", [name]) => Some(MerchantCommand::ConfirmRepayment { id: self.id(name) }),
            ("fail-refund", [name, charge]) => self.facts(charge).and_then(|facts| {
                let (id, notes) = (self.id(name), "account closed".to_owned());
                let records = self.journal.iter().cloned().map(Ok::<_, std::convert::Infallible>);
                let money = RefundMoney::read(id, records).unwrap_or_else(|never| match never {})?;
                Some(MerchantCommand::FailRefund(Box::new(FailRefund { id, facts, money, notes, reversed: None })))
            }),
            ("try", [name]) => Some(MerchantCommand::TryOrder { id: self.id(name), attempt: 2 }),
            // Of a refund with its charge.
            ("word" | "second-word", [name, happened, charge @ ..]) => {
                let mut word = said(self.id(name), happened, verb == "second-word");
                let failed = charge.first().and_then(|charge| self.adjustment("fail-refund", &[name, charge]));
                if let Some(Some(MerchantCommand::FailRefund(refund))) = failed {
                    word.refund = Some(refund);
                }
                Some(MerchantCommand::SayRailWord(Box::new(word)))
            }
            ("reverse-refund", [name, charge, amount]) => self.facts(charge).and_then(|facts| {
                let (id, notes) = (self.id(name), "undone by the scheme".to_owned());
                let records = self.journal.iter().cloned().map(Ok::<_, std::convert::Infallible>);
                let money = RefundMoney::read(id, records).unwrap_or_else(|never| match never {})?;
                let reversed = Some(ReversedRefund { amount: centavos(amount), key: Fingerprint([9; 16]) });
                Some(MerchantCommand::FailRefund(Box::new(FailRefund { id, facts, money, notes, reversed })))
            }),
            ("dispute", [name, charge, amount, kind @ ..]) => self.facts(charge).map(|facts| {
                let kind = match kind {
                    ["med"] => DisputeKind::Med,
                    ["chargeback"] => DisputeKind::Chargeback,
                    _ if facts.terms.method.is_card() => DisputeKind::Chargeback,
                    _ => DisputeKind::Med,
                };
                let (amount, reason) = (centavos(amount), sealed("reason"));
                let order = OpenDispute { id: self.name(name), facts, kind, amount, reason, case: None };
                MerchantCommand::OpenDispute(Box::new(order))
            }),
            ("accept", [name, charge, amount @ ..]) => self.facts(charge).map(|facts| MerchantCommand::AcceptDispute {
                id: self.id(name),
                amount: amount.first().map(|amount| centavos(amount)),
                facts: Box::new(facts),
            }),
            ("release", [name, charge]) => self.facts(charge).map(|facts| MerchantCommand::ReleaseDispute {
                id: self.id(name),
                facts: Box::new(facts),
                notes: None,
            }),
            ("win", [name, charge]) => self.reversal(name, charge, None),
            ("ask-reversal", [entry, name, charge]) => {
                let (id, reference, reason) = (self.name(entry), "CHAMADO-18".to_owned(), "won late".to_owned());
                let terms = AdjustmentTerms { amount: Centavos(1), reference, target: None };
                self.reversal(name, charge, Some(EntryCommand::Request { id, terms, reason }))
            }
            ("approve-reversal" | "approve-own-reversal", [entry, name, charge]) => {
                let operator = if verb == "approve-own-reversal" { "" } else { "rui" }.to_owned();
                let (id, ruling) = (self.id(entry), Ruling::Approve { operator });
                self.reversal(name, charge, Some(EntryCommand::Decide { id, ruling }))
            }
            ("pay-late", [charge, amount]) => Some(MerchantCommand::ReceiveUnorderedPix(Box::new(UnorderedPix {
                charge: self.id(charge),
                id: self.name("late"),
                amount: centavos(amount),
                end_to_end_id: "E0000000020260101120000000000002".to_owned(),
                key: Fingerprint::default(),
            }))),
            ("on-version", [version, name, verb, rest @ ..]) => {
                let decision = match self.adjustment(verb, rest) {
                    Some(decision) => decision?,
                    None => self.command(verb, rest),
                };
                Some(MerchantCommand::OnVersion {
                    id: self.id(name),
                    version: version.parse().expect("a number"),
                    decision: Box::new(decision),
                })
            }
            _ => return None,
        })
    }

    fn facts(&self, charge: &str) -> Option<ChargeFacts> {
        let id = self.id(charge);
        self.journal.iter().find_map(|record| ChargeFacts::in_record(record, id))
    }

    /// What becomes of a dispute that was won. Its key counts once, as in the engine.
    fn reversal(&self, name: &str, charge: &str, command: Option<AdjustmentCommand>) -> Option<MerchantCommand> {
        let (dispute, facts) = (self.read::<Dispute>(self.id(name))?, self.facts(charge)?);
        let key = Fingerprint(self.id(name).0.to_be_bytes());
        Some(MerchantCommand::ReverseDispute(Box::new(ReverseDispute { dispute, facts, key, command })))
    }

    fn change(&self, name: &str, change: SubscriptionChange) -> MerchantCommand {
        MerchantCommand::ChangeSubscription { id: self.id(name), change }
    }

    /// Registers a name; the document is the name's, so that the same name is the same document.
    fn registration_of(&mut self, name: &str, profile: Sealed) -> MerchantCommand {
        let mut document = Fingerprint::default();
        document.0.iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte);
        let random = u16::from(document.0[0]);
        let next = RecipientNumber(self.merchant.recipients().len() as u32 + 1);
        if self.merchant.recipient_by_document(document).is_none() {
            self.names.insert(name.to_owned(), self.ids.recipient(GROUP, next, self.now, random));
        }
        MerchantCommand::RegisterRecipient { random, document, profile }
    }

    fn splits(&self, words: &[&str]) -> Vec<SplitRequest> {
        let parts = words.iter().map(|word| word.split_once('=').expect("a split reads name=amount"));
        parts.map(|(name, amount)| SplitRequest { recipient: self.id(name), amount: centavos(amount) }).collect()
    }

    /// The stored card that a subscription names; `card` is one that nothing else names.
    fn stored(&mut self, name: &str) -> ObjectId {
        if name == "card" { self.new_id() } else { self.id(name) }
    }

    /// Splits of a subscription: `name=amount`, or `name=percent%`.
    fn split_rules(&self, words: &[&str]) -> Vec<SplitRule> {
        let rule = |word: &&str| {
            let (name, part) = word.split_once('=').expect("a split reads name=amount or name=percent%");
            let part = match part.strip_suffix('%') {
                Some(percent) => {
                    SplitPart::Percent(Rate::percent(percent.parse().expect("a decimal")).expect("a rate"))
                }
                None => SplitPart::Amount(centavos(part)),
            };
            SplitRule { recipient: self.id(name), part }
        };
        words.iter().map(rule).collect()
    }

    /// As its actor would: what is due comes before the decision; the decision changes nothing; its
    /// Record does.
    fn decide(&mut self, command: MerchantCommand) -> Result<Vec<Event>, Rejection> {
        self.mature_merchant();
        let before = self.merchant.clone();
        let decision = self.merchant.decide(command, GROUP, self.now, &self.ids);
        assert!(before == self.merchant, "decide changed the state");
        Ok(self.commit(LedgerId::Merchant(GROUP), decision?))
    }

    fn sweep(&mut self) -> Vec<Event> {
        let mut events = self.mature_merchant();
        let numbers: Vec<_> = self.recipients.keys().copied().collect();
        numbers.into_iter().for_each(|number| events.extend(self.mature_recipient(number)));
        events
    }

    fn mature_merchant(&mut self) -> Vec<Event> {
        let decision = self.merchant.mature(self.now, self.journal.len() as u64);
        decision.map_or_else(Vec::new, |decision| self.commit(LedgerId::Merchant(GROUP), decision))
    }

    fn mature_recipient(&mut self, number: RecipientNumber) -> Vec<Event> {
        let through = self.journal.len() as u64;
        let decision = self.recipients.get(&number).and_then(|state| state.mature(self.now, through));
        decision.map_or_else(Vec::new, |decision| self.commit(LedgerId::Recipient(GROUP, number), decision))
    }

    /// Makes the Record of a decision durable, so to speak: books it, applies it to its owner,
    /// delivers it to the others.
    fn commit(&mut self, owner: LedgerId, decision: Decision) -> Vec<Event> {
        if decision.events.is_empty() {
            return Vec::new();
        }
        let ordinal = self.journal.iter().filter(|record| record.owner == owner).count() as u64 + 1;
        let record = decision.into_record(owner, ordinal, self.now);
        assert_eq!(Record::decode(&bytes(&record)).expect("what was written can be read"), record);
        self.books.post(&record).expect("every Record keeps the promises of the books");
        self.receivables.post(&record);
        self.receivables.check(&record, &self.books).expect("receivables sum to the books at every Record");
        self.apply(&record);
        self.assert_operations_say_what_the_books_say(&record);
        self.journal.push(record.clone());
        self.assert_states_agree_with_books();
        self.assert_matured_says_when_to_look_again(&record);
        record.events
    }

    fn apply(&mut self, record: &Record) {
        match record.owner {
            LedgerId::Recipient(_, number) => {
                self.recipients.entry(number).or_default().evolve(record);
                self.merchant.receive(record);
            }
            _ => {
                self.merchant.evolve(record);
                let changed = credits::changed(record);
                for ledger in record.other_ledgers() {
                    let LedgerId::Recipient(_, number) = ledger else { continue };
                    let state = self.recipients.entry(number).or_default();
                    let mut without = state.clone();
                    state.receive(record, ledger);
                    match changed.iter().find(|(changed, _)| *changed == ledger) {
                        Some((_, Some(credit))) => without.credit(*credit),
                        Some((_, None)) => continue,
                        None => {}
                    }
                    assert_eq!(*state, without, "the same with the Record and without it");
                }
            }
        }
    }

    /// The API agrees with the books.
    fn assert_states_agree_with_books(&self) {
        let balance = |ledger, account| self.books.balance(ledger, account);
        let merchant = LedgerId::Merchant(GROUP);
        let state = &self.merchant;
        assert_eq!(balance(merchant, Account::Pending), i128::from(state.pending().0), "merchant's Pending");
        assert_eq!(balance(merchant, Account::Available), i128::from(state.available().0), "merchant's Available");
        assert_eq!(balance(merchant, Account::Deficit), -i128::from(state.deficit().0), "merchant's Deficit");
        let held = i128::from(state.reserved_for_disputes().0);
        assert_eq!(balance(merchant, Account::ReservedDispute), held, "what is held for disputes");
        // Also what its rail refuses to send.
        let unsent = state.open_items().into_iter().filter_map(|item| match state.waiting_order(item.id)? {
            WaitingOrder::Repayment(repayment) if repayment.kind != RepaymentKind::Taken => Some(repayment.amount.0),
            _ => None,
        });
        let unsent = unsent.map(i128::from).sum::<i128>();
        assert_eq!(balance(LedgerId::Platform(GROUP), Account::PayersRefunds), -unsent, "what is owed to payers");
        let reserved = i128::from(state.reserved_cashout().0);
        assert_eq!(balance(merchant, Account::ReservedCashout), reserved, "merchant's Reserved:Cashout");
        let repays = state.available().is_positive() && state.deficit().is_positive();
        let was_paid_back = self.journal.last().is_some_and(|record| matches!(record.owner, LedgerId::Recipient(..)));
        assert!(
            !repays || was_paid_back && state.next_due() == Some(Timestamp(0)),
            "Available repays the Deficit first"
        );
        assert!(state.deficit() >= Centavos::ZERO, "a Deficit is a debt");
        let accounts = |ledger| self.books.ledgers().get(&ledger).cloned().unwrap_or_default();
        assert_eq!(state.ledger().balances(), accounts(merchant), "the merchant's accounts");
        assert!(state.is_sound());
        for (number, state) in &self.recipients {
            let ledger = LedgerId::Recipient(GROUP, *number);
            assert_eq!(state.ledger().balances(), accounts(ledger), "the accounts of {ledger:?}");
            assert!(state.is_sound());
            assert_eq!(balance(ledger, Account::Pending), i128::from(state.pending().0), "{ledger:?} Pending");
            assert_eq!(balance(ledger, Account::Available), i128::from(state.available().0), "{ledger:?} Available");
            let outside = [
                (Account::ReservedWithdrawal, state.reserved()),
                (Account::TransitWithdrawal, state.paid()),
                (Account::Clawback, -state.owed()),
            ];
            for (account, amount) in outside {
                assert_eq!(balance(ledger, account), i128::from(amount.0), "{ledger:?} {account:?}");
            }
            self.assert_splits_add_up(*number, state);
        }
    }

    /// The single splits, computed from history and from their place in the state, add up to the
    /// state's figures.
    fn assert_splits_add_up(&self, number: RecipientNumber, state: &RecipientState) {
        let ledger = LedgerId::Recipient(GROUP, number);
        let mut splits: BTreeMap<SplitKey, ExpectedSplit> = BTreeMap::new();
        let (mut consumed_by, mut lost_when_paid) = (BTreeMap::new(), Centavos::ZERO);
        for (sequence, record) in (1..).zip(&self.journal) {
            for event in &record.events {
                match event {
                    Event::CardCaptured { charge, terms, splits_due, .. } => {
                        for (index, split) in (0..).zip(&terms.splits).filter(|(_, split)| split.recipient == number) {
                            let due = Some((sequence, *splits_due));
                            let split_due = ExpectedSplit { place: None, amount: split.amount, due };
                            splits.insert(SplitKey { charge: *charge, index }, split_due);
                        }
                    }
                    Event::PixPaid { charge, terms, .. } => {
                        for (index, split) in (0..).zip(&terms.splits).filter(|(_, split)| split.recipient == number) {
                            let place = Some(Place::Paid { sequence });
                            let split_due = ExpectedSplit { place, amount: split.amount, due: None };
                            splits.insert(SplitKey { charge: *charge, index }, split_due);
                        }
                    }
                    Event::Matured { .. } if record.owner == ledger => {
                        for split in splits.values_mut() {
                            if let (None, Some((sequence, minute))) = (split.place, split.due)
                                && minute <= record.effective_at.minute()
                            {
                                split.place = Some(Place::Due { sequence, minute });
                            }
                        }
                    }
                    Event::SplitsAnticipated { splits: anticipated, .. } if record.owner == ledger => {
                        for part in anticipated {
                            let split = splits.get_mut(&part.split).expect("a captured split");
                            assert_eq!(split.amount, part.amount, "what was left of it");
                            split.place = Some(Place::Anticipated { ordinal: record.ordinal });
                            split.amount = part.amount - part.fee;
                        }
                    }
                    Event::ClawbackRecovered { debts, .. } if record.owner == ledger => {
                        for debt in debts.iter().filter(|debt| debt.from_pending.is_positive()) {
                            splits.get_mut(&debt.split).expect("a captured split").amount -= debt.from_pending;
                        }
                    }
                    Event::RefundFailed { charge, give_backs, .. } => {
                        for part in give_backs.iter().filter(|part| part.recipient == number) {
                            let split = splits.get_mut(&SplitKey { charge: *charge, index: part.index });
                            split.expect("a captured split").amount += part.from_pending;
                        }
                    }
                    Event::WithdrawalRequested { id, consumed, goodwill, .. } if record.owner == ledger => {
                        consumed_by.insert(*id, *consumed - *goodwill);
                    }
                    Event::WithdrawalPaid { id, .. } if record.owner == ledger => lost_when_paid += consumed_by[id],
                    Event::WithdrawalReturned { consumed, goodwill, .. } if record.owner == ledger => {
                        lost_when_paid -= *consumed - *goodwill;
                    }
                    _ => {}
                }
            }
        }
        let standing = state.standing();
        let held = |holder| {
            let is_held = |split: &&ExpectedSplit| split.place.is_some_and(|place| standing.holder(place) == holder);
            splits.values().filter(is_held).map(|split| split.amount).sum::<Centavos>()
        };
        let waiting: Centavos = splits.values().filter(|split| split.place.is_none()).map(|split| split.amount).sum();
        let asked = standing.withdrawal.as_ref();
        let lost_when_asked = asked.map_or(Centavos::ZERO, |asked| asked.consumed - asked.goodwill);
        let lost = standing.consumed - standing.goodwill;
        assert_eq!(waiting, state.pending(), "{number:?} pending splits");
        assert_eq!(held(Holder::Nobody), state.available() + lost, "{number:?} available splits");
        assert_eq!(held(Holder::Pending), state.reserved() + lost_when_asked, "{number:?} pinned splits");
        assert_eq!(held(Holder::Paid), state.paid() + lost_when_paid, "{number:?} paid splits");
    }

    /// The merchant's account statement and its books are two views of the same money, Record by
    /// Record and account by account.
    fn assert_operations_say_what_the_books_say(&mut self, record: &Record) {
        let mut operations: BTreeMap<StatementAccount, i128> = BTreeMap::new();
        let mut stood_in = 0;
        for operation in statement_lines(record) {
            assert!(!operation.amount.is_zero(), "{operation:?} moves nothing");
            *operations.entry(operation.account).or_default() += i128::from(operation.amount.0);
            let balance = self.statement.entry(operation.account).or_default();
            *balance += operation.amount;
            assert!(*balance >= Centavos::ZERO, "{operation:?} of Record {} draws what is not there", record.ordinal);
            if operation.kind == StatementLineKind::Deficit {
                stood_in += i128::from(operation.amount.0);
            }
        }
        let net = |accounts: &[Account]| -> i128 {
            let postings = record.entries_of(LedgerId::Merchant(GROUP)).flat_map(|entry| entry.postings());
            let of_these = postings.filter(|posting| accounts.contains(&posting.account));
            of_these.map(|posting| signed(posting.side, posting.amount)).sum()
        };
        for (account, posted) in [
            (StatementAccount::Pending, net(&[Account::Pending])),
            (StatementAccount::Available, net(&[Account::Available])),
            (StatementAccount::Reserved, net(&[Account::ReservedCashout, Account::ReservedDispute])),
        ] {
            let operations = operations.get(&account).copied().unwrap_or_default();
            assert_eq!(
                operations, posted,
                "{account:?} in the operations and in the books of Record {}",
                record.ordinal
            );
        }
        let written_off = record.events.iter().map(|event| match event {
            Event::DeficitWrittenOff { amount, .. } => i128::from(amount.0),
            _ => 0,
        });
        assert_eq!(
            stood_in,
            written_off.sum::<i128>() - net(&[Account::Deficit]),
            "the Deficit of Record {}",
            record.ordinal
        );
    }

    /// The schedule of a sleeping owner knows nothing but what its Record says.
    fn assert_matured_says_when_to_look_again(&self, record: &Record) {
        for event in &record.events {
            if let Event::Matured { next_due, .. } = event {
                let known = match record.owner {
                    LedgerId::Recipient(_, number) => {
                        let state = &self.recipients[&number];
                        [state.next_due(), state.returns_asked_at(self.now)].into_iter().flatten().min()
                    }
                    _ => self.merchant.next_due(),
                };
                assert_eq!(*next_due, known, "{:?} is to be looked at again", record.owner);
            }
        }
    }

    /// An owner needs attention exactly when its time has come.
    pub(crate) fn assert_attention_comes_in_time(&self) {
        let has_come = |due: Option<Timestamp>| due.is_some_and(|due| due <= self.now);
        let merchant = &self.merchant;
        let needed = merchant.mature(self.now, 0).is_some()
            || merchant.needing_attention(self.now).next().is_some()
            || merchant.cashouts_needing_attention(self.now).next().is_some()
            || merchant.repayments(self.now).next().is_some()
            || merchant.subscriptions_due(self.now).next().is_some();
        assert_eq!(has_come(merchant.next_due()), needed, "the merchant's attention");
        for (number, state) in &self.recipients {
            let needed = state.mature(self.now, 0).is_some() || state.to_send(self.now).is_some();
            assert_eq!(has_come(state.next_due()), needed, "{number:?}'s attention");
        }
    }

    pub(crate) fn id(&self, name: &str) -> ObjectId {
        *self.names.get(name).unwrap_or_else(|| panic!("{name} was not named before"))
    }

    fn number(&self, name: &str) -> RecipientNumber {
        self.ids.recipient_number(self.id(name))
    }

    fn known(&self, name: &str) -> Option<ObjectId> {
        self.names.get(name).copied()
    }

    fn name(&mut self, name: &str) -> ObjectId {
        let id = self.new_id();
        self.names.insert(name.to_owned(), id);
        id
    }

    fn new_id(&mut self) -> ObjectId {
        self.made += 1;
        self.ids.object(GROUP, self.now, self.made)
    }
}

/// Above zero for a debit.
fn signed(side: Side, amount: Centavos) -> i128 {
    let amount = i128::from(amount.0);
    if side == Side::Debit { amount } else { -amount }
}

/// A Record's encoding.
pub(crate) fn bytes(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

/// The word of an operator on an order: whether it happened, `yes` or `no`.
fn said(id: ObjectId, happened: &str, is_second: bool) -> SayRailWord {
    let word = RailWord { happened: happened == "yes", reference: "P-1".to_owned() };
    let (reason, asked_by) = ("on paper".to_owned(), is_second.then(|| "rui".to_owned()));
    let (bank, refund, returned, deferred) = (PayoutBank::Pix, None, None, None);
    SayRailWord { id, word, reason, asked_by, bank, refund, returned, deferred }
}

/// `29d+23h+5m+1s+7ms`, in milliseconds.
pub(crate) fn milliseconds(duration: &str) -> i64 {
    let part = |text: &str| {
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).expect("a duration has a unit");
        let count: i64 = text[..unit_at].parse().expect("a duration is a number and a unit");
        let unit = match &text[unit_at..] {
            "d" => 86_400_000,
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "ms" => 1,
            unit => panic!("no such unit: {unit}"),
        };
        count * unit
    };
    duration.split('+').map(part).sum()
}

/// The name by which the tables call a status.
pub(crate) fn status_name(status: RecipientStatus) -> String {
    format!("{status:?}").to_lowercase()
}

/// A plan as the tables write it.
fn plan(tag: &str, amount: &str, cycle: &str, total: &str, rest: &[&str]) -> PlanTerms {
    let number = |text: &str| text.parse().expect("a count is a number");
    let mut plan = PlanTerms {
        tag: tag.to_owned(),
        amount: centavos(amount),
        billing_cycle: match cycle {
            "DAILY" => BillingCycle::Daily,
            "WEEKLY" => BillingCycle::Weekly,
            "MONTHLY" => BillingCycle::Monthly,
            _ => panic!("no such cycle: {cycle}"),
        },
        total_cycles: number(total),
        grace_cycles: 0,
        initial_fee: None,
    };
    for word in rest {
        match word.split_once('=') {
            Some(("grace", count)) => plan.grace_cycles = number(count),
            Some(("fee", fee)) => {
                let (amount, cycles) = fee.split_once('x').expect("a fee reads amountxcycles");
                let description = "enrolment".to_owned();
                plan.initial_fee = Some(InitialFee { description, amount: centavos(amount), cycles: number(cycles) });
            }
            _ => panic!("no such word of a plan: {word}"),
        }
    }
    plan
}

fn centavos(text: &str) -> Centavos {
    Centavos(text.parse().expect("an amount is an integer"))
}

fn changed(mut settings: Settings, key: &str, value: &str) -> Settings {
    let rate = || Rate::percent(value.parse().expect("a rate is a decimal")).expect("a rate is a percentage");
    let (fees, options) = (&mut settings.fees, &mut settings.options);
    match (key, value) {
        ("split", _) => settings.split_enabled = value == "on",
        ("cashout", _) => settings.cashout_enabled = value == "on",
        ("closing", _) => settings.closing = value == "on",
        ("closed", _) => settings.closed = value == "on",
        ("split_guard", _) => options.split_guard_net = value == "net",
        ("mdr_base", _) => options.mdr_on_seller_gross = value == "seller_gross",
        ("refund_commission", _) => options.refund_commission = value == "on",
        ("own_keys", _) => options.own_keys_forbidden = value == "off",
        ("card_settlement_days", days) => options.card_settlement_days = days.parse().expect("days are a number"),
        ("mdr_1x", _) => fees.mdr_1x = rate(),
        ("mdr_2_6x", _) => fees.mdr_2_6x = rate(),
        ("mdr_7_12x", _) => fees.mdr_7_12x = rate(),
        ("margin", _) => fees.margin = rate(),
        ("pix", _) => fees.pix = rate(),
        ("antifraud", cents) => fees.antifraud = centavos(cents),
        ("cashout_fee", cents) => fees.cashout = centavos(cents),
        ("anticipation_d2", _) => fees.anticipation_d2 = rate(),
        _ => panic!("no such setting: {key}"),
    }
    settings
}
