//! Settings: flags with their variables ([`args`], [`values`]), the TOML file ([`file`]), and what is
//! left of them once they are checked ([`checked`]); secrets and their sources; the choice of the
//! store.

pub mod args;
pub mod checked;
pub mod file;
pub mod privacy;
pub mod secrets;
pub mod store_choice;
pub mod values;

#[cfg(test)]
mod tests;
