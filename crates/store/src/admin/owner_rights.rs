//! Working with the rights of a store's owner: what a library opens by path, as SQLite does the index and the journals beside it, may stand for anything
//! in a store of somebody else's. Root then touches no more than the owner could.

use super::error::{Context, Result, StoreError};
use super::store::Store;

/// Whose rights to files are to be taken on.
#[derive(Clone, Copy, Debug)]
pub struct Owner(Option<(u32, u32)>);

/// The calling thread has these rights to files until this is dropped.
pub struct OwnerRights(Option<(u32, u32)>);

impl Owner {
    /// The owner of a store.
    ///
    /// # Errors
    /// `Invalid` for one who is neither the store's owner nor root: he would follow the owner's links with rights of his own. `Io`.
    pub fn of(store: &Store<'_>) -> Result<Self> {
        let euid = rustix::process::geteuid().as_raw();
        match store.medium.stat(&store.root).doing("look at", &store.root)? {
            Some(stat) if euid != 0 && stat.uid != 0 && stat.uid != euid => {
                Err(StoreError::Invalid(format!("{}: its index is its owner's; run this as uid {}", store.root.display(), stat.uid)))
            }
            Some(stat) if euid == 0 && stat.uid != 0 => Ok(Self(Some((stat.uid, stat.gid)))),
            _ => Ok(Self(None)),
        }
    }

    /// Takes them on.
    #[must_use]
    pub fn rights(self) -> OwnerRights {
        OwnerRights(self.0.map(|(uid, gid)| {
            // The group first: after the user it may not be changed any more. Both calls tell what was before.
            // SAFETY: plain calls that change the calling thread's credentials only.
            let gid = unsafe { libc::setfsgid(gid) } as u32;
            // SAFETY: as above.
            (unsafe { libc::setfsuid(uid) } as u32, gid)
        }))
    }
}

impl Drop for OwnerRights {
    fn drop(&mut self) {
        if let Some((uid, gid)) = self.0 {
            // SAFETY: plain calls that change the calling thread's credentials only.
            unsafe { libc::setfsuid(uid) };
            // SAFETY: as above.
            unsafe { libc::setfsgid(gid) };
        }
    }
}
