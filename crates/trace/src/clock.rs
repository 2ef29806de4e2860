//! Ticks: the cheapest clock that is right on this machine, read twice per traced call.
//!
//! Two `clock_gettime` cost 64 ns, two `rdtsc` 26 ns (measured). The time stamp counter is used when the kernel itself keeps time
//! by it (`current_clocksource` = `tsc`: it has checked it across processors), whatever a hypervisor hides in CPUID; or when CPUID says
//! invariant and the clock source is a paravirtual one built on the counter (`kvm-clock`, `hyperv_clocksource_tsc_page`) or cannot be
//! read. If the kernel has turned away from the counter (`hpet`, `acpi_pm`), so do we: CLOCK_MONOTONIC in nanoseconds. aarch64's virtual counter
//! is constant and synchronous by its architecture.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

/// Ticks are nanoseconds of CLOCK_MONOTONIC.
pub const MONOTONIC: u32 = 1;
/// Ticks are x86's time stamp counter.
pub const TSC: u32 = 2;
/// Ticks are aarch64's virtual counter.
pub const CNTVCT: u32 = 3;

/// Decided once per process; the same on every thread, and inherited by fork.
static KIND: AtomicU32 = AtomicU32::new(0);

/// Now, in ticks of [`kind`].
#[inline(always)]
#[must_use]
pub fn now_ticks() -> u64 {
    match KIND.load(Relaxed) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: rdtsc has no operands and is present on every x86_64.
        TSC => unsafe { core::arch::x86_64::_rdtsc() },
        #[cfg(target_arch = "aarch64")]
        CNTVCT => read_cntvct(),
        _ => slow_ticks(),
    }
}

#[cold]
fn slow_ticks() -> u64 {
    if KIND.load(Relaxed) == 0 {
        kind();
        return now_ticks();
    }
    clock_ns(ClockId::Monotonic)
}

/// Which clock [`now_ticks`] reads: [`MONOTONIC`], [`TSC`] or [`CNTVCT`].
pub fn kind() -> u32 {
    let known = KIND.load(Relaxed);
    if known != 0 {
        return known;
    }
    let kind = detect();
    KIND.store(kind, Relaxed);
    kind
}

/// Ticks per second as the hardware states them, 0 where it does not. Only a fallback: rates come from calibration pairs.
#[must_use]
pub fn nominal_hz() -> u64 {
    match kind() {
        MONOTONIC => 1_000_000_000,
        TSC => tsc_hz(),
        _ => counter_hz(),
    }
}

/// A pair (ticks, CLOCK_REALTIME ns) read as close together as they come: the narrowest of five attempts, the middle of its bracket.
#[must_use]
pub fn calibrate() -> (u64, u64) {
    let (mut best, mut width) = ((0, 0), u64::MAX);
    for _ in 0..5 {
        let before = now_ticks();
        let wall_ns = clock_ns(ClockId::Realtime);
        let after = now_ticks();
        let bracket = after.saturating_sub(before);
        if bracket < width {
            (best, width) = ((before + bracket / 2, wall_ns), bracket);
        }
    }
    best
}

/// A clock in nanoseconds.
pub(crate) fn clock_ns(id: ClockId) -> u64 {
    let now = clock_gettime(id);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Reads a small file into `buffer`; the bytes read, 0 when there is none.
pub(crate) fn read_small(path: &core::ffi::CStr, buffer: &mut [u8]) -> usize {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).and_then(|file| rustix::io::read(&file, buffer)).unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
fn detect() -> u32 {
    let mut buffer = [0u8; 64];
    let length = read_small(c"/sys/devices/system/clocksource/clocksource0/current_clocksource", &mut buffer);
    let source = buffer.get(..length).unwrap_or(&[]).trim_ascii_end();
    let trusted = match source {
        b"tsc" => true,
        b"" | b"kvm-clock" | b"hyperv_clocksource_tsc_page" => cpuid_invariant(),
        _ => false,
    };
    if trusted { TSC } else { MONOTONIC }
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // __cpuid became a safe function in later compilers
fn cpuid(leaf: u32) -> core::arch::x86_64::CpuidResult {
    // SAFETY: every x86_64 has CPUID; callers ask for the highest leaf first.
    unsafe { core::arch::x86_64::__cpuid(leaf) }
}

#[cfg(target_arch = "x86_64")]
fn cpuid_invariant() -> bool {
    cpuid(0x8000_0000).eax >= 0x8000_0007 && cpuid(0x8000_0007).edx & 1 << 8 != 0
}

#[cfg(target_arch = "x86_64")]
fn tsc_hz() -> u64 {
    let hypervisor = cpuid(1).ecx & 1 << 31 != 0;
    if hypervisor && cpuid(0x4000_0000).eax >= 0x4000_0010 {
        // VMware and KVM state the counter's kHz here.
        return u64::from(cpuid(0x4000_0010).eax) * 1000;
    }
    if cpuid(0).eax >= 0x15 {
        let leaf = cpuid(0x15);
        if leaf.eax != 0 && leaf.ebx != 0 {
            return u64::from(leaf.ecx) * u64::from(leaf.ebx) / u64::from(leaf.eax);
        }
    }
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_hz() -> u64 {
    0
}

#[cfg(target_arch = "aarch64")]
fn detect() -> u32 {
    CNTVCT
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn read_cntvct() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user space read the virtual counter.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(target_arch = "aarch64")]
fn counter_hz() -> u64 {
    let hz: u64;
    // SAFETY: as above.
    unsafe { core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
    hz
}

#[cfg(not(target_arch = "aarch64"))]
fn counter_hz() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_wall_clock_both_move_forward() {
        let first = calibrate();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let second = calibrate();
        assert!(second.0 > first.0 && second.1 > first.1);
        assert!([MONOTONIC, TSC, CNTVCT].contains(&kind()));
    }
}
