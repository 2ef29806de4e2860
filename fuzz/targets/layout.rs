//! Layout files: whatever parses is mapped both ways, and is what it encodes to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stripewise_fuzz::restamped;
use stripewise_layout::{Logical, ORIGINAL, ObjectOffset, View};

const LEN: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let bytes = restamped(data);
    let Ok(view) = View::parse(&bytes) else { return };
    let ends = [0, view.region_at(Logical(0)).end() - 1, view.region_at(Logical(u64::MAX >> 1)).start];
    for at in ends {
        let len = LEN.min((1 << 62) - at.min(1 << 62));
        for piece in view.pieces(Logical(at), len).take(64).filter(|piece| piece.target != ORIGINAL) {
            let back = view.inverse(piece.target, piece.plane, ObjectOffset(piece.object_offset));
            assert!(view.uses_object(piece.target, piece.plane));
            assert_eq!(back, Some(Logical(piece.logical)));
        }
        let in_extents: u64 = view.extents(Logical(at), len.min(1 << 16)).map(|extent| extent.len).sum();
        assert_eq!(in_extents, len.min(1 << 16));
    }
    for target in (0..view.target_count()).take(8) {
        let _ = (view.end_of(target, 0, LEN), view.logical_end(target, 1, LEN), view.target_bytes(target, LEN), view.first_byte(target, 0));
    }
    let layout = view.to_layout();
    let encoded = layout.encode().expect("what parses can be encoded");
    assert_eq!(View::parse(&encoded).expect("what was encoded parses").to_layout(), layout);
});
