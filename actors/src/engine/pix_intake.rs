//! Intake of PIX payments: a named institution's list of payments is read every 10 s, and at once
//! when its bell rings. Nothing else is believed of a payment.
//!
//! A look begins where the one before ended, less an overlap: an institution may list a payment
//! late. What is booked already changes nothing, since an end-to-end id counts once for ever.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use ledger::house::{HOUSE_GROUP, HouseAccount, HouseEntryTerms};
use ledger::{Charge, Decision, Event, ObjectId, RailName, RailStamp, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::house::first_with_reference;
use super::outcome::CommandContext;
use super::rail_line::RailLine;
use super::{Engine, INSIDE_BYTES, Result, Unavailable};
use crate::rails::{NamedRails, PixRail, PixReceipt, PixSpan, RailError};
use crate::resident::Outcome;

/// How often an institution's list is read where no bell rings.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How long a look waits after the one before, bell or not.
const REST: Duration = Duration::from_secs(1);
/// How long an institution may take for a page.
const PAGE_MAX: Duration = Duration::from_secs(30);
/// How often looks read how far back before the end of the one before, milliseconds: an institution
/// may list a payment late. The others, which bells ask for, read the last of them.
const OVERLAPS_MS: [(Duration, i64); 3] =
    [(Duration::from_secs(120), 600_000), (Duration::from_secs(10), 30_000), (Duration::ZERO, 3_000)];
/// How far back the very first look at an institution reads: the longest life of a code,
/// milliseconds.
const FIRST_LOOK_MS: i64 = 30 * DAY_MS;
/// The longest span of one question, milliseconds.
const DAY_MS: i64 = 86_400_000;
/// How old a payment without a known charge is before it goes to suspense, milliseconds. It is
/// listed by a wide look until then.
const SUSPENSE_AFTER_MS: i64 = 120_000;
/// How many payments of a page are booked at once.
const BOOKED_AT_ONCE: usize = 64;
/// How often the end of the last look is written to the store, milliseconds.
const KEEP_EVERY_MS: i64 = 60_000;

/// The bells of the named institutions.
pub(super) struct Bells(BTreeMap<RailName, Notify>);

impl Bells {
    pub(super) fn of(rails: &NamedRails<dyn PixRail>) -> Self {
        Self(rails.named_ones().map(|(name, _)| (name.clone(), Notify::new())).collect())
    }
}

/// How far the list of an institution was read.
struct Reading {
    /// Everything before was read; none before the first look.
    through: Option<Timestamp>,
    /// What the store says of it.
    stored: Option<Timestamp>,
    /// The last look of each of [`OVERLAPS_MS`], or one that read further back.
    looked_at: [Option<Instant>; OVERLAPS_MS.len()],
    /// The payments of the last looks that are booked, by end-to-end id.
    booked: BTreeMap<String, Timestamp>,
}

impl Engine {
    /// Has the list of an institution read soon: it says that there is something new. True where
    /// there is an institution of this name.
    pub fn ring(&self, rail: &RailName) -> bool {
        self.bells.0.get(rail).inspect(|bell| bell.notify_one()).is_some()
    }

    /// Reads the lists of all named institutions. Runs until it is dropped.
    pub async fn run_pix_intake(&self) {
        join_all(self.rails.pix.named_ones().map(|(name, _)| self.take_in(name))).await;
    }

    async fn take_in(&self, name: &RailName) {
        let mut reading =
            Reading { through: None, stored: None, looked_at: [None; OVERLAPS_MS.len()], booked: BTreeMap::new() };
        let mut is_silent = false;
        loop {
            if self.serves_house() && self.has_all() && !self.admission.is_closed() {
                let failed = self.look(name, &mut reading).await.err();
                match &failed {
                    None if is_silent => tracing::info!(rail = %name, "the institution's payments are read again"),
                    Some(error) if !is_silent => {
                        tracing::warn!(rail = %name, %error, "the institution's payments can't be read now");
                    }
                    _ => {}
                }
                is_silent = failed.is_some();
            }
            let Some(bell) = self.bells.0.get(name) else { return };
            tokio::time::sleep(REST).await;
            let _bell_or_time = tokio::time::timeout(LOOK_EVERY - REST, bell.notified()).await;
        }
    }

    /// Reads the list once, and books what is new.
    async fn look(&self, name: &RailName, reading: &mut Reading) -> Result<(), IntakeError> {
        let (now, rail) = (self.now(), self.pix_rail(Some(name))?);
        // A charge that another process has opened is known before its payment is.
        self.catch_up().await.map_err(Unavailable::from)?;
        let kept_name = format!("{READ}{name}");
        if reading.through.is_none() {
            let value = self.side_value(&kept_name).map_err(Unavailable::from)?;
            reading.stored =
                value.and_then(|bytes| bytes.try_into().ok()).map(|bytes| Timestamp(i64::from_be_bytes(bytes)));
            self.metrics.pix_read_before(name, reading.stored.unwrap_or(now));
        }
        let is_due = |(at, (every, _)): &(usize, (Duration, i64))| {
            reading.looked_at[*at].is_none_or(|looked_at| looked_at.elapsed() >= *every)
        };
        let (reach, (_, overlap)) = OVERLAPS_MS.into_iter().enumerate().find(is_due).unwrap_or_default();
        let through = reading.through.or(reading.stored).unwrap_or(now.plus_ms(-FIRST_LOOK_MS));
        let mut from = through.plus_ms(-overlap);
        while from < now {
            let until = from.plus_ms(DAY_MS).min(now);
            self.read_span(name, &rail, (from, until), reading).await?;
            from = until;
        }
        reading.through = Some(now);
        self.metrics.pix_read(name, now);
        reading.looked_at[reach..].fill(Some(Instant::now()));
        if reach == 0 {
            let oldest = now.plus_ms(-2 * OVERLAPS_MS[0].1);
            reading.booked.retain(|_, paid_at| *paid_at >= oldest);
        }
        if reading.stored.is_none_or(|stored_at| stored_at.plus_ms(KEEP_EVERY_MS) <= now) {
            self.keep(&kept_name, &now.0.to_be_bytes()).map_err(Unavailable::from)?;
            self.note_rails_used(now)?;
            reading.stored = Some(now);
        }
        Ok(())
    }

    /// Reads the payments of a span, page by page. The others are booked although one can't be; the
    /// first error is given.
    async fn read_span(
        &self,
        name: &RailName,
        rail: &RailLine<'_, dyn PixRail>,
        (from, until): (Timestamp, Timestamp),
        reading: &mut Reading,
    ) -> Result<(), IntakeError> {
        let (mut failed, mut before) = (None, None);
        for page in 0.. {
            let receipts = rail.call(PAGE_MAX, |rail| rail.received(PixSpan { from, until, page })).await?;
            let goes_on = goes_on(&mut before, &receipts.payments, receipts.has_more);
            let are_new = |payment: &PixReceipt| !reading.booked.contains_key(&payment.end_to_end_id);
            let payments: Vec<_> = receipts.payments.into_iter().filter(are_new).collect();
            let mut taken = stream::iter(payments)
                .map(|payment| async move {
                    let known = (payment.end_to_end_id.clone(), payment.paid_at);
                    self.take_payment(name, payment).await.map(|is_booked| is_booked.then_some(known))
                })
                .buffer_unordered(BOOKED_AT_ONCE);
            while let Some(taken) = taken.next().await {
                match taken {
                    Ok(booked) => reading.booked.extend(booked),
                    Err(error) => drop(failed.get_or_insert(error)),
                }
            }
            if !goes_on? {
                break;
            }
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Books a payment, or passes over one that is booked. False when it has to wait: it names no
    /// known charge, and is not old enough for suspense.
    async fn take_payment(&self, rail: &RailName, payment: PixReceipt) -> Result<bool> {
        let id = payment.txid.as_deref().and_then(ObjectId::parse);
        let charge = id.map(|id| self.object::<Charge>(id)).transpose()?.flatten();
        match charge.filter(|charge| charge.rail.as_ref() == Some(rail)) {
            Some(charge) => self.book_pix(charge.id, payment).await.map(|()| true),
            None if payment.paid_at.plus_ms(SUSPENSE_AFTER_MS) > self.now() => Ok(false),
            None => self.keep_in_suspense(payment).await.map(|()| true),
        }
    }

    /// Has a merchant book a payment that names its charge, wherever the merchant is. One that is
    /// booked changes nothing.
    pub async fn book_pix(&self, charge: ObjectId, payment: PixReceipt) -> Result<()> {
        let group = self.ids().group(charge);
        if !self.serves(group) {
            return self.others_than(self.extents.partition_of(group))?.book_pix(group, charge, payment).await;
        }
        let permit = self.admission.take(INSIDE_BYTES).await;
        match self.receive_pix(group, charge, payment, CommandContext::from(permit)).await? {
            Outcome::Refused(rejection) => {
                tracing::error!(?rejection, charge = charge.txid(), "a PIX payment is not booked");
                Err(Unavailable::contradicting("a PIX payment"))
            }
            _ => Ok(()),
        }
    }

    /// Books a payment that names no charge: the money is at the bank, and in suspense until an
    /// operator has found out whose it is. Its reference is the end-to-end id.
    async fn keep_in_suspense(&self, payment: PixReceipt) -> Result<()> {
        let permit = self.admission.take(INSIDE_BYTES).await;
        let house = self.house_shard();
        let _one_at_a_time = house.house.lock().await;
        let PixReceipt { end_to_end_id, txid, amount, paid_at } = payment;
        if first_with_reference(&house, &end_to_end_id)?.is_some() {
            return Ok(());
        }
        let id = self.new_id(HOUSE_GROUP)?;
        let reason = txid.map_or("PIX sem txid".to_owned(), |txid| format!("PIX sem cobrança conhecida, txid {txid}"));
        let terms = HouseEntryTerms {
            debit: HouseAccount::BankPix,
            credit: HouseAccount::Suspense,
            amount,
            reference: end_to_end_id.clone(),
            effective_day: None,
        };
        tracing::warn!(end_to_end_id, %amount, reason, "a PIX payment names no charge: it is in suspense");
        let events = vec![
            Event::HouseEntryRequested { id, terms: terms.clone(), reason },
            Event::HouseEntryApproved { id, terms },
        ];
        let stamp = RailStamp::new(end_to_end_id, paid_at);
        let context = CommandContext::of_rail(Some(stamp), permit);
        self.record_of_house(|| Decision { events, personal: None }, context).await.map(drop)
    }
}

/// Beginning of the names under which the store keeps how far an institution's list was read,
/// milliseconds.
const READ: &str = "pix-read/";

/// Why a look at an institution's list came to no end.
#[derive(Debug, thiserror::Error)]
pub(super) enum IntakeError {
    #[error(transparent)]
    Rail(#[from] RailError),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// It would be asked for its next page for ever.
    #[error("a page of its list is the page before once more, and is said to have another one behind it")]
    SamePage,
}

/// Whether a list goes on behind a page, which then becomes the page `before`. Error: the page is
/// that one once more.
pub(super) fn goes_on<T: Clone + PartialEq>(
    before: &mut Option<Vec<T>>,
    page: &[T],
    has_more: bool,
) -> Result<bool, IntakeError> {
    let is_repeated = has_more && before.replace(page.to_vec()).is_some_and(|before| before == page);
    if is_repeated { Err(IntakeError::SamePage) } else { Ok(has_more) }
}
