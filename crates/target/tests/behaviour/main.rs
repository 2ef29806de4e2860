//! The suite on the kinds that there are, and what the kinds promise beyond it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod clocks;
mod directories;
mod subjects;

use subjects::{Behind, Directories, Fakes, Kinds, Remotes, SERVER};

stripewise_target::behaviour!(dir, Directories::default());
stripewise_target::behaviour!(emulated_dir, Behind::new(Directories::default()));
stripewise_target::behaviour!(fake, Fakes);
stripewise_target::behaviour!(emulated_fake, Behind::new(Fakes));
stripewise_target::behaviour!(any_dir, Kinds(|| stripewise_target::any::Any::Dir(Directories::default().fresh_dir())));
stripewise_target::behaviour!(any_other, Kinds(|| stripewise_target::any::Any::other(subjects::fake())));
stripewise_target::behaviour!(shared_memory, Remotes);
stripewise_target::behaviour!(emulated_shared_memory, Behind::new(Remotes));

/// Started by the tests of the remote kind, as a process of its own; otherwise it has nothing to do.
#[test]
fn the_server_of_the_remote_kind() {
    stripewise_target::shared_memory::serve();
}

#[test]
fn the_remote_kind_serves_requests_out_of_order() {
    use std::io::IoSlice;
    use stripewise_target::batch::{Request, submit};
    use stripewise_target::interface::Target;
    use stripewise_target::names::ObjectName;
    use stripewise_target::op::Op;
    let target = stripewise_target::shared_memory::Remote::start(SERVER);
    let objects: Vec<_> = (0..16).map(|file| target.create(ObjectName::of_plane(file, 0), 0o600, None).unwrap()).collect();
    let parts = [IoSlice::new(&[7; 1000])];
    for round in 0..200 {
        let mut batch: Vec<_> = objects.iter().map(|object| Request::new(object, Op::write(&parts, round * 1000))).collect();
        submit(&mut batch).wait();
        assert!(batch.iter().all(|request| request.op.outcome.result() == Ok(1000)));
        if target.overtakings() > 0 {
            return;
        }
    }
    panic!("all were served in the order in which they were asked for");
}
