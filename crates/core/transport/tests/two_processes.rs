//! Two real processes on one segment: every message arrives once, whole and in order, whatever its size, also while
//! one side is stopped, and until one side is killed.

mod support;

use regatta_engine::Error;
use regatta_segment::job::Cause;
use support::other_task::{News, Pair, be_the_child};
use support::traffic::{Mix, Plan, Traffic};

const CHILD: &str = "the_other_task";

/// The child's part. Without a parent it does nothing.
#[test]
fn the_other_task() {
    be_the_child();
}

fn all_arrive(plan: Plan) {
    let mut pair = Pair::start(plan, CHILD);
    pair.traffic.run(Traffic::is_over);
    let counts = pair.counts();
    let (traffic, cause) = pair.end();
    assert_eq!((traffic.loss, traffic.received), (None, plan.count));
    assert_eq!(cause, Cause::Exited(0));
    assert_eq!(counts.0, plan.count);
}

#[test]
fn small_messages_both_ways() {
    all_arrive(Plan {
        mix: Mix::Small,
        count: 200_000,
        window: 300,
        seed: 1,
    });
}

#[test]
fn one_small_message_at_a_time() {
    all_arrive(Plan {
        mix: Mix::Small,
        count: 30_000,
        window: 1,
        seed: 2,
    });
}

#[test]
fn sizes_around_every_threshold() {
    for seed in 3..6 {
        all_arrive(Plan {
            mix: Mix::Every,
            count: 1_000,
            window: 24,
            seed,
        });
    }
}

#[test]
fn one_side_is_stopped_again_and_again() {
    let plan = Plan {
        mix: Mix::Every,
        count: 1_500,
        window: 24,
        seed: 4,
    };
    let mut pair = Pair::start(plan, CHILD);
    for stop in 1..=20 {
        pair.traffic
            .run(|traffic| traffic.received >= stop * 60 || traffic.loss.is_some());
        pair.signal(libc::SIGSTOP);
        assert_eq!(pair.news.recv().unwrap(), News::Stopped);
        // Enough turns to take over messages that the stopped task has begun.
        let started = pair.counts().0;
        for _ in 0..10_000 {
            pair.traffic.turn();
        }
        assert_eq!(pair.counts().0, started, "a stopped task sends nothing");
        assert!(pair.traffic.received <= started);
        pair.signal(libc::SIGCONT);
    }
    pair.traffic.run(Traffic::is_over);
    let (traffic, cause) = pair.end();
    assert_eq!((traffic.loss, traffic.received), (None, plan.count));
    assert_eq!(cause, Cause::Exited(0));
}

/// Messages that the dead task had sent, by its own count, are received. One that it had begun to send is received
/// whole or not at all. After these, receives fail with the loss, and so do all of this task's own sends.
#[test]
fn one_side_is_killed_and_every_message_is_accounted_for() {
    for round in 0..24 {
        let plan = Plan {
            mix: Mix::Every,
            count: 1 << 20,
            window: 24,
            seed: 100 + round,
        };
        let mut pair = Pair::start(plan, CHILD);
        let (after, turns) = (round * round * 2, round * 37 % 101);
        pair.traffic
            .run(|traffic| traffic.received >= after || traffic.loss.is_some());
        for _ in 0..turns {
            pair.traffic.turn();
        }
        pair.signal(libc::SIGKILL);
        pair.traffic.run(Traffic::is_over);
        let (started, completed) = pair.counts();
        let (traffic, cause) = pair.end();
        assert_eq!(cause, Cause::Signalled(libc::SIGKILL));
        assert_eq!(traffic.loss, Some(Error::Dead(1)));
        let received = traffic.received;
        assert!(
            received >= completed,
            "{received} received, {completed} were sent"
        );
        assert!(received + traffic.received_after_loss <= started);
    }
}
