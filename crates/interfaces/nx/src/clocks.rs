//! Clocks, yielding the processor, and a node's light.

use std::ffi::{c_double, c_int, c_long};

use crate::error::{Answer, EQPARAM, Fault, check};
use crate::extended::Extended;
use crate::forms::{c_forms, fortran_forms};
use crate::life::enrolled;
use crate::rg;
use crate::state::library;

/// Ticks per second of the hardware clock: `HWHZ` of `nx.h`.
const TICKS: f64 = 1e7;

/// Returns seconds since some moment in the past.
fn now() -> f64 {
    // SAFETY: the call takes plain values only.
    unsafe { rg::rg_time() }
}

/// Returns milliseconds since the first call, modulo 2^31.
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
    // SAFETY: by the C contract the result is writable.
    unsafe { place.write_unaligned(Extended::new(ticks() as i64)) };
    Ok(0)
}

/// # Safety
/// `place` points to two INTEGERs or is NULL.
unsafe fn hardware_of_fortran(place: *mut c_int) -> Answer {
    if place.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    let ticks = ticks();
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe {
        place
            .cast::<[c_int; 2]>()
            .write_unaligned([ticks as c_int, (ticks >> 32) as c_int])
    };
    Ok(0)
}

/// Makes progress, and yields the processor to another process.
unsafe fn give_way() -> Answer {
    enrolled()?;
    // SAFETY: the calls take plain values only.
    unsafe {
        check(rg::rg_progress())?;
        libc::sched_yield();
    }
    Ok(0)
}

/// Does nothing: there is no light.
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
