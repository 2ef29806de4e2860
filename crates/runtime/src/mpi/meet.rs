//! What the processes of a file do together beside its calls: wait for each other, in a communicator of ours, for the program may free the one that it has opened
//! the file with, and uses that for its own messages; and tell ROMIO not to sieve their independent writes.

use super::library::{Handle, Library};
use core::ffi::{CStr, c_char, c_void};

/// The functions that processes meet with.
#[derive(Clone, Copy)]
pub struct Meeting {
    errors_return: Handle,
    file_get_group: unsafe extern "C" fn(Handle, *mut Handle) -> i32,
    comm_create_group: unsafe extern "C" fn(Handle, Handle, i32, *mut Handle) -> i32,
    barrier: unsafe extern "C" fn(Handle) -> i32,
    comm_free: unsafe extern "C" fn(*mut Handle) -> i32,
    comm_get_errhandler: unsafe extern "C" fn(Handle, *mut Handle) -> i32,
    comm_set_errhandler: unsafe extern "C" fn(Handle, Handle) -> i32,
    errhandler_free: unsafe extern "C" fn(*mut Handle) -> i32,
}

/// Those that a hint is given with.
#[derive(Clone, Copy)]
pub struct Unsieving {
    info_create: unsafe extern "C" fn(*mut Handle) -> i32,
    info_set: unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> i32,
    file_set_info: unsafe extern "C" fn(Handle, Handle) -> i32,
}

/// They, where an MPI has all.
#[allow(clippy::missing_transmute_annotations)] // The fields are MPI's own prototypes.
pub fn meeting(symbol: &impl Fn(&CStr) -> *mut c_void, errors_return: Handle) -> Option<Meeting> {
    let found = |name: &CStr| Some(symbol(name)).filter(|found| !found.is_null());
    // SAFETY: MPI's own prototypes.
    unsafe {
        use core::mem::transmute;
        Some(Meeting {
            errors_return,
            file_get_group: transmute(found(c"PMPI_File_get_group")?),
            comm_create_group: transmute(found(c"PMPI_Comm_create_group")?),
            barrier: transmute(found(c"PMPI_Barrier")?),
            comm_free: transmute(found(c"PMPI_Comm_free")?),
            comm_get_errhandler: transmute(found(c"PMPI_Comm_get_errhandler")?),
            comm_set_errhandler: transmute(found(c"PMPI_Comm_set_errhandler")?),
            errhandler_free: transmute(found(c"PMPI_Errhandler_free")?),
        })
    }
}

/// They, where an MPI has all.
#[allow(clippy::missing_transmute_annotations)] // As above.
pub fn unsieving(symbol: &impl Fn(&CStr) -> *mut c_void) -> Option<Unsieving> {
    let found = |name: &CStr| Some(symbol(name)).filter(|found| !found.is_null());
    // SAFETY: as above.
    unsafe {
        use core::mem::transmute;
        Some(Unsieving {
            info_create: transmute(found(c"PMPI_Info_create")?),
            info_set: transmute(found(c"PMPI_Info_set")?),
            file_set_info: transmute(found(c"PMPI_File_set_info")?),
        })
    }
}

/// The hint of ROMIO's that says whether independent writes are sieved.
pub const SIEVING: &CStr = c"romio_ds_write";

impl Library {
    /// A communicator of the processes that have a file open, which all of them make at once; none: MPI makes none, for any of them. `tag` tells files apart that
    /// threads have open.
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

    /// Has ROMIO write each piece of an independent write by itself, when all processes of the file say so; whether it does. Sieved, a write through a view with
    /// gaps writes what it has read between its pieces back, and needs locks: what another process writes there meanwhile, as it may, is lost.
    pub fn unsieve(&self, file: Handle) -> bool {
        let (Some(by), Some(asking)) = (&self.unsieving, &self.asking) else { return false };
        let (mut info, mut text): (Handle, [u8; 16]) = (0, [0; 16]);
        // SAFETY: MPI's prototypes; the file is open.
        unsafe {
            if (by.info_create)(&raw mut info) != 0 {
                return false;
            }
            let is_given = (by.info_set)(info, SIEVING.as_ptr(), c"disable".as_ptr()) == 0 && (by.file_set_info)(file, info) == 0;
            (asking.free)(&raw mut info);
            if !is_given || (asking.of_file)(file, &raw mut info) != 0 {
                return false;
            }
            let is_so = self.value(info, SIEVING, &mut text) == Some(b"disable");
            (asking.free)(&raw mut info);
            is_so
        }
    }

    /// Whether a handle of the program's is a datatype, as far as can be told without a call.
    pub fn is_type(&self, datatype: Handle) -> bool {
        ![0, self.of(self.type_null)].contains(&self.of(datatype))
    }
}
