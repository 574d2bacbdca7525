//! Packs items into messages, and unpacks them.
//!
//! Hot path: packing and unpacking a few raw items. It does not allocate, lock or make system calls, and decisions
//! about a type that is known at compile time cost nothing at run time.

use std::ffi::c_void;

use super::buffer::{Buffer, Form};
use super::codes::{BAD_MSG, BAD_PARAM, NO_DATA, NO_MEM, NOT_IMPL};
use super::kind::Kind;
use super::storage::Shelf;
use super::xdr::{self, Double, Long, Number, Short, Word};

/// Marks an array in a trace message.
const ARRAY: i32 = 0x80;

/// Returns the distance of items in bytes.
#[inline(always)]
fn step(width: usize, stride: isize) -> isize {
    stride.wrapping_mul(width as isize)
}

impl Buffer {
    /// Packs `count` items that are `stride` items apart.
    ///
    /// # Safety
    /// The items are readable; those of an in-place message until it has been sent.
    #[inline(always)]
    pub unsafe fn pack(
        &mut self,
        shelf: &mut Shelf,
        kind: Kind,
        from: *const c_void,
        count: usize,
        stride: isize,
    ) -> Result<(), i32> {
        let from = from.cast::<u8>();
        if from.is_null() && count > 0 && self.form != Form::InPlace {
            return Err(BAD_PARAM);
        }
        // SAFETY: the caller guarantees readable items, and `from` is not NULL where items are read.
        unsafe {
            match self.form {
                Form::Raw => self.pack_raw(shelf, kind.width(), from, count, stride),
                Form::Xdr => self.pack_xdr(shelf, kind, from, count, stride),
                Form::InPlace => self.leave(kind, from, count, stride),
                Form::Trace => self.pack_trace(shelf, kind, from, count, stride),
                Form::Foreign => Err(BAD_MSG),
            }
        }
    }

    #[inline(always)]
    unsafe fn pack_raw(
        &mut self,
        shelf: &mut Shelf,
        width: usize,
        from: *const u8,
        count: usize,
        stride: isize,
    ) -> Result<(), i32> {
        let bytes = count.checked_mul(width).ok_or(NO_MEM)?;
        let to = self.extend(shelf, bytes)?;
        // SAFETY: the caller guarantees readable items; `to` has room for them in the buffer's own memory.
        unsafe { xdr::gather(from, count, width, step(width, stride), to) };
        Ok(())
    }

    fn leave(
        &mut self,
        kind: Kind,
        from: *const u8,
        count: usize,
        stride: isize,
    ) -> Result<(), i32> {
        if stride != 1 {
            return Err(NOT_IMPL);
        }
        if !from.is_null() {
            self.left
                .leave(from, count.checked_mul(kind.width()).ok_or(NO_MEM)?);
        }
        Ok(())
    }

    #[inline(always)]
    unsafe fn pack_xdr(
        &mut self,
        shelf: &mut Shelf,
        kind: Kind,
        from: *const u8,
        count: usize,
        stride: isize,
    ) -> Result<(), i32> {
        let step = step(kind.width(), stride);
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe {
            match kind {
                Kind::Byte => {
                    self.pack_raw(shelf, 1, from, count, stride)?;
                    self.end_bytes(shelf)
                }
                Kind::Short | Kind::UShort => self.pack_numbers::<Short>(shelf, from, count, step),
                Kind::Int | Kind::UInt | Kind::Float => {
                    self.pack_numbers::<Word>(shelf, from, count, step)
                }
                Kind::Long | Kind::ULong => self.pack_numbers::<Long>(shelf, from, count, step),
                Kind::Double => self.pack_numbers::<Double>(shelf, from, count, step),
                Kind::Complex => self.pack_pairs::<Word>(shelf, from, count, step),
                Kind::DoubleComplex => self.pack_pairs::<Double>(shelf, from, count, step),
            }
        }
    }

    #[inline(always)]
    unsafe fn pack_numbers<N: Number>(
        &mut self,
        shelf: &mut Shelf,
        from: *const u8,
        count: usize,
        step: isize,
    ) -> Result<(), i32> {
        let to = self.extend_numbers(shelf, count, N::THERE)?;
        // SAFETY: the caller guarantees readable items; `to` has room for them in the buffer's own memory.
        unsafe { xdr::encode::<N>(from, count, step, to) };
        Ok(())
    }

    #[inline(always)]
    unsafe fn pack_pairs<N: Number>(
        &mut self,
        shelf: &mut Shelf,
        from: *const u8,
        count: usize,
        step: isize,
    ) -> Result<(), i32> {
        let numbers = count.checked_mul(2).ok_or(NO_MEM)?;
        let to = self.extend_numbers(shelf, numbers, N::THERE)?;
        // SAFETY: the caller guarantees readable items; `to` has room for them in the buffer's own memory.
        unsafe {
            if step == 2 * N::HERE as isize {
                xdr::encode::<N>(from, numbers, N::HERE as isize, to);
            } else {
                xdr::encode_pairs::<N>(from, count, step, to);
            }
        }
        Ok(())
    }

    /// Packs items for a tracer: preceded by their type, and an array also by its length.
    unsafe fn pack_trace(
        &mut self,
        shelf: &mut Shelf,
        kind: Kind,
        from: *const u8,
        count: usize,
        stride: isize,
    ) -> Result<(), i32> {
        if count == 0 {
            // SAFETY: the caller guarantees that the memory is valid.
            return unsafe { self.pack_trace_mark(shelf, kind, from) };
        }
        match count {
            1 => self.pack_int(shelf, kind.mark())?,
            _ => {
                self.pack_int(shelf, kind.mark() | ARRAY)?;
                self.pack_int(shelf, count as i32)?;
            }
        }
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { self.pack_xdr(shelf, kind, from, count, stride) }
    }

    /// Packs no items. If `from` points to a negative `int`, packs that: this is how tracers put their own marks into
    /// messages.
    unsafe fn pack_trace_mark(
        &mut self,
        shelf: &mut Shelf,
        kind: Kind,
        from: *const u8,
    ) -> Result<(), i32> {
        if kind.mark() != Kind::Int.mark() || from.is_null() {
            return Ok(());
        }
        // SAFETY: the caller guarantees that `from` points to an `int`.
        match unsafe { from.cast::<i32>().read_unaligned() } {
            mark if mark < 0 => self.pack_int(shelf, mark),
            _ => Ok(()),
        }
    }

    /// Packs one `int` in XDR.
    pub(super) fn pack_int(&mut self, shelf: &mut Shelf, value: i32) -> Result<(), i32> {
        // SAFETY: `value` is four bytes long.
        unsafe { self.pack_numbers::<Word>(shelf, (&raw const value).cast(), 1, 4) }
    }

    /// Packs items that the caller does not keep.
    ///
    /// # Safety
    /// The items are readable.
    pub unsafe fn pack_value(
        &mut self,
        shelf: &mut Shelf,
        kind: Kind,
        from: *const c_void,
        count: usize,
    ) -> Result<(), i32> {
        if self.form == Form::InPlace {
            if count > 0 {
                // SAFETY: the caller guarantees that the memory is valid.
                let bytes =
                    unsafe { std::slice::from_raw_parts(from.cast::<u8>(), count * kind.width()) };
                self.left.keep(bytes);
            }
            return Ok(());
        }
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { self.pack(shelf, kind, from, count, 1) }
    }

    /// Packs a string with its NUL.
    pub fn pack_string(&mut self, shelf: &mut Shelf, text: &std::ffi::CStr) -> Result<(), i32> {
        let bytes = text.to_bytes_with_nul();
        match self.form {
            Form::InPlace => return Err(NOT_IMPL),
            // A tracer's string has its length instead of a NUL.
            Form::Trace => {
                let bytes = text.to_bytes();
                // SAFETY: `bytes` is a valid slice.
                return unsafe {
                    self.pack_trace(shelf, Kind::Byte, bytes.as_ptr(), bytes.len(), 1)
                };
            }
            _ => {}
        }
        let length = i32::try_from(bytes.len()).map_err(|_| NO_MEM)?;
        self.pack_formatted_string(shelf, text, length)
    }

    /// Packs a string as `pvm_packf` does: a tracer, too, gets its length and its bytes as two items.
    pub fn pack_formatted_string(
        &mut self,
        shelf: &mut Shelf,
        text: &std::ffi::CStr,
        length: i32,
    ) -> Result<(), i32> {
        if self.form == Form::InPlace {
            return Err(NOT_IMPL);
        }
        let bytes = text.to_bytes_with_nul();
        // SAFETY: `length` is an `int`, and `bytes` is a valid slice.
        unsafe {
            self.pack(shelf, Kind::Int, (&raw const length).cast(), 1, 1)?;
            self.pack(shelf, Kind::Byte, bytes.as_ptr().cast(), bytes.len(), 1)
        }
    }

    /// Unpacks `count` items to addresses `stride` items apart. If the message has fewer, unpacks these and fails.
    ///
    /// # Safety
    /// There is room for the items.
    #[inline(always)]
    pub unsafe fn unpack(
        &mut self,
        kind: Kind,
        to: *mut c_void,
        count: usize,
        stride: isize,
    ) -> Result<(), i32> {
        let to = to.cast::<u8>();
        if to.is_null() && count > 0 {
            return Err(BAD_PARAM);
        }
        // SAFETY: the caller guarantees room for the items, and `to` is not NULL where items are written.
        unsafe {
            match self.form {
                Form::Raw => self.unpack_raw(kind.width(), to, count, stride),
                Form::Xdr | Form::Trace => self.unpack_xdr(kind, to, count, stride),
                Form::Foreign if kind == Kind::Byte => self.unpack_raw(1, to, count, stride),
                Form::InPlace | Form::Foreign => Err(BAD_MSG),
            }
        }
    }

    #[inline(always)]
    unsafe fn unpack_raw(
        &mut self,
        width: usize,
        to: *mut u8,
        count: usize,
        stride: isize,
    ) -> Result<(), i32> {
        let bytes = count.checked_mul(width).ok_or(NO_DATA)?;
        let (from, there) = self.next_raw(bytes);
        let step = step(width, stride);
        if there == bytes {
            // SAFETY: the caller guarantees room; `from` has the bytes, in the buffer's own memory.
            unsafe { xdr::spread(from, count, width, step, to) };
            return Ok(());
        }
        let whole = there / width;
        // SAFETY: the same; the last item is incomplete.
        unsafe {
            xdr::spread(from, whole, width, step, to);
            let rest = to.wrapping_offset(step.wrapping_mul(whole as isize));
            std::ptr::copy_nonoverlapping(from.add(whole * width), rest, there % width);
        }
        Err(NO_DATA)
    }

    #[inline(always)]
    unsafe fn unpack_xdr(
        &mut self,
        kind: Kind,
        to: *mut u8,
        count: usize,
        stride: isize,
    ) -> Result<(), i32> {
        let step = step(kind.width(), stride);
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe {
            match kind {
                Kind::Byte => {
                    let (from, there) = self.next_bytes(count);
                    xdr::spread(from, there, 1, stride, to);
                    enough(there, count)
                }
                Kind::Short | Kind::UShort => self.unpack_numbers::<Short>(to, count, step),
                Kind::Int | Kind::UInt | Kind::Float => {
                    self.unpack_numbers::<Word>(to, count, step)
                }
                Kind::Long | Kind::ULong => self.unpack_numbers::<Long>(to, count, step),
                Kind::Double => self.unpack_numbers::<Double>(to, count, step),
                Kind::Complex => self.unpack_pairs::<Word>(to, count, step),
                Kind::DoubleComplex => self.unpack_pairs::<Double>(to, count, step),
            }
        }
    }

    #[inline(always)]
    unsafe fn unpack_numbers<N: Number>(
        &mut self,
        to: *mut u8,
        count: usize,
        step: isize,
    ) -> Result<(), i32> {
        let (from, there) = self.next_numbers(count, N::THERE);
        // SAFETY: the caller guarantees room; `from` has `there` numbers, in the buffer's own memory.
        unsafe { xdr::decode::<N>(from, there, step, to) };
        enough(there, count)
    }

    #[inline(always)]
    unsafe fn unpack_pairs<N: Number>(
        &mut self,
        to: *mut u8,
        count: usize,
        step: isize,
    ) -> Result<(), i32> {
        let numbers = count.checked_mul(2).ok_or(NO_DATA)?;
        let (from, there) = self.next_numbers(numbers, N::THERE);
        // SAFETY: the caller guarantees room; `from` has `there` numbers, in the buffer's own memory.
        unsafe {
            if step == 2 * N::HERE as isize {
                xdr::decode::<N>(from, there, N::HERE as isize, to);
            } else {
                xdr::decode_pairs::<N>(from, there, step, to);
            }
        }
        enough(there, numbers)
    }

    /// Unpacks a string with its NUL. Its length is in the message.
    ///
    /// # Safety
    /// There is room for the string.
    pub unsafe fn unpack_string(&mut self, to: *mut c_void) -> Result<(), i32> {
        let length = self.next_int()?;
        if to.is_null() {
            return Err(BAD_PARAM);
        }
        // In PVM 3.4 a string of negative length has no bytes.
        let length = length.max(0) as usize;
        // SAFETY: the caller guarantees room for the string.
        unsafe { self.unpack(Kind::Byte, to, length, 1) }
    }
}

#[inline(always)]
fn enough(there: usize, wanted: usize) -> Result<(), i32> {
    if there < wanted { Err(NO_DATA) } else { Ok(()) }
}
