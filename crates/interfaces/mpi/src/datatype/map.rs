//! The type map of a datatype: its layout, its bounds and its elements, and how new ones are made of others.

use std::sync::Arc;

use super::bounds::Bounds;
use super::builtin::Basic;
use super::layout::{Layout, Piece, walk_repeated};
use super::signature::Signature;

/// A type map.
#[derive(Clone, Debug)]
pub struct Map {
    /// Where the layout begins.
    pub offset: isize,
    /// Where its bytes lie.
    pub layout: Arc<Layout>,
    /// Its bounds and its size.
    pub bounds: Bounds,
    /// Its elements.
    pub signature: Arc<Signature>,
}

impl Map {
    /// Without any element.
    pub fn empty() -> Map {
        Map {
            offset: 0,
            layout: Arc::new(Layout::Run(0)),
            bounds: Bounds::EMPTY,
            signature: Signature::none(),
        }
    }

    /// Of one element.
    pub fn of_basic(basic: &'static Basic) -> Map {
        Map {
            offset: 0,
            layout: Arc::new(Layout::Run(basic.size)),
            bounds: Bounds::element(basic.size as i64, basic.alignment() as i64),
            signature: Arc::new(Signature::Of(basic, 1)),
        }
    }

    /// Of two elements as C has them in a structure.
    pub fn of_pair(first: &'static Basic, second: &'static Basic) -> Option<Map> {
        let at = first.size.next_multiple_of(second.alignment());
        let second = Map::of_basic(second).shifted(at as i64)?;
        Map::joined(vec![Map::of_basic(first), second])?.padded()
    }

    /// Several times, at equal distances. `None`, here and below: the numbers do not suffice.
    pub fn repeated(&self, count: i64, stride: i64) -> Option<Map> {
        let bounds = self.bounds.repeated(count, stride)?;
        if bounds.empty {
            return Some(Map::empty());
        }
        let (times, distance) = (count as usize, stride as isize);
        Some(Map {
            offset: self.offset,
            layout: Layout::repeated(&self.layout, times, distance),
            bounds,
            signature: Signature::repeated(&self.signature, times),
        })
    }

    /// A block of so many, one behind the other.
    pub fn block(&self, length: i64) -> Option<Map> {
        self.repeated(length, self.bounds.extent())
    }

    /// Elsewhere.
    pub fn shifted(mut self, by: i64) -> Option<Map> {
        self.bounds = self.bounds.shifted(by)?;
        if self.bounds.size != 0 {
            self.offset = self.offset.checked_add(by as isize)?;
        }
        Some(self)
    }

    /// All of these.
    pub fn joined(maps: Vec<Map>) -> Option<Map> {
        let mut bounds = Bounds::EMPTY;
        for map in &maps {
            bounds = bounds.joined(map.bounds)?;
        }
        let signature = Signature::listed(maps.iter().map(|map| map.signature.clone()));
        let placed = maps.into_iter().map(|map| (map.offset, map.layout));
        let (offset, layout) = Layout::listed(placed);
        Some(Map {
            offset,
            layout,
            bounds,
            signature,
        })
    }

    /// With a gap at the end as C has it.
    pub fn padded(mut self) -> Option<Map> {
        self.bounds = self.bounds.padded()?;
        Some(self)
    }

    /// With other bounds.
    pub fn resized(mut self, lb: i64, extent: i64) -> Option<Map> {
        self.bounds = self.bounds.resized(lb, extent)?;
        Some(self)
    }

    /// The pieces that bytes `from .. to` of several elements are, in their order.
    #[inline]
    pub fn walk(&self, from: usize, to: usize, visit: &mut impl FnMut(Piece)) {
        let stride = self.bounds.extent() as isize;
        if self.layout.size() != 0 {
            walk_repeated(&self.layout, stride, self.offset, from, to, visit);
        }
    }
}
