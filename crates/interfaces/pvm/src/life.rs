//! Joining and leaving the virtual machine.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write as _;

use crate::message::{self, codes, error};
use crate::spawn_environment::SpawnEnvironment;
use crate::state::library;
use crate::system::task_started;
use crate::system::tracer::Tracing;
use crate::trace::{self, calls, traced};
use crate::{contexts, output, rg, sharing, spawn_environment, system, tid};

/// Returns the name of the job that is this user's virtual machine, or the one that PVM_VMID names.
pub fn machine() -> CString {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let name = match std::env::var("PVM_VMID") {
        Ok(id) if !id.is_empty() => {
            format!("pvm.{}", id.chars().take(40).map(plain).collect::<String>())
        }
        _ => "pvm".to_owned(),
    };
    CString::new(name).unwrap_or_default()
}

/// Joins the virtual machine if necessary, and returns this task's tid.
#[inline(always)]
pub fn enrol() -> Result<i32, i32> {
    match library().tid {
        0 => enter(),
        tid => Ok(tid),
    }
}

#[cold]
fn enter() -> Result<i32, i32> {
    make_room();
    error::on_exit(leave);
    let name = machine();
    // SAFETY: the name is NUL-terminated.
    if unsafe { rg::rg_enter(name.as_ptr(), rg::BEGIN) } != rg::OK {
        complain();
        return Err(codes::SYS_ERR);
    }
    let library = library();
    // SAFETY: the calls take plain values only.
    let (task, parent) = unsafe { (rg::rg_tid(), rg::rg_parent()) };
    let me = tid::of_task(task).ok_or(codes::SYS_ERR)?;
    library.task = task;
    library.host = tid::host(me).unwrap_or_default();
    library.tid = me;
    error::set_my_tid(me);
    sharing::begin();
    let environment = spawn_environment::of_environment();
    // A task without a spawn environment keeps the context in which it left.
    let context = environment
        .as_ref()
        .map_or(library.context, |environment| environment.context);
    let environment = environment.unwrap_or_default();
    library.parent = match tid::of_task(parent) {
        Some(_) if environment.hides_parent => codes::PARENT_NOT_SET,
        Some(parent) => parent,
        None => codes::NO_PARENT,
    };
    library.options.inherit(&environment);
    contexts::change(context);
    trace::inherit();
    system::look_around();
    trace::settle();
    notify_begun(&environment);
    Ok(me)
}

/// Notifies the task that traces this one that it has started.
fn notify_begun(environment: &SpawnEnvironment) {
    let library = library();
    if environment.trace.0 <= 0 || library.options.trace().0 <= 0 {
        return;
    }
    let known = crate::tasks::program_of(library.task);
    task_started::TaskStarted {
        task: library.tid,
        parent: library.parent,
        flags: environment.flags,
        name: known.as_ref().map_or(b"", |name| name.to_bytes()),
    }
    .send_to_tracer(library.options.trace());
}

/// Sets Regatta's limit for unreceived messages to half of the memory: PVM has no limit.
fn make_room() {
    // SAFETY: the call takes plain values only.
    let (pages, size) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    let half = (pages.max(0) as u64).saturating_mul(size.max(0) as u64) / 2;
    if let Ok(half) = CString::new(half.max(256 << 20).to_string()) {
        // SAFETY: both are NUL-terminated, and PVM allows only one thread at a time. A value that the user has set
        // stays.
        unsafe { libc::setenv(c"REGATTA_BUFFER".as_ptr(), half.as_ptr(), 0) };
    }
}

/// Prints the reason, as PVM's library does.
fn complain() {
    if error::auto_err() != 0 {
        // SAFETY: the string is NUL-terminated and valid until the next failure.
        let why = unsafe { CStr::from_ptr(rg::rg_last_error()) }.to_string_lossy();
        let _ = writeln!(
            std::io::stderr(),
            "libpvm [pid{}]: {why}",
            std::process::id()
        );
    }
}

/// Leaves the virtual machine, with all notifications.
pub fn leave() {
    if library().tid == 0 {
        return;
    }
    crate::notify::own_end();
    trace::flush();
    crate::group::leave_all();
    output::finish();
    crate::handlers::clear();
    forget();
}

/// Leaves the virtual machine without notifying anybody. Messages that were sent are still delivered.
fn forget() {
    let library = library();
    if library.tid == 0 {
        return;
    }
    for buffer in library.inbox.take_from(0) {
        message::free(buffer);
    }
    message::keep_to_oneself();
    library.watches.clear();
    library.managing.clear();
    library.tracing = Tracing::new();
    library.manager = 0;
    library.tid = 0;
    library.task = -1;
    // SAFETY: no request uses memory of this library.
    unsafe { rg::rg_finalize() };
    error::set_my_tid(-1);
    trace::settle();
}

#[unsafe(no_mangle)]
extern "C" fn pvm_mytid() -> c_int {
    let me = || error::result("pvm_mytid", enrol().unwrap_or_else(|code| code));
    traced(calls::MYTID, || [], me, trace::code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_exit() -> c_int {
    let left = || {
        leave();
        0
    };
    traced(calls::EXIT, || [], left, |_| [])
}

/// Does the last half of `pvm_exit`, for a program that has ended the machine itself.
#[unsafe(no_mangle)]
extern "C" fn pvmendtask() -> c_int {
    forget();
    0
}

#[unsafe(no_mangle)]
extern "C" fn pvm_parent() -> c_int {
    let parent = || match enrol() {
        // No parent is a valid answer, not an error to report.
        Ok(_) => library().parent,
        Err(code) => error::result("pvm_parent", code),
    };
    traced(calls::PARENT, || [], parent, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_siblings(tids: *mut *mut c_int) -> c_int {
    static SIBLINGS: crate::last_results::Kept<Vec<c_int>> =
        crate::last_results::Kept::new(Vec::new());
    let answer = || -> Result<i32, i32> {
        enrol()?;
        // SAFETY: the call takes plain values only.
        let count = unsafe { rg::rg_size(rg::WORLD) };
        let siblings = SIBLINGS.get();
        siblings.clear();
        for rank in 0..count {
            // SAFETY: the call takes plain values only.
            let task = unsafe { rg::rg_tid_of(rg::WORLD, rank) };
            siblings.push(tid::of_task(task).ok_or(codes::SYS_ERR)?);
        }
        if !tids.is_null() {
            // SAFETY: by the C contract the pointer is writable.
            unsafe { *tids = siblings.as_mut_ptr() };
        }
        Ok(siblings.len() as i32)
    };
    let answer = || error::result("pvm_siblings", answer().unwrap_or_else(|code| code));
    let exit = |_| [trace::Value::Ints(SIBLINGS.get().as_slice())];
    traced(calls::SIBLINGS, || [], answer, exit)
}

/// Starts the virtual machine. Of the arguments of a pvmd only the host file is used: its hosts are added before this
/// returns. An unreadable file, faulty lines, and hosts that cannot be added are reported on standard error, and the
/// machine starts anyway.
///
/// # Safety
/// `argv` points to `argc` NUL-terminated strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_start_pvmd(argc: c_int, argv: *mut *mut c_char, block: c_int) -> c_int {
    let entry = || {
        // SAFETY: by the C contract there are `argc` strings.
        let words = unsafe { trace::texts(argv.cast::<*const c_char>(), argc) };
        [trace::Value::Int(block), words]
    };
    // SAFETY: the caller guarantees that the memory is valid.
    let started = || unsafe { start(argc, argv) };
    traced(calls::START_PVMD, entry, started, trace::code)
}

/// # Safety
/// The same as for `pvm_start_pvmd`.
unsafe fn start(argc: c_int, argv: *mut *mut c_char) -> c_int {
    let count = if argv.is_null() { 0 } else { argc.max(0) };
    // SAFETY: by the C contract there are `argc` strings. The list ends early at a NULL.
    let words = (0..count as usize).map_while(|index| unsafe {
        let word = (*argv.add(index)).as_ref()?;
        Some(CStr::from_ptr(word))
    });
    let words: Vec<&CStr> = words.collect();
    let name = machine();
    // SAFETY: the name is NUL-terminated.
    let there = unsafe { rg::rg_enter(name.as_ptr(), rg::LOOK) } == rg::OK;
    let begun = || {
        let file = host_file(&words)?;
        // SAFETY: the name is NUL-terminated.
        match unsafe { rg::rg_enter(name.as_ptr(), rg::BEGIN_ONLY) } {
            rg::OK => file.map_or(Ok(()), crate::machine::add_file),
            _ => Err(codes::CANT_START),
        }
    };
    let begun = if there { Err(codes::DUP_HOST) } else { begun() };
    error::result("pvm_start_pvmd", begun.err().unwrap_or(0))
}

/// Returns the host file among the arguments of a pvmd. Fails with the code with which a pvmd would not start: for a
/// second file, or for an option that makes it another host's daemon. Any word that is not one of its options is a file
/// name.
fn host_file<'a>(words: &[&'a CStr]) -> Result<Option<&'a CStr>, i32> {
    let option = |word: &CStr| match word.to_bytes() {
        [b'-', letter, ..] => Some(*letter),
        _ => None,
    };
    if words
        .iter()
        .any(|word| matches!(option(word), Some(b's' | b'S')))
    {
        return Err(codes::CANT_START);
    }
    let mut files = words
        .iter()
        .filter(|word| !matches!(option(word), Some(b'd' | b'n' | b't')));
    match (files.next(), files.next()) {
        (file, None) => Ok(file.copied()),
        _ => Err(codes::CANT_START),
    }
}

/// Ends the virtual machine and all its tasks.
#[unsafe(no_mangle)]
extern "C" fn pvm_halt() -> c_int {
    let halted = || {
        let code = match enrol() {
            // SAFETY: the call takes plain values only.
            Ok(_) => match unsafe { rg::rg_halt() } {
                rg::OK => 0,
                _ => codes::SYS_ERR,
            },
            Err(code) => code,
        };
        error::result("pvm_halt", code)
    };
    traced(calls::HALT, || [], halted, |_| [])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pvmd_takes_one_host_file_beside_its_options() {
        let cases: [(&[&CStr], _); 7] = [
            (&[], Ok(None)),
            (&[c"hosts"], Ok(Some(c"hosts"))),
            (
                &[c"-d0x11", c"hosts", c"-nalpha", c"-t"],
                Ok(Some(c"hosts")),
            ),
            (&[c"-x"], Ok(Some(c"-x"))),
            (&[c"-"], Ok(Some(c"-"))),
            (&[c"hosts", c"hosts"], Err(codes::CANT_START)),
            (&[c"-s", c"hosts"], Err(codes::CANT_START)),
        ];
        for (words, expected) in cases {
            assert_eq!(host_file(words), expected, "{words:?}");
        }
    }
}
