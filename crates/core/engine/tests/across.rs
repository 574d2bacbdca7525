//! Small collectives across hosts, driven as a process drives them: hosts that have a collective buffer and one that
//! has none, members that die or leave at any moment.

mod support;

use proptest::prelude::*;
use regatta_engine::{
    Engine, Error, GroupId, Handle, Part, Peer, Presence, Reason, Reduction, Round, Settings,
};
use regatta_memory::combine::{Builtin, Element, Operator};
use regatta_memory::views::Views;
use regatta_wire::control::Why;
use support::net::{End, Net, Sizes};
use support::world::{memory, names, room};

const CONTEXT: u32 = 2;
/// Turns after which nobody will ever move.
const MAX_ROUNDS: usize = 20_000;

/// Where a member is in the present collective.
enum At {
    Begin,
    Room(Handle, Views),
    Messages(Handle),
    Contributions(Round),
    Exchange(Round, Handle),
}

struct Member {
    engine: Engine<End>,
    group: GroupId,
    rank: u32,
    round: u32,
    at: At,
    output: Views,
    ended: Option<Error>,
}

/// Barriers (no elements) and sums, in turn.
fn reduction(round: u32) -> Option<Reduction> {
    (!round.is_multiple_of(3)).then_some(Reduction {
        operator: Operator::Builtin(Builtin::Sum),
        element: Element::U32,
        count: (round % 3) as usize,
    })
}

impl Member {
    fn input(&self) -> Views {
        let count = reduction(self.round).map_or(0, |what| what.count);
        let own = (self.rank + 1) * (self.round + 1);
        memory(&own.to_ne_bytes().repeat(count))
    }

    /// One thing a process would do; an error ends this member's part.
    fn turn(&mut self, size: u32) -> Result<(), Error> {
        let what = reduction(self.round);
        let bytes = what.as_ref().map_or(0, Reduction::bytes);
        self.engine.progress();
        match std::mem::replace(&mut self.at, At::Begin) {
            At::Begin => self.begin(what, bytes)?,
            At::Room(handle, name) => match self.engine.finish(handle)? {
                Some((_, Some(error))) => return Err(error),
                Some((_, None)) => self.engine.enter_room(self.group, &name)?,
                None => self.at = At::Room(handle, name),
            },
            At::Messages(handle) => match self.engine.finish(handle)? {
                Some((_, Some(error))) => return Err(error),
                Some((_, None)) => self.complete(size),
                None => self.at = At::Messages(handle),
            },
            At::Contributions(round) => self.go_on(round, what, bytes, size)?,
            At::Exchange(mut round, handle) => match self.engine.finish(handle)? {
                Some((_, Some(error))) => {
                    self.engine.fail_crossing(&round, &error);
                    return Err(error);
                }
                Some((_, None)) => {
                    self.engine.end_crossing(&mut round, &self.output);
                    self.complete(size);
                }
                None => self.at = At::Exchange(round, handle),
            },
        }
        Ok(())
    }

    fn begin(&mut self, what: Option<Reduction>, bytes: usize) -> Result<(), Error> {
        self.output = room(bytes);
        let input = self.input();
        let crosses = self.engine.crosses(self.group, bytes)?;
        if crosses && let Some((handle, name)) = self.engine.start_room(self.group)? {
            self.at = At::Room(handle, name);
            return Ok(());
        }
        if crosses && let Some(round) = self.engine.cross(self.group, &input)? {
            self.at = At::Contributions(round);
            return Ok(());
        }
        let output = self.output.clone();
        self.at = At::Messages(match what {
            None => self.engine.start_barrier(self.group)?,
            Some(what) => self
                .engine
                .start_allreduce(self.group, input, output, what)?,
        });
        Ok(())
    }

    fn go_on(
        &mut self,
        mut round: Round,
        what: Option<Reduction>,
        bytes: usize,
        size: u32,
    ) -> Result<(), Error> {
        if !self.engine.round_complete(&mut round) {
            if let Err(error) = self.engine.check_round(&mut round) {
                self.engine.fail_crossing(&round, &error);
                return Err(error);
            }
            self.at = At::Contributions(round);
            return Ok(());
        }
        let part = Part {
            offset: 0,
            total: bytes,
        };
        let Some(members) = self.engine.leads(&round) else {
            self.engine.collect(&round, 0, part, &self.output);
            self.complete(size);
            return Ok(());
        };
        self.input().copy_to(&self.output);
        for other in 1..members {
            let theirs = room(bytes);
            self.engine.collect(&round, other, part, &theirs);
            if let Some(what) = what {
                let Reduction {
                    operator,
                    element,
                    count,
                } = what;
                operator.apply(element, &theirs, &self.output, count);
            }
        }
        let exchanged = self
            .engine
            .start_exchange(&round, &self.output, what.as_ref())?;
        self.at = At::Exchange(round, exchanged);
        Ok(())
    }

    fn complete(&mut self, size: u32) {
        let count = reduction(self.round).map_or(0, |what| what.count);
        let sum = (1..=size).sum::<u32>() * (self.round + 1);
        assert_eq!(self.output.to_vec(), sum.to_ne_bytes().repeat(count));
        self.round += 1;
    }
}

/// The member of this rank begins in a group of these peers.
fn member(net: &Net, peers: &[Peer], rank: usize) -> Member {
    let mut engine = Engine::new(net.end(peers[rank]), Settings::default());
    let group = engine
        .add_group(peers.to_vec(), CONTEXT, 0)
        .expect("a group");
    Member {
        engine,
        group,
        rank: rank as u32,
        round: 0,
        at: At::Begin,
        output: Views::none(),
        ended: None,
    }
}

/// Members take turns until each has had `rounds` collectives, or an error. `loss`: who is gone, how, after so many turns.
fn run(
    net: &Net,
    peers: &[Peer],
    rounds: u32,
    order: &[usize],
    loss: Option<(usize, Presence, usize)>,
) {
    let mut members: Vec<Member> = (0..peers.len())
        .map(|rank| member(net, peers, rank))
        .collect();
    let size = peers.len() as u32;
    let over = |member: &Member| member.round == rounds || member.ended.is_some();
    let mut lost = None;
    let turns = order.iter().copied().chain(0..MAX_ROUNDS * peers.len());
    for (turn, at) in turns.enumerate() {
        if let Some((victim, how, when)) = loss
            && lost.is_none()
            && turn >= when
            // One that leaves has nothing under way.
            && (how == Presence::Dead || matches!(members[victim].at, At::Begin))
        {
            lost = Some(victim);
            net.lose(peers[victim], how);
        }
        let at = at % peers.len();
        if lost == Some(at) {
            continue;
        }
        match over(&members[at]) {
            // The others may still need what it does.
            true => drop(members[at].engine.progress()),
            false => members[at].ended = members[at].turn(size).err(),
        }
        let left = members.iter().enumerate();
        if left
            .into_iter()
            .all(|(at, member)| lost == Some(at) || over(member))
        {
            break;
        }
    }
    for (at, member) in members.iter().enumerate() {
        assert!(lost == Some(at) || over(member), "rank {at} waits for ever");
        if let Some(error) = &member.ended {
            let lost = lost.unwrap_or_else(|| panic!("nobody is lost: {error:?}"));
            assert!(names(error, peers[lost]), "{error:?} does not name {lost}");
        }
    }
}

/// An error of each class; those that name a task name this one.
fn errors(named: Peer) -> Vec<Error> {
    let text = || "why".to_owned();
    let refused = Why::ALL.map(|why| Error::Refused(why, text()));
    let mut errors = vec![
        Error::Argument(text()),
        Error::Task(9),
        Error::Tag(-1),
        Error::Handle("request"),
        Error::Truncated {
            length: 8,
            capacity: 4,
        },
        Error::Dead(named),
        Error::Left(named),
        Error::Memory(text()),
        Error::Cycle(vec![named]),
        Error::Cancelled,
        Error::Corrupt {
            peer: named,
            what: "it is so",
        },
        Error::State(c"why"),
        Error::Launcher(text()),
        Error::Version(text()),
        Error::System(text()),
    ];
    errors.extend(refused);
    errors
}

/// The task that an error blames.
fn blamed(error: &Error) -> Option<Peer> {
    match *error {
        Error::Dead(peer)
        | Error::Left(peer)
        | Error::Corrupt { peer, .. }
        | Error::Member { peer, .. } => Some(peer),
        _ => None,
    }
}

#[test]
fn an_error_that_ends_a_collective_has_the_same_class_for_all_members() {
    let peers: Vec<Peer> = (0..6).collect();
    let all: Vec<Option<Reason>> = errors(0).iter().map(Reason::of).collect();
    for reason in Reason::all() {
        assert!(all.contains(&Some(reason)), "{reason:?} is not tried");
    }
    for culprit in 0..peers.len() {
        for error in errors((culprit as Peer + 1) % 6) {
            let net = Net::new(9, Sizes::EAGER_16_BYTES);
            net.spread(2);
            let mut members: Vec<Member> = (0..peers.len())
                .map(|rank| member(&net, &peers, rank))
                .collect();
            members.rotate_left(culprit);
            for _ in 0..MAX_ROUNDS {
                for (at, member) in members.iter_mut().enumerate() {
                    if member.ended.is_some() {
                        member.engine.progress();
                        continue;
                    }
                    member.ended = member.turn(6).err();
                    if let (0, At::Contributions(round)) = (at, &member.at) {
                        member.engine.fail_crossing(round, &error);
                        member.ended = Some(error.clone());
                    }
                }
                if members.iter().all(|member| member.ended.is_some()) {
                    break;
                }
            }
            for member in &members[1..] {
                let rank = member.rank;
                let got = member.ended.as_ref();
                let got = got.unwrap_or_else(|| panic!("rank {rank} waits for ever: {error:?}"));
                assert_eq!(Reason::of(got), Reason::of(&error), "rank {rank}: {got:?}");
                // Want of memory names its task in its sentence; one that is to blame itself blames nobody.
                let named = blamed(&error).unwrap_or(culprit as Peer);
                if !matches!(error, Error::Memory(_)) && named != rank {
                    assert_eq!(blamed(got), Some(named), "rank {rank}: {got:?}");
                }
            }
        }
    }
}

fn group() -> impl Strategy<Value = Vec<Peer>> {
    (2u32..=9).prop_flat_map(|tasks| {
        let all: Vec<Peer> = (0..tasks).collect();
        prop::sample::subsequence(all, 2..=tasks as usize).prop_shuffle()
    })
}

proptest! {
    #![proptest_config(support::cases(300))]

    #[test]
    fn small_collectives_across_hosts_are_complete_for_all(
        peers in group(), hosts in 2u32..4, refused in 0u32..6,
        order in prop::collection::vec(any::<usize>(), 0..400),
    ) {
        let net = Net::new(9, Sizes::EAGER_16_BYTES);
        net.spread(hosts);
        net.refuse_collective_buffers(refused);
        run(&net, &peers, 20, &order, None);
    }

    #[test]
    fn whoever_is_lost_is_named_and_nobody_waits(
        peers in group(), hosts in 2u32..4, refused in 0u32..6,
        order in prop::collection::vec(any::<usize>(), 0..400),
        victim in any::<usize>(), dies: bool, when in 0usize..600,
    ) {
        let net = Net::new(9, Sizes::EAGER_16_BYTES);
        net.spread(hosts);
        net.refuse_collective_buffers(refused);
        let how = if dies { Presence::Dead } else { Presence::Left };
        run(&net, &peers, 20, &order, Some((victim % peers.len(), how, when)));
    }
}
