//! Random programs of several tasks see the same on Regatta as on PVM 3.4 itself: what they send, receive, pack, ask and are told,
//! groups, mailboxes, ends of tasks, and what makes no sense.

use std::time::{SystemTime, UNIX_EPOCH};

use regatta_tests::courses;

#[test]
fn random_programs_see_the_same_on_both_libraries() {
    let played = courses::play("pvm-courses-fixed", 1, 120, |_| ());
    assert!(played.steps > 5000, "the courses are too short");
}

#[test]
fn programs_that_nobody_has_tried_see_the_same_on_both_libraries() {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = clock.map_or(1, |clock| clock.as_secs());
    println!("courses from seed {first} on");
    courses::play("pvm-courses-clock", first, 80, |_| ());
}
