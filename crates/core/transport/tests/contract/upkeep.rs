//! Upkeep: nothing that a task has sent is lost while it makes no calls, sleeps or leaves; and unreachable peers are
//! reported.

use regatta_engine::{Frames, Peers, Presence, Upkeep};

use super::{World, expect, send, soon};

/// Number of frames that are sent at once in each test.
const FRAMES: u32 = 3;

/// Returns two tasks that have exchanged messages.
fn met<T: Frames>(make: impl Fn() -> World<T>) -> World<T> {
    let mut world = make();
    for (from, to) in [(0, 1), (1, 0)] {
        assert!(send(&mut world.tasks[from], to as u32, 0, 8));
        expect(&mut world.tasks, to, 0, 8);
    }
    world
}

pub fn what_a_task_has_left_behind_goes_while_it_makes_no_calls<T: Frames + Upkeep>(
    make: impl Fn() -> World<T>,
) {
    let mut tasks = make().tasks;
    assert!(send(&mut tasks[0], 1, 1, 8), "an empty path has room");
    let come = soon(&mut tasks, |[a, b]| {
        a.go_on();
        b.go_on();
        b.front(0).unwrap().map(drop)
    });
    assert_eq!(
        come,
        Some(()),
        "nobody has looked for messages at the sender"
    );
    expect(&mut tasks, 1, 1, 8);
}

pub fn whoever_leaves_has_delivered_what_it_sent<T: Peers + Frames + Upkeep>(
    make: impl Fn() -> World<T>,
) {
    for leaves in [false, true] {
        let World { mut tasks, lose } = met(&make);
        for n in 1..=FRAMES {
            assert!(send(&mut tasks[0], 1, n, 100));
        }
        // The receiver makes progress, but takes nothing.
        let delivered = soon(&mut tasks, |[a, b]| {
            b.go_on();
            a.deliver(leaves).then_some(())
        });
        assert_eq!(delivered, Some(()));
        let [a, mut b] = tasks;
        lose(0, Presence::Left);
        drop(a);
        for n in 1..=FRAMES {
            // A third task replaces the one that has left.
            let mut both = [b, make().tasks.into_iter().next().unwrap()];
            let front = soon(&mut both, |[b, _]| b.front(0).unwrap());
            [b, _] = both;
            assert_eq!(front.map(|front| front.frame.tag), Some(n as i32));
            assert_eq!(b.accept_bytes(0), super::pattern(100, n));
        }
    }
}

pub fn one_look_everywhere_finds_what_has_arrived<T: Frames + Upkeep>(make: impl Fn() -> World<T>) {
    let mut tasks = met(make).tasks;
    assert!(send(&mut tasks[0], 1, 1, 8));
    let [a, b] = &mut tasks;
    while !a.deliver(false) {}
    b.look_everywhere();
    assert_eq!(b.next_ready(&mut 0), Some(0), "it is found before a sleep");
    b.arm();
    expect(&mut tasks, 1, 1, 8);
}

pub fn of_peers_that_answer_nothing_is_reported<T: Frames + Upkeep>(make: impl Fn() -> World<T>) {
    let mut tasks = met(make).tasks;
    for (me, task) in tasks.iter_mut().enumerate() {
        let peer = 1 - me as u32;
        task.look_around();
        task.note_crossing(peer);
        assert!(!task.has_reaches() && task.take_reaches().is_empty());
        assert!(!task.has_shortages() && task.take_shortages().is_empty());
        assert!(!task.is_disowned_by(peer));
        assert!(!task.path(peer).is_empty());
    }
}

/// Peers on the same host are seen in the host's table, and need not answer.
pub fn questions_about_being_blocked_are_answered_in_their_order<T: Frames + Upkeep>(
    make: impl Fn() -> World<T>,
) {
    let mut tasks = met(make).tasks;
    let mut answers = 0;
    for _ in 0..2000 {
        if let Some(state) = tasks[0].inquire(1) {
            assert!(state.answers >= answers, "a newer one");
            answers = state.answers;
        }
        tasks.iter_mut().for_each(Upkeep::go_on);
    }
}
