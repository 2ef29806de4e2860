//! Views and hints that the program gives an open file. Until MPI has set a view the one before is in force, here as there: MPI may refuse it, of all
//! processes or of one alone, which tries again while the others wait for it.

use super::super::board::{GIVEN, has_gaps};
use super::super::library::{Handle, Library};
use super::{Seat, is_overridden, sieving};
use core::sync::atomic::Ordering::*;
use stripewise_engine::shared::views::{Agreed, Shown};

impl Seat {
    /// Before a view is set: tells the others whether it leaves gaps, where that matters to them. Of one that is set again after MPI has refused it all
    /// processes know nothing, if it is another one now.
    pub(in super::super) fn viewing(&self, library: &Library, filetype: Handle, info: Handle) {
        let Some(post) = self.post() else { return };
        let number = self.views.fetch_add(1, Relaxed) + 1;
        let has_gaps = library.is_type(filetype).then(|| has_gaps(library, filetype)).flatten();
        let unsieved = self.sieving.viewing(library, post, filetype, has_gaps == Some(true));
        let shown = has_gaps.map(|has_gaps| if has_gaps { Shown::Gaps { unsieved } } else { Shown::Whole });
        let shown = shown.map(|shown| (shown, sieving::hinted(library, info, is_overridden())));
        // SAFETY: of the thread that sets the view.
        let showed = unsafe { &mut *self.showed.get() };
        if number == self.counted.load(Relaxed) {
            if shown != *showed {
                post.views.give_up(number);
                *showed = None;
            }
            return;
        }
        *showed = shown.filter(|(shown, hinted)| post.views.arrive(number, *shown, *hinted, post.size()));
        self.counted.store(number, Relaxed);
    }

    /// After that; one that MPI has refused may be set again.
    pub fn viewed(&self, library: &Library, types: Option<(Handle, Handle)>) {
        let Some((etype, filetype)) = types else {
            self.views.fetch_sub(1, Relaxed);
            return;
        };
        let mut etype_bytes = 0;
        // SAFETY: MPI's prototype; the call has taken the type for valid.
        unsafe { (library.type_size_x)(etype, &raw mut etype_bytes) };
        self.etype_bytes.store(u64::try_from(etype_bytes).unwrap_or(0), Relaxed);
        self.has_gaps.store(u32::from(has_gaps(library, filetype) != Some(false)), Relaxed);
        self.end.store(-1, Relaxed);
        // SAFETY: of the thread that sets the view.
        let is_counted = unsafe { *self.showed.get() }.is_some();
        let counted = self.post().filter(|_| is_counted);
        let agreed = counted.map_or(Agreed::UNKNOWN, |post| post.views.agreed(self.views.load(Relaxed), post.size()));
        self.are_alike.store(u32::from(agreed.are_alike), Relaxed);
        self.sieving.viewed(agreed);
    }

    /// The program has given hints without a view.
    pub fn informed_alone(&self, library: &Library, info: Handle) {
        self.informed(library, info);
        self.sieving.informed(sieving::hinted(library, info, is_overridden()));
    }

    /// The program has given hints, with a view maybe.
    pub fn informed(&self, library: &Library, info: Handle) {
        let lanes: u32 = GIVEN.iter().filter(|(key, _)| library.value_length(info, key).is_some()).map(|(_, lane)| lane).sum();
        if let Some(post) = self.post().filter(|_| lanes != 0 && !is_overridden()) {
            post.give(lanes);
        }
    }
}
