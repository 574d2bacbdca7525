//! The four forms of most calls: for C and Fortran, each with the plain and with the underscored name.
//!
//! C's integers are `long`; a Fortran INTEGER has 32 bits and is passed by reference. Each call is implemented once, as
//! a function that returns an [`Answer`](crate::error::Answer).

use std::ffi::{c_int, c_long, c_void};

use crate::handlers::{ExtendedFortranHandler, FortranHandler};

/// A type of argument, and how Fortran passes it.
pub trait Argument: Sized {
    /// The argument of a Fortran program.
    type Fortran;

    /// # Safety
    /// `from` is an argument of a Fortran program: a valid reference, if it is a number.
    unsafe fn take(from: Self::Fortran) -> Self;
}

impl Argument for c_long {
    type Fortran = *const i32;

    #[inline(always)]
    unsafe fn take(from: *const i32) -> c_long {
        // SAFETY: the caller guarantees that the memory is valid.
        c_long::from(unsafe { from.read_unaligned() })
    }
}

/// Implements [`Argument`] for memory, which both languages pass in the same way.
macro_rules! memory {
    ($($memory:ty,)*) => {
        $(impl Argument for $memory {
            type Fortran = $memory;

            #[inline(always)]
            unsafe fn take(from: $memory) -> $memory {
                from
            }
        })*
    };
}

memory! {
    *const c_void,
    *mut c_void,
    *const c_int,
    *mut c_int,
    Option<FortranHandler>,
    Option<ExtendedFortranHandler>,
}

/// Converts a result for Fortran. It is truncated to 32 bits, as on a 32-bit machine.
#[inline(always)]
pub fn to_fortran(value: c_long) -> c_int {
    value as c_int
}

/// Defines the C forms of calls: `plain, underscored: (arguments) = function;`.
macro_rules! c_forms {
    ($($plain:ident, $underscored:ident: ($($name:ident: $type:ty),*) = $body:path;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $plain($($name: $type),*) -> std::ffi::c_long {
                // SAFETY: by the C contract memory has the length that its argument says.
                let answer = $crate::handlers::around(|| unsafe { $body($($name),*) });
                $crate::error::value_or_exit(stringify!($plain), answer)
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $underscored($($name: $type),*) -> std::ffi::c_long {
                // SAFETY: by the C contract memory has the length that its argument says.
                let answer = $crate::handlers::around(|| unsafe { $body($($name),*) });
                $crate::error::value_or_errno(answer)
            }
        )*
    };
}

/// Defines the Fortran forms of calls. The arguments are those of the function; INTEGERs are passed by reference.
macro_rules! fortran_forms {
    ($($plain:ident, $underscored:ident: ($($name:ident: $type:ty),*) = $body:path;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $plain(
                $($name: <$type as $crate::forms::Argument>::Fortran),*
            ) -> std::ffi::c_int {
                // SAFETY: by the Fortran contract numbers are valid references, and memory has the length that its
                // argument says.
                let answer = $crate::handlers::around(|| unsafe {
                    $body($(<$type as $crate::forms::Argument>::take($name)),*)
                });
                let name = stringify!($plain).trim_end_matches('_');
                $crate::forms::to_fortran($crate::error::value_or_exit(name, answer))
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $underscored(
                $($name: <$type as $crate::forms::Argument>::Fortran),*
            ) -> std::ffi::c_int {
                // SAFETY: by the Fortran contract numbers are valid references, and memory has the length that its
                let answer = $crate::handlers::around(|| unsafe {
                    $body($(<$type as $crate::forms::Argument>::take($name)),*)
                });
                $crate::forms::to_fortran($crate::error::value_or_errno(answer))
            }
        )*
    };
}

/// Defines the two Fortran names of a call whose arguments are passed to the function unchanged: strings, whose lengths
/// come after all other arguments, and references to results.
macro_rules! fortran_raw_forms {
    ($($plain:ident, $underscored:ident: ($($name:ident: $type:ty),*) = $body:path;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $plain($($name: $type),*) -> std::ffi::c_int {
                // SAFETY: by the Fortran contract strings have the lengths that are passed, and references are valid.
                let answer = $crate::handlers::around(|| unsafe { $body($($name),*) });
                let name = stringify!($plain).trim_end_matches('_');
                $crate::forms::to_fortran($crate::error::value_or_exit(name, answer))
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $underscored($($name: $type),*) -> std::ffi::c_int {
                // SAFETY: by the Fortran contract strings have the lengths that are passed, and references are valid.
                let answer = $crate::handlers::around(|| unsafe { $body($($name),*) });
                $crate::forms::to_fortran($crate::error::value_or_errno(answer))
            }
        )*
    };
}

/// Defines calls that have one form, C's or Fortran's, and return -1 and set `errno` if they fail. Their arguments are
/// passed to the function unchanged. First come the type of the result and the function that converts the answer to it.
macro_rules! value_forms {
    ($result:ty, $made:path; $($name:ident: ($($argument:ident: $type:ty),*) = $body:path;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: by the program's contract strings and lists have the lengths that are passed.
                let answer = $crate::handlers::around(|| unsafe { $body($($argument),*) });
                $made($crate::error::value_or_errno(answer))
            }
        )*
    };
}

pub(crate) use {c_forms, fortran_forms, fortran_raw_forms, value_forms};
