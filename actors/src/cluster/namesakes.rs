//! Namesakes of a node: other processes that show its address. One that lives is a second node with
//! the same address. One that leaves, or died, is the node itself before it was started again.

use std::collections::BTreeMap;

use store::{NodeSeen, Picture};

/// What one look at the namesakes of a node shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namesake {
    /// None lives.
    Nobody,
    /// One gave a sign of life so lately that it may live, or have died since.
    MayLive(NodeSeen),
    /// One lives: its beat has moved between two looks.
    Lives(NodeSeen),
}

/// Looks for the namesakes of a node, a machine without I/O.
#[derive(Debug)]
pub struct Namesakes {
    me: String,
    address: String,
    /// The beats of the namesakes when they were first seen.
    first: BTreeMap<String, i64>,
}

impl Namesakes {
    /// The machine of the process `me` at an address, before its first look.
    pub fn new(me: String, address: String) -> Self {
        Self { me, address, first: BTreeMap::new() }
    }

    /// One look. The silence of a process is measured by the clock of the database, so no clocks
    /// of machines are compared.
    pub fn look(&mut self, picture: &Picture) -> Namesake {
        let mut found = Namesake::Nobody;
        let is_namesake = |node: &&NodeSeen| node.process != self.me && node.address.as_ref() == Some(&self.address);
        for node in picture.nodes.iter().filter(is_namesake).filter(|node| !node.is_leaving) {
            let first = *self.first.entry(node.process.clone()).or_insert(node.beat);
            // A process beats five times in its takeover time, and one beat may be late.
            if node.silent_ms >= node.takeover_ms / 5 * 2 {
                continue;
            }
            if node.beat > first {
                return Namesake::Lives(node.clone());
            }
            found = Namesake::MayLive(node.clone());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process, its address, its beat, how long it has been silent, and whether it leaves.
    type Row = (&'static str, Option<&'static str>, i64, i64, bool);

    /// A name, the rows of two looks, and what each shows.
    type Case = (&'static str, &'static [Row], &'static [Row], &'static str, &'static str);

    const HERE: Option<&str> = Some("10.0.0.1:8081");

    fn look(namesakes: &mut Namesakes, rows: &[Row]) -> (&'static str, Option<String>) {
        let node = |(process, address, beat, silent_ms, is_leaving): &Row| NodeSeen {
            process: (*process).to_owned(),
            address: address.map(str::to_owned),
            beat: *beat,
            is_leaving: *is_leaving,
            about: String::new(),
            silent_ms: *silent_ms,
            takeover_ms: 10_000,
        };
        let picture = Picture { nodes: rows.iter().map(node).collect(), partitions: Vec::new() };
        match namesakes.look(&picture) {
            Namesake::Nobody => ("nobody", None),
            Namesake::MayLive(node) => ("may live", Some(node.process)),
            Namesake::Lives(node) => ("lives", Some(node.process)),
        }
    }

    #[test]
    fn a_namesake_lives_when_its_beat_moves() {
        let cases: [Case; 7] = [
            ("alone", &[("me", HERE, 1, 0, false)], &[("me", HERE, 2, 0, false)], "nobody", "nobody"),
            (
                "elsewhere, or no node",
                &[("b", Some("10.0.0.2:8081"), 1, 0, false), ("c", None, 1, 0, false)],
                &[("b", Some("10.0.0.2:8081"), 2, 0, false), ("c", None, 2, 0, false)],
                "nobody",
                "nobody",
            ),
            ("lives", &[("b", HERE, 7, 100, false)], &[("b", HERE, 8, 100, false)], "may live", "lives"),
            ("died just now", &[("b", HERE, 7, 100, false)], &[("b", HERE, 7, 4_000, false)], "may live", "nobody"),
            ("died before", &[("b", HERE, 7, 4_000, false)], &[("b", HERE, 7, 4_200, false)], "nobody", "nobody"),
            ("wakes up", &[("b", HERE, 7, 4_000, false)], &[("b", HERE, 8, 0, false)], "nobody", "lives"),
            ("leaves", &[("b", HERE, 7, 100, true)], &[("b", HERE, 8, 100, true)], "nobody", "nobody"),
        ];
        for (name, first, second, at_first, then) in cases {
            let mut namesakes = Namesakes::new("me".into(), HERE.unwrap().into());
            assert_eq!((look(&mut namesakes, first).0, look(&mut namesakes, second).0), (at_first, then), "{name}");
        }
    }

    #[test]
    fn of_several_the_one_that_lives_counts() {
        let mut namesakes = Namesakes::new("me".into(), HERE.unwrap().into());
        let rows = |beat| [("b", HERE, 1, 10, false), ("c", HERE, beat, 10, false), ("d", HERE, 1, 10, false)];
        assert_eq!(look(&mut namesakes, &rows(1)).0, "may live");
        assert_eq!(look(&mut namesakes, &rows(2)), ("lives", Some("c".to_owned())));
    }
}
