//! The functions of Regatta's C interface that are used here, and its structs and constants. `regatta.h` is their documentation.

use std::ffi::{c_char, c_double, c_int, c_void};

pub use regatta_abi::*;

unsafe extern "C" {
    pub fn rg_enter(job: *const c_char, flags: c_int) -> c_int;
    pub fn rg_finalize() -> c_int;
    pub fn rg_halt() -> c_int;
    pub fn rg_last_error() -> *const c_char;
    pub fn rg_tid() -> c_int;
    pub fn rg_host_of(tid: c_int) -> c_int;
    pub fn rg_parent() -> c_int;
    pub fn rg_size(group: Group) -> c_int;
    pub fn rg_tid_of(group: Group, rank: c_int) -> c_int;
    pub fn rg_bsend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_bsendv(views: *const View, n: c_int, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_recvv(
        views: *const View,
        n: c_int,
        from: c_int,
        tag: c_int,
        group: Group,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_recv_within(
        buf: *mut c_void,
        capacity: usize,
        from: c_int,
        tag: c_int,
        group: Group,
        seconds: c_double,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_recv_passed(
        buf: *mut c_void,
        capacity: usize,
        from: c_int,
        tag: c_int,
        group: Group,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_pass_over() -> c_int;
    pub fn rg_loan(len: usize, block: *mut *mut c_void) -> c_int;
    pub fn rg_loan_free(block: *mut c_void) -> c_int;
    pub fn rg_loan_share(block: *mut c_void, to: c_int, group: Group, name: *mut u64) -> c_int;
    pub fn rg_loan_open(name: u64, len: usize, block: *mut *const c_void) -> c_int;
    pub fn rg_loan_close(name: u64) -> c_int;
    pub fn rg_fd(fd: *mut c_int) -> c_int;
    pub fn rg_clear_fd() -> c_int;
    pub fn rg_raise_fd() -> c_int;
    pub fn rg_first_arrived(groups: *const Group, n: c_int, index: *mut c_int) -> c_int;
    pub fn rg_spawn(
        program: *const c_char,
        argv: *const *const c_char,
        options: *const SpawnOptions,
        count: c_int,
        tids: *mut c_int,
        started: *mut c_int,
    ) -> c_int;
    pub fn rg_signal(tid: c_int, signal: c_int) -> c_int;
    pub fn rg_tasks(tasks: *mut Task, capacity: c_int, count: *mut c_int) -> c_int;
    pub fn rg_hosts(hosts: *mut Host, capacity: c_int, count: *mut c_int) -> c_int;
    pub fn rg_add_hosts(lines: *const *const c_char, count: c_int, numbers: *mut c_int) -> c_int;
    pub fn rg_remove_hosts(names: *const *const c_char, count: c_int, numbers: *mut c_int)
    -> c_int;
    pub fn rg_add_host_file(text: *const c_char, added: *mut c_int) -> c_int;
    pub fn rg_notify(
        kind: c_int,
        what: c_int,
        tag: c_int,
        group: Group,
        watch: *mut c_int,
    ) -> c_int;
    pub fn rg_start_others(tag: c_int, group: Group) -> c_int;
    pub fn rg_has_ended(tid: c_int, status: c_int) -> c_int;
    pub fn rg_begin_hosting(tag: c_int, group: Group) -> c_int;
    pub fn rg_end_hosting() -> c_int;
    pub fn rg_hosts_started(
        request: u32,
        count: c_int,
        hosts: *const c_int,
        codes: *const c_int,
        lines: *const *const c_char,
    ) -> c_int;
    pub fn rg_notify_cancel(watch: c_int, pending: *mut c_int) -> c_int;
    pub fn rg_put(
        name: *const c_char,
        value: *const c_void,
        len: usize,
        index: c_int,
        flags: c_int,
        placed: *mut c_int,
    ) -> c_int;
    pub fn rg_get(
        name: *const c_char,
        index: c_int,
        flags: c_int,
        value: *mut c_void,
        capacity: usize,
        len: *mut usize,
        found: *mut c_int,
    ) -> c_int;
    pub fn rg_delete(name: *const c_char, index: c_int) -> c_int;
    pub fn rg_join(group: *const c_char, number: *mut c_int) -> c_int;
    pub fn rg_leave(group: *const c_char) -> c_int;
    pub fn rg_members(
        group: *const c_char,
        tids: *mut c_int,
        capacity: c_int,
        count: *mut c_int,
    ) -> c_int;
    pub fn rg_meet_members(
        group: *const c_char,
        count: c_int,
        tids: *mut c_int,
        capacity: c_int,
        members: *mut c_int,
    ) -> c_int;
    pub fn rg_clock(host: c_int, microseconds: *mut i64) -> c_int;
    pub fn rg_named_groups(groups: *mut NamedGroup, capacity: c_int, count: *mut c_int) -> c_int;
    pub fn rg_waiting(
        group: *const c_char,
        tids: *mut c_int,
        capacity: c_int,
        count: *mut c_int,
    ) -> c_int;
    pub fn rg_names(
        pattern: *const c_char,
        entries: *mut Entry,
        capacity: c_int,
        count: *mut c_int,
    ) -> c_int;
}
