//! The ways of sending messages that PVM has, each an echo test.

use super::{Need, Operation, Pattern, Program};
use crate::suites::{MANIEZZO_SANNA, PVM, Suite};

const SUITES: &[&Suite] = &[&PVM, &MANIEZZO_SANNA];

pub(super) static ALL: &[&Operation] = &[
    &Operation {
        about: "an echo test like `one-to-one`, with blocking calls; with the suffix `-int`, `-float` or `-double`: of that type",
        suites: SUITES,
        need: Need::Library,
        pattern: Pattern::Messages,
        smallest: 0,
        ..Operation::echo("ping-pong-blocking", Program::Primitive("one-to-one.c"))
    },
    &Operation {
        about: "the receiver polls until the message has arrived",
        suites: &[&PVM],
        smallest: 0,
        ..of_bytes("ping-pong-asynchronous", Need::Packing)
    },
    &Operation {
        about: "the message is packed in the machine's own format; with the suffix `-int`, `-float` or `-double`: of that type",
        ..of_bytes("ping-pong-blocking-pack-raw", Need::Packing)
    },
    &Operation {
        about: "the elements are not copied until the message is sent; also with `-int`, `-float` or `-double`",
        ..of_bytes("ping-pong-blocking-pack-in-place", Need::Packing)
    },
    &Operation {
        about: "the elements are packed in a format for any machine; also with `-int`, `-float` or `-double`",
        ..of_bytes("ping-pong-blocking-pack-default", Need::PackedDefault)
    },
    &of(4, "ping-pong-blocking-pack-raw-int", Need::PackedTypes),
    &of(4, "ping-pong-blocking-pack-raw-float", Need::PackedTypes),
    &of(8, "ping-pong-blocking-pack-raw-double", Need::PackedTypes),
    &of(4, "ping-pong-blocking-pack-in-place-int", Need::PackedTypes),
    &of(
        4,
        "ping-pong-blocking-pack-in-place-float",
        Need::PackedTypes,
    ),
    &of(
        8,
        "ping-pong-blocking-pack-in-place-double",
        Need::PackedTypes,
    ),
    &of(
        4,
        "ping-pong-blocking-pack-default-int",
        Need::PackedDefault,
    ),
    &of(
        4,
        "ping-pong-blocking-pack-default-float",
        Need::PackedDefault,
    ),
    &of(
        8,
        "ping-pong-blocking-pack-default-double",
        Need::PackedDefault,
    ),
];

const fn of_bytes(name: &'static str, need: Need) -> Operation {
    of(1, name, need)
}

/// Returns an echo test of elements of this many bytes. A message has at least one element, since none cannot be
/// packed.
const fn of(unit: u64, name: &'static str, need: Need) -> Operation {
    Operation {
        suites: SUITES,
        need,
        pattern: Pattern::Messages,
        unit,
        ..Operation::echo(name, Program::Primitive("ping-pong.c"))
    }
}
