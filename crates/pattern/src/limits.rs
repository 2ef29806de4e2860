//! How far the recogniser looks: what keeps it linear.

/// Longest body that is looked for at every cursor, nodes.
pub const PERIOD_MAX: usize = 8;
/// How far bodies of different lengths are compared, nodes beyond the cursor; the longest then extends as far as it holds.
pub const LOOK_AHEAD: usize = 64;
/// Longest body that is found by what was seen before, nodes.
pub const PERIOD_LONG_MAX: usize = 4096;
/// Passes at most. Eight dimensions need eight; what still folds after these stays as it is, and expands as exactly.
pub const LEVELS_MAX: usize = 24;
/// Records from which on something seen twice is taken for a loop.
pub(crate) const EVIDENCE: u64 = 8;
