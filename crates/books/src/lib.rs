//! Books as files for people and other programs: exports, reports, and the comparison with files of
//! the acquirer, the PIX institution and the bank.
//!
//! All three are folds over Records, in their order. They may import `ledger` (what a Record says),
//! `store` and `derived` (where Records and balances are read) and `wire` (how it is written). No
//! actor and no HTTP are here: who reads the journal of a running server, at which pace, is the
//! matter of callers. Nothing here decides, and nothing changes the books.
//!
//! Begin with [`export::Exporter`], or with [`reports::ReportMaker`]: both take the blocks of a
//! journal, and give rows of one format. A reconciliation begins with the file
//! ([`reconcile::acquirer`], [`reconcile::pix`], [`reconcile::ofx`]) and asks
//! [`reconcile::booked_movements`] for the side of the books. [`table_file`] writes what operators
//! see as a list.

pub mod cells;
pub mod error;
pub mod export;
pub mod labels;
mod ledger_scope;
pub mod reconcile;
pub mod reports;
mod sorted_sums;
pub mod table_file;
mod workbook;
