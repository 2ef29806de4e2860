//! Words of an MPI datatype, damaged ones among them: the compiler says no, or its type answers; in the order of its data, as the reader of traces has it.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stripewise_trace::datatype::{Tile, compile, room_for};
use stripewise_trace::reader::mpi::Layout;

/// Ranges that are looked at.
const RANGES_MAX: usize = 1000;

fuzz_target!(|bytes: &[u8]| {
    let words: Vec<u64> = bytes.chunks_exact(8).filter_map(|word| word.try_into().ok()).map(u64::from_le_bytes).collect();
    let mut room = vec![0; room_for(words.len())];
    let Some(used) = compile(&words, &mut room) else { return };
    let tile = Tile::open(&room[..used]);
    let (from, asked) = (tile.root().bytes() / 3, tile.root().bytes().min(1 << 16));
    let (mut ranges, mut told) = (0, 0);
    let whole = tile.each_range(0, from, asked, &mut |_, bytes| {
        (ranges, told) = (ranges + 1, told + bytes);
        (ranges < RANGES_MAX).then_some(())
    });
    assert!(whole.is_none() || told == asked);
    assert!(Layout::of_words(&words).is_some());
});
