//! Disks that cannot be are refused with the key and the cure.

use serde_json::{Value, json};
use stripewise_disk::DiskSpec;

pub fn small() -> Value {
    json!({
        "name": "small", "cylinders": 300, "surfaces": 2, "rpm": 6000.0, "head_switch_ms": 0.5, "write_settle_ms": 0.1,
        "zones": [[0, 100], [120, 80], [200, 64]], "seek": [[1, 1.0], [10, 2.0], [299, 8.0]]
    })
}

/// `small` with some keys changed.
pub fn with(changes: &Value) -> DiskSpec {
    let mut spec = small();
    spec.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    DiskSpec::from_json(&spec.to_string()).unwrap()
}

#[test]
fn what_cannot_be_is_refused_with_key_and_cure() {
    let wrong = [
        (json!({"cylinders": 0}), "disk.cylinders"),
        (json!({"surfaces": 65}), "disk.surfaces"),
        (json!({"rpm": 0.0}), "disk.rpm"),
        (json!({"block_bytes": 500}), "disk.block_bytes"),
        (json!({"layout": "spiral"}), "disk.layout"),
        (json!({"layout": "serpentine, long runs"}), "disk.layout"),
        (json!({"zones": []}), "disk.zones"),
        (json!({"zones": [[1, 100]]}), "disk.zones"),
        (json!({"zones": [[0, 100], [0, 90]]}), "disk.zones"),
        (json!({"zones": [[0, 100], [300, 90]]}), "disk.zones"),
        (json!({"zones": [[0, 0]]}), "disk.zones"),
        (json!({"zones": [[0, 100, 100, 3]]}), "disk.zones"),
        (json!({"seek": []}), "disk.seek"),
        (json!({"seek": [[2, 1.0]]}), "disk.seek"),
        (json!({"seek": [[1, 1.0], [1, 2.0]]}), "disk.seek"),
        (json!({"seek": [[1, -1.0]]}), "disk.seek"),
        (json!({"seek": [[1, 5000.0]]}), "disk.seek"),
        (json!({"blocks": 1_000_000}), "disk.blocks"),
        (json!({"head_switch_ms": -1.0}), "disk.head_switch_ms"),
        (json!({"cache_segments": 4}), "disk.cache_segment_blocks"),
        (json!({"overhead_write_miss_ms": [0.1, 1e9]}), "disk.overhead_write_miss_ms"),
        (json!({"colour": "grey"}), "disk"),
    ];
    for (change, key) in wrong {
        let mut spec = small();
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let text = DiskSpec::from_json(&spec.to_string()).unwrap_err().to_string();
        assert!(text.starts_with(key) && text.contains("; "), "{change}: {text}");
    }
}
