//! Stdio of node programs by Cubix: one copy of what all write and read, parts in the order of the nodes, or each node by itself.

use std::path::PathBuf;

use regatta_tests::{Ended, Job, express};

/// A folder for a scenario's file.
fn folder(scenario: &str, nodes: u32) -> PathBuf {
    let name = format!("regatta-cubix-{}-{scenario}-{nodes}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn play(scenario: &str) {
    let program = express::cubix_program("express_cubix");
    for nodes in [1, 3] {
        let folder = folder(scenario, nodes);
        let place = folder.display().to_string();
        Job::of(nodes, &program, &[scenario, &place]).run().passed();
        std::fs::remove_dir_all(folder).expect("the folder");
    }
}

#[test]
fn in_single_mode_one_copy_is_written() {
    play("single");
}

#[test]
fn in_single_mode_all_read_the_same() {
    play("reads");
}

#[test]
fn in_multi_mode_the_nodes_texts_follow_each_other_when_all_flush() {
    play("multi");
}

#[test]
fn in_multi_mode_each_node_reads_its_part() {
    play("parts");
}

#[test]
fn in_async_mode_each_node_has_a_position_of_its_own() {
    play("async");
}

#[test]
fn a_program_that_only_prints_is_one_of_nodes() {
    let program = express::cubix_program("express_cubix");
    let ended = Job::of(3, &program, &["once"]).run().passed();
    assert_eq!(ended.text, "once");
}

fn on_a_terminal(nodes: u32) -> Ended {
    let program = express::cubix_program("express_cubix");
    let job = Job::of(nodes, &program, &["terminal"]);
    let typed = "echo 5 six | \"$@\"";
    job.around(&["sh", "-c", typed, "sh"]).run().passed()
}

#[test]
fn the_terminal_asks_once_and_has_all_answers() {
    assert_eq!(on_a_terminal(1).text, "number? 5 six\nnode 5");
    let three = on_a_terminal(3).text;
    assert_eq!(three, "number? 5 six\nnode 5\nnode 6\nnode 7");
}
