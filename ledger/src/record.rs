//! Record: the facts of one command, and one balanced entry for every ledger that they touch. It is
//! in the journal whole or not at all.
//!
//! # Format 1
//! A format byte, then a CBOR array `[group + 1 or 0, recipient or 0, ordinal, effective_at,
//! events, entries, idempotency, operator, personal, api key]`. A later release may append items,
//! which this one skips, and may add events and fields (see [`crate::event`]); what an older binary
//! cannot understand it refuses by name. Checksums and the hash chain are the store's: they run
//! over these bytes.

use std::convert::Infallible;

use minicbor::{Decode, Decoder, Encode, Encoder};

use crate::facts::{self, Facets};
use crate::postings;
use crate::{
    Entry, Event, Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber, Sealed, SealedFor, Timestamp,
};

/// The format that this release writes, and the newest that it reads.
pub const FORMAT: u8 = 1;

/// How many items the array of a Record has.
const ITEMS: u64 = 10;

/// Lifetime of an idempotency key, milliseconds: within it, no second Record of a journal has
/// the same one.
pub const IDEMPOTENCY_KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// Identity of a request: digests of its key within account and route, and of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Idempotency {
    /// Keyed digest of account, route and the caller's key.
    #[n(0)]
    pub key: Fingerprint,
    /// Keyed digest of the body, without a card's security code.
    #[n(1)]
    pub body: Fingerprint,
}

/// The decided facts and entries of one command.
///
/// ```
/// use ledger::event::Event;
/// use ledger::id::{GroupNumber, LedgerId};
/// use ledger::money::Centavos;
/// use ledger::record::{Decision, Record};
/// use ledger::time::Timestamp;
///
/// // The entries follow from the facts: a merchant's Available pays what it owes.
/// let decided = Decision::of(Event::DeficitRecovered { amount: Centavos(250) });
/// let merchant = LedgerId::Merchant(GroupNumber(1));
/// let record = decided.into_record(merchant, 1, Timestamp(1_795_000_000_000));
/// assert_eq!(record.entries_of(merchant).count(), 1);
///
/// let mut bytes = Vec::new();
/// record.encode(&mut bytes);
/// assert_eq!(Record::decode(&bytes).unwrap(), record);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The owner that decided.
    pub owner: LedgerId,
    /// The owner's Records are counted from 1, without gaps: a lost one is noticed.
    pub ordinal: u64,
    /// When it took effect.
    pub effective_at: Timestamp,
    /// The request that it answers.
    pub idempotency: Option<Idempotency>,
    /// The operator who asked for it, for the audit trail.
    pub operator: Option<String>,
    /// The API key that asked for it.
    pub api_key: Option<ObjectId>,
    /// What the institution says whose act it books: a capture, a payment, a payout or a return.
    pub rail: Option<RailStamp>,
    /// The personal data of its events.
    pub personal: Option<Sealed>,
    /// The facts.
    pub events: Vec<Event>,
    /// The entries.
    pub entries: Vec<Entry>,
}

/// Why bytes are no Record that this release can read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Written by a later release.
    #[error(
        "a Record of format {0}, but this release reads up to format {FORMAT}: use the release that wrote it, or a later one"
    )]
    NewerFormat(u8),
    /// Not what the format says.
    #[error("a Record that cannot be read: {0}")]
    Malformed(#[from] minicbor::decode::Error),
}

/// Memory to write into. CBOR comes in pieces of one to nine bytes: in line, each is a store or
/// two.
struct Memory<'a>(&'a mut Vec<u8>);

impl minicbor::encode::Write for Memory<'_> {
    type Error = Infallible;

    #[inline(always)]
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        match bytes {
            [byte] => self.0.push(*byte),
            bytes => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }
}

/// What an institution says of an act of its own, in its own words.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RailStamp {
    /// Its own id of the act: an NSU of an acquirer, an end-to-end id, the id of a transfer or of a
    /// return.
    #[n(0)]
    pub id: String,
    /// When it happened there. The Record is booked later, when we hear of it.
    #[n(1)]
    pub at: Timestamp,
    /// Of a capture, the issuer's authorization code, where the acquirer gives it.
    #[n(2)]
    pub authorization: Option<String>,
    /// Of a capture, its number at the acquirer (NSU), where that is not the id.
    #[n(3)]
    pub nsu: Option<String>,
}

impl RailStamp {
    /// An act of which nothing else is said.
    pub fn new(id: String, at: Timestamp) -> Self {
        Self { id, at, authorization: None, nsu: None }
    }
}

/// The requester of a command, whom its Record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requester {
    /// An operator, by the name that was configured with the token.
    Operator(String),
    /// A merchant, by the id of the API key.
    ApiKey(ObjectId),
    /// Nobody: an institution did it.
    Rail(RailStamp),
}

/// Decision of a command, before its owner numbers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The facts.
    pub events: Vec<Event>,
    /// The personal data of the events.
    pub personal: Option<Sealed>,
}

impl Decision {
    /// One fact without personal data.
    pub fn of(event: Event) -> Self {
        Self { events: vec![event], personal: None }
    }

    /// The Record of this decision, with the entries that its events make.
    pub fn into_record(self, owner: LedgerId, ordinal: u64, effective_at: Timestamp) -> Record {
        let entries = postings::entries(owner, &self.events);
        let Self { events, personal } = self;
        let (idempotency, operator, api_key, rail) = (None, None, None, None);
        Record { owner, ordinal, effective_at, idempotency, operator, api_key, rail, personal, events, entries }
    }
}

impl Record {
    /// When its entries take effect: when the institution acted, and an operator may date an entry
    /// back. Never after it was booked.
    pub fn takes_effect_at(&self) -> Timestamp {
        let dated = self.events.iter().find_map(|event| match event {
            Event::HouseEntryApproved { terms, .. } => terms.effective_day,
            Event::WithdrawalReturned { entry: Some(entry), .. } => entry.effective_day,
            _ => None,
        });
        let of_rail = self.rail.as_ref().map(|rail| rail.at);
        dated.map(Timestamp::end_of_day).or(of_rail).map_or(self.effective_at, |at| at.min(self.effective_at))
    }

    /// True for a Record of the audit trail: an operator's request, a change of a bank account or
    /// of an API key, or a withdrawal that the merchant took back.
    pub fn is_audited(&self) -> bool {
        let of_merchant = |event: &Event| {
            matches!(
                event,
                Event::BankAccountChanged { .. }
                    | Event::WithdrawalRejected { by_merchant: true, .. }
                    | Event::ApiKeyCreated { .. }
                    | Event::ApiKeyChanged { .. }
                    | Event::ApiKeyRevoked { .. }
            )
        };
        self.operator.is_some() || self.events.iter().any(of_merchant)
    }

    /// Purpose of its personal part; `None` if it has none.
    pub fn personal_for(&self) -> Option<SealedFor> {
        let mut sealed = SealedPart { group: self.owner.group()?, of: None };
        self.events.iter().for_each(|event| facts::say(event, &mut sealed));
        sealed.of
    }

    /// True when an operator or a merchant asked for it; false for a Record of the service itself.
    pub fn is_requested(&self) -> bool {
        self.operator.is_some() || self.api_key.is_some()
    }

    /// Notes who asked for it.
    pub fn requested_by(&mut self, requester: Option<Requester>) {
        match requester {
            Some(Requester::Operator(name)) => self.operator = Some(name),
            Some(Requester::ApiKey(id)) => self.api_key = Some(id),
            Some(Requester::Rail(stamp)) => self.rail = Some(stamp),
            None => {}
        }
    }

    /// The entries of one ledger.
    pub fn entries_of(&self, ledger: LedgerId) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.ledger() == ledger)
    }

    /// The ledgers that this Record concerns besides its owner's: those with an entry, and those
    /// that only get the Record (an unpaid PIX split, a cancelled one). Each once, in order.
    pub fn other_ledgers(&self) -> Vec<LedgerId> {
        let mut ledgers = Vec::new();
        facts::on_others(self.owner, &self.events, |ledger, _| ledgers.push(ledger));
        ledgers.sort_unstable();
        ledgers.dedup();
        ledgers
    }

    /// Appends the encoding of this Record.
    pub fn encode(&self, into: &mut Vec<u8>) {
        into.push(FORMAT);
        let written: Result<(), minicbor::encode::Error<Infallible>> = self.write(&mut Encoder::new(Memory(into)));
        written.expect("writing into memory cannot fail");
    }

    /// The keys under which it is found: the key of the request that it answers, and the unique ids
    /// that it uses up for ever.
    pub fn keys(&self) -> impl Iterator<Item = Fingerprint> {
        let mut used_up = UsedUp(Vec::new());
        self.events.iter().for_each(|event| facts::say(event, &mut used_up));
        self.idempotency.map(|idempotency| idempotency.key).into_iter().chain(used_up.0)
    }

    /// Reads a Record.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        match bytes.split_first() {
            Some((&FORMAT, body)) => Ok(Self::read(&mut Decoder::new(body))?),
            Some((&format, _)) if format > FORMAT => Err(DecodeError::NewerFormat(format)),
            _ => Err(DecodeError::Malformed(minicbor::decode::Error::message("no format byte"))),
        }
    }

    fn write<W: minicbor::encode::Write>(&self, e: &mut Encoder<W>) -> Result<(), minicbor::encode::Error<W::Error>> {
        let (group, recipient) = match self.owner {
            LedgerId::System => (0, 0),
            LedgerId::Merchant(group) | LedgerId::Platform(group) => (u64::from(group.0) + 1, 0),
            LedgerId::Recipient(group, number) => (u64::from(group.0) + 1, number.0),
        };
        e.array(if self.rail.is_some() { ITEMS + 1 } else { ITEMS })?;
        e.u64(group)?.u32(recipient)?.u64(self.ordinal)?.i64(self.effective_at.0)?;
        e.encode(&self.events)?;
        e.array(self.entries.len() as u64)?;
        for entry in &self.entries {
            entry.encode(e)?;
        }
        e.encode(self.idempotency)?.encode(&self.operator)?.encode(&self.personal)?.encode(self.api_key)?;
        if let Some(rail) = &self.rail {
            e.encode(rail)?;
        }
        Ok(())
    }

    fn read(d: &mut Decoder<'_>) -> Result<Self, minicbor::decode::Error> {
        let items = d.array()?.unwrap_or_default();
        if items < ITEMS {
            return Err(minicbor::decode::Error::message("a Record has at least ten items"));
        }
        let owner = match (d.u64()?, d.u32()?) {
            (0, _) => LedgerId::System,
            (group, number) => {
                let group =
                    u32::try_from(group - 1).map_err(|_| minicbor::decode::Error::message("a group has 32 bits"))?;
                match number {
                    0 => LedgerId::Merchant(GroupNumber(group)),
                    number => LedgerId::Recipient(GroupNumber(group), RecipientNumber(number)),
                }
            }
        };
        let (ordinal, effective_at) = (d.u64()?, Timestamp(d.i64()?));
        let events = d.decode()?;
        let entry_count = d.array()?.unwrap_or_default();
        let mut entries = Vec::with_capacity(entry_count.min(64) as usize);
        for _ in 0..entry_count {
            entries.push(Entry::decode(d, owner.group())?);
        }
        let (idempotency, operator, personal) = (d.decode()?, d.decode()?, d.decode()?);
        let api_key = d.decode()?;
        let rail = if items > ITEMS { d.decode()? } else { None };
        for _ in ITEMS + 1..items {
            d.skip()?;
        }
        Ok(Self { owner, ordinal, effective_at, idempotency, operator, api_key, rail, personal, events, entries })
    }
}

/// Takes the owner of the personal data.
struct SealedPart {
    group: GroupNumber,
    of: Option<SealedFor>,
}

impl Facets for SealedPart {
    fn personal(&mut self, of: impl FnOnce(GroupNumber) -> SealedFor) {
        self.of.get_or_insert_with(|| of(self.group));
    }
}

/// Takes the keys that are used up for ever.
struct UsedUp(Vec<Fingerprint>);

impl Facets for UsedUp {
    fn uses_up(&mut self, key: Fingerprint) {
        self.0.push(key);
    }
}
