//! Random orders of answers, with failures at every step.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// What goes wrong in a turn, if anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Luck {
    Good,
    Silence,
    Closed,
    Nonsense,
    Refused,
    Failed,
    Interrupted,
}

/// Hosts that answer in a random order, and their outcomes.
struct World {
    arrivals: Arrivals,
    now: Duration,
    together: bool,
    /// The number of steps that hosts which begin together have been asked to take.
    steps: u32,
    open: BTreeSet<u32>,
    /// Answers in flight.
    coming: Vec<(u32, Input)>,
    joined: BTreeMap<u32, u32>,
    lost: BTreeMap<u32, Departure>,
    /// Hosts to which no channel can be opened.
    shut: BTreeSet<u32>,
}

impl World {
    fn new(admission: Admission, count: u32, shut: BTreeSet<u32>) -> Self {
        let mut arrivals = arrivals();
        for number in 0..count {
            arrivals.expect(START, expected(&number.to_string(), admission));
        }
        Self {
            arrivals,
            now: START,
            together: admission.together,
            steps: 0,
            open: BTreeSet::new(),
            coming: Vec::new(),
            joined: BTreeMap::new(),
            lost: BTreeMap::new(),
            shut,
        }
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.arrivals.poll() {
            match effect {
                Effect::Open(id) => {
                    assert!(
                        !self.lost.contains_key(&id) && !self.open.contains(&id),
                        "{id}"
                    );
                    if self.shut.contains(&id) {
                        self.arrivals
                            .handle(self.now, id, Input::Failed("no".to_owned()));
                        continue;
                    }
                    self.open.insert(id);
                    self.arrivals.handle(self.now, id, Input::Opened);
                    let host = greeting(&id.to_string(), &[id as u8]);
                    let send = Input::Line("regatta-send Linux here".to_owned());
                    self.answer(id, [send, ready(), host]);
                }
                Effect::SendProgram(id) => {
                    assert!(self.open.contains(&id));
                    self.coming.insert(0, (id, Input::ProgramSent(1)));
                }
                Effect::Ask(id, question) => {
                    assert!(self.open.contains(&id));
                    self.answer(id, [Input::Answer(answer_to(question))]);
                }
                Effect::Close(id) => assert!(self.open.remove(&id), "{id} has no channel"),
                Effect::Note(_) => {}
                Effect::Joined(id, number) => {
                    assert!(self.open.contains(&id) && !self.lost.contains_key(&id));
                    assert_eq!(self.joined.insert(number, id), None);
                }
                Effect::Lost(id, why) => {
                    assert_eq!(self.lost.insert(id, why), None);
                    assert!(!self.joined.values().any(|joined| *joined == id));
                }
            }
        }
        let goes_on = self.together && self.steps < 2 && self.arrivals.failure().is_none();
        if goes_on && self.arrivals.is_settled() {
            self.steps += 1;
            match self.steps {
                1 => self.arrivals.look(self.now),
                _ => self.arrivals.prepare(self.now, &[0, 1, 1, 3]),
            }
            self.carry_out();
        }
    }

    fn answer<const N: usize>(&mut self, id: u32, inputs: [Input; N]) {
        self.coming.extend(inputs.map(|input| (id, input)));
    }

    /// Delivers the next answer of one host, chosen by `pick`, or lets it fail.
    fn turn(&mut self, pick: usize, luck: Luck) {
        self.now += Duration::from_millis(10);
        self.arrivals.tick(self.now);
        self.carry_out();
        let Some(&(id, _)) = self.coming.get(pick % self.coming.len().max(1)) else {
            return;
        };
        let first = self.coming.iter().position(|(host, _)| *host == id);
        let (id, input) = self.coming.remove(first.expect("it is there"));
        let input = match luck {
            Luck::Good => input,
            Luck::Silence | Luck::Interrupted => Input::Heard,
            Luck::Closed => Input::Closed("it ended".to_owned()),
            Luck::Nonsense => Input::Nonsense,
            Luck::Refused => Input::Refused(9, "no".to_owned()),
            Luck::Failed => Input::Failed("no".to_owned()),
        };
        if luck != Luck::Good {
            self.coming.retain(|(host, _)| *host != id);
        }
        if luck == Luck::Interrupted {
            self.arrivals.interrupt(130);
        }
        self.arrivals.handle(self.now, id, input);
        self.carry_out();
    }

    /// Delivers everything in flight, and waits for silent hosts until they are given up.
    fn finish(&mut self) {
        for _ in 0..3 {
            while !self.coming.is_empty() {
                self.turn(0, Luck::Good);
            }
            self.now += ARRIVAL_TIMEOUT;
            self.arrivals.tick(self.now);
            self.carry_out();
        }
        assert_eq!(self.arrivals.deadline(), None);
    }
}

fn answer_to(question: Question) -> Answer {
    let sight = |target: Target| Sight {
        host: target.host,
        address: target.candidates[0],
        token: [target.host as u8; 16],
    };
    let listens = |rank| (rank, (ip(1), 9).into());
    match question {
        Question::Probe(targets) => Answer::Probed(targets.into_iter().map(sight).collect()),
        Question::Prepare { ranks, .. } => {
            Answer::Prepared(ranks.into_iter().map(listens).collect())
        }
        Question::Words(words) => Answer::Words(words),
    }
}

fn luck() -> impl Strategy<Value = Luck> {
    prop_oneof![
        12 => Just(Luck::Good),
        1 => Just(Luck::Silence),
        1 => Just(Luck::Closed),
        1 => Just(Luck::Nonsense),
        1 => Just(Luck::Refused),
        1 => Just(Luck::Failed),
        1 => Just(Luck::Interrupted),
    ]
}

fn admission() -> impl Strategy<Value = Admission> {
    prop_oneof![
        Just(Admission::begin(ARRIVAL_TIMEOUT)),
        Just(Admission::survey(ARRIVAL_TIMEOUT)),
        // Only the address of the first host, so other hosts are refused late.
        Just(Admission::told(ARRIVAL_TIMEOUT, ip(0))),
        Just(Admission::requested(ARRIVAL_TIMEOUT, false)),
    ]
}

proptest! {
    #[test]
    fn every_host_joins_or_is_lost_with_one_cause(
        admission in admission(),
        count in 1_u32..6,
        shut in prop::collection::btree_set(0_u32..60, 0..4),
        turns in prop::collection::vec((0_usize..64, luck()), 0..80),
    ) {
        let mut world = World::new(admission, count, shut);
        for (pick, luck) in turns {
            world.turn(pick, luck);
        }
        world.finish();
        let lost: Vec<&Departure> = world.lost.values().collect();
        let open: BTreeSet<u32> = (0..count).filter(|id| !world.lost.contains_key(id)).collect();
        prop_assert_eq!(&world.open, &open);
        if !admission.together {
            let joined: BTreeSet<u32> = world.joined.values().copied().collect();
            prop_assert_eq!(joined, open);
        } else if !admission.hears_all {
            // All hosts join or none, with one cause that is not a consequence of another's.
            let first = lost.iter().filter(|why| **why != &Departure::Abandoned && **why != &Departure::Interrupted(130));
            prop_assert!(lost.is_empty() || lost.len() == count as usize, "{:?}", lost);
            prop_assert!(first.count() <= 1);
            prop_assert_eq!(lost.is_empty(), world.steps == 2 && world.arrivals.failure().is_none());
        } else {
            prop_assert!(lost.iter().all(|why| **why != Departure::Abandoned));
        }
    }
}
