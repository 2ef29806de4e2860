//! A path in memory: its nodes as they stand in the file, its tables.

use crate::node::{NODE_BYTES, Node};
use crate::tables::Tables;

/// A path whose bytes are sound; made by [`Path::parse`].
#[derive(Clone, Debug)]
pub struct Path<'a> {
    pub(crate) nodes: &'a [u8],
    pub tables: Tables,
    /// As its writer counted them.
    pub requests_of_root: u64,
}

impl Path<'_> {
    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len() / NODE_BYTES
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node by its place in preorder.
    #[must_use]
    pub fn node(&self, index: usize) -> Option<Node> {
        let at = index.checked_mul(NODE_BYTES)?;
        Node::parse(self.nodes.get(at..)?.first_chunk()?)
    }
}
