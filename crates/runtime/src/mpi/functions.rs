//! Functions that are used together: of an MPI that lacks one of them none is called.

use core::ffi::{CStr, c_char, c_void};

/// A handle of any MPI as it comes in a register.
pub type Handle = usize;

/// The functions that processes meet with.
#[derive(Clone, Copy)]
pub struct Meeting {
    pub errors_return: Handle,
    pub file_get_group: unsafe extern "C" fn(Handle, *mut Handle) -> i32,
    pub comm_create_group: unsafe extern "C" fn(Handle, Handle, i32, *mut Handle) -> i32,
    pub barrier: unsafe extern "C" fn(Handle) -> i32,
    pub comm_free: unsafe extern "C" fn(*mut Handle) -> i32,
    pub comm_get_errhandler: unsafe extern "C" fn(Handle, *mut Handle) -> i32,
    pub comm_set_errhandler: unsafe extern "C" fn(Handle, Handle) -> i32,
    pub errhandler_free: unsafe extern "C" fn(*mut Handle) -> i32,
}

/// Those that a hint is given with.
#[derive(Clone, Copy)]
pub struct Unsieving {
    pub info_create: unsafe extern "C" fn(*mut Handle) -> i32,
    pub info_set: unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> i32,
    pub file_set_info: unsafe extern "C" fn(Handle, Handle) -> i32,
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
