//! The parts that the ranks fall into by all marks of a profile ([`super::who`]): those of one part make the same requests, so what holds of files holds for
//! all of them.

use std::ops::Range;

use stripewise_workpath::{Group, Tables, Who, takes_part};

use super::profile::Profile;
use super::who::marked;

/// Ranks that make the same requests: the lowest and the highest, and how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub low: i64,
    pub high: i64,
    pub count: u64,
}

/// All ranks: one part where the profile has no mark, else the root, each group that is named, and the rest.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    parts: Vec<Part>,
    /// As a path has them.
    pub groups: Vec<Group>,
}

impl Parts {
    /// Those of a profile at so many processes. Fails with a sentence for a group that is not described, or overlaps another.
    pub fn of(profile: &Profile, processes: u32) -> Result<Self, String> {
        let last = i64::from(processes.max(1)) - 1;
        let whos = marks(profile);
        if whos.is_empty() {
            return Ok(Self { parts: vec![Part { low: 0, high: last, count: last as u64 + 1 }], groups: Vec::new() });
        }
        let named = whos.iter().filter_map(|who| if let Who::Group(group) = who { Some(usize::from(*group) + 1) } else { None }).max().unwrap_or(0);
        let mut groups = Vec::with_capacity(named);
        for at in 0..named {
            let described = profile.subgroups.get(at).and_then(|of| of.group.as_ref());
            groups.push(
                described.and_then(|group| group.in_path()).ok_or_else(|| {
                    format!("subgroups[{at}].group: is missing, or names no ranks; write which of the ranks @group-{} means", at + 1)
                })?,
            );
        }
        let tables = Tables { groups, ..Tables::default() };
        let mut parts = vec![Part::default(); named + 2];
        for rank in 0..processes.max(1) {
            let mut within = (0..named).filter(|&group| takes_part(&tables, Who::Group(group as u8), rank, processes));
            let place = match (rank, within.next()) {
                (0, _) => 0,
                (_, Some(group)) => group + 1,
                (_, None) => named + 1,
            };
            if let Some(second) = within.next() {
                return Err(format!(
                    "subgroups[{second}].group: has rank {rank} of {processes}, as another group has; let groups have no rank in common"
                ));
            }
            if let Some(part) = parts.get_mut(place) {
                let rank = i64::from(rank);
                *part = Part { low: if part.count == 0 { rank } else { part.low }, high: rank, count: part.count + 1 };
            }
        }
        Ok(Self { parts, groups: tables.groups })
    }

    /// Number of parts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// The parts of these ranks, as numbers.
    #[must_use]
    pub fn range(&self, who: Who) -> Range<usize> {
        let all = self.parts.len();
        match who {
            _ if all == 1 => 0..1,
            Who::Root => 0..1,
            Who::AllButRoot => 1..all,
            Who::Group(group) => usize::from(group) + 1..usize::from(group) + 2,
            _ => 0..all,
        }
    }

    /// A part by number.
    #[must_use]
    pub fn part(&self, number: usize) -> Part {
        self.parts.get(number).copied().unwrap_or_default()
    }

    /// How many ranks these are.
    #[must_use]
    pub fn ranks(&self, who: Who) -> u64 {
        self.range(who).map(|number| self.part(number).count).sum()
    }

    /// How many streams of operations a session can have: one for each that may stand behind an operation.
    #[must_use]
    pub fn streams(&self) -> usize {
        if self.parts.len() == 1 { 1 } else { self.parts.len() + 1 }
    }
}

/// Whoever is marked anywhere.
fn marks(profile: &Profile) -> Vec<Who> {
    let mut found = Vec::new();
    for class in profile.classes.values() {
        found.extend(class.outside.keys().filter_map(|key| marked(key)).map(|(_, who)| who));
        for (opening, of) in &class.sessions {
            found.push(opening.who);
            let keys = of.following.iter().flat_map(|(from, after)| after.keys().chain([from]));
            found.extend(keys.filter_map(|key| marked(key)).map(|(_, who)| who));
        }
    }
    found.retain(|who| *who != Who::All);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(subgroups: &str, operation: &str, processes: u32) -> Result<Parts, String> {
        let json = format!(r#"{{"processes": 4, "subgroups": {subgroups}, "classes": {{"shared": {{"OS": 1, "RT2": {{"{operation}": 1}}}}}}}}"#);
        Parts::of(&serde_json::from_str(&json).unwrap(), processes)
    }

    const HALVES: &str = r#"[{"group": {"span": [0, 32768]}}, {"group": {"span": [32768, 65536]}}]"#;

    #[test]
    fn ranks_fall_into_the_root_the_groups_and_the_rest() {
        let of = |low, high, count| Part { low, high, count };
        assert_eq!(parts(HALVES, "stat", 8).unwrap().parts, [of(0, 7, 8)]);
        assert_eq!(parts(HALVES, "stat@root", 8).unwrap().parts, [of(0, 0, 1), of(1, 7, 7)]);
        assert_eq!(parts(HALVES, "stat@group-1", 8).unwrap().parts, [of(0, 0, 1), of(1, 3, 3), of(4, 7, 4)]);
        assert_eq!(parts(HALVES, "stat@group-2", 8).unwrap().parts, [of(0, 0, 1), of(1, 3, 3), of(4, 7, 4), Part::default()]);
        assert_eq!(parts(HALVES, "stat@others", 1).unwrap().parts, [of(0, 0, 1), Part::default()]);
    }

    #[test]
    fn groups_that_nobody_describes_or_that_overlap_are_refused() {
        assert!(parts("[]", "stat@group-1", 4).unwrap_err().starts_with("subgroups[0].group: is missing"));
        let crossed = r#"[{"group": {"span": [0, 65536]}}, {"group": {"congruent": [2, 1]}}]"#;
        assert!(parts(crossed, "stat@group-2", 4).unwrap_err().contains("has rank 1 of 4"));
        assert!(parts(crossed, "stat@group-1", 4).is_ok());
    }
}
