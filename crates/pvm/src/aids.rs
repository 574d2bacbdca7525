//! What is left: the environment of children, versions, times, and what shipped programs use though no header names it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::kept::Kept;
use crate::life::enrol;
use crate::message::{codes, error};
use crate::rg;

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

/// # Safety
/// A text, or NULL.
unsafe fn name<'a>(of: *const c_char) -> Result<&'a str, i32> {
    if of.is_null() {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(of) }.to_str();
    name.ok()
        .filter(|name| !name.is_empty())
        .ok_or(codes::BAD_PARAM)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_export(of: *const c_char) -> c_int {
    // SAFETY: the C contract.
    let added = unsafe { name(of) }.map(|name| {
        let mut names = exported();
        if !names.iter().any(|known| known == name) {
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

/// What a program may wait at beside its own files: readable when a message may have come.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_getfds(fds: *mut *mut c_int) -> c_int {
    static FDS: Kept<[c_int; 1]> = Kept::new([-1]);
    let got = || -> Result<i32, i32> {
        enrol()?;
        let kept = FDS.get();
        // SAFETY: a place for a number; and a plain request.
        unsafe {
            if rg::rg_fd(&mut kept[0]) != rg::OK {
                return Err(codes::SYS_ERR);
            }
            rg::rg_clear_fd();
            if !fds.is_null() {
                *fds = kept.as_mut_ptr();
            }
        }
        Ok(1)
    };
    error::result("pvm_getfds", got().unwrap_or_else(|code| code))
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

/// What PVM's own hoster asks: may this user run it? Everybody may.
#[unsafe(no_mangle)]
extern "C" fn pvmchkuid(_user: c_int) {}

/// What it calls when it can do no more. As on PVM the library does not end a program for that.
#[unsafe(no_mangle)]
extern "C" fn pvmbailout(_code: c_int) {}
