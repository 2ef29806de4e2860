//! A link as a target.

use rustix::io::Errno;

use super::link::{Link, NAME_BYTES, NAMES_MAX, name_of, words_of};
use super::segment::Call;
use super::served::Served;
use crate::interface::{Facts, Opening, Ready, Target};
use crate::names::ObjectName;
use crate::within::Refusal;

/// Bytes that it could take.
const ROOM_BYTES: u64 = 1 << 40;

impl Target for Link {
    type Object = Served;

    fn create(&self, name: ObjectName, _mode: u32, ready: Option<Ready<'_>>) -> Result<Served, Errno> {
        let (file, role) = words_of(name);
        let object = Served::new(*self, self.simple(Call::Make, [0; 3])?[0] as u32);
        ready.map_or(Ok(()), |ready| ready(&object))?;
        self.simple(Call::Name, [u64::from(object.number()), file, role])?;
        Ok(object)
    }

    fn open(&self, name: ObjectName, _opening: Opening<'_>) -> Result<Served, Refusal> {
        let (file, role) = words_of(name);
        Ok(Served::new(*self, self.simple(Call::Open, [file, role, 0])?[0] as u32))
    }

    fn remove(&self, name: ObjectName, _owners: &[u32]) -> Result<(), Refusal> {
        let (file, role) = words_of(name);
        Ok(self.simple(Call::Remove, [file, role, 0]).map(drop)?)
    }

    fn look(&self, name: ObjectName) -> Result<Option<Facts>, Errno> {
        let (file, role) = words_of(name);
        match self.simple(Call::Look, [file, role, 0]) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(|[len, used_bytes, changed]| {
                let changed_ns = changed as i64;
                Some(Facts { len, used_bytes, modified_ns: changed_ns, changed_ns, unfit: None })
            }),
        }
    }

    fn list(&self, each: &mut dyn FnMut(ObjectName) -> Result<(), Errno>) -> Result<(), Errno> {
        let mut after: Option<ObjectName> = None;
        loop {
            let (file, role) = after.map_or((0, 0), words_of);
            let mut room = [0; NAMES_MAX * NAME_BYTES];
            let bytes = self.call(Call::List, [file, role, u64::from(after.is_some())], &[], |slot, [count, ..]| {
                let bytes = room.get_mut(..count as usize * NAME_BYTES).ok_or(Errno::IO)?;
                self.segment().get(slot, bytes)?;
                Ok(bytes)
            })?;
            if bytes.is_empty() {
                return Ok(());
            }
            for name in bytes.chunks_exact(NAME_BYTES) {
                let word = |at: usize| name.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
                let name = name_of(word(0), word(8));
                after = Some(name);
                each(name)?;
            }
        }
    }

    fn used_bytes(&self) -> Result<u64, Errno> {
        self.simple(Call::Used, [0; 3]).map(|[used, ..]| used)
    }

    fn free_bytes(&self) -> Result<u64, Errno> {
        Ok(ROOM_BYTES.saturating_sub(self.used_bytes()?))
    }

    fn sync(&self) -> Result<(), Errno> {
        self.simple(Call::SyncNames, [0; 3]).map(drop)
    }

    fn identity(&self, _owners: &[u32], into: &mut [u8]) -> Result<usize, Refusal> {
        Ok(self.call(Call::Identity, [0; 3], &[], |slot, [len, ..]| {
            let len = into.len().min(len as usize);
            self.segment().get(slot, into.get_mut(..len).unwrap_or(&mut []))?;
            Ok(len)
        })?)
    }

    fn identify(&self, text: &[u8]) -> Result<(), Errno> {
        self.call(Call::Identify, [text.len() as u64, 0, 0], text, |_, _| Ok(()))
    }
}
