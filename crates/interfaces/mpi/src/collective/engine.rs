//! Collectives of the engine's, blocking or with a request.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use regatta_sys as rg;

use super::memory::Flat;
use super::{Collective, Kind, LocalData};

/// Calls the blocking form, or the one with a request.
macro_rules! either {
    ($request:expr, $now:ident, $started:ident ($($argument:expr),*)) => {
        match $request {
            None => rg::$now($($argument),*),
            Some(request) => rg::$started($($argument,)* request),
        }
    };
}

impl Collective {
    /// Enters the engine's collective; its code.
    ///
    /// # Safety
    /// The memory is that of this collective, and stays until it is complete.
    pub(super) unsafe fn enter(
        &self,
        (kind, group): (Kind, rg::Group),
        gives: &Flat,
        takes: &Flat,
        request: Option<&mut rg::Request>,
    ) -> c_int {
        let root = self.root;
        let given = match self.gives {
            LocalData::InPlace if kind != Kind::Alltoall => rg::IN_PLACE as *const c_void,
            _ => gives.address.cast_const(),
        };
        let taken = match (kind, &self.takes) {
            (Kind::Scatter { .. }, LocalData::InPlace) => rg::IN_PLACE as *mut c_void,
            _ => takes.address,
        };
        if let Some(reduction) = &self.reduction {
            // SAFETY: the caller's promise.
            return unsafe {
                self.enter_reduction(kind, group, (given, taken), reduction, request)
            };
        }
        // SAFETY: the caller's promise.
        unsafe {
            match kind {
                Kind::Gather { .. } | Kind::Scatter { .. } => {
                    self.enter_rooted(kind, group, (given, gives), (taken, takes), request)
                }
                Kind::Allgather | Kind::Alltoall => {
                    enter_exchange(kind, group, (given, gives), (taken, takes), request)
                }
                Kind::Broadcast => {
                    let flat = if gives.address.is_null() {
                        takes
                    } else {
                        gives
                    };
                    let (buffer, length) = (flat.address, own(flat));
                    either!(
                        request,
                        rg_broadcast,
                        rg_ibroadcast(buffer, length, root, group)
                    )
                }
                // Others have a reduction.
                _ => either!(request, rg_barrier, rg_ibarrier(group)),
            }
        }
    }

    unsafe fn enter_rooted(
        &self,
        kind: Kind,
        group: rg::Group,
        (given, gives): (*const c_void, &Flat),
        (taken, takes): (*mut c_void, &Flat),
        request: Option<&mut rg::Request>,
    ) -> c_int {
        let root = self.root;
        // SAFETY: the caller's promise.
        unsafe {
            match kind {
                Kind::Gather { listed: false } => {
                    let length = gives.each.max(takes.each);
                    either!(
                        request,
                        rg_gather,
                        rg_igather(given, length, taken, root, group)
                    )
                }
                Kind::Gather { listed: true } => {
                    let (lengths, offsets) = lists(takes);
                    let length = own(gives);
                    either!(
                        request,
                        rg_gatherv,
                        rg_igatherv(given, length, taken, lengths, offsets, root, group)
                    )
                }
                Kind::Scatter { listed: true } => {
                    let (lengths, offsets) = lists(gives);
                    let length = own(takes);
                    either!(
                        request,
                        rg_scatterv,
                        rg_iscatterv(given, lengths, offsets, taken, length, root, group)
                    )
                }
                _ => {
                    let length = takes.each.max(gives.each);
                    either!(
                        request,
                        rg_scatter,
                        rg_iscatter(given, taken, length, root, group)
                    )
                }
            }
        }
    }

    unsafe fn enter_reduction(
        &self,
        kind: Kind,
        group: rg::Group,
        (given, taken): (*const c_void, *mut c_void),
        reduction: &super::Reduction,
        request: Option<&mut rg::Request>,
    ) -> c_int {
        let (count, element, op) = (reduction.count, reduction.element, reduction.op);
        let root = self.root;
        // SAFETY: the caller's promise.
        unsafe {
            match kind {
                Kind::Reduce => either!(
                    request,
                    rg_reduce,
                    rg_ireduce(given, taken, count, element, op, root, group)
                ),
                Kind::Allreduce => either!(
                    request,
                    rg_allreduce,
                    rg_iallreduce(given, taken, count, element, op, group)
                ),
                Kind::Scan => either!(
                    request,
                    rg_scan,
                    rg_iscan(given, taken, count, element, op, group)
                ),
                Kind::Exscan => either!(
                    request,
                    rg_exscan,
                    rg_iexscan(given, taken, count, element, op, group)
                ),
                _ => {
                    let counts = reduction.counts.as_ptr();
                    either!(
                        request,
                        rg_reduce_scatter,
                        rg_ireduce_scatter(given, taken, counts, element, op, group)
                    )
                }
            }
        }
    }
}

/// Lengths and offsets for the engine.
fn lists(flat: &Flat) -> (*const usize, *const usize) {
    match flat.lengths.is_empty() {
        true => (null(), null()),
        false => (flat.lengths.as_ptr(), flat.offsets.as_ptr()),
    }
}

unsafe fn enter_exchange(
    kind: Kind,
    group: rg::Group,
    (given, gives): (*const c_void, &Flat),
    (taken, takes): (*mut c_void, &Flat),
    request: Option<&mut rg::Request>,
) -> c_int {
    let length = takes.each;
    let ((give, from), (take, to)) = (lists(gives), lists(takes));
    // SAFETY: the caller's promise.
    unsafe {
        match (kind, takes.lengths.is_empty()) {
            (Kind::Allgather, true) => either!(
                request,
                rg_allgather,
                rg_iallgather(given, length, taken, group)
            ),
            (Kind::Allgather, false) => either!(
                request,
                rg_allgatherv,
                rg_iallgatherv(given, own(gives), taken, take, to, group)
            ),
            (_, true) => either!(
                request,
                rg_alltoall,
                rg_ialltoall(given, length, taken, group)
            ),
            (_, false) => either!(
                request,
                rg_alltoallv,
                rg_ialltoallv(given, give, from, taken, take, to, group)
            ),
        }
    }
}

/// Bytes of a process' own part.
fn own(flat: &Flat) -> usize {
    flat.lengths.first().copied().unwrap_or(flat.each)
}
