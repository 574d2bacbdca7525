//! The three forms of a call of collectives.

/// Makes the three forms of each call: the one that waits, the one that begins it for a request, and the one whose request
/// begins it at each start. They have the same parameters, and the latter two a request, and so the same description. The one that waits may
/// first try a quick way, which has nothing to do with a description and gives the engine's code if it was one.
///
/// Their names, separated by commas, stand on one line with `pub unsafe fn`: so the table finds them.
macro_rules! forms {
    ($(
        pub unsafe fn $waits:ident, $begins:ident, $keeps:ident($($name:ident: $kind:ty),* $(,)?)
            = $description:expr $(, first $quick:expr)?;
    )*) => {
        $(
            pub unsafe fn $waits($($name: $kind),*) -> $crate::error::Result {
                // SAFETY: the caller keeps MPI's rules.
                unsafe { $crate::collective::forms!(@wait $description $(, first $quick)?) }
            }

            pub unsafe fn $begins(
                $($name: $kind,)*
                request: *mut $crate::abi::Request,
            ) -> $crate::error::Result {
                // SAFETY: the caller keeps MPI's rules.
                unsafe { $crate::collective::begin($description?, request) }
            }

            pub unsafe fn $keeps(
                $($name: $kind,)*
                _info: $crate::abi::Info,
                request: *mut $crate::abi::Request,
            ) -> $crate::error::Result {
                // SAFETY: the caller keeps MPI's rules.
                unsafe { $crate::collective::keep($description?, request) }
            }
        )*
    };
    (@wait $description:expr) => {
        $crate::collective::run($description?)
    };
    (@wait $description:expr, first $quick:expr) => {
        match $quick {
            Some(code) => $crate::error::checked(code),
            None => $crate::collective::slowly(|| $description),
        }
    };
}

pub(crate) use forms;
