//! The law.
