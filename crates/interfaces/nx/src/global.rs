//! Collectives whose result every node gets: the barrier and element-wise reductions of vectors.

use std::ffi::{c_double, c_int, c_long, c_void};

use crate::error::{Answer, check, value_or_errno, value_or_exit};
use crate::forms::{Argument, c_forms, fortran_forms, to_fortran};
use crate::handlers::around;
use crate::rg;
use crate::send::length;
use crate::world::global_group;

/// The element type of C's `long`.
const LONG: c_int = match size_of::<c_long>() {
    8 => rg::INT64,
    _ => rg::INT32,
};

/// Replaces the vector of every node by the result of the reduction. The program's work vector is not needed.
///
/// # Safety
/// `vector` has `count` elements of this kind.
unsafe fn reduce(vector: *mut c_void, count: c_long, kind: c_int, op: rg::Op) -> Answer {
    let group = global_group()?;
    let count = length(vector, count)?;
    let input = rg::IN_PLACE as *const c_void;
    // SAFETY: the caller guarantees that the memory is valid.
    check(unsafe { rg::rg_allreduce(input, vector, count, kind, op, group) })?;
    Ok(0)
}

/// Defines reductions: C's element type with its kind, Fortran's element type with its kind, and for each operation the
/// four names.
macro_rules! reductions {
    ($c:ty, $c_kind:expr, $fortran:ty, $fortran_kind:expr;
     $($plain:ident $underscored:ident $f_plain:ident $f_underscored:ident = $op:expr,)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $plain(vector: *mut $c, count: c_long, _: *mut $c) -> c_long {
                // SAFETY: by the C contract the vector has this many elements.
                value_or_exit(stringify!($plain), around(|| unsafe { reduce(vector.cast(), count, $c_kind, $op) }))
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $underscored(vector: *mut $c, count: c_long, _: *mut $c) -> c_long {
                // SAFETY: by the C contract the vector has this many elements.
                value_or_errno(around(|| unsafe { reduce(vector.cast(), count, $c_kind, $op) }))
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $f_plain(vector: *mut $fortran, count: *const c_int, _: *mut $fortran) -> c_int {
                // SAFETY: by the Fortran contract the vector has this many elements, and the number is a valid
                // reference.
                let answer = around(|| unsafe { reduce(vector.cast(), c_long::take(count), $fortran_kind, $op) });
                to_fortran(value_or_exit(stringify!($plain), answer))
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn $f_underscored(vector: *mut $fortran, count: *const c_int, _: *mut $fortran) -> c_int {
                // SAFETY: by the Fortran contract the vector has this many elements, and the number is a valid
                let answer = around(|| unsafe { reduce(vector.cast(), c_long::take(count), $fortran_kind, $op) });
                to_fortran(value_or_errno(answer))
            }
        )*
    };
}

reductions! {
    c_double, rg::DOUBLE, c_double, rg::DOUBLE;
    gdsum _gdsum gdsum_ _gdsum_ = rg::SUM,
    gdprod _gdprod gdprod_ _gdprod_ = rg::PRODUCT,
    gdhigh _gdhigh gdhigh_ _gdhigh_ = rg::MAX,
    gdlow _gdlow gdlow_ _gdlow_ = rg::MIN,
}

reductions! {
    f32, rg::FLOAT, f32, rg::FLOAT;
    gssum _gssum gssum_ _gssum_ = rg::SUM,
    gsprod _gsprod gsprod_ _gsprod_ = rg::PRODUCT,
    gshigh _gshigh gshigh_ _gshigh_ = rg::MAX,
    gslow _gslow gslow_ _gslow_ = rg::MIN,
}

reductions! {
    c_long, LONG, c_int, rg::INT32;
    gisum _gisum gisum_ _gisum_ = rg::SUM,
    giprod _giprod giprod_ _giprod_ = rg::PRODUCT,
    gihigh _gihigh gihigh_ _gihigh_ = rg::MAX,
    gilow _gilow gilow_ _gilow_ = rg::MIN,
    giand _giand giand_ _giand_ = rg::BAND,
    gior _gior gior_ _gior_ = rg::BOR,
    gixor _gixor gixor_ _gixor_ = rg::BXOR,
    gland _gland gland_ _gland_ = rg::AND,
    glor _glor glor_ _glor_ = rg::OR,
    glxor _glxor glxor_ _glxor_ = rg::XOR,
}

unsafe fn barrier() -> Answer {
    let group = global_group()?;
    // SAFETY: the call takes plain values only.
    check(unsafe { rg::rg_barrier(group) })?;
    Ok(0)
}

c_forms! {
    gsync, _gsync: () = barrier;
}

fortran_forms! {
    gsync_, _gsync_: () = barrier;
}
