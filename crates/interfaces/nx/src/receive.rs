//! Blocking receives.

use std::ffi::{c_int, c_long, c_void};

use crate::error::{Answer, EQMSGLONG, Fault, fault};
use crate::forms::{c_forms, fortran_forms};
use crate::inbox;
use crate::info::{self, InfoArray};
use crate::left;
use crate::life::enrolled;
use crate::rg;
use crate::send::{self, length};
use crate::started;
use crate::state::{FORCE, PLAIN, library, or_successor};
use crate::types::{self, TypeSelect};

/// No time limit.
pub const FOR_EVER: f64 = -1.0;
/// Maximum size in bytes of a message that `csendrecv` sends before it starts to receive. With longer ones two nodes
/// could block each other.
const MAX_UNCHECKED_BYTES: c_long = 8192;

pub const NO_STATUS: rg::Status = rg::Status {
    source: rg::NONE,
    tag: rg::ANY,
    length: 0,
    error: rg::OK,
    reserved: 0,
};

/// The memory for a message.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub memory: *mut c_void,
    pub capacity: usize,
}

impl Buffer {
    #[inline(always)]
    pub fn new(memory: *mut c_void, count: c_long) -> Result<Buffer, Fault> {
        let capacity = length(memory, count)?;
        Ok(Buffer { memory, capacity })
    }

    /// Returns the fault of a message of this length, which does not fit.
    pub fn too_short(self, length: usize) -> Fault {
        Fault::of(EQMSGLONG, "message of length", length as c_long)
    }
}

/// Returns the tag and the channel with which Regatta selects. A mask is not expressed by them.
#[inline(always)]
pub fn tag_and_channel(select: TypeSelect) -> (c_int, rg::Group) {
    match select {
        TypeSelect::Plain(tag) => (tag, PLAIN),
        TypeSelect::Force(tag) => (tag, FORCE),
        TypeSelect::Any | TypeSelect::Classes(_) => (rg::ANY, PLAIN),
    }
}

/// Waits for a message and receives it.
#[inline(always)]
fn await_message(
    select: TypeSelect,
    source: c_int,
    buffer: Buffer,
    status: &mut rg::Status,
) -> Result<(), Fault> {
    let (tag, channel) = tag_and_channel(select);
    if library().inbox.concerns(select) {
        *status = inbox::receive(select, source, buffer)?;
    } else if library().cube.is_some() {
        *status = left::receive(tag, channel, source, buffer)?;
    } else {
        receive_into(tag, channel, source, buffer, FOR_EVER, status)?;
    }
    Ok(())
}

/// Receives a message through Regatta. Waits at most `seconds` (negative: without a limit).
pub fn receive_within(
    tag: c_int,
    channel: rg::Group,
    source: c_int,
    buffer: Buffer,
    seconds: f64,
) -> Result<rg::Status, Fault> {
    let mut status = NO_STATUS;
    receive_into(tag, channel, source, buffer, seconds, &mut status)?;
    Ok(status)
}

/// Receives a message through Regatta. The status stays where Regatta has written it, field by field: a processor that
/// reads all of it at once, in order to move it, waits until these writes have left its store buffer (15 % of a
/// message's time).
#[inline(always)]
fn receive_into(
    tag: c_int,
    channel: rg::Group,
    source: c_int,
    buffer: Buffer,
    seconds: f64,
    status: &mut rg::Status,
) -> Result<(), Fault> {
    // SAFETY: by the C contract the memory has this length.
    let code = unsafe {
        rg::rg_recv_within(
            buffer.memory,
            buffer.capacity,
            source,
            tag,
            channel,
            seconds,
            status,
        )
    };
    match code {
        rg::OK => Ok(()),
        rg::ERR_TRUNCATED => Err(buffer.too_short(status.length)),
        code => Err(fault(code)),
    }
}

/// # Safety
/// `memory` has `count` bytes.
#[inline(always)]
unsafe fn receive(selector: c_long, memory: *mut c_void, count: c_long) -> Answer {
    enrolled()?;
    let (select, buffer) = (types::select(selector)?, Buffer::new(memory, count)?);
    let mut status = NO_STATUS;
    await_message(select, rg::ANY, buffer, &mut status)?;
    info::tell(library(), InfoArray::Global, &status);
    Ok(0)
}

/// # Safety
/// `memory` has `count` bytes, and `place` is an information array.
unsafe fn receive_selected(
    (selector, nodesel, ptypesel): (c_long, c_long, c_long),
    memory: *mut c_void,
    count: c_long,
    place: InfoArray,
) -> Answer {
    let source = enrolled()?.source(nodesel, ptypesel)?;
    let (select, buffer) = (types::select(selector)?, Buffer::new(memory, count)?);
    let mut status = NO_STATUS;
    if let Err(why) = await_message(select, source, buffer, &mut status) {
        or_successor(source, why, |next| {
            await_message(select, next, buffer, &mut status)
        })?;
    }
    info::tell(library(), place, &status);
    Ok(0)
}

unsafe fn receive_x(
    selector: c_long,
    memory: *mut c_void,
    count: c_long,
    nodesel: c_long,
    ptypesel: c_long,
    array: *mut c_long,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe {
        receive_selected(
            (selector, nodesel, ptypesel),
            memory,
            count,
            InfoArray::C(array),
        )
    }
}

/// # Safety
/// The same as for `receive_x`, with a Fortran array.
unsafe fn receive_x_of_fortran(
    selector: c_long,
    memory: *mut c_void,
    count: c_long,
    nodesel: c_long,
    ptypesel: c_long,
    array: *mut c_int,
) -> Answer {
    let place = InfoArray::Fortran(array);
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { receive_selected((selector, nodesel, ptypesel), memory, count, place) }
}

/// Sends and receives. The send of a long message is started first and completed afterwards, so that two nodes that do
/// this with each other need no buffers.
///
/// # Safety
/// The memories have the given lengths.
#[allow(clippy::too_many_arguments)]
unsafe fn send_and_receive(
    kind: c_long,
    from: *const c_void,
    length: c_long,
    node: c_long,
    ptype: c_long,
    selector: c_long,
    memory: *mut c_void,
    count: c_long,
) -> Answer {
    // Check the receive's arguments before anything is sent.
    let (select, buffer) = (types::select(selector)?, Buffer::new(memory, count)?);
    enrolled()?;
    if length > MAX_UNCHECKED_BYTES {
        // SAFETY: the caller guarantees the memory, and both operations are complete when `wait` returns.
        let mid =
            unsafe { started::exchange(kind, from, length, node, ptype, selector, memory, count) }?;
        started::wait(mid)?;
        // SAFETY: `count` only reads `msginfo`.
        return unsafe { info::count() };
    }
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { send::send(kind, from, length, node, ptype) }?;
    let mut status = NO_STATUS;
    await_message(select, rg::ANY, buffer, &mut status)?;
    info::tell(library(), InfoArray::Global, &status);
    Ok(status.length as c_long)
}

c_forms! {
    crecv, _crecv: (selector: c_long, memory: *mut c_void, count: c_long) = receive;
    crecvx, _crecvx: (selector: c_long, memory: *mut c_void, count: c_long, nodesel: c_long, ptypesel: c_long, array: *mut c_long) = receive_x;
    csendrecv, _csendrecv: (kind: c_long, from: *const c_void, length: c_long, node: c_long, ptype: c_long, selector: c_long, memory: *mut c_void, count: c_long) = send_and_receive;
}

fortran_forms! {
    crecv_, _crecv_: (selector: c_long, memory: *mut c_void, count: c_long) = receive;
    crecvx_, _crecvx_: (selector: c_long, memory: *mut c_void, count: c_long, nodesel: c_long, ptypesel: c_long, array: *mut c_int) = receive_x_of_fortran;
    csendrecv_, _csendrecv_: (kind: c_long, from: *const c_void, length: c_long, node: c_long, ptype: c_long, selector: c_long, memory: *mut c_void, count: c_long) = send_and_receive;
}
