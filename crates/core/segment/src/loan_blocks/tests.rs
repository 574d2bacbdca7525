use std::cell::RefCell;
use std::collections::HashSet;

use super::*;

/// A few tasks in one process, some of which may be gone.
struct World {
    segment: Segment,
    blocks: List,
    gone: RefCell<HashSet<u32>>,
}

impl World {
    fn new() -> World {
        World {
            segment: Segment::create("test", 1 << 20).unwrap(),
            blocks: List::default(),
            gone: RefCell::default(),
        }
    }

    /// Runs `act` as task `me`.
    fn of<R>(&self, me: u32, act: impl FnOnce(&Around) -> R) -> R {
        let gone = |peer: u32| self.gone.borrow().contains(&peer);
        act(&Around {
            segment: &self.segment,
            blocks: &self.blocks,
            me,
            gone: &gone,
        })
    }
}

fn address(views: &Views) -> usize {
    views.contiguous().unwrap() as usize
}

#[test]
fn blocks_come_back_and_made_up_ones_are_refused() {
    let world = World::new();
    let mut loans = LoanBlocks::default();
    let segment = &world.segment;
    world.of(0, |around| {
        let (place, views) = loans.lend(around, 5000).unwrap();
        assert_eq!(views.len(), 5000);
        let address = address(&views);
        assert_eq!(LoanBlocks::at(around, address), Some((place, 8192 - LINE)));
        assert_eq!(LoanBlocks::at(around, address + 64), None);
        assert_eq!(LoanBlocks::at(around, 0x1234), None);
        assert!(LoanBlocks::check(segment, place, 9000).is_err());
        assert!(LoanBlocks::check(segment, place + 1, 1).is_err());
        assert!(LoanBlocks::check(segment, u64::MAX, 1).is_err());
        loans.give_back(around, place);
        assert_eq!(LoanBlocks::at(around, address), None, "given back");
        loans.give_back(around, place);
        let again = loans.lend(around, 8000).unwrap().0;
        let other = loans.lend(around, 8000).unwrap().0;
        assert_eq!(again, place);
        assert_ne!(other, place, "giving back twice lends it once");
        assert!(loans.lend(around, usize::MAX).is_err());
    });
}

#[test]
fn a_block_is_not_lent_again_while_anybody_reads_it() {
    let world = World::new();
    let (mut owner, mut reader) = (LoanBlocks::default(), LoanBlocks::default());
    let (place, views) = world.of(0, |around| owner.lend(around, 5000).unwrap());
    let name = world.of(0, |around| owner.share(around, place, 1).unwrap());
    let memory = world.of(1, |around| LoanBlocks::open(around, name, 5000).unwrap());
    assert_eq!(memory.as_ptr() as usize, address(&views));
    assert!(world.of(1, |around| LoanBlocks::open(around, name, 9000).is_err()));
    assert!(world.of(2, |around| LoanBlocks::open(around, name, 10).is_err()));
    assert_eq!(
        world.of(1, |around| LoanBlocks::at(around, address(&views))),
        None
    );
    world.of(0, |around| owner.give_back(around, place));
    let other = world.of(0, |around| owner.lend(around, 5000).unwrap().0);
    assert_ne!(other, place);
    world.of(2, |around| reader.close(around, name));
    assert!(world.of(1, |around| LoanBlocks::open(around, name, 10).is_ok()));
    world.of(1, |around| reader.close(around, name));
    assert!(world.of(1, |around| LoanBlocks::open(around, name, 10).is_err()));
    assert_eq!(
        world.of(0, |around| owner.lend(around, 5000).unwrap().0),
        place
    );
}

#[test]
fn what_the_dead_had_is_lent_again() {
    let world = World::new();
    let (mut owner, mut next_owner) = (LoanBlocks::default(), LoanBlocks::default());
    let place = world.of(0, |around| owner.lend(around, 5000).unwrap().0);
    let name = world.of(0, |around| owner.share(around, place, 1).unwrap());
    world.gone.borrow_mut().insert(0);
    let other = world.of(2, |around| next_owner.lend(around, 5000).unwrap().0);
    assert_ne!(other, place, "somebody reads it");
    assert!(world.of(1, |around| LoanBlocks::open(around, name, 10).is_ok()));
    world.gone.borrow_mut().insert(1);
    assert_eq!(
        world.of(2, |around| next_owner.lend(around, 5000).unwrap().0),
        place
    );

    // The death of a reader does not keep a block from its owner.
    let name = world.of(2, |around| next_owner.share(around, other, 1).unwrap());
    world.of(2, |around| next_owner.give_back(around, other));
    assert_eq!(
        world.of(2, |around| next_owner.lend(around, 5000).unwrap().0),
        other
    );
    assert!(world.of(1, |around| LoanBlocks::open(around, name, 10).is_err()));
}

#[test]
fn what_one_task_keeps_another_can_have() {
    let world = World::new();
    let (mut sender, mut receiver) = (LoanBlocks::default(), LoanBlocks::default());
    let mut used = 0;
    for round in 0..300 {
        // Each sender is a task that lends once and then is gone.
        let task = round + 1;
        let place = world.of(task, |around| {
            let place = sender.lend(around, 50_000).unwrap().0;
            assert!(sender.send(around, place, 0));
            place
        });
        world.of(0, |around| {
            LoanBlocks::arrive(around, place, task).unwrap();
            receiver.give_back(around, place);
        });
        world.gone.borrow_mut().insert(task);
        if round == 0 {
            used = world.segment.used();
        }
    }
    assert_eq!(world.segment.used(), used, "one block is enough");
    assert_eq!(receiver.listed.len(), 1);
    // The block can be taken once, by its keeper or by another task.
    let lend = |task, loans: &mut LoanBlocks| {
        let lent = world.of(task, |around| loans.lend(around, 50_000).unwrap());
        lent.0
    };
    let places = [lend(0, &mut receiver), lend(400, &mut sender)];
    assert_ne!(places[0], places[1]);
}

#[test]
fn a_task_that_leaves_late_does_not_touch_what_another_has_by_then() {
    let world = World::new();
    let (mut leaver, mut next_owner) = (LoanBlocks::default(), LoanBlocks::default());
    let place = world.of(0, |around| {
        let place = leaver.lend(around, 50_000).unwrap().0;
        leaver.give_back(around, place);
        place
    });
    world.gone.borrow_mut().insert(0);
    let (again, views) = world.of(1, |around| next_owner.lend(around, 50_000).unwrap());
    assert_eq!(again, place);
    views.fill(&[7; 50_000]);
    world.of(0, |around| leaver.leave(around));
    assert_eq!(views.to_vec(), [7; 50_000]);
    let other = world.of(2, |around| leaver.lend(around, 50_000).unwrap().0);
    assert_ne!(other, place);
}

#[test]
fn a_block_under_way_to_the_dead_is_lent_again() {
    let world = World::new();
    let (mut sender, mut other) = (LoanBlocks::default(), LoanBlocks::default());
    let place = world.of(0, |around| sender.lend(around, 5000).unwrap().0);
    assert!(world.of(0, |around| sender.send(around, place, 1)));
    assert!(
        world.of(0, |around| !sender.send(around, place, 1)),
        "not twice"
    );
    let lend =
        |task, loans: &mut LoanBlocks| world.of(task, |around| loans.lend(around, 5000).unwrap().0);
    assert_ne!(lend(2, &mut other), place, "its receiver may take it yet");
    world.gone.borrow_mut().insert(1);
    let next_owners = [lend(0, &mut sender), lend(2, &mut other)];
    assert_eq!(
        next_owners
            .iter()
            .filter(|&&next_owner| next_owner == place)
            .count(),
        1
    );
}

#[test]
fn what_the_dead_had_handed_over_and_not_sent_is_kept_by_the_receiver() {
    let world = World::new();
    let (mut sender, mut receiver) = (LoanBlocks::default(), LoanBlocks::default());
    let places: Vec<u64> = (0..5)
        .map(|_| world.of(0, |around| sender.lend(around, 5000).unwrap().0))
        .collect();
    for &place in &places {
        assert!(world.of(0, |around| sender.send(around, place, 1)));
    }
    // The first message has arrived; the others have not been written.
    world.of(1, |around| {
        LoanBlocks::arrive(around, places[0], 0).unwrap()
    });
    world.gone.borrow_mut().insert(0);
    world.of(1, |around| {
        receiver.take_in(around, 0);
        let lent: HashSet<u64> = (1..5)
            .map(|_| receiver.lend(around, 5000).unwrap().0)
            .collect();
        assert_eq!(lent, places[1..].iter().copied().collect());
    });
}

#[test]
fn memory_of_the_dead_goes_back_to_the_system_whatever_size_is_asked_for() {
    let world = World::new();
    let (mut owner, mut next_owner) = (LoanBlocks::default(), LoanBlocks::default());
    let blocks = || rustix::fs::fstat(world.segment.fd()).unwrap().st_blocks;
    world.of(0, |around| {
        for _ in 0..8 {
            owner.lend(around, 1 << 20).unwrap();
        }
    });
    let full = blocks();
    world.gone.borrow_mut().insert(0);
    world.of(1, |around| next_owner.lend(around, 5000).unwrap());
    assert!(blocks() <= full / 2, "{} of {full}", blocks());
}

#[test]
fn a_block_has_so_many_readers_and_no_more() {
    let world = World::new();
    let mut owner = LoanBlocks::default();
    world.of(0, |around| {
        let place = owner.lend(around, 5000).unwrap().0;
        let names: Vec<u64> = (0..READERS)
            .map(|_| owner.share(around, place, 1).unwrap())
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), READERS);
        assert_eq!(owner.share(around, place, 1), None);
        owner.close(around, names[4]);
        assert_eq!(owner.share(around, place, 2), Some(names[4]));
    });
}

#[test]
fn memory_beyond_what_is_kept_goes_back_to_the_system() {
    let world = World::new();
    let mut loans = LoanBlocks::default();
    let blocks = || rustix::fs::fstat(world.segment.fd()).unwrap().st_blocks;
    world.of(0, |around| {
        let size = MAX_KEPT_BYTES / 4;
        let places: Vec<u64> = (0..8)
            .map(|_| loans.lend(around, size - LINE).unwrap().0)
            .collect();
        let full = blocks();
        places
            .iter()
            .for_each(|&place| loans.give_back(around, place));
        assert!(blocks() <= full * 5 / 8, "{} of {full}", blocks());
        loans.leave(around);
        assert!(blocks() <= full / 8, "{} of {full}", blocks());
        let used = world.segment.used();
        for _ in 0..8 {
            let (_, views) = loans.lend(around, size - LINE).unwrap();
            views.fill(&[7; 100]);
        }
        assert_eq!(world.segment.used(), used, "the same space");
    });
}

#[test]
fn scribbles_on_the_list_are_harmless() {
    let world = World::new();
    let mut loans = LoanBlocks::default();
    world.of(0, |around| {
        let place = loans.lend(around, 5000).unwrap().0;
        for nonsense in [place, 1, 64, u64::MAX, 1 << 40] {
            raw_tag(&world.segment, place)
                .unwrap()
                .before
                .scribble(nonsense);
            for _ in 0..3 {
                assert!(loans.lend(around, 100_000).is_ok());
            }
            world.blocks.scribble(nonsense);
            assert!(loans.lend(around, 200_000).is_ok());
        }
    });
}

/// The uses of blocks by tasks.
#[derive(Default)]
struct Uses {
    /// Lent blocks, with the task that has each.
    lent: Vec<(u32, u64)>,
    /// Names of shared blocks with the task that may read each.
    read: Vec<(u32, u64)>,
    /// Blocks in transit: source, destination, block.
    sent: Vec<(u32, u32, u64)>,
}

impl Uses {
    /// Does one of the things that tasks do with loans.
    fn act(
        &mut self,
        world: &World,
        around: &Around,
        loans: &mut LoanBlocks,
        act: u8,
        which: usize,
    ) {
        let task = around.me;
        let own: Vec<usize> = (0..self.lent.len())
            .filter(|&at| self.lent[at].0 == task)
            .collect();
        let one = own.get(which % own.len().max(1)).copied();
        match (act, one) {
            (0 | 1, _) => self.lend(around, loans, 5000 + which * 100),
            (2, Some(at)) => {
                let (_, place) = self.lent.remove(at);
                loans.give_back(around, place);
            }
            (3, Some(at)) => {
                let reader = (task + 1 + which as u32 % 3) % 4;
                let place = self.lent[at].1;
                if let Some(name) = loans.share(around, place, reader)
                    && !world.gone.borrow().contains(&reader)
                {
                    self.read.push((reader, name));
                }
            }
            (4, _) => {
                if let Some(at) = self.read.iter().position(|one| one.0 == task) {
                    let (_, name) = self.read.remove(at);
                    assert!(LoanBlocks::open(around, name, 100).is_ok());
                    loans.close(around, name);
                }
            }
            (5, _) if which < 2 => {
                // Leaves in good order, or dies.
                if which == 0 {
                    loans.leave(around);
                }
                world.gone.borrow_mut().insert(task);
                self.forget(task);
            }
            (6, Some(at)) => {
                let (to, place) = (which as u32 % 4, self.lent[at].1);
                if !world.gone.borrow().contains(&to) && loans.send(around, place, to) {
                    self.lent.remove(at);
                    self.sent.push((task, to, place));
                }
            }
            (7, _) => self.arrive(world, around, loans),
            _ => {}
        }
    }

    /// Lends a block to a task, and checks that no other task has or reads it.
    fn lend(&mut self, around: &Around, loans: &mut LoanBlocks, len: usize) {
        let place = loans.lend(around, len).unwrap().0;
        assert!(self.lent.iter().all(|one| one.1 != place), "lent twice");
        assert!(self.sent.iter().all(|one| one.2 != place), "under way");
        let mut names = self.read.iter().map(|one| one.1 & !(LINE as u64 - 1));
        assert!(names.all(|other| other != place), "somebody reads it");
        self.lent.push((around.me, place));
    }

    /// Removes all uses of a task that is gone.
    fn forget(&mut self, task: u32) {
        self.lent.retain(|one| one.0 != task);
        self.read.retain(|one| one.0 != task);
        self.sent.retain(|one| one.1 != task);
    }

    /// Lets a task receive a block that is in transit to it. Then the task takes in the blocks of all tasks that are
    /// gone and have no block in transit to it.
    fn arrive(&mut self, world: &World, around: &Around, loans: &mut LoanBlocks) {
        let task = around.me;
        if let Some(at) = self.sent.iter().position(|one| one.1 == task) {
            let (from, _, place) = self.sent.remove(at);
            assert!(LoanBlocks::arrive(around, place, from).is_ok());
            self.lent.push((task, place));
        }
        let gone: Vec<u32> = world.gone.borrow().iter().copied().collect();
        let is_done = |from: &u32| self.sent.iter().all(|one| (one.0, one.1) != (*from, task));
        for from in gone.into_iter().filter(is_done) {
            loans.take_in(around, from);
        }
    }
}

proptest::proptest! {
    /// Memory that a task is lent is never had or read by another task.
    #[test]
    fn no_memory_has_two_uses(acts in proptest::collection::vec((0u8..8, 0u32..4, 0usize..64), 1..200)) {
        let world = World::new();
        let mut tasks: Vec<LoanBlocks> = (0..4).map(|_| LoanBlocks::default()).collect();
        let mut uses = Uses::default();
        for (act, task, which) in acts {
            if world.gone.borrow().contains(&task) {
                continue;
            }
            let loans = &mut tasks[task as usize];
            world.of(task, |around| uses.act(&world, around, loans, act, which));
        }
    }
}
