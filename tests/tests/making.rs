//! Groups that are created at the same time (`tests/programs/making.c`): no group receives a message that was sent in
//! another.

use regatta_tests::Job;

fn run(tasks: u32, arguments: &[&str]) {
    Job::new(tasks, "making", arguments).run().passed();
}

#[test]
fn threads_make_groups_from_different_groups_at_the_same_time() {
    for tasks in [2, 3, 4] {
        run(tasks, &["threads", "20"]);
    }
}

#[test]
fn threads_make_groups_from_one_group_by_tags() {
    for tasks in [2, 3, 4] {
        run(tasks, &["tagged", "20"]);
    }
}

#[test]
fn groups_are_made_without_waiting_in_opposite_orders() {
    for tasks in [1, 2, 3, 8] {
        run(tasks, &["idup", "50"]);
    }
}

#[test]
fn several_groups_are_made_at_once() {
    for tasks in [1, 2, 3, 8] {
        run(tasks, &["at_once", "50"]);
    }
}

#[test]
fn no_group_is_made_with_a_dead_task() {
    for tasks in [3, 5] {
        let job = Job::new(tasks, "making", &["death"]).option("--on-failure=continue");
        let ended = job.run().ended_with(128 + 9);
        for rank in (0..tasks).filter(|&rank| rank != 1) {
            assert!(ended.text.contains(&format!("went on {rank}")));
        }
    }
}

#[test]
fn a_split_fails_for_all_if_a_member_has_no_place_for_it() {
    run(3, &["full"]);
}
