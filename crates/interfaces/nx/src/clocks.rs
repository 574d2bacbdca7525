//! Clocks, giving up the processor, and the light of a node.

use std::ffi::{c_double, c_int, c_long};

use crate::error::{Answer, EQPARAM, Fault, check};
use crate::extended::Extended;
use crate::forms::{c_forms, fortran_forms};
use crate::life::enrolled;
use crate::rg;
use crate::state::library;

/// Ticks of the hardware clock in a second: `HWHZ` of `nx.h`.
const TICKS: f64 = 1e7;

/// Seconds since some moment in the past.
fn now() -> f64 {
    // SAFETY: a plain question.
    unsafe { rg::rg_time() }
}

/// Milliseconds since the first call of this clock, as a number of 31 bits.
unsafe fn milliseconds() -> Answer {
    let library = library();
    if library.began == 0.0 {
        library.began = now();
    }
    let passed = (now() - library.began) * 1e3;
    Ok(passed as c_long & 0x7fff_ffff)
}

#[unsafe(no_mangle)]
extern "C" fn dclock() -> c_double {
    now()
}

#[unsafe(no_mangle)]
extern "C" fn _dclock() -> c_double {
    now()
}

#[unsafe(no_mangle)]
extern "C" fn dclock_() -> c_double {
    now()
}

#[unsafe(no_mangle)]
extern "C" fn _dclock_() -> c_double {
    now()
}

fn ticks() -> u64 {
    (now() * TICKS) as u64
}

unsafe fn hardware(place: *mut Extended) -> Answer {
    if place.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    // SAFETY: the C contract: a place for a number.
    unsafe { place.write_unaligned(Extended::new(ticks() as i64)) };
    Ok(0)
}

/// # Safety
/// Fortran's array of two INTEGERs, or NULL.
unsafe fn hardware_of_fortran(place: *mut c_int) -> Answer {
    if place.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    let ticks = ticks();
    // SAFETY: the caller's.
    unsafe {
        place
            .cast::<[c_int; 2]>()
            .write_unaligned([ticks as c_int, (ticks >> 32) as c_int])
    };
    Ok(0)
}

/// Lets another process have the processor, and what can advance advance.
unsafe fn give_way() -> Answer {
    enrolled()?;
    // SAFETY: plain calls.
    unsafe {
        check(rg::rg_progress())?;
        libc::sched_yield();
    }
    Ok(0)
}

/// There is no light.
unsafe fn light(_: c_long) -> Answer {
    Ok(0)
}

c_forms! {
    mclock, _mclock: () = milliseconds;
    hwclock, _hwclock: (place: *mut Extended) = hardware;
    flick, _flick: () = give_way;
    led, _led: (on: c_long) = light;
}

fortran_forms! {
    mclock_, _mclock_: () = milliseconds;
    hwclock_, _hwclock_: (place: *mut c_int) = hardware_of_fortran;
    flick_, _flick_: () = give_way;
    led_, _led_: (on: c_long) = light;
}
