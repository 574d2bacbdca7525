//! `exsend`, `exreceive`: nonblocking operations, which report their completion in the program's `status`.
//!
//! No thread works in the background: each call of the library checks whether pending operations are complete.

use std::ffi::{c_int, c_void};

use regatta_nodes::fault::{Fault, answer, checked};
use regatta_nodes::own::Own;
use regatta_nodes::place::length;
use regatta_nodes::rg;

use crate::handlers;
use crate::left;
use crate::life::{LIBRARY, call};
use crate::select::{Address, CHANNEL, Choice, tell};

/// `EXPENDING` and `EXFAILED` of `express.h`.
const PENDING: c_int = -1;
const FAILED: c_int = -2;

/// The program's variables that are written when an operation completes.
#[derive(Clone, Copy)]
struct Outputs {
    /// NULL for a send.
    src: *mut c_int,
    kind: *mut c_int,
    status: *mut c_int,
    /// The length of a send; -1 for a receive.
    length: c_int,
}

/// Requests that are not complete, and the variables of each, in the same order.
struct Begun {
    requests: Vec<rg::Request>,
    outputs: Vec<Outputs>,
}

static BEGUN: Own<Begun> = Own::new(Begun {
    requests: Vec::new(),
    outputs: Vec::new(),
});

impl Outputs {
    /// Writes the variables of a complete operation. A truncated message is a failure, and is reported like one.
    ///
    /// # Safety
    /// The pointers must still be valid.
    unsafe fn tell(self, code: c_int, status: &rg::Status) {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe {
            let received = !self.src.is_null() || !self.kind.is_null();
            if received && (code == rg::OK || code == rg::ERR_TRUNCATED) {
                tell(self.src, self.kind, status);
            }
            let function = if self.length < 0 {
                "exreceive"
            } else {
                "exsend"
            };
            let end = match (checked(code), self.length) {
                (Ok(()), ..0) => status.length as c_int,
                (Ok(()), length) => length,
                (Err(fault), _) => {
                    answer(LIBRARY, function, Err(fault));
                    FAILED
                }
            };
            self.status.write(end);
        }
    }
}

/// Writes the variables of all complete operations. Calls about messages begin and end with it.
#[inline(always)]
pub fn settle() {
    if !BEGUN.get().requests.is_empty() {
        settle_some();
    }
}

#[cold]
fn settle_some() {
    let begun = BEGUN.get();
    let mut at = 0;
    while at < begun.requests.len() {
        let (mut done, mut status) = (0, rg::Status::default());
        // SAFETY: the request is valid, and the results point to local variables.
        let code = unsafe { rg::rg_test(&mut begun.requests[at], &mut done, &mut status) };
        if done == 0 && code == rg::OK {
            at += 1;
            continue;
        }
        begun.end(at, code, &status);
    }
}

impl Begun {
    fn end(&mut self, at: usize, code: c_int, status: &rg::Status) {
        // Keep the order: operations with equal arguments must complete in the order in which they were started.
        self.requests.remove(at);
        let outputs = self.outputs.remove(at);
        // SAFETY: by the C contract of the call that started the operation the pointers are still valid.
        unsafe { outputs.tell(code, status) };
    }
}

/// Adds an operation, which may be complete already.
///
/// # Safety
/// The pointers are valid until the operation completes.
unsafe fn keep(request: rg::Request, outputs: Outputs) {
    let begun = BEGUN.get();
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { outputs.status.write(PENDING) };
    begun.requests.push(request);
    begun.outputs.push(outputs);
    settle_some();
}

/// Fails if `status` is NULL.
fn require_status(status: *mut c_int) -> Result<(), Fault> {
    match status.is_null() {
        true => Err(Fault::says("the pointer for the status is NULL")),
        false => Ok(()),
    }
}

/// Starts a send. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exsend(
    buf: *const c_void,
    len: c_int,
    dest: *const c_int,
    kind: *const c_int,
    status: *mut c_int,
) -> c_int {
    call("exsend", || {
        require_status(status)?;
        let bytes = length(len)?;
        let mut request = rg::REQUEST_NULL;
        // SAFETY: by the C contract the buffer stays valid until completion, and the pointers are valid.
        unsafe {
            let Some(to) = Address::read(dest, kind)? else {
                status.write(0);
                return Ok(0);
            };
            checked(rg::rg_isend(
                buf,
                bytes,
                to.task,
                to.tag,
                CHANNEL,
                &mut request,
            ))?;
            let outputs = Outputs {
                src: std::ptr::null_mut(),
                kind: std::ptr::null_mut(),
                status,
                length: len,
            };
            keep(request, outputs);
        }
        Ok(0)
    })
}

/// Starts a receive. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exreceive(
    buf: *mut c_void,
    len: c_int,
    src: *mut c_int,
    kind: *mut c_int,
    status: *mut c_int,
) -> c_int {
    call("exreceive", || {
        require_status(status)?;
        let room = length(len)?;
        let mut request = rg::REQUEST_NULL;
        // SAFETY: by the C contract the buffer and the pointers stay valid until completion.
        unsafe {
            let Some(choice) = Choice::read(src, kind)? else {
                status.write(0);
                return Ok(0);
            };
            let (task, tag) = (choice.task, choice.tag);
            checked(rg::rg_irecv(buf, room, task, tag, CHANNEL, &mut request))?;
            handlers::note_read(task, tag);
            let outputs = Outputs {
                src,
                kind,
                status,
                length: -1,
            };
            keep(request, outputs);
        }
        Ok(0)
    })
}

/// Waits until the operation with this status is complete, and returns the status. An addition of Regatta's; Express
/// programs poll instead.
#[unsafe(no_mangle)]
unsafe extern "C" fn exwait(status: *mut c_int) -> c_int {
    call("exwait", || {
        require_status(status)?;
        settle();
        let begun = BEGUN.get();
        if let Some(at) = begun
            .outputs
            .iter()
            .position(|outputs| outputs.status == status)
        {
            let mut end = rg::Status::default();
            let request = &mut begun.requests[at];
            let code = match left::is_host() {
                true => left::await_end(request, &mut end)?,
                // SAFETY: the request is valid, and the result points to a local variable.
                false => unsafe { rg::rg_wait(request, &mut end) },
            };
            match code {
                // Only the wait has failed; the request is still pending until the other nodes have received.
                rg::ERR_CYCLE => return Err(Fault::Regatta),
                _ => begun.end(at, code, &end),
            }
        }
        // SAFETY: by the C contract `status` is valid.
        Ok(unsafe { *status })
    })
}
