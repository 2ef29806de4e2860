//! What can go wrong with a store. Every message is one sentence that names the file, the key where there is one, and the cure;
//! the Python binding maps each variant to one exception.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Result of every function of the admin half.
pub type Result<T> = std::result::Result<T, StoreError>;

/// An error of the admin half.
#[derive(Debug)]
pub enum StoreError {
    /// A system call failed.
    Io {
        /// What was being done, as a verb phrase ("read the layout").
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A store, file, target or directory does not exist.
    NotFound(String),
    /// The caller gave something that cannot be done: a bad specification, layout or option.
    Invalid(String),
    /// Something on disk is not what the format says.
    Damaged(String),
    /// Something on disk was written by a newer version.
    Newer(String),
    /// Somebody else is using the store.
    InUse(String),
    /// A target has no room.
    NoSpace(String),
    /// Something exists already.
    Exists(String),
    /// Whoever watched over a move stopped it; the file is whole.
    Stopped(String),
}

impl StoreError {
    /// Wraps an error of the system.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_path_buf(), source }
    }

    /// The same kind of error with a clause more about what it has led to.
    pub fn and(self, clause: &str) -> Self {
        let more = |message: String| format!("{message}; {clause}");
        match self {
            Self::Io { doing, path, source } => Self::Io { doing, path, source: io::Error::new(source.kind(), format!("{source}; {clause}")) },
            Self::NotFound(m) => Self::NotFound(more(m)),
            Self::Invalid(m) => Self::Invalid(more(m)),
            Self::Damaged(m) => Self::Damaged(more(m)),
            Self::Newer(m) => Self::Newer(more(m)),
            Self::InUse(m) => Self::InUse(more(m)),
            Self::NoSpace(m) => Self::NoSpace(more(m)),
            Self::Exists(m) => Self::Exists(more(m)),
            Self::Stopped(m) => Self::Stopped(more(m)),
        }
    }

    /// One word for the kind, stable for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Io { .. } => "io",
            Self::NotFound(_) => "not_found",
            Self::Invalid(_) => "invalid",
            Self::Damaged(_) => "damaged",
            Self::Newer(_) => "newer_version",
            Self::InUse(_) => "in_use",
            Self::NoSpace(_) => "no_space",
            Self::Exists(_) => "exists",
            Self::Stopped(_) => "stopped",
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, source } => {
                if let Some(refused) = super::refused::Refused::of(source) {
                    return write!(f, "could not {doing} {}: {refused}; {}", path.display(), refused.cure());
                }
                let cure = match source.kind() {
                    io::ErrorKind::NotFound => "check that it exists and that its file system is mounted",
                    io::ErrorKind::PermissionDenied => "check owner and mode, or run as the store's owner",
                    io::ErrorKind::ReadOnlyFilesystem => "mount its file system writable",
                    io::ErrorKind::StorageFull => "free space there",
                    _ if source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => "its links lead in a circle: name the file itself",
                    _ => "check the file system and try again",
                };
                write!(f, "could not {doing} {}: {source}; {cure}", path.display())
            }
            Self::NotFound(m)
            | Self::Invalid(m)
            | Self::Damaged(m)
            | Self::Newer(m)
            | Self::InUse(m)
            | Self::NoSpace(m)
            | Self::Exists(m)
            | Self::Stopped(m) => f.write_str(m),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Adds what was being done, and to which file, to an error of the system.
pub trait Context<T> {
    /// `doing` is a verb phrase: "read the layout".
    fn doing(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> Context<T> for std::result::Result<T, rustix::io::Errno> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(io::Error::from).doing(doing, path)
    }
}

impl<T> Context<T> for io::Result<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| StoreError::io(doing, path, source))
    }
}
