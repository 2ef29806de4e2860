//! One pass of folding: a cursor goes over the nodes, and where bodies of equal shape follow each other with steady strides, a loop takes their place.
//!
//! Every part of a body has a stride of its own, so that several cursors of one stream (a header written again, data appended) are one loop. Three rounds
//! make a loop, since any two records have some distance; two do where the whole body moves by one stride and stands for [`EVIDENCE`] records. Two alike
//! among more of their shape have no stride of their own: blocks read here and there.

use crate::limits::{EVIDENCE, LOOK_AHEAD, PERIOD_MAX};
use crate::shape::{Node, Shapes};

/// The nodes folded once; None where nothing repeats.
pub(crate) fn pass(nodes: &[Node], shapes: &mut Shapes) -> Option<Vec<Node>> {
    let mut out = Vec::new();
    let mut rest = nodes;
    let mut copied = 0;
    while !rest.is_empty() {
        let at = nodes.len() - rest.len();
        let Some((period, count)) = best(rest, at.checked_sub(1).and_then(|before| nodes.get(before)), shapes) else {
            copied += 1;
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        out.extend_from_slice(nodes.get(at - copied..at).unwrap_or_default());
        copied = 0;
        out.extend(folded(rest, period, count, shapes));
        rest = rest.get(period * count..).unwrap_or_default();
    }
    if copied == nodes.len() {
        return None;
    }
    out.extend_from_slice(nodes.get(nodes.len() - copied..).unwrap_or_default());
    Some(out)
}

/// The loop that the first `period * count` nodes are.
pub(crate) fn folded(rest: &[Node], period: usize, count: usize, shapes: &mut Shapes) -> Option<Node> {
    let body = rest.get(..period)?;
    let next = rest.get(period..)?;
    shapes.looped(count as u64, body, next.iter().zip(body).map(|(next, node)| next.base.wrapping_sub(node.base)))
}

/// Length of the body and number of rounds that begin at the cursor: of all that hold, those that cover most within the look-ahead.
fn best(rest: &[Node], before: Option<&Node>, shapes: &Shapes) -> Option<(usize, usize)> {
    let near = rest.get(..LOOK_AHEAD).unwrap_or(rest);
    let mut chosen = None;
    let mut most = 0;
    for period in 1..=PERIOD_MAX.min(near.len() / 2) {
        let count = rounds(near, period, before, shapes);
        if count * period > most {
            most = count * period;
            chosen = Some(period);
            if most + period > near.len() {
                break;
            }
        }
    }
    let period = chosen?;
    Some((period, if near.len() < rest.len() { rounds(rest, period, before, shapes) } else { most / period }))
}

/// How often the first `period` nodes follow each other; 0 where that is no loop.
fn rounds(nodes: &[Node], period: usize, before: Option<&Node>, shapes: &Shapes) -> usize {
    let (Some(second), Some(third)) = (nodes.get(period..), nodes.get(2 * period..)) else { return 0 };
    let steady =
        |((c, b), a): ((&Node, &Node), &Node)| c.shape == b.shape && b.shape == a.shape && c.base.wrapping_sub(b.base) == b.base.wrapping_sub(a.base);
    // In the order of their cost: the first node of a third round refuses nearly all that is irregular.
    let held = third.iter().zip(second).zip(nodes).take_while(|nodes| steady(*nodes)).count();
    if held >= period {
        return 2 + held / period;
    }
    if twice(nodes, period, before, shapes) { 2 } else { 0 }
}

/// Whether two bodies of equal shape lie beside each other, the second a whole stride further, and stand for enough.
fn twice(nodes: &[Node], period: usize, before: Option<&Node>, shapes: &Shapes) -> bool {
    let neighbours = [before, nodes.get(2)];
    if period == 1 && neighbours.iter().flatten().any(|beside| nodes.first().is_some_and(|node| node.shape == beside.shape)) {
        return false;
    }
    let (Some(body), Some(next)) = (nodes.get(..period), nodes.get(period..2 * period)) else { return false };
    let mut steps = next.iter().zip(body).map(|(next, node)| (next.shape == node.shape, next.base.wrapping_sub(node.base)));
    let Some((true, step)) = steps.next() else { return false };
    steps.all(|moved| moved == (true, step)) && body.iter().map(|node| shapes.records(node.shape)).sum::<u64>() >= EVIDENCE
}
