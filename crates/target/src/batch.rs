//! Batches: operations on any objects of any targets that are submitted together and then awaited together, from one thread. What is common to all kinds is
//! done here, so that a kind has only bytes to move.

use std::io::{IoSlice, IoSliceMut};

use rustix::io::Errno;

use crate::interface::Object;
use crate::op::Op;
use crate::time::sleep_until;

/// An operation and the object that it is for.
#[derive(Debug)]
pub struct Request<'a, O: ?Sized> {
    pub object: &'a O,
    /// The operation.
    pub op: Op<'a>,
    is_under_way: bool,
}

impl<'a, O: Object + ?Sized> Request<'a, O> {
    /// A request that is not submitted yet.
    pub const fn new(object: &'a O, op: Op<'a>) -> Self {
        Self { object, op, is_under_way: false }
    }
}

/// Operations under way. Dropped, it waits until none of them is, so that their memory is the caller's again.
#[must_use]
pub struct Submitted<'b, 'a, O: Object + ?Sized>(&'b mut [Request<'a, O>]);

/// Starts all operations of a batch. On emulated targets that reserves the time of each on its device's clock.
pub fn submit<'b, 'a, O: Object + ?Sized>(requests: &'b mut [Request<'a, O>]) -> Submitted<'b, 'a, O> {
    let is_one_of_many = requests.len() > 1;
    for request in &mut *requests {
        if request.op.begin() {
            request.is_under_way = true;
            request.object.start(&mut request.op, is_one_of_many);
        }
    }
    Submitted(requests)
}

impl<O: Object + ?Sized> Submitted<'_, '_, O> {
    fn complete(&mut self) -> u64 {
        let mut end_ns = 0;
        for request in &mut *self.0 {
            if core::mem::take(&mut request.is_under_way) {
                request.object.finish(&mut request.op);
                end_ns = end_ns.max(request.op.outcome.end_ns);
            }
        }
        end_ns
    }

    /// Waits until all bytes have moved; returns when the last emulated device will have done its part (CLOCK_MONOTONIC ns, 0 where there is none), for
    /// whoever has something to do until then.
    pub fn finish(mut self) -> u64 {
        self.complete()
    }

    /// Waits until all is done, emulated devices included: one sleep to the end of the last.
    pub fn wait(mut self) {
        sleep_until(self.complete());
    }
}

impl<O: Object + ?Sized> Drop for Submitted<'_, '_, O> {
    fn drop(&mut self) {
        self.complete();
    }
}

/// Submits one operation, as a batch of it alone, and waits until its bytes have moved, but for no emulated device: `outcome.end_ns` says when that is done.
#[inline]
pub fn run_one<O: Object + ?Sized>(object: &O, op: &mut Op<'_>) {
    if op.begin() {
        object.run(op);
    }
}

/// Submits one operation and waits for it.
///
/// # Errors
/// The operation's.
pub fn alone<O: Object + ?Sized>(object: &O, mut op: Op<'_>) -> Result<u64, Errno> {
    run_one(object, &mut op);
    sleep_until(op.outcome.end_ns);
    op.outcome.result()
}

/// Reads into one buffer; returns the bytes read, fewer only at the end of the object.
///
/// # Errors
/// The object's.
pub fn read_at<O: Object + ?Sized>(object: &O, buf: &mut [u8], at: u64) -> Result<usize, Errno> {
    alone(object, Op::read(&mut [IoSliceMut::new(buf)], at)).map(|done| done as usize)
}

/// Writes all of one buffer.
///
/// # Errors
/// The object's; `NOSPC` where there was room for a part only.
pub fn write_at<O: Object + ?Sized>(object: &O, buf: &[u8], at: u64) -> Result<(), Errno> {
    let done = alone(object, Op::write(&[IoSlice::new(buf)], at))?;
    if done == buf.len() as u64 { Ok(()) } else { Err(Errno::NOSPC) }
}
