//! The cube of this node, and the frame of every call.

use std::ffi::c_int;

use regatta_nodes::fault::{Fault, answer};
use regatta_nodes::own::Own;
use regatta_nodes::place::{joined, place};
use regatta_nodes::rg;

use crate::cube;

/// Mask of the channel to the host program.
pub const HOST_CHANNEL: c_int = 1 << 30;
/// The channel of all messages: "CRS".
pub const GROUP: rg::Group = rg::library_channel(0x0043_5253);

/// The dimension of the cube, once it is known.
static DIMENSION: Own<Option<u32>> = Own::new(None);

/// Runs the work of a call, after joining if necessary, and converts its result for the program.
#[inline(always)]
pub fn call(function: &str, work: impl FnOnce() -> Result<c_int, Fault>) -> c_int {
    let worked = || {
        if DIMENSION.get().is_none() {
            enter()?;
        }
        work()
    };
    answer("cros", function, worked())
}

#[cold]
fn enter() -> Result<(), Fault> {
    joined()?;
    let nodes = place().nodes;
    let dimension = cube::dimension(nodes);
    *DIMENSION.get() = Some(dimension.ok_or_else(|| {
        Fault::says(format!(
            "{nodes} nodes do not form a hypercube: their number must be a power of two"
        ))
    })?);
    Ok(())
}

/// Returns the dimension of the cube. Valid within a call.
#[inline(always)]
pub fn dimension() -> u32 {
    DIMENSION.get().unwrap_or_default()
}

/// Returns the mask of all channels to nodes.
#[inline(always)]
pub fn all_channels() -> c_int {
    (1 << dimension()) - 1
}

/// `struct cubenv` of `cros.h`.
#[repr(C)]
pub struct Environment {
    doc: c_int,
    procnum: c_int,
    nproc: c_int,
    cpmask: c_int,
    cubemask: c_int,
}

/// Describes the cube and this node's number to the program. Returns 0, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn cparam(environment: *mut Environment) -> c_int {
    call("cparam", || {
        if environment.is_null() {
            return Err(Fault::says("the pointer for the environment is NULL"));
        }
        let told = Environment {
            doc: dimension() as c_int,
            procnum: place().node,
            nproc: place().nodes,
            cpmask: HOST_CHANNEL,
            cubemask: all_channels(),
        };
        // SAFETY: by the C contract the struct is writable.
        unsafe { environment.write(told) };
        Ok(0)
    })
}
