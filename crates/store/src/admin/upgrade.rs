//! Bringing a store to the form that this version writes. So far there is one version of everything, so what is left to do is to make
//! sure of it: every file of the store that has a version is looked at, and a newer one is refused before anything is touched.

use stripewise_target::identity::IDENTITY_FILE;
use stripewise_target::within::TEXT_BYTES_MAX;

use super::error::{Context, Result, StoreError};
use super::medium::{Open, read_small};
use super::metadata::journal;
use super::metadata::sums;
use super::store::Store;
use crate::bin::STORE_VERSION;
use crate::ctl::CTL_MAGIC;

/// What an upgrade saw and did.
#[derive(Clone, Debug, Default, serde::Serialize, PartialEq, Eq)]
pub struct Upgraded {
    /// Version of the store now.
    pub version: u32,
    /// Files looked at.
    pub files: usize,
    /// Parts that were rewritten.
    pub changed: usize,
}

/// Checks the version of every part of the store.
///
/// # Errors
/// `Newer` naming the first part that is newer, `Damaged` for one that cannot be read, `InUse` when programs use the store.
pub fn upgrade(store: &Store<'_>) -> Result<Upgraded> {
    let _lock = store.lock_exclusive()?;
    for target in &store.targets {
        let path = target.path.join(IDENTITY_FILE);
        if let Ok(bytes) = read_small(store.medium, &path, TEXT_BYTES_MAX) {
            let version = bytes.strip_prefix(b"stripewise-target ").and_then(|r| r.split(|c| *c == b'\n').next());
            if let Some(version) = version.filter(|v| *v != b"1") {
                return Err(newer(&path, &String::from_utf8_lossy(version)));
            }
        }
    }
    let mut done = Upgraded { version: STORE_VERSION, ..Upgraded::default() };
    for dir in [store.files_dir(), store.trash_dir()] {
        for id in store.ids_in(&dir)? {
            let dir = dir.join(super::ids::id_text(id));
            journal::find(store, &dir)?;
            let ctl = dir.join("ctl");
            if store.medium.stat(&ctl).doing("look at", &ctl)?.is_some() {
                let mut magic = [0u8; 8];
                let got = store.medium.open(&ctl, Open::Read).doing("open", &ctl)?.read_at(&mut magic, 0).doing("read", &ctl)?;
                if got == 8 && magic.starts_with(b"SWCTL") && magic > CTL_MAGIC {
                    return Err(newer(&ctl, &String::from_utf8_lossy(magic.get(5..).unwrap_or(&[]))));
                }
            }
        }
    }
    for id in store.ids()? {
        match store.layout(id) {
            Ok(_) => sums::load(store, id).map(drop)?,
            // A creation that was never finished has none yet.
            Err(StoreError::NotFound(_)) => {}
            Err(e) => return Err(e),
        }
        done.files += 1;
    }
    Ok(done)
}

fn newer(path: &std::path::Path, version: &str) -> StoreError {
    StoreError::Newer(format!("{} has version {version}, this Stripewise reads up to 1; use the newer Stripewise", path.display()))
}
