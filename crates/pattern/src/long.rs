//! Bodies longer than [`crate::PERIOD_MAX`] nodes, such as the variables that a program writes in every time step: where a node, with its distance from the
//! one before, was seen last, there a body may have begun. All parts of such a body move by one stride.
//!
//! Comparisons that lead to nothing are paid from a budget of a few per node, so that no stream costs more than linear time.

use crate::fold::folded;
use crate::limits::PERIOD_LONG_MAX;
use crate::shape::{Node, Shapes};

/// Places in which nodes are remembered; later ones take the place of earlier ones.
const REMEMBERED: usize = 1 << 13;
/// Futile comparisons per node.
const BUDGET: usize = 4;

/// The nodes folded once; None where no long body repeats.
pub(crate) fn pass(nodes: &[Node], shapes: &mut Shapes) -> Option<Vec<Node>> {
    if nodes.len() < 4 {
        return None;
    }
    let periods = periods(nodes);
    let mut budget = nodes.len().saturating_mul(BUDGET);
    let mut out: Vec<Node> = Vec::new();
    let (mut at, mut looped) = (0, 0);
    while let Some(rest) = nodes.get(at..)
        && let Some(first) = rest.first()
    {
        let period = periods.get(at).copied().unwrap_or(0) as usize;
        let held = if period > 0 && budget > 0 { held(rest, period) } else { 0 };
        if held < period || held == 0 {
            budget = budget.saturating_sub(held);
            out.push(*first);
            at += 1;
            continue;
        }
        // The body may have begun among the nodes that were passed over.
        let back =
            nodes.get(looped..at).map_or(0, |before| continues(before, nodes.get(looped + period..at + period).unwrap_or_default(), rest, period));
        let start = at - back;
        out.truncate(out.len() - back);
        let count = (held + back) / period + 1;
        out.extend(folded(nodes.get(start..).unwrap_or_default(), period, count, shapes));
        at = start + period * count;
        looped = at;
    }
    (looped > 0).then_some(out)
}

/// For how many nodes what stands `period` further on has the same shape and the same distance.
fn held(nodes: &[Node], period: usize) -> usize {
    let (Some(first), Some(later)) = (nodes.first(), nodes.get(period..)) else { return 0 };
    let Some(stride) = later.first().map(|node| node.base.wrapping_sub(first.base)) else { return 0 };
    later.iter().zip(nodes).take_while(|(next, node)| next.shape == node.shape && next.base.wrapping_sub(node.base) == stride).count()
}

/// How many of the nodes `before` belong to the body that was found at the start of `rest`; `beyond` stands a period later.
fn continues(before: &[Node], beyond: &[Node], rest: &[Node], period: usize) -> usize {
    let (Some(first), Some(later)) = (rest.first(), rest.get(period)) else { return 0 };
    let stride = later.base.wrapping_sub(first.base);
    let same = |(node, next): &(&Node, &Node)| next.shape == node.shape && next.base.wrapping_sub(node.base) == stride;
    before.iter().rev().zip(beyond.iter().rev()).take_while(same).count()
}

/// For each node the length of a body that may begin there; 0 for none.
fn periods(nodes: &[Node]) -> Vec<u32> {
    let mut periods = vec![0u32; nodes.len()];
    let mut seen: Vec<(u64, usize)> = vec![(0, 0); REMEMBERED];
    for (at, (before, node)) in nodes.iter().zip(nodes.iter().skip(1)).enumerate() {
        let step = node.base.wrapping_sub(before.base) as u64;
        let token = (step ^ u64::from(node.shape) << 40 ^ u64::from(before.shape)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let Some(place) = seen.get_mut((token >> 51) as usize) else { continue };
        let (known, earlier) = std::mem::replace(place, (token, at));
        if known == token
            && at - earlier <= PERIOD_LONG_MAX
            && let Some(period) = periods.get_mut(earlier)
        {
            *period = (at - earlier) as u32;
        }
    }
    periods
}
