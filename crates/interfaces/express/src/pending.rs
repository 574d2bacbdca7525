//! `exsend`, `exreceive`: begun, and complete when the program's `status` says so.
//!
//! Each call of the library looks whether what was begun is complete, if anything is: no thread works beside the program.

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

/// The places of a program that are told of the end.
#[derive(Clone, Copy)]
struct Told {
    /// NULL for a send.
    src: *mut c_int,
    kind: *mut c_int,
    status: *mut c_int,
    /// The length of a send.
    length: c_int,
}

/// Requests that are not complete, and whom to tell, in the same order.
struct Begun {
    requests: Vec<rg::Request>,
    told: Vec<Told>,
}

static BEGUN: Own<Begun> = Own::new(Begun {
    requests: Vec::new(),
    told: Vec::new(),
});

impl Told {
    /// Tells the program. A message that was cut off is a failure, told like one.
    ///
    /// # Safety
    /// Places that the program has given, and still has.
    unsafe fn tell(self, code: c_int, status: &rg::Status) {
        // SAFETY: the caller's.
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

/// Tells the program what is complete. Calls about messages begin and end with it.
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
        // SAFETY: a request of ours, and places for the answers.
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
        // In order, so that a program sees the ends of equal ones in the order of their beginnings.
        self.requests.remove(at);
        let told = self.told.remove(at);
        // SAFETY: the C contract of the call that began it.
        unsafe { told.tell(code, status) };
    }
}

/// Remembers what was begun, or tells its end if that has come.
///
/// # Safety
/// The places are the program's.
unsafe fn keep(request: rg::Request, told: Told) {
    let begun = BEGUN.get();
    // SAFETY: the caller's.
    unsafe { told.status.write(PENDING) };
    begun.requests.push(request);
    begun.told.push(told);
    settle_some();
}

/// Refuses a call without a place for its end.
fn place(status: *mut c_int) -> Result<(), Fault> {
    match status.is_null() {
        true => Err(Fault::says("no place is given for the status")),
        false => Ok(()),
    }
}

/// Begin to send. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exsend(
    buf: *const c_void,
    len: c_int,
    dest: *const c_int,
    kind: *const c_int,
    status: *mut c_int,
) -> c_int {
    call("exsend", || {
        place(status)?;
        let bytes = length(len)?;
        let mut request = rg::REQUEST_NULL;
        // SAFETY: the C contract: a buffer that stays until the end, numbers, and a place for the status.
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
            let told = Told {
                src: std::ptr::null_mut(),
                kind: std::ptr::null_mut(),
                status,
                length: len,
            };
            keep(request, told);
        }
        Ok(0)
    })
}

/// Begin to receive. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn exreceive(
    buf: *mut c_void,
    len: c_int,
    src: *mut c_int,
    kind: *mut c_int,
    status: *mut c_int,
) -> c_int {
    call("exreceive", || {
        place(status)?;
        let room = length(len)?;
        let mut request = rg::REQUEST_NULL;
        // SAFETY: the C contract: room that stays until the end, and places that do.
        unsafe {
            let Some(choice) = Choice::read(src, kind)? else {
                status.write(0);
                return Ok(0);
            };
            let (task, tag) = (choice.task, choice.tag);
            checked(rg::rg_irecv(buf, room, task, tag, CHANNEL, &mut request))?;
            handlers::note_read(task, tag);
            let told = Told {
                src,
                kind,
                status,
                length: -1,
            };
            keep(request, told);
        }
        Ok(0)
    })
}

/// Wait until what has this status is complete; the status. Regatta's own call: Express' programs do other work meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn exwait(status: *mut c_int) -> c_int {
    call("exwait", || {
        place(status)?;
        settle();
        let begun = BEGUN.get();
        if let Some(at) = begun.told.iter().position(|told| told.status == status) {
            let mut end = rg::Status::default();
            let request = &mut begun.requests[at];
            let code = match left::is_host() {
                true => left::await_end(request, &mut end)?,
                // SAFETY: a request of ours, and a place for the answer.
                false => unsafe { rg::rg_wait(request, &mut end) },
            };
            match code {
                // Only the wait is over: the others have to receive first.
                rg::ERR_CYCLE => return Err(Fault::Regatta),
                _ => begun.end(at, code, &end),
            }
        }
        // SAFETY: the C contract: a number.
        Ok(unsafe { *status })
    })
}
