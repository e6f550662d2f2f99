//! Positions in the journals, as requests name them and answers tell them: a cut (the last Record
//! that counts, by partition) and the partition of one Record.
//!
//! ```text
//! "cut": {"0": 42, "1": 17}      in JSON
//! X-Cut: 0=42,1=17               in headers, and in the query as at=0=42,1=17
//! at=42                          in the query, where there is one partition
//! sequence 42, partition 1       one Record
//! ```

use std::collections::BTreeMap;

use axum::http::HeaderValue;
use serde::Serialize;
use store::cut::{Cut, Position};
use store::{Partition, Sequence};
use utoipa::ToSchema;

use crate::http::json::Checker;
use crate::http::problem::Problem;
use crate::http::reply::{number, single};

/// A cut as a member of JSON, `{"0": 42}`, in the order of the partitions. Its schema has their
/// numbers as names.
pub type CutView = BTreeMap<u16, u64>;

/// The cut as a member of JSON.
pub fn by_partition(cut: &Cut) -> CutView {
    cut.iter().map(|at| (at.partition.0, at.sequence.0)).collect()
}

/// The cut that a member of JSON tells.
pub fn cut_of(view: &CutView) -> Cut {
    let positions =
        view.iter().map(|(number, last)| Position { partition: Partition(*number), sequence: Sequence(*last) });
    positions.fold(Cut::default(), |cut, at| cut.with(at))
}

/// The cut as a header, `0=42`, with commas between partitions.
pub fn as_header(cut: &Cut) -> HeaderValue {
    HeaderValue::try_from(cut.to_string()).expect("digits, = and commas are visible ASCII")
}

/// A cut in an address or a text: `42` where there is one partition, or `0=42,1=17`.
pub fn cut_name(cut: &Cut) -> String {
    if cut.partitions() == 1 { cut.records().to_string() } else { cut.to_string() }
}

/// The published cut that a parameter names: `0=42,1=17`, or `42` where there is one partition.
/// None when it is absent.
pub fn requested(pairs: &[(String, String)], name: &'static str, published: &Cut) -> Result<Option<Cut>, Problem> {
    let Some(text) = single(pairs, name)? else { return Ok(None) };
    if published.partitions() == 1 && !text.contains('=') {
        let last = number(pairs, name, 1..=published.records().max(1))?;
        return Ok(last.map(|last| Cut::new(vec![Sequence(last)])));
    }
    let mut check = Checker::new();
    let cut = text.parse::<Cut>().ok();
    let cut = cut.filter(|cut| cut.partitions() == published.partitions() && cut.is_within(published));
    let cut = cut.filter(|cut| !cut.is_empty());
    let cut = cut.or_else(|| {
        let form = format!("{name} deve ter o último registro de cada partição, como em {published}");
        check.refuse(name, "invalid_cut", form)
    });
    check.finish_with(cut).map(Some)
}

/// The Records that a list goes on with: those before the ones that its parameter `before` names,
/// in the forms of a cut. All that are published when it is absent.
pub fn requested_before(pairs: &[(String, String)], published: &Cut) -> Result<Cut, Problem> {
    let Some(text) = single(pairs, "before")? else { return Ok(published.clone()) };
    if published.partitions() == 1 && !text.contains('=') {
        let before = number(pairs, "before", 1..=u64::MAX >> 1)?.unwrap_or(1);
        return Ok(Cut::new(vec![Sequence(before - 1)]).up_to(published));
    }
    let mut check = Checker::new();
    let before = text.parse::<Cut>().ok().filter(|before| before.partitions() == published.partitions());
    let before = before.or_else(|| {
        let form = format!("before deve ter um registro de cada partição, como em {published}");
        check.refuse("before", "invalid_cut", form)
    });
    Ok(check.finish_with(before)?.previous().up_to(published))
}

/// The parameter `before` with which a list goes on.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum NextBefore {
    /// The Record, where there is one partition.
    #[schema(example = 41)]
    Number(u64),
    /// A Record of each partition.
    #[schema(example = "0=41,1=17")]
    OfEach(String),
}

/// With what a list goes on when these Records are left; none at its end.
pub fn next_before(rest: &Cut) -> Option<NextBefore> {
    let next = || match rest.partitions() {
        1 => NextBefore::Number(rest.records() + 1),
        _ => NextBefore::OfEach(rest.next().to_string()),
    };
    (!rest.is_empty()).then(next)
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

/// The Record that a path's number and the parameter `partition` name. Without the parameter it is
/// of partition 0.
pub fn requested_position(sequence: &str, pairs: &[(String, String)]) -> Result<Option<Position>, Problem> {
    let partition = requested_partition(pairs)?;
    Ok(sequence.parse().ok().map(|sequence| Position { partition, sequence: Sequence(sequence) }))
}

/// The parameter `partition`, 0 when it is absent.
pub fn requested_partition(pairs: &[(String, String)]) -> Result<Partition, Problem> {
    let partition = number(pairs, "partition", 0..=u16::MAX.into())?.unwrap_or_default();
    Ok(Partition(partition as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(last: &[u64]) -> Cut {
        Cut::new(last.iter().copied().map(Sequence).collect())
    }

    fn pairs(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), value.to_owned())]
    }

    #[test]
    fn a_cut_is_a_number_where_there_is_one_partition_and_names_all_where_there_are_more() {
        let (one, two) = (cut(&[42]), cut(&[42, 17]));
        let asked = |text: &str, published| requested(&pairs("at", text), "at", published).ok().flatten();
        assert_eq!(asked("7", &one), Some(cut(&[7])));
        assert_eq!(asked("0=7", &one), Some(cut(&[7])));
        assert_eq!(asked("0=7,1=0", &two), Some(cut(&[7, 0])));
        for text in ["7", "0=7", "0=7,1=18", "0=0,1=0", "0=7,1=x", "", "0=1,1=1,2=1"] {
            assert_eq!(asked(text, &two), None, "{text}");
        }
        for text in ["43", "0", "0=43", "0=0", "x"] {
            assert_eq!(asked(text, &one), None, "{text}");
        }
        assert_eq!(requested(&[], "at", &two).unwrap(), None);
    }

    #[test]
    fn a_list_goes_on_before_what_it_gave() {
        let (one, two) = (cut(&[42]), cut(&[42, 17]));
        let asked = |text: &str, published| requested_before(&pairs("before", text), published).ok();
        assert_eq!(requested_before(&[], &two).unwrap(), two);
        assert_eq!(asked("42", &one), Some(cut(&[41])));
        assert_eq!(asked("1000", &one), Some(one.clone()));
        assert_eq!(asked("1", &one), Some(cut(&[0])));
        let goes_on = |rest: &[u64]| next_before(&cut(rest)).map(|next| serde_json::to_value(next).unwrap());
        assert_eq!((goes_on(&[41]), goes_on(&[0])), (Some(42.into()), None));
        let next = goes_on(&[41, 0]).unwrap();
        assert_eq!(asked(next.as_str().unwrap(), &two), Some(cut(&[41, 0])));
        assert_eq!((asked("7", &two), asked("0=7", &two), goes_on(&[0, 0])), (None, None, None));
    }

    #[test]
    fn a_cut_is_told_and_read_again() {
        let two = cut(&[42, 17]);
        assert_eq!(serde_json::to_string(&by_partition(&two)).unwrap(), r#"{"0":42,"1":17}"#);
        assert_eq!(cut_of(&by_partition(&two)), two);
        assert_eq!(as_header(&two), "0=42,1=17");
        // Of more than ten partitions, too.
        let many = cut(&(1..=12).collect::<Vec<_>>());
        let told = serde_json::to_string(&by_partition(&many)).unwrap();
        let names = told.split(['{', ',']).skip(1).map(|member| member.split('"').nth(1).unwrap());
        assert!(names.eq((0..12).map(|number| number.to_string())), "{told}");
        assert_eq!(cut_of(&serde_json::from_str(&told).unwrap()), many);
    }
}
