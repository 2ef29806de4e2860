//! Who makes a request: the mark behind an operation or a kind of session (`mpi_write_at@root`).

use stripewise_workpath::node::GROUPS_MAX;
use stripewise_workpath::{Op, Who};

/// An operation of a session, and who of those that have the session open makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Act {
    pub op: Op,
    pub who: Who,
}

/// A key of a profile without its mark, and whom that means: `write0@others`, `posix-read@root`, `OFF@group-2`. None where the mark means nothing.
#[must_use]
pub fn marked(key: &str) -> Option<(&str, Who)> {
    let Some((name, mark)) = key.split_once('@') else { return Some((key, Who::All)) };
    let who = match mark {
        "root" => Who::Root,
        "others" => Who::AllButRoot,
        _ => Who::Group(mark.strip_prefix("group-")?.parse::<u8>().ok()?.checked_sub(1).filter(|&group| u32::from(group) < GROUPS_MAX)?),
    };
    Some((name, who))
}

/// The mark as it stands in a profile; empty for all ranks.
#[must_use]
pub fn mark(who: Who) -> String {
    match who {
        Who::Root => "@root".to_owned(),
        Who::AllButRoot => "@others".to_owned(),
        Who::Group(group) => format!("@group-{}", u32::from(group) + 1),
        _ => String::new(),
    }
}

/// The stream of operations of these ranks.
#[must_use]
pub fn stream(who: Who) -> usize {
    match who {
        Who::Root => 1,
        Who::AllButRoot => 2,
        Who::Group(group) => usize::from(group) + 3,
        _ => 0,
    }
}

/// Whom the operations of a stream are of.
#[must_use]
pub fn who_of(stream: usize) -> Who {
    match stream {
        0 => Who::All,
        1 => Who::Root,
        2 => Who::AllButRoot,
        _ => Who::Group((stream - 3) as u8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_is_written() {
        for who in [Who::All, Who::Root, Who::AllButRoot, Who::Group(0), Who::Group(239)] {
            assert_eq!(marked(&format!("stat{}", mark(who))), Some(("stat", who)));
        }
        assert!(["stat@", "stat@group-0", "stat@group-241", "stat@last"].iter().all(|key| marked(key).is_none()));
    }
}
