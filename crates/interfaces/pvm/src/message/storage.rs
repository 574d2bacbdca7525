//! The memory of messages, and its reuse.
//!
//! A block begins with [`HEAD`] bytes for the header that the sender adds, so that header and body are sent as one
//! block. The body follows the header. Unused blocks are kept on a [`Shelf`]: in the steady state neither sending nor
//! receiving allocates.
//!
//! Long messages are packed into memory that other tasks can read ([`Blocks`]). They are sent without a copy, and a
//! received message is memory of another task. A block that another task may be reading is never written again.

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::{NonNull, copy_nonoverlapping};

use super::codes::NO_MEM;
use crate::last_results::Kept;

/// Size of the header in front of the body, in bytes.
pub const HEAD: usize = 16;
/// Minimum capacity of a block, in bytes of body.
pub const STANDARD: usize = 4096 - HEAD;

const ALIGNMENT: usize = 16;
/// Maximum number of standard blocks that are kept for reuse.
const MAX_SPARE_STANDARD: usize = 64;
/// Maximum number of larger blocks that are kept for reuse: fresh pages from the kernel cost more than the message
/// itself.
const MAX_SPARE_LARGE: usize = 8;
/// Maximum total size of these larger blocks, in bytes.
const MAX_SPARE_LARGE_BYTES: usize = 64 << 20;

/// Messages of at least this many bytes are packed into memory that other tasks can read.
pub const SHARED_FROM: usize = 64 << 10;
/// Bytes before the header, so that the body begins at a cache line.
const PADDING_BYTES: usize = 64 - HEAD;

/// Functions that provide memory that other tasks can read.
#[derive(Clone, Copy)]
pub struct Blocks {
    /// Allocates a block of this many bytes, aligned to a cache line.
    pub take: fn(usize) -> Option<NonNull<u8>>,
    /// Frees a block of this task. Others may still be reading it.
    pub give: fn(NonNull<u8>),
    /// Ends reading another task's block with this name.
    pub close: fn(u64),
}

static BLOCKS: Kept<Option<Blocks>> = Kept::new(None);

/// Sets the provider of such memory, or `None`.
pub fn set_blocks(blocks: Option<Blocks>) {
    *BLOCKS.get() = blocks;
}

/// The owner of a block's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// This process, and no other task can read it.
    Own,
    /// This task, from [`Blocks`]. Others may be reading this many bytes of the body.
    Shared(usize),
    /// Another task, under this name. It is read-only.
    Foreign(u64),
}

/// A block of memory for a message.
pub struct Storage {
    base: NonNull<u8>,
    /// Bytes of body that fit; 0 if there is no memory.
    capacity: usize,
    home: Home,
}

fn layout(capacity: usize) -> Result<Layout, i32> {
    let size = capacity.checked_add(HEAD).ok_or(NO_MEM)?;
    Layout::from_size_align(size, ALIGNMENT).map_err(|_| NO_MEM)
}

impl Storage {
    /// Returns a storage without memory.
    pub const fn none() -> Storage {
        Storage {
            base: NonNull::dangling(),
            capacity: 0,
            home: Home::Own,
        }
    }

    /// Returns a block that others can read, or `None` if none is available.
    fn shared(capacity: usize) -> Option<Storage> {
        let blocks = (*BLOCKS.get())?;
        let block = (blocks.take)(capacity.checked_add(PADDING_BYTES + HEAD)?)?;
        Some(Storage {
            // SAFETY: the address is inside the block.
            base: unsafe { block.add(PADDING_BYTES) },
            capacity,
            home: Home::Shared(0),
        })
    }

    /// Wraps the memory of a message that another task shares. It is laid out like a block of `Blocks`.
    ///
    /// # Safety
    /// `block` is valid for [`Storage::reach`]`(body)` bytes until the name is closed.
    pub unsafe fn foreign(block: NonNull<u8>, body: usize, name: u64) -> Storage {
        Storage {
            // SAFETY: the caller guarantees that the memory is valid.
            base: unsafe { block.add(PADDING_BYTES) },
            capacity: body,
            home: Home::Foreign(name),
        }
    }

    /// Returns the bytes of a shared block from its beginning to the end of a body of this size.
    pub fn reach(body: usize) -> Option<usize> {
        body.checked_add(PADDING_BYTES + HEAD)
    }

    /// Returns whether only this process has access to the memory.
    #[inline(always)]
    pub fn is_own(&self) -> bool {
        self.home == Home::Own
    }

    /// Returns whether the memory belongs to another task.
    #[inline(always)]
    pub fn is_foreign(&self) -> bool {
        matches!(self.home, Home::Foreign(_))
    }

    /// Returns whether others may be reading the body at or after byte `at`.
    #[inline(always)]
    pub fn is_read_from(&self, at: usize) -> bool {
        match self.home {
            Home::Own => false,
            Home::Shared(read) => at < read,
            Home::Foreign(_) => true,
        }
    }

    /// Lets others read the first `body` bytes of the body, and returns the shared block. Returns NULL if the memory
    /// cannot be shared.
    #[inline(always)]
    pub fn publish(&mut self, body: usize) -> *mut u8 {
        match &mut self.home {
            Home::Shared(read) if body >= SHARED_FROM && body <= self.capacity => {
                *read = body.max(*read);
                self.base.as_ptr().wrapping_sub(PADDING_BYTES)
            }
            _ => std::ptr::null_mut(),
        }
    }

    /// Allocates a block for at least `capacity` bytes of body.
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

    /// Returns how many bytes of body fit.
    #[inline(always)]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the address of the header, which the body follows. Must not be used if the capacity is 0.
    #[inline(always)]
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Returns the address of the body.
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
            (Home::Shared(_), Some(blocks)) => {
                // SAFETY: this is the beginning of the block that contains `base`.
                (blocks.give)(unsafe { self.base.sub(PADDING_BYTES) })
            }
            (Home::Foreign(name), Some(blocks)) => (blocks.close)(name),
            // The memory was released with the task that this process was.
            (_, None) => {}
        }
    }
}

/// Blocks that can be reused.
pub struct Shelf {
    standard: Vec<Storage>,
    large: Vec<Storage>,
    large_bytes: usize,
}

impl Shelf {
    /// Returns an empty shelf.
    pub const fn new() -> Shelf {
        Shelf {
            standard: Vec::new(),
            large: Vec::new(),
            large_bytes: 0,
        }
    }

    /// Returns a block for at least `capacity` bytes of body. Its contents are undefined.
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

    /// Returns the smallest block that fits, unless it is more than 8 times too large.
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

    /// Keeps a block for reuse, or frees it.
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

    /// Replaces a block by one for at least `capacity` bytes of body. Copies the header and the first `keep` bytes of
    /// the body.
    #[cold]
    pub fn exchange(
        &mut self,
        storage: &mut Storage,
        capacity: usize,
        keep: usize,
    ) -> Result<(), i32> {
        // Double the capacity, so that packing byte by byte takes linear time.
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
            // SAFETY: both blocks are at least `HEAD + keep` bytes long, and they are different blocks.
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
                // SAFETY: the address is inside the block.
                unsafe { storage.as_mut_ptr().add(index).write(index as u8) };
            }
            shelf.exchange(&mut storage, capacity, keep).unwrap();
            assert!(storage.capacity() >= capacity);
            for index in 0..HEAD + keep {
                // SAFETY: the address is inside the block.
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
