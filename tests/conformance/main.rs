//! The product beside independent implementations of what it implements.
//!
//! They are Python packages, and a machine need not have them: without them a test says what is missing and passes, unless
//! `CENTAVO_CONFORMANCE=required`.

#![allow(clippy::unwrap_used, reason = "a test that finds nothing to unwrap has failed, and says where")]

mod documents;
