//! The engine's collectives, blocking or with a request.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use regatta_sys as rg;

use super::memory::Flat;
use super::{Collective, LocalData};

/// A function that enters a collective of the engine and returns the engine's code. The macro [`entry`] makes it, in
/// the file of the call.
pub type Entry = unsafe fn(&Arguments, Option<&mut rg::Request>) -> c_int;

/// The arguments of the engine's functions.
pub struct Arguments {
    /// The elements contributed, or the engine's constant for in place.
    pub given: *const c_void,
    /// Memory for the result, or the engine's constant for in place.
    pub taken: *mut c_void,
    /// The memory of a process that either contributes or receives, in collectives where a process does only one of
    /// both.
    pub whole: *mut c_void,
    /// Length of `whole` in bytes.
    pub length: usize,
    /// Length of each part in bytes, if all parts have the same length.
    pub each: usize,
    /// Length of this process's part of the contribution, in bytes.
    pub gives: usize,
    /// Length of this process's part of the result, in bytes.
    pub takes: usize,
    /// Lengths of the parts of the contribution in bytes, by rank.
    pub give_lengths: *const usize,
    /// Offsets of the parts of the contribution in bytes, by rank.
    pub give_offsets: *const usize,
    /// Lengths of the parts of the result in bytes, by rank.
    pub take_lengths: *const usize,
    /// Offsets of the parts of the result in bytes, by rank.
    pub take_offsets: *const usize,
    /// The root's rank.
    pub root: c_int,
    /// Number of elements of a reduction.
    pub count: usize,
    /// The engine's type of these elements.
    pub element: c_int,
    /// The engine's operator that combines them.
    pub op: rg::Op,
    /// Number of elements of the result for each process, by rank.
    pub counts: *const usize,
    /// The group of the collective.
    pub group: rg::Group,
}

/// Makes an [`Entry`] from the engine's two functions and the [`Arguments`] that both take, in their order.
macro_rules! entry {
    ($now:ident or $started:ident($($argument:ident),*)) => {{
        unsafe fn enter(
            with: &$crate::collective::Arguments,
            request: Option<&mut regatta_sys::Request>,
        ) -> std::ffi::c_int {
            // SAFETY: the memory of the arguments is valid until the collective is complete.
            unsafe {
                match request {
                    None => regatta_sys::$now($(with.$argument,)* with.group),
                    Some(request) => regatta_sys::$started($(with.$argument,)* with.group, request),
                }
            }
        }
        enter
    }};
}

pub(crate) use entry;

impl Collective {
    /// Enters the engine's collective and returns the engine's code.
    ///
    /// # Safety
    /// The memory belongs to this collective and stays valid until it is complete.
    pub(super) unsafe fn enter(
        &self,
        (entry, group): (Entry, rg::Group),
        gives: &Flat,
        takes: &Flat,
        request: Option<&mut rg::Request>,
    ) -> c_int {
        let whole = if gives.address.is_null() {
            takes
        } else {
            gives
        };
        let ((give_lengths, give_offsets), (take_lengths, take_offsets)) =
            (lists(gives), lists(takes));
        let reduction = self.reduction.as_ref();
        let (count, element, op, counts) = reduction
            .map_or((0, 0, rg::Op { id: 0 }, null()), |it| {
                (it.count, it.element, it.op, it.counts.as_ptr())
            });
        let arguments = Arguments {
            given: match self.gives {
                LocalData::InPlace => rg::IN_PLACE as *const c_void,
                _ => gives.address.cast_const(),
            },
            taken: match self.takes {
                LocalData::InPlace => rg::IN_PLACE as *mut c_void,
                _ => takes.address,
            },
            whole: whole.address,
            length: own(whole),
            each: gives.each.max(takes.each),
            gives: own(gives),
            takes: own(takes),
            give_lengths,
            give_offsets,
            take_lengths,
            take_offsets,
            root: self.root,
            count,
            element,
            op,
            counts,
            group,
        };
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe { entry(&arguments, request) }
    }
}

/// Returns the lengths and offsets for the engine; null if all parts have the same length.
fn lists(flat: &Flat) -> (*const usize, *const usize) {
    match flat.lengths.is_empty() {
        true => (null(), null()),
        false => (flat.lengths.as_ptr(), flat.offsets.as_ptr()),
    }
}

/// Returns the length of a process's own part, in bytes.
fn own(flat: &Flat) -> usize {
    flat.lengths.first().copied().unwrap_or(flat.each)
}
