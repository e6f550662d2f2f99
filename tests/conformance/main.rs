//! Conformance tests: the running server against third-party programs. A fuzzer and generators of
//! clients read the description of the interface; others parse PIX codes and bank statements,
//! verify signatures, and judge documents and metrics. A shell runs the commands of the pages and
//! the samples; others read what a release is made of.
//!
//! They are tools of other languages. `tests/conformance/README.md` says how to get them. A test
//! whose tool is not there says so and passes, unless `CENTAVO_CONFORMANCE=required`.

#![allow(clippy::unwrap_used)]

mod adyen;
mod api_pix;
mod audit;
mod card_brands;
mod clients;
mod commands;
mod deploy;
mod efi;
mod guide;
mod install;
mod metrics;
mod month_end;
mod packed;
mod pix_codes;
mod prism;
mod rail_check;
mod release;
mod runbook;
mod samples;
mod schemathesis;
mod sentences;
mod statements;
mod tax_ids;
mod tool;
mod units;
mod webhooks;
