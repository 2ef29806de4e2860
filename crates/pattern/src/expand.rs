//! From loops back to records.

use crate::record::Record;
use crate::shape::{Node, Shape, Shapes};

/// Appends the records of a node in their order.
pub(crate) fn expand(node: Node, shapes: &Shapes, out: &mut Vec<Record>) {
    match shapes.get(node.shape) {
        None => (),
        Some(Shape::Record { kind, size }) => out.push(Record { kind: *kind, offset: node.base, size: *size }),
        Some(Shape::Loop { count, body }) => {
            for round in 0..*count {
                for part in body {
                    let moved = part.stride.wrapping_mul(round as i64);
                    expand(Node { shape: part.shape, base: node.base.wrapping_add(part.at).wrapping_add(moved) }, shapes, out);
                }
            }
        }
    }
}
