//! io_uring and kernel AIO: a ring asks the kernel past every hook, and its requests on managed files fail one by one, which programs take for a
//! passing trouble and try for ever. So setting one up is refused, as where the kernel has none, and programs take threads or plain calls.
//!
//! Refused from the start in a process that was given a store, for rings are made before files are opened, and in one that uses a store that
//! a link led to; a process that is only traced sees what it would see without the library. Setting up by calls that a program carries inside
//! itself is out of the hooks' reach: on request (`STRIPEWISE_SECCOMP=1`) a filter of the kernel's refuses these, too.

use crate::base::config;
use crate::base::log;
use crate::base::sys::{self, Sys};
use crate::store;
use core::ffi::CStr;
use syscalls::Sysno;

fn refused() -> bool {
    config::store_path().is_some() || store::all().next().is_some()
}

/// Whether the set-up function `name` is refused; null: one that is asked in passing, of which the log says nothing.
///
/// # Safety
/// `name` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sw_rings_refused(name: *const libc::c_char) -> i32 {
    let refused = refused();
    if refused && !name.is_null() {
        log::say(
            b"not available on a store, because it would ask the kernel past the library; a program that does not go on by itself needs its option for threads or plain I/O",
            // SAFETY: the caller's promise.
            unsafe { CStr::from_ptr(name) }.to_bytes(),
        );
    }
    i32::from(refused)
}

/// An instruction of the filter: as the kernel has it.
#[repr(C)]
struct Step {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    value: u32,
}

#[repr(C)]
struct Program {
    len: u16,
    steps: *const Step,
}

const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
const EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const RETURN: u16 = 0x06; // BPF_RET | BPF_K
/// Where the kernel puts the call's number and the machine.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const AUDIT_ARCH: u32 = if cfg!(target_arch = "aarch64") { 0xC000_00B7 } else { 0xC000_003E };
const ALLOW: u32 = 0x7fff_0000;
const REFUSE: u32 = 0x0005_0000 | libc::ENOSYS as u32;

const fn step(code: u16, jump_true: u8, jump_false: u8, value: u32) -> Step {
    Step { code, jump_true, jump_false, value }
}

static FILTER: [Step; 7] = [
    step(LOAD, 0, 0, MACHINE),
    step(EQUAL, 0, 3, AUDIT_ARCH),
    step(LOAD, 0, 0, NUMBER),
    step(EQUAL, 2, 0, Sysno::io_uring_setup as u32),
    step(EQUAL, 1, 0, Sysno::io_setup as u32),
    step(RETURN, 0, 0, ALLOW),
    step(RETURN, 0, 0, REFUSE),
];

/// Has the kernel refuse the set-up calls in this process and all that it starts. Without root this takes, for all of them, the right to gain rights
/// by starting a program (`no_new_privs`): sudo and other set-user-id programs do not work there any more.
pub fn filter() {
    if !refused() || is_filtered() {
        return;
    }
    let program = Program { len: FILTER.len() as u16, steps: FILTER.as_ptr() };
    let install = || sys::call(Sysno::seccomp, [libc::SECCOMP_SET_MODE_FILTER as usize, 0, &raw const program as usize, 0, 0, 0]);
    let unprivileged = || -> Sys<i64> {
        sys::call(Sysno::prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0])?;
        install()
    };
    if install().or_else(|_| unprivileged()).is_err() {
        log::say(
            b"the kernel takes no filter for io_uring and libaio; a program that sets up rings by itself is not kept from it",
            b"STRIPEWISE_SECCOMP",
        );
    }
}

/// Whether a filter of an outer process holds already: a kernel without it finds that there is nowhere to put the ring.
fn is_filtered() -> bool {
    sys::call(Sysno::io_setup, [1, 0, 0, 0, 0, 0]) == Err(sys::Errno(libc::ENOSYS))
        && sys::call(Sysno::io_uring_setup, [1, 0, 0, 0, 0, 0]) == Err(sys::Errno(libc::ENOSYS))
}
