//! The hosts of the virtual machine.

use std::ffi::{CStr, CString, c_char, c_int};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::kept::Kept;
use crate::life::enrol;
use crate::message::{codes, error};
use crate::{rg, search, tid};

/// What PVM calls the speed of a host that nobody has given another.
const SPEED: c_int = 1000;

/// The hosts that are there.
pub fn hosts() -> Result<Vec<rg::Host>, i32> {
    enrol()?;
    let empty = rg::Host {
        host: 0,
        cores: 0,
        tasks: 0,
        alive: 0,
        name: [0; 64],
        architecture: [0; 32],
    };
    let mut hosts = vec![empty; 32];
    let mut count = 0;
    loop {
        let room = hosts.len() as c_int;
        // SAFETY: room for so many, and a place for their number.
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
    // SAFETY: Regatta ends its texts inside their arrays.
    unsafe { CStr::from_ptr(of.as_ptr()) }.to_owned()
}

/// What `pvm_config` tells of a host.
#[repr(C)]
pub struct HostInfo {
    tid: c_int,
    name: *mut c_char,
    architecture: *mut c_char,
    speed: c_int,
    signature: c_int,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_config(
    count: *mut c_int,
    architectures: *mut c_int,
    infos: *mut *mut HostInfo,
) -> c_int {
    static TEXTS: Kept<Vec<(CString, CString)>> = Kept::new(Vec::new());
    static INFOS: Kept<Vec<HostInfo>> = Kept::new(Vec::new());
    let hosts = match hosts() {
        Ok(hosts) => hosts,
        Err(code) => return error::result("pvm_config", code),
    };
    let (texts, told) = (TEXTS.get(), INFOS.get());
    *texts = hosts
        .iter()
        .map(|host| (text(&host.name), architecture(host)))
        .collect();
    *told = hosts
        .iter()
        .zip(texts.iter())
        .map(|(host, (name, architecture))| HostInfo {
            tid: tid::of_daemon(host.host),
            name: name.as_ptr().cast_mut(),
            architecture: architecture.as_ptr().cast_mut(),
            speed: SPEED,
            signature: codes::RAW,
        })
        .collect();
    let mut kinds: Vec<&CString> = texts.iter().map(|(_, architecture)| architecture).collect();
    kinds.sort_unstable();
    kinds.dedup();
    // SAFETY: the C contract: places for the answers, or NULL.
    unsafe {
        if !count.is_null() {
            *count = told.len() as c_int;
        }
        if !architectures.is_null() {
            *architectures = kinds.len() as c_int;
        }
        if !infos.is_null() {
            *infos = told.as_mut_ptr();
        }
    }
    0
}

/// PVM's name of a host's architecture.
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
        // SAFETY: the C contract: a text.
        let name = unsafe { CStr::from_ptr(name) };
        match hosts()?.iter().any(|host| text(&host.name).as_c_str() == name) {
            true => Ok(()),
            false => Err(codes::NO_HOST),
        }
    };
    match there() {
        // An answer, not a failure to be told.
        Err(codes::NO_HOST) => codes::NO_HOST,
        other => error::result("pvm_mstat", other.err().unwrap_or(0)),
    }
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
        // SAFETY: the C contract: a text.
        let name = unsafe { CStr::from_ptr(name) };
        match hosts()?.iter().any(|host| architecture(host).as_c_str() == name) {
            true => Ok(codes::RAW),
            false => Err(codes::NOT_FOUND),
        }
    };
    error::result("pvm_archcode", code().unwrap_or_else(|code| code))
}

/// The time of day here.
fn now() -> libc::timeval {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    libc::timeval {
        tv_sec: now.as_secs() as i64,
        tv_usec: i64::from(now.subsec_micros()),
    }
}

/// The clock of a host, and how far ours is from it. Of other hosts nobody can ask it yet.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_hostsync(
    which: c_int,
    clock: *mut libc::timeval,
    delta: *mut libc::timeval,
) -> c_int {
    let synced = || -> Result<(), i32> {
        enrol()?;
        let host = tid::host(which).ok_or(codes::NO_HOST)?;
        if host != crate::state::library().host {
            let known = hosts()?.iter().any(|known| known.host == host);
            return Err(if known { codes::NOT_IMPL } else { codes::NO_HOST });
        }
        // SAFETY: the C contract: places for times, or NULL.
        unsafe {
            if !clock.is_null() {
                *clock = now();
            }
            if !delta.is_null() {
                *delta = libc::timeval {
                    tv_sec: 0,
                    tv_usec: 0,
                };
            }
        }
        Ok(())
    };
    error::result("pvm_hostsync", synced().err().unwrap_or(0))
}

/// The names a program gives.
///
/// # Safety
/// `names` points to `count` texts if `count` is positive.
unsafe fn texts<'a>(names: *const *const c_char, count: c_int) -> Result<Vec<&'a CStr>, i32> {
    let count = usize::try_from(count).map_err(|_| codes::BAD_PARAM)?;
    if count == 0 || names.is_null() {
        return Err(codes::BAD_PARAM);
    }
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        // SAFETY: as the caller promises.
        let name = unsafe { *names.add(index) };
        if name.is_null() {
            return Err(codes::BAD_PARAM);
        }
        // SAFETY: as the caller promises.
        all.push(unsafe { CStr::from_ptr(name) });
    }
    Ok(all)
}

/// One code for each host. None can be added yet to a machine that PVM's programs have begun.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_addhosts(
    names: *const *const c_char,
    count: c_int,
    infos: *mut c_int,
) -> c_int {
    let _ = infos;
    // SAFETY: the C contract.
    let asked = enrol().and_then(|_| unsafe { texts(names, count) });
    let code = asked.err().unwrap_or(codes::NOT_IMPL);
    error::result("pvm_addhosts", code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_delhosts(
    names: *const *const c_char,
    count: c_int,
    infos: *mut c_int,
) -> c_int {
    let _ = infos;
    // SAFETY: the C contract.
    let asked = enrol().and_then(|_| unsafe { texts(names, count) });
    let code = asked.err().unwrap_or(codes::NOT_IMPL);
    error::result("pvm_delhosts", code)
}
