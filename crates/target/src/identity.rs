//! The identity of a target's directory: a small file that says which store's which target it is, so that a missing, wrong or swapped mount, or
//! somebody else's target, is noticed before a byte is read or written there. Drawn in docs/formats.md ("Names"). Nothing here allocates.

/// Name of the identity file in a target's directory.
pub const IDENTITY_FILE: &str = "stripewise-target";

/// What an identity file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The store's id.
    pub uuid: [u8; 16],
    /// Index of the target.
    pub index: usize,
    /// Where the store lay when the target was taken.
    pub store: &'a [u8],
}

impl<'a> Identity<'a> {
    /// Reads it; `None` for anything else.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(b"stripewise-target 1\nuuid ")?;
        let (hex, rest) = rest.split_at_checked(32)?;
        let rest = rest.strip_prefix(b"\nindex ")?;
        let digits = rest.iter().position(|&c| c == b'\n')?;
        let index = core::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
        let store = rest.get(digits..)?.strip_prefix(b"\nstore ")?.strip_suffix(b"\n")?;
        let mut uuid = [0u8; 16];
        for (byte, pair) in uuid.iter_mut().zip(hex.chunks(2)) {
            *byte = u8::from_str_radix(core::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self { uuid, index, store })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_whole_or_not_at_all() {
        let text = b"stripewise-target 1\nuuid abababababababababababababababab\nindex 7\nstore /s/a b\n";
        assert_eq!(Identity::parse(text), Some(Identity { uuid: [0xab; 16], index: 7, store: b"/s/a b" }));
        for n in 0..text.len() {
            assert_eq!(text.get(..n).and_then(Identity::parse), None, "{n}");
        }
    }
}
