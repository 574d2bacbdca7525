//! Standard I/O of node programs with Cubix: one copy of data that all nodes write or read (singular), parts in the
//! order of the nodes (multiple), or each node by itself.

use std::path::{Path, PathBuf};

use regatta_tests::{Ended, Job, express};

/// Creates a folder for a scenario's file.
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
fn long_parts_are_written_by_their_nodes_and_follow_each_other_too() {
    play("much");
}

#[test]
fn long_parts_go_to_the_file_that_was_opened_and_to_no_other() {
    play("moved");
}

#[test]
fn a_part_that_cannot_be_written_is_told_to_all() {
    play("full");
}

#[test]
fn nodes_of_several_hosts_write_one_file() {
    let folder = folder("much", 4);
    let (program, place) = (
        express::cubix_program("express_cubix"),
        folder.display().to_string(),
    );
    let job = Job::of(4, &program, &["much", &place]);
    job.across("one:2,two:2").run().passed();
    std::fs::remove_dir_all(folder).expect("the folder");
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

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("a file")
}

#[test]
fn units_of_fortran_have_the_modes_too() {
    let program = express::fortran_program("cubix_fortran");
    for nodes in [1_usize, 3] {
        let folder = folder("fortran", nodes as u32);
        let place = folder.display().to_string();
        let job = Job::of(nodes as u32, &program, &["files", &place]);
        let ended = job.run().passed();
        let mut ended = ended.said("cubix: node 0: KMULTI: unit 77 is not open");
        if nodes > 1 {
            ended = ended.said("cubix: node 0: KMULTI: unit 78 is not open on all nodes");
        }
        drop(ended);
        let of_each = |line: &dyn Fn(usize) -> String| (0..nodes).map(line).collect::<String>();
        let parts = of_each(&|me| (0..=me).map(|i| format!("{me:2}.{i:2}\n")).collect());
        let numbers = of_each(&|me| format!("{me:2}\n"));
        let lines = format!("head\nmore\n{parts}last\ntail\n{numbers}");
        assert_eq!(text(&folder, "lines"), lines);
        let lines = of_each(&|me| format!("{:2}\n", 10 + me));
        assert_eq!(text(&folder, "lines-2"), lines);
        let lines = of_each(&|me| format!("{:8}\n", 100 + me));
        assert_eq!(text(&folder, "places"), lines);
        // Each record is preceded and followed by its length.
        let records = (0..nodes as i32).flat_map(|me| [8, me, me + 1, 8, 4, me, 4]);
        let bytes: Vec<u8> = records.flat_map(i32::to_ne_bytes).collect();
        assert_eq!(
            std::fs::read(folder.join("records")).expect("a file"),
            bytes
        );
        std::fs::remove_dir_all(folder).expect("the folder");
    }
}

#[test]
fn fortran_prints_one_copy_or_a_part_of_each_node() {
    let program = express::fortran_program("cubix_fortran");
    let ended = Job::of(3, &program, &["terminal"]).run().passed();
    let expected = "once\nnode 0\nnode 1\nnode 2\nagain\nend 0\nend 1\nend 2\n";
    assert_eq!(ended.text.trim_end(), expected.trim_end());
}
