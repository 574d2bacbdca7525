//! Collectives of the engine's, blocking or with a request: a row for each.

use std::ffi::{c_int, c_void};
use std::ptr::null;

use regatta_sys as rg;

use super::memory::Flat;
use super::{Collective, Kind, LocalData};

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
        macro_rules! call {
            ($now:ident or $started:ident($($argument:expr),*)) => {
                match request {
                    None => rg::$now($($argument,)* group),
                    Some(request) => rg::$started($($argument,)* group, request),
                }
            };
        }
        let root = self.root;
        let (given, taken) = self.addresses(kind, gives, takes);
        let each = gives.each.max(takes.each);
        let ((give, from), (take, to)) = (lists(gives), lists(takes));
        let is_even = takes.lengths.is_empty();
        let reduction = self.reduction.as_ref();
        let (count, element, op, counts) = reduction
            .map_or((0, 0, rg::Op { id: 0 }, null()), |it| {
                (it.count, it.element, it.op, it.counts.as_ptr())
            });
        // SAFETY: the caller's promise.
        unsafe {
            match kind {
                Kind::Barrier => call!(rg_barrier or rg_ibarrier()),
                Kind::Broadcast => {
                    let is_root = !gives.address.is_null();
                    let whole = if is_root { gives } else { takes };
                    call!(rg_broadcast or rg_ibroadcast(whole.address, own(whole), root))
                }
                Kind::Gather { listed: false } => {
                    call!(rg_gather or rg_igather(given, each, taken, root))
                }
                Kind::Gather { listed: true } => {
                    call!(rg_gatherv or rg_igatherv(given, own(gives), taken, take, to, root))
                }
                Kind::Scatter { listed: false } => {
                    call!(rg_scatter or rg_iscatter(given, taken, each, root))
                }
                Kind::Scatter { listed: true } => {
                    call!(rg_scatterv or rg_iscatterv(given, give, from, taken, own(takes), root))
                }
                Kind::Allgather if is_even => {
                    call!(rg_allgather or rg_iallgather(given, takes.each, taken))
                }
                Kind::Allgather => {
                    call!(rg_allgatherv or rg_iallgatherv(given, own(gives), taken, take, to))
                }
                Kind::Alltoall if is_even => {
                    call!(rg_alltoall or rg_ialltoall(given, takes.each, taken))
                }
                Kind::Alltoall => {
                    call!(rg_alltoallv or rg_ialltoallv(given, give, from, taken, take, to))
                }
                Kind::Reduce => {
                    call!(rg_reduce or rg_ireduce(given, taken, count, element, op, root))
                }
                Kind::Allreduce => {
                    call!(rg_allreduce or rg_iallreduce(given, taken, count, element, op))
                }
                Kind::Scan => call!(rg_scan or rg_iscan(given, taken, count, element, op)),
                Kind::Exscan => call!(rg_exscan or rg_iexscan(given, taken, count, element, op)),
                Kind::ReduceScatter => {
                    call!(rg_reduce_scatter or rg_ireduce_scatter(given, taken, counts, element, op))
                }
            }
        }
    }

    /// What the engine reads and writes.
    fn addresses(&self, kind: Kind, gives: &Flat, takes: &Flat) -> (*const c_void, *mut c_void) {
        let given = match self.gives {
            LocalData::InPlace if kind != Kind::Alltoall => rg::IN_PLACE as *const c_void,
            _ => gives.address.cast_const(),
        };
        let taken = match (kind, &self.takes) {
            (Kind::Scatter { .. }, LocalData::InPlace) => rg::IN_PLACE as *mut c_void,
            _ => takes.address,
        };
        (given, taken)
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
