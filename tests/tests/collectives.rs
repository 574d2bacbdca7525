//! Collectives one after the other (`tests/programs/collectives.c`): whoever is ahead destroys nothing that others still read. Functions
//! of programs combine what they should (`tests/programs/functions.c`). Both of a pair have one result
//! (`tests/programs/same_bits.c`).

use regatta_tests::Job;

fn run(tasks: u32, arguments: &[&str]) {
    Job::new(tasks, "collectives", arguments).run().passed();
}

#[test]
fn exchanges_between_calls_that_only_give_have_the_right_bytes() {
    for tasks in [2, 3, 4, 8] {
        run(tasks, &["alternate", "300"]);
    }
}

#[test]
fn exclusive_prefixes_and_scattered_reductions_have_the_right_elements() {
    for tasks in [1, 2, 3, 5, 8] {
        run(tasks, &["prefixes"]);
    }
}

#[test]
fn a_random_course_of_collectives_has_the_right_bytes() {
    for (seed, tasks) in [
        ("1", 3),
        ("2", 4),
        ("3", 5),
        ("4", 16),
        ("5", 1),
        ("6", 2),
        ("7", 2),
    ] {
        run(tasks, &["course", seed, "250"]);
    }
}

#[test]
fn functions_of_a_program_combine_the_right_elements() {
    for tasks in [1, 2, 3] {
        Job::new(tasks, "functions", &["functions", "1280"])
            .run()
            .passed();
    }
}

#[test]
fn two_tasks_have_one_result_to_the_last_bit() {
    Job::new(2, "same_bits", &[]).run().passed();
}
