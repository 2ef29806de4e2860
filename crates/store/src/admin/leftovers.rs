//! What earlier versions and killed verbs leave in a store: run directories of boots, which had one each until slots told their boot and machine
//! themselves, and files that were to take another's place.

use std::path::Path;

use super::error::{Context, Result};
use super::medium::{Kind, read_small};
use super::store::Store;
use super::temporary::is_temporary;
use crate::within::TEXT_BYTES_MAX;

/// Age from which on what a verb was writing is taken for a killed one's whatever else runs, seconds.
const STALE_S: i64 = 3600;
/// Digits and hyphens of a boot's id.
const BOOT_ID_BYTES: usize = 36;

/// Looks after `run/<boot-id>/` of earlier versions: one of another machine that was used in the last 24 hours keeps the store closed, others are
/// removed with `clean`, those of this boot when they are empty.
///
/// # Errors
/// `InUse` as described, `Io`.
pub fn old_boots(store: &Store<'_>, clean: bool) -> Result<()> {
    let (run, medium) = (store.run_dir(), store.medium);
    let boot = store.boot_id()?;
    let machine = medium.machine_id().doing("read", Path::new("/etc/machine-id"))?;
    for name in medium.list(&run).doing("list", &run)? {
        let dir = run.join(&name);
        let is_boot = name.len() == BOOT_ID_BYTES && name.as_encoded_bytes().iter().all(|c| c.is_ascii_hexdigit() || *c == b'-');
        if !is_boot || medium.stat(&dir).doing("look at", &dir)?.is_none_or(|s| s.kind != Kind::Dir) {
            continue;
        }
        let parts = medium.list(&dir).doing("list", &dir)?;
        let host = read_small(medium, &dir.join("host"), TEXT_BYTES_MAX).map(|b| String::from_utf8_lossy(&b).trim().to_string()).unwrap_or_default();
        if !host.is_empty() && host != machine {
            for slot in parts.iter().map(|n| dir.join(n)).filter(|p| p.extension().is_some_and(|e| e == "slot")) {
                let stat = medium.stat(&slot).doing("look at", &slot)?;
                if stat.is_some_and(|s| medium.now_s() - s.mtime_s < super::store::OTHER_MACHINE_FRESH_S) {
                    return Err(store.used_elsewhere(&host, &slot));
                }
            }
        }
        if clean && (parts.is_empty() || name.as_encoded_bytes() != boot.as_bytes()) {
            // Somebody else's may be his to remove, or the store's owner's.
            let _ = parts.iter().map(|part| dir.join(part)).try_for_each(|part| medium.unlink(&part)).and_then(|()| medium.rmdir(&dir));
        }
    }
    Ok(())
}

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

/// Makes what is common in `run/` where an older store lacks it, and lets all users of a shared one read what they have to, as far as we may.
pub fn renew(store: &Store<'_>) {
    let medium = store.medium;
    // Programs get on without it for now; what is wrong with it the check names.
    let _ = medium.devices(&store.run_dir(), store.targets.len(), true);
    let is_shared = matches!(medium.stat(&store.run_dir()), Ok(Some(run)) if run.mode & 0o002 != 0);
    for target in store.targets.iter().filter(|_| is_shared) {
        let path = target.path.join(crate::identity::IDENTITY_FILE);
        if matches!(medium.stat(&path), Ok(Some(s)) if s.mode & 0o004 == 0) {
            let _ = medium.change_mode(&path, 0, 0o444);
        }
    }
}
