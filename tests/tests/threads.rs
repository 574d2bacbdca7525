//! Calls from `atexit` functions, destructors, signal handlers and cancelled threads, and tasks whose threads exit
//! (`tests/programs/threads.c`).

use regatta_tests::{Job, program, programs};

#[test]
fn a_call_may_fail_in_a_function_of_atexit() {
    let ended = Job::new(1, "threads", &["ends"]).run();
    ended.passed().said("at exit all is well");
}

#[test]
fn a_call_may_fail_in_destructors_of_thread_specific_data() {
    Job::new(1, "threads", &["key-destructors"]).run().passed();
}

#[test]
fn a_thread_that_is_cancelled_in_a_call_ends_after_it_and_leaves_no_lock() {
    Job::new(2, "threads", &["cancelled"]).run().passed();
}

#[test]
fn what_a_signal_handler_sends_arrives_or_is_refused() {
    for threads in ["1", "2"] {
        Job::new(1, "threads", &["interrupted", threads])
            .run()
            .passed();
    }
}

#[test]
fn a_program_that_is_asked_ends_the_calls_that_wait() {
    Job::new(2, "threads", &["asks"]).run().passed();
    let pretended = Job::new(2, "threads", &["asks"]).across("alpha:1,beta:1");
    pretended.run().passed();
}

#[test]
fn a_signal_handler_ends_the_job() {
    Job::new(2, "threads", &["aborted"]).run().ended_with(7);
}

#[test]
fn a_signal_that_is_blocked_does_not_end_a_process_whose_last_thread_leaves() {
    Job::new(1, "threads", &["leaves-blocked"]).run().passed();
}

#[test]
fn a_process_goes_on_while_its_threads_start_others() {
    let ended = Job::new(1, "threads", &["links", "3000"]).run();
    ended.passed().said("the last link has come");
}

/// The library recognizes its own threads by their names. The threads of this program have such a name and block all
/// signals, yet must not be taken for the library's.
#[test]
fn a_program_that_is_called_as_the_library_is_ends_with_its_own_threads() {
    let named = std::env::temp_dir().join(format!("regatta-links-{}", std::process::id()));
    regatta_tests::executable::copy(&program("threads"), &named);
    let ended = Job::of(1, &named, &["links", "3000", "blocked"]).run();
    ended.passed().said("the last link has come");
    let job = || Job::of(2, &named, &["leaves"]);
    for job in [job(), job().across("alpha:1,beta:1")] {
        job.run().said("the other one has ended");
    }
    std::fs::remove_file(named).expect("the copy");
}

/// A program that loads the library with `dlopen` may close it again. Threads that have called the library still end
/// normally.
#[test]
fn a_library_that_is_closed_stays_for_the_ends_of_threads() {
    let closes = programs::program_alone("closes");
    let library = programs::built("libregatta.so", "regatta-capi");
    let ended = Job::of(1, &closes, &[&library.display().to_string()]).run();
    ended.passed().said("closed");
}

#[test]
fn a_task_whose_last_thread_leaves_has_ended() {
    let job = || Job::new(2, "threads", &["leaves"]);
    for job in [job(), job().across("alpha:1,beta:1")] {
        job.run().said("the other one has ended");
    }
}
