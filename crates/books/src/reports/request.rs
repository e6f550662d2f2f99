//! Requests for reports: which report, of which ledger and days, in which format.

use chrono::NaiveDate;
use clap::ValueEnum;
use strum::{IntoStaticStr, VariantArray};

use wire::timestamp::begin_of;

use crate::export::days_of_name;
use crate::workbook::days_ptbr;

/// Report that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Report {
    /// Opening, debits, credits and closing of each account.
    TrialBalance,
    /// Each posting, with the balance of its account after it.
    GeneralLedger,
    /// Each bank account by day: in, out, and the part that is unexplained.
    DailyClose,
    /// What is due to whom, by due date and arrangement.
    Receivables,
    /// What falls due on each day.
    SettlementCalendar,
    /// Fees of each merchant by month, component and rate.
    Fees,
    /// Discounts of anticipations, and the part of them that is earned.
    AnticipationIncome,
    /// Charges of each merchant by month and payment method.
    MonthlyTotals,
    /// Postings that take effect in a month before that of their booking.
    LateEntries,
    /// Days whose figures by effect were changed by what was booked in some days.
    ChangedDays,
    /// Movements of one merchant or recipient.
    Statement,
}

impl Report {
    /// All reports.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name on the command line and in a path.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The report of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|report| report.name() == name)
    }

    /// Its title for people, in Portuguese.
    pub fn title(self) -> &'static str {
        match self {
            Self::TrialBalance => "Balancete",
            Self::GeneralLedger => "Razão",
            Self::DailyClose => "Fechamento diário dos bancos",
            Self::Receivables => "Recebíveis por vencimento",
            Self::SettlementCalendar => "Agenda de liquidação",
            Self::Fees => "Tarifas por mês",
            Self::AnticipationIncome => "Receita de antecipação",
            Self::MonthlyTotals => "Totais mensais por lojista",
            Self::LateEntries => "Lançamentos de meses anteriores",
            Self::ChangedDays => "Dias com valores alterados",
            Self::Statement => "Extrato",
        }
    }

    /// What it is about, one sentence for people, in Portuguese.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::TrialBalance => "Saldo inicial, débitos, créditos e saldo final de cada conta.",
            Self::GeneralLedger => "Cada partida, conta por conta, com saldo anterior, corrente e final.",
            Self::DailyClose => "Cada banco por dia: entradas, saídas e a parte sem explicação.",
            Self::Receivables => {
                "O que vence para quem ao fim de um dia. O total é de quem se escolhe: P-all, um lojista, um recebedor."
            }
            Self::SettlementCalendar => "O que se recebe e o que se libera em cada dia, ao fim de um dia.",
            Self::Fees => "Tarifas de cada lojista por mês e espécie, para a fatura.",
            Self::AnticipationIncome => "Deságio das antecipações e a parte apropriada no período.",
            Self::MonthlyTotals => "Vendas de cada lojista por mês e meio de pagamento, para as declarações.",
            Self::LateEntries => "Partidas com data de competência em mês anterior ao do registro.",
            Self::ChangedDays => "Dias de competência alterados pelo que foi registrado em um período.",
            Self::Statement => "Movimentos de um lojista ou recebedor, com os saldos depois de cada um.",
        }
    }

    /// Whether it can be of one ledger.
    pub fn takes_ledger(self) -> bool {
        !matches!(self, Self::DailyClose | Self::SettlementCalendar)
    }

    /// Whether its rows are of merchants, so that one ledger is a merchant's.
    pub fn is_of_merchants(self) -> bool {
        matches!(self, Self::Fees | Self::AnticipationIncome | Self::MonthlyTotals)
    }

    /// Whether its days can be those of the effect.
    pub fn takes_effect(self) -> bool {
        matches!(self, Self::TrialBalance | Self::GeneralLedger)
    }

    /// Whether it is of days: the others are of the end of one day.
    pub fn takes_from(self) -> bool {
        !matches!(self, Self::Receivables | Self::SettlementCalendar)
    }
}

/// Which day of a Record counts for the days of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DayOf {
    /// The day of its booking: what a day showed once is never changed.
    #[default]
    Booking,
    /// The day on which it takes effect ([`ledger::record::Record::takes_effect_at`]), never after
    /// that of the booking: a later booking can change what a day showed.
    Effect,
}

impl DayOf {
    /// The days of a name.
    pub fn named(name: &str) -> Option<Self> {
        [("booking", Self::Booking), ("effect", Self::Effect)].into_iter().find(|of| of.0 == name).map(|of| of.1)
    }
}

/// How a report is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum ReportFormat {
    /// Aligned columns, for a terminal.
    Table,
    /// One JSON object with the cut, the rows and the totals; amounts in centavos.
    Json,
    /// CSV by RFC 4180; amounts in centavos.
    Csv,
    /// CSV as Brazilian spreadsheets read it; amounts in reais.
    CsvPtbr,
    /// A workbook; amounts in reais.
    Xlsx,
    /// A page that prints; amounts in reais.
    Html,
}

impl ReportFormat {
    /// The formats that a server makes.
    pub const SERVED: [Self; 5] = [Self::Json, Self::Csv, Self::CsvPtbr, Self::Xlsx, Self::Html];

    /// The format's name on the command line and in a query.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The served format of a name.
    pub fn served(name: &str) -> Option<Self> {
        Self::SERVED.into_iter().find(|format| format.name() == name)
    }

    /// The media type of a file.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Table => "text/plain; charset=utf-8",
            Self::Json => "application/json",
            Self::Csv | Self::CsvPtbr => "text/csv; charset=utf-8; header=present",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Html => "text/html; charset=utf-8",
        }
    }

    /// Whether its files are compressed already.
    pub fn is_compressed(self) -> bool {
        self == Self::Xlsx
    }

    fn ending(self) -> &'static str {
        match self {
            Self::Table => "txt",
            Self::CsvPtbr => "ptbr.csv",
            format => format.name(),
        }
    }
}

/// Which report, of which ledgers, accounts and days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRequest {
    /// Which report.
    pub report: Report,
    /// One ledger, by its outside name (`M-…`, `R-…`, `P-…`, `P-house`, `P-all`); all when absent.
    pub ledger: Option<String>,
    /// Account whose postings are listed, with those below it; all when absent.
    pub account: Option<String>,
    /// Which day of a Record counts.
    pub by: DayOf,
    /// The first day; from the beginning when absent.
    pub from: Option<NaiveDate>,
    /// The last day; through the cut when absent.
    pub to: Option<NaiveDate>,
}

/// Why a report cannot be made as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongReport {
    /// The last day is before the first one.
    #[error("to is before from")]
    NoDays,
    /// The report is always of all ledgers.
    #[error("{} takes no ledger", .0.name())]
    NoLedger(Report),
    /// The report is of one merchant or recipient.
    #[error("{} wants a ledger M-… or R-…", .0.name())]
    OneLedger(Report),
    /// The report is of one merchant, or of all.
    #[error("{} wants a ledger M-…, or none", .0.name())]
    OneMerchant(Report),
    /// The report is of the end of a day.
    #[error("{} takes no from: it is of the end of one day", .0.name())]
    NoFrom(Report),
    /// The days of the report are those of the booking.
    #[error("{} is by the day of the booking", .0.name())]
    NoEffect(Report),
    /// The report does not choose accounts.
    #[error("{} takes no account", .0.name())]
    NoAccount(Report),
}

impl ReportRequest {
    /// Refuses what the report does not take.
    pub fn check(&self) -> Result<(), WrongReport> {
        let Self { report, ledger, account, by, from, to } = self;
        if from.zip(*to).is_some_and(|(from, to)| from > to) {
            return Err(WrongReport::NoDays);
        }
        if from.is_some() && !report.takes_from() {
            return Err(WrongReport::NoFrom(*report));
        }
        if *by == DayOf::Effect && !report.takes_effect() {
            return Err(WrongReport::NoEffect(*report));
        }
        if account.is_some() && *report != Report::GeneralLedger {
            return Err(WrongReport::NoAccount(*report));
        }
        let is_of_owner = |ledger: &String| ledger.starts_with("M-") || ledger.starts_with("R-");
        match ledger {
            Some(_) if !report.takes_ledger() => Err(WrongReport::NoLedger(*report)),
            Some(ledger) if report.is_of_merchants() && !ledger.starts_with("M-") => {
                Err(WrongReport::OneMerchant(*report))
            }
            ledger if *report == Report::Statement && !ledger.as_ref().is_some_and(is_of_owner) => {
                Err(WrongReport::OneLedger(*report))
            }
            _ => Ok(()),
        }
    }

    /// The instant before which a balance file is all that it needs of earlier Records,
    /// milliseconds since 1970 (UTC); `None` if it needs every Record.
    pub fn begins_before(&self) -> Option<i64> {
        match (self.report, self.from) {
            (_, Some(from)) => Some(begin_of(from)),
            // A file through its last day has all of it: the sums are its debits and credits, and
            // what is due then is due whenever it was opened.
            (Report::TrialBalance | Report::Receivables | Report::SettlementCalendar, None) => {
                Some(self.to.and_then(|to| to.succ_opt()).map_or(i64::MAX, begin_of))
            }
            (_, None) => None,
        }
    }

    /// Whether it begins with what is due to whom, too.
    pub fn begins_with_receivables(&self) -> bool {
        !self.report.takes_from()
    }

    /// Whether the sums of its columns mean something: what is due to all holders has the same
    /// sales on both sides.
    pub(super) fn has_totals(&self) -> bool {
        self.report != Report::Receivables || self.ledger.is_some()
    }

    /// The ledger, the account and the days, in Portuguese.
    pub(super) fn subject(&self) -> String {
        let days = days_ptbr(self.from, self.to);
        let by = (self.by == DayOf::Effect).then(|| "por data de competência".to_owned());
        [self.ledger.clone(), self.account.clone(), Some(days), by].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The name under which a browser keeps it: report, days, ending of the format.
    pub fn file_name(&self, format: ReportFormat) -> String {
        let of = self.ledger.as_deref().map(|ledger| format!("_{ledger}")).unwrap_or_default();
        let days = days_of_name(self.from, self.to);
        let by = if self.by == DayOf::Effect { "_by_effect" } else { "" };
        format!("{}{of}{days}{by}.{}", self.report.name(), format.ending())
    }
}

#[cfg(test)]
mod tests {
    use wire::timestamp::day;

    use super::*;

    #[test]
    fn a_report_is_refused_what_it_does_not_take() {
        let of =
            |report| ReportRequest { report, ledger: None, account: None, by: DayOf::Booking, from: None, to: None };
        let days = |from, to, of: ReportRequest| ReportRequest { from: day(from), to: day(to), ..of };
        let ledger = |name: &str, of: ReportRequest| ReportRequest { ledger: Some(name.to_owned()), ..of };
        let fees = of(Report::Fees);
        for (request, expected) in [
            (days("2026-07-01", "2026-07-01", fees.clone()), Ok(())),
            (days("2026-07-02", "2026-07-01", fees.clone()), Err(WrongReport::NoDays)),
            (ledger("M-1", fees.clone()), Ok(())),
            (ledger("P-all", fees), Err(WrongReport::OneMerchant(Report::Fees))),
            (ledger("M-1", of(Report::DailyClose)), Err(WrongReport::NoLedger(Report::DailyClose))),
            (of(Report::Statement), Err(WrongReport::OneLedger(Report::Statement))),
            (ledger("P-all", of(Report::Statement)), Err(WrongReport::OneLedger(Report::Statement))),
            (ledger("R-1", of(Report::Statement)), Ok(())),
            (days("2026-07-01", "", of(Report::Receivables)), Err(WrongReport::NoFrom(Report::Receivables))),
            (days("", "2026-07-01", ledger("M-1", of(Report::Receivables))), Ok(())),
            (
                ReportRequest { account: Some("Assets".to_owned()), ..of(Report::TrialBalance) },
                Err(WrongReport::NoAccount(Report::TrialBalance)),
            ),
            (ReportRequest { by: DayOf::Effect, ..of(Report::TrialBalance) }, Ok(())),
            (ReportRequest { by: DayOf::Effect, ..of(Report::Fees) }, Err(WrongReport::NoEffect(Report::Fees))),
        ] {
            assert_eq!(request.check(), expected, "{request:?}");
        }
    }

    #[test]
    fn every_report_has_a_name_of_its_own() {
        for &report in Report::ALL {
            assert_eq!(Report::named(report.name()), Some(report));
            assert_eq!(report.to_possible_value().unwrap().get_name(), report.name());
        }
    }
}
