//! Checks that every transport keeps the contract of the traits that `regatta_engine::Transport` combines. One suite
//! (`contract`), with a part for each trait, is run on each transport. A new transport needs one more function here
//! that makes pairs.

mod contract;
#[path = "support/hosts.rs"]
mod hosts;
/// The simulated network of the engine's tests: what holds there holds for every transport that keeps the contract.
#[allow(dead_code)]
#[path = "../../engine/tests/support/net/mod.rs"]
mod net;

use std::sync::Arc;

use contract::World;
use hosts::Hosts;
use net::{End, Net, Sizes};
use regatta_engine::{CollectiveBuffers, Frames, Peer, Peers, Presence, Upkeep};
use regatta_memory::views::Views;
use regatta_segment::job::{Cause, Job, JoinToken};
use regatta_transport::footprint::Policy;
use regatta_transport::paths::{Composite, Far, Paths};
use regatta_transport::shm::Shm;

/// Returns two tasks of one job, each with its own mapping.
fn shm() -> World<Shm> {
    let job = Job::create(2).unwrap();
    let join = |rank| {
        let fd = job.fd().try_clone_to_owned().unwrap();
        let token = JoinToken::handed(rank, 2);
        Shm::new(Arc::new(Job::join(fd, token).unwrap()), rank)
    };
    World {
        tasks: [join(0), join(1)],
        lose: Box::new(move |peer, how| match how {
            Presence::Here => {}
            Presence::Left => job.leave(peer),
            Presence::Dead => job.mark_dead(peer, Cause::Exited(1)),
        }),
    }
}

/// Returns tasks as `shm` does, with wide footprints.
fn wide() -> World<Shm> {
    let mut world = shm();
    for task in &mut world.tasks {
        task.choose_footprints(Policy::Wide);
    }
    world
}

/// Returns tasks as `shm` does, with non-temporal stores.
fn non_temporal() -> World<Shm> {
    let mut world = shm();
    for task in &mut world.tasks {
        task.choose_footprints(Policy::NonTemporal);
    }
    world
}

/// Groups beyond the seventh have no wide area, so that memory is left for later groups.
#[test]
fn a_task_makes_seven_wide_areas_at_most_for_its_contributions() {
    const AREA: u64 = 2 << 20;
    let [a, b] = &mut wide().tasks;
    let mut bytes = vec![1; 4096];
    let before = a.job().segment().used();
    // A few more than seven groups: a host of two tasks has room for about twenty buffers.
    for _ in 0..16 {
        let (one, name) = a.new_collective_buffer(2).unwrap().unwrap();
        let two = b.enter_collective_buffer(name, 2).unwrap().unwrap();
        // SAFETY: the bytes outlive the calls, which copy them.
        let from = unsafe { Views::block(bytes.as_mut_ptr(), bytes.len()) };
        a.contribute(&one, 0, 1, &from, 0..2, &|index| index);
        b.contribute(&two, 1, 1, &from, 0..2, &|index| index);
    }
    let used = a.job().segment().used() - before;
    assert!((14 * AREA..17 * AREA).contains(&used), "{used} bytes");
}

/// A task that checked before the other one had joined must not conclude that there is no single copy.
#[test]
fn the_single_copy_is_found_out_when_the_other_task_has_joined() {
    let job = Job::create(2).unwrap();
    let join = |rank| {
        let fd = job.fd().try_clone_to_owned().unwrap();
        let token = JoinToken::handed(rank, 2);
        Shm::new(Arc::new(Job::join(fd, token).unwrap()), rank)
    };
    let mut early = join(0);
    assert!(early.path(1).contains("once that task has joined"));
    let mut late = join(1);
    let found = |path: String| {
        path.split_once("at once; ")
            .map(|(_, found)| found.to_owned())
    };
    assert_eq!(found(early.path(1)), found(late.path(0)));
    assert!(!early.path(1).contains("once that task has joined"));
}

/// Returns two tasks on different hosts.
fn across(trusted: bool) -> World<Paths> {
    let hosts = Hosts::new(trusted, [42; 32], |address| address);
    World {
        tasks: [hosts.join(0), hosts.join(1)],
        lose: lose_on(hosts),
    }
}

fn trusted() -> World<Paths> {
    across(true)
}

fn encrypted() -> World<Paths> {
    across(false)
}

/// Returns tasks with encrypted connections whose keys are used for few records.
fn rekeyed() -> World<Paths> {
    let mut world = encrypted();
    for task in &mut world.tasks {
        task.change_keys_after(0);
    }
    world
}

/// Returns two tasks of one thread, on separate hosts: the engine's simulated network, as the smallest transport.
fn simulated() -> World<End> {
    let net = net(4096);
    World {
        tasks: [net.end(0), net.end(1)],
        lose: Box::new(move |peer, how| net.lose(peer, how)),
    }
}

fn net(eager: usize) -> Net {
    let sizes = Sizes {
        eager,
        ring: 8,
        chunk: 1 << 16,
        stream: 1 << 18,
        streams: 4,
    };
    let net = Net::new(2, sizes);
    net.spread(2);
    net
}

/// The minimum that a transport needs to be a far one.
impl Far for End {
    fn end_of_look(&self) -> usize {
        self.peers() as usize
    }

    fn close(&mut self, peer: Peer) {
        Peers::close(self, peer);
    }
}

/// Returns tasks with the simulated network as a third transport, behind those of a task to which other hosts cannot
/// connect.
fn third() -> World<Composite<Paths, End>> {
    let hosts = Hosts::new(true, [42; 32], |address| address);
    let paths = [0, 1].map(|rank| hosts.join_at(rank, None));
    let net = net(paths[0].eager_limit());
    let [a, b] = paths;
    World {
        tasks: [
            Composite::of(a, Some(net.end(0))),
            Composite::of(b, Some(net.end(1))),
        ],
        lose: lose_on(hosts),
    }
}

/// Records a loss in the table of the other task's host.
fn lose_on(hosts: Hosts) -> Box<dyn Fn(Peer, Presence)> {
    Box::new(move |peer, how| match how {
        Presence::Here => {}
        Presence::Left => hosts.jobs[1 - peer as usize].leave(peer),
        Presence::Dead => hosts.jobs[1 - peer as usize].mark_dead(peer, Cause::Exited(1)),
    })
}

macro_rules! tests {
    ($maker:ident: $($module:ident::{$($test:ident),+ $(,)?}),+ $(,)?) => {
        $($(
            #[test]
            fn $test() {
                super::contract::$module::$test(super::$maker);
            }
        )+)+
    };
}

/// The tests of the traits that concern every transport. `shares_memory` has those for transports whose tasks share
/// memory.
macro_rules! conforms {
    ($maker:ident) => {
        tests!($maker:
            peers::{
                tasks_know_themselves_and_each_other,
                a_peer_that_was_closed_is_heard_no_more_and_told,
                what_the_lost_sent_can_be_received,
            },
            frames::{
                frames_arrive_whole_once_and_in_order,
                any_interleaving_is_a_queue_each_way,
                without_room_nothing_is_sent,
                a_short_buffer_keeps_the_front,
                matching_takes_only_what_matches,
                bodies_and_bytes_are_payloads,
                ready_peers_are_those_with_frames,
            },
            streams::{
                either_side_opens_a_stream,
                a_sender_may_attach_late,
                a_stream_ends_however_the_turns_fall,
                streams_do_not_hold_each_other_up,
                bytes_beyond_the_buffer_are_dropped,
                what_its_sender_gives_up_is_waited_for,
                streams_are_limited_and_come_back,
                short_streams_wait_for_their_receives,
                a_route_that_makes_no_sense_is_the_peers_fault,
            },
            upkeep::{
                what_a_task_has_left_behind_goes_while_it_makes_no_calls,
                whoever_leaves_has_delivered_what_it_sent,
                one_look_everywhere_finds_what_has_arrived,
                of_peers_that_answer_nothing_is_reported,
                questions_about_being_blocked_are_answered_in_their_order,
            },
        );
    };
}

macro_rules! shares_memory {
    ($maker:ident) => {
        tests!($maker:
            loans::{
                a_loan_is_read_in_place_and_given_back,
                a_loan_that_is_none_is_refused,
            },
            collective_buffers::{
                contributions_are_read_by_the_others,
                collective_buffers_are_found_by_name,
                a_collective_buffer_is_used_again_when_all_have_left,
            },
        );
    };
}

mod shm {
    conforms!(shm);
    shares_memory!(shm);
}

mod non_temporal {
    conforms!(non_temporal);
    shares_memory!(non_temporal);
}

mod wide {
    conforms!(wide);
    shares_memory!(wide);
}

mod trusted {
    conforms!(trusted);
}

mod encrypted {
    conforms!(encrypted);
}

mod rekeyed {
    conforms!(rekeyed);
}

mod simulated {
    conforms!(simulated);
}

mod third {
    conforms!(third);
}
