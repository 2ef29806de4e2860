//! Kills and power cuts after every step of some work on the fake disk.

use stripewise_store::admin::StoreError;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::medium::FsyncPoint;

/// Power cuts per step; STRIPEWISE_SEEDS asks for more (`make soak`).
pub fn seeds() -> u64 {
    std::env::var("STRIPEWISE_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(3)
}

/// What is done to a disk: how it begins, and the work, which is stopped.
pub struct Crashes<'a> {
    pub start: &'a dyn Fn() -> FakeDisk,
    pub work: &'a dyn Fn(&FakeDisk) -> Result<(), StoreError>,
    /// By power cuts, not by kills.
    pub cut: bool,
    /// An fsync that is left out.
    pub suppress: Option<FsyncPoint>,
}

impl Crashes<'_> {
    /// Stops the work after each step from `first` on; returns the first violation, which is asked for with whether the work was done.
    pub fn after_each_step(&self, first: u64, violation: impl Fn(&FakeDisk, bool) -> Option<String>) -> Option<String> {
        for step in first.. {
            let mut ended = false;
            for seed in 0..if self.cut { 2 * seeds() } else { 1 } {
                let disk = (self.start)();
                disk.suppress(self.suppress);
                let before = disk.steps();
                disk.stop_after(step);
                let finished = (self.work)(&disk).is_ok();
                ended = disk.steps() - before < step;
                disk.want_after(None);
                if self.cut {
                    disk.cut_power(seed * 104_729 + step)
                } else {
                    disk.restart()
                }
                disk.suppress(None);
                if let Some(what) = violation(&disk, finished) {
                    return Some(format!("step {step}, seed {seed}: {what}"));
                }
            }
            if ended {
                return None;
            }
        }
        None
    }
}
