//! The memory that messages live in, used again and again.
//!
//! A block begins with [`HEAD`] bytes that belong to whoever sends the message, so that head and
//! body go out as one; the body follows at once. Blocks that are not in use lie on a [`Shelf`]: in
//! the steady state neither sending nor receiving allocates.
//!
//! Long messages are packed into memory that other tasks can read ([`Blocks`]): then they need not
//! be copied to be sent, and what is received is memory of somebody else's. A block that others may be
//! reading is never written again.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{NonNull, copy_nonoverlapping};

use super::codes::NO_MEM;
use crate::last_results::Kept;

/// Bytes in front of the body.
pub const HEAD: usize = 16;
/// No block has room for less than this much body.
pub const STANDARD: usize = 4096 - HEAD;

const ALIGNMENT: usize = 16;
/// Maximum number of blocks of the standard size that are kept for later.
const MAX_SPARE_STANDARD: usize = 64;
/// Maximum number of larger blocks that are kept for later: memory that the kernel has to hand out anew costs more than what is done
/// with it.
const MAX_SPARE_LARGE: usize = 8;
/// Maximum size of these larger blocks together, in bytes.
const MAX_SPARE_LARGE_BYTES: usize = 64 << 20;

/// Messages from this length on are packed into memory that others can read.
pub const SHARED_FROM: usize = 64 << 10;
/// Bytes before the head, so that the body begins with a cache line.
const BEFORE: usize = 64 - HEAD;

/// Memory that other tasks can read, from whoever has it.
#[derive(Clone, Copy)]
pub struct Blocks {
    /// A block of this many bytes, at the beginning of a cache line.
    pub take: fn(usize) -> Option<NonNull<u8>>,
    /// It is not needed here any more; others may still read it.
    pub give: fn(NonNull<u8>),
    /// Somebody else's block with this name is not read any more.
    pub close: fn(u64),
}

static BLOCKS: Kept<Option<Blocks>> = Kept::new(None);

/// From now on there is such memory, or none.
pub fn set_blocks(blocks: Option<Blocks>) {
    *BLOCKS.get() = blocks;
}

/// Whose the memory of a block is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// This process's alone.
    Own,
    /// One of [`Blocks`], of which others may read so much of the body.
    Shared(usize),
    /// Somebody else's, with this name: only to be read.
    Foreign(u64),
}

/// A block of memory for a message.
pub struct Storage {
    base: NonNull<u8>,
    /// Bytes of body; 0 when there is no memory at all.
    capacity: usize,
    home: Home,
}

fn layout(capacity: usize) -> Result<Layout, i32> {
    let size = capacity.checked_add(HEAD).ok_or(NO_MEM)?;
    Layout::from_size_align(size, ALIGNMENT).map_err(|_| NO_MEM)
}

impl Storage {
    /// No memory yet.
    pub const fn none() -> Storage {
        Storage {
            base: NonNull::dangling(),
            capacity: 0,
            home: Home::Own,
        }
    }

    /// A block that others can read, if such a one is to be had.
    fn shared(capacity: usize) -> Option<Storage> {
        let blocks = (*BLOCKS.get())?;
        let block = (blocks.take)(capacity.checked_add(BEFORE + HEAD)?)?;
        Some(Storage {
            // SAFETY: inside the block.
            base: unsafe { block.add(BEFORE) },
            capacity,
            home: Home::Shared(0),
        })
    }

    /// The memory of a message that somebody else lets us read; it begins as a block of `Blocks` does.
    ///
    /// # Safety
    /// There are [`Storage::reach`]`(body)` bytes to read, until the name is closed.
    pub unsafe fn foreign(block: NonNull<u8>, body: usize, name: u64) -> Storage {
        Storage {
            // SAFETY: the caller's.
            base: unsafe { block.add(BEFORE) },
            capacity: body,
            home: Home::Foreign(name),
        }
    }

    /// Bytes of a shared block from its beginning to the end of such a body.
    pub fn reach(body: usize) -> Option<usize> {
        body.checked_add(BEFORE + HEAD)
    }

    /// Does this process alone know this memory?
    #[inline(always)]
    pub fn is_own(&self) -> bool {
        self.home == Home::Own
    }

    /// Is it somebody else's?
    #[inline(always)]
    pub fn is_foreign(&self) -> bool {
        matches!(self.home, Home::Foreign(_))
    }

    /// May others be reading the body from byte `at` on?
    #[inline(always)]
    pub fn is_read_from(&self, at: usize) -> bool {
        match self.home {
            Home::Own => false,
            Home::Shared(read) => at < read,
            Home::Foreign(_) => true,
        }
    }

    /// Let others read so much of the body: the block they are to know of. NULL: they cannot.
    #[inline(always)]
    pub fn publish(&mut self, body: usize) -> *mut u8 {
        match &mut self.home {
            Home::Shared(read) if body >= SHARED_FROM && body <= self.capacity => {
                *read = body.max(*read);
                self.base.as_ptr().wrapping_sub(BEFORE)
            }
            _ => std::ptr::null_mut(),
        }
    }

    /// A block for `capacity` bytes of body, or more.
    pub fn new(capacity: usize) -> Result<Storage, i32> {
        let capacity = capacity.max(STANDARD);
        // SAFETY: the size is not zero.
        let base = NonNull::new(unsafe { alloc(layout(capacity)?) }).ok_or(NO_MEM)?;
        Ok(Storage {
            base,
            capacity,
            home: Home::Own,
        })
    }

    /// Bytes of body that fit.
    #[inline(always)]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The head, which the body follows. Not to be used when the capacity is 0.
    #[inline(always)]
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The body.
    #[inline(always)]
    pub fn body(&self) -> *mut u8 {
        self.base.as_ptr().wrapping_add(HEAD)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        match (self.home, *BLOCKS.get()) {
            (Home::Own, _) => {
                if self.capacity > 0
                    && let Ok(layout) = layout(self.capacity)
                {
                    // SAFETY: the block came from the allocator with this layout.
                    unsafe { dealloc(self.base.as_ptr(), layout) };
                }
            }
            // SAFETY: still inside the block, of which this is the beginning.
            (Home::Shared(_), Some(blocks)) => (blocks.give)(unsafe { self.base.sub(BEFORE) }),
            (Home::Foreign(name), Some(blocks)) => (blocks.close)(name),
            // It went with the task that this process was.
            (_, None) => {}
        }
    }
}

/// Blocks that wait for their next message.
pub struct Shelf {
    standard: Vec<Storage>,
    large: Vec<Storage>,
    large_bytes: usize,
}

impl Shelf {
    /// Nothing on it yet.
    pub const fn new() -> Shelf {
        Shelf {
            standard: Vec::new(),
            large: Vec::new(),
            large_bytes: 0,
        }
    }

    /// A block for `capacity` bytes of body, or more. Its content is anything.
    #[inline]
    pub fn take(&mut self, capacity: usize) -> Result<Storage, i32> {
        if capacity <= STANDARD {
            return match self.standard.pop() {
                Some(storage) => Ok(storage),
                None => Storage::new(capacity),
            };
        }
        self.take_large(capacity)
    }

    /// The smallest that will do, unless it is many times too large.
    #[cold]
    fn take_large(&mut self, capacity: usize) -> Result<Storage, i32> {
        let fits =
            |storage: &Storage| storage.capacity >= capacity && storage.capacity / 8 <= capacity;
        let fitting = self
            .large
            .iter()
            .enumerate()
            .filter(|(_, storage)| fits(storage));
        let Some((index, _)) = fitting.min_by_key(|(_, storage)| storage.capacity) else {
            return Storage::new(capacity);
        };
        let storage = self.large.swap_remove(index);
        self.large_bytes -= storage.capacity;
        Ok(storage)
    }

    /// Keep a block for later, or give it back to the system.
    #[inline]
    pub fn put(&mut self, storage: Storage) {
        if !storage.is_own() {
            return drop(storage);
        }
        if storage.capacity == STANDARD {
            if self.standard.len() < MAX_SPARE_STANDARD {
                self.standard.push(storage);
            }
        } else if storage.capacity > 0 {
            self.put_large(storage);
        }
    }

    #[cold]
    fn put_large(&mut self, storage: Storage) {
        if self.large.len() < MAX_SPARE_LARGE
            && self.large_bytes + storage.capacity <= MAX_SPARE_LARGE_BYTES
        {
            self.large_bytes += storage.capacity;
            self.large.push(storage);
        }
    }

    /// Exchange a block for one with room for at least `capacity`, with the head and the first `keep`
    /// bytes of the body.
    #[cold]
    pub fn exchange(
        &mut self,
        storage: &mut Storage,
        capacity: usize,
        keep: usize,
    ) -> Result<(), i32> {
        // Twice as much each time, so that packing byte by byte stays linear.
        let wanted = if keep == 0 {
            capacity
        } else {
            capacity.max(storage.capacity * 2)
        };
        let shared = (wanted >= SHARED_FROM).then(|| Storage::shared(wanted));
        let larger = match shared.flatten() {
            Some(storage) => storage,
            None => self.take(wanted)?,
        };
        if storage.capacity > 0 {
            // SAFETY: both blocks are that long, and they are different blocks.
            unsafe { copy_nonoverlapping(storage.as_mut_ptr(), larger.as_mut_ptr(), HEAD + keep) };
        }
        self.put(std::mem::replace(storage, larger));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_block_holds_is_kept_when_it_is_exchanged() {
        let (mut shelf, mut storage) = (Shelf::new(), Storage::new(1).unwrap());
        assert_eq!(storage.capacity(), STANDARD);
        for (keep, capacity) in [(100, 10_000), (9_000, 20_000), (0, 1 << 20)] {
            for index in 0..HEAD + keep {
                // SAFETY: inside the block.
                unsafe { storage.as_mut_ptr().add(index).write(index as u8) };
            }
            shelf.exchange(&mut storage, capacity, keep).unwrap();
            assert!(storage.capacity() >= capacity);
            for index in 0..HEAD + keep {
                // SAFETY: inside the block.
                let byte = unsafe { storage.as_mut_ptr().add(index).read() };
                assert_eq!(byte, index as u8);
            }
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert_eq!(Storage::new(usize::MAX).err(), Some(NO_MEM));
        assert_eq!(Storage::new(isize::MAX as usize).err(), Some(NO_MEM));
    }

    #[test]
    fn blocks_come_back_from_the_shelf() {
        let mut shelf = Shelf::new();
        let (small, large) = (shelf.take(8).unwrap(), shelf.take(100_000).unwrap());
        let (at, large_at) = (small.as_mut_ptr(), large.as_mut_ptr());
        shelf.put(small);
        shelf.put(large);
        assert_eq!(shelf.take(4000).unwrap().as_mut_ptr(), at);
        assert_ne!(
            shelf.take(5_000).unwrap().as_mut_ptr(),
            large_at,
            "many times too large"
        );
        assert_eq!(shelf.take(90_000).unwrap().as_mut_ptr(), large_at);
    }

    #[test]
    fn the_shelf_does_not_keep_everything() {
        let mut shelf = Shelf::new();
        let many: Vec<_> = (0..MAX_SPARE_STANDARD + 5)
            .map(|_| shelf.take(1).unwrap())
            .collect();
        many.into_iter().for_each(|storage| shelf.put(storage));
        assert_eq!(shelf.standard.len(), MAX_SPARE_STANDARD);
        shelf.put(Storage::new(MAX_SPARE_LARGE_BYTES + 1).unwrap());
        assert_eq!(shelf.large_bytes, 0);
    }
}
