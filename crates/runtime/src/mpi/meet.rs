//! What the processes of a file do together beside its calls: wait for each other, in a communicator of ours, for the program may free the one that it has
//! opened the file with, and uses that for its own messages; and tell ROMIO whether to sieve their independent writes and reads.

use super::library::{Handle, Library};
use core::ffi::CStr;

/// The hints of ROMIO's that say whether independent writes and reads are sieved.
pub const WRITE_SIEVING: &CStr = c"romio_ds_write";
pub const READ_SIEVING: &CStr = c"romio_ds_read";

impl Library {
    /// A communicator of the processes that have a file open, which all of them make at once; none: MPI makes none, for any of them. `tag` tells files apart
    /// that threads have open.
    pub fn meeting_place(&self, file: Handle, tag: u16) -> Option<Handle> {
        let by = self.meeting.as_ref()?;
        let (mut group, mut made, mut handler): (Handle, Handle, Handle) = (0, 0, 0);
        // SAFETY: MPI's prototypes; the file is open, and its processes are of this world.
        unsafe {
            if (by.file_get_group)(file, &raw mut group) != 0 || (by.comm_get_errhandler)(self.world, &raw mut handler) != 0 {
                return None;
            }
            // An error is nobody's: the program goes on as without.
            (by.comm_set_errhandler)(self.world, by.errors_return);
            // Every MPI has tags up to 32767.
            let result = (by.comm_create_group)(self.world, group, i32::from(tag & 0x7fff), &raw mut made);
            (by.comm_set_errhandler)(self.world, handler);
            (by.errhandler_free)(&raw mut handler);
            (self.group_free)(&raw mut group);
            (result == 0).then_some(made)
        }
    }

    /// Waits until all processes have come.
    pub fn meet(&self, place: Handle) {
        if let Some(by) = &self.meeting {
            // SAFETY: MPI's prototype, and a communicator of ours.
            unsafe { (by.barrier)(place) };
        }
    }

    /// Frees it, when all of them do.
    pub fn leave_meeting_place(&self, mut place: Handle) {
        if let Some(by) = &self.meeting {
            // SAFETY: as above.
            unsafe { (by.comm_free)(&raw mut place) };
        }
    }

    /// Tells ROMIO how to make independent writes and reads through views with gaps, when all processes of the file do so; whether it writes as told. Sieved,
    /// a write writes what it has read between its pieces back, and needs locks: what another process writes there meanwhile, as it may, is lost.
    pub fn tell_sieving(&self, file: Handle, writes: Option<&CStr>, reads: Option<&CStr>) -> bool {
        let (Some(by), Some(asking)) = (&self.unsieving, &self.asking) else { return false };
        let (mut info, mut text): (Handle, [u8; 16]) = (0, [0; 16]);
        // SAFETY: MPI's prototypes; the file is open.
        unsafe {
            if (by.info_create)(&raw mut info) != 0 {
                return false;
            }
            let given = [(WRITE_SIEVING, writes), (READ_SIEVING, reads)];
            let is_set = |(key, value): (&CStr, Option<&CStr>)| value.is_none_or(|value| (by.info_set)(info, key.as_ptr(), value.as_ptr()) == 0);
            // The others wait in this call, whatever is in it.
            let is_given = (given.map(is_set) == [true; 2]) & ((by.file_set_info)(file, info) == 0);
            (asking.free)(&raw mut info);
            let Some(writes) = writes.filter(|_| is_given) else { return is_given };
            if (asking.of_file)(file, &raw mut info) != 0 {
                return false;
            }
            let is_so = self.value(info, WRITE_SIEVING, &mut text) == Some(writes.to_bytes());
            (asking.free)(&raw mut info);
            is_so
        }
    }

    /// Whether a handle of the program's is a datatype, as far as can be told without a call.
    pub fn is_type(&self, datatype: Handle) -> bool {
        ![0, self.of(self.type_null)].contains(&self.of(datatype))
    }
}
