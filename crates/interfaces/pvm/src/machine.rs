//! The hosts of the virtual machine.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::last_results::Kept;
use crate::life::enrol;
use crate::message::{codes, error};
use crate::system::asking::{self, Described};
use crate::trace::{self, calls, ints, traced};
use crate::{rg, search, tid};

/// Returns the hosts that are alive.
pub fn hosts() -> Result<Vec<rg::Host>, i32> {
    enrol()?;
    let empty = rg::Host {
        host: 0,
        cores: 0,
        tasks: 0,
        alive: 0,
        name: [0; 64],
        architecture: [0; 32],
        speed: 0,
        reserved: 0,
    };
    let mut hosts = vec![empty; 32];
    let mut count = 0;
    loop {
        let room = hosts.len() as c_int;
        // SAFETY: the array has the length that is passed, and the count is writable.
        if unsafe { rg::rg_hosts(hosts.as_mut_ptr(), room, &mut count) } != rg::OK {
            return Err(codes::SYS_ERR);
        }
        if count <= room {
            break;
        }
        hosts.resize(count as usize, empty);
    }
    hosts.truncate(count.max(0) as usize);
    hosts.retain(|host| host.alive != 0);
    Ok(hosts)
}

fn text(of: &[c_char]) -> CString {
    // SAFETY: Regatta NUL-terminates its strings inside their arrays.
    unsafe { CStr::from_ptr(of.as_ptr()) }.to_owned()
}

/// Result of `pvm_config` for one host.
#[repr(C)]
pub struct HostInfo {
    tid: c_int,
    name: *mut c_char,
    architecture: *mut c_char,
    speed: c_int,
    signature: c_int,
}

impl HostInfo {
    /// Points to the strings in `host`.
    pub fn of(host: &Described) -> HostInfo {
        HostInfo {
            tid: host.tid,
            name: host.name.as_ptr().cast_mut(),
            architecture: host.architecture.as_ptr().cast_mut(),
            speed: host.speed,
            signature: host.signature,
        }
    }
}

/// Describes a host in PVM's terms.
pub fn described(host: &rg::Host) -> Described {
    Described {
        tid: tid::of_daemon(host.host),
        name: text(&host.name),
        architecture: architecture(host),
        speed: host.speed,
        signature: codes::RAW,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_config(
    count: *mut c_int,
    architectures: *mut c_int,
    infos: *mut *mut HostInfo,
) -> c_int {
    static TEXTS: Kept<Vec<Described>> = Kept::new(Vec::new());
    static INFOS: Kept<Vec<HostInfo>> = Kept::new(Vec::new());
    let known = || -> Result<Vec<Described>, i32> {
        enrol()?;
        match asking::hosts()? {
            Some(hosts) => Ok(hosts),
            None => Ok(hosts()?.iter().map(described).collect()),
        }
    };
    let listed = || {
        let hosts = match known() {
            Ok(hosts) => hosts,
            Err(code) => return error::result("pvm_config", code),
        };
        let (texts, told) = (TEXTS.get(), INFOS.get());
        *texts = hosts;
        *told = texts.iter().map(HostInfo::of).collect();
        // SAFETY: by the C contract the results are writable or NULL.
        unsafe {
            if !count.is_null() {
                *count = told.len() as c_int;
            }
            if !architectures.is_null() {
                *architectures = kinds(texts);
            }
            if !infos.is_null() {
                *infos = told.as_mut_ptr();
            }
        }
        0
    };
    let exit = |code| {
        let hosts = TEXTS.get();
        ints([hosts.len() as c_int, kinds(hosts), code])
    };
    traced(calls::CONFIG, || [], listed, exit)
}

/// Returns the number of different architectures.
fn kinds(hosts: &[Described]) -> c_int {
    let mut kinds: Vec<&CString> = hosts.iter().map(|host| &host.architecture).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.len() as c_int
}

/// Returns PVM's name of a host's architecture.
fn architecture(host: &rg::Host) -> CString {
    let name = text(&host.architecture);
    let name = name.to_string_lossy();
    let own = name == std::env::consts::ARCH;
    let name = match own {
        true => search::architecture(),
        false => search::of_machine(&name).to_owned(),
    };
    CString::new(name).unwrap_or_default()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_mstat(name: *const c_char) -> c_int {
    let there = || -> Result<(), i32> {
        if name.is_null() {
            return Err(codes::BAD_PARAM);
        }
        // SAFETY: by the C contract the string is NUL-terminated.
        let name = unsafe { CStr::from_ptr(name) };
        if name.is_empty() {
            return Err(codes::BAD_PARAM);
        }
        match hosts()?
            .iter()
            .any(|host| text(&host.name).as_c_str() == name)
        {
            true => Ok(()),
            false => Err(codes::NO_HOST),
        }
    };
    let status = || match there() {
        // This is an answer, not an error to report.
        Err(codes::NO_HOST) => codes::NO_HOST,
        other => error::result("pvm_mstat", other.err().unwrap_or(0)),
    };
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    traced(
        calls::MSTAT,
        || [unsafe { trace::text(name) }],
        status,
        trace::code,
    )
}

#[unsafe(no_mangle)]
extern "C" fn pvm_tidtohost(which: c_int) -> c_int {
    tid::host_part(which)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_archcode(name: *const c_char) -> c_int {
    let code = || -> Result<i32, i32> {
        if name.is_null() {
            return Err(codes::BAD_PARAM);
        }
        // SAFETY: by the C contract the string is NUL-terminated.
        let name = unsafe { CStr::from_ptr(name) };
        match hosts()?
            .iter()
            .any(|host| architecture(host).as_c_str() == name)
        {
            true => Ok(codes::RAW),
            false => Err(codes::NOT_FOUND),
        }
    };
    let code = || error::result("pvm_archcode", code().unwrap_or_else(|code| code));
    // SAFETY: by the C contract the string is NUL-terminated or NULL.
    traced(
        calls::ARCHCODE,
        || [unsafe { trace::text(name) }],
        code,
        trace::code,
    )
}

/// Returns the local time of day in microseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as i64)
}

/// Converts microseconds as PVM does: `tv_usec` is never negative.
fn time(microseconds: i64) -> libc::timeval {
    libc::timeval {
        tv_sec: microseconds.div_euclid(1_000_000),
        tv_usec: microseconds.rem_euclid(1_000_000),
    }
}

/// Returns a host's clock, and how far the local clock is ahead of it. Assumes that the host read its clock halfway
/// between request and answer.
fn clock_and_delta(host: c_int) -> Result<(i64, i64), i32> {
    let mut clock = 0;
    let before = now();
    // SAFETY: the result points to a local variable.
    let code = unsafe { rg::rg_clock(host, &mut clock) };
    let after = now();
    match code {
        rg::OK => Ok((clock, before.midpoint(after) - clock)),
        rg::ERR_HOST => Err(codes::NO_HOST),
        _ => Err(codes::SYS_ERR),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_hostsync(
    which: c_int,
    clock: *mut libc::timeval,
    delta: *mut libc::timeval,
) -> c_int {
    let synced = || -> Result<(), i32> {
        enrol()?;
        let host = tid::host(which).ok_or(codes::NO_HOST)?;
        let (there, ahead) = match host == crate::state::library().host {
            true => (now(), 0),
            false => clock_and_delta(host)?,
        };
        // SAFETY: by the C contract the results are writable or NULL.
        unsafe {
            if !clock.is_null() {
                *clock = time(there);
            }
            if !delta.is_null() {
                *delta = time(ahead);
            }
        }
        Ok(())
    };
    error::result("pvm_hostsync", synced().err().unwrap_or(0))
}

/// Returns the names that a program passes.
///
/// # Safety
/// `names` points to `count` NUL-terminated strings if `count` is positive.
unsafe fn texts<'a>(names: *const *const c_char, count: c_int) -> Result<Vec<&'a CStr>, i32> {
    let count = usize::try_from(count).map_err(|_| codes::BAD_PARAM)?;
    if count == 0 || names.is_null() {
        return Err(codes::BAD_PARAM);
    }
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        // SAFETY: the caller guarantees valid pointers.
        let name = unsafe { *names.add(index) };
        if name.is_null() {
            return Err(codes::BAD_PARAM);
        }
        // SAFETY: the caller guarantees valid pointers.
        all.push(unsafe { CStr::from_ptr(name) });
    }
    Ok(all)
}

/// A Regatta call about hosts. Arguments: host lines, their number, and the results (out).
type Deed = unsafe extern "C" fn(*const *const c_char, c_int, *mut c_int) -> c_int;

/// Calls `what` for hosts and returns a code for each. If `added`, the code of a host that succeeded is the tid of its
/// daemon.
fn change(what: Deed, names: &[&CStr], added: bool) -> Result<Vec<c_int>, i32> {
    // Hosts that the call does not reach keep this answer.
    let mut answers = vec![rg::ERR_LAUNCHER; names.len()];
    let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: both arrays have `names.len()` entries, and the strings are NUL-terminated.
    let outcome = unsafe {
        what(
            pointers.as_ptr(),
            names.len() as c_int,
            answers.as_mut_ptr(),
        )
    };
    let code = |answer: c_int| match answer {
        host if host >= 0 && added => tid::of_daemon(host),
        host if host >= 0 => 0,
        rg::ERR_HOST => codes::NO_HOST,
        rg::ERR_EXISTS => codes::DUP_HOST,
        rg::ERR_ARGUMENT => codes::BAD_PARAM,
        rg::ERR_SYSTEM => codes::CANT_START,
        rg::ERR_STATE => codes::D_SYS_ERR,
        rg::ERR_MEMORY => codes::OUT_OF_RES,
        rg::ERR_PROGRAM => codes::NO_FILE,
        rg::ERR_DENIED => codes::DENIED,
        _ => codes::SYS_ERR,
    };
    // If no host has an answer of its own, the call as a whole failed.
    if outcome != rg::OK && answers.iter().all(|&answer| answer == rg::ERR_LAUNCHER) {
        return Err(code(outcome));
    }
    Ok(answers.into_iter().map(code).collect())
}

/// Adds hosts. Returns for each the tid of its daemon or an error code.
pub fn add(names: &[&CStr]) -> Result<Vec<c_int>, i32> {
    change(rg::rg_add_hosts, names, true)
}

/// Writes the code of each host to `infos`, and returns how many succeeded.
///
/// # Safety
/// `infos` has room for as many numbers as `codes`, or is NULL.
unsafe fn write_codes(codes: &[c_int], infos: *mut c_int) -> c_int {
    if !infos.is_null() {
        // SAFETY: the caller guarantees valid pointers.
        unsafe { std::ptr::copy_nonoverlapping(codes.as_ptr(), infos, codes.len()) };
    }
    codes.iter().filter(|&&code| code >= 0).count() as c_int
}

/// Adds hosts and writes a code for each. Returns how many were added.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_addhosts(
    names: *const *const c_char,
    count: c_int,
    infos: *mut c_int,
) -> c_int {
    let added = || -> Result<c_int, i32> {
        enrol()?;
        // SAFETY: by the C contract the arguments are valid.
        let names = unsafe { texts(names, count) }?;
        let codes = match asking::add_hosts(&names)? {
            Some(codes) => codes,
            None => add(&names)?,
        };
        // SAFETY: by the C contract the arguments are valid.
        Ok(unsafe { write_codes(&codes, infos) })
    };
    let added = || error::result("pvm_addhosts", added().unwrap_or_else(|code| code));
    // SAFETY: by the C contract the arguments are valid.
    let entry = || [unsafe { trace::texts(names, count) }];
    traced(calls::ADDHOSTS, entry, added, trace::code)
}

/// Removes hosts and writes a code for each. Returns how many were removed.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_delhosts(
    names: *const *const c_char,
    count: c_int,
    infos: *mut c_int,
) -> c_int {
    let deleted = || -> Result<c_int, i32> {
        enrol()?;
        // SAFETY: by the C contract the arguments are valid.
        let names = unsafe { texts(names, count) }?;
        let codes = match asking::delete_hosts(&names)? {
            Some(codes) => codes,
            None => change(rg::rg_remove_hosts, &names, false)?,
        };
        // SAFETY: by the C contract the arguments are valid.
        Ok(unsafe { write_codes(&codes, infos) })
    };
    let deleted = || error::result("pvm_delhosts", deleted().unwrap_or_else(|code| code));
    // SAFETY: by the C contract the arguments are valid.
    let entry = || [unsafe { trace::texts(names, count) }];
    traced(calls::DELHOSTS, entry, deleted, trace::code)
}

/// Adds the hosts of a host file. Reports faults of the file, and hosts that cannot be added, on standard error.
pub fn add_file(path: &CStr) -> Result<(), i32> {
    enrol()?;
    let said = |why: &str| {
        let _ = writeln!(
            std::io::stderr(),
            "libpvm [t{:x}]: {}: {why}",
            crate::state::library().tid,
            path.to_string_lossy()
        );
    };
    let file = std::path::Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) => {
            said(&format!(
                "the host file cannot be read: {error}; the virtual machine starts with this host only"
            ));
            return Ok(());
        }
    };
    // A NUL byte would truncate the text.
    let text = String::from_utf8_lossy(&text).replace('\0', "\u{fffd}");
    let (text, problems) = regatta_hostfile::without_faults(&text);
    for problem in problems {
        said(&format!("{problem}; the line is ignored"));
    }
    let text = CString::new(text).expect("zero bytes were replaced");
    // SAFETY: the string is NUL-terminated.
    let outcome = unsafe { rg::rg_add_host_file(text.as_ptr(), std::ptr::null_mut()) };
    if outcome != rg::OK {
        // SAFETY: the string is NUL-terminated and valid until the next failure.
        said(&unsafe { CStr::from_ptr(rg::rg_last_error()) }.to_string_lossy());
    }
    match outcome {
        rg::ERR_LAUNCHER => Err(codes::SYS_ERR),
        // The machine is up, with the hosts that could be added.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_pvms_manual_says() {
        let told = |microseconds| {
            let libc::timeval { tv_sec, tv_usec } = time(microseconds);
            (tv_sec, tv_usec)
        };
        assert_eq!(told(3_250_000), (3, 250_000));
        assert_eq!(told(0), (0, 0));
        assert_eq!(told(-1), (-1, 999_999));
        assert_eq!(told(-1_000_000), (-1, 0));
        assert_eq!(told(-1_001_000), (-2, 999_000));
    }
}
