//! A part of a file mapped into memory, to which many short runs are written with one system call.
//!
//! Bytes between the runs are not touched, unlike with data sieving, which writes them back. On local file systems
//! mappings and pwrite share the page cache. The kernel does the copying ([`process_vm_readv`](libc::process_vm_readv)
//! of this process), so an address that cannot be written (the device is full, the file was truncated) causes an error
//! instead of SIGBUS.

use std::ffi::c_int;
use std::ptr::null_mut;

use super::view::Run;

/// Size of a page in bytes, or a divisor of it: mappings begin at multiples.
pub(super) const PAGE_BYTES: i64 = 4096;
/// Maximum number of blocks in one system call.
const MAX_BLOCKS_PER_CALL: usize = 1024;

/// Magic numbers of local file systems, on which mappings and pwrite share one page cache.
const LOCAL: [u64; 6] = [
    0xef53,      // ext2 to ext4
    0x5846_5342, // XFS
    0x9123_683e, // Btrfs
    0xf2f5_2010, // F2FS
    0x0102_1994, // tmpfs
    0x794c_7630, // overlayfs
];

/// Returns whether the file is on a local file system, whose page cache has what any process has written.
pub fn is_local(fd: c_int) -> bool {
    // SAFETY: a struct of numbers, which is written.
    unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        libc::fstatfs(fd, &mut about) == 0 && LOCAL.contains(&(about.f_type as u64))
    }
}

/// Returns whether the file is open for reading and writing, as mappings require.
pub fn is_open_for_both(fd: c_int) -> bool {
    // SAFETY: the call takes numbers and no pointers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags & libc::O_ACCMODE == libc::O_RDWR
}

/// A part of a file mapped into memory.
pub struct Mapping {
    base: *mut u8,
    length: usize,
    start: i64,
}

impl Mapping {
    /// Maps bytes `start .. end` of the file. Returns `None` if the kernel refuses.
    pub fn new(fd: c_int, start: i64, end: i64) -> Option<Mapping> {
        let start = start / PAGE_BYTES * PAGE_BYTES;
        let length = usize::try_from(end - start).ok()?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: the mapping is new, at an address that the kernel chooses.
        let base = unsafe { libc::mmap(null_mut(), length, access, flags, fd, start) };
        (base != libc::MAP_FAILED).then(|| Mapping {
            base: base.cast(),
            length,
            start,
        })
    }

    /// Copies runs from `data` to the mapping, which contains them. Returns how many of them, from the first on, are
    /// certain to be written.
    ///
    /// # Safety
    /// The runs' bytes of `data` are valid for reads.
    pub unsafe fn write(&self, data: *const u8, runs: &[Run]) -> usize {
        let mut to = Vec::with_capacity(runs.len().min(MAX_BLOCKS_PER_CALL));
        let mut from: Vec<libc::iovec> = Vec::new();
        let mut written = 0;
        for part in runs.chunks(MAX_BLOCKS_PER_CALL) {
            to.clear();
            from.clear();
            for run in part {
                let block = |address: *mut u8| libc::iovec {
                    iov_base: address.cast(),
                    iov_len: run.length,
                };
                let place = self.base.wrapping_add((run.offset - self.start) as usize);
                to.push(block(place));
                let given = block(data.wrapping_add(run.at).cast_mut());
                // Most runs are consecutive in `data`, so their blocks are merged.
                match from.last_mut() {
                    Some(last)
                        if last.iov_base.wrapping_byte_add(last.iov_len) == given.iov_base =>
                    {
                        last.iov_len += given.iov_len;
                    }
                    _ => from.push(given),
                }
            }
            let total: usize = to.iter().map(|it| it.iov_len).sum();
            let (count, given) = (to.len() as libc::c_ulong, from.len() as libc::c_ulong);
            // SAFETY: the caller upholds the safety contract of this function; the system checks the mapping's bytes as
            // it writes them.
            let moved = unsafe {
                let own = libc::getpid();
                libc::process_vm_readv(own, to.as_ptr(), count, from.as_ptr(), given, 0)
            };
            if moved != total as isize {
                break;
            }
            written += part.len();
        }
        written
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any longer.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}
