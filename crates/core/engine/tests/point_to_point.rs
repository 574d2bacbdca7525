//! Every send, receive, probe, cancel and loan against the reference matcher, with every queue
//! tiny, in any interleaving, with and without the loss of a task.

mod support;

use proptest::prelude::*;
use regatta_engine::{Mode, Peer, Presence, Select, TagSelect};
use support::net::Sizes;
use support::world::{OTHER, World};

const TASKS: u32 = 4;

#[derive(Clone, Debug)]
enum Step {
    Send(Peer, Peer, u32, i32, usize, bool),
    Loan(Peer, Peer, u32, i32, usize),
    Receive(Peer, Select, usize),
    Probe(Peer, Select),
    MatchProbe(Peer, Select),
    ReceiveMatched(Peer, usize, usize),
    TakeLoan(Peer, Select),
    Cancel(Peer, usize),
    Progress(Peer),
    TakeIn(Peer),
}

impl Step {
    /// Returns the task that makes the call.
    fn by(&self) -> Peer {
        match *self {
            Step::Send(by, ..) | Step::Loan(by, ..) | Step::Receive(by, ..) => by,
            Step::Probe(by, _) | Step::TakeLoan(by, _) | Step::Cancel(by, _) => by,
            Step::MatchProbe(by, _) | Step::ReceiveMatched(by, ..) => by,
            Step::Progress(by) | Step::TakeIn(by) => by,
        }
    }
}

fn context() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 0, OTHER])
}

fn length() -> impl Strategy<Value = usize> {
    // Sizes around the eager limit (16) and the stream's space (12) of the small net, and beyond.
    prop::sample::select(vec![0, 1, 8, 15, 16, 17, 24, 25, 40, 90])
}

fn select() -> impl Strategy<Value = Select> {
    let tag = prop_oneof![
        4 => (0..3i32).prop_map(TagSelect::Exactly),
        2 => Just(TagSelect::Any),
        1 => (0..4i32, 0..4i32).prop_map(|(wanted, mask)| TagSelect::Masked { wanted, mask }),
    ];
    let source = prop_oneof![3 => (0..TASKS).prop_map(Some), 1 => Just(None)];
    (context(), source, tag).prop_map(|(context, source, tag)| Select {
        context,
        source,
        tag,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let task = 0..TASKS;
    prop_oneof![
        8 => (task.clone(), task.clone(), context(), 0..3i32, length(), prop::bool::weighted(0.2))
            .prop_map(|(f, t, c, tag, n, s)| Step::Send(f, t, c, tag, n, s)),
        1 => (task.clone(), task.clone(), context(), 0..3i32, length())
            .prop_map(|(f, t, c, tag, n)| Step::Loan(f, t, c, tag, n)),
        8 => (task.clone(), select(), length()).prop_map(|(b, s, n)| Step::Receive(b, s, n)),
        2 => (task.clone(), select()).prop_map(|(b, s)| Step::Probe(b, s)),
        2 => (task.clone(), select()).prop_map(|(b, s)| Step::MatchProbe(b, s)),
        2 => (task.clone(), any::<usize>(), length())
            .prop_map(|(b, which, n)| Step::ReceiveMatched(b, which, n)),
        1 => (task.clone(), select()).prop_map(|(b, s)| Step::TakeLoan(b, s)),
        1 => (task.clone(), any::<usize>()).prop_map(|(b, which)| Step::Cancel(b, which)),
        8 => task.clone().prop_map(Step::Progress),
        1 => task.prop_map(Step::TakeIn),
    ]
}

fn run(world: &mut World, step: &Step) {
    if world.is_lost(step.by()) {
        return;
    }
    let mode = |synchronous| match synchronous {
        true => Mode::Synchronous,
        false => Mode::Standard,
    };
    match step.clone() {
        Step::Send(f, t, c, tag, n, s) => world.send(f, t, c, tag, n, mode(s)),
        Step::Loan(f, t, c, tag, n) => world.send_loan(f, t, c, tag, n),
        Step::Receive(by, select, n) => world.receive(by, select, n),
        Step::Probe(by, select) => world.probe(by, select),
        Step::MatchProbe(by, select) => world.match_probe(by, select),
        Step::ReceiveMatched(by, which, n) => world.receive_matched(by, which, n),
        Step::TakeLoan(by, select) => world.take_loan(by, select),
        Step::Cancel(by, which) => world.cancel(by, which),
        Step::Progress(by) => drop(world.progress(by)),
        Step::TakeIn(by) => world.take_in(by),
    }
}

proptest! {
    #![proptest_config(support::cases(1000))]

    #[test]
    fn every_match_is_the_reference_matchers(
        buffer in prop::sample::select(vec![40usize, 300, 1 << 20]),
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let mut world = World::new(TASKS, Sizes::EAGER_16_BYTES, buffer);
        for step in &steps {
            run(&mut world, step);
        }
        world.finish();
    }

    #[test]
    fn a_loss_ends_what_depends_on_it_and_nothing_else(
        steps in prop::collection::vec(step(), 0..80),
        when in 0usize..80,
        victim in 0..TASKS,
        how in prop::sample::select(vec![Presence::Dead, Presence::Left]),
    ) {
        let mut world = World::new(TASKS, Sizes::EAGER_16_BYTES, 1 << 20);
        for (n, step) in steps.iter().enumerate() {
            if n == when {
                world.lose(victim, how);
            }
            run(&mut world, step);
        }
        world.finish();
    }
}
