//! What can refuse a request before its handler, in the order in which it acts. The table with
//! statuses is in `docs/architecture.md`, *Guards of a request*.
//!
//! 1. [`connection_limits`]: how many connections there are, in all and of one address.
//! 2. [`request_head`], then [`shed`]: how many requests are under way.
//! 3. Authentication: `api::authenticate` of merchants, `ops::operator` of operators. Both count
//!    [`wrong_credentials`].
//! 4. [`rate_limit`]: requests of an API key in a minute.
//! 5. The permit, in the handler: `Engine::permit_in_turn`.

pub mod connection_limits;
pub mod rate_limit;
pub mod request_head;
pub mod shed;
pub mod wrong_credentials;
