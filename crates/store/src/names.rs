//! Names in a store: ids, the text of a managed file's symbolic link, paths of its parts, all in fixed buffers so that the
//! preloaded library can build them inside any host call.

use stripewise_target::text::{PartName, StorePath, parse_id};

/// What the text of a managed file's symbolic link begins with; no directory of this name exists, so it leads nowhere.
pub const LINK_PREFIX: &[u8] = b"/stripewise:";

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

/// `<id>`: the directory of a file in `files`.
pub fn id_name(id: u64) -> PartName {
    let mut name = PartName::new();
    name.push_id(id);
    name
}

/// `layout.<generation>`: see [`next_layout`].
pub fn next_layout_name(generation: u64) -> PartName {
    let mut name = PartName::from_bytes(NEXT_LAYOUT_PREFIX);
    name.push_id(generation);
    name
}

/// Whether `text` matches the shell pattern `glob`: `?` and `*` stay within one path component, `**` crosses them, `**/` as a
/// component stands for no directory, too, `[a-z]` and `[!a-z]` are classes. An unclosed class stands for itself.
pub fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut g, mut t) = (0, 0);
    // Behind the last star of each kind: where the pattern goes on, and the first byte of the text that the star has not taken yet. A star within a component
    // that cannot take more leaves it to the one across components before it; what stands before that one needs no other try.
    let (mut within, mut across): (Option<(usize, usize)>, _) = (None, None);
    loop {
        match glob.get(g) {
            Some(b'*') => {
                let deep = glob.get(g + 1) == Some(&b'*');
                let begins_component = g == 0 || glob.get(g - 1) == Some(&b'/');
                g += if deep { 2 } else { 1 };
                if deep
                    && begins_component
                    && glob.get(g) == Some(&b'/')
                    && glob_matches(glob.get(g + 1..).unwrap_or(&[]), text.get(t..).unwrap_or(&[]))
                {
                    return true;
                }
                (within, across) = if deep { (None, Some((g, t))) } else { (Some((g, t)), across) };
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
        within = within.filter(|(_, from)| text.get(*from).is_some_and(|c| *c != b'/'));
        let Some((after, from)) = within.or(across).filter(|(_, from)| *from < text.len()) else { return false };
        (g, t) = (after, from + 1);
        *if within.is_some() { &mut within } else { &mut across } = Some((g, t));
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

    /// The same by trying everything.
    fn matches_slowly(before: u8, glob: &[u8], text: &[u8]) -> bool {
        let tails = |past: usize| (0..=past).map(|from| text.get(from..).unwrap_or(&[]));
        match glob {
            [] => text.is_empty(),
            [b'*', b'*', rest @ ..] => {
                let is_component = before == b'/' && rest.first() == Some(&b'/');
                let is_none_at_all = is_component && matches_slowly(b'/', rest.get(1..).unwrap_or(&[]), text);
                is_none_at_all || tails(text.len()).any(|tail| matches_slowly(b'*', rest, tail))
            }
            [b'*', rest @ ..] => {
                let component = text.iter().take_while(|c| **c != b'/').count();
                tails(component).any(|tail| matches_slowly(b'*', rest, tail))
            }
            _ => match_one(glob, text.first().copied())
                .is_some_and(|used| matches_slowly(glob[used - 1], glob.get(used..).unwrap_or(&[]), text.get(1..).unwrap_or(&[]))),
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_glob_matches_what_trying_everything_matches(glob in "[ab/?*\\[\\]]{0,9}", text in "[ab/]{0,9}") {
            proptest::prop_assert_eq!(glob_matches(glob.as_bytes(), text.as_bytes()), matches_slowly(b'/', glob.as_bytes(), text.as_bytes()));
        }
    }
}
