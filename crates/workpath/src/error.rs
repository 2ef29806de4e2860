//! What is wrong with a path, or with the number of processes for it.

use std::fmt;

/// Each prints as the rest of a sentence that begins with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The file is none, is cut, or a number in it means nothing.
    Damaged(String),
    /// A later version's.
    Newer(u32),
    /// It cannot be played so: too few processes, calls that do not match.
    Unplayable(String),
}

impl fmt::Display for PathError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(what) => write!(out, "{what}; make the path again with 'stripewise synth'"),
            Self::Newer(version) => write!(out, "a path of version {version}, this is for version 1; use a newer Stripewise"),
            Self::Unplayable(what) => write!(out, "{what}"),
        }
    }
}

impl std::error::Error for PathError {}
