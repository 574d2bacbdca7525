//! Handles: C's pointers, and Fortran's numbers.

use std::ffi::c_int;
use std::mem::MaybeUninit;

/// A handle of C's.
pub trait Handle: Copy {
    /// The handle of Fortran's number.
    fn of(number: c_int) -> Self;
    /// Its number for Fortran.
    fn to_int(self) -> c_int;
}

/// Handles below this are predefined: the standard's numbers, the same in C and in Fortran.
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
                /// The handle of Fortran's number.
                #[inline(always)]
                pub fn of(number: c_int) -> $name {
                    match number {
                        0..FIRST => $name(number as usize),
                        // SAFETY: any number may be asked for.
                        _ => unsafe { $from(number) },
                    }
                }

                /// Its number for Fortran.
                #[inline(always)]
                pub fn to_int(self) -> c_int {
                    match self.0 < FIRST as usize {
                        true => self.0 as c_int,
                        // SAFETY: any handle may be asked for.
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

// All kinds, made of the table.
include!(concat!(env!("OUT_DIR"), "/handles.rs"));

/// Maximum number of handles of an array for which no memory is allocated.
const INLINE_HANDLES: usize = 64;

/// C's handles for an array of Fortran's.
pub struct Handles<T> {
    few: [MaybeUninit<T>; INLINE_HANDLES],
    many: Vec<T>,
    count: usize,
}

impl<T: Handle> Handles<T> {
    /// The handles of the program's array. A negative count is none: C's function says what is wrong with it.
    ///
    /// # Safety
    /// The array has so many.
    #[inline]
    pub unsafe fn take(array: *const c_int, count: i64) -> Handles<T> {
        let count = count.max(0) as usize;
        let mut taken = Handles {
            few: [MaybeUninit::uninit(); INLINE_HANDLES],
            many: Vec::new(),
            count,
        };
        // SAFETY: the caller's array.
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

    /// Where they are, for C.
    pub fn place(&mut self) -> *mut T {
        match self.count > INLINE_HANDLES {
            true => self.many.as_mut_ptr(),
            false => self.few.as_mut_ptr().cast(),
        }
    }

    /// Gives the program what C has made of them.
    ///
    /// # Safety
    /// The array has as many as were taken.
    #[inline]
    pub unsafe fn give(&mut self, array: *mut c_int) {
        let first = self.place();
        for index in 0..self.count {
            // SAFETY: as many were taken; the caller's array.
            unsafe { *array.add(index) = (*first.add(index)).to_int() };
        }
    }
}
