//! The product from outside: every test starts its own server on an empty folder, talks to it over
//! a socket, and moves the sandbox clock by hand. Nothing is shared between tests, and nothing is
//! known of the inside but what the interface promises.

#![allow(clippy::unwrap_used, reason = "a test that finds nothing to unwrap has failed, and says where")]

mod acquirer;
mod all_merchants;
mod anticipation;
mod audit;
mod balance;
mod beside;
mod books;
mod card;
mod cashout;
mod charges;
mod closing;
mod console;
mod console_books;
mod console_changes;
mod console_charges;
mod console_claims;
mod console_parts;
mod console_periods;
mod console_reads;
mod console_refused;
mod console_screens;
mod debts;
mod description;
mod disputes;
mod errors;
mod exports;
mod hostile;
mod house;
mod idempotency;
mod lifecycle;
mod makers;
mod matrix;
mod model;
mod monitoring;
mod named_rails;
mod names;
mod objects;
mod openapi;
mod operations;
mod overload;
mod partitions;
mod past;
mod pix;
mod pix_at_institution;
mod plans;
mod queue;
mod rails_listener;
mod rate_limits;
mod reconciliations;
mod refunds;
mod registration;
mod sequence;
mod statement;
mod sub_recipients;
mod subscriptions;
mod tls;
mod unruly;
mod webhooks;
mod withdrawal_returns;
mod withdrawals;
mod world;
mod write_offs;
