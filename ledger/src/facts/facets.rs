//! Visitor over the facets of a fact: entries, statement lines, webhook events, objects, audit row
//! and source.
//!
//! The file of a noun passes all facets of a fact to a [`Facets`], in one function. A reader of one
//! facet implements that facet's method. The other methods do nothing, and their closures are not
//! called.

use crate::entry::Draft;
use crate::facts::statement_line::{StatementAccount, StatementLine, StatementLineKind};
use crate::facts::webhook_event::{AvailableSplits, WebhookEvent, WebhookEventKind, WebhookObject};
use crate::{
    Account, Centavos, Entry, Fingerprint, GroupNumber, LedgerId, Minute, ObjectId, RecipientNumber, SealedFor,
    Timestamp,
};

/// Takes the facets of facts. By default every facet is left out.
pub(crate) trait Facets {
    /// Entries that the fact posts.
    fn entries(&mut self, _post: impl FnOnce(&mut Books)) {}

    /// Lines of the merchant's account statement.
    fn lines(&mut self, _write: impl FnOnce(&mut Lines<'_>)) {}

    /// Webhook events, in the order of delivery.
    fn webhook_events(&mut self, _write: impl FnOnce(&mut Outbox<'_>)) {}

    /// An object that the fact is about: its Record is found under this id.
    fn about(&mut self, _id: ObjectId) {}

    /// Objects that the fact is about, some of them perhaps more than once.
    fn about_each(&mut self, _ids: impl Iterator<Item = ObjectId>) {}

    /// The row of the audit trail, for facts that operators ask for and for changes of where money
    /// goes.
    fn audited(&mut self, _row: impl FnOnce() -> AuditedFact) {}

    /// Effects on other ledgers of the group: that of the recipient with the number, or that of the
    /// merchant where there is no number.
    fn others(&mut self, _effects: impl Iterator<Item = (Option<RecipientNumber>, Effect)>) {}

    /// The owner of the personal data that is sealed in the Record; the closure takes the group.
    fn personal(&mut self, _of: impl FnOnce(GroupNumber) -> SealedFor) {}

    /// A key that the fact uses up for ever.
    fn uses_up(&mut self, _key: Fingerprint) {}

    /// The outside ids of the objects that its entries are about, by the names that exports show.
    fn objects(&mut self, _ids: impl FnOnce() -> Vec<(&'static str, String)>) {}

    /// The name that exports give to the institution's own id of the act; the Record has the id.
    /// For facts that do not have the id themselves.
    fn act(&mut self, _name: &'static str) {}

    /// One webhook event.
    fn emit(&mut self, kind: WebhookEventKind, about: WebhookObject) {
        self.webhook_events(|outbox| outbox.emit(kind, about));
    }
}

/// Effect of a fact on the ledger of another owner of its group.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// Nothing: the owner only gets the Record, since its statement shows the fact.
    RecordOnly,
    /// It credits an amount, at a due minute or at once, and changes nothing else.
    Credited { due: Option<Minute>, amount: Centavos },
    /// It changes the ledger in another way.
    Changed,
}

/// Row of the audit trail for a fact, in the words of the operators' API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedFact {
    /// The action: `create`, `change`, `approve`, …
    pub action: &'static str,
    /// The kind of thing to which it was done: `merchant`, `recipient`, `refund`, …
    pub kind: &'static str,
    /// The thing to which it was done.
    pub subject: AuditSubject,
    /// The reason, where one was given.
    pub notes: Option<String>,
}

/// The thing to which an audited fact was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditSubject {
    /// Something with an id of its own.
    Object(ObjectId),
    /// The merchant of the Record's group.
    Merchant,
    /// A recipient of the Record's group.
    Recipient(RecipientNumber),
    /// The sandbox clock.
    Clock,
    /// A month, which the notes name.
    Period,
    /// A report, which has no id.
    Report,
    /// The company's chart of accounts.
    Chart,
    /// A settlement file, whose batches the notes name.
    File,
}

impl AuditedFact {
    /// A row about something with an id of its own, without a reason.
    pub(crate) fn of(action: &'static str, kind: &'static str, id: ObjectId) -> Self {
        Self { action, kind, subject: AuditSubject::Object(id), notes: None }
    }

    /// A row with a reason.
    pub(crate) fn because(self, notes: &str) -> Self {
        Self { notes: Some(notes.to_owned()), ..self }
    }
}

/// The books of a group, to which facts post entries.
pub(crate) struct Books {
    /// The ledger of the actor that decided the facts.
    pub(crate) owner: LedgerId,
    /// Its group; that of no merchant for the house.
    pub(crate) group: GroupNumber,
    /// Entries so far.
    pub(crate) entries: Vec<Entry>,
}

impl Books {
    pub(crate) fn merchant(&self, postings: usize) -> Draft {
        Draft::of(LedgerId::Merchant(self.group), postings)
    }

    pub(crate) fn recipient(&self, number: RecipientNumber, postings: usize) -> Draft {
        Draft::of(LedgerId::Recipient(self.group, number), postings)
    }

    pub(crate) fn platform(&self, postings: usize) -> Draft {
        Draft::of(LedgerId::Platform(self.group), postings)
    }

    pub(crate) fn house(&self, postings: usize) -> Draft {
        Draft::of(LedgerId::System, postings)
    }

    /// The number of the recipient that decided the facts; `None` if a merchant did.
    pub(crate) fn owning_recipient(&self) -> Option<RecipientNumber> {
        match self.owner {
            LedgerId::Recipient(_, number) => Some(number),
            LedgerId::Merchant(_) | LedgerId::Platform(_) | LedgerId::System => None,
        }
    }

    /// Adds an entry; one that moves nothing is left out.
    pub(crate) fn post(&mut self, draft: Draft) {
        self.entries.extend(draft.finish());
    }

    /// Moves money between two claims of an owner on the platform; the platform's shard mirrors
    /// both.
    pub(crate) fn between_claims(&mut self, owner: LedgerId, raised: Account, lowered: Account, amount: Centavos) {
        let mut column = Draft::of(owner, 2);
        column.debit(raised, amount).credit(lowered, amount);
        self.post(column);
        if let (Some((shard, raised)), Some((_, lowered))) = (raised.mirror(owner), lowered.mirror(owner)) {
            let mut platform = Draft::of(shard, 2);
            platform.debit(lowered, amount).credit(raised, amount);
            self.post(platform);
        }
    }
}

/// The merchant's account statement, to which facts add lines.
pub(crate) struct Lines<'a> {
    /// When the Record took effect.
    pub(crate) at: Timestamp,
    pub(crate) sink: &'a mut dyn FnMut(StatementLine),
}

impl Lines<'_> {
    /// Adds a line; one that moves nothing is left out.
    pub(crate) fn add(&mut self, line: StatementLine) {
        if !line.amount.is_zero() {
            (self.sink)(line);
        }
    }

    /// Adds a line that comes from an object, with money that is available from `available_at` on.
    pub(crate) fn moved(
        &mut self,
        kind: StatementLineKind,
        account: StatementAccount,
        amount: Centavos,
        source: ObjectId,
        available_at: Timestamp,
    ) {
        self.add(StatementLine { kind, amount, account, source: Some(source), available_at: Some(available_at) });
    }

    /// Adds a line that comes from an object, with money that is available now.
    pub(crate) fn now(
        &mut self,
        kind: StatementLineKind,
        account: StatementAccount,
        amount: Centavos,
        source: ObjectId,
    ) {
        self.moved(kind, account, amount, source, self.at);
    }
}

/// The outbox, to which facts add webhook events.
pub(crate) struct Outbox<'a> {
    /// The ledger of the actor that decided the facts.
    pub(crate) owner: LedgerId,
    /// When the Record took effect.
    pub(crate) at: Timestamp,
    /// What debts took of the Available that the Record raised, centavos.
    pub(crate) recovered: Centavos,
    pub(crate) sink: &'a mut dyn FnMut(WebhookEvent),
}

impl Outbox<'_> {
    pub(crate) fn emit(&mut self, kind: WebhookEventKind, about: WebhookObject) {
        (self.sink)(WebhookEvent { kind, about });
    }

    /// Splits of a recipient became available.
    pub(crate) fn available(
        &mut self,
        number: RecipientNumber,
        count: Option<u64>,
        amount: Centavos,
        charge: Option<ObjectId>,
    ) {
        let recovered = self.recovered.min(amount);
        let splits = AvailableSplits { count, amount: amount - recovered, recovered, charge, at: self.at };
        self.emit(WebhookEventKind::SplitAvailable, WebhookObject::Splits(number, splits));
    }
}

/// The source of an entry that comes from an object with a UUID.
pub(crate) fn uuid(name: &'static str, id: ObjectId) -> (&'static str, String) {
    (name, id.uuid().to_string())
}
