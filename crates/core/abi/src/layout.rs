//! The list of everything in this crate, as a program in C can check it.

use std::ffi::{c_char, c_int, c_void};

/// A struct or an enumeration of the header, as Rust lays it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its name in C.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Bytes of which its address is a multiple.
    pub alignment: usize,
    /// Its fields in order; an enumeration has none.
    pub fields: Vec<Field>,
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, the same in C and in Rust.
    pub name: &'static str,
    /// Bytes of the struct before it.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
    /// Bytes of which its address is a multiple.
    pub alignment: usize,
    /// Its type in C.
    pub c: String,
}

impl Field {
    /// The field of type `T` with this name and offset.
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
    /// Its name in C; of a macro with an argument, a call of it.
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

/// A type that stands in a struct of the header.
pub trait InC {
    /// Its name in C.
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
    /// The constant with this number.
    pub(crate) fn number(name: &'static str, value: impl Into<i64>) -> Constant {
        let value = Value::Number(value.into());
        Constant { name, value }
    }
}

/// The layout of the enumeration `rg_type`, which a function takes as an `int`.
pub(crate) fn enumeration(name: &'static str) -> Layout {
    Layout {
        name,
        size: size_of::<c_int>(),
        alignment: align_of::<c_int>(),
        fields: Vec::new(),
    }
}
