//! Every collective as a schedule, compared with a serial reference: groups of one to nine tasks, also subsets in any order, several collectives at
//! once, and members that die or leave during them.

mod support;

use proptest::prelude::*;
use regatta_engine::{
    Awaits, Collective, Engine, Error, GroupId, Handle, Kind, Operation, Parts, Peer, Presence,
    Reduction, Settings,
};
use regatta_memory::combine::{Builtin, Element, Operator};
use regatta_memory::views::Views;
use support::net::{End, Net, Sizes};
use support::world::{content, memory, names, room};

const CONTEXT: u32 = 2;
/// Number of turns without any change after which nothing will ever change.
const MAX_ROUNDS: usize = 200_000;

/// A collective, as known to all its members.
#[derive(Clone, Debug)]
enum Case {
    Barrier,
    Broadcast {
        root: u32,
        len: usize,
    },
    Reduce {
        root: u32,
        count: usize,
        how: Builtin,
    },
    Allreduce {
        count: usize,
        how: Builtin,
        in_place: bool,
    },
    Scan {
        count: usize,
        how: Builtin,
    },
    Exscan {
        count: usize,
        how: Builtin,
        in_place: bool,
    },
    ReduceScatter {
        counts: Vec<usize>,
        how: Builtin,
        in_place: bool,
    },
    Gather {
        root: u32,
        lens: Vec<usize>,
        in_place: bool,
    },
    Scatter {
        root: u32,
        lens: Vec<usize>,
        in_place: bool,
    },
    Allgather {
        lens: Vec<usize>,
        in_place: bool,
    },
    Alltoall {
        lens: Vec<usize>,
    },
    /// The same with parts of equal length.
    Exchange {
        len: usize,
    },
}

/// One member's part in one collective.
struct Taking {
    handle: Handle,
    output: Views,
    expected: Vec<u8>,
}

struct Member {
    engine: Engine<End>,
    group: GroupId,
    rank: u32,
    started: usize,
    open: Vec<Taking>,
    /// How the collectives ended. `None` means without error.
    ended: Vec<Option<Error>>,
}

struct Crew {
    net: Net,
    members: Vec<Member>,
    operations: Vec<Case>,
    peers: Vec<Peer>,
    lost: Option<Peer>,
}

/// Returns parts of the given lengths with gaps between them, and the length of the whole.
fn parts(lens: &[usize]) -> (Parts, usize) {
    let (mut at, mut list) = (0, vec![]);
    for &len in lens {
        list.push((len, at));
        at += len + 3;
    }
    (Parts::Listed(list), at)
}

fn whole(lens: &[usize], piece: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let (parts, len) = parts(lens);
    let mut bytes = vec![0; len];
    for rank in 0..lens.len() {
        let (len, at) = parts.of(rank as u32);
        bytes[at..at + len].copy_from_slice(&piece(rank)[..len]);
    }
    bytes
}

/// Returns the contribution of member `rank` to collective `number`.
fn given(number: usize, rank: usize, len: usize) -> Vec<u8> {
    content(number * 16 + rank, len)
}

/// Returns the reduction of ranks `0..=last`, element by element, in rank order.
fn reduced(number: usize, last: usize, count: usize, how: Builtin) -> Vec<u8> {
    let numbers = |rank| -> Vec<u32> {
        let bytes = given(number, rank, count * 4);
        let words = bytes.chunks_exact(4);
        words
            .map(|w| u32::from_ne_bytes(w.try_into().expect("four")))
            .collect()
    };
    let mut all = numbers(0);
    for rank in 1..=last {
        for (a, b) in all.iter_mut().zip(numbers(rank)) {
            *a = match how {
                Builtin::Sum => a.wrapping_add(b),
                Builtin::Max => (*a).max(b),
                _ => *a ^ b,
            };
        }
    }
    all.into_iter().flat_map(u32::to_ne_bytes).collect()
}

impl Member {
    /// Starts collective `number`. Returns the error if it cannot be started any more.
    fn start(&mut self, number: usize, size: usize, what: &Case) -> Result<(), Error> {
        let (operation, result, expected) = self.part_in(number, size, what);
        let handle = self.engine.start(self.group, &operation)?;
        self.open.push(Taking {
            handle,
            output: result,
            expected,
        });
        Ok(())
    }

    /// Returns this member's part in collective `number`, the memory for its result, and the expected result.
    fn part_in(&self, number: usize, size: usize, what: &Case) -> (Operation, Views, Vec<u8>) {
        let rank = self.rank as usize;
        let reduction = |count, how| {
            Some(Reduction {
                operator: Operator::Builtin(how),
                element: Element::U32,
                count,
            })
        };
        let operands = |count| memory(&given(number, rank, count * 4));
        let nothing = || (Views::none(), vec![]);
        let (operation, (result, expected)) = match what {
            Case::Barrier => (Operation::of(Kind::Barrier), nothing()),
            &Case::Broadcast { root, len } => {
                let sent = given(number, root as usize, len);
                let buffer = room(len);
                if rank == root as usize {
                    buffer.fill(&sent);
                }
                let operation = Operation {
                    root,
                    output: Some(buffer.clone()),
                    ..Operation::of(Kind::Broadcast)
                };
                (operation, (buffer, sent))
            }
            &Case::Reduce { root, count, how } => {
                let output = room(count * 4);
                let operation = Operation {
                    root,
                    input: Some(operands(count)),
                    output: Some(output.clone()),
                    reduction: reduction(count, how),
                    ..Operation::of(Kind::Reduce)
                };
                let result = match rank == root as usize {
                    true => (output, reduced(number, size - 1, count, how)),
                    false => nothing(),
                };
                (operation, result)
            }
            &Case::Allreduce {
                count,
                how,
                in_place,
            } => {
                let (input, output) = (operands(count), room(count * 4));
                if in_place {
                    input.copy_to(&output);
                }
                let operation = Operation {
                    input: (!in_place).then_some(input),
                    output: Some(output.clone()),
                    reduction: reduction(count, how),
                    ..Operation::of(Kind::Allreduce)
                };
                (operation, (output, reduced(number, size - 1, count, how)))
            }
            &Case::Scan { count, how } => {
                let output = room(count * 4);
                let operation = Operation {
                    input: Some(operands(count)),
                    output: Some(output.clone()),
                    reduction: reduction(count, how),
                    ..Operation::of(Kind::Scan)
                };
                (operation, (output, reduced(number, rank, count, how)))
            }
            &Case::Exscan {
                count,
                how,
                in_place,
            } => {
                let (input, output) = (operands(count), room(count * 4));
                let output = if in_place { input.clone() } else { output };
                let expected = match rank {
                    0 => output.to_vec(),
                    rank => reduced(number, rank - 1, count, how),
                };
                let operation = Operation {
                    input: Some(input),
                    output: Some(output.clone()),
                    reduction: reduction(count, how),
                    ..Operation::of(Kind::Exscan)
                };
                (operation, (output, expected))
            }
            Case::ReduceScatter {
                counts,
                how,
                in_place,
            } => {
                let counts = &counts[..size];
                let before = |rank: usize| counts[..rank].iter().sum::<usize>();
                let list = (0..size).map(|rank| (counts[rank] * 4, before(rank) * 4));
                let (gives, all) = (Parts::Listed(list.collect()), before(size));
                let mut whole = reduced(number, size - 1, all, *how);
                let expected = whole
                    .drain(before(rank) * 4..before(rank + 1) * 4)
                    .collect();
                let input = operands(all);
                let output = match in_place {
                    true => input.part(0, counts[rank] * 4),
                    false => room(counts[rank] * 4),
                };
                let operation = Operation {
                    input: Some(input),
                    output: Some(output.clone()),
                    gives,
                    reduction: reduction(all, *how),
                    ..Operation::of(Kind::ReduceScatter)
                };
                (operation, (output, expected))
            }
            Case::Gather {
                root,
                lens,
                in_place,
            } => {
                let (gets, len) = parts(&lens[..size]);
                let is_root = rank == *root as usize;
                let output = room(if is_root { len } else { 0 });
                let own = given(number, rank, lens[rank]);
                let mut input = Some(memory(&own));
                if is_root && *in_place {
                    gets.cut(&output, *root).fill(&own);
                    input = None;
                }
                let all = whole(&lens[..size], |rank| given(number, rank, lens[rank]));
                let operation = Operation {
                    root: *root,
                    input,
                    output: Some(output.clone()),
                    gets,
                    ..Operation::of(Kind::Gather)
                };
                (operation, (output, if is_root { all } else { vec![] }))
            }
            Case::Scatter {
                root,
                lens,
                in_place,
            } => {
                let (gives, len) = parts(&lens[..size]);
                let is_root = rank == *root as usize;
                let input = room(if is_root { len } else { 0 });
                if is_root {
                    input.fill(&whole(&lens[..size], |to| given(number, to, lens[to])));
                }
                let output = room(lens[rank]);
                let stays = is_root && *in_place;
                let operation = Operation {
                    root: *root,
                    input: Some(input),
                    output: (!stays).then(|| output.clone()),
                    gives,
                    ..Operation::of(Kind::Scatter)
                };
                let result = match stays {
                    true => nothing(),
                    false => (output, given(number, rank, lens[rank])),
                };
                (operation, result)
            }
            Case::Allgather { lens, in_place } => {
                let (gets, len) = parts(&lens[..size]);
                let output = room(len);
                let own = given(number, rank, lens[rank]);
                if *in_place {
                    gets.cut(&output, rank as u32).fill(&own);
                }
                let all = whole(&lens[..size], |rank| given(number, rank, lens[rank]));
                let operation = Operation {
                    input: (!in_place).then(|| memory(&own)),
                    output: Some(output.clone()),
                    gets,
                    ..Operation::of(Kind::Allgather)
                };
                (operation, (output, all))
            }
            Case::Alltoall { lens } => {
                // Member i gives member j as many bytes as the sum of the lengths of both.
                let count = |i: usize, j: usize| (lens[i] + 2 * lens[j]) % 29;
                let gives: Vec<usize> = (0..size).map(|to| count(rank, to)).collect();
                let gets: Vec<usize> = (0..size).map(|from| count(from, rank)).collect();
                let piece = |from: usize, to: usize| given(number, from + 31 * to, count(from, to));
                let output = room(parts(&gets).1);
                let operation = Operation {
                    input: Some(memory(&whole(&gives, |to| piece(rank, to)))),
                    output: Some(output.clone()),
                    gives: parts(&gives).0,
                    gets: parts(&gets).0,
                    ..Operation::of(Kind::Alltoall)
                };
                (operation, (output, whole(&gets, |from| piece(from, rank))))
            }
            &Case::Exchange { len } => {
                let piece = |from: usize, to: usize| given(number, from + 31 * to, len);
                let all = |piece: &dyn Fn(usize) -> Vec<u8>| (0..size).flat_map(piece).collect();
                let input: Vec<u8> = all(&|to| piece(rank, to));
                let output = room(len * size);
                let operation = Operation {
                    input: Some(memory(&input)),
                    output: Some(output.clone()),
                    gives: Parts::Even(len),
                    gets: Parts::Even(len),
                    ..Operation::of(Kind::Alltoall)
                };
                (operation, (output, all(&|from| piece(from, rank))))
            }
        };
        (operation, result, expected)
    }

    /// Checks which collectives are complete, and their results.
    fn look(&mut self) {
        let mut at = 0;
        while at < self.open.len() {
            let outcome = self
                .engine
                .finish(self.open[at].handle)
                .expect("a live handle");
            let Some((_, error)) = outcome else {
                at += 1;
                continue;
            };
            let taking = self.open.swap_remove(at);
            if error.is_none() {
                assert_eq!(
                    taking.output.to_vec(),
                    taking.expected,
                    "rank {}",
                    self.rank
                );
            }
            self.ended.push(error);
        }
    }
}

impl Crew {
    fn new(tasks: u32, peers: &[Peer], sizes: Sizes, operations: &[Case]) -> Crew {
        let net = Net::new(tasks, sizes);
        let member = |(rank, &peer): (usize, &Peer)| {
            let mut engine = Engine::new(net.end(peer), Settings::default());
            let group = engine.add_group(peers.to_vec(), CONTEXT).expect("a group");
            Member {
                engine,
                group,
                rank: rank as u32,
                started: 0,
                open: vec![],
                ended: vec![],
            }
        };
        Crew {
            members: peers.iter().enumerate().map(member).collect(),
            operations: operations.to_vec(),
            peers: peers.to_vec(),
            net,
            lost: None,
        }
    }

    /// Lets a member start its next collective (if `starts`, and there is one) or make progress.
    fn turn(&mut self, at: usize, starts: bool) -> bool {
        if self.lost == Some(self.peers[at]) {
            return false;
        }
        let size = self.members.len();
        let member = &mut self.members[at];
        let moved = if starts && member.started < self.operations.len() {
            let number = member.started;
            member.started += 1;
            if let Err(error) = member.start(number, size, &self.operations[number]) {
                member.ended.push(Some(error));
            }
            true
        } else {
            member.engine.progress()
        };
        member.look();
        moved
    }

    fn lose(&mut self, at: usize, how: Presence) {
        self.lost = Some(self.peers[at]);
        self.net.lose(self.peers[at], how);
    }

    /// Runs until all members have ended all collectives.
    fn finish(&mut self) {
        let mut still = 0;
        while still < 3 {
            assert!(still < MAX_ROUNDS);
            let mut moved = false;
            for at in 0..self.members.len() {
                moved |= self.turn(at, true);
            }
            still = if moved { 0 } else { still + 1 };
        }
        for (at, member) in self.members.iter().enumerate() {
            if self.lost == Some(self.peers[at]) {
                continue;
            }
            let (ended, all) = (member.ended.len(), self.operations.len());
            assert_eq!(ended, all, "rank {at} waits for ever");
            for error in member.ended.iter().flatten() {
                let lost = self
                    .lost
                    .unwrap_or_else(|| panic!("nobody is lost: {error:?}"));
                assert!(names(error, lost), "{error:?}");
            }
            let idle = self.lost.is_some() || member.engine.is_idle();
            assert!(idle, "rank {at} is not idle");
        }
    }

    fn all_well(&self) -> bool {
        self.members
            .iter()
            .all(|m| m.ended.iter().all(Option::is_none))
    }
}

fn operation(most: u32) -> impl Strategy<Value = Case> {
    let how = || prop::sample::select(vec![Builtin::Sum, Builtin::Max, Builtin::BitXor]);
    let len = || prop::sample::select(vec![0usize, 1, 15, 16, 17, 24, 40]);
    let count = || 0usize..9;
    let lens = move || prop::collection::vec(len(), most as usize);
    let root = 0..most;
    prop_oneof![
        Just(Case::Barrier),
        (root.clone(), len()).prop_map(|(root, len)| Case::Broadcast { root, len }),
        (root.clone(), count(), how()).prop_map(|(root, count, how)| Case::Reduce {
            root,
            count,
            how
        }),
        (count(), how(), any::<bool>()).prop_map(|(count, how, in_place)| Case::Allreduce {
            count,
            how,
            in_place,
        }),
        (count(), how()).prop_map(|(count, how)| Case::Scan { count, how }),
        (count(), how(), any::<bool>()).prop_map(|(count, how, in_place)| Case::Exscan {
            count,
            how,
            in_place,
        }),
        (
            prop::collection::vec(count(), most as usize),
            how(),
            any::<bool>()
        )
            .prop_map(|(counts, how, in_place)| Case::ReduceScatter {
                counts,
                how,
                in_place,
            }),
        (root.clone(), lens(), any::<bool>()).prop_map(|(root, lens, in_place)| {
            Case::Gather {
                root,
                lens,
                in_place,
            }
        }),
        (root, lens(), any::<bool>()).prop_map(|(root, lens, in_place)| Case::Scatter {
            root,
            lens,
            in_place
        }),
        (lens(), any::<bool>()).prop_map(|(lens, in_place)| Case::Allgather { lens, in_place }),
        lens().prop_map(|lens| Case::Alltoall { lens }),
        len().prop_map(|len| Case::Exchange { len }),
    ]
}

/// Generates the number of tasks, the members of the group in rank order, and some collectives.
fn case() -> impl Strategy<Value = (u32, Vec<Peer>, Vec<Case>)> {
    (1u32..=9).prop_flat_map(|tasks| {
        let all: Vec<Peer> = (0..tasks).collect();
        let members = prop::sample::subsequence(all, 1..=tasks as usize).prop_shuffle();
        members.prop_flat_map(move |members| {
            let operations = prop::collection::vec(operation(members.len() as u32), 1..4);
            (Just(tasks), Just(members), operations)
        })
    })
}

fn turns() -> impl Strategy<Value = Vec<(usize, bool)>> {
    prop::collection::vec((any::<usize>(), prop::bool::weighted(0.3)), 0..120)
}

proptest! {
    #![proptest_config(support::cases(600))]

    #[test]
    fn all_collectives_bring_what_a_serial_program_would(
        (tasks, peers, operations) in case(), hosts in 1u32..5, turns in turns(),
    ) {
        let mut crew = Crew::new(tasks, &peers, Sizes::EAGER_16_BYTES, &operations);
        crew.net.spread(hosts);
        for (at, starts) in turns {
            crew.turn(at % peers.len(), starts);
        }
        crew.finish();
        prop_assert!(crew.all_well());
        prop_assert_eq!(crew.net.open_streams(), 0);
    }

    #[test]
    fn a_death_ends_every_collective_that_needs_it(
        (tasks, peers, operations) in case(), hosts in 1u32..5, turns in turns(),
        victim in any::<usize>(), when in 0usize..120,
    ) {
        let mut crew = Crew::new(tasks, &peers, Sizes::EAGER_16_BYTES, &operations);
        crew.net.spread(hosts);
        for (n, (at, starts)) in turns.into_iter().enumerate() {
            if n == when {
                crew.lose(victim % peers.len(), Presence::Dead);
            }
            crew.turn(at % peers.len(), starts);
        }
        if crew.lost.is_none() {
            crew.lose(victim % peers.len(), Presence::Dead);
        }
        crew.finish();
    }

    #[test]
    fn callers_that_wait_get_the_same(
        (_, peers, operations) in case(), order in prop::collection::vec(any::<usize>(), 0..200),
    ) {
        wait_in_turn(&peers, &operations, &order);
    }

    #[test]
    fn a_member_that_leaves_too_early_leaves_nobody_waiting(
        (tasks, peers, operations) in case(), hosts in 1u32..5, turns in turns(),
        victim in any::<usize>(), when in 0usize..120,
    ) {
        let mut crew = Crew::new(tasks, &peers, Sizes::EAGER_16_BYTES, &operations);
        crew.net.spread(hosts);
        for (n, (at, starts)) in turns.into_iter().enumerate() {
            if n == when {
                crew.lose(victim % peers.len(), Presence::Left);
            }
            crew.turn(at % peers.len(), starts);
        }
        if crew.lost.is_none() {
            crew.lose(victim % peers.len(), Presence::Left);
        }
        crew.finish();
    }

    #[test]
    fn a_member_may_leave_once_its_own_part_is_over(
        (tasks, peers, operations) in case(), hosts in 1u32..5, turns in turns(), first in any::<usize>(),
    ) {
        let mut crew = Crew::new(tasks, &peers, Sizes::EAGER_16_BYTES, &operations);
        crew.net.spread(hosts);
        // One member is in a hurry: it leaves when all of its own collectives are complete, whatever the others do.
        let first = first % peers.len();
        for (at, starts) in turns {
            crew.turn(at % peers.len(), starts);
            crew.turn(first, true);
            let member = &crew.members[first];
            if crew.lost.is_none() && member.ended.len() == operations.len() {
                crew.lose(first, Presence::Left);
            }
        }
        crew.finish();
        prop_assert!(crew.all_well(), "its part was over, so nobody needed it any more");
    }
}

/// A member whose calls wait, and its current collective.
struct Caller {
    member: Member,
    open: Option<(Collective, Views, Vec<u8>)>,
}

impl Caller {
    /// Begins the member's next collective, or drives the current one.
    fn turn(&mut self, size: usize, cases: &[Case]) {
        let Caller { member, open } = self;
        member.engine.progress();
        if open.is_none() && member.started < cases.len() {
            let number = member.started;
            member.started += 1;
            let (operation, result, expected) = member.part_in(number, size, &cases[number]);
            let begun = member.engine.begin(member.group, operation);
            *open = Some((begun.expect("begun"), result, expected));
        }
        let Some((collective, result, expected)) = open else {
            return;
        };
        let awaits = member
            .engine
            .poll(collective, &room(Collective::WORK_BYTES));
        if awaits.expect("nobody is lost") == Awaits::Nothing {
            assert_eq!(&result.to_vec(), expected, "rank {}", member.rank);
            *open = None;
        }
    }
}

/// Members that can share a collective buffer call these, one after the other, and poll in this order.
fn wait_in_turn(peers: &[Peer], cases: &[Case], order: &[usize]) {
    let mut crew = Crew::new(9, peers, Sizes::EAGER_16_BYTES, cases);
    let size = peers.len();
    let callers = crew.members.drain(..);
    let callers = callers.map(|member| Caller { member, open: None });
    let mut callers: Vec<Caller> = callers.collect();
    let turns = order.iter().copied().chain(0..MAX_ROUNDS);
    for at in turns {
        callers[at % size].turn(size, cases);
        let is_over = |it: &Caller| it.open.is_none() && it.member.started == cases.len();
        if callers.iter().all(is_over) {
            return;
        }
    }
    panic!("somebody waits for ever");
}

/// Exchanges that take several rounds: members that are ahead must not overwrite contributions that others still read.
#[test]
fn exchanges_of_several_rounds() {
    for size in [2u32, 3, 5, 9] {
        let peers: Vec<Peer> = (0..size).collect();
        let lens: Vec<usize> = (0..size as usize).map(|rank| 190 * rank % 701).collect();
        let gathering = |in_place| Case::Allgather {
            lens: lens.clone(),
            in_place,
        };
        let exchange = |len| Case::Exchange { len };
        let cases = [exchange(0), exchange(1), exchange(31), exchange(65)]
            .into_iter()
            .chain([gathering(false), gathering(true), Case::Barrier]);
        let cases: Vec<Case> = cases.collect();
        let many = [&cases[..], &cases[..], &cases[..]].concat();
        // Each in turn, or each as far as possible.
        wait_in_turn(&peers, &many, &[]);
        let hurrying: Vec<usize> = (0..2000).map(|turn| turn / 100).collect();
        wait_in_turn(&peers, &many, &hurrying);
    }
}

/// More collectives are in progress than progress runs at a time: those that wait complete in the end, or fail when a member dies.
#[test]
fn many_that_are_under_way_at_once() {
    let how = Builtin::Sum;
    let case = |number: usize| match number % 4 {
        0 => Case::Barrier,
        1 => Case::Scan { count: 3, how },
        2 => Case::Broadcast { root: 2, len: 40 },
        _ => Case::Allreduce {
            count: 3,
            how,
            in_place: false,
        },
    };
    let operations: Vec<Case> = (0..200).map(case).collect();
    for (hosts, dies) in [(1, false), (2, false), (1, true), (2, true)] {
        let mut crew = Crew::new(4, &[3, 0, 2], Sizes::EAGER_16_BYTES, &operations);
        crew.net.spread(hosts);
        for at in 0..3 {
            for _ in 0..operations.len() {
                crew.turn(at, true);
            }
        }
        if dies {
            crew.lose(1, Presence::Dead);
        }
        crew.finish();
        assert!(dies || crew.all_well());
    }
}

/// The algorithms for large messages: segments down a tree, a ring of partial sums, shared work across hosts.
#[test]
fn large_broadcasts_and_sums() {
    let sizes = Sizes {
        eager: 4096,
        ring: 4,
        chunk: 50_000,
        stream: 130_000,
        streams: 2,
    };
    for (size, hosts) in [2u32, 3, 5, 8, 9]
        .into_iter()
        .flat_map(|size| [1, 2, 3].map(|hosts| (size, hosts)))
    {
        let how = Builtin::Sum;
        let sum = |count, in_place| Case::Allreduce {
            count,
            how,
            in_place,
        };
        let operations = [
            Case::Broadcast {
                root: 1,
                len: 300_001,
            },
            // One count that is cut unevenly, and one for which one half is a segment longer than the other.
            sum(70_003, false),
            sum(70_003, true),
            sum(32_769, false),
            sum(16 << 10, true),
            sum(16 << 10, false),
            Case::Broadcast {
                root: 0,
                len: 128 << 10,
            },
            Case::Reduce {
                root: 1,
                count: 70_000,
                how,
            },
        ];
        let peers: Vec<Peer> = (0..size).collect();
        let mut crew = Crew::new(size, &peers, sizes, &operations);
        crew.net.spread(hosts);
        crew.finish();
        assert!(crew.all_well());
    }
}

/// Long parts, and broadcasts in several pieces, across hosts with equal and with different numbers of members.
#[test]
fn long_parts_across_hosts() {
    let sizes = Sizes {
        eager: 4096,
        ring: 4,
        chunk: 50_000,
        stream: 130_000,
        streams: 2,
    };
    for (size, hosts) in [
        (4, 2),
        (6, 2),
        (6, 3),
        (5, 2),
        (7, 3),
        (3, 3),
        (9, 1),
        (10, 2),
    ] {
        let lens: Vec<usize> = (0..size)
            .map(|rank| 70_000 + 1000 * rank as usize)
            .collect();
        let gathering = |in_place| Case::Allgather {
            lens: lens.clone(),
            in_place,
        };
        let broadcast = |root, len| Case::Broadcast { root, len };
        let operations = [
            gathering(false),
            gathering(true),
            broadcast(1, 1 << 20),
            broadcast(size - 1, 4_000_001),
            Case::Exchange { len: 40_000 },
            gathering(false),
        ];
        let peers: Vec<Peer> = (0..size).rev().collect();
        let mut crew = Crew::new(size, &peers, sizes, &operations);
        crew.net.spread(hosts);
        crew.finish();
        assert!(crew.all_well());
    }
}
