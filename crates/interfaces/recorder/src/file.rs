//! The record's file: creation, mapping, removal.

use std::ffi::{CStr, CString, OsStr};
use std::io::Error;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use regatta_record::{MAGIC, MAX_EVENTS, head, words};

use crate::map::{self, Map, now, time};

/// Settings from the launcher.
pub(crate) struct Settings {
    /// Maximum number of events kept. A power of two.
    events: usize,
    /// Processor time between two samples, in nanoseconds.
    pub period: u64,
    /// The folder of the records.
    folder: CString,
}

/// Environment variable with the number of events, the nanoseconds between samples, and the folder, separated by `:`.
const VARIABLE: &str = "REGATTA_PROFILE";

impl Settings {
    /// Reads the settings from the environment. Returns `None` if this process is not profiled.
    pub(crate) fn read() -> Option<Settings> {
        let value = std::env::var_os(VARIABLE)?;
        let mut parts = value.as_bytes().splitn(3, |&byte| byte == b':');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
        let (events, period) = (number()?, number()?);
        let folder = CString::new(parts.next()?).ok()?;
        let events = usize::try_from(events).ok()?;
        let events = events.clamp(1, MAX_EVENTS).next_power_of_two();
        Some(Settings {
            events,
            period,
            folder,
        })
    }
}

/// Reports on standard error why the process runs without a profile.
pub(crate) fn complain(problem: &str) {
    let pid = std::process::id();
    let _ = writeln!(
        std::io::stderr(),
        "regatta: process {pid} runs without a profile: {problem}"
    );
}

/// Ending of a record's file name.
const ENDING: &str = ".record";

static PATH: OnceLock<CString> = OnceLock::new();

/// Creates the file, maps it, and writes the head.
pub(crate) fn open(wanted: &Settings) -> Result<(), String> {
    let host = host_name();
    let name: String = host.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let name = format!("{name}-{}-{}{ENDING}", std::process::id(), now());
    let folder = open_folder(&wanted.folder)?;
    let made =
        CString::new(name.as_str()).map_err(|_| "the host's name contains a zero byte".to_owned());
    let mapped = made.and_then(|file| make(folder, &file, words(wanted.events) * 8));
    // SAFETY: this function has opened the descriptor and does not use it any more.
    unsafe { libc::close(folder) };
    let base = mapped.map_err(|problem| format!("{problem} in {}", shown(&wanted.folder)))?;
    let path = [wanted.folder.to_bytes(), b"/", name.as_bytes()].concat();
    let _ = CString::new(path).map(|path| PATH.set(path));
    // SAFETY: the mapping has this size, is zero as the new file is, and is never unmapped.
    unsafe { map::set(base.cast(), words(wanted.events)) };
    let Some(map) = map::map() else { return Ok(()) };
    map[head::EVENTS].store(wanted.events as u64, Relaxed);
    map[head::PID].store(std::process::id().into(), Relaxed);
    map[head::BOOT].store(boot(), Relaxed);
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    write_text(map, head::HOST, head::TEXT * 8 - 1, host.as_bytes());
    let path = program.as_os_str().as_bytes();
    // Of a long path the end is kept, which says more than the beginning.
    let front = path.len().saturating_sub(head::TEXT * 8 - 1);
    write_text(map, head::PROGRAM, head::TEXT * 8 - 1, &path[front..]);
    map[head::SIZE].store(words(wanted.events) as u64, Relaxed);
    map[head::MAGIC].store(MAGIC, Relaxed);
    Ok(())
}

/// Sets the beginning of the profile to now, so that it does not include the recorder's own start.
pub(crate) fn begin(map: Map) {
    map[head::BEGAN_REAL].store(time(libc::CLOCK_REALTIME), Relaxed);
    NANOS_BEFORE_RECORD.store(time(libc::CLOCK_PROCESS_CPUTIME_ID), Relaxed);
    map[head::BEGAN].store(now(), Relaxed);
}

/// Opens the folder, and creates it if it does not exist. Fails unless it belongs to this user and only this user has access.
fn open_folder(path: &CStr) -> Result<libc::c_int, String> {
    // SAFETY: `path` is NUL-terminated.
    unsafe { libc::mkdir(path.as_ptr(), 0o700) };
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: `path` is NUL-terminated.
    let folder = unsafe { libc::open(path.as_ptr(), flags) };
    if folder < 0 {
        return Err(failed(&format!("the directory {}", shown(path))));
    }
    // SAFETY: all zeros are a valid `stat`.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `folder` is open, and `found` is valid for writing.
    let known = unsafe { libc::fstat(folder, &mut found) } == 0;
    // SAFETY: `geteuid` has no preconditions.
    let mine = known && found.st_uid == unsafe { libc::geteuid() };
    if !mine || found.st_mode & 0o077 != 0 {
        // SAFETY: this function has opened `folder` and does not use it any more.
        unsafe { libc::close(folder) };
        let folder = shown(path);
        return Err(format!("other users can access the directory {folder}"));
    }
    Ok(folder)
}

/// Creates the file with all its blocks allocated, so that no later write finds the disk full, and maps it. If there is no room for it,
/// leaves an empty file with the error in its name, from which `regatta profile` learns the reason.
fn make(folder: libc::c_int, name: &CStr, bytes: usize) -> Result<*mut libc::c_void, String> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: `folder` is open, and `name` is NUL-terminated.
    let file = unsafe { libc::openat(folder, name.as_ptr(), flags, 0o600 as libc::c_uint) };
    if file < 0 {
        return Err(failed("a record"));
    }
    let mapped = allocate(file, bytes).and_then(|()| map_file(file, bytes));
    if mapped.is_err() {
        // Frees the blocks that were allocated.
        // SAFETY: `file` is open.
        unsafe { libc::ftruncate(file, 0) };
    }
    // SAFETY: this function has opened `file`, and the mapping does not need it.
    unsafe { libc::close(file) };
    mapped.map_err(|error| {
        leave_reason(folder, name, &error);
        format!("no space for {} KiB ({error})", bytes / 1024)
    })
}

/// Allocates all blocks of a file of this many bytes.
fn allocate(file: libc::c_int, bytes: usize) -> Result<(), Error> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for writing.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    // Checks the limit first: if it were exceeded, the kernel would kill the program with SIGXFSZ.
    if known && limit.rlim_cur < bytes as libc::rlim_t {
        return Err(Error::from_raw_os_error(libc::EFBIG));
    }
    loop {
        // SAFETY: `file` is open.
        match unsafe { libc::posix_fallocate(file, 0, bytes as libc::off_t) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(Error::from_raw_os_error(error)),
        }
    }
}

fn map_file(file: libc::c_int, bytes: usize) -> Result<*mut libc::c_void, Error> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: makes a new mapping of an open file that has this size.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            protection,
            libc::MAP_SHARED,
            file,
            0,
        )
    };
    match mapped {
        libc::MAP_FAILED => Err(Error::last_os_error()),
        mapped => Ok(mapped),
    }
}

/// Renames the empty file so that its name has the error code. Removes the file if that fails.
fn leave_reason(folder: libc::c_int, name: &CStr, error: &Error) {
    let stem = name.to_bytes().strip_suffix(ENDING.as_bytes());
    let code = error.raw_os_error().unwrap_or_default();
    let ending = format!("-error{code}{ENDING}");
    let renamed = CString::new([stem.unwrap_or_default(), ending.as_bytes()].concat());
    // SAFETY: `folder` is open, and both names are NUL-terminated.
    let left = renamed
        .is_ok_and(|to| unsafe { libc::renameat(folder, name.as_ptr(), folder, to.as_ptr()) == 0 });
    if !left {
        // SAFETY: `folder` is open, and `name` is NUL-terminated.
        unsafe { libc::unlinkat(folder, name.as_ptr(), 0) };
    }
}

/// Removes the file. The mapping stays valid.
pub(crate) fn remove() {
    if let Some(path) = PATH.get() {
        // SAFETY: `path` is NUL-terminated.
        unsafe { libc::unlink(path.as_ptr()) };
    }
}

/// Processor time of the process before its record began, in nanoseconds.
static NANOS_BEFORE_RECORD: AtomicU64 = AtomicU64::new(0);

/// Records the processor time of the process. A signal handler may call this.
pub(crate) fn note_processor(map: Map) {
    let used = time(libc::CLOCK_PROCESS_CPUTIME_ID);
    map[head::PROCESSOR].store(
        used.saturating_sub(NANOS_BEFORE_RECORD.load(Relaxed)),
        Relaxed,
    );
}

/// Writes at most `most` bytes of a text into words, followed by a NUL if it is shorter.
pub(crate) fn write_text(map: Map, at: usize, most: usize, text: &[u8]) {
    let text = &text[..text.len().min(most)];
    for (word, bytes) in map[at..].iter().zip(text.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_le_bytes(whole), Relaxed);
    }
    if text.len().is_multiple_of(8) && text.len() < most {
        map[at + text.len() / 8].store(0, Relaxed);
    }
}

fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: `name` is valid for writing `name.len() - 1` bytes.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or_default();
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Returns a hash of the boot id of this host.
fn boot() -> u64 {
    let id = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn shown(path: &CStr) -> String {
    let path = OsStr::from_bytes(path.to_bytes());
    path.to_string_lossy().into_owned()
}

fn failed(what: &str) -> String {
    let error = Error::last_os_error();
    format!("{what} cannot be created or opened ({error})")
}
