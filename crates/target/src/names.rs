//! Names of objects in the directory of a target, and the key by which a device knows an object. Drawn in docs/formats.md ("Names").

use crate::text::{PartName, StorePath};

/// Suffix of a target's object of each plane.
pub const OBJECT_SUFFIXES: [&[u8]; 2] = [b".data", b".data1"];
/// Suffix of a target's object of all replicas of a file.
pub const REPLICA_SUFFIX: &[u8] = b".repl";

/// `<id>.data` (plane 0) or `<id>.data1` (plane 1): an object of file `id` in the directory of its target.
pub fn object_name(id: u64, plane: u32) -> PartName {
    let [first, second] = OBJECT_SUFFIXES;
    let mut name = PartName::new();
    name.push_id(id).push(if plane & 1 == 0 { first } else { second });
    name
}

/// `.<id>.data.<16 hexadecimal digits>.tmp`: an object that is not ready for others yet; `number` is chance.
pub fn unready_object_name(id: u64, plane: u32, number: u64) -> PartName {
    let mut name = PartName::from_bytes(b".");
    name.push(object_name(id, plane).as_bytes()).push(b".").push_id(number).push(b".tmp");
    name
}

/// `<target>/<id>.data` (plane 0) or `<target>/<id>.data1` (plane 1): an object of file `id` on the target at `target`.
pub fn object_path(target: &[u8], id: u64, plane: u32) -> StorePath {
    let [first, second] = OBJECT_SUFFIXES;
    let mut path = StorePath::from_bytes(target);
    path.push(b"/").push_id(id).push(if plane & 1 == 0 { first } else { second });
    path
}

/// The name of an object or of a replicas' object without its suffix; `None` for any other name.
pub fn object_stem(name: &[u8]) -> Option<&[u8]> {
    OBJECT_SUFFIXES.iter().chain([&REPLICA_SUFFIX]).find_map(|suffix| name.strip_suffix(*suffix))
}

/// What tells an object from all others where its device's position is kept: the two of a file lie apart like those of two files.
pub fn object_key(id: u64, plane: u32) -> u64 {
    id.wrapping_mul(2).wrapping_add(u64::from(plane & 1))
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
}
