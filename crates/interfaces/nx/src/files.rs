//! Files that nodes share, in the Paragon's I/O modes.
//!
//! A node opens files like any program, or all nodes open a file together (`gopen`). The nodes themselves coordinate
//! sharing: the position of a descriptor is the kernel's, and nodes that share a position set it identically. Only a
//! file in log mode has its position elsewhere: under a name of the job, from which a node takes it while it reads or
//! writes.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_void};

use crate::error::{Answer, EMIXIO, ENFPS, EQPARAM, ERDEOF, Fault, check, system};
use crate::extended::{Extended, extended_or_errno, extended_or_exit, wide};
use crate::forms::c_forms;
use crate::handlers::around;
use crate::iomodes::{Mode, Part, part_of, record_of};
use crate::life::enrolled;
use crate::rg;
use crate::send::length;
use crate::state::library;
use crate::world::global_group;

/// Values of `whence` for `lsize` and `esize`.
const SIZE_SET: c_int = 0;
const SIZE_CUR: c_int = 1;
const SIZE_END: c_int = 2;

/// Direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Read,
    Write,
}

/// Marks a descriptor that has a mode: it is set as the signal that the kernel would send for asynchronous I/O, which
/// regular files do not have. When the program closes the descriptor with the system call and gets the same number for
/// another file, that one has no mark.
const MARK: c_int = libc::SIGURG;
const F_SETSIG: c_int = 10;
const F_GETSIG: c_int = 11;

/// A descriptor that has a mode.
pub struct Moded {
    fd: c_int,
    mode: Mode,
    marked: bool,
}

/// Returns the mode of a descriptor: M_UNIX unless it was set.
fn mode_of(fd: c_int) -> Mode {
    let set = library().modes.iter().find(|moded| moded.fd == fd);
    // SAFETY: the call takes plain values only.
    let is_it = |moded: &&Moded| !moded.marked || unsafe { libc::fcntl(fd, F_GETSIG) } == MARK;
    set.filter(is_it).map_or(Mode::Unix, |moded| moded.mode)
}

fn set_mode(fd: c_int, mode: Mode) {
    let modes = &mut library().modes;
    modes.retain(|moded| moded.fd != fd);
    if mode != Mode::Unix {
        // SAFETY: the call takes plain values only.
        let marked = unsafe { libc::fcntl(fd, F_SETSIG, MARK) } == 0;
        modes.push(Moded { fd, mode, marked });
    }
}

/// Moves the position of a descriptor, and returns the new one.
pub fn seek(fd: c_int, offset: i64, whence: c_int) -> Result<i64, Fault> {
    // SAFETY: the call takes plain values only.
    match unsafe { libc::lseek(fd, offset, whence) } {
        -1 => Err(system()),
        position => Ok(position),
    }
}

fn size_of_file(fd: c_int) -> Result<i64, Fault> {
    // SAFETY: a `stat` of zeros is valid, and `status` is writable.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        match libc::fstat(fd, &mut status) {
            0 => Ok(status.st_size),
            _ => Err(system()),
        }
    }
}

/// Reads or writes until `length` bytes are done or the file ends, at the descriptor's position or at `from`.
///
/// # Safety
/// `memory` is valid for `length` bytes.
unsafe fn transfer(
    way: Way,
    fd: c_int,
    memory: *mut c_void,
    length: usize,
    from: Option<i64>,
) -> Result<usize, Fault> {
    let mut done = 0;
    while done < length {
        let (place, left) = (memory.wrapping_byte_add(done), length - done);
        let at = from.map(|from| from + done as i64);
        // SAFETY: the caller guarantees that the memory is valid.
        let moved = unsafe {
            match (way, at) {
                (Way::Read, None) => libc::read(fd, place, left),
                (Way::Read, Some(at)) => libc::pread(fd, place, left, at),
                (Way::Write, None) => libc::write(fd, place, left),
                (Way::Write, Some(at)) => libc::pwrite(fd, place, left, at),
            }
        };
        match moved {
            0 => break,
            1.. => done += moved as usize,
            _ if system().code == libc::EINTR => {}
            _ => return Err(system()),
        }
    }
    Ok(done)
}

/// Gathers a value from every node, in order of nodes.
fn of_all_nodes<T: Copy + Default>(own: T) -> Result<Vec<T>, Fault> {
    let group = global_group()?;
    let mut all = vec![T::default(); library().nodes as usize];
    // SAFETY: `own` is a local value, and `all` has one entry for each node.
    check(unsafe {
        rg::rg_allgather(
            (&raw const own).cast(),
            size_of::<T>(),
            all.as_mut_ptr().cast(),
            group,
        )
    })?;
    Ok(all)
}

fn broadcast(memory: *mut c_void, length: usize) -> Result<(), Fault> {
    let group = global_group()?;
    // SAFETY: callers pass memory of this length.
    check(unsafe { rg::rg_broadcast(memory, length, 0, group) })
}

/// Transfers this node's part of a collective read or write.
///
/// # Safety
/// The same as for `transfer`.
unsafe fn transfer_part(
    way: Way,
    fd: c_int,
    memory: *mut c_void,
    length: usize,
    part: Option<Part>,
) -> Result<usize, Fault> {
    let part = part.ok_or(Fault::plain(EQPARAM))?;
    // SAFETY: the caller guarantees that the memory is valid.
    let done = unsafe { transfer(way, fd, memory, length, Some(part.begin)) };
    seek(fd, part.next, libc::SEEK_SET)?;
    done
}

/// Transfers on node 0, and broadcasts the result to all nodes.
///
/// # Safety
/// The same as for `transfer`.
unsafe fn transfer_for_all(
    way: Way,
    fd: c_int,
    memory: *mut c_void,
    length: usize,
) -> Result<usize, Fault> {
    let from = seek(fd, 0, libc::SEEK_CUR)?;
    let mut told = [0i64; 2];
    if library().me == 0 {
        // SAFETY: the caller guarantees that the memory is valid.
        told = match unsafe { transfer(way, fd, memory, length, Some(from)) } {
            Ok(done) => [done as i64, 0],
            Err(fault) => [0, fault.code.into()],
        };
    }
    broadcast(told.as_mut_ptr().cast(), size_of_val(&told))?;
    let [done, code] = told;
    if code != 0 {
        return Err(Fault::plain(code as c_int));
    }
    let done = (done as usize).min(length);
    if way == Way::Read {
        broadcast(memory, done)?;
    }
    seek(fd, from + done as i64, libc::SEEK_SET)?;
    Ok(done)
}

/// Returns the name under which the position of a log is stored. All nodes have the same file.
fn log_name(fd: c_int) -> Result<CString, Fault> {
    // SAFETY: a `stat` of zeros is valid, and `status` is writable.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::fstat(fd, &mut status) != 0 {
            return Err(system());
        }
        status
    };
    let library = library();
    // Processes with the same pid share the log.
    let owner = (library.task - library.me, library.ptype);
    let name = format!("nx.log.{}.{}.{}", owner.0, owner.1, status.st_ino);
    CString::new(name).map_err(|_| Fault::plain(EQPARAM))
}

/// Takes the position of a log, which locks it until it is put back. Waits while another node has it.
fn take_position(name: &CStr) -> Result<i64, Fault> {
    let (mut position, mut length) = (0i64, 0);
    // SAFETY: the name is NUL-terminated, and `position` has the given size.
    check(unsafe {
        rg::rg_get(
            name.as_ptr(),
            0,
            rg::TAKE | rg::AWAIT,
            (&raw mut position).cast(),
            size_of::<i64>(),
            &mut length,
            std::ptr::null_mut(),
        )
    })?;
    Ok(position)
}

/// Stores the position of a log.
fn put_position(name: &CStr, position: i64) -> Result<(), Fault> {
    // SAFETY: the name is NUL-terminated, and `position` has the given size.
    check(unsafe {
        rg::rg_put(
            name.as_ptr(),
            (&raw const position).cast(),
            size_of::<i64>(),
            0,
            rg::PERSISTENT | rg::OVERWRITABLE,
            std::ptr::null_mut(),
        )
    })
}

/// # Safety
/// The same as for `transfer`.
unsafe fn transfer_in_turn(
    way: Way,
    fd: c_int,
    memory: *mut c_void,
    length: usize,
) -> Result<usize, Fault> {
    let name = log_name(fd)?;
    let from = take_position(&name)?;
    // SAFETY: the caller guarantees that the memory is valid.
    let done = unsafe { transfer(way, fd, memory, length, Some(from)) };
    put_position(&name, from + done.unwrap_or_default() as i64)?;
    done
}

/// Reads or writes according to the descriptor's mode.
///
/// # Safety
/// The same as for `transfer`.
unsafe fn transfer_by_mode(
    way: Way,
    fd: c_int,
    memory: *mut c_void,
    count: usize,
) -> Result<usize, Fault> {
    length(memory, count as c_long)?;
    let mode = mode_of(fd);
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe {
        match mode {
            Mode::Unix | Mode::Async => transfer(way, fd, memory, count, None),
            Mode::Log => transfer_in_turn(way, fd, memory, count),
            Mode::Global => transfer_for_all(way, fd, memory, count),
            Mode::Sync => {
                let from = seek(fd, 0, libc::SEEK_CUR)?;
                let lengths = of_all_nodes(count)?;
                let part = part_of(library().me, &lengths, from);
                transfer_part(way, fd, memory, count, part)
            }
            Mode::Record => {
                let from = seek(fd, 0, libc::SEEK_CUR)?;
                let library = enrolled()?;
                let part = record_of(library.me, library.nodes, count, from);
                transfer_part(way, fd, memory, count, part)
            }
        }
    }
}

/// Fails if nothing was read at the end of the file, unless nothing was requested.
fn at_the_end(done: usize, count: usize) -> Result<usize, Fault> {
    match done == 0 && count > 0 {
        true => Err(Fault::plain(ERDEOF)),
        false => Ok(done),
    }
}

pub unsafe fn read(fd: c_int, memory: *mut c_void, count: c_uint) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let done = unsafe { transfer_by_mode(Way::Read, fd, memory, count as usize) }?;
    at_the_end(done, count as usize).map(|done| done as c_long)
}

pub unsafe fn write(fd: c_int, memory: *const c_void, count: c_uint) -> Answer {
    // SAFETY: the caller guarantees the memory, and writing to a file does not change it.
    let done = unsafe { transfer_by_mode(Way::Write, fd, memory.cast_mut(), count as usize) }?;
    Ok(done as c_long)
}

/// Reads at once; the result is returned when the program waits for the id.
unsafe fn begin_read(fd: c_int, memory: *mut c_void, count: c_uint) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let done = unsafe { read(fd, memory, count) };
    begun(done)
}

unsafe fn begin_write(fd: c_int, memory: *const c_void, count: c_uint) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let done = unsafe { write(fd, memory, count) };
    begun(done)
}

/// Returns an id for an operation that is already complete.
pub fn begun(done: Answer) -> Answer {
    let id = library().transfers.insert(done);
    id.map(c_long::from)
        .ok_or(Fault::plain(crate::error::EQNOMID))
}

fn ended(id: c_long) -> Answer {
    let known = crate::mids::from_program(id).and_then(|id| library().transfers.remove(id));
    known.ok_or(Fault::of(crate::error::EQMID, "id", id))?
}

pub unsafe fn wait(id: c_long) -> Answer {
    ended(id).map(|_| 0)
}

pub unsafe fn done(id: c_long) -> Answer {
    ended(id).map(|_| 1)
}

pub unsafe fn mode(fd: c_int) -> Answer {
    seek(fd, 0, libc::SEEK_CUR)?;
    Ok(mode_of(fd) as c_long)
}

/// Changes the mode of a file, collectively. If the nodes will share a position, they must be at the same one.
pub unsafe fn change_mode(fd: c_int, number: c_int) -> Answer {
    let number = c_long::from(number);
    // Take part in the collective even if this node has failed: the others wait for it.
    let position = seek(fd, 0, libc::SEEK_CUR);
    let mode = Mode::of(number);
    let own = [position.unwrap_or(-1), mode.map_or(-1, |mode| mode as i64)];
    let all = of_all_nodes(own)?;
    let (mode, position) = (mode?, position?);
    if all.iter().any(|&[_, other]| other != mode as i64) {
        return Err(Fault::of(EMIXIO, "mode", number));
    }
    if mode.shares() && all.iter().any(|&[other, _]| other != position) {
        return Err(Fault::plain(ENFPS));
    }
    if mode == Mode::Log {
        // No node may read before the position is stored: synchronize.
        if library().me == 0 {
            put_position(&log_name(fd)?, position)?;
        }
        of_all_nodes(0u8)?;
    }
    if mode_of(fd) == Mode::Log && mode != Mode::Log {
        let mut position = match library().me {
            0 => take_position(&log_name(fd)?)?,
            _ => 0,
        };
        broadcast((&raw mut position).cast(), size_of::<i64>())?;
        seek(fd, position, libc::SEEK_SET)?;
    }
    set_mode(fd, mode);
    Ok(0)
}

unsafe fn open(
    path: *const c_char,
    flags: c_int,
    mode: c_int,
    permissions: libc::mode_t,
) -> Answer {
    let path = match path.is_null() {
        true => Err(Fault::plain(EQPARAM)),
        // SAFETY: by the C contract the string is NUL-terminated.
        false => Ok(unsafe { CStr::from_ptr(path) }),
    };
    open_on_all(path, &[flags], mode, permissions)
}

/// Opens a file on all nodes, each with the first of the `flags` that its permissions allow. Node 0 creates the file if
/// necessary. A node without a path takes part in the collective, too, because the others wait for it.
pub fn open_on_all(
    path: Result<&CStr, Fault>,
    flags: &[c_int],
    mode: c_int,
    permissions: libc::mode_t,
) -> Answer {
    let library = enrolled()?;
    let making = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC;
    let open_by = |path: &CStr, flags: c_int| {
        // SAFETY: the string is NUL-terminated.
        match unsafe { libc::open(path.as_ptr(), flags, permissions as c_uint) } {
            -1 => Err(system()),
            fd => Ok(fd),
        }
    };
    let open = |mask: c_int| {
        let mut opened = Err(Fault::plain(EQPARAM));
        for &flags in flags {
            opened = open_by(path?, flags & mask);
            let refused = |fault: &Fault| matches!(fault.code, libc::EACCES | libc::EROFS);
            if !opened.is_err_and(|fault| refused(&fault)) {
                break;
            }
        }
        opened
    };
    let code_of = |opened: &Result<c_int, Fault>| opened.map_or_else(|fault| fault.code, |_| 0);
    let mut opened = match library.me {
        0 => open(!0),
        _ => Ok(-1),
    };
    let mut code = code_of(&opened);
    broadcast((&raw mut code).cast(), size_of::<c_int>())?;
    if library.me != 0 && code == 0 {
        opened = open(!making);
        code = code_of(&opened);
    }
    let failed = of_all_nodes(code)?.into_iter().find(|&code| code != 0);
    let done = match (opened, failed) {
        (Err(fault), _) => Err(fault),
        (Ok(_), Some(code)) => Err(Fault::plain(code)),
        // SAFETY: `fd` is an open descriptor.
        (Ok(fd), None) => unsafe { change_mode(fd, mode) },
    };
    match (done, opened) {
        (Ok(_), Ok(fd)) => Ok(fd.into()),
        (Err(fault), Ok(fd)) if fd >= 0 => {
            // SAFETY: `fd` was opened here, and nothing else uses it.
            unsafe { libc::close(fd) };
            Err(fault)
        }
        (Err(fault), _) | (_, Err(fault)) => Err(fault),
    }
}

/// Returns whether the position is at the end of the file.
pub unsafe fn is_at_end(fd: c_int) -> Answer {
    let position = match mode_of(fd) {
        Mode::Log => {
            let name = log_name(fd)?;
            let position = take_position(&name)?;
            put_position(&name, position)?;
            position
        }
        _ => seek(fd, 0, libc::SEEK_CUR)?,
    };
    Ok((position >= size_of_file(fd)?) as c_long)
}

/// Extends a file if it is shorter. Returns its size.
pub fn resize(fd: c_int, offset: i64, whence: c_int) -> Result<i64, Fault> {
    let size = size_of_file(fd)?;
    let base = match whence {
        SIZE_SET => 0,
        SIZE_CUR => seek(fd, 0, libc::SEEK_CUR)?,
        SIZE_END => size,
        _ => return Err(Fault::of(EQPARAM, "whence", whence.into())),
    };
    let wanted = base.checked_add(offset).ok_or(Fault::plain(EQPARAM))?;
    if wanted <= size {
        return Ok(size);
    }
    // SAFETY: the call takes plain values only.
    match unsafe { libc::ftruncate(fd, wanted) } {
        0 => Ok(wanted),
        _ => Err(system()),
    }
}

unsafe fn long_resize(fd: c_int, offset: c_long, whence: c_int) -> Answer {
    resize(fd, wide(offset), whence).map(|size| size as c_long)
}

/// Does nothing: there are no volumes to choose from.
unsafe fn restrict(_: c_int, _: c_int, _: *const c_int) -> Answer {
    Ok(0)
}

#[unsafe(no_mangle)]
extern "C" fn eseek(fd: c_int, offset: Extended, whence: c_int) -> Extended {
    extended_or_exit("eseek", around(|| seek(fd, offset.value(), whence)))
}

#[unsafe(no_mangle)]
extern "C" fn _eseek(fd: c_int, offset: Extended, whence: c_int) -> Extended {
    extended_or_errno(around(|| seek(fd, offset.value(), whence)))
}

#[unsafe(no_mangle)]
extern "C" fn esize(fd: c_int, offset: Extended, whence: c_int) -> Extended {
    extended_or_exit("esize", around(|| resize(fd, offset.value(), whence)))
}

#[unsafe(no_mangle)]
extern "C" fn _esize(fd: c_int, offset: Extended, whence: c_int) -> Extended {
    extended_or_errno(around(|| resize(fd, offset.value(), whence)))
}

c_forms! {
    cread, _cread: (fd: c_int, memory: *mut c_void, count: c_uint) = read;
    cwrite, _cwrite: (fd: c_int, memory: *const c_void, count: c_uint) = write;
    iread, _iread: (fd: c_int, memory: *mut c_void, count: c_uint) = begin_read;
    iwrite, _iwrite: (fd: c_int, memory: *const c_void, count: c_uint) = begin_write;
    iowait, _iowait: (id: c_long) = wait;
    iodone, _iodone: (id: c_long) = done;
    iomode, _iomode: (fd: c_int) = mode;
    setiomode, _setiomode: (fd: c_int, mode: c_int) = change_mode;
    gopen, _gopen: (path: *const c_char, flags: c_int, mode: c_int, permissions: libc::mode_t) = open;
    iseof, _iseof: (fd: c_int) = is_at_end;
    lsize, _lsize: (fd: c_int, offset: c_long, whence: c_int) = long_resize;
    restrictvol, _restrictvol: (fd: c_int, number: c_int, volumes: *const c_int) = restrict;
}
