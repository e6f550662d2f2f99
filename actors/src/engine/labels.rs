//! Labels: a reference that only one thing of its kind may have in an account, charges by their
//! reference, and changes of metadata and of fiscal documents. No rule of money reads them.

use std::slice;

use ledger::fiscal_key::FiscalKey;
use ledger::merchant::{ChargeChange, UniqueReference};
use ledger::personal::{Labels, Metadata};
use ledger::recurrence::StoredCard;
use ledger::{
    Event, Fingerprint, GroupNumber, LedgerId, MerchantCommand, ObjectId, Payer, RecipientNumber, Record, Sealed,
    SealedFor,
};

use super::outcome::CommandContext;
use super::search::with_all;
use super::{Engine, Result};
use crate::resident::{Outcome, UniqueLookup};
use derived::index::FoundKind;
use derived::personal_index::PersonalValue;
use derived::read_model::SubscriptionRow;
use derived::records::{LoadError, booked_records, may_wait};
use store::Sequence;

/// Kind of what has a unique reference. An order and its refund may have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceOf {
    /// A charge.
    Charge,
    /// A cashout.
    Cashout,
    /// A refund.
    Refund,
    /// A sub-recipient.
    Recipient,
    /// A subscription.
    Subscription,
}

/// A unique reference of a request, looked up.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceLookup {
    /// What has the reference, and whether it is of a request with the same body; `None` if the
    /// reference is new.
    pub used_by: Option<(ObjectId, bool)>,
    lookup: UniqueLookup,
    body: Fingerprint,
}

/// A change of what a charge, cashout, refund or subscription has of its caller.
#[derive(Clone, Debug)]
pub enum NewChargeChange {
    /// Replace the metadata as a whole.
    Metadata(Metadata),
    /// Link a fiscal document.
    LinkDocument {
        /// Its access key.
        key: FiscalKey,
        /// The recipient whose document it is; `None` for the merchant's.
        of: Option<RecipientNumber>,
        /// Whether the issuer is the merchant or a recipient of the charge.
        issuer_known: bool,
    },
    /// Take back the link of a fiscal document.
    UnlinkDocument(Fingerprint),
}

impl Engine {
    /// Looks up a reference that one thing of a kind has in an account, for ever. `body` is a keyed
    /// digest of the request.
    pub fn look_up_reference(
        &self,
        group: GroupNumber,
        (of, reference): (ReferenceOf, &str),
        body: Fingerprint,
    ) -> Result<ReferenceLookup> {
        let purpose = match of {
            ReferenceOf::Charge => "reference",
            ReferenceOf::Cashout => "reference of a cashout",
            ReferenceOf::Refund => "reference of a refund",
            ReferenceOf::Recipient => "reference of a recipient",
            ReferenceOf::Subscription => "reference of a subscription",
        };
        let key = self.keyring.fingerprint(purpose, &[&group.0.to_be_bytes(), reference.as_bytes()]);
        let shard = self.shard(group);
        let found = shard.read_model().find_unique(LedgerId::Merchant(group), key)?;
        let lookup = UniqueLookup { key, looked_up_through: found.looked_up_through };
        let reserved = |record: &Record| {
            record.events.iter().find_map(|event| match event {
                Event::ReferenceReserved { id, key: known, body: first } if *known == key => {
                    Some((*id, *first == body))
                }
                _ => None,
            })
        };
        let used_by = match found.sequence {
            Some(sequence) => reserved(&shard.record(sequence)?),
            None => None,
        };
        Ok(ReferenceLookup { used_by, lookup, body })
    }

    /// Makes something of this id, and reserves its unique reference with it. `KeyTaken` where
    /// another took the reference since it was looked up.
    pub async fn command_reserving(
        &self,
        group: GroupNumber,
        id: ObjectId,
        make: MerchantCommand,
        reference: Option<ReferenceLookup>,
        context: CommandContext,
    ) -> Result<Outcome> {
        let (command, unique) = reserving(make, id, reference);
        self.command_with(group, command, unique, context).await
    }

    /// Changes a charge, cashout, refund or subscription as it was read, after that many changes.
    /// Nothing changes, or the key is taken, where another change came since it was read.
    pub async fn change_labels(
        &self,
        group: GroupNumber,
        (id, changes): (ObjectId, u32),
        change: NewChargeChange,
        context: CommandContext,
    ) -> Result<Outcome> {
        let key = self.change_key(id, changes + 1);
        let change = match change {
            NewChargeChange::Metadata(metadata) => {
                ChargeChange::Metadata(self.keyring.seal_value(SealedFor::metadata(id), self.now(), &metadata)?)
            }
            NewChargeChange::LinkDocument { key, of, issuer_known } => {
                let document = self.fiscal_document(group, &key);
                let sealed_for = SealedFor::fiscal_key(document);
                let access_key = self.keyring.seal_value(sealed_for, self.now(), &key.as_str().to_owned())?;
                ChargeChange::LinkDocument { document, of, issuer_known, access_key }
            }
            NewChargeChange::UnlinkDocument(document) => ChargeChange::UnlinkDocument { document },
        };
        let command = MerchantCommand::ChangeCharge { charge: id, key, change };
        self.command_once(group, key, command, context).await
    }

    /// The keyed digest of a change of labels, by its number from 1.
    fn change_key(&self, id: ObjectId, number: u32) -> Fingerprint {
        self.keyring.fingerprint("metadata", &[&id.0.to_be_bytes(), &number.to_be_bytes()])
    }

    /// Adds the changes of a subscription's metadata through a Record. They are looked up by their
    /// numbers: a subscription that goes on for years has many other Records.
    pub(super) fn with_changes(
        &self,
        merchant: LedgerId,
        mut row: SubscriptionRow,
        through: Sequence,
    ) -> Result<SubscriptionRow, LoadError> {
        let shard = self.shard_of(merchant);
        let mut last = None;
        loop {
            let found = shard.read_model().find_unique(merchant, self.change_key(row.id, row.changes + 1))?;
            let Some(sequence) = found.sequence.filter(|sequence| *sequence <= through) else { break };
            (last, row.changes) = (Some(sequence), row.changes + 1);
        }
        if let Some(sequence) = last {
            row.metadata.clone_from(&shard.record(sequence)?.personal);
        }
        Ok(row)
    }

    /// The labels of something: the first ones, with the last change of its metadata; `None` where
    /// it has none.
    pub fn labels_now(&self, id: ObjectId, first: Option<Labels>, changed: Option<&Sealed>) -> Option<Labels> {
        let Some(changed) = changed else { return first };
        let metadata = self.keyring.open_value(SealedFor::metadata(id), changed).unwrap_or_default();
        Some(Labels { metadata, ..first.unwrap_or_default() }).filter(|labels| *labels != Labels::default())
    }

    /// Who pays a subscription, with its labels as they are now; empty when that was erased.
    pub fn subscriber(&self, row: &SubscriptionRow) -> Payer {
        let first: Payer = self.keyring.open_value(SealedFor::customer(row.id), &row.customer).unwrap_or_default();
        Payer { labels: self.labels_now(row.id, first.labels, row.metadata.as_ref()), ..first }
    }

    /// The keyed digest by which Records name a fiscal document.
    pub fn fiscal_document(&self, group: GroupNumber, key: &FiscalKey) -> Fingerprint {
        self.keyring.fingerprint("fiscal document", &[&group.0.to_be_bytes(), key.as_str().as_bytes()])
    }

    /// How many charges of a merchant were opened with a reference, and the newest of them, `most`
    /// at most. A reference whose month's key was dropped is not found. Very rarely the count has a
    /// charge of another reference.
    pub fn charges_with_reference(
        &self,
        group: GroupNumber,
        reference: &str,
        most: usize,
    ) -> Result<(usize, Vec<ObjectId>), LoadError> {
        let sought = PersonalValue::ReferenceOf(group, reference.to_owned());
        self.made_with(group, (FoundKind::Charge, sought), most, |record| {
            record.events.iter().find_map(|event| match event {
                Event::ChargeOpened { charge, .. } => Some(*charge),
                _ => None,
            })
        })
    }

    /// The cards that a merchant stored for a CPF or CNPJ without punctuation, newest first. Those
    /// of a month whose key was dropped are not found. The newest `most` Records are looked at that
    /// have the document, of whichever merchant.
    pub fn cards_of_document(
        &self,
        group: GroupNumber,
        document: &str,
        most: usize,
    ) -> Result<Vec<ObjectId>, LoadError> {
        let sought = PersonalValue::Document(document.to_owned());
        let stored = |record: &Record| StoredCard::stored_by(record).map(|card| card.id);
        Ok(self.made_with(group, (FoundKind::Customer, sought), most, stored)?.1)
    }

    /// How many Records with a personal value make something of a kind, and what the merchant's own
    /// ones among the newest `most` make, newest first.
    fn made_with(
        &self,
        group: GroupNumber,
        (kind, sought): (FoundKind, PersonalValue),
        most: usize,
        made: impl Fn(&Record) -> Option<ObjectId>,
    ) -> Result<(usize, Vec<ObjectId>), LoadError> {
        may_wait(|| {
            let shard = self.shard(group);
            let personal = shard.read_model().personal();
            let keys = personal.search_keys(slice::from_ref(&sought))?;
            let mut listed = Vec::new();
            with_all(&shard, &keys, &[kind], Sequence(u64::MAX), &mut listed)?;
            listed.sort_unstable();
            let newest: Vec<_> = listed.iter().rev().take(most).map(|(sequence, _)| *sequence).collect();
            let mut found = Vec::with_capacity(newest.len());
            for (_, _, record) in booked_records(shard.part(), &newest)? {
                // Very rarely a Record of another value is among them.
                let is_own = record.owner == LedgerId::Merchant(group);
                if is_own && personal.has_all(&record, slice::from_ref(&sought))? {
                    found.extend(made(&record));
                }
            }
            Ok((listed.len(), found))
        })
    }
}

/// A command that makes something of this id, with its unique reference reserved, and the look-up
/// of that.
pub(super) fn reserving(
    make: MerchantCommand,
    id: ObjectId,
    reference: Option<ReferenceLookup>,
) -> (MerchantCommand, Option<UniqueLookup>) {
    let Some(ReferenceLookup { lookup, body, .. }) = reference else { return (make, None) };
    let reference = UniqueReference { id, key: lookup.key, body };
    (MerchantCommand::ReserveReference { reference, open: Box::new(make) }, Some(lookup))
}
