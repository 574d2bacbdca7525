//! Files of the operating system. An error has a class and names the file.

use std::ffi::{CStr, CString, c_int};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::mapping::{self, Mapping};
use crate::abi::*;
use crate::error::Error;

/// An open file.
#[derive(Debug)]
pub struct Posix {
    fd: OwnedFd,
    name: CString,
    /// Whether it can be written through a mapping; set at the first query.
    can_be_mapped: OnceLock<bool>,
    /// Whether its file system is local; set at the first query.
    is_local: OnceLock<bool>,
    /// Whether something has been written since the last `sync`.
    unsynced: AtomicBool,
}

/// Maximum number of bytes in one call: the kernel transfers slightly less than 2 GiB at most.
const MAX_TRANSFER_BYTES: usize = 1 << 30;

/// Returns `errno`.
fn last() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Returns the error class for an `errno` value.
fn class(number: c_int) -> c_int {
    match number {
        libc::ENOENT => ERR_NO_SUCH_FILE,
        libc::EACCES | libc::EPERM => ERR_ACCESS,
        libc::EEXIST => ERR_FILE_EXISTS,
        libc::EROFS => ERR_READ_ONLY,
        libc::ENAMETOOLONG | libc::ENOTDIR | libc::EISDIR | libc::ELOOP => ERR_BAD_FILE,
        libc::ENOSPC => ERR_NO_SPACE,
        libc::EDQUOT | libc::EFBIG => ERR_QUOTA,
        libc::ETXTBSY | libc::EBUSY => ERR_FILE_IN_USE,
        libc::ENOMEM => ERR_NO_MEM,
        _ => ERR_IO,
    }
}

/// Returns the error for an `errno` value.
#[cold]
pub fn refused(name: &CStr, act: &str, number: c_int) -> Error {
    let reason = std::io::Error::from_raw_os_error(number);
    let text = format!("{act} of file {name:?} has failed: {reason}");
    Error::new(class(number), text)
}

/// An outcome with an `errno` value as its error. Processes exchange these values; 0 is success.
pub type Outcome<T = ()> = std::result::Result<T, c_int>;

/// Returns the `errno` value of an outcome, or 0.
pub fn number<T>(outcome: &Outcome<T>) -> c_int {
    outcome.as_ref().err().copied().unwrap_or(0)
}

fn done(code: c_int) -> Outcome {
    match code {
        0 => Ok(()),
        _ => Err(last()),
    }
}

/// Repeats a call while signals interrupt it.
fn uninterrupted(mut call: impl FnMut() -> isize) -> Outcome<usize> {
    loop {
        match call() {
            moved @ 0.. => return Ok(moved as usize),
            _ if last() == libc::EINTR => {}
            _ => return Err(last()),
        }
    }
}

/// Deletes a file.
pub fn delete(name: &CStr) -> Outcome {
    // SAFETY: the text is NUL-terminated.
    done(unsafe { libc::unlink(name.as_ptr()) })
}

impl Posix {
    /// Opens a file with these flags of `open`.
    pub fn open(name: &CStr, flags: c_int) -> Outcome<Posix> {
        let call = || {
            // SAFETY: the name is NUL-terminated; the mode is for a new file.
            unsafe { libc::open(name.as_ptr(), flags | libc::O_CLOEXEC, 0o666) as isize }
        };
        let fd = uninterrupted(call)?;
        Ok(Posix {
            // SAFETY: the descriptor has just been opened, and nothing else owns it.
            fd: unsafe { OwnedFd::from_raw_fd(fd as c_int) },
            name: name.to_owned(),
            can_be_mapped: OnceLock::new(),
            is_local: OnceLock::new(),
            unsynced: AtomicBool::new(false),
        })
    }

    /// Returns whether it can be written through a mapping as well as by [`write`](Posix::write).
    pub fn can_be_mapped(&self) -> bool {
        *self
            .can_be_mapped
            .get_or_init(|| mapping::is_open_for_both(self.fd()) && self.is_local())
    }

    fn is_local(&self) -> bool {
        *self.is_local.get_or_init(|| mapping::is_local(self.fd()))
    }

    /// Maps a part of it. Returns `None` if the kernel refuses.
    pub fn map(&self, start: i64, end: i64) -> Option<Mapping> {
        Mapping::new(self.fd(), start, end)
    }

    /// Returns its name.
    pub fn name(&self) -> &CStr {
        &self.name
    }

    fn fd(&self) -> c_int {
        self.fd.as_raw_fd()
    }

    fn stat(&self) -> Outcome<libc::stat> {
        // SAFETY: all-zero bytes are a valid value of this struct of numbers.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the call may write the struct.
        done(unsafe { libc::fstat(self.fd(), &mut stat) })?;
        Ok(stat)
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> Outcome<i64> {
        self.stat().map(|stat| stat.st_size)
    }

    /// Returns whether it is a regular file, not a device or pipe.
    pub fn is_regular(&self) -> bool {
        let kind = self.stat().map(|stat| stat.st_mode & libc::S_IFMT);
        kind == Ok(libc::S_IFREG)
    }

    /// Returns whether it is a directory.
    pub fn is_directory(&self) -> bool {
        let kind = self.stat().map(|stat| stat.st_mode & libc::S_IFMT);
        kind == Ok(libc::S_IFDIR)
    }

    /// Sets its size, truncating or extending it.
    pub fn set_size(&self, size: i64) -> Outcome {
        // SAFETY: the call takes numbers and no pointers.
        let set = || unsafe { libc::ftruncate(self.fd(), size) as isize };
        let done = uninterrupted(|| within_limit(size, set)).map(drop);
        self.note_written();
        done
    }

    /// Allocates space for the first `size` bytes. Existing data stay.
    pub fn preallocate(&self, size: i64) -> Outcome {
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the call takes numbers and no pointers; it returns an `errno` value.
        let call = || unsafe { libc::posix_fallocate(self.fd(), 0, size) as isize };
        let number = loop {
            match within_limit(size, call) as c_int {
                libc::EINTR => {}
                number => break number,
            }
        };
        self.note_written();
        match number {
            0 => Ok(()),
            number => Err(number),
        }
    }

    /// Reserves space for bytes `start` to `end` without changing the file's size. Returns false if there is not
    /// enough, or the file system cannot reserve it.
    pub fn reserve(&self, start: i64, end: i64) -> bool {
        let mode = libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the call takes numbers and no pointers.
        let call = || unsafe { libc::fallocate(self.fd(), mode, start, end - start) as isize };
        uninterrupted(call).is_ok()
    }

    /// Writes to storage what was written by this process or by others on its behalf, and makes what other processes
    /// have synced visible to this one.
    pub fn sync(&self) -> Outcome {
        if !self.is_sync_due() {
            return Ok(());
        }
        let done = self.sync_own();
        if !self.is_local() {
            self.forget_cached();
        }
        done
    }

    /// Returns whether a sync has something to do. On a local file system other processes' data are always visible.
    fn is_sync_due(&self) -> bool {
        self.unsynced.load(Ordering::Acquire) || !self.is_local()
    }

    /// Makes a network file system fetch data again: NFS does so when it grants a lock. Without lock support either the
    /// data are the same on all hosts, or nothing can be done.
    fn forget_cached(&self) {
        // Locks a byte that no access uses, so this waits for no other process and releases no lock of an atomic
        // access. A file open only for writing gets no such lock, but it is not read either.
        let end = i64::MAX - 1;
        if self.lock(libc::F_RDLCK as c_int, end, 1).is_ok() {
            let _ = self.lock(libc::F_UNLCK as c_int, end, 1);
        }
    }

    fn sync_own(&self) -> Outcome {
        self.unsynced.store(false, Ordering::Release);
        // SAFETY: the call takes a number and no pointers.
        match uninterrupted(|| unsafe { libc::fsync(self.fd()) as isize }) {
            // Pipes and similar files have no storage.
            Err(libc::EINVAL | libc::EROFS) => Ok(()),
            other => other.map(drop).inspect_err(|_| self.note_written()),
        }
    }

    /// Notes that something has been written, so that the next [`sync`](Posix::sync) writes it to storage. Called after
    /// the write, so that a concurrent sync does not clear the flag for data that it misses.
    pub fn note_written(&self) {
        self.unsynced.store(true, Ordering::Release);
    }

    /// Reads bytes at this offset. Returns fewer only at the end of the file.
    ///
    /// # Safety
    /// `to` is valid for writes of this many bytes.
    pub unsafe fn read(&self, to: *mut u8, length: usize, offset: i64) -> Outcome<usize> {
        let mut done = 0;
        while done < length {
            let (to, rest) = (
                to.wrapping_add(done),
                (length - done).min(MAX_TRANSFER_BYTES),
            );
            let at = offset.checked_add(done as i64).ok_or(libc::EINVAL)?;
            // SAFETY: the caller upholds the safety contract of this function.
            let call = || unsafe { libc::pread(self.fd(), to.cast(), rest, at) };
            match uninterrupted(call)? {
                0 => break,
                moved => done += moved,
            }
        }
        Ok(done)
    }

    /// Writes all bytes at this offset.
    ///
    /// # Safety
    /// `from` is valid for reads of this many bytes.
    pub unsafe fn write(&self, from: *const u8, length: usize, offset: i64) -> Outcome {
        // SAFETY: the caller upholds the safety contract of this function.
        let done = unsafe { self.write_all(from, length, offset) };
        self.note_written();
        done
    }

    unsafe fn write_all(&self, from: *const u8, length: usize, offset: i64) -> Outcome {
        let end = offset.checked_add(length as i64).ok_or(libc::EFBIG)?;
        let mut done = 0;
        while done < length {
            let (from, rest) = (
                from.wrapping_add(done),
                (length - done).min(MAX_TRANSFER_BYTES),
            );
            let at = offset + done as i64;
            // SAFETY: the caller upholds the safety contract of this function.
            let write = || unsafe { libc::pwrite(self.fd(), from.cast(), rest, at) };
            match uninterrupted(|| within_limit(end, write))? {
                // Nothing is written without an error: the device is full.
                0 => return Err(libc::ENOSPC),
                moved => done += moved,
            }
        }
        Ok(())
    }

    /// Locks bytes against all other open file descriptions, or unlocks them.
    pub fn lock(&self, kind: c_int, start: i64, length: i64) -> Outcome {
        // SAFETY: all-zero bytes are a valid value of this struct of numbers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = kind as _;
        lock.l_whence = libc::SEEK_SET as _;
        lock.l_start = start;
        lock.l_len = length;
        // SAFETY: the call may read the struct.
        let call = || unsafe { libc::fcntl(self.fd(), libc::F_OFD_SETLKW, &lock) as isize };
        uninterrupted(call).map(drop)
    }
}

/// Makes a call that lets a file reach this size. If that exceeds the process's limit, the kernel would raise SIGXFSZ.
/// The signal is blocked and consumed, so the call fails with an error instead.
fn within_limit(size: i64, call: impl FnOnce() -> isize) -> isize {
    // SAFETY: a struct of numbers, which is written.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        match libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) {
            0 => limit.rlim_cur,
            _ => libc::RLIM_INFINITY,
        }
    };
    if limit == libc::RLIM_INFINITY || size as u64 <= limit {
        return call();
    }
    // SAFETY: the signal sets are written before they are read, and this thread's signal mask is restored afterwards.
    unsafe {
        let mut signal: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signal);
        libc::sigaddset(&mut signal, libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signal, &mut before);
        let result = call();
        let number = last();
        if libc::sigismember(&before, libc::SIGXFSZ) == 0 {
            let at_once: libc::timespec = std::mem::zeroed();
            libc::sigtimedwait(&signal, std::ptr::null_mut(), &at_once);
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        }
        *libc::__errno_location() = number;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_has_something_to_do_after_each_change_only() {
        let path = std::env::temp_dir().join(format!("sync-{}", std::process::id()));
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let file = Posix::open(&name, libc::O_RDWR | libc::O_CREAT).unwrap();
        delete(&name).unwrap();
        let is_due = || file.unsynced.load(Ordering::Relaxed);
        assert!(!is_due());
        // SAFETY: one byte is read, from a constant.
        let write = || unsafe { file.write(&7, 1, 0) };
        let changes: [&dyn Fn() -> Outcome; 3] =
            [&write, &|| file.set_size(9), &|| file.preallocate(9)];
        for change in changes {
            change().unwrap();
            assert!(is_due());
            file.sync().unwrap();
            assert!(!is_due());
        }
    }

    #[test]
    fn a_file_of_several_hosts_is_synchronized_though_nothing_was_written_here() {
        let path = std::env::temp_dir().join(format!("sync-far-{}", std::process::id()));
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let flags = libc::O_RDWR | libc::O_CREAT;
        let (near, far) = (Posix::open(&name, flags), Posix::open(&name, flags));
        delete(&name).unwrap();
        let (near, far) = (near.unwrap(), far.unwrap());
        far.is_local.set(false).unwrap();
        assert!(near.is_local() && !near.is_sync_due());
        assert!(far.is_sync_due());
        far.sync().unwrap();
        assert!(far.is_sync_due(), "others may write at any time");
    }
}
