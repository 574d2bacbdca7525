//! MPI processes that spawn others, and connect to others.

use regatta_tests::{Job, mpi};

#[test]
fn processes_start_others() {
    mpi::play("processes", 1, "spawn");
    mpi::play("processes", 2, "spawn");
    mpi::play("processes", 2, "spawn_several");
}

#[test]
fn what_cannot_be_started_is_an_error_of_all() {
    mpi::play("processes", 2, "spawn_nothing");
}

#[test]
fn wrong_arguments_of_the_root_are_an_error_of_all() {
    mpi::play("processes", 2, "spawn_wrongly");
}

#[test]
fn nobody_waits_for_a_process_without_a_place_for_what_is_made() {
    mpi::play("processes", 2, "without_a_place");
    mpi::play("processes", 3, "without_a_place");
}

#[test]
fn nobody_waits_for_a_process_that_cannot_disconnect() {
    mpi::play("processes", 2, "disconnect_later");
    mpi::play("processes", 3, "disconnect_later");
}

#[test]
fn a_socket_whose_other_end_is_closed_is_an_error() {
    mpi::play("processes", 1, "join_nobody");
}

#[test]
fn processes_connect_by_ports_and_sockets() {
    mpi::play("processes", 2, "ports");
    mpi::play("processes", 4, "ports");
    mpi::play("processes", 2, "join");
}

/// Runs a scenario of `tests/programs/mpi/finalized.c`, in which some processes outlast others that are in
/// `MPI_Finalize`.
fn outlived(processes: u32, scenario: &str) {
    mpi::play("finalized", processes, scenario);
}

#[test]
fn calls_that_do_not_wait_succeed_while_others_are_in_finalize() {
    for scenario in ["probe", "receives", "sends"] {
        outlived(2, scenario);
        outlived(4, scenario);
    }
}

#[test]
fn messages_to_oneself_are_received_from_anybody_while_others_are_in_finalize() {
    for scenario in ["own", "thread"] {
        outlived(2, scenario);
        outlived(4, scenario);
    }
}

#[test]
fn messages_of_the_rest_are_received_from_anybody_while_others_are_in_finalize() {
    outlived(3, "living");
    outlived(5, "living");
}

#[test]
fn whatever_was_sent_before_finalize_is_received_also_if_the_request_was_freed() {
    outlived(2, "sent");
    outlived(4, "sent");
}

#[test]
fn the_rest_make_communicators_while_others_are_in_finalize() {
    outlived(3, "making");
    outlived(5, "making");
}

#[test]
fn a_call_that_waits_for_those_in_finalize_alone_is_an_error() {
    for scenario in ["never", "last", "any"] {
        outlived(2, scenario);
        outlived(3, scenario);
    }
}

#[test]
fn started_processes_and_those_that_started_them_are_there_while_in_finalize() {
    for processes in [1, 2] {
        outlived(processes, "children");
        outlived(processes, "parents");
    }
}

#[test]
fn who_dies_in_finalize_has_failed() {
    for processes in [2, 3] {
        Job::of(processes, &mpi::program("finalized"), &["died"])
            .option("--on-failure=continue")
            .run()
            .ended_with(128 + 9);
    }
}

/// The pseudo-random numbers that `tests/programs/mpi/masters.c` draws.
struct Draws(u64);

impl Draws {
    fn draw(&mut self, most: u64) -> u64 {
        let product = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = product.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Returns how many results a worker sends, and of how many numbers each consists.
    fn of_worker(seed: u64, worker: u64) -> (u64, u64) {
        let mut draws = Draws(seed * 1_000_003 + worker * 7919 + 17);
        draws.draw(2);
        let results = draws.draw(4);
        let length = [1, 3, 100, 2000, 70000][draws.draw(5) as usize];
        (results, length)
    }
}

/// Returns the line that the master prints about these workers.
fn line_of(what: &str, seed: u64, workers: std::ops::Range<u64>) -> String {
    let (mut total, mut sum) = (0, 0);
    for worker in workers {
        let (results, length) = Draws::of_worker(seed, worker);
        for result in 0..results {
            total += 1;
            sum += length * (worker * 1000 + result * 10);
            sum += length / 7 * 21 + (0..length % 7).sum::<u64>();
        }
    }
    format!("{what}: {total} results, sum {sum}, found 0\n")
}

#[test]
fn masters_and_workers_say_what_was_computed_whoever_finalizes_first() {
    let program = mpi::program("masters");
    for seed in 1..=20 {
        let processes = 1 + seed % 4;
        let mut draws = Draws(seed);
        draws.draw(2);
        let started = draws.draw(4) % 3;
        let mut expected = String::new();
        if processes > 1 {
            expected += &line_of("world", seed, 1..processes);
        }
        if started > 0 {
            expected += &line_of("started", seed, 50..50 + started);
        }
        let ended = Job::of(processes as u32, &program, &[&seed.to_string()])
            .run()
            .passed();
        assert_eq!(ended.text, expected.trim_end(), "seed {seed}");
    }
}

#[test]
fn a_program_that_a_process_starts_by_itself_is_a_world_of_one() {
    mpi::play("child", 1, "own");
    mpi::play("child", 2, "own");
}

#[test]
fn generalized_requests_that_are_complete_and_freed_are_freed_at_once() {
    mpi::play("child", 1, "generalized");
}

#[test]
fn hints_that_mean_nothing_are_not_told() {
    mpi::play("child", 1, "hints");
}

#[test]
fn localhost_is_the_host_of_the_process_that_starts_others() {
    mpi::play("child", 1, "localhost");
}

#[test]
fn sessions_go_on_after_finalize_in_a_program_that_had_one_before() {
    mpi::play("child", 1, "sessions");
    mpi::play("child", 3, "sessions");
}
