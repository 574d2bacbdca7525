//! Items that are not copied into a message until it is sent.

use std::ffi::c_void;

use super::uncached_copy;

/// Strided memory, with the layout of `rg_view`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Piece {
    /// Address of the first block.
    pub base: *mut c_void,
    /// Size of a block in bytes.
    pub block: usize,
    /// Number of blocks.
    pub count: usize,
    /// Distance of blocks in bytes.
    pub stride: isize,
}

impl Piece {
    fn block(base: *const u8, bytes: usize) -> Piece {
        Piece {
            base: base.cast_mut().cast(),
            block: bytes,
            count: 1,
            stride: bytes as isize,
        }
    }
}

/// The pieces of a message, and copies of values that were passed by value.
pub struct InPlace {
    /// The first piece is reserved for the header.
    pieces: Vec<Piece>,
    values: Vec<Box<[u8]>>,
    total: usize,
}

impl InPlace {
    /// Returns an empty list.
    pub const fn new() -> InPlace {
        InPlace {
            pieces: Vec::new(),
            values: Vec::new(),
            total: 0,
        }
    }

    /// Removes all pieces.
    #[inline(always)]
    pub fn clear(&mut self) {
        if !self.pieces.is_empty() {
            self.pieces.clear();
            self.values.clear();
            self.total = 0;
        }
    }

    /// Adds a piece that stays in the program's memory.
    pub fn leave(&mut self, from: *const u8, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if self.pieces.is_empty() {
            self.pieces.push(Piece::block(std::ptr::null(), 0));
        }
        self.pieces.push(Piece::block(from, bytes));
        self.total += bytes;
    }

    /// Adds a copy of a value that the caller does not keep.
    pub fn keep(&mut self, bytes: &[u8]) {
        let copy: Box<[u8]> = bytes.into();
        self.leave(copy.as_ptr(), copy.len());
        self.values.push(copy);
    }

    /// Returns the program's pieces, without the header.
    pub fn pieces(&self) -> &[Piece] {
        self.pieces.get(1..).unwrap_or(&[])
    }

    /// Returns the bytes of each piece.
    pub fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        let whole = |piece: &Piece| {
            // SAFETY: a program must keep the memory of an in-place message unchanged until it has been sent.
            unsafe { std::slice::from_raw_parts(piece.base.cast::<u8>(), piece.block) }
        };
        self.pieces().iter().map(whole)
    }

    /// Returns all pieces, with this header as the first one.
    pub fn with_head(&mut self, head: *mut u8, bytes: usize) -> &[Piece] {
        match self.pieces.first_mut() {
            Some(first) => *first = Piece::block(head, bytes),
            None => self.pieces.push(Piece::block(head, bytes)),
        }
        &self.pieces
    }

    /// Returns the total size of the program's pieces in bytes.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Copies all pieces to one block.
    ///
    /// # Safety
    /// The program's memory is still valid, and `to` has room for [`InPlace::total`] bytes.
    pub unsafe fn gather(&self, to: *mut u8) {
        let mut to = to;
        for piece in self.pieces() {
            // SAFETY: the caller guarantees that the memory is valid.
            unsafe { uncached_copy::copy(piece.base.cast(), to, piece.block) };
            to = to.wrapping_add(piece.block);
        }
    }
}
