//! PVM's numbers of tasks, and Regatta's.
//!
//! PVM's has 32 bits: whether it is a daemon, whether it is a group, 12 bits of the host, 18 bits of the task on it, which
//! are 0 for the host itself.
//! Regatta numbers the tasks of a job from 0. So the last 18 bits are Regatta's number and 1, and the 12 bits its host's
//! number and 1: the number alone says who is meant, and programs that take it apart find what they expect.

use std::ffi::c_int;

use crate::rg;
use crate::state::library;

/// A daemon; alone the one who tells of events.
pub const DAEMON: i32 = i32::MIN;
/// It is a group.
const GROUP: i32 = 1 << 30;
const HOST_SHIFT: u32 = 18;
/// The bits of the task on its host.
const LOCAL: i32 = (1 << HOST_SHIFT) - 1;
/// The bits of the host.
const HOST: i32 = 0xfff << HOST_SHIFT;

/// The number of Regatta's task on this host.
#[inline(always)]
pub fn of(task: i32, host: i32) -> i32 {
    (host + 1) << HOST_SHIFT & HOST | (task + 1) & LOCAL
}

/// The number of a host, which is that of its daemon.
pub const fn of_daemon(host: i32) -> i32 {
    (host + 1) << HOST_SHIFT & HOST
}

/// The part of a number that is its host's.
#[inline(always)]
pub fn host_part(tid: i32) -> i32 {
    tid & HOST
}

/// Regatta's task, if this is the number of one. Of no host at all it is a task that never was.
#[inline(always)]
pub fn task(tid: i32) -> Option<i32> {
    let local = tid & LOCAL;
    let task = if tid & HOST != 0 { local - 1 } else { LOCAL };
    (tid & (DAEMON | GROUP) == 0 && local != 0).then_some(task)
}

/// Regatta's task for calls that name one: a number with another host than its task's is a task that never was.
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
    // SAFETY: a plain question.
    let host = unsafe { rg::rg_host_of(task) };
    if host >= 0 && host != host_of(tid) {
        LOCAL
    } else {
        task
    }
}

/// The number of the host in a number of a task or a daemon.
pub fn host(tid: i32) -> Option<i32> {
    let host = (tid & HOST) >> HOST_SHIFT;
    (tid & GROUP == 0 && host != 0).then_some(host - 1)
}

/// The number of the host of anything; where there is none it is one that no host has.
pub fn host_of(tid: i32) -> i32 {
    (((tid & HOST) >> HOST_SHIFT) - 1) & (HOST >> HOST_SHIFT)
}

/// Is it a host's? Programs write it with the bit of daemons, and without.
pub fn is_daemon(tid: i32) -> bool {
    tid & (GROUP | LOCAL) == 0 && tid & HOST != 0
}

/// The number of a task that runs or has run, whose host the job's table knows.
pub fn of_task(task: i32) -> Option<i32> {
    // SAFETY: a plain question.
    let host = unsafe { rg::rg_host_of(task) };
    (host >= 0).then(|| of(task, host))
}

/// For libraries above this one: Regatta's number of a task of PVM's, or a negative one.
#[unsafe(no_mangle)]
extern "C" fn regatta_pvm_task_of(tid: c_int) -> c_int {
    task(tid).unwrap_or(rg::NONE)
}

/// The other way round.
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
