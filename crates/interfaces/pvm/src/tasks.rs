//! Tasks: ending, signalling and listing them.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::last_results::Kept;
use crate::life::enrol;
use crate::message::{codes, error};
use crate::system::asking;
use crate::trace::{self, calls, ints, traced};
use crate::{machine, rg, system, tid};

/// Flags of a task in `pvm_tasks`.
mod flag {
    /// Largest process id. A larger number stands for a process that has not joined.
    pub const LAST_PROCESS: i32 = 1 << 22;
    pub const SPAWNED: i32 = 2;
    pub const CONNECTED: i32 = 4;
}

fn outcome(code: c_int) -> Result<(), i32> {
    match code {
        rg::OK => Ok(()),
        rg::ERR_TASK => Err(codes::NO_TASK),
        rg::ERR_ARGUMENT => Err(codes::BAD_PARAM),
        _ => Err(codes::SYS_ERR),
    }
}

pub fn signal(to: c_int, signal: c_int) -> Result<(), i32> {
    enrol()?;
    let task = tid::named(to).ok_or(codes::BAD_PARAM)?;
    // A signal to a task that is gone is not an error.
    // SAFETY: the call takes plain values only.
    match outcome(unsafe { rg::rg_signal(task, signal) }) {
        // Signals that do not exist are ignored, too.
        Err(codes::NO_TASK | codes::BAD_PARAM) => Ok(()),
        other => other,
    }
}

#[unsafe(no_mangle)]
extern "C" fn pvm_sendsig(to: c_int, number: c_int) -> c_int {
    let sent = || error::result("pvm_sendsig", signal(to, number).err().unwrap_or(0));
    traced(calls::SENDSIG, || ints([to, number]), sent, trace::code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_kill(to: c_int) -> c_int {
    let killed = || -> Result<(), i32> {
        let me = enrol()?;
        if to == me {
            crate::life::leave();
            // SAFETY: the call takes plain values only.
            unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
            return Ok(());
        }
        signal(to, libc::SIGTERM)
    };
    let killed = || error::result("pvm_kill", killed().err().unwrap_or(0));
    traced(calls::KILL, || ints([to]), killed, trace::code)
}

/// Returns all tasks that run.
pub fn all() -> Result<Vec<rg::Task>, i32> {
    enrol()?;
    let empty = rg::Task {
        tid: 0,
        parent: 0,
        host: 0,
        pid: 0,
        program: [0; 240],
    };
    let mut tasks = vec![empty; 64];
    let mut count = 0;
    loop {
        let room = tasks.len() as c_int;
        // SAFETY: the array has the length that is passed, and the count is writable.
        outcome(unsafe { rg::rg_tasks(tasks.as_mut_ptr(), room, &mut count) })?;
        if count <= room {
            tasks.truncate(count.max(0) as usize);
            return Ok(tasks);
        }
        tasks.resize(count as usize, empty);
    }
}

/// Returns the name of the program as which a task was started.
pub fn program_of(task: c_int) -> Option<CString> {
    let all = all().ok()?;
    let known = all.iter().find(|known| known.tid == task)?;
    // SAFETY: the string is NUL-terminated inside the array.
    Some(unsafe { CStr::from_ptr(known.program.as_ptr()) }.to_owned())
}

#[unsafe(no_mangle)]
extern "C" fn pvm_pstat(which: c_int) -> c_int {
    let runs = || -> Result<(), i32> {
        let me = enrol()?;
        let task = tid::named(which).ok_or(codes::BAD_PARAM)?;
        // Asks the launcher even about this task: its answer makes earlier messages known.
        let all = all()?;
        match which == me || all.iter().any(|known| known.tid == task) {
            true => Ok(()),
            false => Err(codes::NO_TASK),
        }
    };
    let status = || match runs() {
        // An answer, so no error is reported.
        Err(codes::NO_TASK) => codes::NO_TASK,
        other => error::result("pvm_pstat", other.err().unwrap_or(0)),
    };
    traced(calls::PSTAT, || ints([which]), status, trace::code)
}

/// Result of `pvm_tasks` for one task.
#[repr(C)]
pub struct TaskInfo {
    tid: c_int,
    parent: c_int,
    host: c_int,
    flag: c_int,
    program: *mut c_char,
    pid: c_int,
}

impl TaskInfo {
    /// Describes `task`. Points into its strings, which must outlive this.
    fn of(task: &asking::Task) -> TaskInfo {
        TaskInfo {
            tid: task.tid,
            parent: task.parent,
            host: task.host,
            flag: task.flag,
            program: task.program.as_ptr().cast_mut(),
            pid: task.pid,
        }
    }
}

/// Describes a task in PVM's terms.
fn described(task: &rg::Task, roles: &[(i32, i32)]) -> asking::Task {
    let spawned = task.parent >= 0;
    // SAFETY: the string is NUL-terminated inside the array.
    let name = unsafe { CStr::from_ptr(task.program.as_ptr()) };
    let number = tid::of(task.tid, task.host);
    let role = roles.iter().find(|role| role.0 == number);
    let flag = match task.pid <= flag::LAST_PROCESS {
        true => flag::CONNECTED | if spawned { flag::SPAWNED } else { 0 },
        false => 0,
    };
    asking::Task {
        tid: number,
        parent: match task.parent {
            own if own == task.tid => codes::PARENT_NOT_SET,
            parent => tid::of_task(parent).filter(|_| spawned).unwrap_or(0),
        },
        host: tid::of_daemon(task.host),
        flag: flag | role.map_or(0, |role| role.1),
        // PVM does not know the names of programs that were started by hand.
        program: match spawned {
            true => name.to_owned(),
            false => CString::default(),
        },
        pid: task.pid,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_tasks(
    which: c_int,
    count: *mut c_int,
    tasks: *mut *mut TaskInfo,
) -> c_int {
    static KNOWN: Kept<Vec<asking::Task>> = Kept::new(Vec::new());
    static INFOS: Kept<Vec<TaskInfo>> = Kept::new(Vec::new());
    let chosen = || -> Result<Vec<rg::Task>, i32> {
        let all = all()?;
        if which == 0 {
            return Ok(all);
        }
        let host = tid::host_of(which);
        if !machine::hosts()?.iter().any(|known| known.host == host) {
            return Err(codes::NO_HOST);
        }
        let wanted = |task: &rg::Task| match tid::is_daemon(which) {
            true => task.host == host,
            false => tid::of(task.tid, task.host) == which,
        };
        Ok(all.into_iter().filter(wanted).collect())
    };
    let known = || -> Result<Vec<asking::Task>, i32> {
        enrol()?;
        if let Some(tasks) = asking::tasks(which)? {
            return Ok(tasks);
        }
        let roles = system::flags()?;
        Ok(chosen()?
            .iter()
            .map(|task| described(task, &roles))
            .collect())
    };
    let listed = || {
        // An absent host has no tasks to list.
        let (known, code) = match known() {
            Ok(known) => (known, 0),
            Err(code) => (Vec::new(), code),
        };
        let (kept, infos) = (KNOWN.get(), INFOS.get());
        *kept = known;
        *infos = kept.iter().map(TaskInfo::of).collect();
        // SAFETY: by the C contract the results are writable or NULL.
        unsafe {
            if !count.is_null() {
                *count = infos.len() as c_int;
            }
            if !tasks.is_null() {
                *tasks = infos.as_mut_ptr();
            }
        }
        error::result("pvm_tasks", code)
    };
    let exit = |code| ints([code, INFOS.get().len() as c_int]);
    traced(calls::TASKS, || ints([which]), listed, exit)
}
