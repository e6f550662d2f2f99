//! Webhook events of each Record.

use crate::world::World;
use ledger::event::{AnticipatedSplit, CashoutFailure, DisputeKind, Event, SellerDraw, SplitKey};
use ledger::fees::{Commission, PaymentMethod};
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::merchant::{PreviousSecret, SECRET_OVERLAP_MS};
use ledger::money::{Centavos, Rate};
use ledger::record::Decision;
use ledger::recurrence::{CycleCounts, CycleOutcome, CycleRetry, SubscriptionStanding, SubscriptionStatus};
use ledger::refund::RefundDecision;
use ledger::time::{Minute, Timestamp};
use ledger::webhook_events::{DecidedRefund, Subject, WebhookEvent, WebhookObject, webhook_events};

fn described(events: &[WebhookEvent]) -> String {
    let lines = events.iter().map(|event| {
        let about = match event.subject() {
            Subject::Object(_) => String::new(),
            Subject::Recipient(number) => format!(" {}", number.0),
        };
        let sums = match &event.about {
            WebhookObject::Splits(_, available) => {
                let count = available.count.map_or("?".to_owned(), |count| count.to_string());
                format!(" {count} {}{}", available.amount, if available.charge.is_some() { " of a charge" } else { "" })
            }
            _ => String::new(),
        };
        format!("{}{about}{sums}", event.kind.name())
    });
    lines.collect::<Vec<_>>().join("; ")
}

#[test]
fn what_a_step_tells() {
    let cases = [
        ("", "open-pix p 8000 ana=1000", ""),
        (
            "open-pix p 8000 bia=700 ana=1000 bia=300",
            "pay p",
            "charge.paid; split.available 1 1 1000 of a charge; split.available 2 2 1000 of a charge",
        ),
        ("open-pix p 8000 ana=1000", "cancel p", "charge.cancelled"),
        ("open-card c 10000 1x ana=2000", "capture c", "charge.paid"),
        ("open-card c 10000 1x ana=2000", "silent c", ""),
        ("open-card c 10000 1x ana=2000", "refuse c", "charge.refused"),
        ("open-card c 10000 1x ana=2000; capture c; wait 30d", "mature merchant", ""),
        ("open-card c 10000 1x ana=2000; capture c; wait 30d", "mature ana", "split.available 1 ? 2000"),
        ("register eva", "submit eva", ""),
        ("register eva; submit eva", "approve eva", "recipient.approved 7"),
        ("register eva", "reject eva", "recipient.rejected 7"),
        ("register eva; reject eva", "register eva", ""),
        ("make-key k", "point-key k https://example.com", ""),
        ("make-key k", "rotate-key k new", ""),
    ];
    for (given, step, expected) in cases {
        let mut world = World::new();
        for step in given.split("; ").filter(|step| !step.is_empty()) {
            world.step(step).unwrap_or_else(|refusal| panic!("{given}: {step}: {refusal}"));
        }
        let before = world.journal.len();
        world.step(step).unwrap_or_else(|refusal| panic!("{given}: {step}: {refusal}"));
        let found: Vec<WebhookEvent> = world.journal[before..].iter().flat_map(webhook_events).collect();
        assert_eq!(described(&found), expected, "{given}; {step}");
    }
}

#[test]
fn what_moves_money_out_is_told() {
    let (id, charge) = (ObjectId(7), ObjectId(9));
    let (merchant, ana) = (LedgerId::Merchant(GroupNumber(1)), LedgerId::Recipient(GroupNumber(1), RecipientNumber(2)));
    let number = RecipientNumber(2);
    let (amount, notes, drawn) = (Centavos(500), || "x".to_owned(), SellerDraw::default());
    let split = |index| AnticipatedSplit {
        split: SplitKey { charge, index },
        due: Minute(5),
        amount: Centavos(1_000),
        fee: Centavos(24),
    };
    let cases = [
        (merchant, Event::BankAccountChanged { number, active: true }, "recipient.bank_account_changed 2"),
        (merchant, Event::BankAccountChanged { number, active: false }, ""),
        (merchant, Event::BankAccountApproved { number }, "recipient.bank_account_approved 2"),
        (merchant, Event::BankAccountRejected { number, notes: notes() }, "recipient.bank_account_rejected 2"),
        (ana, Event::WithdrawalApproved { id, rail: None }, ""),
        (
            ana,
            Event::WithdrawalPaid { id, amount, transfer_id: notes(), returnable_until: Timestamp(0), bank: None },
            "withdrawal.approved",
        ),
        (ana, Event::WithdrawalRejected { id, amount, notes: notes(), by_merchant: false }, "withdrawal.rejected"),
        (ana, Event::WithdrawalRejected { id, amount, notes: notes(), by_merchant: true }, "withdrawal.rejected"),
        (
            merchant,
            Event::AdjustmentCreated { id, amount, reference: notes(), target: None, is_beside_splits: false },
            "adjustment.created",
        ),
        (merchant, Event::RecipientFrozen { number, reason: notes() }, ""),
        (merchant, Event::RecipientUnfrozen { number, reason: notes() }, ""),
        (
            ana,
            Event::WithdrawalReturned {
                id,
                amount,
                spans: vec![],
                consumed: Centavos(0),
                notes: notes(),
                settlements: vec![],
                bank: None,
                entry: None,
                goodwill: Centavos(0),
            },
            "withdrawal.rejected",
        ),
        (
            ana,
            Event::SplitsAnticipated {
                id,
                splits: vec![split(0), split(1)],
                target_days: 2,
                rate: Rate::basis_points(238),
                settlement_day: 20_000,
            },
            "anticipation.completed; split.available 2 2 1952",
        ),
        (
            merchant,
            Event::CashoutProcessed {
                id,
                amount,
                fee: Centavos(100),
                end_to_end_id: notes(),
                transfer_id: notes(),
                bank: None,
            },
            "cashout.processed",
        ),
        (
            merchant,
            Event::CashoutFailed { id, amount, failure: CashoutFailure::NotTaken, notes: None },
            "cashout.failed",
        ),
        (
            merchant,
            Event::RefundApproved {
                id,
                charge,
                method: PaymentMethod::Pix,
                amount,
                drawn,
                seller_due: None,
                commission: Commission::default(),
                commission_pending: false,
                take_backs: vec![],
                commission_through: Centavos(0),
            },
            "refund.approved; charge.refunded",
        ),
        (merchant, Event::RefundRejected { id, charge, amount, notes: notes() }, "refund.rejected"),
        (
            merchant,
            Event::RefundFailed {
                id,
                charge,
                method: PaymentMethod::Pix,
                amount,
                notes: notes(),
                to_pending: Centavos(0),
                seller_due: None,
                to_available: amount,
                give_backs: vec![],
                commission: Commission::default(),
                charged: SellerDraw::default(),
                commission_through: Centavos(0),
            },
            "refund.failed",
        ),
        (
            merchant,
            Event::DisputeOpened {
                id,
                charge,
                kind: DisputeKind::Med,
                amount,
                drawn,
                seller_due: None,
                window_ends: Timestamp(0),
                exceeds: None,
                case: None,
            },
            "dispute.opened",
        ),
        (merchant, Event::DisputeAccepted { id, charge, method: PaymentMethod::Pix, amount }, "dispute.accepted"),
        (
            merchant,
            Event::DisputeReversed {
                id,
                charge,
                method: PaymentMethod::Pix,
                amount,
                to_pending: Centavos::ZERO,
                seller_due: None,
                to_available: amount,
                key: Fingerprint([7; 16]),
                entry: None,
            },
            "dispute.reversed",
        ),
        (
            merchant,
            Event::DisputeReleased {
                id,
                charge,
                amount,
                to_pending: Centavos(0),
                seller_due: None,
                to_available: amount,
                accepted: None,
                notes: None,
            },
            "dispute.released",
        ),
        (
            merchant,
            Event::DisputeReleased {
                id,
                charge,
                amount,
                to_pending: Centavos(0),
                seller_due: None,
                to_available: amount,
                accepted: Some(amount),
                notes: None,
            },
            "",
        ),
        (merchant, Event::PayerRepaid { id, charge, method: PaymentMethod::Pix, amount, is_unordered: false }, ""),
        (merchant, Event::LatePixReceived { charge, amount, end_to_end_id: notes(), id: Some(id), key: None }, ""),
    ];
    for (owner, event, expected) in cases {
        let mut record = Decision::default().into_record(owner, 1, Timestamp(1_800_000_000_000));
        record.events.push(event);
        let found = webhook_events(&record);
        assert_eq!(described(&found), expected);
        // A body shows what the Record says of the refund.
        if let (true, Some(event)) = (expected.starts_with("refund."), found.first()) {
            let decision = match expected {
                "refund.rejected" => RefundDecision::Rejected { notes: notes() },
                "refund.failed" => RefundDecision::Failed { notes: notes() },
                _ => RefundDecision::Approved,
            };
            let refund = DecidedRefund { id, charge, amount, decision };
            assert_eq!(event.about, WebhookObject::Refund(refund));
        }
        let subjects: Vec<_> = found.iter().map(WebhookEvent::subject).collect();
        match subjects.as_slice() {
            [] => assert_eq!(expected, ""),
            [first, rest @ ..] => {
                let about = match expected.split_once('.').map(|(noun, _)| noun) {
                    Some("recipient") => Subject::Recipient(number),
                    Some("refund") => Subject::Object(charge),
                    _ => Subject::Object(id),
                };
                assert_eq!(*first, about, "{expected}");
                let is_refund = expected.ends_with("charge.refunded");
                let second = if is_refund { Subject::Object(charge) } else { Subject::Recipient(number) };
                assert!(rest.iter().all(|subject| *subject == second), "{expected}");
            }
        }
    }
}

#[test]
fn the_turns_of_a_subscription_are_told() {
    let standing = |status, is_over: bool, is_retried: bool| SubscriptionStanding {
        status,
        next_cycle_at: (!is_over).then_some(Timestamp(9)),
        counts: Some(CycleCounts {
            charged: 1,
            retries: Vec::from_iter(is_retried.then_some(CycleRetry {
                cycle: 1,
                first_at: Timestamp(0),
                at: Timestamp(1),
            })),
            ..CycleCounts::default()
        }),
        ..SubscriptionStanding::default()
    };
    let id = ObjectId(7);
    use SubscriptionStatus::{Active, Completed, PastDue};
    for (outcome, standing, expected) in [
        (CycleOutcome::Paid, standing(Active, false, false), "subscription.renewed"),
        (CycleOutcome::Paid, standing(Completed, true, false), "subscription.completed"),
        (CycleOutcome::Paid, standing(PastDue, true, false), "subscription.renewed; subscription.past_due"),
        (CycleOutcome::Refused, standing(Active, false, true), "subscription.charge_failed"),
        (CycleOutcome::Refused, standing(PastDue, false, false), "subscription.past_due"),
        (CycleOutcome::Unpaid, standing(PastDue, true, false), "subscription.past_due"),
        (CycleOutcome::NotBillable, standing(PastDue, true, false), "subscription.past_due"),
    ] {
        let event = Event::SubscriptionAdvanced { id, charge: None, outcome, standing };
        let record = Decision::of(event).into_record(LedgerId::Merchant(GroupNumber(1)), 1, Timestamp(0));
        assert_eq!(described(&webhook_events(&record)), expected, "{outcome:?}");
    }
}

#[test]
fn the_secrets_before_sign_for_a_day() {
    let mut world = World::new();
    for step in ["make-key k", "rotate-key k new", "wait 1h", "rotate-key k newer"] {
        world.step(step).expect("every step is allowed");
    }
    let key = world.merchant.api_keys().values().next().expect("a key");
    let until = world.now.plus_ms(SECRET_OVERLAP_MS);
    assert_eq!(key.webhook_secret, b"newer");
    let [newest, oldest] = &key.previous_secrets[..] else { panic!("{:?}", key.previous_secrets) };
    assert_eq!(newest, &PreviousSecret { sealed: b"new".to_vec(), until });
    assert_eq!(oldest.until, until.plus_ms(-60 * 60 * 1000));
    for step in ["wait 1d", "rotate-key k newest"] {
        world.step(step).expect("every step is allowed");
    }
    let key = world.merchant.api_keys().values().next().expect("a key");
    assert_eq!(key.previous_secrets.len(), 1, "the others are forgotten");
}
