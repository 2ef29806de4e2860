//! What killed verbs leave in a store: files that were to take another's place.

use std::path::Path;

use super::temporary::is_temporary;
use crate::admin::error::{Context, Result};
use crate::admin::medium::Kind;
use crate::admin::store::Store;

/// Age from which on what a verb was writing is taken for a killed one's whatever else runs, seconds.
const STALE_S: i64 = 3600;

/// Removes what killed verbs were writing in a directory; returns how many files. With `idle`, nobody is writing.
///
/// # Errors
/// Those of reading the directory.
pub fn temporaries(store: &Store<'_>, dir: &Path, idle: bool) -> Result<usize> {
    let medium = store.medium;
    let mut removed = 0;
    for name in medium.list(dir).doing("list", dir)?.into_iter().filter(|name| is_temporary(name)) {
        let path = dir.join(name);
        let Some(stat) = medium.stat(&path).doing("look at", &path)? else { continue };
        let is_stale = idle || medium.now_s() - stat.mtime_s >= STALE_S;
        if is_stale && stat.kind != Kind::Dir && medium.unlink(&path).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}
