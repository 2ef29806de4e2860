//! Passes of folding one after another: short bodies until none is left, then long ones, and again.

use crate::limits::LEVELS_MAX;
use crate::shape::{Node, Shapes};
use crate::{fold, long};

/// The nodes folded until nothing folds.
pub(crate) fn fold_all(mut nodes: Vec<Node>, shapes: &mut Shapes) -> Vec<Node> {
    for _ in 0..LEVELS_MAX {
        match fold::pass(&nodes, shapes).or_else(|| long::pass(&nodes, shapes)) {
            Some(folded) => nodes = folded,
            None => break,
        }
    }
    nodes
}
