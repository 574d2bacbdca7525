//! MPI programs go on after processes fail: they agree, revoke communicators and shrink them
//! (`tests/programs/mpi/mitigation.c`).

use std::time::Duration;

use regatta_tests::{Ended, Job, mpi, slowness};

fn job(processes: u32, arguments: &[&str]) -> Job {
    Job::of(processes, &mpi::program("mitigation"), arguments).option("--on-failure=continue")
}

/// Runs a job in which one process kills itself. The others must go on and end successfully; the job's status is that
/// of the killed process.
fn survived(job: Job) -> Ended {
    let ended = job.run().ended_with(128 + 9);
    let failed = ended.text.contains("exited with status");
    assert!(!failed, "{}", ended.story());
    ended
}

/// Returns the ranks that fail (rank 0 leads agreements), each with seeds for the time of its failure.
fn failures() -> impl Iterator<Item = (String, String)> {
    let seeds = 1..=3;
    seeds.flat_map(|seed| [0, 1, 7].map(|victim| (victim.to_string(), seed.to_string())))
}

#[test]
fn all_agree_on_the_same_whoever_fails_meanwhile() {
    for (victim, seed) in failures() {
        for scenario in ["agree", "agree-later"] {
            survived(job(8, &[scenario, &victim, &seed]));
        }
    }
}

#[test]
fn a_failure_in_collectives_is_left_together_by_revoking() {
    for (victim, seed) in failures() {
        survived(job(8, &["collective", &victim, &seed]));
    }
}

#[test]
fn a_communicator_is_revoked_for_all_or_for_none() {
    for (victim, seed) in failures() {
        survived(job(8, &["revoker", &victim, &seed]));
    }
}

#[test]
fn whatever_a_process_waits_for_ends_when_the_communicator_is_revoked() {
    for processes in [2, 4, 8] {
        job(processes, &["blocked", "-1"]).run().passed();
    }
}

#[test]
fn whatever_is_made_of_a_communicator_ends_when_that_is_revoked() {
    for (processes, seed) in [(2, "1"), (4, "2")] {
        job(processes, &["making", "-1", seed]).run().passed();
    }
}

#[test]
fn sides_that_are_connected_end_when_the_communicator_of_one_is_revoked() {
    for processes in [2, 5] {
        job(processes, &["connecting", "-1"]).run().passed();
    }
}

#[test]
fn whoever_waits_at_a_port_ends_when_the_communicator_is_revoked() {
    for processes in [1, 2, 5] {
        job(processes, &["ports", "-1"]).run().passed();
    }
    job(4, &["ports", "-1"])
        .across("alpha:2,beta:2")
        .run()
        .passed();
}

#[test]
fn a_failure_while_all_wait_at_a_port_keeps_nobody_waiting() {
    for (victim, seed) in failures().filter(|(victim, _)| victim != "0") {
        survived(job(8, &["port-failure", &victim, &seed]));
    }
}

#[test]
fn a_failure_while_the_shared_pointer_of_a_file_moves_keeps_nobody_waiting() {
    for (victim, seed) in failures().filter(|(victim, _)| victim != "7") {
        survived(job(3, &["pointer", &victim, &seed]));
    }
}

#[test]
fn the_error_for_a_communicator_that_is_not_made_names_the_process_that_is_missing() {
    for victim in ["1", "3"] {
        survived(job(4, &["missing", victim]));
        survived(job(4, &["missing", victim]).across("alpha:2,beta:2"));
    }
}

#[test]
fn the_world_can_be_revoked() {
    for processes in [1, 2, 4] {
        job(processes, &["world", "-1"]).run().passed();
    }
}

#[test]
fn two_sides_are_revoked_and_go_on_together() {
    for processes in [2, 5] {
        job(processes, &["sides", "-1"]).run().passed();
    }
}

#[test]
fn all_that_holds_between_hosts() {
    for hosts in ["alpha:2,beta:2", "alpha:1,beta:3"] {
        for scenario in ["agree", "agree-later", "collective", "revoker"] {
            for victim in ["0", "1", "3"] {
                survived(job(4, &[scenario, victim, "5"]).across(hosts));
            }
        }
        for scenario in ["blocked", "world", "sides", "making"] {
            job(4, &[scenario, "-1"]).across(hosts).run().passed();
        }
    }
}

/// The limits hold on an idle machine. This test only checks that no process waits long.
#[test]
fn a_failure_among_eight_is_soon_known_to_all() {
    let slow = slowness();
    for seed in 1..4 {
        let ended = survived(job(8, &["timed", "3", &seed.to_string()]));
        let took = ended
            .text
            .lines()
            .find_map(|line| line.strip_prefix("took "));
        let took = took.expect("a line with the times").split(' ').next();
        let seconds: f64 = took.expect("a time").parse().expect("a number");
        let limit = Duration::from_secs(5).mul_f64(slow.max(slowness()));
        assert!(seconds < limit.as_secs_f64(), "{seconds} s");
    }
}
