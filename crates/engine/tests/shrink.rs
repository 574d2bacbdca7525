//! The survivors of a group agree on who they are, whenever others die.

mod support;

use proptest::prelude::*;
use regatta_engine::{Engine, GroupId, Handle, Peer, Settings, Shrinking};
use support::cases;
use support::net::{End, Net, Sizes};

/// Rounds after which a test says that nothing will ever move.
const PATIENCE: usize = 3000;

const ROOMY: Sizes = Sizes {
    eager: 200,
    ring: 4,
    chunk: 64,
    stream: 256,
    streams: 2,
};

struct Fleet {
    net: Net,
    engines: Vec<Engine<End>>,
    called: Vec<Option<Shrinking>>,
    made: Vec<Option<GroupId>>,
}

impl Fleet {
    fn new(tasks: u32, sizes: Sizes) -> Fleet {
        let net = Net::new(tasks, sizes);
        let engine = |me| Engine::new(net.end(me), Settings { buffer: 1000 });
        Fleet {
            engines: (0..tasks).map(engine).collect(),
            called: (0..tasks).map(|_| None).collect(),
            made: vec![None; tasks as usize],
            net,
        }
    }

    fn living(&self) -> Vec<Peer> {
        let all = 0..self.engines.len() as Peer;
        all.filter(|&peer| self.net.is_here(peer)).collect()
    }

    /// A task calls, if it has not, and its engine goes on.
    fn turn(&mut self, peer: Peer) {
        let at = peer as usize;
        if !self.net.is_here(peer) {
            return;
        }
        let engine = &mut self.engines[at];
        match &self.called[at] {
            Some(_) => {
                engine.progress();
            }
            None => {
                let called = engine.start_shrink(GroupId::WORLD);
                self.called[at] = Some(called.expect("the world is a group"));
            }
        }
        if self.net.is_here(peer)
            && self.made[at].is_none()
            && let Some(called) = &self.called[at]
            && let Some(made) = engine.shrunk(called)
        {
            self.made[at] = Some(made.expect("a group"));
        }
    }

    /// Everybody goes on until all that live have the group; then it is looked at.
    fn agree(&mut self, order: &[Peer], story: &str) {
        for _ in 0..PATIENCE {
            for &peer in order {
                self.turn(peer);
            }
            let made = |&peer: &Peer| self.made[peer as usize].is_some();
            if self.living().iter().all(made) {
                return self.check(story);
            }
        }
        let (living, made) = (self.living(), &self.made);
        panic!("{story}: one waits for ever: {made:?}, and {living:?} live");
    }

    fn check(&mut self, story: &str) {
        let living = self.living();
        let group = |peer: Peer| {
            let id = self.made[peer as usize].expect("made");
            let group = self.engines[peer as usize].group(id).expect("a live group");
            (group.peers(), group.context)
        };
        let Some(&first) = living.first() else {
            return;
        };
        let (members, _) = group(first);
        for &peer in &living {
            assert_eq!(group(peer), group(first), "{story}: {peer} and {first}");
            assert!(
                members.contains(&peer),
                "{story}: {peer} lives and is not in"
            );
        }
        if members == living {
            self.meet(story);
        }
    }

    /// The new group works, if nobody dies meanwhile.
    fn meet(&mut self, story: &str) {
        let living = self.living();
        let mut handles: Vec<Handle> = vec![];
        for &peer in &living {
            let id = self.made[peer as usize].expect("made");
            match self.engines[peer as usize].start_barrier(id) {
                Ok(handle) => handles.push(handle),
                Err(error) => assert!(self.living() != living, "{story}: {error:?}"),
            }
        }
        for _ in 0..50 {
            for &peer in &living {
                self.turn(peer);
            }
        }
        if self.living() != living {
            return;
        }
        for (&peer, handle) in living.iter().zip(handles) {
            let outcome = self.engines[peer as usize]
                .finish(handle)
                .expect("a handle");
            let (_, error) = outcome.unwrap_or_else(|| panic!("{story}: {peer} waits in it"));
            assert_eq!(error, None, "{story}");
        }
    }
}

#[test]
fn without_a_death_the_group_is_the_same() {
    for sizes in [Sizes::TINY, ROOMY] {
        for tasks in [1, 2, 3, 5, 70] {
            let mut fleet = Fleet::new(tasks, sizes);
            let order: Vec<Peer> = (0..tasks).collect();
            fleet.agree(&order, "nobody dies");
            let id = fleet.made[0].expect("made");
            assert_eq!(fleet.engines[0].group(id).expect("a group").size(), tasks);
        }
    }
}

/// The leader dies after each thing it sends; the one after it as well, after each.
#[test]
fn leaders_that_die_at_any_step() {
    for sizes in [Sizes::TINY, ROOMY] {
        let most = if sizes.eager < 100 { 100 } else { 14 };
        for first in 0..most {
            for second in (0..most).step_by(1 + most / 20).chain([usize::MAX]) {
                let mut fleet = Fleet::new(4, sizes);
                fleet.net.die_after(0, first);
                fleet.net.die_after(1, second);
                let forward = first % 2 == 0;
                let order = if forward { [0, 1, 2, 3] } else { [3, 2, 1, 0] };
                fleet.agree(&order, &format!("0 dies after {first}, 1 after {second}"));
            }
        }
    }
}

/// Those that still wait for a leader which died hear of the group from a member that has it, whose
/// engine does nothing but what other calls make it do.
#[test]
fn one_that_has_gone_on_still_tells_the_others() {
    let mut seen = 0;
    for first in 0..14 {
        for head_start in 0..10 {
            let mut fleet = Fleet::new(3, ROOMY);
            fleet.net.die_after(0, first);
            for peer in [2, 2]
                .into_iter()
                .chain([0, 1].into_iter().cycle().take(head_start))
            {
                fleet.turn(peer);
            }
            for peer in [0, 1, 2].into_iter().cycle().take(12) {
                fleet.turn(peer);
                let gone_on = fleet.made[1].is_some() && fleet.made[2].is_none();
                seen += (gone_on && !fleet.net.is_here(0)) as u32;
            }
            fleet.agree(
                &[1, 2],
                &format!("0 dies after {first}, {head_start} ahead"),
            );
        }
    }
    assert!(seen > 0, "it never came to that");
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn anybody_dies_at_any_moment(
        tasks in 2u32..6,
        fuses in prop::collection::vec(prop::option::of(0usize..40), 6),
        turns in prop::collection::vec(0u32..6, 0..200),
        tiny in any::<bool>(),
    ) {
        let mut fleet = Fleet::new(tasks, if tiny { Sizes::TINY } else { ROOMY });
        for (peer, fuse) in (0..tasks).zip(&fuses) {
            if let Some(things) = fuse {
                fleet.net.die_after(peer, *things);
            }
        }
        for peer in turns {
            if peer < tasks {
                fleet.turn(peer);
            }
        }
        let order: Vec<Peer> = (0..tasks).collect();
        fleet.agree(&order, &format!("{fuses:?}"));
    }
}
