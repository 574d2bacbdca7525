//! The record's file: made, mapped, removed.

use std::ffi::{CStr, CString, OsStr};
use std::io::Error;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use regatta_record::{MAGIC, MAX_EVENTS, head, words};

use crate::map::{self, Map, now, time};

/// The launcher's wishes.
pub(crate) struct Settings {
    /// Room for events: a power of two.
    events: usize,
    /// Nanoseconds of processor time between two samples.
    pub period: u64,
    /// Where records are.
    folder: CString,
}

/// The variable with the number of events, the nanoseconds between samples, and the folder.
const VARIABLE: &str = "REGATTA_PROFILE";

impl Settings {
    /// Wishes in the environment; none: this process is not profiled.
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

/// A sentence on standard error.
pub(crate) fn complain(problem: &str) {
    let pid = std::process::id();
    let _ = writeln!(
        std::io::stderr(),
        "regatta: process {pid} runs without a profile: {problem}"
    );
}

/// The end of a record's name.
const ENDING: &str = ".record";

static PATH: OnceLock<CString> = OnceLock::new();

/// Makes the file and maps it.
pub(crate) fn open(wanted: &Settings) -> Result<(), String> {
    let host = host_name();
    let name: String = host.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    let name = format!("{name}-{}-{}{ENDING}", std::process::id(), now());
    let folder = open_folder(&wanted.folder)?;
    let made = CString::new(name.as_str()).map_err(|_| "the host's name has a zero".to_owned());
    let mapped = made.and_then(|file| make(folder, &file, words(wanted.events) * 8));
    // SAFETY: a descriptor of ours, which is not used any more.
    unsafe { libc::close(folder) };
    let base = mapped.map_err(|problem| format!("{problem} in {}", shown(&wanted.folder)))?;
    let path = [wanted.folder.to_bytes(), b"/", name.as_bytes()].concat();
    let _ = CString::new(path).map(|path| PATH.set(path));
    // SAFETY: a mapping of this size, zero as the file is, which stays.
    unsafe { map::set(base.cast(), words(wanted.events)) };
    let Some(map) = map::map() else { return Ok(()) };
    map[head::EVENTS].store(wanted.events as u64, Relaxed);
    map[head::PID].store(std::process::id().into(), Relaxed);
    map[head::BOOT].store(boot(), Relaxed);
    let program = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    write_text(map, head::HOST, head::TEXT * 8 - 1, host.as_bytes());
    let path = program.as_os_str().as_bytes();
    // The end of a long path says more than its beginning.
    let front = path.len().saturating_sub(head::TEXT * 8 - 1);
    write_text(map, head::PROGRAM, head::TEXT * 8 - 1, &path[front..]);
    map[head::SIZE].store(words(wanted.events) as u64, Relaxed);
    map[head::MAGIC].store(MAGIC, Relaxed);
    Ok(())
}

/// The profile begins: the time before is the recorder's.
pub(crate) fn begin(map: Map) {
    map[head::BEGAN_REAL].store(time(libc::CLOCK_REALTIME), Relaxed);
    BEFORE.store(time(libc::CLOCK_PROCESS_CPUTIME_ID), Relaxed);
    map[head::BEGAN].store(now(), Relaxed);
}

/// The folder, which is made if it is not there, and is to be this user's alone.
fn open_folder(path: &CStr) -> Result<libc::c_int, String> {
    // SAFETY: a text with its end.
    unsafe { libc::mkdir(path.as_ptr(), 0o700) };
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: likewise.
    let folder = unsafe { libc::open(path.as_ptr(), flags) };
    if folder < 0 {
        return Err(failed(&format!("the directory {}", shown(path))));
    }
    // SAFETY: all zeros are a `stat`, which is written only.
    let mut found: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, and the struct just made.
    let known = unsafe { libc::fstat(folder, &mut found) } == 0;
    // SAFETY: no arguments.
    let mine = known && found.st_uid == unsafe { libc::geteuid() };
    if !mine || found.st_mode & 0o077 != 0 {
        // SAFETY: a descriptor of ours, which is not used any more.
        unsafe { libc::close(folder) };
        let folder = shown(path);
        return Err(format!("the directory {folder} is not this user's alone"));
    }
    Ok(folder)
}

/// Makes the file with all its blocks, so that no later write finds the disk full, and maps it. Without room for it an empty file is
/// left, whose name says why: `regatta profile` hears of it so.
fn make(folder: libc::c_int, name: &CStr, bytes: usize) -> Result<*mut libc::c_void, String> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: an open descriptor and a text with its end.
    let file = unsafe { libc::openat(folder, name.as_ptr(), flags, 0o600 as libc::c_uint) };
    if file < 0 {
        return Err(failed("a record"));
    }
    let mapped = allocate(file, bytes).and_then(|()| map_file(file, bytes));
    if mapped.is_err() {
        // SAFETY: an open descriptor. The memory that was allocated is room for others.
        unsafe { libc::ftruncate(file, 0) };
    }
    // SAFETY: a descriptor of ours; the mapping does not need it.
    unsafe { libc::close(file) };
    mapped.map_err(|error| {
        leave_reason(folder, name, &error);
        format!("no room for {} KiB ({error})", bytes / 1024)
    })
}

/// Has a file of this many bytes have all its blocks.
fn allocate(file: libc::c_int, bytes: usize) -> Result<(), Error> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes the struct just made.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    // Beyond the limit the kernel would end the program by SIGXFSZ.
    if known && limit.rlim_cur < bytes as libc::rlim_t {
        return Err(Error::from_raw_os_error(libc::EFBIG));
    }
    loop {
        // SAFETY: an open descriptor.
        match unsafe { libc::posix_fallocate(file, 0, bytes as libc::off_t) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(Error::from_raw_os_error(error)),
        }
    }
}

fn map_file(file: libc::c_int, bytes: usize) -> Result<*mut libc::c_void, Error> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of an open file of this size.
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

/// Has the name of the empty file say which error there was, or removes it.
fn leave_reason(folder: libc::c_int, name: &CStr, error: &Error) {
    let stem = name.to_bytes().strip_suffix(ENDING.as_bytes());
    let code = error.raw_os_error().unwrap_or_default();
    let ending = format!("-error{code}{ENDING}");
    let renamed = CString::new([stem.unwrap_or_default(), ending.as_bytes()].concat());
    // SAFETY: an open descriptor, twice, and texts with their ends.
    let left = renamed
        .is_ok_and(|to| unsafe { libc::renameat(folder, name.as_ptr(), folder, to.as_ptr()) == 0 });
    if !left {
        // SAFETY: an open descriptor and a text with its end.
        unsafe { libc::unlinkat(folder, name.as_ptr(), 0) };
    }
}

/// Removes the file. The mapping stays.
pub(crate) fn remove() {
    if let Some(path) = PATH.get() {
        // SAFETY: a text with its end.
        unsafe { libc::unlink(path.as_ptr()) };
    }
}

/// Processor time of the process before its record began.
static BEFORE: AtomicU64 = AtomicU64::new(0);

/// Notes how much processor time the process has had. A signal's handler may call it.
pub(crate) fn note_processor(map: Map) {
    let used = time(libc::CLOCK_PROCESS_CPUTIME_ID);
    map[head::PROCESSOR].store(used.saturating_sub(BEFORE.load(Relaxed)), Relaxed);
}

/// Writes a text of at most this many bytes into words, with zeros behind it.
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
    // SAFETY: the array just made, with its length.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|&byte| byte == 0).unwrap_or_default();
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// A number of this boot of this host.
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
    format!("{what} cannot be made or opened ({error})")
}
