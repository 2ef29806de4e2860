//! A target with a hook before each operation, as the medium has one.

use std::sync::Arc;

use rustix::io::Errno;
use stripewise_target::any::{Any, AnyObject};
use stripewise_target::interface::{Facts, Object, Opening, Ready, Target};
use stripewise_target::names::ObjectName;
use stripewise_target::op::{Direction, Op};
use stripewise_target::within::Refusal;

use crate::interleaved::medium::Shared;

/// A target of which a hook sees each operation.
pub struct HookedTarget {
    pub inner: Any,
    pub st: Arc<Shared>,
    /// The directory's own name.
    pub name: String,
}

/// An object on it.
pub struct HookedObject {
    inner: AnyObject,
    st: Arc<Shared>,
    name: String,
}

impl Shared {
    fn errno_at(&self, what: &str) -> Result<(), Errno> {
        self.at(what).map_err(|_| Errno::IO)
    }
}

impl HookedTarget {
    fn path(&self, name: ObjectName) -> String {
        format!("{}/{}", self.name, String::from_utf8_lossy(name.text().as_bytes()))
    }

    fn hooked(&self, name: ObjectName, inner: AnyObject) -> HookedObject {
        HookedObject { inner, st: self.st.clone(), name: self.path(name) }
    }
}

impl Target for HookedTarget {
    type Object = HookedObject;

    fn create(&self, name: ObjectName, mode: u32, ready: Option<Ready<'_>>) -> Result<HookedObject, Errno> {
        self.st.errno_at(&format!("make {}", self.path(name)))?;
        let made = self.inner.create(name, mode, ready)?;
        Ok(self.hooked(name, made))
    }

    fn open(&self, name: ObjectName, opening: Opening<'_>) -> Result<HookedObject, Refusal> {
        self.st.errno_at(&format!("open {} {}", self.path(name), if opening.writes { "both ways" } else { "to read" }))?;
        Ok(self.hooked(name, self.inner.open(name, opening)?))
    }

    fn remove(&self, name: ObjectName, owners: &[u32]) -> Result<(), Refusal> {
        self.st.errno_at(&format!("unlink {}", self.path(name)))?;
        self.inner.remove(name, owners)
    }

    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno> {
        self.st.errno_at(&format!("stat {}", self.path(name)))?;
        self.inner.look(name)
    }

    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
        self.inner.list(each)
    }

    fn used_bytes(&self) -> Result<u64, Errno> {
        self.inner.used_bytes()
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        self.inner.free_bytes()
    }

    fn sync(&self) -> Result<(), Errno> {
        self.inner.sync()
    }

    fn identity(&self, owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
        self.inner.identity(owners, into)
    }

    fn identify(&self, text: &[u8]) -> Result<(), Errno> {
        self.inner.identify(text)
    }
}

impl HookedObject {
    fn at_op(&self, op: &Op<'_>) -> Result<(), Errno> {
        match op.direction() {
            Direction::Read => self.st.errno_at(&format!("read {} {}", self.name, op.offset())),
            Direction::Write => self.st.errno_at(&format!("write {} {}+{}", self.name, op.offset(), op.len())),
        }
    }
}

/// Operations of a batch are done one by one, in order, where they are finished: the programs act between any two.
impl Object for HookedObject {
    fn start(&self, _op: &mut Op<'_>, _is_one_of_many: bool) {}

    fn finish(&self, op: &mut Op<'_>) {
        match self.at_op(op) {
            Err(errno) => op.outcome.error = Some(errno),
            Ok(()) => {
                self.inner.start(op, false);
                self.inner.finish(op);
            }
        }
    }

    fn punch(&self, at: u64, len: u64) -> Result<(), Errno> {
        self.st.errno_at(&format!("punch {} {at}+{len}", self.name))?;
        self.inner.punch(at, len)
    }

    fn set_len(&self, len: u64) -> Result<(), Errno> {
        self.st.errno_at(&format!("set_len {} {len}", self.name))?;
        self.inner.set_len(len)
    }

    fn len(&self) -> Result<u64, Errno> {
        self.inner.len()
    }

    fn next_data(&self, at: u64) -> Result<Option<(u64, u64)>, Errno> {
        self.inner.next_data(at)
    }

    fn sync(&self) -> Result<(), Errno> {
        self.inner.sync()
    }
}
