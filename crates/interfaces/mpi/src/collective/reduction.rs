//! Reductions by an operator of the engine, or by another one that the engine calls.
//!
//! Noncontiguous elements are packed for the engine, so it never writes to gaps. A user-defined operator gets them with
//! their layout in memory.

use std::ffi::{c_int, c_void};

use regatta_sys as rg;

use super::memory::Element;
use super::{Entry, entry};
use crate::abi::*;
use crate::datatype;
use crate::error::{Error, Result, checked};
use crate::operator;

/// The engine's reduction to a root.
pub const REDUCE: Entry = entry!(rg_reduce or rg_ireduce(given, taken, count, element, op, root));

/// A reduction of elements.
pub struct Reduction {
    /// The engine's element type.
    pub element: c_int,
    /// The engine's operator.
    pub op: rg::Op,
    /// Number of the engine's elements to combine.
    pub count: usize,
    /// Number of the engine's elements of the result for each process, if the result is scattered.
    pub counts: Vec<usize>,
    times: usize,
    custom: Option<Box<Custom>>,
}

/// An operator that the engine does not have.
struct Custom {
    reduction: operator::Reduction,
    element: Element,
}

impl Drop for Reduction {
    fn drop(&mut self) {
        if self.custom.is_some() {
            // SAFETY: the engine checks operators at each use.
            unsafe { rg::rg_op_free(self.op) };
        }
    }
}

impl Reduction {
    /// Returns the reduction of `count` elements of a datatype by an operator.
    pub fn new(op: Op, datatype: Datatype, element: Element, count: usize) -> Result<Reduction> {
        if let Some(engine) = operator::engine(op, datatype) {
            return Ok(Reduction::of_engine(engine, count));
        }
        let reduction = operator::get(op, datatype)?;
        match reduction.engine {
            Some(engine) => Ok(Reduction::of_engine(engine, count)),
            None => Reduction::of_custom(reduction, element, count),
        }
    }

    fn of_engine(engine: operator::Engine, count: usize) -> Reduction {
        Reduction {
            element: engine.kind,
            op: engine.op,
            count: count * engine.times,
            counts: Vec::new(),
            times: engine.times,
            custom: None,
        }
    }

    fn of_custom(
        reduction: operator::Reduction,
        element: Element,
        count: usize,
    ) -> Result<Reduction> {
        let size = element.size;
        let Ok(bytes @ 0..=0x7ffe_0000) = c_int::try_from(size) else {
            let text = format!("an element of {size} bytes is too long for a reduction");
            return Err(Error::new(ERR_TYPE, text));
        };
        let commutative = c_int::from(reduction.commutative);
        let custom = Box::new(Custom { reduction, element });
        let argument = (&raw const *custom).cast_mut().cast();
        let mut op = rg::Op { id: 0 };
        // SAFETY: the argument stays until the operator is freed; the call may write `op`.
        checked(unsafe { rg::rg_op_create(Some(combine), argument, commutative, &mut op) })?;
        Ok(Reduction {
            element: rg::bytes(bytes.max(1)),
            op,
            count: if size == 0 { 0 } else { count },
            counts: Vec::new(),
            times: usize::from(size > 0),
            custom: Some(custom),
        })
    }

    /// Scatters the result: `counts` are the numbers of elements for each process.
    pub fn scatter(&mut self, counts: &[i64]) {
        let times = self.times;
        self.counts = counts.iter().map(|&it| it as usize * times).collect();
    }
}

/// Combines packed elements. The engine calls it.
unsafe extern "C" fn combine(
    input: *const c_void,
    inout: *mut c_void,
    count: usize,
    argument: *mut c_void,
) {
    // SAFETY: the engine passes the argument of the operator, which outlives the operator.
    let custom = unsafe { &*argument.cast::<Custom>() };
    // SAFETY: the memory has this many elements.
    unsafe {
        match custom.element.is_packed() {
            true => custom.reduction.combine(input, inout, count as i64),
            false => custom.combine_apart(input, inout, count),
        }
    }
}

impl Custom {
    /// Combines noncontiguous elements with an operator that expects them with their layout in memory.
    unsafe fn combine_apart(&self, input: *const c_void, inout: *mut c_void, count: usize) {
        if count == 0 {
            return;
        }
        let (of, element) = (&self.reduction.of, &self.element);
        let last = of.extent() * (count as i64 - 1);
        let from = of.true_lb() + last.min(0);
        let to = of.true_lb() + of.true_extent() + last.max(0);
        let bytes = count * element.size;
        let room = || datatype::memory((to - from) as usize);
        let (Ok(mut first), Ok(mut second)) = (room(), room()) else {
            crate::error::fatal("there is no memory to combine elements in", ERR_NO_MEM);
        };
        let place = |room: &mut Vec<u8>| {
            let address: *mut c_void = room.as_mut_ptr().cast();
            address.wrapping_byte_offset(-from as isize)
        };
        let (first, second) = (place(&mut first), place(&mut second));
        // SAFETY: the caller upholds the safety contract of this function, and both buffers have room for the elements
        // with their gaps.
        unsafe {
            element.unpack(input.cast(), bytes, first);
            element.unpack(inout.cast_const().cast(), bytes, second);
            self.reduction.combine(first, second, count as i64);
            element.pack(second, bytes, inout.cast());
        }
    }
}
