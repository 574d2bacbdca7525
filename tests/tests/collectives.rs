//! Successive collectives (`tests/programs/collectives.c`): a task that is ahead must not overwrite what others still
//! read. Reductions by functions of the program combine the right operands (`tests/programs/functions.c`). In an
//! exchange between two tasks both get bit-identical results (`tests/programs/same_bits.c`).

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

#[test]
fn a_collective_of_a_group_that_has_ended_elsewhere_gives_no_other_ones_bytes() {
    for tasks in [2, 3, 4] {
        run(tasks, &["ended"]);
    }
}
