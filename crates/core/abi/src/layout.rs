//! The list of everything in this crate, in a form that a C program can check.

use std::ffi::{c_char, c_int, c_void};

/// The layout in Rust of a struct or an enumeration of the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its name in C.
    pub name: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub alignment: usize,
    /// Its fields in order; empty for an enumeration.
    pub fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, the same in C and in Rust.
    pub name: &'static str,
    /// Offset in the struct, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Alignment in bytes.
    pub alignment: usize,
    /// Its type in C.
    pub c: String,
}

impl Field {
    /// Returns the field of type `T` with this name and offset.
    pub(crate) fn of<T: InC>(name: &'static str, offset: usize) -> Field {
        Field {
            name,
            offset,
            size: size_of::<T>(),
            alignment: align_of::<T>(),
            c: T::name(),
        }
    }
}

/// A constant of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name in C; for a macro with an argument, an invocation.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
}

/// The value of a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(i64),
    /// A handle with this `id`.
    Handle(i64),
    /// A pointer to this address.
    Address(usize),
}

/// A type that is used in a struct of the header.
pub trait InC {
    /// Returns its name in C.
    fn name() -> String;
}

macro_rules! named {
    ($($rust:ty: $c:literal,)*) => {
        $(impl InC for $rust {
            fn name() -> String {
                $c.to_owned()
            }
        })*
    };
}

named! {
    i32: "int32_t",
    u32: "uint32_t",
    u64: "uint64_t",
    usize: "size_t",
    isize: "ptrdiff_t",
    *mut c_void: "void *",
    *const c_char: "const char *",
    *const *const c_char: "const char *const *",
    crate::Group: "rg_group",
}

impl<const N: usize> InC for [c_char; N] {
    fn name() -> String {
        format!("char[{N}]")
    }
}

impl Constant {
    /// Returns the constant with this number.
    pub(crate) fn number(name: &'static str, value: impl Into<i64>) -> Constant {
        let value = Value::Number(value.into());
        Constant { name, value }
    }
}

/// Returns the layout of the enumeration `rg_type`, which functions take as an `int`.
pub(crate) fn enumeration(name: &'static str) -> Layout {
    Layout {
        name,
        size: size_of::<c_int>(),
        alignment: align_of::<c_int>(),
        fields: Vec::new(),
    }
}
