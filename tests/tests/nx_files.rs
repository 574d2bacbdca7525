//! NX programs: files that nodes share, in each of the Paragon's I/O modes.

use regatta_tests::nx::{Folder, job};

fn passes(scenario: &str) {
    let folder = Folder::new(scenario);
    let job = job(3, "nx_files", &[scenario, folder.path()]);
    job.run().passed();
}

#[test]
fn a_node_has_a_position_of_its_own() {
    passes("unix");
}

#[test]
fn nodes_write_in_their_order() {
    passes("sync");
}

#[test]
fn records_of_one_length_have_their_places() {
    passes("record");
}

#[test]
fn what_all_nodes_do_is_done_once() {
    passes("global");
}

#[test]
fn a_log_takes_what_comes_first() {
    passes("log");
}

#[test]
fn reads_and_writes_that_are_begun_are_told_of_at_their_end() {
    passes("begun");
}

#[test]
fn memory_that_lies_apart_is_one_part_of_a_file() {
    passes("apart");
}

#[test]
fn a_mode_goes_when_its_file_is_closed() {
    passes("closed");
}

#[test]
fn wrong_arguments_give_their_error_numbers_on_each_node() {
    passes("wrong");
}

#[test]
fn numbers_of_64_bits() {
    passes("numbers");
}

#[test]
fn a_log_is_shared_between_hosts() {
    let folder = Folder::new("hosts");
    let job = job(3, "nx_files", &["log", folder.path()]).across("alpha:2,beta:1");
    job.run().passed();
}
