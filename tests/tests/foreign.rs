//! A file `regatta` that another user could have put there is not executed, wherever it is found: beside a program,
//! beside the library, in PATH, or on another host.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use regatta_tests::Job;
use regatta_tests::{executable, programs};

const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// A directory with a program, the library, and a script `regatta` that leaves a trace when it runs. Each test gives it
/// another mode.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, mode: u32) -> Place {
        let folder = std::env::temp_dir().join(format!("foreign-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a directory");
        let trace = folder.join("trace");
        let script = format!("#!/bin/sh\n: >>'{}'\n", trace.display());
        executable::script(&folder.join("regatta"), &script, 0o755);
        executable::copy(&programs::program("spawn"), &folder.join("spawn"));
        let library = programs::built("libregatta.so", "regatta-capi");
        std::fs::copy(library, folder.join("libregatta.so.0")).expect("a library");
        set_mode(&folder, mode);
        Place(folder)
    }

    /// Creates a job that starts the program in this directory by hand. The program needs a launcher.
    fn by_hand(&self, path: &str) -> Job {
        self.by_hand_as(&self.0.join("spawn"), path)
    }

    /// Like `by_hand`, with this path as the program's own name (`argv[0]`).
    fn by_hand_as(&self, name: &Path, path: &str) -> Job {
        let (there, name) = (self.0.display(), name.display());
        let job = Job::alone("spawn", &["family"]).env("PATH", path);
        let words = format!("bash -c 'exec -a {name} \"$@\"' bash {there}/spawn");
        job.after(&format!(
            "cd {there}; export LD_LIBRARY_PATH={there}; shift; set -- {words} \"$@\""
        ))
    }

    fn has_run(&self) -> bool {
        self.0.join("trace").exists()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("its mode");
}

#[test]
fn a_command_in_a_directory_that_others_may_write_is_not_run_by_a_program_beside_it() {
    let place = Place::new("beside", 0o777);
    let ended = place.by_hand(SYSTEM).run();
    let story = ended.story().to_owned();
    assert!(!place.has_run(), "{story}");
    let named = format!("{}/regatta was not started", place.0.display());
    assert!(story.contains(&named), "{story}");
    assert!(
        story.contains("others may write to the directory"),
        "{story}"
    );
    // The next `regatta` in PATH that may be executed is started instead.
    let command = programs::command();
    let folder = command
        .parent()
        .expect("its directory")
        .display()
        .to_string();
    place.by_hand(&format!("{SYSTEM}:{folder}")).run().passed();
    assert!(!place.has_run());
}

#[test]
fn the_name_a_program_was_called_by_leads_nobody_astray() {
    let place = Place::new("called", 0o777);
    let own = Place::new("own", 0o755);
    std::fs::remove_file(own.0.join("regatta")).expect("no command");
    let job = own.by_hand_as(&place.0.join("spawn"), SYSTEM);
    let story = job.run().story().to_owned();
    assert!(!place.has_run(), "{story}");
    assert!(
        story.contains("the command regatta was not found"),
        "{story}"
    );
}

#[test]
fn directories_of_the_path_that_depend_on_where_one_is_are_not_searched() {
    let place = Place::new("path", 0o755);
    let own = Place::new("without", 0o755);
    std::fs::remove_file(own.0.join("regatta")).expect("no command");
    let job = own.by_hand(&format!(".::{SYSTEM}"));
    let job = job.after(&format!("cd {}", place.0.display()));
    let story = job.run().story().to_owned();
    assert!(!place.has_run(), "{story}");
}

#[test]
fn a_command_that_others_may_write_is_no_agent() {
    let place = Place::new("agent", 0o777);
    let job = Job::new(2, "spawn", &["family"]).across("alpha:1,beta:1");
    let path = format!("{}:{SYSTEM}", place.0.display());
    job.env("PATH", &path).run().passed();
    assert!(!place.has_run());
    let job = Job::new(2, "spawn", &["family"]).across("alpha:1,beta:1");
    let path = format!(".:{SYSTEM}");
    let there = format!("cd {}", place.0.display());
    job.env("PATH", &path).after(&there).run().passed();
    assert!(!place.has_run());
}
