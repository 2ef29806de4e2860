//! Shapes: what a record or a loop is like, wherever it lies. Equal shapes have one number, so that loops are compared as fast as records.

use std::collections::HashMap;

use crate::limits::PERIOD_MAX;
use crate::record::Record;

/// The number of a shape in its [`Shapes`].
pub(crate) type ShapeId = u32;

/// A record or a loop of records without its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// One record.
    Record { kind: u32, size: i64 },
    /// The body so many times.
    Loop { count: u64, body: Vec<Part> },
}

/// A part of a loop's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    pub shape: ShapeId,
    /// Where it lies in the first round, counted from the loop's first record.
    pub at: i64,
    /// How much further it lies in every next round.
    pub stride: i64,
}

/// A shape in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub shape: ShapeId,
    /// Offset of its first record.
    pub base: i64,
}

/// All shapes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    shapes: Vec<Shape>,
    /// Records of each.
    records: Vec<u64>,
    ids: HashMap<Shape, ShapeId>,
    /// Of the record before: most have the shape of the one before them, or of the one before that.
    last: [Option<(u32, i64, ShapeId)>; 2],
}

impl Shapes {
    pub fn get(&self, id: ShapeId) -> Option<&Shape> {
        self.shapes.get(id as usize)
    }

    /// How many records a node of this shape stands for.
    pub fn records(&self, id: ShapeId) -> u64 {
        self.records.get(id as usize).copied().unwrap_or(0)
    }

    pub fn record(&mut self, of: Record) -> Node {
        let known = self.last.iter().flatten().find(|(kind, size, _)| (*kind, *size) == (of.kind, of.size));
        let shape = match known {
            Some((_, _, id)) => *id,
            None => {
                let id = self.id(Shape::Record { kind: of.kind, size: of.size }, 1);
                let [newer, _] = self.last;
                self.last = [Some((of.kind, of.size, id)), newer];
                id
            }
        };
        Node { shape, base: of.offset }
    }

    /// The loop that goes `count` times through `body`, whose parts lie `strides` further each time.
    pub fn looped(&mut self, count: u64, body: &[Node], strides: impl Iterator<Item = i64>) -> Option<Node> {
        let base = body.first()?.base;
        let parts: Vec<Part> =
            body.iter().zip(strides).map(|(node, stride)| Part { shape: node.shape, at: node.base.wrapping_sub(base), stride }).collect();
        let shape = self.loop_shape(count, parts);
        Some(Node { shape, base })
    }

    /// The shape of a loop in its plainest form: a body that repeats itself becomes a loop, a loop that goes on where its inner one ends becomes one.
    fn loop_shape(&mut self, count: u64, body: Vec<Part>) -> ShapeId {
        let (count, body) = match self.factored(&body) {
            Some(inner) => self.joined(count, inner),
            None => match body.as_slice() {
                [only] => self.joined(count, *only),
                _ => (count, body),
            },
        };
        let records = body.iter().map(|part| self.records(part.shape)).sum::<u64>().saturating_mul(count);
        self.id(Shape::Loop { count, body }, records)
    }

    /// A body of several parts that is itself a loop: its prefix of `period` parts again and again, all moving by one stride.
    fn factored(&mut self, body: &[Part]) -> Option<Part> {
        let first = body.first()?;
        if body.len() < 2 || body.len() > PERIOD_MAX || body.iter().any(|part| part.stride != first.stride) {
            return None;
        }
        for period in 1..=body.len() / 2 {
            let (prefix, rest) = body.split_at_checked(period)?;
            let step = rest.first()?.at.wrapping_sub(first.at);
            let repeats = |(next, part): (&Part, &Part)| next.shape == part.shape && next.at.wrapping_sub(part.at) == step;
            if body.len().is_multiple_of(period) && rest.iter().zip(body).all(repeats) {
                let inner: Vec<Part> = prefix.iter().map(|part| Part { stride: step, ..*part }).collect();
                let shape = self.loop_shape((body.len() / period) as u64, inner);
                return Some(Part { shape, ..*first });
            }
        }
        None
    }

    /// `count` rounds of one part, which may be a loop that the rounds only continue.
    fn joined(&self, count: u64, only: Part) -> (u64, Vec<Part>) {
        if let Some(Shape::Loop { count: inner, body }) = self.get(only.shape)
            && let [part] = body.as_slice()
            && only.stride == part.stride.wrapping_mul(*inner as i64)
            && let Some(all) = count.checked_mul(*inner)
        {
            return (all, body.clone());
        }
        (count, vec![only])
    }

    fn id(&mut self, shape: Shape, records: u64) -> ShapeId {
        if let Some(id) = self.ids.get(&shape) {
            return *id;
        }
        let id = self.shapes.len() as ShapeId;
        self.shapes.push(shape.clone());
        self.records.push(records);
        self.ids.insert(shape, id);
        id
    }
}
