//! The same work many times, on as many threads as the machine has cores. Results come back in their order, so that no sum depends on the number of threads.
//! Threads live as long as a call: a process that forks afterwards has none to lose.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

/// So many threads at most.
const THREADS_MAX: usize = 16;
/// Pieces for each thread, so that none waits long for the slowest.
const PIECES: usize = 4;

/// How many threads `work` (steps, roughly) deserves: one below `worth`, where starting others takes longer than it saves.
#[must_use]
pub fn wanted(work: usize, worth: usize) -> usize {
    if work < worth { 1 } else { std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX) }
}

/// `f` of 0..count, in order, on so many threads, each with a working space of its own.
pub fn numbered<S, R: Send>(count: usize, threads: usize, space: impl Fn() -> S + Sync, f: impl Fn(&mut S, usize) -> R + Sync) -> Vec<R> {
    let threads = threads.min(count);
    if threads <= 1 {
        let mut space = space();
        return (0..count).map(|number| f(&mut space, number)).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut mine, mut space) = (Vec::new(), space());
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return mine;
            }
            mine.push((number, f(&mut space, number)));
        }
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// `f` of every item, in order, on so many threads.
pub fn map<T: Sync, R: Send>(items: &[T], threads: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if threads <= 1 {
        return items.iter().map(f).collect();
    }
    let chunks: Vec<&[T]> = items.chunks(items.len().div_ceil(threads * PIECES).max(1)).collect();
    let results = numbered(
        chunks.len(),
        threads,
        || (),
        |(), number| chunks.get(number).into_iter().flat_map(|chunk| chunk.iter()).map(&f).collect::<Vec<R>>(),
    );
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::{map, numbered, wanted};

    #[test]
    fn results_stand_in_the_order_of_the_work_on_any_number_of_threads() {
        let items: Vec<usize> = (0..1000).collect();
        for threads in [0, 1, 2, 7, 2000] {
            assert_eq!(map(&items, threads, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
            assert_eq!(
                numbered(
                    1000,
                    threads,
                    || 0,
                    |calls, number| {
                        *calls += 1;
                        (number, *calls > 0)
                    }
                )
                .len(),
                1000
            );
            assert!(numbered(1000, threads, || (), |(), number| number).into_iter().eq(0..1000));
            assert!(map(&[0; 0], threads, |item| *item).is_empty());
        }
    }

    #[test]
    fn little_work_is_done_by_one() {
        assert_eq!(wanted(9, 10), 1);
        assert!((1..=16).contains(&wanted(10, 10)));
    }

    #[test]
    #[should_panic(expected = "of the work")]
    fn a_panic_of_the_work_is_the_callers() {
        numbered(100, 4, || (), |(), number| assert!(number != 50, "a panic of the work"));
    }
}
