//! The guide that keeps a mover, or whoever makes copies, out of the programs' way: a token bucket caps its bandwidth, and while the programs' I/O takes
//! longer than it did without the mover, the copy rests more (multiplicative decrease) and then, step by step, less (additive increase). Somebody else
//! watches: is told how things are ten times a second and says whether to go on, to pause or to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use stripewise_target::time::now_ns;

use super::guide::Guide;
use crate::admin::foreground::{Foreground, RunDir, Window};
use crate::admin::medium::CHUNK_BYTES;

/// How often the watcher is asked, and how often slots are looked for.
const TICK_NS: u64 = 100_000_000;
/// Longest single sleep of a waiting guide: what a command waits for at most, beside one chunk.
const STEP_NS: u64 = 20_000_000;
/// Mean time between two looks at the lines; each is a random half more or less, so that periodic programs are not met in step.
const LOOK_NS: u64 = 1_000_000;
/// A window of looks is judged after so long, when so many I/Os ended in it; later it is judged, or dropped, anyway.
const WINDOW_NS: u64 = 200_000_000;
const WINDOW_ENDED: u64 = 20;
const WINDOW_NS_MAX: u64 = 1_000_000_000;
/// Fewer I/Os than these in the longest window: there is no foreground to speak of.
const WINDOW_ENDED_MIN: u64 = 4;
/// How often the copy stops to see how fast the programs are without it, and for how long at most.
const BASELINE_EVERY_NS: u64 = 5_000_000_000;
const BASELINE_NS_MAX: u64 = 500_000_000;
/// Share of the new baseline in the mean over those before.
const BASELINE_WEIGHT: f64 = 0.5;
/// After the mover stops or starts, what is under way is neither with nor without it.
const SETTLE_NS: u64 = 20_000_000;
/// Least share of the time that is spent copying: a mover always gets on.
const DUTY_MIN: f64 = 0.05;
const DUTY_STEP: f64 = 0.1;
const DUTY_FACTOR: f64 = 0.5;
/// Longest rest after one chunk.
const REST_NS_MAX: u64 = 2_000_000_000;
/// Half of such a rest is a window of looks at the programs alone.
const LONG_REST_NS: u64 = 2 * (SETTLE_NS + WINDOW_NS);
/// Bytes copied between two rests when the programs are watched: little enough to queue behind.
const CAREFUL_CHUNK_BYTES: u64 = 1 << 20;

/// Limits of a mover.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Bytes copied per second at most; 0 = no cap.
    #[serde(default)]
    pub bandwidth_bytes_per_s: u64,
    /// The copy yields when the programs' I/O takes so many times as long as without it; 0 = never.
    #[serde(default)]
    pub max_slowdown: f64,
}

/// What a watcher wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Go on.
    Go,
    /// Wait until told otherwise.
    Pause,
    /// Stop; the file stays whole.
    Stop,
}

/// What a watcher is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Seen {
    /// Bytes that were copied, those copied again included.
    pub copied_bytes: u64,
    /// Share of the time spent copying, 0..=1.
    pub duty: f64,
    /// Mean latency of the programs' I/O while the mover rested, ns; 0 = not known.
    pub baseline_ns: f64,
    /// The same while it worked, of the last window; 0 = not known.
    pub latency_ns: f64,
    /// The mover waits because it was told to.
    pub is_paused: bool,
    /// Longest time that writers were kept out, ns.
    pub frozen_ns_max: u64,
    /// Freezes that writers aborted.
    pub aborted: u64,
}

/// Whoever watches over a mover.
pub type Watch = Box<dyn FnMut(&Seen) -> Order + Send>;

/// The guide.
pub struct Throttle {
    options: Options,
    watch: Watch,
    seen: Seen,
    told_ns: u64,
    order: Order,
    meter: Option<Meter>,
    judged: u64,
    baseline_due_ns: u64,
    worked_from_ns: u64,
    tokens_ns: u64,
    /// Of the move under way, or the last one: bytes that have their new home.
    moved_bytes: u64,
}

impl Throttle {
    /// A guide for a mover of the store whose slots are in `run`.
    pub fn new(options: Options, run: Option<RunDir>, watch: Watch) -> Self {
        let meter = run.filter(|_| options.max_slowdown > 0.0).map(Meter::start);
        let seen = Seen { duty: 1.0, ..Seen::default() };
        Self {
            options,
            watch,
            seen,
            told_ns: 0,
            order: Order::Go,
            meter,
            judged: 0,
            baseline_due_ns: 0,
            worked_from_ns: now_ns(),
            tokens_ns: 0,
            moved_bytes: 0,
        }
    }

    /// What the watcher would be told now.
    pub fn seen(&self) -> Seen {
        self.seen
    }

    /// The mover has nothing to do for `ns`: the programs are watched without it. False when the watcher says stop.
    pub fn idle(&mut self, ns: u64) -> bool {
        self.works(false);
        self.rest_until(now_ns().saturating_add(ns))
    }

    /// Bytes of the move under way, or of the last one, that have their new home, whatever ended it.
    pub fn moved_bytes(&self) -> u64 {
        self.moved_bytes
    }

    /// Another move begins.
    pub fn begins(&mut self) {
        self.moved_bytes = 0;
    }

    /// What comes next is no work of the mover's.
    pub fn ended(&mut self) {
        self.works(false);
    }

    fn works(&mut self, does: bool) {
        if let Some(meter) = &self.meter {
            meter.shared.busy.store(does, Ordering::Relaxed);
        }
    }

    /// Asks the watcher when it is time.
    fn tick(&mut self) -> Order {
        let now = now_ns();
        if now.saturating_sub(self.told_ns) >= TICK_NS || self.told_ns == 0 {
            self.told_ns = now;
            self.learn();
            self.order = (self.watch)(&self.seen);
            self.seen.is_paused = self.order == Order::Pause;
        }
        self.order
    }

    /// Sleeps in small steps; false when the watcher says stop.
    fn rest_until(&mut self, until_ns: u64) -> bool {
        loop {
            if self.tick() == Order::Stop {
                return false;
            }
            let now = now_ns();
            if now >= until_ns {
                return true;
            }
            std::thread::sleep(Duration::from_nanos((until_ns - now).min(STEP_NS)));
        }
    }

    fn wait_while_paused(&mut self) -> bool {
        if self.tick() == Order::Pause {
            self.works(false);
            while self.order == Order::Pause {
                std::thread::sleep(Duration::from_nanos(STEP_NS));
                self.tick();
            }
        }
        self.order != Order::Stop
    }

    /// Takes in what the meter has found since.
    fn learn(&mut self) {
        let Some(meter) = &self.meter else { return };
        let found = *meter.found();
        self.seen.baseline_ns = found.baseline_ns.unwrap_or(0.0);
        self.seen.latency_ns = found.loaded_ns.unwrap_or(0.0);
        if found.judged != self.judged {
            self.judged = found.judged;
            self.seen.duty = next_duty(self.seen.duty, found, self.options.max_slowdown);
        }
    }

    /// Stops for long enough to see how fast the programs are alone. With nobody there, for one window.
    fn measure_alone(&mut self) -> bool {
        let Some(meter) = &self.meter else { return true };
        let now = now_ns();
        if now < self.baseline_due_ns || meter.shared.alone.load(Ordering::Relaxed) {
            return true;
        }
        let before = meter.found().alone;
        self.works(false);
        let until = now + SETTLE_NS + if self.seen.baseline_ns > 0.0 { WINDOW_NS } else { BASELINE_NS_MAX };
        let goes_on = |meter: &Meter| meter.found().alone == before && !meter.shared.alone.load(Ordering::Relaxed);
        while now_ns() < until && self.meter.as_ref().is_some_and(goes_on) {
            if !self.rest_until(now_ns() + STEP_NS) {
                return false;
            }
        }
        self.baseline_due_ns = now_ns() + BASELINE_EVERY_NS;
        true
    }

    /// Rests after so many ns of work, and as the cap for `bytes` wants it.
    fn rest(&mut self, worked_ns: u64, bytes: u64) -> bool {
        if self.seen.duty < 1.0 {
            let now = now_ns();
            let rest = ((worked_ns as f64 * (1.0 / self.seen.duty - 1.0)) as u64).min(REST_NS_MAX);
            // Half of a long rest shows at no cost how fast the programs are alone. They may have become slower by themselves, the more so where their
            // data lies wrong, which is what the mover is about to mend: with an old baseline it would hold itself back for nothing.
            if rest >= LONG_REST_NS {
                self.works(false);
                if !self.rest_until(now + rest / 2) {
                    return false;
                }
                self.works(true);
                self.baseline_due_ns = now_ns() + BASELINE_EVERY_NS;
            }
            if !self.rest_until(now + rest) {
                return false;
            }
        }
        if self.options.bandwidth_bytes_per_s > 0 {
            // The bucket as the time at which it is no longer empty; it holds one chunk.
            let from = self.tokens_ns.max(now_ns());
            let cost = u128::from(bytes) * 1_000_000_000 / u128::from(self.options.bandwidth_bytes_per_s);
            self.tokens_ns = from.saturating_add(u64::try_from(cost).unwrap_or(u64::MAX));
            return self.rest_until(from);
        }
        true
    }
}

/// The share of time to copy in, after a window: half of it when the programs were slowed down too much, a step more when they were not.
fn next_duty(duty: f64, found: Found, max_slowdown: f64) -> f64 {
    match (found.baseline_ns, found.loaded_ns) {
        (Some(alone), Some(loaded)) if loaded > alone * max_slowdown => (duty * DUTY_FACTOR).max(DUTY_MIN),
        _ => (duty + DUTY_STEP).min(1.0),
    }
}

impl Guide for Throttle {
    fn pace(&mut self, bytes: u64) -> bool {
        // Neither a pause nor a look at the programs is work to rest from.
        let worked_ns = now_ns().saturating_sub(self.worked_from_ns);
        if !self.wait_while_paused() || !self.measure_alone() {
            return false;
        }
        self.works(true);
        if !self.rest(worked_ns, bytes) || !self.wait_while_paused() {
            return false;
        }
        self.works(true);
        self.seen.copied_bytes += bytes;
        self.worked_from_ns = now_ns();
        true
    }

    fn chunk_bytes(&self) -> u64 {
        let cap = if self.options.max_slowdown > 0.0 { CAREFUL_CHUNK_BYTES } else { CHUNK_BYTES };
        match self.options.bandwidth_bytes_per_s {
            0 => cap,
            // At least ten chunks a second, so that a cap is no burst and a pause.
            rate => cap.min((rate / 10).next_multiple_of(stripewise_layout::GRANULE).max(stripewise_layout::GRANULE)),
        }
    }

    fn waits(&mut self) -> bool {
        self.tick() != Order::Stop
    }

    fn moved(&mut self, done: u64, _total: u64) -> bool {
        self.moved_bytes = done;
        self.tick() != Order::Stop
    }

    fn was_frozen(&mut self, ns: u64, published: bool) {
        self.seen.frozen_ns_max = self.seen.frozen_ns_max.max(ns);
        self.seen.aborted += u64::from(!published);
    }
}

/// What the meter has found.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    baseline_ns: Option<f64>,
    loaded_ns: Option<f64>,
    /// Windows judged with the mover at work, and without.
    judged: u64,
    alone: u64,
}

impl Found {
    fn take_in(&mut self, window: Window, busy: bool) {
        let latency = window.latency_ns().filter(|_| window.ended >= WINDOW_ENDED_MIN);
        if busy {
            self.loaded_ns = latency;
            self.judged += 1;
        } else if let Some(new) = latency {
            self.baseline_ns = Some(self.baseline_ns.map_or(new, |old| old + BASELINE_WEIGHT * (new - old)));
            self.alone += 1;
        }
    }
}

#[derive(Default)]
struct Shared {
    busy: AtomicBool,
    stop: AtomicBool,
    /// No program uses the store.
    alone: AtomicBool,
    found: Mutex<Found>,
}

/// A thread that looks at the programs' lines.
struct Meter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Meter {
    fn start(run: RunDir) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("foreground".into()).spawn(move || watch_programs(run, &theirs)).ok();
        Self { shared, thread }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.shared.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch_programs(run: RunDir, shared: &Shared) {
    let mut foreground = Foreground::new(run, now_ns());
    let (mut busy, mut refreshed_ns, mut settled_ns, mut random) = (false, 0, 0, now_ns() | 1);
    while !shared.stop.load(Ordering::Relaxed) {
        let now = now_ns();
        if now.saturating_sub(refreshed_ns) >= TICK_NS {
            foreground.refresh();
            shared.alone.store(foreground.processes() == 0, Ordering::Relaxed);
            refreshed_ns = now;
        }
        foreground.look(now);
        if shared.busy.load(Ordering::Relaxed) != busy {
            busy = !busy;
            settled_ns = now + SETTLE_NS;
        }
        let window = foreground.window();
        if now < settled_ns {
            foreground.take();
        } else if (window.ns >= WINDOW_NS && window.ended >= WINDOW_ENDED) || window.ns >= WINDOW_NS_MAX {
            let window = foreground.take();
            shared.found.lock().unwrap_or_else(PoisonError::into_inner).take_in(window, busy);
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::thread::sleep(Duration::from_nanos(LOOK_NS / 2 + random % LOOK_NS));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn window(ended: u64, latency_ns: u64) -> Window {
        Window { ns: WINDOW_NS, inside_ns: ended * latency_ns, ended, samples: 200 }
    }

    #[test]
    fn the_copy_backs_off_by_half_creeps_up_again_and_never_starves() {
        let mut found = Found::default();
        found.take_in(window(100, 1_000_000), false);
        let mut duty = 1.0;
        let mut seen = Vec::new();
        for _ in 0..8 {
            found.take_in(window(100, 2_000_000), true);
            duty = next_duty(duty, found, 1.5);
            seen.push(duty);
        }
        assert_eq!(seen[..4], [0.5, 0.25, 0.125, 0.0625]);
        assert_eq!(seen[4..], [DUTY_MIN; 4]);
        for _ in 0..3 {
            found.take_in(window(100, 1_400_000), true);
            duty = next_duty(duty, found, 1.5);
        }
        assert!((duty - (DUTY_MIN + 3.0 * DUTY_STEP)).abs() < 1e-9);
    }

    #[test]
    fn with_nobody_to_disturb_the_copy_goes_at_full_speed() {
        let mut found = Found::default();
        found.take_in(window(100, 1_000_000), false);
        found.take_in(window(1, 90_000_000), true);
        assert_eq!(found.loaded_ns, None);
        assert!((next_duty(0.95, found, 1.5) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_cap_spreads_the_bytes_over_the_time_they_may_take() {
        let options = Options { bandwidth_bytes_per_s: 40 << 20, max_slowdown: 0.0 };
        let mut throttle = Throttle::new(options, None, Box::new(|_| Order::Go));
        let begun = now_ns();
        let chunk = throttle.chunk_bytes();
        assert_eq!(chunk, 4 << 20);
        for _ in 0..4 {
            assert!(throttle.pace(chunk));
        }
        assert!(now_ns() - begun >= 300_000_000, "three chunks must have been paid for");
        assert_eq!(throttle.seen().copied_bytes, 16 << 20);
    }

    #[test]
    fn half_of_a_long_rest_shows_the_programs_alone() {
        let dir = tempfile::tempdir().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (theirs, options) = (Arc::clone(&seen), Options { bandwidth_bytes_per_s: 0, max_slowdown: 1.5 });
        let busy: Arc<Mutex<Option<Arc<Shared>>>> = Arc::default();
        let watched = Arc::clone(&busy);
        let mut throttle = Throttle::new(
            options,
            Some(RunDir { dir: std::fs::File::open(dir.path()).unwrap().into(), boot: "0b".to_string() }),
            Box::new(move |_| {
                let shared = watched.lock().unwrap();
                theirs.lock().unwrap().push(shared.as_ref().is_some_and(|s| s.busy.load(Ordering::Relaxed)));
                Order::Go
            }),
        );
        let shared = Arc::clone(&throttle.meter.as_ref().unwrap().shared);
        shared.busy.store(true, Ordering::Relaxed);
        *busy.lock().unwrap() = Some(shared);
        throttle.seen.duty = 0.1;
        assert!(throttle.rest(LONG_REST_NS / 8, 4096));
        let told = seen.lock().unwrap();
        assert_eq!(told.first(), Some(&false));
        assert_eq!(told.last(), Some(&true));
    }

    #[test]
    fn a_paused_mover_waits_and_a_stopped_one_stops() {
        let mut orders = vec![Order::Stop, Order::Go, Order::Pause, Order::Pause];
        let mut paused = Throttle::new(Options::default(), None, Box::new(move |_| orders.pop().unwrap()));
        assert!(paused.pace(4096));
        assert_eq!(paused.order, Order::Go);
        while paused.waits() {}
        assert!(!paused.pace(4096));
    }
}
