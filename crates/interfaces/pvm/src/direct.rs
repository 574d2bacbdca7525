//! `pvm_fsend` and `pvm_frecv`: typed data, contiguous or strided, from memory to memory.
//!
//! They are the enhanced calls of White, Ålund and Sunderam's study of the NAS benchmarks on PVM (1994): no buffer, no packing,
//! one call each. PVM 3.4 has them no more; `pvm_psend` is what became of them. Here they go together with all other
//! calls: a message of `pvm_fsend` is a raw one.

use std::ffi::{c_int, c_void};

use crate::arrival::{Select, failure, info, strange};
use crate::head::Head;
use crate::life::enrol;
use crate::message::{self, HEAD, codes, error};
use crate::receive::{Wait, Want, receive, receive_carefully};
use crate::send::{destination, outcome};
use crate::state::library;
use crate::{handlers, rg};

/// Maximum number of bytes that are copied behind their head, which is cheaper than views.
const MAX_GATHERED_BYTES: usize = 4096;

/// A program's memory.
#[derive(Clone, Copy)]
struct Memory(rg::View);

impl Memory {
    /// `count` items, of which each `stride`th is meant.
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

    /// The places of the items, as far as `bytes` reach, with how much of each.
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
            // SAFETY: the caller's.
            unsafe { std::ptr::copy_nonoverlapping(place, to, part) };
            to = to.wrapping_add(part);
        }
    }

    /// # Safety
    /// There is room for the items.
    unsafe fn spread(self, from: &[u8]) {
        let mut from = from;
        for (place, part) in self.pieces(from.len()) {
            // SAFETY: the caller's; a part is not more than what is left.
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

/// Send typed data as they lie in memory.
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
            // SAFETY: the C contract: the items are there; the block has room for them.
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
        // SAFETY: the head is here and the data the caller's until this returns.
        outcome(unsafe { rg::rg_bsendv(views.as_ptr(), 2, to.task, to.tag, to.group) })
    };
    error::result("pvm_fsend", sent().err().unwrap_or(0))
}

/// A received message: its sender, its tag, its length in bytes.
type Received = (c_int, c_int, usize);

/// Straight into the program's memory.
fn receive_directly(select: Select, memory: Memory) -> Result<Received, i32> {
    let mut head = [0_u8; HEAD];
    // Bytes that are more than a head are whole, though there is little room for items.
    let mut rest = [0_u8; HEAD];
    let views = [head_view(&mut head), memory.0, head_view(&mut rest)];
    let mut status = rg::Status::default();
    // SAFETY: the head is here, and the C contract: there is room for the items.
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
    // An event, or something strange, whose rest lies in the program's memory.
    let mut bytes = head.to_vec();
    bytes.resize(status.length.min(HEAD + memory.bytes()).max(HEAD), 0);
    // SAFETY: so much has been written there, and there is room for it here.
    unsafe { memory.gather(bytes.len() - HEAD, bytes[HEAD..].as_mut_ptr()) };
    bytes.extend_from_slice(&rest);
    bytes.truncate(status.length);
    match strange(&bytes, &status, select)? {
        Some(buffer) => take_out(buffer, memory),
        None => receive_directly(select, memory),
    }
}

/// Out of a buffer, which is freed.
fn take_out(buffer: c_int, memory: Memory) -> Result<Received, i32> {
    let (Some(info), Some(body)) = (message::info(buffer), message::body(buffer)) else {
        return Err(codes::SYS_ERR);
    };
    // SAFETY: the C contract: there is room for the items.
    unsafe { memory.spread(body) };
    let told = (info.src, info.tag, body.len());
    message::free(buffer);
    Ok(told)
}

/// Receive typed data to where they belong. Bytes that do not fit are lost; the length is that of all of it.
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
            // SAFETY: the C contract: places for numbers, or NULL.
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
        // SAFETY: three items, each two apart, lie in the array.
        unsafe { memory.gather(12, bytes.as_mut_ptr()) };
        assert_eq!(bytes, [1, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0]);
        // SAFETY: as above.
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
