//! Collectives of MPI: in random order and form with random types, compared with an oracle; their errors; on
//! intercommunicators and on neighbourhoods.

use regatta_tests::{Job, mpi};

#[test]
fn blocking_ones_in_any_order_have_the_results_that_are_known_beforehand() {
    for processes in [1, 2, 3, 6] {
        mpi::play("collective_oracle", processes, "blocking");
    }
}

#[test]
fn several_are_under_way_at_once_and_are_waited_for_in_other_orders() {
    for processes in [1, 2, 5] {
        mpi::play("collective_oracle", processes, "started");
    }
}

#[test]
fn persistent_ones_are_started_again_and_again() {
    for processes in [1, 2, 4] {
        mpi::play("collective_oracle", processes, "all_forms");
    }
}

#[test]
fn wrong_arguments_are_noticed_before_anything_is_sent() {
    for processes in [1, 3] {
        mpi::play("collective_errors", processes, "arguments");
    }
}

/// A member dies during a collective. Every member that needs it must get an error that names it.
#[test]
fn the_death_of_a_member_ends_collectives() {
    for (processes, scenario) in [(2, "death"), (4, "death"), (5, "death_on_one_side")] {
        Job::of(processes, &mpi::program("collective_errors"), &[scenario])
            .option("--on-failure=continue")
            .run()
            .ended_with(128 + 9);
    }
}

#[test]
fn two_groups_have_each_others_results() {
    for processes in [2, 3, 5] {
        mpi::play("collective_sides", processes, "between");
    }
}

/// In a collective on an intercommunicator, a process has to send a result while it waits in a collective of its own
/// group.
#[test]
fn collectives_between_groups_advance_while_processes_meet_in_their_own() {
    for processes in [2, 5] {
        mpi::play("collective_sides", processes, "crossing");
    }
}

#[test]
fn neighbours_exchange_in_grids_and_graphs() {
    for processes in [1, 2, 4] {
        mpi::play("collective_sides", processes, "neighbours");
    }
}

#[test]
fn blocking_ones_and_those_with_a_request_do_not_meet() {
    for processes in [1, 2, 3] {
        mpi::play("collective_sides", processes, "orders");
    }
    for (processes, hosts) in [(2, "alpha:1,beta:1"), (3, "alpha:2,beta:1")] {
        Job::of(processes, &mpi::program("collective_sides"), &["orders"])
            .across(hosts)
            .run()
            .passed();
    }
}
