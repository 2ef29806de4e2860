//! Where the processes of a file wait for each other: in a communicator of its own, for the program may free the one that it has opened the file with, and uses
//! that for its own messages.

use super::library::{Handle, Library};

impl Library {
    /// Whether processes can wait for each other; the same in all of them.
    pub fn can_meet(&self) -> bool {
        self.file_get_group.is_some() && self.comm_create_group.is_some() && self.barrier.is_some() && self.comm_free.is_some()
    }

    /// A communicator of the processes that have a file open, which all of them make at once; none: MPI does not make one. `tag` tells files apart that threads
    /// have open.
    pub fn meeting_place(&self, file: Handle, tag: u16) -> Option<Handle> {
        let (get_group, create) = (self.file_get_group?, self.comm_create_group?);
        let (mut group, mut made): (Handle, Handle) = (0, 0);
        // SAFETY: MPI's prototypes; the file is open, and its processes are of this world.
        unsafe {
            if get_group(file, &raw mut group) != 0 {
                return None;
            }
            // Every MPI has tags up to 32767.
            let result = create(self.world, group, i32::from(tag & 0x7fff), &raw mut made);
            (self.group_free)(&raw mut group);
            (result == 0).then_some(made)
        }
    }

    /// Waits until all processes have come.
    pub fn meet(&self, place: Handle) {
        if let Some(barrier) = self.barrier {
            // SAFETY: MPI's prototype, and a communicator of ours.
            unsafe { barrier(place) };
        }
    }

    /// Frees it, when all of them do.
    pub fn leave_meeting_place(&self, mut place: Handle) {
        if let Some(free) = self.comm_free {
            // SAFETY: as above.
            unsafe { free(&raw mut place) };
        }
    }

    /// Whether a handle of the program's is a datatype, as far as can be told without a call.
    pub fn is_type(&self, datatype: Handle) -> bool {
        ![0, self.of(self.type_null)].contains(&self.of(datatype))
    }
}
