//! Questions to the launcher.

use std::ffi::{c_char, c_int, c_void};

use regatta_abi::{Entry, Group, Host, NamedGroup, SpawnOptions, Task};

use crate::wrap::wrap;

wrap! {
    fn rg_spawn(program: *const c_char, argv: *const *mut c_char, options: *const SpawnOptions, count: c_int, tids: *mut c_int, started: *mut c_int)
    fn rg_signal(tid: c_int, signal: c_int)
    fn rg_kill(tid: c_int)
    fn rg_tasks(tasks: *mut Task, capacity: c_int, count: *mut c_int)
    fn rg_hosts(hosts: *mut Host, capacity: c_int, count: *mut c_int)
    fn rg_clock(host: c_int, microseconds: *mut i64)
    fn rg_add_hosts(lines: *const *const c_char, count: c_int, numbers: *mut c_int)
    fn rg_remove_hosts(names: *const *const c_char, count: c_int, numbers: *mut c_int)
    fn rg_add_host_file(text: *const c_char, added: *mut c_int)
    fn rg_start_others(tag: c_int, group: Group)
    fn rg_has_ended(tid: c_int, status: c_int)
    fn rg_begin_hosting(tag: c_int, group: Group)
    fn rg_end_hosting()
    fn rg_hosts_started(request: u32, count: c_int, hosts: *const c_int, codes: *const c_int, lines: *const *const c_char)
    fn rg_notify(kind: c_int, what: c_int, tag: c_int, group: Group, watch: *mut c_int)
    fn rg_notify_cancel(watch: c_int, pending: *mut c_int)
    fn rg_put(name: *const c_char, value: *const c_void, len: usize, index: c_int, flags: c_int, placed: *mut c_int)
        note |span, _result| { span.bytes(len); }
    fn rg_get(name: *const c_char, index: c_int, flags: c_int, value: *mut c_void, capacity: usize, len: *mut usize, found: *mut c_int)
    fn rg_add(name: *const c_char, index: c_int, amount: i64, before: *mut i64)
    fn rg_delete(name: *const c_char, index: c_int)
    fn rg_names(pattern: *const c_char, entries: *mut Entry, capacity: c_int, count: *mut c_int)
    fn rg_join(group: *const c_char, number: *mut c_int)
    fn rg_leave(group: *const c_char)
    fn rg_members(group: *const c_char, tids: *mut c_int, capacity: c_int, count: *mut c_int)
    fn rg_named_groups(groups: *mut NamedGroup, capacity: c_int, count: *mut c_int)
    fn rg_waiting(group: *const c_char, tids: *mut c_int, capacity: c_int, count: *mut c_int)
}
