//! `nx_initve_attr` and `nx_mkpart_attr`.
//!
//! They take any number of arguments, so `csrc/attributes.c` has them, which brings here what it has read. A library made by Rust exports only
//! what is written in Rust, therefore the names of `nx.h` are jumps.

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

/// As in `csrc/attributes.c`: a size of 0, and others of -1, have not been said; nor has a rectangle that `has_rectangle` does not tell of.
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
    /// The size that is said, if any.
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
    // SAFETY: `csrc/attributes.c` passes them, and the program's arguments.
    unsafe { init_sized(partition, (*attributes).size()?, argc, argv) }
}

unsafe fn make_partition(partition: *const c_char, attributes: *const Attributes) -> Answer {
    // SAFETY: as above.
    let attributes = unsafe { &*attributes };
    let size = attributes.size()?;
    // SAFETY: the C contract: as many numbers in the map as the size says.
    unsafe { make(partition, size, attributes.map, attributes.settings()) }
}

value_forms! {
    c_long, std::convert::identity;
    regatta_nx_initve_read: (partition: *const c_char, argc: *mut c_int, argv: *mut *mut c_char, attributes: *const Attributes) = init;
    regatta_nx_mkpart_read: (partition: *const c_char, attributes: *const Attributes) = make_partition;
}
