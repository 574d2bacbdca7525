//! The constants of `pvm3.h` that concern messages: errors, encodings, data types.

/// An argument is invalid.
pub const BAD_PARAM: i32 = -2;
/// Two things do not fit together.
pub const MISMATCH: i32 = -3;
/// A value does not fit its encoding.
pub const OVERFLOW: i32 = -4;
/// End of the message.
pub const NO_DATA: i32 = -5;
/// No such host.
pub const NO_HOST: i32 = -6;
/// No such program.
pub const NO_FILE: i32 = -7;
/// Not allowed.
pub const DENIED: i32 = -8;
/// Out of memory.
pub const NO_MEM: i32 = -10;
/// The message cannot be decoded on this host.
pub const BAD_MSG: i32 = -12;
/// The virtual machine does not answer.
pub const SYS_ERR: i32 = -14;
/// There is no current buffer.
pub const NO_BUF: i32 = -15;
/// No buffer has this number.
pub const NO_SUCH_BUF: i32 = -16;
/// The name of a group is missing.
pub const NULL_GROUP: i32 = -17;
/// The task is already in the group.
pub const DUP_GROUP: i32 = -18;
/// No such group.
pub const NO_GROUP: i32 = -19;
/// The task is not in the group.
pub const NOT_IN_GROUP: i32 = -20;
/// The group has no such member.
pub const NO_INST: i32 = -21;
/// A host was lost.
pub const HOST_FAIL: i32 = -22;
/// This task was not started by a PVM task.
pub const NO_PARENT: i32 = -23;
/// Not implemented for this kind of message.
pub const NOT_IMPL: i32 = -24;
/// The virtual machine failed.
pub const D_SYS_ERR: i32 = -25;
/// Versions do not fit.
pub const BAD_VERSION: i32 = -26;
/// Out of resources.
pub const OUT_OF_RES: i32 = -27;
/// The host has already been added.
pub const DUP_HOST: i32 = -28;
/// The virtual machine could not be started.
pub const CANT_START: i32 = -29;
/// Already in progress.
pub const ALREADY: i32 = -30;
/// No such task.
pub const NO_TASK: i32 = -31;
/// No entry has this name.
pub const NOT_FOUND: i32 = -32;
/// An entry has this name already.
pub const EXISTS: i32 = -33;
/// A hoster must run on the first host.
pub const HOSTER_NOT_MASTER: i32 = -34;
/// The parent hides itself (PvmNoSpawnParent).
pub const PARENT_NOT_SET: i32 = -35;
/// The first host's address is a loopback address.
pub const IP_LOOPBACK: i32 = -36;

/// The encodings of `pvm_mkbuf` and `pvm_initsend`.
pub mod encoding {
    /// XDR.
    pub const DEFAULT: i32 = 0;
    /// In this machine's format.
    pub const RAW: i32 = 1;
    /// Not copied until it is sent.
    pub const IN_PLACE: i32 = 2;
    /// XDR, each item preceded by its type, for tracers.
    pub const TRACE: i32 = 4;
}

/// The encoding of an XDR message, as in `pvm_getminfo`.
pub const XDR: i32 = 0x1000_0000;
/// The encoding of a message in place.
pub const IN_PLACE: i32 = 0x2000_0000;
/// The encoding of a message for a tracer.
pub const TRACE: i32 = 0x4000_0000;
/// The encoding of a raw message: the signature of this machine's data format.
pub const RAW: i32 = signature();

/// Returns the signature: sizes as powers of two and byte orders (0 little, 3 big) of short, int and long, and the
/// formats of float (1: IEEE) and double (2: IEEE) with their byte orders.
const fn signature() -> i32 {
    const fn integer(bytes: usize) -> i32 {
        let order = if cfg!(target_endian = "big") { 3 } else { 0 };
        order << 3 | bytes.trailing_zeros() as i32
    }
    let real = if cfg!(target_endian = "big") {
        3 << 4
    } else {
        0
    };
    integer(size_of::<libc::c_short>())
        | integer(size_of::<libc::c_int>()) << 5
        | integer(size_of::<libc::c_long>()) << 10
        | (real | 1) << 15
        | (real | 2) << 21
}

/// Types of data of `pvm_psend`, `pvm_precv` and `pvm_reduce`.
pub mod datatype {
    /// A NUL-terminated string.
    pub const STR: i32 = 0;
    /// `char`
    pub const BYTE: i32 = 1;
    /// `short`
    pub const SHORT: i32 = 2;
    /// `int`
    pub const INT: i32 = 3;
    /// `float`
    pub const FLOAT: i32 = 4;
    /// Two `float`s.
    pub const CPLX: i32 = 5;
    /// `double`
    pub const DOUBLE: i32 = 6;
    /// Two `double`s.
    pub const DCPLX: i32 = 7;
    /// `long`
    pub const LONG: i32 = 8;
    /// `unsigned short`
    pub const USHORT: i32 = 9;
    /// `unsigned int`
    pub const UINT: i32 = 10;
    /// `unsigned long`
    pub const ULONG: i32 = 11;
}
