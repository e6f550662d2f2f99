//! The running server against what others wrote: a fuzzer and generators of clients that read the
//! description of the interface, a parser of PIX codes, verifiers of signatures, and judges of
//! documents and of metrics.
//!
//! They are tools of other languages. `tests/conformance/README.md` says how to get them. A test
//! whose tool is not there says so and passes, unless `CENTAVO_CONFORMANCE=required`.

#![allow(clippy::unwrap_used)]

mod clients;
mod documents;
mod metrics;
mod pix_codes;
mod schemathesis;
mod tool;
mod webhooks;
