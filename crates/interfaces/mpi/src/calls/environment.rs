//! Initialization and finalization, versions, clocks.

use std::ffi::{CStr, c_char, c_int};
use std::io::Write;
use std::sync::OnceLock;

use regatta_sys as rg;

use crate::abi::*;
use crate::arguments::Out;
use crate::communicator;
use crate::error::{Result, fatal_line};
use crate::info::{self, Hints};
use crate::process::{self, Stage};
use crate::text;

/// Maximum length in bytes of the line that MPI_Abort writes. A communicator's name has at most [`MAX_OBJECT_NAME`].
const MAX_ABORT_LINE_BYTES: usize = 128 + MAX_OBJECT_NAME as usize;

pub unsafe fn init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> Result {
    process::initialize(THREAD_SINGLE)
}

pub unsafe fn init_thread(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: Out<c_int>,
) -> Result {
    // The lowest level that satisfies the request, at most MPI_THREAD_MULTIPLE.
    let levels = [THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED];
    let level = levels.into_iter().find(|&level| required <= level);
    let level = level.unwrap_or(THREAD_MULTIPLE);
    process::initialize(level)?;
    provided.put(level);
    Ok(())
}

pub fn query_thread(provided: Out<c_int>) -> Result {
    process::require()?;
    provided.put(process::thread_level());
    Ok(())
}

pub fn is_thread_main(flag: Out<c_int>) -> Result {
    process::require()?;
    flag.put(c_int::from(process::is_main_thread()));
    Ok(())
}

pub unsafe fn finalize() -> Result {
    process::finalize()
}

pub fn initialized(flag: Out<c_int>) -> Result {
    flag.put(c_int::from(process::stage() != Stage::Before));
    Ok(())
}

pub fn finalized(flag: Out<c_int>) -> Result {
    flag.put(c_int::from(process::stage() == Stage::After));
    Ok(())
}

/// Aborts. May be called in a signal handler that interrupts another MPI call or the C library in this thread, so it
/// neither blocks nor allocates.
pub unsafe fn abort(comm: Comm, errorcode: c_int) -> Result {
    let mut line = [0; MAX_ABORT_LINE_BYTES];
    let mut rest = &mut line[..];
    // A longer line is truncated.
    let _ = write!(rest, "MPI_Abort is called with code {errorcode}");
    if let Some(found) = communicator::try_get(comm) {
        let found = found?;
        let _ = write!(rest, " by rank {} of ", found.rank);
        let named =
            found.try_with_name(|name| rest.write_all(name.to_bytes()).is_ok() && !name.is_empty());
        if named != Some(true) {
            let _ = write!(rest, "a communicator");
        }
    }
    let left = rest.len();
    fatal_line(&line[..MAX_ABORT_LINE_BYTES - left], errorcode)
}

pub fn get_version(version: Out<c_int>, subversion: Out<c_int>) -> Result {
    version.put(VERSION);
    subversion.put(SUBVERSION);
    Ok(())
}

pub unsafe fn get_library_version(version: Out<c_char>, resultlen: Out<c_int>) -> Result {
    // SAFETY: the engine's text is NUL-terminated and static.
    let engine = unsafe { CStr::from_ptr(rg::rg_version()) }.to_string_lossy();
    let engine = engine.strip_prefix("regatta ").unwrap_or(&engine);
    let text = format!("Regatta {engine}, MPI {VERSION}.{SUBVERSION}");
    // SAFETY: the caller guarantees room for the longest text.
    resultlen.put(unsafe { text::give(text.as_bytes(), version, MAX_LIBRARY_VERSION_STRING) });
    Ok(())
}

pub unsafe fn get_processor_name(name: Out<c_char>, resultlen: Out<c_int>) -> Result {
    process::require()?;
    let mut host = [0; MAX_PROCESSOR_NAME as usize];
    // SAFETY: the length excludes the last byte of the array, which stays 0.
    unsafe { libc::gethostname(host.as_mut_ptr(), host.len() - 1) };
    // SAFETY: the array is NUL-terminated.
    let host = unsafe { CStr::from_ptr(host.as_ptr()) };
    // SAFETY: the caller guarantees room for the longest text.
    resultlen.put(unsafe { text::give(host.to_bytes(), name, MAX_PROCESSOR_NAME) });
    Ok(())
}

pub unsafe fn wtime() -> f64 {
    // SAFETY: the call has no arguments and no preconditions.
    unsafe { rg::rg_time() }
}

/// Returns the smallest step of the clock that was observed, in seconds.
pub unsafe fn wtick() -> f64 {
    static TICK: OnceLock<f64> = OnceLock::new();
    *TICK.get_or_init(|| {
        // SAFETY: the call has no arguments and no preconditions.
        let now = || unsafe { rg::rg_time() };
        let step = || {
            let before = now();
            (0..1000).map(|_| now() - before).find(|step| *step > 0.0)
        };
        let steps = (0..100).filter_map(|_| step());
        steps.fold(1e-6, f64::min)
    })
}

/// Does nothing: there is no profiler whose level of detail it could set.
pub unsafe fn pcontrol(_level: c_int) -> Result {
    Ok(())
}

pub fn get_hw_resource_info(hw_info: Out<Info>) -> Result {
    process::require()?;
    let mut hints = Hints::default();
    hints.set_text(c"mpi_shared_memory", "true");
    hw_info.put(info::make(hints)?);
    Ok(())
}
