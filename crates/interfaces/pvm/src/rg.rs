//! The C interface of Regatta, as far as it is used here. `regatta.h` is its documentation.

use std::ffi::{c_char, c_double, c_int, c_void};

pub const OK: c_int = 0;
pub const ERR_ARGUMENT: c_int = -1;
pub const ERR_STATE: c_int = -2;
pub const ERR_TASK: c_int = -3;
pub const ERR_TRUNCATED: c_int = -6;
pub const ERR_DEAD: c_int = -7;
pub const ERR_LEFT: c_int = -8;
pub const ERR_MEMORY: c_int = -9;
pub const ERR_LAUNCHER: c_int = -14;
pub const ERR_SYSTEM: c_int = -16;
pub const ERR_PROGRAM: c_int = -18;
pub const ERR_HOST: c_int = -19;
pub const ERR_NAME: c_int = -20;
pub const ERR_EXISTS: c_int = -21;
pub const ERR_DENIED: c_int = -22;
pub const ERR_NOTHING: c_int = -23;

pub const ANY: c_int = -1;
/// Nobody; also what is no task.
pub const NONE: c_int = -2;
pub const BEGIN: c_int = 1;
pub const BEGIN_ONLY: c_int = 2;
pub const LOOK: c_int = 3;

pub const TASK_EXIT: c_int = 1;
pub const HOST_LOST: c_int = 2;
pub const HOST_ADDED: c_int = 3;
pub const TASKS: c_int = 4;
pub const BY_EXIT: c_int = 1;
pub const BY_SIGNAL: c_int = 2;
pub const OUTPUT_MARK: u32 = 0x756f_4752;
pub const OUTPUT_JOB: c_int = 1;
pub const OUTPUT_BLOCKS: c_int = 3;
pub const OUTPUT_BIRTHS: c_int = 16;
pub const START_MARK: u32 = 0x7473_4752;
pub const HOSTS_MARK: u32 = 0x6f68_4752;
pub const EVENT_MARK: u32 = 0x7665_4752;

pub const PERSISTENT: c_int = 1;
pub const SEVERAL: c_int = 2;
pub const OVERWRITABLE: c_int = 4;
pub const FIRST: c_int = 8;
pub const TAKE: c_int = 16;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Group {
    id: i32,
}

/// The tasks that were started together with this one.
pub const WORLD: Group = Group { id: 0 };

/// Every task, apart from other channels.
#[inline(always)]
pub const fn channel(number: i32) -> Group {
    Group {
        id: 0x4000_0000 + number,
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    pub length: usize,
    pub error: i32,
    pub reserved: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    pub base: *mut c_void,
    pub block: usize,
    pub count: usize,
    pub stride: isize,
}

#[repr(C)]
pub struct SpawnOptions {
    pub host: *const c_char,
    pub search: *const c_char,
    pub architecture: *const c_char,
    pub directory: *const c_char,
    pub environment: *const *const c_char,
    pub elsewhere: i32,
    pub output: i32,
    pub output_tag: i32,
    pub output_group: Group,
    pub orphans: i32,
    pub on_behalf: i32,
    pub through: *const c_char,
    pub output_to: i32,
    pub reserved: i32,
}

/// The front of a message with what a task has written.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Output {
    pub mark: u32,
    pub tid: i32,
    pub stream: i32,
    pub length: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Task {
    pub tid: i32,
    pub parent: i32,
    pub host: i32,
    pub pid: i32,
    pub program: [c_char; 240],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Host {
    pub host: i32,
    pub cores: i32,
    pub tasks: i32,
    pub alive: i32,
    pub name: [c_char; 64],
    pub architecture: [c_char; 32],
    pub speed: i32,
    pub reserved: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    pub mark: u32,
    pub kind: i32,
    pub tid: i32,
    pub host: i32,
    pub how: i32,
    pub value: i32,
    pub watch: i32,
    pub reserved: i32,
    pub name: [c_char; 64],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    pub index: i32,
    pub owner: i32,
    pub flags: i32,
    pub length: u32,
    pub name: [c_char; 112],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct NamedGroup {
    pub members: i32,
    pub waiting: i32,
    pub wanted: i32,
    pub reserved: i32,
    pub name: [c_char; 112],
}

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
