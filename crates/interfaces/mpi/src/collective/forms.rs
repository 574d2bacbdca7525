//! The three forms of a call of collectives.

/// Makes the three forms of each call: the one that waits, the one that begins it for a request, and the one whose request
/// begins it at each start. They have the same parameters, and the latter two a request, and so the same description. The one that waits may
/// first try a quick way, a function of the same arguments, which gives the engine's code if it was one.
///
/// Their names, separated by commas, stand on one line with `pub unsafe fn`: so the table finds them.
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
