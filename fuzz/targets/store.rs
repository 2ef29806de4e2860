//! store.bin: whatever parses answers every question.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stripewise_fuzz::restamped;
use stripewise_store::bin::StoreView;

fuzz_target!(|data: &[u8]| {
    let bytes = restamped(data);
    let Ok(view) = StoreView::parse(&bytes) else { return };
    for target in 0..view.target_count() {
        assert!(view.target(target).is_some());
    }
    for rule in 0..view.rule_count() {
        assert!(view.rule(rule).is_some());
    }
    for path in [&b"/"[..], b"/a/b/c.h5", data] {
        let _ = view.rule_for(path);
    }
    let _ = (view.region_bytes(), view.toml_sha256(), view.uuid(), view.default_layout());
});
