//! Generalized requests, which the program completes.
//!
//! A call that waits for one sleeps in the engine. So each is a receive of an empty message in the hidden group of MPI_COMM_SELF, which
//! MPI_Grequest_complete sends.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use crate::abi::*;
use crate::communicator::get;
use crate::error::{Error, Result, checked, not_null};
use crate::numbers::Numbers;
use crate::progress;
use crate::requests::{self, Operation, State};

/// The tags of those that are not complete, by their requests.
static TAGS: Mutex<Option<HashMap<Request, Open>>> = Mutex::new(None);
/// Tags in the hidden group of MPI_COMM_SELF: other messages of that group have higher ones.
static NUMBERS: Numbers = Numbers::below(1 << 29);

/// A request that the program has not completed.
struct Open {
    tag: c_int,
    completed: Arc<AtomicBool>,
}

fn tags() -> MutexGuard<'static, Option<HashMap<Request, Open>>> {
    TAGS.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Generalized {
    message: [rg::Request; 1],
    complete: bool,
    /// The program has completed it, whether the message is here or not.
    completed: Arc<AtomicBool>,
    query: Grequest_query_function,
    free: Grequest_free_function,
    cancel: Grequest_cancel_function,
    extra: *mut c_void,
}

// SAFETY: the program gives its functions and their argument for whichever thread completes the request.
unsafe impl Send for Generalized {}

/// The error that a function of the program's has returned.
fn returned(code: c_int, name: &str) -> Result {
    match code {
        SUCCESS => Ok(()),
        code => Err(Error::new(
            code,
            format!("the request's {name} function has returned {code}"),
        )),
    }
}

impl Generalized {
    fn query(&self) -> (Status, Result) {
        let mut status = Status::empty(ANY_SOURCE);
        let code = self.query.map_or(SUCCESS, |query| {
            // SAFETY: the program's function, with its own argument.
            unsafe { query(self.extra, &mut status) }
        });
        (status, returned(code, "query"))
    }

    fn free(&mut self) -> Result {
        let code = self.free.take().map_or(SUCCESS, |free| {
            // SAFETY: as above; once.
            unsafe { free(self.extra) }
        });
        returned(code, "free")
    }
}

impl Drop for Generalized {
    fn drop(&mut self) {
        // There is nobody to whom an error could be returned.
        let _ = self.free();
    }
}

impl Operation for Generalized {
    fn state(&self) -> State {
        if self.complete {
            State::Complete
        } else {
            State::Pending
        }
    }

    fn waits_for(&self) -> &[rg::Request] {
        &self.message
    }

    fn completed(&mut self, _index: usize, _status: &rg::Status, _code: c_int) {
        self.message = [rg::REQUEST_NULL];
        self.complete = true;
    }

    fn finish(&mut self) -> (Status, Result) {
        let (status, queried) = self.query();
        (status, queried.and(self.free()))
    }

    fn look(&self) -> Status {
        self.query().0
    }

    fn cancel(&mut self) -> Result {
        let code = self.cancel.map_or(SUCCESS, |cancel| {
            // SAFETY: the program's function, with its own argument.
            unsafe {
                cancel(
                    self.extra,
                    c_int::from(self.completed.load(Ordering::Acquire)),
                )
            }
        });
        returned(code, "cancel")
    }
}

pub unsafe fn grequest_start(
    query_fn: Grequest_query_function,
    free_fn: Grequest_free_function,
    cancel_fn: Grequest_cancel_function,
    extra_state: *mut c_void,
    request: *mut Request,
) -> Result {
    let hidden = get(COMM_SELF)?.hidden;
    not_null(request, "request")?;
    let (tag, message) = sleep(hidden)?;
    let completed = Arc::new(AtomicBool::new(false));
    let made = Generalized {
        message: [message],
        complete: false,
        completed: completed.clone(),
        query: query_fn,
        free: free_fn,
        cancel: cancel_fn,
        extra: extra_state,
    };
    let made = requests::of_operation(Box::new(made), COMM_SELF)?;
    tags()
        .get_or_insert_default()
        .insert(made, Open { tag, completed });
    // SAFETY: the caller's pointer.
    unsafe { *request = made };
    Ok(())
}

pub unsafe fn grequest_complete(request: Request) -> Result {
    let open = tags().get_or_insert_default().remove(&request);
    let Open { tag, completed } = open.ok_or_else(|| {
        let text = "the request is no generalized one, or has been completed already";
        Error::new(ERR_REQUEST, text)
    })?;
    completed.store(true, Ordering::Release);
    wake(tag)?;
    // If the request has been freed before, this is the moment to free what the program has for it.
    if !progress::is_idle() {
        progress::advance();
    }
    Ok(())
}

/// The receive of an empty message in the hidden group of MPI_COMM_SELF, and its tag, by which [`wake`] completes it.
pub(crate) fn sleep(hidden: rg::Group) -> Result<(c_int, rg::Request)> {
    let taken = NUMBERS.take();
    let taken = taken.ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many requests"))?;
    let (tag, mut message) = (taken as c_int, rg::REQUEST_NULL);
    // SAFETY: the message is empty.
    let code = unsafe { rg::rg_irecv(std::ptr::null_mut(), 0, 0, tag, hidden, &mut message) };
    if code < 0 {
        NUMBERS.give_back(taken);
    }
    checked(code).map(|()| (tag, message))
}

/// Completes that receive, once. Its tag may be another one's from now on.
pub(crate) fn wake(tag: c_int) -> Result {
    let hidden = get(COMM_SELF)?.hidden;
    // SAFETY: the message is empty.
    checked(unsafe { rg::rg_bsend(std::ptr::null(), 0, 0, tag, hidden) })?;
    NUMBERS.give_back(tag as u32);
    Ok(())
}
