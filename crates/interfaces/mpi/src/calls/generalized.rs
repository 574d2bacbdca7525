//! Generalized requests, which the program completes.
//!
//! A call that waits for one sleeps in the engine. So each has a request of the engine, which MPI_Grequest_complete
//! completes ([`wake_up`]).

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Error, Result};
use crate::progress;
use crate::requests::{self, Operation, State};
use crate::wake_up;

/// The generalized requests that the program has not completed.
static TAGS: Mutex<Option<HashMap<Request, Open>>> = Mutex::new(None);

/// What MPI_Grequest_complete needs of a request that the program has not completed.
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
    /// Whether the program has completed it, even if the message that wakes waiters has not been received yet.
    completed: Arc<AtomicBool>,
    query: Grequest_query_function,
    free: Grequest_free_function,
    cancel: Grequest_cancel_function,
    extra: *mut c_void,
}

// SAFETY: the program allows any thread that completes the request to call its callbacks with their argument.
unsafe impl Send for Generalized {}

/// Returns the error that a callback of the program has returned.
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
            // SAFETY: the program guarantees that its callback may be called with its own argument.
            unsafe { query(self.extra, &mut status) }
        });
        (status, returned(code, "query"))
    }

    fn free(&mut self) -> Result {
        let code = self.free.take().map_or(SUCCESS, |free| {
            // SAFETY: the program guarantees that its callback may be called with its own argument; once.
            unsafe { free(self.extra) }
        });
        returned(code, "free")
    }
}

impl Drop for Generalized {
    fn drop(&mut self) {
        // There is no caller to which an error could be returned.
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
            // SAFETY: the program guarantees that its callback may be called with its own argument.
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
    request: Out<Request>,
) -> Result {
    let (tag, message) = wake_up::sleep()?;
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
    request.put(made);
    Ok(())
}

pub unsafe fn grequest_complete(request: Request) -> Result {
    let open = tags().get_or_insert_default().remove(&request);
    let Open { tag, completed } = open.ok_or_else(|| {
        let text = "the request is not a generalized one, or is already complete";
        Error::new(ERR_REQUEST, text)
    })?;
    completed.store(true, Ordering::Release);
    wake_up::wake(tag)?;
    // If the request has been freed already, its free callback is called now.
    if !progress::is_idle() {
        progress::advance();
    }
    Ok(())
}
