//! Fees for invoices: charged and returned fees of each merchant by month, component and rate.

use std::collections::BTreeMap;
use std::io;

use ledger::event::{Event, Terms};
use ledger::fees::{Commission, PaymentMethod, Settings};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::money::{Centavos, Rate};

use super::fold::{Ended, Fold, Posted};
use super::table::{Cell, Column, Kind, Rows, column, count, sum};

const COLUMNS: &[Column] = &[
    column("month", "Mês", Kind::Text),
    column("merchant", "Lojista", Kind::Text),
    column("component", "Tarifa", Kind::Text),
    column("rate", "Taxa (%)", Kind::Rate),
    column("each", "Valor unitário", Kind::Centavos),
    sum("base", "Base"),
    count("count", "Quantidade"),
    sum("charged", "Cobrado"),
    sum("returned", "Devolvido"),
    sum("net", "Líquido"),
];

/// Part of what the platform charges. The order is that of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
        match self {
            Self::Mdr => "mdr",
            Self::Antifraud => "antifraud",
            Self::Margin => "margin",
            Self::Pix => "pix",
            Self::Cashout => "cashout",
            Self::Anticipation => "anticipation",
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
struct Charged {
    base: i128,
    count: u64,
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
    sums: BTreeMap<Key, Charged>,
}

impl Fees {
    /// Follows settings and pending charges: a charge has the rates of its opening.
    fn follow(&mut self, group: GroupNumber, event: &Event) {
        match event {
            Event::MerchantOpened { settings, .. } | Event::MerchantChanged { settings } => {
                self.settings.insert(group, *settings);
            }
            Event::ChargeOpened { charge, .. } => {
                self.opened.insert(*charge, self.settings.get(&group).copied().unwrap_or_default());
            }
            Event::CardRefused { charge, .. } | Event::PixCancelled { charge, .. } => {
                self.opened.remove(charge);
            }
            _ => {}
        }
    }

    fn charge_of(&mut self, month: &str, group: GroupNumber, charge: ObjectId, terms: &Terms) {
        let settings = self.opened.remove(&charge);
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
                self.add((month.to_owned(), group, component, price), base, fee);
            }
        }
    }

    fn add(&mut self, key: Key, base: Centavos, fee: Centavos) {
        let sums = self.sums.entry(key).or_default();
        sums.base += i128::from(base.0);
        sums.count += 1;
        sums.charged += i128::from(fee.0);
    }

    fn give_back(&mut self, month: &str, group: GroupNumber, commission: &Commission) {
        let Commission { mdr, antifraud, margin, pix } = *commission;
        let parts = [
            (Component::Mdr, mdr),
            (Component::Antifraud, antifraud),
            (Component::Margin, margin),
            (Component::Pix, pix),
        ];
        for (component, fee) in parts.into_iter().filter(|(_, fee)| !fee.is_zero()) {
            let key = (month.to_owned(), group, component, Price::Unknown);
            self.sums.entry(key).or_default().returned += i128::from(fee.0);
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

    fn open(&mut self, posted: &Posted<'_>) {
        let Some(group) = posted.record.owner.group() else { return };
        for event in &posted.record.events {
            self.follow(group, event);
            if let Event::CardCaptured { charge, .. } | Event::PixPaid { charge, .. } = event {
                self.opened.remove(charge);
            }
        }
    }

    fn post(&mut self, posted: &Posted<'_>, _: &mut Rows<'_>) -> io::Result<()> {
        let Some(group) = posted.record.owner.group() else { return Ok(()) };
        let month = posted.day.format("%Y-%m").to_string();
        for event in &posted.record.events {
            self.follow(group, event);
            match event {
                Event::CardCaptured { charge, terms, .. } | Event::PixPaid { charge, terms, .. } => {
                    self.charge_of(&month, group, *charge, terms);
                }
                Event::CashoutProcessed { amount, fee, .. } => {
                    self.add((month.clone(), group, Component::Cashout, Price::Each(*fee)), *amount, *fee);
                }
                Event::SplitsAnticipated { splits, rate, .. } => {
                    for split in splits {
                        let key = (month.clone(), group, Component::Anticipation, Price::Rate(*rate));
                        self.add(key, split.amount, split.fee);
                    }
                }
                Event::RefundApproved { commission, .. } => self.give_back(&month, group, commission),
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &Ended<'_>, rows: &mut Rows<'_>) -> io::Result<()> {
        for ((month, group, component, price), Charged { base, count, charged, returned }) in self.sums {
            let (rate, each) = match price {
                Price::Unknown => (Cell::Empty, Cell::Empty),
                Price::Rate(rate) => (Cell::Rate(rate), Cell::Empty),
                Price::Each(each) => (Cell::Empty, Cell::Centavos(each.0.into())),
            };
            rows.add(&[
                Cell::Text(month),
                Cell::Text(ended.names.of(LedgerId::Merchant(group))),
                Cell::text(component.name()),
                rate,
                each,
                Cell::Centavos(base),
                Cell::Count(count),
                Cell::Centavos(charged),
                Cell::Centavos(returned),
                Cell::Centavos(charged - returned),
            ])?;
        }
        Ok(())
    }
}
