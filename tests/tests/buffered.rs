//! Sends that return before the message is received, and receives that select messages that fit.

use regatta_tests::{Job, skip};

/// Creates a named pipe.
fn file(name: &str) -> String {
    let file = format!("regatta-buffered-{name}-{}", std::process::id());
    let file = std::env::temp_dir().join(file).display().to_string();
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo {file}");
    file
}

#[test]
fn a_buffered_send_does_not_wait_for_a_receiver_that_does_not_look() {
    let file = file("here");
    let ended = Job::new(2, "buffered", &[&file]).run();
    let _ = std::fs::remove_file(&file);
    ended.passed();
}

#[test]
fn nor_does_it_between_hosts() {
    let file = file("hosts");
    let ended = Job::new(2, "buffered", &[&file]).across("alpha,beta").run();
    let _ = std::fs::remove_file(&file);
    ended.passed();
}

#[test]
fn large_messages_that_cross_arrive_whole() {
    Job::new(2, "crossing", &["whole"]).run().passed();
    Job::new(2, "crossing", &["whole"])
        .across("alpha,beta")
        .run()
        .passed();
}

#[test]
fn large_messages_that_cross_take_about_as_long_as_an_exchange() {
    if std::thread::available_parallelism().map_or(1, |cores| cores.get()) < 2 {
        return skip("two tasks on one core take turns, whatever they call");
    }
    // With other footprints, a task finds out only later that wide pipes are faster.
    let job = Job::new(2, "crossing", &["soon"]).env("REGATTA_FOOTPRINT", "narrow");
    job.run().passed();
}
