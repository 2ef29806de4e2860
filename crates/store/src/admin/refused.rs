//! An error of the system that tells which part of a store is not what it should be, and why.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use stripewise_target::within::Refusal;

/// A part that is not used, inside an [`io::Error`].
#[derive(Debug)]
pub struct Refused {
    /// The part.
    pub at: PathBuf,
    /// What is wrong with it.
    pub why: Refusal,
}

impl Refused {
    /// The refusal behind an error of the system, if it is one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// What to do about it.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self.why {
            Refusal::Owner => "give it back to its owner if it is yours, else find out who put it there and remove it",
            Refusal::Foreign => "mount or restore the right one; `stripewise store fsck` says what is wrong with it",
            Refusal::Size => "restore it from a copy, or remove the file that it belongs to",
            Refusal::WorldWritable => "take the right to write from others (chmod o-w), or set the sticky bit (chmod +t) if the store is shared",
            _ => "find out who put it there and remove it",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at.display(), self.why.text())
    }
}

impl std::error::Error for Refused {}

/// The error of the system that a refusal is.
pub fn refused(at: &Path, why: Refusal) -> io::Error {
    match why {
        Refusal::Os(errno) => errno.into(),
        why => io::Error::other(Refused { at: at.to_path_buf(), why }),
    }
}
