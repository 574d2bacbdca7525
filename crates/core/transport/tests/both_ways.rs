//! Of two tasks that send each other messages through pipes, one chooses the footprint for both.

use std::sync::Arc;

use regatta_engine::Streams;
use regatta_memory::views::Views;
use regatta_segment::job::{Job, JoinToken};
use regatta_transport::footprint::Policy;
use regatta_transport::shm::Shm;
use regatta_wire::Route;

/// Returns two tasks of one host with these policies.
fn two(policies: [Policy; 2]) -> [Shm; 2] {
    let job = Job::create(2).unwrap();
    [0, 1].map(|rank| {
        let token = JoinToken::handed(rank, 2);
        let fd = job.fd().try_clone_to_owned().unwrap();
        let mut shm = Shm::new(Arc::new(Job::join(fd, token).unwrap()), rank);
        shm.choose_footprints(policies[rank as usize]);
        shm
    })
}

/// Sends a message of this many bytes from one task to the other, and returns its pipe to the pool. Returns the
/// footprint in its route.
fn pass(from: &mut Shm, (to, rank): (&mut Shm, u32), length: usize) -> Vec<u8> {
    let mut bytes = vec![1; length];
    // SAFETY: the bytes outlive their use.
    let views = unsafe { Views::block(bytes.as_mut_ptr(), length) };
    let (bulk, route): (_, Route) = from.open(rank, &views).unwrap().expect("a pipe");
    let other = to.attach(1 - rank, &route).unwrap();
    from.abandon(bulk);
    to.reclaim(other);
    route[8..10].to_vec()
}

#[test]
fn the_task_with_the_higher_number_sends_as_it_is_sent_to() {
    for (policy, length) in [
        (Policy::Wide, 64 << 10),
        (Policy::NonTemporal, 64 << 10),
        (Policy::Narrow, 1 << 20),
        (Policy::NonTemporal, 1 << 20),
    ] {
        let [mut zero, mut one] = two([policy, Policy::Learn]);
        let own = pass(&mut one, (&mut zero, 0), length);
        let led = pass(&mut zero, (&mut one, 1), length);
        assert_ne!(own, led);
        assert_eq!(pass(&mut one, (&mut zero, 0), length), led);
    }
}

#[test]
fn the_task_with_the_lower_number_and_one_that_is_told_otherwise_are_not_led() {
    for [zero, one] in [
        [Policy::Learn, Policy::Wide],
        [Policy::Wide, Policy::Narrow],
    ] {
        let [mut zero, mut one] = two([zero, one]);
        let before = pass(&mut zero, (&mut one, 1), 64 << 10);
        let other = pass(&mut one, (&mut zero, 0), 64 << 10);
        assert_ne!(before, other);
        assert_eq!(pass(&mut zero, (&mut one, 1), 64 << 10), before);
    }
}
