//! Layout of the structures that processes share, as text that a test compares.
//!
//! Two versions of the library must never share a segment in which they interpret the same bytes differently. So each
//! structure in a segment lists its fields and its bits here, and a test of `crates/core/segment` compares all of them
//! with the version in the segment's header. A structure with a field that is not listed does not compile.

use std::fmt;

/// Returns the size of the field that the closure selects.
#[doc(hidden)]
pub const fn bytes<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// The layout of one structure: its size, its fields (name, offset, size), and the values of its words.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Its name.
    pub name: &'static str,
    /// Size of the structure, in bytes.
    pub size: usize,
    /// The fields: name, offset and size in bytes.
    pub fields: &'static [(&'static str, usize, usize)],
    /// Bits, marks and distances on which processes must agree.
    pub values: &'static [(&'static str, u64)],
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:", self.name, self.size)?;
        for (field, at, size) in self.fields {
            write!(f, " {field} {at}+{size}")?;
        }
        for (value, is) in self.values {
            write!(f, " {value}={is:x}")?;
        }
        writeln!(f)
    }
}

/// Returns the [`Layout`] of a structure. All its fields must be listed, and the constants that stand for values.
#[macro_export]
macro_rules! layout {
    ($name:literal, $type:ident { $($field:tt),* $(,)? } $($value:ident)*) => {{
        #[allow(dead_code)]
        fn all_fields(whole: &$type) {
            let $type { $($field: _),* } = whole;
        }
        $crate::layout::Layout {
            name: $name,
            size: size_of::<$type>(),
            fields: &[$((
                stringify!($field),
                std::mem::offset_of!($type, $field),
                $crate::layout::bytes(|whole: &$type| &whole.$field),
            )),*],
            values: &[$((stringify!($value), $value as u64)),*],
        }
    }};
}

/// The layouts of this crate's structures.
pub const ALL: &[Layout] = &[
    crate::segment::LAYOUT,
    crate::making::NEXT_LAYOUT,
    crate::making::LAYOUT,
    crate::stack::LAYOUT,
    crate::list::LAYOUT,
    crate::ends::LAYOUT,
    crate::block::LAYOUT,
    crate::pipe::LAYOUT,
    crate::shared_barrier::LAYOUT,
    crate::losses::LAYOUT,
    crate::bell::LAYOUT,
    crate::bell::PAYERS_LAYOUT,
    crate::wake_request::LAYOUT,
];
