//! Values that are excluded from core dumps: keys.
//!
//! A core dump contains all private memory of a process, and the shared memory of its job. It may be kept, and sent to
//! others, while the job whose key it contains still runs. A value here lies in pages of its own that the kernel and
//! `gcore` exclude from dumps (`MADV_DONTDUMP`). They are overwritten when the value is dropped.
//!
//! A value that is built elsewhere and moved here leaves a copy behind, usually on the stack. So values should be
//! filled in place if possible; other copies are overwritten with [`erase`], as far as this program owns them.

use std::alloc::Layout;
use std::fmt;
use std::hint::black_box;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A value in pages that are excluded from core dumps.
pub struct Undumped<T>(NonNull<T>);

// SAFETY: it owns the value, as a `Box` does.
unsafe impl<T: Send> Send for Undumped<T> {}
// SAFETY: it owns the value, as a `Box` does.
unsafe impl<T: Sync> Sync for Undumped<T> {}

impl<T> Undumped<T> {
    /// Size of the mapping, in bytes; the kernel rounds it up to whole pages.
    const BYTES: usize = if size_of::<T>() == 0 {
        1
    } else {
        size_of::<T>()
    };

    /// Moves a value into new pages. Without memory the process ends, as for any small allocation. If the kernel cannot
    /// exclude pages from core dumps, they are included.
    pub fn new(value: T) -> Self {
        // A page is sufficiently aligned for any value with this alignment.
        const { assert!(align_of::<T>() <= 4096) };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses affects nothing else.
        let mapped = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                Self::BYTES,
                protection,
                MapFlags::PRIVATE,
            )
        };
        let place = mapped.ok().and_then(NonNull::new);
        let Some(place) = place else {
            std::alloc::handle_alloc_error(Layout::new::<T>());
        };
        // SAFETY: the mapping was just made; the advice changes nothing in this process.
        let _ = unsafe { madvise(place.as_ptr(), Self::BYTES, Advice::LinuxDontDump) };
        let place = place.cast::<T>();
        // SAFETY: the memory is new, long enough, and aligned to a page.
        unsafe { place.write(value) };
        Undumped(place)
    }
}

impl<T> Deref for Undumped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value was written in `new` and lives until `drop`.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Undumped<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the value was written in `new` and lives until `drop`; `&mut self` excludes other borrows.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for Undumped<T> {
    fn drop(&mut self) {
        // SAFETY: dropped once, after which the value is not read any more. Its bytes are ours until the mapping made
        // in `new` is unmapped, once.
        unsafe {
            self.0.drop_in_place();
            let bytes = self.0.cast::<u8>();
            bytes.write_bytes(0, size_of::<T>());
            black_box(bytes);
            let _ = munmap(bytes.as_ptr().cast(), Self::BYTES);
        }
    }
}

impl<T: Clone> Clone for Undumped<T> {
    fn clone(&self) -> Self {
        Undumped::new((**self).clone())
    }
}

impl<T: PartialEq> PartialEq for Undumped<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Undumped<T> {}

/// Does not print the value.
impl<T> fmt::Debug for Undumped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undumped")
    }
}

/// Overwrites a secret that is not needed any more, in a way that the compiler does not optimize out.
pub fn erase(secret: &mut [u8]) {
    secret.fill(0);
    black_box(secret);
}

/// Returns whether an address lies in memory that is excluded from core dumps, or `None` if it is not mapped.
#[doc(hidden)]
pub fn is_undumped(address: usize) -> Option<bool> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let mut inside = false;
    for line in maps.lines() {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let hex = |digits: &str| usize::from_str_radix(digits, 16).ok();
        if let Some((start, end)) = range.and_then(|(start, end)| Some((hex(start)?, hex(end)?))) {
            inside = (start..end).contains(&address);
        }
        if let (true, Some(flags)) = (inside, line.strip_prefix("VmFlags:")) {
            return Some(flags.split_whitespace().any(|flag| flag == "dd"));
        }
    }
    None
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn a_value_lies_in_memory_that_no_core_dump_has() {
        let value = Undumped::new([7_u8; 32]);
        assert_eq!(is_undumped(value.as_ptr() as usize), Some(true));
        let copy = value.clone();
        assert_eq!(is_undumped(copy.as_ptr() as usize), Some(true));
        assert_eq!((*copy, &copy), ([7; 32], &value));
        let long = Undumped::new([9_u8; 9000]);
        assert_eq!(is_undumped(&raw const long[8999] as usize), Some(true));
        let elsewhere = Box::new([7_u8; 32]);
        assert_eq!(is_undumped(elsewhere.as_ptr() as usize), Some(false));
    }

    #[test]
    fn a_value_is_changed_in_its_place_and_says_nothing_of_itself() {
        let mut value = Undumped::new([0_u8; 32]);
        let place = value.as_ptr();
        value[31] = 42;
        assert_eq!((value.as_ptr(), value[31]), (place, 42));
        assert_eq!(format!("{value:?}"), "Undumped");
    }

    #[test]
    fn a_value_is_dropped_once_and_its_pages_with_it() {
        let counted = Rc::new(());
        let value = Undumped::new(Rc::clone(&counted));
        assert_eq!(Rc::strong_count(&value), 2);
        drop(value);
        assert_eq!(Rc::strong_count(&counted), 1);
        drop(Undumped::new(()));
    }
}
