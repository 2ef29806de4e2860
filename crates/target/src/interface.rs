//! What a target can do, and what an object can do: the seam between what knows layouts and what holds bytes. A kind of target is one type with these two
//! traits; [`crate::suite`] says what they mean, and a new kind starts with it (docs/writing-a-target.md).

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
pub use rustix::mm::{MapFlags, ProtFlags};

use crate::names::ObjectName;
use crate::op::Op;
use crate::within::Refusal;

/// What an object is opened for, and whose it may be.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// To read it, and ask for its data.
    pub reads: bool,
    /// To write it, and change its length.
    pub writes: bool,
    /// Reads leave the time of the last access alone; `PERM` where this user may not ask for that.
    pub keeps_times: bool,
    /// Users whom it may belong to, where the kind knows users; empty: anybody.
    pub owners: &'a [u32],
}

impl<'a> Opening<'a> {
    /// For reading.
    pub const READ: Self = Self { reads: true, writes: false, keeps_times: false, owners: &[] };
    /// For reading and writing.
    pub const BOTH: Self = Self { reads: true, writes: true, keeps_times: false, owners: &[] };

    /// The same of an object of one of these users.
    #[must_use]
    pub const fn of(self, owners: &'a [u32]) -> Self {
        Self { owners, ..self }
    }
}

/// What a target tells of an object without opening it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Length in bytes.
    pub len: u64,
    /// Bytes that it takes of the target.
    pub used_bytes: u64,
    /// Last change of the content, nanoseconds since 1970, or any number that changes with it.
    pub modified_ns: i64,
    /// Last change of anything, the same.
    pub changed_ns: i64,
    /// What stands under its name is no object, and is opened by nobody: why.
    pub unfit: Option<Refusal>,
}

/// Prepares a new object before anybody else can see it: gives it its owner and rights.
pub type Ready<'a> = &'a mut dyn FnMut(&dyn Object) -> Result<(), Errno>;

/// An open object. All its operations may be called from several threads at once.
pub trait Object: Send + Sync {
    /// Begins an operation; `is_one_of_many` says that others of its batch are under way at the same time. An error is left in the outcome. Memory is
    /// touched by this call and by [`Object::finish`] only, never between them or by another thread.
    ///
    /// [`Op::begin`] has looked at the operation: it has bytes, and ends at a possible offset.
    fn start(&self, op: &mut Op<'_>, is_one_of_many: bool);

    /// Ends an operation that was begun, in whatever order the target did them; waits for it, but for no emulated device. Begun operations are finished
    /// once each.
    fn finish(&self, op: &mut Op<'_>);

    /// Does an operation that no other is under way beside.
    #[inline]
    fn run(&self, op: &mut Op<'_>) {
        self.start(op, false);
        self.finish(op);
    }

    /// Makes a range a hole; the length stays. Nothing happens where there are no bytes.
    ///
    /// # Errors
    /// `INVAL` for a range that ends beyond the largest offset, and the target's.
    fn punch(&self, at: u64, len: u64) -> Result<(), Errno>;

    /// Sets the length: what is behind it is gone, what is new reads as zeros.
    ///
    /// # Errors
    /// `INVAL` or `FBIG` for one that no object can have, and the target's.
    fn set_len(&self, len: u64) -> Result<(), Errno>;

    /// The length in bytes.
    ///
    /// # Errors
    /// The target's.
    fn len(&self) -> Result<u64, Errno>;

    /// Whether it has no bytes.
    ///
    /// # Errors
    /// The target's.
    fn is_empty(&self) -> Result<bool, Errno> {
        Ok(self.len()? == 0)
    }

    /// The next range at or after `at` that may hold data: (start, end); `None` when only holes follow. What lies in no such range reads as zeros.
    ///
    /// # Errors
    /// The target's.
    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno>;

    /// Makes content and length durable. The name is made so by [`Target::sync`].
    ///
    /// # Errors
    /// The target's.
    fn sync(&self) -> Result<(), Errno>;

    /// Makes content and length durable, and nothing else that the kind may have.
    ///
    /// # Errors
    /// The target's.
    fn sync_data(&self) -> Result<(), Errno> {
        self.sync()
    }

    /// Makes `[from, to)` durable, and the length of an object that ends before; what others write elsewhere in it need not be waited for.
    ///
    /// # Errors
    /// The target's.
    fn sync_range(&self, _from: u64, _to: u64) -> Result<(), Errno> {
        self.sync()
    }

    /// The descriptor through which the kernel reaches the bytes: for what is done to files and not to objects (rights, locks, copies in the kernel). A
    /// capability: `None` where there is none.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Maps `len` bytes from offset `at`, coherent with reads and writes, at `address` (null and without `FIXED`: anywhere). A capability.
    ///
    /// # Errors
    /// `NODEV` where objects cannot be mapped, and the kernel's.
    ///
    /// # Safety
    /// As `mmap`: with `FIXED`, what stands at the address is the caller's to replace. The kernel unmaps it as any map.
    unsafe fn map(&self, _address: *mut u8, _len: usize, _prot: ProtFlags, _flags: MapFlags, _at: u64) -> Result<*mut u8, Errno> {
        Err(Errno::NODEV)
    }
}

/// A place where objects lie.
pub trait Target: Send + Sync {
    /// What it opens.
    type Object: Object + 'static;

    /// Makes an object, empty, with this mode where the kind has modes. Until `ready` has returned nobody finds it.
    ///
    /// # Errors
    /// `EXIST` where there is one, which stays as it is; those of `ready`, after which there is none; the target's.
    fn create(&self, name: ObjectName, mode: u32, ready: Option<Ready<'_>>) -> Result<Self::Object, Errno>;

    /// Opens an object.
    ///
    /// # Errors
    /// `NOENT` where there is none: never a hole. What does not fit where opening it would not be safe.
    fn open(&self, name: ObjectName, opening: Opening<'_>) -> Result<Self::Object, Refusal>;

    /// Removes an object of one of these users (none named: anybody's). Whoever has it open keeps its bytes.
    ///
    /// # Errors
    /// `NOENT` where there is none, what does not fit, the target's.
    fn remove(&self, name: ObjectName, owners: &[u32]) -> Result<(), Refusal>;

    /// What there is to say of an object; `None` where there is none.
    ///
    /// # Errors
    /// The target's.
    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno>;

    /// Names all objects, in any order. One that comes or goes meanwhile may be named or not.
    ///
    /// # Errors
    /// Those of `each`, which end it, and the target's.
    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno>;

    /// Bytes that all objects take.
    ///
    /// # Errors
    /// The target's.
    fn used_bytes(&self) -> Result<u64, Errno>;

    /// Bytes that the target could still take, of whomever.
    ///
    /// # Errors
    /// The target's.
    fn free_bytes(&self) -> Result<u64, Errno>;

    /// What its room is part of: targets of one number share it, as directories on one file system do. `None`: its room is its own.
    ///
    /// # Errors
    /// The target's.
    fn pool(&self) -> Result<Option<u64>, Errno> {
        Ok(None)
    }

    /// Makes durable which objects there are.
    ///
    /// # Errors
    /// The target's.
    fn sync(&self) -> Result<(), Errno>;

    /// Reads the identity ([`crate::identity`]) of one of these users into a buffer, which is longer than any; returns its length, 0 where there is none.
    ///
    /// # Errors
    /// What does not fit, the target's.
    fn identity(&self, owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal>;

    /// Writes the identity, durably, in place of another.
    ///
    /// # Errors
    /// The target's.
    fn identify(&self, text: &[u8]) -> Result<(), Errno>;
}
