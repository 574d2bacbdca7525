//! A message that is being packed or unpacked.
//!
//! A message is a sequence of bytes. Packing appends to it; unpacking continues where the last read ended. PVM 3.4's
//! edge cases are kept: reading starts over only if the buffer was packed since the last read; a buffer that was read
//! past its end yields no more bytes; and packing into an XDR message after reading it drops its numbers but keeps its
//! bytes.

use std::ffi::c_void;

use super::codes::{self, BAD_MSG, NO_DATA};
use super::in_place::InPlace;
use super::storage::{Shelf, Storage};

/// The metadata of a message.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Info {
    /// Its sender, or for a buffer that was made here, this task.
    pub src: i32,
    /// Its receiver.
    pub dst: i32,
    /// Its tag.
    pub tag: i32,
    /// Its context.
    pub ctx: i32,
    /// Wait id: a number that distinguishes replies.
    pub wid: i32,
    /// [`codes::XDR`], [`codes::RAW`], ...; any other value comes from a machine with another data format.
    pub encoding: i32,
    /// A checksum, or 0.
    pub crc: i32,
}

/// How items are encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// In this machine's format.
    Raw,
    /// In XDR.
    Xdr,
    /// Not encoded: only their addresses are kept.
    InPlace,
    /// In XDR, each item preceded by its type.
    Trace,
    /// In another machine's format. Only bytes can be read.
    Foreign,
}

impl Form {
    /// Returns the form for an encoding, as in `pvm_getminfo`.
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

/// What a buffer was last opened for.
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
    /// Memory that contains the message.
    pub storage: Storage,
    /// Length of the message in bytes.
    pub len: usize,
    /// Offset at which the next number is written or read.
    pub at: usize,
    /// Offset at which the next bytes are read.
    bytes_at: usize,
    /// Length that `pvm_bufinfo` returns for a buffer that is not being packed.
    told: usize,
    /// Metadata of the message.
    pub info: Info,
    pub(super) form: Form,
    mode: Mode,
    /// Whether it has been read past its end.
    spent: bool,
    /// Items that were not copied.
    pub(super) left: InPlace,
}

impl Buffer {
    /// Returns a buffer without message and memory.
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

    /// Begins a new message.
    #[inline(always)]
    pub fn restart(&mut self, info: Info) {
        self.set_message(0, info);
        self.left.clear();
    }

    /// Marks the first `len` bytes of the storage as a received message.
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

    /// Prepares for packing.
    #[inline(always)]
    pub fn open_to_pack(&mut self) {
        if self.mode != Mode::Packing && matches!(self.form, Form::Raw | Form::Xdr | Form::Trace) {
            self.mode = Mode::Packing;
            self.at = 0;
        }
    }

    /// Prepares for unpacking.
    #[inline(always)]
    pub fn open_to_unpack(&mut self) {
        if self.mode != Mode::Unpacking && self.form != Form::InPlace {
            self.mode = Mode::Unpacking;
            self.at = 0;
            self.bytes_at = 0;
            self.spent = false;
        }
    }

    /// Returns the length that `pvm_bufinfo` reports: what has been packed, or what was received. The length of an
    /// in-place message is not known before it is sent.
    pub fn reported_length(&mut self) -> usize {
        if self.mode == Mode::Packing {
            self.told = self.len;
        }
        self.told
    }

    /// Returns the bytes of the message.
    pub fn body(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the first `len` bytes of the body have been written.
        unsafe { std::slice::from_raw_parts(self.storage.body(), self.len) }
    }

    /// Extends the message by `bytes` bytes, and returns their uninitialised memory.
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

    /// Appends bytes without conversion.
    pub(super) fn append(&mut self, shelf: &mut Shelf, bytes: &[u8]) -> Result<(), i32> {
        let place = self.extend(shelf, bytes.len())?;
        // SAFETY: `extend` made room for them in the buffer's own memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        Ok(())
    }

    /// Pads the bytes of an XDR message to a multiple of four.
    pub(super) fn end_bytes(&mut self, shelf: &mut Shelf) -> Result<(), i32> {
        const ZEROS: [u8; 3] = [0; 3];
        let rest = self.len.wrapping_neg() & 3;
        self.append(shelf, &ZEROS[..rest])?;
        self.at = self.len;
        Ok(())
    }

    /// Returns memory for numbers of `width` bytes at `at`. The message then ends after them, even if `count` is 0.
    /// Exception: packing no doubles changes nothing.
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

    /// Reads up to `count` numbers of `width` bytes. Returns their address and how many there are.
    #[inline(always)]
    pub(super) fn next_numbers(&mut self, count: usize, width: usize) -> (*const u8, usize) {
        let place = self.storage.body().wrapping_add(self.at);
        if count == 0 && width == 8 {
            // Reading no doubles does nothing. Reading none of another type still sets where bytes are read next.
            return (place, 0);
        }
        let there = ((self.len - self.at) / width).min(count);
        self.at += there * width;
        if there < count {
            // When only half a double is left, reading it skips that half.
            self.at += (self.len - self.at) & 4;
            self.spent = true;
        }
        // Only a missing double resets the reading of bytes to the front.
        let lost = there < count && width == 8;
        self.bytes_at = if lost { 0 } else { self.at };
        (place, there)
    }

    /// Reads up to `bytes` bytes of a message without XDR. Returns their address and how many there are.
    #[inline(always)]
    pub(super) fn next_raw(&mut self, bytes: usize) -> (*const u8, usize) {
        let place = self.storage.body().wrapping_add(self.at);
        let there = (self.len - self.at).min(bytes);
        self.at += there;
        (place, there)
    }

    /// Reads up to `bytes` bytes of an XDR message. Returns their address and how many there are.
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

    /// Reads the next number, as `pvm_upkint` does.
    pub(super) fn next_int(&mut self) -> Result<i32, i32> {
        let mut value = 0i32;
        // SAFETY: `value` is an `int`.
        unsafe { self.unpack(super::Kind::Int, (&raw mut value).cast::<c_void>(), 1, 1) }?;
        Ok(value)
    }

    /// Reads exactly `bytes` bytes. Fails if there are fewer.
    pub(super) fn next_block(&mut self, bytes: usize) -> Result<&[u8], i32> {
        let (place, there) = match self.form {
            Form::InPlace => return Err(BAD_MSG),
            Form::Raw | Form::Foreign => self.next_raw(bytes),
            Form::Xdr | Form::Trace => self.next_bytes(bytes),
        };
        match there < bytes {
            true => Err(NO_DATA),
            _ if bytes == 0 => Ok(&[]),
            // SAFETY: this many bytes of the body have been written.
            false => Ok(unsafe { std::slice::from_raw_parts(place, bytes) }),
        }
    }
}
