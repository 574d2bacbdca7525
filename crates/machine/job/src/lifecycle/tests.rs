//! The lifecycle of a job, with a clock of the test's own.

use super::*;

const TASKS: u32 = 4;

/// Returns a job of which all tasks run.
fn job(change: impl FnOnce(&mut Policy)) -> Job {
    let mut policy = Policy::default();
    change(&mut policy);
    let mut lifecycle = Lifecycle::new(policy, TASKS);
    (0..TASKS).for_each(|_| lifecycle.task_started());
    Job { lifecycle }
}

struct Job {
    lifecycle: Lifecycle,
}

impl Job {
    fn ends(&mut self, seconds: f64, rank: u32, end: End, state: TaskState) -> Vec<Action> {
        let mut actions = Vec::new();
        self.lifecycle.task_ended(
            Duration::from_secs_f64(seconds),
            (rank, 100 + rank),
            (end, state),
            false,
            &mut actions,
        );
        actions
    }

    fn signal(&mut self, seconds: f64, signal: i32, delivered: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        self.lifecycle.signal(
            Duration::from_secs_f64(seconds),
            signal,
            delivered,
            &mut actions,
        );
        actions
    }

    fn tick(&mut self, seconds: f64) -> Vec<Action> {
        let mut actions = Vec::new();
        let now = Duration::from_secs_f64(seconds);
        self.lifecycle.tick(now, &mut actions);
        actions
    }

    fn deadline(&self) -> Option<f64> {
        self.lifecycle.deadline().map(|at| at.as_secs_f64())
    }
}

const TERMINATED: End = End::Signalled {
    signal: 15,
    core: false,
};
const GOOD: End = End::Exited(0);
const CRASH: End = End::Signalled {
    signal: 11,
    core: false,
};

/// Returns the sentences for the user.
fn reported(actions: &[Action]) -> String {
    let sentences = actions.iter().filter_map(|action| match action {
        Action::Report(sentence) => Some(sentence.clone()),
        Action::ReportEnding(reason) => Some(reason.sentence("the rest")),
        _ => None,
    });
    sentences.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_job_whose_tasks_all_leave_is_a_success() {
    let mut job = job(|_| {});
    for rank in 0..TASKS {
        assert_eq!(job.ends(1.0, rank, GOOD, TaskState::Left), []);
    }
    assert!(job.lifecycle.is_over());
    assert_eq!((job.lifecycle.status(), job.deadline()), (0, None));
}

#[test]
fn the_others_learn_of_a_death_and_are_ended_after_the_grace_period() {
    let mut job = job(|_| {});
    let actions = job.ends(5.0, 2, CRASH, TaskState::Joined);
    assert_eq!(actions[0], Action::MarkDead(2, Cause::Signalled(11)));
    assert_eq!(
        reported(&actions),
        "task 2 (pid 102) was killed by signal 11 (segmentation fault)"
    );
    assert_eq!(job.deadline(), Some(6.0), "the notice");
    assert!(
        reported(&job.tick(6.0))
            .contains("3 tasks still run; they are ended 10 s after the failure")
    );
    assert_eq!(job.tick(14.9), []);
    assert!(job.tick(15.0).contains(&Action::Signal(libc::SIGTERM)));
    // A task that ends because it was signalled to has not failed.
    assert_eq!(
        reported(&job.ends(15.1, 0, TERMINATED, TaskState::Joined)),
        ""
    );
    assert!(job.tick(17.0).contains(&Action::Signal(libc::SIGKILL)));
    assert_eq!(job.lifecycle.status(), 139);
    assert_eq!(
        job.lifecycle.first_failure().map(|failure| failure.rank),
        Some(2)
    );
}

#[test]
fn the_others_go_on_when_the_user_says_so() {
    let mut job = job(|policy| policy.on_failure = OnFailure::Continue);
    job.ends(1.0, 0, End::Exited(9), TaskState::Joined);
    assert_eq!(job.deadline(), None);
    for rank in 1..TASKS {
        job.ends(9999.0, rank, GOOD, TaskState::Left);
    }
    assert_eq!(job.lifecycle.status(), 9);
}

#[test]
fn a_death_before_its_starter_could_watch_for_it_is_excused_by_the_watch() {
    let mut job = job(|_| {});
    job.ends(1.0, 2, CRASH, TaskState::Joined);
    job.lifecycle.excuse(1);
    assert_eq!(job.lifecycle.status(), 139, "another one is meant");
    job.lifecycle.excuse(2);
    assert_eq!((job.lifecycle.status(), job.deadline()), (0, None));
    assert_eq!(job.tick(99.0), [], "the others go on");
    job.ends(100.0, 0, End::Exited(9), TaskState::Joined);
    job.ends(100.5, 1, CRASH, TaskState::Joined);
    job.lifecycle.excuse(0);
    assert_eq!(job.lifecycle.status(), 139, "that of the next failure");
    assert!(job.tick(110.0).contains(&Action::Signal(libc::SIGTERM)));
    job.lifecycle.excuse(1);
    assert_eq!(
        job.lifecycle.status(),
        139,
        "the others are being ended for it"
    );
}

#[test]
fn ending_without_leaving_is_a_failure_even_with_status_0() {
    let mut job = job(|_| {});
    let actions = job.ends(1.0, 1, GOOD, TaskState::Joined);
    assert_eq!(actions[0], Action::MarkDead(1, Cause::Exited(0)));
    assert!(
        reported(&actions)
            .contains("task 1 (pid 101) exited with status 0 without leaving (rg_finalize)")
    );
    assert_eq!(job.lifecycle.status(), 1);
}

#[test]
fn leaving_and_then_failing_is_a_failure_but_no_death() {
    let mut job = job(|_| {});
    let actions = job.ends(1.0, 1, End::Exited(4), TaskState::Left);
    assert!(
        !actions
            .iter()
            .any(|action| matches!(action, Action::MarkDead(..)))
    );
    assert_eq!(job.lifecycle.status(), 4);
}

#[test]
fn never_joining_is_no_failure_but_the_others_learn_of_it() {
    let mut job = job(|_| {});
    assert_eq!(
        job.ends(1.0, 3, GOOD, TaskState::Expected),
        [Action::MarkDead(3, Cause::Exited(0))]
    );
    assert_eq!(
        (job.lifecycle.status(), job.lifecycle.never_joined()),
        (0, vec![3])
    );
}

#[test]
fn what_outlives_the_tasks_is_given_a_moment_then_ended() {
    let mut job = job(|_| {});
    (0..TASKS).for_each(|rank| drop(job.ends(1.0, rank, GOOD, TaskState::Left)));
    assert_eq!(job.tick(1.0), []);
    assert!(
        reported(&job.tick(1.1)).contains("processes that they started still run: ending the rest")
    );
    assert!(job.tick(3.1).contains(&Action::Signal(libc::SIGKILL)));
    assert!(
        job.tick(3.2).contains(&Action::Signal(libc::SIGKILL)),
        "processes that were started meanwhile"
    );
    assert!(reported(&job.tick(9.0)).contains("could not be ended"));
    assert!(job.lifecycle.is_given_up());
    assert_eq!(job.lifecycle.status(), 0);
}

#[test]
fn the_timeout_is_a_deadline() {
    let mut job = job(|policy| policy.timeout = Some(Duration::from_secs(30)));
    assert_eq!(job.deadline(), Some(30.0));
    assert_eq!(job.tick(29.9), []);
    assert!(job.tick(30.0).contains(&Action::Signal(libc::SIGTERM)));
    assert_eq!(job.deadline(), Some(32.0));
    job.ends(30.1, 0, End::Exited(143), TaskState::Joined);
    assert_eq!(job.lifecycle.status(), 124);
}

#[test]
fn a_signal_is_passed_on_unless_the_terminal_did() {
    let mut job = job(|_| {});
    assert_eq!(
        job.signal(1.0, libc::SIGUSR1, false),
        [Action::Signal(libc::SIGUSR1)]
    );
    assert_eq!(
        job.signal(1.0, libc::SIGINT, true),
        [Action::SignalElsewhere(libc::SIGINT)]
    );
    // The tasks die of it, which is no news to the user.
    assert_eq!(
        reported(&job.ends(
            1.1,
            0,
            End::Signalled {
                signal: 2,
                core: false
            },
            TaskState::Joined
        )),
        ""
    );
    assert_eq!(job.lifecycle.status(), 130);
}

#[test]
fn the_second_interrupt_kills_but_an_echo_of_the_first_does_not() {
    let mut job = job(|_| {});
    job.signal(1.0, libc::SIGINT, true);
    assert_eq!(
        job.signal(1.01, libc::SIGINT, false),
        [Action::Signal(libc::SIGINT)]
    );
    assert!(reported(&job.tick(2.0)).contains("a second Ctrl-C ends them at once"));
    assert!(
        job.signal(3.0, libc::SIGINT, true)
            .contains(&Action::Signal(libc::SIGKILL))
    );
    assert_eq!(job.lifecycle.status(), 130);
}

#[test]
fn a_job_that_is_asked_to_end_has_ended_soon_after_the_grace_period() {
    for (signal, status) in [
        (libc::SIGTERM, 143),
        (libc::SIGHUP, 129),
        (libc::SIGQUIT, 131),
        (libc::SIGINT, 130),
    ] {
        let mut job = job(|policy| policy.on_failure = OnFailure::Continue);
        let asked = job.signal(1.0, signal, false);
        assert_eq!(asked, [Action::Signal(signal)]);
        let said = reported(&job.tick(2.0));
        assert!(said.contains("4 tasks still run after signal"), "{said}");
        assert_eq!((job.tick(10.9), job.deadline()), (vec![], Some(11.0)));
        let ending = job.tick(11.0);
        assert!(ending.contains(&Action::Signal(libc::SIGTERM)));
        assert!(ending.contains(&Action::Signal(libc::SIGCONT)));
        assert!(reported(&ending).contains("the grace period (--grace) after"));
        assert!(job.tick(13.0).contains(&Action::Signal(libc::SIGKILL)));
        assert_eq!(job.lifecycle.status(), status);
    }
}

#[test]
fn a_request_to_end_does_not_put_off_an_end_that_comes_sooner() {
    let mut job = job(|_| {});
    job.ends(1.0, 2, CRASH, TaskState::Joined);
    job.signal(9.0, libc::SIGTERM, false);
    assert!(job.tick(11.0).contains(&Action::Signal(libc::SIGTERM)));
    job.signal(11.5, libc::SIGTERM, false);
    assert!(job.tick(13.0).contains(&Action::Signal(libc::SIGKILL)));
}

#[test]
fn tasks_that_handle_a_request_to_end_well_end_well() {
    let mut job = job(|_| {});
    job.signal(1.0, libc::SIGTERM, false);
    (0..TASKS).for_each(|rank| drop(job.ends(5.0, rank, GOOD, TaskState::Left)));
    assert_eq!((job.lifecycle.is_over(), job.lifecycle.status()), (true, 0));
}

#[test]
fn an_interrupt_of_the_terminal_is_the_tasks_affair_until_the_second() {
    let mut job = job(|_| {});
    job.signal(1.0, libc::SIGINT, true);
    job.tick(2.0);
    assert_eq!(job.deadline(), None);
}

#[test]
fn an_abandoned_job_is_killed_without_grace() {
    let mut job = job(|_| {});
    let mut actions = Vec::new();
    job.lifecycle
        .abandoned(Duration::from_secs(1), &mut actions);
    assert!(actions.contains(&Action::Signal(libc::SIGKILL)));
}

#[test]
fn only_the_first_failures_are_reported_one_by_one() {
    let policy = Policy {
        on_failure: OnFailure::Continue,
        ..Policy::default()
    };
    let mut lifecycle = Lifecycle::new(policy, 100);
    let mut actions = Vec::new();
    for rank in 0..100 {
        lifecycle.task_started();
        lifecycle.task_ended(
            Duration::ZERO,
            (rank, rank),
            (CRASH, TaskState::Left),
            false,
            &mut actions,
        );
    }
    assert_eq!(actions.len(), 4);
    assert_eq!(
        lifecycle.unreported().as_deref(),
        Some("96 more tasks failed")
    );
}

#[test]
fn a_job_interrupted_while_it_starts_starts_no_more() {
    let mut lifecycle = Lifecycle::new(Policy::default(), TASKS);
    lifecycle.task_started();
    let mut actions = Vec::new();
    lifecycle.signal(Duration::ZERO, libc::SIGTERM, false, &mut actions);
    assert!(actions.contains(&Action::StopStarting));
    lifecycle.task_ended(
        Duration::ZERO,
        (0, 1),
        (TERMINATED, TaskState::Expected),
        false,
        &mut actions,
    );
    assert!(lifecycle.is_over());
    assert_eq!(lifecycle.status(), 143);
}

#[test]
fn a_lost_host_is_one_failure_of_all_its_tasks() {
    let policy = Policy {
        grace: Duration::from_secs(3),
        ..Policy::default()
    };
    let names = vec!["alpha".to_owned(), "beta".to_owned()];
    let mut lifecycle = Lifecycle::new(policy, TASKS).across(names, vec![0, 0, 1, 1]);
    (0..3).for_each(|_| lifecycle.task_started());
    let mut actions = Vec::new();
    // One of its tasks runs, and the other one was never started.
    lifecycle.host_lost(
        Duration::from_secs(1),
        "the host beta is lost",
        &[(2, 102)],
        &[3],
        |_| false,
        &mut actions,
    );
    assert_eq!(
        actions[..2],
        [
            Action::MarkDead(2, Cause::Lost),
            Action::MarkDead(3, Cause::Lost)
        ]
    );
    assert_eq!(
        reported(&actions),
        "the host beta is lost; lost with it: tasks 2-3"
    );
    let failure = lifecycle.first_failure().expect("a failure");
    assert_eq!(
        (failure.rank, failure.end, lifecycle.status()),
        (2, End::Lost, 137)
    );
    assert_eq!(lifecycle.deadline(), Some(Duration::from_secs(2)));
    assert!(!lifecycle.is_over());
    for rank in 0..2 {
        lifecycle.task_ended(
            Duration::from_secs(2),
            (rank, 100),
            (GOOD, TaskState::Left),
            false,
            &mut actions,
        );
    }
    assert!(lifecycle.is_over());
}

#[test]
fn a_host_that_is_lost_while_the_job_ends_is_no_news() {
    let mut job = job(|policy| policy.grace = Duration::ZERO);
    job.ends(1.0, 0, CRASH, TaskState::Joined);
    job.tick(1.0);
    let mut actions = Vec::new();
    job.lifecycle.host_lost(
        Duration::from_secs(2),
        "lost",
        &[(1, 101)],
        &[],
        |_| false,
        &mut actions,
    );
    assert_eq!(actions, [Action::MarkDead(1, Cause::Lost)]);
    assert_eq!(job.lifecycle.status(), 139);
}

#[test]
fn a_failure_on_another_host_names_it() {
    let names = vec!["alpha".to_owned(), "beta".to_owned()];
    let mut lifecycle = Lifecycle::new(Policy::default(), 2).across(names, vec![0, 1]);
    (0..2).for_each(|_| lifecycle.task_started());
    let mut actions = Vec::new();
    lifecycle.task_ended(
        Duration::ZERO,
        (1, 7),
        (End::Exited(3), TaskState::Joined),
        false,
        &mut actions,
    );
    assert_eq!(
        reported(&actions),
        "task 1 (pid 7 on beta) exited with status 3"
    );
}

#[test]
fn a_death_that_somebody_takes_care_of_is_no_failure() {
    let mut job = job(|_| {});
    let mut actions = Vec::new();
    let (end, state) = (CRASH, TaskState::Joined);
    job.lifecycle
        .task_ended(Duration::ZERO, (1, 7), (end, state), true, &mut actions);
    // The other tasks are notified all the same.
    assert_eq!(actions, [Action::MarkDead(1, CRASH.cause())]);
    assert_eq!((job.lifecycle.status(), job.deadline()), (0, None));
}

#[test]
fn a_job_is_not_over_while_tasks_are_being_started_for_others() {
    let mut job = job(|_| {});
    job.lifecycle.spawn_requested();
    for rank in 0..TASKS {
        job.ends(1.0, rank, GOOD, TaskState::Left);
    }
    assert!(!job.lifecycle.is_over());
    job.lifecycle.spawn_resolved();
    job.lifecycle.tasks_added(&[0, 0]);
    job.lifecycle.start_failed();
    assert!(!job.lifecycle.is_over());
    job.lifecycle.task_started();
    job.ends(2.0, TASKS, GOOD, TaskState::Left);
    assert!(job.lifecycle.is_over());
}

#[test]
fn a_task_that_aborts_ends_the_job_with_its_status() {
    let mut job = job(|_| {});
    let mut actions = Vec::new();
    job.lifecycle.abort(Duration::ZERO, 2, 7, &mut actions);
    let said = Action::Report("task 2 has called rg_abort(7): ending all tasks at once".into());
    assert!(actions.contains(&said) && actions.contains(&Action::Signal(libc::SIGKILL)));
    // Another abort has no effect any more, and killed tasks are no failures.
    job.lifecycle.abort(Duration::ZERO, 3, 9, &mut actions);
    for rank in 0..TASKS {
        let end = job.ends(0.1, rank, End::Exited(1), TaskState::Dead);
        assert_eq!(end, [Action::MarkDead(rank, End::Exited(1).cause())]);
    }
    assert_eq!((job.lifecycle.status(), job.lifecycle.is_over()), (7, true));
}

#[test]
fn an_abort_with_status_0_is_a_failure_and_one_after_a_failure_keeps_the_status_of_that() {
    let mut plain = job(|_| {});
    plain.lifecycle.abort(Duration::ZERO, 0, 0, &mut Vec::new());
    assert_eq!(plain.lifecycle.status(), 1);
    let mut failed = job(|_| {});
    failed.ends(0.1, 1, End::Exited(3), TaskState::Joined);
    failed
        .lifecycle
        .abort(Duration::from_secs(1), 0, 7, &mut Vec::new());
    assert_eq!(
        (failed.lifecycle.status(), failed.lifecycle.is_ending()),
        (3, true)
    );
}
