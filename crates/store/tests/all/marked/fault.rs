//! Ways to get the marks wrong that the checks must find. They live in the model: no production code knows them.

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A reader takes what he got from a copy without a second look.
    NoSecondLook,
    /// He looks whether a writer is there or a block is stale, and not at the version.
    LooksAtBitsAlone,
    /// A writer does not care whether another is there.
    UnnoticedWriter,
    /// A writer marks what he has written.
    MarksAfterHome,
    /// A writer looks for copies before he enters the epoch, and not in it.
    MarksOutsideEpoch,
    /// Nothing is marked while copies are being made.
    NoMarkWhileBuilding,
    /// The marks are settled, and then the copies are written.
    SettlesBeforeCopy,
    /// Where the home took a part of a write, the copies get all of it.
    CopiesWhatIsPart,
    /// A hole is marked when it is there.
    PunchMarksAfter,
    /// A cut marks when it is done.
    CutMarksLast,
    /// A cut marks when the size is set, and whoever ends a dead one's does not.
    CutMarksAfterSize,
    /// The same, and whoever ends it does: nobody sees what is behind the size, and nothing grows over it before. That loses nothing.
    CutMarksBeforeTrim,
    /// A map looks for copies, and then pins the file.
    MapMarksBeforePin,
    /// Copies are made from a file that is mapped.
    NoLookAtPins,
    /// Copying begins while programs are inside who know of no copies.
    NoGrace,
    /// Programs are told of copies before there is a record of them.
    WordBeforeRecord,
    /// Copies count before they are durable.
    CountsBeforeSync,
    /// Copies count before that is durable what they were made from.
    CountsBeforeHomeSync,
    /// Nobody notes the boot.
    NoNote,
    /// A writer notes the boot when the home is written.
    NotesAfterHome,
    /// That the boot is noted is said before it is durable.
    NotesBeforeFlush,
    /// Two threads of a process learn of copies at once: one's place may stand beside the other's container.
    LearnsUnlocked,
    /// Copies are dropped without a note of the boot: the word may come back after a power cut, and what was written meanwhile was not marked.
    DropsUnnoted,
    /// Copies that a write invalidates are marked when the home is written.
    InvalidatesAfterHome,
    /// A writer that has no copies to write marks nothing.
    InvalidatesNothing,
    /// A reader of copies that writes invalidate looks at what the writers of others leave.
    LooksAsIfUpdated,
    /// He looks at what writes leave for him, and not at what cuts and maps do.
    LooksAtWritesAlone,
}

impl Fault {
    /// All by which a reader may get what the file was not.
    pub const HARMFUL: [Self; 26] = [
        Self::NoSecondLook,
        Self::LooksAtBitsAlone,
        Self::UnnoticedWriter,
        Self::MarksAfterHome,
        Self::MarksOutsideEpoch,
        Self::NoMarkWhileBuilding,
        Self::SettlesBeforeCopy,
        Self::CopiesWhatIsPart,
        Self::PunchMarksAfter,
        Self::CutMarksLast,
        Self::CutMarksAfterSize,
        Self::MapMarksBeforePin,
        Self::NoLookAtPins,
        Self::NoGrace,
        Self::WordBeforeRecord,
        Self::CountsBeforeSync,
        Self::CountsBeforeHomeSync,
        Self::NoNote,
        Self::NotesAfterHome,
        Self::NotesBeforeFlush,
        Self::LearnsUnlocked,
        Self::DropsUnnoted,
        Self::InvalidatesAfterHome,
        Self::InvalidatesNothing,
        Self::LooksAsIfUpdated,
        Self::LooksAtWritesAlone,
    ];
}
