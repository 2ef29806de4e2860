//! Verbs beside programs that give files away. Only root can: for others there is nothing to see.

use crate::common::*;
use std::os::unix::fs::chown;
use std::time::Duration;
use stripewise_store::admin::Store;
use stripewise_store::admin::disk::RealDisk;
use stripewise_store::admin::metadata::data;

#[test]
fn a_verb_waits_for_a_change_of_owner_that_is_under_way() {
    let (disk, base) = (RealDisk::new(), tempfile::tempdir().unwrap());
    let root = store_with_file(&disk, base.path(), &spec(base.path(), "dir", 2, 0, even(2, 16 * K, 4 * K)));
    let store = Store::open(&disk, &root).unwrap();
    let content = pattern(3, 0, 75_001);
    data::write_file(&store, ID, 0, &content).unwrap();
    let stranger = Some(54_321);
    if chown(store.part(ID, "head"), stranger, None).is_err() {
        println!("not run: only root gives files away");
        return;
    }
    let later: Vec<_> =
        ["ctl", "layout", "link"].iter().map(|part| store.part(ID, part)).chain((0..2).map(|t| store.object(t, ID, 0).unwrap())).collect();
    let giver = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(10));
        later.iter().for_each(|part| chown(part, stranger, None).unwrap());
    });
    apply_all(&store, &even(2, 16 * K, 8 * K)).unwrap();
    giver.join().unwrap();
    assert_eq!(read_all(&store, 80_000), content);
}
