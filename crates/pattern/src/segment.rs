//! The patterns of a stream: what was folded, one after another, and between them what follows no pattern.

use crate::expand::expand;
use crate::irregular::Irregular;
use crate::levels::fold_all;
use crate::limits::EVIDENCE;
use crate::record::Record;
use crate::shape::{Node, Shapes};
use crate::tree::Tree;

/// From so many nodes on, each of a few records, a run of them is irregular; fewer stand for themselves.
const IRREGULAR_MIN: usize = 4;

/// What a stream did, in its order.
#[derive(Debug)]
pub struct Patterns {
    nodes: Vec<Node>,
    shapes: Shapes,
}

/// A part of a stream that one sentence describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Its first record, counted in the stream.
    pub first: u64,
    /// How many there are.
    pub records: u64,
    /// What they are.
    pub what: What,
}

/// What a segment is.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A single record or loops.
    Regular(Tree),
    /// Records without a pattern in their offsets, as a distribution.
    Irregular(Irregular),
    /// Equal loops at places without a pattern: the first of them, and how they are distributed, each taken for one record from its lowest to its highest
    /// byte.
    Scattered(Tree, Irregular),
}

/// The patterns of one stream; linear in its records.
pub fn recognise(records: impl IntoIterator<Item = Record>) -> Patterns {
    let mut shapes = Shapes::default();
    let nodes = records.into_iter().map(|record| shapes.record(record)).collect();
    let mut nodes = fold_all(nodes, &mut shapes);
    // Two alike are all that there is: as much of a pattern as two can be.
    if let [one, two] = nodes.as_slice()
        && one.shape == two.shape
        && let Some(pair) = shapes.looped(2, &[*one], std::iter::once(two.base.wrapping_sub(one.base)))
    {
        nodes = vec![pair];
    }
    Patterns { nodes, shapes }
}

impl Patterns {
    /// All records, exactly as they came.
    pub fn expand(&self) -> Vec<Record> {
        let mut out = Vec::with_capacity(self.records() as usize);
        for node in &self.nodes {
            expand(*node, &self.shapes, &mut out);
        }
        out
    }

    /// How many records there are.
    pub fn records(&self) -> u64 {
        self.nodes.iter().map(|node| self.shapes.records(node.shape)).sum()
    }

    /// How many loops and single records they were folded into.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The patterns in their order.
    pub fn segments(&self) -> Vec<Segment> {
        let is_small = |node: &Node| self.shapes.records(node.shape) < EVIDENCE;
        let mut segments = Vec::new();
        let mut first = 0;
        for run in self.nodes.chunk_by(|a, b| a.shape == b.shape || is_small(a) && is_small(b)) {
            let records = |nodes: &[Node]| nodes.iter().map(|node| self.shapes.records(node.shape)).sum::<u64>();
            let mut push = |nodes: &[Node], what| {
                let records = records(nodes);
                segments.push(Segment { first, records, what });
                first += records;
            };
            if run.len() >= IRREGULAR_MIN {
                let tree = run.first().and_then(|node| Tree::of(*node, &self.shapes));
                push(run, tree.filter(|tree| tree.records() >= EVIDENCE).map_or_else(|| self.irregular(run), |tree| self.scattered(run, tree)));
                continue;
            }
            for node in run.chunks(1) {
                if let Some(tree) = node.first().and_then(|node| Tree::of(*node, &self.shapes)) {
                    push(node, What::Regular(tree));
                }
            }
        }
        segments
    }

    fn irregular(&self, nodes: &[Node]) -> What {
        let mut all = Vec::new();
        nodes.iter().for_each(|node| expand(*node, &self.shapes, &mut all));
        What::Irregular(Irregular::of(&all))
    }

    fn scattered(&self, nodes: &[Node], first: Tree) -> What {
        let (low, high) = first.range().unwrap_or_default();
        let kind = first.kind();
        let block = |node: &Node| {
            let moved = node.base.wrapping_sub(first.at);
            Record { kind, offset: low.wrapping_add(moved), size: high.saturating_sub(low) }
        };
        let blocks: Vec<Record> = nodes.iter().map(block).collect();
        What::Scattered(first, Irregular::of(&blocks))
    }
}
