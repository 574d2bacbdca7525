//! Sends that do not wait, and receives of what fits.

use regatta_tests::Job;

/// A named pipe.
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
