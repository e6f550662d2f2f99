//! Golden files of every released format: bytes that this and every later release must read, and
//! that this one still writes. Beside each stands the Record in readable form. A golden file is
//! written once and never changed.

use std::path::PathBuf;

use crate::world::bytes;
use ledger::event::{
    AdjustmentTarget, AnticipatedSplit, Batch, CardBrand, CardFace, CardRefusal, CaseStage, CashoutFailure, Cut,
    DebtPart, DisputeCase, DisputeKind, Due, Event, FileApproval, GiveBack, PaidBack, PayoutBank, ReturnEntry,
    SellerDraw, SellerPart, SettledLine, SettledObject, Settlement, Span, Split, SplitKey, TakeBack, Terms,
};
use ledger::event_choice::EventChoice;
use ledger::fees::{Commission, Fees, Options, PaymentMethod, Settings};
use ledger::house::{HouseAccount, HouseEntryTerms};
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::money::{Centavos, Rate};
use ledger::period::MonthEnd;
use ledger::personal::Sealed;
use ledger::rail_name::RailName;
use ledger::record::{Decision, DecodeError, Idempotency, RailStamp, Record};
use ledger::recurrence::{
    BillingCycle, CycleCounts, CycleOutcome, CycleRetry, InitialFee, PlanTerms, SplitPercent, StoredCard,
    SubscriptionStanding, SubscriptionStatus, SubscriptionTerms, UnpaidReason,
};
use ledger::scope::{Scope, Scopes};
use ledger::time::{Minute, Month, Timestamp};
use ledger::webhook_events::WebhookEventKind;
use proptest::prelude::*;

#[test]
fn golden_files_are_read_and_written_alike() {
    for (name, record) in samples() {
        let golden = golden(name, &record);
        assert_eq!(Record::decode(&golden).unwrap(), record, "{name} is read");
        assert_eq!(hex(&bytes(&record)), hex(&golden), "{name} is written");
    }
}

#[test]
fn every_golden_file_has_its_sample() {
    let names: Vec<_> = samples().iter().map(|(name, _)| *name).collect();
    for file in std::fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(names.contains(&stem.as_str()), "{stem} is no longer read");
    }
}

#[test]
fn a_later_format_is_refused_by_name() {
    for format in [2, 3, 255] {
        let mut later = bytes(&samples()[0].1);
        later[0] = format;
        let refusal = Record::decode(&later).unwrap_err();
        assert!(matches!(refusal, DecodeError::NewerFormat(found) if found == format));
        assert!(refusal.to_string().contains(&format!("format {format}")), "{refusal}");
    }
    assert!(matches!(Record::decode(&[]), Err(DecodeError::Malformed(_))));
    assert!(matches!(Record::decode(&[0]), Err(DecodeError::Malformed(_))));
}

#[test]
fn an_event_or_an_account_of_a_later_release_is_refused() {
    let unknown_event =
        [&[1, 0x8A, 0, 0, 1, 0][..], &[0x81, 0x82, 0x18, 99, 0x80], &[0x80, 0xF6, 0xF6, 0xF6, 0xF6]].concat();
    assert!(Record::decode(&unknown_event).unwrap_err().to_string().contains("99"));
    let unknown_account =
        [&[1, 0x8A, 2, 0, 1, 0, 0x80][..], &[0x81, 0x85, 0, 0x18, 198, 5, 0x18, 199, 5], &[0xF6, 0xF6, 0xF6, 0xF6]]
            .concat();
    assert!(Record::decode(&unknown_account).unwrap_err().to_string().contains("later release"));
}

#[test]
fn items_that_a_later_release_appends_are_skipped() {
    for (name, record) in samples() {
        let mut longer = bytes(&record);
        longer[1] = 0x8D;
        if record.rail.is_none() {
            longer.push(0xF6);
        }
        longer.extend([0x82, 0x01, 0xA1, 0x02, 0x63, b'n', b'e', b'w']);
        longer.push(0xF6);
        assert_eq!(Record::decode(&longer).unwrap(), record, "{name}");
    }
}

#[test]
fn fields_that_a_later_release_adds_to_an_event_are_skipped() {
    // [ClockMoved, [offset]] with two more fields; [Matured, [[[minute, amount]], through, next]]
    // with one more in the due and one outside.
    let clock =
        [&[1, 0x8A, 0, 0, 1, 0][..], &[0x81, 0x82, 18, 0x83, 7, 0xF6, 0x81, 9], &[0x80, 0xF6, 0xF6, 0xF6, 0xF6]]
            .concat();
    assert_eq!(Record::decode(&clock).unwrap().events, [Event::ClockMoved { offset_ms: 7 }]);
    let due_now = [0x81, 0x82, 15, 0x84, 0x81, 0x83, 5, 6, 7, 9, 0xF6, 8];
    let matured = [&[1, 0x8A, 2, 0, 1, 0][..], &due_now, &[0x80, 0xF6, 0xF6, 0xF6, 0xF6]].concat();
    let due = Due { minute: Minute(5), amount: Centavos(6) };
    let expected = Event::Matured { dues: vec![due], foreign_through: 9, next_due: None };
    assert_eq!(Record::decode(&matured).unwrap().events, [expected]);
}

#[test]
fn damaged_records_never_panic() {
    for (_, record) in samples() {
        let whole = bytes(&record);
        for length in 0..whole.len() {
            assert!(Record::decode(&whole[..length]).is_err(), "a Record that lacks its end cannot be read");
        }
        for (place, bit) in (0..whole.len()).flat_map(|place| (0..8).map(move |bit| (place, bit))) {
            let mut damaged = whole.clone();
            damaged[place] ^= 1 << bit;
            drop(Record::decode(&damaged));
        }
    }
}

/// Memory is taken for items that are there, not for a claimed number: a claim of 2^62 items would
/// end the test.
#[test]
fn huge_claims_do_not_allocate() {
    let head = [1, 0x8A, 2, 0, 1, 0];
    let claims = [0x80, 0x40, 0x60, 0xA0].map(|major: u8| {
        let mut claim = vec![major | 0x1B];
        claim.extend((1_u64 << 62).to_be_bytes());
        claim
    });
    for claim in claims {
        for before in [
            &[][..],                            // the events
            &[0x80],                            // the entries
            &[0x80, 0x81],                      // the postings of an entry
            &[0x80, 0x80],                      // the idempotency
            &[0x80, 0x80, 0xF6],                // the operator
            &[0x80, 0x80, 0xF6, 0xF6],          // the personal part
            &[0x80, 0x80, 0xF6, 0xF6, 0x82, 0], // its bytes
            &[0x80, 0x80, 0xF6, 0xF6, 0xF6],    // the API key
            &[0x81, 0x82, 16, 0x81],            // the dues of an event
            &[0x81, 0x82, 8, 0x82, 1],          // the notes of an event
            &[0x81],                            // the event itself
        ] {
            for after in [&[][..], &[0; 40]] {
                assert!(Record::decode(&[&head[..], before, &claim, after].concat()).is_err());
            }
        }
    }
    let mut longest = vec![1, 0x9B];
    longest.extend(u64::MAX.to_be_bytes());
    longest.extend(&bytes(&samples()[0].1)[2..]);
    assert!(Record::decode(&longest).is_err());
}

proptest! {
    #[test]
    fn random_bytes_never_panic(mut noise in proptest::collection::vec(any::<u8>(), 0..200), format_is_known: bool) {
        if let (true, Some(first)) = (format_is_known, noise.first_mut()) {
            *first = 1;
        }
        drop(Record::decode(&noise));
    }

    #[test]
    fn noise_in_a_record_never_panics(sample: prop::sample::Index, place: prop::sample::Index, noise in proptest::collection::vec(any::<u8>(), 1..12)) {
        let samples = samples();
        let mut damaged = bytes(&sample.get(&samples).1);
        let start = place.index(damaged.len());
        damaged.iter_mut().skip(start).zip(&noise).for_each(|(byte, noise)| *byte = *noise);
        if let Ok(record) = Record::decode(&damaged) {
            prop_assert_eq!(Record::decode(&bytes(&record)).unwrap(), record);
        }
    }
}

/// The encoded sizes that the disk is planned with, bytes: three splits, an idempotency key,
/// without the sealed payer, in a group and at an ordinal that a grown installation reaches.
#[test]
fn records_stay_small() {
    let samples = samples();
    let size = |name| {
        let (_, record) = samples.iter().find(|(known, _)| *known == name).unwrap();
        let decision = Decision { events: record.events.clone(), personal: None };
        let grown = decision.into_record(LedgerId::Merchant(GroupNumber(70_000)), 1_000_000, record.effective_at);
        bytes(&Record { idempotency: record.idempotency, ..grown }).len()
    };
    let sizes = ["pix-opened", "pix-paid", "card-opened", "card-captured"].map(|name| (name, size(name)));
    assert_eq!(sizes, [("pix-opened", 122), ("pix-paid", 239), ("card-opened", 125), ("card-captured", 244)]);
}

/// Every event with every option, and Records with every owner.
pub(crate) fn samples() -> Vec<(&'static str, Record)> {
    let id = |low: u128| ObjectId(0x019B_796E_4D24_8000_8000_0000_0000_0000 | low);
    let (merchant, recipient) =
        (LedgerId::Merchant(GroupNumber(6)), LedgerId::Recipient(GroupNumber(6), RecipientNumber(2)));
    let one = |owner, event| Decision::of(event).into_record(owner, 41, Timestamp(1_767_268_830_500));
    let number = RecipientNumber(2);
    let sealed = Sealed { month: 672, bytes: (0..90).collect(), version: 0 };
    let with_person = |record: Record| Record { personal: Some(sealed.clone()), ..record };
    let requested = |record: Record| Record {
        idempotency: Some(Idempotency { key: Fingerprint([0xAA; 16]), body: Fingerprint([0xBB; 16]) }),
        ..record
    };
    let by_operator = |record: Record| Record { operator: Some("maria".to_owned()), ..record };
    let by_key = |record: Record| Record { api_key: Some(id(8)), ..record };
    let card = CardFace { bin: 411_111, last4: 1111, brand: CardBrand::Mastercard };
    let end_to_end_id = "E0000000020260101120000000000001".to_owned();
    let due = |minute, amount| Due { minute: Minute(minute), amount: Centavos(amount) };
    let raised = |terms: &Terms| SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
    let captured = |terms: Terms, seller| Event::CardCaptured {
        charge: id(3),
        terms,
        acquirer_mdr: Centavos(299),
        seller,
        seller_due: Minute(29_454_481),
        splits_due: Minute(29_497_680),
        opened: 41,
        brand: None,
    };
    let drawn = SellerPart { raised: Centavos::ZERO, from_available: Centavos(297), to_deficit: Centavos(199) };
    let opened =
        |terms: Terms, card, expires_at| Event::ChargeOpened { charge: id(3), terms, card, expires_at, rail: None };
    let pix_paid = |terms: Terms| Event::PixPaid {
        charge: id(3),
        seller: raised(&terms),
        terms,
        end_to_end_id: end_to_end_id.clone(),
        opened: 41,
    };
    let cashout_failed = |failure| Event::CashoutFailed { id: id(5), amount: Centavos(3_000), failure, notes: None };
    let cut = Cut { foreign: 70_000, minute: Minute(29_454_481), own: 41 };
    let later = Cut { foreign: 70_001, minute: Minute(29_454_482), own: 300 };
    let key = SplitKey { charge: id(3), index: 1 };
    let settlements =
        vec![Settlement { day: 20_456, amount: Centavos(1_952) }, Settlement { day: 20_461, amount: Centavos(1) }];
    let matured = |next_due| Event::Matured {
        dues: vec![due(29_454_481, 1_000_000_000_000), due(29_454_482, 1)],
        foreign_through: 70_000,
        next_due,
    };
    let plan = PlanTerms {
        tag: "ouro".to_owned(),
        amount: Centavos(4_990),
        billing_cycle: BillingCycle::Biannual,
        total_cycles: 12,
        grace_cycles: 1,
        initial_fee: Some(InitialFee { description: "adesão".to_owned(), amount: Centavos(2_000), cycles: 2 }),
    };
    let stored_face = CardFace { bin: 400_000, last4: 2, brand: CardBrand::Visa };
    let card_subscription = SubscriptionTerms {
        plan: id(5),
        method: PaymentMethod::CreditCard,
        card: Some(StoredCard { id: id(6), face: stored_face.clone() }),
        splits: vec![split(1, 2_000), split(2, 500)],
        anchor: Timestamp(1_767_268_830_500),
        percents: Vec::new(),
    };
    let by_percent = SubscriptionTerms {
        percents: vec![SplitPercent {
            index: 1,
            share: Rate::percent("10.0205".parse().expect("a decimal")).expect("a rate"),
        }],
        ..card_subscription.clone()
    };
    let pix_subscription =
        SubscriptionTerms { method: PaymentMethod::Pix, card: None, splits: Vec::new(), ..card_subscription.clone() };
    let standing = SubscriptionStanding {
        status: SubscriptionStatus::PastDue,
        is_paused: true,
        cycle: 3,
        attempts: 2,
        cycle_at: Some(Timestamp(1_767_268_830_501)),
        place: 4,
        next_cycle_at: Some(Timestamp(1_769_947_230_500)),
        retry_at: Some(Timestamp(1_767_528_030_501)),
        open: Some(id(3)),
        cancelled_at: None,
        counts: None,
        card: None,
    };
    let counted = SubscriptionStanding {
        counts: Some(CycleCounts {
            paid: 1,
            unpaid: 1,
            reason: Some(UnpaidReason::SplitNotEnabled),
            charged: 2,
            retries: vec![CycleRetry {
                cycle: 3,
                first_at: Timestamp(1_767_268_830_501),
                at: Timestamp(1_767_528_030_501),
            }],
            given_up: None,
        }),
        ..standing.clone()
    };
    let subscribed = |terms, standing| Event::SubscriptionCreated { id: id(7), terms, standing };
    let advanced =
        |charge, outcome| Event::SubscriptionAdvanced { id: id(7), charge, outcome, standing: standing.clone() };
    vec![
        (
            "merchant-opened",
            with_person(by_operator(one(merchant, Event::MerchantOpened { id: id(1), settings: settings_changed() }))),
        ),
        (
            "merchant-changed",
            by_operator(one(
                merchant,
                Event::MerchantChanged { settings: Settings::default(), before: None, reason: None },
            )),
        ),
        (
            "merchant-closed",
            by_operator(one(
                merchant,
                Event::MerchantChanged {
                    settings: Settings { closing: true, closed: true, ..Settings::default() },
                    before: Some(Settings { closing: true, ..Settings::default() }),
                    reason: Some("Fim do contrato".to_owned()),
                },
            )),
        ),
        (
            "merchant-suspended",
            by_operator(one(
                merchant,
                Event::MerchantChanged {
                    settings: Settings { suspended: true, payouts_held: true, ..Settings::default() },
                    before: Some(Settings::default()),
                    reason: Some("fraude".to_owned()),
                },
            )),
        ),
        (
            "merchant-without-own-keys",
            by_operator(one(
                merchant,
                Event::MerchantChanged {
                    settings: Settings {
                        options: Options { own_keys_forbidden: true, ..Options::default() },
                        ..Settings::default()
                    },
                    before: Some(Settings::default()),
                    reason: None,
                },
            )),
        ),
        ("registration-read", by_operator(one(merchant, Event::RegistrationRead { number }))),
        (
            "recipient-frozen",
            by_operator(one(merchant, Event::RecipientFrozen { number, reason: "documentos falsos".to_owned() })),
        ),
        (
            "recipient-unfrozen",
            by_operator(one(merchant, Event::RecipientUnfrozen { number, reason: "esclarecido".to_owned() })),
        ),
        (
            "note-written",
            by_operator(one(merchant, Event::NoteWritten { object: id(5), text: "Ligou e confirmou".to_owned() })),
        ),
        (
            "metadata-changed",
            with_person(one(merchant, Event::MetadataChanged { id: id(5), key: Fingerprint([8; 16]) })),
        ),
        (
            "fiscal-document-linked",
            with_person(one(
                merchant,
                Event::FiscalDocumentLinked {
                    charge: id(5),
                    key: Fingerprint([8; 16]),
                    document: Fingerprint([9; 16]),
                    of: Some(RecipientNumber(2)),
                    issuer_known: true,
                },
            )),
        ),
        (
            "fiscal-document-unlinked",
            one(
                merchant,
                Event::FiscalDocumentUnlinked {
                    charge: id(5),
                    key: Fingerprint([8; 16]),
                    document: Fingerprint([9; 16]),
                },
            ),
        ),
        (
            "reference-reserved",
            one(
                merchant,
                Event::ReferenceReserved { id: id(5), key: Fingerprint([8; 16]), body: Fingerprint([9; 16]) },
            ),
        ),
        (
            "person-looked-up",
            by_operator(one(LedgerId::System, Event::PersonLookedUp { document: Fingerprint([7; 16]) })),
        ),
        ("card-deleted", by_operator(one(merchant, Event::CardDeleted { id: id(5) }))),
        ("erasure-requested", by_operator(one(LedgerId::System, Event::ErasureRequested { through: Month(561) }))),
        ("erasure-withdrawn", by_operator(one(LedgerId::System, Event::ErasureWithdrawn { through: Month(561) }))),
        ("keys-erased", by_operator(one(LedgerId::System, Event::KeysErased { through: Month(561) }))),
        (
            "approval-asked",
            by_operator(one(merchant, Event::ApprovalAsked { id: id(5), is_refund: true, reason: None })),
        ),
        (
            "withdrawal-asked-by-an-operator",
            by_operator(one(
                recipient,
                Event::ApprovalAsked {
                    id: id(5),
                    is_refund: false,
                    reason: Some("Lojista em encerramento".to_owned()),
                },
            )),
        ),
        (
            "api-key-created",
            one(
                merchant,
                Event::ApiKeyCreated {
                    id: id(2),
                    digest: [0xDD; 32],
                    webhook_url: Some("https://example.com/hook".to_owned()),
                    webhook_secret: vec![0xEE; 24],
                    scopes: Scopes::ALL,
                    events: EventChoice::ALL,
                },
            ),
        ),
        (
            "api-key-created-with-scopes",
            one(
                merchant,
                Event::ApiKeyCreated {
                    id: id(2),
                    digest: [0xDD; 32],
                    webhook_url: None,
                    webhook_secret: vec![0xEE; 24],
                    scopes: [Scope::Charges, Scope::Read].into_iter().collect(),
                    events: EventChoice::ALL,
                },
            ),
        ),
        (
            "api-key-created-without-url",
            one(
                merchant,
                Event::ApiKeyCreated {
                    id: id(2),
                    digest: [0; 32],
                    webhook_url: None,
                    webhook_secret: Vec::new(),
                    scopes: Scopes::ALL,
                    events: EventChoice::ALL,
                },
            ),
        ),
        ("api-key-revoked", one(merchant, Event::ApiKeyRevoked { id: id(2) })),
        (
            "api-key-changed",
            one(
                merchant,
                Event::ApiKeyChanged {
                    id: id(2),
                    webhook_url: Some("https://example.com/webhooks".to_owned()),
                    events: EventChoice::ALL,
                },
            ),
        ),
        (
            "api-key-changed-to-nowhere",
            one(merchant, Event::ApiKeyChanged { id: id(2), webhook_url: None, events: EventChoice::ALL }),
        ),
        (
            "api-key-changed-to-some-events",
            one(
                merchant,
                Event::ApiKeyChanged {
                    id: id(2),
                    webhook_url: Some("https://example.com/webhooks".to_owned()),
                    events: [WebhookEventKind::RefundFailed, WebhookEventKind::ChargePaid].into_iter().collect(),
                },
            ),
        ),
        (
            "api-key-created-with-events",
            one(
                merchant,
                Event::ApiKeyCreated {
                    id: id(2),
                    digest: [0xDD; 32],
                    webhook_url: Some("https://example.com/hook".to_owned()),
                    webhook_secret: vec![0xEE; 24],
                    scopes: Scopes::ALL,
                    events: [WebhookEventKind::ChargePaid].into_iter().collect(),
                },
            ),
        ),
        (
            "webhook-secret-rotated",
            one(
                merchant,
                Event::WebhookSecretRotated {
                    id: id(2),
                    webhook_secret: b"sealed anew".to_vec(),
                    previous_until: Timestamp(1_767_225_600_000),
                },
            ),
        ),
        (
            "recipient-registered",
            with_person(requested(one(
                merchant,
                Event::RecipientRegistered { number, id: id(4), document: Fingerprint([0xCC; 16]) },
            ))),
        ),
        (
            "recipient-registered-again",
            with_person(one(merchant, Event::RecipientRegisteredAgain { number, document: Fingerprint([0xCC; 16]) })),
        ),
        ("recipient-submitted", one(merchant, Event::RecipientSubmitted { number })),
        ("recipient-approved", by_operator(one(merchant, Event::RecipientApproved { number }))),
        (
            "recipient-rejected",
            by_operator(one(merchant, Event::RecipientRejected { number, notes: "documento ilegível".to_owned() })),
        ),
        ("card-opened", with_person(requested(one(merchant, opened(card_terms(), Some(card.clone()), None))))),
        ("debit-opened-without-splits", with_person(one(merchant, opened(debit_terms(), Some(card), None)))),
        (
            "pix-opened",
            with_person(requested(one(merchant, opened(pix_terms(), None, Some(Timestamp(1_767_355_230_500)))))),
        ),
        ("card-captured", requested(one(merchant, captured(card_terms(), raised(&card_terms()))))),
        (
            "card-captured-with-its-authorization",
            Record {
                rail: Some(RailStamp {
                    authorization: Some("A1B2C3".to_owned()),
                    nsu: Some("000000000018".to_owned()),
                    ..RailStamp::new("cap-17".to_owned(), Timestamp(1_767_268_830_499))
                }),
                ..one(merchant, captured(card_terms(), raised(&card_terms())))
            },
        ),
        (
            "card-captured-at-the-acquirer",
            Record {
                rail: Some(RailStamp::new("000000000017".to_owned(), Timestamp(1_767_268_830_499))),
                ..one(merchant, captured(card_terms(), raised(&card_terms())))
            },
        ),
        ("card-captured-with-the-acquirers-brand", {
            let mut named = captured(card_terms(), raised(&card_terms()));
            if let Event::CardCaptured { brand, .. } = &mut named {
                *brand = Some(CardBrand::Elo);
            }
            one(merchant, named)
        }),
        ("card-captured-with-shortfall", one(merchant, captured(shortfall_terms(), drawn))),
        (
            "card-refused",
            requested(one(
                merchant,
                Event::CardRefused {
                    charge: id(3),
                    refusal: CardRefusal::InsufficientFunds,
                    opened: 41,
                    method: PaymentMethod::CreditCard,
                },
            )),
        ),
        (
            "card-refused-by-code",
            one(
                merchant,
                Event::CardRefused {
                    charge: id(3),
                    refusal: CardRefusal::Coded { code: 51, is_final: true },
                    opened: 41,
                    method: PaymentMethod::CreditCard,
                },
            ),
        ),
        ("card-authorized", {
            let authorized = Event::CardAuthorized { charge: id(3), brand: Some(CardBrand::Elo) };
            let stamp = RailStamp {
                authorization: Some("A1B2C3".to_owned()),
                ..RailStamp::new("QFQTPCQ8HXSKGK82".to_owned(), Timestamp(1_767_268_829_000))
            };
            Record { rail: Some(stamp), ..one(merchant, authorized) }
        }),
        (
            "case-deferred",
            one(
                merchant,
                Event::CaseDeferred {
                    charge: id(3),
                    case: "DISPUTE1".to_owned(),
                    amount: Centavos(4_000),
                    due_at: Some(Timestamp(1_769_860_830_500)),
                    stage: CaseStage::Won(RailStamp::new("DISPUTE1".to_owned(), Timestamp(1_767_268_829_000))),
                    id: None,
                },
            ),
        ),
        (
            "case-deferred-with-item",
            one(
                merchant,
                Event::CaseDeferred {
                    charge: id(3),
                    case: "DISPUTE1".to_owned(),
                    amount: Centavos(4_000),
                    due_at: None,
                    stage: CaseStage::Debited(RailStamp::new("DISPUTE1/2".to_owned(), Timestamp(1_767_268_829_000))),
                    id: Some(id(4)),
                },
            ),
        ),
        ("deferred-case-ended", one(merchant, Event::DeferredCaseEnded { id: id(4), charge: id(3) })),
        ("card-unanswered", one(merchant, Event::CardUnanswered { charge: id(3) })),
        ("pix-paid", requested(one(merchant, pix_paid(pix_terms())))),
        (
            "pix-paid-and-deficit-recovered",
            Decision {
                events: vec![pix_paid(pix_terms()), Event::DeficitRecovered { amount: Centavos(5) }],
                personal: None,
            }
            .into_record(merchant, 42, Timestamp(1_767_268_830_501)),
        ),
        (
            "pix-cancelled",
            one(
                merchant,
                Event::PixCancelled { charge: id(3), recipients: vec![RecipientNumber(1), number], opened: 41 },
            ),
        ),
        ("matured-merchant", one(merchant, matured(None))),
        ("matured-recipient", one(recipient, matured(Some(Timestamp(1_769_860_800_000))))),
        ("acquirer-settled", one(merchant, Event::AcquirerSettled { batch: batch(), lines: settled_lines() })),
        (
            "acquirer-batch-booked",
            one(LedgerId::System, Event::AcquirerBatchBooked { batch: batch(), lines: 3, net: Centavos(-1_977) }),
        ),
        (
            "acquirer-settled-by-file",
            one(merchant, Event::AcquirerSettled { batch: Batch { of_file: true, ..batch() }, lines: settled_lines() }),
        ),
        (
            "acquirer-file-sent",
            by_operator(one(
                LedgerId::System,
                Event::AcquirerFileSent {
                    digest: [0x44; 32].into(),
                    references: vec!["LOTE-20484".to_owned()],
                    lines: 3,
                    net: Centavos(-1_977),
                    approval: None,
                },
            )),
        ),
        (
            "acquirer-file-rejected",
            by_operator(one(
                LedgerId::System,
                Event::AcquirerFileRejected { digest: [0x44; 32].into(), notes: "Arquivo de outro dia".to_owned() },
            )),
        ),
        (
            "acquirer-file-approved",
            by_operator(one(
                LedgerId::System,
                Event::AcquirerFileSent {
                    digest: [0x44; 32].into(),
                    references: vec!["LOTE-20484".to_owned()],
                    lines: 3,
                    net: Centavos(-1_977),
                    approval: Some(FileApproval { first_number: 7, asked_by: "rui".to_owned() }),
                },
            )),
        ),
        (
            "acquirer-unexplained",
            one(
                LedgerId::System,
                Event::AcquirerUnexplained {
                    batch: batch(),
                    count: 300,
                    net: Centavos(1_234_567),
                    lines: settled_lines(),
                },
            ),
        ),
        (
            "house-entry-requested",
            by_operator(one(
                LedgerId::System,
                Event::HouseEntryRequested { id: id(9), terms: house_terms(), reason: "Comissão do mês".to_owned() },
            )),
        ),
        (
            "house-entry-approved",
            by_operator(one(LedgerId::System, Event::HouseEntryApproved { id: id(9), terms: house_terms() })),
        ),
        (
            "house-entry-rejected",
            by_operator(one(
                LedgerId::System,
                Event::HouseEntryRejected { id: id(9), notes: "Valor diferente do extrato".to_owned() },
            )),
        ),
        (
            "period-close-requested",
            by_operator(one(LedgerId::System, Event::PeriodCloseRequested { month: Month(682) })),
        ),
        (
            "period-closed",
            by_operator(one(
                LedgerId::System,
                Event::PeriodClosed {
                    month: Month(682),
                    end: MonthEnd { through: 1_234_567, head: [0xAA; 32].into(), totals: [0xBB; 32].into() },
                },
            )),
        ),
        (
            "house-entry-dated-back",
            by_operator(one(
                LedgerId::System,
                Event::HouseEntryApproved {
                    id: id(9),
                    terms: HouseEntryTerms { effective_day: Some(20_787), ..house_terms() },
                },
            )),
        ),
        (
            "write-off-requested",
            by_operator(one(
                merchant,
                Event::WriteOffRequested {
                    id: id(9),
                    amount: Centavos(496),
                    reference: "PARECER-17".to_owned(),
                    reason: "Encerrou as atividades".to_owned(),
                },
            )),
        ),
        (
            "write-off-rejected",
            by_operator(one(merchant, Event::WriteOffRejected { id: id(9), notes: "Ainda paga".to_owned() })),
        ),
        (
            "deficit-written-off",
            by_operator(one(
                merchant,
                Event::DeficitWrittenOff { id: id(9), amount: Centavos(496), reference: "PARECER-17".to_owned() },
            )),
        ),
        (
            "adjustment-requested",
            by_operator(one(
                merchant,
                Event::AdjustmentRequested {
                    id: id(9),
                    amount: Centavos(5_000),
                    reference: "CHAMADO-17".to_owned(),
                    reason: "Indisponibilidade de sábado".to_owned(),
                    target: None,
                },
            )),
        ),
        (
            "adjustment-requested-of-a-dispute",
            by_operator(one(
                merchant,
                Event::AdjustmentRequested {
                    id: id(9),
                    amount: Centavos(3_000),
                    reference: "CHAMADO-18".to_owned(),
                    reason: "Ganha na segunda instância".to_owned(),
                    target: Some(AdjustmentTarget::Dispute(id(6))),
                },
            )),
        ),
        (
            "adjustment-rejected",
            by_operator(one(merchant, Event::AdjustmentRejected { id: id(9), notes: "Não foi nossa".to_owned() })),
        ),
        (
            "adjustment-created",
            by_operator(one(
                merchant,
                Event::AdjustmentCreated {
                    id: id(9),
                    amount: Centavos(5_000),
                    reference: "CHAMADO-17".to_owned(),
                    target: None,
                    is_beside_splits: false,
                },
            )),
        ),
        (
            "adjustment-created-for-a-recipient",
            by_operator(one(
                merchant,
                Event::AdjustmentCreated {
                    id: id(9),
                    amount: Centavos(5_000),
                    reference: "CHAMADO-17".to_owned(),
                    target: Some(AdjustmentTarget::Recipient(RecipientNumber(2))),
                    is_beside_splits: false,
                },
            )),
        ),
        (
            "adjustment-created-beside-splits",
            by_operator(one(
                merchant,
                Event::AdjustmentCreated {
                    id: id(9),
                    amount: Centavos(5_000),
                    reference: "CHAMADO-17".to_owned(),
                    target: Some(AdjustmentTarget::Recipient(RecipientNumber(2))),
                    is_beside_splits: true,
                },
            )),
        ),
        (
            "clawback-written-off",
            by_operator(one(
                recipient,
                Event::ClawbackWrittenOff {
                    id: id(9),
                    reference: "PARECER-17".to_owned(),
                    debts: vec![DebtPart {
                        split: SplitKey { charge: id(3), index: 1 },
                        refund: id(5),
                        to_available: Centavos(300),
                        to_pending: Centavos(196),
                    }],
                },
            )),
        ),
        ("acceptance-confirmed", one(merchant, Event::AcceptanceConfirmed { id: id(6), charge: id(3) })),
        ("deficit-recovered", one(merchant, Event::DeficitRecovered { amount: Centavos(496) })),
        (
            "recipient-changed",
            with_person(one(merchant, Event::RecipientChanged { number, document: Fingerprint([0xCC; 16]) })),
        ),
        (
            "bank-account-changed",
            by_key(with_person(
                Decision {
                    events: vec![
                        Event::RecipientChanged { number, document: Fingerprint([0x33; 16]) },
                        Event::BankAccountChanged { number, active: true },
                        Event::BankAccountChanged { number, active: false },
                    ],
                    personal: None,
                }
                .into_record(merchant, 42, Timestamp(1_767_268_830_501)),
            )),
        ),
        ("bank-account-approved", by_operator(one(merchant, Event::BankAccountApproved { number }))),
        (
            "bank-account-rejected",
            by_operator(one(
                merchant,
                Event::BankAccountRejected { number, notes: "conta de outra pessoa".to_owned() },
            )),
        ),
        (
            "cashout-created",
            with_person(requested(one(
                merchant,
                Event::CashoutCreated {
                    id: id(5),
                    transaction: [0x11; 16],
                    transaction_key: Fingerprint([0x22; 16]),
                    amount: Centavos(3_000),
                    fee: Centavos(100),
                    rail: None,
                },
            ))),
        ),
        (
            "cashout-processed",
            one(
                merchant,
                Event::CashoutProcessed {
                    id: id(5),
                    amount: Centavos(3_000),
                    fee: Centavos(100),
                    end_to_end_id: end_to_end_id.clone(),
                    transfer_id: "t-1".to_owned(),
                    bank: None,
                },
            ),
        ),
        (
            "cashout-processed-from-settlement",
            one(
                merchant,
                Event::CashoutProcessed {
                    id: id(5),
                    amount: Centavos(3_000),
                    fee: Centavos(100),
                    end_to_end_id: end_to_end_id.clone(),
                    transfer_id: "t-1".to_owned(),
                    bank: Some(PayoutBank::Settlement),
                },
            ),
        ),
        ("cashout-not-taken", one(merchant, cashout_failed(CashoutFailure::NotTaken))),
        (
            "cashout-failed-with-its-reason",
            one(
                merchant,
                Event::CashoutFailed {
                    id: id(5),
                    amount: Centavos(3_000),
                    failure: CashoutFailure::NotCarriedOut,
                    notes: Some("conta encerrada".to_owned()),
                },
            ),
        ),
        (
            "cashout-not-carried-out-and-deficit-recovered",
            Decision {
                events: vec![
                    cashout_failed(CashoutFailure::NotCarriedOut),
                    Event::DeficitRecovered { amount: Centavos(496) },
                ],
                personal: None,
            }
            .into_record(merchant, 42, Timestamp(1_767_268_830_501)),
        ),
        (
            "withdrawal-requested-to-an-account",
            by_key(with_person(requested(one(
                recipient,
                Event::WithdrawalRequested {
                    id: id(5),
                    amount: Centavos(1_952),
                    spans: vec![Span { after: Cut::default(), through: cut }],
                    consumed: Centavos::ZERO,
                    settlements: Vec::new(),
                    goodwill: Centavos::ZERO,
                },
            )))),
        ),
        (
            "withdrawal-requested",
            requested(one(
                recipient,
                Event::WithdrawalRequested {
                    id: id(5),
                    amount: Centavos(1_952),
                    spans: vec![Span { after: Cut::default(), through: cut }, Span { after: cut, through: later }],
                    consumed: Centavos(48),
                    settlements: settlements.clone(),
                    goodwill: Centavos::ZERO,
                },
            )),
        ),
        (
            "withdrawal-requested-with-goodwill",
            requested(one(
                recipient,
                Event::WithdrawalRequested {
                    id: id(5),
                    amount: Centavos(2_652),
                    spans: vec![Span { after: Cut::default(), through: cut }],
                    consumed: Centavos(48),
                    settlements: Vec::new(),
                    goodwill: Centavos(700),
                },
            )),
        ),
        (
            "withdrawal-returned-with-goodwill",
            one(
                recipient,
                Event::WithdrawalReturned {
                    id: id(5),
                    amount: Centavos(2_652),
                    spans: vec![Span { after: Cut::default(), through: cut }],
                    consumed: Centavos(48),
                    notes: "conta encerrada".to_owned(),
                    settlements: Vec::new(),
                    bank: None,
                    entry: None,
                    goodwill: Centavos(700),
                },
            ),
        ),
        (
            "clawback-recovered-of-goodwill",
            one(
                recipient,
                Event::ClawbackRecovered {
                    debts: vec![PaidBack {
                        split: key,
                        refund: id(8),
                        from_pending: Centavos(0),
                        due: None,
                        from_available: Centavos(800),
                        to_available: Centavos(800),
                        to_pending: Centavos(0),
                        seller_due: None,
                    }],
                    left: Some(Centavos(1)),
                    goodwill: Centavos(700),
                },
            ),
        ),
        (
            "withdrawal-approved",
            by_operator(requested(one(recipient, Event::WithdrawalApproved { id: id(5), rail: None }))),
        ),
        (
            "withdrawal-paid",
            one(
                recipient,
                Event::WithdrawalPaid {
                    id: id(5),
                    amount: Centavos(1_952),
                    transfer_id: "transfer-1".to_owned(),
                    returnable_until: Timestamp(1_769_860_830_500),
                    bank: None,
                },
            ),
        ),
        (
            "withdrawal-paid-from-pix",
            one(
                recipient,
                Event::WithdrawalPaid {
                    id: id(5),
                    amount: Centavos(1_952),
                    transfer_id: "transfer-1".to_owned(),
                    returnable_until: Timestamp(1_769_860_830_500),
                    bank: Some(PayoutBank::Pix),
                },
            ),
        ),
        (
            "withdrawal-returned-to-pix",
            one(
                recipient,
                Event::WithdrawalReturned {
                    id: id(5),
                    amount: Centavos(1_952),
                    spans: Vec::new(),
                    consumed: Centavos::ZERO,
                    notes: "conta encerrada".to_owned(),
                    settlements: Vec::new(),
                    bank: Some(PayoutBank::Pix),
                    entry: None,
                    goodwill: Centavos::ZERO,
                },
            ),
        ),
        (
            "withdrawal-return-requested",
            by_operator(one(
                recipient,
                Event::WithdrawalReturnRequested {
                    id: id(9),
                    withdrawal: id(5),
                    amount: Centavos(1_952),
                    bank: Some(PayoutBank::Pix),
                    reference: "EXTRATO-9".to_owned(),
                    effective_day: Some(20_787),
                    reason: "conta encerrada".to_owned(),
                },
            )),
        ),
        (
            "withdrawal-return-rejected",
            by_operator(one(
                recipient,
                Event::WithdrawalReturnRejected { id: id(9), notes: "não está no extrato".to_owned() },
            )),
        ),
        (
            "withdrawal-returned-by-operators",
            by_operator(one(
                recipient,
                Event::WithdrawalReturned {
                    id: id(5),
                    amount: Centavos(1_952),
                    spans: Vec::new(),
                    consumed: Centavos::ZERO,
                    notes: "conta encerrada".to_owned(),
                    settlements: Vec::new(),
                    bank: Some(PayoutBank::Pix),
                    entry: Some(ReturnEntry {
                        id: id(9),
                        reference: "EXTRATO-9".to_owned(),
                        effective_day: Some(20_787),
                    }),
                    goodwill: Centavos::ZERO,
                },
            )),
        ),
        (
            "withdrawal-rejected",
            by_operator(one(
                recipient,
                Event::WithdrawalRejected {
                    id: id(5),
                    amount: Centavos(1_952),
                    notes: "conta encerrada".to_owned(),
                    by_merchant: false,
                },
            )),
        ),
        (
            "withdrawal-cancelled",
            requested(one(
                recipient,
                Event::WithdrawalRejected {
                    id: id(5),
                    amount: Centavos(1_952),
                    notes: "Cancelado pelo lojista".to_owned(),
                    by_merchant: true,
                },
            )),
        ),
        (
            "withdrawal-returned",
            one(
                recipient,
                Event::WithdrawalReturned {
                    id: id(5),
                    amount: Centavos(1_952),
                    spans: vec![Span { after: cut, through: later }],
                    consumed: Centavos(48),
                    notes: "conta encerrada".to_owned(),
                    settlements,
                    bank: None,
                    entry: None,
                    goodwill: Centavos::ZERO,
                },
            ),
        ),
        (
            "splits-anticipated",
            requested(one(
                recipient,
                Event::SplitsAnticipated {
                    id: id(6),
                    splits: vec![
                        AnticipatedSplit {
                            split: key,
                            due: Minute(29_497_680),
                            amount: Centavos(2_000),
                            fee: Centavos(48),
                        },
                        AnticipatedSplit { split: key, due: Minute(29_497_681), amount: Centavos(1), fee: Centavos(0) },
                    ],
                    target_days: 2,
                    rate: Rate::basis_points(238),
                    settlement_day: 20_456,
                },
            )),
        ),
        (
            "clawback-recovered",
            one(
                recipient,
                Event::ClawbackRecovered {
                    debts: vec![
                        PaidBack {
                            split: key,
                            refund: id(7),
                            from_pending: Centavos(500),
                            due: Some(Minute(29_497_680)),
                            from_available: Centavos(300),
                            to_available: Centavos(300),
                            to_pending: Centavos(500),
                            seller_due: Some(Minute(29_454_481)),
                        },
                        PaidBack {
                            split: key,
                            refund: id(8),
                            from_pending: Centavos(0),
                            due: None,
                            from_available: Centavos(1),
                            to_available: Centavos(1),
                            to_pending: Centavos(0),
                            seller_due: None,
                        },
                    ],
                    left: None,
                    goodwill: Centavos::ZERO,
                },
            ),
        ),
        ("plan-created", requested(one(merchant, Event::PlanCreated { id: id(5), plan: plan.clone() }))),
        (
            "plan-created-without-fee",
            one(merchant, Event::PlanCreated { id: id(5), plan: PlanTerms { initial_fee: None, ..plan.clone() } }),
        ),
        ("plan-disabled", one(merchant, Event::PlanDisabled { id: id(5) })),
        (
            "card-stored",
            with_person(requested(one(
                merchant,
                Event::CardStored { id: id(6), face: stored_face.clone(), token: vec![0xEF; 48], rail: None },
            ))),
        ),
        (
            "subscription-created",
            with_person(requested(one(merchant, subscribed(card_subscription, SubscriptionStanding::default())))),
        ),
        (
            "subscription-created-percent",
            with_person(one(merchant, subscribed(by_percent, SubscriptionStanding::default()))),
        ),
        ("subscription-created-pix", with_person(one(merchant, subscribed(pix_subscription, standing.clone())))),
        (
            "subscription-billed",
            with_person(
                Decision {
                    events: vec![
                        opened(
                            Terms { initial_fee: Some(Centavos(2_000)), ..card_terms() },
                            Some(stored_face.clone()),
                            None,
                        ),
                        Event::SubscriptionBilled { id: id(7), charge: id(3), standing: standing.clone() },
                    ],
                    personal: None,
                }
                .into_record(merchant, 43, Timestamp(1_767_268_830_500)),
            ),
        ),
        ("subscription-advanced", one(merchant, advanced(Some(id(3)), CycleOutcome::Refused))),
        (
            "subscription-advanced-counted",
            one(
                merchant,
                Event::SubscriptionAdvanced {
                    id: id(7),
                    charge: None,
                    outcome: CycleOutcome::NotBillable,
                    standing: counted.clone(),
                },
            ),
        ),
        ("subscription-advanced-paid", one(merchant, advanced(Some(id(3)), CycleOutcome::Paid))),
        ("subscription-advanced-unpaid", one(merchant, advanced(Some(id(3)), CycleOutcome::Unpaid))),
        ("subscription-advanced-without-charge", one(merchant, advanced(None, CycleOutcome::NotBillable))),
        (
            "subscription-paused",
            requested(one(merchant, Event::SubscriptionPaused { id: id(7), standing: standing.clone() })),
        ),
        (
            "subscription-card-changed",
            requested(one(
                merchant,
                Event::SubscriptionCardChanged {
                    id: id(7),
                    standing: SubscriptionStanding {
                        card: Some(Box::new(StoredCard { id: id(6), face: stored_face.clone() })),
                        counts: counted.counts.clone().map(|counts| CycleCounts {
                            given_up: Some(Box::new(CycleRetry { cycle: 2, first_at: Timestamp(1), at: Timestamp(2) })),
                            ..counts
                        }),
                        ..standing.clone()
                    },
                },
            )),
        ),
        ("subscription-resumed", one(merchant, Event::SubscriptionResumed { id: id(7), standing: standing.clone() })),
        (
            "subscription-cancelled",
            one(
                merchant,
                Event::SubscriptionCancelled {
                    id: id(7),
                    standing: SubscriptionStanding {
                        status: SubscriptionStatus::Cancelled,
                        cancelled_at: Some(Timestamp(1_767_268_830_500)),
                        ..SubscriptionStanding::default()
                    },
                },
            ),
        ),
        (
            "chart-of-accounts-set",
            by_operator(one(
                LedgerId::System,
                Event::ChartOfAccountsSet { map: "[[account]]\nprefix = \"Assets\"\ncode = \"1\"\n".to_owned() },
            )),
        ),
        (
            "personal-data-read",
            by_operator(one(
                LedgerId::System,
                Event::PersonalDataRead { what: "monthly-totals 2026-07-01".to_owned() },
            )),
        ),
        ("clock-moved", by_operator(one(LedgerId::System, Event::ClockMoved { offset_ms: 2_592_000_000 }))),
        (
            "refund-requested",
            with_person(requested(one(
                merchant,
                Event::RefundRequested {
                    id: id(5),
                    charge: id(3),
                    amount: Centavos(4_000),
                    take_back: vec![split(1, 800)],
                    window_ends: Timestamp(1_782_820_830_500),
                    remembered_until: None,
                },
            ))),
        ),
        (
            "refund-requested-disputable-longer",
            with_person(requested(one(
                merchant,
                Event::RefundRequested {
                    id: id(5),
                    charge: id(3),
                    amount: Centavos(4_000),
                    take_back: Vec::new(),
                    window_ends: Timestamp(1_782_820_830_500),
                    remembered_until: Some(Timestamp(1_813_924_830_500)),
                },
            ))),
        ),
        (
            "refund-rejected",
            by_operator(one(
                merchant,
                Event::RefundRejected {
                    id: id(5),
                    charge: id(3),
                    amount: Centavos(4_000),
                    notes: "sem comprovante".to_owned(),
                },
            )),
        ),
        ("refund-approved", by_operator(one(merchant, refund_approved()))),
        ("refund-failed", one(merchant, refund_failed())),
        (
            "payer-repaid",
            one(
                merchant,
                Event::PayerRepaid {
                    id: id(5),
                    charge: id(3),
                    method: PaymentMethod::CreditCard,
                    amount: Centavos(4_000),
                    is_unordered: false,
                },
            ),
        ),
        (
            "late-pix-repaid",
            one(
                merchant,
                Event::PayerRepaid {
                    id: id(3),
                    charge: id(3),
                    method: PaymentMethod::Pix,
                    amount: Centavos(10_000),
                    is_unordered: false,
                },
            ),
        ),
        (
            "dispute-opened",
            with_person(by_operator(one(
                merchant,
                Event::DisputeOpened {
                    id: id(6),
                    charge: id(3),
                    kind: DisputeKind::Med,
                    amount: Centavos(3_000),
                    drawn: drawn_of(0, 2_000, 1_000),
                    seller_due: None,
                    window_ends: Timestamp(1_775_044_830_500),
                    exceeds: None,
                    case: None,
                },
            ))),
        ),
        (
            "dispute-opened-by-a-rail",
            with_person(one(
                merchant,
                Event::DisputeOpened {
                    id: id(6),
                    charge: id(3),
                    kind: DisputeKind::Med,
                    amount: Centavos(3_000),
                    drawn: drawn_of(0, 2_000, 1_000),
                    seller_due: None,
                    window_ends: Timestamp(1_775_044_830_500),
                    exceeds: None,
                    case: Some(DisputeCase {
                        id: "MED-2026-118".to_owned(),
                        due_at: Some(Timestamp(1_767_873_630_500)),
                        key: Fingerprint([0x55; 16]),
                    }),
                },
            )),
        ),
        (
            "dispute-opened-beyond-the-charge",
            with_person(by_operator(one(
                merchant,
                Event::DisputeOpened {
                    id: id(6),
                    charge: id(3),
                    kind: DisputeKind::Med,
                    amount: Centavos(3_000),
                    drawn: drawn_of(0, 2_000, 1_000),
                    seller_due: None,
                    window_ends: Timestamp(1_775_044_830_500),
                    exceeds: Some(Centavos(1_000)),
                    case: None,
                },
            ))),
        ),
        (
            "dispute-accepted",
            by_operator(one(
                merchant,
                Event::DisputeAccepted {
                    id: id(6),
                    charge: id(3),
                    method: PaymentMethod::DebitCard,
                    amount: Centavos(3_000),
                },
            )),
        ),
        (
            "dispute-released",
            by_operator(
                Decision {
                    events: vec![
                        Event::DisputeReleased {
                            id: id(6),
                            charge: id(3),
                            amount: Centavos(3_000),
                            to_pending: Centavos(1_500),
                            seller_due: Some(Minute(29_497_680)),
                            to_available: Centavos(1_500),
                            accepted: None,
                            notes: None,
                        },
                        Event::DeficitRecovered { amount: Centavos(5) },
                    ],
                    personal: None,
                }
                .into_record(merchant, 42, Timestamp(1_767_268_830_501)),
            ),
        ),
        (
            "dispute-accepted-in-part",
            by_operator(
                Decision {
                    events: vec![
                        Event::DisputeReleased {
                            id: id(6),
                            charge: id(3),
                            amount: Centavos(1_000),
                            to_pending: Centavos(1_000),
                            seller_due: Some(Minute(29_497_680)),
                            to_available: Centavos(0),
                            accepted: Some(Centavos(2_000)),
                            notes: None,
                        },
                        Event::DisputeAccepted {
                            id: id(6),
                            charge: id(3),
                            method: PaymentMethod::CreditCard,
                            amount: Centavos(2_000),
                        },
                    ],
                    personal: None,
                }
                .into_record(merchant, 42, Timestamp(1_767_268_830_501)),
            ),
        ),
        (
            "dispute-reversed",
            by_operator(one(
                merchant,
                Event::DisputeReversed {
                    id: id(6),
                    charge: id(3),
                    method: PaymentMethod::CreditCard,
                    amount: Centavos(3_000),
                    to_pending: Centavos(1_000),
                    seller_due: Some(Minute(29_497_680)),
                    to_available: Centavos(2_000),
                    key: Fingerprint([0x66; 16]),
                    entry: Some(ReturnEntry { id: id(9), reference: "CHAMADO-18".to_owned(), effective_day: None }),
                },
            )),
        ),
        (
            "late-pix-received",
            one(
                merchant,
                Event::LatePixReceived {
                    charge: id(3),
                    amount: Centavos(10_000),
                    end_to_end_id: "E0000000020260101120000000000002".to_owned(),
                    id: None,
                    key: None,
                },
            ),
        ),
        (
            "late-pix-received-under-an-id",
            one(
                merchant,
                Event::LatePixReceived {
                    charge: id(3),
                    amount: Centavos(10_000),
                    end_to_end_id: "E0000000020260101120000000000002".to_owned(),
                    id: Some(id(7)),
                    key: Some(Fingerprint([9; 16])),
                },
            ),
        ),
        (
            "payer-repaid-unordered",
            one(
                merchant,
                Event::PayerRepaid {
                    id: id(7),
                    charge: id(3),
                    method: PaymentMethod::Pix,
                    amount: Centavos(10_000),
                    is_unordered: true,
                },
            ),
        ),
        (
            "charge-opened-pix-at-an-institution",
            one(
                merchant,
                Event::ChargeOpened {
                    charge: id(3),
                    terms: pix_terms(),
                    card: None,
                    expires_at: Some(Timestamp(1_767_355_200_000)),
                    rail: RailName::parse("itau"),
                },
            ),
        ),
        (
            "pix-registered",
            one(
                merchant,
                Event::PixRegistered { charge: id(3), code: "00020101021226850014br.gov.bcb.pix".to_owned() },
            ),
        ),
        (
            "pix-registered-with-a-whole-code",
            one(
                merchant,
                Event::PixRegistered {
                    charge: id(3),
                    code:
                        "00020101021226500014br.gov.bcb.pix2528pix.example.com/qr/v2/9d36b84f520400005303986540582.53\
                           5802BR5904Loja6006Recife62070503***6304ABCD 0014BR.GOV.BCB.PIX25 5204000053039865802BR59"
                            .to_owned(),
                },
            ),
        ),
        (
            "withdrawal-approved-to-a-rail",
            by_operator(one(recipient, Event::WithdrawalApproved { id: id(5), rail: RailName::parse("efi") })),
        ),
        (
            "cashout-returned",
            one(
                merchant,
                Event::CashoutReturned {
                    id: id(5),
                    amount: Centavos(3_000),
                    fee: Centavos(100),
                    bank: PayoutBank::Pix,
                    reason: "conta encerrada".to_owned(),
                    key: Fingerprint([0x33; 16]),
                },
            ),
        ),
        (
            "repayment-reversed",
            one(
                merchant,
                Event::RepaymentReversed {
                    id: id(5),
                    charge: id(3),
                    method: PaymentMethod::CreditCard,
                    amount: Centavos(4_000),
                    key: Fingerprint([0xee; 16]),
                },
            ),
        ),
        ("rail-tried", one(merchant, Event::RailTried { id: id(5), attempt: 2 })),
        (
            "rail-word-asked",
            by_operator(one(
                merchant,
                Event::RailWordAsked {
                    id: id(5),
                    happened: false,
                    reference: "PROTOCOLO-118".to_owned(),
                    reason: "o banco confirmou".to_owned(),
                },
            )),
        ),
        (
            "rail-word-given",
            by_operator(
                Decision {
                    events: vec![
                        Event::CashoutFailed {
                            id: id(5),
                            amount: Centavos(3_000),
                            failure: CashoutFailure::NotCarriedOut,
                            notes: None,
                        },
                        Event::RailWordGiven {
                            id: id(5),
                            happened: false,
                            reference: "PROTOCOLO-118".to_owned(),
                            reason: "o banco confirmou".to_owned(),
                            asked_by: "ana".to_owned(),
                        },
                    ],
                    personal: None,
                }
                .into_record(merchant, 42, Timestamp(1_767_268_830_501)),
            ),
        ),
        (
            "payer-not-repaid",
            one(
                merchant,
                Event::PayerNotRepaid {
                    id: id(5),
                    charge: id(3),
                    amount: Centavos(8_000),
                    reason: "conta encerrada".to_owned(),
                },
            ),
        ),
    ]
}

fn refund_approved() -> Event {
    Event::RefundApproved {
        id: ObjectId(5),
        charge: ObjectId(3),
        method: PaymentMethod::CreditCard,
        amount: Centavos(4_000),
        drawn: drawn_of(3_000, 700, 300),
        seller_due: Some(Minute(29_497_680)),
        commission: Commission { mdr: Centavos(120), antifraud: Centavos(79), margin: Centavos(40), pix: Centavos(0) },
        commission_pending: true,
        take_backs: vec![TakeBack {
            recipient: RecipientNumber(2),
            index: 1,
            amount: Centavos(1_500),
            due: Some(Minute(29_497_680)),
            to_available: Centavos(1_000),
            to_pending: Centavos(500),
        }],
        commission_through: Centavos(4_000),
    }
}

fn refund_failed() -> Event {
    Event::RefundFailed {
        id: ObjectId(5),
        charge: ObjectId(3),
        method: PaymentMethod::CreditCard,
        amount: Centavos(4_000),
        notes: "conta encerrada".to_owned(),
        to_pending: Centavos(2_500),
        seller_due: Some(Minute(29_497_680)),
        to_available: Centavos(0),
        give_backs: vec![GiveBack {
            recipient: RecipientNumber(2),
            index: 1,
            taken: Centavos(1_500),
            from_pending: Centavos(1_200),
            due: Some(Minute(29_497_680)),
            to_pending: Centavos(1_200),
            to_available: Centavos(300),
        }],
        commission: Commission { mdr: Centavos(120), antifraud: Centavos(79), margin: Centavos(40), pix: Centavos(0) },
        charged: drawn_of(239, 0, 0),
        commission_through: Centavos(0),
    }
}

fn batch() -> Batch {
    Batch { number: 20_484, reference: "LOTE-20484".to_owned(), paid_on: 20_484, of_file: false }
}

fn house_terms() -> HouseEntryTerms {
    HouseEntryTerms {
        debit: HouseAccount::BankOwn,
        credit: HouseAccount::BankSettlement,
        amount: Centavos(250_000),
        reference: "EXTRATO-2026-11-30-17".to_owned(),
        effective_day: None,
    }
}

fn settled_lines() -> Vec<SettledLine> {
    let line = |object, gross, fee, booked_fee| SettledLine {
        charge: ObjectId(3),
        object,
        gross: Centavos(gross),
        fee: Centavos(fee),
        booked_fee: Centavos(booked_fee),
    };
    vec![
        line(SettledObject::Installment(2), 5_000, 151, 150),
        line(SettledObject::Refund(ObjectId(5)), -4_000, -120, 0),
        line(SettledObject::Dispute(ObjectId(6)), -3_000, 0, 0),
    ]
}

fn drawn_of(from_pending: i64, from_available: i64, to_deficit: i64) -> SellerDraw {
    SellerDraw {
        from_pending: Centavos(from_pending),
        from_available: Centavos(from_available),
        to_deficit: Centavos(to_deficit),
    }
}

fn settings_changed() -> Settings {
    Settings {
        split_enabled: true,
        cashout_enabled: true,
        fees: Fees { antifraud: Centavos(0), mdr_1x: Rate::basis_points(10_000), ..Fees::default() },
        options: Options {
            split_guard_net: true,
            mdr_on_seller_gross: true,
            refund_commission: true,
            card_settlement_days: 1,
            own_keys_forbidden: false,
        },
        ..Settings::default()
    }
}

fn card_terms() -> Terms {
    let splits = vec![split(1, 2_000), split(2, 1_500), split(3, 500)];
    terms(
        PaymentMethod::CreditCard,
        12,
        splits,
        Commission { mdr: Centavos(399), antifraud: Centavos(198), margin: Centavos(60), pix: Centavos(0) },
    )
}

fn debit_terms() -> Terms {
    terms(
        PaymentMethod::DebitCard,
        1,
        Vec::new(),
        Commission { mdr: Centavos(299), antifraud: Centavos(198), margin: Centavos(100), pix: Centavos(0) },
    )
}

fn shortfall_terms() -> Terms {
    terms(
        PaymentMethod::CreditCard,
        1,
        vec![split(1, 9_999)],
        Commission { mdr: Centavos(299), antifraud: Centavos(198), margin: Centavos(0), pix: Centavos(0) },
    )
}

fn pix_terms() -> Terms {
    let splits = vec![split(1, 2_000), split(2, 1_500), split(3, 500)];
    terms(PaymentMethod::Pix, 1, splits, Commission { pix: Centavos(59), ..Commission::default() })
}

fn terms(method: PaymentMethod, installments: u8, splits: Vec<Split>, commission: Commission) -> Terms {
    Terms { amount: Centavos(10_000), method, installments, splits, commission, settlement_days: 30, initial_fee: None }
}

fn split(number: u32, amount: i64) -> Split {
    Split { recipient: RecipientNumber(number), amount: Centavos(amount) }
}

fn golden(name: &str, record: &Record) -> Vec<u8> {
    let path = folder().join(format!("{name}.hex"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() && !path.exists() {
        std::fs::write(&path, format!("{}\n", hex(&bytes(record)))).expect("the folder can be written");
        std::fs::write(path.with_extension("txt"), readable(record)).expect("the folder can be written");
    }
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let digits: Vec<_> =
        text.trim_end().chars().map(|c| c.to_digit(16).expect("a golden file is hexadecimal")).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// The Record with its bytes in one line.
fn readable(record: &Record) -> String {
    let mut text = String::new();
    for line in format!("{record:#?}").lines() {
        let is_number = line.trim().trim_end_matches(',').bytes().all(|byte| byte.is_ascii_digit());
        text.push_str(&if is_number { format!(" {}", line.trim()) } else { format!("\n{line}") });
    }
    format!("{}\n", text.trim_start())
}

pub(crate) fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", "format-1"].iter().collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
