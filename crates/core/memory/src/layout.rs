//! Layout of the structures that processes share, as text that a test compares.
//!
//! Two versions of the library must never share a segment of which they read the same bytes differently. So each structure
//! in a segment names its fields and its bits here, and a test of `crates/core/segment` holds all of them to the version in the
//! segment's header. A structure with a field that is not named does not compile.

use std::fmt;

/// Bytes of a field, which a closure picks.
#[doc(hidden)]
pub const fn bytes<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// One structure: its bytes, its fields (name, first byte, bytes), and the values its words can have.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Its name.
    pub name: &'static str,
    /// All of it.
    pub size: usize,
    /// Fields.
    pub fields: &'static [(&'static str, usize, usize)],
    /// Bits, marks and distances that processes must agree about.
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

/// The [`Layout`] of a structure. All its fields are named, and constants that stand for values.
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

/// The structures of this crate.
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
