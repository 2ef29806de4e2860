//! What can be wrong with a scenario, a workload or a trace: one sentence each, with the key and the cure.

use core::fmt;

/// Why a simulation cannot be run.
#[derive(Debug)]
pub enum Error {
    /// The scenario or workload asks for what cannot be; the text names the key and the cure.
    Invalid(String),
    /// A trace cannot be read; the text names the file.
    Trace(String),
    /// Whoever watches the progress asked to stop.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(text) | Error::Trace(text) => formatter.write_str(text),
            Error::Interrupted => formatter.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
