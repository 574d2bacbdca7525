//! The life cycle of a link under random events, and the parcels that two links exchange in it.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use regatta_connection::channel::Channel;
use regatta_connection::handshake::Handshake;
use regatta_memory::views::Views;
use regatta_wire::link::HEAD;
use regatta_wire::{Frame, Kind};

use super::Link;
use super::state::LinkState;

/// An event of a link.
#[derive(Clone, Copy, Debug)]
enum Event {
    Call,
    Meet,
    Adopt,
    Begin,
    End,
    LookAfter,
    Retreat,
    FallMute,
    SayBye,
    HearBye,
    Part,
    Disown,
    Break,
    Report,
    Close,
    Drain,
    Go,
}

use Event::{
    Adopt, Begin, Break, Call, Close, Disown, Drain, End, FallMute, Go, HearBye, LookAfter, Meet,
    Part, Report, Retreat, SayBye,
};

/// Events of connections are more frequent than those that end a peer.
const EVENTS: [Event; 30] = [
    Call, Call, Call, Meet, Meet, Meet, Adopt, Adopt, Adopt, Begin, Begin, Begin, Begin, End, End,
    LookAfter, LookAfter, Retreat, Retreat, FallMute, SayBye, HearBye, Part, Disown, Break, Report,
    Close, Drain, Go, LookAfter,
];

fn socket() -> OwnedFd {
    OwnedFd::from(UnixStream::pair().unwrap().0)
}

/// Counts of the things that must be done at most once.
#[derive(Debug, Default)]
struct Done {
    losses: u32,
    looked_after: u32,
    byes: u32,
    reports: u32,
    partings: u32,
    ends: u32,
}

/// Makes a transition, as the transport makes it.
fn step(state: &mut LinkState, event: Event, now: Instant, done: &mut Done) {
    match event {
        Call if state.may_call() => state.called(Handshake::caller(socket(), 1)),
        Meet => {
            if let Some(channel) = state.met() {
                state.adopted(channel, true);
            }
        }
        Adopt => state.adopted(Channel::plain(socket()), false),
        Begin => {
            let may = state.is_resuming() && !state.is_shut_out();
            assert_eq!(state.begun().is_some(), may);
            if may {
                state.resumed();
            }
        }
        End => {
            // A loss that has not been handled is the same loss.
            done.losses += u32::from(!state.is_lost());
            state.ended();
        }
        LookAfter => done.looked_after += u32::from(state.look_after()),
        Retreat => {
            state.ended();
            state.retreated(now, false);
        }
        FallMute => state.fell_mute(),
        SayBye => done.byes += u32::from(state.say_bye()),
        HearBye if state.is_open() => state.hear_bye(),
        Part => done.partings += u32::from(state.part()),
        Disown => state.disown(),
        Break => state.break_protocol("first"),
        Report => {
            done.reports += u32::from(state.has_news_of_fault());
            state.report();
        }
        Close => state.close(),
        Drain => _ = state.may_receive_more(now, 0),
        Go => done.ends += u32::from(state.go()),
        Call | HearBye => {}
    }
}

/// Returns the answers that never change back.
fn verdicts(state: &LinkState) -> HashSet<&'static str> {
    let all = [
        ("gone", state.is_gone()),
        ("disowned", state.is_disowned()),
        ("cut for good", state.is_cut_for_good()),
        ("faulty", state.fault().is_some()),
        ("closed", state.is_closed()),
        ("shut out", state.is_shut_out()),
    ];
    let held = all.into_iter().filter(|one| one.1);
    held.map(|one| one.0).collect()
}

proptest! {
    #[test]
    fn whatever_happens_a_link_comes_to_each_end_once_and_never_back(
        choices in prop::collection::vec(0..EVENTS.len(), 0..120),
    ) {
        let (mut state, mut done, now) = (LinkState::new(), Done::default(), Instant::now());
        for event in choices.into_iter().map(|at| EVENTS[at]) {
            let (before, was_open) = (verdicts(&state), state.is_open());
            step(&mut state, event, now, &mut done);
            prop_assert!(verdicts(&state).is_superset(&before), "{event:?} after {before:?}");
            // A link that is shut out is never opened.
            let is_new = state.is_open() && !was_open;
            prop_assert!(!is_new || before.is_disjoint(&HashSet::from(["shut out"])));
            // A connection is in exactly one state.
            let states = [
                state.is_open(),
                state.is_resuming(),
                state.call().is_some(),
                state.is_unconnected(),
            ];
            prop_assert_eq!(states.into_iter().filter(|&is_so| is_so).count(), 1);
            prop_assert!(!state.is_mute() || state.sending_channel().is_none());
            prop_assert!(!state.may_call() || state.is_unconnected());
            prop_assert!(!state.may_call() || !state.is_cut_for_good());
            prop_assert!(!state.has_news_of_fault() || state.fault().is_some() && !state.is_closed());
        }
        prop_assert!(done.looked_after <= done.losses);
        prop_assert!(done.byes <= 1 && done.reports <= 1 && done.partings <= 1 && done.ends <= 1, "{done:?}");
    }

    /// A task that leaves sends its bye once and last, over any number of connections.
    #[test]
    fn a_link_says_bye_once_and_nothing_after_it(frames in 0usize..20, cuts in prop::collection::vec(0usize..4, 0..6)) {
        let mut links = [Link::new(), Link::new()];
        connect(&mut links);
        (0..frames).for_each(|_| links[0].send(FRAME, &Views::none()));
        for looks in cuts {
            links[0].send_bye();
            (0..looks).for_each(|_| links[1].receive());
            connect(&mut links);
        }
        links[0].send_bye();
        links[0].pump(0);
        links[1].receive();
        let mut taken = 0;
        while let Some(head) = links[1].front() {
            prop_assert!(links[1].state.is_over(), "the bye is here");
            links[1].take(&head);
            taken += 1;
        }
        prop_assert_eq!(taken, frames);
        prop_assert_eq!(links[1].inbox.reached, ((frames + 1) * HEAD) as u64, "one bye");
        prop_assert_eq!(links[1].state.fault(), None);
    }
}

const FRAME: Frame = Frame {
    kind: Kind::Eager,
    context: 0,
    tag: 0,
};

/// Gives two links a new connection.
fn connect(links: &mut [Link; 2]) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    for (link, socket) in links.iter_mut().zip([ours, theirs]) {
        socket.set_nonblocking(true).unwrap();
        link.adopt(Channel::plain(OwnedFd::from(socket)), true)
            .unwrap();
    }
    links.iter_mut().for_each(|link| link.begin().unwrap());
}

#[test]
fn a_loss_is_looked_after_once() {
    let mut state = LinkState::new();
    state.ended();
    assert!(state.is_lost() && state.look_after());
    assert!(!state.is_lost() && !state.look_after());
}

#[test]
fn the_first_fault_is_the_one_that_is_reported_and_once() {
    let mut state = LinkState::new();
    state.break_protocol("first");
    state.break_protocol("second");
    assert!(state.has_news_of_fault());
    state.report();
    state.break_protocol("third");
    assert_eq!(
        (state.fault(), state.has_news_of_fault()),
        (Some("first"), false)
    );
    state.close();
    state.report();
    assert!(state.is_closed() && state.fault() == Some("first"));
}

#[test]
fn who_is_disowned_stays_so_when_the_engine_is_done_with_the_peer() {
    let mut state = LinkState::new();
    state.disown();
    assert!(!state.part() && state.is_disowned());
    let mut state = LinkState::new();
    assert!(state.part() && !state.is_disowned());
    state.disown();
    assert!(state.is_disowned() && state.is_cut_for_good());
}

#[test]
fn a_peer_rests_longer_after_each_attempt_in_vain_until_one_succeeds() {
    let mut state = LinkState::new();
    let may_call = |state: &mut LinkState, ago: u64| {
        state.ended();
        state.retreated(Instant::now() - Duration::from_millis(ago), false);
        state.may_call()
    };
    assert!(may_call(&mut state, 10));
    assert!(!may_call(&mut state, 10) && may_call(&mut state, 40));
    (0..100).for_each(|_| _ = may_call(&mut state, 0));
    assert!(!may_call(&mut state, 300) && may_call(&mut state, 500));
    state.resumed();
    assert!(may_call(&mut state, 10));
}
