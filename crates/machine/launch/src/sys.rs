//! System calls for starting and watching tasks that have no safe wrapper: `fork`, `clone`, `execve`, `sigprocmask`,
//! `signalfd`, `getifaddrs` and detaching from a terminal.
//!
//! This is the only file of the crate with `unsafe` code. All functions for the rest of the crate are safe. What makes
//! each block sound is stated there.
//!
//! [`Image::start`] is the hot path of starting a job. A task is started by `clone(CLONE_VM | CLONE_VFORK)`: the child
//! borrows this process's memory, on a stack of its own, until it has executed the program, and this process is
//! suspended until then. No page table is copied, so the cost does not grow with the launcher, and the child can report
//! why it failed by writing to the shared memory.
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

/// Size of the child's stack between `clone` and `execve`. Its deepest call chain is a handful of system calls.
const CHILD_STACK_BYTES: usize = 64 * 1024;

/// A set of blocked signals.
#[derive(Clone, Copy)]
pub(crate) struct Mask(libc::sigset_t);

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

/// Blocks `signals` for the calling thread, and returns the previous mask.
pub(crate) fn block(signals: &[Signal]) -> Mask {
    let set = sigset(signals);
    let mut before = MaybeUninit::uninit();
    // SAFETY: both pointers are to sets that live across the call. `pthread_sigmask` fills the second one, and cannot
    // fail with a valid first argument.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr());
        Mask(before.assume_init())
    }
}

/// Makes `mask` the calling thread's set of blocked signals.
pub(crate) fn restore(mask: &Mask) {
    // SAFETY: the set is initialised and lives across the call. A null third argument means that the previous mask is
    // not stored.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask.0, std::ptr::null_mut()) };
}

/// Unblocks all signals.
pub(crate) fn unblock_all() {
    restore(&Mask(sigset(&[])));
}

/// Makes a command start with `mask` as its set of blocked signals. Otherwise it would inherit that of this thread.
pub(crate) fn start_with(command: &mut Command, mask: &Mask) {
    let mask = *mask;
    // SAFETY: between fork and exec the child only makes a system call on a set of its own. It takes no lock and does
    // not allocate.
    unsafe {
        command.pre_exec(move || {
            restore(&mask);
            Ok(())
        });
    }
}

/// Takes an inherited descriptor by its number. The returned duplicate has CLOEXEC set.
pub(crate) fn inherited(number: i32) -> rustix::io::Result<OwnedFd> {
    // SAFETY: `fcntl` with F_DUPFD_CLOEXEC is sound for any number, and its result is checked.
    let fd = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    // SAFETY: `close` is called for a number that the caller has passed and that no other code in this program uses.
    if fd < 0 || unsafe { libc::close(number) } < 0 {
        return Err(errno());
    }
    // SAFETY: the descriptor was just created by `fcntl`, so no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes all inherited descriptors except the standard streams and `kept`, which must ascend. To be called before this
/// program has opened any file.
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
    // The C library has a function for this system call only since 2.34, and the command also runs with older ones.
    // SAFETY: nothing in this program owns a descriptor yet, except those that the caller keeps.
    if unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) } < 0 {
        for fd in first..=last.min(1024) {
            // SAFETY: nothing in this program owns the descriptor, and a number without one is only an error.
            unsafe { libc::close(fd) };
        }
    }
}

/// Sets SIGCHLD to the default, so that ended children are reported to `wait`.
pub(crate) fn expect_children() {
    // SAFETY: setting a disposition to the default installs no handler.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Makes this process ignore a signal.
pub(crate) fn ignore(signal: Signal) {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(signal.as_raw(), libc::SIG_IGN) };
}

/// Returns whether this process ignores a signal.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null second argument changes nothing, and the call fills the third. If it fails, the zeros there do not
    // mean an ignored signal.
    unsafe {
        libc::sigaction(signal.as_raw(), std::ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Returns a descriptor from which the blocked `signals` are read, 128 bytes each.
pub(crate) fn signalfd(signals: &[Signal]) -> rustix::io::Result<OwnedFd> {
    let set = sigset(signals);
    // SAFETY: the set is initialised and lives across the call.
    let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the call succeeded, so this is a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the process group of this process. In a PID namespace created around this process its number may be unknown
/// (as under `docker exec` or `unshare --pid`). Then this process moves to a group of its own.
pub(crate) fn process_group() -> Pid {
    // SAFETY: `getpgrp` has no arguments and always succeeds.
    let group = unsafe { libc::getpgrp() };
    Pid::from_raw(group).unwrap_or_else(|| {
        let _ = rustix::process::setpgid(None, None);
        rustix::process::getpid()
    })
}

/// Detaches this process from its controlling terminal, if it has one, without leaving the session. The terminal's
/// hangup and signals then do not reach this process or its children.
pub(crate) fn leave_terminal() {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    if let Ok(terminal) = rustix::fs::open("/dev/tty", flags, Mode::empty()) {
        // SAFETY: the request TIOCNOTTY has no argument.
        unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
    }
}

/// Forks this process. Returns the child's pid in the parent, and `None` in the child.
///
/// The caller must be single-threaded: the child has only the calling thread, so a lock held by another thread would
/// stay locked in it forever. The launcher has one thread; a program that embeds it calls `supervise` instead.
pub(crate) fn fork() -> rustix::io::Result<Option<Pid>> {
    // SAFETY: `fork` itself has no memory requirements. With one thread the child's copy of memory is consistent.
    match unsafe { libc::fork() } {
        pid if pid < 0 => Err(errno()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Checks whether this user may create a user namespace, by creating one for a moment.
pub fn user_namespace_allowed() -> rustix::io::Result<()> {
    extern "C" fn leave(_: *mut libc::c_void) -> libc::c_int {
        0
    }
    let mut stack = vec![0_u8; CHILD_STACK_BYTES];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: `leave` touches no memory but its own frame, and the stack outlives the child, because CLONE_VFORK
    // suspends this process until the child has ended.
    let pid = unsafe { libc::clone(leave, top_of(&mut stack), flags, std::ptr::null_mut()) };
    child_of(pid).map(reap)
}

/// Checks whether this process may create an io_uring, by creating one for a moment.
pub fn io_uring_allowed() -> rustix::io::Result<()> {
    /// Larger than any kernel's `struct io_uring_params` (120 bytes).
    const PARAMETERS: usize = 256;
    let mut parameters = [0_u64; PARAMETERS / 8];
    // SAFETY: the kernel reads and writes its structure at the start of an array that is larger, aligned and zeroed.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the call succeeded, so this is a new descriptor without another owner.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(())
}

/// Checks whether this process may open a packet socket, by opening one that receives nothing.
pub fn packet_socket_allowed() -> rustix::io::Result<()> {
    // SAFETY: `socket` takes three numbers and touches no memory of this process.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the call succeeded, so this is a new descriptor without another owner.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// Returns the addresses of all interfaces that are up.
pub(crate) fn interfaces() -> Vec<Interface> {
    let mut list = std::ptr::null_mut();
    // SAFETY: on success the call stores a pointer to a list in `list`, which lives across the call.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next: *const libc::ifaddrs = list;
    // SAFETY: each entry points to the next or has a null pointer, and all live until they are freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if entry.ifa_flags & libc::IFF_UP as u32 == 0 {
            continue;
        }
        // SAFETY: the name is a NUL-terminated string that lives as long as its entry.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        // SAFETY: the address is null or points to a socket address of the family that it names.
        if let Some(address) = unsafe { ip(entry.ifa_addr) } {
            let name = name.to_string_lossy().into_owned();
            found.push(Interface { name, address });
        }
    }
    // SAFETY: the list was returned by `getifaddrs`, and no reference into it is left.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// Returns the IP address in a socket address, or `None` if it is null or of another family.
///
/// # Safety
///
/// The pointer must be null or point to a socket address that is as long as its family requires.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller guarantees that the pointer is null or valid. Every socket address begins with its family.
    match libc::c_int::from(unsafe { address.as_ref() }?.sa_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is an IPv4 address. It may be less aligned than the type.
            let address: libc::sockaddr_in =
                unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this is an IPv6 address. It may be less aligned than the type.
            let address: libc::sockaddr_in6 =
                unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// Strings as `execve` needs them: an array of pointers that ends with a null pointer.
struct Strings {
    owned: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Strings {
    fn new(owned: Vec<CString>) -> Self {
        // The bytes of a CString are on the heap, so they do not move with the vector.
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

/// The program of a job, which can be started repeatedly.
pub(crate) struct Image {
    path: CString,
    arguments: Strings,
    environment: Strings,
    /// The directory in which the tasks run, or `None` for that of this process.
    directory: Option<CString>,
    /// The variable that gets the task's pid: its index in the environment, and its text.
    process: Option<(usize, Vec<u8>)>,
    stack: Vec<u8>,
}

/// If the environment has this variable without a value, each task gets its pid as the value. Programs of PVM read it.
const PROCESS: &[u8] = b"PVMEPID=";
/// Maximum number of digits of a pid.
const DIGITS: usize = 10;

/// Settings that differ between tasks, or from this process.
pub(crate) struct TaskPlacement<'a> {
    /// The task's standard input, output and error. `None` inherits that of this process.
    pub stdio: [Option<BorrowedFd<'a>>; 3],
    /// The descriptors that stay open across `execve`, with the same numbers as here.
    pub kept: [Option<BorrowedFd<'a>>; 3],
    /// The cores on which the task may run, or `None` for no binding.
    pub cores: Option<CpuSet>,
    /// The process group of the task, so that a terminal's Ctrl-C and Ctrl-Z reach it.
    pub group: Pid,
    /// The limit of open files to restore, if it was raised in this process.
    pub files: Option<Rlimit>,
    /// The signals that are blocked in the task.
    pub mask: &'a Mask,
}

/// The reason why a task could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartError {
    /// The kernel did not create a process.
    NoProcess(Errno),
    /// The process was created, but could not be set up.
    SetUp(Errno),
    /// The program could not be executed.
    Execute(Errno),
}

/// What the child must do, and where it writes the reason if it fails.
struct Order<'a> {
    image: *mut Image,
    place: &'a TaskPlacement<'a>,
    supervisor: Pid,
    failure: Option<StartError>,
}

impl Image {
    /// Creates an image. The last entry of the environment is replaced for each task.
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

    /// Returns an image without a program, as a placeholder.
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

    /// Writes this process's pid into its variable. Does not allocate, since the child calls it before `execve`.
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

    /// Makes the tasks run in this directory.
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
        // SAFETY: CLONE_VFORK suspends this process until the child has executed the program or ended. So `order`,
        // everything that it points to, and the stack (not used elsewhere, since `self` is borrowed mutably) outlive
        // their use by the child. `become_task` only makes system calls. It takes no lock and does not allocate.
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

/// Runs in the child of [`Image::start`]: sets it up and executes the program.
extern "C" fn become_task(order: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` passes a pointer to an `Order` that lives until the child has executed or ended. `start` is
    // suspended meanwhile, so no other reference is used.
    let order = unsafe { &mut *order.cast::<Order>() };
    // SAFETY: the image outlives the child (see `start`), and no other reference to it is used meanwhile.
    unsafe { &mut *order.image }.name_process();
    // SAFETY: the image outlives the child (see `start`), and it is not changed from here on.
    let directory = unsafe { &(*order.image).directory };
    order.failure = match set_up(order.place, directory.as_deref(), order.supervisor) {
        Err(errno) => Some(StartError::SetUp(errno)),
        Ok(()) => {
            // SAFETY: the image outlives the child (see `start`). The path and the strings are NUL-terminated, and both
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

/// Sets up the child between `clone` and `execve`. Only makes system calls, since the memory is the parent's.
fn set_up(
    place: &TaskPlacement,
    directory: Option<&CStr>,
    supervisor: Pid,
) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(supervisor) {
        // The supervisor died before the call above took effect, so nothing would end this process.
        return Err(Errno::SRCH);
    }
    // Fails if the group is gone or in another session. The task then stays in the supervisor's group.
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
    // SAFETY: setting a disposition to the default installs no handler. Rust programs start with SIGPIPE ignored, and a
    // task must not inherit that.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    if let Some(inherited) = inherited::get() {
        if inherited.ignores_children {
            // SAFETY: ignoring a signal installs no handler.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        }
        if !inherited.ignores_file_size {
            // SAFETY: setting a disposition to the default installs no handler.
            unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
        }
        rustix::process::umask(inherited.umask);
    }
    restore(place.mask);
    Ok(())
}

fn sigset(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set before it is read. The numbers are valid signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}

/// Returns the top of a stack that grows downwards, aligned as calls require.
fn top_of(stack: &mut [u8]) -> *mut libc::c_void {
    let range = stack.as_mut_ptr_range();
    range.end.wrapping_sub(range.end as usize % 64).cast()
}

/// Returns month, day, hour, minute and second in local time.
pub(crate) fn local_time() -> [i32; 5] {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs()) as libc::time_t;
    // SAFETY: an all-zero `tm` is valid, and both pointers are to local variables.
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

/// Returns the child's pid from the return value of `clone` in the parent.
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

/// Converts `bytes` to a C string. They come from the command line or the environment, so they have no NUL.
pub(crate) fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).unwrap_or_else(|_| CStr::to_owned(c""))
}
