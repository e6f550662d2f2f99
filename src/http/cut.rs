//! Cut of the journal: the last Record that counts, by partition, as answers tell it. There is one
//! partition, and only this file and the manifest name it.

use std::collections::BTreeMap;

use actors::store::Sequence;
use axum::http::HeaderValue;

/// The partition that there is.
const PARTITION: &str = "0";

/// The cut as a member of JSON, `{"0": 42}`.
pub fn by_partition(last: Sequence) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([(PARTITION, last.0)])
}

/// The cut as a header, `0=42`, where several partitions would stand with commas between them.
pub fn as_header(last: Sequence) -> HeaderValue {
    let parts: Vec<_> = by_partition(last).iter().map(|(partition, last)| format!("{partition}={last}")).collect();
    HeaderValue::try_from(parts.join(",")).expect("digits, = and commas are visible ASCII")
}
