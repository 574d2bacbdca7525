//! Smaller functions: exported environment variables, versions, times, and functions that shipped programs use although
//! no header declares them.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::last_results::Kept;
use crate::life::enrol;
use crate::message::{codes, error};
use crate::trace::{Value, calls, traced};
use crate::{receive, rg};

/// The mask of debugging texts. Programs set it, but this library prints none.
#[unsafe(no_mangle)]
pub static pvmdebmask: AtomicI32 = AtomicI32::new(0);

pub fn set_debug_mask(mask: c_int) {
    pvmdebmask.store(mask, Ordering::Relaxed);
}

const EXPORT: &str = "PVM_EXPORT";

/// Returns the names of the variables that are passed to children.
fn exported() -> Vec<String> {
    let names = std::env::var(EXPORT).unwrap_or_default();
    let names = names.split(':').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn export(names: &[String]) {
    if let Ok(names) = CString::new(names.join(":")) {
        // SAFETY: the strings are NUL-terminated, and PVM allows only one thread at a time.
        unsafe { libc::setenv(c"PVM_EXPORT".as_ptr(), names.as_ptr(), 1) };
    }
}

/// Returns the name of a variable, which may be empty.
///
/// # Safety
/// `of` is a NUL-terminated string or NULL.
unsafe fn name<'a>(of: *const c_char) -> Result<&'a str, i32> {
    if of.is_null() {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: the caller guarantees valid pointers.
    let name = unsafe { CStr::from_ptr(of) }.to_str();
    name.map_err(|_| codes::BAD_PARAM)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_export(of: *const c_char) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    let added = unsafe { name(of) }.map(|name| {
        let mut names = exported();
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
            export(&names);
        }
    });
    error::result("pvm_export", added.err().unwrap_or(0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_unexport(of: *const c_char) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    let removed = unsafe { name(of) }.map(|name| {
        let mut names = exported();
        names.retain(|known| known != name);
        export(&names);
    });
    error::result("pvm_unexport", removed.err().unwrap_or(0))
}

#[unsafe(no_mangle)]
extern "C" fn pvm_version() -> *const c_char {
    c"3.4.6".as_ptr()
}

/// Whether the program has requested the descriptor for poll() ([`pvm_getfds`]).
static WAITS_AT_DESCRIPTOR: AtomicBool = AtomicBool::new(false);

/// Updates the descriptor after a receive or a probe: it is readable if there are messages that have not been taken in.
#[inline(always)]
pub fn settle_descriptor() {
    if WAITS_AT_DESCRIPTOR.load(Ordering::Relaxed) {
        settle();
    }
}

#[cold]
fn settle() {
    // SAFETY: the calls have no arguments. Their errors are ignored: every later call returns them, too.
    unsafe { rg::rg_clear_fd() };
    if receive::anything_waits() {
        // SAFETY: the calls have no arguments. Their errors are ignored: every later call returns them, too.
        unsafe { rg::rg_raise_fd() };
    }
}

/// Returns a descriptor that a program can poll together with its own files. It is readable when a message may have
/// arrived.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_getfds(fds: *mut *mut c_int) -> c_int {
    static FDS: Kept<[c_int; 1]> = Kept::new([-1]);
    let got = || -> Result<i32, i32> {
        enrol()?;
        let kept = FDS.get();
        // SAFETY: `kept` has room for the descriptor; by the C contract `fds` is valid or NULL.
        unsafe {
            if rg::rg_fd(&mut kept[0]) != rg::OK {
                return Err(codes::SYS_ERR);
            }
            WAITS_AT_DESCRIPTOR.store(true, Ordering::Relaxed);
            settle();
            if !fds.is_null() {
                *fds = kept.as_mut_ptr();
            }
        }
        Ok(1)
    };
    let got = || error::result("pvm_getfds", got().unwrap_or_else(|code| code));
    let exit = |count: c_int| {
        let fds = &FDS.get()[..usize::from(count > 0)];
        [Value::Int(count), Value::Ints(fds)]
    };
    traced(calls::GETFDS, || [], got, exit)
}

/// Puts `NAME=value` into the environment, which keeps the pointer. Returns -1 if the string has another form.
///
/// # Safety
/// `variable` is a NUL-terminated string that stays valid, or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvmputenv(variable: *mut c_char) -> c_int {
    if variable.is_null() {
        return -1;
    }
    // SAFETY: by the C contract the string is NUL-terminated.
    let text = unsafe { CStr::from_ptr(variable) }.to_bytes();
    match text.iter().position(|&byte| byte == b'=') {
        None | Some(0) => -1,
        // SAFETY: by the C contract the string stays valid; PVM allows only one thread at a time.
        Some(_) => unsafe { libc::putenv(variable) },
    }
}

/// Returns the number at the beginning of a string: hexadecimal after `0x`, octal after `0`, otherwise decimal.
///
/// # Safety
/// `text` is a NUL-terminated string.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvmstrtoi(text: *const c_char) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    number(unsafe { CStr::from_ptr(text) }.to_bytes())
}

fn number(text: &[u8]) -> c_int {
    let (base, digits) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (16, digits),
        [b'0', digits @ ..] => (8, digits),
        _ => (10, text.trim_ascii_start()),
    };
    let (negative, digits) = match digits {
        [b'-', digits @ ..] if base == 10 => (true, digits),
        [b'+', digits @ ..] if base == 10 => (false, digits),
        _ => (false, digits),
    };
    let digits = digits
        .iter()
        .map_while(|&byte| (byte as char).to_digit(base));
    let value = digits.fold(0i32, |value, digit| {
        value.wrapping_mul(base as i32).wrapping_add(digit as i32)
    });
    if negative {
        value.wrapping_neg()
    } else {
        value
    }
}

/// Sleeps for this many seconds.
#[unsafe(no_mangle)]
extern "C" fn pvmsleep(seconds: c_int) {
    // SAFETY: the call takes a plain number.
    unsafe { libc::sleep(seconds.max(0) as c_uint) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvmgetclock(time: *mut libc::timeval) {
    // SAFETY: by the C contract `time` is writable.
    unsafe { libc::gettimeofday(time, std::ptr::null_mut()) };
}

/// Returns the command that runs commands on other hosts.
#[unsafe(no_mangle)]
extern "C" fn pvmgetrsh() -> *const c_char {
    static NAME: Kept<Option<CString>> = Kept::new(None);
    let name = std::env::var("PVM_RSH").unwrap_or_else(|_| "ssh".to_owned());
    let kept = NAME.get();
    kept.insert(CString::new(name).unwrap_or_default()).as_ptr()
}

/// Returns the directory for temporary files.
#[unsafe(no_mangle)]
extern "C" fn pvmgettmp() -> *const c_char {
    static NAME: Kept<Option<CString>> = Kept::new(None);
    let name = std::env::var("PVM_TMP").unwrap_or_else(|_| "/tmp".to_owned());
    let kept = NAME.get();
    kept.insert(CString::new(name).unwrap_or_default()).as_ptr()
}

/// Called by PVM's hoster to check that this user may run it. Any user may.
#[unsafe(no_mangle)]
extern "C" fn pvmchkuid(_user: c_int) {}

/// Called by PVM's hoster when it cannot go on. As on PVM the library does not end the program.
#[unsafe(no_mangle)]
extern "C" fn pvmbailout(_code: c_int) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_writes_them() {
        assert_eq!(number(b"0x1Fz"), 31);
        assert_eq!(number(b"0XffffFFFF"), -1);
        assert_eq!(number(b"0178"), 15);
        assert_eq!(number(b" -12 3"), -12);
        assert_eq!(number(b"+7"), 7);
        assert_eq!(number(b"0"), 0);
        assert_eq!(number(b"x"), 0);
        assert_eq!(number(b""), 0);
    }
}
