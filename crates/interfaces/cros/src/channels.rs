//! `cread`, `cwrite`, `cshift` and their vector forms: messages over channels.
//!
//! With an empty mask nothing is read or written. A write does not wait for the read, as CrOS' channels are buffered.

use std::ffi::{c_int, c_void};

use regatta_nodes::fault::Fault;
use regatta_nodes::items::Items;
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::cube;
use crate::life::{GROUP, HOST_CHANNEL, all_channels, call};

/// Tags of the messages that programs send, and of those in a broadcast.
const MESSAGE: c_int = 0;
pub const BROADCAST: c_int = 1;

/// Checks a program's mask of channels.
pub fn mask(channels: c_int) -> Result<u32, Fault> {
    match channels & !(all_channels() | HOST_CHANNEL) {
        0 => Ok(channels as u32),
        unknown => Err(Fault::says(format!(
            "there are no channels with the mask {unknown:#x}"
        ))),
    }
}

/// Returns the task at the other end of a channel.
pub fn task_at(channel: u32) -> Result<c_int, Fault> {
    let place = place();
    if 1 << channel != HOST_CHANNEL {
        return Ok(place.first + (place.node ^ 1 << channel));
    }
    match place.host {
        rg::NONE => Err(Fault::says("this program has no host program")),
        host => Ok(host),
    }
}

/// # Safety
/// The items are readable.
unsafe fn write(items: Items, channels: c_int) -> Result<c_int, Fault> {
    for channel in cube::channels(reachable(channels)?) {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { items.send(task_at(channel)?, MESSAGE, GROUP)? };
    }
    Ok(items.bytes() as c_int)
}

/// Checks a program's mask of channels, and that every channel has a task at its end, before anything is sent.
fn reachable(channels: c_int) -> Result<u32, Fault> {
    let mask = mask(channels)?;
    cube::channels(mask).try_for_each(|channel| task_at(channel).map(drop))?;
    Ok(mask)
}

/// Reads from one channel, and writes what was read to others. If it is too long, its front is forwarded anyway,
/// because other nodes wait for it.
///
/// # Safety
/// There is room for the items.
unsafe fn read(items: Items, channel: c_int, forward: c_int) -> Result<c_int, Fault> {
    let (from, forward) = (mask(channel)?, reachable(forward)?);
    let Some(channel) = cube::channels(from).next() else {
        return Ok(0);
    };
    if from.count_ones() > 1 {
        return Err(Fault::says(format!(
            "the mask {from:#x} selects several channels; a read needs exactly one"
        )));
    }
    // SAFETY: the caller guarantees that the memory is valid.
    let (message, end) = unsafe { items.receive(task_at(channel)?, MESSAGE, GROUP) };
    let Some(status) = message else {
        return end.map(|()| 0);
    };
    if forward != 0 {
        let kept = items.front(status.length);
        let kept = kept.ok_or(Fault::says(
            "the received data does not end with a whole item",
        ))?;
        for channel in cube::channels(forward) {
            // SAFETY: the caller guarantees that the items are valid, and this many bytes have been received.
            unsafe { kept.send(task_at(channel)?, MESSAGE, GROUP)? };
        }
    }
    end.map(|()| status.length as c_int)
}

/// Writes a message to channels. Returns its length, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn cwrite(buf: *const c_void, channels: c_int, len: c_int) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("cwrite", || unsafe {
        write(Items::block(buf.cast_mut(), len)?, channels)
    })
}

/// Reads a message from a channel, and writes it to others. Returns its length, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn cread(buf: *mut c_void, channel: c_int, forward: c_int, len: c_int) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("cread", || unsafe {
        read(Items::block(buf, len)?, channel, forward)
    })
}

/// Writes a message to channels, then reads one. Returns the length of what was read, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn cshift(
    ibuf: *mut c_void,
    ichannel: c_int,
    ilen: c_int,
    obuf: *const c_void,
    ochannels: c_int,
    olen: c_int,
) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("cshift", || unsafe {
        let to = Items::block(ibuf, ilen)?;
        write(Items::block(obuf.cast_mut(), olen)?, ochannels)?;
        read(to, ichannel, 0)
    })
}

/// Writes scattered items. Returns their total size in bytes, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn vwrite(
    buf: *const c_void,
    channels: c_int,
    size: c_int,
    offset: c_int,
    items: c_int,
) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("vwrite", || unsafe {
        write(Items::new(buf.cast_mut(), size, offset, items)?, channels)
    })
}

/// Reads scattered items, and writes them to other channels. Returns the size of the message in bytes, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn vread(
    buf: *mut c_void,
    channel: c_int,
    forward: c_int,
    size: c_int,
    offset: c_int,
    items: c_int,
) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("vread", || unsafe {
        read(Items::new(buf, size, offset, items)?, channel, forward)
    })
}

/// Writes scattered items, then reads some. Returns the size of what was read in bytes, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn vshift(
    ibuf: *mut c_void,
    ichannel: c_int,
    isize: c_int,
    ioffset: c_int,
    iitems: c_int,
    obuf: *const c_void,
    ochannels: c_int,
    osize: c_int,
    ooffset: c_int,
    oitems: c_int,
) -> c_int {
    // SAFETY: by the C contract the arguments are valid.
    call("vshift", || unsafe {
        let to = Items::new(ibuf, isize, ioffset, iitems)?;
        let from = Items::new(obuf.cast_mut(), osize, ooffset, oitems)?;
        write(from, ochannels)?;
        read(to, ichannel, 0)
    })
}
