//! Type maps of derived datatypes, as MPI's constructors make them. All functions return `None` on overflow.

use std::collections::hash_map::Entry;
use std::ffi::c_int;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bounds::Bounds;
use super::layout::LayoutList;
use super::map::{Joining, Map};
use super::signature::Signature;
use crate::abi::*;

/// Number of members of a structure up to which equal members are not shared.
const MAX_UNGROUPED_MEMBERS: usize = 8;

/// Returns the map of `count` blocks of `length` elements, `stride` bytes apart.
pub fn hvector(old: &Map, count: i64, length: i64, stride: i64) -> Option<Map> {
    // The number of elements without bytes may overflow.
    let elements = count.saturating_mul(length);
    let signature = Signature::repeated(&old.signature, elements as usize);
    let block = old.repeated_as(length, old.bounds.extent(), &signature)?;
    block.repeated_as(count, stride, &signature)
}

/// Returns the map of blocks with these numbers of elements at these displacements in bytes.
pub fn hindexed(old: &Map, blocks: impl IntoIterator<Item = (i64, i64)>) -> Option<Map> {
    let blocks = blocks.into_iter();
    if let Some(size) = old.dense() {
        return dense_blocks(old, size, blocks);
    }
    let mut known: FxHashMap<i64, Map> = FxHashMap::default();
    let mut joining = Joining::with_capacity(blocks.size_hint().0);
    let mut elements = 0i64;
    for (length, displacement) in blocks {
        if length == 0 {
            continue;
        }
        let block = match known.entry(length) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(old.block(length)?),
        };
        joining.add(block, displacement)?;
        elements = elements.checked_add(length)?;
    }
    let signature = Signature::repeated(&old.signature, elements as usize);
    Some(joining.finish(signature))
}

/// Returns the map of blocks of elements without gaps, the common case, without making a map for each block. `size` is
/// the size of an element in bytes.
fn dense_blocks(old: &Map, size: i64, blocks: impl Iterator<Item = (i64, i64)>) -> Option<Map> {
    let mut runs = DenseRuns::with_capacity(blocks.size_hint().0);
    for (length, displacement) in blocks.filter(|&(length, _)| length != 0) {
        runs.add(old, displacement, length.checked_mul(size)?)?;
    }
    if runs.bytes == 0 {
        return Some(Map::empty());
    }
    let signature = Signature::repeated(&old.signature, (runs.bytes / size) as usize);
    runs.finish(old.bounds, signature)
}

/// Runs of bytes without gaps, from which a type map is made.
struct DenseRuns {
    layouts: LayoutList,
    /// Length of all runs in bytes.
    bytes: i64,
    /// Beginning of the lowest run and end of the highest one, as displacements in bytes.
    low: i64,
    high: i64,
}

impl DenseRuns {
    fn with_capacity(runs: usize) -> DenseRuns {
        DenseRuns {
            layouts: LayoutList::with_capacity(runs),
            bytes: 0,
            low: i64::MAX,
            high: i64::MIN,
        }
    }

    /// Adds elements of `old` at a displacement; `length` is their total length in bytes. Returns `None` on overflow.
    fn add(&mut self, old: &Map, displacement: i64, length: i64) -> Option<()> {
        let begin = old.bounds.lb.checked_add(displacement)?;
        let end = begin.checked_add(length)?;
        (self.low, self.high) = (self.low.min(begin), self.high.max(end));
        self.bytes = self.bytes.checked_add(length)?;
        self.layouts.add_run(begin as isize, length as usize);
        Some(())
    }

    /// Returns the type map of all runs, of which there is at least one. `bounds` has the properties that do not follow
    /// from the runs. Returns `None` on overflow.
    fn finish(self, bounds: Bounds, signature: Arc<Signature>) -> Option<Map> {
        let DenseRuns {
            layouts,
            bytes,
            low,
            high,
        } = self;
        high.checked_sub(low)?;
        let (offset, layout) = layouts.finish();
        Some(Map {
            offset,
            layout,
            bounds: Bounds {
                size: bytes,
                lb: low,
                ub: high,
                true_lb: low,
                true_ub: high,
                ..bounds
            },
            signature,
        })
    }
}

/// Returns the map of a structure. Each block has a number of elements, a displacement in bytes, and a map.
pub fn structure<'a>(
    blocks: impl IntoIterator<Item = (i64, i64, &'a Map), IntoIter: Clone>,
) -> Option<Map> {
    let blocks = blocks.into_iter();
    if let Some(map) = dense_structure(blocks.clone()) {
        return Some(map);
    }
    // Few blocks are made one by one. Among many blocks, equal ones are made once.
    let is_short = blocks.size_hint().0 <= MAX_UNGROUPED_MEMBERS;
    let mut known: FxHashMap<(i64, *const Map), Map> = FxHashMap::default();
    let mut joining = Joining::with_capacity(blocks.size_hint().0);
    let mut signatures = Vec::with_capacity(blocks.size_hint().0);
    for (length, displacement, old) in blocks {
        let made;
        let block = match known.entry((length, std::ptr::from_ref(old))) {
            _ if is_short => {
                made = old.block(length)?;
                &made
            }
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(old.block(length)?),
        };
        joining.add(block, displacement)?;
        signatures.push(block.signature.clone());
    }
    joining.finish(Signature::listed(signatures)).padded()
}

/// Returns the map of a structure whose members are elements of basic types, the common case, without making a map for
/// each member. Returns `None` if it is no such structure, has no elements, or overflows.
fn dense_structure<'a>(blocks: impl Iterator<Item = (i64, i64, &'a Map)>) -> Option<Map> {
    let room = blocks.size_hint().0;
    let mut runs = DenseRuns::with_capacity(room);
    let mut elements = Vec::with_capacity(room);
    let mut alignment = 1;
    for (length, displacement, old) in blocks.filter(|&(length, ..)| length != 0) {
        let (Signature::Of(basic, inner), Some(size)) = (&*old.signature, old.dense()) else {
            return None;
        };
        runs.add(old, displacement, length.checked_mul(size)?)?;
        alignment = alignment.max(old.bounds.alignment);
        Signature::append(&mut elements, basic, length as usize * inner);
    }
    if runs.bytes == 0 {
        return None;
    }
    let bounds = Bounds {
        alignment,
        empty: false,
        ..Bounds::EMPTY
    };
    runs.finish(bounds, Signature::of_elements(elements))?
        .padded()
}

/// Returns the dimensions of an array, the contiguous one first.
pub fn nearest_first(dimensions: usize, order: c_int) -> impl Iterator<Item = usize> {
    (0..dimensions).map(move |index| match order {
        ORDER_C => dimensions - 1 - index,
        _ => index,
    })
}

/// Returns the map of a subarray. `sizes` has for each dimension the size of the array, the size of the subarray, and
/// its start.
pub fn subarray(old: &Map, sizes: &[[i64; 3]], order: c_int) -> Option<Map> {
    let elements = sizes.iter().map(|[_, part, _]| *part);
    let elements = elements.fold(1, i64::saturating_mul);
    let signature = Signature::repeated(&old.signature, elements as usize);
    let (mut map, mut stride) = (old.clone(), old.bounds.extent());
    for dimension in nearest_first(sizes.len(), order) {
        let [size, part, start] = sizes[dimension];
        map = map.repeated_as(part, stride, &signature)?;
        map = map.shifted(start.checked_mul(stride)?)?;
        stride = stride.checked_mul(size)?;
    }
    map.resized(0, stride)
}

/// The share of a process in a dimension of a distributed array.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Size of the dimension in elements.
    pub size: i64,
    /// Number of elements of a block: as many are distributed to a process at a time.
    pub block: i64,
    /// Number of processes in this dimension.
    pub processes: i64,
    /// This process's coordinate in this dimension.
    pub coordinate: i64,
}

/// Returns the map of a process's share of an array.
pub fn darray(old: &Map, shares: &[Share], order: c_int) -> Option<Map> {
    let (mut map, mut stride) = (old.clone(), old.bounds.extent());
    for dimension in nearest_first(shares.len(), order) {
        map = dealt(&map, shares[dimension], stride)?;
        stride = stride.checked_mul(shares[dimension].size)?;
    }
    map.resized(0, stride)
}

/// Returns the map of a process's share of one dimension, whose elements are `stride` bytes apart.
fn dealt(old: &Map, share: Share, stride: i64) -> Option<Map> {
    let Share {
        size,
        block,
        processes,
        coordinate,
    } = share;
    let first = coordinate.checked_mul(block)?;
    let round = processes.checked_mul(block)?;
    if first >= size {
        return Some(Map::empty());
    }
    // Whole blocks, and the elements of a last, shorter block.
    let left = size - first;
    let whole = left / round + i64::from(left % round >= block);
    let last = if left % round >= block {
        0
    } else {
        left % round
    };
    let blocks = old.repeated(block, stride)?;
    let blocks = blocks.repeated(whole, round.checked_mul(stride)?)?;
    let blocks = blocks.shifted(first.checked_mul(stride)?)?;
    let begin = first.checked_add(whole.checked_mul(round)?)?;
    let rest = old.repeated(last, stride)?;
    let rest = match last {
        0 => rest,
        _ => rest.shifted(begin.checked_mul(stride)?)?,
    };
    Map::joined(&[blocks, rest])
}
