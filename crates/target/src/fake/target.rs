//! A directory of the fake disk as a target, and a file of it as an object. Neither has a descriptor or a map; changes count as steps.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::content::{DataOp, PAGE};
use super::tree::Node;
use super::{Disk, Found};
use crate::identity::IDENTITY_FILE;
use crate::interface::{Facts, Object, Opening, Ready, Target};
use crate::names::{ObjectName, object_stem};
use crate::op::{Direction, Memory, OFFSET_MAX, Op};
use crate::within::Refusal;

/// A directory as a target.
#[derive(Clone)]
pub struct Fake {
    disk: Disk,
    dir: PathBuf,
}

impl Fake {
    /// The target in a directory of a disk.
    #[must_use]
    pub fn new(disk: &Disk, dir: &Path) -> Self {
        Self { disk: disk.clone(), dir: dir.to_path_buf() }
    }

    /// The disk that it lies on.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    fn path(&self, name: ObjectName) -> PathBuf {
        self.dir.join(String::from_utf8_lossy(name.text().as_bytes()).as_ref())
    }
}

impl Target for Fake {
    type Object = FakeObject;

    fn create(&self, name: ObjectName, _mode: u32, ready: Option<Ready<'_>>) -> Result<FakeObject, Errno> {
        let path = self.path(name);
        let Some(ready) = ready else { return self.disk.make_file(&path) };
        if self.disk.find(&path).is_some() {
            return Err(Errno::EXIST);
        }
        let unready = self.dir.join(String::from_utf8_lossy(name.unready_text(self.disk.steps()).as_bytes()).as_ref());
        let made = self.disk.make_file(&unready)?;
        // Nobody else has a file of this name, and nobody looks for it.
        if let Err(errno) = ready(&made).and_then(|()| self.disk.rename(&unready, &path)) {
            let _ = self.disk.unlink(&unready);
            return Err(errno);
        }
        Ok(made)
    }

    fn open(&self, name: ObjectName, _opening: Opening<'_>) -> Result<FakeObject, Refusal> {
        Ok(self.disk.open(&self.path(name))?)
    }

    fn remove(&self, name: ObjectName, _owners: &[u32]) -> Result<(), Refusal> {
        Ok(self.disk.unlink(&self.path(name))?)
    }

    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno> {
        match self.disk.open(&self.path(name)) {
            Err(Errno::NOENT) => Ok(None),
            opened => opened?.facts().map(Some),
        }
    }

    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
        self.disk.list(&self.dir)?.iter().filter_map(|name| ObjectName::of_text(name.as_encoded_bytes())).try_for_each(each)
    }

    fn used_bytes(&self) -> Result<u64, Errno> {
        let names = self.disk.list(&self.dir)?;
        let found = names.iter().filter(|name| object_stem(name.as_encoded_bytes()).is_some()).map(|name| self.disk.find(&self.dir.join(name)));
        Ok(found.map(|found| if let Some((_, Found::File(_, used_bytes))) = found { used_bytes } else { 0 }).sum())
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        Ok(self.disk.free_bytes())
    }

    fn sync(&self) -> Result<(), Errno> {
        self.disk.sync_dir(&self.dir)
    }

    fn identity(&self, _owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
        match self.disk.open(&self.dir.join(IDENTITY_FILE)) {
            Err(Errno::NOENT) => Ok(0),
            opened => Ok(crate::batch::read_at(&opened?, into, 0)?),
        }
    }

    fn identify(&self, text: &[u8]) -> Result<(), Errno> {
        let unready = self.dir.join(format!(".{IDENTITY_FILE}.{:016x}.tmp", self.disk.steps()));
        let made = self.disk.make_file(&unready)?;
        crate::batch::write_at(&made, text, 0)?;
        made.sync()?;
        self.disk.rename(&unready, &self.dir.join(IDENTITY_FILE))?;
        self.sync()
    }
}

/// An open file.
pub struct FakeObject {
    disk: Disk,
    node: u64,
}

impl FakeObject {
    pub(super) fn new(disk: Disk, node: u64) -> Self {
        Self { disk, node }
    }

    /// The number of its inode.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.node
    }

    /// What there is to say of it: times are numbers of steps.
    ///
    /// # Errors
    /// `INVAL` for what is no file.
    pub fn facts(&self) -> Result<Facts, Errno> {
        match self.disk.lock().nodes.get(&self.node) {
            Some(Node::File { live, changed, .. }) => {
                let changed_ns = *changed as i64;
                Ok(Facts { len: live.len, used_bytes: live.pages.len() as u64 * PAGE, modified_ns: changed_ns, changed_ns, unfit: None })
            }
            _ => Err(Errno::INVAL),
        }
    }

    fn with<T>(&self, f: impl FnOnce(&super::content::Content) -> T) -> Result<T, Errno> {
        match self.disk.lock().nodes.get(&self.node) {
            Some(Node::File { live, .. }) => Ok(f(live)),
            _ => Err(Errno::INVAL),
        }
    }

    fn write(&self, op: &mut Op<'_>) -> Result<(), Errno> {
        let mut bytes = Vec::with_capacity(op.len() as usize);
        for part in op.memory() {
            // SAFETY: the operation's memory; tests give good addresses.
            bytes.extend_from_slice(unsafe { slice_of(part) });
        }
        self.disk.change_file(self.node, DataOp::Write(op.offset(), bytes))?;
        op.outcome.done = op.len();
        Ok(())
    }

    fn read(&self, op: &mut Op<'_>) -> Result<(), Errno> {
        let mut at = op.offset();
        op.outcome.done = self.with(|content| {
            for part in op.memory() {
                // SAFETY: as above, and a read's memory is borrowed mutably.
                let into = unsafe { slice_of_mut(part) };
                let got = content.read(at, into);
                at += got as u64;
                if got < into.len() {
                    break;
                }
            }
            at - op.offset()
        })?;
        Ok(())
    }
}

/// # Safety
/// The memory is good to read.
unsafe fn slice_of(part: &Memory) -> &[u8] {
    // SAFETY: the caller's promise; nothing is read where there are no bytes.
    if part.len == 0 { &[] } else { unsafe { core::slice::from_raw_parts(part.base, part.len) } }
}

/// # Safety
/// The memory is good to write, and nobody else's meanwhile.
unsafe fn slice_of_mut<'a>(part: &Memory) -> &'a mut [u8] {
    // SAFETY: as above.
    if part.len == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(part.base, part.len) } }
}

impl Object for FakeObject {
    fn start(&self, _op: &mut Op<'_>, _is_one_of_many: bool) {}

    fn finish(&self, op: &mut Op<'_>) {
        let moved = match op.direction() {
            Direction::Read => self.read(op),
            Direction::Write => self.write(op),
        };
        op.outcome.error = moved.err();
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        at.checked_add(len).filter(|end| *end <= OFFSET_MAX).ok_or(Errno::INVAL)?;
        if len == 0 {
            return Ok(());
        }
        self.disk.change_file(self.node, DataOp::Punch(at, len))
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        if len > OFFSET_MAX {
            return Err(Errno::INVAL);
        }
        self.disk.change_file(self.node, DataOp::Truncate(len))
    }

    fn len(&self) -> Result<u64, Errno> {
        self.with(|content| content.len)
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        self.with(|content| content.next_data(at))
    }

    fn sync(&self) -> Result<(), Errno> {
        let mut tree = self.disk.lock();
        tree.check_alive()?;
        if let Some(Node::File { live, durable, ops, .. }) = tree.nodes.get_mut(&self.node) {
            durable.clone_from(live);
            ops.clear();
        }
        Ok(())
    }
}
