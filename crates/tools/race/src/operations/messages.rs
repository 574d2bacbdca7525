//! Messages between neighbours.

use super::{Bound, Headline, Need, Operation, Pattern, Program, Room};
use crate::results::Metric;
use crate::suites::{
    AHMAD_1997, AHMAD_WU_1991, GUIDELINES, HOSTS, INTERFACES, PRIMITIVES, WHITE_1994,
};

pub(super) static ALL: &[&Operation] = &[
    &ONE_TO_ONE,
    &EXCHANGE,
    &EXCHANGE_PLAIN,
    &RING,
    &MESSAGE_RATE,
    &OVERLAP,
];

pub(super) static ONE_TO_ONE: Operation = Operation {
    about: "an echo test; half of the round trip",
    suites: &[
        &PRIMITIVES,
        &HOSTS,
        &GUIDELINES,
        &AHMAD_WU_1991,
        &AHMAD_1997,
        &WHITE_1994,
        &INTERFACES,
    ],
    pattern: Pattern::Messages,
    smallest: 0,
    panel: 10,
    headline: Some(Headline {
        place: 1,
        bytes: &[
            8,
            1 << 10,
            4 << 10,
            16 << 10,
            64 << 10,
            1 << 20,
            4 << 20,
            16 << 20,
        ],
        crowd: 0,
    }),
    picture: true,
    bounds: &[
        Bound::alike(&[2], &[8], 1.15),
        Bound::alike(&[2], &[64 << 10, 4 << 20], 1.05),
    ],
    ..Operation::echo("one-to-one", Program::Primitive("one-to-one.c"))
};

pub(super) static EXCHANGE: Operation = Operation {
    about: "two tasks send to each other at the same time",
    suites: &[&PRIMITIVES, &HOSTS, &AHMAD_WU_1991, &INTERFACES],
    pattern: Pattern::Messages,
    smallest: 0,
    crossing: |tasks, hosts| if tasks == hosts { tasks } else { 0 },
    panel: 30,
    headline: Some(Headline {
        place: 8,
        bytes: &[8],
        crowd: 0,
    }),
    ..Operation::pair("exchange", Program::Primitive("exchange.c"))
};

static EXCHANGE_PLAIN: Operation = Operation {
    heading: "exchange by a send and a receive",
    about: "two tasks exchange as programs of NX, Express and PVM do: each sends, and then receives",
    suites: &[&AHMAD_WU_1991],
    need: Need::Buffering,
    pattern: Pattern::Messages,
    smallest: 0,
    beside: Some(&EXCHANGE),
    panel: 31,
    ..Operation::pair("exchange-plain", Program::Primitive("exchange.c"))
};

static RING: Operation = Operation {
    about: "a message goes once round all tasks",
    suites: &[&PRIMITIVES],
    pattern: Pattern::Messages,
    smallest: 0,
    crossing: |_, hosts| hosts,
    panel: 40,
    headline: Some(Headline {
        place: 9,
        bytes: &[8],
        crowd: 3,
    }),
    ..Operation::new("ring", Program::Primitive("ring.c"))
};

static MESSAGE_RATE: Operation = Operation {
    heading: "message rate",
    about: "messages per second, in windows of 64 that are acknowledged",
    suites: &[&PRIMITIVES],
    metric: Metric::Rate,
    pattern: Pattern::Messages,
    room: Room::Windows(1),
    crossing: |_, _| super::MESSAGES_PER_WINDOW,
    panel: 20,
    headline: Some(Headline {
        place: 2,
        bytes: &[8],
        crowd: 0,
    }),
    ..Operation::pair("message-rate", Program::Primitive("message-rate.c"))
};

static OVERLAP: Operation = Operation {
    heading: "exchange during a calculation",
    about: "two tasks start an exchange, compute on an equal number of bytes of their own memory, then wait for the exchange",
    suites: &[&PRIMITIVES],
    pattern: Pattern::Messages,
    unit: 8,
    // A smaller message has arrived before there is time to calculate.
    smallest: 4 << 10,
    crossing: |_, _| 2,
    panel: 35,
    ..Operation::pair("overlap", Program::Primitive("overlap.c"))
};
