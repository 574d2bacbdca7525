//! A transport inside one thread: every queue is small, and every misuse panics.
//!
//! A [`Net`] joins any number of [`End`]s. Rings hold few frames and streams few bytes, so that a lack of space is the usual case; nothing is
//! transferred unless an engine asks. The net records which message frames an engine has received, in order ([`Net::taken`]): a reference matcher
//! needs that order to predict every match.

mod collective_buffers;
mod frames;
mod loans;
mod peers;
mod streams;
mod upkeep;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use regatta_engine::{Peer, Presence};
use regatta_memory::views::Scratch;
use regatta_wire::Frame;

use collective_buffers::{Place, Users};
use streams::Stream;

/// The sizes of all queues.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Maximum length of an eager payload.
    pub eager: usize,
    /// Number of frames in a ring.
    pub ring: usize,
    /// Number of bytes transferred at a time.
    pub chunk: usize,
    /// Number of bytes in a stream.
    pub stream: usize,
    /// Number of streams that a sender may open itself.
    pub streams: usize,
}

impl Sizes {
    /// The smallest sizes that can work.
    pub const EAGER_16_BYTES: Sizes = Sizes {
        eager: 16,
        ring: 2,
        chunk: 5,
        stream: 12,
        streams: 1,
    };
    /// Space for a few messages of each kind.
    pub const EAGER_300_BYTES: Sizes = Sizes {
        eager: 300,
        ring: 4,
        chunk: 64,
        stream: 256,
        streams: 2,
    };
}

/// A message frame that an engine has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub from: Peer,
    pub context: u32,
    pub tag: i32,
}

type Ring = VecDeque<(Frame, Vec<u8>)>;

struct Shared {
    sizes: Sizes,
    presence: Vec<Presence>,
    losses: u32,
    /// Number of queries of presence.
    presence_questions: usize,
    rings: HashMap<(Peer, Peer), Ring>,
    streams: Vec<Stream>,
    loans: HashMap<u64, (Scratch, usize)>,
    next_loan: u64,
    taken: Vec<Vec<Taken>>,
    /// Peers whose next frame is corrupt.
    damaged: Vec<(Peer, Peer)>,
    /// Number of things that a peer still sends before it dies in the middle of an operation.
    fuses: HashMap<Peer, usize>,
    /// Pairs of peers whose frames one does not deliver to the other.
    closed: Vec<(Peer, Peer)>,
    /// Pairs of peers that have given each other up.
    apart: Vec<(Peer, Peer)>,
    /// Losses of which only one peer knows: that peer, and the lost one.
    heard: Vec<(Peer, Peer, Presence)>,
    /// Number of hosts to which the peers are dealt.
    hosts: u32,
    buffers: Vec<Vec<Place>>,
    /// For each buffer.
    users: Vec<Users>,
    /// A host without memory for collective buffers.
    without_buffers: Option<u32>,
    /// Number of requests for one.
    refused_buffers: usize,
}

impl Shared {
    /// Returns whether this peer still sends one more thing.
    fn lives_to_send(&mut self, me: Peer) -> bool {
        if self.presence[me as usize] != Presence::Here {
            return false;
        }
        match self.fuses.get_mut(&me) {
            Some(0) => {
                self.presence[me as usize] = Presence::Dead;
                self.losses += 1;
                return false;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        true
    }
}

/// All queues.
#[derive(Clone)]
pub struct Net(Rc<RefCell<Shared>>);

impl Net {
    pub fn new(peers: u32, sizes: Sizes) -> Net {
        Net(Rc::new(RefCell::new(Shared {
            sizes,
            presence: vec![Presence::Here; peers as usize],
            losses: 0,
            presence_questions: 0,
            rings: HashMap::new(),
            streams: Vec::new(),
            loans: HashMap::new(),
            next_loan: 1,
            taken: vec![Vec::new(); peers as usize],
            damaged: Vec::new(),
            fuses: HashMap::new(),
            closed: Vec::new(),
            apart: Vec::new(),
            heard: Vec::new(),
            hosts: 1,
            buffers: Vec::new(),
            users: Vec::new(),
            without_buffers: None,
            refused_buffers: 0,
        })))
    }

    /// Lets two peers give each other up: each considers the other dead, and receives nothing more from it.
    pub fn part(&self, one: Peer, other: Peer) {
        let mut net = self.0.borrow_mut();
        for pair in [(one, other), (other, one)] {
            net.apart.push(pair);
            net.rings.remove(&pair);
        }
        net.losses += 1;
    }

    /// Loses a peer so that only `by` knows of it so far.
    pub fn lose_for(&self, by: Peer, peer: Peer, how: Presence) {
        self.lose_uncounted(by, peer, how);
        self.0.borrow_mut().losses += 1;
    }

    /// Does the same as `lose_for`, at the moment before that loss is counted.
    pub fn lose_uncounted(&self, by: Peer, peer: Peer, how: Presence) {
        self.0.borrow_mut().heard.push((by, peer, how));
    }

    /// Returns the state of `peer`, as known to `by`.
    fn told(&self, by: Peer, peer: Peer) -> Presence {
        let net = self.0.borrow();
        let mut heard = net.heard.iter();
        let found = heard.find(|one| (one.0, one.1) == (by, peer));
        found.map_or(net.presence[peer as usize], |one| one.2)
    }

    /// Returns whether they have given each other up.
    pub fn are_apart(&self, one: Peer, other: Peer) -> bool {
        self.0.borrow().apart.contains(&(one, other))
    }

    /// Deals the peers to `hosts` hosts. Everything else stays as it is.
    pub fn spread(&self, hosts: u32) {
        self.0.borrow_mut().hosts = hosts;
    }

    /// Makes this host have no memory for collective buffers.
    pub fn refuse_collective_buffers(&self, host: u32) {
        self.0.borrow_mut().without_buffers = Some(host);
    }

    /// Returns how many collective buffers were allocated, and how many were refused.
    pub fn collective_buffers(&self) -> (usize, usize) {
        let net = self.0.borrow();
        (net.buffers.len(), net.refused_buffers)
    }

    /// Returns how many collective buffers are neither in use nor reusable.
    pub fn lost_collective_buffers(&self) -> usize {
        let net = self.0.borrow();
        let both = net.buffers.iter().zip(&net.users);
        let kept = both.filter(|(places, users)| !users.are_gone(places.len() as u32));
        kept.count()
    }

    pub fn end(&self, me: Peer) -> End {
        End {
            net: self.clone(),
            me,
            opened: 0,
        }
    }

    /// Lets a peer die or leave. Its engine must not be called any more.
    pub fn lose(&self, peer: Peer, how: Presence) {
        let mut net = self.0.borrow_mut();
        net.presence[peer as usize] = how;
        net.losses += 1;
    }

    /// Lets a peer send this many frames and pieces of streams, and die when it sends the next. Then its engine must not be called any more.
    pub fn die_after(&self, peer: Peer, things: usize) {
        self.0.borrow_mut().fuses.insert(peer, things);
    }

    /// Returns whether a peer is alive.
    pub fn is_here(&self, peer: Peer) -> bool {
        self.0.borrow().presence[peer as usize] == Presence::Here
    }

    /// Returns how often engines have asked for a peer's presence.
    pub fn presence_questions(&self) -> usize {
        self.0.borrow().presence_questions
    }

    /// Returns all living peers.
    pub fn living(&self) -> Vec<Peer> {
        let peers = self.0.borrow().presence.len() as Peer;
        (0..peers).filter(|&peer| self.is_here(peer)).collect()
    }

    /// Makes everything that `at` receives from `from` from now on corrupt.
    pub fn damage(&self, from: Peer, at: Peer) {
        self.0.borrow_mut().damaged.push((from, at));
    }

    /// Returns the message frames that a peer's engine has received since the last call.
    pub fn taken(&self, by: Peer) -> Vec<Taken> {
        std::mem::take(&mut self.0.borrow_mut().taken[by as usize])
    }

    /// Returns the number of streams with an end that was neither finished nor abandoned.
    pub fn open_streams(&self) -> usize {
        let net = self.0.borrow();
        let open = |stream: &&Stream| stream.ends[0] || stream.ends[1];
        net.streams.iter().filter(open).count()
    }

    /// Returns the number of streams that will never be reused.
    pub fn lost_streams(&self) -> usize {
        let net = self.0.borrow();
        net.streams.iter().filter(|stream| !stream.returned).count()
    }

    /// Returns the number of loans not given back.
    pub fn lent(&self) -> usize {
        self.0.borrow().loans.len()
    }

    /// Returns whether there is a frame from one peer to another.
    pub fn front_of(&self, from: Peer, to: Peer) -> bool {
        let net = self.0.borrow();
        let ring = net.rings.get(&(from, to));
        ring.is_some_and(|ring| !ring.is_empty())
    }
}

/// One task's end of the net.
pub struct End {
    net: Net,
    me: Peer,
    opened: usize,
}
