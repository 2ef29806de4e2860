//! The shadow diff (thesis, section 2.6.2): which requests of the root its child makes as well, as `diff` would tell from operations and names.
//!
//! Myers' greedy algorithm, in windows: where two stretches differ in more than `EDITS_MAX` places, the path that has come furthest is kept and the search
//! begins anew at its end. So time is linear in the requests times `EDITS_MAX` at worst, and memory is bounded.

/// Insertions and deletions in one window.
const EDITS_MAX: usize = 256;

/// For each request of the root the child's that it is matched with; None: the root alone makes it.
#[must_use]
pub fn matched(root: &[u64], child: &[u64]) -> Vec<Option<usize>> {
    let mut found = vec![None; root.len()];
    let tail = root.iter().rev().zip(child.iter().rev()).take_while(|(a, b)| a == b).count();
    for back in 1..=tail {
        if let Some(slot) = found.get_mut(root.len() - back) {
            *slot = Some(child.len() - back);
        }
    }
    let (root, child) = (root.get(..root.len() - tail).unwrap_or_default(), child.get(..child.len() - tail).unwrap_or_default());
    let (mut x, mut y) = (0, 0);
    while x < root.len() && y < child.len() {
        let window = Window::search(root.get(x..).unwrap_or_default(), child.get(y..).unwrap_or_default());
        let (reached_x, reached_y) = window.each_match(|a, b| {
            if let Some(slot) = found.get_mut(x + a) {
                *slot = Some(y + b);
            }
        });
        if (reached_x, reached_y) == (0, 0) {
            break;
        }
        x += reached_x;
        y += reached_y;
    }
    found
}

/// The furthest points of all diagonals after each number of edits.
struct Window {
    /// By edits d, for diagonals -d, -d+2, ..., d: how far the root's side has come. None: out of the sequences.
    rounds: Vec<Vec<Option<usize>>>,
    /// The diagonal (its place in the last round) that the path ends on.
    end: usize,
}

impl Window {
    fn search(root: &[u64], child: &[u64]) -> Self {
        let mut rounds: Vec<Vec<Option<usize>>> = Vec::new();
        for edits in 0..=EDITS_MAX {
            let mut row = Vec::with_capacity(edits + 1);
            for place in 0..=edits {
                let start = rounds.last().map_or(Some(0), |last| step(last, place, edits).map(|(x, _)| x));
                row.push(start.and_then(|x| slide(root, child, x, y_of(x, place, edits)?)));
            }
            let end = row.iter().enumerate().position(|(place, x)| x.is_some_and(|x| x == root.len() && y_of(x, place, edits) == Some(child.len())));
            rounds.push(row);
            if let Some(end) = end {
                return Self { rounds, end };
            }
        }
        let reach = |(place, x): (usize, &Option<usize>)| x.and_then(|x| Some((x + y_of(x, place, EDITS_MAX)?, place)));
        let end = rounds.last().and_then(|row| row.iter().enumerate().filter_map(reach).max()).map_or(0, |(_, place)| place);
        Self { rounds, end }
    }

    /// Calls `note` with all matched pairs of the path; its end.
    fn each_match(&self, mut note: impl FnMut(usize, usize)) -> (usize, usize) {
        let mut place = self.end;
        let mut end = None;
        for (edits, row) in self.rounds.iter().enumerate().rev() {
            let Some(Some(x)) = row.get(place).copied() else { break };
            let Some(y) = y_of(x, place, edits) else { break };
            end.get_or_insert((x, y));
            let before = edits.checked_sub(1).and_then(|last| self.rounds.get(last)).and_then(|last| step(last, place, edits));
            let start = before.map_or(0, |(x, _)| x);
            for back in 1..=(x - start) {
                note(x - back, y - back);
            }
            let Some((_, previous)) = before else { break };
            place = previous;
        }
        end.unwrap_or((0, 0))
    }
}

/// Where a diagonal begins after one edit more: on which side the path comes from (of the two the further one), and its place in the last round.
fn step(last: &[Option<usize>], place: usize, edits: usize) -> Option<(usize, usize)> {
    let down = last.get(place).copied().flatten().filter(|x| y_of(*x, place, edits).is_some()).map(|x| (x, place));
    let right = place.checked_sub(1).and_then(|from| Some((last.get(from).copied().flatten()? + 1, from)));
    down.max(right)
}

/// The child's side on a diagonal: `x - y = 2 place - edits`.
fn y_of(x: usize, place: usize, edits: usize) -> Option<usize> {
    (x + edits).checked_sub(2 * place)
}

fn slide(root: &[u64], child: &[u64], x: usize, y: usize) -> Option<usize> {
    let (root, child) = (root.get(x..)?, child.get(y..)?);
    Some(x + root.iter().zip(child).take_while(|(a, b)| a == b).count())
}

#[cfg(test)]
mod tests {
    use super::matched;
    use proptest::prelude::*;

    fn common(root: &[u64], child: &[u64]) -> usize {
        let mut row = vec![0; child.len() + 1];
        for a in root {
            let mut diagonal = 0;
            for (at, b) in child.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if a == b { diagonal + 1 } else { above.max(row[at]) };
                diagonal = above;
            }
        }
        row[child.len()]
    }

    fn check(root: &[u64], child: &[u64]) -> usize {
        let found = matched(root, child);
        let pairs: Vec<(usize, usize)> = found.iter().enumerate().filter_map(|(at, of)| of.map(|of| (at, of))).collect();
        assert_eq!(found.len(), root.len());
        assert!(pairs.windows(2).all(|two| two[0].1 < two[1].1));
        assert!(pairs.iter().all(|(a, b)| root[*a] == child[*b]));
        pairs.len()
    }

    proptest! {
        #[test]
        fn matches_are_a_longest_common_subsequence(root in prop::collection::vec(0u64..6, 0..60), child in prop::collection::vec(0u64..6, 0..60)) {
            prop_assert_eq!(check(&root, &child), common(&root, &child));
        }
    }

    #[test]
    fn what_the_root_has_beside_its_child_is_left_over() {
        assert_eq!(matched(&[9, 1, 2, 8, 3], &[1, 2, 3]), [None, Some(0), Some(1), None, Some(2)]);
        assert_eq!(matched(&[], &[1]), []);
        assert_eq!(matched(&[1], &[]), [None]);
    }

    #[test]
    fn many_differences_are_found_window_by_window() {
        let child: Vec<u64> = (0..20_000).collect();
        let root: Vec<u64> = child.iter().flat_map(|each| [*each, 1_000_000 + each]).collect();
        assert_eq!(check(&root, &child), child.len());
        let nothing: Vec<u64> = (50_000..70_000).collect();
        assert_eq!(check(&child, &nothing), 0);
    }
}
