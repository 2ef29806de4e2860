//! The client's side: a target, and its objects. An operation begins by handing its first bytes to the server, and goes on with the rest where it is finished.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;

use super::segment::{ASKED, Call, DONE, FREE, SEGMENT_BYTES, SLOTS, Segment, TAKEN, WINDOW_BYTES, set_state, sleep_while, wake};
use super::server::{NAME_BYTES, name_of, words_of};
use crate::interface::{Facts, Object, Opening, Ready, Target};
use crate::names::ObjectName;
use crate::op::{Direction, OFFSET_MAX, Op};
use crate::within::Refusal;

/// The slot of those who find no other free: one at a time, so that nobody waits for a slot that somebody holds who waits.
const LAST: usize = SLOTS - 1;
/// How long an answer is waited for, ms.
const PATIENCE_MS: u64 = 20_000;
const ROOM_BYTES: u64 = 1 << 40;

struct Link {
    segment: Segment,
    last: AtomicBool,
}

/// A target that another process serves.
pub struct Remote {
    link: Arc<Link>,
    server: Mutex<Child>,
}

/// An object that it has.
pub struct RemoteObject {
    link: Arc<Link>,
    number: u64,
}

impl Remote {
    /// Starts a server of its own: this program of tests anew, of which the test `server` calls [`super::serve`].
    #[must_use]
    pub fn start(server: &str) -> Self {
        let file = File::from(memfd_create(c"objects", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&file, SEGMENT_BYTES as u64).unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let server = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", server, "--test-threads", "1"])
            .env("STRIPEWISE_TEST_SEGMENT", path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { link: Arc::new(Link { segment: Segment::map(file), last: AtomicBool::new(false) }), server: Mutex::new(server) }
    }

    /// Requests that were served before an earlier one.
    #[must_use]
    pub fn overtakings(&self) -> u32 {
        self.link.segment.header().overtakings.load(Ordering::SeqCst)
    }

    fn object(&self, number: u64) -> RemoteObject {
        RemoteObject { link: Arc::clone(&self.link), number }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let mut server = self.server.lock().unwrap();
        let _ = server.kill();
        let _ = server.wait();
    }
}

impl Link {
    /// A free slot, if there is one.
    fn try_take(&self) -> Option<usize> {
        let is_taken = |slot: &usize| self.segment.slot(*slot).state.compare_exchange(FREE, TAKEN, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        (0..LAST).find(is_taken)
    }

    fn take(&self) -> usize {
        self.try_take().unwrap_or_else(|| {
            while self.last.swap(true, Ordering::SeqCst) {
                std::thread::yield_now();
            }
            self.segment.slot(LAST).state.store(TAKEN, Ordering::SeqCst);
            LAST
        })
    }

    fn give_back(&self, slot: usize) {
        self.segment.slot(slot).state.store(FREE, Ordering::SeqCst);
        if slot == LAST {
            self.last.store(false, Ordering::SeqCst);
        }
    }

    fn ask(&self, slot: usize, call: Call, arguments: [u64; 3]) {
        let shared = self.segment.slot(slot);
        shared.call.store(call as u32, Ordering::SeqCst);
        for (word, value) in shared.arguments.iter().zip(arguments) {
            word.store(value, Ordering::SeqCst);
        }
        let header = self.segment.header();
        shared.turn.store(header.asked.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        set_state(shared, ASKED);
        header.doorbell.fetch_add(1, Ordering::SeqCst);
        wake(&header.doorbell);
    }

    fn answer(&self, slot: usize) -> Result<[u64; 3], Errno> {
        let shared = self.segment.slot(slot);
        while shared.state.load(Ordering::SeqCst) != DONE {
            if !sleep_while(&shared.state, ASKED, PATIENCE_MS) {
                return Err(Errno::TIMEDOUT);
            }
        }
        match shared.error.load(Ordering::SeqCst) {
            0 => Ok(shared.results.each_ref().map(|word| word.load(Ordering::SeqCst))),
            error => Err(Errno::from_raw_os_error(error as i32)),
        }
    }

    /// Asks and waits; `with` sees the slot's window before, or after.
    fn call<R>(&self, call: Call, arguments: [u64; 3], send: &[u8], then: impl FnOnce(&Segment, usize, [u64; 3]) -> R) -> Result<R, Errno> {
        let slot = self.take();
        self.segment.put(slot, send);
        self.ask(slot, call, arguments);
        let answered = self.answer(slot).map(|results| then(&self.segment, slot, results));
        self.give_back(slot);
        answered
    }

    fn simple(&self, call: Call, arguments: [u64; 3]) -> Result<[u64; 3], Errno> {
        self.call(call, arguments, &[], |_, _, results| results)
    }
}

impl Target for Remote {
    type Object = RemoteObject;

    fn create(&self, name: ObjectName, _mode: u32, ready: Option<Ready<'_>>) -> Result<RemoteObject, Errno> {
        let (file, role) = words_of(name);
        let object = self.object(self.link.simple(Call::Make, [0; 3])?[0]);
        ready.map_or(Ok(()), |ready| ready(&object))?;
        self.link.simple(Call::Name, [object.number, file, role])?;
        Ok(object)
    }

    fn open(&self, name: ObjectName, _opening: Opening<'_>) -> Result<RemoteObject, Refusal> {
        let (file, role) = words_of(name);
        Ok(self.object(self.link.simple(Call::Open, [file, role, 0])?[0]))
    }

    fn remove(&self, name: ObjectName, _owners: &[u32]) -> Result<(), Refusal> {
        let (file, role) = words_of(name);
        Ok(self.link.simple(Call::Remove, [file, role, 0]).map(drop)?)
    }

    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno> {
        let (file, role) = words_of(name);
        match self.link.simple(Call::Look, [file, role, 0]) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(|[len, used_bytes, changed]| {
                let changed_ns = changed as i64;
                Some(Facts { len, used_bytes, modified_ns: changed_ns, changed_ns })
            }),
        }
    }

    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
        let mut after: Option<ObjectName> = None;
        loop {
            let (file, role) = after.map_or((0, 0), words_of);
            let names = self.link.call(Call::List, [file, role, u64::from(after.is_some())], &[], |segment, slot, [count, ..]| {
                let mut bytes = vec![0; count as usize * NAME_BYTES];
                segment.get(slot, &mut bytes);
                let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
                bytes.chunks(NAME_BYTES).map(|name| name_of(word(&name[..8]), word(&name[8..]))).collect::<Vec<_>>()
            })?;
            let Some(last) = names.last() else { return Ok(()) };
            after = Some(*last);
            names.into_iter().try_for_each(&mut *each)?;
        }
    }

    fn used_bytes(&self) -> Result<u64, Errno> {
        self.link.simple(Call::Used, [0; 3]).map(|[used, ..]| used)
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        Ok(ROOM_BYTES.saturating_sub(self.used_bytes()?))
    }

    fn sync(&self) -> Result<(), Errno> {
        self.link.simple(Call::SyncNames, [0; 3]).map(drop)
    }

    fn identity(&self, _owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
        Ok(self.link.call(Call::Identity, [0; 3], &[], |segment, slot, [len, ..]| {
            let len = into.len().min(len as usize);
            segment.get(slot, &mut into[..len]);
            len
        })?)
    }

    fn identify(&self, text: &[u8]) -> Result<(), Errno> {
        self.link.call(Call::Identify, [text.len() as u64, 0, 0], text, |_, _, _| ())
    }
}

impl RemoteObject {
    /// Hands the next bytes of an operation to the server.
    fn send(&self, op: &Op<'_>, slot: usize) -> Result<(), Errno> {
        let (at, len) = (op.offset() + op.outcome.done, (op.len() - op.outcome.done).min(WINDOW_BYTES as u64));
        if op.direction() == Direction::Write {
            let mut place = Segment::window_at(slot);
            for part in op.stretches(op.outcome.done, len) {
                // SAFETY: only the kernel looks behind it, and says what is no good address.
                let bytes = unsafe { core::slice::from_raw_parts(part.base, part.len) };
                place += rustix::io::pwrite(self.link.segment.file().as_fd(), bytes, place)? as u64;
            }
        }
        let call = if op.direction() == Direction::Write { Call::Write } else { Call::Read };
        self.link.ask(slot, call, [self.number, at, len]);
        Ok(())
    }

    /// Takes what became of them; true where there may be more.
    fn receive(&self, op: &mut Op<'_>, slot: usize) -> Result<bool, Errno> {
        let asked = (op.len() - op.outcome.done).min(WINDOW_BYTES as u64);
        let [got, ..] = self.link.answer(slot)?;
        if op.direction() == Direction::Read {
            let mut place = Segment::window_at(slot);
            for part in op.stretches(op.outcome.done, got) {
                // SAFETY: as above; a read's memory is its own.
                let into = unsafe { core::slice::from_raw_parts_mut(part.base, part.len) };
                place += rustix::io::pread(self.link.segment.file().as_fd(), into, place)? as u64;
            }
        }
        op.outcome.done += got;
        Ok(got == asked && op.outcome.done < op.len())
    }
}

/// A ticket is the slot's number, counted from 1.
impl Object for RemoteObject {
    fn start(&self, op: &mut Op<'_>, _is_one_of_many: bool) {
        op.ticket = 0;
        let Some(slot) = self.link.try_take() else { return };
        match self.send(op, slot) {
            Ok(()) => op.ticket = slot as u64 + 1,
            Err(errno) => {
                self.link.give_back(slot);
                op.outcome.error = Some(errno);
            }
        }
    }

    fn finish(&self, op: &mut Op<'_>) {
        if op.outcome.error.is_some() {
            return;
        }
        let mut is_sent = op.ticket != 0;
        let slot = if is_sent { op.ticket as usize - 1 } else { self.link.take() };
        loop {
            let sent = if is_sent { Ok(()) } else { self.send(op, slot) };
            match sent.and_then(|()| self.receive(op, slot)) {
                Ok(true) => is_sent = false,
                Ok(false) => break,
                Err(errno) => {
                    op.outcome.error = Some(errno);
                    break;
                }
            }
        }
        self.link.give_back(slot);
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        at.checked_add(len).filter(|end| *end <= OFFSET_MAX).ok_or(Errno::INVAL)?;
        self.link.simple(Call::Punch, [self.number, at, len]).map(drop)
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        self.link.simple(Call::SetLen, [self.number, len, 0]).map(drop)
    }

    fn len(&self) -> Result<u64, Errno> {
        self.link.simple(Call::Len, [self.number, 0, 0]).map(|[len, ..]| len)
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        self.link.simple(Call::NextData, [self.number, at, 0]).map(|[is_some, start, end]| (is_some == 1).then_some((start, end)))
    }

    fn sync(&self) -> Result<(), Errno> {
        self.link.simple(Call::Sync, [self.number, 0, 0]).map(drop)
    }
}
