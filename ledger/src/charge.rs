//! Charge: the read model of one charge: its opening, its outcome, and its refunds (interface 2.2,
//! 2.5, 3.1).

use crate::{
    CardFace, CardRefusal, Centavos, Event, Fingerprint, Object, ObjectId, RailName, RailStamp, RecipientNumber,
    Record, Sealed, Terms, Timestamp,
};

/// Status of a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChargeOutcome {
    /// No outcome yet.
    Pending,
    /// The acquirer did not answer in time; no outcome yet.
    Unanswered,
    /// Paid or captured.
    Paid {
        /// When it was paid, by the word of its acquirer or institution.
        at: Timestamp,
        /// End-to-end id of a PIX payment; none for cards.
        end_to_end_id: Option<String>,
    },
    /// The acquirer refused the card.
    Refused(CardRefusal),
    /// The PIX code expired or was cancelled, unpaid.
    Cancelled,
}

impl ChargeOutcome {
    /// The outcome that a Record gives to a charge; `None` if it gives none.
    pub fn in_record(record: &Record, id: ObjectId) -> Option<Self> {
        let at = record.takes_effect_at();
        record.events.iter().find_map(|event| match event {
            Event::CardCaptured { charge, .. } if *charge == id => Some(Self::Paid { at, end_to_end_id: None }),
            Event::PixPaid { charge, end_to_end_id, .. } if *charge == id => {
                Some(Self::Paid { at, end_to_end_id: Some(end_to_end_id.clone()) })
            }
            Event::CardRefused { charge, refusal, .. } if *charge == id => Some(Self::Refused(*refusal)),
            Event::CardUnanswered { charge } if *charge == id => Some(Self::Unanswered),
            Event::PixCancelled { charge, .. } if *charge == id => Some(Self::Cancelled),
            _ => None,
        })
    }
}

/// A fiscal document that a caller linked to a charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiscalDocument {
    /// Keyed digest of account and access key.
    pub document: Fingerprint,
    /// The recipient whose document it is; `None` for the merchant's.
    pub of: Option<RecipientNumber>,
    /// Whether the issuer was the merchant or a recipient of the charge.
    pub issuer_known: bool,
    /// The access key, a sealed text.
    pub access_key: Option<Sealed>,
    /// When it was linked.
    pub linked_at: Timestamp,
}

/// A charge, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The charge's id: its txid, which contains the time of the request.
    pub id: ObjectId,
    /// Its terms: amount, splits and fees.
    pub terms: Terms,
    /// The card, its brand by the acquirer's word once that captured it; none for PIX.
    pub card: Option<CardFace>,
    /// When the PIX code expires; none for cards.
    pub expires_at: Option<Timestamp>,
    /// The payer: a sealed [`crate::personal::Payer`].
    pub payer: Option<Sealed>,
    /// Its metadata, if that was changed: sealed [`crate::personal::Metadata`]. Until then the
    /// payer has it.
    pub metadata: Option<Sealed>,
    /// Its fiscal documents, the first that was linked first.
    pub fiscal_documents: Vec<FiscalDocument>,
    /// How many changes it had: of its metadata, and links of fiscal documents made and taken back.
    pub changes: u32,
    /// The ordinal of the merchant's Record that opened it.
    pub ordinal: u64,
    /// Its status.
    pub outcome: ChargeOutcome,
    /// The outcome of the first answer: an idempotent replay repeats it.
    pub first_outcome: ChargeOutcome,
    /// Sum of its approved refunds that did not fail, centavos.
    pub refunded: Centavos,
    /// True when its PIX code was paid in a way that nobody asked for.
    pub was_paid_late: bool,
    /// The institution of a PIX charge; none in a sandbox, and for cards.
    pub rail: Option<RailName>,
    /// The acquirer's word on its capture; none for PIX.
    pub capture: Option<RailStamp>,
    /// When the seller's part is available; `None` before it is paid.
    pub settles_at: Option<Timestamp>,
    /// The copy-and-paste payload of a PIX charge that an institution has registered.
    pub code: Option<String>,
}

impl Object for Charge {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::ChargeOpened { charge, terms, card, expires_at, rail } => Some(Self {
                id: *charge,
                terms: terms.clone(),
                card: card.clone(),
                expires_at: *expires_at,
                payer: record.personal.clone(),
                metadata: None,
                fiscal_documents: Vec::new(),
                changes: 0,
                ordinal: record.ordinal,
                outcome: ChargeOutcome::Pending,
                first_outcome: ChargeOutcome::Pending,
                refunded: Centavos::ZERO,
                was_paid_late: false,
                rail: rail.clone(),
                capture: None,
                settles_at: None,
                code: None,
            }),
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        for event in &record.events {
            match event {
                Event::RefundApproved { charge, amount, .. } if *charge == self.id => self.refunded += *amount,
                Event::RefundFailed { charge, amount, .. } if *charge == self.id => self.refunded -= *amount,
                Event::PixPaid { charge, .. } if *charge == self.id => {
                    self.settles_at = Some(record.takes_effect_at());
                }
                Event::CardCaptured { charge, brand, seller_due, .. } if *charge == self.id => {
                    self.settles_at = Some(seller_due.start());
                    self.card.iter_mut().zip(*brand).for_each(|(card, brand)| card.brand = brand);
                    self.capture.clone_from(&record.rail);
                }
                Event::MetadataChanged { id, .. } if *id == self.id => {
                    self.metadata.clone_from(&record.personal);
                    self.changes += 1;
                }
                Event::FiscalDocumentLinked { charge, document, of, issuer_known, .. } if *charge == self.id => {
                    self.changes += 1;
                    let (document, of, issuer_known) = (*document, *of, *issuer_known);
                    let (access_key, linked_at) = (record.personal.clone(), record.effective_at);
                    self.fiscal_documents.push(FiscalDocument { document, of, issuer_known, access_key, linked_at });
                }
                Event::FiscalDocumentUnlinked { charge, document, .. } if *charge == self.id => {
                    self.changes += 1;
                    self.fiscal_documents.retain(|linked| linked.document != *document);
                }
                Event::LatePixReceived { charge, .. } if *charge == self.id => self.was_paid_late = true,
                Event::PixRegistered { charge, code } if *charge == self.id => self.code = Some(code.clone()),
                _ => {}
            }
        }
        if let Some(outcome) = ChargeOutcome::in_record(record, self.id) {
            if self.first_outcome == ChargeOutcome::Pending {
                self.first_outcome = outcome.clone();
            }
            self.outcome = outcome;
        }
    }
}
