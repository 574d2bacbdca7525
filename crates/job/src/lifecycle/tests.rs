//! The course of a job, told to a clock that the test owns.

use super::*;

const TASKS: u32 = 4;

/// A job of which all tasks run.
fn job(change: impl FnOnce(&mut Plan)) -> Job {
    let mut plan = Plan::new("program", TASKS);
    change(&mut plan);
    let mut course = Course::new(&plan, plan.tasks.unwrap_or_default());
    (0..TASKS).for_each(|_| course.task_started());
    Job { course }
}

struct Job {
    course: Course,
}

impl Job {
    fn ends(&mut self, seconds: f64, rank: u32, end: End, state: TaskState) -> Vec<Act> {
        let mut acts = Vec::new();
        self.course.task_ended(
            Duration::from_secs_f64(seconds),
            (rank, 100 + rank),
            (end, state),
            false,
            &mut acts,
        );
        acts
    }

    fn signal(&mut self, seconds: f64, signal: Signal, delivered: bool) -> Vec<Act> {
        let mut acts = Vec::new();
        self.course.signal(
            Duration::from_secs_f64(seconds),
            signal,
            delivered,
            &mut acts,
        );
        acts
    }

    fn tick(&mut self, seconds: f64) -> Vec<Act> {
        let mut acts = Vec::new();
        self.course.tick(
            Duration::from_secs_f64(seconds),
            || "the rest".to_owned(),
            &mut acts,
        );
        acts
    }

    fn deadline(&self) -> Option<f64> {
        self.course.deadline().map(|at| at.as_secs_f64())
    }
}

const GOOD: End = End::Exited(0);
const CRASH: End = End::Signalled {
    signal: 11,
    core: false,
};

fn said(acts: &[Act]) -> String {
    let sentences = acts.iter().filter_map(|act| match act {
        Act::Say(sentence) => Some(sentence.as_str()),
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
    assert!(job.course.is_over());
    assert_eq!((job.course.status(), job.deadline()), (0, None));
}

#[test]
fn the_others_are_told_of_a_death_and_ended_after_the_grace() {
    let mut job = job(|_| {});
    let acts = job.ends(5.0, 2, CRASH, TaskState::Joined);
    assert_eq!(acts[0], Act::MarkDead(2, Cause::Signalled(11)));
    assert_eq!(
        said(&acts),
        "task 2 (pid 102) was killed by signal 11 (segmentation fault)"
    );
    assert_eq!(job.deadline(), Some(6.0), "the notice");
    assert!(
        said(&job.tick(6.0)).contains("3 tasks still run; they are ended 10 s after the failure")
    );
    assert_eq!(job.tick(14.9), []);
    assert!(job.tick(15.0).contains(&Act::Signal(Signal::TERM)));
    // Who ends because it was asked to has not failed.
    assert_eq!(
        said(&job.ends(
            15.1,
            0,
            End::Signalled {
                signal: 15,
                core: false
            },
            TaskState::Joined
        )),
        ""
    );
    assert!(job.tick(17.0).contains(&Act::Signal(Signal::KILL)));
    assert_eq!(job.course.status(), 139);
    assert_eq!(
        job.course.first_failure().map(|failure| failure.rank),
        Some(2)
    );
}

#[test]
fn the_others_go_on_when_the_user_says_so() {
    let mut job = job(|plan| plan.on_failure = OnFailure::Continue);
    job.ends(1.0, 0, End::Exited(9), TaskState::Joined);
    assert_eq!(job.deadline(), None);
    for rank in 1..TASKS {
        job.ends(9999.0, rank, GOOD, TaskState::Left);
    }
    assert_eq!(job.course.status(), 9);
}

#[test]
fn ending_without_leaving_is_a_failure_even_with_status_0() {
    let mut job = job(|_| {});
    let acts = job.ends(1.0, 1, GOOD, TaskState::Joined);
    assert_eq!(acts[0], Act::MarkDead(1, Cause::Exited(0)));
    assert!(
        said(&acts).contains("task 1 (pid 101) exited with status 0 without leaving (rg_finalize)")
    );
    assert_eq!(job.course.status(), 1);
}

#[test]
fn leaving_and_then_failing_is_a_failure_but_no_death() {
    let mut job = job(|_| {});
    let acts = job.ends(1.0, 1, End::Exited(4), TaskState::Left);
    assert!(!acts.iter().any(|act| matches!(act, Act::MarkDead(..))));
    assert_eq!(job.course.status(), 4);
}

#[test]
fn never_joining_is_no_failure_but_the_others_are_told() {
    let mut job = job(|_| {});
    assert_eq!(
        job.ends(1.0, 3, GOOD, TaskState::Expected),
        [Act::MarkDead(3, Cause::Exited(0))]
    );
    assert_eq!(
        (job.course.status(), job.course.never_joined()),
        (0, vec![3])
    );
}

#[test]
fn what_outlives_the_tasks_is_given_a_moment_then_ended() {
    let mut job = job(|_| {});
    (0..TASKS).for_each(|rank| drop(job.ends(1.0, rank, GOOD, TaskState::Left)));
    assert_eq!(job.tick(1.0), []);
    assert!(said(&job.tick(1.1)).contains("not what they started: ending the rest"));
    assert!(job.tick(3.1).contains(&Act::Signal(Signal::KILL)));
    assert!(
        job.tick(3.2).contains(&Act::Signal(Signal::KILL)),
        "what was born meanwhile"
    );
    assert!(said(&job.tick(9.0)).contains("cannot be ended"));
    assert!(job.course.is_given_up());
    assert_eq!(job.course.status(), 0);
}

#[test]
fn the_timeout_is_a_deadline() {
    let mut job = job(|plan| plan.timeout = Some(Duration::from_secs(30)));
    assert_eq!(job.deadline(), Some(30.0));
    assert_eq!(job.tick(29.9), []);
    assert!(job.tick(30.0).contains(&Act::Signal(Signal::TERM)));
    assert_eq!(job.deadline(), Some(32.0));
    job.ends(30.1, 0, End::Exited(143), TaskState::Joined);
    assert_eq!(job.course.status(), 124);
}

#[test]
fn a_signal_is_passed_on_unless_the_terminal_did() {
    let mut job = job(|_| {});
    assert_eq!(
        job.signal(1.0, Signal::USR1, false),
        [Act::Signal(Signal::USR1)]
    );
    assert_eq!(
        job.signal(1.0, Signal::INT, true),
        [Act::SignalElsewhere(Signal::INT)]
    );
    // The tasks die of it: the user knows why.
    assert_eq!(
        said(&job.ends(
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
    assert_eq!(job.course.status(), 130);
}

#[test]
fn the_second_interrupt_kills_but_an_echo_of_the_first_does_not() {
    let mut job = job(|_| {});
    job.signal(1.0, Signal::INT, true);
    assert_eq!(
        job.signal(1.01, Signal::INT, false),
        [Act::Signal(Signal::INT)]
    );
    assert!(said(&job.tick(2.0)).contains("a second Ctrl-C ends them at once"));
    assert!(
        job.signal(3.0, Signal::INT, true)
            .contains(&Act::Signal(Signal::KILL))
    );
    assert_eq!(job.course.status(), 130);
}

#[test]
fn an_abandoned_job_is_killed_without_grace() {
    let mut job = job(|_| {});
    let mut acts = Vec::new();
    job.course.abandoned(Duration::from_secs(1), &mut acts);
    assert!(acts.contains(&Act::Signal(Signal::KILL)));
}

#[test]
fn only_the_first_failures_are_told_one_by_one() {
    let mut plan = Plan::new("program", 100);
    plan.on_failure = OnFailure::Continue;
    let mut course = Course::new(&plan, plan.tasks.unwrap_or_default());
    let mut acts = Vec::new();
    for rank in 0..100 {
        course.task_started();
        course.task_ended(
            Duration::ZERO,
            (rank, rank),
            (CRASH, TaskState::Left),
            false,
            &mut acts,
        );
    }
    assert_eq!(acts.len(), 4);
    assert_eq!(course.untold().as_deref(), Some("96 more tasks failed"));
}

#[test]
fn a_job_interrupted_while_it_starts_starts_no_more() {
    let mut course = Course::new(&Plan::new("program", TASKS), TASKS);
    course.task_started();
    let mut acts = Vec::new();
    course.signal(Duration::ZERO, Signal::TERM, false, &mut acts);
    assert!(acts.contains(&Act::StopStarting));
    course.task_ended(
        Duration::ZERO,
        (0, 1),
        (
            End::Signalled {
                signal: 15,
                core: false,
            },
            TaskState::Expected,
        ),
        false,
        &mut acts,
    );
    assert!(course.is_over());
    assert_eq!(course.status(), 143);
}

#[test]
fn a_lost_host_is_one_failure_of_all_its_tasks() {
    let mut plan = Plan::new("program", TASKS);
    plan.grace = Duration::from_secs(3);
    let names = vec!["alpha".to_owned(), "beta".to_owned()];
    let mut course = Course::new(&plan, TASKS).across(names, vec![0, 0, 1, 1]);
    (0..3).for_each(|_| course.task_started());
    let mut acts = Vec::new();
    // One of its tasks runs, the other was never started.
    course.host_lost(
        Duration::from_secs(1),
        "the host beta is lost",
        &[(2, 102)],
        &[3],
        |_| false,
        &mut acts,
    );
    assert_eq!(
        acts[..2],
        [Act::MarkDead(2, Cause::Lost), Act::MarkDead(3, Cause::Lost)]
    );
    assert_eq!(
        said(&acts),
        "the host beta is lost; lost with it: tasks 2-3"
    );
    let failure = course.first_failure().expect("a failure");
    assert_eq!(
        (failure.rank, failure.end, course.status()),
        (2, End::Lost, 137)
    );
    assert_eq!(course.deadline(), Some(Duration::from_secs(2)));
    assert!(!course.is_over());
    for rank in 0..2 {
        course.task_ended(
            Duration::from_secs(2),
            (rank, 100),
            (GOOD, TaskState::Left),
            false,
            &mut acts,
        );
    }
    assert!(course.is_over());
}

#[test]
fn a_host_that_is_lost_while_the_job_ends_is_no_news() {
    let mut job = job(|plan| plan.grace = Duration::ZERO);
    job.ends(1.0, 0, CRASH, TaskState::Joined);
    job.tick(1.0);
    let mut acts = Vec::new();
    job.course.host_lost(
        Duration::from_secs(2),
        "lost",
        &[(1, 101)],
        &[],
        |_| false,
        &mut acts,
    );
    assert_eq!(acts, [Act::MarkDead(1, Cause::Lost)]);
    assert_eq!(job.course.status(), 139);
}

#[test]
fn a_failure_on_another_host_names_it() {
    let plan = Plan::new("program", 2);
    let names = vec!["alpha".to_owned(), "beta".to_owned()];
    let mut course = Course::new(&plan, 2).across(names, vec![0, 1]);
    (0..2).for_each(|_| course.task_started());
    let mut acts = Vec::new();
    course.task_ended(
        Duration::ZERO,
        (1, 7),
        (End::Exited(3), TaskState::Joined),
        false,
        &mut acts,
    );
    assert_eq!(said(&acts), "task 1 (pid 7 on beta) exited with status 3");
}

#[test]
fn a_death_that_somebody_takes_care_of_is_no_failure() {
    let mut job = job(|_| {});
    let mut acts = Vec::new();
    let (end, state) = (CRASH, TaskState::Joined);
    job.course
        .task_ended(Duration::ZERO, (1, 7), (end, state), true, &mut acts);
    // The others are told all the same.
    assert_eq!(acts, [Act::MarkDead(1, CRASH.cause())]);
    assert_eq!((job.course.status(), job.deadline()), (0, None));
}

#[test]
fn a_job_is_not_over_while_tasks_are_being_started_for_others() {
    let mut job = job(|_| {});
    job.course.birth_begins();
    for rank in 0..TASKS {
        job.ends(1.0, rank, GOOD, TaskState::Left);
    }
    assert!(!job.course.is_over());
    job.course.birth_ends();
    job.course.more(&[0, 0]);
    job.course.unborn();
    assert!(!job.course.is_over());
    job.course.task_started();
    job.ends(2.0, TASKS, GOOD, TaskState::Left);
    assert!(job.course.is_over());
}
