//! Jobs of several hosts, with the same programs as on one host. The hosts are simulated: each has an agent and a
//! segment of its own on this machine, and messages between them take the network's path.

use regatta_tests::{Job, Running};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn random_traffic_between_hosts_arrives_once_in_order_and_whole() {
    for (tasks, seed, hosts) in [
        (2, "71", "alpha:1,beta:1"),
        (4, "72", "alpha:2,beta:2"),
        (5, "73", "alpha:1,beta:3,gamma:1"),
    ] {
        let job = Job::new(tasks, "traffic", &["random", seed, "3"]).limit(180);
        job.across(hosts).run().passed();
    }
}

#[test]
fn random_traffic_over_a_trusted_network() {
    let job = Job::new(3, "traffic", &["random", "74", "3"]).limit(180);
    job.across("alpha:1,beta:2")
        .option("--trusted-network")
        .run()
        .passed();
}

#[test]
fn connections_between_hosts_are_encrypted_unless_the_network_is_trusted() {
    let job = || Job::new(2, "traffic_ways", &["path"]).across("alpha:1,beta:1");
    job().run().passed().said("; encrypted; ");
    let trusted = job().option("--trusted-network").run().passed();
    trusted.said("; not encrypted, the network is trusted; ");
}

#[test]
fn messages_between_hosts_never_overtake_each_other() {
    let job = Job::new(4, "traffic_order", &["overtaking"]).limit(180);
    job.across("alpha:2,beta:2").run().passed();
}

/// The sizes are just above those that fit into one frame. Such a message may have arrived completely before its
/// receive is posted.
#[test]
fn messages_between_hosts_complete_by_every_pair_of_ways() {
    for (trusted, length) in [(true, "20000"), (false, "40000")] {
        for send in ["b", "w", "p", "q"] {
            for receive in ["b", "w", "p"] {
                let words = ["pairs", send, receive, length, "600"];
                let job = Job::new(2, "traffic_ways", &words).across("alpha:1,beta:1");
                let job = match trusted {
                    true => job.option("--trusted-network"),
                    false => job,
                };
                job.run().passed();
            }
        }
    }
}

#[test]
fn messages_between_hosts_cross_and_complete_by_every_way() {
    for ways in [["b", "p"], ["w", "p"], ["p", "p"], ["p", "b"]] {
        for length in ["17000", "50000", "65000"] {
            let words = ["pairs", ways[0], ways[1], length, "600", "both"];
            let job = Job::new(2, "traffic_ways", &words);
            job.across("alpha:1,beta:1").run().passed();
        }
    }
}

#[test]
fn a_mix_of_all_ways_to_send_and_to_complete() {
    let job = |seed: &str| Job::new(2, "traffic_ways", &["mixed", seed, "120"]);
    job("300").across("alpha:1,beta:1").run().passed();
    let trusted = job("600").option("--trusted-network");
    trusted.across("alpha:1,beta:1").run().passed();
    job("900").run().passed();
}

#[test]
fn connections_between_hosts_outlive_their_keys() {
    for words in [
        &["to-and-fro", "5000"][..],
        &["mixed", "1200", "60"],
        &["pairs", "q", "w", "200000", "300", "both"],
    ] {
        let job = Job::new(2, "traffic_ways", words).env("REGATTA_RECORDS_PER_KEY", "600");
        job.across("alpha:1,beta:1").run().passed();
    }
}

#[test]
fn every_collective_across_hosts() {
    let job = Job::new(6, "traffic_crowd", &["collectives", "6", "25"]).limit(180);
    job.across("alpha:2,beta:3,gamma:1").run().passed();
}

fn blocked(job: &mut Running, tasks: u32) -> Vec<Pid> {
    let mut pids = vec![None; tasks as usize];
    for _ in 0..tasks {
        let words = job.read_words("blocked ");
        let rank: usize = words[0].parse().expect("a rank");
        pids[rank] = Pid::from_raw(words[1].parse().expect("a pid"));
    }
    pids.into_iter().flatten().collect()
}

/// Runs a job whose task 1 is killed when all tasks are in the middle of a call. The others get an error that names it,
/// and go on without it.
fn death_of_one(tasks: u32, hosts: &str, scenario: &[&str]) {
    let job = Job::new(tasks, "death", scenario).option("--on-failure=continue");
    let mut job = job.across(hosts).start();
    let victim = blocked(&mut job, tasks)[1];
    kill_process(victim, Signal::KILL).expect("a living victim");
    let ended = job.end().ended_with(128 + 9);
    ended.named_the_dead(tasks);
}

#[test]
fn a_death_on_another_host_is_named_and_survived() {
    for scenario in [&["receive-exact"][..], &["collective", "allreduce"]] {
        death_of_one(3, "alpha:1,beta:1,gamma:1", scenario);
    }
}

#[test]
fn a_death_in_a_collective_is_named_on_all_hosts() {
    // The killed task is once a member led by another task, once a leader of its host.
    for hosts in ["alpha:2,beta:2", "alpha:1,beta:3"] {
        for scenario in [
            &["collective", "barrier"][..],
            &["collective", "allreduce"],
            &["collective", "allreduce", "large"],
        ] {
            death_of_one(4, hosts, scenario);
        }
    }
}

#[test]
fn a_death_in_a_storm_of_collectives_between_hosts() {
    for hosts in ["alpha:2,beta:2", "alpha:1,beta:3", "alpha:1,beta:2,gamma:1"] {
        death_of_one(4, hosts, &["storm"]);
    }
}

#[test]
fn what_a_task_has_said_arrives_while_it_stays_away() {
    for (tasks, hosts, scenario) in [
        (2, "alpha:1,beta:1", "first-word"),
        (4, "alpha:2,beta:2", "first-word"),
        (2, "alpha:1,beta:1", "both-away"),
        (2, "alpha:1,beta:1", "crossed-words"),
        (3, "alpha:1,beta:1,gamma:1", "crossed-words"),
        (4, "alpha:2,beta:2", "after-a-barrier"),
        (6, "alpha:2,beta:2,gamma:2", "after-a-barrier"),
    ] {
        let job = Job::new(tasks, "absent", &[scenario]).limit(60);
        job.across(hosts).run().passed();
    }
}

#[test]
fn whoever_does_not_wait_for_a_receiver_does_not_wait_while_that_stays_away() {
    for scenario in [&["long-words"][..], &["long-words", "begun"]] {
        let job = || Job::new(2, "absent", scenario).limit(60);
        job().run().passed();
        job().across("alpha:1,beta:1").run().passed();
    }
}

#[test]
fn whoever_waits_for_one_that_stays_away_uses_no_core() {
    let job = Job::new(2, "absent", &["patience"]).limit(60);
    job.across("alpha:1,beta:1").run().passed();
}
