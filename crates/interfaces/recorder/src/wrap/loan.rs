//! Loans: messages that are never copied.

use std::ffi::{c_int, c_void};

use regatta_abi::{Group, OK};

use crate::wrap::wrap;

wrap! {
    fn rg_loan(len: usize, block: *mut *mut c_void)
    fn rg_loan_send(block: *mut c_void, len: usize, to: c_int, tag: c_int, group: Group)
        about(group, to) note |span, result| {
        if result == OK {
            span.sent(group, to, tag, len);
        }
    }
    fn rg_loan_free(block: *mut c_void)
    fn rg_loan_share(block: *mut c_void, to: c_int, group: Group, name: *mut u64) about(group, to)
    fn rg_loan_open(name: u64, len: usize, block: *mut *const c_void) note |span, result| {
        if result == OK {
            span.bytes(len);
        }
    }
    fn rg_loan_close(name: u64)
}
