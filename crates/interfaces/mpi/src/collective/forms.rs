//! The three forms of a collective call.

/// Makes the three forms of each call: blocking, non-blocking and persistent. All three take the same parameters (the
/// latter two also a request), so one description serves for all. The blocking form may first try a fast path that
/// needs no description: a function of the same arguments that returns `Some(code)`, with the engine's code, if it
/// applied.
///
/// Keep the three names on the line of `pub unsafe fn`, separated by commas: the build script finds them by that line.
macro_rules! forms {
    ($(
        pub unsafe fn $waits:ident, $begins:ident, $keeps:ident($($name:ident: $kind:ty),* $(,)?)
            = $($describe:ident)::+($($argument:expr),* $(,)?) $(, first $quick:ident)?;
    )*) => {
        $(
            pub unsafe fn $waits($($name: $kind),*) -> $crate::error::Result {
                // SAFETY: the caller keeps MPI's rules.
                unsafe { $crate::collective::forms!(@wait ($($describe)::+) ($($argument),*) $(, first $quick)?) }
            }

            pub unsafe fn $begins(
                $($name: $kind,)*
                request: *mut $crate::abi::Request,
            ) -> $crate::error::Result {
                // SAFETY: the caller keeps MPI's rules.
                unsafe { $crate::collective::begin($($describe)::+($($argument),*)?, request) }
            }

            pub unsafe fn $keeps(
                $($name: $kind,)*
                _info: $crate::abi::Info,
                request: *mut $crate::abi::Request,
            ) -> $crate::error::Result {
                // SAFETY: the caller keeps MPI's rules.
                unsafe { $crate::collective::keep($($describe)::+($($argument),*)?, request) }
            }
        )*
    };
    (@wait ($($describe:ident)::+) $arguments:tt) => {
        $crate::collective::run($($describe)::+ $arguments?)
    };
    (@wait ($($describe:ident)::+) $arguments:tt, first $quick:ident) => {
        match $quick $arguments {
            Some(code) => $crate::error::checked(code),
            None => $crate::collective::slowly(|| $($describe)::+ $arguments),
        }
    };
}

pub(crate) use forms;
