//! The system calls of starting and watching tasks that have no safe wrapper: `fork`, `clone`, `execve`,
//! `sigprocmask`, `signalfd`, `getifaddrs` and what leaves a terminal.
//!
//! This is the only file of the crate with `unsafe` in it. Everything offered to the rest of the crate is a safe
//! function; what each one needs to be sound stands at its block.
//!
//! [`Image::start`] is the hot path of starting a job. A task is started by `clone(CLONE_VM | CLONE_VFORK)`: the child
//! borrows this process's memory, on a stack of its own, until it has become the program, and this process is suspended
//! until then. No page table is copied, so the price does not grow with the launcher, and the child can say why it
//! failed by writing to memory we share.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::CpuSet;

use crate::system::inherited;
use regatta_job::hosts::Interface;

/// Room for the child between `clone` and `execve`: its deepest call chain is a handful of system calls.
const CHILD_STACK_BYTES: usize = 64 * 1024;

/// A set of blocked signals.
#[derive(Clone, Copy)]
pub(crate) struct Mask(libc::sigset_t);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

/// Blocks `signals` for the calling thread, and returns what was blocked before.
pub(crate) fn block(signals: &[Signal]) -> Mask {
    let set = sigset(signals);
    let mut before = MaybeUninit::uninit();
    // SAFETY: both pointers are to sets that live across the call; `pthread_sigmask` fills the second one, and cannot
    // fail with a valid first argument.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr());
        Mask(before.assume_init())
    }
}

/// Makes `mask` the calling thread's set of blocked signals.
pub(crate) fn restore(mask: &Mask) {
    // SAFETY: the set is initialised and lives across the call; a null third argument asks for nothing back.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask.0, std::ptr::null_mut()) };
}

/// Blocks no signal any more.
pub(crate) fn unblock_all() {
    restore(&Mask(sigset(&[])));
}

/// Has a command start with `mask` as its set of blocked signals; otherwise it would inherit ours.
pub(crate) fn start_with(command: &mut Command, mask: &Mask) {
    let mask = *mask;
    // SAFETY: between fork and exec the child only makes a system call on a set of its own; it takes no lock and does
    // not allocate.
    unsafe {
        command.pre_exec(move || {
            restore(&mask);
            Ok(())
        });
    }
}

/// A descriptor that this program was started with, under a number of ours; children do not get it.
pub(crate) fn inherited(number: i32) -> rustix::io::Result<OwnedFd> {
    // SAFETY: `fcntl` on any number is harmless; both results are checked.
    let fd = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: as above; nobody else in this program uses that number.
    if fd < 0 || unsafe { libc::close(number) } < 0 {
        return Err(errno());
    }
    // SAFETY: just duplicated, so it is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes whatever this program was started with beside its standard streams and the descriptors `kept`, which ascend. To be called
/// before it has opened anything.
pub(crate) fn close_inherited(kept: &[RawFd]) {
    let mut first = 3;
    for end in kept.iter().copied().chain([RawFd::MAX]) {
        if first < end {
            close_range(first, end - 1);
        }
        first = end.saturating_add(1);
    }
}

fn close_range(first: RawFd, last: RawFd) {
    let (from, to) = (first as libc::c_uint, last as libc::c_uint);
    // The C library has a function for it since 2.34 only, and the command runs where there are older ones.
    // SAFETY: nothing in this program owns a descriptor yet but those that its caller keeps.
    if unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } < 0 {
        for fd in first..=last.min(1024) {
            // SAFETY: as above; a number that is no descriptor is an error without consequence.
            unsafe { libc::close(fd) };
        }
    }
}

/// Makes what the end of a child does the default again: whoever waits for it is told.
pub(crate) fn expect_children() {
    // SAFETY: setting a disposition to the default installs no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Has this process ignore a signal.
pub(crate) fn ignore(signal: Signal) {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(signal.as_raw(), libc::SIG_IGN) };
}

/// Whether this process ignores a signal.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null second argument changes nothing, and the call fills the third; of its zeros none is an ignored signal.
    unsafe {
        libc::sigaction(signal.as_raw(), std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// A descriptor from which the blocked `signals` are read, 128 bytes each.
pub(crate) fn signalfd(signals: &[Signal]) -> rustix::io::Result<OwnedFd> {
    let set = sigset(signals);
    // SAFETY: the set is initialised and lives across the call.
    let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the call succeeded, so this is a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The process group of this process. In a PID namespace that was made around us its number may be unknown (as under
/// `docker exec` or `unshare --pid`); then this process leaves it for one of its own.
pub(crate) fn process_group() -> Pid {
    // SAFETY: takes nothing, and always succeeds.
    let group = unsafe { libc::getpgrp() };
    Pid::from_raw(group).unwrap_or_else(|| {
        let _ = rustix::process::setpgid(None, None);
        rustix::process::getpid()
    })
}

/// Have no controlling terminal any more, if there was one, without leaving the session: its end and its keys do not concern
/// this process, nor what it starts.
pub(crate) fn leave_terminal() {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    if let Ok(terminal) = rustix::fs::open("/dev/tty", flags, Mode::empty()) {
        // SAFETY: the request has no argument.
        unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
    }
}

/// Splits this process in two. Returns the child's pid to the parent, and nothing to the child.
///
/// The caller must be single-threaded: the child has only the calling thread, so a lock that another thread held would
/// stay locked in it for ever. The launcher has one thread; a program that embeds it calls `supervise` instead.
pub(crate) fn fork() -> rustix::io::Result<Option<Pid>> {
    // SAFETY: `fork` itself has no memory requirements; with one thread the child's copy of memory is consistent.
    match unsafe { libc::fork() } {
        pid if pid < 0 => Err(errno()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Whether this user may make a user namespace, found by making one for an instant.
pub fn user_namespace_allowed() -> rustix::io::Result<()> {
    extern "C" fn leave(_: *mut libc::c_void) -> libc::c_int {
        0
    }
    let mut stack = vec![0_u8; CHILD_STACK_BYTES];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: `leave` touches no memory but its own frame, and the stack outlives the child, because CLONE_VFORK
    // suspends us until the child has ended.
    let pid = unsafe { libc::clone(leave, top_of(&mut stack), flags, std::ptr::null_mut()) };
    child_of(pid).map(reap)
}

/// Whether this process may make an io_uring, found by making one for an instant.
pub fn io_uring_allowed() -> rustix::io::Result<()> {
    /// Larger than any kernel's `struct io_uring_params` (120 bytes).
    const PARAMETERS: usize = 256;
    let mut parameters = [0_u64; PARAMETERS / 8];
    // SAFETY: the kernel reads and writes its structure at the start of an array that is larger, aligned and zeroed.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the call succeeded, so this is a fresh descriptor that nobody else owns.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(())
}

/// Whether this process may open a packet socket, found by opening one that receives nothing.
pub fn packet_socket_allowed() -> rustix::io::Result<()> {
    // SAFETY: a plain system call.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the call succeeded, so this is a fresh descriptor that nobody else owns.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// The addresses of all interfaces that are up.
pub(crate) fn interfaces() -> Vec<Interface> {
    let mut list = std::ptr::null_mut();
    // SAFETY: on success the call stores the head of a list in the variable it is given.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next: *const libc::ifaddrs = list;
    // SAFETY: each entry of the list leads to the next or is null, and all live until they are freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if entry.ifa_flags & libc::IFF_UP as u32 == 0 {
            continue;
        }
        // SAFETY: the name is a C string that lives as long as its entry.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        // SAFETY: the address is null or leads to a socket address of the family it names.
        if let Some(address) = unsafe { ip(entry.ifa_addr) } {
            let name = name.to_string_lossy().into_owned();
            found.push(Interface { name, address });
        }
    }
    // SAFETY: the list came from `getifaddrs`, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// The IP address in a socket address.
///
/// # Safety
///
/// The pointer is null or leads to a socket address that is as long as its family says.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller promises; every socket address begins with its family.
    match libc::c_int::from(unsafe { address.as_ref() }?.sa_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is an IPv4 address; it may be less aligned than the type.
            let address: libc::sockaddr_in =
                unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above, for IPv6.
            let address: libc::sockaddr_in6 =
                unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Strings laid out as `execve` wants them: pointers to each, then a null.
struct Strings {
    owned: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Strings {
    fn new(owned: Vec<CString>) -> Self {
        // A CString's bytes live on the heap, so they stay where they are when the vector moves.
        let pointers = owned
            .iter()
            .map(|s| s.as_ptr())
            .chain([std::ptr::null()])
            .collect();
        Self { owned, pointers }
    }

    fn set_last(&mut self, string: CString) {
        let last = self.owned.len() - 1;
        self.pointers[last] = string.as_ptr();
        self.owned[last] = string;
    }
}

/// The program of a job, ready to be started again and again.
pub(crate) struct Image {
    path: CString,
    arguments: Strings,
    environment: Strings,
    /// Where the tasks run; none: where we do.
    directory: Option<CString>,
    /// The variable that says which process the task is: its place in the environment, and its text.
    process: Option<(usize, Vec<u8>)>,
    stack: Vec<u8>,
}

/// A variable of this name without a value gets the number of the process as its value. Programs of PVM look for it.
const PROCESS: &[u8] = b"PVMEPID=";
/// Room for that value: the digits of the largest number.
const DIGITS: usize = 10;

/// Settings that differ from task to task, or from this process.
pub(crate) struct TaskPlacement<'a> {
    /// The task's standard input, output and error; `None` inherits ours.
    pub stdio: [Option<BorrowedFd<'a>>; 3],
    /// The descriptors that stay open across `execve`, under their numbers here.
    pub kept: [Option<BorrowedFd<'a>>; 3],
    /// Where the task may run; `None` leaves it free.
    pub cores: Option<CpuSet>,
    /// The process group the task belongs to, so that a terminal's Ctrl-C and Ctrl-Z reach it.
    pub group: Pid,
    /// The limit of open files to give back, when ours was raised.
    pub files: Option<Rlimit>,
    /// The signals that are to be blocked in the task.
    pub mask: &'a Mask,
}

/// Why a task could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartError {
    /// The kernel gave us no process.
    NoProcess(Errno),
    /// The process was there, but could not be set up.
    SetUp(Errno),
    /// The program could not be executed.
    Execute(Errno),
}

/// The child's instructions, and the place for its reason when it fails.
struct Order<'a> {
    image: *mut Image,
    place: &'a TaskPlacement<'a>,
    supervisor: Pid,
    failure: Option<StartError>,
}

impl Image {
    /// `variable` becomes the last entry of the environment, and is replaced for each task.
    pub(crate) fn new(
        path: CString,
        arguments: Vec<CString>,
        mut environment: Vec<CString>,
    ) -> Self {
        let process = environment
            .iter()
            .position(|text| text.as_bytes() == PROCESS)
            .map(|at| (at, [PROCESS, &[0; DIGITS + 1]].concat()));
        environment.push(CString::default());
        Self {
            path,
            arguments: Strings::new(arguments),
            environment: Strings::new(environment),
            directory: None,
            process,
            stack: vec![0; CHILD_STACK_BYTES],
        }
    }

    /// Stands where an image is not at the moment.
    pub(crate) fn empty() -> Self {
        Self {
            path: CString::default(),
            arguments: Strings::new(Vec::new()),
            environment: Strings::new(vec![CString::default()]),
            directory: None,
            process: None,
            stack: Vec::new(),
        }
    }

    /// Writes which process this one is where the program will find it. No allocation: the child calls it before `execve`.
    fn name_process(&mut self) {
        let Some((at, text)) = &mut self.process else {
            return;
        };
        let mut pid = rustix::process::getpid().as_raw_nonzero().get() as u32;
        let mut digits = [0_u8; DIGITS];
        let mut first = DIGITS;
        while pid > 0 {
            first -= 1;
            digits[first] = b'0' + (pid % 10) as u8;
            pid /= 10;
        }
        let value = &digits[first..];
        let behind = PROCESS.len() + value.len();
        text[PROCESS.len()..behind].copy_from_slice(value);
        text[behind] = 0;
        self.environment.pointers[*at] = text.as_ptr().cast();
    }

    /// Has the tasks run in this directory.
    pub(crate) fn set_directory(&mut self, directory: CString) {
        self.directory = Some(directory);
    }

    /// Starts one task, with `variable` (`NAME=value`) added to its environment, and returns its pid.
    pub(crate) fn start(
        &mut self,
        variable: CString,
        place: &TaskPlacement,
    ) -> Result<Pid, StartError> {
        self.environment.set_last(variable);
        let stack = top_of(&mut self.stack);
        let mut order = Order {
            image: self,
            place,
            supervisor: rustix::process::getpid(),
            failure: None,
        };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: CLONE_VFORK suspends us until the child has executed the program or ended, so `order`, all that it
        // points to, and the stack (used by nobody else: `self` is borrowed mutably) outlive the child's use of them.
        // `become_task` keeps to system calls; it takes no lock and allocates nothing.
        let pid = unsafe { libc::clone(become_task, stack, flags, (&raw mut order).cast()) };
        let pid = child_of(pid).map_err(StartError::NoProcess)?;
        match order.failure {
            None => Ok(pid),
            Some(failure) => {
                reap(pid);
                Err(failure)
            }
        }
    }
}

/// The child's side of [`Image::start`].
extern "C" fn become_task(order: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passed a pointer to an `Order` that lives until we have executed or ended, and is suspended
    // meanwhile, so nothing else touches it.
    let order = unsafe { &mut *order.cast::<Order>() };
    // SAFETY: the image outlives the child (see `start`), and nobody else touches it meanwhile.
    unsafe { &mut *order.image }.name_process();
    // SAFETY: as above; nobody changes it from here on.
    let directory = unsafe { &(*order.image).directory };
    order.failure = match set_up(order.place, directory.as_deref(), order.supervisor) {
        Err(errno) => Some(StartError::SetUp(errno)),
        Ok(()) => {
            // SAFETY: the image outlives the child (see `start`); path and strings are null-terminated, the two
            // arrays end with a null pointer.
            unsafe {
                let image = &*order.image;
                libc::execve(
                    image.path.as_ptr(),
                    image.arguments.pointers.as_ptr(),
                    image.environment.pointers.as_ptr(),
                );
            }
            Some(StartError::Execute(errno()))
        }
    };
    127
}

/// Everything between `clone` and `execve`. Plain system calls only: the memory is the parent's.
fn set_up(
    place: &TaskPlacement,
    directory: Option<&CStr>,
    supervisor: Pid,
) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(supervisor) {
        // The supervisor died before the line above took effect: nobody would end us.
        return Err(Errno::SRCH);
    }
    // Refused when the group is gone or in another session; the task then stays in the supervisor's group.
    let _ = rustix::process::setpgid(None, Some(place.group));
    if let Some(cores) = &place.cores {
        rustix::thread::sched_setaffinity(None, cores)?;
    }
    if let Some(files) = place.files {
        rustix::process::setrlimit(Resource::Nofile, files)?;
    }
    directory.map_or(Ok(()), rustix::process::chdir)?;
    let [input, output, error] = place.stdio;
    input.map_or(Ok(()), rustix::stdio::dup2_stdin)?;
    output.map_or(Ok(()), rustix::stdio::dup2_stdout)?;
    error.map_or(Ok(()), rustix::stdio::dup2_stderr)?;
    for kept in place.kept.into_iter().flatten() {
        rustix::io::fcntl_setfd(kept, FdFlags::empty())?;
    }
    // SAFETY: setting a disposition to the default installs no handler. Rust programs start with SIGPIPE ignored, and
    // a task must not inherit that.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    if let Some(inherited) = inherited::get() {
        if inherited.ignores_children {
            // SAFETY: ignoring a signal installs no handler.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        }
        if !inherited.ignores_file_size {
            // SAFETY: as above, for the default.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
        }
        rustix::process::umask(inherited.umask);
    }
    restore(place.mask);
    Ok(())
}

fn sigset(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set before anything reads it; the numbers are valid signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}

/// The end of a stack that grows downwards, aligned as calls need it.
fn top_of(stack: &mut [u8]) -> *mut libc::c_void {
    let range = stack.as_mut_ptr_range();
    range.end.wrapping_sub(range.end as usize % 64).cast()
}

/// Month, day, hour, minute and second where this process is.
pub(crate) fn local_time() -> [i32; 5] {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs()) as libc::time_t;
    // SAFETY: all zero is a time; both places are ours.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now, &mut time);
        time
    };
    [
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec,
    ]
}

/// The child, from the return value of `clone` in the parent.
fn child_of(returned: libc::pid_t) -> rustix::io::Result<Pid> {
    if returned > 0 {
        Pid::from_raw(returned).ok_or(Errno::CHILD)
    } else {
        Err(errno())
    }
}

fn reap(pid: Pid) {
    let _ = rustix::io::retry_on_intr(|| {
        rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())
    });
}

fn errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// A C string of `bytes`, which come from the command line or the environment and so hold no null byte.
pub(crate) fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap_or_else(|_| CStr::to_owned(c""))
}
