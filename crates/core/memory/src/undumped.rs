//! Values that no core dump has: keys.
//!
//! A core dump has all private memory of a process, and the shared memory of its job. It is kept, and sent to others, while a job
//! goes on whose key it would hold. A value here lies in pages of its own that are left out of it (`MADV_DONTDUMP`), by the
//! kernel and by `gcore`. They are overwritten when the value is dropped.
//!
//! A value that is built elsewhere and moved here leaves a copy behind, mostly on the stack. So what can be filled in place should be; what
//! cannot is overwritten with [`erase`], as far as it is ours.

use std::alloc::Layout;
use std::fmt;
use std::hint::black_box;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A value in pages that no core dump has.
pub struct Undumped<T>(NonNull<T>);

// SAFETY: it owns the value, as a `Box` does.
unsafe impl<T: Send> Send for Undumped<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Undumped<T> {}

impl<T> Undumped<T> {
    /// The kernel maps whole pages, whatever their size is.
    const BYTES: usize = if size_of::<T>() == 0 {
        1
    } else {
        size_of::<T>()
    };

    /// With this value. Where there is no memory the process ends, as for any small piece of it. Where the kernel cannot leave pages
    /// out of a core dump, they are in it.
    pub fn new(value: T) -> Self {
        // A page is aligned for whatever has no larger alignment.
        const { assert!(align_of::<T>() <= 4096) };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address the kernel chooses disturbs nothing.
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
        // SAFETY: the mapping just made; the advice changes nothing in this process.
        let _ = unsafe { madvise(place.as_ptr(), Self::BYTES, Advice::LinuxDontDump) };
        let place = place.cast::<T>();
        // SAFETY: fresh memory, long enough, aligned to a page.
        unsafe { place.write(value) };
        Undumped(place)
    }
}

impl<T> Deref for Undumped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: written in `new`, and there until `drop`.
        unsafe { self.0.as_ref() }
    }
}

impl<T> DerefMut for Undumped<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and borrowed by nobody else.
        unsafe { self.0.as_mut() }
    }
}

impl<T> Drop for Undumped<T> {
    fn drop(&mut self) {
        // SAFETY: dropped once; then nobody reads the value any more, and its bytes are ours until the mapping made in `new` is
        // given back, once.
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

/// Says nothing of the value.
impl<T> fmt::Debug for Undumped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undumped")
    }
}

/// Overwrites a secret that nobody will read again, in a way that the compiler does not leave out.
pub fn erase(secret: &mut [u8]) {
    secret.fill(0);
    black_box(secret);
}

/// Whether an address lies in memory that no core dump has; `None`: it is not mapped.
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
