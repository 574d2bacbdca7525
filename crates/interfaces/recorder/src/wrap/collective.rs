//! Calls of all members of a group.

use std::ffi::{c_char, c_int, c_void};

use regatta_abi::{Group, IN_PLACE, OK, Op, Request};

use crate::real::real;
use crate::wrap::wrap;

/// Bytes of an element of this type.
fn size(kind: c_int) -> usize {
    match kind {
        1 | 5 => 1,
        2 | 6 => 2,
        3 | 7 | 9 => 4,
        4 | 8 | 10 => 8,
        11 => 16,
        _ => usize::try_from(kind - 0x10000).unwrap_or_default(),
    }
}

/// Members of a group, of which a call has just succeeded; 0: there is no such group any more.
fn members(group: Group) -> usize {
    // SAFETY: the function takes whatever handle.
    let size: c_int = unsafe { real!(rg_size(group: Group)) };
    usize::try_from(size).unwrap_or_default()
}

/// Bytes that a task gives to all members of a group, where each gets its own.
///
/// # Safety
/// `lens` has a length for each member, as a call that succeeded has found them.
unsafe fn given(lens: *const usize, group: Group) -> usize {
    if lens.is_null() {
        return 0;
    }
    // SAFETY: as the caller promises.
    let lens = unsafe { std::slice::from_raw_parts(lens, members(group)) };
    lens.iter().fold(0, |sum, len| sum.wrapping_add(*len))
}

/// Bytes that a task gives to all, of a call that has succeeded: in place they lie in its part of the output.
///
/// # Safety
/// `lens` has a length for each member.
unsafe fn own(input: *const c_void, len: usize, lens: *const usize, group: Group) -> usize {
    if input.addr() != IN_PLACE || lens.is_null() {
        return len;
    }
    // SAFETY: the function takes whatever handle.
    let rank: c_int = unsafe { real!(rg_rank(group: Group)) };
    match usize::try_from(rank) {
        // SAFETY: as the caller promises, and a rank is below the number of members.
        Ok(rank) => unsafe { *lens.add(rank) },
        Err(_) => len,
    }
}

wrap! {
    fn rg_barrier(group: Group)
    fn rg_ibarrier(group: Group, request: *mut Request)
    fn rg_broadcast(buf: *mut c_void, len: usize, root: c_int, group: Group)
        note |span, _result| { span.bytes(len); }
    fn rg_ibroadcast(buf: *mut c_void, len: usize, root: c_int, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(len); }
    fn rg_reduce(input: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: Op, root: c_int, group: Group)
        note |span, _result| { span.bytes(count.wrapping_mul(size(kind))); }
    fn rg_ireduce(input: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: Op, root: c_int, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(count.wrapping_mul(size(kind))); }
    fn rg_allreduce(input: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: Op, group: Group)
        note |span, _result| { span.bytes(count.wrapping_mul(size(kind))); }
    fn rg_iallreduce(input: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: Op, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(count.wrapping_mul(size(kind))); }
    fn rg_scan(input: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: Op, group: Group)
        note |span, _result| { span.bytes(count.wrapping_mul(size(kind))); }
    fn rg_iscan(input: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: Op, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(count.wrapping_mul(size(kind))); }
    fn rg_exscan(input: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: Op, group: Group)
        note |span, _result| { span.bytes(count.wrapping_mul(size(kind))); }
    fn rg_iexscan(input: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: Op, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(count.wrapping_mul(size(kind))); }
    fn rg_reduce_scatter(input: *const c_void, out: *mut c_void, counts: *const usize, kind: c_int, op: Op, group: Group)
    fn rg_ireduce_scatter(input: *const c_void, out: *mut c_void, counts: *const usize, kind: c_int, op: Op, group: Group, request: *mut Request)
    fn rg_gather(input: *const c_void, len: usize, out: *mut c_void, root: c_int, group: Group)
        note |span, _result| { span.bytes(len); }
    fn rg_igather(input: *const c_void, len: usize, out: *mut c_void, root: c_int, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(len); }
    fn rg_gatherv(input: *const c_void, len: usize, out: *mut c_void, lens: *const usize, offsets: *const usize, root: c_int, group: Group)
        note |span, _result| { span.bytes(len); }
    fn rg_igatherv(input: *const c_void, len: usize, out: *mut c_void, lens: *const usize, offsets: *const usize, root: c_int, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(len); }
    fn rg_scatter(input: *const c_void, out: *mut c_void, len: usize, root: c_int, group: Group)
        note |span, _result| { span.bytes(len); }
    fn rg_iscatter(input: *const c_void, out: *mut c_void, len: usize, root: c_int, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(len); }
    fn rg_scatterv(input: *const c_void, lens: *const usize, offsets: *const usize, out: *mut c_void, len: usize, root: c_int, group: Group)
        note |span, _result| { span.bytes(len); }
    fn rg_iscatterv(input: *const c_void, lens: *const usize, offsets: *const usize, out: *mut c_void, len: usize, root: c_int, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(len); }
    fn rg_allgather(input: *const c_void, len: usize, out: *mut c_void, group: Group)
        note |span, _result| { span.bytes(len); }
    fn rg_iallgather(input: *const c_void, len: usize, out: *mut c_void, group: Group, request: *mut Request)
        note |span, _result| { span.bytes(len); }
    fn rg_allgatherv(input: *const c_void, len: usize, out: *mut c_void, lens: *const usize, offsets: *const usize, group: Group)
        // SAFETY: the call has succeeded with these lengths.
        note |span, result| { if result == OK { span.bytes(unsafe { own(input, len, lens, group) }); } }
    fn rg_iallgatherv(input: *const c_void, len: usize, out: *mut c_void, lens: *const usize, offsets: *const usize, group: Group, request: *mut Request)
        // SAFETY: the call has succeeded with these lengths.
        note |span, result| { if result == OK { span.bytes(unsafe { own(input, len, lens, group) }); } }
    fn rg_alltoall(input: *const c_void, len: usize, out: *mut c_void, group: Group)
        note |span, result| { if result == OK { span.bytes(len.wrapping_mul(members(group))); } }
    fn rg_ialltoall(input: *const c_void, len: usize, out: *mut c_void, group: Group, request: *mut Request)
        note |span, result| { if result == OK { span.bytes(len.wrapping_mul(members(group))); } }
    fn rg_alltoallv(input: *const c_void, in_lens: *const usize, in_offsets: *const usize, out: *mut c_void, out_lens: *const usize, out_offsets: *const usize, group: Group)
        // SAFETY: the call has succeeded with these lengths.
        note |span, result| { if result == OK { span.bytes(unsafe { given(in_lens, group) }); } }
    fn rg_ialltoallv(input: *const c_void, in_lens: *const usize, in_offsets: *const usize, out: *mut c_void, out_lens: *const usize, out_offsets: *const usize, group: Group, request: *mut Request)
        // SAFETY: the call has succeeded with these lengths.
        note |span, result| { if result == OK { span.bytes(unsafe { given(in_lens, group) }); } }

    fn rg_group_dup(group: Group, out: *mut Group)
    fn rg_group_select(group: Group, n: c_int, ranks: *const c_int, out: *mut Group)
    fn rg_igroup_dup(group: Group, out: *mut Group, request: *mut Request)
    fn rg_group_select_tagged(group: Group, n: c_int, ranks: *const c_int, tag: c_int, out: *mut Group)
    fn rg_group_split(group: Group, colour: c_int, key: c_int, out: *mut Group)
    fn rg_group_shrink(group: Group, out: *mut Group)
    fn rg_group_revoke(group: Group)
    fn rg_group_tie(group: Group, other: Group)
    fn rg_group_tolerate_left(group: Group, threads: c_int)
    fn rg_agree(flag: *mut c_int, group: Group)
    fn rg_iagree(flag: *mut c_int, group: Group, request: *mut Request)
    fn rg_group_free(group: Group)
    fn rg_acknowledge_dead(group: Group, dead: *mut c_int)

    fn rg_meet(group: *const c_char, count: c_int)
    fn rg_meet_members(group: *const c_char, count: c_int, tids: *mut c_int, capacity: c_int, members: *mut c_int)
}
