//! The functions of Regatta's C interface that are used by these interfaces, and its structs and constants. `regatta.h` is their documentation.

use std::ffi::{c_char, c_int, c_void};

pub use regatta_abi::*;

/// An operator of a program's: the elements of `in` come from lower ranks.
pub type Combine = unsafe extern "C" fn(*const c_void, *mut c_void, usize, *mut c_void);

unsafe extern "C" {
    pub fn rg_init() -> c_int;
    pub fn rg_finalize() -> c_int;
    pub fn rg_initialized() -> c_int;
    pub fn rg_last_error() -> *const c_char;
    pub fn rg_tid() -> c_int;
    pub fn rg_rank(group: Group) -> c_int;
    pub fn rg_size(group: Group) -> c_int;
    pub fn rg_tid_of(group: Group, rank: c_int) -> c_int;
    pub fn rg_bsend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_recv(
        buf: *mut c_void,
        capacity: usize,
        from: c_int,
        tag: c_int,
        group: Group,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_bsendv(views: *const View, n: c_int, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_recvv(
        views: *const View,
        n: c_int,
        from: c_int,
        tag: c_int,
        group: Group,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_isend(
        buf: *const c_void,
        len: usize,
        to: c_int,
        tag: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_irecv(
        buf: *mut c_void,
        capacity: usize,
        from: c_int,
        tag: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_test(request: *mut Request, done: *mut c_int, status: *mut Status) -> c_int;
    pub fn rg_wait(request: *mut Request, status: *mut Status) -> c_int;
    pub fn rg_iprobe(
        from: c_int,
        tag: c_int,
        group: Group,
        found: *mut c_int,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_fd(fd: *mut c_int) -> c_int;
    pub fn rg_clear_fd() -> c_int;
    pub fn rg_group_select(group: Group, n: c_int, ranks: *const c_int, out: *mut Group) -> c_int;
    pub fn rg_op_create(
        combine: Option<Combine>,
        arg: *mut c_void,
        commutative: c_int,
        op: *mut Op,
    ) -> c_int;
    pub fn rg_parent() -> c_int;
    pub fn rg_kill(tid: c_int) -> c_int;
    pub fn rg_spawn(
        program: *const c_char,
        argv: *const *const c_char,
        options: *const SpawnOptions,
        count: c_int,
        tids: *mut c_int,
        started: *mut c_int,
    ) -> c_int;
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
    pub fn rg_names(
        pattern: *const c_char,
        entries: *mut c_void,
        capacity: c_int,
        count: *mut c_int,
    ) -> c_int;
    pub fn rg_barrier(group: Group) -> c_int;
    pub fn rg_broadcast(buf: *mut c_void, len: usize, root: c_int, group: Group) -> c_int;
    pub fn rg_allreduce(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        group: Group,
    ) -> c_int;
    pub fn rg_gather(
        input: *const c_void,
        len: usize,
        out: *mut c_void,
        root: c_int,
        group: Group,
    ) -> c_int;
    pub fn rg_gatherv(
        input: *const c_void,
        len: usize,
        out: *mut c_void,
        lens: *const usize,
        offsets: *const usize,
        root: c_int,
        group: Group,
    ) -> c_int;
    pub fn rg_allgather(input: *const c_void, len: usize, out: *mut c_void, group: Group) -> c_int;
    pub fn rg_allgatherv(
        input: *const c_void,
        len: usize,
        out: *mut c_void,
        lens: *const usize,
        offsets: *const usize,
        group: Group,
    ) -> c_int;
    pub fn rg_alltoall(input: *const c_void, len: usize, out: *mut c_void, group: Group) -> c_int;
    pub fn rg_alltoallv(
        input: *const c_void,
        in_lens: *const usize,
        in_offsets: *const usize,
        out: *mut c_void,
        out_lens: *const usize,
        out_offsets: *const usize,
        group: Group,
    ) -> c_int;
}
