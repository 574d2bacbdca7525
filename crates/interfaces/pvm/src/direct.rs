//! `pvm_fsend` and `pvm_frecv`: typed data, contiguous or strided, from memory to memory.
//!
//! These are the enhanced calls of White, Ålund and Sunderam's study of the NAS benchmarks on PVM (1994): one call
//! each, without buffer and packing. PVM 3.4 does not have them; its `pvm_psend` developed from them. Here they can be
//! combined with all other calls: a message of `pvm_fsend` is a raw message.

use std::ffi::{c_int, c_void};

use crate::arrival::{Select, failure, info, strange};
use crate::head::Head;
use crate::life::enrol;
use crate::message::{self, HEAD, codes, error};
use crate::receive::{Wait, Want, receive, receive_carefully};
use crate::send::{destination, outcome};
use crate::state::library;
use crate::{handlers, rg};

/// Maximum number of bytes that are copied behind their header, which is cheaper than views up to this size.
const MAX_GATHERED_BYTES: usize = 4096;

/// A program's memory.
#[derive(Clone, Copy)]
struct Memory(rg::View);

impl Memory {
    /// Describes `count` items, each `stride` items apart.
    fn new(data: *mut c_void, count: c_int, stride: c_int, datatype: c_int) -> Result<Memory, i32> {
        let width = message::datatype_size(datatype).ok_or(codes::BAD_PARAM)?;
        let count = usize::try_from(count).map_err(|_| codes::BAD_PARAM)?;
        if data.is_null() && count > 0 {
            return Err(codes::BAD_PARAM);
        }
        let bytes = width.checked_mul(count).ok_or(codes::BAD_PARAM)?;
        let view = match stride {
            1 => rg::View {
                base: data,
                block: bytes,
                count: 1,
                stride: 0,
            },
            stride => rg::View {
                base: data,
                block: width,
                count,
                stride: stride as isize * width as isize,
            },
        };
        Ok(Memory(view))
    }

    fn bytes(self) -> usize {
        self.0.block * self.0.count
    }

    /// Returns the addresses and sizes of the items, up to a total of `bytes`.
    fn pieces(self, bytes: usize) -> impl Iterator<Item = (*mut u8, usize)> {
        let rg::View {
            base,
            block,
            count,
            stride,
        } = self.0;
        let mut left = bytes.min(self.bytes());
        (0..count).map_while(move |index| {
            let part = left.min(block);
            left -= part;
            let place = base
                .cast::<u8>()
                .wrapping_offset(stride.wrapping_mul(index as isize));
            (part > 0).then_some((place, part))
        })
    }

    /// # Safety
    /// The items can be read, and `to` has room for this many bytes.
    unsafe fn gather(self, bytes: usize, to: *mut u8) {
        let mut to = to;
        for (place, part) in self.pieces(bytes) {
            // SAFETY: the caller guarantees that the items are readable and `to` has room.
            unsafe { std::ptr::copy_nonoverlapping(place, to, part) };
            to = to.wrapping_add(part);
        }
    }

    /// # Safety
    /// There is room for the items.
    unsafe fn spread(self, from: &[u8]) {
        let mut from = from;
        for (place, part) in self.pieces(from.len()) {
            // SAFETY: the caller guarantees room for the items; `part` is at most what is left in `from`.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), place, part) };
            from = &from[part..];
        }
    }
}

fn head_view(head: &mut [u8; HEAD]) -> rg::View {
    rg::View {
        base: head.as_mut_ptr().cast(),
        block: HEAD,
        count: 1,
        stride: 0,
    }
}

/// Sends typed data directly from the program's memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_fsend(
    to: c_int,
    tag: c_int,
    data: *mut c_void,
    count: c_int,
    stride: c_int,
    datatype: c_int,
) -> c_int {
    let sent = || -> Result<(), i32> {
        enrol()?;
        let memory = Memory::new(data, count, stride, datatype)?;
        handlers::run()?;
        let to = destination(to, tag, library().context)?;
        let head = Head {
            encoding: codes::RAW,
            wid: 0,
            host: library().host,
        };
        let mut head = head.bytes();
        let bytes = memory.bytes();
        if bytes <= MAX_GATHERED_BYTES {
            let mut block = [0_u8; HEAD + MAX_GATHERED_BYTES];
            block[..HEAD].copy_from_slice(&head);
            // SAFETY: by the C contract the items are readable; the block has room for them.
            return outcome(unsafe {
                memory.gather(bytes, block[HEAD..].as_mut_ptr());
                rg::rg_bsend(
                    block.as_ptr().cast(),
                    HEAD + bytes,
                    to.task,
                    to.tag,
                    to.group,
                )
            });
        }
        let views = [head_view(&mut head), memory.0];
        // SAFETY: `head` lives here, and by the C contract the data is valid until this returns.
        outcome(unsafe { rg::rg_bsendv(views.as_ptr(), 2, to.task, to.tag, to.group) })
    };
    error::result("pvm_fsend", sent().err().unwrap_or(0))
}

/// A received message: its sender, tag, and length in bytes.
type Received = (c_int, c_int, usize);

/// Receives into the program's memory without a buffer.
fn receive_directly(select: Select, memory: Memory) -> Result<Received, i32> {
    let mut head = [0_u8; HEAD];
    // Messages without a PVM header need up to a header's length more than the items: the rest goes here.
    let mut rest = [0_u8; HEAD];
    let views = [head_view(&mut head), memory.0, head_view(&mut rest)];
    let mut status = rg::Status::default();
    // SAFETY: `head` and `rest` live here, and by the C contract there is room for the items.
    let code = unsafe {
        let (from, tag, channel) = (select.from, select.tag, select.channel());
        rg::rg_recvv(views.as_ptr(), 3, from, tag, channel, &mut status)
    };
    match code {
        rg::OK | rg::ERR_TRUNCATED => {}
        code => return Err(failure(code)),
    }
    if let Some(head) = Head::read(&head[..status.length.min(HEAD)]) {
        let info = info(&status, select, head);
        return Ok((info.src, info.tag, status.length - HEAD));
    }
    // An event or a message without a PVM header: its middle part is in the program's memory. Put it together.
    let mut bytes = head.to_vec();
    bytes.resize(status.length.min(HEAD + memory.bytes()).max(HEAD), 0);
    // SAFETY: Regatta has written these bytes into the program's memory, and `bytes` has room for them.
    unsafe { memory.gather(bytes.len() - HEAD, bytes[HEAD..].as_mut_ptr()) };
    bytes.extend_from_slice(&rest);
    bytes.truncate(status.length);
    match strange(&bytes, &status, select)? {
        Some(buffer) => take_out(buffer, memory),
        None => receive_directly(select, memory),
    }
}

/// Copies a buffer's contents into the program's memory, and frees the buffer.
fn take_out(buffer: c_int, memory: Memory) -> Result<Received, i32> {
    let (Some(info), Some(body)) = (message::info(buffer), message::body(buffer)) else {
        return Err(codes::SYS_ERR);
    };
    // SAFETY: by the C contract there is room for the items.
    unsafe { memory.spread(body) };
    let told = (info.src, info.tag, body.len());
    message::free(buffer);
    Ok(told)
}

/// Receives typed data into the program's memory. Bytes that do not fit are dropped; `its_length` is the full length.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_frecv(
    from: c_int,
    tag: c_int,
    data: *mut c_void,
    count: c_int,
    stride: c_int,
    datatype: c_int,
    source: *mut c_int,
    its_tag: *mut c_int,
    its_length: *mut c_int,
) -> c_int {
    let received = || -> Result<Received, i32> {
        enrol()?;
        let memory = Memory::new(data, count, stride, datatype)?;
        let want = Want::new(from, tag);
        match want.select().filter(|_| library().inbox.is_empty()) {
            Some(select) => match receive_directly(select, memory) {
                Err(codes::NO_TASK) => take_out(receive_carefully(want, Wait::Forever)?, memory),
                other => other,
            },
            None => take_out(receive(from, tag, Wait::Forever)?, memory),
        }
    };
    let told = match received() {
        Ok(told) => told,
        Err(code) => return error::result("pvm_frecv", code),
    };
    let length = c_int::try_from(told.2).unwrap_or(c_int::MAX);
    for (place, value) in [(source, told.0), (its_tag, told.1), (its_length, length)] {
        if !place.is_null() {
            // SAFETY: by the C contract the pointers are valid or NULL.
            unsafe { place.write(value) };
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_items_are_gathered_and_spread() {
        let mut numbers = [1i32, 2, 3, 4, 5, 6];
        let memory = Memory::new(numbers.as_mut_ptr().cast(), 3, 2, codes::datatype::INT).unwrap();
        let mut bytes = [0u8; 12];
        // SAFETY: the array contains three items, two apart.
        unsafe { memory.gather(12, bytes.as_mut_ptr()) };
        assert_eq!(bytes, [1, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0]);
        // SAFETY: the array has room for the items.
        unsafe { memory.spread(&[9, 0, 0, 0, 8, 0]) };
        assert_eq!(numbers, [9, 2, 8, 4, 5, 6]);
    }

    #[test]
    fn nonsense_is_refused() {
        let mut number = 0i32;
        let at = (&raw mut number).cast();
        let (int, none) = (codes::datatype::INT, std::ptr::null_mut());
        for (data, count, datatype) in [(at, -1, int), (none, 1, int), (at, 1, 99), (at, 1, 0)] {
            let refused = Memory::new(data, count, 1, datatype);
            assert_eq!(refused.err(), Some(codes::BAD_PARAM));
        }
        assert!(Memory::new(none, 0, 1, int).is_ok());
    }
}
