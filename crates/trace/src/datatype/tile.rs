//! A compiled datatype: nested loops over blocks, in words. It lies in memory that somebody gave, for the preloaded library asks it where a view's bytes are.

/// What a compiled type begins with: the place of its outermost node.
pub(super) const ROOT_AT: usize = 0;
/// Words of a node: its kind, bytes of data, extent, and two that the kind has.
pub(super) const NODE_WORDS: usize = 5;
/// Words of a part: displacement, bytes of data before it, node.
pub(super) const PART_WORDS: usize = 3;
pub(super) const BLOCK: u64 = 0;
/// Stride, node of the body.
pub(super) const LOOP: u64 = 1;
/// Place of the first part, their number.
pub(super) const PARTS: u64 = 2;

/// A compiled type, tiled without end when it is the filetype of a view.
#[derive(Clone, Copy, Debug)]
pub struct Tile<'a> {
    words: &'a [u64],
}

/// A part of a compiled type, a type itself.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    words: &'a [u64],
    at: usize,
}

/// What a type shows, in the order of its data.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// Bytes as they lie.
    Block,
    /// A type again and again.
    Loop {
        /// Bytes from one to the next.
        stride: i64,
        /// What is repeated, as often as its data fit into the whole's.
        body: Node<'a>,
    },
    /// Types at displacements.
    Parts(Parts<'a>),
}

/// Types at displacements, in the order of their data.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    words: &'a [u64],
    first: usize,
    len: usize,
}

impl<'a> Tile<'a> {
    /// The type that these words were compiled to.
    #[must_use]
    pub const fn open(words: &'a [u64]) -> Self {
        Self { words }
    }

    /// The whole type.
    #[must_use]
    pub fn root(&self) -> Node<'a> {
        Node { words: self.words, at: self.words.get(ROOT_AT).map_or(usize::MAX, |at| *at as usize) }
    }

    /// Whether an array of the type is bytes as they lie.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        let root = self.root();
        matches!(root.shape(), Shape::Block) && i64::try_from(root.bytes()).is_ok_and(|bytes| bytes == root.extent())
    }

    /// Hands out the ranges (offset, bytes) of `bytes` of the view's data from byte `from` on, the view beginning at `displacement`, in the order of the data.
    /// `None`: beyond the largest file, or `each` has said so.
    pub fn each_range(&self, displacement: i64, from: u64, bytes: u64, each: &mut dyn FnMut(i64, u64) -> Option<()>) -> Option<()> {
        let root = self.root();
        let to = from.checked_add(bytes)?;
        if bytes == 0 {
            return Some(());
        }
        if self.is_dense() {
            return each(displacement.checked_add(i64::try_from(from).ok()?)?, bytes);
        }
        walk_loop(root, root.extent(), displacement, from, to, each)
    }
}

/// The bytes `from..to` of a type's data, the type lying at `at`.
fn walk(node: Node<'_>, at: i64, from: u64, to: u64, each: &mut dyn FnMut(i64, u64) -> Option<()>) -> Option<()> {
    match node.shape() {
        Shape::Block => each(at.checked_add(i64::try_from(from).ok()?)?, to - from),
        Shape::Loop { stride, body } => walk_loop(body, stride, at, from, to, each),
        Shape::Parts(parts) => {
            for (by, before, body) in parts.from(from)?.take_while(|part| part.1 < to) {
                walk(body, at.checked_add(by)?, from.saturating_sub(before), (to - before).min(body.bytes()), each)?;
            }
            Some(())
        }
    }
}

/// The same of a type that is repeated.
fn walk_loop(body: Node<'_>, stride: i64, at: i64, from: u64, to: u64, each: &mut dyn FnMut(i64, u64) -> Option<()>) -> Option<()> {
    let bytes = body.bytes();
    let mut before = from.checked_div(bytes)?.checked_mul(bytes)?;
    let mut place = stride.checked_mul(i64::try_from(before / bytes).ok()?)?.checked_add(at)?;
    while before < to {
        walk(body, place, from.saturating_sub(before), (to - before).min(bytes), each)?;
        before = before.checked_add(bytes)?;
        if before < to {
            place = place.checked_add(stride)?;
        }
    }
    Some(())
}

impl<'a> Node<'a> {
    fn field(&self, field: usize) -> u64 {
        self.at.checked_add(field).and_then(|at| self.words.get(at)).copied().unwrap_or(0)
    }

    /// Bytes of data.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.field(1)
    }

    /// From one element to the next.
    #[must_use]
    pub fn extent(&self) -> i64 {
        self.field(2) as i64
    }

    /// What it shows.
    #[must_use]
    pub fn shape(&self) -> Shape<'a> {
        match self.field(0) {
            LOOP => Shape::Loop { stride: self.field(3) as i64, body: Node { words: self.words, at: self.field(4) as usize } },
            PARTS => Shape::Parts(Parts { words: self.words, first: self.field(3) as usize, len: self.field(4) as usize }),
            _ => Shape::Block,
        }
    }
}

impl<'a> Parts<'a> {
    fn get(&self, index: usize) -> Option<(i64, u64, Node<'a>)> {
        let at = index.checked_mul(PART_WORDS)?.checked_add(self.first)?;
        let &[by, before, node] = self.words.get(at..at.checked_add(PART_WORDS)?)? else { return None };
        (index < self.len).then_some((by as i64, before, Node { words: self.words, at: node as usize }))
    }

    /// The parts from the one that holds byte `from` of the data on: displacement, bytes of data before it, type. `None` where it has none.
    pub fn from(self, from: u64) -> Option<impl Iterator<Item = (i64, u64, Node<'a>)>> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle)?.1 <= from { low = middle + 1 } else { high = middle }
        }
        Some((low.checked_sub(1)?..self.len).map_while(move |index| self.get(index)))
    }
}
