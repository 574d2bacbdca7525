//! `crystal_router`: sends records of any length from any node to any other, in one collective call.
//!
//! The original forwards them along the dimensions of the cube; here each goes directly to its node.

use std::ffi::{c_int, c_void};

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::place::{length, place};
use regatta_nodes::rg;

use crate::life::call;
use crate::records::{records, sort};

/// Lengths of parts, their offsets, and the total length.
struct Parts {
    lengths: Vec<usize>,
    places: Vec<usize>,
    whole: usize,
}

impl Parts {
    fn new(lengths: Vec<usize>) -> Result<Parts, Fault> {
        let (mut places, mut whole) = (Vec::with_capacity(lengths.len()), 0_usize);
        for &length in &lengths {
            places.push(whole);
            whole = whole.saturating_add(length);
        }
        if whole > c_int::MAX as usize {
            return Err(Fault::says("the total length of the records is too large"));
        }
        Ok(Parts {
            lengths,
            places,
            whole,
        })
    }
}

/// Sends the records in a buffer to their nodes, and replaces them by those for this node, each with its sender. All
/// nodes call it. Returns the size of the received records in bytes, or -1; if there is too little room, the front is
/// kept.
#[unsafe(no_mangle)]
unsafe extern "C" fn crystal_router(buf: *mut c_void, len: c_int, room: c_int) -> c_int {
    call("crystal_router", || {
        let nodes = place().nodes as usize;
        let mut sorted = Vec::new();
        // A node with an invalid buffer or records sends none, but takes part, because the others wait for it.
        let mut wrong = None;
        let (len, room) = sizes(buf, len, room).unwrap_or_else(|why| {
            wrong = Some(why);
            (0, 0)
        });
        let mut lengths = vec![0; nodes];
        if len > 0 {
            // SAFETY: by the C contract `buf` has `len` bytes.
            let bytes = unsafe { std::slice::from_raw_parts(buf.cast::<u8>(), len) };
            match records(bytes, nodes) {
                Ok(found) => lengths = sort(bytes, &found, nodes, place().node, &mut sorted),
                Err(why) => wrong = Some(Fault::says(why)),
            }
        }
        let outgoing = Parts::new(lengths)?;
        let incoming = exchange_lengths(&outgoing.lengths)?;
        // SAFETY: by the C contract `buf` has `room` bytes.
        let came = unsafe { exchange(&sorted, &outgoing, &incoming, buf.cast(), room) };
        match wrong {
            Some(why) => Err(why),
            None => came,
        }
    })
}

/// Checks and returns the size of the records, and that of their buffer.
fn sizes(buf: *mut c_void, len: c_int, room: c_int) -> Result<(usize, usize), Fault> {
    let (len, room) = (length(len)?, length(room)?);
    if len > room || (buf.is_null() && room > 0) {
        return Err(Fault::says(format!(
            "{len} bytes do not fit in a buffer of {room}"
        )));
    }
    Ok((len, room))
}

fn exchange_lengths(outgoing: &[usize]) -> Result<Parts, Fault> {
    let mut incoming = vec![0_usize; outgoing.len()];
    let (from, to) = (outgoing.as_ptr().cast(), incoming.as_mut_ptr().cast());
    // SAFETY: both arrays have a number for each node.
    checked(unsafe { rg::rg_alltoall(from, size_of::<usize>(), to, rg::WORLD) })?;
    Parts::new(incoming)
}

/// # Safety
/// `to` has `room` bytes.
unsafe fn exchange(
    sorted: &[u8],
    outgoing: &Parts,
    incoming: &Parts,
    to: *mut u8,
    room: usize,
) -> Result<c_int, Fault> {
    let exchange = |to: *mut u8| {
        // SAFETY: the lengths and offsets are those of the sorted records, and the destination has room for all
        // incoming parts.
        checked(unsafe {
            rg::rg_alltoallv(
                sorted.as_ptr().cast(),
                outgoing.lengths.as_ptr(),
                outgoing.places.as_ptr(),
                to.cast(),
                incoming.lengths.as_ptr(),
                incoming.places.as_ptr(),
                rg::WORLD,
            )
        })
    };
    let whole = incoming.whole;
    if whole <= room {
        exchange(to)?;
        return Ok(whole as c_int);
    }
    let mut elsewhere = vec![0_u8; whole];
    exchange(elsewhere.as_mut_ptr())?;
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { std::ptr::copy_nonoverlapping(elsewhere.as_ptr(), to, room) };
    Err(Fault::says(format!(
        "the records are {whole} bytes long, and the buffer has {room} bytes; only the first {room} bytes were kept"
    )))
}
