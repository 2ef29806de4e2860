//! Who may own which part of a store, how many names it may have, and how long it may be (docs/security.md, "How a store is opened"). What a part is
//! follows from its place below the store's or a target's directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, FileType, statat};
use stripewise_target::identity::IDENTITY_FILE;
use stripewise_target::names::object_stem;
use stripewise_target::text::parse_id;
use stripewise_target::within::{Expected, TEXT_BYTES_MAX};

use crate::bin::{LAYOUT_BYTES_MAX, STORE_BIN_BYTES_MAX};
use crate::copies::RECORD_BYTES_MAX;
use crate::run::boot_of_slot;

/// What a part may be.
#[derive(Clone, Debug)]
pub(super) struct Allowed {
    owners: Vec<u32>,
    bytes_max: u64,
    hard_links: bool,
}

impl Allowed {
    /// A part of one of these users; of anybody when there are none.
    pub fn of(owners: &[u32]) -> Self {
        Self { owners: owners.to_vec(), bytes_max: u64::MAX, hard_links: false }
    }

    /// A file of a user's own, below no store: what he named is what he meant.
    pub fn anything() -> Self {
        Self { hard_links: true, ..Self::of(&[]) }
    }

    fn at_most(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }

    /// These users; none where everybody may own it.
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// As the opening of parts takes it.
    pub fn expected(&self) -> Expected<'_> {
        let expected = Expected::of(&self.owners).at_most(self.bytes_max);
        if self.hard_links { expected.hard_links_too() } else { expected }
    }
}

/// What a file directly in `files/<id>/` (open as `dir`, of `dir_owner`) may be in a store of `owner`.
pub(super) fn of_file(dir: BorrowedFd<'_>, dir_owner: u32, name: &OsStr, owner: u32) -> Allowed {
    let bytes = name.as_bytes();
    if bytes == b"head" {
        // Whoever it belongs to, the file belongs to.
        return Allowed::of(&[]);
    }
    let file_owner = head_owner(dir).unwrap_or(dir_owner);
    let allowed = Allowed::of(&[file_owner, owner, 0]);
    match bytes {
        // Written in place, so a file of somebody else's must not stand there.
        b"ctl" => Allowed::of(&[file_owner]),
        b"layout" => allowed.at_most(LAYOUT_BYTES_MAX),
        b"link" | b"adopting" | b"exporting" => allowed.at_most(TEXT_BYTES_MAX),
        _ if bytes.starts_with(crate::names::NEXT_LAYOUT_PREFIX) => allowed.at_most(LAYOUT_BYTES_MAX),
        _ => allowed,
    }
}

/// What any other file of a store may be.
pub(super) fn of_store(place: &[&OsStr], owner: u32) -> Allowed {
    let common = Allowed::of(&[owner, 0]);
    match place.iter().map(|part| part.as_bytes()).collect::<Vec<_>>().as_slice() {
        // Each is its plain file's owner's; what it says of the store is believed of nobody's file but his.
        [b"copies", _] => Allowed::of(&[]).at_most(RECORD_BYTES_MAX),
        [b"store.bin"] => common.at_most(STORE_BIN_BYTES_MAX),
        // Each is its process's; one with a second name, which anybody may have given it, still tells of its owner.
        [b"run", slot] if boot_of_slot(slot).is_some() => Allowed::anything(),
        _ => common,
    }
}

/// What a file on a target may be: objects are their file's owner's, whom `owner_of` tells by the file's name in the store.
pub(super) fn of_target(name: &OsStr, owner: u32, owner_of: impl FnOnce(&OsStr) -> Option<u32>) -> Allowed {
    let bytes = name.as_bytes();
    if bytes == IDENTITY_FILE.as_bytes() {
        return Allowed::of(&[owner, 0]).at_most(TEXT_BYTES_MAX);
    }
    match object_stem(bytes).filter(|stem| parse_id(stem).is_some()).and_then(|stem| owner_of(OsStr::from_bytes(stem))) {
        Some(head) => Allowed::of(&[head]),
        None => Allowed::of(&[owner, 0]),
    }
}

/// Whether `files/<id>` (open as `dir`, of `dir_owner`) is its file's, the store's owner's or root's. One without a sound head is its maker's.
pub(super) fn may_own_file_dir(dir: BorrowedFd<'_>, dir_owner: u32, owner: u32) -> bool {
    [owner, 0].contains(&dir_owner) || head_owner(dir).is_none_or(|head| head == dir_owner)
}

/// The owner of a file whose directory this is; `None` when there is no head that can be one.
pub(super) fn head_owner(dir: BorrowedFd<'_>) -> Option<u32> {
    let stat = statat(dir, c"head", AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1).then_some(stat.st_uid)
}
