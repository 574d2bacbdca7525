//! The type map of a datatype: its layout, bounds and elements, and how new maps are made from others.

use std::sync::Arc;

use super::bounds::Bounds;
use super::builtin::Basic;
use super::layout::{Layout, LayoutList, Piece, walk_repeated};
use super::signature::Signature;

/// Type maps that are to be combined into one, in order.
pub struct Joining {
    bounds: Bounds,
    layouts: LayoutList,
}

impl Joining {
    /// Returns an empty list with capacity for `count` maps.
    pub fn with_capacity(count: usize) -> Joining {
        Joining {
            bounds: Bounds::EMPTY,
            layouts: LayoutList::with_capacity(count),
        }
    }

    /// Adds a map, displaced by `by` bytes. Returns `None` on overflow.
    pub fn add(&mut self, map: &Map, by: i64) -> Option<()> {
        self.bounds = self.bounds.joined(map.bounds.shifted(by)?)?;
        if map.bounds.size != 0 {
            let offset = map.offset.checked_add(by as isize)?;
            self.layouts.add(offset, &map.layout);
        }
        Some(())
    }

    /// Returns the map of all of them, with the elements that the caller passes.
    pub fn finish(self, signature: Arc<Signature>) -> Map {
        let (offset, layout) = self.layouts.finish();
        Map {
            offset,
            layout,
            bounds: self.bounds,
            signature,
        }
    }
}

/// A type map.
#[derive(Clone, Debug)]
pub struct Map {
    /// Offset of the layout in bytes.
    pub offset: isize,
    /// The layout of its bytes.
    pub layout: Arc<Layout>,
    /// Its bounds and its size.
    pub bounds: Bounds,
    /// Its elements.
    pub signature: Arc<Signature>,
}

impl Map {
    /// Returns a map without elements.
    pub fn empty() -> Map {
        Map {
            offset: 0,
            layout: Arc::new(Layout::Run(0)),
            bounds: Bounds::EMPTY,
            signature: Signature::none(),
        }
    }

    /// Returns the map of one element.
    pub fn of_basic(basic: &'static Basic) -> Map {
        Map {
            offset: 0,
            layout: Arc::new(Layout::Run(basic.size)),
            bounds: Bounds::element(basic.size as i64, basic.alignment() as i64),
            signature: Arc::new(Signature::Of(basic, 1)),
        }
    }

    /// Returns the map of two elements with the layout of a C structure.
    pub fn of_pair(first: &'static Basic, second: &'static Basic) -> Option<Map> {
        let at = first.size.next_multiple_of(second.alignment());
        let second = Map::of_basic(second).shifted(at as i64)?;
        Map::joined(&[Map::of_basic(first), second])?.padded()
    }

    /// Returns the map repeated `count` times, `stride` bytes apart. All functions here return `None` on overflow.
    pub fn repeated(&self, count: i64, stride: i64) -> Option<Map> {
        let signature = Signature::repeated(&self.signature, count as usize);
        self.repeated_as(count, stride, &signature)
    }

    /// Returns the map repeated `count` times, with the elements that the caller passes.
    pub fn repeated_as(&self, count: i64, stride: i64, signature: &Arc<Signature>) -> Option<Map> {
        let bounds = self.bounds.repeated(count, stride)?;
        if bounds.empty {
            return Some(Map::empty());
        }
        Some(Map {
            offset: self.offset,
            layout: Layout::repeated(&self.layout, count as usize, stride as isize),
            bounds,
            signature: signature.clone(),
        })
    }

    /// Returns a block of `length` elements, one after the other.
    pub fn block(&self, length: i64) -> Option<Map> {
        self.repeated(length, self.bounds.extent())
    }

    /// Returns its size in bytes if its bytes are one run from lower to upper bound, without markers.
    pub fn dense(&self) -> Option<i64> {
        let Bounds {
            size,
            lb,
            ub,
            true_lb,
            fixed_lb,
            fixed_ub,
            ..
        } = self.bounds;
        let is_run = self.layout.run().is_some() && self.offset as i64 == lb;
        let is_whole = true_lb == lb && ub.wrapping_sub(lb) == size;
        (size != 0 && is_run && is_whole && !fixed_lb && !fixed_ub).then_some(size)
    }

    /// Returns the map displaced by `by` bytes.
    pub fn shifted(mut self, by: i64) -> Option<Map> {
        self.bounds = self.bounds.shifted(by)?;
        if self.bounds.size != 0 {
            self.offset = self.offset.checked_add(by as isize)?;
        }
        Some(self)
    }

    /// Returns the map of all of these.
    pub fn joined(maps: &[Map]) -> Option<Map> {
        let mut joining = Joining::with_capacity(maps.len());
        for map in maps {
            joining.add(map, 0)?;
        }
        let signatures = maps.iter().map(|map| map.signature.clone());
        Some(joining.finish(Signature::listed(signatures)))
    }

    /// Returns the map with padding at the end, as C has it.
    pub fn padded(mut self) -> Option<Map> {
        self.bounds = self.bounds.padded()?;
        Some(self)
    }

    /// Returns the map with this lower bound and extent.
    pub fn resized(mut self, lb: i64, extent: i64) -> Option<Map> {
        self.bounds = self.bounds.resized(lb, extent)?;
        Some(self)
    }

    /// Calls `visit` with the pieces that make up bytes `from .. to` of several elements, in order.
    #[inline]
    pub fn walk(&self, from: usize, to: usize, visit: &mut impl FnMut(Piece)) {
        let stride = self.bounds.extent() as isize;
        if self.layout.size() != 0 {
            walk_repeated(&self.layout, stride, self.offset, from, to, visit);
        }
    }
}
