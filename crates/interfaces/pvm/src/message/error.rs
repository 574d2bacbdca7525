//! The consequences of a failing call: its code, a line on standard error, or no process.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use super::state;

/// The code of the last failure. Programs read it.
#[unsafe(no_mangle)]
pub static pvm_errno: AtomicI32 = AtomicI32::new(0);

/// `PvmAutoErr`: 0 say nothing, 1 say it, 2 say it and exit, 3 say it and abort.
static AUTO_ERR: AtomicI32 = AtomicI32::new(1);

/// How a task leaves before it exits by itself.
static LEAVE: OnceLock<fn()> = OnceLock::new();

/// A C string in a table that programs read.
#[repr(transparent)]
pub struct Text(*const c_char);

// SAFETY: they point to constants.
unsafe impl Sync for Text {}

const fn text(text: &'static CStr) -> Text {
    Text(text.as_ptr())
}

const TEXTS: usize = 37;

/// The meaning of each code; the code is the index with its sign changed.
#[unsafe(no_mangle)]
pub static pvm_errlist: [Text; TEXTS] = [
    text(c"No error"),
    text(c"Error 1"),
    text(c"An argument makes no sense"),
    text(c"Arguments do not fit together"),
    text(c"The value is too large for its encoding"),
    text(c"The message ends before this"),
    text(c"There is no such host"),
    text(c"There is no such program"),
    text(c"This is not allowed"),
    text(c"Error 9"),
    text(c"Memory is used up"),
    text(c"Error 11"),
    text(c"The message cannot be decoded here"),
    text(c"Error 13"),
    text(c"The virtual machine does not answer"),
    text(c"There is no current buffer"),
    text(c"There is no such buffer"),
    text(c"The group has no name"),
    text(c"The task is in the group already"),
    text(c"There is no such group"),
    text(c"The task is not in the group"),
    text(c"The group has no such instance"),
    text(c"The host was lost"),
    text(c"This task has no parent"),
    text(c"This is not implemented"),
    text(c"The virtual machine failed at this"),
    text(c"The versions do not fit together"),
    text(c"A resource is used up"),
    text(c"The host is in the virtual machine already"),
    text(c"The virtual machine cannot be started there"),
    text(c"This is being done already"),
    text(c"There is no such task"),
    text(c"Nothing has this name"),
    text(c"Something has this name already"),
    text(c"A hoster must run on the first host"),
    text(c"The spawning task did not want to be a parent"),
    text(c"The first host's address is one for itself alone (loopback)"),
];

/// How many codes have a text.
#[unsafe(no_mangle)]
pub static pvm_nerr: c_int = TEXTS as c_int;

const UNKNOWN: Text = text(c"Unknown error");

fn text_of(code: i32) -> &'static Text {
    let index = usize::try_from(code.wrapping_neg()).unwrap_or(usize::MAX);
    pvm_errlist.get(index).unwrap_or(&UNKNOWN)
}

/// Pass on what a call returns; a failure is remembered and told as `PvmAutoErr` has it.
#[inline(always)]
pub fn result(function: &str, code: i32) -> c_int {
    if code < 0 {
        return failed(function, code);
    }
    code
}

/// Pass on what a call returns, also a failure (`untold`) that PVM remembers and never prints: programs ask in order to learn of it.
pub fn answer(function: &str, code: i32, untold: &[i32]) -> c_int {
    if untold.contains(&code) {
        pvm_errno.store(code, Ordering::Relaxed);
        return code;
    }
    result(function, code)
}

#[cold]
#[inline(never)]
fn failed(function: &str, code: i32) -> c_int {
    pvm_errno.store(code, Ordering::Relaxed);
    let way = AUTO_ERR.load(Ordering::Relaxed);
    if way != 0 {
        print_failure(&format!("{function}()"), code);
    }
    match way {
        2 => {
            AUTO_ERR.store(1, Ordering::Relaxed);
            if let Some(leave) = LEAVE.get() {
                leave();
            }
            std::process::exit(code)
        }
        3 => std::process::abort(),
        _ => code,
    }
}

/// Write a line about a failure.
fn print_failure(what: &str, code: i32) {
    // SAFETY: the texts are constants.
    let text = unsafe { CStr::from_ptr(text_of(code).0) }.to_string_lossy();
    print_line(&format!("{what}: {text}\n"));
}

/// Write a line to standard error, or some, with who says so.
pub(super) fn print_line(text: &str) {
    let who = match state().me {
        -1 => format!("pid{}", std::process::id()),
        tid => format!("t{tid:x}"),
    };
    // Where standard error is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("libpvm [{who}]: {text}").as_bytes());
}

/// Fail with this code on behalf of a function of the program; one that is no failure is told as well.
///
/// # Safety
/// `function` is a text, or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn lpvmerr(function: *const c_char, code: c_int) -> c_int {
    // SAFETY: as above.
    failed(&unsafe { words(function) }, code)
}

/// A text of the program.
///
/// # Safety
/// `of` is a text, or NULL.
unsafe fn words<'a>(of: *const c_char) -> std::borrow::Cow<'a, str> {
    match of.is_null() {
        true => "(null)".into(),
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(of) }.to_string_lossy(),
    }
}

/// The value of `PvmAutoErr`.
pub fn auto_err() -> i32 {
    AUTO_ERR.load(Ordering::Relaxed)
}

/// Set `PvmAutoErr`; returns what it was.
pub fn set_auto_err(way: i32) -> i32 {
    AUTO_ERR.swap(way, Ordering::Relaxed)
}

/// Sets the last work of a task that exits because of `PvmAutoErr`.
pub fn on_exit(leave: fn()) {
    let _ = LEAVE.set(leave);
}

/// The task's number is known: messages of errors name it, and buffers come from it.
pub fn set_my_tid(tid: i32) {
    state().me = tid;
}

/// Write what the last failure was.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_perror(what: *const c_char) -> c_int {
    // SAFETY: the C contract: a text, or NULL.
    let what = unsafe { words(what) };
    print_failure(&what, pvm_errno.load(Ordering::Relaxed));
    0
}

/// The code of the last failure.
#[unsafe(no_mangle)]
extern "C" fn pvm_strerror() -> *const c_char {
    text_of(pvm_errno.load(Ordering::Relaxed)).0
}
