//! A datatype, and moving bytes by it.

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

/// How a datatype was made, as MPI_Type_get_contents tells it.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// MPI_COMBINER_.
    pub combiner: c_int,
    /// In the order of the standard, as the others are.
    pub integers: Vec<c_int>,
    /// Addresses.
    pub addresses: Vec<i64>,
    /// Large counts: only if it was made with a call for large counts.
    pub counts: Vec<i64>,
    /// Datatypes.
    pub types: Types,
}

/// The types that one was made of.
#[derive(Clone, Debug)]
pub enum Types {
    /// One at most, as most types have.
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
    /// Takes out those that nothing else refers to, and drops the others.
    fn take_last(&mut self, last: &mut Vec<Type>) {
        match self {
            Types::One(one) => last.extend(one.take().and_then(Arc::into_inner)),
            Types::Many(many) => last.extend(many.drain(..).filter_map(Arc::into_inner)),
        }
    }
}

impl Drop for Types {
    /// Drops a long chain of types without a recursion as deep.
    fn drop(&mut self) {
        let mut left = Vec::new();
        self.take_last(&mut left);
        while let Some(mut last) = left.pop() {
            last.made.types.take_last(&mut left);
        }
    }
}

/// A datatype. Its layout never changes; its name, its attributes and whether it is committed may.
pub struct Type {
    map: Map,
    made: Made,
    /// The handle of a type that cannot be freed.
    predefined: Option<Datatype>,
    committed: AtomicBool,
    name: Mutex<Vec<u8>>,
    life: Mutex<Life>,
    /// Its attributes.
    pub attributes: Attributes<Datatype>,
}

/// How long a type's handle leads to it.
#[derive(Debug, Default)]
struct Life {
    /// Operations that need the handle.
    holders: usize,
    /// The program has freed it.
    freed: bool,
}

impl std::fmt::Debug for Type {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = (self.size(), self.lb(), self.extent());
        write!(to, "Type {{ size, lb, extent: {fields:?} }}")
    }
}

impl Type {
    /// A new one.
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

    /// One that is predefined.
    pub fn named(handle: Datatype, name: &str, map: Map) -> Type {
        let made = Made {
            combiner: COMBINER_NAMED,
            ..Made::default()
        };
        Type::predefined(handle, name, map, made)
    }

    /// One that cannot be freed.
    pub fn predefined(handle: Datatype, name: &str, map: Map, made: Made) -> Type {
        Type {
            predefined: Some(handle),
            committed: AtomicBool::new(true),
            name: Mutex::new(name.as_bytes().to_vec()),
            ..Type::new(map, made)
        }
    }

    /// Another one that stands for what this one does, made as this one was.
    pub fn again(&self) -> Type {
        let again = Type::new(self.map.clone(), self.made.clone());
        again
            .committed
            .store(self.is_committed(), Ordering::Release);
        again
    }

    /// A duplicate, which is committed if this one is.
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

    /// Its type map.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// How it was made.
    pub fn made(&self) -> &Made {
        &self.made
    }

    /// Its handle, if it cannot be freed.
    pub fn predefined_handle(&self) -> Option<Datatype> {
        self.predefined
    }

    /// Bytes of its data.
    pub fn size(&self) -> i64 {
        self.map.bounds.size
    }

    /// Its lower bound.
    pub fn lb(&self) -> i64 {
        self.map.bounds.lb
    }

    /// Bytes from one element of it to the next.
    pub fn extent(&self) -> i64 {
        self.map.bounds.extent()
    }

    /// Where its data begins.
    pub fn true_lb(&self) -> i64 {
        self.map.bounds.true_lb
    }

    /// Bytes from the beginning of its data to the end.
    pub fn true_extent(&self) -> i64 {
        self.map.bounds.true_extent()
    }

    /// Whether messages may have it.
    pub fn is_committed(&self) -> bool {
        self.committed.load(Ordering::Acquire)
    }

    pub(super) fn commit(&self) {
        self.committed.store(true, Ordering::Release);
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program has freed it.
    pub(super) fn is_freed(&self) -> bool {
        self.predefined.is_none() && self.life().freed
    }

    /// The program frees it. Whether its handle is stale now: nobody holds that.
    pub(super) fn free(&self) -> bool {
        let mut life = self.life();
        life.freed = true;
        life.holders == 0
    }

    /// Its handle is needed until [`Type::release`].
    pub(super) fn hold(&self) {
        if self.predefined.is_none() {
            self.life().holders += 1;
        }
    }

    /// Whether its handle is stale now: it has been freed, and this was the last one that held it.
    pub(super) fn release(&self) -> bool {
        if self.predefined.is_some() {
            return false;
        }
        let mut life = self.life();
        life.holders -= 1;
        life.freed && life.holders == 0
    }

    /// Its name, in whatever letters the program has.
    pub fn name(&self) -> Vec<u8> {
        let name = self.name.lock().unwrap_or_else(PoisonError::into_inner);
        name.clone()
    }

    /// Its name for a sentence.
    pub fn called(&self) -> String {
        match self.name() {
            name if name.is_empty() => "the datatype".to_owned(),
            name => String::from_utf8_lossy(&name).into_owned(),
        }
    }

    /// Gives it a name.
    pub fn set_name(&self, text: Vec<u8>) {
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// The bytes of this many elements.
    pub fn packed_size(&self, count: i64) -> Result<usize> {
        if count < 0 {
            let text = format!("the count is {count}; it is 0 or more");
            return Err(Error::new(ERR_COUNT, text));
        }
        let size = self.size().checked_mul(count);
        // Addresses of all of them have to be numbers too.
        let size = size.filter(|_| self.extent().checked_mul(count).is_some());
        size.map(|size| size as usize).ok_or_else(|| {
            let text = format!("{count} elements of this datatype are longer than memory");
            Error::new(ERR_COUNT, text)
        })
    }

    /// Offset and length of this many elements if they are one piece.
    pub fn one_piece(&self, count: i64) -> Option<(isize, usize)> {
        let length = self.map.layout.run()?;
        let dense = count <= 1 || length as i64 == self.extent();
        dense.then_some((self.map.offset, length.checked_mul(count as usize)?))
    }

    /// A buffer for this many bytes of such elements: only displacements that are addresses go without one.
    pub fn check_buffer(&self, buffer: *const c_void, length: usize) -> Result {
        let is_address = self.true_lb().unsigned_abs() >= 4096;
        match buffer.is_null() && length != 0 && !is_address {
            true => super::address(buffer, 0, length).map(drop),
            false => Ok(()),
        }
    }

    /// How many basic elements the first `bytes` bytes of such elements are; `None` if that is no whole number.
    pub fn elements_in(&self, bytes: u64) -> Option<i64> {
        let size = self.size() as u64;
        if size == 0 {
            return (bytes == 0).then_some(0);
        }
        let one = self.map.signature.totals().elements as u64;
        let rest = self.map.signature.elements_in((bytes % size) as usize)?;
        i64::try_from(u128::from(bytes / size) * u128::from(one) + rest as u128).ok()
    }

    /// Calls `visit` with the pieces that bytes `from .. to` of elements at this address are, relative to address 0.
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

    /// Copies bytes `from .. to` of elements at `buffer` to `out`.
    ///
    /// # Safety
    /// The elements may be read, `out` written.
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

    /// Copies `bytes` to the places of bytes `from .. to` of elements at `buffer`.
    ///
    /// # Safety
    /// The elements may be written, `bytes` read.
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

    /// The memory of this many elements as views of the engine's, if these are few.
    pub fn views(&self, buffer: *const c_void, count: i64, limit: usize) -> Option<Vec<rg::View>> {
        let size = self.packed_size(count).ok()?;
        // A type with too many pieces shows it in its first elements: the whole is not walked for nothing.
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

/// Adds a piece to views; one that continues the last view prolongs it.
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

/// Memory for this many bytes, to be used by its pointer: the vector is empty.
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
