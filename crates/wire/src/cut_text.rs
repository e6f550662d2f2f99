//! Cuts and positions of Records as text and as members of JSON.
//!
//! ```text
//! "cut": {"0": 42, "1": 17}      in JSON
//! 0=42,1=17                      in a text; 42 where there is one partition
//! 1=42                           one Record; 42 in partition 0
//! ```

use std::collections::BTreeMap;

use store::cut::{Cut, Position};
use store::{Partition, Sequence};

/// A cut as a member of JSON, `{"0": 42}`, in the order of the partitions. Its schema has their
/// numbers as names.
pub type CutView = BTreeMap<u16, u64>;

/// The cut as a member of JSON.
pub fn by_partition(cut: &Cut) -> CutView {
    cut.iter().map(|at| (at.partition.0, at.sequence.0)).collect()
}

/// Cut in a member of JSON.
pub fn cut_of(view: &CutView) -> Cut {
    let positions =
        view.iter().map(|(number, last)| Position { partition: Partition(*number), sequence: Sequence(*last) });
    positions.fold(Cut::default(), |cut, at| cut.with(at))
}

/// A cut in an address or a text: `42` where there is one partition, or `0=42,1=17`.
pub fn cut_name(cut: &Cut) -> String {
    if cut.partitions() == 1 { cut.records().to_string() } else { cut.to_string() }
}

/// Name of a Record in the addresses of the console: `42`, or `1=42` in partition 1.
pub fn record_name(at: Position) -> String {
    match at {
        Position { partition: Partition(0), sequence } => sequence.0.to_string(),
        at => at.to_string(),
    }
}

/// The Record of such a name.
pub fn named_record(name: &str) -> Option<Position> {
    let (partition, sequence) = name.split_once('=').unwrap_or(("0", name));
    Some(Position { partition: Partition(partition.parse().ok()?), sequence: Sequence(sequence.parse().ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(last: &[u64]) -> Cut {
        Cut::new(last.iter().copied().map(Sequence).collect())
    }

    #[test]
    fn a_cut_is_told_and_read_again() {
        let two = cut(&[42, 17]);
        assert_eq!(serde_json::to_string(&by_partition(&two)).unwrap(), r#"{"0":42,"1":17}"#);
        assert_eq!(cut_of(&by_partition(&two)), two);
        // Of more than ten partitions, too.
        let many = cut(&(1..=12).collect::<Vec<_>>());
        let json = serde_json::to_string(&by_partition(&many)).unwrap();
        let names = json.split(['{', ',']).skip(1).map(|member| member.split('"').nth(1).unwrap());
        assert!(names.eq((0..12).map(|number| number.to_string())), "{json}");
        assert_eq!(cut_of(&serde_json::from_str(&json).unwrap()), many);
    }
}
