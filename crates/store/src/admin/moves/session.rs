//! A mover at work: one lock and one throttle for many moves, a status that others read (`run/mover.json`), and orders that they give
//! (`run/mover.command`). Whoever schedules the moves only says which comes next.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use rustix::fs::{self, AtFlags, OFlags};
use rustix::io::{read, write};
use serde_json::{Map, Value, json};
use stripewise_target::text::PartName;
use stripewise_target::time::now_ns;
use stripewise_target::within::{self, Expected};

use super::apply::{Applied, move_to};
use super::throttle::{Options, Order, Seen, Throttle};
use crate::admin::error::Result;
use crate::admin::ids::id_from;
use crate::admin::session::MoverLock;
use crate::admin::spec::LayoutJson;
use crate::admin::store::Store;

/// Of the status.
const VERSION: u32 = 1;
const STATUS: &CStr = c"mover.json";
const COMMAND: &CStr = c"mover.command";
/// Longest command.
const COMMAND_BYTES_MAX: usize = 64;
/// How often the status is written while the mover works.
const STATUS_EVERY_NS: u64 = 200_000_000;
/// Bytes after which what was moved before counts half for the pace.
const PACE_BYTES: f64 = 1e9;

/// Whoever looks on: called ten times a second with the bytes done and in all; false stops the mover, between two chunks.
pub type Look = Box<dyn FnMut(u64, u64) -> bool + Send>;

/// Moves of one store, one after another. It has the store's mover lock.
pub struct MoveSession<'d> {
    /// Held until all else has gone.
    _lock: MoverLock,
    store: Store<'d>,
    throttle: Throttle,
    status: Arc<Mutex<Status>>,
}

/// One move: which file gets which layout, and what the status says of it.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The file's id.
    pub id: &'a str,
    /// Its name.
    pub path: &'a str,
    /// What it gets ([`LayoutJson`]).
    pub layout: &'a str,
    /// Which of its bytes that is about.
    pub start: u64,
    /// How many.
    pub bytes: u64,
}

impl<'d> MoveSession<'d> {
    /// Begins. `head` is what the status says of this mover besides.
    ///
    /// # Errors
    /// `InUse` when another mover is at work; those of opening the store's run directory.
    pub fn begin(store: Store<'d>, options: Options, head: Map<String, Value>, mut look: Look) -> Result<Self> {
        // Its lock first: another mover's status is not ours to replace.
        let lock = store.lock_mover()?;
        let (run, watched) = (store.run()?, store.run()?);
        let status = Arc::new(Mutex::new(Status::begin(run.map(|run| run.dir), head)));
        let theirs = Arc::clone(&status);
        let watch = move |seen: &Seen| {
            let (done, total) = held(&theirs).take_in(seen);
            let goes_on = look(done, total);
            held(&theirs).order(goes_on)
        };
        Ok(Self { _lock: lock, store, throttle: Throttle::new(options, watched, Box::new(watch)), status })
    }

    pub fn store(&self) -> &Store<'d> {
        &self.store
    }

    /// So many bytes are to be moved from here on.
    pub fn expect(&self, total_bytes: u64) {
        held(&self.status).expect(total_bytes);
    }

    /// The status says this besides, when it is next written.
    pub fn tell(&self, said: Map<String, Value>) {
        held(&self.status).tell(said, false);
    }

    /// Gives a file a layout; with the seconds that it took.
    ///
    /// # Errors
    /// Those of [`move_to`]: `Stopped` where somebody called it off. The file is whole, and other files can still be moved.
    pub fn apply(&mut self, step: &Step<'_>) -> Result<(Applied, f64)> {
        held(&self.status).begin_step(step);
        let begun = Instant::now();
        self.throttle.begins();
        let wanted = LayoutJson::parse(step.layout)?;
        let applied = move_to(&self.store, id_from(step.id)?, &wanted, &mut self.throttle);
        self.throttle.ended();
        let seconds = begun.elapsed().as_secs_f64();
        let moved = self.throttle.moved_bytes();
        // Of a move that was stopped only what has its new home is done, whatever was copied.
        let done = if applied.is_ok() { step.bytes } else { moved.min(step.bytes) };
        held(&self.status).end_step(done, applied.as_ref().map_or(moved, |applied| applied.moved_bytes), seconds);
        Ok((applied?, seconds))
    }

    /// Bytes that the last move gave their new home, also where it was stopped half way.
    pub fn moved_bytes(&self) -> u64 {
        self.throttle.moved_bytes()
    }

    /// Waits for `ns` and watches the programs meanwhile; false when it was told to stop.
    pub fn wait(&mut self, ns: u64) -> bool {
        held(&self.status).tell(object(json!({"state": "waiting", "moving": null})), false);
        self.throttle.idle(ns)
    }

    /// Says how it ended, and gives the lock back.
    pub fn end(self, state: &str) {
        held(&self.status).tell(object(json!({"state": state, "moving": null, "seconds_left": 0.0})), true);
    }
}

fn held(status: &Mutex<Status>) -> MutexGuard<'_, Status> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// What the mover says, and what it has heard.
struct Status {
    /// `run/`, on a medium that has one.
    run: Option<OwnedFd>,
    said: Map<String, Value>,
    written_ns: u64,
    copied_bytes: u64,
    copied_before: u64,
    done_bytes: u64,
    total_bytes: u64,
    /// What was moved so far and in which time, the last gigabyte or so counting most.
    pace: (f64, f64),
    is_paused: bool,
    is_stopped: bool,
}

impl Status {
    fn begin(run: Option<OwnedFd>, head: Map<String, Value>) -> Self {
        let mut said = object(json!({"version": VERSION, "pid": std::process::id()}));
        said.extend(head);
        let mut status = Self {
            run,
            said,
            written_ns: 0,
            copied_bytes: 0,
            copied_before: 0,
            done_bytes: 0,
            total_bytes: 0,
            pace: (0.0, 0.0),
            is_paused: false,
            is_stopped: false,
        };
        // What was meant for another mover.
        status.remove_command();
        status.tell(object(json!({"state": "waiting"})), true);
        status
    }

    /// Takes in what changed, and writes the status when it is time or when `at_once` says so.
    fn tell(&mut self, said: Map<String, Value>, at_once: bool) {
        self.said.extend(said);
        let now = now_ns();
        if at_once || now.saturating_sub(self.written_ns) >= STATUS_EVERY_NS {
            self.written_ns = now;
            // A full disk must not stop a mover that makes room.
            let _ = self.write();
        }
    }

    /// Replaces the status at once; it need not outlive a power cut.
    fn write(&self) -> rustix::io::Result<()> {
        let Some(run) = &self.run else { return Ok(()) };
        let mut temporary = PartName::from_bytes(b".mover.json.");
        temporary.push_id(stripewise_chance::mix(now_ns() ^ (u64::from(std::process::id()) << 40)));
        let temporary = temporary.as_c_str().ok_or(rustix::io::Errno::NAMETOOLONG)?;
        let text = format!("{}\n", Value::Object(self.said.clone()));
        let written = within::create_file(run.as_fd(), temporary, OFlags::WRONLY, 0o644)
            .and_then(|file| if write(&file, text.as_bytes())? == text.len() { Ok(()) } else { Err(rustix::io::Errno::NOSPC) })
            .and_then(|()| fs::renameat(run, temporary, run, STATUS));
        written.inspect_err(|_| {
            let _ = fs::unlinkat(run, temporary, AtFlags::empty());
        })
    }

    fn expect(&mut self, total_bytes: u64) {
        (self.done_bytes, self.total_bytes) = (0, total_bytes);
        self.said.insert("total_bytes".into(), json!(total_bytes));
    }

    fn begin_step(&mut self, step: &Step<'_>) {
        self.copied_before = self.copied_bytes;
        let moving = json!({"file": step.path, "id": step.id, "start": step.start, "bytes": step.bytes});
        self.tell(object(json!({"state": "moving", "moving": moving})), false);
    }

    fn end_step(&mut self, bytes: u64, moved_bytes: u64, seconds: f64) {
        self.done_bytes += bytes;
        let (counted, spent) = self.pace;
        let weight = if counted > PACE_BYTES { 0.5 } else { 1.0 };
        self.pace = (counted * weight + moved_bytes as f64, spent * weight + seconds);
        self.said.insert("done_bytes".into(), json!(self.done_bytes));
    }

    /// Takes in how the move gets on; returns the bytes done and in all.
    fn take_in(&mut self, seen: &Seen) -> (u64, u64) {
        self.copied_bytes = seen.copied_bytes;
        let under_way = (self.copied_bytes - self.copied_before).min(self.total_bytes.saturating_sub(self.done_bytes));
        let done = self.done_bytes + if self.is_moving() { under_way } else { 0 };
        let left = self.total_bytes.saturating_sub(done) as f64;
        let (counted, spent) = self.pace;
        self.said.extend(object(json!({
            "copied_bytes": self.copied_bytes,
            "done_bytes": done,
            "total_bytes": self.total_bytes,
            "seconds_left": (counted > 0.0).then(|| left * spent / counted),
            "duty": (seen.duty * 1e3).round() / 1e3,
            "baseline_s": seen.baseline_ns / 1e9,
            "latency_s": seen.latency_ns / 1e9,
            "frozen_max_s": seen.frozen_ns_max as f64 / 1e9,
            "aborted_freezes": seen.aborted,
            "updated_unix": SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |since| since.as_secs_f64()),
        })));
        (done, self.total_bytes)
    }

    fn is_moving(&self) -> bool {
        self.said.get("moving").is_some_and(|moving| !moving.is_null())
    }

    /// What to do next, by what was heard: once told to stop it stops for good.
    fn order(&mut self, goes_on: bool) -> Order {
        let was_paused = self.is_paused;
        match self.command().as_deref() {
            Some("stop") => self.is_stopped = true,
            Some(command) => self.is_paused = command == "pause",
            None => {}
        }
        self.is_stopped |= !goes_on;
        let state = match (self.is_paused, self.is_moving()) {
            (true, _) => "paused",
            (false, true) => "moving",
            (false, false) => "waiting",
        };
        self.tell(object(json!({"state": state})), was_paused != self.is_paused);
        match (self.is_stopped, self.is_paused) {
            (true, _) => Order::Stop,
            (false, true) => Order::Pause,
            (false, false) => Order::Go,
        }
    }

    /// What somebody wants, once. Only the mover's own user and root are heard.
    fn command(&self) -> Option<String> {
        let run = self.run.as_ref()?;
        let own = [rustix::process::geteuid().as_raw(), 0];
        let mut text = [0u8; COMMAND_BYTES_MAX];
        let expected = Expected::of(&own).at_most(COMMAND_BYTES_MAX as u64);
        let heard = match within::open_file(run.as_fd(), COMMAND, OFlags::RDONLY, expected) {
            Ok((file, _)) => read(&file, &mut text[..]).ok().and_then(|got| Some(std::str::from_utf8(text.get(..got)?).ok()?.trim().to_string())),
            Err(within::Refusal::Os(_)) => return None,
            Err(_) => None,
        };
        self.remove_command();
        heard.filter(|command| ["pause", "resume", "stop"].contains(&command.as_str()))
    }

    /// Another user's stays.
    fn remove_command(&self) {
        if let Some(run) = &self.run {
            let _ = fs::unlinkat(run, COMMAND, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use std::path::Path;

    fn status(run: &Path) -> Status {
        Status::begin(Some(std::fs::File::open(run).unwrap().into()), object(json!({"verb": "migrate"})))
    }

    fn said(run: &Path) -> Value {
        serde_json::from_slice(&std::fs::read(run.join("mover.json")).unwrap()).unwrap()
    }

    fn names(run: &Path) -> Vec<String> {
        std::fs::read_dir(run).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    const STEP: Step<'_> = Step { id: "01", path: "/d/f", layout: "[]", start: 0, bytes: 100 };

    #[test]
    fn the_status_tells_how_far_a_move_is_and_what_the_rest_will_take() {
        let run = tempfile::tempdir().unwrap();
        let mut status = status(run.path());
        assert_eq!(said(run.path())["state"], "waiting");
        status.expect(300);
        status.begin_step(&STEP);
        assert_eq!(status.take_in(&Seen { copied_bytes: 40, ..Seen::default() }), (40, 300));
        assert_eq!(status.said["seconds_left"], Value::Null);
        status.end_step(100, 80, 2.0);
        // What is copied again counts no further than what is left.
        assert_eq!(status.take_in(&Seen { copied_bytes: 1000, ..Seen::default() }), (300, 300));
        status.tell(object(json!({"moving": null})), true);
        assert_eq!(status.take_in(&Seen { copied_bytes: 1000, ..Seen::default() }), (100, 300));
        assert_eq!(status.said["seconds_left"], json!(200.0 * 2.0 / 80.0));
        status.write().unwrap();
        assert_eq!((&said(run.path())["done_bytes"], &said(run.path())["verb"]), (&json!(100), &json!("migrate")));
        assert_eq!(names(run.path()), ["mover.json"]);
    }

    #[test]
    fn an_order_is_heard_once_and_a_stop_is_for_good() {
        let run = tempfile::tempdir().unwrap();
        std::fs::write(run.path().join("mover.command"), "stop\n").unwrap();
        let mut status = status(run.path());
        assert_eq!(status.order(true), Order::Go, "that was for the mover before");
        let mut heard = |command: &str| {
            std::fs::write(run.path().join("mover.command"), command).unwrap();
            let order = status.order(true);
            assert!(!run.path().join("mover.command").exists());
            (order, said(run.path())["state"].clone())
        };
        assert_eq!(heard("pause\n"), (Order::Pause, json!("paused")));
        assert_eq!(heard("jump\n"), (Order::Pause, json!("paused")));
        assert_eq!(heard(&"pause".repeat(20)).0, Order::Pause);
        assert_eq!(heard("resume\n"), (Order::Go, json!("waiting")));
        assert_eq!(heard("stop\n").0, Order::Stop);
        assert_eq!(heard("resume\n").0, Order::Stop);
    }

    #[test]
    fn nobody_else_is_heard_and_whoever_looks_on_may_stop_it() {
        let run = tempfile::tempdir().unwrap();
        let mut status = status(run.path());
        std::os::unix::fs::symlink("elsewhere", run.path().join("mover.command")).unwrap();
        std::fs::write(run.path().join("elsewhere"), "stop").unwrap();
        assert_eq!(status.order(true), Order::Go);
        assert_eq!(status.order(false), Order::Stop);
        assert_eq!(status.order(true), Order::Stop);
    }

    #[test]
    fn a_run_directory_that_cannot_be_written_stops_no_mover() {
        let run = tempfile::tempdir().unwrap();
        let mut status = status(run.path());
        std::fs::remove_dir_all(run.path()).unwrap();
        status.tell(Map::new(), true);
        assert_eq!(status.order(true), Order::Go);
    }
}
