//! The same work on every part of the regions, on as many threads as the machine has cores. The parts depend on the number of regions alone, and
//! results come back in their order, so that no sum depends on the number of threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Regions per part at least, and parts at most.
const PART: usize = 32;
const PARTS: usize = 48;
/// Below so many (window, region, choice) triples one thread is faster.
const WORTH_THREADS: usize = 1 << 17;

/// `f` of every part, with working space of its thread; `work` counts (window, region, choice) triples.
pub(crate) fn parts<S, R: Send>(regions: usize, work: usize, space: impl Fn() -> S + Sync, f: impl Fn(&mut S, Range<usize>) -> R + Sync) -> Vec<R> {
    let size = regions.div_ceil(PARTS).max(PART);
    let count = regions.div_ceil(size);
    let part = |number: usize| number * size..((number + 1) * size).min(regions);
    let threads = if work < WORTH_THREADS { 1 } else { std::thread::available_parallelism().map_or(1, usize::from).min(16).min(count) };
    if threads <= 1 {
        let mut space = space();
        return (0..count).map(|number| f(&mut space, part(number))).collect();
    }
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let (mut mine, mut space) = (Vec::new(), space());
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return mine;
                        }
                        mine.push((number, f(&mut space, part(number))));
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
