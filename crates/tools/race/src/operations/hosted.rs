//! Programs that consist of a host and the nodes that it has loaded.

use super::{Need, Operation, Program};
use crate::suites::{AHMAD_WU_1991, Suite};

const SUITES: &[&Suite] = &[&AHMAD_WU_1991];

pub(super) static ALL: &[&Operation] = &[
    &Operation {
        heading: "from the host to a node",
        about: "the host sends to the node, which answers with an empty word",
        panel: 210,
        ..one_node("host-node-recv")
    },
    &Operation {
        heading: "from a node to the host",
        about: "the host asks the node with an empty word, and the node sends to it",
        panel: 200,
        ..one_node("host-node-send")
    },
    &Operation {
        heading: "exchange of host and node",
        about: "host and node send to each other at the same time",
        panel: 220,
        ..one_node("host-node-exchange")
    },
    &Operation {
        heading: "broadcast from the host",
        about: "the host sends to all nodes; one of them, another one each time, answers with an empty word",
        panel: 230,
        ..hosted("host-broadcast")
    },
];

const fn hosted(name: &'static str) -> Operation {
    Operation {
        suites: SUITES,
        need: Need::Hosts,
        tasks: (1, super::TASKS_OF_A_LAUNCH.1),
        host: true,
        ..Operation::new(name, Program::Primitive("host.c"))
    }
}

const fn one_node(name: &'static str) -> Operation {
    Operation {
        exactly: Some(1),
        ..hosted(name)
    }
}
