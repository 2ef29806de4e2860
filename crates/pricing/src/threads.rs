//! The same work on every item, on as many threads as the machine has cores; the results do not depend on their number.

/// Below so many keys one thread is faster.
const WORTH_THREADS: usize = 1 << 15;

/// How many threads `work` (keys, roughly) deserves.
pub(crate) fn wanted(work: usize) -> usize {
    if work < WORTH_THREADS { 1 } else { std::thread::available_parallelism().map_or(1, usize::from).min(16) }
}

/// `f` of every item, in order.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = wanted(work);
    if threads == 1 {
        return items.iter().map(f).collect();
    }
    let part = items.len().div_ceil(threads * 4).max(1);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let chunks: Vec<&[T]> = items.chunks(part).collect();
    let mut done: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    loop {
                        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(chunk) = chunks.get(number) else { return mine };
                        mine.push((number, chunk.iter().map(&f).collect::<Vec<R>>()));
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().flat_map(|(_, results)| results).collect()
}
