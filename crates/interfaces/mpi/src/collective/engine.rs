//! Collectives of the engine's, blocking or with a request.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use regatta_sys as rg;

use super::memory::Flat;
use super::{Collective, LocalData};

/// Enters a collective of the engine's, and gives its code. [`entry`] makes it, in the file of the call.
pub type Entry = unsafe fn(&Arguments, Option<&mut rg::Request>) -> c_int;

/// What the engine's functions take.
pub struct Arguments {
    /// What is given and where the result goes, or the engine's word for in place.
    pub given: *const c_void,
    /// See `given`.
    pub taken: *mut c_void,
    /// Of a collective in which a process either gives or gets: that memory.
    pub whole: *mut c_void,
    /// Its bytes.
    pub length: usize,
    /// Bytes of each part, if parts are even.
    pub each: usize,
    /// Bytes of this process' part of what is given.
    pub gives: usize,
    /// Bytes of its part of the result.
    pub takes: usize,
    /// Bytes of the parts of what is given, by rank.
    pub give_lengths: *const usize,
    /// Where they begin.
    pub give_offsets: *const usize,
    /// Bytes of the parts of the result.
    pub take_lengths: *const usize,
    /// Where they begin.
    pub take_offsets: *const usize,
    /// The root's rank.
    pub root: c_int,
    /// Elements of a reduction.
    pub count: usize,
    /// Their type.
    pub element: c_int,
    /// How they are combined.
    pub op: rg::Op,
    /// How many of them each process gets.
    pub counts: *const usize,
    /// Those who take part.
    pub group: rg::Group,
}

/// Makes an [`Entry`] of the engine's two functions and of the [`Arguments`] that both take, in their order.
macro_rules! entry {
    ($now:ident or $started:ident($($argument:ident),*)) => {{
        unsafe fn enter(
            with: &$crate::collective::Arguments,
            request: Option<&mut regatta_sys::Request>,
        ) -> std::ffi::c_int {
            // SAFETY: the memory of the arguments is there, and stays until the collective is complete.
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
    /// Enters the engine's collective; its code.
    ///
    /// # Safety
    /// The memory is that of this collective, and stays until it is complete.
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

/// Lengths and offsets for the engine.
fn lists(flat: &Flat) -> (*const usize, *const usize) {
    match flat.lengths.is_empty() {
        true => (null(), null()),
        false => (flat.lengths.as_ptr(), flat.offsets.as_ptr()),
    }
}

/// Bytes of a process' own part.
fn own(flat: &Flat) -> usize {
    flat.lengths.first().copied().unwrap_or(flat.each)
}
