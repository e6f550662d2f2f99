//! Records made by hand, also for what has no way from outside: every line of the accounting
//! manual, and so every account.

use books::export::{Exporter, Out, Request};
use ledger::account::Account::{self, *};
use ledger::entry::{Entry, Posting, Side};
use ledger::event::Event;
use ledger::fees::Settings;
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::money::Centavos;
use ledger::record::{Decision, Record};
use ledger::time::Timestamp;
use store::cut::Position;
use store::{Partition, Sequence};

const GROUP: GroupNumber = GroupNumber(6);
const ANA: RecipientNumber = RecipientNumber(1);
pub(crate) const M: LedgerId = LedgerId::Merchant(GROUP);
pub(crate) const R: LedgerId = LedgerId::Recipient(GROUP, ANA);
pub(crate) const P: LedgerId = LedgerId::Platform(GROUP);

type Entries = &'static [(LedgerId, &'static [(Account, i64)])];

/// The manual's table: above zero is a debit.
const MANUAL: &[Entries] = &[
    &[(P, &[(BankSettlement, 900_000), (Capital, -900_000)])],
    &[
        (
            M,
            &[
                (Pending, 5_938),
                (FeeMdr, 299),
                (FeeAntifraud, 198),
                (FeeMargin, 65),
                (ContraSplits, 3_500),
                (SalesCard, -8_000),
                (SalesInitialFee, -2_000),
            ],
        ),
        (R, &[(Pending, 3_500), (SplitsCard, -3_500)]),
        (
            P,
            &[
                (AcquirerReceivable, 9_701),
                (AcquirerMdr, 299),
                (MerchantPending, -5_938),
                (RecipientPending(ANA), -3_500),
                (CommissionMdr, -299),
                (CommissionAntifraud, -198),
                (CommissionMargin, -65),
            ],
        ),
    ],
    &[
        (M, &[(Available, 6_931), (FeePix, 69), (ContraSplits, 1_000), (SalesPix, -8_000)]),
        (R, &[(Available, 1_000), (SplitsPix, -1_000)]),
        (P, &[(BankPix, 8_000), (MerchantAvailable, -6_931), (RecipientAvailable(ANA), -1_000), (CommissionPix, -69)]),
    ],
    // Anticipation, withdrawal requested, taken.
    &[
        (R, &[(Available, 1_952), (FeeAnticipation, 48), (Pending, -2_000)]),
        (P, &[(RecipientPending(ANA), 2_000), (RecipientAvailable(ANA), -1_952), (IncomeAnticipation, -48)]),
    ],
    &[
        (R, &[(ReservedWithdrawal, 2_952), (Available, -2_952)]),
        (P, &[(RecipientAvailable(ANA), 2_952), (RecipientReservedWithdrawal(ANA), -2_952)]),
    ],
    &[
        (R, &[(TransitWithdrawal, 2_952), (ReservedWithdrawal, -2_952)]),
        (P, &[(RecipientReservedWithdrawal(ANA), 2_952), (BankSettlement, -2_952)]),
    ],
    // Cashout created, processed.
    &[
        (M, &[(ReservedCashout, 3_000), (Available, -3_000)]),
        (P, &[(MerchantAvailable, 3_000), (MerchantReservedCashout, -3_000)]),
    ],
    &[
        (M, &[(TransitCashout, 2_900), (FeeCashout, 100), (ReservedCashout, -3_000)]),
        (P, &[(MerchantReservedCashout, 3_000), (BankPix, -2_900), (IncomeCashout, -100)]),
    ],
    // A refund with a take-back, beyond what there is; and its sending.
    &[
        (
            M,
            &[
                (ContraRefunds, 12_000),
                (Pending, -5_938),
                (Available, -3_931),
                (Deficit, -2_131),
                (ReceivableRecipient(ANA), 800),
                (ContraSplits, -800),
            ],
        ),
        (R, &[(SplitReversals, 800), (Clawback, -800)]),
        (
            P,
            &[(MerchantPending, 5_938), (MerchantAvailable, 3_931), (MerchantDeficit, 2_131), (PayersRefunds, -12_000)],
        ),
    ],
    &[(P, &[(PayersRefunds, 12_000), (AcquirerReceivable, -9_701), (BankPix, -2_299)])],
    // The clawback is paid back, and the rest of it given up.
    &[
        (R, &[(Clawback, 700), (Pending, -700)]),
        (M, &[(Available, 700), (ReceivableRecipient(ANA), -700)]),
        (P, &[(RecipientPending(ANA), 700), (MerchantAvailable, -700)]),
    ],
    &[(M, &[(LossClawback, 100), (ReceivableRecipient(ANA), -100)])],
    // A dispute opened and accepted, and what is neither.
    &[
        (M, &[(ReservedDispute, 600), (Available, -600)]),
        (P, &[(MerchantAvailable, 600), (MerchantReservedDispute, -600)]),
    ],
    &[
        (M, &[(ContraChargebacks, 600), (ReservedDispute, -600)]),
        (P, &[(MerchantReservedDispute, 600), (PayersRefunds, -600)]),
    ],
    &[(M, &[(Available, 1), (OtherIncome, -1)]), (P, &[(Losses, 1), (MerchantAvailable, -1)])],
];

/// Where the manual's Records begin: just before midnight in Sao Paulo, at the end of June.
const BEGIN_MS: i64 = 1_782_874_799_999;
/// Between one and the next: five days and a minute, so that they cross months.
const STEP_MS: i64 = 5 * 24 * 60 * 60 * 1000 + 60_000;

pub(crate) fn id(low: u128) -> ObjectId {
    ObjectId(0x019B_796E_4D24_8000_8000_0000_0000_0000 | low)
}

/// The Records that open the merchant and the recipient, then those of the manual, each with its
/// time of booking.
pub(crate) fn manual() -> Vec<(i64, Record)> {
    let mut records: Vec<_> = opened().into_iter().map(|record| (BEGIN_MS, record)).collect();
    records.extend((0..).zip(MANUAL).map(|(place, entries)| (BEGIN_MS + place * STEP_MS, posted(place, entries))));
    records.push((BEGIN_MS + MANUAL.len() as i64 * STEP_MS, returned()));
    records
}

/// The bank sends a withdrawal back. Nobody outside can say so yet: no month that is played has it.
fn returned() -> Record {
    let event = Event::WithdrawalReturned {
        id: id(200),
        amount: Centavos(2_952),
        spans: Vec::new(),
        consumed: Centavos::ZERO,
        notes: "\"; include \"/etc/passwd".to_owned(),
        settlements: Vec::new(),
        bank: None,
        entry: None,
        goodwill: Centavos::ZERO,
    };
    Decision::of(event).into_record(R, 3, Timestamp(BEGIN_MS + MANUAL.len() as i64 * STEP_MS))
}

/// The Records that open the merchant and the recipient.
pub(crate) fn opened() -> [Record; 2] {
    let registered = Event::RecipientRegistered { number: ANA, id: id(2), document: Fingerprint::default() };
    [Event::MerchantOpened { id: id(1), settings: Settings::default() }, registered]
        .map(|event| Decision::of(event).into_record(M, 1, Timestamp(BEGIN_MS)))
}

/// One Record of the manual, asked for by an operator with a name that must not get out of its
/// line.
fn posted(place: i64, entries: Entries) -> Record {
    let entries = entries.iter().map(|(ledger, postings)| {
        let postings = postings.iter().map(|(account, amount)| {
            let side = if *amount > 0 { Side::Debit } else { Side::Credit };
            Posting { account: *account, side, amount: Centavos(amount.abs()) }
        });
        Entry::try_new(*ledger, postings.collect()).unwrap()
    });
    let event = Event::PixPaid {
        charge: id(100 + place as u128),
        terms: ledger::event::Terms {
            amount: Centavos(0),
            method: ledger::fees::PaymentMethod::Pix,
            installments: 1,
            splits: Vec::new(),
            commission: ledger::fees::Commission::default(),
            settlement_days: 0,
            initial_fee: None,
        },
        seller: ledger::event::SellerPart::default(),
        end_to_end_id: "E1\"\n  include \"/etc/passwd\"".to_owned(),
        opened: 1,
    };
    let record = Decision::of(event).into_record(M, 2, Timestamp(BEGIN_MS + place * STEP_MS));
    let operator = Some("=cmd\r\n2026-01-01 open Assets:Gift BRL ; [x]".to_owned());
    Record { operator, entries: entries.collect(), ..record }
}

/// Place of a Record in a journal of one partition.
pub(crate) fn place(sequence: u64) -> Position {
    Position { partition: Partition(0), sequence: Sequence(sequence) }
}

/// Writes Records as an export.
pub(crate) fn export(request: &Request, records: &[(i64, Record)], out: &mut dyn Out) {
    let mut exporter = Exporter::new(request.clone());
    for (at, (booked_at_ms, record)) in (1..).map(place).zip(records) {
        if !exporter.post(at, *booked_at_ms, record, out).unwrap() {
            break;
        }
    }
    exporter.finish(out).unwrap();
}
