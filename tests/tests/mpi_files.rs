//! Files of MPI: opening and errors, file pointers, views of all kinds compared with a plain array, collective
//! accesses.

use std::path::PathBuf;

use regatta_tests::mpi::program;
use regatta_tests::{Job, needs};

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("mpi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn play(processes: u32, scenario: &str) {
    play_of("files", processes, scenario);
}

fn play_of(name: &str, processes: u32, scenario: &str) {
    let folder = Folder::new(scenario);
    let place = folder.0.display().to_string();
    let job = Job::of(processes, &program(name), &[scenario, &place]);
    job.run().passed();
    let left = std::fs::read_dir(&folder.0).expect("the folder").count();
    assert_eq!(left, 0, "files are left");
}

/// Runs a scenario on two hosts with two processes each, which share their files.
fn across(scenario: &str) {
    let folder = Folder::new(&format!("{scenario}-across"));
    let place = folder.0.display().to_string();
    Job::of(4, &program("files"), &[scenario, &place])
        .across("alpha:2,beta:2")
        .run()
        .passed();
}

#[test]
fn files_are_opened_closed_and_deleted() {
    play(1, "opening");
    play(3, "opening");
}

#[test]
fn bad_arguments_have_the_standards_classes() {
    play(1, "mistakes");
    play(3, "mistakes");
}

#[test]
fn nobody_waits_for_a_process_whose_arguments_are_wrong() {
    play_of("file_mistakes", 2, "of_one");
    play_of("file_mistakes", 3, "of_one");
}

#[test]
fn nobody_waits_for_a_process_with_an_access_to_end() {
    play_of("file_mistakes", 1, "pending");
    play_of("file_mistakes", 3, "pending");
}

#[test]
fn nobody_waits_for_a_process_that_cannot_do_its_part() {
    play_of("file_mistakes", 2, "unavailable");
    play_of("file_mistakes", 3, "unavailable");
}

#[test]
fn a_file_that_may_not_grow_is_an_error_on_all_processes() {
    play(1, "full");
    play(3, "full");
}

#[test]
fn short_runs_leave_no_hole_where_a_device_is_full() {
    needs::namespaces();
    let folder = Folder::new("device");
    let place = folder.0.display().to_string();
    Job::of(1, &program("file_mistakes"), &["device_full", &place])
        .after(&format!("mount -t tmpfs -o size=256k none {place}"))
        .around(&["unshare", "-rm"])
        .run()
        .passed();
}

#[test]
fn each_process_has_a_pointer() {
    play(1, "pointers");
    play(4, "pointers");
}

#[test]
fn all_processes_have_a_pointer_in_common() {
    play(1, "shared");
    play(4, "shared");
    across("shared");
}

#[test]
fn the_pointer_in_common_is_set_back_for_all_at_once() {
    play(1, "reset");
    play(4, "reset");
    across("reset");
}

#[test]
fn views_lead_to_the_bytes_that_they_name() {
    play(1, "views");
    play(2, "views");
    play(3, "views");
    play(4, "views");
}

#[test]
fn filetypes_may_begin_before_the_last_one_ends() {
    play(1, "short_extents");
    play(3, "short_extents");
    play(4, "short_extents");
}

#[test]
fn large_collective_accesses_go_by_rounds() {
    play(1, "large");
    play(3, "large");
}

#[test]
fn atomic_accesses_do_not_mix() {
    play(1, "atomicity");
    play(4, "atomicity");
}

#[test]
fn data_are_converted_as_the_view_says() {
    play(1, "representations");
    play(3, "representations");
}
