//! A segment: memory shared by the tasks of one job on one host.
//!
//! *Anonymous.* A memfd: it has no name that could be guessed, is not in /dev/shm, and is released with its last
//! holder. It is passed as a descriptor.
//! *Sealed.* It can grow and never shrink, so a mapped and checked address stays valid.
//! *Reserved.* Pages are allocated (`fallocate`) before they are handed out: too little memory is an error from
//! [`Segment::allocate`], never a SIGBUS at a later store. As an allocation above a cgroup's limit would invoke the OOM
//! killer instead of failing, the limit is checked first.
//! *Growing.* Space is handed out by a bump pointer in the segment's first page; a task that reaches the end of the
//! reserved part extends it. Every process maps a window far larger than the file, so growing needs no remapping.
//! *Recovered.* Pieces that a task has been given and has not listed when it dies are found by others
//! ([`crate::making`]).

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::making::{Left, Maker, Making, Next};
use crate::uncancelled::Uncancelled;
use crate::{Corrupt, futex, memory_limit};

/// Number of bytes at the front of a segment that belong to the allocator.
pub const RESERVED_FRONT: usize = 128;
const PAGE: usize = 4096;
/// Minimum step by which the file grows, in bytes.
const STEP: u64 = 1 << 20;
/// The file grows by at least 1/`SHARE` of its memory. Each step delays all tasks that need memory at that moment,
/// so a job that needs much memory must not take many steps.
const SHARE: u64 = 8;
/// Maximum number of bytes of one call of fallocate, which ends at a multiple of this. If a signal interrupts the call,
/// the kernel undoes all of it, so a long call would never succeed while the program has a timer. Huge pages are not
/// split.
const ALLOCATION_PIECE_BYTES: u64 = 2 << 20;
/// Maximum sleep of a task while another one extends the file. The other task wakes it, unless it dies.
const EXTENSION_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Time after which a task no longer waits for a process that seems to extend the file.
const EXTENSION_TIMEOUT: Duration = Duration::from_millis(500);
/// Minimum size for which the free memory of the host is checked first, in bytes.
const ASK_HOST_BYTES: u64 = 64 << 20;
/// Address space mapped per process, in bytes; halved until the system grants it.
const WINDOW: usize = 64 << 30;

/// The allocator's words, at offset 0. Memory of a segment is initially zero.
#[repr(C)]
struct Front {
    /// The offset of the first byte not handed out, and the task that moved it last.
    next: Next,
    /// Offset of the first byte that is not reserved.
    reserved: AtomicU64,
    /// Process that is extending the file, or 0.
    extending: AtomicU32,
}

/// For the test that compares it with the version.
pub(crate) const LAYOUT: crate::layout::Layout =
    crate::layout!("allocator", Front { next, reserved, extending } RESERVED_FRONT);

/// The mapping of a segment in this process.
#[derive(Debug)]
pub struct Segment {
    fd: OwnedFd,
    base: NonNull<u8>,
    window: usize,
    /// Size of the file as last read; it only grows.
    known: AtomicU64,
    notes: OnceLock<Notes>,
}

/// Location of the tasks' records of what they make: the offset of the first, the distance to the next, and their
/// number.
#[derive(Debug)]
struct Notes {
    first: u64,
    step: u64,
    count: u32,
}

// SAFETY: the mapping is plain memory; all accesses go through checked offsets and atomics.
unsafe impl Send for Segment {}
// SAFETY: the mapping is plain memory; all accesses go through checked offsets and atomics.
unsafe impl Sync for Segment {}

impl Segment {
    /// Creates a segment with `bytes` reserved at once.
    pub fn create(name: &str, bytes: usize) -> io::Result<Segment> {
        Segment::create_with_hole(name, bytes, 0..0)
    }

    /// Creates a segment of `bytes`, reserved at once except for the pages of `hole`, which are allocated by
    /// [`Segment::back`]. The hole must begin and end at page boundaries.
    /// and ends with a page.
    pub fn create_with_hole(name: &str, bytes: usize, hole: Range<usize>) -> io::Result<Segment> {
        use rustix::fs::{MemfdFlags, SealFlags};
        let fd = rustix::fs::memfd_create(name, MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC)?;
        let bytes = bytes.max(RESERVED_FRONT).next_multiple_of(PAGE);
        let mut from = 0;
        if !hole.is_empty() {
            reserve(&fd, 0, hole.start)?;
            from = hole.end as u64;
        }
        reserve(&fd, from, bytes)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK)?;
        let segment = Segment::attach(fd)?;
        let front = segment.front();
        front.next.set(RESERVED_FRONT as u64);
        front.reserved.store(bytes as u64, Ordering::Release);
        Ok(segment)
    }

    /// Maps a segment that was passed as a descriptor.
    pub fn attach(fd: OwnedFd) -> io::Result<Segment> {
        use rustix::fs::SealFlags;
        let seals = rustix::fs::fcntl_get_seals(&fd)?;
        let size = rustix::fs::fstat(&fd)?.st_size as usize;
        if !seals.contains(SealFlags::SHRINK) || size < PAGE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not a Regatta segment: it is unsealed or too small",
            ));
        }
        let (base, window) = map(&fd, size)?;
        Ok(Segment {
            fd,
            base,
            window,
            known: AtomicU64::new(size as u64),
            notes: OnceLock::new(),
        })
    }

    /// Excludes the mapping from children that this process forks from now on, so that they cannot affect the other
    /// tasks.
    pub fn keep_from_children(&self) {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is the whole mapping of this segment, and the advice changes nothing in this process. A
        // kernel that does not know the advice leaves the mapping to the children.
        let _ = unsafe {
            madvise(
                self.base.as_ptr().cast(),
                self.window,
                Advice::LinuxDontFork,
            )
        };
    }

    /// Excludes the pages of the first `bytes`, which contain a key, from core dumps of this process.
    pub fn keep_front_from_dumps(&self, bytes: usize) {
        use rustix::mm::{Advice, madvise};
        let front = bytes.min(self.window);
        // SAFETY: the range is the front of this segment's mapping, and the advice changes nothing in this process. A
        // kernel that does not know the advice includes the pages in its dumps.
        let _ = unsafe { madvise(self.base.as_ptr().cast(), front, Advice::LinuxDontDump) };
    }

    /// Returns the descriptor, to be passed on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns how many bytes have been handed out; at most as many as this process can map, whatever other tasks
    /// write.
    pub fn used(&self) -> u64 {
        self.front().next.place().min(self.window as u64)
    }

    fn front(&self) -> &Front {
        // SAFETY: every segment is at least a page, aligned, and `Front` consists of atomics.
        unsafe { self.base.cast::<Front>().as_ref() }
    }

    /// Returns the address of `len` bytes at `offset`. Fails if they are not inside the segment.
    pub fn at(&self, offset: u64, len: usize) -> Result<NonNull<u8>, Corrupt> {
        const OUTSIDE: Corrupt = Corrupt {
            what: "an offset points outside the shared segment",
        };
        let end = offset.checked_add(len as u64).ok_or(OUTSIDE)?;
        if end > self.known.load(Ordering::Relaxed) {
            let size = rustix::fs::fstat(&self.fd).map_or(0, |stat| stat.st_size as u64);
            // The file may have become larger than this process's window.
            let here = size.min(self.window as u64);
            self.known.fetch_max(here, Ordering::Relaxed);
            if end > here {
                return Err(OUTSIDE);
            }
        }
        // SAFETY: the offset is inside the mapping, and the sealed file never becomes shorter.
        Ok(unsafe { self.base.add(offset as usize) })
    }

    /// Returns the offset of an address, or `None` if it is outside the mapping.
    pub fn offset_of(&self, address: usize) -> Option<u64> {
        let offset = address.checked_sub(self.base.as_ptr() as usize)?;
        (offset < self.window).then_some(offset as u64)
    }

    /// Returns a typed reference to shared words at `offset`.
    ///
    /// # Safety
    /// `T` must consist of atomics only (any bit pattern is valid, another process may write).
    pub unsafe fn words<T>(&self, offset: u64) -> Result<&T, Corrupt> {
        if !(offset as usize).is_multiple_of(align_of::<T>()) {
            return Err(Corrupt {
                what: "an offset into the shared segment is misaligned",
            });
        }
        let at = self.at(offset, size_of::<T>())?;
        // SAFETY: the words are inside the mapping, aligned, and atomics; the reference lives at most as long as the
        // mapping.
        Ok(unsafe { at.cast::<T>().as_ref() })
    }

    /// Allocates the pages of `len` bytes at `offset`, which may lie in a hole.
    pub fn back(&self, offset: u64, len: usize) -> io::Result<()> {
        let outside = |_| io::Error::from(io::ErrorKind::InvalidInput);
        self.at(offset, len).map_err(outside)?;
        reserve(&self.fd, offset, offset as usize + len)
    }

    /// Gives the memory of `len` bytes at `offset` back to the system; its contents are lost. Before the bytes are used
    /// again they must be allocated with [`Segment::back`].
    pub fn release(&self, offset: u64, len: usize) -> io::Result<()> {
        use rustix::fs::FallocateFlags;
        let outside = |_| io::Error::from(io::ErrorKind::InvalidInput);
        self.at(offset, len).map_err(outside)?;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punch = || rustix::fs::fallocate(&self.fd, flags, offset, len as u64);
        Ok(rustix::io::retry_on_intr(punch)?)
    }

    /// Sets the location of the tasks' records of what they make: the first is at `first`, each further one `step`
    /// bytes after the previous one. Must be called once, before any task makes a piece.
    pub fn keep_notes(&self, first: u64, step: u64, count: u32) {
        let _ = self.notes.set(Notes { first, step, count });
    }

    /// Returns a task's record.
    fn note(&self, task: u32) -> Option<&Making> {
        let notes = self.notes.get().filter(|notes| task < notes.count)?;
        // SAFETY: `Making` consists of atomics.
        unsafe { self.words(notes.first + task as u64 * notes.step) }.ok()
    }

    /// Returns the memory that a dead task had taken for a piece and has not declared [listed](Segment::listed).
    pub fn left_by(&self, task: u32) -> Option<Left> {
        let note = |task| self.note(task);
        self.front().next.left_by(task, note)
    }

    /// Declares that the piece that this task makes is on its list, or that another task has put it there after this
    /// one died.
    pub fn listed(&self, task: u32) {
        if let Some(note) = self.note(task) {
            note.end();
        }
    }

    /// Allocates `bytes` zeroed bytes at an offset that is a multiple of `align`. The pages are allocated; if there is
    /// not enough memory, this fails and changes nothing.
    pub fn allocate(&self, bytes: usize, align: usize) -> io::Result<u64> {
        self.hand_out(bytes, align, None)
    }

    /// Allocates memory for a piece that a task will put on a list. Until the task calls [`Segment::listed`], others
    /// can find the piece if the task dies ([`Segment::left_by`]).
    pub fn allocate_for(&self, maker: Maker, bytes: usize, align: usize) -> io::Result<u64> {
        self.hand_out(bytes, align, Some(maker))
    }

    /// Reserves the next `bytes` bytes to be handed out, as far as there is memory, so that the task that needs them
    /// does not wait until the file has grown.
    pub fn reserve_ahead(&self, bytes: u64) {
        let front = self.front();
        let next = self.used();
        let end = next.saturating_add(bytes).min(self.window as u64);
        let end = end.next_multiple_of(PAGE as u64);
        let reserved = front.reserved.load(Ordering::Acquire);
        let idle = || {
            let me = std::process::id();
            let lock = &front.extending;
            lock.compare_exchange(0, me, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        // A process that is already extending the file makes more room than this.
        if end <= reserved || !idle() {
            return;
        }
        // A lack of memory is reported where the memory is needed; so is an offset beyond the end of the file, which
        // another task has written there.
        if let Ok(size) = rustix::fs::fstat(&self.fd).map(|stat| stat.st_size as u64)
            && next <= size
            && (size >= end || reserve(&self.fd, size, end as usize).is_ok())
        {
            front.reserved.fetch_max(end.max(size), Ordering::AcqRel);
        }
        front.extending.store(0, Ordering::Release);
        futex::wake(&front.extending);
    }

    /// Maps the pages of `len` bytes at `offset` in this process at once. Otherwise each costs a fault at its first
    /// use, which takes as long as a message. The memory can be used whether this succeeds or not.
    pub fn map_at_once(&self, offset: u64, len: usize) {
        use rustix::mm::{Advice, madvise};
        let front = offset as usize % PAGE;
        let Ok(start) = self.at(offset - front as u64, front + len) else {
            return;
        };
        // SAFETY: the pages belong to the mapping, and their contents do not change. Kernels before 5.14 refuse the
        // advice.
        let _ = unsafe {
            madvise(
                start.as_ptr().cast(),
                front + len,
                Advice::LinuxPopulateWrite,
            )
        };
    }

    fn hand_out(&self, bytes: usize, align: usize, maker: Option<Maker>) -> io::Result<u64> {
        let front = self.front();
        let noted = maker.and_then(|maker| Some((maker, self.note(maker.task)?)));
        loop {
            let seen = front.next.look(|task| self.note(task));
            let next = seen.place();
            let start = next
                .checked_next_multiple_of(align as u64)
                .ok_or(io::ErrorKind::OutOfMemory)?;
            let end = start
                .checked_add(bytes as u64)
                .ok_or(io::ErrorKind::OutOfMemory)?;
            if end > self.window as u64 {
                return Err(io::Error::new(
                    io::ErrorKind::OutOfMemory,
                    format!(
                        "the window of {} MiB mapped for shared memory is full; the address space may be limited (ulimit -v)",
                        self.window >> 20
                    ),
                ));
            }
            if end > front.reserved.load(Ordering::Acquire) {
                self.extend(next, end)?;
                continue;
            }
            if let Some((maker, note)) = noted {
                note.begin(maker.kind, start, end);
            }
            let task = noted.map(|(maker, _)| maker.task);
            if front.next.take(seen, end, task) {
                return Ok(start);
            }
            if let Some((_, note)) = noted {
                note.end();
            }
        }
    }

    /// Reserves the memory from `next`, up to which it is handed out, to `end`. One process at a time; a lock that was
    /// left by a dead process or has no holder is taken over. (The lock only saves double work.)
    fn extend(&self, next: u64, end: u64) -> io::Result<()> {
        let front = self.front();
        let me = std::process::id();
        let start = Instant::now();
        loop {
            if end <= front.reserved.load(Ordering::Acquire) {
                return Ok(());
            }
            match front
                .extending
                .compare_exchange(0, me, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(holder) if !alive(holder) || start.elapsed() > EXTENSION_TIMEOUT => {
                    let _ = front.extending.compare_exchange(
                        holder,
                        0,
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    );
                }
                // Many tasks may wait: if they polled, they would take the cores from the one that extends.
                Err(holder) => {
                    futex::wait(&front.extending, holder, Some(EXTENSION_CHECK_INTERVAL))
                }
            }
        }
        let result = self.extend_alone(front, next, end);
        front.extending.store(0, Ordering::Release);
        futex::wake(&front.extending);
        result
    }

    fn extend_alone(&self, front: &Front, next: u64, end: u64) -> io::Result<()> {
        let _whole = Uncancelled::begin();
        let stat = rustix::fs::fstat(&self.fd)?;
        let size = stat.st_size as u64;
        if next > size {
            // Growing up to there could use up the host's memory because of an invalid word.
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the job's shared memory is damaged: more of it has been allocated than exists",
            ));
        }
        if end > size {
            // Grow by a whole step or, if there is not enough memory, by just what is needed.
            let there = stat.st_blocks as u64 * 512;
            let step = (there / SHARE).next_multiple_of(STEP).max(STEP);
            let mut target = (size + step).max(end.next_multiple_of(STEP));
            target = target.min(self.window as u64).max(end);
            if reserve(&self.fd, size, target as usize).is_err() {
                target = end.next_multiple_of(PAGE as u64);
                reserve(&self.fd, size, target as usize)?;
            }
            front.reserved.fetch_max(target, Ordering::AcqRel);
        } else {
            front.reserved.fetch_max(size, Ordering::AcqRel);
        }
        Ok(())
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `map` and is unmapped once; no borrow outlives `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.window) };
    }
}

fn alive(pid: u32) -> bool {
    // SAFETY: signal 0 only checks for existence; ids that would mean a process group are excluded.
    libc::pid_t::try_from(pid).is_ok_and(|pid| pid > 0 && unsafe { libc::kill(pid, 0) == 0 })
}

fn map(fd: &OwnedFd, size: usize) -> io::Result<(NonNull<u8>, usize)> {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    // If the address space is limited, most of it is left to the program.
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let share = limit.map_or(WINDOW, |limit| limit as usize / 4 / PAGE * PAGE);
    let mut window = WINDOW.min(share).max(size);
    loop {
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses affects nothing else.
        let got = unsafe {
            mmap(
                std::ptr::null_mut(),
                window,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
                fd,
                0,
            )
        };
        match got {
            Ok(base) => {
                let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
                return Ok((base, window));
            }
            Err(_) if window / 2 > size => window /= 2,
            Err(_) if window > size => window = size,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes the file `to` bytes long, unless it is longer, with all pages from `from` on allocated. After an error the
/// file may be longer by some of these pages; they have not been handed out, and a later smaller request finds them
/// allocated.
pub fn reserve(fd: &impl AsFd, from: u64, to: usize) -> io::Result<()> {
    let more = (to as u64).saturating_sub(from);
    if more >= ASK_HOST_BYTES
        && let Some(left) = memory_limit::left_on_host()
        && left < more
    {
        return Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!(
                "{} KiB of shared memory are needed, and the host has {} KiB left",
                more >> 10,
                left >> 10
            ),
        ));
    }
    if let Some(room) = memory_limit::room(more)
        && room < more
    {
        return Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!(
                "{} KiB of shared memory are needed, and the memory limit of this control group leaves {} KiB",
                more >> 10,
                room >> 10
            ),
        ));
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    if limit.current.is_some_and(|limit| limit < to as u64) {
        // Beyond this limit the kernel sends SIGXFSZ instead of returning an error.
        return Err(io::Error::other(format!(
            "shared memory of {} KiB exceeds the file size limit (ulimit -f)",
            to >> 10
        )));
    }
    let flags = rustix::fs::FallocateFlags::empty();
    let allocate = |from, bytes| rustix::fs::fallocate(fd, flags, from, bytes);
    Ok(allocate_in_pieces(from, more, allocate)?)
}

/// Allocates `bytes` at `from`, in pieces. A piece that a signal has interrupted is allocated again.
fn allocate_in_pieces(
    mut from: u64,
    bytes: u64,
    mut allocate: impl FnMut(u64, u64) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let end = from + bytes;
    loop {
        let to = end.min((from / ALLOCATION_PIECE_BYTES + 1) * ALLOCATION_PIECE_BYTES);
        rustix::io::retry_on_intr(|| allocate(from, to - from))?;
        from = to;
        if from >= end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reserved_ahead_is_handed_out_without_the_file_growing() {
        let segment = Segment::create("test", 100).unwrap();
        let size = || rustix::fs::fstat(segment.fd()).unwrap().st_size;
        segment.reserve_ahead(300 << 10);
        let reserved = size();
        for _ in 0..30 {
            let offset = segment.allocate(10 << 10, 64).unwrap();
            segment.map_at_once(offset, 10 << 10);
        }
        assert_eq!(size(), reserved);
        segment.reserve_ahead(0);
        assert_eq!(size(), reserved);
        segment.allocate(10 << 10, 64).unwrap();
        assert!(size() > reserved);
    }

    #[test]
    fn a_hole_does_not_count_where_the_file_grows_by_a_part_of_the_memory_that_there_is() {
        let hole = 4096..64 << 20;
        let segment = Segment::create_with_hole("test", (64 << 20) + 4096, hole).unwrap();
        let size = || rustix::fs::fstat(segment.fd()).unwrap().st_size as u64;
        let before = size();
        segment.allocate(before as usize, 64).unwrap();
        assert!(size() <= before + 2 * STEP);
    }

    #[test]
    fn allocations_are_disjoint_aligned_zeroed_and_seen_by_both_mappings() {
        let one = Segment::create("test", 100).unwrap();
        let two = Segment::attach(one.fd().try_clone_to_owned().unwrap()).unwrap();
        let mut end = 0;
        for k in 1..200usize {
            let (segment, other) = if k % 2 == 0 {
                (&one, &two)
            } else {
                (&two, &one)
            };
            let at = segment.allocate(k * 100, 64).unwrap();
            assert!(at >= end && at % 64 == 0);
            end = at + k as u64 * 100;
            let here = segment.at(at, k * 100).unwrap();
            let there = other.at(at, k * 100).unwrap();
            // SAFETY: both point to the bytes that were just allocated.
            unsafe {
                let bytes = std::slice::from_raw_parts(here.as_ptr(), k * 100);
                assert!(bytes.iter().all(|&b| b == 0));
                here.as_ptr().write_volatile(k as u8);
                assert_eq!(there.as_ptr().read_volatile(), k as u8);
            }
        }
    }

    #[test]
    fn nothing_outside_is_ever_handed_out() {
        let segment = Segment::create("test", 8192).unwrap();
        assert!(segment.at(8191, 1).is_ok());
        assert!(segment.at(8192, 1).is_err());
        assert!(segment.at(u64::MAX - 1, 4).is_err());
        assert!(segment.at(0, usize::MAX).is_err());
        // SAFETY: `AtomicU64` is an atomic.
        assert!(unsafe { segment.words::<AtomicU64>(3) }.is_err());
    }

    #[test]
    fn a_segment_cannot_be_shrunk_by_anybody() {
        let segment = Segment::create("test", 8192).unwrap();
        assert!(rustix::fs::ftruncate(segment.fd(), 4096).is_err());
    }

    #[test]
    fn an_unsealed_file_is_refused() {
        let fd = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, 8192).unwrap();
        assert!(Segment::attach(fd).is_err());
    }

    #[test]
    fn a_file_that_outgrows_the_window_is_not_reached_into() {
        let segment = Segment::create("test", 4096).unwrap();
        let mut small = Segment::attach(segment.fd().try_clone_to_owned().unwrap()).unwrap();
        let whole = std::mem::replace(&mut small.window, 8192);
        segment.allocate(1 << 20, 64).unwrap();
        for _ in 0..2 {
            assert!(small.at(4096, 4096).is_ok());
            assert!(small.at(8192, 1).is_err());
        }
        small.window = whole;
    }

    #[test]
    fn scribbles_on_the_allocator_are_errors() {
        let segment = Segment::create("test", 4096).unwrap();
        let front = segment.front();
        let size = || rustix::fs::fstat(segment.fd()).unwrap().st_size;
        let before = size();
        // Far beyond the end, where growing would use up all memory.
        front.next.set(32 << 30);
        assert!(segment.allocate(64, 64).is_err());
        assert_eq!(size(), before);
        front.next.set(u64::MAX);
        assert!(segment.allocate(64, 64).is_err());
        // Fewer bytes marked as reserved than are: the memory can be used nevertheless.
        front.next.set(1024);
        front.reserved.store(0, Ordering::Relaxed);
        assert!(segment.allocate(64, 64).is_ok());
        // More bytes marked as reserved than are: what is handed out is refused where it is used.
        front.reserved.store(u64::MAX, Ordering::Relaxed);
        let outside = segment.allocate(8192, 64).unwrap();
        assert!(segment.at(outside, 8192).is_err());
    }

    #[test]
    fn an_extension_nobody_makes_is_not_waited_for() {
        let segment = Segment::create("test", 4096).unwrap();
        for holder in [u32::MAX, 1 << 31, i32::MAX as u32, std::process::id()] {
            segment.front().extending.store(holder, Ordering::Relaxed);
            assert!(segment.allocate(1 << 20, 64).is_ok());
        }
    }

    /// The program's timer ends each call that takes longer, and the kernel then undoes it.
    #[test]
    fn memory_is_reserved_though_signals_come_all_the_time() {
        const BYTES_BETWEEN_SIGNALS: u64 = 3 << 20;
        let (from, bytes) = (4096, 1 << 30);
        let (mut left, mut signals) = (BYTES_BETWEEN_SIGNALS, 0);
        let mut done = from;
        let allocated = allocate_in_pieces(from, bytes, |start, bytes| {
            assert_eq!(start, done);
            if bytes > left {
                left = BYTES_BETWEEN_SIGNALS;
                signals += 1;
                return Err(match signals < 10_000 {
                    true => rustix::io::Errno::INTR,
                    false => rustix::io::Errno::TIME,
                });
            }
            left -= bytes;
            done += bytes;
            Ok(())
        });
        assert_eq!((allocated, done), (Ok(()), from + bytes));
        // The kernel refuses to allocate zero bytes.
        let nothing = allocate_in_pieces(from, 0, |_, _| Err(rustix::io::Errno::INVAL));
        assert_eq!(nothing, Err(rustix::io::Errno::INVAL));
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        let segment = Segment::create("test", 4096).unwrap();
        assert!(segment.allocate(1 << 50, 64).is_err());
        let more = reserve(&segment.fd, 0, 1 << 45);
        assert_eq!(more.unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        assert!(segment.allocate(64, 64).is_ok(), "and nothing was used up");
    }
}
