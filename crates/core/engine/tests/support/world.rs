//! Engines over one net, and a reference matcher beside each: every call is checked as it is made.

use std::collections::{HashMap, VecDeque};

use regatta_engine::{
    Engine, Error, GroupId, Handle, Kind as Collective, Mode, Operation, Peer, Presence, Select,
    Settings, Status, TagSelect,
};
use regatta_memory::views::{Scratch, Views};

use super::net::{End, Net, Sizes};
use super::oracle::{Message, Oracle};

/// Context of a second group, of all tasks.
pub const OTHER: u32 = 2;
/// Number of rounds of progress after which a test fails because nothing will ever change.
const MAX_ROUNDS: usize = 10_000;

struct Sent {
    number: usize,
    from: Peer,
    to: Peer,
    handle: Handle,
    synchronous: bool,
}

struct Awaited {
    number: usize,
    by: Peer,
    handle: Handle,
    select: Select,
    views: Views,
}

/// Engines over one net, with a reference matcher beside each.
pub struct World {
    pub net: Net,
    sizes: Sizes,
    pub engines: Vec<Engine<End>>,
    oracles: Vec<Oracle>,
    /// Messages that were sent and not received yet, by sender and receiver.
    under_way: HashMap<(Peer, Peer), VecDeque<Message>>,
    sends: Vec<Sent>,
    receives: Vec<Awaited>,
    /// Messages taken out of matching: by which task, as which receive, with which selection.
    matched: Vec<(Peer, usize, Select, regatta_engine::Message)>,
    lost: Vec<Peer>,
    messages: usize,
    posts: usize,
}

/// Returns the bytes of message `number`.
pub fn content(number: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (number * 31 + at * 7 + 1) as u8)
        .collect()
}

/// Returns user memory that contains `bytes`.
pub fn memory(bytes: &[u8]) -> Views {
    let views = room(bytes.len());
    views.fill(bytes);
    views
}

/// Returns user memory of `len` zeros.
pub fn room(len: usize) -> Views {
    Scratch::new(len).expect("memory").part(0, len)
}

/// Returns a barrier.
pub const BARRIER: Operation = Operation::of(Collective::Barrier);

/// Returns whether an error reports that `peer` is gone.
pub fn names(error: &Error, peer: Peer) -> bool {
    matches!(error, Error::Dead(p) | Error::Left(p) | Error::Corrupt { peer: p, .. } if *p == peer)
}

impl World {
    pub fn new(tasks: u32, sizes: Sizes, buffer: usize) -> World {
        let net = Net::new(tasks, sizes);
        let settings = Settings { buffer };
        let engine = |me| {
            let mut engine = Engine::new(net.end(me), settings);
            let all = (0..tasks).collect();
            engine.add_group(all, OTHER).expect("a second group");
            engine
        };
        World {
            engines: (0..tasks).map(engine).collect(),
            oracles: (0..tasks).map(|_| Oracle::default()).collect(),
            net,
            sizes,
            under_way: HashMap::new(),
            sends: Vec::new(),
            receives: Vec::new(),
            matched: Vec::new(),
            lost: Vec::new(),
            messages: 0,
            posts: 0,
        }
    }

    fn tasks(&self) -> u32 {
        self.engines.len() as u32
    }

    pub fn is_lost(&self, peer: Peer) -> bool {
        self.lost.contains(&peer)
    }

    /// Records what the engine of `peer` has received, and checks everything of it that is complete.
    fn note(&mut self, peer: Peer) {
        for taken in self.net.taken(peer) {
            let queue = self.under_way.get_mut(&(taken.from, peer));
            let message = queue.and_then(VecDeque::pop_front).expect("it was sent");
            assert_eq!((message.context, message.tag), (taken.context, taken.tag));
            self.oracles[peer as usize].arrive(message);
        }
        let mut at = 0;
        while at < self.receives.len() {
            let handle = self.receives[at].handle;
            if self.receives[at].by == peer
                && self.engine(peer).is_done(handle).expect("a live handle")
            {
                let receive = self.receives.swap_remove(at);
                let outcome = self.engine(peer).finish(handle).expect("a live handle");
                let (status, error) = outcome.expect("it is done");
                self.check_received(&receive, status, error);
            } else {
                at += 1;
            }
        }
        at = 0;
        while at < self.sends.len() {
            let handle = self.sends[at].handle;
            if self.sends[at].from == peer
                && self.engine(peer).is_done(handle).expect("a live handle")
            {
                let send = self.sends.swap_remove(at);
                let outcome = self.engine(peer).finish(handle).expect("a live handle");
                self.check_sent(&send, outcome.expect("it is done").1);
            } else {
                at += 1;
            }
        }
    }

    fn engine(&mut self, peer: Peer) -> &mut Engine<End> {
        &mut self.engines[peer as usize]
    }

    fn check_received(&mut self, receive: &Awaited, status: Status, error: Option<Error>) {
        let given = self.oracles[receive.by as usize].given(receive.number);
        let Some(message) = given.cloned() else {
            let error = error.expect("a receive without a message ends with an error");
            let culprit = self.lost.iter().find(|&&peer| names(&error, peer));
            let culprit = *culprit.unwrap_or_else(|| panic!("{error:?} names nobody lost"));
            let source = receive.select.source;
            assert!(source.is_none_or(|s| s == culprit), "{source:?}: {error:?}");
            assert!(self.oracles[receive.by as usize].withdraw(receive.number));
            return;
        };
        if let Some(error) = &error
            && names(error, message.from)
        {
            assert!(self.is_lost(message.from), "{error:?}");
            assert!(message.offered, "what travels in a frame comes whole");
            return;
        }
        let (length, capacity) = (message.bytes.len(), receive.views.len());
        assert_eq!(status.source, message.from as i32);
        assert_eq!(status.tag, message.tag);
        assert_eq!(status.length, length);
        assert_eq!(status.context, message.context);
        let truncated = (length > capacity).then_some(Error::Truncated { length, capacity });
        assert_eq!(error, truncated);
        let mut expected = message.bytes;
        expected.resize(capacity, 0);
        assert_eq!(
            receive.views.to_vec(),
            expected,
            "message {}",
            message.number
        );
    }

    fn check_sent(&mut self, send: &Sent, error: Option<Error>) {
        match error {
            None if send.synchronous => {
                let begun = self.oracles[send.to as usize].is_matched(send.number);
                assert!(begun, "complete before its receive began");
            }
            None => {}
            Some(error) => {
                assert!(self.is_lost(send.to) && names(&error, send.to), "{error:?}");
            }
        }
    }

    fn message(&mut self, from: Peer, context: u32, tag: i32, len: usize) -> Message {
        let number = self.messages;
        self.messages += 1;
        Message {
            number,
            from,
            context,
            tag,
            bytes: content(number, len),
            offered: false,
            loan: false,
        }
    }

    fn sent(&mut self, to: Peer, message: Message) {
        if to == message.from {
            self.oracles[to as usize].arrive(message);
        } else {
            let pair = (message.from, to);
            self.under_way.entry(pair).or_default().push_back(message);
        }
    }

    pub fn send(&mut self, from: Peer, to: Peer, context: u32, tag: i32, len: usize, mode: Mode) {
        let mut message = self.message(from, context, tag, len);
        message.offered = mode == Mode::Synchronous || len > self.sizes.eager;
        let views = memory(&message.bytes);
        let number = message.number;
        match self.engine(from).start_send(to, context, tag, views, mode) {
            Ok(handle) => {
                self.sent(to, message);
                self.sends.push(Sent {
                    number,
                    from,
                    to,
                    handle,
                    synchronous: mode == Mode::Synchronous,
                });
            }
            Err(Error::Cycle(ring)) => assert!(to == from && ring == [from]),
            Err(error) => assert!(self.is_lost(to) && names(&error, to), "{error:?}"),
        }
        self.note(from);
    }

    pub fn send_loan(&mut self, from: Peer, to: Peer, context: u32, tag: i32, len: usize) {
        let mut message = self.message(from, context, tag, len);
        message.loan = true;
        let engine = self.engine(from);
        let lent = regatta_engine::Loans::lend(engine.transport_mut(), len);
        let (place, views) = lent.expect("a loan");
        views.fill(&message.bytes);
        match self
            .engine(from)
            .send_loan(to, context, tag, place, len as u64)
        {
            Ok(()) => self.sent(to, message),
            Err(error) => {
                assert!(self.is_lost(to) && names(&error, to), "{error:?}");
                regatta_engine::Loans::give_back(self.engine(from).transport_mut(), place);
            }
        }
        self.note(from);
    }

    pub fn receive(&mut self, by: Peer, select: Select, capacity: usize) {
        let number = self.posts;
        self.posts += 1;
        // Messages that the engine receives during the call arrive after the receive was posted.
        self.oracles[by as usize].receive(number, select);
        let views = room(capacity);
        match self.engine(by).start_receive(select, views.clone()) {
            Ok(handle) => self.receives.push(Awaited {
                number,
                by,
                handle,
                select,
                views,
            }),
            Err(error) => {
                let culprit = self.lost.iter().any(|&peer| names(&error, peer));
                assert!(culprit, "{error:?}");
                if !self.oracles[by as usize].withdraw(number) {
                    let given = self.oracles[by as usize].given(number);
                    let given = given.expect("posted, matched or withdrawn");
                    assert!(names(&error, given.from), "{error:?} for {given:?}");
                }
            }
        }
        self.note(by);
    }

    pub fn probe(&mut self, by: Peer, select: Select) {
        let found = self.engine(by).probe(&select);
        self.note(by);
        let expected = self.oracles[by as usize].probe(&select);
        match found {
            Ok(found) => {
                let seen = found.map(|s| (s.source, s.tag, s.length, s.context));
                let expected = expected.map(|m| (m.from as i32, m.tag, m.bytes.len(), m.context));
                assert_eq!(seen, expected);
            }
            Err(error) => {
                assert!(expected.is_none());
                assert!(self.lost.iter().any(|&peer| names(&error, peer)));
            }
        }
    }

    /// Probes and takes the message out of matching: no other receive or probe can find it then.
    pub fn match_probe(&mut self, by: Peer, select: Select) {
        let found = self.engine(by).match_probe(&select);
        self.note(by);
        let expected = self.oracles[by as usize].probe(&select);
        match found {
            Ok(Some((status, message))) => {
                let expected = expected.expect("the oracle has a message there");
                let seen = (status.source, status.tag, status.length, status.context);
                let (from, length) = (expected.from as i32, expected.bytes.len());
                assert_eq!(seen, (from, expected.tag, length, expected.context));
                let number = self.posts;
                self.posts += 1;
                self.oracles[by as usize].receive(number, select);
                self.matched.push((by, number, select, message));
            }
            Ok(None) => assert!(expected.is_none()),
            Err(error) => {
                assert!(expected.is_none());
                assert!(self.lost.iter().any(|&peer| names(&error, peer)));
            }
        }
    }

    /// Receives some message that `by` has taken out of matching, if there is one.
    pub fn receive_matched(&mut self, by: Peer, which: usize, capacity: usize) {
        let mine: Vec<usize> = (0..self.matched.len())
            .filter(|&at| self.matched[at].0 == by)
            .collect();
        if mine.is_empty() {
            return;
        }
        let (by, number, select, message) = self.matched.swap_remove(mine[which % mine.len()]);
        let views = room(capacity);
        let engine = self.engine(by);
        let started = engine.start_matched_receive(message, views.clone());
        let again = engine.start_matched_receive(message, views.clone());
        assert_eq!(again, Err(Error::Handle("message")), "it is used up");
        self.receives.push(Awaited {
            number,
            by,
            handle: started.expect("it has started"),
            select,
            views,
        });
        self.note(by);
    }

    pub fn take_loan(&mut self, by: Peer, select: Select) {
        let taken = self.engine(by).take_loan(&select);
        self.note(by);
        match taken {
            Ok(Some((status, place, views))) => {
                let expected = self.oracles[by as usize].take_loan(&select);
                let expected = expected.expect("the oracle has a loan there");
                assert_eq!(views.to_vec(), expected.bytes);
                assert_eq!(status.source, expected.from as i32);
                regatta_engine::Loans::give_back(self.engine(by).transport_mut(), place);
            }
            Ok(None) => {
                let expected = self.oracles[by as usize].probe(&select);
                assert!(expected.is_none_or(|message| !message.loan));
            }
            Err(error) => assert!(self.lost.iter().any(|&peer| names(&error, peer))),
        }
    }

    /// Cancels some pending receive of `by`, if there is one.
    pub fn cancel(&mut self, by: Peer, which: usize) {
        let mine: Vec<usize> = (0..self.receives.len())
            .filter(|&at| self.receives[at].by == by)
            .collect();
        if mine.is_empty() {
            return;
        }
        let at = mine[which % mine.len()];
        let (handle, number) = (self.receives[at].handle, self.receives[at].number);
        let cancelled = self.engine(by).cancel(handle).expect("a live handle");
        assert_eq!(cancelled, self.oracles[by as usize].withdraw(number));
        if cancelled {
            self.receives.swap_remove(at);
            let outcome = self.engine(by).finish(handle).expect("a live handle");
            let (_, error) = outcome.expect("cancelled is complete");
            assert_eq!(error, Some(Error::Cancelled));
        }
    }

    pub fn progress(&mut self, peer: Peer) -> bool {
        let moved = self.engine(peer).progress();
        self.note(peer);
        moved
    }

    pub fn take_in(&mut self, peer: Peer) {
        self.engine(peer).take_in_offers();
        self.note(peer);
    }

    /// Ends a task. Its open watches do not matter any more.
    pub fn lose(&mut self, peer: Peer, how: Presence) {
        self.net.lose(peer, how);
        self.lost.push(peer);
        self.sends.retain(|send| send.from != peer);
        self.receives.retain(|receive| receive.by != peer);
        self.matched.retain(|matched| matched.0 != peer);
    }

    fn living(&self) -> Vec<Peer> {
        (0..self.tasks()).filter(|&p| !self.is_lost(p)).collect()
    }

    /// Lets all tasks make progress until nothing changes any more.
    pub fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let mut moved = false;
            for peer in self.living() {
                moved |= self.progress(peer);
            }
            if !moved {
                return;
            }
        }
        panic!("progress without end");
    }

    /// Receives everything that is still to be received, then checks that nothing is left anywhere.
    pub fn finish(&mut self) {
        self.settle();
        for peer in self.living() {
            while self.matched.iter().any(|matched| matched.0 == peer) {
                self.receive_matched(peer, 0, 200);
            }
        }
        self.settle();
        for peer in self.living() {
            for id in [GroupId::WORLD, GroupId(1)] {
                self.engine(peer).acknowledge(id).expect("a group");
            }
        }
        for _ in 0..MAX_ROUNDS {
            let open = self.still_to_come();
            if open.is_empty() {
                break;
            }
            for (from, by, context) in open {
                let select = Select {
                    context,
                    source: Some(from),
                    tag: TagSelect::Any,
                };
                self.receive(by, select, 200);
            }
            self.settle();
        }
        assert_eq!(self.still_to_come(), [], "these never arrived");
        for peer in self.living() {
            while self.receives.iter().any(|receive| receive.by == peer) {
                let before = self.receives.len();
                self.cancel(peer, 0);
                assert!(
                    self.receives.len() < before,
                    "a matched receive that never ends"
                );
            }
        }
        assert_eq!(self.sends.len(), 0, "sends that never end");
        for peer in self.living() {
            let engine = self.engine(peer);
            assert!(
                engine.is_idle(),
                "task {peer} still has something under way"
            );
            assert_eq!(engine.buffered(), 0);
        }
        if self.lost.is_empty() {
            assert_eq!(self.net.open_streams(), 0);
            assert_eq!(self.net.lost_streams(), 0);
            assert_eq!(self.net.lent(), 0);
        }
    }

    /// Returns the location of a message without a receive: sender, receiver, context.
    fn still_to_come(&mut self) -> Vec<(Peer, Peer, u32)> {
        let mut open = vec![];
        for by in self.living() {
            for from in 0..self.tasks() {
                let queue = self.under_way.get(&(from, by));
                let coming: Vec<u32> = queue.into_iter().flatten().map(|m| m.context).collect();
                let reachable = self.net.front_of(from, by);
                if !self.is_lost(from) || reachable {
                    open.extend(coming.first().map(|&context| (from, by, context)));
                }
                for context in [0, OTHER] {
                    let select = Select {
                        context,
                        source: Some(from),
                        tag: TagSelect::Any,
                    };
                    let waiting = self.oracles[by as usize].probe(&select).is_some();
                    open.extend(waiting.then_some((from, by, context)));
                }
            }
        }
        open
    }
}
