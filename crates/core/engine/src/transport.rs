//! The contract between the engine and whatever moves its frames.
//!
//! *Order.* Frames from one task to another arrive in the order they were sent, each whole, once.
//! *Blocking.* No call waits. `send` may find no room; the engine then tries again later.
//! *Faults.* Data from a peer is checked by the transport; a peer that breaks the protocol is a
//! [`Fault`], and nothing it sent later is delivered.
//! *Bulk.* Large messages flow through a stream of their own, opened by either side and named to
//! the other by a [`Route`]. Streams of different messages do not hold each other up.
//! *Rounds.* Tasks that share memory have a collective buffer to which each contributes a few bytes that
//! all the others read; small blocking collectives are rounds of such contributions.

use std::ops::Range;

use regatta_memory::held::Held;
use regatta_memory::views::Views;
use regatta_wire::{Frame, Kind, Route};

/// A task, by its number in the job. (Of the first tasks it is their rank in the world.)
pub type Peer = u32;

/// A fault that the transport cannot repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A peer wrote what no correct peer writes. Its connection is closed.
    Corrupt {
        /// The peer.
        peer: Peer,
        /// The finding, for the sentence that the user reads.
        what: &'static str,
    },
    /// Memory for the path to a peer could not be had; says why.
    Memory(String),
}

/// The head of a frame that has arrived, and how long its payload is.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The head.
    pub frame: Frame,
    /// Bytes of payload.
    pub length: usize,
}

/// The state of a peer, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Running, or about to.
    Here,
    /// Left in good order; what it sent can still be received.
    Left,
    /// Died; what it sent before can still be received.
    Dead,
}

/// How far a bulk stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Nothing moved.
    Still,
    /// Some bytes moved.
    Moved,
    /// This side has nothing more to do, and the stream must not be used again.
    Finished,
}

/// Which bytes of a contribution to read.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// From this byte on.
    pub offset: usize,
    /// Length of the whole contribution, which all members know.
    pub total: usize,
}

/// See the module.
pub trait Transport {
    /// One side of a bulk stream.
    type Bulk;
    /// The shared memory in which small collectives happen.
    type CollectiveBuffer;

    /// This task.
    fn me(&self) -> Peer;
    /// How many tasks there have been so far. Grows while tasks are added to a job.
    fn peers(&self) -> u32;
    /// The tasks this one was started together with: the first of them, and how many. Their numbers are consecutive.
    fn world(&self) -> (Peer, u32) {
        (0, self.peers())
    }
    /// Is that peer still there?
    fn presence(&self, peer: Peer) -> Presence;
    /// Changes whenever the presence of any peer does. Read it before `presence`: that then knows every loss counted here.
    fn losses(&self) -> u32;

    /// That peer broke the protocol: from now on `front` and `next_ready` know nothing of it, and
    /// it is told that this task neither sends nor receives any more.
    fn close(&mut self, peer: Peer);

    /// That peer is gone, and all that it sent has been taken in: nothing of what leads to it is needed any more.
    fn forget(&mut self, _peer: Peer) {}

    /// The number of a peer's host. Peers of one host share memory.
    fn host(&self, _peer: Peer) -> u32 {
        0
    }

    /// Longest payload of a frame to most peers; a longer one finds no room. The fast path of a send compares with this for every
    /// peer, so of a transport of several ways it is the limit in shared memory; [`Transport::eager_limit_to`] may be larger.
    fn eager_limit(&self) -> usize;
    /// Longest payload of a frame to this peer, as far as is known: a path that is not there yet takes at least this.
    fn eager_limit_to(&self, _peer: Peer) -> usize {
        self.eager_limit()
    }
    /// Is there memory that both this task and that peer can see? Only then can there be loans between them, and
    /// collective buffers for both.
    fn shares_memory(&self, peer: Peer) -> bool;
    /// Send a frame whole, or say `false`: no room now.
    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault>;
    /// As `send`, with a payload of at most [`regatta_wire::BODY`] bytes of our own.
    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault>;
    /// The oldest frame from a peer that has not been accepted.
    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault>;
    /// Copy the front frame's payload, as far as `into` goes, and be done with the frame.
    fn accept(&mut self, from: Peer, into: &Views);
    /// If the front frame is an eager message with this context and tag that fits into `into`:
    /// receive it and return its length. The fast path of every small receive.
    #[inline(always)]
    fn accept_matching(
        &mut self,
        from: Peer,
        context: u32,
        tag: i32,
        into: &Views,
    ) -> Option<usize> {
        let front = self.front(from).ok()??;
        let frame = front.frame;
        let fits = frame.kind == Kind::Eager
            && (frame.context, frame.tag) == (context, tag)
            && front.length <= into.len();
        fits.then(|| {
            self.accept(from, into);
            front.length
        })
    }
    /// The front frame's payload as bytes; be done with the frame.
    fn accept_bytes(&mut self, from: Peer) -> Held;
    /// The peers that may have sent something, each time from the first: `cursor` starts at 0
    /// and is advanced past the peer returned.
    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer>;

    /// Sender: open a stream of one's own for a message; `None` when too many are open.
    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(Self::Bulk, Route)>, Fault>;
    /// Receiver: open a stream for a message the sender has opened none for.
    fn open_for(&mut self, from: Peer) -> Result<(Self::Bulk, Route), Fault>;
    /// Receiver: use the stream the sender opened.
    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Self::Bulk, Fault>;
    /// Sender: use the stream the receiver opened.
    fn attach_to_fill(&mut self, peer: Peer, route: &Route) -> Result<Self::Bulk, Fault> {
        self.attach(peer, route)
    }
    /// Receiver: the message is not received, and its sender, which has asked for that, hears so: the stream it opened is its
    /// own again, to be reclaimed.
    fn decline(&mut self, _peer: Peer, _route: &Route) -> Result<(), Fault> {
        Ok(())
    }
    /// Sender: move some of the message.
    fn fill(&mut self, to: Peer, bulk: &mut Self::Bulk, message: &Views) -> Result<Flow, Fault>;
    /// Sender: how much of the message has gone; `None`: its receiver is just reading it where it lies.
    fn sent(&self, bulk: &Self::Bulk) -> Option<u64>;
    /// Sender: the message has been copied to `message`, from where it is sent from now on. False: not now, its receiver is
    /// just reading it where it was.
    fn move_to(&mut self, to: Peer, bulk: &mut Self::Bulk, message: &Views) -> Result<bool, Fault>;
    /// Receiver: move some of the message of `total` bytes; bytes beyond `into` are dropped.
    fn drain(
        &mut self,
        from: Peer,
        bulk: &mut Self::Bulk,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault>;
    /// Give up a stream that the other side may still hold. The memory of the message is its
    /// owner's again: what the other side reads there after this is not delivered.
    fn abandon(&mut self, bulk: Self::Bulk);
    /// Give up a stream that the other side does not hold, or has abandoned or declined: it is used again.
    fn reclaim(&mut self, bulk: Self::Bulk);
    /// Sender: as `reclaim`, for a stream of its own that it has filled.
    fn retract(&mut self, to: Peer, route: &Route) {
        if let Ok(bulk) = self.attach(to, route) {
            self.reclaim(bulk);
        }
    }

    /// Borrow `len` bytes that other tasks can read in place; returns their place and memory.
    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault>;
    /// A message from `peer` that names a loan has arrived: from now on the loan is this task's. An error if the peer has not
    /// handed it over to this task.
    fn loan_came(&mut self, peer: Peer, place: u64) -> Result<(), Fault>;
    /// The memory of a loan received from `peer`, checked.
    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault>;
    /// The place and size of a loan by an address inside user hands; `None` if it is none.
    fn loan_at(&self, address: usize) -> Option<(u64, usize)>;
    /// A loan is not needed any more.
    fn give_back(&mut self, place: u64);

    /// The collective buffer all tasks share, if they share memory.
    fn world_collective_buffer(&mut self) -> Option<Self::CollectiveBuffer>;
    /// Make a collective buffer for `members` tasks; the number names it to the others.
    fn new_collective_buffer(
        &mut self,
        members: u32,
    ) -> Result<Option<(Self::CollectiveBuffer, u64)>, Fault>;
    /// Enter a collective buffer another member made.
    fn enter_collective_buffer(
        &mut self,
        name: u64,
        members: u32,
    ) -> Result<Self::CollectiveBuffer, Fault>;
    /// This member will not touch that collective buffer any more. When all have said so it is used again.
    fn leave_collective_buffer(&mut self, name: u64, members: u32);
    /// Most bytes of a contribution.
    fn collective_buffer_capacity(&self, buffer: &Self::CollectiveBuffer) -> usize;
    /// Most bytes of a contribution in any collective buffer of a group of so many, wherever it is.
    fn contribution_limit(&self, members: u32) -> usize;
    /// Contribute the bytes of `from` to round `round` as member `index`, and wake whoever of the `listeners` waits for
    /// it. `peer_of` tells which task a member is.
    fn contribute(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        round: u32,
        from: &Views,
        listeners: Range<u32>,
        peer_of: &impl Fn(u32) -> Peer,
    );
    /// Has member `index` contributed to round `round`, and to no later one in its place?
    fn contributed(&self, buffer: &Self::CollectiveBuffer, index: u32, round: u32) -> bool;
    /// The round whose contribution of member `index` lies where that of `round` goes; 0: none yet.
    fn contributed_round(&self, buffer: &Self::CollectiveBuffer, index: u32, round: u32) -> u32;
    /// Copy from byte `offset` of the `total` bytes member `index` contributed to `round`.
    fn collect(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        round: u32,
        part: Part,
        into: &Views,
    );
    /// Say that this member, `index`, is about to sleep until `target` contributes (`None`: it is not). False: it had
    /// said something else before, so it must look once more before it sleeps.
    fn await_contribution(
        &self,
        buffer: &Self::CollectiveBuffer,
        index: u32,
        target: Option<u32>,
    ) -> bool;
}
