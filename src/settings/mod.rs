//! Settings: flags with their variables ([`args`], [`values`]), the TOML file ([`file`]), and their
//! checked values ([`checked`]); secrets and their sources ([`secrets`]); the choice of the store
//! ([`store_choice`]); and what keeps secrets inside ([`privacy`]).

pub mod args;
pub mod checked;
pub mod file;
mod peers;
pub mod privacy;
pub mod secrets;
pub mod store_choice;
pub mod values;

#[cfg(test)]
mod tests;
