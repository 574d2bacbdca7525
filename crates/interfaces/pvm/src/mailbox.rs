//! Mailboxes: messages under names (`pvm_putinfo` and related calls), stored as names of Regatta.
//!
//! The value of an entry is a message: its information, then its bytes. The flags equal Regatta's, bit for bit.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::last_results::Kept;
use crate::life::enrol;
use crate::listing::{Class, class};
use crate::message::{self, Body, HEAD, Info, Outgoing, codes, error};
use crate::rg;
use crate::state::library;
use crate::trace::{self, Value, calls, traced};

/// The flags that Regatta knows.
const FLAGS: c_int = 63;
const INDEX_SHIFT: u32 = 10;
/// The bits of a program's flags below its direct index.
const FLAG_BITS: c_int = (1 << INDEX_SHIFT) - 1;
/// Size of the information before the bytes: encoding, sender, tag, context and wait id.
const ENTRY_HEADER_BYTES: usize = 20;
/// Prefix of PVM's names, which separates them from other names in the job.
pub const BEGINNING: &[u8] = b"pvm:";
/// Maximum size of an entry in bytes. The launcher does not accept longer ones.
const MAX_ENTRY_BYTES: usize = 16 << 20;
/// Name of the entries of tasks that a reset spares.
pub const NO_RESET: &CStr = c"###_PVM_NO_RESET_###";

pub fn place(name: &CStr) -> Result<CString, i32> {
    CString::new([BEGINNING, name.to_bytes()].concat()).map_err(|_| codes::BAD_PARAM)
}

/// Returns a name that a program passes. Fails if it is NULL or empty.
///
/// # Safety
/// `name` is a NUL-terminated string or NULL.
pub unsafe fn text<'a>(name: *const c_char) -> Result<&'a CStr, i32> {
    if name.is_null() {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: the caller guarantees valid pointers.
    let name = unsafe { CStr::from_ptr(name) };
    match name.is_empty() {
        true => Err(codes::BAD_PARAM),
        false => Ok(name),
    }
}

pub fn refused(code: c_int) -> i32 {
    match code {
        rg::ERR_NAME => codes::NOT_FOUND,
        rg::ERR_EXISTS => codes::EXISTS,
        rg::ERR_DENIED => codes::DENIED,
        rg::ERR_ARGUMENT => codes::BAD_PARAM,
        rg::ERR_MEMORY => codes::NO_MEM,
        _ => codes::SYS_ERR,
    }
}

/// Puts bytes under a name, and returns the index.
fn put_bytes(name: &CStr, value: &[u8], index: c_int, flags: c_int) -> Result<i32, i32> {
    let name = place(name)?;
    let mut placed = 0;
    // SAFETY: the name is NUL-terminated, the bytes are a valid slice, and the index is writable.
    let code = unsafe {
        rg::rg_put(
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            index,
            flags,
            &mut placed,
        )
    };
    match code {
        rg::OK => Ok(placed),
        code => Err(refused(code)),
    }
}

/// Returns the bytes of a message that is about to be sent, without its header.
pub fn bytes_of(out: &Outgoing) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(out.total);
    if out.pieces.is_null() {
        // SAFETY: the block has this many bytes after its header, until the buffer changes.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(out.head.add(HEAD), out.total)
        });
        return bytes;
    }
    // The first piece is the header.
    for index in 1..out.count {
        // SAFETY: there are `count` pieces, and the program keeps their memory until the message is sent.
        unsafe {
            let piece = &*out.pieces.add(index);
            for block in 0..piece.count {
                let at = piece
                    .base
                    .cast::<u8>()
                    .offset(block as isize * piece.stride);
                bytes.extend_from_slice(std::slice::from_raw_parts(at, piece.block));
            }
        }
    }
    bytes
}

fn put(name: &CStr, buffer: c_int, flags: c_int) -> Result<i32, i32> {
    enrol()?;
    if flags & (1 << 31) != 0 {
        return Err(codes::BAD_PARAM);
    }
    let buffer = match buffer {
        -1 => message::current().0,
        buffer => buffer,
    };
    let out = message::outgoing(buffer)?;
    let info = Info {
        src: library().tid,
        wid: out.wid,
        encoding: out.encoding,
        ..Info::default()
    };
    let direct = (flags & !FLAG_BITS) >> INDEX_SHIFT;
    let flags = flags & FLAGS;
    let value = entry(info, &bytes_of(&out));
    if direct == 0 && flags & rg::SEVERAL != 0 {
        return put_further(name, &value, flags);
    }
    may_change(name, direct, 0)?;
    match flags & rg::SEVERAL {
        0 => put_bytes(name, &value, direct, flags),
        _ => put_beside(name, &value, direct, flags),
    }
}

/// Adds an entry, whatever exists under the name. If all entries there have `SEVERAL`, the launcher selects the index.
fn put_further(name: &CStr, value: &[u8], flags: c_int) -> Result<i32, i32> {
    // If the entry that exists does not have `SEVERAL`, a new overwritable entry would replace it. So do not let the
    // launcher choose then.
    let is_alone = |class: &Class| class.flags.iter().any(|flags| flags & rg::SEVERAL == 0);
    let apart = flags & rg::OVERWRITABLE != 0 && class(name)?.is_some_and(|class| is_alone(&class));
    if !apart {
        match put_bytes(name, value, rg::ANY, flags) {
            Err(codes::EXISTS) => {}
            other => return other,
        }
    }
    put_beside(name, value, 0, flags)
}

/// Puts an entry at the first free index from `from` on.
fn put_beside(name: &CStr, value: &[u8], from: c_int, flags: c_int) -> Result<i32, i32> {
    let taken = class(name)?.map_or_else(Vec::new, |class| class.indices);
    let free = (from..).find(|index| !taken.contains(index));
    put_bytes(name, value, free.unwrap_or(from), flags)
}

/// Checks a rule of PVM's that Regatta does not have: an entry whose owner has ended can be changed only if it is
/// overwritable.
fn may_change(name: &CStr, index: c_int, flags: c_int) -> Result<(), i32> {
    let Some(class) = class(name)? else {
        return Ok(());
    };
    let first = flags & rg::FIRST != 0;
    let meant = |&(_, at): &(usize, &c_int)| *at == index || first && *at > index;
    let found = class.indices.iter().enumerate().find(meant);
    match found {
        Some((at, _)) if class.owners[at] == 0 && class.flags[at] & rg::OVERWRITABLE == 0 => {
            Err(codes::DENIED)
        }
        _ => Ok(()),
    }
}

/// Encodes a message as the value of an entry.
fn entry(info: Info, body: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(ENTRY_HEADER_BYTES + body.len());
    for word in [info.encoding, info.src, info.tag, info.ctx, info.wid] {
        value.extend_from_slice(&word.to_ne_bytes());
    }
    value.extend_from_slice(body);
    value
}

/// Decodes the value of an entry.
fn message_in(value: &[u8]) -> Option<(Info, &[u8])> {
    let (words, body) = value.split_at_checked(ENTRY_HEADER_BYTES)?;
    let word = |at: usize| {
        let bytes = words.get(at * 4..at * 4 + 4)?;
        Some(i32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let info = Info {
        encoding: word(0)?,
        src: word(1)?,
        tag: word(2)?,
        ctx: word(3)?,
        wid: word(4)?,
        ..Info::default()
    };
    Some((info, body))
}

/// Returns the value of an entry. Memory is reserved for the largest entry, but only the pages that are written are
/// used.
fn get_bytes(name: &CStr, index: c_int, flags: c_int) -> Result<Vec<u8>, i32> {
    get_entry(name, index, flags).map(|(_, value)| value)
}

/// Like [`get_bytes`], but also returns the index.
fn get_entry(name: &CStr, index: c_int, flags: c_int) -> Result<(i32, Vec<u8>), i32> {
    let name = place(name)?;
    let mut value: Vec<u8> = Vec::new();
    value
        .try_reserve_exact(MAX_ENTRY_BYTES)
        .map_err(|_| codes::NO_MEM)?;
    let (mut length, mut found) = (0, 0);
    // SAFETY: the name is NUL-terminated, the memory has the given length, and the results are writable.
    let code = unsafe {
        rg::rg_get(
            name.as_ptr(),
            index,
            flags,
            value.as_mut_ptr().cast(),
            MAX_ENTRY_BYTES,
            &mut length,
            &mut found,
        )
    };
    if code != rg::OK {
        return Err(refused(code));
    }
    // SAFETY: Regatta has written this many bytes.
    unsafe { value.set_len(length.min(MAX_ENTRY_BYTES)) };
    Ok((found, value))
}

fn get(name: &CStr, index: c_int, flags: c_int) -> Result<i32, i32> {
    enrol()?;
    if index < 0 {
        return Err(codes::BAD_PARAM);
    }
    if flags & rg::TAKE != 0 {
        may_change(name, index, flags)?;
    }
    let value = get_bytes(name, index, flags & FLAGS)?;
    let (info, body) = message_in(&value).ok_or(codes::BAD_MSG)?;
    message::from_body(body, info)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_putinfo(name: *const c_char, buffer: c_int, flags: c_int) -> c_int {
    let put = || {
        // SAFETY: by the C contract the arguments are valid.
        let put = unsafe { text(name) }.and_then(|name| put(name, buffer, flags));
        let code = put.unwrap_or_else(|code| code);
        error::answer("pvm_putinfo", code, &[codes::DENIED])
    };
    let entry = || {
        // SAFETY: by the C contract the string is NUL-terminated or NULL.
        let name = unsafe { trace::text(name) };
        [
            name,
            Value::Int(NO_INDEX),
            Value::Int(flags),
            Value::Int(buffer),
        ]
    };
    traced(calls::PUTINFO, entry, put, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_recvinfo(name: *const c_char, index: c_int, flags: c_int) -> c_int {
    let got = || {
        // SAFETY: by the C contract the arguments are valid.
        let got = unsafe { text(name) }.and_then(|name| {
            let got = get(name, index, flags);
            // The found message becomes the receive buffer. The previous one is freed, even if none is found.
            message::set_received(*got.as_ref().unwrap_or(&0));
            got
        });
        let code = got.unwrap_or_else(|code| code);
        error::answer("pvm_recvinfo", code, &[codes::NOT_FOUND])
    };
    // SAFETY: by the C contract the arguments are valid.
    let entry = || unsafe { entry_told(name, index, flags) };
    traced(calls::GETINFO, entry, got, received_told)
}

/// The index reported to a tracer if the real one is in the flags.
const NO_INDEX: c_int = -1;

/// Returns the values that a tracer gets for a found message or an error.
fn received_told(code: c_int) -> [Value<'static>; 2] {
    match code {
        ..0 => trace::ints([code, -1]),
        buffer => trace::ints([0, buffer]),
    }
}

/// Returns the values that a tracer gets for an entry: its name, an index, and flags or data.
///
/// # Safety
/// `name` is a NUL-terminated string that outlives the result, or NULL.
unsafe fn entry_told<'a>(name: *const c_char, index: c_int, flags: c_int) -> [Value<'a>; 3] {
    // SAFETY: the caller guarantees that the memory is valid.
    let name = unsafe { trace::text(name) };
    [name, Value::Int(index), Value::Int(flags)]
}

pub fn delete(name: &CStr, index: c_int) -> Result<(), i32> {
    enrol()?;
    may_change(name, index, 0)?;
    remove(name, index)
}

/// Deletes an entry without PVM's check, for example one whose owner has ended.
pub fn remove(name: &CStr, index: c_int) -> Result<(), i32> {
    let name = place(name)?;
    // SAFETY: the string is NUL-terminated.
    match unsafe { rg::rg_delete(name.as_ptr(), index) } {
        rg::OK => Ok(()),
        code => Err(refused(code)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_delinfo(name: *const c_char, index: c_int, flags: c_int) -> c_int {
    let deleted = || {
        // SAFETY: by the C contract the arguments are valid.
        let deleted = unsafe { text(name) }.and_then(|name| delete(name, index));
        let deleted = deleted.map_or_else(|code| code, |()| index);
        error::answer("pvm_delinfo", deleted, &[codes::NOT_FOUND, codes::DENIED])
    };
    // SAFETY: by the C contract the arguments are valid.
    let entry = || unsafe { entry_told(name, index, flags) };
    traced(calls::DELINFO, entry, deleted, trace::code)
}

/// Returns the index of this task's entry under this name, if there is one.
pub fn role(name: &CStr) -> Result<Option<i32>, i32> {
    let me = library().tid;
    Ok(class(name)?.and_then(|class| {
        let at = class.owners.iter().position(|&owner| owner == me)?;
        Some(class.indices[at])
    }))
}

/// Registers this task under this name until it leaves.
pub fn take_role(name: &CStr) -> Result<(), i32> {
    if role(name)?.is_some() {
        return Ok(());
    }
    put_role(name, &[], rg::SEVERAL).map(|_| ())
}

/// Registers this task under this name, with a body, until it leaves.
pub fn put_role(name: &CStr, body: &[u8], flags: c_int) -> Result<i32, i32> {
    let info = Info {
        src: library().tid,
        encoding: codes::XDR,
        ..Info::default()
    };
    put_bytes(name, &entry(info, body), rg::ANY, flags)
}

/// Returns the body of the first message under a name.
pub fn first(name: &CStr) -> Result<Vec<u8>, i32> {
    let value = get_bytes(name, 0, 0)?;
    let (_, body) = message_in(&value).ok_or(codes::BAD_MSG)?;
    Ok(body.to_vec())
}

/// Sets whether a reset spares this task, by an entry of its own.
pub fn keep_from_reset(keep: bool) -> Result<(), i32> {
    match (keep, role(NO_RESET)?) {
        (true, None) => {
            let info = Info {
                src: library().tid,
                encoding: codes::XDR,
                ..Info::default()
            };
            put_bytes(NO_RESET, &entry(info, &[]), rg::ANY, rg::SEVERAL).map(|_| ())
        }
        (false, Some(index)) => delete(NO_RESET, index),
        _ => Ok(()),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_getnoresets(tids: *mut *mut c_int, count: *mut c_int) -> c_int {
    static TIDS: Kept<Vec<c_int>> = Kept::new(Vec::new());
    let owners = match class(NO_RESET) {
        Ok(class) => class.map_or_else(Vec::new, |class| class.owners),
        Err(code) => return error::result("pvm_getnoresets", code),
    };
    let kept = TIDS.get();
    *kept = owners;
    // SAFETY: by the C contract the results are writable or NULL.
    unsafe {
        if !tids.is_null() {
            *tids = kept.as_mut_ptr();
        }
        if !count.is_null() {
            *count = kept.len() as c_int;
        }
    }
    0
}

/// Flags of entries as in PVM 3.3, where entries have no owners.
const FROM_OLD: c_int = rg::SEVERAL | rg::PERSISTENT;

/// Puts a number under a name, as in PVM 3.3.
#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_insert(name: *const c_char, index: c_int, data: c_int) -> c_int {
    let insert = |name: &CStr| -> Result<i32, i32> {
        enrol()?;
        let info = Info {
            src: library().tid,
            encoding: codes::XDR,
            ..Info::default()
        };
        let value = entry(info, &Body::new().int(data).into_vec());
        match index {
            ..-1 => Err(codes::BAD_PARAM),
            -1 => put_further(name, &value, FROM_OLD),
            _ if get_bytes(name, index, 0).is_ok() => Err(codes::EXISTS),
            _ => put_bytes(name, &value, index, FROM_OLD),
        }
    };
    let inserted = || {
        // SAFETY: by the C contract the arguments are valid.
        let inserted = unsafe { text(name) }.and_then(insert);
        let code = inserted.unwrap_or_else(|code| match code {
            // PVM 3.4 reports PvmDenied for an existing entry.
            codes::EXISTS => codes::DENIED,
            code => code,
        });
        error::answer("pvm_insert", code, &[codes::DENIED])
    };
    // SAFETY: by the C contract the arguments are valid.
    let entry = || unsafe { entry_told(name, index, data) };
    traced(calls::INSERT, entry, inserted, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_lookup(name: *const c_char, index: c_int, data: *mut c_int) -> c_int {
    let look_up = |name: &CStr| -> Result<(i32, i32), i32> {
        enrol()?;
        let (index, flags) = if index < 0 {
            (0, rg::FIRST)
        } else {
            (index, 0)
        };
        let (index, value) = get_entry(name, index, flags)?;
        let (info, body) = message_in(&value).ok_or(codes::BAD_MSG)?;
        let word = *body.first_chunk::<4>().ok_or(codes::BAD_MSG)?;
        let number = match info.encoding {
            codes::XDR => i32::from_be_bytes(word),
            _ => i32::from_ne_bytes(word),
        };
        Ok((index, number))
    };
    // SAFETY: by the C contract the arguments are valid.
    let found = || match unsafe { text(name) }.and_then(look_up) {
        Ok((index, word)) => {
            if !data.is_null() {
                // SAFETY: by the C contract the result is writable.
                unsafe { *data = word };
            }
            index
        }
        Err(code) => error::answer("pvm_lookup", code, &[codes::NOT_FOUND]),
    };
    // SAFETY: by the C contract the arguments are valid.
    let entry = || [unsafe { trace::text(name) }, Value::Int(index)];
    traced(calls::LOOKUP, entry, found, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_delete(name: *const c_char, index: c_int) -> c_int {
    let deleted = || {
        // SAFETY: by the C contract the arguments are valid.
        let deleted = unsafe { text(name) }.and_then(|name| delete(name, index));
        let code = deleted.err().unwrap_or(index);
        error::answer("pvm_delete", code, &[codes::NOT_FOUND])
    };
    // SAFETY: by the C contract the arguments are valid.
    let entry = || [unsafe { trace::text(name) }, Value::Int(index)];
    traced(calls::DELETE, entry, deleted, trace::code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_holds_a_message_and_half_of_one_holds_none() {
        let info = Info {
            src: 0x40002,
            tag: 5,
            ctx: 7,
            wid: 1,
            encoding: codes::XDR,
            ..Info::default()
        };
        let value = entry(info, b"body");
        assert_eq!(message_in(&value), Some((info, &b"body"[..])));
        assert_eq!(message_in(&value[..ENTRY_HEADER_BYTES - 1]), None);
    }
}
