//! Notation: how instants, cuts, amounts, ids of taxpayers and PIX charges are written as text, and
//! read again.
//!
//! It is shared by HTTP bodies, exports, reports and the console. It knows positions in journals
//! from `store`, and nothing else of this product: no HTTP, no JSON library, no ledger, no engine.
//! Nothing here waits, and nothing here looks at a clock.
//!
//! Begin with [`timestamp`]: instants and days in Sao Paulo, which most callers use. [`cut_text`]
//! is the other notation that is found in most answers.

pub mod bank_names;
pub mod brcode;
pub mod case_folding;
pub mod csv_cell;
pub mod cut_text;
pub mod mask;
pub mod reais;
pub mod settlement_days;
pub mod timestamp;
