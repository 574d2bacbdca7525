//! Collectives. A caller either starts one, which completes later as a request, or begins one and waits for it.
//!
//! A caller that waits calls [`Engine::begin`], then [`Engine::poll`] until it returns [`Awaits::Nothing`]. Between the calls it waits, in its own
//! way, for what `poll` has returned.

use std::borrow::Cow;

use regatta_memory::views::Views;

use crate::algorithm::{Algorithm, Facts, choose};
use crate::contributions::COLLECTIVE_BUFFER_DEPTH;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::kind::Kind;
use crate::matching::{Select, TagSelect};
use crate::operation::Operation;
use crate::request::Handle;
use crate::request::Mode;
use crate::round::{LED_FROM, Need, Round};
use crate::transport::{Part, Peer, Transport};

/// Number of rounds to which a member contributes before it waits for the others. These rounds and the one that it waits for fill half of a
/// collective buffer. The rounds of the next exchange use the other half, so they can begin before these are read.
const ROUNDS_AHEAD: usize = COLLECTIVE_BUFFER_DEPTH as usize / 2 - 1;

/// A collective whose caller waits for it.
#[derive(Debug)]
pub struct Collective {
    group: GroupId,
    operation: Operation,
    rank: u32,
    size: u32,
    stage: Stage,
}

// Lives on the caller's stack: boxing a variant would allocate.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum Stage {
    /// Waits for a message or a schedule of messages. True if the members are on several hosts.
    Messages(Handle, bool),
    Rounds(Rounds),
    /// Waits for the name of the collective buffer, at the first use; see `room`.
    Naming(Handle, Views),
    /// Across hosts: waits for the contributions of the members on this host.
    Contributing(Round),
    /// Across hosts: this member leads its host, and waits for the exchange between the leaders.
    Exchanging(Round, Handle),
    Over,
}

/// A sequence of rounds, each of which moves `each` bytes of each part, until all `len` bytes have been moved.
#[derive(Debug)]
struct Rounds {
    each: usize,
    len: usize,
    /// Number of bytes of each part covered by the rounds begun so far.
    begun: usize,
    /// Rounds to which this member has contributed, each with its first byte. It reads them together with the next round that it waits for.
    ahead: [Option<(Round, usize)>; ROUNDS_AHEAD],
    /// The round that this member waits for, and its first byte.
    open: Option<(Round, usize)>,
}

/// The event for which a collective waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// No event: the collective is complete.
    Nothing,
    /// The completion of a request. Once the request has completed, call [`Collective::request_ended`].
    Request(Handle),
    /// The others' contributions to [`Collective::round`].
    Round,
}

impl Collective {
    /// Size of the working memory that [`Engine::poll`] needs, in bytes. If an element ([`Collective::element`]) is longer, the size of the element.
    pub const WORK_BYTES: usize = 4096;

    fn new(group: GroupId, operation: Operation, (rank, size): (u32, u32), stage: Stage) -> Self {
        Collective {
            group,
            operation,
            rank,
            size,
            stage,
        }
    }

    /// Returns the size of an element that is combined, in bytes, or 0 if none are.
    pub fn element(&self) -> usize {
        let what = self.operation.reduction.as_ref();
        what.map_or(0, |what| what.element.size())
    }

    /// Returns the round that is awaited, if any.
    pub fn round(&mut self) -> Option<&mut Round> {
        match &mut self.stage {
            Stage::Rounds(rounds) => rounds.open.as_mut().map(|(round, _)| round),
            Stage::Contributing(round) => Some(round),
            _ => None,
        }
    }

    /// Returns whether the collective waits for data from another host, directly or through a member on this host.
    pub fn crosses(&self) -> bool {
        matches!(
            self.stage,
            Stage::Messages(_, true) | Stage::Contributing(_) | Stage::Exchanging(..)
        )
    }

    /// Records that the awaited request has completed without error.
    pub fn request_ended(&mut self) {
        match &mut self.stage {
            Stage::Messages(handle, _)
            | Stage::Naming(handle, _)
            | Stage::Exchanging(_, handle) => {
                *handle = Handle::COMPLETE;
            }
            _ => {}
        }
    }
}

impl Rounds {
    fn new(each: usize, len: usize) -> Rounds {
        Rounds {
            each,
            len,
            begun: 0,
            ahead: Default::default(),
            open: None,
        }
    }

    /// Returns the first byte and the number of bytes of the round that begins at byte `from`.
    fn bytes(&self, from: usize) -> (usize, usize) {
        (from, self.each.min(self.len - from))
    }
}

impl<T: Transport> Engine<T> {
    /// Returns the properties by which an algorithm is chosen.
    fn facts(&mut self, id: GroupId, operation: &Operation, waits: bool) -> Result<Facts> {
        let group = self.group(id)?;
        let members = group.size();
        let own = group.collective_buffer.as_ref();
        let own = own.map(|buffer| self.transport().collective_buffer_capacity(buffer));
        let may_get_one = !group.is_buffer_known;
        // Members that share a collective buffer are on one host.
        let hosts = match own {
            Some(_) => None,
            None => self.hosts(id, 0)?,
        };
        let across = hosts.as_ref();
        let is_block = |views: &Option<Views>| {
            let block = |views: &Views| views.contiguous().is_some();
            views.as_ref().is_none_or(block)
        };
        let divisible = match operation.kind.parts_are_known() {
            true => is_block(&operation.input) && is_block(&operation.output),
            false => operation.terms().is_even(),
        };
        let what = operation.reduction.as_ref();
        Ok(Facts {
            bytes: operation.terms().bytes(operation.kind),
            members,
            hosts: across.map_or(1, |hosts| hosts.count()),
            most_on_a_host: across.map_or(members as usize, |hosts| hosts.most()),
            fewest_on_a_host: across.map_or(members as usize, |hosts| hosts.fewest()),
            contribution: own.or_else(|| {
                let is_possible = across.is_some() || may_get_one;
                is_possible.then(|| self.transport().contribution_limit(members))
            }),
            waits,
            commutative: what.is_none_or(|what| what.operator.commutative()),
            divisible,
        })
    }

    /// Returns this task's rank in the group and the group's size. Fails if the operation is not valid in the group.
    fn place_in(&self, id: GroupId, operation: &Operation) -> Result<(u32, u32)> {
        operation.check()?;
        let group = self.closed(id)?;
        operation.check_root(group.size())?;
        Ok((group.rank, group.size()))
    }

    /// Starts a collective and returns its request. All members of the group start their collectives in the same order.
    pub fn start(&mut self, id: GroupId, operation: &Operation) -> Result<Handle> {
        self.place_in(id, operation)?;
        let facts = self.facts(id, operation, false)?;
        let steps = self.steps(id, operation, choose(operation.kind, &facts))?;
        self.start_schedule(id, steps)
    }

    /// Begins a collective whose caller waits for it. The order among members is as for [`Engine::start`].
    pub fn begin(&mut self, id: GroupId, operation: Operation) -> Result<Collective> {
        let place = self.place_in(id, &operation)?;
        if self.is_alone(id) {
            operation.terms().keep_own(operation.kind, place);
            return Ok(Collective::new(id, operation, place, Stage::Over));
        }
        let stage = self.first_stage(id, &operation, place.0)?;
        Ok(Collective::new(id, operation, place, stage))
    }

    /// Returns the first stage of a collective, according to the chosen algorithm.
    fn first_stage(&mut self, id: GroupId, operation: &Operation, rank: u32) -> Result<Stage> {
        let facts = self.facts(id, operation, true)?;
        let algorithm = choose(operation.kind, &facts);
        if matches!(algorithm, Algorithm::Rounds(_) | Algorithm::Crossing)
            && let Some((handle, name)) = self.start_room(id)?
        {
            return Ok(Stage::Naming(handle, name));
        }
        Ok(match algorithm {
            Algorithm::Rounds(each) => Stage::Rounds(Rounds::new(each, facts.bytes)),
            Algorithm::Message => {
                let pair = self.pair(id)?;
                let terms = operation.terms();
                let handle = self.start_message(terms.message(operation.kind, rank), pair)?;
                // Done while the message is in flight.
                terms.keep_own(operation.kind, (rank, 2));
                Stage::Messages(handle, facts.hosts > 1)
            }
            Algorithm::Crossing => self.contribute_here(id, operation)?,
            algorithm => {
                let steps = self.steps(id, operation, algorithm)?;
                Stage::Messages(self.start_schedule(id, steps)?, facts.hosts > 1)
            }
        })
    }

    /// Begins the message of a one-way collective of two members ([`Terms::message`](crate::Terms::message)). `pair` is the other member, the
    /// context and the tag.
    pub fn begin_message(
        &mut self,
        id: GroupId,
        kind: Kind,
        message: std::result::Result<Cow<'_, Views>, Cow<'_, Views>>,
        pair: (Peer, u32, i32),
    ) -> Result<Collective> {
        let stage = Stage::Messages(self.start_message(message, pair)?, false);
        Ok(Collective::new(id, Operation::of(kind), (0, 2), stage))
    }

    fn start_message(
        &mut self,
        message: std::result::Result<Cow<'_, Views>, Cow<'_, Views>>,
        (peer, context, tag): (Peer, u32, i32),
    ) -> Result<Handle> {
        match message {
            Ok(message) => {
                self.start_send(peer, context, tag, message.into_owned(), Mode::Standard)
            }
            Err(into) => {
                let select = Select {
                    context,
                    source: Some(peer),
                    tag: TagSelect::Exactly(tag),
                };
                self.start_receive(select, into.into_owned())
            }
        }
    }

    /// Contributes to a collective across hosts once it is known whether this host has a collective buffer. A host that has none does its part by
    /// messages.
    fn contribute_here(&mut self, id: GroupId, operation: &Operation) -> Result<Stage> {
        if let Some(round) = self.cross(id, &operation.given())? {
            return Ok(Stage::Contributing(round));
        }
        let facts = self.facts(id, operation, false)?;
        let steps = self.steps(id, operation, choose(operation.kind, &facts))?;
        Ok(Stage::Messages(self.start_schedule(id, steps)?, true))
    }

    /// Makes progress in a collective without blocking. Returns the event that it waits for. `work` is memory in which contributions are combined:
    /// [`Collective::WORK_BYTES`] bytes, or one element if that is longer. After an error of this call or of the wait, the caller must call
    /// [`Engine::give_up`].
    pub fn poll(&mut self, collective: &mut Collective, work: &Views) -> Result<Awaits> {
        let Collective {
            group,
            operation,
            stage,
            ..
        } = collective;
        let place = (collective.rank, collective.size);
        loop {
            match stage {
                Stage::Over => return Ok(Awaits::Nothing),
                Stage::Messages(handle, _) => {
                    if !self.has_ended(*handle)? {
                        return Ok(Awaits::Request(*handle));
                    }
                    *stage = Stage::Over;
                }
                Stage::Rounds(rounds) => {
                    if !self.advance_rounds(*group, operation, place, rounds, work)? {
                        return Ok(Awaits::Round);
                    }
                    *stage = Stage::Over;
                }
                Stage::Naming(handle, name) => {
                    if !self.has_ended(*handle)? {
                        return Ok(Awaits::Request(*handle));
                    }
                    self.enter_room(*group, name)?;
                    // The buffer's name is known. An error from here on is one of the collective, so `give_up` need not tell the others about the buffer.
                    *stage = Stage::Over;
                    *stage = self.first_stage(*group, operation, place.0)?;
                }
                Stage::Contributing(round) => {
                    if !self.round_complete(round) {
                        return Ok(Awaits::Round);
                    }
                    match self.lead_or_follow(operation, round, work)? {
                        None => *stage = Stage::Over,
                        Some(exchange) => {
                            if let Stage::Contributing(round) =
                                std::mem::replace(stage, Stage::Over)
                            {
                                *stage = Stage::Exchanging(round, exchange);
                            }
                        }
                    }
                }
                Stage::Exchanging(round, handle) => {
                    if !self.has_ended(*handle)? {
                        return Ok(Awaits::Request(*handle));
                    }
                    self.end_crossing(round, &operation.out());
                    *stage = Stage::Over;
                }
            }
        }
    }

    /// Returns whether a request has completed. Fails if it completed with an error.
    fn has_ended(&mut self, handle: Handle) -> Result<bool> {
        match self.finish(handle)? {
            None => Ok(false),
            Some((_, None)) => Ok(true),
            Some((_, Some(error))) => Err(error),
        }
    }

    /// Reads the awaited round once it is complete, and contributes to the next ones. Returns true once all rounds are done, and false while one is
    /// awaited.
    fn advance_rounds(
        &mut self,
        id: GroupId,
        operation: &Operation,
        place: (u32, u32),
        rounds: &mut Rounds,
        work: &Views,
    ) -> Result<bool> {
        let ahead = if place.1 > LED_FROM { 0 } else { ROUNDS_AHEAD };
        loop {
            if let Some((round, _)) = &mut rounds.open
                && !self.round_complete(round)
            {
                return Ok(false);
            }
            if let Some((round, from)) = rounds.open.take() {
                let slot = rounds.ahead.iter_mut().find(|slot| slot.is_none());
                match slot {
                    Some(slot) if round.is_read_later() => *slot = Some((round, from)),
                    _ => {
                        let what = (operation.kind, operation.terms());
                        for (round, from) in rounds.ahead.iter().flatten() {
                            let stretch = rounds.bytes(*from);
                            self.read_any_round(what, place, round, stretch, work);
                        }
                        let stretch = rounds.bytes(from);
                        self.read_any_round(what, place, &round, stretch, work);
                        self.end_round(round);
                        rounds.ahead = Default::default();
                        if rounds.begun >= rounds.len {
                            what.1.keep_own(what.0, place);
                            return Ok(true);
                        }
                    }
                }
            }
            let (from, n) = rounds.bytes(rounds.begun);
            let is_last = from + n >= rounds.len;
            let is_ahead = rounds.ahead.iter().take(ahead).any(Option::is_none);
            let (need, gives) = match operation.needs(place) {
                (Need::Everyone, _) if is_ahead && !is_last => (Need::Later, true),
                needs => needs,
            };
            let gives = gives.then(|| {
                operation
                    .terms()
                    .contribution(operation.kind, place, (from, n))
                    .into_owned()
            });
            rounds.open = Some((self.begin_round(id, need, gives)?, from));
            rounds.begun += n;
        }
    }

    /// Continues a collective across hosts once all awaited contributions on this host were made. The host's leader starts the exchange with the
    /// other leaders and returns its request. Any other member copies the result and returns `None`.
    fn lead_or_follow(
        &mut self,
        operation: &Operation,
        round: &Round,
        work: &Views,
    ) -> Result<Option<Handle>> {
        let (output, what) = (operation.out(), operation.reduction.as_ref());
        let Some(members) = self.leads(round) else {
            let total = operation.terms().bytes(operation.kind);
            self.collect(round, 0, Part { offset: 0, total }, &output);
            return Ok(None);
        };
        if let Some(what) = what {
            operation.given().copy_to(&output);
            self.fold_others(round, members, &output, what, work);
        }
        self.start_exchange(round, &output, what).map(Some)
    }

    /// Gives a collective up: notifies the other members that they must not wait for this one.
    pub fn give_up(&mut self, collective: &Collective, error: &Error) {
        match &collective.stage {
            Stage::Contributing(round) | Stage::Exchanging(round, _) => {
                self.fail_crossing(round, error);
            }
            Stage::Naming(..) => self.fail_room(collective.group, error),
            _ => {}
        }
    }
}
