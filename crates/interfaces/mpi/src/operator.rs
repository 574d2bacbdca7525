//! Reduction operators, predefined and user-defined.
//!
//! [`engine`] returns without a lock whether the engine can do a reduction by itself. Everything else is a
//! [`Reduction`], which combines elements in memory.

mod kernels;
mod long_double;
mod pairs;
mod user;

#[cfg(test)]
mod tests;

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use regatta_sys as rg;

pub use user::{create, free, is_commutative};

use crate::abi::*;
use crate::datatype::builtin::{self, BASICS, Basic, Kind};
use crate::datatype::{self, Kept, Type, fortran};
use crate::error::{Error, Result};

/// A function that combines `count` elements of the first buffer with those of the second, which gets the result.
pub type Kernel = unsafe fn(*const u8, *mut u8, usize);

/// An operator for elements of a datatype.
pub struct Reduction {
    /// The engine's type and operator, if the engine supports them.
    pub engine: Option<Engine>,
    /// Whether the operator is commutative.
    pub commutative: bool,
    /// The datatype.
    pub of: Arc<Type>,
    /// Its handle, which is passed to a user-defined operator.
    datatype: Kept,
    how: How,
}

/// The engine's type and operator for elements of a datatype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine {
    /// The engine's type.
    pub kind: c_int,
    /// The engine's operator.
    pub op: rg::Op,
    /// Number of the engine's elements in one element.
    pub times: usize,
}

enum How {
    Kernel(Kernel),
    Pairs(pairs::Order),
    User(user::User),
}

impl Reduction {
    /// Stores `in (op) inout` in `inout`, for `count` elements.
    ///
    /// # Safety
    /// The elements are valid for reads and writes, at distances of their datatype's extent.
    pub unsafe fn combine(&self, input: *const c_void, inout: *mut c_void, count: i64) {
        if count <= 0 {
            return;
        }
        // SAFETY: the caller upholds the safety contract of this function.
        unsafe {
            match &self.how {
                How::Kernel(kernel) => kernel(input.cast(), inout.cast(), count as usize),
                How::Pairs(order) => order.combine(input.cast(), inout.cast(), count as usize),
                How::User(user) => user.combine(input, inout, count, self.datatype.handle()),
            }
        }
    }
}

/// Returns the engine's type and operator for this operator and predefined datatype. Returns `None` if the engine does
/// not support them.
#[inline]
pub fn engine(op: Op, datatype: Datatype) -> Option<Engine> {
    const FIRST: usize = 0x200;
    static KINDS: [(c_int, u8); 256] = kinds();
    let (kind, times) = *KINDS.get(datatype.0.wrapping_sub(FIRST))?;
    let is_integer = kind < rg::FLOAT;
    let is_logical = times == LOGICAL_VALUE;
    let id = match op {
        SUM if !is_logical => rg::SUM,
        PROD if !is_logical && times == 1 => rg::PRODUCT,
        MAX if !is_logical && times == 1 => rg::MAX,
        MIN if !is_logical && times == 1 => rg::MIN,
        LAND if is_integer => rg::AND,
        LOR if is_integer => rg::OR,
        LXOR if is_integer => rg::XOR,
        BAND if is_integer && !is_logical => rg::BAND,
        BOR if is_integer && !is_logical => rg::BOR,
        BXOR if is_integer && !is_logical => rg::BXOR,
        _ => return None,
    };
    let times = if is_logical { 1 } else { usize::from(times) };
    (kind != 0).then_some(Engine {
        kind,
        op: id,
        times,
    })
}

/// Stands for the number of the engine's elements if the datatype is logical.
const LOGICAL_VALUE: u8 = 0;

const fn kinds() -> [(c_int, u8); 256] {
    use crate::datatype::builtin::BASICS;
    let mut kinds = [(0, 1); 256];
    let mut at = 0;
    while at < BASICS.len() {
        let basic = &BASICS[at];
        let integer = match basic.size {
            1 => rg::UINT8,
            2 => rg::UINT16,
            4 => rg::UINT32,
            8 => rg::UINT64,
            _ => 0,
        };
        let signed = integer
            - if integer == 0 {
                0
            } else {
                rg::UINT8 - rg::INT8
            };
        let is_extended = matches!(
            basic.datatype,
            LONG_DOUBLE | C_LONG_DOUBLE_COMPLEX | CXX_LONG_DOUBLE_COMPLEX
        );
        let real = match basic.size {
            4 => rg::FLOAT,
            8 => rg::DOUBLE,
            16 if is_extended && cfg!(target_arch = "x86_64") => rg::LONG_DOUBLE,
            _ => 0,
        };
        let half = match basic.size {
            8 => rg::FLOAT,
            16 => rg::DOUBLE,
            32 if is_extended && cfg!(target_arch = "x86_64") => rg::LONG_DOUBLE,
            _ => 0,
        };
        kinds[basic.datatype.0 - 0x200] = match basic.kind {
            Kind::Signed => (signed, 1),
            Kind::Unsigned => (integer, 1),
            Kind::Real => (real, 1),
            Kind::Complex => (half, 2),
            Kind::Logical => (integer, LOGICAL_VALUE),
            Kind::Letter | Kind::Bytes => (0, 1),
        };
        at += 1;
    }
    kinds[CHAR.0 - 0x200] = (rg::INT8, 1);
    kinds
}

/// Returns the operator for elements of a committed datatype. Fails with MPI_ERR_OP if it does not support the
/// datatype.
pub fn get(op: Op, datatype: Datatype) -> Result<Reduction> {
    let of = datatype::committed(datatype)?;
    let (how, commutative) = match user::find(op) {
        Some(user) => (How::User(user), user.commutative),
        None => (predefined(op, &of)?, true),
    };
    // A datatype that was made by precision is treated as its basic datatype.
    let named = fortran::element(&of).map_or(datatype, |basic| basic.datatype);
    let engine = engine(op, named);
    Ok(Reduction {
        engine,
        commutative,
        datatype: Kept::new(datatype, of.clone()),
        of,
        how,
    })
}

fn predefined(op: Op, of: &Type) -> Result<How> {
    let name = name(op).ok_or_else(|| none(op))?;
    let found = match op {
        MINLOC | MAXLOC => {
            let elements = fortran::elements_of_pair(of);
            let order = elements.and_then(|(value, index)| pairs::order(op, value, index, of));
            order.map(How::Pairs)
        }
        _ => fortran::element(of)
            .and_then(|basic| kernels::kernel(op, basic))
            .map(How::Kernel),
    };
    found.ok_or_else(|| {
        let text = match op {
            REPLACE | NO_OP => format!("{name} is for windows only"),
            _ => format!("{name} is not for {}", of.called()),
        };
        Error::new(ERR_OP, text)
    })
}

/// Returns the operator for accumulates: like [`get`], and also MPI_REPLACE and MPI_NO_OP for contiguous elements. For
/// operators that the standard defines only for numbers, MPI_BYTE is a number from 0 to 255: other MPI libraries add
/// bytes, and programs rely on it.
pub fn for_windows(op: Op, datatype: Datatype) -> Result<Reduction> {
    let how = match op {
        REPLACE | NO_OP => kernels::Kept::of(op),
        _ if user::find(op).is_some() => {
            let text = "user-defined operators cannot be used with windows";
            return Err(Error::new(ERR_OP, text));
        }
        _ => {
            let found = get(op, datatype);
            return match datatype {
                BYTE => found.or_else(|error| get(op, UINT8_T).map_err(|_| error)),
                _ => found,
            };
        }
    };
    let of = datatype::committed(datatype)?;
    let basic = fortran::element(&of);
    let kernel = basic.and_then(|basic| how.kernel(basic.size));
    let text = || format!("the operator is not for {}", of.called());
    let how = kernel.map(How::Kernel);
    let how = how.ok_or_else(|| Error::new(ERR_OP, text()))?;
    Ok(Reduction {
        engine: None,
        commutative: false,
        datatype: Kept::new(datatype, of.clone()),
        of,
        how,
    })
}

/// The number of the first predefined operator, and the number of values up to the last one.
const FIRST: usize = 0x20;
const ALL: usize = 16;

/// The kernels of all predefined operators, including those for windows, for each predefined datatype of one element.
static KERNELS: [[Option<Kernel>; ALL]; BASICS.len()] = kernels();

const fn kernels() -> [[Option<Kernel>; ALL]; BASICS.len()] {
    let mut kernels = [[None; ALL]; BASICS.len()];
    let mut at = 0;
    while at < BASICS.len() * ALL {
        let (op, basic) = (Op(FIRST + at % ALL), &BASICS[at / ALL]);
        kernels[at / ALL][at % ALL] = match op {
            REPLACE | NO_OP => kernels::Kept::of(op).kernel(basic.size),
            _ => kernels::kernel(op, basic),
        };
        at += 1;
    }
    kernels
}

/// Returns the kernel of a predefined operator for a predefined datatype, by a table lookup.
#[inline(always)]
pub fn of_predefined(op: Op, datatype: Datatype) -> Option<Kernel> {
    let kernels = KERNELS.get(builtin::place(datatype))?;
    *kernels.get(op.0.wrapping_sub(FIRST))?
}

/// Returns the name of a predefined operator.
pub fn name(op: Op) -> Option<&'static str> {
    Some(match op {
        SUM => "MPI_SUM",
        MIN => "MPI_MIN",
        MAX => "MPI_MAX",
        PROD => "MPI_PROD",
        BAND => "MPI_BAND",
        BOR => "MPI_BOR",
        BXOR => "MPI_BXOR",
        LAND => "MPI_LAND",
        LOR => "MPI_LOR",
        LXOR => "MPI_LXOR",
        MINLOC => "MPI_MINLOC",
        MAXLOC => "MPI_MAXLOC",
        REPLACE => "MPI_REPLACE",
        NO_OP => "MPI_NO_OP",
        _ => return None,
    })
}

/// Returns the error for an invalid operator.
#[cold]
pub fn none(op: Op) -> Error {
    let text = match op {
        OP_NULL => "the operator is MPI_OP_NULL".to_owned(),
        Op(value) => format!("{value:#x} is not a valid operator; it may have been freed"),
    };
    Error::new(ERR_OP, text)
}

/// Returns whether numbers of this type have the format of the machine's long double.
const fn is_long_double(basic: &Basic) -> bool {
    matches!(
        basic.datatype,
        LONG_DOUBLE | C_LONG_DOUBLE_COMPLEX | CXX_LONG_DOUBLE_COMPLEX
    ) && cfg!(target_arch = "x86_64")
}
