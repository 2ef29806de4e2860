//! Emulated devices: what a batch reserves, and how long whoever waits for it sleeps.

use std::io::IoSlice;
use std::sync::atomic::Ordering;

use stripewise_target::any::Any;
use stripewise_target::batch::{Request, submit, write_at};
use stripewise_target::emulated::{Clock, Emulated};
use stripewise_target::interface::{Opening, Target};
use stripewise_target::kind::DeviceModel;
use stripewise_target::names::ObjectName;
use stripewise_target::op::Op;
use stripewise_target::time::now_ns;

use crate::subjects::{Directories, devices, fake};

const MS: u64 = 1_000_000;
const SLOW: DeviceModel = DeviceModel { startup_read_ns: 20 * MS, startup_write_ns: 20 * MS, read_ps_per_byte: 0, write_ps_per_byte: 0 };

#[test]
fn devices_of_a_batch_work_side_by_side_and_one_sleep_lasts_until_the_last_is_done() {
    let devices = devices();
    let targets = [0, 1].map(|target| Emulated::new(fake(), Clock { line: devices.line(target).unwrap(), model: Some(SLOW) }));
    let objects = targets.each_ref().map(|target| target.create(ObjectName::of_plane(1, 0), 0o600, None).unwrap());
    let bytes = IoSlice::new(b"abc");
    let parts = [bytes];
    let mut batch = [0, 1, 0].map(|which| Request::new(&objects[which], Op::write(&parts, 1000)));
    let begun = now_ns();
    let end = submit(&mut batch).finish();
    // All reserved when they began: two on the first device, one after the other, beside the one on the second.
    assert!((begun + 40 * MS..begun + 60 * MS).contains(&end), "{}", end - begun);
    assert!(now_ns() < begun + 20 * MS, "bytes are there before the device is done");
    assert!(batch.iter().all(|request| request.op.outcome.done == 3 && request.op.outcome.service_ns == 20 * MS));
    let mut batch = [Request::new(&objects[1], Op::write(&parts, 0))];
    submit(&mut batch).wait();
    assert!(now_ns() >= begun + 40 * MS);
    let line = devices.line(0).unwrap();
    assert_eq!((line.accesses_write.load(Ordering::Relaxed), line.bytes_written.load(Ordering::Relaxed)), (2, 6));
}

#[test]
fn an_operation_that_continues_the_last_one_of_its_object_pays_no_startup() {
    let devices = devices();
    let target = Emulated::new(fake(), Clock { line: devices.line(0).unwrap(), model: Some(SLOW) });
    let (one, other) = (ObjectName::of_plane(1, 0), ObjectName::of_plane(1, 1));
    let [one, other] = [one, other].map(|name| target.create(name, 0o600, None).unwrap());
    let parts = [IoSlice::new(b"abcd")];
    let mut batch = [(&one, 0), (&one, 4), (&other, 8), (&one, 8)].map(|(object, at)| Request::new(object, Op::write(&parts, at)));
    submit(&mut batch).finish();
    assert_eq!(batch.map(|request| request.op.outcome.service_ns), [20 * MS, 0, 20 * MS, 20 * MS]);
}

#[test]
fn a_real_device_is_counted_and_waited_for_by_nobody() {
    is_counted_and_not_waited_for(Any::other(fake()));
    is_counted_and_not_waited_for(Any::Dir(Directories::default().fresh_dir()));
    let slow = Clock { line: devices().line(0).unwrap(), model: Some(SLOW) };
    is_counted_and_not_waited_for(Any::Dir(Directories::default().fresh_dir()).behind(slow));
}

fn is_counted_and_not_waited_for(target: Any) {
    let devices = devices();
    let target = target.behind(Clock { line: devices.line(1).unwrap(), model: None });
    let object = target.create(ObjectName::of_plane(1, 0), 0o600, None).unwrap();
    write_at(&object, &[1; 1000], 0).unwrap();
    let mut batch = [Request::new(&object, Op::write(&[], 5))];
    assert_eq!(submit(&mut batch).finish(), 0);
    let line = devices.line(1).unwrap();
    assert_eq!((line.accesses_write.load(Ordering::Relaxed), line.bytes_written.load(Ordering::Relaxed)), (1, 1000));
    assert_eq!((line.busy_write_ns.load(Ordering::Relaxed), line.startups.load(Ordering::Relaxed)), (0, 0));
    assert!(target.open(ObjectName::of_plane(1, 0), Opening::READ).is_ok());
}
