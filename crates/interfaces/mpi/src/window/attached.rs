//! Memory that a program has attached to a dynamic window.

use std::collections::BTreeMap;

/// Regions of memory, which do not overlap.
#[derive(Debug, Default)]
pub struct Attached {
    /// How often each region is attached, by address and length. Only an empty region can be attached more than once.
    parts: BTreeMap<(usize, usize), usize>,
}

impl Attached {
    /// Returns begin and end of the last nonempty region that begins before `end`.
    fn last_before(&self, end: usize) -> Option<(usize, usize)> {
        let before = self.parts.range(..(end, 0)).rev();
        let mut parts = before.map(|(&(base, length), _)| (base, length));
        let (base, length) = parts.find(|part| part.1 != 0)?;
        Some((base, base.saturating_add(length)))
    }

    /// Returns whether these bytes are within one region.
    pub fn has(&self, address: usize, length: usize) -> bool {
        let Some(end) = address.checked_add(length) else {
            return false;
        };
        // A region that begins at the address counts as well.
        let found = self.last_before(address.saturating_add(1));
        found.is_some_and(|(_, last)| end <= last)
    }

    /// Adds a region. Returns false if it overlaps another one.
    pub fn add(&mut self, base: usize, length: usize) -> bool {
        let end = base.saturating_add(length);
        let is_free = self.last_before(end).is_none_or(|(_, last)| last <= base);
        if length == 0 || is_free {
            *self.parts.entry((base, length)).or_default() += 1;
        }
        length == 0 || is_free
    }

    /// Removes a region that begins at `base`. Returns false if there is none.
    pub fn remove(&mut self, base: usize) -> bool {
        let found = self.parts.range((base, 0)..=(base, usize::MAX)).next();
        let Some((&part, &times)) = found else {
            return false;
        };
        match times {
            1 => self.parts.remove(&part),
            _ => self.parts.insert(part, times - 1),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap_and_hold_what_is_inside() {
        let mut attached = Attached::default();
        assert!(attached.add(100, 50) && attached.add(150, 10) && attached.add(60, 40));
        for (base, length) in [(100, 50), (99, 2), (149, 1), (149, 2), (0, 1000), (159, 1)] {
            assert!(!attached.add(base, length), "{base} {length}");
        }
        assert!(attached.has(100, 50) && attached.has(149, 1) && attached.has(60, 1));
        // No access extends from one region to the next.
        for (address, length) in [(140, 11), (59, 1), (160, 1), (99, 2), (usize::MAX, 2)] {
            assert!(!attached.has(address, length), "{address} {length}");
        }
        assert!(attached.remove(100) && !attached.remove(100) && !attached.remove(101));
        assert!(!attached.has(100, 1) && attached.add(110, 40));
    }

    #[test]
    fn parts_without_bytes_are_in_nobodys_way() {
        let mut attached = Attached::default();
        assert!(attached.add(100, 0) && attached.add(100, 0) && attached.add(90, 50));
        assert!(attached.add(120, 0) && attached.has(121, 10));
        assert!(attached.remove(100) && attached.remove(100) && !attached.remove(100));
        assert!(attached.remove(120) && attached.remove(90) && !attached.has(121, 10));
    }
}
