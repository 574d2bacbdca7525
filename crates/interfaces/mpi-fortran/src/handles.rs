//! Handles: pointers in C, numbers in Fortran.

use std::ffi::c_int;
use std::mem::MaybeUninit;

/// A handle in C.
pub trait Handle: Copy {
    /// Returns the handle with this Fortran number.
    fn of(number: c_int) -> Self;
    /// Returns the Fortran number.
    fn to_int(self) -> c_int;
}

/// Handles below this value are predefined: their numbers are set by the standard, and are the same in C and Fortran.
const FIRST: c_int = 0x1000;

macro_rules! handles {
    ($($name:ident $from:ident $to:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $from(number: c_int) -> $name;
                fn $to(handle: $name) -> c_int;
            )*
        }
        $(
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            pub struct $name(usize);

            impl $name {
                /// Returns the handle with this Fortran number.
                #[inline(always)]
                pub fn of(number: c_int) -> $name {
                    match number {
                        0..FIRST => $name(number as usize),
                        // SAFETY: the function accepts any number.
                        _ => unsafe { $from(number) },
                    }
                }

                /// Returns the Fortran number.
                #[inline(always)]
                pub fn to_int(self) -> c_int {
                    match self.0 < FIRST as usize {
                        true => self.0 as c_int,
                        // SAFETY: the function accepts any handle.
                        false => unsafe { $to(self) },
                    }
                }
            }

            impl Handle for $name {
                fn of(number: c_int) -> Self {
                    $name::of(number)
                }

                fn to_int(self) -> c_int {
                    self.to_int()
                }
            }
        )*
    };
}

// Defines all handle types; generated from the table.
include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// Maximum number of handles in an array that is converted without allocating.
const INLINE_HANDLES: usize = 64;

/// An array of Fortran handles, converted to C's.
pub struct Handles<T> {
    few: [MaybeUninit<T>; INLINE_HANDLES],
    many: Vec<T>,
    count: usize,
}

impl<T: Handle> Handles<T> {
    /// Converts the program's array. A negative count means no elements; C's function then reports the error.
    ///
    /// # Safety
    /// `array` has `count` elements.
    #[inline]
    pub unsafe fn take(array: *const c_int, count: i64) -> Handles<T> {
        let count = count.max(0) as usize;
        let mut taken = Handles {
            few: [MaybeUninit::uninit(); INLINE_HANDLES],
            many: Vec::new(),
            count,
        };
        // SAFETY: the caller guarantees `count` elements.
        let numbers = (0..count).map(|index| T::of(unsafe { *array.add(index) }));
        if count > INLINE_HANDLES {
            taken.many.extend(numbers);
        } else {
            for (place, handle) in taken.few.iter_mut().zip(numbers) {
                place.write(handle);
            }
        }
        taken
    }

    /// Returns the array for C.
    pub fn place(&mut self) -> *mut T {
        match self.count > INLINE_HANDLES {
            true => self.many.as_mut_ptr(),
            false => self.few.as_mut_ptr().cast(),
        }
    }

    /// Writes the handles that C has set back to the program's array.
    ///
    /// # Safety
    /// `array` has as many elements as were taken.
    #[inline]
    pub unsafe fn give(&mut self, array: *mut c_int) {
        let first = self.place();
        for index in 0..self.count {
            // SAFETY: `index` is below the number of elements in both arrays.
            unsafe { *array.add(index) = (*first.add(index)).to_int() };
        }
    }
}
