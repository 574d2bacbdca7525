//! Messages as the programs TTCP (a stream) and NetPIPE (an echo test) measure them.

use super::{Need, Operation, Pattern, Program};
use crate::suites::{MANIEZZO_SANNA, Suite, WHITE_1994};

const OF_NETPIPE: &[&Suite] = &[&MANIEZZO_SANNA];

pub(super) static ALL: &[&Operation] = &[&STREAM, &NETPIPE, &IN_PLACE, &DEFAULT];

static STREAM: Operation = Operation {
    about: "one task sends without pause, as TTCP does; a word acknowledges every 64 messages or MiB; time per message",
    suites: &[&WHITE_1994],
    pattern: Pattern::Messages,
    smallest: 1,
    crossing: |_, _| 1,
    panel: 25,
    ..Operation::pair("stream", Program::Primitive("stream.c"))
};

static NETPIPE: Operation = Operation {
    about: "an echo test that sends from its receive buffer, at NetPIPE's sizes; with `-pack-in-place` or `-pack-default` at the end, of packed messages",
    panel: 15,
    ..netpipe("netpipe")
};

static IN_PLACE: Operation = Operation {
    need: Need::Packing,
    panel: 16,
    ..netpipe("netpipe-pack-in-place")
};

static DEFAULT: Operation = Operation {
    need: Need::PackedDefault,
    panel: 17,
    ..netpipe("netpipe-pack-default")
};

const fn netpipe(name: &'static str) -> Operation {
    Operation {
        suites: OF_NETPIPE,
        pattern: Pattern::Messages,
        smallest: 1,
        ..Operation::echo(name, Program::Primitive("netpipe.c"))
    }
}
