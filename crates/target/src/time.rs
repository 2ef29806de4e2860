//! The clock that emulated devices and everybody's deadlines go by, and sleeping to a moment of it.

use rustix::thread::ClockId;
use rustix::time::Timespec;

/// CLOCK_MONOTONIC in ns.
#[inline]
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(ClockId::Monotonic);
    (t.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec as u64)
}

/// Sleeps until `end_ns` (CLOCK_MONOTONIC; 0 is past) with the finest timer slack, which it restores; interruptions by signals are slept on.
#[inline]
pub fn sleep_until(end_ns: u64) {
    if end_ns != 0 {
        sleep_long_until(end_ns);
    }
}

#[inline(never)]
fn sleep_long_until(end_ns: u64) {
    if now_ns() >= end_ns {
        return;
    }
    let slack = rustix::thread::current_timer_slack().ok();
    let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1000));
    let until = Timespec { tv_sec: (end_ns / 1_000_000_000) as i64, tv_nsec: (end_ns % 1_000_000_000) as _ };
    while rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err() && now_ns() < end_ns {}
    if let Some(slack) = slack {
        let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(slack));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_never_ends_early() {
        let end = now_ns() + 300_000;
        sleep_until(end);
        assert!(now_ns() >= end);
    }
}
