//! Memory that several processes of a host map. It has no name in any folder, so nothing is left when its processes
//! end.
//!
//! Its file is sealed: it can grow but never shrink, so no process can truncate it under another one. What a process
//! uses is reserved beforehand, so lack of memory is an error then instead of a SIGBUS later.
//!
//! In `/proc`, the number of a process refers to its first thread. When that thread has ended (`pthread_exit`) while
//! others go on, it no longer has any files; they are then found through another thread.

use std::ffi::{CString, c_int};
use std::io::Error as SystemError;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;

use regatta_memory::segment::reserve;

use crate::abi::ERR_NO_MEM;
use crate::error::{Error, Result};

/// A mapping.
pub struct Segment {
    base: *mut u8,
    length: usize,
}

// SAFETY: the mapping is not bound to a thread.
unsafe impl Send for Segment {}
// SAFETY: the mapping is not bound to a thread, and its contents are shared by processes in any case.
unsafe impl Sync for Segment {}

/// An unnamed file by which other processes map a segment.
pub struct File {
    descriptor: OwnedFd,
    mark: c_int,
}

/// What other processes need to open a file: the descriptor, or -1, and the low bits of the inode number. The latter
/// are compared because in another container the descriptor's path may refer to another file.
pub type Address = [c_int; 2];
/// The address of no file.
pub const NOWHERE: Address = [-1, 0];

impl File {
    /// Creates an empty file that can grow but never shrinks.
    pub fn new() -> Result<File> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the text is NUL-terminated.
        let file = File::of(unsafe { libc::memfd_create(c"mpi".as_ptr(), flags) })?;
        let (descriptor, seal) = (file.descriptor.as_raw_fd(), libc::F_SEAL_SHRINK);
        // SAFETY: the call takes numbers and no pointers.
        match unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, seal) } {
            0 => Ok(file),
            _ => Err(no_memory(0, &SystemError::last_os_error())),
        }
    }

    /// Takes ownership of the descriptor that a call has returned, or returns its error.
    fn of(descriptor: c_int) -> Result<File> {
        let failed = || no_memory(0, &SystemError::last_os_error());
        if descriptor < 0 {
            return Err(failed());
        }
        // SAFETY: nothing else owns the descriptor.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // SAFETY: all-zero bytes are a valid value of this struct of numbers.
        let mut facts: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the call takes a number, and may write `facts`.
        if unsafe { libc::fstat(descriptor.as_raw_fd(), &mut facts) } != 0 {
            return Err(failed());
        }
        let mark = facts.st_ino as c_int;
        Ok(File { descriptor, mark })
    }

    /// Returns whether no process can truncate it.
    fn is_sealed(&self) -> bool {
        // SAFETY: the call takes numbers and no pointers.
        let seals = unsafe { libc::fcntl(self.descriptor.as_raw_fd(), libc::F_GET_SEALS) };
        seals >= 0 && seals & libc::F_SEAL_SHRINK != 0
    }

    /// Returns what other processes need to open it.
    pub fn address(&self) -> Address {
        [self.descriptor.as_raw_fd(), self.mark]
    }

    /// Maps `length` bytes of it, and reserves memory for these parts.
    pub fn memory(&self, length: usize, parts: impl Parts) -> Result<Segment> {
        let segment = Segment::map(self.descriptor.as_raw_fd(), length)?;
        self.reserve(parts)?;
        Ok(segment)
    }

    fn reserve(&self, parts: impl Parts) -> Result {
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            reserve(&self.descriptor, part.start as u64, part.end)
                .map_err(|why| no_memory(part.len(), &why))?;
        }
        Ok(())
    }
}

/// Byte ranges of a file.
pub trait Parts: IntoIterator<Item = Range<usize>> + Clone {}

impl<T: IntoIterator<Item = Range<usize>> + Clone> Parts for T {}

/// Returns the thread ids of a process except that of the first thread.
pub fn other_threads(process: c_int) -> impl Iterator<Item = c_int> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let names = threads.into_iter().flatten().flatten();
    let numbers = names.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    numbers.filter(move |&thread| thread != process)
}

#[cold]
fn no_memory(length: usize, why: &SystemError) -> Error {
    let text = format!("{length} bytes of shared memory cannot be allocated: {why}");
    Error::new(ERR_NO_MEM, text)
}

impl Segment {
    /// Maps `length` bytes of the file of another process, and reserves memory for these parts. Other parts are
    /// reserved once the processes that own them have said so. Returns `None` if the file cannot be mapped.
    pub fn open(
        process: c_int,
        address: Address,
        length: usize,
        parts: impl Parts,
    ) -> Result<Option<Segment>> {
        let [descriptor, mark] = address;
        let of_thread = |thread| format!("/proc/{process}/task/{thread}/fd/{descriptor}");
        let mut paths = std::iter::once(process)
            .chain(other_threads(process))
            .map(of_thread);
        match descriptor {
            -1 => Ok(None),
            _ => paths
                .find_map(|path| Segment::open_at(path, mark, length, parts.clone()))
                .transpose(),
        }
    }

    fn open_at(
        path: String,
        mark: c_int,
        length: usize,
        parts: impl Parts,
    ) -> Option<Result<Segment>> {
        let path = CString::new(path).ok()?;
        // SAFETY: the text is NUL-terminated.
        let opened = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        let file = File::of(opened).ok()?;
        if file.mark != mark || !file.is_sealed() {
            return None;
        }
        let segment = Segment::map(file.descriptor.as_raw_fd(), length).ok()?;
        Some(file.reserve(parts).map(|()| segment))
    }

    /// Allocates memory for this process only.
    pub fn private(length: usize) -> Result<Segment> {
        Segment::map(-1, length)
    }

    fn map(file: c_int, length: usize) -> Result<Segment> {
        let flags = match file {
            -1 => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            _ => libc::MAP_SHARED,
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the mapping is new, at an address that the kernel chooses.
        let base = unsafe { libc::mmap(null_mut(), length, access, flags, file, 0) };
        match base {
            libc::MAP_FAILED => Err(no_memory(length, &SystemError::last_os_error())),
            base => Ok(Segment {
                base: base.cast(),
                length,
            }),
        }
    }

    /// Returns its address.
    pub fn base(&self) -> *mut u8 {
        self.base
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this object, and nothing uses it any longer.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT_BYTES: usize = 1 << 20;

    fn opened(address: Address) -> Option<Segment> {
        let process = std::process::id() as c_int;
        Segment::open(process, address, SEGMENT_BYTES, Some(0..SEGMENT_BYTES)).expect("memory")
    }

    /// Returns whether the kernel allows the file to be set to this length.
    fn cut(file: &File, length: libc::off_t) -> bool {
        // SAFETY: the call takes numbers and no pointers.
        unsafe { libc::ftruncate(file.descriptor.as_raw_fd(), length) == 0 }
    }

    #[test]
    fn memory_that_is_mapped_is_there_and_nobody_can_cut_it_off() {
        let file = File::new().expect("a file");
        let _own = file.memory(SEGMENT_BYTES, [0..100, SEGMENT_BYTES / 2..SEGMENT_BYTES]);
        assert!(opened(file.address()).is_some());
        assert!(!cut(&file, 0));
        // SAFETY: all-zero bytes are a valid value of this struct of numbers.
        let mut facts: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the call takes a number, and may write `facts`.
        assert_eq!(unsafe { libc::fstat(file.address()[0], &mut facts) }, 0);
        assert_eq!(facts.st_size as usize, SEGMENT_BYTES);
        assert_eq!(facts.st_blocks as usize * 512, SEGMENT_BYTES);
    }

    #[test]
    fn a_file_that_can_be_cut_off_is_not_mapped() {
        // SAFETY: the text is NUL-terminated.
        let unsealed = unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC) };
        let file = File::of(unsealed).expect("a file");
        assert!(cut(&file, SEGMENT_BYTES as libc::off_t));
        assert!(opened(file.address()).is_none());
    }

    #[test]
    fn too_little_memory_is_an_error() {
        const MORE_BYTES_THAN_THERE_ARE: usize = 1 << 45;
        let file = File::new().expect("a file");
        let class = |made: Result<Segment>| made.err().map(|error| error.class());
        assert_eq!(
            class(file.memory(
                MORE_BYTES_THAN_THERE_ARE,
                Some(0..MORE_BYTES_THAN_THERE_ARE)
            )),
            Some(ERR_NO_MEM)
        );
        assert_eq!(
            class(file.memory(SEGMENT_BYTES, Some(0..SEGMENT_BYTES))),
            None
        );
    }
}
