//! One message that is being packed or unpacked.
//!
//! A message is a row of bytes. Packing appends to it; unpacking reads on from where the last reading
//! ended. PVM 3.4's behaviour at the edges is kept: a buffer is read from its front only when it was
//! packed since it was last read, a buffer that has been read past its end gives no more bytes, and a
//! message of XDR that is packed again after reading loses its numbers and keeps its bytes.

use std::ffi::c_void;

use super::codes::{self, BAD_MSG, NO_DATA};
use super::in_place::InPlace;
use super::storage::{Shelf, Storage};

/// The information that goes with a message.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Info {
    /// Its sender; for a buffer that was made here, its maker.
    pub src: i32,
    /// Its receiver.
    pub dst: i32,
    /// Its tag.
    pub tag: i32,
    /// Its context.
    pub ctx: i32,
    /// A number to tell replies apart.
    pub wid: i32,
    /// [`codes::XDR`], [`codes::RAW`], ...; anything else is from a machine unlike this one.
    pub encoding: i32,
    /// A checksum, or 0.
    pub crc: i32,
}

/// How items are written and read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// As they are.
    Raw,
    /// In XDR.
    Xdr,
    /// Not at all: only where they are.
    InPlace,
    /// In XDR, each with its type.
    Trace,
    /// As some other machine has them. Only its bytes can be read.
    Foreign,
}

impl Form {
    /// The form of an encoding as `pvm_getminfo` tells it.
    #[inline(always)]
    pub fn of(encoding: i32) -> Form {
        match encoding {
            codes::RAW => Form::Raw,
            codes::XDR => Form::Xdr,
            codes::IN_PLACE => Form::InPlace,
            codes::TRACE => Form::Trace,
            _ => Form::Foreign,
        }
    }
}

/// The use for which a buffer was last made ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nothing yet.
    Blank,
    /// For packing.
    Packing,
    /// For unpacking.
    Unpacking,
}

/// A message that is being packed or unpacked.
pub struct Buffer {
    /// Where the message is.
    pub storage: Storage,
    /// Bytes of it.
    pub len: usize,
    /// Where the next number is written or read.
    pub at: usize,
    /// Where the next bytes are read.
    bytes_at: usize,
    /// The length that `pvm_bufinfo` gives of a buffer that is not being packed.
    told: usize,
    /// The information that goes with it.
    pub info: Info,
    pub(super) form: Form,
    mode: Mode,
    /// It has been read past its end.
    spent: bool,
    /// The items it has left in place.
    pub(super) left: InPlace,
}

impl Buffer {
    /// Without a message and without memory.
    pub fn empty() -> Buffer {
        Buffer {
            storage: Storage::none(),
            len: 0,
            at: 0,
            bytes_at: 0,
            told: 0,
            info: Info::default(),
            form: Form::Raw,
            mode: Mode::Blank,
            spent: false,
            left: InPlace::new(),
        }
    }

    /// Begin a new message.
    #[inline(always)]
    pub fn restart(&mut self, info: Info) {
        self.set_message(0, info);
        self.left.clear();
    }

    /// The storage holds a message that has come.
    #[inline(always)]
    pub fn set_message(&mut self, len: usize, info: Info) {
        self.len = len;
        self.told = len;
        self.at = 0;
        self.bytes_at = 0;
        self.info = info;
        self.form = Form::of(info.encoding);
        self.mode = Mode::Blank;
        self.spent = false;
    }

    /// Make ready for packing.
    #[inline(always)]
    pub fn open_to_pack(&mut self) {
        if self.mode != Mode::Packing && matches!(self.form, Form::Raw | Form::Xdr | Form::Trace) {
            self.mode = Mode::Packing;
            self.at = 0;
        }
    }

    /// Make ready for unpacking.
    #[inline(always)]
    pub fn open_to_unpack(&mut self) {
        if self.mode != Mode::Unpacking && self.form != Form::InPlace {
            self.mode = Mode::Unpacking;
            self.at = 0;
            self.bytes_at = 0;
            self.spent = false;
        }
    }

    /// The length that `pvm_bufinfo` tells: what has been packed, or what has come. Of a message that
    /// is left in place it is not known before it has been sent.
    pub fn reported_length(&mut self) -> usize {
        if self.mode == Mode::Packing {
            self.told = self.len;
        }
        self.told
    }

    /// The bytes of the message.
    pub fn body(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the first `len` bytes of the body have been written.
        unsafe { std::slice::from_raw_parts(self.storage.body(), self.len) }
    }

    /// Where `bytes` more can be written; they count from then on.
    #[inline(always)]
    pub(super) fn extend(&mut self, shelf: &mut Shelf, bytes: usize) -> Result<*mut u8, i32> {
        let end = self.len.checked_add(bytes).ok_or(codes::NO_MEM)?;
        if end > self.storage.capacity() || self.storage.is_read_from(self.len) {
            shelf.exchange(&mut self.storage, end, self.len)?;
        }
        let place = self.storage.body().wrapping_add(self.len);
        self.len = end;
        Ok(place)
    }

    /// Append bytes that are not converted.
    pub(super) fn append(&mut self, shelf: &mut Shelf, bytes: &[u8]) -> Result<(), i32> {
        let place = self.extend(shelf, bytes.len())?;
        // SAFETY: `extend` made room for them, in memory that is nobody else's.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        Ok(())
    }

    /// Append bytes to a message of XDR, where everything begins at a multiple of four.
    pub(super) fn end_bytes(&mut self, shelf: &mut Shelf) -> Result<(), i32> {
        const ZEROS: [u8; 3] = [0; 3];
        let rest = self.len.wrapping_neg() & 3;
        self.append(shelf, &ZEROS[..rest])?;
        self.at = self.len;
        Ok(())
    }

    /// Numbers of `width` bytes are written at `at`, and end the message there, though there be none of
    /// them; but no doubles end nothing.
    #[inline(always)]
    pub(super) fn extend_numbers(
        &mut self,
        shelf: &mut Shelf,
        count: usize,
        width: usize,
    ) -> Result<*mut u8, i32> {
        let bytes = count.checked_mul(width).ok_or(codes::NO_MEM)?;
        if count == 0 && width == 8 {
            return Ok(self.storage.body());
        }
        self.len = self.at;
        let place = self.extend(shelf, bytes)?;
        self.at = self.len;
        Ok(place)
    }

    /// Take up to `count` numbers of `width` bytes to read: where they are and how many are there.
    #[inline(always)]
    pub(super) fn next_numbers(&mut self, count: usize, width: usize) -> (*const u8, usize) {
        let place = self.storage.body().wrapping_add(self.at);
        if count == 0 && width == 8 {
            // To read no doubles is nothing; to read none of other numbers says where bytes go on.
            return (place, 0);
        }
        let there = ((self.len - self.at) / width).min(count);
        self.at += there * width;
        if there < count {
            // Half a double is lost with the failure to read the other half.
            self.at += (self.len - self.at) & 4;
            self.spent = true;
        }
        // Only a double that is missing sends the reading of bytes back to the front.
        let lost = there < count && width == 8;
        self.bytes_at = if lost { 0 } else { self.at };
        (place, there)
    }

    /// Take up to `bytes` bytes to read, from a message without XDR.
    #[inline(always)]
    pub(super) fn next_raw(&mut self, bytes: usize) -> (*const u8, usize) {
        let place = self.storage.body().wrapping_add(self.at);
        let there = (self.len - self.at).min(bytes);
        self.at += there;
        (place, there)
    }

    /// Take up to `bytes` bytes to read, from a message of XDR.
    pub(super) fn next_bytes(&mut self, bytes: usize) -> (*const u8, usize) {
        if self.spent && bytes > 0 {
            self.bytes_at = 0;
            return (self.storage.body(), 0);
        }
        let place = self.storage.body().wrapping_add(self.bytes_at);
        if !self.spent && bytes > self.len - self.bytes_at {
            let there = self.len - self.bytes_at;
            self.spent = true;
            self.bytes_at = 0;
            return (place, there);
        }
        self.bytes_at = (self.bytes_at + bytes + 3) & !3;
        self.at = self.bytes_at.min(self.len);
        if !self.spent {
            self.bytes_at = self.at;
        }
        (place, bytes)
    }

    /// The next number of the message, as `pvm_upkint` reads it.
    pub(super) fn next_int(&mut self) -> Result<i32, i32> {
        let mut value = 0i32;
        // SAFETY: the value is as long as an `int`.
        unsafe { self.unpack(super::Kind::Int, (&raw mut value).cast::<c_void>(), 1, 1) }?;
        Ok(value)
    }

    /// The next bytes of the message, as many as there must be.
    pub(super) fn next_block(&mut self, bytes: usize) -> Result<&[u8], i32> {
        let (place, there) = match self.form {
            Form::InPlace => return Err(BAD_MSG),
            Form::Raw | Form::Foreign => self.next_raw(bytes),
            Form::Xdr | Form::Trace => self.next_bytes(bytes),
        };
        match there < bytes {
            true => Err(NO_DATA),
            _ if bytes == 0 => Ok(&[]),
            // SAFETY: so many bytes of the body are there, and have been written.
            false => Ok(unsafe { std::slice::from_raw_parts(place, bytes) }),
        }
    }
}
