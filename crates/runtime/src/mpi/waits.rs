//! Calls that wait for requests, and complete those of calls on MPI files.

use super::files::layers;
use super::{Call, enter, leave, library, mute, requests};
use crate::trace;
use core::ffi::c_void;
use requests::Request;
use stripewise_trace::Op;
use stripewise_trace::clock::now_ticks;

/// Begins a call that waits for `n` requests; 0: none of them is of an MPI file.
///
/// # Safety
/// `call` is writable; an array of `n` requests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_awaited(call: *mut Call, frame: *const c_void, n: i32, requests: *const c_void) -> i32 {
    let Some(library) = library::get() else { return 0 };
    let Some(n) = usize::try_from(n).ok().filter(|_| !requests.is_null()) else { return 0 };
    if !enter(frame as usize) {
        return 0;
    }
    // SAFETY: the caller's promise.
    let claim = unsafe { requests::claim(library, requests, n) };
    if claim.found == 0 {
        leave();
        return 0;
    }
    if claim.layers & layers::POSIX == 0 {
        mute();
    }
    // SAFETY: the caller's promise.
    unsafe {
        (&raw mut (*call).at).write(0);
        (&raw mut (*call).what).write(Op::MpiWait as u64);
        (&raw mut (*call).file).write(None);
        (&raw mut (*call).status).write(core::ptr::null());
        (&raw mut (*call).served).write(0);
        (&raw mut (*call).claim).write(claim);
        (&raw mut (*call).used).write(trace::slots_used());
        (&raw mut (*call).start).write(now_ticks());
    }
    1
}

/// Ends it: one record for each request that is completed. `n` statuses were filled in, in the order of `indices` where there are any.
///
/// # Safety
/// As above; the call has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_mpi_waited(call: *mut Call, result: i32, requests: *const c_void, _statuses: *const c_void, indices: *const i32, n: i32) {
    let end = now_ticks();
    // SAFETY: the caller's promise.
    let call = unsafe { &*call };
    let Some(library) = library::get() else { return leave() };
    // Requests that failed one by one have their errors in the statuses; what they did is not told.
    let in_status = result != 0;
    // MPI_UNDEFINED is negative.
    let n = usize::try_from(n).unwrap_or(0);
    let mut completed = 0;
    let mut done = |request: &Request, place: usize| {
        let at = if indices.is_null() {
            Some(place)
        } else {
            // SAFETY: that many were filled in.
            (0..n).find(|at| unsafe { indices.add(*at).read() } == place as i32)
        };
        let told = at.filter(|_| !call.status.is_null() && !in_status);
        // SAFETY: as many statuses as requests.
        let bytes = told.and_then(|at| unsafe { library.bytes_of(call.status.cast::<u8>().add(at * library.status_bytes()).cast()) });
        let bytes = bytes.map_or(request.bytes as i64, |bytes| bytes.min(request.bytes as i64));
        if request.layers & layers::MPI != 0 {
            call.put_as(result, end, Some(u64::from(request.number)), request.bytes, bytes, request.trace_id, request.file, request.comm_size);
        }
        completed += 1;
    };
    // SAFETY: the caller's promise.
    unsafe { requests::release(library, requests, &call.claim, &mut done) };
    // A test that completes nothing counts where it moved bytes.
    if completed == 0 && call.claim.layers & layers::MPI != 0 && trace::slots_used() != call.used {
        call.put_as(result, end, None, 0, 0, 0, 0, 0);
    }
    leave();
}
