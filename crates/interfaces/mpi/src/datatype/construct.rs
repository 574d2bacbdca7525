//! New type maps of others, as MPI's constructors make them. `None`: the numbers do not suffice for its bounds.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_int;

use super::bounds::Bounds;
use super::layout::Layout;
use super::map::Map;
use super::signature::Signature;
use crate::abi::*;

/// Blocks of `length` elements, `stride` bytes apart.
pub fn hvector(old: &Map, count: i64, length: i64, stride: i64) -> Option<Map> {
    old.block(length)?.repeated(count, stride)
}

/// Blocks of so many elements at these displacements in bytes.
pub fn hindexed(old: &Map, blocks: impl IntoIterator<Item = (i64, i64)>) -> Option<Map> {
    let mut known: HashMap<i64, Map> = HashMap::new();
    let (mut bounds, mut elements) = (Bounds::EMPTY, 0i64);
    let mut placed = Vec::new();
    for (length, displacement) in blocks {
        if length == 0 {
            continue;
        }
        let block = match known.entry(length) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(old.block(length)?),
        };
        bounds = bounds.joined(block.bounds.shifted(displacement)?)?;
        elements = elements.checked_add(length)?;
        if block.bounds.size != 0 {
            let offset = block.offset.checked_add(displacement as isize)?;
            placed.push((offset, block.layout.clone()));
        }
    }
    let (offset, layout) = Layout::listed(placed);
    Some(Map {
        offset,
        layout,
        bounds,
        signature: Signature::repeated(&old.signature, elements as usize),
    })
}

/// Blocks of several types at displacements in bytes: how many, where, of which.
pub fn structure(blocks: impl IntoIterator<Item = (i64, i64, Map)>) -> Option<Map> {
    let blocks = blocks
        .into_iter()
        .map(|(length, displacement, old)| old.block(length)?.shifted(displacement));
    Map::joined(blocks.collect::<Option<Vec<Map>>>()?)?.padded()
}

/// The dimensions of an array, that with the nearest elements first.
pub fn nearest_first(dimensions: usize, order: c_int) -> Vec<usize> {
    match order {
        ORDER_C => (0..dimensions).rev().collect(),
        _ => (0..dimensions).collect(),
    }
}

/// A part of an array; of each dimension: its size, that of the part, and where the part begins.
pub fn subarray(old: &Map, sizes: &[[i64; 3]], order: c_int) -> Option<Map> {
    let extent = old.bounds.extent();
    let (mut map, mut stride) = (old.clone(), extent);
    for dimension in nearest_first(sizes.len(), order) {
        let [size, part, start] = sizes[dimension];
        map = map.repeated(part, stride)?;
        map = map.shifted(start.checked_mul(stride)?)?;
        stride = stride.checked_mul(size)?;
    }
    map.resized(0, stride)
}

/// The share that a process has of a dimension of an array that is dealt out.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Of the dimension.
    pub size: i64,
    /// Elements that are dealt out at a time.
    pub block: i64,
    /// Among so many.
    pub processes: i64,
    /// This process' number among them.
    pub coordinate: i64,
}

/// A process' share of an array.
pub fn darray(old: &Map, shares: &[Share], order: c_int) -> Option<Map> {
    let (mut map, mut stride) = (old.clone(), old.bounds.extent());
    for dimension in nearest_first(shares.len(), order) {
        map = dealt(&map, shares[dimension], stride)?;
        stride = stride.checked_mul(shares[dimension].size)?;
    }
    map.resized(0, stride)
}

/// A process' share of one dimension, whose elements are `stride` bytes apart.
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
    // Whole blocks, and the elements of a last one that is shorter.
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
    Map::joined(vec![blocks, rest])
}
