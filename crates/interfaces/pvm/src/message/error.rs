//! What happens when a call fails: its code is stored, a line is printed, or the process ends.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use super::state;

/// The code of the last failure. Programs read this variable.
#[unsafe(no_mangle)]
pub static pvm_errno: AtomicI32 = AtomicI32::new(0);

/// `PvmAutoErr`: 0 silent, 1 print a line, 2 print and exit, 3 print and abort.
static AUTO_ERR: AtomicI32 = AtomicI32::new(1);

/// Called before the task exits because of `PvmAutoErr`.
static LEAVE: OnceLock<fn()> = OnceLock::new();

/// A C string in a table that programs read.
#[repr(transparent)]
pub struct Text(*const c_char);

// SAFETY: the pointers point to constants.
unsafe impl Sync for Text {}

const fn text(text: &'static CStr) -> Text {
    Text(text.as_ptr())
}

const TEXTS: usize = 37;

/// The text of each code. The index is the negated code.
#[unsafe(no_mangle)]
pub static pvm_errlist: [Text; TEXTS] = [
    text(c"No error"),
    text(c"Error 1"),
    text(c"An argument is not valid"),
    text(c"The arguments contradict each other"),
    text(c"The value is too large for its encoding"),
    text(c"The message has no more data"),
    text(c"There is no such host"),
    text(c"There is no such program"),
    text(c"The operation is not allowed"),
    text(c"Error 9"),
    text(c"Out of memory"),
    text(c"Error 11"),
    text(c"The message cannot be decoded on this host"),
    text(c"Error 13"),
    text(c"The virtual machine does not answer"),
    text(c"There is no current buffer"),
    text(c"There is no such buffer"),
    text(c"The group has no name"),
    text(c"The task is already in the group"),
    text(c"There is no such group"),
    text(c"The task is not in the group"),
    text(c"The group has no such instance"),
    text(c"The host was lost"),
    text(c"This task has no parent"),
    text(c"The call is not implemented"),
    text(c"The virtual machine failed"),
    text(c"The versions are incompatible"),
    text(c"A resource is exhausted"),
    text(c"The host is already in the virtual machine"),
    text(c"The virtual machine cannot be started there"),
    text(c"The operation is already in progress"),
    text(c"There is no such task"),
    text(c"No entry has this name"),
    text(c"An entry with this name already exists"),
    text(c"A hoster must run on the first host"),
    text(c"The spawning task does not act as a parent"),
    text(c"The first host's address is a loopback address"),
];

/// Number of codes with a text.
#[unsafe(no_mangle)]
pub static pvm_nerr: c_int = TEXTS as c_int;

const UNKNOWN: Text = text(c"Unknown error");

fn text_of(code: i32) -> &'static Text {
    let index = usize::try_from(code.wrapping_neg()).unwrap_or(usize::MAX);
    pvm_errlist.get(index).unwrap_or(&UNKNOWN)
}

/// Returns a call's result. If it is an error, stores it, and handles it according to `PvmAutoErr`.
#[inline(always)]
pub fn result(function: &str, code: i32) -> c_int {
    if code < 0 {
        return failed(function, code);
    }
    code
}

/// Like [`result`], but stores the codes in `untold` without printing them, as PVM does: programs make such calls to
/// find out.
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

/// Prints a line about a failure.
fn print_failure(what: &str, code: i32) {
    // SAFETY: the strings are constants.
    let text = unsafe { CStr::from_ptr(text_of(code).0) }.to_string_lossy();
    print_line(&format!("{what}: {text}\n"));
}

/// Prints text to standard error, preceded by the task's number.
pub(super) fn print_line(text: &str) {
    let who = match state().me {
        -1 => format!("pid{}", std::process::id()),
        tid => format!("t{tid:x}"),
    };
    // Ignore a write error: standard error may be closed.
    let _ = std::io::stderr().write_all(format!("libpvm [{who}]: {text}").as_bytes());
}

/// Reports this code in the name of a function of the program, even if it is not an error code.
///
/// # Safety
/// `function` is a NUL-terminated string or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn lpvmerr(function: *const c_char, code: c_int) -> c_int {
    // SAFETY: the strings are constants.
    failed(&unsafe { words(function) }, code)
}

/// Returns a string of the program.
///
/// # Safety
/// `of` is a NUL-terminated string or NULL.
unsafe fn words<'a>(of: *const c_char) -> std::borrow::Cow<'a, str> {
    match of.is_null() {
        true => "(null)".into(),
        // SAFETY: the strings are constants.
        false => unsafe { CStr::from_ptr(of) }.to_string_lossy(),
    }
}

/// Returns the value of `PvmAutoErr`.
pub fn auto_err() -> i32 {
    AUTO_ERR.load(Ordering::Relaxed)
}

/// Sets `PvmAutoErr`, and returns the previous value.
pub fn set_auto_err(way: i32) -> i32 {
    AUTO_ERR.swap(way, Ordering::Relaxed)
}

/// Sets the function that is called before a task exits because of `PvmAutoErr`.
pub fn on_exit(leave: fn()) {
    let _ = LEAVE.set(leave);
}

/// Sets the task's tid, for error messages and as the source of new buffers.
pub fn set_my_tid(tid: i32) {
    state().me = tid;
}

/// Prints the last failure.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_perror(what: *const c_char) -> c_int {
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    let what = unsafe { words(what) };
    print_failure(&what, pvm_errno.load(Ordering::Relaxed));
    0
}

/// Returns the text of the last failure.
#[unsafe(no_mangle)]
extern "C" fn pvm_strerror() -> *const c_char {
    text_of(pvm_errno.load(Ordering::Relaxed)).0
}
