//! The objects of an open file. They are opened at first use, as widely as the user's rights go. An object is made when the file first reaches its first byte,
//! before the size says so: from then on one that is missing is lost, and an error, never a hole. Where others than the store's owner may write the file, who
//! could not make it, or could put something in its place, all are made with the file, or with the change of rights that lets them
//! (`stripewise_store::rights::may_lack_objects`).

use super::rights::replace;
use super::{File, Loaded, held, object_place};
use crate::base::log;
use crate::base::sys::{self, Errno, Sys, of_target};
use crate::fds;
use crate::file::access;
use crate::gate;
use crate::io::size::FLAG_DURABLE;
use crate::store::part;
use crate::store::{Attached, OpenObject};
use core::sync::atomic::{AtomicI32, Ordering};
use std::os::fd::{AsRawFd, BorrowedFd};
use stripewise_layout::MAX_LOGICAL;
use stripewise_store::bin::StoreView;
use stripewise_store::rights::{OWNER_LOOK_NS, OWNER_LOOKS, Part, may_lack_objects};
use stripewise_target::any::{Any, AnyObject, Handle};
use stripewise_target::interface::{Facts, Object, Opening, Target};
use stripewise_target::kind::MAX_TARGETS;
use stripewise_target::names::{ObjectName, object_name, object_path};
use stripewise_target::text::StorePath;
use stripewise_target::time::{now_ns, sleep_until};
use stripewise_target::within::{Os, Refusal};

/// Mode of an object until it is as it has to be.
const NOBODY_ELSE: u32 = 0o600;

/// Opens an object both ways, or as far as the user's rights go; says whether both ways.
fn open_widest(target: &Any<BorrowedFd<'_>>, name: ObjectName, owner: u32) -> Result<(AnyObject, bool), Refusal> {
    let open = |(reads, writes), keeps_times| target.open(name, Opening { reads, writes, keeps_times, owners: &[owner] });
    // Nobody reads an object's access time, so reads need not keep it; only the owner may ask for that.
    let both = match open((true, true), true) {
        Err(Refusal::Os(Os::PERM)) => open((true, true), false),
        result => result,
    };
    match both {
        Ok(object) => Ok((object, true)),
        Err(Refusal::Os(Os::ACCESS | Os::ROFS)) => match open((true, false), false) {
            Err(Refusal::Os(Os::ACCESS)) => open((false, true), false),
            result => result,
        }
        .map(|object| (object, false)),
        Err(refusal) => Err(refusal),
    }
}

/// Closes an object that nobody keeps.
fn let_go(object: AnyObject) {
    if let Some(Handle::Descriptor(fd)) = object.into_handle() {
        sys::close(fd);
    }
}

fn os_of(Errno(number): Errno) -> Os {
    Os::from_raw_os_error(number)
}

fn os(errno: Errno) -> Refusal {
    Refusal::Os(os_of(errno))
}

impl File {
    /// Its object of a plane on a target, opened at first use. A missing object is an error, never a hole.
    #[inline]
    pub fn object(&'static self, target: u32, plane: u32) -> Sys<OpenObject> {
        match self.kept_object(target, plane)? {
            Some(object) => Ok(object),
            None => self.open_object(target, plane).map_err(|refusal| self.missing(refusal, target, plane)),
        }
    }

    /// The same if it is open already.
    #[inline]
    fn kept_object(&'static self, target: u32, plane: u32) -> Sys<Option<OpenObject>> {
        match self.objects.get(object_place(target, plane)).and_then(held) {
            Some(word) => self.object_of(target, plane, word).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn object_of(&'static self, target: u32, plane: u32, word: i32) -> Sys<OpenObject> {
        Ok(self.store()?.object(target, word, ObjectName::of_plane(self.id(), plane)))
    }

    /// The same for those that go over all objects of a layout: `None` where there is none because the file has never reached it.
    pub fn object_if_made(&'static self, loaded: &Loaded, target: u32, plane: u32) -> Sys<Option<OpenObject>> {
        if let Some(object) = self.kept_object(target, plane)? {
            return Ok(Some(object));
        }
        // Before the look: the file may be growing.
        let is_reached = loaded.first_byte(target, plane) < self.size()?;
        match self.open_object(target, plane) {
            Err(Refusal::Os(Os::NOENT)) if !is_reached => Ok(None),
            opened => opened.map(Some).map_err(|refusal| self.missing(refusal, target, plane)),
        }
    }

    /// Opens an object, which belongs to head's owner.
    fn widest_object(&self, target: u32, plane: u32) -> Result<(AnyObject, bool), Refusal> {
        let (at, mut looks) = (self.at().map_err(os)?, OWNER_LOOKS);
        let held = at.store.target(target).map_err(os)?;
        loop {
            let owner = at.head_stat().map_err(os)?.st_uid;
            match open_widest(&held.any(), ObjectName::of_plane(at.id, plane), owner) {
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
    fn open_object(&'static self, target: u32, plane: u32) -> Result<OpenObject, Refusal> {
        let _held = self.lock.lock();
        if let Some(object) = self.kept_object(target, plane).map_err(os)? {
            return Ok(object);
        }
        let (object, both) = self.widest_object(target, plane)?;
        self.keep_object(target, plane, object, both).map_err(os)
    }

    /// Keeps what an object is in a word, under the file's lock.
    fn keep_object(&'static self, target: u32, plane: u32, object: AnyObject, both: bool) -> Sys<OpenObject> {
        let holder = self.objects.get(object_place(target, plane)).ok_or(Errno(libc::EIO))?;
        // A signal handler below which it was being opened has done so.
        if let Some(there) = held(holder) {
            let_go(object);
            return self.object_of(target, plane, there);
        }
        if !both {
            self.narrow.store(true, Ordering::Release);
        }
        let word = match object.into_handle().ok_or(Errno(libc::EIO))? {
            // Its parent must not take this number for its own: the descriptor serves once, and ends with the child's exec.
            Handle::Descriptor(fd) if crate::base::process::in_vfork_child() => fd,
            Handle::Descriptor(fd) => fds::make_internal(fd, holder, true)?,
            Handle::Number(number) => {
                holder.store(number as i32 + 1, Ordering::Release);
                number as i32
            }
        };
        self.object_of(target, plane, word)
    }

    /// Objects that are open, and where their words are.
    fn kept_objects(&'static self) -> impl Iterator<Item = (u32, u32, &'static AtomicI32, OpenObject)> {
        let targets = self.store().and_then(Attached::view).map_or(MAX_TARGETS, StoreView::target_count);
        let all = self
            .objects
            .iter()
            .take(object_place(targets as u32, 0))
            .enumerate()
            .map(|(place, holder)| ((place / 2) as u32, (place % 2) as u32, holder));
        all.filter_map(|(target, plane, holder)| Some((target, plane, holder, self.object_of(target, plane, held(holder)?).ok()?)))
    }

    /// Lets go of all objects.
    pub(super) fn drop_objects(&'static self) {
        self.kept_objects().for_each(|(_, _, holder, object)| drop_object(holder, &object));
    }

    /// Lets go of objects that a mover has removed: a later move may have made new ones of the same names. Nobody is inside an I/O on them, because the mover
    /// waited for that before it removed them.
    pub(super) fn drop_removed_objects(&'static self) {
        for (_, _, holder, object) in self.kept_objects() {
            // Of one without a descriptor nobody knows: it is opened again.
            if object.descriptor().is_none_or(|fd| sys::fstat(fd.as_raw_fd()).is_ok_and(|stat| stat.st_nlink == 0)) {
                drop_object(holder, &object);
            }
        }
    }

    /// Replaces descriptors that do not go as far as this process's rights by now; true where all do.
    pub(super) fn widen_objects(&'static self) -> bool {
        let mut is_wide = true;
        for (target, plane, holder, _) in self.kept_objects().filter(|(.., object)| object.descriptor().is_some()) {
            let wider = self.widest_object(target, plane).map(|(object, both)| (object.into_handle(), both));
            match wider {
                Ok((Some(Handle::Descriptor(fd)), true)) => replace(holder, fd),
                Ok((Some(Handle::Descriptor(fd)), false)) => {
                    is_wide = false;
                    sys::close(fd);
                }
                _ => is_wide = false,
            }
        }
        is_wide
    }

    /// What there is to say of an object without a right to its bytes; `None` where there is none.
    #[inline(never)] // Its buffers would lie on the stack below the recovery of a file.
    pub fn object_facts(&'static self, target: u32, plane: u32) -> Sys<Option<Facts>> {
        if let Some(fd) = self.kept_object(target, plane)?.as_ref().and_then(Object::descriptor) {
            let stat = sys::fstat(fd.as_raw_fd())?;
            return Ok(Some(Facts { len: stat.st_size as u64, used_bytes: stat.st_blocks as u64 * 512, ..Facts::default() }));
        }
        let at = self.at()?;
        // Whose it is matters to those who open it.
        part::object_facts(at.store, at.id, (target, plane)).map_err(|refusal| self.missing(refusal, target, plane))
    }

    /// An error where an object is missing that a file of `size` bytes has.
    pub fn check_reached(&self, loaded: &Loaded, (target, plane): (u32, u32), size: u64) -> Sys<()> {
        if loaded.first_byte(target, plane) < size { Err(self.missing(Refusal::Os(Os::NOENT), target, plane)) } else { Ok(()) }
    }

    #[cold]
    #[inline(never)] // As above.
    fn missing(&self, refusal: Refusal, target: u32, plane: u32) -> Errno {
        let path = self.store().and_then(Attached::view).ok().and_then(|view| view.target(target as usize)).map_or(&b""[..], |target| target.path);
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
            of_target(self.store()?.target(target)?.any().sync())?;
        }
        Ok(())
    }

    fn new_or_made_object(&'static self, target: u32, plane: u32) -> Sys<(AnyObject, bool)> {
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
    fn new_private_object(&'static self, target: u32, plane: u32) -> Sys<AnyObject> {
        let at = self.at()?;
        let head = at.head_stat()?;
        let (held, name) = (at.store.target(target)?, ObjectName::of_plane(at.id, plane));
        let made = held.any().create(name, Part::Object.mode(head.st_mode), None);
        let object = of_target(made).inspect_err(|errno| self.say_not_made(*errno, target))?;
        let followed = object.descriptor().map_or(Ok(()), |fd| {
            let made = sys::fstat(fd.as_raw_fd())?;
            // The group of a set-group-id directory.
            if (made.st_uid, made.st_gid) != (head.st_uid, head.st_gid) {
                sys::chownat(fd.as_raw_fd(), c"", head.st_uid, head.st_gid, libc::AT_EMPTY_PATH)?;
            }
            if access::has_acl(&at) { access::give_heads(&at, (target, plane)) } else { Ok(()) }
        });
        match followed {
            Ok(()) => Ok(object),
            Err(errno) => {
                let_go(object);
                let _ = held.any().remove(name, &[self.user.load(Ordering::Relaxed)]);
                Err(errno)
            }
        }
    }

    #[cold]
    #[inline(never)] // As above.
    fn say_not_made(&self, errno: Errno, target: u32) {
        if errno != Errno(libc::EEXIST) {
            let path =
                self.store().and_then(Attached::view).ok().and_then(|view| view.target(target as usize)).map_or(&b""[..], |target| target.path);
            let text: &[u8] = match errno.0 {
                libc::EACCES | libc::EPERM | libc::EROFS => {
                    b"this target cannot be written, so no object was created there ('stripewise doctor' says more)"
                }
                _ => b"an object could not be created on this target",
            };
            log::say(text, path);
        }
    }

    /// Makes an object; it gets its name once it is as it has to be, for whoever finds it uses it, and nothing takes it away again.
    fn new_object(&'static self, target: u32, plane: u32) -> Sys<AnyObject> {
        let at = self.at()?;
        let head = at.head_stat()?;
        let mode = Part::Object.mode(head.st_mode);
        // Nobody knows of the file yet, and what its mode does not say of its rights its creation gives to all parts.
        let is_first = self.is_being_made.load(Ordering::Relaxed);
        let (held, name) = (at.store.target(target)?, ObjectName::of_plane(at.id, plane));
        let made = if is_first {
            held.any().create(name, mode, None)
        } else {
            held.any().create(name, NOBODY_ELSE, Some(&mut |object| access::make_as(object, &head, mode).map_err(os_of)))
        };
        let object = of_target(made).inspect_err(|errno| self.say_not_made(*errno, target))?;
        if !is_first {
            let after = at.head_stat()?;
            let is_same = (after.st_mode, after.st_uid, after.st_gid) == (head.st_mode, head.st_uid, head.st_gid);
            // Whoever changes head's rights goes over the objects that are there: this one may have been missed.
            if !is_same || access::has_acl(&at) {
                let _ = access::give_heads(&at, (target, plane));
            }
        }
        Ok(object)
    }
}

fn drop_object(holder: &'static AtomicI32, object: &OpenObject) {
    match object.descriptor() {
        Some(_) => fds::close_internal(holder),
        None => holder.store(0, Ordering::Release),
    }
}
