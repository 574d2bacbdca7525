//! Other hosts: whether an agent runs on each, its version, and the address at which the others reach it.

use regatta_launch::{Across, examine};

use super::finding::Finding;

const AREA: &str = "hosts";

pub fn findings(across: &Across) -> Vec<Finding> {
    match examine::examine(across) {
        Ok(examined) => examined.iter().flat_map(host).collect(),
        Err(refusal) => vec![Finding::missing(AREA, "hosts", refusal.sentence).essential()],
    }
}

fn host(examined: &examine::Examined) -> Vec<Finding> {
    let name = &examined.host;
    let agent = match &examined.agent {
        Ok(agent) => agent,
        Err(sentence) => return vec![Finding::missing(AREA, name, sentence).essential()],
    };
    let version = env!("CARGO_PKG_VERSION");
    let there = match &agent.sent {
        None => format!(
            "has regatta {version}; runs {} tasks at a time",
            agent.cores
        ),
        Some(sent) => format!("{sent}; runs {} tasks at a time", agent.cores),
    };
    let address = format!("{name}, address");
    let address = match &agent.address {
        Ok(found) => Finding::ok(
            AREA,
            address,
            format!("{found}: the first of its addresses that the other hosts could connect to"),
        ),
        Err(sentence) => Finding::missing(AREA, address, sentence).essential(),
    };
    vec![Finding::ok(AREA, name, there), address]
}
