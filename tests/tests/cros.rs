//! Programs of CrOS III behave on Regatta as the documents describe the original: messages through channels of a
//! hypercube, collective calls of all its nodes, grids, and the crystal router.

use regatta_tests::{Ended, Job, express};

fn play(nodes: u32, scenario: &str) -> Ended {
    let program = express::cros_program("cros_cube");
    Job::of(nodes, &program, &[scenario]).run().passed()
}

fn on_cubes(scenario: &str) {
    for nodes in [1, 2, 8] {
        play(nodes, scenario);
    }
}

#[test]
fn messages_go_by_channels() {
    on_cubes("channels");
}

#[test]
fn a_read_writes_on_what_came() {
    on_cubes("forwards");
}

#[test]
fn all_nodes_broadcast_combine_and_concatenate() {
    on_cubes("everybody");
}

#[test]
fn neighbours_in_a_grid_have_a_channel() {
    on_cubes("grids");
}

#[test]
fn the_crystal_router_brings_records_from_all_nodes_to_all() {
    on_cubes("routes");
    play(2, "routes")
        .said("cros: node 0: crystal_router: the record at byte 0 is for node 2, and there are 2");
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let ended = play(4, "nonsense");
    for said in [
        "cros: node 3: cwrite: there are no channels with the mask 0x4",
        "cros: node 0: cwrite: this program has no host program",
        "cros: node 0: cread: the mask 0x3 selects several channels; a read needs exactly one",
        "cros: node 0: gridinit: 3 nodes along a dimension are not a power of two",
    ] {
        assert!(ended.text.contains(said), "{said}\n{}", ended.story());
    }
}

#[test]
fn three_nodes_are_no_cube() {
    play(3, "no-cube").said("cros: node 2: cparam: 3 nodes do not form a hypercube");
}
