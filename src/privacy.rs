//! Privacy of the process: its memory is not dumped. Also the secrets that have a variable.

use std::env;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::http::credential::Secret;

/// Forbids dumps of the memory. To be called first.
pub fn begin() {
    // Nothing is lost where the system refuses.
    let _dumps_stay = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _cores_stay = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// The secret that a variable holds, if it is not empty.
pub fn variable(name: &str) -> Option<Secret> {
    env::var(name).ok().filter(|value| !value.is_empty()).map(Secret::from)
}
