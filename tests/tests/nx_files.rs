//! Programs of NX: files that nodes share, in each of the Paragon's modes.

use std::path::PathBuf;

use regatta_tests::nx::job;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nx-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn passes(scenario: &str) {
    let folder = Folder::new(scenario);
    let place = folder.0.display().to_string();
    let job = job(3, "nx_files", &[scenario, &place]);
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
    let place = folder.0.display().to_string();
    let job = job(3, "nx_files", &["log", &place]).across("alpha:2,beta:1");
    job.run().passed();
}
