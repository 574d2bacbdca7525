//! Messages of noncontiguous elements: as views of the engine if there are few, otherwise through contiguous memory.

use std::ffi::{c_int, c_void};
use std::mem;
use std::sync::Arc;

use regatta_sys as rg;

use super::{Type, memory};
use crate::abi::*;
use crate::communicator::route;
use crate::error::{Error, Result, checked};
use crate::requests::{self, Operation, State};

/// Maximum number of views of a message. For each part of a long message the engine searches its position in their
/// list.
pub const VIEWS: usize = 64;

/// Returns elements in packed form.
///
/// # Safety
/// The elements may be read.
pub unsafe fn packed(of: &Type, buffer: *const c_void, count: i64) -> Result<(Vec<u8>, usize)> {
    let length = of.packed_size(count)?;
    of.check_buffer(buffer, length)?;
    let mut bytes = memory(length)?;
    // SAFETY: the caller upholds the safety contract of this function; the memory has this many bytes.
    unsafe { of.pack(buffer, 0, length, bytes.as_mut_ptr()) };
    Ok((bytes, length))
}

/// Returns the memory of elements as views; `None` if there are too many.
pub fn views(of: &Type, buffer: *const c_void, count: i64) -> Result<Option<Vec<rg::View>>> {
    of.check_buffer(buffer, of.packed_size(count)?)?;
    Ok(of.views(buffer, count, VIEWS))
}

/// Packed bytes, and the elements to which received bytes are unpacked.
struct Bytes {
    memory: Vec<u8>,
    length: usize,
    to: Option<(Arc<Type>, *mut c_void)>,
}

// SAFETY: the caller guarantees that any thread may write to the buffer until the receive is complete.
unsafe impl Send for Bytes {}

impl Bytes {
    /// Unpacks received bytes to the elements.
    fn arrived(&self, status: &rg::Status) {
        if let Some((of, buffer)) = &self.to {
            let length = status.length.min(self.length);
            // SAFETY: the caller who began the receive guarantees that the elements may be written; this many bytes
            // have been received.
            unsafe { of.unpack(self.memory.as_ptr(), 0, length, *buffer) };
        }
    }
}

/// A pending message that goes through memory of its own.
pub struct Apart {
    request: [rg::Request; 1],
    bytes: Option<Box<Bytes>>,
    comm: Comm,
    outcome: Option<(Status, Result)>,
}

impl Apart {
    /// Begins a send of packed bytes and returns its request.
    pub fn send(
        (memory, length): (Vec<u8>, usize),
        comm: Comm,
        start: impl FnOnce(*const c_void, usize, &mut rg::Request) -> c_int,
    ) -> Result<Request> {
        let mut request = rg::REQUEST_NULL;
        checked(start(memory.as_ptr().cast(), length, &mut request))?;
        let bytes = Bytes {
            memory,
            length,
            to: None,
        };
        Apart::begun(request, bytes, comm)
    }

    /// Begins a receive of `count` elements and returns its request.
    ///
    /// # Safety
    /// The elements may be written until the request is complete.
    pub unsafe fn receive(
        of: Arc<Type>,
        buffer: *mut c_void,
        count: i64,
        comm: Comm,
        start: impl FnOnce(*mut c_void, usize, &mut rg::Request) -> c_int,
    ) -> Result<Request> {
        let length = of.packed_size(count)?;
        let mut memory = memory(length)?;
        let mut request = rg::REQUEST_NULL;
        checked(start(memory.as_mut_ptr().cast(), length, &mut request))?;
        let bytes = Bytes {
            memory,
            length,
            to: Some((of, buffer)),
        };
        Apart::begun(request, bytes, comm)
    }

    fn begun(request: rg::Request, bytes: Bytes, comm: Comm) -> Result<Request> {
        let operation = Apart {
            request: [request],
            bytes: Some(Box::new(bytes)),
            comm,
            outcome: None,
        };
        requests::of_operation(Box::new(operation), comm)
    }
}

impl Operation for Apart {
    fn state(&self) -> State {
        match self.request {
            [rg::REQUEST_NULL] => State::Complete,
            _ => State::Pending,
        }
    }

    fn waits_for(&self) -> &[rg::Request] {
        &self.request
    }

    fn completed(&mut self, _index: usize, status: &rg::Status, code: c_int) {
        self.request = [rg::REQUEST_NULL];
        let bytes = self.bytes.take();
        if let (Some(bytes), rg::OK | rg::ERR_TRUNCATED) = (bytes, code) {
            bytes.arrived(status);
        }
        let mut told = match route(self.comm) {
            Ok(route) => route.status(status),
            // The communicator has been freed.
            Err(_) => Status::of_message(status.source, status.tag, status.length as u64),
        };
        told.set_cancelled(code == rg::ERR_CANCELLED);
        let result = match code {
            rg::ERR_CANCELLED => Ok(()),
            _ => checked(code),
        };
        self.outcome = Some((told, result));
    }

    fn finish(&mut self) -> (Status, Result) {
        let empty = || (Status::empty(ANY_SOURCE), Ok(()));
        self.outcome.take().unwrap_or_else(empty)
    }

    fn look(&self) -> Status {
        let outcome = self.outcome.as_ref();
        outcome.map_or(Status::empty(ANY_SOURCE), |(status, _)| *status)
    }

    fn cancel(&mut self) -> Result {
        let mut cancelled = 0;
        // SAFETY: the engine checks requests at each use; the call may write `cancelled`.
        match unsafe { rg::rg_cancel(self.request[0], &mut cancelled) } {
            // A send that cannot be cancelled goes on, without an error.
            code if code < 0 => match self.bytes.as_ref().is_some_and(|it| it.to.is_some()) {
                true => Err(Error::of_engine(code)),
                false => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

impl Drop for Apart {
    /// A request that is freed goes on: the memory is kept until it is complete.
    fn drop(&mut self) {
        unsafe extern "C" fn over(status: *const rg::Status, bytes: *mut c_void) {
            // SAFETY: the engine passes a valid status, and the bytes that `drop` has given to this callback.
            let (status, bytes) = unsafe { (&*status, Box::from_raw(bytes.cast::<Bytes>())) };
            bytes.arrived(status);
        }
        let [mut request] = mem::replace(&mut self.request, [rg::REQUEST_NULL]);
        let Some(bytes) = self.bytes.take() else {
            return;
        };
        if request == rg::REQUEST_NULL {
            return;
        }
        let bytes = Box::into_raw(bytes).cast::<c_void>();
        // SAFETY: the callback takes these bytes, once. If the engine refuses, they are leaked, since it may still use
        // them.
        unsafe { rg::rg_on_complete(&mut request, Some(over), bytes) };
    }
}
