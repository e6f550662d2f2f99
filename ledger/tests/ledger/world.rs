//! One account group with its books, driven by lines of text. Every Record is checked as it is made: the books keep their
//! promises, the states agree with the books, and the bytes lead back to the Record.

use std::collections::BTreeMap;

use ledger::account::Account;
use ledger::entry::Side;
use ledger::event::{CardBrand, CardFace, CardRefusal, Event, Terms};
use ledger::fees::{PaymentMethod, Settings};
use ledger::id::{Fingerprint, GroupNumber, IdKey, LedgerId, ObjectId, RecipientNumber};
use ledger::invariants::GroupBooks;
use ledger::merchant::{MerchantCommand, MerchantState, Recipient, RecipientStatus, SplitOrder};
use ledger::money::{Centavos, Rate};
use ledger::operations::{OperationAccount, OperationKind, operations};
use ledger::personal::Sealed;
use ledger::recipient::RecipientState;
use ledger::record::{Decision, Record};
use ledger::rejection::Rejection;
use ledger::time::Timestamp;

/// 2026-01-01T12:00:30.500Z: every world begins half a minute into a minute, so that rounding down shows.
pub(crate) const START: Timestamp = Timestamp(1_767_268_830_500);

const GROUP: GroupNumber = GroupNumber(1);

/// The group at one moment, and all that led to it.
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) merchant: MerchantState,
    pub(crate) recipients: BTreeMap<RecipientNumber, RecipientState>,
    pub(crate) books: GroupBooks,
    pub(crate) journal: Vec<Record>,
    settings: Settings,
    ids: IdKey,
    names: BTreeMap<String, ObjectId>,
    made: u64,
    /// What stands on the merchant's accounts after the last line of its account statement.
    statement: BTreeMap<OperationAccount, Centavos>,
}

impl World {
    /// A merchant with every default, configured for split, and recipients in every status: ana, bia and caio are active, dora
    /// is a draft, paulo is pending, rita is rejected. `nobody`, `twin` (ana's number, another id) and `foreign` (another
    /// group's) are ids that the merchant never gave out.
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
        for unknown_charge in 0..6 {
            names.insert(format!("c{unknown_charge}"), ids.object(GROUP, START, 1 << 40 | unknown_charge));
        }
        Self {
            now: START,
            merchant: MerchantState::default(),
            recipients: BTreeMap::new(),
            books: GroupBooks::default(),
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
            _ => {
                let command = self.command(verb, rest);
                self.decide(command)
            }
        }
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

    /// The ledger that the tables call `merchant`, `platform`, or by a recipient's name.
    pub(crate) fn ledger(&self, name: &str) -> LedgerId {
        match name {
            "merchant" => LedgerId::Merchant(GROUP),
            "platform" => LedgerId::Platform(GROUP),
            name => LedgerId::Recipient(GROUP, self.number(name)),
        }
    }

    fn command(&mut self, verb: &str, rest: &[&str]) -> MerchantCommand {
        let sealed = |text: &str| Sealed { month: 672, bytes: text.as_bytes().to_vec() };
        let refusal = CardRefusal::NotAuthorized;
        match (verb, rest) {
            ("open", []) => {
                MerchantCommand::Open { id: self.new_id(), settings: self.settings, profile: sealed("profile") }
            }
            ("set", [key, value]) => {
                self.settings = changed(self.settings, key, value);
                MerchantCommand::Change { settings: self.settings, profile: None }
            }
            ("profile", [text]) => MerchantCommand::Change { settings: self.settings, profile: Some(sealed(text)) },
            ("make-key", [name]) => MerchantCommand::CreateApiKey {
                id: self.name(name),
                digest: [7; 32],
                webhook_url: None,
                webhook_secret: b"secret".to_vec(),
            },
            ("revoke-key", [name]) => MerchantCommand::RevokeApiKey { id: self.id(name) },
            ("point-key", [name, url]) => MerchantCommand::ChangeApiKey {
                id: self.id(name),
                webhook_url: (*url != "nowhere").then(|| (*url).to_owned()),
            },
            ("rotate-key", [name, secret]) => {
                MerchantCommand::RotateWebhookSecret { id: self.id(name), webhook_secret: secret.as_bytes().to_vec() }
            }
            ("register", [name]) => self.registration_of(name, sealed(name)),
            ("register", [name, data]) => self.registration_of(name, sealed(data)),
            ("submit", [name]) => MerchantCommand::SubmitRecipient { id: self.id(name) },
            ("approve", [name]) => MerchantCommand::ApproveRecipient { id: self.id(name) },
            ("reject", [name]) => {
                MerchantCommand::RejectRecipient { id: self.id(name), notes: "unreadable document".to_owned() }
            }
            ("open-card" | "open-debit", [name, amount, installments, splits @ ..]) => MerchantCommand::OpenCard {
                charge: self.name(name),
                amount: centavos(amount),
                method: if verb == "open-card" { PaymentMethod::CreditCard } else { PaymentMethod::DebitCard },
                installments: installments.trim_end_matches('x').parse().expect("installments read 3x"),
                splits: self.splits(splits),
                card: CardFace { bin: 411_111, last4: 1111, brand: CardBrand::Visa },
                payer: sealed("payer"),
            },
            ("open-pix", [name, amount, splits @ ..]) => MerchantCommand::OpenPix {
                charge: self.name(name),
                amount: centavos(amount),
                splits: self.splits(splits),
                expires_at: self.now.plus_days(1),
                payer: sealed("payer"),
            },
            ("capture", [name]) => {
                let charge = self.id(name);
                let amount = self.merchant.open_charges().get(&charge).map_or(Centavos::ZERO, |open| open.terms.amount);
                MerchantCommand::CaptureCard { charge, acquirer_mdr: Rate::basis_points(299).of(amount) }
            }
            ("capture", [name, kept]) => {
                MerchantCommand::CaptureCard { charge: self.id(name), acquirer_mdr: centavos(kept) }
            }
            ("refuse", [name]) => MerchantCommand::RefuseCard { charge: self.id(name), refusal },
            ("silent", [name]) => MerchantCommand::LeaveUnanswered { charge: self.id(name) },
            ("pay", [name]) => MerchantCommand::ConfirmPix {
                charge: self.id(name),
                end_to_end_id: "E0000000020260101120000000000001".to_owned(),
            },
            ("cancel", [name]) => MerchantCommand::CancelPix { charge: self.id(name) },
            _ => panic!("no such step: {verb} {rest:?}"),
        }
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

    fn splits(&self, words: &[&str]) -> Vec<SplitOrder> {
        let parts = words.iter().map(|word| word.split_once('=').expect("a split reads name=amount"));
        parts.map(|(name, amount)| SplitOrder { recipient: self.id(name), amount: centavos(amount) }).collect()
    }

    /// As its actor would: what is due comes before the decision; the decision changes nothing; its Record does.
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

    /// Makes the Record of a decision durable, so to speak: books it, applies it to its owner, delivers it to the others.
    fn commit(&mut self, owner: LedgerId, decision: Decision) -> Vec<Event> {
        if decision.events.is_empty() {
            return Vec::new();
        }
        let ordinal = self.journal.iter().filter(|record| record.owner == owner).count() as u64 + 1;
        let record = decision.into_record(owner, ordinal, self.now);
        assert_eq!(Record::decode(&bytes(&record)).expect("what was written can be read"), record);
        self.books.post(&record).expect("every Record keeps the promises of the books");
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
                for ledger in record.told() {
                    let LedgerId::Recipient(_, number) = ledger else { continue };
                    self.recipients.entry(number).or_default().receive(record, ledger);
                }
            }
        }
    }

    /// What the API says is what the books say.
    fn assert_states_agree_with_books(&self) {
        let balance = |ledger, account| self.books.balance(ledger, account);
        let merchant = LedgerId::Merchant(GROUP);
        let state = &self.merchant;
        assert_eq!(balance(merchant, Account::Pending), i128::from(state.pending().0), "merchant's Pending");
        assert_eq!(balance(merchant, Account::Available), i128::from(state.available().0), "merchant's Available");
        assert_eq!(balance(merchant, Account::Deficit), -i128::from(state.deficit().0), "merchant's Deficit");
        assert!(state.available().is_zero() || state.deficit().is_zero(), "Available repays the Deficit first");
        assert!(state.deficit() >= Centavos::ZERO, "a Deficit is a debt");
        for (number, state) in &self.recipients {
            let ledger = LedgerId::Recipient(GROUP, *number);
            assert_eq!(balance(ledger, Account::Pending), i128::from(state.pending().0), "{ledger:?} Pending");
            assert_eq!(balance(ledger, Account::Available), i128::from(state.available().0), "{ledger:?} Available");
        }
    }

    /// The merchant's account statement and its books are two views of the same money, Record by Record and account by account.
    fn assert_operations_say_what_the_books_say(&mut self, record: &Record) {
        let mut told: BTreeMap<OperationAccount, i128> = BTreeMap::new();
        let mut stood_in = 0;
        for operation in operations(record) {
            assert!(!operation.amount.is_zero(), "{operation:?} moves nothing");
            *told.entry(operation.account).or_default() += i128::from(operation.amount.0);
            let balance = self.statement.entry(operation.account).or_default();
            *balance += operation.amount;
            assert!(*balance >= Centavos::ZERO, "{operation:?} of Record {} draws what is not there", record.ordinal);
            if operation.kind == OperationKind::Deficit {
                stood_in += i128::from(operation.amount.0);
            }
        }
        let net = |accounts: &[Account]| -> i128 {
            let postings = record.entries_of(LedgerId::Merchant(GROUP)).flat_map(|entry| entry.postings());
            let of_these = postings.filter(|posting| accounts.contains(&posting.account));
            of_these.map(|posting| signed(posting.side, posting.amount)).sum()
        };
        for (account, posted) in [
            (OperationAccount::Pending, net(&[Account::Pending])),
            (OperationAccount::Available, net(&[Account::Available])),
            (OperationAccount::Reserved, net(&[Account::ReservedCashout, Account::ReservedDispute])),
        ] {
            let told = told.get(&account).copied().unwrap_or_default();
            assert_eq!(told, posted, "{account:?} in the operations and in the books of Record {}", record.ordinal);
        }
        assert_eq!(stood_in, -net(&[Account::Deficit]), "the Deficit of Record {}", record.ordinal);
    }

    /// The schedule of a sleeping owner knows nothing but what its Record says.
    fn assert_matured_says_when_to_look_again(&self, record: &Record) {
        for event in &record.events {
            if let Event::Matured { next_due, .. } = event {
                let known = match record.owner {
                    LedgerId::Recipient(_, number) => self.recipients[&number].next_due(),
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
        let needed = merchant.mature(self.now, 0).is_some() || merchant.needing_attention(self.now).next().is_some();
        assert_eq!(has_come(merchant.next_due()), needed, "the merchant's attention");
        for (number, state) in &self.recipients {
            assert_eq!(has_come(state.next_due()), state.mature(self.now, 0).is_some(), "{number:?}'s attention");
        }
    }

    fn id(&self, name: &str) -> ObjectId {
        *self.names.get(name).unwrap_or_else(|| panic!("{name} was not named before"))
    }

    fn number(&self, name: &str) -> RecipientNumber {
        self.ids.recipient_number(self.id(name))
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

fn centavos(text: &str) -> Centavos {
    Centavos(text.parse().expect("an amount is an integer"))
}

fn changed(mut settings: Settings, key: &str, value: &str) -> Settings {
    let rate = || Rate::percent(value.parse().expect("a rate is a decimal")).expect("a rate is a percentage");
    let (fees, options) = (&mut settings.fees, &mut settings.options);
    match (key, value) {
        ("split", _) => settings.split_enabled = value == "on",
        ("split_guard", _) => options.split_guard_net = value == "net",
        ("mdr_base", _) => options.mdr_on_seller_gross = value == "seller_gross",
        ("card_settlement_days", days) => options.card_settlement_days = days.parse().expect("days are a number"),
        ("mdr_1x", _) => fees.mdr_1x = rate(),
        ("mdr_2_6x", _) => fees.mdr_2_6x = rate(),
        ("mdr_7_12x", _) => fees.mdr_7_12x = rate(),
        ("margin", _) => fees.margin = rate(),
        ("pix", _) => fees.pix = rate(),
        ("antifraud", cents) => fees.antifraud = centavos(cents),
        _ => panic!("no such setting: {key}"),
    }
    settings
}
