//! Tasks load the libraries that are installed beside the command, without any setting that names them, and use little
//! memory for them.

use std::path::{Path, PathBuf};

use regatta_tests::Job;
use regatta_tests::{executable, programs};

/// An installed tree: the command in `bin`, the library in `lib`.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        Tree::of(name, &programs::built("libregatta.so", "regatta-capi"))
    }

    fn of(name: &str, library: &Path) -> Tree {
        let folder = std::env::temp_dir().join(format!("loader-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let tree = Tree(folder);
        for place in ["bin", "lib"] {
            std::fs::create_dir_all(tree.0.join(place)).expect("a directory");
        }
        executable::copy(&programs::command(), &tree.0.join("bin/regatta"));
        std::fs::copy(library, tree.0.join("lib/libregatta.so.0")).expect("the library");
        tree
    }

    /// Creates a job of the tree's command whose program spawns others. No setting names the library.
    fn spawner(&self, options: &str) -> Job {
        self.job(&format!("-n 2 {options}"), "spawn", "family")
    }

    /// Creates a job of the tree's command with this program.
    fn job(&self, options: &str, program: &str, scenario: &str) -> Job {
        let command = self.0.join("bin/regatta").display().to_string();
        let words = format!("{command} run {options}");
        let job = Job::alone(program, &[scenario]);
        job.after(&format!("unset LD_LIBRARY_PATH; set -- {words} \"$@\""))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn tasks_and_those_they_spawn_find_the_library_beside_the_command() {
    let tree = Tree::new("here");
    tree.spawner("").run().passed();
}

#[test]
fn tasks_of_other_hosts_find_it_too() {
    let tree = Tree::new("elsewhere");
    tree.spawner("--host alpha:1,beta:1 --rsh 'sh -c'")
        .run()
        .passed();
}

#[test]
fn a_host_without_the_library_is_told_before_anything_starts() {
    let tree = Tree::new("without");
    std::fs::remove_file(tree.0.join("lib/libregatta.so.0")).expect("the library");
    let job = tree.spawner("--host alpha:1,beta:1 --rsh 'sh -c'");
    let ended = job.run().ended_with(127);
    let ended = ended.said("is linked to libregatta.so.0, which the loader does not find there");
    assert!(
        !ended.story().contains("loading shared libraries"),
        "no task was started"
    );
}

/// Rust links `libgcc_s.so` dynamically by default, which is one more file for each task to load.
#[test]
fn libraries_have_their_unwinder_in_themselves() {
    for (library, package) in [
        ("libregatta.so", "regatta-capi"),
        ("libmpi_abi.so", "regatta-mpi-abi"),
    ] {
        let bytes = std::fs::read(programs::built(library, package)).expect("the library");
        let names_it = String::from_utf8_lossy(&bytes).contains("libgcc_s.so");
        assert!(!names_it, "{library} needs another library to unwind");
    }
}

/// Limit in KiB: 0.9 of the memory that an idle task of PVM 3.4 uses among 32, measured on the machine of the recorded
/// races.
const IDLE: u32 = 2570;

/// Most of a task's memory is code shared by all tasks. What an idle task runs lies together
/// (`crates/interfaces/c/idle.txt`).
#[test]
fn an_idle_task_has_little_memory() {
    let library = programs::optimized("libregatta.so", "regatta-capi");
    let tree = Tree::of("idle", &library);
    let ended = tree.job("-n 32", "many", "idle").run().passed();
    let story = ended.story();
    let resident = story
        .lines()
        .find_map(|line| line.strip_prefix("resident: ")?.parse::<u32>().ok());
    assert!(resident.expect("task 0 says it") <= IDLE, "{story}");
}
