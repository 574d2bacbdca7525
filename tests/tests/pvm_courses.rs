//! Random programs of several tasks have the same output on Regatta as on PVM 3.4: messages, packing, queries, groups,
//! mailboxes, exits of tasks, and invalid calls. `make courses` tries new seeds.

use regatta_tests::courses;

#[test]
fn random_programs_see_the_same_on_both_libraries() {
    let played = courses::play("pvm-courses-fixed", 1, 120, |_| ());
    assert!(played.steps > 5000, "the courses are too short");
}
