//! Probing for messages without receiving them, and discarding messages.

use std::ffi::{c_int, c_long};

use crate::error::{Answer, EQMSGLONG, EQTIME, Fault};
use crate::forms::{c_forms, fortran_forms};
use crate::inbox;
use crate::info::{self, InfoArray};
use crate::left;
use crate::life::enrolled;
use crate::receive::{Buffer, receive_within, tag_and_channel};
use crate::rg;
use crate::state::library;
use crate::types::{self, TypeSelect};

/// Waits for a message that could be received.
fn await_one(select: TypeSelect, source: c_int) -> Result<rg::Status, Fault> {
    if library().inbox.concerns(select) {
        return inbox::await_one(select, source);
    }
    let (tag, channel) = tag_and_channel(select);
    left::await_one(tag, channel, source)
}

/// Returns the description of a message that could be received now, if there is one.
fn look(select: TypeSelect, source: c_int) -> Result<Option<rg::Status>, Fault> {
    if library().inbox.concerns(select) {
        return inbox::look(select, source);
    }
    let (tag, channel) = tag_and_channel(select);
    left::look(tag, channel, source)
}

/// Converts a program's selectors.
fn selection(
    selector: c_long,
    nodesel: c_long,
    ptypesel: c_long,
) -> Result<(TypeSelect, c_int), Fault> {
    let library = enrolled()?;
    Ok((types::select(selector)?, library.source(nodesel, ptypesel)?))
}

fn probe_selected(selector: c_long, nodesel: c_long, ptypesel: c_long, place: InfoArray) -> Answer {
    let (select, source) = selection(selector, nodesel, ptypesel)?;
    let status = await_one(select, source)?;
    info::tell(library(), place, &status);
    Ok(0)
}

/// Returns 1 and sets the description if there is a message, else 0.
fn look_selected(selector: c_long, nodesel: c_long, ptypesel: c_long, place: InfoArray) -> Answer {
    let (select, source) = selection(selector, nodesel, ptypesel)?;
    let found = look(select, source)?;
    if let Some(status) = &found {
        info::tell(library(), place, status);
    }
    Ok(c_long::from(found.is_some()))
}

unsafe fn probe(selector: c_long) -> Answer {
    probe_selected(selector, -1, -1, InfoArray::Global)
}

unsafe fn probe_x(
    selector: c_long,
    nodesel: c_long,
    ptypesel: c_long,
    array: *mut c_long,
) -> Answer {
    probe_selected(selector, nodesel, ptypesel, InfoArray::C(array))
}

unsafe fn probe_x_of_fortran(
    selector: c_long,
    nodesel: c_long,
    ptypesel: c_long,
    array: *mut c_int,
) -> Answer {
    probe_selected(selector, nodesel, ptypesel, InfoArray::Fortran(array))
}

unsafe fn probe_now(selector: c_long) -> Answer {
    look_selected(selector, -1, -1, InfoArray::Global)
}

unsafe fn probe_now_x(
    selector: c_long,
    nodesel: c_long,
    ptypesel: c_long,
    array: *mut c_long,
) -> Answer {
    look_selected(selector, nodesel, ptypesel, InfoArray::C(array))
}

unsafe fn probe_now_x_of_fortran(
    selector: c_long,
    nodesel: c_long,
    ptypesel: c_long,
    array: *mut c_int,
) -> Answer {
    look_selected(selector, nodesel, ptypesel, InfoArray::Fortran(array))
}

/// Discards the selected messages that have arrived.
unsafe fn flush(selector: c_long, nodesel: c_long, ptypesel: c_long) -> Answer {
    let (select, source) = selection(selector, nodesel, ptypesel)?;
    if !matches!(select, TypeSelect::Force(_)) {
        inbox::flush(select, source)?;
        return Ok(0);
    }
    let (tag, channel) = tag_and_channel(select);
    while let Some(status) = look(select, source)? {
        let mut room = inbox::room(status.length)?;
        let buffer = Buffer {
            memory: room.as_mut_ptr().cast(),
            capacity: room.len(),
        };
        // A handler may have received the message meanwhile.
        match receive_within(tag, channel, status.source, buffer, 0.0) {
            Err(why) if matches!(why.code, EQTIME | EQMSGLONG) => {}
            received => drop(received?),
        }
    }
    Ok(0)
}

c_forms! {
    cprobe, _cprobe: (selector: c_long) = probe;
    iprobe, _iprobe: (selector: c_long) = probe_now;
    cprobex, _cprobex: (selector: c_long, nodesel: c_long, ptypesel: c_long, array: *mut c_long) = probe_x;
    iprobex, _iprobex: (selector: c_long, nodesel: c_long, ptypesel: c_long, array: *mut c_long) = probe_now_x;
    flushmsg, _flushmsg: (selector: c_long, nodesel: c_long, ptypesel: c_long) = flush;
}

fortran_forms! {
    cprobe_, _cprobe_: (selector: c_long) = probe;
    iprobe_, _iprobe_: (selector: c_long) = probe_now;
    cprobex_, _cprobex_: (selector: c_long, nodesel: c_long, ptypesel: c_long, array: *mut c_int) = probe_x_of_fortran;
    iprobex_, _iprobex_: (selector: c_long, nodesel: c_long, ptypesel: c_long, array: *mut c_int) = probe_now_x_of_fortran;
    flushmsg_, _flushmsg_: (selector: c_long, nodesel: c_long, ptypesel: c_long) = flush;
}
