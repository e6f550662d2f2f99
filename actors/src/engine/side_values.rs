//! Values that the door keeps beside the journal, such as results of reconciliations. They are
//! durable and in every store, but not in the journal: no hash covers them, and a backup lacks
//! them; a migration takes them along. So only data that can be rebuilt may be stored here.

use super::{Engine, Unavailable};
use derived::records::{Result, may_wait};

/// Prefix of their keys.
pub(crate) const PREFIX: &[u8] = b"kept/";

/// Name of the sandbox clock's offset.
const CLOCK: &str = "sandbox-clock";

fn key_of(name: &str) -> Vec<u8> {
    [PREFIX, name.as_bytes()].concat()
}

impl Engine {
    /// Keeps a value under a name of at most 120 bytes, in place of the one before; durable when it
    /// returns.
    pub fn keep(&self, name: &str, value: &[u8]) -> Result<()> {
        Ok(may_wait(|| self.house_shard().part().put_state(&key_of(name), value))?)
    }

    /// The value of a name.
    pub fn side_value(&self, name: &str) -> Result<Option<Vec<u8>>> {
        Ok(may_wait(|| self.house_shard().part().state(&key_of(name)))?)
    }

    /// The names that begin with a text, in the order of their bytes.
    pub fn side_value_names(&self, prefix: &str) -> Result<Vec<String>> {
        let keys = may_wait(|| self.house_shard().part().state_keys(&key_of(prefix)))?;
        let names = keys.into_iter().filter_map(|key| String::from_utf8(key.get(PREFIX.len()..)?.to_vec()).ok());
        Ok(names.collect())
    }

    /// Keeps how far the sandbox clock is ahead, for processes that take up a partition later.
    pub(super) fn keep_clock(&self) -> Result<(), Unavailable> {
        if self.others.get().is_none() {
            return Ok(());
        }
        Ok(self.keep(CLOCK, &self.clock.offset_ms().to_be_bytes())?)
    }

    /// How far the sandbox clock is ahead, milliseconds.
    pub(super) fn kept_clock(&self) -> Result<i64> {
        let value = self.side_value(CLOCK)?;
        Ok(value.and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_be_bytes))
    }

    /// Removes a value; removing an absent one changes nothing.
    pub fn forget(&self, name: &str) -> Result<()> {
        Ok(may_wait(|| self.house_shard().part().delete_state(&key_of(name)))?)
    }
}
