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
    /// Whether bytes are visible twice, which those of a file that is only read may be.
    pub overlaps: bool,
    /// How long its pieces are in the mean.
    pub piece: usize,
    /// The filetype with the sizes that elements have in the file.
    map: Map,
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

    /// A view. If the file is written, bytes may not be visible twice.
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
        let overlaps = check_order(&map, written)?;
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
            overlaps,
            piece,
            map,
        })
    }

    /// The bytes of data in one filetype.
    fn tile(&self) -> usize {
        self.map.bounds.size as usize
    }

    /// Calls `visit` with the runs of so many bytes, the first of them behind `from` bytes of the view. Runs that touch
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
        // The place in the file has to be a number too.
        let tiles = bytes.map(|it| it / self.tile().max(1) + 1);
        let room = tiles.and_then(|it| (it as i64).checked_mul(self.map.bounds.extent()));
        let room = room.and_then(|it| it.checked_add(self.displacement));
        match (bytes, room) {
            (Some(bytes), Some(0..)) => Ok(bytes),
            _ => Err(wrong(format!(
                "the offset is {offset}; it is 0 or more, and no further than files can be"
            ))),
        }
    }

    /// How many bytes of the view lie in front of this byte of the file.
    pub fn bytes_before(&self, end: i64) -> usize {
        let (tile, extent) = (self.tile(), self.map.bounds.extent());
        if tile == 0 || end <= self.displacement {
            return 0;
        }
        let tiles = (end - self.displacement) / extent.max(1) + 1;
        let (mut low, mut high) = (0, tile.saturating_mul(tiles as usize));
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

    /// How many etypes begin in front of this byte of the file.
    pub fn etypes_before(&self, end: i64) -> i64 {
        self.bytes_before(end).div_ceil(self.unit) as i64
    }

    /// Where the first and the last byte of an access are: offset, and behind the end. `None` of an empty one.
    pub fn range(&self, from: usize, length: usize) -> Option<(i64, i64)> {
        let last = length.checked_sub(1)?;
        match self.tile() {
            0 => None,
            _ => Some((self.place(from), self.place(from + last) + 1)),
        }
    }

    /// Whether an access of so many bytes is possible.
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

/// The bytes of a filetype lie in the order in which they are read. Whether some are there twice.
fn check_order(map: &Map, written: bool) -> Result<bool> {
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
    if size != 0 {
        falls |= extent < 1;
        overlaps |= first.unwrap_or(0) + extent < end;
    }
    let text = if falls {
        "the filetype's displacements are 0 or more, none is less than the one before, and its extent is 1 or more"
    } else if overlaps && written {
        "bytes are twice in the filetype, or in two of them; the file is open for writing, where they may not be"
    } else {
        return Ok(overlaps);
    };
    Err(Error::new(ERR_IO, text))
}
