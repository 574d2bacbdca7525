//! Reduction operators, and reductions within one process.

use std::ffi::{c_int, c_void};

use crate::abi::*;
use crate::arguments::Out;
use crate::error::{Error, Result};
use crate::operator;

pub fn op_create(user_fn: UserFunction, commute: c_int, op: Out<Op>) -> Result {
    let made = operator::create(user_fn, commute != 0)?;
    op.put(made);
    Ok(())
}

pub unsafe fn op_free(op: Out<Op>) -> Result {
    operator::free(op.get())?;
    op.put(OP_NULL);
    Ok(())
}

pub fn op_commutative(op: Op, commute: Out<c_int>) -> Result {
    let found = operator::is_commutative(op)?;
    commute.put(c_int::from(found));
    Ok(())
}

pub unsafe fn reduce_local(
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result {
    let reduction = operator::get(op, datatype)?;
    let length = reduction.of.packed_size(count)?;
    for buffer in [inbuf, inoutbuf.cast_const()] {
        if length != 0 && buffer as usize == IN_PLACE {
            let text = "a buffer is MPI_IN_PLACE, which this call does not support";
            return Err(Error::new(ERR_BUFFER, text));
        }
        reduction.of.check_buffer(buffer, length)?;
    }
    if length != 0 && inbuf == inoutbuf.cast_const() {
        let text = "both buffers are the same";
        return Err(Error::new(ERR_BUFFER, text));
    }
    // SAFETY: the caller guarantees that the buffers have these elements.
    unsafe { reduction.combine(inbuf, inoutbuf, count) };
    Ok(())
}
