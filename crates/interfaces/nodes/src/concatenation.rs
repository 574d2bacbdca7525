//! Concatenation (allgather): every member of a group gets the parts of all members.

use std::ffi::{c_int, c_void};

use crate::fault::{Fault, checked};
use crate::own::Own;
use crate::place::length;
use crate::rg;

/// The members of a group, and their order in the result. A node that is named twice has one part.
pub struct Order<F: Fn(usize) -> usize> {
    pub group: rg::Group,
    /// Number of members, and number of nodes that were named.
    pub members: usize,
    pub named: usize,
    /// Returns the rank of the member that was named at an index.
    pub rank_at: F,
}

/// Lengths of the parts and their offsets in the result, by rank.
struct Layout {
    lengths: Vec<usize>,
    places: Vec<usize>,
}

/// Static, so that its memory is reused.
static LAYOUT: Own<Layout> = Own::new(Layout {
    lengths: Vec::new(),
    places: Vec::new(),
});

impl Layout {
    /// Gathers the lengths of all members' parts.
    fn ask(&mut self, mine: usize, group: rg::Group, members: usize) -> Result<(), Fault> {
        self.lengths.clear();
        self.lengths.resize(members, 0);
        let (mine, all) = ((&raw const mine).cast(), self.lengths.as_mut_ptr().cast());
        // SAFETY: `mine` points to a local number, and `lengths` has one entry for each member.
        checked(unsafe { rg::rg_allgather(mine, size_of::<usize>(), all, group) })
    }

    /// Sets the offset of each part, in the order in which the nodes were named. Returns the total length. A node that
    /// was named twice has one part.
    fn arrange(&mut self, order: impl Iterator<Item = usize>) -> Result<usize, Fault> {
        const NOWHERE: usize = usize::MAX;
        self.places.clear();
        self.places.resize(self.lengths.len(), NOWHERE);
        let mut whole = 0_usize;
        for rank in order {
            if self.places[rank] == NOWHERE {
                self.places[rank] = whole;
                whole = whole.saturating_add(self.lengths[rank]);
            }
        }
        match whole {
            0..0x8000_0000 => Ok(whole),
            _ => Err(Fault::says("the total length of the parts is too large")),
        }
    }
}

/// Concatenates the parts of all members. `sizes`, if not NULL, gets the length of each part, in the order of the
/// names. Returns the total length; if there is too little room, keeps the front and fails.
///
/// # Safety
/// `part` and `to` have these lengths, and `sizes` has an element for each named node or is NULL.
pub unsafe fn concatenate<F: Fn(usize) -> usize>(
    part: *const c_void,
    part_length: c_int,
    to: *mut c_void,
    room: c_int,
    sizes: *mut c_int,
    order: &Order<F>,
) -> Result<c_int, Fault> {
    let (mine, room) = (length(part_length)?, length(room)?);
    let layout = LAYOUT.get();
    layout.ask(mine, order.group, order.members)?;
    let whole = layout.arrange((0..order.named).map(&order.rank_at))?;
    for place in 0..if sizes.is_null() { 0 } else { order.named } {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { *sizes.add(place) = layout.lengths[(order.rank_at)(place)] as c_int };
    }
    let gather = |to: *mut c_void| {
        let (lengths, places) = (layout.lengths.as_ptr(), layout.places.as_ptr());
        // SAFETY: the caller guarantees the part; there is a length and an offset for each member, and room for all
        // parts.
        checked(unsafe { rg::rg_allgatherv(part, mine, to, lengths, places, order.group) })
    };
    if whole <= room {
        gather(to)?;
        return Ok(whole as c_int);
    }
    // Other members may have enough room, and wait for this member's part.
    let mut elsewhere = vec![0_u8; whole];
    gather(elsewhere.as_mut_ptr().cast())?;
    // SAFETY: the caller guarantees that the memory is valid.
    unsafe { std::ptr::copy_nonoverlapping(elsewhere.as_ptr(), to.cast(), room) };
    Err(Fault::says(format!(
        "all parts are {whole} bytes long, and the buffer has {room} bytes; only the first {room} bytes were kept"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(lengths: &[usize], order: &[usize]) -> (Result<usize, Fault>, Vec<usize>) {
        let mut layout = Layout {
            lengths: lengths.to_vec(),
            places: Vec::new(),
        };
        let whole = layout.arrange(order.iter().copied());
        (whole, layout.places)
    }

    #[test]
    fn parts_follow_each_other_in_the_order_of_the_list() {
        let (whole, places) = arranged(&[3, 5, 7], &[2, 0, 1]);
        assert_eq!((whole.unwrap(), places), (15, vec![7, 10, 0]));
    }

    #[test]
    fn a_node_that_is_named_twice_has_its_part_once() {
        let (whole, places) = arranged(&[3, 5], &[1, 0, 1]);
        assert_eq!((whole.unwrap(), places), (8, vec![5, 0]));
    }

    #[test]
    fn a_whole_that_no_length_can_say_is_refused() {
        assert!(arranged(&[1 << 31], &[0]).0.is_err());
        assert!(arranged(&[usize::MAX, 2], &[0, 1]).0.is_err());
    }
}
