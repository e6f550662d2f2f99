//! Trial balance: opening, debits, credits and closing of each account.
//!
//! There are more accounts than fit into memory: the sums of all are gathered by ledger, group by
//! group, and then sorted by their names. One group's ids are in memory, to name its accounts.

use std::io;

use derived::balance_files::CarriedFact;
use derived::names::Names;
use ledger::{Account, Balance, GroupNumber, LedgerId, ObjectId, RecipientNumber};

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::table::{Cell, Column, Kind, Rows, column, sum};
use crate::ledger_scope::LedgerScope;
use crate::sorted_sums::{HELD_MAX, SortedSums, account_of_key, key_of_account};

const COLUMNS: &[Column] = &[
    column("ledger", "Razão", Kind::Owner),
    column("type", "Grupo", Kind::Word),
    column("account", "Conta", Kind::Text),
    column("account_name", "Nome da conta", Kind::Text).above(),
    sum("opening", "Saldo inicial"),
    sum("debits", "Débitos"),
    sum("credits", "Créditos"),
    sum("closing", "Saldo final"),
];

/// Types of accounts: the beginning of their names, the type's name, and its name for an
/// accountant.
const ACCOUNT_TYPES: [(&str, &str, &str); 5] = [
    ("Assets:", "assets", "Ativo"),
    ("Liabilities:", "liabilities", "Passivo"),
    ("Equity:", "equity", "Patrimônio líquido"),
    ("Income:", "income", "Receitas"),
    ("Expenses:", "expenses", "Despesas"),
];

/// Fold of the trial balance.
pub(super) struct TrialBalanceReport {
    /// Whether its days begin with the first Record: then what was posted before is of its days.
    is_of_all_days: bool,
    /// Opening, debits and credits of each account, and the ids of ledgers, by [`Place`].
    gathered: SortedSums,
    /// Keys in memory.
    held: usize,
}

impl TrialBalanceReport {
    pub(super) fn new(is_of_all_days: bool) -> Self {
        Self::holding(HELD_MAX, is_of_all_days)
    }

    fn holding(held: usize, is_of_all_days: bool) -> Self {
        Self { is_of_all_days, gathered: SortedSums::holding(held), held }
    }

    fn know(&mut self, ledger: LedgerId, id: ObjectId) -> io::Result<()> {
        self.gathered.add(&Place::Id(ledger, id).key(), [0; 3])
    }

    /// Adds sums of an account before the first day.
    fn open(&mut self, ledger: LedgerId, account: Account, sums: Balance) -> io::Result<()> {
        let sums = if self.is_of_all_days { [0, sums.debits, sums.credits] } else { [sums.net(), 0, 0] };
        self.gathered.add(&Place::Account(ledger, account).key(), sums)
    }

    /// Takes the ids and the postings of a Record.
    fn gather(&mut self, posted: &PostedRecord<'_>, is_before: bool) -> io::Result<()> {
        for (ledger, id) in Names::opened_by(posted.record) {
            self.know(ledger, id)?;
        }
        for entry in posted.record.entries.iter().filter(|entry| posted.scope.takes(entry.ledger())) {
            for posting in entry.postings() {
                let (ledger, account) = posted.scope.shown(entry.ledger(), posting.account);
                let sums = posting.sums();
                match is_before {
                    true => self.open(ledger, account, sums)?,
                    false => {
                        let sums = [0, sums.debits, sums.credits];
                        self.gathered.add(&Place::Account(ledger, account).key(), sums)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The same sums by the outside names of ledger and account.
    fn named(&self, scope: &LedgerScope) -> io::Result<SortedSums> {
        let mut named = SortedSums::holding(self.held);
        let (mut group, mut names) = (None, Names::default());
        for row in self.gathered.rows()? {
            let (key, sums) = row?;
            let place = Place::of_key(&key).ok_or(io::ErrorKind::InvalidData)?;
            if group != place.ledger().group() {
                (group, names) = (place.ledger().group(), Names::default());
            }
            match place {
                Place::Id(ledger, id) => names.insert(ledger, id),
                Place::Account(..) if sums == [0; 3] => {}
                Place::Account(ledger, account) => {
                    let (ledger, account) = scope.names((ledger, account), &names);
                    named.add(&key_of_account(&ledger, &account), sums)?;
                }
            }
        }
        Ok(named)
    }
}

impl Fold for TrialBalanceReport {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn uses_names(&self) -> bool {
        false
    }

    fn take(&mut self, fact: CarriedFact, scope: &LedgerScope) -> io::Result<()> {
        match fact {
            CarriedFact::Ledger(ledger, id) => self.know(ledger, id),
            CarriedFact::Account(ledger, account, sums) if scope.takes(ledger) => {
                let (ledger, account) = scope.shown(ledger, account);
                self.open(ledger, account, sums)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, posted: &PostedRecord<'_>) -> io::Result<()> {
        self.gather(posted, true)
    }

    fn post(&mut self, posted: &PostedRecord<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        self.gather(posted, false)
    }

    fn finish(self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        let named = self.named(ended.scope)?;
        drop(self);
        for row in named.rows()? {
            let (key, [opening, debits, credits]) = row?;
            let (ledger, account) = account_of_key(key)?;
            let name = Cell::account_name(&account);
            let of_type = ACCOUNT_TYPES.iter().find(|(begin, ..)| account.starts_with(begin));
            rows.add(&[
                Cell::Text(ledger),
                of_type.map_or(Cell::Empty, |(_, name, ptbr)| Cell::word(name, ptbr)),
                Cell::Text(account),
                name,
                Cell::Amount(opening),
                Cell::Amount(debits),
                Cell::Amount(credits),
                Cell::Amount(opening + debits - credits),
            ])?;
        }
        Ok(())
    }
}

/// What a key is about. The keys of a group stand together, its ids first; those of the house come
/// first of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The id of a merchant or a recipient.
    Id(LedgerId, ObjectId),
    Account(LedgerId, Account),
}

impl Place {
    fn ledger(self) -> LedgerId {
        match self {
            Self::Id(ledger, _) | Self::Account(ledger, _) => ledger,
        }
    }

    /// Group (u32), 0 for an id and 1 for an account, kind of the ledger (u8), recipient (u32);
    /// then the id, or the code of the account (u16) and its recipient or 0 (u32).
    fn key(self) -> Vec<u8> {
        let (kind, number) = match self.ledger() {
            LedgerId::System => (0, 0),
            LedgerId::Merchant(_) => (1, 0),
            LedgerId::Platform(_) => (2, 0),
            LedgerId::Recipient(_, number) => (3, number.0),
        };
        let mut key = self.ledger().group().unwrap_or_default().0.to_be_bytes().to_vec();
        key.extend([u8::from(matches!(self, Self::Account(..))), kind]);
        key.extend(number.to_be_bytes());
        match self {
            Self::Id(_, id) => key.extend(id.0.to_be_bytes()),
            Self::Account(_, account) => {
                let (code, recipient) = account.code();
                key.extend(code.to_be_bytes());
                key.extend(recipient.unwrap_or_default().0.to_be_bytes());
            }
        }
        key
    }

    fn of_key(key: &[u8]) -> Option<Self> {
        let (group, rest) = key.split_first_chunk()?;
        let ([part, kind], rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (group, number) = (GroupNumber(u32::from_be_bytes(*group)), RecipientNumber(u32::from_be_bytes(*number)));
        let ledger = match kind {
            0 => LedgerId::System,
            1 => LedgerId::Merchant(group),
            2 => LedgerId::Platform(group),
            _ => LedgerId::Recipient(group, number),
        };
        if *part == 0 {
            return Some(Self::Id(ledger, ObjectId(u128::from_be_bytes(rest.try_into().ok()?))));
        }
        let (code, recipient) = rest.split_first_chunk()?;
        let recipient = u32::from_be_bytes(recipient.try_into().ok()?);
        let recipient = Some(RecipientNumber(recipient)).filter(|number| number.0 != 0);
        Account::from_code(u16::from_be_bytes(*code), recipient).map(|account| Self::Account(ledger, account))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use store::cut::Cut;

    use chrono::NaiveDate;
    use ledger::event::{Event, SellerPart, Split, Terms};
    use ledger::fees::{Commission, PaymentMethod, Settings};
    use ledger::house::{HouseAccount, HouseEntryTerms};
    use ledger::id::Fingerprint;
    use ledger::money::Centavos;
    use ledger::record::{Decision, Record};
    use ledger::time::{Month, Timestamp};
    use proptest::prelude::*;
    use store::{Block, BlockHash, Partition, Sequence};
    use wire::timestamp::day_of;

    use super::*;
    use crate::reports::context::ReportContext;
    use crate::reports::maker::ReportMaker;
    use crate::reports::request::{DayOf, Report, ReportFormat, ReportRequest};

    /// What happens next: in a group, of some kind, after some days.
    type Step = (u32, u8, u8);

    /// Records of random merchants and recipients, each with the time of its booking. The order of
    /// ids is not that of groups.
    fn history(steps: &[Step]) -> Vec<(Timestamp, Record)> {
        let (mut at, mut ordinals) = (Month::parse("2026-11").unwrap().begin(), BTreeMap::<u32, (u64, u32)>::new());
        let mut records = Vec::new();
        for (place, &(group, kind, days)) in steps.iter().enumerate() {
            at = at.plus_days(days.into());
            let of = GroupNumber(group);
            let mixed = (place as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            let (ordinal, recipients) = ordinals.entry(group).or_default();
            *ordinal += 1;
            let amount = Centavos(10_000 + place as i64);
            let event = match (*ordinal, kind) {
                (1, _) => Event::MerchantOpened { id: ObjectId(mixed), settings: Settings::default() },
                (_, 0) => {
                    *recipients += 1;
                    let (number, document) = (RecipientNumber(*recipients), Fingerprint(mixed.to_be_bytes()));
                    Event::RecipientRegistered { number, id: ObjectId(mixed), document }
                }
                (_, 1) => {
                    let (debit, credit) = (HouseAccount::BankPix, HouseAccount::Suspense);
                    let terms =
                        HouseEntryTerms { debit, credit, amount, reference: String::new(), effective_day: None };
                    Event::HouseEntryApproved { id: ObjectId(mixed), terms }
                }
                _ => {
                    let split = |number| Split { recipient: RecipientNumber(number), amount: Centavos(10) };
                    let terms = Terms {
                        amount,
                        method: PaymentMethod::Pix,
                        installments: 1,
                        splits: (1..=*recipients).map(split).collect(),
                        commission: Commission { pix: Centavos(99), ..Commission::default() },
                        settlement_days: 0,
                        initial_fee: None,
                    };
                    let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
                    let end_to_end_id = format!("E{place:031}");
                    Event::PixPaid { charge: ObjectId(mixed), terms, seller, end_to_end_id, opened: *ordinal }
                }
            };
            let owner = if matches!(event, Event::HouseEntryApproved { .. }) {
                LedgerId::System
            } else {
                LedgerId::Merchant(of)
            };
            records.push((at, Decision::of(event).into_record(owner, *ordinal, at)));
        }
        records
    }

    /// The report that keeps `held` keys in memory.
    fn streamed(held: usize, records: &[(Timestamp, Record)], request: &ReportRequest) -> String {
        let mut out = Vec::new();
        let fold = Box::new(TrialBalanceReport::holding(held, request.from.is_none()));
        let mut maker =
            ReportMaker::of_fold((request.clone(), ReportFormat::Csv), fold, ReportContext::default(), &mut out)
                .unwrap();
        for (first, (at, record)) in (1..).map(Sequence).zip(records) {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let (partition, previous, records) = (Partition(0), BlockHash::ZERO, vec![bytes]);
            let block = Block { partition, first, booked_at_ms: at.0, previous, records };
            maker.post_block(&block, &Cut::new(vec![Sequence(u64::MAX)])).unwrap();
        }
        maker.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The same, straight from all Records.
    fn folded(records: &[(Timestamp, Record)], request: &ReportRequest) -> String {
        let mut names = Names::default();
        records.iter().for_each(|(_, record)| names.learn(record));
        let mut accounts = BTreeMap::<(String, String), (&str, [i128; 3])>::new();
        for (at, record) in records {
            let day = day_of(at.0);
            if request.to.is_some_and(|to| day > to) {
                continue;
            }
            for entry in &record.entries {
                let (ledger, group) = (entry.ledger(), entry.ledger().group().unwrap_or_default());
                let is_of_platform = matches!(ledger, LedgerId::Platform(_) | LedgerId::System);
                for posting in entry.postings() {
                    let name = match request.ledger.as_deref() {
                        Some("P-all") if is_of_platform => ("P-all".to_owned(), posting.account.kind_name()),
                        Some(wanted) if names.of(ledger) != wanted => continue,
                        _ => (names.of(ledger), posting.account.name(group, |ledger| names.of(ledger))),
                    };
                    let mut sums = Balance::default();
                    sums.post(posting);
                    let (ptbr, of) = accounts.entry(name).or_default();
                    *ptbr = posting.account.name_ptbr();
                    match request.from.is_some_and(|from| day < from) {
                        true => of[0] += sums.net(),
                        false => (of[1], of[2]) = (of[1] + sums.debits, of[2] + sums.credits),
                    }
                }
            }
        }
        accounts.retain(|_, (_, sums)| *sums != [0; 3]);
        let rows = accounts.into_iter().map(|((ledger, account), (ptbr, [opening, debits, credits]))| {
            let of_type = ACCOUNT_TYPES.iter().find(|(begin, ..)| account.starts_with(begin)).unwrap().1;
            format!(
                "{ledger},{of_type},{account},{ptbr},{opening},{debits},{credits},{}\r\n",
                opening + debits - credits
            )
        });
        "ledger,type,account,account_name,opening,debits,credits,closing\r\n".to_owned() + &rows.collect::<String>()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// However few accounts are in memory, the report is what all Records sum to.
        #[test]
        fn the_report_is_the_fold_of_random_records(
            steps in prop::collection::vec((1_u32..5, 0_u8..5, 0_u8..3), 1..120),
            held in 0_usize..40,
            days in prop::option::of((0_u64..60, 0_u64..60)),
            which in 0_usize..6,
        ) {
            let records = history(&steps);
            let begin = NaiveDate::from_ymd_opt(2026, 11, 1).unwrap();
            let day = |count: u64| begin.checked_add_days(chrono::Days::new(count)).unwrap();
            let mut names = Names::default();
            records.iter().for_each(|(_, record)| names.learn(record));
            let first = steps[0].0;
            let ledger = match which {
                0 | 1 => None,
                2 => Some("P-all".to_owned()),
                3 => Some(names.of(LedgerId::Merchant(GroupNumber(first)))),
                4 => Some(names.of(LedgerId::Platform(GroupNumber(first)))),
                _ => Some("P-house".to_owned()),
            };
            let (from, to) = (days.map(|(from, _)| day(from)), days.map(|(from, count)| day(from + count)));
            let request = ReportRequest { report: Report::TrialBalance, ledger, account: None, by: DayOf::Booking, from, to };
            // A ledger that no Record of the days names is refused.
            let opened = day_of(records[0].0.0);
            prop_assume!(which < 3 || to.is_none_or(|to| opened <= to));
            prop_assert_eq!(streamed(held, &records, &request), folded(&records, &request));
        }
    }
}
