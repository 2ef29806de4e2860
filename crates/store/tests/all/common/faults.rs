//! Ways to get the protocol wrong that the checks must catch. They live in the tests' own halves: no production code knows them.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    None,
    /// The first byte is copied while programs that found no move are still inside.
    NoGraceBeforeCopy,
    /// A pass copies while those who set its bits have yet to write.
    NoGraceInPass,
    /// No waiting for programs that stay inside before the freeze. Nothing but the length of the freeze depends on it.
    NoGraceBeforeFreeze,
    /// The last pass begins while programs that found the span not frozen are inside.
    NoGraceWhenFrozen,
    /// The old home is punched under those who look at it.
    NoGraceBeforePunch,
    /// A pass clears its bits after it has copied.
    ClearAfterCopy,
    /// The layout is published before the new home is flushed.
    PublishBeforeSync,
    /// Programs look up the layout before the move word.
    LayoutBeforeWord,
    /// The last pass takes its bits and only then waits until all have left.
    TakeBeforeFrozenGrace,
    /// What the last pass took is copied and forgotten although a waiter has called the freeze off, and writers are inside again.
    ForgetWhenCalledOff,
}

impl Fault {
    /// All that lose data.
    pub const HARMFUL: [Self; 9] = [
        Self::NoGraceBeforeCopy,
        Self::NoGraceInPass,
        Self::NoGraceWhenFrozen,
        Self::NoGraceBeforePunch,
        Self::ClearAfterCopy,
        Self::PublishBeforeSync,
        Self::LayoutBeforeWord,
        Self::TakeBeforeFrozenGrace,
        Self::ForgetWhenCalledOff,
    ];

    /// The grace that a mover asks for now, by the fault that would leave it out.
    pub fn of_grace(is_frozen: bool, has_copied_all: bool, has_taken: bool) -> Self {
        match (is_frozen, has_copied_all, has_taken) {
            (true, ..) => Self::NoGraceWhenFrozen,
            (_, false, _) => Self::NoGraceBeforeCopy,
            (.., true) => Self::NoGraceInPass,
            _ => Self::NoGraceBeforeFreeze,
        }
    }
}
