//! Memory that several processes of a host map. It has no name in any folder: nothing is left when its processes end.

use std::ffi::{CString, c_int};
use std::ptr::null_mut;

use super::copying::other_threads;
use crate::abi::ERR_NO_MEM;
use crate::error::{Error, Result};

/// A mapping.
pub struct Segment {
    base: *mut u8,
    length: usize,
}

// SAFETY: the mapping belongs to no thread.
unsafe impl Send for Segment {}
// SAFETY: as above; what lies in it is shared by processes anyhow.
unsafe impl Sync for Segment {}

/// A file descriptor that is closed.
pub struct File(pub c_int);

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: a descriptor of this object's own.
        unsafe { libc::close(self.0) };
    }
}

fn no_memory(length: usize) -> Error {
    let why = std::io::Error::last_os_error();
    let text = format!("{length} bytes of memory for a window are not to be had: {why}");
    Error::new(ERR_NO_MEM, text)
}

impl Segment {
    /// New memory of zeros, and the file by which others map it.
    pub fn create(length: usize) -> Result<(Segment, File)> {
        // SAFETY: a text that ends.
        let file = File(unsafe { libc::memfd_create(c"window".as_ptr(), libc::MFD_CLOEXEC) });
        let Ok(wanted) = libc::off_t::try_from(length) else {
            return Err(no_memory(length));
        };
        // SAFETY: it takes numbers.
        if file.0 < 0 || unsafe { libc::ftruncate(file.0, wanted) } != 0 {
            return Err(no_memory(length));
        }
        Ok((Segment::map(file.0, length)?, file))
    }

    /// The memory that another process has created.
    pub fn open(process: c_int, file: c_int, length: usize) -> Option<Segment> {
        let of_thread = |thread| format!("/proc/{process}/task/{thread}/fd/{file}");
        let mut paths = std::iter::once(process)
            .chain(other_threads(process))
            .map(of_thread);
        paths.find_map(|path| Segment::open_at(path, length))
    }

    fn open_at(path: String, length: usize) -> Option<Segment> {
        let path = CString::new(path).ok()?;
        // SAFETY: a text that ends.
        let file = File(unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) });
        // SAFETY: numbers only, and a place for the facts.
        let mut facts: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let is_known = file.0 >= 0 && unsafe { libc::fstat(file.0, &mut facts) } == 0;
        // In another process' view of the machine the number may lead elsewhere.
        let fits = is_known && usize::try_from(facts.st_size) == Ok(length);
        fits.then(|| Segment::map(file.0, length).ok()).flatten()
    }

    /// New memory of this process alone.
    pub fn private(length: usize) -> Result<Segment> {
        Segment::map(-1, length)
    }

    fn map(file: c_int, length: usize) -> Result<Segment> {
        let flags = match file {
            -1 => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            _ => libc::MAP_SHARED,
        };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the system chooses.
        let base = unsafe { libc::mmap(null_mut(), length, access, flags, file, 0) };
        match base {
            libc::MAP_FAILED => Err(no_memory(length)),
            base => Ok(Segment {
                base: base.cast(),
                length,
            }),
        }
    }

    /// Where it begins.
    pub fn base(&self) -> *mut u8 {
        self.base
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping of this object, which nobody uses any more.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}
