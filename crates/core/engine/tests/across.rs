//! Small collectives on one host and across hosts, driven as a process drives them: with hosts that get a collective buffer and one that gets none,
//! and members that die or leave at any moment, including during the first collective.

mod support;

use proptest::prelude::*;
use regatta_engine::{
    Awaits, Collective, Engine, Error, GroupId, Kind, Operation, Peer, Presence, Reason, Reduction,
    Select, Settings, TagSelect,
};
use regatta_memory::combine::{Builtin, Element, Operator};
use regatta_memory::views::Views;
use regatta_wire::control::RequestError;
use support::net::{End, Net, Sizes};
use support::world::{memory, names, room};

const CONTEXT: u32 = 2;
/// Number of turns after which nothing will ever change.
const MAX_ROUNDS: usize = 20_000;

struct Member {
    engine: Engine<End>,
    group: GroupId,
    rank: u32,
    round: u32,
    /// The current collective.
    open: Option<Collective>,
    output: Views,
    ended: Option<Error>,
}

/// Barriers (no elements) and sums, alternately.
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

    /// Does one step as a process would. An error ends this member's part.
    fn turn(&mut self, size: u32) -> Result<(), Error> {
        self.engine.progress();
        let mut collective = match self.open.take() {
            Some(collective) => collective,
            None => self.begin()?,
        };
        let advanced = self.advance(&mut collective);
        if let Err(error) = &advanced {
            self.engine.give_up(&collective, error);
        }
        match advanced? {
            true => self.complete(size),
            false => self.open = Some(collective),
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<Collective, Error> {
        let reduction = reduction(self.round);
        self.output = room(reduction.as_ref().map_or(0, Reduction::bytes));
        let kind = match reduction {
            None => Kind::Barrier,
            Some(_) => Kind::Allreduce,
        };
        let operation = Operation {
            input: Some(self.input()),
            output: Some(self.output.clone()),
            reduction,
            ..Operation::of(kind)
        };
        self.engine.begin(self.group, operation)
    }

    /// Returns whether the member is done.
    fn advance(&mut self, collective: &mut Collective) -> Result<bool, Error> {
        let awaits = self
            .engine
            .poll(collective, &room(Collective::WORK_BYTES))?;
        if let Some(round) = collective.round() {
            self.engine.check_round(round)?;
        }
        Ok(awaits == Awaits::Nothing)
    }

    fn complete(&mut self, size: u32) {
        let count = reduction(self.round).map_or(0, |what| what.count);
        let sum = (1..=size).sum::<u32>() * (self.round + 1);
        assert_eq!(self.output.to_vec(), sum.to_ne_bytes().repeat(count));
        self.round += 1;
    }
}

/// Creates the member of this rank in a group of these peers.
fn member(net: &Net, peers: &[Peer], rank: usize) -> Member {
    let mut engine = Engine::new(net.end(peers[rank]), Settings::default());
    let group = engine.add_group(peers.to_vec(), CONTEXT).expect("a group");
    Member {
        engine,
        group,
        rank: rank as u32,
        round: 0,
        open: None,
        output: Views::none(),
        ended: None,
    }
}

/// Lets members take turns until each has had `rounds` collectives, or an error. `loss` contains the lost task, the kind of loss, and the number of
/// turns before it.
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
            // A task that leaves has no operation in progress.
            && (how == Presence::Dead || members[victim].open.is_none())
        {
            lost = Some(victim);
            net.lose(peers[victim], how);
        }
        let at = at % peers.len();
        if lost == Some(at) {
            continue;
        }
        match over(&members[at]) {
            // The others may still need its messages.
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

/// Returns an error of each class. Those that name a task name this one.
fn errors(named: Peer) -> Vec<Error> {
    let text = || "why".to_owned();
    let refused = RequestError::ALL.map(|why| Error::Refused(why, text()));
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

/// Returns the task that an error blames.
fn blamed(error: &Error) -> Option<Peer> {
    match *error {
        Error::Dead(peer)
        | Error::Left(peer)
        | Error::Corrupt { peer, .. }
        | Error::Member { peer, .. } => Some(peer),
        _ => None,
    }
}

/// Checks that if one member gives its first collective up with each of these errors, as soon as `is_time` returns true, all other members get an
/// error of the same class.
/// same class.
fn give_up_for_all_errors(hosts: u32, culprit: usize, is_time: fn(&mut Collective) -> bool) {
    let peers: Vec<Peer> = (0..6).collect();
    for error in errors((culprit as Peer + 1) % 6) {
        let net = Net::new(9, Sizes::EAGER_16_BYTES);
        net.spread(hosts);
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
                if at == 0
                    && let Some(open) = &mut member.open
                    && is_time(open)
                {
                    member.engine.give_up(open, &error);
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
            // A lack of memory names its task in the sentence; an error that is this task's own fault names none.
            let named = blamed(&error).unwrap_or(culprit as Peer);
            if !matches!(error, Error::Memory(_)) && named != rank {
                assert_eq!(blamed(got), Some(named), "rank {rank}: {got:?}");
            }
        }
    }
}

#[test]
fn an_error_that_ends_a_collective_has_the_same_class_for_all_members() {
    let all: Vec<Option<Reason>> = errors(0).iter().map(Reason::of).collect();
    for reason in Reason::all() {
        assert!(all.contains(&Some(reason)), "{reason:?} is not tried");
    }
    for culprit in 0..6 {
        give_up_for_all_errors(2, culprit, |open| open.crosses() && open.round().is_some());
    }
}

/// All but the first member wait for the name of the collective buffer when they begin. Those that have it wait for the culprit in a round.
#[test]
fn so_it_has_if_a_member_fails_to_get_the_collective_buffer() {
    for culprit in 1..6 {
        give_up_for_all_errors(1, culprit, |open| open.round().is_none());
    }
}

/// A member leaves before the first collective. The others learn of that from each other or by themselves.
#[test]
fn nobody_waits_for_one_that_has_left_before_the_first_collective() {
    for size in 2..8 {
        let peers: Vec<Peer> = (0..size).collect();
        for victim in 0..peers.len() {
            for first in 0..peers.len() {
                let net = Net::new(9, Sizes::EAGER_16_BYTES);
                run(
                    &net,
                    &peers,
                    20,
                    &[first],
                    Some((victim, Presence::Left, 0)),
                );
            }
        }
    }
}

/// Returns how many collective buffers a group of two has allocated, and how often it was refused one, after its members have called these.
fn buffers_of_pair(cases: &[Kind], refuses: bool) -> (usize, usize) {
    let net = Net::new(2, Sizes::EAGER_16_BYTES);
    if refuses {
        net.refuse_collective_buffers(0);
    }
    call_all(&mut [0, 1].map(|rank| member(&net, &[0, 1], rank)), cases);
    net.collective_buffers()
}

/// Lets the members of a pair call collectives of these kinds.
fn call_all(members: &mut [Member; 2], cases: &[Kind]) {
    for &kind in cases {
        let mut begun = members.each_mut().map(|member| {
            let operation = Operation {
                output: Some(room(4)),
                ..Operation::of(kind)
            };
            let begun = member.engine.begin(member.group, operation);
            (begun.expect("begun"), member)
        });
        let mut over = [false; 2];
        for at in (0..MAX_ROUNDS).map(|turn| turn % 2) {
            let (collective, member) = &mut begun[at];
            member.engine.progress();
            over[at] = over[at] || member.advance(collective).expect("nobody is lost");
        }
        assert_eq!(over, [true; 2], "{kind:?}");
    }
}

#[test]
fn a_task_that_leaves_the_job_leaves_the_buffers_of_its_groups() {
    let net = Net::new(2, Sizes::EAGER_16_BYTES);
    let mut members = [0, 1].map(|rank| member(&net, &[0, 1], rank));
    call_all(&mut members, &[Kind::Barrier]);
    let [first, second] = &mut members;
    first.engine.leave();
    net.lose(0, Presence::Left);
    assert_eq!(
        net.lost_collective_buffers(),
        1,
        "one member still reads it"
    );
    second.engine.free_group(second.group).expect("a group");
    assert_eq!(net.lost_collective_buffers(), 0);
}

#[test]
fn a_group_takes_memory_when_a_collective_first_needs_it() {
    use Kind::{Barrier, Broadcast};
    let asks_for = |cases: &[Kind]| buffers_of_pair(cases, false);
    assert_eq!(
        asks_for(&[Broadcast, Broadcast]),
        (0, 0),
        "of two it is a message"
    );
    assert_eq!(asks_for(&[Broadcast, Barrier, Barrier]), (1, 0));
    assert_eq!(
        buffers_of_pair(&[Barrier, Barrier], true),
        (0, 1),
        "it asks once"
    );
}

/// Lets members of a new group take turns in its first collectives until `end` ends these after `when` turns, and free the group. `end` returns the
/// tasks that it has lost.
fn end_first_collective(
    net: &Net,
    peers: &[Peer],
    order: &[usize],
    when: usize,
    end: impl FnOnce(&mut [Member]) -> Option<usize>,
) {
    let size = peers.len();
    let mut members: Vec<Member> = (0..size).map(|rank| member(net, peers, rank)).collect();
    let (mut end, mut lost) = (Some(end), None);
    let turns = order.iter().copied().chain(0..MAX_ROUNDS * size);
    for (turn, at) in turns.enumerate() {
        if turn >= when
            && let Some(end) = end.take()
        {
            lost = end(&mut members);
        }
        let at = at % size;
        let member = &mut members[at];
        if lost == Some(at) {
            continue;
        }
        if member.ended.is_some() {
            member.engine.progress();
            continue;
        }
        member.ended = member.turn(size as u32).err();
        if member.ended.is_some() {
            let freed = member.engine.free_group(member.group);
            freed.expect("the group is there");
        }
        let mut members = members.iter().enumerate();
        if members.all(|(at, member)| lost == Some(at) || member.ended.is_some()) {
            return;
        }
    }
    panic!("some wait for ever");
}

/// Lets the first member of a new group do its part of a reduction to the last one, and free the group. Then the last member revokes the group, or
/// is lost in this way: before its part or, if `later`, after those of the members between them. Returns the number of buffers that nobody can use any more.
fn free_before_it_is_broken(
    net: &Net,
    peers: &[Peer],
    ends: Option<Presence>,
    later: bool,
) -> usize {
    let size = peers.len();
    let root = size - 1;
    let mut members: Vec<Member> = (0..size).map(|rank| member(net, peers, rank)).collect();
    let mut is_root_lost = false;
    let mut end = |members: &mut [Member]| match ends {
        None => {
            let Member { engine, group, .. } = &mut members[root];
            engine.revoke(*group).expect("a group");
        }
        Some(how) => {
            net.lose(peers[root], how);
            is_root_lost = true;
        }
    };
    reduce_and_free(&mut members[0], root);
    if !later {
        end(&mut members);
    }
    for member in &mut members[1..root] {
        reduce_and_free(member, root);
    }
    if later {
        end(&mut members);
    }
    if !is_root_lost {
        let Member { engine, group, .. } = &mut members[root];
        engine.free_group(*group).expect("a group");
    }
    for _ in 0..MAX_ROUNDS {
        let living = if is_root_lost { root } else { size };
        let mut moved = false;
        for member in &mut members[..living] {
            moved |= member.engine.progress();
        }
        if !moved {
            break;
        }
    }
    net.lost_collective_buffers()
}

/// A reduction of one element to `root`.
fn reduce_to(root: usize) -> Operation {
    Operation {
        input: Some(memory(&[1, 0, 0, 0])),
        output: Some(room(4)),
        root: root as u32,
        reduction: reduction(1),
        ..Operation::of(Kind::Reduce)
    }
}

/// The maker of a buffer revokes the group and leaves the job. The others have received that, and not handled it, when they call.
#[test]
fn a_revocation_counts_before_the_departure_of_the_one_that_sent_it() {
    let net = Net::new(3, Sizes::EAGER_300_BYTES);
    let mut members = [0, 1, 2].map(|rank| member(&net, &[0, 1, 2], rank));
    let [first, others @ ..] = &mut members;
    let mut given = first
        .engine
        .begin(first.group, reduce_to(1))
        .expect("begun");
    while !first.advance(&mut given).expect("nobody is lost") {
        first.engine.progress();
    }
    first.engine.revoke(first.group).expect("a group");
    first.engine.free_group(first.group).expect("a group");
    first.engine.leave();
    let from_first = Select {
        context: 0,
        source: Some(0),
        tag: TagSelect::Exactly(0),
    };
    for member in others.iter_mut() {
        assert_eq!(member.engine.probe(&from_first), Ok(None));
    }
    net.lose(0, Presence::Left);
    for member in others {
        let begun = member.engine.begin(member.group, reduce_to(1));
        let ended = begun.and_then(|mut collective| member.advance(&mut collective));
        assert_eq!(ended, Err(Error::Revoked));
    }
}

/// Does this member's part of a reduction to `root`, successfully or not, and frees the group.
fn reduce_and_free(member: &mut Member, root: usize) {
    let mut begun = member.engine.begin(member.group, reduce_to(root));
    for _ in 0..MAX_ROUNDS {
        member.engine.progress();
        let Ok(collective) = &mut begun else { break };
        match member.advance(collective) {
            Ok(false) => {}
            Ok(true) => break,
            Err(error) => {
                member.engine.give_up(collective, &error);
                break;
            }
        }
    }
    let freed = member.engine.free_group(member.group);
    freed.expect("the group is there");
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
    fn no_buffer_is_lost_with_a_group_that_is_revoked(
        peers in group(), hosts in 1u32..4,
        order in prop::collection::vec(any::<usize>(), 0..100),
        revoker in any::<usize>(), when in 0usize..100,
    ) {
        let net = Net::new(9, Sizes::EAGER_16_BYTES);
        net.spread(hosts);
        end_first_collective(&net, &peers, &order, when, |members| {
            let Member { engine, group, .. } = &mut members[revoker % peers.len()];
            engine.revoke(*group).expect("a group");
            None
        });
        prop_assert_eq!(net.lost_collective_buffers(), 0);
    }

    #[test]
    fn nor_with_one_of_which_a_member_dies_or_leaves_before_it_comes(
        peers in group(), hosts in 1u32..4,
        order in prop::collection::vec(any::<usize>(), 0..100),
        victim in any::<usize>(), dies: bool,
    ) {
        let net = Net::new(9, Sizes::EAGER_16_BYTES);
        net.spread(hosts);
        let victim = victim % peers.len();
        let how = if dies { Presence::Dead } else { Presence::Left };
        end_first_collective(&net, &peers, &order, 0, |_| {
            net.lose(peers[victim], how);
            Some(victim)
        });
        prop_assert_eq!(net.lost_collective_buffers(), 0);
    }

    #[test]
    fn nor_with_one_that_its_maker_has_freed_before_it_is_broken(
        peers in group(), ends in prop::sample::select(vec![
            None,
            Some(Presence::Dead),
            Some(Presence::Left),
        ]),
        later in any::<bool>(),
    ) {
        let net = Net::new(9, Sizes::EAGER_16_BYTES);
        prop_assert_eq!(free_before_it_is_broken(&net, &peers, ends, later), 0);
    }

    #[test]
    fn small_collectives_are_complete_for_all(
        peers in group(), hosts in 1u32..4, refused in 0u32..6,
        order in prop::collection::vec(any::<usize>(), 0..400),
    ) {
        let net = Net::new(9, Sizes::EAGER_16_BYTES);
        net.spread(hosts);
        net.refuse_collective_buffers(refused);
        run(&net, &peers, 20, &order, None);
    }

    #[test]
    fn whoever_is_lost_is_named_and_nobody_waits(
        peers in group(), hosts in 1u32..4, refused in 0u32..6,
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
