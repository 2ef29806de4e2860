//! What can be wrong with a trace or the description of a workload: one sentence each, with the place and the cure.

use core::fmt;

/// Why there is no next request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// A description asks for what cannot be; the text names the key and the cure.
    Invalid(String),
    /// A trace cannot be read; the text names the file, the line and field where one is to blame, and the cure.
    Trace(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(text) | Error::Trace(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for Error {}
