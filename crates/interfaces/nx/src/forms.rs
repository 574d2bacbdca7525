//! The four forms of most calls: C's and Fortran's, each once by its plain name and once with an underscore before it.
//!
//! C's integers are `long`, Fortran's INTEGER has 32 bits and comes by reference. The work of a call is written once, as a function
//! that returns an [`Answer`](crate::error::Answer).

use std::ffi::{c_int, c_long, c_void};

use crate::handlers::{ExtendedFortranHandler, FortranHandler};

/// A type of argument, as Fortran passes it.
pub trait Argument: Sized {
    /// The argument of a Fortran program.
    type Fortran;

    /// # Safety
    /// It is what a Fortran program passes: a reference for a number.
    unsafe fn take(from: Self::Fortran) -> Self;
}

impl Argument for c_long {
    type Fortran = *const i32;

    #[inline(always)]
    unsafe fn take(from: *const i32) -> c_long {
        // SAFETY: the caller's.
        c_long::from(unsafe { from.read_unaligned() })
    }
}

/// Memory, which is passed alike in both languages.
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

/// A value that a call returns, as Fortran gets it: what does not fit is cut, as a 32-bit machine would.
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
                // SAFETY: the C contract: memory is as long as its argument says.
                let answer = $crate::handlers::around(|| unsafe { $body($($name),*) });
                $crate::error::value_or_exit(stringify!($plain), answer)
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $underscored($($name: $type),*) -> std::ffi::c_long {
                // SAFETY: as above.
                let answer = $crate::handlers::around(|| unsafe { $body($($name),*) });
                $crate::error::value_or_errno(answer)
            }
        )*
    };
}

/// Defines the Fortran forms of calls. The arguments are those of the function; INTEGERs come by reference.
macro_rules! fortran_forms {
    ($($plain:ident, $underscored:ident: ($($name:ident: $type:ty),*) = $body:path;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $plain(
                $($name: <$type as $crate::forms::Argument>::Fortran),*
            ) -> std::ffi::c_int {
                // SAFETY: Fortran's contract: as C's, with numbers by reference.
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
                // SAFETY: as above.
                let answer = $crate::handlers::around(|| unsafe {
                    $body($(<$type as $crate::forms::Argument>::take($name)),*)
                });
                $crate::forms::to_fortran($crate::error::value_or_errno(answer))
            }
        )*
    };
}

/// Defines the two Fortran names of a call whose arguments are taken as they come: texts, whose lengths stand behind all other
/// arguments, and places for results.
macro_rules! fortran_raw_forms {
    ($($plain:ident, $underscored:ident: ($($name:ident: $type:ty),*) = $body:path;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $plain($($name: $type),*) -> std::ffi::c_int {
                // SAFETY: Fortran's contract: texts as long as is said, numbers and places by reference.
                let answer = $crate::handlers::around(|| unsafe { $body($($name),*) });
                let name = stringify!($plain).trim_end_matches('_');
                $crate::forms::to_fortran($crate::error::value_or_exit(name, answer))
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $underscored($($name: $type),*) -> std::ffi::c_int {
                // SAFETY: as above.
                let answer = $crate::handlers::around(|| unsafe { $body($($name),*) });
                $crate::forms::to_fortran($crate::error::value_or_errno(answer))
            }
        )*
    };
}

/// Defines calls that have one form, C's or Fortran's: they return -1 and set `errno` when they fail. Their arguments are taken as they come. The
/// type of what they return comes first, with the function that converts the answer to it.
macro_rules! value_forms {
    ($result:ty, $made:path; $($name:ident: ($($argument:ident: $type:ty),*) = $body:path;)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: the program's contract: texts and lists are as long as is said.
                let answer = $crate::handlers::around(|| unsafe { $body($($argument),*) });
                $made($crate::error::value_or_errno(answer))
            }
        )*
    };
}

pub(crate) use {c_forms, fortran_forms, fortran_raw_forms, value_forms};
