//! The functions of Regatta's C interface, and its structs and constants. `regatta.h` is their documentation, and has them in this order.
//!
//! The libraries of other interfaces call these; linking with this crate is linking with libregatta.so.
#![allow(missing_docs)]

use std::ffi::{c_char, c_double, c_int, c_void};

pub use regatta_abi::*;

mod jumps;

/// An operator of a program's: the elements of `in` come from lower ranks.
pub type Combine = unsafe extern "C" fn(*const c_void, *mut c_void, usize, *mut c_void);
/// The function that `rg_on_complete` calls.
pub type Callback = unsafe extern "C" fn(*const Status, *mut c_void);

unsafe extern "C" {
    pub fn rg_strerror(code: c_int) -> *const c_char;
    pub fn rg_last_error() -> *const c_char;
    pub fn rg_version() -> *const c_char;
    pub fn rg_init() -> c_int;
    pub fn rg_finalize() -> c_int;
    pub fn rg_enter(job: *const c_char, flags: c_int) -> c_int;
    pub fn rg_may_end(may_end: c_int) -> c_int;
    pub fn rg_halt() -> c_int;
    pub fn rg_abort(code: c_int) -> c_int;
    pub fn rg_initialized() -> c_int;
    pub fn rg_rank(group: Group) -> c_int;
    pub fn rg_size(group: Group) -> c_int;
    pub fn rg_tid() -> c_int;
    pub fn rg_tid_of(group: Group, rank: c_int) -> c_int;
    pub fn rg_host_of(tid: c_int) -> c_int;
    pub fn rg_rank_of(group: Group, tid: c_int) -> c_int;
    pub fn rg_parent() -> c_int;
    pub fn rg_send(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_ssend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_rsend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_bsend(buf: *const c_void, len: usize, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_recv(
        buf: *mut c_void,
        capacity: usize,
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
    pub fn rg_sendrecv(
        sbuf: *const c_void,
        slen: usize,
        to: c_int,
        stag: c_int,
        rbuf: *mut c_void,
        rcapacity: usize,
        from: c_int,
        rtag: c_int,
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
    pub fn rg_issend(
        buf: *const c_void,
        len: usize,
        to: c_int,
        tag: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_irsend(
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
    pub fn rg_recv_masked(
        buf: *mut c_void,
        capacity: usize,
        from: c_int,
        tag: c_int,
        mask: c_int,
        group: Group,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_irecv_masked(
        buf: *mut c_void,
        capacity: usize,
        from: c_int,
        tag: c_int,
        mask: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_probe(from: c_int, tag: c_int, group: Group, status: *mut Status) -> c_int;
    pub fn rg_iprobe(
        from: c_int,
        tag: c_int,
        group: Group,
        found: *mut c_int,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_mprobe(
        from: c_int,
        tag: c_int,
        group: Group,
        message: *mut Message,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_improbe(
        from: c_int,
        tag: c_int,
        group: Group,
        found: *mut c_int,
        message: *mut Message,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_mrecv(
        message: *mut Message,
        buf: *mut c_void,
        capacity: usize,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_imrecv(
        message: *mut Message,
        buf: *mut c_void,
        capacity: usize,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_first_arrived(groups: *const Group, n: c_int, index: *mut c_int) -> c_int;
    pub fn rg_sendv(views: *const View, n: c_int, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_bsendv(views: *const View, n: c_int, to: c_int, tag: c_int, group: Group) -> c_int;
    pub fn rg_recvv(
        views: *const View,
        n: c_int,
        from: c_int,
        tag: c_int,
        group: Group,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_isendv(
        views: *const View,
        n: c_int,
        to: c_int,
        tag: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_irecvv(
        views: *const View,
        n: c_int,
        from: c_int,
        tag: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_mrecvv(
        message: *mut Message,
        views: *const View,
        n: c_int,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_imrecvv(
        message: *mut Message,
        views: *const View,
        n: c_int,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_wait(request: *mut Request, status: *mut Status) -> c_int;
    pub fn rg_test(request: *mut Request, done: *mut c_int, status: *mut Status) -> c_int;
    pub fn rg_look(request: Request, done: *mut c_int, status: *mut Status) -> c_int;
    pub fn rg_waitall(n: c_int, requests: *mut Request, statuses: *mut Status) -> c_int;
    pub fn rg_waitany(
        n: c_int,
        requests: *mut Request,
        index: *mut c_int,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_testall(
        n: c_int,
        requests: *mut Request,
        done: *mut c_int,
        statuses: *mut Status,
    ) -> c_int;
    pub fn rg_testany(
        n: c_int,
        requests: *mut Request,
        index: *mut c_int,
        done: *mut c_int,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_on_complete(request: *mut Request, done: Option<Callback>, arg: *mut c_void)
    -> c_int;
    pub fn rg_cancel(request: Request, cancelled: *mut c_int) -> c_int;
    pub fn rg_progress() -> c_int;
    pub fn rg_fd(fd: *mut c_int) -> c_int;
    pub fn rg_clear_fd() -> c_int;
    pub fn rg_raise_fd() -> c_int;
    pub fn rg_loan(len: usize, block: *mut *mut c_void) -> c_int;
    pub fn rg_loan_send(
        block: *mut c_void,
        len: usize,
        to: c_int,
        tag: c_int,
        group: Group,
    ) -> c_int;
    pub fn rg_loan_recv(
        block: *mut *mut c_void,
        from: c_int,
        tag: c_int,
        group: Group,
        status: *mut Status,
    ) -> c_int;
    pub fn rg_loan_free(block: *mut c_void) -> c_int;
    pub fn rg_loan_share(block: *mut c_void, to: c_int, group: Group, name: *mut u64) -> c_int;
    pub fn rg_loan_open(name: u64, len: usize, block: *mut *const c_void) -> c_int;
    pub fn rg_loan_close(name: u64) -> c_int;
    pub fn rg_group_dup(group: Group, out: *mut Group) -> c_int;
    pub fn rg_igroup_dup(group: Group, out: *mut Group, request: *mut Request) -> c_int;
    pub fn rg_group_select(group: Group, n: c_int, ranks: *const c_int, out: *mut Group) -> c_int;
    pub fn rg_group_select_tagged(
        group: Group,
        n: c_int,
        ranks: *const c_int,
        tag: c_int,
        out: *mut Group,
    ) -> c_int;
    pub fn rg_group_split(group: Group, colour: c_int, key: c_int, out: *mut Group) -> c_int;
    pub fn rg_group_shrink(group: Group, out: *mut Group) -> c_int;
    pub fn rg_group_revoke(group: Group) -> c_int;
    pub fn rg_group_is_revoked(group: Group) -> c_int;
    pub fn rg_group_tie(group: Group, other: Group) -> c_int;
    pub fn rg_group_tolerate_left(group: Group, threads: c_int) -> c_int;
    pub fn rg_agree(flag: *mut c_int, group: Group) -> c_int;
    pub fn rg_iagree(flag: *mut c_int, group: Group, request: *mut Request) -> c_int;
    pub fn rg_group_free(group: Group) -> c_int;
    pub fn rg_acknowledge_dead(group: Group, dead: *mut c_int) -> c_int;
    pub fn rg_dead(group: Group, ranks: *mut c_int, capacity: c_int, count: *mut c_int) -> c_int;
    pub fn rg_op_create(
        combine: Option<Combine>,
        arg: *mut c_void,
        commutative: c_int,
        op: *mut Op,
    ) -> c_int;
    pub fn rg_op_free(op: Op) -> c_int;
    pub fn rg_barrier(group: Group) -> c_int;
    pub fn rg_broadcast(buf: *mut c_void, len: usize, root: c_int, group: Group) -> c_int;
    pub fn rg_reduce(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        root: c_int,
        group: Group,
    ) -> c_int;
    pub fn rg_allreduce(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        group: Group,
    ) -> c_int;
    pub fn rg_scan(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        group: Group,
    ) -> c_int;
    pub fn rg_exscan(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        group: Group,
    ) -> c_int;
    pub fn rg_reduce_scatter(
        input: *const c_void,
        out: *mut c_void,
        counts: *const usize,
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
    pub fn rg_scatter(
        input: *const c_void,
        out: *mut c_void,
        len: usize,
        root: c_int,
        group: Group,
    ) -> c_int;
    pub fn rg_scatterv(
        input: *const c_void,
        lens: *const usize,
        offsets: *const usize,
        out: *mut c_void,
        len: usize,
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
    pub fn rg_ibarrier(group: Group, request: *mut Request) -> c_int;
    pub fn rg_ibroadcast(
        buf: *mut c_void,
        len: usize,
        root: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_ireduce(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        root: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_iallreduce(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_iscan(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_iexscan(
        input: *const c_void,
        out: *mut c_void,
        count: usize,
        kind: c_int,
        op: Op,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_ireduce_scatter(
        input: *const c_void,
        out: *mut c_void,
        counts: *const usize,
        kind: c_int,
        op: Op,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_igather(
        input: *const c_void,
        len: usize,
        out: *mut c_void,
        root: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_igatherv(
        input: *const c_void,
        len: usize,
        out: *mut c_void,
        lens: *const usize,
        offsets: *const usize,
        root: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_iscatter(
        input: *const c_void,
        out: *mut c_void,
        len: usize,
        root: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_iscatterv(
        input: *const c_void,
        lens: *const usize,
        offsets: *const usize,
        out: *mut c_void,
        len: usize,
        root: c_int,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_iallgather(
        input: *const c_void,
        len: usize,
        out: *mut c_void,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_iallgatherv(
        input: *const c_void,
        len: usize,
        out: *mut c_void,
        lens: *const usize,
        offsets: *const usize,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_ialltoall(
        input: *const c_void,
        len: usize,
        out: *mut c_void,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_ialltoallv(
        input: *const c_void,
        in_lens: *const usize,
        in_offsets: *const usize,
        out: *mut c_void,
        out_lens: *const usize,
        out_offsets: *const usize,
        group: Group,
        request: *mut Request,
    ) -> c_int;
    pub fn rg_spawn(
        program: *const c_char,
        argv: *const *const c_char,
        options: *const SpawnOptions,
        count: c_int,
        tids: *mut c_int,
        started: *mut c_int,
    ) -> c_int;
    pub fn rg_signal(tid: c_int, signal: c_int) -> c_int;
    pub fn rg_kill(tid: c_int) -> c_int;
    pub fn rg_tasks(tasks: *mut Task, capacity: c_int, count: *mut c_int) -> c_int;
    pub fn rg_hosts(hosts: *mut Host, capacity: c_int, count: *mut c_int) -> c_int;
    pub fn rg_clock(host: c_int, microseconds: *mut i64) -> c_int;
    pub fn rg_add_hosts(lines: *const *const c_char, count: c_int, numbers: *mut c_int) -> c_int;
    pub fn rg_remove_hosts(names: *const *const c_char, count: c_int, numbers: *mut c_int)
    -> c_int;
    pub fn rg_add_host_file(text: *const c_char, added: *mut c_int) -> c_int;
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
    pub fn rg_notify(
        kind: c_int,
        what: c_int,
        tag: c_int,
        group: Group,
        watch: *mut c_int,
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
    pub fn rg_add(name: *const c_char, index: c_int, amount: i64, before: *mut i64) -> c_int;
    pub fn rg_delete(name: *const c_char, index: c_int) -> c_int;
    pub fn rg_names(
        pattern: *const c_char,
        entries: *mut Entry,
        capacity: c_int,
        count: *mut c_int,
    ) -> c_int;
    pub fn rg_join(group: *const c_char, number: *mut c_int) -> c_int;
    pub fn rg_leave(group: *const c_char) -> c_int;
    pub fn rg_members(
        group: *const c_char,
        tids: *mut c_int,
        capacity: c_int,
        count: *mut c_int,
    ) -> c_int;
    pub fn rg_meet(group: *const c_char, count: c_int) -> c_int;
    pub fn rg_meet_members(
        group: *const c_char,
        count: c_int,
        tids: *mut c_int,
        capacity: c_int,
        members: *mut c_int,
    ) -> c_int;
    pub fn rg_named_groups(groups: *mut NamedGroup, capacity: c_int, count: *mut c_int) -> c_int;
    pub fn rg_waiting(
        group: *const c_char,
        tids: *mut c_int,
        capacity: c_int,
        count: *mut c_int,
    ) -> c_int;
    pub fn rg_time() -> c_double;
    pub fn rg_path(group: Group, rank: c_int, text: *mut c_char, size: usize) -> c_int;
    pub fn rg_mark(name: *const c_char) -> c_int;
    pub fn rg_toggle(name: *const c_char, on: c_int) -> c_int;
    pub fn rg_profile(on: c_int) -> c_int;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The names of functions in a text, by the word before the name of each.
    fn functions(text: &str, before: impl Fn(&str) -> bool) -> BTreeSet<&str> {
        let ends = text.match_indices('(').map(|(at, _)| &text[..at]);
        let named = ends.filter_map(|end| {
            let start = end.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')? + 1;
            let name = &end[start..];
            (name.starts_with("rg_") && before(&end[..start])).then_some(name)
        });
        named.collect()
    }

    #[test]
    fn each_function_of_the_header_is_here_and_no_other() {
        let header = include_str!("../../c/include/regatta.h");
        let code: String = header
            .split("/*")
            .map(|part| part.split_once("*/").map_or(part, |(_, code)| code))
            .collect();
        let declared = functions(&code, |before| !before.ends_with('('));
        let here = functions(include_str!("lib.rs"), |before| before.ends_with("pub fn "));
        assert!(declared.len() > 100);
        assert_eq!(here, declared);
    }
}
