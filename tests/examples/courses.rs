//! `make courses`: plays two thousand courses, or the given number. The seed is taken from the clock unless it is
//! given.

use std::time::{SystemTime, UNIX_EPOCH};

use regatta_tests::courses;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| {
        word.parse::<u64>()
            .unwrap_or_else(|_| panic!("{word:?} is no number: courses [COUNT [FIRST]]"))
    });
    let count = numbers.next().unwrap_or(2000);
    let clock = SystemTime::now().duration_since(UNIX_EPOCH);
    let first = numbers
        .next()
        .unwrap_or_else(|| clock.map_or(1, |clock| clock.as_secs()));
    println!("courses: {count} from seed {first} on");
    let played = courses::play("pvm-courses", first, count, |played| {
        eprint!("\r{} courses, {} steps ", played.courses, played.steps);
    });
    eprintln!();
    println!(
        "courses: {} of {} steps, the same on both libraries",
        played.courses, played.steps
    );
}
