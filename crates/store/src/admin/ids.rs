//! Ids and paths as text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_target::text::parse_id;

use super::error::{Result, StoreError};

/// Reads bytes of a path.
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// A path as a word of a shell command that a person is told, which may stand in quotes itself: with backslashes where these can be read.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "@%+=:,./_-".contains(c);
    if text.is_empty() || text.chars().any(|c| c.is_control() || "*?[]'\"\\$`!".contains(c)) {
        return format!("'{}'", text.replace('\'', "'\"'\"'"));
    }
    text.chars().fold(String::new(), |mut word, c| {
        if !is_plain(c) {
            word.push('\\');
        }
        word.push(c);
        word
    })
}

/// A file id as it stands in names.
pub fn id_text(id: u64) -> String {
    format!("{id:016x}")
}

/// Reads a file id as it stands in names.
///
/// # Errors
/// `Invalid` when it is not 16 lower-case hexadecimal digits.
pub fn id_from(text: &str) -> Result<u64> {
    parse_id(text.as_bytes())
        .ok_or_else(|| StoreError::Invalid(format!("file id {text:?} is not 16 lower-case hexadecimal digits; take it from `stripewise store ls`")))
}
