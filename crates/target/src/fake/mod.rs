//! A file system in memory for crash tests. It keeps what programs see (live) and what would survive a power cut (durable) apart, stops after any change, and
//! on a power cut makes durable a random part of what was not flushed: each page, each length and each directory entry on its own, as far as flushes allow.
//! [`Fake`] is a directory of it as a target.

mod content;
mod target;
mod tree;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use self::content::{DataOp, PAGE, apply_content};

pub use self::target::{Fake, FakeObject};
use self::tree::{Node, Tree};

/// The file system. Clones are the same one.
#[derive(Clone)]
pub struct Disk(Arc<Mutex<Tree>>);

/// What a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file of so many bytes, so many of which are allocated.
    File(u64, u64),
    /// A directory.
    Dir,
    /// A symbolic link with this text.
    Link(PathBuf),
    /// Shared memory.
    Memory,
}

/// Memory of a mapped file, in words of eight bytes; lives as long as a map of it.
pub struct Memory {
    base: *mut u64,
    words: usize,
}
// SAFETY: reached through atomics only.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn zeroed(words: usize) -> Arc<Self> {
        let base = Box::into_raw(vec![0u64; words].into_boxed_slice()).cast();
        Arc::new(Self { base, words })
    }

    fn words(&self) -> usize {
        self.words
    }

    /// Its first byte, for atomics: nobody borrows it otherwise.
    #[must_use]
    pub fn base(&self) -> *mut u8 {
        self.base.cast()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: made by Box::into_raw of a slice of this length in `zeroed`; dropped once, after the last map.
        drop(unsafe { Box::from_raw(core::ptr::slice_from_raw_parts_mut(self.base, self.words)) });
    }
}

impl Default for Disk {
    fn default() -> Self {
        Self::new()
    }
}

impl Disk {
    /// An empty one with a root directory.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Tree::new())))
    }

    fn lock(&self) -> MutexGuard<'_, Tree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes made so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// Counts a change that is made elsewhere.
    ///
    /// # Errors
    /// `IO` after the process was killed.
    pub fn step(&self) -> Result<(), Errno> {
        self.lock().step()
    }

    /// Lets `steps` more changes through; everything after fails, as if the process had been killed there.
    pub fn stop_after(&self, steps: u64) {
        let mut tree = self.lock();
        tree.stop_after = Some(tree.steps + steps);
    }

    /// A new process after a kill: what is live stays, changes go through again.
    pub fn restart(&self) {
        self.lock().stop_after = None;
    }

    /// Bytes that it says it has free.
    pub fn set_free_bytes(&self, bytes: u64) {
        self.lock().free_bytes = bytes;
    }

    /// Bytes that it says it has free.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.lock().free_bytes
    }

    /// Number of boots so far.
    #[must_use]
    pub fn boot(&self) -> u64 {
        self.lock().boot
    }

    /// Makes all that is live durable (an orderly unmount).
    pub fn settle(&self) {
        self.lock().settle();
    }

    /// Cuts the power and boots again: of what was not flushed, a random part (chosen by `seed`) is on the disk.
    pub fn cut_power(&self, seed: u64) {
        self.lock().cut_power(seed);
    }

    /// What a path leads to, and the number of its inode.
    #[must_use]
    pub fn find(&self, path: &Path) -> Option<(u64, Found)> {
        let tree = self.lock();
        let number = tree.find(path)?;
        let found = match tree.nodes.get(&number)? {
            Node::File { live, .. } => Found::File(live.len, live.pages.len() as u64 * PAGE),
            Node::Dir { .. } => Found::Dir,
            Node::Link(text) => Found::Link(text.clone()),
            Node::Memory(_) => Found::Memory,
        };
        Some((number, found))
    }

    /// Names that lead to an inode.
    #[must_use]
    pub fn names_of(&self, number: u64) -> u64 {
        self.lock().names_of(number)
    }

    /// Opens a file.
    ///
    /// # Errors
    /// `NOENT`.
    pub fn open(&self, path: &Path) -> Result<FakeObject, Errno> {
        let number = self.lock().find(path).ok_or(Errno::NOENT)?;
        Ok(FakeObject::new(self.clone(), number))
    }

    /// Makes an empty file.
    ///
    /// # Errors
    /// `EXIST`, `NOENT` without its directory, `IO` after a kill.
    pub fn make_file(&self, path: &Path) -> Result<FakeObject, Errno> {
        let number = self.lock().add(path, Node::empty_file())?;
        Ok(FakeObject::new(self.clone(), number))
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// As [`Disk::make_file`].
    pub fn make_dir(&self, path: &Path) -> Result<(), Errno> {
        self.lock().add(path, Node::empty_dir()).map(drop)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As [`Disk::make_file`].
    pub fn make_link(&self, text: &Path, at: &Path) -> Result<(), Errno> {
        self.lock().add(at, Node::Link(text.to_path_buf())).map(drop)
    }

    /// Shared memory of so many words by a name, made with `create` where it is missing. A power cut may lose what is in it.
    ///
    /// # Errors
    /// `NOENT`; `INVAL` for anything else of that name.
    pub fn memory(&self, path: &Path, words: usize, create: bool) -> Result<Arc<Memory>, Errno> {
        let mut tree = self.lock();
        let number = match tree.find(path) {
            Some(number) => number,
            None if create => tree.add(path, Node::Memory(Memory::zeroed(words)))?,
            None => return Err(Errno::NOENT),
        };
        match tree.nodes.get(&number) {
            Some(Node::Memory(memory)) => Ok(Arc::clone(memory)),
            _ => Err(Errno::INVAL),
        }
    }

    /// Renames, replacing, in one step.
    ///
    /// # Errors
    /// `NOENT`, `IO` after a kill.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        let mut tree = self.lock();
        let number = tree.find(from).ok_or(Errno::NOENT)?;
        let ((old_dir, old_name), (new_dir, new_name)) = (tree.parent(from)?, tree.parent(to)?);
        tree.step()?;
        tree.change(vec![(old_dir, old_name, None), (new_dir, new_name, Some(number))])
    }

    /// Makes two names of one directory change places.
    ///
    /// # Errors
    /// As [`Disk::rename`].
    pub fn exchange(&self, one: &Path, other: &Path) -> Result<(), Errno> {
        let mut tree = self.lock();
        let (first, second) = (tree.find(one).ok_or(Errno::NOENT)?, tree.find(other).ok_or(Errno::NOENT)?);
        let ((dir, one), (_, other)) = (tree.parent(one)?, tree.parent(other)?);
        tree.step()?;
        tree.change(vec![(dir, one, Some(second)), (dir, other, Some(first))])
    }

    /// Gives a file a second name.
    ///
    /// # Errors
    /// As [`Disk::make_file`].
    pub fn hard_link(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        let mut tree = self.lock();
        let number = tree.find(from).ok_or(Errno::NOENT)?;
        let (dir, name) = tree.parent(to)?;
        if tree.find(to).is_some() {
            return Err(Errno::EXIST);
        }
        tree.step()?;
        tree.change(vec![(dir, name, Some(number))])
    }

    /// Removes a name of whatever.
    ///
    /// # Errors
    /// `NOENT`, `IO` after a kill.
    pub fn unlink(&self, path: &Path) -> Result<(), Errno> {
        let mut tree = self.lock();
        tree.find(path).ok_or(Errno::NOENT)?;
        tree.remove(path)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `NOTEMPTY`, `NOTDIR`, `NOENT`, `IO` after a kill.
    pub fn remove_dir(&self, path: &Path) -> Result<(), Errno> {
        let mut tree = self.lock();
        let number = tree.find(path).ok_or(Errno::NOENT)?;
        match tree.nodes.get(&number) {
            Some(Node::Dir { live, .. }) if live.is_empty() => tree.remove(path),
            Some(Node::Dir { .. }) => Err(Errno::NOTEMPTY),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// `NOENT`, `NOTDIR`.
    pub fn list(&self, dir: &Path) -> Result<Vec<OsString>, Errno> {
        let tree = self.lock();
        match tree.find(dir).and_then(|number| tree.nodes.get(&number)) {
            Some(Node::Dir { live, .. }) => Ok(live.keys().cloned().collect()),
            Some(_) => Err(Errno::NOTDIR),
            None => Err(Errno::NOENT),
        }
    }

    /// Makes a directory's entries durable. That is no change: who stops after changes counts flushes himself ([`Disk::step`]).
    ///
    /// # Errors
    /// `NOENT`, `IO` after a kill.
    pub fn sync_dir(&self, dir: &Path) -> Result<(), Errno> {
        let mut tree = self.lock();
        let number = tree.find(dir).ok_or(Errno::NOENT)?;
        tree.sync_dir(number);
        Ok(())
    }

    fn change_file(&self, number: u64, op: DataOp) -> Result<(), Errno> {
        let mut tree = self.lock();
        tree.step()?;
        let step = tree.steps;
        match tree.nodes.get_mut(&number) {
            Some(Node::File { live, ops, changed, .. }) => {
                apply_content(live, &op);
                ops.push(op);
                *changed = step;
                Ok(())
            }
            _ => Err(Errno::INVAL),
        }
    }
}
