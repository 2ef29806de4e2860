//! Names of objects in the directory of a target, and the key by which a device knows an object. Drawn in docs/formats.md ("Names").

use crate::text::{PartName, StorePath, parse_id};

/// Suffix of a target's object of each plane.
pub const OBJECT_SUFFIXES: [&[u8]; 2] = [b".data", b".data1"];
/// Suffix of a target's object of all replicas of a file.
pub const REPLICA_SUFFIX: &[u8] = b".repl";

/// What an object is to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Slices of plane 0.
    Plane0,
    /// Slices of plane 1.
    Plane1,
    /// All replicas of the file on this target.
    Replicas,
}

/// An object's name on its target, whatever serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName {
    /// Id of the file.
    pub file: u64,
    /// What it is to the file.
    pub role: Role,
}

impl ObjectName {
    /// The roles, each object of a file once.
    pub const ROLES: [Role; 3] = [Role::Plane0, Role::Plane1, Role::Replicas];

    /// The object of a plane; only its lowest bit counts.
    #[must_use]
    pub const fn of_plane(file: u64, plane: u32) -> Self {
        Self { file, role: if plane & 1 == 0 { Role::Plane0 } else { Role::Plane1 } }
    }

    /// The file's name in a directory: `<id>.data`, `<id>.data1` or `<id>.repl`.
    #[must_use]
    pub fn text(self) -> PartName {
        let [first, second] = OBJECT_SUFFIXES;
        let mut name = PartName::new();
        name.push_id(self.file).push(match self.role {
            Role::Plane0 => first,
            Role::Plane1 => second,
            Role::Replicas => REPLICA_SUFFIX,
        });
        name
    }

    /// `.<name>.<16 hexadecimal digits>.tmp`: where it is made that is not ready for others yet; `number` is chance.
    #[must_use]
    pub fn unready_text(self, number: u64) -> PartName {
        let mut name = PartName::from_bytes(b".");
        name.push(self.text().as_bytes()).push(b".").push_id(number).push(b".tmp");
        name
    }

    /// The object of a file's name in a directory; `None` for any other file.
    #[must_use]
    pub fn of_text(text: &[u8]) -> Option<Self> {
        let file = parse_id(object_stem(text)?)?;
        Self::ROLES.into_iter().map(|role| Self { file, role }).find(|name| name.text().as_bytes() == text)
    }

    /// What tells it from all others where its device's position is kept: the objects of a file lie apart like those of several files.
    #[must_use]
    pub const fn key(self) -> u64 {
        match self.role {
            Role::Plane0 => self.file.wrapping_mul(2),
            Role::Plane1 => self.file.wrapping_mul(2).wrapping_add(1),
            Role::Replicas => !self.file.wrapping_mul(2),
        }
    }
}

/// `<id>.data` (plane 0) or `<id>.data1` (plane 1): an object of file `id` in the directory of its target.
pub fn object_name(id: u64, plane: u32) -> PartName {
    ObjectName::of_plane(id, plane).text()
}

/// `.<id>.data.<16 hexadecimal digits>.tmp`: an object that is not ready for others yet; `number` is chance.
pub fn unready_object_name(id: u64, plane: u32, number: u64) -> PartName {
    ObjectName::of_plane(id, plane).unready_text(number)
}

/// `<target>/<id>.data` (plane 0) or `<target>/<id>.data1` (plane 1): an object of file `id` on the target at `target`.
pub fn object_path(target: &[u8], id: u64, plane: u32) -> StorePath {
    let mut path = StorePath::from_bytes(target);
    path.push(b"/").push(object_name(id, plane).as_bytes());
    path
}

/// The name of an object or of a replicas' object without its suffix; `None` for any other name.
pub fn object_stem(name: &[u8]) -> Option<&[u8]> {
    OBJECT_SUFFIXES.iter().chain([&REPLICA_SUFFIX]).find_map(|suffix| name.strip_suffix(*suffix))
}

/// What tells an object from all others where its device's position is kept: the two of a file lie apart like those of two files.
pub fn object_key(id: u64, plane: u32) -> u64 {
    ObjectName::of_plane(id, plane).key()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_two_planes_of_a_target_are_two_objects() {
        assert_eq!(object_path(b"/t", 10, 0).as_bytes(), b"/t/000000000000000a.data");
        assert_eq!(object_path(b"/t", 10, 3).as_bytes(), b"/t/000000000000000a.data1");
        for name in [&b"x.data"[..], b"x.data1", b"x.repl"] {
            assert_eq!(object_stem(name), Some(&b"x"[..]));
        }
        for name in [&b"x.data2"[..], b"x.data11", b"data", b"stripewise-target"] {
            assert_eq!(object_stem(name), None);
        }
        assert_ne!(object_key(10, 1), object_key(10, 0));
    }

    #[test]
    fn a_name_reads_back_and_nothing_else_is_one() {
        for role in ObjectName::ROLES {
            let name = ObjectName { file: 0x0123_4567_89ab_cdef, role };
            assert_eq!(ObjectName::of_text(name.text().as_bytes()), Some(name));
            assert_eq!(ObjectName::of_text(name.unready_text(7).as_bytes()), None);
        }
        for text in [&b"x.data"[..], b"0123456789abcdef.data2", b"0123456789ABCDEF.data", b"0123456789abcdef", b""] {
            assert_eq!(ObjectName::of_text(text), None);
        }
    }
}
