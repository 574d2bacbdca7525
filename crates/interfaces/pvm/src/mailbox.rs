//! Messages under names: `pvm_putinfo` and its kin, over the names of Regatta.
//!
//! An entry's value is a message: its encoding and sender, then its bytes. The flags are Regatta's, bit for bit.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::last_results::Kept;
use crate::life::enrol;
use crate::listing::{Class, class};
use crate::message::{self, Body, HEAD, Info, Outgoing, codes, error};
use crate::rg;
use crate::state::library;
use crate::trace::{self, Value, calls, traced};

/// The flags that Regatta knows; the bits above say which index is meant.
const FLAGS: c_int = 63;
const INDEX_SHIFT: u32 = 10;
/// Bits of a program's flags that are flags; the index is above them.
const FLAG_BITS: c_int = (1 << INDEX_SHIFT) - 1;
/// Encoding, sender, tag, context and wait number, before the bytes.
const BEFORE: usize = 20;
/// Names of PVM's begin so, apart from those of other users of the job.
pub const BEGINNING: &[u8] = b"pvm:";
/// Maximum size of an entry, in bytes: a longer one does not get to the launcher.
const MAX_ENTRY_BYTES: usize = 16 << 20;
/// The entries of tasks that a reset spares.
pub const NO_RESET: &CStr = c"###_PVM_NO_RESET_###";

pub fn place(name: &CStr) -> Result<CString, i32> {
    CString::new([BEGINNING, name.to_bytes()].concat()).map_err(|_| codes::BAD_PARAM)
}

/// A name, which is not empty.
///
/// # Safety
/// A text, or NULL.
pub unsafe fn text<'a>(name: *const c_char) -> Result<&'a CStr, i32> {
    if name.is_null() {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: as the caller promises.
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

/// Put these bytes under a name; the index.
fn put_bytes(name: &CStr, value: &[u8], index: c_int, flags: c_int) -> Result<i32, i32> {
    let name = place(name)?;
    let mut placed = 0;
    // SAFETY: text, bytes and a place for the index.
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

/// The bytes of a message as it goes out.
pub fn bytes_of(out: &Outgoing) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(out.total);
    if out.pieces.is_null() {
        // SAFETY: the block holds so much behind its head until the buffer changes.
        bytes.extend_from_slice(unsafe {
            std::slice::from_raw_parts(out.head.add(HEAD), out.total)
        });
        return bytes;
    }
    // The first is the head.
    for index in 1..out.count {
        // SAFETY: so many pieces, of memory that the program has left in place until it is sent.
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

/// One more entry, whatever is there. Among others that are one of several too the launcher finds its place.
fn put_further(name: &CStr, value: &[u8], flags: c_int) -> Result<i32, i32> {
    // An overwritable one would take the place of one that is alone.
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

/// At the lowest index from this one on that is free, whatever is there beside it.
fn put_beside(name: &CStr, value: &[u8], from: c_int, flags: c_int) -> Result<i32, i32> {
    let taken = class(name)?.map_or_else(Vec::new, |class| class.indices);
    let free = (from..).find(|index| !taken.contains(index));
    put_bytes(name, value, free.unwrap_or(from), flags)
}

/// PVM's rule, which Regatta does not have: what a task has left behind stays as it is, unless it is overwritable.
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

/// A message as the value of an entry.
fn entry(info: Info, body: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(BEFORE + body.len());
    for word in [info.encoding, info.src, info.tag, info.ctx, info.wid] {
        value.extend_from_slice(&word.to_ne_bytes());
    }
    value.extend_from_slice(body);
    value
}

/// The message in the value of an entry.
fn message_in(value: &[u8]) -> Option<(Info, &[u8])> {
    let (words, body) = value.split_at_checked(BEFORE)?;
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

/// The value of an entry. The memory for the longest is asked for, and used as far as the entry is long.
fn get_bytes(name: &CStr, index: c_int, flags: c_int) -> Result<Vec<u8>, i32> {
    get_entry(name, index, flags).map(|(_, value)| value)
}

/// The value of an entry, with its index.
fn get_entry(name: &CStr, index: c_int, flags: c_int) -> Result<(i32, Vec<u8>), i32> {
    let name = place(name)?;
    let mut value: Vec<u8> = Vec::new();
    value
        .try_reserve_exact(MAX_ENTRY_BYTES)
        .map_err(|_| codes::NO_MEM)?;
    let (mut length, mut found) = (0, 0);
    // SAFETY: text, memory of that length and places for the answers.
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
    // SAFETY: so much has been written.
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
        // SAFETY: the C contract.
        let put = unsafe { text(name) }.and_then(|name| put(name, buffer, flags));
        let code = put.unwrap_or_else(|code| code);
        error::answer("pvm_putinfo", code, &[codes::DENIED])
    };
    let entry = || {
        // SAFETY: the C contract: a text, or NULL.
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
        // SAFETY: the C contract.
        let got = unsafe { text(name) }.and_then(|name| {
            let got = get(name, index, flags);
            // It is received, in place of the message before, which goes even if there is none.
            message::set_received(*got.as_ref().unwrap_or(&0));
            got
        });
        let code = got.unwrap_or_else(|code| code);
        error::answer("pvm_recvinfo", code, &[codes::NOT_FOUND])
    };
    // SAFETY: the C contract.
    let entry = || unsafe { entry_told(name, index, flags) };
    traced(calls::GETINFO, entry, got, received_told)
}

/// The index that a tracer gets if the real one stands among the flags.
const NO_INDEX: c_int = -1;

/// A tracer's values of a found message, or of the failure.
fn received_told(code: c_int) -> [Value<'static>; 2] {
    match code {
        ..0 => trace::ints([code, -1]),
        buffer => trace::ints([0, buffer]),
    }
}

/// A tracer's values of an entry: a name, an index and flags, or the buffer that is put there.
///
/// # Safety
/// `name` is a text that outlives this, or NULL.
unsafe fn entry_told<'a>(name: *const c_char, index: c_int, flags: c_int) -> [Value<'a>; 3] {
    // SAFETY: the caller's.
    let name = unsafe { trace::text(name) };
    [name, Value::Int(index), Value::Int(flags)]
}

pub fn delete(name: &CStr, index: c_int) -> Result<(), i32> {
    enrol()?;
    may_change(name, index, 0)?;
    remove(name, index)
}

/// Deletes an entry that nobody else may delete, such as one that a task has left behind.
pub fn remove(name: &CStr, index: c_int) -> Result<(), i32> {
    let name = place(name)?;
    // SAFETY: a text.
    match unsafe { rg::rg_delete(name.as_ptr(), index) } {
        rg::OK => Ok(()),
        code => Err(refused(code)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_delinfo(name: *const c_char, index: c_int, flags: c_int) -> c_int {
    let deleted = || {
        // SAFETY: the C contract.
        let deleted = unsafe { text(name) }.and_then(|name| delete(name, index));
        let deleted = deleted.map_or_else(|code| code, |()| index);
        error::answer("pvm_delinfo", deleted, &[codes::NOT_FOUND, codes::DENIED])
    };
    // SAFETY: the C contract.
    let entry = || unsafe { entry_told(name, index, flags) };
    traced(calls::DELINFO, entry, deleted, trace::code)
}

/// The index under which we are known by this name.
pub fn role(name: &CStr) -> Result<Option<i32>, i32> {
    let me = library().tid;
    Ok(class(name)?.and_then(|class| {
        let at = class.owners.iter().position(|&owner| owner == me)?;
        Some(class.indices[at])
    }))
}

/// Be known under this name, as long as we are there.
pub fn take_role(name: &CStr) -> Result<(), i32> {
    if role(name)?.is_some() {
        return Ok(());
    }
    put_role(name, &[], rg::SEVERAL).map(|_| ())
}

/// Be known under this name, with a body, as long as we are there.
pub fn put_role(name: &CStr, body: &[u8], flags: c_int) -> Result<i32, i32> {
    let info = Info {
        src: library().tid,
        encoding: codes::XDR,
        ..Info::default()
    };
    put_bytes(name, &entry(info, body), rg::ANY, flags)
}

/// The body of the first message under a name.
pub fn first(name: &CStr) -> Result<Vec<u8>, i32> {
    let value = get_bytes(name, 0, 0)?;
    let (_, body) = message_in(&value).ok_or(codes::BAD_MSG)?;
    Ok(body.to_vec())
}

/// Whether a reset spares us: an entry that says so.
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
    // SAFETY: the C contract: places for the answers, or NULL.
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

/// PVM 3.3 knew no owners.
const FROM_OLD: c_int = rg::SEVERAL | rg::PERSISTENT;

/// As PVM 3.3 had it: a number under a name.
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
        // SAFETY: the C contract.
        let inserted = unsafe { text(name) }.and_then(insert);
        let code = inserted.unwrap_or_else(|code| match code {
            // PVM 3.4 calls a second entry that.
            codes::EXISTS => codes::DENIED,
            code => code,
        });
        error::answer("pvm_insert", code, &[codes::DENIED])
    };
    // SAFETY: the C contract.
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
    // SAFETY: the C contract.
    let found = || match unsafe { text(name) }.and_then(look_up) {
        Ok((index, word)) => {
            if !data.is_null() {
                // SAFETY: the C contract: a place for the number.
                unsafe { *data = word };
            }
            index
        }
        Err(code) => error::answer("pvm_lookup", code, &[codes::NOT_FOUND]),
    };
    // SAFETY: the C contract.
    let entry = || [unsafe { trace::text(name) }, Value::Int(index)];
    traced(calls::LOOKUP, entry, found, trace::code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_delete(name: *const c_char, index: c_int) -> c_int {
    let deleted = || {
        // SAFETY: the C contract.
        let deleted = unsafe { text(name) }.and_then(|name| delete(name, index));
        let code = deleted.err().unwrap_or(index);
        error::answer("pvm_delete", code, &[codes::NOT_FOUND])
    };
    // SAFETY: the C contract.
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
        assert_eq!(message_in(&value[..BEFORE - 1]), None);
    }
}
