//! Counts beyond an int, for an MPI whose functions take none.

use super::library::{Family, Handle, Library, get};

/// A count that an int has room for, where the program's MPI takes no larger ones: more elements are one of a type that is made of them all.
///
/// # Safety
/// `datatype` and `made` are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_narrow(n: i64, datatype: *mut Handle, made: *mut Handle) -> i32 {
    if let Ok(few) = i32::try_from(n) {
        return few;
    }
    // SAFETY: the caller's promise.
    get().and_then(|library| library.joined(n, unsafe { *datatype })).map_or(-1, |one| unsafe {
        (*datatype, *made) = (one, one);
        1
    })
}

/// Frees what `sw_mpi_narrow` has made; MPI keeps it as long as a request needs it.
///
/// # Safety
/// Such a type, or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_drop(mut made: Handle) {
    if let Some(library) = get().filter(|_| made != 0) {
        // SAFETY: the caller's promise.
        unsafe { (library.type_free)(&raw mut made) };
    }
}

impl Library {
    /// A type of `n` elements of another one, n beyond what an int counts: whole chunks, and a rest at their end.
    fn joined(&self, n: i64, datatype: Handle) -> Option<Handle> {
        const CHUNK: i64 = 1 << 30;
        let (chunks, rest) = (i32::try_from(n.checked_div(CHUNK)?).ok().filter(|n| *n > 0)?, (n % CHUNK) as i32);
        let (mut lower, mut extent) = (0i64, 0i64);
        let (mut chunk, mut most, mut few, mut made): (Handle, Handle, Handle, Handle) = (0, 0, 0, 0);
        // SAFETY: MPI's prototypes; handles of MPICH are the lower halves of these words.
        unsafe {
            let done = (self.type_get_extent_x)(datatype, &raw mut lower, &raw mut extent) == 0
                && (self.type_contiguous)(CHUNK as i32, datatype, &raw mut chunk) == 0
                && (self.type_contiguous)(chunks, chunk, &raw mut most) == 0
                && (self.type_contiguous)(rest, datatype, &raw mut few) == 0;
            let at = [0isize, (i64::from(chunks) * CHUNK).checked_mul(extent)? as isize];
            let parts = if self.family == Family::Mpich { [most & 0xffff_ffff | few << 32, 0] } else { [most, few] };
            let done = done
                && (self.type_struct)(2, [1i32, 1].as_ptr(), at.as_ptr(), parts.as_ptr(), &raw mut made) == 0
                && (self.type_commit)(&raw mut made) == 0;
            for mut part in [chunk, most, few] {
                if part != 0 {
                    (self.type_free)(&raw mut part);
                }
            }
            done.then_some(made)
        }
    }
}
