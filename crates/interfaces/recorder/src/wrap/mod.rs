//! The functions of `regatta.h` that are recorded. Each calls the one of libregatta.so with the arguments as they came.

mod collective;
mod completion;
mod life;
mod loan;
mod matched;
mod message;
mod tasks;

/// Functions that are called as they came, with notes about the result where there are any.
macro_rules! wrap {
    ($(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?)
            $(about($group:ident, $rank:ident))?
            $(note |$span:ident, $result:ident| $note:block)?
    )*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
            const CALL: regatta_record::Call = regatta_record::Call::named(stringify!($name));
            #[allow(unused_mut)]
            let mut span = $crate::wrap::enter!(CALL $($group $rank)?);
            // SAFETY: the function of this name has this signature, and the arguments are as they came.
            let result = unsafe { $crate::real::real!($name($($argument: $type),*)) };
            $({
                let $span = &mut span;
                let $result = result;
                $note
            })?
            span.leave(result)
        }
    )*};
}
pub(crate) use wrap;

/// The beginning of a call, which may be about a rank of a group.
macro_rules! enter {
    ($call:ident) => {
        $crate::span::Span::enter($call)
    };
    ($call:ident $group:ident $rank:ident) => {
        $crate::span::Span::enter_about($call, $group, $rank)
    };
}
pub(crate) use enter;
