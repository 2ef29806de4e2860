//! The objects of an open file. They are opened at first use, as widely as the user's rights go. An object is made when the file first reaches its first byte,
//! before the size says so: from then on one that is missing is lost, and an error, never a hole. Where others than the store's owner may write the file, who
//! could not make it, or could put something in its place, all are made with the file, or with the change of rights that lets them
//! (`stripewise_store::rights::may_lack_objects`).

use super::rights::replace;
use super::{File, Loaded, held, object_place};
use crate::access;
use crate::fds;
use crate::gate;
use crate::log;
use crate::part;
use crate::size::FLAG_DURABLE;
use crate::store::Store;
use crate::sys::{self, Errno, Sys};
use core::sync::atomic::Ordering;
use stripewise_layout::MAX_LOGICAL;
use stripewise_store::rights::{OWNER_LOOK_NS, OWNER_LOOKS, Part, may_lack_objects};
use stripewise_target::devices::{now_ns, sleep_until};
use stripewise_target::names::{object_name, object_path};
use stripewise_target::text::StorePath;
use stripewise_target::within::{Os, Refusal};

/// Opens something both ways, or as far as the user's rights go; says whether both ways.
fn open_widest(open: impl Fn(i32) -> Result<i32, Refusal>) -> Result<(i32, bool), Refusal> {
    // Nobody reads an object's access time, so reads need not keep it; only the owner may ask for that.
    let both = match open(libc::O_RDWR | libc::O_NOATIME) {
        Err(Refusal::Os(Os::PERM)) => open(libc::O_RDWR),
        result => result,
    };
    match both {
        Ok(fd) => Ok((fd, true)),
        Err(Refusal::Os(Os::ACCESS | Os::ROFS)) => match open(libc::O_RDONLY) {
            Err(Refusal::Os(Os::ACCESS)) => open(libc::O_WRONLY),
            result => result,
        }
        .map(|fd| (fd, false)),
        Err(refusal) => Err(refusal),
    }
}

fn os(Errno(number): Errno) -> Refusal {
    Refusal::Os(Os::from_raw_os_error(number))
}

impl File {
    /// The descriptor of its object of a plane on a target, opened at first use. A missing object is an error, never a hole.
    #[inline]
    pub fn object(&'static self, target: u32, plane: u32) -> Sys<i32> {
        match self.objects.get(object_place(target, plane)).and_then(held) {
            Some(fd) => Ok(fd),
            None => self.open_object(target, plane).map_err(|refusal| self.missing(refusal, target, plane)),
        }
    }

    /// The same for those that go over all objects of a layout: `None` where there is none because the file has never reached it.
    pub fn object_if_made(&'static self, loaded: &Loaded, target: u32, plane: u32) -> Sys<Option<i32>> {
        if let Some(fd) = self.objects.get(object_place(target, plane)).and_then(held) {
            return Ok(Some(fd));
        }
        // Before the look: the file may be growing.
        let is_reached = loaded.first_byte(target, plane) < self.size()?;
        match self.open_object(target, plane) {
            Err(Refusal::Os(Os::NOENT)) if !is_reached => Ok(None),
            opened => opened.map(Some).map_err(|refusal| self.missing(refusal, target, plane)),
        }
    }

    /// Opens an object, which belongs to head's owner.
    fn widest_object(&self, target: u32, plane: u32) -> Result<(i32, bool), Refusal> {
        let (at, mut looks) = (self.at().map_err(os)?, OWNER_LOOKS);
        loop {
            let owner = at.head_stat().map_err(os)?.st_uid;
            match open_widest(|flags| part::open_object(at.store, at.id, (target, plane), flags, owner)) {
                // A change of the owner, of head first and then of the objects, may be under way.
                Err(Refusal::Owner) if looks > 0 => {
                    looks -= 1;
                    sleep_until(now_ns() + OWNER_LOOK_NS);
                }
                opened => return opened,
            }
        }
    }

    #[cold]
    fn open_object(&'static self, target: u32, plane: u32) -> Result<i32, Refusal> {
        let _held = self.lock.lock();
        if let Some(fd) = self.objects.get(object_place(target, plane)).and_then(held) {
            return Ok(fd);
        }
        let (fd, both) = self.widest_object(target, plane)?;
        self.keep_object(target, plane, fd, both).map_err(os)
    }

    /// Keeps a descriptor of an object, under the file's lock.
    fn keep_object(&'static self, target: u32, plane: u32, fd: i32, both: bool) -> Sys<i32> {
        let holder = self.objects.get(object_place(target, plane)).ok_or(Errno(libc::EIO))?;
        // A signal handler below which it was being opened has done so.
        if let Some(there) = held(holder) {
            sys::close(fd);
            return Ok(there);
        }
        if !both {
            self.narrow.store(true, Ordering::Release);
        }
        if crate::process::in_vfork_child() {
            // Its parent must not take this number for its own: the descriptor serves once, and ends with the child's exec.
            return Ok(fd);
        }
        fds::make_internal(fd, holder, true)
    }

    /// Replaces descriptors that do not go as far as this process's rights by now; true where all do.
    pub(super) fn widen_objects(&'static self) -> bool {
        let mut is_wide = true;
        for (place, holder) in self.objects.iter().enumerate().filter(|(_, holder)| held(holder).is_some()) {
            match self.widest_object((place / 2) as u32, (place % 2) as u32) {
                Ok((fd, true)) => replace(holder, fd),
                Ok((fd, false)) => {
                    is_wide = false;
                    sys::close(fd);
                }
                Err(_) => is_wide = false,
            }
        }
        is_wide
    }

    /// stat of an object, which needs no right to its bytes; `None` where there is none.
    #[inline(never)] // Its buffers would lie on the stack below the recovery of a file.
    pub fn object_stat(&'static self, target: u32, plane: u32) -> Sys<Option<libc::stat>> {
        if let Some(fd) = self.objects.get(object_place(target, plane)).and_then(held) {
            return sys::fstat(fd).map(Some);
        }
        let at = self.at()?;
        // Whose it is matters to those who open it.
        part::stat_object(at.store, at.id, (target, plane)).map_err(|refusal| self.missing(refusal, target, plane))
    }

    /// An error where an object is missing that a file of `size` bytes has.
    pub fn check_reached(&self, loaded: &Loaded, (target, plane): (u32, u32), size: u64) -> Sys<()> {
        if loaded.first_byte(target, plane) < size { Err(self.missing(Refusal::Os(Os::NOENT), target, plane)) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)] // As above.
    fn missing(&self, refusal: Refusal, target: u32, plane: u32) -> Errno {
        let path = self.store().and_then(Store::view).ok().and_then(|view| view.target(target as usize)).map_or(&b""[..], |target| target.path);
        match refusal {
            Refusal::Os(Os::NOENT | Os::NOTDIR) => {
                let path: StorePath = object_path(path, self.id(), plane);
                log::say(b"an object is missing; is its target mounted? run stripewise store fsck", path.as_bytes());
                Errno(libc::EIO)
            }
            refusal => part::refused(path, [object_name(self.id(), plane).as_bytes(), b"", b""], refusal),
        }
    }

    /// Whether objects may be missing that the file does not reach, with these rights of head and the ACL that it has now.
    pub fn may_lack_objects(&self, owner: u32, mode: u32) -> Sys<bool> {
        Ok(self.may_lack_objects_by_mode(owner, mode)? && !access::has_acl(&self.at()?))
    }

    /// The same of one whose head has no ACL.
    pub fn may_lack_objects_by_mode(&self, owner: u32, mode: u32) -> Sys<bool> {
        let store = self.store()?;
        Ok(may_lack_objects(store.mode_of_files()?, store.owner(), owner, mode))
    }

    /// Before the file grows to `to` bytes, inside the epoch: makes the objects that it is going to reach.
    #[inline]
    pub fn make_objects(&'static self, loaded: &'static Loaded, to: u64) -> Sys<()> {
        if to <= loaded.made_to.load(Ordering::Acquire) { Ok(()) } else { self.make_reached(loaded, to) }
    }

    #[cold]
    #[inline(never)] // Its buffers would lie on the stack below the I/O that follows.
    fn make_reached(&'static self, loaded: &'static Loaded, to: u64) -> Sys<()> {
        let (size, mut next) = (self.size()?, MAX_LOGICAL);
        for (target, plane, first) in loaded.firsts() {
            if first >= to {
                next = next.min(first);
            } else if first >= size {
                self.make_object(target, plane)?;
            }
        }
        loaded.made_to.fetch_max(next, Ordering::AcqRel);
        Ok(())
    }

    /// Makes all objects that the file is to have, reached or not.
    pub fn make_all_objects(&'static self) -> Sys<()> {
        let passed = gate::for_read(self)?;
        self.make_objects(passed.loaded, MAX_LOGICAL)
    }

    /// Makes an object that the file has not reached, or opens it if another has made it.
    fn make_object(&'static self, target: u32, plane: u32) -> Sys<()> {
        let ctl = self.ctl().filter(|_| self.may_write()).ok_or(Errno(libc::EACCES))?;
        let _held = self.lock.lock();
        let place = self.objects.get(object_place(target, plane)).ok_or(Errno(libc::EIO))?;
        if held(place).is_none() {
            let (fd, both) = self.new_or_made_object(target, plane)?;
            self.keep_object(target, plane, fd, both)?;
        }
        // Also where another has made it: he may have died before he said so. Whoever makes the file durable asks for it.
        ctl.header().objects_made.fetch_add(1, Ordering::SeqCst);
        // What an older file has must not depend on whether a power cut leaves it this object.
        if now_ns() > self.new_until_ns.load(Ordering::Relaxed) || ctl.header().flags.load(Ordering::SeqCst) & FLAG_DURABLE != 0 {
            part::sync_dir(self.store()?.target_dir(target)?.fd())?;
        }
        Ok(())
    }

    fn new_or_made_object(&'static self, target: u32, plane: u32) -> Sys<(i32, bool)> {
        for look in 0..OWNER_LOOKS {
            if look == 0 && self.is_private()? {
                match self.new_private_object(target, plane) {
                    Err(Errno(libc::EEXIST)) => {}
                    made => return Ok((made?, true)),
                }
            }
            // One that is there is opened by who could not make it, too.
            match self.widest_object(target, plane) {
                Err(Refusal::Os(Os::NOENT)) => {}
                opened => return opened.map_err(|refusal| self.missing(refusal, target, plane)),
            }
            match self.new_object(target, plane) {
                Err(Errno(libc::EEXIST)) => {}
                made => return Ok((made?, true)),
            }
        }
        Err(Errno(libc::EIO))
    }

    /// Whether nobody but its owner, who this is, reaches its objects.
    fn is_private(&self) -> Sys<bool> {
        Ok(!self.store()?.is_common() && self.owner.load(Ordering::Relaxed) == self.user.load(Ordering::Relaxed))
    }

    /// Makes an object that nobody else would use before it is as it has to be.
    fn new_private_object(&'static self, target: u32, plane: u32) -> Sys<i32> {
        let at = self.at()?;
        let head = at.head_stat()?;
        let mode = Part::Object.mode(head.st_mode);
        let fd = part::create_object(at.store, at.id, (target, plane), mode).inspect_err(|errno| self.say_not_made(*errno, target))?;
        let followed = sys::fstat(fd).and_then(|made| {
            // The group of a set-group-id directory.
            if (made.st_uid, made.st_gid) != (head.st_uid, head.st_gid) {
                sys::chownat(fd, c"", head.st_uid, head.st_gid, libc::AT_EMPTY_PATH)?;
            }
            // The umask may have taken from it.
            if made.st_mode & 0o7777 != mode {
                sys::fchmod(fd, mode)?;
            }
            if access::has_acl(&at) { access::give_heads(&at, (target, plane)) } else { Ok(()) }
        });
        followed.map(|()| fd).inspect_err(|_| {
            sys::close(fd);
            let _ = part::remove_object(at.store, at.id, (target, plane), self.user.load(Ordering::Relaxed));
        })
    }

    #[cold]
    #[inline(never)] // As above.
    fn say_not_made(&self, errno: Errno, target: u32) {
        if errno != Errno(libc::EEXIST) {
            let path = self.store().and_then(Store::view).ok().and_then(|view| view.target(target as usize)).map_or(&b""[..], |target| target.path);
            log::say(b"an object could not be created on this target", path);
        }
    }

    /// Makes an object; it gets its name once it is as it has to be, for whoever finds it uses it, and nothing takes it away again.
    fn new_object(&'static self, target: u32, plane: u32) -> Sys<i32> {
        let at = self.at()?;
        let head = at.head_stat()?;
        let mode = Part::Object.mode(head.st_mode);
        // Nobody knows of the file yet, and what its mode does not say of its rights its creation gives to all parts.
        let is_first = self.is_being_made.load(Ordering::Relaxed);
        let made = if is_first {
            part::create_object(at.store, at.id, (target, plane), mode)
        } else {
            part::create_ready_object(at.store, at.id, (target, plane), (head.st_uid, head.st_gid, mode))
        };
        let fd = made.inspect_err(|errno| self.say_not_made(*errno, target))?;
        if !is_first {
            let after = at.head_stat()?;
            let is_same = (after.st_mode, after.st_uid, after.st_gid) == (head.st_mode, head.st_uid, head.st_gid);
            // Whoever changes head's rights goes over the objects that are there: this one may have been missed.
            if !is_same || access::has_acl(&at) {
                let _ = access::give_heads(&at, (target, plane));
            }
        }
        Ok(fd)
    }
}
