//! Fees for invoices: charged and returned fees of each merchant by month, component and rate. A
//! month is that of the effect: of the payment, as its acquirer or institution says.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use derived::balance_files::BooksAsOf;
use ledger::fees::Commission;
use ledger::{Centavos, Event, GroupNumber, LedgerId, ObjectId, PaymentMethod, Rate, Settings, Terms};
use strum::IntoStaticStr;

use super::fold::{Fold, PostedRecord, ReportSpan};
use super::table::{Cell, Column, Kind, Rows, column, sum};

const COLUMNS: &[Column] = &[
    column("month", "Mês", Kind::Word),
    column("merchant", "Lojista", Kind::Owner),
    column("component", "Tarifa", Kind::Word),
    column("rate", "Taxa (%)", Kind::Rate),
    column("each", "Valor unitário", Kind::Amount),
    column("base", "Base", Kind::Amount),
    column("count", "Quantidade", Kind::Count),
    sum("volume", "Vendas (uma vez)"),
    sum("charged", "Cobrado"),
    sum("returned", "Reembolsado"),
    sum("net", "Líquido"),
];

/// Part of what the platform charges. The order is that of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum Component {
    Mdr,
    Antifraud,
    Margin,
    Pix,
    Cashout,
    Anticipation,
}

impl Component {
    fn name(self) -> &'static str {
        self.into()
    }

    fn name_ptbr(self) -> &'static str {
        match self {
            Self::Mdr => "MDR",
            Self::Antifraud => "Antifraude",
            Self::Margin => "Tarifa da plataforma",
            Self::Pix => "PIX",
            Self::Cashout => "Cashout",
            Self::Anticipation => "Antecipação",
        }
    }
}

/// The price of a fee: a rate, an amount for each, or neither where no fact says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Price {
    Unknown,
    Rate(Rate),
    Each(Centavos),
}

type Key = (String, GroupNumber, Component, Price);

#[derive(Clone, Copy, Debug, Default)]
struct ChargedSums {
    base: i128,
    count: u64,
    volume: i128,
    charged: i128,
    returned: i128,
}

/// Fold of the fees.
#[derive(Default)]
pub(super) struct Fees {
    /// Settings of each merchant, from here on.
    settings: BTreeMap<GroupNumber, Settings>,
    /// Settings under which pending charges were opened.
    opened: BTreeMap<ObjectId, Settings>,
    /// Charges that were pending before the first Record and are no longer, by the ordinal of the
    /// Record that opened them.
    ended: BTreeSet<(GroupNumber, u64)>,
    sums: BTreeMap<Key, ChargedSums>,
}

impl Fees {
    /// Follows settings and pending charges: a charge has the rates of its opening.
    fn follow(&mut self, group: GroupNumber, event: &Event, before: Option<&BooksAsOf>) -> io::Result<()> {
        match event {
            Event::MerchantOpened { settings, .. } | Event::MerchantChanged { settings, .. } => {
                self.settings.insert(group, *settings);
            }
            Event::ChargeOpened { charge, .. } => {
                let settings = self.settings(group, before)?;
                self.opened.insert(*charge, settings);
            }
            Event::CardRefused { charge, opened, .. } | Event::PixCancelled { charge, opened, .. } => {
                self.forget(group, *charge, *opened);
            }
            _ => {}
        }
        Ok(())
    }

    /// A charge is not pending any more.
    fn forget(&mut self, group: GroupNumber, charge: ObjectId, opened: u64) {
        if self.opened.remove(&charge).is_none() {
            self.ended.insert((group, opened));
        }
    }

    /// The settings of a merchant as of the last Record.
    fn settings(&mut self, group: GroupNumber, before: Option<&BooksAsOf>) -> io::Result<Settings> {
        if let Some(settings) = self.settings.get(&group) {
            return Ok(*settings);
        }
        let found = before.map(|before| before.settings(group)).transpose().map_err(io::Error::other)?;
        let settings = found.and_then(|mut all| all.pop()).map(|(_, settings)| settings).unwrap_or_default();
        self.settings.insert(group, settings);
        Ok(settings)
    }

    /// The settings under which a charge was opened that was paid now; `None` if it was not
    /// pending.
    fn end(
        &mut self,
        group: GroupNumber,
        (charge, opened): (ObjectId, u64),
        before: Option<&BooksAsOf>,
    ) -> io::Result<Option<Settings>> {
        let known = self.opened.remove(&charge);
        let Some(before) = before.filter(|_| known.is_none()) else { return Ok(known) };
        let is_new = self.ended.insert((group, opened));
        let found = is_new.then(|| before.settings_of_pending(group, opened)).transpose().map_err(io::Error::other)?;
        Ok(found.flatten())
    }

    fn charge_of(&mut self, month: &str, group: GroupNumber, terms: &Terms, settings: Option<Settings>) {
        let Commission { mdr, antifraud, margin, pix } = terms.commission;
        let rate = |of: fn(&Settings, &Terms) -> Rate| {
            settings.map_or(Price::Unknown, |of_open| Price::Rate(of(&of_open, terms)))
        };
        let is_on_seller = settings.is_some_and(|settings| settings.options.mdr_on_seller_gross);
        let mdr_base = if is_on_seller { terms.seller_gross() } else { terms.amount };
        let seller = terms.seller_gross();
        for (component, price, base, fee) in [
            (Component::Mdr, rate(mdr_rate), mdr_base, mdr),
            (Component::Antifraud, Price::Each(antifraud), terms.amount, antifraud),
            (Component::Margin, rate(|settings, _| settings.fees.margin), seller, margin),
            (Component::Pix, rate(|settings, _| settings.fees.pix), seller, pix),
        ] {
            let is_of_pix = component == Component::Pix;
            if is_of_pix != terms.method.is_card() {
                // Of the fees of one charge, one has its amount as its volume.
                let is_first = matches!(component, Component::Mdr | Component::Pix);
                let volume = if is_first { terms.amount } else { Centavos::ZERO };
                self.add((month.to_owned(), group, component, price), (base, volume), fee);
            }
        }
    }

    fn add(&mut self, key: Key, (base, volume): (Centavos, Centavos), fee: Centavos) {
        let sums = self.sums.entry(key).or_default();
        sums.base += i128::from(base.0);
        sums.volume += i128::from(volume.0);
        sums.count += 1;
        sums.charged += i128::from(fee.0);
    }

    /// Counts commission that a refund gives back, or takes again.
    fn give_back(&mut self, month: &str, group: GroupNumber, commission: &Commission, times: i128) {
        let Commission { mdr, antifraud, margin, pix } = *commission;
        let parts = [
            (Component::Mdr, mdr),
            (Component::Antifraud, antifraud),
            (Component::Margin, margin),
            (Component::Pix, pix),
        ];
        for (component, fee) in parts.into_iter().filter(|(_, fee)| !fee.is_zero()) {
            let key = (month.to_owned(), group, component, Price::Unknown);
            self.sums.entry(key).or_default().returned += times * i128::from(fee.0);
        }
    }
}

fn mdr_rate(settings: &Settings, terms: &Terms) -> Rate {
    match terms.method {
        PaymentMethod::DebitCard => settings.fees.mdr_1x,
        PaymentMethod::CreditCard | PaymentMethod::Pix => settings.fees.mdr(terms.installments),
    }
}

impl Fold for Fees {
    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn open(&mut self, posted: &PostedRecord<'_>) -> io::Result<()> {
        let Some(group) = posted.record.owner.group() else { return Ok(()) };
        for event in &posted.record.events {
            self.follow(group, event, posted.before)?;
            if let Event::CardCaptured { charge, opened, .. } | Event::PixPaid { charge, opened, .. } = event {
                self.forget(group, *charge, *opened);
            }
        }
        Ok(())
    }

    fn post(&mut self, posted: &PostedRecord<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        let Some(group) = posted.record.owner.group() else { return Ok(()) };
        let month = posted.record.takes_effect_at().month().to_string();
        for event in &posted.record.events {
            self.follow(group, event, posted.before)?;
            match event {
                Event::CardCaptured { charge, terms, opened, .. } | Event::PixPaid { charge, terms, opened, .. } => {
                    let settings = self.end(group, (*charge, *opened), posted.before)?;
                    self.charge_of(&month, group, terms, settings);
                }
                Event::CashoutProcessed { amount, fee, .. } => {
                    self.add(
                        (month.clone(), group, Component::Cashout, Price::Each(*fee)),
                        (*amount, Centavos::ZERO),
                        *fee,
                    );
                }
                Event::SplitsAnticipated { splits, rate, .. } => {
                    for split in splits {
                        let key = (month.clone(), group, Component::Anticipation, Price::Rate(*rate));
                        self.add(key, (split.amount, Centavos::ZERO), split.fee);
                    }
                }
                Event::CashoutReturned { fee, .. } => {
                    let key = (month.clone(), group, Component::Cashout, Price::Each(*fee));
                    self.sums.entry(key).or_default().returned += i128::from(fee.0);
                }
                Event::RefundApproved { commission, .. } => self.give_back(&month, group, commission, 1),
                Event::RefundFailed { commission, .. } => self.give_back(&month, group, commission, -1),
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &ReportSpan<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        for ((month, group, component, price), ChargedSums { base, count, volume, charged, returned }) in self.sums {
            if !ended.scope.takes(LedgerId::Merchant(group)) {
                continue;
            }
            let (rate, each) = match price {
                Price::Unknown => (Cell::Empty, Cell::Empty),
                Price::Rate(rate) => (Cell::Rate(rate), Cell::Empty),
                Price::Each(each) => (Cell::Empty, Cell::Amount(each.0.into())),
            };
            rows.add(&[
                Cell::Text(month),
                Cell::Text(ended.names.of(LedgerId::Merchant(group))),
                Cell::word(component.name(), component.name_ptbr()),
                rate,
                each,
                Cell::Amount(base),
                Cell::Count(count),
                Cell::Amount(volume),
                Cell::Amount(charged),
                Cell::Amount(returned),
                Cell::Amount(charged - returned),
            ])?;
        }
        Ok(())
    }
}
