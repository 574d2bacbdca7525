//! Loans: messages that are written and read in place.

use std::ffi::{c_int, c_void};

use regatta_process::{self as process, Views};

use crate::error::{NOTHING, OK, answer, fail};
use crate::memory::{GroupHandle, RgGroup, RgStatus, output};
use crate::message::report;

fn start(views: &Views) -> *mut c_void {
    views
        .contiguous()
        .map_or(std::ptr::null_mut(), |at| at.cast())
}

#[unsafe(no_mangle)]
extern "C" fn rg_loan(len: usize, block: *mut *mut c_void) -> c_int {
    answer(output(block, "block").and_then(|place| {
        *place = start(&process::lend(len)?);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rg_loan_send(
    block: *mut c_void,
    len: usize,
    to: c_int,
    tag: c_int,
    group: RgGroup,
) -> c_int {
    answer(process::send_loan(block as usize, len, to, tag, group.id()))
}

#[unsafe(no_mangle)]
extern "C" fn rg_loan_recv(
    block: *mut *mut c_void,
    from: c_int,
    tag: c_int,
    group: RgGroup,
    status: *mut RgStatus,
) -> c_int {
    let place = match output(block, "block") {
        Ok(place) => place,
        Err(error) => return fail(&error),
    };
    match process::receive_loan(from, process::tag_select(tag), group.id()) {
        Ok((views, told)) => {
            *place = start(&views);
            report(&told, None, status)
        }
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_loan_free(block: *mut c_void) -> c_int {
    if block.is_null() {
        return answer(process::check_process());
    }
    answer(process::free_loan(block as usize))
}

#[unsafe(no_mangle)]
extern "C" fn rg_loan_share(
    block: *mut c_void,
    to: c_int,
    group: RgGroup,
    name: *mut u64,
) -> c_int {
    let shared = output(name, "name").and_then(|place| {
        let name = process::share_loan(block as usize, to, group.id())?;
        *place = name.unwrap_or(0);
        Ok(name.is_some())
    });
    match shared {
        Ok(true) => OK,
        Ok(false) => NOTHING,
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_loan_open(name: u64, len: usize, block: *mut *const c_void) -> c_int {
    answer(output(block, "block").and_then(|place| {
        *place = process::open_loan(name, len)?.cast();
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rg_loan_close(name: u64) -> c_int {
    answer(process::close_loan(name))
}
