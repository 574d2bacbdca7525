//! The constants of `regatta.h`.

use std::ffi::c_int;

use crate::layout::{Constant, Value};
use crate::{Group, Message, Op, Request};

/// Defines numbers and operators, and the function `constants`, which lists them together with others.
macro_rules! constants {
    (
        numbers { $($number:ident: $type:ty = $value:expr,)* }
        operators { $($operator:ident = $id:expr,)* }
        others { $($other:expr,)* }
    ) => {
        $(
            #[doc = concat!("`RG_", stringify!($number), "` of `regatta.h`.")]
            pub const $number: $type = $value;
        )*
        $(
            #[doc = concat!("`RG_", stringify!($operator), "` of `regatta.h`.")]
            pub const $operator: Op = Op { id: $id };
        )*

        /// Returns all constants of the header.
        pub fn constants() -> Vec<Constant> {
            vec![
                $(Constant::number(concat!("RG_", stringify!($number)), $number),)*
                $(handle(concat!("RG_", stringify!($operator)), $operator.id),)*
                $($other,)*
            ]
        }
    };
}

constants! {
    numbers {
        VERSION_MAJOR: c_int = part(env!("CARGO_PKG_VERSION_MAJOR")),
        VERSION_MINOR: c_int = part(env!("CARGO_PKG_VERSION_MINOR")),

        OK: c_int = 0,
        ERR_ARGUMENT: c_int = -1,
        ERR_STATE: c_int = -2,
        ERR_TASK: c_int = -3,
        ERR_TAG: c_int = -4,
        ERR_HANDLE: c_int = -5,
        ERR_TRUNCATED: c_int = -6,
        ERR_DEAD: c_int = -7,
        ERR_LEFT: c_int = -8,
        ERR_MEMORY: c_int = -9,
        ERR_CYCLE: c_int = -10,
        ERR_CANCELLED: c_int = -12,
        ERR_CORRUPT: c_int = -13,
        ERR_LAUNCHER: c_int = -14,
        ERR_VERSION: c_int = -15,
        ERR_SYSTEM: c_int = -16,
        ERR_UNSUPPORTED: c_int = -17,
        ERR_PROGRAM: c_int = -18,
        ERR_HOST: c_int = -19,
        ERR_NAME: c_int = -20,
        ERR_EXISTS: c_int = -21,
        ERR_DENIED: c_int = -22,
        ERR_NOTHING: c_int = -23,
        ERR_REVOKED: c_int = -24,

        BEGIN: c_int = 1,
        BEGIN_ONLY: c_int = 2,
        LOOK: c_int = 3,

        ANY: c_int = -1,
        NONE: c_int = -2,

        INT8: c_int = 1,
        INT16: c_int = 2,
        INT32: c_int = 3,
        INT64: c_int = 4,
        UINT8: c_int = 5,
        UINT16: c_int = 6,
        UINT32: c_int = 7,
        UINT64: c_int = 8,
        FLOAT: c_int = 9,
        DOUBLE: c_int = 10,
        LONG_DOUBLE: c_int = 11,

        OUTPUT_JOB: c_int = 1,
        OUTPUT_LINES: c_int = 2,
        OUTPUT_BLOCKS: c_int = 3,
        OUTPUT_BIRTHS: c_int = 16,
        OUTPUT_MARK: u32 = u32::from_le_bytes(*b"RGou"),
        OUTPUT_MOST: c_int = 4096,

        START_MARK: u32 = u32::from_le_bytes(*b"RGst"),
        HOSTS_MARK: u32 = u32::from_le_bytes(*b"RGho"),

        TASK_EXIT: c_int = 1,
        HOST_LOST: c_int = 2,
        HOST_ADDED: c_int = 3,
        TASKS: c_int = 4,
        BY_EXIT: c_int = 1,
        BY_SIGNAL: c_int = 2,
        BY_HOST: c_int = 3,
        UNKNOWN: c_int = 4,
        EVENT_MARK: u32 = u32::from_le_bytes(*b"RGev"),

        PERSISTENT: c_int = 1,
        SEVERAL: c_int = 2,
        OVERWRITABLE: c_int = 4,
        FIRST: c_int = 8,
        TAKE: c_int = 16,
        AWAIT: c_int = 32,
    }
    operators {
        SUM = 1,
        PRODUCT = 2,
        MAX = 3,
        MIN = 4,
        AND = 5,
        OR = 6,
        XOR = 7,
        BAND = 8,
        BOR = 9,
        BXOR = 10,
    }
    others {
        handle("RG_WORLD", WORLD.id),
        handle("RG_ALL", ALL.id),
        handle("RG_CHANNEL(7)", channel(7).id),
        handle("RG_REQUEST_NULL", REQUEST_NULL.id as i64),
        handle("RG_REQUEST_COMPLETE", REQUEST_COMPLETE.id as i64),
        handle("RG_MESSAGE_NULL", MESSAGE_NULL.id as i64),
        handle("RG_MESSAGE_NONE", MESSAGE_NONE.id as i64),
        Constant::number("RG_BYTES(24)", bytes(24)),
        Constant { name: "RG_IN_PLACE", value: Value::Address(IN_PLACE) },
    }
}

fn handle(name: &'static str, id: impl Into<i64>) -> Constant {
    let value = Value::Handle(id.into());
    Constant { name, value }
}

/// `RG_WORLD` of `regatta.h`: the tasks that were started together with this one.
pub const WORLD: Group = Group { id: 0 };
/// `RG_ALL` of `regatta.h`: every task of the job.
pub const ALL: Group = channel(0);
/// `RG_REQUEST_NULL` of `regatta.h`: no request.
pub const REQUEST_NULL: Request = Request { id: 0 };
/// `RG_REQUEST_COMPLETE` of `regatta.h`: an operation that was complete when it was started.
pub const REQUEST_COMPLETE: Request = Request { id: 1 << 63 };
/// `RG_MESSAGE_NULL` of `regatta.h`: no message.
pub const MESSAGE_NULL: Message = Message { id: 0 };
/// `RG_MESSAGE_NONE` of `regatta.h`: the empty message that has no sender.
pub const MESSAGE_NONE: Message = Message { id: u64::MAX };
/// `RG_IN_PLACE` of `regatta.h`, as an address: the input of a collective is read from its output buffer.
pub const IN_PLACE: usize = 1;

/// `RG_CHANNEL` of `regatta.h`: the group of all tasks with this channel number.
#[inline(always)]
pub const fn channel(number: i32) -> Group {
    Group {
        id: 0x4000_0000 + number,
    }
}

/// The first channel that is reserved for the interfaces; all later ones are, too. Programs use the channels before it.
pub const FIRST_LIBRARY_CHANNEL: i32 = 1 << 27;

/// Returns a channel of an interface. PVM's are from 2²⁸ − 3 on, and executors of Python have some there, too; all others have theirs before that: MPI's for
/// texts are the 2²⁶ before 2²⁸.
pub const fn library_channel(number: i32) -> Group {
    channel(FIRST_LIBRARY_CHANNEL + number)
}

/// `RG_BYTES` of `regatta.h`: an element of `n` bytes, for user-defined operators.
pub const fn bytes(n: c_int) -> c_int {
    0x10000 + n
}

/// Parses a component of this crate's version.
const fn part(digits: &str) -> c_int {
    match c_int::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version is made of numbers"),
    }
}
