//! `nx_initve_attr` and `nx_mkpart_attr`.
//!
//! They are variadic and therefore implemented in `csrc/attributes.c`, which passes what it has read to the functions
//! here. A Rust library exports only symbols defined in Rust, therefore the names of `nx.h` are jumps to the C
//! functions.

use std::ffi::{c_char, c_int, c_long};

use crate::application::init_sized;
use crate::error::{Answer, EQPARAM, Fault};
use crate::forms::value_forms;
use crate::options::Size;
use crate::partition::Settings;
use crate::partitions::{make, usual_settings};

unsafe extern "C" {
    fn regatta_nx_initve_attr();
    fn regatta_nx_mkpart_attr();
}

regatta_sys::jumps! {
    nx_initve_attr => regatta_nx_initve_attr,
    nx_mkpart_attr => regatta_nx_mkpart_attr,
}

/// The same layout as in `csrc/attributes.c`. A size of 0, and -1 in the other fields, means not given; `rows` and
/// `columns` are valid only if `has_rectangle` is set.
#[repr(C)]
struct Attributes {
    size: c_long,
    has_rectangle: c_long,
    rows: c_long,
    columns: c_long,
    scheduling: c_long,
    quantum: c_long,
    mode: c_long,
    priority_limit: c_long,
    map: *const c_long,
    wrong: c_long,
}

impl Attributes {
    /// Returns the size, if one is given.
    fn size(&self) -> Result<Option<Size>, Fault> {
        match (self.wrong, self.has_rectangle, self.size) {
            (0, 0, 0 | -1) => Ok(None),
            (0, 0, size) => Size::nodes(size).map(Some),
            (0, ..) => Size::rectangle(self.rows, self.columns).map(Some),
            (wrong, ..) => Err(Fault::of(EQPARAM, "attribute", wrong)),
        }
    }

    fn settings(&self) -> Settings {
        let mut settings = usual_settings();
        let said = [
            (self.scheduling, &mut settings.scheduling),
            (self.quantum, &mut settings.quantum),
            (self.mode, &mut settings.mode),
            (self.priority_limit, &mut settings.priority_limit),
        ];
        for (value, setting) in said {
            if value != -1 {
                *setting = value;
            }
        }
        settings
    }
}

unsafe fn init(
    partition: *const c_char,
    argc: *mut c_int,
    argv: *mut *mut c_char,
    attributes: *const Attributes,
) -> Answer {
    // SAFETY: `csrc/attributes.c` passes a valid struct and the program's arguments.
    unsafe { init_sized(partition, (*attributes).size()?, argc, argv) }
}

unsafe fn make_partition(partition: *const c_char, attributes: *const Attributes) -> Answer {
    // SAFETY: `csrc/attributes.c` passes a valid struct.
    let attributes = unsafe { &*attributes };
    let size = attributes.size()?;
    // SAFETY: by the C contract the map has as many numbers as the size says.
    unsafe { make(partition, size, attributes.map, attributes.settings()) }
}

value_forms! {
    c_long, std::convert::identity;
    regatta_nx_initve_read: (partition: *const c_char, argc: *mut c_int, argv: *mut *mut c_char, attributes: *const Attributes) = init;
    regatta_nx_mkpart_read: (partition: *const c_char, attributes: *const Attributes) = make_partition;
}
