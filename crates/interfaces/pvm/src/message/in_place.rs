//! Items that a message leaves in the program's memory until it is sent.

use std::ffi::c_void;

use super::uncached_copy;

/// Strided memory, laid out as `rg_view` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Piece {
    /// Where the first block begins.
    pub base: *mut c_void,
    /// Bytes of a block.
    pub block: usize,
    /// How many there are.
    pub count: usize,
    /// Bytes from one to the next.
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

/// The pieces of a message, and the values among them that had no place of their own.
pub struct InPlace {
    /// The first is for the head.
    pieces: Vec<Piece>,
    values: Vec<Box<[u8]>>,
    total: usize,
}

impl InPlace {
    /// No pieces.
    pub const fn new() -> InPlace {
        InPlace {
            pieces: Vec::new(),
            values: Vec::new(),
            total: 0,
        }
    }

    /// Forget all pieces.
    #[inline(always)]
    pub fn clear(&mut self) {
        if !self.pieces.is_empty() {
            self.pieces.clear();
            self.values.clear();
            self.total = 0;
        }
    }

    /// A further piece, which stays the user's.
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

    /// A further piece, which the user has only for this moment.
    pub fn keep(&mut self, bytes: &[u8]) {
        let copy: Box<[u8]> = bytes.into();
        self.leave(copy.as_ptr(), copy.len());
        self.values.push(copy);
    }

    /// The pieces of the user, without the head.
    pub fn pieces(&self) -> &[Piece] {
        self.pieces.get(1..).unwrap_or(&[])
    }

    /// The bytes of the pieces.
    pub fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        let whole = |piece: &Piece| {
            // SAFETY: by the rule of messages in place the user's memory is there until they are sent.
            unsafe { std::slice::from_raw_parts(piece.base.cast::<u8>(), piece.block) }
        };
        self.pieces().iter().map(whole)
    }

    /// All pieces, the first of them this head.
    pub fn with_head(&mut self, head: *mut u8, bytes: usize) -> &[Piece] {
        match self.pieces.first_mut() {
            Some(first) => *first = Piece::block(head, bytes),
            None => self.pieces.push(Piece::block(head, bytes)),
        }
        &self.pieces
    }

    /// Bytes of all pieces of the user.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Copy all pieces to one place.
    ///
    /// # Safety
    /// The user's memory is still there, and `to` has room for all of it.
    pub unsafe fn gather(&self, to: *mut u8) {
        let mut to = to;
        for piece in self.pieces() {
            // SAFETY: the caller's.
            unsafe { uncached_copy::copy(piece.base.cast(), to, piece.block) };
            to = to.wrapping_add(piece.block);
        }
    }
}
