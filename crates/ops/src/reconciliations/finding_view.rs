//! Findings as they are answered: a line of a file, or what the books have in its place; and the
//! differences of a result as a file.

use std::sync::Arc;

use axum::response::Response;
use books::cells::{Cell, Kind};
use books::reconcile::finding::{Finding, SettledAmount};
use books::reconcile::ofx::StatementLine;
use books::table_file::{TableColumn, TableFormat, days_ptbr};
use chrono::NaiveDate;
use ledger::{Centavos, ObjectId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::timestamp::day;

use super::Reconciliation;
use super::bank_statement::MovementKey;
use crate::explanations::{FindingExplanationView, REPLACED};
use crate::found_item::item_of_kind;
use crate::list_file::{in_parts, list_file};
use crate::wire_words::{COMPARED_OBJECTS, EXPLANATION_STATUSES, FINDINGS, in_file};
use crate::{Desk, ItemKind};
use web::Result;
use web::language::Word;

/// A line of a file, or what the books have in its place.
#[serde_with::skip_serializing_none]
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(crate) struct ReconciliationFindingView {
    /// Number of the difference, from 0, by which it is explained; absent of other lines.
    pub(crate) number: Option<usize>,
    /// `differs`, `only_ours`, `only_theirs`, `twice` or `in_suspense`; of lines that are no
    /// differences `matched` or `undecided`.
    #[schema(pattern = "^(differs|only_ours|only_theirs|twice|in_suspense|matched|undecided)$")]
    pub(crate) finding: String,
    /// Number of the line in the file; absent for what only the books have.
    pub(super) line: Option<u64>,
    /// Reference of the acquirer's batch, if it is about one.
    batch: Option<String>,
    /// The charge's txid, if it is about one.
    payment_id: Option<String>,
    /// `installment`, `refund` or `dispute` of the acquirer; `pix`, `return`, `cashout`,
    /// `cashout_return`, `batch`, `withdrawal`, `withdrawal_return`, `entry`, or `statement_line`,
    /// a line of the bank that is nothing of these. A `batch` of a file of the acquirer is left out
    /// there whole: `ours` has its net as `gross`.
    #[schema(example = "installment")]
    pub(crate) kind: String,
    /// Number of the installment; end-to-end id, reference or id of the others.
    #[schema(example = "1")]
    pub(crate) id: String,
    /// Name of the payer, the recipient or the merchant, of what the books have; absent where there
    /// is none, and when it was erased.
    pub(super) name: Option<String>,
    /// Words of the line in the institution's file, at most 200 characters. Absent where the line
    /// has none, for objects of the books alone, and in older results.
    #[schema(example = "TARIFA PACOTE DE SERVICOS")]
    pub(super) text: Option<String>,
    /// What the books say; absent where only the file has it.
    pub(super) ours: Option<SettledLineView>,
    /// What the file says; absent where only the books have it.
    pub(super) theirs: Option<SettledLineView>,
    /// SHA-256 of the result that has this difference in its place, and where alone it counts: it
    /// has the line that this one lacked, or is newer and has the day. Absent of what counts here.
    pub(super) replaced_by: Option<String>,
}

/// Amounts and day of a line.
#[derive(Debug, PartialEq, Deserialize, Serialize, ToSchema)]
pub(crate) struct SettledLineView {
    /// The day of the payment.
    paid_on: String,
    /// Before the fee, centavos.
    gross: i64,
    /// The fee, centavos.
    fee: i64,
    /// The amount that was paid, centavos.
    net: i64,
}

/// Columns of the differences of a result as a file.
const COLUMNS: [TableColumn; 20] = [
    ("number", "Número", Kind::Count),
    ("finding", "Diferença", Kind::Text),
    ("line", "Linha", Kind::Count),
    ("kind", "Objeto", Kind::Text),
    ("id", "ID", Kind::Text),
    ("name", "Nome", Kind::Text),
    ("text", "Texto da instituição", Kind::Text),
    ("batch", "Lote", Kind::Text),
    ("payment_id", "Cobrança", Kind::Text),
    ("ours_paid_on", "Dia nos livros", Kind::Day),
    ("ours_gross", "Bruto nos livros", Kind::Amount),
    ("ours_fee", "Tarifa nos livros", Kind::Amount),
    ("ours_net", "Líquido nos livros", Kind::Amount),
    ("theirs_paid_on", "Dia no arquivo", Kind::Day),
    ("theirs_gross", "Bruto no arquivo", Kind::Amount),
    ("theirs_fee", "Tarifa no arquivo", Kind::Amount),
    ("theirs_net", "Líquido no arquivo", Kind::Amount),
    ("difference", "A mais no arquivo", Kind::Amount),
    ("status", "Situação", Kind::Text),
    ("reason", "Motivo", Kind::Text),
];

impl Reconciliation {
    /// Its differences as a file, in their order, each with what explains it.
    pub(super) async fn file(self, desk: &Arc<Desk>, format: TableFormat) -> Result<Response> {
        let days = [&self.from, &self.to].map(|of| of.as_deref().and_then(day));
        let subject = days_ptbr(days[0], days[1]);
        let name = format!("{}-{}", self.kind, self.from.as_deref().unwrap_or_default());
        let explanation = |found: &ReconciliationFindingView| {
            self.explanations.iter().rfind(|known| Some(known.finding) == found.number)
        };
        let row = |found: &ReconciliationFindingView| Ok(found.cells(explanation(found), format != TableFormat::Csv));
        let rows = in_parts(self.findings.iter().flatten().map(row));
        list_file(desk, (format, &name, ("Diferenças da conciliação", subject)), &COLUMNS, rows).await
    }
}

impl ReconciliationFindingView {
    /// The day of the line, or, of what only the books have, the day on which it was booked.
    pub(super) fn day(&self) -> Option<NaiveDate> {
        let side = self.theirs.as_ref().or(self.ours.as_ref());
        side.and_then(|side| day(&side.paid_on))
    }

    /// The movement of the books that it is about; `None` where only the file has it.
    pub(super) fn key(&self) -> Option<MovementKey> {
        Some((self.kind.clone(), self.id.clone(), day(&self.ours.as_ref()?.paid_on)?))
    }

    /// Its row in a file, for people or for programs.
    fn cells(&self, known: Option<&FindingExplanationView>, for_people: bool) -> Vec<Cell> {
        let of_word = |name: &str, word: Word| Cell::Text(in_file(for_people, name, word).to_owned());
        let count = |number: Option<u64>| number.map_or(Cell::Empty, Cell::Count);
        let side = |side: &Option<SettledLineView>| {
            let of = |get: fn(&SettledLineView) -> i64| Cell::amount(side.as_ref().map(get));
            let on = side.as_ref().and_then(|side| day(&side.paid_on)).map_or(Cell::Empty, Cell::Day);
            [on, of(|side| side.gross), of(|side| side.fee), of(|side| side.net)]
        };
        let [ours, theirs] = [&self.ours, &self.theirs].map(side);
        let begin = [
            count(self.number.map(|number| number as u64)),
            of_word(&self.finding, FINDINGS.of(&self.finding)),
            count(self.line),
            of_word(&self.kind, COMPARED_OBJECTS.of(&self.kind)),
            Cell::Text(self.id.clone()),
            Cell::optional(self.name.as_deref()),
            Cell::optional(self.text.as_deref()),
            Cell::optional(self.batch.as_deref()),
            Cell::optional(self.payment_id.as_deref()),
        ];
        let replaced = self.replaced_by.as_ref().map(|_| REPLACED);
        let status = known.map(|known| known.status.as_str()).or(replaced);
        let status = status.map_or(Cell::Empty, |status| of_word(status, EXPLANATION_STATUSES.of(status)));
        let end = [
            Cell::amount(Some(self.more_at_the_bank())),
            status,
            Cell::optional(known.map(|known| known.reason.as_str())),
        ];
        begin.into_iter().chain(ours).chain(theirs).chain(end).collect()
    }

    /// The line of a statement that only the bank has, of which this is; else `None`.
    pub(super) fn statement_line(&self) -> Option<StatementLine> {
        let (line, theirs) = (self.line.filter(|_| self.finding == "only_theirs")?, self.theirs.as_ref()?);
        let (id, text) = (self.id.clone(), self.text.clone().unwrap_or_default());
        let (day, amount) = (day(&theirs.paid_on)?, Centavos(theirs.net));
        Some(StatementLine { line, id, day, amount, text, may_be_balance: false })
    }

    /// How much more the bank has than the books, centavos. What stands in a file twice agrees with
    /// the books once.
    pub(crate) fn more_at_the_bank(&self) -> i64 {
        let net = |side: &Option<SettledLineView>| side.as_ref().map_or(0, |side| side.net);
        net(&self.theirs) - if self.finding == "twice" { 0 } else { net(&self.ours) }
    }

    /// Whether it is of the same line, as earlier results of the file have it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let line = |of: &Self| (of.line, of.batch.clone(), of.payment_id.clone(), of.kind.clone(), of.id.clone());
        self.finding == other.finding
            && line(self) == line(other)
            && [&self.ours, &self.theirs] == [&other.ours, &other.theirs]
    }

    /// Whose it is, of what the books have.
    pub(super) fn name_of(&self, desk: &Desk) -> Result<Option<String>> {
        let (kind, id) = match self.kind.as_str() {
            "withdrawal" | "withdrawal_return" => (ItemKind::Withdrawals, Some(&self.id)),
            "cashout" | "cashout_return" => (ItemKind::Cashouts, Some(&self.id)),
            _ => (ItemKind::Charges, self.payment_id.as_ref()),
        };
        let id = id.and_then(|id| ObjectId::parse(id));
        let item = id.map(|id| item_of_kind(desk, kind, id)).transpose()?.flatten();
        Ok(item.and_then(|item| item.name.or(item.merchant_name)).filter(|name| !name.is_empty()))
    }

    pub(super) fn of(finding: &Finding) -> Self {
        let text = finding.text.as_deref().map(words_of).filter(|text| !text.is_empty());
        Self {
            number: None,
            finding: finding.kind.name().to_owned(),
            line: finding.line,
            batch: finding.batch.clone(),
            payment_id: finding.charge.map(|charge| charge.txid()),
            kind: finding.object.to_owned(),
            id: finding.id.clone(),
            name: None,
            text,
            ours: finding.ours.map(SettledLineView::of),
            theirs: finding.theirs.map(SettledLineView::of),
            replaced_by: None,
        }
    }
}

/// What an institution wrote, with single blanks, at most 200 characters.
pub(super) fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

impl SettledLineView {
    fn of(settled: SettledAmount) -> Self {
        let (net, SettledAmount { paid_on, gross, fee }) = (settled.net(), settled);
        Self { paid_on: paid_on.to_string(), gross: gross.0, fee: fee.0, net: net.0 }
    }
}
