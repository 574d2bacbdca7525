//! Collectives and messages on memory that is given by its address. They are for the tensors of `regatta_mpi.torch`, for which the buffer
//! protocol would take longer than a collective.
//!
//! The caller guarantees that addresses and lengths are valid. `keep` is the owner of the memory, which the request keeps until it is complete.

use std::ffi::{c_int, c_void};

use pyo3::prelude::*;
use regatta_sys as rg;

use crate::groups::Group;
use crate::request::{Kept, Request};

fn to(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

/// Returns the memory of an input. Address 0 stands for an input in place.
fn from(address: usize) -> *const c_void {
    match address {
        0 => rg::IN_PLACE as *const c_void,
        address => std::ptr::with_exposed_provenance(address),
    }
}

fn started(
    keep: Bound<'_, PyAny>,
    is_receive: bool,
    start: impl FnOnce(*mut rg::Request) -> c_int,
) -> PyResult<Request> {
    let py = keep.py();
    let kept = Kept::Object(keep.unbind());
    Request::start(py, kept, is_receive, |_, request| start(request))
}

/// Returns the offsets of consecutive parts of these lengths.
fn offsets(lengths: &[usize]) -> Vec<usize> {
    let mut at = 0;
    let begin = |length: &usize| {
        let begin = at;
        at += length;
        begin
    };
    lengths.iter().map(begin).collect()
}

// All calls are sound because the functions check the handle, `keep` owns the memory, and the caller guarantees its length.
#[pymethods]
impl Group {
    fn isend_at(
        &self,
        address: usize,
        len: usize,
        receiver: c_int,
        tag: c_int,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, block) = (self.handle(), to(address));
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, false, |request| unsafe {
            rg::rg_isend(block, len, receiver, tag, group, request)
        })
    }

    fn irecv_at(
        &self,
        address: usize,
        len: usize,
        sender: c_int,
        tag: c_int,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, block) = (self.handle(), to(address));
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, true, |request| unsafe {
            rg::rg_irecv(block, len, sender, tag, group, request)
        })
    }

    fn ibarrier(&self, py: Python<'_>) -> PyResult<Request> {
        let group = self.handle();
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(py.None().into_bound(py), false, |request| unsafe {
            rg::rg_ibarrier(group, request)
        })
    }

    fn ibcast_at(
        &self,
        address: usize,
        len: usize,
        root: c_int,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, block) = (self.handle(), to(address));
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, false, |request| unsafe {
            rg::rg_ibroadcast(block, len, root, group, request)
        })
    }

    /// Starts an allreduce, in place.
    fn iallreduce_at(
        &self,
        address: usize,
        count: usize,
        kind: c_int,
        op: c_int,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, block, op) = (self.handle(), to(address), rg::Op { id: op });
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, false, |request| unsafe {
            rg::rg_iallreduce(from(0), block, count, kind, op, group, request)
        })
    }

    /// Starts a reduction, in place at the root.
    fn ireduce_at(
        &self,
        address: usize,
        count: usize,
        kind: c_int,
        op: c_int,
        root: c_int,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, block, op) = (self.handle(), to(address), rg::Op { id: op });
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        let is_root = unsafe { rg::rg_rank(group) } == root;
        let input = from(if is_root { 0 } else { address });
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, false, |request| unsafe {
            rg::rg_ireduce(input, block, count, kind, op, root, group, request)
        })
    }

    /// Starts a reduce-scatter in which each member gets `count` elements.
    #[allow(clippy::too_many_arguments, reason = "as in the C function")]
    fn ireduce_scatter_at(
        &self,
        input: usize,
        output: usize,
        count: usize,
        kind: c_int,
        op: c_int,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, op) = (self.handle(), rg::Op { id: op });
        let (input, output) = (from(input), to(output));
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, false, |request| unsafe {
            rg::rg_ireduce_scatter_block(input, output, count, kind, op, group, request)
        })
    }

    /// Starts an allgather of `len` bytes of each member.
    fn iallgather_at(
        &self,
        input: usize,
        len: usize,
        output: usize,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, input, output) = (self.handle(), from(input), to(output));
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, false, |request| unsafe {
            rg::rg_iallgather(input, len, output, group, request)
        })
    }

    fn igather_at(
        &self,
        input: usize,
        len: usize,
        output: usize,
        root: c_int,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, input, output) = (self.handle(), from(input), to(output));
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, false, |request| unsafe {
            rg::rg_igather(input, len, output, root, group, request)
        })
    }

    fn iscatter_at(
        &self,
        input: usize,
        len: usize,
        output: usize,
        root: c_int,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let (group, input, output) = (self.handle(), to(input), to(output));
        // SAFETY: the handle is checked, and the caller guarantees the memory.
        started(keep, false, |request| unsafe {
            rg::rg_iscatter(input, output, len, root, group, request)
        })
    }

    /// Starts a complete exchange of consecutive parts of these lengths, in bytes.
    fn ialltoall_at(
        &self,
        input: usize,
        input_lengths: Vec<usize>,
        output: usize,
        output_lengths: Vec<usize>,
        keep: Bound<'_, PyAny>,
    ) -> PyResult<Request> {
        let py = keep.py();
        let (group, input, output) = (self.handle(), to(input), to(output));
        let lists = [
            offsets(&input_lengths),
            input_lengths,
            offsets(&output_lengths),
            output_lengths,
        ];
        // The elements of the lists do not move when the lists are moved.
        let [input_offsets, input_lengths, output_offsets, output_lengths] =
            lists.each_ref().map(Vec::as_ptr);
        let kept = Kept::Lists(keep.unbind(), lists);
        // SAFETY: the handle is checked, the caller guarantees the memory, and the request keeps the lists.
        Request::start(py, kept, false, |_, request| unsafe {
            rg::rg_ialltoallv(
                input,
                input_lengths,
                input_offsets,
                output,
                output_lengths,
                output_offsets,
                group,
                request,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        assert_eq!(offsets(&[3, 0, 5]), [0, 3, 3]);
    }
}
