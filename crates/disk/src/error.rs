//! What can be wrong with a disk, a run or its requests: one sentence each, with the key and the cure.

use core::fmt;

/// Why a disk cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The disk or the run asks for what cannot be; the text names the key and the cure.
    Invalid(String),
    /// The requests cannot be read, or one of them cannot be served; the text tells which.
    Request(String),
    /// Whoever watches the progress asked to stop.
    Interrupted,
}

impl Error {
    /// `key` is not as it must be.
    pub(crate) fn key(key: &str, wrong: impl fmt::Display, cure: &str) -> Self {
        Self::Invalid(format!("{key}: {wrong}; {cure}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) | Self::Request(text) => formatter.write_str(text),
            Self::Interrupted => formatter.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
