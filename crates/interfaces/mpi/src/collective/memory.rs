//! The buffers of a collective: parts of elements, and their contiguous form.

use std::ffi::c_void;
use std::sync::Arc;

use crate::abi::*;
use crate::datatype::{self, Type, builtin};
use crate::error::{Error, Result};

/// A buffer as the caller passes it.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// The start of the buffer, or MPI_IN_PLACE.
    pub address: *mut c_void,
    /// Number of elements for each process.
    pub counts: Counts,
    /// Datatype of the elements.
    pub datatype: Datatype,
}

/// The number of elements for each process.
#[derive(Clone, Copy, Debug)]
pub enum Counts {
    /// The same number for each, one part after the other.
    Even(i64),
    /// For each a count, and a displacement in extents.
    Listed(Ints, Ints),
}

/// Returns a buffer with `count` elements for each process.
#[inline(always)]
pub fn even(address: *const c_void, count: i64, datatype: Datatype) -> Buffer {
    let counts = Counts::Even(count);
    Buffer {
        address: address.cast_mut(),
        counts,
        datatype,
    }
}

/// Returns a buffer whose parts have their own counts and displacements.
#[inline(always)]
pub fn listed(address: *const c_void, counts: Ints, displs: Ints, datatype: Datatype) -> Buffer {
    let counts = Counts::Listed(counts, displs);
    Buffer {
        address: address.cast_mut(),
        counts,
        datatype,
    }
}

impl Buffer {
    /// Returns whether it is MPI_IN_PLACE.
    #[inline(always)]
    pub fn is_in_place(&self) -> bool {
        self.address as usize == IN_PLACE
    }

    /// Returns whether each process has a count of its own.
    pub fn is_listed(&self) -> bool {
        matches!(self.counts, Counts::Listed(..))
    }

    /// Returns its memory for this many processes, after checking it. `name` is the name of the argument in errors.
    ///
    /// # Safety
    /// Arrays have an element for each process.
    pub unsafe fn memory(&self, name: &str, processes: usize) -> Result<Memory> {
        if self.is_in_place() {
            let text = format!("{name} may not be MPI_IN_PLACE here");
            return Err(Error::new(ERR_BUFFER, text));
        }
        let element = Element::of(self.datatype)?;
        let parts = match self.counts {
            Counts::Even(count) => {
                element.bytes(count)?;
                let parts = processes;
                Parts::Even { parts, count }
            }
            Counts::Listed(counts, displs) => {
                if processes > 0 && (counts.is_null() || displs.is_null()) {
                    let text = format!("an array of counts or displacements of {name} is null");
                    return Err(Error::new(ERR_ARG, text));
                }
                // SAFETY: the caller upholds the safety contract of this function.
                let part = |at| unsafe { element.part(counts.get(at), displs.get(at)) };
                Parts::Listed((0..processes).map(part).collect::<Result<_>>()?)
            }
        };
        let memory = Memory {
            address: self.address,
            element,
            parts,
        };
        memory.check(name)?;
        Ok(memory)
    }
}

/// The size and layout of an element.
#[derive(Clone, Debug)]
pub struct Element {
    /// The datatype, if elements are not contiguous.
    apart: Option<Arc<Type>>,
    /// Offset in bytes of the first byte of an element, if elements are contiguous.
    offset: isize,
    /// Size of an element in bytes.
    pub size: usize,
    /// Extent in bytes, from one element to the next.
    pub extent: i64,
}

impl Element {
    /// Returns the element of a committed datatype.
    pub fn of(datatype: Datatype) -> Result<Element> {
        if let Some(size) = builtin::size(datatype) {
            return Ok(Element {
                apart: None,
                offset: 0,
                size,
                extent: size as i64,
            });
        }
        let found = datatype::committed(datatype)?;
        let (size, extent) = (found.size() as usize, found.extent());
        let dense = found.one_piece(2);
        Ok(Element {
            offset: dense.map_or(0, |(offset, _)| offset),
            apart: dense.is_none().then_some(found),
            size,
            extent,
        })
    }

    /// Returns the size of `count` elements in bytes. Fails if they would not fit into memory.
    pub fn bytes(&self, count: i64) -> Result<usize> {
        let Ok(number) = usize::try_from(count) else {
            let text = format!("the count is {count}; it must be 0 or more");
            return Err(Error::new(ERR_COUNT, text));
        };
        let bytes = number.checked_mul(self.size);
        let addressable = self.extent.checked_mul(count).is_some();
        bytes
            .filter(|_| addressable)
            .ok_or_else(|| too_long(number))
    }

    fn part(&self, count: i64, displacement: i64) -> Result<Part> {
        let offset = self.extent.checked_mul(displacement);
        Ok(Part {
            bytes: self.bytes(count)?,
            offset: offset.ok_or_else(|| too_long(displacement.unsigned_abs() as usize))?,
        })
    }

    /// Returns whether the elements in memory have the same bytes as packed ones, at the buffer's address.
    pub fn is_packed(&self) -> bool {
        self.is_dense() && self.offset == 0
    }

    /// Returns whether elements are contiguous.
    pub fn is_dense(&self) -> bool {
        self.apart.is_none()
    }
}

fn too_long(count: usize) -> Error {
    let text = format!("{count} elements of this datatype exceed the address space");
    Error::new(ERR_COUNT, text)
}

/// Memory that a collective reads or writes.
#[derive(Clone, Debug)]
pub struct Memory {
    /// The address of the caller's buffer.
    pub address: *mut c_void,
    /// Its elements.
    pub element: Element,
    /// The parts for each rank.
    pub parts: Parts,
}

/// The parts of a buffer, by rank.
#[derive(Clone, Debug)]
pub enum Parts {
    /// Parts of the same number of elements, one after the other.
    Even {
        /// Number of parts.
        parts: usize,
        /// Number of elements of each part.
        count: i64,
    },
    /// Parts with their own lengths and offsets.
    Listed(Vec<Part>),
}

/// A part of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Length of its elements in bytes.
    pub bytes: usize,
    /// Offset from the buffer's address in bytes.
    pub offset: i64,
}

impl Memory {
    /// Returns the part of a rank.
    pub fn part(&self, rank: usize) -> Part {
        match &self.parts {
            Parts::Even { count, .. } => Part {
                bytes: *count as usize * self.element.size,
                // `check` has made sure that this does not overflow.
                offset: self.element.extent * *count * rank as i64,
            },
            Parts::Listed(parts) => parts[rank],
        }
    }

    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        match &self.parts {
            Parts::Even { parts, .. } => *parts,
            Parts::Listed(parts) => parts.len(),
        }
    }

    /// Returns the length of all elements in bytes.
    pub fn bytes(&self) -> usize {
        (0..self.parts()).map(|rank| self.part(rank).bytes).sum()
    }

    /// Returns the memory of one part.
    pub fn only(&self, rank: usize) -> Memory {
        let Part { bytes, offset } = self.part(rank);
        let count = bytes.checked_div(self.element.size).unwrap_or(0) as i64;
        Memory {
            address: self.address.wrapping_byte_offset(offset as isize),
            element: self.element.clone(),
            parts: Parts::Even { parts: 1, count },
        }
    }

    fn check(&self, name: &str) -> Result {
        let mut bytes = 0usize;
        if let Parts::Even { parts, count } = self.parts {
            let all = i64::try_from(parts)
                .ok()
                .and_then(|it| it.checked_mul(count));
            bytes = self.element.bytes(all.ok_or_else(|| too_long(parts))?)?;
        } else {
            for rank in 0..self.parts() {
                let sum = bytes.checked_add(self.part(rank).bytes);
                bytes = sum.ok_or_else(|| too_long(bytes))?;
            }
        }
        let checked = match &self.element.apart {
            Some(apart) => apart.check_buffer(self.address, bytes),
            None => datatype::address(self.address, self.element.offset, bytes).map(drop),
        };
        checked.map_err(|error| Error::new(error.class(), format!("{name}: {}", error.text())))
    }

    /// Returns the elements in contiguous form, for reading.
    ///
    /// # Safety
    /// The elements may be read. If they are contiguous, they stay valid until the collective is complete.
    pub unsafe fn give(&self) -> Result<Flat> {
        match self.in_place() {
            Some(flat) => Ok(flat),
            // SAFETY: the caller upholds the safety contract of this function.
            None => unsafe { self.copy() },
        }
    }

    /// Returns a contiguous copy of the elements.
    ///
    /// # Safety
    /// The elements may be read.
    pub unsafe fn copy(&self) -> Result<Flat> {
        let flat = self.room()?;
        // SAFETY: the caller upholds the safety contract of this function.
        self.each(&flat, |element, place, at, bytes| unsafe {
            element.pack(place, bytes, at);
        });
        Ok(flat)
    }

    /// Returns contiguous memory for received elements, which [`Memory::taken`] copies to the buffer. If `filled`, it
    /// has the present elements, on which the result depends.
    ///
    /// # Safety
    /// The elements may be read and written.
    pub unsafe fn take(&self, filled: bool) -> Result<Flat> {
        match self.in_place() {
            Some(flat) => Ok(flat),
            None if !filled => self.room(),
            // SAFETY: the caller upholds the safety contract of this function.
            None => unsafe { self.copy() },
        }
    }

    /// Copies received elements to the buffer.
    ///
    /// # Safety
    /// The elements may be written, and `flat` comes from [`Memory::take`].
    pub unsafe fn taken(&self, flat: &Flat) {
        if flat.own.is_none() {
            return;
        }
        // SAFETY: the caller upholds the safety contract of this function.
        self.each(flat, |element, place, at, bytes| unsafe {
            element.unpack(at, bytes, place);
        });
    }

    /// Copies received bytes, without the first `from` ones, to the elements.
    ///
    /// # Safety
    /// The elements may be written, and `flat` has as many bytes.
    pub unsafe fn taken_behind(&self, flat: &Flat, from: usize) {
        // SAFETY: the caller upholds the safety contract of this function.
        self.each(flat, |element, place, at, bytes| unsafe {
            element.unpack(at.wrapping_add(from), bytes, place);
        });
    }

    fn each(&self, flat: &Flat, visit: impl Fn(&Element, *mut c_void, *mut u8, usize)) {
        let mut at = flat.address.cast::<u8>();
        for rank in 0..self.parts() {
            let part = self.part(rank);
            let place = self.address.wrapping_byte_offset(part.offset as isize);
            visit(&self.element, place, at, part.bytes);
            at = at.wrapping_add(part.bytes);
        }
    }

    /// Returns the elements themselves if they are contiguous.
    fn in_place(&self) -> Option<Flat> {
        if !self.element.is_dense() {
            return None;
        }
        let address = self.address.wrapping_byte_offset(self.element.offset);
        let Parts::Listed(parts) = &self.parts else {
            return Some(Flat::even(address, self.part(0).bytes, None));
        };
        // The engine's offsets count from the lowest part.
        let full = || parts.iter().filter(|part| part.bytes > 0);
        let first = full().map(|part| part.offset).min().unwrap_or(0);
        let offset = |part: &Part| match part.bytes {
            0 => 0,
            _ => part.offset.wrapping_sub(first) as usize,
        };
        Some(Flat {
            address: address.wrapping_byte_offset(first as isize),
            each: 0,
            lengths: parts.iter().map(|part| part.bytes).collect(),
            offsets: parts.iter().map(offset).collect(),
            own: None,
        })
    }

    /// Returns separate contiguous memory for the elements.
    fn room(&self) -> Result<Flat> {
        let mut own = datatype::memory(self.bytes())?;
        let address = start(&mut own);
        let Parts::Listed(parts) = &self.parts else {
            return Ok(Flat::even(address, self.part(0).bytes, Some(own)));
        };
        let mut end = 0;
        let offsets = parts.iter().map(|part| {
            end += part.bytes;
            end - part.bytes
        });
        Ok(Flat {
            address,
            each: 0,
            offsets: offsets.collect(),
            lengths: parts.iter().map(|part| part.bytes).collect(),
            own: Some(own),
        })
    }
}

impl Element {
    /// Copies `bytes` bytes of elements to `to`, contiguously.
    ///
    /// # Safety
    /// The elements are valid for reads, and `to` for writes.
    pub unsafe fn pack(&self, elements: *const c_void, bytes: usize, to: *mut u8) {
        let elements = elements.wrapping_byte_offset(self.offset);
        match &self.apart {
            // SAFETY: the caller upholds the safety contract of this function.
            Some(apart) => unsafe { apart.pack(elements, 0, bytes, to) },
            // SAFETY: the caller upholds the safety contract of this function.
            None => unsafe { std::ptr::copy_nonoverlapping(elements.cast(), to, bytes) },
        }
    }

    /// Copies `bytes` contiguous bytes from `from` to elements.
    ///
    /// # Safety
    /// The elements are valid for writes, and `from` for reads.
    pub unsafe fn unpack(&self, from: *const u8, bytes: usize, elements: *mut c_void) {
        let elements = elements.wrapping_byte_offset(self.offset);
        match &self.apart {
            // SAFETY: the caller upholds the safety contract of this function.
            Some(apart) => unsafe { apart.unpack(from, 0, bytes, elements) },
            // SAFETY: the caller upholds the safety contract of this function.
            None => unsafe { std::ptr::copy_nonoverlapping(from, elements.cast(), bytes) },
        }
    }
}

/// Returns the address of memory. For empty memory it is null: the dangling address could equal MPI_IN_PLACE.
fn start(memory: &mut Vec<u8>) -> *mut c_void {
    match memory.capacity() {
        0 => std::ptr::null_mut(),
        _ => memory.as_mut_ptr().cast(),
    }
}

/// Contiguous elements in parts: the buffer itself, or separate memory.
#[derive(Debug)]
pub struct Flat {
    /// The address of the elements.
    pub address: *mut c_void,
    /// Length of each part in bytes, if all parts have the same length.
    pub each: usize,
    /// Length of each part in bytes otherwise.
    pub lengths: Vec<usize>,
    /// Offset of each part in bytes.
    pub offsets: Vec<usize>,
    own: Option<Vec<u8>>,
}

impl Flat {
    /// No elements.
    pub const NONE: Flat = Flat {
        address: std::ptr::null_mut(),
        each: 0,
        lengths: Vec::new(),
        offsets: Vec::new(),
        own: None,
    };

    /// Returns memory for this many bytes.
    pub fn room(bytes: usize) -> Result<Flat> {
        let mut own = datatype::memory(bytes)?;
        let address = start(&mut own);
        Ok(Flat::even(address, bytes, Some(own)))
    }

    /// Returns a copy of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Flat {
        let mut own = bytes.to_vec();
        let address = start(&mut own);
        Flat::even(address, bytes.len(), Some(own))
    }

    /// Returns parts with this length in bytes.
    fn even(address: *mut c_void, each: usize, own: Option<Vec<u8>>) -> Flat {
        Flat {
            address,
            each,
            own,
            ..Flat::NONE
        }
    }
}
