//! User-defined operators.

use std::ffi::{c_int, c_void};

use super::{name, none};
use crate::abi::*;
use crate::error::{Error, Result};
use crate::objects::{Kind, Table};

/// A user-defined operator.
#[derive(Clone, Copy)]
pub(super) struct User {
    function: UserFunction,
    pub(super) commutative: bool,
}

static USERS: Table<User> = Table::new(Kind::Op);

/// Creates an operator and returns its handle.
pub fn create(function: UserFunction, commutative: bool) -> Result<Op> {
    let is_none = match function {
        UserFunction::Small(function) => function.is_none(),
        UserFunction::Large(function) => function.is_none(),
        UserFunction::Adapted(adapted) => adapted.function == 0,
    };
    if is_none {
        let text = "the function of the operator is a null pointer";
        return Err(Error::new(ERR_ARG, text));
    }
    let made = USERS.insert(User {
        function,
        commutative,
    });
    made.map(Op)
        .ok_or_else(|| Error::new(ERR_NO_MEM, "there are too many operators"))
}

/// Frees an operator: its handle is invalid from now on. Operations that still need the operator keep it.
pub fn free(op: Op) -> Result {
    if let Some(name) = name(op) {
        let text = format!("{name} is predefined and cannot be freed");
        return Err(Error::new(ERR_OP, text));
    }
    USERS.remove(op.0).map(drop).ok_or_else(|| none(op))
}

/// Returns whether an operator is commutative.
pub fn is_commutative(op: Op) -> Result<bool> {
    match find(op) {
        Some(user) => Ok(user.commutative),
        None => name(op)
            .map(|_| op != REPLACE && op != NO_OP)
            .ok_or_else(|| none(op)),
    }
}

pub(super) fn find(op: Op) -> Option<User> {
    USERS.get(op.0)
}

impl User {
    /// Calls the program's callback.
    ///
    /// # Safety
    /// The callback may be called with these elements.
    pub(super) unsafe fn combine(
        &self,
        input: *const c_void,
        inout: *mut c_void,
        count: i64,
        mut datatype: Datatype,
    ) {
        let input = input.cast_mut();
        // SAFETY: the caller upholds the safety contract of this function; a count of int is cut into several if it
        // does not fit.
        unsafe {
            match &self.function {
                UserFunction::Adapted(adapted) => {
                    (adapted.call)(adapted, input, inout, count, datatype);
                }
                UserFunction::Large(Some(function)) => {
                    let mut count = count;
                    function(input, inout, &mut count, &mut datatype);
                }
                UserFunction::Small(Some(function)) => {
                    if let Ok(mut count) = c_int::try_from(count) {
                        function(input, inout, &mut count, &mut datatype);
                    } else {
                        self.combine_many(input, inout, count, datatype);
                    }
                }
                _ => {}
            }
        }
    }

    /// Combines more elements than fit into an int, in several calls.
    unsafe fn combine_many(
        &self,
        input: *mut c_void,
        inout: *mut c_void,
        count: i64,
        datatype: Datatype,
    ) {
        let Ok(of) = crate::datatype::get(datatype) else {
            return;
        };
        let most = i64::from(c_int::MAX);
        for first in (0..count).step_by(c_int::MAX as usize) {
            let distance = (first * of.extent()) as isize;
            let (input, inout) = (
                input.wrapping_byte_offset(distance),
                inout.wrapping_byte_offset(distance),
            );
            // SAFETY: the caller upholds the safety contract of this function, of these elements.
            unsafe { self.combine(input, inout, most.min(count - first), datatype) };
        }
    }
}
