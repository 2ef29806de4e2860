//! Text in fixed buffers, always NUL-terminated: paths and names that the preloaded library builds inside any host call. Nothing here allocates.

use core::ffi::CStr;

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
/// A single name: of a file's directory, a part, an object.
pub type PartName = FixedText<96>;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_path_too_long_is_no_path() {
        let mut path = FixedPath::new();
        path.push(&[b'a'; PATH_MAX - 1]);
        assert!(path.as_c_str().is_some());
        path.push(b"b");
        assert!(path.as_c_str().is_none());
    }
}
