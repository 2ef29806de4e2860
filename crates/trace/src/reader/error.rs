//! What can go wrong in reading a trace: each case one sentence with the file and the cure.

use std::fmt;
use std::path::{Path, PathBuf};

/// An error of the reader.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried: "read", "create", ...
        doing: &'static str,
        /// Its answer.
        source: std::io::Error,
    },
    /// A newer program wrote it.
    Newer {
        /// The file.
        path: PathBuf,
        version: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// The contents are not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, in bytes.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// There is nothing to collect.
    NoLogs {
        /// The directory.
        dir: PathBuf,
        /// Whether it has nothing at all, so that a run can be traced there.
        is_empty: bool,
    },
    /// The Parquet library refused.
    Parquet {
        /// The file being written.
        path: PathBuf,
        /// Its answer.
        source: parquet::errors::ParquetError,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, doing, source }
    }

    pub(crate) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Damaged { path: path.to_owned(), offset, what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, doing, source } => write!(f, "{}: cannot {doing}: {source}", path.display()),
            Error::Newer { path, version, known } => write!(
                f,
                "{}: written by a newer version of the trace format ({version}; this program reads up to {known}); collect it with the newer stripewise",
                path.display()
            ),
            Error::Damaged { path, offset, what } => {
                write!(f, "{}: damaged at byte {offset}: {what}; collect with --lenient to count and skip what is damaged", path.display())
            }
            Error::NoLogs { dir, is_empty: true } => write!(
                f,
                "{}: no trace logs (*.swt) here; run the program with 'stripewise run --trace {} -- COMMAND' first",
                dir.display(),
                dir.display()
            ),
            Error::NoLogs { dir, is_empty: false } => write!(
                f,
                "{}: no trace logs (*.swt) here, and a run is traced in a new directory; run the program with 'stripewise run --trace NEW_DIR -- COMMAND' first",
                dir.display()
            ),
            Error::Parquet { path, source } => {
                write!(f, "{}: cannot write Parquet: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Parquet { source, .. } => Some(source),
            _ => None,
        }
    }
}
