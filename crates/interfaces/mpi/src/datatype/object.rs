//! A datatype, and packing and unpacking by it.

use std::ffi::{c_int, c_void};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regatta_sys as rg;

use super::copying::copy_blocks;
use super::layout::Piece;
use super::map::Map;
use crate::abi::*;
use crate::attributes::Attributes;
use crate::error::{Error, Result};

/// The arguments by which a datatype was made, for MPI_Type_get_contents.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// The combiner (MPI_COMBINER_).
    pub combiner: c_int,
    /// Integer arguments, in the order of the standard.
    pub integers: Vec<c_int>,
    /// Address arguments, in the order of the standard.
    pub addresses: Vec<i64>,
    /// Large counts, if it was made with a large-count function.
    pub counts: Vec<i64>,
    /// Datatype arguments, in the order of the standard.
    pub types: Types,
}

/// The datatypes from which one was made.
#[derive(Clone, Debug)]
pub enum Types {
    /// At most one, as for most datatypes.
    One(Option<Arc<Type>>),
    /// Those of a structure.
    Many(Vec<Arc<Type>>),
}

impl Default for Types {
    fn default() -> Types {
        Types::One(None)
    }
}

impl From<Arc<Type>> for Types {
    fn from(one: Arc<Type>) -> Types {
        Types::One(Some(one))
    }
}

impl From<Vec<Arc<Type>>> for Types {
    fn from(many: Vec<Arc<Type>>) -> Types {
        Types::Many(many)
    }
}

impl Deref for Types {
    type Target = [Arc<Type>];

    fn deref(&self) -> &[Arc<Type>] {
        match self {
            Types::One(one) => one.as_slice(),
            Types::Many(many) => many,
        }
    }
}

impl Types {
    /// Takes out those to which nothing else refers, and drops the others.
    fn take_last(&mut self, last: &mut Vec<Type>) {
        match self {
            Types::One(one) => last.extend(one.take().and_then(Arc::into_inner)),
            Types::Many(many) => last.extend(many.drain(..).filter_map(Arc::into_inner)),
        }
    }
}

impl Drop for Types {
    /// Drops a long chain of datatypes without deep recursion.
    fn drop(&mut self) {
        let mut left = Vec::new();
        self.take_last(&mut left);
        while let Some(mut last) = left.pop() {
            last.made.types.take_last(&mut left);
        }
    }
}

/// A datatype. Its layout never changes; its name, its attributes and whether it is committed may change.
pub struct Type {
    map: Map,
    made: Made,
    /// Its handle if it cannot be freed.
    predefined: Option<Datatype>,
    committed: AtomicBool,
    name: Mutex<Vec<u8>>,
    life: Mutex<Life>,
    /// Its attributes.
    pub attributes: Attributes<Datatype>,
}

/// What determines how long a datatype's handle is valid.
#[derive(Debug, Default)]
struct Life {
    /// Number of operations that need the handle.
    holders: usize,
    /// Whether the program has freed it.
    freed: bool,
}

impl std::fmt::Debug for Type {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = (self.size(), self.lb(), self.extent());
        write!(to, "Type {{ size, lb, extent: {fields:?} }}")
    }
}

impl Type {
    /// Returns a new datatype.
    pub fn new(map: Map, made: Made) -> Type {
        Type {
            map,
            made,
            predefined: None,
            committed: AtomicBool::new(false),
            name: Mutex::new(Vec::new()),
            life: Mutex::new(Life::default()),
            attributes: Attributes::new(),
        }
    }

    /// Returns a predefined datatype.
    pub fn named(handle: Datatype, name: &str, map: Map) -> Type {
        let made = Made {
            combiner: COMBINER_NAMED,
            ..Made::default()
        };
        Type::predefined(handle, name, map, made)
    }

    /// Returns a datatype that cannot be freed.
    pub fn predefined(handle: Datatype, name: &str, map: Map, made: Made) -> Type {
        Type {
            predefined: Some(handle),
            committed: AtomicBool::new(true),
            name: Mutex::new(name.as_bytes().to_vec()),
            ..Type::new(map, made)
        }
    }

    /// Returns a new datatype with the same type map, made with the same arguments.
    pub fn again(&self) -> Type {
        let again = Type::new(self.map.clone(), self.made.clone());
        again
            .committed
            .store(self.is_committed(), Ordering::Release);
        again
    }

    /// Returns a duplicate, which is committed if this one is.
    pub fn duplicate(self: &Arc<Type>, attributes: Attributes<Datatype>) -> Type {
        let made = Made {
            combiner: COMBINER_DUP,
            types: self.clone().into(),
            ..Made::default()
        };
        let mut duplicate = Type::new(self.map.clone(), made);
        duplicate.attributes = attributes;
        *duplicate.committed.get_mut() = self.is_committed();
        duplicate
    }

    /// Returns its type map.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Returns the arguments by which it was made.
    pub fn made(&self) -> &Made {
        &self.made
    }

    /// Returns its handle if it cannot be freed.
    pub fn predefined_handle(&self) -> Option<Datatype> {
        self.predefined
    }

    /// Returns the size of its data in bytes.
    pub fn size(&self) -> i64 {
        self.map.bounds.size
    }

    /// Returns its lower bound.
    pub fn lb(&self) -> i64 {
        self.map.bounds.lb
    }

    /// Returns its extent in bytes.
    pub fn extent(&self) -> i64 {
        self.map.bounds.extent()
    }

    /// Returns the lower bound of its data.
    pub fn true_lb(&self) -> i64 {
        self.map.bounds.true_lb
    }

    /// Returns the true extent: from the beginning of its data to the end, in bytes.
    pub fn true_extent(&self) -> i64 {
        self.map.bounds.true_extent()
    }

    /// Returns whether it is committed.
    pub fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Acquire)
    }

    pub(super) fn commit(&self) {
        self.committed.store(true, Ordering::Release);
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the program has freed it.
    pub(super) fn is_freed(&self) -> bool {
        self.predefined.is_none() && self.life().freed
    }

    /// Marks it as freed by the program. Returns whether its handle is now invalid because no operation holds it.
    pub(super) fn free(&self) -> bool {
        let mut life = self.life();
        life.freed = true;
        life.holders == 0
    }

    /// Keeps its handle valid until [`Type::release`].
    pub(super) fn hold(&self) {
        if self.predefined.is_none() {
            self.life().holders += 1;
        }
    }

    /// Ends a [`Type::hold`]. Returns whether its handle is now invalid: it has been freed, and this was the last hold.
    pub(super) fn release(&self) -> bool {
        if self.predefined.is_some() {
            return false;
        }
        let mut life = self.life();
        life.holders -= 1;
        life.freed && life.holders == 0
    }

    /// Returns its name, in the encoding that the program uses.
    pub fn name(&self) -> Vec<u8> {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        name.clone()
    }

    /// Returns its name for error messages.
    pub fn called(&self) -> String {
        match self.name() {
            name if name.is_empty() => "the datatype".to_owned(),
            name => String::from_utf8_lossy(&name).into_owned(),
        }
    }

    /// Sets its name.
    pub fn set_name(&self, text: Vec<u8>) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Returns the size of `count` elements in bytes. Fails if the count is negative or the size too large.
    pub fn packed_size(&self, count: i64) -> Result<usize> {
        if count < 0 {
            let text = format!("the count is {count}; it must be 0 or more");
            return Err(Error::new(ERR_COUNT, text));
        }
        let size = self.size().checked_mul(count);
        // The offsets of all elements must not overflow either.
        let size = size.filter(|_| self.extent().checked_mul(count).is_some());
        size.map(|size| size as usize).ok_or_else(|| {
            let text = format!("{count} elements of this datatype exceed the address space");
            Error::new(ERR_COUNT, text)
        })
    }

    /// Returns offset and length in bytes of `count` elements if they are contiguous.
    pub fn one_piece(&self, count: i64) -> Option<(isize, usize)> {
        let length = self.map.layout.run()?;
        let dense = count <= 1 || length as i64 == self.extent();
        dense.then_some((self.map.offset, length.checked_mul(count as usize)?))
    }

    /// Checks the buffer for `length` bytes of such elements. It may be null only if the displacements are addresses.
    pub fn check_buffer(&self, buffer: *const c_void, length: usize) -> Result {
        let is_address = self.true_lb().unsigned_abs() >= 4096;
        match buffer.is_null() && length != 0 && !is_address {
            true => super::address(buffer, 0, length).map(drop),
            false => Ok(()),
        }
    }

    /// Returns the number of basic elements in the first `bytes` bytes of such elements. Returns `None` if the bytes
    /// end within a basic element.
    pub fn elements_in(&self, bytes: u64) -> Option<i64> {
        let size = self.size() as u64;
        if size == 0 {
            return (bytes == 0).then_some(0);
        }
        let one = self.map.signature.totals().elements as u64;
        let rest = self.map.signature.elements_in((bytes % size) as usize)?;
        i64::try_from(u128::from(bytes / size) * u128::from(one) + rest as u128).ok()
    }

    /// Calls `visit` with the pieces that make up bytes `from .. to` of elements at this address, with absolute
    /// addresses as offsets.
    #[inline]
    fn pieces(&self, buffer: *const c_void, from: usize, to: usize, mut visit: impl FnMut(Piece)) {
        let base = buffer as isize;
        self.map.walk(from, to, &mut |mut piece: Piece| {
            if piece.stride == piece.block as isize {
                piece.block *= piece.count;
                piece.count = 1;
            }
            piece.offset = base.wrapping_add(piece.offset);
            visit(piece);
        });
    }

    /// Copies bytes `from .. to` of elements at `buffer` to `out`, contiguously.
    ///
    /// # Safety
    /// The elements are valid for reads, and `out` for writes.
    pub unsafe fn pack(&self, buffer: *const c_void, from: usize, to: usize, out: *mut u8) {
        let mut out = out;
        self.pieces(buffer, from, to, |piece| {
            let (block, count) = (piece.block, piece.count);
            let place = piece.offset as *const u8;
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { copy_blocks(place, piece.stride, out, block as isize, block, count) };
            out = out.wrapping_add(block * count);
        });
    }

    /// Copies `bytes` to bytes `from .. to` of elements at `buffer`.
    ///
    /// # Safety
    /// The elements are valid for writes, and `bytes` for reads.
    pub unsafe fn unpack(&self, bytes: *const u8, from: usize, to: usize, buffer: *mut c_void) {
        let mut bytes = bytes;
        self.pieces(buffer, from, to, |piece| {
            let (block, count) = (piece.block, piece.count);
            let place = piece.offset as *mut u8;
            // SAFETY: the caller upholds the safety contract of this function.
            unsafe { copy_blocks(bytes, block as isize, place, piece.stride, block, count) };
            bytes = bytes.wrapping_add(block * count);
        });
    }

    /// Returns the memory of `count` elements as views of the engine. Returns `None` if there are more than `limit`.
    pub fn views(&self, buffer: *const c_void, count: i64, limit: usize) -> Option<Vec<rg::View>> {
        let size = self.packed_size(count).ok()?;
        // The first elements already show whether a datatype has too many pieces, so the whole is not walked in vain.
        let mut views: Vec<rg::View> = Vec::new();
        let (mut from, mut step) = (0, self.size() as usize);
        while from < size {
            let to = size.min(from.saturating_add(step));
            self.pieces(buffer, from, to, |piece| {
                if views.len() <= limit {
                    add_view(&mut views, piece);
                }
            });
            if views.len() > limit {
                return None;
            }
            (from, step) = (to, step.saturating_mul(4));
        }
        Some(views)
    }
}

/// Adds a piece to the views, extending the last view if the piece continues it.
fn add_view(views: &mut Vec<rg::View>, piece: Piece) {
    let base = piece.offset as *mut c_void;
    if let Some(last) = views.last_mut()
        && last.block == piece.block
    {
        let distance = (base as isize).wrapping_sub(last.base as isize);
        let follows = |stride: isize| {
            let next = (last.count as isize).checked_mul(stride);
            (next == Some(distance)) && (piece.count == 1 || piece.stride == stride)
        };
        let stride = if last.count == 1 {
            distance
        } else {
            last.stride
        };
        if follows(stride) {
            last.stride = stride;
            last.count += piece.count;
            return;
        }
    }
    views.push(rg::View {
        base,
        block: piece.block,
        count: piece.count,
        stride: piece.stride,
    });
}

/// Allocates memory for `length` bytes. The vector stays empty: the memory is used by its pointer.
pub fn memory(length: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match bytes.try_reserve_exact(length) {
        Ok(()) => Ok(bytes),
        Err(_) => {
            let text = format!("there is no memory for {length} bytes of packed data");
            Err(Error::new(ERR_NO_MEM, text))
        }
    }
}
