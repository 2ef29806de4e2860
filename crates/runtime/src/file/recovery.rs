//! The size of a file after a power cut, or when its control words were lost: the largest of head's and what the objects hold.

use super::File;
use crate::base::log;
use crate::base::sys::{Errno, Sys};
use crate::io::size::FLAG_DURABLE;
use core::sync::atomic::Ordering;
use stripewise_layout::MovePhase;
use stripewise_store::ctl::{Ctl, FLAG_TRUNCATING};
use stripewise_store::moving::{MoveState, Words};

impl File {
    /// After a power cut (or a lost ctl): the size is the larger of head's and what the objects hold.
    pub(super) fn recover_ctl(&'static self, ctl: &Ctl, is_new: bool) -> Sys<()> {
        if !self.may_write() {
            return self.trust_ctl(ctl);
        }
        let boot = self.store()?.boot_id();
        self.exclusively(|| {
            if ctl.is_valid() && ctl.boot_is(boot) {
                return Ok(());
            }
            let size = if is_new { 0 } else { self.size_on_disk()? };
            ctl.reset_move();
            let view = self.current()?.view;
            // What a move was copying may lie behind the size.
            ctl.header().flags.store(if view.phase() == MovePhase::None { 0 } else { FLAG_TRUNCATING }, Ordering::Release);
            ctl.initialise(boot, size, view.generation());
            Ok(())
        })
    }

    /// The size that head and the objects tell of.
    fn size_on_disk(&'static self) -> Sys<u64> {
        let mut size = self.at()?.head_stat()?.st_size as u64;
        let loaded = self.current()?;
        let mut lacks_some = false;
        for (target, plane) in loaded.objects() {
            match self.object_facts(target, plane)? {
                // What a move copies may have been cut off just then.
                Some(_) if loaded.view.holds_copies(target, plane) => {}
                Some(facts) => size = size.max(loaded.view.logical_end(target, plane, facts.len)),
                None => lacks_some = true,
            }
        }
        if lacks_some {
            for (target, plane) in loaded.objects().filter(|(target, plane)| loaded.first_byte(*target, *plane) < size) {
                if self.object_facts(target, plane)?.is_none() {
                    self.check_reached(loaded, (target, plane), size)?;
                }
            }
        }
        Ok(size)
    }

    /// After a boot, for one who may only read: ctl is as good as new when it says what head and objects say, and nothing was under way.
    #[inline(never)] // Its buffers would lie on the stack below the recovery of a file.
    fn trust_ctl(&'static self, ctl: &Ctl) -> Sys<()> {
        let quiet = MoveState::of(ctl.word()) == MoveState::Idle && ctl.header().flags.load(Ordering::Acquire) & !FLAG_DURABLE == 0;
        if ctl.is_valid() && quiet && ctl.size() == self.size_on_disk()? {
            return Ok(());
        }
        log::say(
            b"after an unclean stop a file is first opened by one who may write it; let its owner open it, or run stripewise store fsck",
            self.part(b"ctl")?.as_bytes(),
        );
        Err(Errno(libc::EACCES))
    }
}
