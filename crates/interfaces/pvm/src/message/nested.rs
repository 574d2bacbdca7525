//! Messages inside messages, and the header of a trace message.

use std::time::{SystemTime, UNIX_EPOCH};

use super::buffer::{Buffer, Form, Info};
use super::codes::{BAD_MSG, MISMATCH};
use super::kind::Kind;
use super::storage::Shelf;
use super::table::Buffers;

/// Marks the beginning of an event that the program defines.
const EVENT: i32 = -9;
/// Marks the end of the event.
const EVENT_END: i32 = -10;
/// The kind and the name of such an event.
const USER_DEFINED: (i32, &[u8]) = (108, b"user_defined\0");

impl Buffer {
    /// Packs another message with its metadata (`pvm_pkmesg`).
    fn pack_message(&mut self, shelf: &mut Shelf, other: &mut Buffer) -> Result<(), i32> {
        let told = other.reported_length() as i32;
        let Info {
            src,
            dst,
            tag,
            ctx,
            wid,
            encoding,
            crc,
        } = other.info;
        for value in [told, ctx, tag, wid, encoding, crc, src, dst] {
            self.pack_value_int(shelf, value)?;
        }
        let pieces: Vec<&[u8]> = match other.form {
            Form::InPlace => other.left.bytes().collect(),
            _ => vec![other.body()],
        };
        for bytes in pieces.into_iter().filter(|bytes| !bytes.is_empty()) {
            self.pack_value_int(shelf, bytes.len() as i32)?;
            // SAFETY: `bytes` is a valid slice.
            unsafe { self.pack_value(shelf, Kind::Byte, bytes.as_ptr().cast(), bytes.len()) }?;
        }
        Ok(())
    }

    fn pack_value_int(&mut self, shelf: &mut Shelf, value: i32) -> Result<(), i32> {
        // SAFETY: `value` is an `int`.
        unsafe { self.pack_value(shelf, Kind::Int, (&raw const value).cast(), 1) }
    }

    /// Appends the contents of another message, as if packed here (`pvm_pkmesgbody`).
    fn pack_body(&mut self, shelf: &mut Shelf, other: &Buffer) -> Result<(), i32> {
        if self.info.encoding != other.info.encoding {
            return Err(MISMATCH);
        }
        if self.form == Form::InPlace {
            for piece in other.left.pieces() {
                self.left.leave(piece.base.cast(), piece.block);
            }
            return Ok(());
        }
        self.append(shelf, other.body())?;
        self.at = self.len;
        Ok(())
    }

    /// Unpacks what [`Buffer::pack_message`] has packed. Appends the message's bytes to `body`, and returns its
    /// metadata.
    fn unpack_message(&mut self, body: &mut Vec<u8>) -> Result<Info, i32> {
        let told = self.next_int()?;
        let mut info = Info::default();
        for value in [
            &mut info.ctx,
            &mut info.tag,
            &mut info.wid,
            &mut info.encoding,
            &mut info.crc,
            &mut info.src,
            &mut info.dst,
        ] {
            *value = self.next_int()?;
        }
        let mut missing = usize::try_from(told).map_err(|_| BAD_MSG)?;
        while missing > 0 {
            let length = usize::try_from(self.next_int()?).map_err(|_| BAD_MSG)?;
            let bytes = self.next_block(length)?;
            body.extend_from_slice(bytes);
            missing = missing.saturating_sub(length);
        }
        Ok(info)
    }

    /// Packs the beginning of the program's own event: its kind, its name and the time.
    pub(super) fn pack_trace_head(&mut self, shelf: &mut Shelf) -> Result<(), i32> {
        let (kind, name) = USER_DEFINED;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        self.open_to_pack();
        for value in [EVENT, kind, name.len() as i32] {
            self.pack_int(shelf, value)?;
        }
        self.append(shelf, name)?;
        self.end_bytes(shelf)?;
        self.pack_int(shelf, now.as_secs() as i32)?;
        self.pack_int(shelf, now.subsec_micros() as i32)
    }

    /// Packs the end of the event.
    pub fn pack_trace_end(&mut self, shelf: &mut Shelf) -> Result<(), i32> {
        self.pack_int(shelf, EVENT_END)
    }
}

impl Buffers {
    /// Packs a message with its metadata (`pvm_pkmesg`).
    pub fn pack_message(&mut self, id: i32) -> Result<(), i32> {
        let (sending, other, shelf) = self.sending_and(id)?;
        sending.pack_message(shelf, other)
    }

    /// Packs a message's contents (`pvm_pkmesgbody`).
    pub fn pack_body(&mut self, id: i32) -> Result<(), i32> {
        let (sending, other, shelf) = self.sending_and(id)?;
        sending.pack_body(shelf, other)
    }

    /// Unpacks a message (`pvm_upkmesg`), and returns the number of the new buffer.
    pub fn unpack_message(&mut self) -> Result<i32, i32> {
        let mut body = Vec::new();
        let info = self.receiving()?.unpack_message(&mut body)?;
        self.put(&body, info)
    }

    /// Makes a buffer with this message, and returns its number.
    pub fn put(&mut self, body: &[u8], info: Info) -> Result<i32, i32> {
        let storage = self.shelf.take(body.len())?;
        // SAFETY: the block is new and has room for the body.
        unsafe { std::ptr::copy_nonoverlapping(body.as_ptr(), storage.body(), body.len()) };
        self.accept(storage, body.len(), info)
    }

    /// Makes another buffer with the same message, and returns its number.
    pub fn copy(&mut self, id: i32) -> Result<i32, i32> {
        let outgoing = self.outgoing(id)?;
        let buffer = self.buffer(id)?;
        let info = Info {
            encoding: outgoing.encoding,
            ..buffer.info
        };
        let body: Vec<u8> = match buffer.form {
            Form::InPlace => buffer.left.bytes().collect::<Vec<_>>().concat(),
            _ => buffer.body().to_vec(),
        };
        self.put(&body, info)
    }
}
