//! Rights on the parts of a file. Head has the file's owner, group, mode and ACL; what objects, ctl and directory have follows from them, and is the same
//! whoever made the part: a program, the mover, or a repair.

/// A part that follows head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Object,
    /// The control words.
    Ctl,
    /// The directory `files/<id>`.
    Dir,
}

/// How often, and how long after one another, a part is looked at again whose owner is not head's: a change of the owner, of head first and then of the
/// others, may be under way.
pub const OWNER_LOOKS: u32 = 50;
/// See [`OWNER_LOOKS`].
pub const OWNER_LOOK_NS: u64 = 1_000_000;

/// Whether objects may be missing that a file does not reach yet: where everybody who may write the file, its owner, can make them as they have to be, and
/// nobody else can put something in their place. `files` is the mode of the store's directory of that name.
#[must_use]
pub const fn may_lack_objects(files: u32, store_owner: u32, head_owner: u32, head: u32) -> bool {
    files & 0o022 == 0 && head & 0o022 == 0 && (head_owner == store_owner || head_owner == 0)
}

/// Tags of an ACL's entries: the owner, the mask of all but owner and others, and the others. They mirror the mode.
const OWNER: u16 = 0x01;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

impl Part {
    #[must_use]
    pub const fn mode(self, head: u32) -> u32 {
        match self {
            // The owner, who may give himself any right, always has these two: then only other users depend on objects being open before
            // rights change.
            Self::Object => head & 0o777 | 0o600,
            // Who may write the file may change its size; the size is no secret, stat shows it to everybody.
            Self::Ctl => head & 0o022 | 0o644,
            // Everybody goes through it; who may write the file may read it, and so take its lock.
            Self::Dir => (head & 0o022) << 1 | 0o711,
        }
    }

    /// Turns head's ACL, as the kernel passes it (a version, then entries of tag u16, permissions u16, id u32), into its own; false: it has none.
    pub fn adapt_acl(self, head: u32, acl: &mut [u8]) -> bool {
        // The kernel asks no ACL whose mask is empty; with the bit that everybody has on ctl and directory, it would.
        if acl.len() <= 4 || (self != Self::Object && head & 0o070 == 0) {
            return false;
        }
        let mode = self.mode(head);
        for entry in acl.get_mut(4..).unwrap_or(&mut []).chunks_exact_mut(8) {
            if let [tag_low, tag_high, permissions, ..] = entry {
                *permissions = match (u16::from_le_bytes([*tag_low, *tag_high]), self) {
                    (OWNER, _) => (mode >> 6 & 7) as u8,
                    (MASK, _) => (mode >> 3 & 7) as u8,
                    (OTHERS, _) => (mode & 7) as u8,
                    (_, Self::Object) => *permissions,
                    (_, Self::Ctl) => *permissions & 2 | 4,
                    (_, Self::Dir) => (*permissions & 2) << 1 | 1,
                };
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Part;

    fn entry(tag: u8, permissions: u8) -> [u8; 8] {
        [tag, 0, permissions, 0, 255, 255, 255, 255]
    }

    #[test]
    fn the_owner_reads_and_writes_objects_and_everybody_reads_ctl() {
        assert_eq!([0o444, 0o1755, 0].map(|head| Part::Object.mode(head)), [0o644, 0o755, 0o600]);
        assert_eq!([0o600, 0o755, 0o666].map(|head| Part::Ctl.mode(head)), [0o644, 0o644, 0o666]);
    }

    #[test]
    fn who_may_write_the_file_and_nobody_else_may_read_its_directory() {
        assert_eq!([0o600, 0o755, 0o664, 0o620, 0o666, 0o4702].map(|head| Part::Dir.mode(head)), [0o711, 0o711, 0o751, 0o751, 0o755, 0o715]);
    }

    #[test]
    fn an_acl_agrees_with_the_mode_of_the_part() {
        let parts = [entry(1, 4), entry(2, 6), entry(4, 0), entry(16, 6), entry(32, 0)];
        let mut acl = vec![2, 0, 0, 0];
        parts.iter().for_each(|part| acl.extend(part));
        let of = |part: Part, head| {
            let mut acl = acl.clone();
            part.adapt_acl(head, &mut acl).then(|| acl.get(4..).map(|a| a.chunks(8).filter_map(|e| e.get(2).copied()).collect::<Vec<_>>()))
        };
        assert_eq!(of(Part::Object, 0o460), Some(Some(vec![6, 6, 0, 6, 0])));
        assert_eq!(of(Part::Ctl, 0o460), Some(Some(vec![6, 6, 4, 6, 4])));
        assert_eq!(of(Part::Dir, 0o460), Some(Some(vec![7, 5, 1, 5, 1])));
        assert_eq!(of(Part::Ctl, 0o400), None);
    }
}
