//! Tasks that spawn, watch and end tasks (`tests/programs/spawn.c`).

use regatta_tests::Job;

fn spawner(scenario: &[&str]) -> Job {
    Job::new(1, "spawn", scenario)
}

#[test]
fn what_is_started_is_a_world_that_knows_its_parent() {
    Job::new(3, "spawn", &["family"]).run().passed();
    spawner(&["family"]).run().passed();
    spawner(&["worlds"]).run().passed();
}

#[test]
fn parents_and_children_form_groups() {
    spawner(&["merged"]).run().passed();
}

#[test]
fn channels_are_kept_apart() {
    Job::new(2, "spawn", &["channels"]).run().passed();
}

#[test]
fn messages_of_all_sizes_reach_those_who_came_later() {
    spawner(&["large"]).run().passed();
    Job::new(12, "spawn", &["large"]).run().passed();
}

#[test]
fn what_was_started_starts_others() {
    spawner(&["generations"]).run().passed();
}

#[test]
fn many_at_once() {
    Job::new(3, "spawn", &["storm", "8"]).run().passed();
}

#[test]
fn output_goes_where_the_jobs_goes() {
    let ended = spawner(&["talkers"]).option("--label").run().passed();
    ended.said("[1] talker 0 of 2").said("[2] talker 1 of 2");
    spawner(&["talkers"]).run().passed().said("talker 1 of 2");
}

#[test]
fn directory_and_environment_are_what_was_asked_for() {
    spawner(&["places"]).run().passed();
}

#[test]
fn what_cannot_be_started_is_an_error_for_each() {
    spawner(&["missing"]).run().passed();
}

/// A folder that is removed when dropped.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// On host beta the program's folder is hidden, or the program is not executable. The other host must start the tasks.
#[test]
fn what_one_host_cannot_start_the_others_do() {
    regatta_tests::needs::namespaces();
    let own = std::env::temp_dir().join(format!("rg-missing-{}", std::process::id()));
    let own = Folder(own);
    let folder = own.0.join("programs");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (worker, reach) = (folder.join("worker"), own.0.join("reach"));
    regatta_tests::executable::copy(&regatta_tests::program("spawn"), &worker);
    let text = |path: &std::path::Path| path.display().to_string();
    let (folder, worker, reach) = (text(&folder), text(&worker), text(&reach));
    for (hide, said) in [
        ("mount -t tmpfs tmpfs $0", "does not exist"),
        ("mount --bind /dev/null $0/worker", "not executable"),
    ] {
        let apart = format!(
            "unshare --user --map-root-user --mount --pid --fork --kill-child --mount-proc sh -ec '{hide}; exec \"$@\"'"
        );
        let script = format!(
            "#!/bin/sh\nhost=$1; shift\n[ $host = beta ] && exec {apart} {folder} \"$@\"\nexec \"$@\"\n"
        );
        std::fs::write(&reach, script).expect("a script");
        let job = Job::new(2, "spawn", &["missing-there", &worker, said]);
        let job = job
            .option("--host")
            .option("alpha:1,beta:1")
            .option("--rsh");
        job.option(&format!("sh {reach} {{host}}")).run().passed();
    }
}

#[test]
fn a_program_that_never_joins_is_a_task_too() {
    spawner(&["stranger"]).run().passed();
}

#[test]
fn ends_are_told() {
    spawner(&["notices"]).run().passed();
    Job::new(2, "spawn", &["by-descriptor"]).run().passed();
    spawner(&["last-words"]).run().passed();
}

#[test]
fn tasks_are_signalled_and_listed() {
    spawner(&["signals"]).run().passed();
}

#[test]
fn a_started_task_that_fails_is_a_failure_of_the_job() {
    let ended = spawner(&["failing"]).run().ended_with(3);
    ended.said("task 1").said("exited with status 3");
}

#[test]
fn a_thousand_one_after_the_other_leave_nothing() {
    let rounds = if cfg!(debug_assertions) {
        "300"
    } else {
        "1000"
    };
    spawner(&["one-after-the-other", rounds]).run().passed();
}

#[test]
fn a_full_table_is_an_error() {
    let job = spawner(&["table-full"]).option("--most-tasks=5");
    job.run().passed();
}

#[test]
fn a_table_that_two_tasks_would_fill_at_once_costs_no_host() {
    for _ in 0..5 {
        let job = Job::new(2, "spawn", &["full-at-once"]).option("--most-tasks=6");
        job.across("alpha:1,beta:1").run().passed();
    }
}

#[test]
fn descriptors_that_are_used_up_are_an_error() {
    let job = spawner(&["few-descriptors"]).option("--label");
    job.after("ulimit -n 120").run().passed();
}

#[test]
fn a_spawner_that_dies_leaves_its_children_alone() {
    for _ in 0..5 {
        let job = spawner(&["dies-meanwhile"]).option("--on-failure=continue");
        job.run().ended_with(128 + 9);
        spawner(&["dies-meanwhile"]).run().ended_with(128 + 9);
    }
}

#[test]
fn names_hold_what_was_put_under_them() {
    spawner(&["mailboxes"]).run().passed();
    Job::new(2, "spawn", &["waiting-for-names"]).run().passed();
}

#[test]
fn groups_are_joined_and_left_by_name() {
    spawner(&["named-groups"]).run().passed();
}

#[test]
fn a_task_started_by_hand_starts_what_it_needs() {
    for scenario in [
        &["family"][..],
        &["worlds"],
        &["merged"],
        &["large"],
        &["generations"],
        &["places"],
        &["missing"],
        &["notices"],
        &["by-descriptor"],
        &["mailboxes"],
        &["named-groups"],
        &["storm", "8"],
        &["one-after-the-other", "100"],
    ] {
        Job::alone("spawn", scenario).run().passed();
    }
    let ended = Job::alone("spawn", &["early-leaver"]).run().passed();
    ended.said("the child ends last");
    Job::alone("spawn", &["dies-at-once"])
        .run()
        .ended_with(128 + 9);
}

#[test]
fn tasks_are_started_on_other_hosts() {
    let hosts = "alpha:1,beta:1,gamma:1";
    Job::new(3, "spawn", &["family"])
        .across(hosts)
        .run()
        .passed();
    for scenario in ["merged", "large", "generations", "storm", "worlds"] {
        let job = Job::new(2, "spawn", &[scenario, "2"]);
        job.across("alpha:1,beta:1").run().passed();
        let job = Job::new(3, "spawn", &[scenario, "2"]).env("ELSEWHERE", "1");
        job.across(hosts).run().passed();
    }
}

#[test]
fn ends_are_told_to_other_hosts() {
    let job = Job::new(2, "spawn", &["notices"]).env("ELSEWHERE", "1");
    job.across("alpha:1,beta:1").run().passed();
}

#[test]
fn a_lost_host_is_told() {
    let job = Job::new(2, "spawn", &["host-lost"]).env("ELSEWHERE", "1");
    job.across("alpha:1,beta:1").run().passed();
}

#[test]
fn names_and_groups_are_the_jobs_on_all_hosts() {
    let job = Job::new(2, "spawn", &["waiting-for-names"]);
    job.across("alpha:1,beta:1").run().passed();
    let job = Job::new(2, "spawn", &["talkers"]).option("--label");
    let ended = job.across("alpha:1,beta:1").run().passed();
    ended.said("talker 0 of 2").said("talker 1 of 2");
}

#[test]
fn a_host_without_memory_for_more_tasks_fails_what_is_asked_for_then_and_nothing_else() {
    let job = Job::new(2, "spawn", &["host-without-room"]);
    job.across("alpha:1,beta:1").run().passed();
}
