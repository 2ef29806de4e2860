//! What programs do with a file, by the steps of `sizing` and `moving` that the runtime takes, on objects of the fake disk; and what they must find there.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use stripewise_layout::{Layout, View};
use stripewise_store::admin::Store;
use stripewise_store::admin::fake::FakeDisk;
use stripewise_store::admin::medium::*;
use stripewise_store::admin::metadata::publish::put_in_place;
use stripewise_store::admin::metadata::size::open_ctl;
use stripewise_store::ctl::Ctl;
use stripewise_store::moving::{self, MoveState, Turn, Words};
use stripewise_store::sizing::{self, CutStep, ExtendStep, Extension, Note, Sizes, Written};

use crate::interleaved::Chance;
use crate::interleaved::common::{ID, K, pattern};
use crate::interleaved::steps::{Cut, Ext};

/// Bytes that the file has at first.
pub const SIZE: usize = 75_001;

/// Programs, one after the other, that do what crates/runtime does: each act in one go, or step by step (`slow`).
pub struct Program {
    pub disk: FakeDisk,
    pub root: PathBuf,
    /// The layout that it has loaded.
    cached: Layout,
    /// What the file must hold.
    pub model: Vec<u8>,
    /// What has been done, for whoever reads of a failure.
    pub trace: Vec<String>,
    next_line: usize,
    stamp: u8,
    /// The exclusive lock is the mover's.
    pub locked: bool,
    /// Whether waiters call freezes off.
    pub impatient: bool,
    /// Writes half done.
    inside: Vec<Inside>,
    /// A cut half done: to where, its next step, the layout that it goes by.
    cutting: Option<(u64, usize, Option<Layout>)>,
    /// Whether acts are left half done.
    pub slow: bool,
    /// What killed writers may have left while others were inside.
    died: Vec<(u64, u64)>,
}

/// An extending write half done.
#[derive(Clone)]
struct Inside {
    line: usize,
    at: u64,
    bytes: Vec<u8>,
    layout: Layout,
}

impl Program {
    pub fn new(disk: &FakeDisk, root: &Path) -> Program {
        let store = Store::open(disk, root).unwrap();
        open_ctl(&store, ID, &store.layout(ID).unwrap()).unwrap();
        Program {
            disk: disk.clone(),
            root: root.to_path_buf(),
            cached: store.layout(ID).unwrap(),
            model: pattern(3, 0, SIZE),
            trace: vec![],
            next_line: 0,
            stamp: 4,
            locked: false,
            impatient: false,
            slow: false,
            inside: vec![],
            died: vec![],
            cutting: None,
        }
    }

    pub fn note(&mut self, text: String) {
        self.trace.push(text);
    }

    pub fn current(&mut self, store: &Store<'_>, ctl: Ctl) -> Layout {
        if self.cached.generation != ctl.header().generation.load(Ordering::SeqCst) {
            let on_disk = store.layout(ID).unwrap();
            if on_disk.generation > self.cached.generation {
                self.cached = on_disk;
            }
        }
        self.cached.clone()
    }

    pub fn turn(&mut self, store: &Store<'_>, ctl: Ctl, at: u64, len: u64) -> bool {
        for _ in 0..4 {
            let impatient = self.impatient;
            match moving::turn(&ctl, at, len, || if impatient { u64::MAX } else { 0 }) {
                Turn::Go => return true,
                Turn::Wait if !impatient => return false,
                Turn::Wait => self.note(format!("  a waiter looks again: {:?}", MoveState::of(ctl.word()))),
                Turn::Publish(p) => {
                    self.note("  a waiter publishes".into());
                    moving::publish(&ctl, p, |g| put_in_place(store, ID, g)).unwrap();
                }
            }
        }
        false
    }

    fn trim(&mut self, store: &Store<'_>, ctl: Ctl) -> bool {
        if self.locked {
            return false;
        }
        self.note(format!("  trim to {}", ctl.size()));
        let mut cut = Cut { p: self, store, ctl, at: None, layout: None, most: usize::MAX, has_cut: false };
        sizing::cut(&mut cut, None).is_ok()
    }

    pub fn gate(&mut self, store: &Store<'_>, ctl: Ctl, at: u64, len: u64) -> bool {
        if ctl.is_cut_intended() && !self.trim(store, ctl) {
            return false;
        }
        self.turn(store, ctl, at, len)
    }

    pub fn make(&mut self, store: &Store<'_>, layout: &Layout, size: u64, to: u64) {
        let bytes = layout.encode().unwrap();
        let view = View::parse(&bytes).unwrap();
        let mut firsts = std::collections::BTreeMap::new();
        view.first_bytes(|t, p, f| {
            let least = firsts.entry((t, p)).or_insert(u64::MAX);
            *least = f.min(*least);
        });
        for ((t, p), first) in firsts {
            let path = store.object(t, ID, p).unwrap();
            let there = self.disk.stat(&path).unwrap().is_some();
            if first >= to || there {
                continue;
            }
            assert!(first >= size, "an object is missing that a file of {size} bytes reaches: {t}.{p} first {first}");
            drop(self.disk.open(&path, Open::CreateNew).unwrap());
            self.disk.sync_dir(path.parent().unwrap(), FsyncPoint::SliceDir).unwrap();
        }
    }

    pub fn write(&mut self, store: &Store<'_>, layout: &Layout, at: u64, bytes: &[u8]) {
        let enc = layout.encode().unwrap();
        let view = View::parse(&enc).unwrap();
        for piece in view.home().pieces(at, bytes.len() as u64) {
            let object = self.disk.open(&store.object(piece.target, ID, piece.plane).unwrap(), Open::Write).unwrap();
            let from = (piece.logical - at) as usize;
            object.write_at(&bytes[from..from + piece.len as usize], piece.object_offset).unwrap();
        }
    }

    fn pattern(&mut self, at: u64, len: u64) -> Vec<u8> {
        self.stamp = self.stamp.wrapping_add(2);
        pattern(self.stamp, at, len as usize)
    }

    /// Writes; with `dies` all is written and the size not raised.
    pub fn extend(&mut self, store: &Store<'_>, ctl: Ctl, at: u64, len: u64, zeros: bool, dies: bool) -> bool {
        for _ in 0..3 {
            let (from, touched) = sizing::touched(ctl.size(), at, len, at + len);
            if !self.gate(store, ctl, from, touched) {
                return false;
            }
            let (size, end) = (ctl.size(), at + len);
            let bytes = if zeros { vec![] } else { self.pattern(at, len) };
            let layout = self.current(store, ctl);
            if end <= size {
                self.write(store, &layout, at, &bytes);
                self.model[at as usize..(at as usize + bytes.len())].copy_from_slice(&bytes);
                return true;
            }
            self.next_line += 1;
            let line = self.next_line % 100 + 1;
            if self.alive(line) || ctl.note(line).end != 0 && !sizing::is_claimable(&ctl, line) {
                continue;
            }
            ctl.header().lines_used.fetch_max(line as u64 + 1, Ordering::SeqCst);
            let shows = if zeros { end } else { at };
            let extension = Extension { line, note: Note { start: at, end }, shows };
            let mut ext = Ext { p: self, store, layout, size, at, bytes: bytes.clone(), end };
            let mut written = Written::default();
            let steps = if dies { &sizing::EXTEND[..4] } else { &sizing::EXTEND[..] };
            assert_eq!(steps.last() == Some(&ExtendStep::Write), dies);
            let broke = steps.iter().any(|s| sizing::take_extend(*s, &ctl, &extension, &mut written, &mut ext).unwrap() == ControlFlow::Break(()));
            if broke {
                if !sizing::is_unsettled(&ctl, shows, |l| self.alive(l)) || !self.trim(store, ctl) {
                    return false;
                }
                continue;
            }
            if !dies {
                self.model.resize(size as usize, 0);
                self.adopt(store, ctl, size);
                self.model[at as usize..(at as usize + bytes.len())].copy_from_slice(&bytes);
            } else {
                if !self.inside.is_empty() {
                    self.died.push((at, at + len));
                }
                // Inside the size they are the file's.
                let inside = (size.saturating_sub(at) as usize).min(bytes.len());
                self.model[at.min(size) as usize..at.min(size) as usize + inside].copy_from_slice(&bytes[..inside]);
            }
            return true;
        }
        false
    }

    pub fn truncate(&mut self, store: &Store<'_>, ctl: Ctl, to: u64, steps: Option<(usize, usize)>) -> bool {
        if self.locked {
            return false;
        }
        if to >= ctl.size() {
            if sizing::is_unsettled(&ctl, to, |l| self.alive(l)) && !self.trim(store, ctl) {
                return false;
            }
            if !self.turn(store, ctl, ctl.size(), to.saturating_sub(ctl.size())) {
                return false;
            }
            let layout = self.current(store, ctl);
            self.make(store, &layout, ctl.size(), to);
            self.mirror(store, to);
            let size = ctl.size();
            ctl.raise_size(to);
            self.adopt(store, ctl, size);
            return true;
        }
        let mut cut = Cut { p: self, store, ctl, at: Some(to), layout: None, most: usize::MAX, has_cut: false };
        let Some((steps, most)) = steps else {
            let done = sizing::cut(&mut cut, Some(to)).is_ok();
            if done {
                self.model.truncate(to as usize);
                self.mirror(store, to);
            }
            return done;
        };
        cut.most = most;
        for step in &sizing::CUT[..steps] {
            if sizing::take_cut(*step, &mut cut, Some(to)).is_err() {
                break;
            }
            if *step == CutStep::Resize {
                cut.p.model.truncate(to as usize);
            }
        }
        true
    }

    pub fn alive(&self, line: usize) -> bool {
        self.inside.iter().any(|i| i.line == line)
    }

    /// From `size` on the file shows what is there: zeros, but for what living or just killed writers wrote.
    fn adopt(&mut self, store: &Store<'_>, ctl: Ctl, size: u64) {
        let layout = self.current(store, ctl);
        let now = self.read_by(store, &layout, ctl.size());
        self.model.truncate(size as usize);
        let mut written: Vec<(u64, u64)> = self.inside.iter().map(|i| (i.at, i.at + i.bytes.len() as u64)).collect();
        written.extend(&self.died);
        let is_theirs = |at: u64| written.iter().any(|w| w.0 <= at && at < w.1);
        self.model.extend((size..now.len() as u64).map(|at| if is_theirs(at) { now[at as usize] } else { 0 }));
    }

    fn begin(&mut self, store: &Store<'_>, ctl: Ctl, at: u64, len: u64) -> bool {
        let (from, touched) = sizing::touched(ctl.size(), at, len, at + len);
        if !self.gate(store, ctl, from, touched) || at < ctl.size() {
            return false;
        }
        self.next_line += 1;
        let line = self.next_line % 100 + 1;
        if self.alive(line) || ctl.note(line).end != 0 || sizing::exposes(&ctl, ctl.size(), at, |l| self.alive(l)) {
            return false;
        }
        let (layout, bytes) = (self.current(store, ctl), self.pattern(at, len));
        self.make(store, &layout, ctl.size(), at + len);
        ctl.header().lines_used.fetch_max(line as u64 + 1, Ordering::SeqCst);
        ctl.set_note(line, Note { start: at, end: at + len });
        self.write(store, &layout, at, &bytes[..len as usize / 2]);
        self.inside.push(Inside { line, at, bytes, layout });
        true
    }

    fn end(&mut self, store: &Store<'_>, ctl: Ctl, which: usize, dies: bool) {
        let i = self.inside.remove(which);
        if dies {
            self.died.push((i.at, i.at + i.bytes.len() as u64));
        }
        let (half, end) = (i.bytes.len() / 2, i.at + i.bytes.len() as u64);
        self.note(format!("  {} the write {}..{end}, size {}", if dies { "kills" } else { "ends" }, i.at, ctl.size()));
        if !dies {
            self.write(store, &i.layout, i.at + half as u64, &i.bytes[half..]);
            let size = ctl.size();
            ctl.raise_size(end);
            if end > size {
                self.inside.push(i.clone());
                self.adopt(store, ctl, size);
                self.inside.pop();
            }
            ctl.set_note(i.line, Note::default());
        }
        if self.inside.is_empty() {
            self.died.clear();
        }
        let layout = self.current(store, ctl);
        let now = self.read_by(store, &layout, ctl.size());
        let part = (i.at as usize).min(now.len())..(end as usize).min(now.len());
        self.model[part.clone()].copy_from_slice(&now[part]);
    }

    /// Whoever is inside leaves, or dies.
    pub fn finish_all(&mut self, store: &Store<'_>, ctl: Ctl) {
        while !self.inside.is_empty() {
            self.stamp = self.stamp.wrapping_add(2);
            self.end(store, ctl, 0, self.stamp % 8 < 4);
        }
    }

    /// The next step of a cut that goes on between the mover's; `all`: to its end.
    pub fn go_on(&mut self, store: &Store<'_>, ctl: Ctl, all: bool, dies: bool) {
        let Some((to, mut step, mut layout)) = self.cutting.take() else { return };
        if dies {
            self.note("  the cut is killed".into());
            return;
        }
        loop {
            let name = sizing::CUT[step];
            let mut cut = Cut { p: self, store, ctl, at: Some(to), layout: layout.clone(), most: if all { usize::MAX } else { 1 }, has_cut: false };
            let result = sizing::take_cut(name, &mut cut, Some(to));
            layout = cut.layout.take();
            self.note(format!("  cut to {to}: {name:?} {result:?}"));
            match (name, result) {
                (CutStep::Drain, Err(())) => {
                    ctl.intend_cut(false);
                    return;
                }
                (CutStep::Trim, Err(())) => {}
                (CutStep::Resize, _) => {
                    self.model.truncate(to as usize);
                    step += 1;
                }
                _ => step += 1,
            }
            if step == sizing::CUT.len() {
                return;
            }
            if !all {
                self.cutting = Some((to, step, layout));
                return;
            }
        }
    }

    /// What the mover's wait or lock waits for.
    pub fn let_pass(&mut self, what: &str, random: &mut Chance) {
        if what != "grace" && what != "lock_dir" {
            return;
        }
        let disk = self.disk.clone();
        let store = Store::open(&disk, &self.root).unwrap();
        let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
        let dies = random.below(3) == 0;
        self.go_on(&store, map.ctl(), true, dies);
        if what == "grace" {
            self.finish_all(&store, map.ctl());
        }
    }

    fn read_by(&mut self, store: &Store<'_>, layout: &Layout, size: u64) -> Vec<u8> {
        let enc = layout.encode().unwrap();
        let view = View::parse(&enc).unwrap();
        let mut bytes = vec![0; size as usize];
        for piece in view.home().pieces(0, size) {
            let path = store.object(piece.target, ID, piece.plane).unwrap();
            let object =
                self.disk.open(&path, Open::Read).unwrap_or_else(|e| panic!("{e} for {} of {size}\n{}", piece.logical, self.trace.join("\n")));
            object.read_at(&mut bytes[piece.logical as usize..(piece.logical + piece.len) as usize], piece.object_offset).unwrap();
        }
        bytes
    }

    fn mirror(&mut self, store: &Store<'_>, size: u64) {
        let head = self.disk.open(&store.part(ID, "head"), Open::Write).unwrap();
        if head.len().unwrap() != size {
            head.set_len(size).unwrap();
        }
    }

    pub fn fsync(&mut self, store: &Store<'_>, ctl: Ctl) -> bool {
        if sizing::is_unsettled(&ctl, u64::MAX, |l| self.alive(l)) && !self.trim(store, ctl) {
            return false;
        }
        let layout = self.current(store, ctl);
        let enc = layout.encode().unwrap();
        let view = View::parse(&enc).unwrap();
        let mut objects = BTreeSet::new();
        view.first_bytes(|t, p, _| {
            objects.insert((t, p));
        });
        for (t, p) in objects {
            let path = store.object(t, ID, p).unwrap();
            if self.disk.stat(&path).unwrap().is_some() {
                self.disk.open(&path, Open::Write).unwrap().sync(FsyncPoint::SliceData).unwrap();
            }
        }
        let size = ctl.size();
        self.mirror(store, size);
        self.disk.open(&store.part(ID, "head"), Open::Write).unwrap().sync(FsyncPoint::HeadSize).unwrap();
        true
    }

    /// What it reads now.
    pub fn read(&mut self) -> Vec<u8> {
        let disk = self.disk.clone();
        let store = Store::open(&disk, &self.root).unwrap();
        let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
        let layout = self.current(&store, map.ctl());
        self.read_by(&store, &layout, map.ctl().size())
    }

    pub fn check(&mut self, when: &str) {
        let got = self.read();
        if got != self.model {
            let at = got.iter().zip(&self.model).position(|(a, b)| a != b);
            panic!(
                "{when}: {} bytes for {}, first difference {at:?}: {:?} for {:?}\n{}",
                got.len(),
                self.model.len(),
                at.map(|a| got[a]),
                at.map(|a| self.model[a]),
                self.trace.join("\n")
            );
        }
    }

    pub fn act(&mut self, random: &mut Chance, locked: bool) {
        let disk = self.disk.clone();
        let store = Store::open(&disk, &self.root).unwrap();
        let map = disk.ctl(&store.part(ID, "ctl"), false).unwrap();
        let ctl = map.ctl();
        self.locked = locked;
        if self.cutting.is_some() {
            let (all, dies) = (random.below(4) == 0, random.below(6) == 0);
            return self.go_on(&store, ctl, all, dies);
        }
        if !self.inside.is_empty() && random.coin() {
            let which = random.below(self.inside.len() as u64) as usize;
            let dies = random.coin();
            return self.end(&store, ctl, which, dies);
        }
        let size = ctl.size();
        if self.slow && random.below(3) == 0 {
            if random.coin() && size < 120 * K {
                let (at, len) = (size + random.below(2) * random.below(30 * K), 2 + random.below(20 * K));
                let done = self.begin(&store, ctl, at, len);
                return self.note(format!("begins to write {at}+{len}: {done} (size {size})"));
            }
            if size > 0 && !locked && !ctl.is_cut_intended() {
                self.cutting = Some((random.below(size), 0, None));
                return self.go_on(&store, ctl, false, false);
            }
        }
        let some = 1 + random.below(24 * K);
        let (what, done) = match random.below(10) {
            0 | 1 if size > 0 => {
                let to = random.below(size);
                (format!("cut {size} to {to}"), self.truncate(&store, ctl, to, None))
            }
            2 | 3 if size > 0 => {
                let (to, steps, most) = (random.below(size), 1 + random.below(5) as usize, random.below(4) as usize);
                (format!("cut {size} to {to}, killed after step {steps}, {most} objects"), self.truncate(&store, ctl, to, Some((steps, most))))
            }
            4 if size < 140 * K => (format!("append {size}+{some}"), self.extend(&store, ctl, size, some, false, false)),
            5 if size < 120 * K => {
                let at = size + random.below(40 * K);
                (format!("write behind a gap {at}+{some}"), self.extend(&store, ctl, at, some, false, false))
            }
            6 if size < 140 * K => {
                let at = size.saturating_sub(random.below(8 * K)) + random.below(24 * K);
                (format!("write {at}+{some}, killed"), self.extend(&store, ctl, at, some, false, true))
            }
            7 if size < 140 * K => (format!("truncate up to {}", size + some), self.truncate(&store, ctl, size + some, None)),
            8 if size > 0 => {
                let at = random.below(size);
                let len = some.min(size - at);
                (format!("overwrite {at}+{len}"), self.extend(&store, ctl, at, len, false, false))
            }
            9 => ("fsync".to_string(), self.fsync(&store, ctl)),
            _ => return,
        };
        let state = MoveState::of(ctl.word());
        self.note(format!("{what}: {done} ({state:?}, size {})", ctl.size()));
    }
}
