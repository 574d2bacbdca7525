//! Copies within a task's memory, and strided copies between the memory of two tasks.

use super::messages::{EXCHANGE, ONE_TO_ONE};
use super::{Bound, Operation, Program, Room};
use crate::suites::{AHMAD_WU_1991, GUIDELINES, INTERFACES, PRIMITIVES};

pub(super) static ALL: &[&Operation] = &[&COPY, &VECTOR_SEND_RECV, &VECTOR_EXCHANGE];

static COPY: Operation = Operation {
    about: "a copy within a task's memory: no message, but the minimum cost of one copy (`limit`)",
    suites: &[&PRIMITIVES],
    of_the_limit: true,
    ..Operation::pair("copy", Program::Primitive("copy.c"))
};

pub(super) static VECTOR_SEND_RECV: Operation = Operation {
    about: "an echo test of words of 4 bytes, every second one of an array, at both ends; half of the round trip",
    suites: &[&AHMAD_WU_1991, &INTERFACES, &GUIDELINES],
    unit: 4,
    room: Room::Blocks(2),
    crossing: |_, _| 0,
    panel: 120,
    bounds: &[Bound::vectors(&ONE_TO_ONE, &[8192 * 4])],
    ..Operation::echo("vector-send-recv", Program::Primitive("vector.c"))
};

static VECTOR_EXCHANGE: Operation = Operation {
    about: "two tasks exchange vectors of words of 4 bytes",
    suites: &[&AHMAD_WU_1991, &INTERFACES],
    unit: 4,
    panel: 130,
    bounds: &[Bound::vectors(&EXCHANGE, &[512 * 4])],
    ..Operation::pair("vector-exchange", Program::Primitive("vector.c"))
};
