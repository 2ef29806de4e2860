//! Names in a store: ids, the text of a managed file's symbolic link, paths of its parts, all in fixed buffers so that the
//! preloaded library can build them inside any host call.

use core::ffi::CStr;

/// What the text of a managed file's symbolic link begins with; no directory of this name exists, so it leads nowhere.
pub const LINK_PREFIX: &[u8] = b"/stripewise:";
/// Longest path that the kernel takes, the closing NUL included.
pub const PATH_MAX: usize = 4096;
/// Hexadecimal digits of a file id.
pub const ID_DIGITS: usize = 16;

/// Longest path of a store or of a target. What lies in them is named in buffers not much longer, many of which stand on the stacks of the
/// programs' threads at a time.
pub const STORE_PATH_BYTES_MAX: usize = 1024;

/// A path that a program gave.
pub type FixedPath = FixedText<PATH_MAX>;
/// A path in a store or on a target, or the text of a link into a store.
pub type StorePath = FixedText<{ STORE_PATH_BYTES_MAX + 128 }>;
/// A name in /proc.
pub type ProcPath = FixedText<64>;

/// A path in a fixed buffer, always NUL-terminated. Pushing past the end marks it as too long instead of failing at once.
#[derive(Clone)]
pub struct FixedText<const N: usize> {
    bytes: [u8; N],
    len: usize,
    overflow: bool,
}

impl<const N: usize> Default for FixedText<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> FixedText<N> {
    /// An empty path.
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0, overflow: false }
    }

    /// A path that begins with `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut path = Self::new();
        path.push(bytes);
        path
    }

    /// A path that `read` puts into the buffer: it returns how many bytes it wrote.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<E>(read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<Self, E> {
        let mut path = Self::new();
        path.len = read(&mut path.bytes)?;
        path.overflow = path.len >= N;
        if let Some(end) = path.bytes.get_mut(path.len) {
            *end = 0;
        }
        Ok(path)
    }

    /// Appends raw bytes.
    pub fn push(&mut self, bytes: &[u8]) -> &mut Self {
        match self.bytes.get_mut(self.len..self.len + bytes.len()) {
            Some(room) if self.len + bytes.len() < N => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
                if let Some(end) = self.bytes.get_mut(self.len) {
                    *end = 0;
                }
            }
            _ => self.overflow = true,
        }
        self
    }

    /// Appends a number in decimal.
    pub fn push_decimal(&mut self, value: u64) -> &mut Self {
        let mut digits = [0u8; 20];
        let mut rest = value;
        let mut used = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            used += 1;
            if rest == 0 {
                break;
            }
        }
        let start = digits.len() - used;
        self.push(digits.get(start..).unwrap_or(&[]))
    }

    /// Appends a file id in hexadecimal.
    pub fn push_id(&mut self, id: u64) -> &mut Self {
        let mut digits = [0u8; ID_DIGITS];
        for (i, digit) in digits.iter_mut().enumerate() {
            let nibble = ((id >> (60 - 4 * i)) & 15) as u8;
            *digit = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
        }
        self.push(&digits)
    }

    /// Cuts the path back to `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            if let Some(end) = self.bytes.get_mut(len) {
                *end = 0;
            }
        }
    }

    /// The bytes without the NUL.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }

    /// The path for a system call; `None` when it did not fit or holds a NUL byte.
    pub fn as_c_str(&self) -> Option<&CStr> {
        if self.overflow {
            return None;
        }
        CStr::from_bytes_with_nul(self.bytes.get(..=self.len)?).ok()
    }

    /// Length in bytes, without the NUL.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing has been pushed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Reads a file id of exactly 16 lower-case hexadecimal digits.
pub fn parse_id(text: &[u8]) -> Option<u64> {
    if text.len() != ID_DIGITS {
        return None;
    }
    let mut id = 0u64;
    for &c in text {
        let nibble = match c {
            b'0'..=b'9' => c - b'0',
            b'a'..=b'f' => c - b'a' + 10,
            _ => return None,
        };
        id = id << 4 | u64::from(nibble);
    }
    Some(id)
}

/// Splits the text of a managed file's symbolic link into store path and file id; `None` for any other link.
pub fn parse_link(text: &[u8]) -> Option<(&[u8], u64)> {
    let rest = text.strip_prefix(LINK_PREFIX)?;
    let slash = rest.iter().rposition(|&c| c == b'/')?;
    let store = rest.get(..slash)?;
    let id = parse_id(rest.get(slash + 1..)?)?;
    (store.first() == Some(&b'/')).then_some((store, id))
}

/// The text of the symbolic link of file `id` of the store at absolute path `store`.
pub fn link_text(store: &[u8], id: u64) -> StorePath {
    let mut text = StorePath::from_bytes(LINK_PREFIX);
    text.push(store).push(b"/").push_id(id);
    text
}

/// `<store>/files/<id>`, with `/<part>` behind it unless `part` is empty.
pub fn file_part(store: &[u8], id: u64, part: &[u8]) -> StorePath {
    let mut path = StorePath::from_bytes(store);
    path.push(b"/files/").push_id(id);
    if !part.is_empty() {
        path.push(b"/").push(part);
    }
    path
}

/// What the names of layouts that wait to be published begin with.
pub const NEXT_LAYOUT_PREFIX: &[u8] = b"layout.";

/// `<store>/files/<id>/layout.<generation>`: a layout that waits to take the place of the present one. The generation is in the name so that whoever
/// comes late finds nothing to rename.
pub fn next_layout(store: &[u8], id: u64, generation: u64) -> StorePath {
    let mut path = file_part(store, id, NEXT_LAYOUT_PREFIX);
    path.push_id(generation);
    path
}

/// Suffix of a target's object of each plane.
pub const OBJECT_SUFFIXES: [&[u8]; 2] = [b".data", b".data1"];
/// Suffix of a target's object of all replicas of a file.
pub const REPLICA_SUFFIX: &[u8] = b".repl";

/// A single name: of a file's directory, a part, an object.
pub type PartName = FixedText<96>;

/// `<id>`: the directory of a file in `files`.
pub fn id_name(id: u64) -> PartName {
    let mut name = PartName::new();
    name.push_id(id);
    name
}

/// `<id>.data` (plane 0) or `<id>.data1` (plane 1): an object of file `id` in the directory of its target.
pub fn object_name(id: u64, plane: u32) -> PartName {
    let [first, second] = OBJECT_SUFFIXES;
    let mut name = id_name(id);
    name.push(if plane & 1 == 0 { first } else { second });
    name
}

/// `.<id>.data.<16 hexadecimal digits>.tmp`: an object that is not ready for others yet; `number` is chance.
pub fn unready_object_name(id: u64, plane: u32, number: u64) -> PartName {
    let mut name = PartName::from_bytes(b".");
    name.push(object_name(id, plane).as_bytes()).push(b".").push_id(number).push(b".tmp");
    name
}

/// `layout.<generation>`: see [`next_layout`].
pub fn next_layout_name(generation: u64) -> PartName {
    let mut name = PartName::from_bytes(NEXT_LAYOUT_PREFIX);
    name.push_id(generation);
    name
}

/// `<target>/<id>.data` (plane 0) or `<target>/<id>.data1` (plane 1): an object of file `id` on the target at `target`.
pub fn object(target: &[u8], id: u64, plane: u32) -> StorePath {
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

/// Whether `text` matches the shell pattern `glob`: `?` and `*` stay within one path component, `**` crosses them, `[a-z]` and
/// `[!a-z]` are classes. An unclosed class stands for itself.
pub fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut g, mut t) = (0, 0);
    let mut retry: Option<(usize, usize, bool)> = None;
    loop {
        match glob.get(g) {
            Some(b'*') => {
                let deep = glob.get(g + 1) == Some(&b'*');
                g += if deep { 2 } else { 1 };
                // "**/" also stands for no directory at all.
                if deep && glob.get(g) == Some(&b'/') && glob_matches(glob.get(g + 1..).unwrap_or(&[]), text.get(t..).unwrap_or(&[])) {
                    return true;
                }
                retry = Some((g, t, deep));
                continue;
            }
            None if t == text.len() => return true,
            Some(_) => {
                if let Some(used) = match_one(glob.get(g..).unwrap_or(&[]), text.get(t).copied()) {
                    g += used;
                    t += 1;
                    continue;
                }
            }
            None => {}
        }
        match retry {
            Some((after, from, deep)) if from < text.len() && (deep || text.get(from) != Some(&b'/')) => {
                g = after;
                t = from + 1;
                retry = Some((after, t, deep));
            }
            _ => return false,
        }
    }
}

/// Matches one non-star pattern element against one byte; returns the pattern bytes used.
fn match_one(glob: &[u8], c: Option<u8>) -> Option<usize> {
    let c = c?;
    match *glob.first()? {
        b'?' => (c != b'/').then_some(1),
        b'[' => {
            let negated = glob.get(1) == Some(&b'!');
            let from = if negated { 2 } else { 1 };
            let Some(close) = glob.iter().skip(from + 1).position(|&b| b == b']').map(|p| p + from + 1) else {
                return (c == b'[').then_some(1);
            };
            let class = glob.get(from..close)?;
            let mut hit = false;
            let mut i = 0;
            while let Some(&low) = class.get(i) {
                if class.get(i + 1) == Some(&b'-')
                    && let Some(&high) = class.get(i + 2)
                {
                    hit |= (low..=high).contains(&c);
                    i += 3;
                } else {
                    hit |= low == c;
                    i += 1;
                }
            }
            (hit != negated && c != b'/').then_some(close + 1)
        }
        b'\\' => (glob.get(1) == Some(&c)).then_some(2),
        literal => (literal == c).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_link_text_leads_back_to_its_store_and_id() {
        let text = link_text(b"/scratch/st ore", 0x0123_4567_89ab_cdef);
        assert_eq!(text.as_bytes(), b"/stripewise:/scratch/st ore/0123456789abcdef");
        assert_eq!(parse_link(text.as_bytes()), Some((&b"/scratch/st ore"[..], 0x0123_4567_89ab_cdef)));
    }

    #[test]
    fn other_links_are_not_managed() {
        for text in [
            &b"/stripewise:"[..],
            b"/stripewise:/s",
            b"/stripewise:/s/xyz",
            b"a",
            b"",
            b"/stripewise:s/0123456789abcdef",
            b"/stripewise:/s/0123456789ABCDEF",
        ] {
            assert_eq!(parse_link(text), None, "{text:?}");
        }
    }

    #[test]
    fn globs_keep_stars_within_a_component_and_cross_with_two() {
        let yes: [(&[u8], &[u8]); 11] = [
            (b"/a/*.dat", b"/a/x.dat"),
            (b"/a/**", b"/a/b/c"),
            (b"/a/**/x", b"/a/x"),
            (b"/a/**/x", b"/a/b/c/x"),
            (b"**/x", b"/q/x"),
            (b"/a/?[0-9]", b"/a/b7"),
            (b"/a/[!x]", b"/a/b"),
            (b"*", b"abc"),
            (b"", b""),
            (b"/a/\\*", b"/a/*"),
            (b"/a/[", b"/a/["),
        ];
        for (glob, text) in yes {
            assert!(glob_matches(glob, text), "{glob:?} {text:?}");
        }
        let no: [(&[u8], &[u8]); 6] =
            [(b"/a/*.dat", b"/a/b/x.dat"), (b"/a/?", b"/a/"), (b"/a/**", b"/b/x"), (b"/a/[!x]", b"/a/x"), (b"/a/*", b"/a/b/c"), (b"a", b"ab")];
        for (glob, text) in no {
            assert!(!glob_matches(glob, text), "{glob:?} {text:?}");
        }
    }

    #[test]
    fn the_two_planes_of_a_target_are_two_objects() {
        assert_eq!(object(b"/t", 10, 0).as_bytes(), b"/t/000000000000000a.data");
        assert_eq!(object(b"/t", 10, 3).as_bytes(), b"/t/000000000000000a.data1");
        for name in [&b"x.data"[..], b"x.data1", b"x.repl"] {
            assert_eq!(object_stem(name), Some(&b"x"[..]));
        }
        for name in [&b"x.data2"[..], b"x.data11", b"data", b"stripewise-target"] {
            assert_eq!(object_stem(name), None);
        }
        assert_ne!(object_key(10, 1), object_key(10, 0));
    }

    #[test]
    fn a_path_too_long_is_no_path() {
        let mut path = FixedPath::new();
        path.push(&[b'a'; PATH_MAX - 1]);
        assert!(path.as_c_str().is_some());
        path.push(b"b");
        assert!(path.as_c_str().is_none());
    }
}
