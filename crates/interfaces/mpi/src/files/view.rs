//! Views: which bytes of a file a process sees, and where each of them is.

use std::sync::Arc;

use super::representation::Representation;
use crate::abi::*;
use crate::datatype::layout::Piece;
use crate::datatype::map::Map;
use crate::datatype::{Type, get};
use crate::error::{Error, Result};

/// A view of a file.
pub struct View {
    /// Where it begins, in bytes of the file.
    pub displacement: i64,
    /// The unit of offsets.
    pub etype: Arc<Type>,
    /// The bytes that are visible.
    pub filetype: Arc<Type>,
    /// How data lies in the file.
    pub representation: Representation,
    /// Bytes of an etype in the file.
    pub unit: usize,
    /// The order of its bytes.
    order: Order,
    /// How long its pieces are in the mean.
    pub piece: usize,
    /// The filetype with the sizes that elements have in the file.
    map: Map,
}

/// How bytes that follow each other in the view lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Each lies behind the one before.
    Rising,
    /// So they do within a filetype. Another one begins in front of the last one's end: its extent is less than its span.
    RisingWithin,
    /// Bytes are visible twice within a filetype, which those of a file that is only read may be.
    Overlapping,
}

/// Part of an access: bytes of the file, and their place in the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// In the file.
    pub offset: i64,
    /// In the data.
    pub at: usize,
    /// In bytes.
    pub length: usize,
}

impl Run {
    /// Behind its last byte.
    pub fn end(&self) -> i64 {
        self.offset + self.length as i64
    }
}

fn wrong(text: String) -> Error {
    Error::new(ERR_ARG, text)
}

impl View {
    /// That of a file that is just opened: all of its bytes.
    pub fn of_bytes() -> Result<View> {
        let native = Representation::Native("native");
        View::new(0, get(BYTE)?, get(BYTE)?, native, true)
    }

    /// A view. If the file is written, bytes may not be twice in a filetype.
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
                "the filetype has {size} bytes of data, the etype {unit}: it is to be made of etypes"
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

    /// The bytes of data in one filetype.
    fn tile(&self) -> usize {
        self.map.bounds.size as usize
    }

    /// Calls `visit` with the runs of this many bytes, the first of them behind `from` bytes of the view. Runs that touch
    /// are one. It goes on while that returns `true`.
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

    /// Where in the file the byte behind `from` bytes of the view is.
    pub fn place(&self, from: usize) -> i64 {
        let mut place = self.displacement;
        self.runs(from, 1, |run| {
            place = run.offset;
            false
        });
        place
    }

    /// Where an offset in etypes is, in bytes of the file.
    pub fn byte_of(&self, offset: i64) -> Result<i64> {
        Ok(self.place(self.bytes(offset)?))
    }

    /// Where an offset in etypes is, in bytes of the view.
    pub fn bytes(&self, offset: i64) -> Result<usize> {
        let bytes = usize::try_from(offset).ok();
        let bytes = bytes.and_then(|it| it.checked_mul(self.unit));
        bytes.filter(|&it| self.has_place(it)).ok_or_else(|| {
            wrong(format!(
                "the offset is {offset}; it is 0 or more, and no further than files can be"
            ))
        })
    }

    /// Whether this byte of the view, and all in front of it, have a place in the file: a number, 0 or more.
    pub fn has_place(&self, byte: usize) -> bool {
        let (tile, bounds) = ((byte / self.tile().max(1)) as i64, &self.map.bounds);
        let begin = tile.checked_mul(bounds.extent());
        let Some(begin) = begin.and_then(|it| it.checked_add(self.displacement)) else {
            return false;
        };
        // Filetypes of a negative extent go down.
        let (low, high) = (begin.min(self.displacement), begin.max(self.displacement));
        let end = high.checked_add(bounds.extent().max(bounds.true_ub).max(0));
        low.saturating_add(bounds.true_lb) >= 0 && end.is_some()
    }

    /// Whether bytes of an access that follow each other do so in the file.
    pub fn rises(&self, from: usize, length: usize) -> bool {
        let tile = self.tile().max(1);
        match self.order {
            Order::Rising => true,
            Order::RisingWithin => from / tile == (from + length.max(1) - 1) / tile,
            Order::Overlapping => false,
        }
    }

    /// How many bytes of the view lie in front of this byte of the file: a number from `low` to `high`, between which
    /// the view rises.
    pub fn bytes_before(&self, end: i64, mut low: usize, mut high: usize) -> usize {
        // Bytes before `low` lie in front, that at `high` and later ones do not.
        while low < high {
            let middle = low + (high - low) / 2;
            match self.place(middle) < end {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// How many etypes begin in front of this byte of the file. Where filetypes begin in front of the last one's end,
    /// those of which all bytes do, if extents are 1 or more, and those of one filetype otherwise.
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

    /// Where the first byte of an access in the file is, and behind the last one. `None` of an empty one.
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

    /// Whether an access of this many bytes is possible.
    pub fn check_data(&self, length: usize) -> Result {
        match self.tile() == 0 && length != 0 {
            true => {
                let text = "the view's filetype has no data, so there is no place for any";
                Err(Error::new(ERR_IO, text))
            }
            false => Ok(()),
        }
    }
}

/// The bytes of a filetype lie in the order in which they are read, and if they are written, none is there twice. Filetypes may
/// begin in front of the last one's end: their bytes are accessed one filetype after the other.
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
        "the filetype's displacements are 0 or more, and none is less than the one before"
    } else if overlaps && written {
        "bytes are twice in the filetype; the file is open for writing, where they may not be"
    } else {
        return Ok(match first {
            _ if overlaps => Order::Overlapping,
            Some(first) if i64::saturating_add(first, extent) < end => Order::RisingWithin,
            _ => Order::Rising,
        });
    };
    Err(Error::new(ERR_IO, text))
}
