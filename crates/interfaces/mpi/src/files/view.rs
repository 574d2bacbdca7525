//! Views: the bytes of a file that a process can access, and the position of each.

use std::sync::Arc;

use super::representation::Representation;
use crate::abi::*;
use crate::datatype::layout::Piece;
use crate::datatype::map::Map;
use crate::datatype::{Type, get};
use crate::error::{Error, Result};

/// A view of a file.
pub struct View {
    /// Its displacement, in bytes of the file.
    pub displacement: i64,
    /// The unit of offsets.
    pub etype: Arc<Type>,
    /// The pattern of accessible bytes.
    pub filetype: Arc<Type>,
    /// The form of data in the file.
    pub representation: Representation,
    /// Size of an etype in the file, in bytes.
    pub unit: usize,
    /// The order of its bytes in the file.
    order: Order,
    /// Average length of its contiguous pieces in bytes; `usize::MAX` if all is contiguous.
    pub piece: usize,
    /// The type map of the filetype, with the sizes that elements have in the file.
    map: Map,
}

/// The order in the file of consecutive bytes of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Ascending.
    Rising,
    /// Ascending within a filetype, but the next filetype begins before the end of the last one: its extent is less
    /// than its span.
    RisingWithin,
    /// Some bytes occur several times in a filetype, which is allowed in files open only for reading.
    Overlapping,
}

/// Part of an access: contiguous bytes of the file, with their index in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Offset in the file in bytes.
    pub offset: i64,
    /// Index in the data.
    pub at: usize,
    /// Length in bytes.
    pub length: usize,
}

impl Run {
    /// Returns the offset of the byte after its last one.
    pub fn end(&self) -> i64 {
        self.offset + self.length as i64
    }
}

fn wrong(text: String) -> Error {
    Error::new(ERR_ARG, text)
}

impl View {
    /// Returns the default view of a newly opened file: all of its bytes.
    pub fn of_bytes() -> Result<View> {
        let native = Representation::Native("native");
        View::new(0, get(BYTE)?, get(BYTE)?, native, true)
    }

    /// Returns a view. If the file can be written, no byte may occur twice in a filetype.
    pub fn new(
        displacement: i64,
        etype: Arc<Type>,
        filetype: Arc<Type>,
        representation: Representation,
        written: bool,
    ) -> Result<View> {
        let unit_map = representation.map(&etype)?;
        let map = representation.map(&filetype)?;
        let (unit, size) = (unit_map.bounds.size, map.bounds.size);
        if unit <= 0 {
            return Err(wrong("the etype has no data".to_owned()));
        }
        if size % unit != 0 {
            let text = format!(
                "the filetype has {size} bytes of data, the etype {unit}: the filetype must consist of whole etypes"
            );
            return Err(wrong(text));
        }
        let order = check_order(&map, written)?;
        let mut pieces = 0;
        map.walk(0, size as usize, &mut |piece: Piece| {
            let dense = piece.stride == piece.block as isize;
            pieces += if dense { 1 } else { piece.count };
        });
        let dense = pieces == 1 && size == map.bounds.extent();
        let piece = match dense {
            true => usize::MAX,
            false => size as usize / pieces.max(1),
        };
        Ok(View {
            displacement,
            etype,
            filetype,
            representation,
            unit: unit as usize,
            order,
            piece,
            map,
        })
    }

    /// Returns the number of bytes of data in one filetype.
    fn tile(&self) -> usize {
        self.map.bounds.size as usize
    }

    /// Calls `visit` with the runs of `length` bytes at index `from` of the view. Adjacent runs are merged. Stops when
    /// `visit` returns false.
    pub fn runs(&self, from: usize, length: usize, mut visit: impl FnMut(Run) -> bool) {
        let (mut pending, mut at, mut on): (Option<Run>, usize, bool) = (None, 0, true);
        self.map.walk(from, from + length, &mut |piece: Piece| {
            let mut index = 0;
            while on && index < piece.count {
                let dense = piece.stride == piece.block as isize;
                let (times, block) = match dense {
                    true => (piece.count, piece.block * piece.count),
                    false => (1, piece.block),
                };
                let place = piece.offset + index as isize * piece.stride;
                let run = Run {
                    offset: self.displacement + place as i64,
                    at,
                    length: block,
                };
                at += block;
                index += times;
                match &mut pending {
                    Some(last) if last.end() == run.offset => last.length += block,
                    _ => {
                        on = pending.replace(run).is_none_or(&mut visit);
                    }
                }
            }
        });
        if on && let Some(last) = pending {
            visit(last);
        }
    }

    /// Returns the offset in the file of the byte at index `from` of the view.
    pub fn place(&self, from: usize) -> i64 {
        let mut place = self.displacement;
        self.runs(from, 1, |run| {
            place = run.offset;
            false
        });
        place
    }

    /// Converts an offset in etypes to one in bytes of the file.
    pub fn byte_of(&self, offset: i64) -> Result<i64> {
        Ok(self.place(self.bytes(offset)?))
    }

    /// Converts an offset in etypes to an index in bytes of the view.
    pub fn bytes(&self, offset: i64) -> Result<usize> {
        let bytes = usize::try_from(offset).ok();
        let bytes = bytes.and_then(|it| it.checked_mul(self.unit));
        bytes.filter(|&it| self.has_place(it)).ok_or_else(|| {
            wrong(format!(
                "the offset is {offset}; it must be 0 or more, and within the maximum file size"
            ))
        })
    }

    /// Returns whether this byte of the view, and all before it, have a valid offset in the file.
    pub fn has_place(&self, byte: usize) -> bool {
        let (tile, bounds) = ((byte / self.tile().max(1)) as i64, &self.map.bounds);
        let begin = tile.checked_mul(bounds.extent());
        let Some(begin) = begin.and_then(|it| it.checked_add(self.displacement)) else {
            return false;
        };
        // With a negative extent, offsets of filetypes decrease.
        let (low, high) = (begin.min(self.displacement), begin.max(self.displacement));
        let end = high.checked_add(bounds.extent().max(bounds.true_ub).max(0));
        low.saturating_add(bounds.true_lb) >= 0 && end.is_some()
    }

    /// Returns whether the bytes of an access have ascending offsets in the file.
    pub fn rises(&self, from: usize, length: usize) -> bool {
        let tile = self.tile().max(1);
        match self.order {
            Order::Rising => true,
            Order::RisingWithin => from / tile == (from + length.max(1) - 1) / tile,
            Order::Overlapping => false,
        }
    }

    /// Returns how many bytes of the view are before this offset in the file: a number from `low` to `high`. Between
    /// these the view must be ascending.
    pub fn bytes_before(&self, end: i64, mut low: usize, mut high: usize) -> usize {
        // Bytes before `low` are before the offset; the byte at `high` and all later ones are not.
        while low < high {
            let middle = low + (high - low) / 2;
            match self.place(middle) < end {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Returns how many etypes begin before this offset in the file. If filetypes overlap, counts those of which all
    /// bytes are before it if the extent is positive, otherwise only those of the first filetype.
    pub fn etypes_before(&self, end: i64) -> i64 {
        let (tile, extent) = (self.tile(), self.map.bounds.extent());
        if tile == 0 || end <= self.displacement {
            return 0;
        }
        let tiles = match extent {
            1.. => (end - self.displacement) / extent + 1,
            _ => 1,
        };
        let bytes = self.bytes_before(end, 0, tile.saturating_mul(tiles as usize));
        bytes.div_ceil(self.unit) as i64
    }

    /// Returns the offset in the file of the first byte of an access, and that after the last one. Returns `None` if
    /// the access is empty.
    pub fn range(&self, from: usize, length: usize) -> Option<(i64, i64)> {
        let last = length.checked_sub(1)?;
        if self.tile() == 0 {
            return None;
        }
        if self.rises(from, length) {
            return Some((self.place(from), self.place(from + last) + 1));
        }
        let mut range = (i64::MAX, i64::MIN);
        self.runs(from, length, |run| {
            range = (range.0.min(run.offset), range.1.max(run.end()));
            true
        });
        Some(range)
    }

    /// Fails if the filetype has no data but the access has.
    pub fn check_data(&self, length: usize) -> Result {
        match self.tile() == 0 && length != 0 {
            true => {
                let text = "the view's filetype contains no data, so no data can be accessed";
                Err(Error::new(ERR_IO, text))
            }
            false => Ok(()),
        }
    }
}

/// Checks that the bytes of a filetype are in ascending order, and that none occurs twice if they can be written.
/// Filetypes may overlap each other: their bytes are accessed one filetype after the other.
fn check_order(map: &Map, written: bool) -> Result<Order> {
    let (size, extent) = (map.bounds.size as usize, map.bounds.extent());
    let (mut first, mut begin, mut end) = (None, 0, 0);
    let (mut falls, mut overlaps) = (false, false);
    map.walk(0, size, &mut |piece: Piece| {
        let (offset, block) = (piece.offset as i64, piece.block as i64);
        let (count, stride) = (piece.count as i64, piece.stride as i64);
        falls |= offset < begin || count > 1 && stride < 0;
        overlaps |= offset < end || count > 1 && stride < block;
        first.get_or_insert(offset);
        begin = offset + (count - 1) * stride;
        end = end.max(begin + block);
    });
    let text = if falls {
        "the filetype's displacements must be 0 or more and must not decrease"
    } else if overlaps && written {
        "the filetype contains bytes twice, which is not allowed in a file that is open for writing"
    } else {
        return Ok(match first {
            _ if overlaps => Order::Overlapping,
            Some(first) if i64::saturating_add(first, extent) < end => Order::RisingWithin,
            _ => Order::Rising,
        });
    };
    Err(Error::new(ERR_IO, text))
}
