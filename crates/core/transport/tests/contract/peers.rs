//! Peers: who they are, and what their loss means for what they sent.

use regatta_engine::{Fault, Frames, Peers, Presence};

use super::{World, eager, expect, pattern, send, soon};

pub fn tasks_know_themselves_and_each_other<T: Peers>(make: impl Fn() -> World<T>) {
    let tasks = make().tasks;
    for (me, task) in (0..).zip(&tasks) {
        assert_eq!((task.me(), task.peers(), task.world()), (me, 2, (0, 2)));
        let there = [task.presence(0), task.presence(1)];
        assert_eq!(there, [Presence::Here, Presence::Here]);
        // The tasks of a host share memory.
        let same = task.host(0) == task.host(1);
        assert_eq!(task.shares_memory(1 - me), same);
    }
}

pub fn a_peer_that_was_closed_is_heard_no_more_and_told<T: Peers + Frames>(
    make: impl Fn() -> World<T>,
) {
    let mut tasks = make().tasks;
    assert!(send(&mut tasks[0], 1, 0, 8));
    expect(&mut tasks, 1, 0, 8);
    assert!(send(&mut tasks[0], 1, 1, 8));
    tasks[1].close(0);
    let told = soon(&mut tasks, |[a, b]| {
        assert!(b.front(0).unwrap().is_none());
        assert_eq!(b.next_ready(&mut 0), None);
        a.front(1).err()
    });
    assert!(matches!(told, Some(Fault::Corrupt { peer: 1, .. })));
}

pub fn what_the_lost_sent_can_be_received<T: Peers + Frames>(make: impl Fn() -> World<T>) {
    for how in [Presence::Left, Presence::Dead] {
        let World { mut tasks, lose } = make();
        let [a, b] = &tasks;
        assert_eq!(
            (a.presence(1), b.presence(0)),
            (Presence::Here, Presence::Here)
        );
        let before = b.losses();
        assert!(send(&mut tasks[0], 1, 0, 8));
        expect(&mut tasks, 1, 0, 8);
        assert!(send(&mut tasks[0], 1, 1, 8) && send(&mut tasks[0], 1, 2, 1000));
        lose(0, how);
        let [a, b] = tasks;
        drop(a);
        // A third task replaces the one that is gone.
        let mut tasks = [b, make().tasks.into_iter().next().unwrap()];
        let told = soon(&mut tasks, |tasks| {
            (tasks[0].presence(0) != Presence::Here).then_some(())
        });
        assert_eq!(told, Some(()), "the loss is told");
        let [mut b, _] = tasks;
        assert_ne!(b.losses(), before);
        assert_eq!((b.presence(0), b.presence(1)), (how, Presence::Here));
        // By then everything has been received: one poll must suffice.
        for (n, len) in [(1, 8), (2, 1000)] {
            let front = b.front(0).unwrap().expect("it was sent");
            assert_eq!((front.frame, front.length), (eager(n, n as i32), len));
            assert_eq!(b.accept_bytes(0), pattern(len, n));
        }
        assert!(b.front(0).unwrap().is_none());
    }
}
