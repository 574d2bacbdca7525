//! Random programs of several tasks see the same on Regatta as on PVM 3.4 itself: what they send, receive, pack, ask and are told,
//! groups, mailboxes, ends of tasks, and what makes no sense. Seeds that nobody has tried are for `make courses`.

use regatta_tests::courses;

#[test]
fn random_programs_see_the_same_on_both_libraries() {
    let played = courses::play("pvm-courses-fixed", 1, 120, |_| ());
    assert!(played.steps > 5000, "the courses are too short");
}
