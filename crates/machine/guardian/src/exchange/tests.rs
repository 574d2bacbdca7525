//! Tests of what every exchange must do, with the existing ones and a key-value store.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Barrier, Mutex};

use super::*;
use crate::meet::tests::step;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A launcher's key-value store with the operations of PMI and PMIx: put, fence, get.
struct Store {
    values: Mutex<BTreeMap<String, Vec<u8>>>,
    fence: Barrier,
}

impl Exchange for Store {
    fn exchange(&self, step: &Step, _: Instant, give: Give) -> Result<Vec<Vec<u8>>, Refusal> {
        let values = || self.values.lock().expect("no panic");
        let name = |node: u32| format!("regatta/{}/{node}", step.id);
        let given = give(Ipv4Addr::LOCALHOST.into())?;
        values().insert(name(step.node), given);
        self.fence.wait();
        let all = (0..step.nodes.len() as u32).map(|node| values()[&name(node)].clone());
        Ok(all.collect())
    }
}

/// Checks that every node gets the contributions of all, in the order of the nodes, including its own last one.
fn brings_everything_to_everybody(exchange: &dyn Exchange, name: &str, nodes: u32) {
    let until = Instant::now() + TEST_TIMEOUT;
    let run = |node: u32| {
        let step = Step {
            node,
            size: nodes,
            nodes: vec!["localhost".to_owned(); nodes as usize],
            ..step(&format!("{name}.{}", std::process::id()))
        };
        let mut last = Vec::new();
        let all = exchange.exchange(&step, until, &mut |address| {
            last = format!("{node} at {address}").into_bytes();
            Ok(last.clone())
        });
        (last, all)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..nodes)
            .map(|node| scope.spawn(move || run(node)))
            .collect();
        running
            .into_iter()
            .map(|it| it.join().expect("an end"))
            .collect()
    });
    let given: Vec<Vec<u8>> = results.iter().map(|(last, _)| last.clone()).collect();
    for (_, all) in results {
        assert_eq!(all, Ok(given.clone()));
    }
}

#[test]
fn letters_through_the_first_node_bring_everything_to_everybody() {
    for nodes in [2, 5] {
        let name = format!("letters{nodes}");
        brings_everything_to_everybody(&munge::tests::IN_THE_CLEAR, &name, nodes);
    }
}

#[test]
fn a_store_with_a_fence_brings_everything_to_everybody() {
    let store = Store {
        values: Mutex::default(),
        fence: Barrier::new(3),
    };
    brings_everything_to_everybody(&store, "store", 3);
}

#[test]
fn every_launcher_that_has_steps_has_an_exchange() {
    let mut checked = 0;
    for source in regatta_foreign::sources() {
        let step = Step {
            names: source.names(),
            ..step("7.0")
        };
        assert!(of(&step).is_ok(), "{:?}", step.names);
        checked += 1;
    }
    assert!(checked > 0);
}

/// The first node gives up when not all nodes have called, and tells those that have which are missing.
#[test]
fn nodes_that_wait_for_one_that_does_not_come_are_told_which() {
    let until = Instant::now() + Duration::from_millis(300);
    let refused = |node: u32| {
        let step = Step {
            node,
            size: 3,
            nodes: ["n0", "n1", "n2"].map(str::to_owned).to_vec(),
            ..step(&format!("missing.{}", std::process::id()))
        };
        let exchange = munge::tests::IN_THE_CLEAR;
        let all = exchange.exchange(&step, until, &mut |_| Ok(Vec::new()));
        all.expect_err("one is missing").sentence
    };
    let said = std::thread::scope(|scope| {
        let running = [0, 1].map(|node| scope.spawn(move || refused(node)));
        running.map(|it| it.join().expect("an end"))
    });
    assert!(said[0].contains("on n2 did not reach n0"), "{said:?}");
    assert_eq!(said[0], said[1]);
}
