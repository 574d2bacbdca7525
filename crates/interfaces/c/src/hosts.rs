//! Hosts that a task adds to its job or removes from it.

use std::ffi::{c_char, c_int};

use regatta_process::control::HostStarted;
use regatta_process::{self as process, Error, Hosted, Result};

use crate::error::{OK, answer, argument, fail, reason, refusal};
use crate::memory::{GroupHandle, RgGroup, output};
use crate::text::{put_all, required};

/// Copies the texts of an array. Fails if one is NULL or not UTF-8.
///
/// # Safety
/// `texts` must be NULL or have `count` entries, each NULL or a NUL-terminated text.
unsafe fn texts(texts: *const *const c_char, count: c_int) -> Result<Vec<String>> {
    let count = usize::try_from(count).map_err(|_| argument("the count is negative"))?;
    if texts.is_null() && count > 0 {
        return Err(argument("the list of hosts is NULL"));
    }
    let text = |index: usize| {
        // SAFETY: the caller guarantees that `texts` has `count` entries, and `index < count`.
        let text = unsafe { required(*texts.add(index), "a host") }?;
        let text = text.to_str().map(str::to_owned);
        text.map_err(|_| argument("the name of a host is not UTF-8"))
    };
    (0..count).map(text).collect()
}

/// Writes the results for hosts to `numbers`: for each host its number, or the code of its error. Returns the code of the call,
/// which is the first error.
///
/// # Safety
/// `numbers` must be NULL or have room for one number per host.
unsafe fn told(hosted: Result<Hosted>, numbers: *mut c_int) -> c_int {
    let Hosted { hosts, sentence } = match hosted {
        Ok(hosted) => hosted,
        Err(error) => return fail(&error),
    };
    let code = |host: &std::result::Result<u32, _>| host.map_or_else(refusal, |host| host as c_int);
    let codes: Vec<c_int> = hosts.iter().map(code).collect();
    let room = codes.len() as c_int;
    // SAFETY: the caller guarantees room for one number per host.
    if let Err(error) = unsafe { put_all(codes.into_iter(), numbers, room, std::ptr::null_mut()) } {
        return fail(&error);
    }
    match hosts.into_iter().find_map(|host| host.err()) {
        None => OK,
        Some(why) => fail(&Error::Refused(why, sentence)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_add_hosts(
    lines: *const *const c_char,
    count: c_int,
    numbers: *mut c_int,
) -> c_int {
    // SAFETY: the C program guarantees `count` texts, and room for `count` numbers.
    unsafe { told(texts(lines, count).and_then(process::add_hosts), numbers) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_remove_hosts(
    names: *const *const c_char,
    count: c_int,
    numbers: *mut c_int,
) -> c_int {
    // SAFETY: the C program guarantees `count` texts, and room for `count` numbers.
    unsafe { told(texts(names, count).and_then(process::remove_hosts), numbers) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_add_host_file(text: *const c_char, added: *mut c_int) -> c_int {
    let file = || {
        // SAFETY: the C program guarantees that `text` is NULL or a NUL-terminated text.
        let text = unsafe { required(text, "text") }?;
        let text = text.to_str().map(str::to_owned);
        let text = text.map_err(|_| argument("the host file is not UTF-8"))?;
        process::add_host_file(text)
    };
    let hosted = file();
    if let (Ok(hosted), Ok(added)) = (&hosted, output(added, "added")) {
        *added = hosted.hosts.iter().flatten().count() as c_int;
    }
    // SAFETY: `numbers` is NULL.
    unsafe { told(hosted, std::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
extern "C" fn rg_begin_hosting(tag: c_int, group: RgGroup) -> c_int {
    answer(process::start_hosts(Some((tag, group.id()))))
}

#[unsafe(no_mangle)]
extern "C" fn rg_end_hosting() -> c_int {
    answer(process::start_hosts(None))
}

/// Reads a program's report on the hosts that it was asked to start.
///
/// # Safety
/// Each list must be NULL or have `count` entries. Each text must be NULL or NUL-terminated.
unsafe fn started(
    count: c_int,
    hosts: *const c_int,
    codes: *const c_int,
    lines: *const *const c_char,
) -> Result<Vec<HostStarted>> {
    let count = usize::try_from(count).map_err(|_| argument("the count is negative"))?;
    if count > 0 && (hosts.is_null() || codes.is_null() || lines.is_null()) {
        return Err(argument("a list of results for hosts is NULL"));
    }
    let one = |index: usize| {
        // SAFETY: the caller guarantees that the lists have `count` entries, and `index < count`.
        let (host, code, line) =
            unsafe { (*hosts.add(index), *codes.add(index), *lines.add(index)) };
        let refused = match code {
            OK => None,
            code => Some(reason(code).ok_or_else(|| {
                argument("a result is not the reason why a host was not started")
            })?),
        };
        let line = match refused {
            // SAFETY: the caller guarantees that the text is NULL or NUL-terminated.
            None => unsafe { required(line, "a line") }?
                .to_string_lossy()
                .into_owned(),
            Some(_) => String::new(),
        };
        let host =
            u32::try_from(host).map_err(|_| argument("a number does not belong to a host"))?;
        Ok(HostStarted {
            host,
            refused,
            line,
        })
    };
    (0..count).map(one).collect()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_hosts_started(
    request: u32,
    count: c_int,
    hosts: *const c_int,
    codes: *const c_int,
    lines: *const *const c_char,
) -> c_int {
    // SAFETY: the C program guarantees that the lists have `count` entries, and that texts are NULL or NUL-terminated.
    let hosts = unsafe { started(count, hosts, codes, lines) };
    answer(hosts.and_then(|hosts| process::hosts_started(request, hosts)))
}

#[unsafe(no_mangle)]
extern "C" fn rg_clock(host: c_int, microseconds: *mut i64) -> c_int {
    let told = || -> Result<()> {
        let time = process::clock_of(host)?;
        *output(microseconds, "microseconds")? = i64::try_from(time).unwrap_or(i64::MAX);
        Ok(())
    };
    answer(told())
}
