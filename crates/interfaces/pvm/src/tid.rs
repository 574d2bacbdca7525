//! PVM's task identifiers (tids) and Regatta's task numbers.
//!
//! A tid has 32 bits: whether it is a daemon, whether it is a group, 12 bits for the host, and 18 bits for the task on
//! the host, which are 0 for the host itself.
//! Regatta numbers the tasks of a job from 0. Here the low 18 bits are Regatta's number + 1, and the 12 bits its host's
//! number + 1. So a tid alone identifies a task, and programs that take tids apart find what they expect.

use std::ffi::c_int;

use crate::rg;
use crate::state::library;

/// The daemon bit. Alone, it is the tid of the daemon that sends notifications.
pub const DAEMON: i32 = i32::MIN;
/// The group bit.
const GROUP: i32 = 1 << 30;
const HOST_SHIFT: u32 = 18;
/// The bits of the task.
const LOCAL: i32 = (1 << HOST_SHIFT) - 1;
/// The bits of the host.
const HOST: i32 = 0xfff << HOST_SHIFT;

/// Returns the tid of Regatta's task on this host.
#[inline(always)]
pub fn of(task: i32, host: i32) -> i32 {
    (host + 1) << HOST_SHIFT & HOST | (task + 1) & LOCAL
}

/// Returns the tid of a host, which is that of its daemon.
pub const fn of_daemon(host: i32) -> i32 {
    (host + 1) << HOST_SHIFT & HOST
}

/// Returns the host bits of a tid.
#[inline(always)]
pub fn host_part(tid: i32) -> i32 {
    tid & HOST
}

/// Returns Regatta's task if this can be the tid of a task. If the host bits are 0, returns a task that does not exist.
#[inline(always)]
pub fn task(tid: i32) -> Option<i32> {
    let local = tid & LOCAL;
    let task = if tid & HOST != 0 { local - 1 } else { LOCAL };
    (tid & (DAEMON | GROUP) == 0 && local != 0).then_some(task)
}

/// Returns Regatta's task for a call that names one. If the host bits are not those of the task's host, returns a task
/// that does not exist.
#[inline(always)]
pub fn named(tid: i32) -> Option<i32> {
    let task = task(tid)?;
    if host_part(tid) == host_part(library().tid) {
        return Some(task);
    }
    Some(on_another_host(tid, task))
}

#[inline(never)]
fn on_another_host(tid: i32, task: i32) -> i32 {
    // SAFETY: the call takes plain values only.
    let host = unsafe { rg::rg_host_of(task) };
    if host >= 0 && host != host_of(tid) {
        LOCAL
    } else {
        task
    }
}

/// Returns the host's number in the tid of a task or a daemon.
pub fn host(tid: i32) -> Option<i32> {
    let host = (tid & HOST) >> HOST_SHIFT;
    (tid & GROUP == 0 && host != 0).then_some(host - 1)
}

/// Returns the host's number in any tid. If the host bits are 0, returns a number that no host has.
pub fn host_of(tid: i32) -> i32 {
    (((tid & HOST) >> HOST_SHIFT) - 1) & (HOST >> HOST_SHIFT)
}

/// Returns whether this is a host's tid. Programs write it with or without the daemon bit.
pub fn is_daemon(tid: i32) -> bool {
    tid & (GROUP | LOCAL) == 0 && tid & HOST != 0
}

/// Returns the tid of a task that runs or has run. The job's table gives its host.
pub fn of_task(task: i32) -> Option<i32> {
    // SAFETY: the call takes plain values only.
    let host = unsafe { rg::rg_host_of(task) };
    (host >= 0).then(|| of(task, host))
}

/// Returns Regatta's number of a PVM task, or a negative number. For libraries above this one.
#[unsafe(no_mangle)]
extern "C" fn regatta_pvm_task_of(tid: c_int) -> c_int {
    task(tid).unwrap_or(rg::NONE)
}

/// Returns the tid of a Regatta task, or a negative number. For libraries above this one.
#[unsafe(no_mangle)]
extern "C" fn regatta_pvm_tid_of(task: c_int) -> c_int {
    of_task(task).unwrap_or(rg::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_like_pvms_and_lead_back() {
        assert_eq!(of(0, 0), 0x40001);
        assert_eq!(of(1, 2), 0xc0002);
        assert_eq!(of_daemon(0), 0x40000);
        assert!(is_daemon(of_daemon(0)) && is_daemon(DAEMON | of_daemon(0)));
        for (number, place) in [(0, 0), (65_535, 4094), (7, 1)] {
            let tid = of(number, place);
            assert_eq!((task(tid), host(tid)), (Some(number), Some(place)));
            assert!(!is_daemon(tid));
        }
        assert!(is_daemon(of_daemon(3)));
    }

    #[test]
    fn other_numbers_are_no_tasks() {
        for tid in [0, -1, of_daemon(0), GROUP | 0x40001, 0x40000] {
            assert_eq!(task(tid), None, "{tid:x}");
        }
        assert_eq!(task(1), Some(LOCAL), "a task of no host never was");
        assert_eq!(host_of(1), 0xfff);
        assert_eq!(host_of(of(7, 3)), 3);
    }
}
