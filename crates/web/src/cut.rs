//! Positions in the journals, in queries of requests and headers of answers: a cut (the last Record
//! that counts, by partition) and the partition of one Record. Their text elsewhere:
//! [`wire::cut_text`].
//!
//! ```text
//! X-Cut: 0=42,1=17               in headers, and in the query as at=0=42,1=17
//! at=42                          in the query, where there is one partition
//! sequence 42, partition 1       one Record
//! ```

use axum::http::HeaderValue;
use serde::Serialize;
use store::{Cut, Partition, Position, Sequence};
use utoipa::ToSchema;

use crate::{Result, number, refused, single};

/// The cut as a header, `0=42`, with commas between partitions.
pub fn as_header(cut: &Cut) -> HeaderValue {
    HeaderValue::try_from(cut.to_string()).expect("digits, = and commas are visible ASCII")
}

/// The published cut that a parameter names: `0=42,1=17`, or `42` where there is one partition.
/// `None` if it is absent.
pub fn requested(pairs: &[(String, String)], name: &'static str, published: &Cut) -> Result<Option<Cut>> {
    let Some(text) = single(pairs, name)? else { return Ok(None) };
    if published.partitions() == 1 && !text.contains('=') {
        let last = number(pairs, name, 1..=published.records().max(1))?;
        return Ok(last.map(|last| Cut::new(vec![Sequence(last)])));
    }
    let cut = text.parse::<Cut>().ok();
    let cut = cut.filter(|cut| cut.partitions() == published.partitions() && cut.is_within(published));
    let form = || format!("{name} deve ter o último registro de cada partição, como em {published}");
    cut.filter(|cut| !cut.is_empty()).map(Some).ok_or_else(|| refused(name, "invalid_cut", form()))
}

/// The Records that a list goes on with: those before the ones that its parameter `before` names,
/// in the forms of a cut. All that are published when it is absent.
pub fn requested_before(pairs: &[(String, String)], published: &Cut) -> Result<Cut> {
    let Some(text) = single(pairs, "before")? else { return Ok(published.clone()) };
    if published.partitions() == 1 && !text.contains('=') {
        let before = number(pairs, "before", 1..=u64::MAX >> 1)?.unwrap_or(1);
        return Ok(Cut::new(vec![Sequence(before - 1)]).up_to(published));
    }
    let before = text.parse::<Cut>().ok().filter(|before| before.partitions() == published.partitions());
    let form = || format!("before deve ter um registro de cada partição, como em {published}");
    Ok(before.ok_or_else(|| refused("before", "invalid_cut", form()))?.previous().up_to(published))
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

/// The Record that a path's number and the parameter `partition` name. Without the parameter it is
/// of partition 0.
pub fn requested_position(sequence: &str, pairs: &[(String, String)]) -> Result<Option<Position>> {
    let partition = requested_partition(pairs)?;
    Ok(sequence.parse().ok().map(|sequence| Position { partition, sequence: Sequence(sequence) }))
}

/// The parameter `partition`, 0 when it is absent.
pub fn requested_partition(pairs: &[(String, String)]) -> Result<Partition> {
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
    fn a_cut_is_a_header() {
        assert_eq!(as_header(&cut(&[42, 17])), "0=42,1=17");
    }
}
