//! The times of a send call and of a receive call alone.

use super::{Need, Operation, Pattern, Program};
use crate::suites::{AHMAD_WU_1991, Suite};

const SUITES: &[&Suite] = &[&AHMAD_WU_1991];

pub(super) static ALL: &[&Operation] = &[
    &Operation {
        heading: "the call that sends",
        about: "a task's time in the call that sends, while the other task waits in its receive",
        suites: SUITES,
        pattern: Pattern::Messages,
        panel: 11,
        ..Operation::pair("one-to-one-send", Program::Primitive("calls.c"))
    },
    // The message is followed by a second one that is received first, so tags are needed.
    &Operation {
        heading: "the call that receives",
        about: "a task's time in the call that receives, when the message has already been sent",
        suites: SUITES,
        pattern: Pattern::Messages,
        need: Need::Library,
        panel: 12,
        ..Operation::pair("one-to-one-recv", Program::Primitive("calls.c"))
    },
];
