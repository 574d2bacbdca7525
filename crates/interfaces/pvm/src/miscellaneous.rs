//! Smaller functions: the environment of children, versions, times, and functions that shipped programs use though no header names them.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::last_results::Kept;
use crate::life::enrol;
use crate::message::{codes, error};
use crate::trace::{Value, calls, traced};
use crate::{receive, rg};

/// Which of the original's debugging texts a program wants; there are none, but programs set it.
#[unsafe(no_mangle)]
pub static pvmdebmask: AtomicI32 = AtomicI32::new(0);

pub fn set_debug_mask(mask: c_int) {
    pvmdebmask.store(mask, Ordering::Relaxed);
}

const EXPORT: &str = "PVM_EXPORT";

/// The names that go to children.
fn exported() -> Vec<String> {
    let names = std::env::var(EXPORT).unwrap_or_default();
    let names = names.split(':').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn export(names: &[String]) {
    if let Ok(names) = CString::new(names.join(":")) {
        // SAFETY: texts; PVM's rule is one thread at a time.
        unsafe { libc::setenv(c"PVM_EXPORT".as_ptr(), names.as_ptr(), 1) };
    }
}

/// The name of a variable; an empty one stands for none.
///
/// # Safety
/// A text, or NULL.
unsafe fn name<'a>(of: *const c_char) -> Result<&'a str, i32> {
    if of.is_null() {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(of) }.to_str();
    name.map_err(|_| codes::BAD_PARAM)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_export(of: *const c_char) -> c_int {
    // SAFETY: the C contract.
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
    // SAFETY: the C contract.
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

/// The program has asked for the descriptor it may wait at beside its own files.
static WAITS_AT_DESCRIPTOR: AtomicBool = AtomicBool::new(false);

/// A receive or a look is over: the descriptor is readable if something waits that has not been taken in.
#[inline(always)]
pub fn settle_descriptor() {
    if WAITS_AT_DESCRIPTOR.load(Ordering::Relaxed) {
        settle();
    }
}

#[cold]
fn settle() {
    // SAFETY: plain requests. An error of theirs is that of every call that follows.
    unsafe { rg::rg_clear_fd() };
    if receive::anything_waits() {
        // SAFETY: as above.
        unsafe { rg::rg_raise_fd() };
    }
}

/// A descriptor for a program to wait at beside its own files: readable when a message may have come that has not been taken in.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_getfds(fds: *mut *mut c_int) -> c_int {
    static FDS: Kept<[c_int; 1]> = Kept::new([-1]);
    let got = || -> Result<i32, i32> {
        enrol()?;
        let kept = FDS.get();
        // SAFETY: places for a number and for an array.
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

/// Put `NAME=value` into the environment, which keeps the program's text itself. -1: it is none.
///
/// # Safety
/// A text that stays, or NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvmputenv(variable: *mut c_char) -> c_int {
    if variable.is_null() {
        return -1;
    }
    // SAFETY: the C contract: a text.
    let text = unsafe { CStr::from_ptr(variable) }.to_bytes();
    match text.iter().position(|&byte| byte == b'=') {
        None | Some(0) => -1,
        // SAFETY: the C contract: the text stays; PVM's rule is one thread at a time.
        Some(_) => unsafe { libc::putenv(variable) },
    }
}

/// The number that a text begins with: in hexadecimal behind `0x`, in octal behind `0`, else in decimal.
///
/// # Safety
/// A text.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvmstrtoi(text: *const c_char) -> c_int {
    // SAFETY: the C contract.
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

/// Sleep so many seconds.
#[unsafe(no_mangle)]
extern "C" fn pvmsleep(seconds: c_int) {
    // SAFETY: sleeps.
    unsafe { libc::sleep(seconds.max(0) as c_uint) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvmgetclock(time: *mut libc::timeval) {
    // SAFETY: the C contract: a place for a time.
    unsafe { libc::gettimeofday(time, std::ptr::null_mut()) };
}

/// The command that leads to other hosts.
#[unsafe(no_mangle)]
extern "C" fn pvmgetrsh() -> *const c_char {
    static NAME: Kept<Option<CString>> = Kept::new(None);
    let name = std::env::var("PVM_RSH").unwrap_or_else(|_| "ssh".to_owned());
    let kept = NAME.get();
    kept.insert(CString::new(name).unwrap_or_default()).as_ptr()
}

/// The directory for files that do not stay.
#[unsafe(no_mangle)]
extern "C" fn pvmgettmp() -> *const c_char {
    static NAME: Kept<Option<CString>> = Kept::new(None);
    let name = std::env::var("PVM_TMP").unwrap_or_else(|_| "/tmp".to_owned());
    let kept = NAME.get();
    kept.insert(CString::new(name).unwrap_or_default()).as_ptr()
}

/// A question of PVM's own hoster: may this user run it? Everybody may.
#[unsafe(no_mangle)]
extern "C" fn pvmchkuid(_user: c_int) {}

/// A call of it when it can do no more. As on PVM the library does not end a program for that.
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
