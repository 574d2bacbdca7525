//! Messages of ints, floats and doubles, and exchanges by nonblocking calls.

use super::{Need, Operation, Pattern, Program};
use crate::suites::{MANIEZZO_SANNA, Suite};

const SUITES: &[&Suite] = &[&MANIEZZO_SANNA];

pub(super) static ALL: &[&Operation] = &[
    &echo(4, "ping-pong-blocking-int"),
    &echo(4, "ping-pong-blocking-float"),
    &echo(8, "ping-pong-blocking-double"),
    &Operation {
        about: "two tasks start a send and a receive, and wait for both; with the suffix `-int`, `-float` or `-double`: of that type",
        smallest: 0,
        ..exchange(1, "exchange-isend", Need::Library)
    },
    &exchange(4, "exchange-isend-int", Need::Types),
    &exchange(4, "exchange-isend-float", Need::Types),
    &exchange(8, "exchange-isend-double", Need::Types),
    &Operation {
        about: "two tasks send and receive by one call; also with `-int`, `-float` or `-double`",
        smallest: 0,
        ..exchange(1, "exchange-sendrecv", Need::Sendrecv)
    },
    &exchange(4, "exchange-sendrecv-int", Need::SendrecvTypes),
    &exchange(4, "exchange-sendrecv-float", Need::SendrecvTypes),
    &exchange(8, "exchange-sendrecv-double", Need::SendrecvTypes),
];

/// Returns an echo test of elements of this many bytes.
const fn echo(unit: u64, name: &'static str) -> Operation {
    Operation {
        suites: SUITES,
        need: Need::Types,
        pattern: Pattern::Messages,
        unit,
        ..Operation::echo(name, Program::Primitive("typed.c"))
    }
}

/// Returns an exchange of elements of this many bytes.
const fn exchange(unit: u64, name: &'static str, need: Need) -> Operation {
    Operation {
        suites: SUITES,
        need,
        pattern: Pattern::Messages,
        unit,
        crossing: |_, _| 2,
        ..Operation::pair(name, Program::Primitive("typed.c"))
    }
}
