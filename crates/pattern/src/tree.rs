//! Loops as a tree of their own, for whoever describes them, changes their numbers, or expands them anew.

use crate::record::Record;
use crate::shape::{Node, Shape, Shapes};

/// More records than this are not expanded from a tree.
pub const RECORDS_MAX: u64 = 1 << 32;

/// A record or a loop, in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Offset of its first record; inside a loop counted from the loop's, in the first round.
    pub at: i64,
    /// How much further it lies in every next round of the loop around it; 0 outside of loops.
    pub stride: i64,
    /// What it is.
    pub inner: Inner,
}

/// What stands at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inner {
    /// One record.
    Record {
        /// As [`Record::kind`].
        kind: u32,
        /// Bytes.
        size: i64,
    },
    /// The body so many times.
    Loop {
        /// Rounds.
        count: u64,
        /// In its order.
        body: Vec<Tree>,
    },
}

impl Tree {
    pub(crate) fn of(node: Node, shapes: &Shapes) -> Option<Self> {
        let inner = match shapes.get(node.shape)? {
            Shape::Record { kind, size } => Inner::Record { kind: *kind, size: *size },
            Shape::Loop { count, body } => {
                let part =
                    |part: &crate::shape::Part| Some(Self { stride: part.stride, ..Self::of(Node { shape: part.shape, base: part.at }, shapes)? });
                Inner::Loop { count: *count, body: body.iter().map(part).collect::<Option<_>>()? }
            }
        };
        Some(Self { at: node.base, stride: 0, inner })
    }

    /// How many records it stands for; saturates.
    pub fn records(&self) -> u64 {
        match &self.inner {
            Inner::Record { .. } => 1,
            Inner::Loop { count, body } => body.iter().fold(0u64, |sum, part| sum.saturating_add(part.records())).saturating_mul(*count),
        }
    }

    /// The kind of its first record.
    pub fn kind(&self) -> u32 {
        match &self.inner {
            Inner::Record { kind, .. } => *kind,
            Inner::Loop { body, .. } => body.first().map_or(0, Self::kind),
        }
    }

    /// Its lowest byte and the end of its highest; None where there is no record. Saturates.
    pub fn range(&self) -> Option<(i64, i64)> {
        let (low, high) = match &self.inner {
            Inner::Record { size, .. } => (0, *size),
            Inner::Loop { count, body } => body.iter().filter_map(|part| part.ranges(*count)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?,
        };
        Some((low.saturating_add(self.at), high.saturating_add(self.at)))
    }

    /// The same over `count` rounds of the loop around it.
    fn ranges(&self, count: u64) -> Option<(i64, i64)> {
        let (low, high) = self.range()?;
        let last = self.stride.saturating_mul(i64::try_from(count.checked_sub(1)?).unwrap_or(i64::MAX));
        Some((low.saturating_add(last.min(0)), high.saturating_add(last.max(0))))
    }

    /// All its records; None for more than [`RECORDS_MAX`].
    pub fn expand(&self) -> Option<Vec<Record>> {
        let records = self.records();
        if records > RECORDS_MAX {
            return None;
        }
        let mut out = Vec::with_capacity(records as usize);
        self.append(0, &mut out);
        Some(out)
    }

    fn append(&self, base: i64, out: &mut Vec<Record>) {
        let base = base.wrapping_add(self.at);
        match &self.inner {
            Inner::Record { kind, size } => out.push(Record { kind: *kind, offset: base, size: *size }),
            // Rounds of nothing are not counted through.
            Inner::Loop { body, .. } if self.records() == 0 || body.is_empty() => (),
            Inner::Loop { count, body } => {
                for round in 0..*count {
                    body.iter().for_each(|part| part.append(base.wrapping_add(part.stride.wrapping_mul(round as i64)), out));
                }
            }
        }
    }
}
