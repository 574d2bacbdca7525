//! A transport inside one thread: every queue tiny, every misuse a panic.
//!
//! A [`Net`] joins any number of [`End`]s. Rings hold few frames and streams few bytes, so that
//! "no room" is the common case; nothing moves unless an engine asks. The net notes which message
//! frames an engine has taken in, in order ([`Net::taken`]): that order is what a reference
//! matcher needs to know to predict every match.

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

/// How narrow everything is.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Longest eager payload.
    pub eager: usize,
    /// Frames in a ring.
    pub ring: usize,
    /// Bytes moved at a time.
    pub chunk: usize,
    /// Bytes in a stream.
    pub stream: usize,
    /// Streams a sender may have open of its own accord.
    pub streams: usize,
}

impl Sizes {
    /// The narrowest that can work.
    pub const EAGER_16_BYTES: Sizes = Sizes {
        eager: 16,
        ring: 2,
        chunk: 5,
        stream: 12,
        streams: 1,
    };
    /// Room for a few messages of some kind each.
    pub const EAGER_300_BYTES: Sizes = Sizes {
        eager: 300,
        ring: 4,
        chunk: 64,
        stream: 256,
        streams: 2,
    };
}

/// A message frame an engine has taken in.
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
    /// How often somebody was asked for.
    presence_questions: usize,
    rings: HashMap<(Peer, Peer), Ring>,
    streams: Vec<Stream>,
    loans: HashMap<u64, (Scratch, usize)>,
    next_loan: u64,
    taken: Vec<Vec<Taken>>,
    /// Peers whose next frame is damage.
    damaged: Vec<(Peer, Peer)>,
    /// How many more things a peer sends before it dies in the middle of whatever it does.
    fuses: HashMap<Peer, usize>,
    /// Peers whose frames the other one does not want to see.
    closed: Vec<(Peer, Peer)>,
    /// Peers that have given each other up.
    apart: Vec<(Peer, Peer)>,
    /// Losses of which only one peer has heard: that, and who is lost.
    heard: Vec<(Peer, Peer, Presence)>,
    /// Peers are dealt to this many hosts.
    hosts: u32,
    buffers: Vec<Vec<Place>>,
    /// Of each buffer.
    users: Vec<Users>,
    /// A host that has no memory for collective buffers.
    without_buffers: Option<u32>,
    /// How often it was asked for one.
    refused_buffers: usize,
}

impl Shared {
    /// Does this peer still send one more thing?
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

    /// Two peers give each other up: each counts as dead for the other, and hears nothing more of it.
    pub fn part(&self, one: Peer, other: Peer) {
        let mut net = self.0.borrow_mut();
        for pair in [(one, other), (other, one)] {
            net.apart.push(pair);
            net.rings.remove(&pair);
        }
        net.losses += 1;
    }

    /// A peer is lost, and so far only `by` has heard of that.
    pub fn lose_for(&self, by: Peer, peer: Peer, how: Presence) {
        self.lose_uncounted(by, peer, how);
        self.0.borrow_mut().losses += 1;
    }

    /// As `lose_for`, at the moment before that loss is counted.
    pub fn lose_uncounted(&self, by: Peer, peer: Peer, how: Presence) {
        self.0.borrow_mut().heard.push((by, peer, how));
    }

    /// The state of `peer`, as far as `by` has heard.
    fn told(&self, by: Peer, peer: Peer) -> Presence {
        let net = self.0.borrow();
        let mut heard = net.heard.iter();
        let found = heard.find(|one| (one.0, one.1) == (by, peer));
        found.map_or(net.presence[peer as usize], |one| one.2)
    }

    /// Have they given each other up?
    pub fn are_apart(&self, one: Peer, other: Peer) -> bool {
        self.0.borrow().apart.contains(&(one, other))
    }

    /// Deal the peers to `hosts` hosts. Everything else stays as it is.
    pub fn spread(&self, hosts: u32) {
        self.0.borrow_mut().hosts = hosts;
    }

    /// There is no memory for collective buffers on this host.
    pub fn refuse_collective_buffers(&self, host: u32) {
        self.0.borrow_mut().without_buffers = Some(host);
    }

    /// How many collective buffers have been made, and how many were refused.
    pub fn collective_buffers(&self) -> (usize, usize) {
        let net = self.0.borrow();
        (net.buffers.len(), net.refused_buffers)
    }

    /// How many collective buffers are neither used nor to be used again.
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

    /// A peer dies or leaves. Its engine must not be called any more.
    pub fn lose(&self, peer: Peer, how: Presence) {
        let mut net = self.0.borrow_mut();
        net.presence[peer as usize] = how;
        net.losses += 1;
    }

    /// A peer sends so many frames and pieces of streams, and dies when it comes to the next: then
    /// its engine must not be called any more.
    pub fn die_after(&self, peer: Peer, things: usize) {
        self.0.borrow_mut().fuses.insert(peer, things);
    }

    /// Is it still there?
    pub fn is_here(&self, peer: Peer) -> bool {
        self.0.borrow().presence[peer as usize] == Presence::Here
    }

    /// How often engines have asked whether somebody is there.
    pub fn presence_questions(&self) -> usize {
        self.0.borrow().presence_questions
    }

    /// All that are still there.
    pub fn living(&self) -> Vec<Peer> {
        let peers = self.0.borrow().presence.len() as Peer;
        (0..peers).filter(|&peer| self.is_here(peer)).collect()
    }

    /// The next look of `at` at what `from` sent finds nonsense, for ever.
    pub fn damage(&self, from: Peer, at: Peer) {
        self.0.borrow_mut().damaged.push((from, at));
    }

    /// The message frames a peer's engine has taken in since the last call.
    pub fn taken(&self, by: Peer) -> Vec<Taken> {
        std::mem::take(&mut self.0.borrow_mut().taken[by as usize])
    }

    /// Streams with an end that was neither finished nor abandoned.
    pub fn open_streams(&self) -> usize {
        let net = self.0.borrow();
        let open = |stream: &&Stream| stream.ends[0] || stream.ends[1];
        net.streams.iter().filter(open).count()
    }

    /// Streams that nobody will use again.
    pub fn lost_streams(&self) -> usize {
        let net = self.0.borrow();
        net.streams.iter().filter(|stream| !stream.returned).count()
    }

    /// Loans not given back.
    pub fn lent(&self) -> usize {
        self.0.borrow().loans.len()
    }

    /// Is there a frame from one peer to another?
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
