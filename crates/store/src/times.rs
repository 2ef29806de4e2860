//! Times of head. Whoever mirrors the size to head moves its times and puts the old ones back: a mover, or a process that closes the file, while a program
//! may be setting them. A word of ctl keeps both apart without a lock: odd while somebody is at it, another number when he is done. Who sets times in between
//! sets them again.

use core::sync::atomic::{AtomicU64, Ordering};

use stripewise_target::time::{now_ns, sleep_until};

/// How long somebody may be at it before he counts as dead: it is two system calls.
const PATIENCE_NS: u64 = 100_000_000;
const LOOK_NS: u64 = 20_000;
/// How often times are set again: whoever may write the file may change the word for ever.
const ROUNDS: u32 = 8;

/// Waits until nobody is at it; returns the word. One who has been for too long is dead, or does not matter.
fn settled(word: &AtomicU64) -> u64 {
    let (mut seen, mut until_ns) = (word.load(Ordering::SeqCst), 0);
    while seen & 1 == 1 {
        let now = now_ns();
        if until_ns == 0 {
            until_ns = now + PATIENCE_NS;
        } else if now > until_ns {
            let _ = word.compare_exchange(seen, seen.wrapping_add(1), Ordering::SeqCst, Ordering::SeqCst);
            return word.load(Ordering::SeqCst);
        }
        sleep_until(now + LOOK_NS);
        seen = word.load(Ordering::SeqCst);
    }
    seen
}

/// Runs `work`, which moves head's times and puts them back.
pub fn kept<T>(word: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let mut mine = None;
    for _ in 0..ROUNDS {
        let seen = settled(word) & !1;
        if word.compare_exchange(seen, seen + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            mine = Some(seen + 1);
            break;
        }
    }
    let result = work();
    if let Some(mine) = mine {
        let _ = word.compare_exchange(mine, mine.wrapping_add(1), Ordering::SeqCst, Ordering::SeqCst);
    }
    result
}

/// Runs `set`, which gives head new times, again if somebody may have put older ones back.
///
/// # Errors
/// Those of `set`.
pub fn set<T, E>(word: &AtomicU64, mut set: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut seen = word.load(Ordering::SeqCst);
    let mut result = set()?;
    for _ in 0..ROUNDS {
        let now = settled(word);
        if seen & 1 == 0 && now == seen {
            break;
        }
        seen = now;
        result = set()?;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{kept, set};
    use core::sync::atomic::{AtomicU64, Ordering};

    /// Times that are others than those that were set, while two threads put old ones back.
    fn lost() -> u64 {
        let (word, times, ends, moved) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let mut lost = 0;
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while ends.load(Ordering::SeqCst) == 0 {
                        kept(&word, || {
                            let before = times.load(Ordering::SeqCst);
                            times.store(u64::MAX, Ordering::SeqCst);
                            std::thread::yield_now();
                            times.store(before, Ordering::SeqCst);
                        });
                        moved.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            for n in 1.. {
                if n > 3_000 && moved.load(Ordering::SeqCst) > 3_000 {
                    break;
                }
                set(&word, || {
                    times.store(n, Ordering::SeqCst);
                    Ok::<_, ()>(())
                })
                .unwrap();
                // Old ones may be on their way back; those that are there in the end are the ones that were set.
                kept(&word, || lost += u64::from(times.load(Ordering::SeqCst) != n));
            }
            ends.store(1, Ordering::SeqCst);
        });
        lost
    }

    #[test]
    fn times_that_a_program_sets_stay_whoever_puts_old_ones_back() {
        // A thread that gets no processor for so long counts as dead, as on a busy machine; without the word dozens are lost each time, or hundreds.
        assert!((0..4).any(|_| lost() < 10));
    }

    #[test]
    fn one_who_was_killed_at_it_holds_nobody_up_for_long() {
        let word = AtomicU64::new(7);
        assert_eq!(set(&word, || Ok::<_, ()>(5)), Ok(5));
        assert_eq!(word.load(Ordering::SeqCst), 8);
        word.store(9, Ordering::SeqCst);
        assert_eq!(kept(&word, || 6), 6);
        assert_eq!(word.load(Ordering::SeqCst) & 1, 0);
    }
}
