//! Exporter: folds the Records of a journal, in order, into an export.

use std::collections::BTreeMap;
use std::io;

use chrono::NaiveDate;
use derived::balance_files::{BooksAsOf, CarriedFact, PendingCards};
use derived::names::Names;
use ledger::source::{self, Source};
use ledger::{Account, Balance, CardBrand, Centavos, Event, LedgerId, Month, ObjectId, Posting, Record, Side};
use store::Block;
use store::cut::{Cut, Position, positions};
use wire::timestamp::{day_of, with_milliseconds};

use super::chart::{Chart, Level};
use super::destination::Out;
use super::ledger_books::{AccountBooks, LedgerBooks, LedgerMovement, Line};
use super::mapped_entries::MappedEntries;
use super::request::Request;
use super::totals::ExportTotals;
use super::writer::{Ledgers, Writer, writer_of};
use crate::error::BooksError;
use crate::labels::{LabelsOf, RowLabeler, RowLabels};
use crate::ledger_scope::LedgerScope;

/// Ledgers, and merchants with their names, that an export of rows keeps in memory: some 5 MB.
const LEDGERS_MAX: usize = 2_048;

/// Folds the Records of a journal, in order, into an export.
#[derive(Default)]
pub struct Exporter {
    request: Request,
    names: Names,
    /// Merchants in the names.
    merchants: usize,
    scope: LedgerScope,
    ledgers: Ledgers,
    /// The writer of the format: from the first day on, or from the beginning for entries with the
    /// codes of another chart.
    writer: Option<Box<dyn Writer>>,
    keeps_balances: bool,
    /// The last Records of the books that it began with.
    counted: Cut,
    /// Latest booking of a Record that belongs to the requested days, in milliseconds since the
    /// Unix epoch.
    through_ms: i64,
    /// The months that were closed, each with the Record that closed it in its partition.
    closed: Vec<(Month, Position)>,
    /// Brands of the cards of pending charges.
    cards: BTreeMap<ObjectId, CardBrand>,
    /// The same of charges that were pending at its beginning, by the Record that opened each.
    pending_cards: PendingCards,
    has_begun: bool,
    labels: Option<RowLabeler>,
    /// The last day so far.
    through: Option<NaiveDate>,
    exported: ExportTotals,
}

impl Exporter {
    /// An export that has no Records yet.
    pub fn new(request: Request) -> Self {
        Self { scope: LedgerScope::new(request.ledger.as_deref()), request, ..Self::default() }
    }

    /// The same export, with the codes of another chart of accounts.
    pub fn mapped(mut self, chart: Chart, level: Level) -> Self {
        let ledger = self.request.ledger.clone().unwrap_or_default();
        self.writer = Some(Box::new(MappedEntries::new(chart, level, ledger)));
        self
    }

    /// The same export, whose rows have the labels that `look_up` finds. They may be erased and
    /// change: the same request may give other bytes later.
    pub fn labelled(mut self, look_up: LabelsOf) -> Self {
        self.labels = Some(RowLabeler::new(look_up));
        self
    }

    /// The same export, which gathers the totals of each account. It must get all Records, also
    /// those before the first requested day, or the balances before it.
    pub fn keeping_balances(mut self) -> Self {
        self.keeps_balances = true;
        self
    }

    /// Whether it needs the balances before its first day; see [`Exporter::keeping_balances`].
    pub fn is_keeping_balances(&self) -> bool {
        self.keeps_balances
    }

    /// Adds the id of a merchant or a recipient. Needed when the first Records are not exported.
    pub fn know(&mut self, ledger: LedgerId, id: ObjectId) {
        self.names.insert(ledger, id);
        self.merchants += usize::from(matches!(ledger, LedgerId::Merchant(_)));
        self.scope.learn(ledger, id);
    }

    /// Whether the id of a ledger is known.
    pub fn knows(&self, ledger: LedgerId) -> bool {
        self.names.knows(ledger)
    }

    /// Forgets the names so far when there are many, where rows need no more than their own: they
    /// must be passed again to [`Exporter::know`].
    pub fn forget_some(&mut self) {
        if self.merchants > LEDGERS_MAX && self.is_of_rows() {
            (self.names, self.merchants) = (Names::default(), 0);
        }
    }

    /// Whether its rows do not depend on those before them: the ledgers so far can be set aside.
    fn is_of_rows(&self) -> bool {
        !self.request.format.is_mapped() && !self.request.format.is_plain_text()
    }

    /// Sets the ledgers so far aside when there are many: the rows that follow begin them again.
    fn set_aside_some(&mut self) -> io::Result<()> {
        if self.ledgers.len() > LEDGERS_MAX && self.is_of_rows() { self.set_aside() } else { Ok(()) }
    }

    /// Sets all ledgers aside; their totals are gathered, where they are wanted.
    fn set_aside(&mut self) -> io::Result<()> {
        let ledgers = std::mem::take(&mut self.ledgers);
        if !self.keeps_balances {
            return Ok(());
        }
        for LedgerBooks { name, accounts, .. } in ledgers.values() {
            accounts.values().try_for_each(|account| self.exported.accounts.add(name, account))?;
        }
        Ok(())
    }

    /// Adds the months that were closed, each with the Record that closed it in its partition.
    /// Needed when the first Records are not exported.
    pub fn know_closed(&mut self, closed: Vec<(Month, Position)>) {
        self.closed = closed;
    }

    /// The one ledger that is asked for; none before its id is known, or when several are.
    pub fn asked(&self) -> Option<LedgerId> {
        self.scope.one()
    }

    /// Adds the balance of an account before the first Record that is exported.
    pub fn open_balance(&mut self, ledger: LedgerId, account: Account, balance: Balance) -> io::Result<()> {
        if !self.scope.takes(ledger) {
            return Ok(());
        }
        self.set_aside_some()?;
        let (shown, amount) = (self.scope.shown_ledger(ledger), Centavos(0));
        let posting = self.shown_posting(Posting { account, side: Side::Debit, amount });
        let books = self.account(shown, &posting);
        books.balance += balance.net();
        books.opening = books.balance;
        Ok(())
    }

    /// Begins with books before the first day. The next block is the one with the last Record of
    /// these books.
    pub fn begin_at(&mut self, before: &BooksAsOf) -> Result<(), BooksError> {
        // Accounts have the names of ledgers that stand behind them.
        for fact in before.ledgers() {
            if let CarriedFact::Ledger(ledger, id) = fact? {
                self.know(ledger, id);
            }
        }
        for fact in before.ledgers() {
            if let CarriedFact::Account(ledger, account, balance) = fact? {
                self.open_balance(ledger, account, balance)?;
            }
        }
        self.pending_cards = before.pending_cards()?;
        self.know_closed(before.closed()?);
        self.pass(before.booked_at_ms());
        self.counted = before.through();
        Ok(())
    }

    /// Whether the card of a charge is known.
    pub fn knows_card(&self, charge: ObjectId) -> bool {
        self.cards.contains_key(&charge)
    }

    /// Adds the cards of the charges that a Record opens, and forgets those that were refused.
    /// Needed when the Records that open charges are not exported.
    pub fn know_cards(&mut self, record: &Record) {
        for event in &record.events {
            match event {
                Event::ChargeOpened { charge, card: Some(card), .. } => drop(self.cards.insert(*charge, card.brand)),
                Event::CardRefused { charge, .. } => drop(self.cards.remove(charge)),
                _ => {}
            }
        }
    }

    /// Brand of the card that a Record captured. A charge is captured once.
    fn brand_of(&mut self, record: &Record) -> Option<CardBrand> {
        let captured = record.events.iter().find_map(|event| match event {
            Event::CardCaptured { charge, opened, brand, .. } => Some((charge, *opened, *brand)),
            _ => None,
        });
        let (charge, opened, by_acquirer) = captured?;
        let known = self.cards.remove(charge);
        by_acquirer.or(known).or_else(|| self.pending_cards.remove(&(record.owner.group()?, opened)))
    }

    /// Exports the next block of the journal through `cut`. False when its day is after the last
    /// requested one.
    pub fn post_block(&mut self, block: &Block, cut: &Cut, out: &mut dyn Out) -> Result<bool, BooksError> {
        let counted = self.counted.of(block.partition);
        let records = positions(block).filter(|(at, _)| at.sequence > counted);
        for (at, bytes) in records.take_while(|(at, _)| cut.contains(*at)) {
            let record = Record::decode(bytes).map_err(|error| BooksError::Decode { at, error })?;
            if !self.post(at, block.booked_at_ms, &record, out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Exports the next Record of the journal. False when its day is after the last requested one.
    pub fn post(&mut self, at: Position, booked_at_ms: i64, record: &Record, out: &mut dyn Out) -> io::Result<bool> {
        for (ledger, id) in Names::opened_by(record) {
            self.know(ledger, id);
        }
        self.know_cards(record);
        let closed = record.events.iter().filter_map(|event| match event {
            Event::PeriodClosed { month, .. } => Some((*month, at)),
            _ => None,
        });
        self.closed.extend(closed);
        let brand = self.brand_of(record);
        let day = self.pass(booked_at_ms);
        if self.request.to.is_some_and(|to| day > to) {
            return Ok(false);
        }
        let is_before = self.request.from.is_some_and(|from| day < from);
        if is_before && !self.request.format.is_plain_text() && !self.keeps_balances {
            return Ok(true);
        }
        if !is_before {
            self.begin(day, out)?;
        }
        self.set_aside_some()?;
        let mut of_ledgers: BTreeMap<LedgerId, Vec<usize>> = BTreeMap::new();
        for (place, entry) in record.entries.iter().enumerate().filter(|(_, entry)| self.scope.takes(entry.ledger())) {
            of_ledgers.entry(self.scope.shown_ledger(entry.ledger())).or_default().push(place);
        }
        if is_before {
            for (ledger, place) in of_ledgers.iter().flat_map(|(ledger, places)| places.iter().map(|of| (*ledger, *of)))
            {
                for posting in record.entries[place].postings() {
                    let posting = self.shown_posting(*posting);
                    self.account(ledger, &posting).open(&posting);
                }
            }
        } else if !of_ledgers.is_empty() {
            self.post_lines(at, (booked_at_ms, day), (record, brand), of_ledgers, out)?;
        }
        Ok(true)
    }

    /// Exports the lines of a Record, ledger by ledger; for each ledger the places of its entries.
    fn post_lines(
        &mut self,
        at: Position,
        (booked_at_ms, day): (i64, NaiveDate),
        (record, brand): (&Record, Option<CardBrand>),
        of_ledgers: BTreeMap<LedgerId, Vec<usize>>,
        out: &mut dyn Out,
    ) -> io::Result<()> {
        let (effective_at, effective_day) = (record.takes_effect_at(), day_of(record.takes_effect_at().0));
        let is_closed_by = |by: &Position| by.partition == at.partition && by.sequence < at.sequence;
        let is_late = self.closed.iter().any(|(month, by)| effective_at.month() <= *month && is_closed_by(by));
        let texts = [with_milliseconds(booked_at_ms), with_milliseconds(effective_at.0)];
        let [date, effective_date, owner] = [day.to_string(), effective_day.to_string(), self.names.of(record.owner)];
        let sources = source::of_entries(record);
        let of_source = |source: &Source| self.labels.as_mut().map(|labels| labels.of(&source.objects)).transpose();
        let labels = sources.iter().map(of_source).collect::<io::Result<Vec<_>>>()?;
        for (ledger, places) in of_ledgers {
            let mut lines = Vec::new();
            for place in places {
                for (line, posting) in (1..).zip(record.entries[place].postings()) {
                    let posting = self.shown_posting(*posting);
                    self.account(ledger, &posting).count(&posting);
                    self.exported.count(&posting);
                    let labels = labels[place].as_ref().map(RowLabels::values).unwrap_or_default();
                    lines.push(Line { entry: place + 1, line, source: &sources[place], labels, posting });
                }
            }
            let movement = LedgerMovement {
                at,
                booked_at_ms,
                booked_at: &texts[0],
                effective_at_ms: effective_at.0,
                is_late,
                effective_at: &texts[1],
                day,
                date: &date,
                effective_day,
                effective_date: &effective_date,
                record,
                brand,
                owner: &owner,
                lines,
            };
            self.write(ledger, &movement, out)?;
        }
        Ok(())
    }

    /// Notes that the journal reaches this time, and gives its day.
    pub fn pass(&mut self, booked_at_ms: i64) -> NaiveDate {
        let day = day_of(booked_at_ms);
        self.through = self.through.max(Some(day));
        if self.request.to.is_none_or(|to| day <= to) {
            self.through_ms = self.through_ms.max(booked_at_ms);
        }
        day
    }

    /// Ends the export: writes the closing balances, and gives the totals.
    pub fn finish(mut self, out: &mut dyn Out) -> Result<ExportTotals, BooksError> {
        if let Some(missing) = self.scope.missing() {
            return Err(BooksError::NoLedger(missing.to_owned()));
        }
        let last = self.request.to.into_iter().chain(self.through).min().max(self.request.from).unwrap_or_default();
        self.begin(self.request.from.unwrap_or(last), out)?;
        if let Some(writer) = self.writer.take() {
            writer.finish(&mut self.ledgers, (last, self.through_ms), out)?;
        }
        self.set_aside()?;
        Ok(self.exported)
    }

    /// A posting under the account that stands for its own.
    fn shown_posting(&self, posting: Posting) -> Posting {
        Posting { account: self.scope.shown_account(posting.account), ..posting }
    }

    /// The books of a ledger, and the names that their accounts have.
    fn ledger(&mut self, ledger: LedgerId) -> (&mut LedgerBooks, &LedgerScope, &Names) {
        let Self { ledgers, scope, names, .. } = self;
        let books = ledgers.entry(ledger).or_insert_with(|| LedgerBooks {
            ledger,
            name: scope.ledger_name(ledger, names),
            accounts: BTreeMap::new(),
            has_begun: false,
            month: None,
            tags: Vec::new(),
        });
        (books, scope, names)
    }

    fn account(&mut self, ledger: LedgerId, posting: &Posting) -> &mut AccountBooks {
        let (books, scope, names) = self.ledger(ledger);
        books.accounts.entry(posting.account).or_insert_with(|| AccountBooks {
            name: scope.account_name((ledger, posting.account), names),
            balance: 0,
            opening: 0,
            moved: Balance::default(),
            is_declared: false,
        })
    }

    /// Writes the heads of the files and the balances brought forward, before the first row.
    fn begin(&mut self, day: NaiveDate, out: &mut dyn Out) -> io::Result<()> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        if let Some(wanted) = self.scope.found {
            self.ledger(wanted);
        }
        if self.writer.is_none() {
            self.writer = Some(writer_of(&self.request, self.labels.is_some())?);
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.begin(&mut self.ledgers, day, out))
    }

    fn write(&mut self, ledger: LedgerId, movement: &LedgerMovement<'_>, out: &mut dyn Out) -> io::Result<()> {
        let writer = self.writer.as_mut().expect("the export has begun");
        let books = self.ledgers.get_mut(&ledger).expect("its accounts were looked at");
        writer.post(books, movement, out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use derived::balance_files::{AsOf, BalanceFiles, BooksAsOf};
    use ledger::GroupNumber;
    use ledger::event::{CardFace, CashoutFailure, SellerPart, Terms};
    use ledger::fees::{Commission, PaymentMethod};
    use ledger::house::{HouseAccount, HouseEntryTerms};
    use ledger::period::MonthEnd;
    use ledger::record::Decision;
    use store::{Head, Part, Partition, Sequence, SledOptions, SledStore};

    use super::*;
    use crate::export::{Format, Stream};

    /// It keeps few merchants in memory, and their rows and totals are the same.
    #[test]
    fn few_ledgers_are_kept_for_rows() {
        let request = Request { ledger: None, format: Format::Csv, from: None, to: None };
        let at = Month::parse("2026-11").expect("a month").begin();
        let export = |mut exporter: Exporter| {
            let (mut out, mut ledgers_max) = (Stream(Vec::new()), 0);
            let groups = (1..=2 * LEDGERS_MAX as u32).chain(1..=2).map(GroupNumber);
            for (sequence, group) in (1..).zip(groups) {
                exporter.forget_some();
                let ledger = LedgerId::Merchant(group);
                if !exporter.knows(ledger) {
                    exporter.know(ledger, ObjectId(u128::from(group.0)));
                }
                let (id, failure) = (ObjectId(1), CashoutFailure::NotCarriedOut);
                let event = Event::CashoutFailed { id, amount: Centavos(5), failure, notes: None };
                let record = Decision::of(event).into_record(ledger, sequence, at);
                exporter.post(place(sequence), at.0, &record, &mut out).expect("memory");
                ledgers_max = ledgers_max.max(exporter.ledgers.len()).max(exporter.merchants);
            }
            let totals = exporter.finish(&mut out).expect("memory").accounts;
            let totals: io::Result<Vec<_>> = totals.iter().expect("a file").collect();
            (String::from_utf8(out.0).expect("UTF-8"), ledgers_max, totals.expect("totals"))
        };
        let (rows, ledgers_max, totals) = export(Exporter::new(request.clone()));
        assert!(rows.lines().count() > 2 * LEDGERS_MAX && totals.is_empty(), "{}", rows.lines().count());
        assert!(ledgers_max <= LEDGERS_MAX + 2, "{ledgers_max}");
        let (same, ledgers_max, totals) = export(Exporter::new(request).keeping_balances());
        assert!(rows == same && ledgers_max <= LEDGERS_MAX + 2, "{ledgers_max}");
        let mut of_rows: BTreeMap<(&str, &str), [i128; 2]> = BTreeMap::new();
        for cells in rows.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>()) {
            let of = of_rows.entry((cells[7], cells[10])).or_default();
            of[0] += cells[11].parse::<i128>().expect("a debit");
            of[1] += cells[12].parse::<i128>().expect("a credit");
        }
        let of_rows: Vec<_> = of_rows.into_iter().map(|((ledger, account), of)| (ledger, account, of)).collect();
        let totals: Vec<_> = totals.iter().map(|of| (&*of.ledger, &*of.account, [of.debits, of.credits])).collect();
        assert!(totals == of_rows && totals.len() >= 4 * LEDGERS_MAX, "{} {}", totals.len(), of_rows.len());
    }

    fn place(sequence: u64) -> Position {
        Position { partition: Partition(0), sequence: Sequence(sequence) }
    }

    /// What takes effect in a month that was closed before it was booked is late.
    #[test]
    fn a_row_of_a_closed_month_is_late() {
        let request = Request { ledger: None, format: Format::Jsonl, from: None, to: None };
        let (mut exporter, mut out) = (Exporter::new(request), Stream(Vec::new()));
        let month = Month::parse("2026-11").expect("a month");
        let day = |of: Month| Some(of.begin().plus_days(3).day());
        let entry = |effective_day| {
            let (debit, credit) = (HouseAccount::BankPix, HouseAccount::Suspense);
            let terms = HouseEntryTerms { debit, credit, amount: Centavos(5), reference: String::new(), effective_day };
            Event::HouseEntryApproved { id: ObjectId(1), terms }
        };
        let end = MonthEnd { through: 0, head: [0; 32].into(), totals: [0; 32].into() };
        let events =
            [entry(day(month)), Event::PeriodClosed { month, end }, entry(day(month)), entry(day(month.next()))];
        let booked_at = month.next().begin().plus_days(5);
        for (sequence, event) in (1..).zip(events) {
            let record = Decision::of(event).into_record(LedgerId::System, sequence, booked_at);
            exporter.post(place(sequence), booked_at.0, &record, &mut out).expect("memory");
        }
        let text = String::from_utf8(out.0).expect("UTF-8");
        let late: Vec<_> = text.lines().map(|line| line.contains(r#""late":"late""#)).collect();
        assert_eq!(late, [false, false, true, true, false, false], "{text}");
        assert_eq!(text.matches(r#""effective_date":"2026-11-04""#).count(), 4, "{text}");
    }

    /// A beginning at a balance file knows closed months and cards of pending charges.
    #[test]
    fn late_rows_and_cards_are_known_after_a_beginning_at_a_balance_file() {
        let month = Month::parse("2026-11").expect("a month");
        let card = CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa };
        let terms = Terms {
            amount: Centavos(10_000),
            method: PaymentMethod::DebitCard,
            installments: 1,
            splits: Vec::new(),
            commission: Commission::default(),
            settlement_days: 0,
            initial_fee: None,
        };
        let (charge, end) = (ObjectId(7), MonthEnd { through: 0, head: [0; 32].into(), totals: [0; 32].into() });
        let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
        let (day, house, merchant) =
            (month.begin().plus_days(3).day(), LedgerId::System, LedgerId::Merchant(GroupNumber(1)));
        let debit = HouseAccount::BankPix;
        let entry = HouseEntryTerms {
            debit,
            credit: HouseAccount::Suspense,
            amount: Centavos(5),
            reference: String::new(),
            effective_day: Some(day),
        };
        let (due, settings) = (month.begin().plus_days(40).minute(), Default::default());
        let events = [
            (0, merchant, Event::MerchantOpened { id: ObjectId(1), settings }),
            (
                0,
                merchant,
                Event::ChargeOpened { charge, terms: terms.clone(), card: Some(card), expires_at: None, rail: None },
            ),
            (0, house, Event::PeriodClosed { month, end }),
            (1, house, Event::HouseEntryApproved { id: ObjectId(1), terms: entry }),
            (
                1,
                merchant,
                Event::CardCaptured {
                    charge,
                    terms,
                    acquirer_mdr: Centavos(9),
                    seller,
                    seller_due: due,
                    splits_due: due,
                    opened: 2,
                    brand: None,
                },
            ),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let store = SledStore::open(folder.path(), &SledOptions::default()).expect("a store");
        let part = Part::take(Arc::new(store), Partition(0)).expect("its partition");
        let first_day = month.next().begin().plus_days(5);
        let mut ordinals = BTreeMap::new();
        for (after, owner, event) in events {
            let Head { next: first, hash: previous, .. } = part.head().expect("a head");
            let ordinal = *ordinals.entry(owner).and_modify(|ordinal| *ordinal += 1).or_insert(1);
            let (booked_at, mut bytes) = (first_day.plus_days(after), Vec::new());
            Decision::of(event).into_record(owner, ordinal, booked_at).encode(&mut bytes);
            let records = vec![bytes];
            let block = Block { partition: Partition(0), first, booked_at_ms: booked_at.0, previous, records };
            part.append(&block).expect("a durable block");
        }
        let files = BalanceFiles::open(part.clone()).expect("files");

        let from = Some(day_of(first_day.plus_days(1).0));
        let export = |through: u64| {
            let request = Request { ledger: None, format: Format::Jsonl, from, to: None };
            let (mut exporter, mut out) = (Exporter::new(request), Stream(Vec::new()));
            let mut file = tempfile::tempfile().expect("a file");
            files.as_of(Sequence(through)).expect("balances").write(&mut file).expect("a balance file");
            let as_of = AsOf::of_file(file).expect("a balance file");
            let first = as_of.through().max(Sequence::FIRST);
            assert_eq!(as_of.through().0, through);
            let as_of = BooksAsOf::new(vec![(Partition(0), as_of)]);
            exporter.begin_at(&as_of).expect("a beginning");
            for block in part.blocks(first) {
                exporter.post_block(&block.expect("a block"), &Cut::new(vec![Sequence(5)]), &mut out).expect("memory");
            }
            String::from_utf8(out.0).expect("UTF-8")
        };
        let whole = export(0);
        assert!(whole.contains(r#""late":"late""#) && whole.contains(r#""brand":"visa""#), "{whole}");
        for through in 1..=3 {
            assert_eq!(export(through), whole, "from Record {through}");
        }
    }
}
