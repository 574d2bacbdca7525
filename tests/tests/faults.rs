//! Faults in the environment of a job (`tests/programs/faults.c`): tasks get errors with messages, and nothing worse
//! happens.

use std::path::{Path, PathBuf};

use regatta_tests::{Ended, Job, command, needs, skip};

/// Checks that no task was ended by a signal that indicates a bug in it.
fn no_crash(ended: Ended) -> Ended {
    for signal in [4, 6, 7, 8, 11] {
        let words = format!("signal {signal}");
        assert!(!ended.text.contains(&words), "{}", ended.story());
    }
    ended.sound()
}

/// Runs four tasks of which one writes random bytes into shared memory and dies. Returns how many of the others report
/// corrupted data.
fn scribbled(part: &str, seed: u32, on_failure: &str) -> usize {
    let ended = Job::new(4, "faults", &["scribbler", part, &seed.to_string()])
        .option(&format!("--on-failure={on_failure}"))
        .option("--grace=1")
        .run();
    let ended = no_crash(ended).ended_with(128 + 9);
    let got = |code: &str| {
        let said = ended.text.lines().filter(|line| line.starts_with("got "));
        said.filter(|line| line.split(' ').nth(2) == Some(code))
            .count()
    };
    let survivors = ended.text.matches("got ").count();
    // If the lost data looks like a slow neighbour, the survivor waits until the job ends.
    let all = on_failure == "continue";
    assert!(!all || survivors >= 3, "{}", ended.story());
    got("-13")
}

fn scribbled_and_noticed(part: &str) {
    let noticed: usize = (1..=3).map(|seed| scribbled(part, seed, "continue")).sum();
    assert!(noticed > 0, "nobody has noticed anything");
}

#[test]
fn scribbles_over_rings() {
    scribbled_and_noticed("rings");
}

#[test]
fn scribbles_over_pipes() {
    scribbled_and_noticed("pipes");
}

#[test]
fn scribbles_over_the_collective_buffer() {
    scribbled_and_noticed("buffer");
}

#[test]
fn scribbles_over_the_table_of_tasks() {
    for seed in 1..=3 {
        scribbled("table", seed, "stop");
    }
}

#[test]
fn scribbles_over_everything() {
    for seed in 1..=3 {
        scribbled("everything", seed, "stop");
    }
}

#[test]
fn a_sender_that_leaves_before_its_message_is_through() {
    Job::new(2, "faults", &["leaves-early"]).run().passed();
}

// ---- memory ----

#[test]
fn a_full_dev_shm_is_nobodys_business() {
    needs::namespaces();
    let mount = "mount -t tmpfs -o size=4k none /dev/shm && \
                 { cat /dev/zero >/dev/shm/full 2>/dev/null || :; }";
    Job::new(3, "faults", &["work"])
        .after(mount)
        .around(&["unshare", "-rm"])
        .run()
        .passed();
}

/// A memory control group, which is removed when dropped.
struct Limited(PathBuf);

impl Limited {
    fn new(bytes: usize) -> Option<Limited> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let new = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let old = own.lines().find_map(|line| line.split_once(":memory:/"));
        let candidates = [
            new.map(|path| (Path::new("/sys/fs/cgroup").join(path), "memory.max")),
            old.map(|(_, path)| {
                let root = Path::new("/sys/fs/cgroup/memory");
                (root.join(path), "memory.limit_in_bytes")
            }),
        ];
        candidates
            .into_iter()
            .flatten()
            .find_map(|(parent, limit)| {
                let path = parent.join(format!("regatta-test-{}", std::process::id()));
                std::fs::create_dir(&path).ok()?;
                let group = Limited(path);
                // Without the controller, the write below would create a regular file of that name.
                let known = group.0.join(limit).exists();
                known.then_some(())?;
                std::fs::write(group.0.join(limit), bytes.to_string()).ok()?;
                Some(group)
            })
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_memory_limit_of_the_control_group() {
    let Some(group) = Limited::new(48 << 20) else {
        skip("no control group of the memory controller can be made below this process's own");
        return;
    };
    let enter = format!("echo $$ >'{}/cgroup.procs'", group.0.display());
    Job::new(3, "faults", &["hoard"])
        .after(&enter)
        .run()
        .passed()
        .said("the memory limit of this control group leaves");
}

/// Runs a job and its launcher under a limit: either all work is done, or the output says what was missing.
fn under(limit: &str, words: &str) {
    let ended = Job::new(3, "faults", &["starting", "may fail"])
        .after(limit)
        .run();
    let ended = no_crash(ended);
    let done = ended.text.matches("done ").count() == 3;
    assert!(
        done || ended.text.contains(words),
        "{limit}: {}",
        ended.story()
    );
    assert!(done || !words.is_empty(), "{limit}: {}", ended.story());
}

#[test]
fn limits_on_address_space() {
    under("ulimit -v 1000000", "");
    for kib in [200_000, 100_000, 60_000, 40_000] {
        under(&format!("ulimit -v {kib}"), "memory");
    }
}

#[test]
fn limits_on_file_size() {
    for blocks in [100, 400, 3000, 6000] {
        under(&format!("ulimit -f {blocks}"), "file size limit");
    }
}

#[test]
fn limits_on_open_files() {
    under("ulimit -n 64", "");
    for files in [20, 12, 8, 5] {
        under(&format!("ulimit -n {files}"), "files");
    }
}

#[test]
fn no_locked_memory() {
    under("ulimit -l 0", "");
}

// ---- the single copy ----

/// Returns what the receiver prints about each message whose sender does not respond.
fn away(arguments: &[&str]) -> Vec<String> {
    let arguments = [&["away"], arguments].concat();
    let ended = Job::new(2, "faults", &arguments).run().passed();
    let rounds = ended.text.lines().filter(|line| line.starts_with("round "));
    let rounds: Vec<String> = rounds.map(str::to_owned).collect();
    assert_eq!(rounds.len(), 4, "{}", ended.story());
    rounds
}

fn all_end_with(rounds: &[String], end: &str) -> bool {
    rounds.iter().all(|round| round.ends_with(end))
}

#[test]
fn a_single_copy_that_is_refused() {
    for errno in ["EPERM", "ENOSYS"] {
        let rounds = away(&["early", errno]);
        assert!(all_end_with(&rounds, "allowed 0 pulled 0"), "{rounds:?}");
        let work = [
            "inside",
            errno,
            &command().display().to_string(),
            "run",
            "-n",
            "4",
        ];
        let program = regatta_tests::program("faults").display().to_string();
        let work = [&work[..], &[&program, "work"]].concat();
        Job::alone("faults", &work).run().passed();
    }
}

#[test]
fn a_single_copy_that_is_refused_after_all() {
    let free = away(&["never"]);
    if all_end_with(&free, "allowed 0 pulled 0") {
        skip("the kernel refuses the single copy from the start, so nothing can refuse it later");
        return;
    }
    assert!(all_end_with(&free, "allowed 1 pulled 1"), "{free:?}");
    for errno in ["EPERM", "ENOSYS"] {
        let rounds = away(&["late", errno]);
        assert!(all_end_with(&rounds, "allowed 1 pulled 0"), "{rounds:?}");
    }
}

#[test]
fn a_single_copy_from_a_task_whose_first_thread_has_left() {
    let free = away(&["never"]);
    let without_first = away(&["left"]);
    assert_eq!(without_first, free, "as from any other task");
}

#[test]
fn the_doctor_sees_a_refused_single_copy() {
    let doctor = command().display().to_string();
    Job::alone("faults", &["inside", "EPERM", &doctor, "doctor"])
        .run()
        .sound()
        .said("refused between tasks");
}

/// Runs a scenario of two tasks on two hosts that have not communicated before.
fn between_hosts(scenario: &str) -> Ended {
    let job = Job::new(2, "faults", &[scenario]).across("alpha:1,beta:1");
    let ended = no_crash(job.run()).passed();
    // The output must not blame the network.
    assert!(!ended.text.contains("cannot reach"), "{}", ended.story());
    ended
}

#[test]
fn a_task_that_has_no_descriptor_for_a_connection_has_an_error_and_may_send_again() {
    between_hosts("caller-without-descriptors");
}

#[test]
fn a_task_that_cannot_accept_a_connection_and_its_caller_hear_what_is_missing() {
    between_hosts("called-without-descriptors");
}

#[test]
fn a_word_of_the_library_s_own_waits_for_a_descriptor() {
    between_hosts("making-without-descriptors");
}

#[test]
fn a_task_that_has_descriptors_again_hears_all_that_was_sent_meanwhile() {
    between_hosts("called-has-descriptors-again");
}

#[test]
fn a_broken_connection_is_made_again_without_a_further_descriptor() {
    between_hosts("broken-without-descriptors");
}
